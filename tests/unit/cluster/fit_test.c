/* The scheduler's filters, one by one: where a pod that waits would go, and why nowhere. */
#include "tests/unit/cluster/model_objects.h"

enum { OBJECTS_MOST = 8 };

struct told {
	enum cluster_kind kind;
	const char *text;
};

struct fit_case {
	const char *what, *pod;
	struct told others[OBJECTS_MOST];
	enum placing placing;
	const char *why; /* a part of it; NULL: none */
};

/* Two nodes of one group, in two zones; the first has four GPUs, eight processors and room for three pods. */
#define NODE(name, zone, more)                                                                                \
	"{'metadata':{'name':'" name "','uid':'" name                                                         \
	"','labels':{'simulated.preheat.dev/node-group':'g','kubernetes.io/hostname':'" name                  \
	"','topology.kubernetes.io/zone':'" zone "','size':'24'}},'spec':{" more "},'status':{'allocatable':" \
	"{'nvidia.com/gpu':'4','cpu':'8','memory':'30Gi','pods':'3'},'conditions':[{'type':'Ready','status':" \
	"'True'}]}}"
#define NODE_1 NODE("n1", "z1", "")
#define NODE_2 NODE("n2", "z2", "")
#define POD_IN(name, space, labels, spec, containers)                                                           \
	"{'metadata':{'namespace':'" space "','name':'" name "','uid':'" name "','labels':{" labels "}},'spec'" \
	":{'containers':[" containers "]" spec "},'status':{'phase':'Pending'}}"
#define GPUS(n)		     "{'resources':{'limits':{'nvidia.com/gpu':'" n "'}}}"
#define WAITS(spec)	     POD_IN("p", "a", "'app':'x'", spec, GPUS("1"))
#define RUNS(name, on, spec) POD_IN(name, "a", "'app':'x'", ",'nodeName':'" on "'" spec, "{}")
#define CORDONED(name)	     NODE(name, "z1", "'unschedulable':true")
#define FULL(name, on)	     POD_IN(name, "a", "", ",'nodeName':'" on "'", GPUS("4"))
#define REQUIRED	     "'requiredDuringSchedulingIgnoredDuringExecution'"
#define APART(topology, selector, more)                                                                              \
	",'affinity':{'podAntiAffinity':{" REQUIRED ":[{'topologyKey':'" topology "','labelSelector':" selector more \
	"}]}}"
#define NEAR(topology, selector, more)                                                                                 \
	",'affinity':{'podAffinity':{" REQUIRED ":[{'topologyKey':'" topology "','labelSelector':" selector more "}]}" \
	"}"
#define APP(name) "{'matchLabels':{'app':'" name "'}}"
#define HOST	  "kubernetes.io/hostname"
#define ZONE	  "topology.kubernetes.io/zone"
#define SPREAD(topology, more)                                                \
	",'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'" topology \
	"','whenUnsatisfiable':'DoNotSchedule','labelSelector':{'matchLabels':{'app':'x'}}" more "}]"
#define CLAIMS(name) ",'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'" name "'}}]"
#define CLAIM(annotations, spec)                                                                                 \
	"{'metadata':{'namespace':'a','name':'c','uid':'c','annotations':{" annotations "}},'spec':{'resources'" \
	":{'requests':{'storage':'5Gi'}}" spec "},'status':{'phase':'Pending'}}"
#define BOUND CLAIM("'pv.kubernetes.io/bind-completed':'yes'", ",'volumeName':'v'")
#define VOLUME(labels, spec)                                                                                 \
	"{'metadata':{'name':'v','uid':'v','labels':{" labels "}},'spec':{'capacity':{'storage':'5Gi'}" spec \
	"},'status':{'phase':'Available'}}"
#define IN_ZONE(zone)                                                                                            \
	",'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[{'key':'topology.kubernetes.io/" \
	"zone','operator':'In','values':['" zone "']}]}]}}"
#define CLASS(provisioner, mode, more) \
	"{'metadata':{'name':'s','uid':'s'},'provisioner':'" provisioner "','volumeBindingMode':'" mode "'" more "}"
