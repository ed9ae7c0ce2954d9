#include "base/decimal.h"
#include "base/decode_parts.h"
#include "base/millis.h"
#include "base/quote.h"

#include <stdio.h>
#include <string.h>

/* Where we are, for messages. */
struct frame {
	const char *key; /* NULL: an item */
	size_t len, index;
	const struct frame *up;
};

struct reader {
	const char *start, *p, *end;
	struct arena *arena;
	const struct frame *at;
	struct error *e;
};

/* What is being filled. */
struct target_record {
	unsigned char *bytes;
	uint64_t seen;
};

static bool read_value(struct reader *r, const struct decode_node *n, struct target_record *to);

static size_t print_frames(const struct frame *f, char *out, size_t room)
{
	size_t used = f->up ? print_frames(f->up, out, room) : 0;
	int n;

	if (used + 1 >= room)
		return used;
	if (f->key)
		n = snprintf(out + used, room - used, "%s%.*s", used ? ">" : "", (int)(f->len < 80 ? f->len : 80),
			     f->key);
	else
		n = snprintf(out + used, room - used, "[%zu]", f->index);
	return n < 0 ? used : used + (size_t)n < room ? used + (size_t)n : room - 1;
}

static bool wrong(struct reader *r, const char *found, const char *allowed)
{
	char path[256] = "";

	if (r->at)
		print_frames(r->at, path, sizeof path);
	error_set(r->e, ERROR_INVALID, "%s%sfound %s%s%s (byte %zu)", path, path[0] ? ": " : "", found,
		  allowed ? "; allowed: " : "", allowed ? allowed : "", (size_t)(r->p - r->start));
	return false;
}

static bool wrong_value(struct reader *r, const char *from, const char *allowed)
{
	char room[QUOTE_ROOM];

	quote(room, from, (size_t)(r->p - from));
	r->p = from;
	return wrong(r, room, allowed);
}

static void skip_space(struct reader *r)
{
	while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\t' || *r->p == '\r'))
		r->p++;
}

static bool take(struct reader *r, char c)
{
	skip_space(r);
	if (r->p == r->end || *r->p != c)
		return false;
	r->p++;
	return true;
}

/* A text's bytes between its quotes. */
static bool take_quoted(struct reader *r, const char **text, size_t *len)
{
	struct scan s = { 0 };

	if (!take(r, '"'))
		return wrong(r, r->p == r->end ? "the end" : "something else", "a text in quotes");
	*text = r->p;
	if (!scan_string(&s, &r->p, r->end))
		return wrong(r, "the end", "a closing quote");
	*len = (size_t)(r->p - 1 - *text);
	return true;
}

static bool is_scalar_end(char c)
{
	return c == ',' || c == '}' || c == ']' || c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == ':';
}

/* A number, true, false or null. */
static bool take_bare(struct reader *r, const char **text, size_t *len)
{
	const char *from = r->p;

	while (r->p < r->end && !is_scalar_end(*r->p))
		r->p++;
	*text = from;
	*len = (size_t)(r->p - from);
	if ((*len == 4 && (!memcmp(from, "true", 4) || !memcmp(from, "null", 4))) ||
	    (*len == 5 && !memcmp(from, "false", 5)) || !decode_number(from, *len))
		return true;
	return *len ? wrong_value(r, from, "a value") : wrong(r, r->p == r->end ? "the end" : "nothing", "a value");
}

static bool skip_value(struct reader *r)
{
	struct scan s = { 0 };
	const char *text;
	size_t len;

	skip_space(r);
	if (r->p < r->end && (*r->p == '{' || *r->p == '[')) {
		enum scan_result result = scan_container(&s, &r->p, r->end);
		if (result == SCAN_DONE)
			return true;
		return wrong(r, result == SCAN_TOO_DEEP ? "too many levels" : "brackets that do not match", NULL);
	}
	return r->p < r->end && *r->p == '"' ? take_quoted(r, &text, &len) : take_bare(r, &text, &len);
}

/* Keys hardly ever hold escapes; those that do are compared unescaped. */
static bool take_key(struct reader *r, const char **key, size_t *len)
{
	const char *text = "", *plain;
	size_t n = 0;

	if (!take_quoted(r, &text, &n))
		return false;
	if (memchr(text, '\\', n)) {
		const char *bad = decode_text(text, n, r->arena, &plain);
		if (bad)
			return wrong(r, bad, "a key");
		text = plain;
		n = strlen(plain);
	}
	if (!take(r, ':'))
		return wrong(r, "a key without a value", "':'");
	*key = text;
	*len = n;
	return true;
}

