/* Sizes, money, modes and refusals: what holds a wish, and by which name. */
#include "base/exact.h"
#include "base/random.h"
#include "tests/unit/policy/toy.h"

static void limits_hold_and_are_named(void **state)
{
	struct toy t;

	(void)state;
	toy_init(&t, 1);
	t.groups[0].max_nodes = 7;
	toy_begin(&t, 2);
	t.demand = 20;
	toy_run(&t, HOUR);
	assert_int_equal(toy_ready(&t), 7);
	assert_int_equal(t.plan.decision.held_by, LIMIT_MAX);
	toy_end(&t);

	toy_init(&t, 1);
	t.pool.budget_per_hour = 6500000; /* six replicas at a dollar */
	toy_begin(&t, 2);
	t.demand = 20;
	toy_run(&t, HOUR);
	assert_int_equal(toy_ready(&t), 6);
	assert_int_equal(t.plan.decision.held_by, LIMIT_BUDGET);
	toy_end(&t);

	toy_init(&t, 1);
	t.groups[0].min_nodes = 4;
	toy_begin(&t, 0);
	toy_run(&t, HOUR);
	assert_int_equal(toy_ready(&t), 4);
	toy_end(&t);
}

static void headroom_is_beyond_demand_and_follows_the_schedule(void **state)
{
	struct toy t;

	(void)state;
	toy_init(&t, 1);
	t.pool.headroom_min = 3;
	toy_begin(&t, 2);
	t.demand = 10;
	toy_run(&t, HOUR);
	assert_in_range(toy_ready(&t), 13, 15);
	/* Opens in 30 minutes: asked for about one lead time before, there when it opens. */
	t.schedule_next_floor = 8;
	t.schedule_next_at = t.now + 30 * MINUTE;
	toy_run(&t, 15 * MINUTE);
	assert_in_range(toy_ready(&t), 13, 15);
	toy_run(&t, 15 * MINUTE);
	assert_true(toy_ready(&t) >= 18);
	toy_end(&t);
}

/* In twelve hours of Poisson arrivals at that level, after the first two. */
static int64_t count_moves_of_the_floor(uint64_t seed, int64_t slots, double level)
{
	struct random chance = random_stream(seed, "bounds-test");
	struct toy t;
	int64_t moves = 0, floor = 0;

	toy_init(&t, 1);
	t.slots = (double)slots;
	t.pool.max_sequences = slots;
	t.pool.headroom_min = 2;
	toy_begin(&t, (int64_t)level + 3);
	for (int i = 0; i < 14 * 240; i++) {
		double noise = exact_sqrt(level * t.service / (t.slots * TICK / 1000)) * random_normal(&chance);
		t.demand = level + noise > 0 ? level + noise : 0;
		const struct pool_decision *d = toy_tick(&t);
		moves += i >= 2 * 240 && d->floor != floor;
		floor = d->floor;
		assert_true(floor * 1000 >= d->level_milli + 2000 - 50);
	}
	toy_end(&t);
	return moves;
}

/* Each move buys a machine or gives one back. Without the memory of a lead time 3292, 3233 and 6307 of them. */
static void noise_about_a_whole_number_does_not_move_the_floor(void **state)
{
	static const struct {
		int64_t slots;
		double from;
		int64_t most;
	} cases[] = { { 8, 3, 500 }, { 100, 10, 300 }, { 100, 40, 500 } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t moves = 0;
		for (int tenth = 0; tenth < 10; tenth++)
			moves += count_moves_of_the_floor((uint64_t)tenth + 1, cases[i].slots,
							  cases[i].from + .05 + .1 * tenth);
		if (moves > cases[i].most)
			fail_msg("from %.0f replicas of %lld sequences: %lld moves", cases[i].from,
				 (long long)cases[i].slots, (long long)moves);
	}
}

/* What headroom is beyond does not stay up for longer than a start takes. */
static void the_floor_follows_demand_down(void **state)
{
	struct toy t;

	(void)state;
	toy_init(&t, 1);
	t.pool.headroom_min = 3;
	toy_begin(&t, 30);
	t.demand = 20;
	toy_run(&t, HOUR);
	assert_int_equal(t.plan.decision.floor, 23);
	t.demand = 5;
	toy_run(&t, 10 * MINUTE);
	assert_int_equal(t.plan.decision.floor, 8);
	toy_end(&t);
}

static void a_budget_is_kept_at_the_price_of_each_group(void **state)
{
	struct toy t;

	(void)state;
	toy_init(&t, 2);
	t.groups[1].price_per_hour = 5000000;
	t.pool.budget_per_hour = 20000000;
	t.refuse[0] = true;
	toy_begin(&t, 3);
	t.demand = 15;
	toy_run(&t, 2 * HOUR);
	assert_int_equal(t.ready[0] + 5 * t.ready[1] <= 20, 1);
	assert_int_equal(t.ready[1], 3);
	assert_true(t.plan.decision.dollars_per_hour <= 20000000);
	toy_end(&t);
}

