#include "base/decimal.h"
#include "base/millis.h"
#include "base/quote.h"
#include "base/xml.h"

#include <stdint.h>
#include <string.h>

static bool read_whole(const char *text, int64_t *out)
{
	bool is_negative = *text == '-';
	int64_t value = 0;

	text += is_negative;
	if (!*text)
		return false;
	for (; *text; text++)
		if (*text < '0' || *text > '9' || __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, *text - '0', &value))
			return false;
	*out = is_negative ? -value : value;
	return true;
}

static bool read_bool(const char *text, bool *out)
{
	*out = strcmp(text, "true") == 0;
	return *out || strcmp(text, "false") == 0;
}

static bool read_time(const char *text, millis *out)
{
	int64_t micros;

	if (!decimal_parse_time(text, strlen(text), &micros))
		return false;
	*out = micros / 1000 - (micros % 1000 < 0);
	return true;
}

static bool read_list(const struct xml_table *t, const struct xml_node *node, struct arena *a, struct xml_list *out,
		      struct error *e)
{
	size_t count = 0;

	for (const struct xml_node *n = node->first; n; n = n->next)
		count++;
	char *items = arena_alloc(a, count, t->size);
	count = 0;
	for (const struct xml_node *n = node->first; n; n = n->next)
		if (!xml_decode(t, n, a, items + t->size * count++, e))
			return error_wrap(e, "%s[]", node->name);
	*out = (struct xml_list){ items, count };
	return true;
}

static bool wrong(const struct xml_field *f, const struct xml_node *node, const char *allowed, struct error *e)
{
	char shown[QUOTE_ROOM];

	return error_set(e, ERROR_INVALID, "%s: found %s; allowed: %s", f->path,
			 node->first ? "elements" : quote(shown, node->text, strlen(node->text)), allowed);
}

static bool read_field(const struct xml_field *f, const struct xml_node *node, struct arena *a, void *slot,
		       struct error *e)
{
	if (f->type != XML_LIST && node->first)
		return wrong(f, node, "a text", e);
	switch (f->type) {
	case XML_STRING:
		*(const char **)slot = node->text;
		return true;
	case XML_INT:
		return read_whole(node->text, slot) || wrong(f, node, "a whole number", e);
	case XML_BOOL:
		return read_bool(node->text, slot) || wrong(f, node, "true or false", e);
	case XML_TIME:
		return read_time(node->text, slot) || wrong(f, node, "a time like 2026-01-02T15:04:05Z", e);
	case XML_LIST:
		return strspn(node->text, " \t\r\n") == strlen(node->text) ? read_list(f->of, node, a, slot, e)
									   : wrong(f, node, "a list", e);
	}
	return false;
}

bool xml_decode(const struct xml_table *t, const struct xml_node *node, struct arena *a, void *record, struct error *e)
{
	memset(record, 0, t->size);
	for (size_t i = 0; i < t->count; i++) {
		const struct xml_field *f = &t->fields[i];
		const struct xml_node *found = xml_find(node, f->path);
		void *slot = (char *)record + f->offset;
		if (f->type == XML_STRING)
			*(const char **)slot = "";
		if (!found && f->required)
			return error_set(e, ERROR_INVALID, "%s: missing", f->path);
		if (found && !read_field(f, found, a, slot, e))
			return false;
	}
	return true;
}
