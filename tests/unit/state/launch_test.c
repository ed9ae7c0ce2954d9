/* What changes something at a provider is on disk before it happens. */
#include "state/launch.h"
#include "tests/unit/state/history_made.h"

static struct history *create(void)
{
	struct history_setup setup = { path, "", &fleet, "0.1.0", "preheat", "a test", 1, HOUR };
	struct error e = { 0 };

	unlink(path);
	struct history *h = history_create(&setup, &e);
	assert_string_equal(e.message, "");
	return h;
}

static void they_are_open_until_they_end(void **state)
{
	static const char *const ids[] = { "i-1", "i-2" };
	struct launch grow = { .token = "t-1", .group = "spot", .verb = 1, .target = 3, .term = 7, .asked_at = start };
	struct launch drop = {
		.token = "t-2", .group = "spot", .verb = 2, .machines = ids, .machine_count = 2, .asked_at = start + 1
	};
	CLEANUP(arena_release) struct arena a = { 0 };
	struct launch *open;
	struct error e;
	size_t count;
	struct made m;

	(void)state;
	struct history *h = create();
	assert_true(launch_save(h, &grow, &e));
	make(&m, 0);
	assert_true(history_append(h, &m.snapshot, &m.plan, &e));
	assert_true(launch_save(h, &drop, &e));
	assert_false(launch_save(h, &grow, &e));
	assert_int_equal(e.kind, ERROR_CONFLICT);
	history_close(h); /* a crash: what was saved is there */
	h = open_file();
	assert_true(launch_open_ones(h, &a, &open, &count, &e));
	assert_int_equal(count, 2);
	assert_string_equal(open[0].token, "t-1");
	assert_int_equal(open[0].target, 3);
	assert_int_equal(open[0].term, 7);
	assert_int_equal(open[0].tick, -1);
	assert_int_equal(open[0].machine_count, 0);
	assert_null(open[0].outcome);
	assert_int_equal(open[1].verb, 2);
	assert_int_equal(open[1].tick, 0);
	assert_int_equal(open[1].machine_count, 2);
	assert_string_equal(open[1].machines[1], "i-2");
	history_close(h);
}

/* A file of before operations were kept, that nobody writes any more. */
static void older_files_have_none(void **state)
{
	struct launch one = { .token = "t-1", .group = "spot", .verb = 1, .target = 3, .asked_at = start };
	const struct launch_filter all = { start, start + 9, NULL, 10 };
	CLEANUP(arena_release) struct arena a = { 0 };
	struct launch *found;
	struct error e;
	size_t count;

	(void)state;
	struct history *h = create();
	assert_true(launch_save(h, &one, &e));
	history_close(h);
	sqlite3 *db;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "ALTER TABLE launch DROP COLUMN operation", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	h = open_file();
	assert_true(launch_find(h, &all, &a, &found, &count, &e));
	assert_int_equal(count, 1);
	assert_string_equal(found[0].operation, "");
	history_close(h);
}

static void ended_ones_are_told(void **state)
{
	struct launch one = { .token = "t-1", .group = "spot", .verb = 1, .target = 3, .asked_at = start };
	struct launch two = { .token = "t-2", .group = "od", .verb = 1, .target = 1, .asked_at = start + 5 };
	struct launch_filter all = { start, start + 9, NULL, 10 }, some = { start, start + 9, "spot", 10 },
			     newest = { start, start + 9, NULL, 1 }, early = { start - 5, start - 1, NULL, 10 };
	CLEANUP(arena_release) struct arena a = { 0 };
	struct launch *found;
	struct error e;
	size_t count;

	(void)state;
	struct history *h = create();
	assert_true(launch_save(h, &one, &e) && launch_save(h, &two, &e));
	assert_true(launch_goes_on(h, "t-1", "https://cloud/operations/7", &e));
	assert_true(launch_open_ones(h, &a, &found, &count, &e));
	assert_string_equal(found[0].operation, "https://cloud/operations/7");
	assert_string_equal(found[1].operation, "");
	assert_true(launch_end(h, "t-1", "done", start + 9, &e));
	assert_false(launch_goes_on(h, "t-1", "late", &e));
	assert_int_equal(e.kind, ERROR_NOT_FOUND);
	assert_false(launch_end(h, "t-1", "done", start + 9, &e));
	assert_int_equal(e.kind, ERROR_NOT_FOUND);
	assert_true(launch_open_ones(h, &a, &found, &count, &e));
	assert_int_equal(count, 1);
	assert_false(launch_end_partly(h, "t-1", 2, start + 9, &e));
	assert_int_equal(e.kind, ERROR_NOT_FOUND);
	assert_true(launch_find(h, &all, &a, &found, &count, &e));
	assert_int_equal(count, 2);
	assert_string_equal(found[0].outcome, "done");
	assert_int_equal(found[0].ended_at, start + 9);
	assert_null(found[1].outcome);
	assert_true(launch_find(h, &some, &a, &found, &count, &e));
	assert_int_equal(count, 1);
	assert_true(launch_find(h, &newest, &a, &found, &count, &e));
	assert_string_equal(found[0].token, "t-2");
	assert_true(launch_find(h, &early, &a, &found, &count, &e));
	assert_int_equal(count, 0);
	assert_true(launch_end_partly(h, "t-2", 7, start + 9, &e));
	assert_true(launch_find(h, &newest, &a, &found, &count, &e));
	assert_string_equal(found[0].outcome, LAUNCH_PARTLY);
	assert_int_equal(found[0].target, 7);
	assert_true(history_finish(h, &e));
}

static void ids_that_could_not_be_told_apart_are_refused(void **state)
{
	static const char *const broken[] = { "i-1\ni-2" }, *const empty[] = { "" };
	struct launch l = { .token = "t", .group = "g", .machines = broken, .machine_count = 1 };
	struct error e;

	(void)state;
	struct history *h = create();
	assert_false(launch_save(h, &l, &e));
	l.machines = empty;
	assert_false(launch_save(h, &l, &e));
	l.machine_count = 0;
	assert_true(launch_save(h, &l, &e));
	assert_true(history_finish(h, &e));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_are_open_until_they_end),
		cmocka_unit_test(older_files_have_none),
		cmocka_unit_test(ended_ones_are_told),
		cmocka_unit_test(ids_that_could_not_be_told_apart_are_refused),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
