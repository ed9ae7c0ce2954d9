/* What is shown of the stages that were seen. */
#include "controller/loop/pool_signals.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void nothing_seen_is_nothing(void **state)
{
	struct stage_times t = { 0 };

	(void)state;
	assert_int_equal(stage_times_show(&t).samples, 0);
}

static void ranks(void **state)
{
	static const struct {
		int64_t first, last;
		millis p50, p95;
	} rows[] = {
		{ 7, 7, 7, 7 },	   { 1, 2, 1, 2 },	{ 1, 20, 10, 19 },
		{ 1, 64, 32, 61 }, { 1, 128, 96, 125 }, /* the last 64 of them: 65 to 128 */
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct stage_times t = { 0 };
		for (int64_t v = rows[i].first; v <= rows[i].last; v++)
			stage_times_add(&t, v);
		struct published_stage shown = stage_times_show(&t);
		assert_int_equal(shown.p50, rows[i].p50);
		assert_int_equal(shown.p95, rows[i].p95);
		assert_int_equal(shown.samples, rows[i].last - rows[i].first + 1);
	}
}

static void only_stages_that_ended_count(void **state)
{
	const struct event_input events[] = {
		{ .what = EVENT_STAGE, .stage = STAGE_LOAD, .value = 30 * SECOND, .count = 2 },
		{ .what = EVENT_SERVING, .stage = STAGE_LOAD, .value = 500 * SECOND, .count = 1 },
		{ .what = EVENT_STUCK, .stage = STAGE_IMAGE, .value = 0, .count = 1 },
		{ .what = EVENT_STAGE, .stage = STAGE_PROVISION, .value = 90 * SECOND, .count = 1000000000 },
	};
	const struct pool_snapshot s = { .events = events, .event_count = sizeof events / sizeof *events };
	struct stage_times stages[STAGE_COUNT] = { 0 };

	(void)state;
	stage_times_note(stages, &s);
	assert_int_equal(stage_times_show(&stages[STAGE_LOAD]).samples, 2);
	assert_int_equal(stage_times_show(&stages[STAGE_LOAD]).p95, 30 * SECOND);
	assert_int_equal(stage_times_show(&stages[STAGE_IMAGE]).samples, 0);
	assert_int_equal(stage_times_show(&stages[STAGE_PROVISION]).samples, STAGE_TIMES_KEPT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_seen_is_nothing),
		cmocka_unit_test(ranks),
		cmocka_unit_test(only_stages_that_ended_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
