/*
 * A node group whose cloud fails in the ways that clouds do: operations that
 * go on after the answer, throttled accounts, zones without stock, groups
 * that cannot do what their provider can.
 */
#include "controller/loop/growth.h"
#include "controller/loop/group_operations.h"
#include "state/launch.h"
#include "tests/unit/loop/played_group.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *const OPERATION = "https://cloud/operations/7";

/* The only launch there is. */
static struct launch find(struct stage_of_test *t, struct arena *a)
{
	const struct launch_filter all = { INT64_MIN, INT64_MAX, NULL, 10 };
	struct launch *found;
	struct error e;
	size_t count;

	assert_true(launch_find(t->history, &all, a, &found, &count, &e));
	assert_int_equal(count, 1);
	return found[0];
}

static void ask_what_goes_on(struct stage_of_test *t, int64_t machines)
{
	played_look(t);
	played_ask(t, machines);
	cloud.operation = OPERATION;
	cloud.is_busy = true;
	cloud.desired = machines;
	played_answer(ERROR_NONE);
	cloud.operation = NULL;
}

static void what_goes_on_is_kept_until_it_is_over(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct stage_of_test *t = *state;

	ask_what_goes_on(t, 1);
	assert_string_equal(find(t, &a).operation, OPERATION);
	played_look(t);
	assert_string_equal(cloud.pending, OPERATION);
	assert_null(find(t, &a).outcome);
	node_group_drive(&t->g);
	assert_int_equal(cloud.sent, 1); /* not again, though it is not there */
	played_add_machine(MACHINE_RUNNING);
	cloud.is_busy = false;
	played_look(t);
	assert_string_equal(find(t, &a).outcome, "done");
	played_look(t);
	assert_string_equal(cloud.pending, "");
}

static void what_goes_on_and_fails_ends_with_the_failure(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct stage_of_test *t = *state;

	ask_what_goes_on(t, 2);
	cloud.failures[0] =
		(struct launch_failure){ .id = 7, .kind = ERROR_STOCKOUT, .message = "none left", .count = 2 };
	cloud.failure_count = 1;
	cloud.is_busy = false;
	cloud.desired = 0;
	played_look(t);
	assert_string_equal(find(t, &a).outcome, error_kind_name(ERROR_STOCKOUT));
	assert_int_equal(starts.count, 0);
}

static void what_goes_on_survives_a_change_of_leader(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct stage_of_test *t = *state;
	const struct group_access access = { t->g.ops, NULL, t->calls, &t->throttle, false, "{}" };

	ask_what_goes_on(t, 1);
	struct provider_call *look = cloud.look;
	cloud.look = NULL;
	node_group_stop(&t->g);
	look->error = (struct error){ .kind = ERROR_CANCELLED };
	look->done(look);
	node_group_close(&t->g);
	starts_release(&starts);
	node_group_open(&t->g, &t->context, 0, &access);
	struct launch l = find(t, &a);
	node_group_resume(&t->g, l.token, l.operation, l.asked_at);
	played_look(t);
	assert_string_equal(cloud.pending, OPERATION);
	assert_int_equal(starts.count, 1); /* what was asked for is on its way */
	cloud.is_busy = false;
	cloud.desired = 0;
	cloud.failures[0] = (struct launch_failure){
		.id = 7, .at = clock_now(&t->clock), .kind = ERROR_QUOTA, .message = "no more", .count = 1
	};
	cloud.failure_count = 1;
	played_look(t);
	assert_string_equal(find(t, &a).outcome, error_kind_name(ERROR_QUOTA));
}

static void what_goes_on_for_too_long_is_given_up(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct stage_of_test *t = *state;

	ask_what_goes_on(t, 1);
	played_look(t);
	clock_turn(&t->clock, 4 * HOUR);
	played_look(t);
	assert_string_equal(find(t, &a).outcome, error_kind_name(ERROR_TIMEOUT));
	assert_null(t->g.ongoing.name);
}

static void what_goes_on_can_be_cancelled_and_nothing_else(void **state)
{
	struct stage_of_test *t = *state;

	ask_what_goes_on(t, 3);
	played_look(t);
	played_ask(t, 2);
	assert_null(cloud.change); /* one at a time: the newest wish waits */
	starts_release(&starts);
	node_group_give_up(&t->g, 4);
	node_group_drive(&t->g);
	assert_non_null(cloud.change);
	assert_int_equal(cloud.change->verb, PROVIDER_CANCEL);
	assert_int_equal(cloud.change->desired, 1);
}

