/* Whom the cloud may not end by its own choice, and when that is lifted. */
#include "state/guard_record.h"
#include "tests/unit/loop/played_group.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* --- a record that finds no room --- */

static bool is_disk_full;

bool __real_guard_record_save(struct history *h, const char *group, const char *const *machines, size_t count,
			      struct error *e);
bool __wrap_guard_record_save(struct history *h, const char *group, const char *const *machines, size_t count,
			      struct error *e);
bool __wrap_guard_record_save(struct history *h, const char *group, const char *const *machines, size_t count,
			      struct error *e)
{
	return is_disk_full ? error_set(e, ERROR_UNAVAILABLE, "the disk is full")
			    : __real_guard_record_save(h, group, machines, count, e);
}

bool __real_guard_record_forget(struct history *h, const char *group, struct error *e);
bool __wrap_guard_record_forget(struct history *h, const char *group, struct error *e);
bool __wrap_guard_record_forget(struct history *h, const char *group, struct error *e)
{
	return is_disk_full ? error_set(e, ERROR_UNAVAILABLE, "the disk is full")
			    : __real_guard_record_forget(h, group, e);
}

static bool is_recorded(const struct stage_of_test *t)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const char **machines;
	size_t count;
	struct error e = { 0 };

	assert_true(guard_record_find(t->history, "g5", &a, &machines, &count, &e));
	return machines;
}

/* Two machines that serve, neither of them protected. */
static struct stage_of_test *two_run(void **state)
{
	struct stage_of_test *t = *state;

	cloud.abilities |= PROVIDER_PROTECTS;
	cloud.exposed = 2;
	played_run(t, 2);
	return t;
}

static void expect_protect(bool on)
{
	played_expect(PROVIDER_PROTECT, on);
	assert_int_equal(cloud.change->desired, on);
}

/* The call in progress is over, and the next look shows what came of it. */
static void protected(struct stage_of_test *t)
{
	expect_protect(true);
	cloud.guarded = 2;
	cloud.exposed = 0;
	played_answer(ERROR_NONE);
	played_look(t);
	assert_null(cloud.change);
}

static void machines_are_protected_by_the_first_look(void **state)
{
	struct stage_of_test *t = two_run(state);

	protected(t);
	clock_turn(&t->clock, 15 * SECOND);
	cloud.exposed = 1;
	played_add_machine(MACHINE_RUNNING);
	cloud.desired = 3;
	played_look(t);
	expect_protect(true);
	played_answer(ERROR_NONE);
}

/* Reads that lag show who was exposed before: not asked for again at once, but for one that is new. */
static void a_read_of_before_protects_nobody_again(void **state)
{
	struct stage_of_test *t = two_run(state);

	cloud.exposed = 2;
	expect_protect(true);
	played_answer(ERROR_NONE);
	for (int i = 0; i < 3; i++) {
		played_look(t);
		assert_null(cloud.change);
		clock_turn(&t->clock, 5 * SECOND);
	}
	played_look(t);
	expect_protect(true);
	played_answer(ERROR_NONE);
}

/* Who lowers it against us may; what is not protected there is left to that. */
static void a_group_that_is_contested_is_left_as_it_is(void **state)
{
	struct stage_of_test *t = *state;

	t->g.contention.is_held = true;
	two_run(state);
	assert_null(cloud.change);
	t->g.contention.is_held = false;
	played_look(t);
	expect_protect(true);
	played_answer(ERROR_NONE);
}

static void a_refused_group_is_left_as_it_is(void **state)
{
	cloud.is_refused = true;
	two_run(state);
	assert_null(cloud.change);
}

static void a_call_that_fails_is_not_repeated_at_once(void **state)
{
	struct stage_of_test *t = two_run(state);

	expect_protect(true);
	played_answer(ERROR_AUTH);
	played_look(t);
	assert_null(cloud.change);
	clock_turn(&t->clock, 10 * MINUTE);
	played_look(t);
	expect_protect(true);
	played_answer(ERROR_NONE);
}

static void what_is_handed_over_is_protected_no_more(void **state)
{
	struct stage_of_test *t = two_run(state);

	protected(t);
	node_group_hand_over(&t->g);
	expect_protect(false);
	node_group_stop(&t->g); /* to the end */
	played_answer(ERROR_NONE);
	assert_null(cloud.change);
}

/* After what is under way, and only while we may. */
static void nothing_is_lifted_by_who_leads_no_more(void **state)
{
	struct stage_of_test *t = two_run(state);

	expect_protect(true);
	node_group_hand_over(&t->g);
	t->is_deposed = true;
	played_answer(ERROR_NONE);
	assert_null(cloud.change);
}

static void what_is_under_way_ends_first(void **state)
{
	struct stage_of_test *t = two_run(state);

	expect_protect(true);
	node_group_hand_over(&t->g);
	played_answer(ERROR_NONE);
	expect_protect(false);
	played_answer(ERROR_NONE);
	assert_null(cloud.change);
}

static void nothing_is_lifted_where_nothing_may_change(void **state)
{
	struct stage_of_test *t = two_run(state);

	protected(t);
	t->context.is_barred = true;
	node_group_hand_over(&t->g);
	assert_null(cloud.change);
}

/* Its pool does not act any more. */
static void pause_pool(struct stage_of_test *t)
{
	static struct pool_spec paused;
	static struct fleet_spec fleet;

	paused = t->context.fleet->pools[0];
	paused.mode = MODE_PAUSED;
	fleet = *t->context.fleet;
	fleet.pools = &paused;
	t->context.fleet = &fleet;
}

