/* Histories: what was written is read, found, thinned, and left in sums. */
#include "base/gzip.h"
#include "tests/unit/state/history_made.h"

#include <sys/stat.h>

static void what_was_written_is_read_in_any_order(void **state)
{
	(void)state;
	static const int64_t order[] = { 999, 0, 1, 2, 240, 239, 700, 701, 705, 705, 17, 480 };
	struct tick_record r;
	struct error e;

	write_file(1000, 100);
	struct history *h = open_file();
	for (size_t i = 0; i < sizeof order / sizeof *order; i++)
		for (size_t pool = 0; pool < 2; pool++) {
			assert_true(history_read(h, order[i], pool, &r, &e));
			assert_int_equal(r.pool, pool);
			assert_tick(&r, order[i]);
		}
	assert_false(history_read(h, 1000, 0, &r, &e));
	assert_int_equal(e.kind, ERROR_NOT_FOUND);
	assert_non_null(strstr(e.message, "ticks 0 to 999"));
	history_close(h);
}

static void facts_are_kept(void **state)
{
	(void)state;
	struct arena a = { 0 };
	struct history_span span;
	const char *text;
	size_t count, pool;
	struct error e;

	write_file(10, 1);
	struct history *h = open_file();
	assert_true(history_manifest(h, 9, &a, &text, &e));
	assert_string_equal(text, "kind: WarmPool\n");
	assert_true(history_fact(h, "run", &a, &text, &e));
	assert_string_equal(text, "a test");
	const struct history_pool *p = history_pools(h, &count);
	assert_int_equal(count, 2);
	assert_string_equal(p[0].name, "chat");
	assert_int_equal(p[0].group_count, 2);
	assert_string_equal(p[1].groups[0], "on-demand");
	assert_true(history_find_pool(h, "llm/batch", &pool, &e));
	assert_int_equal(pool, 1);
	assert_false(history_find_pool(h, "nobody", &pool, &e));
	assert_non_null(strstr(e.message, "chat, batch"));
	assert_true(history_span(h, &span, &e));
	assert_int_equal(span.last_tick, 9);
	assert_int_equal(span.to, start + 10 * TICK);
	arena_release(&a);
	history_close(h);
}

static void a_time_finds_its_tick(void **state)
{
	(void)state;
	static const struct {
		millis after;
		int64_t tick;
	} cases[] = { { -5, 0 }, { 0, 0 }, { TICK, 0 }, { 29999, 0 }, { 30000, 1 }, { 100 * TICK, 99 }, { DAY, 299 } };
	int64_t tick;
	struct error e;

	write_file(300, 100);
	struct history *h = open_file();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_true(history_tick_at(h, start + cases[i].after, &tick, &e));
		assert_int_equal(tick, cases[i].tick);
	}
	history_close(h);
}

static void a_filter_finds_what_it_says(void **state)
{
	(void)state;
	static const struct {
		struct history_filter filter;
		size_t count;
		int64_t first;
	} cases[] = {
		{ { ANY, 0, 299, NULL, ANY, false, false, 1000 }, 600, 299 },
		{ { 0, 0, 299, NULL, ANY, false, false, 7 }, 7, 299 },
		{ { 0, 100, 109, NULL, ANY, false, false, 1000 }, 10, 109 },
		{ { ANY, 0, 299, NULL, ANY, true, false, 1000 }, 30, 293 },
		{ { 0, 0, 299, NULL, ANY, true, false, 2 }, 2, 293 },
		{ { 1, 0, 299, NULL, ANY, true, false, 1000 }, 0, 0 },
		{ { ANY, 0, 299, NULL, LIMIT_BUDGET, false, false, 1000 }, 6, 251 },
		{ { ANY, 0, 299, NULL, LIMIT_MAX, false, false, 1000 }, 0, 0 },
		{ { ANY, 0, 299, "spot", ANY, false, false, 1000 }, 15, 293 },
		{ { ANY, 0, 299, "on-demand", ANY, false, false, 1000 }, 15, 283 },
		{ { ANY, 0, 299, NULL, ANY, true, true, 1 }, 1, 293 }, /* 293 % 7 = 6, the most */
	};
	struct arena a = { 0 };
	struct history_hit *hits;
	size_t count;
	struct error e;

	write_file(300, 100);
	struct history *h = open_file();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_true(history_find(h, &cases[i].filter, &a, &hits, &count, &e));
		assert_int_equal(count, cases[i].count);
		if (count)
			assert_int_equal(hits[0].tick, cases[i].first);
	}
	arena_release(&a);
	history_close(h);
}

