/* Rows as CSV (RFC 4180, with a header) or as JSON lines. */
#pragma once
#include "base/file.h"
#include "controller/commands/export_tables.h"

struct export_sink {
	const struct export_column *columns;
	size_t count;
	bool is_json;
	struct output *output; /* borrowed */

	/* private */
	size_t at; /* the column that comes next */
	struct buf line;
	int64_t rows;
};

/* Writes the header, where there is one. */
void export_begin(struct export_sink *s);
void export_end(struct export_sink *s);
