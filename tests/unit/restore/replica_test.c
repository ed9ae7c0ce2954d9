/* A follower's copy decides as its leader did, whatever was lost or said twice on the way. */
#include "state/guard_record.h"
#include "state/launch.h"
#include "state/replica.h"
#include "tests/unit/restore/recorded_run.h"

#include <sqlite3.h>

static char folder[] = "/tmp/preheat-replica-XXXXXX";

enum { SEEDS = 10, TICKS = 120 };

struct pair {
	struct lived leader;
	char path[128];
	struct history *copy;
	bool is_newest_first;
	struct error error;
};

static void begin(struct pair *p, uint64_t seed)
{
	*p = (struct pair){ .copy = NULL };
	lived_begin(&p->leader, folder, seed);
	snprintf(p->path, sizeof p->path, "%s/copy.db", folder);
	remove_history(p->path);
	p->copy = replica_open(p->path, &p->error);
	assert_non_null(p->copy);
}

static void end(struct pair *p)
{
	history_close(p->copy);
	lived_end(&p->leader);
	remove_history(p->path);
	remove_history(p->leader.path);
}

static bool ask(struct pair *p, size_t max_bytes, struct buf *batch)
{
	struct replica_tail tail;

	if (!replica_tail(p->copy, &tail, &p->error))
		fail_msg("%s", p->error.message);
	if (tail.tick < 0 && p->is_newest_first)
		tail.way = REPLICA_NEWEST;
	if (!replica_export(p->leader.history, &tail, max_bytes, batch, &p->error))
		fail_msg("%s", p->error.message);
	return batch->len > 0;
}

/* Of the time before the copy. False: there is no more. */
static bool take_past(struct pair *p, struct history *from)
{
	CLEANUP(buf_release) struct buf batch = { 0 };
	struct replica_tail head;

	if (!replica_head(p->copy, &head, &p->error) ||
	    !replica_export(from, &head, (size_t)(1 + draw(&p->leader, 1 << 16)), &batch, &p->error))
		fail_msg("%s", p->error.message);
	if (!batch.len)
		return false;
	for (int64_t i = 1 + draw(&p->leader, 2); i > 0; i--) /* said twice */
		if (!replica_import(p->copy, batch.text, batch.len, &p->error))
			fail_msg("%s", p->error.message);
	return true;
}

static void take(struct pair *p, const struct buf *batch)
{
	if (!replica_import(p->copy, batch->text, batch->len, &p->error))
		fail_msg("%s", p->error.message);
}

static void catch_up(struct pair *p, int64_t max_bytes)
{
	for (;;) {
		CLEANUP(buf_release) struct buf batch = { 0 };

		if (!ask(p, (size_t)(1 + draw(&p->leader, max_bytes)), &batch))
			return;
		take(p, &batch);
		if (!draw(&p->leader, 3))
			take(p, &batch); /* said twice */
	}
}

/* All rows of the tables, in one number and as text for a message. */
static int64_t count_of(const char *path, const char *sql)
{
	sqlite3 *db;
	sqlite3_stmt *s;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	int64_t n = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	sqlite3_close(db);
	return n;
}

/* Row for row what the leader has. */
static void assert_equal_files(struct pair *p, uint64_t seed)
{
	static const char *const tables[] = { "tick",	"decision",   "manifest", "manifest_use",
					      "pool",	"pool_group", "pool_use", "group_use",
					      "writer", "fact",	      "launch" };

	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
		CLEANUP(buf_release) struct buf sql = { 0 };
		const char *uses = strstr(tables[i], "_use") || !strcmp(tables[i], "writer")
					   ? " WHERE tick <= (SELECT max(id) FROM tick)"
				   : !strcmp(tables[i], "fact") ? " WHERE name <> 'kept_from'"
								: "";

		buf_printf(
			&sql,
			"ATTACH '%s' AS l; SELECT (SELECT count(*) FROM (SELECT * FROM main.%s%s EXCEPT SELECT * FROM "
			"l.%s)) + (SELECT count(*) FROM (SELECT * FROM l.%s%s EXCEPT SELECT * FROM main.%s))",
			p->leader.path, tables[i], uses, tables[i], tables[i], uses, tables[i]);
		sqlite3 *db;
		sqlite3_stmt *s;
		const char *tail;
		assert_int_equal(sqlite3_open(p->path, &db), SQLITE_OK);
		assert_int_equal(sqlite3_prepare_v2(db, sql.text, -1, &s, &tail), SQLITE_OK);
		sqlite3_step(s);
		sqlite3_finalize(s);
		if (sqlite3_prepare_v2(db, tail, -1, &s, NULL) != SQLITE_OK)
			fail_msg("%s: %s", tail, sqlite3_errmsg(db));
		assert_int_equal(sqlite3_step(s), SQLITE_ROW);
		if (sqlite3_column_int64(s, 0))
			fail_msg("seed %llu: %s differs in %lld rows", (unsigned long long)seed, tables[i],
				 (long long)sqlite3_column_int64(s, 0));
		sqlite3_finalize(s);
		sqlite3_close(db);
	}
}

