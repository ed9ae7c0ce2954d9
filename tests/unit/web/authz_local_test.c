#include "controller/web/authz.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void hosts(void **state)
{
	static const struct {
		const char *host;
		bool is_local;
	} cases[] = {
		{ "localhost", true },
		{ "localhost:8081", true },
		{ "LOCALHOST:1", true },
		{ "127.0.0.1", true },
		{ "127.0.0.1:8081", true },
		{ "127.3.2.1:9", true },
		{ "[::1]", true },
		{ "[::1]:8081", true },
		{ NULL, false },
		{ "", false },
		{ ":8081", false },
		{ "localhost.evil.example", false },
		{ "evil.example:8081", false },
		{ "127.0.0.1.evil.example", false },
		{ "128.0.0.1", false },
		{ "127.1", false },
		{ "2130706433", false },
		{ "0x7f.0.0.1", false },
		{ "localhost:8081@evil.example", false },
		{ "localhost:", true },
		{ "localhost:80x", false },
		{ "[::1", false },
		{ "[::1]x", false },
		{ "[::2]:80", false },
		{ "::1", false },
		{ "localhost localhost", false },
		{ "localhost.", false },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1",
		  false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (authz_is_local_host(cases[i].host) != cases[i].is_local)
			print_error("case %zu: %s\n", i, cases[i].host);
		assert_int_equal(authz_is_local_host(cases[i].host), cases[i].is_local);
	}
}

static void origins(void **state)
{
	static const struct {
		struct authz_origin of;
		bool is_same;
	} cases[] = {
		{ { .host = "localhost:8081" }, true },
		{ { .host = "localhost:8081", .origin = "http://localhost:8081" }, true },
		{ { .host = "localhost:8081", .origin = "https://localhost:8081" }, true },
		{ { .host = "localhost:8081", .origin = "HTTP://LOCALHOST:8081" }, true },
		{ { .host = "localhost:8081", .origin = "http://localhost:8082" }, false },
		{ { .host = "localhost:8081", .origin = "http://localhost" }, false },
		{ { .host = "localhost:8081", .origin = "http://evil.example" }, false },
		{ { .host = "localhost:8081", .origin = "http://localhost:8081.evil.example" }, false },
		{ { .host = "localhost:8081", .origin = "null" }, false },
		{ { .host = "localhost:8081", .origin = "" }, false },
		{ { .host = "localhost:8081", .origin = "file://localhost:8081" }, false },
		{ { .origin = "http://localhost" }, false },
		{ { .host = "h", .fetch_site = "same-origin" }, true },
		{ { .host = "h", .fetch_site = "none" }, true },
		{ { .host = "h", .fetch_site = "same-site" }, false },
		{ { .host = "h", .fetch_site = "cross-site" }, false },
		{ { .host = "h", .fetch_site = "cross-site", .fetch_mode = "no-cors" }, false },
		{ { .host = "h", .fetch_site = "cross-site", .fetch_mode = "navigate" }, true }, /* a link */
		{ { .host = "h", .origin = "http://x", .fetch_site = "cross-site", .fetch_mode = "navigate" },
		  false }, /* a form */
		{ { .host = "h", .fetch_site = "anything" }, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (authz_is_same_site(&cases[i].of) != cases[i].is_same)
			print_error("case %zu\n", i);
		assert_int_equal(authz_is_same_site(&cases[i].of), cases[i].is_same);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(hosts), cmocka_unit_test(origins) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
