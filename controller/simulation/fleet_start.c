#include "controller/simulation/parts.h"

static const struct lead_draw at_once = { .stuck_in = STAGE_COUNT };

static void add_node(struct world *w, struct holding *h, int64_t replicas)
{
	size_t node = node_add(w, h, NODE_BOOTING);

	w->groups[h->group->index].nodes++;
	for (int64_t i = 0; i < replicas; i++)
		replica_start(w, h, node, START_COLD, &at_once);
}

static int64_t wanted(const struct pool_state *p)
{
	if (p->world->initial_replicas >= 0)
		return p->world->initial_replicas;
	return (queue_demand_milli(&p->queue, 10 * MINUTE) + 999) / 1000;
}

static void start_pool(struct world *w, struct pool_state *p)
{
	int64_t left = wanted(p);

	for (size_t i = 0; i < p->spec->group_count; i++) {
		struct holding *h = &p->holdings[i];
		const struct group_spec *g = h->group->spec;
		int64_t per_node = holding_per_node(h);
		while (per_node > 0 && h->group->nodes < g->max_nodes && (left > 0 || h->group->nodes < g->min_nodes)) {
			int64_t here = left < 1 ? 1 : left < per_node ? left : per_node;
			add_node(w, h, here);
			left -= here;
		}
	}
}

/* What serves when the first request comes: what the first ten minutes need, in the preferred groups. */
void world_start_fleet(struct world *w)
{
	for (size_t i = 0; i < w->fleet->pool_count; i++)
		start_pool(w, &w->pools[i]);
	while (happens_next(w) <= 0) {
		struct happens h = happens_take(w);
		replica_happens(w, &h);
	}
	for (size_t i = 0; i < w->fleet->pool_count; i++)
		w->pools[i].events.count = 0;
}
