#include "controller/loop/release.h"

#include "controller/loop/node_group_parts.h"
#include "controller/loop/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A node that could go. */
struct victim {
	const struct node *node;
	int64_t replicas, in_flight;
};

static bool has_others(const struct pod *p, size_t pool)
{
	return p->has_gpus && p->pool != (int)pool && !p->is_placeholder && p->state != POD_FINISHED;
}

static int64_t in_flight_of(const struct controller *c, size_t pool, const struct pod *p, struct arena *a)
{
	int64_t count = 0;
	millis age = 0;

	if (!c->pools[pool].source || !source_in_flight(c->pools[pool].source, pod_key(p, a), &count, &age))
		return 0;
	return count;
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
		if (runs_work(c, pool) || pods[i]->state != POD_READY)
			return false; /* busy, or on its way: that is cancelled, not released */
		v->replicas++;
		v->in_flight += in_flight_of(c, pool, pods[i], a);
	}
	if (runs_work(c, pool))
		v->replicas = replicas_per_node(&fleet_of(c)->groups[v->node->group], &fleet_of(c)->pools[pool]);
	return v->replicas > 0;
}

static int by_load(const void *x, const void *y)
{
	const struct victim *a = x, *b = y;

	if (a->in_flight * b->replicas != b->in_flight * a->replicas)
		return a->in_flight * b->replicas < b->in_flight * a->replicas ? -1 : 1;
	return strcmp(b->node->name, a->node->name); /* the highest number: AKS stops no others */
}

static struct victim *find_victims(const struct controller *c, size_t pool, size_t group, struct arena *a,
				   size_t *count)
{
	size_t all, n = 0;
	const struct node **nodes = cluster_nodes(c->cluster, (int)group, a, &all);
	struct victim *victims = arena_array(a, struct victim, all);

	for (size_t i = 0; i < all; i++) {
		struct victim v = { .node = nodes[i] };
		if (!node_is_usable(nodes[i]) || nodes[i]->is_protected ||
		    node_label(nodes[i], "preheat.dev/lent-by") || drain_is_under_way(c, nodes[i]->name) ||
		    starts_know_machine(&c->starts, machine_of_node(c, nodes[i])) || !weigh(c, pool, &v, a))
			continue;
		struct drain_verdict verdict = cluster_drain(c->cluster, nodes[i], runs_work(c, pool) ? -1 : (int)pool,
							     clock_now(c->clock), a);
		if (verdict.reason == DRAIN_POSSIBLE || verdict.reason == DRAIN_BUDGET)
			victims[n++] = v;
	}
	qsort(victims, n, sizeof *victims, by_load);
	*count = n;
	return victims;
}

int64_t release_room(const struct controller *c, size_t group)
{
	const struct node_group *g = &c->groups[group];
	int64_t least = fleet_of(c)->groups[group].min_nodes;

	if (!g->is_known)
		return INT64_MAX;
	least = g->seen.min > least ? g->seen.min : least;
	return node_group_size(g) - drains_in_group(c, (int)group) - least;
}

void release(struct controller *c, size_t pool, size_t position, const struct group_decision *d)
{
	size_t group = fleet_of(c)->pools[pool].groups[position], count;
	int64_t left = d->release, lend = d->give_back, stop = d->stop, room = release_room(c, group);
	struct arena a = { 0 };

	if (left <= 0)
		return;
	struct victim *victims = find_victims(c, pool, group, &a, &count);
	for (size_t i = 0; i < count && left > 0; i++) {
		char why[96];
		enum drain_fate fate = lend > 0 ? FATE_LEND : stop > 0 ? FATE_STOP : FATE_REMOVE;
		if (victims[i].replicas > left || (fate != FATE_LEND && room <= 0))
			continue;
		snprintf(why, sizeof why, "%lld replicas beyond what is needed", (long long)d->release);
		if (!drain_begin(c, victims[i].node, pool, fate, why))
			continue;
		room -= fate != FATE_LEND;
		left -= victims[i].replicas;
		lend -= fate == FATE_LEND ? victims[i].replicas : 0;
		stop -= fate == FATE_STOP ? victims[i].replicas : 0;
	}
	if (!runs_work(c, pool))
		c->pools[pool].starving += left;
	arena_release(&a);
}

bool node_is_lent_by(const struct node *n, const char *pool)
{
	const char *by = node_label(n, "preheat.dev/lent-by");

	return by && !strcmp(by, pool);
}

/* What borrowers start there does not keep it. */
static bool is_taken_back(const struct controller *c, const struct node *n)
{
	for (size_t i = 0; i < c->starts.count; i++)
		if (c->starts.items[i].kind == START_RECLAIM &&
		    !strcmp(c->starts.items[i].machine, machine_of_node(c, n)))
			return true;
	return false;
}

int64_t lent_places(const struct controller *c, size_t pool, size_t group)
{
	struct arena a = { 0 };
	size_t count;
	int64_t lent = 0;
	const struct node **nodes = cluster_nodes(c->cluster, (int)group, &a, &count);

	for (size_t i = 0; i < count; i++)
		if (node_is_usable(nodes[i]) && node_is_lent_by(nodes[i], fleet_of(c)->pools[pool].name) &&
		    !is_taken_back(c, nodes[i]))
			lent += replicas_per_node(&fleet_of(c)->groups[group], &fleet_of(c)->pools[pool]);
	arena_release(&a);
	return lent;
}

void reclaim(struct controller *c, size_t pool, size_t position, int64_t count)
{
	size_t group = fleet_of(c)->pools[pool].groups[position], all;
	struct arena a = { 0 };
	int64_t each = replicas_per_node(&fleet_of(c)->groups[group], &fleet_of(c)->pools[pool]);
	const struct node **nodes = count > 0 ? cluster_nodes(c->cluster, (int)group, &a, &all) : NULL;

	for (size_t i = 0; nodes && i < all && count > 0; i++) {
		if (!node_is_lent_by(nodes[i], fleet_of(c)->pools[pool].name) || !node_is_usable(nodes[i]) ||
		    is_taken_back(c, nodes[i]))
			continue;
		struct start like = {
			.pool = pool, .group = (int64_t)position, .kind = START_RECLAIM, .asked_at = c->snapshot.now
		};
		snprintf(like.machine, sizeof like.machine, "%s", machine_of_node(c, nodes[i]));
		starts_ask(&c->starts, &like, count < each ? count : each);
		drain_take_back(c, nodes[i]);
		count -= each;
	}
	arena_release(&a);
}
