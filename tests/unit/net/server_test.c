#include "base/net/server.h"
#include "tests/unit/net/http_calls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

static void hello(const struct server_request *q, struct server_answer *a)
{
	const char *name = server_query(q, "name");

	a->content_type = "text/html";
	a->headers[0] = "X-Route: hello";
	buf_printf(&a->body, "%s %s %s%s", q->method, q->path, (const char *)q->user, name ? name : "(nobody)");
}

static void echo(const struct server_request *q, struct server_answer *a)
{
	a->status = 201;
	buf_printf(&a->body, "%zu:", q->body_len);
	buf_append(&a->body, q->body, q->body_len);
	buf_printf(&a->body, ":%s", server_header(q, "x-thing") ? server_header(q, "x-thing") : "-");
}

static void too_long(const struct server_request *q, struct server_answer *a)
{
	(void)q;
	a->body.cap = 4;
	buf_text(&a->body, "more than four");
}

static void from_file(const struct server_request *q, struct server_answer *a)
{
	FILE *f = tmpfile();

	(void)q;
	assert_non_null(f);
	for (int i = 0; i < 1000; i++)
		fputs("0123456789", f);
	fflush(f);
	a->content_type = "application/octet-stream";
	a->fd = dup(fileno(f));
	a->fd_len = 10000;
	fclose(f);
}

/* "hello " 1000 times. */
static void packed(const struct server_request *q, struct server_answer *a)
{
	unsigned char room[200];
	char text[6000];
	z_stream z = {
		.next_in = (unsigned char *)text, .avail_in = sizeof text, .next_out = room, .avail_out = sizeof room
	};

	for (size_t i = 0; i < sizeof text; i++)
		text[i] = "hello "[i % 6];
	assert_string_equal(server_header(q, "Accept-Encoding"), "gzip");
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	buf_append(&a->body, room, z.total_out);
	deflateEnd(&z);
	a->headers[0] = "Content-Encoding: gzip";
}

static void empty(const struct server_request *q, struct server_answer *a)
{
	(void)q;
	a->status = 204;
}

static char greeting[] = "hello ";
static const struct server_route routes[] = {
	{ "GET", "/hello", hello, greeting },	{ "GET", "/under/*", hello, greeting },
	{ "POST", "/echo", echo, NULL },	{ "PUT", "/echo", echo, NULL },
	{ "GET", "/too-long", too_long, NULL }, { "GET", "/file", from_file, NULL },
	{ "GET", "/empty", empty, NULL },	{ "GET", "/packed", packed, NULL },
};
static const char *const security[] = { "X-Content-Type-Options: nosniff", "Cache-Control: no-store", NULL };

struct served {
	struct loop *loop;
	struct server *server;
	struct http *http;
	char base[64];
};

static struct server_settings settings(const char *listen)
{
	return (struct server_settings){ .listen = listen,
					 .routes = routes,
					 .route_count = sizeof routes / sizeof *routes,
					 .headers = security,
					 .max_body = 100 };
}

static int open_all(void **state)
{
	struct served *s = calloc(1, sizeof *s);
	struct server_settings set = settings("127.0.0.1:0");
	struct error e;

	s->loop = loop_open();
	s->server = server_open(s->loop, &set, &e);
	s->http = http_open(s->loop, "preheat/test", &e);
	assert_non_null(s->server);
	assert_true(server_port(s->server) > 0);
	snprintf(s->base, sizeof s->base, "http://127.0.0.1:%u", server_port(s->server));
	*state = s;
	return 0;
}

static int close_all(void **state)
{
	struct served *s = *state;

	server_close(s->server);
	http_close(s->http);
	loop_close(s->loop);
	free(s);
	return 0;
}

static struct call ask(struct served *s, const char *method, const char *path, const char *body)
{
	static const char *const headers[] = { "X-Thing: yes", NULL };
	char url[256];
	struct call c;

	snprintf(url, sizeof url, "%s%s", s->base, path);
	c = call_to(url);
	c.r.method = method;
	c.r.headers = headers;
	c.r.body = body;
	c.r.body_len = body ? strlen(body) : 0;
	c.r.max_response = 20000;
	c.r.user = &c;
	http_start(s->http, &c.r);
	while (http_active(s->http))
		assert_true(loop_once(s->loop));
	assert_int_equal(c.done, 1);
	assert_string_equal(c.message, "");
	return c;
}

