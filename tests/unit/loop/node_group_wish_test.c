/*
 * What a node group makes of sizes that it did not ask for itself, and of
 * wishes that come while something is under way or comes to nothing.
 */
#include "tests/unit/loop/played_group.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void purchases_of_an_earlier_life_are_on_their_way(void **state)
{
	struct stage_of_test *t = *state;

	for (size_t i = 0; i < 3; i++)
		played_add_machine(MACHINE_RUNNING);
	cloud.node_count = 3;
	cloud.desired = 5; /* two are not listed yet */
	played_look(t);
	assert_int_equal(t->g.wanted, 5);
	assert_int_equal(played_starts(START_COLD), 2);
	assert_true(starts.items[0].is_adopted);
	assert_string_equal(starts.items[0].machine, "");
	assert_int_equal(starts.event_count, 0);
	played_add_machine(MACHINE_PENDING);
	played_add_machine(MACHINE_PENDING);
	played_look(t);
	assert_int_equal(starts.count, 2);
	assert_non_null(played_start_on("m3"));
	assert_non_null(played_start_on("m4"));
}

static void what_others_ask_for_is_on_its_way(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 2);
	cloud.desired = 4;
	played_look(t);
	assert_int_equal(played_starts(START_COLD), 2);
	assert_int_equal(starts.events[0].event.what, EVENT_RESIZED);
	cloud.desired = 3;
	played_look(t);
	assert_int_equal(starts.count, 1); /* the other cannot come any more */
	assert_int_equal(t->g.wanted, 3);
}

/* The look before our growth shows that others grew, and machines that were launched before we asked. */
static void what_comes_as_others_raise_is_not_ours_alone(void **state)
{
	struct stage_of_test *t = *state;
	millis asked_at = clock_of_wall(&t->clock, 500000) + SECOND; /* since the machines were launched */

	played_run(t, 2);
	starts_ask(&starts, &(struct start){ .kind = START_COLD, .asked_at = asked_at }, 2);
	assert_false(starts.items[0].is_found);
	cloud.desired = 3;
	played_add_machine(MACHINE_PENDING);
	played_look(t);
	const struct start *s = played_start_on("m2");
	assert_non_null(s);
	assert_true(s->is_found);
	played_add_machine(MACHINE_PENDING);
	cloud.desired = 4;
	played_look(t);
	assert_true(played_start_on("m3")->is_found);
	starts_ask(&starts, &(struct start){ .kind = START_COLD, .asked_at = asked_at - 2 * SECOND }, 1);
	played_add_machine(MACHINE_PENDING);
	cloud.desired = 5;
	played_look(t);
	assert_false(played_start_on("m4")->is_found); /* launched after we asked */
}

/* EKS tells no time of machines in service: what a start of ours took before is as much ours as it was. */
static void what_came_before_others_raise_stays_ours(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 2);
	played_ask(t, 1);
	played_expect(PROVIDER_GROW, 3);
	cloud.desired = 3;
	played_add_machine(MACHINE_PENDING);
	cloud.machines[2].launched_at = 0;
	played_answer(ERROR_NONE);
	played_look(t);
	assert_non_null(played_start_on("m2"));
	clock_turn(&t->clock, MINUTE);
	cloud.desired = 4;
	played_look(t);
	assert_true(node_group_is_raised(&t->g));
	assert_false(played_start_on("m2")->is_found);
}

static void growth_counts_from_what_is_asked_for(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 5);
	assert_true(node_group_remove(&t->g, "m4", PROVIDER_REMOVE));
	played_ask(t, 1);
	assert_int_equal(t->g.wanted, 5);
	played_expect(PROVIDER_REMOVE, 0);
	cloud.machines[4].state = MACHINE_TERMINATING;
	cloud.desired = 4;
	played_answer(ERROR_NONE);
	played_look(t);
	played_expect(PROVIDER_GROW, 5);
	assert_int_equal(starts.count, 1);
	assert_int_equal(starts.event_count, 0);
}

static void a_wish_during_a_removal_stays(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 5);
	node_group_remove(&t->g, "m4", PROVIDER_REMOVE);
	node_group_drive(&t->g);
	played_expect(PROVIDER_REMOVE, 0);
	played_ask(t, 3);
	cloud.machines[4].state = MACHINE_TERMINATING;
	cloud.desired = 4;
	played_answer(ERROR_NONE);
	played_look(t);
	played_expect(PROVIDER_GROW, 7);
	assert_int_equal(starts.count, 3);
	assert_int_equal(starts.event_count, 0);
}

