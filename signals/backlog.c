#include "signals/backlog.h"

#include "base/arena.h"
#include "base/json.h"
#include "signals/page.h"
#include "signals/picker.h"

#include <stdlib.h>
#include <string.h>

static const size_t MOST_BYTES = (size_t)4 << 20, MOST_REFUSAL = (size_t)64 << 10;
static const millis DEADLINE_LEAST = SECOND;
static const int64_t MOST_WAITING = 100000000;

struct backlog {
	struct loop *loop;
	struct http *http;
	const struct clock *clock;
	struct arena arena;
	struct backlog_settings settings;
	struct timer timer;
	bool is_closed, is_asked;
	millis asked_at; /* clock_mono(); 0: never */
	bool has_begun;

	bool is_known;
	int64_t waiting;
	millis read_at; /* clock_mono() */
	struct error trouble;

	/* PromQL */
	struct prometheus *prometheus;
	struct prometheus_call call;
	int64_t samples, value;

	/* Pages and documents */
	struct reach *reach;
	struct reach_shown shown;
	struct http_request request;
	struct picker_page *picker;
	struct json_number *number;
	size_t bytes;
	struct timer refused;
	struct error refusal;
};

static void free_backlog(struct backlog *q)
{
	timer_stop(&q->timer);
	prometheus_close(q->prometheus);
	reach_close(q->reach);
	arena_release(&q->arena);
	free(q);
}

static void on_timer(struct timer *t)
{
	backlog_advance(t->user);
}

static void wait_for_next(struct backlog *q)
{
	millis next = q->asked_at + q->settings.interval, now = clock_mono(q->clock);

	timer_start(q->loop, &q->timer, clock_real(q->clock, next > now ? next - now : 0), on_timer);
}

/* The answer was read, or `e` says why not. The queue may be gone after it. */
static void heard(struct backlog *q, int64_t waiting, const struct error *e)
{
	q->is_asked = false;
	if (q->is_closed) {
		free_backlog(q);
		return;
	}
	q->trouble = *e;
	if (e->kind == ERROR_NONE) {
		q->is_known = true;
		q->waiting = waiting;
		q->read_at = clock_mono(q->clock);
	}
	wait_for_next(q);
}

static millis deadline(const struct backlog *q)
{
	millis real = clock_real(q->clock, q->settings.deadline);

	return q->clock->speed > 1 && real < DEADLINE_LEAST ? DEADLINE_LEAST : real;
}

static bool on_sample(void *user, const struct prometheus_sample *sample, struct error *e)
{
	struct backlog *q = user;

	q->samples++;
	if (!page_value(ENGINE_COMPLETED, sample->value, &q->value, e))
		return false;
	return q->value <= MOST_WAITING * 1000 ||
	       error_set(e, ERROR_INVALID, "more than %lld requests cannot be", (long long)MOST_WAITING);
}

static void on_prometheus(struct prometheus_call *c)
{
	struct backlog *q = c->user;
	struct error e = c->error;

	if (e.kind == ERROR_NONE && q->samples != 1)
		error_set(&e, ERROR_NOT_FOUND, "%s: the expression gave %lld series; allowed: one: %s",
			  prometheus_url(q->prometheus), (long long)q->samples,
			  q->samples ? "put sum() around it" : "where nothing means an empty queue, add: or vector(0)");
	heard(q, (q->value + 500) / 1000, &e);
}

static void ask_prometheus(struct backlog *q)
{
	q->samples = q->value = 0;
	q->call.query = q->settings.expression;
	q->call.timeout = deadline(q);
	q->call.most_samples = 1000;
	q->call.most_bytes = MOST_BYTES;
	q->call.on_sample = on_sample;
	q->call.done = on_prometheus;
	q->call.user = q;
	prometheus_start(q->prometheus, &q->call);
}

static bool read_end(struct backlog *q, int64_t *waiting, struct error *e)
{
	const struct http_request *r = &q->request;

	if (r->error.kind != ERROR_NONE) {
		*e = r->error;
		return false;
	}
	if (r->status < 200 || r->status > 299)
		return error_set(e, http_status_kind(r->status), "HTTP status %ld", r->status);
	return q->picker ? picker_page_finish(q->picker, waiting, e) : json_number_finish(q->number, waiting, e);
}

