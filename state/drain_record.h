/*
 * Nodes that are drained: each is on disk before its first mark is written, and what became of it afterwards. A row
 * whose mark may still be on its node is what a next process, a next leader and a sweep go by.
 */
#pragma once
#include "state/history.h"

struct drain_record {
	const char *node, *machine; /* machine: as its provider calls it */
	const char *pool, *group;   /* NAMESPACE/NAME; the node group */
	const char *fate, *why;	    /* "remove", "replace", "stop", "lend" */
	int64_t term;
	millis asked_at; /* with the node, what tells it from others */

	/* filled in by the functions below; 0: not yet */
	int64_t tick;	     /* the last one decided before; -1 before the first */
	millis released_at;  /* the node was empty, and its machine was given to the provider to end */
	const char *outcome; /* NULL: under way */
	millis ended_at;     /* of the drain */
	millis unmarked_at;  /* nothing of ours is on the node any more, or it is gone */
};

/* On disk when each returns true. Of the same node and moment there is one. */
bool drain_record_save(struct history *h, const struct drain_record *d, struct error *e) MUST_USE;
bool drain_record_release(struct history *h, const char *node, millis asked_at, millis at, struct error *e) MUST_USE;
/* The first outcome stays. */
bool drain_record_end(struct history *h, const char *node, millis asked_at, const char *outcome, millis at,
		      struct error *e) MUST_USE;
/* Of all drains of the node; those that were under way end with this outcome. */
bool drain_record_unmark(struct history *h, const char *node, const char *outcome, millis at, struct error *e) MUST_USE;
/* The last of each node whose mark may be there, in the arena. */
bool drain_record_marked(struct history *h, struct arena *a, struct drain_record **drains, size_t *count,
			 struct error *e) MUST_USE;

struct drain_filter {
	millis from, to;   /* asked at, both included */
	const char *group; /* NULL: any */
	int64_t most;
};
/* The newest that the filter lets through, oldest first, in the arena. */
bool drain_record_find(struct history *h, const struct drain_filter *f, struct arena *a, struct drain_record **drains,
		       size_t *count, struct error *e) MUST_USE;
