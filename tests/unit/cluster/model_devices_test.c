/* Devices by claim: what nodes have of them, what pods hold of them, and how many machines those that wait need. */
#include "tests/unit/cluster/model_objects.h"

#include "base/buf.h"
#include "base/random.h"

#define NODE(name, uid)                                                                                      \
	"{'metadata':{'name':'" name "','uid':'" uid "','labels':{'simulated.preheat.dev/node-group':'g'}}," \
	"'status':{'allocatable':{'cpu':'64'},'conditions':[{'type':'Ready','status':'True'}]}}"
#define SLICE(uid, node, owner, generation, count, devices)                                                           \
	"{'metadata':{'name':'" uid "','uid':'" uid "','ownerReferences':[{'kind':'Node','name':'" node               \
	"','uid':'" owner "','controller':true}]},'spec':{'driver':'gpu.nvidia.com','nodeName':'" node                \
	"','pool':{'name':'" node "','generation':" generation ",'resourceSliceCount':" count "},'devices':[" devices \
	"]}}"
#define GPU	     "{'name':'gpu-0','attributes':{'type':{'string':'gpu'},'productName':{'string':'H100'}}}"
#define MIG(profile) "{'name':'m','attributes':{'type':{'string':'mig'},'profile':{'string':'" profile "'}}}"
#define MIG_OF(gpu, profile)                                                                                           \
	"{'name':'" gpu "-mig-" profile "-0','attributes':{'type':{'string':'mig'},'profile':{'string':'" profile "'}" \
	"}}"
#define TYPED(type) "{'name':'t','attributes':{'type':{'string':'" type "'}}}"
#define BARRED(effect) \
	"{'name':'b','attributes':{'type':{'string':'gpu'}},'taints':[{'key':'k','effect':'" effect "'}]}"
#define OTHER(driver)                                                  \
	"{'metadata':{'name':'o','uid':'o'},'spec':{'driver':'" driver \
	"','nodeName':'n','pool':{'name':'n','generation':1,'resourceSliceCount':1},'devices':[{'name':'d'}]}}"

static const struct {
	const char *what;
	const char *slices[4];
	int64_t gpus_milli;
} published[] = {
	{ "none", { NULL }, 0 },
	{ "two", { SLICE("s", "n", "n1", "1", "1", GPU "," GPU) }, 2000 },
	{ "a slice that is not there yet", { SLICE("s", "n", "n1", "1", "2", GPU) }, 0 },
	{ "both slices", { SLICE("s", "n", "n1", "1", "2", GPU), SLICE("t", "n", "n1", "1", "2", GPU) }, 2000 },
	{ "an older generation",
	  { SLICE("s", "n", "n1", "1", "1", GPU "," GPU), SLICE("t", "n", "n1", "2", "1", GPU) },
	  1000 },
	{ "a generation that is not whole yet",
	  { SLICE("s", "n", "n1", "1", "1", GPU), SLICE("t", "n", "n1", "2", "2", GPU) },
	  0 },
	{ "of the node that had the name before", { SLICE("s", "n", "n0", "1", "1", GPU) }, 0 },
	{ "of another node", { SLICE("s", "m", "m1", "1", "1", GPU) }, 0 },
	{ "tainted devices",
	  { SLICE("s", "n", "n1", "1", "1", GPU "," BARRED("NoSchedule") "," BARRED("NoExecute") "," BARRED("None")) },
	  2000 },
	{ "GPUs that may be cut up",
	  { SLICE("s", "n", "n1", "1", "1", GPU "," MIG("1g.10gb") "," MIG("3g.40gb")) },
	  1000 },
	{ "GPUs that are cut up", { SLICE("s", "n", "n1", "1", "1", MIG("1g.10gb") "," MIG("3g.40gb")) }, 142 + 428 },
	{ "one that may be cut up, by its name",
	  { SLICE("s", "n", "n1", "1", "1", GPU "," MIG_OF("gpu-0", "1g.10gb")) },
	  1000 },
	{ "a whole one beside one that is cut up",
	  { SLICE("s", "n", "n1", "1", "1", GPU "," MIG_OF("gpu-1", "3g.40gb")) },
	  1428 },
	{ "the same slice again",
	  { SLICE("s", "n", "n1", "1", "1", GPU), SLICE("s", "n", "n1", "2", "1", GPU "," GPU) },
	  2000 },
	{ "a driver of networks", { OTHER("dranet") }, 0 },
	{ "a driver of NVIDIA's for other things", { OTHER("compute-domain.nvidia.com") }, 0 },
	{ "AMD's", { OTHER("gpu.amd.com") }, 1000 },
	{ "types of others", { SLICE("s", "n", "n1", "1", "1", TYPED("amdgpu") "," TYPED("vfio")) }, 1000 },
};

static struct cluster *cluster_with_group(const char *resource)
{
	static const int groups[] = { 0 };
	const struct cluster_group group = { .name = "g",
					     .provider = "simulated",
					     .label = { "simulated.preheat.dev/node-group", "g" },
					     .gpus_per_node = 2,
					     .gpu_resource = resource,
					     .max = 10 };
	const struct cluster_pool pool = { .name = "any",
					   .namespace = "a",
					   .gpus_per_replica = 1,
					   .groups = groups,
					   .group_count = 1,
					   .takes_any = true };
	struct cluster *c = cluster_new();
	cluster_set_fleet(c, &pool, 1, &group, 1);
	cluster_offer(c, 0, 10);
	return c;
}

static void nodes_have_what_is_published(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof published / sizeof *published; i++)
		for (int node_first = 0; node_first < 2; node_first++) {
			struct cluster *c = cluster_with_group("gpu.nvidia.com");
			if (node_first)
				see_now(c, CLUSTER_NODES, NODE("n", "n1"));
			for (size_t k = 0; k < 4 && published[i].slices[k]; k++)
				see_now(c, CLUSTER_RESOURCE_SLICES, published[i].slices[k]);
			if (!node_first)
				see_now(c, CLUSTER_NODES, NODE("n", "n1"));
			const struct node *n = cluster_node(c, "n");
			if (n->gpus_milli != published[i].gpus_milli || (n->gpu_at != 0) != (n->gpus_milli > 0))
				fail_msg("%s: %lld", published[i].what, (long long)n->gpus_milli);
			cluster_free(c);
		}
}

static void what_is_published_no_more_is_gone(void **state)
{
	(void)state;
	struct cluster *c = cluster_with_group("gpu.nvidia.com");
	see_now(c, CLUSTER_NODES, NODE("n", "n1"));
	see_now(c, CLUSTER_RESOURCE_SLICES, SLICE("s", "n", "n1", "1", "1", GPU));
	cluster_slice_gone(c, object_uid_of("s"), 1);
	assert_int_equal(cluster_node(c, "n")->gpus_milli, 0);
	assert_int_equal(cluster_node(c, "n")->gpu_at, 0);
	/* The Node goes first, its slices after it. */
	see_now(c, CLUSTER_RESOURCE_SLICES, SLICE("s", "n", "n1", "1", "1", GPU));
	assert_int_equal(cluster_node(c, "n")->gpus_milli, 1000);
	cluster_node_gone(c, object_uid_of("n1"), 1);
	cluster_slice_gone(c, object_uid_of("s"), 1);
	assert_null(cluster_node(c, "n"));
	assert_int_equal(cluster_node_count(c), 0);
	cluster_free(c);
}

