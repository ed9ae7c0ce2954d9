#include "controller/web/api.h"

#include "base/alloc.h"
#include "base/quantity.h"
#include "controller/web/api_call.h"
#include "controller/web/site.h"
#include "controller/web/refusal.h"
#include "controller/web/alternatives.h"
#include "controller/web/recommendations.h"
#include "controller/web/what_if.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Who listens for new ticks. */
struct listener {
	struct server_stream stream;
	struct web_api *api;
	struct listener *next, *previous;
	bool is_ending;
};

enum { LISTENERS_MOST = 32 };
#define LOOK_EVERY SECOND
#define BEAT_EVERY (15 * SECOND)

struct web_api {
	struct web_api_setup setup;
	const struct published *shown;
	struct api_source source;
	struct what_ifs *what_ifs;
	struct daily *recommendations, *alternatives;
	char allow[80]; /* a header line, until it is sent */

	struct timer look, beat;
	struct listener *listeners;
	int listener_count;
	int64_t tick; /* the last one that listeners were told; -1: none */
};

struct web_api *web_api_open(const struct web_api_setup *setup)
{
	struct web_api *a = xcalloc(1, sizeof *a);

	a->setup = *setup;
	a->source.path = setup->history;
	a->tick = -1;
	a->look.user = a->beat.user = a;
	if (!setup->program)
		return a;
	a->what_ifs = what_ifs_open(&(struct what_ifs_setup){ setup->loop, setup->program, setup->history });
	/* What other fleets would have cost is to be known of every day; what to change, once somebody wants to. */
	const struct daily_setup daily = { setup->loop, setup->program, setup->history, setup->is_controller, 0 };
	struct daily_setup hourly = daily;
	a->recommendations = daily_open(&daily, &recommendations_question);
	hourly.looks_every = setup->is_controller ? HOUR : 0;
	a->alternatives = daily_open(&hourly, &alternatives_question);
	return a;
}

void web_api_close(struct web_api *a)
{
	if (!a)
		return;
	what_ifs_close(a->what_ifs);
	daily_close(a->recommendations);
	daily_close(a->alternatives);
	timer_stop(&a->look);
	timer_stop(&a->beat);
	api_source_close(&a->source);
	free(a);
}

void web_api_show(struct web_api *a, const struct published *p)
{
	a->shown = p;
}

/* As it stands now. NULL with the error; ERROR_NOT_FOUND where there is no file yet. */
static struct history *source_history(struct api_source *s, struct error *e)
{
	if (s->history && history_is_current(s->history))
		return s->history;
	api_source_close(s);
	s->history = history_open(s->path, e);
	return s->history;
}

/* For routes that answer without one, too. */
static bool try_history(struct api_call *c, struct error *e)
{
	c->history = source_history(c->source, e);
	if (!c->history)
		return api_refuse(c, e, 503, "%s", e->message);
	if (!history_span(c->history, &c->span, e))
		return false;
	return c->span.last_tick >= c->span.first_tick ||
	       api_refuse(c, e, 503, "%s: no decisions in it yet; try again after the first tick",
			  history_path(c->history));
}

/* --- GET /api/v1: what there is --- */

static const char *const kinds[] = { "controller", "file", NULL };
static const char *const roles[] = { "follower", "leader", "alone", NULL };

struct source_view {
	const char *kind, *path, *identity, *role, *leader, *obstacle;
	bool is_dry_run, is_ready;
};

