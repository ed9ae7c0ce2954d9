#include "controller/traces/import.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/quantity.h"
#include "base/exact.h"
#include "base/gzip.h"
#include "base/json.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* What the readers of all formats share: the source, and rows as they come. */

struct prometheus;

struct import_rows {
	const struct import_options *options;
	struct request *rows; /* arrival in microseconds of the recording's own time */
	size_t count, room;
	struct labels labels;
	struct import_report *report;
	struct prometheus *series; /* instead of rows */
};

struct import_row {
	int64_t micros;
	int64_t prompt_tokens, output_tokens;
	int32_t label;
};

typedef bool import_fn(struct import_rows *in, struct gzip *source, struct error *e);

/* Whether the first bytes look like the format. */
typedef bool import_looks_fn(const char *bytes, size_t len);

static bool import_add(struct import_rows *in, const struct import_row *row, struct error *e);
static void import_drop_failed(struct import_rows *in);

enum { MAX_CELLS = 32 };
enum role { ROLE_TIME, ROLE_PROMPT, ROLE_OUTPUT, ROLE_LABEL, ROLES };

/* A kind of CSV: its columns are found by name, in any order; others are ignored. */
struct csv_form {
	const char *names[ROLES];
	bool is_label_optional;
	bool has_clock;	     /* ISO 8601 instead of seconds */
	bool is_zero_failed; /* no output tokens: the request failed */
};

static const struct csv_form azure = { { "TIMESTAMP", "ContextTokens", "GeneratedTokens", NULL }, true, true, false };
static const struct csv_form burstgpt = {
	{ "Timestamp", "Request tokens", "Response tokens", "Model" }, true, false, true
};
static const struct csv_form preheat = {
	{ "arrival_s", "prompt_tokens", "output_tokens", "class" }, true, false, false
};

struct csv {
	struct import_rows *in;
	const struct csv_form *form;
	struct lines lines;
	struct cell cells[MAX_CELLS];
	size_t cell_count, header_count;
	size_t at[ROLES]; /* index of the cell; SIZE_MAX: not there */
};

/* One cell, its quotes taken off; doubled quotes inside stay doubled, as no name we look for has any. */
static const char *take_cell(const char *p, const char *end, struct cell *out)
{
	bool is_quoted = p < end && *p == '"';
	const char *start = p + is_quoted;

	if (is_quoted) {
		for (p = start; p < end && (*p != '"' || (p + 1 < end && p[1] == '"')); p++)
			p += *p == '"';
		*out = (struct cell){ start, (size_t)(p - start) };
		p += p < end;
	}
	const char *comma = p < end ? memchr(p, ',', (size_t)(end - p)) : NULL;
	if (!comma)
		comma = end;
	if (!is_quoted)
		*out = (struct cell){ p, (size_t)(comma - p) };
	return comma < end ? comma + 1 : NULL;
}

static bool split(struct csv *c, const char *line, size_t len, struct error *e)
{
	const char *end = line + len;

	c->cell_count = 0;
	for (const char *p = line; p;) {
		if (c->cell_count == MAX_CELLS)
			return error_set(e, ERROR_INVALID, "%s:%lld: more than %d columns", gzip_name(c->lines.source),
					 (long long)c->lines.number, MAX_CELLS);
		p = take_cell(p, end, &c->cells[c->cell_count++]);
	}
	return true;
}

static size_t find_cell(const struct csv *c, const char *name)
{
	for (size_t i = 0; name && i < c->cell_count; i++)
		if (c->cells[i].len == strlen(name) && !memcmp(c->cells[i].text, name, c->cells[i].len))
			return i;
	return SIZE_MAX;
}

