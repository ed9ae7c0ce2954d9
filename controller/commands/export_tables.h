/*
 * A history as flat tables for other programs: names and types of columns
 * that stay, one row a thing. The lists here and the records of the policy
 * are all that there is to a table; writers know nothing of what is in them.
 *
 * Numbers are whole, with the unit in the name: _milli thousandths, _ppm
 * parts per million, _ms and _us, _micro millionths of a dollar.
 */
#pragma once
#include "base/arena.h"
#include "controller/commands/question.h"

enum export_type { EXPORT_TEXT, EXPORT_INTEGER, EXPORT_TIME };

struct export_column {
	const char *name;
	enum export_type type;
	const char *help;
};

enum export_table { EXPORT_DECISIONS, EXPORT_GROUPS, EXPORT_COSTS, EXPORT_LAUNCHES, EXPORT_TABLES };

/* Times of rows, [from, to): when a decision was made, an hour began, a call was asked for. */
struct export_span {
	millis from, to;
};

const char *export_table_name(enum export_table table); /* "decisions" */
const char *export_table_help(enum export_table table);
const char *export_type_name(enum export_type type); /* "text", "bigint", "timestamp" */
/* The columns in order, in the arena. */
const struct export_column *export_columns(enum export_table table, struct arena *a, size_t *count);

/* Takes the values of a row from left to right. */
struct export_sink;
void export_text(struct export_sink *s, const char *text); /* NULL and "": not there */
void export_integer(struct export_sink *s, int64_t value); /* ABSENT: not there */
void export_time(struct export_sink *s, millis at);	   /* 0 and ABSENT: not there */

/* Every row of the time into the sink, in order of time. */
bool export_rows(struct question *q, enum export_table table, const struct export_span *span, struct export_sink *sink,
		 struct error *e) MUST_USE;
