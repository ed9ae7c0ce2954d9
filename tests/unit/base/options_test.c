#include "base/millis.h"
#include "base/text.h"
#include "base/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static struct {
	bool is_forced;
	const char *out, *output;
	struct option_list pools;
	int64_t seed;
	double scale;
	int64_t tick, from;
} given;

static const struct option_row rows[] = {
	{ "force", 'f', OPTION_FLAG, NULL, "overwrite", &given.is_forced, NULL },
	{ "out", 0, OPTION_TEXT, "DIR", "folder", &given.out, NULL },
	{ "pool", 'p', OPTION_LIST, "FILE", "manifest", &given.pools, NULL },
	{ "seed", 0, OPTION_COUNT, "N", "seed", &given.seed, NULL },
	{ "scale", 0, OPTION_NUMBER, "K", "factor", &given.scale, NULL },
	{ "tick", 0, OPTION_DURATION, "D", "tick", &given.tick, NULL },
	{ "from", 0, OPTION_TIME, "TIME", "from", &given.from, NULL },
	{ "output", 'o', OPTION_CHOICE, "FORM", "form", &given.output, "table|json|csv" },
};

static const struct option_rule rules[] = {
	{ "scale", OPTION_NEEDS, "seed" },
	{ "tick", OPTION_EXCLUDES, "from" },
	{ 0 },
};
static const struct option_table table = { rows, sizeof rows / sizeof *rows, rules };

static bool parse(const char *one, const char *two, int *rest, struct error *e)
{
	static char verb[] = "verb", last[] = "last";
	char *argv[] = { verb, (char *)one, last, (char *)two, NULL };

	return options_parse(two ? 4 : 3, argv, &table, rest, e);
}

static void values_are_understood(void **state)
{
	struct error e = { 0 };
	int rest;

	(void)state;
	assert_true(parse("--force", "--out=here", &rest, &e));
	assert_true(given.is_forced);
	assert_string_equal(given.out, "here");
	assert_int_equal(rest, 3);
	assert_true(parse("--pool=a", "-pb", &rest, &e));
	assert_true(parse("-p-", NULL, &rest, &e));
	assert_int_equal(given.pools.count, 3);
	assert_string_equal(given.pools.items[1], "b");
	assert_string_equal(given.pools.items[2], "-");
	assert_true(parse("--seed=9223372036854775807", "--scale=2.5", &rest, &e));
	assert_int_equal(given.seed, INT64_MAX);
	assert_true(given.scale > 2.4 && given.scale < 2.6);
	assert_true(parse("-ojson", NULL, &rest, &e));
	assert_string_equal(given.output, "json");
	assert_true(parse("--", NULL, &rest, &e));
	assert_int_equal(rest, 2);
}

static void times_are_understood(void **state)
{
	static const struct {
		const char *text;
		int64_t expected;
	} cases[] = {
		{ "--tick=15s", 15 * SECOND },
		{ "--tick=1h30m", 90 * MINUTE },
		{ "--tick=250ms", 250 },
		{ "--tick=0", 0 },
		{ "--tick=2d", 2 * DAY },
		{ "--from=1970-01-01T00:00:00Z", 0 },
		{ "--from=2024-02-29T12:30:01.5+01:00", INT64_C(1709206201500) },
		{ "--from=2024-05-10 08:00:00-05:30", INT64_C(1715347800000) },
	};
	struct error e = { 0 };
	int rest;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_true(parse(cases[i].text, NULL, &rest, &e));
		assert_int_equal(cases[i].text[2] == 't' ? given.tick : given.from, cases[i].expected);
	}
}

