#include "signals/counter_delta.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/random.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct page_table table;

static int set_up(void **state)
{
	(void)state;
	table = page_table_make(ENGINE_VLLM, NULL, NULL);
	return 0;
}

#define LEVELS "vllm:num_requests_running 1\nvllm:num_requests_waiting 1\n"

static struct page_content content(const char *text)
{
	CLEANUP(buf_release) struct buf all = { 0 };
	struct page *p = page_open(&table);
	struct page_content c = { 0 };
	struct error e = { 0 };

	buf_printf(&all, LEVELS "%s", text);
	if (!page_feed(p, all.text, all.len, &e) || !page_finish(p, &c, &e))
		fail_msg("%s: %s", text, e.message);
	page_close(p);
	return c;
}

static bool between(const char *before, const char *now, int64_t objective_us, struct counter_delta *out,
		    struct error *e)
{
	struct page_content b = content(before), n = content(now);
	bool ok = counter_delta_between(&b, &n, objective_us, 5 * SECOND, out, e);

	page_content_release(&b);
	page_content_release(&n);
	return ok;
}

#define DONE "vllm:request_success_total"

/* In thousandths; -1: not told. */
static const struct {
	const char *before, *now;
	int64_t completed;
} counters[] = {
	{ "", "", -1 },
	{ DONE " 5\n", DONE " 5\n", 0 },
	{ DONE " 5\n", DONE " 9\n", 4000 },
	/* restarted: counts from 0 */
	{ DONE " 5\n", DONE " 3\n", 3000 },
	{ DONE " 5\n", DONE " 0\n", 0 },
	/* each series by itself */
	{ DONE "{r=\"stop\"} 5\n" DONE "{r=\"length\"} 90\n", DONE "{r=\"stop\"} 3\n" DONE "{r=\"length\"} 91\n",
	  4000 },
	{ DONE "{r=\"stop\"} 5\n", DONE "{r=\"stop\"} 6\n" DONE "{r=\"abort\"} 1\n", 2000 },
	{ DONE "{r=\"stop\"} 5\n" DONE "{r=\"abort\"} 7\n", DONE "{r=\"stop\"} 6\n", 1000 },
	/* another name than before: nothing to compare with */
	{ "", DONE " 9\n", -1 },
	{ "ray_vllm_request_success_total 5\n", DONE " 9\n", -1 },
	{ DONE " 5\n", "", -1 },
};

static void counters_count_series_by_series(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof counters / sizeof *counters; i++) {
		struct counter_delta t;
		struct error e;
		assert_true(between(counters[i].before, counters[i].now, 2000000, &t, &e));
		assert_int_equal(t.has_value[ENGINE_COMPLETED], counters[i].completed >= 0);
		assert_int_equal(t.added[ENGINE_COMPLETED], counters[i].completed >= 0 ? counters[i].completed : 0);
	}
}

#define WAIT "vllm:request_queue_time_seconds"
#define FROM                                                                                              \
	WAIT "_bucket{le=\"1.0\"} 0\n" WAIT "_bucket{le=\"2.0\"} 0\n" WAIT "_bucket{le=\"4.0\"} 0\n" WAIT \
	     "_bucket{le=\"+Inf\"} 0\n" WAIT "_count 0\n"
/* 10 up to 1 s, 20 up to 2 s, 40 up to 4 s, 50 in all */
#define TO                                                                                                   \
	WAIT "_bucket{le=\"1.0\"} 10\n" WAIT "_bucket{le=\"2.0\"} 20\n" WAIT "_bucket{le=\"4.0\"} 40\n" WAIT \
	     "_bucket{le=\"+Inf\"} 50\n" WAIT "_count 50\n"

static const struct {
	int64_t objective_us, late, below_us, above_us;
} objectives[] = {
	{ 2000000, 30000, 2000000, 4000000 }, /* an edge is exact */
	{ 3000000, 20000, 2000000, 4000000 }, /* half of 20 */
	{ 2500000, 25000, 2000000, 4000000 },
	{ 500000, 45000, 0, 1000000 },
	{ 1, 50000, 0, 1000000 },
	{ 0, 50000, 0, 1000000 },
	{ 4000000, 10000, 4000000, PAGE_UNBOUNDED },
	{ 3600000000, 10000, 4000000, PAGE_UNBOUNDED }, /* beyond the last edge nobody knows: late */
};

