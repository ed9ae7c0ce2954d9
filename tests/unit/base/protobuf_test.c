/* Protobuf as JSON by table: every kind of field, what is left out, and bytes that are none. */
#include "base/protobuf.h"
#include "base/arena.h"
#include "tests/unit/base/protobuf_bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct protobuf_field leaf_fields[] = { { "name", 1, PROTOBUF_TEXT, false, NULL },
						     { "tags", 2, PROTOBUF_TEXT, true, NULL } };
static const struct protobuf_message leaf = { "test.Leaf", leaf_fields, 2 };
static const struct protobuf_field around_fields[] = { { "inner", 3, PROTOBUF_MESSAGE, false, &leaf } };
static const struct protobuf_message around = { "test.Around", around_fields, 1 };
static const struct protobuf_field all_fields[] = {
	{ "text", 1, PROTOBUF_TEXT, false, NULL },
	{ "count", 2, PROTOBUF_INT, false, NULL },
	{ "is", 3, PROTOBUF_BOOL, false, NULL },
	{ "at", 4, PROTOBUF_TIME, false, NULL },
	{ "leaf", 5, PROTOBUF_MESSAGE, false, &leaf },
	{ "leaves", 6, PROTOBUF_MESSAGE, true, &leaf },
	{ "source", 7, PROTOBUF_INLINE, false, &around },
	{ "labels", 8, PROTOBUF_MAP, false, NULL },
	{ "limits", 9, PROTOBUF_QUANTITY_MAP, false, NULL },
	{ "size", 200, PROTOBUF_QUANTITY, false, NULL },
};
static const struct protobuf_message all = { "test.All", all_fields, 10 };

static struct buf pair_of(const char *key, const char *value)
{
	struct buf b = { 0 };

	pb_text(&b, 1, key);
	pb_text(&b, 2, value);
	return b;
}

static struct buf quantity_pair(const char *key, const char *value)
{
	struct buf b = { 0 }, quantity = { 0 };

	pb_text(&b, 1, key);
	pb_text(&quantity, 1, value);
	pb_message(&b, 2, &quantity);
	return b;
}

static struct buf time_of(int64_t seconds, int64_t nanos)
{
	struct buf b = { 0 };

	pb_number(&b, 1, seconds);
	pb_number(&b, 2, nanos);
	return b;
}

static struct buf leaf_of(const char *name, const char *tag)
{
	struct buf b = { 0 };

	pb_text(&b, 1, name);
	pb_text(&b, 2, tag);
	pb_text(&b, 2, "");
	return b;
}

/* What is no field of the table: a number, eight bytes, four bytes, a message. */
static void add_strangers(struct buf *b)
{
	pb_number(b, 77, -1);
	buf_append(b,
		   "\xf1\x04"
		   "12345678",
		   10); /* field 78, 64 bit */
	buf_append(b,
		   "\xfd\x04"
		   "1234",
		   6); /* field 79, 32 bit */
	pb_text(b, 80, "\x01 not looked into");
}

static void assert_json(const struct buf *bytes, const char *wanted)
{
	CLEANUP(buf_release) struct buf json = { 0 };
	struct error e;

	assert_true(protobuf_to_json(&all, bytes->len ? bytes->text : "", bytes->len, &json, &e));
	assert_string_equal(json.text, wanted);
}

static void every_kind_is_written(void **state)
{
	CLEANUP(buf_release) struct buf b = { 0 };
	struct buf m;

	(void)state;
	pb_text(&b, 1, "a \"b\"\n");
	pb_number(&b, 2, -7);
	add_strangers(&b);
	pb_number(&b, 3, 1);
	m = time_of(1767366245, 250000000), pb_message(&b, 4, &m);
	m = leaf_of("one", "x"), pb_message(&b, 5, &m);
	m = leaf_of("two", "y"), pb_message(&b, 6, &m);
	m = (struct buf){ 0 }, pb_message(&b, 6, &m);
	struct buf inner = leaf_of("deep", "z");
	pb_message(&m, 3, &inner), pb_message(&b, 7, &m);
	m = pair_of("app", "chat"), pb_message(&b, 8, &m);
	m = pair_of("empty", ""), pb_message(&b, 8, &m);
	m = quantity_pair("cpu", "64"), pb_message(&b, 9, &m);
	m = (struct buf){ 0 }, pb_text(&m, 1, "2Gi"), pb_message(&b, 200, &m);
	assert_json(&b,
		    "{\"text\":\"a \\\"b\\\"\\n\",\"count\":-7,\"is\":true,\"at\":\"2026-01-02T15:04:05.250Z\","
		    "\"leaf\":{\"name\":\"one\",\"tags\":[\"x\",\"\"]},\"leaves\":[{\"name\":\"two\",\"tags\":[\"y\","
		    "\"\"]},{}],"
		    "\"inner\":{\"name\":\"deep\",\"tags\":[\"z\",\"\"]},\"labels\":{\"app\":\"chat\",\"empty\":\"\"},"
		    "\"limits\":{\"cpu\":\"64\"},\"size\":\"2Gi\"}");
}

