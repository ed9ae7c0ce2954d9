#include "controller/loop/scale_down.h"

#include "base/alloc.h"
#include "controller/explain/explain.h"
#include "controller/loop/controller_state.h"
#include "controller/loop/observe.h"
#include "controller/loop/start_progress.h"
#include "controller/loop/watch_sync.h"
#include "controller/policy/reservation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long capacity of the pool must have been idle before it goes, or is taken for surplus. */
static millis patience_of(const struct controller *c, size_t pool)
{
	millis after = fleet_of(c)->pools[pool].scale_down_after;

	return takes_any(c, pool) || after > IDLE_PATIENCE ? after : IDLE_PATIENCE;
}

/* Why a node may not go that may go another time; such a node is not even cordoned. */
struct held {
	const char *why, *remedy; /* why: NULL: none is held */
};

static void note_held(struct controller *c, size_t pool, const struct held *held)
{
	struct live_pool *p = c->pools[pool];

	if (!held->why)
		return;
	c->drains.blocked += !p->was_blocked && !p->blocked[0];
	snprintf(p->blocked, sizeof p->blocked, "%s; %s", held->why, held->remedy);
}

/* Whether pods of others have another place; one that is lent keeps them. */
static bool may_go(const struct controller *c, const struct node *n, size_t pool, enum drain_fate fate,
		   struct held *held, struct arena *a)
{
	const char *why = NULL;
	enum move_step step = fate == FATE_LEND ? MOVE_NEXT : consolidation_displaces(c, n, pool, a, &why);

	if (step == MOVE_NEVER)
		*held = (struct held){ why, "make room for it on other nodes" };
	return step == MOVE_NEXT;
}

/* --- cancelled starts --- */

/* Oldest first: the cloud lets a machine on its way to standby serve when the size grows. The whole machine serves
 * then: what else was to be stopped with the last one is no start any more, but room on a machine on its way. */
static void adopt_refills(struct controller *c, size_t pool, size_t position, int64_t count)
{
	size_t group = fleet_of(c)->pools[pool].groups[position];
	struct node_group *g = c->groups[group];
	int64_t nodes = nodes_for(c, pool, group, count), rest = nodes * replicas_on_node(c, pool, group) - count;

	if (count <= 0 || !g->is_known)
		return;
	node_group_set_standby(g, g->standby_wanted - nodes);
	node_group_grow(g, nodes);
	for (size_t i = 0; i < c->starts.count && count + rest > 0;) {
		struct start *s = &c->starts.items[i];
		bool is_refill = s->pool == pool && s->group == (int64_t)position && s->kind == START_REFILL;
		if (is_refill && count <= 0) {
			starts_drop(&c->starts, i);
			rest--;
			continue;
		}
		s->kind = is_refill ? START_COLD : s->kind;
		count -= is_refill;
		i++;
	}
}

static void cancel_machine(struct controller *c, size_t pool, size_t group, enum start_kind kind, const char *machine)
{
	struct node_group *g = c->groups[group];
	const struct machine *m = node_group_machine(g, machine);
	const struct node *n = m ? cluster_node_by_machine(c->cluster, m->provider_id) : NULL;
	enum drain_fate fate = kind == START_WAKE ? FATE_STOP : FATE_REMOVE;

	if (!m || starts_know_machine(&c->starts, machine))
		return; /* another replica still waits for it */
	if (n && n->is_known && node_is_needed(c, n, pool))
		return; /* others came to serve there meanwhile */
	CLEANUP(arena_release) struct arena a = { 0 };
	struct held untold = { 0 }; /* it is idle then, and told of as such */
	if (!n || !n->is_known)
		machine_cancel(c, group, machine, kind == START_WAKE ? PROVIDER_STOP : PROVIDER_CANCEL);
	else if (may_go(c, n, pool, fate, &untold, &a))
		drain_begin(c, n, pool, fate, "cancelled before it served");
}