static const struct record_member source_members[] = {
	{ "kind", RECORD_TEXT(source_view, kind), .help = "a running controller, or a file alone", .choices = kinds },
	{ "path", RECORD_TEXT(source_view, path), .help = "the history" },
	{ "identity", RECORD_TEXT(source_view, identity), .may_be_null = true, .help = "of this replica in the Lease" },
	{ "role", RECORD_TEXT(source_view, role), .may_be_null = true, .help = "of this replica", .choices = roles },
	{ "leader", RECORD_TEXT(source_view, leader), .empty_is_null = true, .help = "who leads" },
	{ "isDryRun", RECORD_FLAG(source_view, is_dry_run), .help = "decides and records, and changes nothing" },
	{ "isReady", RECORD_FLAG(source_view, is_ready), .help = "has decisions that can be asked" },
	{ "obstacle", RECORD_TEXT(source_view, obstacle), .may_be_null = true,
	  .help = "what keeps the controller from its work, and the remedy" },
};
static const struct record_shape source_shape = RECORD_SHAPE("Source", source_view, source_members);

struct history_view {
	struct history_span span;
	millis interval;
	const char *run, *policy;
};

static const struct record_member history_members[] = {
	{ "from", RECORD_TIME(history_view, span.from), .help = "end of the first tick" },
	{ "to", RECORD_TIME(history_view, span.to), .help = "end of the last tick" },
	{ "firstTick", RECORD_COUNT(history_view, span.first_tick), .help = "its number" },
	{ "lastTick", RECORD_COUNT(history_view, span.last_tick), .help = "its number" },
	{ "intervalSeconds", RECORD_NUMBER(history_view, interval, 3), .help = "length of the last tick" },
	{ "run", RECORD_TEXT(history_view, run), .help = "what it is a history of: run, record, simulate ..." },
	{ "policy", RECORD_TEXT(history_view, policy), .help = "what decided: preheat, or the name of a rival" },
};
static const struct record_shape history_shape = RECORD_SHAPE("History", history_view, history_members);

struct pool_name {
	const char *namespace, *name;
	bool is_in_force;
};

static const struct record_member name_members[] = {
	{ "namespace", RECORD_TEXT(pool_name, namespace), .help = "of the WarmPool" },
	{ "name", RECORD_TEXT(pool_name, name), .help = "of the WarmPool" },
	{ "isInForce", RECORD_FLAG(pool_name, is_in_force), .help = "is in the manifest of the last tick" },
};
static const struct record_shape name_shape = RECORD_SHAPE("PoolName", pool_name, name_members);

struct index_view {
	const char *version, *program;
	struct source_view source;
	const struct history_view *history;
	struct record_items pools, groups, links;
};

static const struct record_member index_members[] = {
	{ "version", RECORD_TEXT(index_view, version), .help = "of the API: v1" },
	{ "program", RECORD_TEXT(index_view, program), .help = "version of preheat" },
	{ "source", RECORD_OBJECT(index_view, source, source_shape), .help = "what is asked" },
	{ "history", RECORD_POINTER(index_view, history, history_shape), .may_be_null = true,
	  .help = "null before the first tick" },
	{ "pools", RECORD_LIST(index_view, pools, name_shape), .help = "all that ever were" },
	{ "groups", RECORD_TEXTS(index_view, groups), .help = "names of all node groups that ever were" },
	{ "links", RECORD_TEXTS(index_view, links), .help = "where to go on" },
};
static const struct record_shape index_shape = RECORD_SHAPE("Index", index_view, index_members);

static bool view_history(struct api_call *c, struct history_view *v, struct error *e)
{
	v->span = c->span;
	return history_fact(c->history, "run", &c->arena, &v->run, e) &&
	       history_fact(c->history, "policy", &c->arena, &v->policy, e) &&
	       history_interval(c->history, c->span.last_tick, &v->interval, e);
}

