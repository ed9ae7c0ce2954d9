/*
 * What a node group makes of sizes that it did not ask for itself, of wishes
 * that come while something is under way, and of machines that stand by.
 */
#include "tests/unit/loop/played_group.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* So many machines that serve, all known. */
static void run(struct stage_of_test *t, size_t machines)
{
	for (size_t i = 0; i < machines; i++)
		played_add_machine(MACHINE_RUNNING);
	cloud.node_count = cloud.count;
	cloud.desired = (int64_t)cloud.count;
	played_look(t);
	assert_int_equal(starts.count, 0);
}

static void expect_sent(enum provider_verb verb, int64_t desired)
{
	assert_non_null(cloud.change);
	assert_int_equal(cloud.change->verb, verb);
	if (verb == PROVIDER_GROW || verb == PROVIDER_STANDBY)
		assert_int_equal(cloud.change->desired, desired);
}

static void ask_as(struct stage_of_test *t, enum start_kind kind, int64_t count)
{
	struct start like = { .kind = kind, .asked_at = clock_now(&t->clock) };

	starts_ask(&starts, &like, count);
}

static void refill(struct stage_of_test *t, int64_t count)
{
	node_group_set_standby(&t->g, t->g.standby_wanted + count);
	ask_as(t, START_REFILL, count);
}

static int64_t count_of(enum start_kind kind)
{
	int64_t count = 0;

	for (size_t i = 0; i < starts.count; i++)
		count += starts.items[i].kind == kind;
	return count;
}

static struct start *start_on(const char *machine)
{
	for (size_t i = 0; i < starts.count; i++)
		if (!strcmp(starts.items[i].machine, machine))
			return &starts.items[i];
	return NULL;
}

static void purchases_of_an_earlier_life_are_on_their_way(void **state)
{
	struct stage_of_test *t = *state;

	for (size_t i = 0; i < 3; i++)
		played_add_machine(MACHINE_RUNNING);
	cloud.node_count = 3;
	cloud.desired = 5; /* two are not listed yet */
	played_look(t);
	assert_int_equal(t->g.wanted, 5);
	assert_int_equal(count_of(START_COLD), 2);
	assert_true(starts.items[0].is_adopted);
	assert_string_equal(starts.items[0].machine, "");
	assert_int_equal(starts.event_count, 0);
	played_add_machine(MACHINE_PENDING);
	played_add_machine(MACHINE_PENDING);
	played_look(t);
	assert_int_equal(starts.count, 2);
	assert_non_null(start_on("m3"));
	assert_non_null(start_on("m4"));
}

static void what_others_ask_for_is_on_its_way(void **state)
{
	struct stage_of_test *t = *state;

	run(t, 2);
	cloud.desired = 4;
	played_look(t);
	assert_int_equal(count_of(START_COLD), 2);
	assert_int_equal(starts.events[0].event.what, EVENT_RESIZED);
	cloud.desired = 3;
	played_look(t);
	assert_int_equal(starts.count, 1); /* the other cannot come any more */
	assert_int_equal(t->g.wanted, 3);
}

static void growth_counts_from_what_is_asked_for(void **state)
{
	struct stage_of_test *t = *state;

	run(t, 5);
	assert_true(node_group_remove(&t->g, "m4", PROVIDER_REMOVE));
	played_ask(t, 1);
	assert_int_equal(t->g.wanted, 5);
	expect_sent(PROVIDER_REMOVE, 0);
	cloud.machines[4].state = MACHINE_TERMINATING;
	cloud.desired = 4;
	played_answer(ERROR_NONE);
	played_look(t);
	expect_sent(PROVIDER_GROW, 5);
	assert_int_equal(starts.count, 1);
	assert_int_equal(starts.event_count, 0);
}

static void machines_bound_for_standby_are_no_part_of_the_size(void **state)
{
	struct stage_of_test *t = *state;

	run(t, 2);
	refill(t, 1);
	node_group_drive(&t->g);
	expect_sent(PROVIDER_STANDBY, 1);
	cloud.standby = 1;
	played_add_machine(MACHINE_PENDING);
	cloud.machines[2].is_standby = true;
	played_answer(ERROR_NONE);
	played_look(t);
	assert_int_equal(node_group_size(&t->g), 2);
	assert_string_equal(starts.items[0].machine, "m2");
	played_ask(t, 1);
	expect_sent(PROVIDER_GROW, 3);
	assert_string_equal(starts.items[1].machine, "");
}

