#include "base/schema.h"

#include "base/file.h"
#include "base/quantity.h"
#include "base/schedule.h"
#include "base/text.h"

#include <string.h>

static void *slot_of(const struct schema_row *row, const void *record)
{
	return (char *)(uintptr_t)record + row->offset;
}

/* The text types stand first. */
static bool is_text_type(enum schema_type type)
{
	return type <= SCHEMA_CRON;
}

static void list_choices(const struct schema_row *row, struct buf *out)
{
	for (size_t i = 0; row->choices[i]; i++)
		buf_printf(out, i ? ", %s" : "%s", row->choices[i]);
}

static void list_keys(const struct schema_table *t, struct buf *out)
{
	buf_text(out, "");
	for (size_t i = 0; i < t->count; i++)
		buf_printf(out, i ? ", %s" : "%s", t->rows[i].key);
}

static const char *kind_name(const struct yaml_node *n)
{
	if (n->kind != YAML_SCALAR)
		return n->kind == YAML_MAP ? "a map" : "a list";
	return n->is_plain && !*n->text ? "nothing" : NULL;
}

void schema_find(struct findings *f, const struct yaml_node *node, const char *found, const char *allowed,
		 const char *remedy)
{
	CLEANUP(buf_release) struct buf path = { 0 };
	char room[QUOTE_ROOM];

	yaml_path(node, &path);
	if (!found)
		found = kind_name(node);
	if (!found)
		found = quote(room, node->text, strlen(node->text));
	findings_add(f, &(struct finding){ node->file, node->line, node->column, path.text, found, allowed, remedy });
}

