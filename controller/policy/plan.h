/*
 * What the policy answers: per pool one decision with every number that it
 * used, per node group what to do. Printing needs no further arithmetic.
 */
#pragma once
#include "base/arena.h"
#include "controller/policy/snapshot.h"

#define MEMBER(name, unit, help) int64_t name;
struct pool_decision {
#include "controller/policy/pool_decision.def"
};
struct group_decision {
#include "controller/policy/group_decision.def"
};
struct objective_price {
#include "controller/policy/objective_price.def"
};
#undef MEMBER

extern const struct record_info pool_decision_info, group_decision_info, objective_price_info;

/* The one limit that shaped a decision. */
#define LIMIT(name, word) LIMIT_##name,
enum limit {
#include "controller/policy/limit.def"
	LIMIT_COUNT
};
#undef LIMIT

/* What kept a wish below what is missing, before any limit. */
enum wish_cut {
	WISH_CUT_NONE,
	WISH_CUT_CHASE, /* the queue is chased by fast tiers only, and these have no more */
	WISH_CUT_WORK,	/* a training job has a place for every pod: none is asked for in reserve */
	WISH_CUT_COUNT
};

/* How far the signals can be trusted (llm-autoscalers 6.8). */
enum signal_state { SIGNALS_FRESH, SIGNALS_PARTIAL, SIGNALS_STALE, SIGNALS_GONE, SIGNAL_STATE_COUNT };

/* Where the slots of a replica used for sizing come from. */
enum slots_source {
	SLOTS_PRIOR,	 /* the manifest */
	SLOTS_SEEN,	 /* replicas ran more sequences than the manifest says */
	SLOTS_SATURATED, /* what replicas ran while requests queued */
	SLOTS_KV_CACHE,	 /* as many as fit the KV cache */
	SLOTS_LATENCY,	 /* as many as keep the inter-token latency of the manifest */
	SLOTS_SOURCE_COUNT
};

/* The shadow of the rule in force against reality. */
enum self_test {
	SELF_TEST_LEARNING, /* too little seen */
	SELF_TEST_AGREES,
	SELF_TEST_LATER,   /* more late than expected: capacity, lead time or starts are worse than believed */
	SELF_TEST_EARLIER, /* fewer late than expected: capacity is larger than believed */
	SELF_TEST_DEARER,  /* more GPUs held than expected: limits, drains or failing starts */
	SELF_TEST_COUNT
};

/* The real late share against the objective. */
enum objective_state {
	OBJECTIVE_NONE,	  /* no share is promised: late requests have a price, or deadlines rule */
	OBJECTIVE_BEYOND, /* beyond this record: too little seen, or bursts too rare to tell so small a share from luck
			   */
	OBJECTIVE_MET,
	OBJECTIVE_AT_RISK, /* kept so far, but not if it goes on like this */
	OBJECTIVE_MISSED,
	OBJECTIVE_STATE_COUNT
};

enum { OBJECTIVE_PRICES = 8 };

struct pool_plan {
	struct pool_decision decision;
	struct group_decision *groups; /* one per spec->groups entry */
	size_t group_count;
	struct objective_price prices[OBJECTIVE_PRICES]; /* the price of every objective, loosest first */
	size_t price_count;
};

struct plan {
	struct pool_plan *pools; /* one per fleet->pools entry */
	size_t pool_count;
};

const char *limit_name(enum limit limit);
/* A node group gave nothing when it was asked. */
static inline bool limit_is_refusal(enum limit limit)
{
	return limit == LIMIT_STOCKOUT || limit == LIMIT_QUOTA || limit == LIMIT_UNAVAILABLE;
}
const char *signal_state_name(enum signal_state state);

const char *self_test_name(enum self_test result);
const char *objective_state_name(enum objective_state state);
