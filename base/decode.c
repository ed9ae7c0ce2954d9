#include "base/decode.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/quantity.h"
#include "base/millis.h"
#include "base/text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A node of the tree of wanted keys. */
struct decode_node {
	const char *key;
	size_t len;
	struct decode_target *targets; /* fields that end here */
	struct decode_node *children, *next;
};

struct decode_target {
	const struct field *field;
	uint64_t bit;			 /* its place among the required ones; 0: not required */
	const struct decode_plan *items; /* of a list */
	struct decode_target *next;
};

struct decode_plan {
	const struct record_spec *spec;
	struct decode_node root;
	uint64_t required;
	struct arena arena; /* of the outermost plan */
};

/* Finding the end of a container without looking into it. */
struct scan {
	int depth;
	bool is_in_string, is_escaped;
	uint64_t arrays[DECODE_DEPTH / 64]; /* a bit for each open container */
};

enum scan_result { SCAN_MORE, SCAN_DONE, SCAN_UNBALANCED, SCAN_TOO_DEEP };

static const struct decode_node *decode_child(const struct decode_node *n, const char *key, size_t len)
{
	for (const struct decode_node *c = n->children; c; c = c->next)
		if (c->len == len && !memcmp(c->key, key, len))
			return c;
	return NULL;
}

static struct decode_node *node_for(struct decode_plan *p, const char *path, struct arena *a)
{
	struct decode_node *n = &p->root;

	while (*path) {
		size_t len = strcspn(path, ">");
		struct decode_node *child = (struct decode_node *)decode_child(n, path, len);
		if (!child) {
			child = arena_new(a, struct decode_node);
			*child = (struct decode_node){ .key = path, .len = len, .next = n->children };
			n->children = child;
		}
		n = child;
		path += len + (path[len] == '>');
	}
	return n;
}

static struct decode_plan *plan_in(const struct record_spec *spec, struct arena *a)
{
	struct decode_plan *p = arena_new(a, struct decode_plan);

	assert(spec->field_count <= 64);
	p->spec = spec;
	for (size_t i = 0; i < spec->field_count; i++) {
		const struct field *f = &spec->fields[i];
		struct decode_node *n = node_for(p, f->path, a);
		struct decode_target *t = arena_new(a, struct decode_target);
		assert((f->type == FIELD_LIST) == (f->of != NULL));
		t->field = f;
		t->bit = f->required ? UINT64_C(1) << i : 0;
		t->items = f->of ? plan_in(f->of, a) : NULL;
		t->next = n->targets;
		n->targets = t;
		p->required |= t->bit;
	}
	return p;
}

struct decode_plan *decode_plan_new(const struct record_spec *spec)
{
	struct arena a = { 0 };
	struct decode_plan *p = plan_in(spec, &a);

	p->arena = a;
	return p;
}

void decode_plan_free(struct decode_plan *p)
{
	struct arena a;

	if (!p)
		return;
	a = p->arena; /* holds the plan itself */
	arena_release(&a);
}

enum { PLAIN, QUOTE, OPEN_OBJECT, OPEN_ARRAY, CLOSE_OBJECT, CLOSE_ARRAY };

static const unsigned char kinds[256] = {
	['"'] = QUOTE, ['{'] = OPEN_OBJECT, ['['] = OPEN_ARRAY, ['}'] = CLOSE_OBJECT, [']'] = CLOSE_ARRAY,
};

/* *p stands behind the opening quote; goes behind the closing one, or to `end`. */
static bool scan_string(struct scan *s, const char **p, const char *end)
{
	const char *at = *p;

	if (s->is_escaped && at < end) {
		s->is_escaped = false;
		at++;
	}
	for (; at < end; at++) {
		if (*at == '"') {
			*p = at + 1;
			return true;
		}
		if (*at == '\\' && ++at == end) {
			s->is_escaped = true;
			break;
		}
	}
	*p = end;
	return false;
}

static bool opened(struct scan *s, bool is_array)
{
	if (s->depth == DECODE_DEPTH)
		return false;
	uint64_t bit = UINT64_C(1) << (s->depth % 64), *word = &s->arrays[s->depth / 64];
	*word = is_array ? *word | bit : *word & ~bit;
	s->depth++;
	return true;
}

