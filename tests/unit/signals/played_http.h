/*
 * HTTP, timers and time as a test plays them: no sockets, no waiting. The test is linked with the --wrap list of
 * CMakeLists.txt; loops and http handles are NULL.
 */
#pragma once
#include "base/buf.h"
#include "base/clock.h"
#include "base/net/http.h"

struct played_answer {
	int status; /* 0: 200 */
	struct buf body;
	const char *type;     /* Content-Type; NULL: none */
	enum error_kind kind; /* the call fails so after the body; ERROR_NONE: it does not */
	bool is_refused;      /* no connection was made: nothing listens there */
	bool is_silent;	      /* nothing comes after the body: the call's deadline passes */
	bool is_endless;      /* the body comes again and again */
};

/* Fills in what answers the request. */
typedef void played_serve_fn(void *user, const struct http_request *r, struct played_answer *a);

/* `clock` is one that is turned by hand. */
void played_begin(struct clock *clock, played_serve_fn *serve, void *user);
void played_settle(void); /* gives the answers that are there, and fires the timers that are due */
void played_turn(millis by);
size_t played_active(void);
void played_end(void); /* a call or a timer that is left fails the test */
/* A parameter of the request's URL, decoded; "" without. */
const char *played_query(const struct http_request *r, const char *name, char *room, size_t size);