static void a_wish_during_a_removal_stays(void **state)
{
	struct stage_of_test *t = *state;

	run(t, 5);
	node_group_remove(&t->g, "m4", PROVIDER_REMOVE);
	node_group_drive(&t->g);
	expect_sent(PROVIDER_REMOVE, 0);
	played_ask(t, 3);
	cloud.machines[4].state = MACHINE_TERMINATING;
	cloud.desired = 4;
	played_answer(ERROR_NONE);
	played_look(t);
	expect_sent(PROVIDER_GROW, 7);
	assert_int_equal(starts.count, 3);
	assert_int_equal(starts.event_count, 0);
}

static void growth_and_refill_are_both_asked_for(void **state)
{
	struct stage_of_test *t = *state;

	run(t, 1);
	refill(t, 1);
	played_ask(t, 1);
	expect_sent(PROVIDER_GROW, 2);
	cloud.desired = 2;
	played_add_machine(MACHINE_PENDING);
	played_answer(ERROR_NONE);
	played_look(t);
	expect_sent(PROVIDER_STANDBY, 1);
	assert_int_equal(count_of(START_REFILL), 1);
	assert_int_equal(start_on("m1")->kind, START_COLD);
}

static void a_wish_after_a_failed_look_is_our_own(void **state)
{
	struct stage_of_test *t = *state;

	run(t, 1);
	node_group_look(&t->g);
	struct provider_call *look = cloud.look;
	cloud.look = NULL;
	look->error = (struct error){ .kind = ERROR_TIMEOUT };
	look->done(look);
	played_ask(t, 2);
	assert_null(cloud.change); /* quiet after the failure */
	played_wait_over(t);
	played_look(t);
	expect_sent(PROVIDER_GROW, 3);
	assert_int_equal(starts.count, 2);
	assert_int_equal(starts.event_count, 0);
}

static void what_others_do_meanwhile_is_added(void **state)
{
	struct stage_of_test *t = *state;

	run(t, 5);
	node_group_remove(&t->g, "m4", PROVIDER_REMOVE);
	node_group_drive(&t->g);
	cloud.machines[4].state = MACHINE_TERMINATING;
	cloud.desired = 4 + 2;
	played_answer(ERROR_NONE);
	played_look(t);
	assert_int_equal(t->g.wanted, 6);
	assert_int_equal(starts.events[0].event.what, EVENT_RESIZED);
	assert_int_equal(starts.count, 2);
	assert_null(cloud.change);
}

static void a_look_from_before_an_operation_settles_nothing(void **state)
{
	struct stage_of_test *t = *state;

	run(t, 1);
	node_group_look(&t->g);
	played_ask(t, 2);
	expect_sent(PROVIDER_GROW, 3);
	played_answer(ERROR_NONE);
	played_look(t); /* still tells of one machine */
	assert_int_equal(starts.count, 2);
	assert_int_equal(t->g.wanted, 3);
	assert_non_null(cloud.look); /* and so it is looked again */
	cloud.desired = 3;
	played_look(t);
	assert_int_equal(starts.count, 2);
	assert_int_equal(starts.event_count, 0);
	assert_int_equal(cloud.sent, 1);
	assert_null(cloud.look);
}

static void a_look_during_an_operation_settles_nothing(void **state)
{
	struct stage_of_test *t = *state;

	run(t, 1);
	played_ask(t, 2);
	node_group_look(&t->g);
	played_look(t); /* it began after the call, and ends before its answer */
	assert_int_equal(starts.count, 2);
	node_group_look(&t->g);
	played_answer(ERROR_NONE);
	played_look(t); /* it began before the answer */
	cloud.desired = 3;
	played_look(t);
	assert_int_equal(t->g.wanted, 3);
	assert_int_equal(starts.event_count, 0);
	assert_int_equal(cloud.sent, 1);
}

