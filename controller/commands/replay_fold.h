/*
 * Deciding a recorded stretch again: from the last checkpoint before it
 * forward, each recorded snapshot through the same policy, each plan
 * compared with the stored one. Where the manifest changed, the memory is
 * carried over as it was then.
 */
#pragma once
#include "controller/manifest/manifest.h"
#include "controller/simulation/simulate.h"
#include "state/history.h"

struct replay_range {
	int64_t from, to; /* ticks, both included */
	int64_t pool;	  /* of history_pools(), or ANY */
};

/* A field of the first differing plan. */
struct replay_field {
	const char *of; /* "decision", the name of a group, "prices" */
	const struct field_info *field;
	int64_t stored, now;
};

enum { REPLAY_FIELDS_MAX = 24 };

struct replay_outcome {
	int64_t ticks, differing; /* replayed; with any difference */
	bool is_cut_short;	  /* an input is damaged: nothing after it can be decided */

	/* of the first difference */
	int64_t tick;
	millis at;
	size_t pool;	  /* of history_pools() */
	const char *what; /* "the stored plan is damaged: ...", "another plan" */
	struct replay_field *fields;
	size_t field_count; /* at most REPLAY_FIELDS_MAX are kept */
};

/* What decided then: the policy and its setting, "" for none. */
bool replay_policy(struct history *h, struct arena *a, const struct policy_ops **ops, const char **setting,
		   struct error *e) MUST_USE;

/* Everything that the outcome points to lives in the arena. False when it could not be replayed. */
bool replay_fold(struct history *h, const struct replay_range *range, struct arena *a, struct replay_outcome *out,
		 struct error *e) MUST_USE;
