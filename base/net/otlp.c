#include "base/net/otlp.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "base/net/retry.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 5 };
static const size_t MOST_ANSWER = 64 << 10, MOST_TEXT = 8 << 20;

struct otlp {
	struct loop *loop;
	struct http *http;
	char *url, *version;
	char **headers;
	const struct http_tls *tls;
	struct buf resource; /* its attributes */
	struct buf spans;    /* gathered, separated by commas */
	int64_t gathered;
	struct buf body; /* under way */
	int64_t under_way;
	int tries;
	bool is_sending, is_closed, has_complained;
	struct timer timer;
	struct retry retry;
	struct http_request request;
	struct otlp_counts counts;
};

static void write_text_attribute(const char *key, const char *value, struct buf *out)
{
	json_write_comma(out);
	buf_text(out, "{\"key\":");
	json_write_text(key, out);
	buf_text(out, ",\"value\":{\"stringValue\":");
	json_write_text(value, out);
	buf_text(out, "}}");
}

static void write_attribute(const struct otlp_attribute *a, struct buf *out)
{
	if (a->text) {
		write_text_attribute(a->key, a->text, out);
		return;
	}
	json_write_comma(out);
	buf_text(out, "{\"key\":");
	json_write_text(a->key, out);
	buf_printf(out, ",\"value\":{\"intValue\":\"%" PRId64 "\"}}",
		   a->integer); /* 64 bits are texts in OTLP's JSON */
}

static void write_resource(struct otlp *o, const struct otlp_settings *s)
{
	buf_text(&o->resource, "[");
	write_text_attribute("service.name", s->service, &o->resource);
	write_text_attribute("service.version", s->version, &o->resource);
	write_text_attribute("service.instance.id", s->instance, &o->resource);
	for (const char *const *pair = s->resource; pair && *pair; pair++) {
		const char *equal = strchr(*pair, '=');
		struct buf key = { 0 };
		if (!equal)
			continue;
		buf_append(&key, *pair, (size_t)(equal - *pair));
		write_text_attribute(key.text, equal + 1, &o->resource);
		buf_release(&key);
	}
	buf_text(&o->resource, "]");
}

struct otlp *otlp_open(struct loop *loop, struct http *http, const struct otlp_settings *s, struct error *e)
{
	size_t count = 0;

	if (strncmp(s->url, "http://", 7) != 0 && strncmp(s->url, "https://", 8) != 0) {
		error_set(e, ERROR_INVALID,
			  "the endpoint for traces: found '%.200s'; allowed: http://HOST:PORT or https://HOST:PORT",
			  s->url);
		return NULL;
	}
	struct otlp *o = xnew(struct otlp);
	while (s->headers && s->headers[count])
		count++;
	char **headers = xcalloc(count + 2, sizeof *headers);
	headers[0] = xstrdup("Content-Type: application/json");
	for (size_t i = 0; i < count; i++)
		headers[i + 1] = xstrdup(s->headers[i]);
	o->loop = loop;
	o->http = http;
	o->url = xstrdup(s->url);
	o->version = xstrdup(s->version);
	o->headers = headers;
	o->tls = s->tls;
	o->spans.cap = o->body.cap = MOST_TEXT;
	o->retry = retry_make(SECOND, 30 * SECOND, random_stream(s->seed, "otlp"));
	o->timer.user = o;
	write_resource(o, s);
	return o;
}

static void release(struct otlp *o)
{
	timer_stop(&o->timer);
	for (char **header = o->headers; *header; header++)
		free(*header);
	free(o->headers);
	free(o->url);
	free(o->version);
	buf_release(&o->resource);
	buf_release(&o->spans);
	buf_release(&o->body);
	free(o);
}

static void send(struct otlp *o);

static void fire(struct timer *t)
{
	struct otlp *o = t->user;

	if (o->under_way)
		send(o);
	else
		otlp_flush(o);
}

static void batch_is_over(struct otlp *o)
{
	o->under_way = 0;
	o->tries = 0;
	buf_clear(&o->body);
	if (o->gathered)
		timer_start(o->loop, &o->timer, o->gathered >= OTLP_BATCH ? 0 : OTLP_EVERY, fire);
}

static bool is_transient(const struct http_request *r)
{
	if (r->error.kind != ERROR_NONE)
		return error_is_transient(&r->error);
	return r->status == 429 || r->status == 502 || r->status == 503 || r->status == 504;
}

