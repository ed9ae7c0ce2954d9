/*
 * The model against a real API server with its scheduler and controllers, but no kubelets: nodes and what happens on
 * them are written by kubectl. Run by tests/live/model.sh. Without KUBECONFIG: exit code 77.
 */
#include "controller/cluster/model.h"
#include "controller/cluster/watch.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct loop *loop;
static struct api *api;
static struct cluster *cluster;
static const char *step_name = "";
static int counts[CLUSTER_CHANGE_COUNT];

static void fail(const char *fmt, ...) PRINTF(1, 2);
static void fail(const char *fmt, ...)
{
	va_list ap;
	fprintf(stderr, "FAILED: %s: ", step_name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputs("\n", stderr);
	exit(1);
}

static void step(const char *name)
{
	step_name = name;
	printf("-- %s\n", name);
	fflush(stdout);
}

static void shell(const char *command)
{
	if (system(command) != 0)
		fail("%s", command);
}

static void apply(const char *yaml)
{
	FILE *kubectl = popen("kubectl apply -f - >/dev/null", "w");
	if (kubectl == NULL || fputs(yaml, kubectl) < 0 || pclose(kubectl) != 0)
		fail("kubectl apply");
}

static void too_late(struct timer *t)
{
	*(bool *)t->user = true;
}

/* What the model says, in one line, until it is what is expected. */
static void expect(void (*say)(struct arena *a, struct buf *out), const char *expected)
{
	bool is_late = false;
	struct timer t = { .user = &is_late };
	timer_start(loop, &t, 30 * SECOND, too_late);
	for (;;) {
		CLEANUP(arena_release) struct arena a = { 0 };
		CLEANUP(buf_release) struct buf out = { 0 };
		buf_text(&out, "");
		say(&a, &out);
		if (strcmp(out.text, expected) == 0)
			break;
		if (is_late)
			fail("it says '%s', not '%s'", out.text, expected);
		loop_once(loop);
	}
	timer_stop(&t);
}

static void say_sync(struct arena *a, struct buf *out)
{
	(void)a;
	buf_text(out, cluster_is_synced(cluster) ? "in sync" : "not yet");
	for (int i = 0; i < CLUSTER_KIND_COUNT; i++)
		if (cluster_watch_of(cluster, (enum cluster_kind)i) != NULL &&
		    watch_report(cluster_watch_of(cluster, (enum cluster_kind)i))->state == WATCH_ABSENT)
			buf_printf(out, ", no %s", watch_name(cluster_watch_of(cluster, (enum cluster_kind)i)));
}

static void say_node(struct arena *a, struct buf *out)
{
	(void)a;
	const struct node *n = cluster_node(cluster, "gpu-1");
	if (n == NULL)
		buf_text(out, "no such node");
	else
		buf_printf(out, "group %d, usable %d, %lld of %lld in use", n->group, node_is_usable(n),
			   (long long)n->gpus_used_milli, (long long)n->gpus_milli);
}

static void say_pool(struct arena *a, struct buf *out)
{
	struct pool_view v = cluster_pool_view(cluster, 0, a);
	buf_printf(out, "ready %lld, starting %lld, draining %lld, pending %lld, never %lld, free %lld",
		   (long long)v.ready, (long long)v.starting, (long long)v.draining, (long long)v.pending,
		   (long long)v.unsatisfiable, (long long)v.groups[0].free_places);
}

static void say_pending(struct arena *a, struct buf *out)
{
	size_t count = 0;
	const struct pending_shape *shapes = cluster_pending(cluster, a, &count);
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "%s%lld in pool %d, %s%s%s", i == 0 ? "" : "; ", (long long)shapes[i].count,
			   shapes[i].pool, shapes[i].example->trouble == POD_UNSCHEDULABLE ? "Unschedulable" : "",
			   shapes[i].why == NULL ? "" : ": ", shapes[i].why == NULL ? "" : shapes[i].why);
}

static void say_gangs(struct arena *a, struct buf *out)
{
	size_t count = 0;
	const struct gang *gangs = cluster_gangs(cluster, a, &count);
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "%s %s: %lld of %lld%s", gangs[i].kind == GANG_JOB ? "Job" : "gang", gangs[i].name,
			   (long long)gangs[i].pending, (long long)gangs[i].size,
			   gangs[i].is_suspended ? ", suspended" : "");
}

static void say_quotas(struct arena *a, struct buf *out)
{
	size_t count = 0;
	const struct quota *quotas = cluster_quotas(cluster, a, &count);
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "%s: %lld of %lld", quotas[i].resource, (long long)quotas[i].used,
			   (long long)quotas[i].hard);
}

