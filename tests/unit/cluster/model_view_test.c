/* A pool as the policy will count it. */
#include "tests/unit/cluster/model_objects.h"

struct world {
	struct cluster *c;
	struct arena a;
	int uids;
};

static const struct cluster_label selector = { "app", "chat" };
static const int groups_of_pool[] = { 1, 0 };

static struct world world_open(void)
{
	struct world w = { .c = cluster_new() };
	struct cluster_group groups[] = { group_named("g5", 4, 10), group_named("p5", 8, 10),
					  group_named("else", 8, 10) };
	struct cluster_pool pool = { .name = "chat",
				     .namespace = "llm",
				     .selector = &selector,
				     .selector_count = 1,
				     .gpus_per_replica = 2,
				     .groups = groups_of_pool,
				     .group_count = 2 };
	cluster_set_fleet(w.c, &pool, 1, groups, 3);
	return w;
}

static void world_close(struct world *w)
{
	cluster_free(w->c);
	arena_release(&w->a);
}

static void node(struct world *w, const char *name, const char *group, int gpus, const char *spec)
{
	char text[1024];
	snprintf(text, sizeof text,
		 "{'metadata':{'name':'%s','uid':'%s','labels':{'simulated.preheat.dev/node-group':'%s'}},'spec':{%s},"
		 "'status':{'allocatable':{'nvidia.com/"
		 "gpu':'%d','cpu':'16'},'conditions':[{'type':'Ready','status':'True'}]}}",
		 name, name, group, spec, gpus);
	see_now(w->c, CLUSTER_NODES, text);
}

enum { PENDING, STARTING, READY, GOING };

static void pod(struct world *w, const char *on, const char *labels, int gpus, int how, const char *metadata)
{
	static const char *const status[] = { "'phase':'Pending'", "'phase':'Running'",
					      "'phase':'Running','conditions':[{'type':'Ready','status':'True'}]",
					      "'phase':'Running'" };
	char text[1024];
	int id = w->uids++;
	snprintf(text, sizeof text,
		 "{'metadata':{'namespace':'llm','name':'p%d','uid':'u%d','labels':{%s}%s%s},'spec':{%s%s%s'containers'"
		 ":[{'resources':"
		 "{'requests':{'cpu':'2'},'limits':{'nvidia.com/gpu':'%d'}}}]},'status':{%s}}",
		 id, id, labels, how == GOING ? ",'deletionTimestamp':'2026-11-21T00:00:00Z'" : "", metadata,
		 on[0] == '\0' ? "" : "'nodeName':'", on, on[0] == '\0' ? "" : "',", gpus, status[how]);
	see_now(w->c, CLUSTER_PODS, text);
}

#define CHAT  "'app':'chat'"
#define HOLDS "'preheat.dev/placeholder':'chat'"

static void counts_replicas_and_places(void **state)
{
	(void)state;
	struct world w = world_open();
	node(&w, "a1", "g5", 4, "");
	node(&w, "a2", "g5", 4, "");
	node(&w, "a3", "g5", 4, "'unschedulable':true");
	node(&w, "b1", "p5", 8, "");
	node(&w, "c1", "else", 8, "");
	node(&w, "d1", "stranger", 8, "");
	pod(&w, "a1", CHAT, 2, READY, "");
	pod(&w, "a1", CHAT, 2, STARTING, "");
	pod(&w, "a2", CHAT, 2, READY, "");
	pod(&w, "a2", HOLDS, 2, READY, "");
	pod(&w, "b1", CHAT, 2, GOING, "");
	pod(&w, "b1", "'app':'other'", 3, READY, "");
	pod(&w, "b1", CHAT, 2, READY, "");
	pod(&w, "c1", CHAT, 2, READY, ",'ownerReferences':[{'kind':'Job','name':'j','uid':'j','controller':true}]");
	pod(&w, "", CHAT, 2, PENDING, "");
	pod(&w, "", CHAT, 16, PENDING, "");
	pod(&w, "", HOLDS, 2, PENDING, "");
	pod(&w, "", CHAT, 2, GOING, "");
	struct pool_view v = cluster_pool_view(w.c, 0, &w.a);
	assert_int_equal(v.ready, 4);
	assert_int_equal(v.starting, 1);
	assert_int_equal(v.draining, 1);
	assert_int_equal(v.pending, 1);
	assert_int_equal(v.unsatisfiable, 1);
	assert_int_equal(v.elsewhere, 1);
	assert_int_equal(v.placeholders, 1);
	assert_int_equal(v.pending_placeholders, 1);
	assert_int_equal(v.work, 1);
	assert_int_equal(v.group_count, 2);
	const struct pool_group_view *p5 = &v.groups[0], *g5 = &v.groups[1];
	assert_int_equal(p5->group, 1);
	assert_int_equal(p5->ready, 1);
	assert_int_equal(p5->draining, 1);
	assert_int_equal(p5->nodes, 1);
	assert_int_equal(p5->gpus_milli, 4000);
	assert_int_equal(p5->free_places, 0);	/* one GPU is left */
	assert_int_equal(p5->least_on_node, 0); /* somebody else is there */
	assert_int_equal(g5->ready, 2);
	assert_int_equal(g5->starting, 1);
	assert_int_equal(g5->nodes, 3);
	assert_int_equal(g5->usable_nodes, 2);
	assert_int_equal(g5->free_places, 0);
	assert_int_equal(g5->placeholders, 1);
	assert_int_equal(g5->placeholder_places, 1);
	assert_int_equal(g5->least_on_node, 1); /* a2, beside its placeholder */
	assert_int_equal(g5->gpus_milli, 8000);
	world_close(&w);
}

