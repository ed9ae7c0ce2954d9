#include "base/decode.h"

#include "base/gzip.h"
#include "base/millis.h"
#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct part {
	const char *name;
	int64_t count;
};

static const struct field part_fields[] = {
	{ .path = "name", .type = FIELD_STRING, .offset = offsetof(struct part, name), .required = true },
	FIELD(struct part, count, FIELD_COUNT, "limits>nvidia.com/gpu"),
};
static const struct record_spec part_record = { "", sizeof(struct part), part_fields, 2 };

struct word {
	const char *text;
};
static const struct field word_fields[] = { FIELD(struct word, text, FIELD_STRING, "") };
static const struct record_spec word_record = { "", sizeof(struct word), word_fields, 1 };

struct thing {
	const char *name, *again;
	int64_t priority, count;
	bool is_on;
	int64_t made;
	struct decoded_list parts, words;
	struct decoded_map labels, chosen;
	struct decoded_text raw;
	const char *label;
};

static bool starts_with_a(const char *key, size_t len)
{
	return len && *key == 'a';
}

#define THING(member, kind, path_) FIELD(struct thing, member, kind, path_)
static const struct field thing_fields[] = {
	{ .path = "metadata>name", .type = FIELD_STRING, .offset = offsetof(struct thing, name), .required = true },
	THING(again, FIELD_STRING, "metadata>name"),
	THING(priority, FIELD_INT, "spec>priority"),
	THING(count, FIELD_COUNT, "spec>count"),
	THING(is_on, FIELD_BOOL, "spec>on"),
	THING(made, FIELD_TIME, "metadata>creationTimestamp"),
	{ .path = "spec>parts", .type = FIELD_LIST, .offset = offsetof(struct thing, parts), .of = &part_record },
	{ .path = "spec>words", .type = FIELD_LIST, .offset = offsetof(struct thing, words), .of = &word_record },
	THING(labels, FIELD_MAP, "metadata>labels"),
	{ .path = "metadata>labels",
	  .type = FIELD_MAP,
	  .offset = offsetof(struct thing, chosen),
	  .wants = starts_with_a },
	THING(raw, FIELD_RAW, "spec"),
	THING(label, FIELD_STRING, "metadata>labels>a.b/c"),
};
enum { THING_FIELDS = sizeof thing_fields / sizeof *thing_fields };
static const struct record_spec thing_record = { "", sizeof(struct thing), thing_fields, THING_FIELDS };
static const struct record_spec thing_items = { "items[]", sizeof(struct thing), thing_fields, THING_FIELDS };

static bool decode_thing(const char *text, struct arena *a, struct thing *out, struct error *e)
{
	struct decode_plan *plan = decode_plan_new(&thing_record);
	bool ok = decode_record(plan, text, text ? strlen(text) : 0, a, out, e);

	decode_plan_free(plan);
	return ok;
}

static void all_types(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct thing t;
	struct error e;

	(void)state;
	const char *text =
		" { \"kind\" : \"Thing\", \"metadata\": {\"managedFields\":[{\"f:x\":{\"}\":\"\\\"]\"}}],"
		"\"name\":\"a\\u00e9\\ud83d\\ude00\\n\", \"creationTimestamp\":\"2026-01-02T03:04:05.678901Z\","
		"\"labels\":{\"b\":\"1\",\"a.b/c\":\"x\",\"n\":3,\"gone\":null}}, "
		"\"spec\":{\"priority\":-7,\"count\":\"1500m\","
		"\"on\":true,\"parts\":[{\"name\":\"p\",\"limits\":{\"nvidia.com/gpu\":\"8\"}},{\"name\":\"q\"}],"
		"\"words\":[\"x\",\"\",\"y z\"]} } \n";
	if (!decode_thing(text, &a, &t, &e))
		fail_msg("%s", e.message);
	assert_string_equal(t.name, "a\xc3\xa9\xf0\x9f\x98\x80\n");
	assert_string_equal(t.again, t.name);
	assert_int_equal(t.priority, -7);
	assert_int_equal(t.count, 2);
	assert_true(t.is_on);
	assert_int_equal(t.made, INT64_C(1767323045678));
	assert_int_equal(t.parts.count, 2);
	const struct part *parts = t.parts.items;
	assert_string_equal(parts[0].name, "p");
	assert_int_equal(parts[0].count, 8);
	assert_string_equal(parts[1].name, "q");
	assert_int_equal(parts[1].count, 0);
	const struct word *words = t.words.items;
	assert_int_equal(t.words.count, 3);
	assert_string_equal(words[2].text, "y z");
	assert_int_equal(t.labels.count, 3);
	assert_string_equal(t.labels.pairs[2].key, "n");
	assert_string_equal(t.labels.pairs[2].value, "3");
	assert_int_equal(t.chosen.count, 1);
	assert_string_equal(t.chosen.pairs[0].value, "x");
	assert_string_equal(t.label, "x");
	assert_memory_equal(t.raw.text, "{\"priority\"", 11);
	assert_int_equal(t.raw.text[t.raw.len - 1], '}');
}