static void a_node_that_offers_both_has_its_gpus_once(void **state)
{
	(void)state;
	struct cluster *c = cluster_with_group("nvidia.com/gpu");
	see_now(c, CLUSTER_RESOURCE_SLICES, SLICE("s", "n", "n1", "1", "1", GPU "," GPU));
	see_now(c, CLUSTER_NODES,
		"{'metadata':{'name':'n','uid':'n1'},'status':{'allocatable':{'nvidia.com/gpu':'2'},'conditions':"
		"[{'type':'Ready','status':'True'}]}}");
	assert_int_equal(cluster_node(c, "n")->gpus_milli, 2000);
	cluster_free(c);
}

/* --- claims --- */

#define CLASS(name, expression)                                                                                     \
	"{'metadata':{'name':'" name "','uid':'c-" name "'},'spec':{'selectors':[{'cel':{'expression':'" expression \
	"'}}]}}"
#define CLAIM(name, metadata, spec, status)                                                                     \
	"{'metadata':{'namespace':'a','name':'" name "','uid':'" name "'" metadata "},'spec':{'devices':{" spec \
	"}},'status':{" status "}}"
#define OF_POD(uid)	     ",'ownerReferences':[{'kind':'Pod','name':'p','uid':'" uid "','controller':true}]"
#define EXACTLY(class, more) "{'name':'r','exactly':{'deviceClassName':'" class "'" more "}}"
#define REQUESTS(requests)   "'requests':[" requests "]"
#define WAITS(uid, claims)                                                                                  \
	"{'metadata':{'namespace':'a','name':'" uid "','uid':'" uid "'},'spec':{'containers':[{'image':'i'" \
	",'resources':{'requests':{'cpu':'1'}}}],'resourceClaims':[" claims "]},'status':{'phase':'Pending'}}"
#define NAMES(claim) "{'name':'gpu','resourceClaimName':'" claim "'}"
#define ON(node)                                                                                             \
	"'allocation':{'devices':{'results':[{'request':'r','driver':'gpu.nvidia.com','pool':'" node         \
	"','device':'gpu-0'}]},'nodeSelector':{'nodeSelectorTerms':[{'matchFields':[{'key':'metadata.name'," \
	"'operator':'In','values':['" node "']}]}]}}"
#define FOR(uid) ",'reservedFor':[{'resource':'pods','name':'" uid "','uid':'" uid "'}]"

static const struct {
	const char *what, *class, *requests;
	int64_t gpus_milli; /* -1: the pod is none of ours */
	bool is_plain;
} asked[] = {
	{ "one", NULL, EXACTLY("gpu.nvidia.com", ""), 1000, true },
	{ "two", NULL, EXACTLY("gpu.nvidia.com", ",'allocationMode':'ExactCount','count':2"), 2000, true },
	{ "two requests", NULL, EXACTLY("gpu.nvidia.com", "") "," EXACTLY("gpu.nvidia.com", ",'count':3"), 4000, true },
	{ "NVIDIA's class",
	  CLASS("gpu.nvidia.com", "device.driver == \\u0027gpu.nvidia.com\\u0027 && "
				  "device.attributes[\\u0027gpu.nvidia.com\\u0027].type == \\u0027gpu\\u0027"),
	  EXACTLY("gpu.nvidia.com", ""), 1000, true },
	{ "a class by another name", CLASS("h100", "device.driver == \\u0027gpu.nvidia.com\\u0027"),
	  EXACTLY("h100", ",'count':2"), 2000, true },
	{ "a class of some of them",
	  CLASS("big", "device.driver == \\u0027gpu.nvidia.com\\u0027 && "
		       "device.capacity[\\u0027gpu.nvidia.com\\u0027].memory >= quantity(\\u002780Gi\\u0027)"),
	  EXACTLY("big", ""), 1000, false },
	{ "parts of GPUs",
	  CLASS("mig.nvidia.com", "device.driver == \\u0027gpu.nvidia.com\\u0027 && "
				  "device.attributes[\\u0027gpu.nvidia.com\\u0027].type == \\u0027mig\\u0027"),
	  EXACTLY("mig.nvidia.com", ""), 0, false },
	{ "a selector", NULL, EXACTLY("gpu.nvidia.com", ",'selectors':[{'cel':{'expression':'true'}}]"), 1000, false },
	{ "all that there are", NULL, EXACTLY("gpu.nvidia.com", ",'allocationMode':'All'"), 0, false },
	{ "a look for admins", NULL, EXACTLY("gpu.nvidia.com", ",'adminAccess':true"), -1, true },
	{ "nine requests", NULL,
	  EXACTLY("a", "") "," EXACTLY("gpu.nvidia.com", "") "," EXACTLY("gpu.nvidia.com", "") "," EXACTLY(
		  "gpu.nvidia.com",
		  "") "," EXACTLY("gpu.nvidia.com",
				  "") "," EXACTLY("gpu.nvidia.com",
						  "") "," EXACTLY("gpu.nvidia.com",
								  "") "," EXACTLY("gpu.nvidia.com",
										  "") "," EXACTLY("gpu.nvidia.com",
												  "") "," EXACTLY("gpu."
														  "nvid"
														  "ia."
														  "com",
														  ""),
	  9000, false },
	{ "the first that is there", NULL,
	  "{'name':'r','firstAvailable':[{'name':'a','deviceClassName':'gpu.nvidia.com','count':2},{'name':'b',"
	  "'deviceClassName':'gpu.amd.com','count':4}]}",
	  2000, false },
	{ "fewer of them where so many are not there", NULL,
	  "{'name':'r','firstAvailable':[{'name':'a','deviceClassName':'gpu.nvidia.com','count':4},{'name':'b',"
	  "'deviceClassName':'gpu.nvidia.com','count':1}]}",
	  1000, false },
	{ "no GPU", CLASS("nic", "device.driver == \\u0027dranet\\u0027"), EXACTLY("nic", ""), -1, false },
	{ "a class that nobody knows", NULL, EXACTLY("nic", ""), -1, false },
	{ "a network beside it", NULL, EXACTLY("gpu.nvidia.com", "") "," EXACTLY("nic", ""), 1000, false },
};

/* In the order of what: class, claim, pod. */
static void claims_are_what_the_pod_asks_for(void **state)
{
	static const int orders[6][3] = {
		{ 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 }
	};
	(void)state;
	for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
		for (int o = 0; o < 6; o++) {
			CLEANUP(buf_release) struct buf claim = { 0 };
			struct cluster *c = cluster_with_group("gpu.nvidia.com");
			buf_printf(&claim, CLAIM("k", OF_POD("p"), REQUESTS("%s"), ""), asked[i].requests);
			for (int k = 0; k < 3; k++) {
				if (orders[o][k] == 0 && asked[i].class)
					see_now(c, CLUSTER_DEVICE_CLASSES, asked[i].class);
				else if (orders[o][k] == 1)
					see_now(c, CLUSTER_RESOURCE_CLAIMS, claim.text);
				else if (orders[o][k] == 2)
					see_now(c, CLUSTER_PODS, WAITS("p", NAMES("k")));
			}
			const struct pod *p = cluster_pod(c, "p");
			int64_t found = p->has_gpus ? p->gpus_milli : -1;
			const struct device_claim *k =
				device_claim_find(c, p->namespace, p->shape->claims->items[0].name);
			if (found != asked[i].gpus_milli || device_claim_is_plain(c, k) != asked[i].is_plain ||
			    (p->pool == 0) != p->has_gpus)
				fail_msg("%s: %lld, %d", asked[i].what, (long long)found, device_claim_is_plain(c, k));
			cluster_free(c);
		}
}

