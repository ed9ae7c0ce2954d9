#include "base/yaml.h"

#include "base/arena.h"
#include "base/json.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

struct anchor {
	const char *name;
	const struct yaml_node *node;
	struct anchor *next; /* given before it */
};

struct builder {
	yaml_parser_t parser;
	const char *file;
	const char *text;
	size_t len;
	struct arena *arena;
	struct findings *findings;
	struct yaml_limits limits;
	struct yaml_node *open; /* the container being filled */
	struct yaml_node *root;
	struct yaml_documents documents;
	size_t room; /* of documents */
	size_t nodes, depth;
	bool is_broken; /* reading on makes no sense */
	struct anchor *anchors;

	const char *key; /* waits for its value */
	yaml_mark_t key_mark;
};

static void report(struct builder *b, yaml_mark_t at, const char *found, const char *allowed, const char *remedy)
{
	CLEANUP(buf_release) struct buf path = { 0 };

	buf_text(&path, "");
	if (b->open)
		yaml_path(b->open, &path);
	findings_add(b->findings,
		     &(struct finding){ b->file, at.line + 1, at.column + 1, path.text, found, allowed, remedy });
}

static bool stop(struct builder *b, yaml_mark_t at, const char *found, const char *allowed, const char *remedy)
{
	report(b, at, found, allowed, remedy);
	b->is_broken = true;
	return false;
}

static bool stop_at_limit(struct builder *b, yaml_mark_t at, size_t limit, const char *of)
{
	CLEANUP(buf_release) struct buf found = { 0 }, allowed = { 0 };

	buf_printf(&found, "more than %zu %s", limit, of);
	buf_printf(&allowed, "at most %zu", limit);
	return stop(b, at, found.text, allowed.text, "split it, or check that it is the right file");
}

static yaml_mark_t mark_at_byte(const struct builder *b, size_t offset)
{
	yaml_mark_t at = { 0 };

	for (size_t i = 0; i < offset && i < b->len; i++) {
		at.column++;
		if (b->text[i] == '\n') {
			at.line++;
			at.column = 0;
		}
	}
	return at;
}

static bool stop_at_syntax(struct builder *b)
{
	CLEANUP(buf_release) struct buf found = { 0 };
	const yaml_parser_t *p = &b->parser;
	yaml_mark_t at = p->error == YAML_READER_ERROR ? mark_at_byte(b, p->problem_offset) : p->problem_mark;

	buf_printf(&found, "no YAML: %s", p->problem ? p->problem : "unreadable");
	if (p->context && p->error != YAML_READER_ERROR)
		buf_printf(&found, " %s from line %zu", p->context, p->context_mark.line + 1);
	return stop(b, at, found.text, "YAML text in UTF-8",
		    "mend the text at this place, or check that it is the right file");
}

static bool key_is_known(const struct builder *b, const char *key)
{
	for (const struct yaml_node *n = b->open->first; n; n = n->next)
		if (!strcmp(n->key, key))
			return true;
	return false;
}

/* Takes a scalar as a key where one is due. */
static bool take_key(struct builder *b, const yaml_event_t *event)
{
	const char *text = (const char *)event->data.scalar.value;

	b->key = arena_strdup(b->arena, text, event->data.scalar.length);
	b->key_mark = event->start_mark;
	if (strlen(b->key) != event->data.scalar.length || !*b->key)
		return stop(b, event->start_mark, "an empty or broken key", "keys of plain text", "write KEY: VALUE");
	if (b->open->count >= YAML_KEYS_MAX)
		return stop(b, event->start_mark, "more than 1000 keys in one map", "at most 1000",
			    "check that it is the right file");
	if (key_is_known(b, b->key)) {
		CLEANUP(buf_release) struct buf found = { 0 };
		buf_printf(&found, "key '%s' a second time", b->key);
		report(b, event->start_mark, found.text, "every key once", "delete one of the two");
	}
	return true;
}

static bool key_is_due(const struct builder *b)
{
	return b->open && b->open->kind == YAML_MAP && !b->key;
}

static void append(struct yaml_node *parent, struct yaml_node *n)
{
	n->parent = parent;
	n->index = parent->count++;
	if (parent->last)
		parent->last->next = n;
	else
		parent->first = n;
	parent->last = n;
}

