#include "signals/engine_metrics.h"

#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct {
	const char *text;
	bool is_one;
} names[] = {
	{ "running", true },
	{ "my:requests_running_2", true },
	{ "_x", true },
	{ ":x", true },
	{ "requests{state=\"running\"}", true },
	{ "requests{state=\"a b/c.d:e-f_1\"}", true },
	{ "", false },
	{ "2x", false },
	{ "my-requests", false },
	{ "my requests", false },
	{ "requests ", false },
	{ "requests{}", false },
	{ "requests{state}", false },
	{ "requests{state=running}", false },
	{ "requests{state=\"running\"", false },
	{ "requests{state=\"\"}", false },
	{ "requests{state=\"a\\\"b\"}", false },
	{ "requests{state=\"a\",b=\"c\"}", false },
	{ "requests{st:ate=\"a\"}", false },
	{ "requests{state!=\"a\"}", false },
	{ "sum(requests)", false },
	{ "requests{state=\"running\"}x", false },
	{ "gr\xc3\xb6\xc3\x9f"
	  "e",
	  false },
};

static void a_name_is_taken_or_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct metric_name m = { 0 };
		if (metric_name_parse(names[i].text, &m) != names[i].is_one)
			fail_msg("'%s'", names[i].text);
		assert_int_equal(m.name_len > 0, names[i].is_one);
	}
}

static bool read_page(const struct engine_metrics *m, const char *text, struct page_content *c, struct error *e)
{
	struct arena a = { 0 };
	struct page_table table = page_table_make(ENGINE_VLLM, m, &a);
	struct page *p = page_open(&table);
	bool ok = page_feed(p, text, strlen(text), e) && page_finish(p, c, e);

	arena_release(&a);
	page_close(p);
	return ok;
}

static void a_page_is_read_by_a_persons_names(void **state)
{
	static const char *const given[CUSTOM_COUNT] = { [CUSTOM_RUNNING] = "requests{state=\"running\"}",
							 [CUSTOM_WAITING] = "requests{state=\"waiting\"}",
							 [CUSTOM_KV_CACHE] = "cache",
							 [CUSTOM_QUEUE_WAIT] = "wait_seconds",
							 [CUSTOM_FIRST_TOKEN] = "ttft{phase=\"all\"}",
							 [CUSTOM_STARTUP_TIME] = "boot_seconds",
							 [CUSTOM_REFUSED] = "answers{code=\"429\"}" };
	static const char text[] =
		"requests{state=\"running\",m=\"a\"} 3\nrequests{state=\"running\",m=\"b\"} 4\n"
		"requests{state=\"waiting\"} 2\nrequests{state=\"done\"} 99\ncache 0.5\ncache{m=\"b\"} 0.25\n"
		"wait_seconds_bucket{le=\"1\"} 5\nwait_seconds_bucket{le=\"+Inf\"} 9\nwait_seconds_count 9\n"
		"ttft_bucket{phase=\"all\",le=\"0.1\"} 7\nttft_bucket{phase=\"one\",le=\"0.1\"} 1\n"
		"ttft_count{phase=\"all\"} 8\nboot_seconds 12.5\nanswers{code=\"429\"} 6\nanswers{code=\"200\"} 70\n";
	struct arena a = { 0 };
	struct engine_metrics m = custom_metrics(given, &a);
	struct page_content c;
	struct error e = { 0 };

	(void)state;
	assert_true(read_page(&m, text, &c, &e));
	assert_int_equal(c.running, 7);
	assert_int_equal(c.waiting, 2);
	assert_int_equal(c.kv_permille, 500);
	assert_int_equal(c.startup_ms, 12500);
	assert_int_equal(c.rank[ENGINE_STARTED], 1);
	assert_int_equal(c.rank[ENGINE_COMPLETED], -1);
	int64_t started = 0, refused = 0, buckets = 0;
	for (size_t i = 0; i < c.series_count; i++) {
		enum engine_quantity q = m.rows[c.series[i].row].quantity;
		started += q == ENGINE_STARTED ? c.series[i].value : 0;
		refused += q == ENGINE_REFUSED ? c.series[i].value : 0;
		buckets += engine_is_bucket(q);
	}
	assert_int_equal(started, 8000);
	assert_int_equal(refused, 6000);
	assert_int_equal(buckets, 3);
	page_content_release(&c);

	/* The message names the person's name, so that it can be found in the manifest. */
	assert_false(read_page(&m, "vllm:num_requests_running 1\n", &c, &e));
	assert_non_null(strstr(e.message, "the page has no requests"));
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_taken_or_refused),
		cmocka_unit_test(a_page_is_read_by_a_persons_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
