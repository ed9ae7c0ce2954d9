/*
 * What owners of a node group do to its machines: updates, rebalancing, refreshes, schedules. Each goes step by step as
 * the vendor documents it (docs/providers.md); nothing of it is undone, and what is wanted meanwhile is had elsewhere.
 */
#include "controller/web/published.h"
#include "tests/world/lawful.h"
#include "tests/world/owners.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CHAT(groups) CHAT_THAT("act", groups)
#define CHAT_THAT(mode, groups)                                                                                        \
	"apiVersion: preheat.dev/v1alpha1\n"                                                                           \
	"kind: WarmPool\n"                                                                                             \
	"metadata: { name: chat, namespace: llm }\n"                                                                   \
	"spec:\n"                                                                                                      \
	"  mode: " mode "\n"                                                                                           \
	"  class: interactive\n"                                                                                       \
	"  objective: { queueWait: 2s, attainment: 99% }\n"                                                            \
	"  workload: { selector: { matchLabels: { app: chat } }, scaleTargetRef: { apiVersion: apps/v1, kind: "        \
	"Deployment,\n"                                                                                                \
	"      name: chat }, gpusPerReplica: 1, maxSequences: 8, prefillTokensPerSecond: 25k, interTokenLatency: "     \
	"30ms "                                                                                                        \
	"}\n"                                                                                                          \
	"  signals: { engine: vllm, scrape: { port: 8000, path: /metrics, interval: 15s } }\n"                         \
	"  nodeGroups:\n" groups                                                                                       \
	"  leadTime: { provision: { p50: 45s, p95: 70s }, register: { p50: 20s, p95: 30s }, device: { p50: 15s, p95: " \
	"30s },\n"                                                                                                     \
	"      image: { p50: 60s, p95: 90s }, load: { p50: 60s, p95: 90s } }\n"                                        \
	"  headroom: { min: 3 }\n"                                                                                     \
	"  scaleDown: { after: 5m }\n"
#define GROUP(name, price, where)                                                                                     \
	"    - { name: " name ", zone: z1, gpusPerNode: 1, pricePerHour: " price ", min: 0, max: 20,\n        " where \
	" }\n"
#define SIMULATED "provider: simulated, simulated: { endpoint: \"http://cloud.world\" }, instanceType: g5.xlarge"
#define EKS(name)                                                                         \
	"provider: eks, instanceType: g5.xlarge, eks: { cluster: world, nodegroup: " name \
	", region: eu-west-1, endpoint: "                                                 \
	"\"" CLOUD_AWS "\" }"
#define OWN(name)                                                                         \
	"provider: eks, instanceType: g5.xlarge, eks: { cluster: world, nodegroup: " name \
	", autoScalingGroup: asg-" name ", protection: group, region: eu-west-1, endpoint: \"" CLOUD_AWS "\" }"
#define AKS(name)                                                                                                  \
	"provider: aks, instanceType: Standard_NC4as_T4_v3, aks: { resourceGroup: rg, cluster: world, pool: " name \
	", "                                                                                                       \
	"subscription: 00000000-0000-0000-0000-000000000000 }"

static const struct replica_settings on_simulated = { .manifest = CHAT(GROUP("first", "0.48", SIMULATED)
									       GROUP("second", "1.21", SIMULATED)) };
static const struct replica_settings on_eks = { .manifest = CHAT(GROUP("first", "0.48", EKS("first"))
									 GROUP("second", "1.21", EKS("second"))) };
#define OF_OWN GROUP("first", "0.48", OWN("first")) GROUP("second", "1.21", OWN("second"))
static const struct replica_settings on_own = { .manifest = CHAT(OF_OWN) },
				     paused_on_own = { .manifest = CHAT_THAT("paused", OF_OWN) };
static const struct replica_settings on_aks = { .manifest = CHAT(GROUP("first", "0.48", AKS("first"))
									 GROUP("second", "1.21", AKS("second"))) };
static const struct replica_settings beside_aks = { .manifest = CHAT(GROUP("first", "0.48", AKS("first"))
									     GROUP("second", "1.21", SIMULATED)) };
static const struct replica_settings
	paused_on_simulated = { .manifest = CHAT_THAT("paused", GROUP("first", "0.48", SIMULATED)
									GROUP("second", "1.21", SIMULATED)) },
	paused_on_eks = { .manifest = CHAT_THAT("paused", GROUP("first", "0.48", EKS("first"))
								  GROUP("second", "1.21", EKS("second"))) };
static struct world_app *chat;
static struct cloud_group *first, *second;

static struct cloud_group *add(const char *name, enum cloud_wire wire, int64_t initial)
{
	return cloud_add(
		&(struct cloud_group){ .name = name,
				       .pool = "chat",
				       .zone = "z1",
				       .instance_type = wire == CLOUD_AKS ? "Standard_NC4as_T4_v3" : "g5.xlarge",
				       .max = 20,
				       .gpus = 1,
				       .wire = wire },
		initial);
}

static void set_up_on(enum cloud_wire wire)
{
	world_begin(1);
	first = add("first", wire, 1);
	second = add("second", wire, 0);
	chat = world_app("chat", 1, 1, "25%");
	owners_begin();
}

static int set_up(void **state)
{
	(void)state;
	set_up_on(CLOUD_SIMULATED);
	return 0;
}

static int set_up_eks(void **state)
{
	(void)state;
	set_up_on(CLOUD_EKS);
	return 0;
}

static int set_up_aks(void **state)
{
	(void)state;
	set_up_on(CLOUD_AKS);
	return 0;
}

static int set_up_beside_aks(void **state)
{
	(void)state;
	world_begin(1);
	first = add("first", CLOUD_AKS, 1);
	second = add("second", CLOUD_SIMULATED, 0);
	chat = world_app("chat", 1, 1, "25%");
	owners_begin();
	return 0;
}

static int tear_down_owners(void **state)
{
	owners_end();
	return tear_down(state);
}

static bool serves_three(void)
{
	return world_ready("chat") >= 3;
}

static bool serves_eight(void)
{
	return world_ready("chat") >= 8;
}

static bool serves_four_at_most(void)
{
	return world_ready("chat") <= 4 && world_ready("chat") >= 3;
}

static void begin_with(const struct replica_settings *settings)
{
	replica_start(0, settings);
	until(serves_three, 30 * MINUTE, "the headroom serves");
	until(world_is_at_rest, 30 * MINUTE, "nothing is on its way");
	assert_int_equal(cloud_awake(second), 0);
}

