/* Pods that wait: who could take them, and the sentence when nobody can. */
#include "tests/unit/cluster/model_objects.h"

#define NEW_POD(metadata, gpus, spec)                                \
	"{'metadata':{'namespace':'a','name':'p','uid':'u'" metadata \
	"},'spec':{'containers':[{'resources':{'limits':{" gpus "}}}]" spec "},'status':{'phase':'Pending'}}"
#define GPU "'nvidia.com/gpu':'1'"
#define NODE(name, labels, taints, allocatable)                                                                \
	"{'metadata':{'name':'" name "','uid':'" name "','labels':{'simulated.preheat.dev/node-group':" labels \
	"}},'spec':{'taints':[" taints "]},'status':{'allocatable':{" allocatable                              \
	"},'conditions':[{'type':'Ready','status':'True'}]}}"
#define G5                                                                                                      \
	NODE("g5-1",                                                                                            \
	     "'g5','kubernetes.io/hostname':'g5-1','gpu':'a10','topology.kubernetes.io/zone':'z1','size':'24'", \
	     "{'key':'nvidia.com/gpu','effect':'NoSchedule'},{'key':'node.kubernetes.io/"                       \
	     "not-ready','effect':'NoExecute'}",                                                                \
	     "'nvidia.com/gpu':'1','cpu':'7500m','memory':'30Gi'")
#define G5_ELSEWHERE                                                                    \
	NODE("g5-2", "'g5','gpu':'a10','topology.kubernetes.io/zone':'z2','size':'24'", \
	     "{'key':'nvidia.com/gpu','effect':'NoSchedule'}", "'nvidia.com/gpu':'1','cpu':'7500m','memory':'30Gi'")
#define P5                                                                                                           \
	NODE("p5-1", "'p5','gpu':'h100','topology.kubernetes.io/zone':'z1','size':'80'",                             \
	     "{'key':'nvidia.com/"                                                                                   \
	     "gpu','value':'present','effect':'NoSchedule'},{'key':'team','value':'x','effect':'PreferNoSchedule'}", \
	     "'nvidia.com/gpu':'8','cpu':'191','memory':'2Ti'")
#define TOLERATES ",'tolerations':[{'key':'nvidia.com/gpu','operator':'Exists'}]"
#define SELECTS(terms)                                                                                                 \
	TOLERATES ",'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms'" \
		  ":[" terms "]}}}"
#define EXPRESSION(text) SELECTS("{'matchExpressions':[" text "]}")

struct expected {
	const char *what, *pod;
	int groups; /* bit per group: 1 g5, 2 p5 */
	const char *why;
};

static int groups_of(const struct pending_shape *s)
{
	int bits = 0;
	for (size_t i = 0; i < s->group_count; i++)
		bits |= 1 << s->groups[i];
	return bits;
}

static void expect(struct cluster *c, const struct expected *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t count = 0;
	see_now(c, CLUSTER_PODS, e->pod);
	const struct pending_shape *shapes = cluster_pending(c, &a, &count);
	if (count != 1)
		fail_msg("%s: %zu shapes", e->what, count);
	if (groups_of(&shapes[0]) != e->groups)
		fail_msg("%s: groups %d, %s", e->what, groups_of(&shapes[0]), shapes[0].why);
	if (e->why == NULL)
		assert_null(shapes[0].why);
	else
		assert_string_equal(shapes[0].why, e->why);
	cluster_pod_gone(c, object_uid_of("u"), 0);
}

