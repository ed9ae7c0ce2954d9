#include "controller/simulation/trial.h"

#include "base/exact.h"

#include <string.h>

struct trial_world trial_copy(const struct world_setup *w, struct arena *a)
{
	struct trial_world c = { .fleet = *w->fleet, .spec = *w->spec };
	size_t pools = w->fleet->pool_count, groups = w->fleet->group_count;

	c.pools = arena_array(a, struct pool_spec, pools);
	c.groups = arena_array(a, struct group_spec, groups);
	c.pool_worlds = arena_array(a, struct pool_world, pools);
	c.group_worlds = arena_array(a, struct group_world, groups);
	memcpy(c.pools, w->fleet->pools, pools * sizeof *c.pools);
	memcpy(c.groups, w->fleet->groups, groups * sizeof *c.groups);
	memcpy(c.pool_worlds, w->spec->pools, pools * sizeof *c.pool_worlds);
	memcpy(c.group_worlds, w->spec->groups, groups * sizeof *c.group_worlds);
	c.fleet.pools = c.pools;
	c.fleet.groups = c.groups;
	c.spec.pools = c.pool_worlds;
	c.spec.groups = c.group_worlds;
	return c;
}

struct day {
	double dollars, late_share;
};

/* `days`: one per pool. */
static bool run(const struct simulation *s, int seed, struct day *days, struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct simulation once = *s;
	struct run_result result = { 0 };

	once.world.seed += (uint64_t)seed;
	if (!simulate(&once, &a, &result, e))
		return false;
	double length = (double)(result.simulated - s->warm_up) / (double)DAY;
	for (size_t i = 0; i < s->world.fleet->pool_count; i++) {
		const struct score *scored = &result.pools[i].scored;
		days[i] = (struct day){ length > 0 ? score_dollars(scored) / length : 0, score_late_share(scored) };
	}
	return true;
}

static bool run_all(const struct simulation *s, struct day *days, struct error *e)
{
	for (int i = 0; i < TRIAL_SEEDS; i++)
		if (!run(s, i, &days[(size_t)i * s->world.fleet->pool_count], e))
			return false;
	return true;
}

/* Student's t of the differences: none at 95 % with one degree of freedom less than there are seeds. */
static bool is_chance(const double *saved, double mean)
{
	static const double t95 = 2.776;
	double squares = 0;

	for (int i = 0; i < TRIAL_SEEDS; i++)
		squares += (saved[i] - mean) * (saved[i] - mean);
	double error = exact_sqrt(squares / (TRIAL_SEEDS - 1) / TRIAL_SEEDS);
	return mean < t95 * error && -mean < t95 * error;
}

/* GPU hours of pools without prices are never added to dollars. */
static void compare(const struct fleet_spec *fleet, const struct day *before, const struct day *after, size_t pool,
		    struct trial_result *out)
{
	double saved[TRIAL_SEEDS] = { 0 };
	size_t pools = fleet->pool_count;

	for (size_t i = 0; i < TRIAL_SEEDS; i++) {
		const struct day *b = &before[i * pools + pool], *with = &after[i * pools + pool];
		for (size_t p = 0; p < pools; p++)
			if (fleet->pools[p].is_unpriced == fleet->pools[pool].is_unpriced)
				saved[i] += before[i * pools + p].dollars - after[i * pools + p].dollars;
		out->dollars += b->dollars / TRIAL_SEEDS;
		out->late_share += b->late_share / TRIAL_SEEDS;
		out->late_with += with->late_share / TRIAL_SEEDS;
		out->saved += saved[i] / TRIAL_SEEDS;
	}
	out->is_chance = is_chance(saved, out->saved);
}

bool trial_run(const struct simulation *as_is, const struct trial *trials, size_t count, struct trial_result *out,
	       struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t pools = as_is->world.fleet->pool_count;
	struct day *before = arena_array(&a, struct day, TRIAL_SEEDS * pools);
	struct day *after = arena_array(&a, struct day, TRIAL_SEEDS * pools);

	if (!run_all(as_is, before, e))
		return false;
	for (size_t i = 0; i < count; i++) {
		struct simulation with = *as_is;
		out[i] = (struct trial_result){ 0 };
		if (trials[i].with) {
			with.world.fleet = &trials[i].with->fleet;
			with.world.spec = &trials[i].with->spec;
		}
		if (trials[i].with && !run_all(&with, after, e))
			return false;
		compare(as_is->world.fleet, before, trials[i].with ? after : before, trials[i].pool, &out[i]);
	}
	return true;
}
