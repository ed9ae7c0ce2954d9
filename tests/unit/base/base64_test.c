/* Base64 of RFC 4648: the vectors of its section 10, and what is none. */
#include "base/base64.h"
#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void base64_is_as_published(void **state)
{
	static const struct {
		const char *bytes, *text;
	} cases[] = {
		{ "", "" },
		{ "f", "Zg==" },
		{ "fo", "Zm8=" },
		{ "foo", "Zm9v" },
		{ "foob", "Zm9vYg==" },
		{ "fooba", "Zm9vYmE=" },
		{ "foobar", "Zm9vYmFy" },
		{ "\xfb\xff\xbf", "+/+/" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(buf_release) struct buf written = { 0 }, read = { 0 };
		base64_write(cases[i].bytes, strlen(cases[i].bytes), &written);
		buf_text(&written, "");
		assert_string_equal(written.text, cases[i].text);
		assert_true(base64_read(cases[i].text, strlen(cases[i].text), &read));
		assert_int_equal(read.len, strlen(cases[i].bytes));
		assert_int_equal(memcmp(read.len ? read.text : "", cases[i].bytes, read.len), 0);
	}
}

static void long_texts_in_lines_come_back(void **state)
{
	CLEANUP(buf_release) struct buf bytes = { 0 }, written = { 0 }, lines = { 0 }, read = { 0 };

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		unsigned char byte = (unsigned char)(i * 7 + i / 256);
		buf_append(&bytes, &byte, 1);
	}
	base64_write(bytes.text, bytes.len, &written);
	for (size_t i = 0; i < written.len; i += 76)
		buf_printf(&lines, "%.76s\r\n", written.text + i);
	assert_true(base64_read(lines.text, lines.len, &read));
	assert_int_equal(read.len, bytes.len);
	assert_memory_equal(read.text, bytes.text, bytes.len);
}

static void what_is_no_base64_is_refused(void **state)
{
	static const char *const cases[] = { "Z", "Zg",	      "Zg=",	"Zg===",       "Z===",
					     "=", "Zg==Zg==", "Zm9v-_", "#!/bin/bash", "Zm\xc3" };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(buf_release) struct buf read = { 0 };
		if (base64_read(cases[i], strlen(cases[i]), &read))
			fail_msg("%s was read", cases[i]);
	}
	CLEANUP(buf_release) struct buf read = { 0 };
	assert_false(base64_read("Zm\0v", 4, &read));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(base64_is_as_published),
		cmocka_unit_test(long_texts_in_lines_come_back),
		cmocka_unit_test(what_is_no_base64_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
