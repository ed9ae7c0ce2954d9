#include "controller/web/api.h"

#include "base/json_write.h"
#include "controller/web/api_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUTE(name) extern const struct api_route api_route_##name;
#include "controller/web/api_routes.def"
#undef ROUTE

const struct api_route *const api_routes[] = {
#define ROUTE(name) &api_route_##name,
#include "controller/web/api_routes.def"
#undef ROUTE
	NULL
};

struct web_api {
	struct web_api_setup setup;
	struct api_source *source;
	char allow[80]; /* a header line, until it is sent */
};

struct web_api *web_api_open(const struct web_api_setup *setup)
{
	struct web_api *a = calloc(1, sizeof *a);

	if (!a)
		abort();
	a->setup = *setup;
	a->source = api_source_open(setup->history);
	return a;
}

void web_api_close(struct web_api *a)
{
	if (!a)
		return;
	api_source_close(a->source);
	free(a);
}

const struct published *api_shown(const struct api_call *c)
{
	return c->api->setup.shown;
}

const struct web_api_setup *api_setup(const struct api_call *c)
{
	return &c->api->setup;
}

const struct api_fleet *api_fleet_at(struct api_call *c, int64_t tick, struct error *e)
{
	return api_source_fleet(c->api->source, tick, e);
}

/* --- errors --- */

static const char *reason_of(int status)
{
	switch (status) {
	case 400:
		return "BadRequest";
	case 401:
		return "Unauthorized";
	case 403:
		return "Forbidden";
	case 404:
		return "NotFound";
	case 405:
		return "MethodNotAllowed";
	case 409:
		return "Conflict";
	case 413:
		return "TooLarge";
	case 429:
		return "TooManyRequests";
	case 503:
		return "Unavailable";
	default:
		return "InternalError";
	}
}

void api_write_error(int status, const char *message, struct buf *out)
{
	buf_text(out, "{");
	member_object(out, "error");
	member_count(out, "code", status);
	member_text(out, "reason", reason_of(status));
	member_text(out, "message", message);
	buf_text(out, "}}\n");
}

static int status_of(const struct error *e)
{
	switch (e->kind) {
	case ERROR_NOT_FOUND:
		return 404;
	case ERROR_UNAVAILABLE:
	case ERROR_TIMEOUT:
	case ERROR_THROTTLED:
		return 503;
	case ERROR_CONFLICT:
		return 409;
	case ERROR_NONE:
	case ERROR_STOCKOUT:
	case ERROR_QUOTA:
	case ERROR_AUTH:
	case ERROR_INVALID:
	case ERROR_CANCELLED:
	case ERROR_INTERNAL:
		break;
	}
	return 500;
}

/* --- serving --- */

bool api_try_history(struct api_call *c, struct error *e)
{
	c->history = api_source_history(c->api->source, e);
	if (!c->history)
		return api_refuse(c, e, 503, "%s", e->message);
	if (!history_span(c->history, &c->span, e))
		return false;
	return c->span.last_tick >= c->span.first_tick ||
	       api_refuse(c, e, 503, "%s: no decisions in it yet; try again after the first tick",
			  history_path(c->history));
}

static bool answer(struct api_call *c, struct buf *out, struct error *e)
{
	if (!api_take_query(c, e) || (c->route->needs_history && !api_try_history(c, e)))
		return false;
	return c->route->write(c, out, e);
}

static int serve_route(struct api_call *c, struct buf *out)
{
	struct error e = { 0 };

	if (answer(c, out, &e) && buf_ok(out))
		return c->status ? c->status : c->route->status ? c->route->status : 200;
	int status = c->status ? c->status : status_of(&e);
	buf_clear(out);
	api_write_error(status, *e.message ? e.message : "the answer is too large; ask for less", out);
	return status;
}

static void add_method(struct buf *allow, const char *method)
{
	buf_printf(allow, "%s%s%s", allow->len ? ", " : "Allow: ", method, !strcmp(method, "GET") ? ", HEAD" : "");
}

int api_serve(struct web_api *a, const struct api_request *r, struct buf *out, struct buf *allow)
{
	for (size_t i = 0; api_routes[i]; i++) {
		struct api_call c = { .api = a, .request = r, .route = api_routes[i] };

		if (!api_path_fits(&c, c.route->path, r->path)) {
			arena_release(&c.arena);
			continue;
		}
		if (!strcmp(c.route->method, r->method)) {
			buf_clear(allow);
			int status = serve_route(&c, out);
			arena_release(&c.arena);
			return status;
		}
		add_method(allow, c.route->method);
		arena_release(&c.arena);
	}
	if (!allow->len) {
		api_write_error(404, "there is no such path; GET /api/v1/openapi.json tells those that there are", out);
		return 404;
	}
	CLEANUP(buf_release) struct buf message = { 0 };
	buf_printf(&message, "found the method %.10s; allowed here: %s", r->method, allow->text + strlen("Allow: "));
	api_write_error(405, message.text, out);
	return 405;
}

void web_api_answer(const struct server_request *q, struct server_answer *a)
{
	struct server_pair pairs[PAIRS_MAX];
	const struct api_request r = { .method = q->method,
				       .path = q->path,
				       .pairs = pairs,
				       .pair_count = server_query_pairs(q, pairs, PAIRS_MAX),
				       .body = q->body,
				       .body_len = q->body_len };
	CLEANUP(buf_release) struct buf allow = { 0 };
	struct web_api *api = q->user;

	a->content_type = "application/json";
	a->headers[0] = "Cache-Control: no-store";
	a->status = api_serve(api, &r, &a->body, &allow);
	if (!allow.len)
		return;
	snprintf(api->allow, sizeof api->allow, "%s", allow.text);
	a->headers[1] = api->allow;
}

void web_api_refuse(struct server_answer *a, const char *text)
{
	a->content_type = "application/json";
	a->headers[1] = "Cache-Control: no-store";
	api_write_error(a->status, text, &a->body);
}
