#include "base/file.h"
#include "controller/simulation/files/timeline.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>
#include <unistd.h>

static const struct pool_spec pools[] = { { .name = "chat" }, { .name = "batch" } };
static const struct fleet_spec fleet = { NULL, 0, pools, 2, NULL };

static void a_row_per_tick_and_pool(void **state)
{
	static const struct tick_result results[] = {
		{ .arrived = 5,
		  .started = 4,
		  .late = 3,
		  .waiting = 2,
		  .running = 1,
		  .running_draining = 6,
		  .ready = 7,
		  .starting = 8,
		  .draining = 9,
		  .standby = 10,
		  .gpu_ms = 15500,
		  .micro_dollars = 1234567 },
		{ 0 },
	};
	const struct snapshot snapshot = { .fleet = &fleet };
	const struct tick_view view = { .snapshot = &snapshot, .results = results, .end = 15000 };
	CLEANUP(buf_release) struct buf text = { 0 };
	struct error e = { 0 };

	(void)state;
	struct timeline *t = timeline_open("results_test.csv", &e);
	assert_non_null(t);
	assert_true(timeline_tick(t, &view, &e));
	assert_true(timeline_commit(t, &e));
	assert_true(file_read("results_test.csv", 10000, &text, &e));
	unlink("results_test.csv");
	assert_string_equal(text.text,
			    "t_s,pool,arrived,started,late,waiting,running,running_draining,ready,starting,draining,"
			    "standby,gpu_seconds,dollars\n"
			    "15,chat,5,4,3,2,1,6,7,8,9,10,15.500,1.234567\n"
			    "15,batch,0,0,0,0,0,0,0,0,0,0,0,0.000000\n");
}

static void an_abandoned_timeline_leaves_nothing(void **state)
{
	struct error e = { 0 };

	(void)state;
	timeline_abandon(timeline_open("results_test.csv", &e));
	timeline_abandon(NULL);
	assert_int_equal(access("results_test.csv", F_OK), -1);
}

static void a_folder_that_is_not_there_is_an_error(void **state)
{
	struct error e = { 0 };

	(void)state;
	assert_null(timeline_open("no/such/folder/t.csv", &e));
	assert_non_null(strstr(e.message, "no/such/folder"));
}

static void the_summary_holds_both_scores(void **state)
{
	static const struct class_score classes[] = { { "a \"quoted\" label", 60, 1, 3600000, 500000 } };
	struct pool_score scores[2] = { { .whole = { .requests = 100, .late = 2, .gpu_ms = HOUR, .starts = 3 },
					  .scored = { .requests = 50, .late = 1, .started = 50, .wait_p99 = 1500 },
					  .classes = classes,
					  .class_count = 1 } };
	const struct run_result result = { .pools = scores, .simulated = HOUR, .stopped = true };
	const struct summary_run run = { &fleet, "preheat 0", "preheat", "", 7, 15000, 0, NULL, NULL };
	CLEANUP(buf_release) struct buf out = { 0 };

	(void)state;
	summary_json(&run, &result, &out);
	assert_non_null(strstr(out.text, "\"complete\": false"));
	assert_non_null(strstr(out.text, "\"late_share\": 0.02000000"));
	assert_non_null(strstr(out.text, "\"gpu_hours\": 1.0000"));
	assert_non_null(strstr(out.text, "\"scored\": {\n        \"requests\": 50"));
	assert_non_null(strstr(out.text, "\"wait_p99_s\": 1.500"));
	assert_non_null(strstr(out.text, "\"a \\\"quoted\\\" label\": { \"requests\": 60"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_per_tick_and_pool),
		cmocka_unit_test(an_abandoned_timeline_leaves_nothing),
		cmocka_unit_test(a_folder_that_is_not_there_is_an_error),
		cmocka_unit_test(the_summary_holds_both_scores),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
