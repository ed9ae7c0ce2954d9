/* Pods that are of use only together. */
#include "tests/unit/cluster/model_objects.h"

/* What follows the name. */
#define POD(metadata, spec)                                                                      \
	metadata "},'spec':{'containers':[{'resources':{'limits':{'nvidia.com/gpu':'1'}}}]" spec \
		 "},'status':{'phase':'Pending'}}"
#define JOB_POD	  POD(",'ownerReferences':[{'kind':'Job','name':'train','uid':'j','controller':true}]", "")
#define JOB(spec) "{'metadata':{'namespace':'a','name':'train','uid':'j'},'spec':{" spec "}}"
#define GROUPED(label, size_key, size) \
	POD(",'labels':{'" label "':'train'},'annotations':{'" size_key "':'" size "'}", "")
#define ANNOTATED(key) POD(",'annotations':{'" key "':'train'}", "")
#define LEAST(count)   "{'metadata':{'namespace':'a','name':'train','uid':'g'},'spec':{'minMember':" count "}}"
#define SPEAKS	       "'parallelism':4,'completions':4,'completionMode':'Indexed'"

static void see_pod(struct cluster *c, int number, const char *rest)
{
	char text[2048];
	snprintf(text, sizeof text, "{'metadata':{'namespace':'a','name':'p%d','uid':'u%d'%s", number, number, rest);
	see_now(c, CLUSTER_PODS, text);
}

struct object {
	enum cluster_kind kind;
	const char *text;
};

