/* Machines of a node group that stand by: how they come, what for, when they are woken, and how many at most. */
#include "tests/unit/loop/played_group.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void machines_bound_for_standby_are_no_part_of_the_size(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 2);
	played_refill(t, 1);
	node_group_drive(&t->g);
	played_expect(PROVIDER_STANDBY, 1);
	cloud.standby = 1;
	played_add_machine(MACHINE_PENDING);
	cloud.machines[2].is_standby = true;
	played_answer(ERROR_NONE);
	played_look(t);
	assert_int_equal(node_group_size(&t->g), 2);
	assert_string_equal(starts.items[0].machine, "m2");
	played_ask(t, 1);
	played_expect(PROVIDER_GROW, 3);
	assert_string_equal(starts.items[1].machine, "");
}

static void machines_serve_what_they_came_for(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 0);
	played_ask_as(t, START_COLD, node_group_grow(&t->g, 1));
	played_ask_as(t, START_WAKE, node_group_grow(&t->g, 1));
	played_refill(t, 1);
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
	assert_int_equal(played_start_on("m0")->kind, START_REFILL);
	assert_int_equal(played_start_on("m1")->kind, START_WAKE);
	assert_int_equal(played_start_on("m2")->kind, START_COLD);
	assert_int_equal(starts.count, 3);
}

static void what_was_to_wake_may_come_new(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 0);
	played_ask_as(t, START_WAKE, node_group_grow(&t->g, 1));
	node_group_drive(&t->g);
	cloud.desired = 1;
	played_answer(ERROR_NONE);
	played_add_machine(MACHINE_PENDING);
	played_look(t);
	assert_int_equal(played_start_on("m0")->kind, START_COLD); /* it takes as long as a cold one */
	assert_int_equal(starts.count, 1);
}

static void a_refill_ends_when_its_machine_is_stopped(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 0);
	played_refill(t, 2);
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

/* Bought for standby, it is woken for the first time; after it has served and stopped again, it is not. */
static void a_machine_bought_for_standby_wakes_first_once(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 0);
	played_add_machine(MACHINE_PENDING);
	cloud.machines[0].is_standby = true;
	cloud.standby = 1;
	played_look(t);
	cloud.machines[0].state = MACHINE_STOPPED;
	played_look(t);
	for (int wake = 0; wake < 2; wake++) {
		cloud.machines[0].state = MACHINE_WAKING;
		cloud.machines[0].is_standby = false;
		cloud.desired = 1;
		cloud.standby = 0;
		played_look(t);
		assert_int_equal(played_start_on("m0")->kind, START_WAKE);
		assert_int_equal(played_start_on("m0")->is_first, !wake);
		starts_release(&starts);
		cloud.machines[0].state = MACHINE_RUNNING;
		played_look(t);
		cloud.machines[0].state = MACHINE_STOPPED;
		cloud.machines[0].is_standby = true;
		cloud.desired = 0;
		cloud.standby = 1;
		played_look(t);
		starts_release(&starts);
	}
}

/* Where a stop empties its disk it wakes like one that never ran, however often it did, also after a restart of ours.
 */
static void what_forgets_its_images_wakes_as_if_it_never_ran(void **state)
{
	struct stage_of_test *t = *state;

	cloud.forgets_images = true;
	played_run(t, 0);
	played_add_machine(MACHINE_STOPPED);
	struct machine *m = &cloud.machines[0];
	for (int wake = 0; wake < 2; wake++) {
		m->state = MACHINE_STOPPED;
		m->is_standby = true;
		cloud.desired = 0;
		cloud.standby = 1;
		played_look(t);
		m->state = MACHINE_WAKING;
		m->is_standby = false;
		cloud.desired = 1;
		cloud.standby = 0;
		played_look(t);
		assert_int_equal(played_start_on(m->id)->kind, START_WAKE);
		assert_true(played_start_on(m->id)->is_first);
		starts_release(&starts);
		m->state = MACHINE_RUNNING;
		played_look(t);
	}
}

