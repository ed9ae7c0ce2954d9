/*
 * Puts one server of an engine to sleep, wakes it, or looks how it is, as its table (signals/engines) says.
 *
 * Every call looks first: what is as wanted already is told to do nothing, so that a call may be repeated after a
 * crash. Who serves is not put to sleep. A move is done once the server itself says so; an engine that cannot tell is
 * taken at its answer. A wake ends with one token, so that what comes next finds it warm.
 * Who calls takes the server out of routing before and puts it back after, and sees to it that nothing else sleeps or
 * wakes on the same GPU.
 */
#pragma once
#include "base/clock.h"
#include "signals/engine_metrics.h"
#include "signals/http_auth.h"
#include "signals/pool_reading.h"

enum engine_move { MOVE_LOOK, MOVE_SLEEP, MOVE_WAKE };

/* Of an engine that cannot tell: what the last call that succeeded made of it. */
enum engine_told { TOLD_NOTHING, TOLD_AWAKE, TOLD_ASLEEP };

struct engine_call {
	/* Filled in by the caller; must outlive the call. */
	enum engine_move move;
	enum engine engine;
	int level;			/* 1 or 2: of a sleep, and of a wake where the page does not tell it */
	const struct http_auth *server; /* its URL without a path */
	const char *metrics_path;	/* "/metrics" */
	/* Of all of it, of the controller's clock. A last look may take ENGINE_LOOK_TIMEOUT more. */
	millis deadline;
	void (*done)(struct engine_call *c); /* from the loop, once; may start c anew */
	void *user;

	/*
	 * Valid inside done(), as what follows. ERROR_CONFLICT: requests run or wait there, nothing was sent.
	 * ERROR_NOT_FOUND: it has no such endpoint. ERROR_TIMEOUT: it did not get there in time. Messages name server
	 * and step, never a body. Where was_sent, a failure leaves the server in whatever state: look.
	 */
	struct error error;
	enum engine_told told;
	int64_t in_flight; /* requests that run or wait, when it was looked at first; READING_UNKNOWN: not told */
	bool was_sent;	   /* a step left for the server */
	millis took; /* from the first step until it was done, the token of a wake included; 0: nothing was sent */

	struct loop *loop; /* private from here; zeroed at first */
	struct http *http;
	const struct clock *clock;
	millis began, sent;
	size_t step; /* row of the table: the next */
	void (*answered)(struct engine_call *c, const struct error *e);
	bool was_answered, is_cancelled;
	struct error lost; /* why the answer to a step did not come */
	struct timer timer;
	struct arena arena;
	struct buf url, answer, body;
	struct http_auth_shown shown;
	struct http_request request;
	struct page_table table;
	struct page *page;
};

/* Whether servers of an engine sleep on that level; whether they tell that they do. */
bool engine_can_sleep(enum engine engine, int level);
bool engine_tells_sleep(enum engine engine);

#define ENGINE_LOOK_TIMEOUT (5 * SECOND)

/* Cannot fail: failures arrive in done(). Writes are sent only until http_write_until(). `clock` must outlive it. */
void engine_call_start(struct loop *loop, struct http *http, const struct clock *clock, struct engine_call *c);
/* Completes as ERROR_CANCELLED, from the loop; nothing when it is not under way. What was sent stays sent. */
void engine_call_cancel(struct engine_call *c);