#define DEVICES(claim) ",'resourceClaims':[{'name':'gpu'," claim "}]"
#define PORT(more)     "{'resources':{'limits':{'nvidia.com/gpu':'1'}},'ports':[{'hostPort':8000" more "}]}"

static const struct fit_case cases[] = {
	{ "a free node", WAITS(""), { { 0, NULL } }, PLACING_THERE, NULL },
	{ "GPUs are taken",
	  WAITS(""),
	  { { CLUSTER_PODS, FULL("q1", "n1") }, { CLUSTER_PODS, FULL("q2", "n2") } },
	  PLACING_NEW,
	  NULL },
	{ "more GPUs than any has",
	  POD_IN("p", "a", "", "", GPUS("5")),
	  { { 0, NULL } },
	  PLACING_NOWHERE,
	  "largest node group g has 4 per node" },
	{ "more processors than any has",
	  POD_IN("p", "a", "", "", "{'resources':{'requests':{'cpu':'900'},'limits':{'nvidia.com/gpu':'1'}}}"),
	  { { 0, NULL } },
	  PLACING_NOWHERE,
	  "wants 900 cpu, a node has 8" },
	{ "an init container that asks for more",
	  POD_IN("p", "a", "", ",'initContainers':[{'resources':{'requests':{'cpu':'9'}}}]", GPUS("1")),
	  { { 0, NULL } },
	  PLACING_NOWHERE,
	  "wants 9 cpu" },
	{ "an init container that stays is added",
	  POD_IN("p", "a", "", ",'initContainers':[{'restartPolicy':'Always','resources':{'requests':{'cpu':'5'}}}]",
		 "{'resources':{'requests':{'cpu':'4'},'limits':{'nvidia.com/gpu':'1'}}}"),
	  { { 0, NULL } },
	  PLACING_NOWHERE,
	  "wants 9 cpu" },
	{ "the overhead of its runtime",
	  WAITS(",'overhead':{'memory':'31Gi'}"),
	  { { 0, NULL } },
	  PLACING_NOWHERE,
	  "wants 31.0Gi memory" },
	{ "no room for a fourth pod",
	  WAITS(",'nodeSelector':{'topology.kubernetes.io/zone':'z1'}"),
	  { { CLUSTER_PODS, RUNS("q1", "n1", "") },
	    { CLUSTER_PODS, RUNS("q2", "n1", "") },
	    { CLUSTER_PODS, RUNS("q3", "n1", "") } },
	  PLACING_NEW,
	  NULL },
	{ "DaemonSets will be there, too",
	  POD_IN("p", "a", "", "", "{'resources':{'requests':{'cpu':'8'},'limits':{'nvidia.com/gpu':'1'}}}"),
	  { { CLUSTER_PODS,
	      "{'metadata':{'namespace':'a','name':'d','uid':'d','ownerReferences':[{'kind':'DaemonSet','name'"
	      ":'d','uid':'o','controller':true}]},'spec':{'nodeName':'n1','containers':[{'resources':{"
	      "'requests':{'cpu':'1'}}}]},'status':{'phase':'Running'}}" },
	    { CLUSTER_NODES, NODE("n2", "z2", "'taints':[{'key':'t','effect':'NoSchedule'}]") },
	    { CLUSTER_NODES, NODE_1 } },
	  PLACING_NOWHERE,
	  "wants 8 cpu, a node has 7" },
	{ "cordoned nodes",
	  WAITS(""),
	  { { CLUSTER_NODES, CORDONED("n1") }, { CLUSTER_NODES, CORDONED("n2") } },
	  PLACING_NEW,
	  NULL },
	{ "cordoned, and tolerated",
	  WAITS(",'tolerations':[{'key':'node.kubernetes.io/unschedulable','operator':'Exists'}]"),
	  { { CLUSTER_NODES, CORDONED("n1") }, { CLUSTER_NODES, CORDONED("n2") } },
	  PLACING_THERE,
	  NULL },
	{ "a host port that is taken",
	  POD_IN("p", "a", "", ",'nodeSelector':{'topology.kubernetes.io/zone':'z1'}", PORT("")),
	  { { CLUSTER_PODS, POD_IN("q", "b", "", ",'nodeName':'n1'", PORT("")) } },
	  PLACING_NEW,
	  NULL },
	{ "the host port of another protocol",
	  POD_IN("p", "a", "", ",'nodeSelector':{'topology.kubernetes.io/zone':'z1'}", PORT(",'protocol':'UDP'")),
	  { { CLUSTER_PODS, POD_IN("q", "b", "", ",'nodeName':'n1'", PORT("")) } },
	  PLACING_THERE,
	  NULL },
	{ "the host port of another address",
	  POD_IN("p", "a", "", ",'nodeSelector':{'topology.kubernetes.io/zone':'z1'}", PORT(",'hostIP':'10.0.0.1'")),
	  { { CLUSTER_PODS, POD_IN("q", "b", "", ",'nodeName':'n1'", PORT(",'hostIP':'10.0.0.2'")) } },
	  PLACING_THERE,
	  NULL },

	{ "apart on hosts",
	  WAITS(APART(HOST, APP("x"), "")),
	  { { CLUSTER_PODS, RUNS("q1", "n1", "") }, { CLUSTER_PODS, RUNS("q2", "n2", "") } },
	  PLACING_NEW,
	  NULL },
	{ "apart in zones",
	  WAITS(APART(ZONE, APP("x"), "")),
	  { { CLUSTER_PODS, RUNS("q1", "n1", "") }, { CLUSTER_PODS, RUNS("q2", "n2", "") } },
	  PLACING_NOWHERE,
	  "its pod anti-affinity keeps it away" },
	{ "apart from others",
	  WAITS(APART(ZONE, APP("y"), "")),
	  { { CLUSTER_PODS, RUNS("q1", "n1", "") } },
	  PLACING_THERE,
	  NULL },
	{ "apart from pods of other namespaces",
	  WAITS(APART(ZONE, APP("x"), ",'namespaces':['b']")),
	  { { CLUSTER_PODS, RUNS("q1", "n1", "") }, { CLUSTER_PODS, RUNS("q2", "n2", "") } },
	  PLACING_THERE,
	  NULL },
	{ "apart from pods of all namespaces",
	  POD_IN("p", "b", "'app':'x'", APART(ZONE, APP("x"), ",'namespaceSelector':{}"), GPUS("1")),
	  { { CLUSTER_PODS, RUNS("q1", "n1", "") }, { CLUSTER_PODS, RUNS("q2", "n2", "") } },
	  PLACING_NOWHERE,
	  "anti-affinity" },
	{ "apart from pods of namespaces with a label",
	  POD_IN("p", "b", "'app':'x'", APART(ZONE, APP("x"), ",'namespaceSelector':{'matchLabels':{'team':'t'}}"),
		 GPUS("1")),
	  { { CLUSTER_PODS, RUNS("q1", "n1", "") },
	    { CLUSTER_PODS, RUNS("q2", "n2", "") },
	    { CLUSTER_NAMESPACES, "{'metadata':{'name':'a','uid':'ns','labels':{'team':'t'}}}" } },
	  PLACING_NOWHERE,
	  "anti-affinity" },
	{ "others want to be apart from it",
	  WAITS(""),
	  { { CLUSTER_PODS, RUNS("q1", "n1", APART(ZONE, APP("x"), "")) },
	    { CLUSTER_PODS, RUNS("q2", "n2", APART(HOST, APP("x"), "")) } },
	  PLACING_NEW,
	  NULL },
	{ "others in all zones want to be apart from it",
	  WAITS(""),
	  { { CLUSTER_PODS, RUNS("q1", "n1", APART(ZONE, APP("x"), "")) },
	    { CLUSTER_PODS, RUNS("q2", "n2", APART(ZONE, APP("x"), "")) } },
	  PLACING_NOWHERE,
	  "the anti-affinity of pods there keeps it away" },
	{ "near pods in a zone",
	  WAITS(NEAR(ZONE, APP("y"), "")),
	  { { CLUSTER_PODS, POD_IN("q", "a", "'app':'y'", ",'nodeName':'n2'", GPUS("4")) } },
	  PLACING_NEW,
	  NULL },
	{ "near pods on a host",
	  WAITS(NEAR(HOST, APP("y"), "")),
	  { { CLUSTER_PODS, POD_IN("q", "a", "'app':'y'", ",'nodeName':'n2'", GPUS("4")) } },
	  PLACING_NOWHERE,
	  "its pod affinity wants pods that are not there" },
	{ "near its own kind, the first of them",
	  WAITS(NEAR(HOST, APP("x"), "")),
	  { { 0, NULL } },
	  PLACING_THERE,
	  NULL },
	{ "near another kind that is not there",
	  WAITS(NEAR(ZONE, APP("y"), "")),
	  { { 0, NULL } },
	  PLACING_NOWHERE,
	  "its pod affinity wants pods" },
	{ "near pods without a selector",
	  WAITS(NEAR(ZONE, "null", "")),
	  { { CLUSTER_PODS, RUNS("q", "n1", "") } },
	  PLACING_NOWHERE,
	  "its pod affinity wants pods" },

	{ "spread over zones",
	  WAITS(SPREAD(ZONE, "") ",'nodeSelector':{'topology.kubernetes.io/zone':'z1'}"),
	  { { CLUSTER_PODS, RUNS("q1", "n1", "") } },
	  PLACING_THERE,
	  NULL }, /* zones it may not have do not count */
	{ "spread over all zones",
	  WAITS(SPREAD(ZONE, ",'nodeAffinityPolicy':'Ignore'") ",'nodeSelector':{'topology.kubernetes.io/zone':'z1'}"),
	  { { CLUSTER_PODS, RUNS("q1", "n1", "") } },
	  PLACING_NOWHERE,
	  "its topology spread over" },
	{ "spread over more zones than there are",
	  WAITS(SPREAD(ZONE, ",'minDomains':3")),
	  { { CLUSTER_PODS, RUNS("q1", "n1", "") }, { CLUSTER_PODS, RUNS("q2", "n2", "") } },
	  PLACING_NOWHERE,
	  "its topology spread over" },
	{ "spread over hosts: a new one is a new domain",
	  WAITS(SPREAD(HOST, ",'minDomains':3")),
	  { { CLUSTER_PODS, RUNS("q1", "n1", "") }, { CLUSTER_PODS, RUNS("q2", "n2", "") } },
	  PLACING_NEW,
	  NULL },
	{ "spread over a label that no node has",
	  WAITS(SPREAD("rack", "")),
	  { { 0, NULL } },
	  PLACING_NOWHERE,
	  "is spread over rack" },
	{ "pods that go are not counted",
	  WAITS(SPREAD(ZONE, ",'minDomains':3")),
	  { { CLUSTER_PODS,
	      "{'metadata':{'namespace':'a','name':'q','uid':'q','labels':{'app':'x'},'deletionTimestamp':"
	      "'2026-01-01T00:00:00Z'},'spec':{'nodeName':'n1','containers':[{}]},'status':{'phase':'Running'}}" },
	    { CLUSTER_PODS, RUNS("q2", "n2", "") } },
	  PLACING_THERE,
	  NULL },
	{ "spread by its own label, too",
	  POD_IN("p", "a", "'app':'x','v':'2'", SPREAD(ZONE, ",'minDomains':3,'matchLabelKeys':['v']"), GPUS("1")),
	  { { CLUSTER_PODS, RUNS("q1", "n1", "") }, { CLUSTER_PODS, RUNS("q2", "n2", "") } },
	  PLACING_THERE,
	  NULL },
	{ "spread where taints count",
	  WAITS(SPREAD(ZONE, ",'minDomains':2,'nodeTaintsPolicy':'Honor'")),
	  { { CLUSTER_NODES, NODE("n2", "z2", "'taints':[{'key':'t','effect':'NoSchedule'}]") },
	    { CLUSTER_NODES, NODE_1 },
	    { CLUSTER_PODS, RUNS("q1", "n1", "") } },
	  PLACING_NEW,
	  NULL }, /* z2 has no node that it tolerates; a new one would be */
	{ "it may be put elsewhere all the same",
	  WAITS(",'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'rack','whenUnsatisfiable':'ScheduleAnyway',"
		"'labelSelector':{}}]"),
	  { { 0, NULL } },
	  PLACING_THERE,
	  NULL },

	{ "a claim that is missing",
	  WAITS(CLAIMS("models")),
	  { { 0, NULL } },
	  PLACING_NOWHERE,
	  "PersistentVolumeClaim models is missing" },
	{ "a claim that goes",
	  WAITS(CLAIMS("c")),
	  { { CLUSTER_VOLUME_CLAIMS, "{'metadata':{'namespace':'a','name':'c','uid':'c','deletionTimestamp':"
				     "'2026-01-01T00:00:00Z'}}" } },
	  PLACING_NOWHERE,
	  "PersistentVolumeClaim c is being deleted" },
	{ "the claim of another namespace",
	  POD_IN("p", "b", "", CLAIMS("c"), GPUS("1")),
	  { { CLUSTER_VOLUME_CLAIMS, BOUND }, { CLUSTER_VOLUMES, VOLUME("", "") } },
	  PLACING_NOWHERE,
	  "c is missing" },
	{ "a bound claim",
	  WAITS(CLAIMS("c")),
	  { { CLUSTER_VOLUME_CLAIMS, BOUND }, { CLUSTER_VOLUMES, VOLUME("", "") } },
	  PLACING_THERE,
	  NULL },
	{ "a bound claim without its volume",
	  WAITS(CLAIMS("c")),
	  { { CLUSTER_VOLUME_CLAIMS, BOUND } },
	  PLACING_NOWHERE,
	  "PersistentVolume v is missing" },
	{ "a volume in another zone",
	  WAITS(CLAIMS("c")),
	  { { CLUSTER_VOLUME_CLAIMS, BOUND }, { CLUSTER_VOLUMES, VOLUME("", IN_ZONE("z3")) } },
	  PLACING_NOWHERE,
	  "the volume of PersistentVolumeClaim c is not to be had there" },
	{ "a volume in the zone of one",
	  WAITS(CLAIMS("c")),
	  { { CLUSTER_VOLUME_CLAIMS, BOUND },
	    { CLUSTER_VOLUMES, VOLUME("", IN_ZONE("z2")) },
	    { CLUSTER_PODS, FULL("q", "n2") } },
	  PLACING_NEW,
	  NULL },
	{ "a volume whose label says where it is",
	  WAITS(CLAIMS("c")),
	  { { CLUSTER_VOLUME_CLAIMS, BOUND },
	    { CLUSTER_VOLUMES, VOLUME("'failure-domain.beta.kubernetes.io/zone':'z3__z4'", "") } },
	  PLACING_NOWHERE,
	  "is not to be had there" },
	{ "a claim that is to be bound at once",
	  WAITS(CLAIMS("c")),
	  { { CLUSTER_VOLUME_CLAIMS, CLAIM("", ",'storageClassName':'s'") },
	    { CLUSTER_STORAGE_CLASSES, CLASS("d", "Immediate", "") } },
	  PLACING_NOWHERE,
	  "PersistentVolumeClaim c is not bound" },
	{ "a claim of a class that is missing",
	  WAITS(CLAIMS("c")),
	  { { CLUSTER_VOLUME_CLAIMS, CLAIM("", ",'storageClassName':'s'") } },
	  PLACING_NOWHERE,
	  "StorageClass s is missing" },
	{ "a volume that is made where the pod is",
	  WAITS(CLAIMS("c")),
	  { { CLUSTER_VOLUME_CLAIMS, CLAIM("", ",'storageClassName':'s'") },
	    { CLUSTER_STORAGE_CLASSES, CLASS("d", "WaitForFirstConsumer", "") } },
	  PLACING_THERE,
	  NULL },
	{ "a volume that is made in another zone only",
	  WAITS(CLAIMS("c")),
	  { { CLUSTER_VOLUME_CLAIMS, CLAIM("", ",'storageClassName':'s'") },
	    { CLUSTER_STORAGE_CLASSES,
	      CLASS("d", "WaitForFirstConsumer",
		    ",'allowedTopologies':[{'matchLabelExpressions':[{'key':'topology.kubernetes.io/zone','values':["
		    "'z3']}]}]") } },
	  PLACING_NOWHERE,
	  "is not to be had there" },
	{ "a local volume that is there",
	  WAITS(CLAIMS("c")),
	  { { CLUSTER_VOLUME_CLAIMS, CLAIM("", ",'storageClassName':'s'") },
	    { CLUSTER_STORAGE_CLASSES, CLASS("kubernetes.io/no-provisioner", "WaitForFirstConsumer", "") },
	    { CLUSTER_VOLUMES, VOLUME("", ",'storageClassName':'s'" IN_ZONE("z2")) } },
	  PLACING_THERE,
	  NULL },
	{ "a local volume that is another's",
	  WAITS(CLAIMS("c")),
	  { { CLUSTER_VOLUME_CLAIMS, CLAIM("", ",'storageClassName':'s'") },
	    { CLUSTER_STORAGE_CLASSES, CLASS("kubernetes.io/no-provisioner", "WaitForFirstConsumer", "") },
	    { CLUSTER_VOLUMES, VOLUME("", ",'storageClassName':'s','claimRef':{'namespace':'a','name':'d'}") } },
	  PLACING_NOWHERE,
	  "is not to be had there" },
	{ "a claim made for the pod alone",
	  WAITS(",'volumes':[{'name':'v','ephemeral':{}}]"),
	  { { 0, NULL } },
	  PLACING_NOWHERE,
	  "PersistentVolumeClaim p-v is missing" },

	{ "a claim of devices that is missing",
	  WAITS(DEVICES("'resourceClaimName':'k'")),
	  { { 0, NULL } },
	  PLACING_NOWHERE,
	  "ResourceClaim k is missing" },
	{ "a claim of devices that is not made yet",
	  WAITS(DEVICES("'resourceClaimTemplateName':'t'")),
	  { { 0, NULL } },
	  PLACING_NOWHERE,
	  "the ResourceClaim for gpu is not made yet" },
	{ "devices that are elsewhere",
	  WAITS(DEVICES("'resourceClaimName':'k'")),
	  { { CLUSTER_RESOURCE_CLAIMS,
	      "{'metadata':{'namespace':'a','name':'k','uid':'k'},'status':{'allocation':{'nodeSelector':{"
	      "'nodeSelectorTerms':[{'matchFields':[{'key':'metadata.name','operator':'In','values':['n9']}]}]}}}}" } },
	  PLACING_NOWHERE,
	  "the devices of ResourceClaim k are not there" },
};