void schema_find_key(struct findings *f, const struct yaml_node *map, const char *key, const char *found,
		     const char *allowed, const char *remedy)
{
	const struct yaml_node *node = yaml_child(map, key);
	CLEANUP(buf_release) struct buf path = { 0 };

	if (node) {
		schema_find(f, node, found, allowed, remedy);
		return;
	}
	yaml_path(map, &path);
	buf_printf(&path, path.len ? ".%s" : "%s", key);
	findings_add(f, &(struct finding){ map->file, map->line, map->column, path.text, found ? found : "nothing",
					   allowed, remedy });
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

/* "a map of NAME: key, key, key" */
static void map_allowed(const struct schema_table *t, struct buf *out)
{
	buf_printf(out, "a map of %s: ", t->name);
	list_keys(t, out);
}

void schema_allowed(const struct schema_row *row, struct buf *out)
{
	/* A noun goes with the row's bounds and an example; a text says it all. */
	static const struct {
		const char *noun, *example, *text;
	} words[] = {
		[SCHEMA_NAME] = { .text = "a name of lower-case letters, digits and inner dashes, at most 63" },
		[SCHEMA_VALUE] = { "a name of letters, digits and inner dashes, dots and underscores, at most 63", "",
				   NULL },
		[SCHEMA_KEY] = { .text = "a name as labels and resources have it, like team or nvidia.com/gpu" },
		[SCHEMA_API] = { .text = "a group and its version, like apps/v1" },
		[SCHEMA_KIND] = { .text = "a kind, like Deployment" },
		[SCHEMA_URL] = { .text = "an address that begins with http:// or https://" },
		[SCHEMA_PATH] = { .text = "a path that begins with /" },
		[SCHEMA_ZONE] = { .text = "an IANA time zone known here, like Europe/Berlin or UTC" },
		[SCHEMA_METRIC] = { .text = "a metric, like name or name{type=\"running\"}" },
		[SCHEMA_CRON] = { .text = "minute, hours, *, * and weekdays, like \"0 8 * * mon-fri\"" },
		[SCHEMA_TIME] = { .text = "a time of day from \"00:00\" to \"24:00\"" },
		[SCHEMA_MOMENT] = { .text = "a date and time with its zone, like \"2027-01-31T11:30:00Z\"" },
		[SCHEMA_DAYS] = { .text = "weekdays, like mon-fri or sat,sun" },
		[SCHEMA_LABELS] = { .text = "a map of texts, like { app: llama }" },
		[SCHEMA_INTEGER] = { "a whole number", "", NULL },
		[SCHEMA_QUANTITY] = { "a quantity", "3500 or 25k", NULL },
		[SCHEMA_NUMBER] = { "a number", "", NULL },
		[SCHEMA_DOLLARS] = { "dollars", "0.48", NULL },
		[SCHEMA_SHARE] = { "a share", "99%", NULL },
		[SCHEMA_DURATION] = { "a duration", "250ms, 30s or 1h30m", NULL },
		[SCHEMA_FINE] = { "a duration", "250ms, 30s or 1h30m", NULL },
		[SCHEMA_LIST] = { 0 },
	};
	const char *text = words[row->type].text, *noun = words[row->type].noun;

	if (noun)
		bounds(row, noun, words[row->type].example, out);
	else if (text)
		buf_text(out, text);
	else if (row->type == SCHEMA_TEXT)
		buf_printf(out, "a text of at most %lld bytes%s%s", (long long)(row->max ? row->max : 253),
			   row->example && *row->example ? ", like " : "", row->example ? row->example : "");
	else if (row->type == SCHEMA_MAP)
		map_allowed(row->table, out);
	else if (row->type == SCHEMA_LIST)
		buf_printf(out, "a list of %lld to %lld %ss", (long long)row->min,
			   (long long)(row->max ? row->max : SCHEMA_ITEMS_MAX), row->table->name);
	else {
		buf_text(out, row->type == SCHEMA_CHOICES ? "a list of " : "");
		list_choices(row, out);
	}
}

/* The names of the bits that are set, which end in NULL. */
static void format_bits(const char *const *names, int64_t bits, struct buf *out)
{
	for (size_t i = 0, n = 0; names[i]; i++)
		if (bits >> i & 1)
			buf_printf(out, n++ ? ",%s" : "%s", names[i]);
}

static void format_labels(const struct schema_labels *labels, struct buf *out)
{
	for (size_t i = 0; i < labels->count; i++)
		buf_printf(out, "%s%s=%s", i ? "," : "", labels->items[i].key, labels->items[i].value);
}

static bool are_equal_labels(const struct schema_labels *a, const struct schema_labels *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (strcmp(a->items[i].key, b->items[i].key) != 0 || strcmp(a->items[i].value, b->items[i].value) != 0)
			return false;
	return true;
}

static bool are_equal_lists(const struct schema_table *t, const struct schema_list *a, const struct schema_list *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (!schema_equal(t, (const char *)a->items + i * t->size, (const char *)b->items + i * t->size))
			return false;
	return true;
}

static bool is_equal_value(const struct schema_row *row, const void *a, const void *b)
{
	const void *left = slot_of(row, a), *right = slot_of(row, b);

	if (row->type == SCHEMA_MAP)
		return schema_equal(row->table, left, right);
	if (row->type == SCHEMA_LIST)
		return are_equal_lists(row->table, left, right);
	if (row->type == SCHEMA_LABELS)
		return are_equal_labels(left, right);
	if (!is_text_type(row->type))
		return !memcmp(left, right, sizeof(int64_t));
	const char *x = *(const char *const *)left, *y = *(const char *const *)right;
	return x && y ? !strcmp(x, y) : x == y;
}

bool schema_equal(const struct schema_table *t, const void *a, const void *b)
{
	const struct yaml_node *left = *(const struct yaml_node *const *)a,
			       *right = *(const struct yaml_node *const *)b;
	bool is_equal = !left == !right; /* a map that is not written is another one than an empty one */

	if (left && left == right)
		return true;
	for (size_t i = 0; is_equal && i < t->count; i++)
		is_equal = is_equal_value(&t->rows[i], a, b);
	return is_equal;
}

void schema_format(const struct schema_row *row, const void *record, struct buf *out)
{
	static const char *const days[] = { "mon", "tue", "wed", "thu", "fri", "sat", "sun", NULL };
	const void *slot = slot_of(row, record);
	int64_t value;

	if (is_text_type(row->type)) {
		buf_text(out, *(const char *const *)slot ? *(const char *const *)slot : "");
		return;
	}
	if (row->type == SCHEMA_LABELS)
		format_labels(slot, out);
	if (row->type == SCHEMA_LABELS || row->type == SCHEMA_MAP || row->type == SCHEMA_LIST)
		return;
	memcpy(&value, slot, sizeof value);
	if (row->word && value == row->word_value)
		buf_text(out, row->word);
	else if (row->type == SCHEMA_CHOICE)
		buf_text(out, row->choices[value]);
	else if (row->type == SCHEMA_CHOICES)
		format_bits(row->choices, value, out);
	else if (row->type == SCHEMA_DAYS)
		format_bits(days, value, out);
	else if (row->type == SCHEMA_TIME)
		buf_printf(out, "%02lld:%02lld", (long long)(value / 60), (long long)(value % 60));
	else
		format_number(row, value, out);
}

enum { NAME_LONGEST = 63, MINUTES_A_DAY = 24 * 60 };

static bool parse_number(const struct schema_row *row, const char *text, int64_t *out);

/* No number at all, whatever its bounds. */
static bool is_unreadable(const struct schema_row *row, const struct yaml_node *node)
{
	int64_t value;

	switch (row->type) {
	case SCHEMA_INTEGER:
	case SCHEMA_QUANTITY:
	case SCHEMA_NUMBER:
	case SCHEMA_DOLLARS:
	case SCHEMA_SHARE:
	case SCHEMA_DURATION:
	case SCHEMA_FINE:
		return !parse_number(row, node->text, &value);
	default:
		return false;
	}
}

static void usual_remedy(const struct schema_row *row, const struct yaml_node *node, struct buf *out)
{
	bool wants_one = row->type != SCHEMA_LABELS && row->type != SCHEMA_CHOICES && row->type != SCHEMA_DAYS;
	bool is_empty = node->kind == YAML_SCALAR && !*node->text && !row->is_required;
	const char *without = !row->shown ? row->fallback : is_empty ? row->shown : "";

	if (node->kind != YAML_SCALAR && wants_one)
		buf_text(out, "write a single value");
	else if (is_empty)
		buf_text(out, "give a value");
	else if (row->type == SCHEMA_NAME)
		buf_text(out, "rename it, as Kubernetes would have it");
	else if (row->type == SCHEMA_CHOICE || row->type == SCHEMA_CHOICES)
		buf_text(out, "write one of these, in small letters");
	else if ((row->min || row->max) && !is_unreadable(row, node))
		buf_text(out, "write a value between these bounds");
	else
		buf_text(out, "write it in this form");
	if (without && *without && !row->is_required)
		buf_printf(out, ", or delete the key: it is then %s", without);
}

/* `remedy` "": what helps with any value of that type. */
static bool wrong(const struct schema_row *row, const struct yaml_node *node, struct findings *f, const char *remedy)
{
	CLEANUP(buf_release) struct buf allowed = { 0 };
	CLEANUP(buf_release) struct buf usual = { 0 };

	schema_allowed(row, &allowed);
	if (!*remedy) {
		usual_remedy(row, node, &usual);
		remedy = usual.text;
	}
	schema_find(f, node, NULL, allowed.text, remedy);
	return false;
}

/* Other readers of the same text (kubectl, Helm) would take it for something else than a text. */
static bool is_text(const struct schema_row *row, const struct yaml_node *node, struct findings *f)
{
	const char *meaning = yaml_plain_meaning(node);
	CLEANUP(buf_release) struct buf allowed = { 0 };
	CLEANUP(buf_release) struct buf found = { 0 };
	char room[QUOTE_ROOM];

	if (!meaning || (!*node->text && !node->is_plain))
		return true;
	schema_allowed(row, &allowed);
	if (*node->text)
		buf_printf(&found, "%s %s", meaning, quote(room, node->text, strlen(node->text)));
	else
		buf_text(&found, "nothing");
	schema_find(f, node, found.text, allowed.text,
		    *node->text ? "write it in quotes" : "give a value, or delete the key");
	return false;
}

static bool is_dns_name(const char *text)
{
	size_t len = strlen(text);

	if (!len || len > NAME_LONGEST || text[0] == '-' || text[len - 1] == '-')
		return false;
	return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

static bool is_label_name(const char *text, size_t len)
{
	static const char inner[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

	return len && len <= NAME_LONGEST && strspn(text, inner) >= len && !strchr("-_.", text[0]) &&
	       !strchr("-_.", text[len - 1]);
}

bool schema_is_subdomain(const char *text, size_t len)
{
	if (!len || len > 253)
		return false;
	for (const char *at = text, *end = text + len; at <= end;) {
		const char *dot = memchr(at, '.', (size_t)(end - at));
		size_t part = (size_t)((dot ? dot : end) - at);
		if (!part || at[0] == '-' || at[part - 1] == '-' ||
		    strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789-") < part)
			return false;
		at += part + 1;
	}
	return true;
}

bool schema_is_label_key(const char *text)
{
	const char *slash = strchr(text, '/'), *name = slash ? slash + 1 : text;

	return is_label_name(name, strlen(name)) && (!slash || schema_is_subdomain(text, (size_t)(slash - text)));
}

bool schema_is_label_value(const char *text)
{
	return !*text || is_label_name(text, strlen(text));
}

/* GROUP/VERSION, or the version alone of what has no group. */
static bool is_api(const char *text)
{
	const char *slash = strchr(text, '/'), *version = slash ? slash + 1 : text;

	return is_dns_name(version) && !strchr("0123456789", *version) &&
	       (!slash || schema_is_subdomain(text, (size_t)(slash - text)));
}

static bool is_kind(const char *text)
{
	return is_label_name(text, strlen(text)) && !strpbrk(text, "_.") && !strchr("0123456789", *text);
}

enum { ADDRESS_LONGEST = 2048 };

static bool is_url(const char *text)
{
	size_t scheme = !strncmp(text, "http://", 7) ? 7 : !strncmp(text, "https://", 8) ? 8 : 0;

	return scheme && strlen(text) <= ADDRESS_LONGEST && text[scheme] && text[scheme] != '/' &&
	       !strpbrk(text, " \t\n\"<>");
}

static bool text_is_allowed(const struct schema_row *row, const char *text)
{
	switch (row->type) {
	case SCHEMA_NAME:
		return is_dns_name(text);
	case SCHEMA_VALUE:
		return *text && schema_is_label_value(text);
	case SCHEMA_KEY:
		return schema_is_label_key(text);
	case SCHEMA_API:
		return is_api(text);
	case SCHEMA_KIND:
		return is_kind(text);
	case SCHEMA_URL:
		return is_url(text);
	case SCHEMA_PATH:
		return *text == '/' && strlen(text) <= ADDRESS_LONGEST && !strpbrk(text, " \t\n");
	case SCHEMA_ZONE:
		return zone_is_known(text);
	case SCHEMA_METRIC:
		return metric_name_parse(text, &(struct metric_name){ 0 });
	default:
		return *text && strlen(text) <= (size_t)(row->max ? row->max : 253) && !strpbrk(text, "\n\r");
	}
}

static bool read_text(const struct schema_row *row, const struct yaml_node *node, void *record, struct arena *a,
		      struct findings *f)
{
	static const char zone_remedy[] = "take a name from the IANA time zone database; if this one is right, "
					  "install the package tzdata";

	if (!is_text(row, node, f))
		return false;
	if (!text_is_allowed(row, node->text))
		return wrong(row, node, f, row->type == SCHEMA_ZONE ? zone_remedy : "");
	*(const char **)slot_of(row, record) = arena_strdup(a, node->text, strlen(node->text));
	return true;
}

static bool parse_time(const char *text, int64_t *minutes)
{
	const char *colon = strchr(text, ':');
	int64_t hour, minute;

	if (!colon || colon - text > 2 || strlen(colon + 1) != 2 ||
	    !fixed_parse(text, (size_t)(colon - text), 0, &hour) || !fixed_parse(colon + 1, 2, 0, &minute) ||
	    minute > 59 || hour * 60 + minute > MINUTES_A_DAY)
		return false;
	*minutes = hour * 60 + minute;
	return true;
}

static bool parse_number(const struct schema_row *row, const char *text, int64_t *out)
{
	size_t len = strlen(text);
	const char *digits = *text == '-' ? text + 1 : text;

	switch (row->type) {
	case SCHEMA_INTEGER:
		/* A minus only where the bounds let it be. */
		if (!fixed_parse(digits, len - (size_t)(digits - text), 0, out))
			return false;
		if (digits != text)
			*out = -*out;
		return true;
	case SCHEMA_QUANTITY:
		return quantity_parse(text, len, out);
	case SCHEMA_NUMBER:
	case SCHEMA_DOLLARS:
		return fixed_parse(text, len, 6, out);
	case SCHEMA_SHARE:
		return share_parse(text, len, out);
	case SCHEMA_DURATION:
		return duration_parse(text, len, out);
	case SCHEMA_FINE:
		return duration_parse_us(text, len, out);
	case SCHEMA_MOMENT:
		return time_parse_exact(text, out);
	default:
		return parse_time(text, out);
	}
}

static bool fits(const struct schema_row *row, const char *text)
{
	int64_t value;

	return parse_number(row, text, &value) &&
	       ((!row->min && !row->max) || (value >= row->min && value <= row->max));
}

/* "25,000" is thousands, "1,21" has a decimal comma. */
static bool is_thousands(const char *comma)
{
	return strspn(comma + 1, "0123456789") == 3;
}

/* As numbers are written elsewhere: "30 ms", "25,000", "$1.21", "25K", "2sec". */
static void usual_form(const char *text, struct buf *out)
{
	static const char *const units[][2] = { { "msec", "ms" }, { "sec", "s" }, { "min", "m" }, { "K", "k" } };

	buf_text(out, "");
	for (const char *c = text; *c; c++) {
		const char *unit = NULL;

		for (size_t i = 0; !unit && i < sizeof units / sizeof *units; i++)
			unit = strcmp(c, units[i][0]) ? NULL : units[i][1];
		if (unit) {
			buf_text(out, unit);
			return;
		}
		if (!strchr(" _$", *c) && !(*c == ',' && is_thousands(c)))
			buf_append(out, *c == ',' ? "." : c, 1);
	}
}

/* The first unit that makes a value out of the number: that of the example, unless the number is a part of one. */
static void unit_remedy(const struct schema_row *row, const char *number, struct buf *out)
{
	static const char *const names[][2] = {
		{ "s", "seconds" }, { "ms", "milliseconds" }, { "m", "minutes" }, { "h", "hours" }
	};
	const char *usual = row->example && *number != '0' ? row->example + strspn(row->example, "0123456789.") : "";
	CLEANUP(buf_release) struct buf text = { 0 };

	for (int is_any = 0; is_any <= 1; is_any++)
		for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
			buf_clear(&text);
			buf_printf(&text, "%s%s", number, names[i][0]);
			if ((!is_any && strcmp(usual, names[i][0]) != 0) || !fits(row, text.text))
				continue;
			buf_printf(out, "add the unit: %s if %s are meant", text.text, names[i][1]);
			return;
		}
}

static void number_remedy(const struct schema_row *row, const struct yaml_node *node, struct buf *out)
{
	const char *meaning = yaml_plain_meaning(node);
	int64_t millionths;

	buf_text(out, "");
	if (meaning && !strcmp(meaning, "nothing")) {
		buf_text(out, "give a value, or delete the key");
		return;
	}
	if (!fixed_parse(node->text, strlen(node->text), 6, &millionths)) {
		CLEANUP(buf_release) struct buf usual = { 0 };
		usual_form(node->text, &usual);
		if (fits(row, usual.text))
			buf_printf(out, "write %s", usual.text);
		return;
	}
	if (row->type == SCHEMA_SHARE) {
		/* 0.99 is meant as a part of one, 99 as percent. */
		buf_text(out, "write ");
		share_format(millionths <= 1000000 ? millionths : millionths / 100, out);
	} else if (row->type == SCHEMA_DURATION || row->type == SCHEMA_FINE) {
		unit_remedy(row, node->text, out);
	}
}

static bool read_number(const struct schema_row *row, const struct yaml_node *node, void *record, struct findings *f)
{
	int64_t *slot = slot_of(row, record), value;

	if (row->word && !strcmp(node->text, row->word)) {
		*slot = row->word_value;
		return true;
	}
	if (!parse_number(row, node->text, &value)) {
		CLEANUP(buf_release) struct buf remedy = { 0 };
		number_remedy(row, node, &remedy);
		return wrong(row, node, f, remedy.text);
	}
	if ((row->min || row->max) && (value < row->min || value > row->max))
		return wrong(row, node, f, "");
	bool is_bare = row->type == SCHEMA_INTEGER || row->type == SCHEMA_NUMBER || row->type == SCHEMA_DOLLARS;
	if (is_bare && !node->is_plain)
		return wrong(row, node, f, "remove the quotes");
	*slot = value;
	return true;
}

static bool find_choice(const struct schema_row *row, const struct yaml_node *node, struct findings *f, size_t *out)
{
	CLEANUP(buf_release) struct buf remedy = { 0 };
	size_t n = 0;

	for (; row->choices[n]; n++)
		if (!strcmp(row->choices[n], node->text)) {
			*out = n;
			return true;
		}
	const char *near = nearest_name(node->text, row->choices, n);
	buf_text(&remedy, "");
	if (near)
		buf_printf(&remedy, "did you mean '%s'?", near);
	struct schema_row single = *row;
	single.type = SCHEMA_CHOICE;
	return wrong(&single, node, f, remedy.text);
}

static bool read_choices(const struct schema_row *row, const struct yaml_node *node, void *record, struct findings *f)
{
	int64_t bits = 0;
	bool ok = true;

	if (node->kind != YAML_LIST)
		return wrong(row, node, f, "write a list: [ a, b ]");
	for (const struct yaml_node *n = node->first; n; n = n->next) {
		size_t index = 0;
		if (n->kind != YAML_SCALAR)
			ok = wrong(row, n, f, "");
		else if (!find_choice(row, n, f, &index))
			ok = false;
		else
			bits |= INT64_C(1) << index;
	}
	if (ok)
		*(int64_t *)slot_of(row, record) = bits;
	return ok;
}

static bool read_days(const struct schema_row *row, const struct yaml_node *node, void *record, struct findings *f)
{
	int64_t bits = 0, part;

	if (node->kind == YAML_SCALAR && !weekdays_parse(node->text, false, &bits))
		return wrong(row, node, f, "");
	if (node->kind == YAML_MAP || (node->kind == YAML_LIST && !node->count))
		return wrong(row, node, f, "");
	for (const struct yaml_node *n = node->kind == YAML_LIST ? node->first : NULL; n; n = n->next) {
		if (n->kind != YAML_SCALAR || !weekdays_parse(n->text, false, &part))
			return wrong(row, n, f, "");
		bits |= part;
	}
	*(int64_t *)slot_of(row, record) = bits;
	return true;
}

static bool find_label(const struct yaml_node *n, struct findings *f)
{
	bool is_right = schema_is_label_key(n->key) && schema_is_label_value(n->text);
	CLEANUP(buf_release) struct buf found = { 0 };

	buf_printf(&found, "%s: %s", n->key, n->text);
	if (!is_right)
		schema_find(
			f, n, found.text,
			"a key like team or example.com/team, and a value of letters, digits and inner dashes, dots "
			"and underscores, each at most 63",
			"no object of the cluster can have this label");
	return is_right;
}

static bool read_labels(const struct schema_row *row, const struct yaml_node *node, void *record, struct arena *a,
			struct findings *f)
{
	if (node->kind != YAML_MAP)
		return wrong(row, node, f, "");
	struct schema_label *items = arena_array(a, struct schema_label, node->count);
	size_t count = 0;
	for (const struct yaml_node *n = node->first; n; n = n->next) {
		if (n->kind != YAML_SCALAR) {
			wrong(row, n, f, "");
			continue;
		}
		if (!is_text(row, n, f) || (row->is_selector && !find_label(n, f)))
			continue;
		items[count++] = (struct schema_label){ arena_strdup(a, n->key, strlen(n->key)),
							arena_strdup(a, n->text, strlen(n->text)) };
	}
	*(struct schema_labels *)slot_of(row, record) = (struct schema_labels){ items, count };
	return true;
}

bool schema_value_read(const struct schema_row *row, const struct yaml_node *node, void *record, struct arena *a,
		       struct findings *f)
{
	size_t index;

	if (row->type == SCHEMA_CHOICES)
		return read_choices(row, node, record, f);
	if (row->type == SCHEMA_DAYS)
		return read_days(row, node, record, f);
	if (row->type == SCHEMA_LABELS)
		return read_labels(row, node, record, a, f);
	if (node->kind != YAML_SCALAR)
		return wrong(row, node, f, "");
	if (is_text_type(row->type))
		return read_text(row, node, record, a, f);
	if (row->type != SCHEMA_CHOICE)
		return read_number(row, node, record, f);
	if (!find_choice(row, node, f, &index))
		return false;
	*(int64_t *)slot_of(row, record) = (int64_t)index;
	return true;
}

static void unknown_key(const struct schema_table *t, const struct yaml_node *n, struct findings *f)
{
	CLEANUP(buf_release) struct buf path = { 0 };
	CLEANUP(buf_release) struct buf allowed = { 0 };
	CLEANUP(buf_release) struct buf remedy = { 0 };
	CLEANUP(arena_release) struct arena a = { 0 };
	const char **names = arena_array(&a, const char *, t->count);

	for (size_t i = 0; i < t->count; i++)
		names[i] = t->rows[i].key;
	list_keys(t, &allowed);
	const char *near = nearest_name(n->key, names, t->count);
	if (near)
		buf_printf(&remedy, "did you mean '%s'?", near);
	else
		buf_text(&remedy, "delete it");
	yaml_path(n, &path);
	findings_add(f, &(struct finding){ n->file, n->key_line, n->key_column, path.text, "an unknown key",
					   allowed.text, remedy.text });
}

static const struct schema_row *find_row(const struct schema_table *t, const char *key)
{
	for (size_t i = 0; i < t->count; i++)
		if (!strcmp(t->rows[i].key, key))
			return &t->rows[i];
	return NULL;
}

static bool is_passed_over(const struct schema_table *t, const char *key)
{
	for (const char *const *k = t->passed_over; k && *k; k++)
		if (!strcmp(*k, key))
			return true;
	return false;
}

static void read_list(const struct schema_row *row, const struct yaml_node *node, void *record, struct arena *a,
		      struct findings *f)
{
	struct schema_list *list = slot_of(row, record);
	size_t most = row->max ? (size_t)row->max : SCHEMA_ITEMS_MAX, i = 0;
	CLEANUP(buf_release) struct buf allowed = { 0 };

	schema_allowed(row, &allowed);
	if (node->kind != YAML_LIST || node->count < (size_t)row->min || node->count > most) {
		CLEANUP(buf_release) struct buf found = { 0 };
		buf_printf(&found, "a list of %zu", node->count);
		schema_find(f, node, node->kind == YAML_LIST ? found.text : NULL, allowed.text,
			    node->kind == YAML_MAP    ? "begin the element with '- '"
			    : node->kind == YAML_LIST ? "add or delete elements"
						      : "write a list: one element a line, each beginning with '- '");
		return;
	}
	char *items = arena_alloc(a, node->count, row->table->size);
	for (const struct yaml_node *n = node->first; n; n = n->next)
		schema_read(row->table, n, items + row->table->size * i++, a, f);
	*list = (struct schema_list){ items, i };
}

static void fill_default(const struct schema_row *row, void *record, struct arena *a, struct findings *f)
{
	if (row->type == SCHEMA_MAP) {
		schema_read(row->table, NULL, slot_of(row, record), a, f);
		return;
	}
	if (!row->fallback)
		return;
	if (!*row->fallback) {
		*(const char **)slot_of(row, record) = "";
		return;
	}
	const struct yaml_node written = { .kind = YAML_SCALAR,
					   .file = "default",
					   .text = row->fallback,
					   .is_plain = !yaml_plain_meaning(&(struct yaml_node){ .text = row->fallback,
												.is_plain = true }) ||
						       row->type != SCHEMA_TEXT };
	schema_value_read(row, &written, record, a, f);
}

static void read_row(const struct schema_row *row, const struct yaml_node *map, void *record, struct arena *a,
		     struct findings *f)
{
	const struct yaml_node *n = yaml_child(map, row->key);

	if (!n || row->type != SCHEMA_MAP) /* reading a map fills its own */
		fill_default(row, record, a, f);
	if (!n) {
		if (map && row->is_required) {
			CLEANUP(buf_release) struct buf allowed = { 0 };
			schema_allowed(row, &allowed);
			schema_find_key(f, map, row->key, "nothing", allowed.text, "add it");
		}
		return;
	}
	if (row->type == SCHEMA_MAP)
		schema_read(row->table, n, slot_of(row, record), a, f);
	else if (row->type == SCHEMA_LIST)
		read_list(row, n, record, a, f);
	else
		schema_value_read(row, n, record, a, f);
}

void schema_read(const struct schema_table *t, const struct yaml_node *node, void *record, struct arena *a,
		 struct findings *f)
{
	if (node && node->kind != YAML_MAP) {
		CLEANUP(buf_release) struct buf allowed = { 0 };
		map_allowed(t, &allowed);
		schema_find(f, node, NULL, allowed.text, "write KEY: VALUE, one a line, indented below this");
		node = NULL;
	}
	*(const struct yaml_node **)record = node;
	for (const struct yaml_node *n = node ? node->first : NULL; n; n = n->next)
		if (!find_row(t, n->key) && !is_passed_over(t, n->key))
			unknown_key(t, n, f);
	for (size_t i = 0; i < t->count; i++)
		read_row(&t->rows[i], node, record, a, f);
}

static void read_one(const struct schema_table *t, const char *file, const struct yaml_documents *docs, void *record,
		     struct arena *a, struct findings *f)
{
	if (docs->count == 1 && docs->roots[0]) {
		schema_read(t, docs->roots[0], record, a, f);
		return;
	}
	CLEANUP(buf_release) struct buf allowed = { 0 };
	buf_text(&allowed, "one document: ");
	map_allowed(t, &allowed);
	findings_add(f, &(struct finding){ .file = file,
					   .found = docs->count > 1 ? "several documents" : "nothing",
					   .allowed = allowed.text,
					   .remedy = "put one document into the file" });
}

bool schema_load(const char *path, const struct schema_table *t, void *record, struct arena *a, struct findings *f,
		 struct error *e)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	struct yaml_documents docs;
	const char *name = strcmp(path, "-") ? path : "standard input";

	if (!file_read(path, YAML_BYTES_MAX, &text, e))
		return false;
	if (yaml_parse(name, text.text, text.len, a, &docs, f))
		read_one(t, name, &docs, record, a, f);
	return true;
}
