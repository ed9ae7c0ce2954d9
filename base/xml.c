#include "base/xml.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/quantity.h"
#include "base/millis.h"
#include "base/text.h"

#include <expat.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* An element that is open, or the place of the next one. */
struct level {
	struct xml_node *node, *last; /* itself, and its last child so far */
	size_t text_from;	      /* in the gathered text */
};

struct reader {
	XML_Parser parser;
	struct arena *arena;
	struct level levels[XML_DEPTH + 1]; /* levels[0] is around the root */
	int depth;
	size_t elements;
	struct buf text; /* of the open elements, one after the other */
	struct error *error;
	bool failed;
};

static void fail(struct reader *r, const char *what)
{
	if (!r->failed)
		error_set(r->error, ERROR_INVALID, "XML line %lu: %s", XML_GetCurrentLineNumber(r->parser), what);
	r->failed = true;
	XML_StopParser(r->parser, XML_FALSE);
}

static const char *without_prefix(const char *name)
{
	const char *colon = strrchr(name, ':');

	return colon ? colon + 1 : name;
}

static void on_start(void *user, const XML_Char *name, const XML_Char **attributes)
{
	struct reader *r = user;
	struct level *outer = &r->levels[r->depth];

	(void)attributes;
	if (r->depth == XML_DEPTH) {
		fail(r, "elements are nested too deep");
		return;
	}
	if (++r->elements > XML_ELEMENTS) {
		fail(r, "there are too many elements");
		return;
	}
	struct xml_node *node = arena_new(r->arena, struct xml_node);
	name = without_prefix(name);
	node->name = arena_strdup(r->arena, name, strlen(name));
	node->text = "";
	if (outer->last)
		outer->last->next = node;
	else if (outer->node)
		outer->node->first = node;
	outer->last = node;
	r->levels[++r->depth] = (struct level){ .node = node, .text_from = r->text.len };
}

static void on_end(void *user, const XML_Char *name)
{
	struct reader *r = user;
	struct level *l = &r->levels[r->depth--];

	(void)name;
	if (!l->node->first && r->text.len > l->text_from)
		l->node->text = arena_strdup(r->arena, r->text.text + l->text_from, r->text.len - l->text_from);
	r->text.len = l->text_from;
}

static void on_text(void *user, const XML_Char *text, int len)
{
	struct reader *r = user;

	buf_append(&r->text, text, (size_t)len);
}

/* Entities would make much of little, and could name files. */
static void on_document_type(void *user, const XML_Char *name, const XML_Char *system, const XML_Char *public, int has)
{
	(void)name;
	(void)system;
	(void)public;
	(void)has;
	fail(user, "a document type is not allowed");
}

bool xml_read(const char *text, size_t len, struct arena *a, const struct xml_node **root, struct error *e)
{
	struct reader r = { .parser = xmust(XML_ParserCreate("UTF-8")), .arena = a, .error = e };

	if (len > XML_BYTES) {
		XML_ParserFree(r.parser);
		return error_set(e, ERROR_INVALID, "XML of more than %zu bytes", XML_BYTES);
	}
	XML_SetUserData(r.parser, &r);
	XML_SetElementHandler(r.parser, on_start, on_end);
	XML_SetCharacterDataHandler(r.parser, on_text);
	XML_SetStartDoctypeDeclHandler(r.parser, on_document_type);
	if (XML_Parse(r.parser, text, (int)len, 1) != XML_STATUS_OK && !r.failed)
		fail(&r, XML_ErrorString(XML_GetErrorCode(r.parser)));
	XML_ParserFree(r.parser);
	buf_release(&r.text);
	if (r.failed)
		return false;
	*root = r.levels[0].last;
	return true;
}

const struct xml_node *xml_find(const struct xml_node *node, const char *path)
{
	while (node && *path) {
		size_t len = strcspn(path, ">");
		for (node = node->first; node; node = node->next)
			if (strlen(node->name) == len && memcmp(node->name, path, len) == 0)
				break;
		path += len + (path[len] == '>');
	}
	return node;
}

static bool read_bool(const char *text, bool *out)
{
	*out = strcmp(text, "true") == 0;
	return *out || strcmp(text, "false") == 0;
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
		return whole_parse(node->text, strlen(node->text), slot) || wrong(f, node, "a whole number", e);
	case XML_BOOL:
		return read_bool(node->text, slot) || wrong(f, node, "true or false", e);
	case XML_TIME:
		return time_parse(node->text, strlen(node->text), slot) ||
		       wrong(f, node, "a time like 2026-01-02T15:04:05Z", e);
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