/* Steps to the next member or item: true while there is one; `ok` is false on a mistake. */
static bool next_in(struct reader *r, char close, size_t *count, bool *ok)
{
	*ok = true;
	if (take(r, close))
		return false;
	if ((*count)++ && !take(r, ',')) {
		*ok = wrong(r, r->p == r->end ? "the end" : "something else",
			    close == '}' ? "',' or '}'" : "',' or ']'");
		return false;
	}
	return true;
}

static bool read_members(struct reader *r, const struct decode_node *n, struct target_record *to)
{
	const struct frame *up = r->at;
	size_t count = 0;
	bool ok;

	r->p++;
	while (next_in(r, '}', &count, &ok)) {
		struct frame f = { .up = up };
		if (!take_key(r, &f.key, &f.len))
			return false;
		const struct decode_node *child = decode_child(n, f.key, f.len);
		r->at = &f;
		if (child ? !read_value(r, child, to) : !skip_value(r))
			return false;
		r->at = up;
	}
	return ok;
}

static bool put_pair(struct reader *r, const struct frame *key, struct decoded_map *m, size_t *room)
{
	struct decoded_pair pair = { .key = arena_strdup(r->arena, key->key, key->len) };
	bool is_quoted = *r->p == '"';
	const char *text, *bad = NULL;
	size_t len;

	if (is_quoted ? !take_quoted(r, &text, &len) : !take_bare(r, &text, &len))
		return false;
	if (!is_quoted && *text == 'n')
		return true;
	if (is_quoted)
		bad = decode_text(text, len, r->arena, &pair.value);
	else
		pair.value = arena_strdup(r->arena, text, len);
	if (bad)
		return wrong(r, bad, "a text");
	if (m->count == DECODE_ITEMS)
		return wrong(r, "too many members", NULL);
	if (m->count == *room) {
		size_t more = *room ? *room * 2 : 8;
		struct decoded_pair *grown = arena_array(r->arena, struct decoded_pair, more);
		if (m->count)
			memcpy(grown, m->pairs, m->count * sizeof *grown);
		m->pairs = grown;
		*room = more;
	}
	((struct decoded_pair *)m->pairs)[m->count++] = pair;
	return true;
}

static bool read_map(struct reader *r, const struct field *want, struct decoded_map *out)
{
	const struct frame *up = r->at;
	struct decoded_map m = { 0 };
	size_t count = 0, room = 0;
	bool ok;

	if (!take(r, '{'))
		return wrong(r, "something else", "an object");
	while (next_in(r, '}', &count, &ok)) {
		struct frame f = { .up = up };
		if (!take_key(r, &f.key, &f.len))
			return false;
		r->at = &f;
		skip_space(r);
		bool is_wanted =
			r->p < r->end && *r->p != '{' && *r->p != '[' && (!want->wants || want->wants(f.key, f.len));
		if (is_wanted ? !put_pair(r, &f, &m, &room) : !skip_value(r))
			return false;
		r->at = up;
	}
	*out = m;
	return ok;
}

static bool read_record(struct reader *r, const struct decode_plan *p, void *record)
{
	struct target_record to = { .bytes = record };

	if (!read_value(r, &p->root, &to))
		return false;
	for (size_t i = 0; i < p->spec->field_count && to.seen != p->required; i++)
		if (p->spec->fields[i].required && !(to.seen >> i & 1)) {
			struct frame f = { .key = p->spec->fields[i].path,
					   .len = strlen(p->spec->fields[i].path),
					   .up = r->at };
			r->at = &f;
			wrong(r, "nothing", "a value, it is required");
			r->at = f.up;
			return false;
		}
	return true;
}

static bool read_list(struct reader *r, const struct decode_plan *items, struct decoded_list *out)
{
	const size_t size = items->spec->size;
	struct frame f = { .up = r->at };
	struct decoded_list l = { 0 };
	size_t count = 0, room = 0;
	bool ok;

	if (!take(r, '['))
		return wrong(r, "something else", "a list");
	r->at = &f;
	for (; next_in(r, ']', &count, &ok); f.index++) {
		if (l.count == DECODE_ITEMS)
			return wrong(r, "too many items", NULL);
		if (l.count == room) {
			room = room ? room * 2 : 4;
			void *grown = arena_alloc(r->arena, room, size);
			if (l.count)
				memcpy(grown, l.items, l.count * size);
			l.items = grown;
		}
		skip_space(r);
		if (!read_record(r, items, (unsigned char *)l.items + l.count * size))
			return false;
		l.count++;
	}
	r->at = f.up;
	*out = l;
	return ok;
}

static bool read_time(struct reader *r, const char *from, const char *text, size_t len, millis *out)
{
	int64_t micros;

	if (!decimal_parse_time(text, len, &micros))
		return wrong_value(r, from, "a time like 2026-01-02T15:04:05Z");
	*out = micros / 1000 - (micros % 1000 < 0);
	return true;
}

