/* Nodes on their way out that stay after all: nothing is known of the pool, or they are needed again. */
#include "controller/loop/observe.h"
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
	"  leadTime: { total: { p50: 200s, p95: 300s } }\n";
#define CHAT "'app':'chat'"

static struct controller *c;

static int set_up(void **state)
{
	(void)state;
	c = play_controller(chat);
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

static void nobody_who_serves_goes_while_nothing_is_known(void **state)
{
	(void)state;
	have_pod(c, "a", CHAT, "m1", true);
	c->pools[0]->is_blind = true;
	go("m1", FATE_REMOVE);
	pass(5 * SECOND);
	assert_null(asked("PATCH", "/nodes/m1")); /* not even cordoned */
	c->pools[0]->is_blind = false;
	server.budget_holds = true;
	pass(SECOND);
	assert_non_null(asked("PATCH", "/nodes/m1"));
	have_node(c, "m1", "", MARKED("remove"));
	pass(SECOND);
	c->pools[0]->is_blind = true;
	server.budget_holds = false;
	forget_log();
	pass(30 * SECOND);
	assert_null(asked("POST", "/eviction")); /* begun earlier, and stops at the mark */
	c->pools[0]->is_blind = false;
	pass(SECOND);
	assert_non_null(asked("POST", "/pods/a/eviction"));
	c->pools[0]->is_blind = true;
	pod_goes(c, "a");
	pass(10 * SECOND);
	assert_true(node_group_is_removing(c->groups[0], "m1")); /* where nobody serves any more nothing is lost */
}

/* Released before the queue came, and held by a budget since. */
static void nobody_who_serves_goes_while_requests_wait(void **state)
{
	(void)state;
	have_pod(c, "a", CHAT, "m1", true);
	server.budget_holds = true;
	go("m1", FATE_REMOVE);
	have_node(c, "m1", "", MARKED("remove"));
	pass(SECOND);
	c->pools[0]->has_queue = true;
	server.budget_holds = false;
	forget_log();
	pass(30 * SECOND);
	assert_null(asked("POST", "/eviction"));
	c->pools[0]->has_queue = false;
	pass(SECOND);
	assert_non_null(asked("POST", "/pods/a/eviction"));
}

/* Released while nobody served anywhere, and nobody could tell what waits for whoever does. */
static void who_serves_since_the_last_decision_goes_by_the_next(void **state)
{
	(void)state;
	have_pod(c, "a", CHAT, "m1", false);
	server.budget_holds = true;
	go("m1", FATE_REMOVE);
	have_node(c, "m1", "", MARKED("remove"));
	pass(SECOND);
	c->pools[0]->seen_at = clock_now(c->clock);
	pass(SECOND);
	have_pod(c, "a", CHAT, "m1", true);
	server.budget_holds = false;
	forget_log();
	pass(30 * SECOND);
	assert_null(asked("POST", "/eviction"));
	c->pools[0]->seen_at += c->settings.interval; /* it was there, and not read yet */
	pass(5 * SECOND);
	assert_null(asked("POST", "/eviction"));
	c->pools[0]->seen_at += c->settings.interval;
	pass(5 * SECOND);
	assert_non_null(asked("POST", "/pods/a/eviction"));
}

/* A tick whose signals add up again changes nothing for a minute. */
static void who_serves_stays_a_minute_after_signals_did_not_add_up(void **state)
{
	(void)state;
	have_pod(c, "a", CHAT, "m1", true);
	c->pools[0]->unsure_until = clock_mono(c->clock) + MINUTE;
	go("m1", FATE_REMOVE);
	pass(50 * SECOND);
	assert_null(asked("PATCH", "/nodes/m1"));
	assert_null(asked("POST", "/eviction"));
	pass(15 * SECOND);
	assert_non_null(asked("PATCH", "/nodes/m1"));
}

static int64_t ready_now(void)
{
	return observe_snapshot(c, &c->tick.arena).pools[0].groups[0].ready;
}

/* Else the next tick would release as many again. */
static void who_was_asked_to_go_is_no_replica_before_a_watch_shows_it(void **state)
{
	(void)state;
	have_pod(c, "a", CHAT, "m1", true);
	have_pod(c, "b", CHAT, "m2", true);
	have_pod(c, "d", CHAT, "m3", true);
	look_at_pools(c);
	assert_int_equal(ready_now(), 3);
	go("m1", FATE_REMOVE);
	pass(20 * SECOND); /* marked and evicted, and no watch tells */
	assert_non_null(asked("POST", "/pods/a/eviction"));
	look_at_pools(c);
	assert_int_equal(ready_now(), 2);
	have_node(c, "m1", "", MARKED("remove"));
	look_at_pools(c);
	assert_int_equal(ready_now(), 2);
}

/* Its replica serves, and no watch has told of it yet: the server knows, and refuses. */
static void who_may_serve_by_now_goes_only_as_seen(void **state)
{
	(void)state;
	have_pod(c, "a", CHAT, "m1", false);
	server.pods_changed = true;
	go("m1", FATE_REMOVE);
	have_node(c, "m1", "", MARKED("remove"));
	pass(SECOND);
	assert_non_null(strstr(asked("POST", "/pods/a/eviction"), "\"resourceVersion\":\"7\""));
	assert_int_equal(c->drains.evictions[EVICTION_CHANGED], 1);
	forget_log();
	c->pools[0]->has_queue = true;
	have_pod(c, "a", CHAT, "m1", true);
	pass(30 * SECOND);
	assert_null(asked("POST", "/eviction"));
	c->pools[0]->has_queue = false; /* who serves is asked however he is */
	pass(SECOND);
	assert_null(strstr(asked("POST", "/pods/a/eviction"), "resourceVersion"));
}

static enum engine_sleep awake(const struct source *s, const char *key)
{
	(void)s;
	(void)key;
	return SLEEP_NONE;
}

/* The first tick of a life may come before the first reading: silence is not an empty pool. */
static void before_the_first_reading_nothing_is_known(void **state)
{
	static const struct source_ops ops = { .sleep = awake };
	struct source silent = { &ops }, *none = c->pools[0]->signals.source;

	(void)state;
	c->pools[0]->signals.source = &silent;
	const struct pool_input *in = &observe_snapshot(c, &c->tick.arena).pools[0].input;
	assert_int_equal(in->scrapes_expected, 1);
	assert_int_equal(in->scrapes_fresh, 0);
	have_pod(c, "a", CHAT, "m1", true);
	have_pod(c, "b", CHAT, "m2", true);
	assert_int_equal(observe_snapshot(c, &c->tick.arena).pools[0].input.scrapes_expected, 2);
	pool_signals_reading(c->pools[0], &(struct pool_reading){ .at = clock_now(c->clock) }); /* that of nobody */
	assert_int_equal(observe_snapshot(c, &c->tick.arena).pools[0].input.scrapes_expected, 0);
	c->pools[0]->signals.source = none;
}

static void an_idle_node_stays_while_nothing_is_known(void **state)
{
	(void)state;
	c->pools[0]->is_blind = true;
	for (int i = 0; i < 3; i++) {
		idle_nodes_release(c);
		pass(IDLE_PATIENCE);
	}
	assert_int_equal(drains_in_group(c, 0), 0);
}

/* A leader was killed in the midst of a release, a budget holds the rest, and demand is back. */
static void nodes_that_still_serve_are_kept_before_any_is_bought(void **state)
{
	(void)state;
	((struct group_spec *)(uintptr_t)&fleet_of(c)->groups[0])->min_nodes = 0;
	server.budget_holds = true;
	have_pod(c, "a", CHAT, "m1", true);
	have_pod(c, "b", CHAT, "m2", true);
	have_node(c, "m1", "", MARKED("remove"));
	have_node(c, "m2", "", MARKED("stop"));
	have_node(c, "m3", "", MARKED("remove")); /* nobody serves there */
	marks_adopt(c);
	act_soon(c);
	pass(SECOND);
	forget_log();
	act_on(c, (struct group_decision){ .cold = 1, .wake = 2 }, 3);
	assert_int_equal(c->starts.count, 1); /* two of three are there */
	assert_int_equal(c->starts.items[0].kind, START_WAKE);
	assert_int_equal(drains_unshown(c, 0, 0), 2);
	pass(6 * SECOND);
	assert_non_null(strstr(asked("PATCH", "/nodes/m1"), "\"unschedulable\":false"));
	assert_non_null(strstr(asked("PATCH", "/nodes/m2"), "\"unschedulable\":false"));
	assert_int_equal(c->drains.abandoned, 2);
	have_node(c, "m1", "", "");
	have_node(c, "m2", "", "");
	assert_int_equal(drains_unshown(c, 0, 0), 0);
	assert_true(drain_is_under_way(c, "m3") || node_group_is_removing(c->groups[0], "m3"));
}

static void what_is_released_now_is_not_called_off(void **state)
{
	(void)state;
	have_pod(c, "a", CHAT, "m1", true);
	act_on(c, (struct group_decision){ .release = 1, .cold = 1 }, 1);
	assert_int_equal(c->starts.count, 1);
	pass(SECOND);
	assert_non_null(strstr(asked("PATCH", "/nodes/m1"), "\"unschedulable\":true"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

/* The manifest has a least of one machine. */
static void who_would_leave_fewer_than_the_least_is_kept(void **state)
{
	(void)state;
	c->has_decided = true;
	have_pod(c, "a", CHAT, "m1", true);
	have_pod(c, "b", CHAT, "m2", true);
	server.budget_holds = true;
	go("m1", FATE_REMOVE);
	go("m2", FATE_REMOVE);
	pass(SECOND);
	assert_int_equal(drains_in_group(c, 0), 2);
	machine_count[0] = 2; /* the third went by itself */
	cloud_tells(c, 0);
	act_soon(c);
	pass(20 * SECOND);
	assert_int_equal(drains_in_group(c, 0), 1);
}

/* What the cloud may take in any case goes, and what is no good: only surplus stays for the least. */
static void who_may_be_taken_or_is_replaced_is_not_kept_for_the_least(void **state)
{
	(void)state;
	c->has_decided = true;
	have_pod(c, "a", CHAT, "m1", true);
	have_pod(c, "b", CHAT, "m2", true);
	server.budget_holds = true;
	assert_true(drain_begin_replacing(c, cluster_node(c->cluster, "m1"), 0, "no GPU became allocatable"));
	go("m2", FATE_REMOVE);
	pass(SECOND);
	machine_count[0] = 2;
	cloud_tells(c, 0);
	act_soon(c);
	pass(20 * SECOND);
	assert_true(drain_is_under_way(c, "m1"));
	assert_false(drain_is_under_way(c, "m2"));
}

/* Found marked by a next process, in a group that has fewer than its least. */
static bool goes_on_with(const char *fate)
{
	const struct drain_record row = { .node = "m1", .fate = fate, .asked_at = 1 };

	c->has_decided = true;
	have_pod(c, "a", CHAT, "m1", true);
	have_node(c, "m1", "", MARKED("remove"));
	server.budget_holds = true;
	drain_resume(c, node("m1"), 0, &row);
	machine_count[0] = 1;
	cloud_tells(c, 0);
	act_soon(c);
	pass(20 * SECOND);
	return drain_is_under_way(c, "m1");
}

static void who_is_replaced_goes_after_a_restart_too(void **state)
{
	(void)state;
	assert_true(goes_on_with("replace"));
}

static void who_is_surplus_is_kept_for_the_least_after_a_restart_too(void **state)
{
	(void)state;
	assert_false(goes_on_with("remove"));
}

static void that_a_node_is_replaced_is_in_its_row(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct error e = { 0 };
	struct drain_record *rows;
	char path[64];
	size_t count;

	(void)state;
	snprintf(path, sizeof path, "/tmp/drain_kept_test.%d.db", (int)getpid());
	keep_history(c, chat, path);
	have_pod(c, "a", CHAT, "m1", true);
	assert_true(drain_begin_replacing(c, node("m1"), 0, "no GPU became allocatable"));
	act_soon(c);
	pass(SECOND);
	assert_true(drain_record_marked(c->history, &a, &rows, &count, &e));
	assert_int_equal(count, 1);
	assert_string_equal(rows->fate, "replace");
	end_history(c, path);
}

/* What the cloud will not end is not emptied for it. */
static void the_least_of_the_cloud_holds_before_a_drain(void **state)
{
	const struct group_decision two = { .release = 2 };

	(void)state;
	have_pod(c, "a", CHAT, "m1", true);
	have_pod(c, "b", CHAT, "m2", true);
	have_pod(c, "d", CHAT, "m3", true);
	c->groups[0]->seen.min = 3;
	scale_down_release(c, 0, 0, &two);
	assert_int_equal(drains_in_group(c, 0), 0);
	c->groups[0]->seen.min = 2;
	scale_down_release(c, 0, 0, &two);
	assert_int_equal(drains_in_group(c, 0), 1);
	scale_down_release(c, 0, 0, &two);
	assert_int_equal(drains_in_group(c, 0), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nobody_who_serves_goes_while_nothing_is_known),
		TEST(nobody_who_serves_goes_while_requests_wait),
		TEST(who_serves_since_the_last_decision_goes_by_the_next),
		TEST(who_serves_stays_a_minute_after_signals_did_not_add_up),
		TEST(who_was_asked_to_go_is_no_replica_before_a_watch_shows_it),
		TEST(who_may_serve_by_now_goes_only_as_seen),
		TEST(who_would_leave_fewer_than_the_least_is_kept),
		TEST(who_may_be_taken_or_is_replaced_is_not_kept_for_the_least),
		TEST(who_is_replaced_goes_after_a_restart_too),
		TEST(who_is_surplus_is_kept_for_the_least_after_a_restart_too),
		TEST(that_a_node_is_replaced_is_in_its_row),
		TEST(the_least_of_the_cloud_holds_before_a_drain),
		TEST(before_the_first_reading_nothing_is_known),
		TEST(an_idle_node_stays_while_nothing_is_known),
		TEST(nodes_that_still_serve_are_kept_before_any_is_bought),
		TEST(what_is_released_now_is_not_called_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
