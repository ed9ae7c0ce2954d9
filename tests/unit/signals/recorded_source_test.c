#include "signals/recorded_source.h"
#include "tests/unit/signals/played_http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static struct told {
	struct pool_reading last;
	int count, over;
} told;

static void hear(void *user, const struct pool_reading *r)
{
	(void)user;
	told.last = *r;
	told.count++;
}

static void over(void *user)
{
	(void)user;
	told.over++;
}

/* Five seconds apart, and one in which nothing could be read. */
static const struct pool_reading readings[] = {
	{ .at = 1000000, .expected = 2, .fresh = 2, .running = 10, .started = 3 },
	{ .at = 1005000, .expected = 2, .fresh = 0 },
	{ .at = 1010000, .expected = 2, .fresh = 2, .running = 12, .started = READING_UNKNOWN },
};

static struct source *open_source(struct clock *clock, size_t count)
{
	told = (struct told){ 0 };
	played_begin(clock, NULL, NULL);
	return recorded_source_open(NULL, clock,
				    &(struct recorded_source_settings){ .source = { .on_reading = hear },
									.readings = readings,
									.reading_count = count,
									.begun = 1000000,
									.over = over });
}

static void readings_come_at_their_pace_by_the_clock(void **state)
{
	struct clock clock = clock_open_by_hand(5000000);
	struct source *s = open_source(&clock, 3);

	(void)state;
	assert_int_equal(told.count, 0); /* never inside the call that opens it */
	played_settle();
	assert_int_equal(told.count, 1);
	assert_int_equal(told.last.at, 5000000); /* the present, not the past */
	assert_int_equal(told.last.running, 10);
	assert_int_equal(source_report(s).trouble.kind, ERROR_NONE);
	played_turn(4999);
	assert_int_equal(told.count, 1);
	played_turn(1);
	assert_int_equal(told.count, 2);
	assert_int_equal(told.last.fresh, 0);
	assert_int_equal(source_report(s).blind, 1);
	assert_int_equal(source_report(s).trouble.kind, ERROR_UNAVAILABLE);
	assert_int_equal(told.over, 0);
	played_turn(60000);
	assert_int_equal(told.count, 3);
	assert_int_equal(told.last.started, READING_UNKNOWN);
	assert_int_equal(told.over, 1);
	played_settle();
	assert_int_equal(told.over, 1); /* once */
	assert_int_equal(told.count, 3);
	assert_string_equal(source_report(s).trouble.message, "the recording is over");
	source_close(s);
	played_end();
}

static void an_empty_one_is_over_at_once(void **state)
{
	struct clock clock = clock_open_by_hand(5000000);
	struct source *s = open_source(&clock, 0);

	(void)state;
	played_settle();
	assert_int_equal(told.count, 0);
	assert_int_equal(told.over, 1);
	source_close(s);
	played_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(readings_come_at_their_pace_by_the_clock),
		cmocka_unit_test(an_empty_one_is_over_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
