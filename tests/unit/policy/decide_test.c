#include "tests/unit/policy/toy.h"

#include <stdio.h>

static void a_still_world_is_left_alone(void **state)
{
	struct toy t;

	(void)state;
	toy_init(&t, 1);
	toy_begin(&t, 5);
	t.demand = 10.3;
	toy_run(&t, 24 * HOUR);
	int64_t ready = toy_ready(&t);
	t.asked_cold = t.released = 0;
	toy_run(&t, 12 * HOUR);
	assert_int_equal(t.asked_cold, 0);
	assert_int_equal(t.released, 0);
	assert_int_equal(toy_ready(&t), ready);
	assert_in_range(ready, 11, 14);
	toy_end(&t);
}

static void demand_is_met_after_a_step(void **state)
{
	struct toy t;

	(void)state;
	toy_init(&t, 1);
	toy_begin(&t, 5);
	t.demand = 4;
	toy_run(&t, HOUR);
	t.demand = 20;
	toy_run(&t, 20 * MINUTE);
	assert_in_range(toy_ready(&t), 20, 48);
	t.demand = 4;
	toy_run(&t, 12 * HOUR);
	assert_in_range(toy_ready(&t), 4, 9);
	toy_end(&t);
}

static void blindness_never_shrinks(void **state)
{
	struct toy t;

	(void)state;
	toy_init(&t, 1);
	toy_begin(&t, 12);
	t.demand = 10;
	toy_run(&t, HOUR);
	int64_t ready = toy_ready(&t);
	t.blind = true;
	t.demand = 1;
	for (int i = 0; i < 240; i++) {
		const struct pool_decision *d = toy_tick(&t);
		assert_true(toy_ready(&t) >= ready);
		assert_true(d->signals >= SIGNALS_STALE);
	}
	assert_int_equal(t.plan.decision.signals, SIGNALS_GONE);
	t.blind = false;
	toy_run(&t, 2 * HOUR);
	assert_in_range(toy_ready(&t), 1, 4);
	toy_end(&t);
}

/* Of three readings of each replica. */
static void confidence_is_the_share_of_readings_that_agree(void **state)
{
	static const struct {
		int64_t fresh_permille, disputed, confidence;
		enum signal_state signals;
	} cases[] = { { 1000, 0, 1000000, SIGNALS_FRESH }, { 1000, 3, 900000, SIGNALS_PARTIAL },
		      { 800, 0, 800000, SIGNALS_PARTIAL }, { 800, 3, 700000, SIGNALS_PARTIAL },
		      { 200, 0, 200000, SIGNALS_STALE },   { 0, 0, 0, SIGNALS_STALE } };
	struct toy t;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		toy_init(&t, 1);
		toy_begin(&t, 10);
		t.demand = 9;
		toy_tick(&t);
		t.fresh_permille = cases[i].fresh_permille;
		t.disputed = cases[i].disputed;
		const struct pool_decision *d = toy_tick(&t);
		assert_int_equal(d->confidence_ppm, cases[i].confidence);
		assert_int_equal(d->signals, cases[i].signals);
		toy_end(&t);
	}
}

/* A Prometheus server that reads its pods once a minute: between two readings the last one stands. */
static void readings_may_be_further_apart_than_ticks(void **state)
{
	struct toy t;

	(void)state;
	toy_init(&t, 1);
	toy_begin(&t, 12);
	t.silent_ticks = 3;
	t.demand = 10;
	for (int i = 0; i < 480; i++)
		assert_int_equal(toy_tick(&t)->signals, SIGNALS_FRESH);
	assert_in_range(toy_ready(&t), 10, 14);
	assert_in_range(t.plan.decision.service_ms, 9000, 11500);
	t.blind = true;
	int64_t ready = toy_ready(&t);
	for (int i = 0; i < 40; i++) {
		assert_true(toy_tick(&t)->signals >= SIGNALS_STALE);
		assert_true(toy_ready(&t) >= ready);
	}
	assert_int_equal(t.plan.decision.signals, SIGNALS_GONE);
	toy_end(&t);
}

/* What waits at one replica while others are free, as where a router keeps sessions: none goes, at a tick without a
 * reading neither. */
static void a_queue_holds_between_two_readings(void **state)
{
	struct toy t;

	(void)state;
	toy_init(&t, 1);
	toy_begin(&t, 12);
	t.demand = 1;
	for (int i = 0; i < 480; i++) {
		toy_observe(&t);
		for (int k = 0; k < 3; k++)
			t.scrapes[k].waiting = 700;
		t.seen.scrape_count = i % 3 ? 0 : 3;
		const struct pool_decision *d = toy_decide(&t);
		assert_int_equal(d->waiting_milli, 700000);
		assert_int_equal(t.released, 0);
	}
	toy_end(&t);
}

