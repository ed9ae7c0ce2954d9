#include "base/schema.h"

#include "base/quantity.h"

#include <string.h>

static void choices(const struct schema_row *row, struct buf *out)
{
	for (size_t i = 0; row->choices[i]; i++)
		buf_printf(out, i ? ", %s" : "%s", row->choices[i]);
}

static void format_number(const struct schema_row *row, int64_t value, struct buf *out)
{
	switch (row->type) {
	case SCHEMA_NUMBER:
	case SCHEMA_DOLLARS:
		fixed_format(value, 6, out);
		break;
	case SCHEMA_SHARE:
		share_format(value, out);
		break;
	case SCHEMA_DURATION:
		duration_format(value, out);
		break;
	case SCHEMA_FINE:
		duration_format_us(value, out);
		break;
	default:
		buf_printf(out, "%lld", (long long)value);
		break;
	}
}

static void bounds(const struct schema_row *row, const char *noun, const char *example, struct buf *out)
{
	buf_text(out, noun);
	if (row->min || row->max) {
		buf_text(out, " from ");
		format_number(row, row->min, out);
		buf_text(out, " to ");
		format_number(row, row->max, out);
	}
	if (row->example)
		example = row->example;
	if (*example)
		buf_printf(out, ", like %s", example);
	if (row->word)
		buf_printf(out, "; or %s", row->word);
}

static void text_allowed(const struct schema_row *row, struct buf *out)
{
	const char *example = row->example ? row->example : "";

	buf_printf(out, "a text of at most %lld bytes%s%s", (long long)(row->max ? row->max : 253),
		   *example ? ", like " : "", example);
}

void schema_keys(const struct schema_table *t, struct buf *out)
{
	buf_printf(out, "a map of %s: ", t->name);
	for (size_t i = 0; i < t->count; i++)
		buf_printf(out, i ? ", %s" : "%s", t->rows[i].key);
}

static void list_allowed(const struct schema_row *row, struct buf *out)
{
	buf_printf(out, "a list of %lld to %lld %ss", (long long)row->min,
		   (long long)(row->max ? row->max : SCHEMA_ITEMS_MAX), row->table->name);
}

/* Types whose text does not depend on the row. */
static const char *fixed_text(enum schema_type type)
{
	static const struct {
		enum schema_type type;
		const char *text;
	} texts[] = {
		{ SCHEMA_NAME, "a name of lower-case letters, digits and inner dashes, at most 63" },
		{ SCHEMA_URL, "an address that begins with http:// or https://" },
		{ SCHEMA_PATH, "a path that begins with /" },
		{ SCHEMA_ZONE, "an IANA time zone known here, like Europe/Berlin or UTC" },
		{ SCHEMA_METRIC, "the name of a metric, alone or with one label like name{type=\"running\"}" },
		{ SCHEMA_CRON, "minute, hours, *, * and weekdays, like \"0 8 * * mon-fri\"" },
		{ SCHEMA_TIME, "a time of day from \"00:00\" to \"24:00\"" },
		{ SCHEMA_DAYS, "weekdays, like mon-fri or sat,sun" },
		{ SCHEMA_LABELS, "a map of texts, like { app: llama }" },
	};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (texts[i].type == type)
			return texts[i].text;
	return "";
}

void schema_allowed(const struct schema_row *row, struct buf *out)
{
	switch (row->type) {
	case SCHEMA_TEXT:
		text_allowed(row, out);
		break;
	case SCHEMA_INTEGER:
		bounds(row, "a whole number", "", out);
		break;
	case SCHEMA_QUANTITY:
		bounds(row, "a quantity", "3500 or 25k", out);
		break;
	case SCHEMA_NUMBER:
		bounds(row, "a number", "", out);
		break;
	case SCHEMA_DOLLARS:
		bounds(row, "dollars", "0.48", out);
		break;
	case SCHEMA_SHARE:
		bounds(row, "a share", "99%", out);
		break;
	case SCHEMA_DURATION:
	case SCHEMA_FINE:
		bounds(row, "a duration", "250ms, 30s or 1h30m", out);
		break;
	case SCHEMA_CHOICES:
		buf_text(out, "a list of ");
		choices(row, out);
		break;
	case SCHEMA_CHOICE:
		choices(row, out);
		break;
	case SCHEMA_MAP:
		schema_keys(row->table, out);
		break;
	case SCHEMA_LIST:
		list_allowed(row, out);
		break;
	default:
		buf_text(out, fixed_text(row->type));
		break;
	}
}

static void format_bits(const struct schema_row *row, int64_t bits, struct buf *out)
{
	bool is_first = true;

	for (size_t i = 0; row->choices[i]; i++)
		if (bits >> i & 1) {
			buf_printf(out, is_first ? "%s" : ",%s", row->choices[i]);
			is_first = false;
		}
}

static void format_days(int64_t days, struct buf *out)
{
	static const char *const names[] = { "mon", "tue", "wed", "thu", "fri", "sat", "sun" };
	bool is_first = true;

	for (int i = 0; i < 7; i++)
		if (days >> i & 1) {
			buf_printf(out, is_first ? "%s" : ",%s", names[i]);
			is_first = false;
		}
}

void schema_format(const struct schema_row *row, const void *record, struct buf *out)
{
	const void *slot = (const char *)record + row->offset;
	int64_t value;

	switch (row->type) {
	case SCHEMA_TEXT:
	case SCHEMA_NAME:
	case SCHEMA_URL:
	case SCHEMA_PATH:
	case SCHEMA_ZONE:
	case SCHEMA_CRON:
	case SCHEMA_METRIC:
		buf_text(out, *(const char *const *)slot ? *(const char *const *)slot : "");
		return;
	case SCHEMA_LABELS:
	case SCHEMA_MAP:
	case SCHEMA_LIST:
		return;
	default:
		break;
	}
	memcpy(&value, slot, sizeof value);
	if (row->word && value == row->word_value)
		buf_text(out, row->word);
	else if (row->type == SCHEMA_CHOICE)
		buf_text(out, row->choices[value]);
	else if (row->type == SCHEMA_CHOICES)
		format_bits(row, value, out);
	else if (row->type == SCHEMA_DAYS)
		format_days(value, out);
	else if (row->type == SCHEMA_TIME)
		buf_printf(out, "%02lld:%02lld", (long long)(value / 60), (long long)(value % 60));
	else
		format_number(row, value, out);
}
