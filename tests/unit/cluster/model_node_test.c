/* Nodes: devices, standing, owners, times, groups. */
#include "tests/unit/cluster/model_objects.h"

#include "controller/cluster/node.h"

#include <ctype.h>

static void reads_amounts(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		bool is_one;
		int64_t milli;
	} cases[] = {
		{ "8", true, 8000 },
		{ "0", true, 0 },
		{ "191690m", true, 191690 },
		{ "0.5", true, 500 },
		{ "1e3", true, 1000000 },
		{ "2Ki", true, 2048000 },
		{ "1k", true, 1000000 },
		{ "1500u", true, 1 },
		{ "2Ti", true, INT64_C(2) * 1024 * 1024 * 1024 * 1024 * 1000 },
		{ "16Ei", false, 0 },
		{ "9000000P", true, INT64_MAX },
		{ "", false, 0 },
		{ "m", false, 0 },
		{ "-1", false, 0 },
		{ "eight", false, 0 },
		{ "8 ", false, 0 },
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		int64_t milli = -7;
		if (amount_milli(cases[i].text, &milli) != cases[i].is_one)
			fail_msg("%s", cases[i].text);
		if (milli != (cases[i].is_one ? cases[i].milli : -7))
			fail_msg("%s: %lld", cases[i].text, (long long)milli);
	}
}

/* As the device plugin and feature discovery of the vendor show them. */
static void counts_whole_gpus(void **state)
{
	(void)state;
	static const struct {
		const char *what, *labels, *allocatable;
		int64_t milli;
	} cases[] = {
		{ "eight whole ones", "'nvidia.com/gpu.replicas':'1','nvidia.com/gpu.product':'NVIDIA-H100-80GB-HBM3'",
		  "'nvidia.com/gpu':'8','vpc.amazonaws.com/efa':'32'", 8000 },
		{ "no labels", "", "'nvidia.com/gpu':'2'", 2000 },
		{ "none yet", "", "'cpu':'96'", 0 },
		{ "time-slicing, same name",
		  "'nvidia.com/gpu.count':'4','nvidia.com/gpu.replicas':'10','nvidia.com/"
		  "gpu.sharing-strategy':'time-slicing',"
		  "'nvidia.com/gpu.product':'Tesla-T4-SHARED'",
		  "'nvidia.com/gpu':'40'", 4000 },
		{ "time-slicing, renamed",
		  "'nvidia.com/gpu.count':'1','nvidia.com/gpu.replicas':'3','nvidia.com/gpu.product':'NVIDIA-A10G'",
		  "'nvidia.com/gpu.shared':'3'", 1000 },
		{ "MPS of two", "'nvidia.com/gpu.replicas':'2','nvidia.com/gpu.sharing-strategy':'mps'",
		  "'nvidia.com/gpu':'16'", 8000 },
		{ "MIG, single strategy",
		  "'nvidia.com/gpu.count':'56','nvidia.com/gpu.product':'NVIDIA-A100-SXM4-40GB-MIG-1g.5gb',"
		  "'nvidia.com/gpu.replicas':'1','nvidia.com/mig.strategy':'single'",
		  "'nvidia.com/gpu':'56'", 8000 },
		{ "MIG, single strategy, halves",
		  "'nvidia.com/gpu.product':'NVIDIA-A100-SXM4-80GB-MIG-3g.40gb','nvidia.com/mig.strategy':'single'",
		  "'nvidia.com/gpu':'2'", 857 },
		{ "MIG, mixed strategy",
		  "'nvidia.com/gpu.product':'NVIDIA-A100-SXM4-40GB','nvidia.com/mig.strategy':'mixed'",
		  "'nvidia.com/gpu':'0','nvidia.com/mig-3g.20gb':'1','nvidia.com/mig-2g.10gb':'1','nvidia.com/"
		  "mig-1g.5gb':'2'",
		  1000 },
		{ "MIG with extended memory", "'nvidia.com/mig.strategy':'mixed'", "'nvidia.com/mig-1g.10gb.me':'7'",
		  1000 },
		{ "MIG beside whole ones", "'nvidia.com/mig.strategy':'mixed'",
		  "'nvidia.com/gpu':'7','nvidia.com/mig-7g.80gb':'1'", 8000 },
		{ "MIG of a small card", "'nvidia.com/gpu.product':'NVIDIA-A30'", "'nvidia.com/mig-1g.6gb':'4'", 1000 },
		{ "MIG, time-sliced", "'nvidia.com/mig-1g.5gb.replicas':'2'", "'nvidia.com/mig-1g.5gb':'14'", 1000 },
		{ "MIG, time-sliced, renamed", "'nvidia.com/mig-1g.5gb.replicas':'2'",
		  "'nvidia.com/mig-1g.5gb.shared':'14'", 1000 },
		{ "AMD", "", "'amd.com/gpu':'8'", 8000 },
		{ "Gaudi", "", "'habana.ai/gaudi':'8'", 8000 },
		{ "Intel", "", "'gpu.intel.com/i915':'1','gpu.intel.com/millicores':'1000'", 1000 },
		{ "nonsense", "'nvidia.com/gpu.replicas':'many'", "'nvidia.com/gpu':'many'", 0 },
		{ "no sharers", "'nvidia.com/gpu.replicas':'0'", "'nvidia.com/gpu':'4'", 4000 },
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct cluster *c = cluster_new();
		char text[2048];
		snprintf(text, sizeof text,
			 "{'metadata':{'name':'n','uid':'u','labels':{%s}},'status':{'allocatable':{%s}}}",
			 cases[i].labels, cases[i].allocatable);
		see_now(c, CLUSTER_NODES, text);
		int64_t milli = cluster_node(c, "n")->gpus_milli;
		if (milli != cases[i].milli)
			fail_msg("%s: %lld", cases[i].what, (long long)milli);
		cluster_free(c);
	}
}