static void assert_same_memory(const struct policy_state *a, const struct policy_state *b)
{
	CLEANUP(buf_release) struct buf left = { 0 };
	CLEANUP(buf_release) struct buf right = { 0 };

	policy_state_encode(a, &left);
	policy_state_encode(b, &right);
	assert_int_equal(left.len, right.len);
	assert_memory_equal(left.text, right.text, left.len);
}

/* The leader is gone: its copy knows what it knew, and decides on. */
static void take_over(struct pair *p)
{
	struct history_setup setup = lived_setup(&p->leader, p->path);
	CLEANUP(arena_release) struct arena a = { 0 };
	struct restored r;

	history_close(p->copy);
	p->copy = restore_resume(&setup, &a, &r, &p->error);
	if (!p->copy || r.trouble.kind != ERROR_NONE)
		fail_msg("%s", p->copy ? r.trouble.message : p->error.message);
	assert_int_equal(history_next_tick(p->copy), history_next_tick(p->leader.history));
	assert_same_memory(r.memory, p->leader.memory);
	policy_state_free(r.memory);
}

static void assert_reads(struct pair *p)
{
	struct history_span span;
	struct tick_record r;
	size_t pools;

	history_pools(p->copy, &pools);
	assert_true(history_span(p->copy, &span, &p->error));
	for (int64_t tick = span.first_tick; tick <= span.last_tick; tick++)
		for (size_t pool = 0; pool < pools; pool++)
			if (!history_read(p->copy, tick, pool, &r, &p->error) && p->error.kind != ERROR_NOT_FOUND)
				fail_msg("tick %lld: %s", (long long)tick, p->error.message);
}

static void live(struct pair *p, int tick)
{
	char token[32];
	struct launch l = { .token = token, .group = "g1", .verb = 1, .target = tick, .asked_at = p->leader.now };

	if (!draw(&p->leader, 20))
		lived_change(&p->leader);
	if (!draw(&p->leader, 40))
		lived_start(&p->leader);
	lived_tick(&p->leader);
	snprintf(token, sizeof token, "t-%d", tick);
	if (!draw(&p->leader, 6))
		assert_true(launch_save(p->leader.history, &l, &p->error));
	snprintf(token, sizeof token, "t-%lld", (long long)draw(&p->leader, tick + 1));
	if (draw(&p->leader, 2) && !launch_end(p->leader.history, token, "done", p->leader.now, &p->error))
		assert_int_equal(p->error.kind, ERROR_NOT_FOUND);
}

static void copies_are_equal(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct pair p;

		begin(&p, seed);
		for (int tick = 0; tick < TICKS; tick++) {
			live(&p, tick);
			if (!draw(&p.leader, 10))
				catch_up(&p, 1 << (4 + draw(&p.leader, 14)));
		}
		lived_tick(&p.leader); /* outcomes go with the next tick */
		catch_up(&p, 1 << 20);
		assert_equal_files(&p, seed);
		take_over(&p);
		end(&p);
	}
}

/* From its first batch on it can decide; what was before comes bit by bit, while the leader goes on, and can be read.
 */
