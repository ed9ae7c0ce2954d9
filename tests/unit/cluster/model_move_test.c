/* Whether the pods of a node have a place on others, and why not. */
#include "tests/unit/cluster/model_objects.h"

#define NODE(name, zone, gpus, spec)                                                                                 \
	"{'metadata':{'name':'" name "','uid':'" name "','labels':{'topology.kubernetes.io/zone':'" zone             \
	"','kubernetes.io/hostname':'" name "'}},'spec':{" spec "},'status':{'allocatable':{'nvidia.com/gpu':'" gpus \
	"','cpu':'8','pods':'9'},'conditions':[{'type':'Ready','status':'True'}]}}"
#define ON(node, name, gpus, metadata, spec)                                                                       \
	"{'metadata':{'namespace':'llm','name':'" name "','uid':'" name "'" metadata "},'spec':{'nodeName':'" node \
	"','containers':[{'resources':{'limits':{'nvidia.com/gpu':'" gpus "'}}}]" spec                             \
	"},'status':{'phase':'Running','conditions':[{'type':'Ready','status':'True'}]}}"
#define WAITS(name, gpus)                                                          \
	"{'metadata':{'namespace':'llm','name':'" name "','uid':'" name            \
	"'},'spec':{'containers':[{'resources':{'limits':{'nvidia.com/gpu':'" gpus \
	"'}}}]},'status':{'phase':'Pending'}}"
#define OF(kind)    ",'ownerReferences':[{'kind':'" kind "','name':'r','uid':'r','controller':true}]"
#define OWNED	    OF("ReplicaSet") ",'labels':{'app':'a'}"
#define SAYS(text)  ",'annotations':{" text "}"
#define SAFE	    SAYS("'cluster-autoscaler.kubernetes.io/safe-to-evict':'true'")
#define OTHERS(key) "[{'topologyKey':'" key "','labelSelector':{'matchLabels':{'app':'a'}}}]"
#define APART(key)  ",'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':" OTHERS(key) "}}"
#define NEAR(key)   ",'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':" OTHERS(key) "}}"
#define SPREAD(how)                                                                                                   \
	",'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'kubernetes.io/hostname','whenUnsatisfiable':'" how \
	"','labelSelector':{'matchLabels':{'app':'a'}}}]"
#define ONE NODE("x", "z1", "8", ""), NODE("y", "z1", "4", "")