static void a_throttled_account_is_left_alone_by_all_its_groups(void **state)
{
	struct stage_of_test *t = *state;
	struct node_group other;
	const struct group_access access = { t->g.ops, NULL, t->calls, &t->throttle, false, "{}" };

	played_look(t);
	node_group_open(&other, &t->context, 0, &access);
	played_ask(t, 1);
	cloud.retry_after = 20 * SECOND;
	played_answer(ERROR_THROTTLED);
	assert_true(t->throttle.until >= loop_now(t->loop) + 20 * SECOND);
	node_group_look(&other);
	node_group_look(&t->g);
	node_group_drive(&t->g);
	assert_null(cloud.look); /* neither reads */
	assert_null(cloud.change);
	assert_int_equal(starts.count, 1);
	assert_int_equal(t->throttle.count, 1);
	played_wait_over(t);
	played_look(t);
	assert_non_null(cloud.change);
	assert_string_equal(cloud.tokens[0], cloud.tokens[1]);
	node_group_stop(&other);
	node_group_close(&other);
}

static void throttling_waits_longer_each_time(void **state)
{
	struct throttle a = throttle_make(random_stream(7, "a"));
	millis now = 1000, longest = 0;

	(void)state;
	for (int i = 0; i < 12; i++) {
		throttle_note(&a, now, 0);
		throttle_note(&a, now, 0); /* on its way at the same time: one refusal */
		longest = throttle_wait(&a, now) > longest ? throttle_wait(&a, now) : longest;
		assert_in_range(throttle_wait(&a, now), SECOND, 2 * MINUTE + SECOND);
		now = a.until;
	}
	assert_true(longest > 30 * SECOND);
	throttle_passed(&a, now - 1); /* began before */
	assert_int_not_equal(a.retry.failures, 0);
	throttle_passed(&a, now);
	assert_int_equal(a.retry.failures, 0);
	assert_int_equal(throttle_wait(&a, now), 0);
}

static void fail_in(const char *zone, millis back_off)
{
	cloud.failures[cloud.failure_count] = (struct launch_failure){ .id = 7 + (int64_t)cloud.failure_count,
								       .kind = ERROR_STOCKOUT,
								       .message = "none left",
								       .zone = zone,
								       .instance_type = "",
								       .back_off = back_off,
								       .count = 1 };
	cloud.failure_count++;
	cloud.desired--;
}

static const struct event_input *event(enum event_kind what)
{
	for (size_t i = 0; i < starts.event_count; i++)
		if (starts.events[i].event.what == (int64_t)what)
			return &starts.events[i].event;
	return NULL;
}

static void a_zone_without_stock_blocks_the_group_only_when_no_other_is_left(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 2);
	cloud.machines[0].zone = "a";
	cloud.machines[1].zone = "b";
	cloud.machines[0].id = "fresh-a"; /* zones are learned from machines that come */
	cloud.machines[1].id = "fresh-b";
	played_look(t);
	starts_events_taken(&starts);
	played_ask(t, 1);
	cloud.desired++;
	played_answer(ERROR_NONE);
	fail_in("a", HOUR);
	played_look(t);
	assert_non_null(event(EVENT_MISSED));
	assert_null(event(EVENT_REFUSED));
	assert_null(event(EVENT_NO_STOCK));
	assert_int_equal(t->refused, 1); /* may go elsewhere at once */
	played_ask(t, 1);
	cloud.desired++;
	played_answer(ERROR_NONE);
	fail_in("b", 10 * MINUTE);
	played_look(t);
	assert_non_null(event(EVENT_REFUSED));
	assert_int_equal(event(EVENT_NO_STOCK)->value, 10 * MINUTE); /* until the first is probed again */
}

/* By the first look; clocks are seconds apart, and not every cloud tells when it was. */
static void what_failed_before_we_led_is_remembered_for_as_long(void **state)
{
	struct stage_of_test *t = *state;
	static const struct {
		bool is_told, holds;
		millis ago;
	} cases[] = {
		{ false, true, 0 }, { true, true, -5 * SECOND }, { true, true, 30 * MINUTE }, { true, false, 2 * HOUR }
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		cloud.failure_count = 0;
		fail_in("a", HOUR);
		clock_turn(&t->clock, DAY);
		cloud.failures[0].at = cases[i].is_told ? clock_now(&t->clock) - cases[i].ago : 0;
		cloud.desired = 0;
		played_look(t);
		assert_int_equal(offerings_blocked(&t->g.offerings, clock_mono(&t->clock)), cases[i].holds);
		assert_int_equal(t->refused, 0);
		played_tear_down(state);
		played_set_up(state);
		t = *state;
	}
}