static const struct expected wanted_cases[] = {
	{ "any", NEW_POD("", GPU, TOLERATES), 3, NULL },
	{ "eight", NEW_POD("", "'nvidia.com/gpu':'8'", TOLERATES), 2, NULL },
	{ "sixteen", NEW_POD("", "'nvidia.com/gpu':'16'", TOLERATES), 0,
	  "wants 16 nvidia.com/gpu; largest node group p5 has 8 per node" },
	{ "another kind", NEW_POD("", "'amd.com/gpu':'1'", TOLERATES), 0,
	  "wants 1 amd.com/gpu; no node group has any" },
	{ "a profile that nobody has", NEW_POD("", "'nvidia.com/mig-1g.10gb':'1'", TOLERATES), 0,
	  "wants 1 nvidia.com/mig-1g.10gb; no node group has any" },
	{ "tolerates nothing", NEW_POD("", GPU, ""), 0,
	  "g5: does not tolerate the taint nvidia.com/gpu:NoSchedule; p5: does not tolerate the taint "
	  "nvidia.com/gpu=present:NoSchedule" },
	{ "tolerates one value",
	  NEW_POD("", GPU, ",'tolerations':[{'key':'nvidia.com/gpu','value':'present','effect':'NoSchedule'}]"), 2,
	  NULL },
	{ "tolerates another effect",
	  NEW_POD("", GPU, ",'tolerations':[{'key':'nvidia.com/gpu','operator':'Exists','effect':'NoExecute'}]"), 0,
	  "g5: does not tolerate the taint nvidia.com/gpu:NoSchedule; p5: does not tolerate the taint "
	  "nvidia.com/gpu=present:NoSchedule" },
	{ "tolerates all", NEW_POD("", GPU, ",'tolerations':[{'operator':'Exists'}]"), 3, NULL },
	{ "an empty key without Exists is none", NEW_POD("", GPU, ",'tolerations':[{'key':'','value':''}]"), 0,
	  "g5: does not tolerate the taint nvidia.com/gpu:NoSchedule; p5: does not tolerate the taint "
	  "nvidia.com/gpu=present:NoSchedule" },
	{ "selector", NEW_POD("", GPU, TOLERATES ",'nodeSelector':{'gpu':'h100'}"), 2, NULL },
	{ "selector that nobody fits", NEW_POD("", GPU, TOLERATES ",'nodeSelector':{'gpu':'b200'}"), 0,
	  "g5: its node selector wants gpu=b200, nodes have a10; p5: its node selector wants gpu=b200, nodes "
	  "have h100" },
	{ "label that nobody has", NEW_POD("", GPU, TOLERATES ",'nodeSelector':{'disk':'ssd'}"), 0,
	  "g5: its node selector wants disk=ssd, nodes have no such label; p5: its node selector wants "
	  "disk=ssd, nodes "
	  "have no such label" },
	{ "a zone of any node of the group",
	  NEW_POD("", GPU, TOLERATES ",'nodeSelector':{'topology.kubernetes.io/zone':'z2'}"), 1, NULL },
	{ "In", NEW_POD("", GPU, EXPRESSION("{'key':'gpu','operator':'In','values':['a100','h100']}")), 2, NULL },
	{ "NotIn", NEW_POD("", GPU, EXPRESSION("{'key':'gpu','operator':'NotIn','values':['h100']}")), 1, NULL },
	{ "NotIn, label absent", NEW_POD("", GPU, EXPRESSION("{'key':'x','operator':'NotIn','values':['h100']}")), 3,
	  NULL },
	{ "Exists", NEW_POD("", GPU, EXPRESSION("{'key':'gpu','operator':'Exists'}")), 3, NULL },
	{ "Exists, absent", NEW_POD("", GPU, EXPRESSION("{'key':'x','operator':'Exists'}")), 0,
	  "g5: its node affinity selects no such node; p5: its node affinity selects no such node" },
	{ "DoesNotExist", NEW_POD("", GPU, EXPRESSION("{'key':'x','operator':'DoesNotExist'}")), 3, NULL },
	{ "Gt", NEW_POD("", GPU, EXPRESSION("{'key':'size','operator':'Gt','values':['24']}")), 2, NULL },
	{ "Lt", NEW_POD("", GPU, EXPRESSION("{'key':'size','operator':'Lt','values':['80']}")), 1, NULL },
	{ "Gt of no number", NEW_POD("", GPU, EXPRESSION("{'key':'gpu','operator':'Gt','values':['24']}")), 0,
	  "g5: its node affinity selects no such node; p5: its node affinity selects no such node" },
	{ "an operator of the future", NEW_POD("", GPU, EXPRESSION("{'key':'gpu','operator':'Like','values':['h']}")),
	  0, "g5: its node affinity selects no such node; p5: its node affinity selects no such node" },
	{ "all expressions of a term",
	  NEW_POD("", GPU,
		  EXPRESSION("{'key':'gpu','operator':'Exists'},{'key':'size','operator':'In','values':['80']}")),
	  2, NULL },
	{ "any term",
	  NEW_POD("", GPU,
		  SELECTS("{'matchExpressions':[{'key':'gpu','operator':'In','values':['b200']}]},"
			  "{'matchExpressions':[{'key':'gpu','operator':'In','values':['a10']}]}")),
	  1, NULL },
	{ "an empty term selects nothing", NEW_POD("", GPU, SELECTS("{}")), 0,
	  "g5: its node affinity selects no such node; p5: its node affinity selects no such node" },
	{ "one node by its name",
	  NEW_POD("", GPU, SELECTS("{'matchFields':[{'key':'metadata.name','operator':'In','values':['g5-1']}]}")), 0,
	  "g5: its node affinity selects no such node; p5: its node affinity selects no such node" },
	{ "too much memory", NEW_POD("", GPU ",'memory':'64Gi'", TOLERATES), 2, NULL },
	{ "far too much memory", NEW_POD("", GPU ",'memory':'4Ti','cpu':'1'", TOLERATES), 0,
	  "g5: wants 4096.0Gi memory, a node has 30.0Gi; p5: wants 4096.0Gi memory, a node has 2048.0Gi" },
	{ "a little more than there is", NEW_POD("", GPU ",'cpu':'7501m'", TOLERATES ",'nodeSelector':{'gpu':'a10'}"),
	  0, "g5: wants 7501m cpu, a node has 7500m; p5: its node selector wants gpu=a10, nodes have h100" },
};

static void finds_who_could(void **state)
{
	(void)state;
	struct cluster *c = cluster_new();
	struct cluster_group groups[] = { group_named("g5", 1, 10), group_named("p5", 8, 10) };
	cluster_set_fleet(c, NULL, 0, groups, 2);
	see_now(c, CLUSTER_NODES, G5_ELSEWHERE);
	see_now(c, CLUSTER_NODES, G5);
	see_now(c, CLUSTER_NODES, P5);
	for (size_t i = 0; i < sizeof wanted_cases / sizeof wanted_cases[0]; i++)
		expect(c, &wanted_cases[i]);
	cluster_free(c);
}

/* What was learned outlives the nodes, and a fleet that is told anew. */
static void remembers_nodes_that_are_gone(void **state)
{
	(void)state;
	static const struct expected wanted = {
		"h100", NEW_POD("", "'nvidia.com/gpu':'8'", TOLERATES ",'nodeSelector':{'gpu':'h100'}"), 2, NULL
	};
	struct cluster *c = cluster_new();
	struct cluster_group groups[] = { group_named("g5", 1, 10), group_named("p5", 8, 10) };
	cluster_set_fleet(c, NULL, 0, groups, 2);
	see_now(c, CLUSTER_NODES, G5);
	see_now(c, CLUSTER_NODES, P5);
	cluster_node_gone(c, object_uid_of("g5-1"), 0);
	cluster_node_gone(c, object_uid_of("p5-1"), 0);
	expect(c, &wanted);
	cluster_set_fleet(c, NULL, 0, groups, 2);
	expect(c, &wanted);
	cluster_free(c);
}