static int64_t nodes_lacking(const struct cluster *c)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	return cluster_pool_view(c, 0, &a).groups[0].lacking_nodes;
}

static void each_claim_of_its_own_needs_devices_of_its_own(void **state)
{
	(void)state;
	struct cluster *c = cluster_with_group("gpu.nvidia.com");
	static const char *const names[] = { "p", "q", "r" };
	for (int i = 0; i < 3; i++) {
		CLEANUP(buf_release) struct buf claim = { 0 }, pod = { 0 };
		buf_printf(&claim,
			   CLAIM("%s", ",'ownerReferences':[{'kind':'Pod','name':'p','uid':'%s'}]", REQUESTS("%s"), ""),
			   names[i], names[i], names[i], EXACTLY("gpu.nvidia.com", ""));
		buf_printf(&pod, WAITS("%s", "{'name':'gpu','resourceClaimName':'%s'}"), names[i], names[i], names[i]);
		see_now(c, CLUSTER_PODS, pod.text);
		see_now(c, CLUSTER_RESOURCE_CLAIMS, claim.text);
	}
	assert_int_equal(nodes_lacking(c), 2); /* of two GPUs each */
	cluster_free(c);
}

static void pods_that_share_a_claim_need_its_devices_once(void **state)
{
	(void)state;
	struct cluster *c = cluster_with_group("gpu.nvidia.com");
	see_now(c, CLUSTER_RESOURCE_CLAIMS, CLAIM("k", "", REQUESTS(EXACTLY("gpu.nvidia.com", "")), ""));
	see_now(c, CLUSTER_PODS, WAITS("p", NAMES("k")));
	see_now(c, CLUSTER_PODS, WAITS("q", NAMES("k")));
	see_now(c, CLUSTER_PODS, WAITS("r", NAMES("k")));
	see_now(c, CLUSTER_PODS, WAITS("s", NAMES("k")));
	assert_int_equal(nodes_lacking(c), 1);
	assert_int_equal(cluster_pod(c, "p")->gpus_milli, 250);
	assert_int_equal(cluster_pod(c, "s")->gpus_milli, 250);
	cluster_pod_gone(c, object_uid_of("r"), 1);
	cluster_pod_gone(c, object_uid_of("s"), 1);
	assert_int_equal(cluster_pod(c, "p")->gpus_milli, 500);
	/* One runs: the others fit there, and need nothing more. */
	see_now(c, CLUSTER_NODES, NODE("n", "n1"));
	see_now(c, CLUSTER_RESOURCE_SLICES, SLICE("s", "n", "n1", "1", "1", GPU));
	see_now(c, CLUSTER_RESOURCE_CLAIMS, CLAIM("k", "", REQUESTS(EXACTLY("gpu.nvidia.com", "")), ON("n") FOR("p")));
	assert_int_equal(cluster_pod(c, "p")->gpus_milli, 1000);
	assert_int_equal(cluster_pod(c, "q")->gpus_milli, 0);
	assert_int_equal(nodes_lacking(c), 0);
	cluster_free(c);
}

#define RUNS(uid, node, claims)                                                                                     \
	"{'metadata':{'namespace':'a','name':'" uid "','uid':'" uid "'},'spec':{'nodeName':'" node                  \
	"','containers':[{'image':'i'}],'resourceClaims':[" claims "]},'status':{'phase':'Running','conditions':[{" \
	"'type':'Ready','status':'True'}]}}"

static void what_is_allocated_is_held(void **state)
{
	(void)state;
	for (int pod_first = 0; pod_first < 2; pod_first++) {
		struct cluster *c = cluster_with_group("gpu.nvidia.com");
		see_now(c, CLUSTER_NODES, NODE("n", "n1"));
		see_now(c, CLUSTER_RESOURCE_SLICES, SLICE("s", "n", "n1", "1", "1", GPU));
		if (pod_first)
			see_now(c, CLUSTER_PODS, RUNS("p", "n", NAMES("k")));
		see_now(c, CLUSTER_RESOURCE_CLAIMS,
			CLAIM("k", OF_POD("p"), REQUESTS(EXACTLY("gpu.nvidia.com", "")), ON("n") FOR("p")));
		if (!pod_first)
			see_now(c, CLUSTER_PODS, RUNS("p", "n", NAMES("k")));
		assert_int_equal(cluster_node(c, "n")->gpus_used_milli, 1000);
		assert_true(cluster_pod(c, "p")->has_gpus);
		/* Another has no place there, and one whose scheduler found none is not thought to fit either. */
		see_now(c, CLUSTER_RESOURCE_CLAIMS,
			CLAIM("l", OF_POD("q"), REQUESTS(EXACTLY("gpu.nvidia.com", "")), ""));
		see_now(c, CLUSTER_PODS, WAITS("q", NAMES("l")));
		assert_int_equal(nodes_lacking(c), 1);
		cluster_pod_gone(c, object_uid_of("p"), 1);
		cluster_device_claim_gone(c, object_uid_of("k"), 1);
		assert_int_equal(cluster_node(c, "n")->gpus_used_milli, 0);
		assert_int_equal(nodes_lacking(c), 0);
		cluster_free(c);
	}
}

static void a_part_of_a_gpu_is_held_as_one(void **state)
{
	(void)state;
	struct cluster *c = cluster_with_group("gpu.nvidia.com");
	see_now(c, CLUSTER_RESOURCE_CLAIMS,
		CLAIM("k", OF_POD("p"), REQUESTS(EXACTLY("mig.nvidia.com", "")),
		      "'allocation':{'devices':{'results':[{'request':'r','driver':'gpu.nvidia.com','pool':'n','device'"
		      ":"
		      "'gpu-0-mig-3g.40gb-9-0'}]}}" FOR("p")));
	see_now(c, CLUSTER_PODS, RUNS("p", "n", NAMES("k")));
	assert_int_equal(cluster_pod(c, "p")->gpus_milli, 428);
	cluster_free(c);
}

#define REQUESTS_GPUS(uid, gpus)                                    \
	"{'metadata':{'namespace':'a','name':'" uid "','uid':'" uid \
	"'},'spec':{'containers':[{'resources':{'limits':{"         \
	"'nvidia.com/gpu':'" gpus "'}}}]},'status':{'phase':'Pending'}}"
#define EXTENDED                                                                                                   \
	"{'metadata':{'name':'c','uid':'c'},'spec':{'extendedResourceName':'nvidia.com/gpu','selectors':[{'cel':{" \
	"'expression':'device.driver == \\u0027gpu.nvidia.com\\u0027'}}]}}"