static void the_newest_comes_first(void **state)
{
	enum { MANY = 1100 };

	(void)state;
	for (uint64_t seed = 50; seed < 54; seed++) {
		CLEANUP(buf_release) struct buf first = { 0 };
		struct history_span all, some;
		struct pair p;

		begin(&p, seed);
		p.is_newest_first = true;
		lived_tick(&p.leader); /* a manifest without a tick is nobody's */
		for (int tick = 0; tick < MANY; tick++)
			live(&p, tick);
		assert_true(ask(&p, 1 << 20, &first));
		take(&p, &first);
		assert_true(history_span(p.leader.history, &all, &p.error));
		assert_true(history_span(p.copy, &some, &p.error));
		assert_int_equal(some.last_tick, all.last_tick);
		assert_true(some.first_tick > all.first_tick);
		assert_reads(&p);
		for (int tick = MANY; take_past(&p, p.leader.history); tick++) {
			live(&p, tick);
			if (!draw(&p.leader, 2))
				catch_up(&p, 1 << 12);
			assert_reads(&p);
		}
		lived_tick(&p.leader);
		catch_up(&p, 1 << 20);
		assert_equal_files(&p, seed);
		take_over(&p);
		end(&p);
	}
}

static void no_tell(void *user, int64_t ticks)
{
	(void)user;
	(void)ticks;
}

/* A leader with a short memory is followed by one whose own was set aside: that is where the past comes from. */
static void what_was_set_aside_is_recalled(void **state)
{
	CLEANUP(buf_release) struct buf newest = { 0 }, aside = { 0 };
	struct history_span all, span;
	struct pair p;
	bool more = true;
	int batches = 0;

	(void)state;
	begin(&p, 60);
	p.is_newest_first = true;
	for (int tick = 0; tick < 900; tick++)
		live(&p, tick);
	lived_tick(&p.leader);
	assert_true(ask(&p, 1 << 20, &newest));
	assert_true(history_span(p.leader.history, &all, &p.error));
	take(&p, &newest);
	assert_true(replica_recall(p.copy, &more, &p.error));
	assert_false(more); /* nothing is there */
	buf_printf(&aside, "%s.7", p.path);
	struct history *long_one = replica_open(aside.text, &p.error);
	assert_true(long_one && replica_copy(p.leader.history, long_one, no_tell, NULL, &p.error));
	history_close(long_one);
	for (more = true; more; batches += more)
		assert_true(replica_recall(p.copy, &more, &p.error));
	assert_true(batches > 0);
	assert_true(history_span(p.copy, &span, &p.error));
	assert_int_equal(span.first_tick, all.first_tick);
	assert_equal_files(&p, 60);
	remove_history(aside.text);
	end(&p);
}

/* What the leader dropped is no part of a copy, its sums are. */
static void a_history_that_was_cut_is_copied(void **state)
{
	struct history_stretch stretch;
	struct history_span span;
	struct pair p;
	int under_older = 0; /* cuts within a manifest's ticks */
	bool more;

	(void)state;
	for (uint64_t seed = 20; seed < 40; seed += 2) {
		more = true;
		begin(&p, seed);
		for (int tick = 0; tick < TICKS; tick++)
			live(&p, tick);
		while (more)
			assert_true(history_retain_some(p.leader.history, p.leader.now - 10 * LIVED_TICK, 10, &more,
							&p.error));
		assert_true(history_span(p.leader.history, &span, &p.error));
		assert_true(span.first_tick > 0);
		CLEANUP(arena_release) struct arena a = { 0 };
		assert_true(history_stretch_at(p.leader.history, span.first_tick, &a, &stretch, &p.error));
		under_older += stretch.from < span.first_tick;
		lived_tick(&p.leader);
		catch_up(&p, 1 << 12);
		assert_equal_files(&p, seed);
		take_over(&p);
		end(&p);
	}
	assert_true(under_older > 0);
}

static void lost_batches_are_noticed(void **state)
{
	CLEANUP(buf_release) struct buf first = { 0 }, second = { 0 }, third = { 0 };
	struct pair p;

	(void)state;
	begin(&p, 3);
	for (int tick = 0; tick < 30; tick++)
		lived_tick(&p.leader);
	assert_true(ask(&p, 200, &first));
	take(&p, &first);
	assert_true(ask(&p, 200, &second));
	take(&p, &second);
	assert_true(ask(&p, 200, &third));
	history_close(p.copy);
	remove_history(p.path);
	p.copy = replica_open(p.path, &p.error);
	assert_false(replica_import(p.copy, second.text, second.len, &p.error)); /* into nothing */
	assert_int_equal(p.error.kind, ERROR_CONFLICT);
	take(&p, &first);
	assert_false(replica_import(p.copy, third.text, third.len, &p.error));
	assert_int_equal(p.error.kind, ERROR_CONFLICT);
	take(&p, &second);
	take(&p, &first); /* late, and known */
	take(&p, &third);
	end(&p);
}

