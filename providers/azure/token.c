#include "providers/azure/token.h"

#include "base/clock.h"
#include "base/net/http.h"
#include "base/net/retry.h"
#include "providers/azure/token_request.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const millis FETCH_DEADLINE = 15 * SECOND, RENEW_BEFORE = 5 * MINUTE;
static const size_t MOST_ANSWER = (size_t)256 << 10;

struct token_slot {
	struct token_slot *next;
	struct tokens *tokens;
	struct azure_place place;
	struct arena arena; /* of the place and the token */
	const char *token;
	millis renew_at, ends_at; /* loop time */
	struct token_wait *waiting;
	struct timer soon, again;
	struct token_request asked;
	struct http_request request;
	bool is_asking;
	int tries;
	millis first_at;
	struct error error;
};

struct tokens {
	struct loop *loop;
	struct http *http;
	const struct http_tls *tls;
	struct clock clock;
	struct token_slot *slots;
};

struct tokens *tokens_open(struct loop *loop, struct http *http, const struct http_tls *tls)
{
	struct tokens *t = calloc(1, sizeof *t);

	if (!t)
		abort();
	*t = (struct tokens){ .loop = loop, .http = http, .tls = tls, .clock = clock_open() };
	return t;
}

static void forget_token(struct token_slot *s)
{
	if (s->token)
		explicit_bzero((char *)(uintptr_t)s->token, strlen(s->token));
	s->token = NULL;
}

void tokens_close(struct tokens *t)
{
	struct token_slot *next;

	if (!t)
		return;
	for (struct token_slot *s = t->slots; s; s = next) {
		assert(!s->waiting && !s->is_asking);
		next = s->next;
		timer_stop(&s->soon);
		forget_token(s);
		arena_release(&s->arena);
		free(s);
	}
	free(t);
}

/* The places of two groups differ only where their clouds do. */
static bool is_at(const struct token_slot *s, const struct azure_place *place)
{
	return strcmp(s->place.audience, place->audience) == 0 && strcmp(s->place.authority, place->authority) == 0;
}

static struct token_slot *find(struct tokens *t, const struct azure_place *place)
{
	struct token_slot *s = t->slots;

	while (s && !is_at(s, place))
		s = s->next;
	if (s)
		return s;
	s = calloc(1, sizeof *s);
	if (!s)
		abort();
	s->tokens = t;
	s->soon.user = s->again.user = s;
	s->place = (struct azure_place){
		.endpoint = arena_strdup(&s->arena, place->endpoint, strlen(place->endpoint)),
		.audience = arena_strdup(&s->arena, place->audience, strlen(place->audience)),
		.authority = arena_strdup(&s->arena, place->authority, strlen(place->authority)),
	};
	s->next = t->slots;
	t->slots = s;
	return s;
}

static bool is_usable(const struct token_slot *s)
{
	return s->token && loop_now(s->tokens->loop) < s->ends_at;
}

static bool is_fresh(const struct token_slot *s)
{
	return s->token && loop_now(s->tokens->loop) < s->renew_at;
}

static bool is_wanted(const struct token_slot *s)
{
	const struct token_wait *w = s->waiting;

	while (w && w->is_cancelled)
		w = w->next;
	return w != NULL;
}

static void tell(struct token_slot *s, bool cancelled_only)
{
	struct token_wait *told = NULL, **end = &told, **at = &s->waiting;

	while (*at) {
		struct token_wait *w = *at;
		if (cancelled_only && !w->is_cancelled) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		w->next = NULL;
		*end = w;
		end = &w->next;
	}
	while (told) {
		struct token_wait *w = told;
		told = w->next;
		w->next = NULL;
		w->slot = NULL;
		w->error = (struct error){ 0 };
		w->token = is_usable(s) && !w->is_cancelled ? s->token : NULL;
		if (w->is_cancelled)
			error_set(&w->error, ERROR_CANCELLED, "cancelled");
		else if (!w->token && s->error.kind != ERROR_NONE)
			w->error = s->error;
		else if (!w->token)
			error_set(&w->error, ERROR_UNAVAILABLE, "no token: it ended before it could be used");
		w->done(w);
	}
}

static void begin(struct token_slot *s);

/* From the loop: whoever went is told, whoever came gets what is there, or it is asked for. */
static void look(struct timer *timer)
{
	struct token_slot *s = timer->user;

	if (s->is_asking && !is_wanted(s)) {
		http_cancel(&s->request);
		return;
	}
	if (!is_wanted(s))
		timer_stop(&s->again);
	tell(s, true);
	if (s->is_asking || timer_is_running(&s->again) || !is_wanted(s))
		return;
	if (is_fresh(s)) {
		tell(s, false);
		return;
	}
	s->tries = 0;
	s->first_at = loop_now(s->tokens->loop);
	begin(s);
}

