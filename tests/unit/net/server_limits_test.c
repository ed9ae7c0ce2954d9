/* Who is let in, how often, how many, and how slowly: over real sockets. */
#include "base/net/server.h"
#include "tests/unit/net/http_calls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct loop *loop;
static struct http *http;
static struct server *server;
static struct server_wait *waiting[100];
static size_t waiting_count, bodies_seen;

static void hello(const struct server_request *q, struct server_answer *a)
{
	bodies_seen += q->body_len > 0;
	buf_printf(&a->body, "hello %zu", q->body_len);
}

static void large(const struct server_request *q, struct server_answer *a)
{
	(void)q;
	for (int i = 0; i < 1 << 16; i++)
		buf_text(&a->body, "sixty-four letters, again and again, until no socket holds them");
}

static void own_header(const struct server_request *q, struct server_answer *a)
{
	(void)q;
	a->headers[0] = "cache-control: max-age=60";
}

static struct server_stream stream;
static bool has_ended;

static void stream_ended(struct server_stream *s)
{
	assert_ptr_equal(s, &stream);
	has_ended = true;
}

static void goes_on(const struct server_request *q, struct server_answer *a)
{
	(void)q;
	stream = (struct server_stream){ .ended = stream_ended };
	a->stream = &stream;
}

static const struct server_route routes[] = {
	{ "GET", "/goes-on", goes_on, NULL }, { "GET", "/hello", hello, NULL },	   { "POST", "/hello", hello, NULL },
	{ "GET", "/large", large, NULL },     { "GET", "/own", own_header, NULL },
};
static const char *const headers[] = { "Cache-Control: no-store", NULL };

static enum server_verdict door(void *user, const struct server_request *q, struct server_wait *w,
				struct server_answer *a)
{
	const char *wish = server_header(q, "X-Wish");

	assert_ptr_equal(user, routes);
	assert_int_equal(q->body_len, 0);
	if (!wish)
		return SERVER_ADMITS;
	if (strcmp(wish, "refuse") == 0) {
		buf_text(&a->body, "not you");
		return SERVER_REFUSES;
	}
	waiting[waiting_count++] = w;
	return SERVER_WAITS;
}

static void open_server(struct server_settings set)
{
	struct error e = { 0 };

	set.listen = "127.0.0.1:0";
	set.routes = routes;
	set.route_count = sizeof routes / sizeof *routes;
	set.headers = headers;
	set.admit = door;
	set.admit_user = (void *)(uintptr_t)routes;
	waiting_count = bodies_seen = 0;
	loop = loop_open();
	server = server_open(loop, &set, &e);
	assert_string_equal(e.message, "");
	http = http_open(loop, "preheat/test", &e);
	assert_non_null(http);
}

static void close_server(void)
{
	http_cancel_all(http);
	while (http_active(http))
		loop_once(loop);
	http_close(http);
	server_close(server);
	loop_close(loop);
}

static void begin(struct call *c, const char *method, const char *path, const char *wish)
{
	static const char *const none[] = { NULL }, *const refuse[] = { "X-Wish: refuse", NULL },
				 *const wait[] = { "X-Wish: wait", NULL };
	static char url[100][64];
	static size_t next;
	char *at = url[next++ % 100];

	snprintf(at, sizeof url[0], "http://127.0.0.1:%u%s", server_port(server), path);
	*c = call_to(at);
	c->r.method = method;
	c->r.headers = !wish ? none : strcmp(wish, "wait") == 0 ? wait : refuse;
	c->r.body = strcmp(method, "POST") == 0 ? "0123456789" : NULL;
	c->r.body_len = c->r.body ? 10 : 0;
	c->r.user = c;
	http_start(http, &c->r);
}

static void end(struct call *c)
{
	while (!c->done)
		assert_true(loop_once(loop));
}

static struct call ask(const char *method, const char *path, const char *wish)
{
	struct call c;

	begin(&c, method, path, wish);
	end(&c);
	return c;
}

static void let(size_t i, const char *refusal)
{
	struct server_answer a = { .status = 401, .content_type = "text/plain", .fd = -1 };

	if (refusal)
		buf_text(&a.body, refusal);
	server_decide(waiting[i], refusal ? &a : NULL);
}

static void wait_for(size_t count)
{
	while (waiting_count < count)
		assert_true(loop_once(loop));
}

