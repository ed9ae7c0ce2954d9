/* What the tests of the HTTP client share: calls that remember how they ended. */
#pragma once
#include "base/net/http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

struct call {
	struct http_request r;
	struct loop *loop;
	struct http *http;
	int done;
	enum error_kind kind;
	char message[512];
	long status;
	char response[4096];
	size_t response_len;
	char retry_after[64];
	void (*then)(struct call *c); /* inside done() */
};

static inline void call_done(struct http_request *r)
{
	struct call *c = r->user;
	const char *told = http_header(r, "retry-after");

	c->done++;
	c->kind = r->error.kind;
	c->status = r->status;
	c->response_len = r->response_len;
	memcpy(c->message, r->error.message, sizeof c->message);
	snprintf(c->response, sizeof c->response, "%s", r->response);
	snprintf(c->retry_after, sizeof c->retry_after, "%s", told ? told : "");
	if (c->then)
		c->then(c);
}

static inline struct call call_to(const char *url)
{
	return (struct call){
		.r = { .method = "GET", .url = url, .timeout = MINUTE, .max_response = 4000, .done = call_done }
	};
}

/* Opens what the call needs, runs it to its end, closes. */
static inline void call_run(struct call *c)
{
	struct error e;

	c->r.user = c;
	c->loop = loop_open();
	c->http = http_open(c->loop, "preheat/test", &e);
	assert_non_null(c->http);
	http_start(c->http, &c->r);
	assert_int_equal(c->done, 0);
	while (http_active(c->http))
		assert_true(loop_once(c->loop) || !http_active(c->http));
	http_close(c->http);
	loop_close(c->loop);
}
