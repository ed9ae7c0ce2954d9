/* Starts that get nowhere: what is given up, what is bought in its place, and what is left alone. */
#include "tests/unit/loop/played_controller.h"

static const char pool_text[] =
	"apiVersion: preheat.dev/v1alpha1\n"
	"kind: WarmPool\n"
	"metadata: { name: chat, namespace: llm }\n"
	"spec:\n"
	"  class: interactive\n"
	"  objective: { queueWait: 2s, attainment: 99%% }\n"
	"  workload: { selector: { matchLabels: { app: chat } }, maxSequences: 8, interTokenLatency: 30ms }\n"
	"  nodeGroups:\n"
	"    - { name: g5, provider: simulated, gpusPerNode: 1, pricePerHour: 1.2, min: 2, max: 10 }\n"
	"  leadTime: { total: { p50: 200s, p95: 300s } }\n"
	"  mode: %s\n";

#define CHAT "'app':'chat'"

static struct controller *c;

static void open_pool(const char *mode)
{
	char text[2048];

	snprintf(text, sizeof text, pool_text, mode);
	c = play_controller(text);
	c->events = events_open(&(struct events_setup){ .api = c->api, .controller = "test", .instance = "test" });
	have_machine(0, "m1", MACHINE_RUNNING);
	have_machine(0, "m2", MACHINE_RUNNING);
	have_node(c, "m1", "", "");
	have_pod(c, "a", CHAT, "m1", true);
}

static int acting(void **state)
{
	(void)state;
	open_pool("act");
	return 0;
}

static int watched(void **state)
{
	(void)state;
	open_pool("observe");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	settle_calls();
	events_close(c->events);
	close_controller(c);
	return 0;
}

static void wait_and_check(millis time)
{
	settle_calls();
	clock_turn((struct clock *)(uintptr_t)c->clock, time);
	look_at_pools(c);
	start_progress_check(c);
}

static int64_t starts_of(enum start_kind kind)
{
	int64_t count = 0;

	for (size_t i = 0; i < c->starts.count; i++)
		count += c->starts.items[i].kind == kind;
	return count;
}

/* m2 never registers. The group stands at its least: one more is bought, so that never less is asked for. */
static void a_machine_without_a_node_is_replaced(void **state)
{
	(void)state;
	cloud_tells(c, 0);
	assert_int_equal(starts_of(START_COLD), 1); /* adopted */
	wait_and_check(7 * MINUTE);
	assert_int_equal(starts_of(START_COLD), 1);
	assert_false(node_group_is_removing(c->groups[0], "m2"));
	wait_and_check(MINUTE);
	assert_true(node_group_is_removing(c->groups[0], "m2"));
	assert_int_equal(c->pools[0]->timeouts.count[STAGE_PROVISION], 1);
	assert_int_equal(c->groups[0]->wanted, 2);
	assert_int_equal(starts_of(START_COLD), 1); /* of the new one */
	assert_string_equal(c->starts.items[0].machine, "");
}

static void above_the_least_nothing_is_bought_for_it(void **state)
{
	(void)state;
	have_machine(0, "m3", MACHINE_RUNNING);
	have_node(c, "m3", "", "");
	have_pod(c, "d", CHAT, "m3", true);
	cloud_tells(c, 0);
	wait_and_check(8 * MINUTE);
	assert_true(node_group_is_removing(c->groups[0], "m2"));
	assert_int_equal(c->groups[0]->wanted, 2);
	assert_int_equal(c->starts.count, 0);
}

static void a_node_whose_model_never_serves_is_drained(void **state)
{
	(void)state;
	cloud_tells(c, 0);
	have_node(c, "m2", "", "");
	have_pod(c, "b", CHAT, "m2", false);
	wait_and_check(8 * MINUTE);
	assert_true(drain_is_under_way(c, "m2"));
	assert_false(drain_is_under_way(c, "m1"));
	assert_int_equal(starts_of(START_COLD), 1);
	assert_null(drains_call_off(c, 0)); /* whatever is wanted, it serves nobody */
}