/* Before a node was seen, only what was told counts against a pod. */
static void nodes_never_seen_get_the_benefit(void **state)
{
	(void)state;
	static const struct cluster_label label = { "gpu", "a10" };
	static const struct cluster_taint taint = { "reserved", "x", "NoSchedule" };
	static const struct expected cases[] = {
		{ "plain", NEW_POD("", GPU, ",'tolerations':[{'operator':'Exists'}]"), 3, NULL },
		{ "needs cpu", NEW_POD("", GPU ",'cpu':'500'", ",'tolerations':[{'operator':'Exists'}]"), 3, NULL },
		{ "unknown label",
		  NEW_POD("", GPU, ",'tolerations':[{'operator':'Exists'}],'nodeSelector':{'disk':'ssd'}"), 3, NULL },
		{ "known label",
		  NEW_POD("", GPU, ",'tolerations':[{'operator':'Exists'}],'nodeSelector':{'gpu':'h100'}"), 2, NULL },
		{ "known taint", NEW_POD("", GPU, ""), 2, NULL },
		{ "too many", NEW_POD("", "'nvidia.com/gpu':'2'", ",'tolerations':[{'operator':'Exists'}]"), 2, NULL },
		{ "another group", NEW_POD("", GPU, ",'nodeSelector':{'simulated.preheat.dev/node-group':'p5'}"), 2,
		  NULL },
	};
	struct cluster *c = cluster_new();
	struct cluster_group groups[] = { group_named("g5", 1, 10), group_named("p5", 8, 10) };
	groups[0].labels = &label;
	groups[0].label_count = 1;
	groups[0].taints = &taint;
	groups[0].taint_count = 1;
	cluster_set_fleet(c, NULL, 0, groups, 2);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		expect(c, &cases[i]);
	cluster_set_fleet(c, NULL, 0, NULL, 0);
	expect(c, &(struct expected){ "none", NEW_POD("", GPU, ""), 0, "there is no node group for it" });
	cluster_free(c);
}

/* Demand all the same: it is the limit that is told. */
static void tells_of_full_groups(void **state)
{
	(void)state;
	CLEANUP(arena_release) struct arena a = { 0 };
	struct cluster *c = cluster_new();
	struct cluster_group groups[] = { group_named("g5", 1, 1), group_named("p5", 8, 1) };
	size_t count = 0;
	cluster_set_fleet(c, NULL, 0, groups, 2);
	see_now(c, CLUSTER_PODS, NEW_POD("", GPU, TOLERATES));
	see_now(c, CLUSTER_NODES, G5);
	assert_null(cluster_pending(c, &a, &count)->full);
	see_now(c, CLUSTER_NODES, P5);
	const struct pending_shape *s = cluster_pending(c, &a, &count);
	assert_string_equal(s->full, "node group g5 has its most nodes, 1; node group p5 has its most nodes, 1");
	assert_null(s->why);
	cluster_free(c);
}

/* A thousand equal pods are one line, and the pool's own groups are the ones that count. */
static void tells_equal_pods_once(void **state)
{
	(void)state;
	struct cluster *c = cluster_new();
	struct cluster_group groups[] = { group_named("g5", 1, 10), group_named("p5", 8, 10) };
	static const struct cluster_label selector = { "app", "chat" };
	static const int only_g5[] = { 0 };
	struct cluster_pool pool = { .name = "chat",
				     .namespace = "a",
				     .selector = &selector,
				     .selector_count = 1,
				     .gpus_per_replica = 1,
				     .groups = only_g5,
				     .group_count = 1 };
	cluster_set_fleet(c, &pool, 1, groups, 2);
	char text[1024];
	for (int i = 0; i < 1000; i++) {
		snprintf(text, sizeof text,
			 "{'metadata':{'namespace':'a','name':'p-%03d','uid':'u%d','labels':{'app':'%s','n':'%d'}},"
			 "'spec':{'containers':[{'resources':{'limits':{'nvidia.com/gpu':'8'}}}]}}",
			 i, i, i % 4 == 0 ? "chat" : "other", i);
		see(c, CLUSTER_PODS, text, (struct moment){ 5000 - i, false });
	}
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t count = 0;
	const struct pending_shape *shapes = cluster_pending(c, &a, &count);
	assert_int_equal(count, 2);
	assert_int_equal(shapes[0].count + shapes[1].count, 1000);
	const struct pending_shape *ours = shapes[0].pool == 0 ? &shapes[0] : &shapes[1];
	const struct pending_shape *others = shapes[0].pool == 0 ? &shapes[1] : &shapes[0];
	assert_int_equal(ours->count, 250);
	assert_string_equal(ours->why, "wants 8 nvidia.com/gpu; largest node group g5 has 1 per node");
	assert_string_equal(ours->example->name, "p-996");
	assert_int_equal(ours->since, 5000 - 996);
	assert_int_equal(groups_of(others), 2);
	struct pool_view v = cluster_pool_view(c, 0, &a);
	assert_int_equal(v.unsatisfiable, 250);
	assert_int_equal(v.pending, 0);
	cluster_free(c);
}

static void see_waiting(struct cluster *c, const char *name, const char *cpu)
{
	char text[512];

	snprintf(text, sizeof text,
		 "{'metadata':{'namespace':'a','name':'%s','uid':'%s','labels':{'app':'m'}},'spec':{'containers':[{"
		 "'resources':{'requests':{'cpu':'%s'},'limits':{" GPU "}}}]" TOLERATES "},'status':{'phase':'Pending',"
		 "'conditions':[{'type':'PodScheduled','status':'False','reason':'Unschedulable'}]}}",
		 name, name, cpu);
	see_now(c, CLUSTER_PODS, text);
}

/* A machine of p5 (191 processors) is on its way, and g5 is full of nobody: whoever fits beside the others sits there.
 */
