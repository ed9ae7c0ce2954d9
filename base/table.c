#include "base/table.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/terminal.h"
#include "base/json.h"
#include "base/yaml.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum cell_kind { CELL_TEXT, CELL_RAW, CELL_ABSENT };

struct cell {
	enum cell_kind kind;
	enum style style;
	const char *shown, *raw;
};

struct table {
	const struct table_column *columns;
	size_t column_count;
	struct cell *cells; /* row by row */
	size_t count, room;
	struct arena texts;
};

struct table *table_new(const struct table_column *columns, size_t count)
{
	struct arena first = { 0 };
	struct table *t = arena_new(&first, struct table);

	*t = (struct table){ .columns = columns, .column_count = count, .texts = first };
	return t;
}

void table_free(struct table *t)
{
	if (!t)
		return;
	struct arena texts = t->texts; /* the table itself lies in it */
	arena_release(&texts);
}

static const char *keep(struct table *t, const char *text)
{
	return arena_strdup(&t->texts, text, strlen(text));
}

static void add(struct table *t, enum cell_kind kind, const char *shown, const char *raw)
{
	t->cells = arena_grow(&t->texts, t->cells, t->count, &t->room, sizeof *t->cells);
	t->cells[t->count++] = (struct cell){ .kind = kind, .shown = keep(t, shown), .raw = keep(t, raw) };
}

void table_text(struct table *t, const char *text)
{
	add(t, CELL_TEXT, text, text);
}

void table_count(struct table *t, int64_t n)
{
	char raw[24];

	snprintf(raw, sizeof raw, "%lld", (long long)n);
	add(t, CELL_RAW, human_count(n).text, raw);
}

void table_decimal(struct table *t, double value, int places)
{
	char raw[32];

	snprintf(raw, sizeof raw, "%.*f", places, value);
	add(t, CELL_RAW, human_decimal(value, places).text, raw);
}

void table_value(struct table *t, const char *shown, const char *raw)
{
	add(t, CELL_RAW, shown, raw);
}

void table_duration(struct table *t, millis d)
{
	char raw[32];

	snprintf(raw, sizeof raw, "%.3f", (double)d / 1000);
	table_value(t, human_duration(d).text, raw);
}

void table_share(struct table *t, double share)
{
	char raw[32];

	snprintf(raw, sizeof raw, "%.0f", share * 1e6);
	table_value(t, human_share(share).text, raw);
}

void table_dollars(struct table *t, double dollars)
{
	char raw[32];

	snprintf(raw, sizeof raw, "%.4f", dollars);
	table_value(t, human_dollars(dollars).text, raw);
}

void table_shown(struct table *t, const char *shown)
{
	add(t, CELL_ABSENT, shown, "");
}

void table_spent(struct table *t, double amount, bool is_unpriced)
{
	CLEANUP(buf_release) struct buf shown = { 0 };

	if (!is_unpriced) {
		table_dollars(t, amount);
		return;
	}
	buf_printf(&shown, "%s h", human_decimal(amount, 1).text);
	table_shown(t, shown.text);
}

void table_absent(struct table *t)
{
	add(t, CELL_ABSENT, "-", "");
}

void table_style(struct table *t, enum style style)
{
	if (t->count)
		t->cells[t->count - 1].style = style;
}

size_t table_rows(const struct table *t)
{
	assert(t->column_count > 0);
	return t->count / t->column_count;
}

enum table_format table_format_of(const char *name)
{
	return strcmp(name, "wide") == 0   ? TABLE_WIDE
	       : strcmp(name, "csv") == 0  ? TABLE_CSV
	       : strcmp(name, "json") == 0 ? TABLE_JSON
	       : strcmp(name, "yaml") == 0 ? TABLE_YAML
					   : TABLE_PLAIN;
}

bool table_is_for_programs(enum table_format format)
{
	return format == TABLE_CSV || format == TABLE_JSON || format == TABLE_YAML;
}