static bool view_pools(struct api_call *c, struct index_view *v, struct error *e)
{
	size_t count, place, group_count = 0;
	const struct history_pool *pools = history_pools(c->history, &count);
	const struct api_fleet *fleet = api_fleet_at(c, c->span.last_tick, e);
	struct pool_name *names = arena_array(&c->arena, struct pool_name, count + 1);

	if (!fleet)
		return false;
	for (size_t i = 0; i < count; i++) {
		names[i] = (struct pool_name){ pools[i].namespace, pools[i].name, api_fleet_place(fleet, i, &place) };
		group_count += pools[i].group_count;
	}
	const char **groups = arena_array(&c->arena, const char *, group_count + 1);
	for (size_t p = 0; p < count; p++)
		for (size_t g = 0, seen; g < pools[p].group_count; g++) {
			for (seen = 0; seen < v->groups.count; seen++)
				if (!strcmp(groups[seen], pools[p].groups[g]))
					break;
			if (seen == v->groups.count)
				groups[v->groups.count++] = pools[p].groups[g];
		}
	v->pools = (struct record_items){ names, count };
	v->groups.items = groups;
	return true;
}

static bool write_index(struct api_call *c, struct buf *out, struct error *e)
{
	CLEANUP(buf_release) struct buf path = { 0 };
	const struct published *p = c->shown;
	struct history_view history;
	struct error nothing_yet;
	size_t route_count = 0;

	if (!try_history(c, &nothing_yet))
		c->history = NULL;
	c->status = 0;
	history_show(c->setup->history, &path);
	struct index_view v = { .version = "v1",
				.program = c->setup->version,
				.source = { .kind = kinds[!c->setup->is_controller],
					    .path = path.text,
					    .identity = p ? p->identity : NULL,
					    .role = p ? roles[p->role] : NULL,
					    .leader = p ? p->leader : NULL,
					    .obstacle = p ? p->obstacle : NULL,
					    .is_dry_run = p && p->is_dry_run,
					    .is_ready = c->history },
				.history = c->history ? &history : NULL };
	if (c->history && (!view_history(c, &history, e) || !view_pools(c, &v, e)))
		return false;
	while (api_routes[route_count])
		route_count++;
	const char **links = arena_array(&c->arena, const char *, route_count);
	for (size_t i = 0; i < route_count; i++)
		if (!strcmp(api_routes[i]->method, "GET"))
			links[v.links.count++] = api_routes[i]->path;
	v.links.items = links;
	record_write(&index_shape, &v, out);
	buf_text(out, "\n");
	return true;
}

static const struct api_route index_route = {
	.method = "GET",
	.path = "/api/v1",
	.name = "getIndex",
	.summary = "What is asked, how far it reaches, and which pools and node groups there are",
	.answer = &index_shape,
	.write = write_index,
};

/* --- GET /api/v1/events: each new tick as it is written, whoever writes it --- */

static void send_all(struct web_api *a, const struct buf *text)
{
	for (struct listener *l = a->listeners; l; l = l->next)
		server_stream_send(&l->stream, text->text, text->len);
}

/* False while there is no tick. */
static bool find_tick(struct web_api *a, struct history_span *span)
{
	struct error nothing_yet;
	struct history *h = source_history(&a->source, &nothing_yet);

	return h && history_span(h, span, &nothing_yet) && span->last_tick >= span->first_tick;
}

static const struct record_member tick_members[] = {
	{ "tick", RECORD_COUNT(history_span, last_tick) },
	{ "at", RECORD_TIME(history_span, to) },
};
static const struct record_shape tick_shape = RECORD_SHAPE("Tick", history_span, tick_members);

static void write_tick(const struct history_span *span, struct buf *out)
{
	buf_printf(out, "id: %lld\nevent: tick\ndata: ", (long long)span->last_tick);
	record_write(&tick_shape, span, out);
	buf_text(out, "\n\n");
}

static void look_for_tick(struct timer *t)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	struct web_api *a = t->user;
	struct history_span span;

	if (find_tick(a, &span) && span.last_tick != a->tick) {
		a->tick = span.last_tick;
		write_tick(&span, &text);
		send_all(a, &text);
	}
	if (a->listeners)
		timer_start(a->setup.loop, t, LOOK_EVERY, look_for_tick);
}

