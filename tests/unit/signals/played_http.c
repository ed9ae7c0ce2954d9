#include "tests/unit/signals/played_http.h"

#include "base/arena.h"
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 1024, PIECE = 4096, MOST_PIECES = 1000000 };

struct call {
	struct http_request *request;
	millis due; /* its deadline */
	bool is_cancelled, is_waiting;
};

static struct {
	struct clock *clock;
	played_serve_fn *serve;
	void *user;
	struct call calls[MOST];
	size_t call_count;
	struct {
		struct timer *timer;
		millis due;
	} timers[MOST]; /* in the order in which they were started */
	size_t timer_count;
	const char *type; /* of the answer under way */
} play;

void __wrap_timer_start(struct loop *l, struct timer *t, millis after, void (*fire)(struct timer *t));
void __wrap_timer_stop(struct timer *t);
bool __wrap_timer_is_running(const struct timer *t);
void __wrap_http_start(struct http *h, struct http_request *r);
void __wrap_http_cancel(struct http_request *r);
const char *__wrap_http_header(const struct http_request *r, const char *name);

void __wrap_timer_stop(struct timer *t)
{
	for (size_t i = 0; i < play.timer_count; i++)
		if (play.timers[i].timer == t) {
			play.timer_count--;
			memmove(&play.timers[i], &play.timers[i + 1], (play.timer_count - i) * sizeof *play.timers);
			return;
		}
}

void __wrap_timer_start(struct loop *l, struct timer *t, millis after, void (*fire)(struct timer *t))
{
	(void)l;
	assert_true(after >= 0 && play.timer_count < MOST);
	__wrap_timer_stop(t);
	t->fire = fire;
	play.timers[play.timer_count].timer = t;
	play.timers[play.timer_count++].due = clock_mono(play.clock) + after * play.clock->speed;
}

bool __wrap_timer_is_running(const struct timer *t)
{
	for (size_t i = 0; i < play.timer_count; i++)
		if (play.timers[i].timer == t)
			return true;
	return false;
}

void __wrap_http_start(struct http *h, struct http_request *r)
{
	(void)h;
	assert_true(play.call_count < MOST && r->timeout > 0 && r->max_response > 0);
	r->error = (struct error){ 0 };
	r->status = 0;
	play.calls[play.call_count++] =
		(struct call){ .request = r, .due = clock_mono(play.clock) + r->timeout * play.clock->speed };
}

void __wrap_http_cancel(struct http_request *r)
{
	for (size_t i = 0; i < play.call_count; i++)
		if (play.calls[i].request == r)
			play.calls[i].is_cancelled = true;
}

const char *__wrap_http_header(const struct http_request *r, const char *name)
{
	(void)r;
	return strcmp(name, "Content-Type") == 0 ? play.type : NULL;
}

void played_begin(struct clock *clock, played_serve_fn *serve, void *user)
{
	memset(&play, 0, sizeof play);
	play.clock = clock;
	play.serve = serve;
	play.user = user;
}

size_t played_active(void)
{
	return play.call_count;
}

void played_end(void)
{
	assert_int_equal(play.call_count, 0);
	assert_int_equal(play.timer_count, 0);
}

/* A copy of each piece that ends where it ends, so that a sanitizer sees a step over it. */
static bool feed(struct http_request *r, const struct buf *body)
{
	for (size_t at = 0; at < body->len; at += PIECE) {
		size_t len = body->len - at < PIECE ? body->len - at : PIECE;
		char *piece = malloc(len);
		assert_non_null(piece);
		memcpy(piece, body->text + at, len);
		bool ok = r->on_chunk(r, piece, len);
		free(piece);
		if (!ok && r->error.kind == ERROR_NONE)
			error_set(&r->error, ERROR_CANCELLED, "ended by the reader");
		if (!ok)
			return false;
	}
	return true;
}

