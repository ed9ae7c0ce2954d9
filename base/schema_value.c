#include "base/schema_value.h"

#include "base/metric_name.h"
#include "base/nearest.h"
#include "base/quantity.h"
#include "base/quote.h"
#include "base/weekdays.h"
#include "base/zone.h"

#include <string.h>

enum { NAME_LONGEST = 63, MINUTES_A_DAY = 24 * 60 };

static void usual_remedy(const struct schema_row *row, const struct yaml_node *node, struct buf *out)
{
	bool wants_one = row->type != SCHEMA_LABELS && row->type != SCHEMA_CHOICES && row->type != SCHEMA_DAYS;

	if (node->kind != YAML_SCALAR && wants_one)
		buf_text(out, "write a single value");
	else if (row->type == SCHEMA_NAME)
		buf_text(out, "rename it, as Kubernetes would have it");
	else if (row->type == SCHEMA_CHOICE || row->type == SCHEMA_CHOICES)
		buf_text(out, "write one of these, in small letters");
	else if (row->min || row->max)
		buf_text(out, "write a value between these bounds");
	else
		buf_text(out, "write it in this form");
	if (row->fallback && *row->fallback && !row->is_required && !row->shown)
		buf_printf(out, ", or delete the key: it is then %s", row->fallback);
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

static bool is_url(const char *text)
{
	size_t scheme = !strncmp(text, "http://", 7) ? 7 : !strncmp(text, "https://", 8) ? 8 : 0;

	return scheme && text[scheme] && text[scheme] != '/' && !strpbrk(text, " \t\n\"<>");
}

static bool text_is_allowed(const struct schema_row *row, const char *text)
{
	switch (row->type) {
	case SCHEMA_NAME:
		return is_dns_name(text);
	case SCHEMA_URL:
		return is_url(text);
	case SCHEMA_PATH:
		return *text == '/' && !strpbrk(text, " \t\n");
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
	*(const char **)((char *)record + row->offset) = arena_strdup(a, node->text, strlen(node->text));
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
	default:
		return parse_time(text, out);
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
	if (!fixed_parse(node->text, strlen(node->text), 6, &millionths))
		return;
	if (row->type == SCHEMA_SHARE) {
		/* 0.99 is meant as a part of one, 99 as percent. */
		buf_text(out, "write ");
		share_format(millionths <= 1000000 ? millionths : millionths / 100, out);
	} else if (row->type == SCHEMA_DURATION || row->type == SCHEMA_FINE) {
		buf_printf(out, "add the unit: %ss if seconds are meant", node->text);
	}
}

static bool wants_number(enum schema_type type)
{
	return type == SCHEMA_INTEGER || type == SCHEMA_NUMBER || type == SCHEMA_DOLLARS;
}

static bool read_number(const struct schema_row *row, const struct yaml_node *node, void *record, struct findings *f)
{
	int64_t *slot = (int64_t *)(void *)((char *)record + row->offset), value;

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
	if (wants_number(row->type) && !node->is_plain)
		return wrong(row, node, f, "remove the quotes");
	*slot = value;
	return true;
}

static size_t count_choices(const struct schema_row *row)
{
	size_t n = 0;

	while (row->choices[n])
		n++;
	return n;
}

static bool find_choice(const struct schema_row *row, const struct yaml_node *node, struct findings *f, size_t *out)
{
	size_t n = count_choices(row);
	CLEANUP(buf_release) struct buf remedy = { 0 };

	for (size_t i = 0; i < n; i++)
		if (!strcmp(row->choices[i], node->text)) {
			*out = i;
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

static bool read_choice(const struct schema_row *row, const struct yaml_node *node, void *record, struct findings *f)
{
	size_t index;

	if (!find_choice(row, node, f, &index))
		return false;
	*(int64_t *)(void *)((char *)record + row->offset) = (int64_t)index;
	return true;
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
		*(int64_t *)(void *)((char *)record + row->offset) = bits;
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
	*(int64_t *)(void *)((char *)record + row->offset) = bits;
	return true;
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
		if (!is_text(row, n, f))
			continue;
		items[count++] = (struct schema_label){ arena_strdup(a, n->key, strlen(n->key)),
							arena_strdup(a, n->text, strlen(n->text)) };
	}
	*(struct schema_labels *)(void *)((char *)record + row->offset) = (struct schema_labels){ items, count };
	return true;
}

bool schema_value_read(const struct schema_row *row, const struct yaml_node *node, void *record, struct arena *a,
		       struct findings *f)
{
	switch (row->type) {
	case SCHEMA_CHOICES:
		return read_choices(row, node, record, f);
	case SCHEMA_DAYS:
		return read_days(row, node, record, f);
	case SCHEMA_LABELS:
		return read_labels(row, node, record, a, f);
	default:
		break;
	}
	if (node->kind != YAML_SCALAR)
		return wrong(row, node, f, "");
	switch (row->type) {
	case SCHEMA_TEXT:
	case SCHEMA_NAME:
	case SCHEMA_URL:
	case SCHEMA_PATH:
	case SCHEMA_ZONE:
	case SCHEMA_CRON:
	case SCHEMA_METRIC:
		return read_text(row, node, record, a, f);
	case SCHEMA_CHOICE:
		return read_choice(row, node, record, f);
	default:
		return read_number(row, node, record, f);
	}
}