static void a_code_that_says_how_long_is_believed_in_steps(void **state)
{
	static const millis waits[] = { 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, HOUR };
	struct stage_of_test *t = *state;

	played_look(t);
	for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
		starts_events_taken(&starts);
		played_ask(t, 1);
		cloud.desired = 1;
		played_answer(ERROR_NONE);
		cloud.failure_count = 0;
		fail_in("", HOUR);
		cloud.failures[0].id = (int64_t)i + 1;
		played_look(t);
		assert_int_equal(event(EVENT_NO_STOCK)->value, waits[i]);
		assert_non_null(event(EVENT_REFUSED));
	}
}

/* 20 minutes after it began, again, and then no more: what it was to bring is looked for elsewhere at once. */
static void what_never_ends_is_aborted_a_few_times(void **state)
{
	struct stage_of_test *t = *state;

	ask_what_goes_on(t, 2);
	cloud.is_busy = true;
	cloud.desired = 2;
	played_look(t);
	for (millis passed = 0; passed < 2 * HOUR; passed += MINUTE) {
		clock_turn(&t->clock, MINUTE);
		played_look(t);
		if (cloud.change) {
			assert_int_equal(cloud.change->verb, PROVIDER_CANCEL);
			assert_non_null(cloud.change->pending);
			assert_true(passed >= 19 * MINUTE);
			assert_int_equal(t->refused, 2);
			played_answer(ERROR_NONE);
		}
	}
	assert_int_equal(cloud.sent, 1 + ENDS_MOST);
	assert_null(t->g.ongoing.name);
}

static void a_group_without_standby_is_told_and_left_without(void **state)
{
	struct stage_of_test *t = *state;

	cloud.abilities = PROVIDER_NAMES_VICTIMS;
	played_run(t, 2);
	assert_int_equal(event(EVENT_STANDBY)->value, 0);
	played_look(t);
	assert_int_equal(starts.event_count, 1); /* once */
	node_group_set_standby(&t->g, 2);
	node_group_drive(&t->g);
	assert_null(cloud.change);
	assert_int_equal(t->g.standby_wanted, 0);
	node_group_remove(&t->g, "m0", PROVIDER_STOP);
	node_group_drive(&t->g);
	played_expect(PROVIDER_REMOVE, 0);
	starts_events_taken(&starts);
	cloud.abilities = t->g.ops->abilities;
	cloud.count = 0;
	cloud.desired = 0;
	played_answer(ERROR_NONE);
	played_look(t);
	assert_int_equal(event(EVENT_STANDBY)->value, 1); /* it is to be had again */
}

static void what_cannot_be_cancelled_is_left_to_come(void **state)
{
	struct stage_of_test *t = *state;

	cloud.abilities = PROVIDER_NAMES_VICTIMS;
	played_look(t);
	played_ask(t, 2);
	cloud.desired = 2;
	played_answer(ERROR_NONE);
	played_look(t);
	starts_release(&starts);
	node_group_give_up(&t->g, 2);
	node_group_drive(&t->g);
	assert_null(cloud.change);
}

static void nobody_is_named_where_nobody_can_be(void **state)
{
	struct stage_of_test *t = *state;

	cloud.abilities = 0;
	played_run(t, 1);
	assert_false(node_group_remove(&t->g, "m0", PROVIDER_REMOVE));
	node_group_drive(&t->g);
	assert_null(cloud.change);
}

/* Whatever is believed to be wished, by a state that makes no sense: the manifest in force has the last word. */
static void nothing_above_max_is_ever_asked_for(void **state)
{
	struct stage_of_test *t = *state;
	static const int64_t wished[] = { 9, 1000, INT64_MAX / 2 };

	played_run(t, 2);
	for (size_t i = 0; i < sizeof wished / sizeof *wished; i++) {
		t->g.wanted = wished[i];
		node_group_drive(&t->g);
		played_expect(PROVIDER_GROW, 8);
		assert_int_equal(t->g.wanted, 8);
		played_answer(ERROR_AUTH);
		cloud.look = NULL;
		t->g.is_looking = false;
	}
	t->g.standby_wanted = 77;
	node_group_drive(&t->g);
	played_expect(PROVIDER_STANDBY, 4);
	assert_true(t->g.growth.held > 1000);
}

