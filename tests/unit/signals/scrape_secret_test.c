#include "base/net/process.h"
#include "base/net/server.h"
#include "signals/scrape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Pods that tell their metrics over TLS, and only to whom knows a token. */
static const char making[] =
	"set -e; cd \"$PLACE\"; umask 077\n"
	"new='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'\n"
	"for ca in ours theirs; do openssl req -x509 $new -keyout $ca.key -out $ca.crt -subj /CN=$ca -days 2; done\n"
	"openssl req -new $new -keyout pod.key -out pod.csr -subj /CN=pod -addext subjectAltName=DNS:chat.llm.svc\n"
	"openssl x509 -req -in pod.csr -CA ours.crt -CAkey ours.key -CAcreateserial -copy_extensions copy -days 2 "
	"-out pod.crt\n"
	"rm -f ./*.csr\n";

static char place[] = "/tmp/preheat-scrape-XXXXXX";

struct secret_pool {
	struct loop *loop;
	struct http *http;
	struct server *server;
	struct pool_reading last;
	struct error trouble;
	int rounds;
	const char *token; /* the one that is let in */
};

static const char *path_of(const char *name)
{
	static char paths[64][96];
	static unsigned next;
	char *path = paths[next++ % 64];

	snprintf(path, sizeof paths[0], "%s/%s", place, name);
	return path;
}