static void begin(void)
{
	begin_with(&on_simulated);
}

static const char *problem(enum pool_problem p)
{
	const struct published *all = replica_published(0);

	return all && all->pools ? all->pools[0].problem[p] : NULL;
}

static bool is_owner_done(void)
{
	return !owner_is_at_work(first);
}

static bool has_surged(void)
{
	return cloud_owned(first) == OWNER_SURGE;
}

static bool is_free(void)
{
	return !problem(PROBLEM_BUSY);
}

/* The law owner_is_let looks on. */
static void an_update_is_let_and_named(void **state)
{
	(void)state;
	begin();
	int64_t size = first->desired, changes = first->changes;
	assert_true(owner_begins(first, OWNER_UPDATES));
	run(2 * MINUTE);
	assert_non_null(strstr(problem(PROBLEM_BUSY), "an update of node group first"));
	assert_true(world_event_says("NodeGroupBusy", "an update of node group first"));
	until(is_owner_done, 3 * HOUR, "the update is over");
	assert_int_equal(first->desired, size);
	assert_int_equal(first->changes, changes);
	assert_false(world_event_told("NodeGroupContended"));
	until(is_free, 3 * MINUTE, "it is told no more");
	until(serves_three, 30 * MINUTE, "the headroom serves");
}

static bool has_moved(void)
{
	return first->moved_at;
}

/* No size moves, as EKS ends machines first: it is asked for its state once one leaves, though it told another just
 * before the update began. */
static void an_update_that_ends_machines_first_is_let_and_named(void **state)
{
	(void)state;
	begin_with(&on_eks);
	cloud_owner_sets(first, first->desired + 1);
	run(3 * MINUTE); /* it is protected by then */
	int64_t size = first->desired, changes = first->changes;
	first->ends_old_first = true;
	assert_true(owner_begins(first, OWNER_UPDATES));
	until(has_moved, 5 * MINUTE, "the first ends");
	assert_null(problem(PROBLEM_BUSY));
	run(MINUTE);
	assert_non_null(strstr(problem(PROBLEM_BUSY), "EKS updates node group first"));
	first->unavailable = 2;
	until(is_owner_done, 3 * HOUR, "the update is over");
	assert_int_equal(first->desired, size);
	assert_int_equal(first->changes, changes);
	assert_false(world_event_told("NodeGroupContended"));
	until(is_free, 3 * MINUTE, "it is told no more");
	until(serves_three, 30 * MINUTE, "the headroom serves");
}

/* AKS adds a machine beside the count, and cordons, empties and images anew one after the other: each comes back under
 * its name. */
static void an_upgrade_of_aks_is_let_and_named(void **state)
{
	(void)state;
	begin_with(&on_aks);
	int64_t size = first->desired, changes = first->changes, bought = first->bought;
	assert_true(owner_begins(first, OWNER_UPDATES));
	run(2 * MINUTE);
	assert_non_null(strstr(problem(PROBLEM_BUSY), "first"));
	assert_true(world_event_told("NodeGroupBusy"));
	until(is_owner_done, 3 * HOUR, "the upgrade is over");
	assert_int_equal(first->desired, size);
	assert_int_equal(first->changes, changes);
	assert_false(world_event_told("NodeGroupContended"));
	until(is_free, 3 * MINUTE, "it is told no more");
	until(serves_three, 30 * MINUTE, "the headroom serves");
	assert_int_equal(first->bought - bought, 1); /* the owner's surge */
	run(30 * MINUTE);
	assert_int_equal(cloud_awake(first) + cloud_awake(second), 3);
	assert_null(world_unrest());
}

static bool surge_is_emptied(void)
{
	for (const struct cloud_machine *m = first->machines; m; m = m->next)
		if (!strcmp(m->token, CLOUD_OWNER) && world_node_of(m->id) &&
		    value_is(world_node_of(m->id)->value, "spec>unschedulable", "true"))
			return true;
	return false;
}

/* Somebody raises the size at its end: the machine that AKS added is one of the count, and no node stays cordoned. */
static void who_raises_the_size_during_an_upgrade_keeps_its_machine(void **state)
{
	(void)state;
	begin_with(&on_aks);
	assert_true(owner_begins(first, OWNER_UPDATES));
	until(surge_is_emptied, 3 * HOUR, "AKS empties the machine that it added");
	cloud_owner_sets(first, first->desired + 1);
	until(is_owner_done, 3 * HOUR, "the upgrade is over");
	until(is_free, 3 * MINUTE, "it is told no more");
	run(30 * MINUTE);
	assert_null(world_unrest());
}

static bool goes_down(void)
{
	return replica_published(0)->plan->pools[0].decision.decided <= 4;
}

static void allow_disruptions(const char *most)
{
	value_set_text(apiserver_first(KIND_BUDGET)->value, "spec>maxUnavailable", most);
	apiserver_changed(apiserver_first(KIND_BUDGET));
}

static int64_t marked_nodes(void)
{
	int64_t count = 0;

	for (const struct cloud_machine *m = first->machines; m; m = m->next)
		count += world_node_of(m->id) && value_is(world_node_of(m->id)->value, "spec>unschedulable", "true");
	return count;
}

static bool are_three_marked(void)
{
	return marked_nodes() == 3;
}

static bool is_nobody_at_work(void)
{
	return !first->busy_with;
}

/* EKS marks all old nodes as soon as the new ones are Ready, and leaves them so if it cannot empty one: they serve on,
 * as nodes that a person cordoned. Its owner tries again by force. */
static void what_a_failed_update_leaves_is_let(void **state)
{
	(void)state;
	begin_with(&on_eks);
	allow_disruptions("0");
	assert_true(owner_begins(first, OWNER_UPDATES));
	until(are_three_marked, 30 * MINUTE, "all of the old are marked");
	assert_true(has_surged());
	until(is_nobody_at_work, 30 * MINUTE, "the update fails");
	run(40 * MINUTE);
	assert_int_equal(marked_nodes(), 3);
	assert_true(serves_three());
	until(is_owner_done, 4 * HOUR, "it is tried again");
	until(serves_three, 30 * MINUTE, "the headroom serves");
	until(world_is_at_rest, 2 * HOUR, "nothing is on its way");
	assert_null(world_unrest());
}

/* Nodes that are kept meanwhile bear our mark until the owner is done, and serve: more replicas than are decided would
 * wait for a place, and who waits counts as lost in the budget: AKS could empty no node. */
