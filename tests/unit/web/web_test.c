/* What is served over HTTP, over a real socket. */
#include "controller/web/web.h"
#include "tests/unit/net/http_calls.h"
#include "tests/unit/web/shown.h"

#include <stdlib.h>

struct site {
	struct loop *loop;
	struct http *http;
	struct web *web;
	struct shown shown;
	char content_type[128], last_tick[64];
};

static struct site *open_site(void)
{
	struct site *s = calloc(1, sizeof *s);
	struct error e;

	assert_non_null(s);
	shown_fill(&s->shown);
	clock_turn(&s->shown.clock, 1010 * SECOND);
	s->loop = loop_open();
	s->http = http_open(s->loop, "preheat/test", &e);
	s->web = web_open(s->loop, "127.0.0.1:0", &e);
	assert_non_null(s->http);
	assert_non_null(s->web);
	return s;
}

static void close_site(struct site *s)
{
	http_close(s->http);
	web_close(s->web);
	loop_close(s->loop);
	free(s);
}

static struct site *asked; /* the one that a call is about */

static void note_headers(struct call *c)
{
	const char *type = http_header(&c->r, "content-type"), *tick = http_header(&c->r, "preheat-last-tick");

	snprintf(asked->content_type, sizeof asked->content_type, "%s", type ? type : "");
	snprintf(asked->last_tick, sizeof asked->last_tick, "%s", tick ? tick : "");
}

static struct call *get(struct site *s, const char *method, const char *path)
{
	static struct call c;
	char url[256];

	snprintf(url, sizeof url, "http://127.0.0.1:%u%s", (unsigned)web_port(s->web), path);
	c = call_to(url);
	c.r.method = method;
	c.r.max_response = 1 << 20;
	c.r.user = &c;
	c.then = note_headers;
	asked = s;
	http_start(s->http, &c.r);
	while (http_active(s->http))
		assert_true(loop_once(s->loop) || !http_active(s->http));
	assert_int_equal(c.kind, ERROR_NONE);
	return &c;
}

static void expect(struct site *s, const char *path, long status, const char *text)
{
	const struct call *c = get(s, "GET", path);

	if (c->status != status || !strstr(c->response, text))
		fail_msg("%s: %ld %s", path, c->status, c->response);
}

static void before_anything_is_shown(void **state)
{
	struct site *s = open_site();

	(void)state;
	expect(s, "/healthz", 200, "ok\n");
	expect(s, "/readyz", 503, "not ready: starting\n");
	expect(s, "/metrics", 200, "preheat_ticks_total 0\n");
	assert_string_equal(s->content_type, "text/plain; version=0.0.4; charset=utf-8");
	expect(s, "/", 200, "/metrics, /healthz, /readyz");
	expect(s, "/replica", 403, "annotation");
	close_site(s);
}

static void what_is_shown_is_served(void **state)
{
	struct site *s = open_site();

	(void)state;
	web_show(s->web, &s->shown.p);
	expect(s, "/healthz", 200, "ok\n");
	expect(s, "/readyz", 200, "ready: leading\n");
	expect(s, "/", 200, "Preheat 0.1.0");
	expect(s, "/metrics", 200, "preheat_pool_info{namespace=\"llm\"");
	clock_turn(&s->shown.clock, MINUTE + 7 * SECOND);
	expect(s, "/healthz", 503, "wedged");
	s->shown.p.is_stopping = true;
	expect(s, "/readyz", 503, "stopping");
	web_show(s->web, NULL);
	expect(s, "/readyz", 503, "starting");
	close_site(s);
}

static void anything_else_is_refused(void **state)
{
	struct site *s = open_site();

	(void)state;
	expect(s, "/metric", 404, "/metrics, /healthz, /readyz");
	expect(s, "/../etc/passwd", 404, "not found");
	assert_int_equal(get(s, "POST", "/healthz")->status, 405);
	assert_int_equal(get(s, "DELETE", "/metrics")->status, 405);
	assert_int_equal(get(s, "HEAD", "/healthz")->status, 200);
	close_site(s);
}

static bool export(void *user, const struct replica_tail *at, struct buf *out, int64_t *last, struct error *e)
{
	const enum error_kind *fails = user;

	if (*fails != ERROR_NONE)
		return error_set(e, *fails, "not now");
	buf_printf(out, "%s %lld %u", at->way == REPLICA_PAST ? "before" : "after", (long long)at->tick,
		   (unsigned)at->crc);
	*last = 99;
	return true;
}

static void followers_need_the_key(void **state)
{
	struct site *s = open_site();
	enum error_kind fails = ERROR_NONE;

	(void)state;
	web_serve_replica(s->web, "0123456789abcdef", export, &fails);
	expect(s, "/replica", 403, "annotation");
	expect(s, "/replica?key=", 403, "annotation");
	expect(s, "/replica?key=0123456789abcdeF&tick=1", 403, "annotation");
	expect(s, "/replica?key=0123456789abcdef0&tick=1", 403, "annotation");
	expect(s, "/replica?key=0123456789abcdef&tick=41&crc=7", 200, "after 41 7");
	assert_string_equal(s->last_tick, "99");
	expect(s, "/replica?key=0123456789abcdef&tick=41&crc=7&way=2", 200, "before 41 7");
	expect(s, "/replica?key=0123456789abcdef&tick=41&crc=7&way=3", 400, "0, 1 and 2");
	expect(s, "/replica?key=0123456789abcdef", 200, "after -1 0");
	expect(s, "/replica?key=0123456789abcdef&tick=x&crc=-", 200, "after -1 0");
	fails = ERROR_CONFLICT;
	expect(s, "/replica?key=0123456789abcdef&tick=1", 409, "not now");
	fails = ERROR_UNAVAILABLE;
	expect(s, "/replica?key=0123456789abcdef&tick=1", 503, "not now");
	close_site(s);
}

static void an_address_that_cannot_be_had(void **state)
{
	struct site *s = open_site();
	struct error e = { 0 };
	char taken[32];

	(void)state;
	snprintf(taken, sizeof taken, "127.0.0.1:%u", (unsigned)web_port(s->web));
	assert_null(web_open(s->loop, taken, &e));
	assert_int_equal(e.kind, ERROR_UNAVAILABLE);
	assert_null(web_open(s->loop, "nowhere", &e));
	assert_int_equal(e.kind, ERROR_INVALID);
	close_site(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(before_anything_is_shown),	 cmocka_unit_test(what_is_shown_is_served),
		cmocka_unit_test(anything_else_is_refused),	 cmocka_unit_test(followers_need_the_key),
		cmocka_unit_test(an_address_that_cannot_be_had),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