static const struct {
	const char *what;
	struct object objects[2];
	const char *pod;
	int pods;
	int64_t size; /* 0: no gang */
	enum gang_kind kind;
	int64_t pending; /* that count */
} gang_cases[] = {
	{ "a Job whose pods speak", { { CLUSTER_JOBS, JOB(SPEAKS) } }, JOB_POD, 4, 4, GANG_JOB, 4 },
	{ "not all of them yet", { { CLUSTER_JOBS, JOB(SPEAKS) } }, JOB_POD, 3, 4, GANG_JOB, 0 },
	{ "suspended", { { CLUSTER_JOBS, JOB(SPEAKS ",'suspend':true") } }, JOB_POD, 4, 4, GANG_JOB, 0 },
	{ "a queue of work",
	  { { CLUSTER_JOBS, JOB("'parallelism':4,'completions':100,'completionMode':'Indexed'") } },
	  JOB_POD,
	  3,
	  0,
	  GANG_NONE,
	  3 },
	{ "no index", { { CLUSTER_JOBS, JOB("'parallelism':4,'completions':4") } }, JOB_POD, 3, 0, GANG_NONE, 3 },
	{ "told to be one",
	  { { CLUSTER_JOBS, "{'metadata':{'namespace':'a','name':'train','uid':'j','annotations':{'preheat.dev/"
			    "gang':'true'}},"
			    "'spec':{'parallelism':4}}" } },
	  JOB_POD,
	  3,
	  4,
	  GANG_JOB,
	  0 },
	{ "told to be none",
	  { { CLUSTER_JOBS, "{'metadata':{'namespace':'a','name':'train','uid':'j','annotations':{'preheat.dev/"
			    "gang':'false'}},"
			    "'spec':{" SPEAKS "}}" } },
	  JOB_POD,
	  3,
	  0,
	  GANG_NONE,
	  3 },
	{ "a Job that Kueue admits whole",
	  { { CLUSTER_JOBS, JOB("'parallelism':4") },
	    { CLUSTER_KUEUE_WORKLOADS, "{'metadata':{'namespace':'a','name':'job-train','uid':'w','"
				       "ownerReferences':[{'kind':'Job','name':'train',"
				       "'uid':'j','controller':true}]},'spec':{'podSets':[{'count':3},{'count':"
				       "1}]},'status':{'conditions':"
				       "[{'type':'Admitted','status':'True'}]}}" } },
	  JOB_POD,
	  4,
	  4,
	  GANG_JOB,
	  4 },
	{ "a Job that Kueue has not admitted",
	  { { CLUSTER_KUEUE_WORKLOADS, "{'metadata':{'namespace':'a','name':'job-train','uid':'w','"
				       "ownerReferences':[{'kind':'Job','name':'train',"
				       "'uid':'j','controller':true}]},'spec':{'podSets':[{'count':4}]}}" } },
	  JOB_POD,
	  4,
	  4,
	  GANG_JOB,
	  0 },
	{ "a JobSet",
	  { { CLUSTER_JOB_SETS,
	      "{'metadata':{'namespace':'a','name':'train','uid':'s'},'spec':{'replicatedJobs':[{'replicas':2,'"
	      "template':"
	      "{'spec':{'parallelism':2,'completions':2}}},{'template':{'spec':{'parallelism':1}}}]}}" } },
	  GROUPED("jobset.sigs.k8s.io/jobset-name", "x", "1"),
	  5,
	  5,
	  GANG_JOB_SET,
	  5 },
	{ "a JobSet, some of whose Jobs come after others",
	  { { CLUSTER_JOB_SETS,
	      "{'metadata':{'namespace':'a','name':'train','uid':'s'},'spec':{'replicatedJobs':[{'name':'i'},{'"
	      "replicas':2,'dependsOn':[{'name':'i','status':'Complete'}]}]}}" } },
	  GROUPED("jobset.sigs.k8s.io/jobset-name", "x", "1"),
	  2,
	  2,
	  GANG_JOB_SET,
	  2 },
	{ "a JobSet whose Jobs start one after the other",
	  { { CLUSTER_JOB_SETS, "{'metadata':{'namespace':'a','name':'train','uid':'s'},'spec':{'startupPolicy':{"
				"'startupPolicyOrder':'InOrder'},'replicatedJobs':[{},{'replicas':2}]}}" } },
	  GROUPED("jobset.sigs.k8s.io/jobset-name", "x", "1"),
	  2,
	  2,
	  GANG_JOB_SET,
	  2 },
	{ "a JobSet, suspended",
	  { { CLUSTER_JOB_SETS, "{'metadata':{'namespace':'a','name':'train','uid':'s'},'spec':{'suspend':true,"
				"'replicatedJobs':[{'replicas':2}]}}" } },
	  GROUPED("jobset.sigs.k8s.io/jobset-name", "x", "1"),
	  2,
	  2,
	  GANG_JOB_SET,
	  0 },
	{ "a JobSet of another namespace",
	  { { CLUSTER_JOB_SETS, "{'metadata':{'namespace':'b','name':'train','uid':'s'},'spec':{'"
				"replicatedJobs':[{'replicas':20}]}}" } },
	  GROUPED("jobset.sigs.k8s.io/jobset-name", "x", "1"),
	  2,
	  2,
	  GANG_JOB_SET,
	  2 },
	{ "a pod group of Kueue",
	  { { CLUSTER_KIND_COUNT, NULL } },
	  GROUPED("kueue.x-k8s.io/pod-group-name", "kueue.x-k8s.io/pod-group-total-count", "3"),
	  3,
	  3,
	  GANG_KUEUE,
	  3 },
	{ "a pod group of Kueue, in part",
	  { { CLUSTER_KIND_COUNT, NULL } },
	  GROUPED("kueue.x-k8s.io/pod-group-name", "kueue.x-k8s.io/pod-group-total-count", "3"),
	  2,
	  3,
	  GANG_KUEUE,
	  0 },
	{ "a leader and its workers",
	  { { CLUSTER_KIND_COUNT, NULL } },
	  GROUPED("leaderworkerset.sigs.k8s.io/group-key", "leaderworkerset.sigs.k8s.io/size", "4"),
	  3,
	  4,
	  GANG_LEADER_WORKER_SET,
	  0 },
	{ "a pod group",
	  { { CLUSTER_POD_GROUPS, "{'metadata':{'namespace':'a','name':'train','uid':'g'},'spec':{'minMember':3}}" } },
	  GROUPED("scheduling.x-k8s.io/pod-group", "x", "1"),
	  5,
	  3,
	  GANG_POD_GROUP,
	  5 },
	{ "a pod group of unknown size",
	  { { CLUSTER_KIND_COUNT, NULL } },
	  GROUPED("scheduling.x-k8s.io/pod-group", "x", "1"),
	  2,
	  2,
	  GANG_POD_GROUP,
	  2 },
	{ "a pod group that one pod is enough for",
	  { { CLUSTER_POD_GROUPS, LEAST("1") } },
	  GROUPED("scheduling.x-k8s.io/pod-group", "x", "1"),
	  3,
	  0,
	  GANG_NONE,
	  3 },
	{ "Volcano's",
	  { { CLUSTER_VOLCANO_POD_GROUPS, LEAST("3") } },
	  ANNOTATED("scheduling.k8s.io/group-name"),
	  4,
	  3,
	  GANG_VOLCANO,
	  4 },
	{ "Volcano's, in part",
	  { { CLUSTER_VOLCANO_POD_GROUPS, LEAST("3") } },
	  ANNOTATED("scheduling.k8s.io/group-name"),
	  2,
	  3,
	  GANG_VOLCANO,
	  0 },
	{ "Volcano's that is not known",
	  { { CLUSTER_KAI_POD_GROUPS, LEAST("3") } },
	  ANNOTATED("scheduling.k8s.io/group-name"),
	  2,
	  2,
	  GANG_VOLCANO,
	  2 },
	{ "Volcano's that is not known, of a Deployment",
	  { { CLUSTER_KAI_POD_GROUPS, LEAST("3") } },
	  POD(",'annotations':{'scheduling.k8s.io/group-name':'train'},'ownerReferences':[{'kind':'ReplicaSet','name':"
	      "'serve','uid':'r','controller':true}]",
	      ""),
	  2,
	  0,
	  GANG_NONE,
	  2 },
	{ "Volcano's of a JobSet",
	  { { CLUSTER_VOLCANO_POD_GROUPS, LEAST("1") } },
	  POD(",'labels':{'jobset.sigs.k8s.io/jobset-name':'set'},'annotations':{'scheduling.k8s.io/"
	      "group-name':'train'}",
	      ""),
	  2,
	  2,
	  GANG_JOB_SET,
	  2 },
	{ "Volcano's for the pods of a Deployment",
	  { { CLUSTER_VOLCANO_POD_GROUPS, LEAST("1") } },
	  ANNOTATED("scheduling.k8s.io/group-name"),
	  3,
	  0,
	  GANG_NONE,
	  3 },
	{ "Volcano's for the pods of a Job that speak",
	  { { CLUSTER_VOLCANO_POD_GROUPS, LEAST("1") }, { CLUSTER_JOBS, JOB(SPEAKS) } },
	  POD(",'annotations':{'scheduling.k8s.io/group-name':'train'},'ownerReferences':[{'kind':'Job','name':'train',"
	      "'uid':'j','controller':true}]",
	      ""),
	  3,
	  4,
	  GANG_JOB,
	  0 },
	{ "KAI's", { { CLUSTER_KAI_POD_GROUPS, LEAST("4") } }, ANNOTATED("pod-group-name"), 4, 4, GANG_KAI, 4 },
	{ "KAI's, in part",
	  { { CLUSTER_KAI_POD_GROUPS, LEAST("4") } },
	  ANNOTATED("pod-group-name"),
	  3,
	  4,
	  GANG_KAI,
	  0 },
	{ "Kubernetes' own",
	  { { CLUSTER_NATIVE_POD_GROUPS, "{'metadata':{'namespace':'a','name':'train','uid':'g'},'spec':{"
					 "'schedulingPolicy':{'gang':{'minCount':3}}}}" } },
	  POD("", ",'schedulingGroup':{'podGroupName':'train'}"),
	  3,
	  3,
	  GANG_NATIVE,
	  3 },
	{ "Kubernetes' own, in part",
	  { { CLUSTER_NATIVE_POD_GROUPS, "{'metadata':{'namespace':'a','name':'train','uid':'g'},'spec':{"
					 "'schedulingPolicy':{'gang':{'minCount':3}}}}" } },
	  POD("", ",'schedulingGroup':{'podGroupName':'train'}"),
	  2,
	  3,
	  GANG_NATIVE,
	  0 },
	{ "Kubernetes' own, no gang",
	  { { CLUSTER_NATIVE_POD_GROUPS, "{'metadata':{'namespace':'a','name':'train','uid':'g'},'spec':{"
					 "'schedulingPolicy':{'basic':{}}}}" } },
	  POD("", ",'schedulingGroup':{'podGroupName':'train'}"),
	  2,
	  0,
	  GANG_NONE,
	  2 },
	{ "a size that is none",
	  { { CLUSTER_KIND_COUNT, NULL } },
	  GROUPED("kueue.x-k8s.io/pod-group-name", "kueue.x-k8s.io/pod-group-total-count", "many"),
	  2,
	  2,
	  GANG_KUEUE,
	  2 },
};

