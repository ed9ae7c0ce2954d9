/* However a controller ended, the next one knows what it knew; and all of it can be decided again. */
#include "base/file.h"
#include "tests/unit/restore/recorded_run.h"

#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>

static char folder[] = "/tmp/preheat-recall-XXXXXX";

enum { SEEDS = 12, TICKS = 150 };

static bool is_same_memory(const struct policy_state *a, const struct policy_state *b)
{
	CLEANUP(buf_release) struct buf left = { 0 };
	CLEANUP(buf_release) struct buf right = { 0 };

	policy_state_encode(a, &left);
	policy_state_encode(b, &right);
	return left.len == right.len && !memcmp(left.text, right.text, left.len);
}

/* What replay does: from the first tick on, each plan is the stored one. */
static void assert_replays(const struct lived *l, uint64_t seed)
{
	struct error e = { 0 };
	struct history_span span;
	struct cursor_tick t;
	struct history *h = history_open(l->path, &e);

	assert_non_null(h);
	assert_true(history_span(h, &span, &e));
	struct tick_cursor *w = tick_cursor_open(h, 0, &e);
	assert_non_null(w);
	struct policy_state *m = NULL;
	for (int64_t tick = 0; tick <= span.last_tick; tick++) {
		CLEANUP(arena_release) struct arena a = { 0 };

		if (!tick_cursor_next(w, &t, &e))
			fail_msg("seed %llu: %s", (unsigned long long)seed, e.message);
		struct policy_state *next = t.is_fresh ? policy_state_new(t.snapshot.fleet)
					    : t.was    ? policy_state_migrate(m, t.was, t.snapshot.fleet)
						       : m;
		if (next != m)
			policy_state_free(m);
		m = next;
		struct plan now = policy_decide(&t.snapshot, m, &a);
		for (size_t i = 0; i < now.pool_count; i++)
			if (memcmp(&now.pools[i].decision, &t.plans[i]->decision, sizeof now.pools[i].decision))
				fail_msg("seed %llu: tick %lld, pool %zu differs", (unsigned long long)seed,
					 (long long)tick, i);
	}
	struct policy_state *carried = policy_state_migrate(m, t.snapshot.fleet, &l->manifest->fleet);
	assert_true(is_same_memory(carried, l->memory));
	policy_state_free(carried);
	policy_state_free(m);
	tick_cursor_close(w);
	history_close(h);
}

static void copy_file(const char *from, const char *to, const char *suffix, size_t lost)
{
	CLEANUP(buf_release) struct buf source = { 0 };
	CLEANUP(buf_release) struct buf target = { 0 };
	CLEANUP(buf_release) struct buf bytes = { 0 };
	struct error e = { 0 };

	buf_printf(&source, "%s%s", from, suffix);
	buf_printf(&target, "%s%s", to, suffix);
	unlink(target.text);
	if (access(source.text, F_OK))
		return;
	assert_true(file_read(source.text, 1 << 28, &bytes, &e));
	assert_true(file_write(target.text, bytes.text, bytes.len > lost ? bytes.len - lost : 0, &e));
}

static void remove_copy(const char *path)
{
	static const char *const suffixes[] = { "", "-wal", "-shm" };

	for (size_t i = 0; i < 3; i++) {
		CLEANUP(buf_release) struct buf name = { 0 };

		buf_printf(&name, "%s%s", path, suffixes[i]);
		unlink(name.text);
	}
}

/* The file as a machine that lost power would leave it, or one whose last write was torn; then one more tick. */
static void assert_copy_resumes(struct lived *l, size_t lost, uint64_t seed)
{
	char path[128];
	CLEANUP(arena_release) struct arena a = { 0 };
	struct restored r;

	snprintf(path, sizeof path, "%s.copy", l->path);
	copy_file(l->path, path, "", 0);
	copy_file(l->path, path, "-wal", lost);
	struct history_setup setup = lived_setup(l, path);
	struct history *h = restore_resume(&setup, &a, &r, &l->error);
	if (!h || r.trouble.kind != ERROR_NONE)
		fail_msg("seed %llu: %s", (unsigned long long)seed, h ? r.trouble.message : l->error.message);
	assert_true(history_next_tick(h) <= history_next_tick(l->history));
	if (!lost) {
		assert_int_equal(history_next_tick(h), history_next_tick(l->history));
		assert_true(is_same_memory(r.memory, l->memory));
		assert_true(!r.plan.pools == !history_next_tick(h));
	}
	struct lived other = *l;
	other.history = h;
	other.memory = r.memory;
	lived_tick(&other);
	policy_state_free(other.memory);
	history_close(h);
	remove_copy(path);
}

