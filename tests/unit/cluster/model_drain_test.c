/* Which nodes can be emptied, and whose fault it is when one cannot. */
#include "tests/unit/cluster/model_objects.h"

#define NODE(metadata) \
	"{'metadata':{'name':'n','uid':'n'" metadata "},'status':{'conditions':[{'type':'Ready','status':'True'}]}}"
#define IN(space, name, metadata, spec, status)                                            \
	"{'metadata':{'namespace':'" space "','name':'" name "','uid':'" name "'" metadata \
	"},'spec':{'nodeName':'n'" spec "},'status':{" status "}}"
#define POD(metadata, spec) IN("llm", "p", ",'labels':{'app':'chat'}" metadata, spec, "'phase':'Running'")
#define OWNED		    ",'ownerReferences':[{'kind':'ReplicaSet','name':'r','uid':'r','controller':true}]"
#define OF(kind)	    ",'ownerReferences':[{'kind':'" kind "','name':'r','uid':'r','controller':true}]"
#define SAYS(text)	    ",'annotations':{" text "}"
#define EVICT		    "'cluster-autoscaler.kubernetes.io/safe-to-evict':"
#define FILES		    ",'volumes':[{'name':'v','emptyDir':{}}]"
#define BUDGET(name, allowed)                                           \
	"{'metadata':{'namespace':'llm','name':'" name "','uid':'" name \
	"'},'spec':{'selector':{'matchLabels':{'app':'chat'}}},'status':{'disruptionsAllowed':" allowed "}}"

#define UNREADY_BUDGET(policy, healthy, desired)                                                                   \
	"{'metadata':{'namespace':'llm','name':'b','uid':'b'},'spec':{'selector':{'matchLabels':{'app':'chat'}},'" \
	"unhealthyPodEvictionPolicy':'" policy "'},'status':{'disruptionsAllowed':0,'currentHealthy':" healthy     \
	",'desiredHealthy':" desired "}}"
#define SERVES "'phase':'Running','conditions':[{'type':'Ready','status':'True'}]"

