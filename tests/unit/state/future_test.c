/* Ticks of a clock that ran ahead: kept beside, and gone from what goes on. */
#include "state/future.h"

#include "base/buf.h"
#include "state/level.h"
#include "tests/unit/state/history_made.h"

#include <sys/stat.h>

enum { TICKS = 600, LATER = 350 }; /* a checkpoint an hour: one before, one after */

static millis now; /* between two ticks, in an hour that has begun */
static struct buf aside;

static int set_up(void **state)
{
	(void)state;
	write_file(TICKS, 50);
	now = start + LATER * TICK + 1;
	buf_clear(&aside);
	return 0;
}

static int tear_down(void **state)
{
	char name[80];

	(void)state;
	unlink(path);
	for (int i = 0; i <= 100; i++) {
		snprintf(name, sizeof name, "%s.%d", path, i);
		unlink(name);
	}
	return 0;
}

static int64_t count_in(const char *file, const char *query)
{
	sqlite3 *db;
	sqlite3_stmt *s;

	assert_int_equal(sqlite3_open_v2(file, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, query, -1, &s, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	int64_t count = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	sqlite3_close(db);
	return count;
}

static void put_aside(void)
{
	struct error e = { 0 };

	assert_true(history_put_future_aside(path, now, &aside, &e));
	assert_string_equal(e.message, "");
}

/* A row of ones and empty texts, but for this. */
static void put(const char *table, const char *column, int64_t value, const char *also)
{
	CLEANUP(buf_release) struct buf query = { 0 };
	char ask[80];
	sqlite3 *db;
	sqlite3_stmt *s;

	snprintf(ask, sizeof ask, "SELECT name, type FROM pragma_table_info('%s')", table);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, ask, -1, &s, NULL), SQLITE_OK);
	buf_printf(&query, "INSERT INTO %s VALUES (", table);
	for (int i = 0; sqlite3_step(s) == SQLITE_ROW; i++) {
		const char *name = (const char *)sqlite3_column_text(s, 0);
		bool is_text = !strcmp((const char *)sqlite3_column_text(s, 1), "TEXT");
		buf_text(&query, i ? ", " : "");
		if (!strcmp(name, column))
			buf_printf(&query, "%lld", (long long)value);
		else
			buf_text(&query, is_text ? "''" : !strcmp(name, "width") ? also : "1");
	}
	buf_text(&query, ")");
	sqlite3_finalize(s);
	sqlite3_close(db);
	sql(query.text);
}

static void what_is_later_goes_and_is_kept_beside(void **state)
{
	static const char *const of_ticks[] = { "decision", "checkpoint" };
	char query[80];

	(void)state;
	sql("INSERT INTO manifest_use VALUES (400, 1); INSERT INTO pool_use VALUES (400, 0, 1);"
	    "INSERT INTO group_use VALUES (400, 1, 0, 0); INSERT INTO writer VALUES (400, 'p', 'm', 0);"
	    "INSERT INTO launch VALUES ('later', 'spot', 1, 1, '', 400, 1, 9999999999999, NULL, NULL, '')");
	put_aside();
	assert_non_null(strstr(aside.text, path));
	assert_string_equal(aside.text + strlen(path), ".1");
	assert_int_equal(count_in(aside.text, "SELECT count(*) FROM tick"), TICKS);
	assert_int_equal(count_in(path, "SELECT count(*) FROM tick"), LATER);
	assert_int_equal(count_in(path, "SELECT max(id) FROM tick"), LATER - 1);
	for (size_t i = 0; i < 2; i++) {
		snprintf(query, sizeof query, "SELECT count(*) FROM %s WHERE tick >= %d", of_ticks[i], LATER);
		assert_int_equal(count_in(path, query), 0);
		assert_true(count_in(aside.text, query) > 0);
		snprintf(query, sizeof query, "SELECT count(*) FROM %s WHERE tick < %d", of_ticks[i], LATER);
		assert_true(count_in(path, query) > 0);
	}
	assert_int_equal(count_in(path, "SELECT (SELECT count(*) FROM manifest_use WHERE tick = 400)"
					" + (SELECT count(*) FROM pool_use WHERE tick = 400)"
					" + (SELECT count(*) FROM group_use WHERE tick = 400)"
					" + (SELECT count(*) FROM writer WHERE tick = 400)"),
			 0);
	assert_int_equal(count_in(path, "SELECT count(*) FROM manifest_use"), 1);
	assert_int_equal(count_in(path, "SELECT count(*) FROM launch WHERE token = 'later'"), 1);
}

