/* The pool of class any: GPU pods that no other pool owns get the cheapest machine that fits them, or are told why not;
 * what they leave goes. */
#include "base/random.h"
#include "controller/web/published.h"
#include "tests/world/lawful.h"
#include "tests/world/replays.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GROUP(name, gpus, price, most)                                                                              \
	"    - { name: " name ", provider: simulated, simulated: { endpoint: \"http://cloud.world\" }, zone: z1,\n" \
	"        instanceType: g5.xlarge, gpusPerNode: " gpus ", pricePerHour: " price ", min: 0, max: " most " }\n"
#define EIGHT GROUP("eight", "8", "6", "2")

#define ANY ANY_OF("5m")
#define ANY_OF(after)                                       \
	"apiVersion: preheat.dev/v1alpha1\n"                \
	"kind: WarmPool\n"                                  \
	"metadata: { name: rest, namespace: infra }\n"      \
	"spec:\n"                                           \
	"  mode: act\n"                                     \
	"  class: any\n"                                    \
	"  leadTime: { total: { p50: 150s, p95: 260s } }\n" \
	"  scaleDown: { after: " after " }\n"               \
	"  nodeGroups:\n"

#define WORK                                                                            \
	"---\n"                                                                         \
	"apiVersion: preheat.dev/v1alpha1\n"                                            \
	"kind: WarmPool\n"                                                              \
	"metadata: { name: work, namespace: llm }\n"                                    \
	"spec:\n"                                                                       \
	"  mode: act\n"                                                                 \
	"  class: training\n"                                                           \
	"  objective: { queueWait: 15m, attainment: 95% }\n"                            \
	"  workload: { selector: { matchLabels: { app: work } }, gpusPerReplica: 1 }\n" \
	"  signals: { engine: pods }\n"                                                 \
	"  leadTime: { total: { p50: 150s, p95: 260s } }\n"                             \
	"  scaleDown: { after: 4m }\n"                                                  \
	"  nodeGroups:\n"

/* The dear group stands first: the price decides. */
static const struct replica_settings both = { .manifest = ANY EIGHT GROUP("one", "1", "1", "6") };
static const struct replica_settings beside_work = { .manifest = ANY GROUP("one", "1", "1", "6")
							     WORK GROUP("one", "1", "1", "6") };
static const struct replica_settings eight_is_others = { .manifest = ANY GROUP("one", "1", "1", "6") WORK EIGHT };
static const struct replica_settings big = { .manifest = ANY EIGHT };
static const struct replica_settings unpriced = { .manifest = ANY GROUP("eight", "8", "0", "2") };
static const struct replica_settings only_told = { .manifest = ANY EIGHT, .is_dry_run = true };
static const struct replica_settings never_moves = { .manifest = ANY_OF("5m, utilization: 0%") EIGHT };
static struct cloud_group *one, *eight;
static int64_t most_one, most_eight;

static int set_up(void **state)
{
	(void)state;
	world_begin(7);
	one = world_group("one", "rest", 1, 0, 6, 0);
	eight = world_group("eight", "rest", 8, 0, 2, 0);
	most_one = most_eight = 0;
	return 0;
}

static bool look(void)
{
	most_one = one->desired > most_one ? one->desired : most_one;
	most_eight = eight->desired > most_eight ? eight->desired : most_eight;
	return false;
}

static void pass(millis duration)
{
	world_until(look, duration);
	assert_lawful();
}

static void start(const struct replica_settings *s)
{
	replica_start(0, s);
	pass(40 * SECOND);
}

static void come(const char *name, int64_t pods, int gpus)
{
	world_job(&(struct world_job){
		.name = name, .pool = "nobody", .pods = pods, .is_loose = true, .cpus = 1, .gpus = gpus });
	world_scheduler_looks();
}

static void leave(const char *name)
{
	for (struct object *p = apiserver_first(KIND_POD), *next; p; p = next) {
		next = p->next;
		if (value_is(p->value, "metadata>labels>job", name))
			apiserver_delete(p);
	}
}

static bool is_draining(void)
{
	const char *unrest = world_unrest();

	look();
	return unrest && strstr(unrest, "cordoned");
}

static void expect_told(const char *part)
{
	if (world_event_says("NotTriggerScaleUp", part))
		return;
	laws_print_trace(60);
	fail_msg("no event NotTriggerScaleUp says '%s'", part);
}

static void expect_most(int64_t ones, int64_t eights)
{
	if (most_one != ones || most_eight != eights)
		laws_print_trace(60);
	assert_int_equal(most_one, ones);
	assert_int_equal(most_eight, eights);
}

/* All is gone, and whoever decides again decides the same. */
static void ends_with_nothing(void)
{
	pass(15 * MINUTE);
	if (one->desired + eight->desired > 0)
		laws_print_trace(60);
	assert_int_equal(one->desired, 0);
	assert_int_equal(eight->desired, 0);
	replica_stop(0);
	assert_replays(replica_history(0));
}

static void a_pod_of_nobody_gets_the_cheapest_machine_and_it_goes_after_it(void **state)
{
	(void)state;
	start(&both);
	come("j", 1, 1);
	pass(2 * SECOND);
	assert_int_equal(one->desired, 1); /* at the event */
	pass(8 * MINUTE);
	assert_int_equal(world_job_running("j"), 1);
	pass(20 * MINUTE);
	expect_most(1, 0);
	leave("j");
	pass(4 * MINUTE);
	assert_int_equal(one->desired, 1);
	ends_with_nothing();
}

static void unlike_pods_get_unlike_machines_and_share_them(void **state)
{
	(void)state;
	start(&both);
	come("large", 1, 4);
	come("small", 3, 1);
	pass(10 * MINUTE);
	assert_int_equal(world_job_running("large") + world_job_running("small"), 4);
	expect_most(0, 1);
	come("more", 3, 1); /* one beside them, two of their own */
	pass(10 * MINUTE);
	assert_int_equal(world_job_running("more"), 3);
	expect_most(2, 1);
	leave("large");
	leave("small");
	leave("more");
	ends_with_nothing();
}

