#include "signals/external_queue.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/json.h"
#include "base/text.h"
#include "signals/engine_metrics.h"
#include "signals/prometheus.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SAMPLES = 20000, MOST_SERIES = 1000 };
static const size_t MOST_BYTES = (size_t)4 << 20, MOST_REFUSAL = (size_t)64 << 10;
static const millis DEADLINE_LEAST = SECOND;
static const int64_t MOST_WAITING = 100000000;

/*
 * What an endpoint picker (Gateway API inference extension, llm-d) shows: requests that its flow control holds back, in
 * no model server's metrics yet. The best name first; the saturation, behind the queues, shows that flow control is on,
 * so that no queue is an empty one.
 */
static const char *const names[] = { "llm_d_epp_flow_control_queue_size", "inference_extension_flow_control_queue_size",
				     "llm_d_epp_flow_control_pool_saturation",
				     "inference_extension_flow_control_pool_saturation" };
enum { NAMES = sizeof names / sizeof *names, QUEUES = 2 };

struct external_queue {
	struct loop *loop;
	struct http *http;
	const struct clock *clock;
	struct arena arena;
	struct external_queue_settings settings;
	struct timer timer;
	bool is_closed, is_requested;
	millis requested_at; /* clock_mono() */

	bool is_known;
	int64_t waiting;
	millis read_at; /* clock_mono() */
	struct error trouble;

	/* PromQL */
	struct prometheus *prometheus;
	struct prometheus_call call;
	int64_t samples, value;

	/* Pages of a picker and JSON documents */
	struct http_auth *auth;
	struct http_auth_shown shown;
	struct http_request request;
	struct exposition *page;
	int64_t sum[QUEUES];
	bool is_shown[NAMES];
	struct json_number *number;
	size_t bytes;
	struct timer refused;
	struct error refusal;
};

void endpoint_picker_query(const char *pool, struct buf *out)
{
	for (size_t i = 0; i < NAMES; i++) {
		buf_printf(out, "%s%s(%s{inference_pool=", i ? " or " : "", i < QUEUES ? "sum" : "0 * count", names[i]);
		promql_text(pool, out);
		buf_text(out, "})");
	}
}

static void free_queue(struct external_queue *q)
{
	timer_stop(&q->timer);
	prometheus_close(q->prometheus);
	http_auth_close(q->auth);
	arena_release(&q->arena);
	free(q);
}

static void on_timer(struct timer *t);

/* The answer was read, or `e` says why not. The queue may be gone after it. */
static void end_call(struct external_queue *q, int64_t waiting, const struct error *e)
{
	millis now = clock_mono(q->clock), next = q->requested_at + q->settings.interval;

	q->is_requested = false;
	if (q->is_closed) {
		free_queue(q);
		return;
	}
	q->trouble = *e;
	if (e->kind == ERROR_NONE) {
		q->is_known = true;
		q->waiting = waiting;
		q->read_at = now;
	}
	timer_start(q->loop, &q->timer, clock_real(q->clock, next > now ? next - now : 0), on_timer);
}

static bool on_series(void *user, const struct prometheus_sample *sample, struct error *e)
{
	struct external_queue *q = user;

	q->samples++;
	if (!page_value(ENGINE_COMPLETED, sample->value, &q->value, e))
		return false;
	return q->value <= MOST_WAITING * 1000 ||
	       error_set(e, ERROR_INVALID, "more than %lld requests cannot be", (long long)MOST_WAITING);
}

static void on_prometheus(struct prometheus_call *c)
{
	struct external_queue *q = c->user;
	struct error e = c->error;

	if (e.kind == ERROR_NONE && q->samples != 1)
		error_set(&e, ERROR_NOT_FOUND, "%s: the expression gave %lld series; allowed: one: %s",
			  prometheus_url(q->prometheus), (long long)q->samples,
			  q->samples ? "put sum() around it" : "where nothing means an empty queue, add: or vector(0)");
	end_call(q, (q->value + 500) / 1000, &e);
}

/* A picker serves one pool; older ones do not name it. */
static bool on_page_sample(void *user, const struct exposition_sample *s, struct error *e)
{
	struct external_queue *q = user;
	const char *pool = q->settings.expression;
	struct exposition_slice found;
	int64_t value;

	if (exposition_label(s, "inference_pool", &found) &&
	    (found.len != strlen(pool) || memcmp(found.text, pool, found.len) != 0))
		return true;
	q->is_shown[s->name] = true;
	if (s->name >= QUEUES)
		return true;
	if (!page_value(ENGINE_WAITING, s->value, &value, e))
		return error_wrap(e, "%s", names[s->name]);
	q->sum[s->name] += value;
	return true;
}

static bool finish_page(struct external_queue *q, int64_t *waiting, struct error *e)
{
	const char *pool = q->settings.expression;
	char room[QUOTE_ROOM];

	if (!exposition_finish(q->page, e))
		return false;
	for (size_t i = 0; i < NAMES; i++)
		if (q->is_shown[i]) {
			*waiting = i < QUEUES ? (q->sum[i] + 500) / 1000 : 0;
			return true;
		}
	return error_set(e, ERROR_NOT_FOUND,
			 "no %s of the inference pool %s; is flow control on in the endpoint picker?", names[0],
			 quote(room, pool, strlen(pool)));
}

