/*
 * Calls that change something at a provider: each is on disk before its
 * first byte goes out, and its outcome afterwards. After a crash the open
 * ones are those whose outcome the provider must be asked for.
 */
#pragma once
#include "state/history.h"

enum { LAUNCH_MACHINES_MAX = 10000 };

struct launch {
	const char *token; /* unique; what the provider is told, so that a repeated call has one effect */
	const char *group;
	int64_t verb;		     /* enum provider_verb, which this room does not know */
	int64_t target;		     /* size asked for, absolute; of what was done in part the size that came of it */
	const char *const *machines; /* ids that are named; in no id is a line end */
	size_t machine_count;
	int64_t term; /* of the lease under which it was asked */
	millis asked_at;

	/* filled in by launch_save, launch_goes_on and launch_end */
	int64_t tick;	     /* the last one decided before; -1 before the first */
	const char *outcome; /* NULL: open */
	millis ended_at;
	const char *operation; /* what the provider calls what goes on after its answer; "": nothing was told */
};

/* On disk when it returns true. ERROR_CONFLICT when the token was used before. */
bool launch_save(struct history *h, const struct launch *l, struct error *e) MUST_USE;
/* The call was answered, and what it began goes on under this name. ERROR_NOT_FOUND as of launch_end. On disk when it
 * returns true. */
bool launch_goes_on(struct history *h, const char *token, const char *operation, struct error *e) MUST_USE;
/* `outcome`: "done", or error_kind_name() of what failed. ERROR_NOT_FOUND for a token that was not saved or has one.
 * On disk when it returns true. */
bool launch_end(struct history *h, const char *token, const char *outcome, millis at, struct error *e) MUST_USE;
/* The same of a call that failed and did a part: the size that it reached. The outcome is LAUNCH_PARTLY. */
bool launch_end_partly(struct history *h, const char *token, int64_t reached, millis at, struct error *e) MUST_USE;
#define LAUNCH_PARTLY "partly"
/* Those without an outcome, oldest first, in the arena. */
bool launch_open_ones(struct history *h, struct arena *a, struct launch **launches, size_t *count,
		      struct error *e) MUST_USE;

struct launch_filter {
	millis from, to;   /* asked at, both included */
	const char *group; /* NULL: any */
	int64_t most;
};
/* The newest that the filter lets through, oldest first, in the arena. Ended ones stay as long as the ticks of their
 * time. */
bool launch_find(struct history *h, const struct launch_filter *f, struct arena *a, struct launch **launches,
		 size_t *count, struct error *e) MUST_USE;