/* A cloud takes its node's object away, and the kubelet makes it anew. */
static void who_is_ready_while_its_node_is_away_serves(void **state)
{
	(void)state;
	cloud_tells(c, 0);
	have_node(c, "m2", "", "");
	have_pod(c, "b", CHAT, "m2", false);
	assert_int_equal(c->starts.count, 1);
	cluster_node_gone(c->cluster, object_uid_of("m2"), clock_now(c->clock));
	have_pod(c, "b", CHAT, "m2", true);
	have_node(c, "m2", "", "");
	assert_int_equal(c->starts.count, 0);
	wait_and_check(8 * MINUTE);
	assert_false(drain_is_under_way(c, "m2"));
	assert_null(asked("POST", "eviction"));
}

/* What a placement waits for was never bought for it. */
static void a_stuck_placement_gives_up_nobodys_purchase(void **state)
{
	(void)state;
	have_node(c, "m2", "", "");
	have_pod(c, "b", CHAT, "m2", true);
	cloud_tells(c, 0);
	struct start place = { .pool = 0, .group = 0, .kind = START_PLACE, .asked_at = clock_now(c->clock) };
	starts_ask(&c->starts, &place, 1);
	have_pod(c, "e", CHAT, "", false); /* so that it is not forgotten */
	wait_and_check(7 * MINUTE);
	scale_up_buy(c, 0, 0, START_COLD, 2);
	for (size_t i = 0; i < c->starts.count; i++)
		if (c->starts.items[i].kind == START_COLD)
			c->starts.items[i].asked_at = c->starts.items[i].stage_since = clock_now(c->clock);
	assert_int_equal(c->groups[0]->wanted, 4);
	wait_and_check(MINUTE);
	assert_int_equal(starts_of(START_PLACE), 0);
	assert_int_equal(starts_of(START_COLD), 2);
	assert_int_equal(c->groups[0]->wanted, 4);
}

/* What it was for serves on. */
static void a_start_for_one_that_serves_is_not_missed(void **state)
{
	struct start s = { .pool = 0, .group = 0, .kind = START_COLD, .is_swap = true };

	(void)state;
	fallback_note(c, &s, ERROR_STOCKOUT);
	assert_int_equal(c->pools[0]->fallback.replicas, 0);
	s.is_swap = false;
	fallback_note(c, &s, ERROR_STOCKOUT);
	assert_int_equal(c->pools[0]->fallback.replicas, 1);
}

static void what_is_only_watched_is_only_told(void **state)
{
	(void)state;
	cloud_tells(c, 0);
	wait_and_check(8 * MINUTE);
	assert_int_equal(c->pools[0]->timeouts.count[STAGE_PROVISION], 1);
	assert_int_equal(c->groups[0]->removal_count, 0);
	assert_int_equal(c->groups[0]->wanted, 2);
	assert_true(drains_actor.is_idle(c));
}

static void while_nothing_is_seen_nothing_is_stuck(void **state)
{
	(void)state;
	cloud_tells(c, 0);
	is_fresh = false;
	wait_and_check(8 * MINUTE);
	is_fresh = true;
	wait_and_check(MINUTE);
	assert_int_equal(c->groups[0]->removal_count, 0);
	wait_and_check(8 * MINUTE);
	assert_true(node_group_is_removing(c->groups[0], "m2"));
}

/* A watch that stands and is silent shows a machine as it was. */
static void what_no_watch_told_of_since_its_deadline_is_not_stuck(void **state)
{
	(void)state;
	cloud_tells(c, 0);
	told_last = clock_now(c->clock);
	wait_and_check(20 * MINUTE);
	assert_int_equal(c->groups[0]->removal_count, 0);
	assert_int_equal(c->pools[0]->timeouts.count[STAGE_PROVISION], 0);
	told_last = clock_now(c->clock);
	wait_and_check(SECOND);
	assert_true(node_group_is_removing(c->groups[0], "m2"));
}

/* Wished long ago, and launched a moment ago, as the cloud was at work until then. */
static void what_was_just_launched_is_not_stuck(void **state)
{
	(void)state;
	cloud_tells(c, 0);
	struct node_group *g = c->groups[0];
	for (size_t i = 0; i < g->seen.machine_count; i++)
		g->seen.machines[i].launched_at = clock_now(c->clock) + 7 * MINUTE;
	wait_and_check(8 * MINUTE);
	assert_int_equal(g->removal_count, 0);
	wait_and_check(7 * MINUTE);
	assert_true(node_group_is_removing(g, "m2"));
}