/* What waits where it cannot be seen may be much. */
static void an_unknown_queue_holds_and_does_not_inflate(void **state)
{
	struct toy t;

	(void)state;
	toy_init(&t, 1);
	toy_begin(&t, 12);
	t.demand = 10;
	toy_run(&t, HOUR);
	int64_t ready = toy_ready(&t);
	t.is_queue_unknown = true;
	t.demand = 1;
	for (int i = 0; i < 240; i++) {
		const struct pool_decision *d = toy_tick(&t);
		assert_int_equal(toy_ready(&t), ready);
		assert_int_equal(d->signals, SIGNALS_PARTIAL);
		assert_int_equal(d->queue_waiting, ABSENT);
	}
	t.is_queue_unknown = false;
	toy_run(&t, 2 * HOUR);
	assert_in_range(toy_ready(&t), 1, 4);
	toy_end(&t);
}

static void a_sudden_zero_is_missing_data_until_it_lasts(void **state)
{
	struct toy t;

	(void)state;
	toy_init(&t, 1);
	toy_begin(&t, 12);
	t.demand = 10;
	toy_run(&t, HOUR);
	int64_t ready = toy_ready(&t);
	t.demand = t.running = t.waiting = 0;
	toy_run(&t, 15 * MINUTE);
	assert_true(toy_ready(&t) >= ready);
	assert_int_equal(t.plan.decision.held_by, LIMIT_STALE);
	toy_run(&t, 3 * HOUR);
	assert_in_range(toy_ready(&t), 0, 2);
	toy_end(&t);
}

static void a_batch_pool_goes_to_zero_and_wakes_on_a_queue(void **state)
{
	struct toy t;

	(void)state;
	toy_init(&t, 1);
	t.pool.class = CLASS_BATCH;
	t.pool.objective_wait = HOUR;
	toy_begin(&t, 3);
	t.demand = 2;
	toy_run(&t, HOUR);
	t.demand = 0;
	toy_run(&t, 4 * HOUR);
	assert_int_equal(toy_ready(&t), 0);
	toy_run(&t, HOUR);
	assert_int_equal(toy_ready(&t), 0);
	t.demand = 2;
	toy_run(&t, 30 * MINUTE);
	assert_in_range(toy_ready(&t), 1, 8);
	toy_end(&t);
}

static void a_pool_at_zero_wakes_on_the_schedule(void **state)
{
	struct toy t;

	(void)state;
	toy_init(&t, 1);
	t.pool.class = CLASS_EXPERIMENT;
	t.pool.objective_wait = HOUR;
	toy_begin(&t, 0);
	toy_run(&t, HOUR);
	assert_int_equal(toy_ready(&t), 0);
	t.schedule_next_floor = 2;
	t.schedule_next_at = t.now + 20 * MINUTE;
	toy_run(&t, 20 * MINUTE);
	assert_int_equal(toy_ready(&t), 2);
	toy_end(&t);
}

static void deadlines_buy_what_the_time_left_needs(void **state)
{
	struct toy t;

	(void)state;
	toy_init(&t, 1);
	t.pool.class = CLASS_BATCH;
	t.pool.objective_wait = HOUR;
	toy_begin(&t, 0);
	/* Ten replica-hours of work, due in two hours, starts take up to 400 s: a little over five replicas. */
	t.deadline = (struct deadline_input){ t.now + 2 * HOUR, 10 * HOUR };
	toy_tick(&t);
	assert_in_range(t.plan.groups[0].cold, 5, 8);
	toy_end(&t);
}

static void stopped_machines_are_woken_first_and_restocked(void **state)
{
	struct toy t;

	(void)state;
	toy_init(&t, 1);
	toy_keep_stock(&t, 20000);
	toy_begin(&t, 11);
	t.demand = 10;
	toy_run(&t, 2 * HOUR);
	int64_t stock = t.standby[0];
	assert_true(stock >= 2);
	t.demand = 12;
	t.asked_cold = t.asked_wake = 0;
	toy_run(&t, 3 * MINUTE);
	assert_true(t.asked_wake >= 2);
	toy_run(&t, HOUR);
	assert_true(t.standby[0] >= 2);
	toy_end(&t);
}

