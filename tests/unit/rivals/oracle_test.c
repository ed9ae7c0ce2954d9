/* The bound against every schedule there is, on cases small enough to try them all. */
#include "base/exact.h"
#include "base/random.h"
#include "controller/simulation/rivals/compare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum { TICKS = 6, LEVELS = 4 };

struct tiny {
	double offered[TICKS];
	int64_t arrived[TICKS];
	double lead_s, late_share;
};

struct plain {
	double cost, late;
};

static struct plain price_of(const struct tiny *t, const int *levels)
{
	struct plain p = { 0, 0 };

	for (int i = 0; i < TICKS; i++) {
		p.cost += levels[i] * 15.0;
		if (i && levels[i] > levels[i - 1])
			p.cost += (levels[i] - levels[i - 1]) * t->lead_s;
		if (levels[i] < t->offered[i])
			p.late += (double)t->arrived[i];
	}
	return p;
}

/* Calls for all LEVELS^TICKS schedules; returns the least of cost + price * late, or of cost among those within
 * `most_late` when the price is negative. */
static double try_all(const struct tiny *t, double price, double most_late)
{
	double best = 1e300;
	int levels[TICKS], total = 1;

	for (int i = 0; i < TICKS; i++)
		total *= LEVELS;
	for (int n = 0; n < total; n++) {
		for (int i = 0, rest = n; i < TICKS; i++, rest /= LEVELS)
			levels[i] = rest % LEVELS;
		struct plain p = price_of(t, levels);
		double value = price < 0 ? p.cost : p.cost + price * p.late;
		if ((price >= 0 || p.late <= most_late) && value < best)
			best = value;
	}
	return best;
}

static struct tiny draw(struct random *r)
{
	struct tiny t = { .lead_s = 5 + 60 * random_uniform(r), .late_share = 0.3 * random_uniform(r) };

	for (int i = 0; i < TICKS; i++) {
		t.offered[i] = 0.01 + 2.98 * random_uniform(r);
		t.arrived[i] = 1 + (int64_t)(100 * random_uniform(r));
	}
	return t;
}

static struct oracle_bound bound_of(struct tiny *t, double *arrivals)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct load d = { .interval = 15 * SECOND, .ticks = TICKS, .offered = t->offered, .arrived = t->arrived };
	struct oracle_question q = { .load = &d, .lead_s = t->lead_s, .late_share = t->late_share };

	*arrivals = 0;
	for (int i = 0; i < TICKS; i++)
		*arrivals += (double)t->arrived[i];
	return oracle_bound(&q, &a);
}

static void never_above_the_best_schedule(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 60; seed++) {
		struct random r = random_stream(seed, "oracle");
		struct tiny t = draw(&r);
		double arrivals, least;
		struct oracle_bound b = bound_of(&t, &arrivals);

		least = try_all(&t, -1, t.late_share * arrivals);
		if (b.replica_hours * 3600 > least + 1e-6)
			fail_msg("seed %llu: bound %g above the best schedule %g", (unsigned long long)seed,
				 b.replica_hours * 3600, least);
	}
}

static void is_the_dual_at_its_price(void **state)
{
	(void)state;
	for (uint64_t seed = 100; seed < 140; seed++) {
		struct random r = random_stream(seed, "oracle");
		struct tiny t = draw(&r);
		double arrivals;
		struct oracle_bound b = bound_of(&t, &arrivals);
		double allowed = t.late_share * arrivals, dual = try_all(&t, b.price, 0) - b.price * allowed;

		assert_true(b.replica_hours * 3600 > dual - 1e-6 && b.replica_hours * 3600 < dual + 1e-6);
		/* No other price gives more, to the precision of the search. */
		double mu = 0.01;
		for (int step = 0; step < 36; step++, mu *= 1.3)
			assert_true(try_all(&t, mu, 0) - mu * allowed <= b.replica_hours * 3600 * 1.001 + 1e-3);
	}
}