static void counts_whole_gangs_only(void **state)
{
	(void)state;
	static const struct cluster_label selector = { "pool", "x" };
	for (size_t i = 0; i < sizeof gang_cases / sizeof gang_cases[0]; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct cluster *c = cluster_new();
		struct cluster_group group = group_named("g5", 1, 10);
		struct cluster_pool pool = {
			.name = "x", .namespace = "a", .selector = &selector, .selector_count = 1
		};
		cluster_set_fleet(c, &pool, 1, &group, 1);
		for (int k = 0; k < 2 && gang_cases[i].objects[k].text != NULL; k++)
			see_now(c, gang_cases[i].objects[k].kind, gang_cases[i].objects[k].text);
		for (int k = 0; k < gang_cases[i].pods; k++)
			see_pod(c, k, gang_cases[i].pod);
		size_t count = 0, shape_count = 0;
		struct gang *gangs = cluster_gangs(c, &a, &count);
		struct pending_shape *shapes = cluster_pending(c, &a, &shape_count);
		int64_t pending = 0;
		for (size_t k = 0; k < shape_count; k++)
			pending += shapes[k].is_incomplete_gang ? 0 : shapes[k].count;
		if (count != (gang_cases[i].size > 0 ? 1u : 0u) || pending != gang_cases[i].pending)
			fail_msg("%s: %zu gangs, %lld count", gang_cases[i].what, count, (long long)pending);
		if (count == 1 && (gangs[0].size != gang_cases[i].size || gangs[0].kind != gang_cases[i].kind ||
				   gangs[0].exist != gang_cases[i].pods || gangs[0].pending != gang_cases[i].pods))
			fail_msg("%s: size %lld", gang_cases[i].what, (long long)gangs[0].size);
		cluster_free(c);
	}
}