static bool read_header(struct csv *c, struct error *e)
{
	char *line, room[QUOTE_ROOM];
	size_t len;

	if (!lines_next(&c->lines, &line, &len, e))
		return false;
	if (!line)
		return error_set(e, ERROR_INVALID, "%s: the file is empty", gzip_name(c->lines.source));
	if (!split(c, line, len, e))
		return false;
	for (int r = 0; r < ROLES; r++) {
		c->at[r] = find_cell(c, c->form->names[r]);
		if (c->at[r] == SIZE_MAX && r != ROLE_LABEL)
			return error_set(
				e, ERROR_INVALID,
				"%s:1: wrong columns: '%s' is missing; found %s; allowed: %s,%s,%s among others",
				gzip_name(c->lines.source), c->form->names[r], quote(room, line, len),
				c->form->names[0], c->form->names[1], c->form->names[2]);
	}
	c->header_count = c->cell_count;
	return true;
}

static bool parse_time(const struct csv *c, struct place where, int64_t *micros, struct error *e)
{
	const struct trace_column iso = {
		c->form->names[ROLE_TIME], 0, 0,
		"a time like 2023-11-16 18:15:46.6805900 or 2024-05-10 00:00:00.009930+00:00"
	};
	const struct trace_column seconds = { c->form->names[ROLE_TIME], 6, INT64_C(10000000000000000),
					      "seconds, not negative" };
	struct cell cell = c->cells[c->at[ROLE_TIME]];

	if (!c->form->has_clock)
		return column_parse(&seconds, where, cell, micros, e);
	return decimal_parse_time(cell.text, cell.len, micros) || column_error(&iso, where, cell, e);
}

static bool parse_tokens(const struct csv *c, enum role role, struct place where, int64_t *out, struct error *e)
{
	const struct trace_column column = { c->form->names[role], 0, TRACE_MAX_TOKENS,
					     "a whole number from 0 to 10000000" };

	return column_parse(&column, where, c->cells[c->at[role]], out, e);
}

static bool parse_label(const struct csv *c, struct place where, int32_t *label, struct error *e)
{
	const struct trace_column column = {
		c->form->names[ROLE_LABEL], 0, 0,
		"text without quotes and commas, up to 128 bytes, at most 4096 different ones"
	};

	*label = -1;
	if (c->at[ROLE_LABEL] == SIZE_MAX)
		return true;
	struct cell cell = c->cells[c->at[ROLE_LABEL]];
	for (size_t i = 0; i < cell.len; i++)
		if ((unsigned char)cell.text[i] < 0x20 || cell.text[i] == ',' || cell.text[i] == '"')
			return column_error(&column, where, cell, e);
	if (cell.len > TRACE_MAX_LABEL_BYTES || (*label = labels_index(&c->in->labels, cell.text, cell.len)) == -2)
		return column_error(&column, where, cell, e);
	return true;
}

static bool read_row(struct csv *c, struct error *e)
{
	struct place where = { gzip_name(c->lines.source), c->lines.number };
	struct import_row row;

	if (c->cell_count != c->header_count)
		return error_set(e, ERROR_INVALID, "%s:%lld: found %zu columns; allowed: %zu, as in the first line",
				 where.file, (long long)where.line, c->cell_count, c->header_count);
	if (!parse_time(c, where, &row.micros, e) || !parse_tokens(c, ROLE_PROMPT, where, &row.prompt_tokens, e) ||
	    !parse_tokens(c, ROLE_OUTPUT, where, &row.output_tokens, e))
		return false;
	if (c->form->is_zero_failed && !row.output_tokens) {
		import_drop_failed(c->in);
		return true;
	}
	return parse_label(c, where, &row.label, e) && import_add(c->in, &row, e);
}

static bool read_rows(struct csv *c, struct error *e)
{
	char *line;
	size_t len;

	for (;;) {
		if (!lines_next(&c->lines, &line, &len, e))
			return false;
		if (!line)
			return true;
		if (len && (!split(c, line, len, e) || !read_row(c, e)))
			return false;
	}
}

static bool import_csv(struct import_rows *in, const struct csv_form *form, struct gzip *source, struct error *e)
{
	struct csv c = { .in = in, .form = form, .lines.source = source };

	in->report->has_clock = form->has_clock;
	in->report->keeps_start = form == &preheat;
	bool ok = read_header(&c, e) && read_rows(&c, e);
	lines_release(&c.lines);
	return ok;
}