static void every_copy_goes_on(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct lived l;

		lived_begin(&l, folder, seed);
		for (int tick = 0; tick < 60; tick++) {
			if (!draw(&l, 20))
				lived_change(&l);
			assert_copy_resumes(&l, 0, seed);
			lived_tick(&l);
			assert_copy_resumes(&l, (size_t)draw(&l, 9000), seed);
		}
		assert_replays(&l, seed);
		lived_end(&l);
	}
}

static void lives_can_be_decided_again(void **state)
{
	(void)state;
	for (uint64_t seed = 100; seed < 100 + SEEDS; seed++) {
		struct lived l;

		lived_begin(&l, folder, seed);
		for (int tick = 0; tick < TICKS; tick++) {
			if (!draw(&l, 25))
				lived_change(&l);
			if (!draw(&l, 25)) {
				if (draw(&l, 2)) /* a start with another manifest */
					l.manifest = lived_manifest(&l);
				lived_start(&l);
			}
			lived_tick(&l);
		}
		assert_replays(&l, seed);
		lived_end(&l);
	}
}

/* Writes ticks until it is killed, and says each one that is kept. */
static void write_for_ever(struct lived *l, int said)
{
	lived_start(l);
	for (;;) {
		if (!draw(l, 15))
			lived_change(l);
		lived_tick(l);
		if (write(said, "", 1) != 1)
			_exit(1);
	}
}

static void killed_in_the_middle_nothing_kept_is_lost(void **state)
{
	(void)state;
	for (uint64_t seed = 40; seed < 50; seed++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct restored r;
		struct lived l;
		int pipe_ends[2];
		char byte;

		lived_begin(&l, folder, seed);
		history_close(l.history);
		l.history = NULL;
		assert_int_equal(pipe(pipe_ends), 0);
		pid_t child = fork();
		if (!child)
			write_for_ever(&l, pipe_ends[1]);
		int64_t kept = 1 + draw(&l, 60);
		for (int64_t i = 0; i < kept; i++)
			assert_int_equal(read(pipe_ends[0], &byte, 1), 1);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		close(pipe_ends[0]);
		close(pipe_ends[1]);
		struct history_setup setup = lived_setup(&l, l.path);
		struct history *h = restore_resume(&setup, &a, &r, &l.error);
		if (!h || r.trouble.kind != ERROR_NONE)
			fail_msg("seed %llu: %s", (unsigned long long)seed, h ? r.trouble.message : l.error.message);
		assert_true(history_next_tick(h) >= kept);
		history_close(h);
		policy_state_free(l.memory);
		l.memory = r.memory;
		assert_replays(&l, seed);
		lived_end(&l);
	}
}

static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* A tick that could not be kept never was: the same number is next, and the memory is restored. */
static void a_full_disk_is_gone_on_from(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct restored r;
	struct lived l;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	lived_begin(&l, folder, 61);
	for (int round = 0; round < 5; round++) {
		for (int tick = 0; tick < 20; tick++)
			lived_tick(&l);
		limit_files((rlim_t)(200000 + draw(&l, 100000)));
		while (lived_try(&l))
			;
		limit_files(RLIM_INFINITY);
		assert_int_equal(l.error.kind, ERROR_UNAVAILABLE);
		assert_true(restore_memory(l.history, &l.manifest->fleet, &a, &r, &l.error));
		assert_int_equal(r.trouble.kind, ERROR_NONE);
		policy_state_free(l.memory);
		l.memory = r.memory;
	}
	lived_tick(&l);
	assert_replays(&l, 61);
	lived_end(&l);
}

static void sql(const char *path, const char *text)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

