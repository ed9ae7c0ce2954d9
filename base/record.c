#include "base/record.h"

#include "base/arena.h"
#include "base/json.h"
#include "base/quantity.h"

#include <string.h>

/* --- single values --- */

void json_member(const char *name, struct buf *out)
{
	json_write_comma(out);
	buf_printf(out, "\"%s\":", name);
}

static void write_text(const char *text, struct buf *out)
{
	if (text)
		json_write_text(text, out);
	else
		buf_text(out, "null");
}

static void write_number(int64_t value, int digits, struct buf *out)
{
	if (value == RECORD_ABSENT) {
		buf_text(out, "null");
		return;
	}
	if (value < 0)
		buf_text(out, "-");
	fixed_format(value < 0 ? -value : value, digits, out);
}

void json_member_text(const char *name, const char *text, struct buf *out)
{
	json_member(name, out);
	write_text(text, out);
}

/* --- records --- */

static void write_list(const struct record_member *m, const struct record_items *list, struct buf *out)
{
	buf_text(out, "[");
	for (size_t i = 0; i < list->count; i++) {
		if (i)
			buf_text(out, ",");
		if (m->type == RECORD_TYPE_LIST)
			record_write(m->of, (const char *)list->items + i * m->of->size, out);
		else if (m->type == RECORD_TYPE_TEXTS)
			json_write_text(((const char *const *)list->items)[i], out);
		else
			write_number(((const int64_t *)list->items)[i], m->digits, out);
	}
	buf_text(out, "]");
}

/* Whether nothing is known; the writers of single values know of RECORD_ABSENT and of times. */
static bool is_null(const struct record_member *m, const void *at)
{
	const char *text = m->type == RECORD_TYPE_CHARS ? at : NULL;

	switch (m->type) {
	case RECORD_TYPE_TEXT:
		text = *(const char *const *)at;
		return !text || (m->empty_is_null && !*text);
	case RECORD_TYPE_CHARS:
		return m->empty_is_null && !*text;
	case RECORD_TYPE_NUMBER:
		return m->empty_is_null && !*(const int64_t *)at;
	case RECORD_TYPE_POINTER:
		return !*(const void *const *)at;
	case RECORD_TYPE_LIST:
	case RECORD_TYPE_TEXTS:
	case RECORD_TYPE_NUMBERS:
		return m->may_be_null && !((const struct record_items *)at)->items;
	case RECORD_TYPE_TIME:
	case RECORD_TYPE_FLAG:
	case RECORD_TYPE_OBJECT:
	case RECORD_TYPE_OTHER:
		break;
	}
	return false;
}

static void write_value(const struct record_member *m, const void *at, struct buf *out)
{
	if (is_null(m, at)) {
		buf_text(out, "null");
		return;
	}
	switch (m->type) {
	case RECORD_TYPE_TEXT:
		json_write_text(*(const char *const *)at, out);
		break;
	case RECORD_TYPE_CHARS:
		json_write_text(at, out);
		break;
	case RECORD_TYPE_TIME:
		json_write_time(*(const millis *)at, out);
		break;
	case RECORD_TYPE_NUMBER:
		write_number(*(const int64_t *)at, m->digits, out);
		break;
	case RECORD_TYPE_FLAG:
		buf_text(out, *(const bool *)at ? "true" : "false");
		break;
	case RECORD_TYPE_OBJECT:
		record_write(m->of, at, out);
		break;
	case RECORD_TYPE_POINTER:
		record_write(m->of, *(const void *const *)at, out);
		break;
	case RECORD_TYPE_LIST:
	case RECORD_TYPE_TEXTS:
	case RECORD_TYPE_NUMBERS:
		write_list(m, at, out);
		break;
	case RECORD_TYPE_OTHER:
		break;
	}
}

void record_write_members(const struct record_shape *s, const void *record, struct buf *out)
{
	for (int is_last = 0; is_last < 2; is_last++)
		for (size_t i = 0; i < s->count; i++) {
			const struct record_member *m = &s->members[i];

			if (m->is_apart || m->is_last != is_last)
				continue;
			json_member(m->name, out);
			write_value(m, (const char *)record + m->offset, out);
		}
}

