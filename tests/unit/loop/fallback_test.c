/* What one node group refuses is asked of the next at once, not at the next tick. */
#include "tests/unit/loop/played_controller.h"

#include <unistd.h>

static const char pool[] =
	"apiVersion: preheat.dev/v1alpha1\n"
	"kind: WarmPool\n"
	"metadata: { name: chat, namespace: llm }\n"
	"spec:\n"
	"  mode: act\n"
	"  class: interactive\n"
	"  objective: { queueWait: 2s, attainment: 99% }\n"
	"  workload: { selector: { matchLabels: { app: chat } }, maxSequences: 8, interTokenLatency: 30ms }\n"
	"  nodeGroups:\n"
	"    - { name: spot-a, provider: simulated, gpusPerNode: 1, pricePerHour: 0.5, max: 10 }\n"
	"    - { name: spot-b, provider: simulated, gpusPerNode: 1, pricePerHour: 0.6, max: 2 }\n"
	"    - { name: od, provider: simulated, gpusPerNode: 1, pricePerHour: 1.2, max: 10 }\n"
	"  leadTime: { total: { p50: 200s, p95: 300s } }\n"
	"  budget: { dollarsPerHour: 100 }\n";

static struct controller *c;
static char path[64];
static struct pool_plan plan;
static int64_t serving;
static struct group_decision asked_of[3];

static bool may_act(void *user)
{
	return leader_may_act(user);
}

static int set_up(void **state)
{
	(void)state;
	serving = 0;
	memset(machine_count, 0, sizeof machine_count);
	c = play_controller(pool);
	snprintf(path, sizeof path, "/tmp/fall_back_test.%d.db", (int)getpid());
	keep_history(c, pool, path);
	c->context.history = c->history;
	c->context.may_act = may_act;
	for (size_t i = 0; i < 3; i++)
		cloud_tells(c, i);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	c->plan = (struct plan){ 0 };
	end_history(c, path);
	close_controller(c);
	return 0;
}

/* A tick that asks the first group for so many replicas, at so many dollars an hour in all. */
static void decide(int64_t cold, int64_t dollars)
{
	memset(asked_of, 0, sizeof asked_of);
	asked_of[0].cold = cold;
	plan = (struct pool_plan){ .groups = asked_of, .group_count = 3 };
	plan.decision.decided = serving + cold;
	plan.decision.dollars_per_hour = dollars * 1000000;
	c->plan = (struct plan){ &plan, 1 };
	look_at_pools(c);
	c->snapshot.now = clock_now(c->clock);
	c->has_decided = true;
	tick_act(c);
	play_until(play_now());
}

static const struct provider_call *asked_in(const char *group)
{
	for (size_t i = 0; i < change_count; i++)
		if (!strcmp(changes[i]->group, group))
			return changes[i];
	return NULL;
}

static void answer(const char *group, enum error_kind kind)
{
	for (size_t i = 0; i < change_count; i++)
		if (!strcmp(changes[i]->group, group)) {
			struct provider_call *call = changes[i];
			changes[i] = changes[--change_count];
			call->error = (struct error){ .kind = kind };
			call->done(call);
			return;
		}
	fail_msg("%s was not asked", group);
}

static void what_is_refused_goes_on_in_the_same_millisecond(void **state)
{
	(void)state;
	decide(3, 10);
	assert_int_equal(asked_in("spot-a")->desired, 3);
	millis then = play_now();
	answer("spot-a", ERROR_STOCKOUT);
	play_until(then); /* timers of this millisecond only */
	assert_int_equal(asked_in("spot-b")->desired, 2);
	assert_int_equal(asked_in("od")->desired, 1); /* what does not fit there */
	assert_int_equal(play_now() - then, 0);
	answer("spot-b", ERROR_STOCKOUT);
	play_until(then);
	answer("od", ERROR_NONE);
	c->groups[2]->is_stopped = true; /* no more looks */
	assert_int_equal(c->groups[2]->wanted, 3);
	assert_int_equal(c->starts.count, 3);
	assert_int_equal(play_now() - then, 0);
}

