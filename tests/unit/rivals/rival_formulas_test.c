/* The formulas of the real things, against values worked out by hand. */
#include "controller/simulation/rivals/hpa.h"
#include "controller/simulation/rivals/kalman.h"
#include "controller/simulation/rivals/kpa.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static void hpa_tolerates_a_tenth(void **state)
{
	static const struct {
		int64_t replicas;
		double total, target;
		int64_t proposal;
	} cases[] = {
		{ 10, 840, 84, 10 },		      /* on the target */
		{ 10, 924, 84, 10 },		      /* ratio 1.1: still tolerated */
		{ 10, 925, 84, 12 },		      /* above: ceil(925/84) = 12 */
		{ 10, 756, 84, 10 },		      /* ratio 0.9 */
		{ 10, 755, 84, 9 },		      /* ceil(8.99) */
		{ 10, 0, 84, 0 },    { 0, 5, 84, 1 }, /* from nothing */
		{ 3, 400, 40, 10 },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(cases); i++) {
		struct hpa h = { .begun = true, .replicas = cases[i].replicas };

		assert_int_equal(hpa_proposal(&h, cases[i].total, cases[i].target, 0.1), cases[i].proposal);
	}
}

static struct hpa *hpa_at(int64_t replicas, const struct hpa_limits *limits)
{
	struct hpa *h = calloc(1, sizeof *h);

	assert_non_null(h);
	hpa_begin(h, 0, replicas, limits);
	return h;
}

static void hpa_grows_by_double_or_four(void **state)
{
	const struct hpa_limits limits = hpa_default_limits(100, 300 * SECOND);
	static const int64_t expected[] = { 5, 10, 20, 40, 80, 90, 90 }; /* 1+4, then doubled, then as proposed */
	struct hpa *h = hpa_at(1, &limits);

	(void)state;
	for (size_t i = 0; i < LENGTH(expected); i++)
		assert_int_equal(hpa_scale(h, (millis)(i + 1) * 15 * SECOND, 90, &limits), expected[i]);
	free(h);
}

static void hpa_counts_growth_within_the_period(void **state)
{
	const struct hpa_limits limits = hpa_default_limits(100, 0);
	struct hpa *h = hpa_at(10, &limits);

	(void)state;
	/* 10 may become 20 in any 15 s, however often we look. */
	assert_int_equal(hpa_scale(h, 5 * SECOND, 16, &limits), 16);
	assert_int_equal(hpa_scale(h, 10 * SECOND, 50, &limits), 20);
	assert_int_equal(hpa_scale(h, 15 * SECOND, 50, &limits), 20);
	assert_int_equal(hpa_scale(h, 20 * SECOND, 50, &limits), 32); /* the first six are forgotten: 16 * 2 */
	free(h);
}

static void hpa_waits_before_it_shrinks(void **state)
{
	const struct hpa_limits limits = hpa_default_limits(100, 300 * SECOND);
	struct hpa *h = hpa_at(20, &limits);
	millis now = 0;

	(void)state;
	/* The recommendation of its first moment holds for the window. */
	for (now = 15 * SECOND; now < 300 * SECOND; now += 15 * SECOND)
		assert_int_equal(hpa_scale(h, now, 5, &limits), 20);
	assert_int_equal(hpa_scale(h, 300 * SECOND, 8, &limits), 8);
	/* A single high wish holds for one window, too. */
	assert_int_equal(hpa_scale(h, 315 * SECOND, 12, &limits), 12);
	for (now = 330 * SECOND; now < 615 * SECOND; now += 15 * SECOND)
		assert_int_equal(hpa_scale(h, now, 3, &limits), 12);
	assert_int_equal(hpa_scale(h, 615 * SECOND, 3, &limits), 3);
	free(h);
}

static void hpa_stays_within_its_limits(void **state)
{
	struct hpa_limits limits = hpa_default_limits(9, 0);
	struct hpa *h = hpa_at(6, &limits);

	(void)state;
	limits.least = 2;
	assert_int_equal(hpa_scale(h, 15 * SECOND, 50, &limits), 9);
	assert_int_equal(hpa_scale(h, 30 * SECOND, 0, &limits), 2);
	free(h);
}