/* What the policy may count on as the smallest release. */
static void least_that_could_go(void **state)
{
	(void)state;
	static const struct {
		const char *what, *node;
		int other_gpus, second; /* of somebody else; how a second replica is */
		int64_t least;
	} cases[] = {
		{ "two that serve", "", -1, READY, 2 },
		{ "one on its way", "", -1, STARTING, 0 },
		{ "one going", "", -1, GOING, 0 },
		{ "somebody else's GPU", "", 1, READY, 0 },
		{ "somebody else without a GPU", "", 0, READY, 2 },
		{ "not to be removed", ",'annotations':{'cluster-autoscaler.kubernetes.io/scale-down-disabled':'true'}",
		  -1, READY, 0 },
		{ "leaving already", ",'deletionTimestamp':'2026-11-21T00:00:00Z'", -1, READY, 0 },
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct world w = world_open();
		char text[1024];
		snprintf(text, sizeof text,
			 "{'metadata':{'name':'a','uid':'a','labels':{'simulated.preheat.dev/"
			 "node-group':'p5'}%s},'status':{'allocatable':"
			 "{'nvidia.com/gpu':'8','cpu':'16'},'conditions':[{'type':'Ready','status':'True'}]}}",
			 cases[i].node);
		see_now(w.c, CLUSTER_NODES, text);
		pod(&w, "a", CHAT, 2, READY, "");
		pod(&w, "a", CHAT, 2, cases[i].second, "");
		if (cases[i].other_gpus >= 0)
			pod(&w, "a", "'app':'other'", cases[i].other_gpus, READY, "");
		if (cluster_pool_view(w.c, 0, &w.a).groups[0].least_on_node != cases[i].least)
			fail_msg("%s", cases[i].what);
		world_close(&w);
	}
}

/* Ready by its probe, and no capacity: it is counted apart, and keeps no node. One that wakes is on its way. */
static void sleepers_are_apart(void **state)
{
	(void)state;
	static const struct {
		const char *label;
		int64_t ready, starting, asleep, falling, waking, least;
	} cases[] = {
		{ "", 2, 0, 0, 0, 0, 2 },
		{ ",'preheat.dev/engine-state':'awake'", 2, 0, 0, 0, 0, 2 },
		{ ",'preheat.dev/engine-state':'asleep'", 1, 0, 1, 0, 0, 1 },
		{ ",'preheat.dev/engine-state':'falling-asleep'", 1, 0, 1, 1, 0, 1 },
		{ ",'preheat.dev/engine-state':'waking'", 1, 1, 0, 0, 1, 0 },
		{ ",'preheat.dev/engine-state':'snoring','sleeping':'true'", 1, 0, 1, 0, 0, 1 },
		{ ",'preheat.dev/engine-state':'waking','sleeping':'true'", 1, 1, 0, 0, 1, 0 },
		{ ",'dual-pods.llm-d.ai/sleeping':'true'", 1, 0, 1, 0, 0, 1 },
		{ ",'dual-pods.llm-d.ai/sleeping':'false'", 2, 0, 0, 0, 0, 2 },
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct world w = world_open();
		char labels[200];
		snprintf(labels, sizeof labels, "%s%s", CHAT, cases[i].label);
		node(&w, "a", "p5", 8, "");
		pod(&w, "a", CHAT, 2, READY, "");
		pod(&w, "a", labels, 2, READY, "");
		struct pool_view v = cluster_pool_view(w.c, 0, &w.a);
		if (v.ready != cases[i].ready || v.starting != cases[i].starting || v.asleep != cases[i].asleep ||
		    v.falling_asleep != cases[i].falling || v.waking != cases[i].waking ||
		    v.groups[0].asleep != cases[i].asleep || v.groups[0].least_on_node != cases[i].least)
			fail_msg("%s", cases[i].label);
		world_close(&w);
	}
}

