#include "signals/engine_metrics.h"

#include "base/buf.h"
#include "tests/unit/signals/vllm_page.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool read_text(enum engine engine, const char *text, size_t len, struct page_content *c, struct error *e)
{
	struct page_table table = page_table_make(engine, NULL, NULL);
	struct page *p = page_open(&table);
	bool ok = page_feed(p, text, len, e) && page_finish(p, c, e);

	page_close(p);
	return ok;
}

/* What the page says of a counter, in whole units; -1 when nothing. */
static int64_t sum_of(enum engine engine, const struct page_content *c, enum engine_quantity q)
{
	struct engine_metrics m = engine_metrics(engine);
	int64_t sum = 0;

	if (c->rank[q] < 0)
		return -1;
	for (size_t i = 0; i < c->series_count; i++)
		if (m.rows[c->series[i].row].quantity == q)
			sum += c->series[i].value;
	return sum / (q == ENGINE_LATENCY_SUM ? 1000000 : 1000);
}

#define LEVELS "vllm:num_requests_running 1\nvllm:num_requests_waiting 1\n"

struct golden {
	const char *name;
	enum engine engine;
	const char *page;
	int64_t running, waiting, kv_permille;
	int64_t started, waited, completed, prompt, output, latency_sum, latency_count;
	size_t buckets;
};

