/*
 * The traffic of a recorded stretch, as far as its scrapes tell: arrivals
 * are what started and what the queue grew by, lengths the mean of what
 * completed lately. For sending what production saw through a modelled world.
 */
#pragma once
#include "controller/traces/trace.h"
#include "state/history.h"

struct recording {
	struct trace *traces;	   /* one per pool of the history, binned by tick; recording_release frees */
	int64_t *initial_replicas; /* one per pool: ready at its first tick */
	size_t pool_count;
	millis start, interval; /* of the first tick */
};

/* Ticks from `from` to `to`, both included. What is not the traces lives in the arena. */
bool recording_read(struct history *h, int64_t from, int64_t to, struct arena *a, struct recording *out,
		    struct error *e) MUST_USE;
void recording_release(struct recording *r); /* takes a zeroed one */