static int64_t pods_lacking(const struct cluster *c, struct arena *a)
{
	size_t count = 0;
	int64_t lacking = 0;
	const struct pending_shape *shapes = cluster_pending(c, a, &count);
	for (size_t i = 0; i < count; i++)
		lacking += shapes[i].is_incomplete_gang ? 0 : shapes[i].count;
	return lacking;
}

/* One that is done counts: the others of its gang wait for machines all the same. */
static void who_is_done_exists(void **state)
{
	(void)state;
	CLEANUP(arena_release) struct arena a = { 0 };
	struct cluster *c = cluster_new();
	see_now(c, CLUSTER_JOB_SETS,
		"{'metadata':{'namespace':'a','name':'train','uid':'s'},'spec':{'replicatedJobs':[{},{'replicas':2}]}"
		"}");
	see_now(c, CLUSTER_PODS,
		"{'metadata':{'namespace':'a','name':'l','uid':'l','labels':{'jobset.sigs.k8s.io/"
		"jobset-name':'train'}},"
		"'spec':{'nodeName':'n','containers':[{}]},'status':{'phase':'Succeeded'}}");
	see_pod(c, 0, GROUPED("jobset.sigs.k8s.io/jobset-name", "x", "1"));
	assert_int_equal(pods_lacking(c, &a), 0);
	see_pod(c, 1, GROUPED("jobset.sigs.k8s.io/jobset-name", "x", "1"));
	assert_int_equal(pods_lacking(c, &a), 2);
	cluster_free(c);
}

/* Workers may be made only when their leader has its place, or serves. */
static void a_leader_alone_is_served(void **state)
{
	(void)state;
	CLEANUP(arena_release) struct arena a = { 0 };
	struct cluster *c = cluster_new();
	see_now(c, CLUSTER_PODS,
		"{'metadata':{'namespace':'a','name':'l','uid':'l','creationTimestamp':'1970-01-01T00:16:40Z','labels':"
		"{"
		"'leaderworkerset.sigs.k8s.io/group-key':'k'},'annotations':{'leaderworkerset.sigs.k8s.io/size':'2'}},"
		"'spec':{'containers':[{'resources':{'limits':{'nvidia.com/gpu':'1'}}}]},'status':{'phase':'Pending',"
		"'conditions':[{'type':'PodScheduled','status':'False','reason':'Unschedulable'}]}}");
	cluster_follow_waiting(c, 1000000 + 14 * SECOND);
	assert_int_equal(pods_lacking(c, &a), 0);
	cluster_follow_waiting(c, 1000000 + 16 * SECOND);
	assert_int_equal(pods_lacking(c, &a), 1);
	cluster_free(c);
}

