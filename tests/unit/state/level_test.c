/* Levels and lead times beside the ticks: the same as adding the ticks up, whatever was committed when, copied or
 * dropped. */
#include "state/cost.h"
#include "state/lead_time.h"
#include "state/level.h"
#include "state/replica.h"
#include "tests/unit/state/history_made.h"

static void fold(int64_t ticks, size_t pool, millis from, millis until, struct level_sums *out)
{
	struct made m;

	*out = (struct level_sums){ 0 };
	for (int64_t t = 0; t < ticks; t++) {
		make(&m, t);
		if (m.snapshot.now > from && m.snapshot.now <= until)
			level_add_tick(out, &m.snapshots[pool], &m.plans[pool], TICK);
	}
}

static size_t check(struct history *h, int64_t ticks, enum level_width width)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct level_row *rows;
	struct error e = { 0 };
	size_t count = 0;

	for (size_t pool = 0; pool < 2; pool++) {
		const struct level_question q = { pool, width, start, start + ticks * TICK };

		assert_true(level_read(h, &q, &a, &rows, &count, &e));
		for (size_t i = 0; i < count; i++) {
			struct level_sums sums;

			fold(ticks, pool, rows[i].from, rows[i].from + level_millis(width), &sums);
			assert_memory_equal(&rows[i].sums, &sums, sizeof sums);
			assert_true(sums.ticks > 0);
		}
	}
	return count;
}

static void rows_are_what_their_ticks_add_up_to(void **state)
{
	static const int64_t per_commit[] = { 1, 7, 1000 };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		write_file(700, per_commit[i]);
		struct history *h = open_file();
		assert_int_equal(check(h, 700, LEVEL_FIVE_MINUTES), 36);
		assert_int_equal(check(h, 700, LEVEL_HOUR), 4);
		history_close(h);
	}
}

/* What status and cost add up are the same figures, whatever a decision thought that it would cost. */
static void what_is_metered_is_what_was_spent(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const struct history_setup setup = { path, "kind: WarmPool\n", &fleet, "0.1.0", "preheat", "a test", 7, HOUR };
	struct level_sums levels = { 0 };
	struct level_row *rows;
	struct cost_total *totals;
	struct error e = { 0 };
	struct made m;
	size_t count;

	(void)state;
	unlink(path);
	struct history *h = history_create(&setup, &e);
	assert_non_null(h);
	for (int64_t t = 0; t < 500; t++) {
		const struct cost_sums sums = { .gpu_ms = { [GPU_SERVING] = 7 * t, [GPU_IDLE] = 3 },
						.dollars = { [GPU_SERVING] = 11 * t, [GPU_STANDBY] = 5 } };

		make(&m, t);
		history_cost(h, m.snapshot.now, 0, CLASS_INTERACTIVE, &sums);
		assert_true(history_append(h, &m.snapshot, &m.plan, &e));
	}
	assert_true(history_finish(h, &e));
	h = open_file();
	assert_true(history_cost_totals(h, (struct hour_range){ 0, INT64_MAX / HOUR }, &a, &totals, &count, &e));
	assert_int_equal(count, 1);
	const struct level_question q = { 0, LEVEL_FIVE_MINUTES, start, start + 500 * TICK };
	assert_true(level_read(h, &q, &a, &rows, &count, &e));
	for (size_t i = 0; i < count; i++)
		level_add(&levels, &rows[i].sums);
	assert_int_equal(levels.micro_dollars, cost_micro_dollars(&totals->sums));
	assert_int_equal(levels.gpu_ms, cost_billed_gpu_ms(&totals->sums));
	history_close(h);
}

static void a_copy_has_them(void **state)
{
	CLEANUP(buf_release) struct buf batch = { 0 };
	struct replica_tail tail = { .tick = -1 };
	struct error e = { 0 };
	char copy_path[80];

	(void)state;
	write_file(600, 1);
	snprintf(copy_path, sizeof copy_path, "%s.copy", path);
	struct history *h = open_file(), *copy = replica_open(copy_path, &e);
	assert_non_null(copy);
	for (int i = 0; i < 100 && tail.tick < 599; i++) {
		buf_clear(&batch);
		assert_true(replica_export(h, &tail, 4000, &batch, &e));
		assert_true(replica_import(copy, batch.text, batch.len, &e));
		assert_true(replica_tail(copy, &tail, &e));
	}
	assert_int_equal(check(copy, 600, LEVEL_FIVE_MINUTES), 31);
	assert_int_equal(check(copy, 600, LEVEL_HOUR), 3);
	history_close(copy);
	history_close(h);
	remove_history(copy_path);
}

static void hours_stay_when_ticks_are_dropped(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct history_span span;
	struct level_row *rows;
	struct error e = { 0 };
	int64_t dropped;
	size_t count;

	(void)state;
	write_file(1200, 1);
	struct history *h = history_edit(path, &e);
	assert_non_null(h);
	assert_true(history_retain(h, start + 900 * TICK, &dropped, &e));
	assert_true(dropped > 0);
	assert_true(history_span(h, &span, &e));
	assert_int_equal(check(h, 1200, LEVEL_HOUR), 6);
	assert_true(level_read(h, &(struct level_question){ 0, LEVEL_FIVE_MINUTES, start, span.to }, &a, &rows, &count,
			       &e));
	assert_true(count > 0 && rows[0].from + 5 * MINUTE >= span.from);
	history_close(h);
}

