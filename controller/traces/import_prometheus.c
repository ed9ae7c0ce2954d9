#include "base/decimal.h"
#include "base/exact.h"
#include "base/json.h"
#include "base/quote.h"
#include "controller/traces/import_rows.h"
#include "controller/traces/trace.h"

#include <stdlib.h>
#include <string.h>

/*
 * Sampled counters of many servers made into counts per bin. Counters may
 * start again at 0 (a new pod); what a gap hides is spread evenly over it.
 */

enum quantity { QUANTITY_REQUESTS, QUANTITY_PROMPT, QUANTITY_OUTPUT, QUANTITIES };

enum series_kind { SERIES_COUNTER, SERIES_RATE, SERIES_INCREASE };

struct slot {
	millis at; /* end of the step that the amounts belong to */
	double amounts[QUANTITIES];
};

struct stretch { /* an amount that belongs to more than one step */
	millis from, to;
	enum quantity quantity;
	double amount;
};

struct series {
	enum series_kind kind;
	struct slot *slots; /* by time */
	size_t count, room, next;
	struct stretch *stretches;
	size_t stretch_count, stretch_room;
	millis step; /* shortest distance of two samples; 0: not known yet */
	bool is_seen[QUANTITIES];
	/* The one at hand. */
	bool has_last;
	millis last_at;
	double last_value;
};

static void series_release(struct series *s);
static void series_start(struct series *s);
static bool series_add(struct series *s, enum quantity q, millis at, double value, struct error *e);
static bool series_bins(struct series *s, struct trace *out, millis *origin, struct error *e);

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

enum { MAX_STEPS = 5000000 };

static void *grow(void *rows, size_t count, size_t *room, size_t size)
{
	if (count < *room)
		return rows;
	*room = *room ? *room * 2 : 1024;
	void *grown = realloc(rows, *room * size);
	if (!grown)
		abort();
	return grown;
}

static void series_release(struct series *s)
{
	free(s->slots);
	free(s->stretches);
	*s = (struct series){ 0 };
}

/* the samples that follow are of another server */
static void series_start(struct series *s)
{
	s->has_last = false;
	s->next = 0;
}

/* Samples come in order, so the place is nearly always the one after the last. */
static struct slot *slot_at(struct series *s, millis at)
{
	size_t i = s->next;

	if (i > s->count || (i && s->slots[i - 1].at >= at))
		i = 0;
	if (!i || (i < s->count && s->slots[i].at < at)) {
		size_t low = i, high = s->count;
		while (low < high) {
			size_t middle = low + (high - low) / 2;
			if (s->slots[middle].at < at)
				low = middle + 1;
			else
				high = middle;
		}
		i = low;
	}
	if (i == s->count || s->slots[i].at != at) {
		s->slots = grow(s->slots, s->count, &s->room, sizeof *s->slots);
		memmove(&s->slots[i + 1], &s->slots[i], (s->count - i) * sizeof *s->slots);
		s->slots[i] = (struct slot){ .at = at };
		s->count++;
	}
	s->next = i + 1;
	return &s->slots[i];
}

static void add_stretch(struct series *s, struct stretch stretch)
{
	s->stretches = grow(s->stretches, s->stretch_count, &s->stretch_room, sizeof *s->stretches);
	s->stretches[s->stretch_count++] = stretch;
}

/* What was taken for single steps were gaps, it turns out. */
static void shorten_step(struct series *s, millis step)
{
	if (s->step && s->kind == SERIES_COUNTER)
		for (size_t i = 0; i < s->count; i++)
			for (int q = 0; q < QUANTITIES; q++)
				if (s->slots[i].amounts[q] > 0) {
					add_stretch(s, (struct stretch){ s->slots[i].at - s->step, s->slots[i].at,
									 (enum quantity)q, s->slots[i].amounts[q] });
					s->slots[i].amounts[q] = 0;
				}
	s->step = step;
}

static void add_difference(struct series *s, enum quantity q, millis at, double value)
{
	double amount = value >= s->last_value ? value - s->last_value : value;
	millis gap = at - s->last_at;

	if (gap == s->step)
		slot_at(s, at)->amounts[q] += amount;
	else
		add_stretch(s, (struct stretch){ s->last_at, at, q, amount });
}

