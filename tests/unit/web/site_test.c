/* Page and API as they are served on this machine, and where they are not served. */
#include "controller/web/api.h"
#include "controller/web/site.h"
#include "tests/unit/net/http_calls.h"

#include <stdlib.h>

static struct loop *loop;
static struct http *http;
static struct web_api *api;
static struct site *site;
static struct server_route routes[WEB_API_ROUTES];

static const char *no_verb(int64_t verb)
{
	(void)verb;
	return "none";
}

static int open_all(void **state)
{
	struct error e = { 0 };

	(void)state;
	loop = loop_open();
	http = http_open(loop, "preheat/test", &e);
	api = web_api_open(&(struct web_api_setup){
		.loop = loop, .history = "/nowhere/history.db", .version = "0", .verb_name = no_verb });
	web_api_routes(api, routes);
	site = site_open(
		loop,
		&(struct site_settings){ .listen = "127.0.0.1:0", .routes = routes, .route_count = WEB_API_ROUTES },
		&e);
	assert_string_equal(e.message, "");
	return 0;
}

static int close_all(void **state)
{
	(void)state;
	site_close(site);
	web_api_close(api);
	http_close(http);
	loop_close(loop);
	return 0;
}

static char found[2000];
static const char *wanted;

static void note_header(struct call *c)
{
	const char *value = http_header(&c->r, wanted);

	snprintf(found, sizeof found, "%s", value ? value : "(none)");
}

static struct call get(const char *path, const char *const *headers, const char *header)
{
	char url[100];
	struct call c;

	snprintf(url, sizeof url, "http://127.0.0.1:%u%s", site_port(site), path);
	c = call_to(url);
	c.r.headers = headers;
	c.r.max_response = 1 << 20;
	c.r.user = &c;
	c.then = note_header;
	wanted = header ? header : "Content-Type";
	http_start(http, &c.r);
	while (!c.done)
		loop_once(loop);
	return c;
}

static void a_browser_is_told_what_it_may(void **state)
{
	static const char *const paths[] = { "/", "/api/v1", "/nothing", "/api/v1/nothing", "/assets/nothing" };
	static const struct {
		const char *name, *value;
	} cases[] = {
		{ "Content-Security-Policy",
		  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
		  "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'" },
		{ "X-Content-Type-Options", "nosniff" },
		{ "X-Frame-Options", "DENY" },
		{ "Referrer-Policy", "no-referrer" },
		{ "Cross-Origin-Opener-Policy", "same-origin" },
		{ "Cross-Origin-Resource-Policy", "same-origin" },
		{ "Strict-Transport-Security", "(none)" },
		{ "Access-Control-Allow-Origin", "(none)" },
	};

	(void)state;
	for (size_t p = 0; p < sizeof paths / sizeof *paths; p++)
		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
			get(paths[p], NULL, cases[i].name);
			if (strcmp(found, cases[i].value) != 0)
				print_error("%s: %s\n", paths[p], cases[i].name);
			assert_string_equal(found, cases[i].value);
		}
	get("/api/v1", NULL, "Cache-Control");
	assert_string_equal(found, "no-store");
}

static void what_is_not_there_is_told_in_one_form(void **state)
{
	static const char *const other[] = { "Host: evil.example", NULL };

	(void)state;
	assert_int_equal(get("/", NULL, NULL).status, 200);
	struct call c = get("/nothing", NULL, NULL);
	assert_int_equal(c.status, 404);
	assert_string_equal(found, "application/json");
	assert_non_null(strstr(c.response, "{\"error\":{\"code\":404,\"reason\":\"NotFound\",\"message\":\""));
	c = get("/", other, NULL);
	assert_int_equal(c.status, 403);
	assert_string_equal(found, "application/json");
	assert_non_null(strstr(c.response, "\"reason\":\"Forbidden\""));
}

static void ask_nobody(void *user, struct authz_review *r)
{
	(void)user;
	(void)r;
}

static void where_it_may_be_served(void **state)
{
	static const struct {
		struct site_settings of;
		const char *part; /* NULL: there */
	} cases[] = {
		{ { .listen = "127.0.0.1:1" }, NULL },
		{ { .listen = "[::1]:1" }, NULL },
		{ { .listen = "localhost:1", .cert_file = "c", .key_file = "k" }, NULL },
		{ { .listen = ":1", .ask = ask_nobody, .cert_file = "c", .key_file = "k" }, NULL },
		{ { .listen = ":1", .ask = ask_nobody }, "needs TLS; do: give --tls-cert-file" },
		{ { .listen = "10.0.0.1:1", .ask = ask_nobody }, "needs TLS" },
		{ { .listen = ":1", .cert_file = "c", .key_file = "k" }, "no API server to ask who may look" },
		{ { .listen = "127.0.0.1:1", .cert_file = "c" }, "belong together" },
		{ { .listen = "127.0.0.1:1", .key_file = "k" }, "belong together" },
		{ { .listen = "1" }, "is not a valid listen address" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct error e = { 0 };
		bool ok = site_check(&cases[i].of, &e);
		if (ok != !cases[i].part || (!ok && !strstr(e.message, cases[i].part)))
			print_error("case %zu: %s\n", i, e.message);
		assert_int_equal(ok, !cases[i].part);
		assert_true(ok || strstr(e.message, cases[i].part));
		assert_int_equal(e.kind, ok ? ERROR_NONE : ERROR_INVALID);
	}
}

static void files_that_are_no_pair_are_refused_at_the_start(void **state)
{
	static const struct {
		const char *cert, *key, *part;
	} cases[] = {
		{ "/nowhere/tls.crt", "/nowhere/tls.key", "/nowhere/tls.crt: " },
		{ "/dev/null", "/nowhere/tls.key", "/nowhere/tls.key: " },
		{ "/dev/null", "/dev/null", "the TLS certificate and its key: " },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct error e = { 0 };
		assert_null(site_open(loop,
				      &(struct site_settings){ .listen = "127.0.0.1:0",
							       .routes = routes,
							       .route_count = WEB_API_ROUTES,
							       .cert_file = cases[i].cert,
							       .key_file = cases[i].key },
				      &e));
		assert_non_null(strstr(e.message, cases[i].part));
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_all, close_all)
	const struct CMUnitTest tests[] = {
		TEST(a_browser_is_told_what_it_may),
		TEST(what_is_not_there_is_told_in_one_form),
		TEST(where_it_may_be_served),
		TEST(files_that_are_no_pair_are_refused_at_the_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
