/* A history is never thrown away: whatever the disk, its owner's hands or the clock do, it stays, or says that it
 * failed. */
#include "base/file.h"
#include "state/replica.h"
#include "state/reserve.h"
#include "tests/unit/state/failing_disk.h"
#include "tests/unit/state/history_made.h"

#include <sys/stat.h>

static const struct history_setup live = { path, "kind: WarmPool\n", &fleet, "0.1.0", "preheat", "a test", 1, HOUR };

static void move(const char *from, const char *to)
{
	assert_int_equal(rename(from, to), 0);
}

static const char *beside(const char *suffix)
{
	static char name[96];

	snprintf(name, sizeof name, "%s%s", path, suffix);
	return name;
}

static bool is_there(const char *suffix)
{
	return !access(beside(suffix), F_OK);
}

static int64_t last_tick(const char *file)
{
	struct history_span span = { .last_tick = -1 };
	struct error e = { 0 };
	struct history *h = history_open(file, &e);

	assert_non_null(h);
	assert_true(history_span(h, &span, &e));
	history_close(h);
	return span.last_tick;
}

static bool append_at(struct history *h, int64_t t, millis late, struct error *e)
{
	struct made m;

	make(&m, t);
	m.snapshot.now += late;
	return history_append(h, &m.snapshot, &m.plan, e);
}

static bool append(struct history *h, int64_t t, struct error *e)
{
	return append_at(h, t, 0, e);
}

/* Whoever copies the file alone, after a stop, has all of it, though somebody looked. */
static void a_clean_stop_leaves_one_whole_file(void **state)
{
	struct error e = { 0 };
	char alone[128];

	(void)state;
	write_file(100, 1);
	struct history *h = history_resume(&live, &e), *reader = open_file();
	assert_non_null(h);
	for (int64_t t = 100; t < 130; t++)
		assert_true(append(h, t, &e));
	assert_int_equal(last_tick(path), 129); /* as a page does, and keeps it open */
	struct history_span span;
	assert_true(history_span(reader, &span, &e));
	assert_true(history_finish(h, &e));
	snprintf(alone, sizeof alone, "%s.alone", path);
	CLEANUP(buf_release) struct buf bytes = { 0 };
	assert_true(file_read(path, (size_t)64 << 20, &bytes, &e));
	FILE *f = fopen(alone, "we");
	assert_int_equal(fwrite(bytes.text, 1, bytes.len, f), bytes.len);
	fclose(f);
	assert_int_equal(last_tick(alone), 129);
	history_close(reader);
	remove_history(alone);
	remove_history(path);
}

static void a_copy_outlives_an_error_of_the_disk(void **state)
{
	CLEANUP(buf_release) struct buf aside = { 0 };
	struct replica_tail tail;
	struct error e = { 0 }, why = { 0 };

	(void)state;
	write_file(300, 100);
	struct history *copy = replica_open(path, &e);
	disk.reads = true;
	assert_false(replica_tail(copy, &tail, &why));
	assert_true(replica_give_way(copy, &why, &aside, &e));
	disk.reads = false;
	assert_int_equal(aside.len, 0);
	assert_int_equal(last_tick(path), 299);
	copy = replica_open(path, &e);
	assert_true(replica_tail(copy, &tail, &e));
	assert_int_equal(tail.tick, 299);
	history_close(copy);
}

static void another_history_gets_another_name(void **state)
{
	static const enum error_kind kinds[] = { ERROR_CONFLICT, ERROR_INVALID };
	struct error e = { 0 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		CLEANUP(buf_release) struct buf aside = { 0 };

		write_file(10 + (int64_t)i, 100);
		struct history *copy = replica_open(path, &e);
		struct error why = { kinds[i], "the leader's is another" };
		assert_true(replica_give_way(copy, &why, &aside, &e));
		assert_false(is_there(""));
		assert_string_equal(aside.text, beside(i ? ".2" : ".1"));
		assert_int_equal(last_tick(aside.text), 9 + (int64_t)i);
	}
	remove_history(beside(".1"));
	remove_history(beside(".2"));
}

static void set_aside(int64_t ticks)
{
	CLEANUP(buf_release) struct buf aside = { 0 };
	struct error e = { 0 };

	write_file(ticks, 100);
	assert_true(history_set_aside(path, &aside, &e));
}

