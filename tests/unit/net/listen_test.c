#include "base/net/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void who_reaches_it(void **state)
{
	static const struct {
		const char *where;
		bool is_address, is_loopback;
	} cases[] = {
		{ "127.0.0.1:8081", true, true },
		{ "127.9.9.9:0", true, true },
		{ "[::1]:80", true, true },
		{ "localhost:80", true, true },
		{ ":8081", true, false },
		{ "0.0.0.0:80", true, false },
		{ "[::]:80", true, false },
		{ "10.0.0.1:80", true, false },
		{ "128.0.0.1:80", true, false },
		{ "[2001:db8::1]:80", true, false },
		{ "[::ffff:127.0.0.1]:80", true, false }, /* rather too strict */
		{ "", false, false },
		{ "localhost", false, false },
		{ "here:80", false, false },
		{ "127.0.0.1.example:80", false, false },
		{ "127.1:80", false, false },
		{ "::1:80", false, false },
		{ "127.0.0.1:99999", false, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct error e = { 0 };
		bool is_loopback = false, is_address = listen_check(cases[i].where, &is_loopback, &e);
		if (is_address != cases[i].is_address || is_loopback != cases[i].is_loopback)
			print_error("%s\n", cases[i].where);
		assert_int_equal(is_address, cases[i].is_address);
		assert_int_equal(is_loopback, cases[i].is_loopback);
		assert_int_equal(e.kind, is_address ? ERROR_NONE : ERROR_INVALID);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(who_reaches_it) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