/* Told once until it goes well again: a collector that is away is no news every five seconds. */
static void complain(struct otlp *o, const struct http_request *r)
{
	o->counts.failed++;
	if (o->has_complained)
		return;
	o->has_complained = true;
	CLEANUP(buf_release) struct buf url = { 0 };
	uri_show(o->url, &url);
	if (r->error.kind != ERROR_NONE)
		log_warn("traces-not-sent", LOG_E(&r->error), LOG_END);
	else
		log_warn("traces-not-sent", LOG_S("url", url.text), LOG_I("status", r->status), LOG_END);
}

static void on_answer(struct http_request *r)
{
	struct otlp *o = r->user;

	o->is_sending = false;
	if (o->is_closed) {
		release(o);
		return;
	}
	if (r->error.kind == ERROR_NONE && r->status >= 200 && r->status < 300) {
		o->counts.sent += o->under_way;
		o->has_complained = false;
		retry_reset(&o->retry);
		batch_is_over(o);
		return;
	}
	complain(o, r);
	if (is_transient(r) && o->tries < TRIES) {
		struct clock wall = clock_open();
		millis told = retry_after(http_header(r, "Retry-After"), clock_now(&wall));
		timer_start(o->loop, &o->timer, retry_next(&o->retry, told), fire);
		return;
	}
	o->counts.dropped += o->under_way;
	batch_is_over(o);
}

static void send(struct otlp *o)
{
	o->tries++;
	o->is_sending = true;
	o->request = (struct http_request){ .method = "POST",
					    .url = o->url,
					    .headers = (const char *const *)o->headers,
					    .body = o->body.text,
					    .body_len = o->body.len,
					    .tls = o->tls,
					    .timeout = OTLP_DEADLINE,
					    .max_response = MOST_ANSWER,
					    .done = on_answer,
					    .user = o };
	http_start(o->http, &o->request);
}

void otlp_flush(struct otlp *o)
{
	struct buf *b = &o->body;

	if (o->under_way || !o->gathered)
		return;
	timer_stop(&o->timer);
	buf_printf(b, "{\"resourceSpans\":[{\"resource\":{\"attributes\":%s},\"scopeSpans\":[{\"scope\":",
		   o->resource.text);
	buf_text(b, "{\"name\":\"preheat\",\"version\":");
	json_write_text(o->version, b);
	buf_text(b, "},\"spans\":[");
	buf_append(b, o->spans.text, o->spans.len);
	buf_text(b, "]}]}]}");
	bool is_whole = buf_ok(b) && buf_ok(&o->spans);
	o->under_way = o->gathered;
	o->gathered = 0;
	buf_clear(&o->spans);
	if (is_whole) {
		send(o);
		return;
	}
	o->counts.dropped += o->under_way;
	batch_is_over(o);
}

static void write_span(const struct otlp_span *s, struct buf *out)
{
	json_write_comma(out);
	buf_printf(out, "{\"traceId\":\"%016" PRIx64 "%016" PRIx64 "\",\"spanId\":\"%016" PRIx64 "\"", s->trace.high,
		   s->trace.low, s->id);
	if (s->parent)
		buf_printf(out, ",\"parentSpanId\":\"%016" PRIx64 "\"", s->parent);
	buf_text(out, ",\"name\":");
	json_write_text(s->name, out);
	buf_printf(out,
		   ",\"kind\":%d,\"startTimeUnixNano\":\"%" PRId64 "000000\",\"endTimeUnixNano\":\"%" PRId64 "000000\"",
		   (int)s->kind, s->from, s->to);
	buf_text(out, ",\"attributes\":[");
	for (size_t i = 0; i < s->attribute_count; i++)
		write_attribute(&s->attributes[i], out);
	buf_text(out, "],\"status\":{");
	if (s->failure) {
		buf_text(out, "\"code\":2,\"message\":");
		json_write_text(s->failure, out);
	}
	buf_text(out, "}}");
}

void otlp_add(struct otlp *o, const struct otlp_span *span)
{
	if (o->gathered >= OTLP_QUEUE || o->spans.failed) {
		o->counts.dropped++;
		return;
	}
	write_span(span, &o->spans);
	o->gathered++;
	if (o->under_way)
		return;
	if (o->gathered >= OTLP_BATCH)
		otlp_flush(o);
	else if (!timer_is_running(&o->timer))
		timer_start(o->loop, &o->timer, OTLP_EVERY, fire);
}

bool otlp_is_idle(const struct otlp *o)
{
	return !o->gathered && !o->under_way;
}

struct otlp_counts otlp_counts(const struct otlp *o)
{
	return o->counts;
}

void otlp_close(struct otlp *o)
{
	if (!o)
		return;
	o->is_closed = true;
	if (o->is_sending)
		http_cancel(&o->request);
	else
		release(o);
}