#define READY "'status':{'allocatable':{'nvidia.com/gpu':'8'},'conditions':[{'type':'Ready','status':'True'}]}"

static const struct {
	const char *what, *metadata, *spec;
	bool is_usable, is_ready, is_protected, is_draining;
	enum node_owner owner;
	enum node_interruption interruption;
} standings[] = {
	{ "plain", "", "", true, true, false, false, NODE_UNCLAIMED, NODE_STAYS },
	{ "cordoned", "", "'unschedulable':true", false, true, false, false, NODE_UNCLAIMED, NODE_STAYS },
	{ "leaving", ",'deletionTimestamp':'2026-11-21T00:00:00Z'", "", false, true, false, false, NODE_UNCLAIMED,
	  NODE_STAYS },
	{ "ours, annotation", ",'annotations':{'preheat.dev/draining':'1'}", "", false, true, false, true,
	  NODE_UNCLAIMED, NODE_STAYS },
	{ "ours, taint", "", "'taints':[{'key':'preheat.dev/draining','effect':'NoSchedule'}]", false, true, false,
	  true, NODE_UNCLAIMED, NODE_STAYS },
	{ "Karpenter's", ",'labels':{'karpenter.sh/nodepool':'default'}", "", false, true, false, false,
	  NODE_PROVISIONER, NODE_STAYS },
	{ "Karpenter's, disrupted", "", "'taints':[{'key':'karpenter.sh/disrupted','effect':'NoSchedule'}]", false,
	  true, false, false, NODE_PROVISIONER, NODE_STAYS },
	{ "the autoscaler deletes it", "",
	  "'taints':[{'key':'ToBeDeletedByClusterAutoscaler','value':'1','effect':'NoSchedule'}]", false, true, false,
	  false, NODE_AUTOSCALER, NODE_STAYS },
	{ "the autoscaler considers it", "",
	  "'taints':[{'key':'DeletionCandidateOfClusterAutoscaler','value':'1','effect':'PreferNoSchedule'}]", false,
	  true, false, false, NODE_AUTOSCALER, NODE_STAYS },
	{ "Escalator's", "", "'taints':[{'key':'atlassian.com/escalator-force','effect':'NoSchedule'}]", false, true,
	  false, false, NODE_ESCALATOR, NODE_STAYS },
	{ "kept", ",'annotations':{'cluster-autoscaler.kubernetes.io/scale-down-disabled':'true'}", "", true, true,
	  true, false, NODE_UNCLAIMED, NODE_STAYS },
	{ "kept, but not said as it must be",
	  ",'annotations':{'cluster-autoscaler.kubernetes.io/scale-down-disabled':'yes'}", "", true, true, false, false,
	  NODE_UNCLAIMED, NODE_STAYS },
	{ "kept for Escalator", ",'annotations':{'atlassian.com/no-delete':'debugging'}", "", true, true, true, false,
	  NODE_UNCLAIMED, NODE_STAYS },
	{ "spot notice", "", "'taints':[{'key':'aws-node-termination-handler/spot-itn','effect':'NoSchedule'}]", false,
	  true, false, false, NODE_UNCLAIMED, NODE_SPOT_INTERRUPTED },
	{ "rebalance", "",
	  "'taints':[{'key':'aws-node-termination-handler/rebalance-recommendation','effect':'NoSchedule'}]", false,
	  true, false, false, NODE_UNCLAIMED, NODE_REBALANCED },
	{ "maintenance", "",
	  "'taints':[{'key':'aws-node-termination-handler/scheduled-maintenance','effect':'NoSchedule'}]", false, true,
	  false, false, NODE_UNCLAIMED, NODE_MAINTAINED },
	{ "a spot machine is no notice", ",'labels':{'kubernetes.azure.com/scalesetpriority':'spot'}",
	  "'taints':[{'key':'kubernetes.azure.com/scalesetpriority','value':'spot','effect':'NoSchedule'}]", true, true,
	  false, false, NODE_UNCLAIMED, NODE_STAYS },
	{ "still starting", "",
	  "'taints':[{'key':'startup-taint.cluster-autoscaler.kubernetes.io/driver','effect':'NoSchedule'}]", false,
	  false, false, false, NODE_UNCLAIMED, NODE_STAYS },
	{ "ready, which nobody noticed yet", "",
	  "'taints':[{'key':'node.kubernetes.io/not-ready','effect':'NoSchedule'}]", false, false, false, false,
	  NODE_UNCLAIMED, NODE_STAYS },
	{ "a status", "", "'taints':[{'key':'status-taint.cluster-autoscaler.kubernetes.io/x','effect':'NoSchedule'}]",
	  true, true, false, false, NODE_UNCLAIMED, NODE_STAYS },
};