static void machines_on_their_way_are_taken_first(void **state)
{
	static const int groups[] = { 1 };
	static const struct cluster_label label = { "app", "m" };
	const struct cluster_group fleet[] = { group_named("g5", 1, 10), group_named("p5", 8, 10) };
	const struct cluster_pool pool = { .name = "m",
					   .namespace = "a",
					   .selector = &label,
					   .selector_count = 1,
					   .gpus_per_replica = 1,
					   .groups = groups,
					   .group_count = 1 };
	static const struct {
		const char *cpus[4];
		int64_t expected, joining, lacking;
	} cases[] = {
		{ { "10", "10", "10" }, 0, 0, 3 }, { { "10", "10", "10" }, 1, 3, 0 },	{ { "100", "100" }, 1, 1, 1 },
		{ { "100", "100" }, 2, 2, 0 },	   { { "100", "100", "80" }, 1, 2, 1 }, { { "500" }, 1, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct cluster *c = cluster_new();
		cluster_set_fleet(c, &pool, 1, fleet, 2);
		see_now(c, CLUSTER_NODES, P5);
		cluster_node_gone(c, object_uid_of("p5-1"), 0);
		for (size_t k = 0; k < 4 && cases[i].cpus[k]; k++) {
			const char name[] = { 'a', (char)('0' + k), '\0' };
			see_waiting(c, name, cases[i].cpus[k]);
		}
		cluster_expect(c, 1, cases[i].expected);
		struct pool_view v = cluster_pool_view(c, 0, &a);
		if (v.groups[0].joining != cases[i].joining || v.groups[0].lacking != cases[i].lacking)
			fail_msg("case %zu: %lld join, %lld lack", i, (long long)v.groups[0].joining,
				 (long long)v.groups[0].lacking);
		cluster_free(c);
	}
}

/* A pod of no pool: what it waits for, by what may hold it. */
static void pods_of_no_pool_are_told_of(void **state)
{
	static const struct {
		const char *pod, *stray, *why;
		bool has_node;
	} cases[] = {
		{ NEW_POD("", "'nvidia.com/gpu':'8'", TOLERATES),
		  "fits node group p5, no pool may use it: no WarmPool selects the pod, and nothing is bought for it",
		  NULL, false },
		{ NEW_POD("", "'nvidia.com/gpu':'16'", TOLERATES), NULL,
		  "wants 16 nvidia.com/gpu; largest node group p5 has 8 per node", false },
		{ NEW_POD("", "'nvidia.com/gpu':'8'", TOLERATES), NULL, NULL, true },
	};
	const struct cluster_group fleet[] = { group_named("g5", 1, 10), group_named("p5", 8, 10) };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct cluster *c = cluster_new();
		size_t count = 0;
		cluster_set_fleet(c, NULL, 0, fleet, 2);
		cluster_expect(c, 1, 1); /* it was bought for others */
		if (cases[i].has_node)
			see_now(c, CLUSTER_NODES, P5);
		see_now(c, CLUSTER_PODS, cases[i].pod);
		const struct pending_shape *shapes = cluster_pending(c, &a, &count);
		assert_int_equal(count, 1);
		assert_string_equal(shapes[0].stray ? shapes[0].stray : "", cases[i].stray ? cases[i].stray : "");
		assert_string_equal(shapes[0].why ? shapes[0].why : "", cases[i].why ? cases[i].why : "");
		assert_int_equal(shapes[0].placed, cases[i].has_node);
		cluster_free(c);
	}
}

/* A pod of no other pool; `age` counts from the oldest. */
static void see_asking(struct cluster *c, size_t age, int gpus, int priority)
{
	char text[512];

	snprintf(text, sizeof text,
		 "{'metadata':{'namespace':'a','name':'p%zu','uid':'p%zu'},'spec':{'priority':%d,'containers':[{'"
		 "resources':{"
		 "'limits':{'nvidia.com/gpu':'%d'}}}]" TOLERATES "},'status':{'phase':'Pending','conditions':[{'type':"
		 "'PodScheduled','status':'False','reason':'Unschedulable'}]}}",
		 age, age, priority, gpus);
	see_now(c, CLUSTER_PODS, text);
}

