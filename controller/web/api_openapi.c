/* The OpenAPI document, from the table that serves requests. */
#include "base/json.h"
#include "controller/web/api_call.h"
#include "controller/web/refusal.h"

#include <string.h>

static const char TIME_PATTERN[] = "^(now|[-+][0-9.]+[smhdw]|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
				   "([.][0-9]{1,3})?(Z|[-+][0-9]{2}:[0-9]{2}))$";
static const char LABEL_PATTERN[] = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"; /* a name of Kubernetes */

/* --- parameters --- */

static void write_parameter_type(const struct api_parameter *p, struct buf *out)
{
	switch (p->kind) {
	case PARAMETER_TEXT:
		buf_printf(out, "{\"type\":\"string\",\"minLength\":1,\"maxLength\":%lld}", (long long)p->max);
		return;
	case PARAMETER_TIME:
		buf_text(out, "{\"type\":\"string\"");
		json_member_text("pattern", TIME_PATTERN, out);
		buf_text(out, "}");
		return;
	case PARAMETER_FLAG:
		buf_text(out, "{\"type\":\"boolean\",\"default\":false}");
		return;
	case PARAMETER_COUNT:
		buf_printf(out, "{\"type\":\"integer\",\"minimum\":%lld,\"maximum\":%lld", (long long)p->min,
			   (long long)p->max);
		if (p->fallback >= p->min)
			buf_printf(out, ",\"default\":%lld", (long long)p->fallback);
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
	json_write_comma(out);
	buf_text(out, "{");
	json_member_text("name", p->name, out);
	json_member_text("in", "query", out);
	json_member_text("description", p->help, out);
	json_member("schema", out);
	write_parameter_type(p, out);
	buf_text(out, "}");
}

static void write_places(const char *path, struct buf *out)
{
	for (const char *at = strchr(path, '{'); at; at = strchr(at + 1, '{')) {
		int len = (int)strcspn(at + 1, "}");
		bool is_number = !strncmp(at + 1, "tick", (size_t)len);

		json_write_comma(out);
		buf_printf(out, "{\"name\":\"%.*s\",\"in\":\"path\",\"required\":true,\"schema\":{", len, at + 1);
		if (is_number) {
			buf_text(out, "\"type\":\"integer\",\"minimum\":0,\"maximum\":1000000000000");
		} else {
			buf_text(out, "\"type\":\"string\",\"maxLength\":253");
			json_member_text("pattern", LABEL_PATTERN, out);
		}
		buf_text(out, "}}");
	}
}

/* --- routes --- */

static void write_refusal(const char *status, const char *help, struct buf *out)
{
	json_member(status, out);
	buf_text(out, "{");
	json_member_text("description", help, out);
	buf_text(out, ",\"content\":{\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/Error\"}}}}");
}

static void write_answers(const struct api_route *r, struct buf *out)
{
	CLEANUP(buf_release) struct buf status = { 0 };

	buf_printf(&status, "%d", r->status ? r->status : 200);
	json_member("responses", out);
	buf_text(out, "{");
	json_member(status.text, out);
	buf_text(out, "{");
	json_member_text("description", r->summary, out);
	buf_printf(out, ",\"content\":{\"%s\":{\"schema\":", r->content_type ? r->content_type : "application/json");
	if (r->answer)
		json_schema_ref(r->answer->name, out);
	else
		buf_text(out, r->content_type ? "{\"type\":\"string\"}" : "{\"type\":\"object\"}");
	buf_text(out, "}}}");
	write_refusal("400", "the request is wrong: where, what was found, what is allowed", out);
	write_refusal("404", "there is no such thing", out);
	write_refusal("default", "another refusal", out);
	buf_text(out, "}");
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
	json_member(method.text, out);
	buf_text(out, "{");
	json_member_text("operationId", r->name, out);
	json_member_text("summary", r->summary, out);
	json_member("parameters", out);
	buf_text(out, "[");
	write_places(r->path, out);
	for (size_t i = 0; i < r->parameter_count; i++)
		write_parameter(&r->parameters[i], out);
	buf_text(out, "]");
	write_body(r, out);
	write_answers(r, out);
	buf_text(out, "}");
}

/* Methods of one path stand together. */
static void write_paths(struct buf *out)
{
	json_member("paths", out);
	buf_text(out, "{");
	for (size_t i = 0; api_routes[i]; i++) {
		bool is_first = !i || strcmp(api_routes[i - 1]->path, api_routes[i]->path) != 0;
		bool is_last = !api_routes[i + 1] || strcmp(api_routes[i + 1]->path, api_routes[i]->path) != 0;

		if (is_first) {
			json_write_comma(out);
			buf_printf(out, "\n\"%s\":{", api_routes[i]->path);
		}
		write_route(api_routes[i], out);
		if (is_last)
			buf_text(out, "}");
	}
	buf_text(out, "}");
}

static void write_shapes(struct buf *out)
{
	CLEANUP(buf_release) struct buf done = { 0 };

	buf_text(out, ",\n\"components\":{\"schemas\":{");
	for (size_t i = 0; api_routes[i]; i++)
		if (api_routes[i]->answer)
			record_write_schemas(api_routes[i]->answer, &done, out);
	record_write_schemas(&refusal_shape, &done, out);
	buf_text(out, "}}");
}

void web_api_write_openapi(struct buf *out)
{
	buf_text(out, "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"Preheat\",\"version\":\"v1\"");
	json_member_text(
		"description",
		"What a history and a running controller know. Read-only but for what-if. Times are RFC 3339 in UTC; "
		"in columns of numbers they are Unix seconds. Money is dollars, shares are 0 to 1, durations are "
		"seconds. What is not known is null, never 0.",
		out);
	buf_text(out, "},\n\"servers\":[{\"url\":\"/\"}]");
	write_paths(out);
	write_shapes(out);
	buf_text(out, "}\n");
}

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
