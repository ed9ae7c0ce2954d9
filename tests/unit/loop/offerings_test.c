/* What of a group is out of stock, and for how long. */
#include "controller/loop/provider_backoff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static struct offerings o;

static int set_up(void **state)
{
	(void)state;
	o = (struct offerings){ 0 };
	return 0;
}

static void the_only_zone_that_is_known_is_all_of_it(void **state)
{
	(void)state;
	offerings_failed(&o, "a", "", 1000, MINUTE);
	assert_int_equal(offerings_wait(&o, 1000), MINUTE);
	assert_int_equal(offerings_wait(&o, 1000 + MINUTE), 0); /* probed again */
}

static void another_zone_may_have_some(void **state)
{
	(void)state;
	offerings_came(&o, "a", "p5");
	offerings_came(&o, "b", "p5");
	offerings_failed(&o, "a", "p5", 1000, HOUR);
	assert_int_equal(offerings_wait(&o, 1000), 0);
	assert_int_equal(offerings_blocked(&o, 1000), 1);
	offerings_failed(&o, "b", "p5", 2000, MINUTE);
	assert_int_equal(offerings_wait(&o, 2000), MINUTE); /* the one that is back first */
}

static void a_zone_without_a_type_means_all_types_there(void **state)
{
	(void)state;
	offerings_came(&o, "a", "p5");
	offerings_came(&o, "a", "p4");
	offerings_came(&o, "b", "p5");
	offerings_failed(&o, "a", "", 0, HOUR);
	assert_int_equal(offerings_blocked(&o, 0), 3); /* both types, and the zone itself */
	assert_int_equal(offerings_wait(&o, 0), 0);
	offerings_failed(&o, "", "p5", 0, MINUTE);
	assert_int_equal(offerings_wait(&o, 0), MINUTE);
}

static void a_machine_that_came_ends_it(void **state)
{
	(void)state;
	offerings_failed(&o, "a", "p5", 0, HOUR);
	offerings_came(&o, "a", "p5");
	assert_int_equal(offerings_wait(&o, 1), 0);
}

static void what_fails_again_and_again_is_out_whatever_is_thought(void **state)
{
	(void)state;
	offerings_came(&o, "b", "p5");
	for (int i = 0; i < MISSES_MOST; i++) {
		assert_int_equal(offerings_wait(&o, i), 0);
		offerings_failed(&o, "a", "p5", i, HOUR);
	}
	assert_true(offerings_wait(&o, MISSES_MOST) > 0);
	offerings_came(&o, "b", "p5");
	assert_int_equal(offerings_wait(&o, MISSES_MOST), 0);
}

static void more_than_can_be_told_apart_are_not_forgotten_to_work(void **state)
{
	char zone[80];

	(void)state;
	for (int i = 0; i < 3 * OFFERINGS_MOST; i++) {
		snprintf(zone, sizeof zone, "a-zone-with-a-name-that-is-longer-than-any-real-one-%d", i);
		offerings_failed(&o, zone + i % 50, "p5", 0, HOUR);
	}
	assert_true(o.count <= OFFERINGS_MOST);
	assert_int_equal(offerings_wait(&o, 0), HOUR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_only_zone_that_is_known_is_all_of_it, set_up),
		cmocka_unit_test_setup(another_zone_may_have_some, set_up),
		cmocka_unit_test_setup(a_zone_without_a_type_means_all_types_there, set_up),
		cmocka_unit_test_setup(a_machine_that_came_ends_it, set_up),
		cmocka_unit_test_setup(what_fails_again_and_again_is_out_whatever_is_thought, set_up),
		cmocka_unit_test_setup(more_than_can_be_told_apart_are_not_forgotten_to_work, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