static void of_equal_changes_growth_is_larger(void **state)
{
	(void)state;
	static const int64_t by[] = { 3, -4, 4, -4, 4, -4, 2 };
	static const int64_t order[] = { 4, 2, 5, 3, 1, 0, 6 };
	struct history_setup setup = { path, "", &fleet, "0.1.0", "preheat", "a test", 10, HOUR };
	struct history_filter all = { 0, 0, 6, NULL, ANY, true, true, 10 };
	struct arena a = { 0 };
	struct history_hit *hits;
	struct error e = { 0 };
	struct made m;
	size_t count;

	unlink(path);
	struct history *h = history_create(&setup, &e);
	for (int64_t t = 0; t < 7; t++) {
		make(&m, t);
		m.decisions[0][0].cold = m.decisions[0][0].release = 1;
		m.plans[0].decision.decided = 5 + by[t];
		assert_true(history_append(h, &m.snapshot, &m.plan, &e));
	}
	assert_true(history_finish(h, &e));
	h = open_file();
	assert_true(history_find(h, &all, &a, &hits, &count, &e));
	assert_int_equal(count, 7);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(hits[i].tick, order[i]);
	history_close(h);
	arena_release(&a);
}

static void checkpoints_come_back_and_are_thinned(void **state)
{
	(void)state;
	struct buf memory = { 0 };
	int64_t at, next;
	struct error e;
	uint32_t crc;
	bool there;

	write_file(INT64_C(240) * 73, 1000); /* just over three days */
	struct history *h = open_file();
	assert_true(history_last_checkpoint(h, INT64_C(240) * 72 + 50, &at, &memory, &e));
	assert_true(at > INT64_C(240) * 71 && at <= INT64_C(240) * 72 + 50);
	char expected[64];
	snprintf(expected, sizeof expected, "memory before %lld", (long long)at);
	assert_string_equal(memory.text, expected);
	assert_true(history_next_checkpoint(h, at - 1, &there, &next, &crc, &e));
	assert_true(there && next == at && crc == crc32_bytes(0, memory.text, memory.len));
	assert_true(history_next_checkpoint(h, INT64_C(240) * 73, &there, &next, &crc, &e));
	assert_false(there);
	assert_false(history_last_checkpoint(h, 3, &at, &memory, &e));
	assert_int_equal(e.kind, ERROR_NOT_FOUND);
	history_close(h);
	buf_release(&memory);

	sqlite3 *db;
	sqlite3_stmt *s;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_prepare_v2(db, "SELECT count(*) FROM checkpoint", -1, &s, NULL);
	sqlite3_step(s);
	int count = sqlite3_column_int(s, 0);
	assert_true(count >= 24 && count <= 29);
	sqlite3_finalize(s);
	sqlite3_close(db);
	sql("UPDATE checkpoint SET bytes = x'00'");
	h = open_file();
	assert_false(history_last_checkpoint(h, INT64_C(240) * 72, &at, &memory, &e));
	assert_non_null(strstr(e.message, "checkpoint of tick"));
	history_close(h);
}