static bool import_azure(struct import_rows *in, struct gzip *source, struct error *e)
{
	return import_csv(in, &azure, source, e);
}

static bool import_burstgpt(struct import_rows *in, struct gzip *source, struct error *e)
{
	return import_csv(in, &burstgpt, source, e);
}

static bool import_preheat(struct import_rows *in, struct gzip *source, struct error *e)
{
	return import_csv(in, &preheat, source, e);
}

static bool first_line_names(const struct csv_form *form, const char *bytes, size_t len)
{
	const char *end = memchr(bytes, '\n', len);
	size_t n = end ? (size_t)(end - bytes) : len;

	for (int r = 0; r < ROLE_LABEL; r++)
		if (!memmem(bytes, n, form->names[r], strlen(form->names[r])))
			return false;
	return true;
}

static bool looks_azure(const char *bytes, size_t len)
{
	return first_line_names(&azure, bytes, len);
}

static bool looks_burstgpt(const char *bytes, size_t len)
{
	return first_line_names(&burstgpt, bytes, len);
}

static bool looks_preheat(const char *bytes, size_t len)
{
	return first_line_names(&preheat, bytes, len);
}

enum json_role { JSON_TIME, JSON_PROMPT, JSON_OUTPUT, JSON_ROLES };
static const char *const role_names[] = { "a start time", "prompt tokens", "output tokens" };

/* Where a value stands: once per document, or once per request in a list. */
struct key {
	const char *path;
	enum json_role json_role;
	bool is_list;
};

struct json_form {
	const struct key *keys;
	size_t key_count;
	int time_places;     /* 6: seconds, 3: milliseconds, kept as microseconds */
	bool is_zero_failed; /* no output tokens: the request failed */
	const char *remedy;
};

static const struct key mooncake_keys[] = {
	{ "timestamp", JSON_TIME, false },
	{ "input_length", JSON_PROMPT, false },
	{ "output_length", JSON_OUTPUT, false },
};

static const struct key vllm_keys[] = {
	{ "start_times[]", JSON_TIME, true },	 { "input_lens[]", JSON_PROMPT, true },
	{ "output_lens[]", JSON_OUTPUT, true },	 { "start", JSON_TIME, false },
	{ "start_time", JSON_TIME, false },	 { "arrival", JSON_TIME, false },
	{ "arrival_time", JSON_TIME, false },	 { "timestamp", JSON_TIME, false },
	{ "prompt_len", JSON_PROMPT, false },	 { "input_len", JSON_PROMPT, false },
	{ "prompt_tokens", JSON_PROMPT, false }, { "output_len", JSON_OUTPUT, false },
	{ "output_tokens", JSON_OUTPUT, false }, { "completion_tokens", JSON_OUTPUT, false },
};

static const struct json_form mooncake = { mooncake_keys, 3, 3, false,
					   "each line needs timestamp, input_length, output_length" };
static const struct json_form vllm = { vllm_keys, sizeof vllm_keys / sizeof *vllm_keys, 6, true,
				       "record with: vllm bench serve --save-result --save-detailed" };

struct list {
	int64_t *values;
	size_t count, room;
};

/* The document at hand. */
struct document {
	struct import_rows *in;
	const struct json_form *form;
	struct list lists[JSON_ROLES];
	int64_t values[JSON_ROLES];
	bool is_seen[JSON_ROLES];
};

static bool parse(const struct json_form *f, const struct key *k, const struct json_event *ev, int64_t *out,
		  struct error *e)
{
	char room[QUOTE_ROOM];
	bool is_time = k->json_role == JSON_TIME;
	int64_t most = is_time ? INT64_C(10000000000000000) : TRACE_MAX_TOKENS;

	if (ev->type == JSON_NUMBER &&
	    decimal_parse(ev->text, ev->len, is_time ? f->time_places : 0, out) == DECIMAL_OK && *out <= most)
		return true;
	return error_set(e, ERROR_INVALID, "%s: found %s; allowed: %s", ev->path,
			 ev->text ? quote(room, ev->text, ev->len) : "a list or an object",
			 is_time ? "a number, not negative" : "a whole number from 0 to 10000000");
}

