/* How long limits held pools is what their ticks add up to. */
#include "state/held.h"
#include "tests/unit/state/history_made.h"

enum { TICKS = 300 };

static void ticks_of_a_limit_add_up(void **state)
{
	static const struct {
		struct held_ticks asked;
		int64_t ticks;
	} cases[] = { { { 0, TICKS - 1 }, 6 }, { { 1, 1 }, 1 }, { { 2, 50 }, 0 }, { { 51, 101 }, 2 } };

	(void)state;
	write_file(TICKS, 10);
	struct history *h = open_file();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct held_time *held;
		struct error e = { 0 };
		size_t count;

		assert_true(held_read(h, cases[i].asked, &a, &held, &count, &e));
		assert_int_equal(count, cases[i].ticks ? 1 : 0);
		if (!count)
			continue;
		assert_int_equal(held->pool, 1);
		assert_int_equal(held->limit, LIMIT_BUDGET);
		assert_int_equal(held->ticks, cases[i].ticks);
		assert_int_equal(held->length, cases[i].ticks * TICK);
	}
	history_close(h);
}

static void what_cannot_be_is_refused(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct held_time *held;
	struct error e = { 0 };
	size_t count;

	(void)state;
	write_file(TICKS, 10);
	sql("UPDATE tick SET interval = -15000");
	struct history *h = open_file();
	assert_false(held_read(h, (struct held_ticks){ 0, TICKS - 1 }, &a, &held, &count, &e));
	assert_int_equal(e.kind, ERROR_INVALID);
	assert_non_null(strstr(e.message, "damaged"));
	history_close(h);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(ticks_of_a_limit_add_up),
		cmocka_unit_test(what_cannot_be_is_refused),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