static void growth_and_refill_are_both_asked_for(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 1);
	played_refill(t, 1);
	played_ask(t, 1);
	played_expect(PROVIDER_GROW, 2);
	cloud.desired = 2;
	played_add_machine(MACHINE_PENDING);
	played_answer(ERROR_NONE);
	played_look(t);
	played_expect(PROVIDER_STANDBY, 1);
	assert_int_equal(played_starts(START_REFILL), 1);
	assert_int_equal(played_start_on("m1")->kind, START_COLD);
}

static void a_wish_after_a_failed_look_is_our_own(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 1);
	node_group_look(&t->g);
	struct provider_call *look = cloud.look;
	cloud.look = NULL;
	look->error = (struct error){ .kind = ERROR_TIMEOUT };
	look->done(look);
	played_ask(t, 2);
	assert_null(cloud.change); /* quiet after the failure */
	played_wait_over(t);
	played_look(t);
	played_expect(PROVIDER_GROW, 3);
	assert_int_equal(starts.count, 2);
	assert_int_equal(starts.event_count, 0);
}

static void what_others_do_meanwhile_is_added(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 5);
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

	played_run(t, 1);
	node_group_look(&t->g);
	played_ask(t, 2);
	played_expect(PROVIDER_GROW, 3);
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

	played_run(t, 1);
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

/* Whether the cloud buys another one or not, nobody resized anything. */
static void a_lost_machine_is_no_resizing(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 3);
	cloud.count = 2;
	cloud.desired = 2;
	played_look(t);
	assert_int_equal(t->g.wanted, 2);
	assert_int_equal(starts.event_count, 0);
	cloud.count = 1;
	played_look(t);
	assert_int_equal(t->g.wanted, 2);
	assert_int_equal(played_starts(START_COLD), 1); /* what the cloud buys instead */
	assert_int_equal(starts.event_count, 0);
}

static void a_machine_that_the_cloud_leaves_alone_stays(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 2);
	node_group_remove(&t->g, "m0", PROVIDER_REMOVE);
	assert_int_equal(node_group_size(&t->g), 1);
	node_group_drive(&t->g);
	for (int i = 0; i < 5; i++) {
		played_expect(PROVIDER_REMOVE, 0);
		played_answer(ERROR_NONE);
		played_look(t);
		assert_null(cloud.change); /* not at once again */
		clock_turn(&t->clock, LAG_MOST);
		played_look(t);
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

	played_run(t, 3);
	played_ask(t, 1);
	cloud.desired = 4;
	played_answer(ERROR_NONE);
	played_look(t);
	node_group_remove(&t->g, "m0", PROVIDER_REMOVE);
	node_group_remove(&t->g, "m1", PROVIDER_STOP);
	node_group_drive(&t->g);
	played_expect(PROVIDER_REMOVE, 0);
	played_answer(ERROR_AUTH);
	assert_false(node_group_is_removing(&t->g, "m0"));
	assert_true(node_group_is_removing(&t->g, "m1"));
	assert_int_equal(t->g.wanted, 3);
	cloud.look = NULL;
	t->g.is_looking = false;
	played_look(t);
	played_expect(PROVIDER_STOP, 0);
	assert_int_equal(starts.count, 1);
	assert_int_equal(starts.event_count, 0);
}

static void what_the_cloud_does_not_give_up_comes(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 1);
	played_ask(t, 2);
	cloud.desired = 3;
	played_answer(ERROR_NONE);
	played_look(t);
	starts_drop(&starts, 1);
	starts_drop(&starts, 0);
	node_group_give_up(&t->g, 2);
	node_group_drive(&t->g);
	played_expect(PROVIDER_CANCEL, 0);
	assert_int_equal(cloud.change->desired, 1);
	cloud.desired = 2;
	played_answer(ERROR_NONE);
	played_look(t);
	assert_int_equal(t->g.wanted, 1); /* the look may be older */
	clock_turn(&t->clock, LAG_MOST);
	played_look(t);
	assert_int_equal(t->g.wanted, 2);
	assert_int_equal(starts.count, 1);
	assert_null(cloud.change);
	assert_int_equal(starts.event_count, 0);
}