static bool closed(struct scan *s, bool is_array)
{
	if (!s->depth)
		return false;
	s->depth--;
	return (s->arrays[s->depth / 64] >> (s->depth % 64) & 1) == is_array;
}

/* From *p on, to behind the bracket that closes what the first one opened, or to `end`. */
static enum scan_result scan_container(struct scan *s, const char **p, const char *end)
{
	const char *at = *p;

	for (;;) {
		if (s->is_in_string) {
			s->is_in_string = !scan_string(s, &at, end);
			if (s->is_in_string)
				break;
		}
		while (at < end && kinds[(unsigned char)*at] == PLAIN)
			at++;
		if (at == end)
			break;
		unsigned char kind = kinds[(unsigned char)*at++];
		if (kind == QUOTE) {
			s->is_in_string = true;
		} else if (kind == OPEN_OBJECT || kind == OPEN_ARRAY) {
			if (!opened(s, kind == OPEN_ARRAY))
				return SCAN_TOO_DEEP;
		} else if (!closed(s, kind == CLOSE_ARRAY)) {
			return SCAN_UNBALANCED;
		} else if (!s->depth) {
			*p = at;
			return SCAN_DONE;
		}
	}
	*p = end;
	return SCAN_MORE;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* \uXXXX at *p, behind the u. */
static bool take_unit(const char **p, const char *end, unsigned *unit)
{
	*unit = 0;
	if (end - *p < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		int digit = hex_digit(*(*p)++);
		if (digit < 0)
			return false;
		*unit = *unit << 4 | (unsigned)digit;
	}
	return true;
}

static bool take_code(const char **p, const char *end, unsigned *code)
{
	unsigned low;

	if (!take_unit(p, end, code) || !*code || (*code >= 0xdc00 && *code <= 0xdfff))
		return false;
	if (*code < 0xd800 || *code > 0xdbff)
		return true;
	if (end - *p < 6 || (*p)[0] != '\\' || (*p)[1] != 'u')
		return false;
	*p += 2;
	if (!take_unit(p, end, &low) || low < 0xdc00 || low > 0xdfff)
		return false;
	*code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
	return true;
}

static char *put_utf8(char *out, unsigned code)
{
	if (code < 0x80) {
		*out++ = (char)code;
	} else if (code < 0x800) {
		*out++ = (char)(0xc0 | code >> 6);
		*out++ = (char)(0x80 | (code & 0x3f));
	} else if (code < 0x10000) {
		*out++ = (char)(0xe0 | code >> 12);
		*out++ = (char)(0x80 | (code >> 6 & 0x3f));
		*out++ = (char)(0x80 | (code & 0x3f));
	} else {
		*out++ = (char)(0xf0 | code >> 18);
		*out++ = (char)(0x80 | (code >> 12 & 0x3f));
		*out++ = (char)(0x80 | (code >> 6 & 0x3f));
		*out++ = (char)(0x80 | (code & 0x3f));
	}
	return out;
}

static bool take_escape(const char **p, const char *end, char **out)
{
	static const char names[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
	unsigned code;

	if (*p == end)
		return false;
	char c = *(*p)++;
	if (c == 'u') {
		if (!take_code(p, end, &code))
			return false;
		*out = put_utf8(*out, code);
		return true;
	}
	const char *found = c ? strchr(names, c) : NULL;
	if (!found)
		return false;
	*(*out)++ = means[found - names];
	return true;
}

/* What is between the quotes; says what was wrong, or NULL. */
static const char *decode_text(const char *text, size_t len, struct arena *a, const char **out)
{
	const char *p = text, *end = text + len;
	char *copy = arena_alloc(a, len + 1, 1), *to = copy;

	while (p < end) {
		unsigned char c = (unsigned char)*p;
		if (c >= 0x20 && c < 0x80 && c != '\\') {
			*to++ = *p++;
		} else if (c == '\\') {
			p++;
			if (!take_escape(&p, end, &to))
				return "a text with a malformed escape";
		} else if (c < 0x20) {
			return "a text with a control character";
		} else {
			size_t n = utf8_length(p, end);
			if (!n)
				return "a text that is not UTF-8";
			memcpy(to, p, n);
			to += n;
			p += n;
		}
	}
	*to = '\0';
	*out = copy;
	return NULL;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *digits(const char *p, const char *end)
{
	while (p < end && is_digit(*p))
		p++;
	return p;
}

/* whether it is one */
static const char *decode_number(const char *text, size_t len)
{
	static const char malformed[] = "a malformed value";
	const char *p = text, *end = text + len, *from;

	if (p < end && *p == '-')
		p++;
	from = p;
	p = digits(p, end);
	if (p == from || (*from == '0' && p - from > 1))
		return malformed;
	if (p < end && *p == '.') {
		from = ++p;
		p = digits(p, end);
		if (p == from)
			return malformed;
	}
	if (p < end && (*p == 'e' || *p == 'E')) {
		p++;
		if (p < end && (*p == '+' || *p == '-'))
			p++;
		from = p;
		p = digits(p, end);
		if (p == from)
			return malformed;
	}
	return p == end ? NULL : malformed;
}

static bool decode_count(const char *text, size_t len, int64_t *out)
{
	int64_t milli;

	if (whole_parse(text, len, out) || quantity_parse(text, len, out))
		return true;
	if (len > 1 && text[len - 1] == 'm' && whole_parse(text, len - 1, &milli) && milli >= 0) {
		*out = milli / 1000 + (milli % 1000 != 0);
		return true;
	}
	if (decimal_parse(text, len, 3, &milli) != DECIMAL_OK)
		return false;
	*out = milli / 1000 + (milli % 1000 != 0);
	return true;
}

bool decoded_number(const struct decoded_text *t, int places, int64_t *out)
{
	size_t sign = t->len && *t->text == '-';
	int64_t value;

	if (!t->text || decimal_parse(t->text + sign, t->len - sign, places, &value) != DECIMAL_OK)
		return false;
	*out = sign ? -value : value;
	return true;
}

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
	const char *text = "", *bad = NULL;
	size_t len = 0;

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
	m->pairs = arena_grow(r->arena, m->pairs, m->count, room, sizeof *m->pairs);
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
		l.items = arena_grow(r->arena, l.items, l.count, &room, size);
		skip_space(r);
		if (!read_record(r, items, (unsigned char *)l.items + l.count * size))
			return false;
		l.count++;
	}
	r->at = f.up;
	*out = l;
	return ok;
}

static const char *allowed_for(enum field_type type, bool is_quoted)
{
	switch (type) {
	case FIELD_COUNT:
		return is_quoted ? "a quantity in whole units" : "a count";
	case FIELD_TIME:
		return is_quoted ? "a time like 2026-01-02T15:04:05Z" : "a text";
	case FIELD_STRING:
		return "a text";
	case FIELD_INT:
		return "a whole number";
	case FIELD_BOOL:
		return "true or false";
	case FIELD_LIST:
		return "a list";
	case FIELD_MAP:
	case FIELD_RAW:
		break;
	}
	return "an object";
}

/* A text in quotes, or a number or truth value without. */
static bool read_scalar(struct reader *r, const struct field *f, void *slot)
{
	bool is_quoted = r->p < r->end && *r->p == '"', ok = false;
	const char *from = r->p, *text = "", *bad;
	size_t len = 0;

	if (is_quoted ? !take_quoted(r, &text, &len) : !take_bare(r, &text, &len))
		return false;
	switch (f->type) {
	case FIELD_STRING:
		if (!is_quoted)
			break;
		bad = decode_text(text, len, r->arena, (const char **)slot);
		return !bad || wrong(r, bad, "a text");
	case FIELD_COUNT:
		ok = decode_count(text, len, slot);
		break;
	case FIELD_TIME:
		ok = is_quoted && time_parse(text, len, slot);
		break;
	case FIELD_INT:
		ok = !is_quoted && whole_parse(text, len, slot);
		break;
	case FIELD_BOOL:
		ok = !is_quoted && (*text == 't' || *text == 'f');
		if (ok)
			*(bool *)slot = *text == 't';
		break;
	case FIELD_LIST:
	case FIELD_MAP:
	case FIELD_RAW:
		break;
	}
	return ok || wrong_value(r, from, allowed_for(f->type, is_quoted));
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
	if (r->p < r->end && *r->p == '{')
		return f->type == FIELD_MAP ? read_map(r, f, slot) : wrong(r, "an object", "another type");
	if (r->p < r->end && *r->p == '[')
		return f->type == FIELD_LIST ? read_list(r, t->items, slot) : wrong(r, "a list", "another type");
	return read_scalar(r, f, slot);
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
	const char *from = text ? text : "";
	struct reader r = { .start = from, .p = from, .end = from + len, .arena = a, .e = e };

	memset(record, 0, p->spec->size);
	if (!read_record(&r, p, record))
		return false;
	skip_space(&r);
	return r.p == r.end || wrong(&r, "more text", "one value");
}

/* One member of the object that the plan describes, into its record. */
static bool decode_member(const struct decode_plan *p, struct decoded_text key, struct decoded_text value,
			  struct arena *a, void *record, struct error *e)
{
	const char *text = value.text;
	struct frame f = { .key = key.text, .len = key.len };
	struct reader r = { .start = text, .p = text, .end = text + value.len, .arena = a, .e = e, .at = &f };
	struct target_record to = { .bytes = record };
	const struct decode_node *n = decode_child(&p->root, key.text, key.len);

