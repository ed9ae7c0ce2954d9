/*
 * What a handler of the API works with: the route that it is, the request
 * that it answers, and the history that it answers from. The history is
 * opened once, and again when the file became another.
 */
#pragma once
#include "base/arena.h"
#include "base/net/server.h"
#include "base/record.h"
#include "controller/manifest/manifest.h"
#include "controller/web/api.h"
#include "state/history.h"

/* --- routes --- */

enum parameter_kind { PARAMETER_TEXT, PARAMETER_TIME, PARAMETER_COUNT, PARAMETER_FLAG, PARAMETER_CHOICE };

struct api_parameter {
	const char *name;
	enum parameter_kind kind;
	int64_t min, max, fallback; /* of a count; of a text its greatest length is max */
	const char *choices;	    /* "pool|class" */
	const char *help;
};

enum { PARAMETERS_MAX = 12, PLACES_IN_PATH = 4, PAIRS_MAX = 32 };

struct api_call;
/* Appends the answer to `out`. False with the error; api_refuse() says the status beside it. */
typedef bool api_write_fn(struct api_call *c, struct buf *out, struct error *e);

struct api_route {
	const char *method, *path; /* "/api/v1/pools/{namespace}/{name}" */
	const char *name;	   /* operationId */
	const char *summary;
	const struct api_parameter *parameters;
	size_t parameter_count;
	bool needs_history;
	const struct record_shape *answer;
	const char *content_type; /* NULL: application/json */
	const char *body;	  /* JSON Schema of what a POST brings; NULL: nothing */
	api_write_fn *write;
	int status; /* of an answer that went well; 0: 200 */
};
#define API_PARAMETERS(parameters_) \
	.parameters = (parameters_), .parameter_count = sizeof(parameters_) / sizeof *(parameters_)

extern const struct api_route api_route_report, api_route_incidents, api_route_pools, api_route_pool, api_route_series,
	api_route_rules, api_route_lead_time, api_route_objective, api_route_cost, api_route_decisions,
	api_route_decision, api_route_launches, api_route_recommendations, api_route_recommendations_ask,
	api_route_alternatives, api_route_what_ifs, api_route_what_if_ask, api_route_what_if, api_route_what_if_cancel,
	api_route_openapi;
extern const struct api_route *const api_routes[]; /* all; ends in NULL */

/* --- the history that is open --- */

/* A manifest that was in force, and which pools it has. */
struct api_fleet {
	struct history_stretch stretch;
	struct manifest manifest;
	struct arena arena;
};

enum { API_FLEETS = 4 };

struct api_source {
	const char *path;
	struct history *history;
	struct api_fleet *fleets[API_FLEETS]; /* the one used last stands first */
};

void api_source_close(struct api_source *s);

/* --- one request --- */

struct api_request {
	const char *method, *path; /* path without the query */
	const struct server_pair *pairs;
	size_t pair_count;
	const char *body;
	size_t body_len;
};

struct api_value {
	const char *text; /* NULL: not given */
	int64_t number;	  /* of a count or flag */
};

struct api_call {
	struct web_api *api;
	const struct web_api_setup *setup;
	const struct published *shown;		      /* by a running controller; NULL: a file alone */
	struct what_ifs *what_ifs;		      /* NULL: there are none here */
	struct daily *recommendations, *alternatives; /* likewise */
	struct api_source *source;
	const struct api_route *route;
	const struct api_request *request;
	const char *place[PLACES_IN_PATH]; /* what stood where the path has braces */
	struct api_value value[PARAMETERS_MAX];
	struct history *history; /* of routes that need it */
	struct history_span span;
	struct arena arena;
	struct server_stream *stream; /* the answer goes on */
	int status;
};

/* Always false; the message says where, what was found, what is allowed. */
bool api_refuse(struct api_call *c, struct error *e, int status, const char *fmt, ...) PRINTF(4, 5);
const struct api_value *api_value(const struct api_call *c, const char *parameter);
/* The time that a parameter says, `otherwise` where it is not given. */
bool api_time_of(struct api_call *c, const char *parameter, millis otherwise, millis *at, struct error *e) MUST_USE;
/* RFC 3339, now, -2h before the end, +2h after the first tick. */
bool api_parse_time(const struct history_span *span, const char *text, millis *at) MUST_USE;
/* from and to: `otherwise` before the end up to the end where they are not given. From before to. */
bool api_period(struct api_call *c, millis otherwise, millis *from, millis *to, struct error *e) MUST_USE;
/* The pool that the path names; also one that only the past knows. */
bool api_pool(struct api_call *c, size_t *pool, struct error *e) MUST_USE;
/* The fleet in force at a tick; lasts until the request is answered. */
const struct api_fleet *api_fleet_at(struct api_call *c, int64_t tick, struct error *e) MUST_USE;
/* Where the pool stands in it; false when it does not. */
bool api_fleet_place(const struct api_fleet *f, size_t pool, size_t *place);

/* The objective of a pool, as several answers show it. */
struct api_objective {
	millis wait;
	int64_t attainment_ppm, violation_cost;
};
extern const struct record_shape api_objective_shape;
struct api_objective api_objective(const struct pool_spec *spec);

struct api_reply {
	int status;
	const char *content_type;
	struct buf body;
	struct buf allow;	      /* a header line, where the method was wrong */
	struct server_stream *stream; /* the answer goes on */
};
/* Filled in whatever comes of it. */
void api_serve(struct web_api *a, const struct api_request *r, struct api_reply *out);