/* Columns on the screen of a text in UTF-8, wide characters not counted. */
static int columns_of(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static int title_width(const struct table_column *c)
{
	return columns_of(c->title ? c->title : c->name);
}

static void pad(int n, FILE *out)
{
	for (; n > 0; n--)
		putc(' ', out);
}

/* Control characters from a file must not reach the terminal. */
static void put_clean(const char *text, FILE *out)
{
	for (; *text; text++)
		putc(iscntrl((unsigned char)*text) ? '?' : *text, out);
}

static void put_title(const struct table_column *c, FILE *out)
{
	const char *text = c->title ? c->title : c->name;

	for (; *text; text++)
		putc(c->title ? *text : toupper((unsigned char)*text), out);
}

static void print_header(const struct table *t, const int *widths, FILE *out)
{
	size_t last = t->column_count;

	while (last > 0 && widths[last - 1] < 0)
		last--;
	for (size_t i = 0; i < last; i++) {
		int gap = widths[i] - title_width(&t->columns[i]);

		if (widths[i] < 0)
			continue;
		pad(t->columns[i].is_right ? gap : 0, out);
		put_title(&t->columns[i], out);
		pad(i + 1 == last ? 0 : t->columns[i].is_right ? 3 : gap + 3, out);
	}
	putc('\n', out);
}

static void print_row(const struct table *t, const struct cell *row, const int *widths, FILE *out)
{
	struct terminal terminal = terminal_of(out);
	size_t last = t->column_count;

	while (last > 0 && widths[last - 1] < 0)
		last--;
	for (size_t i = 0; i < last; i++) {
		int gap = widths[i] - columns_of(row[i].shown);

		if (widths[i] < 0)
			continue;
		pad(t->columns[i].is_right ? gap : 0, out);
		fputs(row[i].style ? terminal_style(&terminal, row[i].style) : "", out);
		put_clean(row[i].shown, out);
		fputs(row[i].style ? terminal_style(&terminal, STYLE_PLAIN) : "", out);
		pad(i + 1 == last ? 0 : t->columns[i].is_right ? 3 : gap + 3, out);
	}
	putc('\n', out);
}

/* As wide as the widest of title, cells and what `widths` held before; -1: not shown. */
static void widen(const struct table *t, bool is_wide, int *widths)
{
	for (size_t i = 0; i < t->column_count; i++) {
		int least = title_width(&t->columns[i]);

		if (t->columns[i].is_wide && !is_wide) {
			widths[i] = -1;
			continue;
		}
		widths[i] = least > widths[i] ? least : widths[i];
		for (size_t at = i; at < t->count; at += t->column_count) {
			int w = columns_of(t->cells[at].shown);

			widths[i] = w > widths[i] ? w : widths[i];
		}
	}
}

static void print_plain_rows(const struct table *t, const int *widths, FILE *out)
{
	for (size_t row = 0; row < table_rows(t); row++)
		print_row(t, &t->cells[row * t->column_count], widths, out);
}

static void print_plain(const struct table *t, bool is_wide, FILE *out)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	int *widths = arena_array(&a, int, t->column_count + 1);

	widen(t, is_wide, widths);
	print_header(t, widths, out);
	print_plain_rows(t, widths, out);
}

static void put_csv(const char *text, FILE *out)
{
	CLEANUP(buf_release) struct buf cell = { 0 };

	csv_write_cell(text, &cell);
	fwrite(cell.text ? cell.text : "", 1, cell.len, out);
}

static void print_csv_header(const struct table *t, FILE *out)
{
	for (size_t i = 0; i < t->column_count; i++)
		fprintf(out, "%s%s", i ? "," : "", t->columns[i].name);
	putc('\n', out);
}

static void print_csv_rows(const struct table *t, FILE *out)
{
	for (size_t at = 0; at < table_rows(t) * t->column_count; at++) {
		put_csv(t->cells[at].raw, out);
		putc((at + 1) % t->column_count ? ',' : '\n', out);
	}
}

static void put_json_text(const char *text, FILE *out)
{
	CLEANUP(buf_release) struct buf json = { 0 };

	json_write_text(text, &json);
	fputs(json.text, out);
}