static const struct {
	const char *what;
	const char *nodes[3], *pods[4];
	bool is_possible;
	const char *text;
} cases[] = {
	{ "one pod", { ONE }, { ON("x", "a", "4", OWNED, "") }, true, "its pod fits on y" },
	{ "beside another",
	  { ONE },
	  { ON("x", "a", "2", OWNED, ""), ON("y", "b", "2", OWNED, "") },
	  true,
	  "its pod fits on y" },
	{ "two pods on two nodes",
	  { ONE, NODE("z", "z1", "4", "") },
	  { ON("x", "a", "4", OWNED, ""), ON("x", "b", "2", OWNED, "") },
	  true,
	  "its 2 pods fit on y and z" },
	{ "the large one first",
	  { ONE, NODE("z", "z1", "2", "") },
	  { ON("x", "a", "2", OWNED, ""), ON("x", "b", "4", OWNED, "") },
	  true,
	  "its 2 pods fit on y and z" },
	{ "no room",
	  { ONE },
	  { ON("x", "a", "4", OWNED, ""), ON("y", "b", "1", OWNED, "") },
	  false,
	  "pod llm/a would have no place: wants 4 nvidia.com/gpu, a node has 3" },
	{ "room for one",
	  { ONE },
	  { ON("x", "a", "3", OWNED, ""), ON("x", "b", "2", OWNED, "") },
	  false,
	  "pod llm/b would have no place: wants 2 nvidia.com/gpu, a node has 1" },
	{ "room that another waits for",
	  { ONE },
	  { ON("x", "a", "2", OWNED, ""), WAITS("w", "3") },
	  false,
	  "pod llm/a would have no place: wants 2 nvidia.com/gpu, a node has 1" },
	{ "who waits in vain is in nobody's way",
	  { ONE },
	  { ON("x", "a", "2", OWNED, ""), WAITS("w", "5") },
	  true,
	  "its pod fits on y" },
	{ "an expendable pod goes without a place",
	  { ONE },
	  { ON("x", "a", "4", OWNED, ""), ON("x", "e", "4", "", ",'priority':-11") },
	  true,
	  "its pod fits on y" },
	{ "a taint",
	  { NODE("x", "z1", "8", ""), NODE("y", "z1", "4", "'taints':[{'key':'k','effect':'NoSchedule'}]") },
	  { ON("x", "a", "1", OWNED, "") },
	  false,
	  "pod llm/a would have no place: does not tolerate the taint k:NoSchedule" },
	{ "a zone",
	  { NODE("x", "z1", "8", ""), NODE("y", "z2", "4", "") },
	  { ON("x", "a", "1", OWNED, ",'nodeSelector':{'topology.kubernetes.io/zone':'z1'}") },
	  false,
	  "pod llm/a would have no place: its node selector wants topology.kubernetes.io/zone=z1, nodes have z2" },
	{ "nobody makes it anew",
	  { ONE },
	  { ON("x", "a", "1", "", "") },
	  false,
	  "pod llm/a has no controller that would make a new one" },
	{ "a Job's",
	  { ONE },
	  { ON("x", "a", "1", OF("Job"), "") },
	  false,
	  "pod llm/a is work that would restart elsewhere" },
	{ "a Job's, that is safe to evict",
	  { ONE },
	  { ON("x", "a", "1", OF("Job") SAFE, "") },
	  true,
	  "its pod fits on y" },
	{ "a gang's",
	  { ONE },
	  { ON("x", "a", "1", OF("StatefulSet") ",'labels':{'leaderworkerset.sigs.k8s.io/group-key':'l'}", "") },
	  false,
	  "pod llm/a is work that would restart elsewhere" },
	{ "files",
	  { ONE },
	  { ON("x", "a", "1", OWNED, ",'volumes':[{'name':'v','emptyDir':{}}]") },
	  false,
	  "pod llm/a keeps files on the node" },
	{ "a volume",
	  { ONE },
	  { ON("x", "a", "1", OWNED, ",'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'c'}}]") },
	  false,
	  "pod llm/a may run on some nodes only: volumes or devices by claims, pod affinity or topology spread, which "
	  "are not looked at while it runs" },
	{ "devices",
	  { ONE },
	  { ON("x", "a", "1", OWNED, ",'resourceClaims':[{'name':'g','resourceClaimName':'c'}]") },
	  false,
	  "pod llm/a may run on some nodes only: volumes or devices by claims, pod affinity or topology spread, which "
	  "are not looked at while it runs" },
	{ "pod affinity",
	  { ONE },
	  { ON("x", "a", "1", OWNED, NEAR("kubernetes.io/hostname")) },
	  false,
	  "pod llm/a may run on some nodes only: volumes or devices by claims, pod affinity or topology spread, which "
	  "are not looked at while it runs" },
	{ "spread",
	  { ONE },
	  { ON("x", "a", "1", OWNED, SPREAD("DoNotSchedule")) },
	  false,
	  "pod llm/a may run on some nodes only: volumes or devices by claims, pod affinity or topology spread, which "
	  "are not looked at while it runs" },
	{ "spread, if it can be",
	  { ONE },
	  { ON("x", "a", "1", OWNED, SPREAD("ScheduleAnyway")) },
	  true,
	  "its pod fits on y" },
	{ "apart from its like, that are there",
	  { ONE },
	  { ON("x", "a", "1", OWNED, APART("kubernetes.io/hostname")), ON("y", "b", "1", OWNED, "") },
	  false,
	  "pod llm/a would have no place: its pod anti-affinity keeps it away" },
	{ "apart from itself",
	  { ONE },
	  { ON("x", "a", "1", OWNED, APART("topology.kubernetes.io/zone")) },
	  true,
	  "its pod fits on y" },
	{ "kept away by who is there",
	  { ONE },
	  { ON("x", "a", "1", OWNED, ""), ON("y", "b", "1", OWNED, APART("kubernetes.io/hostname")) },
	  false,
	  "pod llm/a would have no place: the anti-affinity of pods there keeps it away" },
	{ "apart from one that moves with it",
	  { ONE },
	  { ON("x", "a", "2", OWNED, APART("kubernetes.io/hostname")), ON("x", "b", "1", OF("ReplicaSet"), "") },
	  true,
	  "its 2 pods fit on y" },
	{ "nothing there", { ONE }, { NULL }, true, "no pod would have to move" },
};

