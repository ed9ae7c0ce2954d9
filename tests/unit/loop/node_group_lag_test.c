/*
 * A cloud whose reads are old, whose yes means nothing, or that is sized by
 * somebody else, too.
 */
#include "controller/loop/growth.h"
#include "tests/unit/loop/played_group.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Looks every 15 s that show what was so before. */
static void look_for(struct stage_of_test *t, millis duration)
{
	for (; duration > 0; duration -= 15 * SECOND) {
		clock_turn(&t->clock, 15 * SECOND);
		played_look(t);
		node_group_drive(&t->g);
	}
}

static void an_old_look_after_a_growth_buys_nothing_again(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 1);
	played_ask(t, 3);
	played_answer(ERROR_NONE);
	look_for(t, MINUTE); /* still one, as 60 s ago */
	assert_int_equal(cloud.sent, 1);
	assert_int_equal(starts.count, 3);
	assert_int_equal(t->g.wanted, 4);
	cloud.desired = 4;
	look_for(t, 15 * SECOND);
	assert_int_equal(cloud.sent, 1);
	assert_int_equal(starts.count, 3);
	assert_int_equal(starts.event_count, 0);
	assert_int_equal(t->g.resized, 0);
}

/* Its time comes while the one before still goes on: it is not the last. */
static void a_look_that_takes_long_is_followed_by_another(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 1);
	node_group_look(&t->g);
	timer_stop(&t->g.timer);
	t->g.timer.fire(&t->g.timer);
	assert_true(timer_is_running(&t->g.timer));
	played_look(t);
	timer_stop(&t->g.timer);
	t->g.timer.fire(&t->g.timer);
	assert_non_null(cloud.look);
	played_look(t);
}

static void looks_out_of_order_buy_nothing_again(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 1);
	played_ask(t, 3);
	played_answer(ERROR_NONE);
	for (int i = 0; i < 7; i++) {
		cloud.desired = i % 2 ? 1 : 4;
		look_for(t, 15 * SECOND);
	}
	assert_int_equal(cloud.sent, 1);
	assert_int_equal(t->g.wanted, 4);
	assert_int_equal(t->g.resized, 0);
	assert_int_equal(starts.count, 3);
}

/* What boots is in one look and not in the next, at the size that was asked for: the list is of before. */
static void what_boots_is_not_gone_by_an_old_list(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 1);
	played_ask(t, 1);
	cloud.desired = 2;
	played_answer(ERROR_NONE);
	played_add_machine(MACHINE_PENDING);
	look_for(t, 15 * SECOND);
	cloud.count = 1;
	look_for(t, 30 * SECOND);
	assert_int_equal(starts.count, 1);
	assert_int_equal(starts.event_count, 0);
	cloud.count = 2;
	look_for(t, 15 * SECOND);
	cloud.count = 1;
	look_for(t, LAG_MOST); /* it is gone indeed */
	assert_int_equal(starts.count, 0);
	assert_int_equal(starts.event_count, 1);
}

static void a_machine_that_went_does_not_come_back_by_an_old_look(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 2);
	node_group_remove(&t->g, "m1", PROVIDER_REMOVE);
	node_group_drive(&t->g);
	played_answer(ERROR_NONE);
	look_for(t, MINUTE); /* it shows as if it ran */
	assert_int_equal(cloud.sent, 1);
	cloud.machines[1].state = MACHINE_TERMINATING;
	cloud.desired = 1;
	look_for(t, 15 * SECOND);
	cloud.machines[1].state = MACHINE_RUNNING;
	cloud.desired = 2;
	look_for(t, 15 * SECOND); /* an old one */
	assert_int_equal(t->g.wanted, 1);
	assert_int_equal(starts.count, 0);
	assert_int_equal(t->g.resized, 0);
	assert_int_equal(cloud.sent, 1);
}

/* deleteMachines of AKS goes on after its answer, and the count of the pool may fall only with its end: no machine came
 * in the place of the one that goes, and nobody else lowered anything. */