	return !n || read_value(&r, n, &to);
}

/* A step of the records' path: a member's key, or any item of a list. */
struct segment {
	const char *key;
	size_t len;
	bool is_item;
};

enum stage {
	AT_VALUE,
	AT_FIRST_KEY, /* or the end of the object */
	AT_KEY,
	IN_KEY,
	AT_COLON,
	AT_FIRST_ITEM, /* or the end of the list */
	AFTER_VALUE,
	IN_CONTAINER,
	IN_TEXT,
	IN_BARE,
};

enum purpose { SKIPPED, RECORD, MEMBER };

/*
 * Only the containers on the way to the records are taken apart here: the
 * n-th open one is where segment n applies. Every other value is found the
 * end of, and what is wanted is then decoded in one piece.
 */
struct decoder {
	struct decoder_setup setup;
	size_t cap;
	struct segment segments[DECODE_OUTER_LEVELS];
	int segment_count;
	int open; /* containers on the way */
	enum stage stage;
	bool is_on_path; /* the value that follows */
	size_t documents;
	size_t offset; /* of the chunk in the stream */

	struct buf key;
	struct scan scan;
	enum purpose purpose;
	struct buf held;  /* of a value that began in an earlier chunk */
	const char *from; /* where the value begins in this chunk */

	struct arena arena, document_arena;
	unsigned char *record;
	bool has_failed;
};

static void cut_path(struct decoder *d, const char *path)
{
	while (*path) {
		size_t len = strcspn(path, ">");
		bool is_list = len >= 2 && !memcmp(path + len - 2, "[]", 2);
		assert(d->segment_count + 1 + is_list <= DECODE_OUTER_LEVELS);
		if (len - 2 * is_list)
			d->segments[d->segment_count++] = (struct segment){ .key = path, .len = len - 2 * is_list };
		if (is_list)
			d->segments[d->segment_count++] = (struct segment){ .is_item = true };
		path += len + (path[len] == '>');
	}
}

struct decoder *decoder_open(const struct decoder_setup *s)
{
	struct arena a = { 0 };
	struct decoder *d = xcalloc(1, sizeof *d);

