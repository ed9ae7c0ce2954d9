#include "base/schema_openapi.h"

#include "base/json_write.h"
#include "base/metric_name.h"
#include "base/quantity.h"

#include <string.h>

/* Where the writer stands. */
struct place {
	const struct openapi_setup *setup;
	const struct schema_table *table;
	bool is_silent; /* no defaults from here on */
	int indent;
	struct buf *out;
};

/* Of texts with a grammar of their own; what the server checks rules on must have an end. */
enum { VALUE_LONGEST = 64, DECIMAL_DIGITS = 6, DECIMAL_ONE = 1000000 };

/* Each unit once, the largest first. What it all comes to may not be empty; a minimum length sees to that. */
#define UNIT(name)   "([0-9]+([.][0-9]+)?" name ")?"
#define CRON_MINUTES " *[0-5]?[0-9](,[0-5]?[0-9])*"
#define CRON_HOURS   "([01]?[0-9]|2[0-3])(,([01]?[0-9]|2[0-3]))*"
static const char duration_form[] = UNIT("w") UNIT("d") UNIT("h") UNIT("m") UNIT("s") UNIT("ms") UNIT("us");

static void write_table(const struct place *p);

static void key(const struct place *p, const char *name)
{
	buf_printf(p->out, "%*s%s:", p->indent, "", name);
}

static void text_line(const struct place *p, const char *name, const char *text)
{
	key(p, name);
	buf_text(p->out, " ");
	json_write_text(text, p->out);
	buf_text(p->out, "\n");
}

static void raw_line(const struct place *p, const char *name, const char *text)
{
	key(p, name);
	buf_printf(p->out, *text ? " %s\n" : "%s\n", text);
}

static void number_line(const struct place *p, const char *name, int64_t value, int digits)
{
	key(p, name);
	buf_text(p->out, value < 0 ? " -" : " ");
	fixed_format(value < 0 ? -value : value, digits, p->out);
	buf_text(p->out, "\n");
}

static void rule(const struct place *p, const char *text, const char *message)
{
	buf_printf(p->out, "%*s- rule: ", p->indent, "");
	json_write_text(text, p->out);
	buf_printf(p->out, "\n%*s  message: ", p->indent, "");
	json_write_text(message, p->out);
	buf_text(p->out, "\n");
}

/* "must be a duration from 1s to 5m, like 5s" */
static void value_rule(const struct place *p, const struct schema_row *row, const char *text)
{
	CLEANUP(buf_release) struct buf message = { 0 };

	buf_text(&message, "must be ");
	schema_allowed(row, &message);
	key(p, "x-kubernetes-validations");
	buf_text(p->out, "\n");
	rule(p, text, message.text);
}

static void write_bounds(const struct place *p, const struct schema_row *row, int digits)
{
	if (!row->min && !row->max)
		return;
	number_line(p, "minimum", row->min, digits);
	number_line(p, "maximum", row->max, digits);
}

static void write_pattern(const struct place *p, const struct schema_row *row, const char *form)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	buf_printf(&text, row->word ? "^(%s|%s)$" : "^(%s%s)$", row->word ? row->word : "", form);
	text_line(p, "pattern", text.text);
}

static void write_duration_rule(const struct place *p, const struct schema_row *row, bool is_fine)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	int64_t scale = is_fine ? 1 : 1000, least = row->min * scale, most = row->max * scale;

	if (!row->min && !row->max)
		return;
	if (row->word)
		buf_printf(&text, "self == '%s' || ", row->word);
	/* Days exceed a bound of less than a day. */
	if (most < DAY * 1000)
		buf_printf(&text,
			   "(!self.matches('[dw]') && duration(self) >= duration('%lldus') && duration(self) <= "
			   "duration('%lldus'))",
			   (long long)least, (long long)most);
	else
		buf_printf(&text, "[%s].all(v, v >= %lld.0 && v <= %lld.0)", OPENAPI_MILLIS("self"),
			   (long long)row->min, (long long)row->max);
	value_rule(p, row, text.text);
}

static void write_duration(const struct place *p, const struct schema_row *row)
{
	raw_line(p, "type", "string");
	number_line(p, "minLength", 1, 0);
	number_line(p, "maxLength", VALUE_LONGEST, 0);
	write_pattern(p, row, duration_form);
	write_duration_rule(p, row, row->type == SCHEMA_FINE);
}

static void write_share(const struct place *p, const struct schema_row *row)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	raw_line(p, "type", "string");
	number_line(p, "maxLength", VALUE_LONGEST, 0);
	write_pattern(p, row, "[0-9]+([.][0-9]{1,4})?%");
	buf_text(&text, "double(self.replace('%', '')) >= double('");
	fixed_format(row->min, 4, &text);
	buf_text(&text, "') && double(self.replace('%', '')) <= double('");
	fixed_format(row->max, 4, &text);
	buf_text(&text, "')");
	value_rule(p, row, text.text);
}