static void a_pod_that_fits_a_node_buys_nothing(void **state)
{
	(void)state;
	start(&both);
	come("first", 1, 8);
	pass(10 * MINUTE);
	leave("first");
	come("second", 2, 4);
	pass(10 * MINUTE);
	assert_int_equal(world_job_running("second"), 2);
	expect_most(0, 1);
	leave("second");
	ends_with_nothing();
}

static void a_pod_that_goes_before_its_machine_comes_leaves_none(void **state)
{
	(void)state;
	start(&both);
	come("j", 2, 1);
	pass(20 * SECOND);
	assert_int_equal(one->desired, 2);
	leave("j");
	ends_with_nothing();
	expect_most(2, 0);
}

/* The machine that was bought for it while it was nobody's may be bought again, and goes then. */
static void a_pod_that_a_pool_adopts_is_served(void **state)
{
	(void)state;
	start(&beside_work);
	come("j", 1, 1);
	pass(20 * SECOND);
	assert_int_equal(one->desired, 1);
	for (struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		if (value_is(p->value, "metadata>labels>job", "j")) {
			value_set_text(p->value, "metadata>labels>app", "work");
			apiserver_changed(p);
		}
	pass(20 * MINUTE);
	assert_int_equal(world_job_running("j"), 1);
	assert_int_equal(one->desired, 1);
	assert_in_range(most_one, 1, 2);
	leave("j");
	pass(25 * MINUTE);
	ends_with_nothing();
}

static void a_group_without_stock_gives_way_to_the_next(void **state)
{
	(void)state;
	start(&both);
	one->faults.stock_out = -1;
	come("j", 2, 1);
	pass(10 * MINUTE);
	assert_int_equal(world_job_running("j"), 2);
	assert_int_equal(most_eight, 1);
	assert_int_equal(eight->desired, 1);
	leave("j");
	pass(20 * MINUTE);
	ends_with_nothing();
}

/* Events on the pod by its uid, which is how `kubectl describe pod` finds them. */
static int times_told(const struct object *pod, const char *reason, const char *part)
{
	int times = 0;

	for (const struct object *e = apiserver_first(KIND_EVENT); e; e = e->next)
		times += value_is(e->value, "reason", reason) && value_is(e->value, "regarding>uid", pod->uid) &&
			 strstr(value_text(e->value, "note"), part);
	return times;
}

/* Over all pods of the job; `most`: of one. */
static int orders_told(const char *job, const char *part, int *most)
{
	int all = 0;

	*most = 0;
	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next) {
		int times =
			value_is(p->value, "metadata>labels>job", job) ? times_told(p, "TriggeredScaleUp", part) : 0;
		all += times;
		*most = times > *most ? times : *most;
	}
	return all;
}

static void expect_orders(const char *job, const char *part, int expected)
{
	int most, all = orders_told(job, part, &most);

	if (all == expected && most <= 1)
		return;
	laws_print_trace(60);
	fail_msg("%d events say '%s' of the pods of %s, %d of one; not %d", all, part, job, most, expected);
}

static void who_gets_a_machine_is_told_which_once(void **state)
{
	(void)state;
	start(&both);
	come("small", 3, 1);
	pass(3 * SECOND);
	expect_orders("small", "a machine of node group one is on its way for it (WarmPool rest, 3 of at most 6)", 3);
	come("large", 1, 8);
	pass(3 * SECOND);
	expect_orders("large", "a machine of node group eight is on its way for it (WarmPool rest, 1 of at most 2)", 1);
	pass(20 * MINUTE);
	expect_orders("small", "", 3);
	expect_orders("large", "1 of at most 2", 1);
	leave("large");
	come("sits", 2, 1); /* on the node that is there */
	pass(10 * MINUTE);
	assert_int_equal(world_job_running("sits"), 2);
	expect_orders("sits", "", 0);
}

static void what_the_cloud_refuses_is_not_told_as_ordered(void **state)
{
	(void)state;
	start(&both);
	one->faults.stock_out = -1;
	one->faults.at_once = true;
	come("j", 2, 1);
	pass(10 * MINUTE);
	assert_int_equal(world_job_running("j"), 2);
	expect_orders("j", "node group one", 0);
	expect_orders("j", "node group eight", 2);
}

static bool is_taken(void)
{
	return look() || one->desired > 0;
}

/* It is asked again until it takes the order: nobody is told before. */
static void what_the_cloud_has_not_taken_yet_is_not_told(void **state)
{
	(void)state;
	start(&both);
	one->faults.server_error = 6;
	come("j", 1, 1);
	pass(28 * SECOND); /* there are ticks meanwhile */
	assert_int_equal(one->desired, 0);
	expect_orders("j", "", 0);
	assert_true(world_until(is_taken, 10 * MINUTE));
	pass(20 * SECOND);
	expect_orders("j", "node group one", 1);
}

/* Nothing is told of a machine that nobody may order. */
static void who_only_watches_orders_nothing_and_says_so_to_nobody(void **state)
{
	static const struct replica_settings observing = { .manifest =
								   "apiVersion: preheat.dev/v1alpha1\n"
								   "kind: WarmPool\n"
								   "metadata: { name: rest, namespace: infra }\n"
								   "spec:\n"
								   "  mode: observe\n"
								   "  class: any\n"
								   "  leadTime: { total: { p50: 150s, p95: 260s } }\n"
								   "  nodeGroups:\n" GROUP("one", "1", "1", "6") };

	(void)state;
	start(&observing);
	come("j", 2, 1);
	pass(5 * MINUTE);
	cloud_owner_sets(one, 2);
	pass(10 * MINUTE);
	assert_int_equal(world_job_running("j"), 2);
	expect_orders("j", "", 0);
}