/* So that both sides notice when the other is gone. */
static void send_beat(struct timer *t)
{
	static const struct buf nothing = { .text = (char *)(uintptr_t) ":\n\n", .len = 3 };
	struct web_api *a = t->user;

	send_all(a, &nothing);
	if (a->listeners)
		timer_start(a->setup.loop, t, BEAT_EVERY, send_beat);
}

static void on_ended(struct server_stream *s)
{
	struct listener *l = s->user;

	if (l->previous)
		l->previous->next = l->next;
	else
		l->api->listeners = l->next;
	if (l->next)
		l->next->previous = l->previous;
	l->api->listener_count--;
	free(l);
}

static struct listener *add_listener(struct web_api *a)
{
	struct listener *l = xcalloc(1, sizeof *l);

	l->api = a;
	l->stream.ended = on_ended;
	l->stream.user = l;
	l->next = a->listeners;
	if (l->next)
		l->next->previous = l;
	a->listeners = l;
	a->listener_count++;
	return l;
}

/* Whoever has listened longest: often gone, which shows at a beat only. Who is there comes again. */
static void end_oldest(struct web_api *a)
{
	struct listener *oldest = NULL;

	for (struct listener *l = a->listeners; l; l = l->next)
		oldest = l->is_ending ? oldest : l;
	if (!oldest)
		return;
	oldest->is_ending = true;
	server_stream_end(&oldest->stream);
}

/* What is sent at once is the body. */
static bool write_events(struct api_call *c, struct buf *first, struct error *e)
{
	struct web_api *a = c->api;
	struct history_span span;

	(void)e;
	if (a->listener_count >= LISTENERS_MOST)
		end_oldest(a);
	c->stream = &add_listener(a)->stream;
	buf_text(first, "retry: 2000\n\n");
	if (find_tick(a, &span)) {
		a->tick = a->listeners->next ? a->tick : span.last_tick;
		write_tick(&span, first);
	}
	if (!timer_is_running(&a->look))
		timer_start(a->setup.loop, &a->look, LOOK_EVERY, look_for_tick);
	if (!timer_is_running(&a->beat))
		timer_start(a->setup.loop, &a->beat, BEAT_EVERY, send_beat);
	return true;
}

static const struct api_route events_route = {
	.method = "GET",
	.path = "/api/v1/events",
	.name = "listen",
	.summary = "Server-sent events: tick {tick, at} at first and after each new tick; a comment every 15 s",
	.content_type = "text/event-stream",
	.write = write_events,
};

/* --- serving --- */

/* In the order of the document. */
const struct api_route *const api_routes[] = { &index_route,
					       &api_route_report,
					       &api_route_incidents,
					       &api_route_pools,
					       &api_route_pool,
					       &api_route_series,
					       &api_route_rules,
					       &api_route_lead_time,
					       &api_route_objective,
					       &api_route_cost,
					       &api_route_decisions,
					       &api_route_decision,
					       &api_route_launches,
					       &api_route_recommendations,
					       &api_route_recommendations_ask,
					       &api_route_alternatives,
					       &api_route_what_ifs,
					       &api_route_what_if_ask,
					       &api_route_what_if,
					       &api_route_what_if_cancel,
					       &events_route,
					       &api_route_openapi,
					       NULL };

/* Takes what stands in the places of braces. */
static bool path_fits(struct api_call *c, const char *path)
{
	const char *template = c->route->path;
	size_t places = 0;

	while (*template) {
		size_t len = strcspn(path, "/");

		if (*template != '{') {
			if (*template ++ != *path++)
				return false;
			continue;
		}
		if (!len || places == PLACES_IN_PATH)
			return false;
		c->place[places++] = arena_strdup(&c->arena, path, len);
		path += len;
		template += strcspn(template, "}") + 1;
	}
	return !*path;
}

static bool is_one_of(const char *choices, const char *text)
{
	size_t len = strlen(text);

	for (const char *at = choices; len; at += strcspn(at, "|") + 1) {
		if (strcspn(at, "|") == len && !strncmp(at, text, len))
			return true;
		if (!at[strcspn(at, "|")])
			break;
	}
	return false;
}