static void end_page(struct backlog *q, int64_t waiting, const struct error *e)
{
	picker_page_close(q->picker);
	json_number_close(q->number);
	q->picker = NULL;
	q->number = NULL;
	reach_shown_release(&q->shown);
	heard(q, waiting, e);
}

static void on_done(struct http_request *r)
{
	struct backlog *q = r->user;
	struct error e = { 0 };
	int64_t waiting = 0;

	if (!read_end(q, &waiting, &e) && r->error.kind == ERROR_NONE)
		error_wrap(&e, "%s", reach_url(q->reach));
	end_page(q, waiting, &e);
}

static bool on_chunk(struct http_request *r, const char *bytes, size_t len)
{
	struct backlog *q = r->user;
	struct error *e = &r->error;

	q->bytes += len;
	if (q->bytes > MOST_BYTES)
		error_set(e, ERROR_INVALID, "the answer is longer than %zu bytes", MOST_BYTES);
	else if (q->picker ? picker_page_feed(q->picker, bytes, len, e) : json_number_feed(q->number, bytes, len, e))
		return true;
	return error_wrap(e, "%s", reach_url(q->reach));
}

static void on_refused(struct timer *t)
{
	struct backlog *q = t->user;

	const struct error e = q->refusal;

	end_page(q, 0, &e);
}

static void ask_page(struct backlog *q)
{
	bool is_json = q->settings.kind == BACKLOG_JSON;

	q->bytes = 0;
	q->request = (struct http_request){ .method = "GET",
					    .url = q->settings.url,
					    .accepts_gzip = true,
					    .timeout = deadline(q),
					    .max_response = MOST_REFUSAL,
					    .on_chunk = on_chunk,
					    .done = on_done,
					    .user = q };
	if (!reach_show(q->reach, is_json ? "Accept: application/json" : "Accept: text/plain;version=0.0.4",
			&q->request, &q->shown, &q->refusal)) {
		error_wrap(&q->refusal, "%s", reach_url(q->reach));
		q->refused.user = q;
		timer_start(q->loop, &q->refused, 0, on_refused);
		return;
	}
	if (is_json)
		q->number = json_number_open(q->settings.expression);
	else
		q->picker = picker_page_open(q->settings.expression);
	http_start(q->http, &q->request);
}

void backlog_advance(struct backlog *q)
{
	millis now = clock_mono(q->clock);

	if (q->is_asked)
		return;
	if (q->has_begun && now - q->asked_at < q->settings.interval) {
		wait_for_next(q);
		return;
	}
	q->has_begun = q->is_asked = true;
	q->asked_at = now;
	if (q->prometheus)
		ask_prometheus(q);
	else
		ask_page(q);
}

static const char *copy(struct backlog *q, const char *text)
{
	return arena_strdup(&q->arena, text, strlen(text));
}

struct backlog *backlog_open(struct loop *loop, struct http *http, const struct clock *clock,
			     const struct backlog_settings *settings)
{
	struct backlog *q = calloc(1, sizeof *q);

	if (!q)
		abort();
	q->loop = loop;
	q->http = http;
	q->clock = clock;
	q->settings = *settings;
	q->settings.url = copy(q, settings->url);
	q->settings.expression = copy(q, settings->expression);
	if (settings->kind == BACKLOG_PROMQL)
		q->prometheus = prometheus_open(loop, http, settings->url, &settings->reach);
	else
		q->reach = reach_open(settings->url, &settings->reach);
	q->timer.user = q;
	timer_start(loop, &q->timer, 0, on_timer);
	return q;
}

void backlog_close(struct backlog *q)
{
	if (!q)
		return;
	q->is_closed = true;
	timer_stop(&q->timer);
	if (!q->is_asked)
		free_backlog(q);
	else if (q->prometheus)
		prometheus_cancel(&q->call);
	else if (!timer_is_running(&q->refused))
		http_cancel(&q->request);
}

int64_t backlog_waiting(const struct backlog *q)
{
	bool is_recent = q->is_known && clock_mono(q->clock) - q->read_at <= READING_GAP * q->settings.interval;

	return is_recent ? q->waiting : READING_NOT_TOLD;
}

const struct error *backlog_trouble(const struct backlog *q)
{
	return &q->trouble;
}
