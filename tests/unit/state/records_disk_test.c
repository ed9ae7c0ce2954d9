/*
 * What is kept beside ticks and launches, on a disk whose n-th call fails, for every n: once or from then on, with an
 * error or for lack of room. What was said to be recorded is there, what was not is there whole or not at all, no
 * history is thrown away, and it goes on as soon as the disk is well.
 */
#include "base/file.h"
#include "state/contention_record.h"
#include "state/drain_record.h"
#include "state/future.h"
#include "state/guard_record.h"
#include "state/launch.h"
#include "state/replica.h"
#include "state/reserve.h"
#include "state/record.h"
#include "state/share_record.h"
#include "tests/unit/state/failing_calls.h"
#include "tests/unit/state/history_made.h"

enum { TICKS = 40, OLD_TICKS = 7, BATCHES = 4, MANY = 200 /* calls of a case */ };

static const struct history_setup live = { path, "kind: WarmPool\n", &fleet, "0.1.0", "preheat", "a test", 1, HOUR };
static struct history *h;
static struct error e;
static bool is_once;		    /* of the fault that is there now */
static struct buf whole[TICKS + 2]; /* histories of so many ticks */

/* --- files --- */

static const char *beside(const char *suffix)
{
	static char names[4][96];
	static size_t next;
	char *name = names[next++ % 4];

	snprintf(name, sizeof names[0], "%s%s", path, suffix);
	return name;
}

static bool is_there(const char *suffix)
{
	return !access(beside(suffix), F_OK);
}

static void remove_all(void)
{
	static const char *const all[] = { "", ".1", ".2", ".3", ".4", ".5", ".leader", ".kept" };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		remove_history(beside(all[i]));
	unlink(beside("-reserve"));
}

/* Its ticks, each of them read; -1: no history. */
static int64_t ticks_in(const char *file)
{
	struct history_span span = { .last_tick = -1 };
	struct tick_record r;
	struct history *one = history_open(file, &e);

	if (!one)
		return -1;
	if (!history_span(one, &span, &e))
		fail_msg("%s: %s", file, e.message);
	for (int64_t t = span.first_tick; t <= span.last_tick; t++) {
		if (!history_read(one, t, 0, &r, &e))
			fail_msg("%s, tick %lld: %s", file, (long long)t, e.message);
		assert_tick(&r, t);
	}
	history_close(one);
	return span.last_tick + 1;
}

static void append_to(struct history *to, int64_t t)
{
	struct made m;

	make(&m, t);
	if (!history_append(to, &m.snapshot, &m.plan, &e))
		fail_msg("tick %lld: %s", (long long)t, e.message);
}

static void put_file(const char *file, const struct buf *bytes)
{
	FILE *f = fopen(file, "we");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes->text, 1, bytes->len, f), bytes->len);
	fclose(f);
}

static void copy_file(const char *from, const char *to)
{
	CLEANUP(buf_release) struct buf bytes = { 0 };

	assert_true(file_read(from, (size_t)64 << 20, &bytes, &e));
	put_file(to, &bytes);
}

/* Made once for each length. */
static void leave(int64_t ticks)
{
	struct buf *bytes = &whole[ticks];

	if (bytes->len) {
		put_file(path, bytes);
		return;
	}
	write_file(ticks, 100);
	assert_true(file_read(path, (size_t)64 << 20, bytes, &e));
}

/* As a process leaves it that is killed: its last ticks are in the log alone. */
static void leave_killed(void)
{
	leave(TICKS - 5);
	h = history_resume(&live, &e);
	for (int64_t t = TICKS - 5; t < TICKS; t++)
		append_to(h, t);
	copy_file(path, beside(".kept"));
	copy_file(beside("-wal"), beside(".kept-wal"));
	history_close(h);
	h = NULL;
	remove_history(path);
	rename(beside(".kept"), path);
	rename(beside(".kept-wal"), beside("-wal"));
}

/* One that was set aside before. */
static void leave_older(void)
{
	CLEANUP(buf_release) struct buf aside = { 0 };

	leave(OLD_TICKS);
	assert_true(history_set_aside(path, &aside, &e));
	assert_string_equal(aside.text, beside(".1"));
}

static void assert_older_is_there(void)
{
	assert_int_equal(ticks_in(beside(".1")), OLD_TICKS);
}

static void open_one(void)
{
	leave(TICKS);
	h = history_resume(&live, &e);
	assert_non_null(h);
}

/* It goes on with the next tick. */
static void close_one(void)
{
	assert_int_equal(history_next_tick(h), TICKS);
	append_to(h, TICKS);
	assert_true(history_finish(h, &e));
	h = NULL;
	assert_int_equal(ticks_in(path), TICKS + 1);
}