static struct placed place(const struct fit_case *t, struct cluster *c)
{
	see_now(c, CLUSTER_NODES, NODE_1);
	see_now(c, CLUSTER_NODES, NODE_2);
	for (size_t i = 0; i < OBJECTS_MOST && t->others[i].text != NULL; i++)
		see_now(c, t->others[i].kind, t->others[i].text);
	see_now(c, CLUSTER_PODS, t->pod);
	const struct placement *p = cluster_placement(c);
	if (p->count != 1)
		fail_msg("%s: %zu pods wait", t->what, p->count);
	return p->items[0];
}

static struct cluster *cluster_with_group(void)
{
	static const struct cluster_group group = { .name = "g",
						    .provider = "simulated",
						    .label = { "simulated.preheat.dev/node-group", "g" },
						    .gpus_per_node = 4,
						    .max = 10 };
	struct cluster *c = cluster_new();
	cluster_set_fleet(c, NULL, 0, &group, 1);
	return c;
}

static void puts_each_where_the_scheduler_would(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct cluster *c = cluster_with_group();
		struct placed w = place(&cases[i], c);
		if (w.placing != cases[i].placing)
			fail_msg("%s: %d, not %d (%s)", cases[i].what, (int)w.placing, (int)cases[i].placing,
				 w.why == NULL ? "no reason" : w.why);
		if ((cases[i].why == NULL) != (w.why == NULL) || (w.why != NULL && strstr(w.why, cases[i].why) == NULL))
			fail_msg("%s: %s", cases[i].what, w.why == NULL ? "no reason" : w.why);
		cluster_free(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(puts_each_where_the_scheduler_would),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
