/* A door in front of servers: real sockets on loopback, a server of this program behind it. */
#include "base/net/relay.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/net/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { SERVERS = 2, CLIENTS = 8 };

struct back {
	struct server *server;
	struct buf seen; /* METHOD PATH CONNECTION-HEADER BODY-LENGTH, one a line */
	struct server_stream *stream;
};

static struct {
	struct loop *loop;
	struct relay *relay;
	struct back backs[SERVERS];
	int changes;
	int clients[CLIENTS];
	struct buf got[CLIENTS];
	bool ended[CLIENTS];
} all;

static void record(const struct server_request *q, struct server_answer *a)
{
	struct back *b = q->user;
	const char *connection = server_header(q, "Connection");

	buf_printf(&b->seen, "%s %s %s %zu\n", q->method, q->path, connection ? connection : "-", q->body_len);
	buf_text(&a->body, "served");
}

static void ended(struct server_stream *s)
{
	struct back *b = s->user;

	b->stream = NULL;
	free(s);
}

enum { LARGE = 3 << 20, ANSWER = 24 << 20 }; /* larger than what kernels hold */

static void large(const struct server_request *q, struct server_answer *a)
{
	(void)q;
	while (a->body.len < ANSWER)
		buf_text(&a->body, "0123456789abcdef");
}

static void stream(const struct server_request *q, struct server_answer *a)
{
	struct back *b = q->user;

	b->stream = calloc(1, sizeof *b->stream);
	assert_non_null(b->stream);
	b->stream->ended = ended;
	b->stream->user = b;
	a->stream = b->stream;
	buf_text(&a->body, "first ");
}

static void begin_server(size_t i)
{
	static struct server_route routes[SERVERS][4];
	struct error e;

	memcpy(routes[i],
	       (struct server_route[]){ { "GET", "/stream", stream, &all.backs[i] },
					{ "GET", "/large", large, &all.backs[i] },
					{ NULL, "/*", record, &all.backs[i] } },
	       3 * sizeof(struct server_route));
	const struct server_settings s = {
		.listen = "127.0.0.1:0", .routes = routes[i], .route_count = 3, .max_body = (size_t)4 << 20
	};
	all.backs[i].server = server_open(all.loop, &s, &e);
	assert_non_null(all.backs[i].server);
}

static void changed(void *user)
{
	(void)user;
	all.changes++;
}

static int begin_with(millis hold, size_t most)
{
	struct error e;
	const struct relay_settings s = {
		.name = "llm/code", .host = "127.0.0.1", .hold = hold, .most = most, .changed = changed
	};

	memset(&all, 0, sizeof all);
	all.loop = loop_open();
	for (size_t i = 0; i < SERVERS; i++)
		begin_server(i);
	for (size_t i = 0; i < CLIENTS; i++)
		all.clients[i] = -1;
	all.relay = relay_open(all.loop, &s, &e);
	assert_non_null(all.relay);
	return 0;
}

static int begin(void **state)
{
	(void)state;
	return begin_with(MINUTE, 0);
}

static int end(void **state)
{
	(void)state;
	relay_close(all.relay);
	for (size_t i = 0; i < SERVERS; i++) {
		server_close(all.backs[i].server);
		buf_release(&all.backs[i].seen);
	}
	for (size_t i = 0; i < CLIENTS; i++) {
		if (all.clients[i] >= 0)
			close(all.clients[i]);
		buf_release(&all.got[i]);
	}
	loop_close(all.loop);
	return 0;
}

/* --- clients --- */

static void dial(size_t i)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons(relay_port(all.relay)) };

	all.clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(all.clients[i], (struct sockaddr *)&at, sizeof at), 0);
}

