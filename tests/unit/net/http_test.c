#include "tests/unit/net/http_calls.h"
#include "tests/unit/net/scripted_peer.h"

#include <netinet/in.h>
#include <poll.h>

#include <stdlib.h>

#define OK    "HTTP/1.1 200 OK\r\n"
#define CHUNK "Transfer-Encoding: chunked\r\n\r\n"

/* One connection, one request, one text; then whatever `last` says. */
static char *exchange(struct call *c, const char *path, const char *answer, enum peer_verb last)
{
	const struct peer_step script[] = {
		{ PEER_ACCEPT, NULL }, { PEER_READ, NULL }, { PEER_SEND, answer }, { last, "x" }, { PEER_END, NULL }
	};
	struct scripted_peer *p = peer_open(script);
	char url[160];

	snprintf(url, sizeof url, "%s%s", peer_url(p), path);
	c->r.url = url;
	call_run(c);
	assert_int_equal(c->done, 1);
	return peer_close(p);
}

static void a_call_carries_all_it_was_given(void **state)
{
	const char *const headers[] = { "Content-Type: application/json", "X-One: 1", NULL };
	struct call c = call_to(NULL);

	(void)state;
	c.r.method = "PATCH";
	c.r.headers = headers;
	c.r.bearer = "s3cret";
	c.r.body = "{\"a\":1}";
	c.r.body_len = 7;
	c.r.accepts_gzip = true;
	char *seen = exchange(&c, "/a%20b?q=1", OK "Content-Length: 2\r\nRetry-After: 7\r\n\r\nhi", PEER_HOLD);
	assert_int_equal(c.kind, ERROR_NONE);
	assert_int_equal(c.status, 200);
	assert_string_equal(c.response, "hi");
	assert_string_equal(c.retry_after, "7");
	assert_non_null(strstr(seen, "PATCH /a%20b?q=1 HTTP/1.1\r\n"));
	assert_non_null(strstr(seen, "\r\nUser-Agent: preheat/test\r\n"));
	assert_non_null(strstr(seen, "\r\nAuthorization: Bearer s3cret\r\n"));
	assert_non_null(strstr(seen, "\r\nX-One: 1\r\n"));
	assert_non_null(strstr(seen, "\r\nContent-Type: application/json\r\n"));
	assert_non_null(strstr(seen, "\r\nAccept-Encoding: gzip\r\n"));
	assert_non_null(strstr(seen, "\r\nContent-Length: 7\r\n"));
	assert_non_null(strstr(seen, "\r\n\r\n{\"a\":1}"));
	free(seen);
}

static void nothing_is_sent_that_nobody_asked_for(void **state)
{
	static const struct {
		const char *method;
		bool has_length;
	} cases[] = { { "GET", false }, { "DELETE", false }, { "POST", true }, { "PUT", true } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct call c = call_to(NULL);
		c.r.method = cases[i].method;
		char *seen = exchange(&c, "/", OK "Content-Length: 0\r\n\r\n", PEER_HOLD);
		assert_int_equal(c.kind, ERROR_NONE);
		assert_memory_equal(seen, cases[i].method, strlen(cases[i].method));
		assert_int_equal(strstr(seen, "\r\nContent-Length: 0\r\n") != NULL, cases[i].has_length);
		assert_null(strstr(seen, "Content-Type"));
		assert_null(strstr(seen, "Expect"));
		assert_null(strstr(seen, "Authorization"));
		assert_null(strstr(seen, "Accept-Encoding"));
		free(seen);
	}
}

static void head_waits_for_no_body(void **state)
{
	struct call c = call_to(NULL);

	(void)state;
	c.r.method = "HEAD";
	char *seen = exchange(&c, "/", OK "Content-Length: 100\r\n\r\n", PEER_HOLD);
	assert_int_equal(c.kind, ERROR_NONE);
	assert_int_equal(c.response_len, 0);
	assert_memory_equal(seen, "HEAD / ", 7);
	free(seen);
}

