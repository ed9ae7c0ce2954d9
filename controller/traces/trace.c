#include "controller/traces/trace.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/quantity.h"
#include "base/gzip.h"
#include "base/file.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

void trace_release(struct trace *t)
{
	for (size_t i = 0; i < t->label_count; i++)
		free(t->labels[i]);
	free(t->labels);
	free(t->requests);
	free(t->bins);
	*t = (struct trace){ 0 };
}

millis trace_end(const struct trace *t)
{
	if (t->is_binned)
		return t->bin_count ? t->bins[t->bin_count - 1].at + t->bin_width : 0;
	if (!t->request_count)
		return 0;
	return (t->requests[t->request_count - 1].arrival / SECOND + 1) * SECOND;
}

/* Least significant digit first, 11 bits a pass: stable, and a week of milliseconds needs three. */
void requests_sort(struct request *requests, size_t count)
{
	enum { BITS = 11, DIGITS = 1 << BITS };
	millis most = 0;
	bool is_sorted = true;

	for (size_t i = 0; i < count; i++) {
		is_sorted &= !i || requests[i - 1].arrival <= requests[i].arrival;
		most = requests[i].arrival > most ? requests[i].arrival : most;
	}
	if (is_sorted)
		return;
	struct request *spare = xmalloc(count * sizeof *spare), *from = requests, *to = spare;
	for (int shift = 0; most >> shift; shift += BITS) {
		size_t starts[DIGITS + 1] = { 0 };
		for (size_t i = 0; i < count; i++)
			starts[(from[i].arrival >> shift & (DIGITS - 1)) + 1]++;
		for (int d = 0; d < DIGITS; d++)
			starts[d + 1] += starts[d];
		for (size_t i = 0; i < count; i++)
			to[starts[from[i].arrival >> shift & (DIGITS - 1)]++] = from[i];
		struct request *swap = from;
		from = to;
		to = swap;
	}
	if (from != requests)
		memcpy(requests, from, count * sizeof *from);
	free(spare);
}

static bool bin_fits(const struct bin *b, struct error *e)
{
	if (b->requests <= TRACE_MAX_BIN_REQUESTS && b->prompt_tokens <= TRACE_MAX_BIN_TOKENS &&
	    b->output_tokens <= TRACE_MAX_BIN_TOKENS)
		return true;
	return error_set(e, ERROR_INVALID,
			 "more than %lld requests or %lld tokens fall into one bin; make the bins shorter",
			 (long long)TRACE_MAX_BIN_REQUESTS, (long long)TRACE_MAX_BIN_TOKENS);
}

/* One bin, or one request as a bin of its own. */
static struct bin item(const struct trace *in, size_t i)
{
	if (in->is_binned)
		return in->bins[i];
	const struct request *r = &in->requests[i];
	return (struct bin){ r->arrival, 1, r->prompt_tokens, r->output_tokens };
}

bool trace_to_bins(const struct trace *in, millis width, struct trace *out, struct error *e)
{
	if (width <= 0 || (in->is_binned && width % in->bin_width))
		return error_set(e, ERROR_INVALID, "bins of %lld ms cannot be made; allowed: a multiple of %lld ms",
				 (long long)width, (long long)(in->is_binned ? in->bin_width : 1));
	size_t count = in->is_binned ? in->bin_count : in->request_count;
	size_t room = (size_t)(trace_end(in) / width) + 1;
	if (room > count)
		room = count;
	if (room > TRACE_MAX_BINS)
		return error_set(e, ERROR_INVALID, "bins of %lld ms are more than %d; make them longer",
				 (long long)width, TRACE_MAX_BINS);
	struct trace t = { .is_binned = true, .bin_width = width, .bins = xcalloc(room + 1, sizeof *t.bins) };
	for (size_t i = 0; i < count; i++) {
		struct bin add = item(in, i), *last = t.bin_count ? &t.bins[t.bin_count - 1] : NULL;
		if (!last || add.at >= last->at + width) {
			last = &t.bins[t.bin_count++];
			last->at = add.at / width * width;
		}
		last->requests += add.requests;
		last->prompt_tokens += add.prompt_tokens;
		last->output_tokens += add.output_tokens;
		if (!bin_fits(last, e)) {
			trace_release(&t);
			return false;
		}
	}
	t.length = trace_end(&t);
	*out = t;
	return true;
}

static void count_labels(const struct trace *in, struct trace *out)
{
	for (size_t i = 0; i < in->request_count; i++)
		out[in->requests[i].label].request_count++;
	for (size_t i = 0; i < in->label_count; i++) {
		out[i].requests = xcalloc(out[i].request_count + 1, sizeof *out[i].requests);
		out[i].request_count = 0;
		out[i].length = in->length;
	}
}

bool trace_split(const struct trace *in, struct trace *out, struct error *e)
{
	if (in->is_binned || !in->label_count)
		return error_set(e, ERROR_INVALID,
				 "the traffic has no class column; a fourth column says whose "
				 "request it is");
	for (size_t i = 0; i < in->request_count; i++)
		if (in->requests[i].label < 0)
			return error_set(e, ERROR_INVALID, "request %zu has no class; each needs one", i + 1);
	memset(out, 0, in->label_count * sizeof *out);
	count_labels(in, out);
	for (size_t i = 0; i < in->request_count; i++) {
		struct trace *t = &out[in->requests[i].label];
		t->requests[t->request_count] = in->requests[i];
		t->requests[t->request_count++].label = -1;
	}
	return true;
}

#define TOKENS_ALLOWED	"a whole number from 0 to 10000000"
#define COUNTS_ALLOWED	"a whole number from 0 to 1000000000000"
#define SECONDS_ALLOWED "seconds since the start of the trace, from 0 to 316224000 (ten years)"

