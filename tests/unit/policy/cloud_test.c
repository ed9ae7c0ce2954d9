/* What clouds tell of themselves: how long they have none, what they cannot do at all; and clocks that lie. */
#include "base/random.h"
#include "tests/unit/policy/toy.h"

static void a_cloud_that_says_how_long_is_left_alone_for_so_long(void **state)
{
	static const struct {
		enum event_kind what;
		enum limit limit;
	} cases[] = { { EVENT_NO_STOCK, LIMIT_STOCKOUT }, { EVENT_NO_QUOTA, LIMIT_QUOTA } };
	struct toy t;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		toy_init(&t, 1);
		toy_begin(&t, 5);
		t.demand = 4;
		toy_run(&t, HOUR);
		t.demand = 20;
		toy_event(&t, 0, (int64_t)cases[i].what, START_COLD, HOUR, 1);
		toy_event(&t, 0, EVENT_REFUSED, START_COLD, ERROR_STOCKOUT,
			  1); /* of the same failure: not longer for it */
		int64_t asked = t.asked_cold;
		millis then = t.now;
		toy_run(&t, 55 * MINUTE);
		assert_int_equal(t.asked_cold, asked);
		assert_int_equal(t.plan.groups[0].blocked_until, then + TICK + HOUR);
		assert_int_equal(t.plan.decision.held_by, cases[i].limit);
		toy_run(&t, 10 * MINUTE);
		assert_true(t.asked_cold > asked); /* probed again */
		toy_end(&t);
	}
}

static void the_cheaper_group_is_asked_again_when_it_is_back(void **state)
{
	struct toy t;

	(void)state;
	toy_init(&t, 2);
	toy_begin(&t, 5);
	t.demand = 4;
	toy_run(&t, HOUR);
	t.demand = 12;
	toy_event(&t, 0, EVENT_NO_STOCK, START_COLD, 30 * MINUTE, 1);
	toy_run(&t, 20 * MINUTE);
	assert_true(t.ready[1] > 0);
	int64_t dearer = t.ready[1];
	toy_run(&t, 20 * MINUTE);
	t.demand = 20;
	toy_run(&t, 20 * MINUTE);
	assert_int_equal(t.ready[1], dearer);
	assert_true(toy_ready(&t) >= 20);
	toy_end(&t);
}

static void a_part_without_stock_blocks_nothing(void **state)
{
	struct toy t;

	(void)state;
	toy_init(&t, 2);
	toy_begin(&t, 5);
	t.demand = 4;
	toy_run(&t, HOUR);
	t.demand = 12;
	toy_event(&t, 0, EVENT_MISSED, START_COLD, ERROR_NONE, 1);
	toy_run(&t, 20 * MINUTE);
	assert_int_equal(t.ready[1], 0);
	assert_true(t.ready[0] >= 12);
	toy_end(&t);
}

static void a_group_that_has_no_standby_is_not_asked_for_any(void **state)
{
	struct toy t;

	(void)state;
	toy_init(&t, 1);
	toy_keep_stock(&t, 20000);
	toy_begin(&t, 5);
	t.demand = 4;
	toy_event(&t, 0, EVENT_STANDBY, 0, 0, 1);
	for (int i = 0; i < 2000; i++) {
		t.demand = i / 100 % 2 ? 12 : 4;
		toy_tick(&t);
		const struct group_decision *d = &t.plan.groups[0];
		assert_int_equal(d->wake + d->refill + d->stop, 0);
	}
	assert_true(policy_lacks_standby(t.memory, 0));
	toy_event(&t, 0, EVENT_STANDBY, 0, 1, 1); /* it is to be had again */
	bool is_used = false;
	for (int i = 0; i < 2000; i++) {
		t.demand = i / 100 % 2 ? 12 : 4;
		toy_tick(&t);
		is_used |= t.plan.groups[0].refill + t.plan.groups[0].stop > 0;
	}
	assert_true(is_used);
	toy_end(&t);
}

static void what_it_lacks_outlives_a_checkpoint(void **state)
{
	CLEANUP(buf_release) struct buf bytes = { 0 };
	struct toy t;
	struct error e;

	(void)state;
	toy_init(&t, 1);
	toy_keep_stock(&t, 20000);
	toy_begin(&t, 5);
	toy_event(&t, 0, EVENT_STANDBY, 0, 0, 1);
	toy_tick(&t);
	policy_state_encode(t.memory, &bytes);
	struct policy_state *again = policy_state_decode(bytes.text, bytes.len, &t.fleet, &e);
	assert_non_null(again);
	assert_true(policy_lacks_standby(again, 0));
	policy_state_free(again);
	toy_end(&t);
}

