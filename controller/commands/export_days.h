/*
 * A folder of days: FOLDER/day=2024-05-10/TABLE.csv, and beside them
 * day.json, which says whether the day is over. A day appears whole: it is
 * written under another name and renamed.
 */
#pragma once
#include "controller/commands/export_tables.h"

struct export_format {
	bool is_json, is_compressed;
};

enum export_state {
	EXPORT_WRITTEN,
	EXPORT_THERE,	/* was there, over; left alone */
	EXPORT_THINNED, /* was there, and the history has less of it now; left alone */
	EXPORT_STATES
};

struct export_day {
	int64_t day;  /* since 1970-01-01, UTC */
	bool is_over; /* the history goes on after it */
	enum export_state state;
	int64_t rows[EXPORT_TABLES]; /* of what was written */
};

/* "2024-05-10" */
void export_day_name(int64_t day, struct buf *out);
const char *export_state_name(enum export_state state);
/* Writes d->day unless it is there; `replaces`: in any case. */
bool export_day_write(struct question *q, const char *folder, const struct export_format *format, bool replaces,
		      struct export_day *d, struct error *e) MUST_USE;
/* FOLDER/schema.json: tables, columns, types, meaning. */
bool export_schema_write(const char *folder, struct error *e) MUST_USE;
void export_write_schema(struct buf *out);
/* "decisions.csv.gz" */
void export_file_name(enum export_table table, const struct export_format *format, struct buf *out);