static int64_t left;

static int64_t affordable(void *user, size_t group)
{
	(void)user;
	(void)group;
	return left;
}

static void nothing_above_the_budget_is_ever_asked_for(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 2);
	t->context.affordable = affordable;
	left = -2; /* of the six that are wished */
	played_ask(t, 6);
	played_expect(PROVIDER_GROW, 6);
	assert_int_equal(starts.count, 4);
	assert_int_equal(t->g.growth.held, 2);
	played_answer(ERROR_AUTH);
	cloud.look = NULL;
	t->g.is_looking = false;
	left = -100; /* what is there already is more than it allows: that is not ours to end here */
	played_ask(t, 3);
	assert_null(cloud.change);
	assert_int_equal(starts.count, 0);
	assert_int_equal(t->g.wanted, 2);
}

static void growth_is_bounded_within_five_minutes(void **state)
{
	struct stage_of_test *t = *state;

	played_look(t);
	assert_int_equal(growth_allow(&t->g, 5), 5);
	assert_int_equal(growth_allow(&t->g, 10), 7); /* the whole group once: eight and four standing by */
	assert_int_equal(growth_allow(&t->g, 1), 0);
	assert_int_equal(t->g.growth.held, 4);
	clock_turn(&t->clock, GROWTH_SPAN / 2);
	assert_int_equal(growth_allow(&t->g, 10), 6);
	clock_turn(&t->clock, GROWTH_SPAN);
	assert_int_equal(growth_allow(&t->g, 100), 12);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, played_set_up, played_tear_down)

/* Whoever stops it frees it once its calls are over. */
static void a_stopped_group_leaves_no_timer(void **state)
{
	struct stage_of_test *t = *state;

	node_group_look(&t->g);
	node_group_stop(&t->g);
	struct provider_call *look = cloud.look;
	cloud.look = NULL;
	look->error = (struct error){ .kind = ERROR_UNAVAILABLE };
	look->done(look);
	assert_true(node_group_is_idle(&t->g));
	assert_false(timer_is_running(&t->g.timer));
}

/* An update began between the look and the call: what was wanted is looked for elsewhere, and not bought here, too,
 * when the update is over. */
static void what_an_owner_keeps_out_is_not_asked_for_when_it_is_over(void **state)
{
	static const enum error_kind answers[] = { ERROR_CONFLICT, ERROR_TIMEOUT };
	struct stage_of_test *t = *state;

	played_run(t, 1);
	for (size_t i = 0; i < 2; i++) {
		played_ask(t, 2);
		played_answer(answers[i]);
		cloud.busy_with = "an update";
		played_look(t);
		clock_turn(&t->clock, LAG_MOST + SECOND);
		played_look(t);
		assert_string_equal(t->g.operation.token, "");
		assert_int_equal(starts.count, 0);
		assert_int_equal(t->g.wanted, 1);
		cloud.busy_with = NULL;
		clock_turn(&t->clock, 10 * MINUTE);
		played_wait_over(t);
		played_look(t);
		node_group_drive(&t->g);
		assert_int_equal(cloud.sent, i + 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_an_owner_keeps_out_is_not_asked_for_when_it_is_over),
		TEST(what_goes_on_is_kept_until_it_is_over),
		TEST(what_goes_on_and_fails_ends_with_the_failure),
		TEST(what_goes_on_survives_a_change_of_leader),
		TEST(what_goes_on_for_too_long_is_given_up),
		TEST(what_goes_on_can_be_cancelled_and_nothing_else),
		TEST(a_throttled_account_is_left_alone_by_all_its_groups),
		TEST(throttling_waits_longer_each_time),
		TEST(a_zone_without_stock_blocks_the_group_only_when_no_other_is_left),
		TEST(what_failed_before_we_led_is_remembered_for_as_long),
		TEST(a_code_that_says_how_long_is_believed_in_steps),
		TEST(what_never_ends_is_aborted_a_few_times),
		TEST(a_group_without_standby_is_told_and_left_without),
		TEST(what_cannot_be_cancelled_is_left_to_come),
		TEST(nobody_is_named_where_nobody_can_be),
		TEST(nothing_above_max_is_ever_asked_for),
		TEST(nothing_above_the_budget_is_ever_asked_for),
		TEST(a_stopped_group_leaves_no_timer),
		TEST(growth_is_bounded_within_five_minutes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
