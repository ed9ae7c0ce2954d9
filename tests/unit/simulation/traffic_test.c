#include "tests/unit/simulation/toy.h"

#include "controller/simulation/queue.h"

static void a_slot_is_held_as_long_as_the_formula_says(void **state)
{
	static struct request r = { 1000, 500, 200, -1 }; /* 10 * 500 / 10000 s + 200 * 10 ms = 2.5 s */
	struct toy t;

	(void)state;
	toy_setup(&t);
	t.pool_worlds[0].initial_replicas = 1;
	t.traces[0].requests = &r;
	t.traces[0].request_count = 1;
	toy_start(&t);
	toy_pass(&t, 1);
	const struct pool_snapshot *p = &t.snapshot.pools[0];
	assert_int_equal(p->scrape_count, 3);
	assert_int_equal(p->scrapes[0].started, 1);
	assert_int_equal(p->scrapes[0].completed, 1); /* at 3.5 s */
	assert_int_equal(p->scrapes[0].prompt_tokens, 500);
	assert_int_equal(p->scrapes[0].output_tokens, 200);
	toy_end(&t);
}

static void half_the_capacity_serves_half(void **state)
{
	struct toy t;

	(void)state;
	toy_setup(&t);
	t.pool_worlds[0].initial_replicas = 1;
	t.pool_worlds[0].capacity_permille = 500;
	toy_requests(&t, 0, 10, 0, 0, MINUTE);
	toy_start(&t);
	toy_pass(&t, 1);
	assert_int_equal(world_result(t.world, 0).running, 5);
	assert_int_equal(world_result(t.world, 0).waiting, 5);
	toy_end(&t);
}

static void late_is_counted_when_a_request_starts_and_at_the_end(void **state)
{
	struct toy t;

	(void)state;
	toy_setup(&t);
	t.pool_worlds[0].initial_replicas = 1;
	toy_requests(&t, 0, 30, 0, 0, 20 * SECOND);
	toy_start(&t);
	toy_pass(&t, 1);
	assert_int_equal(world_totals(t.world, 0).late, 0);
	assert_int_equal(world_totals(t.world, 0).waiting_late, 20);
	toy_pass(&t, 1);
	assert_int_equal(world_totals(t.world, 0).late, 10);
	assert_int_equal(world_totals(t.world, 0).waiting_late, 10);
	toy_pass(&t, 1);
	assert_int_equal(world_totals(t.world, 0).late, 20);
	assert_int_equal(waits_quantile(world_waits(t.world, 0), NULL, 333), 0);
	assert_true(waits_quantile(world_waits(t.world, 0), NULL, 500) > 19500);
	assert_true(waits_quantile(world_waits(t.world, 0), NULL, 500) < 20500);
	toy_end(&t);
}

static void patience_ends(void **state)
{
	struct toy t;

	(void)state;
	toy_setup(&t);
	t.pool_worlds[0].patience = 10 * SECOND;
	toy_requests(&t, 0, 4, 0, SECOND, SECOND);
	toy_start(&t);
	toy_pass(&t, 1);
	struct world_totals w = world_totals(t.world, 0);
	assert_int_equal(w.gave_up, 4);
	assert_int_equal(w.late, 4);
	assert_int_equal(world_result(t.world, 0).waiting, 0);
	toy_end(&t);
}

static void deadlines_are_shown_by_due_time(void **state)
{
	struct toy t;
	int64_t work = 0;

	(void)state;
	toy_setup(&t);
	t.pool_worlds[0].initial_replicas = 1;
	t.pool_worlds[0].deadline = 10 * MINUTE;
	toy_requests(&t, 0, 100, 0, 2 * SECOND, 5 * MINUTE);
	t.setup.start = DAY;
	toy_start(&t);
	toy_pass(&t, 14);
	const struct pool_snapshot *p = &t.snapshot.pools[0];
	assert_in_range(p->deadline_count, 1, 16);
	for (size_t i = 0; i < p->deadline_count; i++) {
		work += p->deadlines[i].work_ms;
		assert_true(p->deadlines[i].due > t.snapshot.now);
		assert_true(p->deadlines[i].due <= t.snapshot.now + 10 * MINUTE);
		assert_true(!i || p->deadlines[i].due > p->deadlines[i - 1].due);
	}
	assert_in_range(work, 100 * 30 * SECOND - 20, 100 * 30 * SECOND);
	assert_int_equal(world_totals(t.world, 0).late, 0);
	toy_pass(&t, 40); /* 13.5 minutes: 20 of 100 are done, 10 run and will be late */
	assert_int_equal(world_totals(t.world, 0).late, 10);
	assert_int_equal(world_totals(t.world, 0).waiting_late, 70);
	toy_end(&t);
}

