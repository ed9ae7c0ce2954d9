#include "controller/cluster/api.h"

#include "base/text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { IDLE, WAITING /* for a credential */, SENDING, PAUSED /* before the next attempt */, ENDING };

#define RETRY_FIRST   (250)
#define RETRY_LONGEST (5 * SECOND)

struct api {
	struct loop *loop;
	struct http *http;
	const struct clock *clock;
	struct clock machine;
	const struct kubeconfig *access;
	struct credential *credential;
	struct api_call *calls;
	size_t active;
	enum api_gate gate;
	char why_not[160];
	millis until; /* writes only before; 0: no limit */
	struct api_counts counts;
	uint64_t seed, streams;
	struct arena texts; /* of the kinds */
	struct api_kind *kinds;
	bool is_near; /* the server is on this machine: packing answers only costs */
};

static void send_call(struct api_call *c);

static bool is_loopback(const char *server)
{
	const char *host = strstr(server, "://");

	host = host ? host + 3 : server;
	return !strncmp(host, "127.", 4) || !strncmp(host, "localhost", 9) || !strncmp(host, "[::1]", 5);
}

struct api *api_open(const struct api_setup *s)
{
	struct api *a = calloc(1, sizeof *a);

	if (!a)
		abort();
	a->loop = s->loop;
	a->http = s->http;
	a->clock = s->clock;
	a->machine = clock_open();
	a->access = s->access;
	a->seed = s->seed;
	a->credential = credential_open(s->loop, &a->machine, s->access);
	a->is_near = is_loopback(s->access->server);
	return a;
}

void api_close(struct api *a)
{
	if (!a)
		return;
	assert(!a->active);
	credential_close(a->credential);
	arena_release(&a->texts);
	free(a);
}

size_t api_active(const struct api *a)
{
	return a->active + credential_is_busy(a->credential);
}

const char *api_server(const struct api *a)
{
	return a->access->server;
}

struct loop *api_loop(const struct api *a)
{
	return a->loop;
}

const struct clock *api_clock(const struct api *a)
{
	return a->clock;
}

struct api_counts api_counts(const struct api *a)
{
	return a->counts;
}

struct random api_random(struct api *a, const char *purpose)
{
	return random_stream(a->seed + ++a->streams, purpose);
}

const struct api_kind *api_kind_known(const struct api *a, const char *api_version, const char *kind)
{
	for (const struct api_kind *k = a->kinds; k; k = k->next)
		if (!strcmp(k->api_version, api_version) && !strcmp(k->kind, kind))
			return k;
	return NULL;
}

const struct api_kind *api_kind_learn(struct api *a, const struct api_kind *k)
{
	struct api_kind *copy = arena_new(&a->texts, struct api_kind);

	*copy = *k;
	copy->api_version = arena_strdup(&a->texts, k->api_version, strlen(k->api_version));
	copy->kind = arena_strdup(&a->texts, k->kind, strlen(k->kind));
	copy->plural = arena_strdup(&a->texts, k->plural, strlen(k->plural));
	copy->next = a->kinds;
	a->kinds = copy;
	return copy;
}

/* The one place where a writing call is kept back. */
static bool is_barred(const struct api *a, enum api_effect effect)
{
	if (effect == API_WRITE)
		return a->gate != API_GATE_OPEN || (a->until && loop_now(a->loop) >= a->until);
	return effect == API_LEASE && a->gate == API_GATE_SHUT;
}

static void link_call(struct api *a, struct api_call *c)
{
	c->api = a;
	c->previous = NULL;
	c->next = a->calls;
	if (a->calls)
		a->calls->previous = c;
	a->calls = c;
	a->active++;
}

static void unlink_call(struct api *a, struct api_call *c)
{
	if (c->previous)
		c->previous->next = c->next;
	else
		a->calls = c->next;
	if (c->next)
		c->next->previous = c->previous;
	a->active--;
}

/* To look for what is not there, such as a kind that nobody installed, is answered as it should be. */
static bool is_failure(const struct api_call *c)
{
	bool is_looking = !c->method || !strcmp(c->method, "GET");

	return c->error.kind != ERROR_NONE && c->error.kind != ERROR_CANCELLED && !(is_looking && c->status == 404);
}

/* The caller may start the call anew, or free it, inside done(). */
static void finish(struct api_call *c)
{
	struct api *a = c->api;
	struct credential_shown *shown = c->shown;
	struct arena arena = c->arena;

	timer_stop(&c->timer);
	unlink_call(a, c);
	buf_release(&c->url);
	c->shown = NULL;
	c->arena = (struct arena){ 0 };
	c->state = IDLE;
	a->counts.failures += is_failure(c);
	a->counts.barred += c->is_barred;
	c->done(c);
	arena_release(&arena);
	credential_let_go(shown);
}

static void ended(struct timer *t)
{
	finish(t->user);
}

/* Completes from the loop with the error that stands in the call. */
static void end_soon(struct api_call *c)
{
	c->state = ENDING;
	c->status = 0;
	c->response = "";
	c->response_len = 0;
	c->timer.user = c;
	timer_start(c->api->loop, &c->timer, 0, ended);
}

