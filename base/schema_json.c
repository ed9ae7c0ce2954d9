#include "base/json_write.h"
#include "base/quantity.h"
#include "base/schema_reference.h"

#include <string.h>

static void write_table(const struct schema_table *t, int depth, struct buf *out);

static void line(int depth, struct buf *out)
{
	json_write_comma(out);
	buf_text(out, "\n");
	for (int i = 0; i < depth; i++)
		buf_text(out, "  ");
}

static void member(const char *key, const char *text, int depth, struct buf *out)
{
	line(depth, out);
	json_write_text(key, out);
	buf_text(out, ": ");
	json_write_text(text, out);
}

/* `json` is JSON already. */
static void raw_member(const char *key, const char *json, int depth, struct buf *out)
{
	line(depth, out);
	json_write_text(key, out);
	buf_printf(out, ": %s", json);
}

static void fixed_member(const char *key, int64_t value, int digits, int depth, struct buf *out)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	fixed_format(value, digits, &text);
	raw_member(key, text.text, depth, out);
}

static void write_choices(const struct schema_row *row, int depth, struct buf *out)
{
	line(depth, out);
	buf_text(out, "\"enum\": [");
	for (size_t i = 0; row->choices[i]; i++) {
		json_write_comma(out);
		json_write_text(row->choices[i], out);
	}
	buf_text(out, "]");
}

static void write_bounds(const struct schema_row *row, int digits, int depth, struct buf *out)
{
	if (!row->min && !row->max)
		return;
	fixed_member("minimum", row->min, digits, depth, out);
	fixed_member("maximum", row->max, digits, depth, out);
}

static void write_pattern(const struct schema_row *row, const char *pattern, int depth, struct buf *out)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	member("type", "string", depth, out);
	buf_printf(&text, row->word ? "^(%s|%s)$" : "^(%s%s)$", row->word ? row->word : "", pattern);
	member("pattern", text.text, depth, out);
}

/* A number that may also be written as a text: a word, or with a suffix. */
static void write_number_or_text(const struct schema_row *row, const char *pattern, int depth, struct buf *out)
{
	line(depth, out);
	buf_text(out, "\"anyOf\": [{");
	member("type", "integer", depth + 1, out);
	write_bounds(row, 0, depth + 1, out);
	buf_text(out, "}, {");
	if (row->type == SCHEMA_INTEGER)
		member("const", row->word, depth + 1, out);
	else
		write_pattern(row, pattern, depth + 1, out);
	buf_text(out, "}]");
	raw_member("x-kubernetes-int-or-string", "true", depth, out);
}

static void write_labels(int depth, struct buf *out)
{
	member("type", "object", depth, out);
	raw_member("additionalProperties", "{\"type\": \"string\"}", depth, out);
}

static void write_list(const struct schema_row *row, int depth, struct buf *out)
{
	member("type", "array", depth, out);
	if (row->min)
		fixed_member("minItems", row->min, 0, depth, out);
	fixed_member("maxItems", row->max ? row->max : SCHEMA_ITEMS_MAX, 0, depth, out);
	line(depth, out);
	buf_text(out, "\"items\": {");
	write_table(row->table, depth + 1, out);
	buf_text(out, "}");
}

static void write_text_type(const struct schema_row *row, int depth, struct buf *out)
{
	static const struct {
		enum schema_type type;
		const char *pattern;
	} patterns[] = {
		{ SCHEMA_NAME, "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?" },
		{ SCHEMA_URL, "https?://[^/ ][^ ]*" },
		{ SCHEMA_PATH, "/[^ ]*" },
		{ SCHEMA_ZONE, "[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*" },
		{ SCHEMA_METRIC, "[a-zA-Z_:][a-zA-Z0-9_:]*([{][a-zA-Z_][a-zA-Z0-9_]*=\\\"[-a-zA-Z0-9_:./ ]+\\\"[}])?" },
		{ SCHEMA_CRON, " *[0-9,]+ +[0-9,]+ +[*] +[*] +[^ ]+ *" },
		{ SCHEMA_SHARE, "[0-9]+([.][0-9]+)?%" },
		{ SCHEMA_DURATION, "([0-9]+([.][0-9]+)?(us|ms|s|m|h|d|w))+" },
		{ SCHEMA_FINE, "([0-9]+([.][0-9]+)?(us|ms|s|m|h|d|w))+" },
		{ SCHEMA_TIME, "([01]?[0-9]|2[0-3]):[0-5][0-9]|24:00" },
	};

	for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
		if (patterns[i].type == row->type) {
			write_pattern(row, patterns[i].pattern, depth, out);
			return;
		}
	member("type", "string", depth, out);
	raw_member("minLength", "1", depth, out);
	fixed_member("maxLength", row->max ? row->max : 253, 0, depth, out);
}

