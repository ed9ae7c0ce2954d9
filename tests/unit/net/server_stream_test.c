/* Answers that go on, over real sockets. */
#include "base/net/server.h"
#include "tests/unit/net/http_calls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct site {
	struct loop *loop;
	struct server *server;
	struct server_stream *streams[8]; /* those that go on */
	int begun, ended;
	struct server_route routes[1];
};

static void on_ended(struct server_stream *s)
{
	struct site *site = s->user;

	for (size_t i = 0; i < 8; i++)
		if (site->streams[i] == s)
			site->streams[i] = NULL;
	site->ended++;
	free(s);
}

static void listen_to(const struct server_request *q, struct server_answer *a)
{
	struct site *site = q->user;
	struct server_stream *s = calloc(1, sizeof *s);

	s->ended = on_ended;
	s->user = site;
	a->content_type = "text/event-stream";
	a->stream = s;
	buf_text(&a->body, "begun\n");
	site->streams[site->begun++ % 8] = s;
}

static struct site *open_site(void)
{
	struct site *s = calloc(1, sizeof *s);
	struct error e = { 0 };

	s->loop = loop_open();
	s->routes[0] = (struct server_route){ "GET", "/events", listen_to, s };
	s->server = server_open(
		s->loop, &(struct server_settings){ .listen = "127.0.0.1:0", .routes = s->routes, .route_count = 1 },
		&e);
	assert_non_null(s->server);
	return s;
}

static void close_site(struct site *s)
{
	server_close(s->server);
	assert_int_equal(s->begun, s->ended);
	loop_close(s->loop);
	free(s);
}

static int ask(struct site *s, const char *method)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(server_port(s->server)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), small = 4096;
	char text[128];

	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	snprintf(text, sizeof text, "%s /events HTTP/1.1\r\nHost: here\r\n\r\n", method);
	assert_int_equal(send(fd, text, strlen(text), 0), (ssize_t)strlen(text));
	return fd;
}

/* Runs the loop until the text, or the end of the connection when it is NULL, has come. */
static void wait_for(struct site *s, int fd, const char *text)
{
	char got[16384];
	size_t len = 0;

	for (;;) {
		ssize_t n = recv(fd, got + len, sizeof got - 1 - len, MSG_DONTWAIT);

		if (n == 0 || (n < 0 && errno == ECONNRESET)) {
			assert_null(text);
			return;
		}
		if (n > 0)
			len += (size_t)n;
		got[len] = '\0';
		if (text && strstr(got, text))
			return;
		if (n < 0)
			loop_once(s->loop);
	}
}

static void say(struct site *s, const char *text)
{
	for (size_t i = 0; i < 8; i++)
		if (s->streams[i])
			server_stream_send(s->streams[i], text, strlen(text));
}

static void what_is_sent_arrives_as_it_comes(void **state)
{
	struct site *s = open_site();
	int a = ask(s, "GET"), b = ask(s, "GET");

	(void)state;
	wait_for(s, a, "begun\n");
	wait_for(s, b, "begun\n");
	for (int i = 0; i < 20; i++) {
		char text[32];

		snprintf(text, sizeof text, "data: %d\n\n", i);
		say(s, text);
		wait_for(s, a, text);
		wait_for(s, b, text);
	}
	say(s, "two at");
	say(s, " once\n");
	wait_for(s, a, "two at once\n");
	server_close(s->server);
	s->server = NULL;
	wait_for(s, a, NULL);
	wait_for(s, b, NULL);
	close_site(s);
	close(a);
	close(b);
}

static void a_peer_that_left_is_noticed(void **state)
{
	struct site *s = open_site();
	int a = ask(s, "GET");

	(void)state;
	wait_for(s, a, "begun\n");
	close(a);
	while (!s->ended) {
		say(s, ": still there?\n");
		loop_once(s->loop);
	}
	close_site(s);
}

static void a_peer_that_takes_nothing_is_cut_off(void **state)
{
	struct site *s = open_site();
	int slow = ask(s, "GET"), quick = ask(s, "GET");
	char much[8192];

	(void)state;
	memset(much, 'x', sizeof much - 1);
	much[sizeof much - 1] = '\0';
	wait_for(s, slow, "begun\n");
	wait_for(s, quick, "begun\n");
	for (int i = 0; !s->ended; i++) {
		char mark[32];

		assert_true(i < 10000);
		snprintf(mark, sizeof mark, "mark %d.", i);
		say(s, much);
		say(s, mark);
		for (size_t n = 0; n < 2; n++)
			loop_poll(s->loop);
		wait_for(s, quick, mark);
	}
	assert_int_equal(s->ended, 1);
	close_site(s);
	close(slow);
	close(quick);
}

static void asking_for_the_head_begins_nothing(void **state)
{
	struct site *s = open_site();
	int a = ask(s, "HEAD");

	(void)state;
	wait_for(s, a, "text/event-stream");
	while (!s->ended)
		loop_once(s->loop);
	close_site(s);
	close(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_sent_arrives_as_it_comes),
		cmocka_unit_test(a_peer_that_left_is_noticed),
		cmocka_unit_test(a_peer_that_takes_nothing_is_cut_off),
		cmocka_unit_test(asking_for_the_head_begins_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