/* What was asked for then stands as of now: else it would hide what is asked for until then. */
static void what_was_asked_for_then_was_asked_for_now(void **state)
{
	char query[200];

	(void)state;
	sql("INSERT INTO launch VALUES ('then', 'spot', 1, 1, '', 400, 1, 9999999999999, 'done', 9999999999999, '');"
	    "INSERT INTO launch VALUES ('open', 'spot', 1, 1, '', 400, 1, 9999999999999, NULL, NULL, '');"
	    "INSERT INTO launch VALUES ('before', 'spot', 1, 1, '', 100, 1, 1000, 'done', 2000, '');"
	    "INSERT INTO drain VALUES ('n', 9999999999999, 'm', 'p', 'g', 'remove', '', 400, 1, 9999999999999, NULL, "
	    "NULL,"
	    " NULL);"
	    "INSERT INTO drain VALUES ('n', 1000, 'm', 'p', 'g', 'remove', '', 100, 1, NULL, 'done', 2000, 2000)");
	put_aside();
	snprintf(query, sizeof query, "SELECT count(*) FROM launch WHERE asked_at = %lld", (long long)now);
	assert_int_equal(count_in(path, query), 2);
	assert_int_equal(count_in(path, "SELECT max(ended_at) FROM launch"), now);
	assert_int_equal(count_in(path, "SELECT count(*) FROM launch WHERE outcome IS NULL AND ended_at IS NULL"), 1);
	assert_int_equal(count_in(path, "SELECT asked_at + ended_at FROM launch WHERE token = 'before'"), 3000);
	snprintf(query, sizeof query, "SELECT count(*) FROM drain WHERE asked_at = %lld AND released_at = %lld",
		 (long long)now, (long long)now);
	assert_int_equal(count_in(path, query), 1);
	assert_int_equal(count_in(path, "SELECT count(*) FROM drain WHERE asked_at = 1000 AND unmarked_at = 2000"), 1);
}

/* Of what has begun all stays; of what has not nothing. */
static void sums_of_times_to_come_go(void **state)
{
	static const struct {
		const char *table, *column;
		millis width;
		const char *number; /* of the level's width */
	} sums[] = {
		{ "rollup", "hour", HOUR, "" },	     { "cost", "hour", HOUR, "" },
		{ "cost_label", "hour", HOUR, "" },  { "quota_hour", "hour", HOUR, "" },
		{ "lead_time", "day", DAY, "" },     { "gpu_holding", "since", 1, "" },
		{ "level", "number", HOUR, "hour" }, { "level", "number", 5 * MINUTE, "short" },
	};
	char query[120], widths[2][8];

	(void)state;
	snprintf(widths[0], sizeof widths[0], "%d", LEVEL_HOUR);
	snprintf(widths[1], sizeof widths[1], "%d", LEVEL_FIVE_MINUTES);
	sql("DELETE FROM level; DELETE FROM cost; DELETE FROM rollup; DELETE FROM lead_time");
	for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
		for (int64_t later = 0; later <= 1; later++)
			put(sums[i].table, sums[i].column, now / sums[i].width + later,
			    widths[!strcmp(sums[i].number, "short")]);
	sql("UPDATE gpu_holding SET until = 9999999999999");
	put_aside();
	for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
		for (int64_t later = 0; later <= 1; later++) {
			snprintf(query, sizeof query, "SELECT count(*) FROM %s WHERE %s = %lld", sums[i].table,
				 sums[i].column, (long long)(now / sums[i].width + later));
			if (count_in(path, query) != !later)
				fail_msg("%s: %lld", query, (long long)count_in(path, query));
			assert_int_equal(count_in(aside.text, query), 1);
		}
	assert_int_equal(count_in(path, "SELECT max(until) FROM gpu_holding"), now);
}

static void without_any_nothing_happens(void **state)
{
	(void)state;
	now = start + TICKS * TICK; /* the end of the last */
	put_aside();
	assert_int_equal(aside.len, 0);
	assert_int_equal(count_in(path, "SELECT count(*) FROM tick"), TICKS);
	unlink(path);
	put_aside();
	assert_int_equal(aside.len, 0);
	assert_int_not_equal(access(path, F_OK), 0);
}

/* What was asked of clouds and nodes is known all the same, and recording begins anew, in the fleet that was in force:
 * `since` that tick, of a history that was thinned up to tick 100. */
