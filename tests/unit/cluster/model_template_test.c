/* What the nodes of a group teach of the next one, while they are there and when they are gone. */
#include "tests/unit/cluster/model_objects.h"

enum { TEXT_SIZE = 2048, BEGINS = 1000000 };

struct node_told {
	const char *name, *zone, *taints;
	int gpus, broken; /* of `gpus` */
	bool is_cordoned;
};

static const struct node_told plain = { .name = "n1", .zone = "z1", .gpus = 8 };

static void tell(struct cluster *c, const struct cluster_group *g)
{
	static const int first[] = { 0 };
	static const struct cluster_pool pool = { .name = "any",
						  .namespace = "b",
						  .gpus_per_replica = 1,
						  .groups = first,
						  .group_count = 1,
						  .takes_any = true };
	cluster_set_fleet(c, &pool, 1, g, 1);
	cluster_offer(c, 0, 20);
}

static struct cluster *cluster_of_one_group(void)
{
	struct cluster_group group = group_named("g", 8, 20);
	struct cluster *c = cluster_new();
	tell(c, &group);
	return c;
}

static void see_node_at(struct cluster *c, struct node_told n, struct moment when)
{
	char text[TEXT_SIZE];
	snprintf(text, sizeof text,
		 "{'metadata':{'name':'%s','uid':'%s','labels':{'simulated.preheat.dev/node-group':'g',"
		 "'kubernetes.io/hostname':'%s','topology.kubernetes.io/"
		 "zone':'%s'}},'spec':{'unschedulable':%s,'taints':[%s]},"
		 "'status':{'capacity':{'nvidia.com/gpu':'%d','cpu':'10','pods':'10'},'allocatable':{"
		 "'nvidia.com/gpu':'%d','cpu':'8','pods':'10'},'conditions':[{'type':'Ready','status':'True'}]}}",
		 n.name, n.name, n.name, n.zone, n.is_cordoned ? "true" : "false", n.taints == NULL ? "" : n.taints,
		 n.gpus, n.gpus - n.broken);
	see(c, CLUSTER_NODES, text, when);
}

static void see_node(struct cluster *c, struct node_told n)
{
	see_node_at(c, n, (struct moment){ BEGINS, false });
}

static void end_node(struct cluster *c, const char *name)
{
	cluster_node_gone(c, object_uid_of(name), BEGINS);
}

/* Of a DaemonSet, named after its node and what it asks for. */
static void see_daemon(struct cluster *c, const char *node, const char *cpu, int port)
{
	char text[TEXT_SIZE];
	snprintf(text, sizeof text,
		 "{'metadata':{'namespace':'a','name':'d-%s-%s','uid':'d-%s-%s','ownerReferences':[{'kind':'DaemonSet',"
		 "'name':'d','uid':'d','controller':true}]},'spec':{'nodeName':'%s','containers':[{'resources':{"
		 "'requests':{'cpu':'%s'}},'ports':[{'hostPort':%d}]}]},'status':{'phase':'Running'}}",
		 node, cpu, node, cpu, node, cpu, port);
	see_now(c, CLUSTER_PODS, text);
}

static void end_daemon(struct cluster *c, const char *node, const char *cpu)
{
	char uid[64];
	snprintf(uid, sizeof uid, "d-%s-%s", node, cpu);
	cluster_pod_gone(c, object_uid_of(uid), BEGINS);
}

#define ASKS(gpus, more) "'containers':[{'resources':{'limits':{'nvidia.com/gpu':'" gpus "'" more "}}}]"
#define TOLERATES(key)	 ",'tolerations':[{'key':'" key "','operator':'Exists'}]"
#define WANTS_ZONE(zone) ",'nodeSelector':{'topology.kubernetes.io/zone':'" zone "'}"

#define BROKEN	      "{'key':'ops.example/broken','effect':'NoSchedule'}"
#define OURS	      "{'key':'gpu','effect':'NoSchedule'}"
#define BARRED(taint) "g: does not tolerate the taint " taint ":NoSchedule"

/* All GPUs of a node that there is. */
static void fill(struct cluster *c, const char *node)
{
	char text[TEXT_SIZE];
	snprintf(text, sizeof text,
		 "{'metadata':{'namespace':'a','name':'f-%s','uid':'f-%s'},'spec':{'nodeName':'%s'," ASKS(
			 "8", "") "},'status':{'phase':'Running'}}",
		 node, node, node);
	see_now(c, CLUSTER_PODS, text);
}

