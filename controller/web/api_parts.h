/* What the files of the API share. */
#pragma once
#include "base/arena.h"
#include "controller/manifest/manifest.h"
#include "controller/web/api.h"
#include "controller/web/api_write.h"
#include "state/history.h"

/* --- shapes: what objects of the answers look like, for the OpenAPI document --- */

enum api_kind {
	API_TEXT,
	API_TIME,
	API_COUNT,
	API_NUMBER,
	API_FLAG,
	API_OBJECT,  /* of a shape */
	API_LIST,    /* of objects of a shape */
	API_TEXTS,   /* list of texts */
	API_NUMBERS, /* list of numbers, of which some may be null */
	API_FIELDS,  /* all fields of a record */
	API_OPEN,    /* an object of whatever its help says */
	API_OPEN_LIST,
};

struct api_shape;

struct api_member {
	const char *name;
	enum api_kind kind;
	bool may_be_null;
	const char *help;
	const struct api_shape *of;
	const struct record_info *record;
	const char *const *choices; /* of a text; ends in NULL */
};

/* Every member is always there. */
struct api_shape {
	const char *name;
	const struct api_member *members;
	size_t count;
};
#define API_SHAPE(name_, members_)                                                                     \
	{                                                                                              \
		.name = (name_), .members = (members_), .count = sizeof(members_) / sizeof *(members_) \
	}

/* --- routes --- */

enum parameter_kind { PARAMETER_TEXT, PARAMETER_TIME, PARAMETER_COUNT, PARAMETER_FLAG, PARAMETER_CHOICE };

struct api_parameter {
	const char *name;
	enum parameter_kind kind;
	int64_t min, max, fallback; /* of a count */
	const char *choices;	    /* "pool|class" */
	const char *help;
};

enum { PARAMETERS_MAX = 12, PLACES_IN_PATH = 4, PAIRS_MAX = 32 };

struct api_call;
struct api_events;
struct server_stream;
struct what_ifs;
/* Appends the answer to `out`. False with the error; api_refuse() says the status beside it. */
typedef bool api_write_fn(struct api_call *c, struct buf *out, struct error *e);

struct api_route {
	const char *method, *path; /* "/api/v1/pools/{namespace}/{name}" */
	const char *name;	   /* operationId */
	const char *summary;
	const struct api_parameter *parameters;
	size_t parameter_count;
	bool needs_history;
	const struct api_shape *answer;
	const char *content_type; /* NULL: application/json */
	const char *body;	  /* JSON Schema of what a POST brings; NULL: nothing */
	api_write_fn *write;
	int status; /* of an answer that went well; 0: 200 */
};
#define API_PARAMETERS(parameters_) \
	.parameters = (parameters_), .parameter_count = sizeof(parameters_) / sizeof *(parameters_)

extern const struct api_route *const api_routes[]; /* ends in NULL */

/* --- one request --- */

struct api_request {
	const char *method, *path; /* path without the query */
	const struct server_pair *pairs;
	size_t pair_count;
	const char *body;
	size_t body_len;
};

/* A manifest that was in force, and which pools it has. */
struct api_fleet {
	struct history_stretch stretch;
	struct manifest manifest;
	struct arena arena;
};

struct api_value {
	const char *text; /* NULL: not given */
	int64_t number;	  /* of a count or flag */
};

struct api_call {
	struct web_api *api;
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

/* Opens the history of the call, for routes that answer without one, too. */
bool api_try_history(struct api_call *c, struct error *e) MUST_USE;
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
/* NAMESPACE/NAME, or NAME where one pool is called so. */
bool api_pool_named(struct api_call *c, const char *name, size_t *pool, struct error *e) MUST_USE;
/* The fleet in force at a tick; lasts until the request is answered. */
const struct api_fleet *api_fleet_at(struct api_call *c, int64_t tick, struct error *e) MUST_USE;
/* Where the pool stands in it; false when it does not. */
bool api_fleet_place(const struct api_fleet *f, size_t pool, size_t *place);
const struct published *api_shown(const struct api_call *c);
const struct web_api_setup *api_setup(const struct api_call *c);
struct api_events *api_events_of(const struct api_call *c);
struct what_ifs *api_what_ifs(const struct api_call *c); /* NULL: there are none here */

struct api_reply {
	int status;
	const char *content_type;
	struct buf body;
	struct buf allow;	      /* a header line, where the method was wrong */
	struct server_stream *stream; /* the answer goes on */
};
/* Filled in whatever comes of it. */
void api_serve(struct web_api *a, const struct api_request *r, struct api_reply *out);
void api_write_error(int status, const char *message, struct buf *out);

/* --- the history that is open --- */

struct api_source;
struct api_source *api_source_open(const char *path);
void api_source_close(struct api_source *s);
/* As it stands now. NULL with the error; ERROR_NOT_FOUND where there is no file yet. */
struct history *api_source_history(struct api_source *s, struct error *e) MUST_USE;
const struct api_fleet *api_source_fleet(struct api_source *s, int64_t tick, struct error *e) MUST_USE;

extern const struct api_shape api_error_shape;
