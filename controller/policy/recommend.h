/*
 * What a pool would do if it were alone and unlimited: the rule in force on
 * the real fleet, the deadline law for batch, the floors of the manifest.
 */
#pragma once
#include "controller/policy/rule_select.h"

struct recommendation {
	struct scale_actions moves;
	struct fleet fleet; /* the real one, as the rule sees it */
	int64_t have;	    /* ready and on the way */
	int64_t overdue;    /* starts that most would have finished; not counted in have */
	int64_t floor;	    /* least hot replicas */
	int64_t ceiling;    /* most hot replicas by headroom, INT64_MAX without */
	int64_t stock_excess;
	bool keeps_stock; /* the rule in force uses stopped machines */
	bool is_cut;	  /* a limit took something off */
	int64_t unwished; /* missing by the rule and left out of the wish, by wish_cut_by */
	enum wish_cut wish_cut_by;
	double deadline_need;	 /* replicas that deadlines ask for; negative without any */
	int64_t next_serving_ms; /* ABSENT when nothing is on its way */
	enum limit held_by;
};

struct recommendation recommendation_make(struct pool_policy_state *m, const struct snapshot *s, size_t pool,
					  const struct estimates *l);

/*
 * Between two ticks (snapshot.interval 0): places for the pods that somebody else asks for and that have none, within
 * the same limits, and nothing else. Nothing is learned.
 */
struct recommendation recommendation_for_pods(const struct pool_policy_state *m, const struct snapshot *s, size_t pool,
					      const struct estimates *l);

int64_t recommendation_wanted(const struct recommendation *w);

/*
 * The limits on a wish, in the order of the design and each by name:
 * smallest and largest size, budget, rate of growth, cool-down, stale
 * signals, the queue, and pools that are only watched or paused.
 */

/* `over_budget`: replicas that the pool must give back because its budget is overdrawn. */
void limits_apply(struct recommendation *w, struct pool_policy_state *m, const struct snapshot *s, size_t pool,
		  const struct estimates *l, int64_t over_budget);