/* Absent, null, and where another type stands above what is wanted. */
static void absent_is_zero(void **state)
{
	static const char *const cases[] = {
		"{\"metadata\":{\"name\":\"x\"}}",
		"{\"metadata\":{\"name\":\"x\",\"labels\":null,\"creationTimestamp\":null},\"spec\":null}",
		"{\"metadata\":{\"name\":\"x\"},\"spec\":{\"priority\":null,\"count\":null}}",
		"{\"metadata\":{\"name\":\"x\"},\"spec\":{\"on\":null,\"parts\":null}}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct thing t;
		struct error e;
		if (!decode_thing(cases[i], &a, &t, &e))
			fail_msg("%s: %s", cases[i], e.message);
		assert_int_equal(t.priority + t.count + t.made, 0);
		assert_null(t.label);
		assert_int_equal(t.parts.count + t.labels.count, 0);
	}
}

static void mistakes_name_the_path(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "{\"metadata\":{\"name\":3}}", "metadata>name: found '3'; allowed: a text (byte 20)" },
		{ "{\"metadata\":{}}", "metadata>name: found nothing; allowed: a value, it is required" },
		{ "{\"spec\":{\"priority\":\"1\"}}", "spec>priority: found '\"1\"'; allowed: a whole number" },
		{ "{\"spec\":{\"priority\":1.5}}", "spec>priority: found '1.5'; allowed: a whole number" },
		{ "{\"spec\":{\"priority\":99999999999999999999}}", "spec>priority: found '9999" },
		{ "{\"spec\":{\"count\":\"many\"}}", "spec>count: found '\"many\"'; allowed: a quantity" },
		{ "{\"spec\":{\"count\":-1.5}}", "spec>count: found '-1.5'" },
		{ "{\"spec\":{\"on\":\"true\"}}", "spec>on: found '\"true\"'; allowed: true or false" },
		{ "{\"spec\":{\"on\":1}}", "spec>on: found '1'; allowed: true or false" },
		{ "{\"spec\":{\"parts\":[{\"name\":\"a\"},{}]}}", "spec>parts[1]>name: found nothing" },
		{ "{\"spec\":{\"parts\":[{\"name\":[]}]}}", "spec>parts[0]>name: found a list" },
		{ "{\"spec\":{\"parts\":{}}}", "spec>parts: found an object" },
		{ "{\"metadata\":{\"labels\":[1]}}", "metadata>labels: found a list" },
		{ "{\"metadata\":{\"creationTimestamp\":\"today\"}}",
		  "metadata>creationTimestamp: found '\"today\"'; allowed: a time" },
		{ "{\"metadata\":{\"name\":\"a\\x\"}}", "metadata>name: found a text with a malformed escape" },
		{ "{\"metadata\":{\"name\":\"\\ud800\"}}", "malformed escape" },
		{ "{\"metadata\":{\"name\":\"\\u0000\"}}", "malformed escape" },
		{ "{\"metadata\":{\"name\":\"\xff\"}}", "not UTF-8" },
		{ "{\"metadata\":{\"name\":\"\xed\xa0\x80\"}}", "not UTF-8" },
		{ "{\"metadata\":{\"name\":\"\x01\"}}", "a control character" },
		{ "{\"metadata\":{\"name\":\"x\"", "found the end; allowed: ',' or '}'" },
		{ "{\"metadata\":{\"name\":\"x", "found the end; allowed: a closing quote" },
		{ "{\"metadata\":{\"name\":\"x\"}} x", "found more text; allowed: one value" },
		{ "{\"metadata\" {}}", "found a key without a value" },
		{ "{metadata:{}}", "found something else; allowed: a text in quotes" },
		{ "{\"other\":[1,2}}", "other: found brackets that do not match" },
		{ "{\"other\":01}", "other: found '01'" },
		{ "{\"other\":tru}", "other: found 'tru'" },
		{ "{\"other\":}", "other: found nothing" },
		{ "", "found the end; allowed: a value (byte 0)" },
		{ NULL, "found the end; allowed: a value (byte 0)" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct thing t;
		struct error e = { 0 };
		if (decode_thing(cases[i].text, &a, &t, &e) || e.kind != ERROR_INVALID ||
		    !strstr(e.message, cases[i].message))
			fail_msg("%s: got '%s', not '%s'", cases[i].text ? cases[i].text : "NULL", e.message,
				 cases[i].message);
	}
}