static void write_file(const char *name, const char *text)
{
	FILE *f = fopen(path_of(name), "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static char *read_all(const char *name)
{
	char *text = calloc(1, 10000);
	FILE *f = fopen(path_of(name), "r");

	assert_non_null(f);
	assert_non_null(text);
	assert_true(fread(text, 1, 9999, f) > 0);
	fclose(f);
	return text;
}

static void ended(struct process *p)
{
	*(int *)p->user = p->error.kind ? 1 : p->exit_code;
}

static int make_certificates(void **state)
{
	char env[64];
	const char *const argv[] = { "sh", "-c", making, NULL }, *const added[] = { env, NULL };
	int code = -1;
	struct process p = {
		.argv = argv, .env = added, .timeout = MINUTE, .max_output = 100000, .done = ended, .user = &code
	};
	struct loop *loop = loop_open();

	(void)state;
	if (!mkdtemp(place))
		return -1;
	snprintf(env, sizeof env, "PLACE=%s", place);
	process_start(loop, &p);
	while (p.run)
		loop_once(loop);
	loop_close(loop);
	return code;
}

static int clear(void **state)
{
	static const char *const files[] = { "ours.key", "ours.crt", "theirs.key", "theirs.crt",
					     "pod.key",	 "pod.crt",  "ours.srl",   "token" };

	(void)state;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		unlink(path_of(files[i]));
	return rmdir(place);
}

static void answer(const struct server_request *q, struct server_answer *a)
{
	const struct secret_pool *p = q->user;
	const char *shown = server_header(q, "Authorization");
	char wanted[100];

	snprintf(wanted, sizeof wanted, "Bearer %s", p->token);
	if (shown && !strcmp(shown, wanted))
		buf_text(&a->body, "vllm:num_requests_running 2\nvllm:num_requests_waiting 1\n");
	else
		a->status = 401;
}

static void on_reading(void *user, const struct pool_reading *r)
{
	struct secret_pool *p = user;

	p->last = *r;
	p->rounds++;
}

static void open_pool(struct secret_pool *p)
{
	static struct server_route route = { "GET", "/metrics", answer, NULL };
	char *cert = read_all("pod.crt"), *key = read_all("pod.key");
	struct error e = { 0 };

	route.user = p;
	p->loop = loop_open();
	p->http = http_open(p->loop, "test", &e);
	p->server = server_open(
		p->loop,
		&(struct server_settings){
			.listen = "127.0.0.1:0", .routes = &route, .route_count = 1, .tls_cert = cert, .tls_key = key },
		&e);
	assert_non_null(p->server);
	free(cert);
	free(key);
}

/* The first round of a source: its interval is so long that its deadline never passes. */
static const struct error *read_once(struct secret_pool *p, const struct http_auth_settings *auth)
{
	struct clock clock = clock_open();
	char url[64];
	int before = p->rounds;
	struct source *s = scrape_source_open(p->loop, p->http, &clock,
					      &(struct scrape_source_settings){
						      .source = { .pool = "chat",
								  .engine = ENGINE_VLLM,
								  .interval = HOUR,
								  .objective_us = 2000000,
								  .on_reading = on_reading,
								  .user = p },
						      .reach = *auth,
					      });

	snprintf(url, sizeof url, "https://127.0.0.1:%d/metrics", server_port(p->server));
	source_set_targets(s, &(struct source_target){ .key = "pod", .url = url, .is_ready = true }, 1);
	while (p->rounds == before)
		loop_once(p->loop);
	p->trouble = source_report(s).trouble;
	source_close(s);
	return &p->trouble;
}

static void close_pool(struct secret_pool *p)
{
	while (http_active(p->http))
		loop_once(p->loop);
	server_close(p->server);
	http_close(p->http);
	loop_close(p->loop);
}

static void a_token_is_shown_and_may_be_rotated(void **state)
{
	struct secret_pool p = { .token = "first-word" };
	struct http_auth_settings reach = { .bearer_token_file = path_of("token"),
					    .ca_file = path_of("ours.crt"),
					    .server_name = "chat.llm.svc" };
	const struct error *e;

	(void)state;
	write_file("token", "first-word\n");
	open_pool(&p);
	e = read_once(&p, &reach);
	assert_string_equal(e->message, "");
	assert_int_equal(p.last.fresh, 1);
	assert_int_equal(p.last.running, 2);

	p.token = "second-word";
	e = read_once(&p, &reach);
	assert_int_equal(e->kind, ERROR_AUTH);
	assert_non_null(strstr(e->message, "HTTP status 401"));
	assert_int_equal(p.last.fresh, 0);
	write_file("token", "second-word");
	e = read_once(&p, &reach);
	assert_int_equal(e->kind, ERROR_NONE);
	assert_int_equal(p.last.fresh, 1);

	/* Without the file nothing is asked, and the message tells the path, never what stood there. */
	unlink(path_of("token"));
	e = read_once(&p, &reach);
	assert_int_equal(e->kind, ERROR_AUTH);
	assert_non_null(strstr(e->message, "/token"));
	assert_null(strstr(e->message, "word"));
	assert_int_equal(p.last.expected, 1);
	assert_int_equal(p.last.fresh, 0);
	close_pool(&p);
}

static void certificates_are_checked(void **state)
{
	const struct {
		struct http_auth_settings reach;
		const char *says;
	} cases[] = {
		{ { .ca_file = path_of("ours.crt"), .server_name = "chat.llm.svc" }, "" },
		{ { .is_insecure = true }, "" },
		{ { .ca_file = path_of("theirs.crt"), .server_name = "chat.llm.svc" }, "not trusted" },
		{ { .ca_file = path_of("ours.crt"), .server_name = "other.llm.svc" }, "certificate" },
		{ { .ca_file = path_of("ours.crt") }, "certificate" },
		{ { .server_name = "chat.llm.svc" }, "not trusted" },
	};

	(void)state;
	write_file("token", "word");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct secret_pool p = { .token = "word" };
		struct http_auth_settings reach = cases[i].reach;
		reach.bearer_token_file = path_of("token");
		open_pool(&p);
		const struct error *e = read_once(&p, &reach);
		if (!strstr(e->message, cases[i].says) || (e->kind == ERROR_NONE) != !cases[i].says[0])
			fail_msg("%zu: %s", i, e->message);
		assert_int_equal(p.last.fresh, !cases[i].says[0]);
		close_pool(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_token_is_shown_and_may_be_rotated),
		cmocka_unit_test(certificates_are_checked),
	};

	return cmocka_run_group_tests(tests, make_certificates, clear);
}
