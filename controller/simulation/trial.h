/*
 * What a change would have come to: the same traffic through the modelled
 * world, as it is and with the change, by the same seeds on both sides, so
 * that chance is told from worth. Pure.
 */
#pragma once
#include "controller/simulation/simulate.h"

enum { TRIAL_SEEDS = 5 };

/* A fleet and its world, to be changed. */
struct trial_world {
	struct fleet_spec fleet;
	struct pool_spec *pools;
	struct group_spec *groups;
	struct world_spec spec;
	struct pool_world *pool_worlds;
	struct group_world *group_worlds;
};
struct trial_world trial_copy(const struct world_setup *w, struct arena *a);

struct trial {
	size_t pool;			/* whose lateness and cost it is about */
	const struct trial_world *with; /* NULL: nothing is changed, and nothing is run */
};

struct trial_result {
	double dollars, late_share; /* a day, as it is; GPU hours of a pool without prices */
	double saved;		    /* a day, by all pools with (or all without) prices, with the change */
	double late_with;
	bool is_chance; /* the seeds differ by as much as is saved */
};

/*
 * `as_is`: the world and the policy; its seed counts up, and its observers see every run: TRIAL_SEEDS times as it is,
 * and as often with each change. False when the setting is bad or an observer ended it, with the error.
 */
bool trial_run(const struct simulation *as_is, const struct trial *trials, size_t count, struct trial_result *out,
	       struct error *e) MUST_USE;