static void refused_wakes_become_new_machines(void **state)
{
	struct toy t;

	(void)state;
	toy_init(&t, 1);
	toy_keep_stock(&t, 20000);
	toy_begin(&t, 11);
	t.demand = 10;
	toy_run(&t, 2 * HOUR);
	t.refuse_wakes = true;
	t.demand = 16;
	toy_run(&t, 30 * MINUTE);
	assert_true(toy_ready(&t) >= 16);
	toy_end(&t);
}

static void lent_nodes_are_taken_back_first_and_given_back_later(void **state)
{
	struct toy t;

	(void)state;
	toy_init(&t, 1);
	t.pool.lend_to = 1u << CLASS_BATCH;
	t.lent = 5;
	toy_begin(&t, 11);
	t.demand = 10;
	toy_run(&t, HOUR);
	t.demand = 14;
	toy_run(&t, 2 * MINUTE);
	assert_true(t.lent <= 2);
	toy_run(&t, 2 * HOUR);
	assert_int_equal(t.lent, 5);
	assert_true(toy_ready(&t) >= 14);
	toy_end(&t);
}

static void a_copy_of_the_memory_decides_alike(void **state)
{
	struct toy a, b;
	struct buf bytes = { 0 };
	struct error e = { 0 };

	(void)state;
	toy_init(&a, 2);
	toy_begin(&a, 5);
	a.demand = 7.7;
	toy_run(&a, 2 * HOUR);
	b = a;
	b.arena = (struct arena){ 0 };
	policy_state_encode(a.memory, &bytes);
	b.memory = policy_state_decode(bytes.text, bytes.len, &a.fleet, &e);
	assert_non_null(b.memory);
	for (int i = 0; i < 400; i++) {
		a.demand = b.demand = 7 + i % 90 * .1;
		toy_tick(&a);
		toy_tick(&b);
		assert_memory_equal(&a.plan.decision, &b.plan.decision, sizeof a.plan.decision);
		assert_memory_equal(a.plan.groups, b.plan.groups, 2 * sizeof *a.plan.groups);
	}
	assert_null(policy_state_decode(bytes.text, bytes.len - 1, &a.fleet, &e));
	bytes.text[0] ^= 1;
	assert_null(policy_state_decode(bytes.text, bytes.len, &a.fleet, &e));
	assert_int_equal(e.kind, ERROR_INVALID);
	buf_release(&bytes);
	toy_end(&a);
	toy_end(&b);
}

/* The manifest is 40 % off either way: within hours the fleet fits the truth. */
static void a_wrong_prior_of_slots_is_corrected(void **state)
{
	static const double truths[] = { 60, 140 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct toy t;
		toy_init(&t, 1);
		t.slots = truths[i];
		toy_begin(&t, 12);
		int64_t tick = 0;
		for (; tick < 6 * 240; tick++) {
			/* A wave with a burst each hour, as real traffic has. */
			double wave = (double)(tick % 240 < 120 ? tick % 240 : 240 - tick % 240) / 120;
			t.demand = 8 + 2 * wave + (tick % 240 == 100 ? 9 : 0);
			toy_tick(&t);
		}
		double believed = (double)t.plan.decision.slots_milli / 1000;
		print_message("true %.0f believed %.1f source %lld\n", truths[i], believed,
			      (long long)t.plan.decision.slots_source);
		assert_true(believed > truths[i] * .9 && believed < truths[i] * 1.1);
		toy_end(&t);
	}
}

static void a_wrong_prior_of_lead_time_is_corrected(void **state)
{
	static const millis truths[] = { 180000, 420000 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct toy t;
		toy_init(&t, 1);
		t.lead[START_COLD] = truths[i];
		toy_begin(&t, 5);
		for (int64_t tick = 0; tick < 6 * 240; tick++) {
			t.demand = tick % 120 < 60 ? 4 : 9;
			toy_tick(&t);
		}
		assert_in_range(t.plan.decision.lead_cold_p50, truths[i] * 85 / 100, truths[i] * 115 / 100);
		toy_end(&t);
	}
}

static void overdue_starts_are_replaced(void **state)
{
	struct toy t;

	(void)state;
	toy_init(&t, 1);
	toy_begin(&t, 5);
	t.demand = 4;
	toy_run(&t, HOUR);
	t.lead[START_COLD] = 100 * HOUR; /* nothing asked from now on ever serves */
	t.demand = 8;
	toy_run(&t, 5 * MINUTE);
	int64_t asked = t.asked_cold;
	toy_run(&t, 25 * MINUTE);
	assert_true(t.asked_cold > asked + 2);
	toy_end(&t);
}