static void a_gang_that_does_not_come_is_told(void **state)
{
	(void)state;
	CLEANUP(arena_release) struct arena a = { 0 };
	struct cluster *c = cluster_new();
	struct cluster_group group = group_named("g5", 1, 10);
	size_t count = 0;
	cluster_set_fleet(c, NULL, 0, &group, 1);
	see_now(c, CLUSTER_PODS,
		"{'metadata':{'namespace':'a','name':'p','uid':'u','creationTimestamp':'1970-01-01T00:16:40Z','labels':"
		"{"
		"'kueue.x-k8s.io/pod-group-name':'train'},'annotations':{'kueue.x-k8s.io/pod-group-total-count':'2'}},"
		"'spec':{'containers':[{'resources':{'limits':{'nvidia.com/gpu':'1'}}}]},'status':{'phase':'Pending',"
		"'conditions':[{'type':'PodScheduled','status':'False','reason':'Unschedulable'}]}}");
	cluster_follow_waiting(c, 1000000 + 59 * SECOND);
	cluster_pod_notes(c, &a, &count);
	assert_int_equal(count, 0);
	cluster_follow_waiting(c, 1000000 + 61 * SECOND);
	const struct pod_note *notes = cluster_pod_notes(c, &a, &count);
	assert_int_equal(count, 1);
	assert_string_equal(notes[0].text, "1 of 2 pods of its gang train exist: no machine is bought before all do");
	cluster_free(c);
}

/* A PodGroup runs with its least number: who is more, and finds no place, is in nobody's way. */
static void the_least_of_a_pod_group_is_enough(void **state)
{
	(void)state;
	CLEANUP(arena_release) struct arena a = { 0 };
	struct cluster *c = cluster_new();
	struct cluster_group group = group_named("g5", 1, 10);
	size_t count = 0;
	int64_t placed = 0;
	cluster_set_fleet(c, NULL, 0, &group, 1);
	see_now(c, CLUSTER_POD_GROUPS,
		"{'metadata':{'namespace':'a','name':'train','uid':'g'},'spec':{'minMember':2}}");
	for (int i = 0; i < 3; i++)
		see_pod(c, i,
			i < 2 ? GROUPED("scheduling.x-k8s.io/pod-group", "x", "1")
			      : ",'labels':{'scheduling.x-k8s.io/pod-group':'train'}},'spec':{'containers':[{"
				"'resources':{'limits':{'nvidia.com/gpu':'2'}}}]},'status':{'phase':'Pending'}}");
	const struct pending_shape *shapes = cluster_pending(c, &a, &count);
	for (size_t i = 0; i < count; i++)
		placed += shapes[i].why == NULL ? shapes[i].count : 0;
	assert_int_equal(placed, 2);
	cluster_free(c);
}

#define OF_GANG(name, size)                                                                              \
	POD(",'labels':{'kueue.x-k8s.io/pod-group-name':'" name "'},'annotations':{'kueue.x-k8s.io/pod-" \
	    "group-total-count':'" size "'}",                                                            \
	    "")

#define NODE_OF(name, labels)                                                                                   \
	"{'metadata':{'name':'" name "','uid':'" name "','labels':{" labels                                     \
	"}},'status':{'allocatable':{'nvidia.com/gpu':'1','pods':'9'},'conditions':[{'type':'Ready','status':'" \
	"True'}]}}"

/* It took the two nodes in thought, and got no more: they are there for the next. */
static void a_gang_that_finds_no_place_leaves_its_nodes_to_the_next(void **state)
{
	static const int groups[] = { 0 };
	const struct cluster_group group = group_named("g5", 1, 10);
	const struct cluster_pool pool = { .name = "any",
					   .namespace = "b",
					   .gpus_per_replica = 1,
					   .groups = groups,
					   .group_count = 1,
					   .takes_any = true };
	CLEANUP(arena_release) struct arena a = { 0 };
	struct cluster *c = cluster_new();

	(void)state;
	cluster_set_fleet(c, &pool, 1, &group, 1);
	cluster_offer(c, 0, 2);
	for (int i = 0; i < 2; i++) {
		char text[512];
		snprintf(text, sizeof text, NODE_OF("n%d", "'simulated.preheat.dev/node-group':'g5'"), i, i);
		see_now(c, CLUSTER_NODES, text);
	}
	for (int i = 0; i < 7; i++)
		see_pod(c, i, i < 5 ? OF_GANG("large", "5") : OF_GANG("small", "2"));
	const struct pool_view v = cluster_pool_view(c, 0, &a);
	assert_int_equal(v.groups[0].lacking_nodes, 0);
	assert_int_equal(v.placed, 2);
	cluster_free(c);
}