static const struct {
	const char *what, *node, *pod, *budgets[2];
	int evicts_pool;
	enum drain_reason reason;
	const char *text;
	size_t evicted;
} blockers[] = {
	{ "replicated", NODE(""), POD(OWNED, ""), { NULL }, -1, DRAIN_POSSIBLE, "", 1 },
	{ "bare",
	  NODE(""),
	  POD("", ""),
	  { NULL },
	  -1,
	  DRAIN_NOT_REPLICATED,
	  "pod llm/p has no controller that would make a new one",
	  1 },
	{ "bare, of the pool that is shrunk", NODE(""), POD("", ""), { NULL }, 0, DRAIN_POSSIBLE, "", 1 },
	{ "bare, and expendable",
	  NODE(""),
	  IN("llm", "p", "", ",'priority':-11", "'phase':'Running'"),
	  { NULL },
	  -1,
	  DRAIN_POSSIBLE,
	  "",
	  1 },
	{ "bare, and not quite expendable",
	  NODE(""),
	  IN("llm", "p", "", ",'priority':-10", "'phase':'Running'"),
	  { NULL },
	  -1,
	  DRAIN_NOT_REPLICATED,
	  "pod llm/p has no controller that would make a new one",
	  1 },
	{ "bare, of a pool, whatever its priority",
	  NODE(""),
	  POD("", ",'priority':-11"),
	  { NULL },
	  -1,
	  DRAIN_NOT_REPLICATED,
	  "pod llm/p has no controller that would make a new one",
	  1 },
	{ "bare, but safe", NODE(""), POD(SAYS(EVICT "'true'"), ""), { NULL }, -1, DRAIN_POSSIBLE, "", 1 },
	{ "static", NODE(""), POD(OF("Node"), ""), { NULL }, -1, DRAIN_POSSIBLE, "", 0 },
	{ "daemon", NODE(""), POD(OF("DaemonSet"), FILES), { NULL }, -1, DRAIN_POSSIBLE, "", 0 },
	{ "going already",
	  NODE(""),
	  POD(",'deletionTimestamp':'2026-11-21T00:00:00Z'", ""),
	  { NULL },
	  -1,
	  DRAIN_POSSIBLE,
	  "",
	  0 },
	{ "done",
	  NODE(""),
	  IN("llm", "p", "", ",'containers':[{'resources':{'limits':{'nvidia.com/gpu':1}}}]", "'phase':'Succeeded'"),
	  { NULL },
	  -1,
	  DRAIN_POSSIBLE,
	  "",
	  0 },
	{ "to be left to finish",
	  NODE(""),
	  POD(OWNED SAYS(EVICT "'on-completion'"), ""),
	  { NULL },
	  -1,
	  DRAIN_ON_COMPLETION,
	  "pod llm/p is to be left to finish",
	  1 },
	{ "to be left to finish, in the pool",
	  NODE(""),
	  POD(OWNED SAYS(EVICT "'on-completion'"), ""),
	  { NULL },
	  0,
	  DRAIN_ON_COMPLETION,
	  "pod llm/p is to be left to finish",
	  1 },
	{ "never",
	  NODE(""),
	  POD(OWNED SAYS(EVICT "'false'"), ""),
	  { NULL },
	  0,
	  DRAIN_NOT_SAFE,
	  "pod llm/p says that it must not be evicted",
	  1 },
	{ "not for an hour",
	  NODE(""),
	  POD(OWNED SAYS("'karpenter.sh/do-not-disrupt':'1h'"), ""),
	  { NULL },
	  -1,
	  DRAIN_NOT_SAFE,
	  "pod llm/p says that it must not be evicted",
	  1 },
	{ "not for a second, which is over",
	  NODE(""),
	  POD(OWNED SAYS("'karpenter.sh/do-not-disrupt':'1s'"), ""),
	  { NULL },
	  -1,
	  DRAIN_POSSIBLE,
	  "",
	  1 },
	{ "files",
	  NODE(""),
	  POD(OWNED, FILES),
	  { NULL },
	  -1,
	  DRAIN_LOCAL_STORAGE,
	  "pod llm/p keeps files on the node",
	  1 },
	{ "files, in the pool", NODE(""), POD(OWNED, FILES), { NULL }, 0, DRAIN_POSSIBLE, "", 1 },
	{ "files, but safe", NODE(""), POD(OWNED SAYS(EVICT "'true'"), FILES), { NULL }, -1, DRAIN_POSSIBLE, "", 1 },
	{ "of the system",
	  NODE(""),
	  IN("kube-system", "p", OWNED, "", ""),
	  { NULL },
	  -1,
	  DRAIN_SYSTEM_POD,
	  "pod kube-system/p is of kube-system and has no disruption budget",
	  1 },
	{ "budget left", NODE(""), POD(OWNED, ""), { BUDGET("b", "1") }, -1, DRAIN_POSSIBLE, "", 1 },
	{ "budget spent",
	  NODE(""),
	  POD(OWNED, ""),
	  { BUDGET("b", "0") },
	  -1,
	  DRAIN_BUDGET,
	  "pod llm/p may not be disrupted now: budget b allows none",
	  1 },
	{ "budget spent, in the pool",
	  NODE(""),
	  POD(OWNED, ""),
	  { BUDGET("b", "0") },
	  0,
	  DRAIN_BUDGET,
	  "pod llm/p may not be disrupted now: budget b allows none",
	  1 },
	{ "budget spent, though it says safe",
	  NODE(""),
	  POD(OWNED SAYS(EVICT "'true'"), ""),
	  { BUDGET("b", "0") },
	  -1,
	  DRAIN_BUDGET,
	  "pod llm/p may not be disrupted now: budget b allows none",
	  1 },
	{ "budget spent, and a pod that is not ready",
	  NODE(""),
	  POD(OWNED, ""),
	  { UNREADY_BUDGET("AlwaysAllow", "1", "2") },
	  -1,
	  DRAIN_POSSIBLE,
	  "",
	  1 },
	{ "budget spent, and one that is",
	  NODE(""),
	  IN("llm", "p", ",'labels':{'app':'chat'}" OWNED, "", SERVES),
	  { UNREADY_BUDGET("AlwaysAllow", "1", "2") },
	  -1,
	  DRAIN_BUDGET,
	  "pod llm/p may not be disrupted now: budget b allows none",
	  1 },
	{ "budget spent, and too few are healthy",
	  NODE(""),
	  POD(OWNED, ""),
	  { UNREADY_BUDGET("IfHealthyBudget", "1", "2") },
	  -1,
	  DRAIN_BUDGET,
	  "pod llm/p may not be disrupted now: budget b allows none",
	  1 },
	{ "budget spent, and just enough are healthy without it",
	  NODE(""),
	  POD(OWNED, ""),
	  { UNREADY_BUDGET("IfHealthyBudget", "2", "2") },
	  -1,
	  DRAIN_POSSIBLE,
	  "",
	  1 },
	{ "two budgets",
	  NODE(""),
	  POD(OWNED, ""),
	  { BUDGET("b", "1"), BUDGET("a", "1") },
	  -1,
	  DRAIN_BUDGETS_MISCONFIGURED,
	  "pod llm/p is selected by more than one disruption budget (a, b): the API server refuses to evict it",
	  1 },
	{ "a node that must stay",
	  NODE(SAYS("'cluster-autoscaler.kubernetes.io/scale-down-disabled':'true'")),
	  POD(OWNED, ""),
	  { NULL },
	  -1,
	  DRAIN_NODE_PROTECTED,
	  "an annotation of the node says that it must stay",
	  1 },
	{ "somebody else's node",
	  NODE(",'labels':{'karpenter.sh/nodepool':'x'}"),
	  POD("", ""),
	  { NULL },
	  -1,
	  DRAIN_NODE_FOREIGN,
	  "the node is in the care of another autoscaler",
	  1 },
};

