#include "base/json.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static bool read(const char *path, const char *text, size_t cut, int64_t *out, struct error *e)
{
	struct json_number *n = json_number_open(path);
	size_t len = strlen(text);

	cut = cut < len ? cut : len;
	bool ok = json_number_feed(n, text, cut, e) && json_number_feed(n, text + cut, len - cut, e) &&
		  json_number_finish(n, out, e);
	json_number_close(n);
	return ok;
}

#define QUEUES                                                                                                       \
	"{\"queues\":[{\"name\":\"a\",\"n\":3},{\"name\":\"b\",\"n\":4.4},{\"name\":\"c\"}],\"n\":\"7\",\"0\":{\"x/" \
	"y\":2}}"

static void numbers_are_found_by_their_path(void **state)
{
	static const struct {
		const char *path, *text;
		int64_t number;
	} cases[] = {
		{ "n", QUEUES, 7 },
		{ "queues[0].n", QUEUES, 3 },
		{ "queues[1].n", QUEUES, 4 },
		{ "queues[].n", QUEUES, 7 }, /* 7.4 */
		{ "/queues/1/n", QUEUES, 4 },
		{ "/n", QUEUES, 7 },
		{ "/0/x~1y", QUEUES, 2 },
		{ "0.x/y", QUEUES, 2 },
		{ "[].n", "[{\"n\":1},{\"m\":[{\"n\":5}],\"n\":2},[{\"n\":9}]]", 3 },
		{ "[2]", "[1,2,3]", 3 },
		{ "[][1]", "[[1,2],[3,4]]", 6 },
		{ "a.b", "{\"x\":{\"b\":1},\"a\":{\"b\":0,\"c\":{\"b\":5}}}", 0 },
		{ "a", "{\"a\":1e3}", 1000 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (size_t cut = 0; cut <= strlen(cases[i].text); cut++) {
			int64_t number = -1;
			struct error e = { 0 };
			if (!read(cases[i].path, cases[i].text, cut, &number, &e) || number != cases[i].number)
				fail_msg("%s, cut at %zu: %" PRId64 " %s", cases[i].path, cut, number, e.message);
		}
}

static void what_is_no_number_is_named(void **state)
{
	static const struct {
		const char *path, *text, *says;
	} cases[] = {
		{ "a", "{\"b\":1}", "a is not in the answer" },
		{ "a", "{\"a\":null}", "a: found 'null'; allowed: a number" },
		{ "a", "{\"a\":-1}", "found '-1'" },
		{ "a", "{\"a\":\"NaN\"}", "found 'NaN'" },
		{ "a", "{\"a\":1e10}", "found '1e10'" },
		{ "a", "{\"a\":[1]}", "found a list" },
		{ "a", "{\"a\":{}}", "found an object" },
		{ "[]", "[99999999,99999999]", "the sum is more" },
		{ "a", "{\"a\":1", "answer:" },
		{ "a", "<html>", "not JSON" },
		{ "a.b", "[]", "a.b is not in the answer" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t number = -1;
		struct error e = { 0 };
		if (read(cases[i].path, cases[i].text, 0, &number, &e) || !strstr(e.message, cases[i].says))
			fail_msg("%s of %s: %" PRId64 " %s", cases[i].path, cases[i].text, number, e.message);
		assert_int_equal(number, -1);
	}
}

static void paths_are_checked(void **state)
{
	static const char *const wrong[] = { "",
					     ".a",
					     "a.",
					     "a..b",
					     "a[",
					     "a[x]",
					     "a[-1]",
					     "a[0]b",
					     "/a~2",
					     "/a~",
					     "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q" };
	static const char *const right[] = { "a", "/", "/a//b", "[]", "[0][1].a", "messages_ready" };
	struct error e;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		if (json_number_check(wrong[i], &e))
			fail_msg("'%s' is no path", wrong[i]);
	for (size_t i = 0; i < sizeof right / sizeof *right; i++)
		if (!json_number_check(right[i], &e))
			fail_msg("'%s': %s", right[i], e.message);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_found_by_their_path),
		cmocka_unit_test(what_is_no_number_is_named),
		cmocka_unit_test(paths_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