static void what_is_not_ours_is_neither_protected_nor_handed_over(void **state)
{
	struct stage_of_test *t = *state;

	pause_pool(t);
	two_run(state);
	assert_null(cloud.change);
	cloud.exposed = 0;
	cloud.guarded = 2;
	played_look(t);
	node_group_hand_over(&t->g);
	assert_null(cloud.change);
}

/* By an earlier life, of a group that is not ours any more: until it is, and once. */
static void what_was_left_protected_is_lifted(void **state)
{
	struct stage_of_test *t = *state;
	struct error e = { 0 };

	assert_true(guard_record_save(t->history, "g5", NULL, 0, &e));
	pause_pool(t);
	cloud.guarded = 2;
	cloud.abilities |= PROVIDER_PROTECTS;
	played_run(t, 2);
	expect_protect(false);
	played_answer(ERROR_THROTTLED);
	played_look(t);
	assert_null(cloud.change);
	clock_turn(&t->clock, 10 * MINUTE);
	played_look(t);
	expect_protect(false);
	cloud.guarded = 0;
	played_answer(ERROR_NONE);
	cloud.guarded = 2; /* by somebody's hand */
	clock_turn(&t->clock, 10 * MINUTE);
	played_look(t);
	assert_null(cloud.change);
}

/* What somebody protects there later is theirs. */
static void where_nothing_was_left_protected_it_is_forgotten(void **state)
{
	struct stage_of_test *t = *state;
	struct error e = { 0 };

	assert_true(guard_record_save(t->history, "g5", NULL, 0, &e));
	pause_pool(t);
	cloud.abilities |= PROVIDER_PROTECTS;
	played_run(t, 2);
	assert_null(cloud.change);
	assert_false(is_recorded(t));
}

/* Until it is forgotten it says nothing of whose is whose. */
static void what_is_not_forgotten_at_once_is_forgotten_later(void **state)
{
	struct stage_of_test *t = *state;
	struct error e = { 0 };

	assert_true(guard_record_save(t->history, "g5", NULL, 0, &e));
	pause_pool(t);
	cloud.guarded = 2;
	cloud.abilities |= PROVIDER_PROTECTS;
	played_run(t, 2);
	expect_protect(false);
	is_disk_full = true;
	played_answer(ERROR_NONE);
	cloud.guarded = 2; /* by somebody's hand */
	for (int i = 0; i < 3; i++) {
		played_look(t);
		assert_null(cloud.change);
		assert_true(is_recorded(t));
		clock_turn(&t->clock, MINUTE);
	}
	is_disk_full = false;
	played_look(t);
	assert_null(cloud.change);
	assert_false(is_recorded(t));
}

/* A group that is left for good does so until it is forgotten. */
static void what_was_handed_over_is_forgotten_later_too(void **state)
{
	struct stage_of_test *t = two_run(state);
	struct error e = { 0 };

	protected(t);
	node_group_hand_over(&t->g);
	expect_protect(false);
	is_disk_full = true;
	played_answer(ERROR_NONE);
	assert_true(node_group_is_idle(&t->g));
	assert_false(node_group_forget_guard(&t->g, &e));
	assert_true(is_recorded(t));
	is_disk_full = false;
	assert_true(node_group_forget_guard(&t->g, &e));
	assert_false(is_recorded(t));
}

/* For the next life, and for who tells that a group is left as it is. */
static void what_could_not_be_lifted_stays_recorded(void **state)
{
	struct stage_of_test *t = two_run(state);
	struct error e = { 0 };

	protected(t);
	node_group_hand_over(&t->g);
	expect_protect(false);
	played_answer(ERROR_UNAVAILABLE);
	assert_true(t->g.must_unguard);
	assert_true(node_group_forget_guard(&t->g, &e));
	assert_true(is_recorded(t));
}

/* Else a next life would take ours for somebody's. */
static void nothing_is_protected_before_it_is_known_whose_is_whose(void **state)
{
	struct stage_of_test *t = *state;

	is_disk_full = true;
	two_run(state);
	assert_null(cloud.change);
	is_disk_full = false;
	clock_turn(&t->clock, MINUTE);
	played_look(t);
	expect_protect(true);
	played_answer(ERROR_NONE);
}

static void what_is_not_known_as_ours_is_not_lifted(void **state)
{
	struct stage_of_test *t = *state;

	is_disk_full = true;
	two_run(state);
	is_disk_full = false;
	node_group_hand_over(&t->g);
	assert_null(cloud.change);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, played_set_up, played_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(machines_are_protected_by_the_first_look),
		TEST(a_read_of_before_protects_nobody_again),
		TEST(a_group_that_is_contested_is_left_as_it_is),
		TEST(a_refused_group_is_left_as_it_is),
		TEST(a_call_that_fails_is_not_repeated_at_once),
		TEST(what_is_handed_over_is_protected_no_more),
		TEST(nothing_is_lifted_by_who_leads_no_more),
		TEST(what_is_under_way_ends_first),
		TEST(what_is_not_ours_is_neither_protected_nor_handed_over),
		TEST(what_was_left_protected_is_lifted),
		TEST(where_nothing_was_left_protected_it_is_forgotten),
		TEST(what_is_not_forgotten_at_once_is_forgotten_later),
		TEST(what_was_handed_over_is_forgotten_later_too),
		TEST(what_could_not_be_lifted_stays_recorded),
		TEST(nothing_is_lifted_where_nothing_may_change),
		TEST(nothing_is_protected_before_it_is_known_whose_is_whose),
		TEST(what_is_not_known_as_ours_is_not_lifted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
