#include "controller/loop/consolidation.h"

#include "base/terminal.h"
#include "controller/loop/controller_state.h"
#include "controller/loop/watch_sync.h"

#include <stdio.h>
#include <string.h>

/* --- where pods may go --- */

static bool is_of_others(const struct controller *c, size_t pool, size_t group)
{
	const struct group_users *users = &fleet_of(c)->users[group];

	return users->count > 1 || (users->count == 1 && users->items[0].pool != pool);
}

/* It stays where it is, and whoever comes there does not take what somebody waits for. */
static bool is_steady(const struct controller *c, const struct node *n)
{
	return !node_label(n, "preheat.dev/lent-by") && !drain_is_under_way(c, n->name) &&
	       (n->group < 0 || (!reservation_leaves(c, n->group) &&
				 (!c->starts.count || !starts_know_machine(&c->starts, machine_of_node(c, n)))));
}

/* Another autoscaler's, too: what it is about to end bears a taint that the filters see. */
static bool may_shelter(const struct controller *c, const struct node *n)
{
	return n->is_known && n->is_ready && !n->is_cordoned && !n->is_draining && !n->is_leaving &&
	       n->interruption == NODE_STAYS && is_steady(c, n);
}

static bool goes_by_itself(const struct controller *c, const struct node *n)
{
	bool is_unused = n->gpus_milli > 0 && !n->is_protected && node_gpus_held_milli(n) == 0;

	return n->group >= 0 && is_unused && scale_down_room(c, (size_t)n->group) > 0;
}

/* What is full need not be looked at. */
static bool is_place(const struct controller *c, size_t pool, const struct node *n)
{
	bool is_full = n->gpus_milli > 0 && n->gpus_used_milli >= n->gpus_milli;

	return !is_full && node_is_usable(n) && is_steady(c, n) && !goes_by_itself(c, n) &&
	       (n->group < 0 || !is_of_others(c, pool, (size_t)n->group));
}

static struct node_places see_places(const struct controller *c, size_t pool, struct arena *a)
{
	const struct node_places all = cluster_nodes_by_use(c->cluster);
	struct node_places p = { arena_array(a, const struct node *, all.count), 0 };

	for (size_t i = 0; i < all.count; i++)
		if (is_place(c, pool, all.nodes[i]))
			p.nodes[p.count++] = all.nodes[i];
	return p;
}

static struct move_verdict judge(const struct controller *c, const struct node *n, const struct node_places *p,
				 struct arena *a)
{
	struct node_places to = { arena_array(a, const struct node *, p->count), 0 };

	for (size_t i = 0; i < p->count; i++)
		if (p->nodes[i] != n)
			to.nodes[to.count++] = p->nodes[i];
	return cluster_move(c->cluster, n, to, clock_now(c->clock), a);
}

/* --- what runs beside the work on a node that goes --- */

/* Pods that need another place when the node goes, those that are going included. */
static bool has_guests(const struct controller *c, const struct node *n, int pool, struct arena *a)
{
	size_t count;
	const struct pod **pods = cluster_node_pods(c->cluster, n, a, &count);

	for (size_t i = 0; i < count; i++)
		if (pods[i]->kind != POD_DAEMON && pods[i]->kind != POD_STATIC && pods[i]->state != POD_FINISHED &&
		    !pod_goes_with_node(pods[i], pool))
			return true;
	return false;
}

/* The pool whose pods need no other place, where one gives up the node; -1: none, what is work keeps its node. */
static int scaled_down(const struct controller *c, size_t pool)
{
	return runs_work(c, pool) ? -1 : (int)pool;
}

/* Who was asked to go from another node has no new place yet, and may get one that is counted on here. */
static bool is_another_emptied(const struct controller *c, const struct node **nodes, size_t count, struct arena *a)
{
	for (size_t i = 0; i < count; i++) {
		int pool = drain_asks_for(c, nodes[i]->name);
		if (pool >= 0 && has_guests(c, nodes[i], scaled_down(c, (size_t)pool), a))
			return true;
	}
	return false;
}