static void reads_standing(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof standings / sizeof standings[0]; i++) {
		struct cluster *c = cluster_new();
		char text[2048];
		snprintf(text, sizeof text, "{'metadata':{'name':'n','uid':'u'%s},'spec':{%s}," READY "}",
			 standings[i].metadata, standings[i].spec);
		see_now(c, CLUSTER_NODES, text);
		const struct node *n = cluster_node(c, "n");
		if (node_is_usable(n) != standings[i].is_usable || n->is_ready != standings[i].is_ready ||
		    n->is_protected != standings[i].is_protected || n->is_draining != standings[i].is_draining ||
		    n->owner != standings[i].owner || n->interruption != standings[i].interruption)
			fail_msg("%s", standings[i].what);
		cluster_free(c);
	}
}

static void sees_conditions(void **state)
{
	static const struct {
		const char *condition;
		enum node_interruption interruption;
	} cases[] = {
		{ "'type':'VMEventScheduled','status':'False','reason':'NoVMEventScheduled'", NODE_STAYS },
		{ "'type':'VMEventScheduled','status':'True','reason':'RebootScheduled'", NODE_MAINTAINED },
		{ "'type':'VMEventScheduled','status':'True','reason':'PreemptScheduled'", NODE_SPOT_INTERRUPTED },
		{ "'type':'VMEventScheduled','status':'True','reason':'VMEventScheduled','message':'Preempt Scheduled: "
		  "Sat, 21 Nov 2026 10:00:00 GMT; DurationInSeconds: -1'",
		  NODE_SPOT_INTERRUPTED },
		{ "'type':'VMEventScheduled','status':'True','reason':'VMEventScheduled','message':'Reboot Scheduled'",
		  NODE_MAINTAINED },
		{ "'type':'PreemptScheduled','status':'True'", NODE_SPOT_INTERRUPTED },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct cluster *c = cluster_new();
		char text[1024];
		snprintf(text, sizeof text, "{'metadata':{'name':'n','uid':'u'},'status':{'conditions':[{%s}]}}",
			 cases[i].condition);
		see_now(c, CLUSTER_NODES, text);
		assert_int_equal(cluster_node(c, "n")->interruption, cases[i].interruption);
		cluster_free(c);
	}
}

