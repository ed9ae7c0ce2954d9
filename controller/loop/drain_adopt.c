#include "controller/loop/drain_parts.h"

#include "controller/loop/node_group_parts.h"

#include <string.h>

/* What was begun by whoever led before goes on as it was meant. */
static void adopt(struct controller *c, const struct node *n)
{
	struct drain *d = drain_add(c, n);

	d->pool = drain_pool(c, n);
	d->fate = drain_fate_of(n);
	d->step = DRAIN_EVICT;
	d->was_marked = true;
	d->marked_at = loop_now(c->loop);
}

void drains_adopt(struct controller *c)
{
	struct arena a = { 0 };
	size_t count;
	const struct node **nodes = cluster_nodes(c->cluster, -1, &a, &count);

	for (size_t i = 0; i < count; i++)
		if (nodes[i]->is_draining && nodes[i]->group >= 0 && nodes[i]->is_ready &&
		    nodes[i]->owner == NODE_UNCLAIMED && !drain_of(c, nodes[i]->name) &&
		    fleet_of(c)->pools[drain_pool(c, nodes[i])].mode == MODE_ACT)
			adopt(c, nodes[i]);
	arena_release(&a);
}

/* Lent by a pool that no longer has this group: nobody would ever take it back. */
static bool is_lent_by_nobody(const struct controller *c, const struct node *n)
{
	const struct fleet_spec *fleet = fleet_of(c);
	const char *by = node_label(n, "preheat.dev/lent-by");

	for (size_t i = 0; by && i < fleet->pool_count; i++)
		if (!strcmp(fleet->pools[i].name, by) && pool_position(fleet, i, (size_t)n->group) >= 0)
			return false;
	return by != NULL;
}

/* A stopped machine that was woken, or a drain that was given up. */
static bool is_stray(const struct controller *c, const struct node *n)
{
	if (n->group < 0 || !n->is_known || (!n->is_draining && !is_lent_by_nobody(c, n)) || drain_of(c, n->name))
		return false;
	const struct node_group *g = &c->groups[n->group];
	const struct machine *m = node_group_machine(g, machine_of_node(c, n));

	return m && machine_is_wanted(m) && !node_group_is_removing(g, machine_of_node(c, n)) &&
	       fleet_of(c)->pools[drain_pool(c, n)].mode == MODE_ACT;
}

void drains_unmark_strays(struct controller *c)
{
	struct arena a = { 0 };
	size_t count;
	const struct node **nodes = cluster_nodes(c->cluster, -1, &a, &count);

	for (size_t i = 0; i < count; i++) {
		if (!is_stray(c, nodes[i]))
			continue;
		struct drain *d = drain_add(c, nodes[i]);
		d->step = DRAIN_UNMARK;
		d->is_stray = true;
	}
	arena_release(&a);
}
