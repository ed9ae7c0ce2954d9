#include "controller/traces/column.h"
#include "controller/traces/labels.h"
#include "controller/traces/trace.h"

#include "base/arena.h"
#include "base/lines.h"
#include "base/quote.h"

#include <stdlib.h>
#include <string.h>

#define TOKENS_ALLOWED	"a whole number from 0 to 10000000"
#define COUNTS_ALLOWED	"a whole number from 0 to 1000000000000"
#define SECONDS_ALLOWED "seconds since the start of the trace, from 0 to 316224000 (ten years)"

static const struct column request_columns[] = {
	{ "arrival_s", 3, TRACE_MAX_LENGTH, SECONDS_ALLOWED },
	{ "prompt_tokens", 0, TRACE_MAX_TOKENS, TOKENS_ALLOWED },
	{ "output_tokens", 0, TRACE_MAX_TOKENS, TOKENS_ALLOWED },
};

static const struct column label_column = {
	"class", 0, 0, "printable text without quotes, up to 128 bytes, at most 4096 different ones"
};

static const struct column bin_columns[] = {
	{ "t_s", 3, TRACE_MAX_LENGTH, SECONDS_ALLOWED },
	{ "n_req", 0, TRACE_MAX_BIN_REQUESTS, "a whole number from 0 to 1000000000" },
	{ "prompt_tokens", 0, TRACE_MAX_BIN_TOKENS, COUNTS_ALLOWED },
	{ "output_tokens", 0, TRACE_MAX_BIN_TOKENS, COUNTS_ALLOWED },
};

enum { MAX_CELLS = 5 };

struct reader {
	struct lines lines;
	struct trace trace;
	struct labels labels;
	size_t room; /* rows allocated */
	bool has_label;
	int64_t prompt_total, output_total;
	struct cell cells[MAX_CELLS];
	size_t cell_count;
};

static struct place place(const struct reader *r)
{
	return (struct place){ gzip_name(r->lines.source), r->lines.number };
}

static bool complain(const struct reader *r, struct error *e, const char *what)
{
	return error_set(e, ERROR_INVALID, "%s:%lld: %s", gzip_name(r->lines.source), (long long)r->lines.number, what);
}

/* More cells than MAX_CELLS count as MAX_CELLS. */
static void split(struct reader *r, const char *line, size_t len)
{
	const char *end = line + len;

	r->cell_count = 0;
	for (;;) {
		const char *comma = memchr(line, ',', (size_t)(end - line));
		if (!comma)
			comma = end;
		r->cells[r->cell_count++] = (struct cell){ line, (size_t)(comma - line) };
		if (comma == end || r->cell_count == MAX_CELLS)
			return;
		line = comma + 1;
	}
}

static bool is_cell(const struct reader *r, size_t i, const char *text)
{
	return r->cells[i].len == strlen(text) && !memcmp(r->cells[i].text, text, r->cells[i].len);
}

static bool header_is(const struct reader *r, const struct column *columns, size_t count)
{
	if (r->cell_count < count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!is_cell(r, i, columns[i].name))
			return false;
	return true;
}

static bool read_header(struct reader *r, struct error *e)
{
	char *line, room[QUOTE_ROOM];
	size_t len;

	if (!lines_next(&r->lines, &line, &len, e))
		return false;
	if (!line)
		return error_set(e, ERROR_INVALID, "%s: the file is empty; a trace starts with the line %s",
				 gzip_name(r->lines.source), "arrival_s,prompt_tokens,output_tokens");
	split(r, line, len);
	r->has_label = r->cell_count == 4 && (is_cell(r, 3, "class") || is_cell(r, 3, "label"));
	r->trace.is_binned = r->cell_count == 4 && header_is(r, bin_columns, 4);
	if (r->trace.is_binned || (header_is(r, request_columns, 3) && (r->cell_count == 3 || r->has_label)))
		return true;
	return error_set(e, ERROR_INVALID,
			 "%s:1: wrong columns: found %s; allowed: arrival_s,prompt_tokens,output_tokens[,class] or "
			 "t_s,n_req,prompt_tokens,output_tokens; other formats: preheat import",
			 gzip_name(r->lines.source), quote(room, line, len));
}

static void *grow(void *rows, size_t *room, size_t size)
{
	*room = *room ? *room * 2 : 4096;
	void *grown = realloc(rows, *room * size);
	if (!grown)
		abort();
	return grown;
}

static bool count_cells(struct reader *r, size_t columns, size_t rows, size_t most, struct error *e)
{
	if (rows == most)
		return error_set(e, ERROR_INVALID,
				 "%s:%lld: more than %zu rows; use bins: preheat import --bin 10s, or cut the trace",
				 gzip_name(r->lines.source), (long long)r->lines.number, most);
	if (r->cell_count == columns)
		return true;
	return error_set(e, ERROR_INVALID, "%s:%lld: found %s%zu column%s; allowed: %zu, as in the first line",
			 gzip_name(r->lines.source), (long long)r->lines.number,
			 r->cell_count == MAX_CELLS ? "at least " : "", r->cell_count, r->cell_count == 1 ? "" : "s",
			 columns);
}