/* The scheduler makes the claim itself; in what order the class, the node and its slice come is of no account. */
static void a_class_may_offer_an_extended_resource(void **state)
{
	(void)state;
	for (int class_first = 0; class_first < 2; class_first++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct cluster *c = cluster_with_group("nvidia.com/gpu");
		if (class_first)
			see_now(c, CLUSTER_DEVICE_CLASSES, EXTENDED);
		see_now(c, CLUSTER_NODES, NODE("n", "n1"));
		see_now(c, CLUSTER_RESOURCE_SLICES, SLICE("s", "n", "n1", "1", "1", GPU "," GPU));
		if (!class_first)
			see_now(c, CLUSTER_DEVICE_CLASSES, EXTENDED);
		assert_int_equal(cluster_node(c, "n")->gpus_milli, 2000);
		see_now(c, CLUSTER_PODS, REQUESTS_GPUS("p", "2"));
		assert_int_equal(cluster_pool_view(c, 0, &a).placed, 1);
		see_now(c, CLUSTER_PODS, REQUESTS_GPUS("q", "2"));
		assert_int_equal(cluster_pool_view(c, 0, &a).groups[0].lacking_nodes, 1);
		/* Who claims and who requests have the same GPUs, of a node that is there as of one to come. */
		see_now(c, CLUSTER_RESOURCE_CLAIMS,
			CLAIM("k", OF_POD("r"), REQUESTS(EXACTLY("gpu.nvidia.com", "")), ON("n") FOR("r")));
		see_now(c, CLUSTER_PODS, RUNS("r", "n", NAMES("k")));
		assert_int_equal(cluster_pool_view(c, 0, &a).placed, 0);
		assert_int_equal(cluster_pool_view(c, 0, &a).groups[0].lacking_nodes, 2);
		cluster_pod_gone(c, object_uid_of("r"), 1);
		cluster_device_class_gone(c, object_uid_of("c"), 1);
		assert_int_equal(cluster_pool_view(c, 0, &a).placed, 0);
		cluster_free(c);
	}
}

/* A node that has published teaches what the next one will have; before that, the manifest does. */
static void a_new_node_is_thought_of_with_its_devices(void **state)
{
	(void)state;
	for (int is_learned = 0; is_learned < 2; is_learned++) {
		struct cluster *c = cluster_with_group(is_learned ? "nvidia.com/gpu" : "gpu.nvidia.com");
		if (is_learned) {
			see_now(c, CLUSTER_NODES, NODE("n", "n1"));
			see_now(c, CLUSTER_RESOURCE_SLICES, SLICE("s", "n", "n1", "1", "1", GPU "," GPU));
			cluster_slice_gone(c, object_uid_of("s"), 1);
			cluster_node_gone(c, object_uid_of("n1"), 1);
		}
		see_now(c, CLUSTER_RESOURCE_CLAIMS,
			CLAIM("k", OF_POD("p"), REQUESTS(EXACTLY("gpu.nvidia.com", ",'count':2")), ""));
		see_now(c, CLUSTER_PODS, WAITS("p", NAMES("k")));
		assert_int_equal(nodes_lacking(c), 1);
		see_now(c, CLUSTER_RESOURCE_CLAIMS,
			CLAIM("k", OF_POD("p"), REQUESTS(EXACTLY("gpu.nvidia.com", ",'count':3")), ""));
		CLEANUP(arena_release) struct arena a = { 0 };
		size_t count = 0;
		const struct pending_shape *shapes = cluster_pending(c, &a, &count);
		assert_int_equal(count, 1);
		assert_string_equal(shapes[0].why, "wants 3 gpu.nvidia.com; largest node group g has 2 per node");
		cluster_free(c);
	}
}

/* What a pod holds by a claim that nobody has read is not known: its node is not empty. */
static void a_claim_that_was_not_read_may_hold_gpus(void **state)
{
	(void)state;
	struct cluster *c = cluster_with_group("gpu.nvidia.com");
	see_now(c, CLUSTER_PODS, RUNS("p", "n", NAMES("k")));
	assert_true(cluster_pod(c, "p")->has_gpus);
	see_now(c, CLUSTER_RESOURCE_CLAIMS, CLAIM("k", OF_POD("p"), REQUESTS(EXACTLY("nic", "")), ""));
	assert_false(cluster_pod(c, "p")->has_gpus);
	see_now(c, CLUSTER_PODS, WAITS("q", NAMES("l"))); /* one that waits is demand once it is known for what */
	assert_false(cluster_pod(c, "q")->has_gpus);
	cluster_free(c);
}

#define RUNS_ON_REQUEST(uid, resource)                                                                              \
	"{'metadata':{'namespace':'a','name':'" uid "','uid':'" uid "'},'spec':{'nodeName':'n','containers':[{"     \
	"'resources':{'limits':{'" resource "':'2'}}}]},'status':{'phase':'Running','conditions':[{'type':'Ready'," \
	"'status':'True'}]}}"
#define OFFERS(name, resource)                                                                       \
	"{'metadata':{'name':'" name "','uid':'" name "'},'spec':{'extendedResourceName':'" resource \
	"','selectors':[{'cel':{'expression':'device.driver == \\u0027gpu.nvidia.com\\u0027'}}]}}"

/* Every class offers its devices by a name made of its own, too. */
static void devices_are_requested_by_any_name_of_their_class(void **state)
{
	static const char *const pods[] = { RUNS_ON_REQUEST("p", "example.com/gpu"),
					    RUNS_ON_REQUEST("p", "deviceclass.resource.kubernetes.io/c") };
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct cluster *c = cluster_with_group("gpu.nvidia.com");
		see_now(c, CLUSTER_NODES, NODE("n", "n1"));
		see_now(c, CLUSTER_RESOURCE_SLICES, SLICE("s", "n", "n1", "1", "1", GPU "," GPU));
		if (i < 2)
			see_now(c, CLUSTER_DEVICE_CLASSES, OFFERS("c", "example.com/gpu"));
		see_now(c, CLUSTER_PODS, pods[i % 2]);
		if (i >= 2)
			see_now(c, CLUSTER_DEVICE_CLASSES, OFFERS("c", "example.com/gpu"));
		assert_true(cluster_pod(c, "p")->has_gpus);
		assert_int_equal(cluster_node(c, "n")->gpus_used_milli, 2000);
		assert_int_equal(cluster_node(c, "n")->gpus_milli, 2000);
		see_now(c, CLUSTER_DEVICE_CLASSES, OFFERS("d", "example.com/gpu"));
		assert_int_equal(cluster_node(c, "n")->gpus_milli, 2000);
		cluster_free(c);
	}
}

#define WAITS_FOR(uid, resource)                                                                               \
	"{'metadata':{'namespace':'a','name':'" uid "','uid':'" uid "'},'spec':{'containers':[{'resources':{'" \
	"limits':{'" resource "':'1'}}}]},'status':{'phase':'Pending'}}"
#define OFFERS_PARTS                                                                                                 \
	"{'metadata':{'name':'c','uid':'c'},'spec':{'extendedResourceName':'nvidia.com/mig-1g.10gb','selectors':[{'" \
	"cel':{'expression':'device.driver == \\u0027gpu.nvidia.com\\u0027 && "                                      \
	"device.attributes[\\u0027gpu.nvidia.com\\u0027].type == \\u0027mig\\u0027'}}]}}"