static const struct golden golden[] = {
	{ "vllm V1, two engines in a pod", ENGINE_VLLM,
	  "# HELP vllm:num_requests_running Number of requests in model execution batches.\n"
	  "# TYPE vllm:num_requests_running gauge\n"
	  "vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 4.0\n"
	  "vllm:num_requests_running{engine=\"1\",model_name=\"m\"} 5.0\n"
	  "vllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 0.0\n"
	  "vllm:num_requests_waiting{engine=\"1\",model_name=\"m\"} 2.0\n"
	  "vllm:num_requests_waiting_by_reason{engine=\"1\",reason=\"capacity\"} 2.0\n"
	  "vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"m\"} 0.25\n"
	  "vllm:kv_cache_usage_perc{engine=\"1\",model_name=\"m\"} 0.4567\n"
	  "vllm:prompt_tokens_total{engine=\"0\",model_name=\"m\"} 1.2345678e+07\n"
	  "vllm:prompt_tokens_created{engine=\"0\",model_name=\"m\"} 1.7e+09\n"
	  "vllm:generation_tokens_total{engine=\"0\",model_name=\"m\"} 1e+06\n"
	  "vllm:request_success_total{engine=\"0\",finished_reason=\"stop\",model_name=\"m\"} 90.0\n"
	  "vllm:request_success_total{engine=\"1\",finished_reason=\"length\",model_name=\"m\"} 9.0\n"
	  "vllm:request_queue_time_seconds_bucket{engine=\"0\",le=\"0.3\",model_name=\"m\"} 80.0\n"
	  "vllm:request_queue_time_seconds_bucket{engine=\"0\",le=\"+Inf\",model_name=\"m\"} 99.0\n"
	  "vllm:request_queue_time_seconds_count{engine=\"0\",model_name=\"m\"} 99.0\n"
	  "vllm:request_queue_time_seconds_sum{engine=\"0\",model_name=\"m\"} 12.5\n"
	  "vllm:time_to_first_token_seconds_count{engine=\"0\",model_name=\"m\"} 108.0\n"
	  "vllm:inter_token_latency_seconds_sum{engine=\"0\",model_name=\"m\"} 30.5\n"
	  "vllm:inter_token_latency_seconds_count{engine=\"0\",model_name=\"m\"} 1000.0\n"
	  "vllm:time_per_output_token_seconds_sum{engine=\"0\",model_name=\"m\"} 99.0\n"
	  "vllm:time_per_output_token_seconds_count{engine=\"0\",model_name=\"m\"} 999.0\n"
	  "vllm:iteration_tokens_total_count{engine=\"0\",model_name=\"m\"} 7.0\n",
	  9, 2, 457, 108, 99, 99, 12345678, 1000000, 30, 1000, 2 },
	{ "an older vllm", ENGINE_VLLM,
	  "vllm:num_requests_running{model_name=\"m\"} 1\nvllm:num_requests_waiting{model_name=\"m\"} 0\n"
	  "vllm:gpu_cache_usage_perc{model_name=\"m\"} 0.5\n"
	  "vllm:time_per_output_token_seconds_sum{model_name=\"m\"} 2\n"
	  "vllm:time_per_output_token_seconds_count{model_name=\"m\"} 40\n"
	  "vllm:request_queue_time_seconds_count{model_name=\"m\"} 3\n",
	  1, 0, 500, 3, 3, -1, -1, -1, 2, 40, 0 },
	{ "vllm under Ray", ENGINE_VLLM,
	  "ray_vllm_num_requests_running{ReplicaId=\"r1\",model_name=\"m\"} 3.0\n"
	  "ray_vllm_num_requests_waiting{ReplicaId=\"r1\",model_name=\"m\"} 1.0\n"
	  "ray_vllm_kv_cache_usage_perc{ReplicaId=\"r1\"} 0.1\n"
	  "ray_vllm_prompt_tokens_total{ReplicaId=\"r1\"} 100\nray_vllm_generation_tokens{ReplicaId=\"r1\"} 200\n"
	  "ray_vllm_request_success_total{ReplicaId=\"r1\"} 8\n"
	  "ray_vllm_time_to_first_token_seconds_count{ReplicaId=\"r1\"} 9\n",
	  3, 1, 100, 9, -1, 8, 100, 200, -1, -1, 0 },
	{ "sglang", ENGINE_SGLANG,
	  "sglang:num_running_reqs{model_name=\"m\",tp_rank=\"0\"} 5\n"
	  "sglang:num_running_reqs_offline_batch{model_name=\"m\"} 4\nsglang:num_queue_reqs{model_name=\"m\"} 6\n"
	  "sglang:token_usage{model_name=\"m\"} 0.28\nsglang:prompt_tokens_total{model_name=\"m\"} 8128902\n"
	  "sglang:generation_tokens_total{model_name=\"m\"} 7557572\nsglang:num_requests_total{model_name=\"m\"} 11\n"
	  "sglang:time_to_first_token_seconds_count{model_name=\"m\"} 12\n"
	  "sglang:queue_time_seconds_bucket{le=\"1\",model_name=\"m\"} 10\n"
	  "sglang:queue_time_seconds_count{model_name=\"m\"} 12\n"
	  "sglang:inter_token_latency_seconds_sum{model_name=\"m\"} 4\n"
	  "sglang:inter_token_latency_seconds_count{model_name=\"m\"} 100\n",
	  5, 6, 280, 12, 12, 11, 8128902, 7557572, 4, 100, 1 },
	{ "sglang that decodes what others prefill", ENGINE_SGLANG,
	  "sglang:num_running_reqs{priority=\"\"} 5\nsglang:num_queue_reqs{priority=\"\"} 1\n"
	  "sglang:num_decode_prealloc_queue_reqs{priority=\"\"} 20\n"
	  "sglang:num_decode_transfer_queue_reqs{priority=\"\"} 300\n",
	  5, 321, INT64_MIN, -1, -1, -1, -1, -1, -1, -1, 0 },
	{ "sglang that prefills for others", ENGINE_SGLANG,
	  "sglang:num_running_reqs{priority=\"\"} 5\nsglang:num_queue_reqs{priority=\"\"} 1\n"
	  "sglang:num_prefill_bootstrap_queue_reqs{priority=\"\"} 20\n"
	  "sglang:num_prefill_inflight_queue_reqs{priority=\"\"} 300\n",
	  305, 21, INT64_MIN, -1, -1, -1, -1, -1, -1, -1, 0 },
	{ "ranks of one engine that tell the same", ENGINE_SGLANG,
	  "sglang:num_running_reqs{moe_ep_rank=\"0\"} 5\nsglang:num_running_reqs{moe_ep_rank=\"1\"} 5\n"
	  "sglang:num_queue_reqs{moe_ep_rank=\"0\"} 1\nsglang:num_queue_reqs{moe_ep_rank=\"1\"} 1\n",
	  5, 1, INT64_MIN, -1, -1, -1, -1, -1, -1, -1, 0 },
	{ "sglang with underscores", ENGINE_SGLANG, "sglang_num_running_reqs 1\nsglang_num_queue_reqs 2\n", 1, 2,
	  INT64_MIN, -1, -1, -1, -1, -1, -1, -1, 0 },
	{ "tgi", ENGINE_TGI,
	  "tgi_batch_current_size 3\ntgi_queue_size 4\ntgi_request_success 17\n"
	  "tgi_request_queue_duration_bucket{le=\"0.5\"} 10\ntgi_request_queue_duration_count 20\n"
	  "tgi_request_generated_tokens_sum 500\ntgi_request_input_length_sum 900\n"
	  "tgi_request_mean_time_per_token_duration_sum 2\ntgi_request_mean_time_per_token_duration_count 20\n",
	  3, 4, INT64_MIN, 20, 20, 17, 900, 500, 2, 20, 1 },
	{ "tgi before its first request", ENGINE_TGI, "tgi_batch_max_total_tokens 131072\ntgi_request_success 0\n", 0,
	  0, INT64_MIN, -1, -1, 0, -1, -1, -1, -1, 0 },
	{ "triton", ENGINE_TRITON,
	  "nv_trt_llm_request_metrics{model=\"tensorrt_llm\",request_type=\"waiting\",version=\"1\"} 2\n"
	  "nv_trt_llm_request_metrics{model=\"tensorrt_llm\",request_type=\"scheduled\",version=\"1\"} 6\n"
	  "nv_trt_llm_request_metrics{model=\"tensorrt_llm\",request_type=\"max\",version=\"1\"} 512\n"
	  "nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"fraction\",model=\"tensorrt_llm\"} 0.75\n"
	  "nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"max\",model=\"tensorrt_llm\"} 6239\n",
	  6, 2, 750, -1, -1, -1, -1, -1, -1, -1, 0 },
	{ "trtllm-serve", ENGINE_TRITON,
	  "trtllm_num_requests_running 7\ntrtllm_num_requests_waiting 8\ntrtllm_kv_cache_utilization 0.3\n"
	  "trtllm_request_success_total{finished_reason=\"stop\"} 150.0\n"
	  "trtllm_time_to_first_token_seconds_count 160\n"
	  "trtllm_request_queue_time_seconds_bucket{le=\"0.3\"} 100\ntrtllm_request_queue_time_seconds_count 150\n"
	  "trtllm_time_per_output_token_seconds_sum 9\ntrtllm_time_per_output_token_seconds_count 900\n",
	  7, 8, 300, 160, 150, 150, -1, -1, 9, 900, 1 },
	{ "trtllm-serve before its first request", ENGINE_TRITON,
	  "trtllm_prompt_cached_tokens_total{model_name=\"m\"} 0.0\n"
	  "trtllm_model_config_info{dtype=\"auto\",model=\"m\",model_name=\"m\"} 1.0\n",
	  0, 0, INT64_MIN, -1, -1, -1, -1, -1, -1, -1, 0 },
	{ "llama.cpp", ENGINE_LLAMACPP,
	  "# TYPE llamacpp:prompt_tokens_total counter\nllamacpp:prompt_tokens_total 3210\n"
	  "llamacpp:prompt_seconds_total 4.5\nllamacpp:tokens_predicted_total 640\n"
	  "llamacpp:tokens_predicted_seconds_total 16\nllamacpp:predicted_tokens_seconds 40\n"
	  "llamacpp:requests_processing 3\nllamacpp:requests_deferred 1\nllamacpp:n_busy_slots_per_decode 2.5\n",
	  3, 1, INT64_MIN, -1, -1, -1, 3210, 640, 16, 640, 0 },
	{ "a worker of Dynamo with vllm inside", ENGINE_DYNAMO,
	  "dynamo_component_inflight_requests{dynamo_component=\"backend\",dynamo_endpoint=\"generate\"} 9\n"
	  "dynamo_component_requests_total{dynamo_component=\"backend\",dynamo_endpoint=\"generate\"} 123\n"
	  "vllm:num_requests_running{model_name=\"m\"} 7\nvllm:num_requests_waiting{model_name=\"m\"} 2\n"
	  "vllm:kv_cache_usage_perc{model_name=\"m\"} 0.5\nvllm:request_success_total{finished_reason=\"stop\"} 120\n"
	  "vllm:time_to_first_token_seconds_count{model_name=\"m\"} 130\n",
	  7, 2, 500, 130, -1, 120, -1, -1, -1, -1, 0 },
	{ "a worker of Dynamo with sglang inside", ENGINE_DYNAMO,
	  "dynamo_component_requests_total 123\nsglang:num_running_reqs 4\nsglang:num_queue_reqs 0\n"
	  "sglang:token_usage 0.25\n",
	  4, 0, 250, -1, -1, 123, -1, -1, -1, -1, 0 },
	{ "a worker of Dynamo that holds requests back", ENGINE_DYNAMO,
	  "dynamo_engine_request 4\ndynamo_request_queue 6\n" LEVELS, 1, 7, INT64_MIN, -1, -1, -1, -1, -1, -1, -1, 0 },
};

