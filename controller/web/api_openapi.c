/* The OpenAPI document, from the table that serves requests. */
#include "base/json.h"
#include "controller/web/api_parts.h"

#include <string.h>

static const char TIME_PATTERN[] = "^(now|[-+][0-9.]+[smhdw]|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
				   "([.][0-9]{1,3})?(Z|[-+][0-9]{2}:[0-9]{2}))$";
static const char LABEL_PATTERN[] = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"; /* a name of Kubernetes */

/* --- shapes --- */

/* `types`: names between commas. */
static void write_types(const char *types, bool may_be_null, struct buf *out)
{
	bool is_list = may_be_null || strchr(types, ',');

	member_key(out, "type");
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

static void write_ref(const char *kind, const char *name, struct buf *out)
{
	buf_printf(out, "{\"$ref\":\"#/components/%s/%s\"}", kind, name);
}

static void write_choices(const struct api_member *m, struct buf *out)
{
	member_list(out, "enum");
	for (const char *const *c = m->choices; *c; c++) {
		json_write_comma(out);
		json_write_text(*c, out);
	}
	if (m->may_be_null)
		buf_text(out, ",null");
	bracket_end(out, ']');
}

static void write_fields(const struct record_info *record, struct buf *out)
{
	write_types("object", false, out);
	member_object(out, "properties");
	for (size_t i = 0; i < record->count; i++) {
		const struct field_info *f = &record->fields[i];
		CLEANUP(buf_release) struct buf help = { 0 };
		bool is_enum = !strncmp(f->unit, "enum:", 5), is_time = !strcmp(f->unit, "time");

		buf_printf(&help, "%s (%s)", f->help, f->unit);
		member_object(out, f->name);
		write_types(is_enum ? "string,integer" : is_time ? "string" : "integer", true, out);
		member_text(out, "description", help.text);
		bracket_end(out, '}');
	}
	bracket_end(out, '}');
}

static void write_items(const char *types, bool may_be_null, struct buf *out)
{
	member_object(out, "items");
	write_types(types, may_be_null, out);
	bracket_end(out, '}');
}

static void write_type(const struct api_member *m, struct buf *out)
{
	switch (m->kind) {
	case API_TEXT:
	case API_TIME:
		write_types("string", m->may_be_null, out);
		if (m->kind == API_TIME)
			member_text(out, "format", "date-time");
		if (m->choices)
			write_choices(m, out);
		return;
	case API_COUNT:
	case API_NUMBER:
		write_types(m->kind == API_COUNT ? "integer" : "number", m->may_be_null, out);
		return;
	case API_FLAG:
		write_types("boolean", m->may_be_null, out);
		return;
	case API_TEXTS:
		write_types("array", m->may_be_null, out);
		write_items("string", false, out);
		return;
	case API_NUMBERS:
		write_types("array", m->may_be_null, out);
		write_items("number", true, out);
		return;
	case API_FIELDS:
		write_fields(m->record, out);
		return;
	case API_OPEN:
	case API_OPEN_LIST:
		write_types(m->kind == API_OPEN ? "object" : "array", m->may_be_null, out);
		if (m->kind == API_OPEN_LIST)
			write_items("object", false, out);
		return;
	case API_LIST:
		write_types("array", m->may_be_null, out);
		member_key(out, "items");
		write_ref("schemas", m->of->name, out);
		return;
	case API_OBJECT:
		break;
	}
	member_list(out, "oneOf");
	write_ref("schemas", m->of->name, out);
	buf_text(out, m->may_be_null ? ",{\"type\":\"null\"}]" : "]");
}

static bool is_in(const char *name, const struct buf *names)
{
	CLEANUP(buf_release) struct buf marked = { 0 };

	buf_printf(&marked, "|%s|", name);
	return names->text && strstr(names->text, marked.text);
}

/* With all that it is made of; `done` has the names of those that were written. */
static void write_shape(const struct api_shape *s, struct buf *done, struct buf *out)
{
	if (is_in(s->name, done))
		return;
	buf_printf(done, "|%s|", s->name);
	json_write_comma(out);
	buf_printf(out, "\n\"%s\":{\"type\":\"object\",\"additionalProperties\":false", s->name);
	member_object(out, "properties");
	for (size_t i = 0; i < s->count; i++) {
		member_object(out, s->members[i].name);
		write_type(&s->members[i], out);
		member_text(out, "description", s->members[i].help);
		bracket_end(out, '}');
	}
	bracket_end(out, '}');
	member_list(out, "required");
	for (size_t i = 0; i < s->count; i++) {
		json_write_comma(out);
		json_write_text(s->members[i].name, out);
	}
	buf_text(out, "]}");
	for (size_t i = 0; i < s->count; i++)
		if (s->members[i].of)
			write_shape(s->members[i].of, done, out);
}

/* --- parameters --- */

static void write_parameter_type(const struct api_parameter *p, struct buf *out)
{
	switch (p->kind) {
	case PARAMETER_TEXT:
		buf_printf(out, "{\"type\":\"string\",\"minLength\":1,\"maxLength\":%lld}", (long long)p->max);
		return;
	case PARAMETER_TIME:
		buf_text(out, "{\"type\":\"string\"");
		member_text(out, "pattern", TIME_PATTERN);
		buf_text(out, "}");
		return;
	case PARAMETER_FLAG:
		buf_text(out, "{\"type\":\"boolean\",\"default\":false}");
		return;
	case PARAMETER_COUNT:
		buf_printf(out, "{\"type\":\"integer\",\"minimum\":%lld,\"maximum\":%lld", (long long)p->min,
			   (long long)p->max);
		if (p->fallback >= p->min)
			member_count(out, "default", p->fallback);
		buf_text(out, "}");
		return;
	case PARAMETER_CHOICE:
		break;
	}
	buf_text(out, "{\"type\":\"string\",\"enum\":[");
	for (const char *at = p->choices; *at;) {
		int len = (int)strcspn(at, "|");

		json_write_comma(out);
		buf_printf(out, "\"%.*s\"", len, at);
		at += len + (at[len] == '|');
	}
	buf_text(out, "]}");
}

static void write_parameter(const struct api_parameter *p, struct buf *out)
{
	item_begin(out);
	member_text(out, "name", p->name);
	member_text(out, "in", "query");
	member_text(out, "description", p->help);
	member_key(out, "schema");
	write_parameter_type(p, out);
	bracket_end(out, '}');
}

static void write_places(const char *path, struct buf *out)
{
	for (const char *at = strchr(path, '{'); at; at = strchr(at + 1, '{')) {
		int len = (int)strcspn(at + 1, "}");
		bool is_number = !strncmp(at + 1, "tick", (size_t)len);

		item_begin(out);
		buf_printf(out, "\"name\":\"%.*s\",\"in\":\"path\",\"required\":true,\"schema\":{", len, at + 1);
		if (is_number) {
			buf_text(out, "\"type\":\"integer\",\"minimum\":0,\"maximum\":1000000000000");
		} else {
			buf_text(out, "\"type\":\"string\",\"maxLength\":253");
			member_text(out, "pattern", LABEL_PATTERN);
		}
		buf_text(out, "}}");
	}
}

/* --- routes --- */

static void write_refusal(const char *status, const char *help, struct buf *out)
{
	member_object(out, status);
	member_text(out, "description", help);
	buf_text(out, ",\"content\":{\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/Error\"}}}}");
}

static void write_answers(const struct api_route *r, struct buf *out)
{
	CLEANUP(buf_release) struct buf status = { 0 };

	buf_printf(&status, "%d", r->status ? r->status : 200);
	member_object(out, "responses");
	member_object(out, status.text);
	member_text(out, "description", r->summary);
	buf_printf(out, ",\"content\":{\"%s\":{\"schema\":", r->content_type ? r->content_type : "application/json");
	if (r->answer)
		write_ref("schemas", r->answer->name, out);
	else
		buf_text(out, r->content_type ? "{\"type\":\"string\"}" : "{\"type\":\"object\"}");
	buf_text(out, "}}}");
	write_refusal("400", "the request is wrong: where, what was found, what is allowed", out);
	write_refusal("404", "there is no such thing", out);
	write_refusal("default", "another refusal", out);
	bracket_end(out, '}');
}

static void write_body(const struct api_route *r, struct buf *out)
{
	if (!r->body)
		return;
	buf_text(out, ",\"requestBody\":{\"required\":true,\"content\":{\"application/json\":{\"schema\":");
	buf_text(out, r->body);
	buf_text(out, "}}}");
}

static void write_route(const struct api_route *r, struct buf *out)
{
	CLEANUP(buf_release) struct buf method = { 0 };

	buf_text(&method, !strcmp(r->method, "GET") ? "get" : !strcmp(r->method, "POST") ? "post" : "delete");
	member_object(out, method.text);
	member_text(out, "operationId", r->name);
	member_text(out, "summary", r->summary);
	member_list(out, "parameters");
	write_places(r->path, out);
	for (size_t i = 0; i < r->parameter_count; i++)
		write_parameter(&r->parameters[i], out);
	bracket_end(out, ']');
	write_body(r, out);
	write_answers(r, out);
	bracket_end(out, '}');
}

/* Methods of one path stand together. */
static void write_paths(struct buf *out)
{
	member_object(out, "paths");
	for (size_t i = 0; api_routes[i]; i++) {
		bool is_first = !i || strcmp(api_routes[i - 1]->path, api_routes[i]->path) != 0;
		bool is_last = !api_routes[i + 1] || strcmp(api_routes[i + 1]->path, api_routes[i]->path) != 0;

		if (is_first) {
			json_write_comma(out);
			buf_printf(out, "\n\"%s\":{", api_routes[i]->path);
		}
		write_route(api_routes[i], out);
		if (is_last)
			bracket_end(out, '}');
	}
	bracket_end(out, '}');
}

static void write_shapes(struct buf *out)
{
	CLEANUP(buf_release) struct buf done = { 0 };

	buf_text(out, ",\n\"components\":{\"schemas\":{");
	for (size_t i = 0; api_routes[i]; i++)
		if (api_routes[i]->answer)
			write_shape(api_routes[i]->answer, &done, out);
	write_shape(&api_error_shape, &done, out);
	buf_text(out, "}}");
}

void web_api_write_openapi(struct buf *out)
{
	buf_text(out, "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"Preheat\",\"version\":\"v1\"");
	member_text(
		out, "description",
		"What a history and a running controller know. Read-only but for what-if. Times are RFC 3339 in UTC; "
		"in columns of numbers they are Unix seconds. Money is dollars, shares are 0 to 1, durations are "
		"seconds. What is not known is null, never 0.");
	buf_text(out, "},\n\"servers\":[{\"url\":\"/\"}]");
	write_paths(out);
	write_shapes(out);
	buf_text(out, "}\n");
}

static const struct api_member error_members[] = {
	{ "code", API_COUNT, .help = "the HTTP status" },
	{ "reason", API_TEXT, .help = "in one word" },
	{ "message", API_TEXT, .help = "where, what was found, what is allowed, what to do" },
};
static const struct api_shape cause_shape = API_SHAPE("Cause", error_members);
static const struct api_member members[] = { { "error", API_OBJECT, .help = "why", .of = &cause_shape } };
const struct api_shape api_error_shape = API_SHAPE("Error", members);

static bool write_openapi(struct api_call *c, struct buf *out, struct error *e)
{
	(void)c;
	(void)e;
	web_api_write_openapi(out);
	return true;
}

const struct api_route api_route_openapi = {
	.method = "GET",
	.path = "/api/v1/openapi.json",
	.name = "getOpenAPI",
	.summary = "This document",
	.write = write_openapi,
};
