#include "base/arena.h"
#include "base/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static const struct csv_case {
	const char *json, *rows, *key, *csv;
} cases[] = {
	{ "[{\"a\":1,\"b\":\"x\"},{\"b\":null,\"a\":2}]", "", NULL, "a,b\n1,x\n2,\n" },
	{ "{\"rows\":[{\"a\":{\"b\":1,\"c\":true}}],\"z\":[{\"q\":1}]}", "rows", NULL, "a.b,a.c\n1,true\n" },
	{ "{\"z\":[{\"q\":1}],\"pools\":{\"chat\":{\"n\":1},\"batch\":{\"m\":2}}}", "pools", "pool",
	  "pool,n,m\nchat,1,\nbatch,,2\n" },
	{ "[{\"l\":[\"a\",\"b\"],\"o\":[{\"s\":1},{\"s\":2}],\"e\":[]}]", "", NULL, "l,o.s\na; b,1; 2\n" },
	{ "[{\"t\":\"a,b\"},{\"t\":\"say \\\"x\\\"\"},{\"t\":\"two\\nlines\"}]", "", NULL,
	  "t\n\"a,b\"\n\"say \"\"x\"\"\"\n\"two\nlines\"\n" },
	{ "{\"a\":1,\"b\":{\"c\":2}}", NULL, NULL, "a,b.c\n1,2\n" },
	{ "{\"rows\":[]}", "rows", NULL, "" },
	{ "{\"a\":{\"rows\":[{\"x\":1}]}}", "a>rows", NULL, "x\n1\n" },
	{ "[[1,2],{\"a\":1}]", "", NULL, "a\n1\n" },
};

static void writes_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(buf_release) struct buf json = { 0 }, out = { 0 };
		struct error e = { 0 };

		buf_text(&json, cases[i].json);
		assert_true(csv_write_json(&json, cases[i].rows, cases[i].key, &out, &e));
		assert_string_equal(out.text ? out.text : "", cases[i].csv);
	}
}

static void what_is_no_json_is_refused(void **state)
{
	CLEANUP(buf_release) struct buf json = { 0 }, out = { 0 };
	struct error e = { 0 };

	(void)state;
	buf_text(&json, "[{\"a\":1},{\"b\"");
	assert_false(csv_write_json(&json, "", NULL, &out, &e));
	assert_int_equal(e.kind, ERROR_INVALID);
	assert_int_equal(out.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_rows),
		cmocka_unit_test(what_is_no_json_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