enum move_step consolidation_displaces(const struct controller *c, const struct node *n, size_t pool, struct arena *a,
				       const char **why)
{
	CLEANUP(arena_release)
	struct arena own = { 0 }; /* as large as the cluster, for each node that is asked about */
	int gives_up = scaled_down(c, pool);

	if (!has_guests(c, n, gives_up, &own))
		return MOVE_NEXT;
	const struct node_places all = cluster_nodes_by_use(c->cluster);
	if (is_another_emptied(c, all.nodes, all.count, &own))
		return MOVE_WAIT;
	struct node_places to = { arena_array(&own, const struct node *, all.count), 0 };
	for (size_t i = 0; i < all.count;
	     i++) /* one that is idle, too, and has guests: it stays as long as they must */
		if (all.nodes[i] != n && may_shelter(c, all.nodes[i]) &&
		    (!goes_by_itself(c, all.nodes[i]) || has_guests(c, all.nodes[i], -1, &own)))
			to.nodes[to.count++] = all.nodes[i];
	const struct move_verdict v = cluster_displace(c->cluster, n, gives_up, to, clock_now(c->clock), &own);
	*why = arena_strdup(a, v.text, strlen(v.text));
	return v.is_possible ? MOVE_NEXT : MOVE_NEVER;
}

/* --- which node goes --- */

static int64_t price_of(const struct controller *c, const struct node *n)
{
	return fleet_of(c)->groups[n->group].price_per_hour;
}

/* At most so much of it is used; what nobody uses goes by itself. */
static bool is_half_empty(const struct controller *c, size_t pool, const struct node *n)
{
	int64_t most = c->manifest.pools[pool].spec.scale_down.utilization_ppm, held = node_gpus_held_milli(n);

	return node_is_usable(n) && !n->is_protected && n->gpus_milli > 0 && held > 0 &&
	       (double)held * 1e6 <= (double)n->gpus_milli * (double)most && !drain_is_under_way(c, n->name) &&
	       !drain_is_backed_off(c, n->name) && !node_label(n, "preheat.dev/lent-by") &&
	       !starts_know_machine(&c->starts, machine_of_node(c, n));
}

/* The dearest first; of these that with least on it. */
static int by_worth(const struct controller *c, const struct node *a, const struct node *b)
{
	if (price_of(c, a) != price_of(c, b))
		return price_of(c, a) > price_of(c, b) ? -1 : 1;
	if (a->gpus_used_milli != b->gpus_used_milli)
		return a->gpus_used_milli < b->gpus_used_milli ? -1 : 1;
	return strcmp(a->name, b->name);
}

static void add_in_order(const struct controller *c, const struct node **nodes, size_t *count, const struct node *n)
{
	size_t at = (*count)++;

	for (; at > 0 && by_worth(c, n, nodes[at - 1]) < 0; at--)
		nodes[at] = nodes[at - 1];
	nodes[at] = n;
}

/* Of all groups of the pool, in the order in which they should go. */
static const struct node **candidates(const struct controller *c, size_t pool, struct arena *a, size_t *count)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	const struct node **found = arena_array(a, const struct node *, cluster_node_count(c->cluster));

	*count = 0;
	for (size_t k = 0; k < spec->group_count; k++) {
		size_t all, group = spec->groups[k];
		const struct node **nodes = cluster_nodes(c->cluster, (int)group, a, &all);
		if (!c->groups[group]->is_known || is_of_others(c, pool, group) || scale_down_room(c, group) <= 0)
			continue;
		for (size_t i = 0; i < all; i++)
			if (is_half_empty(c, pool, nodes[i]))
				add_in_order(c, found, count, nodes[i]);
	}
	return found;
}

static bool has_drains(const struct controller *c, size_t pool)
{
	for (size_t k = 0; k < fleet_of(c)->pools[pool].group_count; k++)
		if (drains_in_group(c, (int)fleet_of(c)->pools[pool].groups[k]) > 0)
			return true;
	return false;
}