struct around {
	const char *version, *next;
};
static const struct field around_fields[] = {
	FIELD(struct around, version, FIELD_STRING, "metadata>resourceVersion"),
	FIELD(struct around, next, FIELD_STRING, "metadata>continue"),
};
static const struct record_spec around_record = { "", sizeof(struct around), around_fields, 2 };

struct stream {
	char names[512];
	int count, stop_at;
};

static bool note_name(void *user, void *record, struct error *e)
{
	struct stream *s = user;
	const struct thing *t = record;

	snprintf(s->names + strlen(s->names), sizeof s->names - strlen(s->names), "%s ", t->name);
	return ++s->count != s->stop_at || error_set(e, ERROR_CANCELLED, "enough");
}

/* Fed in pieces of `piece` bytes, the last error in *e. */
static bool feed(const struct record_spec *spec, const char *text, size_t piece, struct stream *s,
		 struct around *around, struct error *e)
{
	struct decode_plan *plan = decode_plan_new(spec), *document = decode_plan_new(&around_record);
	struct decoder *d = decoder_open(&(struct decoder_setup){ .name = "list",
								  .records = plan,
								  .emit = note_name,
								  .user = s,
								  .document = document,
								  .document_record = around,
								  .record_cap = 300 });
	size_t len = strlen(text);
	static char version[64];
	bool ok = true;

	for (size_t i = 0; i < len && ok; i += piece) {
		/* a copy of its own, so that a sanitizer sees a step over its end */
		size_t n = len - i < piece ? len - i : piece;
		char *bytes = malloc(n);
		memcpy(bytes, text + i, n);
		ok = decoder_feed(d, bytes, n, e);
		free(bytes);
	}
	ok = ok && decoder_finish(d, e);
	snprintf(version, sizeof version, "%s", around->version ? around->version : "-");
	around->version = version;
	decoder_close(d);
	decode_plan_free(plan);
	decode_plan_free(document);
	return ok;
}

static void lists_cut_anywhere(void **state)
{
	const char *text =
		"{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"12\",\"x\":[{}]}, \"before\":[1,[2]],\n"
		"\"items\" : [ {\"metadata\":{\"name\":\"a\",\"s\":\"]}\\\"\\\\\"}} , "
		"{\"metadata\":{\"name\":\"b\"},\"spec\":{\"on\":false}}],\"items2\":[{}],\"n\":-1.5e3,\"t\":true}";
	struct error e = { 0 };

	(void)state;
	for (size_t piece = 1; piece < strlen(text) + 2; piece++) {
		struct stream s = { 0 };
		struct around around;
		if (!feed(&thing_items, text, piece, &s, &around, &e))
			fail_msg("pieces of %zu: %s", piece, e.message);
		assert_string_equal(s.names, "a b ");
		assert_string_equal(around.version, "12");
	}
}