/* By price (g5 1 $, p5 6 $), beside each other, in the order of priority, as far as machines are to be had. */
static void the_pool_that_takes_any_gets_the_cheapest_machines(void **state)
{
	static const int both[] = { 1, 0 };
	static const struct {
		int gpus[4], priority[4];
		int64_t offered[2], expected;		/* of g5 and p5; of p5 */
		int64_t lacking[2], needless, stranded; /* stranded: GPUs */
	} cases[] = {
		{ { 1, 1 }, { 0 }, { 9, 9 }, 0, { 2, 0 }, 0, 0 },
		{ { 4, 1, 1 }, { 0 }, { 9, 9 }, 0, { 0, 1 }, 0, 0 },
		{ { 1, 4, 4 }, { 0 }, { 9, 9 }, 0, { 1, 1 }, 0, 0 },
		{ { 1, 1, 1 }, { 0 }, { 2, 9 }, 0, { 2, 1 }, 0, 0 },
		{ { 1, 1 }, { 0 }, { 0, 1 }, 0, { 0, 1 }, 0, 0 },
		{ { 1 }, { 0 }, { 0, 0 }, 0, { 0, 0 }, 0, 1 },
		{ { 8, 8 }, { 0 }, { 9, 1 }, 0, { 0, 1 }, 0, 8 },
		{ { 4, 8 }, { 0, 1 }, { 9, 1 }, 0, { 0, 1 }, 0, 4 },
		{ { 8 }, { 0 }, { 9, 9 }, 1, { 0, 0 }, 0, 0 },
		{ { 8 }, { 0 }, { 9, 9 }, 3, { 0, 0 }, 2, 0 },
		{ { 0 }, { 0 }, { 9, 9 }, 1, { 0, 0 }, 1, 0 },
		{ { 16 }, { 0 }, { 9, 9 }, 0, { 0, 0 }, 0, 0 },
	};
	struct cluster_group fleet[] = { group_named("g5", 1, 10), group_named("p5", 8, 10) };
	const struct cluster_pool pool = { .name = "any",
					   .namespace = "b",
					   .gpus_per_replica = 1,
					   .groups = both,
					   .group_count = 2,
					   .takes_any = true };

	(void)state;
	fleet[0].price = 1;
	fleet[1].price = 6;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct cluster *c = cluster_new();
		cluster_set_fleet(c, &pool, 1, fleet, 2);
		for (size_t k = 0; k < 4 && cases[i].gpus[k]; k++)
			see_asking(c, k, cases[i].gpus[k], cases[i].priority[k]);
		cluster_offer(c, 0, cases[i].offered[0]);
		cluster_offer(c, 1, cases[i].offered[1]);
		cluster_expect(c, 1, cases[i].expected);
		const struct pool_view v = cluster_pool_view(c, 0, &a);
		if (v.groups[1].lacking_nodes != cases[i].lacking[0] ||
		    v.groups[0].lacking_nodes != cases[i].lacking[1] ||
		    v.groups[0].needless_nodes != cases[i].needless || v.stranded_milli != cases[i].stranded * 1000)
			fail_msg("case %zu: %lld of g5 and %lld of p5 lack, %lld needless, %lld stranded", i,
				 (long long)v.groups[1].lacking_nodes, (long long)v.groups[0].lacking_nodes,
				 (long long)v.groups[0].needless_nodes, (long long)v.stranded_milli);
		cluster_free(c);
	}
}

/* A g5 costs $1, a p5 $6: machines are bought by turn as far as the money goes. */
static void the_budget_is_shared_by_turn(void **state)
{
	static const int both[] = { 1, 0 };
	static const struct {
		int gpus[4];
		int64_t budget, left, lacking[2], stranded; /* dollars; of g5 and p5; GPUs */
		const char *full;
		bool is_unpriced;
	} cases[] = {
		{ { 1, 1, 8 }, 8, 8, { 2, 1 }, 0, NULL, false },
		{ { 1, 1, 8 },
		  8,
		  7,
		  { 2, 0 },
		  8,
		  "fits node group p5, where more machines at $6.00 an hour are beyond the "
		  "budget of WarmPool any: $3.00 of $8.00 an hour are spent",
		  false },
		{ { 1, 1, 8 },
		  8,
		  7,
		  { 2, 0 },
		  8,
		  "fits node group p5, where more machines at 6 GPU hours an hour are beyond the "
		  "budget of WarmPool any: 3 GPU hours of 8 GPU hours an hour are spent",
		  true },
		{ { 1, 8, 1 },
		  8,
		  6,
		  { 2, 0 },
		  8,
		  "fits node group p5, where more machines at $6.00 an hour are beyond the "
		  "budget of WarmPool any: $4.00 of $8.00 an hour are spent",
		  false },
		{ { 8, 1, 1 },
		  8,
		  7,
		  { 1, 1 },
		  1,
		  "fits node group g5, where more machines at $1.00 an hour are beyond the "
		  "budget of WarmPool any: $8.00 of $8.00 an hour are spent; fits node "
		  "group p5, where more machines at $6.00 an hour are beyond the budget of "
		  "WarmPool any: $8.00 of $8.00 an hour are spent",
		  false },
		{ { 8 },
		  8,
		  -2,
		  { 0, 0 },
		  8,
		  "fits node group p5, where more machines at $6.00 an hour are beyond the budget of "
		  "WarmPool any: $10.00 of $8.00 an hour are spent",
		  false },
		{ { 8, 8 }, 0, 0, { 0, 2 }, 0, NULL, false },
	};
	struct cluster_group fleet[] = { group_named("g5", 1, 10), group_named("p5", 8, 10) };
	struct cluster_pool pool = { .name = "any",
				     .namespace = "b",
				     .gpus_per_replica = 1,
				     .groups = both,
				     .group_count = 2,
				     .takes_any = true };

	(void)state;
	fleet[0].price = 1000000;
	fleet[1].price = 6000000;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct cluster *c = cluster_new();
		const char *full = NULL;
		size_t count = 0;
		pool.is_unpriced = cases[i].is_unpriced;
		cluster_set_fleet(c, &pool, 1, fleet, 2);
		for (size_t k = 0; k < 4 && cases[i].gpus[k]; k++)
			see_asking(c, k, cases[i].gpus[k], 0);
		cluster_offer(c, 0, 9);
		cluster_offer(c, 1, 9);
		assert_int_equal(cluster_offer_money(c, cases[i].budget * 1000000, cases[i].left * 1000000),
				 cases[i].budget > 0);
		assert_false(cluster_offer_money(c, cases[i].budget * 1000000, cases[i].left * 1000000));
		const struct pool_view v = cluster_pool_view(c, 0, &a);
		assert_int_equal(v.groups[1].lacking_nodes, cases[i].lacking[0]);
		assert_int_equal(v.groups[0].lacking_nodes, cases[i].lacking[1]);
		assert_int_equal(v.stranded_milli, cases[i].stranded * 1000);
		const struct pending_shape *shapes = cluster_pending(c, &a, &count);
		for (size_t k = 0; k < count; k++)
			full = shapes[k].is_stranded ? shapes[k].full : full;
		if (cases[i].full == NULL)
			assert_null(full);
		else
			assert_string_equal(full, cases[i].full);
		cluster_free(c);
	}
}

/* Of groups never seen only what is told is sure: a group of which the labels are known goes before a cheaper one of
 * which they are guessed, and nobody who wants them sits down on the other's machine. */