static void the_gravest_taint_counts(void **state)
{
	struct cluster *c = cluster_new();
	(void)state;
	see_now(c, CLUSTER_NODES,
		"{'metadata':{'name':'n','uid':'u'},'spec':{'taints':[{'key':'aws-node-termination-handler/"
		"rebalance-recommendation','effect':'NoSchedule'},{'key':'aws-node-termination-handler/spot-itn',"
		"'effect':'NoSchedule'}]}}");
	assert_int_equal(cluster_node(c, "n")->interruption, NODE_SPOT_INTERRUPTED);
	cluster_free(c);
}

/* As its object says nothing of it, and no event. */
static void a_machine_that_ends_interrupts_its_node(void **state)
{
	static const char node[] = "{'metadata':{'name':'n','uid':'u'}}";
	struct cluster *c = cluster_new();
	(void)state;
	see_now(c, CLUSTER_NODES, node);
	cluster_node_ends(c, cluster_node(c, "n"), true, SECOND);
	assert_int_equal(cluster_node(c, "n")->interruption, NODE_TERMINATING);
	see_now(c, CLUSTER_NODES, node);
	assert_int_equal(cluster_node(c, "n")->interruption, NODE_TERMINATING);
	cluster_node_ends(c, cluster_node(c, "n"), false, SECOND);
	assert_int_equal(cluster_node(c, "n")->interruption, NODE_STAYS);
	cluster_node_ends(c, cluster_node(c, "n"), true, SECOND);
	cluster_node_gone(c, object_uid_of("u"), SECOND);
	see_now(c, CLUSTER_NODES, "{'metadata':{'name':'n','uid':'v'}}"); /* another machine of that name */
	assert_int_equal(cluster_node(c, "n")->interruption, NODE_STAYS);
	cluster_free(c);
}

#define NOTICE(node, reason, at)                                                                                  \
	"{'metadata':{'name':'e','uid':'e'},'involvedObject':{'kind':'Node','name':'" node "'},'reason':'" reason \
	"','lastTimestamp':" at "}"

/* `after`: of the event, since the node was registered. */
static enum node_interruption noticed(const char *event, millis now, bool is_listed)
{
	struct cluster *c = cluster_new();
	static const char node[] = "{'metadata':{'name':'n','uid':'u','creationTimestamp':'2026-11-21T10:00:00Z'}}";
	const millis registered = 1795255200000;
	see(c, CLUSTER_NODES, node, (struct moment){ registered, true });
	assert_false(see(c, CLUSTER_NODE_EVENTS, event, (struct moment){ registered + now, is_listed }));
	enum node_interruption found = cluster_node(c, "n")->interruption;
	see(c, CLUSTER_NODES, node, (struct moment){ registered + now + SECOND, false }); /* the object says nothing */
	assert_int_equal(cluster_node(c, "n")->interruption, found);
	cluster_node_gone(c, object_uid_of("u"), registered + now + MINUTE);
	see(c, CLUSTER_NODES, "{'metadata':{'name':'n','uid':'v'}}", (struct moment){ registered + now + HOUR, false });
	assert_int_equal(cluster_node(c, "n")->interruption, NODE_STAYS); /* another machine of that name */
	cluster_free(c);
	return found;
}

