/*
 * The learning half of a tick: takes what was seen into the memory of a
 * pool, moves its shadow fleets on by one tick, and reviews the rule in
 * force.
 */
#pragma once
#include "controller/policy/decide.h"
#include "controller/policy/policy_state.h"

/* What the deciding half needs of it. */
struct estimates {
	struct demand_reading reading;
	struct demand_view view;
	struct capacity capacity;
	struct lead cold, wake, reclaim, place, rouse;
	double standby_price; /* share of the full price */
	double replica_price; /* micro-dollars per replica and hour */
	bool is_filling;      /* the first lead time: nothing is counted or released */
};

struct estimates pool_learn(struct pool_policy_state *m, const struct snapshot *s, size_t pool);
/* What is known without a look at demand: between two ticks. Of peaks the level stands for all. */
struct estimates pool_recall(const struct pool_policy_state *m, const struct snapshot *s, size_t pool);

/* How every rule of a pool stands on the record: what the choice of the rule in force weighed. */

struct rule_standing {
	int64_t margin_permille, hold_ms, chase_permille;
	int64_t stock_permille; /* ABSENT: uses no fast tier */
	int64_t gpu_milli;	/* GPUs it would have held, mean over the record; ABSENT before one */
	int64_t share_ppm;	/* late share, with the caution for rare bursts and the prior of the first hours */
	bool meets;		/* the target of the last review */
};

/* Of the memory's pool, by number of the rule, in the arena; *target_ppm as of the last review. */
struct rule_standing *policy_standings(const struct policy_state *m, const struct fleet_spec *fleet, size_t pool,
				       struct arena *a, int64_t *target_ppm);

/*
 * The rule in force: its review every quarter of an hour, the real late
 * share beside it, the price of every objective, and the self-test.
 */

/* What the last day says of shadow and reality. */
enum self_test review_self_test(const struct pool_policy_state *m, double late_allowed);
/* What the real late share says of the objective. `supported`: the smallest late share that the record can tell from
 * luck, negative when it has none. */
enum objective_state review_objective(const struct pool_policy_state *m, double late_allowed, double supported);
/* The choice as it stands, for saying why. */
struct choice_input review_input(const struct pool_policy_state *m, const struct snapshot *s, size_t pool,
				 const struct estimates *l);