/* What the engine tells counts where no label says otherwise, until it tells otherwise. */
static void engines_tell_that_they_sleep(void **state)
{
	(void)state;
	struct world w = world_open();
	size_t count;
	node(&w, "a", "p5", 8, "");
	pod(&w, "a", CHAT, 2, READY, "");
	const struct pod *p = cluster_pods(w.c, 0, &w.a, &count)[0];
	cluster_engine_told(w.c, p, POD_SLEEP_2, p->ready_at + 5000);
	assert_int_equal(p->engine, POD_ENGINE_ASLEEP);
	assert_int_equal(p->engine_since, p->ready_at + 5000);
	assert_int_equal(cluster_pool_view(w.c, 0, &w.a).discarded, 1);
	cluster_engine_told(w.c, p, POD_SLEEP_NONE, p->ready_at + 9000);
	assert_int_equal(p->engine, POD_ENGINE_AWAKE);
	assert_int_equal(cluster_pool_view(w.c, 0, &w.a).ready, 1);
	world_close(&w);
}

/* --- engines of several pools in one pod --- */

enum { SMALL = 2 };

static void set_fleet(struct world *w, const char *const *names, size_t count)
{
	struct cluster_group groups[] = { group_named("g5", 4, 10), group_named("p5", 8, 10) };
	struct cluster_pool pools[SMALL + 1];
	for (size_t i = 0; i < count; i++)
		pools[i] = (struct cluster_pool){ .name = names[i],
						  .namespace = "llm",
						  .selector = &selector,
						  .selector_count = 1,
						  .gpus_per_replica = 2,
						  .groups = groups_of_pool,
						  .group_count = 2,
						  .share = strcmp(names[i], "alone") == 0 ? NULL : "small",
						  .port = strcmp(names[i], "code") == 0 ? 8001 : 8000 };
	cluster_set_fleet(w->c, pools, count, groups, 2);
}

static const struct pod *engine(struct world *w, int pool)
{
	size_t count;
	const struct pod **pods = cluster_pods(w->c, pool, &w->a, &count);
	return count == 0 ? NULL : pods[0];
}

static void see_engines(struct world *w, const char *metadata, const char *code_started)
{
	char text[1500];
	snprintf(text, sizeof text,
		 "{'metadata':{'namespace':'llm','name':'p','uid':'p','labels':{'app':'chat',"
		 "'engine-state.preheat.dev/code':'asleep'}%s},'spec':{'nodeName':'a','containers':["
		 "{'name':'chat','ports':[{'containerPort':8000}],'resources':{'limits':{'nvidia.com/gpu':'2'}}},"
		 "{'name':'code','ports':[{'containerPort':8001}]}]},"
		 "'status':{'phase':'Running','containerStatuses':["
		 "{'name':'chat','state':{'running':{'startedAt':'2026-11-21T00:00:10Z'}}},"
		 "{'name':'code','state':{'running':{'startedAt':'%s'}}}],"
		 "'conditions':[{'type':'Ready','status':'True'}]}}",
		 metadata, code_started);
	see_now(w->c, CLUSTER_PODS, text);
}

