#include "controller/loop/watch_sync.h"

#include "controller/cluster/watch.h"
#include "controller/loop/controller_state.h"

#include <strings.h>

static bool is_in_sync(const struct controller *c, enum cluster_kind kind)
{
	const struct watch *w = cluster_watch_of(c->cluster, kind);

	const struct watch_report *r = w ? watch_report(w) : NULL;

	/* Between two connections it may be behind without anything being wrong. */
	return r && (r->state == WATCH_SYNCED || r->state == WATCH_BEHIND) && r->trouble.kind == ERROR_NONE;
}

bool cluster_is_fresh(const struct controller *c)
{
	return is_in_sync(c, CLUSTER_NODES) && is_in_sync(c, CLUSTER_PODS);
}

static bool has_told_since(const struct controller *c, enum cluster_kind kind, millis at)
{
	const struct watch *w = cluster_watch_of(c->cluster, kind);
	const struct watch_report *r = w ? watch_report(w) : NULL;
	millis now = clock_now(c->clock); /* later is of a clock that was put right since */

	return r && ((r->last_event >= at && r->last_event <= now) || (r->synced_at >= at && r->synced_at <= now));
}

bool cluster_pods_told_since(const struct controller *c, millis at)
{
	return has_told_since(c, CLUSTER_PODS, at);
}

bool cluster_told_since(const struct controller *c, millis at)
{
	return has_told_since(c, CLUSTER_NODES, at) && cluster_pods_told_since(c, at);
}

bool node_is_needed(const struct controller *c, const struct node *n, size_t pool)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t count;
	const struct pod **pods = cluster_node_pods(c->cluster, n, &a, &count);
	bool is_needed = false;

	for (size_t i = 0; i < count; i++)
		is_needed |= pods[i]->has_gpus && pod_counts(pods[i]) && !pods[i]->is_placeholder &&
			     (pods[i]->pool != (int)pool || pods[i]->state == POD_READY || runs_work(c, pool));
	return is_needed;
}

/* A cloud and its nodes may write the same resource in different cases. */
const char *machine_of_node(const struct controller *c, const struct node *n)
{
	const struct group_description *seen = n->group >= 0 && c->groups ? &c->groups[n->group]->seen : NULL;

	for (size_t i = 0; seen && n->provider_id[0] && i < seen->machine_count; i++)
		if (!strcasecmp(seen->machines[i].provider_id, n->provider_id))
			return seen->machines[i].id;
	return n->machine_id;
}

int64_t replicas_serving(const struct controller *c, const struct node *n, size_t pool)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t count;
	const struct pod **pods = cluster_node_pods(c->cluster, n, &a, &count);
	int64_t ready = 0;

	for (size_t i = 0; i < count; i++)
		ready += pods[i]->pool == (int)pool && !pods[i]->is_placeholder && pods[i]->state == POD_READY;
	return ready;
}

int64_t replicas_awake(const struct controller *c, const struct node *n, size_t pool)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t count;
	const struct pod **pods = cluster_node_pods(c->cluster, n, &a, &count);
	int64_t awake = 0;

	for (size_t i = 0; i < count; i++)
		awake += pods[i]->pool == (int)pool && !pods[i]->is_placeholder && pods[i]->state == POD_READY &&
			 pods[i]->engine == POD_ENGINE_AWAKE;
	return awake;
}

bool group_pools_act(const struct controller *c, size_t group)
{
	const struct group_users *users = &fleet_of(c)->users[group];

	for (size_t i = 0; i < users->count; i++)
		if (!pool_may_act(c, users->items[i].pool))
			return false;
	return true;
}

bool group_may_change(const struct controller *c, size_t group)
{
	return !node_group_is_held(c->groups[group]) && group_pools_act(c, group);
}
