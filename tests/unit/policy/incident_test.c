/* Incidents: where more was late than allowed, told apart by calm, with what was worst in them. */
#include "controller/policy/incident.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const millis begin = INT64_C(1700000000000), tick_length = 15 * SECOND;

struct lived {
	struct group_spec group;
	size_t uses[1];
	struct pool_spec pool;
	struct fleet_spec fleet;
	struct incident_fold fold;
	struct incident ended[8];
	size_t count;
};

static void live(struct lived *l)
{
	*l = (struct lived){ .group = { .name = "g5-od", .gpus_per_node = 1 } };
	l->pool = (struct pool_spec){
		.name = "chat", .objective_late_ppm = 10000, .gpus_per_replica = 1, .groups = l->uses, .group_count = 1
	};
	l->fleet = (struct fleet_spec){ &l->group, 1, &l->pool, 1, NULL };
}

/* Tick `n` of 15 s, with 100 requests. */
static void tick(struct lived *l, int64_t n, int64_t late, enum limit held_by, const struct start_input *start)
{
	struct group_input group = { 0 };
	struct group_decision decided = { 0 };
	struct pool_plan plan = { .groups = &decided, .group_count = 1 };
	struct pool_snapshot in = { .groups = &group, .group_count = 1, .starts = start, .start_count = start != NULL };
	struct snapshot s = {
		.tick = n, .now = begin + n * tick_length, .interval = tick_length, .fleet = &l->fleet, .pools = &in
	};

	plan.decision = (struct pool_decision){ .started = 100,
						.late = late,
						.held_by = held_by,
						.ready = 2,
						.on_the_way = start ? 1 : 0,
						.backlog_ms = late * 1000 };
	if (incident_add_tick(&l->fold, &s, 0, &plan, &l->ended[l->count]))
		l->count++;
}

static void finish(struct lived *l)
{
	if (incident_end(&l->fold, &l->ended[l->count]))
		l->count++;
}

static void calm_tells_them_apart(void **state)
{
	(void)state;
	struct lived l;

	live(&l);
	tick(&l, 0, 0, LIMIT_NONE, NULL);
	tick(&l, 1, 5, LIMIT_NONE, NULL);
	tick(&l, 22, 7, LIMIT_NONE, NULL); /* 5 minutes after the end of the last */
	tick(&l, 44, 9, LIMIT_NONE, NULL); /* more */
	finish(&l);
	finish(&l);
	assert_int_equal(l.count, 2);
	assert_int_equal(l.ended[0].from, begin);
	assert_int_equal(l.ended[0].to, begin + 22 * tick_length);
	assert_int_equal(l.ended[0].late, 12);
	assert_int_equal(l.ended[0].started, 200);
	assert_int_equal(l.ended[1].late, 9);
}

static void what_is_allowed_is_none(void **state)
{
	(void)state;
	struct lived l;

	live(&l);
	tick(&l, 1, 1, LIMIT_NONE, NULL); /* 1 % */
	tick(&l, 60, 2, LIMIT_NONE, NULL);
	finish(&l);
	assert_int_equal(l.count, 1);
	assert_int_equal(l.ended[0].late, 2);
	tick(&l, 120, 1, LIMIT_NONE, NULL);
	finish(&l);
	assert_int_equal(l.count, 1);
}

static void the_worst_tick_and_the_longest_start_are_kept(void **state)
{
	(void)state;
	const struct start_input start = { .group = 0, .asked_at = begin - 5 * MINUTE, .count = 1 };
	struct lived l;

	live(&l);
	tick(&l, 1, 10, LIMIT_NONE, &start);
	tick(&l, 2, 80, LIMIT_NONE, &start);
	tick(&l, 3, 20, LIMIT_MAX, NULL);
	finish(&l);
	assert_int_equal(l.count, 1);
	const struct incident *i = &l.ended[0];
	assert_int_equal(incident_worst(i)->tick, 2);
	assert_int_equal(incident_worst(i)->late, 80);
	assert_int_equal(incident_worst(i)->at, begin + 2 * tick_length);
	assert_string_equal(i->group, "g5-od");
	assert_int_equal(i->start_age, 5 * MINUTE + 2 * tick_length);
	assert_int_equal(i->longest_wait, 40 * SECOND);
	assert_int_equal(incident_cause(i), LATE_STARTING);
	assert_int_equal(incident_limit(i), LIMIT_NONE);
	assert_int_equal(i->late_by[LATE_MAX], 20);
	assert_int_equal(i->late_at_limit[LIMIT_MAX], 20);
}

/* One tick with late requests: how much work waits at its end, with so many hot replicas. */
static void queued(struct lived *l, int64_t n, int64_t late, millis backlog, int64_t ready,
		   const struct start_input *start, const struct event_input *came)
{
	const struct group_input group = { 0 };
	struct group_decision decided = { 0 };
	const struct pool_plan plan = { .groups = &decided,
					.group_count = 1,
					.decision = { .started = 100,
						      .late = late,
						      .ready = ready,
						      .waiting_now = backlog / 1000,
						      .on_the_way = start ? start->count : 0,
						      .backlog_ms = backlog } };
	const struct pool_snapshot in = { .groups = &group,
					  .group_count = 1,
					  .starts = start,
					  .start_count = start != NULL,
					  .events = came,
					  .event_count = came != NULL };
	const struct snapshot s = { n, begin + n * tick_length, tick_length, &l->fleet, &in };

	if (incident_add_tick(&l->fold, &s, 0, &plan, &l->ended[l->count]))
		l->count++;
}