static void a_size_that_falls_after_its_machines_is_ours(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 3);
	node_group_remove(&t->g, "m2", PROVIDER_REMOVE);
	node_group_remove(&t->g, "m1", PROVIDER_REMOVE);
	node_group_drive(&t->g);
	cloud.operation = "delete-1";
	cloud.is_busy = true;
	played_answer(ERROR_NONE);
	cloud.operation = NULL;
	cloud.machines[2].state = cloud.machines[1].state = MACHINE_TERMINATING;
	look_for(t, MINUTE);
	assert_int_equal(t->g.wanted, 1);
	assert_int_equal(starts.count, 0);
	cloud.count = 2; /* one is gone, and the size is what it was */
	look_for(t, MINUTE);
	assert_int_equal(t->g.wanted, 1);
	cloud.count = 1;
	cloud.desired = 1;
	cloud.is_busy = false;
	look_for(t, MINUTE);
	assert_int_equal(t->g.wanted, 1);
	assert_int_equal(t->g.resized, 0);
	assert_int_equal(starts.count, 0);
	assert_int_equal(starts.event_count, 0);
	assert_int_equal(cloud.sent, 1);
}

/* Of AKS, where pool and machines are two reads: the pool is of before the removal, the list of after it, and the
 * operation is over. Nobody else changed the size, however they follow each other. */
static void falls_by_old_reads(struct stage_of_test *t, millis operation)
{
	played_run(t, 4);
	node_group_remove(&t->g, "m3", PROVIDER_REMOVE);
	node_group_remove(&t->g, "m2", PROVIDER_REMOVE);
	node_group_drive(&t->g);
	cloud.operation = "delete-1";
	cloud.takes_turns = cloud.is_busy = true;
	played_answer(ERROR_NONE);
	for (; operation > 0; operation -= MINUTE)
		look_for(t, MINUTE);
	cloud.operation = NULL;
	look_for(t, 15 * SECOND);
	cloud.count = 2;
	cloud.is_busy = false; /* as before it began */
	look_for(t, 15 * SECOND);
	cloud.desired = 2;
	look_for(t, 15 * SECOND);
	cloud.desired = 4;
	cloud.is_busy = true; /* as it went on */
	look_for(t, 15 * SECOND);
	cloud.desired = 2;
	cloud.is_busy = false;
	look_for(t, MINUTE);
	assert_int_equal(t->g.resized, 0);
	assert_false(node_group_is_held(&t->g));
	assert_int_equal(t->g.wanted, 2);
	assert_int_equal(starts.count, 0);
	assert_int_equal(cloud.sent, 1);
}

static void an_old_size_beside_a_newer_list_is_not_believed(void **state)
{
	falls_by_old_reads(*state, 0);
}

static void nor_is_it_once_an_operation_took_its_time(void **state)
{
	falls_by_old_reads(*state, 5 * MINUTE);
}

/* The next removal goes on, and pool and list are both of the one before, as it went on. */
static void what_went_does_not_come_back_while_the_cloud_is_at_work(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 3);
	node_group_remove(&t->g, "m2", PROVIDER_REMOVE);
	node_group_drive(&t->g);
	cloud.operation = "delete-1";
	cloud.takes_turns = true;
	played_answer(ERROR_NONE);
	cloud.count = 2;
	cloud.desired = 2;
	look_for(t, 15 * SECOND);
	node_group_remove(&t->g, "m1", PROVIDER_REMOVE);
	look_for(t, 30 * SECOND);
	cloud.operation = "delete-2";
	played_answer(ERROR_NONE);
	cloud.is_busy = true;
	cloud.count = 3;
	cloud.desired = 3;
	look_for(t, 15 * SECOND);
	cloud.count = 2; /* the list alone is newer */
	look_for(t, 15 * SECOND);
	cloud.is_busy = false;
	cloud.count = 1;
	cloud.desired = 1;
	look_for(t, 15 * SECOND);
	assert_int_equal(t->g.resized, 0);
	assert_int_equal(t->g.wanted, 1);
	assert_int_equal(starts.count, 0);
	assert_int_equal(cloud.sent, 2);
}

