#include "controller/loop/parts.h"
#include "controller/web/published.h"

#include <stdlib.h>
#include <string.h>

/* Whose nodes and pods they are, by name. */
struct names {
	const char **nodes;
	size_t node_count;
	const struct pod **pods;
	size_t pod_count;
	const char *namespace;
};

static int by_text(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static int by_pod(const void *left, const void *right)
{
	const struct pod *const *a = left, *const *b = right;

	return strcmp((*a)->name, (*b)->name);
}

static int name_of_pod(const void *name, const void *pod)
{
	const struct pod *const *p = pod;

	return strcmp(name, (*p)->name);
}

static bool is_pools_node(void *user, const char *node)
{
	const struct names *n = user;

	return n->node_count && bsearch(&node, n->nodes, n->node_count, sizeof *n->nodes, by_text);
}

static bool is_replica(void *user, const char *namespace, const char *pod)
{
	const struct names *n = user;

	return !strcmp(namespace, n->namespace) && n->pod_count &&
	       bsearch(pod, n->pods, n->pod_count, sizeof(const struct pod *), name_of_pod);
}

static struct names names_of(const struct controller *c, size_t pool, struct arena *a)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	struct names n = { .namespace = spec->namespace };
	size_t count, room = 0;

	for (size_t i = 0; i < spec->group_count; i++) {
		cluster_nodes(c->cluster, (int)spec->groups[i], a, &count);
		room += count;
	}
	n.nodes = arena_array(a, const char *, room);
	for (size_t i = 0; i < spec->group_count; i++) {
		const struct node **nodes = cluster_nodes(c->cluster, (int)spec->groups[i], a, &count);
		for (size_t k = 0; k < count && n.node_count < room; k++)
			n.nodes[n.node_count++] = nodes[k]->name;
	}
	n.pods = cluster_pods(c->cluster, (int)pool, a, &n.pod_count);
	if (n.node_count)
		qsort(n.nodes, n.node_count, sizeof *n.nodes, by_text);
	if (n.pod_count)
		qsort(n.pods, n.pod_count, sizeof(const struct pod *), by_pod);
	return n;
}

static int64_t told(int64_t value)
{
	return value == DEVICE_UNKNOWN ? ABSENT : value;
}

void devices_publish(const struct controller *c, size_t pool, struct published_devices *out, struct arena *a)
{
	struct device_source *source = c->pools[pool].devices;
	struct names names;

	*out = (struct published_devices){ 0 };
	if (!source || !device_source_show(source).count)
		return;
	names = names_of(c, pool, a);
	const struct device_question q = { is_pools_node, is_replica, &names,
					   fleet_of(c)->pools[pool].gpus_per_replica };
	struct device_sums s = device_sum(device_source_show(source), &q);
	*out = (struct published_devices){ .count = s.devices,
					   .held = s.held,
					   .failing = s.failing,
					   .last_xid = s.last_xid,
					   .use_permille = told(s.use_permille),
					   .memory_used_mib = s.memory_used_mib,
					   .memory_free_mib = s.memory_free_mib,
					   .power_mw = s.power_mw,
					   .stranded_permille = told(s.stranded_permille) };
}
