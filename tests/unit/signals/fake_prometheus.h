/* A Prometheus server that has scraped some model servers, and a source that asks it. */
#pragma once
#include "signals/prometheus_source.h"
#include "tests/unit/signals/played_http.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SERIES = 300, FAKE_READINGS = 100 };
static const millis EVERY = 15 * SECOND;

/* What is shown of one place; a number is written as it stands, "" leaves the series out. */
struct fake_series {
	const char *labels; /* without braces: "pod":"a" */
	millis age;	    /* of its last sample */
	const char *running, *waiting, *kv;
	int64_t started, completed, short_waits, long_waits; /* up to 1 s; up to 2.5 s */
	bool is_worker, is_down; /* is_worker: it tells nothing; is_down: it cannot be read */
};

struct fake_prometheus {
	struct clock clock;
	struct source *source;
	struct fake_series series[SERIES];
	size_t count;
	millis now;	     /* of the server */
	const char *failing; /* queries that hold this text are answered with status and body below */
	int status;
	const char *body;
	const char *extra;		   /* beside data: ,"warnings":[...] */
	const struct played_answer *other; /* in place of all of these */
	int64_t asked;
	char last[4096]; /* query */
	char authorization[200];
	struct pool_reading readings[FAKE_READINGS];
	size_t reading_count;
};

static inline void fake_sample(const struct fake_prometheus *p, const struct fake_series *s, const char *more,
			       const char *value, struct buf *out)
{
	if (!value[0])
		return;
	if (out->text[out->len - 1] == '}')
		buf_text(out, ",");
	buf_printf(out, "{\"metric\":{%s%s},\"value\":[%" PRId64 ".%03" PRId64 ",\"%s\"]}", s->labels, more,
		   p->now / 1000, p->now % 1000, value);
}

static inline void fake_count(const struct fake_prometheus *p, const struct fake_series *s, const char *more,
			      int64_t value, struct buf *out)
{
	char text[32];

	snprintf(text, sizeof text, "%" PRId64, value);
	fake_sample(p, s, more, text, out);
}

static inline void fake_series_tell(const struct fake_prometheus *p, const struct fake_series *s, const char *query,
				    struct buf *out)
{
	char at[64];

	snprintf(at, sizeof at, "%" PRId64 ".%03" PRId64, (p->now - s->age) / 1000, (p->now - s->age) % 1000);
	if (strstr(query, "(up{"))
		fake_sample(p, s, "", s->is_down ? "0" : "1", out);
	if (strstr(query, "(up{") || s->is_worker)
		return;
	if (strstr(query, "timestamp("))
		fake_sample(p, s, "", at, out);
	else if (strstr(query, "num_requests_running"))
		fake_sample(p, s, "", s->running, out);
	else if (strstr(query, "num_requests_waiting"))
		fake_sample(p, s, "", s->waiting, out);
	else if (strstr(query, "cache_usage"))
		fake_sample(p, s, "", s->kv, out);
	else if (strstr(query, "time_to_first_token_seconds_count"))
		fake_count(p, s, "", s->started, out);
	else if (strstr(query, "queue_time_seconds_count"))
		fake_count(p, s, "", s->short_waits + s->long_waits, out);
	else if (strstr(query, "request_success"))
		fake_count(p, s, "", s->completed, out);
	else if (strstr(query, "prompt_tokens"))
		fake_count(p, s, "", s->completed * 100, out);
	if (!strstr(query, "queue_time_seconds_bucket"))
		return;
	fake_count(p, s, ",\"le\":\"1.0\"", s->short_waits, out);
	fake_count(p, s, ",\"le\":\"2.5\"", s->short_waits + s->long_waits, out);
	fake_count(p, s, ",\"le\":\"+Inf\"", s->short_waits + s->long_waits, out);
}

static inline void fake_answer(void *user, const struct http_request *r, struct played_answer *a)
{
	struct fake_prometheus *p = user;
	const char *query = played_query(r, "query", p->last, sizeof p->last);

	p->asked++;
	p->authorization[0] = '\0';
	for (const char *const *h = r->headers; *h; h++)
		if (strncmp(*h, "Authorization: ", 15) == 0)
			snprintf(p->authorization, sizeof p->authorization, "%s", *h + 15);
	if (p->other) {
		*a = *p->other;
		a->body = (struct buf){ 0 };
		buf_append(&a->body, p->other->body.text, p->other->body.len);
		return;
	}
	if (p->failing && strstr(query, p->failing)) {
		a->status = p->status;
		buf_text(&a->body, p->body);
		return;
	}
	buf_text(&a->body, "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[");
	for (size_t i = 0; i < p->count; i++)
		fake_series_tell(p, &p->series[i], query, &a->body);
	buf_printf(&a->body, "]}%s}", p->extra ? p->extra : "");
}

static inline void fake_reading(void *user, const struct pool_reading *r)
{
	struct fake_prometheus *p = user;

	assert_true(p->reading_count < FAKE_READINGS);
	p->readings[p->reading_count++] = *r;
}

/* Four replicas: a, b and c may start requests, d drains. */
static inline void fake_targets(struct fake_prometheus *p, size_t count)
{
	static const struct source_target targets[] = {
		{ "llm/a/1", "llm", "a", "10.0.0.1", NULL, true, false },
		{ "llm/b/2", "llm", "b", "10.0.0.2", NULL, true, false },
		{ "llm/c/3", "llm", "c", "fd00::3", NULL, true, false },
		{ "llm/d/4", "llm", "d", "10.0.0.4", NULL, false, false },
	};

	source_set_targets(p->source, targets, count);
}

static inline void fake_open_source(struct fake_prometheus *p, const struct http_auth_settings *auth, millis interval)
{
	static const struct promql_label labels[] = { { "namespace", "llm" }, { "app", "say \"hi\"" } };
	const struct prometheus_source_settings s = { .source = { .pool = "chat",
								  .engine = ENGINE_VLLM,
								  .interval = interval,
								  .objective_us = 1000000,
								  .on_reading = fake_reading,
								  .user = p },
						      .url = "http://user:word@10.0.0.9:9090/prom/",
						      .reach = *auth,
						      .labels = labels,
						      .label_count = 2 };

	p->source = prometheus_source_open(NULL, NULL, &p->clock, &s);
	fake_targets(p, 4);
}

static inline struct fake_prometheus *fake_open(void)
{
	struct fake_prometheus *p = calloc(1, sizeof *p);

	assert_non_null(p);
	p->clock = clock_open_by_hand(1800000000000); /* not the server's */
	p->now = 1700000000123;
	played_begin(&p->clock, fake_answer, p);
	fake_open_source(p, &(struct http_auth_settings){ 0 }, EVERY);
	return p;
}

/* `by` later by our clock, and on the server's as much less as ours is faster: the reading of the last round until
 * then. */
static inline struct pool_reading fake_round(struct fake_prometheus *p, millis by)
{
	size_t before = p->reading_count;

	p->now += before ? by / p->clock.speed : 0;
	played_turn(before ? by : 0);
	assert_true(p->reading_count > before);
	return p->readings[p->reading_count - 1];
}

static inline void fake_close(struct fake_prometheus *p)
{
	source_close(p->source);
	played_settle();
	played_end();
	free(p);
}
