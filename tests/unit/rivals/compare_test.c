#include "controller/simulation/rivals/compare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

enum { ROWS = 7 };

/* cost in dollars, late per 1000 requests: before the scored part, and in it */
static const struct {
	const char *policy;
	bool is_rival, uses_standby;
	int cost_first, late_first, cost, late;
} runs[ROWS] = {
	{ "preheat", false, false, 1, 0, 1, 0 }, { "hpa", true, false, 10, 5, 100, 20 },
	{ "hpa", true, false, 14, 2, 140, 10 },	 { "hpa", true, false, 20, 0, 200, 1 },
	{ "kpa", true, false, 16, 1, 150, 30 },	 { "kpa", true, true, 12, 3, 120, 10 },
	{ "kpa", true, false, 30, 0, 300, 0 },
};

static struct comparison make(struct compare_row *rows, struct pool_score *scores)
{
	for (size_t i = 0; i < ROWS; i++) {
		scores[i].scored = (struct score){ .requests = 1000,
						   .late = runs[i].late,
						   .micro_dollars = runs[i].cost * INT64_C(1000000) };
		scores[i].whole =
			(struct score){ .requests = 2000,
					.late = runs[i].late + runs[i].late_first,
					.micro_dollars = (runs[i].cost + runs[i].cost_first) * INT64_C(1000000) };
		rows[i] = (struct compare_row){ .policy = runs[i].policy,
						.setting = "",
						.is_rival = runs[i].is_rival,
						.uses_standby = runs[i].uses_standby,
						.pools = &scores[i] };
	}
	return (struct comparison){ .rows = rows, .row_count = ROWS, .pool_count = 1 };
}

static void chooses_the_cheapest_that_keeps_the_objective(void **state)
{
	struct compare_row rows[ROWS];
	struct pool_score scores[ROWS];
	struct comparison c = make(rows, scores);
	static const struct {
		struct compare_filter filter;
		int64_t ppm;
		bool on_first;
		long expected;
	} cases[] = {
		{ { "hpa", false }, 10000, false, 2 },	     { { "hpa", false }, 20000, false, 1 },
		{ { "hpa", false }, 500, false, NO_ROW },    { { NULL, false }, 10000, false, 5 },
		{ { NULL, true }, 10000, false, 2 },	     { { NULL, false }, 0, false, 6 },
		{ { "hpa", false }, 5000, true, 1 },	     { { "kpa", true }, 1000, true, 4 },
		{ { "keda", false }, 10000, false, NO_ROW },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(compare_cheapest(&c, 0, &cases[i].filter, cases[i].ppm, cases[i].on_first),
				 cases[i].expected);
	struct compare_filter hpa = { "hpa", false }, keda = { "keda", false };
	assert_int_equal(compare_least_late(&c, 0, &hpa, false), 3);
	assert_int_equal(compare_least_late(&c, 0, &keda, false), NO_ROW);
}

static bool is_near(double a, double b)
{
	return a > b * (1 - 1e-9) && a < b * (1 + 1e-9);
}

static void frontier_has_no_row_that_another_beats(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct compare_row rows[ROWS];
	struct pool_score scores[ROWS];
	struct comparison c = make(rows, scores);
	struct compare_filter all = { NULL, false };
	const struct compare_point *points;
	static const size_t expected[] = { 6, 3, 5, 1 };

	(void)state;
	assert_int_equal(compare_frontier(&c, 0, &all, &a, &points), 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(points[i].row, expected[i]);
	assert_true(is_near(compare_frontier_cost(points, 4, 0.01), 120));
	/* Half way between 1 and 10 in a thousand on the scale of logarithms: the geometric mean of 200 and 120. */
	assert_true(is_near(compare_frontier_cost(points, 4, 0.0031622776601683794), 154.91933384829668));
	assert_true(is_near(compare_frontier_cost(points, 4, 0), 300));
	assert_true(is_near(compare_frontier_cost(points, 4, 0.5), 100));
	assert_true(compare_frontier_cost(points, 0, 0.5) <= 0);
}

static void without_prices_hours_are_compared(void **state)
{
	struct score s = { .gpu_ms = 7200000 };

	(void)state;
	assert_true(is_near(compare_cost(&s), 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chooses_the_cheapest_that_keeps_the_objective),
		cmocka_unit_test(frontier_has_no_row_that_another_beats),
		cmocka_unit_test(without_prices_hours_are_compared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
