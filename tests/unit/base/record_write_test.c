/* A struct and its rows, as JSON and as a schema. */
#include "base/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

struct part {
	int64_t milli;
};
static const struct record_member part_members[] = {
	{ "value", RECORD_NUMBER(part, milli, 3), .may_be_null = true, .help = "a number" },
};
static const struct record_shape part_shape = RECORD_SHAPE("Part", part, part_members);

struct whole {
	const char *text;
	char chars[8];
	millis at;
	int64_t count;
	bool is_so;
	struct part in_place;
	const struct part *pointed;
	struct record_items parts, texts, numbers;
};
static const char *const choices[] = { "a", "b", NULL };

static void schema_object(struct buf *out)
{
	json_schema_type("object", false, out);
}

static const struct record_member whole_members[] = {
	{ "last", RECORD_TEXT(whole, text), .is_last = true, .may_be_null = true, .choices = choices, .help = "h" },
	{ "chars", RECORD_CHARS(whole, chars), .empty_is_null = true, .help = "h" },
	{ "at", RECORD_TIME(whole, at), .may_be_null = true, .help = "h" },
	{ "count", RECORD_COUNT(whole, count), .help = "h" },
	{ "isSo", RECORD_FLAG(whole, is_so), .help = "h" },
	{ "inPlace", RECORD_OBJECT(whole, in_place, part_shape), .help = "h" },
	{ "pointed", RECORD_POINTER(whole, pointed, part_shape), .may_be_null = true, .help = "h" },
	{ "parts", RECORD_LIST(whole, parts, part_shape), .may_be_null = true, .help = "h" },
	{ "texts", RECORD_TEXTS(whole, texts), .help = "h" },
	{ "numbers", RECORD_NUMBERS(whole, numbers, 6), .help = "h" },
	{ "apart", RECORD_OTHER(schema_object), .help = "h" },
};
static const struct record_shape whole_shape = RECORD_SHAPE("Whole", whole, whole_members);

static void what_is_not_known_is_null(void **state)
{
	const struct whole w = { .in_place = { RECORD_ABSENT } };
	struct buf out = { 0 };

	(void)state;
	record_write(&whole_shape, &w, &out);
	assert_string_equal(out.text,
			    "{\"chars\":null,\"at\":null,\"count\":0,\"isSo\":false,\"inPlace\":{\"value\":null},"
			    "\"pointed\":null,\"parts\":null,\"texts\":[],\"numbers\":[],\"last\":null}");
	buf_release(&out);
}

static void every_type_is_written(void **state)
{
	static const struct part parts[] = { { 1500 }, { -20 } };
	static const char *const texts[] = { "\"", "<" };
	static const int64_t numbers[] = { 480000, RECORD_ABSENT };
	const struct whole w = { "a",	       "bc",	     1700000000123, 7, true, { 1 }, &parts[1],
				 { parts, 2 }, { texts, 2 }, { numbers, 2 } };
	struct buf out = { 0 };

	(void)state;
	record_write(&whole_shape, &w, &out);
	assert_string_equal(out.text, "{\"chars\":\"bc\",\"at\":\"2023-11-14T22:13:20.123Z\",\"count\":7,\"isSo\":true,"
				      "\"inPlace\":{\"value\":0.001},\"pointed\":{\"value\":-0.02},"
				      "\"parts\":[{\"value\":1.5},{\"value\":-0.02}],\"texts\":[\"\\\"\",\"<\"],"
				      "\"numbers\":[0.48,null],\"last\":\"a\"}");
	buf_release(&out);
}

static void the_schema_names_each_shape_once(void **state)
{
	struct buf out = { 0 }, done = { 0 };

	(void)state;
	record_write_schemas(&whole_shape, &done, &out);
	assert_non_null(strstr(out.text, "\"last\":{\"type\":[\"string\",\"null\"],\"enum\":[\"a\",\"b\",null],"));
	assert_non_null(strstr(out.text, "\"chars\":{\"type\":[\"string\",\"null\"],"));
	assert_non_null(strstr(out.text, "\"count\":{\"type\":\"integer\","));
	assert_non_null(
		strstr(out.text, "\"apart\":{\"type\":\"object\",\"description\":\"h\"}},\"required\":[\"last\","));
	char *part = strstr(out.text, "\n\"Part\":");
	assert_non_null(part);
	assert_null(strstr(part + 1, "\n\"Part\":"));
	buf_release(&out);
	buf_release(&done);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_known_is_null),
		cmocka_unit_test(every_type_is_written),
		cmocka_unit_test(the_schema_names_each_shape_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
