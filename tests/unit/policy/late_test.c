/* What comes late: a tick, and what a group's cloud tells. */
#include "base/error.h"
#include "controller/policy/place.h"
#include "controller/policy/demand.h"
#include "controller/policy/policy_state.h"
#include "tests/unit/policy/toy.h"

/* Ten requests a second of 10 s each, 100 at a time on a replica: one replica's worth, with a queue before it. The last
 * of the ticks comes after a silence. */
static double demand_after(millis silence)
{
	struct toy t;
	struct demand_state d = { 0 };
	struct demand_reading r = { 0 };
	struct scrape_input scrape = { .ready = 1, .running = 100 };
	struct pool_snapshot seen = { .scrapes = &scrape,
				      .scrape_count = 1,
				      .input = { .scrapes_expected = 1, .scrapes_fresh = 1 } };
	struct snapshot s = { .now = 1000000, .interval = TICK, .pools = &seen };

	toy_init(&t, 1);
	s.fleet = &t.fleet;
	d.fresh_at = s.now;
	for (int i = 0; i < 40; i++) {
		millis passed = i < 39 ? TICK : silence;
		s.now += passed;
		s.tick++;
		scrape.started = scrape.completed = 10 * passed / 1000;
		scrape.waiting = 50;
		r = demand_observe(&d, &s, 0, 100, MINUTE);
	}
	arena_release(&t.arena);
	return r.demand[0];
}

static void a_late_tick_is_no_burst(void **state)
{
	(void)state;
	double steady = demand_after(TICK);
	assert_true(steady > .9 && steady < 1.1);
	for (int64_t i = 2; i <= 8; i++) {
		double late = demand_after(i * TICK);
		if (late > 1.1 || late < .9)
			fail_msg("%lld intervals: demand went from %f to %f", (long long)i, steady, late);
	}
}

/* Ten requests a second of one each, ten at a time. */
static struct demand_reading observe_refused(int64_t refused, int64_t disputed)
{
	struct toy t;
	struct demand_state d = { 0 };
	struct demand_reading r = { 0 };
	struct scrape_input scrape = { .ready = 1, .running = 10, .waiting = 5, .refused = refused };
	struct pool_snapshot seen = {
		.scrapes = &scrape,
		.scrape_count = 1,
		.input = { .scrapes_expected = 1, .scrapes_fresh = 1, .scrapes_disputed = disputed }
	};
	struct snapshot s = { .now = 1000000, .interval = TICK, .pools = &seen };

	toy_init(&t, 1);
	s.fleet = &t.fleet;
	d.fresh_at = s.now;
	scrape.started = scrape.completed = 10 * TICK / 1000;
	for (int i = 0; i < 40; i++) {
		s.now += TICK;
		s.tick++;
		r = demand_observe(&d, &s, 0, 10, MINUTE);
	}
	arena_release(&t.arena);
	return r;
}

/* Who is turned away is demand, late, and no sign of short requests. */
static void refused_requests_are_late_and_wanted_service(void **state)
{
	(void)state;
	struct demand_reading none = observe_refused(0, 0), some = observe_refused(75, 0);
	assert_true(none.late == 0 && some.late == 75);
	assert_true(some.started == none.started + 75 && some.arrived == none.arrived + 75);
	assert_true(some.service == none.service);
	assert_true(some.demand[0] > 1.3 * none.demand[0]);
}

/* What contradicts itself is taken in, and shrinks nothing. */
static void disputed_readings_are_partial(void **state)
{
	(void)state;
	assert_int_equal(observe_refused(0, 0).signals, SIGNALS_FRESH);
	assert_int_equal(observe_refused(0, 1).signals, SIGNALS_PARTIAL);
	assert_int_equal(observe_refused(0, 1).readings, 1);
}

static void hear(struct group_memory *g, millis now, enum event_kind what, int64_t value)
{
	size_t groups[] = { 0 };
	struct pool_spec pool = { .groups = groups, .group_count = 1 };
	struct fleet_spec fleet = { .pools = &pool, .pool_count = 1 };
	struct event_input e = { .what = what, .value = value, .kind = START_COLD, .count = 1 };
	struct pool_snapshot seen = { .events = &e, .event_count = 1 };
	struct snapshot s = { .now = now, .interval = TICK, .pools = &seen, .fleet = &fleet };

	back_off_observe(g, &s, 0);
}

static void a_group_that_is_described_late_is_asked_at_once(void **state)
{
	struct group_memory g = { 0 };

	(void)state;
	hear(&g, HOUR, EVENT_REFUSED, ERROR_UNAVAILABLE);
	hear(&g, HOUR + 5 * MINUTE, EVENT_REFUSED, ERROR_UNAVAILABLE);
	assert_true(g.blocked_until > HOUR + 6 * MINUTE);
	hear(&g, HOUR + 6 * MINUTE, EVENT_DESCRIBED, ERROR_NONE);
	assert_int_equal(g.blocked_until, 0);
	assert_int_equal(g.refusals, 0);
	hear(&g, 2 * HOUR, EVENT_REFUSED, ERROR_STOCKOUT);
	hear(&g, 2 * HOUR, EVENT_HELD, ERROR_NONE);
	millis until = g.blocked_until;
	hear(&g, 2 * HOUR + MINUTE, EVENT_DESCRIBED, ERROR_NONE);
	assert_int_equal(g.blocked_until, until); /* it has no machines all the same */
}

static void a_group_that_others_work_on_is_left_alone_until_they_are_done(void **state)
{
	struct group_memory g = { 0 };

	(void)state;
	hear(&g, HOUR, EVENT_HELD, 10 * MINUTE);
	assert_int_equal(g.blocked_until, HOUR + 10 * MINUTE);
	assert_int_equal(g.wakes_blocked_until, HOUR + 10 * MINUTE);
	hear(&g, HOUR + 3 * MINUTE, EVENT_DESCRIBED, ERROR_NONE);
	assert_int_equal(g.blocked_until, 0);
	assert_int_equal(g.wakes_blocked_until, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_late_tick_is_no_burst),
		cmocka_unit_test(refused_requests_are_late_and_wanted_service),
		cmocka_unit_test(disputed_readings_are_partial),
		cmocka_unit_test(a_group_that_is_described_late_is_asked_at_once),
		cmocka_unit_test(a_group_that_others_work_on_is_left_alone_until_they_are_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
