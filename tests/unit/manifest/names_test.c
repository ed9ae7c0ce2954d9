/* Names that check takes are those that the schema, and with it the API server, takes: seeded texts through both. */
#include "base/random.h"
#include "base/schema_describe.h"

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

static void resources_and_keys_of_labels(void **state)
{
	(void)state;
	agree_about(SCHEMA_KEY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pools),
		cmocka_unit_test(node_groups),
		cmocka_unit_test(resources_and_keys_of_labels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