static void documents_follow_each_other(void **state)
{
	const char *text =
		"{\"metadata\":{\"name\":\"a\"}}\n{\"metadata\":{\"name\":\"b\"}}{\"metadata\":{\"name\":\"c\"}}\n";
	struct error e = { 0 };

	(void)state;
	for (size_t piece = 1; piece < strlen(text) + 2; piece++) {
		struct stream s = { 0 };
		struct around around;
		if (!feed(&thing_record, text, piece, &s, &around, &e))
			fail_msg("pieces of %zu: %s", piece, e.message);
		assert_string_equal(s.names, "a b c ");
	}
}

static void streams_that_are_wrong(void **state)
{
	static const struct {
		const char *text, *message;
		int count;
	} cases[] = {
		{ "", "list: byte 0: it is empty", 0 },
		{ "{\"items\":[", "it ends in the middle", 0 },
		{ "{\"items\":[{\"metadata\":{\"name\":\"a\"}},", "it ends in the middle", 1 },
		{ "{\"items\":[{\"metadata\":{\"name\":\"a\"}}", "it ends in the middle", 1 },
		{ "{\"items\":{}}", "found '{'; allowed: a list", 0 },
		{ "{\"items\":[{\"metadata\":{\"name\":\"a\"}}{", "found '{'; allowed: ',' or ']'", 1 },
		{ "{\"items\":[{\"metadata\":{\"name\":5}}]}", "metadata>name: found '5'", 0 },
		{ "{\"items\":[,]}", "allowed: a value", 0 },
		{ "{\"items\" []}", "allowed: ':'", 0 },
		{ "{\"a\":[}]}", "brackets that do not match", 0 },
		{ "{5:1}", "allowed: a key in quotes", 0 },
		{ "[]", "allowed: an object", 0 },
		{ "}", "allowed: an object", 0 },
		{ "<html>", "found '<'; allowed: an object", 0 },
		{ "{\"a\":1 \"b\":2}", "allowed: ',' or '}'", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (size_t piece = 1; piece < 50; piece++) {
			struct stream s = { 0 };
			struct around around;
			struct error e = { 0 };
			if (feed(&thing_items, cases[i].text, piece, &s, &around, &e) ||
			    !strstr(e.message, cases[i].message))
				fail_msg("%s in pieces of %zu: '%s', not '%s'", cases[i].text, piece, e.message,
					 cases[i].message);
			assert_int_equal(s.count, cases[i].count);
		}
}

static void caps(void **state)
{
	char text[2048], deep[1400];
	struct stream s = { .stop_at = 1 };
	struct around around;
	struct error e = { 0 };

	(void)state;
	snprintf(text, sizeof text, "{\"items\":[{\"metadata\":{\"name\":\"%0*d\"}}]}", 300, 7);
	for (size_t piece = 1; piece < 400; piece += 7) {
		assert_false(feed(&thing_items, text, piece, &s, &around, &e));
		assert_non_null(strstr(e.message, "more than 300 bytes"));
	}
	/* What is not wanted may be longer. */
	snprintf(text, sizeof text, "{\"pad\":\"%0*d\",\"items\":null}", 600, 7);
	if (!feed(&thing_items, text, 64, &s, &around, &e))
		fail_msg("%s", e.message);
	memset(deep, '[', sizeof deep - 1);
	deep[sizeof deep - 1] = '\0';
	snprintf(text, sizeof text, "{\"pad\":%s", deep);
	assert_false(feed(&thing_items, text, 64, &s, &around, &e));
	assert_non_null(strstr(e.message, "more than 256 levels"));
	assert_false(feed(&thing_items, "{\"items\":[{\"metadata\":{\"name\":\"a\"}},{\"metadata\":{}}]}", 9, &s,
			  &around, &e));
	assert_int_equal(e.kind, ERROR_CANCELLED);
}

/* Damaged anywhere, a text is refused or read, and never read beyond its end (a sanitizer watches). */
static void damage(void **state)
{
	const char *text = "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{\"metadata\":{\"name\":\"\\u00e9\","
			   "\"labels\":{\"a\":\"b\"}},\"spec\":{\"count\":\"2Gi\",\"parts\":[{\"name\":\"x\"}]}}]}";
	struct random r = random_stream(42, "damage");
	size_t len = strlen(text);
	int refused = 0;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		struct stream s = { 0 };
		struct around around;
		struct error e = { 0 };
		char copy[512];
		memcpy(copy, text, len + 1);
		for (int k = 0; k < 1 + round % 3; k++)
			copy[random_next(&r) % len] = "{}[]\",:\\x0 "[random_next(&r) % 11];
		refused += !feed(&thing_items, copy, 1 + random_next(&r) % 64, &s, &around, &e);
	}
	assert_true(refused > 10000);
}

struct sample_pod {
	const char *name;
	struct decoded_list parts;
};
static const struct field sample_fields[] = {
	{ .path = "metadata>name",
	  .type = FIELD_STRING,
	  .offset = offsetof(struct sample_pod, name),
	  .required = true },
	{ .path = "spec>containers",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct sample_pod, parts),
	  .of = &part_record },
};
static const struct record_spec sample_items = { "items[]", sizeof(struct sample_pod), sample_fields, 2 };

