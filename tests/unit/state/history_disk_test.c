/*
 * A short run of a controller's history on a disk that fails at the n-th call, for every n: once or from then on, as
 * full (writes, syncs, truncations) or with an error (reads, sizes, opening and deleting, too). What was said to be
 * recorded is there afterwards, nothing was done that is not, and whoever comes next goes on.
 */
#include "state/launch.h"
#include "tests/unit/state/failing_disk.h"
#include "tests/unit/state/history_made.h"

#include <errno.h>

enum { TICKS = 6, LAUNCHES = 3 };

/* What the run was told to be recorded. */
struct told {
	int64_t ticks;
	int saved, gone_on, ended, checkpoints; /* launches, in order */
};

static const char *token_of(int i)
{
	static const char *const tokens[LAUNCHES] = { "t-0", "t-1", "t-2" };

	return tokens[i];
}

static struct history_setup setup_of(void)
{
	return (struct history_setup){ path, "kind: WarmPool\n", &fleet, "0.1.0", "preheat", "a test", 1, HOUR };
}

static bool launch_once(struct history *h, int i, struct told *told)
{
	struct launch l = { .token = token_of(i), .group = "spot", .verb = 1, .target = i + 1, .asked_at = start };
	struct error e;

	if (!launch_save(h, &l, &e))
		return false;
	told->saved++; /* from here on the cloud is asked */
	if (!launch_goes_on(h, l.token, "operation", &e))
		return false;
	told->gone_on++;
	if (i == LAUNCHES - 1)
		return true;
	if (!launch_end(h, l.token, "done", start + 9, &e))
		return false;
	told->ended++;
	return true;
}

/* As a controller does it: it ends with the first that cannot be recorded. */
static void run(struct told *told)
{
	struct history_setup setup = setup_of();
	struct error e = { 0 };
	struct made m;
	struct history *h = history_create(&setup, &e);
	bool ok = h != NULL;

	for (int64_t t = 0; ok && t < TICKS; t++) {
		make(&m, t);
		if (history_wants_checkpoint(h)) {
			CLEANUP(buf_release) struct buf memory = { 0 };
			buf_printf(&memory, "memory before %lld", (long long)t);
			ok = history_checkpoint(h, &memory, &e);
			told->checkpoints += ok;
		}
		ok = ok && history_append(h, &m.snapshot, &m.plan, &e);
		told->ticks += ok;
		ok = ok && (t % 2 || launch_once(h, (int)t / 2, told));
	}
	history_close(h);
}

static void assert_launches(struct history *h, const struct told *told, long n)
{
	const struct launch_filter all = { start, start + 9, NULL, 10 };
	CLEANUP(arena_release) struct arena a = { 0 };
	struct launch *found;
	struct error e = { 0 };
	size_t count;

	if (!launch_find(h, &all, &a, &found, &count, &e))
		fail_msg("%ld: %s", n, e.message);
	if ((int)count < told->saved)
		fail_msg("%ld: %d launches were recorded, %zu are there", n, told->saved, count);
	for (int i = 0; i < told->saved; i++) {
		assert_string_equal(found[i].token, token_of(i));
		assert_int_equal(found[i].target, i + 1);
		assert_true(i >= told->gone_on || !strcmp(found[i].operation, "operation"));
		assert_true(i >= told->ended || found[i].outcome);
	}
}

static void assert_all_there(const struct told *told, long n)
{
	struct error e = { 0 };
	struct tick_record r;
	struct history *h = history_open(path, &e);

	if (!h && !told->ticks && !told->saved)
		return; /* it was never made */
	if (!h)
		fail_msg("%ld: %s", n, e.message);
	for (int64_t t = 0; t < told->ticks; t++)
		for (size_t p = 0; p < 2; p++) {
			if (!history_read(h, t, p, &r, &e))
				fail_msg("%ld: tick %d of %d: %s", n, (int)t, (int)told->ticks, e.message);
			assert_tick(&r, t);
		}
	assert_launches(h, told, n);
	history_close(h);
}

static void assert_goes_on(const struct told *told, long n)
{
	struct history_setup setup = setup_of();
	struct error e = { 0 };
	struct made m;
	struct history *h = history_resume(&setup, &e);

	if (!h)
		fail_msg("%ld: it does not go on: %s", n, e.message);
	int64_t next = history_next_tick(h);
	assert_true(next >= told->ticks && next <= told->ticks + 1);
	make(&m, next);
	if (!history_append(h, &m.snapshot, &m.plan, &e))
		fail_msg("%ld: no tick can be added: %s", n, e.message);
	assert_true(history_finish(h, &e));
}

static void fail_at_each(int code, bool fails_on)
{
	struct told whole = { 0 };

	disk.changes = disk.fails_at = 0;
	disk.code = code;
	remove_history(path);
	run(&whole);
	assert_int_equal(whole.ticks, TICKS);
	assert_int_equal(whole.saved, LAUNCHES);
	long all = disk.changes;
	assert_true(all > 50);
	for (long n = 1; n <= all; n++) {
		struct told told = { 0 };
		remove_history(path);
		disk.changes = 0;
		disk.fails_at = n;
		disk.fails_on = fails_on;
		run(&told);
		disk.fails_at = 0;
		assert_all_there(&told, n);
		assert_goes_on(&told, n);
		assert_all_there(&told, n);
	}
	remove_history(path);
}

static void an_error_at_any_call_loses_nothing(void **state)
{
	(void)state;
	fail_at_each(SQLITE_IOERR, false);
	fail_at_each(SQLITE_IOERR, true);
}

static void a_full_disk_at_any_write_loses_nothing(void **state)
{
	(void)state;
	fail_at_each(SQLITE_FULL, false);
	fail_at_each(SQLITE_FULL, true);
}

static ssize_t write_over_quota(int fd, const void *from, size_t len, off_t at)
{
	(void)fd;
	(void)from;
	(void)len;
	(void)at;
	errno = EDQUOT;
	return -1;
}

/* As the kernel tells it: SQLite calls it an error of the disk, and after a commit keeps no number of it. */
static void a_quota_that_is_used_up_is_no_room(void **state)
{
	struct history_setup setup = setup_of();
	struct error e = { 0 };
	struct made m;
	struct history *h = history_create(&setup, &e);

	(void)state;
	assert_non_null(h);
	make(&m, 0);
	disk.usual->xSetSystemCall(disk.usual, "pwrite64", (sqlite3_syscall_ptr)write_over_quota);
	assert_false(history_append(h, &m.snapshot, &m.plan, &e));
	disk.usual->xSetSystemCall(disk.usual, "pwrite64", NULL);
	assert_true(history_lacks_room(h));
	assert_non_null(strstr(e.message, "the disk is full"));
	assert_true(history_append(h, &m.snapshot, &m.plan, &e));
	history_close(h);
	remove_history(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_error_at_any_call_loses_nothing),
		cmocka_unit_test(a_full_disk_at_any_write_loses_nothing),
		cmocka_unit_test(a_quota_that_is_used_up_is_no_room),
	};

	disk_begin();
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
