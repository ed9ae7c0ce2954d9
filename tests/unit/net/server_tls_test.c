/* A certificate that is replaced while the server runs, and peers that begin to shake hands and stop. */
#include "base/buf.h"
#include "base/net/process.h"
#include "base/net/server.h"
#include "tests/unit/net/http_calls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static const char making[] = "set -e; cd \"$PLACE\"\n"
			     "for n in old new rsa; do kind='ec -pkeyopt ec_paramgen_curve:prime256v1'\n"
			     "[ $n != rsa ] || kind=rsa:2048\n"
			     "openssl req -x509 -newkey $kind -nodes -keyout $n.key -out $n.crt -subj /CN=$n -days 2 "
			     "-addext subjectAltName=IP:127.0.0.1; done\n";

static char place[] = "/tmp/preheat-server-tls-XXXXXX";
static struct loop *loop;
static struct http *http;
static struct server *server;
static char texts[6][10000];

static void ended(struct process *p)
{
	*(int *)p->user = p->error.kind ? -1 : p->exit_code;
}

static int run(const char *script)
{
	char env[64];
	const char *const argv[] = { "sh", "-c", script, NULL };
	const char *const added[] = { env, NULL };
	int code = 0;
	struct process p = {
		.argv = argv, .env = added, .timeout = MINUTE, .max_output = 100000, .done = ended, .user = &code
	};

	snprintf(env, sizeof env, "PLACE=%s", place);
	process_start(loop, &p);
	while (p.run)
		loop_once(loop);
	return code;
}

static const char *read_into(size_t slot, const char *name)
{
	char path[100];

	snprintf(path, sizeof path, "%s/%s", place, name);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	texts[slot][fread(texts[slot], 1, sizeof texts[0] - 1, f)] = '\0';
	fclose(f);
	return texts[slot];
}

enum { OLD, OLD_KEY, NEW, NEW_KEY, RSA, RSA_KEY };

static void hello(const struct server_request *q, struct server_answer *a)
{
	(void)q;
	buf_text(&a->body, "hello");
}

static const struct server_route routes[] = { { "GET", "/", hello, NULL } };

static int set_up(void **state)
{
	static const char *const names[] = { "old.crt", "old.key", "new.crt", "new.key", "rsa.crt", "rsa.key" };
	struct error e = { 0 };

	(void)state;
	loop = loop_open();
	http = http_open(loop, "preheat/test", &e);
	if (!mkdtemp(place) || run(making) != 0)
		return -1;
	for (size_t i = 0; i < 6; i++)
		read_into(i, names[i]);
	server = server_open(loop,
			     &(struct server_settings){ .listen = "127.0.0.1:0",
							.tls_cert = texts[OLD],
							.tls_key = texts[OLD_KEY],
							.routes = routes,
							.route_count = 1,
							.request_seconds = 1 },
			     &e);
	assert_string_equal(e.message, "");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	run("rm -r \"$PLACE\"");
	server_close(server);
	http_close(http);
	loop_close(loop);
	return 0;
}

/* Whoever trusts only that certificate: each has connections of its own. */
static enum error_kind ask(size_t trusted)
{
	static struct http_tls tls[6];
	char url[64];
	struct call c;

	tls[trusted].ca = texts[trusted];
	snprintf(url, sizeof url, "https://127.0.0.1:%u/", server_port(server));
	c = call_to(url);
	c.r.tls = &tls[trusted];
	c.r.user = &c;
	http_start(http, &c.r);
	while (http_active(http))
		loop_once(loop);
	return c.kind;
}

static void renew(size_t pair)
{
	struct error e = { 0 };

	assert_true(server_renew_tls(server, texts[pair], texts[pair + 1], &e));
}

static void what_is_no_pair_changes_nothing(void **state)
{
	static const struct {
		const char *cert, *key;
	} cases[] = {
		{ "", "" },
		{ texts[OLD], "" },
		{ "", texts[OLD_KEY] },
		{ texts[OLD], texts[NEW_KEY] },
		{ texts[RSA], texts[NEW_KEY] },
		{ texts[OLD_KEY], texts[OLD] },
		{ "-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n", texts[OLD_KEY] },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct error e = { 0 };
		assert_false(server_renew_tls(server, cases[i].cert, cases[i].key, &e));
		assert_int_equal(e.kind, ERROR_INVALID);
		assert_memory_equal(e.message, "the TLS certificate and its key: ", 33);
	}
	assert_int_equal(ask(OLD), ERROR_NONE);
	assert_int_equal(ask(NEW), ERROR_AUTH);
}

static void new_connections_take_the_new_one_and_old_ones_stay(void **state)
{
	(void)state;
	assert_int_equal(ask(OLD), ERROR_NONE);
	renew(NEW);
	assert_int_equal(ask(OLD), ERROR_NONE); /* over the connection that it kept */
	assert_int_equal(ask(NEW), ERROR_NONE);
	renew(RSA);
	assert_int_equal(ask(NEW), ERROR_NONE);
	assert_int_equal(ask(RSA), ERROR_NONE);
	for (int i = 0; i < 50; i++)
		renew(i % 2 ? OLD : NEW);
}

/* The first bytes of a handshake, as far as it goes; then nothing, or a byte now and then. */
static void half_a_handshake_does_not_last(void **state)
{
	static const char hello_bytes[] = "\x16\x03\x01\x01\x00\x01\x00\x00\xfc\x03\x03";
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(server_port(server)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	(void)state;
	for (size_t len = 0; len < sizeof hello_bytes; len += 5) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		char room[100];
		assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
		send(fd, hello_bytes, len, MSG_NOSIGNAL);
		for (ssize_t n = 1; n > 0 || (n < 0 && errno == EAGAIN);) {
			loop_once(loop);
			n = recv(fd, room, sizeof room, MSG_DONTWAIT);
		}
		close(fd);
	}
	assert_int_not_equal(ask(OLD), ERROR_TIMEOUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_pair_changes_nothing),
		cmocka_unit_test(new_connections_take_the_new_one_and_old_ones_stay),
		cmocka_unit_test(half_a_handshake_does_not_last),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
