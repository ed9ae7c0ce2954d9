#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static char log_text[4096];
static size_t log_len;

static bool note(void *user, const struct json_event *ev, struct error *e)
{
	static const char *const open[] = { "{", "[" }, *const close[] = { "}", "]" };

	(void)user;
	if (ev->text && ev->len == 4 && !memcmp(ev->text, "stop", 4))
		return error_set(e, ERROR_INVALID, "stopped");
	log_len += (size_t)snprintf(log_text + log_len, sizeof log_text - log_len, "%s%s%.*s ", ev->path,
				    ev->type == JSON_OPEN    ? open[ev->is_array]
				    : ev->type == JSON_CLOSE ? close[ev->is_array]
							     : "=",
				    (int)ev->len, ev->text ? ev->text : "");
	return true;
}

/* Fed in pieces of `piece` bytes. */
static bool walk(const char *text, size_t len, size_t piece, struct error *e)
{
	struct json *j = json_open("x.json", note, NULL);
	bool ok = true;

	log_len = 0;
	log_text[0] = '\0';
	for (size_t i = 0; i < len && ok; i += piece)
		ok = json_feed(j, text + i, len - i < piece ? len - i : piece, e);
	ok = ok && json_finish(j, e);
	json_close(j);
	return ok;
}

static void paths_and_values(void **state)
{
	const char *text = "{\"a\":[{\"b.c/d\":1.5},{\"b\":\"x\\ny\"}],\"n\":null,\"t\":[[true,-2e3],[]]}\n{\"a\":2}";
	struct error e;

	(void)state;
	for (size_t piece = 1; piece < 80; piece++) {
		assert_true(walk(text, strlen(text), piece, &e));
		assert_string_equal(log_text, "{ a[ a[]{ a[]>b.c/d=1.5 a[]} a[]{ a[]>b=x\ny a[]} a] n=null t[ t[][ "
					      "t[][]=true t[][]=-2e3 t[]] t[][ t[]] t] } { a=2 } ");
	}
}

static void errors_say_where(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "{\"a\":1,\n\"b\":nope}", "x.json:2:" },
		{ "{\"a\":1,\n\"b\":\"stop\"}", "x.json:2:" },
		{ "{\"a\":[1,2", "truncated" },
		{ "{\"a\":\"text", "truncated" },
		{ "{\"a\":NaN}", "not JSON" },
		{ "{\"a\":\"\xff\"}", "not JSON" },
	};
	struct error e;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_false(walk(cases[i].text, strlen(cases[i].text), 1000, &e));
		if (!strstr(e.message, cases[i].message))
			fail_msg("'%s' gave '%s'", cases[i].text, e.message);
	}
}

static void caps(void **state)
{
	size_t size = JSON_MAX_VALUE + 100000;
	char deep[200], *large = malloc(size);
	struct error e;

	(void)state;
	memset(deep, '[', sizeof deep);
	assert_false(walk(deep, sizeof deep, 1000, &e));
	assert_non_null(strstr(e.message, "nested deeper than 32"));
	memset(large, 'x', size);
	memcpy(large, "{\"", 2);
	assert_false(walk(large, size, 16384, &e));
	assert_non_null(strstr(e.message, "a value is longer than"));
	memcpy(large + 600, "\":1}", 4);
	assert_false(walk(large, 604, 16384, &e));
	assert_non_null(strstr(e.message, "the keys on the way here are longer"));
	free(large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_and_values),
		cmocka_unit_test(errors_say_where),
		cmocka_unit_test(caps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