static void no_group_is_asked_twice_before_the_next_tick(void **state)
{
	(void)state;
	decide(1, 10);
	answer("spot-a", ERROR_STOCKOUT);
	play_until(play_now());
	answer("spot-b", ERROR_QUOTA);
	play_until(play_now());
	answer("od", ERROR_STOCKOUT);
	play_until(play_now() + 5 * SECOND);
	assert_int_equal(change_count, 0);
	assert_int_equal(c->starts.count, 0);
	assert_int_equal(c->starts.event_count, 3); /* the next tick hears of each */
}

static void a_group_in_back_off_is_passed_over(void **state)
{
	(void)state;
	decide(2, 10);
	asked_of[1].blocked_until = clock_now(c->clock) + MINUTE;
	answer("spot-a", ERROR_STOCKOUT);
	play_until(play_now());
	assert_null(asked_in("spot-b"));
	assert_int_equal(asked_in("od")->desired, 2);
	answer("od", ERROR_STOCKOUT);
}

/* Its cancel came too late: it runs on, and what is refused elsewhere starts there. */
static void a_machine_that_was_given_up_too_late_is_used_first(void **state)
{
	(void)state;
	have_machine(1, "m1", MACHINE_PENDING);
	cloud_tells(c, 1);
	c->starts.count = 0; /* nobody waits for it any more */
	assert_true(node_group_remove(c->groups[1], "m1", PROVIDER_CANCEL));
	node_group_drive(c->groups[1]);
	decide(2, 10);
	machines[1][0].state = MACHINE_RUNNING;
	answer("spot-b", ERROR_NONE);
	cloud_tells(c, 1);
	assert_int_equal(c->starts.count, 3);
	answer("spot-a", ERROR_STOCKOUT);
	play_until(play_now());
	assert_int_equal(c->starts.count, 2);
	assert_int_equal(c->groups[1]->wanted, 2); /* it is of use once: the other one is bought */
	assert_int_equal(c->groups[2]->wanted, 0);
}

/* Given up since the decision, and no call has named it yet. */
static void a_machine_that_was_given_up_and_not_named_is_used_first(void **state)
{
	(void)state;
	have_machine(1, "m1", MACHINE_PENDING);
	cloud_tells(c, 1);
	decide(2, 10);
	starts_drop(&c->starts, 0); /* nobody waits for it any more */
	assert_true(node_group_remove(c->groups[1], "m1", PROVIDER_CANCEL));
	answer("spot-a", ERROR_STOCKOUT);
	play_until(play_now());
	assert_int_equal(c->groups[1]->removal_count, 0);
	assert_int_equal(c->starts.count, 2);
	assert_int_equal(c->groups[1]->wanted, 2); /* it is of use once: the other one is bought */
	assert_int_equal(c->groups[2]->wanted, 0);
}

/* What others added stays for a while, and the cloud has not heard of the second wish: that one goes. */
static void what_nobody_asked_for_goes_before_what_may_not_go_yet(void **state)
{
	(void)state;
	have_machine(2, "m1", MACHINE_PENDING);
	cloud_tells(c, 2);
	assert_true(c->starts.items[0].is_found);
	decide(1, 10);
	decide(1, 10);
	assert_int_equal(c->groups[0]->wanted, 2);
	assert_int_equal(asked_in("spot-a")->desired, 1);
	decide(0, 10);
	asked_of[2].cancel_cold = 1;
	tick_act(c);
	assert_int_equal(c->groups[0]->wanted, 1);
	assert_int_equal(c->starts.count, 2);
	assert_false(node_group_is_removing(c->groups[2], "m1"));
	answer("spot-a", ERROR_AUTH);
}

/* Two are too many: the cloud has not heard of one here and of one elsewhere, and what it has heard of stays. */
static void what_nobody_asked_for_goes_wherever_it_is(void **state)
{
	(void)state;
	decide(1, 10);
	decide(1, 10);
	asked_of[0].cold = 0;
	for (int i = 0; i < 2; i++) {
		asked_of[2].cold = 1;
		tick_act(c);
		play_until(play_now());
	}
	assert_int_equal(asked_in("spot-a")->desired, 1);
	assert_int_equal(asked_in("od")->desired, 1);
	assert_int_equal(c->groups[0]->wanted, 2);
	assert_int_equal(c->groups[2]->wanted, 2);
	asked_of[2].cold = 0;
	asked_of[2].cancel_cold = 2;
	tick_act(c);
	assert_int_equal(c->groups[0]->wanted, 1);
	assert_int_equal(c->groups[2]->wanted, 1);
	assert_int_equal(c->starts.count, 2);
	answer("spot-a", ERROR_AUTH);
	answer("od", ERROR_AUTH);
}

