/* Histories that are damaged, foreign, locked or in the way are told apart, each with its own words. */
#include "tests/unit/state/history_made.h"

#include <sys/stat.h>

static void an_altered_plan_is_named(void **state)
{
	(void)state;
	struct tick_record r;
	struct error e, damage;

	write_file(300, 100);
	sql("UPDATE decision SET plan = CAST(substr(plan, 1, 1) || x'7e' || substr(plan, 3) AS BLOB)"
	    " WHERE tick = 123 AND pool = 0");
	struct history *h = open_file();
	assert_true(history_read(h, 122, 0, &r, &e));
	assert_false(history_read(h, 123, 0, &r, &e));
	assert_int_equal(e.kind, ERROR_INVALID);
	assert_non_null(strstr(e.message, "pool chat, tick 123: the stored plan is damaged"));
	assert_false(history_read(h, 124, 0, &r, &e)); /* told against the damaged one */
	assert_true(history_read(h, 123, 1, &r, &e));
	assert_true(history_read(h, 240, 0, &r, &e)); /* a keyframe stands on its own */

	assert_true(history_read_lenient(h, 123, 0, &r, &damage, &e));
	assert_true(r.is_plan_damaged);
	struct made m;
	make(&m, 123);
	history_trust_plan(h, 0, &m.plans[0]);
	assert_true(history_read_lenient(h, 124, 0, &r, &damage, &e));
	assert_false(r.is_plan_damaged);
	assert_tick(&r, 124);
	history_close(h);
}

static void numbers_beside_a_plan_must_match(void **state)
{
	(void)state;
	static const char *const changes[] = {
		"UPDATE decision SET held_by = 3 WHERE tick = 5 AND pool = 0",
		"UPDATE decision SET asked = 3 WHERE tick = 5 AND pool = 0",
		"UPDATE decision SET concerns = 2 WHERE tick = 5 AND pool = 0",
		"UPDATE decision SET is_keyframe = 1 WHERE tick = 5 AND pool = 0",
		"UPDATE decision SET plan = x'00' WHERE tick = 5 AND pool = 0",
		"UPDATE decision SET input = plan WHERE tick = 5 AND pool = 0",
		"UPDATE tick SET at = at + 1 WHERE id = 5",
		"UPDATE tick SET interval = 14000 WHERE id = 5",
	};
	struct tick_record r;
	struct error e;

	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		write_file(20, 100);
		sql(changes[i]);
		struct history *h = open_file();
		if (history_read(h, 5, 0, &r, &e))
			fail_msg("%s", changes[i]);
		assert_non_null(strstr(e.message, "tick 5"));
		history_close(h);
	}
}

/* What only a program could have written, since its checksums are right. */
static void a_tick_that_cannot_be_is_named(void **state)
{
	(void)state;
	struct made m;
	struct start_input one;
	struct event_input event;
	const struct {
		int64_t *number, value;
		const char *words;
	} cases[] = {
		{ &m.snapshot.interval, 0, "" }, /* decided on between two ticks */
		{ &m.snapshot.interval, -15000, "-15000 ms long" },
		{ &m.snapshot.interval, INT64_MAX, "ms long" },
		{ &m.snapshots[0].input.ready, -1, "pool_input.ready is -1" },
		{ &m.snapshots[0].input.ready, INT64_MAX, "pool_input.ready is 9223372036854775807" },
		{ &m.snapshots[0].input.lent, ABSENT, "pool_input.lent is absent" },
		{ &m.snapshots[0].input.kv_cache_permille, ABSENT, "" },
		{ &m.snapshots[0].input.queue_waiting, ABSENT, "" },
		{ &m.scrapes[1].waiting, INT64_C(1) << 60, "scrape_input.waiting" },
		{ &m.scrapes[1].started, ABSENT, "" },
		{ &m.group_inputs[1].ready, -7, "group_input.ready is -7" },
		{ &one.group, 2, "start_input.group is 2" },
		{ &one.kind, START_KIND_COUNT, "start_input.kind" },
		{ &event.group, -1, "event_input.group is -1" },
		{ &event.stage, STAGE_COUNT, "event_input.stage" },
	};
	struct tick_record r;
	struct error e = { 0 };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct history_setup setup = { path, "", &fleet, "0.1.0", "preheat", "a test", 10, HOUR };
		unlink(path);
		struct history *h = history_create(&setup, &e);
		for (int64_t t = 0; t < 7; t++) {
			make(&m, t);
			m.snapshots[0].starts = &one;
			m.snapshots[0].events = &event;
			m.snapshots[0].start_count = m.snapshots[0].event_count = 1;
			one = (struct start_input){ .asked_at = m.snapshot.now };
			event = (struct event_input){ .count = 1 };
			if (t == 5)
				*cases[i].number = cases[i].value;
			assert_true(history_append(h, &m.snapshot, &m.plan, &e));
		}
		assert_true(history_finish(h, &e));
		h = open_file();
		assert_true(history_read(h, 4, 0, &r, &e));
		bool is_read = history_read(h, 5, 0, &r, &e);
		if (is_read != !*cases[i].words)
			fail_msg("case %zu: %s", i, is_read ? "read" : e.message);
		if (!is_read && (!strstr(e.message, cases[i].words) || !strstr(e.message, "pool chat, tick 5: ")))
			fail_msg("case %zu: %s", i, e.message);
		history_close(h);
	}
}