static void what_is_kept_during_an_upgrade_is_no_replica_more(void **state)
{
	(void)state;
	begin_with(&on_aks);
	chat->rate = 6;
	until(serves_eight, 30 * MINUTE, "eight serve");
	until(world_is_at_rest, 2 * HOUR, "nothing is on its way");
	chat->rate = 0.5;
	until(goes_down, 2 * HOUR, "it goes down");
	allow_disruptions("0");
	assert_true(owner_begins(first, OWNER_UPDATES));
	run(45 * SECOND);
	assert_non_null(problem(PROBLEM_BUSY));
	chat->rate = 6;
	run(3 * MINUTE);
	for (int i = 0; i < 20; i++) {
		run(15 * SECOND);
		assert_true(owner_is_at_work(first));
		assert_in_range(world_replicas("chat"), 3, replica_published(0)->plan->pools[0].decision.decided + 1);
	}
}

static bool has_room_elsewhere(void)
{
	return cloud_awake(second) >= 4;
}

/* The version of the whole cluster: pools show nothing of it, and take no write. What is wanted is had elsewhere, the
 * cloud is not asked again and again, and who it is is told. */
static void a_cluster_that_is_upgraded_is_let_and_named(void **state)
{
	(void)state;
	begin_with(&beside_aks);
	first->cluster_upgrades = true;
	chat->rate = 6;
	until(has_room_elsewhere, 2 * MINUTE, "others have what is wanted");
	run(2 * MINUTE);
	assert_true(world_event_told("NodeGroupBusy"));
	assert_non_null(strstr(problem(PROBLEM_BUSY), "upgrade managed cluster"));
	run(90 * MINUTE);
	assert_true(serves_eight());
	assert_in_range(first->put_off, 1, 40);
	assert_false(world_event_told("NodeGroupContended"));
	first->cluster_upgrades = false;
	until(is_free, 10 * MINUTE, "it is told no more");
	int64_t changes = first->changes;
	chat->rate = 14;
	run(30 * MINUTE);
	assert_true(first->changes > changes);
}

/* No group can be had while its cluster is upgraded: what is decided does not swing between what is wished and what is
 * there, and no pods wait that have no place and would keep AKS from emptying a node. */
static void while_no_group_can_be_asked_replicas_stand_still(void **state)
{
	(void)state;
	begin_with(&on_aks);
	first->cluster_upgrades = second->cluster_upgrades = true;
	chat->rate = 6;
	run(15 * MINUTE);
	int64_t writes = laws_scale_writes();
	run(HOUR);
	assert_non_null(strstr(problem(PROBLEM_BUSY), "node group second"));
	assert_in_range(laws_scale_writes() - writes, 0, 24);
	assert_int_equal(replica_published(0)->plan->pools[0].decision.held_by, LIMIT_UNAVAILABLE);
}

/* The largest fleet that was decided. */
static int64_t most_decided;

static bool serves_eight_of_decided(void)
{
	int64_t decided = replica_published(0)->plan->pools[0].decision.decided;

	most_decided = decided > most_decided ? decided : most_decided;
	return serves_eight();
}

/* A lifecycle hook of somebody's holds each launch in Pending:Wait, for longer than three usual starts: what was given
 * up is not bought and given up again and again. */
static void launches_that_a_hook_holds_are_waited_for(void **state)
{
	(void)state;
	begin_with(&on_eks);
	first->hook = 4 * MINUTE;
	int64_t bought = first->bought;
	most_decided = 0;
	chat->rate = 6;
	until(serves_eight_of_decided, 40 * MINUTE, "replicas for the traffic serve");
	assert_true(first->bought - bought <= 2 * most_decided);
	assert_false(world_event_told("ForeignSizeChange"));
}

/* A hook that holds them while they boot: their nodes join and serve before the cloud says that they are in service. */
static void what_serves_while_a_hook_holds_it_is_let(void **state)
{
	(void)state;
	begin_with(&on_eks);
	first->hook_beside = 30 * MINUTE;
	int64_t bought = first->bought;
	chat->rate = 6;
	until(serves_eight, 15 * MINUTE, "replicas for the traffic serve");
	int64_t serving = cloud_awake(first);
	run(20 * MINUTE);
	assert_true(world_ready("chat") >= 8);
	assert_true(first->bought - bought <= serving + 3);
	assert_int_equal(cloud_awake(second), 0);
	assert_true(cloud_awake(first) <= serving + 2);
	chat->rate = 0.5;
	until(serves_four_at_most, HOUR, "what is not needed goes, in service or not");
	assert_false(world_event_told("ForeignSizeChange"));
	assert_false(world_event_told("NodeGroupContended"));
}

/* A hook that says no: Auto Scaling ends the machine and launches the next, without end. Others have what is wanted. */
static void launches_that_a_hook_abandons_are_had_elsewhere(void **state)
{
	(void)state;
	begin_with(&on_eks);
	first->hook_beside = 30 * SECOND;
	first->hook_abandons = true;
	int64_t bought = first->bought;
	chat->rate = 6;
	until(serves_eight, HOUR, "replicas for the traffic serve");
	assert_true(cloud_awake(second) >= 4);
	run(HOUR);
	assert_true(first->bought - bought <= 24);
	assert_false(world_event_told("NodeGroupContended"));
}

static char leaving[48];

static struct cloud_machine *serving_machine(void)
{
	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next) {
		struct cloud_machine *m = cloud_find(pod_node(p));
		if (m && m->group == first && m->step == STEP_RUNNING)
			return m;
	}
	return NULL;
}

static int64_t pods_on(const char *node)
{
	int64_t count = 0;

	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		count += !strcmp(pod_node(p), node);
	return count;
}

static bool has_emptied(void)
{
	return !pods_on(leaving);
}

static bool has_gone(void)
{
	return !cloud_find(leaving);
}

/* A terminate hook of somebody's holds what Auto Scaling ends, with power: it serves on, and counts for nothing. What
 * the cloud launches in its place is all that is bought. */