static void write_type(const struct schema_row *row, int depth, struct buf *out)
{
	switch (row->type) {
	case SCHEMA_INTEGER:
		if (row->word) {
			write_number_or_text(row, NULL, depth, out);
			break;
		}
		member("type", "integer", depth, out);
		write_bounds(row, 0, depth, out);
		break;
	case SCHEMA_QUANTITY:
		write_number_or_text(row, "[0-9]+([.][0-9]+)?([kMGT]|[KMGT]i)?", depth, out);
		break;
	case SCHEMA_NUMBER:
	case SCHEMA_DOLLARS:
		member("type", "number", depth, out);
		write_bounds(row, 6, depth, out);
		break;
	case SCHEMA_DAYS:
		line(depth, out);
		buf_text(out, "\"anyOf\": [{\"type\": \"string\"}, {\"type\": \"array\", \"items\": {\"type\": "
			      "\"string\"}}]");
		break;
	case SCHEMA_CHOICE:
		member("type", "string", depth, out);
		write_choices(row, depth, out);
		break;
	case SCHEMA_CHOICES:
		member("type", "array", depth, out);
		line(depth, out);
		buf_text(out, "\"items\": {");
		write_choices(row, depth + 1, out);
		buf_text(out, "}");
		break;
	case SCHEMA_LABELS:
		write_labels(depth, out);
		break;
	case SCHEMA_MAP:
		write_table(row->table, depth, out);
		break;
	case SCHEMA_LIST:
		write_list(row, depth, out);
		break;
	default:
		write_text_type(row, depth, out);
		break;
	}
}

static void write_default(const struct schema_row *row, int depth, struct buf *out)
{
	bool is_bare = row->type == SCHEMA_INTEGER || row->type == SCHEMA_NUMBER || row->type == SCHEMA_DOLLARS;

	/* A default that depends on other keys is told in words only. */
	if (!row->fallback || !*row->fallback || row->shown)
		return;
	if (is_bare && !(row->word && !strcmp(row->word, row->fallback)))
		raw_member("default", row->fallback, depth, out);
	else
		member("default", row->fallback, depth, out);
}

static void write_required(const struct schema_table *t, int depth, struct buf *out)
{
	CLEANUP(buf_release) struct buf names = { 0 };

	buf_text(&names, "[");
	for (size_t i = 0; i < t->count; i++)
		if (t->rows[i].is_required) {
			json_write_comma(&names);
			json_write_text(t->rows[i].key, &names);
		}
	buf_text(&names, "]");
	if (names.len > 2)
		raw_member("required", names.text, depth, out);
}

static void write_table(const struct schema_table *t, int depth, struct buf *out)
{
	member("type", "object", depth, out);
	raw_member("additionalProperties", "false", depth, out);
	write_required(t, depth, out);
	line(depth, out);
	buf_text(out, "\"properties\": {");
	for (size_t i = 0; i < t->count; i++) {
		const struct schema_row *row = &t->rows[i];
		line(depth + 1, out);
		json_write_text(row->key, out);
		buf_text(out, ": {");
		member("description", row->help, depth + 2, out);
		write_default(row, depth + 2, out);
		write_type(row, depth + 2, out);
		buf_text(out, "}");
	}
	buf_text(out, "}");
}

void schema_write_json(const struct schema_table *t, const char *id, const char *title, struct buf *out)
{
	buf_text(out, "{");
	member("$schema", "https://json-schema.org/draft/2020-12/schema", 1, out);
	member("$id", id, 1, out);
	member("title", title, 1, out);
	write_table(t, 1, out);
	buf_text(out, "\n}\n");
}
