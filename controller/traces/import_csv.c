#include "controller/traces/trace.h"
#include "controller/traces/import_rows.h"

#include "base/decimal.h"
#include "base/lines.h"
#include "base/quote.h"

#include <string.h>

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
	const struct trace_column iso = { c->form->names[ROLE_TIME], 0, 0,
				    "a time like 2023-11-16 18:15:46.6805900 or 2024-05-10 00:00:00.009930+00:00" };
	const struct trace_column seconds = { c->form->names[ROLE_TIME], 6, INT64_C(10000000000000000),
					"seconds, not negative" };
	struct cell cell = c->cells[c->at[ROLE_TIME]];

	if (!c->form->has_clock)
		return column_parse(&seconds, where, cell, micros, e);
	return decimal_parse_time(cell.text, cell.len, micros) || column_error(&iso, where, cell, e);
}

static bool parse_tokens(const struct csv *c, enum role role, struct place where, int64_t *out, struct error *e)
{
	const struct trace_column column = { c->form->names[role], 0, TRACE_MAX_TOKENS, "a whole number from 0 to 10000000" };

	return column_parse(&column, where, c->cells[c->at[role]], out, e);
}

static bool parse_label(const struct csv *c, struct place where, int32_t *label, struct error *e)
{
	const struct trace_column column = { c->form->names[ROLE_LABEL], 0, 0,
				       "text without quotes and commas, up to 128 bytes, at most 4096 different ones" };

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

bool import_azure(struct import_rows *in, struct gzip *source, struct error *e)
{
	return import_csv(in, &azure, source, e);
}

bool import_burstgpt(struct import_rows *in, struct gzip *source, struct error *e)
{
	return import_csv(in, &burstgpt, source, e);
}

bool import_preheat(struct import_rows *in, struct gzip *source, struct error *e)
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

bool looks_azure(const char *bytes, size_t len)
{
	return first_line_names(&azure, bytes, len);
}

bool looks_burstgpt(const char *bytes, size_t len)
{
	return first_line_names(&burstgpt, bytes, len);
}

bool looks_preheat(const char *bytes, size_t len)
{
	return first_line_names(&preheat, bytes, len);
}
