#include "providers/provider.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void every_provider_is_whole_and_found_by_its_name(void **state)
{
	const struct provider_ops *p;
	size_t count = 0;

	(void)state;
	for (; (p = provider_at(count)); count++) {
		assert_true(p->name && *p->name && p->open && p->close && p->start && p->cancel);
		assert_ptr_equal(provider_find(p->name), p);
	}
	assert_true(count > 0);
	assert_null(provider_find("none"));
	assert_null(provider_find(""));
}

static bool file_holds(const char *path, const char *text)
{
	static char content[1 << 17];
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	content[fread(content, 1, sizeof content - 1, file)] = '\0';
	fclose(file);
	return strstr(content, text);
}

/* Whoever adds one adds its page and its row of the conformance suite; only `external` asks no cloud for anything. */
static void every_provider_has_a_page_and_a_conformance_test(void **state)
{
	static const char *const suites[] = { "tests/unit/providers/simulated_test.c",
					      "tests/unit/providers/eks_test.c", "tests/unit/providers/aks_test.c",
					      "tests/unit/providers/objects_test.c" };
	const struct provider_ops *p;

	(void)state;
	for (size_t i = 0; (p = provider_at(i)); i++) {
		char heading[64], row[64];
		bool is_run = strcmp(p->name, "external") == 0;
		snprintf(heading, sizeof heading, "\n## `%s`", p->name);
		assert_true(file_holds("docs/providers.md", heading));
		snprintf(row, sizeof row, ".provider = \"%s\"", p->name);
		for (size_t k = 0; k < sizeof suites / sizeof *suites; k++)
			is_run |= file_holds(suites[k], row);
		if (!is_run)
			fail_msg("%s does not run the conformance suite", p->name);
	}
}

static void verbs_and_states_have_names(void **state)
{
	(void)state;
	for (int i = 0; i < PROVIDER_VERB_COUNT; i++)
		assert_string_not_equal(provider_verb_name((enum provider_verb)i), "unknown");
	for (int i = 0; i < MACHINE_STATE_COUNT; i++)
		assert_string_not_equal(machine_state_name((enum machine_state)i), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_provider_is_whole_and_found_by_its_name),
		cmocka_unit_test(every_provider_has_a_page_and_a_conformance_test),
		cmocka_unit_test(verbs_and_states_have_names),
	};

	return cmocka_run_group_tests_name("registry", tests, NULL, NULL);
}
