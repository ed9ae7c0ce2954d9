#include "base/buf.h"
#include "base/net/process.h"
#include "base/net/server.h"
#include "tests/unit/net/http_calls.h"

#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* A CA that nobody else knows, another one, a server's and a client's certificate. */
static const char making[] =
	"set -e; cd \"$PLACE\"\n"
	"new='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'\n"
	"for ca in ours theirs; do openssl req -x509 $new -keyout $ca.key -out $ca.crt -subj /CN=$ca -days 2; done\n"
	"sign() { openssl req -new $new -keyout $1.key -out $1.csr -subj /CN=$1 -addext \"$2\"\n"
	"openssl x509 -req -in $1.csr -CA $3.crt -CAkey $3.key -CAcreateserial -copy_extensions copy -days 2 -out "
	"$1.crt; }\n"
	"sign server subjectAltName=IP:127.0.0.1,DNS:inside.example ours\n"
	"sign client extendedKeyUsage=clientAuth ours\n"
	"sign stranger extendedKeyUsage=clientAuth theirs\n";

static char place[] = "/tmp/preheat-tls-XXXXXX";
static struct loop *loop;
static struct http *http;
static struct server *server;
static pid_t strict; /* openssl s_server, which insists on our client's certificate */
static int strict_port;
static char *texts[6];

static void ended(struct process *p)
{
	*(enum error_kind *)p->user = p->error.kind ? p->error.kind : p->exit_code ? ERROR_INTERNAL : ERROR_NONE;
	if (p->exit_code)
		print_error("%s\n", p->complaint);
}

static enum error_kind run(const char *script)
{
	char env[64];
	const char *const argv[] = { "sh", "-c", script, NULL };
	const char *const added[] = { env, NULL };
	enum error_kind kind = ERROR_NONE;
	struct process p = {
		.argv = argv, .env = added, .timeout = MINUTE, .max_output = 100000, .done = ended, .user = &kind
	};

	snprintf(env, sizeof env, "PLACE=%s", place);
	process_start(loop, &p);
	while (p.run)
		loop_once(loop);
	return kind;
}

static char *path_of(const char *name)
{
	static char paths[64][80];
	static unsigned next;
	char *path = paths[next++ % 64];

	snprintf(path, sizeof paths[0], "%s/%s", place, name);
	return path;
}

static const char *text_of(size_t slot, const char *name)
{
	FILE *f = fopen(path_of(name), "r");

	assert_non_null(f);
	free(texts[slot]);
	texts[slot] = calloc(1, 10000);
	assert_true(fread(texts[slot], 1, 9999, f) > 0);
	fclose(f);
	return texts[slot];
}

static void hello(const struct server_request *q, struct server_answer *a)
{
	buf_printf(&a->body, "hello %s", server_header(q, "Host") ? server_header(q, "Host") : "-");
}

static const struct server_route routes[] = { { "GET", "/", hello, NULL } };

static void serve(void)
{
	struct server_settings set = { .listen = "127.0.0.1:0", .routes = routes, .route_count = 1 };
	struct error e = { 0 };

	set.tls_cert = text_of(0, "server.crt");
	set.tls_key = text_of(1, "server.key");
	server = server_open(loop, &set, &e);
	assert_string_equal(e.message, "");
	assert_non_null(server);
}

