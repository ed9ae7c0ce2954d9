/*
 * Rows with the same columns, printed for people (aligned, headers in
 * upper case, as kubectl does) or for programs (CSV, JSON, YAML) from the same
 * cells. Cells are added from left to right; a full row starts the next.
 */
#pragma once
#include "base/buf.h"
#include "base/terminal.h"

#include <stddef.h>

enum table_format { TABLE_PLAIN, TABLE_WIDE, TABLE_CSV, TABLE_JSON, TABLE_YAML };

struct table_column {
	const char *name;  /* key in CSV and JSON, with its unit: "wait_p50_s" */
	const char *title; /* header for people; NULL: the name in upper case */
	bool is_right;	   /* numbers stand right */
	bool is_wide;	   /* not with TABLE_PLAIN */
};

struct table;

struct table *table_new(const struct table_column *columns, size_t count); /* keeps the pointer */
void table_free(struct table *t);					   /* takes NULL */

void table_text(struct table *t, const char *text);
void table_count(struct table *t, int64_t n);
void table_decimal(struct table *t, double value, int places);
/* `shown` for people, `raw` for programs: a number in JSON's notation, or true or false. */
void table_value(struct table *t, const char *shown, const char *raw);
/* For people "6m20s", "0.74 %", "-$0.48"; for programs seconds, millionths, dollars: as the names of their columns say.
 */
void table_duration(struct table *t, millis d);
void table_share(struct table *t, double share);
void table_dollars(struct table *t, double dollars);
void table_shown(struct table *t, const char *shown); /* for people; null for programs */
/* Money of what has a price, else so many GPU hours: for people "$1.20" or "12.3 h"; programs get null for those, a
 * column of their own has them. */
void table_spent(struct table *t, double amount, bool is_unpriced);
void table_absent(struct table *t); /* "-", empty, null */
/* Of the cell added last; on terminals with colour only. */
void table_style(struct table *t, enum style style);

size_t table_rows(const struct table *t);
void table_print(const struct table *t, enum table_format format, FILE *out);
/* "table", "wide", "csv", "json", "yaml"; anything else is TABLE_PLAIN. */
enum table_format table_format_of(const char *name);
/* CSV, JSON and YAML: every column, raw values, times in RFC 3339 and UTC. */
bool table_is_for_programs(enum table_format format);

enum { TABLE_COLUMNS_MAX = 48 };

/* Rows that come in portions. Zeroed before the first. */
struct table_stream {
	bool is_begun;
	int widths[TABLE_COLUMNS_MAX];
};

/* One portion, in a table of its own with the same columns: the header comes once and columns never get narrower; as
 * JSON one object a line, as YAML one document a row. */
void table_print_portion(const struct table *t, enum table_format format, struct table_stream *s, FILE *out);

/*
 * The rows that JSON text holds as CSV: one line for each member of one list
 * or map, a column for each value in it. Names of columns are the keys on the
 * way, joined by dots; values of a list within a row stand in one cell, "; "
 * between them.
 */
/* `rows` is the path to the list or map, as json.h has paths; "" is the document itself, NULL makes it one row. Of a
 * map the key is the first column, named `key`; NULL for a list. Columns stand in the order in which they are met
 * first; null is empty. ERROR_INVALID for what is no JSON. */
bool csv_write_json(const struct buf *json, const char *rows, const char *key, struct buf *out,
		    struct error *e) MUST_USE;
/* A cell, in quotes where it must be. */
void csv_write_cell(const char *text, struct buf *out);