static void finds_blockers(void **state)
{
	(void)state;
	static const struct cluster_label selector = { "app", "chat" };
	struct cluster_pool pool = { .name = "chat", .namespace = "llm", .selector = &selector, .selector_count = 1 };
	for (size_t i = 0; i < sizeof blockers / sizeof blockers[0]; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct cluster *c = cluster_new();
		cluster_set_fleet(c, &pool, 1, NULL, 0);
		see_now(c, CLUSTER_NODES, blockers[i].node);
		see_now(c, CLUSTER_PODS, blockers[i].pod);
		for (size_t k = 0; k < 2 && blockers[i].budgets[k] != NULL; k++)
			see_now(c, CLUSTER_BUDGETS, blockers[i].budgets[k]);
		struct drain_verdict v =
			cluster_drain(c, cluster_node(c, "n"), blockers[i].evicts_pool, 1000000 + MINUTE, &a);
		if (v.reason != blockers[i].reason || strcmp(v.text, blockers[i].text) != 0 ||
		    v.evict_count != blockers[i].evicted)
			fail_msg("%s: %s '%s' %zu", blockers[i].what, drain_reason_name(v.reason), v.text,
				 v.evict_count);
		cluster_free(c);
	}
}

static void placeholders_always_go(void **state)
{
	(void)state;
	CLEANUP(arena_release) struct arena a = { 0 };
	struct cluster *c = cluster_new();
	see_now(c, CLUSTER_NODES, NODE(""));
	see_now(c, CLUSTER_PODS, IN("llm", "p", ",'labels':{'preheat.dev/placeholder':'chat'}", FILES, ""));
	assert_int_equal(cluster_drain(c, cluster_node(c, "n"), -1, 0, &a).reason, DRAIN_POSSIBLE);
	cluster_free(c);
}

