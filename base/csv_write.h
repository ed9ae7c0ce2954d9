/*
 * The rows that JSON text holds as CSV: one line for each member of one list
 * or map, a column for each value in it. Names of columns are the keys on the
 * way, joined by dots; values of a list within a row stand in one cell, "; "
 * between them.
 */
#pragma once
#include "base/buf.h"

/* `rows` is the path to the list or map, as json.h has paths; "" is the document itself, NULL makes it one row. Of a
 * map the key is the first column, named `key`; NULL for a list. Columns stand in the order in which they are met
 * first; null is empty. ERROR_INVALID for what is no JSON. */
bool csv_write_json(const struct buf *json, const char *rows, const char *key, struct buf *out,
		    struct error *e) MUST_USE;
/* A cell, in quotes where it must be. */
void csv_write_cell(const char *text, struct buf *out);
