#include "controller/web/api.h"

#include "base/json.h"
#include "controller/web/api_call.h"
#include "controller/web/api_events.h"
#include "controller/web/page_assets.h"
#include "controller/web/refusal.h"
#include "controller/web/what_if.h"

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
	const struct published *shown;
	struct api_source *source;
	struct api_events *events;
	struct what_ifs *what_ifs;
	char allow[80]; /* a header line, until it is sent */
};

struct web_api *web_api_open(const struct web_api_setup *setup)
{
	struct web_api *a = calloc(1, sizeof *a);

	if (!a)
		abort();
	a->setup = *setup;
	a->source = api_source_open(setup->history);
	a->events = api_events_open(setup->loop, a->source);
	if (setup->program)
		a->what_ifs = what_ifs_open(&(struct what_ifs_setup){ setup->loop, setup->program, setup->history });
	return a;
}

void web_api_close(struct web_api *a)
{
	if (!a)
		return;
	what_ifs_close(a->what_ifs);
	api_events_close(a->events);
	api_source_close(a->source);
	free(a);
}

const struct published *api_shown(const struct api_call *c)
{
	return c->api->shown;
}

const struct web_api_setup *api_setup(const struct api_call *c)
{
	return &c->api->setup;
}

struct api_events *api_events_of(const struct api_call *c)
{
	return c->api->events;
}

struct what_ifs *api_what_ifs(const struct api_call *c)
{
	return c->api->what_ifs;
}

void web_api_show(struct web_api *a, const struct published *p)
{
	a->shown = p;
}

const struct api_fleet *api_fleet_at(struct api_call *c, int64_t tick, struct error *e)
{
	return api_source_fleet(c->api->source, tick, e);
}

/* --- errors --- */

void api_write_error(int status, const char *message, struct buf *out)
{
	buf_text(out, "{");
	member_object(out, "error");
	member_count(out, "code", status);
	member_text(out, "reason", refusal_reason(status));
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

static void serve_route(struct api_call *c, struct api_reply *out)
{
	struct error e = { 0 };

	if (answer(c, &out->body, &e) && buf_ok(&out->body)) {
		out->status = c->status ? c->status : c->route->status ? c->route->status : 200;
		out->content_type = c->route->content_type ? c->route->content_type : out->content_type;
		out->stream = c->stream;
		return;
	}
	out->status = c->status ? c->status : status_of(&e);
	buf_clear(&out->body);
	api_write_error(out->status, *e.message ? e.message : "the answer is too large; ask for less", &out->body);
}

static void add_method(struct buf *allow, const char *method)
{
	buf_printf(allow, "%s%s%s", allow->len ? ", " : "Allow: ", method, !strcmp(method, "GET") ? ", HEAD" : "");
}

/* True when the route is of that path and method. */
static bool try_route(struct web_api *a, const struct api_route *route, const struct api_request *r,
		      struct api_reply *out)
{
	struct api_call c = { .api = a, .request = r, .route = route };
	bool fits = api_path_fits(&c, route->path, r->path), is_it = fits && !strcmp(route->method, r->method);

	if (is_it)
		serve_route(&c, out);
	else if (fits)
		add_method(&out->allow, route->method);
	arena_release(&c.arena);
	return is_it;
}

void api_serve(struct web_api *a, const struct api_request *r, struct api_reply *out)
{
	CLEANUP(buf_release) struct buf message = { 0 };

	*out = (struct api_reply){ .content_type = "application/json" };
	for (size_t i = 0; api_routes[i]; i++)
		if (try_route(a, api_routes[i], r, out)) {
			buf_release(&out->allow);
			return;
		}
	out->status = out->allow.len ? 405 : 404;
	if (out->allow.len)
		buf_printf(&message, "found the method %.10s; allowed here: %s", r->method,
			   out->allow.text + strlen("Allow: "));
	else
		buf_text(&message, "there is no such path; GET /api/v1/openapi.json tells those that there are");
	api_write_error(out->status, message.text, &out->body);
}

static void answer_request(const struct server_request *q, struct server_answer *a)
{
	struct server_pair pairs[PAIRS_MAX];
	const struct api_request r = { .method = q->method,
				       .path = q->path,
				       .pairs = pairs,
				       .pair_count = server_query_pairs(q, pairs, PAIRS_MAX),
				       .body = q->body,
				       .body_len = q->body_len };
	struct web_api *api = q->user;
	struct api_reply reply;

	api_serve(api, &r, &reply);
	a->status = reply.status;
	a->content_type = reply.content_type;
	a->body = reply.body;
	a->stream = reply.stream;
	a->headers[0] = "Cache-Control: no-store";
	if (reply.allow.len) {
		snprintf(api->allow, sizeof api->allow, "%s", reply.allow.text);
		a->headers[1] = api->allow;
	}
	buf_release(&reply.allow);
}

void web_api_routes(struct web_api *a, struct server_route routes[WEB_API_ROUTES])
{
	const struct server_route all[WEB_API_ROUTES] = {
		{ NULL, "/api/*", answer_request, a },
		{ NULL, "/api", answer_request, a },
		{ "GET", "/assets/*", page_answer, a },
		{ "GET", "/", page_answer, a },
	};

	memcpy(routes, all, sizeof all);
}