static void put_json_cell(const struct cell *c, FILE *out)
{
	switch (c->kind) {
	case CELL_TEXT:
		put_json_text(c->raw, out);
		break;
	case CELL_RAW:
		fputs(c->raw, out);
		break;
	case CELL_ABSENT:
		fputs("null", out);
		break;
	}
}

static void print_json_row(const struct table *t, size_t row, FILE *out)
{
	putc('{', out);
	for (size_t i = 0; i < t->column_count; i++) {
		fprintf(out, "%s\"%s\": ", i ? ", " : "", t->columns[i].name);
		put_json_cell(&t->cells[row * t->column_count + i], out);
	}
	putc('}', out);
}

static void print_json(const struct table *t, FILE *out)
{
	putc('[', out);
	for (size_t row = 0; row < table_rows(t); row++) {
		fputs(row ? ",\n  " : "\n  ", out);
		print_json_row(t, row, out);
	}
	fputs(table_rows(t) ? "\n]\n" : "]\n", out);
}

enum { ALL_ROWS = -1 };

/* One document: all rows, or one. What print_json writes is JSON, so that nothing can go wrong here. */
static void print_yaml(const struct table *t, int64_t row, FILE *out)
{
	CLEANUP(buf_release) struct buf yaml = { 0 };
	struct error e;
	char *json = NULL;
	size_t len = 0;
	FILE *text = xmust(open_memstream(&json, &len));

	if (row == ALL_ROWS)
		print_json(t, text);
	else
		print_json_row(t, (size_t)row, text);
	fclose(text);
	bool ok = yaml_write_json(json, len, &yaml, &e);
	assert(ok);
	(void)ok;
	fputs(yaml.text, out);
	free(json);
}

void table_print(const struct table *t, enum table_format format, FILE *out)
{
	switch (format) {
	case TABLE_PLAIN:
		print_plain(t, false, out);
		break;
	case TABLE_WIDE:
		print_plain(t, true, out);
		break;
	case TABLE_CSV:
		print_csv_header(t, out);
		print_csv_rows(t, out);
		break;
	case TABLE_JSON:
		print_json(t, out);
		break;
	case TABLE_YAML:
		print_yaml(t, ALL_ROWS, out);
		break;
	}
}

void table_print_portion(const struct table *t, enum table_format format, struct table_stream *s, FILE *out)
{
	bool is_first = !s->is_begun;

	assert(t->column_count <= TABLE_COLUMNS_MAX);
	s->is_begun = true;
	switch (format) {
	case TABLE_PLAIN:
	case TABLE_WIDE:
		widen(t, format == TABLE_WIDE, s->widths);
		if (is_first)
			print_header(t, s->widths, out);
		print_plain_rows(t, s->widths, out);
		break;
	case TABLE_CSV:
		if (is_first)
			print_csv_header(t, out);
		print_csv_rows(t, out);
		break;
	case TABLE_JSON:
		for (size_t row = 0; row < table_rows(t); row++) {
			print_json_row(t, row, out);
			putc('\n', out);
		}
		break;
	case TABLE_YAML:
		for (size_t row = 0; row < table_rows(t); row++) {
			fputs("---\n", out);
			print_yaml(t, (int64_t)row, out);
		}
		break;
	}
}

struct sheet_cell {
	struct buf text;
	bool is_set;
};

struct row {
	struct row *next;
	struct sheet_cell *cells;
	size_t room;
};

struct sheet {
	struct arena arena;
	const char *rows, *key;
	bool is_map;
	int depth; /* of the rows; 0: not there yet */
	size_t mark;
	const char **columns;
	size_t count, room;
	struct row *first, **end, *now;
};

/* "sees>machines[]>state" is "sees.machines.state". */
static const char *column_name(struct arena *a, const char *path)
{
	char *name = arena_alloc(a, strlen(path) + 1, 1), *end = name;

	for (; *path; path++) {
		if (*path == '>')
			*end++ = '.';
		else if (strncmp(path, "[]", 2) != 0)
			*end++ = *path;
		else
			path++;
	}
	return name;
}

