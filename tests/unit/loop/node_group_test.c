/*
 * One node group against a cloud that the test plays: what is sent, in which
 * order, with which token, and what becomes of lost answers and refusals.
 */
#include "base/log.h"
#include "tests/unit/loop/played_group.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void grows_once(void **state)
{
	struct stage_of_test *t = *state;

	played_look(t);
	played_ask(t, 2);
	assert_int_equal(cloud.change->verb, PROVIDER_GROW);
	assert_int_equal(cloud.change->desired, 2);
	cloud.desired = 2;
	played_add_machine(MACHINE_PENDING);
	played_add_machine(MACHINE_PENDING);
	played_answer(ERROR_NONE);
	played_look(t);
	assert_null(cloud.change);
	assert_int_equal(cloud.sent, 1);
	assert_true(cloud.intent_was_there);
	assert_string_equal(starts.items[0].machine, "m0");
	assert_string_equal(starts.items[1].machine, "m1");
	assert_int_equal(starts.event_count, 0);
}

static void a_lost_answer_is_looked_up_and_not_asked_twice(void **state)
{
	struct stage_of_test *t = *state;

	played_look(t);
	played_ask(t, 2);
	cloud.desired = 2; /* it had its effect */
	played_answer(ERROR_TIMEOUT);
	played_wait_over(t);
	played_look(t);
	assert_null(cloud.change);
	assert_int_equal(cloud.sent, 1);
	assert_int_equal(starts.count, 2);
}

static void what_had_no_effect_is_asked_again_with_the_same_token(void **state)
{
	struct stage_of_test *t = *state;

	played_look(t);
	played_ask(t, 2);
	played_answer(ERROR_UNAVAILABLE);
	played_wait_over(t);
	played_look(t);
	assert_non_null(cloud.change);
	assert_int_equal(cloud.sent, 2);
	assert_string_equal(cloud.tokens[0], cloud.tokens[1]);
	assert_int_equal(starts.count, 2); /* still on their way */
}

static void after_five_tries_the_starts_are_refused(void **state)
{
	struct stage_of_test *t = *state;

	played_look(t);
	played_ask(t, 1);
	for (int i = 0; i < 5; i++) {
		played_answer(ERROR_UNAVAILABLE);
		played_wait_over(t);
		played_look(t);
	}
	assert_int_equal(starts.count, 1); /* the last may have been heard, and not show yet */
	clock_turn(&t->clock, LAG_MOST);
	played_look(t);
	assert_null(cloud.change);
	assert_int_equal(cloud.sent, 5);
	assert_int_equal(starts.count, 0);
	assert_int_equal(starts.events[0].event.what, EVENT_REFUSED);
	assert_int_equal(starts.events[0].event.value, ERROR_UNAVAILABLE);
	assert_int_equal(t->g.wanted, 0);
}

static void a_refusal_ends_the_starts_at_once(void **state)
{
	static const enum error_kind kinds[] = { ERROR_STOCKOUT, ERROR_QUOTA, ERROR_AUTH, ERROR_INVALID };
	struct stage_of_test *t = *state;

	played_look(t);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		starts_events_taken(&starts);
		played_ask(t, 3);
		played_answer(kinds[i]);
		assert_int_equal(starts.count, 0);
		assert_int_equal(starts.event_count, 3);
		assert_int_equal(starts.events[0].event.value, kinds[i]);
		assert_int_equal(t->g.wanted, 0);
		cloud.look = NULL;
		t->g.is_looking = false;
		played_look(t);
	}
}

static void throttled_calls_wait_and_keep_their_starts(void **state)
{
	struct stage_of_test *t = *state;

	played_look(t);
	played_ask(t, 1);
	played_answer(ERROR_THROTTLED);
	node_group_drive(&t->g);
	assert_null(cloud.change);
	assert_int_equal(starts.count, 1);
	played_wait_over(t);
	played_look(t);
	assert_non_null(cloud.change);
}

static void a_launch_that_failed_refuses_so_many_starts(void **state)
{
	struct stage_of_test *t = *state;

	played_look(t);
	played_ask(t, 3);
	cloud.desired = 3;
	played_add_machine(MACHINE_PENDING);
	played_answer(ERROR_NONE);
	cloud.failures[0] =
		(struct launch_failure){ .id = 7, .kind = ERROR_STOCKOUT, .message = "none left", .count = 2 };
	cloud.failure_count = 1;
	cloud.desired = 1;
	played_look(t);
	assert_int_equal(starts.count, 1);
	assert_string_equal(starts.items[0].machine, "m0");
	assert_int_equal(starts.event_count, 2);
	assert_int_equal(starts.events[0].event.value, ERROR_STOCKOUT);
	played_look(t); /* told again: known */
	assert_int_equal(starts.event_count, 2);
}