/* What is said of a pod that waits; "" where a machine is bought for it. */
static void expect_told(struct cluster *c, const char *spec, const char *why)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	char text[TEXT_SIZE];
	snprintf(text, sizeof text, "{'metadata':{'namespace':'a','name':'p','uid':'p'},'spec':{%s},'status':{%s}}",
		 spec,
		 "'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False','reason':'Unschedulable'}]");
	see_now(c, CLUSTER_PODS, text);
	size_t count = 0;
	const struct pending_shape *shapes = cluster_pending(c, &a, &count);
	assert_int_equal(count, 1);
	assert_string_equal(shapes[0].why == NULL ? "" : shapes[0].why, why);
	assert_int_equal(cluster_pool_view(c, 0, &a).groups[0].lacking_nodes, why[0] == '\0');
	cluster_pod_gone(c, object_uid_of("p"), BEGINS);
}

#define ALL_CPUS "g: wants 8 cpu, a node has 7"

/* An empty group bought for a pod that only fits while no DaemonSet is counted would buy for ever. */
static void daemons_are_remembered_when_no_node_is_left(void **state)
{
	(void)state;
	struct cluster *c = cluster_of_one_group();
	expect_told(c, ASKS("1", ",'cpu':'8'"), "");
	see_daemon(c, "n1", "1", 80); /* before its node */
	see_node(c, plain);
	expect_told(c, ASKS("1", ",'cpu':'8'"), ALL_CPUS);
	end_daemon(c, "n1", "1");
	end_node(c, "n1");
	cluster_follow_waiting(c, BEGINS + 5 * MINUTE);
	expect_told(c, ASKS("1", ",'cpu':'8'"), ALL_CPUS);
	expect_told(c, ASKS("1", ",'cpu':'7'"), "");
	expect_told(c, "'containers':[{'ports':[{'hostPort':80}],'resources':{'limits':{'nvidia.com/gpu':'1'}}}]",
		    "g: its host port 80 is taken");
	struct cluster_group same = group_named("g", 8, 20);
	const int first[] = { 0 };
	const struct cluster_pool pool = {
		.name = "any", .namespace = "b", .groups = first, .group_count = 1, .takes_any = true
	};
	cluster_set_fleet(c, &pool, 1, &same, 1);
	cluster_offer(c, 0, 20);
	expect_told(c, ASKS("1", ",'cpu':'8'"), ALL_CPUS);
	cluster_free(c);
}

/* Whatever says of a node that it will end says nothing of the next one, also minutes after its start. */
static void the_marks_of_an_end_are_of_that_node(void **state)
{
	static const char *const taints[] = {
		"{'key':'remediator.kubernetes.azure.com/unschedulable','effect':'NoSchedule'}",
		"{'key':'aws-node-termination-handler/spot-itn','effect':'NoSchedule'}",
		"{'key':'ToBeDeletedByClusterAutoscaler','effect':'NoSchedule'}",
		"{'key':'node.kubernetes.io/out-of-service','effect':'NoExecute'}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof taints / sizeof *taints; i++) {
		struct cluster *c = cluster_of_one_group();
		see_node(c, plain);
		see_node_at(c, (struct node_told){ .name = "n1", .zone = "z1", .gpus = 8, .taints = taints[i] },
			    (struct moment){ BEGINS + MINUTE, false });
		end_node(c, "n1");
		expect_told(c, ASKS("1", ""), "");
		cluster_free(c);
	}
}

/* A new machine that is found to be bad minutes later, and ended for that. */
static void a_taint_of_one_new_node_goes_with_it(void **state)
{
	static const char bad[] = "{'key':'ops.example/bad','effect':'NoSchedule'}";
	const struct moment later = { BEGINS + HOUR, false }, found = { BEGINS + HOUR + 3 * MINUTE, false };

	(void)state;
	struct cluster *c = cluster_of_one_group();
	see_node(c, plain);
	fill(c, "n1");
	see_node_at(c, (struct node_told){ .name = "n2", .zone = "z1", .gpus = 8 }, later);
	see_node_at(c, (struct node_told){ .name = "n2", .zone = "z1", .gpus = 8, .taints = bad }, found);
	expect_told(c, ASKS("1", ""), "g: does not tolerate the taint ops.example/bad:NoSchedule");
	end_node(c, "n2");
	expect_told(c, ASKS("1", ""), "");
	cluster_free(c);
}