static void list_add(struct list *l, int64_t value)
{
	l->values = xgrow(l->values, l->count, &l->room, sizeof *l->values);
	l->values[l->count++] = value;
}

static bool take_value(struct document *d, const struct json_event *ev, struct error *e)
{
	int64_t value;

	for (size_t i = 0; i < d->form->key_count; i++) {
		const struct key *k = &d->form->keys[i];
		if (strcmp(k->path, ev->path))
			continue;
		if (!parse(d->form, k, ev, &value, e))
			return false;
		if (k->is_list && d->lists[k->json_role].count == TRACE_MAX_REQUESTS)
			return error_set(e, ERROR_INVALID, "%s: more than %d requests", ev->path, TRACE_MAX_REQUESTS);
		if (k->is_list)
			list_add(&d->lists[k->json_role], value);
		else
			d->values[k->json_role] = value;
		d->is_seen[k->json_role] = true;
	}
	return true;
}

static bool add(struct document *d, const int64_t values[JSON_ROLES], struct error *e)
{
	struct import_row row = { values[JSON_TIME], values[JSON_PROMPT], values[JSON_OUTPUT], -1 };

	if (d->form->is_zero_failed && !row.output_tokens) {
		import_drop_failed(d->in);
		return true;
	}
	return import_add(d->in, &row, e);
}

static bool add_lists(struct document *d, struct error *e)
{
	const struct list *l = d->lists;

	if (l[JSON_TIME].count != l[JSON_PROMPT].count || l[JSON_TIME].count != l[JSON_OUTPUT].count)
		return error_set(e, ERROR_INVALID,
				 "found %zu start_times, %zu input_lens and %zu output_lens; allowed: as many of each",
				 l[JSON_TIME].count, l[JSON_PROMPT].count, l[JSON_OUTPUT].count);
	for (size_t i = 0; i < l[JSON_TIME].count; i++) {
		int64_t values[] = { l[JSON_TIME].values[i], l[JSON_PROMPT].values[i], l[JSON_OUTPUT].values[i] };
		if (!add(d, values, e))
			return false;
	}
	return true;
}

static bool end_document(struct document *d, struct error *e)
{
	bool is_listed = false, ok;

	for (int r = 0; r < JSON_ROLES; r++) {
		if (!d->is_seen[r])
			return error_set(e, ERROR_INVALID, "%s is missing; %s", role_names[r], d->form->remedy);
		is_listed |= d->lists[r].count > 0;
	}
	ok = is_listed ? add_lists(d, e) : add(d, d->values, e);
	for (int r = 0; r < JSON_ROLES; r++) {
		d->is_seen[r] = false;
		d->lists[r].count = 0;
	}
	return ok;
}

static bool on_event(void *user, const struct json_event *ev, struct error *e)
{
	struct document *d = user;

	if (!ev->depth && (ev->type != JSON_OPEN && ev->type != JSON_CLOSE))
		return error_set(e, ERROR_INVALID, "a value that is not an object; %s", d->form->remedy);
	if (!ev->depth && ev->is_array)
		return error_set(e, ERROR_INVALID, "a list at the top; allowed: one object, or one per line");
	if (!ev->depth && ev->type == JSON_CLOSE)
		return end_document(d, e);
	return ev->type == JSON_CLOSE || take_value(d, ev, e);
}

static bool import_json(struct import_rows *in, const struct json_form *form, struct gzip *source, struct error *e)
{
	struct document d = { .in = in, .form = form };
	bool ok = json_read(source, on_event, &d, e);

	for (int r = 0; r < JSON_ROLES; r++)
		free(d.lists[r].values);
	return ok;
}

static bool import_mooncake(struct import_rows *in, struct gzip *source, struct error *e)
{
	return import_json(in, &mooncake, source, e);
}

static bool import_vllm(struct import_rows *in, struct gzip *source, struct error *e)
{
	return import_json(in, &vllm, source, e);
}