static void what_was_never_set_is_left_out(void **state)
{
	CLEANUP(buf_release) struct buf b = { 0 };
	struct buf none = { 0 };

	(void)state;
	assert_json(&b, "{}");
	pb_text(&b, 1, "");
	pb_message(&b, 4, &none);
	assert_json(&b, "{}");
	pb_message(&b, 5, &none); /* a message that is there says so */
	assert_json(&b, "{\"leaf\":{}}");
}

/* Every prefix of a message that is not between two fields, and bytes that mean something else. */
static void broken_bytes_are_refused(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *says;
	} cases[] = {
		{ "\x0a\x05"
		  "abc",
		  5, "test.All: field 1: ends too soon" },
		{ "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, "test.All: field 1: ends too soon" },
		{ "\x08\x05", 2, "test.All: field 1: no text and no message" },
		{ "\x12\x00", 2, "test.All: field 2: no whole number" },
		{ "\x0a\x01\x00", 3, "test.All: field 1: a text with a NUL byte" },
		{ "\x22\x04\x08\x01\x10\xff", 6, "test.All: field 2: no whole number" },
		{ "\x22\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13, "test.All: field 4: no time" },
		{ "\x0a\x01"
		  "a"
		  "\x10\x01\x0a\x01"
		  "b",
		  8, "test.All: field 1: comes twice" },
		{ "\x32\x00\x10\x01\x32\x00", 6, "test.All: field 6: comes twice" },
		{ "\x0b", 1, "" }, /* a group, which nobody writes */
		{ "\x00", 1, "" },
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(buf_release) struct buf json = { 0 };
		struct error e;
		assert_false(protobuf_to_json(&all, cases[i].bytes, cases[i].len, &json, &e));
		assert_int_equal(e.kind, ERROR_INVALID);
		if (*cases[i].says)
			assert_string_equal(e.message, cases[i].says);
	}
}

static void a_part_is_cut_where_it_ends(void **state)
{
	CLEANUP(buf_release) struct buf b = { 0 };
	struct protobuf_part part;

	(void)state;
	pb_text(&b, 200, "some text");
	size_t head = b.len - 9;
	for (size_t len = 0; len < head; len++)
		assert_int_equal(protobuf_part_at(b.text, len, &part), PROTOBUF_MORE);
	for (size_t len = head; len <= b.len; len++) {
		assert_int_equal(protobuf_part_at(b.text, len, &part), PROTOBUF_PART);
		assert_true(part.has_bytes && part.number == 200 && part.head == head && part.size == 9);
	}
	buf_clear(&b);
	pb_number(&b, 3, 300);
	assert_int_equal(protobuf_part_at(b.text, b.len, &part), PROTOBUF_PART);
	assert_true(!part.has_bytes && part.number == 3 && part.head == 3 && part.size == 0);
	assert_int_equal(protobuf_part_at("\x0b", 1, &part), PROTOBUF_BROKEN);
	assert_int_equal(protobuf_part_at("\x00\x01", 2, &part), PROTOBUF_BROKEN);
	assert_int_equal(
		protobuf_part_at("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 20,
				 &part),
		PROTOBUF_BROKEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_is_written),
		cmocka_unit_test(what_was_never_set_is_left_out),
		cmocka_unit_test(broken_bytes_are_refused),
		cmocka_unit_test(a_part_is_cut_where_it_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