static void only_what_a_copy_covers_is_dropped(void **state)
{
	CLEANUP(buf_release) struct buf dropped = { 0 };
	struct error e = { 0 };

	(void)state;
	set_aside(90); /* longer than the copy */
	set_aside(40);
	set_aside(30);
	write_file(50, 100);
	struct history *copy = replica_open(path, &e);
	assert_true(replica_drop_aside(copy, &dropped, &e));
	assert_int_equal(dropped.len, 0); /* three may stay */
	fclose(fopen(beside(".4"), "w")); /* nothing that can be read */
	assert_true(replica_drop_aside(copy, &dropped, &e));
	assert_string_equal(dropped.text, beside(".3"));
	assert_false(is_there(".3"));
	fclose(fopen(beside(".3"), "w"));
	buf_clear(&dropped);
	assert_true(replica_drop_aside(copy, &dropped, &e));
	assert_string_equal(dropped.text, beside(".2"));
	fclose(fopen(beside(".2"), "w"));
	buf_clear(&dropped);
	assert_true(replica_drop_aside(copy, &dropped, &e));
	assert_int_equal(dropped.len, 0);
	assert_int_equal(last_tick(beside(".1")), 89);
	history_close(copy);
	for (int i = 1; i <= 4; i++)
		remove_history(beside((const char *const[]){ ".1", ".2", ".3", ".4" }[i - 1]));
}

static void a_log_is_not_parted_from_its_file(void **state)
{
	CLEANUP(buf_release) struct buf aside = { 0 };
	struct error e = { 0 };

	(void)state;
	/* The file itself cannot be renamed: it is not there. */
	remove_history(path);
	fclose(fopen(beside("-wal"), "w"));
	assert_false(history_set_aside(path, &aside, &e));
	assert_true(is_there("-wal"));
	remove_history(path);
}

static void a_removed_file_is_noticed(void **state)
{
	struct error e = { 0 };

	(void)state;
	remove_history(path);
	struct history *h = history_resume(&live, &e);
	assert_true(append(h, 0, &e));
	move(path, beside(".moved"));
	assert_false(append(h, 1, &e));
	assert_int_equal(e.kind, ERROR_UNAVAILABLE);
	assert_non_null(strstr(e.message, "removed while it was written"));
	assert_int_equal(history_next_tick(h), 1);
	move(beside(".moved"), path); /* brought back */
	assert_true(append(h, 1, &e));
	history_close(h);
	assert_int_equal(last_tick(path), 1);
}

static void a_replaced_file_is_noticed(void **state)
{
	struct error e = { 0 };

	(void)state;
	remove_history(path);
	struct history *h = history_resume(&live, &e);
	assert_true(append(h, 0, &e));
	move(path, beside(".moved"));
	fclose(fopen(path, "w"));
	assert_false(append(h, 1, &e));
	assert_non_null(strstr(e.message, "replaced by another file"));
	history_close(h);
	remove_history(path);
	remove_history(beside(".moved"));
}

static void a_removed_log_is_noticed(void **state)
{
	struct error e = { 0 };

	(void)state;
	remove_history(path);
	struct history *h = history_resume(&live, &e);
	assert_true(append(h, 0, &e));
	assert_int_equal(unlink(beside("-wal")), 0);
	assert_false(append(h, 1, &e));
	assert_non_null(strstr(e.message, "-wal: removed or replaced"));
	history_close(h);
	remove_history(path);
}

static int mode_of(const char *suffix)
{
	struct stat st;

	assert_int_equal(stat(beside(suffix), &st), 0);
	return (int)(st.st_mode & 0777);
}

static void nobody_else_may_read(void **state)
{
	CLEANUP(buf_release) struct buf aside = { 0 };
	struct error e = { 0 };
	mode_t before = umask(022);

	(void)state;
	remove_history(path);
	struct history *h = history_resume(&live, &e);
	assert_true(append(h, 0, &e));
	assert_int_equal(mode_of(""), 0600);
	assert_int_equal(mode_of("-wal"), 0600);
	assert_int_equal(mode_of("-shm"), 0600);
	history_close(h);
	chmod(path, 0644); /* of a program of before */
	h = replica_open(path, &e);
	assert_int_equal(mode_of(""), 0600);
	history_close(h);
	chmod(path, 0664);
	assert_true(history_set_aside(path, &aside, &e));
	assert_int_equal(mode_of(".1"), 0600);
	remove_history(beside(".1"));
	umask(before);
}

