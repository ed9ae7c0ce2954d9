/* The mean of several draws of chance, and what it says of them. */
#include "controller/simulation/draws.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void seeds_of_draws_follow_from_the_seed(void **state)
{
	(void)state;
	assert_int_equal(draw_seed(7, 0), 7);
	assert_int_equal(draw_seed(7, 3), draw_seed(7, 3));
	assert_int_not_equal(draw_seed(7, 1), draw_seed(7, 2));
	/* Those of the next seed are others: two seeds are not nearly the same draws. */
	assert_int_not_equal(draw_seed(7, 1), draw_seed(8, 0));
	assert_int_not_equal(draw_seed(7, 2), draw_seed(8, 1));
}

static struct score drawn(int64_t late, bool is_met)
{
	return (struct score){ .requests = 100,
			       .late = late,
			       .started = 100,
			       .wait_p99 = late * 10,
			       .micro_dollars = late * 1000,
			       .starts = late + 1,
			       .draws = 1,
			       .draws_met = is_met,
			       .late_least = (double)late / 100,
			       .late_most = (double)late / 100 };
}

static void figures_are_means_and_the_range_stays(void **state)
{
	/* Two pools, three draws; the first draw alone missed. */
	struct pool_score draws[] = {
		{ .scored = drawn(12, false) }, { .scored = drawn(0, true) }, { .scored = drawn(1, true) },
		{ .scored = drawn(0, true) },	{ .scored = drawn(2, true) }, { .scored = drawn(3, true) },
	};

	(void)state;
	draws_mean(draws, 3, 2, draws);
	const struct score *s = &draws[0].scored;
	assert_int_equal(s->requests, 100);
	assert_int_equal(s->late, 5);
	assert_int_equal(s->wait_p99, 50);
	assert_int_equal(s->micro_dollars, 5000);
	assert_int_equal(s->starts, 6);
	assert_int_equal(s->draws, 3);
	assert_int_equal(s->draws_met, 2);
	assert_true(s->late_least > .0099 && s->late_least < .0101);
	assert_true(s->late_most > .1199 && s->late_most < .1201);
	assert_int_equal(draws[1].scored.late, 1);
	assert_int_equal(draws[1].scored.draws_met, 3);
}

static void waits_are_of_draws_that_started_some(void **state)
{
	struct pool_score draws[2] = { { .whole = drawn(4, true) }, { .whole = { .requests = 100, .draws = 1 } } },
			  mean;

	(void)state;
	draws_mean(draws, 2, 1, &mean);
	assert_int_equal(mean.whole.wait_p99, 40);
	assert_int_equal(mean.whole.started, 50);
}

static void large_figures_do_not_overflow(void **state)
{
	struct pool_score draws[3] = { 0 }, mean;

	(void)state;
	for (size_t i = 0; i < 3; i++)
		draws[i].whole.gpu_ms = INT64_MAX - 1 + (int64_t)(i % 2);
	draws_mean(draws, 3, 1, &mean);
	assert_int_equal(mean.whole.gpu_ms, INT64_MAX - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seeds_of_draws_follow_from_the_seed),
		cmocka_unit_test(figures_are_means_and_the_range_stays),
		cmocka_unit_test(waits_are_of_draws_that_started_some),
		cmocka_unit_test(large_figures_do_not_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