static void machines_serve_what_they_came_for(void **state)
{
	struct stage_of_test *t = *state;

	run(t, 0);
	ask_as(t, START_COLD, node_group_grow(&t->g, 1));
	ask_as(t, START_WAKE, node_group_grow(&t->g, 1));
	refill(t, 1);
	node_group_drive(&t->g);
	cloud.desired = 2;
	played_answer(ERROR_NONE);
	played_look(t);
	cloud.standby = 1;
	played_answer(ERROR_NONE);
	played_add_machine(MACHINE_PENDING);
	cloud.machines[0].is_standby = true;
	played_add_machine(MACHINE_WAKING);
	played_add_machine(MACHINE_PENDING);
	played_look(t);
	assert_int_equal(start_on("m0")->kind, START_REFILL);
	assert_int_equal(start_on("m1")->kind, START_WAKE);
	assert_int_equal(start_on("m2")->kind, START_COLD);
	assert_int_equal(starts.count, 3);
}

static void what_was_to_wake_may_come_new(void **state)
{
	struct stage_of_test *t = *state;

	run(t, 0);
	ask_as(t, START_WAKE, node_group_grow(&t->g, 1));
	node_group_drive(&t->g);
	cloud.desired = 1;
	played_answer(ERROR_NONE);
	played_add_machine(MACHINE_PENDING);
	played_look(t);
	assert_int_equal(start_on("m0")->kind, START_COLD); /* it takes as long as a cold one */
	assert_int_equal(starts.count, 1);
}

static void a_refill_ends_when_its_machine_is_stopped(void **state)
{
	struct stage_of_test *t = *state;

	run(t, 0);
	refill(t, 2);
	node_group_drive(&t->g);
	cloud.standby = 2;
	played_answer(ERROR_NONE);
	played_add_machine(MACHINE_PENDING);
	cloud.machines[0].is_standby = true;
	played_look(t);
	assert_int_equal(starts.count, 2);
	cloud.machines[0].state = MACHINE_STOPPED;
	played_add_machine(MACHINE_STOPPED); /* its way was never seen */
	played_look(t);
	assert_int_equal(starts.count, 0);
	assert_int_equal(starts.event_count, 2);
	assert_int_equal(starts.events[1].event.what, EVENT_SERVING);
	assert_int_equal(starts.events[1].event.kind, START_REFILL);
}

static void a_machine_that_served_ends_no_refill(void **state)
{
	struct stage_of_test *t = *state;

	run(t, 2);
	node_group_remove(&t->g, "m0", PROVIDER_STOP);
	node_group_drive(&t->g);
	expect_sent(PROVIDER_STOP, 0);
	refill(t, 1);
	cloud.machines[0].state = MACHINE_STOPPING;
	cloud.machines[0].is_standby = true;
	cloud.desired = 1;
	cloud.standby = 1;
	played_answer(ERROR_NONE);
	played_look(t);
	expect_sent(PROVIDER_STANDBY, 2);
	cloud.machines[0].state = MACHINE_STOPPED;
	cloud.standby = 2;
	played_answer(ERROR_NONE);
	played_look(t);
	assert_int_equal(count_of(START_REFILL), 1);
	assert_int_equal(t->g.wanted, 1);
	assert_int_equal(t->g.standby_wanted, 2);
	assert_int_equal(starts.event_count, 0);
}

static void refills_do_not_wait_for_ever(void **state)
{
	struct stage_of_test *t = *state;

	run(t, 0);
	refill(t, 1);
	node_group_drive(&t->g);
	cloud.standby = 1;
	played_answer(ERROR_NONE);
	played_look(t);
	clock_turn(&t->clock, HOUR - SECOND);
	played_look(t);
	assert_int_equal(starts.count, 1);
	clock_turn(&t->clock, 2 * SECOND);
	played_look(t);
	assert_int_equal(starts.count, 0);
	assert_int_equal(starts.event_count, 0);
	assert_int_equal(t->g.standby_wanted, 1);
	played_look(t);
	assert_int_equal(starts.count, 0); /* nor again */
}

static void standby_stays_within_its_max(void **state)
{
	struct stage_of_test *t = *state;

	run(t, 3);
	refill(t, 9);
	assert_int_equal(t->g.standby_wanted, 4);
	node_group_drive(&t->g);
	expect_sent(PROVIDER_STANDBY, 4);
	cloud.standby = 4;
	played_answer(ERROR_NONE);
	played_look(t);
	assert_int_equal(starts.count, 4); /* no more can come */
	node_group_remove(&t->g, "m2", PROVIDER_STOP);
	node_group_drive(&t->g);
	expect_sent(PROVIDER_REMOVE, 0);
}