static void some_are_refused_at_once(void **state)
{
	(void)state;
	open_server((struct server_settings){ 0 });
	for (int i = 0; i < 3; i++) {
		struct call c = ask("GET", "/hello", "refuse");
		assert_int_equal(c.status, 403);
		assert_string_equal(c.response, "not you");
		c = ask("POST", "/hello", "refuse");
		assert_int_equal(c.status, 403);
		c = ask("GET", "/nothing", "refuse");
		assert_int_equal(c.status, 403); /* who may not come in is not told what is there */
		assert_int_equal(ask("POST", "/hello", NULL).status, 200);
	}
	assert_int_equal(bodies_seen, 3);
	close_server();
}

static void some_wait_for_the_word(void **state)
{
	struct call a, b, c, d;

	(void)state;
	open_server((struct server_settings){ 0 });
	begin(&a, "GET", "/hello", "wait");
	wait_for(1);
	begin(&b, "POST", "/hello", "wait");
	wait_for(2);
	begin(&c, "POST", "/hello", "wait");
	wait_for(3);
	assert_int_equal(ask("GET", "/hello", NULL).status, 200); /* others are served meanwhile */
	assert_int_equal(a.done + b.done + c.done, 0);
	let(2, "who?");
	let(0, NULL);
	let(1, NULL);
	end(&a);
	end(&b);
	end(&c);
	assert_int_equal(a.status, 200);
	assert_int_equal(b.status, 200);
	assert_string_equal(b.response, "hello 10");
	assert_int_equal(c.status, 401);
	assert_string_equal(c.response, "who?");
	begin(&d, "GET", "/hello", "wait");
	wait_for(4);
	let(3, NULL);
	end(&d);
	assert_int_equal(d.status, 200);
	close_server();
}

/* A peer may go while it waits, and the server may close over all of them. */
static void nobody_need_stay_until_then(void **state)
{
	struct call calls[20];

	(void)state;
	open_server((struct server_settings){ 0 });
	for (size_t i = 0; i < 20; i++) {
		begin(&calls[i], i % 2 ? "POST" : "GET", "/hello", "wait");
		wait_for(i + 1);
	}
	for (size_t i = 0; i < 10; i++) {
		http_cancel(&calls[i].r);
		end(&calls[i]);
		assert_int_equal(calls[i].kind, ERROR_CANCELLED);
		let(i, i % 3 ? NULL : "no");
	}
	assert_int_equal(ask("GET", "/hello", NULL).status, 200);
	close_server();
}