static void begin_anew(int64_t since)
{
	struct error e = { 0 };
	char query[400];

	sql("INSERT INTO launch VALUES ('then', 'spot', 1, 1, '', 400, 1, 9999999999999, NULL, NULL, '');"
	    "INSERT OR REPLACE INTO fact (name, value) VALUES ('kept_from', '100'); DELETE FROM tick WHERE id < 100;"
	    "DELETE FROM decision WHERE tick < 100");
	snprintf(query, sizeof query,
		 "INSERT INTO pool_use SELECT %lld, place, pool FROM pool_use WHERE tick = 0 AND %lld > 0;"
		 "INSERT INTO group_use SELECT %lld, pool, place, position FROM group_use WHERE tick = 0 AND %lld > 0;"
		 "INSERT INTO manifest_use SELECT %lld, manifest FROM manifest_use WHERE tick = 0 AND %lld > 0",
		 (long long)since, (long long)since, (long long)since, (long long)since, (long long)since,
		 (long long)since);
	sql(query);
	now = start;
	put_aside();
	assert_true(aside.len > strlen(path));
	assert_int_equal(count_in(aside.text, "SELECT count(*) FROM tick"), TICKS - 100);
	assert_int_equal(count_in(path, "SELECT count(*) FROM tick"), 0);
	assert_int_equal(count_in(path, "SELECT count(*) FROM manifest_use"), 1);
	assert_int_equal(count_in(path, "SELECT (SELECT max(tick) FROM manifest_use) + (SELECT max(tick) FROM pool_use)"
					" + (SELECT max(tick) FROM group_use)"),
			 0);
	assert_true(count_in(path, "SELECT count(*) FROM pool_use") > 0);
	assert_int_equal(count_in(path, "SELECT asked_at FROM launch WHERE token = 'then'"), now);
	struct history *h = history_open(path, &e);
	assert_non_null(h);
	assert_int_equal(history_next_tick(h), 0);
	struct history_stretch in_force;
	CLEANUP(arena_release) struct arena a = { 0 };
	assert_true(history_stretch_at(h, 0, &a, &in_force, &e));
	assert_true(in_force.pool_count > 0);
	history_close(h);
	assert_int_equal(count_in(path, "SELECT count(*) FROM fact WHERE name = 'kept_from'"), 0);
	unlink(aside.text);
}

static void where_all_is_later_no_tick_stays(void **state)
{
	static const int64_t since[] = { 0, 50, 100, 400 };

	for (size_t i = 0; i < sizeof since / sizeof *since; i++) {
		begin_anew(since[i]);
		assert_int_equal(set_up(state), 0);
	}
}

static void where_there_is_no_room_beside_nothing_is_lost(void **state)
{
	struct error e = { 0 };
	char name[80];

	(void)state;
	for (int i = 1; i <= 99; i++) {
		snprintf(name, sizeof name, "%s.%d", path, i);
		fclose(fopen(name, "w"));
	}
	assert_false(history_put_future_aside(path, now, &aside, &e));
	assert_int_equal(e.kind, ERROR_CONFLICT);
	assert_non_null(strstr(e.message, "remove some of"));
	assert_int_equal(aside.len, 0);
	assert_int_equal(count_in(path, "SELECT count(*) FROM tick"), TICKS);
	snprintf(name, sizeof name, "%s.99", path);
	unlink(name);
	put_aside();
	assert_string_equal(aside.text, name);
}

/* What it holds is as private as the history itself. */
static void nobody_else_reads_it(void **state)
{
	struct stat st;

	(void)state;
	put_aside();
	assert_int_equal(stat(aside.text, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

/* All of it, or nothing: half a cut would be told as the past. */
static void what_cannot_be_cut_stays_whole(void **state)
{
	struct error e = { 0 };
	char name[80];

	(void)state;
	put("rollup", "hour", now / HOUR + 1, "");
	sql("CREATE TRIGGER no BEFORE DELETE ON rollup BEGIN SELECT raise(ABORT, 'on purpose'); END");
	assert_false(history_put_future_aside(path, now, &aside, &e));
	assert_int_not_equal(e.kind, ERROR_NONE);
	assert_int_equal(aside.len, 0);
	snprintf(name, sizeof name, "%s.1", path);
	assert_int_not_equal(access(name, F_OK), 0);
	assert_int_equal(count_in(path, "SELECT count(*) FROM tick"), TICKS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(what_is_later_goes_and_is_kept_beside),
		TEST(what_was_asked_for_then_was_asked_for_now),
		TEST(sums_of_times_to_come_go),
		TEST(without_any_nothing_happens),
		TEST(where_all_is_later_no_tick_stays),
		TEST(where_there_is_no_room_beside_nothing_is_lost),
		TEST(nobody_else_reads_it),
		TEST(what_cannot_be_cut_stays_whole),
	};

	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof path, "%s/history.db", folder);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	buf_release(&aside);
	rmdir(folder);
	return failed;
}
