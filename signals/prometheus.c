#include "signals/prometheus.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_plain_name(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:";

	return strchr(letters, name[0]) && name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:"
							     "0123456789")] == '\0';
}

void promql_text(const char *value, struct buf *out)
{
	buf_text(out, "\"");
	for (const char *c = value; *c; c++) {
		if (*c == '\n')
			buf_text(out, "\\n");
		else if (*c == '"' || *c == '\\')
			buf_printf(out, "\\%c", *c);
		else
			buf_append(out, c, 1);
	}
	buf_text(out, "\"");
}

static void write_label(const char *name, const char *value, bool *has_one, struct buf *out)
{
	buf_printf(out, "%s%s=", *has_one ? "," : "", name);
	promql_text(value, out);
	*has_one = true;
}

/* Around each selector, and by what the sum is taken. */
struct form {
	const char *before, *after, *by;
	bool is_latest;
};

static void write_selector(const struct promql_scope *s, const struct engine_metric *m, const struct form *f,
			   struct buf *out)
{
	bool has_one = false;

	buf_printf(out, "%s%s{", f->before, is_plain_name(m->name) ? m->name : "");
	if (!is_plain_name(m->name))
		write_label("__name__", m->name, &has_one, out);
	for (size_t i = 0; i < s->label_count; i++)
		write_label(s->labels[i].name, s->labels[i].value, &has_one, out);
	if (m->label)
		write_label(m->label, m->value, &has_one, out);
	buf_printf(out, "}%s", f->after);
}

static bool is_alike(const struct engine_metric *x, const struct engine_metric *y)
{
	return x->quantity == y->quantity && x->rank == y->rank;
}

/* Names of one rank are added up, so each series keeps a mark of its name as a label: functions drop the name. */
static void write_alike(const struct promql_scope *s, size_t row, const struct form *f, struct buf *out)
{
	const struct engine_metric *rows = s->metrics.rows, *m = &rows[row];
	bool has_others = false;

	for (size_t i = row + 1; i < s->metrics.count && !m->is_largest && !f->is_latest; i++)
		has_others |= is_alike(&rows[i], m);
	if (!has_others) {
		write_selector(s, m, f, out);
		return;
	}
	for (size_t i = row; i < s->metrics.count; i++) {
		if (!is_alike(&rows[i], m))
			continue;
		buf_text(out, i == row ? "label_replace(" : " or label_replace(");
		write_selector(s, &rows[i], f, out);
		buf_printf(out, ", \"metric\", \"%zu\", \"namespace\", \".*\")", i);
	}
}

static bool has_one_before(const struct engine_metrics *m, size_t row)
{
	for (size_t i = 0; i < row; i++)
		if (is_alike(&m->rows[i], &m->rows[row]))
			return true;
	return false;
}

/* What stands for the levels of a server that shows none before its first request. */
static void write_idle(const struct promql_scope *s, const struct form *f, struct buf *out)
{
	for (size_t i = 0; i < s->metrics.count; i++) {
		if (s->metrics.rows[i].quantity != ENGINE_LEVELS_LATE)
			continue;
		buf_printf(out, " or max by (%s) (", f->by);
		write_selector(s, &s->metrics.rows[i], f, out);
		buf_text(out, f->is_latest ? ")" : ") * 0");
	}
}

/* The rows of a quantity, the best name first; a place that has the best is not asked for the others. */
static bool write_rows(const struct promql_scope *s, enum engine_quantity q, const struct form *f, struct buf *out)
{
	bool has_one = false;

	for (int rank = 0; rank < ENGINE_ROWS; rank++)
		for (size_t i = 0; i < s->metrics.count; i++) {
			const struct engine_metric *m = &s->metrics.rows[i];
			if (m->quantity != q || m->rank != rank || has_one_before(&s->metrics, i))
				continue;
			bool is_max = m->is_largest || f->is_latest;
			buf_printf(out, "%s%s by (%s) (%s", has_one ? " or " : "", is_max ? "max" : "sum", f->by,
				   is_max ? "" : "max without (tp_rank, pp_rank, moe_ep_rank) (");
			write_alike(s, i, f, out);
			buf_text(out, is_max ? ")" : "))");
			has_one = true;
		}
	if (has_one && (q == ENGINE_RUNNING || q == ENGINE_WAITING))
		write_idle(s, f, out);
	return has_one;
}

bool promql_now(const struct promql_scope *s, enum engine_quantity q, struct buf *out)
{
	const struct form f = { .before = "",
				.after = "",
				.by = engine_is_bucket(q) ? PROMQL_PLACE ", le" : PROMQL_PLACE };

	return write_rows(s, q, &f, out);
}