/* A memory that is lost is told, and the history says where a new one began. */
static void a_checkpoint_of_no_use_begins_anew(void **state)
{
	static const struct {
		const char *damage, *words;
	} cases[] = {
		{ "UPDATE checkpoint SET bytes = x'00'", "checkpoint of tick" },
		{ "UPDATE checkpoint SET crc = 1", "is damaged" },
		{ "UPDATE decision SET input = x'00' WHERE tick = 60", "tick 60" },
		{ "DELETE FROM checkpoint; UPDATE writer SET is_fresh = 0; DELETE FROM decision WHERE tick < 10;"
		  "DELETE FROM tick WHERE id < 10",
		  "no checkpoint" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct restored r;
		struct lived l;

		lived_begin(&l, folder, 8);
		for (int tick = 0; tick < 61; tick++)
			lived_tick(&l);
		history_close(l.history);
		sql(l.path, cases[i].damage);
		policy_state_free(l.memory);
		struct history_setup setup = lived_setup(&l, l.path);
		l.history = restore_resume(&setup, &a, &r, &l.error);
		if (!l.history || !strstr(r.trouble.message, cases[i].words))
			fail_msg("case %zu: %s", i, l.history ? r.trouble.message : l.error.message);
		l.memory = r.memory;
		assert_int_equal(history_next_tick(l.history), 61);
		for (int tick = 0; tick < 10; tick++)
			lived_tick(&l);
		lived_start(&l); /* now without trouble */
		if (i < 2)
			assert_replays(&l, 8);
		lived_end(&l);
	}
}

static int version_of(const char *path)
{
	sqlite3 *db;
	sqlite3_stmt *s;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &s, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	int version = sqlite3_column_int(s, 0);
	sqlite3_finalize(s);
	sqlite3_close(db);
	return version;
}

/* An upgrade starts, and what was is kept under another name. */
static void a_history_of_another_version_is_set_aside(void **state)
{
	static const char *const changes[] = {
		"UPDATE fact SET value = 'x' WHERE name = 'layout'", "PRAGMA user_version = 99",
		("UPDATE fact SET value = 'x' WHERE name = 'layout'; ALTER TABLE launch DROP COLUMN operation;"
		 " PRAGMA user_version = 3")
	};
	static const int versions[] = { 9, 99, 3 };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		CLEANUP(buf_release) struct buf aside = { 0 };
		struct restored r;
		struct lived l;

		lived_begin(&l, folder, 9);
		lived_tick(&l);
		history_close(l.history);
		policy_state_free(l.memory);
		sql(l.path, changes[i]);
		struct history_setup setup = lived_setup(&l, l.path);
		l.history = restore_resume(&setup, &a, &r, &l.error);
		if (!l.history)
			fail_msg("%s", l.error.message);
		l.memory = r.memory;
		buf_printf(&aside, "%s.1", l.path);
		assert_non_null(strstr(r.trouble.message, aside.text));
		assert_int_equal(access(aside.text, F_OK), 0);
		assert_int_equal(version_of(aside.text), versions[i]); /* whoever wrote it reads it still */
		lived_tick(&l);
		lived_start(&l);
		assert_int_equal(history_next_tick(l.history), 1);
		lived_end(&l);
		remove_copy(aside.text);
	}
}

static void another_program_s_file_is_left_alone(void **state)
{
	static const char *const texts[] = { "mine, not a database at all, and long enough to be looked at .........",
					     NULL };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct restored r;
		struct lived l;

		lived_begin(&l, folder, 9);
		history_close(l.history);
		l.history = NULL;
		remove_copy(l.path);
		if (texts[i])
			assert_true(file_write(l.path, texts[i], strlen(texts[i]), &l.error));
		else
			sql(l.path, "CREATE TABLE t (a)");
		struct history_setup setup = lived_setup(&l, l.path);
		assert_null(restore_resume(&setup, &a, &r, &l.error));
		assert_int_equal(l.error.kind, ERROR_INVALID);
		assert_non_null(strstr(l.error.message, "not a history"));
		lived_end(&l);
	}
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	CLEANUP(buf_release) struct buf path = { 0 };

	(void)state;
	buf_printf(&path, "%s/history.db", folder);
	remove_copy(path.text);
	return rmdir(folder);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_copy_goes_on),
		cmocka_unit_test(lives_can_be_decided_again),
		cmocka_unit_test(killed_in_the_middle_nothing_kept_is_lost),
		cmocka_unit_test(a_full_disk_is_gone_on_from),
		cmocka_unit_test(a_checkpoint_of_no_use_begins_anew),
		cmocka_unit_test(a_history_of_another_version_is_set_aside),
		cmocka_unit_test(another_program_s_file_is_left_alone),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
