/*
 * What the model of a large cluster costs: 5,000 nodes and 50,000 pods as they are served. Prints bytes of a node and
 * of a pod, and in CPU time how long one look at a pool takes, and all nodes in the order in which they are filled:
 * sorted by name and by use, and kept until the model changes.
 */
#include "controller/cluster/model_state.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NODES = 5000, PODS = 50000 };

static const char node_text[] =
	"{\"spec\":{\"providerID\":\"aws:///us-east-1a/i-%017d\",\"taints\":[{\"key\":\"nvidia.com/"
	"gpu\",\"effect\":\"NoSchedule\"}]},"
	"\"metadata\":{\"name\":\"ip-%d\",\"labels\":{\"kubernetes.io/hostname\":\"ip-%d\",\"pool\":\"gpu\","
	"\"topology.kubernetes.io/zone\":\"us-east-1%c\",\"node.kubernetes.io/instance-type\":\"p5.48xlarge\","
	"\"nvidia.com/gpu.product\":\"NVIDIA-H100-80GB-HBM3\",\"nvidia.com/gpu.count\":\"8\"}},"
	"\"status\":{\"allocatable\":{\"cpu\":\"191690m\",\"memory\":\"%dKi\",\"nvidia.com/gpu\":\"20\"},"
	"\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"lastTransitionTime\":\"2026-11-21T00:18:09Z\"}]}}";
static const char pod_text[] =
	"{\"metadata\":{\"labels\":{\"app\":\"vllm\",\"model\":\"m%d\",\"pod-template-hash\":\"h%d\"},"
	"\"ownerReferences\":"
	"[{\"kind\":\"ReplicaSet\",\"name\":\"vllm-m%d\",\"uid\":\"00000034-1111-4222-8333-%012d\",\"controller\":true}"
	"]},"
	"\"spec\":{\"nodeName\":\"ip-%d\",\"containers\":[{\"name\":\"vllm\",\"image\":\"vllm/vllm-openai:v0.10.1.1\","
	"\"resources\":{\"limits\":{\"memory\":\"120Gi\",\"nvidia.com/gpu\":\"2\"},\"requests\":{\"cpu\":\"12\"}}}]},"
	"\"status\":{\"phase\":\"Running\",\"podIP\":\"10.%d.%d.%d\",\"conditions\":[{\"type\":\"Ready\",\"status\":"
	"\"True\"}],"
	"\"containerStatuses\":[{\"ready\":true,\"state\":{\"running\":{\"startedAt\":\"2026-11-21T00:18:49Z\"}}}]}}";

static double in_use(void)
{
	return (double)mallinfo2().uordblks;
}

static double seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void decode(const struct decode_plan *plan, const char *text, struct arena *a, void *record)
{
	struct error e = { 0 };
	if (decode_record(plan, text, strlen(text), a, record, &e))
		return;
	fprintf(stderr, "%s\n", e.message);
	exit(3);
}

static void add_nodes(struct cluster *c)
{
	struct decode_plan *plan = decode_plan_new(&node_spec);
	struct arena a = { 0 };
	for (int i = 0; i < NODES; i++) {
		char text[4096], name[64], uid[64];
		struct node_record r;
		snprintf(text, sizeof text, node_text, i, i, i, 'a' + i % 3, 2140315648 - i);
		snprintf(name, sizeof name, "ip-%d", i);
		snprintf(uid, sizeof uid, "11111111-0000-4000-8000-%012d", i);
		decode(plan, text, &a, &r);
		struct watch_seen seen = {
			.uid = object_uid_of(uid), .name = name, .arrived = 1, .is_from_list = true
		};
		cluster_node_seen(c, &r, &seen);
		arena_clear(&a);
	}
	decode_plan_free(plan);
	arena_release(&a);
}

static void add_pods(struct cluster *c)
{
	struct decode_plan *plan = decode_plan_new(&pod_spec);
	struct arena a = { 0 };
	for (int i = 0; i < PODS; i++) {
		char text[4096], name[96], uid[64];
		struct pod_record r;
		int m = i % 100;
		snprintf(text, sizeof text, pod_text, m, m, m, m, i % NODES, i >> 16, i >> 8 & 255, i & 255);
		snprintf(name, sizeof name, "vllm-deepseek-r1-distill-32b-%d-2g4njscbbx-bk285", i);
		snprintf(uid, sizeof uid, "22222222-0000-4000-8000-%012d", i);
		decode(plan, text, &a, &r);
		struct watch_seen seen = { .uid = object_uid_of(uid),
					   .name_space = "default",
					   .name = name,
					   .arrived = 1,
					   .is_from_list = true };
		cluster_pod_seen(c, &r, &seen);
		arena_clear(&a);
	}
	decode_plan_free(plan);
	arena_release(&a);
}

static void look(const struct cluster *c)
{
	struct arena a = { 0 };
	double start = seconds();
	struct pool_view v = cluster_pool_view(c, 0, &a);
	double took = seconds() - start;
	printf("one look at a pool: %.2f ms (%" PRId64 " ready of %zu pods)\n", took * 1e3, v.ready,
	       cluster_pod_count(c));
	arena_release(&a);
}

static int by_use(const void *x, const void *y)
{
	const struct node *a = *(const struct node *const *)x, *b = *(const struct node *const *)y;
	double left = (double)a->gpus_used_milli * (double)b->gpus_milli,
	       right = (double)b->gpus_used_milli * (double)a->gpus_milli;
	return left != right ? (left > right ? -1 : 1) : strcmp(a->name, b->name);
}

static void order(const struct cluster *c)
{
	enum { TIMES = 100 };
	struct arena a = { 0 };
	size_t count;
	double start = seconds();
	const struct node **nodes = cluster_nodes(c, -1, &a, &count);
	qsort(nodes, count, sizeof(void *), by_use);
	double sorted = seconds() - start;
	start = seconds();
	const struct node_places first = cluster_nodes_by_use(c);
	double once = seconds() - start;
	start = seconds();
	for (int i = 0; i < TIMES; i++)
		if (cluster_nodes_by_use(c).nodes != first.nodes)
			exit(3);
	double again = (seconds() - start) / TIMES;
	printf("nodes in the order in which they are filled: sorted by name and use %.2f ms, the first time %.2f ms "
	       "(%.1f times as fast), then %.5f ms\n",
	       sorted * 1e3, once * 1e3, sorted / once, again * 1e3);
	arena_release(&a);
}

int main(void)
{
	struct cluster *c = cluster_new();
	struct cluster_label selector = { "model", "m7" };
	int groups[] = { 0 };
	struct cluster_pool pool = { .name = "chat",
				     .namespace = "default",
				     .selector = &selector,
				     .selector_count = 1,
				     .gpus_per_replica = 2,
				     .groups = groups,
				     .group_count = 1 };
	struct cluster_group group = {
		.name = "p5", .provider = "eks", .label = { "pool", "gpu" }, .gpus_per_node = 8, .max = NODES
	};
	cluster_set_fleet(c, &pool, 1, &group, 1);
	double before = in_use(), start = seconds();
	add_nodes(c);
	double nodes = in_use();
	add_pods(c);
	double pods = in_use(), took = seconds() - start;
	printf("%.0f bytes a node, %.0f bytes a pod, %.1f MiB in all, %.2f s to read\n", (nodes - before) / NODES,
	       (pods - nodes) / PODS, (pods - before) / 1048576, took);
	look(c);
	order(c);
	cluster_free(c);
	return 0;
}