static void what_a_hook_holds_to_its_end_is_replaced_first(void **state)
{
	(void)state;
	begin_with(&on_eks);
	first->end_hook = HOUR;
	int64_t bought = first->bought, changes = first->changes;
	snprintf(leaving, sizeof leaving, "%s", serving_machine()->id);
	cloud_owner_replaces(cloud_find(leaving));
	run(2 * MINUTE);
	assert_true(world_event_told("MachineTerminating"));
	assert_int_equal(pods_on(leaving), 1);
	until(has_emptied, 15 * MINUTE, "what runs there is evicted");
	assert_true(serves_three());
	run(30 * MINUTE);
	assert_true(serves_three());
	assert_int_equal(first->bought - bought, 1);
	assert_int_equal(cloud_awake(first) + cloud_awake(second), 3);
	until(has_gone, HOUR, "the hook's time is up");
	run(10 * MINUTE);
	assert_int_equal(first->bought - bought, 1);
	assert_int_equal(first->changes, changes);
	assert_int_equal(cloud_awake(first) + cloud_awake(second), 3);
	assert_false(world_event_told("ForeignSizeChange"));
}

static bool is_one_leaving(void)
{
	for (const struct cloud_machine *m = first->machines; m; m = m->next)
		if (m->step == STEP_TERMINATING)
			snprintf(leaving, sizeof leaving, "%s", m->id);
	return *leaving;
}

/* The owner wants one less: what served there is had elsewhere. */
static void what_an_owner_ends_through_a_hook_is_had_elsewhere(void **state)
{
	(void)state;
	begin_with(&on_eks);
	run(15 * MINUTE); /* it undoes nothing that we just did */
	first->end_hook = HOUR;
	*leaving = '\0';
	cloud_owner_sets(first, 2);
	until(is_one_leaving, 5 * MINUTE, "one of them ends");
	until(has_emptied, 20 * MINUTE, "what runs there is evicted");
	assert_true(serves_three());
	assert_int_equal(cloud_awake(second), 1);
	run(20 * MINUTE);
	assert_int_equal(cloud_awake(first) + cloud_awake(second), 3);
	until(has_gone, HOUR, "the hook's time is up");
}

/* The group is let until somebody raises its size; what ends there is replaced all the same. */
static void what_a_schedule_ends_through_a_hook_is_had_elsewhere(void **state)
{
	(void)state;
	begin_with(&on_eks);
	run(15 * MINUTE);
	first->end_hook = HOUR;
	first->min = 0;
	cloud_owner_schedules(first, 0);
	until(is_one_leaving, 5 * MINUTE, "one of them ends");
	until(has_emptied, 30 * MINUTE, "what runs there is evicted");
	assert_false(has_gone());
	assert_true(serves_three());
}

/* Nothing can be had in its place: it is asked to go all the same, before the hook's time is up. */
static void what_cannot_be_replaced_goes_before_the_hook_ends(void **state)
{
	(void)state;
	begin_with(&on_eks);
	first->end_hook = HOUR;
	first->faults.stock_out = second->faults.stock_out = -1;
	snprintf(leaving, sizeof leaving, "%s", serving_machine()->id);
	cloud_owner_ends(cloud_find(leaving));
	run(49 * MINUTE); /* its pods are given ten minutes to end */
	assert_int_equal(pods_on(leaving), 1);
	until(has_emptied, 14 * MINUTE, "what runs there is evicted");
	assert_false(has_gone());
}

/* It would be cut off within minutes: better no replica than one that takes requests till then. */
static void what_a_short_hook_holds_goes_at_once(void **state)
{
	(void)state;
	begin_with(&on_eks);
	first->end_hook = 9 * MINUTE;
	first->faults.stock_out = second->faults.stock_out = -1;
	snprintf(leaving, sizeof leaving, "%s", serving_machine()->id);
	for (struct object *b = apiserver_first(KIND_BUDGET); b; b = b->next)
		value_set(b->value, "spec>maxUnavailable", value_of("2"));
	cloud_owner_ends(cloud_find(leaving));
	until(has_emptied, 3 * MINUTE, "what runs there is evicted");
	assert_false(has_gone());
}

/* The next leader finds it so. */
static void the_next_leader_empties_it_too(void **state)
{
	(void)state;
	begin_with(&on_eks);
	first->end_hook = 2 * HOUR;
	int64_t bought = first->bought;
	snprintf(leaving, sizeof leaving, "%s", serving_machine()->id);
	cloud_owner_replaces(cloud_find(leaving));
	run(2 * MINUTE);
	replica_kill(0);
	run(MINUTE);
	replica_start(0, &on_eks);
	until(has_emptied, 20 * MINUTE, "what runs there is evicted");
	run(30 * MINUTE);
	assert_true(serves_three());
	assert_int_equal(first->bought - bought, 1);
	assert_int_equal(cloud_awake(first) + cloud_awake(second), 3);
}

/* Our own removals are held, too: nothing is named twice, and nothing comes back to work. */
static void what_we_end_may_be_held_for_long(void **state)
{
	(void)state;
	begin_with(&on_eks);
	first->end_hook = 2 * HOUR;
	chat->rate = 6;
	until(serves_eight, 30 * MINUTE, "replicas for the traffic serve");
	chat->rate = 0.5;
	until(serves_four_at_most, 2 * HOUR, "it comes down");
	run(HOUR);
	assert_false(world_event_told("MachineTerminating"));
	assert_true(cloud_awake(first) <= 4);
}

/* AKS does so at once where its owner asks for it: what served there is gone, and the machine comes back. */
static void what_is_reimaged_serves_again_and_is_not_replaced(void **state)
{
	(void)state;
	begin_with(&on_aks);
	struct cloud_machine *m = first->machines;
	cloud_owner_reimages(m);
	assert_null(world_node_of(m->id));
	assert_int_equal(world_ready("chat"), 2);
	assert_true(world_until(serves_three, 20 * MINUTE));
	world_run(20 * MINUTE);
	assert_int_equal(cloud_awake(first) + cloud_awake(second), 3);
}

/* Its bootstrap is broken, for hours, while another group's machines come and serve. */
static void a_broken_bootstrap_is_tried_by_one_machine_at_a_time(void **state)
{
	(void)state;
	begin();
	first->faults.never_registers = 1000;
	int64_t bought = first->bought;
	for (int hour = 0; hour < 6; hour++) {
		chat->rate = 6;
		run(30 * MINUTE);
		assert_true(serves_eight());
		chat->rate = 1;
		run(30 * MINUTE);
	}
	assert_true(first->bought - bought <= 45);
}

