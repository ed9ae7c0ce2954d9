/* A node is drained on disk before it is anywhere else. */
#include "state/drain_record.h"
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

static struct drain_record drain(const char *node, millis at)
{
	return (struct drain_record){ .node = node,
				      .machine = "m-1",
				      .pool = "llm/chat",
				      .group = node,
				      .fate = "remove",
				      .why = "2 replicas beyond what is needed",
				      .term = 3,
				      .asked_at = at };
}

static void a_mark_is_known_until_it_is_off(void **state)
{
	struct drain_record a_1 = drain("a", start), a_2 = drain("a", start + 5), b = drain("b", start + 6);
	CLEANUP(arena_release) struct arena a = { 0 };
	struct drain_record *found;
	struct error e;
	size_t count;

	(void)state;
	struct history *h = create();
	assert_true(drain_record_save(h, &a_1, &e));
	assert_true(drain_record_end(h, "a", start, "stopped", start + 2, &e));
	assert_true(drain_record_save(h, &a_2, &e));
	assert_true(drain_record_save(h, &b, &e));
	assert_true(drain_record_release(h, "b", start + 6, start + 8, &e));
	history_close(h); /* a crash: what was saved is there */

	h = history_edit(path, &e);
	assert_non_null(h);
	assert_true(drain_record_marked(h, &a, &found, &count, &e));
	assert_int_equal(count, 2); /* of each node the last */
	assert_string_equal(found[0].node, "a");
	assert_int_equal(found[0].asked_at, start + 5);
	assert_null(found[0].outcome);
	assert_int_equal(found[0].released_at, 0);
	assert_int_equal(found[1].released_at, start + 8);
	assert_string_equal(found[1].why, "2 replicas beyond what is needed");

	assert_true(drain_record_end(h, "b", start + 6, "removed", start + 9, &e));
	assert_true(drain_record_unmark(h, "b", "swept", start + 10, &e));
	assert_true(drain_record_unmark(h, "a", "swept", start + 11, &e));
	assert_true(drain_record_marked(h, &a, &found, &count, &e));
	assert_int_equal(count, 0);
	const struct drain_filter all = { start, start + 9, NULL, 10 }, some = { start, start + 9, "a", 1 };
	assert_true(drain_record_find(h, &all, &a, &found, &count, &e));
	assert_int_equal(count, 3);
	assert_string_equal(found[0].outcome, "stopped"); /* the first stays */
	assert_int_equal(found[0].ended_at, start + 2);
	assert_int_equal(found[0].unmarked_at, start + 11);
	assert_string_equal(found[1].outcome, "swept");
	assert_string_equal(found[2].outcome, "removed");
	assert_true(drain_record_find(h, &some, &a, &found, &count, &e));
	assert_int_equal(count, 1);
	assert_int_equal(found[0].asked_at, start + 5);
	history_close(h);
}

/* A file that nobody writes any more. */
static void older_files_have_none(void **state)
{
	const struct drain_filter all = { start, start + 9, NULL, 10 };
	CLEANUP(arena_release) struct arena a = { 0 };
	struct drain_record *found;
	struct error e = { 0 };
	size_t count = 1;
	sqlite3 *db;

	(void)state;
	history_close(create());
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "DROP TABLE drain; PRAGMA user_version = 5", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	struct history *h = open_file();
	assert_true(drain_record_find(h, &all, &a, &found, &count, &e));
	assert_int_equal(count, 0);
	history_close(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mark_is_known_until_it_is_off),
		cmocka_unit_test(older_files_have_none),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