/* It stood by before anybody looked: where nothing is stopped after use it has never run, elsewhere it has. */
static void what_stood_by_already_has_run_where_machines_go_back(void **state)
{
	struct stage_of_test *t = *state;

	for (int goes_back = 0; goes_back < 2; goes_back++) {
		cloud.abilities = goes_back ? cloud.abilities | PROVIDER_STOPS_NAMED
					    : cloud.abilities & ~(unsigned)PROVIDER_STOPS_NAMED;
		played_run(t, 0);
		played_add_machine(MACHINE_STOPPED);
		struct machine *m = &cloud.machines[goes_back];
		m->is_standby = true;
		cloud.standby = 1;
		played_look(t);
		m->state = MACHINE_WAKING;
		m->is_standby = false;
		cloud.desired = 1 + goes_back;
		cloud.standby = 0;
		played_look(t);
		assert_int_equal(played_start_on(m->id)->kind, START_WAKE);
		assert_int_equal(played_start_on(m->id)->is_first, !goes_back);
		starts_release(&starts);
	}
}

/* Launched long ago, stopped, and woken just now, before it has a node: it has all of its time. */
static void what_is_woken_is_not_as_old_as_its_launch(void **state)
{
	struct stage_of_test *t = *state;
	millis now = clock_now(&t->clock);

	played_run(t, 0);
	played_add_machine(MACHINE_STOPPED);
	cloud.standby = 1;
	played_look(t);
	cloud.machines[0].state = MACHINE_RUNNING;
	cloud.machines[0].is_standby = false;
	cloud.desired = 1;
	cloud.standby = 0;
	played_look(t);
	assert_int_equal(played_start_on("m0")->stage_since, now);
	starts_release(&starts); /* given up, and it runs on */
	played_look(t);
	assert_true(played_start_on("m0")->stage_since >= now);
}

/* Nor to whoever takes over, and never saw it stand by. */
static void what_was_woken_before_we_led_is_as_old_as_its_run(void **state)
{
	struct stage_of_test *t = *state;

	played_add_machine(MACHINE_RUNNING);
	cloud.machines[0].state_since = 900000;
	cloud.desired = 1;
	played_look(t);
	assert_int_equal(played_start_on("m0")->asked_at, 500000);
	assert_int_equal(played_start_on("m0")->stage_since, 900000);
}

/* AKS lowers the count at once; that the machine stops is told by its node, a while later. */
static void a_size_that_falls_before_its_machine_stops_is_ours(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 3);
	node_group_remove(&t->g, "m2", PROVIDER_STOP);
	node_group_drive(&t->g);
	played_expect(PROVIDER_STOP, 2);
	cloud.desired = 2;
	cloud.standby = 1;
	played_answer(ERROR_NONE);
	for (int i = 0; i < 3; i++) {
		cloud.is_busy = true;
		played_look(t);
		assert_int_equal(t->g.resized, 0);
		assert_int_equal(node_group_size(&t->g), 2);
		assert_int_equal(t->g.standby_wanted, 1);
	}
	cloud.machines[2].state = MACHINE_STOPPED;
	cloud.machines[2].is_standby = true;
	cloud.is_busy = false;
	played_look(t);
	assert_int_equal(t->g.resized, 0);
	assert_int_equal(node_group_size(&t->g), 2);
	assert_int_equal(t->g.standby_wanted, 1);
	assert_null(cloud.change); /* nothing more is asked for */
	cloud.desired = 1;	   /* this is somebody else */
	played_look(t);
	assert_int_equal(t->g.resized, 1);
}