void promql_read_at(const struct promql_scope *s, struct buf *out)
{
	const struct form f = { .before = "timestamp(", .after = ")", .by = PROMQL_PLACE, .is_latest = true };

	write_rows(s, ENGINE_RUNNING, &f, out);
}

void promql_answers(const struct promql_scope *s, struct buf *out)
{
	bool has_one = false;

	buf_text(out, "min by (" PROMQL_PLACE ") (up{");
	for (size_t i = 0; i < s->label_count; i++)
		write_label(s->labels[i].name, s->labels[i].value, &has_one, out);
	buf_text(out, "})");
}

static void write_duration(millis value, struct buf *out)
{
	buf_printf(out, "%" PRId64, value / SECOND);
	if (value % SECOND)
		buf_printf(out, ".%03" PRId64, value % SECOND);
}

bool promql_pool(const struct promql_scope *s, enum engine_quantity q, millis step, millis window, struct buf *out)
{
	CLEANUP(buf_release) struct buf rows = { 0 };
	CLEANUP(buf_release) struct buf after = { 0 };
	bool is_level = engine_is_level(q), is_bucket = engine_is_bucket(q);

	buf_printf(&after, "[%" PRId64 "%s])", window % SECOND ? window : window / SECOND,
		   window % SECOND ? "ms" : "s");
	const struct form f = { .before = is_level ? "" : "increase(",
				.after = is_level ? "" : after.text,
				.by = is_bucket ? PROMQL_PLACE ", le" : PROMQL_PLACE };
	if (!write_rows(s, q, &f, &rows))
		return false;
	buf_text(out, q == ENGINE_KV_CACHE ? "avg(" : is_bucket ? "sum by (le) (" : "sum(");
	buf_printf(out, "max by (namespace, pod, instance%s) (%s))", is_bucket ? ", le" : "", rows.text);
	if (!is_level && window != step) {
		buf_text(out, " * ");
		write_duration(step, out);
		buf_text(out, " / ");
		write_duration(window, out);
	}
	return true;
}

void promql_pool_count(const struct promql_scope *s, struct buf *out)
{
	buf_text(out, "count(count by (namespace, pod, instance) (");
	promql_now(s, ENGINE_RUNNING, out);
	buf_text(out, "))");
}

void promql_pool_models(const struct promql_scope *s, millis range, struct buf *out)
{
	CLEANUP(buf_release) struct buf after = { 0 };

	buf_printf(&after, "[%" PRId64 "s])", range / SECOND);
	const struct form f = { .before = "last_over_time(",
				.after = after.text,
				.by = PROMQL_MODEL ", namespace, pod, instance" };
	buf_text(out, "count by (" PROMQL_MODEL ") (");
	write_rows(s, ENGINE_RUNNING, &f, out);
	buf_text(out, ")");
}

void promql_pool_ready(const struct promql_scope *s, struct buf *out)
{
	const struct form f = { .before = "last_over_time(", .after = "[10m])", .by = "namespace, pod" };

	buf_text(out, "sum(max by (namespace, pod) (kube_pod_status_ready{condition=\"true\"}) * on (namespace, pod) "
		      "group by (namespace, pod) (");
	write_rows(s, ENGINE_RUNNING, &f, out);
	buf_text(out, "))");
}

struct prometheus_series {
	size_t number, count, used;
	const char *names[PROMETHEUS_LABELS], *values[PROMETHEUS_LABELS];
	char bytes[PROMETHEUS_LABEL_BYTES];
};

struct prometheus_answer {
	struct json *json;
	size_t most;
	prometheus_fn *on_sample;
	void *user;
	struct prometheus_series series;
	struct prometheus_notes notes;
	bool has_status, is_success, has_result, is_scalar, has_labels, has_at;
	millis at;
	char type[40], reason[200];
};

const char *prometheus_label(const struct prometheus_series *s, const char *name)
{
	for (size_t i = 0; i < s->count; i++)
		if (!strcmp(s->names[i], name))
			return s->values[i];
	return NULL;
}

/* Cut to the room, with nothing in it that a terminal would obey. */
static size_t show(char *room, size_t size, size_t at, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];
		bool is_plain = c >= ' ' && c < 127;
		if (at + (is_plain ? 1 : 4) >= size)
			break;
		at += (size_t)snprintf(room + at, size - at, is_plain ? "%c" : "\\x%02x", c);
	}
	room[at < size ? at : size - 1] = '\0';
	return at;
}

const char *prometheus_series_text(const struct prometheus_series *s, char *room, size_t size)
{
	size_t at = show(room, size, 0, "{", 1);

	for (size_t i = 0; i < s->count; i++) {
		at = show(room, size, at, i ? ", " : "", i ? 2 : 0);
		at = show(room, size, at, s->names[i], strlen(s->names[i]));
		at = show(room, size, at, "=\"", 2);
		at = show(room, size, at, s->values[i], strlen(s->values[i]));
		at = show(room, size, at, "\"", 1);
	}
	show(room, size, at, "}", 1);
	return room;
}