static void the_budget_holds_for_the_dearer_one(void **state)
{
	(void)state;
	decide(4, 99); /* of 100: two dollars of them are refused */
	asked_of[1].blocked_until = clock_now(c->clock) + MINUTE;
	answer("spot-a", ERROR_STOCKOUT);
	play_until(play_now());
	assert_int_equal(asked_in("od")->desired, 2); /* 1.2 each, of the 3 that are left */
	answer("od", ERROR_STOCKOUT);
}

/* A node of the second group, and the taint of its handler. */
static void see_spot_node(int gpus, const char *taint)
{
	char text[1024];

	snprintf(text, sizeof text,
		 "{'metadata':{'name':'m1','uid':'m1','labels':{'simulated.preheat.dev/node-group':'spot-b'}},'spec':{"
		 "'providerID':'simulated://m1'%s},'status':{'allocatable':{'nvidia.com/gpu':'%d'},'conditions':[{"
		 "'type':'Ready','status':'True'}]}}",
		 taint, gpus);
	see(c->cluster, CLUSTER_NODES, text, (struct moment){ clock_now(c->clock), false });
}

/* With a replica that serves. */
static void run_on_spot(const char *taint)
{
	have_machine(1, "m1", MACHINE_RUNNING);
	cloud_tells(c, 1);
	see_spot_node(1, taint);
	have_pod(c, "a", "'app':'chat'", "m1", true);
	serving = 1;
}

/* It came idle since the decision. */
static void a_node_that_is_idle_is_used_first(void **state)
{
	(void)state;
	decide(2, 10);
	see_spot_node(1, "");
	have_machine(1, "m1", MACHINE_RUNNING);
	cloud_tells(c, 1);
	answer("spot-a", ERROR_STOCKOUT);
	play_until(play_now());
	assert_int_equal(c->groups[1]->wanted, 2); /* one stands there, one is bought */
	assert_int_equal(c->groups[2]->wanted, 0);
}

/* Of its two GPUs one serves: the other takes what would be bought. */
static void a_node_that_returns_is_filled_first(void **state)
{
	(void)state;
	((struct group_spec *)(uintptr_t)&fleet_of(c)->groups[1])->gpus_per_node = 2;
	run_on_spot("");
	see_spot_node(2, "");
	c->starts.count = 0;
	decide(2, 10);
	assert_true(drain_begin(c, cluster_node(c->cluster, "m1"), 0, FATE_REMOVE, "fewer were needed"));
	answer("spot-a", ERROR_STOCKOUT);
	play_until(play_now());
	assert_int_equal(c->groups[1]->wanted, 1);
	assert_int_equal(c->groups[2]->wanted, 0);
	assert_int_equal(c->starts.count, 1);
	assert_int_equal(c->starts.items[0].kind, START_PLACE);
}

/* On its other GPU a replica comes up, whose start was cancelled. */
static void what_comes_up_on_a_node_that_returns_is_not_bought(void **state)
{
	(void)state;
	((struct group_spec *)(uintptr_t)&fleet_of(c)->groups[1])->gpus_per_node = 2;
	run_on_spot("");
	see_spot_node(2, "");
	have_pod(c, "b", "'app':'chat'", "m1", false);
	c->starts.count = 0;
	decide(2, 10);
	assert_true(drain_begin(c, cluster_node(c->cluster, "m1"), 0, FATE_REMOVE, "fewer were needed"));
	answer("spot-a", ERROR_STOCKOUT);
	play_until(play_now());
	assert_int_equal(c->groups[1]->wanted, 1);
	assert_int_equal(c->groups[2]->wanted, 0);
	assert_int_equal(c->starts.count, 1);
	assert_string_not_equal(c->starts.items[0].pod, "");
}