/* The cloud lowered the size at once, and takes one of the two later: the size is not to fall for that one again. */
static void what_stops_late_is_not_stopped_again(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 5);
	node_group_remove(&t->g, "m3", PROVIDER_STOP);
	node_group_remove(&t->g, "m4", PROVIDER_STOP);
	node_group_drive(&t->g);
	played_expect(PROVIDER_STOP, 3);
	assert_int_equal(cloud.change->size, 5);
	cloud.desired = 3;
	cloud.standby = 2;
	played_answer(ERROR_NONE);
	cloud.machines[4].state = MACHINE_STOPPED;
	cloud.machines[4].is_standby = true;
	played_look(t);
	played_wait_over(t);
	played_look(t);
	assert_null(cloud.change);
	node_group_remove(&t->g, "m2", PROVIDER_REMOVE);
	node_group_drive(&t->g);
	played_expect(PROVIDER_REMOVE, 2);
	assert_int_equal(cloud.change->size, 3); /* as the cloud has it */
	cloud.desired = 2;
	cloud.machines[2].state = MACHINE_TERMINATING;
	played_answer(ERROR_NONE);
	played_look(t);
	clock_turn(&t->clock, LAG_MOST);
	played_wait_over(t);
	played_look(t);
	played_expect(PROVIDER_STOP, 2);
	assert_int_equal(cloud.change->size, 3); /* which it is not: nothing is sent */
	cloud.change->is_outdated = true;
	played_answer(ERROR_CONFLICT);
	cloud.machines[3].state = MACHINE_STOPPED;
	cloud.machines[3].is_standby = true;
	played_wait_over(t);
	played_look(t);
	assert_null(cloud.change);
	assert_int_equal(t->g.resized, 0);
	assert_int_equal(t->g.wanted, 2);
}

static void a_machine_that_served_ends_no_refill(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 2);
	node_group_remove(&t->g, "m0", PROVIDER_STOP);
	node_group_drive(&t->g);
	played_expect(PROVIDER_STOP, 0);
	played_refill(t, 1);
	cloud.machines[0].state = MACHINE_STOPPING;
	cloud.machines[0].is_standby = true;
	cloud.desired = 1;
	cloud.standby = 1;
	played_answer(ERROR_NONE);
	played_look(t);
	played_expect(PROVIDER_STANDBY, 2);
	cloud.machines[0].state = MACHINE_STOPPED;
	cloud.standby = 2;
	played_answer(ERROR_NONE);
	played_look(t);
	assert_int_equal(played_starts(START_REFILL), 1);
	assert_int_equal(t->g.wanted, 1);
	assert_int_equal(t->g.standby_wanted, 2);
	assert_int_equal(starts.event_count, 0);
}

static void refills_do_not_wait_for_ever(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 0);
	played_refill(t, 1);
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

	played_run(t, 3);
	played_refill(t, 9);
	assert_int_equal(t->g.standby_wanted, 4);
	node_group_drive(&t->g);
	played_expect(PROVIDER_STANDBY, 4);
	cloud.standby = 4;
	played_answer(ERROR_NONE);
	played_look(t);
	assert_int_equal(starts.count, 4); /* no more can come */
	node_group_remove(&t->g, "m2", PROVIDER_STOP);
	node_group_drive(&t->g);
	played_expect(PROVIDER_REMOVE, 0);
}

static void a_refill_whose_machine_is_wanted_to_serve_ends(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 0);
	played_refill(t, 1);
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
	assert_int_equal(played_start_on("m0")->kind, START_COLD);
	assert_int_equal(t->g.standby_wanted, 0);
	assert_null(cloud.change);
}

/* Named while it was bound for standby, and the size has it by the time it is asked for: it is not bought again. */
static void a_refill_that_is_called_off_as_it_comes_to_serve_is_not_replaced(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 2);
	played_refill(t, 1);
	node_group_drive(&t->g);
	cloud.standby = 1;
	played_answer(ERROR_NONE);
	played_add_machine(MACHINE_PENDING);
	cloud.machines[2].is_standby = true;
	played_look(t);
	played_ask(t, 1);
	played_expect(PROVIDER_GROW, 3);
	assert_true(node_group_remove(&t->g, "m2", PROVIDER_CANCEL));
	cloud.machines[2].is_standby = false;
	cloud.desired = 3;
	cloud.standby = 0;
	played_answer(ERROR_NONE);
	played_look(t);
	assert_int_equal(cloud.verbs[cloud.sent - 1], PROVIDER_CANCEL);
	cloud.desired = 2;
	cloud.count = 2;
	played_answer(ERROR_NONE);
	played_look(t);
	assert_null(cloud.change);
	assert_int_equal(t->g.wanted, 2);
}

static void a_refill_that_serves_after_all_is_not_counted_twice(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 0);
	played_refill(t, 2);
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
	played_expect(PROVIDER_GROW, 1);
	cloud.machines[1].is_standby = false; /* the cloud took the other */
	cloud.desired = 1;
	cloud.standby = 1;
	played_answer(ERROR_NONE);
	played_look(t);
	assert_int_equal(t->g.standby_wanted, 1);
	assert_null(cloud.change);
	assert_int_equal(played_start_on("m1")->kind, START_COLD);
	assert_int_equal(starts.count, 2);
}