static void routes_answer(void **state)
{
	static const struct {
		const char *method, *path, *body;
		long status;
		const char *response;
	} cases[] = {
		{ "GET", "/hello", NULL, 200, "GET /hello hello (nobody)" },
		{ "GET", "/hello?name=Ann%20B&x", NULL, 200, "GET /hello hello Ann B" },
		{ "GET", "/hello?name=&x", NULL, 200, "GET /hello hello " },
		{ "GET", "/hello?name", NULL, 200, "GET /hello hello " },
		{ "GET", "/under/a/b", NULL, 200, "GET /under/a/b hello (nobody)" },
		{ "GET", "/under/", NULL, 200, "GET /under/ hello (nobody)" },
		{ "GET", "/unde", NULL, 404, "there is no such path\n" },
		{ "GET", "/hello/", NULL, 404, "there is no such path\n" },
		{ "GET", "/", NULL, 404, "there is no such path\n" },
		{ "DELETE", "/hello", NULL, 405, "this path does not take that method\n" },
		{ "GET", "/echo", NULL, 405, "this path does not take that method\n" },
		{ "POST", "/echo", "abc", 201, "3:abc:yes" },
		{ "PUT", "/echo", "", 201, "0::yes" },
		{ "HEAD", "/hello", NULL, 200, "" },
		{ "GET", "/too-long", NULL, 500, "" },
		{ "GET", "/empty", NULL, 204, "" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct call c = ask(*state, cases[i].method, cases[i].path, cases[i].body);
		assert_int_equal(c.status, cases[i].status);
		assert_string_equal(c.response, cases[i].response);
	}
}

static void a_file_is_sent_whole(void **state)
{
	struct call c = ask(*state, "GET", "/file", NULL);

	assert_int_equal(c.status, 200);
	assert_int_equal(c.response_len, 10000);
	assert_memory_equal(c.response, "0123456789012345", 16);
}

static void packed_answers_are_unpacked_within_the_cap(void **state)
{
	struct served *s = *state;
	char url[128];

	snprintf(url, sizeof url, "%s/packed", s->base);
	for (size_t cap = 5999; cap <= 6000; cap++) {
		struct call c = call_to(url);
		c.r.accepts_gzip = true;
		c.r.max_response = cap;
		c.r.user = &c;
		http_start(s->http, &c.r);
		while (http_active(s->http))
			loop_once(s->loop);
		assert_int_equal(c.kind, cap < 6000 ? ERROR_INVALID : ERROR_NONE);
		assert_int_equal(c.response_len, cap < 6000 ? 0 : 6000);
	}
}

static void a_body_has_a_longest_length(void **state)
{
	char body[102];

	memset(body, 'b', sizeof body);
	body[100] = '\0';
	assert_int_equal(ask(*state, "POST", "/echo", body).status, 201);
	body[100] = 'b';
	body[101] = '\0';
	assert_int_equal(ask(*state, "POST", "/echo", body).status, 413);
}

/* The raw answer to raw bytes, all until the server closes; what the client would never send. */
static char *raw(struct served *s, const char *text, bool waits)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(server_port(s->server)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	static char answer[4096];
	size_t got = 0, len = strlen(text);

	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
	while (len) {
		ssize_t n = send(fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0)
			break;
		text += n;
		len -= (size_t)n;
		loop_poll(s->loop);
	}
	while (waits) {
		loop_poll(s->loop);
		ssize_t n = recv(fd, answer + got, sizeof answer - 1 - got, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN))
			break;
		got += n > 0 ? (size_t)n : 0;
	}
	answer[got] = '\0';
	close(fd);
	return answer;
}