static bool equals(const struct json_event *ev, const char *text)
{
	return ev->len == strlen(text) && !memcmp(ev->text, text, ev->len);
}

static const char *keep(struct prometheus_series *s, const char *text, size_t len)
{
	char *kept = s->bytes + s->used;

	if (s->used + len + 1 > sizeof s->bytes || memchr(text, '\0', len))
		return NULL;
	memcpy(kept, text, len);
	kept[len] = '\0';
	s->used += len + 1;
	return kept;
}

static bool take_label(struct prometheus_answer *a, const char *name, const struct json_event *ev, struct error *e)
{
	struct prometheus_series *s = &a->series;

	if (ev->type != JSON_STRING)
		return error_set(e, ERROR_INVALID, "a label that is no text");
	if (s->count == PROMETHEUS_LABELS)
		return error_set(e, ERROR_INVALID, "a series with more than %d labels", PROMETHEUS_LABELS);
	const char *kept = keep(s, name, strlen(name)), *value = keep(s, ev->text, ev->len);
	if (!kept || !value)
		return error_set(e, ERROR_INVALID, "a series whose labels are longer than %d bytes, or hold a NUL",
				 PROMETHEUS_LABEL_BYTES);
	s->names[s->count] = kept;
	s->values[s->count++] = value;
	return true;
}

/* Seconds, in a double: more digits than milliseconds are noise of the sender's. */
static bool take_time(struct prometheus_answer *a, const struct json_event *ev, struct error *e)
{
	char room[QUOTE_ROOM];

	a->has_at = ev->type == JSON_NUMBER && decimal_parse(ev->text, ev->len, 3, &a->at) == DECIMAL_OK;
	return a->has_at || error_set(e, ERROR_INVALID, "the time of a sample: found %s; allowed: seconds since 1970",
				      quote(room, ev->text, ev->len));
}

static bool take_point(struct prometheus_answer *a, const struct json_event *ev, struct error *e)
{
	char room[QUOTE_ROOM];
	struct prometheus_sample s = { .series = a->is_scalar ? NULL : &a->series };

	if (!a->has_at)
		return take_time(a, ev, e);
	a->has_at = false;
	if (ev->type != JSON_STRING)
		return error_set(e, ERROR_INVALID, "the value of a sample: found %s; allowed: a number in quotes",
				 quote(room, ev->text, ev->len));
	if (!a->is_scalar && !a->has_labels)
		return error_set(e, ERROR_INVALID, "a sample before its labels");
	if ((size_t)a->notes.samples == a->most)
		return error_set(e, ERROR_INVALID, "more than %zu samples; narrow the labels down", a->most);
	a->notes.samples++;
	s.at = a->at;
	s.value = (struct exposition_slice){ ev->text, ev->len };
	return a->on_sample(a->user, &s, e);
}

static bool take_type(struct prometheus_answer *a, const struct json_event *ev, struct error *e)
{
	char room[QUOTE_ROOM];

	a->is_scalar = equals(ev, "scalar");
	return a->is_scalar || equals(ev, "vector") || equals(ev, "matrix") ||
	       error_set(e, ERROR_INVALID, "resultType: found %s; allowed: vector, matrix or scalar",
			 quote(room, ev->text, ev->len));
}

static bool is_point(const char *path)
{
	return !strcmp(path, "data>result[]>value[]") || !strcmp(path, "data>result[]>values[][]");
}

static bool on_scalar(struct prometheus_answer *a, const struct json_event *ev, struct error *e)
{
	static const char labels[] = "data>result[]>metric>";

	if (!strncmp(ev->path, labels, sizeof labels - 1))
		return take_label(a, ev->path + sizeof labels - 1, ev, e);
	if (is_point(ev->path) || (a->is_scalar && !strcmp(ev->path, "data>result[]")))
		return take_point(a, ev, e);
	if (!strcmp(ev->path, "data>result[]"))
		return error_set(e, ERROR_INVALID, "a series that is no object");
	if (!strcmp(ev->path, "data>resultType"))
		return take_type(a, ev, e);
	if (!strcmp(ev->path, "status")) {
		a->has_status = true;
		a->is_success = equals(ev, "success");
	} else if (!strcmp(ev->path, "errorType")) {
		show(a->type, sizeof a->type, 0, ev->text, ev->len);
	} else if (!strcmp(ev->path, "error")) {
		show(a->reason, sizeof a->reason, 0, ev->text, ev->len);
	} else if (!strcmp(ev->path, "warnings[]")) {
		if (!a->notes.warnings++)
			show(a->notes.warning, sizeof a->notes.warning, 0, ev->text, ev->len);
	} else if (!strcmp(ev->path, "infos[]")) {
		a->notes.infos++;
	}
	return true;
}