void record_write(const struct record_shape *s, const void *record, struct buf *out)
{
	buf_text(out, "{");
	record_write_members(s, record, out);
	buf_text(out, "}");
}

/* --- schemas --- */

void json_schema_type(const char *types, bool may_be_null, struct buf *out)
{
	bool is_list = may_be_null || strchr(types, ',');

	json_member("type", out);
	buf_text(out, is_list ? "[" : "");
	for (const char *at = types; *at;) {
		int len = (int)strcspn(at, ",");

		json_write_comma(out);
		buf_printf(out, "\"%.*s\"", len, at);
		at += len + (at[len] == ',');
	}
	if (may_be_null)
		buf_text(out, ",\"null\"");
	buf_text(out, is_list ? "]" : "");
}

void json_schema_ref(const char *name, struct buf *out)
{
	buf_printf(out, "{\"$ref\":\"#/components/schemas/%s\"}", name);
}

static void write_choices(const struct record_member *m, struct buf *out)
{
	json_member("enum", out);
	buf_text(out, "[");
	for (const char *const *c = m->choices; *c; c++) {
		json_write_comma(out);
		json_write_text(*c, out);
	}
	buf_text(out, m->may_be_null ? ",null]" : "]");
}

static void write_array(const struct record_member *m, struct buf *out)
{
	json_schema_type("array", m->may_be_null, out);
	json_member("items", out);
	if (m->type == RECORD_TYPE_LIST) {
		json_schema_ref(m->of->name, out);
		return;
	}
	buf_text(out, "{");
	json_schema_type(m->type == RECORD_TYPE_TEXTS ? "string" : "number", m->type == RECORD_TYPE_NUMBERS, out);
	buf_text(out, "}");
}

static void write_type(const struct record_member *m, struct buf *out)
{
	bool may_be_null = m->may_be_null || m->empty_is_null;

	switch (m->type) {
	case RECORD_TYPE_TEXT:
	case RECORD_TYPE_CHARS:
	case RECORD_TYPE_TIME:
		json_schema_type("string", may_be_null, out);
		if (m->type == RECORD_TYPE_TIME)
			json_member_text("format", "date-time", out);
		if (m->choices)
			write_choices(m, out);
		break;
	case RECORD_TYPE_NUMBER:
		json_schema_type(m->digits ? "number" : "integer", may_be_null, out);
		break;
	case RECORD_TYPE_FLAG:
		json_schema_type("boolean", may_be_null, out);
		break;
	case RECORD_TYPE_LIST:
	case RECORD_TYPE_TEXTS:
	case RECORD_TYPE_NUMBERS:
		write_array(m, out);
		break;
	case RECORD_TYPE_OBJECT:
	case RECORD_TYPE_POINTER:
		json_member("oneOf", out);
		buf_text(out, "[");
		json_schema_ref(m->of->name, out);
		buf_text(out, may_be_null ? ",{\"type\":\"null\"}]" : "]");
		break;
	case RECORD_TYPE_OTHER:
		m->schema(out);
		break;
	}
}

static bool is_done(const char *name, const struct buf *done)
{
	CLEANUP(buf_release) struct buf marked = { 0 };

	buf_printf(&marked, "|%s|", name);
	return done->text && strstr(done->text, marked.text);
}

void record_write_schemas(const struct record_shape *s, struct buf *done, struct buf *out)
{
	if (is_done(s->name, done))
		return;
	buf_printf(done, "|%s|", s->name);
	json_write_comma(out);
	buf_printf(out, "\n\"%s\":{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{", s->name);
	for (size_t i = 0; i < s->count; i++) {
		json_member(s->members[i].name, out);
		buf_text(out, "{");
		write_type(&s->members[i], out);
		json_member_text("description", s->members[i].help, out);
		buf_text(out, "}");
	}
	buf_text(out, "},\"required\":[");
	for (size_t i = 0; i < s->count; i++) {
		json_write_comma(out);
		json_write_text(s->members[i].name, out);
	}
	buf_text(out, "]}");
	for (size_t i = 0; i < s->count; i++)
		if (s->members[i].of)
			record_write_schemas(s->members[i].of, done, out);
}
