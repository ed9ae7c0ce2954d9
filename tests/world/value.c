#include "tests/world/value.h"

#include "base/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
	const char *at, *end;
	bool is_bad;
};

static struct value *value_new(enum value_kind kind)
{
	struct value *v = calloc(1, sizeof *v);

	if (!v)
		abort();
	v->kind = kind;
	return v;
}

static char *copy_of(const char *text, size_t len)
{
	char *to = strndup(text, len);

	if (!to)
		abort();
	return to;
}

static char next_of(struct reader *r)
{
	while (r->at < r->end && strchr(" \t\r\n", *r->at))
		r->at++;
	return r->at < r->end ? *r->at : '\0';
}

static void write_rune(unsigned rune, struct buf *out)
{
	char text[3];

	if (rune < 0x80) {
		text[0] = (char)rune;
		buf_append(out, text, 1);
	} else {
		text[0] = (char)(0xe0 | rune >> 12);
		text[1] = (char)(0x80 | (rune >> 6 & 0x3f));
		text[2] = (char)(0x80 | (rune & 0x3f));
		if (rune < 0x800)
			text[1] = (char)(0xc0 | rune >> 6);
		buf_append(out, rune < 0x800 ? text + 1 : text, rune < 0x800 ? 2 : 3);
	}
}

static void read_escape(struct reader *r, struct buf *out)
{
	static const char names[] = "nrtbf", stands[] = "\n\r\t\b\f";
	char c = r->at < r->end ? *r->at++ : '\0';
	const char *named = c ? strchr(names, c) : NULL;

	if (named) {
		buf_append(out, &stands[named - names], 1);
	} else if (c == 'u' && r->end - r->at >= 4) {
		char digits[5] = { r->at[0], r->at[1], r->at[2], r->at[3], '\0' };
		write_rune((unsigned)strtoul(digits, NULL, 16), out);
		r->at += 4;
	} else {
		buf_append(out, &c, 1);
	}
}

static char *read_text(struct reader *r)
{
	struct buf out = { 0 };

	buf_text(&out, "");
	r->at++; /* the quote */
	while (r->at < r->end && *r->at != '"') {
		const char *from = r->at;
		while (r->at < r->end && *r->at != '"' && *r->at != '\\')
			r->at++;
		buf_append(&out, from, (size_t)(r->at - from));
		if (r->at < r->end && *r->at == '\\') {
			r->at++;
			read_escape(r, &out);
		}
	}
	r->is_bad |= r->at == r->end;
	r->at++;
	return out.text;
}

static struct value *read_value(struct reader *r);

static struct value *read_members(struct reader *r, enum value_kind kind, char close)
{
	struct value *v = value_new(kind), **end = &v->first;

	r->at++;
	while (!r->is_bad && next_of(r) != close) {
		char *key = NULL;
		if (kind == VALUE_OBJECT) {
			r->is_bad |= next_of(r) != '"';
			key = r->is_bad ? NULL : read_text(r);
			r->is_bad |= next_of(r) != ':';
			r->at++;
		}
		*end = read_value(r);
		(*end)->key = key;
		end = &(*end)->next;
		if (next_of(r) == ',')
			r->at++;
		else
			r->is_bad |= next_of(r) != close;
	}
	r->at++;
	return v;
}

static struct value *read_value(struct reader *r)
{
	char c = next_of(r);

	if (c == '{')
		return read_members(r, VALUE_OBJECT, '}');
	if (c == '[')
		return read_members(r, VALUE_LIST, ']');
	struct value *v = value_new(c == '"' ? VALUE_TEXT : VALUE_PLAIN);
	if (c == '"') {
		v->text = read_text(r);
		return v;
	}
	const char *from = r->at;
	while (r->at < r->end && !strchr(",]} \t\r\n", *r->at))
		r->at++;
	r->is_bad |= r->at == from;
	v->text = copy_of(from, (size_t)(r->at - from));
	return v;
}

struct value *value_parse(const char *text, size_t len)
{
	struct reader r = { text, text + len, false };
	struct value *v = read_value(&r);

	if (r.is_bad || next_of(&r)) {
		value_free(v);
		return NULL;
	}
	return v;
}

struct value *value_of(const char *fmt, ...)
{
	struct buf text = { 0 };
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	for (char *c = text.text; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	struct value *v = value_parse(text.text, text.len);
	if (!v) {
		fprintf(stderr, "no JSON: %s\n", text.text);
		abort();
	}
	buf_release(&text);
	return v;
}

struct value *value_copy(const struct value *v)
{
	struct value *to = value_new(v->kind), **end = &to->first;