/* The operation is over, and the size never fell: the cloud put another in its place. */
static void a_size_that_never_falls_is_what_there_is(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 2);
	node_group_remove(&t->g, "m1", PROVIDER_REMOVE);
	node_group_drive(&t->g);
	cloud.operation = "delete-1";
	cloud.is_busy = true;
	played_answer(ERROR_NONE);
	cloud.operation = NULL;
	cloud.machines[1].state = MACHINE_TERMINATING;
	look_for(t, MINUTE);
	assert_int_equal(t->g.wanted, 1);
	cloud.count = 1;
	cloud.is_busy = false;
	look_for(t, 15 * SECOND);
	assert_int_equal(t->g.wanted, 2);
	assert_int_equal(t->g.resized, 0);
}

/* It was to end, and ended by itself: the cloud replaced it, and what is needed by then is there without a purchase. */
static void what_replaces_one_that_was_to_end_is_not_bought_as_well(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 1);
	node_group_remove(&t->g, "m0", PROVIDER_REMOVE);
	node_group_drive(&t->g);
	played_answer(ERROR_NONE);
	look_for(t, MINUTE); /* it shows as if it ran */
	assert_int_equal(t->g.wanted, 0);
	played_ask(t, 1);
	cloud.count = cloud.node_count = 0; /* of the same size: another is launched in its place */
	look_for(t, 15 * SECOND);
	assert_int_equal(t->g.wanted, 1);
	assert_int_equal(starts.count, 1);
	played_add_machine(MACHINE_PENDING); /* of the same name in this cloud */
	cloud.machines[0].launched_at = clock_now(&t->clock);
	look_for(t, 15 * SECOND);
	assert_string_equal(starts.items[0].machine, "m0");
	assert_int_equal(cloud.sent, 1);
	assert_int_equal(t->g.resized, 0);
}

static void a_yes_without_effect_is_a_refusal(void **state)
{
	struct stage_of_test *t = *state;
	int64_t before;

	played_run(t, 1);
	before = growth_allow(&t->g, 0) + t->g.growth.level_milli;
	played_ask(t, 3);
	played_answer(ERROR_NONE);
	look_for(t, LAG_MOST + 15 * SECOND);
	assert_int_equal(cloud.sent, 1);
	assert_int_equal(t->g.wanted, 1);
	assert_int_equal(starts.count, 0);
	assert_int_equal(t->refused, 3); /* so that other groups are tried */
	assert_int_equal(starts.events[0].event.what, EVENT_REFUSED);
	assert_int_equal(starts.events[0].event.value, ERROR_UNAVAILABLE);
	assert_int_equal(t->g.resized, 0);
	assert_int_equal(t->g.growth.level_milli, before);
	assert_string_equal(t->g.unseen.token, cloud.tokens[0]);
	assert_int_equal(t->g.unseen.total, 3);
}

static void one_fewer_than_accepted_is_a_refusal_of_one(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 1);
	played_ask(t, 3);
	cloud.desired = 3;
	played_answer(ERROR_NONE);
	look_for(t, LAG_MOST + 15 * SECOND);
	assert_int_equal(t->g.wanted, 3);
	assert_int_equal(t->refused, 1);
	assert_int_equal(t->g.resized, 0);
	assert_int_equal(starts.count, 2);
}

/* Of two that were named one shows as gone: where each is a call of its own the other is on its way, too. */
static void what_is_ended_one_by_one_all_goes(void **state)
{
	for (int one_by_one = 0; one_by_one < 2; one_by_one++) {
		struct stage_of_test *t = *state;
		cloud.ends_one_by_one = one_by_one;
		played_run(t, 2);
		node_group_remove(&t->g, "m0", PROVIDER_REMOVE);
		node_group_remove(&t->g, "m1", PROVIDER_REMOVE);
		node_group_drive(&t->g);
		played_expect(PROVIDER_REMOVE, 0);
		cloud.machines[0].state = MACHINE_TERMINATING;
		cloud.desired = 1;
		played_answer(ERROR_NONE);
		look_for(t, MINUTE);
		assert_int_equal(t->g.must_look, one_by_one); /* it is not believed */
		played_tear_down(state);
		played_set_up(state);
	}
}