/* Within ten minutes as the same event, which then counts two. */
static void a_machine_in_place_of_one_that_did_not_come_is_told_too(void **state)
{
	(void)state;
	start(&both);
	one->faults.never_registers = 1;
	come("j", 1, 1);
	pass(20 * MINUTE);
	assert_int_equal(world_job_running("j"), 1);
	expect_orders("j", "node group one", 1);
	for (const struct object *e = apiserver_first(KIND_EVENT); e; e = e->next)
		if (value_is(e->value, "reason", "TriggeredScaleUp") && value_is(e->value, "regarding>kind", "Pod"))
			assert_int_equal(value_int(e->value, "series>count"), 2);
}

/* While machines come another replica leads: who was told is told by nobody again, who comes then is. */
static void a_new_leader_repeats_nothing(void **state)
{
	(void)state;
	start(&both);
	come("j", 3, 1);
	pass(20 * SECOND);
	expect_orders("j", "", 3);
	replica_stop(0);
	replica_start(0, &both);
	pass(40 * SECOND);
	come("late", 1, 1);
	pass(10 * MINUTE);
	assert_int_equal(world_job_running("j") + world_job_running("late"), 4);
	expect_orders("j", "", 3);
	expect_orders("late", "", 1);
}

/* As fast as events go, in the order in which pods are served; what pools have to tell finds room beside them. */
static void hundreds_are_told_as_fast_as_events_go(void **state)
{
	static const struct replica_settings many = { .manifest = ANY GROUP("eight", "8", "6", "60") };
	int most;

	(void)state;
	world_end();
	world_begin(7);
	one = world_group("one", "rest", 1, 0, 6, 0);
	eight = world_group("eight", "rest", 8, 0, 60, 0);
	start(&many);
	come("j", 400, 1);
	pass(20 * SECOND);
	assert_int_equal(eight->desired, 50);
	assert_in_range(orders_told("j", "node group eight", &most), 40, 85);
	assert_true(world_event_says("TriggeredScaleUp", "hot replicas"));
	pass(60 * SECOND);
	assert_in_range(orders_told("j", "node group eight", &most), 120, 205);
	assert_int_equal(most, 1);
	pass(10 * MINUTE);
	assert_int_equal(world_job_running("j"), 400);
}

static void pods_that_nothing_fits_are_told_so_and_buy_nothing(void **state)
{
	int told = 0;

	(void)state;
	start(&both);
	come("huge", 3, 16);
	pass(10 * MINUTE);
	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		told += times_told(p, "NotTriggerScaleUp",
				   "wants 16 nvidia.com/gpu; largest node group eight has 8 per node") > 0;
	assert_int_equal(told, 3);
	leave("huge");
	ends_with_nothing();
	expect_most(0, 0);
}

static void a_group_of_others_is_named_and_not_used(void **state)
{
	(void)state;
	start(&eight_is_others);
	come("large", 1, 8);
	pass(5 * MINUTE);
	expect_told("fits node group eight, no pool may use it for this pod: WarmPool rest does not name it");
	leave("large");
	ends_with_nothing();
	expect_most(0, 0);
}

/* What the maximum leaves out waits and is told; room that comes is theirs. */
static void the_maximum_binds_and_is_told(void **state)
{
	(void)state;
	start(&both);
	come("a", 2, 8);
	come("b", 1, 8);
	pass(10 * MINUTE);
	expect_most(0, 2);
	expect_told("fits node group eight, which has its most nodes, 2");
	leave("a");
	pass(2 * MINUTE);
	assert_int_equal(world_job_running("b"), 1);
	leave("b");
	ends_with_nothing();
}

static void a_gang_comes_whole_or_not_at_all(void **state)
{
	const struct world_job three = { .name = "three", .pool = "nobody", .pods = 3, .cpus = 1, .gpus = 8 };
	const struct world_job two = { .name = "two", .pool = "nobody", .pods = 2, .cpus = 1, .gpus = 8 };

	(void)state;
	start(&both);
	world_job(&three);
	pass(10 * MINUTE);
	expect_most(0, 0);
	leave("three");
	world_job(&two);
	pass(10 * MINUTE);
	assert_int_equal(world_job_running("two"), 2);
	expect_most(0, 2);
	leave("two");
	ends_with_nothing();
}

static void a_node_selector_chooses_the_group(void **state)
{
	(void)state;
	start(&both);
	world_job(&(struct world_job){ .name = "j",
				       .pool = "nobody",
				       .pods = 1,
				       .is_loose = true,
				       .cpus = 1,
				       .spec = ",'nodeSelector':{'simulated.preheat.dev/node-group':'eight'}" });
	pass(10 * MINUTE);
	assert_int_equal(world_job_running("j"), 1);
	expect_most(0, 1);
	leave("j");
	ends_with_nothing();
}

/* --- what is known of a group before a node of it was seen --- */

/* As the manifest says: zone z1, g5.xlarge, which is no machine for arm64, and a label. */
static void what_the_manifest_tells_of_nodes_counts_before_one_came(void **state)
{
	static const struct replica_settings labelled = { .manifest = ANY GROUP("eight", "8", "6, labels: { team: ml }",
										"2")
								  GROUP("one", "1", "1, labels: { team: ml }", "6") };
	static const struct {
		const char *spec, *told;
	} cases[] = {
		{ ",'nodeSelector':{'topology.kubernetes.io/zone':'z9'}",
		  "wants topology.kubernetes.io/zone=z9, nodes have z1" },
		{ ",'nodeSelector':{'node.kubernetes.io/instance-type':'p5.48xlarge'}",
		  "wants node.kubernetes.io/instance-type=p5.48xlarge, nodes have g5.xlarge" },
		{ ",'nodeSelector':{'kubernetes.io/arch':'arm64'}",
		  "wants kubernetes.io/arch=arm64, nodes have amd64" },
		{ ",'nodeSelector':{'team':'web'}", "wants team=web, nodes have ml" },
	};

	(void)state;
	start(&labelled);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		world_job(&(struct world_job){ .name = "j",
					       .pool = "nobody",
					       .pods = 1,
					       .is_loose = true,
					       .cpus = 1,
					       .gpus = 1,
					       .spec = cases[i].spec });
		world_scheduler_looks();
		pass(2 * MINUTE);
		expect_told(cases[i].told);
		expect_most(0, 0);
		leave("j");
	}
	ends_with_nothing();
}