static void write_quantity(const struct place *p, const struct schema_row *row)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	raw_line(p, "x-kubernetes-int-or-string", "true");
	key(p, "anyOf");
	buf_printf(p->out, "\n%*s- type: integer\n%*s- type: string\n", p->indent, "", p->indent, "");
	number_line(p, "maxLength", VALUE_LONGEST, 0);
	write_pattern(p, row, "[0-9]+([.][0-9]+)?([kMGT]|[KMGT]i)?");
	write_bounds(p, row, 0);
	buf_printf(&text,
		   "type(self) == int || (quantity(string(self)).isInteger() && "
		   "quantity(string(self)).compareTo(quantity('%lld')) >= 0 && "
		   "quantity(string(self)).compareTo(quantity('%lld')) <= 0)",
		   (long long)row->min, (long long)row->max);
	value_rule(p, row, text.text);
}

/* The server cuts a bound to a whole number where the value is one: 0 would pass a minimum of 0.01. */
static void write_decimal(const struct place *p, const struct schema_row *row)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	raw_line(p, "type", "number");
	write_bounds(p, row, DECIMAL_DIGITS);
	if (row->min % DECIMAL_ONE == 0)
		return;
	buf_text(&text, "self >= ");
	fixed_format(row->min, DECIMAL_DIGITS, &text);
	value_rule(p, row, text.text);
}

static void write_integer(const struct place *p, const struct schema_row *row)
{
	if (!row->word) {
		raw_line(p, "type", "integer");
		raw_line(p, "format", "int64");
		write_bounds(p, row, 0);
		return;
	}
	raw_line(p, "x-kubernetes-int-or-string", "true");
	key(p, "anyOf");
	buf_printf(p->out, "\n%*s- type: integer\n%*s- type: string\n", p->indent, "", p->indent, "");
	number_line(p, "maxLength", VALUE_LONGEST, 0);
	write_pattern(p, row, "");
	write_bounds(p, row, 0);
}

static void write_choices(const struct place *p, const struct schema_row *row)
{
	key(p, "enum");
	buf_text(p->out, " [");
	for (size_t i = 0; row->choices[i]; i++) {
		buf_text(p->out, i ? ", " : "");
		json_write_text(row->choices[i], p->out);
	}
	buf_text(p->out, "]\n");
}

static void write_text(const struct place *p, const struct schema_row *row)
{
	static const struct {
		enum schema_type type;
		const char *form;
		int longest;
	} forms[] = {
		{ SCHEMA_NAME, "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", 63 },
		{ SCHEMA_URL, "https?://[^/ \\t\\n\\\"<>][^ \\t\\n\\\"<>]*", 2048 },
		{ SCHEMA_PATH, "/[^ \\t\\n]*", 2048 },
		{ SCHEMA_ZONE, "[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*", VALUE_LONGEST },
		{ SCHEMA_METRIC, "[a-zA-Z_:][a-zA-Z0-9_:]*([{][a-zA-Z_][a-zA-Z0-9_]*=\\\"[-a-zA-Z0-9_:./ ]+\\\"[}])?",
		  METRIC_NAME_LONGEST },
		{ SCHEMA_CRON, CRON_MINUTES " +" CRON_HOURS " +[*] +[*] +[^ ]+ *", 512 },
		{ SCHEMA_TIME, "([01]?[0-9]|2[0-3]):[0-5][0-9]|24:00", VALUE_LONGEST },
		{ SCHEMA_TEXT, "[^\\n\\r]+", 253 },
	};

	raw_line(p, "type", "string");
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		if (forms[i].type == row->type) {
			bool has_own = row->type == SCHEMA_TEXT && row->max;
			number_line(p, "maxLength", has_own ? row->max : forms[i].longest, 0);
			write_pattern(p, row, forms[i].form);
		}
}

static void write_list(const struct place *p, const struct schema_row *row)
{
	struct place items = *p;

	raw_line(p, "type", "array");
	raw_line(p, "x-kubernetes-list-type", "atomic");
	if (row->min)
		number_line(p, "minItems", row->min, 0);
	number_line(p, "maxItems", row->max ? row->max : SCHEMA_ITEMS_MAX, 0);
	raw_line(p, "items", "");
	items.indent += 2;
	items.table = row->table;
	write_table(&items);
}

static void write_choice_list(const struct place *p, const struct schema_row *row)
{
	struct place items = *p;

	raw_line(p, "type", "array");
	raw_line(p, "x-kubernetes-list-type", "atomic");
	number_line(p, "maxItems", SCHEMA_ITEMS_MAX, 0);
	raw_line(p, "items", "");
	items.indent += 2;
	raw_line(&items, "type", "string");
	write_choices(&items, row);
}

