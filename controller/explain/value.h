/* Sentences with holes that fields of a record fill. */
#pragma once
#include "base/buf.h"
#include "controller/policy/plan.h"

/* A record, for what is common to all. */
struct record_view {
	const struct record_info *info;
	const int64_t *values;
	millis utc_offset;
};

/* NULL when the record has no such field. */
const struct field_info *record_find(const struct record_view *r, const char *name, size_t len, int64_t *value);

/*
 * Copies the text, with {field} as its value and unit, {field|one|many} as
 * value and the word for it, {field:%} as per cent of a "milli" field.
 */
void record_fill(const struct record_view *r, const char *text, struct buf *out);