/* Taken back for nothing: the node is lent again, unless a replica came to serve there meanwhile. */
static void cancel_reclaim(struct controller *c, size_t pool, size_t group, const char *machine)
{
	const struct machine *m = node_group_machine(c->groups[group], machine);
	const struct node *n = m ? cluster_node_by_machine(c->cluster, m->provider_id) : NULL;

	if (n && n->is_known && !starts_know_machine(&c->starts, machine) && !replicas_serving(c, n, pool))
		drain_give_back(c, n, pool);
}

/* What nobody has asked for costs nothing to give up; what was asked for may run before its cancel arrives, and then
 * both are there, and what others added stays for a while. So one of the pool's other groups goes in the place of start
 * `i`, if there is one; false: none can. */
static bool cancel_unasked(struct controller *c, size_t pool, size_t position, size_t i)
{
	const struct start *chosen = i < c->starts.count ? &c->starts.items[i] : NULL;

	if (chosen && (chosen->is_swap || start_is_unasked(c, chosen)))
		return false;
	for (size_t other = c->starts.items ? c->starts.count : 0; other-- > 0;) {
		const struct start *s = &c->starts.items[other];
		size_t group = fleet_of(c)->pools[s->pool].groups[s->group];
		if (s->pool != pool || s->group == (int64_t)position || !start_is_unasked(c, s) ||
		    scale_down_room(c, group) <= 0)
			continue;
		starts_drop(&c->starts, other);
		node_group_give_up(c->groups[group], 1);
		return true;
	}
	return false;
}

static bool is_whole_machine(enum start_kind kind)
{
	return kind == START_COLD || kind == START_WAKE;
}

/* Its machine would go with it: no other replica waits for that. */
static bool ends_machine(const struct controller *c, const struct start *s)
{
	int64_t waiting = 0;

	for (size_t i = 0; i < c->starts.count; i++)
		waiting += !strcmp(c->starts.items[i].machine, s->machine);
	return s->machine[0] && is_whole_machine(s->kind) && waiting == 1;
}

/* The youngest; where no machine of the group may go any more, of those whose machine stays. Machines that others
 * added, or whose asking we know nothing of, are no surplus at once. */
static size_t choose_start(const struct controller *c, const struct start *like)
{
	size_t group = fleet_of(c)->pools[like->pool].groups[like->group];
	bool is_place = like->kind == START_PLACE || like->kind == START_RECLAIM;
	millis before = is_place				 ? INT64_MAX
			: node_group_is_raised(c->groups[group]) ? INT64_MIN
								 : clock_now(c->clock) - patience_of(c, like->pool);
	bool has_room = scale_down_room(c, group) > 0;
	size_t i = starts_youngest(&c->starts, c->starts.count, like, before);

	while (i < c->starts.count && !has_room && ends_machine(c, &c->starts.items[i]))
		i = starts_youngest(&c->starts, i, like, before);
	return i;
}

static void cancel(struct controller *c, size_t pool, size_t position, enum start_kind kind, int64_t count)
{
	const struct start like = { .pool = pool, .group = (int64_t)position, .kind = kind };
	size_t group = fleet_of(c)->pools[pool].groups[position];

	if (!count)
		return;
	for (; count > 0; count--) {
		size_t i = choose_start(c, &like);
		char machine[MACHINE_ID_MAX + 1];
		if (kind == START_COLD && cancel_unasked(c, pool, position, i))
			continue;
		if (!c->starts.items || i == c->starts.count)
			break;
		memcpy(machine, c->starts.items[i].machine, sizeof machine);
		starts_drop(&c->starts, i);
		if (machine[0] && kind == START_RECLAIM)
			cancel_reclaim(c, pool, group, machine);
		else if (machine[0] && kind != START_PLACE)
			cancel_machine(c, pool, group, kind, machine);
		if (kind != START_REFILL)
			node_group_give_up(c->groups[group], node_group_missing(c->groups[group]));
	}
}

static void cancel_refills(struct controller *c, size_t pool, size_t position, int64_t count)
{
	size_t group = fleet_of(c)->pools[pool].groups[position];
	struct node_group *g = c->groups[group];

	if (count <= 0)
		return;
	node_group_set_standby(g, g->standby_wanted - nodes_for(c, pool, group, count));
	cancel(c, pool, position, START_REFILL, count);
}

