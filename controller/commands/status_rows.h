/* One line per pool, wherever it comes from, as `preheat status` prints it. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/millis.h"

#include <stddef.h>

/* Texts live in the arena of whoever filled it in; NULL and ABSENT: not known. */
struct status_row {
	const char *cluster; /* NULL: of the one that was asked */
	const char *namespace, *name, *class, *mode;
	int64_t hot, standby, starting, draining, wished, decided;
	const char *headroom, *demand; /* replicas: "3.2" */
	const char *lead_time, *wait, *limit;
	millis changed_at;	/* 0: not known */
	millis decided_at;	/* 0: not known */
	const char *conditions; /* those that want attention: "NodeStuck, SignalsFresh=False" */
	const char *refusal;	/* why it is not used; NULL: it is */
	const char *reason;	/* of the last decision, a sentence */
};

struct status_rows {
	struct status_row *items;
	size_t count;
	bool is_fleet; /* of several clusters */
	millis now;    /* ages count to it */
};

/* Which ones; NULL: any. */
struct status_filter {
	const char *namespace, *pool;
	bool is_everywhere; /* else, without a namespace: in that of the kubeconfig */
};

struct access_options;
/* From WarmPools in the API server; f->namespace becomes the one that was asked for. */
bool status_from_cluster(const struct access_options *o, struct status_filter *f, struct arena *a,
			 struct status_rows *rows, struct error *e) MUST_USE;
/* The newest decisions of a history, or of those of a whole fleet. */
bool status_from_history(const char *db, const struct status_filter *f, struct arena *a, struct status_rows *rows,
			 struct error *e) MUST_USE;
