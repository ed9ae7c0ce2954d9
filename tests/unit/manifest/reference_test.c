/* The committed copies are what the table says, and the examples are valid. Runs in the root of the repository. */
#include "controller/manifest/reference.h"

#include "base/file.h"
#include "tests/unit/manifest/loaded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void expect_copy(const char *path, void (*write)(struct buf *))
{
	CLEANUP(buf_release) struct buf made = { 0 };
	CLEANUP(buf_release) struct buf kept = { 0 };
	struct error e = { 0 };

	write(&made);
	if (!file_read(path, 1 << 20, &kept, &e))
		fail_msg("%s", e.message);
	if (strcmp(made.text, kept.text) != 0)
		fail_msg("%s is old; write it again with preheat check --print-reference or --print-schema", path);
}

static void copies_are_current(void **state)
{
	(void)state;
	expect_copy("docs/manifest.md", manifest_write_reference);
	expect_copy("docs/manifest.schema.json", manifest_write_json_schema);
}

static void expect_help(const struct schema_table *t)
{
	for (size_t i = 0; i < t->count; i++) {
		assert_true(*t->rows[i].help);
		if (t->rows[i].table)
			expect_help(t->rows[i].table);
	}
}

static void every_key_has_a_meaning(void **state)
{
	(void)state;
	expect_help(&warm_pool_table);
}

/* Defaults stand as text in the table, where no compiler looks. */
static void defaults_are_readable(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	CLEANUP(findings_release) struct findings f = { 0 };
	struct warm_pool pool = { 0 };
	struct group_text group = { 0 };

	(void)state;
	schema_read(&warm_pool_table, NULL, &pool, &a, &f);
	schema_read(&group_table, NULL, &group, &a, &f);
	assert_int_equal(f.count, 0);
}

static void examples_are_valid(void **state)
{
	static const char *const paths[] = { "examples/first-try/pool.yaml",	 "examples/three-pools/pools.yaml",
					     "examples/scale-to-zero/pool.yaml", "examples/queues",
					     "examples/aks/pool.yaml",		 "examples/default-pool/pool.yaml" };

	(void)state;
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		struct loaded l = { 0 };
		if (!manifest_load(&paths[i], 1, &l.arena, &l.manifest, &l.findings, &l.error))
			fail_msg("%s", l.error.message);
		loaded_release(&l);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_are_current),
		cmocka_unit_test(every_key_has_a_meaning),
		cmocka_unit_test(defaults_are_readable),
		cmocka_unit_test(examples_are_valid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
