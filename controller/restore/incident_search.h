/*
 * Incidents of a history. Rows of five minutes tell where requests were
 * late; only the ticks there are read.
 */
#pragma once
#include "controller/policy/incident.h"
#include "state/history.h"

struct incident_question {
	int64_t pool;				    /* index of history_pools(), or ANY */
	int64_t first, last;			    /* ticks, both included and in the history */
	void (*progress)(void *user, int64_t tick); /* NULL: nobody looks */
	void *user;
};

struct incident_found {
	size_t pool; /* index of history_pools() */
	struct incident what;
};

/* In the order of their begin, in the arena. Damaged plans are passed over. */
bool incident_search(struct history *h, const struct incident_question *q, struct arena *a,
		     struct incident_found **found, size_t *count, struct error *e) MUST_USE;
