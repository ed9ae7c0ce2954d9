/* Who is let in, with an API server that a test plays, over real sockets; time is turned by hand. */
#include "base/log.h"
#include "controller/web/authz.h"
#include "tests/unit/net/http_calls.h"

#include <stdlib.h>

enum { ASKED_MOST = 600 };

/* A question that waits for the test's answer. */
struct asked {
	struct authz_review *review;
	char text[600];
};

static struct loop *loop;
static struct http *http;
static struct server *server;
static struct authz *authz;
static struct clock hand;
static struct asked asked[ASKED_MOST];
static size_t asked_count;
static char log_text[20000];

static void ask_api(void *user, struct authz_review *r)
{
	struct asked *a = &asked[asked_count++];

	assert_ptr_equal(user, &hand);
	assert_true(asked_count < ASKED_MOST);
	a->review = r;
	if (r->is_access)
		snprintf(a->text, sizeof a->text, "%s may %s %s", r->who, r->verb, r->path);
	else
		snprintf(a->text, sizeof a->text, "token %s", r->token);
}

static void hello(const struct server_request *q, struct server_answer *a)
{
	buf_printf(&a->body, "hello %zu", q->body_len);
}

static const struct server_route routes[] = {
	{ "GET", "/*", hello, NULL },
	{ "POST", "/*", hello, NULL },
	{ "DELETE", "/*", hello, NULL },
};

static void note(void *user, enum log_level level, const char *line)
{
	(void)user;
	(void)level;
	snprintf(log_text + strlen(log_text), sizeof log_text - strlen(log_text), "%s\n", line);
}

static void open_all(bool is_local)
{
	struct error e;

	hand = clock_open_by_hand(INT64_C(1795000000) * SECOND);
	asked_count = 0;
	log_text[0] = '\0';
	log_set_up(&(struct log_setup){ .least = LEVEL_DEBUG, .write = note });
	loop = loop_open();
	http = http_open(loop, "preheat/test", &e);
	authz = authz_open(
		&(struct authz_settings){ .clock = &hand, .ask = is_local ? NULL : ask_api, .ask_user = &hand });
	server = server_open(loop,
			     &(struct server_settings){ .listen = "127.0.0.1:0",
							.routes = routes,
							.route_count = sizeof routes / sizeof *routes,
							.max_connections = 1000,
							.admit = authz_admit,
							.admit_user = authz },
			     &e);
	assert_non_null(server);
}

static void answer(size_t i, bool is_allowed, const char *who)
{
	struct authz_review *r = asked[i].review;

	r->is_allowed = is_allowed;
	r->told_who = is_allowed ? who : NULL;
	r->done(r);
}

static void break_off(size_t i, enum error_kind kind)
{
	error_set(&asked[i].review->error, kind, "the API server: none");
	asked[i].review->done(asked[i].review);
}

static void close_all(void)
{
	authz_close(authz);
	server_close(server);
	http_cancel_all(http);
	while (http_active(http))
		loop_once(loop);
	http_close(http);
	loop_close(loop);
	log_set_up(&(struct log_setup){ .least = LEVEL_INFO });
}

static void begin(struct call *c, const char *method, const char *path, const char *token)
{
	static char urls[ASKED_MOST][200];
	static size_t next;
	char *url = urls[next++ % ASKED_MOST];

	snprintf(url, sizeof urls[0], "http://127.0.0.1:%u%s", server_port(server), path);
	*c = call_to(url);
	c->r.method = method;
	c->r.bearer = token;
	c->r.body = strcmp(method, "GET") && strcmp(method, "HEAD") ? "0123456789" : NULL;
	c->r.body_len = c->r.body ? 10 : 0;
	c->r.user = c;
	http_start(http, &c->r);
}

static void end(struct call *c)
{
	while (!c->done)
		assert_true(loop_once(loop));
}

static void wait_for(size_t count)
{
	while (asked_count < count)
		assert_true(loop_once(loop));
}

/* The status that comes without any question. */
static long known(const char *method, const char *path, const char *token)
{
	size_t before = asked_count;
	struct call c;

	begin(&c, method, path, token);
	end(&c);
	assert_int_equal(asked_count, before);
	return c.status;
}

static const char ann[] = "{\"username\":\"ann\",\"groups\":[\"a\"]}", bob[] = "{\"username\":\"bob\"}";