static void come_and_go(struct cluster *c, struct node_told n, const char *taints_later, millis at)
{
	see_node_at(c, n, (struct moment){ at, false });
	n.taints = taints_later;
	see_node_at(c, n, (struct moment){ at + 3 * MINUTE, false });
	cluster_node_gone(c, object_uid_of(n.name), at + 5 * MINUTE);
}

/* With no other node left to ask, one bad machine must not shut its group; two in a row do, for a day. */
static void a_taint_of_the_only_node_goes_with_it(void **state)
{
	static const char other[] = "{'key':'ops.example/hot','effect':'NoSchedule'}";
	static const struct node_told next = { .name = "n2", .zone = "z1", .gpus = 8 },
				      last = { .name = "n3", .zone = "z1", .gpus = 8 };

	(void)state;
	struct cluster *c = cluster_of_one_group();
	come_and_go(c, plain, BROKEN, BEGINS);
	expect_told(c, ASKS("1", ""), "");
	come_and_go(c, next, other, BEGINS + HOUR);
	expect_told(c, ASKS("1", ""), "");
	come_and_go(c, last, other, BEGINS + 2 * HOUR);
	expect_told(c, ASKS("1", ""), BARRED("ops.example/hot"));
	cluster_follow_waiting(c, BEGINS + DAY);
	expect_told(c, ASKS("1", ""), BARRED("ops.example/hot"));
	cluster_follow_waiting(c, BEGINS + DAY + 3 * HOUR);
	expect_told(c, ASKS("1", ""), "");
	cluster_free(c);
}

/* Nor one that was there before us, but for what is told of all, or what a machine came with. */
static void taints_that_are_told_or_come_with_a_machine_outlast_the_only_node(void **state)
{
	static const struct cluster_taint written = { "gpu", NULL, "NoSchedule" };
	static const struct node_told sick = { .name = "n1", .zone = "z1", .gpus = 8, .taints = OURS "," BROKEN };

	(void)state;
	for (int is_written = 0; is_written < 2; is_written++) {
		struct cluster *c = cluster_of_one_group();
		struct cluster_group group = group_named("g", 8, 20);
		group.taints = &written;
		group.taint_count = (size_t)is_written;
		tell(c, &group);
		see_node_at(c, sick, (struct moment){ BEGINS, true });
		end_node(c, "n1");
		expect_told(c, ASKS("1", ""), is_written ? BARRED("gpu") : "");
		see_node_at(c, sick, (struct moment){ BEGINS + HOUR, false });
		end_node(c, "n1");
		expect_told(c, ASKS("1", "") TOLERATES("gpu"), BARRED("ops.example/broken"));
		cluster_free(c);
	}
}

/* A fresh node whose DaemonSets are not there yet shows less than the next one will have. */
static void the_node_with_most_daemons_counts(void **state)
{
	static const struct node_told fresh = { .name = "a0", .zone = "z1", .gpus = 8 };

	(void)state;
	struct cluster *c = cluster_of_one_group();
	see_node(c, plain);
	see_daemon(c, "n1", "1", 80);
	fill(c, "n1");
	see_node(c, fresh);
	fill(c, "a0");
	expect_told(c, ASKS("1", ",'cpu':'8'"), ALL_CPUS);
	cluster_free(c);
}

/* Pods of theirs take places, too: of 10 pods a node here has, 9 are other DaemonSets'. */
static void daemons_take_places_of_pods(void **state)
{
	static const char *const cpus[] = { "1m", "2m", "3m", "4m", "5m", "6m", "7m", "8m", "9m", "10m" };

	(void)state;
	struct cluster *c = cluster_of_one_group();
	see_node(c, plain);
	for (size_t i = 0; i < 10; i++)
		see_daemon(c, "n1", cpus[i], 80 + (int)i);
	end_node(c, "n1");
	expect_told(c, ASKS("1", ""), "g: a node has room for 10 pods, and all is taken");
	cluster_free(c);
}