static bool finish_answer(struct external_queue *q, int64_t *waiting, struct error *e)
{
	const struct http_request *r = &q->request;

	if (r->error.kind != ERROR_NONE) {
		*e = r->error;
		return false;
	}
	if (r->status < 200 || r->status > 299)
		error_set(e, http_status_kind(r->status), "HTTP status %ld", r->status);
	else if (q->page ? finish_page(q, waiting, e) : json_number_finish(q->number, waiting, e))
		return true;
	return error_wrap(e, "%s", http_auth_url(q->auth));
}

static void end_answer(struct external_queue *q, int64_t waiting, const struct error *e)
{
	const struct error error = *e;

	exposition_close(q->page);
	json_number_close(q->number);
	q->page = NULL;
	q->number = NULL;
	http_auth_shown_release(&q->shown);
	end_call(q, waiting, &error);
}

static void on_done(struct http_request *r)
{
	struct external_queue *q = r->user;
	struct error e = { 0 };
	int64_t waiting = 0;

	(void)finish_answer(q, &waiting, &e);
	end_answer(q, waiting, &e);
}

static void on_refused(struct timer *t)
{
	struct external_queue *q = t->user;

	end_answer(q, 0, &q->refusal);
}

static bool on_chunk(struct http_request *r, const char *bytes, size_t len)
{
	struct external_queue *q = r->user;
	struct error *e = &r->error;

	q->bytes += len;
	if (q->bytes > MOST_BYTES)
		error_set(e, ERROR_INVALID, "the answer is longer than %zu bytes", MOST_BYTES);
	else if (q->page ? exposition_feed(q->page, bytes, len, e) : json_number_feed(q->number, bytes, len, e))
		return true;
	return error_wrap(e, "%s", http_auth_url(q->auth));
}

static void ask_server(struct external_queue *q, millis timeout)
{
	bool is_json = q->settings.kind == EXTERNAL_QUEUE_JSON;

	q->bytes = 0;
	q->request = (struct http_request){ .method = "GET",
					    .url = q->settings.url,
					    .accepts_gzip = true,
					    .timeout = timeout,
					    .max_response = MOST_REFUSAL,
					    .on_chunk = on_chunk,
					    .done = on_done,
					    .user = q };
	if (!http_auth_show(q->auth, is_json ? "Accept: application/json" : "Accept: text/plain;version=0.0.4",
			    &q->request, &q->shown, &q->refusal)) {
		error_wrap(&q->refusal, "%s", http_auth_url(q->auth));
		timer_start(q->loop, &q->refused, 0, on_refused);
		return;
	}
	if (is_json) {
		q->number = json_number_open(q->settings.expression);
	} else {
		memset(q->sum, 0, sizeof q->sum);
		memset(q->is_shown, 0, sizeof q->is_shown);
		q->page = exposition_open((struct exposition_names){ names, NAMES }, MOST_SAMPLES, on_page_sample, q);
	}
	http_start(q->http, &q->request);
}

static void ask(struct external_queue *q)
{
	millis real = clock_real(q->clock, q->settings.deadline);
	millis timeout = q->clock->speed > 1 && real < DEADLINE_LEAST ? DEADLINE_LEAST : real;

	q->is_requested = true;
	q->requested_at = clock_mono(q->clock);
	if (!q->prometheus) {
		ask_server(q, timeout);
		return;
	}
	q->samples = q->value = 0;
	q->call.query = q->settings.expression;
	q->call.timeout = timeout;
	q->call.most_samples = MOST_SERIES;
	q->call.most_bytes = MOST_BYTES;
	q->call.on_sample = on_series;
	q->call.done = on_prometheus;
	q->call.user = q;
	prometheus_start(q->prometheus, &q->call);
}

static void on_timer(struct timer *t)
{
	ask(t->user);
}

struct external_queue *external_queue_open(struct loop *loop, struct http *http, const struct clock *clock,
					   const struct external_queue_settings *settings)
{
	struct external_queue *q = xnew(struct external_queue);

	q->loop = loop;
	q->http = http;
	q->clock = clock;
	q->settings = *settings;
	q->settings.url = arena_strdup(&q->arena, settings->url, strlen(settings->url));
	q->settings.expression = arena_strdup(&q->arena, settings->expression, strlen(settings->expression));
	if (settings->kind == EXTERNAL_QUEUE_PROMQL)
		q->prometheus = prometheus_open(loop, http, settings->url, &settings->reach);
	else
		q->auth = http_auth_open(settings->url, &settings->reach);
	q->timer.user = q->refused.user = q;
	timer_start(loop, &q->timer, 0, on_timer);
	return q;
}

void external_queue_close(struct external_queue *q)
{
	if (!q)
		return;
	q->is_closed = true;
	timer_stop(&q->timer);
	if (!q->is_requested)
		free_queue(q);
	else if (q->prometheus)
		prometheus_cancel(&q->call);
	else if (!timer_is_running(&q->refused))
		http_cancel(&q->request);
}

int64_t external_queue_waiting(const struct external_queue *q)
{
	bool is_recent = q->is_known && clock_mono(q->clock) - q->read_at <= READING_GAP * q->settings.interval;

	return is_recent ? q->waiting : READING_UNKNOWN;
}

const struct error *external_queue_trouble(const struct external_queue *q)
{
	return &q->trouble;
}