static void what_is_told_goes_before_what_may_be(void **state)
{
	static const int both[] = { 1, 0 };
	static const struct cluster_label a10 = { "gpu", "a10" }, h100 = { "gpu", "h100" };
	static const struct {
		const char *asks;
		const struct cluster_label *labels[2]; /* of g5 and p5 */
		bool is_seen, has_others;	       /* p5; that ask for nothing and come first */
		int64_t offered[2], lacking[2];	       /* of g5 and p5 */
	} cases[] = {
		{ "'nodeSelector':{'gpu':'h100'}", { NULL, &h100 }, false, false, { 9, 9 }, { 0, 1 } },
		{ "'nodeSelector':{'gpu':'h100'}", { NULL, NULL }, true, false, { 9, 9 }, { 0, 1 } },
		{ "'nodeSelector':{'gpu':'h100'}", { NULL, &h100 }, false, true, { 9, 9 }, { 1, 1 } },
		{ "'nodeSelector':{'gpu':'h100'}", { NULL, &h100 }, false, false, { 9, 0 }, { 1, 0 } },
		{ "'nodeSelector':{'gpu':'h100'}", { &a10, &h100 }, false, false, { 9, 0 }, { 0, 0 } },
		{ "'nodeSelector':{'gpu':'h100'}", { NULL, &a10 }, false, false, { 9, 9 }, { 1, 0 } },
		{ "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[{"
		  "'matchExpressions':[{'key':'gpu','operator':'In','values':['h100','h200']}]}]}}}",
		  { NULL, &h100 },
		  false,
		  false,
		  { 9, 9 },
		  { 0, 1 } },
		{ "'priority':0", { NULL, &h100 }, false, false, { 9, 9 }, { 1, 0 } },
		{ "'nodeSelector':{'gpu':'a10'}", { &a10, &h100 }, false, false, { 9, 9 }, { 1, 0 } },
	};
	const struct cluster_pool pool = { .name = "any",
					   .namespace = "b",
					   .gpus_per_replica = 1,
					   .groups = both,
					   .group_count = 2,
					   .takes_any = true };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct cluster *c = cluster_new();
		struct cluster_group fleet[] = { group_named("g5", 1, 10), group_named("p5", 8, 10) };
		char text[700];
		for (size_t g = 0; g < 2; g++) {
			fleet[g].price = g == 0 ? 1 : 6;
			fleet[g].labels = cases[i].labels[g];
			fleet[g].label_count = cases[i].labels[g] != NULL;
		}
		cluster_set_fleet(c, &pool, 1, fleet, 2);
		if (cases[i].is_seen) {
			see_now(c, CLUSTER_NODES, P5);
			cluster_node_gone(c, object_uid_of("p5-1"), 0);
		}
		snprintf(text, sizeof text, NEW_POD("", GPU, TOLERATES ",%s"), cases[i].asks);
		see_now(c, CLUSTER_PODS, text);
		if (cases[i].has_others)
			see_asking(c, 0, 1, 5);
		cluster_offer(c, 0, cases[i].offered[0]);
		cluster_offer(c, 1, cases[i].offered[1]);
		const struct pool_view v = cluster_pool_view(c, 0, &a);
		if (v.groups[1].lacking_nodes != cases[i].lacking[0] ||
		    v.groups[0].lacking_nodes != cases[i].lacking[1])
			fail_msg("case %zu: %lld of g5 and %lld of p5 lack", i, (long long)v.groups[1].lacking_nodes,
				 (long long)v.groups[0].lacking_nodes);
		cluster_free(c);
	}
}

static void expect_lacking(struct cluster *c, size_t g5, size_t p5, int64_t of_g5, int64_t of_p5)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const struct pool_view v = cluster_pool_view(c, 0, &a);
	assert_int_equal(v.groups[g5].lacking_nodes, of_g5);
	assert_int_equal(v.groups[p5].lacking_nodes, of_p5);
}

/* A machine that may not do was bought while the group that does had none: it is waited for, though that one has again
 * meanwhile. For all others the sure one is bought. */
static void a_machine_bought_for_a_pod_is_its_own(void **state)
{
	static const int groups[] = { 0, 1 };
	static const struct cluster_label h100 = { "gpu", "h100" };
	const struct cluster_pool pool = { .name = "any",
					   .namespace = "b",
					   .gpus_per_replica = 1,
					   .groups = groups,
					   .group_count = 2,
					   .takes_any = true };
	CLEANUP(arena_release) struct arena a = { 0 };
	struct cluster_group fleet[] = { group_named("g5", 1, 10), group_named("p5", 1, 10) };
	struct cluster_group turned[] = { group_named("p5", 1, 10), group_named("g5", 1, 10) };
	struct cluster *c = cluster_new();
	size_t count = 0;

	(void)state;
	fleet[1].labels = turned[0].labels = &h100;
	fleet[1].label_count = turned[0].label_count = 1;
	fleet[1].price = turned[0].price = 6;
	cluster_set_fleet(c, &pool, 1, fleet, 2);
	see_now(c, CLUSTER_PODS, NEW_POD("", GPU, TOLERATES ",'nodeSelector':{'gpu':'h100'}"));
	cluster_offer(c, 0, 9);
	expect_lacking(c, 0, 1, 1, 0);
	cluster_expect(c, 0, 1); /* bought */
	expect_lacking(c, 0, 1, 0, 0);
	const struct pod_order *orders = cluster_pod_orders(c, &a, &count);
	assert_int_equal(count, 1);
	assert_int_equal(orders[0].group, 0);
	cluster_order_is_told(c, &orders[0]);
	cluster_offer(c, 1, 9);
	expect_lacking(c, 0, 1, 0, 0);
	cluster_set_fleet(c, &pool, 1, turned, 2);
	cluster_expect(c, 1, 2);
	cluster_offer(c, 0, 9);
	cluster_offer(c, 1, 9);
	expect_lacking(c, 1, 0, 0, 0);
	see_now(c, CLUSTER_PODS,
		"{'metadata':{'namespace':'a','name':'q','uid':'v'},'spec':{'containers':[{'resources':{'limits':{" GPU
		"}}}],'nodeSelector':{'gpu':'h100'}" TOLERATES "},'status':{'phase':'Pending'}}");
	expect_lacking(c, 1, 0, 0, 1);
	cluster_expect(c, 0, 1); /* bought for the second, and the first does not take it */
	expect_lacking(c, 1, 0, 0, 0);
	cluster_expect(c, 0, 0);
	expect_lacking(c, 1, 0, 0, 1);
	cluster_expect(c, 1, 0); /* it does not come */
	expect_lacking(c, 1, 0, 0, 2);
	cluster_free(c);
}

