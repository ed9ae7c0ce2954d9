#include "controller/simulation/parts.h"

/* A node with free GPUs: one that runs before one that boots, then the fullest. NONE: there is none. */
static size_t find_place(const struct world *w, const struct holding *h)
{
	size_t best = NONE;
	int64_t size = h->group->spec->gpus_per_node, need = h->pool->spec->gpus_per_replica, lowest = INT64_MAX;

	for (size_t i = 0; i < w->nodes.count; i++) {
		const struct node *n = &w->nodes.items[i];
		int64_t free = size - n->gpus_held, rank = n->state == NODE_RUNNING ? free : free + size;
		if (n->group == h->group->index && free >= need && rank < lowest && node_takes_places(w, n)) {
			best = i;
			lowest = rank;
		}
	}
	return best;
}

static void place(struct world *w, struct holding *h, int64_t count)
{
	size_t node;

	for (; count > 0 && (node = find_place(w, h)) != NONE; count--) {
		struct lead_draw lead = place_draw(w, h, node);
		replica_start(w, h, node, START_PLACE, &lead);
	}
	h->pool->totals.ignored += count > 0 ? count : 0;
}

static void wake(struct world *w, struct holding *h, int64_t count)
{
	int64_t per_node = holding_per_node(h);

	while (count > 0 && per_node > 0 && h->stopped.count > 0 && h->group->nodes < h->group->spec->max_nodes) {
		size_t node = h->stopped.items[--h->stopped.count];
		bool is_refused = wake_is_refused(w, h->group);
		struct lead_draw lead = lead_draw(w, h, START_WAKE);
		if (is_refused)
			node_of(w, node)->state = NODE_REFUSING;
		else
			node_wake(w, node);
		h->pool->totals.starts++;
		for (int64_t i = 0; i < per_node && count > 0; i++, count--) {
			if (!is_refused)
				replica_start(w, h, node, START_WAKE, &lead);
			else
				replica_refuse(w, h, node, START_WAKE, ERROR_STOCKOUT);
		}
	}
	h->pool->totals.ignored += count > 0 ? count : 0;
}

/* Nodes that a lender gave back are taken before new ones are bought. */
static int64_t take_offers(struct world *w, struct holding *h, int64_t count)
{
	size_t node;

	for (; count > 0 && (node = node_offered_to(w, h)) != NONE; count--) {
		struct lead_draw lead = lead_draw(w, h, START_PLACE);
		node_change_owner(w, node, h->pool->index);
		replica_start(w, h, node, START_PLACE, &lead);
	}
	return count;
}

static void buy(struct world *w, struct holding *h, enum start_kind kind, int64_t count)
{
	int64_t per_node = holding_per_node(h);
	enum error_kind why = start_is_refused(w, h->group);

	while (count > 0 && per_node > 0 && h->group->nodes < h->group->spec->max_nodes) {
		size_t node = NONE;
		h->pool->totals.starts++;
		if (why == ERROR_NONE) {
			node = node_add(w, h, NODE_BOOTING);
			w->groups[h->group->index].nodes++;
		}
		struct lead_draw lead = lead_draw(w, h, kind);
		for (int64_t i = 0; i < per_node && count > 0; i++, count--) {
			if (why == ERROR_NONE)
				replica_start(w, h, node, kind, &lead);
			else
				replica_refuse(w, h, NONE, kind, why);
		}
	}
	h->pool->totals.ignored += count > 0 ? count : 0;
}

static void delete_standby(struct world *w, struct holding *h, int64_t count)
{
	int64_t per_node = holding_per_node(h);

	for (; count > 0 && h->stopped.count > 0; count -= per_node) {
		size_t node = h->stopped.items[--h->stopped.count];
		node_wake(w, node);
		node_remove(w, node, w->now);
		h->pool->totals.removals--;
	}
	h->pool->totals.ignored += count > 0 ? count : 0;
}

/* Oldest first: they will serve instead of being stopped. */
static void adopt(struct world *w, struct holding *h, int64_t count)
{
	for (size_t id = h->pool->first_start; count > 0 && id != NONE; id = replica_of(w, id)->after) {
		struct replica *r = replica_of(w, id);
		if (r->holding == h && r->kind == START_REFILL) {
			r->kind = START_COLD;
			count--;
		}
	}
	h->pool->totals.ignored += count > 0 ? count : 0;
}

static void shrink(struct world *w, struct holding *h, const struct group_decision *d)
{
	adopt(w, h, d->adopt_refill);
	holding_cancel(w, h, START_COLD, d->cancel_cold);
	holding_cancel(w, h, START_PLACE, d->cancel_place);
	holding_cancel(w, h, START_WAKE, d->cancel_wake);
	holding_cancel(w, h, START_REFILL, d->cancel_refill);
	holding_cancel(w, h, START_RECLAIM, d->cancel_reclaim);
	holding_release(w, h, d);
	delete_standby(w, h, d->delete_standby);
}

static void grow(struct world *w, struct holding *h, const struct group_decision *d)
{
	int64_t left = holding_reclaim(w, h, d->reclaim);
	h->pool->totals.ignored += left > 0 ? left : 0;
	wake(w, h, d->wake);
	buy(w, h, START_COLD, take_offers(w, h, d->cold));
	buy(w, h, START_REFILL, d->refill);
}

static void for_each(struct world *w, const struct plan *plan,
		     void (*act)(struct world *, struct holding *, const struct group_decision *))
{
	for (size_t i = 0; i < plan->pool_count && i < w->fleet->pool_count; i++)
		for (size_t g = 0; g < plan->pools[i].group_count && g < w->pools[i].spec->group_count; g++)
			act(w, &w->pools[i].holdings[g], &plan->pools[i].groups[g]);
}

/* What needs most first: the small ones fit into what is left. */
static void place_all(struct world *w, const struct plan *plan)
{
	int64_t most = 0;

	for (size_t i = 0; i < w->fleet->pool_count; i++)
		most = w->pools[i].spec->gpus_per_replica > most ? w->pools[i].spec->gpus_per_replica : most;
	for (int64_t need = most; need > 0; need--)
		for (size_t i = 0; i < plan->pool_count && i < w->fleet->pool_count; i++)
			for (size_t g = 0; g < plan->pools[i].group_count && g < w->pools[i].spec->group_count; g++)
				if (w->pools[i].spec->gpus_per_replica == need)
					place(w, &w->pools[i].holdings[g], plan->pools[i].groups[g].place);
}

void world_apply(struct world *w, const struct plan *plan)
{
	for (size_t i = 0; i < w->fleet->pool_count; i++)
		w->pools[i].events.count = 0;
	w->has_applied = true;
	place_all(w, plan); /* before a cancelled start takes its node away */
	for_each(w, plan, shrink);
	for_each(w, plan, grow);
}
