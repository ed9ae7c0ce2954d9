/* What the tables of base/schema.h say, for people (Markdown) and for editors and API servers (JSON Schema 2020-12). */
#pragma once
#include "base/schema.h"

/* A section per map and list, a row per key. `path` is what the table's keys stand under, "" for the document. */
void schema_write_markdown(const struct schema_table *t, const char *path, struct buf *out);
/* One JSON object. `id` names the schema, `title` the thing described. */
void schema_write_json(const struct schema_table *t, const char *id, const char *title, struct buf *out);