/* A pool of a group that may do and one that does, as long as only the first could be had; and that many pods. */
static struct cluster *bought_for(size_t pods)
{
	static const int groups[] = { 0, 1 };
	static const struct cluster_label h100 = { "gpu", "h100" };
	const struct cluster_pool pool = { .name = "any",
					   .namespace = "b",
					   .gpus_per_replica = 1,
					   .groups = groups,
					   .group_count = 2,
					   .takes_any = true };
	struct cluster_group fleet[] = { group_named("g5", 1, 10), group_named("p5", 1, 10) };
	struct cluster *c = cluster_new();
	char pod[512];

	fleet[1].labels = &h100;
	fleet[1].label_count = 1;
	fleet[1].price = 6;
	cluster_set_fleet(c, &pool, 1, fleet, 2);
	for (size_t i = 0; i < pods; i++) {
		snprintf(pod, sizeof pod,
			 "{'metadata':{'namespace':'a','name':'p%zu','uid':'u%zu'},'spec':{'containers':[{'resources':{"
			 "'limits':{" GPU "}}}],'nodeSelector':{'gpu':'h100'}" TOLERATES
			 "},'status':{'phase':'Pending'}}",
			 i, i);
		see_now(c, CLUSTER_PODS, pod);
	}
	cluster_offer(c, 0, 9);
	cluster_expect(c, 0, (int64_t)pods);
	return c;
}

/* Events go out one after the other. */
static void a_machine_is_its_own_before_its_event(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct cluster *c = bought_for(2);
	size_t count;

	(void)state;
	const struct pod_order *orders = cluster_pod_orders(c, &a, &count);
	assert_int_equal(count, 2);
	cluster_order_is_told(c, &orders[0]);
	cluster_offer(c, 1, 9);
	expect_lacking(c, 0, 1, 0, 0);
	orders = cluster_pod_orders(c, &a, &count);
	assert_int_equal(count, 1); /* not told yet */
	cluster_expect(c, 0, 0);
	expect_lacking(c, 0, 1, 0, 2);
	cluster_free(c);
}

/* Who bought them is not there any more, and which is whose was written down nowhere. */
static void what_was_on_its_way_at_the_start_is_for_those_who_waited(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct cluster *c = bought_for(2);
	size_t count;

	(void)state;
	cluster_expect(c, 0, 1);
	cluster_offer(c, 1, 9); /* had again while nobody led */
	expect_lacking(c, 0, 1, 0, 1);
	cluster_pod_orders(c, &a, &count);
	assert_int_equal(count, 1);
	expect_lacking(c, 0, 1, 0, 1);
	cluster_expect(c, 0, 2); /* from now on what comes beyond is for others */
	expect_lacking(c, 0, 1, 0, 1);
	cluster_forget_owners(c); /* another one led for a while */
	expect_lacking(c, 0, 1, 0, 0);
	cluster_free(c);
}

/* MIG slices, shares and GPUs of others, before any node was seen. */
static void devices_of_other_names_are_bought(void **state)
{
	static const int both[] = { 0, 1 };
	static const struct cluster_device slices[] = { { "nvidia.com/mig-1g.10gb", 14 },
							{ "nvidia.com/mig-3g.40gb", 2 } };
	static const struct {
		const char *asks, *why;
		size_t pods;
		int64_t lacking[2]; /* of g5, of the group with slices */
	} cases[] = {
		{ "'nvidia.com/mig-1g.10gb':'1'", NULL, 3, { 0, 1 } },
		{ "'nvidia.com/mig-1g.10gb':'7'", NULL, 3, { 0, 2 } },
		{ "'nvidia.com/mig-3g.40gb':'1'", NULL, 3, { 0, 2 } },
		{ "'nvidia.com/gpu':'1'", NULL, 1, { 1, 0 } },
		{ "'nvidia.com/mig-3g.40gb':'3'",
		  "wants 3 nvidia.com/mig-3g.40gb; largest node group slices has 2 per node",
		  1,
		  { 0, 0 } },
		{ "'nvidia.com/gpu.shared':'1'", "wants 1 nvidia.com/gpu.shared; no node group has any", 1, { 0, 0 } },
		{ "'nvidia.com/gpu':'2'", "wants 2 nvidia.com/gpu; largest node group g5 has 1 per node", 1, { 0, 0 } },
	};
	struct cluster_group fleet[] = { group_named("g5", 1, 10), group_named("slices", 2, 10) };
	const struct cluster_pool pool = { .name = "any",
					   .namespace = "b",
					   .gpus_per_replica = 1,
					   .groups = both,
					   .group_count = 2,
					   .takes_any = true };

	(void)state;
	fleet[1].devices = slices;
	fleet[1].device_count = 2;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct cluster *c = cluster_new();
		size_t count = 0;
		cluster_set_fleet(c, &pool, 1, fleet, 2);
		for (size_t k = 0; k < cases[i].pods; k++) {
			char text[512];
			snprintf(text, sizeof text,
				 "{'metadata':{'namespace':'a','name':'p%zu','uid':'p%zu'},'spec':{'containers':[{"
				 "'resources':{'limits':{%s}}}]},'status':{'phase':'Pending'}}",
				 k, k, cases[i].asks);
			see_now(c, CLUSTER_PODS, text);
		}
		cluster_offer(c, 0, 9);
		cluster_offer(c, 1, 9);
		const struct pool_view v = cluster_pool_view(c, 0, &a);
		const struct pending_shape *shapes = cluster_pending(c, &a, &count);
		assert_int_equal(count, 1);
		if (v.groups[0].lacking_nodes != cases[i].lacking[0] ||
		    v.groups[1].lacking_nodes != cases[i].lacking[1])
			fail_msg("case %zu: %lld and %lld lack", i, (long long)v.groups[0].lacking_nodes,
				 (long long)v.groups[1].lacking_nodes);
		assert_string_equal(shapes[0].why ? shapes[0].why : "", cases[i].why ? cases[i].why : "");
		cluster_free(c);
	}
}