static void hears_events(void **state)
{
	(void)state;
	assert_int_equal(noticed(NOTICE("n", "SpotInterruption", "'2026-11-21T10:20:00Z'"), 20 * MINUTE + 1, false),
			 NODE_SPOT_INTERRUPTED);
	assert_int_equal(noticed(NOTICE("n", "PreemptScheduled", "'2026-11-21T10:20:00Z'"), 21 * MINUTE, true),
			 NODE_SPOT_INTERRUPTED);
	assert_int_equal(noticed(NOTICE("n", "RebalanceRecommendation", "null"), 20 * MINUTE, false), NODE_REBALANCED);
	assert_int_equal(noticed(NOTICE("n", "NodeNotReady", "'2026-11-21T10:20:00Z'"), 20 * MINUTE, false),
			 NODE_STAYS);
	assert_int_equal(noticed(NOTICE("other", "SpotInterruption", "null"), 20 * MINUTE, false), NODE_STAYS);
	/* whoever tells it has a clock that is an hour behind: it has just happened all the same */
	assert_int_equal(noticed(NOTICE("n", "SpotInterruption", "'2026-11-21T09:20:00Z'"), 20 * MINUTE, false),
			 NODE_SPOT_INTERRUPTED);
	/* of the machine before, of that name; of long ago, listed */
	assert_int_equal(noticed(NOTICE("n", "SpotInterruption", "'2026-11-21T09:59:00Z'"), MINUTE, true), NODE_STAYS);
	assert_int_equal(noticed(NOTICE("n", "SpotInterruption", "'2026-11-21T10:01:00Z'"), 50 * MINUTE, true),
			 NODE_STAYS);
}