static void write_labels(const struct place *p)
{
	raw_line(p, "type", "object");
	raw_line(p, "additionalProperties", "");
	buf_printf(p->out, "%*stype: string\n", p->indent + 2, "");
}

/* A text or a list of texts: the server has no type for that. The controller checks lists and says so in the status. */
static void write_days(const struct place *p)
{
	static const char day[] = "(mon(day)?|tue(sday)?|wed(nesday)?|thu(rsday)?|fri(day)?|sat(urday)?|sun(day)?)";
	CLEANUP(buf_release) struct buf form = { 0 };

	buf_printf(&form, "(?i)^ *%s(-%s)? *(, *%s(-%s)? *)*$", day, day, day, day);
	raw_line(p, "x-kubernetes-preserve-unknown-fields", "true");
	text_line(p, "pattern", form.text);
}

static void write_type(const struct place *p, const struct schema_row *row)
{
	struct place inner = *p;

	switch (row->type) {
	case SCHEMA_INTEGER:
		write_integer(p, row);
		break;
	case SCHEMA_QUANTITY:
		write_quantity(p, row);
		break;
	case SCHEMA_NUMBER:
	case SCHEMA_DOLLARS:
		write_decimal(p, row);
		break;
	case SCHEMA_SHARE:
		write_share(p, row);
		break;
	case SCHEMA_DURATION:
	case SCHEMA_FINE:
		write_duration(p, row);
		break;
	case SCHEMA_DAYS:
		write_days(p);
		break;
	case SCHEMA_CHOICE:
		raw_line(p, "type", "string");
		write_choices(p, row);
		break;
	case SCHEMA_CHOICES:
		write_choice_list(p, row);
		break;
	case SCHEMA_LABELS:
		write_labels(p);
		break;
	case SCHEMA_MAP:
		inner.table = row->table;
		write_table(&inner);
		break;
	case SCHEMA_LIST:
		write_list(p, row);
		break;
	default:
		write_text(p, row);
		break;
	}
}

static bool is_filled(const struct place *p, const struct schema_row *row)
{
	for (const char *const *name = p->setup->filled; name && *name; name++)
		if (row->type == SCHEMA_MAP && !strcmp(*name, row->key))
			return true;
	return false;
}

static bool is_silenced(const struct place *p, const char *name)
{
	for (size_t i = 0; i < p->setup->silence_count; i++) {
		const struct openapi_silence *s = &p->setup->silences[i];
		if (!strcmp(s->table, p->table->name) && (name ? s->key && !strcmp(s->key, name) : !s->key))
			return true;
	}
	return false;
}

static void write_default(const struct place *p, const struct schema_row *row)
{
	bool is_bare = row->type == SCHEMA_INTEGER || row->type == SCHEMA_NUMBER || row->type == SCHEMA_DOLLARS;
	bool is_word = row->word && row->fallback && !strcmp(row->word, row->fallback);

	if (is_filled(p, row))
		raw_line(p, "default", "{}");
	/* A default that depends on other keys is told in words only. */
	if (p->is_silent || !row->fallback || !*row->fallback || row->shown || is_silenced(p, row->key))
		return;
	if (is_bare && !is_word)
		raw_line(p, "default", row->fallback);
	else
		text_line(p, "default", row->fallback);
}

static void write_required(const struct place *p)
{
	bool has_any = false;

	for (size_t i = 0; i < p->table->count; i++)
		if (p->table->rows[i].is_required) {
			if (!has_any)
				raw_line(p, "required", "");
			has_any = true;
			buf_printf(p->out, "%*s- %s\n", p->indent, "", p->table->rows[i].key);
		}
}

static void write_rules(const struct place *p)
{
	bool has_any = false;

	for (size_t i = 0; i < p->setup->rule_count; i++) {
		if (strcmp(p->setup->rules[i].table, p->table->name) != 0)
			continue;
		if (!has_any)
			raw_line(p, "x-kubernetes-validations", "");
		has_any = true;
		rule(p, p->setup->rules[i].rule, p->setup->rules[i].message);
	}
}

static void write_table(const struct place *at)
{
	struct place p = *at;

	p.is_silent = p.is_silent || is_silenced(&p, NULL);
	raw_line(&p, "type", "object");
	write_required(&p);
	write_rules(&p);
	raw_line(&p, "properties", "");
	for (size_t i = 0; i < p.table->count; i++) {
		const struct schema_row *row = &p.table->rows[i];
		struct place value = p;

		buf_printf(p.out, "%*s%s:\n", p.indent + 2, "", row->key);
		value.indent += 4;
		text_line(&value, "description", row->help);
		write_default(&value, row);
		write_type(&value, row);
	}
}

void schema_write_openapi(const struct schema_table *t, const struct openapi_setup *setup, int indent, struct buf *out)
{
	const struct place p = { .setup = setup, .table = t, .indent = indent, .out = out };

	write_table(&p);
}