static void failed_launches_for_standby_refuse_refills(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 1);
	played_refill(t, 2);
	played_ask(t, 1);
	cloud.desired = 2;
	played_answer(ERROR_NONE);
	played_look(t);
	played_expect(PROVIDER_STANDBY, 2);
	cloud.standby = 2;
	played_answer(ERROR_NONE);
	played_look(t);
	cloud.failures[0] = (struct launch_failure){ .id = 1, .kind = ERROR_STOCKOUT, .message = "", .count = 2 };
	cloud.failure_count = 1;
	cloud.standby = 0;
	played_look(t);
	assert_int_equal(played_starts(START_REFILL), 0);
	assert_int_equal(played_starts(START_COLD), 1);
	assert_int_equal(t->g.wanted, 2);
	assert_int_equal(t->g.standby_wanted, 0);
	assert_null(cloud.change);
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
	played_expect(PROVIDER_GROW, 2);
	cloud.desired = 2;
	played_answer(ERROR_NONE);
	cloud.machines[0].state = MACHINE_RUNNING;
	played_look(t);
	played_expect(PROVIDER_STOP, 0);
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

/* AKS may deallocate what it is asked to delete: that is over then, nobody else's doing, and stays as it is. */
static void a_removal_may_end_in_standby(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 3);
	node_group_remove(&t->g, "m1", PROVIDER_REMOVE);
	node_group_drive(&t->g);
	played_expect(PROVIDER_REMOVE, 2);
	cloud.desired = 2;
	cloud.standby = 1;
	cloud.keeps_standby = true;
	played_answer(ERROR_NONE);
	cloud.is_busy = true;
	played_look(t); /* its node is ready still */
	played_wait_over(t);
	cloud.machines[1].state = MACHINE_STOPPED;
	cloud.machines[1].is_standby = true;
	cloud.is_busy = false;
	for (int i = 0; i < 3; i++) {
		played_look(t);
		assert_false(node_group_is_removing(&t->g, "m1"));
		assert_null(cloud.change);
		node_group_set_standby(&t->g, 0);
		node_group_drive(&t->g);
		assert_null(cloud.change);
		assert_int_equal(t->g.standby_wanted, 1);
		assert_int_equal(node_group_size(&t->g), 2);
		assert_int_equal(t->g.resized, 0);
		clock_turn(&t->clock, 15 * SECOND);
	}
	played_ask(t, 1); /* it can be woken */
	played_expect(PROVIDER_GROW, 3);
	played_answer(ERROR_NONE);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, played_set_up, played_tear_down)
	const struct CMUnitTest tests[] = {
		CASE(machines_bound_for_standby_are_no_part_of_the_size),
		CASE(machines_serve_what_they_came_for),
		CASE(what_was_to_wake_may_come_new),
		CASE(a_refill_ends_when_its_machine_is_stopped),
		CASE(a_machine_bought_for_standby_wakes_first_once),
		CASE(what_forgets_its_images_wakes_as_if_it_never_ran),
		CASE(what_stood_by_already_has_run_where_machines_go_back),
		CASE(what_is_woken_is_not_as_old_as_its_launch),
		CASE(what_was_woken_before_we_led_is_as_old_as_its_run),
		CASE(a_size_that_falls_before_its_machine_stops_is_ours),
		CASE(what_stops_late_is_not_stopped_again),
		CASE(a_machine_that_served_ends_no_refill),
		CASE(refills_do_not_wait_for_ever),
		CASE(standby_stays_within_its_max),
		CASE(a_refill_whose_machine_is_wanted_to_serve_ends),
		CASE(a_refill_that_is_called_off_as_it_comes_to_serve_is_not_replaced),
		CASE(a_refill_that_serves_after_all_is_not_counted_twice),
		CASE(failed_launches_for_standby_refuse_refills),
		CASE(only_what_runs_is_stopped),
		CASE(a_removal_may_end_in_standby),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
