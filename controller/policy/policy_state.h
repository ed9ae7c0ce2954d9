/*
 * What the policy remembers between ticks, one value per pool and one per
 * node group; it points to its own shadows only. Private to this folder; see decide.h.
 */
#pragma once
#include "controller/policy/capacity.h"
#include "controller/policy/rule_criterion.h"
#include "controller/policy/decide.h"
#include "controller/policy/demand.h"
#include "controller/policy/lead_time.h"

/* The rule in force and what came of it. */
struct rule_memory {
	int64_t rule, fixed, cheaper, dearer; /* ABSENT when none */
	millis since, reviewed_at;
	double share, target, sunk;
	int64_t tier_saving;			       /* permille; ABSENT without tiers */
	double own_started, own_late, own_shadow_late; /* real and expected, half-life of three days */
	double day_started, day_late, day_shadow_late; /* real and expected, half-life of a day */
	double day_ticks, day_held, day_shadow_held;
};

struct pool_policy_state {
	/* These follow from the manifest and are not part of a checkpoint: the rules, and room for what it holds of
	 * them. */
	struct family family;	    /* its rules are a rule set's */
	struct shadow *shadows;	    /* family.count */
	struct shadow_tiers *tiers; /* of the rules from family.tiered_from on */
	struct demand_state demand;
	struct capacity_state capacity;
	struct lead_state lead;
	struct tier_times times; /* believed, as the family's holds were made from */
	int64_t cold_step, fast_step;
	struct shadow_deals deals;
	struct shadow_record record;
	struct rule_memory choice;
	struct objective_price prices[OBJECTIVE_PRICES];
	millis started_at, hour_at, bridged_since, surplus_since;
	int64_t ticks;
	int32_t shadows_run;	      /* since the first lead time is over */
	int64_t reclaimed, replacing; /* lent nodes that serve; starts that will replace them */
	millis dear_since;	      /* since then machines that were woken in a dear group serve without a queue */
	int64_t swapping, swapped;    /* starts in a cheaper group for them; those that serve and free a dear one */
	int32_t stock_low[STOCK_BLOCKS];
};

/* From the next tick on levels are kept for that many ticks at least, but not for more than LEVELS_MOST. */
void policy_state_make_room(struct demand_state *d, int64_t ticks);

/* In wakes_blocked_until: the group's cloud has no standby tier. */
#define NO_STANDBY INT64_MAX

struct group_memory {
	millis blocked_until, wakes_blocked_until;
	int64_t refusals;     /* in a row */
	int64_t refused_with; /* enum error_kind of the last one */
};

struct rule_set;

struct policy_state {
	size_t pool_count, group_count;
	struct rule_set *rule_sets;
	uint64_t fleet; /* mark of its names */
	struct pool_policy_state *pools;
	struct group_memory *groups;
};