static void answers_that_make_no_sense_are_told_apart(void **state)
{
	static const struct {
		const char *answer;
		enum peer_verb last;
		enum error_kind kind;
		const char *part; /* of the message */
	} cases[] = {
		{ OK "Content-Length: 10\r\n\r\nhal", PEER_END, ERROR_UNAVAILABLE, "7 bytes remaining" },
		{ OK CHUNK "5\r\nhel", PEER_END, ERROR_UNAVAILABLE, "" },
		{ OK CHUNK "5\r\nhello\r\n", PEER_END, ERROR_UNAVAILABLE, "" },
		{ OK CHUNK "zz\r\nhello\r\n", PEER_HOLD, ERROR_UNAVAILABLE, "" },
		{ OK "Content-Length: 10\r\n\r\nhal", PEER_RESET, ERROR_UNAVAILABLE, "" },
		{ "", PEER_RESET, ERROR_UNAVAILABLE, "" },
		{ "", PEER_END, ERROR_UNAVAILABLE, "Empty reply" },
		{ "HTTP/1.1 200 OK\r\nContent-Le", PEER_END, ERROR_UNAVAILABLE, "" },
		{ "SSH-2.0-OpenSSH_9.2\r\n", PEER_END, ERROR_INVALID, "HTTP/0.9" },
		{ "HTTP/1.1 abc\r\n\r\n", PEER_END, ERROR_INVALID, "" },
		{ OK "Content-Length: -1\r\n\r\n", PEER_END, ERROR_INVALID, "" },
		{ OK "Content-Length: 5000\r\n\r\n", PEER_ENDLESS, ERROR_INVALID, "longer than 4000 bytes" },
		{ OK "\r\n", PEER_ENDLESS, ERROR_INVALID, "longer than 4000 bytes" },
		{ OK "X: ", PEER_ENDLESS, ERROR_INVALID, "the header of the answer is too long" },
		{ OK, PEER_SEND, ERROR_UNAVAILABLE, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct call c = call_to(NULL);
		free(exchange(&c, "/x?token=s3cret", cases[i].answer, cases[i].last));
		if (c.kind != cases[i].kind)
			print_error("case %zu: %s\n", i, c.message);
		assert_int_equal(c.kind, cases[i].kind);
		assert_non_null(strstr(c.message, cases[i].part));
		assert_memory_equal(c.message, "GET http://127.0.0.1:", 21);
		assert_null(strstr(c.message, "s3cret"));
		assert_int_equal(c.response_len, 0);
		c = call_to(NULL); /* what it says of a write nobody knows */
		c.r.is_write = true;
		free(exchange(&c, "/", cases[i].answer, cases[i].last));
		assert_int_equal(c.kind, ERROR_UNAVAILABLE);
	}
}

static void any_status_is_an_answer(void **state)
{
	static const struct {
		const char *answer;
		long status;
		const char *response, *retry_after;
	} cases[] = {
		{ "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\nContent-Length: 4\r\n\r\nslow", 429, "slow",
		  "3" },
		{ "HTTP/1.1 500 \r\nContent-Length: 0\r\n\r\n", 500, "", "" },
		{ "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", 302, "", "" },
		{ "HTTP/1.1 100 Continue\r\nRetry-After: 1\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", 204, "", "" },
		{ "HTTP/1.1 503 x\r\nRetry-After: 1\r\nRETRY-AFTER: 2\r\nContent-Length: 0\r\n\r\n", 503, "", "2" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct call c = call_to(NULL);
		free(exchange(&c, "/", cases[i].answer, PEER_HOLD));
		assert_int_equal(c.kind, ERROR_NONE);
		assert_int_equal(c.status, cases[i].status);
		assert_string_equal(c.response, cases[i].response);
		assert_string_equal(c.retry_after, cases[i].retry_after);
	}
}

static void waiting_has_an_end(void **state)
{
	static const struct {
		const char *answer;
		millis timeout, silence;
		const char *part;
	} cases[] = {
		{ "", 50, 0, "no answer within 50 ms" },
		{ OK, 50, 0, "no whole answer within 50 ms" },
		{ "", 0, 50, "not a byte for 50 ms" },
		{ OK "Content-Length: 10\r\n\r\nhal", 0, 50, "not a byte for 50 ms" },
		{ OK "Content-Length: 10\r\n\r\nhal", HOUR, 50, "not a byte for 50 ms" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct call c = call_to(NULL);
		c.r.timeout = cases[i].timeout;
		c.r.silence_timeout = cases[i].silence;
		free(exchange(&c, "/", cases[i].answer, PEER_HOLD));
		assert_int_equal(c.kind, ERROR_TIMEOUT);
		assert_non_null(strstr(c.message, cases[i].part));
	}
}

static void wrong_use_completes_with_a_message(void **state)
{
	static const char *const split[] = { "X: a\r\nY: b", NULL };
	static const struct {
		const char *url, *bearer;
		const char *const *headers;
		millis timeout;
		size_t max_response;
		enum error_kind kind;
		const char *part;
	} cases[] = {
		{ "http://127.0.0.1:1/", NULL, NULL, 0, 10, ERROR_INTERNAL, "no limit was given" },
		{ "http://127.0.0.1:1/", NULL, NULL, 10, 0, ERROR_INTERNAL, "no limit was given" },
		{ "http://127.0.0.1:1/", NULL, split, 10, 10, ERROR_INVALID, "line break" },
		{ "http://127.0.0.1:1/", "a\nb", NULL, 10, 10, ERROR_AUTH, "line break" },
		{ "127.0.0.1:1", NULL, NULL, 10, 10, ERROR_INVALID, "not a URL" },
		{ "", NULL, NULL, 10, 10, ERROR_INVALID, "not a URL" },
		{ "http://[::1", NULL, NULL, 10, 10, ERROR_INVALID, "not a URL" },
		{ "http://a:99999/", NULL, NULL, 10, 10, ERROR_INVALID, "not a URL" },
		{ "file:///etc/passwd", NULL, NULL, 10, 10, ERROR_INVALID, "" },
		{ "ftp://127.0.0.1:1/", NULL, NULL, 10, 10, ERROR_INVALID, "" },
		{ "http://127.0.0.1:1/", NULL, NULL, MINUTE, 10, ERROR_UNAVAILABLE, "127.0.0.1 port 1" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct call c = call_to(cases[i].url);
		c.r.bearer = cases[i].bearer;
		c.r.headers = cases[i].headers;
		c.r.timeout = cases[i].timeout;
		c.r.max_response = cases[i].max_response;
		call_run(&c);
		assert_int_equal(c.done, 1);
		if (c.kind != cases[i].kind)
			print_error("case %zu: %s\n", i, c.message);
		assert_int_equal(c.kind, cases[i].kind);
		assert_non_null(strstr(c.message, cases[i].part));
		assert_int_equal(c.r.is_refused, i + 1 == sizeof cases / sizeof *cases);
	}
}

static void messages_show_no_password(void **state)
{
	struct call c = call_to("http://user:s3cret@127.0.0.1:1/path?sig=s3cret#s3cret");

	(void)state;
	call_run(&c);
	assert_memory_equal(c.message, "GET http://127.0.0.1:1/path: ", 29);
	assert_null(strstr(c.message, "s3cret"));
}

static void cancel_again(struct call *c)
{
	http_cancel(&c->r); /* nothing is under way */
}

static void a_cancelled_call_completes_once(void **state)
{
	const struct peer_step script[] = { { PEER_ACCEPT, NULL }, { PEER_HOLD, NULL }, { PEER_END, NULL } };
	struct error e;

	(void)state;
	for (int rounds = 0; rounds < 20; rounds++) {
		struct scripted_peer *p = peer_open(script);
		struct call c = call_to(peer_url(p));
		c.then = cancel_again;
		c.r.user = &c;
		struct loop *l = loop_open();
		struct http *h = http_open(l, "preheat/test", &e);
		http_cancel(&c.r);
		http_start(h, &c.r);
		for (int i = 0; i < rounds; i++)
			loop_poll(l);
		http_cancel(&c.r);
		http_cancel(&c.r);
		http_cancel_all(h);
		assert_int_equal(c.done, 0);
		while (http_active(h))
			loop_once(l);
		assert_int_equal(c.done, 1);
		assert_int_equal(c.kind, ERROR_CANCELLED);
		http_close(h);
		loop_close(l);
		free(peer_close(p));
	}
}

static int connection_to(const char *url)
{
	const char *port = strrchr(url, ':') + 1;

	for (int fd = 0; fd < 256; fd++) {
		struct sockaddr_in at = { 0 };
		socklen_t len = sizeof at;
		if (!getpeername(fd, (struct sockaddr *)&at, &len) && at.sin_family == AF_INET &&
		    ntohs(at.sin_port) == strtol(port, NULL, 10))
			return fd;
	}
	return -1;
}

static bool is_connected_to(const char *url)
{
	return connection_to(url) >= 0;
}

/* A body that no socket's buffer takes whole, to a peer that does not read before we gave up. */
static char *half_sent(bool is_cancelled, struct call *c)
{
	static const struct peer_step script[] = {
		{ PEER_ACCEPT, NULL }, { PEER_WAIT, NULL }, { PEER_READ, NULL }, { PEER_END, NULL }
	};
	static char body[32 << 20];
	struct scripted_peer *p = peer_open(script);
	struct loop *l = loop_open();
	struct error e;
	struct http *h = http_open(l, "preheat/test", &e);

	memset(body, 'x', sizeof body);
	*c = call_to(peer_url(p));
	c->r.method = "POST";
	c->r.is_write = true;
	c->r.body = body;
	c->r.body_len = sizeof body;
	c->r.user = c;
	if (!is_cancelled)
		http_write_until(h, loop_now(l) + 300);
	http_start(h, &c->r);
	while (is_cancelled && !is_connected_to(peer_url(p)))
		loop_once(l);
	for (int i = 0; i < 200 && is_cancelled; i++)
		loop_poll(l);
	assert_int_equal(is_connected_to(peer_url(p)), is_cancelled);
	http_cancel(is_cancelled ? &c->r : &(struct http_request){ 0 });
	assert_false(is_connected_to(peer_url(p))); /* when the call returns, whatever the loop would do next */
	if (is_cancelled)
		peer_go(p); /* what follows the call is nothing */
	while (http_active(h))
		loop_once(l);
	if (!is_cancelled)
		peer_go(p);
	char *seen = peer_close(p);
	http_close(h);
	loop_close(l);
	return seen;
}

/* What lies in the socket's buffer at that time is not delivered either. */
static void a_write_that_was_begun_is_cut_off(void **state)
{
	struct call c;

	(void)state;
	for (int is_cancelled = 0; is_cancelled < 2; is_cancelled++) {
		char *seen = half_sent(is_cancelled, &c);
		assert_int_equal(c.done, 1);
		assert_int_equal(c.kind, is_cancelled ? ERROR_CANCELLED : ERROR_UNAVAILABLE);
		if (!is_cancelled)
			assert_non_null(strstr(c.message, "the time to write ran out on its way"));
		assert_true(strlen(seen) < (size_t)16 << 20);
		free(seen);
	}
}

/* Once the other end has closed. */
static void wait_for_close(const char *url)
{
	struct pollfd its = { .fd = connection_to(url), .events = POLLRDHUP };

	assert_true(its.fd >= 0);
	assert_int_equal(poll(&its, 1, -1), 1);
}

/* A late one over a kept connection that is there still, or, where the other end has closed it, over the new one that
 * libcurl tries. */
static void late_writes(const struct peer_step *script, bool is_closed)
{
	static const struct {
		bool is_write, is_late, is_renewed;
	} cases[] = { { true, false, false }, { false, true, true },  { true, false, false },
		      { true, true, false },  { true, false, false }, { true, true, true } };
	struct scripted_peer *p = peer_open(script);
	struct loop *l = loop_open();
	struct error e;
	struct http *h = http_open(l, "preheat/test", &e);
	size_t late = 0;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct call c = call_to(peer_url(p));
		bool is_refused = cases[i].is_write && cases[i].is_late;
		c.r.method = cases[i].is_write ? "PUT" : "GET";
		c.r.is_write = cases[i].is_write;
		c.r.user = &c;
		if (i == 3 && is_closed)
			wait_for_close(peer_url(p));
		http_write_until(h, loop_now(l) + (cases[i].is_late ? 0 : HOUR));
		http_start(h, &c.r);
		if (cases[i].is_renewed)
			http_write_until(h, loop_now(l) + HOUR);
		while (http_active(h))
			loop_once(l);
		if (i == 3 && !is_closed)
			peer_go(p);
		assert_int_equal(c.done, 1);
		if (c.kind != (is_refused ? ERROR_UNAVAILABLE : ERROR_NONE))
			fail_msg("case %zu: %s", i, c.message);
		if (is_refused)
			assert_non_null(strstr(c.message, ": not sent: the time to write ran out"));
		late += is_refused;
	}
	assert_int_equal(late, 2);
	http_close(h);
	loop_close(l);
	char *seen = peer_close(p);
	size_t puts = 0;
	for (const char *at = seen; (at = strstr(at, "PUT / ")); at++)
		puts++;
	assert_int_equal(puts, 3);
	free(seen);
}

/* Not a byte of it goes out; reading goes on, and so does writing when there is time again: what was begun before is
 * not sent in it. */
static void writes_end_with_their_time(void **state)
{
	static const char answer[] = OK "Content-Length: 2\r\n\r\nhi";
	static const struct peer_step kept[] = { { PEER_ACCEPT, NULL }, { PEER_READ, NULL },   { PEER_SEND, answer },
						 { PEER_READ, NULL },	{ PEER_SEND, answer }, { PEER_READ, NULL },
						 { PEER_SEND, answer }, { PEER_WAIT, NULL },   { PEER_ACCEPT, NULL },
						 { PEER_READ, NULL },	{ PEER_SEND, answer }, { PEER_HOLD, NULL },
						 { PEER_END, NULL } };
	static const struct peer_step closed[] = { { PEER_ACCEPT, NULL }, { PEER_READ, NULL },	 { PEER_SEND, answer },
						   { PEER_READ, NULL },	  { PEER_SEND, answer }, { PEER_READ, NULL },
						   { PEER_SEND, answer }, { PEER_ACCEPT, NULL }, { PEER_ACCEPT, NULL },
						   { PEER_READ, NULL },	  { PEER_SEND, answer }, { PEER_HOLD, NULL },
						   { PEER_END, NULL } };

	(void)state;
	late_writes(kept, false);
	late_writes(closed, true);
}

static void start_again(struct call *c)
{
	if (c->done < 5)
		http_start(c->http, &c->r);
}

static void a_call_may_start_anew_inside_done(void **state)
{
	static const char answer[] = OK "Content-Length: 2\r\n\r\nhi";
	const struct peer_step script[] = { { PEER_ACCEPT, NULL }, { PEER_READ, NULL },	  { PEER_SEND, answer },
					    { PEER_READ, NULL },   { PEER_SEND, answer }, { PEER_READ, NULL },
					    { PEER_SEND, answer }, { PEER_READ, NULL },	  { PEER_SEND, answer },
					    { PEER_READ, NULL },   { PEER_SEND, answer }, { PEER_END, NULL } };
	struct scripted_peer *p = peer_open(script);
	struct call c = call_to(peer_url(p));

	(void)state;
	c.then = start_again;
	call_run(&c);
	assert_int_equal(c.done, 5); /* over one connection: the script accepts no second */
	assert_int_equal(c.kind, ERROR_NONE);
	assert_string_equal(c.response, "hi");
	free(peer_close(p));
}

/* The proxy sees the whole URL, without resolving it. */
static void a_proxy_is_used_where_one_is_told(void **state)
{
	static const char answer[] = OK "Content-Length: 5\r\n\r\nproxy";
	static const struct peer_step script[] = { { PEER_ACCEPT, NULL },
						   { PEER_READ, NULL },
						   { PEER_SEND, answer },
						   { PEER_HOLD, NULL },
						   { PEER_END, NULL } };
	static const struct {
		const char *url;
		bool is_explicit, is_proxied;
	} cases[] = {
		{ "http://elsewhere.invalid/x", true, true }, { "http://elsewhere.invalid/x", false, true },
		{ "http://127.0.0.1:1/x", true, true },	      { "http://127.0.0.1:1/x", false, false },
		{ "http://localhost:1/x", false, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct scripted_peer *p = peer_open(script);
		struct call c = call_to(cases[i].url);
		c.r.proxy = cases[i].is_explicit ? peer_url(p) : NULL;
		setenv("http_proxy", cases[i].is_explicit ? "" : peer_url(p), 1);
		unsetenv("no_proxy");
		unsetenv("NO_PROXY");
		call_run(&c);
		unsetenv("http_proxy");
		assert_string_equal(c.response, cases[i].is_proxied ? "proxy" : "");
		char *seen = peer_close(p);
		assert_int_equal(strstr(seen, cases[i].url) != NULL, cases[i].is_proxied);
		free(seen);
	}
}

static void start_once_more(struct call *c)
{
	if (c->done == 1)
		http_start(c->http, &c->r);
}

/* The peer closed the kept connection meanwhile, as an API server does that restarts. */
static void a_dead_kept_connection_is_replaced(void **state)
{
	static const char answer[] = OK "Content-Length: 2\r\n\r\nhi";
	const struct peer_step script[] = { { PEER_ACCEPT, NULL }, { PEER_READ, NULL },	  { PEER_SEND, answer },
					    { PEER_READ, NULL },   { PEER_ACCEPT, NULL }, { PEER_READ, NULL },
					    { PEER_SEND, answer }, { PEER_END, NULL } };
	struct scripted_peer *p = peer_open(script);
	struct call c = call_to(peer_url(p));

	(void)state;
	c.r.method = "POST";
	c.r.body = "x";
	c.r.body_len = 1;
	c.then = start_once_more;
	call_run(&c);
	assert_int_equal(c.done, 2);
	assert_int_equal(c.kind, ERROR_NONE);
	free(peer_close(p));
}

/* It had the whole of it, and may have done it. */
static void a_write_is_not_sent_again(void **state)
{
	static const char answer[] = OK "Content-Length: 2\r\n\r\nhi";
	const struct peer_step script[] = { { PEER_ACCEPT, NULL }, { PEER_READ, NULL },	  { PEER_SEND, answer },
					    { PEER_READ, NULL },   { PEER_ACCEPT, NULL }, { PEER_READ, NULL },
					    { PEER_SEND, answer }, { PEER_END, NULL } };
	struct scripted_peer *p = peer_open(script);
	struct call c = call_to(peer_url(p));

	(void)state;
	c.r.method = "POST";
	c.r.body = "x";
	c.r.body_len = 1;
	c.r.is_write = true;
	c.then = start_once_more;
	call_run(&c);
	assert_int_equal(c.done, 2);
	assert_int_equal(c.kind, ERROR_UNAVAILABLE);
	assert_non_null(strstr(c.message, "the connection closed before an answer; it may have been done"));
	char *seen = peer_close(p), *first = strstr(seen, "POST / ");
	first = strstr(first + 1, "POST / ");
	assert_non_null(first);
	assert_null(strstr(first + 1, "POST / "));
	free(seen);
}

static void freed(struct http_request *r)
{
	*(int *)r->user += 1;
	free(r);
}

static void a_call_may_be_freed_inside_done(void **state)
{
	struct loop *l = loop_open();
	struct error e;
	struct http *h = http_open(l, "preheat/test", &e);
	int done = 0;

	(void)state;
	for (int i = 0; i < 10; i++) {
		struct http_request *r = calloc(1, sizeof *r);
		*r = (struct http_request){ .method = "GET",
					    .url = i % 2 ? "http://127.0.0.1:1/" : "nonsense",
					    .timeout = MINUTE,
					    .max_response = 10,
					    .done = freed,
					    .user = &done };
		http_start(h, r);
	}
	while (http_active(h))
		loop_once(l);
	assert_int_equal(done, 10);
	http_close(h);
	loop_close(l);
	http_close(NULL);
}

static void too_many_at_once_are_refused(void **state)
{
	struct loop *l = loop_open();
	struct error e;
	struct http *h = http_open(l, "preheat/test", &e);
	struct call *calls = calloc(HTTP_MOST + 2, sizeof *calls);
	size_t refused = 0;

	(void)state;
	for (size_t i = 0; i < HTTP_MOST + 2; i++) {
		calls[i] = call_to("nonsense");
		calls[i].r.user = &calls[i];
		http_start(h, &calls[i].r);
	}
	while (http_active(h))
		loop_once(l);
	for (size_t i = 0; i < HTTP_MOST + 2; i++) {
		assert_int_equal(calls[i].done, 1);
		refused += calls[i].kind == ERROR_UNAVAILABLE;
	}
	assert_int_equal(refused, 2);
	http_close(h);
	loop_close(l);
	free(calls);
}

static void statuses_have_kinds(void **state)
{
	static const struct {
		long status;
		enum error_kind kind;
	} cases[] = {
		{ 200, ERROR_NONE },	    { 204, ERROR_NONE },      { 401, ERROR_AUTH },
		{ 403, ERROR_AUTH },	    { 404, ERROR_NOT_FOUND }, { 410, ERROR_NOT_FOUND },
		{ 408, ERROR_TIMEOUT },	    { 504, ERROR_TIMEOUT },   { 409, ERROR_CONFLICT },
		{ 412, ERROR_CONFLICT },    { 429, ERROR_THROTTLED }, { 500, ERROR_UNAVAILABLE },
		{ 503, ERROR_UNAVAILABLE }, { 400, ERROR_INVALID },   { 302, ERROR_INVALID },
		{ 0, ERROR_INVALID },	    { 600, ERROR_INVALID },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(http_status_kind(cases[i].status), cases[i].kind);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_carries_all_it_was_given),
		cmocka_unit_test(nothing_is_sent_that_nobody_asked_for),
		cmocka_unit_test(head_waits_for_no_body),
		cmocka_unit_test(answers_that_make_no_sense_are_told_apart),
		cmocka_unit_test(any_status_is_an_answer),
		cmocka_unit_test(waiting_has_an_end),
		cmocka_unit_test(wrong_use_completes_with_a_message),
		cmocka_unit_test(messages_show_no_password),
		cmocka_unit_test(a_cancelled_call_completes_once),
		cmocka_unit_test(a_write_that_was_begun_is_cut_off),
		cmocka_unit_test(writes_end_with_their_time),
		cmocka_unit_test(a_call_may_start_anew_inside_done),
		cmocka_unit_test(a_proxy_is_used_where_one_is_told),
		cmocka_unit_test(a_dead_kept_connection_is_replaced),
		cmocka_unit_test(a_write_is_not_sent_again),
		cmocka_unit_test(a_call_may_be_freed_inside_done),
		cmocka_unit_test(too_many_at_once_are_refused),
		cmocka_unit_test(statuses_have_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