/* One that fails like another does so for as long as nobody sat down since, and leaves as much to the next. */
static void gangs_that_fail_alike_leave_all_to_those_that_fit(void **state)
{
	static const int groups[] = { 0 };
	static const char *const gangs[] = { OF_GANG("a", "5"), OF_GANG("b", "5"), OF_GANG("c", "2"),
					     OF_GANG("d", "3"), OF_GANG("e", "3"), OF_GANG("f", "2") };
	static const int sizes[] = { 5, 5, 2, 3, 3, 2 };
	const struct cluster_group group = group_named("g5", 1, 10);
	const struct cluster_pool pool = { .name = "any",
					   .namespace = "b",
					   .gpus_per_replica = 1,
					   .groups = groups,
					   .group_count = 1,
					   .takes_any = true };
	CLEANUP(arena_release) struct arena a = { 0 };
	struct cluster *c = cluster_new();
	char text[512];

	(void)state;
	cluster_set_fleet(c, &pool, 1, &group, 1);
	cluster_offer(c, 0, 2);
	for (int i = 0; i < 2; i++) {
		snprintf(text, sizeof text, NODE_OF("n%d", "'simulated.preheat.dev/node-group':'g5'"), i, i);
		see_now(c, CLUSTER_NODES, text);
	}
	for (int g = 0, number = 10; g < 6; g++)
		for (int i = 0; i < sizes[g]; i++)
			see_pod(c, number++, gangs[g]);
	const struct pool_view v = cluster_pool_view(c, 0, &a);
	assert_int_equal(v.placed, 2);
	assert_int_equal(v.groups[0].lacking_nodes, 2);
	assert_int_equal(v.stranded_milli, 16000);
	cluster_free(c);
}

/* Each is told who of it finds no place. */
static void gangs_that_fail_alike_are_told_of_their_own(void **state)
{
	static const char spec[] = ",'nodeSelector':{'rack':'r1'}";
	static const char own[] = "g5: its node selector wants rack=r1, nodes have no such label";
	const struct cluster_group group = group_named("g5", 1, 10);
	CLEANUP(arena_release) struct arena a = { 0 };
	struct cluster *c = cluster_new();
	char text[1024];
	size_t count = 0;

	(void)state;
	cluster_set_fleet(c, NULL, 0, &group, 1);
	snprintf(text, sizeof text, NODE_OF("n%d", "'simulated.preheat.dev/node-group':'g5'"), 0, 0);
	see_now(c, CLUSTER_NODES, text);
	cluster_node_gone(c, object_uid_of("n0"), 0);
	snprintf(text, sizeof text, NODE_OF("n%d", "'rack':'r1'"), 1, 1); /* of no group */
	see_now(c, CLUSTER_NODES, text);
	for (int i = 0; i < 4; i++) {
		snprintf(text, sizeof text,
			 POD(",'labels':{'kueue.x-k8s.io/pod-group-name':'%d'},'annotations':{'kueue.x-k8s.io/pod-"
			     "group-total-count':'2'}",
			     "%s"),
			 i / 2, spec);
		see_pod(c, i, text);
	}
	const struct pod_note *notes = cluster_pod_notes(c, &a, &count);
	assert_int_equal(count, 4);
	for (size_t i = 0; i < count; i++) {
		int number = notes[i].pod->name[1] - '0';
		snprintf(text, sizeof text, "%s%s",
			 number % 2 == 1 ? ""
			 : number == 0	 ? "p1 of its gang finds no place: "
					 : "p3 of its gang finds no place: ",
			 own);
		assert_string_equal(notes[i].text, text);
	}
	cluster_free(c);
}

/*
 * kube-scheduler says nothing of those of a gang that it has a node for, as long as others lack one; Volcano says
 * Schedulable of them. All of them need machines, were it only for those that lack one.
 */