static void a_refill_whose_machine_is_wanted_to_serve_ends(void **state)
{
	struct stage_of_test *t = *state;

	run(t, 0);
	refill(t, 1);
	node_group_drive(&t->g);
	cloud.standby = 1;
	played_answer(ERROR_NONE);
	played_add_machine(MACHINE_PENDING);
	cloud.machines[0].is_standby = true;
	played_look(t);
	played_ask(t, 1);
	cloud.machines[0].is_standby = false;
	cloud.desired = 1;
	cloud.standby = 0;
	played_answer(ERROR_NONE);
	played_look(t);
	assert_int_equal(starts.count, 1);
	assert_int_equal(start_on("m0")->kind, START_COLD);
	assert_int_equal(t->g.standby_wanted, 0);
	assert_null(cloud.change);
}

static void a_refill_that_serves_after_all_is_not_counted_twice(void **state)
{
	struct stage_of_test *t = *state;

	run(t, 0);
	refill(t, 2);
	node_group_drive(&t->g);
	cloud.standby = 2;
	played_answer(ERROR_NONE);
	for (size_t i = 0; i < 2; i++) {
		played_add_machine(MACHINE_PENDING);
		cloud.machines[i].is_standby = true;
	}
	played_look(t);
	node_group_set_standby(&t->g, 1); /* as a plan that adopts one */
	assert_int_equal(node_group_grow(&t->g, 1), 1);
	starts.items[0].kind = START_COLD;
	node_group_drive(&t->g);
	expect_sent(PROVIDER_GROW, 1);
	cloud.machines[1].is_standby = false; /* the cloud took the other */
	cloud.desired = 1;
	cloud.standby = 1;
	played_answer(ERROR_NONE);
	played_look(t);
	assert_int_equal(t->g.standby_wanted, 1);
	assert_null(cloud.change);
	assert_int_equal(start_on("m1")->kind, START_COLD);
	assert_int_equal(starts.count, 2);
}

static void failed_launches_for_standby_refuse_refills(void **state)
{
	struct stage_of_test *t = *state;

	run(t, 1);
	refill(t, 2);
	played_ask(t, 1);
	cloud.desired = 2;
	played_answer(ERROR_NONE);
	played_look(t);
	expect_sent(PROVIDER_STANDBY, 2);
	cloud.standby = 2;
	played_answer(ERROR_NONE);
	played_look(t);
	cloud.failures[0] = (struct launch_failure){ .id = 1, .kind = ERROR_STOCKOUT, .message = "", .count = 2 };
	cloud.failure_count = 1;
	cloud.standby = 0;
	played_look(t);
	assert_int_equal(count_of(START_REFILL), 0);
	assert_int_equal(count_of(START_COLD), 1);
	assert_int_equal(t->g.wanted, 2);
	assert_int_equal(t->g.standby_wanted, 0);
	assert_null(cloud.change);
}

/* Whether the cloud buys another one or not, nobody resized anything. */
static void a_lost_machine_is_no_resizing(void **state)
{
	struct stage_of_test *t = *state;

	run(t, 3);
	cloud.count = 2;
	cloud.desired = 2;
	played_look(t);
	assert_int_equal(t->g.wanted, 2);
	assert_int_equal(starts.event_count, 0);
	cloud.count = 1;
	played_look(t);
	assert_int_equal(t->g.wanted, 2);
	assert_int_equal(count_of(START_COLD), 1); /* what the cloud buys instead */
	assert_int_equal(starts.event_count, 0);
}

static void only_what_runs_is_stopped(void **state)
{
	struct stage_of_test *t = *state;

	played_add_machine(MACHINE_WAKING);
	cloud.desired = 1;
	played_look(t);
	starts_drop(&starts, 0);
	node_group_remove(&t->g, "m0", PROVIDER_STOP);
	node_group_drive(&t->g);
	assert_null(cloud.change);
	played_ask(t, 1); /* and what waits for that holds up nothing */
	expect_sent(PROVIDER_GROW, 2);
	cloud.desired = 2;
	played_answer(ERROR_NONE);
	cloud.machines[0].state = MACHINE_RUNNING;
	played_look(t);
	expect_sent(PROVIDER_STOP, 0);
	cloud.machines[0].state = MACHINE_STOPPING;
	cloud.machines[0].is_standby = true;
	cloud.desired = 1;
	cloud.standby = 1;
	played_answer(ERROR_NONE);
	played_look(t);
	assert_null(cloud.change);
	assert_int_equal(t->g.wanted, 1);
	assert_int_equal(starts.count, 1);
	assert_int_equal(starts.event_count, 0);
}