static void say_drain(struct arena *a, struct buf *out)
{
	const struct node *n = cluster_node(cluster, "gpu-1");
	struct drain_verdict v = cluster_drain(cluster, n, 0, 0, a);
	buf_printf(out, "%zu to evict%s%s", v.evict_count, v.reason == DRAIN_POSSIBLE ? "" : ", ",
		   drain_reason_name(v.reason));
}

static void say_events(struct arena *a, struct buf *out)
{
	(void)a;
	buf_printf(out, "node %d/%d/%d/%d, pod %d/%d/%d", counts[CLUSTER_NODE_ADDED], counts[CLUSTER_NODE_READY],
		   counts[CLUSTER_NODE_GPU], counts[CLUSTER_NODE_GONE], counts[CLUSTER_POD_SCHEDULED],
		   counts[CLUSTER_POD_READY], counts[CLUSTER_POD_GONE]);
}

static void count(void *user, const struct cluster_event *e)
{
	(void)user;
	counts[e->what]++;
}

#define MARK_READY                                                                                                     \
	"for pod in $(kubectl -n llm get pods -l app=chat --field-selector spec.nodeName=gpu-1 -o name); do "          \
	"kubectl -n llm patch $pod --subresource=status -p '{\"status\":{\"phase\":\"Running\",\"podIP\":"             \
	"\"127.1.0.1\",\"podIPs\":[{\"ip\":\"127.1.0.1\"}],\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}" \
	"}' "                                                                                                          \
	">/dev/null; done"

static void nodes_join(void)
{
	step("a node registers, gets ready, and its GPUs appear");
	apply("{apiVersion: v1, kind: Node, metadata: {name: gpu-1, labels: {simulated.preheat.dev/node-group: g5}}, "
	      "spec: {providerID: 'simulated:///z/gpu-1', taints: [{key: nvidia.com/gpu, effect: NoSchedule}]}}\n");
	expect(say_node, "group 0, usable 0, 0 of 0 in use");
	shell("kubectl patch node gpu-1 --subresource=status -p '{\"status\":{\"conditions\":[{\"type\":\"Ready\","
	      "\"status\":\"True\"}],\"allocatable\":{\"cpu\":\"8\",\"pods\":\"110\"},\"capacity\":{\"cpu\":\"8\","
	      "\"pods\":\"110\"}}}' "
	      ">/dev/null");
	expect(say_node, "group 0, usable 1, 0 of 0 in use");
	shell("kubectl patch node gpu-1 --subresource=status -p "
	      "'{\"status\":{\"allocatable\":{\"nvidia.com/gpu\":\"2\"},\"capacity\":{\"nvidia.com/gpu\":\"2\"}}}' "
	      ">/dev/null");
	expect(say_node, "group 0, usable 1, 0 of 2000 in use");
	expect(say_pool, "ready 0, starting 0, draining 0, pending 0, never 0, free 2");
	expect(say_events, "node 1/1/1/0, pod 0/0/0");
}

static void replicas_start(void)
{
	step("three replicas, room for two");
	apply("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: chat, namespace: llm}\nspec:\n  replicas: 3\n"
	      "  selector: {matchLabels: {app: chat}}\n  template:\n    metadata: {labels: {app: chat}}\n    spec:\n"
	      "      tolerations: [{key: nvidia.com/gpu, operator: Exists}]\n      containers:\n      - name: llm\n"
	      "        image: llm\n        resources: {limits: {nvidia.com/gpu: 1}}\n");
	expect(say_pool, "ready 0, starting 2, draining 0, pending 1, never 0, free 0");
	expect(say_pending, "1 in pool 0, Unschedulable");
	expect(say_node, "group 0, usable 1, 2000 of 2000 in use");
	shell(MARK_READY);
	expect(say_pool, "ready 2, starting 0, draining 0, pending 1, never 0, free 0");
	expect(say_events, "node 1/1/1/0, pod 2/2/0");
}

static void others_limit(void)
{
	step("budgets and quotas");
	expect(say_drain, "2 to evict");
	apply("{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: chat, namespace: llm}, "
	      "spec: {minAvailable: 2, selector: {matchLabels: {app: chat}}}}\n");
	expect(say_drain, "2 to evict, NotEnoughPdb");
	shell("kubectl -n llm patch pdb chat --type merge -p '{\"spec\":{\"minAvailable\":1}}' >/dev/null");
	expect(say_drain, "2 to evict");
	apply("{apiVersion: v1, kind: ResourceQuota, metadata: {name: gpus, namespace: llm}, "
	      "spec: {hard: {requests.nvidia.com/gpu: 10}}}\n");
	expect(say_quotas, "requests.nvidia.com/gpu: 3 of 10");
}