/* --- rows of drains --- */

static const struct drain_record drained = { .node = "n",
					     .machine = "m-1",
					     .pool = "llm/chat",
					     .group = "spot",
					     .fate = "remove",
					     .why = "fewer are needed",
					     .term = 3,
					     .asked_at = start };
static int told; /* so many steps were said to be recorded */

static bool drain_step(int step)
{
	switch (step) {
	case 0:
		return drain_record_save(h, &drained, &e);
	case 1:
		return drain_record_release(h, "n", start, start + 1, &e);
	case 2:
		return drain_record_end(h, "n", start, "removed", start + 2, &e);
	default:
		return drain_record_unmark(h, "n", "removed", start + 3, &e);
	}
}

static void drains(void)
{
	for (told = 0; told < 4 && drain_step(told);)
		told++;
}

static void assert_drained(int steps, int most)
{
	const struct drain_filter all = { start, start + 9, NULL, 10 };
	CLEANUP(arena_release) struct arena a = { 0 };
	struct drain_record *found;
	size_t count;
	struct history *one = open_file();

	assert_true(drain_record_find(one, &all, &a, &found, &count, &e));
	assert_true(count == 1 || (!count && !steps));
	if (count) {
		assert_string_equal(found->machine, "m-1");
		assert_string_equal(found->why, "fewer are needed");
		assert_int_equal(found->term, 3);
		assert_true(found->released_at == (steps > 1 || (most > 1 && found->released_at) ? start + 1 : 0));
		assert_true(found->ended_at == (steps > 2 || (most > 2 && found->ended_at) ? start + 2 : 0));
		assert_true(found->unmarked_at == (steps > 3 || (most > 3 && found->unmarked_at) ? start + 3 : 0));
		assert_int_equal(found->outcome != NULL, found->ended_at != 0);
	}
	history_close(one);
}

static void check_drains(void)
{
	assert_drained(told, told + 1);
	for (int step = told; step < 4; step++)
		if (!drain_step(step))
			fail_msg("step %d again: %s", step, e.message);
	assert_drained(4, 4);
	close_one();
}

/* --- facts of groups --- */

static const struct contention_record fight = { true, HOUR, 3, start, start + 1, start + 2 };
static const char *const guarded_ones[] = { "i-1", "i-2" };

static void facts(void)
{
	told = 0;
	if (!guard_record_save(h, "spot", guarded_ones, 2, &e) || ++told < 1 ||
	    !contention_record_save(h, "spot", &fight, &e) || ++told < 2 || !guard_record_forget(h, "spot", &e))
		return;
	told++;
}

static void assert_facts(int least, int most)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct contention_record found = { 0 };
	const char **machines;
	size_t count;
	struct history *one = open_file();

	assert_true(guard_record_find(one, "spot", &a, &machines, &count, &e));
	assert_true(machines || least < 1 || most > 2);
	assert_true(!machines || (count == 2 && !strcmp(machines[0], "i-1") && !strcmp(machines[1], "i-2")));
	assert_false(machines && (least > 2 || most < 1));
	bool is_found = contention_record_find(one, "spot", &found);
	assert_true(is_found || least < 2);
	assert_true(!is_found || !memcmp(&found.quiet, &fight.quiet, sizeof fight - sizeof(millis)));
	history_close(one);
}

static void check_facts(void)
{
	assert_facts(told, told + 1);
	facts();
	assert_int_equal(told, 3);
	assert_facts(3, 3);
	close_one();
}

/* --- engines that are moved --- */

static struct engine_move_record move = { .uid = "u-1",
					  .pod = "llm/chat-0",
					  .pool = "llm/chat",
					  .share = "llm/chat",
					  .slot = "n/0",
					  .why = "idle",
					  .term = 3,
					  .asked_at = start };

static bool move_step(int step)
{
	move.outcome = step ? "done" : NULL;
	move.ended_at = step ? start + 4 : 0;
	return step ? engine_move_end(h, &move, &e) : engine_move_save(h, &move, &e);
}

static void moves(void)
{
	for (told = 0; told < 2 && move_step(told);)
		told++;
}

static void assert_moved(int steps)
{
	const struct engine_move_filter all = { start, start + 9, NULL, 10 };
	CLEANUP(arena_release) struct arena a = { 0 };
	struct engine_move_record *found;
	size_t count;
	struct history *one = open_file();

	assert_true(engine_move_find(one, &all, &a, &found, &count, &e));
	assert_true(count == 1 || (!count && !steps));
	if (count) {
		assert_string_equal(found->slot, "n/0");
		assert_true(steps < 2 || found->ended_at == start + 4);
		assert_int_equal(found->outcome != NULL, found->ended_at != 0);
	}
	history_close(one);
}