static void retention_cuts_at_a_checkpoint_and_keeps_sums(void **state)
{
	(void)state;
	struct arena a = { 0 };
	struct history_hour *hours;
	int64_t ticks = 0, late = 0, micro_dollars = 0;
	size_t count;
	struct history_setup setup = { path, "kind: WarmPool\n", &fleet, "0.1.0", "preheat", "a test", 100, HOUR };
	struct history_span span;
	struct tick_record r;
	struct error e;
	struct made m;
	int64_t dropped;

	unlink(path);
	struct history *h = history_create(&setup, &e);
	for (int64_t t = 0; t < 1000; t++) {
		struct buf memory = { 0 };

		make(&m, t);
		buf_text(&memory, "m");
		assert_true(history_append(h, &m.snapshot, &m.plan, &e));
		if (t % 300 == 299)
			assert_true(history_checkpoint(h, &memory, &e));
		if (t == 800) {
			assert_true(history_retain(h, start + 650 * TICK, &dropped, &e));
			assert_int_equal(dropped, 600);
		}
		buf_release(&memory);
	}
	assert_true(history_finish(h, &e));
	h = open_file();
	assert_true(history_span(h, &span, &e));
	assert_int_equal(span.first_tick, 600);
	for (int64_t t = 600; t < 1000; t++) {
		assert_true(history_read(h, t, 0, &r, &e));
		assert_tick(&r, t);
	}
	assert_true(history_hours(h, ANY, &a, &hours, &count, &e));
	for (size_t i = 0; i < count; i++) {
		ticks += hours[i].ticks;
		late += hours[i].late;
		micro_dollars += hours[i].micro_dollars;
	}
	assert_int_equal(ticks, 600 * 2);
	assert_int_equal(late, 600 * 2);
	assert_int_equal(micro_dollars, 600 * (7200000 * TICK / HOUR)); /* as recorded, whatever was decided */
	history_close(h);
	arena_release(&a);
}

static int64_t sum_of_ticks(struct history *h, int64_t *late)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct history_hour *hours;
	struct error e;
	size_t count;
	int64_t ticks = 0;

	*late = 0;
	assert_true(history_hours(h, ANY, &a, &hours, &count, &e));
	for (size_t i = 0; i < count; i++) {
		ticks += hours[i].ticks;
		*late += hours[i].late;
	}
	return ticks;
}

/* In steps, while ticks are written, killed now and then: the same is left, and nothing is summed twice. */
static void retention_goes_in_steps(void **state)
{
	struct history_setup setup = { path, "kind: WarmPool\n", &fleet, "0.1.0", "preheat", "a test", 1, HOUR };
	struct random r = random_stream(1, "steps");
	struct history_span span;
	struct tick_record record;
	struct error e = { 0 };
	struct made m;
	bool more = true;
	int64_t late, t = 1500;

	(void)state;
	write_file(t, 100);
	struct history *h = history_resume(&setup, &e);
	for (int steps = 0; more; steps++) {
		assert_true(history_retain_some(h, start + 1300 * TICK, 1, &more, &e));
		assert_true(history_span(h, &span, &e));
		assert_int_equal(span.first_tick, 1201);
		assert_true(history_read(h, 1201 + steps % 200, 0, &record, &e));
		assert_tick(&record, 1201 + steps % 200);
		make(&m, t++);
		assert_true(history_append(h, &m.snapshot, &m.plan, &e));
		if (random_next(&r) % 3 == 0) {
			history_close(h);
			h = history_resume(&setup, &e);
		}
	}
	assert_int_equal(sum_of_ticks(h, &late), 1201 * 2);
	assert_int_equal(late, 1201 * 2);
	assert_true(history_finish(h, &e));
	h = open_file();
	for (int64_t i = 1201; i < t; i++) {
		assert_true(history_read(h, i, 1, &record, &e));
		assert_tick(&record, i);
	}
	history_close(h);
}