static bool has(const char *bytes, size_t len, const char *text)
{
	return memmem(bytes, len, text, strlen(text)) != NULL;
}

static bool is_object(const char *bytes, size_t len)
{
	size_t i = 0;

	while (i < len && strchr(" \t\r\n", bytes[i]) && bytes[i])
		i++;
	return i < len && bytes[i] == '{';
}

static bool looks_mooncake(const char *bytes, size_t len)
{
	return is_object(bytes, len) && has(bytes, len, "\"input_length\"");
}

/* The last to be asked: any other object; a summary without details then gets its remedy. */
static bool looks_vllm(const char *bytes, size_t len)
{
	return is_object(bytes, len);
}

static bool looks_prometheus(const char *bytes, size_t len)
{
	return is_object(bytes, len) && has(bytes, len, "\"status\"") &&
	       (has(bytes, len, "\"resultType\"") || has(bytes, len, "\"errorType\""));
}

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

static bool prometheus_on_event(void *user, const struct json_event *ev, struct error *e)
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
		return error_set(e, ERROR_INVALID, "a sample that is not a pair of time and value");
	return true;
}

static bool import_prometheus(struct import_rows *in, struct gzip *source, struct error *e)
{
	if (!in->series) {
		in->series = xcalloc(1, sizeof *in->series);
		in->series->report = in->report;
		in->series->values = in->options->values;
	}
	return json_read(source, prometheus_on_event, in->series, e);
}

/* After the last file: the series as bins. */
static bool prometheus_bins(struct prometheus *p, struct trace *out, struct import_report *report, struct error *e)
{
	millis origin;

	if (!series_bins(&p->series, out, &origin, e))
		return false;
	report->has_clock = true;
	report->origin_us = origin * 1000;
	return true;
}

/* takes NULL */
static void prometheus_free(struct prometheus *p)
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
	return xrealloc(rows, *room, size);
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
	t.bins = xcalloc(s->count + 1, sizeof *t.bins);
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

struct import_format {
	const char *name;
	import_looks_fn *looks;
	import_fn *read;
};

static const struct import_format formats[] = {
	{ "azure", looks_azure, import_azure },		 { "burstgpt", looks_burstgpt, import_burstgpt },
	{ "preheat", looks_preheat, import_preheat },	 { "prometheus", looks_prometheus, import_prometheus },
	{ "mooncake", looks_mooncake, import_mooncake }, { "vllm", looks_vllm, import_vllm },
};

/* Counts the row and keeps it, or drops it when it is a failed request of a format that tells. */
static bool import_add(struct import_rows *in, const struct import_row *row, struct error *e)
{
	if (in->count == TRACE_MAX_REQUESTS)
		return error_set(e, ERROR_INVALID, "more than %d requests; cut the recording", TRACE_MAX_REQUESTS);
	in->rows = xgrow(in->rows, in->count, &in->room, sizeof *in->rows);
	in->report->rows++;
	if (in->count && row->micros < in->rows[in->count - 1].arrival)
		in->report->unsorted++;
	in->rows[in->count++] =
		(struct request){ row->micros, (int32_t)row->prompt_tokens, (int32_t)row->output_tokens, row->label };
	return true;
}

static void import_drop_failed(struct import_rows *in)
{
	in->report->rows++;
	in->report->failed++;
}

static const struct import_format *find_format(const char *name, const char *bytes, size_t len)
{
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		if (strcmp(name, "auto") ? !strcmp(name, formats[i].name) : formats[i].looks(bytes, len))
			return &formats[i];
	return NULL;
}

/* Files of this program that are no traffic to convert, by how they begin or, as manifests, by what they say. */
static const struct own_file {
	const char *begins, *says, *found, *remedy;
} own_files[] = {
	{ "SQLite format 3", NULL, "a history or a recording", "give it as it is: preheat simulate --recording FILE" },
	{ "t_s,n_req,", NULL, "a trace in bins", "give it as it is: preheat simulate --trace FILE" },
	{ "t_s,pool,", NULL, "the timeline of a simulation",
	  "give the history.db beside it: preheat simulate --recording FILE" },
	{ "{\n  \"program\": \"preheat", NULL, "the summary of a simulation",
	  "give the history.db beside it: preheat simulate --recording FILE" },
	{ NULL, "kind: WarmPool", "a manifest", "name recorded traffic; a manifest is for preheat simulate -f FILE" },
	{ NULL, "kind: World", "a world file", "name recorded traffic; a world is for preheat simulate --world FILE" },
};