static void check_moves(void)
{
	assert_moved(told);
	for (int step = told; step < 2; step++)
		assert_true(move_step(step));
	assert_moved(2);
	close_one();
}

/* --- set aside --- */

static struct buf aside;
static bool is_ok;

static void older_and_killed(void)
{
	leave_older();
	leave_killed();
	buf_clear(&aside);
}

static void sets_aside(void)
{
	is_ok = history_set_aside(path, &aside, &e);
}

static void check_aside(void)
{
	assert_older_is_there();
	if (!is_ok) {
		if (is_once)
			assert_int_equal(ticks_in(path), TICKS);
		buf_clear(&aside);
		assert_true(history_set_aside(path, &aside, &e));
	}
	assert_false(is_there(""));
	assert_int_equal(ticks_in(aside.text), TICKS);
}

static void set_layout(uint32_t layout)
{
	char text[96];

	snprintf(text, sizeof text, "UPDATE fact SET value = '%08x' WHERE name = 'layout'", layout);
	sql(text);
}

/* Of another version: whoever copies there has to put it aside. */
static void older_and_foreign(void)
{
	older_and_killed();
	set_layout(~record_layout());
}

static void opens_copy(void)
{
	h = replica_open(path, &e);
	is_ok = h != NULL;
}

static void check_opened(void)
{
	if (!is_ok)
		assert_non_null(h = replica_open(path, &e));
	history_close(h);
	h = NULL;
	remove_history(path);
	assert_older_is_there();
	rename(beside(".2"), path);
	set_layout(record_layout());
	assert_int_equal(ticks_in(path), TICKS);
}

/* --- a clock that ran ahead --- */

static void puts_future_aside(void)
{
	is_ok = history_put_future_aside(path, start + 20 * TICK + 1, &aside, &e);
}

static void check_future(void)
{
	assert_older_is_there();
	if (!is_ok) {
		assert_int_equal(ticks_in(path), TICKS);
		buf_clear(&aside);
		assert_true(history_put_future_aside(path, start + 20 * TICK + 1, &aside, &e));
	}
	assert_int_equal(ticks_in(path), 20);
	assert_int_equal(ticks_in(aside.text), TICKS);
}

/* --- the reserve --- */

static void reserves(void)
{
	static const int64_t plenty = INT64_C(1) << 40;

	is_ok = reserve_make(path, plenty);
}

static int64_t reserved(void)
{
	struct stat st;

	return stat(beside("-reserve"), &st) ? -1 : (int64_t)st.st_size;
}

static void check_reserved(void)
{
	if (is_ok || is_once)
		assert_int_equal(reserved(), is_ok ? RESERVE_BYTES : -1);
	close_one();
}

static void open_reserved(void)
{
	open_one();
	reserves();
	assert_true(is_ok);
}

static void gives_up(void)
{
	is_ok = reserve_give_up(path, 0);
}

static void check_given_up(void)
{
	assert_int_equal(reserved(), is_ok ? -1 : RESERVE_BYTES);
	if (!is_ok)
		assert_true(reserve_give_up(path, 0));
	close_one();
}

/* --- a follower's copy --- */

static struct buf batches[BATCHES];

static void take_batch(size_t i)
{
	if (!replica_import(h, batches[i].text, batches[i].len, &e))
		fail_msg("batch %zu: %s", i, e.message);
}

/* The beginning of a leader's history at a follower, and what follows on its way. */
static void leave_copy(void)
{
	struct replica_tail tail;

	leave(TICKS);
	rename(path, beside(".leader"));
	struct history *leader = history_open(beside(".leader"), &e);
	assert_non_null(h = replica_open(path, &e));
	for (size_t i = 0; i < BATCHES; i++) {
		buf_clear(&batches[i]);
		assert_true(replica_tail(h, &tail, &e) && replica_export(leader, &tail, 300, &batches[i], &e));
		take_batch(i);
		if (i)
			continue;
		history_close(h);
		copy_file(path, beside(".kept"));
		assert_non_null(h = replica_open(path, &e));
	}
	history_close(h);
	history_close(leader);
	h = NULL;
	remove_history(path);
	rename(beside(".kept"), path);
	buf_clear(&aside);
}

static void copies(void)
{
	struct error why = { 0 };

	h = replica_open(path, &e);
	for (size_t i = 1; h && i < BATCHES; i++)
		if (!replica_import(h, batches[i].text, batches[i].len, &why)) {
			is_ok = replica_give_way(h, &why, &aside, &e);
			e = why;
			h = NULL;
		}
}