static void say(size_t i, const char *text, size_t len)
{
	while (len) {
		ssize_t put = send(all.clients[i], text, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (put > 0) {
			text += put;
			len -= (size_t)put;
		}
		loop_poll(all.loop);
		if (put < 0 && errno != EAGAIN)
			return; /* refused before all was said */
	}
}

static void ask(size_t i, const char *text)
{
	dial(i);
	say(i, text, strlen(text));
}

static void hear(size_t i)
{
	char bytes[4096];
	ssize_t got = recv(all.clients[i], bytes, sizeof bytes, MSG_DONTWAIT);

	if (got > 0)
		buf_append(&all.got[i], bytes, (size_t)got);
	all.ended[i] |= got == 0 || (got < 0 && errno != EAGAIN);
}

static void until_waiting(size_t count)
{
	while (relay_waiting(all.relay) != count)
		loop_once(all.loop);
}

static void until_ended(size_t i)
{
	while (!all.ended[i]) {
		hear(i);
		if (!all.ended[i])
			loop_once(all.loop);
	}
}

static void until_heard(size_t i, const char *text)
{
	while (!all.got[i].text || !strstr(all.got[i].text, text)) {
		hear(i);
		assert_false(all.ended[i]);
		loop_poll(all.loop);
	}
}

static void aim(size_t first, size_t count)
{
	struct relay_target targets[SERVERS];

	for (size_t i = 0; i < count; i++)
		targets[i] = (struct relay_target){ "127.0.0.1", server_port(all.backs[first + i].server) };
	relay_aim(all.relay, targets, count);
}

/* --- */

static void held_until_there_is_a_server(void **state)
{
	(void)state;
	ask(0, "POST /v1/completions HTTP/1.1\r\nHost: code\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\n"
	       "Content-Length: 5\r\n\r\nhello");
	until_waiting(1);
	ask(1, "GET /health HTTP/1.1\r\nHost: code\r\n\r\n");
	until_waiting(2);
	assert_int_equal(all.changes, 2);
	assert_null(all.backs[0].seen.text);
	aim(0, 1);
	until_ended(0);
	until_ended(1);
	assert_int_equal(relay_waiting(all.relay), 0);
	assert_non_null(strstr(all.backs[0].seen.text, "POST /v1/completions close 5\n"));
	assert_non_null(strstr(all.backs[0].seen.text, "GET /health close 0\n"));
	assert_non_null(strstr(all.got[0].text, "HTTP/1.1 200 OK\r\n"));
	assert_non_null(strstr(all.got[0].text, "\r\n\r\nserved"));
	/* And what comes after is passed on at once. */
	ask(2, "GET /later HTTP/1.1\r\nHost: code\r\n\r\n");
	until_ended(2);
	assert_non_null(strstr(all.got[2].text, "served"));
}

static void a_header_comes_in_whatever_pieces(void **state)
{
	static const char request[] = "POST /cut HTTP/1.1\r\nHost: code\r\nContent-Length: 3\r\n\r\nabc";

	(void)state;
	aim(0, 1);
	dial(0);
	for (size_t i = 0; i < sizeof request - 1; i++)
		say(0, request + i, 1);
	until_ended(0);
	assert_string_equal(all.backs[0].seen.text, "POST /cut close 3\n");
}

/* Larger than what the relay and the kernels hold. */
static void a_large_body_is_passed_whole(void **state)
{
	char *body = malloc(LARGE);
	char header[100];

	(void)state;
	assert_non_null(body);
	memset(body, 'x', LARGE);
	snprintf(header, sizeof header, "POST /large HTTP/1.1\r\nHost: code\r\nContent-Length: %d\r\n\r\n", LARGE);
	ask(0, header);
	until_waiting(1);
	aim(0, 1);
	say(0, body, LARGE);
	until_ended(0);
	free(body);
	assert_string_equal(all.backs[0].seen.text, "POST /large close 3145728\n");
}

/* More than kernels hold: its server ends while much of it is on the way. */
static void a_large_answer_is_passed_whole(void **state)
{
	(void)state;
	aim(0, 1);
	ask(0, "GET /large HTTP/1.1\r\nHost: code\r\n\r\n");
	for (int i = 0; i < 200000 && !all.ended[0]; i++) {
		for (int k = 0; k < 4; k++)
			loop_poll(all.loop);
		hear(0);
	}
	assert_true(all.ended[0]);
	assert_true(all.got[0].len > ANSWER);
}

static void tokens_come_as_they_are_made(void **state)
{
	(void)state;
	aim(0, 1);
	ask(0, "GET /stream HTTP/1.1\r\nHost: code\r\n\r\n");
	until_heard(0, "first ");
	assert_int_equal(relay_passing(all.relay), 1);
	server_stream_send(all.backs[0].stream, "second ", 7);
	until_heard(0, "second ");
	/* One that ends its part takes no new requests, and says what it has begun to say. */
	ask(1, "GET /stream HTTP/1.1\r\nHost: code\r\n\r\n");
	until_heard(1, "first ");
	relay_end(all.relay);
	server_stream_send(all.backs[0].stream, "third ", 6);
	until_heard(1, "third ");
	server_stream_end(all.backs[0].stream);
	until_ended(1);
}

static void who_leaves_is_not_waited_for(void **state)
{
	(void)state;
	ask(0, "POST / HTTP/1.1\r\nHost: code\r\nContent-Length: 9\r\n\r\nhalf");
	until_waiting(1);
	close(all.clients[0]);
	all.clients[0] = -1;
	until_waiting(0);
	assert_int_equal(relay_passing(all.relay), 0);
}

static void a_held_request_is_refused_in_the_end(void **state)
{
	(void)state;
	end(state);
	begin_with(10, 0);
	ask(0, "GET / HTTP/1.1\r\nHost: code\r\n\r\n");
	until_ended(0);
	assert_non_null(strstr(all.got[0].text, "HTTP/1.1 503 Service Unavailable\r\n"));
	assert_non_null(strstr(all.got[0].text, "Retry-After: 5\r\n"));
	assert_non_null(strstr(all.got[0].text, "{\"error\":{\"message\":\"llm/code: no engine was awake in time\","));
	assert_int_equal(relay_waiting(all.relay), 0);
}

static void more_than_may_wait_are_refused(void **state)
{
	(void)state;
	end(state);
	begin_with(MINUTE, 2);
	for (size_t i = 0; i < 3; i++) {
		ask(i, "GET / HTTP/1.1\r\nHost: code\r\n\r\n");
		until_waiting(i < 2 ? i + 1 : 2);
	}
	until_ended(2);
	assert_non_null(strstr(all.got[2].text, "503 Service Unavailable"));
	assert_non_null(strstr(all.got[2].text, "too many requests wait"));
	aim(0, 1);
	until_ended(0);
	until_ended(1);
	assert_non_null(strstr(all.got[1].text, "served"));
}

static void a_server_that_is_not_up_yet_is_asked_again(void **state)
{
	struct relay_target nobody = { "127.0.0.1", 0 };
	int fd;
	struct error e;

	(void)state;
	fd = listen_open("127.0.0.1:0", &nobody.port, &e); /* a port that nobody else gets meanwhile */
	close(fd);
	ask(0, "GET / HTTP/1.1\r\nHost: code\r\n\r\n");
	until_waiting(1);
	relay_aim(all.relay, &nobody, 1);
	for (int i = 0; i < 10; i++)
		loop_poll(all.loop);
	assert_int_equal(relay_waiting(all.relay), 1);
	aim(0, 1);
	until_ended(0);
	assert_non_null(strstr(all.got[0].text, "served"));
}

/* It may have been worked on. */
static void what_a_server_dropped_is_not_sent_again(void **state)
{
	struct relay_target rude = { "127.0.0.1", 0 };
	struct error e;
	int fd = listen_open("127.0.0.1:0", &rude.port, &e), peer = -1;

	(void)state;
	relay_aim(all.relay, &rude, 1);
	ask(0, "GET / HTTP/1.1\r\nHost: code\r\n\r\n");
	while ((peer = accept(fd, NULL, NULL)) < 0)
		loop_poll(all.loop);
	while (!relay_passing(all.relay))
		loop_once(all.loop);
	close(peer);
	until_ended(0);
	close(fd);
	assert_non_null(strstr(all.got[0].text, "HTTP/1.1 502 Bad Gateway\r\n"));
}

static void servers_share_what_comes(void **state)
{
	(void)state;
	for (size_t i = 0; i < 6; i++) {
		ask(i, "GET /stream HTTP/1.1\r\nHost: code\r\n\r\n");
		until_waiting(i + 1);
	}
	aim(0, 2);
	for (size_t i = 0; i < 6; i++)
		until_heard(i, "first ");
	relay_aim(all.relay, NULL, 0);
	ask(6, "GET / HTTP/1.1\r\nHost: code\r\n\r\n");
	until_waiting(1);
	assert_int_equal(relay_passing(all.relay), 6);
	aim(1, 1);
	until_ended(6);
	assert_string_equal(all.backs[1].seen.text, "GET / close 0\n");
}

static void what_is_no_request_is_refused(void **state)
{
	static const struct {
		const char *text, *answer;
	} cases[] = {
		{ "GET /\r\n\r\n", "400 Bad Request" },
		{ "GET / HTTP/3.0\r\n\r\n", "400 Bad Request" },
		{ "GET  / HTTP/1.1\r\n\r\n", "400 Bad Request" },
		{ "GET / HTTP/1.1\r\nno colon\r\n\r\n", "400 Bad Request" },
		{ "GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n", "400 Bad Request" },
		{ "GET / HTTP/1.1\r\nA: b\nHost: c\r\n\r\n", "400 Bad Request" },
		{ "\r\n\r\n", "400 Bad Request" },
		{ "\x16\x03\x01\r\n\r\n", "400 Bad Request" },
		{ "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505 HTTP Version Not Supported" },
	};

	(void)state;
	aim(0, 1);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		buf_clear(&all.got[0]);
		all.ended[0] = false;
		ask(0, cases[i].text);
		until_ended(0);
		close(all.clients[0]);
		all.clients[0] = -1;
		if (!strstr(all.got[0].text, cases[i].answer))
			fail_msg("%zu: %s", i, all.got[0].text);
	}
	assert_null(all.backs[0].seen.text);
}

