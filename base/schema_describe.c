#include "base/schema_describe.h"

#include "base/json.h"
#include "base/quantity.h"
#include "base/text.h"

#include <string.h>

/* Where the writer of schemas stands, and in which dialect: JSON Schema in JSON, or OpenAPI in YAML. */
struct place {
	bool is_openapi;
	const struct openapi_setup *setup;
	const struct schema_table *table;
	bool is_silent; /* no defaults from here on */
	int indent;
	struct buf *out;
};

/* Of texts with a grammar of their own; what the server checks rules on must have an end. */
enum { VALUE_LONGEST = 64, DECIMAL_DIGITS = 6, DECIMAL_ONE = 1000000 };

/* OpenAPI has each unit once, the largest first. What it all comes to may not be empty; a minimum length sees to that.
 */
#define DURATION     "([0-9]+([.][0-9]+)?(us|ms|s|m|h|d|w))+"
#define UNIT(name)   "([0-9]+([.][0-9]+)?" name ")?"
#define UNITS	     UNIT("w") UNIT("d") UNIT("h") UNIT("m") UNIT("s") UNIT("ms") UNIT("us")
#define CRON_MINUTES " *[0-5]?[0-9](,[0-5]?[0-9])*"
#define CRON_HOURS   "([01]?[0-9]|2[0-3])(,([01]?[0-9]|2[0-3]))*"
#define QUANTITY     "[0-9]+([.][0-9]+)?([kMGT]|[KMGT]i)?"

struct form {
	enum schema_type type;
	const char *pattern, *openapi; /* openapi NULL: the same */
	int longest;
};

static const struct form forms[] = {
	{ SCHEMA_NAME, "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", NULL, 63 },
	{ SCHEMA_VALUE, SCHEMA_LABEL_NAME, NULL, 63 },
	{ SCHEMA_KEY, "(" SCHEMA_SUBDOMAIN "/)?" SCHEMA_LABEL_NAME, NULL, 317 },
	{ SCHEMA_API, "(" SCHEMA_SUBDOMAIN "/)?[a-z]([-a-z0-9]{0,61}[a-z0-9])?", NULL, 317 },
	{ SCHEMA_KIND, "[A-Za-z]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?", NULL, 63 },
	{ SCHEMA_URL, "https?://[^/ ][^ ]*", "https?://[^/ \\t\\n\\\"<>][^ \\t\\n\\\"<>]*", 2048 },
	{ SCHEMA_PATH, "/[^ ]*", "/[^ \\t\\n]*", 2048 },
	{ SCHEMA_ZONE, "[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*", NULL, VALUE_LONGEST },
	{ SCHEMA_METRIC, "[a-zA-Z_:][a-zA-Z0-9_:]*([{][a-zA-Z_][a-zA-Z0-9_]*=\\\"[-a-zA-Z0-9_:./ ]+\\\"[}])?", NULL,
	  METRIC_NAME_LONGEST },
	{ SCHEMA_CRON, " *[0-9,]+ +[0-9,]+ +[*] +[*] +[^ ]+ *", CRON_MINUTES " +" CRON_HOURS " +[*] +[*] +[^ ]+ *",
	  512 },
	{ SCHEMA_SHARE, "[0-9]+([.][0-9]+)?%", "[0-9]+([.][0-9]{1,4})?%", VALUE_LONGEST },
	{ SCHEMA_DURATION, DURATION, UNITS, VALUE_LONGEST },
	{ SCHEMA_FINE, DURATION, UNITS, VALUE_LONGEST },
	{ SCHEMA_MOMENT,
	  "[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})", NULL,
	  VALUE_LONGEST },
	{ SCHEMA_TIME, "([01]?[0-9]|2[0-3]):[0-5][0-9]|24:00", NULL, VALUE_LONGEST },
	{ SCHEMA_TEXT, NULL, "[^\\n\\r]+", 253 },
};

static void write_table(const struct place *at);

static void key(const struct place *p, const char *name)
{
	if (p->is_openapi) {
		buf_printf(p->out, "%*s%s:", p->indent, "", name);
		return;
	}
	json_write_comma(p->out);
	buf_printf(p->out, "\n%*s\"%s\":", p->indent, "", name);
}

static void end_line(const struct place *p)
{
	buf_text(p->out, p->is_openapi ? "\n" : "");
}

static void quoted(const struct place *p, const char *name, const char *text)
{
	key(p, name);
	buf_text(p->out, " ");
	json_write_text(text, p->out);
	end_line(p);
}

/* `value` as it stands: a number, a truth value, a list. */
static void bare(const struct place *p, const char *name, const char *value)
{
	key(p, name);
	buf_printf(p->out, " %s", value);
	end_line(p);
}