static bool read_quoted(struct reader *r, const struct field *f, void *slot)
{
	const char *from = r->p, *text = "", *bad;
	size_t len = 0;

	if (!take_quoted(r, &text, &len))
		return false;
	switch (f->type) {
	case FIELD_STRING:
		bad = decode_text(text, len, r->arena, (const char **)slot);
		return !bad || wrong(r, bad, "a text");
	case FIELD_COUNT:
		return decode_count(text, len, slot) || wrong_value(r, from, "a quantity in whole units");
	case FIELD_TIME:
		return read_time(r, from, text, len, slot);
	case FIELD_INT:
		return wrong_value(r, from, "a whole number");
	case FIELD_BOOL:
		return wrong_value(r, from, "true or false");
	case FIELD_LIST:
	case FIELD_MAP:
	case FIELD_RAW:
		break;
	}
	return wrong_value(r, from, f->type == FIELD_LIST ? "a list" : "an object");
}

static bool read_bare(struct reader *r, const struct field *f, void *slot)
{
	const char *from = r->p, *text;
	size_t len;

	if (!take_bare(r, &text, &len))
		return false;
	switch (f->type) {
	case FIELD_INT:
		return decode_integer(text, len, slot) || wrong_value(r, from, "a whole number");
	case FIELD_COUNT:
		return decode_count(text, len, slot) || wrong_value(r, from, "a count");
	case FIELD_BOOL:
		if (*text != 't' && *text != 'f')
			return wrong_value(r, from, "true or false");
		*(bool *)slot = *text == 't';
		return true;
	case FIELD_STRING:
	case FIELD_TIME:
		return wrong_value(r, from, "a text");
	case FIELD_LIST:
	case FIELD_MAP:
	case FIELD_RAW:
		break;
	}
	return wrong_value(r, from, f->type == FIELD_LIST ? "a list" : "an object");
}

static bool read_target(struct reader *r, const struct decode_target *t, struct target_record *to)
{
	const struct field *f = t->field;
	void *slot = to->bytes + f->offset;

	to->seen |= t->bit;
	if (f->type == FIELD_RAW) {
		struct decoded_text raw = { .text = r->p };
		if (!skip_value(r))
			return false;
		raw.len = (size_t)(r->p - raw.text);
		*(struct decoded_text *)slot = raw;
		return true;
	}
	if (r->p < r->end && *r->p == '"')
		return read_quoted(r, f, slot);
	if (r->p < r->end && *r->p == '{')
		return f->type == FIELD_MAP ? read_map(r, f, slot) : wrong(r, "an object", "another type");
	if (r->p < r->end && *r->p == '[')
		return f->type == FIELD_LIST ? read_list(r, t->items, slot) : wrong(r, "a list", "another type");
	return read_bare(r, f, slot);
}

static bool is_null(const struct reader *r)
{
	return r->end - r->p >= 4 && !memcmp(r->p, "null", 4) && (r->end - r->p == 4 || is_scalar_end(r->p[4]));
}

/* Several fields may want the same value, each in its way: it is read once for each. */
static bool read_value(struct reader *r, const struct decode_node *n, struct target_record *to)
{
	skip_space(r);
	const char *from = r->p;
	bool is_read = false;

	if (is_null(r)) {
		r->p += 4;
		return true;
	}
	for (const struct decode_target *t = n->targets; t; t = t->next, is_read = true) {
		r->p = from;
		if (!read_target(r, t, to))
			return false;
	}
	if (n->children && from < r->end && *from == '{') {
		r->p = from;
		return read_members(r, n, to);
	}
	return is_read || skip_value(r);
}

bool decode_record(const struct decode_plan *p, const char *text, size_t len, struct arena *a, void *record,
		   struct error *e)
{
	struct reader r = { .start = text, .p = text, .end = text + len, .arena = a, .e = e };

	memset(record, 0, p->spec->size);
	if (!read_record(&r, p, record))
		return false;
	skip_space(&r);
	return r.p == r.end || wrong(&r, "more text", "one value");
}

bool decode_member(const struct decode_plan *p, struct decoded_text key, struct decoded_text value, struct arena *a,
		   void *record, struct error *e)
{
	const char *text = value.text;
	struct frame f = { .key = key.text, .len = key.len };
	struct reader r = { .start = text, .p = text, .end = text + value.len, .arena = a, .e = e, .at = &f };
	struct target_record to = { .bytes = record };
	const struct decode_node *n = decode_child(&p->root, key.text, key.len);

	return !n || read_value(&r, n, &to);
}
