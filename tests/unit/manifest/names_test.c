/* Names that check takes are those that the schema, and with it the API server, takes: seeded texts through both. */
#include "base/random.h"
#include "base/schema_describe.h"
#include "providers/block.h"

#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { TEXTS = 30000, LONGEST = 80 };

struct named {
	const struct yaml_node *node;
	const char *text;
};

/* The pattern of the schema of a table of one row. */
static void pattern_of(const struct schema_table *t, regex_t *out)
{
	CLEANUP(buf_release) struct buf json = { 0 };

	schema_write_json(t, "id", "title", &json);
	char *from = strstr(json.text, "\"pattern\": \""), *end;
	assert_non_null(from);
	from += strlen("\"pattern\": \"");
	end = strchr(from, '"');
	*end = '\0';
	assert_int_equal(regcomp(out, from, REG_EXTENDED | REG_NOSUB), 0);
}

/* Mostly right: pieces of names, and now and then what does not belong. */
static void make_text(struct random *r, char text[LONGEST + 1])
{
	static const char *const pieces[] = { "a",  "b9", "chat", "-",		".", "_",     "/",
					      "A",  "Zz", "0",	  "nvidia.com", " ", ":",     "\xc3\xa9",
					      "--", "..", "//",	  "x",		"y", "llama", "7b" };
	size_t len = 0, count = random_next(r) % 6 + (random_next(r) % 50 == 0 ? 60 : 0);

	text[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		const char *piece = pieces[random_next(r) % (sizeof pieces / sizeof *pieces)];
		if (len + strlen(piece) > LONGEST)
			break;
		len += (size_t)snprintf(text + len, LONGEST + 1 - len, "%s", piece);
	}
}

static void agree_about(enum schema_type type)
{
	const struct schema_row row = {
		.key = "name", .type = type, .offset = offsetof(struct named, text), .help = ""
	};
	const struct schema_table table = { "thing", sizeof(struct named), &row, 1, NULL };
	struct random r = random_stream(7, "names");
	char text[LONGEST + 1];
	regex_t pattern;
	int taken = 0;

	pattern_of(&table, &pattern);
	for (int i = 0; i < TEXTS; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		CLEANUP(findings_release) struct findings f = { 0 };
		struct named read = { 0 };

		make_text(&r, text);
		const struct yaml_node node = { .kind = YAML_SCALAR, .file = "f", .text = text, .key = "name" };
		bool is_read = schema_value_read(&row, &node, &read, &a, &f);
		bool is_matched = !regexec(&pattern, text, 0, NULL, 0);
		if (is_read != is_matched)
			fail_msg("'%s': check %s it, the schema %s", text, is_read ? "takes" : "refuses",
				 is_matched ? "takes it" : "does not");
		taken += is_read;
	}
	assert_true(taken > TEXTS / 50);
	regfree(&pattern);
}

static void pools(void **state)
{
	(void)state;
	agree_about(SCHEMA_NAME);
}

static void node_groups(void **state)
{
	(void)state;
	agree_about(SCHEMA_VALUE);
}

/* As charts write what they have no value for. */
static void an_empty_one_is_to_be_left_out(void **state)
{
	static const struct schema_row row = { .key = "zone",
					       .type = SCHEMA_VALUE,
					       .offset = offsetof(struct named, text),
					       .fallback = "",
					       .shown = "unknown",
					       .help = "" };
	const struct yaml_node node = { .kind = YAML_SCALAR, .file = "f", .text = "", .key = "zone" };
	CLEANUP(arena_release) struct arena a = { 0 };
	CLEANUP(findings_release) struct findings f = { 0 };
	struct named read = { 0 };

	(void)state;
	assert_false(schema_value_read(&row, &node, &read, &a, &f));
	assert_string_equal(f.items[0].remedy, "give a value, or delete the key: it is then unknown");
}

static void what_is_scaled(void **state)
{
	(void)state;
	agree_about(SCHEMA_API);
	agree_about(SCHEMA_KIND);
}

static void resources_and_keys_of_labels(void **state)
{
	(void)state;
	agree_about(SCHEMA_KEY);
}

#define A63  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define A253 A63 A63 A63 A63 "a"

/* What the API server itself takes as the name of an object, the key of a label and its value: from its validation's
 * own tables. */
static const struct {
	const char *text;
	bool is_object, is_key, is_value;
} told[] = {
	{ "a", true, true, true },
	{ "a--1--2--b", true, true, true },
	{ "01", true, true, true },
	{ "a.b.c.d.e", true, true, true },
	{ "a.1.b", true, true, true },
	{ A63, true, true, true },
	{ A63 "a", true, false, false },
	{ A253, true, false, false },
	{ A253 "a", false, false, false },
	{ "A", false, true, true },
	{ "a_b", false, true, true },
	{ "ab.C", false, true, true },
	{ "a..b", false, true, true },
	{ "a.-b", false, true, true },
	{ "a-.b", false, true, true },
	{ "-", false, false, false },
	{ "a-", false, false, false },
	{ "-a", false, false, false },
	{ "_a", false, false, false },
	{ "a.", false, false, false },
	{ ".a", false, false, false },
	{ "a b", false, false, false },
	{ "a:b", false, false, false },
	{ "nospecialchars%^=@", false, false, false },
	{ "simple/simple", false, true, false },
	{ "now.with.dots/simple", false, true, false },
	{ "1-num.2-num/3-num", false, true, false },
	{ "example.com/Uppercase_Is_OK_123", false, true, false },
	{ A253 "/" A63, false, true, false },
	{ "only/one/slash", false, false, false },
	{ "Example.com/abc", false, false, false },
	{ "example_com/abc", false, false, false },
	{ "example..com/abc", false, false, false },
	{ "example.com-/abc", false, false, false },
	{ "example.com/", false, false, false },
	{ "/simple", false, false, false },
};

static void expect(const struct block_form *form, size_t longest, const char *text, bool is_taken)
{
	regex_t pattern;

	assert_int_equal(regcomp(&pattern, form->pattern, REG_EXTENDED | REG_NOSUB), 0);
	bool is_matched = strlen(text) <= longest && !regexec(&pattern, text, 0, NULL, 0);
	regfree(&pattern);
	if (form->fits(text) != is_taken || is_matched != is_taken)
		fail_msg("'%s': check %s it, the rule %s, the API server %s", text,
			 form->fits(text) ? "takes" : "refuses", is_matched ? "takes it" : "does not",
			 is_taken ? "takes it" : "does not");
}

/* A pattern tells no length of all of it: the row of the key does. */
static void blocks_take_what_the_api_server_takes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
		expect(&form_object_name, 253, told[i].text, told[i].is_object);
		expect(&form_label_key, 317, told[i].text, told[i].is_key);
		expect(&form_label_value, 63, told[i].text, told[i].is_value);
	}
	assert_false(form_label_key.fits(A253 "a/abc")); /* no pattern counts the domain alone */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pools),
		cmocka_unit_test(node_groups),
		cmocka_unit_test(an_empty_one_is_to_be_left_out),
		cmocka_unit_test(what_is_scaled),
		cmocka_unit_test(resources_and_keys_of_labels),
		cmocka_unit_test(blocks_take_what_the_api_server_takes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