static void who_waits_for_the_rest_of_its_gang_is_served(void **state)
{
	static const char *const said[][2] = {
		{ "", "'conditions':[{'type':'PodScheduled','status':'False','reason':'Unschedulable'}]" },
		{ "'conditions':[{'type':'PodScheduled','status':'False','reason':'Schedulable'}]",
		  "'conditions':[{'type':'PodScheduled','status':'False','reason':'Unschedulable'}]" },
		{ "", "" },
	};
	static const int64_t served[] = { 2, 2, 0 };

	(void)state;
	for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
		struct cluster *c = cluster_new();
		struct cluster_group group = group_named("g5", 1, 10);
		const struct placement *p = NULL;
		int64_t placed = 0;

		cluster_set_fleet(c, NULL, 0, &group, 1);
		cluster_follow_waiting(c, 1000000);
		see_now(c, CLUSTER_VOLCANO_POD_GROUPS, LEAST("2"));
		for (int k = 0; k < 2; k++) {
			char text[1024];
			snprintf(text, sizeof text,
				 "{'metadata':{'namespace':'a','name':'p%d','uid':'u%d','annotations':{"
				 "'scheduling.k8s.io/group-name':'train'}},'spec':{'containers':[{'resources':{"
				 "'limits':{'nvidia.com/gpu':'1'}}}]},'status':{%s}}",
				 k, k, said[i][k]);
			see_now(c, CLUSTER_PODS, text);
		}
		p = cluster_placement(c);
		for (size_t k = 0; k < p->count; k++)
			placed += p->items[k].placing == PLACING_NEW;
		assert_int_equal(placed, served[i]);
		cluster_free(c);
	}
}

/* What it took in thought, and left again, is not what it lacks. */
static void a_gang_is_told_what_it_lacks(void **state)
{
	static const int groups[] = { 0 };
	static const struct {
		int64_t offered, money; /* machines, dollars */
		const char *full;
	} cases[] = {
		{ 2, 8, "fits node group g5, which can give it no machine now" },
		{ 9, 2,
		  "fits node group g5, where more machines at $1.00 an hour are beyond the budget of WarmPool any: "
		  "$6.00 of $8.00 an hour are spent" },
	};
	struct cluster_group group = group_named("g5", 1, 10);
	const struct cluster_pool pool = { .name = "any",
					   .namespace = "b",
					   .gpus_per_replica = 1,
					   .groups = groups,
					   .group_count = 1,
					   .takes_any = true };

	(void)state;
	group.price = 1000000;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct cluster *c = cluster_new();
		size_t count = 0;

		cluster_set_fleet(c, &pool, 1, &group, 1);
		cluster_offer(c, 0, cases[i].offered);
		cluster_offer_money(c, 8000000, cases[i].money * 1000000);
		for (int k = 0; k < 3; k++)
			see_pod(c, k, OF_GANG("three", "3"));
		const struct pod_note *notes = cluster_pod_notes(c, &a, &count);
		assert_int_equal(count, 3);
		assert_string_equal(notes[0].text, cases[i].full);
		cluster_free(c);
	}
}

/* Pods that Kueue holds back exist, and are nobody's demand until they are let go. */
static void gated_pods_wait(void **state)
{
	(void)state;
	CLEANUP(arena_release) struct arena a = { 0 };
	struct cluster *c = cluster_new();
	size_t count = 0;
	for (int i = 0; i < 2; i++)
		see_pod(c, i,
			POD(",'labels':{'kueue.x-k8s.io/pod-group-name':'g'},'annotations':{'kueue.x-k8s.io/"
			    "pod-group-total-count':'2'}",
			    ",'schedulingGates':[{'name':'kueue.x-k8s.io/admission'}]"));
	cluster_pending(c, &a, &count);
	assert_int_equal(count, 0);
	struct gang *gangs = cluster_gangs(c, &a, &count);
	assert_int_equal(count, 1);
	assert_int_equal(gangs[0].pending, 2);
	assert_int_equal(gangs[0].running, 0);
	cluster_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_whole_gangs_only),
		cmocka_unit_test(who_is_done_exists),
		cmocka_unit_test(a_leader_alone_is_served),
		cmocka_unit_test(a_gang_that_does_not_come_is_told),
		cmocka_unit_test(the_least_of_a_pod_group_is_enough),
		cmocka_unit_test(a_gang_that_finds_no_place_leaves_its_nodes_to_the_next),
		cmocka_unit_test(gangs_that_fail_alike_leave_all_to_those_that_fit),
		cmocka_unit_test(gangs_that_fail_alike_are_told_of_their_own),
		cmocka_unit_test(who_waits_for_the_rest_of_its_gang_is_served),
		cmocka_unit_test(a_gang_is_told_what_it_lacks),
		cmocka_unit_test(gated_pods_wait),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