static bool take_value(struct api_call *c, const struct api_parameter *p, struct api_value *v, struct error *e)
{
	switch (p->kind) {
	case PARAMETER_TEXT:
		return (*v->text && strlen(v->text) <= (size_t)p->max) ||
		       api_refuse(c, e, 400, "%s: found '%.60s'; allowed: 1 to %lld bytes", p->name, v->text,
				  (long long)p->max);
	case PARAMETER_TIME:
		return true; /* what it counts from is known later */
	case PARAMETER_FLAG:
		v->number = !strcmp(v->text, "true");
		return v->number || !strcmp(v->text, "false") ||
		       api_refuse(c, e, 400, "%s: found '%.60s'; allowed: true or false", p->name, v->text);
	case PARAMETER_CHOICE:
		return is_one_of(p->choices, v->text) ||
		       api_refuse(c, e, 400, "%s: found '%.60s'; allowed: %s", p->name, v->text, p->choices);
	case PARAMETER_COUNT:
		break;
	}
	if (fixed_parse(v->text, strlen(v->text), 0, &v->number) && v->number >= p->min && v->number <= p->max)
		return true;
	return api_refuse(c, e, 400, "%s: found '%.60s'; allowed: a whole number from %lld to %lld", p->name, v->text,
			  (long long)p->min, (long long)p->max);
}

static bool take_pair(struct api_call *c, const struct server_pair *pair, struct error *e)
{
	CLEANUP(buf_release) struct buf known = { 0 };

	for (size_t i = 0; i < c->route->parameter_count; i++) {
		struct api_value *v = &c->value[i];

		buf_printf(&known, "%s%s", i ? ", " : "", c->route->parameters[i].name);
		if (strcmp(c->route->parameters[i].name, pair->name) != 0)
			continue;
		if (v->text)
			return api_refuse(c, e, 400, "%s: found twice; give it once", pair->name);
		v->text = pair->value;
		return take_value(c, &c->route->parameters[i], v, e);
	}
	return api_refuse(c, e, 400, "found the parameter '%.60s'; allowed: %s", pair->name,
			  known.len ? known.text : "none");
}

static bool take_query(struct api_call *c, struct error *e)
{
	for (size_t i = 0; i < c->route->parameter_count; i++)
		c->value[i].number = c->route->parameters[i].fallback;
	if (c->request->pair_count > PAIRS_MAX)
		return api_refuse(c, e, 400, "found %zu parameters; allowed: at most %d", c->request->pair_count,
				  PAIRS_MAX);
	for (size_t i = 0; i < c->request->pair_count; i++)
		if (!take_pair(c, &c->request->pairs[i], e))
			return false;
	return true;
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

static bool answer(struct api_call *c, struct buf *out, struct error *e)
{
	if (!take_query(c, e) || (c->route->needs_history && !try_history(c, e)))
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
	refusal_write(out->status, *e.message ? e.message : "the answer is too large; ask for less", &out->body);
}

static void add_method(struct buf *allow, const char *method)
{
	buf_printf(allow, "%s%s%s", allow->len ? ", " : "Allow: ", method, !strcmp(method, "GET") ? ", HEAD" : "");
}

/* True when the route is of that path and method. */
static bool try_route(struct web_api *a, const struct api_route *route, const struct api_request *r,
		      struct api_reply *out)
{
	struct api_call c = { .api = a,
			      .setup = &a->setup,
			      .shown = a->shown,
			      .what_ifs = a->what_ifs,
			      .recommendations = a->recommendations,
			      .alternatives = a->alternatives,
			      .source = &a->source,
			      .request = r,
			      .route = route };
	bool fits = path_fits(&c, r->path), is_it = fits && !strcmp(route->method, r->method);

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
	refusal_write(out->status, message.text, &out->body);
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