static void pages_of_each_engine_are_understood(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
		const struct golden *g = &golden[i];
		struct page_content c;
		struct error e = { 0 };
		if (!read_text(g->engine, g->page, strlen(g->page), &c, &e))
			fail_msg("%s: %s", g->name, e.message);
		print_message("%s\n", g->name);
		assert_int_equal(c.running, g->running);
		assert_int_equal(c.waiting, g->waiting);
		assert_int_equal(c.kv_permille, g->kv_permille);
		assert_int_equal(sum_of(g->engine, &c, ENGINE_STARTED), g->started);
		assert_int_equal(sum_of(g->engine, &c, ENGINE_WAITED), g->waited);
		assert_int_equal(sum_of(g->engine, &c, ENGINE_COMPLETED), g->completed);
		assert_int_equal(sum_of(g->engine, &c, ENGINE_PROMPT_TOKENS), g->prompt);
		assert_int_equal(sum_of(g->engine, &c, ENGINE_OUTPUT_TOKENS), g->output);
		assert_int_equal(sum_of(g->engine, &c, ENGINE_LATENCY_SUM), g->latency_sum);
		assert_int_equal(sum_of(g->engine, &c, ENGINE_LATENCY_COUNT), g->latency_count);
		size_t buckets = 0;
		for (size_t s = 0; s < c.series_count; s++)
			buckets += engine_metrics(g->engine).rows[c.series[s].row].quantity == ENGINE_WAIT_BUCKET;
		assert_int_equal(buckets, g->buckets);
		page_content_release(&c);
	}
}

