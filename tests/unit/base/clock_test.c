#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void by_hand_it_stands_until_turned(void **state)
{
	(void)state;
	struct clock c = clock_open_by_hand(1700000000000);

	assert_int_equal(clock_now(&c), 1700000000000);
	assert_int_equal(clock_mono(&c), 0);
	clock_turn(&c, 15 * SECOND);
	clock_turn(&c, 0);
	assert_int_equal(clock_now(&c), 1700000015000);
	assert_int_equal(clock_mono(&c), 15000);
	assert_int_equal(clock_real(&c, 15000), 15000);
}

static void real_durations_are_rounded_up(void **state)
{
	static const struct {
		int64_t speed;
		millis duration, real;
	} cases[] = {
		{ 1, 0, 0 },	    { 1, 15000, 15000 },     { 60, 15000, 250 },	  { 60, 1, 1 },
		{ 60, 15001, 251 }, { 1000, 999, 1 },	     { 1000, 1000, 1 },		  { 1000, 1001, 2 },
		{ 60, -5, 0 },	    { CLOCK_FASTEST, 1, 1 }, { CLOCK_FASTEST, DAY, 864 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct clock c = clock_open_fast(1, cases[i].speed);
		assert_int_equal(clock_real(&c, cases[i].duration), cases[i].real);
	}
}

static void a_fast_clock_starts_where_told_and_never_goes_back(void **state)
{
	(void)state;
	struct clock c = clock_open_fast(1700000000000, 1000);
	millis last = 0;

	for (int i = 0; i < 1000; i++) {
		millis mono = clock_mono(&c);
		millis now = clock_now(&c);
		assert_true(mono >= last);
		assert_int_equal(mono % 1000, 0);
		assert_true(now >= 1700000000000 + mono);
		last = mono;
	}
}

static void the_machines_time_is_this_century(void **state)
{
	(void)state;
	struct clock c = clock_open();
	struct clock fast = clock_open_fast(0, 10);

	assert_true(clock_now(&c) > INT64_C(1600000000000));
	assert_true(clock_now(&fast) > INT64_C(1600000000000));
	assert_true(clock_mono(&c) >= 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_hand_it_stands_until_turned),
		cmocka_unit_test(real_durations_are_rounded_up),
		cmocka_unit_test(a_fast_clock_starts_where_told_and_never_goes_back),
		cmocka_unit_test(the_machines_time_is_this_century),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