/* What comes up on its way: every second each machine's node is handed to `change`, with how long its GPU is there. */
static void pass_changing(millis duration, void (*change)(struct object *node, millis has_gpu))
{
	enum { NODES = 8 };
	millis since[NODES] = { 0 };
	const struct object *seen[NODES] = { NULL };

	for (millis at = 0; at < duration; at += SECOND) {
		pass(SECOND);
		for (struct object *n = apiserver_first(KIND_NODE); n; n = n->next) {
			size_t k = 0;
			while (k < NODES - 1 && seen[k] && seen[k] != n)
				k++;
			seen[k] = n;
			if (!since[k] && value_at(n->value, "status>allocatable>nvidia.com/gpu"))
				since[k] = wire_now();
			change(n, since[k] ? wire_now() - since[k] : 0);
		}
	}
}

static const char *startup_taint;

/* From the registration until the GPU has been there for half a minute. */
static void taint_at_first(struct object *node, millis has_gpu)
{
	bool is_tainted = strstr(value_text(node->value, "metadata>annotations>tainted"), "yes") != NULL;

	if (!is_tainted && !has_gpu) {
		value_set(node->value, "metadata>annotations", value_of("{'tainted':'yes'}"));
		value_add(value_at(node->value, "spec>taints"),
			  value_of("{'key':'%s','effect':'NoExecute'}", startup_taint));
		apiserver_changed(node);
	} else if (is_tainted && has_gpu >= 30 * SECOND && value_at(node->value, "spec>taints")->first->next) {
		value_set(node->value, "spec>taints",
			  value_of("[{'key':'nvidia.com/gpu','value':'present','effect':'NoSchedule'}]"));
		apiserver_changed(node);
	}
}

/* Until it goes the machine is still coming: none is bought beside it, and the group may be bought later. */
static void a_taint_of_the_start_buys_no_second_machine(void **state)
{
	static const struct replica_settings told = {
		.manifest = ANY EIGHT GROUP("one", "1",
					    "1, startupTaints: [ { key: ops.example/agent, effect: NoExecute } ]", "6")
	};
	static const struct {
		const char *taint;
		const struct replica_settings *settings;
	} cases[] = { { "ebs.csi.aws.com/agent-not-ready", &both }, { "ops.example/agent", &told } };

	(void)state;
	world_end();
	for (size_t i = 0; i < 2; i++) {
		set_up(NULL);
		startup_taint = cases[i].taint;
		start(cases[i].settings);
		come("j", 1, 1);
		pass_changing(10 * MINUTE, taint_at_first);
		assert_int_equal(world_job_running("j"), 1);
		expect_most(1, 0);
		leave("j");
		ends_with_nothing();
		if (i == 0)
			world_end();
	}
}

