/* The CustomResourceDefinition says what the table says. What a server makes of it: tests/rig/crd_test.sh. */
#include "controller/manifest/reference.h"

#include "base/file.h"
#include "base/yaml.h"
#include "controller/manifest/warm_pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

static void the_copy_is_current(void **state)
{
	CLEANUP(buf_release) struct buf made = { 0 };
	CLEANUP(buf_release) struct buf kept = { 0 };
	struct error e = { 0 };

	(void)state;
	manifest_write_crd(&made);
	if (!file_read("deploy/base/crd.yaml", 1 << 20, &kept, &e))
		fail_msg("%s", e.message);
	if (strcmp(made.text, kept.text) != 0)
		fail_msg("deploy/base/crd.yaml is old; write it again with preheat crd >deploy/base/crd.yaml");
}

static const struct yaml_node *under(const struct yaml_node *node, const char *key)
{
	const struct yaml_node *found = node && node->kind == YAML_MAP ? yaml_child(node, key) : NULL;

	if (!found)
		fail_msg("nothing at '%s'", key);
	return found;
}

static bool lists(const struct yaml_node *list, const char *text)
{
	for (const struct yaml_node *n = list ? list->first : NULL; n; n = n->next)
		if (!strcmp(n->text, text))
			return true;
	return false;
}

static void expect_table(const struct yaml_node *schema, const struct schema_table *t)
{
	const struct yaml_node *properties = under(schema, "properties"), *required = yaml_child(schema, "required");

	assert_string_equal(under(schema, "type")->text, "object");
	assert_int_equal(properties->count, t->count);
	for (size_t i = 0; i < t->count; i++) {
		const struct schema_row *row = &t->rows[i];
		const struct yaml_node *value = under(properties, row->key);
		assert_string_equal(under(value, "description")->text, row->help);
		assert_int_equal(lists(required, row->key), row->is_required);
		if (row->type == SCHEMA_MAP)
			expect_table(value, row->table);
		else if (row->type == SCHEMA_LIST)
			expect_table(under(value, "items"), row->table);
	}
}

static void every_key_of_the_table_is_there(void **state)
{
	CLEANUP(buf_release) struct buf made = { 0 };
	struct arena a = { 0 };
	struct findings f = { 0 };
	struct yaml_documents docs;

	(void)state;
	manifest_write_crd(&made);
	assert_true(yaml_parse("crd", made.text, made.len, &a, &docs, &f));
	assert_int_equal(docs.count, 1);
	const struct yaml_node *schema =
		under(under(under(under(docs.roots[0], "spec"), "versions")->first, "schema"), "openAPIV3Schema");
	for (size_t i = 0; i < warm_pool_table.count; i++)
		if (!strcmp(warm_pool_table.rows[i].key, "spec"))
			expect_table(under(under(schema, "properties"), "spec"), warm_pool_table.rows[i].table);
	findings_release(&f);
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_copy_is_current),
		cmocka_unit_test(every_key_of_the_table_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
