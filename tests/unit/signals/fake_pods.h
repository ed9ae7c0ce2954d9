/* A pool of model servers behind one loopback server, a scraper over them, and a clock that a test turns. */
#pragma once
#include "base/net/server.h"
#include "signals/scrape.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PODS = 200, READINGS = 100, STEPS = 20 };
static const millis INTERVAL = 5 * SECOND;

struct fake_pod {
	int64_t running, waiting, started, completed, waited_short, waited_long; /* waits up to 1 s; up to 2.5 s */
	int status;								 /* 0: 200 */
	const char *page;							 /* in place of its own */
	const struct buf *bytes;						 /* the same, of any bytes */
	const char *type, *header;						 /* of the answer; NULL: none */
	int64_t asked;
};

struct fake_pool {
	struct loop *loop;
	struct http *http;
	struct server *server;
	struct clock clock;
	struct scraper *scraper;
	struct fake_pod pods[PODS];
	struct scrape_target targets[PODS];
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

static inline void fake_pod_answer(const struct server_request *q, struct server_answer *a)
{
	struct fake_pool *p = q->user;
	size_t pod = strtoul(q->path + strlen("/pod/"), NULL, 10);

	p->pods[pod].asked++;
	if (p->pods[pod].status)
		a->status = p->pods[pod].status;
	if (p->pods[pod].type)
		a->content_type = p->pods[pod].type;
	a->headers[0] = p->pods[pod].header;
	if (p->pods[pod].bytes)
		buf_append(&a->body, p->pods[pod].bytes->text, p->pods[pod].bytes->len);
	else if (p->pods[pod].page)
		buf_text(&a->body, p->pods[pod].page);
	else
		fake_pod_page(&p->pods[pod], &a->body);
}

static inline void fake_pool_reading(struct scraper *s, const struct pool_reading *r)
{
	struct fake_pool *p = scraper_user(s);

	assert_true(p->reading_count < READINGS);
	p->readings[p->reading_count++] = *r;
	if (p->on_reading)
		p->on_reading(p);
}

static inline struct fake_pool *fake_pool_open(size_t count)
{
	static struct server_route route = { "GET", "/pod/*", fake_pod_answer, NULL };
	struct fake_pool *p = calloc(1, sizeof *p);
	struct error e;

	assert_non_null(p);
	route.user = p;
	p->loop = loop_open();
	p->http = http_open(p->loop, "test", &e);
	p->clock = clock_open_by_hand(1700000000000);
	p->server = server_open(
		p->loop,
		&(struct server_settings){
			.listen = "127.0.0.1:0", .routes = &route, .route_count = 1, .max_connections = 600 },
		&e);
	assert_non_null(p->server);
	p->count = count;
	for (size_t i = 0; i < count; i++) {
		snprintf(p->keys[i], sizeof p->keys[i], "pod-%03zu", i);
		snprintf(p->urls[i], sizeof p->urls[i], "http://127.0.0.1:%d/pod/%zu", server_port(p->server), i);
		p->targets[i] = (struct scrape_target){ p->keys[i], p->urls[i], true };
	}
	p->scraper = scraper_open(p->loop, p->http, &p->clock,
				  &(struct scrape_settings){ .pool = "chat",
							     .engine = ENGINE_VLLM,
							     .interval = INTERVAL,
							     .objective_us = 2000000,
							     .on_reading = fake_pool_reading,
							     .user = p });
	scraper_set_targets(p->scraper, p->targets, p->count);
	return p;
}

static inline void fake_pool_settle(struct fake_pool *p)
{
	while (http_active(p->http))
		loop_once(p->loop);
}

static inline void fake_pool_step(struct fake_pool *p)
{
	clock_turn(&p->clock, INTERVAL / STEPS);
	if (p->scraper)
		scraper_advance(p->scraper);
	fake_pool_settle(p);
}

/* One round, from its first instant to just before the next one's; returns its reading. */
static inline struct pool_reading fake_pool_round(struct fake_pool *p)
{
	size_t before = p->reading_count;

	if (clock_mono(&p->clock) == 0) {
		scraper_advance(p->scraper);
		fake_pool_settle(p);
	} else {
		fake_pool_step(p);
	}
	for (int i = 1; i < STEPS; i++)
		fake_pool_step(p);
	assert_int_equal(p->reading_count, before + 1);
	return p->readings[before];
}

static inline void fake_pool_close(struct fake_pool *p)
{
	scraper_close(p->scraper);
	fake_pool_settle(p);
	server_close(p->server);
	http_close(p->http);
	loop_close(p->loop);
	free(p);
}
