/* A page as vLLM V1 shows it, with every family that it has: made here, not recorded. */
#pragma once
#include "base/buf.h"

#include <inttypes.h>
#include <stdio.h>

struct vllm_histogram {
	const char *name, *help;
	const char *const *bounds;
	int64_t total;
	double sum;
};

static inline void vllm_put_family(struct buf *out, const char *name, const char *type)
{
	buf_printf(out, "# HELP %s What the model server says of it.\n# TYPE %s %s\n", name, name, type);
}

static inline void vllm_put(struct buf *out, const char *name, const char *type, double value)
{
	vllm_put_family(out, name, type);
	buf_printf(out, "%s{engine=\"0\",model_name=\"meta-llama/Llama-3.1-8B-Instruct\"} %.1f\n", name, value);
}

/* All observations lie in the second half of the buckets. */
static inline void vllm_put_histogram(struct buf *out, const struct vllm_histogram *h)
{
	static const char labels[] = "engine=\"0\",model_name=\"meta-llama/Llama-3.1-8B-Instruct\"";
	size_t count = 0;

	while (h->bounds[count])
		count++;
	vllm_put_family(out, h->name, "histogram");
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "%s_bucket{%s,le=\"%s\"} %" PRId64 ".0\n", h->name, labels, h->bounds[i],
			   i < count / 2 ? 0 : h->total);
	buf_printf(out, "%s_bucket{%s,le=\"+Inf\"} %" PRId64 ".0\n", h->name, labels, h->total);
	buf_printf(out, "%s_count{%s} %" PRId64 ".0\n", h->name, labels, h->total);
	buf_printf(out, "%s_sum{%s} %.6f\n", h->name, labels, h->sum);
	vllm_put_family(out, h->name, "gauge");
	buf_printf(out, "%s_created{%s} 1.7123456780123e+09\n", h->name, labels);
}

static inline void vllm_put_levels(struct buf *out)
{
	for (int generation = 0; generation < 3; generation++) {
		vllm_put_family(out, "python_gc_objects_collected_total", "counter");
		buf_printf(out, "python_gc_objects_collected_total{generation=\"%d\"} 12345.0\n", generation);
	}
	vllm_put(out, "process_start_time_seconds", "gauge", 1712345678.);
	vllm_put(out, "vllm:num_requests_running", "gauge", 7);
	vllm_put(out, "vllm:num_requests_waiting", "gauge", 3);
	vllm_put(out, "vllm:engine_sleep_state", "gauge", 0);
	vllm_put_family(out, "vllm:kv_cache_usage_perc", "gauge");
	buf_text(out, "vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"m\"} 0.4375\n");
	vllm_put_family(out, "vllm:cache_config_info", "gauge");
	buf_text(out,
		 "vllm:cache_config_info{block_size=\"16\",cache_dtype=\"auto\",calculate_kv_scales=\"False\","
		 "cpu_offload_gb=\"0.0\",enable_prefix_caching=\"True\",engine=\"0\",gpu_memory_utilization=\"0.9\","
		 "num_gpu_blocks=\"27000\",swap_space_bytes=\"4294967296.0\"} 1.0\n");
}

static inline void vllm_put_counters(struct buf *out, int64_t requests)
{
	static const char *const reasons[] = { "stop", "length", "abort", "error", "repetition", NULL };

	vllm_put(out, "vllm:prefix_cache_queries_total", "counter", 4e6);
	vllm_put(out, "vllm:prefix_cache_hits_total", "counter", 2e6);
	vllm_put(out, "vllm:num_preemptions_total", "counter", 12);
	vllm_put(out, "vllm:prompt_tokens_total", "counter", (double)requests * 1000);
	vllm_put(out, "vllm:generation_tokens_total", "counter", (double)requests * 250);
	vllm_put_family(out, "vllm:request_success_total", "counter");
	for (size_t i = 0; reasons[i]; i++)
		buf_printf(out,
			   "vllm:request_success_total{engine=\"0\",finished_reason=\"%s\",model_name=\"m\"} %" PRId64
			   ".0\n",
			   reasons[i], i ? 0 : requests);
}

static inline void vllm_put_histograms(struct buf *out, const char *const *names, const char *const *bounds,
				       int64_t total, double sum)
{
	for (; *names; names++)
		vllm_put_histogram(
			out, &(struct vllm_histogram){ .name = *names, .bounds = bounds, .total = total, .sum = sum });
}

/* After so many requests of 250 output tokens; 31.25 ms between tokens. */
static inline void vllm_page(struct buf *out, int64_t requests)
{
	static const char *const waits[] = { "0.3",   "0.5",   "0.8",	"1.0",	  "1.5",    "2.0",  "2.5",  "5.0",
					     "10.0",  "15.0",  "20.0",	"30.0",	  "40.0",   "50.0", "60.0", "120.0",
					     "240.0", "480.0", "960.0", "1920.0", "7680.0", NULL };
	static const char *const firsts[] = { "0.001", "0.005", "0.01", "0.02",	 "0.04",  "0.06",   "0.08", "0.1",
					      "0.25",  "0.5",	"0.75", "1.0",	 "2.5",	  "5.0",    "7.5",  "10.0",
					      "20.0",  "40.0",	"80.0", "160.0", "640.0", "2560.0", NULL };
	static const char *const sizes[] = { "1.0",    "2.0",	 "5.0",	    "10.0",    "20.0",
					     "50.0",   "100.0",	 "200.0",   "500.0",   "1000.0",
					     "2000.0", "5000.0", "10000.0", "20000.0", NULL };
	static const char *const of_waits[] = {
		"vllm:e2e_request_latency_seconds",    "vllm:request_queue_time_seconds",
		"vllm:request_inference_time_seconds", "vllm:request_prefill_time_seconds",
		"vllm:request_decode_time_seconds",    NULL
	};
	static const char *const of_firsts[] = { "vllm:time_to_first_token_seconds", NULL };
	static const char *const of_tokens[] = { "vllm:inter_token_latency_seconds",
						 "vllm:time_per_output_token_seconds", NULL };
	static const char *const of_sizes[] = { "vllm:request_prompt_tokens",
						"vllm:request_generation_tokens",
						"vllm:request_max_num_generation_tokens",
						"vllm:request_params_max_tokens",
						"vllm:request_params_n",
						"vllm:iteration_tokens_total",
						NULL };
	double n = (double)requests;

	vllm_put_levels(out);
	vllm_put_counters(out, requests);
	vllm_put_histograms(out, of_waits, waits, requests, n * 3);
	vllm_put_histograms(out, of_firsts, firsts, requests, n / 2);
	vllm_put_histograms(out, of_tokens, firsts, requests * 249, n * 249 * .03125);
	vllm_put_histograms(out, of_sizes, sizes, requests, n * 500);
}
