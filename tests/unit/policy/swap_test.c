/* Machines of a dear group: what waking them costs, and how their work moves to a cheaper group. */
#include "controller/policy/swap.h"
#include "tests/unit/policy/toy.h"

/* Standby in a group at 2.7 times the price of the preferred one: days of 4 and 12 replicas. */
static int64_t dear_share_permille(int64_t dear_price, bool is_last_fixed)
{
	struct toy t;
	int64_t dear = 0, all = 0;

	toy_init(&t, 2);
	t.groups[0].price_per_hour = 450000;
	t.groups[1].price_per_hour = dear_price;
	t.groups[1].standby_max_nodes = 20;
	t.groups[1].standby_price_ppm = 20000;
	t.groups[1].standby_lead_time = (struct quantiles){ 90000, 150000 };
	t.refuse[0] = is_last_fixed;
	toy_begin(&t, 5);
	t.standby[1] = 8;
	for (int i = 0; i < 4 * 1440; i++) {
		t.demand = i / 720 % 2 ? 12 : 4;
		toy_tick(&t);
		assert_true(t.plan.groups[0].release == 0 || t.plan.groups[0].cold == 0);
		if (i % 720 > 360) {
			dear += t.ready[1];
			all += toy_ready(&t);
		}
	}
	assert_true(t.asked_wake > 0);
	toy_end(&t);
	return 1000 * dear / all;
}

static void what_was_woken_in_a_dear_group_moves_to_a_cheaper_one(void **state)
{
	(void)state;
	assert_true(dear_share_permille(1210000, false) < 50);
	/* Nothing to win, and nowhere to go. */
	assert_true(dear_share_permille(450000, false) > 200);
	assert_true(dear_share_permille(1210000, true) > 200);
}

/* Replicas serve in a dear group at a steady demand, and none in the first, cheaper one. */
static void begin_dear(struct toy *t, int64_t ready)
{
	toy_init(t, 2);
	toy_keep_stock(t, 20000);
	t->groups[1] = t->groups[0];
	t->groups[1].price_per_hour = 1210000;
	t->groups[0].price_per_hour = 450000;
	t->groups[0].standby_max_nodes = 0;
	toy_begin(t, 0);
	t->ready[1] = ready;
	t->demand = (double)ready - 1;
}

static void a_dear_group_keeps_its_smallest_size(void **state)
{
	struct toy t;

	(void)state;
	begin_dear(&t, 6);
	t.groups[1].min_nodes = 2;
	toy_run(&t, 2 * HOUR);
	int64_t asked = t.asked_cold;
	toy_run(&t, 12 * HOUR);
	assert_int_equal(t.asked_cold, asked);
	assert_int_equal(t.ready[1], 2);
	toy_end(&t);
}

/* What starts in place of others is decided beside them: it needs a pod of its own. */
static void what_moves_is_wished_and_decided(void **state)
{
	struct toy t;
	int64_t moved = 0;

	(void)state;
	begin_dear(&t, 6);
	for (int i = 0; i < 4 * 60; i++) {
		int64_t before = toy_ready(&t);
		const struct pool_decision *d = toy_tick(&t);
		assert_int_equal(d->decided, toy_ready(&t) + toy_on_the_way(&t));
		assert_int_equal(t.plan.groups[1].cold + t.plan.groups[1].swap, 0);
		if (i > 40 && d->swapping > 0)
			assert_true(before >= 6);
		moved += t.plan.groups[0].swap - t.plan.groups[1].swapped;
	}
	assert_int_equal(moved, 0);
	assert_int_equal(t.ready[1], 0);
	toy_end(&t);
}

/* The one that may go does so when the cool-down is over; meanwhile nothing is started for it again. */
static void a_cool_down_does_not_start_what_serves_already(void **state)
{
	struct toy t;

	(void)state;
	begin_dear(&t, 6);
	t.pool.scale_down_after = 20 * MINUTE;
	toy_run(&t, 6 * HOUR);
	assert_int_equal(t.ready[1], 0);
	assert_true(t.asked_cold <= 9);
	toy_end(&t);
}

