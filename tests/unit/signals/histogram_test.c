#include "signals/histogram.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void put(struct histogram *s, int64_t above, int64_t up_to, int64_t requests)
{
	histogram_add(s, &(struct histogram_bin){ above, up_to, requests * 1000 });
}

static void assert_bounds(const struct histogram *s, int percent, int64_t lower, int64_t upper)
{
	int64_t l, u;

	assert_true(histogram_quantile(s, percent, &l, &u));
	assert_int_equal(l, lower);
	assert_int_equal(u, upper);
}

static void a_quantile_is_the_edges_around_it(void **state)
{
	struct histogram s = { 0 };

	(void)state;
	put(&s, 0, 300, 50);
	put(&s, 300, 500, 48);
	put(&s, 2500, HISTOGRAM_UNBOUNDED, 2);
	assert_bounds(&s, 50, 0, 300);
	assert_bounds(&s, 51, 300, 500);
	assert_bounds(&s, 98, 300, 500);
	assert_bounds(&s, 99, 2500, HISTOGRAM_UNBOUNDED);
}

static void nothing_has_no_quantile(void **state)
{
	struct histogram s = { 0 };
	int64_t l, u;

	(void)state;
	assert_false(histogram_quantile(&s, 50, &l, &u));
	histogram_add(&s, &(struct histogram_bin){ 0, 5, 0 });
	histogram_add(&s, &(struct histogram_bin){ 0, 5, -7000 });
	histogram_add(&s, &(struct histogram_bin){ 0, 5, 999 });
	assert_false(histogram_quantile(&s, 50, &l, &u));
	histogram_add(&s, &(struct histogram_bin){ 0, 5, 1 });
	assert_true(histogram_quantile(&s, 50, &l, &u));
}

/* Servers of two versions have other edges: each bound is the best that both allow. */
static void other_edges_stand_beside_each_other(void **state)
{
	struct histogram s = { 0 };

	(void)state;
	put(&s, 0, 1000, 10);
	put(&s, 300, 600, 10);
	assert_bounds(&s, 50, 0, 600);
	assert_bounds(&s, 75, 300, 1000);
}

/* However durations lie in their bins, and however many bins there are, the quantile lies between its bounds. */
static void bounds_hold_for_random_durations(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 200; seed++) {
		struct random r = random_stream(seed, "spread");
		int64_t at[300], sorted_below;
		struct histogram s = { 0 };
		int64_t width = 1 + (int64_t)(random_next(&r) % 40);
		for (int i = 0; i < 300; i++) {
			at[i] = 1 + (int64_t)(random_next(&r) % 4000);
			int64_t bin = (at[i] - 1) / width;
			put(&s, bin * width, bin * width + width, 1);
		}
		for (int percent = 1; percent < 100; percent += 7) {
			int64_t lower, upper, value = INT64_MAX;
			assert_true(histogram_quantile(&s, percent, &lower, &upper));
			for (int i = 0; i < 300; i++) {
				sorted_below = 0;
				for (int k = 0; k < 300; k++)
					sorted_below += at[k] <= at[i];
				if (sorted_below * 100 >= 300 * percent && at[i] < value)
					value = at[i];
			}
			assert_true(lower < value && value <= upper);
		}
	}
}

static void a_window_forgets(void **state)
{
	static struct histogram_window w;
	struct histogram s = { 0 }, sum;
	millis now = 1000 * MINUTE;

	(void)state;
	put(&s, 0, 10, 1);
	for (int i = 0; i < 2 * HISTOGRAM_MINUTES; i++)
		histogram_window_add(&w, now + i * MINUTE, &s);
	now += (2 * HISTOGRAM_MINUTES - 1) * MINUTE;
	sum = histogram_window_sum(&w, now);
	assert_int_equal(sum.count, 1);
	assert_int_equal(sum.bins[0].count, HISTOGRAM_MINUTES * 1000);
	assert_int_equal(histogram_window_sum(&w, now + 2 * MINUTE).bins[0].count, (HISTOGRAM_MINUTES - 2) * 1000);
	assert_int_equal(histogram_window_sum(&w, now + HISTOGRAM_MINUTES * MINUTE).count, 0);
	/* A clock that was turned back. */
	assert_int_equal(histogram_window_sum(&w, now - HOUR).count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_quantile_is_the_edges_around_it),
		cmocka_unit_test(nothing_has_no_quantile),
		cmocka_unit_test(other_edges_stand_beside_each_other),
		cmocka_unit_test(bounds_hold_for_random_durations),
		cmocka_unit_test(a_window_forgets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