static void bar(struct api_call *c)
{
	c->is_barred = true;
	error_set(&c->error, ERROR_CANCELLED, "%s %s: not sent: %s", c->method, c->path,
		  c->api->gate == API_GATE_OPEN ? "the lease ran out" : c->api->why_not);
	end_soon(c);
}

static millis time_left(const struct api_call *c)
{
	return c->deadline ? c->deadline - loop_now(c->api->loop) : INT64_MAX / 4;
}

static void took_too_long(struct timer *t)
{
	struct api_call *c = t->user;

	credential_cancel(c->api->credential, &c->wait);
	error_set(&c->error, ERROR_TIMEOUT, "%s %s: the credential plug-in took too long", c->method, c->path);
	end_soon(c);
}

static void have_credential(struct credential_wait *w)
{
	struct api_call *c = w->user;

	timer_stop(&c->timer);
	if (w->error.kind != ERROR_NONE) {
		c->error = w->error;
		end_soon(c);
		return;
	}
	c->shown = w->shown;
	send_call(c);
}

static void wait_for_credential(struct api_call *c)
{
	c->state = WAITING;
	c->wait = (struct credential_wait){ .done = have_credential, .user = c };
	c->timer.user = c;
	if (c->deadline)
		timer_start(c->api->loop, &c->timer, time_left(c) > 0 ? time_left(c) : 0, took_too_long);
	credential_ask(c->api->credential, &c->wait);
}

static bool pass_chunk(struct http_request *r, const char *bytes, size_t len)
{
	struct api_call *c = r->user;

	if (c->is_cancelled)
		return false;
	c->has_chunks = true;
	c->error = (struct error){ 0 };
	if (c->on_chunk(c, bytes, len))
		return true;
	r->error = c->error;
	return false;
}

static void pass_acceptance(struct http_request *r)
{
	struct api_call *c = r->user;

	if (!c->is_cancelled)
		c->on_accepted(c);
}

static void pause_over(struct timer *t)
{
	send_call(t->user);
}

static bool is_worth_again(const struct api_call *c)
{
	bool may = c->effect == API_READ ? !c->is_single : c->is_repeatable;

	return may && c->deadline && !c->has_chunks && !c->is_cancelled && !c->is_barred &&
	       (c->error.kind == ERROR_THROTTLED || c->error.kind == ERROR_UNAVAILABLE ||
		(c->error.kind == ERROR_TIMEOUT && c->status));
}

/* How long until the next attempt; -1: there is none. */
static millis next_attempt(struct api_call *c)
{
	if (c->status == 401 && !c->was_refused && !c->is_cancelled && !c->is_barred) {
		c->was_refused = true;
		return credential_refused(c->api->credential, c->shown) ? 0 : -1;
	}
	if (!is_worth_again(c))
		return -1;
	millis wait = retry_next(&c->retry, c->retry_after);
	return wait < time_left(c) ? wait : -1;
}

static bool try_again(struct api_call *c)
{
	millis wait = next_attempt(c);

	if (wait < 0)
		return false;
	c->api->counts.retries++;
	credential_let_go(c->shown);
	c->shown = NULL;
	arena_clear(&c->arena);
	c->state = PAUSED;
	c->timer.user = c;
	timer_start(c->api->loop, &c->timer, wait, pause_over);
	return true;
}

static void read_refusal(struct api_call *c)
{
	char call[256];

	snprintf(call, sizeof call, "%s %.*s", c->method, (int)strcspn(c->path, "?"), c->path);
	status_read(c->response, c->response_len, &c->arena, &c->answer);
	c->is_expired = c->status == 410;
	c->retry_after = retry_after(http_header(&c->http, "Retry-After"), clock_now(&c->api->machine));
	if (!c->retry_after && c->answer.retry_after_seconds > 0 && c->answer.retry_after_seconds < 3600)
		c->retry_after = c->answer.retry_after_seconds * SECOND;
	c->api->counts.throttled += c->status == 429;
	status_error(&c->answer, c->status, call, &c->error);
}

static void answered(struct http_request *r)
{
	struct api_call *c = r->user;

	c->status = r->error.kind == ERROR_NONE ? r->status : 0;
	c->response = r->response;
	c->response_len = r->response_len;
	c->answer = (struct api_status){ 0 };
	c->error = r->error;
	c->retry_after = 0;
	c->is_barred = c->is_barred && r->error.kind == ERROR_CANCELLED;
	if (r->error.kind == ERROR_NONE && (r->status < 200 || r->status > 299))
		read_refusal(c);
	else if (c->is_barred)
		error_set(&c->error, ERROR_CANCELLED, "%s %s: stopped on its way: %s; it may have been done", c->method,
			  c->path, c->api->why_not);
	if (!try_again(c))
		finish(c);
}