static void gangs_wait(void)
{
	step("a training job, first suspended, whose pods nobody could ever take");
	apply("apiVersion: batch/v1\nkind: Job\nmetadata: {name: train, namespace: lab}\nspec:\n  suspend: true\n"
	      "  parallelism: 4\n  completions: 4\n  completionMode: Indexed\n  template:\n    spec:\n"
	      "      restartPolicy: Never\n      tolerations: [{key: nvidia.com/gpu, operator: Exists}]\n      "
	      "containers:\n"
	      "      - name: train\n        image: train\n        resources: {limits: {nvidia.com/gpu: 8}}\n");
	shell("kubectl -n lab patch job train --type merge -p '{\"spec\":{\"suspend\":false}}' >/dev/null");
	expect(say_gangs, "Job train: 4 of 4");
	expect(say_pending,
	       "4 in pool -1, Unschedulable: wants 8 nvidia.com/gpu; largest node group g5 has 2 per node; "
	       "1 in pool 0, Unschedulable");
}

static void survives_restarts(void)
{
	step("the API server is killed and comes back, then forgets what it was: nothing is lost, nothing told twice");
	shell("\"$RIG_SH\" restart-apiserver >/dev/null");
	shell("kubectl -n lab delete job train --wait=false >/dev/null");
	expect(say_gangs, "");
	shell("\"$RIG_SH\" compact >/dev/null");
	shell("kubectl -n llm scale deployment chat --replicas=2 >/dev/null");
	expect(say_pending, "");
	expect(say_pool, "ready 2, starting 0, draining 0, pending 0, never 0, free 0");
	/* Four of the job, one of the deployment. */
	expect(say_events, "node 1/1/1/0, pod 2/2/5");
}

static void nodes_leave(void)
{
	step("the node goes, and the pods after it");
	shell("kubectl delete node gpu-1 --wait=false >/dev/null");
	expect(say_node, "no such node");
	shell("kubectl -n llm delete deployment chat >/dev/null; kubectl -n llm delete pods --all --force "
	      "--grace-period=0 "
	      ">/dev/null 2>&1");
	expect(say_pool, "ready 0, starting 0, draining 0, pending 0, never 0, free 0");
	expect(say_events, "node 1/1/1/1, pod 2/2/7");
}

static void set_fleet(void)
{
	static const struct cluster_label selector = { "app", "chat" };
	static const int groups[] = { 0 };
	const struct cluster_pool pool = { .name = "chat",
					   .namespace = "llm",
					   .selector = &selector,
					   .selector_count = 1,
					   .gpus_per_replica = 1,
					   .groups = groups,
					   .group_count = 1 };
	const struct cluster_group group = { .name = "g5",
					     .provider = "simulated",
					     .label = { "simulated.preheat.dev/node-group", "g5" },
					     .gpus_per_node = 2,
					     .max = 10 };
	cluster_set_fleet(cluster, &pool, 1, &group, 1);
}

static void live(void)
{
	cluster = cluster_new();
	set_fleet();
	cluster_on_change(cluster, count, NULL);
	cluster_watch_start(cluster, api);
	expect(say_sync,
	       "in sync, no jobsets, no podgroups, no podgroups.k8s.io, no podgroups.volcano.sh, no podgroups.run.ai, "
	       "no workloads.v1beta2, no workloads.v1beta1");
	shell("kubectl create namespace llm >/dev/null; kubectl create namespace lab >/dev/null");
	nodes_join();
	replicas_start();
	others_limit();
	gangs_wait();
	survives_restarts();
	nodes_leave();
	cluster_watch_stop(cluster);
	while (api_active(api) > 0)
		loop_once(loop);
	cluster_free(cluster);
}

int main(void)
{
	struct error e;
	struct kubeconfig access_config;
	struct clock wall = clock_open();
	if (getenv("KUBECONFIG") == NULL) {
		fputs("skipped: no KUBECONFIG; run by tests/live/model.sh\n", stderr);
		return 77;
	}
	loop = loop_open();
	struct http *http = http_open(loop, "preheat/live-test", &e);
	if (http == NULL ||
	    !kubeconfig_read(&(struct kubeconfig_wish){ .environment = getenv("KUBECONFIG") }, &access_config, &e)) {
		fprintf(stderr, "%s\n", e.message);
		return 3;
	}
	api = api_open(
		&(struct api_setup){ .loop = loop, .http = http, .clock = &wall, .access = &access_config, .seed = 7 });
	live();
	api_close(api);
	http_close(http);
	kubeconfig_release(&access_config);
	loop_close(loop);
	puts("all of it holds");
	return 0;
}
