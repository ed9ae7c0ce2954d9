/* The pages that model servers' own loggers wrote (tests/signals/record_pages.py), or servers themselves
 * (tests/signals/record_servers.py), and what they said there. */
#include "signals/engine_metrics.h"

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct recorded {
	const char *file;
	enum engine engine;
	int64_t running, waiting, kv_permille;
	int64_t started, waited, late_edge; /* late_edge: of those that waited, up to 2 s */
	int64_t completed, prompt, output, latency_count, refused;
	int64_t load_ms, startup_ms;
	enum engine_sleep sleep;
} recorded[] = {
	{ "vllm", ENGINE_VLLM, 9, 6, 500, 6, 4, 2, 4, 18000, 601, 200, 2, INT64_MIN, INT64_MIN, SLEEP_NONE },
	{ "vllm_asleep", ENGINE_VLLM, 0, 0, 0, 6, 4, 2, 4, 18000, 601, 200, 2, INT64_MIN, INT64_MIN, SLEEP_DISCARDED },
	{ "vllm", ENGINE_DYNAMO, 9, 6, 500, 6, 4, 2, 4, 18000, 601, 200, 2, INT64_MIN, INT64_MIN, SLEEP_NONE },
	/* Two data-parallel halves, one of them of four ranks; totals and priorities. */
	{ "sglang", ENGINE_SGLANG, 11, 8, 500, 2, 4, 2, 2, 6000, 200, 200, -1, 41500, 93750, SLEEP_NONE },
	{ "sglang", ENGINE_DYNAMO, 11, 8, 500, 2, 4, 2, 2, 6000, 200, 200, -1, 41500, 93750, SLEEP_NONE },
	/* Around the page of vllm: two requests in the engine, one before it, five refused. */
	{ "dynamo", ENGINE_DYNAMO, 9, 7, 500, 6, 4, 2, 4, 18000, 601, 200, 5, INT64_MIN, INT64_MIN, SLEEP_NONE },
	/* Two slots and five requests, none of which has ended; the two before them shared a prompt. */
	{ "llamacpp", ENGINE_LLAMACPP, 2, 3, INT64_MIN, -1, -1, -1, -1, 304, 16, 16, -1, INT64_MIN, INT64_MIN,
	  SLEEP_NONE },
	{ "lmdeploy", ENGINE_LMDEPLOY, 5, 5, 375, 2, 2, 1, 2, 1800, 200, 2, -1, INT64_MIN, INT64_MIN, SLEEP_NONE },
};

static void read_page(const char *name, struct buf *out)
{
	char path[200], bytes[4096];
	size_t len;

	snprintf(path, sizeof path, "tests/signals/pages/%s.prom", name);
	FILE *f = fopen(path, "rb");
	if (!f)
		fail_msg("%s cannot be read", path);
	while ((len = fread(bytes, 1, sizeof bytes, f)) > 0)
		buf_append(out, bytes, len);
	fclose(f);
}

static int64_t sum_of(const struct page_content *c, enum engine_quantity q, int64_t le_us)
{
	int64_t sum = 0;

	if (c->rank[q] < 0)
		return -1;
	for (size_t i = 0; i < c->series_count; i++)
		if (c->table->metrics.rows[c->series[i].row].quantity == q &&
		    (!engine_is_bucket(q) || c->series[i].le_us == le_us))
			sum += c->series[i].value;
	return sum / 1000;
}

static void assert_told(const struct recorded *r, const struct page_content *c)
{
	assert_int_equal(c->running, r->running);
	assert_int_equal(c->waiting, r->waiting);
	assert_int_equal(c->kv_permille, r->kv_permille);
	assert_int_equal(sum_of(c, ENGINE_STARTED, 0), r->started);
	assert_int_equal(sum_of(c, ENGINE_WAITED, 0), r->waited);
	assert_int_equal(sum_of(c, ENGINE_WAIT_BUCKET, 2000000), r->late_edge);
	assert_int_equal(sum_of(c, ENGINE_COMPLETED, 0), r->completed);
	assert_int_equal(sum_of(c, ENGINE_PROMPT_TOKENS, 0), r->prompt);
	assert_int_equal(sum_of(c, ENGINE_OUTPUT_TOKENS, 0), r->output);
	assert_int_equal(sum_of(c, ENGINE_LATENCY_COUNT, 0), r->latency_count);
	assert_int_equal(sum_of(c, ENGINE_REFUSED, 0), r->refused);
	assert_int_equal(c->load_ms, r->load_ms);
	assert_int_equal(c->startup_ms, r->startup_ms);
	assert_int_equal(c->sleep, r->sleep);
}