static void ask_again(struct timer *timer)
{
	begin(timer->user);
}

static void keep(struct token_slot *s, const char *token, millis lives)
{
	millis now = loop_now(s->tokens->loop);
	struct arena fresh = { 0 };
	struct azure_place place = {
		.endpoint = arena_strdup(&fresh, s->place.endpoint, strlen(s->place.endpoint)),
		.audience = arena_strdup(&fresh, s->place.audience, strlen(s->place.audience)),
		.authority = arena_strdup(&fresh, s->place.authority, strlen(s->place.authority)),
	};

	forget_token(s);
	s->token = arena_strdup(&fresh, token, strlen(token));
	arena_release(&s->arena);
	s->arena = fresh;
	s->place = place;
	s->ends_at = now + lives;
	s->renew_at = now + lives - (lives / 2 < RENEW_BEFORE ? lives / 2 : RENEW_BEFORE);
}

static bool read_answer(struct token_slot *s, const struct http_request *r)
{
	CLEANUP(arena_release) struct arena scratch = { 0 };
	const char *token;
	millis lives;

	if (!token_answer_read(r->response, r->response_len, &scratch, &token, &lives, &s->error))
		return false;
	keep(s, token, lives);
	return true;
}

static void answered(struct http_request *r)
{
	struct token_slot *s = r->user;
	bool is_managed = !s->asked.body.len;
	millis wait = -1;

	s->is_asking = false;
	token_request_release(&s->asked);
	if (r->error.kind != ERROR_NONE) {
		s->error = r->error;
	} else if (r->status != 200) {
		token_refusal_read(r->status, r->response, r->response_len, &s->error);
		if (is_managed)
			wait = token_imds_wait(r->status, s->tries, loop_now(s->tokens->loop) - s->first_at);
	} else {
		read_answer(s, r);
	}
	if (r->error.kind == ERROR_CANCELLED) { /* somebody may have come since */
		tell(s, true);
		if (is_wanted(s))
			timer_start(s->tokens->loop, &s->soon, 0, look);
	} else if (wait >= 0 && is_wanted(s)) {
		timer_start(s->tokens->loop, &s->again, wait, ask_again);
	} else {
		tell(s, false);
	}
}

static void begin(struct token_slot *s)
{
	static const char *const form[] = { "Content-Type: application/x-www-form-urlencoded",
					    "Accept: application/json", NULL };
	static const char *const metadata[] = { "Metadata: true", NULL };
	struct azure_environment env = azure_environment_read();

	s->tries++;
	if (!token_request_write(&env, &s->place, clock_now(&s->tokens->clock), &s->asked, &s->error)) {
		token_request_release(&s->asked);
		tell(s, false);
		return;
	}
	bool is_managed = !s->asked.body.len;
	s->is_asking = true;
	s->request = (struct http_request){ .method = is_managed ? "GET" : "POST",
					    .url = s->asked.url.text,
					    .headers = is_managed ? metadata : form,
					    .body = s->asked.body.text,
					    .body_len = s->asked.body.len,
					    .tls = s->tokens->tls,
					    .proxy = is_managed ? "" : NULL,
					    .timeout = FETCH_DEADLINE,
					    .max_response = MOST_ANSWER,
					    .done = answered,
					    .user = s };
	http_start(s->tokens->http, &s->request);
}

void token_ask(struct tokens *t, const struct azure_place *place, struct token_wait *w)
{
	struct token_slot *s = find(t, place);
	struct token_wait **end = &s->waiting;

	assert(!w->slot);
	while (*end)
		end = &(*end)->next;
	*end = w;
	w->next = NULL;
	w->slot = s;
	w->is_cancelled = false;
	timer_start(t->loop, &s->soon, 0, look);
}

void token_cancel(struct token_wait *w)
{
	struct token_slot *s = w->slot;

	if (!s || w->is_cancelled)
		return;
	w->is_cancelled = true;
	timer_start(s->tokens->loop, &s->soon, 0, look);
}

void token_refused(struct tokens *t, const struct azure_place *place, const char *token)
{
	struct token_slot *s = find(t, place);

	if (s->token && strcmp(s->token, token) == 0)
		s->renew_at = s->ends_at = 0;
}