/* A word that YAML takes for a text without quotes. */
static void word(const struct place *p, const char *name, const char *text)
{
	(p->is_openapi ? bare : quoted)(p, name, text);
}

static void number(const struct place *p, const char *name, int64_t value, int digits)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	buf_text(&text, value < 0 ? "-" : "");
	fixed_format(value < 0 ? -value : value, digits, &text);
	bare(p, name, text.text);
}

static struct place open_map(const struct place *p, const char *name)
{
	struct place inner = *p;

	key(p, name);
	buf_text(p->out, p->is_openapi ? "\n" : " {");
	inner.indent += 2;
	return inner;
}

static void close_map(const struct place *p)
{
	buf_text(p->out, p->is_openapi ? "" : "}");
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
	open_map(p, "x-kubernetes-validations");
	rule(p, text, message.text);
}

static void write_duration_rule(const struct place *p, const struct schema_row *row)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	int64_t scale = row->type == SCHEMA_FINE ? 1 : 1000, least = row->min * scale, most = row->max * scale;

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

static void write_share_rule(const struct place *p, const struct schema_row *row)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	buf_text(&text, "double(self.replace('%', '')) >= double('");
	fixed_format(row->min, 4, &text);
	buf_text(&text, "') && double(self.replace('%', '')) <= double('");
	fixed_format(row->max, 4, &text);
	buf_text(&text, "')");
	value_rule(p, row, text.text);
}

static void write_bounds(const struct place *p, const struct schema_row *row, int digits)
{
	if (!row->min && !row->max)
		return;
	number(p, "minimum", row->min, digits);
	number(p, "maximum", row->max, digits);
}

static void write_pattern(const struct place *p, const struct schema_row *row, const char *form)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	buf_printf(&text, row->word ? "^(%s|%s)$" : "^(%s%s)$", row->word ? row->word : "", form);
	quoted(p, "pattern", text.text);
}

static void write_text(const struct place *p, const struct schema_row *row)
{
	bool is_free = row->type == SCHEMA_TEXT, is_duration = row->type == SCHEMA_DURATION || row->type == SCHEMA_FINE;
	const struct form *f = forms;

	while (f->type != row->type)
		f++;
	word(p, "type", "string");
	if (p->is_openapi ? is_duration : is_free)
		number(p, "minLength", 1, 0);
	if (p->is_openapi || is_free)
		number(p, "maxLength", is_free && row->max ? row->max : f->longest, 0);
	if (p->is_openapi || !is_free)
		write_pattern(p, row, p->is_openapi && f->openapi ? f->openapi : f->pattern);
	if (p->is_openapi && row->type == SCHEMA_SHARE)
		write_share_rule(p, row);
	if (p->is_openapi && is_duration)
		write_duration_rule(p, row);
}

/* A number that may also be written as a text: a word, or with a suffix. */
static void write_number_or_text(const struct place *p, const struct schema_row *row)
{
	const char *form = row->type == SCHEMA_QUANTITY ? QUANTITY : "";
	struct place inner = *p;

	inner.indent += 2;
	if (p->is_openapi) {
		bare(p, "x-kubernetes-int-or-string", "true");
		open_map(p, "anyOf");
		buf_printf(p->out, "%*s- type: integer\n%*s- type: string\n", p->indent, "", p->indent, "");
		number(p, "maxLength", VALUE_LONGEST, 0);
		write_pattern(p, row, form);
		write_bounds(p, row, 0);
		return;
	}
	key(p, "anyOf");
	buf_text(p->out, " [{");
	word(&inner, "type", "integer");
	write_bounds(&inner, row, 0);
	buf_text(p->out, "}, {");
	if (row->type == SCHEMA_QUANTITY) {
		word(&inner, "type", "string");
		write_pattern(&inner, row, form);
	} else {
		quoted(&inner, "const", row->word);
	}
	buf_text(p->out, "}]");
	bare(p, "x-kubernetes-int-or-string", "true");
}

static void write_quantity_rule(const struct place *p, const struct schema_row *row)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	buf_printf(&text,
		   "type(self) == int || (quantity(string(self)).isInteger() && "
		   "quantity(string(self)).compareTo(quantity('%lld')) >= 0 && "
		   "quantity(string(self)).compareTo(quantity('%lld')) <= 0)",
		   (long long)row->min, (long long)row->max);
	value_rule(p, row, text.text);
}

static void write_decimal(const struct place *p, const struct schema_row *row)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	word(p, "type", "number");
	write_bounds(p, row, DECIMAL_DIGITS);
	/* The server cuts a bound to a whole number where the value is one: 0 would pass a minimum of 0.01. */
	if (!p->is_openapi || row->min % DECIMAL_ONE == 0)
		return;
	buf_text(&text, "self >= ");
	fixed_format(row->min, DECIMAL_DIGITS, &text);
	value_rule(p, row, text.text);
}