static int dial(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(server_port(server)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
	return fd;
}

/* What stands before its end is read away. */
static bool is_closed(int fd)
{
	char room[4096];
	ssize_t n;

	while ((n = recv(fd, room, sizeof room, MSG_DONTWAIT)) > 0)
		;
	return n == 0 || errno != EAGAIN;
}

/* A byte whenever the server did something, until it has had enough. */
static void drip(int fd, const char *text, char again)
{
	send(fd, text, strlen(text), MSG_NOSIGNAL);
	while (!is_closed(fd)) {
		send(fd, &again, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
		loop_once(loop);
	}
	close(fd);
}

static void who_is_slow_is_cut_off(void **state)
{
	static const struct {
		const char *begins;
		char again;
	} cases[] = {
		{ "", 'G' },
		{ "GET /hello HTTP/1.1\r\nHost: a\r\nX: ", 'x' },
		{ "POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n", 'x' },
		{ "POST /hello HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1000000\r\n", 'x' },
		{ "GET /hello HTTP/1.1\r\nHost: a\r\n\r\nGET /hello HTTP/1.1\r\nHost: ", 'x' }, /* the next one */
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		open_server((struct server_settings){ .request_seconds = 1 });
		drip(dial(), cases[i].begins, cases[i].again);
		assert_int_equal(ask("GET", "/hello", NULL).status, 200);
		close_server();
	}
}

static void who_takes_no_answer_is_cut_off(void **state)
{
	static const char text[] = "GET /large HTTP/1.1\r\nHost: a\r\n\r\n";

	(void)state;
	open_server((struct server_settings){ .answer_seconds = 1, .max_connections = 1 });
	int fd = dial();
	send(fd, text, sizeof text - 1, MSG_NOSIGNAL);
	assert_int_equal(ask("GET", "/hello", NULL).status, 200); /* once its place is free */
	close(fd);
	close_server();
}

/* However much of it is taken: who listens on is asked again who it is. */
static void what_goes_on_ends(void **state)
{
	static const char text[] = "GET /goes-on HTTP/1.1\r\nHost: a\r\n\r\n";

	(void)state;
	open_server((struct server_settings){ .stream_seconds = 1, .answer_seconds = 1 });
	has_ended = false;
	stream.server = NULL;
	int fd = dial();
	send(fd, text, sizeof text - 1, MSG_NOSIGNAL);
	while (!stream.server)
		loop_once(loop);
	while (!has_ended) {
		server_stream_send(&stream, ".", 1);
		loop_once(loop);
		is_closed(fd); /* what came is taken */
	}
	assert_true(is_closed(fd));
	close(fd);
	close_server();
}

static void an_address_has_only_so_many_connections(void **state)
{
	int fds[5];
	int open = 0;

	(void)state;
	open_server((struct server_settings){ .max_per_address = 2 });
	for (size_t i = 0; i < 5; i++) {
		fds[i] = dial();
		for (int turn = 0; turn < 20; turn++)
			loop_poll(loop);
	}
	for (size_t i = 0; i < 5; i++)
		open += !is_closed(fds[i]);
	assert_int_equal(open, 2);
	for (size_t i = 0; i < 5; i++)
		close(fds[i]);
	assert_int_equal(ask("GET", "/hello", NULL).status, 200);
	close_server();
}

static void connections_come_only_so_fast(void **state)
{
	static const struct {
		struct rate all, each;
	} cases[] = {
		{ .all = { .per_second = 1, .burst = 3 } },
		{ .each = { .per_second = 1, .burst = 3 } },
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		int fds[8], open = 0;
		open_server(
			(struct server_settings){ .connects = cases[i].all, .connects_per_address = cases[i].each });
		for (size_t n = 0; n < 8; n++)
			fds[n] = dial();
		for (int turn = 0; turn < 100; turn++)
			loop_poll(loop);
		for (size_t n = 0; n < 8; n++) {
			open += !is_closed(fds[n]);
			close(fds[n]);
		}
		assert_true(open >= 3 && open < 8);
		close_server();
	}
}

static void all_have_only_so_many_connections(void **state)
{
	struct call c;
	int fds[3];

	(void)state;
	open_server((struct server_settings){ .max_connections = 3 });
	for (size_t i = 0; i < 3; i++)
		fds[i] = dial();
	begin(&c, "GET", "/hello", NULL);
	for (int turn = 0; turn < 100; turn++)
		loop_poll(loop);
	assert_int_equal(c.done, 0); /* it waits in the backlog */
	close(fds[1]);
	end(&c);
	assert_int_equal(c.status, 200);
	close(fds[0]);
	close(fds[2]);
	close_server();
}

static void too_many_requests_are_told_when_to_come_again(void **state)
{
	static const struct {
		struct rate all, each;
	} cases[] = {
		{ .all = { .per_second = 1, .burst = 3 } },
		{ .each = { .per_second = 1, .burst = 3 } },
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		open_server((struct server_settings){ .rate = cases[i].all, .rate_per_address = cases[i].each });
		int refused = 0, served = 0;
		for (int n = 0; n < 20; n++) {
			struct call c = ask(n % 2 ? "POST" : "GET", "/hello", NULL);
			served += c.status == 200;
			refused += c.status == 429;
			if (c.status == 429)
				assert_string_equal(c.retry_after, "1");
		}
		assert_true(served >= 3);
		assert_int_equal(served + refused, 20);
		assert_true(refused > 0);
		close_server();
	}
}

static char cache_control[100];

static void note_caching(struct call *c)
{
	const char *said = http_header(&c->r, "cache-control");

	snprintf(cache_control, sizeof cache_control, "%s", said ? said : "");
}

static void what_an_answer_says_itself_is_not_said_for_it(void **state)
{
	static const char *const paths[][2] = { { "/hello", "no-store" }, { "/own", "max-age=60" } };

	(void)state;
	open_server((struct server_settings){ 0 });
	for (size_t i = 0; i < 2; i++) {
		struct call c;
		begin(&c, "GET", paths[i][0], NULL);
		c.then = note_caching;
		end(&c);
		assert_string_equal(cache_control, paths[i][1]);
	}
	close_server();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(some_are_refused_at_once),
		cmocka_unit_test(some_wait_for_the_word),
		cmocka_unit_test(nobody_need_stay_until_then),
		cmocka_unit_test(who_is_slow_is_cut_off),
		cmocka_unit_test(who_takes_no_answer_is_cut_off),
		cmocka_unit_test(what_goes_on_ends),
		cmocka_unit_test(an_address_has_only_so_many_connections),
		cmocka_unit_test(connections_come_only_so_fast),
		cmocka_unit_test(all_have_only_so_many_connections),
		cmocka_unit_test(too_many_requests_are_told_when_to_come_again),
		cmocka_unit_test(what_an_answer_says_itself_is_not_said_for_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