static void check_copied(void)
{
	history_close(h);
	if (aside.len) /* the disk failed: it is no other's */
		fail_msg("%s", e.message);
	assert_true(ticks_in(path) > 0);
	assert_non_null(h = replica_open(path, &e));
	for (size_t i = 1; i < BATCHES; i++)
		take_batch(i);
	history_close(h);
	h = NULL;
	assert_true(ticks_in(path) >= BATCHES);
}

/* --- whoever goes on --- */

static void resumes(void)
{
	struct made m;

	h = history_resume(&live, &e);
	make(&m, TICKS);
	is_ok = h && history_append(h, &m.snapshot, &m.plan, &e);
}

/* Who cannot read it does not take it for another's; who writes it keeps others out. */
static void check_resumed(void)
{
	struct error why = { 0 };

	if (!h)
		assert_int_not_equal(e.kind, ERROR_CONFLICT);
	if (h && is_ok) {
		struct history *other = history_resume(&live, &why);
		assert_null(other);
		assert_non_null(strstr(why.message, "another preheat writes it"));
	}
	history_close(h);
	h = NULL;
	assert_older_is_there();
	assert_true(ticks_in(path) >= TICKS + is_ok);
}

/* --- of those that were set aside --- */

static void leave_covered(void)
{
	for (int64_t i = 0; i < 4; i++) {
		leave(i ? 10 + i : TICKS + 1);
		buf_clear(&aside);
		assert_true(history_set_aside(path, &aside, &e));
	}
	leave(TICKS);
	buf_clear(&aside);
}

static void drops(void)
{
	h = replica_open(path, &e);
	if (h && !replica_drop_aside(h, &aside, &e))
		buf_clear(&aside);
}

static void check_dropped(void)
{
	static const char *const suffixes[] = { ".1", ".2", ".3", ".4" };
	int gone = 0;

	history_close(h);
	h = NULL;
	assert_int_equal(ticks_in(path), TICKS);
	assert_int_equal(ticks_in(beside(".1")), TICKS + 1);
	for (int i = 1; i < 4; i++)
		gone += ticks_in(beside(suffixes[i])) != 11 + i - 1;
	assert_true(gone <= 1);
}

/* --- all of them --- */

static const struct {
	const char *name;
	void (*prepare)(void), (*run)(void), (*check)(void);
} cases[] = {
	{ "rows of a drain", open_one, drains, check_drains },
	{ "guards and fights", open_one, facts, check_facts },
	{ "engines that move", open_one, moves, check_moves },
	{ "set aside", older_and_killed, sets_aside, check_aside },
	{ "another version's copy", older_and_foreign, opens_copy, check_opened },
	{ "ticks of the future", older_and_killed, puts_future_aside, check_future },
	{ "a reserve is made", open_one, reserves, check_reserved },
	{ "a reserve is given up", open_reserved, gives_up, check_given_up },
	{ "a follower's copy", leave_copy, copies, check_copied },
	{ "it is gone on with", older_and_killed, resumes, check_resumed },
	{ "one too many was set aside", leave_covered, drops, check_dropped },
};

static size_t at; /* of the cases */
static long number, every = 11;
static bool is_running;

static long run_case(int code, bool fails_on, long n)
{
	remove_all();
	cases[at].prepare();
	e = (struct error){ 0 };
	is_once = !fails_on;
	number = n;
	is_running = true;
	calls = (struct failing_calls){ .is_on = true, .fails_at = n, .fails_on = fails_on, .code = code };
	cases[at].run();
	calls.is_on = false;
	cases[at].check();
	remove_all();
	is_running = false;
	return calls.calls;
}

static void whatever_fails_nothing_is_lost_or_half_done(void **state)
{
	static const int codes[] = { EIO, ENOSPC };

	(void)state;
	for (at = 0; at < sizeof cases / sizeof *cases; at++)
		for (size_t c = 0; c < 4; c++) {
			long all = run_case(codes[c / 2], c % 2, 0);
			for (long n = 1; n <= all; n += all > MANY ? every : 1)
				run_case(codes[c / 2], c % 2, n);
		}
}

static int end(void **state)
{
	if (is_running)
		fprintf(stderr, "%s, call %ld (%s), %s: %s\n", cases[at].name, number, calls.who ? calls.who : "none",
			is_once ? "once" : "from then on", strerror(calls.code));
	calls.is_on = false;
	remove_all();
	for (size_t i = 0; i < BATCHES; i++)
		buf_release(&batches[i]);
	for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
		buf_release(&whole[i]);
	buf_release(&aside);
	return remove_folder(state), 0;
}

/* With a number, where there are many calls at one of so many. */
int main(int argc, char **argv)
{
	every = argc > 1 ? strtol(argv[1], NULL, 10) : every;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whatever_fails_nothing_is_lost_or_half_done),
	};

	return cmocka_run_group_tests(tests, make_folder, end);
}