/* Any byte that changed on the way, and any end that is missing. */
static void damage_is_refused(void **state)
{
	CLEANUP(buf_release) struct buf batch = { 0 };
	struct replica_tail tail;
	struct pair p;

	(void)state;
	begin(&p, 4);
	for (int tick = 0; tick < 5; tick++)
		lived_tick(&p.leader);
	assert_true(ask(&p, 1 << 20, &batch));
	for (int i = 0; i < 300; i++) {
		size_t at = (size_t)draw(&p.leader, (int64_t)batch.len);
		char bit = (char)(1 << draw(&p.leader, 8));

		batch.text[at] ^= bit;
		if (replica_import(p.copy, batch.text, batch.len, &p.error))
			fail_msg("byte %zu of %zu was changed", at, batch.len);
		batch.text[at] ^= bit;
		assert_false(replica_import(p.copy, batch.text, (size_t)draw(&p.leader, (int64_t)batch.len), &p.error));
		assert_int_equal(p.error.kind, ERROR_UNAVAILABLE);
	}
	assert_true(replica_tail(p.copy, &tail, &p.error));
	assert_int_equal(tail.tick, -1);
	assert_int_equal(count_of(p.path, "SELECT count(*) FROM decision"), 0);
	take(&p, &batch);
	end(&p);
}

/* A leader that came back as follower has ticks that the new leader never had. */
static void another_past_starts_over(void **state)
{
	CLEANUP(buf_release) struct buf batch = { 0 };
	struct replica_tail tail;
	struct pair p;

	(void)state;
	begin(&p, 5);
	for (int tick = 0; tick < 5; tick++)
		lived_tick(&p.leader);
	catch_up(&p, 1 << 20);
	assert_true(replica_tail(p.copy, &tail, &p.error));
	assert_int_equal(tail.tick, 4);
	tail.crc ^= 1;
	assert_false(replica_export(p.leader.history, &tail, 1000, &batch, &p.error));
	assert_int_equal(p.error.kind, ERROR_CONFLICT);
	tail = (struct replica_tail){ .tick = 5 };
	assert_false(replica_export(p.leader.history, &tail, 1000, &batch, &p.error));
	assert_int_equal(p.error.kind, ERROR_CONFLICT);
	assert_int_equal(batch.len, 0);
	end(&p);
}

/* Whom somebody else had protected, as a follower that is to lead knows it. */
static size_t spared_at_copy(struct pair *p, bool *is_there)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const char **machines;
	size_t count;

	lived_tick(&p->leader);
	catch_up(p, 1 << 20);
	if (!guard_record_find(p->copy, "g5", &a, &machines, &count, &p->error))
		fail_msg("%s", p->error.message);
	*is_there = machines;
	return count;
}

static void what_is_protected_no_more_is_forgotten_by_a_copy(void **state)
{
	static const char *const persons[] = { "i-1", "i-2" };
	bool is_there;
	struct pair p;

	(void)state;
	begin(&p, 6);
	assert_int_equal(spared_at_copy(&p, &is_there), 0);
	assert_false(is_there);
	assert_true(guard_record_save(p.leader.history, "g5", persons, 2, &p.error));
	assert_int_equal(spared_at_copy(&p, &is_there), 2);
	assert_true(is_there);
	assert_true(guard_record_forget(p.leader.history, "g5", &p.error));
	assert_int_equal(spared_at_copy(&p, &is_there), 0);
	assert_false(is_there);
	end(&p);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_are_equal),
		cmocka_unit_test(a_history_that_was_cut_is_copied),
		cmocka_unit_test(the_newest_comes_first),
		cmocka_unit_test(what_was_set_aside_is_recalled),
		cmocka_unit_test(lost_batches_are_noticed),
		cmocka_unit_test(damage_is_refused),
		cmocka_unit_test(another_past_starts_over),
		cmocka_unit_test(what_is_protected_no_more_is_forgotten_by_a_copy),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
