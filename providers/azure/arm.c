#include "providers/azure/arm.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/net/retry.h"
#include "providers/azure/answer.h"
#include "providers/text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const millis FETCH_DEADLINE = 15 * SECOND, RENEW_BEFORE = 5 * MINUTE;
static const size_t MOST_TOKEN = (size_t)256 << 10, MOST_ANSWER = (size_t)16 << 20; /* a thousand machines: 1 MiB */

/* The token of a place. */
struct token_slot {
	struct token_slot *next;
	struct arm *arm;
	struct azure_place place;
	struct arena arena; /* of the place */
	char *token;
	millis renew_at, ends_at; /* loop time */
	struct arm_request *waiting;
	struct timer soon, again;
	struct token_request asked;
	struct http_request request;
	bool is_asking;
	int tries;
	millis first_at;
	struct error error;
};

struct arm {
	struct loop *loop;
	struct http *http;
	struct http_tls tls;
	struct clock clock;
	struct token_slot *slots;
};

struct arm *arm_open(struct loop *loop, struct http *http)
{
	struct arm *arm = xcalloc(1, sizeof *arm);

	*arm = (struct arm){
		.loop = loop, .http = http, .tls.ca_file = azure_environment_read().ca_file, .clock = clock_open()
	};
	return arm;
}

static void forget_token(struct token_slot *s)
{
	if (s->token)
		explicit_bzero(s->token, strlen(s->token));
	free(s->token);
	s->token = NULL;
}

void arm_close(struct arm *arm)
{
	for (struct token_slot *s = arm->slots, *next; s; s = next) {
		assert(!s->waiting && !s->is_asking);
		next = s->next;
		timer_stop(&s->soon);
		forget_token(s);
		arena_release(&s->arena);
		free(s);
	}
	free(arm);
}

/* The places of two groups differ only where their clouds do. */
static struct token_slot *slot_of(struct arm *arm, const struct azure_place *p)
{
	struct token_slot *s = arm->slots;

	while (s && (strcmp(s->place.audience, p->audience) != 0 || strcmp(s->place.authority, p->authority) != 0))
		s = s->next;
	if (s)
		return s;
	s = xcalloc(1, sizeof *s);
	s->arm = arm;
	s->soon.user = s->again.user = s;
	s->place = (struct azure_place){ text_keep(&s->arena, p->endpoint), text_keep(&s->arena, p->audience),
					 text_keep(&s->arena, p->authority) };
	s->next = arm->slots;
	arm->slots = s;
	return s;
}

/* done() may free the request, or start it again; the token is there until it returns. */
static void finish(struct arm_request *r)
{
	struct buf bearer = r->bearer;

	timer_stop(&r->timer);
	buf_release(&r->match);
	r->bearer = (struct buf){ 0 };
	r->is_active = false;
	r->done(r);
	if (bearer.text)
		explicit_bzero(bearer.text, bearer.len);
	buf_release(&bearer);
}

static void answered(struct http_request *h);

static void send(struct arm_request *r)
{
	millis left = r->ends_at - loop_now(r->arm->loop);
	size_t count = 0;

	r->headers[count++] = "Accept: application/json";
	if (r->body)
		r->headers[count++] = "Content-Type: application/json";
	if (r->match.len)
		r->headers[count++] = r->match.text;
	r->headers[count] = NULL;
	buf_clear(&r->bearer); /* the slot's token may be renewed while we wait */
	buf_text(&r->bearer, r->slot->token);
	r->http = (struct http_request){ .method = r->method,
					 .url = r->url,
					 .headers = r->headers,
					 .bearer = r->bearer.text,
					 .body = r->body,
					 .body_len = r->body_len,
					 .is_write = r->is_write,
					 .tls = &r->arm->tls,
					 .accepts_gzip = true,
					 .timeout = left > 1 ? left : 1,
					 .max_response = MOST_ANSWER,
					 .done = answered,
					 .user = r };
	http_start(r->arm->http, &r->http);
}