/* However much is offered at once, or lied about: three quarters of the largest size within five minutes. */
static void growth_is_bounded_and_named(void **state)
{
	struct toy t;
	bool was_held = false;

	(void)state;
	toy_init(&t, 1);
	t.groups[0].max_nodes = 200;
	toy_begin(&t, 10);
	t.demand = 8;
	toy_run(&t, HOUR);
	int64_t before = t.asked_cold;
	t.demand = 500;
	for (int i = 0; i < 20; i++) {
		toy_tick(&t);
		was_held |= t.plan.decision.held_by == LIMIT_GROWTH;
		assert_true(t.asked_cold - before <= 150);
	}
	assert_true(was_held);
	toy_end(&t);
}

/* Years forth and back: nothing above the largest size or the budget is asked for, and it goes on afterwards. */
static void a_clock_that_lies_buys_nothing_above_a_limit(void **state)
{
	static const millis jumps[] = { 4 * 365 * DAY, -4 * 365 * DAY, -20 * 365 * DAY, 60 * 365 * DAY };
	struct toy t;

	(void)state;
	for (size_t i = 0; i < sizeof jumps / sizeof *jumps; i++) {
		toy_init(&t, 2);
		t.pool.budget_per_hour = 30000000;
		t.groups[0].max_nodes = t.groups[1].max_nodes = 15;
		toy_begin(&t, 5);
		t.demand = 8;
		toy_run(&t, HOUR);
		toy_event(&t, 0, EVENT_NO_STOCK, START_COLD, HOUR, 1);
		toy_run(&t, MINUTE);
		t.now += jumps[i];
		for (int k = 0; k < 1000; k++) {
			t.demand = 8 + k / 100;
			toy_tick(&t);
			for (size_t g = 0; g < 2; g++)
				assert_true(t.plan.groups[g].nodes_desired <= 15);
			assert_true(t.ready[0] + t.ready[1] + toy_on_the_way(&t) <= 30);
			assert_true(t.plan.decision.dollars_per_hour <= 30000000);
			assert_true(t.plan.groups[0].blocked_until <= t.now + DAY);
		}
		toy_end(&t);
	}
}

/* A checkpoint that somebody made up is refused, or harmless: it is only what is remembered, never what may be had. */
static void what_is_remembered_buys_nothing_above_a_limit(void **state)
{
	struct random chance = random_stream(7, "checkpoints");
	int taken = 0;

	(void)state;
	for (int i = 0; i < 400; i++) {
		CLEANUP(buf_release) struct buf bytes = { 0 };
		struct error e;
		struct toy t;
		toy_init(&t, 2);
		t.groups[0].max_nodes = t.groups[1].max_nodes = 9;
		t.pool.budget_per_hour = 15000000;
		toy_begin(&t, 5);
		t.demand = 4;
		toy_run(&t, 5 * MINUTE);
		policy_state_encode(t.memory, &bytes);
		for (int k = 0; k < 1 + i % 3; k++) { /* in the groups, at the end, and anywhere */
			size_t words = bytes.len / 8, at = random_next(&chance) % (k ? words : 8);
			uint64_t word = random_next(&chance) >> random_next(&chance) % 64;
			memcpy(bytes.text + 8 * (k ? at : words - 1 - at), &word, sizeof word);
		}
		struct policy_state *m = policy_state_decode(bytes.text, bytes.len, &t.fleet, &e);
		if (m) {
			taken++;
			policy_state_free(t.memory);
			t.memory = m;
		}
		t.demand = 30;
		for (int k = 0; k < 40; k++) {
			toy_tick(&t);
			assert_true(t.plan.groups[0].nodes_desired <= 9 && t.plan.groups[1].nodes_desired <= 9);
			assert_true(t.plan.decision.dollars_per_hour <= 15000000);
		}
		toy_end(&t);
	}
	assert_true(taken > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cloud_that_says_how_long_is_left_alone_for_so_long),
		cmocka_unit_test(the_cheaper_group_is_asked_again_when_it_is_back),
		cmocka_unit_test(a_part_without_stock_blocks_nothing),
		cmocka_unit_test(a_group_that_has_no_standby_is_not_asked_for_any),
		cmocka_unit_test(what_it_lacks_outlives_a_checkpoint),
		cmocka_unit_test(growth_is_bounded_and_named),
		cmocka_unit_test(a_clock_that_lies_buys_nothing_above_a_limit),
		cmocka_unit_test(what_is_remembered_buys_nothing_above_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
