#include "controller/loop/parts.h"

#include "controller/loop/node_group_parts.h"

#include <stdio.h>
#include <string.h>

static const char *keep(struct arena *a, const char *text)
{
	return arena_strdup(a, text, strlen(text));
}

static const char *pods_without_group(const struct controller *c, size_t pool, struct arena *a)
{
	size_t count;
	const struct pending_shape *shapes = cluster_pending(c->cluster, a, &count);

	for (size_t i = 0; i < count; i++)
		if (shapes[i].pool == (int)pool && shapes[i].why) {
			char text[512];
			snprintf(text, sizeof text, "%lld pods, like %s, fit no node group: %s",
				 (long long)shapes[i].count, shapes[i].example ? shapes[i].example->name : "?",
				 shapes[i].why);
			return keep(a, text);
		}
	return NULL;
}

/* Waits are bounded by the objective only where warm capacity is there; a model that loads for longer than the whole
 * headroom's worth makes every cold start late. */
static const char *slow_load(const struct controller *c, size_t pool, struct arena *a)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	const struct pool_decision *d = &c->plan.pools[pool].decision;
	char text[256];

	if (runs_work(c, pool) || d->lead_cold_p50 <= spec->objective_wait || d->decided > 0)
		return NULL;
	snprintf(
		text, sizeof text,
		"the pool is at zero and a replica takes %lld s to serve, more than the objective's %lld ms: the first "
		"requests will be late; set headroom.min to 1 to keep one warm",
		(long long)(d->lead_cold_p50 / SECOND), (long long)spec->objective_wait);
	return keep(a, text);
}

static bool takes_gpu_node(const struct pod *p)
{
	return !p->has_gpus && p->kind == POD_REPLICATED && p->state != POD_FINISHED && p->pool < 0;
}

/* Pods without GPUs, of no DaemonSet, on the pool's nodes. */
static const char *foreign_pods(const struct controller *c, size_t pool, struct arena *a)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	int64_t found = 0;
	const struct pod *example = NULL;

	for (size_t g = 0; g < spec->group_count; g++) {
		size_t count, pods;
		const struct node **nodes = cluster_nodes(c->cluster, (int)spec->groups[g], a, &count);
		for (size_t i = 0; i < count; i++) {
			const struct pod **on = cluster_node_pods(c->cluster, nodes[i], a, &pods);
			for (size_t k = 0; k < pods; k++) {
				found += takes_gpu_node(on[k]);
				example = takes_gpu_node(on[k]) ? on[k] : example;
			}
		}
	}
	if (!found)
		return NULL;
	char text[512];
	snprintf(text, sizeof text,
		 "%lld pods that ask for no GPU, like %s/%s, run on GPU nodes: taint the node group and let only GPU "
		 "pods "
		 "tolerate it",
		 (long long)found, example->namespace, example->name);
	return keep(a, text);
}

/* GPUs that are free and yet fit no replica, because they stand apart. */
static const char *fragments(const struct controller *c, size_t pool, struct arena *a)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	int64_t need = spec->gpus_per_replica * 1000, stranded = 0;

	for (size_t g = 0; need > 1000 && g < spec->group_count; g++) {
		size_t count;
		const struct node **nodes = cluster_nodes(c->cluster, (int)spec->groups[g], a, &count);
		for (size_t i = 0; i < count; i++) {
			int64_t left = nodes[i]->gpus_milli - nodes[i]->gpus_used_milli;
			stranded += node_is_usable(nodes[i]) && left > 0 && left < need ? left : 0;
		}
	}
	if (stranded < need)
		return NULL;
	char text[256];
	snprintf(
		text, sizeof text,
		"%lld GPUs are free, but on nodes that cannot hold a replica of %lld: give small and large models node "
		"groups of their own",
		(long long)(stranded / 1000), (long long)spec->gpus_per_replica);
	return keep(a, text);
}