static void a_machine_that_the_cloud_leaves_alone_stays(void **state)
{
	struct stage_of_test *t = *state;

	run(t, 2);
	node_group_remove(&t->g, "m0", PROVIDER_REMOVE);
	assert_int_equal(node_group_size(&t->g), 1);
	node_group_drive(&t->g);
	for (int i = 0; i < 5; i++) {
		expect_sent(PROVIDER_REMOVE, 0);
		played_answer(ERROR_NONE);
		played_look(t);
		assert_null(cloud.change); /* not at once again */
		played_wait_over(t);
		node_group_drive(&t->g);
	}
	assert_null(cloud.change);
	assert_false(node_group_is_removing(&t->g, "m0"));
	assert_int_equal(node_group_size(&t->g), 2);
	assert_int_equal(starts.event_count, 0);
}

static void a_refused_removal_takes_nothing_else_with_it(void **state)
{
	struct stage_of_test *t = *state;

	run(t, 3);
	played_ask(t, 1);
	cloud.desired = 4;
	played_answer(ERROR_NONE);
	played_look(t);
	node_group_remove(&t->g, "m0", PROVIDER_REMOVE);
	node_group_remove(&t->g, "m1", PROVIDER_STOP);
	node_group_drive(&t->g);
	expect_sent(PROVIDER_REMOVE, 0);
	played_answer(ERROR_AUTH);
	assert_false(node_group_is_removing(&t->g, "m0"));
	assert_true(node_group_is_removing(&t->g, "m1"));
	assert_int_equal(t->g.wanted, 3);
	cloud.look = NULL;
	t->g.is_looking = false;
	played_look(t);
	expect_sent(PROVIDER_STOP, 0);
	assert_int_equal(starts.count, 1);
	assert_int_equal(starts.event_count, 0);
}

static void what_the_cloud_does_not_give_up_comes(void **state)
{
	struct stage_of_test *t = *state;

	run(t, 1);
	played_ask(t, 2);
	cloud.desired = 3;
	played_answer(ERROR_NONE);
	played_look(t);
	starts_drop(&starts, 1);
	starts_drop(&starts, 0);
	node_group_give_up(&t->g, 2);
	node_group_drive(&t->g);
	expect_sent(PROVIDER_CANCEL, 0);
	assert_int_equal(cloud.change->desired, 1);
	cloud.desired = 2;
	played_answer(ERROR_NONE);
	played_look(t);
	assert_int_equal(t->g.wanted, 2);
	assert_int_equal(starts.count, 1);
	assert_null(cloud.change);
	assert_int_equal(starts.event_count, 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, played_set_up, played_tear_down)
	const struct CMUnitTest tests[] = {
		CASE(purchases_of_an_earlier_life_are_on_their_way),
		CASE(what_others_ask_for_is_on_its_way),
		CASE(growth_counts_from_what_is_asked_for),
		CASE(machines_bound_for_standby_are_no_part_of_the_size),
		CASE(a_wish_during_a_removal_stays),
		CASE(growth_and_refill_are_both_asked_for),
		CASE(a_wish_after_a_failed_look_is_our_own),
		CASE(what_others_do_meanwhile_is_added),
		CASE(a_look_from_before_an_operation_settles_nothing),
		CASE(a_look_during_an_operation_settles_nothing),
		CASE(machines_serve_what_they_came_for),
		CASE(what_was_to_wake_may_come_new),
		CASE(a_refill_ends_when_its_machine_is_stopped),
		CASE(a_machine_that_served_ends_no_refill),
		CASE(refills_do_not_wait_for_ever),
		CASE(standby_stays_within_its_max),
		CASE(a_refill_whose_machine_is_wanted_to_serve_ends),
		CASE(a_refill_that_serves_after_all_is_not_counted_twice),
		CASE(failed_launches_for_standby_refuse_refills),
		CASE(a_lost_machine_is_no_resizing),
		CASE(only_what_runs_is_stopped),
		CASE(a_machine_that_the_cloud_leaves_alone_stays),
		CASE(a_refused_removal_takes_nothing_else_with_it),
		CASE(what_the_cloud_does_not_give_up_comes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