static void strange_requests_get_an_answer_or_a_closed_door(void **state)
{
	static const struct {
		const char *text, *begins;
	} cases[] = {
		{ "GET /hello HTTP/1.1\r\n\r\n", "HTTP/1.1 400" }, /* no Host */
		{ "nonsense\r\n\r\n", "" },			   /* nothing to wait for */
		{ "\r\n\r\n\r\n", "" },
		{ "", "" },
		{ "GET /hello HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", "HTTP/1.1 400" },
		{ "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", "HTTP/1.1 4" },
		{ "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n", "HTTP/1.1 413" },
		{ "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc", "" },
		{ "GET /hello?name=%zz&%00=&&&= HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "HTTP/1.1 200" },
		{ "GET //../../etc/passwd HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "HTTP/1.1 404" },
		{ "GET /hello%00/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "HTTP/1.1 " },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *answer = raw(*state, cases[i].text, *cases[i].begins);
		if (strncmp(answer, cases[i].begins, strlen(cases[i].begins)) != 0)
			print_error("case %zu: %s\n", i, answer);
		assert_memory_equal(answer, cases[i].begins, strlen(cases[i].begins));
	}
	assert_int_equal(ask(*state, "GET", "/hello", NULL).status, 200);
}

/* Whoever stands before us may see another request there: refused, and nothing behind it is read as a request. */
static void ambiguous_requests_are_refused(void **state)
{
#define REST   "\r\nGET /hello?name=smuggled HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
#define CHUNKS "5\r\nhello\r\n0\r\n" REST
	static const char *const cases[] = {
		"GET /hello HTTP/1.1\r\nHost: a\r\nHost: b\r\n" REST,
		"GET /hello HTTP/1.1\r\nHost: a\r\nhOST: a\r\n" REST,
		"GET /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" REST,
		"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" CHUNKS,
		"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 99\r\n\r\n" CHUNKS,
		"PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding:\r\n chunked\r\n\r\n" CHUNKS,
		"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 7\r\n\r\nhello" REST,
		"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nhi" REST,
		"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2, 2\r\n\r\nhi" REST,
		"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: +2\r\n\r\nhi" REST,
		"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n 0\r\n\r\nhi" REST,
		"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
		"chunked\r\n\r\n" CHUNKS,
		"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n" CHUNKS,
		"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n" CHUNKS,
		"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nhi" REST,
		"POST /echo HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n" CHUNKS,
		"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length : 2\r\n\r\nhi" REST,
		"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n" CHUNKS,
		"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding\t: chunked\r\n\r\n" CHUNKS,
		"POST /echo HTTP/1.1\r\n Host: b\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi" REST,
		"GET /hello HTTP/1.1\nHost: a\nHost: b\n" REST,
		"POST /echo HTTP/1.1\r\nHost: a\r\nX: a\rContent-Length: 2\r\n\r\nhi" REST,
		"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;\n\r\nhello\r\n0\r\n" REST,
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *answer = raw(*state, cases[i], true);
		bool is_refused = !*answer || strncmp(answer, "HTTP/1.1 400", 12) == 0;
		if (!is_refused || strstr(answer, "smuggled"))
			fail_msg("case %zu: %s", i, answer);
	}
	assert_int_equal(ask(*state, "GET", "/hello", NULL).status, 200);
}

static void every_answer_has_the_headers(void **state)
{
	const char *answer = raw(*state, "GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", true);

	assert_non_null(strstr(answer, "\r\nX-Content-Type-Options: nosniff\r\n"));
	assert_non_null(strstr(answer, "\r\nCache-Control: no-store\r\n"));
	assert_non_null(strstr(answer, "\r\nContent-Type: text/html\r\n"));
	assert_non_null(strstr(answer, "\r\nX-Route: hello\r\n"));
	answer = raw(*state, "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", true);
	assert_non_null(strstr(answer, "\r\nX-Content-Type-Options: nosniff\r\n"));
	assert_non_null(strstr(answer, "\r\nAllow: POST, PUT\r\n"));
	answer = raw(*state, "PUT /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", true);
	assert_non_null(strstr(answer, "\r\nAllow: GET, HEAD\r\n"));
}

static void long_headers_are_refused(void **state)
{
	size_t len = 200000;
	char *text = malloc(len + 1);

	memset(text, 'x', len);
	text[len] = '\0';
	memcpy(text, "GET /hello HTTP/1.1\r\nHost: a\r\nX: ", 33);
	const char *answer = raw(*state, text, true);
	assert_true(!*answer || strncmp(answer, "HTTP/1.1 4", 10) == 0);
	free(text);
	assert_int_equal(ask(*state, "GET", "/hello", NULL).status, 200);
}

static void an_endless_body_is_cut_off(void **state)
{
	struct buf text = { 0 };

	buf_text(&text, "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
	for (int i = 0; i < 1000; i++)
		buf_text(&text, "10\r\n0123456789abcdef\r\n");
	const char *answer = raw(*state, text.text, true);
	assert_true(!*answer || strncmp(answer, "HTTP/1.1 4", 10) == 0);
	buf_release(&text);
}

static void many_at_once_are_all_served(void **state)
{
	struct served *s = *state;
	static struct call calls[300];
	char url[128];

	snprintf(url, sizeof url, "%s/hello", s->base);
	for (size_t i = 0; i < 300; i++) {
		calls[i] = call_to(url);
		calls[i].r.user = &calls[i];
		http_start(s->http, &calls[i].r);
	}
	while (http_active(s->http))
		assert_true(loop_once(s->loop));
	for (size_t i = 0; i < 300; i++) {
		assert_int_equal(calls[i].done, 1);
		assert_int_equal(calls[i].status, 200);
	}
}

static void where_it_cannot_listen_it_says_why(void **state)
{
	struct served *s = *state;
	char taken[32];
	const struct {
		const char *listen;
		enum error_kind kind;
		const char *part;
	} cases[] = {
		{ taken, ERROR_UNAVAILABLE, "Address already in use, another program listens there" },
		{ "192.0.2.1:0", ERROR_UNAVAILABLE, "this machine has no such address" },
		{ "8080", ERROR_INVALID,
		  "'8080' is not a valid listen address; use HOST:PORT, such as 127.0.0.1:8080" },
		{ "", ERROR_INVALID, "not a valid listen address" },
		{ ":", ERROR_INVALID, "not a valid listen address" },
		{ "127.0.0.1:65536", ERROR_INVALID, "not a valid listen address" },
		{ "127.0.0.1:-1", ERROR_INVALID, "not a valid listen address" },
		{ "127.0.0.1:http", ERROR_INVALID, "not a valid listen address" },
		{ "example.com:80", ERROR_INVALID, "not a valid listen address" },
		{ "::1:80", ERROR_INVALID, "not a valid listen address" },
		{ "[::1:80", ERROR_INVALID, "not a valid listen address" },
		{ "1.2.3.4.5:80", ERROR_INVALID, "not a valid listen address" },
	};

	snprintf(taken, sizeof taken, "127.0.0.1:%u", server_port(s->server));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct server_settings set = settings(cases[i].listen);
		struct error e = { 0 };
		assert_null(server_open(s->loop, &set, &e));
		if (e.kind != cases[i].kind || !strstr(e.message, cases[i].part))
			print_error("%s: %s\n", cases[i].listen, e.message);
		assert_int_equal(e.kind, cases[i].kind);
		assert_non_null(strstr(e.message, cases[i].part));
	}
}

static void it_listens_on_all_addresses(void **state)
{
	static const char *const all[] = { ":0", "localhost:0", "0.0.0.0:0" };
	struct served *s = *state;

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		struct server_settings set = settings(all[i]);
		struct error e;
		struct server *second = server_open(s->loop, &set, &e);
		assert_non_null(second);
		snprintf(s->base, sizeof s->base, "http://127.0.0.1:%u", server_port(second));
		assert_int_equal(ask(s, "GET", "/hello", NULL).status, 200);
		server_close(second);
	}
}

static void bad_certificates_are_refused(void **state)
{
	struct served *s = *state;
	struct server_settings set = settings("127.0.0.1:0");
	struct error e = { 0 };

	set.tls_cert = "-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n";
	set.tls_key = "none";
	assert_null(server_open(s->loop, &set, &e));
	assert_int_equal(e.kind, ERROR_INVALID);
	assert_memory_equal(e.message, "serving on 127.0.0.1:0: ", 24);
	set.tls_key = NULL;
	assert_null(server_open(s->loop, &set, &e));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_all, close_all)
	const struct CMUnitTest tests[] = {
		TEST(routes_answer),
		TEST(a_file_is_sent_whole),
		TEST(packed_answers_are_unpacked_within_the_cap),
		TEST(a_body_has_a_longest_length),
		TEST(strange_requests_get_an_answer_or_a_closed_door),
		TEST(every_answer_has_the_headers),
		TEST(ambiguous_requests_are_refused),
		TEST(long_headers_are_refused),
		TEST(an_endless_body_is_cut_off),
		TEST(many_at_once_are_all_served),
		TEST(where_it_cannot_listen_it_says_why),
		TEST(it_listens_on_all_addresses),
		TEST(bad_certificates_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
