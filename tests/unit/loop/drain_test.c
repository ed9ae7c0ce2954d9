/* Nodes on their way out, against an API server and a cloud that the test plays. */
#include "tests/unit/loop/played_controller.h"

#include "controller/loop/watch_sync.h"

static const char chat[] =
	"apiVersion: preheat.dev/v1alpha1\n"
	"kind: WarmPool\n"
	"metadata: { name: chat, namespace: llm }\n"
	"spec:\n"
	"  mode: act\n"
	"  class: interactive\n"
	"  objective: { queueWait: 2s, attainment: 99% }\n"
	"  workload: { selector: { matchLabels: { app: chat } }, maxSequences: 8, interTokenLatency: 30ms }\n"
	"  nodeGroups:\n"
	"    - { name: g5, provider: simulated, gpusPerNode: 1, pricePerHour: 1.2, min: 1, max: 10,\n"
	"        standby: { max: 3, priceShare: 2%, leadTime: { p50: 90s, p95: 150s } } }\n"
	"  leadTime: { total: { p50: 200s, p95: 300s } }\n"
	"  lend: { to: [ batch ], yieldWithin: 30s }\n";
static const char batch[] =
	"---\n"
	"apiVersion: preheat.dev/v1alpha1\n"
	"kind: WarmPool\n"
	"metadata: { name: nightly, namespace: llm }\n"
	"spec:\n"
	"  mode: act\n"
	"  class: batch\n"
	"  objective: { queueWait: 1h, attainment: 95% }\n"
	"  workload: { selector: { matchLabels: { app: nightly } }, maxSequences: 8, interTokenLatency: 30ms }\n"
	"  nodeGroups: [ { name: g5 } ]\n"
	"  leadTime: { total: { p50: 200s, p95: 300s } }\n";

#define CHAT	"'app':'chat'"
#define NIGHTLY "'app':'nightly'"

static struct controller *c;

static int set_up(void **state)
{
	char text[4096];

	(void)state;
	snprintf(text, sizeof text, "%s%s", chat, batch);
	c = play_controller(text);
	for (int i = 1; i <= 3; i++) {
		char name[16];
		snprintf(name, sizeof name, "m%d", i);
		have_machine(0, name, MACHINE_RUNNING);
		have_node(c, name, "", "");
	}
	cloud_tells(c, 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close_controller(c);
	return 0;
}

/* Time passes with every call answered. */
static void pass(millis time)
{
	for (millis end = play_now() + time; play_now() < end;) {
		play_until(play_now() + SECOND / 4);
		settle_calls();
	}
}

static const struct node *node(const char *name)
{
	return cluster_node(c->cluster, name);
}

static void go(const char *name, enum drain_fate fate)
{
	assert_true(drain_begin(c, node(name), 0, fate, "the test"));
	act_soon(c);
	settle_calls();
}

static void is_marked_emptied_and_removed(void **state)
{
	(void)state;
	have_pod(c, "a", CHAT, "m1", true);
	go("m1", FATE_REMOVE);
	const char *mark = asked("PATCH", "/nodes/m1");
	assert_non_null(strstr(mark, "\"unschedulable\":true"));
	assert_non_null(strstr(mark, "\"key\":\"preheat.dev/draining\",\"value\":\"remove\""));
	have_node(c, "m1", "", MARKED("remove"));
	pass(SECOND);
	assert_non_null(asked("POST", "/pods/a/eviction"));
	pass(20 * SECOND);
	assert_false(node_group_is_removing(c->groups[0], "m1")); /* the pod has not gone yet */
	pod_goes(c, "a");
	pass(SECOND);
	assert_true(node_group_is_removing(c->groups[0], "m1"));
	assert_int_equal(c->groups[0]->wanted, 2);
}

static void an_empty_node_waits_for_what_was_bound_before_the_mark(void **state)
{
	(void)state;
	go("m1", FATE_REMOVE);
	have_node(c, "m1", "", MARKED("remove"));
	pass(3 * SECOND);
	assert_false(node_group_is_removing(c->groups[0], "m1"));
	have_pod(c, "a", CHAT, "m1", false);
	pass(10 * SECOND);
	assert_false(node_group_is_removing(c->groups[0], "m1"));
	pod_goes(c, "a");
	is_fresh = false;
	pass(10 * SECOND);
	assert_false(node_group_is_removing(c->groups[0], "m1")); /* what is not seen is not empty */
	is_fresh = true;
	pass(SECOND);
	assert_true(node_group_is_removing(c->groups[0], "m1"));
}

/* Watches that stand and are silent show an empty node for minutes. */
static void a_pod_that_no_watch_shows_keeps_the_machine(void **state)
{
	(void)state;
	server.unseen_on = "m1";
	go("m1", FATE_REMOVE);
	pass(MINUTE);
	assert_non_null(asked("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dm1"));
	assert_false(node_group_is_removing(c->groups[0], "m1"));
	server.unseen_on = NULL;
	pass(6 * SECOND);
	assert_true(node_group_is_removing(c->groups[0], "m1"));
}

static void what_the_cloud_does_not_list_is_left_alone(void **state)
{
	(void)state;
	const struct node *n = have_node(c, "foreign", "", "");
	assert_int_equal(n->group, 0); /* it carries the label */
	assert_false(drain_begin(c, n, 0, FATE_REMOVE, "the test"));
	c->groups[0]->is_known = false;
	assert_false(drain_begin(c, node("m1"), 0, FATE_REMOVE, "the test"));
	c->groups[0]->is_known = true;
	pass(SECOND);
	assert_int_equal(server.log_count, 0);
}

static void a_stop_stays_a_stop_for_the_next_leader(void **state)
{
	static const struct {
		const char *mark;
		enum provider_verb verb;
	} cases[] = { { MARKED("stop"), PROVIDER_STOP }, { MARKED("remove"), PROVIDER_REMOVE } };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		have_node(c, i ? "m2" : "m1", "", cases[i].mark);
		marks_adopt(c);
		act_soon(c);
		pass(7 * SECOND);
		assert_int_equal(c->groups[0]->removal_count, i + 1);
		assert_int_equal(c->groups[0]->removals[i].verb, cases[i].verb);
	}
	assert_null(asked("PATCH", "/nodes"));
}