static void complete(size_t i, struct played_answer *a)
{
	struct http_request *r = play.calls[i].request;

	play.call_count--;
	memmove(&play.calls[i], &play.calls[i + 1], (play.call_count - i) * sizeof *play.calls);
	r->response = a && a->body.text && r->status / 100 != 2 ? a->body.text : "";
	r->response_len = strlen(r->response);
	play.type = a ? a->type : NULL;
	r->done(r);
}

static void fail_with(struct http_request *r, enum error_kind kind, const char *what)
{
	CLEANUP(buf_release) struct buf url = { 0 };

	uri_show(r->url, &url);
	error_set(&r->error, kind, "GET %s: %s within %lld ms", url.text, what, (long long)r->timeout);
}

/* Where nothing more comes the call waits for its deadline. */
static void serve(size_t i)
{
	struct http_request *r = play.calls[i].request;
	struct played_answer a = { 0 };

	play.serve(play.user, r, &a);
	r->is_refused = a.is_refused;
	bool is_unheard = a.is_refused || (a.is_silent && !a.body.len);
	r->status = is_unheard ? 0 : a.status ? a.status : 200;
	play.type = a.type;
	bool ok = r->status / 100 != 2 || feed(r, &a.body);
	for (int n = 0; ok && a.is_endless && n < MOST_PIECES; n++)
		ok = feed(r, &a.body);
	play.calls[i].is_waiting = ok && a.is_silent;
	if (ok && a.kind != ERROR_NONE)
		fail_with(r, a.kind, a.is_refused ? "refused" : "cut short");
	if (!play.calls[i].is_waiting)
		complete(i, &a);
	buf_release(&a.body);
}

static bool serve_one(void)
{
	for (size_t i = 0; i < play.call_count; i++) {
		struct call *c = &play.calls[i];
		bool is_late = c->is_waiting && c->due <= clock_mono(play.clock);
		if (c->is_waiting && !c->is_cancelled && !is_late)
			continue;
		if (c->is_cancelled)
			error_set(&c->request->error, ERROR_CANCELLED, "cancelled");
		else if (is_late)
			fail_with(c->request, ERROR_TIMEOUT, "no answer");
		if (c->is_cancelled || is_late)
			complete(i, NULL);
		else
			serve(i);
		return true;
	}
	return false;
}

static bool fire_one(void)
{
	for (size_t i = 0; i < play.timer_count; i++)
		if (play.timers[i].due <= clock_mono(play.clock)) {
			struct timer *t = play.timers[i].timer;
			__wrap_timer_stop(t);
			t->fire(t);
			return true;
		}
	return false;
}

void played_settle(void)
{
	while (serve_one() || fire_one())
		;
}

void played_turn(millis by)
{
	millis until = clock_mono(play.clock) + by;

	played_settle();
	for (;;) {
		millis next = until;
		for (size_t i = 0; i < play.timer_count; i++)
			next = play.timers[i].due < next ? play.timers[i].due : next;
		for (size_t i = 0; i < play.call_count; i++)
			next = play.calls[i].is_waiting && play.calls[i].due < next ? play.calls[i].due : next;
		if (next > clock_mono(play.clock))
			clock_turn(play.clock, next - clock_mono(play.clock));
		played_settle();
		if (next >= until)
			return;
	}
}

const char *played_query(const struct http_request *r, const char *name, char *room, size_t size)
{
	const char *at = strchr(r->url, '?');
	size_t len = strlen(name), n = 0;

	while (at && (strncmp(at + 1, name, len) != 0 || at[1 + len] != '='))
		at = strchr(at + 1, '&');
	for (at = at ? at + len + 2 : ""; *at && *at != '&' && n + 1 < size; at++) {
		unsigned byte;
		if (*at == '%' && sscanf(at + 1, "%2x", &byte) == 1) {
			room[n++] = (char)byte;
			at += 2;
		} else {
			room[n++] = *at;
		}
	}
	room[n] = '\0';
	return room;
}