/* The same of a cloud that does not tell when: since its machine was seen. */
static void what_was_just_seen_is_not_stuck(void **state)
{
	(void)state;
	cloud_tells(c, 0);
	c->starts.items[0].asked_at -= 7 * MINUTE;
	c->starts.items[0].stage_since -= 7 * MINUTE;
	wait_and_check(7 * MINUTE);
	assert_int_equal(c->groups[0]->removal_count, 0);
	wait_and_check(MINUTE);
	assert_true(node_group_is_removing(c->groups[0], "m2"));
}

/* Somebody raised the size: what comes slowly may be theirs, and they may wait for it. */
static void what_somebody_raised_is_not_given_up_at_once(void **state)
{
	(void)state;
	cloud_tells(c, 0);
	wait_and_check(7 * MINUTE);
	have_machine(0, "m3", MACHINE_PENDING);
	cloud_tells(c, 0);
	wait_and_check(9 * MINUTE);
	assert_int_equal(c->groups[0]->removal_count, 0);
	wait_and_check(MINUTE);
	assert_true(node_group_is_removing(c->groups[0], "m2"));
}

static void have_unready_node(const char *name)
{
	char text[512];

	snprintf(text, sizeof text,
		 "{'metadata':{'name':'%s','uid':'%s','labels':{'simulated.preheat.dev/node-group':'g5'}},'spec':{"
		 "'providerID':'simulated://%s'},'status':{'conditions':[{'type':'Ready','status':'False'}]}}",
		 name, name, name);
	see(c->cluster, CLUSTER_NODES, text, (struct moment){ clock_now(c->clock), false });
}

/* Clouds that do not tell which machines stand by learn it from there. */
static void nodes_that_are_not_ready_are_told_longest_first(void **state)
{
	struct arena a = { 0 };
	const char *const *ids;

	(void)state;
	cloud_tells(c, 0);
	have_node(c, "m1", "", "");
	have_unready_node("unlisted");
	play_until(play_now() + SECOND);
	have_unready_node("m2");
	assert_int_equal(start_progress_unready(c, 0, &a, &ids), 2);
	assert_string_equal(ids[0], "unlisted");
	assert_string_equal(ids[1], "m2");
	have_node(c, "unlisted", "", "");
	assert_int_equal(start_progress_unready(c, 0, &a, &ids), 1);
	arena_release(&a);
}

static void a_node_that_no_look_shows_tells_of_an_old_list(void **state)
{
	(void)state;
	cloud_tells(c, 0);
	assert_false(start_progress_list_lags(c, 0));
	have_node(c, "m9", "", "");
	assert_true(start_progress_list_lags(c, 0));
	have_machine(0, "m9", MACHINE_RUNNING);
	cloud_tells(c, 0);
	assert_false(start_progress_list_lags(c, 0));
	have_node(c, "theirs", "", "");
	assert_true(start_progress_list_lags(c, 0));
	clock_turn((struct clock *)(uintptr_t)c->clock, LAG_MOST);
	assert_false(start_progress_list_lags(c, 0)); /* it never will */
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, acting, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_machine_without_a_node_is_replaced),
		TEST(above_the_least_nothing_is_bought_for_it),
		TEST(a_node_whose_model_never_serves_is_drained),
		TEST(who_is_ready_while_its_node_is_away_serves),
		TEST(a_stuck_placement_gives_up_nobodys_purchase),
		TEST(a_start_for_one_that_serves_is_not_missed),
		cmocka_unit_test_setup_teardown(what_is_only_watched_is_only_told, watched, tear_down),
		TEST(while_nothing_is_seen_nothing_is_stuck),
		TEST(what_no_watch_told_of_since_its_deadline_is_not_stuck),
		TEST(what_was_just_launched_is_not_stuck),
		TEST(what_was_just_seen_is_not_stuck),
		TEST(what_somebody_raised_is_not_given_up_at_once),
		TEST(a_node_that_no_look_shows_tells_of_an_old_list),
		TEST(nodes_that_are_not_ready_are_told_longest_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