static void make_daemon_pods(const char *name)
{
	for (struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		if (value_is(p->value, "metadata>labels>job", name)) {
			value_set_text(value_at(p->value, "metadata>ownerReferences")->first, "kind", "DaemonSet");
			apiserver_changed(p);
		}
}

/* Of a DaemonSet: for the nodes that there are. It neither brings a machine nor keeps one. */
static void pods_of_a_daemon_set_bring_and_keep_no_machine(void **state)
{
	(void)state;
	start(&both);
	world_scheduler(false);
	come("daemon", 1, 1);
	make_daemon_pods("daemon");
	world_scheduler(true);
	world_scheduler_looks();
	pass(10 * MINUTE);
	expect_most(0, 0);
	come("j", 1, 4);
	pass(10 * MINUTE);
	assert_int_equal(world_job_running("j"), 1);
	leave("j");
	pass(MINUTE);
	assert_int_equal(world_job_running("daemon"), 1);
	ends_with_nothing();
	expect_most(0, 1);
}

/* One of a DaemonSet that asks for a processor on each node, gone with it. */
static void daemons_follow(void)
{
	static const char daemon[] =
		"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s','namespace':'llm','labels':{'app':'ds'},"
		"'ownerReferences':[{'kind':'DaemonSet','name':'ds','uid':'ds-1','controller':true}]},'spec':{"
		"'nodeName':'%s','tolerations':[{'operator':'Exists'}],'containers':[{'name':'c','image':'i:1',"
		"'resources':{'requests':{'cpu':'1'}}}]},'status':{'phase':'Running','conditions':[{'type':'Ready',"
		"'status':'True'}]}}";

	for (const struct object *n = apiserver_first(KIND_NODE); n; n = n->next) {
		if (apiserver_find(KIND_POD, "llm", n->name))
			continue;
		struct object *o = apiserver_create(KIND_POD, value_of(daemon, n->name, n->name));
		o->extra = calloc(1, sizeof(struct pod_life));
		if (!o->extra)
			abort();
	}
	for (struct object *p = apiserver_first(KIND_POD), *next; p; p = next) {
		next = p->next;
		if (value_is(p->value, "metadata>labels>app", "ds") && !apiserver_find(KIND_NODE, "", p->name))
			apiserver_delete(p);
	}
}

/* Machines bought meanwhile. */
static int64_t pass_with_daemons(millis duration)
{
	int64_t bought = 0;

	for (millis at = 0; at < duration; at += 5 * SECOND) {
		int64_t before = one->desired + eight->desired;
		daemons_follow();
		pass(5 * SECOND);
		bought += one->desired + eight->desired > before ? one->desired + eight->desired - before : 0;
	}
	return bought;
}

/* It would fit each group but for them, which show on nodes alone: a machine of each tells, and none is bought again.
 */
static void a_pod_that_daemons_leave_no_room_buys_each_machine_once(void **state)
{
	(void)state;
	start(&both);
	world_job(&(struct world_job){
		.name = "k", .pool = "nobody", .pods = 1, .is_loose = true, .cpus = 64, .gpus = 1 });
	world_scheduler_looks();
	assert_int_equal(pass_with_daemons(HOUR), 2);
	assert_int_equal(world_job_running("k"), 0);
	expect_told("wants 64 cpu, a node has 63");
	assert_int_equal(one->desired + eight->desired, 0);
	assert_int_equal(pass_with_daemons(2 * HOUR), 0);
	leave("k");
	ends_with_nothing();
}

static void what_may_not_be_evicted_keeps_its_machine(void **state)
{
	static const char *const keepers[] = { "'cluster-autoscaler.kubernetes.io/safe-to-evict':'false'",
					       "'karpenter.sh/do-not-disrupt':'true'" };
	char more[120];

	(void)state;
	start(&both);
	for (int i = 0; i < 2; i++) {
		come("j", 1, 1);
		pass(10 * MINUTE);
		snprintf(more, sizeof more, ",'annotations':{%s}", keepers[i]);
		world_plain_pod(apiserver_first(KIND_NODE), "keeper", 1, more);
		leave("j");
		pass(20 * MINUTE);
		assert_int_equal(one->desired, 1);
		apiserver_delete(apiserver_find(KIND_POD, "llm", "keeper"));
		pass(15 * MINUTE);
		assert_int_equal(one->desired, 0);
	}
	ends_with_nothing();
}

static void a_budget_that_never_allows_keeps_its_machine_unmarked(void **state)
{
	(void)state;
	start(&both);
	come("j", 1, 1);
	pass(10 * MINUTE);
	world_plain_pod(apiserver_first(KIND_NODE), "keeper", 1, "");
	apiserver_create(
		KIND_BUDGET,
		value_of("{'metadata':{'name':'keeper','namespace':'llm'},'spec':{'maxUnavailable':'0','selector':{"
			 "'matchLabels':{'app':'keeper'}}},'status':{'disruptionsAllowed':0}}"));
	leave("j");
	pass(20 * MINUTE);
	assert_int_equal(one->desired, 1);
	assert_null(world_unrest());
	world_plain_node("plain", 4);
	apiserver_delete(apiserver_find(KIND_BUDGET, "llm", "keeper"));
	pass(10 * MINUTE);
	ends_with_nothing();
}

static bool has_pod(const char *name)
{
	return apiserver_find(KIND_POD, "llm", name) != NULL;
}

static const char *drain_problem(void)
{
	const struct published *p = replica_published(0);

	return p && p->pools[0].problem[PROBLEM_DRAIN_BLOCKED] ? p->pools[0].problem[PROBLEM_DRAIN_BLOCKED] : "";
}

/* Nothing is asked to go that could run nowhere else, and why the machine stays is told. */
static void a_pod_without_another_place_keeps_its_machine(void **state)
{
	(void)state;
	start(&both);
	come("j", 1, 1);
	pass(10 * MINUTE);
	world_plain_pod(apiserver_first(KIND_NODE), "web", 1, "");
	leave("j");
	pass(20 * MINUTE);
	assert_true(has_pod("web"));
	assert_int_equal(one->desired, 1);
	assert_null(world_unrest());
	assert_non_null(strstr(drain_problem(), "pod llm/web would have no place"));
	world_plain_node("small", 0);
	pass(10 * MINUTE);
	assert_true(has_pod("web"));
	assert_int_equal(one->desired, 1);
	world_plain_node("large", 4);
	struct object *large = apiserver_first(KIND_NODE);
	while (strcmp(large->name, "large") != 0)
		large = large->next;
	value_set_text(large->value, "metadata>labels>karpenter.sh/nodepool", "cpus"); /* whose ever it is */
	apiserver_changed(large);
	pass(5 * MINUTE);
	assert_false(has_pod("web"));
	assert_string_equal(drain_problem(), "");
	ends_with_nothing();
}

/* Both are idle, and each could hold what is on the other: one of them goes. */
static void two_idle_machines_are_no_place_for_each_other(void **state)
{
	(void)state;
	start(&both);
	come("j", 2, 1);
	pass(10 * MINUTE);
	assert_int_equal(one->desired, 2);
	for (const struct object *n = apiserver_first(KIND_NODE); n; n = n->next)
		world_plain_pod(n, n == apiserver_first(KIND_NODE) ? "web" : "more", 1, "");
	leave("j");
	pass(20 * MINUTE);
	assert_int_equal(one->desired, 1);
	assert_int_equal(has_pod("web") + has_pod("more"), 1);
	assert_null(world_unrest());
}

static void place_expendable_pod(const struct object *node, const char *name, const char *gpus)
{
	world_plain_pod(node, name, 1, "");
	struct object *p = apiserver_find(KIND_POD, "llm", name);
	value_set_int(p->value, "spec>priority", -11);
	value_set_text(value_at(p->value, "spec>containers")->first, "resources>limits>nvidia.com/gpu", gpus);
	apiserver_changed(p);
}

static void an_expendable_pod_keeps_no_machine(void **state)
{
	(void)state;
	start(&both);
	come("j", 1, 1);
	pass(10 * MINUTE);
	place_expendable_pod(apiserver_first(KIND_NODE), "scrap", "1");
	leave("j");
	pass(20 * MINUTE);
	assert_false(has_pod("scrap"));
	ends_with_nothing();
	expect_most(1, 0);
}

/* Slower than anybody said, and one that never becomes a node: nobody is left waiting. */
static void machines_that_do_not_come_are_replaced(void **state)
{
	(void)state;
	start(&both);
	one->faults.never_registers = 1;
	come("j", 1, 1);
	pass(60 * MINUTE);
	assert_int_equal(world_job_running("j"), 1);
	assert_in_range(most_one + most_eight, 1, 3);
	leave("j");
	pass(20 * MINUTE);
	ends_with_nothing();
}

/* --- half-empty machines --- */

/* Two machines of 8 GPUs: on the first a pod of the Job `stays`, on the second those of the Deployment `rest`. */
static void make_half_empty(int64_t replicas, int gpus, int gpus_that_stay, const char *max_unavailable)
{
	come("filler", 1, 8 - gpus_that_stay);
	come("stays", 1, gpus_that_stay);
	pass(8 * MINUTE);
	world_app("rest", replicas, gpus, max_unavailable)->is_idle = true;
	pass(8 * MINUTE);
	assert_int_equal(world_ready("rest"), replicas);
	assert_int_equal(eight->desired, 2);
	leave("filler");
}

static void expect_machines(int64_t count, int64_t replicas)
{
	const char *unrest = world_unrest();

	if (eight->desired != count || world_ready("rest") != replicas || unrest)
		laws_print_trace(80);
	assert_int_equal(eight->desired, count);
	assert_int_equal(world_ready("rest"), replicas);
	assert_int_equal(world_job_running("stays"), 1);
	assert_null(unrest);
}

static void end_half_empty(void)
{
	expect_most(0, 2);
	world_set_replicas("rest", 0);
	leave("stays");
	ends_with_nothing();
}

static void pods_of_a_half_empty_machine_move_and_it_goes(void **state)
{
	(void)state;
	start(&big);
	make_half_empty(1, 4, 2, "");
	pass(4 * MINUTE);
	expect_machines(2, 1); /* not before scaleDown.after */
	pass(4 * MINUTE);
	expect_machines(1, 1);
	assert_true(world_event_says("Consolidating", "its pod fits on "));
	assert_true(world_event_says("Consolidating", "saves $6.00 an hour"));
	end_half_empty();
}

/* It is full, and half of that is expendable. */
static void expendable_pods_go_with_a_half_empty_machine(void **state)
{
	const struct object *node = NULL;

	(void)state;
	start(&big);
	make_half_empty(1, 4, 2, "");
	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		if (value_is(p->value, "metadata>labels>app", "rest"))
			node = world_node_of(pod_node(p));
	place_expendable_pod(node, "scrap", "4");
	pass(20 * MINUTE);
	assert_false(has_pod("scrap"));
	expect_machines(1, 1);
	end_half_empty();
}

/* There is no place for four GPUs, or more than half is used, or the manifest says that none moves. */
static void what_may_not_move_stays(void **state)
{
	static const struct {
		const struct replica_settings *settings;
		int gpus, that_stay;
	} cases[] = { { &big, 4, 5 }, { &big, 5, 2 }, { &never_moves, 4, 2 } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (i > 0) {
			world_end();
			set_up(NULL);
		}
		start(cases[i].settings);
		make_half_empty(1, cases[i].gpus, cases[i].that_stay, "");
		pass(40 * MINUTE);
		expect_machines(2, 1);
		end_half_empty();
	}
}

/* Nobody is asked to go, and no machine is marked, as long as the budget allows none. */
static void a_budget_keeps_a_half_empty_machine(void **state)
{
	(void)state;
	start(&unpriced);
	make_half_empty(1, 4, 2, "0");
	pass(30 * MINUTE);
	expect_machines(2, 1);
	struct object *b = apiserver_find(KIND_BUDGET, "llm", "rest");
	value_set_text(b->value, "spec>maxUnavailable", "1");
	apiserver_changed(b);
	pass(15 * MINUTE);
	expect_machines(1, 1);
	assert_true(world_event_says("Consolidating", "saves 8 GPU hours an hour"));
	end_half_empty();
}

/* The work of Jobs would begin anew. */
static void work_never_moves(void **state)
{
	(void)state;
	start(&big);
	come("filler", 1, 7);
	come("stays", 1, 1);
	come("other", 1, 4);
	pass(10 * MINUTE);
	leave("filler");
	pass(40 * MINUTE);
	assert_int_equal(eight->desired, 2);
	assert_null(world_unrest());
	leave("stays");
	leave("other");
	ends_with_nothing();
}

/* Who takes over between the first pod and the second. */
static void a_move_that_is_cut_off_ends_well(void **state)
{
	(void)state;
	start(&big);
	make_half_empty(2, 2, 2, "");
	assert_true(world_until(is_draining, 20 * MINUTE));
	pass(10 * SECOND);
	assert_int_equal(world_ready("rest") < 2, true);
	replica_kill(0);
	replica_start(0, &big);
	pass(40 * MINUTE);
	expect_machines(1, 2);
	end_half_empty();
}

/* Who comes for the place that was meant gets it, and what is left stays where it is. */
static void a_place_that_is_taken_is_no_place(void **state)
{
	(void)state;
	start(&big);
	make_half_empty(2, 2, 2, "");
	assert_true(world_until(is_draining, 20 * MINUTE));
	pass(SECOND);
	come("late", 1, 4);
	pass(10 * MINUTE);
	assert_int_equal(world_job_running("late"), 1);
	expect_machines(2, 2);
	leave("late");
	end_half_empty();
}

/* The machine that is emptied ends meanwhile, held by a hook, and the place that was meant is taken: what is left runs
 * on as long as may be, and goes all the same, to a machine that is bought for it. */
static void what_moves_from_a_machine_that_ends_goes_in_any_case(void **state)
{
	(void)state;
	start(&big);
	make_half_empty(2, 2, 2, "");
	assert_true(world_until(is_draining, 20 * MINUTE));
	pass(SECOND);
	come("late", 1, 4);
	eight->end_hook = HOUR;
	for (struct cloud_machine *m = eight->machines; m; m = m->next)
		if (m->step == STEP_RUNNING && value_is(world_node_of(m->id)->value, "spec>unschedulable", "true")) {
			cloud_owner_ends(m);
			eight->desired--;
		}
	assert_int_equal(eight->desired, 1);
	pass(20 * MINUTE);
	assert_int_equal(world_job_running("late"), 1);
	assert_int_equal(world_ready("rest"), 2); /* one of them there */
	pass(20 * MINUTE);
	expect_machines(2, 2);
	pass(HOUR);
	expect_machines(2, 2);
	leave("late");
	end_half_empty();
}

/* --- work whose machine the cloud takes --- */

/* Once, and its node is never opened again. */
static void work_on_a_machine_that_is_taken_is_asked_to_go(void **state)
{
	(void)state;
	start(&beside_work);
	world_job(&(struct world_job){
		.name = "train", .pool = "work", .pods = 1, .is_loose = true, .cpus = 1, .gpus = 1 });
	world_scheduler_looks();
	pass(8 * MINUTE);
	assert_int_equal(world_job_running("train"), 1);
	cloud_take(one, 1);
	pass(30 * SECOND);
	assert_true(world_event_told("SpotInterruption"));
	assert_int_equal(world_job_running("train"), 0);
	assert_int_equal(one->desired, 0);
}

static void a_dry_run_moves_nobody(void **state)
{
	(void)state;
	start(&big);
	make_half_empty(1, 4, 2, "");
	replica_stop(0);
	world_run(MINUTE);
	laws_dry_run();
	replica_start(0, &only_told);
	pass(20 * MINUTE);
	expect_machines(2, 1);
	const struct plan *plan = replica_published(0)->plan;
	assert_int_equal(plan->pools[0].groups[0].move, 1);
	assert_int_equal(plan->pools[0].groups[0].move_saves, 6000000);
	replica_stop(0);
	assert_replays(replica_history(0));
}

/* --- worlds as a seed has them --- */

enum { WAVES = 9, WORLDS = 12, MOVABLE_MOST = 5 };

static const struct replica_settings wide = { .manifest =
						      ANY GROUP("eight", "8", "6", "30") GROUP("one", "1", "1", "30") };

static struct wave {
	char name[16];
	int64_t pods;
	int gpus;
	millis left; /* of wire_now(); 0: it is there */
} waves[WAVES];
static size_t wave_count;
static int64_t spoilt;	/* machines that may have to be bought again */
static int64_t movable; /* replicas of the Deployment `rest` */

/* Every pod that is there, or was while a machine came or was idle, has one of its own at the most; and one more. */
static bool is_more_than_needed(void)
{
	int64_t pods = 0;

	for (size_t i = 0; i < wave_count; i++)
		if (waves[i].gpus <= 8 && (!waves[i].left || wire_now() - waves[i].left < 20 * MINUTE))
			pods += waves[i].pods;
	pods += world_app_at(0) ? MOVABLE_MOST : 0;
	return one->desired + eight->desired > (pods ? pods + 1 : 0) + spoilt;
}

static void pass_lawfully(millis duration)
{
	bool is_more = world_until(is_more_than_needed, duration);

	assert_lawful();
	if (!is_more)
		return;
	laws_print_trace(80);
	fail_msg("%lld and %lld machines", (long long)one->desired, (long long)eight->desired);
}

static int64_t below(struct random *r, int64_t n)
{
	return (int64_t)(random_next(r) % (uint64_t)n);
}

static void wave_comes(struct random *r)
{
	static const int sizes[] = { 1, 1, 1, 2, 4, 8, 16 };
	struct wave *w = &waves[wave_count];

	*w = (struct wave){ .pods = 1 + below(r, 3), .gpus = sizes[below(r, 7)] };
	snprintf(w->name, sizeof w->name, "w%zu", wave_count++);
	world_job(&(struct world_job){ .name = w->name,
				       .pool = "nobody",
				       .pods = w->pods,
				       .is_loose = below(r, 3) > 0,
				       .cpus = 1,
				       .gpus = w->gpus });
}

static void wave_leaves(struct wave *w)
{
	if (w->left)
		return;
	w->left = wire_now();
	leave(w->name);
}

static void something_breaks(struct random *r)
{
	struct cloud_faults *f = below(r, 2) ? &one->faults : &eight->faults;

	spoilt += 2;
	switch (below(r, 6)) {
	case 0:
		f->stock_out = 2;
		break;
	case 1:
		f->never_registers = 1;
		break;
	case 2:
		f->no_device = 1;
		break;
	case 3:
		f->lost_answer = 1;
		break;
	case 4:
		f->throttle = 2;
		break;
	default:
		replica_kill(0);
		replica_start(0, &wide);
	}
}

static void movable_pods_come_and_go(struct random *r)
{
	if (!world_app_at(0) || below(r, 2))
		return;
	movable = below(r, MOVABLE_MOST + 1);
	world_set_replicas("rest", movable);
}

static void expect_all_run(uint64_t seed)
{
	for (size_t i = 0; i < wave_count; i++) {
		int64_t expected = waves[i].left || waves[i].gpus > 8 ? 0 : waves[i].pods;
		if (world_job_running(waves[i].name) != expected) {
			laws_print_trace(80);
			fail_msg("seed %lld: %s of %d GPUs: %lld run of %lld", (long long)seed, waves[i].name,
				 waves[i].gpus, (long long)world_job_running(waves[i].name), (long long)expected);
		}
	}
	if (!world_app_at(0) || world_ready("rest") == movable)
		return;
	laws_print_trace(80);
	fail_msg("seed %lld: %lld of %lld that may move run", (long long)seed, (long long)world_ready("rest"),
		 (long long)movable);
}

/* No two machines of 8 GPUs are there whose pods one of them could hold; those of 1 are full. */
static void expect_packed(uint64_t seed)
{
	int64_t pods = movable * world_app_at(0)->gpus, whole = 8 / world_app_at(0)->gpus * world_app_at(0)->gpus;
	int64_t most = pods * 2 / (whole + 1) + 1;

	if (eight->desired <= most)
		return;
	laws_print_trace(80);
	fail_msg("seed %lld: %lld machines for %lld GPUs", (long long)seed, (long long)eight->desired, (long long)pods);
}

static void live_through(uint64_t seed, bool with_movable)
{
	struct random r = random_stream(seed, "default pool");

	world_begin(seed);
	one = world_group("one", "rest", 1, 0, 30, 0);
	eight = world_group("eight", "rest", 8, 0, 30, 0);
	wave_count = 0;
	spoilt = 0;
	movable = 0;
	if (with_movable)
		world_app("rest", 0, 2 + (int)below(&r, 3), "1")->is_idle = true;
	replica_start(0, &wide);
	pass_lawfully(40 * SECOND);
	while (wave_count < WAVES) {
		if (below(&r, 3) > 0)
			wave_comes(&r);
		else if (below(&r, 2) && wave_count > 0)
			wave_leaves(&waves[below(&r, (int64_t)wave_count)]);
		else
			something_breaks(&r);
		movable_pods_come_and_go(&r);
		pass_lawfully(below(&r, 5 * MINUTE));
	}
	one->faults = eight->faults = (struct cloud_faults){ 0 };
	pass_lawfully(90 * MINUTE);
	expect_all_run(seed);
	for (size_t i = 0; i < wave_count; i++)
		wave_leaves(&waves[i]);
	if (with_movable) { /* alone on many machines, on few in the end */
		pass_lawfully(90 * MINUTE);
		expect_all_run(seed);
		expect_packed(seed);
		world_set_replicas("rest", 0);
	}
	pass_lawfully(60 * MINUTE);
	if (one->desired + eight->desired > 0) {
		laws_print_trace(80);
		fail_msg("seed %lld: %lld and %lld machines stay", (long long)seed, (long long)one->desired,
			 (long long)eight->desired);
	}
	replica_stop(0);
	assert_replays(replica_history(0));
}

static void live_through_all(uint64_t worlds, bool with_movable)
{
	world_end();
	for (uint64_t seed = 1; seed <= worlds; seed++) {
		live_through(seed, with_movable);
		if (seed < worlds)
			world_end();
	}
}

static void whatever_comes_runs_and_nothing_stays(void **state)
{
	(void)state;
	live_through_all(WORLDS, false);
}

static void with_pods_that_move_it_is_so_too(void **state)
{
	(void)state;
	live_through_all(WORLDS / 2, true);
}

#define SCENARIO(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(int argc, char **argv)
{
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	const struct CMUnitTest tests[] = {
		SCENARIO(a_pod_of_nobody_gets_the_cheapest_machine_and_it_goes_after_it),
		SCENARIO(unlike_pods_get_unlike_machines_and_share_them),
		SCENARIO(a_pod_that_fits_a_node_buys_nothing),
		SCENARIO(a_pod_that_goes_before_its_machine_comes_leaves_none),
		SCENARIO(a_pod_that_a_pool_adopts_is_served),
		SCENARIO(a_group_without_stock_gives_way_to_the_next),
		SCENARIO(who_gets_a_machine_is_told_which_once),
		SCENARIO(what_the_cloud_refuses_is_not_told_as_ordered),
		SCENARIO(what_the_cloud_has_not_taken_yet_is_not_told),
		SCENARIO(who_only_watches_orders_nothing_and_says_so_to_nobody),
		SCENARIO(a_machine_in_place_of_one_that_did_not_come_is_told_too),
		SCENARIO(a_new_leader_repeats_nothing),
		SCENARIO(hundreds_are_told_as_fast_as_events_go),
		SCENARIO(pods_that_nothing_fits_are_told_so_and_buy_nothing),
		SCENARIO(a_group_of_others_is_named_and_not_used),
		SCENARIO(the_maximum_binds_and_is_told),
		SCENARIO(a_gang_comes_whole_or_not_at_all),
		SCENARIO(a_node_selector_chooses_the_group),
		SCENARIO(what_the_manifest_tells_of_nodes_counts_before_one_came),
		SCENARIO(a_taint_of_the_start_buys_no_second_machine),
		SCENARIO(pods_of_a_daemon_set_bring_and_keep_no_machine),
		SCENARIO(a_pod_that_daemons_leave_no_room_buys_each_machine_once),
		SCENARIO(what_may_not_be_evicted_keeps_its_machine),
		SCENARIO(a_budget_that_never_allows_keeps_its_machine_unmarked),
		SCENARIO(a_pod_without_another_place_keeps_its_machine),
		SCENARIO(two_idle_machines_are_no_place_for_each_other),
		SCENARIO(an_expendable_pod_keeps_no_machine),
		SCENARIO(machines_that_do_not_come_are_replaced),
		SCENARIO(pods_of_a_half_empty_machine_move_and_it_goes),
		SCENARIO(expendable_pods_go_with_a_half_empty_machine),
		SCENARIO(what_may_not_move_stays),
		SCENARIO(a_budget_keeps_a_half_empty_machine),
		SCENARIO(work_never_moves),
		SCENARIO(a_move_that_is_cut_off_ends_well),
		SCENARIO(a_place_that_is_taken_is_no_place),
		SCENARIO(what_moves_from_a_machine_that_ends_goes_in_any_case),
		SCENARIO(work_on_a_machine_that_is_taken_is_asked_to_go),
		SCENARIO(a_dry_run_moves_nobody),
		SCENARIO(whatever_comes_runs_and_nothing_stays),
		SCENARIO(with_pods_that_move_it_is_so_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