/* --- nodes that go --- */

/* A node that could go. */
struct victim {
	const struct node *node;
	int64_t replicas, in_flight; /* replicas that serve */
	int64_t asleep;
	int64_t stop_rank; /* 0 where none are to be stopped */
};

static bool holds_gpus(const struct pod *p)
{
	return p->has_gpus && p->state != POD_FINISHED && p->kind != POD_DAEMON && p->kind != POD_STATIC &&
	       !pod_is_expendable(p);
}

static bool has_others(const struct pod *p, size_t pool)
{
	return holds_gpus(p) && p->pool != (int)pool && !p->is_placeholder;
}

bool scale_down_serves_others(const struct controller *c, const struct node *n, size_t pool, struct arena *a)
{
	size_t count;
	const struct pod **pods = cluster_node_pods(c->cluster, n, a, &count);

	for (size_t i = 0; i < count; i++)
		if (has_others(pods[i], pool) || (pods[i]->is_placeholder && holds_gpus(pods[i])))
			return true;
	return false;
}

/* False for a node that may not go: somebody else's work, or work that must end by itself. */
static bool weigh(const struct controller *c, size_t pool, struct victim *v, struct arena *a)
{
	size_t count;
	const struct pod **pods = cluster_node_pods(c->cluster, v->node, a, &count);

	for (size_t i = 0; i < count; i++) {
		if (has_others(pods[i], pool))
			return false;
		if (pods[i]->pool != (int)pool || pods[i]->is_placeholder || pods[i]->state == POD_FINISHED)
			continue;
		if (runs_work(c, pool) || pods[i]->state != POD_READY || pods[i]->engine == POD_ENGINE_WAKING)
			return false; /* busy, or on its way: that is cancelled, not released */
		*(pods[i]->engine == POD_ENGINE_AWAKE ? &v->replicas : &v->asleep) += 1;
		int64_t in_flight;
		millis age;
		if (pool_signals_in_flight(c, pool, pods[i], a, &in_flight, &age))
			v->in_flight += in_flight;
	}
	if (runs_work(c, pool))
		v->replicas = replicas_on_node(c, pool, (size_t)v->node->group);
	return v->replicas + v->asleep > 0;
}

static int by_rank_and_load(const void *x, const void *y)
{
	const struct victim *a = x, *b = y;

	if (!a->replicas != !b->replicas)
		return a->replicas ? 1 : -1;
	if (a->stop_rank != b->stop_rank)
		return a->stop_rank > b->stop_rank ? -1 : 1;
	if (a->in_flight * b->replicas != b->in_flight * a->replicas)
		return a->in_flight * b->replicas < b->in_flight * a->replicas ? -1 : 1;
	return strcmp(b->node->name, a->node->name);
}

static int64_t stop_rank(const struct controller *c, const struct node *n)
{
	const struct machine *m = node_group_machine(c->groups[n->group], machine_of_node(c, n));

	return m ? m->stop_rank : 0;
}

struct victims {
	struct victim *items; /* those to go first come first */
	size_t count;
	struct held held; /* by a disruption budget, or by pods that have no other place */
};

static bool has_been_idle(const struct controller *c, const struct node *n);

static struct victims find_victims(const struct controller *c, size_t pool, size_t group, bool shall_stop,
				   struct arena *a)
{
	size_t all;
	const struct node **nodes = cluster_nodes(c->cluster, (int)group, a, &all);
	struct victims found = { .items = arena_array(a, struct victim, all) };