static bool is_wanted(const struct token_slot *s)
{
	const struct arm_request *r = s->waiting;

	while (r && r->gives_up)
		r = r->next;
	return r != NULL;
}

/* Lets those go on who wait, or only those who gave up; they may ask anew. */
static void tell(struct token_slot *s, bool is_for_all)
{
	struct arm_request *told = NULL, **end = &told, **at = &s->waiting;

	while (*at) {
		struct arm_request *r = *at;
		if (!is_for_all && !r->gives_up) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		r->next = NULL;
		*end = r;
		end = &r->next;
	}
	while (told) {
		struct arm_request *r = told;
		told = r->next;
		r->next = NULL;
		r->waits = false;
		if (r->gives_up) {
			finish(r);
		} else if (s->token && loop_now(s->arm->loop) < s->ends_at) {
			send(r);
		} else {
			r->error = s->error;
			if (r->error.kind == ERROR_NONE)
				error_set(&r->error, ERROR_UNAVAILABLE, "no token: it ended before it could be used");
			finish(r);
		}
	}
}

static void fetch(struct token_slot *s);

/* From the loop: whoever went is told, whoever came gets what is there, or it is asked for. */
static void serve(struct timer *timer)
{
	struct token_slot *s = timer->user;

	if (s->is_asking && !is_wanted(s)) {
		http_cancel(&s->request);
		return;
	}
	if (!is_wanted(s))
		timer_stop(&s->again);
	tell(s, false);
	if (s->is_asking || timer_is_running(&s->again) || !is_wanted(s))
		return;
	if (s->token && loop_now(s->arm->loop) < s->renew_at) {
		tell(s, true);
		return;
	}
	s->tries = 0;
	s->first_at = loop_now(s->arm->loop);
	fetch(s);
}

static void fetch_again(struct timer *timer)
{
	fetch(timer->user);
}

static void keep_token(struct token_slot *s, const struct http_request *r)
{
	CLEANUP(arena_release) struct arena scratch = { 0 };
	millis now = loop_now(s->arm->loop), lives;
	const char *token;

	if (!token_answer_read(r->response, r->response_len, &scratch, &token, &lives, &s->error))
		return;
	forget_token(s);
	s->token = xstrdup(token);
	s->ends_at = now + lives;
	s->renew_at = now + lives - (lives / 2 < RENEW_BEFORE ? lives / 2 : RENEW_BEFORE);
}

/* The machine's may be wrong, and what is signed with a wrong one is refused. */
static void hear_time(struct arm *arm, const struct http_request *r)
{
	millis at;

	if (r->error.kind == ERROR_NONE && http_date(http_header(r, "Date"), &at))
		arm->clock.ahead += at - clock_now(&arm->clock);
}

static void fetched(struct http_request *r)
{
	struct token_slot *s = r->user;
	bool is_managed = !s->asked.body.len;
	millis wait = -1;

	s->is_asking = false;
	hear_time(s->arm, r);
	token_request_release(&s->asked);
	if (r->error.kind != ERROR_NONE) {
		s->error = r->error;
	} else if (r->status != 200) {
		token_refusal_read(r->status, r->response, r->response_len, &s->error);
		if (is_managed)
			wait = token_imds_wait(r->status, s->tries, loop_now(s->arm->loop) - s->first_at);
	} else {
		keep_token(s, r);
	}
	if (r->error.kind == ERROR_CANCELLED) { /* somebody may have come since */
		tell(s, false);
		if (is_wanted(s))
			timer_start(s->arm->loop, &s->soon, 0, serve);
	} else if (wait >= 0 && is_wanted(s)) {
		timer_start(s->arm->loop, &s->again, wait, fetch_again);
	} else {
		tell(s, true);
	}
}