static void readings_fail_as_told(void **state)
{
	static const struct telemetry_window windows[] = { { 0, 15 * SECOND, TELEMETRY_MISSING, 0 },
							   { 15 * SECOND, 30 * SECOND, TELEMETRY_STALE, 500000 },
							   { 30 * SECOND, 45 * SECOND, TELEMETRY_ZERO, 0 } };
	struct toy t;

	(void)state;
	toy_setup(&t);
	t.pool_worlds[0].initial_replicas = 2;
	t.pool_worlds[0].telemetry = windows;
	t.pool_worlds[0].telemetry_count = 3;
	toy_requests(&t, 0, 20, 0, 0, 10 * MINUTE);
	toy_start(&t);
	toy_pass(&t, 1);
	assert_int_equal(t.snapshot.pools[0].scrape_count, 1); /* the one at 15 s */
	assert_int_equal(t.snapshot.pools[0].input.scrapes_expected, 6);
	assert_int_equal(t.snapshot.pools[0].input.scrapes_fresh, 1);
	assert_int_equal(t.snapshot.pools[0].scrapes[0].running, 10);
	toy_pass(&t, 1);
	assert_int_equal(t.snapshot.pools[0].scrapes[2].running, 0);
	assert_int_equal(t.snapshot.pools[0].scrapes[2].ready, 2);
	assert_int_equal(t.snapshot.pools[0].input.scrapes_fresh, 4);
	toy_pass(&t, 2);
	assert_int_equal(t.snapshot.pools[0].scrapes[0].running, 20);
	toy_end(&t);
}

static void the_fleet_at_the_start_is_what_ten_minutes_need(void **state)
{
	struct toy t;

	(void)state;
	toy_setup(&t);
	t.fleet.group_count = 2;
	t.pools[0].group_count = 2;
	t.groups[0].max_nodes = 2;
	t.groups[1].min_nodes = 1;
	t.pool_worlds[0].initial_replicas = -1;
	toy_requests(&t, 0, 600, 0, SECOND, 41 * SECOND); /* 41 slots: 4.1 replicas */
	toy_start(&t);
	toy_pass(&t, 1);
	assert_int_equal(t.snapshot.pools[0].groups[0].ready, 2);
	assert_int_equal(t.snapshot.pools[0].groups[1].ready, 3);
	assert_int_equal(t.snapshot.pools[0].event_count, 0);
	assert_int_equal(world_totals(t.world, 0).starts, 0);
	toy_end(&t);
}

static struct schedule_state half_past(const struct schedule_window *windows, size_t count, millis now)
{
	(void)windows;
	(void)count;
	return now < 30 * MINUTE ? (struct schedule_state){ 1, 4, 30 * MINUTE } : (struct schedule_state){ 4, 1, DAY };
}

static void schedules_are_asked_when_they_change(void **state)
{
	struct toy t;

	(void)state;
	toy_setup(&t);
	t.setup.schedule = half_past;
	toy_start(&t);
	toy_pass(&t, 119);
	assert_int_equal(t.snapshot.pools[0].input.schedule_floor, 1);
	assert_int_equal(t.snapshot.pools[0].input.schedule_next_floor, 4);
	toy_pass(&t, 1);
	assert_int_equal(t.snapshot.pools[0].input.schedule_floor, 4);
	toy_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slot_is_held_as_long_as_the_formula_says),
		cmocka_unit_test(half_the_capacity_serves_half),
		cmocka_unit_test(late_is_counted_when_a_request_starts_and_at_the_end),
		cmocka_unit_test(patience_ends),
		cmocka_unit_test(deadlines_are_shown_by_due_time),
		cmocka_unit_test(readings_fail_as_told),
		cmocka_unit_test(the_fleet_at_the_start_is_what_ten_minutes_need),
		cmocka_unit_test(schedules_are_asked_when_they_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