	for (size_t i = 0; i < all; i++) {
		struct victim v = { .node = nodes[i], .stop_rank = shall_stop ? stop_rank(c, nodes[i]) : 0 };
		if (!node_is_usable(nodes[i]) || nodes[i]->is_protected ||
		    node_label(nodes[i], "preheat.dev/lent-by") || drain_is_under_way(c, nodes[i]->name) ||
		    starts_know_machine(&c->starts, machine_of_node(c, nodes[i])) || !weigh(c, pool, &v, a) ||
		    (takes_any(c, pool) && !has_been_idle(c, nodes[i])))
			continue;
		struct drain_verdict verdict = cluster_drain(c->cluster, nodes[i], runs_work(c, pool) ? -1 : (int)pool,
							     clock_now(c->clock), a);
		if (verdict.reason == DRAIN_BUDGET || verdict.reason == DRAIN_BUDGETS_MISCONFIGURED)
			found.held = (struct held){ verdict.text,
						    "raise maxUnavailable, or headroom.min if they shall stay" };
		if (verdict.reason == DRAIN_POSSIBLE &&
		    (!takes_any(c, pool) || may_go(c, nodes[i], pool, FATE_REMOVE, &found.held, a)))
			found.items[found.count++] = v;
	}
	qsort(found.items, found.count, sizeof *found.items, by_rank_and_load);
	return found;
}

/* Their nodes are gone, and lists of the cloud that are a minute old still have them. */
static int64_t machines_without_node(const struct controller *c, const struct node_group *g)
{
	int64_t count = 0;

	for (size_t i = 0; i < g->seen.machine_count; i++) {
		const struct machine *m = &g->seen.machines[i];
		count += m->state == MACHINE_RUNNING && machine_counts(m) && !node_group_is_removing(g, m->id) &&
			 !cluster_node_by_machine(c->cluster, m->provider_id) &&
			 !starts_know_machine(&c->starts, m->id);
	}
	return count;
}

int64_t scale_down_room(const struct controller *c, size_t group)
{
	const struct node_group *g = c->groups[group];
	int64_t least = fleet_of(c)->groups[group].min_nodes;

	if (!g->is_known)
		return INT64_MAX;
	least = g->seen.min > least ? g->seen.min : least;
	return node_group_size(g) - machines_without_node(c, g) - drains_in_group(c, (int)group) - least;
}

int64_t scale_down_sleepers(const struct controller *c, size_t pool, size_t group, struct arena *a)
{
	const struct victims found = find_victims(c, pool, group, false, a);
	int64_t nodes = 0;

	for (size_t i = 0; i < found.count; i++)
		nodes += !found.items[i].replicas;
	return nodes;
}

/* Nodes where every replica sleeps: they stand first. */
static void release_sleepers(struct controller *c, size_t pool, struct victims *found, int64_t nodes, struct arena *a)
{
	for (size_t i = 0; i < found->count && nodes > 0 && !found->items[i].replicas; i++) {
		const struct node *n = found->items[i].node;
		nodes -= may_go(c, n, pool, FATE_REMOVE, &found->held, a) &&
			 drain_begin(c, n, pool, FATE_REMOVE, "all of its replicas sleep, and fewer are needed");
	}
}

void scale_down_release(struct controller *c, size_t pool, size_t position, const struct group_decision *d)
{
	size_t group = fleet_of(c)->pools[pool].groups[position];
	int64_t left = d->release, lend = d->give_back, stop = d->stop, room = scale_down_room(c, group);
	CLEANUP(arena_release) struct arena a = { 0 };

	if (left <= 0 && d->release_asleep <= 0 && !takes_any(c, pool))
		return;
	struct victims found = find_victims(c, pool, group, stop > 0, &a);
	release_sleepers(c, pool, &found, d->release_asleep < room ? d->release_asleep : room, &a);
	room = scale_down_room(c, group);
	for (size_t i = 0; i < found.count && left > 0; i++) {
		const struct victim *v = &found.items[i];
		char why[96];
		enum drain_fate fate = lend > 0 ? FATE_LEND : stop > 0 ? FATE_STOP : FATE_REMOVE;
		if (!v->replicas || v->replicas > left || (fate != FATE_LEND && room <= 0))
			continue;
		if (d->swapped > d->release - left)
			snprintf(why, sizeof why, "a cheaper machine serves instead");
		else
			snprintf(why, sizeof why, "%lld replicas beyond what is needed", (long long)d->release);
		if (!may_go(c, v->node, pool, fate, &found.held, &a) || !drain_begin(c, v->node, pool, fate, why))
			continue;
		room -= fate != FATE_LEND;
		left -= v->replicas;
		lend -= fate == FATE_LEND ? v->replicas : 0;
		stop -= fate == FATE_STOP ? v->replicas : 0;
	}
	if (!runs_work(c, pool))
		c->pools[pool]->starving += left;
	if (left > 0 || takes_any(c, pool))
		note_held(c, pool, &found.held);
}