/* behavior of the API reference's own examples, and what the source makes of them. */
static void hpa_keeps_the_behaviour_that_is_written(void **state)
{
	struct hpa_limits slow = hpa_default_limits(100, 0), quiet = hpa_default_limits(100, 0);
	struct hpa_limits down = hpa_default_limits(100, 0), fixed = hpa_default_limits(100, 0);
	struct hpa *h;

	(void)state;
	slow.up = (struct hpa_rule){ .pods = { 4, 60 * SECOND },
				     .percent = { 10, 60 * SECOND },
				     .select = HPA_SELECT_MIN };
	h = hpa_at(20, &slow);
	assert_int_equal(hpa_scale(h, 15 * SECOND, 90, &slow), 22); /* the smaller of +4 and +10 % */
	assert_int_equal(hpa_scale(h, 30 * SECOND, 90, &slow), 22);
	assert_int_equal(hpa_scale(h, 75 * SECOND, 90, &slow), 25); /* 22 * 1.1, rounded up */
	free(h);

	quiet.up.stabilization = 60 * SECOND;
	h = hpa_at(10, &quiet);
	assert_int_equal(hpa_scale(h, 15 * SECOND, 14, &quiet), 10); /* the lowest of a minute: its first, 10 */
	assert_int_equal(hpa_scale(h, 45 * SECOND, 16, &quiet), 10);
	assert_int_equal(hpa_scale(h, 75 * SECOND, 16, &quiet), 16); /* 14 at 15 s is out of the window, too */
	free(h);

	down.down.percent = (struct hpa_policy){ 10, 60 * SECOND };
	h = hpa_at(25, &down);
	assert_int_equal(hpa_scale(h, 15 * SECOND, 3, &down), 22); /* 25 * 0.9, cut */
	assert_int_equal(hpa_scale(h, 30 * SECOND, 3, &down), 22);
	assert_int_equal(hpa_scale(h, 76 * SECOND, 3, &down), 19);
	free(h);

	fixed.down.select = HPA_SELECT_DISABLED;
	h = hpa_at(25, &fixed);
	assert_int_equal(hpa_scale(h, HOUR, 3, &fixed), 25);
	free(h);
}

static const struct kpa_settings kpa_defaults = {
	.target_value = 70, .stable = 60 * SECOND, .panic = 6 * SECOND, .threshold = 2, .up_rate = 1000, .down_rate = 2
};

static void kpa_follows_the_stable_window(void **state)
{
	struct kpa *k = calloc(1, sizeof *k);

	(void)state;
	assert_non_null(k);
	/* One pod: no panic at the start. 12 readings of 70, then of 105: the mean moves by 35/12 a reading. */
	for (millis i = 0; i < 12; i++)
		assert_int_equal(kpa_scale(k, &kpa_defaults, i * 5 * SECOND, 70, 1), 1);
	assert_int_equal(kpa_scale(k, &kpa_defaults, 60 * SECOND, 105, 1), 2); /* 72.9 / 70 */
	free(k);
}

static void kpa_panics_and_never_shrinks_in_panic(void **state)
{
	struct kpa *k = calloc(1, sizeof *k);
	millis now = 0;

	(void)state;
	assert_non_null(k);
	for (; now < 60 * SECOND; now += 5 * SECOND)
		kpa_scale(k, &kpa_defaults, now, 70, 1);
	/* Two readings in the panic window: (70 + 350) / 2 / 70 = 3 pods, three times the ready one. */
	assert_int_equal(kpa_scale(k, &kpa_defaults, now, 350, 1), 3);
	now += 5 * SECOND;
	assert_int_equal(kpa_scale(k, &kpa_defaults, now, 350, 1), 5);
	/* The surge is over, five pods are ready: held until a stable window has passed without it. */
	for (millis end = now + 60 * SECOND; now < end;) {
		now += 5 * SECOND;
		assert_int_equal(kpa_scale(k, &kpa_defaults, now, 70, 5), 5);
	}
	now += 5 * SECOND;
	assert_int_equal(kpa_scale(k, &kpa_defaults, now, 70, 5), 2); /* at most halved */
	free(k);
}

static void kpa_starts_in_panic(void **state)
{
	struct kpa *k = calloc(1, sizeof *k);

	(void)state;
	assert_non_null(k);
	for (millis now = SECOND; now <= 61 * SECOND; now += 5 * SECOND)
		assert_int_equal(kpa_scale(k, &kpa_defaults, now, 70, 8), 8);
	assert_int_equal(kpa_scale(k, &kpa_defaults, 66 * SECOND, 70, 8), 4);
	free(k);
}