static const char *batch_holds(const struct controller *c, size_t pool, struct arena *a)
{
	const struct fleet_spec *fleet = fleet_of(c);
	const struct pool_decision *d = &c->plan.pools[pool].decision;

	if (fleet->pools[pool].class != CLASS_INTERACTIVE || d->wished <= d->decided || d->waiting_now <= 0)
		return NULL;
	for (size_t i = 0; i < fleet->pool_count; i++) {
		long long held = (long long)c->pools[i].view.ready + c->pools[i].view.starting;
		if (fleet->pools[i].class == CLASS_INTERACTIVE || held == 0)
			continue;
		for (size_t g = 0; g < fleet->pools[pool].group_count; g++)
			if (pool_position(fleet, i, fleet->pools[pool].groups[g]) >= 0) {
				char text[320];
				snprintf(text, sizeof text,
					 "requests wait while pool %s holds %lld replicas in a shared node group: lend "
					 "them with lend.to, or give its pods a lower priority",
					 fleet->pools[i].name, held);
				return keep(a, text);
			}
	}
	return NULL;
}

/* A model that does not fit ends again and again; the label says what the GPU has. */
static const char *gpu_memory(const struct controller *c, size_t pool, struct arena *a)
{
	size_t count;
	const struct pod **pods = cluster_pods(c->cluster, (int)pool, a, &count);

	for (size_t i = 0; i < count; i++) {
		const char *memory = pods[i]->node ? node_label(pods[i]->node, "nvidia.com/gpu.memory") : NULL;
		if (pods[i]->trouble != POD_CRASH_LOOP || !memory)
			continue;
		char text[512];
		snprintf(text, sizeof text,
			 "replica %s keeps ending on %s, whose GPUs have %s MiB%s%s: if the model does not fit, leave "
			 "that "
			 "node group out of the pool",
			 pods[i]->name, pods[i]->node->instance_type, memory,
			 pods[i]->trouble_text[0] ? ", saying " : "", pods[i]->trouble_text);
		return keep(a, text);
	}
	return NULL;
}

static const char *missing_ability(const struct controller *c, size_t pool)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];

	for (size_t i = 0; i < spec->group_count; i++)
		if (c->published_groups[spec->groups[i]].lacks)
			return c->published_groups[spec->groups[i]].lacks;
	return NULL;
}

static const char *held_growth(const struct controller *c, size_t pool, struct arena *a)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	char text[320];

	for (size_t i = 0; i < spec->group_count; i++) {
		const struct published_group *g = &c->published_groups[spec->groups[i]];
		if (!g->is_growth_held)
			continue;
		snprintf(text, sizeof text,
			 "more machines were about to be bought in node group %s than it may have, or than may be "
			 "bought in five minutes; %lld were not: see growth-held in the log, and preheat explain",
			 fleet_of(c)->groups[spec->groups[i]].name, (long long)g->growth_held);
		return keep(a, text);
	}
	return NULL;
}

void problems_find(const struct controller *c, size_t pool, const char *out[PROBLEM_COUNT], struct arena *a)
{
	out[PROBLEM_LOAD_SLOW] = slow_load(c, pool, a);
	out[PROBLEM_FOREIGN_PODS] = foreign_pods(c, pool, a);
	out[PROBLEM_NO_GROUP] = pods_without_group(c, pool, a);
	out[PROBLEM_FRAGMENTED] = fragments(c, pool, a);
	out[PROBLEM_BATCH_HOLDS] = batch_holds(c, pool, a);
	out[PROBLEM_GPU_MEMORY] = gpu_memory(c, pool, a);
	out[PROBLEM_ABILITY] = missing_ability(c, pool);
	out[PROBLEM_GROWTH] = held_growth(c, pool, a);
	out[PROBLEM_LOAD_DIFFERS] =
		serving_load_differs(&c->pools[pool].serving, &c->pools[pool].stages[STAGE_LOAD], a);
}