/* Two are asked for and the answer is lost; until they are asked for again their starts are given up. */
static void ask_for_nobody(struct stage_of_test *t)
{
	played_run(t, 1);
	played_ask(t, 2);
	played_answer(ERROR_TIMEOUT);
	while (starts.count)
		starts_drop(&starts, 0);
	played_wait_over(t);
}

static void what_nobody_waits_for_is_not_asked_for_again(void **state)
{
	struct stage_of_test *t = *state;

	ask_for_nobody(t);
	look_for(t, LAG_MOST + MINUTE);
	assert_int_equal(cloud.sent, 1);
	assert_int_equal(t->g.wanted, 1);
	assert_string_equal(t->g.operation.token, "");
	played_ask(t, 1); /* a later wish is another call */
	assert_int_equal(cloud.sent, 2);
	played_expect(PROVIDER_GROW, 2);
	assert_string_not_equal(cloud.tokens[0], cloud.tokens[1]);
}

/* It was accepted all the same, and shows late: what came is there, and nobody else is blamed. */
static void what_nobody_waits_for_may_come_all_the_same(void **state)
{
	struct stage_of_test *t = *state;

	ask_for_nobody(t);
	look_for(t, MINUTE);
	cloud.desired = 3;
	look_for(t, LAG_MOST);
	assert_string_equal(t->g.operation.token, "");
	assert_int_equal(t->g.resized, 0);
}

/* Another life, on the same history, before the write shows. */
static void a_new_life_knows_what_the_last_one_asked_for(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 1);
	node_group_note_accepted(&t->g, &(struct accepted_call){ .verb = PROVIDER_GROW,
								 .desired = 4,
								 .at = clock_now(&t->clock),
								 .mono = clock_mono(&t->clock) });
	t->g.is_known = false;
	look_for(t, MINUTE);
	assert_false(t->g.is_known);
	cloud.desired = 4;
	look_for(t, 15 * SECOND);
	assert_true(t->g.is_known);
	assert_int_equal(t->g.wanted, 4);
	assert_int_equal(starts.count, 3);
}

/* The cloud counts from an older read than ours: it is told by how many. */
static void a_growth_says_by_how_many(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 2);
	played_ask(t, 3);
	assert_int_equal(cloud.change->desired, 5);
	assert_int_equal(cloud.change->change, 3);
}

/* Two of three were launched, and then there were no more. */
static void a_part_that_was_launched_is_kept(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 1);
	played_ask(t, 3);
	cloud.change->launched = 2;
	played_answer(ERROR_STOCKOUT);
	assert_int_equal(t->refused, 1);
	assert_int_equal(t->g.wanted, 3);
	look_for(t, MINUTE); /* shows neither yet */
	cloud.desired = 3;
	look_for(t, 15 * SECOND);
	assert_int_equal(t->g.wanted, 3);
	assert_int_equal(t->g.resized, 0);
	assert_int_equal(starts.count, 2);
	assert_int_equal(cloud.sent, 1);
}

/* The size was taken, and what was to be done after it was not allowed. */
static void a_size_that_was_taken_is_not_refused(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 1);
	played_ask(t, 2);
	cloud.change->was_taken = true;
	played_answer(ERROR_AUTH);
	assert_int_equal(t->refused, 0);
	assert_int_equal(t->g.wanted, 3);
	cloud.desired = 3;
	look_for(t, 15 * SECOND);
	assert_int_equal(t->g.wanted, 3);
	assert_int_equal(t->g.resized, 0);
	assert_int_equal(starts.count, 2);
	assert_int_equal(cloud.sent, 1);
}

