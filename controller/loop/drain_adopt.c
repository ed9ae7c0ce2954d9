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

int64_t drains_call_off(struct controller *c, size_t pool, int64_t replicas)
{
	int64_t kept = 0;

	for (struct drain *d = c->drains.first; d && kept < replicas && !runs_work(c, pool); d = d->next) {
		const struct node *n = cluster_node(c->cluster, d->node);
		int64_t serving = n && n->is_known ? drain_serving(d, n) : 0;
		if (d->pool != pool || d->fate == FATE_LEND || d->step > DRAIN_EVICT || serving == 0 ||
		    n->interruption != NODE_STAYS)
			continue;
		log_info("node-kept", LOG_S("node", d->node), LOG_S("pool", fleet_of(c)->pools[pool].name),
			 LOG_I("replicas", serving), LOG_S("why", "needed again before it was empty"), LOG_END);
		d->step = DRAIN_UNMARK;
		d->quiet_until = 0;
		kept += serving;
	}
	return kept;
}

int64_t drains_returning(const struct controller *c, size_t pool, size_t group)
{
	int64_t count = 0;

	for (const struct drain *d = c->drains.first; d; d = d->next) {
		const struct node *n = cluster_node(c->cluster, d->node);
		if (d->pool == pool && d->group == (int)group && d->fate != FATE_LEND && n && n->is_draining &&
		    (d->step == DRAIN_UNMARK || d->step == DRAIN_SHOWN))
			count += drain_serving(d, n);
	}
	return count;
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