/* A DaemonSet that goes makes room again; what goes with the only node, when that is emptied or young, stays known. */
static void a_daemon_that_ends_is_forgotten_while_nodes_stand(void **state)
{
	static const struct node_told emptied = { .name = "n1", .zone = "z1", .gpus = 8, .is_cordoned = true };

	(void)state;
	struct cluster *c = cluster_of_one_group();
	see_node(c, plain);
	see_daemon(c, "n1", "1", 80);
	fill(c, "n1");
	cluster_follow_waiting(c, BEGINS + 30 * SECOND);
	end_daemon(c, "n1", "1");
	cluster_follow_waiting(c, BEGINS + 40 * SECOND); /* it starts */
	expect_told(c, ASKS("1", ",'cpu':'8'"), ALL_CPUS);
	cluster_follow_waiting(c, BEGINS + 2 * MINUTE);
	expect_told(c, ASKS("1", ",'cpu':'8'"), "");
	see_daemon(c, "n1", "1", 80);
	see_node(c, emptied);
	end_daemon(c, "n1", "1");
	cluster_follow_waiting(c, BEGINS + 3 * MINUTE);
	expect_told(c, ASKS("1", ",'cpu':'8'"), ALL_CPUS);
	cluster_free(c);
}

#define EIGHT_OF(most) "wants 8 nvidia.com/gpu; largest node group g has " most " per node"

/* It counts among the node's devices; a machine that has fewer is another matter. */
static void a_broken_device_is_not_the_groups(void **state)
{
	static const struct node_told broken = { .name = "n1", .zone = "z1", .gpus = 8, .broken = 1 },
				      smaller = { .name = "n2", .zone = "z1", .gpus = 4 };

	(void)state;
	struct cluster *c = cluster_of_one_group();
	see_node(c, broken);
	expect_told(c, ASKS("8", ""), "");
	expect_told(c, ASKS("9", ""), "wants 9 nvidia.com/gpu; largest node group g has 8 per node");
	end_node(c, "n1");
	expect_told(c, ASKS("8", ""), "");
	see_node(c, smaller);
	expect_told(c, ASKS("8", ""), EIGHT_OF("4"));
	cluster_free(c);
}

/* What somebody puts on one node later is that node's own, whoever spoke last and when it is gone. */
static void a_taint_put_on_a_node_is_not_the_groups(void **state)
{
	static const struct node_told other = { .name = "n2", .zone = "z1", .gpus = 8 },
				      tainted = { .name = "n1", .zone = "z1", .gpus = 8, .taints = BROKEN },
				      silent = { .name = "n1", .zone = "z1", .gpus = 8, .taints = BROKEN, .broken = 8 };

	(void)state;
	struct cluster *c = cluster_of_one_group();
	see_node(c, plain);
	see_node_at(c, tainted, (struct moment){ BEGINS + 14 * MINUTE, false });
	expect_told(c, ASKS("8", ""), "");
	see_node_at(c, silent, (struct moment){ BEGINS + 15 * MINUTE, false });
	see_node_at(c, tainted, (struct moment){ BEGINS + 16 * MINUTE, false });
	expect_told(c, ASKS("8", ""), "");
	see_node_at(c, other, (struct moment){ BEGINS + 17 * MINUTE, false });
	fill(c, "n2");
	see_node_at(c, tainted, (struct moment){ BEGINS + 18 * MINUTE, false });
	expect_told(c, ASKS("8", ""), "");
	end_node(c, "n2");
	end_node(c, "n1");
	expect_told(c, ASKS("8", ""), "");
	cluster_free(c);
}

/* Of nodes that were there before us nobody knows what they were born with: what all of them have. */
static void a_taint_that_only_some_had_from_the_start_is_not_the_groups(void **state)
{
	static const struct node_told nodes[] = {
		{ .name = "n1", .zone = "z1", .gpus = 8, .taints = OURS },
		{ .name = "n2", .zone = "z1", .gpus = 8, .taints = OURS "," BROKEN },
		{ .name = "n3", .zone = "z1", .gpus = 8, .taints = OURS },
	};

	(void)state;
	for (size_t first = 0; first < 3; first++) {
		struct cluster *c = cluster_of_one_group();
		for (size_t i = 0; i < 3; i++) {
			see_node_at(c, nodes[(first + i) % 3], (struct moment){ BEGINS, true });
			fill(c, nodes[(first + i) % 3].name);
		}
		expect_told(c, ASKS("8", ",'cpu':'1'"), BARRED("gpu"));
		expect_told(c, ASKS("8", "") ",'tolerations':[{'key':'gpu','operator':'Exists'}]", "");
		cluster_free(c);
	}
}

