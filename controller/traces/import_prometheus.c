#include "controller/traces/import_rows.h"
#include "controller/traces/series.h"

#include "base/decimal.h"
#include "base/json.h"
#include "base/quote.h"

#include <stdlib.h>
#include <string.h>

/* Counters of the engines, and the label that says what a computed series is. */
static const struct series_name {
	const char *name;
	enum quantity quantity;
} names[] = {
	{ "vllm:request_success_total", QUANTITY_REQUESTS }, { "vllm:prompt_tokens_total", QUANTITY_PROMPT },
	{ "vllm:generation_tokens_total", QUANTITY_OUTPUT }, { "sglang:num_requests_total", QUANTITY_REQUESTS },
	{ "sglang:prompt_tokens_total", QUANTITY_PROMPT },   { "sglang:generation_tokens_total", QUANTITY_OUTPUT },
};
static const struct series_name labels[] = { { "requests", QUANTITY_REQUESTS },
					     { "prompt_tokens", QUANTITY_PROMPT },
					     { "output_tokens", QUANTITY_OUTPUT } };

struct prometheus {
	struct series series;
	struct import_report *report;
	const char *values; /* what the options said */
	bool is_error, has_kind;
	/* The result at hand. */
	bool is_known, is_named;
	enum quantity quantity;
	int64_t at; /* milliseconds */
	bool has_at;
};

static bool equals(const struct json_event *ev, const char *text)
{
	return ev->len == strlen(text) && !memcmp(ev->text, text, ev->len);
}

static bool take_label(struct prometheus *p, const struct json_event *ev, bool is_name, struct error *e)
{
	const struct series_name *rows = is_name ? names : labels;
	size_t count = is_name ? sizeof names / sizeof *names : sizeof labels / sizeof *labels;
	char room[QUOTE_ROOM];

	for (size_t i = 0; i < count; i++)
		if (equals(ev, rows[i].name)) {
			p->quantity = rows[i].quantity;
			p->is_known = true;
			p->is_named = is_name;
			return true;
		}
	return error_set(e, ERROR_INVALID,
			 is_name ? "metric %s is not used; allowed: vllm: or sglang: requests, prompt_tokens_total, "
				   "generation_tokens_total (see preheat import --help)"
				 : "label preheat=%s; allowed: requests, prompt_tokens, output_tokens",
			 quote(room, ev->text, ev->len));
}

/* Each answer may hold counters or computed values; together they must be of one kind. */
static bool settle_kind(struct prometheus *p, struct error *e)
{
	enum series_kind kind = SERIES_COUNTER;
	const char *v = p->values;

	if (!p->is_known)
		return error_set(e, ERROR_INVALID,
				 "a series without a name; add the label preheat=\"requests\", "
				 "\"prompt_tokens\" or \"output_tokens\" with label_replace()");
	if (!strcmp(v, "rate"))
		kind = SERIES_RATE;
	else if (!strcmp(v, "increase"))
		kind = SERIES_INCREASE;
	else if (strcmp(v, "counter") && !p->is_named)
		return error_set(e, ERROR_INVALID,
				 "computed series; say what the query was: --values rate (rate()) or "
				 "--values increase (increase() over one step)");
	if (p->has_kind && p->series.kind != kind)
		return error_set(e, ERROR_INVALID, "counters and computed series together; give them one by one");
	p->series.kind = kind;
	p->has_kind = true;
	return true;
}

static bool take_time(struct prometheus *p, const struct json_event *ev, struct error *e)
{
	char room[QUOTE_ROOM];

	p->has_at = ev->type == JSON_NUMBER && decimal_parse(ev->text, ev->len, 3, &p->at) == DECIMAL_OK &&
		    p->at < INT64_C(100000000000000);
	return p->has_at || error_set(e, ERROR_INVALID, "time of a sample: found %s; allowed: seconds since 1970",
				      quote(room, ev->text, ev->len));
}

static bool take_sample(struct prometheus *p, const struct json_event *ev, struct error *e)
{
	char text[64], *end, room[QUOTE_ROOM];

	if (!p->has_at)
		return take_time(p, ev, e);
	p->has_at = false;
	p->report->rows++;
	size_t len = ev->len < sizeof text - 1 ? ev->len : sizeof text - 1;
	memcpy(text, ev->text, len);
	text[len] = '\0';
	double value = strtod(text, &end);
	if (ev->type != JSON_STRING || !len || *end)
		return error_set(e, ERROR_INVALID, "value of a sample: found %s; allowed: a quoted number",
				 quote(room, ev->text, ev->len));
	if (!(value - value == 0)) { /* NaN or infinite */
		p->report->missing++;
		return true;
	}
	if (value < 0)
		return error_set(e, ERROR_INVALID, "value of a sample: found %s; allowed: 0 or more", text);
	return series_add(&p->series, p->quantity, p->at, value, e);
}

static bool on_scalar(struct prometheus *p, const struct json_event *ev, struct error *e)
{
	char room[QUOTE_ROOM];

	if (!strcmp(ev->path, "status"))
		p->is_error = !equals(ev, "success");
	else if (!strcmp(ev->path, "error"))
		return error_set(e, ERROR_INVALID, "Prometheus answered with an error: %s",
				 quote(room, ev->text, ev->len));
	else if (!strcmp(ev->path, "data>resultType") && !equals(ev, "matrix"))
		return error_set(e, ERROR_INVALID, "resultType %s; allowed: matrix, the answer of /api/v1/query_range",
				 quote(room, ev->text, ev->len));
	else if (!strcmp(ev->path, "data>result[]>metric>__name__"))
		return take_label(p, ev, true, e);
	else if (!strcmp(ev->path, "data>result[]>metric>preheat"))
		return take_label(p, ev, false, e);
	else if (!strcmp(ev->path, "data>result[]>values[][]"))
		return take_sample(p, ev, e);
	return true;
}

static bool on_event(void *user, const struct json_event *ev, struct error *e)
{
	struct prometheus *p = user;

	if (ev->type != JSON_OPEN && ev->type != JSON_CLOSE)
		return on_scalar(p, ev, e);
	if (ev->type == JSON_CLOSE)
		return ev->depth || !p->is_error ||
		       error_set(e, ERROR_INVALID, "Prometheus answered with an error: status is not success");
	if (!strcmp(ev->path, "data>result[]")) {
		p->is_known = p->is_named = false;
		series_start(&p->series);
	}
	if (!strcmp(ev->path, "data>result[]>values"))
		return settle_kind(p, e);
	if (!strcmp(ev->path, "data>result[]>values[]"))
		p->has_at = false;
	if (!strcmp(ev->path, "data>result[]>values[][]"))
		return error_set(e, ERROR_INVALID, "a sample that is no pair of time and value");
	return true;
}

bool import_prometheus(struct import_rows *in, struct gzip *source, struct error *e)
{
	if (!in->series) {
		in->series = calloc(1, sizeof *in->series);
		if (!in->series)
			abort();
		in->series->report = in->report;
		in->series->values = in->options->values;
	}
	return json_read(source, on_event, in->series, e);
}

bool prometheus_bins(struct prometheus *p, struct trace *out, struct import_report *report, struct error *e)
{
	millis origin;

	if (!series_bins(&p->series, out, &origin, e))
		return false;
	report->has_clock = true;
	report->origin_us = origin * 1000;
	return true;
}

void prometheus_free(struct prometheus *p)
{
	if (!p)
		return;
	series_release(&p->series);
	free(p);
}