static struct yaml_node *add_node(struct builder *b, enum yaml_kind kind, yaml_mark_t at)
{
	struct yaml_node *n = arena_new(b->arena, struct yaml_node);

	n->kind = kind;
	n->file = b->file;
	n->line = at.line + 1;
	n->column = at.column + 1;
	n->key = b->key;
	n->key_line = b->key_mark.line + 1;
	n->key_column = b->key_mark.column + 1;
	b->key = NULL;
	if (b->open)
		append(b->open, n);
	else
		b->root = n;
	return n;
}

static bool node_is_welcome(struct builder *b, const yaml_event_t *event, const yaml_char_t *anchor,
			    const yaml_char_t *tag)
{
	if ((anchor || event->type == YAML_ALIAS_EVENT) && !b->limits.takes_all)
		return stop(b, event->start_mark, "an anchor or alias", "values written out",
			    "repeat the value at its place");
	if (tag && !b->limits.takes_all)
		return stop(b, event->start_mark, "a tag", "values without '!'", "delete the tag, or quote the value");
	if (++b->nodes > b->limits.nodes)
		return stop_at_limit(b, event->start_mark, b->limits.nodes, "values in a file");
	return true;
}

static void keep_anchor(struct builder *b, const yaml_char_t *name, const struct yaml_node *node)
{
	if (!name)
		return;
	struct anchor *a = arena_new(b->arena, struct anchor);
	*a = (struct anchor){ arena_strdup(b->arena, (const char *)name, strlen((const char *)name)), node,
			      b->anchors };
	b->anchors = a;
}

/* The last of that name; NULL: none, or what is still being read. */
static const struct yaml_node *anchored(const struct builder *b, const yaml_char_t *name)
{
	for (const struct anchor *a = b->anchors; a; a = a->next) {
		if (strcmp(a->name, (const char *)name) != 0)
			continue;
		for (const struct yaml_node *n = b->open; n; n = n->parent)
			if (n == a->node)
				return NULL;
		return a->node;
	}
	return NULL;
}

static bool copy_into(struct builder *b, const struct yaml_node *n, struct yaml_node *to, size_t depth)
{
	if (++b->nodes > b->limits.nodes || depth > b->limits.depth)
		return false;
	struct yaml_node *copy = arena_new(b->arena, struct yaml_node);
	*copy = *n;
	copy->first = copy->last = copy->next = NULL;
	copy->count = 0;
	append(to, copy);
	for (const struct yaml_node *c = n->first; c; c = c->next)
		if (!copy_into(b, c, copy, depth + 1))
			return false;
	return true;
}

/* The keys of `from` that the map does not have itself. */
static bool merge_map(struct builder *b, const struct yaml_node *from, struct yaml_node *map)
{
	for (const struct yaml_node *n = from->kind == YAML_MAP ? from->first : NULL; n; n = n->next)
		if (!yaml_child(map, n->key) && !copy_into(b, n, map, b->depth + 1))
			return false;
	return true;
}

static void take_out(struct yaml_node *map, const struct yaml_node *child)
{
	struct yaml_node *before = NULL;

	for (struct yaml_node *n = map->first; n != child; n = n->next)
		before = n;
	if (before)
		before->next = child->next;
	else
		map->first = child->next;
	if (map->last == child)
		map->last = before;
	map->count--;
}

/* "<<: *a", "<<: [ *a, *b ]" at the end of a map. */
static bool merge(struct builder *b, struct yaml_node *map)
{
	const struct yaml_node *from = yaml_child(map, "<<");

	if (!from)
		return true;
	take_out(map, from);
	bool ok = merge_map(b, from, map);
	for (const struct yaml_node *n = from->kind == YAML_LIST ? from->first : NULL; n && ok; n = n->next)
		ok = merge_map(b, n, map);
	return ok;
}

static bool stop_at_copies(struct builder *b, yaml_mark_t at)
{
	return stop(b, at, "aliases that make too much, or too deep, a text", "as much as may be written out",
		    "write the values out, or split the file");
}