static bool count_pod(void *user, void *record, struct error *e)
{
	const struct sample_pod *pod = record;

	(void)e;
	*(size_t *)user += pod->parts.count;
	return true;
}

static void a_page_as_served(void **state)
{
	const char *shared = getenv("PREHEAT_SHARED");
	char path[4096], bytes[65536];
	size_t got = 1, containers = 0;
	struct around around;
	struct error e;

	(void)state;
	snprintf(path, sizeof path, "%s/samples/pods-limit500.json.gz", shared ? shared : "../shared");
	struct gzip *g = gzip_open(path, &e);
	if (!g) {
		print_message("skipped: %s (set PREHEAT_SHARED)\n", e.message);
		skip();
	}
	struct decode_plan *plan = decode_plan_new(&sample_items), *document = decode_plan_new(&around_record);
	struct decoder *d = decoder_open(&(struct decoder_setup){ .name = path,
								  .records = plan,
								  .emit = count_pod,
								  .user = &containers,
								  .document = document,
								  .document_record = &around });
	while (got) {
		if (!gzip_read(g, bytes, sizeof bytes, &got, &e) || !decoder_feed(d, bytes, got, &e))
			fail_msg("%s", e.message);
	}
	if (!decoder_finish(d, &e))
		fail_msg("%s", e.message);
	assert_true(containers >= 500);
	assert_non_null(around.version);
	assert_non_null(around.next);
	decoder_close(d);
	decode_plan_free(plan);
	decode_plan_free(document);
	gzip_close(g);
}

static void raw_numbers_have_a_sign_and_places(void **state)
{
	static const struct {
		const char *text;
		int places;
		int64_t value; /* 7: none */
	} cases[] = { { "12.5", 6, 12500000 },
		      { "-3.9712", 6, -3971200 },
		      { "0", 0, 0 },
		      { "1e3", 2, 100000 },
		      { "null", 6, 7 },
		      { "\"1\"", 6, 7 },
		      { "", 6, 7 },
		      { "--1", 6, 7 },
		      { "-", 6, 7 },
		      { "1.5", 0, 7 },
		      { "1,5", 3, 7 } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct decoded_text text = { cases[i].text, strlen(cases[i].text) };
		int64_t value = 7;

		assert_int_equal(decoded_number(&text, cases[i].places, &value), cases[i].value != 7);
		assert_int_equal(value, cases[i].value);
	}
	int64_t value = 7;
	assert_false(decoded_number(&(struct decoded_text){ NULL, 0 }, 6, &value));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(raw_numbers_have_a_sign_and_places),
		cmocka_unit_test(all_types),
		cmocka_unit_test(absent_is_zero),
		cmocka_unit_test(mistakes_name_the_path),
		cmocka_unit_test(lists_cut_anywhere),
		cmocka_unit_test(documents_follow_each_other),
		cmocka_unit_test(streams_that_are_wrong),
		cmocka_unit_test(caps),
		cmocka_unit_test(damage),
		cmocka_unit_test(a_page_as_served),
	};

	return cmocka_run_group_tests_name("decode", tests, NULL, NULL);
}