static void files_of_before_have_none(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct level_row *rows;
	struct lead_row *times;
	struct error e = { 0 };
	millis first;
	size_t count;

	(void)state;
	write_file(10, 1);
	sql("DROP TABLE level; DROP TABLE lead_time; DROP TABLE drain; PRAGMA user_version = 3");
	struct history *h = open_file();
	assert_true(level_read(h, &(struct level_question){ 0, LEVEL_HOUR, 0, start * 2 }, &a, &rows, &count, &e));
	assert_int_equal(count, 0);
	assert_true(lead_read(h, &(struct lead_question){ 0, 0, start * 2 }, &a, &times, &count, &e));
	assert_int_equal(count, 0);
	assert_true(level_first(h, 0, LEVEL_HOUR, &first, &e));
	assert_true(first == ABSENT);
	history_close(h);
}

static void what_cannot_be_is_damage(void **state)
{
	static const char *const changes[] = { "UPDATE level SET hot = -1",
					       "UPDATE level SET number = -5 WHERE pool = 0 AND width = 1",
					       "UPDATE level SET ms = 9000000000000000" };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct level_row *rows;
		struct error e = { 0 };
		size_t count;

		write_file(10, 1);
		sql(changes[i]);
		struct history *h = open_file();
		bool ok = level_read(h, &(struct level_question){ 0, LEVEL_HOUR, -HOUR * 10, start * 2 }, &a, &rows,
				     &count, &e);
		assert_false(ok);
		assert_int_equal(e.kind, ERROR_INVALID);
		assert_non_null(strstr(e.message, "damaged"));
		history_close(h);
	}
}

/* --- lead times --- */

static void append_starts(struct history *h, int64_t tick, struct event_input *events, size_t count)
{
	struct error e = { 0 };
	struct made m;

	make(&m, tick);
	m.snapshots[0].events = events;
	m.snapshots[0].event_count = count;
	assert_true(history_append(h, &m.snapshot, &m.plan, &e));
}

static void lead_times_are_counted_by_day(void **state)
{
	const struct history_setup setup = { path, "kind: WarmPool\n", &fleet, "0.1.0", "preheat", "a test", 1, HOUR };
	struct event_input first[] = { { 0, EVENT_STAGE, START_COLD, STAGE_LOAD, 60000, 2, 0 },
				       { 1, EVENT_SERVING, START_WAKE, 0, 90500, 1, 0 },
				       { 0, EVENT_REFUSED, START_COLD, 0, 1, 1, 0 },
				       { 9, EVENT_SERVING, START_COLD, 0, 90500, 1, 0 },
				       { 0, EVENT_SERVING, START_COLD, 0, -1, 1, 0 } };
	CLEANUP(arena_release) struct arena a = { 0 };
	struct error e = { 0 };
	struct lead_row *rows;
	size_t count;

	(void)state;
	unlink(path);
	struct history *h = history_create(&setup, &e);
	append_starts(h, 0, first, 5);
	append_starts(h, 1, first, 1);
	assert_true(lead_read(h, &(struct lead_question){ 0, start, start + HOUR }, &a, &rows, &count, &e));
	assert_int_equal(count, 2);
	assert_int_equal(rows[0].stage, STAGE_LOAD);
	assert_int_equal(rows[0].samples, 4);
	assert_int_equal(rows[0].ms, 240000);
	assert_true(lead_bucket_upto(rows[0].bucket) >= 60000 && lead_bucket_upto(rows[0].bucket - 1) < 60000);
	assert_int_equal(rows[1].stage, LEAD_TOTAL);
	assert_int_equal(rows[1].group, 1);
	assert_int_equal(rows[1].kind, START_WAKE);
	assert_true(lead_read(h, &(struct lead_question){ 1, start, start + HOUR }, &a, &rows, &count, &e));
	assert_int_equal(count, 0);
	assert_true(lead_read(h, &(struct lead_question){ 0, start + 48 * HOUR, start + 50 * HOUR }, &a, &rows, &count,
			      &e));
	assert_int_equal(count, 0);
	history_close(h);
}

static void buckets_have_no_gaps(void **state)
{
	(void)state;
	for (int64_t b = 0; b < LEAD_BUCKETS - 1; b++) {
		assert_true(lead_bucket_upto(b) < lead_bucket_upto(b + 1));
		assert_int_equal(lead_bucket_of(lead_bucket_upto(b)), b);
		assert_int_equal(lead_bucket_of(lead_bucket_upto(b) + 1), b + 1);
	}
	assert_true(lead_bucket_upto(LEAD_BUCKETS - 1) == INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_what_their_ticks_add_up_to),
		cmocka_unit_test(what_is_metered_is_what_was_spent),
		cmocka_unit_test(a_copy_has_them),
		cmocka_unit_test(hours_stay_when_ticks_are_dropped),
		cmocka_unit_test(files_of_before_have_none),
		cmocka_unit_test(what_cannot_be_is_damage),
		cmocka_unit_test(lead_times_are_counted_by_day),
		cmocka_unit_test(buckets_have_no_gaps),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
