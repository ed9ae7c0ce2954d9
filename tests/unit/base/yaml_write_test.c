#include "base/arena.h"
#include "base/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static const struct yaml_case {
	const char *json, *yaml;
} cases[] = {
	{ "{}", "{}\n" },
	{ "[]", "[]\n" },
	{ "12.50", "12.50\n" },
	{ "{\"a\":1,\"b\":null,\"c\":true}", "a: 1\nb: null\nc: true\n" },
	{ "{\"a\":{\"b\":[1,2]},\"c\":[]}", "a:\n  b:\n  - 1\n  - 2\nc: []\n" },
	{ "[{\"a\":1,\"b\":{}},{\"a\":2}]", "- a: 1\n  b: {}\n- a: 2\n" },
	{ "[[1,2],[],[[3]]]", "- - 1\n  - 2\n- []\n- - - 3\n" },
	{ "{\"l\":[{\"m\":{\"w\":\"x\",\"n\":1},\"k\":[{\"z\":1}]}]}",
	  "l:\n- m:\n    w: x\n    \"n\": 1\n  k:\n  - z: 1\n" },
	{ "[\"plain text, it's so\",\"a: b\",\"a:b\",\"end:\",\"#x\",\"yes\",\"No\",\"12\",\"-\",\"\"]",
	  "- plain text, it's so\n- \"a: b\"\n- a:b\n- \"end:\"\n- \"#x\"\n- \"yes\"\n- \"No\"\n- \"12\"\n- \"-\"\n- "
	  "\"\"\n" },
	{ "[\"2024-05-10T14:32:00Z\",\"caf\303\251\",\"two\\nlines\",\" lead\",\"trail \"]",
	  "- \"2024-05-10T14:32:00Z\"\n- \"caf\303\251\"\n- \"two\\nlines\"\n- \" lead\"\n- \"trail \"\n" },
	{ "{\"preheat.dev/a>b\":{\"x>y\":1},\"1\":2}", "\"preheat.dev/a>b\":\n  \"x>y\": 1\n\"1\": 2\n" },
};

static void writes_what_kubectl_would(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(buf_release) struct buf out = { 0 };
		struct error e = { 0 };

		assert_true(yaml_write_json(cases[i].json, strlen(cases[i].json), &out, &e));
		assert_string_equal(out.text, cases[i].yaml);
	}
}

/* Read back, a text that was written plain is not taken for something else. */
static void our_own_reader_agrees(void **state)
{
	(void)state;
	for (size_t i = 3; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(buf_release) struct buf out = { 0 };
		CLEANUP(arena_release) struct arena a = { 0 };
		CLEANUP(findings_release) struct findings f = { 0 };
		struct yaml_documents docs;
		struct error e = { 0 };

		assert_true(yaml_write_json(cases[i].json, strlen(cases[i].json), &out, &e));
		assert_true(yaml_parse("out", out.text, out.len, &a, &docs, &f));
		assert_int_equal(f.count, 0);
		assert_int_equal(docs.count, 1);
	}
}

static void what_is_no_json_is_refused(void **state)
{
	static const char *const bad[] = { "{\"a\":", "[1,]", "nul" };

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		CLEANUP(buf_release) struct buf out = { 0 };
		struct error e = { 0 };

		assert_false(yaml_write_json(bad[i], strlen(bad[i]), &out, &e));
		assert_int_equal(e.kind, ERROR_INVALID);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_what_kubectl_would),
		cmocka_unit_test(our_own_reader_agrees),
		cmocka_unit_test(what_is_no_json_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