/* Nothing can be bought there: the next group has it, and afterwards the first again. */
static void what_is_wanted_during_an_update_is_had_elsewhere(void **state)
{
	(void)state;
	begin();
	cloud_owner_is_busy(first, "a change of its configuration");
	run(2 * MINUTE);
	int64_t changes = first->changes;
	chat->rate = 6;
	until(serves_eight, 30 * MINUTE, "replicas for the traffic serve");
	assert_true(cloud_awake(second) >= 4);
	assert_int_equal(first->changes, changes);
	cloud_owner_is_busy(first, NULL);
	until(is_free, 3 * MINUTE, "it is told no more");
	chat->rate = 14;
	run(30 * MINUTE);
	assert_true(first->changes > changes);
}

/* A node that was being emptied: neither ended nor given back while the owner is at work, which cordons, too. */
static const char *marked_node(void)
{
	for (const struct cloud_machine *m = first->machines; m; m = m->next) {
		const struct object *node = world_node_of(m->id);
		if (node && value_is(node->value, "spec>unschedulable", "true") && m->step == STEP_RUNNING)
			return m->id;
	}
	return NULL;
}

static bool is_emptying(void)
{
	return marked_node();
}

static bool is_small(void)
{
	return cloud_awake(first) + cloud_awake(second) <= 3 && world_is_at_rest();
}

static struct object *set_cordon(const char *machine, const char *is_cordoned)
{
	struct object *node = world_node_of(machine);

	assert_non_null(node);
	value_set(node->value, "spec>unschedulable", value_of("%s", is_cordoned));
	apiserver_changed(node);
	return node;
}

/* kubectl cordon: what serves there serves on, and what more is wanted comes beside it; the mark is not ours to lift,
 * and the node not ours to empty. */
static void what_a_person_cordoned_is_let(void **state)
{
	(void)state;
	begin();
	char machine[48];
	snprintf(machine, sizeof machine, "%s", serving_machine()->id);
	const struct object *node = set_cordon(machine, "true");
	chat->rate = 6;
	until(serves_eight, 30 * MINUTE, "replicas for the traffic serve");
	chat->rate = 0;
	until(serves_four_at_most, 3 * HOUR, "the others are released");
	run(HOUR);
	assert_non_null(strstr(problem(PROBLEM_CORDONED), machine));
	assert_true(world_event_says("NodesCordoned", "uncordon it, or end its machine"));
	assert_true(cloud_find(machine)->step == STEP_RUNNING && world_node_of(machine) == node);
	assert_true(value_is(node->value, "spec>unschedulable", "true"));
	assert_null(value_at(node->value, "metadata>annotations>preheat.dev/draining"));
	int64_t bought = first->bought + second->bought;
	set_cordon(machine, "false");
	run(30 * MINUTE);
	assert_int_equal(first->bought + second->bought, bought);
	assert_null(problem(PROBLEM_CORDONED));
	assert_true(serves_three());
}

static void a_drain_rests_during_an_update(void **state)
{
	(void)state;
	begin();
	chat->rate = 6;
	until(serves_eight, 30 * MINUTE, "replicas for the traffic serve");
	chat->rate = 0;
	run(3 * MINUTE); /* until none waits: what is drained then stays surplus */
	until(is_emptying, 3 * HOUR, "a node is emptied");
	struct object *budget = apiserver_find(KIND_BUDGET, "llm", "chat");
	value_set_text(budget->value, "spec>maxUnavailable", "0"); /* in the middle of it */
	apiserver_changed(budget);
	cloud_owner_is_busy(first, "a change of its configuration");
	run(2 * MINUTE);
	int64_t changes = first->changes;
	run(HOUR);
	assert_int_equal(first->changes, changes);
	assert_true(is_emptying()); /* else it would have been given back */
	value_set_text(budget->value, "spec>maxUnavailable", "50%");
	apiserver_changed(budget);
	cloud_owner_is_busy(first, NULL);
	until(is_small, 3 * HOUR, "it comes down to its headroom");
}

static bool is_busy(void)
{
	return problem(PROBLEM_BUSY);
}

/* What will be gone in two minutes is of no owner's: it is emptied while there is time. */
static void what_the_cloud_takes_during_an_update_is_emptied(void **state)
{
	(void)state;
	begin();
	allow_disruptions("2");
	cloud_owner_is_busy(first, "a change of its configuration");
	until(is_busy, 2 * MINUTE, "it is told");
	snprintf(leaving, sizeof leaving, "%s", serving_machine()->id);
	cloud_find(leaving)->is_taken = true;
	cloud_find(leaving)->due = wire_now() + 2 * MINUTE;
	run(MINUTE);
	assert_false(has_gone());
	assert_true(has_emptied());
	until(serves_three, 20 * MINUTE, "the headroom serves again");
}

/* Its machines end soon whatever the owner does; with more time left nothing is marked. */
static void what_a_reservation_ends_during_an_update_is_emptied(void **state)
{
	(void)state;
	begin();
	first->ends_at = wire_now() + 2 * HOUR;
	cloud_owner_is_busy(first, "a change of its configuration");
	until(is_busy, 2 * MINUTE, "it is told");
	run(first->ends_at - wire_now() - 51 * MINUTE);
	assert_int_equal(marked_nodes(), 0);
	run(9 * MINUTE);
	assert_null(serving_machine());
	until(serves_three, 20 * MINUTE, "the headroom serves elsewhere");
}

/* A leader that begins in the middle of it leaves it alone, too. */
static void the_next_leader_lets_it_too(void **state)
{
	(void)state;
	begin();
	assert_true(owner_begins(first, OWNER_UPDATES));
	until(has_surged, 10 * MINUTE, "the owner has bought its surge");
	int64_t changes = first->changes;
	replica_kill(0);
	replica_start(0, &on_simulated);
	until(is_busy, 5 * MINUTE, "the next says so, too");
	until(is_owner_done, 3 * HOUR, "the update is over");
	assert_int_equal(first->changes, changes);
}

static bool is_named(void)
{
	return problem(PROBLEM_AILING);
}

static void what_the_cloud_says_is_wrong_is_told(void **state)
{
	(void)state;
	begin();
	first->ailment = "DEGRADED; AsgInstanceLaunchFailures: You have requested more vCPU capacity";
	until(is_named, 3 * MINUTE, "it is told");
	assert_non_null(strstr(problem(PROBLEM_AILING), "AsgInstanceLaunchFailures"));
	assert_true(world_event_told("NodeGroupUnhealthy"));
}