static void old_failures_are_no_news(void **state)
{
	struct stage_of_test *t = *state;

	cloud.failures[0] = (struct launch_failure){ .id = 7, .kind = ERROR_STOCKOUT, .message = "", .count = 2 };
	cloud.failure_count = 1;
	played_look(t);
	assert_int_equal(starts.event_count, 0);
}

static void never_above_the_manifests_and_the_clouds_max(void **state)
{
	struct stage_of_test *t = *state;

	played_look(t);
	assert_int_equal(node_group_grow(&t->g, 100), 8);
	assert_int_equal(node_group_grow(&t->g, 1), 0);
}

static void machines_that_were_there_are_adopted(void **state)
{
	struct stage_of_test *t = *state;

	played_add_machine(MACHINE_PENDING);
	played_add_machine(MACHINE_TERMINATING);
	cloud.desired = 1;
	played_look(t);
	assert_int_equal(starts.count, 1);
	assert_true(starts.items[0].is_adopted);
	assert_int_equal(starts.items[0].asked_at, 500000);
	assert_int_equal(t->g.wanted, 1);
	assert_null(cloud.change);
}

static void a_size_that_others_set_is_told_and_kept(void **state)
{
	struct stage_of_test *t = *state;

	played_look(t);
	cloud.desired = 4;
	played_look(t);
	assert_int_equal(starts.events[0].event.what, EVENT_RESIZED);
	assert_int_equal(starts.events[0].event.value, 4);
	assert_int_equal(t->g.wanted, 4);
	node_group_drive(&t->g);
	assert_null(cloud.change);
}

static void exactly_that_machine_is_removed(void **state)
{
	struct stage_of_test *t = *state;

	played_add_machine(MACHINE_RUNNING);
	played_add_machine(MACHINE_RUNNING);
	cloud.desired = 2;
	played_look(t);
	assert_true(node_group_remove(&t->g, "m1", PROVIDER_REMOVE));
	assert_false(node_group_remove(&t->g, "m1", PROVIDER_REMOVE));
	node_group_drive(&t->g);
	assert_int_equal(cloud.change->verb, PROVIDER_REMOVE);
	assert_int_equal(cloud.change->id_count, 1);
	assert_string_equal(cloud.change->ids[0], "m1");
	cloud.machines[1].state = MACHINE_TERMINATING;
	cloud.desired = 1;
	played_answer(ERROR_NONE);
	played_look(t);
	assert_int_equal(t->g.wanted, 1);
	assert_false(node_group_is_removing(&t->g, "m1"));
	assert_null(cloud.change);
}

/* Who grows is waited for; where there is no room beside what goes, that goes first. */
static void growth_goes_before_removals(void **state)
{
	struct stage_of_test *t = *state;

	cloud.takes_turns = true;
	played_run(t, 4);
	assert_true(node_group_remove(&t->g, "m3", PROVIDER_REMOVE));
	clock_turn(&t->clock, MINUTE);
	played_ask(t, 2);
	played_expect(PROVIDER_GROW, 6);
	cloud.desired = 6;
	played_add_machine(MACHINE_PENDING);
	played_add_machine(MACHINE_PENDING);
	played_answer(ERROR_NONE);
	played_look(t);
	played_expect(PROVIDER_REMOVE, 5);
	played_answer(ERROR_NONE);
}

static void what_goes_makes_room_at_the_most(void **state)
{
	struct stage_of_test *t = *state;

	cloud.takes_turns = true;
	played_run(t, 8); /* the most of the manifest */
	assert_true(node_group_remove(&t->g, "m7", PROVIDER_REMOVE));
	played_ask(t, 1);
	played_expect(PROVIDER_REMOVE, 8);
	cloud.machines[7].state = MACHINE_TERMINATING;
	cloud.desired = 7;
	played_answer(ERROR_NONE);
	played_look(t);
	played_expect(PROVIDER_GROW, 8);
	played_answer(ERROR_NONE);
}

static void removals_share_an_operation_where_one_waits_for_the_other(void **state)
{
	struct stage_of_test *t = *state;

	cloud.takes_turns = true;
	played_run(t, 4);
	assert_true(node_group_remove(&t->g, "m3", PROVIDER_REMOVE));
	node_group_drive(&t->g);
	assert_null(cloud.change);
	clock_turn(&t->clock, 15 * SECOND);
	assert_true(node_group_remove(&t->g, "m1", PROVIDER_REMOVE));
	played_look(t);
	assert_null(cloud.change);
	clock_turn(&t->clock, 5 * SECOND);
	played_look(t);
	assert_int_equal(cloud.change->verb, PROVIDER_REMOVE);
	assert_int_equal(cloud.change->id_count, 2);
	played_answer(ERROR_NONE);
}