static void finds_places(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct cluster *c = cluster_new();
		const struct node *to[2];
		size_t count = 0;
		for (size_t k = 0; k < 3 && cases[i].nodes[k]; k++)
			see_now(c, CLUSTER_NODES, cases[i].nodes[k]);
		for (size_t k = 0; k < 4 && cases[i].pods[k]; k++)
			see_now(c, CLUSTER_PODS, cases[i].pods[k]);
		for (const char *name = "y"; *name; name = *name == 'y' ? "z" : "")
			if (cluster_node(c, name))
				to[count++] = cluster_node(c, name);
		const struct move_verdict v =
			cluster_move(c, cluster_node(c, "x"), (struct node_places){ to, count }, 0, &a);
		if (v.is_possible != cases[i].is_possible || strcmp(v.text, cases[i].text) != 0)
			fail_msg("%s: %d, %s", cases[i].what, v.is_possible, v.text);
		cluster_free(c);
	}
}

/* Of a node that pool 0, whose pods are those of app chat, gives up. */
static const struct {
	const char *what, *pods[3];
	bool is_possible;
	const char *text;
	size_t count;
} displaced[] = {
	{ "nothing there", { NULL }, true, "no pod needs another place", 0 },
	{ "a replica goes with it",
	  { ON("x", "a", "8", OF("ReplicaSet") ",'labels':{'app':'chat'}", "") },
	  true,
	  "no pod needs another place",
	  0 },
	{ "an expendable pod, too",
	  { ON("x", "a", "8", "", ",'priority':-11") },
	  true,
	  "no pod needs another place",
	  0 },
	{ "and one of a DaemonSet", { ON("x", "a", "8", OF("DaemonSet"), "") }, true, "no pod needs another place", 0 },
	{ "another's", { ON("x", "a", "4", OWNED, "") }, true, "its pod fits on y", 1 },
	{ "a Job's", { ON("x", "a", "4", OF("Job"), "") }, true, "its pod fits on y", 1 },
	{ "what is choosy, as far as is known",
	  { ON("x", "a", "4", OWNED, ",'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'c'}}]") },
	  true,
	  "its pod fits on y",
	  1 },
	{ "no room",
	  { ON("x", "a", "5", OWNED, "") },
	  false,
	  "pod llm/a would have no place: wants 5 nvidia.com/gpu, a node has 4",
	  1 },
	{ "room for one, beside a replica",
	  { ON("x", "a", "3", OWNED, ""), ON("x", "b", "2", OWNED, ""),
	    ON("x", "r", "1", OF("ReplicaSet") ",'labels':{'app':'chat'}", "") },
	  false,
	  "pod llm/b would have no place: wants 2 nvidia.com/gpu, a node has 1",
	  2 },
};

static void finds_places_for_those_beside_the_work(void **state)
{
	static const struct cluster_label chat = { "app", "chat" };
	const struct cluster_pool pool = {
		.name = "chat", .namespace = "llm", .selector = &chat, .selector_count = 1, .gpus_per_replica = 1
	};

	(void)state;
	for (size_t i = 0; i < sizeof displaced / sizeof *displaced; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct cluster *c = cluster_new();
		cluster_set_fleet(c, &pool, 1, NULL, 0);
		see_now(c, CLUSTER_NODES, NODE("x", "z1", "8", ""));
		see_now(c, CLUSTER_NODES, NODE("y", "z1", "4", ""));
		for (size_t k = 0; k < 3 && displaced[i].pods[k]; k++)
			see_now(c, CLUSTER_PODS, displaced[i].pods[k]);
		const struct node *to[] = { cluster_node(c, "y") };
		const struct move_verdict v =
			cluster_displace(c, cluster_node(c, "x"), 0, (struct node_places){ to, 1 }, 0, &a);
		if (v.is_possible != displaced[i].is_possible || strcmp(v.text, displaced[i].text) != 0)
			fail_msg("%s: %d, %s", displaced[i].what, v.is_possible, v.text);
		assert_int_equal(v.pods, displaced[i].count);
		cluster_free(c);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_places),
		cmocka_unit_test(finds_places_for_those_beside_the_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