void scale_down(struct controller *c, size_t pool, size_t position, const struct group_decision *d)
{
	size_t group = fleet_of(c)->pools[pool].groups[position];
	struct node_group *g = c->groups[group];

	adopt_refills(c, pool, position, d->adopt_refill);
	cancel(c, pool, position, START_COLD, d->cancel_cold);
	cancel(c, pool, position, START_PLACE, d->cancel_place);
	cancel(c, pool, position, START_WAKE, d->cancel_wake);
	cancel(c, pool, position, START_RECLAIM, d->cancel_reclaim);
	cancel_refills(c, pool, position, d->cancel_refill);
	scale_down_release(c, pool, position, d);
	if (d->move > 0)
		consolidation_begin(c, pool, position);
	if (d->delete_standby > 0 && g->is_known)
		node_group_set_standby(g, g->standby_wanted - nodes_for(c, pool, group, d->delete_standby));
}

/* --- nodes that nobody uses --- */

/* A group that any pool's work runs on is released by the policy; one that a pool only watches, or of
 * which nothing is known, is left alone. */
static bool is_swept(const struct controller *c, size_t group)
{
	const struct group_users *users = &fleet_of(c)->users[group];

	for (size_t i = 0; i < users->count; i++) {
		size_t pool = users->items[i].pool;
		if (runs_work(c, pool) || !pool_may_act(c, pool) || c->pools[pool]->is_blind)
			return false;
	}
	return true;
}

/*
 * Free nodes that pods may yet come to, at most. A placement without a pod may be meant for any of them; of those that
 * wait only the scheduler knows. Machines on their way for the pool that takes any are meant for its pods, and of these
 * only those that fit what there is matter.
 */
static int64_t nodes_awaiting(const struct controller *c, size_t group)
{
	int64_t placements = 0;

	for (size_t i = 0; i < c->starts.count; i++) {
		const struct start *s = &c->starts.items[i];
		placements += !takes_any(c, s->pool) && s->kind != START_REFILL && !s->pod[0] &&
			      fleet_of(c)->pools[s->pool].groups[s->group] == group;
	}
	const struct group_users *users = &fleet_of(c)->users[group];
	for (size_t i = 0; i < users->count; i++) {
		size_t pool = users->items[i].pool;
		if ((takes_any(c, pool) ? c->pools[pool]->view.placed : c->pools[pool]->view.pending) > 0)
			return INT64_MAX;
	}
	return placements;
}

static struct idle_node *idle_of(const struct idle_nodes *list, const char *machine)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->items[i].machine, machine))
			return &list->items[i];
	return NULL;
}

struct idle_node *idle_nodes_note(struct idle_nodes *list, const char *machine, millis now)
{
	struct idle_node *n = idle_of(list, machine);

	if (!n) {
		list->items = xgrow(list->items, list->count, &list->room, sizeof *list->items);
		n = &list->items[list->count++];
		*n = (struct idle_node){ .since = now };
		snprintf(n->machine, sizeof n->machine, "%s", machine);
	}
	n->is_idle = true;
	return n;
}

/* A machine that is not so now begins anew when it is again, also one that went and was woken. */
void idle_nodes_forget_others(struct idle_nodes *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].is_idle) {
			list->items[kept] = list->items[i];
			list->items[kept++].is_idle = false;
		}
	list->count = kept;
}

static bool holds_none(const struct controller *c, const struct node *n)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t count;
	const struct pod **pods = cluster_node_pods(c->cluster, n, &a, &count);

	for (size_t i = 0; i < count; i++)
		if (holds_gpus(pods[i]))
			return false;
	return true;
}

