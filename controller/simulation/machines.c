#include "controller/simulation/parts.h"

#include "base/exact.h"

/* When a running machine will be taken, if ever. */
static void draw_loss(struct world *w, size_t node)
{
	struct node *n = node_of(w, node);
	struct group_state *g = &w->groups[n->group];

	if (!g->world->loss_per_hour_ppm || n->is_foreign)
		return;
	double hours = -exact_log(1 - random_uniform(&g->losses)) * 1e6 / (double)g->world->loss_per_hour_ppm;
	if (hours < 1e6)
		happens_add(w, w->now + (millis)(hours * (double)HOUR), HAPPENS_LOSS, node, n->serial);
}

size_t node_add(struct world *w, struct holding *h, enum node_state state)
{
	size_t node = w->unused_nodes.count ? w->unused_nodes.items[--w->unused_nodes.count] : w->nodes.count;

	if (node == w->nodes.count)
		LIST_ADD(&w->arena, &w->nodes, ((struct node){ 0 }));
	*node_of(w, node) = (struct node){
		.state = state,
		.serial = ++w->serials,
		.group = h->group->index,
		.owner = h->pool->index,
		.borrower = NONE,
		.first = NONE,
	};
	return node;
}

void node_run(struct world *w, size_t node)
{
	if (node_of(w, node)->state != NODE_BOOTING)
		return;
	node_of(w, node)->state = NODE_RUNNING;
	draw_loss(w, node);
}

/* Free GPUs can be had on what runs or boots, but not on what will be stopped. */
bool node_takes_places(const struct world *w, const struct node *n)
{
	if (n->state == NODE_RUNNING)
		return true;
	if (n->state != NODE_BOOTING)
		return false;
	for (size_t r = n->first; r != NONE; r = w->replicas.items[r].next_on_node)
		if (w->replicas.items[r].kind == START_REFILL)
			return false;
	return n->first != NONE;
}

static void node_forget(struct world *w, size_t node, millis at)
{
	struct node *n = node_of(w, node);

	w->offers -= n->is_offered;
	if (n->is_foreign)
		holding_in(&w->pools[n->owner], n->group)->foreign_free++;
	else
		w->groups[n->group].nodes--;
	n->state = NODE_UNUSED;
	n->serial = 0;
	node_bill(w, node, at);
	LIST_ADD(&w->arena, &w->unused_nodes, node);
}

void node_remove(struct world *w, size_t node, millis at)
{
	w->pools[node_of(w, node)->owner].totals.removals++;
	node_forget(w, node, at);
}

void node_stop(struct world *w, size_t node, millis at)
{
	struct node *n = node_of(w, node);
	struct group_state *g = &w->groups[n->group];
	struct holding *h = holding_in(&w->pools[n->owner], n->group);

	if (n->is_foreign || g->standby_nodes >= g->spec->standby_max_nodes) {
		node_remove(w, node, at);
		return;
	}
	h->pool->totals.removals++;
	g->nodes--;
	g->standby_nodes++;
	n->state = NODE_STOPPED;
	n->serial = ++w->serials;
	node_bill(w, node, at);
	meter_change(&h->standby, g->spec->gpus_per_node * 1000, at);
	LIST_ADD(&w->arena, &h->stopped, node);
}

void node_wake(struct world *w, size_t node)
{
	struct node *n = node_of(w, node);
	struct group_state *g = &w->groups[n->group];

	g->nodes++;
	g->standby_nodes--;
	n->state = NODE_BOOTING;
	meter_change(&holding_in(&w->pools[n->owner], n->group)->standby, -g->spec->gpus_per_node * 1000, w->now);
	node_bill(w, node, w->now);
}

void node_lose(struct world *w, size_t node)
{
	while (node_of(w, node)->first != NONE) {
		size_t r = node_of(w, node)->first;
		struct holding *h = replica_of(w, r)->holding;
		if (replica_of(w, r)->state == REPLICA_READY)
			pool_event(w, h, (struct event_input){ .what = EVENT_LOST, .count = 1 });
		replica_evict(w, r);
	}
	node_forget(w, node, w->now);
}
