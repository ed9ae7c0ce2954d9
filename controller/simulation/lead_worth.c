#include "controller/simulation/lead_worth.h"

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
static millis shorten_wakes(struct trial_world *c, const struct pool_spec *p)
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

static millis shorten(struct trial_world *c, const struct lead_part *part)
{
	struct pool_spec *p = &c->pools[part->pool];

	return part->kind == START_WAKE ? shorten_wakes(c, p)
					: shorten_cold(p, &c->pool_worlds[part->pool], part->stage);
}

bool lead_worth(const struct simulation *as_is, const struct lead_part *parts, size_t count, struct lead_worth *out,
		struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct trial *trials = arena_array(&a, struct trial, count);
	struct trial_result *results = arena_array(&a, struct trial_result, count);

	for (size_t i = 0; i < count; i++) {
		struct trial_world *with = arena_new(&a, struct trial_world);
		*with = trial_copy(&as_is->world, &a);
		out[i] = (struct lead_worth){ .shorter = shorten(with, &parts[i]) };
		trials[i] = (struct trial){ parts[i].pool, out[i].shorter > 0 ? with : NULL };
	}
	if (!trial_run(as_is, trials, count, results, e))
		return false;
	for (size_t i = 0; i < count; i++)
		out[i].half = results[i];
	return true;
}