bool node_is_idle(const struct controller *c, const struct node *n)
{
	return node_is_usable(n) && !n->is_protected && holds_none(c, n) && !drain_is_under_way(c, n->name) &&
	       !starts_know_machine(&c->starts, machine_of_node(c, n)) && !node_label(n, "preheat.dev/lent-by");
}

/* The longest of the pools that may use the group. */
static millis patience_in(const struct controller *c, size_t group)
{
	const struct group_users *users = &fleet_of(c)->users[group];
	millis longest = IDLE_PATIENCE;

	for (size_t i = 0; i < users->count; i++)
		if (patience_of(c, users->items[i].pool) > longest)
			longest = patience_of(c, users->items[i].pool);
	return longest;
}

static struct idle_node *note_idle(struct controller *c, const struct node *node)
{
	return idle_nodes_note(&c->idle, machine_of_node(c, node), clock_mono(c->clock));
}

static bool has_been_idle(const struct controller *c, const struct node *n)
{
	const struct idle_node *idle = idle_of(&c->idle, machine_of_node(c, n));

	return idle && clock_mono(c->clock) - idle->since > patience_in(c, (size_t)n->group);
}

/* Others that name the group let us change it, and are not blind to what runs there. */
static bool others_agree(const struct controller *c, size_t pool, size_t group)
{
	const struct group_users *users = &fleet_of(c)->users[group];

	for (size_t i = 0; i < users->count; i++) {
		size_t other = users->items[i].pool;
		if (other != pool && (!pool_may_act(c, other) || c->pools[other]->is_blind))
			return false;
	}
	return true;
}

int64_t scale_down_idle(struct controller *c, size_t pool, size_t group, struct arena *a)
{
	size_t count;
	const struct node **nodes = cluster_nodes(c->cluster, (int)group, a, &count);

	for (size_t i = 0; i < count; i++)
		if (node_is_idle(c, nodes[i]))
			note_idle(c, nodes[i]);
	if (!c->groups[group]->is_known || !others_agree(c, pool, group) || nodes_awaiting(c, group))
		return 0;
	int64_t idle = (int64_t)find_victims(c, pool, group, false, a).count, room = scale_down_room(c, group);
	room = room > 0 ? room : 0;
	return idle < room ? idle : room;
}

/* All but as many as are kept. */
static void sweep(struct controller *c, size_t group, int64_t kept, struct arena *a)
{
	size_t count, pool = first_pool(fleet_of(c), group);
	struct held held = { 0 };
	const struct node **nodes = cluster_nodes(c->cluster, (int)group, a, &count);

	for (size_t i = 0; i < count; i++) {
		if (!node_is_idle(c, nodes[i]) || kept-- > 0)
			continue;
		struct idle_node *n = note_idle(c, nodes[i]);
		n->is_idle = !has_been_idle(c, nodes[i]) || !c->groups[group]->is_known ||
			     scale_down_room(c, group) <= 0 || !may_go(c, nodes[i], pool, FATE_REMOVE, &held, a) ||
			     !drain_begin(c, nodes[i], pool, FATE_REMOVE, "no pod uses it or waits for it");
	}
	note_held(c, pool, &held);
}

static void age(struct idle_nodes *list, millis duration)
{
	for (size_t i = 0; i < list->count; i++)
		list->items[i].since += duration;
}

void idle_nodes_unwatched(struct controller *c, millis duration)
{
	age(&c->idle, duration);
	age(&c->consolidation.movable, duration);
}

void idle_nodes_release(struct controller *c)
{
	CLEANUP(arena_release) struct arena a = { 0 };

	for (size_t i = 0; i < fleet_of(c)->group_count; i++)
		if (is_swept(c, i))
			sweep(c, i, nodes_awaiting(c, i), &a);
	idle_nodes_forget_others(&c->idle);
}

/* --- machines that the cloud will take --- */

