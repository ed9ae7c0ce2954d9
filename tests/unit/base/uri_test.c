#include "base/arena.h"
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void what_is_not_plain_is_escaped(void **state)
{
	static const struct {
		const char *text, *kept, *escaped;
	} cases[] = {
		{ "", "", "" },
		{ "aZ09-._~", "", "aZ09-._~" },
		{ "a b/c", "", "a%20b%2Fc" },
		{ "a b/c", "/", "a%20b/c" },
		{ "\xc3\xa4%+", "", "%C3%A4%25%2B" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(buf_release) struct buf out = { 0 };
		uri_escape(cases[i].text, strlen(cases[i].text), cases[i].kept, &out);
		assert_string_equal(out.text ? out.text : "", cases[i].escaped);
	}
}

static void zeros_are_escaped(void **state)
{
	CLEANUP(buf_release) struct buf out = { 0 };

	(void)state;
	uri_escape("a\0b", 3, "/", &out);
	assert_string_equal(out.text, "a%00b");
}

static void a_segment_climbs_nowhere(void **state)
{
	static const char *const cases[][2] = {
		{ ".", "%2E" }, { "..", "%2E%2E" }, { "../x", "..%2Fx" }, { "a.b", "a.b" }, { ".a", ".a" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(buf_release) struct buf out = { 0 };
		uri_segment(cases[i][0], &out);
		assert_string_equal(out.text, cases[i][1]);
	}
}

static void no_secret_of_a_url_is_shown(void **state)
{
	static const char *const cases[][2] = {
		{ "https://h:1/p", "https://h:1/p" },	{ "https://user:secret@h/p?key=secret#secret", "https://h/p" },
		{ "http://a@secret@h", "http://h" },	{ "user:secret@h/x@y", "h/x@y" },
		{ "http://h?user@secret", "http://h" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(buf_release) struct buf out = { 0 };
		uri_show(cases[i][0], &out);
		assert_string_equal(out.text, cases[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_plain_is_escaped),
		cmocka_unit_test(zeros_are_escaped),
		cmocka_unit_test(a_segment_climbs_nowhere),
		cmocka_unit_test(no_secret_of_a_url_is_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