/* A removal waits until the growth shows: what is asked for counts its machine, too. */
static void what_is_given_up_beside_a_removal_is_given_up_whole(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 3);
	played_ask(t, 2);
	played_expect(PROVIDER_GROW, 5);
	node_group_remove(&t->g, "m0", PROVIDER_REMOVE);
	played_ask(t, 2);
	starts_drop(&starts, 3);
	starts_drop(&starts, 2);
	node_group_give_up(&t->g, 2);
	assert_int_equal(t->g.wanted, 4);
	played_answer(ERROR_AUTH);
}

/* The cloud was busy and took nothing; by the time that it is free one less is needed. */
static void what_was_not_taken_is_asked_for_anew(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 1);
	played_ask(t, 2);
	played_expect(PROVIDER_GROW, 3);
	played_answer(ERROR_CONFLICT);
	starts_drop(&starts, 1);
	node_group_give_up(&t->g, 1);
	assert_int_equal(t->g.wanted, 2);
	played_wait_over(t);
	played_look(t);
	played_expect(PROVIDER_GROW, 2);
	cloud.desired = 2;
	played_answer(ERROR_NONE);
	played_look(t);
	assert_int_equal(starts.count, 1);
}

/* What comes in the first two minutes may be the last call of who led before: it is not bought beside what is wished.
 * Later it is somebody's. */
static void what_came_by_an_unknown_call_is_not_bought_again(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 1);
	for (int64_t late = 0; late <= 1; late++) {
		clock_turn(&t->clock, late * LAG_MOST);
		assert_int_equal(node_group_grow(&t->g, 1), 1);
		cloud.desired++;
		played_add_machine(MACHINE_PENDING);
		t->context.is_barred = true; /* not sent yet */
		played_look(t);
		t->context.is_barred = false;
		assert_int_equal(t->g.wanted, 2 + late);
		assert_int_equal(t->g.resized, late);
	}
}

/* Two were launched, nobody waits for them any more, and no look shows them: they are claimed before others are bought.
 */
static void what_comes_and_does_not_show_is_claimed_first(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 1);
	played_ask(t, 2);
	played_answer(ERROR_NONE); /* reads show one, as before */
	starts_drop(&starts, 1);
	starts_drop(&starts, 0);
	node_group_give_up(&t->g, 2);
	for (int i = 0; i < 2; i++) {
		assert_true(node_group_claim(&t->g));
		played_ask_as(t, START_COLD, 1);
	}
	assert_false(node_group_claim(&t->g));
	assert_int_equal(t->g.wanted, 3);
	starts_drop(&starts, 0);
	assert_true(node_group_claim(&t->g));
	clock_turn(&t->clock, LAG_MOST);
	assert_false(node_group_claim(&t->g)); /* it would show by now */
}

static bool is_m2(void *user, const char *provider_id)
{
	(void)user;
	return !strcmp(provider_id, "m2");
}

/* No node of it came, the cloud was at work for long, and then one did: pods may run there. */
static void a_machine_that_joins_while_its_removal_waits_stays(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 3);
	cloud.machines[2].provider_id = "m2";
	cloud.is_busy = true;
	played_look(t);
	assert_true(node_group_remove(&t->g, "m2", PROVIDER_REMOVE));
	assert_true(node_group_remove(&t->g, "m1", PROVIDER_REMOVE));
	node_group_drive(&t->g);
	assert_null(cloud.change);
	assert_int_equal(t->g.wanted, 1);
	t->context.has_joined = is_m2;
	node_group_drive(&t->g);
	assert_int_equal(t->g.wanted, 2); /* at once: nothing is bought in its place, here or elsewhere */
	cloud.is_busy = false;
	played_look(t);
	played_expect(PROVIDER_REMOVE, 0);
	assert_int_equal(cloud.change->id_count, 1);
	assert_string_equal(cloud.change->ids[0], "m1");
	assert_int_equal(t->g.wanted, 2);
}

/* The size fell while the call was made, and nothing was sent: what is wished then is decided on what is there then. */
static void an_outdated_growth_is_decided_anew(void **state)
{
	struct stage_of_test *t = *state;

	cloud.replaces_lost = true; /* else a size that falls with its machines is a loss */
	played_run(t, 4);
	played_ask(t, 2);
	played_expect(PROVIDER_GROW, 6);
	assert_int_equal(cloud.change->change, 2);
	cloud.change->is_outdated = true;
	played_answer(ERROR_CONFLICT);
	assert_int_equal(t->g.operation.token[0], '\0');
	played_wait_over(t);
	played_look(t); /* the read of the call was old */
	played_expect(PROVIDER_GROW, 6);
	cloud.change->is_outdated = true;
	played_answer(ERROR_CONFLICT);
	played_wait_over(t);
	cloud.count = cloud.node_count = 2;
	cloud.desired = 2;
	played_look(t); /* others lowered it: they are let */
	assert_null(cloud.change);
	assert_true(t->g.is_yielding);
	assert_int_equal(t->g.wanted, 2);
}

