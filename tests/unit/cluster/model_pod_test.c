/* Pods: how far they are, what they ask, what they wish, which pool they are of. */
#include "tests/unit/cluster/model_objects.h"

#include "controller/cluster/intern.h"

static const struct {
	const char *what, *metadata, *spec, *status;
	enum pod_state state;
	enum pod_trouble trouble;
} state_cases[] = {
	{ "new", "", "", "'phase':'Pending'", POD_UNSCHEDULED, POD_FINE },
	{ "no node fits", "", "",
	  "'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False','reason':'Unschedulable',"
	  "'message':'0/3 nodes are available'}]",
	  POD_UNSCHEDULED, POD_UNSCHEDULABLE },
	{ "held back", "", "'schedulingGates':[{'name':'kueue.x-k8s.io/admission'}]", "'phase':'Pending'", POD_GATED,
	  POD_FINE },
	{ "on a node", "", "'nodeName':'n'", "'phase':'Pending'", POD_SCHEDULED, POD_FINE },
	{ "being created", "", "'nodeName':'n'",
	  "'phase':'Pending','containerStatuses':[{'state':{'waiting':{'reason':'ContainerCreating'}}}]", POD_SCHEDULED,
	  POD_FINE },
	{ "image cannot be pulled", "", "'nodeName':'n'",
	  "'phase':'Pending','containerStatuses':[{'state':{'waiting':{'reason':'ErrImagePull','message':'"
	  "denied'}}}]",
	  POD_PULLING, POD_IMAGE_PULL },
	{ "image of an init container", "", "'nodeName':'n'",
	  "'phase':'Pending','initContainerStatuses':[{'state':{'waiting':{'reason':'ImagePullBackOff'}}}],"
	  "'containerStatuses':[{'state':{'waiting':{'reason':'PodInitializing'}}}]",
	  POD_PULLING, POD_IMAGE_PULL },
	{ "image's name", "", "'nodeName':'n'",
	  "'containerStatuses':[{'state':{'waiting':{'reason':'InvalidImageName'}}}]", POD_PULLING, POD_IMAGE_NAME },
	{ "no such secret", "", "'nodeName':'n'",
	  "'containerStatuses':[{'state':{'waiting':{'reason':'CreateContainerConfigError'}}}]", POD_SCHEDULED,
	  POD_CONFIG },
	{ "one of two runs", "", "'nodeName':'n'",
	  "'containerStatuses':[{'state':{'running':{'startedAt':'2026-11-21T00:00:00Z'}}},"
	  "{'state':{'waiting':{'reason':'ContainerCreating'}}}]",
	  POD_SCHEDULED, POD_FINE },
	{ "runs", "", "'nodeName':'n'",
	  "'phase':'Running','containerStatuses':[{'state':{'running':{'startedAt':'2026-11-21T00:00:00Z'}}}],"
	  "'conditions':[{'type':'Ready','status':'False'}]",
	  POD_STARTED, POD_FINE },
	{ "keeps ending", "", "'nodeName':'n'",
	  "'phase':'Running','containerStatuses':[{'state':{'waiting':{'reason':'CrashLoopBackOff'}}}]", POD_CRASHING,
	  POD_CRASH_LOOP },
	{ "ready", "", "'nodeName':'n'",
	  "'phase':'Running','containerStatuses':[{'state':{'running':{'startedAt':'2026-11-21T00:00:00Z'}}}],"
	  "'conditions':[{'type':'Ready','status':'True'}]",
	  POD_READY, POD_FINE },
	{ "going", ",'deletionTimestamp':'2026-11-21T00:01:00Z','deletionGracePeriodSeconds':30", "'nodeName':'n'",
	  "'phase':'Running','conditions':[{'type':'Ready','status':'True'}]", POD_TERMINATING, POD_FINE },
	{ "done", "", "'nodeName':'n'", "'phase':'Succeeded'", POD_FINISHED, POD_FINE },
	{ "evicted, and still there", ",'deletionTimestamp':'2026-11-21T00:01:00Z'", "'nodeName':'n'",
	  "'phase':'Failed'", POD_FINISHED, POD_FINE },
};