/* Each part is one, and two of them are on the node. */
static void parts_of_gpus_are_requested_by_names_of_their_class(void **state)
{
	static const char *const pods[2][3] = {
		{ WAITS_FOR("p", "nvidia.com/mig-1g.10gb"), WAITS_FOR("q", "nvidia.com/mig-1g.10gb"),
		  WAITS_FOR("r", "nvidia.com/mig-1g.10gb") },
		{ WAITS_FOR("p", "deviceclass.resource.kubernetes.io/c"),
		  WAITS_FOR("q", "deviceclass.resource.kubernetes.io/c"),
		  WAITS_FOR("r", "deviceclass.resource.kubernetes.io/c") },
	};
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct cluster *c = cluster_with_group("gpu.nvidia.com");
		see_now(c, CLUSTER_DEVICE_CLASSES, OFFERS_PARTS);
		see_now(c, CLUSTER_NODES, NODE("n", "n1"));
		see_now(c, CLUSTER_RESOURCE_SLICES, SLICE("s", "n", "n1", "1", "1", MIG("1g.10gb") "," MIG("1g.10gb")));
		see_now(c, CLUSTER_PODS, pods[i][0]);
		see_now(c, CLUSTER_PODS, pods[i][1]);
		assert_true(cluster_pod(c, "p")->has_gpus);
		assert_int_equal(nodes_lacking(c), 0);
		see_now(c, CLUSTER_PODS, pods[i][2]);
		assert_int_equal(nodes_lacking(c), 1);
		cluster_free(c);
	}
}

static void free_devices_are_places_before_there_are_pods(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	(void)state;
	struct cluster *c = cluster_with_group("nvidia.com/gpu");
	see_now(c, CLUSTER_NODES, NODE("n", "n1"));
	see_now(c, CLUSTER_RESOURCE_SLICES, SLICE("s", "n", "n1", "1", "1", GPU "," GPU));
	assert_int_equal(cluster_pool_view(c, 0, &a).groups[0].free_places, 2);
	cluster_free(c);
}

static void a_node_with_a_tainted_gpu_is_no_example(void **state)
{
	(void)state;
	struct cluster *c = cluster_with_group("gpu.nvidia.com");
	see_now(c, CLUSTER_NODES, NODE("n", "n1"));
	see_now(c, CLUSTER_RESOURCE_SLICES, SLICE("s", "n", "n1", "1", "1", GPU "," GPU));
	see_now(c, CLUSTER_RESOURCE_SLICES, SLICE("s", "n", "n1", "2", "1", GPU "," BARRED("NoExecute")));
	assert_int_equal(cluster_node(c, "n")->gpus_milli, 1000);
	see_now(c, CLUSTER_RESOURCE_CLAIMS,
		CLAIM("k", OF_POD("p"), REQUESTS(EXACTLY("gpu.nvidia.com", ",'count':2")), ""));
	see_now(c, CLUSTER_PODS, WAITS("p", NAMES("k")));
	assert_int_equal(nodes_lacking(c), 1);
	cluster_free(c);
}

#define WAITS_IN_VAIN(uid, claims)                                                                                  \
	"{'metadata':{'namespace':'a','name':'" uid "','uid':'" uid "'},'spec':{'containers':[{'image':'i'}],"      \
	"'resourceClaims':[" claims "]},'status':{'phase':'Pending','conditions':[{'type':'PodScheduled','status':" \
	"'False','reason':'Unschedulable'}]}}"

/* Which devices a selector takes only the scheduler knows. It is believed once it had a minute to look at a node. */
static void machines_that_do_not_help_are_not_bought_again(void **state)
{
	(void)state;
	struct cluster *c = cluster_with_group("gpu.nvidia.com");
	see_now(c, CLUSTER_RESOURCE_CLAIMS,
		CLAIM("k", OF_POD("p"),
		      REQUESTS(EXACTLY("gpu.nvidia.com", ",'selectors':[{'cel':{'expression':'false'}}]")), ""));
	see_now(c, CLUSTER_PODS, WAITS_IN_VAIN("p", NAMES("k")));
	assert_int_equal(nodes_lacking(c), 1);
	see_now(c, CLUSTER_NODES, NODE("n", "n1"));
	see_now(c, CLUSTER_RESOURCE_SLICES, SLICE("s", "n", "n1", "1", "1", GPU));
	cluster_follow_waiting(c, 1000000 + SECOND);
	assert_int_equal(nodes_lacking(c), 0); /* it fits there, as far as anybody has said */
	cluster_follow_waiting(c, 1000000 + 2 * MINUTE);
	assert_int_equal(nodes_lacking(c), 0); /* nor would another */
	cluster_free(c);
}

static void node_comes(struct cluster *c)
{
	see_now(c, CLUSTER_NODES, NODE("n", "n1"));
	see_now(c, CLUSTER_RESOURCE_SLICES, SLICE("s", "n", "n1", "1", "1", GPU));
}

static int64_t lacking_at(struct cluster *c, millis minutes)
{
	cluster_follow_waiting(c, 1000000 + minutes * MINUTE);
	return nodes_lacking(c);
}

static void a_group_whose_machine_did_not_help_is_not_tried_for_an_hour(void **state)
{
	(void)state;
	struct cluster *c = cluster_with_group("gpu.nvidia.com");
	see_now(c, CLUSTER_RESOURCE_CLAIMS,
		CLAIM("k", OF_POD("p"),
		      REQUESTS(EXACTLY("gpu.nvidia.com", ",'selectors':[{'cel':{'expression':'false'}}]")), ""));
	see_now(c, CLUSTER_PODS, WAITS_IN_VAIN("p", NAMES("k")));
	for (int hours = 1, at = 3; hours <= 4; hours *= 2) { /* each time for twice as long */
		node_comes(c);
		assert_int_equal(lacking_at(c, at), 0);
		assert_int_equal(lacking_at(c, at + 1), 0);
		cluster_node_gone(c, object_uid_of("n1"), 1);
		cluster_slice_gone(c, object_uid_of("s"), 1);
		assert_int_equal(lacking_at(c, at + 2), 0);
		assert_int_equal(lacking_at(c, at + hours * 60), 0);
		at += hours * 60 + 2;
		assert_int_equal(lacking_at(c, at), 1);
	}
	cluster_free(c);
}

static void a_later_life_does_not_try_it_either(void **state)
{
	(void)state;
	CLEANUP(arena_release) struct arena a = { 0 };
	const char *text = "";
	for (int is_told = 0; is_told < 2; is_told++) {
		struct cluster *c = cluster_with_group("gpu.nvidia.com");
		see_now(c, CLUSTER_RESOURCE_CLAIMS,
			CLAIM("k", OF_POD("p"),
			      REQUESTS(EXACTLY("gpu.nvidia.com", ",'selectors':[{'cel':{'expression':'false'}}]")),
			      ""));
		see_now(c, CLUSTER_PODS, WAITS_IN_VAIN("p", NAMES("k")));
		cluster_recall_given_up(c, arena_strdup(&a, text, strlen(text)), 1000000 + 13 * MINUTE);
		assert_int_equal(lacking_at(c, is_told ? 14 : 11), is_told ? 0 : 1);
		if (is_told) {
			assert_int_equal(lacking_at(c, 12 + 60), 0);
			assert_int_equal(lacking_at(c, 13 + 60), 1);
		} else {
			node_comes(c);
			assert_int_equal(lacking_at(c, 12), 0);
			assert_int_equal(lacking_at(c, 13), 0);
			text = cluster_given_up(c, &a);
		}
		cluster_free(c);
	}
}