static void a_header_has_an_end(void **state)
{
	CLEANUP(buf_release) struct buf request = { 0 };

	(void)state;
	buf_text(&request, "GET / HTTP/1.1\r\n");
	while (request.len < RELAY_HEADER + 1000)
		buf_text(&request, "X-Filler: 0123456789012345678901234567890123456789\r\n");
	ask(0, request.text);
	until_ended(0);
	assert_non_null(strstr(all.got[0].text, "431 Request Header Fields Too Large"));
}

static void an_upgrade_stays_as_it_is(void **state)
{
	(void)state;
	aim(0, 1);
	ask(0, "GET /ws HTTP/1.1\r\nHost: code\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
	until_heard(0, "served");
	assert_string_equal(all.backs[0].seen.text, "GET /ws Upgrade 0\n");
}

/* One that is not taken up is answered in HTTP, and nothing that comes after it is passed on. */
static void an_upgrade_that_is_refused_is_one_request(void **state)
{
	(void)state;
	aim(0, 1);
	ask(0, "GET /ws HTTP/1.1\r\nHost: code\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\r\n");
	until_heard(0, "\r\n\r\nserved");
	assert_non_null(strstr(all.got[0].text, "HTTP/1.1 200 OK\r\nConnection: close\r\n"));
	relay_aim(all.relay, NULL, 0);
	say(0, "GET /second HTTP/1.1\r\nHost: code\r\n\r\n", 37);
	for (int i = 0; i < 100; i++)
		loop_poll(all.loop);
	shutdown(all.clients[0], SHUT_WR);
	until_ended(0);
	assert_string_equal(all.backs[0].seen.text, "GET /ws Upgrade 0\n");
}

static void until_accepted(int fd, int *peer)
{
	while ((*peer = accept(fd, NULL, NULL)) < 0)
		loop_poll(all.loop);
}

/* What a server switches to is passed both ways. */
static void a_websocket_is_passed_both_ways(void **state)
{
	static const char switched[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n";
	struct relay_target own = { "127.0.0.1", 0 };
	struct error e;
	char bytes[200] = "";
	int fd = listen_open("127.0.0.1:0", &own.port, &e), peer = -1;
	size_t len = 0;

	(void)state;
	relay_aim(all.relay, &own, 1);
	ask(0, "GET /ws HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
	until_accepted(fd, &peer);
	for (size_t i = 0; i < sizeof switched - 1; i++) {
		assert_int_equal(send(peer, switched + i, 1, MSG_NOSIGNAL), 1);
		loop_poll(all.loop);
	}
	until_heard(0, "websocket\r\n\r\n");
	assert_string_equal(all.got[0].text, switched);
	say(0, "frame", 5);
	while (!strstr(bytes, "frame")) {
		ssize_t got = recv(peer, bytes + len, sizeof bytes - 1 - len, MSG_DONTWAIT);
		len += got > 0 ? (size_t)got : 0;
		loop_poll(all.loop);
	}
	close(peer);
	until_ended(0);
	close(fd);
}

/* Java offers HTTP/2 with every first request; engines go on in HTTP/1.1, and would keep the connection. */
static void an_offer_of_http2_is_passed_over(void **state)
{
	(void)state;
	aim(0, 1);
	ask(0, "POST /v1/completions HTTP/1.1\r\nHost: code\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
	       "HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\nContent-Length: 2\r\n\r\n{}");
	until_ended(0);
	assert_non_null(strstr(all.got[0].text, "served"));
	assert_string_equal(all.backs[0].seen.text, "POST /v1/completions close 2\n");
}

/* It waits for our answer and would send no line in 30 s. */
static void tls_is_refused_at_its_first_byte(void **state)
{
	(void)state;
	ask(0, "\x16\x03\x01");
	until_heard(0, "400 Bad Request");
	assert_non_null(strstr(all.got[0].text, "TLS"));
}

static void who_only_has_no_more_to_say_is_answered(void **state)
{
	(void)state;
	ask(0, "POST / HTTP/1.1\r\nHost: code\r\nContent-Length: 2\r\n\r\n{}");
	until_waiting(1);
	shutdown(all.clients[0], SHUT_WR);
	until_heard(0, "HTTP/1.1 100 Continue\r\n\r\n");
	for (int i = 0; i < 3; i++)
		loop_once(all.loop);
	assert_int_equal(relay_waiting(all.relay), 1);
	aim(0, 1);
	until_ended(0);
	assert_non_null(strstr(all.got[0].text, "Continue\r\n\r\nHTTP/1.1 200 OK\r\n"));
	assert_string_equal(all.backs[0].seen.text, "POST / close 2\n");
}

/* HTTP/1.0 has no word for it. */
static void who_leaves_an_old_request_is_not_waited_for(void **state)
{
	(void)state;
	ask(0, "GET / HTTP/1.0\r\n\r\n");
	until_waiting(1);
	shutdown(all.clients[0], SHUT_WR);
	until_waiting(0);
	until_ended(0);
	assert_null(all.got[0].text);
}

static void who_ends_tells_those_that_wait(void **state)
{
	(void)state;
	ask(0, "GET / HTTP/1.1\r\nHost: code\r\n\r\n");
	until_waiting(1);
	relay_end(all.relay);
	until_ended(0);
	assert_non_null(strstr(all.got[0].text, "503 Service Unavailable"));
	assert_int_equal(relay_waiting(all.relay), 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(held_until_there_is_a_server),
		CASE(a_header_comes_in_whatever_pieces),
		CASE(a_large_body_is_passed_whole),
		CASE(a_large_answer_is_passed_whole),
		CASE(tokens_come_as_they_are_made),
		CASE(who_leaves_is_not_waited_for),
		CASE(a_held_request_is_refused_in_the_end),
		CASE(more_than_may_wait_are_refused),
		CASE(a_server_that_is_not_up_yet_is_asked_again),
		CASE(what_a_server_dropped_is_not_sent_again),
		CASE(servers_share_what_comes),
		CASE(what_is_no_request_is_refused),
		CASE(a_header_has_an_end),
		CASE(an_upgrade_stays_as_it_is),
		CASE(an_upgrade_that_is_refused_is_one_request),
		CASE(a_websocket_is_passed_both_ways),
		CASE(an_offer_of_http2_is_passed_over),
		CASE(tls_is_refused_at_its_first_byte),
		CASE(who_only_has_no_more_to_say_is_answered),
		CASE(who_leaves_an_old_request_is_not_waited_for),
		CASE(who_ends_tells_those_that_wait),
	};

	return cmocka_run_group_tests_name("relay", tests, NULL, NULL);
}
