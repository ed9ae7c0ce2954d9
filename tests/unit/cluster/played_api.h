/*
 * The API client and time as a test plays them: a call that is started goes
 * to the test's server, timers fire in the order of their time, which only
 * passes here. Linked over api_start(), the timers and loop_now().
 */
#pragma once
#include "controller/cluster/api.h"

/* Begins anew at time 0. `serve` is told each call as it starts; it must not answer inside. */
struct api *play_begin(void (*serve)(struct api_call *c));
/* Told when a call is cancelled: it completes by itself, and must not be answered any more. */
void play_on_cancel(void (*cancelled)(struct api_call *c));
/* All calls must have been answered. */
void play_end(void);
millis play_now(void);
/* Fires the next timer up to that time; false, and it is that time, when there is none. */
bool play_step(millis until);
void play_until(millis until);

/* Each completes a call, or passes bytes of a 2xx answer on; false: the call refused them and has completed. */
void play_accept(struct api_call *c); /* the header of a 200; else it comes with the first bytes */
void play_answer(struct api_call *c, long status, const char *body);
bool play_chunk(struct api_call *c, const char *bytes, size_t len);
void play_failure(struct api_call *c, enum error_kind kind); /* no answer at all */
/* {"kind":"Status",...} with a code and a reason, in a buffer of its own until the next call. */
const char *play_status(int code, const char *reason, const char *cause);
/* Runs `then` at a later time. The memory is the caller's. */
struct play_later {
	struct timer timer;
	void (*then)(struct play_later *l);
	struct api_call *call;
	void *user;
};
void play_later(struct play_later *l, millis after, void (*then)(struct play_later *l));