/* Whatever their age: the oldest go until what is left fits, and are summed up; what was asked for less stays. */
static void a_large_history_loses_its_oldest(void **state)
{
	enum { TICKS = 4000, MOST = 256 << 10 };
	struct history_setup setup = { path, "kind: WarmPool\n", &fleet, "0.1.0", "preheat", "a test", 1, HOUR };
	struct history_span span, before = { 0 };
	struct tick_record record;
	struct error e = { 0 };
	struct stat file;
	bool more = true;
	int64_t late;

	(void)state;
	write_file(TICKS, 100);
	struct history *h = history_resume(&setup, &e);
	assert_int_equal(stat(path, &file), 0);
	assert_true(file.st_size > 2 * MOST);
	assert_true(history_retain_bytes(h, file.st_size, 50, &more, &e) && !more);
	assert_true(history_span(h, &span, &e));
	assert_int_equal(span.first_tick, 0);
	for (more = true; more; before = span) {
		assert_true(history_retain_bytes(h, MOST, 50, &more, &e));
		assert_true(history_span(h, &span, &e));
		assert_true(span.first_tick - before.first_tick <= 300); /* a checkpoint at a time */
	}
	assert_in_range(span.first_tick, 1000, TICKS - 100);
	assert_int_equal(sum_of_ticks(h, &late), span.first_tick * 2);
	for (more = true; more;)
		assert_true(history_retain_bytes(h, MOST, 50, &more, &e));
	for (int64_t i = span.first_tick; i < TICKS; i++) {
		assert_true(history_read(h, i, 1, &record, &e));
		assert_tick(&record, i);
	}
	assert_true(history_finish(h, &e));
	assert_int_equal(stat(path, &file), 0);
	assert_true(file.st_size < MOST * 3 / 2);
}

static void reading_does_not_wait_for_the_writer(void **state)
{
	(void)state;
	struct history_setup setup = { path, "", &fleet, "0.1.0", "preheat", "a test", 10, HOUR };
	struct history_span span;
	struct error e = { 0 };
	struct made m;

	unlink(path);
	struct history *w = history_create(&setup, &e);
	for (int64_t t = 0; t < 25; t++) {
		make(&m, t);
		assert_true(history_append(w, &m.snapshot, &m.plan, &e));
	}
	struct history *r = open_file(); /* the writer is in the middle of a transaction */
	assert_true(history_span(r, &span, &e));
	assert_int_equal(span.last_tick, 19);
	for (int64_t t = 25; t < 60; t++) {
		make(&m, t);
		assert_true(history_append(w, &m.snapshot, &m.plan, &e)); /* the reader holds nothing up */
	}
	assert_true(history_span(r, &span, &e));
	assert_int_equal(span.last_tick, 59);
	history_close(r);
	assert_true(history_finish(w, &e));
}

/* Each would number its own ticks, and the file would contradict itself. */
static void there_is_one_writer(void **state)
{
	(void)state;
	struct history_setup setup = { path, "", &fleet, "0.1.0", "preheat", "a test", 1, HOUR };
	struct error e = { 0 };
	struct made m;

	unlink(path);
	struct history *w = history_create(&setup, &e);
	make(&m, 0);
	assert_true(history_append(w, &m.snapshot, &m.plan, &e));
	assert_null(history_resume(&setup, &e));
	assert_int_equal(e.kind, ERROR_UNAVAILABLE);
	assert_non_null(strstr(e.message, "another preheat writes it"));
	make(&m, 1);
	assert_true(history_append(w, &m.snapshot, &m.plan, &e)); /* who was there goes on */
	assert_true(history_finish(w, &e));
	w = history_resume(&setup, &e);
	assert_non_null(w);
	assert_int_equal(history_next_tick(w), 2);
	assert_true(history_finish(w, &e));
}