static void a_token_and_a_right_are_asked_for_once(void **state)
{
	struct call c;

	(void)state;
	open_all(false);
	begin(&c, "GET", "/api/v1/pools?x=1", "T1");
	wait_for(1);
	assert_string_equal(asked[0].text, "token T1");
	answer(0, true, ann);
	wait_for(2);
	assert_string_equal(asked[1].text, "{\"username\":\"ann\",\"groups\":[\"a\"]} may get /api/v1/pools");
	answer(1, true, NULL);
	end(&c);
	assert_int_equal(c.status, 200);
	assert_int_equal(known("GET", "/api/v1/pools", "T1"), 200);
	assert_int_equal(known("HEAD", "/api/v1/pools?y", "T1"), 200);

	/* Another path or verb is another right, another token another person. */
	begin(&c, "POST", "/api/v1/pools", "T1");
	wait_for(3);
	assert_string_equal(asked[2].text, "{\"username\":\"ann\",\"groups\":[\"a\"]} may post /api/v1/pools");
	answer(2, false, NULL);
	end(&c);
	assert_int_equal(c.status, 403);
	assert_non_null(strstr(c.response, "may not post /api/v1/pools; do: bind the ClusterRole"));
	assert_int_equal(known("POST", "/api/v1/pools", "T1"), 403);
	begin(&c, "GET", "/api/v1/pools", "T2");
	wait_for(4);
	assert_string_equal(asked[3].text, "token T2");
	answer(3, true, bob);
	wait_for(5);
	assert_string_equal(asked[4].text, "{\"username\":\"bob\"} may get /api/v1/pools");
	answer(4, false, NULL);
	end(&c);
	assert_int_equal(c.status, 403);
	begin(&c, "GET", "/api/v1/pools", "T3"); /* the same person with another token: only who it is */
	wait_for(6);
	answer(5, true, ann);
	end(&c);
	assert_int_equal(c.status, 200);
	assert_int_equal(asked_count, 6);
	close_all();
}

static void what_was_said_is_believed_for_a_while(void **state)
{
	struct call c;

	(void)state;
	open_all(false);
	begin(&c, "GET", "/a", "GOOD");
	wait_for(1);
	answer(0, true, ann);
	wait_for(2);
	answer(1, true, NULL);
	end(&c);
	begin(&c, "GET", "/a", "POOR");
	wait_for(3);
	answer(2, true, bob);
	wait_for(4);
	answer(3, false, NULL);
	end(&c);
	begin(&c, "GET", "/a", "BAD");
	wait_for(5);
	answer(4, false, NULL);
	end(&c);
	assert_int_equal(c.status, 401);

	clock_turn(&hand, 29 * SECOND);
	assert_int_equal(known("GET", "/a", "POOR"), 403);
	clock_turn(&hand, SECOND);
	begin(&c, "GET", "/a", "POOR"); /* a denial may have been mended */
	wait_for(6);
	assert_string_equal(asked[5].text, "{\"username\":\"bob\"} may get /a");
	answer(5, true, NULL);
	end(&c);
	assert_int_equal(c.status, 200);

	clock_turn(&hand, 29 * SECOND);
	assert_int_equal(known("GET", "/a", "GOOD"), 200);
	assert_int_equal(known("GET", "/a", "BAD"), 401);
	clock_turn(&hand, SECOND);
	begin(&c, "GET", "/a", "GOOD"); /* a token may have been revoked; the right is still believed */
	wait_for(7);
	assert_string_equal(asked[6].text, "token GOOD");
	answer(6, true, ann);
	end(&c);
	assert_int_equal(c.status, 200);
	begin(&c, "GET", "/a", "BAD");
	wait_for(8);
	answer(7, true, bob);
	end(&c);
	assert_int_equal(c.status, 200);

	clock_turn(&hand, 4 * MINUTE);
	begin(&c, "GET", "/a", "GOOD");
	wait_for(9);
	answer(8, true, ann);
	wait_for(10);
	assert_string_equal(asked[9].text, "{\"username\":\"ann\",\"groups\":[\"a\"]} may get /a");
	answer(9, false, NULL);
	end(&c);
	assert_int_equal(c.status, 403);
	close_all();
}

