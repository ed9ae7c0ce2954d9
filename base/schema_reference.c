#include "base/schema_reference.h"

#include <string.h>

/* A bar would end the cell. */
static void cell(const char *text, struct buf *out)
{
	for (; *text; text++) {
		if (*text == '|')
			buf_text(out, "\\");
		buf_append(out, text, 1);
	}
}

static void write_default(const struct schema_row *row, struct buf *out)
{
	if (row->is_required)
		buf_text(out, "required");
	else if (row->shown)
		cell(row->shown, out);
	else if (row->fallback && *row->fallback)
		buf_printf(out, "`%s`", row->fallback);
}

static void write_row(const struct schema_row *row, struct buf *out)
{
	CLEANUP(buf_release) struct buf allowed = { 0 };

	schema_allowed(row, &allowed);
	buf_printf(out, "| `%s` | ", row->key);
	if (row->type == SCHEMA_MAP)
		buf_text(out, "a map, see below");
	else
		cell(allowed.text, out);
	buf_text(out, " | ");
	write_default(row, out);
	buf_text(out, " | ");
	cell(row->help, out);
	buf_text(out, " |\n");
}

void schema_write_markdown(const struct schema_table *t, const char *path, struct buf *out)
{
	if (*path)
		buf_printf(out, "\n## %s\n\n", path);
	buf_text(out, "| key | allowed | default | meaning |\n|---|---|---|---|\n");
	for (size_t i = 0; i < t->count; i++)
		write_row(&t->rows[i], out);
	for (size_t i = 0; i < t->count; i++) {
		const struct schema_row *row = &t->rows[i];
		CLEANUP(buf_release) struct buf below = { 0 };
		if (!row->table)
			continue;
		buf_printf(&below, *path ? "%s.%s%s" : "%s%s%s", path, row->key, row->type == SCHEMA_LIST ? "[]" : "");
		schema_write_markdown(row->table, below.text, out);
	}
}
