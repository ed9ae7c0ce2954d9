#include "controller/cluster/watch.h"
#include "controller/loop/parts.h"

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

bool node_is_needed(const struct controller *c, const struct node *n, size_t pool)
{
	struct arena a = { 0 };
	size_t count;
	const struct pod **pods = cluster_node_pods(c->cluster, n, &a, &count);
	bool is_needed = false;

	for (size_t i = 0; i < count; i++)
		is_needed |= pods[i]->has_gpus && pod_counts(pods[i]) && !pods[i]->is_placeholder &&
			     (pods[i]->pool != (int)pool || pods[i]->state == POD_READY || runs_work(c, pool));
	arena_release(&a);
	return is_needed;
}

bool lead_may_act(const struct controller *c)
{
	return c->state == STATE_LEADING && !c->is_stopping && (!c->lease || lease_is_held(c->lease));
}

/* Azure writes the same resource in different cases. */
const char *machine_of_node(const struct controller *c, const struct node *n)
{
	const struct group_description *seen = n->group >= 0 && c->groups ? &c->groups[n->group].seen : NULL;

	for (size_t i = 0; seen && n->provider_id[0] && i < seen->machine_count; i++)
		if (!strcasecmp(seen->machines[i].provider_id, n->provider_id))
			return seen->machines[i].id;
	return n->machine_id;
}
