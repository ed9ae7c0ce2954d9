/* Several groups in one look: who is named, who is served, and when what was told is not believed any more. */
#include "providers/eks_together.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct eks_settings ireland = { .region = "eu-west-1" }, paris = { .region = "eu-west-3" },
				 ours = { .region = "eu-west-1", .endpoint = "https://localhost" };

static void keep(struct eks_together *t, const struct eks_settings *s, const char *group, millis now)
{
	const struct eks_told told = {
		.text = group, .len = strlen(group), .era = eks_together_era(t), .answered_at = now
	};

	eks_together_keep(t, s, group, now, &told);
}

static void those_of_the_place_are_named_once_they_are_known(void **state)
{
	struct eks_together *t = eks_together_open();
	const char *names[EKS_TOGETHER];

	(void)state;
	assert_int_equal(eks_together_names(t, &ireland, "a", 0, names), 1);
	keep(t, &ireland, "a", 0);
	keep(t, &paris, "far", 0);
	keep(t, &ours, "own", 0);
	assert_int_equal(eks_together_names(t, &ireland, "b", 0, names), 1); /* alone, until it was found */
	assert_string_equal(names[0], "b");
	keep(t, &ireland, "b", 0);
	assert_int_equal(eks_together_names(t, &ireland, "b", SECOND, names), 2);
	assert_string_equal(names[0], "b");
	assert_string_equal(names[1], "a");
	assert_int_equal(eks_together_names(t, &ireland, "b", HOUR, names), 1); /* nobody looks at the other any more */
	eks_together_close(t);
}

static void an_answer_serves_each_other_group_once_and_for_seconds(void **state)
{
	struct eks_together *t = eks_together_open();

	(void)state;
	keep(t, &ireland, "a", 0);
	keep(t, &ireland, "b", 0);
	keep(t, &ireland, "c", 0); /* alone */
	assert_null(eks_together_take(t, &ireland, "a", 0));
	keep(t, &ireland, "c", 0);
	assert_null(eks_together_take(t, &ireland, "c", 0)); /* it asked itself */
	assert_null(eks_together_take(t, &paris, "a", 0));
	const struct eks_told *told = eks_together_take(t, &ireland, "a", SECOND);
	assert_non_null(told);
	assert_memory_equal(told->text, "c", told->len);
	assert_null(eks_together_take(t, &ireland, "a", SECOND));
	assert_null(eks_together_take(t, &ireland, "b", MINUTE));
	eks_together_close(t);
}

static void a_change_makes_all_of_it_old(void **state)
{
	struct eks_together *t = eks_together_open();

	(void)state;
	keep(t, &ireland, "a", 0);
	keep(t, &ireland, "b", 0);
	keep(t, &ireland, "b", 0);
	eks_together_changed(t);
	assert_null(eks_together_take(t, &ireland, "a", 0));
	uint64_t before = eks_together_era(t);
	eks_together_changed(t); /* while the request was on its way */
	eks_together_keep(t, &ireland, "b", 0, &(struct eks_told){ .text = "b", .len = 1, .era = before });
	assert_null(eks_together_take(t, &ireland, "a", 0));
	keep(t, &ireland, "b", 0);
	assert_non_null(eks_together_take(t, &ireland, "a", 0));
	eks_together_close(t);
}

static void many_groups_are_asked_for_in_turns(void **state)
{
	struct eks_together *t = eks_together_open();
	const char *names[EKS_TOGETHER];
	char name[16];

	(void)state;
	for (int i = 0; i < 400; i++) {
		snprintf(name, sizeof name, "g%d", i);
		keep(t, &ireland, name, 0);
	}
	assert_int_equal(eks_together_names(t, &ireland, "g3", 0, names), EKS_TOGETHER);
	assert_string_equal(names[1], "g4");
	assert_int_equal(eks_together_names(t, &ireland, "g399", 0, names), 1); /* beyond what is remembered: alone */
	eks_together_close(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(those_of_the_place_are_named_once_they_are_known),
		cmocka_unit_test(an_answer_serves_each_other_group_once_and_for_seconds),
		cmocka_unit_test(a_change_makes_all_of_it_old),
		cmocka_unit_test(many_groups_are_asked_for_in_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
