#include "base/table.h"
#include "base/arena.h"
#include "base/csv_write.h"
#include "base/human.h"
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
	if (t->count == t->room) {
		size_t room = t->room ? 2 * t->room : 8 * t->column_count;
		struct cell *grown = arena_array(&t->texts, struct cell, room);

		if (t->count)
			memcpy(grown, t->cells, t->count * sizeof *grown);
		t->cells = grown;
		t->room = room;
	}
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
	putc('"', out);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			fprintf(out, "\\u%04x", c);
		else
			putc(c, out);
	}
	putc('"', out);
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

/* What print_json writes is JSON, so that nothing can go wrong here. */
static void print_as_yaml(const char *json, size_t len, FILE *out)
{
	CLEANUP(buf_release) struct buf yaml = { 0 };
	struct error e;
	bool ok = yaml_write_json(json, len, &yaml, &e);

	assert(ok);
	(void)ok;
	fputs(yaml.text, out);
}

static void print_yaml(const struct table *t, FILE *out)
{
	char *json = NULL;
	size_t len = 0;
	FILE *text = open_memstream(&json, &len);

	if (!text)
		abort();
	print_json(t, text);
	fclose(text);
	print_as_yaml(json, len, out);
	free(json);
}

/* A document a row. */
static void print_yaml_row(const struct table *t, size_t row, FILE *out)
{
	char *json = NULL;
	size_t len = 0;
	FILE *text = open_memstream(&json, &len);

	if (!text)
		abort();
	print_json_row(t, row, text);
	fclose(text);
	fputs("---\n", out);
	print_as_yaml(json, len, out);
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
		print_yaml(t, out);
		break;
	}
}

static void print_documents(const struct table *t, enum table_format format, FILE *out)
{
	for (size_t row = 0; row < table_rows(t); row++) {
		if (format == TABLE_YAML) {
			print_yaml_row(t, row, out);
			continue;
		}
		print_json_row(t, row, out);
		putc('\n', out);
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
	case TABLE_YAML:
		print_documents(t, format, out);
		break;
	}
}