/* What waited starts late at once when capacity has come: the most late are of a tick in which all is well again. */
static void the_worst_tick_is_of_the_shortage(void **state)
{
	(void)state;
	const struct start_input wake = { .group = 0, .kind = START_WAKE, .asked_at = begin, .count = 3 };
	const struct start_input cold = { .group = 0, .kind = START_COLD, .asked_at = begin - MINUTE, .count = 3 };
	const struct event_input came = { .what = EVENT_SERVING, .kind = START_WAKE, .value = 70 * SECOND, .count = 3 };
	struct lived l;

	live(&l);
	queued(&l, 1, 10, 20 * SECOND, 2, &wake, NULL);
	queued(&l, 2, 20, 60 * SECOND, 2, &wake, NULL);
	queued(&l, 3, 20, 90 * SECOND, 2, &cold, NULL); /* cancelled once the other has come */
	queued(&l, 4, 90, 40 * SECOND, 5, NULL, &came);
	queued(&l, 5, 40, 0, 5, NULL, NULL);
	finish(&l);
	const struct incident *i = &l.ended[0];
	assert_int_equal(l.count, 1);
	assert_int_equal(incident_cause(i), LATE_STARTING);
	assert_int_equal(i->late_by[LATE_STARTING], 140);
	assert_int_equal(incident_worst(i)->tick, 3);
	assert_int_equal(incident_worst(i)->wait, 45 * SECOND);
	assert_int_equal(incident_worst(i)->ready, 2);
	assert_int_equal(incident_worst(i)->on_its_way, 3);
	assert_int_equal(i->start_kind, START_WAKE);
	assert_int_equal(i->start_age, 70 * SECOND);
	assert_true(i->start_has_come);
}

/* Whatever waited longest for another reason; and a queue before nobody waits longest of all. */
static void the_worst_tick_shows_the_cause(void **state)
{
	(void)state;
	const struct start_input cold = { .group = 0, .kind = START_COLD, .asked_at = begin, .count = 1 };
	const struct start_input refill = { .group = 0, .kind = START_REFILL, .asked_at = begin - HOUR, .count = 1 };
	struct lived l;

	live(&l);
	queued(&l, 1, 60, 20 * SECOND, 2, &cold, NULL);
	queued(&l, 2, 50, 9 * SECOND, 0, &cold, NULL);
	queued(&l, 3, 90, 80 * SECOND, 2, NULL, NULL);
	finish(&l);
	assert_int_equal(incident_cause(&l.ended[0]), LATE_STARTING);
	assert_int_equal(incident_worst(&l.ended[0])->tick, 2);
	assert_int_equal(l.ended[0].start_kind, START_COLD);
	queued(&l, 99, 90, 80 * SECOND, 2, &refill, NULL);
	finish(&l);
	assert_string_equal(l.ended[1].group, ""); /* what is stopped again was not waited for */
}

/* In ticks with late requests; the first refusal stays. */
static void refusals_and_what_was_given_up_are_kept(void **state)
{
	(void)state;
	const struct group_spec groups[] = { { .name = "spot" }, { .name = "g5-od" } };
	const size_t uses[] = { 0, 1 };
	const struct pool_spec pool = { .objective_late_ppm = 10000, .groups = uses, .group_count = 2 };
	const struct fleet_spec fleet = { groups, 2, &pool, 1, NULL };
	const struct event_input stuck[] = { { .what = EVENT_STUCK, .group = 1, .count = 2 },
					     { .what = EVENT_STUCK, .group = 7, .count = 1 },
					     { .what = EVENT_SERVING, .group = 0, .count = 4 } };
	const enum limit held[][2] = { { LIMIT_STOCKOUT, LIMIT_NONE },
				       { LIMIT_NONE, LIMIT_QUOTA },
				       { LIMIT_STOCKOUT, LIMIT_QUOTA } };
	const int64_t late[] = { 0, 9, 9 };
	struct incident_fold fold = { 0 };
	struct incident ended;

	for (int n = 0; n < 3; n++) {
		const struct group_input inputs[2] = { 0 };
		struct group_decision decided[] = { { .held_by = held[n][0] }, { .held_by = held[n][1] } };
		const struct pool_snapshot in = {
			.groups = inputs, .group_count = 2, .events = stuck, .event_count = n < 2 ? 3 : 0
		};
		const struct pool_plan plan = { .groups = decided,
						.group_count = 2,
						.decision = { .started = 100, .late = late[n], .ready = 2 } };
		const struct snapshot s = { n, begin + n * tick_length, tick_length, &fleet, &in };

		assert_false(incident_add_tick(&fold, &s, 0, &plan, &ended));
	}
	assert_true(incident_end(&fold, &ended));
	assert_string_equal(ended.refused_group, "g5-od");
	assert_int_equal(ended.refused_by, LIMIT_QUOTA);
	assert_int_equal(ended.given_up, 3);
	assert_string_equal(ended.given_up_group, "g5-od");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calm_tells_them_apart),
		cmocka_unit_test(what_is_allowed_is_none),
		cmocka_unit_test(the_worst_tick_and_the_longest_start_are_kept),
		cmocka_unit_test(the_worst_tick_is_of_the_shortage),
		cmocka_unit_test(the_worst_tick_shows_the_cause),
		cmocka_unit_test(refusals_and_what_was_given_up_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