/* On AKS a machine and its node share no name: who was adopted early waits for the cloud to say which it is. */
static void what_is_adopted_before_the_cloud_answers_ends_by_the_clouds_name(void **state)
{
	(void)state;
	c->groups[0]->is_known = false;
	c->groups[0]->seen.machine_count = 0;
	have_node(c, "m1", "", MARKED("remove"));
	marks_adopt(c);
	act_soon(c);
	pass(MINUTE);
	assert_true(drain_is_under_way(c, "m1"));
	assert_int_equal(c->groups[0]->removal_count, 0);
	machines[0][0].id = "vmss000001";
	cloud_tells(c, 0);
	act_soon(c);
	pass(7 * SECOND);
	assert_int_equal(c->groups[0]->removal_count, 1);
	assert_true(node_group_is_removing(c->groups[0], "vmss000001"));
}

static void a_budget_is_waited_for_and_then_the_node_works_again(void **state)
{
	(void)state;
	server.budget_holds = true;
	have_pod(c, "a", CHAT, "m1", true);
	go("m1", FATE_REMOVE);
	have_node(c, "m1", "", MARKED("remove"));
	pass(MINUTE);
	size_t asked_for = server.log_count;
	assert_in_range(asked_for, 4, 12); /* as often as the server said, 10 s apart */
	clock_turn((struct clock *)(uintptr_t)c->clock, DRAIN_PATIENCE);
	for (int i = 0; i < 20 && !c->drains.abandoned; i++)
		pass(SECOND);
	assert_non_null(strstr(asked("PATCH", "/nodes/m1"), "\"unschedulable\":false"));
	assert_int_equal(c->drains.abandoned, 1);
	assert_int_equal(c->groups[0]->removal_count, 0);
	assert_int_equal(drain_replicas_left(c, 0), 1); /* the plan counts it once the watch shows it at work */
	have_node(c, "m1", "", "");
	assert_int_equal(drain_replicas_left(c, 0), 0);
}

/* Some clouds stop the highest machine and no other: it goes first, whatever runs there, and before all others that
 * wait for the same budget. */
static void what_a_stop_takes_goes_first(void **state)
{
	static const char *const pods[] = { "a", "b", "c" };
	char node_name[3];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		machines[0][i].stop_rank = (int64_t[]){ 2, 3, 1 }[i];
		snprintf(node_name, sizeof node_name, "m%zu", i + 1);
		have_pod(c, pods[i], CHAT, node_name, true);
	}
	cloud_tells(c, 0);
	act_on(c, (struct group_decision){ .release = 2, .stop = 2 }, 1);
	assert_true(drain_is_under_way(c, "m2") && drain_is_under_way(c, "m1") && !drain_is_under_way(c, "m3"));
	server.budget_holds = true;
	settle_calls();
	forget_log();
	have_node(c, "m1", "", MARKED("stop"));
	have_node(c, "m2", "", MARKED("stop"));
	for (int i = 0; i < 10 && !server.log_count; i++)
		pass(SECOND);
	size_t first = 0;
	while (first < server.log_count && !strstr(server.log[first], "/eviction"))
		first++;
	assert_true(first < server.log_count);
	assert_non_null(strstr(server.log[first], "/pods/b/eviction"));
}