/* Its first line tells the port: "ACCEPT 127.0.0.1:PORT". */
static void serve_strictly(void)
{
	int ends[2];
	char line[200];
	char *const argv[] = { "openssl", "s_server",
			       "-accept", "127.0.0.1:0",
			       "-www",	  "-Verify",
			       "1",	  "-verify_return_error",
			       "-CAfile", path_of("ours.crt"),
			       "-cert",	  path_of("server.crt"),
			       "-key",	  path_of("server.key"),
			       NULL };
	posix_spawn_file_actions_t files;
	char *colon = NULL;

	assert_int_equal(pipe(ends), 0);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
	posix_spawn_file_actions_addclose(&files, ends[0]);
	posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", 1, 0);
	assert_int_equal(posix_spawnp(&strict, "openssl", &files, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&files);
	close(ends[1]);
	FILE *f = fdopen(ends[0], "r");
	while (fgets(line, sizeof line, f) && strncmp(line, "ACCEPT", 6) != 0)
		;
	colon = strrchr(line, ':');
	assert_non_null(colon);
	strict_port = (int)strtoul(colon + 1, NULL, 10);
	/* the pipe stays open: a server that cannot write would end */
}

static int set_up(void **state)
{
	struct error e;

	(void)state;
	loop = loop_open();
	http = http_open(loop, "preheat/test", &e);
	if (!mkdtemp(place) || run("command -v openssl") != ERROR_NONE)
		return -1;
	if (run(making) != ERROR_NONE)
		return -1;
	serve();
	serve_strictly();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (strict > 0) {
		kill(strict, SIGKILL);
		waitpid(strict, NULL, 0);
	}
	run("rm -r \"$PLACE\"");
	server_close(server);
	http_close(http);
	loop_close(loop);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		free(texts[i]);
	return 0;
}

static struct call ask(const char *host, int port, const struct http_tls *tls)
{
	char url[100];
	struct call c;

	snprintf(url, sizeof url, "https://%s:%d/", host, port);
	c = call_to(url);
	c.r.tls = tls;
	c.r.max_response = 100000; /* openssl tells a long story */
	c.r.user = &c;
	http_start(http, &c.r);
	while (http_active(http))
		loop_once(loop);
	assert_int_equal(c.done, 1);
	return c;
}

static void the_given_ca_and_no_other_is_trusted(void **state)
{
	struct http_tls by_file = { .ca_file = path_of("ours.crt") };
	struct http_tls by_text = { .ca = text_of(2, "ours.crt") };
	struct http_tls wrong = { .ca_file = path_of("theirs.crt") };
	struct http_tls wrong_text = { .ca = text_of(3, "theirs.crt") };
	struct http_tls text_wins = { .ca = by_text.ca, .ca_file = path_of("theirs.crt") };
	struct http_tls any = { .is_insecure = true };
	const struct {
		const struct http_tls *tls;
		enum error_kind kind;
	} cases[] = {
		{ &by_file, ERROR_NONE }, { &by_text, ERROR_NONE },    { &wrong, ERROR_AUTH },
		{ &by_text, ERROR_NONE }, { &wrong_text, ERROR_AUTH }, { &text_wins, ERROR_NONE },
		{ NULL, ERROR_AUTH },	  { &any, ERROR_NONE },	       { &by_file, ERROR_NONE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct call c = ask("127.0.0.1", server_port(server), cases[i].tls);
		if (c.kind != cases[i].kind)
			print_error("case %zu: %s\n", i, c.message);
		assert_int_equal(c.kind, cases[i].kind);
		if (c.kind == ERROR_NONE)
			assert_memory_equal(c.response, "hello 127.0.0.1:", 16);
		else
			assert_non_null(strstr(c.message, ": the certificate of the server is not trusted ("));
	}
}

static void the_name_must_be_the_expected_one(void **state)
{
	struct http_tls ours = { .ca_file = path_of("ours.crt") };
	struct http_tls named = { .ca_file = path_of("ours.crt"), .server_name = "inside.example" };
	struct http_tls misnamed = { .ca_file = path_of("ours.crt"), .server_name = "outside.example" };
	struct http_tls any = { .is_insecure = true, .server_name = "outside.example" };
	struct call c = ask("localhost", server_port(server), &ours);

	(void)state;
	assert_int_equal(c.kind, ERROR_AUTH);
	assert_non_null(strstr(c.message, "localhost"));
	c = ask("localhost", server_port(server), &named);
	assert_string_equal(c.message, "");
	assert_memory_equal(c.response, "hello localhost:", 16);
	assert_int_equal(ask("127.0.0.1", server_port(server), &named).kind, ERROR_NONE);
	assert_int_equal(ask("127.0.0.1", server_port(server), &misnamed).kind, ERROR_AUTH);
	assert_int_equal(ask("127.0.0.1", server_port(server), &any).kind, ERROR_NONE);
}

static void a_client_shows_its_certificate(void **state)
{
	struct http_tls none = { .ca_file = path_of("ours.crt") };
	struct http_tls by_file = none, by_text = none, stranger = none, mismatched = none, missing = none;

	(void)state;
	by_file.cert_file = path_of("client.crt");
	by_file.key_file = path_of("client.key");
	by_text.cert = text_of(2, "client.crt");
	by_text.key = text_of(3, "client.key");
	stranger.cert = text_of(4, "stranger.crt");
	stranger.key = text_of(5, "stranger.key");
	mismatched.cert = by_text.cert;
	mismatched.key = stranger.key;
	missing.cert_file = "/no/such/file";
	missing.key_file = "/no/such/key";
	const struct {
		const struct http_tls *tls;
		enum error_kind kind;
	} cases[] = {
		{ &by_file, ERROR_NONE },  { &none, ERROR_AUTH },	{ &by_text, ERROR_NONE },
		{ &stranger, ERROR_AUTH }, { &mismatched, ERROR_AUTH }, { &missing, ERROR_AUTH },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct call c = ask("127.0.0.1", strict_port, cases[i].tls);
		if (c.kind != cases[i].kind)
			print_error("case %zu: %s\n", i, c.message);
		assert_int_equal(c.kind, cases[i].kind);
	}
}

static void bad_files_are_named(void **state)
{
	struct http_tls no_ca = { .ca_file = "/no/such/ca.crt" };
	struct http_tls not_pem = { .ca = "not PEM" };
	struct call c = ask("127.0.0.1", server_port(server), &no_ca);

	(void)state;
	assert_int_equal(c.kind, ERROR_AUTH);
	assert_non_null(strstr(c.message, "/no/such/ca.crt"));
	assert_int_equal(ask("127.0.0.1", server_port(server), &not_pem).kind, ERROR_AUTH);
}

static void plain_and_tls_do_not_mix(void **state)
{
	char url[100];
	struct server_settings set = { .listen = "127.0.0.1:0", .routes = routes, .route_count = 1 };
	struct error e;
	struct server *plain = server_open(loop, &set, &e);
	struct http_tls any = { .is_insecure = true };
	struct call c = ask("127.0.0.1", server_port(plain), &any);

	(void)state;
	assert_int_equal(c.kind, ERROR_UNAVAILABLE);
	server_close(plain);
	snprintf(url, sizeof url, "http://127.0.0.1:%u/", server_port(server));
	c = call_to(url);
	c.r.user = &c;
	http_start(http, &c.r);
	while (http_active(http))
		loop_once(loop);
	assert_int_not_equal(c.status, 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_given_ca_and_no_other_is_trusted),
		cmocka_unit_test(the_name_must_be_the_expected_one),
		cmocka_unit_test(a_client_shows_its_certificate),
		cmocka_unit_test(bad_files_are_named),
		cmocka_unit_test(plain_and_tls_do_not_mix),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
