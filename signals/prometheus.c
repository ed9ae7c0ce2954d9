#include "signals/prometheus.h"

#include "base/text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const size_t MOST_REFUSAL = (size_t)64 << 10;

struct prometheus {
	struct loop *loop;
	struct http *http;
	struct reach *reach;
	struct buf url;
	size_t active;
};

struct prometheus *prometheus_open(struct loop *loop, struct http *http, const char *url,
				   const struct reach_settings *reach)
{
	struct prometheus *p = calloc(1, sizeof *p);
	size_t len = strlen(url);

	if (!p)
		abort();
	while (len && url[len - 1] == '/')
		len--;
	p->loop = loop;
	p->http = http;
	buf_append(&p->url, url, len);
	p->reach = reach_open(p->url.text, reach);
	return p;
}

void prometheus_close(struct prometheus *p)
{
	if (!p)
		return;
	assert(!p->active);
	reach_close(p->reach);
	buf_release(&p->url);
	free(p);
}

const char *prometheus_url(const struct prometheus *p)
{
	return reach_url(p->reach);
}

static void write_encoded(const char *text, struct buf *out)
{
	for (const char *c = text; *c; c++) {
		bool is_plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
				strchr("-._~", *c);
		buf_printf(out, is_plain ? "%c" : "%%%02X", (unsigned char)*c);
	}
}

static void write_seconds(const char *name, millis value, struct buf *out)
{
	buf_printf(out, "&%s=%" PRId64 ".%03" PRId64, name, value / SECOND, value % SECOND);
}

static void write_url(const struct prometheus *p, struct prometheus_call *c)
{
	struct buf *out = &c->url;

	buf_clear(out);
	buf_printf(out, "%s/api/v1/query%s?query=", p->url.text, c->step ? "_range" : "");
	write_encoded(c->query, out);
	if (c->step) {
		write_seconds("start", c->from, out);
		write_seconds("end", c->to, out);
		write_seconds("step", c->step, out);
	} else if (c->at) {
		write_seconds("time", c->at, out);
	}
	write_seconds("timeout", c->timeout, out);
}

static bool skip(void *user, const struct prometheus_sample *sample, struct error *e)
{
	(void)user;
	(void)sample;
	(void)e;
	return true;
}

/* Answers with 400, 422 and 503 carry their reason in the same form. */
static bool refuse(const struct prometheus_call *c, struct error *e)
{
	const struct http_request *r = &c->request;
	enum error_kind kind = http_status_kind(r->status);
	struct prometheus_answer *a = prometheus_answer_open(0, skip, NULL);
	struct error none;
	bool is_read = prometheus_answer_feed(a, r->response, r->response_len, &none);
	const char *reason = is_read ? prometheus_answer_reason(a) : NULL;

	error_set(e, kind, "HTTP status %ld%s%s", r->status, reason ? ": " : "", reason ? reason : "");
	prometheus_answer_close(a);
	return false;
}

static bool believe(struct prometheus_call *c, struct error *e)
{
	const struct http_request *r = &c->request;

	if (r->error.kind != ERROR_NONE) {
		*e = r->error;
		return false;
	}
	if (r->status < 200 || r->status > 299)
		return refuse(c, e) || error_wrap(e, "%s", prometheus_url(c->prometheus));
	return prometheus_answer_finish(c->answer, &c->notes, e) || error_wrap(e, "%s", prometheus_url(c->prometheus));
}

static void complete(struct prometheus_call *c)
{
	prometheus_answer_close(c->answer);
	c->answer = NULL;
	buf_release(&c->url);
	reach_shown_release(&c->shown);
	c->is_active = false;
	c->prometheus->active--;
	c->done(c);
}

static void on_done(struct http_request *r)
{
	struct prometheus_call *c = r->user;
	struct error e = { 0 };

	c->error = (struct error){ 0 };
	if (!believe(c, &e))
		c->error = e;
	complete(c);
}

static void on_refused(struct timer *t)
{
	complete(t->user);
}

static bool on_chunk(struct http_request *r, const char *bytes, size_t len)
{
	struct prometheus_call *c = r->user;

	c->bytes += len;
	if (c->bytes > c->most_bytes)
		return error_set(&r->error, ERROR_INVALID, "%s: the answer is longer than %zu bytes",
				 prometheus_url(c->prometheus), c->most_bytes);
	return prometheus_answer_feed(c->answer, bytes, len, &r->error) ||
	       error_wrap(&r->error, "%s", prometheus_url(c->prometheus));
}

void prometheus_start(struct prometheus *p, struct prometheus_call *c)
{
	assert(!c->is_active);
	c->prometheus = p;
	c->is_active = true;
	c->bytes = 0;
	p->active++;
	c->error = (struct error){ 0 };
	c->notes = (struct prometheus_notes){ 0 };
	write_url(p, c);
	c->request = (struct http_request){ .method = "GET",
					    .url = c->url.text,
					    .accepts_gzip = true,
					    .timeout = c->timeout,
					    .max_response = MOST_REFUSAL,
					    .on_chunk = on_chunk,
					    .done = on_done,
					    .user = c };
	if (!reach_show(p->reach, "Accept: application/json", &c->request, &c->shown, &c->error)) {
		error_wrap(&c->error, "%s", prometheus_url(p));
		c->refused.user = c;
		timer_start(p->loop, &c->refused, 0, on_refused);
		return;
	}
	c->answer = prometheus_answer_open(c->most_samples, c->on_sample, c->user);
	http_start(p->http, &c->request);
}

void prometheus_cancel(struct prometheus_call *c)
{
	if (c->is_active && !timer_is_running(&c->refused))
		http_cancel(&c->request);
}