	to->key = v->key ? copy_of(v->key, strlen(v->key)) : NULL;
	to->text = v->text ? copy_of(v->text, strlen(v->text)) : NULL;
	for (const struct value *m = v->first; m; m = m->next, end = &(*end)->next)
		*end = value_copy(m);
	return to;
}

void value_free(struct value *v)
{
	while (v) {
		struct value *next = v->next;
		value_free(v->first);
		free(v->key);
		free(v->text);
		free(v);
		v = next;
	}
}

void value_print(const struct value *v, struct buf *out)
{
	if (v->kind == VALUE_PLAIN)
		buf_text(out, v->text);
	else if (v->kind == VALUE_TEXT)
		json_write_text(v->text, out);
	else
		buf_text(out, v->kind == VALUE_LIST ? "[" : "{");
	for (const struct value *m = v->first; m; m = m->next) {
		if (m != v->first)
			buf_text(out, ",");
		if (m->key) {
			json_write_text(m->key, out);
			buf_text(out, ":");
		}
		value_print(m, out);
	}
	if (v->kind >= VALUE_LIST)
		buf_text(out, v->kind == VALUE_LIST ? "]" : "}");
}

static struct value **member(struct value *v, const char *key, size_t len)
{
	struct value **m = &v->first;

	/* The first character nearly always decides, and worlds spend much of their time here. */
	while (*m && ((*m)->key[0] != key[0] || strncmp((*m)->key, key, len) != 0 || (*m)->key[len]))
		m = &(*m)->next;
	return m;
}

struct value *value_at(const struct value *v, const char *path)
{
	while (v && *path) {
		size_t len = strcspn(path, ">");
		v = v->kind == VALUE_OBJECT ? *member((struct value *)(uintptr_t)v, path, len) : NULL;
		path += len + (path[len] == '>');
	}
	return (struct value *)(uintptr_t)v;
}

const char *value_text(const struct value *v, const char *path)
{
	const struct value *found = value_at(v, path);

	return found && found->text ? found->text : "";
}

int64_t value_int(const struct value *v, const char *path)
{
	return strtoll(value_text(v, path), NULL, 10);
}

bool value_is(const struct value *v, const char *path, const char *text)
{
	return !strcmp(value_text(v, path), text);
}

void value_set(struct value *v, const char *path, struct value *item)
{
	for (;;) {
		size_t len = strcspn(path, ">");
		struct value **m = member(v, path, len);
		if (path[len]) {
			if (!*m && item) {
				*m = value_new(VALUE_OBJECT);
				(*m)->key = copy_of(path, len);
			}
			if (!*m)
				return;
			v = *m;
			path += len + 1;
			continue;
		}
		struct value *old = *m, *rest = old ? old->next : NULL;
		*m = item ? item : rest;
		if (item) {
			free(item->key);
			item->key = copy_of(path, len);
			item->next = rest;
		}
		if (old)
			old->next = NULL;
		value_free(old);
		return;
	}
}

void value_set_text(struct value *v, const char *path, const char *text)
{
	struct value *t = value_new(VALUE_TEXT);

	t->text = copy_of(text, strlen(text));
	value_set(v, path, t);
}

void value_set_int(struct value *v, const char *path, int64_t number)
{
	value_set(v, path, value_of("%lld", (long long)number));
}

void value_add(struct value *list, struct value *item)
{
	struct value **end = &list->first;

	while (*end)
		end = &(*end)->next;
	*end = item;
}

void value_merge(struct value *v, const struct value *patch)
{
	for (const struct value *m = patch->first; m; m = m->next) {
		struct value *there = *member(v, m->key, strlen(m->key));
		bool is_null = m->kind == VALUE_PLAIN && !strcmp(m->text, "null");
		if (is_null) {
			struct value **place = member(v, m->key, strlen(m->key));
			if (there) {
				*place = there->next;
				there->next = NULL;
				value_free(there);
			}
		} else if (m->kind == VALUE_OBJECT) {
			if (!there || there->kind != VALUE_OBJECT) {
				struct value *fresh = value_new(VALUE_OBJECT), **place;
				fresh->key = copy_of(m->key, strlen(m->key));
				place = member(v, m->key, strlen(m->key));
				if (there) {
					fresh->next = there->next;
					there->next = NULL;
					value_free(there);
				}
				*place = fresh;
				there = fresh;
			}
			value_merge(there, m);
		} else {
			struct value *fresh = value_copy(m), **place = member(v, m->key, strlen(m->key));
			if (there) {
				fresh->next = there->next;
				there->next = NULL;
				value_free(there);
			}
			*place = fresh;
		}
	}
}

bool value_equal(const struct value *a, const struct value *b)
{
	if (!a || !b)
		return a == b;
	if (a->kind != b->kind || strcmp(a->text ? a->text : "", b->text ? b->text : "") ||
	    strcmp(a->key ? a->key : "", b->key ? b->key : ""))
		return false;
	const struct value *x = a->first, *y = b->first;
	for (; x && y; x = x->next, y = y->next)
		if (!value_equal(x, y))
			return false;
	return !x && !y;
}
