/* A pool of model servers, a source that scrapes them, and a clock that a test turns. */
#pragma once
#include "signals/scrape.h"
#include "tests/unit/signals/played_http.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PODS = 200, READINGS = 200, STEPS = 20 };
static const millis INTERVAL = 5 * SECOND;

struct fake_pod {
	int64_t running, waiting, started, completed, waited_short, waited_long; /* waits up to 1 s; up to 2.5 s */
	int status;								 /* 0: 200 */
	const char *page;							 /* in place of its own */
	const struct buf *bytes;						 /* the same, of any bytes */
	const char *type;							 /* of the answer; NULL: none */
	const struct played_answer *other;					 /* in place of all of these */
	int64_t asked;
};

struct fake_pool {
	struct clock clock;
	struct source *source;
	struct fake_pod pods[PODS];
	struct source_target targets[PODS];
	char keys[PODS][32], urls[PODS][64];
	size_t count;
	struct pool_reading readings[READINGS];
	size_t reading_count;
	void (*on_reading)(struct fake_pool *p);
};

static inline void fake_pod_page(const struct fake_pod *pod, struct buf *out)
{
	static const char wait[] = "vllm:request_queue_time_seconds";
	int64_t waited = pod->waited_short + pod->waited_long;

	buf_printf(out, "vllm:num_requests_running{engine=\"0\"} %" PRId64 ".0\n", pod->running);
	buf_printf(out, "vllm:num_requests_waiting{engine=\"0\"} %" PRId64 ".0\n", pod->waiting);
	buf_text(out, "vllm:kv_cache_usage_perc{engine=\"0\"} 0.5\n");
	buf_printf(out, "vllm:request_success_total{engine=\"0\"} %" PRId64 ".0\n", pod->completed);
	buf_printf(out, "vllm:prompt_tokens_total{engine=\"0\"} %" PRId64 "\n", pod->completed * 100);
	buf_printf(out, "vllm:generation_tokens_total{engine=\"0\"} %" PRId64 "\n", pod->completed * 10);
	buf_printf(out, "vllm:time_to_first_token_seconds_count{engine=\"0\"} %" PRId64 ".0\n", pod->started);
	buf_printf(out, "%s_bucket{le=\"1.0\"} %" PRId64 ".0\n", wait, pod->waited_short);
	buf_printf(out, "%s_bucket{le=\"2.5\"} %" PRId64 ".0\n", wait, waited);
	buf_printf(out, "%s_bucket{le=\"+Inf\"} %" PRId64 ".0\n%s_count %" PRId64 ".0\n", wait, waited, wait, waited);
	buf_printf(out, "vllm:inter_token_latency_seconds_sum{engine=\"0\"} %.6f\n", (double)pod->completed * .2);
	buf_printf(out, "vllm:inter_token_latency_seconds_count{engine=\"0\"} %" PRId64 "\n", pod->completed * 10);
}

static inline void fake_pod_answer(void *user, const struct http_request *r, struct played_answer *a)
{
	struct fake_pool *p = user;
	struct fake_pod *pod = &p->pods[strtoul(strstr(r->url, "/pod/") + strlen("/pod/"), NULL, 10)];

	pod->asked++;
	if (pod->other) {
		*a = *pod->other;
		a->body = (struct buf){ 0 };
		buf_append(&a->body, pod->other->body.text, pod->other->body.len);
		return;
	}
	a->status = pod->status;
	a->type = pod->type;
	if (pod->bytes)
		buf_append(&a->body, pod->bytes->text, pod->bytes->len);
	else if (pod->page)
		buf_text(&a->body, pod->page);
	else
		fake_pod_page(pod, &a->body);
}

static inline void fake_pool_reading(void *user, const struct pool_reading *r)
{
	struct fake_pool *p = user;

	assert_true(p->reading_count < READINGS);
	p->readings[p->reading_count++] = *r;
	if (p->on_reading)
		p->on_reading(p);
}

static inline void fake_pool_source(struct fake_pool *p, millis interval)
{
	p->source = scrape_source_open(NULL, NULL, &p->clock,
				       &(struct scrape_source_settings){
					       .source = { .pool = "chat",
							   .engine = ENGINE_VLLM,
							   .interval = interval,
							   .objective_us = 2000000,
							   .on_reading = fake_pool_reading,
							   .user = p },
				       });
	source_set_targets(p->source, p->targets, p->count);
}

static inline struct fake_pool *fake_pool_open(size_t count)
{
	struct fake_pool *p = calloc(1, sizeof *p);

	assert_non_null(p);
	p->clock = clock_open_by_hand(1700000000000);
	played_begin(&p->clock, fake_pod_answer, p);
	p->count = count;
	for (size_t i = 0; i < count; i++) {
		snprintf(p->keys[i], sizeof p->keys[i], "pod-%03zu", i);
		snprintf(p->urls[i], sizeof p->urls[i], "http://10.0.0.1:8000/pod/%zu", i);
		p->targets[i] = (struct source_target){ .key = p->keys[i], .url = p->urls[i], .is_ready = true };
	}
	fake_pool_source(p, INTERVAL);
	return p;
}

static inline const struct error *fake_pool_trouble(const struct fake_pool *p)
{
	static struct source_report report;

	report = source_report(p->source);
	return &report.trouble;
}

static inline void fake_pool_step(struct fake_pool *p)
{
	(void)p;
	played_turn(INTERVAL / STEPS);
}

/* One round, from its first instant to just before the next one's; returns its reading. */
static inline struct pool_reading fake_pool_round(struct fake_pool *p)
{
	size_t before = p->reading_count;

	if (clock_mono(&p->clock) == 0)
		played_settle();
	else
		fake_pool_step(p);
	for (int i = 1; i < STEPS; i++)
		fake_pool_step(p);
	assert_int_equal(p->reading_count, before + 1);
	return p->readings[before];
}

static inline void fake_pool_close(struct fake_pool *p)
{
	source_close(p->source);
	played_settle();
	played_end();
	free(p);
}
