#include "providers/azure/arm.h"

#include "base/clock.h"
#include "base/net/retry.h"
#include "providers/azure/failure.h"

#include <assert.h>
#include <string.h>

static const size_t MOST_ANSWER = (size_t)16 << 20; /* a thousand machines are 1 MiB */

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

static void ask(struct arm_request *r)
{
	token_ask(r->tokens, &r->place, &r->wait);
}

static void answered(struct http_request *h)
{
	struct arm_request *r = h->user;
	struct clock now = clock_open();
	const char *told;

	if (h->error.kind != ERROR_NONE) {
		r->error = h->error;
		h->status = 0;
	} else if (h->status == 401 && !r->was_refused) {
		r->was_refused = true;
		token_refused(r->tokens, &r->place, h->bearer);
		ask(r);
		return;
	} else {
		told = http_header(h, "Retry-After");
		r->retry_after = told ? retry_after(told, clock_now(&now)) : -1;
		if (http_status_kind(h->status) != ERROR_NONE)
			azure_failure_read(h->status, h->response, h->response_len, &r->error);
	}
	finish(r);
}

static void send(struct arm_request *r, const char *token)
{
	size_t count = 0;

	r->headers[count++] = "Accept: application/json";
	if (r->body)
		r->headers[count++] = "Content-Type: application/json";
	if (r->match.len)
		r->headers[count++] = r->match.text;
	r->headers[count] = NULL;
	buf_clear(&r->bearer); /* the token may be renewed while we wait */
	buf_text(&r->bearer, token);
	millis left = r->ends_at - loop_now(r->loop);
	r->http.method = r->method;
	r->http.url = r->url;
	r->http.headers = r->headers;
	r->http.bearer = r->bearer.text;
	r->http.body = r->body;
	r->http.body_len = r->body_len;
	r->http.timeout = left > 1 ? left : 1;
	http_start(r->client, &r->http);
}

static void has_token(struct token_wait *w)
{
	struct arm_request *r = w->user;

	if (w->token) {
		send(r, w->token);
		return;
	}
	if (r->error.kind == ERROR_NONE)
		r->error = w->error;
	finish(r);
}

static void too_late(struct timer *t)
{
	struct arm_request *r = t->user;

	if (r->wait.slot) {
		error_set(&r->error, ERROR_TIMEOUT, "no token came in time");
		token_cancel(&r->wait);
	}
}

void arm_start(struct arm *arm, const struct azure_place *place, struct arm_request *r)
{
	assert(!r->is_active);
	r->is_active = true;
	r->was_refused = false;
	r->error = (struct error){ 0 };
	r->retry_after = -1;
	r->tokens = arm->tokens;
	r->client = arm->http;
	r->loop = arm->loop;
	r->place = *place;
	r->ends_at = loop_now(arm->loop) + r->timeout;
	r->wait = (struct token_wait){ .done = has_token, .user = r };
	r->http = (struct http_request){
		.tls = &arm->tls, .accepts_gzip = true, .max_response = MOST_ANSWER, .done = answered, .user = r
	};
	if (r->if_match)
		buf_printf(&r->match, "If-Match: %s", r->if_match);
	r->timer.user = r;
	timer_start(arm->loop, &r->timer, r->timeout, too_late);
	ask(r);
}

void arm_cancel(struct arm_request *r)
{
	if (!r->is_active)
		return;
	if (r->wait.slot) {
		error_set(&r->error, ERROR_CANCELLED, "cancelled");
		token_cancel(&r->wait);
	} else {
		http_cancel(&r->http);
	}
}