static void late_is_interpolated_between_edges(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof objectives / sizeof *objectives; i++) {
		struct counter_delta t;
		struct error e;
		assert_true(between(FROM, TO, objectives[i].objective_us, &t, &e));
		assert_true(t.has_late);
		assert_int_equal(t.late, objectives[i].late);
		assert_int_equal(t.below_us, objectives[i].below_us);
		assert_int_equal(t.above_us, objectives[i].above_us);
	}
}

static void late_is_not_told_without_a_histogram(void **state)
{
	struct counter_delta t;
	struct error e;

	(void)state;
	assert_true(between(WAIT "_count 1\n", WAIT "_count 2\n", 2000000, &t, &e));
	assert_false(t.has_late);
	assert_true(between(WAIT "_bucket{le=\"1\"} 1\n", WAIT "_bucket{le=\"1\"} 2\n", 2000000, &t, &e));
	assert_false(t.has_late);
}

static const struct {
	const char *before, *now, *error;
} jumps[] = {
	{ DONE " 1\n", DONE " 1e12\n", "finished requests: 999999999999 more within 5000 ms cannot be" },
	{ DONE " 1\n", DONE " 500002\n", "finished requests: 500001 more within 5000 ms cannot be" },
	{ "vllm:prompt_tokens_total 0\n", "vllm:prompt_tokens_total 5.1e8\n",
	  "prompt tokens: 510000000 more within 5000 ms cannot be" },
	{ "vllm:inter_token_latency_seconds_sum 0\nvllm:inter_token_latency_seconds_count 0\n",
	  "vllm:inter_token_latency_seconds_sum 101\nvllm:inter_token_latency_seconds_count 1\n",
	  "token latency: more than 100 s for each token cannot be" },
	{ "vllm:inter_token_latency_seconds_sum 0\nvllm:inter_token_latency_seconds_count 0\n",
	  "vllm:inter_token_latency_seconds_sum 1e10\nvllm:inter_token_latency_seconds_count 1e8\n",
	  "seconds between tokens: 10000000000 more within 5000 ms cannot be" },
};

static void jumps_beyond_any_machine_are_refused(void **state)
{
	struct counter_delta t;
	struct error e = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof jumps / sizeof *jumps; i++) {
		assert_false(between(jumps[i].before, jumps[i].now, 2000000, &t, &e));
		assert_int_equal(e.kind, ERROR_INVALID);
		assert_string_equal(e.message, jumps[i].error);
	}
	assert_true(between(DONE " 1\n", DONE " 500001\n", 2000000, &t, &e));
}

static void write_page(struct buf *out, const int64_t *values, const bool *shown, size_t count)
{
	buf_clear(out);
	buf_text(out, "");
	for (size_t i = 0; i < count; i++)
		if (shown[i])
			buf_printf(out, DONE "{s=\"%zu\"} %" PRId64 "\n", i, values[i]);
}

/* Random counters that grow, restart, come and go: the sum of all differences is all that was counted. */
static void nothing_is_lost_or_counted_twice(void **state)
{
	enum { SERIES = 5, PAGES = 30 };

	(void)state;
	for (uint64_t seed = 0; seed < 100; seed++) {
		struct random r = random_stream(seed, "counters");
		int64_t values[SERIES] = { 0 }, counted = 0, told = 0;
		bool shown[SERIES] = { true };
		struct buf before = { 0 }, now = { 0 };
		write_page(&before, values, shown, SERIES);
		for (int page = 0; page < PAGES; page++) {
			bool restarts = random_next(&r) % 10 == 0;
			for (size_t i = 0; i < SERIES; i++) {
				int64_t more = (int64_t)(random_next(&r) % 100);
				/* A restart that ends above the old value looks like growth: keep it below. */
				if (restarts && values[i] > 0) {
					more = more < values[i] ? more : values[i] - 1;
					values[i] = 0;
				}
				shown[i] |= random_next(&r) % 4 == 0;
				if (!shown[i])
					continue;
				values[i] += more;
				counted += more;
			}
			write_page(&now, values, shown, SERIES);
			struct counter_delta t;
			struct error e;
			assert_true(between(before.text, now.text, 2000000, &t, &e));
			told += t.added[ENGINE_COMPLETED];
			struct buf swap = before;
			before = now;
			now = swap;
		}
		if (told != counted * 1000)
			print_message("seed %" PRIu64 "\n", seed);
		assert_int_equal(told, counted * 1000);
		buf_release(&before);
		buf_release(&now);
	}
}

