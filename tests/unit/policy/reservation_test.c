/* A node group whose machines end at a known time: when nothing starts there any more, when it is left, and that the
 * decision says so. */
#include "controller/policy/reservation.h"
#include "tests/unit/policy/toy.h"

static void the_end_says_from_when_on_nothing_starts_and_when_it_is_left(void **state)
{
	const struct pool_spec quick = { .scale_down_after = 5 * MINUTE }, automatic = { 0 };
	struct reservation r = { 0 };

	(void)state;
	reservation_add(&r, &quick, 0, 6 * MINUTE);
	assert_int_equal(r.ends_at, 0);
	assert_false(reservation_is_closed(&r, DAY) || reservation_is_left(&r, DAY));
	reservation_add(&r, &quick, DAY, 6 * MINUTE);
	assert_int_equal(r.ends_at, DAY);
	assert_int_equal(r.leaves_at, DAY - 56 * MINUTE);
	assert_int_equal(r.closes_at, DAY - 67 * MINUTE);
	assert_false(reservation_is_closed(&r, DAY - 67 * MINUTE - 1));
	assert_true(reservation_is_closed(&r, DAY - 67 * MINUTE));
	assert_false(reservation_is_left(&r, DAY - 56 * MINUTE - 1));
	assert_true(reservation_is_left(&r, DAY - 56 * MINUTE));
	/* The pool that takes longest says when. */
	reservation_add(&r, &automatic, DAY, 10 * MINUTE);
	assert_int_equal(r.leaves_at, DAY - 60 * MINUTE);
	assert_int_equal(r.closes_at, DAY - 80 * MINUTE);
	reservation_add(&r, &quick, DAY, MINUTE);
	assert_int_equal(r.leaves_at, DAY - 60 * MINUTE);
	assert_int_equal(r.closes_at, DAY - 80 * MINUTE);
}

/* One that is over, or nearer than all that, is closed and left at once. */
static void an_end_that_is_near_or_past_is_heeded_at_once(void **state)
{
	struct reservation r = { 0 };

	(void)state;
	reservation_add(&r, &(struct pool_spec){ 0 }, MINUTE, 10 * MINUTE);
	assert_true(reservation_is_closed(&r, MINUTE) && reservation_is_left(&r, MINUTE));
}

static void what_is_needed_near_the_end_starts_elsewhere(void **state)
{
	struct toy t;

	(void)state;
	toy_init(&t, 2);
	toy_begin(&t, 5);
	t.groups[0].min_nodes = 8; /* is no reason either */
	t.ready[0] = 8;
	t.ends_at[0] = t.now + 6 * HOUR;
	t.demand = 4;
	toy_run(&t, 4 * HOUR);
	assert_int_equal(t.ready[1], 0);
	assert_int_equal(t.plan.groups[0].ends_at, t.ends_at[0]);
	assert_true(t.plan.groups[0].closes_at < t.plan.groups[0].leaves_at);
	assert_true(t.plan.groups[0].leaves_at <= t.ends_at[0] - RESERVATION_EMPTY_BEFORE);
	assert_int_equal(t.plan.groups[0].held_by, LIMIT_NONE);
	while (t.now < t.plan.groups[0].closes_at)
		toy_tick(&t);
	assert_int_equal(t.plan.groups[0].held_by, LIMIT_RESERVATION);
	int64_t there = t.ready[0];
	t.demand = 20;
	toy_run(&t, 30 * MINUTE);
	assert_true(t.ready[0] <= there);
	assert_true(t.ready[1] >= 12);
	assert_int_equal(t.plan.groups[1].ends_at, 0);
	toy_end(&t);
}

static void without_another_group_the_end_is_what_holds_the_decision(void **state)
{
	struct toy t;

	(void)state;
	toy_init(&t, 1);
	toy_begin(&t, 5);
	t.demand = 4;
	toy_run(&t, HOUR);
	t.ends_at[0] = t.now + HOUR;
	t.demand = 20;
	toy_run(&t, 10 * MINUTE);
	assert_int_equal(t.plan.decision.held_by, LIMIT_RESERVATION);
	assert_int_equal(t.plan.groups[0].cold, 0);
	assert_int_equal(t.plan.groups[0].release, 0);
	toy_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_end_says_from_when_on_nothing_starts_and_when_it_is_left),
		cmocka_unit_test(an_end_that_is_near_or_past_is_heeded_at_once),
		cmocka_unit_test(what_is_needed_near_the_end_starts_elsewhere),
		cmocka_unit_test(without_another_group_the_end_is_what_holds_the_decision),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