static void choose(struct consolidation *s, const struct controller *c, size_t pool, const struct node *n,
		   const struct move_verdict *v)
{
	double saved = (double)price_of(c, n) / 1e6;
	char why[sizeof s->why];

	snprintf(why, sizeof why, "%s, saves %s an hour", v->text,
		 human_spent(saved, fleet_of(c)->pools[pool].is_unpriced).text);
	if (strcmp(s->node, n->name) != 0 || strcmp(s->why, why) != 0)
		log_info("node-would-be-empty", LOG_S("node", n->name), LOG_S("pool", fleet_of(c)->pools[pool].name),
			 LOG_S("why", why), LOG_END);
	snprintf(s->node, sizeof s->node, "%s", n->name);
	snprintf(s->why, sizeof s->why, "%s", why);
	s->position = (size_t)pool_position(fleet_of(c), pool, (size_t)n->group);
	s->pods = (int64_t)v->pods;
}

/* For as long as Cluster Autoscaler would have it: half empty, and with a place for all that is there. */
static bool has_been_movable(struct controller *c, size_t pool, const struct node *n)
{
	millis now = clock_mono(c->clock);

	return now - idle_nodes_note(&c->consolidation.movable, machine_of_node(c, n), now)->since >
	       fleet_of(c)->pools[pool].scale_down_after;
}

/* A pod of the pool has its place, or will, and is not there yet. */
static bool is_being_served(const struct controller *c, size_t pool, struct arena *a)
{
	size_t count;
	const struct pending_shape *waiting = cluster_pending(c->cluster, a, &count);

	for (size_t i = 0; i < count; i++)
		if (waiting[i].pool == (int)pool && (waiting[i].placed > 0 || waiting[i].is_undecided))
			return true;
	return false;
}

void consolidation_look(struct controller *c, size_t pool)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct consolidation *s = &c->consolidation;
	struct move_verdict best = { 0 };
	const struct node *chosen = NULL;
	size_t count = 0;

	if (!has_drains(c, pool) && !is_being_served(c, pool, &a)) {
		const struct node **nodes = candidates(c, pool, &a, &count);
		const struct node_places to = count > 0 ? see_places(c, pool, &a) : (struct node_places){ 0 };
		for (size_t i = 0; i < count; i++) {
			const struct move_verdict v = judge(c, nodes[i], &to, &a);
			if (!v.is_possible || v.pods == 0 || !has_been_movable(c, pool, nodes[i]) || chosen)
				continue;
			chosen = nodes[i];
			best = v;
		}
		idle_nodes_forget_others(&s->movable);
	}
	if (chosen)
		choose(s, c, pool, chosen, &best);
	else
		s->node[0] = s->why[0] = '\0';
}

/* --- it goes --- */

void consolidation_begin(struct controller *c, size_t pool, size_t position)
{
	const struct consolidation *s = &c->consolidation;
	const struct node *n = s->node[0] && s->position == position ? cluster_node(c->cluster, s->node) : NULL;

	if (n && drain_begin_move(c, n, pool, s->why))
		events_tell_pool(c, pool, (struct pool_event){ "Consolidating", "Move", false },
				 "node %s is emptied: %s", n->name, s->why);
}

/* Somebody who was asked to go is there yet, or waits for his new place. */
static bool is_moving(const struct controller *c, size_t pool, const struct node *n, struct arena *a)
{
	size_t count;
	const struct pod **pods = cluster_node_pods(c->cluster, n, a, &count);

	for (size_t i = 0; i < count; i++)
		if (pods[i]->state == POD_TERMINATING && pods[i]->kind != POD_DAEMON)
			return true;
	return is_being_served(c, pool, a);
}

enum move_step consolidation_step(struct controller *c, size_t pool, const struct node *n, struct arena *a,
				  const char **why)
{
	if (is_moving(c, pool, n, a))
		return MOVE_WAIT;
	const struct node_places to = see_places(c, pool, a);
	const struct move_verdict v = judge(c, n, &to, a);
	*why = v.text;
	return v.is_possible ? MOVE_NEXT : MOVE_NEVER;
}