/* Each pool of the share has its engine in the pod, whose GPUs and place count once. */
static void a_pod_has_engines_of_a_share(void **state)
{
	(void)state;
	static const char *const names[] = { "chat", "code", "alone" };
	struct world w = world_open();
	set_fleet(&w, names, 3);
	node(&w, "a", "p5", 8, "");
	see_engines(&w, ",'annotations':{'engine-started.preheat.dev/code':'1795219220'}", "2026-11-21T00:00:20Z");
	const struct pod *chat = engine(&w, 0), *code = engine(&w, 1);
	size_t count;
	assert_null(engine(&w, 2));
	assert_true(chat->beside == code && !chat->is_beside && code->is_beside && !code->beside);
	cluster_node_pods(w.c, chat->node, &w.a, &count);
	assert_int_equal(count, 1);
	assert_int_equal(chat->gpus_milli, 2000);
	assert_int_equal(code->gpus_milli, 0);
	assert_int_equal(chat->node->gpus_used_milli, 2000);
	assert_ptr_equal(code->node, chat->node);
	assert_int_equal(code->engine, POD_ENGINE_ASLEEP);
	assert_int_equal(chat->engine, POD_ENGINE_AWAKE);
	assert_int_equal(code->engine_started - chat->engine_started, 10000);
	assert_int_equal(cluster_pool_view(w.c, 0, &w.a).ready, 1);
	assert_int_equal(cluster_pool_view(w.c, 1, &w.a).asleep, 1);
	cluster_engine_told(w.c, chat, POD_SLEEP_1, 2000000);
	assert_int_equal(engine(&w, 0)->engine, POD_ENGINE_ASLEEP);
	assert_int_equal(engine(&w, 1)->sleep, POD_SLEEP_NONE);
	/* its container started anew: that one is awake, whatever its label says */
	see_engines(&w, ",'annotations':{'engine-started.preheat.dev/code':'1795219220'}", "2026-11-21T00:00:40Z");
	assert_int_equal(engine(&w, 1)->engine, POD_ENGINE_AWAKE);
	assert_int_equal(engine(&w, 0)->sleep, POD_SLEEP_1); /* as it told */
	cluster_pod_gone(w.c, object_uid_of("p"), 0);
	assert_null(engine(&w, 0));
	assert_null(engine(&w, 1));
	world_close(&w);
}

/* What is known of an engine stays with it, wherever its pool stands in the fleet. */
static void engines_outlive_a_change_of_the_fleet(void **state)
{
	(void)state;
	static const char *const names[] = { "chat", "code" }, *const turned[] = { "code", "chat" };
	struct world w = world_open();
	set_fleet(&w, names, SMALL);
	node(&w, "a", "p5", 8, "");
	see_engines(&w, "", "2026-11-21T00:00:20Z");
	set_fleet(&w, turned, SMALL);
	assert_int_equal(engine(&w, 0)->engine, POD_ENGINE_ASLEEP);
	assert_int_equal(engine(&w, 1)->engine, POD_ENGINE_AWAKE);
	assert_int_equal(engine(&w, 0)->engine_started - engine(&w, 1)->engine_started, 10000);
	set_fleet(&w, names, 1);
	assert_null(engine(&w, 0)->beside);
	assert_true(pod_has_left_engine(engine(&w, 0)) == false); /* it sleeps */
	set_fleet(&w, turned, 1);
	assert_int_equal(engine(&w, 0)->engine, POD_ENGINE_ASLEEP);
	set_fleet(&w, names, 0);
	world_close(&w);
}

/* Two on one port: the pod is the first one's. */
static void engines_need_a_port_each(void **state)
{
	(void)state;
	static const char *const names[] = { "chat", "notes" };
	struct world w = world_open();
	set_fleet(&w, names, SMALL);
	node(&w, "a", "p5", 8, "");
	see_engines(&w, "", "2026-11-21T00:00:20Z");
	assert_true(engine(&w, 0) && !engine(&w, 0)->beside && !engine(&w, 1));
	world_close(&w);
}

