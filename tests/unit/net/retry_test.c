#include "base/net/retry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void waits_stay_within_their_growing_bound(void **state)
{
	static const millis bounds[] = { 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000, 30000 };

	(void)state;
	for (uint64_t seed = 0; seed < 200; seed++) {
		struct retry r = retry_make(800, 30000, random_stream(seed, "test"));
		for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
			millis wait = retry_next(&r, 0);
			assert_true(wait >= 1 && wait <= bounds[i]);
		}
	}
}

static void waits_fill_their_range(void **state)
{
	int fifths[5] = { 0 };

	(void)state;
	for (uint64_t seed = 0; seed < 1000; seed++) {
		struct retry r = retry_make(1000, 1000, random_stream(seed, "test"));
		fifths[(retry_next(&r, 0) - 1) / 200]++;
	}
	for (int i = 0; i < 5; i++)
		assert_in_range(fifths[i], 150, 250);
}

static void a_success_starts_over(void **state)
{
	struct retry r = retry_make(10, 100000, random_stream(7, "test"));

	(void)state;
	for (int i = 0; i < 10; i++)
		(void)retry_next(&r, 0);
	retry_reset(&r);
	assert_in_range(retry_next(&r, 0), 1, 10);
}

static void what_the_server_asked_for_is_kept(void **state)
{
	struct retry r = retry_make(100, 100, random_stream(7, "test"));

	(void)state;
	for (int i = 0; i < 100; i++) {
		assert_in_range(retry_next(&r, 5000), 5001, 5100);
		assert_in_range(retry_next(&r, DAY), RETRY_TOLD_LONGEST + 1, RETRY_TOLD_LONGEST + 100);
		assert_in_range(retry_next(&r, -1), 1, 100);
	}
}

static void it_survives_any_number_of_failures(void **state)
{
	struct retry r = retry_make(1, DAY, random_stream(7, "test"));

	(void)state;
	r.failures = INT32_MAX;
	assert_in_range(retry_next(&r, 0), 1, DAY);
	assert_in_range(retry_next(&r, 0), 1, DAY);
}

static void retry_after_is_read_in_both_forms(void **state)
{
	static const millis now = 784111770000; /* Sun, 06 Nov 1994 08:49:30 GMT */
	static const struct {
		const char *header;
		millis wait;
	} cases[] = {
		{ NULL, 0 },
		{ "", 0 },
		{ "0", 0 },
		{ "1", 1000 },
		{ "120", 120000 },
		{ "99999999999999", DAY },
		{ "9999999999999999999999999", 0 },
		{ "-1", 0 },
		{ "1 minute", 0 },
		{ "Sun, 06 Nov 1994 08:49:37 GMT", 7000 },
		{ "Sun, 06 Nov 1994 08:49:29 GMT", 0 },
		{ "Fri, 06 Nov 2054 08:49:37 GMT", DAY },
		{ "Sun, 06 Nov 1994 08:49:37", 0 },
		{ "Sun, 06 Nov 1994 08:49:37 GMT, maybe", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(retry_after(cases[i].header, now), cases[i].wait);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_stay_within_their_growing_bound),
		cmocka_unit_test(waits_fill_their_range),
		cmocka_unit_test(a_success_starts_over),
		cmocka_unit_test(what_the_server_asked_for_is_kept),
		cmocka_unit_test(it_survives_any_number_of_failures),
		cmocka_unit_test(retry_after_is_read_in_both_forms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