	d->setup = *s;
	d->cap = s->record_cap ? s->record_cap : DECODE_RECORD_CAP;
	d->held.cap = d->cap + 1;
	d->key.cap = 4096;
	d->is_on_path = true;
	d->arena = a;
	d->record = xcalloc(1, s->records->spec->size);
	if (s->document)
		memset(s->document_record, 0, s->document->spec->size);
	cut_path(d, s->records->spec->path);
	return d;
}

void decoder_close(struct decoder *d)
{
	if (!d)
		return;
	buf_release(&d->key);
	buf_release(&d->held);
	arena_release(&d->arena);
	arena_release(&d->document_arena);
	free(d->record);
	free(d);
}

static bool failed(struct decoder *d, const char *at, const char *start, struct error *e)
{
	size_t offset = d->offset + (size_t)(at - start);

	d->has_failed = true;
	return error_wrap(e, "%s: byte %zu", d->setup.name, offset);
}

static bool unexpected(const char *p, const char *allowed, struct error *e)
{
	char room[QUOTE_ROOM];

	return error_set(e, ERROR_INVALID, "found %s; allowed: %s", quote(room, p, 1), allowed);
}

/* A whole value, in the chunk or held from several. */
static bool use_value(struct decoder *d, const char *text, size_t len, struct error *e)
{
	bool ok = true;

	if (len > d->cap)
		return error_set(e, ERROR_INVALID, "a record of more than %zu bytes", d->cap);
	if (d->purpose == MEMBER)
		return decode_member(d->setup.document, (struct decoded_text){ d->key.text, d->key.len },
				     (struct decoded_text){ text, len }, &d->document_arena, d->setup.document_record,
				     e);
	if (d->purpose == RECORD) {
		ok = decode_record(d->setup.records, text, len, &d->arena, d->record, e) &&
		     d->setup.emit(d->setup.user, d->record, e);
		arena_clear(&d->arena);
	}
	return ok;
}

static void value_is_over(struct decoder *d)
{
	if (d->held.room > 256 * 1024)
		buf_release(&d->held);
	else
		buf_clear(&d->held);
	d->documents += !d->open;
	d->stage = d->open ? AFTER_VALUE : AT_VALUE;
	d->is_on_path = !d->open;
}

static bool end_value(struct decoder *d, const char *end, struct error *e)
{
	const char *text = d->from;
	size_t len = (size_t)(end - d->from);

	if (d->held.len && d->purpose != SKIPPED) {
		buf_append(&d->held, text, len);
		text = d->held.text;
		len = d->held.len;
		if (!buf_ok(&d->held))
			return error_set(e, ERROR_INVALID, "a record of more than %zu bytes", d->cap);
	}
	if (!use_value(d, text, len, e))
		return false;
	value_is_over(d);
	return true;
}

static bool begin_value(struct decoder *d, const char **p, struct error *e)
{
	const struct segment *next = d->is_on_path && d->open < d->segment_count ? &d->segments[d->open] : NULL;
	char c = **p;

	if (next && c == (next->is_item ? '[' : '{')) {
		d->open++;
		d->stage = next->is_item ? AT_FIRST_ITEM : AT_FIRST_KEY;
		++*p;
		return true;
	}
	if (next && c != 'n')
		return unexpected(*p, next->is_item ? "a list" : "an object", e);
	if (!c || !strchr("{[\"-0123456789tfn", c))
		return unexpected(*p, "a value", e);
	if (d->is_on_path)
		d->purpose = next ? SKIPPED : RECORD;
	d->from = *p;
	d->scan = (struct scan){ 0 };
	d->stage = c == '{' || c == '[' ? IN_CONTAINER : c == '"' ? IN_TEXT : IN_BARE;
	*p += c == '"';
	return true;
}

static bool close_outer(struct decoder *d, const char **p)
{
	const struct segment *s = &d->segments[d->open - 1];

	if (**p != (s->is_item ? ']' : '}'))
		return false;
	++*p;
	d->open--;
	value_is_over(d);
	return true;
}

static bool after_value(struct decoder *d, const char **p, struct error *e)
{
	bool is_list = d->segments[d->open - 1].is_item;

	if (close_outer(d, p))
		return true;
	if (**p != ',')
		return unexpected(*p, is_list ? "',' or ']'" : "',' or '}'", e);
	++*p;
	d->stage = is_list ? AT_VALUE : AT_KEY;
	d->is_on_path = is_list;
	return true;
}

static bool begin_key(struct decoder *d, const char **p, struct error *e)
{
	if (d->stage == AT_FIRST_KEY && close_outer(d, p))
		return true;
	if (**p != '"')
		return unexpected(*p, "a key in quotes", e);
	++*p;
	buf_clear(&d->key);
	d->scan = (struct scan){ 0 };
	d->stage = IN_KEY;
	return true;
}

static bool read_key(struct decoder *d, const char **p, const char *end, struct error *e)
{
	const char *from = *p;
	bool is_whole = scan_string(&d->scan, p, end);

	buf_append(&d->key, from, (size_t)(*p - from) - is_whole);
	if (!buf_ok(&d->key))
		return error_set(e, ERROR_INVALID, "a key of more than %zu bytes", d->key.cap);
	if (is_whole)
		d->stage = AT_COLON;
	return true;
}

/* Behind the colon: what is this member for? */
static void choose_purpose(struct decoder *d)
{
	const struct segment *s = &d->segments[d->open - 1];

	d->is_on_path = d->key.len == s->len && !memcmp(d->key.text, s->key, s->len);
	d->purpose = SKIPPED;
	if (!d->is_on_path && d->open == 1 && d->setup.document &&
	    decode_child(&d->setup.document->root, d->key.text, d->key.len))
		d->purpose = MEMBER;
	d->stage = AT_VALUE;
}

static bool scan_value(struct decoder *d, const char **p, const char *end, struct error *e)
{
	bool is_over = false;

	if (d->stage == IN_CONTAINER) {
		enum scan_result result = scan_container(&d->scan, p, end);
		if (result == SCAN_UNBALANCED || result == SCAN_TOO_DEEP)
			return error_set(e, ERROR_INVALID,
					 result == SCAN_TOO_DEEP ? "more than %d levels" : "brackets that do not match",
					 DECODE_DEPTH);
		is_over = result == SCAN_DONE;
	} else if (d->stage == IN_TEXT) {
		is_over = scan_string(&d->scan, p, end);
	} else {
		while (*p < end && !strchr(",]} \t\r\n:{[\"", **p))
			++*p;
		is_over = *p < end;
	}
	return !is_over || end_value(d, *p, e);
}

static bool step(struct decoder *d, const char **p, const char *end, struct error *e)
{
	switch (d->stage) {
	case IN_KEY:
		return read_key(d, p, end, e);
	case IN_CONTAINER:
	case IN_TEXT:
	case IN_BARE:
		return scan_value(d, p, end, e);
	default:
		break;
	}
	if (**p == ' ' || **p == '\n' || **p == '\t' || **p == '\r') {
		++*p;
		return true;
	}
	switch (d->stage) {
	case AT_FIRST_ITEM:
		if (close_outer(d, p))
			return true;
		d->is_on_path = true;
		return begin_value(d, p, e);
	case AT_VALUE:
		return begin_value(d, p, e);
	case AT_FIRST_KEY:
	case AT_KEY:
		return begin_key(d, p, e);
	case AT_COLON:
		if (**p != ':')
			return unexpected(*p, "':'", e);
		++*p;
		choose_purpose(d);
		return true;
	default:
		return after_value(d, p, e);
	}
}

bool decoder_feed(struct decoder *d, const char *bytes, size_t len, struct error *e)
{
	const char *p = bytes, *end = bytes + len;

	assert(!d->has_failed);
	d->from = bytes;
	while (p < end)
		if (!step(d, &p, end, e))
			return failed(d, p, bytes, e);
	if (d->stage >= IN_CONTAINER && d->purpose != SKIPPED) {
		buf_append(&d->held, d->from, (size_t)(end - d->from));
		if (!buf_ok(&d->held)) {
			error_set(e, ERROR_INVALID, "a record of more than %zu bytes", d->cap);
			return failed(d, end, bytes, e);
		}
	}
	d->offset += len;
	return true;
}

bool decoder_finish(struct decoder *d, struct error *e)
{
	static const char nothing[] = "";

	d->from = nothing;
	if (d->stage == IN_BARE && !d->open && !end_value(d, nothing, e))
		return failed(d, nothing, nothing, e);
	if (d->stage == AT_VALUE && !d->open && (d->documents || !d->segment_count))
		return true;
	error_set(e, ERROR_INVALID, d->documents || d->offset ? "it ends in the middle" : "it is empty");
	return failed(d, nothing, nothing, e);
}