/* The pod stays with those that are in the share. */
static void the_first_pool_leaves_its_share(void **state)
{
	(void)state;
	static const char *const names[] = { "chat", "code" }, *const apart[] = { "alone", "code" };
	struct world w = world_open();
	set_fleet(&w, names, SMALL);
	node(&w, "a", "p5", 8, "");
	see_engines(&w, "", "2026-11-21T00:00:20Z");
	cluster_engine_told(w.c, engine(&w, 1), POD_SLEEP_1, 2000000);
	millis started = engine(&w, 1)->engine_started;
	set_fleet(&w, apart, SMALL);
	assert_true(!engine(&w, 0) && engine(&w, 1) && !engine(&w, 1)->beside);
	assert_int_equal(engine(&w, 1)->sleep, POD_SLEEP_1);
	assert_int_equal(engine(&w, 1)->engine_started, started);
	assert_int_equal(engine(&w, 1)->gpus_milli, 2000);
	world_close(&w);
}

/* Processors can be what is scarce, once a pod has told what it asks. */
static void places_need_all_resources(void **state)
{
	(void)state;
	struct world w = world_open();
	node(&w, "a1", "g5", 4, "");
	struct pool_view v = cluster_pool_view(w.c, 0, &w.a);
	assert_int_equal(v.groups[1].free_places, 2);
	pod(&w, "a1", "'app':'other'", 0, READY, "");
	for (int i = 0; i < 6; i++)
		pod(&w, "a1", "'app':'cpu'", 0, READY, "");
	v = cluster_pool_view(w.c, 0, &w.a);
	assert_int_equal(v.groups[1].free_places, 2); /* 14 of 16 processors are gone, and nobody knows of them */
	pod(&w, "", CHAT, 2, PENDING, "");
	v = cluster_pool_view(w.c, 0, &w.a);
	assert_int_equal(v.groups[1].free_places, 1);
	world_close(&w);
}

/* Every way in which a node is on its way out makes its replicas drain, and its places nobody's. */
static void nodes_on_their_way_out(void **state)
{
	(void)state;
	static const struct {
		const char *spec;
		int64_t ready, draining, places, nodes, usable;
	} cases[] = {
		{ "", 1, 0, 1, 1, 1 },
		{ "'unschedulable':true", 1, 0, 0, 1, 0 },
		{ "'taints':[{'key':'preheat.dev/draining','effect':'NoSchedule'}]", 0, 1, 0, 1, 0 },
		{ "'taints':[{'key':'aws-node-termination-handler/spot-itn','effect':'NoSchedule'}]", 0, 1, 0, 1, 0 },
		{ "'taints':[{'key':'ToBeDeletedByClusterAutoscaler','effect':'NoSchedule'}]", 1, 0, 0, 1, 0 },
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct world w = world_open();
		node(&w, "a1", "g5", 4, cases[i].spec);
		pod(&w, "a1", CHAT, 2, READY, "");
		struct pool_view v = cluster_pool_view(w.c, 0, &w.a);
		const struct pool_group_view *g = &v.groups[1];
		if (g->ready != cases[i].ready || g->draining != cases[i].draining ||
		    g->free_places != cases[i].places || g->nodes != cases[i].nodes ||
		    g->usable_nodes != cases[i].usable)
			fail_msg("%s", cases[i].spec);
		world_close(&w);
	}
}

/* What ran on a node that is gone serves nobody, though it says so for a while. */
static void pods_outlive_their_node(void **state)
{
	(void)state;
	struct world w = world_open();
	node(&w, "a1", "g5", 4, "");
	pod(&w, "a1", CHAT, 2, READY, "");
	cluster_node_gone(w.c, object_uid_of("a1"), 0);
	struct pool_view v = cluster_pool_view(w.c, 0, &w.a);
	assert_int_equal(v.ready, 0);
	assert_int_equal(v.draining, 1);
	assert_int_equal(v.groups[1].nodes, 0);
	node(&w, "a1", "g5", 4, "");
	assert_int_equal(cluster_pool_view(w.c, 0, &w.a).groups[1].ready, 1);
	world_close(&w);
}

