#include "controller/simulation/lead_worth.h"

#include "base/exact.h"

#include <string.h>

/* The fleet and its world, to be changed. */
struct changed {
	struct fleet_spec fleet;
	struct pool_spec *pools;
	struct group_spec *groups;
	struct world_spec spec;
	struct pool_world *pool_worlds;
	struct group_world *group_worlds;
};

static struct changed copy_of(const struct world_setup *w, struct arena *a)
{
	struct changed c = { .fleet = *w->fleet, .spec = *w->spec };
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

/* The world is what is true; where it says nothing, what the manifest says is. Returns what the median loses. */
static millis halve(struct quantiles *in_world, struct quantiles *in_manifest)
{
	millis half = (in_world->p50 > 0 ? in_world->p50 : in_manifest->p50) / 2;

	*in_world = (struct quantiles){ in_world->p50 / 2, in_world->p95 / 2 };
	*in_manifest = (struct quantiles){ in_manifest->p50 / 2, in_manifest->p95 / 2 };
	return half;
}

static millis shorten_cold(struct pool_spec *p, struct pool_world *w, int stage)
{
	millis shorter = 0, whole = w->lead_time.p50 > 0 ? w->lead_time.p50 : p->lead_time.p50;

	for (int i = 0; i < STAGE_COUNT; i++)
		if (i == stage || stage == LEAD_WHOLE)
			shorter += halve(&w->stage[i], &p->stage[i]);
	if (stage == LEAD_WHOLE)
		halve(&w->lead_time, &p->lead_time);
	return shorter > 0 || stage != LEAD_WHOLE ? shorter : whole / 2;
}

/* Of the first group with stopped machines, as the policy takes it. */
static millis shorten_wakes(struct changed *c, const struct pool_spec *p)
{
	millis shorter = 0;

	for (size_t i = 0; i < p->group_count; i++) {
		struct group_spec *g = &c->groups[p->groups[i]];
		millis half = g->standby_max_nodes > 0
				      ? halve(&c->group_worlds[p->groups[i]].wake, &g->standby_lead_time)
				      : 0;
		shorter = shorter > 0 ? shorter : half;
	}
	return shorter;
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
	for (int i = 0; i < LEAD_WORTH_SEEDS; i++)
		if (!run(s, i, &days[(size_t)i * s->world.fleet->pool_count], e))
			return false;
	return true;
}

/* Student's t of the differences: none at 95 % with one degree of freedom less than there are seeds. */
static bool is_chance(const double *saved, double mean)
{
	static const double t95 = 2.776;
	double squares = 0;

	for (int i = 0; i < LEAD_WORTH_SEEDS; i++)
		squares += (saved[i] - mean) * (saved[i] - mean);
	double error = exact_sqrt(squares / (LEAD_WORTH_SEEDS - 1) / LEAD_WORTH_SEEDS);
	return mean < t95 * error && -mean < t95 * error;
}

static void compare(const struct day *before, const struct day *after, size_t pools, size_t pool,
		    struct lead_worth *out)
{
	double saved[LEAD_WORTH_SEEDS];

	for (size_t i = 0; i < LEAD_WORTH_SEEDS; i++) {
		const struct day *b = &before[i * pools + pool], *with = &after[i * pools + pool];
		saved[i] = b->dollars - with->dollars;
		out->dollars += b->dollars / LEAD_WORTH_SEEDS;
		out->late_share += b->late_share / LEAD_WORTH_SEEDS;
		out->late_with += with->late_share / LEAD_WORTH_SEEDS;
		out->saved += saved[i] / LEAD_WORTH_SEEDS;
	}
	out->is_chance = is_chance(saved, out->saved);
}

static millis shorten(struct changed *c, const struct lead_part *part)
{
	struct pool_spec *p = &c->pools[part->pool];

	return part->kind == START_WAKE ? shorten_wakes(c, p)
					: shorten_cold(p, &c->pool_worlds[part->pool], part->stage);
}

bool lead_worth(const struct simulation *as_is, const struct lead_part *parts, size_t count, struct lead_worth *out,
		struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t pools = as_is->world.fleet->pool_count;
	struct day *before = arena_array(&a, struct day, LEAD_WORTH_SEEDS * pools);
	struct day *after = arena_array(&a, struct day, LEAD_WORTH_SEEDS * pools);

	if (!run_all(as_is, before, e))
		return false;
	for (size_t i = 0; i < count; i++) {
		struct changed c = copy_of(&as_is->world, &a);
		struct simulation with = *as_is;
		with.world.fleet = &c.fleet;
		with.world.spec = &c.spec;
		out[i] = (struct lead_worth){ .shorter = shorten(&c, &parts[i]) };
		if (out[i].shorter > 0 && !run_all(&with, after, e))
			return false;
		compare(before, out[i].shorter > 0 ? after : before, pools, parts[i].pool, &out[i]);
	}
	return true;
}
