#include "base/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

struct parsed {
	struct arena arena;
	struct findings findings;
	struct yaml_documents docs;
	bool ok;
};

static void parsed_release(struct parsed *p)
{
	findings_release(&p->findings);
	arena_release(&p->arena);
}

static void parse(struct parsed *p, const char *text, size_t len)
{
	*p = (struct parsed){ 0 };
	p->ok = yaml_parse("x.yaml", text, len, &p->arena, &p->docs, &p->findings);
}

static void values_know_their_place(void **state)
{
	static const char text[] = "a: 1\nb:\n  - x\n  - { c: 'y z' }\n---\n---\nq: 2\n";
	CLEANUP(parsed_release) struct parsed p;
	CLEANUP(buf_release) struct buf path = { 0 };

	(void)state;
	parse(&p, text, strlen(text));
	assert_true(p.ok);
	assert_int_equal(p.docs.count, 3);
	assert_null(p.docs.roots[1]);
	const struct yaml_node *list = yaml_child(p.docs.roots[0], "b");
	const struct yaml_node *c = yaml_child(list->last, "c");
	assert_string_equal(c->text, "y z");
	assert_false(c->is_plain);
	assert_int_equal(c->line, 4);
	assert_int_equal(c->column, 10);
	assert_int_equal(c->key_column, 7);
	yaml_path(c, &path);
	assert_string_equal(path.text, "b[1].c");
	assert_null(yaml_child(p.docs.roots[0], "z"));
	assert_null(yaml_child(list, "c"));
}

struct bad_case {
	const char *text, *found;
	size_t line, column;
	bool ok;
};

static void what_is_refused(void **state)
{
	static const struct bad_case cases[] = {
		{ "a: &x 1\n", "an anchor or alias", 1, 4, false },
		{ "a: *x\n", "an anchor or alias", 1, 4, false },
		{ "a: !!str 1\n", "a tag", 1, 4, false },
		{ "%YAML 1.1\n---\na: 1\n", "a % directive", 1, 1, false },
		{ "? [a]\n: 1\n", "a map or list as a key", 1, 3, false },
		{ "'': 1\n", "an empty or broken key", 1, 1, false },
		{ "a: 1\nb: 2\na: 3\n", "key 'a' a second time", 3, 1, true },
		{ "a: \"x\\0y\"\n", "a text with a NUL byte", 1, 4, false },
		{ "a: [1\nb: 2\n", "no YAML: did not find expected ',' or ']'", 2, 2, false },
		{ "a: \xff\n", "no YAML: invalid leading UTF-8 octet", 1, 4, false },
		{ "a: 1\nb: \x01\n", "no YAML: control characters are not allowed", 2, 4, false },
		{ "a:\n\tb: 1\n", "no YAML: found character that cannot start any token", 2, 1, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(parsed_release) struct parsed p;
		parse(&p, cases[i].text, strlen(cases[i].text));
		assert_int_equal(p.ok, cases[i].ok);
		assert_int_equal(p.findings.count, 1);
		const struct finding *f = &p.findings.items[0];
		assert_true(!strncmp(f->found, cases[i].found, strlen(cases[i].found)));
		assert_int_equal(f->line, cases[i].line);
		assert_int_equal(f->column, cases[i].column);
		assert_string_equal(f->file, "x.yaml");
	}
}

static void repeat(struct buf *out, const char *piece, size_t times)
{
	for (size_t i = 0; i < times; i++)
		buf_text(out, piece);
}

static void expect_cap(struct buf *text, const char *found)
{
	CLEANUP(parsed_release) struct parsed p;

	parse(&p, text->text, text->len);
	assert_false(p.ok);
	assert_int_equal(p.findings.count, 1);
	assert_string_equal(p.findings.items[0].found, found);
	buf_clear(text);
}

static void caps(void **state)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	(void)state;
	repeat(&text, "[", 10000);
	expect_cap(&text, "more than 24 levels of values");
	repeat(&text, "- 1\n", YAML_NODES_MAX + 1);
	expect_cap(&text, "more than 500000 values in a file");
	repeat(&text, "---\n", YAML_DOCUMENTS_MAX + 1);
	expect_cap(&text, "more than 10000 documents in a file");
	repeat(&text, "a: 12345\n", YAML_BYTES_MAX / 9 + 1);
	expect_cap(&text, "more than 16 MiB of text");
	for (int i = 0; i <= YAML_KEYS_MAX; i++)
		buf_printf(&text, "k%d: 1\n", i);
	expect_cap(&text, "more than 1000 keys in one map");
}