/* One that was only put off, too: others raised the size before it was sent again. */
static void an_outdated_stop_is_decided_anew(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 4);
	assert_true(node_group_remove(&t->g, "m2", PROVIDER_STOP));
	node_group_drive(&t->g);
	played_expect(PROVIDER_STOP, 3);
	played_answer(ERROR_THROTTLED);
	played_wait_over(t);
	played_look(t);
	node_group_drive(&t->g);
	played_expect(PROVIDER_STOP, 3);
	cloud.change->is_outdated = true;
	played_answer(ERROR_CONFLICT);
	assert_int_equal(t->g.operation.token[0], '\0');
}

/* Others lowered it while the call was made: whom they want gone is not known yet, and ours stays. */
static void an_outdated_removal_is_decided_anew(void **state)
{
	struct stage_of_test *t = *state;

	cloud.replaces_lost = true;
	played_run(t, 4);
	assert_true(node_group_remove(&t->g, "m2", PROVIDER_REMOVE));
	node_group_drive(&t->g);
	played_expect(PROVIDER_REMOVE, 3);
	assert_int_equal(cloud.change->size, 4);
	cloud.change->is_outdated = true;
	played_answer(ERROR_CONFLICT);
	assert_int_equal(t->g.operation.token[0], '\0');
	played_wait_over(t);
	cloud.desired = 3; /* the cloud has not chosen yet */
	played_look(t);
	assert_null(cloud.change);
	assert_true(t->g.is_yielding);
}

/* It was done, and its machine goes late: that the size fell is no work of others. */
static void a_removal_whose_answer_was_lost_waits_for_its_machine(void **state)
{
	struct stage_of_test *t = *state;

	cloud.replaces_lost = true;
	played_run(t, 4);
	assert_true(node_group_remove(&t->g, "m2", PROVIDER_REMOVE));
	node_group_drive(&t->g);
	cloud.desired = 3;
	played_answer(ERROR_UNAVAILABLE);
	for (int i = 0; i < 8; i++) {
		played_wait_over(t);
		played_look(t);
		played_expect(PROVIDER_REMOVE, 3);
		cloud.change->is_outdated = true;
		played_answer(ERROR_CONFLICT);
	}
	cloud.machines[2].state = MACHINE_TERMINATING;
	played_wait_over(t);
	played_look(t);
	assert_null(cloud.change);
	assert_int_equal(t->g.resized, 0);
	assert_false(t->g.is_yielding);
	assert_int_equal(t->g.wanted, 3);
}

static void begin_anew(struct stage_of_test *t)
{
	const struct group_access access = { t->g.ops, NULL, t->calls, &t->throttle, false, "{}" };

	node_group_stop(&t->g);
	node_group_close(&t->g);
	node_group_open(&t->g, &t->context, 0, &access);
	node_group_recall_contention(&t->g);
}

/* What comes then may be theirs, also for who leads next and wrote a size after they did. */
static void what_others_raised_is_remembered(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 2);
	assert_false(node_group_is_raised(&t->g));
	cloud.desired = 4;
	played_look(t);
	assert_true(node_group_is_raised(&t->g));
	clock_turn(&t->clock, 4 * MINUTE);
	begin_anew(t);
	assert_true(node_group_is_raised(&t->g));
	clock_turn(&t->clock, 6 * MINUTE);
	assert_false(node_group_is_raised(&t->g));
	begin_anew(t);
	assert_false(node_group_is_raised(&t->g));
}

/* As Auto Scaling does that moves machines to another zone: what comes is not ours to call off, however long it takes.
 */
static void what_is_launched_beyond_the_size_is_theirs(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 2);
	played_add_machine(MACHINE_PENDING);
	played_look(t);
	clock_turn(&t->clock, 9 * MINUTE);
	played_look(t);
	clock_turn(&t->clock, 9 * MINUTE);
	assert_true(node_group_is_raised(&t->g));
	assert_int_equal(t->g.wanted, 2);
	cloud.machines[2].state = MACHINE_RUNNING; /* and stays, as who stands by for a repair */
	played_look(t);
	clock_turn(&t->clock, MINUTE);
	assert_false(node_group_is_raised(&t->g));
}

