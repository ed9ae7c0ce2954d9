/*
 * Machines that the cloud will take: what they hold counts as lost from the
 * notice on, its successors start at once, and the node is emptied while
 * the notice lasts.
 */
#include "controller/loop/parts.h"

#include "controller/loop/node_group_parts.h"

#include <stdio.h>

/* Only what every pool of the group lets us change; and stopped machines look as if they were shut down by others. */
static bool is_ours_to_empty(const struct controller *c, const struct node *n)
{
	const struct node_group *g = &c->groups[n->group];
	const struct machine *m = node_group_machine(g, machine_of_node(c, n));

	if (!g->is_known || !m || m->state != MACHINE_RUNNING || m->is_standby || n->owner != NODE_UNCLAIMED ||
	    !node_group_can(g, PROVIDER_NAMES_VICTIMS) || node_group_is_removing(g, m->id))
		return false;
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		if (pool_position(fleet_of(c), i, (size_t)n->group) >= 0 && fleet_of(c)->pools[i].mode != MODE_ACT)
			return false;
	return true;
}

/* Replicas that serve there now, pool by pool. */
static void replace_replicas(struct controller *c, const struct node *n)
{
	struct arena a = { 0 };
	size_t count;
	const struct pod **pods = cluster_node_pods(c->cluster, n, &a, &count);

	for (size_t i = 0; i < count; i++) {
		int64_t position =
			pods[i]->pool < 0 ? -1 : pool_position(fleet_of(c), (size_t)pods[i]->pool, (size_t)n->group);
		if (position < 0 || pods[i]->ready_at <= 0 || pods[i]->is_placeholder)
			continue;
		starts_add_event(&c->starts, (size_t)pods[i]->pool,
				 &(struct event_input){ .group = position, .what = EVENT_LOST, .count = 1 });
		if (!runs_work(c, (size_t)pods[i]->pool))
			fall_back_lost(c, (size_t)pods[i]->pool);
	}
	arena_release(&a);
}

static void take_leave(struct controller *c, const struct node *n)
{
	const char *why = node_interruption_name(n->interruption);
	size_t pool = first_pool(fleet_of(c), (size_t)n->group);

	if (!drain_begin(c, n, pool, FATE_REMOVE, why))
		return;
	c->interrupted++;
	events_of_interruption(c, pool, n);
	replace_replicas(c, n);
}

void interrupted_drive(struct controller *c)
{
	struct arena a = { 0 };
	size_t count;

	if (!c->may_be_interrupted || c->context.is_barred)
		return;
	c->may_be_interrupted = false;
	const struct node **nodes = cluster_nodes(c->cluster, -1, &a, &count);
	for (size_t i = 0; i < count; i++)
		if (nodes[i]->interruption != NODE_STAYS && nodes[i]->group >= 0 && nodes[i]->is_known &&
		    !nodes[i]->is_leaving && !nodes[i]->is_draining && !drain_is_under_way(c, nodes[i]->name) &&
		    is_ours_to_empty(c, nodes[i]))
			take_leave(c, nodes[i]);
	arena_release(&a);
}