static void checkpoint(struct history *h)
{
	CLEANUP(buf_release) struct buf memory = { 0 };
	struct error e = { 0 };

	buf_text(&memory, "m");
	assert_true(history_checkpoint(h, &memory, &e));
}

static int64_t first_after(struct history *h, millis older_than)
{
	struct history_span span;
	struct error e = { 0 };
	int64_t dropped, told;

	assert_true(history_retain_from(h, older_than, &told, &e));
	assert_true(history_retain(h, older_than, &dropped, &e));
	assert_true(history_span(h, &span, &e));
	assert_int_equal(span.first_tick, told);
	return span.first_tick;
}

/* A start with the clock 60 days ahead: what is kept is 500 ticks. */
static void a_jump_of_the_clock_drops_nothing(void **state)
{
	enum { KEPT = 500, JUMP = 700 };
	struct error e = { 0 };

	(void)state;
	remove_history(path);
	struct history *h = history_create(&live, &e);
	for (int64_t t = 0; t < 1400; t++) {
		millis late = t < JUMP ? 0 : 60 * DAY;

		assert_true(append_at(h, t, late, &e));
		if (t % 100 == 99)
			checkpoint(h);
		if (t % 50 != 0)
			continue;
		int64_t first = first_after(h, start + (t + 1) * TICK + late - KEPT * TICK);
		int64_t wanted = t < KEPT ? 0 : (t + 1 - KEPT) / 100 * 100;
		if (first > wanted)
			fail_msg("after tick %lld: tick %lld is the first", (long long)t, (long long)first);
		/* Of the checkpoints of an earlier day the first of each stays, and no cut is between them. */
		if (t < JUMP && first != wanted)
			fail_msg("after tick %lld: tick %lld is the first", (long long)t, (long long)first);
	}
	assert_int_equal(first_after(h, start + 1400 * TICK + 60 * DAY - KEPT * TICK), 900);
	history_close(h);
	remove_history(path);
}

/* A disk that is full for all but the reserve, as the disk below reports it. */
static void a_full_disk_is_written_on(void **state)
{
	static const int64_t plenty = INT64_C(1) << 40;
	struct error e = { 0 };
	struct stat st;

	(void)state;
	remove_history(path);
	struct history *h = history_resume(&live, &e);
	assert_true(reserve_free(path) >= 0);
	assert_false(reserve_make(path, 4 * RESERVE_BYTES)); /* others need that soon */
	assert_true(reserve_make(path, plenty));
	assert_false(reserve_make(path, plenty));
	assert_int_equal(mode_of("-reserve"), 0600);
	assert_int_equal(stat(beside("-reserve"), &st), 0);
	assert_true((int64_t)st.st_blocks * 512 >= RESERVE_BYTES); /* really taken */
	assert_false(reserve_give_up(path, plenty));
	assert_false(reserve_give_up(path, -1));
	assert_true(append(h, 0, &e));
	disk.is_full = true;
	assert_false(append(h, 1, &e));
	assert_int_equal(e.kind, ERROR_UNAVAILABLE);
	assert_int_equal(history_next_tick(h), 1);
	disk.is_full = !reserve_give_up(path, RESERVE_LOW - 1);
	assert_true(append(h, 1, &e));
	assert_false(reserve_give_up(path, 0)); /* it is gone */
	history_close(h);
	assert_int_equal(last_tick(path), 1);
	remove_history(path);
}

static int begin(void **state)
{
	disk_begin();
	return make_folder(state);
}

static int end(void **state)
{
	remove_history(path);
	return remove_folder(state);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_clean_stop_leaves_one_whole_file),
		cmocka_unit_test(a_copy_outlives_an_error_of_the_disk),
		cmocka_unit_test(another_history_gets_another_name),
		cmocka_unit_test(only_what_a_copy_covers_is_dropped),
		cmocka_unit_test(a_log_is_not_parted_from_its_file),
		cmocka_unit_test(a_removed_file_is_noticed),
		cmocka_unit_test(a_replaced_file_is_noticed),
		cmocka_unit_test(a_removed_log_is_noticed),
		cmocka_unit_test(nobody_else_may_read),
		cmocka_unit_test(a_jump_of_the_clock_drops_nothing),
		cmocka_unit_test(a_full_disk_is_written_on),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