static void nobody_late_means_the_peak_is_met(void **state)
{
	struct tiny t = { .offered = { 1, 1, 3, 3, 1, 1 }, .arrived = { 9, 9, 9, 9, 9, 9 }, .lead_s = 10 };
	double arrivals;

	(void)state;
	struct oracle_bound b = bound_of(&t, &arrivals);
	/* One replica for 90 s, two more for 30 s and two starts. */
	assert_true(b.replica_hours * 3600 > 169.9 && b.replica_hours * 3600 < 170.1);
	assert_int_equal(b.starts, 2);
	assert_true(b.late_share <= 0);
}

static void dear_starts_keep_the_fleet(void **state)
{
	struct tiny t = { .offered = { 2, 1, 2, 1, 2, 2 }, .arrived = { 9, 9, 9, 9, 9, 9 }, .lead_s = 100 };
	double arrivals;

	(void)state;
	struct oracle_bound b = bound_of(&t, &arrivals);
	assert_true(b.replica_hours * 3600 > 179.9 && b.replica_hours * 3600 < 180.1);
	assert_int_equal(b.starts, 0);
}

static void load_is_spread_over_the_stay(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct request requests[] = { { .arrival = 10000, .output_tokens = 1000 },
				      { .arrival = 30000, .output_tokens = 500 } };
	struct trace t = { .requests = requests, .request_count = 2, .length = 60000 };
	struct queue_truth truth = { .slots = 2, .prefill_tokens_per_second = 1000, .inter_token_latency_us = 20000 };
	struct load d = load_of(&t, &truth, 10 * SECOND, &a);
	const double expected[] = { 0, 0.5, 0.5, 0.5, 0, 0 };

	(void)state;
	assert_int_equal(d.ticks, 6);
	for (size_t i = 0; i < 6; i++) {
		assert_true(d.offered[i] > expected[i] - 1e-9 && d.offered[i] < expected[i] + 1e-9);
		assert_int_equal(d.arrived[i], i == 1 || i == 3);
	}
}

static void bins_and_requests_offer_the_same(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct bin bins[] = { { .at = 0, .requests = 10, .output_tokens = 5000 },
			      { .at = 10000, .requests = 20, .output_tokens = 10000 },
			      { .at = 20000 } };
	struct trace t = { .is_binned = true, .bins = bins, .bin_count = 3, .bin_width = 10000, .length = 30000 };
	struct queue_truth truth = { .slots = 10, .prefill_tokens_per_second = 1000, .inter_token_latency_us = 10000 };
	struct load d = load_of(&t, &truth, 5 * SECOND, &a);
	double sum = 0;
	int64_t arrived = 0;

	(void)state;
	for (size_t i = 0; i < d.ticks; i++) {
		sum += d.offered[i] * 5;
		arrived += d.arrived[i];
	}
	/* 30 requests of 5 s in 10 slots. */
	assert_true(sum > 14.99 && sum < 15.01);
	assert_int_equal(arrived, 30);
}

static void mean_of_the_log_normal(void **state)
{
	(void)state;
	double mean = oracle_mean_lead((struct quantiles){ 380 * SECOND, 650 * SECOND });
	/* sigma = ln(650/380)/1.645 = 0.3264; 380 exp(0.0533) */
	assert_true(mean > 400.5 && mean < 401.1);
	assert_true(oracle_mean_lead((struct quantiles){ 90 * SECOND, 90 * SECOND }) < 90.0001);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(never_above_the_best_schedule),
		cmocka_unit_test(is_the_dual_at_its_price),
		cmocka_unit_test(nobody_late_means_the_peak_is_met),
		cmocka_unit_test(dear_starts_keep_the_fleet),
		cmocka_unit_test(load_is_spread_over_the_stay),
		cmocka_unit_test(bins_and_requests_offer_the_same),
		cmocka_unit_test(mean_of_the_log_normal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