static bool series_add(struct series *s, enum quantity q, millis at, double value, struct error *e)
{
	if (s->has_last && at <= s->last_at)
		return error_set(e, ERROR_INVALID, "samples of a series go back in time at %.3f", (double)at / 1000);
	if (s->count >= MAX_STEPS || s->stretch_count >= MAX_STEPS)
		return error_set(e, ERROR_INVALID, "more than %d steps; ask for a longer step", MAX_STEPS);
	if (s->has_last && (!s->step || at - s->last_at < s->step))
		shorten_step(s, at - s->last_at);
	if (s->kind != SERIES_COUNTER)
		slot_at(s, at)->amounts[q] += value;
	else if (s->has_last)
		add_difference(s, q, at, value);
	s->is_seen[q] = true;
	s->has_last = true;
	s->last_at = at;
	s->last_value = value;
	return true;
}

/* Part by part into the steps that it covers; the steps' ends lie `step` apart counted from `to`. */
static bool lay_out(struct series *s, const struct stretch *w, int64_t *left, struct error *e)
{
	int64_t steps = (w->to - w->from + s->step - 1) / s->step;

	*left -= steps;
	if (*left < 0)
		return error_set(e, ERROR_INVALID, "the gaps between samples hold too many steps of %.3f s",
				 (double)s->step / 1000);
	for (int64_t i = steps; i-- > 0;)
		slot_at(s, w->to - i * s->step)->amounts[w->quantity] += w->amount / (double)steps;
	return true;
}

/* Fractions are carried over, so that the sums are right; tokens wait for a bin that has requests. */
static void round_bins(const struct series *s, struct trace *t)
{
	double sums[QUANTITIES] = { 0 }, unit = s->kind == SERIES_RATE ? (double)s->step / 1000 : 1;
	int64_t given[QUANTITIES] = { 0 };

	for (size_t i = 0; i < s->count; i++) {
		struct bin *b = &t->bins[t->bin_count++];
		int64_t *counts[] = { &b->requests, &b->prompt_tokens, &b->output_tokens };
		*b = (struct bin){ .at = s->slots[i].at - s->slots[0].at };
		for (int q = 0; q < QUANTITIES; q++) {
			sums[q] += s->slots[i].amounts[q] * unit;
			if (q == QUANTITY_REQUESTS || b->requests)
				*counts[q] = exact_round(sums[q]) - given[q];
			given[q] += *counts[q];
		}
	}
}

static bool check(const struct series *s, struct error *e)
{
	static const char *const missing[] = { "requests (vllm:request_success_total)",
					       "prompt tokens (vllm:prompt_tokens_total)",
					       "output tokens (vllm:generation_tokens_total)" };

	for (int q = 0; q < QUANTITIES; q++)
		if (!s->is_seen[q])
			return error_set(
				e, ERROR_INVALID,
				"no series with %s; give the answers of all three queries (preheat import --help)",
				missing[q]);
	if (!s->step)
		return error_set(e, ERROR_INVALID, "no series has two samples; ask for a longer time");
	return true;
}

static bool check_bins(const struct trace *t, millis step, struct error *e)
{
	bool is_any = false;

	for (size_t i = 0; i < t->bin_count; i++) {
		const struct bin *b = &t->bins[i];
		is_any |= b->requests > 0;
		if (b->requests > TRACE_MAX_BIN_REQUESTS || b->prompt_tokens > TRACE_MAX_BIN_TOKENS ||
		    b->output_tokens > TRACE_MAX_BIN_TOKENS || b->at > TRACE_MAX_LENGTH || b->at % step)
			return error_set(
				e, ERROR_INVALID,
				"the samples do not lie on one grid of %.3f s within ten years, or are too large; "
				"use one query_range with one step",
				(double)step / 1000);
	}
	return is_any || error_set(e, ERROR_INVALID, "the series show no traffic at all");
}

/* *origin is the time of the first bin. */
static bool series_bins(struct series *s, struct trace *out, millis *origin, struct error *e)
{
	struct trace t = { .is_binned = true, .bin_width = s->step };
	int64_t left = INT64_C(10) * MAX_STEPS;

	if (!check(s, e))
		return false;
	for (size_t i = 0; i < s->stretch_count; i++)
		if (!lay_out(s, &s->stretches[i], &left, e))
			return false;
	t.bins = calloc(s->count + 1, sizeof *t.bins);
	if (!t.bins)
		abort();
	round_bins(s, &t);
	if (!check_bins(&t, s->step, e)) {
		trace_release(&t);
		return false;
	}
	t.length = trace_end(&t);
	*origin = s->slots[0].at - s->step;
	*out = t;
	return true;
}
