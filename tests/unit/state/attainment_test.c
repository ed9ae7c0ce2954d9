/* What a stretch of time came to is what its ticks add up to, against what the objective allows. */
#include "state/attainment.h"
#include "tests/unit/state/history_made.h"

enum { TICKS = 700 };

static const struct pool_spec spec = { .objective_wait = 2000, .objective_late_ppm = 10000 };

static struct level_sums fold(size_t pool, millis from)
{
	struct level_sums sums = { 0 };
	struct made m;

	for (int64_t t = 0; t < TICKS; t++) {
		make(&m, t);
		if (m.snapshot.now > from)
			level_add_tick(&sums, &m.snapshots[pool], &m.plans[pool], TICK);
	}
	return sums;
}

static void it_is_what_ticks_add_up_to(void **state)
{
	const millis width = 5 * MINUTE, from = (start / width + 4) * width;
	struct history_span span;
	struct attainment a;
	struct error e = { 0 };

	(void)state;
	write_file(TICKS, 1);
	struct history *h = open_file();
	assert_true(history_span(h, &span, &e));
	for (size_t pool = 0; pool < 2; pool++) {
		struct level_sums all = fold(pool, 0), later = fold(pool, from);

		assert_true(attainment_read(h, &(struct attainment_question){ pool, &spec, from, span.to }, &a, &e));
		assert_int_equal(a.requests, later.started);
		assert_int_equal(a.late, later.late);
		assert_int_equal(a.micro_dollars, later.micro_dollars);
		assert_false(a.is_short);
		assert_int_equal(a.budget_left, later.started / 100 - later.late);
		assert_int_equal(attainment_is_met(&a), later.late * 100 <= later.started);
		assert_true(attainment_read(h, &(struct attainment_question){ pool, &spec, span.to - 7 * DAY, span.to },
					    &a, &e));
		assert_int_equal(a.requests, all.started);
		assert_int_equal(a.late, all.late);
		assert_true(a.is_short);
	}
	history_close(h);
}

static void without_an_objective_there_is_no_budget(void **state)
{
	const struct pool_spec priced = { .violation_cost = 10000, .objective_late_ppm = 10000 };
	struct history_span span;
	struct attainment a;
	struct error e = { 0 };

	(void)state;
	write_file(TICKS, 1);
	struct history *h = open_file();
	assert_true(history_span(h, &span, &e));
	assert_true(attainment_read(h, &(struct attainment_question){ 0, &priced, start, span.to }, &a, &e));
	assert_true(a.requests > 0 && a.budget_left == ABSENT && a.burn_milli == ABSENT && attainment_is_met(&a));
	assert_true(attainment_read(h, &(struct attainment_question){ 0, &spec, start - 3 * HOUR, start - 2 * HOUR },
				    &a, &e));
	assert_true(a.requests == ABSENT && a.share_ppm == ABSENT && a.micro_dollars == ABSENT && a.is_short);
	history_close(h);
}

/* The same hours again 8 days before, and 15 days before so that both weeks are on record. */
static void the_week_before_is_known_where_it_was_recorded(void **state)
{
	static const char *const columns =
		"ticks, ms, heard, waited, demand_milli, running_milli, waiting_milli, wait_ms, hot, starting, "
		"draining, "
		"standby, lent, wished, decided, arrived, started, late, asked, released, gpu_ms, micro_dollars, "
		"demand_milli_most, waiting_milli_most, wait_ms_most, decided_most";
	struct history_span span;
	struct attainment_report r;
	struct error e = { 0 };

	(void)state;
	write_file(TICKS, 1);
	struct history *h = open_file();
	assert_true(history_span(h, &span, &e));
	assert_true(attainment_report(h, &(struct attainment_question){ 0, &spec, span.to - HOUR, span.to }, &r, &e));
	assert_true(r.dollars_before[ATTAINMENT_WEEK] == ABSENT && r.dollars_before[ATTAINMENT_TODAY] == ABSENT);
	history_close(h);
	for (int days = 8; days <= 15; days += 7) {
		CLEANUP(buf_release) struct buf more = { 0 };

		buf_printf(&more,
			   "INSERT INTO level (pool, width, number, %s) SELECT pool, width, number - 24 * %d, %s FROM "
			   "level "
			   "WHERE width = 1 AND number > %lld",
			   columns, days, columns, (long long)(start / HOUR - 24));
		sql(more.text);
	}
	h = open_file();
	assert_true(attainment_report(h, &(struct attainment_question){ 0, &spec, span.to - HOUR, span.to }, &r, &e));
	assert_int_equal(r.dollars_before[ATTAINMENT_WEEK], fold(0, 0).micro_dollars);
	assert_int_equal(r.window[ATTAINMENT_WEEK].micro_dollars, fold(0, 0).micro_dollars);
	assert_true(!r.window[ATTAINMENT_WEEK].is_short && r.window[ATTAINMENT_MONTH].is_short);
	assert_true(r.dollars_before[ATTAINMENT_MONTH] == ABSENT);
	history_close(h);
}

/* Each hour is of one day, whatever the zone; days before the record are not known. */
static void days_add_up_to_the_month(void **state)
{
	static const struct pool_spec wide = { .objective_wait = 2000, .objective_late_ppm = 200000 };
	const millis zones[] = { 0, HOUR / 2, 90 * MINUTE, 7 * HOUR };
	struct history_span span;
	struct attainment_report r;
	struct error e = { 0 };

	(void)state;
	write_file(TICKS, 1);
	struct history *h = open_file();
	assert_true(history_span(h, &span, &e));
	for (size_t z = 0; z < sizeof zones / sizeof *zones; z++) {
		const millis midnight = span.to - HOUR - (span.to + zones[z]) % HOUR;
		int64_t requests = 0, late = 0, dollars = 0;
		int known = 0;

		assert_true(attainment_report(
			h, &(struct attainment_question){ 0, z ? &wide : &spec, midnight, span.to }, &r, &e));
		for (int i = 0; i < ATTAINMENT_DAYS; i++) {
			const struct attainment_day *d = &r.days[i];

			assert_true(i == 0 || d->from == r.days[i - 1].to);
			if (d->requests == ABSENT) {
				assert_true(d->late == ABSENT && d->micro_dollars == ABSENT && !d->is_over);
				continue;
			}
			known++;
			requests += d->requests;
			late += d->late;
			dollars += d->micro_dollars;
			assert_int_equal(d->is_over, !z); /* one in seven is late */
		}
		assert_int_equal(known, 2);
		assert_true(r.days[0].requests == ABSENT);
		assert_int_equal(r.days[ATTAINMENT_DAYS - 1].to, span.to);
		assert_int_equal(requests, r.window[ATTAINMENT_MONTH].requests);
		assert_int_equal(late, r.window[ATTAINMENT_MONTH].late);
		assert_int_equal(dollars, r.window[ATTAINMENT_MONTH].micro_dollars);
	}
	history_close(h);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_what_ticks_add_up_to),
		cmocka_unit_test(without_an_objective_there_is_no_budget),
		cmocka_unit_test(the_week_before_is_known_where_it_was_recorded),
		cmocka_unit_test(days_add_up_to_the_month),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