/* The size stays what it is, nobody is at war, and what serves is replaced. */
static void is_let(enum owner_act act)
{
	begin();
	assert_true(owner_begins(first, act));
	int64_t changes = first->changes;
	until(is_owner_done, 3 * HOUR, "the owner has done it");
	until(serves_three, 30 * MINUTE, "the headroom serves");
	assert_int_equal(first->changes, changes);
	assert_int_equal(cloud_awake(first), 3);
	assert_int_equal(cloud_awake(second), 0);
	assert_true(cloud_owned(first) > 0);
	assert_false(world_event_told("NodeGroupContended"));
}

/* A rollout: a machine beyond the size is there before an old one goes, however long that takes; growth goes on. */
static void what_a_rollout_adds_is_not_called_off(void **state)
{
	(void)state;
	begin();
	first->only_grows = true;
	char added[48];
	snprintf(added, sizeof added, "%s", cloud_owner_adds(first, NULL)->id);
	int64_t changes = first->changes;
	run(30 * MINUTE);
	const struct object *node = world_node_of(added);
	assert_non_null(node);
	assert_false(value_is(node->value, "spec>unschedulable", "true"));
	assert_int_equal(first->changes, changes);
	chat->rate = 6;
	until(serves_eight, 30 * MINUTE, "replicas for the traffic serve");
	assert_int_equal(cloud_awake(second), 0);
	chat->rate = 0.5;
	run(30 * MINUTE);
	assert_true(world_ready("chat") >= 8);
	first->only_grows = false;
	until(serves_four_at_most, HOUR, "what is not needed goes once that is over");
}

/* What comes has not been of any use to them yet. */
static void what_a_person_adds_while_nobody_leads_is_not_called_off(void **state)
{
	(void)state;
	begin();
	run(15 * MINUTE);
	replica_kill(0);
	run(10 * SECOND);
	cloud_owner_sets(first, first->desired + 2);
	int64_t changes = first->changes;
	run(10 * SECOND);
	replica_start(0, &on_simulated);
	run(2 * MINUTE);
	assert_int_equal(first->changes, changes);
}

/* AZRebalance: one more is launched in the emptier zone before one in the fuller ends. */
static void what_is_launched_before_another_ends_is_let(void **state)
{
	(void)state;
	is_let(OWNER_BALANCES_ZONES);
}

/* Capacity rebalancing: the same, before a spot machine is taken. */
static void spot_that_is_rebalanced_is_let(void **state)
{
	(void)state;
	is_let(OWNER_REBALANCES_SPOT);
}

/* It is emptied, as it may be taken soon; who launched another beyond the size ends it, and the size stays. */
static void what_is_recommended_to_go_is_ended_by_its_owner(void **state)
{
	char old[48], extra[48];

	(void)state;
	begin_with(&on_eks);
	int64_t size = first->desired;
	snprintf(old, sizeof old, "%s", serving_machine()->id);
	snprintf(extra, sizeof extra, "%s", cloud_owner_adds(first, cloud_find(old))->id);
	run(MINUTE);
	cloud_find(old)->is_recommended = true;
	run(20 * MINUTE);
	assert_non_null(cloud_find(old));
	assert_true(value_is(world_node_of(old)->value, "spec>unschedulable", "true"));
	assert_int_equal(cloud_find(old)->step, STEP_RUNNING);
	assert_int_equal(first->desired, size);
	cloud_owner_ends(cloud_find(old));
	run(10 * MINUTE);
	assert_int_equal(cloud_find(extra)->step, STEP_RUNNING);
	assert_int_equal(first->desired, size);
}

/* It was held for long, as nothing could be had: its owner has its time from then on all the same. */
static void what_was_held_for_long_is_ended_by_its_owner_too(void **state)
{
	(void)state;
	begin_with(&on_eks);
	int64_t size = first->desired;
	first->faults.stock_out = second->faults.stock_out = -1;
	snprintf(leaving, sizeof leaving, "%s", serving_machine()->id);
	cloud_find(leaving)->is_recommended = true;
	run(40 * MINUTE);
	first->faults.stock_out = second->faults.stock_out = 0;
	cloud_owner_adds(first, cloud_find(leaving));
	until(has_emptied, 20 * MINUTE, "what serves there is replaced");
	run(10 * MINUTE);
	assert_int_equal(first->desired, size);
	assert_non_null(cloud_find(leaving));
}

/* It may run on for days: what serves there is replaced first, and serves on where nothing can be had. */
static void what_is_recommended_to_go_serves_until_it_is_replaced(void **state)
{
	(void)state;
	begin_with(&on_eks);
	first->faults.stock_out = second->faults.stock_out = -1;
	snprintf(leaving, sizeof leaving, "%s", serving_machine()->id);
	cloud_find(leaving)->is_recommended = true;
	run(40 * MINUTE);
	assert_int_equal(pods_on(leaving), 1);
	first->faults.stock_out = second->faults.stock_out = 0;
	for (int i = 0; i < 360 && !has_emptied(); i++) {
		assert_true(serves_three());
		run(10 * SECOND);
	}
	assert_true(has_emptied());
	until(has_gone, 10 * MINUTE, "its machine is removed");
	assert_true(serves_three());
}

static void a_refresh_is_let(void **state)
{
	(void)state;
	is_let(OWNER_REFRESHES);
}

static void a_machine_that_fails_its_health_check_is_replaced(void **state)
{
	(void)state;
	is_let(OWNER_REPLACES_THE_UNHEALTHY);
}

static bool is_any_exposed(void)
{
	for (const struct cloud_machine *m = first->machines; m; m = m->next)
		if (m->step == STEP_RUNNING && m->is_to_run && !m->is_protected)
			return true;
	return false;
}

static bool are_all_protected(void)
{
	return !is_any_exposed() && world_is_at_rest();
}

/* Those that came with the last growth, too. */
static void machines_are_protected_once_they_run(void **state)
{
	(void)state;
	first->protects = true;
	begin();
	until(are_all_protected, 3 * MINUTE, "the first are");
	chat->rate = 6;
	until(serves_eight, 30 * MINUTE, "replicas for the traffic serve");
	until(world_is_at_rest, 30 * MINUTE, "the last growth is over");
	until(are_all_protected, 3 * MINUTE, "those of the last growth are");
	int64_t changes = first->changes;
	run(30 * SECOND);
	assert_true(first->changes - changes <= 1);
}

static bool serve_eight_never_exposed(void)
{
	assert_false(is_any_exposed());
	return serves_eight();
}

static bool none_is_protected(void)
{
	bool is_any = first->protects_new || second->protects_new;

	for (const struct cloud_machine *m = first->machines; m; m = m->next)
		is_any |= m->is_protected;
	return !is_any;
}