void interruptions_note(void *user, const struct node_group *g)
{
	struct controller *c = user;

	for (size_t i = 0; i < g->seen.machine_count; i++) {
		const struct machine *m = &g->seen.machines[i];
		const struct node *n = cluster_node_by_machine(c->cluster, m->provider_id);
		if (n && n->is_known)
			cluster_node_ends(c->cluster, n, m->state == MACHINE_TERMINATING, clock_now(c->clock));
	}
}

/* What an owner's operation ends is emptied by it. */
static bool is_emptied_by_owner(const struct node_group *g, const struct node *n)
{
	return n->interruption == NODE_TERMINATING && node_group_is_owners(g);
}

/* Stopped machines look as if they were shut down by others. */
static bool is_ours_to_empty(const struct controller *c, const struct node *n)
{
	const struct node_group *g = c->groups[n->group];
	const struct machine *m = node_group_machine(g, machine_of_node(c, n));
	bool is_up = m && !m->is_standby &&
		     (m->state == MACHINE_RUNNING || (m->state == MACHINE_TERMINATING && n->is_ready));

	return g->is_known && is_up && n->owner == NODE_UNCLAIMED && node_group_can(g, PROVIDER_NAMES_VICTIMS) &&
	       !node_group_is_removing(g, m->id) && !is_emptied_by_owner(g, n) && group_pools_act(c, (size_t)n->group);
}

static void tell_leave(struct controller *c, const struct node *n, size_t pool)
{
	static const char *const reasons[] = { [NODE_SPOT_INTERRUPTED] = "SpotInterruption",
					       [NODE_TERMINATING] = "MachineTerminating",
					       [NODE_REBALANCED] = "RebalanceRecommendation",
					       [NODE_MAINTAINED] = "MaintenanceScheduled" };

	c->interruptions.count++;
	events_tell_pool(c, pool, (struct pool_event){ reasons[n->interruption], "Replace", true },
			 "%s of node %s: it is emptied, and what serves there is replaced",
			 node_interruption_name(n->interruption), n->name);
}

/* Of one that ends the cloud may launch another at once: that is looked at before anything is bought. */
static void take_leave(struct controller *c, const struct node *n)
{
	bool is_ending = n->interruption == NODE_TERMINATING;
	size_t pool = first_pool(fleet_of(c), (size_t)n->group);

	if (!drain_begin(c, n, pool, FATE_REMOVE, node_interruption_name(n->interruption)))
		return;
	if (!is_ending || !holds_none(c, n))
		tell_leave(c, n, pool);
	fallback_lost(c, n, !is_ending);
}

static void interruptions_drive(struct controller *c)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t count;

	if (!c->interruptions.may_be || c->context.is_barred)
		return;
	c->interruptions.may_be = false;
	const struct node **nodes = cluster_nodes(c->cluster, -1, &a, &count);
	for (size_t i = 0; i < count; i++)
		if (nodes[i]->interruption != NODE_STAYS && nodes[i]->group >= 0 && nodes[i]->is_known &&
		    !nodes[i]->is_leaving && !nodes[i]->is_draining && !drain_is_under_way(c, nodes[i]->name) &&
		    is_ours_to_empty(c, nodes[i]))
			take_leave(c, nodes[i]);
}

/* More is needed than was decided, as it cannot be had. */
static bool is_cut(const struct pool_decision *d)
{
	return limit_is_refusal((enum limit)d->held_by) || d->held_by == LIMIT_BUDGET ||
	       d->held_by == LIMIT_RESERVATION;
}

bool interruption_waits(const struct controller *c, const struct node *n, millis since)
{
	if (!c->has_decided || c->snapshot.now < since)
		return true;
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++) {
		const struct pool_decision *d = &c->plan.pools[i].decision;
		if (!runs_work(c, i) && !takes_any(c, i) && replicas_serving(c, n, i) &&
		    (is_cut(d) || d->ready < d->decided))
			return true;
	}
	return false;
}

/* --- groups whose reservation ends --- */