static const struct trace_column request_columns[] = {
	{ "arrival_s", 3, TRACE_MAX_LENGTH, SECONDS_ALLOWED },
	{ "prompt_tokens", 0, TRACE_MAX_TOKENS, TOKENS_ALLOWED },
	{ "output_tokens", 0, TRACE_MAX_TOKENS, TOKENS_ALLOWED },
};

static const struct trace_column label_column = {
	"class", 0, 0, "printable text without quotes, up to 128 bytes, at most 4096 different ones"
};

static const struct trace_column bin_columns[] = {
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

static bool header_is(const struct reader *r, const struct trace_column *columns, size_t count)
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
	return xrealloc(rows, *room, size);
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
				"preheat import FILE --out SORTED.csv");
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

static char *put_count(char *p, int64_t n)
{
	char digits[20];
	size_t count = 0;

	do
		digits[count++] = (char)('0' + n % 10);
	while ((n /= 10));
	while (count)
		*p++ = digits[--count];
	return p;
}

static char *put_seconds(char *p, millis t)
{
	p = put_count(p, t / SECOND);
	*p++ = '.';
	*p++ = (char)('0' + t / 100 % 10);
	*p++ = (char)('0' + t / 10 % 10);
	*p++ = (char)('0' + t % 10);
	return p;
}

static void write_requests(const struct trace *t, struct output *o)
{
	output_text(o, t->label_count ? "arrival_s,prompt_tokens,output_tokens,class\n"
				      : "arrival_s,prompt_tokens,output_tokens\n");
	for (size_t i = 0; i < t->request_count; i++) {
		const struct request *r = &t->requests[i];
		char row[80], *p = put_seconds(row, r->arrival);
		*p++ = ',';
		p = put_count(p, r->prompt_tokens);
		*p++ = ',';
		p = put_count(p, r->output_tokens);
		if (t->label_count)
			*p++ = ',';
		output_bytes(o, row, (size_t)(p - row));
		if (r->label >= 0)
			output_text(o, t->labels[r->label]);
		output_bytes(o, "\n", 1);
	}
}

static void write_bin(const struct bin *b, struct output *o)
{
	char row[96], *p = b->at % SECOND ? put_seconds(row, b->at) : put_count(row, b->at / SECOND);

	*p++ = ',';
	p = put_count(p, b->requests);
	*p++ = ',';
	p = put_count(p, b->prompt_tokens);
	*p++ = ',';
	p = put_count(p, b->output_tokens);
	*p++ = '\n';
	output_bytes(o, row, (size_t)(p - row));
}

/* Readers take the shortest step for the width: an empty bin shows it where no two bins are neighbours. */
static bool shows_width(const struct trace *t)
{
	for (size_t i = 1; i < t->bin_count; i++)
		if (t->bins[i].at - t->bins[i - 1].at == t->bin_width)
			return true;
	return false;
}

static void write_bins(const struct trace *t, struct output *o)
{
	bool is_shown = shows_width(t);

	output_text(o, "t_s,n_req,prompt_tokens,output_tokens\n");
	for (size_t i = 0; i < t->bin_count; i++) {
		write_bin(&t->bins[i], o);
		if (!i && !is_shown)
			write_bin(&(struct bin){ .at = t->bins[0].at + t->bin_width }, o);
	}
}

bool trace_write(const struct trace *t, const char *path, struct error *e)
{
	struct output *o = output_open(path, e);

	if (!o)
		return false;
	if (t->is_binned)
		write_bins(t, o);
	else
		write_requests(t, o);
	return output_commit(o, e);
}

enum { SLOTS = 4 * TRACE_MAX_LABELS };

static bool is_text(const struct labels *l, size_t i, const char *text, size_t len)
{
	return !strncmp(l->texts[i], text, len) && !l->texts[i][len];
}

static size_t hash(const char *text, size_t len)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
	return (size_t)(h >> 20) % SLOTS;
}

int32_t labels_index(struct labels *l, const char *text, size_t len)
{
	if (!len)
		return -1;
	if (l->count && is_text(l, (size_t)l->last, text, len))
		return l->last;
	if (!l->slots) {
		l->slots = xcalloc(SLOTS, sizeof *l->slots);
		l->texts = xcalloc(TRACE_MAX_LABELS, sizeof *l->texts);
	}
	size_t at = hash(text, len);
	while (l->slots[at] && !is_text(l, l->slots[at] - 1U, text, len))
		at = (at + 1) % SLOTS;
	if (!l->slots[at]) {
		if (l->count == TRACE_MAX_LABELS)
			return -2;
		l->texts[l->count] = xstrndup(text, len);
		l->slots[at] = (uint16_t)++l->count;
	}
	l->last = l->slots[at] - 1;
	return l->last;
}

void labels_release(struct labels *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->texts[i]);
	free(l->texts);
	free(l->slots);
	*l = (struct labels){ 0 };
}

void labels_move(struct labels *l, struct trace *t)
{
	t->labels = l->texts;
	t->label_count = l->count;
	free(l->slots);
	*l = (struct labels){ 0 };
}

bool column_error(const struct trace_column *c, struct place where, struct cell cell, struct error *e)
{
	char room[QUOTE_ROOM];

	return error_set(e, ERROR_INVALID, "%s:%lld: column %s: found %s; allowed: %s", where.file,
			 (long long)where.line, c->name, cell.len ? quote(room, cell.text, cell.len) : "nothing",
			 c->allowed);
}

bool column_parse(const struct trace_column *c, struct place where, struct cell cell, int64_t *out, struct error *e)
{
	int64_t value;

	if (decimal_parse(cell.text, cell.len, c->places, &value) != DECIMAL_OK || value > c->most)
		return column_error(c, where, cell, e);
	*out = value;
	return true;
}
