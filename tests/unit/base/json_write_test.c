#include "base/json.h"

#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static void texts_are_escaped_and_made_utf8(void **state)
{
	static const struct {
		const char *text, *json;
	} cases[] = {
		{ "", "\"\"" },
		{ "plain", "\"plain\"" },
		{ "a \"b\" \\c\n\td\x7f", "\"a \\\"b\\\" \\\\c\\n\\u0009d\\u007f\"" },
		{ "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80", "\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80\"" },
		{ "cut \xe2\x82", "\"cut \\ufffd\\ufffd\"" },
		{ "\xff\xc0\xaf", "\"\\ufffd\\ufffd\\ufffd\"" },	    /* never, overlong */
		{ "\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"" },	    /* half of a pair */
		{ "\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"" }, /* beyond */
		{ "\xe0\x80\x80\xf0\x80\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\"" },
		{ "\xf0\x9f\x98", "\"\\ufffd\\ufffd\\ufffd\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(buf_release) struct buf out = { 0 };

		json_write_text(cases[i].text, &out);
		assert_string_equal(out.text, cases[i].json);
	}
}

static void commas_stand_between_values(void **state)
{
	static const char *const without[] = { "", "{", "[\n ", "{\"a\":", "[1,", NULL };
	static const char *const with[] = { "{\"a\":1", "[1", "[\"x\"\n", "[[]", NULL };

	(void)state;
	for (size_t i = 0; without[i]; i++) {
		CLEANUP(buf_release) struct buf out = { 0 };
		buf_text(&out, without[i]);
		json_write_comma(&out);
		assert_string_equal(out.text, without[i]);
	}
	for (size_t i = 0; with[i]; i++) {
		CLEANUP(buf_release) struct buf out = { 0 };
		buf_text(&out, with[i]);
		json_write_comma(&out);
		assert_int_equal(out.text[out.len - 1], ',');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_escaped_and_made_utf8),
		cmocka_unit_test(commas_stand_between_values),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