/* Where EKS does not manage the group it protects what it launches itself, and no more once its pool is paused: an
 * instance refresh would wait for each. */
static void what_a_group_of_ones_own_launches_is_never_exposed(void **state)
{
	(void)state;
	begin_with(&on_own);
	until(are_all_protected, 3 * MINUTE, "the first are protected");
	assert_true(first->protects_new && second->protects_new);
	chat->rate = 6;
	until(serve_eight_never_exposed, 30 * MINUTE, "replicas for the traffic serve");
	replica_kill(0);
	replica_start(0, &paused_on_own);
	until(none_is_protected, 5 * MINUTE, "all of it is lifted");
}

/* An owner at work may have lifted it, and wants to end them. */
static void nothing_is_protected_while_an_owner_is_at_work(void **state)
{
	(void)state;
	first->protects = true;
	begin();
	until(are_all_protected, 3 * MINUTE, "the machines are protected");
	cloud_owner_is_busy(first, "a change of its configuration");
	first->machines->is_protected = false;
	run(HOUR);
	assert_false(first->machines->is_protected);
	cloud_owner_is_busy(first, NULL);
	until(are_all_protected, 5 * MINUTE, "it is protected again");
}

static bool is_empty(void)
{
	return cloud_awake(first) == 0;
}

/* A schedule, forty minutes before a reservation ends: its machines go, though we protected them. */
static void a_schedule_that_empties_the_group_is_let(void **state)
{
	(void)state;
	first->protects = true;
	begin();
	until(are_all_protected, 3 * MINUTE, "the machines are protected");
	run(15 * MINUTE); /* it undoes nothing that we just did */
	cloud_owner_sets(first, 0);
	until(is_empty, 3 * MINUTE, "they go");
	run(9 * MINUTE);
	assert_int_equal(first->desired, 0);
	until(serves_three, 10 * MINUTE, "the headroom serves elsewhere");
	assert_true(cloud_awake(second) >= 3);
}

static char persons[48];

static bool is_only_the_persons_protected(void)
{
	for (const struct cloud_machine *m = first->machines; m; m = m->next)
		if (m->step == STEP_RUNNING && m->is_protected != !strcmp(m->id, persons))
			return false;
	return true;
}

/* Of before Preheat acted there: it stays, whichever process lifts ours. */
static void what_a_person_protected_stays_so(const struct replica_settings *acts, const struct replica_settings *paused)
{
	run(5 * MINUTE); /* it runs */
	first->protects = true;
	first->machines->is_protected = true;
	snprintf(persons, sizeof persons, "%s", first->machines->id);
	begin_with(acts);
	until(are_all_protected, 3 * MINUTE, "the machines are protected");
	assert_true(cloud_awake(first) > 1 && cloud_find(persons));
	replica_kill(0);
	replica_start(0, paused);
	until(is_only_the_persons_protected, 10 * MINUTE, "ours is lifted");
	run(20 * MINUTE);
	assert_true(is_only_the_persons_protected());
}

static void what_a_person_protected_stays_so_at_the_simulated(void **state)
{
	(void)state;
	what_a_person_protected_stays_so(&on_simulated, &paused_on_simulated);
}

static void what_a_person_protected_stays_so_at_eks(void **state)
{
	(void)state;
	what_a_person_protected_stays_so(&on_eks, &paused_on_eks);
}

static bool serves_one(void)
{
	return world_ready("chat") >= 1;
}

static bool says_it_was_emptied(void)
{
	return problem(PROBLEM_BUSY) && strstr(problem(PROBLEM_BUSY), "schedule");
}

/* Office hours: off until the owner's next action, whoever leads, and whatever is wanted meanwhile. */
static void what_a_schedule_switched_off_stays_off(const struct replica_settings *on)
{
	second->faults.stock_out = -1;
	begin_with(on);
	run(15 * MINUTE);
	cloud_owner_schedules(first, 0);
	until(is_empty, 5 * MINUTE, "they go");
	until(says_it_was_emptied, 10 * MINUTE, "it says who emptied it");
	assert_true(world_event_told("NodeGroupBusy"));
	chat->rate = 4;
	run(3 * HOUR);
	replica_kill(0);
	replica_start(0, on);
	run(9 * HOUR);
	assert_int_equal(first->desired, 0);
	cloud_owner_schedules(first, 1);
	until(serves_three, 40 * MINUTE, "the owner has raised it: it is bought from again");
	run(5 * MINUTE);
	assert_null(problem(PROBLEM_BUSY));
}

static void what_a_schedule_switched_off_stays_off_at_the_simulated(void **state)
{
	(void)state;
	what_a_schedule_switched_off_stays_off(&on_simulated);
}

static void what_a_schedule_switched_off_stays_off_at_eks(void **state)
{
	(void)state;
	what_a_schedule_switched_off_stays_off(&on_eks);
}

/* Nobody's schedule: what is wanted, and can be had nowhere else, is had there again. */
static void what_a_person_emptied_is_bought_from_again(void **state)
{
	(void)state;
	second->faults.stock_out = -1;
	begin_with(&on_eks);
	run(15 * MINUTE);
	cloud_owner_sets(first, 0);
	until(is_empty, 5 * MINUTE, "they go");
	run(2 * MINUTE);
	replica_kill(0); /* who comes next lets it just as long */
	replica_start(0, &on_eks);
	int64_t bought = first->bought;
	run(3 * MINUTE);
	assert_int_equal(first->bought, bought);
	until(serves_one, 40 * MINUTE, "it serves again");
}

/* In the event and in the condition, as Auto Scaling tells. */
static void whoever_resizes_a_group_is_named(void **state)
{
	(void)state;
	begin_with(&on_eks);
	run(15 * MINUTE);
	cloud_owner_schedules(first, 1);
	run(2 * MINUTE);
	assert_true(world_event_says("ForeignSizeChange", "to 1, by a scheduled action of Auto Scaling"));
	assert_true(world_event_says("NodeGroupBusy", "ten minutes ago, by a scheduled action of Auto Scaling"));
	assert_non_null(strstr(problem(PROBLEM_BUSY), "by a scheduled action of Auto Scaling"));
	until(is_free, 15 * MINUTE, "it is told no more");
	run(30 * MINUTE);
	cloud_owner_sets(first, first->desired + 1);
	run(2 * MINUTE);
	assert_true(world_event_says("ForeignSizeChange", ", by a user request"));
}