/* The call was refused as the cloud was at work, and would be made again as it was. */
static void a_refused_removal_is_not_repeated_for_one_that_joined(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 3);
	cloud.machines[2].provider_id = "m2";
	played_look(t);
	assert_true(node_group_remove(&t->g, "m2", PROVIDER_REMOVE));
	node_group_drive(&t->g);
	played_expect(PROVIDER_REMOVE, 0);
	played_answer(ERROR_CONFLICT);
	t->context.has_joined = is_m2;
	played_wait_over(t);
	played_look(t);
	assert_null(cloud.change);
	assert_false(node_group_is_removing(&t->g, "m2"));
	assert_int_equal(t->g.wanted, 3);
}

static void a_cancel_is_called_off_until_a_call_names_it(void **state)
{
	struct stage_of_test *t = *state;
	char machine[MACHINE_ID_MAX + 1];

	played_run(t, 2);
	cloud.machines[1].state = MACHINE_PENDING;
	played_look(t);
	assert_false(node_group_call_off(&t->g, machine));
	assert_true(node_group_remove(&t->g, "m1", PROVIDER_CANCEL));
	assert_int_equal(t->g.wanted, 1);
	assert_true(node_group_call_off(&t->g, machine));
	assert_string_equal(machine, "m1");
	assert_int_equal(t->g.wanted, 2);
	assert_false(node_group_is_removing(&t->g, "m1"));
	assert_true(node_group_remove(&t->g, "m1", PROVIDER_CANCEL));
	node_group_drive(&t->g);
	played_expect(PROVIDER_CANCEL, 1);
	assert_false(node_group_call_off(&t->g, machine));
}

/* Whoever replaces machines launches one before another goes: that is no wish for a larger group. */
static void a_machine_beyond_the_size_raises_it_not(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 3);
	assert_true(node_group_remove(&t->g, "m0", PROVIDER_REMOVE));
	assert_true(node_group_remove(&t->g, "m1", PROVIDER_REMOVE));
	assert_int_equal(t->g.wanted, 1);
	cloud.is_busy = true;
	played_add_machine(MACHINE_RUNNING);
	cloud.node_count = 4;
	played_look(t);
	assert_int_equal(t->g.wanted, 1);
	cloud.is_busy = false;
	played_look(t);
	played_expect(PROVIDER_REMOVE, 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, played_set_up, played_tear_down)
	const struct CMUnitTest tests[] = {
		CASE(purchases_of_an_earlier_life_are_on_their_way),
		CASE(what_others_ask_for_is_on_its_way),
		CASE(growth_counts_from_what_is_asked_for),
		CASE(a_wish_during_a_removal_stays),
		CASE(growth_and_refill_are_both_asked_for),
		CASE(what_comes_as_others_raise_is_not_ours_alone),
		CASE(what_came_before_others_raise_stays_ours),
		CASE(a_wish_after_a_failed_look_is_our_own),
		CASE(what_others_do_meanwhile_is_added),
		CASE(a_look_from_before_an_operation_settles_nothing),
		CASE(a_look_during_an_operation_settles_nothing),
		CASE(a_lost_machine_is_no_resizing),
		CASE(a_machine_that_the_cloud_leaves_alone_stays),
		CASE(a_refused_removal_takes_nothing_else_with_it),
		CASE(what_the_cloud_does_not_give_up_comes),
		CASE(what_is_given_up_beside_a_removal_is_given_up_whole),
		CASE(what_was_not_taken_is_asked_for_anew),
		CASE(what_came_by_an_unknown_call_is_not_bought_again),
		CASE(what_comes_and_does_not_show_is_claimed_first),
		CASE(a_machine_that_joins_while_its_removal_waits_stays),
		CASE(an_outdated_growth_is_decided_anew),
		CASE(an_outdated_removal_is_decided_anew),
		CASE(an_outdated_stop_is_decided_anew),
		CASE(a_removal_whose_answer_was_lost_waits_for_its_machine),
		CASE(what_others_raised_is_remembered),
		CASE(what_is_launched_beyond_the_size_is_theirs),
		CASE(a_refused_removal_is_not_repeated_for_one_that_joined),
		CASE(a_cancel_is_called_off_until_a_call_names_it),
		CASE(a_machine_beyond_the_size_raises_it_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