static void a_machine_that_will_be_taken_is_replaced_at_once(void **state)
{
	(void)state;
	run_on_spot("");
	decide(0, 1);
	assert_int_equal(change_count, 0);
	millis then = play_now();
	run_on_spot(",'taints':[{'key':'aws-node-termination-handler/spot-itn','effect':'NoSchedule'}]");
	machine_count[1] = 1;
	play_until(then);
	assert_int_equal(asked_in("spot-a")->desired, 1); /* the cheapest first */
	assert_true(drain_is_under_way(c, "m1"));
	assert_int_equal(c->interruptions.count, 1);
	assert_int_equal(c->starts.events[c->starts.event_count - 1].event.what, EVENT_LOST);
	assert_int_equal(play_now() - then, 0);
	answer("spot-a", ERROR_NONE);
	settle_calls();
	assert_non_null(asked("PATCH /api/v1/nodes/m1", "\"unschedulable\":true"));
	assert_int_equal(c->interruptions.count, 1); /* once */
	assert_int_equal(change_count, 0);
	assert_non_null(asked("eviction", "pods/a"));
}

/* Neither need nor blindness keeps a machine that the cloud ends, and a budget that holds it does not begin it anew. */
static void what_will_be_taken_is_emptied_in_any_case(void **state)
{
	(void)state;
	run_on_spot("");
	decide(0, 1);
	c->pools[0]->is_blind = true;
	server.budget_holds = true;
	run_on_spot(",'taints':[{'key':'aws-node-termination-handler/spot-itn','effect':'NoSchedule'}]");
	machine_count[1] = 1;
	play_until(play_now());
	answer("spot-a", ERROR_NONE);
	settle_calls();
	assert_null(drains_call_off(c, 0));
	assert_non_null(asked("eviction", "pods/a"));
	for (millis end = play_now() + DRAIN_PATIENCE + MINUTE; play_now() < end; settle_calls())
		play_until(play_now() + 10 * SECOND);
	assert_true(drain_is_under_way(c, "m1"));
	assert_int_equal(c->interruptions.count, 1);
	assert_int_equal(c->drains.abandoned, 0);
}

static void a_pool_that_is_watched_keeps_what_will_be_taken(void **state)
{
	(void)state;
	((struct pool_spec *)(uintptr_t)&fleet_of(c)->pools[0])->mode = MODE_OBSERVE;
	decide(0, 1);
	run_on_spot(",'taints':[{'key':'aws-node-termination-handler/spot-itn','effect':'NoSchedule'}]");
	play_until(play_now());
	assert_false(drain_is_under_way(c, "m1"));
	assert_int_equal(change_count, 0);
}

static void budgets_count_what_is_asked_of_every_cloud(void **state)
{
	(void)state;
	have_machine(2, "m1", MACHINE_RUNNING);
	have_machine(2, "m2", MACHINE_RUNNING);
	cloud_tells(c, 2);
	assert_int_equal(cost_budget_affordable(c, 0), (10000 - 240) / 50);
	((struct pool_spec *)(uintptr_t)&fleet_of(c)->pools[0])->budget_per_hour = 3000000;
	assert_int_equal(cost_budget_affordable(c, 0), 1); /* 3.0 less 2 * 1.2 */
	c->groups[0]->wanted = 3;
	assert_int_equal(cost_budget_affordable(c, 0), -2);
	assert_int_equal(cost_budget_affordable(c, 2), -1);
}

static void other_failures_are_no_reason(void **state)
{
	(void)state;
	decide(2, 10);
	answer("spot-a", ERROR_AUTH);
	play_until(play_now());
	assert_int_equal(change_count, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_refused_goes_on_in_the_same_millisecond),
		TEST(no_group_is_asked_twice_before_the_next_tick),
		TEST(a_group_in_back_off_is_passed_over),
		TEST(a_machine_that_was_given_up_too_late_is_used_first),
		TEST(a_machine_that_was_given_up_and_not_named_is_used_first),
		TEST(what_nobody_asked_for_goes_before_what_may_not_go_yet),
		TEST(what_nobody_asked_for_goes_wherever_it_is),
		TEST(a_node_that_is_idle_is_used_first),
		TEST(the_budget_holds_for_the_dearer_one),
		TEST(a_node_that_returns_is_filled_first),
		TEST(what_comes_up_on_a_node_that_returns_is_not_bought),
		TEST(a_machine_that_will_be_taken_is_replaced_at_once),
		TEST(what_will_be_taken_is_emptied_in_any_case),
		TEST(a_pool_that_is_watched_keeps_what_will_be_taken),
		TEST(budgets_count_what_is_asked_of_every_cloud),
		TEST(other_failures_are_no_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
