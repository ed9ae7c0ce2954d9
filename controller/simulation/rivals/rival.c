#include "controller/simulation/rivals/rival.h"

#include "controller/simulation/rivals/fleet.h"

struct rival {
	struct arena arena; /* holds the rival itself, too */
	const struct family *family;
	const struct fleet_spec *fleet;
	struct settings settings;
	void **memories;	     /* the family's, one per pool */
	struct fleet_memory *fleets; /* one per pool */
};

struct rival *rival_open(const struct family *family, const struct fleet_spec *fleet, const char *setting,
			 struct error *e)
{
	struct arena arena = { 0 };
	struct settings settings;

	if (family->has_no_default && !*setting)
		return error_set(e, ERROR_INVALID, "%s has no default; write %s:%s=N (%s)", family->name, family->name,
				 family->rows[0].key, family->rows[0].help),
		       NULL;
	if (!settings_parse(family->name, setting, family->rows, family->row_count, &settings, e))
		return NULL;
	struct rival *r = arena_new(&arena, struct rival);
	*r = (struct rival){ .family = family, .fleet = fleet, .settings = settings };
	r->memories = arena_array(&arena, void *, fleet->pool_count);
	r->fleets = arena_array(&arena, struct fleet_memory, fleet->pool_count);
	for (size_t i = 0; i < fleet->pool_count; i++) {
		r->memories[i] = arena_alloc(&arena, 1, family->memory_size);
		r->fleets[i].groups = arena_array(&arena, struct fleet_group, fleet->pools[i].group_count);
	}
	r->arena = arena;
	return r;
}

void rival_close(struct rival *r)
{
	if (!r)
		return;
	struct arena arena = r->arena;
	arena_release(&arena);
}

static int64_t wanted(struct rival *r, const struct snapshot *s, size_t pool)
{
	const struct pool_snapshot *p = &s->pools[pool];

	if (!p->scrape_count)
		return -1;
	const struct scrape_input *last = &p->scrapes[p->scrape_count - 1];
	struct sight v = { .spec = &r->fleet->pools[pool],
			   .now = s->now,
			   .interval = s->interval,
			   .scrapes = p->scrapes,
			   .scrape_count = p->scrape_count,
			   .slots = (double)r->fleet->pools[pool].max_sequences,
			   .running = last->running,
			   .waiting = last->waiting,
			   .ready = p->input.ready,
			   .starting = fleet_starting(p),
			   .most = fleet_most(r->fleet, &r->fleet->pools[pool]) };
	return r->family->want(r->memories[pool], &r->settings, &v);
}

static int64_t *nodes_free(const struct rival *r, const struct snapshot *s, struct arena *a)
{
	int64_t *free = arena_array(a, int64_t, r->fleet->group_count);

	for (size_t p = 0; p < r->fleet->pool_count; p++) {
		const struct pool_spec *spec = &r->fleet->pools[p];

		for (size_t g = 0; g < spec->group_count; g++) {
			int64_t left = r->fleet->groups[spec->groups[g]].max_nodes - s->pools[p].groups[g].nodes;

			free[spec->groups[g]] = left > 0 ? left : 0;
		}
	}
	return free;
}

struct plan rival_decide(struct rival *r, const struct snapshot *s, struct arena *a)
{
	struct plan plan = { .pools = arena_array(a, struct pool_plan, r->fleet->pool_count),
			     .pool_count = r->fleet->pool_count };
	struct fleet_order order = {
		.settings = &r->settings, .fleet = r->fleet, .nodes_free = nodes_free(r, s, a), .snapshot = s
	};

	for (order.pool = 0; order.pool < plan.pool_count; order.pool++)
		plan.pools[order.pool] = fleet_plan(&order, &r->fleets[order.pool], wanted(r, s, order.pool), a);
	return plan;
}