static bool on_alias(struct builder *b, const yaml_event_t *event)
{
	if (!node_is_welcome(b, event, NULL, NULL))
		return false;
	const struct yaml_node *from = anchored(b, event->data.alias.anchor);
	if (!from || key_is_due(b))
		return stop(b, event->start_mark, "an alias of nothing that was read before",
			    "aliases of anchors above them, as values", "write the value out");
	struct yaml_node *n = add_node(b, from->kind, event->start_mark);
	n->text = from->text;
	n->is_plain = from->is_plain;
	for (const struct yaml_node *c = from->first; c; c = c->next)
		if (!copy_into(b, c, n, b->depth + 1))
			return stop_at_copies(b, event->start_mark);
	return true;
}

static bool on_scalar(struct builder *b, const yaml_event_t *event)
{
	if (!node_is_welcome(b, event, event->data.scalar.anchor, event->data.scalar.tag))
		return false;
	if (key_is_due(b))
		return take_key(b, event);
	struct yaml_node *n = add_node(b, YAML_SCALAR, event->start_mark);
	n->text = arena_strdup(b->arena, (const char *)event->data.scalar.value, event->data.scalar.length);
	n->is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	keep_anchor(b, event->data.scalar.anchor, n);
	if (strlen(n->text) != event->data.scalar.length)
		return stop(b, event->start_mark, "a text with a NUL byte", "text without it", "delete it");
	return true;
}

static bool on_open(struct builder *b, const yaml_event_t *event, enum yaml_kind kind, const yaml_char_t *anchor,
		    const yaml_char_t *tag)
{
	if (!node_is_welcome(b, event, anchor, tag))
		return false;
	if (key_is_due(b))
		return stop(b, event->start_mark, "a map or list as a key", "keys of plain text", "quote the key");
	if (++b->depth > b->limits.depth)
		return stop_at_limit(b, event->start_mark, b->limits.depth, "levels of values");
	b->open = add_node(b, kind, event->start_mark);
	keep_anchor(b, anchor, b->open);
	return true;
}

static bool on_close(struct builder *b, const yaml_event_t *event)
{
	/* The tree is ours until it is handed out. */
	struct yaml_node *closed = b->open;

	b->depth--;
	if (b->limits.takes_all && closed->kind == YAML_MAP && !merge(b, closed))
		return stop_at_copies(b, event->start_mark);
	b->open = (struct yaml_node *)closed->parent;
	return true;
}

static bool on_document(struct builder *b, const yaml_event_t *event)
{
	if (event->data.document_start.version_directive ||
	    event->data.document_start.tag_directives.start != event->data.document_start.tag_directives.end)
		return stop(b, event->start_mark, "a % directive", "documents without directives", "delete the line");
	if (b->documents.count == b->limits.documents)
		return stop_at_limit(b, event->start_mark, b->limits.documents, "documents in a file");
	b->root = NULL;
	b->anchors = NULL;
	return true;
}

static void on_document_end(struct builder *b)
{
	const struct yaml_node *r = b->root;
	bool is_empty = r && r->kind == YAML_SCALAR && r->is_plain && !*r->text;

	b->documents.roots =
		arena_grow(b->arena, b->documents.roots, b->documents.count, &b->room, sizeof(struct yaml_node *));
	b->documents.roots[b->documents.count++] = is_empty ? NULL : b->root;
}

static bool take_event(struct builder *b, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_SCALAR_EVENT:
		return on_scalar(b, event);
	case YAML_MAPPING_START_EVENT:
		return on_open(b, event, YAML_MAP, event->data.mapping_start.anchor, event->data.mapping_start.tag);
	case YAML_SEQUENCE_START_EVENT:
		return on_open(b, event, YAML_LIST, event->data.sequence_start.anchor, event->data.sequence_start.tag);
	case YAML_ALIAS_EVENT:
		return on_alias(b, event);
	case YAML_MAPPING_END_EVENT:
	case YAML_SEQUENCE_END_EVENT:
		return on_close(b, event);
	case YAML_DOCUMENT_START_EVENT:
		return on_document(b, event);
	case YAML_DOCUMENT_END_EVENT:
		on_document_end(b);
		return true;
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
		return true;
	}
	return true;
}