static void meanings(void **state)
{
	static const struct {
		const char *text, *meaning;
	} cases[] = { { "1.30", "a number" },
		      { "-7", "a number" },
		      { "1e9", "a number" },
		      { "0x1F", "a number" },
		      { "0b101", "a number" },
		      { "0b1f6471-1bf0-4dda-aec3-cb9272f09590", NULL }, /* a subscription */
		      { "0x", NULL },
		      { "on", "a truth value" },
		      { "False", "a truth value" },
		      { "~", "nothing" },
		      { "", "nothing" },
		      { "2s", NULL },
		      { "1.2.3", "a number" },
		      { "g5", NULL },
		      { "-", NULL },
		      { "e5", NULL },
		      { "99%", NULL } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct yaml_node n = { .text = cases[i].text, .is_plain = true };
		const char *meaning = yaml_plain_meaning(&n);
		assert_true(!meaning == !cases[i].meaning);
		if (meaning)
			assert_string_equal(meaning, cases[i].meaning);
		n.is_plain = false;
		assert_null(yaml_plain_meaning(&n));
	}
}

static void findings_are_capped_sorted_and_visible(void **state)
{
	CLEANUP(findings_release) struct findings f = { 0 };
	CLEANUP(buf_release) struct buf text = { 0 };
	struct error e;

	(void)state;
	for (size_t i = 0; i < FINDINGS_MAX + 3; i++)
		findings_add(&f, &(struct finding){ .file = "a",
						    .line = FINDINGS_MAX + 3 - i,
						    .column = 1,
						    .found = "b\x1b[31m",
						    .allowed = "c" });
	assert_int_equal(f.count, FINDINGS_MAX);
	assert_int_equal(f.more, 3);
	findings_sort(&f);
	finding_print(&f.items[0], &text);
	assert_string_equal(text.text, "a:4:1: found b\\x1b[31m; allowed: c");
	assert_false(findings_error(&f, &e));
	assert_int_equal(e.kind, ERROR_INVALID);
	assert_non_null(strstr(e.message, "and 52 more"));
}

static bool parse_all(struct parsed *p, const char *text, size_t nodes)
{
	*p = (struct parsed){ 0 };
	struct yaml_source source = {
		"x.yaml",
		text,
		strlen(text),
		{ .bytes = 1 << 20, .nodes = nodes, .depth = 64, .documents = 10, .takes_all = true }
	};

	p->ok = yaml_parse_source(&source, &p->arena, &p->docs, &p->findings);
	return p->ok;
}

static const char *value_at(const struct parsed *p, const char *map, const char *key)
{
	const struct yaml_node *n = yaml_child(yaml_child(p->docs.roots[0], map), key);

	return n && n->kind == YAML_SCALAR ? n->text : NULL;
}

static void aliases_are_written_out(void **state)
{
	CLEANUP(parsed_release) struct parsed p;

	(void)state;
	assert_true(parse_all(&p,
			      "a: &a { x: 1, y: { z: 2 } }\nb: *a\nc: { <<: *a, x: 3, w: 4 }\n"
			      "d: &d { v: 5 }\ne: { <<: [ *d, *a ], u: !tag 6 }\n",
			      100));
	assert_string_equal(value_at(&p, "b", "x"), "1");
	assert_string_equal(value_at(&p, "c", "x"), "3");
	assert_string_equal(value_at(&p, "c", "w"), "4");
	assert_string_equal(value_at(&p, "e", "v"), "5");
	assert_string_equal(value_at(&p, "e", "x"), "1");
	assert_string_equal(value_at(&p, "e", "u"), "6");
	const struct yaml_node *c = yaml_child(p.docs.roots[0], "c");
	assert_null(yaml_child(c, "<<"));
	assert_int_equal(c->count, 3);
	assert_string_equal(yaml_child(yaml_child(c, "y"), "z")->text, "2");
}

static void aliases_that_cannot_be_are_refused(void **state)
{
	static const char *const texts[] = { "a: *b\n", "a: &a [ *a ]\n", "a: &a { b: *a }\n", "a: &a 1\n*a: 2\n",
					     "a: &a 1\n---\nb: *a\n" };

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		CLEANUP(parsed_release) struct parsed p;
		assert_false(parse_all(&p, texts[i], 100));
		assert_int_equal(p.findings.count, 1);
	}
}

static void aliases_cost_what_they_make(void **state)
{
	CLEANUP(parsed_release) struct parsed p;
	CLEANUP(buf_release) struct buf text = { 0 };

	(void)state;
	buf_text(&text, "a0: &a0 [ 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 ]\n");
	for (int i = 1; i < 12; i++)
		buf_printf(&text, "a%d: &a%d [ *a%d, *a%d, *a%d, *a%d ]\n", i, i, i - 1, i - 1, i - 1, i - 1);
	assert_false(parse_all(&p, text.text, 100000));
	assert_string_equal(p.findings.items[0].found, "aliases that make too much, or too deep, a text");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_know_their_place),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(caps),
		cmocka_unit_test(meanings),
		cmocka_unit_test(findings_are_capped_sorted_and_visible),
		cmocka_unit_test(aliases_are_written_out),
		cmocka_unit_test(aliases_that_cannot_be_are_refused),
		cmocka_unit_test(aliases_cost_what_they_make),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