#define WITH(expression) EXACTLY("gpu.nvidia.com", ",'selectors':[{'cel':{'expression':'" expression "'}}]")

/* A pod of a template's, with a claim of its own under a name of its own. */
static void one_of_many(struct cluster *c, const char *name, const char *requests)
{
	CLEANUP(buf_release) struct buf claim = { 0 }, pod = { 0 };
	buf_printf(&claim, CLAIM("%s", ",'ownerReferences':[{'kind':'Pod','name':'p','uid':'%s'}]", "%s", ""), name,
		   name, name, requests);
	buf_printf(&pod, WAITS_IN_VAIN("%s", "{'name':'gpu','resourceClaimName':'%s'}"), name, name, name);
	see_now(c, CLUSTER_RESOURCE_CLAIMS, claim.text);
	see_now(c, CLUSTER_PODS, pod.text);
}

static void three_come(struct cluster *c)
{
	one_of_many(c, "p1", REQUESTS(WITH("false")));
	one_of_many(c, "p2", REQUESTS(WITH("false")));
	one_of_many(c, "p3", REQUESTS(WITH("false")));
}

/* Three for whom a machine came that did not help, and went. */
static struct cluster *three_refused(void)
{
	struct cluster *c = cluster_with_group("gpu.nvidia.com");
	node_comes(c);
	three_come(c);
	assert_int_equal(lacking_at(c, 3), 0);
	assert_int_equal(lacking_at(c, 4), 0);
	cluster_node_gone(c, object_uid_of("n1"), 1);
	cluster_slice_gone(c, object_uid_of("s"), 1);
	return c;
}

static void of_those_that_claim_the_same_one_is_tried_at_a_time(void **state)
{
	(void)state;
	struct cluster *c = three_refused();
	assert_int_equal(lacking_at(c, 5), 0);
	assert_int_equal(lacking_at(c, 4 + 60), 1);
	assert_int_equal(lacking_at(c, 5 + 60), 1);
	cluster_pod_gone(c, object_uid_of("p1"), 1); /* the next has its turn */
	assert_int_equal(lacking_at(c, 6 + 60), 1);
	node_comes(c); /* nor does that one help */
	assert_int_equal(lacking_at(c, 8 + 60), 0);
	assert_int_equal(lacking_at(c, 9 + 60), 0);
	cluster_node_gone(c, object_uid_of("n1"), 1);
	cluster_slice_gone(c, object_uid_of("s"), 1);
	assert_int_equal(lacking_at(c, 9 + 179), 0);
	assert_int_equal(lacking_at(c, 9 + 180), 1);
	cluster_free(c);
}

static void once_one_got_its_devices_all_that_claim_the_same_are_tried(void **state)
{
	(void)state;
	struct cluster *c = three_refused();
	assert_int_equal(lacking_at(c, 64), 1);
	node_comes(c);
	see_now(c, CLUSTER_RESOURCE_CLAIMS, CLAIM("p1", OF_POD("p1"), REQUESTS(WITH("false")), ON("n") FOR("p1")));
	see_now(c, CLUSTER_PODS, RUNS("p1", "n", NAMES("p1")));
	assert_int_equal(nodes_lacking(c), 2);
	assert_int_equal(lacking_at(c, 65), 2);
	cluster_free(c);
}

/* One that comes later, too; one that claims something else, or may run elsewhere, is asked about for itself. */
static void what_others_learned_counts_for_those_that_claim_the_same(void **state)
{
	(void)state;
	struct cluster *c = three_refused();
	assert_int_equal(lacking_at(c, 5), 0);
	one_of_many(c, "p4", REQUESTS(WITH("false")));
	assert_int_equal(lacking_at(c, 6), 0);
	one_of_many(c, "q", REQUESTS(WITH("true")));
	assert_int_equal(lacking_at(c, 7), 1);
	one_of_many(c, "r", REQUESTS(WITH("false")) ",'constraints':[{'matchAttribute':'gpu.nvidia.com/numa'}]");
	assert_int_equal(lacking_at(c, 8), 2);
	cluster_free(c);
}

static void a_later_life_tries_one_at_a_time(void **state)
{
	(void)state;
	CLEANUP(arena_release) struct arena a = { 0 };
	struct cluster *c = three_refused();
	const char *told = cluster_given_up(c, &a);
	cluster_free(c);
	c = cluster_with_group("gpu.nvidia.com");
	three_come(c);
	cluster_recall_given_up(c, arena_strdup(&a, told, strlen(told)), 1000000 + 5 * MINUTE);
	assert_int_equal(lacking_at(c, 6), 0);
	assert_int_equal(lacking_at(c, 64), 1);
	cluster_free(c);
}

/* The last of them, by its line, got its devices while nobody led. */
static void what_helped_one_while_nobody_led_frees_the_others(void **state)
{
	(void)state;
	CLEANUP(arena_release) struct arena a = { 0 };
	struct cluster *c = three_refused();
	const char *told = cluster_given_up(c, &a);
	cluster_free(c);
	c = cluster_with_group("gpu.nvidia.com");
	node_comes(c);
	three_come(c);
	see_now(c, CLUSTER_RESOURCE_CLAIMS, CLAIM("p3", OF_POD("p3"), REQUESTS(WITH("false")), ON("n") FOR("p3")));
	see_now(c, CLUSTER_PODS, RUNS("p3", "n", NAMES("p3")));
	cluster_recall_given_up(c, arena_strdup(&a, told, strlen(told)), 1000000 + 5 * MINUTE);
	assert_int_equal(lacking_at(c, 6), 2);
	cluster_free(c);
}

/* A device that was just given back may not have been looked at. */
static void room_for_a_moment_refuses_nobody(void **state)
{
	(void)state;
	struct cluster *c = cluster_with_group("gpu.nvidia.com");
	see_now(c, CLUSTER_RESOURCE_CLAIMS,
		CLAIM("k", OF_POD("p"),
		      REQUESTS(EXACTLY("gpu.nvidia.com", ",'selectors':[{'cel':{'expression':'true'}}]")), ""));
	see_now(c, CLUSTER_PODS, WAITS_IN_VAIN("p", NAMES("k")));
	node_comes(c);
	assert_int_equal(lacking_at(c, 5), 0);
	see_now(c, CLUSTER_RESOURCE_CLAIMS,
		CLAIM("l", OF_POD("q"), REQUESTS(EXACTLY("gpu.nvidia.com", "")), ON("n") FOR("q")));
	see_now(c, CLUSTER_PODS, RUNS("q", "n", NAMES("l")));
	assert_int_equal(lacking_at(c, 7), 1);
	cluster_free(c);
}

#define MIG_CLASS                                                                   \
	CLASS("mig.nvidia.com", "device.driver == \\u0027gpu.nvidia.com\\u0027 && " \
				"device.attributes[\\u0027gpu.nvidia.com\\u0027].type == \\u0027mig\\u0027")
#define ON_PART(node, device)                                                                                \
	"'allocation':{'devices':{'results':[{'request':'r','driver':'gpu.nvidia.com','pool':'" node         \
	"','device':'" device                                                                                \
	"'}]},'nodeSelector':{'nodeSelectorTerms':[{'matchFields':[{'key':'metadata.name','operator':'In','" \
	"values':['" node "']}]}]}}"
#define ONE_OF_TWO SLICE("s", "n", "n1", "1", "1", GPU "," GPU)

