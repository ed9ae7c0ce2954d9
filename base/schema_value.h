/* One scalar or short list of a row, between its text and its place in the record. A part of base/schema.h. */
#pragma once
#include "base/schema.h"

/* Stores the value of `node`, or leaves a finding and returns false. Not for maps and lists of records. */
bool schema_value_read(const struct schema_row *row, const struct yaml_node *node, void *record, struct arena *a,
		       struct findings *f);