#define FIRST "vllm:time_to_first_token_seconds_bucket"

static void histograms_spread_what_came_between_two_pages(void **state)
{
	struct counter_delta t;
	struct error e;
	int64_t lower, upper;

	(void)state;
	/* Two engines in a pod, one of which restarted. */
	assert_true(between(FIRST "{engine=\"0\",le=\"0.1\"} 100\n" FIRST "{engine=\"0\",le=\"0.5\"} 200\n" FIRST
				  "{engine=\"0\",le=\"+Inf\"} 200\n" FIRST "{engine=\"1\",le=\"0.1\"} 7\n" FIRST
				  "{engine=\"1\",le=\"0.5\"} 7\n" FIRST "{engine=\"1\",le=\"+Inf\"} 9\n",
			    FIRST "{engine=\"0\",le=\"0.1\"} 104\n" FIRST "{engine=\"0\",le=\"0.5\"} 210\n" FIRST
				  "{engine=\"0\",le=\"+Inf\"} 210\n" FIRST "{engine=\"1\",le=\"0.1\"} 1\n" FIRST
				  "{engine=\"1\",le=\"0.5\"} 1\n" FIRST "{engine=\"1\",le=\"+Inf\"} 2\n",
			    2000000, &t, &e));
	assert_int_equal(t.wait.count, 0);
	assert_int_equal(t.first_token.count, 3);
	assert_int_equal(t.first_token.bins[0].count, 5000);
	assert_int_equal(t.first_token.bins[1].count, 6000);
	assert_int_equal(t.first_token.bins[2].count, 1000);
	assert_true(histogram_quantile(&t.first_token, 50, &lower, &upper));
	assert_int_equal(lower, 100000);
	assert_int_equal(upper, 500000);
	assert_true(histogram_quantile(&t.first_token, 99, &lower, &upper));
	assert_int_equal(lower, 500000);
	assert_int_equal(upper, HISTOGRAM_UNBOUNDED);
}

static void a_histogram_that_lies_spreads_nothing_it_did_not_say(void **state)
{
	struct counter_delta t;
	struct error e;

	(void)state;
	/* Not cumulative, and beyond counting. */
	assert_true(between(FIRST "{le=\"0.1\"} 0\n" FIRST "{le=\"0.5\"} 0\n" FIRST "{le=\"+Inf\"} 0\n",
			    FIRST "{le=\"0.1\"} 9\n" FIRST "{le=\"0.5\"} 5\n" FIRST "{le=\"+Inf\"} 1e13\n", 2000000, &t,
			    &e));
	assert_int_equal(t.first_token.count, 2);
	assert_int_equal(t.first_token.bins[0].count, 9000);
	assert_int_equal(t.first_token.bins[1].above_us, 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_count_series_by_series),
		cmocka_unit_test(late_is_interpolated_between_edges),
		cmocka_unit_test(late_is_not_told_without_a_histogram),
		cmocka_unit_test(jumps_beyond_any_machine_are_refused),
		cmocka_unit_test(nothing_is_lost_or_counted_twice),
		cmocka_unit_test(histograms_spread_what_came_between_two_pages),
		cmocka_unit_test(a_histogram_that_lies_spreads_nothing_it_did_not_say),
	};

	return cmocka_run_group_tests_name("tally", tests, set_up, NULL);
}
