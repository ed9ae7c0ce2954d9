#include "controller/simulation/rivals/alternative.h"

#include "controller/simulation/rivals/compare.h"
#include "controller/simulation/rivals/rival.h"

bool alternative_run(const struct simulation *as_is, size_t pool, const struct alternative *with, struct score *out,
		     struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const struct world_setup *w = &as_is->world;
	struct fleet_spec fleet = *w->fleet;
	struct pool_world truth = w->spec->pools[pool];
	struct world_spec spec = { &truth, w->spec->groups };
	struct simulation alone = *as_is;
	struct run_result result;

	fleet.pools += pool;
	fleet.pool_count = 1;
	if (with->initial_replicas > 0)
		truth.initial_replicas = with->initial_replicas;
	alone.world.fleet = &fleet;
	alone.world.spec = &spec;
	alone.world.traces += pool;
	alone.policy = rival_find(with->policy);
	alone.setting = with->setting;
	if (!simulate(&alone, &a, &result, e))
		return false;
	*out = result.pools[0].scored;
	return true;
}

int64_t alternative_peak(const struct simulation *as_is, size_t pool)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const struct world_setup *w = &as_is->world;
	struct queue_truth truth = queue_truth_of(&w->fleet->pools[pool], &w->spec->pools[pool]);
	struct load load = { 0 };

	if (w->traces[pool])
		load = load_of(w->traces[pool], &truth, w->interval, &a);
	return whole_above(load_peak(&load, (size_t)(as_is->warm_up / w->interval)));
}