/* Of a fleet that stays, changes, and is changed twice before a tick: each tick finds its own pools and groups. */
static void each_tick_has_the_fleet_of_its_manifest(void **state)
{
	static const struct pool_spec fewer[] = {
		{ .name = "batch", .namespace = "llm", .groups = second, .group_count = 1 },
	};
	static const struct fleet_spec other = { groups, 2, fewer, 1, NULL };
	static const struct {
		int64_t tick;
		const char *text;
		const struct fleet_spec *fleet;
	} changes[] = {
		{ 1, "a", &fleet }, { 2, "b", &other }, { 2, "c", &fleet }, { 2, "d", &fleet }, { 3, "e", &fleet }
	};
	static const char *const texts[] = { "kind: WarmPool\n", "a", "d", "e" };
	CLEANUP(arena_release) struct arena a = { 0 };
	struct error e = { 0 };
	struct made m;

	(void)state;
	write_file(1, 1);
	struct history_setup setup = { path, "kind: WarmPool\n", &fleet, "0.1.0", "preheat", "a test", 1, HOUR };
	struct history *h = history_resume(&setup, &e);
	for (int64_t t = 1; t < 4; t++) {
		for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
			if (changes[i].tick == t)
				assert_true(history_use_manifest(h, changes[i].text, changes[i].fleet, &e));
		make(&m, t);
		assert_true(history_append(h, &m.snapshot, &m.plan, &e));
	}
	assert_true(history_finish(h, &e));
	h = open_file();
	for (int64_t t = 0; t < 4; t++) {
		struct history_stretch at;
		struct tick_record r;
		const char *text;
		assert_true(history_stretch_at(h, t, &a, &at, &e) && history_manifest(h, t, &a, &text, &e));
		assert_string_equal(text, texts[t]);
		assert_int_equal(at.from, t);
		assert_int_equal(at.pool_count, 2);
		make(&m, t);
		for (size_t p = 0; p < 2; p++) {
			assert_int_equal(at.pools[p], p);
			assert_true(history_read(h, t, p, &r, &e));
			assert_int_equal(r.plan.group_count, m.plans[p].group_count);
			assert_memory_equal(r.plan.groups, m.plans[p].groups,
					    r.plan.group_count * sizeof *r.plan.groups);
		}
	}
	history_close(h);
}

static int64_t keyframes(void)
{
	sqlite3 *db;
	sqlite3_stmt *s;

	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT count(*) FROM decision WHERE is_keyframe = 1", -1, &s, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	int64_t count = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	sqlite3_close(db);
	return count;
}

/* The records go on where pools and groups stay: else any change of one of many writes all of them whole. */
static void a_change_of_what_a_pool_says_writes_no_pool_whole(void **state)
{
	static const int64_t order[] = { 0, 1, 2, 3, 4, 5, 5, 2, 4, 1 };
	static const char *const texts[] = { "a", "b", "a" };
	struct error e = { 0 };
	struct tick_record r;
	struct made m;

	(void)state;
	write_file(1, 1);
	struct history_setup setup = { path, "kind: WarmPool\n", &fleet, "0.1.0", "preheat", "a test", 1, HOUR };
	struct history *h = history_resume(&setup, &e);
	for (int64_t t = 1; t < 6; t++) {
		if (t > 1 && t < 5)
			assert_true(history_use_manifest(h, texts[t - 2], &fleet, &e));
		make(&m, t);
		assert_true(history_append(h, &m.snapshot, &m.plan, &e));
	}
	assert_true(history_finish(h, &e));
	assert_int_equal(keyframes(), 4); /* two pools, at the start and where the file was taken up again */
	h = open_file();
	for (size_t i = 0; i < sizeof order / sizeof *order; i++)
		for (size_t pool = 0; pool < 2; pool++) {
			assert_true(history_read(h, order[i], pool, &r, &e));
			assert_tick(&r, order[i]);
		}
	history_close(h);
}

static void reading_leaves_no_files_behind(void **state)
{
	(void)state;
	char beside[80];

	write_file(10, 1);
	history_close(open_file());
	snprintf(beside, sizeof beside, "%s-shm", path);
	assert_int_not_equal(access(beside, F_OK), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_written_is_read_in_any_order),
		cmocka_unit_test(facts_are_kept),
		cmocka_unit_test(a_time_finds_its_tick),
		cmocka_unit_test(a_filter_finds_what_it_says),
		cmocka_unit_test(of_equal_changes_growth_is_larger),
		cmocka_unit_test(checkpoints_come_back_and_are_thinned),
		cmocka_unit_test(retention_cuts_at_a_checkpoint_and_keeps_sums),
		cmocka_unit_test(retention_goes_in_steps),
		cmocka_unit_test(a_large_history_loses_its_oldest),
		cmocka_unit_test(reading_does_not_wait_for_the_writer),
		cmocka_unit_test(there_is_one_writer),
		cmocka_unit_test(each_tick_has_the_fleet_of_its_manifest),
		cmocka_unit_test(a_change_of_what_a_pool_says_writes_no_pool_whole),
		cmocka_unit_test(reading_leaves_no_files_behind),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