static void fill_request(struct api_call *c)
{
	const struct api *a = c->api;
	size_t n = 0;

	c->headers[n++] = "Accept: application/json";
	if (c->body) {
		snprintf(c->content_header, sizeof c->content_header, "Content-Type: %s",
			 c->content_type ? c->content_type : "application/json");
		c->headers[n++] = c->content_header;
	}
	c->headers[n] = NULL;
	c->http = (struct http_request){
		.method = c->method,
		.url = c->url.text,
		.headers = c->headers,
		.bearer = c->shown->token,
		.body = c->body,
		.body_len = c->body && !c->body_len ? strlen(c->body) : c->body_len,
		.tls = &c->shown->tls,
		.proxy = a->access->proxy,
		.accepts_gzip = !a->is_near && c->effect == API_READ,
		.timeout = c->deadline ? time_left(c) : 0,
		.silence_timeout = c->silence,
		.max_response = c->cap ? c->cap : API_RESPONSE_CAP,
		.on_chunk = c->on_chunk ? pass_chunk : NULL,
		.on_accepted = c->on_accepted ? pass_acceptance : NULL,
		.done = answered,
		.user = c,
	};
}

static void send_call(struct api_call *c)
{
	struct api *a = c->api;

	if (is_barred(a, c->effect)) {
		bar(c);
		return;
	}
	if (!c->shown)
		c->shown = credential_at_hand(a->credential);
	if (!c->shown) {
		wait_for_credential(c);
		return;
	}
	if (time_left(c) <= 0) {
		error_set(&c->error, ERROR_TIMEOUT, "%s %s: no time left", c->method, c->path);
		end_soon(c);
		return;
	}
	c->state = SENDING;
	c->attempts++;
	a->counts.calls++;
	fill_request(c);
	http_start(a->http, &c->http);
}

void api_start(struct api *a, struct api_call *c)
{
	assert(c->state == IDLE);
	c->error = (struct error){ 0 };
	c->answer = (struct api_status){ 0 };
	c->is_expired = c->is_barred = c->is_cancelled = c->was_refused = c->has_chunks = false;
	c->attempts = 0;
	c->retry_after = 0;
	c->status = 0;
	if (!c->method)
		c->method = "GET";
	link_call(a, c);
	c->retry = retry_make(RETRY_FIRST, RETRY_LONGEST, api_random(a, "retry"));
	millis timeout = c->timeout || c->silence ? c->timeout : API_TIMEOUT;
	c->deadline = timeout ? loop_now(a->loop) + timeout : 0;
	buf_clear(&c->url);
	buf_printf(&c->url, "%s%s", a->access->server, c->path);
	send_call(c);
}

static void stop(struct api_call *c)
{
	switch (c->state) {
	case SENDING:
		http_cancel(&c->http);
		return;
	case WAITING:
		credential_cancel(c->api->credential, &c->wait);
		break;
	case PAUSED:
		break;
	default:
		return;
	}
	timer_stop(&c->timer);
	if (c->is_barred) {
		bar(c);
		return;
	}
	error_set(&c->error, ERROR_CANCELLED, "%s %s: cancelled", c->method, c->path);
	end_soon(c);
}

void api_cancel(struct api_call *c)
{
	if (c->state == IDLE)
		return;
	c->is_cancelled = true;
	stop(c);
}

void api_cancel_all(struct api *a)
{
	for (struct api_call *c = a->calls; c; c = c->next)
		api_cancel(c);
}

void api_set_gate(struct api *a, enum api_gate gate, const char *why_not)
{
	a->gate = gate;
	snprintf(a->why_not, sizeof a->why_not, "%s", why_not ? why_not : "");
	for (struct api_call *c = a->calls; c; c = c->next)
		if (is_barred(a, c->effect) && !c->is_barred && c->state != ENDING) {
			c->is_barred = true;
			stop(c);
		}
}

void api_set_until(struct api *a, millis until)
{
	a->until = until;
}

void api_set_writes(struct api *a, bool allowed, const char *why_not)
{
	api_set_gate(a, allowed ? API_GATE_OPEN : API_GATE_LEASE_ONLY, why_not);
}

static void add_part(struct buf *out, const char *part)
{
	if (!part)
		return;
	buf_text(out, "/");
	uri_segment(part, out);
}

void api_object_path(const struct api_object *o, struct buf *out)
{
	bool is_core = !strchr(o->api_version, '/');

	buf_printf(out, "%s/%s", is_core ? "/api" : "/apis", o->api_version);
	if (o->name_space) {
		buf_text(out, "/namespaces");
		add_part(out, o->name_space);
	}
	add_part(out, o->plural);
	add_part(out, o->name);
	add_part(out, o->subresource);
}

void api_query(struct buf *url, const char *name, const char *value)
{
	if (!value)
		return;
	buf_printf(url, "%c%s=", url->text && strchr(url->text, '?') ? '&' : '?', name);
	uri_escape(value, strlen(value), "", url);
}

void api_time(millis at, struct buf *out)
{
	time_t seconds = (time_t)(at / SECOND);
	struct tm tm;
	char text[32];

	gmtime_r(&seconds, &tm);
	strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
	buf_printf(out, "%s.%03d000Z", text, (int)(at % SECOND));
}