static void shared_devices_are_places(void **state)
{
	(void)state;
	struct world w = world_open();
	static const char *const resource = "nvidia.com/mig-1g.10gb";
	static const int only[] = { 0 };
	struct cluster_group group = group_named("mig", 7, 10);
	struct cluster_pool pool = { .name = "small",
				     .namespace = "llm",
				     .selector = &selector,
				     .selector_count = 1,
				     .gpus_per_replica = 1,
				     .gpu_resource = resource,
				     .groups = only,
				     .group_count = 1 };
	cluster_set_fleet(w.c, &pool, 1, &group, 1);
	see_now(w.c, CLUSTER_NODES,
		"{'metadata':{'name':'m','uid':'m','labels':{'simulated.preheat.dev/"
		"node-group':'mig'}},'status':{'allocatable':"
		"{'nvidia.com/gpu':'0','nvidia.com/"
		"mig-1g.10gb':'7'},'conditions':[{'type':'Ready','status':'True'}]}}");
	see_now(w.c, CLUSTER_PODS,
		"{'metadata':{'namespace':'llm','name':'p','uid':'p','labels':{'app':'chat'}},'spec':{'nodeName':'m','"
		"containers':"
		"[{'resources':{'limits':{'nvidia.com/"
		"mig-1g.10gb':'1'}}}]},'status':{'conditions':[{'type':'Ready','status':'True'}]}}");
	struct pool_view v = cluster_pool_view(w.c, 0, &w.a);
	assert_int_equal(v.groups[0].free_places, 6);
	assert_int_equal(v.groups[0].ready, 1);
	assert_int_equal(v.groups[0].gpus_milli, 143);
	assert_int_equal(cluster_node(w.c, "m")->gpus_milli, 1000);
	world_close(&w);
}

/* Work has room where expendable pods are: it pre-empts them; unless the scheduler lets its pods wait all the same. */
static void expendable_pods_leave_their_places(void **state)
{
	static const int only[] = { 0 };
	struct cluster_group group = group_named("g5", 4, 10);
	struct cluster_pool pool = { .name = "small",
				     .namespace = "llm",
				     .selector = &selector,
				     .selector_count = 1,
				     .gpus_per_replica = 2,
				     .groups = only,
				     .group_count = 1 };
	struct world w = world_open();

	(void)state;
	cluster_set_fleet(w.c, &pool, 1, &group, 1);
	node(&w, "n", "g5", 4, "");
	see_now(w.c, CLUSTER_PODS,
		"{'metadata':{'namespace':'a','name':'low','uid':'low'},'spec':{'priority':-11,'nodeName':'n','"
		"containers':[{'resources':{'limits':{'nvidia.com/gpu':'3'}}}]},'status':{'phase':'Running'}}");
	const struct pool_group_view *g = cluster_pool_view(w.c, 0, &w.a).groups;
	assert_int_equal(g->free_places, 0);
	assert_int_equal(g->expendable_places, 2);
	assert_int_equal(cluster_node(w.c, "n")->gpus_used_milli, 3000);
	assert_int_equal(node_gpus_held_milli(cluster_node(w.c, "n")), 0);
	see_now(w.c, CLUSTER_PODS,
		"{'metadata':{'namespace':'llm','name':'p','uid':'p','labels':{'app':'chat'}},'spec':{'containers':[{"
		"'resources':{'limits':{'nvidia.com/gpu':'2'}}}]},'status':{'phase':'Pending','conditions':[{'type':"
		"'PodScheduled','status':'False','reason':'Unschedulable'}]}}");
	g = cluster_pool_view(w.c, 0, &w.a).groups;
	assert_int_equal(g->lacking, 1);
	assert_int_equal(g->expendable_places, 0);
	cluster_pod_gone(w.c, object_uid_of("p"), 0);
	cluster_pod_gone(w.c, object_uid_of("low"), 0);
	g = cluster_pool_view(w.c, 0, &w.a).groups;
	assert_int_equal(g->free_places, 2);
	assert_int_equal(g->expendable_places, 0);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_replicas_and_places),
		cmocka_unit_test(least_that_could_go),
		cmocka_unit_test(sleepers_are_apart),
		cmocka_unit_test(engines_tell_that_they_sleep),
		cmocka_unit_test(a_pod_has_engines_of_a_share),
		cmocka_unit_test(engines_outlive_a_change_of_the_fleet),
		cmocka_unit_test(engines_need_a_port_each),
		cmocka_unit_test(places_need_all_resources),
		cmocka_unit_test(the_first_pool_leaves_its_share),
		cmocka_unit_test(nodes_on_their_way_out),
		cmocka_unit_test(pods_outlive_their_node),
		cmocka_unit_test(shared_devices_are_places),
		cmocka_unit_test(expendable_pods_leave_their_places),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