/* What a new node comes with is the group's, though older ones have it not; what it loses soon was of its start. */
static void the_taints_of_the_newest_node_count(void **state)
{
	static const struct node_told born = { .name = "n2", .zone = "z1", .gpus = 8, .taints = OURS "," BROKEN },
				      settled = { .name = "n2", .zone = "z1", .gpus = 8, .taints = OURS };

	(void)state;
	struct cluster *c = cluster_of_one_group();
	see_node(c, plain);
	fill(c, "n1");
	see_node_at(c, born, (struct moment){ BEGINS + 15 * MINUTE, false });
	fill(c, "n2");
	see_node_at(c, settled, (struct moment){ BEGINS + 16 * MINUTE, false });
	see_node_at(c, plain, (struct moment){ BEGINS + 17 * MINUTE, false }); /* says nothing new */
	expect_told(c, ASKS("8", ""), BARRED("gpu"));
	expect_told(c, ASKS("8", "") ",'tolerations':[{'key':'gpu','operator':'Exists'}]", "");
	end_node(c, "n1");
	end_node(c, "n2");
	expect_told(c, ASKS("8", ""), BARRED("gpu"));
	cluster_free(c);
}

/* Of a group over several zones any may come next, though no node is left, or only another zone's. */
static void the_zones_of_a_group_are_remembered(void **state)
{
	static const struct node_told second = { .name = "n2", .zone = "z2", .gpus = 8 };

	(void)state;
	struct cluster *c = cluster_of_one_group();
	see_node(c, second);
	see_node(c, plain);
	fill(c, "n1");
	end_node(c, "n2");
	expect_told(c, ASKS("8", "") WANTS_ZONE("z2"), "");
	end_node(c, "n1");
	expect_told(c, ASKS("8", "") WANTS_ZONE("z2"), "");
	expect_told(c, ASKS("8", "") WANTS_ZONE("z1"), "");
	expect_told(c, ASKS("8", "") WANTS_ZONE("z3"),
		    "g: its node selector wants topology.kubernetes.io/zone=z3, nodes have z1");
	cluster_free(c);
}

/* Where machine after machine comes elsewhere it is of the group no more: none would be bought for nothing for ever. */
static void a_zone_where_no_machine_comes_is_forgotten(void **state)
{
	static const struct node_told second = { .name = "n2", .zone = "z2", .gpus = 8 };

	(void)state;
	struct cluster *c = cluster_of_one_group();
	see_node(c, second);
	end_node(c, "n2");
	for (int i = 0; i < 8; i++) {
		char name[16];
		snprintf(name, sizeof name, "m%d", i);
		expect_told(c, ASKS("8", "") WANTS_ZONE("z2"), "");
		see_node(c, (struct node_told){ .name = name, .zone = "z1", .gpus = 8 });
		see_node(c, (struct node_told){ .name = name, .zone = "z1", .gpus = 8 });
		end_node(c, name);
	}
	expect_told(c, ASKS("8", "") WANTS_ZONE("z2"),
		    "g: its node selector wants topology.kubernetes.io/zone=z2, nodes have z1");
	see_node(c, second);
	end_node(c, "n2");
	expect_told(c, ASKS("8", "") WANTS_ZONE("z2"), "");
	cluster_free(c);
}

/* --- what is told before a node came --- */

static const struct promised_pair cloud_labels[] = { { "team", "ml" }, { "tier", "gold" } };
static const struct promised_taint cloud_taints[] = { { "dedicated", "ml", "NoSchedule" },
						      { "node.cilium.io/agent-not-ready", "true", "NoExecute" },
						      { "example.com/starts", "", "NoSchedule" } };
static const struct promised_pair cloud_resources[] = { { "nvidia.com/mig-1g.10gb", "7" },
							{ "cpu", "4" },
							{ "vpc.amazonaws.com/efa", "1" } };

static struct node_promise promise(size_t labels, size_t taints, size_t resources)
{
	return (struct node_promise){ .labels = (struct promised_pair *)cloud_labels,
				      .label_count = labels,
				      .taints = (struct promised_taint *)cloud_taints,
				      .taint_count = taints,
				      .resources = (struct promised_pair *)cloud_resources,
				      .resource_count = resources };
}

#define SELECTS(key, value) ",'nodeSelector':{'" key "':'" value "'}"