/* Replaces the chat pool's tick by one with another end, its checksums as they have to be. */
static void move_tick(int64_t tick, millis now)
{
	struct record_key k = { tick, 0, now, TICK, true };
	struct record_state input = { 0 }, plan = { 0 };
	struct buf in = { 0 }, out = { 0 };
	sqlite3_stmt *s;
	sqlite3 *db;
	struct made m;

	make(&m, tick);
	record_encode_input(&input, &k, &m.snapshots[0], &in);
	record_encode_plan(&plan, &k, &m.plans[0], &out);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_prepare_v2(db, "UPDATE decision SET is_keyframe = 1, input = ?, plan = ? WHERE tick = ? AND pool = 0",
			   -1, &s, NULL);
	sqlite3_bind_blob(s, 1, in.text, (int)in.len, SQLITE_STATIC);
	sqlite3_bind_blob(s, 2, out.text, (int)out.len, SQLITE_STATIC);
	sqlite3_bind_int64(s, 3, tick);
	assert_int_equal(sqlite3_step(s), SQLITE_DONE);
	sqlite3_finalize(s);
	sqlite3_prepare_v2(db, "UPDATE tick SET at = ? WHERE id = ?", -1, &s, NULL);
	sqlite3_bind_int64(s, 1, now);
	sqlite3_bind_int64(s, 2, tick);
	assert_int_equal(sqlite3_step(s), SQLITE_DONE);
	sqlite3_finalize(s);
	sqlite3_close(db);
	record_state_release(&input);
	record_state_release(&plan);
	buf_release(&in);
	buf_release(&out);
}

static void a_time_that_goes_back_is_named(void **state)
{
	(void)state;
	struct tick_record r;
	struct error e = { 0 };

	write_file(10, 1);
	move_tick(5, start + 5 * TICK);
	struct history *h = open_file();
	assert_true(history_read(h, 4, 0, &r, &e));
	assert_true(history_read(h, 5, 0, &r, &e)); /* as late as the one before it */
	history_close(h);
	move_tick(5, start + 5 * TICK - 1);
	h = open_file();
	assert_true(history_read(h, 4, 0, &r, &e));
	assert_false(history_read(h, 5, 0, &r, &e));
	assert_non_null(strstr(e.message, "pool chat, tick 5: the tick makes no sense: it ends 1 ms before"));
	history_close(h);
}

static void assert_refused(enum error_kind kind, const char *words)
{
	struct error e = { 0 };
	struct history *h = history_open(path, &e);

	assert_null(h);
	assert_non_null(strstr(e.message, words));
	assert_int_equal(e.kind, kind);
	assert_non_null(strstr(e.message, path));
}

static void put_file(const char *bytes)
{
	unlink(path);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(bytes, f);
	fclose(f);
}

static void files_that_are_no_history_are_told_apart(void **state)
{
	(void)state;
	unlink(path);
	assert_refused(ERROR_NOT_FOUND, "no such file");
	put_file("");
	assert_refused(ERROR_INVALID, "empty");
	put_file("t_s,n_req,prompt_tokens,output_tokens\n0,1,2,3\n and more, so that it is longer than a header is "
		 "...........");
	assert_refused(ERROR_INVALID, "not a history");
	unlink(path);
	sql("CREATE TABLE t (a)");
	assert_refused(ERROR_INVALID, "but not a history");
	write_file(10, 1);
	sql("PRAGMA user_version = 99");
	assert_refused(ERROR_CONFLICT, "newer preheat");
	write_file(10, 1);
	sql("UPDATE fact SET value = 'x' WHERE name = 'layout'");
	assert_refused(ERROR_CONFLICT, "other fields");
	write_file(300, 100);
	assert_int_equal(truncate(path, 8192), 0);
	assert_refused(ERROR_INVALID, "cut short");
	write_file(300, 100);
	assert_int_equal(truncate(path, 50), 0);
	assert_refused(ERROR_INVALID, "");
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_refused(ERROR_INVALID, "not a file");
	rmdir(path);
}

static void a_file_in_use_by_itself_is_locked(void **state)
{
	(void)state;
	sqlite3 *db;

	write_file(10, 1);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db,
				      "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;"
				      "INSERT INTO fact VALUES ('a', 'b')",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	assert_refused(ERROR_UNAVAILABLE, "locked");
	sqlite3_close(db);
}

static void a_taken_name_is_refused(void **state)
{
	(void)state;
	struct history_setup setup = { path, "", &fleet, "0.1.0", "preheat", "a test", 10, HOUR };
	struct error e;

	put_file("mine");
	assert_null(history_create(&setup, &e));
	assert_int_equal(e.kind, ERROR_CONFLICT);
	setup.path = "/nowhere/history.db";
	assert_null(history_create(&setup, &e));
	assert_int_equal(e.kind, ERROR_UNAVAILABLE);
	setup.path = "postgresql://127.0.0.1:1/fleet#prod"; /* a controller does not wait for a server */
	assert_null(history_resume(&setup, &e));
	assert_int_equal(e.kind, ERROR_INVALID);
	assert_non_null(strstr(e.message, "history copy"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_altered_plan_is_named),
		cmocka_unit_test(numbers_beside_a_plan_must_match),
		cmocka_unit_test(a_tick_that_cannot_be_is_named),
		cmocka_unit_test(a_time_that_goes_back_is_named),
		cmocka_unit_test(files_that_are_no_history_are_told_apart),
		cmocka_unit_test(a_file_in_use_by_itself_is_locked),
		cmocka_unit_test(a_taken_name_is_refused),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
