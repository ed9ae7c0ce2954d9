#include "controller/loop/pool_signals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const int64_t NOT = READING_UNKNOWN;

static void note(struct server_stats *s, millis at, const struct reading_more *more)
{
	server_stats_note(s, &(struct pool_reading){ .at = at, .more = more });
}

static void nothing_told_is_absent(void **state)
{
	static struct server_stats s;
	struct published_serving out;

	(void)state;
	server_stats_note(&s, &(struct pool_reading){ .at = HOUR });
	server_stats_publish(&s, HOUR, &out);
	assert_false(out.wait[0].is_told);
	assert_false(out.first_token[1].is_told);
	assert_int_equal(out.prefix_permille, ABSENT);
	assert_int_equal(out.load_ms, ABSENT);
	assert_int_equal(out.startup_ms, ABSENT);
}

static void what_is_told_lasts_five_minutes(void **state)
{
	static struct server_stats s;
	struct reading_more more = {
		.wait = { .count = 2, .bins = { { 0, 300000, 97000 }, { 300000, HISTOGRAM_UNBOUNDED, 3000 } } },
		.prefix_queries = 100,
		.prefix_hits = 25,
		.prefix_permille = NOT,
		.load_ms = 41000,
		.startup_ms = NOT
	};
	struct published_serving out;
	millis now = 1000 * HOUR;

	(void)state;
	note(&s, now, &more);
	more.prefix_hits = 75;
	note(&s, now + MINUTE, &more);
	server_stats_publish(&s, now + MINUTE, &out);
	assert_true(out.wait[0].is_told);
	assert_int_equal(out.wait[0].upper_us, 300000);
	assert_int_equal(out.wait[1].lower_us, 300000);
	assert_int_equal(out.wait[1].upper_us, HISTOGRAM_UNBOUNDED);
	assert_false(out.first_token[0].is_told);
	assert_int_equal(out.prefix_permille, 500);
	assert_int_equal(out.load_ms, 41000);
	server_stats_publish(&s, now + 7 * MINUTE, &out);
	assert_false(out.wait[0].is_told);
	assert_int_equal(out.prefix_permille, ABSENT);
	assert_int_equal(out.load_ms, ABSENT);
}

static const struct {
	int64_t load, startup, measured;
	int samples;
	const char *says; /* NULL: nothing */
} loads[] = {
	{ 40000, 90000, 100000, 3, NULL },
	{ 40000, 90000, 240000, 3, NULL },
	{ 40000, 90000, 241000, 3, "init containers" },
	{ 40000, 90000, 241000, 2, NULL },
	{ 40000, 301000, 120000, 9, "readiness probe" },
	{ 40000, READING_UNKNOWN, 900000, 9, NULL },
	{ 400000, READING_UNKNOWN, 100000, 9, "readiness probe" },
	{ READING_UNKNOWN, READING_UNKNOWN, 100000, 9, NULL },
};

static void loads_that_differ_are_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
		struct arena a = { 0 };
		static struct server_stats s;
		struct stage_times t = { .count = 0 };
		const struct reading_more more = { .prefix_queries = NOT,
						   .prefix_permille = NOT,
						   .load_ms = loads[i].load,
						   .startup_ms = loads[i].startup };
		for (int n = 0; n < loads[i].samples; n++)
			stage_times_add(&t, loads[i].measured);
		note(&s, HOUR, &more);
		const char *says = server_stats_load_differs(&s, &t, &a);
		if (!says != !loads[i].says || (says && !strstr(says, loads[i].says)))
			fail_msg("%zu: %s", i, says ? says : "nothing");
		arena_release(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_told_is_absent),
		cmocka_unit_test(what_is_told_lasts_five_minutes),
		cmocka_unit_test(loads_that_differ_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
