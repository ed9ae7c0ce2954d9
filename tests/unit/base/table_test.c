#include "base/terminal.h"
#include "base/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const struct table_column columns[] = {
	{ .name = "pool" },
	{ .name = "requests", .is_right = true },
	{ .name = "wait_p50_s", .title = "WAIT", .is_right = true },
	{ .name = "note", .is_wide = true },
};

static void assert_prints(enum table_format format, const char *expected)
{
	struct table *t = table_new(columns, 4);
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	table_text(t, "chat");
	table_count(t, 1234567);
	table_decimal(t, 0.25, 2);
	table_text(t, "a \"b\", c");
	table_text(t, "caf\303\251\033[31m");
	table_absent(t);
	table_value(t, "2s", "2.0");
	table_text(t, "");
	table_print(t, format, out);
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
	table_free(t);
}

/* Names of pods and tags of machines are what others write. */
static void what_is_no_utf8_stays_json(void **state)
{
	static const struct table_column one[] = { { .name = "note" } };
	struct table *t = table_new(one, 1);
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	table_text(t, "a\377b");
	table_print(t, TABLE_JSON, out);
	fclose(out);
	assert_non_null(strstr(text, "\"a\\ufffdb\""));
	free(text);
	table_free(t);
}

static void prints_for_people(void **state)
{
	(void)state;
	assert_prints(TABLE_PLAIN, "POOL         REQUESTS   WAIT\n"
				   "chat        1,234,567   0.25\n"
				   "caf\303\251?[31m           -     2s\n");
	assert_prints(TABLE_WIDE, "POOL         REQUESTS   WAIT   NOTE\n"
				  "chat        1,234,567   0.25   a \"b\", c\n"
				  "caf\303\251?[31m           -     2s   \n");
}

static void prints_for_programs(void **state)
{
	(void)state;
	assert_prints(TABLE_CSV, "pool,requests,wait_p50_s,note\n"
				 "chat,1234567,0.25,\"a \"\"b\"\", c\"\n"
				 "caf\303\251\033[31m,,2.0,\n");
	assert_prints(TABLE_JSON,
		      "[\n"
		      "  {\"pool\": \"chat\", \"requests\": 1234567, \"wait_p50_s\": 0.25, "
		      "\"note\": \"a \\\"b\\\", c\"},\n"
		      "  {\"pool\": \"caf\303\251\\u001b[31m\", \"requests\": null, \"wait_p50_s\": 2.0, \"note\": "
		      "\"\"}\n"
		      "]\n");
}

static void units_read_well_and_stay_exact(void **state)
{
	static const struct table_column units[] = { { .name = "lasted_s" },
						     { .name = "late_ppm" },
						     { .name = "dollars" } };
	static const struct {
		enum table_format format;
		const char *expected;
	} cases[] = {
		{ TABLE_CSV, "lasted_s,late_ppm,dollars\n380.500,7400,-1234.5000\n0.000,0,-0.0010\n" },
		{ TABLE_PLAIN,
		  "LASTED_S   LATE_PPM   DOLLARS\n6m20s      0.74 %     -$1,234\n0ms        0.00 %     $0.00\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct table *t = table_new(units, 3);
		char *text = NULL;
		size_t len = 0;
		FILE *out = open_memstream(&text, &len);
		table_duration(t, 380500);
		table_share(t, .0074);
		table_dollars(t, -1234.5);
		table_duration(t, 0);
		table_share(t, 0);
		table_dollars(t, -.001);
		table_print(t, cases[i].format, out);
		fclose(out);
		assert_string_equal(text, cases[i].expected);
		free(text);
		table_free(t);
	}
}

static void many_rows_keep_their_order(void **state)
{
	struct table *t = table_new(columns, 4);

	(void)state;
	for (int i = 0; i < 4000; i++)
		table_count(t, i);
	assert_int_equal(table_rows(t), 1000);
	table_free(t);
	table_free(NULL);
}

static void numbers_read_well(void **state)
{
	(void)state;
	assert_string_equal(human_count(0).text, "0");
	assert_string_equal(human_count(-1234).text, "-1,234");
	assert_string_equal(human_count(INT64_MIN).text, "-9,223,372,036,854,775,808");
	assert_string_equal(human_decimal(14871.26, 1).text, "14,871.3");
	assert_string_equal(human_duration(850).text, "850ms");
	assert_string_equal(human_duration(2500).text, "2.5s");
	assert_string_equal(human_duration(380 * SECOND).text, "6m20s");
	assert_string_equal(human_duration(3 * HOUR + 5 * MINUTE).text, "3h05m");
	assert_string_equal(human_duration(2 * DAY + 4 * HOUR).text, "2d4h");
	assert_string_equal(human_share(0.0074).text, "0.74 %");
	assert_string_equal(human_share(0.00004).text, "0.004 %");
	assert_string_equal(human_dollars(0.48).text, "$0.48");
	assert_string_equal(human_dollars(14871).text, "$14,871");
	assert_string_equal(human_dollars(-1.2).text, "-$1.20");
	assert_string_equal(human_dollars(-0.001).text, "$0.00");
	assert_string_equal(human_spent(1.2, false).text, "$1.20");
	assert_string_equal(human_spent(1, true).text, "1 GPU hour");
	assert_string_equal(human_spent(8, true).text, "8 GPU hours");
	assert_string_equal(human_spent(0.25, true).text, "0.25 GPU hours");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_utf8_stays_json), cmocka_unit_test(prints_for_people),
		cmocka_unit_test(prints_for_programs),	      cmocka_unit_test(many_rows_keep_their_order),
		cmocka_unit_test(numbers_read_well),	      cmocka_unit_test(units_read_well_and_stay_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