static void the_same_question_is_asked_once_at_a_time(void **state)
{
	struct call calls[40];

	(void)state;
	open_all(false);
	for (size_t i = 0; i < 40; i++)
		begin(&calls[i], "GET", i % 2 ? "/a" : "/b", "T");
	wait_for(1);
	for (int turn = 0; turn < 200; turn++)
		loop_poll(loop);
	assert_int_equal(asked_count, 1);
	answer(0, true, ann);
	assert_int_equal(asked_count, 3);
	answer(1, true, NULL);
	answer(2, false, NULL);
	for (size_t i = 0; i < 40; i++) {
		end(&calls[i]);
		assert_true(calls[i].status == 200 || calls[i].status == 403);
		assert_int_equal(calls[i].status, calls[i % 2].status);
	}
	close_all();
}

/* Nobody comes in because nobody could be asked; it is told once, and when it is over; nothing of it is kept. */
static void without_an_answer_nobody_is_let_in(void **state)
{
	static const enum error_kind kinds[] = { ERROR_UNAVAILABLE, ERROR_TIMEOUT, ERROR_AUTH, ERROR_CANCELLED,
						 ERROR_INVALID };
	struct call c;
	size_t next = 0;

	(void)state;
	open_all(false);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		begin(&c, "GET", "/a", "T");
		wait_for(++next);
		break_off(next - 1, kinds[i]);
		end(&c);
		assert_int_equal(c.status, 503);
		assert_string_equal(c.retry_after, "5");
		begin(&c, "GET", "/a", "T");
		wait_for(++next);
		answer(next - 1, true, ann);
		wait_for(++next);
		break_off(next - 1, kinds[i]);
		end(&c);
		assert_int_equal(c.status, 503);
		clock_turn(&hand, MINUTE);
	}
	const char *told = strstr(log_text, "review-failed");
	assert_non_null(told);
	assert_non_null(strstr(log_text, "review-works-again"));
	assert_null(strstr(log_text, "\"T\""));
	close_all();
}

static void what_is_no_bearer_token_is_refused(void **state)
{
	static const char *const cases[] = {
		NULL,
		"Authorization: Basic YTpi",
		"Authorization: Bearer",
		"Authorization: Bearer ",
		"Authorization: bearer a b",
		"Authorization: Bearer a\"b",
		"Authorization: Bearer \xc3\xa4",
		"Authorization: Bearer a,b",
		"Authorization: Token abc",
		"Authorization: BearerT",
	};

	(void)state;
	open_all(false);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *const headers[] = { cases[i], NULL };
		struct call c;
		begin(&c, "GET", "/", NULL);
		c.r.headers = headers;
		end(&c);
		if (c.status != 401)
			print_error("case %zu: %ld\n", i, c.status);
		assert_int_equal(c.status, 401);
		assert_non_null(strstr(c.response, "\"reason\":\"Unauthorized\""));
	}
	assert_int_equal(asked_count, 0);
	/* Any case of the word is fine. */
	static const char *const fine[] = { "authorization: bEARER   abc-._~+/=", NULL };
	struct call c;
	begin(&c, "GET", "/", NULL);
	c.r.headers = fine;
	wait_for(1);
	assert_string_equal(asked[0].text, "token abc-._~+/=");
	answer(0, false, NULL);
	end(&c);
	assert_int_equal(c.status, 401);
	close_all();
}

static void strange_paths_and_origins_are_refused_first(void **state)
{
	static const struct {
		const char *method, *path, *header;
		long status;
	} cases[] = {
		{ "GET", "/a%20b", NULL, 400 },
		{ "GET", "/%ff", NULL, 400 },
		{ "GET", "/%0a", NULL, 400 },
		{ "GET", "/\xc3\xa4", NULL, 400 },
		{ "G-T!", "/", NULL, 401 },
		{ "GET", "/", "Origin: http://evil.example", 403 },
		{ "POST", "/", "Origin: null", 403 },
		{ "GET", "/", "Sec-Fetch-Site: cross-site", 403 },
		{ "GET", "/", "Sec-Fetch-Site: none", 401 },
	};

	(void)state;
	open_all(false);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *const headers[] = { cases[i].header, NULL };
		struct call c;
		begin(&c, cases[i].method, cases[i].path, NULL);
		c.r.headers = headers;
		end(&c);
		if (c.status != cases[i].status)
			print_error("case %zu: %ld\n", i, c.status);
		assert_int_equal(c.status, cases[i].status);
	}
	assert_int_equal(asked_count, 0);
	close_all();
}