static void a_group_that_loses_its_smallest_size_gets_it_back(void **state)
{
	struct toy t;

	(void)state;
	toy_init(&t, 2);
	t.groups[1].min_nodes = 3;
	toy_begin(&t, 4);
	t.demand = 3;
	toy_run(&t, HOUR);
	assert_int_equal(t.ready[1], 3);
	t.ready[1] = 0;
	toy_run(&t, 10 * MINUTE);
	assert_int_equal(t.ready[1], 3);
	toy_run(&t, 12 * HOUR);
	assert_int_equal(t.ready[1], 3);
	assert_in_range(t.ready[0], 0, 2);
	toy_end(&t);
}

static void headroom_has_a_ceiling(void **state)
{
	struct toy t;

	(void)state;
	toy_init(&t, 1);
	t.pool.headroom_max = 2;
	toy_begin(&t, 30);
	t.demand = 10;
	toy_run(&t, HOUR);
	assert_in_range(toy_ready(&t), 10, 12);
	toy_end(&t);
}

static void modes_that_do_not_act_ask_for_nothing(void **state)
{
	static const struct {
		enum pool_mode mode;
		enum limit limit;
	} cases[] = { { MODE_OBSERVE, LIMIT_OBSERVE }, { MODE_PAUSED, LIMIT_PAUSED } };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct toy t;
		toy_init(&t, 1);
		t.pool.mode = cases[i].mode;
		toy_begin(&t, 2);
		t.demand = 9;
		toy_run(&t, HOUR);
		assert_int_equal(toy_ready(&t), 2);
		assert_int_equal(t.asked_cold, 0);
		assert_int_equal(t.plan.decision.held_by, cases[i].limit);
		assert_true(t.plan.decision.wished > 9);
		toy_end(&t);
	}
}

static void refusals_back_off_longer_each_time(void **state)
{
	struct toy t;
	int asks = 0;

	(void)state;
	toy_init(&t, 1);
	toy_begin(&t, 2);
	t.refuse[0] = true;
	t.demand = 9;
	for (int i = 0; i < 4 * 240; i++) {
		toy_tick(&t);
		asks += t.plan.groups[0].cold > 0;
	}
	assert_in_range(asks, 4, 14); /* four hours: 3, 6, 12, 24, 30, 30 ... minutes apart */
	assert_int_equal(t.plan.decision.held_by, LIMIT_STOCKOUT);
	toy_end(&t);
}

static void a_stockout_falls_back_and_is_probed_again(void **state)
{
	struct toy t;

	(void)state;
	toy_init(&t, 2);
	toy_begin(&t, 5);
	t.demand = 4;
	toy_run(&t, HOUR);
	t.refuse[0] = true;
	t.demand = 12;
	toy_run(&t, 20 * MINUTE);
	assert_true(t.ready[1] >= 6);
	assert_true(t.plan.groups[0].refusals >= 1);
	t.refuse[0] = false;
	toy_run(&t, 40 * MINUTE);
	t.demand = 30;
	toy_run(&t, 30 * MINUTE);
	assert_true(t.ready[0] >= 12);
	assert_int_equal(t.plan.groups[0].refusals, 0);
	toy_end(&t);
}

/* Whatever the rule misses is wished, or the record says how much is not and why. */
static void what_cuts_a_wish_is_named(void **state)
{
	struct toy t;
	int64_t chases = 0;

	(void)state;
	toy_init(&t, 1);
	toy_keep_stock(&t, 20000);
	toy_begin(&t, 5);
	for (int i = 0; i < 4000; i++) {
		t.demand = i % 400 < 40 ? 40 : i % 400 < 200 ? 12 : 5;
		const struct pool_decision *d = toy_tick(&t);
		assert_true((d->wished + d->unwished) * 1000 >= d->low_milli);
		assert_int_equal(d->wish_cut_by != WISH_CUT_NONE, d->unwished > 0);
		chases += d->wish_cut_by == WISH_CUT_CHASE && d->wished * 1000 < d->low_milli;
	}
	assert_true(chases > 0);
	toy_end(&t);
}

static void a_job_that_has_all_its_places_says_so(void **state)
{
	struct toy t;
	bool was_cut = false;

	(void)state;
	toy_init(&t, 1);
	t.pool.class = CLASS_TRAINING;
	toy_begin(&t, 4);
	t.demand = 4;
	for (int i = 0; i < 240; i++) {
		const struct pool_decision *d = toy_tick(&t);
		assert_true((d->wished + d->unwished) * 1000 >= d->low_milli);
		was_cut |= d->wish_cut_by == WISH_CUT_WORK;
	}
	assert_true(was_cut);
	toy_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_hold_and_are_named),
		cmocka_unit_test(headroom_is_beyond_demand_and_follows_the_schedule),
		cmocka_unit_test(noise_about_a_whole_number_does_not_move_the_floor),
		cmocka_unit_test(the_floor_follows_demand_down),
		cmocka_unit_test(a_budget_is_kept_at_the_price_of_each_group),
		cmocka_unit_test(a_group_that_loses_its_smallest_size_gets_it_back),
		cmocka_unit_test(headroom_has_a_ceiling),
		cmocka_unit_test(modes_that_do_not_act_ask_for_nothing),
		cmocka_unit_test(refusals_back_off_longer_each_time),
		cmocka_unit_test(what_cuts_a_wish_is_named),
		cmocka_unit_test(a_job_that_has_all_its_places_says_so),
		cmocka_unit_test(a_stockout_falls_back_and_is_probed_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