static void reads_states(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof state_cases / sizeof state_cases[0]; i++) {
		struct cluster *c = cluster_new();
		char text[2048];
		snprintf(text, sizeof text,
			 "{'metadata':{'namespace':'a','name':'p','uid':'u'%s},'spec':{'containers':[{'name':'m','"
			 "resources':"
			 "{'limits':{'nvidia.com/gpu':'1'}}}]%s%s},'status':{%s}}",
			 state_cases[i].metadata, state_cases[i].spec[0] == '\0' ? "" : ",", state_cases[i].spec,
			 state_cases[i].status);
		assert_true(see_now(c, CLUSTER_PODS, text));
		const struct pod *p = cluster_pod(c, "u");
		if (p->state != state_cases[i].state || p->trouble != state_cases[i].trouble)
			fail_msg("%s: state %d, trouble %d", state_cases[i].what, (int)p->state, (int)p->trouble);
		cluster_free(c);
	}
}

/* As the scheduler adds them up. */
static void adds_requests_up(void **state)
{
	(void)state;
	static const struct {
		const char *what, *spec;
		int64_t gpu, cpu;
		const char *image;
	} cases[] = {
		{ "one container",
		  "'containers':[{'image':'i','resources':{'requests':{'cpu':'2','nvidia.com/gpu':'2'},'limits':"
		  "{'nvidia.com/gpu':'2','cpu':'4'}}}]",
		  2000, 2000, "i" },
		{ "limits alone are requests",
		  "'containers':[{'image':'i','resources':{'limits':{'cpu':'4','nvidia.com/gpu':'1'}}}]", 1000, 4000,
		  "i" },
		{ "two containers; the image of the one that computes",
		  "'containers':[{'image':'proxy','resources':{'requests':{'cpu':'500m'}}},{'image':'llm','resources':{"
		  "'limits':"
		  "{'nvidia.com/gpu':'4','cpu':'1'}}}]",
		  4000, 1500, "llm" },
		{ "an init container in between asks for more",
		  "'initContainers':[{'resources':{'requests':{'cpu':'8'}}},{'resources':{'requests':{'cpu':'3'}}}],"
		  "'containers':[{'image':'i','resources':{'requests':{'cpu':'2'},'limits':{'nvidia.com/gpu':'1'}}}]",
		  1000, 8000, "i" },
		{ "a sidecar runs beside the others",
		  "'initContainers':[{'restartPolicy':'Always','resources':{'requests':{'cpu':'1'}}},"
		  "{'resources':{'requests':{'cpu':'4','nvidia.com/gpu':'2'}}}],"
		  "'containers':[{'image':'i','resources':{'requests':{'cpu':'2'},'limits':{'nvidia.com/gpu':'1'}}}]",
		  2000, 5000, "i" },
		{ "a sidecar after an init container",
		  "'initContainers':[{'resources':{'requests':{'cpu':'4'}}},{'restartPolicy':'Always','resources':{'"
		  "requests':"
		  "{'cpu':'1'}}}],'containers':[{'image':'i','resources':{'requests':{'cpu':'2'}}}]",
		  0, 4000, "i" },
		{ "overhead of the sandbox",
		  "'overhead':{'cpu':'250m'},'containers':[{'image':'i','resources':{'requests':{'cpu':'1'}}}]", 0,
		  1250, "i" },
		{ "the pod as a whole",
		  "'resources':{'requests':{'cpu':'3'}},'containers':[{'image':'i','resources':{'requests':{'cpu':'1'},"
		  "'limits':"
		  "{'nvidia.com/gpu':'1'}}},{'image':'j'}]",
		  1000, 3000, "i" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct cluster *c = cluster_new();
		char text[2048];
		snprintf(text, sizeof text, "{'metadata':{'namespace':'a','name':'p','uid':'u'},'spec':{%s}}",
			 cases[i].spec);
		see_now(c, CLUSTER_PODS, text);
		const struct pod *p = cluster_pod(c, "u");
		if (resources_get(p->shape->requests, "nvidia.com/gpu") != cases[i].gpu ||
		    resources_get(p->shape->requests, "cpu") != cases[i].cpu || strcmp(p->image, cases[i].image) != 0 ||
		    p->gpus_milli != cases[i].gpu || p->has_gpus != (cases[i].gpu > 0))
			fail_msg("%s: %lld, %lld, %s", cases[i].what,
				 (long long)resources_get(p->shape->requests, "nvidia.com/gpu"),
				 (long long)resources_get(p->shape->requests, "cpu"), p->image);
		cluster_free(c);
	}
}

static void reads_wishes(void **state)
{
	(void)state;
	static const struct {
		const char *annotations;
		enum pod_evict evict;
		millis undisturbed_until;
		int deletion_cost;
		bool has_local_storage;
		enum pod_kind kind;
	} cases[] = {
		{ "", POD_EVICT_UNSAID, 0, 0, true, POD_BARE },
		{ "'cluster-autoscaler.kubernetes.io/safe-to-evict':'true'", POD_EVICT_SAFE, 0, 0, true, POD_BARE },
		{ "'cluster-autoscaler.kubernetes.io/safe-to-evict':'false'", POD_EVICT_NEVER, 0, 0, true, POD_BARE },
		{ "'cluster-autoscaler.kubernetes.io/safe-to-evict':'on-completion'", POD_EVICT_ON_COMPLETION, 0, 0,
		  true, POD_BARE },
		{ "'cluster-autoscaler.kubernetes.io/safe-to-evict':'maybe'", POD_EVICT_UNSAID, 0, 0, true, POD_BARE },
		{ "'karpenter.sh/do-not-disrupt':'true'", POD_EVICT_UNSAID, INT64_MAX, 0, true, POD_BARE },
		{ "'karpenter.sh/do-not-disrupt':'1h30m'", POD_EVICT_UNSAID, 1000000 + 90 * MINUTE, 0, true, POD_BARE },
		{ "'karpenter.sh/do-not-disrupt':'soon'", POD_EVICT_UNSAID, 0, 0, true, POD_BARE },
		{ "'controller.kubernetes.io/pod-deletion-cost':'-100'", POD_EVICT_UNSAID, 0, -100, true, POD_BARE },
		{ "'controller.kubernetes.io/pod-deletion-cost':'99999999999'", POD_EVICT_UNSAID, 0, 0, true,
		  POD_BARE },
		{ "'cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes':'logs'", POD_EVICT_UNSAID, 0, 0, true,
		  POD_BARE },
		{ "'cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes':'logs, models'", POD_EVICT_UNSAID, 0,
		  0, false, POD_BARE },
		{ "'kubernetes.io/config.mirror':'9f'", POD_EVICT_UNSAID, 0, 0, true, POD_STATIC },
		{ "'cluster-autoscaler.kubernetes.io/daemonset-pod':'true'", POD_EVICT_UNSAID, 0, 0, true, POD_DAEMON },
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct cluster *c = cluster_new();
		char text[2048];
		snprintf(text, sizeof text,
			 "{'metadata':{'namespace':'a','name':'p','uid':'u','annotations':{%s}},'spec':{'volumes':[{'"
			 "name':'logs',"
			 "'emptyDir':{}},{'name':'shm','emptyDir':{'medium':'Memory'}},{'name':'models','hostPath':{'"
			 "path':'/m'}},"
			 "{'name':'t','projected':{}}]}}",
			 cases[i].annotations);
		see_now(c, CLUSTER_PODS, text);
		const struct pod *p = cluster_pod(c, "u");
		if (p->evict != cases[i].evict || p->undisturbed_until != cases[i].undisturbed_until ||
		    p->deletion_cost != cases[i].deletion_cost || p->has_local_storage != cases[i].has_local_storage ||
		    p->kind != cases[i].kind)
			fail_msg("%s", cases[i].annotations);
		cluster_free(c);
	}
}

static void knows_controllers(void **state)
{
	(void)state;
	static const struct {
		const char *owner;
		enum pod_kind kind;
		const char *name;
	} cases[] = {
		{ "{'kind':'ReplicaSet','name':'llama-7d','uid':'r','controller':true}", POD_REPLICATED, "llama-7d" },
		{ "{'kind':'DaemonSet','name':'dcgm','uid':'r','controller':true}", POD_DAEMON, "dcgm" },
		{ "{'kind':'Node','name':'n','uid':'r','controller':true}", POD_STATIC, "n" },
		{ "{'kind':'ConfigMap','name':'x','uid':'r'}", POD_BARE, NULL },
		{ "{'kind':'ConfigMap','name':'x','uid':'r'},{'kind':'Job','name':'y','uid':'s','controller':true}",
		  POD_REPLICATED, "y" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct cluster *c = cluster_new();
		char text[1024];
		snprintf(text, sizeof text,
			 "{'metadata':{'namespace':'a','name':'p','uid':'u','ownerReferences':[%s]}}", cases[i].owner);
		see_now(c, CLUSTER_PODS, text);
		const struct pod *p = cluster_pod(c, "u");
		assert_int_equal(p->kind, cases[i].kind);
		if (cases[i].name == NULL)
			assert_null(p->owner);
		else
			assert_string_equal(p->owner->name, cases[i].name);
		cluster_free(c);
	}
}

struct heard {
	char text[1024];
};

static void hear(void *user, const struct cluster_event *e)
{
	static const char *const names[CLUSTER_CHANGE_COUNT] = {
		"N", "N", "N", "N", "N", "N", "added", "scheduled", "started", "ready", "changed", "gone",
	};
	struct heard *h = user;
	size_t len = strlen(h->text);
	snprintf(h->text + len, sizeof h->text - len, "%s%s@%lld", len == 0 ? "" : " ", names[e->what],
		 (long long)e->at);
}

#define POD(labels, spec, status)                                                                                  \
	"{'metadata':{'namespace':'llm','name':'p','uid':'u','creationTimestamp':'1970-01-01T00:00:01Z','labels':" \
	"{" labels "}},'spec':{'containers':[{'name':'m'}]" spec "},'status':{" status "}}"
#define APP	  "'app':'llama'"
#define RUNS	  "'containerStatuses':[{'state':{'running':{'startedAt':'1970-01-01T00:00:03Z'}}}]"
#define SCHEDULED "{'type':'PodScheduled','status':'True','lastTransitionTime':'1970-01-01T00:00:02Z'}"
#define IS_READY  "{'type':'Ready','status':'True','lastTransitionTime':'1970-01-01T00:00:04Z'}"

static void set_pool(struct cluster *c)
{
	static const struct cluster_label selector = { "app", "llama" };
	struct cluster_pool pool = { .name = "chat", .namespace = "llm", .selector = &selector, .selector_count = 1 };
	cluster_set_fleet(c, &pool, 1, NULL, 0);
}

static void tells_stages_as_they_arrive(void **state)
{
	(void)state;
	struct cluster *c = cluster_new();
	struct heard h = { "" };
	set_pool(c);
	cluster_on_change(c, hear, &h);
	see(c, CLUSTER_PODS, POD(APP, "", ""), (struct moment){ 1001, false });
	see(c, CLUSTER_PODS, POD(APP, ",'nodeName':'n'", "'conditions':[" SCHEDULED "]"),
	    (struct moment){ 2002, false });
	see(c, CLUSTER_PODS, POD(APP, ",'nodeName':'n'", "'podIP':'10.0.0.1','conditions':[" SCHEDULED "]," RUNS),
	    (struct moment){ 3003, false });
	see(c, CLUSTER_PODS,
	    POD(APP, ",'nodeName':'n'", "'podIP':'10.0.0.1','conditions':[" SCHEDULED "," IS_READY "]," RUNS),
	    (struct moment){ 4004, false });
	/* A repeat of what is known tells nothing. */
	see(c, CLUSTER_PODS,
	    POD(APP, ",'nodeName':'n'", "'podIP':'10.0.0.1','conditions':[" SCHEDULED "," IS_READY "]," RUNS),
	    (struct moment){ 5005, false });
	/* Not ready for a while: when it first was stays known. */
	see(c, CLUSTER_PODS, POD(APP, ",'nodeName':'n'", "'podIP':'10.0.0.1','conditions':[" SCHEDULED "]," RUNS),
	    (struct moment){ 6006, false });
	see(c, CLUSTER_PODS,
	    POD(APP, ",'nodeName':'n'", "'podIP':'10.0.0.1','conditions':[" SCHEDULED "," IS_READY "]," RUNS),
	    (struct moment){ 7007, false });
	const struct pod *p = cluster_pod(c, "u");
	assert_int_equal(p->created_at, 1001);
	assert_int_equal(p->scheduled_at, 2002);
	assert_int_equal(p->started_at, 3003);
	assert_int_equal(p->ready_at, 4004);
	assert_string_equal(p->ip, "10.0.0.1");
	assert_int_equal(p->pool, 0);
	cluster_pod_gone(c, object_uid_of("u"), 8008);
	cluster_pod_gone(c, object_uid_of("u"), 9009);
	assert_string_equal(h.text,
			    "added@1001 scheduled@2002 started@3003 ready@4004 changed@6006 ready@7007 gone@8008");
	assert_int_equal(cluster_pod_count(c), 0);
	cluster_free(c);
}

static void stamps_serve_what_was_listed(void **state)
{
	(void)state;
	struct cluster *c = cluster_new();
	struct heard h = { "" };
	set_pool(c);
	cluster_on_change(c, hear, &h);
	see(c, CLUSTER_PODS, POD(APP, ",'nodeName':'n'", "'conditions':[" SCHEDULED "," IS_READY "]," RUNS),
	    (struct moment){ 60000, true });
	assert_string_equal(h.text, "added@1000 scheduled@2000 started@3000 ready@4000");
	/* Listed again later: nothing new. */
	see(c, CLUSTER_PODS, POD(APP, ",'nodeName':'n'", "'conditions':[" SCHEDULED "," IS_READY "]," RUNS),
	    (struct moment){ 70000, true });
	assert_string_equal(h.text, "added@1000 scheduled@2000 started@3000 ready@4000");
	cluster_free(c);
}

/* What neither computes nor serves is nobody's event, and when it is over it is forgotten. */
static void others_are_quiet(void **state)
{
	(void)state;
	struct cluster *c = cluster_new();
	struct heard h = { "" };
	set_pool(c);
	cluster_on_change(c, hear, &h);
	assert_true(see_now(c, CLUSTER_PODS, POD("", ",'nodeName':'n'", "'phase':'Running'")));
	assert_int_equal(cluster_pod_count(c), 1);
	assert_false(see_now(c, CLUSTER_PODS, POD("", ",'nodeName':'n'", "'phase':'Succeeded'")));
	assert_int_equal(cluster_pod_count(c), 0);
	assert_null(cluster_node(c, "n"));
	/* One of a pool is told. */
	assert_false(see_now(c, CLUSTER_PODS, POD(APP, ",'nodeName':'n'", "'phase':'Succeeded'")));
	assert_string_equal(h.text, "added@1000000 scheduled@1000000 gone@1000000");
	cluster_free(c);
}

static void writes_uids(void **state)
{
	(void)state;
	static const char uid[] = "aeff4461-89d2-4adc-9eec-529f2b625b8c";
	struct cluster *c = cluster_new();
	see_now(c, CLUSTER_PODS,
		"{'metadata':{'namespace':'a','name':'p','uid':'aeff4461-89d2-4adc-9eec-529f2b625b8c'}}");
	char text[37];
	pod_uid_text(cluster_pod(c, uid), text);
	assert_string_equal(text, uid);
	cluster_free(c);
}

/* GPUs in use follow pods that come, change hands and go, also before their node is known, and its slicing. */
static void counts_used_gpus(void **state)
{
	(void)state;
	static const char *const pod =
		"{'metadata':{'namespace':'a','name':'%s','uid':'%s'},'spec':{'nodeName':'n','containers':"
		"[{'resources':{'limits':{'nvidia.com/gpu':'%d'}}}]},'status':{'phase':'%s'}}";
	char text[1024];
	struct cluster *c = cluster_new();
	snprintf(text, sizeof text, pod, "p", "u1", 2, "Running");
	see_now(c, CLUSTER_PODS, text);
	see_now(c, CLUSTER_NODES,
		"{'metadata':{'name':'n','uid':'k','labels':{'nvidia.com/gpu.replicas':'4'}},"
		"'status':{'allocatable':{'nvidia.com/gpu':'8'}}}");
	const struct node *n = cluster_node(c, "n");
	assert_int_equal(n->gpus_milli, 2000);
	assert_int_equal(n->gpus_used_milli, 500);
	snprintf(text, sizeof text, pod, "q", "u2", 1, "Running");
	see_now(c, CLUSTER_PODS, text);
	assert_int_equal(n->gpus_used_milli, 750);
	see_now(c, CLUSTER_NODES,
		"{'metadata':{'name':'n','uid':'k'},'status':{'allocatable':{'nvidia.com/gpu':'8'}}}");
	assert_int_equal(n->gpus_used_milli, 3000);
	snprintf(text, sizeof text, pod, "p", "u1", 2, "Succeeded");
	see_now(c, CLUSTER_PODS, text);
	assert_int_equal(n->gpus_used_milli, 1000);
	struct cluster_gpus sum = cluster_gpus(c);
	assert_int_equal(sum.allocatable_milli, 8000);
	assert_int_equal(sum.used_milli, 1000);
	assert_int_equal(sum.finished_milli, 2000);
	cluster_node_gone(c, object_uid_of("k"), 0);
	cluster_pod_gone(c, object_uid_of("u1"), 0);
	cluster_pod_gone(c, object_uid_of("u2"), 0);
	cluster_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_states),
		cmocka_unit_test(adds_requests_up),
		cmocka_unit_test(reads_wishes),
		cmocka_unit_test(knows_controllers),
		cmocka_unit_test(tells_stages_as_they_arrive),
		cmocka_unit_test(stamps_serve_what_was_listed),
		cmocka_unit_test(others_are_quiet),
		cmocka_unit_test(writes_uids),
		cmocka_unit_test(counts_used_gpus),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