static void on_loopback_a_name_must_be_of_this_machine(void **state)
{
	static const struct {
		const char *method, *headers[3];
		long status;
	} cases[] = {
		{ "GET", { NULL }, 200 },
		{ "POST", { NULL }, 200 },
		{ "GET", { "Host: localhost:9999" }, 200 },
		{ "GET", { "Host: evil.example" }, 403 },
		{ "POST", { "Host: evil.example", "Origin: http://evil.example" }, 403 },
		{ "POST", { "Host: localhost:1", "Origin: http://localhost:1" }, 200 },
		{ "POST", { "Host: localhost:1", "Origin: http://localhost:2" }, 403 },
		{ "DELETE", { "Origin: null" }, 403 },
		{ "GET", { "Authorization: Bearer anything" }, 200 },
	};

	(void)state;
	open_all(true);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct call c;
		begin(&c, cases[i].method, "/", NULL);
		c.r.headers = cases[i].headers;
		end(&c);
		if (c.status != cases[i].status)
			print_error("case %zu: %ld\n", i, c.status);
		assert_int_equal(c.status, cases[i].status);
	}
	close_all();
}

/* Bad tokens do not drive out what is known of good ones; more than so many questions at once are not asked. */
static void a_flood_is_bounded(void **state)
{
	struct call c, calls[40];
	char tokens[40][16];

	(void)state;
	open_all(false);
	begin(&c, "GET", "/", "GOOD");
	wait_for(1);
	answer(0, true, ann);
	wait_for(2);
	answer(1, true, NULL);
	end(&c);
	for (size_t i = 0; i < 400; i++) {
		char token[16];
		snprintf(token, sizeof token, "BAD%zu", i);
		begin(&c, "GET", "/", token);
		wait_for(3 + i);
		answer(2 + i, false, NULL);
		end(&c);
		assert_int_equal(c.status, 401);
	}
	assert_int_equal(known("GET", "/", "GOOD"), 200);
	for (size_t i = 0; i < 40; i++) {
		snprintf(tokens[i], sizeof tokens[i], "NEW%zu", i);
		begin(&calls[i], "GET", "/", tokens[i]);
	}
	for (size_t ended = 0; ended < 8;) {
		loop_once(loop);
		ended = 0;
		for (size_t i = 0; i < 40; i++)
			ended += (size_t)calls[i].done;
	}
	assert_int_equal(asked_count, 402 + 32);
	for (size_t i = 0; i < 32; i++)
		answer(402 + i, false, NULL);
	for (size_t i = 0; i < 40; i++) {
		end(&calls[i]);
		assert_true(calls[i].status == 401 || calls[i].status == 503);
	}
	close_all();
}

/* It may close while the API server thinks; the answer comes to nobody. */
static void it_may_close_over_questions(void **state)
{
	struct call calls[3];
	struct authz_review *left[3];

	(void)state;
	open_all(false);
	begin(&calls[0], "GET", "/", "A");
	begin(&calls[1], "POST", "/", "B");
	begin(&calls[2], "GET", "/", "A");
	wait_for(2);
	left[0] = asked[0].review;
	left[1] = asked[1].review;
	authz_close(authz);
	server_close(server);
	for (size_t i = 0; i < 2; i++) {
		left[i]->is_allowed = true;
		left[i]->told_who = ann;
		left[i]->done(left[i]);
	}
	while (http_active(http))
		loop_once(loop);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(calls[i].kind, ERROR_UNAVAILABLE);
	http_close(http);
	loop_close(loop);
	log_set_up(&(struct log_setup){ .least = LEVEL_INFO });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_token_and_a_right_are_asked_for_once),
		cmocka_unit_test(what_was_said_is_believed_for_a_while),
		cmocka_unit_test(the_same_question_is_asked_once_at_a_time),
		cmocka_unit_test(without_an_answer_nobody_is_let_in),
		cmocka_unit_test(what_is_no_bearer_token_is_refused),
		cmocka_unit_test(strange_paths_and_origins_are_refused_first),
		cmocka_unit_test(on_loopback_a_name_must_be_of_this_machine),
		cmocka_unit_test(a_flood_is_bounded),
		cmocka_unit_test(it_may_close_over_questions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