/* Cluster Autoscaler's constant: below -10 a pod asks for no machine. */
static void expendable_pods_ask_for_no_machine(void **state)
{
	static const int groups[] = { 0 };
	static const struct {
		int priority;
		int64_t lacking;
		const char *note;
	} cases[] = { { -10, 1, NULL },
		      { -11, 0, "its priority -11 is below -10: it is expendable, and no machine is bought for it" } };
	const struct cluster_group group = group_named("g5", 1, 10);
	const struct cluster_pool pool = { .name = "any",
					   .namespace = "b",
					   .gpus_per_replica = 1,
					   .groups = groups,
					   .group_count = 1,
					   .takes_any = true };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct cluster *c = cluster_new();
		size_t count = 0;
		cluster_set_fleet(c, &pool, 1, &group, 1);
		cluster_offer(c, 0, 9);
		see_asking(c, 0, 1, cases[i].priority);
		const struct pool_view v = cluster_pool_view(c, 0, &a);
		assert_int_equal(v.groups[0].lacking_nodes, cases[i].lacking);
		assert_int_equal(v.pending + v.unsatisfiable, cases[i].lacking);
		const struct pod_note *notes = cluster_pod_notes(c, &a, &count);
		assert_int_equal(count, cases[i].note != NULL);
		if (cases[i].note != NULL)
			assert_string_equal(notes[0].text, cases[i].note);
		const struct pending_shape *shapes = cluster_pending(c, &a, &count);
		assert_int_equal(count, 1);
		assert_null(shapes[0].stray);
		cluster_free(c);
	}
}

/* The scheduler makes room there for the first of two; victims end with their grace. */
static void a_nominated_pod_waits_for_its_node(void **state)
{
	static const int groups[] = { 0 };
	static const struct {
		const char *node;
		int64_t lacking;
	} cases[] = { { "", 2 }, { "g5-1", 1 }, { "gone", 2 } };
	const struct cluster_group group = group_named("g5", 1, 10);
	const struct cluster_pool pool = { .name = "any",
					   .namespace = "b",
					   .gpus_per_replica = 1,
					   .groups = groups,
					   .group_count = 1,
					   .takes_any = true };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct cluster *c = cluster_new();
		char text[1024];
		cluster_set_fleet(c, &pool, 1, &group, 1);
		cluster_offer(c, 0, 9);
		see_now(c, CLUSTER_NODES, NODE("g5-1", "'g5'", "", "'nvidia.com/gpu':'1','cpu':'8'"));
		see_now(c, CLUSTER_PODS,
			"{'metadata':{'namespace':'a','name':'v','uid':'v'},'spec':{'nodeName':'g5-1','priority':0,"
			"'containers':[{'resources':{'limits':{" GPU "}}}]},'status':{'phase':'Running'}}");
		for (int k = 0; k < 2; k++) {
			snprintf(text, sizeof text,
				 "{'metadata':{'namespace':'a','name':'p%d','uid':'p%d'},'spec':{'priority':%d,"
				 "'containers':[{'resources':{'limits':{" GPU "}}}]},'status':{'phase':'Pending',"
				 "'nominatedNodeName':'%s','conditions':[{'type':'PodScheduled','status':'False',"
				 "'reason':'Unschedulable'}]}}",
				 k, k, 100 - k, k == 0 ? cases[i].node : "");
			see_now(c, CLUSTER_PODS, text);
		}
		assert_int_equal(cluster_pool_view(c, 0, &a).groups[0].lacking_nodes, cases[i].lacking);
		cluster_free(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_who_could),
		cmocka_unit_test(remembers_nodes_that_are_gone),
		cmocka_unit_test(nodes_never_seen_get_the_benefit),
		cmocka_unit_test(tells_of_full_groups),
		cmocka_unit_test(tells_equal_pods_once),
		cmocka_unit_test(machines_on_their_way_are_taken_first),
		cmocka_unit_test(pods_of_no_pool_are_told_of),
		cmocka_unit_test(devices_of_other_names_are_bought),
		cmocka_unit_test(the_pool_that_takes_any_gets_the_cheapest_machines),
		cmocka_unit_test(the_budget_is_shared_by_turn),
		cmocka_unit_test(expendable_pods_ask_for_no_machine),
		cmocka_unit_test(a_nominated_pod_waits_for_its_node),
		cmocka_unit_test(what_is_told_goes_before_what_may_be),
		cmocka_unit_test(a_machine_bought_for_a_pod_is_its_own),
		cmocka_unit_test(a_machine_is_its_own_before_its_event),
		cmocka_unit_test(what_was_on_its_way_at_the_start_is_for_those_who_waited),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