static void a_whole_page_is_read(void **state)
{
	struct buf text = { 0 };
	struct page_content c;
	struct error e;

	(void)state;
	vllm_page(&text, 1000);
	assert_true(read_text(ENGINE_VLLM, text.text, text.len, &c, &e));
	assert_int_equal(c.running, 7);
	assert_int_equal(c.waiting, 3);
	assert_int_equal(c.kv_permille, 438);
	assert_int_equal(sum_of(ENGINE_VLLM, &c, ENGINE_COMPLETED), 1000);
	assert_int_equal(sum_of(ENGINE_VLLM, &c, ENGINE_LATENCY_COUNT), 249000);
	page_content_release(&c);
	buf_release(&text);
}

static const struct {
	const char *page, *error;
} bad[] = {
	{ "", "the page has no vllm:num_requests_running or ray_vllm_num_requests_running: is this the metrics page of "
	      "the engine?" },
	{ "<html><body>404</body></html>\n", "the page has no vllm:num_requests_running or "
					     "ray_vllm_num_requests_running: is this the metrics page of the engine?" },
	{ "vllm:num_requests_running 1\n", "the page has no vllm:num_requests_waiting or "
					   "ray_vllm_num_requests_waiting: is this the metrics page of the engine?" },
	{ "vllm:num_requests_running NaN\n", "line 1: vllm:num_requests_running: the value 'NaN' is not a number" },
	{ "vllm:num_requests_running 1\nvllm:num_requests_waiting -1\n",
	  "line 2: vllm:num_requests_waiting: the value '-1' is less than nothing" },
	{ "vllm:num_requests_running +Inf\n",
	  "line 1: vllm:num_requests_running: the value '+Inf' is more than can be" },
	{ "vllm:num_requests_running 2000000\n",
	  "line 1: vllm:num_requests_running: more than 1000000 requests cannot be" },
	{ "vllm:num_requests_running{e=\"0\"} 900000\nvllm:num_requests_running{e=\"1\"} 900000\n"
	  "vllm:num_requests_waiting 1\n",
	  "1800000 running and 1 waiting requests cannot be" },
	{ LEVELS "vllm:prompt_tokens_total 1e300\n",
	  "line 3: vllm:prompt_tokens_total: the value '1e300' is more than can be" },
	{ LEVELS "vllm:prompt_tokens_total many\n",
	  "line 3: vllm:prompt_tokens_total: the value 'many' is not a number" },
	{ LEVELS "vllm:request_queue_time_seconds_bucket 1\n",
	  "line 3: vllm:request_queue_time_seconds_bucket: a bucket without the label le" },
	{ LEVELS "vllm:request_queue_time_seconds_bucket{le=\"x\"} 1\n",
	  "line 3: vllm:request_queue_time_seconds_bucket: le: the value 'x' is not a number" },
	{ LEVELS "vllm:request_queue_time_seconds_bucket{le=\"NaN\"} 1\n",
	  "line 3: vllm:request_queue_time_seconds_bucket: le: the value 'NaN' is not a number" },
	{ LEVELS "vllm:prompt_tokens_total{a=\"1\"} 1\nvllm:prompt_tokens_total{a=\"1\"} 1\n",
	  "vllm:prompt_tokens_total: the same series twice" },
	{ LEVELS "vllm:prompt_tok", "line 3: the page ends within it" },
	{ LEVELS "vllm:request_success_total NaN\n",
	  "line 3: vllm:request_success_total: the value 'NaN' is not a number" },
};

