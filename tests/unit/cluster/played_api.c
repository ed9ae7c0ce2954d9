#include "tests/unit/cluster/played_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMERS = 256 };

static struct {
	struct {
		struct timer *timer;
		millis due;
		uint64_t turn;
	} timers[TIMERS];
	size_t count;
	uint64_t turns;
	millis now;
	struct clock clock;
	struct api *api;
	struct kubeconfig access;
	void (*serve)(struct api_call *c);
	void (*on_cancel)(struct api_call *c);
	size_t calls;
} play;

void __wrap_timer_start(struct loop *l, struct timer *t, millis after, void (*fire)(struct timer *t));
void __wrap_timer_stop(struct timer *t);
bool __wrap_timer_is_running(const struct timer *t);
millis __wrap_loop_now(const struct loop *l);
void __wrap_api_start(struct api *a, struct api_call *c);
void __wrap_api_cancel(struct api_call *c);

void __wrap_http_write_until(struct http *h, millis until);
void __wrap_http_write_until(struct http *h, millis until)
{
	(void)h;
	(void)until;
}

void __wrap_timer_stop(struct timer *t)
{
	for (size_t i = 0; i < play.count; i++)
		if (play.timers[i].timer == t) {
			play.timers[i] = play.timers[--play.count];
			return;
		}
}

void __wrap_timer_start(struct loop *l, struct timer *t, millis after, void (*fire)(struct timer *t))
{
	(void)l;
	__wrap_timer_stop(t);
	if (play.count == TIMERS || after < 0)
		abort();
	t->fire = fire;
	play.timers[play.count].timer = t;
	play.timers[play.count].due = play.now + after;
	play.timers[play.count++].turn = ++play.turns;
}

bool __wrap_timer_is_running(const struct timer *t)
{
	for (size_t i = 0; i < play.count; i++)
		if (play.timers[i].timer == t)
			return true;
	return false;
}

millis __wrap_loop_now(const struct loop *l)
{
	(void)l;
	return play.now;
}

millis play_now(void)
{
	return play.now;
}

static void pass_time(millis until)
{
	if (until > play.now)
		clock_turn(&play.clock, until - play.now);
	play.now = until > play.now ? until : play.now;
}

bool play_step(millis until)
{
	size_t best = play.count;

	for (size_t i = 0; i < play.count; i++)
		if (play.timers[i].due <= until &&
		    (best == play.count || play.timers[i].due < play.timers[best].due ||
		     (play.timers[i].due == play.timers[best].due && play.timers[i].turn < play.timers[best].turn)))
			best = i;
	if (best == play.count) {
		pass_time(until);
		return false;
	}
	struct timer *t = play.timers[best].timer;
	pass_time(play.timers[best].due);
	__wrap_timer_stop(t);
	t->fire(t);
	return true;
}

void play_until(millis until)
{
	while (play_step(until))
		;
}

struct api *play_begin(void (*serve)(struct api_call *c))
{
	memset(&play, 0, sizeof play);
	play.serve = serve;
	play.clock = clock_open_by_hand(INT64_C(1760000000000));
	play.access.server = "https://played";
	play.access.name_space = "default";
	play.api = api_open(&(struct api_setup){ .clock = &play.clock, .access = &play.access, .seed = 11 });
	return play.api;
}

void play_on_cancel(void (*on_cancel)(struct api_call *c))
{
	play.on_cancel = on_cancel;
}

void play_end(void)
{
	if (play.calls)
		abort();
	api_close(play.api);
}

static void complete(struct api_call *c)
{
	struct arena arena = c->arena;

	c->arena = (struct arena){ 0 };
	c->state = 0;
	timer_stop(&c->timer);
	play.calls--;
	c->done(c);
	arena_release(&arena);
}

static void cancelled(struct timer *t)
{
	struct api_call *c = t->user;

	error_set(&c->error, ERROR_CANCELLED, "cancelled");
	complete(c);
}

void __wrap_api_start(struct api *a, struct api_call *c)
{
	if (a != play.api || c->state)
		abort();
	c->error = (struct error){ 0 };
	c->answer = (struct api_status){ 0 };
	c->is_expired = c->is_barred = c->is_cancelled = false;
	c->status = 0;
	c->retry_after = 0;
	c->response = "";
	c->response_len = 0;
	c->state = 1;
	if (!c->method)
		c->method = "GET";
	play.calls++;
	play.serve(c);
}

void __wrap_api_cancel(struct api_call *c)
{
	if (!c->state || c->is_cancelled)
		return;
	c->is_cancelled = true;
	if (play.on_cancel)
		play.on_cancel(c);
	c->timer.user = c;
	timer_start(NULL, &c->timer, 0, cancelled);
}

void play_accept(struct api_call *c)
{
	if (c->status == 200)
		return;
	c->status = 200;
	if (c->on_accepted)
		c->on_accepted(c);
}

bool play_chunk(struct api_call *c, const char *bytes, size_t len)
{
	/* A copy that ends where it ends, so that a sanitizer sees a step over it. */
	char *copy = malloc(len ? len : 1);

	if (!copy)
		abort();
	memcpy(copy, bytes, len);
	play_accept(c);
	c->error = (struct error){ 0 };
	bool ok = c->on_chunk(c, copy, len);
	free(copy);
	if (ok)
		return true;
	c->status = 0;
	if (c->error.kind == ERROR_NONE)
		error_set(&c->error, ERROR_CANCELLED, "ended by the reader");
	complete(c);
	return false;
}

void play_answer(struct api_call *c, long status, const char *body)
{
	char call[128];

	if (status == 200)
		play_accept(c);
	c->status = status;
	c->error = (struct error){ 0 };
	if (status >= 200 && status < 300) {
		if (c->on_chunk && *body && !play_chunk(c, body, strlen(body)))
			return;
		c->response = c->on_chunk ? "" : body;
		c->response_len = strlen(c->response);
	} else {
		c->response = body;
		c->response_len = strlen(body);
		snprintf(call, sizeof call, "%s %.60s", c->method, c->path);
		status_read(body, strlen(body), &c->arena, &c->answer);
		c->is_expired = status == 410;
		c->retry_after = c->answer.retry_after_seconds * SECOND;
		status_error(&c->answer, status, call, &c->error);
	}
	complete(c);
}

void play_failure(struct api_call *c, enum error_kind kind)
{
	c->status = 0;
	error_set(&c->error, kind, "%s %s: no answer", c->method, c->path);
	complete(c);
}

const char *play_status(int code, const char *reason, const char *cause)
{
	static char text[1024];

	snprintf(text, sizeof text,
		 "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"%s\",\"reason\":\"%"
		 "s\","
		 "\"details\":{\"causes\":[{\"reason\":\"%s\"}],\"retryAfterSeconds\":%d},\"code\":%d}",
		 reason, reason, cause ? cause : "", code == 429 ? 10 : 0, code);
	return text;
}

static void fire_later(struct timer *t)
{
	struct play_later *l = t->user;

	l->then(l);
}

void play_later(struct play_later *l, millis after, void (*then)(struct play_later *l))
{
	l->timer.user = l;
	l->then = then;
	timer_start(NULL, &l->timer, after, fire_later);
}