static void write_choices(const struct place *p, const struct schema_row *row)
{
	CLEANUP(buf_release) struct buf list = { 0 };

	buf_text(&list, "[");
	for (size_t i = 0; row->choices[i]; i++) {
		buf_text(&list, !i ? "" : p->is_openapi ? ", " : ",");
		json_write_text(row->choices[i], &list);
	}
	buf_text(&list, "]");
	bare(p, "enum", list.text);
}

/* Of records, or of choices. */
static void write_list(const struct place *p, const struct schema_row *row)
{
	word(p, "type", "array");
	if (p->is_openapi)
		word(p, "x-kubernetes-list-type", "atomic");
	if (row->table && row->min)
		number(p, "minItems", row->min, 0);
	if (row->table || p->is_openapi)
		number(p, "maxItems", row->table && row->max ? row->max : SCHEMA_ITEMS_MAX, 0);
	struct place items = open_map(p, "items");
	items.table = row->table;
	if (row->table) {
		write_table(&items);
	} else {
		if (p->is_openapi)
			word(&items, "type", "string");
		write_choices(&items, row);
	}
	close_map(p);
}

static void write_labels(const struct place *p)
{
	word(p, "type", "object");
	if (!p->is_openapi) {
		bare(p, "additionalProperties", "{\"type\": \"string\"}");
		return;
	}
	struct place value = open_map(p, "additionalProperties");
	word(&value, "type", "string");
}

static void write_days(const struct place *p)
{
	static const char day[] = "(mon(day)?|tue(sday)?|wed(nesday)?|thu(rsday)?|fri(day)?|sat(urday)?|sun(day)?)";
	CLEANUP(buf_release) struct buf form = { 0 };

	if (!p->is_openapi) {
		bare(p, "anyOf", "[{\"type\": \"string\"}, {\"type\": \"array\", \"items\": {\"type\": \"string\"}}]");
		return;
	}
	/* A text or a list of texts: the server has no type for that. The controller checks lists and says so in the
	 * status. */
	buf_printf(&form, "(?i)^ *%s(-%s)? *(, *%s(-%s)? *)*$", day, day, day, day);
	bare(p, "x-kubernetes-preserve-unknown-fields", "true");
	quoted(p, "pattern", form.text);
}