static void whoever_lowers_it_again_and_again_is_met_with_a_hold(void **state)
{
	struct stage_of_test *t = *state;
	size_t sent;

	played_run(t, 1);
	for (int i = 0; i < 3; i++) {
		played_ask(t, 2);
		cloud.desired = 3;
		played_answer(ERROR_NONE);
		look_for(t, 15 * SECOND);
		cloud.desired = 1;
		look_for(t, LAG_MOST);
		assert_int_equal(t->g.resized, i + 1);
	}
	assert_true(node_group_is_held(&t->g));
	sent = cloud.sent;
	assert_int_equal(node_group_grow(&t->g, 2), 0);
	assert_false(node_group_remove(&t->g, "m0", PROVIDER_REMOVE));
	look_for(t, CONTENTION_QUIET - MINUTE);
	assert_true(node_group_is_held(&t->g));
	assert_int_equal(cloud.sent, sent);
	look_for(t, MINUTE + 15 * SECOND);
	assert_false(node_group_is_held(&t->g));
	assert_int_equal(node_group_grow(&t->g, 2), 2);
}

/* The operation's state is asked for at another place than the size, and is no older than the question. */
static void a_busy_look_of_before_a_growth_is_not_believed(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 1);
	played_ask(t, 2);
	played_answer(ERROR_NONE);
	cloud.is_busy = true;
	look_for(t, 15 * SECOND);
	assert_int_equal(t->g.resized, 0);
	assert_int_equal(t->g.wanted, 3);
	cloud.desired = 3;
	look_for(t, 15 * SECOND);
	assert_int_equal(t->g.resized, 0);
	assert_int_equal(t->g.wanted, 3);
	assert_int_equal(cloud.sent, 1);
}

/* It names a machine and lowers the size by it, a quarter of an hour after it came, and again after each hold. */
static void whoever_ends_what_we_buy_is_left_alone_for_longer_each_time(void **state)
{
	struct stage_of_test *t = *state;
	int rounds = 0;

	played_run(t, 0);
	cloud.replaces_lost = true;
	for (millis hold = CONTENTION_QUIET; hold <= CONTENTION_QUIET_MOST; hold *= 2) {
		for (; !t->g.contention.is_held; rounds++) {
			look_for(t, 10 * MINUTE); /* what somebody took away is not bought back at once */
			played_ask(t, 1);
			cloud.desired = 1;
			played_add_machine(MACHINE_RUNNING);
			cloud.node_count = 1;
			played_answer(ERROR_NONE);
			look_for(t, 15 * MINUTE);
			cloud.count = cloud.node_count = 0;
			cloud.desired = 0;
			look_for(t, LAG_MOST);
		}
		look_for(t, hold - LAG_MOST - 15 * SECOND);
		assert_true(t->g.contention.is_held);
		look_for(t, LAG_MOST + MINUTE);
		assert_false(t->g.contention.is_held);
	}
	assert_int_equal(rounds, 7); /* three until the first, and one more before each that follows */
}

/* Somebody raised the size, and no look shows it yet: setting one lower would end what is there. */
static void a_list_older_than_its_nodes_sets_no_size(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 1);
	cloud.list_lags = true;
	played_ask(t, 1);
	assert_null(cloud.change);
	assert_true(node_group_waits_for_list(&t->g));
	assert_null(cloud.look);
	clock_turn(&t->clock, 6 * SECOND);
	node_group_drive(&t->g);
	assert_non_null(cloud.look);
	played_look(t);
	assert_null(cloud.change);
	cloud.list_lags = false;
	node_group_drive(&t->g);
	played_expect(PROVIDER_GROW, 2);
	played_answer(ERROR_NONE);
}

/* The cancel came too late for one, or the look is older: by its size the pool would be filled with what was cancelled.
 */