static void a_node_goes_before_the_manifest_and_that_before_the_cloud(void **state)
{
	(void)state;
	static const struct cluster_label written = { "team", "web" };
	struct cluster *c = cluster_new();
	struct node_promise cloud = promise(2, 0, 0);
	struct cluster_group group = group_named("g", 8, 20);
	group.promise = &cloud;
	tell(c, &group);
	expect_told(c, ASKS("8", "") SELECTS("team", "ml"), "");
	expect_told(c, ASKS("8", "") SELECTS("team", "web"), "g: its node selector wants team=web, nodes have ml");
	group.labels = &written;
	group.label_count = 1;
	tell(c, &group);
	expect_told(c, ASKS("8", "") SELECTS("team", "web"), "");
	expect_told(c, ASKS("8", "") SELECTS("team", "ml"), "g: its node selector wants team=ml, nodes have web");
	expect_told(c, ASKS("8", "") SELECTS("tier", "lead"), "g: its node selector wants tier=lead, nodes have gold");
	see_node(c, plain);
	end_node(c, "n1");
	expect_told(c, ASKS("8", "") SELECTS("tier", "gold"),
		    "g: its node selector wants tier=gold, nodes have no such label");
	tell(c, &group);
	expect_told(c, ASKS("8", "") SELECTS("tier", "gold"),
		    "g: its node selector wants tier=gold, nodes have no such label");
	cluster_free(c);
}

/* Of what a cloud gives a node some is gone once its start is over. */
static void taints_of_the_cloud_count_but_for_those_of_a_start(void **state)
{
	(void)state;
	static const struct cluster_taint start = { "example.com/starts", NULL, "NoSchedule" },
					  written = { "dedicated", "web", "NoSchedule" };
	struct cluster *c = cluster_new();
	struct node_promise cloud = promise(0, 3, 0);
	struct cluster_group group = group_named("g", 8, 20);
	group.promise = &cloud;
	tell(c, &group);
	expect_told(
		c, ASKS("8", "") TOLERATES("dedicated"),
		BARRED("example.com/starts") ", which the cloud tells of and no node was seen with: if it goes when "
					     "a node has started, name it in startupTaints");
	group.startup_taints = &start;
	group.startup_taint_count = 1;
	tell(c, &group);
	expect_told(c, ASKS("8", "") TOLERATES("dedicated"), "");
	expect_told(c, ASKS("8", ""),
		    "g: does not tolerate the taint dedicated=ml:NoSchedule, which the cloud tells of and no node was "
		    "seen with: if it goes when a node has started, name it in startupTaints");
	group.taints = &written;
	group.taint_count = 1;
	tell(c, &group);
	expect_told(c, ASKS("8", ""), "g: does not tolerate the taint dedicated=web:NoSchedule");
	cluster_free(c);
}

/* Those that Cluster Autoscaler and Karpenter leave out of a new node without being told, and those of agents. */
static void taints_that_are_known_to_go_shut_no_group(void **state)
{
	static const char *const keys[] = {
		"node.kubernetes.io/not-ready",
		"node.kubernetes.io/unreachable",
		"node.kubernetes.io/network-unavailable",
		"node.cloudprovider.kubernetes.io/uninitialized",
		"node.cloudprovider.kubernetes.io/shutdown",
		"startup-taint.cluster-autoscaler.kubernetes.io/cni",
		"ignore-taint.cluster-autoscaler.kubernetes.io/cni",
		"status-taint.cluster-autoscaler.kubernetes.io/disk",
		"readiness.k8s.io/network",
		"karpenter.sh/unregistered",
		"NodeWithImpairedVolumes",
		"cloud.google.com/impending-node-termination",
		"node.cluster.x-k8s.io/uninitialized",
		"node.cilium.io/agent-not-ready",
		"ebs.csi.aws.com/agent-not-ready",
		"disk.csi.azure.com/agent-not-ready",
	};

	(void)state;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		struct promised_taint taint = { keys[i], "true", i % 2 == 0 ? "NoSchedule" : "NoExecute" };
		struct node_promise cloud = { .taints = &taint, .taint_count = 1 };
		struct cluster_group group = group_named("g", 8, 20);
		struct cluster *c = cluster_new();
		group.promise = &cloud;
		tell(c, &group);
		expect_told(c, ASKS("8", ""), "");
		cluster_free(c);
	}
}