static void read_events(struct builder *b)
{
	for (bool at_end = false; !at_end && !b->is_broken;) {
		yaml_event_t event;
		if (!yaml_parser_parse(&b->parser, &event)) {
			stop_at_syntax(b);
			return;
		}
		at_end = event.type == YAML_STREAM_END_EVENT;
		if (!take_event(b, &event))
			b->is_broken = true;
		yaml_event_delete(&event);
	}
}

bool yaml_parse_source(const struct yaml_source *s, struct arena *a, struct yaml_documents *out, struct findings *f)
{
	struct builder b = { .file = arena_strdup(a, s->file, strlen(s->file)),
			     .text = s->text,
			     .len = s->len,
			     .arena = a,
			     .findings = f,
			     .limits = s->limits };

	if (s->len > s->limits.bytes)
		return stop_at_limit(&b, (yaml_mark_t){ 0 }, s->limits.bytes >> 20, "MiB of text");
	if (!yaml_parser_initialize(&b.parser)) {
		stop(&b, (yaml_mark_t){ 0 }, "no memory to read it", "more memory", "free some");
		return false;
	}
	yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&b.parser, (const unsigned char *)s->text, s->len);
	read_events(&b);
	yaml_parser_delete(&b.parser);
	b.documents.nodes = b.nodes;
	*out = b.documents;
	return !b.is_broken;
}

bool yaml_parse(const char *file, const char *text, size_t len, struct arena *a, struct yaml_documents *out,
		struct findings *f)
{
	static const struct yaml_limits manifest = { .bytes = YAML_BYTES_MAX,
						     .nodes = YAML_NODES_MAX,
						     .depth = YAML_DEPTH_MAX,
						     .documents = YAML_DOCUMENTS_MAX };

	return yaml_parse_source(&(struct yaml_source){ file, text, len, manifest }, a, out, f);
}

/* What a tree of YAML says. */

const struct yaml_node *yaml_child(const struct yaml_node *map, const char *key)
{
	if (!map || map->kind != YAML_MAP)
		return NULL;
	for (const struct yaml_node *n = map->first; n; n = n->next)
		if (!strcmp(n->key, key))
			return n;
	return NULL;
}

const struct yaml_node *yaml_walk(const struct yaml_node *map, const char *const *keys)
{
	for (; map && *keys; keys++)
		map = yaml_child(map, *keys);
	return map;
}

const char *yaml_text(const struct yaml_node *map, const char *key)
{
	const struct yaml_node *n = map ? yaml_child(map, key) : NULL;

	return n && n->kind == YAML_SCALAR ? n->text : NULL;
}

void yaml_path(const struct yaml_node *node, struct buf *out)
{
	if (!node->parent) {
		buf_text(out, "");
		return;
	}
	yaml_path(node->parent, out);
	if (node->key)
		buf_printf(out, out->len ? ".%s" : "%s", node->key);
	else
		buf_printf(out, "[%zu]", node->index);
}

static bool is_one_of(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (!strcmp(text, *words))
			return true;
	return false;
}

static bool looks_like_number(const char *t)
{
	size_t digits = 0;

	t += *t == '-' || *t == '+';
	if (t[0] == '0' && (t[1] == 'x' || t[1] == 'o' || t[1] == 'b')) {
		size_t len = strspn(t + 2, t[1] == 'x' ? "0123456789abcdefABCDEF_" : t[1] == 'o' ? "01234567_" : "01_");
		return len && !t[2 + len];
	}
	for (; (*t >= '0' && *t <= '9') || *t == '.' || *t == '_'; t++)
		digits += *t >= '0' && *t <= '9';
	if (digits && (*t == 'e' || *t == 'E')) {
		t += 1 + (t[1] == '-' || t[1] == '+');
		for (; *t >= '0' && *t <= '9'; t++)
			digits++;
	}
	return digits && !*t;
}

const char *yaml_plain_meaning(const struct yaml_node *scalar)
{
	static const char *const truths[] = { "true", "True", "TRUE", "false", "False", "FALSE", "yes", "Yes",
					      "YES",  "no",   "No",   "NO",    "on",	"On",	 "ON",	"off",
					      "Off",  "OFF",  "y",    "Y",     "n",	"N",	 NULL };
	static const char *const nothings[] = { "", "~", "null", "Null", "NULL", NULL };
	static const char *const numbers[] = { ".inf", "-.inf", "+.inf", ".nan", ".Inf", ".NaN", NULL };

	if (!scalar->is_plain)
		return NULL;
	if (is_one_of(scalar->text, nothings))
		return "nothing";
	if (is_one_of(scalar->text, truths))
		return "a truth value";
	return looks_like_number(scalar->text) || is_one_of(scalar->text, numbers) ? "a number" : NULL;
}

