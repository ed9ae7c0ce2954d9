/* The words of a verdict. */
#include "controller/report/verdict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static const struct table_column columns[] = { { .name = "draws" }, { .name = "met" } };

static void words_are_of_the_mean_and_say_where_draws_differ(void **state)
{
	/* 1 % of 1000 may be late. */
	static const struct verdict_case {
		int64_t late, draws, met;
		double least, most;
		const char *cells, *sentence;
	} cases[] = {
		{ 11, 1, 0, .011, .011, "-       NO", "" },
		{ 9, 1, 1, .009, .009, "-       yes", "" },
		{ 6, 8, 7, .0039, .0114, "0.39-1.14 %   yes, 7/8",
		  "met its objective in 7 of 8 draws, and on their mean" },
		{ 15, 8, 3, .005, .03, "0.50-3.00 %   NO, 3/8",
		  "met its objective in 3 of 8 draws, but missed it on their mean" },
		{ 15, 8, 0, .011, .03, "1.10-3.00 %   NO", "" },
		{ 5, 8, 8, .0001, .009, "0.010-0.90 %   yes", "" },
		{ 0, 8, 8, 0, 0, "0.00 %   yes", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct verdict_case *c = &cases[i];
		const struct score s = { .requests = 1000,
					 .late = c->late,
					 .draws = c->draws,
					 .draws_met = c->met,
					 .late_least = c->least,
					 .late_most = c->most };
		CLEANUP(buf_release) struct buf sentence = { 0 };
		char text[200] = "";
		FILE *out = fmemopen(text, sizeof text, "w");
		struct table *t = table_new(columns, 2);

		verdict_put_range(t, &s);
		verdict_put_met(t, &s, 10000);
		table_print(t, TABLE_PLAIN, out);
		table_free(t);
		fclose(out);
		verdict_write_split(&s, 10000, &sentence);
		if (!strstr(text, c->cells))
			fail_msg("case %zu: %s", i, text);
		assert_string_equal(sentence.text ? sentence.text : "", c->sentence);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(words_are_of_the_mean_and_say_where_draws_differ) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