/* A node that was there for long, of whose devices one is in use, and a pod whose scheduler finds none for its claim.
 */
static const struct {
	const char *what, *slice, *used, *requests;
	int64_t lacking;
} refused[] = {
	{ "all of a node", ONE_OF_TWO, "gpu-0", REQUESTS(EXACTLY("gpu.nvidia.com", ",'allocationMode':'All'")), 1 },
	{ "a part, where all are in use", SLICE("s", "n", "n1", "1", "1", MIG("3g.40gb")), "gpu-0-mig-3g.40gb-0-0",
	  REQUESTS(EXACTLY("mig.nvidia.com", "")), 1 },
	{ "some that go together", SLICE("s", "n", "n1", "1", "1", GPU "," GPU "," GPU "," GPU), "gpu-1",
	  REQUESTS(EXACTLY("gpu.nvidia.com", ",'count':2")) ",'constraints':[{'matchAttribute':'gpu.nvidia.com/numa'}]",
	  1 },
	{ "one of a kind that the free one is not", ONE_OF_TWO, "gpu-0",
	  REQUESTS(EXACTLY("gpu.nvidia.com", ",'selectors':[{'cel':{'expression':'false'}}]")), 0 },
	{ "a whole one, where each is in use in part", ONE_OF_TWO, "gpu-0-mig-1g.10gb-0-0",
	  REQUESTS(EXACTLY("gpu.nvidia.com", "")), 1 },
	{ "one of a kind, where each is in use in part", ONE_OF_TWO, "gpu-0-mig-1g.10gb-0-0",
	  REQUESTS(EXACTLY("gpu.nvidia.com", ",'selectors':[{'cel':{'expression':'true'}}]")), 1 },
	{ "a whole one, and one is free", ONE_OF_TWO, "gpu-0", REQUESTS(EXACTLY("gpu.nvidia.com", "")), 0 },
};

static void a_node_in_use_speaks_for_its_group_where_devices_are_counted(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		CLEANUP(buf_release) struct buf used = { 0 }, claim = { 0 };
		struct cluster *c = cluster_with_group("gpu.nvidia.com");
		buf_printf(
			&used,
			CLAIM("k", OF_POD("p"), REQUESTS(EXACTLY("gpu.nvidia.com", "")), ON_PART("n", "%s") FOR("p")),
			refused[i].used);
		buf_printf(&claim, CLAIM("l", OF_POD("q"), "%s", ""), refused[i].requests);
		see_now(c, CLUSTER_DEVICE_CLASSES, MIG_CLASS);
		see_now(c, CLUSTER_NODES, NODE("n", "n1"));
		see_now(c, CLUSTER_RESOURCE_SLICES, refused[i].slice);
		see_now(c, CLUSTER_RESOURCE_CLAIMS, used.text);
		see_now(c, CLUSTER_PODS, RUNS("p", "n", NAMES("k")));
		cluster_follow_waiting(c, 1000000 + 5 * MINUTE);
		see_now(c, CLUSTER_RESOURCE_CLAIMS, claim.text);
		see_now(c, CLUSTER_PODS, WAITS_IN_VAIN("q", NAMES("l")));
		if (nodes_lacking(c) != refused[i].lacking)
			fail_msg("%s: %lld", refused[i].what, (long long)nodes_lacking(c));
		cluster_free(c);
	}
}

/* Whoever has the domain of a driver names the plugin's resource after it. */
static void a_driver_is_known_by_the_resource_of_its_plugin(void **state)
{
	static const char *const resources[] = { "gpu.intel.com/xe", "gpu.intel.com/i915", "gpu.intel.com" };
	(void)state;
	for (size_t i = 0; i < sizeof resources / sizeof *resources; i++) {
		struct cluster *c = cluster_with_group(resources[i]);
		see_now(c, CLUSTER_RESOURCE_CLAIMS,
			CLAIM("k", OF_POD("p"), REQUESTS(EXACTLY("gpu.intel.com", ",'count':2")), ""));
		see_now(c, CLUSTER_PODS, WAITS_IN_VAIN("p", NAMES("k")));
		assert_int_equal(nodes_lacking(c), 1);
		cluster_free(c);
	}
}

/* Of which it is not known how many, where there are none at all. */
static void a_claim_does_not_fit_where_there_are_no_devices(void **state)
{
	static const char *const requests[] = { REQUESTS(EXACTLY("gpu.nvidia.com", ",'allocationMode':'All'")),
						REQUESTS(EXACTLY("mig.nvidia.com", "")) };
	(void)state;
	for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
		CLEANUP(buf_release) struct buf claim = { 0 };
		struct cluster *c = cluster_with_group("gpu.nvidia.com");
		buf_printf(&claim, CLAIM("k", OF_POD("p"), "%s", ""), requests[i]);
		see_now(c, CLUSTER_DEVICE_CLASSES, MIG_CLASS);
		see_now(c, CLUSTER_NODES,
			"{'metadata':{'name':'cpu','uid':'cpu'},'status':{'allocatable':{'cpu':'64'},"
			"'conditions':[{'type':'Ready','status':'True'}]}}");
		see_now(c, CLUSTER_RESOURCE_CLAIMS, claim.text);
		see_now(c, CLUSTER_PODS, WAITS_IN_VAIN("p", NAMES("k")));
		assert_int_equal(nodes_lacking(c), 1);
		cluster_free(c);
		c = cluster_with_group("amd.com/gpu"); /* nor on a new node whose driver is another */
		see_now(c, CLUSTER_DEVICE_CLASSES, MIG_CLASS);
		see_now(c, CLUSTER_RESOURCE_CLAIMS, claim.text);
		see_now(c, CLUSTER_PODS, WAITS_IN_VAIN("p", NAMES("k")));
		assert_int_equal(nodes_lacking(c), 0);
		cluster_free(c);
	}
}

/* --- whatever the order --- */

enum { PODS = 6, CLAIMS = 5, NODES = 3, EVENTS = PODS + CLAIMS + NODES * 2 + 1, WORLDS = 300 };

struct devices_world {
	int pod_node[PODS], pod_claim[PODS]; /* node: -1 waits */
	bool is_own[CLAIMS], is_allocated[CLAIMS];
	int count[CLAIMS], devices[NODES];
};

static void show_claim(struct cluster *c, const struct devices_world *w, int k)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	const char *between = "";
	buf_printf(&text, "{'metadata':{'namespace':'a','name':'k%d','uid':'k%d'", k, k);
	for (int p = 0; w->is_own[k] && p < PODS; p++)
		if (w->pod_claim[p] == k) {
			buf_printf(&text, ",'ownerReferences':[{'kind':'Pod','name':'p','uid':'p%d'}]", p);
			break;
		}
	buf_printf(&text,
		   "},'spec':{'devices':{'requests':[{'name':'r','exactly':{'deviceClassName':'h','count':%d}}]}}",
		   w->count[k]);
	if (w->is_allocated[k]) {
		buf_text(&text, ",'status':{'allocation':{'devices':{'results':[");
		for (int i = 0; i < w->count[k]; i++)
			buf_printf(&text, "%s{'driver':'gpu.nvidia.com','pool':'n','device':'gpu-%d'}", i ? "," : "",
				   i);
		buf_text(&text, "]}},'reservedFor':[");
		for (int p = 0; p < PODS; p++)
			if (w->pod_claim[p] == k && w->pod_node[p] >= 0) {
				buf_printf(&text, "%s{'resource':'pods','name':'p%d','uid':'p%d'}", between, p, p);
				between = ",";
			}
		buf_text(&text, "]}");
	}
	buf_text(&text, "}");
	see_now(c, CLUSTER_RESOURCE_CLAIMS, text.text);
}