static size_t column_of(struct sheet *s, const char *path)
{
	const char *name = column_name(&s->arena, path);
	size_t i = 0;

	while (i < s->count && strcmp(s->columns[i], name) != 0)
		i++;
	if (i < s->count)
		return i;
	s->columns = arena_grow(&s->arena, s->columns, s->count, &s->room, sizeof *s->columns);
	s->columns[s->count++] = name;
	return i;
}

static struct sheet_cell *cell_of(struct sheet *s, size_t column)
{
	struct row *r = s->now;

	if (column >= r->room) {
		size_t room = s->room;
		struct sheet_cell *grown = arena_array(&s->arena, struct sheet_cell, room);
		if (r->room)
			memcpy(grown, r->cells, r->room * sizeof *grown);
		r->cells = grown;
		r->room = room;
	}
	return &r->cells[column];
}

static void put_value(struct sheet *s, const char *path, const char *text, size_t len)
{
	struct sheet_cell *c = cell_of(s, column_of(s, path));

	if (c->is_set)
		buf_text(&c->text, "; ");
	buf_append(&c->text, text, len);
	c->is_set = true;
}

static void begin_row(struct sheet *s, const struct json_event *event)
{
	s->now = arena_new(&s->arena, struct row);
	*s->end = s->now;
	s->end = &s->now->next;
	s->mark = strlen(event->path);
	if (s->is_map && s->key) {
		const char *name = event->path + strlen(s->rows) + (*s->rows ? 1 : 0);
		put_value(s, s->key, name, strlen(name));
	}
}

static bool on_event(void *user, const struct json_event *event, struct error *e)
{
	struct sheet *s = user;

	(void)e;
	if (!s->depth && event->type == JSON_OPEN && !strcmp(event->path, s->rows)) {
		s->depth = event->depth + 1;
		s->is_map = !event->is_array;
		return true;
	}
	if (!s->depth || (event->type == JSON_CLOSE && event->depth > s->depth))
		return true;
	if (event->type == JSON_CLOSE) {
		s->now = NULL;
		s->depth = event->depth < s->depth ? -1 : s->depth;
		return true;
	}
	if (event->depth == s->depth && event->type == JSON_OPEN && !event->is_array)
		begin_row(s, event);
	else if (s->now && event->type == JSON_NULL)
		column_of(s, event->path + s->mark + 1);
	else if (s->now && event->type != JSON_OPEN)
		put_value(s, event->path + s->mark + 1, event->text, event->len);
	return true;
}

void csv_write_cell(const char *text, struct buf *out)
{
	if (!text[strcspn(text, ",\"\r\n")]) {
		buf_text(out, text);
		return;
	}
	buf_text(out, "\"");
	for (; *text; text++) {
		if (*text == '"')
			buf_text(out, "\"");
		buf_append(out, text, 1);
	}
	buf_text(out, "\"");
}

static void write_sheet(struct sheet *s, struct buf *out)
{
	for (size_t i = 0; i < s->count; i++) {
		buf_text(out, i ? "," : "");
		csv_write_cell(s->columns[i], out);
	}
	buf_text(out, s->count ? "\n" : "");
	for (struct row *r = s->first; r; r = r->next) {
		for (size_t i = 0; i < s->count; i++) {
			buf_text(out, i ? "," : "");
			if (i < r->room && r->cells[i].text.text)
				csv_write_cell(r->cells[i].text.text, out);
		}
		buf_text(out, "\n");
	}
}

static void release_cells(struct sheet *s)
{
	for (struct row *r = s->first; r; r = r->next)
		for (size_t i = 0; i < r->room; i++)
			buf_release(&r->cells[i].text);
}

bool csv_write_json(const struct buf *json, const char *rows, const char *key, struct buf *out, struct error *e)
{
	struct sheet s = { .rows = rows ? rows : "", .key = key };
	s.end = &s.first;
	struct json *j = json_open("answer", on_event, &s);
	bool ok = (rows || json_feed(j, "[", 1, e)) && json_feed(j, json->text, json->len, e) &&
		  (rows || json_feed(j, "]", 1, e)) && json_finish(j, e);

	json_close(j);
	if (ok)
		write_sheet(&s, out);
	release_cells(&s);
	arena_release(&s.arena);
	return ok;
}