/* As decided last; NULL: there is no plan yet, or no end. */
static const struct group_decision *end_of(const struct controller *c, int group)
{
	size_t pool = group >= 0 ? first_pool(fleet_of(c), (size_t)group) : 0;
	int64_t at = group >= 0 ? pool_position(fleet_of(c), pool, (size_t)group) : -1;

	if (at < 0 || !c->has_decided || pool >= c->plan.pool_count || (size_t)at >= c->plan.pools[pool].group_count ||
	    c->plan.pools[pool].groups[at].ends_at <= 0)
		return NULL;
	return &c->plan.pools[pool].groups[at];
}

bool reservation_leaves(const struct controller *c, int group)
{
	const struct group_decision *d = end_of(c, group);

	return d && clock_now(c->clock) >= d->leaves_at;
}

bool reservation_is_due(const struct controller *c, int group)
{
	const struct group_decision *d = end_of(c, group);

	return d && clock_now(c->clock) >= d->ends_at - RESERVATION_EMPTY_BEFORE;
}

/* Replicas that serve on machines that stay; the view may be from before the first cordon. */
static int64_t staying(const struct controller *c, size_t pool)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	int64_t count = 0;

	for (size_t i = 0; i < spec->group_count; i++)
		if (!reservation_leaves(c, (int)spec->groups[i]))
			count += c->pools[pool]->view.groups[i].ready;
	return count;
}

bool reservation_waits(const struct controller *c, int group)
{
	if (group >= 0 && !c->has_decided)
		return observe_end(c, (size_t)group) > 0;
	if (!reservation_leaves(c, group) || reservation_is_due(c, group))
		return false;
	const struct group_users *users = &fleet_of(c)->users[group];
	for (size_t i = 0; i < users->count; i++) {
		size_t pool = users->items[i].pool;
		const struct pool_decision *d = &c->plan.pools[pool].decision;
		if (!runs_work(c, pool) && (is_cut(d) || staying(c, pool) < d->decided))
			return true;
	}
	return false;
}

/* Work that must end by itself is not disturbed: it was given its place when there was time. */
static bool may_leave(const struct controller *c, const struct node *n, size_t pool)
{
	return !runs_work(c, pool) || node_gpus_held_milli(n) == 0;
}

static void leave(struct controller *c, size_t group, millis ends_at, struct arena *a)
{
	size_t count, pool = first_pool(fleet_of(c), group);
	const struct node **nodes = cluster_nodes(c->cluster, (int)group, a, &count);
	CLEANUP(buf_release) struct buf at = { 0 };
	int64_t begun = 0;

	explain_time_rfc3339(ends_at, &at);
	for (size_t i = 0; i < count; i++)
		begun += nodes[i]->is_known && !nodes[i]->is_leaving && !nodes[i]->is_draining &&
			 !drain_is_under_way(c, nodes[i]->name) && is_ours_to_empty(c, nodes[i]) &&
			 may_leave(c, nodes[i], pool) &&
			 drain_begin(c, nodes[i], pool, FATE_REMOVE, "its reservation ends");
	if (begun)
		events_tell_pool(c, pool, (struct pool_event){ "ReservationEnding", "Replace", true },
				 "the reservation of node group %s ends at %s: what serves on %lld nodes is replaced "
				 "elsewhere, and they go",
				 fleet_of(c)->groups[group].name, at.text, (long long)begun);
}

void reservations_leave(struct controller *c)
{
	CLEANUP(arena_release) struct arena a = { 0 };

	for (size_t i = 0; i < fleet_of(c)->group_count && !c->context.is_barred; i++)
		if (reservation_leaves(c, (int)i) && c->groups[i]->is_known)
			leave(c, i, end_of(c, (int)i)->ends_at, &a);
}

static void renew_pool(struct live_pool *p)
{
	p->starving = 0;
	p->was_blocked = p->blocked[0] != '\0';
	p->blocked[0] = '\0';
}

static void renew(struct controller *c)
{
	c->interruptions.may_be = true;
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		renew_pool(c->pools[i]);
}

const struct actor interruptions_actor = { .needs_plan = true, .renew = renew, .drive = interruptions_drive };