static void write_type(const struct place *p, const struct schema_row *row)
{
	struct place inner = *p;

	switch (row->type) {
	case SCHEMA_INTEGER:
		if (row->word) {
			write_number_or_text(p, row);
			break;
		}
		word(p, "type", "integer");
		if (p->is_openapi)
			word(p, "format", "int64");
		write_bounds(p, row, 0);
		break;
	case SCHEMA_QUANTITY:
		write_number_or_text(p, row);
		if (p->is_openapi)
			write_quantity_rule(p, row);
		break;
	case SCHEMA_NUMBER:
	case SCHEMA_DOLLARS:
		write_decimal(p, row);
		break;
	case SCHEMA_DAYS:
		write_days(p);
		break;
	case SCHEMA_CHOICE:
		word(p, "type", "string");
		write_choices(p, row);
		break;
	case SCHEMA_LABELS:
		write_labels(p);
		break;
	case SCHEMA_MAP:
		inner.table = row->table;
		write_table(&inner);
		break;
	case SCHEMA_CHOICES:
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

	if (is_filled(p, row))
		bare(p, "default", "{}");
	/* A default that depends on other keys is told in words only. */
	if (p->is_silent || !row->fallback || !*row->fallback || row->shown || is_silenced(p, row->key))
		return;
	(is_bare && !(row->word && !strcmp(row->word, row->fallback)) ? bare : quoted)(p, "default", row->fallback);
}

static void write_required(const struct place *p)
{
	CLEANUP(buf_release) struct buf names = { 0 };

	for (size_t i = 0; i < p->table->count; i++)
		if (p->table->rows[i].is_required && p->is_openapi)
			buf_printf(&names, "%*s- %s\n", p->indent, "", p->table->rows[i].key);
		else if (p->table->rows[i].is_required)
			buf_printf(&names, names.len ? ",\"%s\"" : "\"%s\"", p->table->rows[i].key);
	if (!names.len)
		return;
	key(p, "required");
	buf_printf(p->out, p->is_openapi ? "\n%s" : " [%s]", names.text);
}

static void write_rules(const struct place *p)
{
	bool has_any = false;

	for (size_t i = 0; i < p->setup->rule_count; i++) {
		if (strcmp(p->setup->rules[i].table, p->table->name) != 0)
			continue;
		if (!has_any)
			open_map(p, "x-kubernetes-validations");
		has_any = true;
		rule(p, p->setup->rules[i].rule, p->setup->rules[i].message);
	}
}

static void write_table(const struct place *at)
{
	struct place p = *at;

	p.is_silent = p.is_silent || is_silenced(&p, NULL);
	word(&p, "type", "object");
	if (!p.is_openapi)
		bare(&p, "additionalProperties", "false");
	write_required(&p);
	write_rules(&p);
	const struct place rows = open_map(&p, "properties");
	for (size_t i = 0; i < p.table->count; i++) {
		const struct schema_row *row = &p.table->rows[i];
		const struct place value = open_map(&rows, row->key);
		quoted(&value, "description", row->help);
		write_default(&value, row);
		write_type(&value, row);
		close_map(&value);
	}
	close_map(&rows);
}

void schema_write_json(const struct schema_table *t, const char *id, const char *title, struct buf *out)
{
	const struct place p = { .setup = &(struct openapi_setup){ 0 }, .table = t, .indent = 2, .out = out };

	buf_text(out, "{");
	quoted(&p, "$schema", "https://json-schema.org/draft/2020-12/schema");
	quoted(&p, "$id", id);
	quoted(&p, "title", title);
	write_table(&p);
	buf_text(out, "\n}\n");
}

void schema_write_openapi(const struct schema_table *t, const struct openapi_setup *setup, int indent, struct buf *out)
{
	write_table(&(struct place){ .is_openapi = true, .setup = setup, .table = t, .indent = indent, .out = out });
}

/* A bar would end the cell. */
static void write_cell(const char *text, struct buf *out)
{
	for (; *text; text++)
		buf_printf(out, *text == '|' ? "\\%c" : "%c", *text);
	buf_text(out, " | ");
}

/* The place of what a row holds: "spec.nodeGroups[].zone". */
static void place_of(const char *path, const struct schema_row *row, struct buf *out)
{
	buf_printf(out, *path ? "%s.%s%s" : "%s%s%s", path, row->key, row->type == SCHEMA_LIST ? "[]" : "");
}

/* Where `wanted` stands first below `path`, in the order of the page. */
static bool find_first(const struct schema_table *t, const char *path, const struct schema_table *wanted,
		       struct buf *first)
{
	for (size_t i = 0; i < t->count; i++) {
		const struct schema_row *row = &t->rows[i];
		CLEANUP(buf_release) struct buf below = { 0 };
		if (!row->table)
			continue;
		place_of(path, row, &below);
		if (row->table == wanted) {
			buf_text(first, below.text);
			return true;
		}
		if (find_first(row->table, below.text, wanted, first))
			return true;
	}
	return false;
}

static void write_markdown_row(const struct schema_row *row, const char *first, bool is_first, struct buf *out)
{
	CLEANUP(buf_release) struct buf allowed = { 0 };
	CLEANUP(buf_release) struct buf fallback = { 0 };

	if (row->type != SCHEMA_MAP)
		schema_allowed(row, &allowed);
	else if (is_first)
		buf_text(&allowed, "a map, see below");
	else
		buf_printf(&allowed, "a map, as `%s`", first);
	if (row->fallback && *row->fallback)
		buf_printf(&fallback, "`%s`", row->fallback);
	buf_printf(out, "| `%s` | ", row->key);
	write_cell(allowed.text, out);
	write_cell(row->is_required ? "required" : row->shown ? row->shown : fallback.text ? fallback.text : "", out);
	write_cell(row->help, out);
	out->text[out->len - 1] = '\n';
}

/* A table that several keys share is printed at the first. */
static void write_markdown(const struct schema_table *root, const struct schema_table *t, const char *path,
			   struct buf *out)
{
	CLEANUP(buf_release) struct buf tables = { 0 };

	if (*path)
		buf_printf(out, "\n## %s\n\n", path);
	buf_text(out, "| key | allowed | default | meaning |\n|---|---|---|---|\n");
	for (size_t i = 0; i < t->count; i++) {
		const struct schema_row *row = &t->rows[i];
		CLEANUP(buf_release) struct buf below = { 0 };
		CLEANUP(buf_release) struct buf first = { 0 };
		place_of(path, row, &below);
		bool is_first =
			row->table && find_first(root, "", row->table, &first) && !strcmp(first.text, below.text);
		write_markdown_row(row, first.text, is_first, out);
		if (is_first)
			write_markdown(root, row->table, below.text, &tables);
	}
	buf_text(out, tables.text ? tables.text : "");
}

void schema_write_markdown(const struct schema_table *t, struct buf *out)
{
	write_markdown(t, t, "", out);
}