static void a_page_that_cannot_be_is_refused_as_a_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct page_content c = { .running = -7 };
		struct error e = { 0 };
		assert_false(read_text(ENGINE_VLLM, bad[i].page, strlen(bad[i].page), &c, &e));
		/* a page of something else, which a wrong page of the engine is not */
		assert_int_equal(e.kind, strstr(bad[i].page, "vllm:num") ? ERROR_INVALID : ERROR_NOT_FOUND);
		assert_string_equal(e.message, bad[i].error);
		assert_int_equal(c.running, -7);
	}
}

/* Without levels a server that has served is one of which too little is known; one that has not may be none. */
static void only_an_idle_server_may_lack_levels(void **state)
{
	static const char served[] =
		"trtllm_model_config_info 1\ntrtllm_request_success_total{finished_reason=\"stop\"} 1\n";
	struct page_content c;
	struct error e = { 0 };

	(void)state;
	assert_false(read_text(ENGINE_TRITON, served, strlen(served), &c, &e));
	assert_int_equal(e.kind, ERROR_INVALID);
	assert_string_equal(e.message, "the page has no nv_trt_llm_request_metrics or trtllm_num_requests_running: is "
				       "this the metrics page of the engine?");
	assert_false(read_text(ENGINE_SGLANG, "sglang:num_requests_total 0\n", 28, &c, &e));
	assert_int_equal(e.kind, ERROR_NOT_FOUND);
}

static void what_no_decision_needs_refuses_no_page(void **state)
{
	static const char *const rows[] = { "vllm:prefix_cache_hits_total NaN\nvllm:prefix_cache_queries_total -1\n",
					    "vllm:time_to_first_token_seconds_bucket{le=\"1\"} Inf\n",
					    "vllm:engine_startup_time_seconds soon\n" };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		CLEANUP(buf_release) struct buf text = { 0 };
		struct page_content c;
		struct error e = { 0 };
		buf_printf(&text, LEVELS "%s", rows[i]);
		if (!read_text(ENGINE_VLLM, text.text, text.len, &c, &e))
			fail_msg("%s: %s", rows[i], e.message);
		assert_int_equal(c.running, 1);
		assert_int_equal(c.series_count, 0);
		page_content_release(&c);
	}
}

static void a_level_that_cannot_be_is_not_told(void **state)
{
	static const char *const values[] = { "43.7", "NaN", "-1", "+Inf", "much" };

	(void)state;
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		CLEANUP(buf_release) struct buf text = { 0 };
		struct page_content c;
		struct error e;
		buf_printf(&text, LEVELS "vllm:kv_cache_usage_perc %s\n", values[i]);
		assert_true(read_text(ENGINE_VLLM, text.text, text.len, &c, &e));
		assert_int_equal(c.running, 1);
		assert_int_equal(c.kv_permille, INT64_MIN);
		page_content_release(&c);
	}
}

static void size_and_series_are_capped(void **state)
{
	struct page_table table = page_table_make(ENGINE_VLLM, NULL, NULL);
	struct page *p = page_open(&table);
	struct buf text = { 0 };
	struct page_content c;
	struct error e = { 0 };

	(void)state;
	for (int i = 0; i <= PAGE_SERIES; i++)
		buf_printf(&text, "vllm:request_success_total{x=\"%d\"} 1\n", i);
	assert_false(read_text(ENGINE_VLLM, text.text, text.len, &c, &e));
	assert_string_equal(e.message, "line 20001: more than 20000 samples of the metrics asked for");

	buf_clear(&text);
	while (text.len < 4096)
		buf_text(&text, "never_asked_for 1\n");
	for (size_t fed = 0; fed + text.len <= PAGE_BYTES; fed += text.len)
		assert_true(page_feed(p, text.text, text.len, &e));
	assert_false(page_feed(p, text.text, text.len, &e));
	assert_string_equal(e.message, "the page is longer than 2097152 bytes");
	page_close(p);
	buf_release(&text);
}

