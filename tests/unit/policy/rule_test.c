#include "controller/policy/rule.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

static const struct tier_times times = { 380, 650, 90, 150, 45, 75 };

static struct demand_view view(double level, double peak)
{
	struct demand_view d = { .level = level,
				 .stock_peak = peak,
				 .service = 10,
				 .break_even = 19000,
				 .stock_max = 50,
				 .replicas_max = 1000,
				 .times = times };

	for (int i = 0; i < HOLDS_MAX; i++)
		d.peak[i] = peak;
	return d;
}

static const struct rule hot = { .factor = 1.1, .spare = .24, .chase = 1 };
static const struct rule lean = { .factor = .9, .spare = -.3, .chase = .05 };
static const struct rule tiered = { .factor = 1.1, .spare = .24, .chase = 1, .stock = .2, .is_tiered = true };

/* Wanted: 1.1 * level + 0.24, asked for with 20 % more than is missing; released down to 1.133 * peak + 0.25. */
static void moves_follow_the_table(void **state)
{
	static const struct {
		const char *what;
		const struct rule *rule;
		double level, peak;
		struct fleet fleet;
		struct scale_actions want; /* only the counts are compared */
	} cases[] = {
		{ "enough", &hot, 10, 10, { .ready = 12 }, { .wished = 12 } },
		{ "between low and high", &hot, 8, 10, { .ready = 11 }, { .wished = 11 } },
		{ "one that is full now and then is enough", &lean, 1.2, 1.3, { .ready = 1 }, { .wished = 1 } },
		{ "one that lacks half of another is not",
		  &lean,
		  1.5,
		  1.5,
		  { .ready = 1 },
		  { .cold = 1, .wished = 2 } },
		{ "of two, one is let go", &lean, 1, 1.2, { .ready = 2 }, { .release = 1, .wished = 1 } },
		{ "the last stays", &lean, .1, .1, { .ready = 1 }, { .wished = 1 } },
		{ "the first comes", &lean, .1, .1, { 0 }, { .cold = 1, .wished = 1 } },
		{ "missing two, ask for three", &hot, 11, 11, { .ready = 10 }, { .cold = 3, .wished = 13 } },
		{ "already on the way", &hot, 11, 11, { .ready = 10, .cold = 3 }, { .wished = 13 } },
		{ "surplus on the way is cancelled first",
		  &hot,
		  5,
		  5,
		  { .ready = 8, .cold = 4, .wake = 1 },
		  { .cancel_cold = 4, .cancel_wake = 1, .release = 2, .wished = 6 } },
		{ "without tiers the stock is not touched",
		  &hot,
		  11,
		  11,
		  { .ready = 10, .stock = 9, .lent = 9 },
		  { .cold = 3, .wished = 13 } },
		{ "lent, then stopped, then refills, then new",
		  &tiered,
		  14,
		  14,
		  { .ready = 10, .lent = 2, .stock = 1, .refill = 2 },
		  { .reclaim = 2,
		    .wake = 1,
		    .adopt_refill = 2,
		    .cold = 2,
		    .refill = 3,
		    .wished = 17,
		    .stock_low = 3 } },
		{ "stock is refilled to a fifth of the peak",
		  &tiered,
		  10,
		  10,
		  { .ready = 12, .stock = 1 },
		  { .refill = 1, .wished = 12, .stock_low = 2 } },
		{ "lent nodes go back first",
		  &tiered,
		  5,
		  5,
		  { .ready = 9, .reclaimed = 2, .stock = 9 },
		  { .release = 3, .give_back = 2, .wished = 6, .stock_low = 1 } },
		{ "lent nodes that have served are replaced",
		  &tiered,
		  10,
		  10,
		  { .ready = 12, .reclaimed = 3, .stock = 2, .bridge_due = true },
		  { .replace_wake = 2, .replace_cold = 1, .refill = 2, .wished = 12, .stock_low = 2 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct demand_view d = view(cases[i].level, cases[i].peak);
		struct scale_actions m = rule_moves(cases[i].rule, &d, &cases[i].fleet);
		m.low = m.high = m.chase = 0;
		if (memcmp(&m, &cases[i].want, sizeof m) != 0)
			fail_msg("%s: reclaim %ld wake %ld adopt %ld cold %ld refill %ld cancel %ld/%ld release %ld "
				 "back %ld "
				 "replace %ld/%ld stock %ld wished %ld",
				 cases[i].what, (long)m.reclaim, (long)m.wake, (long)m.adopt_refill, (long)m.cold,
				 (long)m.refill, (long)m.cancel_cold, (long)m.cancel_wake, (long)m.release,
				 (long)m.give_back, (long)m.replace_wake, (long)m.replace_cold, (long)m.stock_low,
				 (long)m.wished);
	}
}

static void chasing_a_queue_is_for_the_fast_tiers(void **state)
{
	struct demand_view d = view(10, 10);
	struct fleet f = { .ready = 12, .waiting = 6, .stock = 4 };

	(void)state;
	struct scale_actions fast = rule_moves(&tiered, &d, &f), slow = rule_moves(&hot, &d, &f);
	assert_true(fast.chase > 5);
	assert_int_equal(fast.wake, 4);
	assert_int_equal(fast.cold, 0); /* the margin alone is met */
	assert_true(slow.cold > 8);
}

static void an_idle_pool_may_be_empty_only_where_waiting_is_accepted(void **state)
{
	struct demand_view d = view(0, 0);
	struct fleet none = { 0 }, one = { .ready = 1 };

	(void)state;
	assert_int_equal(rule_moves(&hot, &d, &none).cold, 1);
	assert_int_equal(rule_moves(&hot, &d, &one).release, 0);
	d.may_be_zero = true;
	assert_int_equal(rule_moves(&hot, &d, &none).cold, 0);
	assert_int_equal(rule_moves(&hot, &d, &one).release, 1);
}

static void the_family_has_both_halves(void **state)
{
	struct tier_times cold = { .cold_p50 = 380, .cold_p95 = 650 };
	struct rule room[RULES_MAX];
	struct family f;

	(void)state;
	family_init(&f, &times, .01, room);
	assert_int_equal(f.tiered_from, 162);
	assert_int_equal(f.count, 432);
	for (size_t i = 0; i < f.count; i++) {
		assert_int_equal(f.rules[i].is_tiered, i >= f.tiered_from);
		assert_true((size_t)f.rules[i].hold < f.hold_count);
	}
	family_init(&f, &cold, .01, room);
	assert_int_equal(f.count, 162);
	assert_int_equal(f.tiered_from, 162);
	family_init(&f, &times, .001, room);
	assert_true(f.rules[f.count - 1].stock > .3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moves_follow_the_table),
		cmocka_unit_test(chasing_a_queue_is_for_the_fast_tiers),
		cmocka_unit_test(an_idle_pool_may_be_empty_only_where_waiting_is_accepted),
		cmocka_unit_test(the_family_has_both_halves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