static bool is_label(struct cell c)
{
	for (size_t i = 0; i < c.len; i++)
		if ((unsigned char)c.text[i] < 0x20 || c.text[i] == 0x7f || c.text[i] == '"')
			return false;
	return c.len <= TRACE_MAX_LABEL_BYTES;
}

static bool read_request(struct reader *r, struct error *e)
{
	struct trace *t = &r->trace;
	int64_t v[3];

	if (!count_cells(r, r->has_label ? 4 : 3, t->request_count, TRACE_MAX_REQUESTS, e))
		return false;
	for (size_t i = 0; i < 3; i++)
		if (!column_parse(&request_columns[i], place(r), r->cells[i], &v[i], e))
			return false;
	int32_t label = -1;
	if (r->has_label &&
	    (!is_label(r->cells[3]) || (label = labels_index(&r->labels, r->cells[3].text, r->cells[3].len)) == -2))
		return column_error(&label_column, place(r), r->cells[3], e);
	if (t->request_count && v[0] < t->requests[t->request_count - 1].arrival)
		return complain(r, e,
				"column arrival_s: earlier than the line before; rows must be sorted by time: "
				"preheat import FILE -o SORTED.csv");
	if (t->request_count == r->room)
		t->requests = grow(t->requests, &r->room, sizeof *t->requests);
	t->requests[t->request_count++] = (struct request){ v[0], (int32_t)v[1], (int32_t)v[2], label };
	return true;
}

static bool add_totals(struct reader *r, const struct bin *b, struct error *e)
{
	const int64_t most = INT64_C(1) << 60;

	if (r->prompt_total > most || r->output_total > most)
		return complain(r, e, "the tokens of all bins together are more than 2^60; cut the trace");
	r->prompt_total += b->prompt_tokens;
	r->output_total += b->output_tokens;
	if (!b->requests && (b->prompt_tokens || b->output_tokens))
		return complain(r, e,
				"column n_req: found 0 in a bin that has tokens; allowed: at least 1 request there");
	return true;
}

static bool read_bin(struct reader *r, struct error *e)
{
	struct trace *t = &r->trace;
	int64_t v[4];

	if (!count_cells(r, 4, t->bin_count, TRACE_MAX_BINS, e))
		return false;
	for (size_t i = 0; i < 4; i++)
		if (!column_parse(&bin_columns[i], place(r), r->cells[i], &v[i], e))
			return false;
	struct bin b = { v[0], v[1], v[2], v[3] };
	if (!add_totals(r, &b, e))
		return false;
	if (t->bin_count) {
		millis step = b.at - t->bins[t->bin_count - 1].at;
		if (step <= 0)
			return complain(r, e,
					"column t_s: not after the line before; bins must be sorted by time: "
					"(head -1 FILE; tail -n +2 FILE | sort -t, -k1,1n) > SORTED");
		if (!t->bin_width || step < t->bin_width)
			t->bin_width = step;
	}
	if (t->bin_count == r->room)
		t->bins = grow(t->bins, &r->room, sizeof *t->bins);
	t->bins[t->bin_count++] = b;
	return true;
}

/* The width is the shortest step; only at the end is it known whether the others are multiples. */
static bool check_grid(struct reader *r, struct error *e)
{
	struct trace *t = &r->trace;

	if (t->bin_count < 2)
		return complain(r, e, "only one bin; at least two are needed, since their distance is the width");
	for (size_t i = 1; i < t->bin_count; i++)
		if ((t->bins[i].at - t->bins[0].at) % t->bin_width) {
			r->lines.number = (int64_t)i + 2;
			return error_set(e, ERROR_INVALID,
					 "%s:%lld: column t_s: found %.3f; allowed: whole bins of %.3f s (the shortest "
					 "step) after the first",
					 gzip_name(r->lines.source), (long long)r->lines.number,
					 (double)t->bins[i].at / 1000, (double)t->bin_width / 1000);
		}
	return true;
}

static bool read_rows(struct reader *r, struct error *e)
{
	char *line;
	size_t len;
	bool was_empty = false;

	for (;;) {
		if (!lines_next(&r->lines, &line, &len, e))
			return false;
		if (!line)
			break;
		if (was_empty)
			return complain(r, e, "an empty line stands before this one; remove it");
		was_empty = len == 0;
		if (was_empty)
			continue;
		split(r, line, len);
		if (r->trace.is_binned ? !read_bin(r, e) : !read_request(r, e))
			return false;
	}
	if (!r->trace.request_count && !r->trace.bin_count)
		return error_set(e, ERROR_INVALID, "%s: no rows after the first line; a trace needs traffic",
				 gzip_name(r->lines.source));
	return !r->trace.is_binned || check_grid(r, e);
}

static void gzip_closep(struct gzip **g)
{
	gzip_close(*g);
}

bool trace_read(const char *path, struct trace *out, struct error *e)
{
	CLEANUP(gzip_closep) struct gzip *source = gzip_open(path, e);
	struct reader r = { .lines.source = source };

	if (!source)
		return false;
	bool ok = read_header(&r, e) && read_rows(&r, e);
	lines_release(&r.lines);
	labels_move(&r.labels, &r.trace);
	r.trace.length = trace_end(&r.trace);
	if (ok)
		*out = r.trace;
	else
		trace_release(&r.trace);
	return ok;
}
