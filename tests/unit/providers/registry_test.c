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

/* Whoever adds one adds its page and its row of the conformance suite. */
static void every_provider_has_a_page_and_a_conformance_test(void **state)
{
	static const char *const files[] = {
#define PROVIDER(name) #name,
#include "providers/list.def"
#undef PROVIDER
	};
	const struct provider_ops *p;

	(void)state;
	for (size_t i = 0; (p = provider_at(i)); i++) {
		char path[128], text[1 << 16], heading[64];
		snprintf(path, sizeof path, "tests/unit/providers/%s_test.c", files[i]);
		FILE *test = fopen(path, "r"), *page = fopen("docs/providers.md", "r");
		assert_non_null(test);
		assert_non_null(page);
		text[fread(text, 1, sizeof text - 1, page)] = '\0';
		snprintf(heading, sizeof heading, "\n## `%s`", p->name);
		assert_non_null(strstr(text, heading));
		fclose(test);
		fclose(page);
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