static bool has_failed(void)
{
	return first->failure_count > 0;
}

/*
 * Agent pools fail minutes after they took the call, with a code that is known to last for an hour, and no other pool
 * has any: pods that wait do not wait for all of that.
 */
static void what_fails_late_is_tried_again_within_the_hour(void **state)
{
	(void)state;
	begin_with(&on_aks);
	first->faults = (struct cloud_faults){ .stock_out = -1, .fails_after = 3 * MINUTE };
	second->faults = (struct cloud_faults){ .stock_out = -1 };
	chat->rate = 8;
	until(has_failed, 30 * MINUTE, "the launch fails");
	run(30 * SECOND); /* what was wished meanwhile is asked for once more, and taken */
	first->faults = (struct cloud_faults){ 0 };
	until(serves_eight, 30 * MINUTE, "it is asked again, and has machines");
	assert_int_equal(cloud_awake(second), 0);
}

static bool serves_from_the_second(void)
{
	return cloud_awake(second) >= 4 && world_ready("chat") >= 7;
}

/* One operation a pool: what is wished meanwhile would wait for all of it, and for nothing. */
static void who_waits_behind_what_takes_too_long_is_served_elsewhere(void **state)
{
	(void)state;
	begin_with(&on_aks);
	first->faults = (struct cloud_faults){ .stock_out = -1, .fails_after = 15 * MINUTE };
	chat->rate = 4;
	until(serves_from_the_second, 14 * MINUTE, "the next pool has machines");
	assert_false(has_failed());
	first->faults = (struct cloud_faults){ 0 };
	chat->rate = 0;
	until(serves_four_at_most, 3 * HOUR, "it comes down");
}

#define SCENARIO(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down_owners)
#define ON_EKS(f)   cmocka_unit_test_setup_teardown(f, set_up_eks, tear_down_owners)

/* With a name, or a part of it with *, only those. */
int main(int argc, char **argv)
{
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", 1);
	setenv("AZURE_TENANT_ID", "tenant", 1);
	setenv("AZURE_CLIENT_ID", "client", 1);
	setenv("AZURE_CLIENT_SECRET", "secret", 1);
	const struct CMUnitTest tests[] = {
		SCENARIO(an_update_is_let_and_named),
		ON_EKS(an_update_that_ends_machines_first_is_let_and_named),
		cmocka_unit_test_setup_teardown(an_upgrade_of_aks_is_let_and_named, set_up_aks, tear_down_owners),
		cmocka_unit_test_setup_teardown(who_raises_the_size_during_an_upgrade_keeps_its_machine, set_up_aks,
						tear_down_owners),
		cmocka_unit_test_setup_teardown(what_fails_late_is_tried_again_within_the_hour, set_up_aks,
						tear_down_owners),
		cmocka_unit_test_setup_teardown(who_waits_behind_what_takes_too_long_is_served_elsewhere, set_up_aks,
						tear_down_owners),
		cmocka_unit_test_setup_teardown(a_cluster_that_is_upgraded_is_let_and_named, set_up_beside_aks,
						tear_down_owners),
		cmocka_unit_test_setup_teardown(what_is_kept_during_an_upgrade_is_no_replica_more, set_up_aks,
						tear_down_owners),
		cmocka_unit_test_setup_teardown(while_no_group_can_be_asked_replicas_stand_still, set_up_aks,
						tear_down_owners),
		ON_EKS(what_a_failed_update_leaves_is_let),
		ON_EKS(what_serves_while_a_hook_holds_it_is_let),
		ON_EKS(launches_that_a_hook_abandons_are_had_elsewhere),
		ON_EKS(what_a_hook_holds_to_its_end_is_replaced_first),
		ON_EKS(what_an_owner_ends_through_a_hook_is_had_elsewhere),
		ON_EKS(what_a_schedule_ends_through_a_hook_is_had_elsewhere),
		ON_EKS(what_cannot_be_replaced_goes_before_the_hook_ends),
		ON_EKS(what_a_short_hook_holds_goes_at_once),
		ON_EKS(the_next_leader_empties_it_too),
		ON_EKS(what_we_end_may_be_held_for_long),
		cmocka_unit_test_setup_teardown(what_is_reimaged_serves_again_and_is_not_replaced, set_up_aks,
						tear_down_owners),
		cmocka_unit_test_setup_teardown(a_broken_bootstrap_is_tried_by_one_machine_at_a_time, set_up,
						tear_down_owners),
		ON_EKS(launches_that_a_hook_holds_are_waited_for),
		SCENARIO(what_is_wanted_during_an_update_is_had_elsewhere),
		SCENARIO(what_a_person_cordoned_is_let),
		SCENARIO(a_drain_rests_during_an_update),
		SCENARIO(what_the_cloud_takes_during_an_update_is_emptied),
		SCENARIO(what_a_reservation_ends_during_an_update_is_emptied),
		SCENARIO(the_next_leader_lets_it_too),
		SCENARIO(what_the_cloud_says_is_wrong_is_told),
		SCENARIO(what_a_rollout_adds_is_not_called_off),
		SCENARIO(what_a_person_adds_while_nobody_leads_is_not_called_off),
		SCENARIO(what_is_launched_before_another_ends_is_let),
		SCENARIO(spot_that_is_rebalanced_is_let),
		ON_EKS(what_is_recommended_to_go_is_ended_by_its_owner),
		ON_EKS(what_is_recommended_to_go_serves_until_it_is_replaced),
		ON_EKS(what_was_held_for_long_is_ended_by_its_owner_too),
		SCENARIO(a_refresh_is_let),
		SCENARIO(a_machine_that_fails_its_health_check_is_replaced),
		SCENARIO(machines_are_protected_once_they_run),
		ON_EKS(what_a_group_of_ones_own_launches_is_never_exposed),
		SCENARIO(nothing_is_protected_while_an_owner_is_at_work),
		SCENARIO(a_schedule_that_empties_the_group_is_let),
		SCENARIO(what_a_person_protected_stays_so_at_the_simulated),
		ON_EKS(what_a_person_protected_stays_so_at_eks),
		SCENARIO(what_a_schedule_switched_off_stays_off_at_the_simulated),
		ON_EKS(what_a_schedule_switched_off_stays_off_at_eks),
		ON_EKS(what_a_person_emptied_is_bought_from_again),
		ON_EKS(whoever_resizes_a_group_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