#define ASKS_ONE(resource, count) "'containers':[{'resources':{'limits':{'" resource "':'" count "'}}}]"

static void devices_that_the_cloud_names_stand_for_those_of_a_machine(void **state)
{
	(void)state;
	static const struct cluster_device written = { "nvidia.com/mig-1g.10gb", 3 };
	struct cluster *c = cluster_new();
	struct node_promise cloud = promise(0, 0, 3);
	struct cluster_group group = group_named("g", 8, 20);
	group.cpu_milli = 8000;
	group.promise = &cloud;
	tell(c, &group);
	expect_told(c, ASKS_ONE("nvidia.com/mig-1g.10gb", "7"), "");
	expect_told(c, ASKS_ONE("nvidia.com/gpu", "1"), "wants 1 nvidia.com/gpu; no node group has any");
	expect_told(c, ASKS_ONE("nvidia.com/mig-1g.10gb", "1','cpu':'5"), "g: wants 5 cpu, a node has 4");
	expect_told(c, ASKS_ONE("nvidia.com/mig-1g.10gb", "1','vpc.amazonaws.com/efa':'2"),
		    "g: wants 2 vpc.amazonaws.com/efa, a node has 1");
	group.devices = &written;
	group.device_count = 1;
	tell(c, &group);
	expect_told(c, ASKS_ONE("nvidia.com/mig-1g.10gb", "7"),
		    "wants 7 nvidia.com/mig-1g.10gb; largest node group g has 3 per node");
	cluster_free(c);
}

/* Tags go before gpusPerNode, but for fewer of the same GPUs: those were of another machine. */
static void a_tag_takes_no_gpus_from_a_machine(void **state)
{
	static const struct promised_pair fewer[] = { { "nvidia.com/gpu", "4" } },
					  shared[] = { { "nvidia.com/gpu", "32" } },
					  mixed[] = { { "nvidia.com/gpu", "4" }, { "nvidia.com/mig-1g.10gb", "28" } };
	static const struct {
		const struct promised_pair *tags;
		size_t count;
		const char *asks, *why;
	} cases[] = {
		{ fewer, 1, ASKS("8", ""), "" },
		{ fewer, 1, ASKS("9", ""), "wants 9 nvidia.com/gpu; largest node group g has 8 per node" },
		{ shared, 1, ASKS("32", ""), "" },
		{ mixed, 2, ASKS("8", ""), EIGHT_OF("4") },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct cluster *c = cluster_new();
		struct node_promise cloud = promise(0, 0, 0);
		struct cluster_group group = group_named("g", 8, 20);
		cloud.resources = (struct promised_pair *)cases[i].tags;
		cloud.resource_count = cases[i].count;
		group.promise = &cloud;
		tell(c, &group);
		expect_told(c, cases[i].asks, cases[i].why);
		cluster_free(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(daemons_are_remembered_when_no_node_is_left),
		cmocka_unit_test(the_marks_of_an_end_are_of_that_node),
		cmocka_unit_test(a_taint_of_one_new_node_goes_with_it),
		cmocka_unit_test(a_taint_of_the_only_node_goes_with_it),
		cmocka_unit_test(taints_that_are_told_or_come_with_a_machine_outlast_the_only_node),
		cmocka_unit_test(the_node_with_most_daemons_counts),
		cmocka_unit_test(daemons_take_places_of_pods),
		cmocka_unit_test(a_daemon_that_ends_is_forgotten_while_nodes_stand),
		cmocka_unit_test(a_broken_device_is_not_the_groups),
		cmocka_unit_test(a_taint_put_on_a_node_is_not_the_groups),
		cmocka_unit_test(a_taint_that_only_some_had_from_the_start_is_not_the_groups),
		cmocka_unit_test(the_taints_of_the_newest_node_count),
		cmocka_unit_test(the_zones_of_a_group_are_remembered),
		cmocka_unit_test(a_zone_where_no_machine_comes_is_forgotten),
		cmocka_unit_test(a_node_goes_before_the_manifest_and_that_before_the_cloud),
		cmocka_unit_test(taints_of_the_cloud_count_but_for_those_of_a_start),
		cmocka_unit_test(taints_that_are_known_to_go_shut_no_group),
		cmocka_unit_test(devices_that_the_cloud_names_stand_for_those_of_a_machine),
		cmocka_unit_test(a_tag_takes_no_gpus_from_a_machine),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