static void mistakes_are_named(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "--bogus", "unknown option '--bogus'" },
		{ "-x", "unknown option '-x'" },
		{ "--force=1", "--force takes no value" },
		{ "--out=", "--out: found ''; allowed: a text that is not empty" },
		{ "--seed=-1", "--seed: found '-1'; allowed: a whole number from 0 to 9223372036854775807" },
		{ "--seed=9223372036854775808",
		  "--seed: found '9223372036854775808'; allowed: a whole number from 0 to 9223372036854775807" },
		{ "--scale=nan", "--scale: found 'nan'; allowed: a decimal number above 0, such as 1.5" },
		{ "--scale=0", "--scale: found '0'; allowed: a decimal number above 0, such as 1.5" },
		{ "--scale=0x10", "--scale: found '0x10'; allowed: a decimal number above 0, such as 1.5" },
		{ "--scale=.", "--scale: found '.'; allowed: a decimal number above 0, such as 1.5" },
		{ "--tick=15", "--tick: found '15'; allowed: a duration such as 250ms, 15s, 1h30m or 7d, at most "
			       "36500d; do: add the "
			       "unit, as in 15s or 15h" },
		{ "--tick=5m1h",
		  "--tick: found '5m1h'; allowed: a duration such as 250ms, 15s, 1h30m or 7d, at most 36500d" },
		{ "--tick=99999999999d",
		  "--tick: found '99999999999d'; allowed: a duration such as 250ms, 15s, 1h30m or 7d, at most 36500d" },
		{ "--output=xml", "--output: found 'xml'; allowed: table|json|csv" },
		{ "--output=table|json", "--output: found 'table|json'; allowed: table|json|csv" },
		{ "--from=2023-02-29T00:00:00Z",
		  "--from: found '2023-02-29T00:00:00Z'; allowed: an absolute time such as "
		  "2024-05-10T08:00:00Z" },
		{ "--from=-2h", "--from: found '-2h'; allowed: an absolute time such as 2024-05-10T08:00:00Z" },
		{ "--from=now", "--from: found 'now'; allowed: an absolute time such as 2024-05-10T08:00:00Z" },
		{ "--from=yesterday", "--from: found 'yesterday'; allowed: an absolute time such as "
				      "2024-05-10T08:00:00Z" },
	};
	int rest;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct error e = { 0 };

		assert_false(parse(cases[i].text, NULL, &rest, &e));
		assert_int_equal(e.kind, ERROR_INVALID);
		assert_string_equal(e.message, cases[i].message);
	}
	struct error e = { 0 };
	assert_false(parse("--force", "--seed", &rest, &e));
	assert_string_equal(e.message, "--seed: N is missing; allowed: a whole number from 0 to 9223372036854775807");
	assert_false(parse("--force", "-p", &rest, &e));
	assert_string_equal(e.message, "--pool: FILE is missing; allowed: a text that is not empty");
}

/* The value was forgotten. */
static void an_option_is_no_value(void **state)
{
	static char verb[] = "verb", pool[] = "--pool", force[] = "--force", other[] = "--other";
	struct error e = { 0 };
	int rest;

	(void)state;
	assert_false(options_parse(3, (char *[]){ verb, pool, force, NULL }, &table, &rest, &e));
	assert_string_equal(e.message,
			    "--pool: FILE is missing in front of --force; allowed: a text that is not empty");
	assert_true(options_parse(3, (char *[]){ verb, pool, other, NULL }, &table, &rest, &e));
}

static void what_would_be_ignored_is_refused(void **state)
{
	struct error e = { 0 };
	int rest;

	(void)state;
	assert_false(parse("--scale=2", NULL, &rest, &e));
	assert_string_equal(
		e.message,
		"--scale: found without --seed, where it has no effect; do: add --seed N, or leave --scale out");
	assert_true(parse("--scale=2", "--seed=1", &rest, &e));
	assert_true(parse("--seed=1", NULL, &rest, &e));
	assert_false(parse("--from=1970-01-01T00:00:00Z", "--tick=15s", &rest, &e));
	assert_string_equal(e.message,
			    "--tick: found beside --from, where it has no effect; do: leave one of them out");
	assert_true(parse("--tick=15s", NULL, &rest, &e));
}

static void near_words_are_found(void **state)
{
	static const char *const names[] = { "version", "simulate", "explain", "replay", "check" };

	(void)state;
	assert_string_equal(nearest_name("verison", names, 5), "version");
	assert_string_equal(nearest_name("simluate", names, 5), "simulate");
	assert_string_equal(nearest_name("chekc", names, 5), "check");
	assert_string_equal(nearest_name("sim", names, 5), "simulate");
	assert_string_equal(nearest_name("Replay", names, 5), "replay");
	assert_null(nearest_name("nothing", names, 5));
	assert_null(nearest_name("", names, 5));
	assert_null(nearest_name("x", names, 5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_understood),
		cmocka_unit_test(times_are_understood),
		cmocka_unit_test(mistakes_are_named),
		cmocka_unit_test(an_option_is_no_value),
		cmocka_unit_test(what_would_be_ignored_is_refused),
		cmocka_unit_test(near_words_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