static void what_never_came_is_given_up_before_more_is_asked(void **state)
{
	struct stage_of_test *t = *state;

	played_look(t);
	played_ask(t, 4);
	cloud.desired = 4;
	played_add_machine(MACHINE_PENDING);
	played_answer(ERROR_NONE);
	played_look(t);
	node_group_give_up(&t->g, 2); /* all three are waited for */
	node_group_drive(&t->g);
	assert_null(cloud.change);
	starts_drop(&starts, 3);
	starts_drop(&starts, 2);
	node_group_give_up(&t->g, 3);
	node_group_drive(&t->g);
	assert_int_equal(cloud.change->verb, PROVIDER_CANCEL);
	assert_int_equal(cloud.change->desired, 2);
	assert_int_equal(cloud.change->id_count, 0);
}

static void a_barred_group_sends_nothing_and_forgets_the_wish(void **state)
{
	struct stage_of_test *t = *state;

	played_look(t);
	t->context.is_barred = true;
	played_ask(t, 3);
	assert_null(cloud.change);
	assert_int_equal(starts.count, 0);
	assert_int_equal(starts.event_count, 0);
	assert_int_equal(t->g.wanted, 0);
}

/* The answer to a look may come before it is told that another one leads. */
static void a_deposed_leader_sends_nothing(void **state)
{
	struct stage_of_test *t = *state;

	node_group_look(&t->g);
	played_look(t);
	t->is_deposed = true;
	played_ask(t, 1);
	played_look(t);
	assert_null(cloud.change);
	assert_int_equal(cloud.sent, 0);
}

static void a_machine_that_vanishes_ends_its_start(void **state)
{
	struct stage_of_test *t = *state;

	played_look(t);
	played_ask(t, 1);
	cloud.desired = 1;
	played_add_machine(MACHINE_PENDING);
	played_answer(ERROR_NONE);
	played_look(t);
	cloud.count = 0;
	cloud.desired = 0;
	played_look(t);
	assert_int_equal(starts.count, 1); /* it may be an old look */
	clock_turn(&t->clock, LAG_MOST);
	played_look(t);
	assert_int_equal(starts.count, 0);
	assert_int_equal(starts.events[0].event.what, EVENT_REFUSED);
}

static int emptied, freed, unclear; /* lines */

static void count_lines(void *user, enum log_level level, const char *line)
{
	(void)user;
	(void)level;
	emptied += strstr(line, "group-emptied") && strstr(line, "a schedule did");
	freed += strstr(line, "group-free-again") != NULL;
	unclear += strstr(line, "new-node-unclear") != NULL;
}

static void what_a_schedule_switches_off_is_logged_once(void **state)
{
	struct stage_of_test *t = *state;

	log_set_up(&(struct log_setup){ .least = LEVEL_INFO, .write = count_lines });
	cloud.emptied_by = "a schedule did";
	played_look(t);
	played_look(t);
	assert_int_equal(emptied, 1);
	cloud.emptied_by = NULL;
	played_look(t);
	played_look(t);
	assert_int_equal(emptied, 1);
	assert_int_equal(freed, 1);
	log_set_up(&(struct log_setup){ .least = LEVEL_INFO });
}

static void a_mistake_about_new_nodes_is_logged_once(void **state)
{
	static const char *const looks[] = { "taint 'a'", "taint 'a'", "taint 'b'", NULL, "taint 'b'" };
	static const int told[] = { 1, 1, 2, 2, 3 };
	struct stage_of_test *t = *state;

	log_set_up(&(struct log_setup){ .least = LEVEL_INFO, .write = count_lines });
	for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
		cloud.unread = looks[i];
		played_look(t);
		assert_int_equal(unclear, told[i]);
	}
	log_set_up(&(struct log_setup){ .least = LEVEL_INFO });
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, played_set_up, played_tear_down)
	const struct CMUnitTest tests[] = {
		CASE(grows_once),
		CASE(a_lost_answer_is_looked_up_and_not_asked_twice),
		CASE(what_had_no_effect_is_asked_again_with_the_same_token),
		CASE(after_five_tries_the_starts_are_refused),
		CASE(a_refusal_ends_the_starts_at_once),
		CASE(throttled_calls_wait_and_keep_their_starts),
		CASE(a_launch_that_failed_refuses_so_many_starts),
		CASE(old_failures_are_no_news),
		CASE(never_above_the_manifests_and_the_clouds_max),
		CASE(machines_that_were_there_are_adopted),
		CASE(a_size_that_others_set_is_told_and_kept),
		CASE(exactly_that_machine_is_removed),
		CASE(growth_goes_before_removals),
		CASE(what_goes_makes_room_at_the_most),
		CASE(removals_share_an_operation_where_one_waits_for_the_other),
		CASE(what_never_came_is_given_up_before_more_is_asked),
		CASE(a_barred_group_sends_nothing_and_forgets_the_wish),
		CASE(a_deposed_leader_sends_nothing),
		CASE(a_machine_that_vanishes_ends_its_start),
		CASE(what_a_schedule_switches_off_is_logged_once),
		CASE(a_mistake_about_new_nodes_is_logged_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