static void nothing_stands_by_by_a_size_of_before_a_cancel(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 1);
	played_ask(t, 1);
	cloud.desired = 2;
	played_answer(ERROR_NONE);
	played_look(t);
	starts_drop(&starts, 0);
	node_group_give_up(&t->g, 1);
	node_group_drive(&t->g);
	played_expect(PROVIDER_CANCEL, 1);
	played_answer(ERROR_NONE);
	node_group_set_standby(&t->g, 1);
	played_add_machine(MACHINE_RUNNING);
	cloud.node_count = 2;
	look_for(t, MINUTE);
	assert_null(cloud.change);
	look_for(t, LAG_MOST);
	played_expect(PROVIDER_STANDBY, 1);
	played_answer(ERROR_NONE);
}

/* Its node joined, with its GPU, before a look told of the machine: until that is ready it is on its way. */
static void what_is_listed_after_its_node_came_is_on_its_way(void **state)
{
	struct stage_of_test *t = *state;

	played_run(t, 1);
	played_add_machine(MACHINE_RUNNING);
	cloud.node_count = 2;
	cloud.desired = 2;
	cloud.are_not_ready = true;
	played_look(t);
	assert_int_equal(played_starts(START_COLD), 1);
}

/* A new life begins with nodes that joined with their GPUs and are not ready: of those that did so of late some may
 * never have been, and what they will hold is not to be bought again; others stopped being. */
static void a_new_life_waits_for_nodes_that_joined_of_late(void **state)
{
	static const millis ago[] = { 0, MINUTE, DAY };

	for (size_t i = 0; i < sizeof ago / sizeof *ago; i++) {
		struct stage_of_test *t = *state;
		cloud.are_not_ready = true;
		cloud.joined = clock_now(&t->clock) - ago[i];
		played_add_machine(MACHINE_RUNNING);
		cloud.node_count = 1;
		cloud.desired = 1;
		played_look(t);
		assert_int_equal(played_starts(START_COLD), ago[i] <= MINUTE);
		played_tear_down(state);
		played_set_up(state);
	}
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, played_set_up, played_tear_down)
	const struct CMUnitTest tests[] = {
		CASE(an_old_look_after_a_growth_buys_nothing_again),
		CASE(a_look_that_takes_long_is_followed_by_another),
		CASE(looks_out_of_order_buy_nothing_again),
		CASE(what_boots_is_not_gone_by_an_old_list),
		CASE(a_machine_that_went_does_not_come_back_by_an_old_look),
		CASE(a_size_that_falls_after_its_machines_is_ours),
		CASE(an_old_size_beside_a_newer_list_is_not_believed),
		CASE(nor_is_it_once_an_operation_took_its_time),
		CASE(what_went_does_not_come_back_while_the_cloud_is_at_work),
		CASE(a_size_that_never_falls_is_what_there_is),
		CASE(what_replaces_one_that_was_to_end_is_not_bought_as_well),
		CASE(a_yes_without_effect_is_a_refusal),
		CASE(one_fewer_than_accepted_is_a_refusal_of_one),
		CASE(what_nobody_waits_for_is_not_asked_for_again),
		CASE(what_nobody_waits_for_may_come_all_the_same),
		CASE(a_new_life_knows_what_the_last_one_asked_for),
		CASE(a_growth_says_by_how_many),
		CASE(a_part_that_was_launched_is_kept),
		CASE(a_size_that_was_taken_is_not_refused),
		CASE(whoever_lowers_it_again_and_again_is_met_with_a_hold),
		CASE(a_busy_look_of_before_a_growth_is_not_believed),
		CASE(what_is_ended_one_by_one_all_goes),
		CASE(a_list_older_than_its_nodes_sets_no_size),
		CASE(nothing_stands_by_by_a_size_of_before_a_cancel),
		CASE(what_is_listed_after_its_node_came_is_on_its_way),
		CASE(a_new_life_waits_for_nodes_that_joined_of_late),
		CASE(whoever_ends_what_we_buy_is_left_alone_for_longer_each_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