static void engines_have_names_and_both_levels(void **state)
{
	(void)state;
	for (int i = 0; i < ENGINE_COUNT; i++) {
		struct engine_metrics m = engine_metrics((enum engine)i);
		unsigned seen = 0;
		assert_true(m.count > 0 && m.count <= ENGINE_ROWS);
		for (size_t r = 0; r < m.count; r++)
			seen |= 1U << m.rows[r].quantity;
		assert_true(seen & 1U << ENGINE_RUNNING && seen & 1U << ENGINE_WAITING);
	}
}

static const struct {
	enum engine engine;
	const char *page;
	int64_t queries, hits, prefix_permille, load_ms, startup_ms; /* -1 or INT64_MIN: not told */
} more[] = {
	{ ENGINE_VLLM,
	  LEVELS
	  "vllm:prefix_cache_queries_total{engine=\"0\"} 1000.0\nvllm:prefix_cache_hits_total{engine=\"0\"} 250.0\n"
	  "vllm:gpu_prefix_cache_queries_total{engine=\"0\"} 7.0\n",
	  1000, 250, INT64_MIN, INT64_MIN, INT64_MIN },
	{ ENGINE_VLLM, LEVELS "vllm:gpu_prefix_cache_queries_total 70\nvllm:gpu_prefix_cache_hits_total 7\n", 70, 7,
	  INT64_MIN, INT64_MIN, INT64_MIN },
	{ ENGINE_VLLM, LEVELS "vllm:engine_startup_time_seconds 93.5\n", -1, -1, INT64_MIN, INT64_MIN, 93500 },
	{ ENGINE_SGLANG,
	  "sglang:num_running_reqs 1\nsglang:num_queue_reqs 2\nsglang:prompt_tokens_total 900\n"
	  "sglang:cached_tokens_total{cache_source=\"device\"} 300\nsglang:cache_hit_rate 0.333\n"
	  "sglang:engine_load_weights_time{tp_rank=\"0\"} 41.25\nsglang:engine_load_weights_time{tp_rank=\"1\"} 42\n"
	  "sglang:engine_startup_time 118.5\n",
	  900, 300, 333, 42000, 118500 },
	/* What cannot be is not told; what is unknown refuses no page. */
	{ ENGINE_SGLANG,
	  "sglang_num_running_reqs 1\nsglang_num_queue_reqs 2\nsglang_cache_hit_rate NaN\n"
	  "sglang_engine_startup_time 1e9\nsglang_engine_load_weights_time 0\n",
	  -1, -1, INT64_MIN, INT64_MIN, INT64_MIN },
	{ ENGINE_TRITON,
	  "nv_trt_llm_request_metrics{request_type=\"waiting\"} "
	  "0\nnv_trt_llm_request_metrics{request_type=\"scheduled\"} 0\n"
	  "nv_model_load_duration_secs{model=\"m\"} 163.2\n",
	  -1, -1, INT64_MIN, 163200, INT64_MIN },
};

static void caches_and_load_times_are_understood(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
		struct page_content c;
		struct error e = { 0 };
		if (!read_text(more[i].engine, more[i].page, strlen(more[i].page), &c, &e))
			fail_msg("%zu: %s", i, e.message);
		assert_int_equal(sum_of(more[i].engine, &c, ENGINE_PREFIX_QUERIES), more[i].queries);
		assert_int_equal(sum_of(more[i].engine, &c, ENGINE_PREFIX_HITS), more[i].hits);
		assert_int_equal(c.prefix_permille, more[i].prefix_permille);
		assert_int_equal(c.load_ms, more[i].load_ms);
		assert_int_equal(c.startup_ms, more[i].startup_ms);
		page_content_release(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_of_each_engine_are_understood),
		cmocka_unit_test(a_whole_page_is_read),
		cmocka_unit_test(caches_and_load_times_are_understood),
		cmocka_unit_test(a_page_that_cannot_be_is_refused_as_a_whole),
		cmocka_unit_test(only_an_idle_server_may_lack_levels),
		cmocka_unit_test(what_no_decision_needs_refuses_no_page),
		cmocka_unit_test(a_level_that_cannot_be_is_not_told),
		cmocka_unit_test(size_and_series_are_capped),
		cmocka_unit_test(engines_have_names_and_both_levels),
	};

	return cmocka_run_group_tests_name("page", tests, NULL, NULL);
}