static void names_machines(void **state)
{
	(void)state;
	static const struct {
		const char *provider_id, *machine;
	} cases[] = {
		{ "aws:///eu-west-1a/i-0abc", "i-0abc" },
		{ "simulated:///zone-a/m-7", "m-7" },
		{ "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/"
		  "aks-gpu-1-vmss/virtualMachines/3",
		  "aks-gpu-1-vmss/virtualMachines/3" },
		{ "plain", "plain" },
		{ "", "" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct cluster *c = cluster_new();
		char text[1024];
		snprintf(text, sizeof text, "{'metadata':{'name':'n','uid':'u'},'spec':{'providerID':'%s'}," READY "}",
			 cases[i].provider_id);
		see_now(c, CLUSTER_NODES, text);
		assert_string_equal(cluster_node(c, "n")->machine_id, cases[i].machine);
		if (cases[i].provider_id[0] != '\0')
			assert_ptr_equal(cluster_node_by_machine(c, cases[i].provider_id), cluster_node(c, "n"));
		for (char *at = text + snprintf(text, sizeof text, "%s", cases[i].provider_id); at-- > text;)
			*at = (char)toupper((unsigned char)*at);
		if (cases[i].provider_id[0] != '\0')
			assert_ptr_equal(cluster_node_by_machine(c, text), cluster_node(c, "n"));
		cluster_free(c);
	}
}

struct heard {
	char text[1024];
};

static void hear(void *user, const struct cluster_event *e)
{
	static const char *const names[CLUSTER_CHANGE_COUNT] = {
		"added", "ready",     "unready", "gpu",	  "changed", "gone",
		"Added", "Scheduled", "Started", "Ready", "Changed", "Gone",
	};
	struct heard *h = user;
	size_t len = strlen(h->text);
	snprintf(h->text + len, sizeof h->text - len, "%s%s@%lld", len == 0 ? "" : " ", names[e->what],
		 (long long)e->at);
}

#define NODE(labels, status)                                                                                   \
	"{'metadata':{'name':'n','uid':'u','creationTimestamp':'1970-01-01T00:00:05Z','labels':{" labels "}}," \
	"'status':{" status "}}"
#define OURS "'simulated.preheat.dev/node-group':'g5'"
#define IS(status, at) \
	"'conditions':[{'type':'Ready','status':'" status "','lastTransitionTime':'1970-01-01T00:00:" at "Z'}]"

static void tells_stages_as_they_arrive(void **state)
{
	(void)state;
	struct cluster *c = cluster_new();
	struct heard h = { "" };
	struct cluster_group group = group_named("g5", 1, 10);
	cluster_set_fleet(c, NULL, 0, &group, 1);
	cluster_on_change(c, hear, &h);
	see(c, CLUSTER_NODES, NODE(OURS, IS("False", "05")), (struct moment){ 5432, false });
	see(c, CLUSTER_NODES, NODE(OURS, IS("True", "08")), (struct moment){ 8765, false });
	see(c, CLUSTER_NODES, NODE(OURS, IS("True", "08") ",'allocatable':{'nvidia.com/gpu':'0'}"),
	    (struct moment){ 9000, false });
	see(c, CLUSTER_NODES, NODE(OURS, IS("True", "08") ",'allocatable':{'nvidia.com/gpu':'1'}"),
	    (struct moment){ 9876, false });
	assert_string_equal(h.text, "added@5432 ready@8765 gpu@9876");
	const struct node *n = cluster_node(c, "n");
	assert_int_equal(n->registered_at, 5432);
	assert_int_equal(n->ready_since, 8765);
	assert_int_equal(n->gpu_at, 9876);
	assert_int_equal(n->group, 0);
	h.text[0] = '\0';
	see(c, CLUSTER_NODES, NODE(OURS, IS("Unknown", "10")), (struct moment){ 10123, false });
	cluster_node_gone(c, object_uid_of("u"), 11000);
	assert_string_equal(h.text, "unready@10123 gone@11000");
	assert_null(cluster_node(c, "n"));
	cluster_free(c);
}

/* After a restart the objects' own times serve; where our clock is another, never. */
static void stamps_serve_what_was_listed(void **state)
{
	(void)state;
	static const struct {
		bool ignores;
		millis at;
		const char *heard;
	} cases[] = {
		{ false, 60000, "added@5000 ready@8000 gpu@8000" },
		{ true, 60000, "added@60000 ready@60000 gpu@60000" },
		{ false, 6000, "added@5000 ready@6000 gpu@6000" }, /* their clock is ahead of ours */
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct cluster *c = cluster_new();
		struct heard h = { "" };
		struct cluster_group group = group_named("g5", 1, 10);
		cluster_set_fleet(c, NULL, 0, &group, 1);
		cluster_ignore_stamps(c, cases[i].ignores);
		cluster_on_change(c, hear, &h);
		see(c, CLUSTER_NODES, NODE(OURS, IS("True", "08") ",'allocatable':{'nvidia.com/gpu':'1'}"),
		    (struct moment){ cases[i].at, true });
		assert_string_equal(h.text, cases[i].heard);
		cluster_free(c);
	}
}

static void strangers_are_not_told(void **state)
{
	(void)state;
	struct cluster *c = cluster_new();
	struct heard h = { "" };
	cluster_on_change(c, hear, &h);
	see_now(c, CLUSTER_NODES, NODE("", IS("True", "08")));
	assert_string_equal(h.text, "");
	assert_int_equal(cluster_node(c, "n")->group, -1);
	/* Until the fleet says that they are ours. */
	struct cluster_group group = group_named("g5", 1, 10);
	group.label = (struct cluster_label){ "pool", "gpu" };
	see_now(c, CLUSTER_NODES, NODE("'pool':'gpu'", IS("True", "08")));
	cluster_set_fleet(c, NULL, 0, &group, 1);
	assert_int_equal(cluster_node(c, "n")->group, 0);
	group.provider_id_prefix = "aws://";
	cluster_set_fleet(c, NULL, 0, &group, 1);
	assert_int_equal(cluster_node(c, "n")->group, -1);
	cluster_free(c);
}

/* Taints of a start: known by their name, or told of the group. Until they go the node is not ready; the next one is
 * not thought to have them for good. */
static void a_start_lasts_until_its_taints_are_gone(void **state)
{
	static const struct cluster_taint told[] = { { "ops.example/agent", NULL, "NoSchedule" },
						     { "ops.example/disk", "mounting", "NoExecute" } };
	static const struct {
		const char *taint;
		bool is_of_start;
	} cases[] = {
		{ "'key':'ebs.csi.aws.com/agent-not-ready','effect':'NoExecute'", true },
		{ "'key':'efs.csi.aws.com/agent-not-ready','effect':'NoSchedule'", true },
		{ "'key':'node.cilium.io/agent-not-ready','value':'true','effect':'NoExecute'", true },
		{ "'key':'node.cluster.x-k8s.io/uninitialized','effect':'NoSchedule'", true },
		{ "'key':'cni.istio.io/not-ready','effect':'NoSchedule'", true },
		{ "'key':'node.gardener.cloud/critical-components-not-ready','effect':'NoSchedule'", true },
		{ "'key':'ops.example/agent','effect':'NoSchedule'", true },
		{ "'key':'ops.example/agent','value':'any','effect':'NoSchedule'", true },
		{ "'key':'ops.example/agent','effect':'NoExecute'", false },
		{ "'key':'ops.example/disk','value':'mounting','effect':'NoExecute'", true },
		{ "'key':'ops.example/disk','value':'broken','effect':'NoExecute'", false },
		{ "'key':'ops.example/disk','effect':'NoExecute'", false },
		{ "'key':'nvidia.com/gpu','effect':'NoSchedule'", false },
		{ "'key':'example.com/not-ready-for-all','effect':'NoSchedule'", false },
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct cluster *c = cluster_new();
		struct cluster_group group = group_named("g5", 1, 10);
		group.startup_taints = told;
		group.startup_taint_count = 2;
		snprintf(text, sizeof text,
			 "{'metadata':{'name':'n','uid':'u','labels':{" OURS "}},'spec':{'taints':[{%s}]}," READY "}",
			 cases[i].taint);
		/* The fleet is told before the node is seen, or after. */
		for (int order = 0; order < 2; order++) {
			if (order == 0)
				cluster_set_fleet(c, NULL, 0, &group, 1);
			see(c, CLUSTER_NODES, text, (struct moment){ 10000 + order, false });
			cluster_set_fleet(c, NULL, 0, &group, 1);
			const struct node *n = cluster_node(c, "n");
			if (n->is_ready == cases[i].is_of_start || (n->ready_since == 0) != cases[i].is_of_start ||
			    (n->unready_since != 0) != cases[i].is_of_start)
				fail_msg("%s: ready %d since %lld, not since %lld", cases[i].taint, n->is_ready,
					 (long long)n->ready_since, (long long)n->unready_since);
			group.startup_taint_count = 0; /* told no more: it is ready as it would have been */
			cluster_set_fleet(c, NULL, 0, &group, 1);
			n = cluster_node(c, "n");
			assert_int_equal(n->is_ready,
					 !cases[i].is_of_start || strstr(cases[i].taint, "ops.example") != NULL);
			assert_int_equal(n->ready_since != 0, n->is_ready);
			assert_int_equal(n->unready_since == 0, n->is_ready);
			group.startup_taint_count = 2;
			cluster_set_fleet(c, NULL, 0, &group, 1);
			see(c, CLUSTER_NODES, "{'metadata':{'name':'n','uid':'u','labels':{" OURS "}}," READY "}",
			    (struct moment){ 20000, false });
			assert_true(cluster_node(c, "n")->is_ready);
			assert_int_equal(cluster_node(c, "n")->unready_since, 0);
			cluster_node_gone(c, object_uid_of("u"), 30000);
			cluster_set_fleet(c, NULL, 0, NULL, 0);
		}
		cluster_free(c);
	}
}

/* Nor does one stay learned that was told of later. */
static void a_taint_of_a_start_is_not_learned(void **state)
{
	static const struct cluster_taint told = { "ops.example/agent", NULL, "NoSchedule" };
	struct cluster *c = cluster_new();
	struct cluster_group group = group_named("g5", 1, 10);

	(void)state;
	cluster_set_fleet(c, NULL, 0, &group, 1);
	see_now(c, CLUSTER_NODES,
		"{'metadata':{'name':'n','uid':'u','labels':{" OURS
		"}},'spec':{'taints':[{'key':'ops.example/agent','effect':'NoSchedule'},{'key':'team','effect':"
		"'NoSchedule'}]}," READY "}");
	assert_int_equal(intern_count(c->groups[0].template.taints), 2);
	group.startup_taints = &told;
	group.startup_taint_count = 1;
	cluster_set_fleet(c, NULL, 0, &group, 1);
	assert_false(cluster_node(c, "n")->is_ready);
	assert_int_equal(intern_count(c->groups[0].template.taints), 1);
	assert_string_equal(c->groups[0].template.taints->items[0].key, "team");
	see_now(c, CLUSTER_NODES, /* as another one comes up */
		"{'metadata':{'name':'n2','uid':'u2','labels':{" OURS
		"}},'spec':{'taints':[{'key':'ops.example/agent','effect':'NoSchedule'},{'key':'team','effect':"
		"'NoSchedule'}]}," READY "}");
	assert_int_equal(intern_count(c->groups[0].template.taints), 1);
	cluster_free(c);
}

/* A machine that came back under the same name is another one. */
static void same_name_other_node(void **state)
{
	(void)state;
	struct cluster *c = cluster_new();
	struct heard h = { "" };
	struct cluster_group group = group_named("g5", 1, 10);
	cluster_set_fleet(c, NULL, 0, &group, 1);
	cluster_on_change(c, hear, &h);
	see(c, CLUSTER_NODES, "{'metadata':{'name':'n','uid':'u1','labels':{" OURS "}}," READY "}",
	    (struct moment){ 10, false });
	see(c, CLUSTER_NODES, "{'metadata':{'name':'n','uid':'u2','labels':{" OURS "}}}", (struct moment){ 20, false });
	cluster_node_gone(c, object_uid_of("u1"), 30);
	assert_string_equal(h.text, "added@10 ready@10 gpu@10 gone@20 added@20");
	assert_int_equal(cluster_node(c, "n")->registered_at, 20);
	assert_int_equal(cluster_node_count(c), 1);
	cluster_free(c);
}

static void see_used(struct cluster *c, const char *node, int gpus, int used)
{
	char text[512];
	snprintf(text, sizeof text,
		 "{'metadata':{'name':'%s','uid':'n-%s'},'status':{'allocatable':{'nvidia.com/gpu':'%d'}}}", node, node,
		 gpus);
	see_now(c, CLUSTER_NODES, text);
	snprintf(text, sizeof text,
		 "{'metadata':{'namespace':'a','name':'on-%s','uid':'p-%s'},'spec':{'nodeName':'%s','containers':[{"
		 "'resources':{'limits':{'nvidia.com/gpu':'%d'}}}]},'status':{'phase':'Running'}}",
		 node, node, node, used);
	see_now(c, CLUSTER_PODS, text);
}

static void expect_order(const struct cluster *c, const char *names)
{
	const struct node_places p = cluster_nodes_by_use(c);
	CLEANUP(buf_release) struct buf found = { 0 };
	for (size_t i = 0; i < p.count; i++)
		buf_printf(&found, "%s%s", i == 0 ? "" : " ", p.nodes[i]->name);
	assert_string_equal(found.text, names);
}

static void nodes_to_be_filled_first_come_first(void **state)
{
	struct cluster *c = cluster_new();

	(void)state;
	see_used(c, "b-half", 8, 4);
	see_used(c, "a-half", 2, 1);
	see_used(c, "idle", 8, 0);
	see_used(c, "full", 4, 4);
	see_used(c, "none", 0, 0);
	expect_order(c, "none full a-half b-half idle");
	cluster_node_gone(c, object_uid_of("n-full"), 10);
	see_used(c, "idle", 8, 5);
	expect_order(c, "none idle a-half b-half");
	cluster_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_amounts),
		cmocka_unit_test(counts_whole_gpus),
		cmocka_unit_test(reads_standing),
		cmocka_unit_test(sees_conditions),
		cmocka_unit_test(the_gravest_taint_counts),
		cmocka_unit_test(a_machine_that_ends_interrupts_its_node),
		cmocka_unit_test(hears_events),
		cmocka_unit_test(names_machines),
		cmocka_unit_test(tells_stages_as_they_arrive),
		cmocka_unit_test(stamps_serve_what_was_listed),
		cmocka_unit_test(strangers_are_not_told),
		cmocka_unit_test(a_start_lasts_until_its_taints_are_gone),
		cmocka_unit_test(a_taint_of_a_start_is_not_learned),
		cmocka_unit_test(same_name_other_node),
		cmocka_unit_test(nodes_to_be_filled_first_come_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