static void fetch(struct token_slot *s)
{
	static const char *const form[] = { "Content-Type: application/x-www-form-urlencoded",
					    "Accept: application/json", NULL };
	static const char *const metadata[] = { "Metadata: true", NULL };
	struct azure_environment env = azure_environment_read();

	s->tries++;
	if (!token_request_write(&env, &s->place, clock_now(&s->arm->clock), &s->asked, &s->error)) {
		token_request_release(&s->asked);
		tell(s, true);
		return;
	}
	bool is_managed = !s->asked.body.len;
	s->is_asking = true;
	s->request = (struct http_request){ .method = is_managed ? "GET" : "POST",
					    .url = s->asked.url.text,
					    .headers = is_managed ? metadata : form,
					    .body = s->asked.body.text,
					    .body_len = s->asked.body.len,
					    .tls = &s->arm->tls,
					    .proxy = is_managed ? "" : NULL,
					    .timeout = FETCH_DEADLINE,
					    .max_response = MOST_TOKEN,
					    .done = fetched,
					    .user = s };
	http_start(s->arm->http, &s->request);
}

static void wait_for_token(struct arm_request *r)
{
	struct arm_request **end = &r->slot->waiting;

	while (*end)
		end = &(*end)->next;
	*end = r;
	r->next = NULL;
	r->waits = true;
	timer_start(r->arm->loop, &r->slot->soon, 0, serve);
}

static void give_up(struct arm_request *r, enum error_kind kind, const char *why)
{
	error_set(&r->error, kind, "%s", why);
	r->gives_up = true;
	timer_start(r->arm->loop, &r->slot->soon, 0, serve);
}

static void too_late(struct timer *t)
{
	struct arm_request *r = t->user;

	if (r->waits)
		give_up(r, ERROR_TIMEOUT, "no token came in time");
}

static void answered(struct http_request *h)
{
	struct arm_request *r = h->user;
	const char *told;

	hear_time(r->arm, h);
	if (h->error.kind != ERROR_NONE) {
		r->error = h->error;
		h->status = 0;
	} else if (h->status == 401 && !r->was_refused) {
		struct token_slot *s = r->slot;
		r->was_refused = true;
		if (s->token && strcmp(s->token, h->bearer) == 0)
			s->renew_at = s->ends_at = 0; /* whoever asks next gets another */
		wait_for_token(r);
		return;
	} else {
		told = http_header(h, "Retry-After");
		r->retry_after = told ? retry_after(told, clock_now(&r->arm->clock)) : -1;
		if (http_status_kind(h->status) != ERROR_NONE)
			azure_failure_read(h->status, h->response, h->response_len, &r->error);
	}
	finish(r);
}

void arm_start(struct arm *arm, const struct azure_place *place, struct arm_request *r)
{
	assert(!r->is_active);
	r->is_active = true;
	r->was_refused = r->gives_up = false;
	r->error = (struct error){ 0 };
	r->retry_after = -1;
	r->arm = arm;
	r->slot = slot_of(arm, place);
	r->ends_at = loop_now(arm->loop) + r->timeout;
	r->http = (struct http_request){ 0 };
	if (r->if_match)
		buf_printf(&r->match, "If-Match: %s", r->if_match);
	r->timer.user = r;
	timer_start(arm->loop, &r->timer, r->timeout, too_late);
	wait_for_token(r);
}

void arm_cancel(struct arm_request *r)
{
	if (!r->is_active)
		return;
	if (!r->waits)
		http_cancel(&r->http);
	else if (!r->gives_up)
		give_up(r, ERROR_CANCELLED, "cancelled");
}

/* The budget of PUTs. */

enum { BUCKET = 20 };
static const millis REFILL = MINUTE;

bool put_bucket_take(struct put_bucket *b, millis now, millis *wait)
{
	millis full_at = (b->full_at > now ? b->full_at : now) + REFILL;

	if (full_at - now > BUCKET * REFILL) {
		*wait = full_at - now - BUCKET * REFILL;
		return false;
	}
	b->full_at = full_at;
	return true;
}

millis put_bucket_empty(struct put_bucket *b, millis now, millis wait)
{
	wait = wait > 0 ? wait : REFILL;
	b->full_at = now + wait + (BUCKET - 1) * REFILL;
	return wait;
}