static bool open_container(struct prometheus_answer *a, const struct json_event *ev, struct error *e)
{
	if (!strcmp(ev->path, "data>result"))
		a->has_result = true;
	if (!strcmp(ev->path, "data>result[]")) {
		a->series.number = (size_t)a->notes.series++;
		a->series.count = a->series.used = 0;
		a->has_labels = false;
	}
	if (!strcmp(ev->path, "data>result[]>metric"))
		a->has_labels = true;
	if (!strcmp(ev->path, "data>result[]>value") || !strcmp(ev->path, "data>result[]>values[]"))
		a->has_at = false;
	if (is_point(ev->path))
		return error_set(e, ERROR_INVALID, "a sample that is not a pair of time and value");
	if (!strcmp(ev->path, "data>result[]>histogram") || !strcmp(ev->path, "data>result[]>histograms"))
		return error_set(e, ERROR_INVALID, "a native histogram, where numbers were asked for");
	return true;
}

static bool on_event(void *user, const struct json_event *ev, struct error *e)
{
	struct prometheus_answer *a = user;

	if (ev->depth == 0 && (ev->type != JSON_OPEN || ev->is_array) && ev->type != JSON_CLOSE)
		return error_set(e, ERROR_INVALID, "no answer of Prometheus' API, which is an object with a status");
	if (ev->type == JSON_OPEN)
		return open_container(a, ev, e);
	return ev->type == JSON_CLOSE || on_scalar(a, ev, e);
}

struct prometheus_answer *prometheus_answer_open(size_t most, prometheus_fn *on_sample, void *user)
{
	struct prometheus_answer *a = xcalloc(1, sizeof *a);

	a->most = most;
	a->on_sample = on_sample;
	a->user = user;
	a->json = json_open("answer", on_event, a);
	return a;
}

void prometheus_answer_close(struct prometheus_answer *a)
{
	if (!a)
		return;
	json_close(a->json);
	free(a);
}

bool prometheus_answer_feed(struct prometheus_answer *a, const char *bytes, size_t len, struct error *e)
{
	return json_feed(a->json, bytes, len, e);
}

static enum error_kind kind_of(const char *type)
{
	static const struct {
		const char *type;
		enum error_kind kind;
	} kinds[] = { { "timeout", ERROR_TIMEOUT },	    { "canceled", ERROR_TIMEOUT },
		      { "unavailable", ERROR_UNAVAILABLE }, { "internal", ERROR_UNAVAILABLE },
		      { "not_found", ERROR_NOT_FOUND },	    { "too_many_requests", ERROR_THROTTLED } };

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (!strcmp(kinds[i].type, type))
			return kinds[i].kind;
	return ERROR_INVALID;
}

/* Why the server refused, once its answer has said so; safe to show; else NULL. */
static const char *prometheus_answer_reason(const struct prometheus_answer *a)
{
	return a->has_status && !a->is_success && a->reason[0] ? a->reason : NULL;
}

bool prometheus_answer_finish(struct prometheus_answer *a, struct prometheus_notes *out, struct error *e)
{
	if (!json_finish(a->json, e))
		return false;
	if (!a->has_status)
		return error_set(e, ERROR_INVALID, "no answer of Prometheus' API, which has a status");
	if (!a->is_success)
		return error_set(e, kind_of(a->type), "%s: %s", a->type[0] ? a->type : "an error",
				 a->reason[0] ? a->reason : "no reason is given");
	if (!a->has_result)
		return error_set(e, ERROR_INVALID, "an answer without data.result");
	*out = a->notes;
	return true;
}

static const size_t MOST_REFUSAL = (size_t)64 << 10;

struct prometheus {
	struct loop *loop;
	struct http *http;
	struct http_auth *reach;
	struct buf url;
	size_t active;
};

struct prometheus *prometheus_open(struct loop *loop, struct http *http, const char *url,
				   const struct http_auth_settings *reach)
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
	p->reach = http_auth_open(p->url.text, reach);
	return p;
}

void prometheus_close(struct prometheus *p)
{
	if (!p)
		return;
	assert(!p->active);
	http_auth_close(p->reach);
	buf_release(&p->url);
	free(p);
}

const char *prometheus_url(const struct prometheus *p)
{
	return http_auth_url(p->reach);
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
	http_auth_shown_release(&c->shown);
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
	if (!http_auth_show(p->reach, "Accept: application/json", &c->request, &c->shown, &c->error)) {
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