static void lending_asks_only_the_lenders_pods_to_go(void **state)
{
	(void)state;
	have_pod(c, "a", CHAT, "m1", true);
	go("m1", FATE_LEND);
	assert_non_null(strstr(asked("PATCH", "/nodes/m1"), "\"value\":\"lend\""));
	have_node(c, "m1", "", MARKED("lend"));
	have_pod(c, "b", NIGHTLY, "m1", false);
	pass(2 * SECOND);
	assert_non_null(asked("POST", "/pods/a/eviction"));
	assert_int_equal(lent_places(c, 0, 0), 0); /* its replicas are still there */
	assert_int_equal(drain_replicas_left(c, 0), 1);
	forget_log();
	pod_goes(c, "a");
	pass(6 * SECOND);
	assert_null(asked("POST", "/pods/b/eviction"));
	const char *lent = asked("PATCH", "/nodes/m1");
	assert_non_null(lent);
	assert_non_null(strstr(lent, "\"preheat.dev/lent-by\":\"chat\""));
	assert_non_null(strstr(lent, "\"unschedulable\":false,\"taints\":[]"));
	have_node(c, "m1", ",'preheat.dev/lent-by':'chat'", "");
	pass(SECOND);
	assert_int_equal(lent_places(c, 0, 0), 1);
	assert_int_equal(c->groups[0]->removal_count, 0);
	assert_true(drains_actor.is_idle(c));
}

static void a_drain_of_lending_goes_on_under_the_next_leader(void **state)
{
	(void)state;
	have_node(c, "m1", "", MARKED("lend"));
	have_pod(c, "b", NIGHTLY, "m1", true);
	have_pod(c, "a", CHAT, "m1", true);
	marks_adopt(c);
	act_soon(c);
	pass(SECOND);
	assert_int_equal(c->groups[0]->removal_count, 0);
	assert_false(asked("/pods/a/", "eviction") && asked("/pods/b/", "eviction"));
}

static void taken_back_while_the_mark_is_on_its_way(void **state)
{
	(void)state;
	assert_true(drain_begin(c, node("m1"), 0, FATE_LEND, "the test"));
	act_soon(c);
	play_until(play_now() + 10);
	assert_int_equal(server.waiting_count, 1); /* the node is being read */
	drain_take_back(c, node("m1"));
	pass(SECOND);
	const char *last = asked("PATCH", "/nodes/m1");
	assert_non_null(last);
	assert_null(strstr(last, "\"value\":\"lend\""));
	assert_non_null(strstr(last, "\"unschedulable\":false"));
	assert_true(drains_actor.is_idle(c));
}

static void a_reclaim_that_is_cancelled_leaves_the_node_lent(void **state)
{
	(void)state;
	have_node(c, "m1", ",'preheat.dev/lent-by':'chat'", "");
	act_on(c, (struct group_decision){ .reclaim = 1 }, 3);
	pass(SECOND);
	assert_non_null(strstr(asked("PATCH", "/nodes/m1"), "\"preheat.dev/lent-by\":null"));
	assert_int_equal(c->starts.count, 1);
	have_node(c, "m1", "", "");
	forget_log();
	act_on(c, (struct group_decision){ .cancel_reclaim = 1 }, 2);
	assert_int_equal(c->starts.count, 0);
	pass(SECOND);
	assert_non_null(strstr(asked("PATCH", "/nodes/m1"), "\"value\":\"lend\""));
}

static void a_lent_node_is_nobodys_to_release(void **state)
{
	(void)state;
	have_node(c, "m1", ",'preheat.dev/lent-by':'chat'", "");
	have_pod(c, "a", NIGHTLY, "m1", true);
	scale_down_release(c, 1, 0, &(struct group_decision){ .release = 1 });
	assert_true(drains_actor.is_idle(c));
	have_pod(c, "b", NIGHTLY, "m2", true);
	scale_down_release(c, 1, 0, &(struct group_decision){ .release = 1 });
	assert_true(drain_is_under_way(c, "m2"));
}

static void a_mark_of_nobody_is_taken_off(void **state)
{
	(void)state;
	have_node(c, "m1", "", MARKED("remove"));
	have_node(c, "m2", ",'preheat.dev/lent-by':'gone'", "");
	act_soon(c);
	settle_calls();
	have_node(c, "m1", "", "");
	have_node(c, "m2", "", "");
	pass(SECOND);
	assert_non_null(asked("PATCH", "/nodes/m2"));
	assert_int_equal(c->drains.abandoned, 0);
	assert_true(drains_actor.is_idle(c));
}

static void a_dry_run_asks_nothing(void **state)
{
	(void)state;
	c->context.is_barred = true;
	have_node(c, "m1", "", MARKED("remove"));
	have_pod(c, "a", CHAT, "m2", true);
	act_on(c, (struct group_decision){ .release = 1 }, 0);
	pass(5 * SECOND);
	assert_int_equal(server.log_count, 0);
}