/* A map or list that is open. */
struct frame {
	bool is_list;
	bool is_begun;	/* has a child */
	bool is_inline; /* its first child stands on the line that is open, after "- " or at the very start */
	int indent;
	size_t mark; /* length of the path to it */
};

struct writer {
	struct buf *out;
	struct frame frames[JSON_MAX_DEPTH + 1];
};

/* Words that some reader of YAML takes for a truth value or nothing. */
static bool is_reserved(const char *text, size_t len)
{
	static const char *const words[] = { "null", "true", "false", "yes", "no", "on", "off", "y", "n" };

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strlen(words[i]) == len && !strncasecmp(words[i], text, len))
			return true;
	return false;
}

/* Whether it means the same text without quotes, to any reader. */
static bool is_plain(const char *text, size_t len)
{
	if (!len || (!isalpha((unsigned char)*text) && !strchr("_/", *text)) || is_reserved(text, len))
		return false;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];
		bool is_last = i + 1 == len;

		if (!c || c >= 0x80 || !(isalnum(c) || strchr("_-/.,;()%$+=@' :", c)))
			return false;
		if ((c == ' ' && is_last) || (c == ':' && (is_last || text[i + 1] == ' ')))
			return false;
	}
	return true;
}

static void put_text(const char *text, size_t len, struct buf *out)
{
	CLEANUP(buf_release) struct buf whole = { 0 };

	if (is_plain(text, len)) {
		buf_append(out, text, len);
		return;
	}
	buf_append(&whole, text, len);
	json_write_text(whole.text ? whole.text : "", out);
}

/* Up to where a value is written: the line, "- " or the key. */
static void put_place(struct writer *w, struct frame *parent, const struct json_event *event)
{
	const char *key = event->path + parent->mark + (parent->mark > 0);

	if (parent->is_begun || !parent->is_inline)
		buf_printf(w->out, "\n%*s", parent->indent, "");
	parent->is_begun = true;
	if (parent->is_list) {
		buf_text(w->out, "-");
		return;
	}
	put_text(key, strlen(key), w->out);
	buf_text(w->out, ":");
}

static void open_frame(struct writer *w, const struct json_event *event)
{
	struct frame *f = &w->frames[event->depth];

	*f = (struct frame){ .is_list = event->is_array,
			     .is_inline = true,
			     .mark = strlen(event->path) + (event->is_array ? 2 : 0) };
	if (!event->depth)
		return;
	const struct frame *parent = f - 1;
	f->is_inline = parent->is_list;
	f->indent = parent->indent + (parent->is_list || !f->is_list ? 2 : 0);
}

static void put_value(struct writer *w, const struct json_event *event)
{
	buf_text(w->out, event->depth ? " " : "");
	if (event->type == JSON_STRING)
		put_text(event->text, event->len, w->out);
	else
		buf_append(w->out, event->text, event->len);
}

static bool on_event(void *user, const struct json_event *event, struct error *e)
{
	struct writer *w = user;

	(void)e;
	if (event->type == JSON_CLOSE) {
		struct frame *f = &w->frames[event->depth];
		if (!f->is_begun)
			buf_printf(w->out, "%s%s", event->depth && !f->is_inline ? " " : "", f->is_list ? "[]" : "{}");
		return true;
	}
	if (event->depth)
		put_place(w, &w->frames[event->depth - 1], event);
	if (event->type != JSON_OPEN) {
		put_value(w, event);
		return true;
	}
	open_frame(w, event);
	if (event->depth && w->frames[event->depth - 1].is_list)
		buf_text(w->out, " ");
	return true;
}

bool yaml_write_json(const char *json, size_t len, struct buf *out, struct error *e)
{
	struct writer w = { .out = out };
	struct json *j = json_open("answer", on_event, &w);
	bool ok = json_feed(j, json, len, e) && json_finish(j, e);

	json_close(j);
	buf_text(out, "\n");
	return ok;
}