static void hung_servers_do_not_look_small(void **state)
{
	struct toy t;

	(void)state;
	toy_init(&t, 1);
	toy_begin(&t, 5);
	t.demand = 4;
	toy_run(&t, HOUR);
	t.running = 0;
	t.slots = .001; /* nothing starts or ends any more */
	t.demand = 4 * 100 / .001;
	toy_run(&t, 15 * MINUTE);
	assert_true(t.plan.decision.slots_milli >= 90000);
	toy_end(&t);
}

static void blindness_keeps_the_stock_and_hears_the_api_server(void **state)
{
	struct toy t;

	(void)state;
	toy_init(&t, 1);
	toy_keep_stock(&t, 200000);
	toy_begin(&t, 11);
	t.demand = 10;
	toy_run(&t, 2 * HOUR);
	t.standby[0] = 15;
	int64_t ready = toy_ready(&t);
	t.blind = true;
	toy_run(&t, 6 * HOUR);
	assert_true(t.standby[0] + (toy_ready(&t) - ready) >= 15);
	t.wanted_pods = toy_ready(&t) + 6;
	toy_run(&t, 5 * MINUTE);
	assert_true(toy_ready(&t) + toy_on_the_way(&t) >= ready + 6);
	toy_end(&t);
}

/* They are bought for as if they were not there, and go before anybody who serves. */
static void sleepers_are_no_capacity_and_go_first(void **state)
{
	struct toy t;

	(void)state;
	toy_init(&t, 1);
	toy_begin(&t, 8);
	t.demand = 6;
	toy_run(&t, 2 * HOUR);
	t.ready[0] -= 3;
	t.asleep = 3;
	toy_tick(&t);
	assert_true(toy_ready(&t) + toy_on_the_way(&t) >= 6);
	assert_int_equal(t.plan.decision.asleep, 3);
	toy_run(&t, HOUR);
	t.demand = 1;
	for (int i = 0; i < 2000 && !t.plan.groups[0].release_asleep; i++) {
		assert_int_equal(t.plan.groups[0].release, 0);
		toy_tick(&t);
	}
	assert_in_range(t.plan.groups[0].release_asleep, 1, 3);
	assert_true(t.plan.decision.held_by == LIMIT_ASLEEP || t.plan.groups[0].release_asleep == 3);
	toy_end(&t);
}

static void a_deadline_that_is_lost_does_not_buy_everything(void **state)
{
	struct toy t;

	(void)state;
	toy_init(&t, 1);
	t.pool.class = CLASS_BATCH;
	t.pool.objective_wait = HOUR;
	toy_begin(&t, 0);
	/* Ten replica-hours due before any start could serve: spread over ten lead times of 300 s. */
	for (int i = 0; i < 20; i++) {
		t.deadline = (struct deadline_input){ t.now + MINUTE, 10 * HOUR };
		toy_tick(&t);
	}
	assert_in_range(toy_on_the_way(&t), 12, 20);
	assert_in_range(t.plan.decision.deadline_need_milli, 11900, 12100);
	toy_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_still_world_is_left_alone),
		cmocka_unit_test(demand_is_met_after_a_step),
		cmocka_unit_test(blindness_never_shrinks),
		cmocka_unit_test(confidence_is_the_share_of_readings_that_agree),
		cmocka_unit_test(readings_may_be_further_apart_than_ticks),
		cmocka_unit_test(a_queue_holds_between_two_readings),
		cmocka_unit_test(an_unknown_queue_holds_and_does_not_inflate),
		cmocka_unit_test(a_sudden_zero_is_missing_data_until_it_lasts),
		cmocka_unit_test(a_batch_pool_goes_to_zero_and_wakes_on_a_queue),
		cmocka_unit_test(a_pool_at_zero_wakes_on_the_schedule),
		cmocka_unit_test(deadlines_buy_what_the_time_left_needs),
		cmocka_unit_test(stopped_machines_are_woken_first_and_restocked),
		cmocka_unit_test(refused_wakes_become_new_machines),
		cmocka_unit_test(lent_nodes_are_taken_back_first_and_given_back_later),
		cmocka_unit_test(a_copy_of_the_memory_decides_alike),
		cmocka_unit_test(a_wrong_prior_of_slots_is_corrected),
		cmocka_unit_test(a_wrong_prior_of_lead_time_is_corrected),
		cmocka_unit_test(overdue_starts_are_replaced),
		cmocka_unit_test(hung_servers_do_not_look_small),
		cmocka_unit_test(blindness_keeps_the_stock_and_hears_the_api_server),
		cmocka_unit_test(sleepers_are_no_capacity_and_go_first),
		cmocka_unit_test(a_deadline_that_is_lost_does_not_buy_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