static void what_is_under_way_ends_when_we_stop(void **state)
{
	(void)state;
	go("m1", FATE_REMOVE);
	have_node(c, "m1", "", MARKED("remove"));
	assert_true(drain_begin(c, node("m2"), 0, FATE_REMOVE, "the test"));
	have_pod(c, "a", CHAT, "m1", true);
	act_soon(c);
	play_until(play_now() + 10);
	assert_int_equal(server.waiting_count, 2); /* the server hangs */
	c->leader.state = STATE_SETTLING;
	tick_stop(c);
	play_until(play_now() + 10);
	drains_actor.stop(c);
	assert_true(drains_actor.is_idle(c));
}

static void idle_nodes_go_but_never_the_least(void **state)
{
	(void)state;
	idle_nodes_release(c);
	pass(IDLE_PATIENCE + SECOND);
	idle_nodes_release(c);
	assert_int_equal(drains_in_group(c, 0), 2);
	settle_calls();
	for (int i = 1; i <= 3; i++) {
		char name[16];
		snprintf(name, sizeof name, "m%d", i);
		if (drain_is_under_way(c, name))
			have_node(c, name, "", MARKED("remove"));
	}
	pass(8 * SECOND);
	assert_int_equal(c->groups[0]->removal_count, 2); /* asked for, and the machines still run */
	idle_nodes_release(c);
	pass(IDLE_PATIENCE + SECOND);
	idle_nodes_release(c);
	assert_int_equal(c->groups[0]->wanted, 1);
	assert_int_equal(drains_in_group(c, 0), 0);
}

static void idle_begins_anew_for_a_node_that_went(void **state)
{
	(void)state;
	idle_nodes_release(c);
	assert_int_equal(c->idle.count, 3);
	cluster_node_gone(c->cluster, object_uid_of("m1"), clock_now(c->clock));
	have_pod(c, "a", CHAT, "m2", true);
	idle_nodes_release(c);
	assert_int_equal(c->idle.count, 1);
	assert_string_equal(c->idle.items[0].machine, "m3");
}

static void beyond_the_clouds_own_max_another_group_is_tried(void **state)
{
	(void)state;
	c->groups[0]->seen.max = 4;
	scale_up_buy(c, 0, 0, START_COLD, 3);
	assert_int_equal(c->starts.count, 1);
	assert_int_equal(c->starts.event_count, 1);
	assert_int_equal(c->starts.events[0].event.what, EVENT_REFUSED);
	assert_int_equal(c->starts.events[0].event.value, ERROR_QUOTA);
	assert_int_equal(c->starts.events[0].event.count, 2);
}

static void a_group_that_is_described_late_is_told_once(void **state)
{
	(void)state;
	c->groups[0]->is_known = false;
	scale_up_buy(c, 0, 0, START_COLD, 3);
	assert_int_equal(c->starts.events[0].event.value, ERROR_UNAVAILABLE);
	scale_up_tell_described(c);
	assert_int_equal(c->starts.event_count, 1); /* not yet */
	c->groups[0]->is_known = true;
	scale_up_tell_described(c);
	scale_up_tell_described(c);
	assert_int_equal(c->starts.event_count, 3); /* to both pools that name it */
	for (size_t i = 1; i < 3; i++) {
		assert_int_equal(c->starts.events[i].event.what, EVENT_DESCRIBED);
		assert_int_equal(c->starts.events[i].pool, i - 1);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(is_marked_emptied_and_removed),
		TEST(a_pod_that_no_watch_shows_keeps_the_machine),
		TEST(an_empty_node_waits_for_what_was_bound_before_the_mark),
		TEST(what_the_cloud_does_not_list_is_left_alone),
		TEST(a_stop_stays_a_stop_for_the_next_leader),
		TEST(what_is_adopted_before_the_cloud_answers_ends_by_the_clouds_name),
		TEST(a_budget_is_waited_for_and_then_the_node_works_again),
		TEST(what_a_stop_takes_goes_first),
		TEST(lending_asks_only_the_lenders_pods_to_go),
		TEST(a_drain_of_lending_goes_on_under_the_next_leader),
		TEST(taken_back_while_the_mark_is_on_its_way),
		TEST(a_reclaim_that_is_cancelled_leaves_the_node_lent),
		TEST(a_lent_node_is_nobodys_to_release),
		TEST(a_mark_of_nobody_is_taken_off),
		TEST(a_dry_run_asks_nothing),
		TEST(what_is_under_way_ends_when_we_stop),
		TEST(idle_nodes_go_but_never_the_least),
		TEST(idle_begins_anew_for_a_node_that_went),
		TEST(a_group_that_is_described_late_is_told_once),
		TEST(beyond_the_clouds_own_max_another_group_is_tried),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