/* A cloud that takes a stopped machine where a new one is asked for: what wakes in a dear one's place is not cancelled
 * as too many, to be asked for again. */
static void what_moves_may_be_woken(void **state)
{
	struct toy t;

	(void)state;
	begin_dear(&t, 6);
	t.groups[0].standby_max_nodes = 8;
	t.standby[0] = 8;
	t.takes_stopped = true;
	t.pool.headroom_min = 1;
	toy_run(&t, 6 * HOUR);
	assert_int_equal(t.ready[1], 0);
	assert_int_equal(t.ready[0], 6);
	assert_true(t.asked_cold <= 6);
	toy_end(&t);
}

static void pods_of_others_stay_where_they_are(void **state)
{
	struct toy t;

	(void)state;
	begin_dear(&t, 6);
	t.wanted_pods = 6;
	for (int i = 0; i < 6 * 240; i++)
		assert_int_equal(toy_tick(&t)->swapping, 0);
	toy_end(&t);
}

/* A third group is less preferred than both, as cheap as the first, and stays. */
static void it_is_the_dear_one_that_goes(void **state)
{
	struct toy t;
	int64_t gone = 0;

	(void)state;
	begin_dear(&t, 4);
	t.pool.group_count = 3;
	t.fleet.group_count = 3;
	t.groups[2].price_per_hour = 450000;
	policy_state_free(t.memory);
	toy_begin(&t, 0);
	t.ready[2] = 2;
	t.demand = 5;
	for (int i = 0; i < 6 * 240; i++) {
		toy_tick(&t);
		assert_int_equal(t.plan.groups[2].swapped, 0);
		assert_true(t.plan.groups[1].swapped == 0 || t.plan.groups[2].release == 0);
		gone += t.plan.groups[1].swapped;
	}
	assert_int_equal(gone, 4);
	assert_int_equal(t.ready[1], 0);
	toy_end(&t);
}

static int64_t woken_in_days(int64_t price)
{
	struct toy t;

	begin_dear(&t, 0);
	t.groups[1].price_per_hour = price;
	t.ready[0] = 5;
	t.standby[1] = 8;
	for (int i = 0; i < 8 * 1440; i++) {
		t.demand = i / 20 % 12 == 0 ? 9 : 4;
		toy_tick(&t);
	}
	toy_end(&t);
	return t.asked_wake;
}

/* Bursts that pass soon: the dearer waking is, the more is kept hot for them. */
static void a_wake_is_priced_by_what_it_costs_until_it_has_moved(void **state)
{
	struct toy t;

	(void)state;
	begin_dear(&t, 4);
	/* 380 s until it has cost a start; then twice a start's time at 2 prices of which one is the start's; the
	 * start. */
	t.groups[1].price_per_hour = 900000;
	assert_true(swap_charge(&t.fleet, &t.pool, 380, 240) == 380 + 380 + 380 + 240);
	t.groups[1].price_per_hour = 450000;
	assert_true(swap_charge(&t.fleet, &t.pool, 380, 240) == 0);
	toy_end(&t);
	assert_true(woken_in_days(4500000) < woken_in_days(450000) / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_woken_in_a_dear_group_moves_to_a_cheaper_one),
		cmocka_unit_test(a_dear_group_keeps_its_smallest_size),
		cmocka_unit_test(what_moves_is_wished_and_decided),
		cmocka_unit_test(a_cool_down_does_not_start_what_serves_already),
		cmocka_unit_test(what_moves_may_be_woken),
		cmocka_unit_test(pods_of_others_stay_where_they_are),
		cmocka_unit_test(it_is_the_dear_one_that_goes),
		cmocka_unit_test(a_wake_is_priced_by_what_it_costs_until_it_has_moved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