static void pages_of_real_loggers_say_what_these_were_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++) {
		const struct recorded *r = &recorded[i];
		struct page_table table = page_table_make(r->engine, NULL, NULL);
		struct page *p = page_open(&table);
		CLEANUP(buf_release) struct buf text = { 0 };
		struct page_content c;
		struct error e = { 0 };
		print_message("%s as engine %d\n", r->file, (int)r->engine);
		read_page(r->file, &text);
		if (!page_feed(p, text.text, text.len, &e) || !page_finish(p, &c, &e))
			fail_msg("%s: %s", r->file, e.message);
		assert_told(r, &c);
		page_content_release(&c);
		page_close(p);
	}
}

/* Its levels come from the TensorRT-LLM backend, which needs a GPU; what it rejected it tells with any. */
static void triton_tells_what_waited_too_long(void **state)
{
	struct page_table table = page_table_make(ENGINE_TRITON, NULL, NULL);
	struct page *p = page_open(&table);
	CLEANUP(buf_release) struct buf text = { 0 };
	struct page_content c;
	struct error e = { 0 };

	(void)state;
	read_page("triton", &text);
	buf_text(&text, "nv_trt_llm_request_metrics{model=\"m\",request_type=\"scheduled\",version=\"1\"} 3\n"
			"nv_trt_llm_request_metrics{model=\"m\",request_type=\"waiting\",version=\"1\"} 1\n");
	if (!page_feed(p, text.text, text.len, &e) || !page_finish(p, &c, &e))
		fail_msg("%s", e.message);
	assert_int_equal(c.running, 3);
	assert_int_equal(c.waiting, 1);
	assert_int_equal(sum_of(&c, ENGINE_COMPLETED, 0), 2);
	assert_int_equal(sum_of(&c, ENGINE_REFUSED, 0), 2);
	page_content_release(&c);
	page_close(p);
}

/* The recorded page of level 2, with what the logger writes otherwise. */
static enum engine_sleep sleep_with(const char *old, const char *new)
{
	struct page_table table = page_table_make(ENGINE_VLLM, NULL, NULL);
	struct page *p = page_open(&table);
	CLEANUP(buf_release) struct buf text = { 0 };
	CLEANUP(buf_release) struct buf changed = { 0 };
	struct page_content c;
	struct error e = { 0 };

	read_page("vllm_asleep", &text);
	for (const char *at = text.text, *next; *at; at = next + strlen(old)) {
		next = strstr(at, old);
		buf_append(&changed, at, next ? (size_t)(next - at) : strlen(at));
		if (!next)
			break;
		buf_text(&changed, new);
	}
	if (!page_feed(p, changed.text, changed.len, &e) || !page_finish(p, &c, &e))
		fail_msg("%s", e.message);
	page_content_release(&c);
	page_close(p);
	return c.sleep;
}

static void the_level_of_sleep_is_told(void **state)
{
	(void)state;
	assert_int_equal(sleep_with("sleep_state=\"discard_all\"} 1.0", "sleep_state=\"discard_all\"} 0.0"),
			 SLEEP_OFFLOADED);
	assert_int_equal(sleep_with("sleep_state=\"awake\"} 0.0", "sleep_state=\"awake\"} 1.0"), SLEEP_NONE);
	assert_int_equal(sleep_with("sleep_state=\"discard_all\"", "sleep_state=\"other\""), SLEEP_UNTOLD);
	/* Of several engines in a pod one is awake: it takes requests. */
	assert_int_equal(sleep_with("{engine=\"1\",model_name=\"m\",sleep_state=\"awake\"} 0.0",
				    "{engine=\"1\",model_name=\"m\",sleep_state=\"awake\"} 1.0"),
			 SLEEP_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(pages_of_real_loggers_say_what_these_were_told),
					    cmocka_unit_test(triton_tells_what_waited_too_long),
					    cmocka_unit_test(the_level_of_sleep_is_told) };

	return cmocka_run_group_tests_name("recorded pages", tests, NULL, NULL);
}