static void show_event(struct cluster *c, const struct devices_world *w, int i)
{
	char text[900];
	if (i < PODS) {
		snprintf(text, sizeof text,
			 "{'metadata':{'namespace':'a','name':'p%d','uid':'p%d'},'spec':{%s%.0d'containers':[{}],"
			 "'resourceClaims':[{'name':'g','resourceClaimName':'k%d'}]},'status':{'phase':'Pending'}}",
			 i, i,
			 w->pod_node[i] < 0    ? ""
			 : w->pod_node[i] == 0 ? "'nodeName':'n0',"
			 : w->pod_node[i] == 1 ? "'nodeName':'n1',"
					       : "'nodeName':'n2',",
			 0, w->pod_claim[i]);
		see_now(c, CLUSTER_PODS, text);
	} else if ((i -= PODS) < CLAIMS) {
		show_claim(c, w, i);
	} else if ((i -= CLAIMS) < NODES) {
		snprintf(text, sizeof text,
			 "{'metadata':{'name':'n%d','uid':'n%d'},'status':{'allocatable':{},'conditions':[{'type':'"
			 "Ready','status':'True'}]}}",
			 i, i);
		see_now(c, CLUSTER_NODES, text);
	} else if ((i -= NODES) < NODES) {
		snprintf(text, sizeof text,
			 "{'metadata':{'name':'s%d','uid':'s%d'},'spec':{'driver':'gpu.nvidia.com','nodeName':'n%d','"
			 "pool':{'name':'n',"
			 "'generation':1,'resourceSliceCount':1},'devices':[%s]}}",
			 i, i, i,
			 w->devices[i] == 0   ? ""
			 : w->devices[i] == 1 ? GPU
					      : GPU "," GPU);
		see_now(c, CLUSTER_RESOURCE_SLICES, text);
	} else
		see_now(c, CLUSTER_DEVICE_CLASSES, CLASS("h", "device.driver == \\u0027gpu.nvidia.com\\u0027"));
}

static struct devices_world world_of(struct random *r)
{
	struct devices_world w = { 0 };
	for (int k = 0; k < CLAIMS; k++) {
		w.count[k] = 1 + (int)(random_next(r) % 3);
		w.is_own[k] = random_next(r) % 2;
	}
	for (int p = 0; p < PODS; p++) {
		/* The first ones have claims of their own where there are some; the last share one. */
		w.pod_claim[p] = p < CLAIMS ? p : CLAIMS - 1;
		w.pod_node[p] = (int)(random_next(r) % 4) - 1;
		w.is_allocated[w.pod_claim[p]] |= w.pod_node[p] >= 0;
	}
	w.is_own[CLAIMS - 1] = false;
	for (int n = 0; n < NODES; n++)
		w.devices[n] = (int)(random_next(r) % 3);
	return w;
}

static void say_all(const struct cluster *c, struct buf *out)
{
	char name[16];
	buf_clear(out);
	for (int p = 0; p < PODS; p++) {
		snprintf(name, sizeof name, "p%d", p);
		const struct pod *pod = cluster_pod(c, name);
		buf_printf(out, "%s %d %d %lld; ", name, pod->has_gpus, pod->pool, (long long)pod->gpus_milli);
	}
	for (int n = 0; n < NODES; n++) {
		snprintf(name, sizeof name, "n%d", n);
		const struct node *node = cluster_node(c, name);
		buf_printf(out, "%s %lld %lld; ", name, (long long)node->gpus_milli, (long long)node->gpus_used_milli);
	}
}

static void the_order_of_events_is_of_no_account(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < WORLDS; seed++) {
		CLEANUP(buf_release) struct buf first = { 0 }, other = { 0 };
		struct random r = random_stream(seed, "devices");
		struct devices_world w = world_of(&r);
		for (int turn = 0; turn < 4; turn++) {
			struct cluster *c = cluster_with_group("gpu.nvidia.com");
			int order[EVENTS];
			for (int i = 0; i < EVENTS; i++)
				order[i] = i;
			for (int i = EVENTS - 1; i > 0; i--) {
				int k = (int)(random_next(&r) % (uint64_t)(i + 1)), kept = order[i];
				order[i] = order[k];
				order[k] = kept;
			}
			for (int i = 0; i < EVENTS; i++)
				show_event(c, &w, order[i]);
			for (int i = 0; i < turn; i++) /* said again, it is the same */
				show_event(c, &w, (int)(random_next(&r) % EVENTS));
			say_all(c, turn ? &other : &first);
			if (turn && strcmp(first.text, other.text) != 0)
				fail_msg("seed %llu\n%s\n%s", (unsigned long long)seed, first.text, other.text);
			cluster_free(c);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_have_what_is_published),
		cmocka_unit_test(what_is_published_no_more_is_gone),
		cmocka_unit_test(a_node_that_offers_both_has_its_gpus_once),
		cmocka_unit_test(a_class_may_offer_an_extended_resource),
		cmocka_unit_test(claims_are_what_the_pod_asks_for),
		cmocka_unit_test(each_claim_of_its_own_needs_devices_of_its_own),
		cmocka_unit_test(pods_that_share_a_claim_need_its_devices_once),
		cmocka_unit_test(what_is_allocated_is_held),
		cmocka_unit_test(a_part_of_a_gpu_is_held_as_one),
		cmocka_unit_test(a_new_node_is_thought_of_with_its_devices),
		cmocka_unit_test(a_claim_that_was_not_read_may_hold_gpus),
		cmocka_unit_test(devices_are_requested_by_any_name_of_their_class),
		cmocka_unit_test(parts_of_gpus_are_requested_by_names_of_their_class),
		cmocka_unit_test(free_devices_are_places_before_there_are_pods),
		cmocka_unit_test(a_node_with_a_tainted_gpu_is_no_example),
		cmocka_unit_test(machines_that_do_not_help_are_not_bought_again),
		cmocka_unit_test(a_group_whose_machine_did_not_help_is_not_tried_for_an_hour),
		cmocka_unit_test(a_later_life_does_not_try_it_either),
		cmocka_unit_test(of_those_that_claim_the_same_one_is_tried_at_a_time),
		cmocka_unit_test(once_one_got_its_devices_all_that_claim_the_same_are_tried),
		cmocka_unit_test(what_others_learned_counts_for_those_that_claim_the_same),
		cmocka_unit_test(a_later_life_tries_one_at_a_time),
		cmocka_unit_test(what_helped_one_while_nobody_led_frees_the_others),
		cmocka_unit_test(room_for_a_moment_refuses_nobody),
		cmocka_unit_test(a_node_in_use_speaks_for_its_group_where_devices_are_counted),
		cmocka_unit_test(a_claim_does_not_fit_where_there_are_no_devices),
		cmocka_unit_test(a_driver_is_known_by_the_resource_of_its_plugin),
		cmocka_unit_test(the_order_of_events_is_of_no_account),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