static void kpa_delays_scale_down(void **state)
{
	struct kpa_settings s = kpa_defaults;
	struct kpa *k = calloc(1, sizeof *k);
	millis now;

	(void)state;
	assert_non_null(k);
	s.delay = 300 * SECOND;
	assert_int_equal(kpa_scale(k, &s, 0, 210, 1), 3);
	for (now = 5 * SECOND; now < 90 * SECOND; now += 5 * SECOND)
		assert_int_equal(kpa_scale(k, &s, now, 0, 3), 3);
	for (; now < 600 * SECOND; now += 5 * SECOND)
		kpa_scale(k, &s, now, 0, 3);
	for (; now < 895 * SECOND; now += 5 * SECOND)
		assert_int_equal(kpa_scale(k, &s, now, 0, 1), 1);
	assert_int_equal(kpa_scale(k, &s, now, 0, 1), 0);
	free(k);
}

static bool is_near(double a, double b)
{
	return a > b - 1e-6 && a < b + 1e-6;
}

static void kalman_step_by_hand(void **state)
{
	const struct kalman_noise noise = { 1, 0.1, 10 };
	struct kalman k = { 0 };

	(void)state;
	/* First reading: taken as it is, slope 0. P = [1000 0; 0 1000] -> predicted [2001 1000; 1000 1000.1]. */
	assert_true(is_near(kalman_step(&k, &noise, 100), 100));
	assert_true(is_near(k.p_level, 2001) && is_near(k.p_cross, 1000) && is_near(k.p_slope, 1000.1));
	/* Second: gains 2001/2011 and 1000/2011 of a miss of 10, then one interval on. */
	assert_true(is_near(kalman_step(&k, &noise, 110), 100 + 10 * 2001.0 / 2011 + 10 * 1000.0 / 2011));
	/* A straight line is soon predicted exactly. */
	double next = 0;
	for (int i = 2; i < 200; i++)
		next = kalman_step(&k, &noise, 100 + 10 * i);
	assert_true(next > 100 + 10 * 200 - 0.01 && next < 100 + 10 * 200 + 0.01);
}

static void kalman_never_predicts_below_nothing(void **state)
{
	const struct kalman_noise noise = { 1, 0.1, 10 };
	struct kalman k = { 0 };

	(void)state;
	kalman_step(&k, &noise, 100);
	kalman_step(&k, &noise, 40);
	assert_true(kalman_step(&k, &noise, 0) >= 0);
}

static void window_knows_the_largest(void **state)
{
	struct window *w = calloc(1, sizeof *w);
	static const int64_t values[] = { 3, 9, 4, 4, 2, 8, 1, 1, 1, 1 };

	(void)state;
	assert_non_null(w);
	for (size_t i = 0; i < LENGTH(values); i++) {
		int64_t largest = 0;

		/* Three notes fit into 30 s at one every 10 s. */
		for (size_t j = i < 2 ? 0 : i - 2; j <= i; j++)
			largest = values[j] > largest ? values[j] : largest;
		assert_int_equal(window_max(w, (millis)i * 10 * SECOND, 30 * SECOND, values[i]), largest);
	}
	free(w);
}

static void window_forgets_the_oldest_when_it_is_full(void **state)
{
	struct window *w = calloc(1, sizeof *w);
	int64_t largest = 0;

	(void)state;
	assert_non_null(w);
	for (int i = 0; i < 2 * WINDOW_SIZE; i++)
		largest = window_max(w, i, 1000000, 4 * WINDOW_SIZE - i);
	assert_int_equal(largest, 4 * WINDOW_SIZE - WINDOW_SIZE);
	free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hpa_tolerates_a_tenth),
		cmocka_unit_test(hpa_grows_by_double_or_four),
		cmocka_unit_test(hpa_counts_growth_within_the_period),
		cmocka_unit_test(hpa_waits_before_it_shrinks),
		cmocka_unit_test(hpa_stays_within_its_limits),
		cmocka_unit_test(hpa_keeps_the_behaviour_that_is_written),
		cmocka_unit_test(kpa_follows_the_stable_window),
		cmocka_unit_test(kpa_panics_and_never_shrinks_in_panic),
		cmocka_unit_test(kpa_starts_in_panic),
		cmocka_unit_test(kpa_delays_scale_down),
		cmocka_unit_test(kalman_step_by_hand),
		cmocka_unit_test(kalman_never_predicts_below_nothing),
		cmocka_unit_test(window_knows_the_largest),
		cmocka_unit_test(window_forgets_the_oldest_when_it_is_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