static const struct own_file *find_own(const char *bytes, size_t len)
{
	for (size_t i = 0; i < sizeof own_files / sizeof *own_files; i++) {
		const struct own_file *o = &own_files[i];

		if (o->begins ? len >= strlen(o->begins) && !memcmp(bytes, o->begins, strlen(o->begins))
			      : memmem(bytes, len, o->says, strlen(o->says)) != NULL)
			return o;
	}
	return NULL;
}

static void gzip_closep(struct gzip **g)
{
	gzip_close(*g);
}

static bool import_file(struct import_rows *in, const char *path, struct error *e)
{
	CLEANUP(gzip_closep) struct gzip *source = gzip_open(path, e);
	const char *bytes;
	size_t len;

	if (!source || !gzip_peek(source, &bytes, &len, e))
		return false;
	if (!len)
		return error_set(e, ERROR_INVALID, "%s: the file is empty", gzip_name(source));
	const struct own_file *own = find_own(bytes, len);
	if (own)
		return error_set(e, ERROR_INVALID, "%s: found %s; allowed: recorded traffic of other programs; do: %s",
				 gzip_name(source), own->found, own->remedy);
	const struct import_format *f = find_format(in->options->from, bytes, len);
	if (!f)
		return error_set(e, ERROR_INVALID, "%s: the format is not recognised; allowed: --format %s",
				 gzip_name(source), IMPORT_FORMATS);
	if (in->report->format && strcmp(in->report->format, f->name))
		return error_set(e, ERROR_INVALID, "%s: is %s, the file before is %s; import them one by one",
				 gzip_name(source), f->name, in->report->format);
	in->report->format = f->name;
	return f->read(in, source, e);
}

/* Microseconds of the recording's own time to milliseconds since its first arrival. */
static bool settle(struct import_rows *in, struct error *e)
{
	int64_t first = in->report->keeps_start ? 0 : INT64_MAX;

	for (size_t i = 0; i < in->count; i++)
		first = in->rows[i].arrival < first ? in->rows[i].arrival : first;
	for (size_t i = 0; i < in->count; i++) {
		in->rows[i].arrival = (in->rows[i].arrival - first + 500) / 1000;
		if (in->rows[i].arrival > TRACE_MAX_LENGTH)
			return error_set(
				e, ERROR_INVALID,
				"the recording spans more than ten years; are its times in the expected unit?");
	}
	requests_sort(in->rows, in->count);
	in->report->origin_us = first;
	return true;
}

static bool finish(struct import_rows *in, struct trace *out, struct error *e)
{
	struct trace t = { 0 };

	if (in->series)
		return prometheus_bins(in->series, out, in->report, e);
	if (!in->count)
		return error_set(e, ERROR_INVALID, "no usable requests: %lld rows read, %lld of them failed requests",
				 (long long)in->report->rows, (long long)in->report->failed);
	if (!settle(in, e))
		return false;
	t.requests = in->rows;
	t.request_count = in->count;
	in->rows = NULL;
	labels_move(&in->labels, &t);
	t.length = trace_end(&t);
	*out = t;
	return true;
}

bool trace_import(const char *const *paths, size_t count, const struct import_options *options, struct trace *out,
		  struct import_report *report, struct error *e)
{
	struct import_rows in = { .options = options, .report = report };
	bool ok = true;

	*report = (struct import_report){ 0 };
	for (size_t i = 0; i < count && ok; i++)
		ok = import_file(&in, paths[i], e);
	ok = ok && finish(&in, out, e);
	prometheus_free(in.series);
	labels_release(&in.labels);
	free(in.rows);
	return ok;
}