/* Whom a budget selects: expressions too, and only in its namespace. */
static void budgets_select(void **state)
{
	(void)state;
	static const struct {
		const char *space, *selector;
		enum drain_reason reason;
	} cases[] = {
		{ "llm", "'matchLabels':{'app':'chat'}", DRAIN_BUDGET },
		{ "llm", "'matchLabels':{'app':'chat','x':'y'}", DRAIN_POSSIBLE },
		{ "llm", "", DRAIN_BUDGET },
		{ "other", "", DRAIN_POSSIBLE },
		{ "llm", "'matchExpressions':[{'key':'app','operator':'In','values':['chat','code']}]", DRAIN_BUDGET },
		{ "llm", "'matchExpressions':[{'key':'app','operator':'NotIn','values':['chat']}]", DRAIN_POSSIBLE },
		{ "llm", "'matchExpressions':[{'key':'x','operator':'Exists'}]", DRAIN_POSSIBLE },
		{ "llm", "'matchLabels':{'app':'chat'},'matchExpressions':[{'key':'x','operator':'DoesNotExist'}]",
		  DRAIN_BUDGET },
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct cluster *c = cluster_new();
		char text[1024];
		see_now(c, CLUSTER_NODES, NODE(""));
		see_now(c, CLUSTER_PODS, POD(OWNED, ""));
		snprintf(text, sizeof text,
			 "{'metadata':{'namespace':'%s','name':'b','uid':'b'},'spec':{'selector':{%s}},"
			 "'status':{'disruptionsAllowed':0}}",
			 cases[i].space, cases[i].selector);
		see_now(c, CLUSTER_BUDGETS, text);
		if (cluster_drain(c, cluster_node(c, "n"), -1, 0, &a).reason != cases[i].reason)
			fail_msg("%s", cases[i].selector);
		cluster_budget_gone(c, object_uid_of("b"));
		assert_int_equal(cluster_drain(c, cluster_node(c, "n"), -1, 0, &a).reason, DRAIN_POSSIBLE);
		cluster_free(c);
	}
}

/* Lesser work first. */
static void evicts_by_priority(void **state)
{
	(void)state;
	CLEANUP(arena_release) struct arena a = { 0 };
	struct cluster *c = cluster_new();
	see_now(c, CLUSTER_NODES, NODE(""));
	see_now(c, CLUSTER_PODS, IN("llm", "b", OWNED, ",'priority':100", ""));
	see_now(c, CLUSTER_PODS, IN("llm", "c", OWNED, ",'priority':-10", ""));
	see_now(c, CLUSTER_PODS, IN("llm", "a", OWNED, ",'priority':100", ""));
	see_now(c, CLUSTER_PODS, IN("abc", "z", OWNED, ",'priority':100", ""));
	struct drain_verdict v = cluster_drain(c, cluster_node(c, "n"), -1, 0, &a);
	char order[16] = "";
	for (size_t i = 0; i < v.evict_count; i++)
		order[i] = v.evict[i]->name[0];
	assert_string_equal(order, "czab");
	cluster_free(c);
}

static void tells_quotas(void **state)
{
	(void)state;
	CLEANUP(arena_release) struct arena a = { 0 };
	struct cluster *c = cluster_new();
	size_t count = 0;
	assert_true(see_now(
		c, CLUSTER_QUOTAS,
		"{'metadata':{'namespace':'b','name':'q','uid':'q1'},'status':{'hard':{'requests.nvidia.com/gpu':'8',"
		"'pods':'10'},'used':{'requests.nvidia.com/gpu':'3','pods':'3'}}}"));
	assert_true(see_now(
		c, CLUSTER_QUOTAS,
		"{'metadata':{'namespace':'a','name':'q','uid':'q2'},'status':{'hard':{'requests.amd.com/gpu':'0'}}}"));
	assert_false(see_now(c, CLUSTER_QUOTAS,
			     "{'metadata':{'namespace':'a','name':'r','uid':'q3'},'status':{'hard':{'pods':'10'}}}"));
	struct quota *quotas = cluster_quotas(c, &a, &count);
	assert_int_equal(count, 2);
	assert_string_equal(quotas[0].resource, "requests.amd.com/gpu");
	assert_int_equal(quotas[0].hard, 0);
	assert_string_equal(quotas[1].namespace, "b");
	assert_int_equal(quotas[1].hard, 8);
	assert_int_equal(quotas[1].used, 3);
	cluster_quota_gone(c, object_uid_of("q1"));
	cluster_quotas(c, &a, &count);
	assert_int_equal(count, 1);
	cluster_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_blockers), cmocka_unit_test(placeholders_always_go),
		cmocka_unit_test(budgets_select), cmocka_unit_test(evicts_by_priority),
		cmocka_unit_test(tells_quotas),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
