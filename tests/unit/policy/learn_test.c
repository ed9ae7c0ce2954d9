/* Demand, capacity, lead times and the choice, each by itself. */
#include "controller/policy/capacity.h"
#include "controller/policy/rule_criterion.h"
#include "controller/policy/demand.h"
#include "controller/policy/lead_time.h"
#include "controller/policy/rule_select.h"

#include "base/exact.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>

static const struct pool_spec spec = { .name = "chat",
				       .max_sequences = 100,
				       .prefill_tokens_per_second = 25000,
				       .inter_token_latency_us = 30000,
				       .objective_wait = 2000,
				       .lead_time = { 380000, 650000 } };

struct feed {
	struct scrape_input scrapes[3];
	struct pool_snapshot seen;
	struct demand_state demand;
	millis now;
};

static void feed_init(struct feed *f)
{
	*f = (struct feed){ .now = 1000000 };
	f->seen = (struct pool_snapshot){ .input = { .scrapes_expected = 3,
						     .scrapes_fresh = 3,
						     .ready = 10,
						     .inter_token_latency_us = ABSENT,
						     .kv_cache_permille = ABSENT },
					  .scrapes = f->scrapes,
					  .scrape_count = 3 };
}

static struct demand_reading feed_decide(struct feed *f)
{
	struct fleet_spec fleet = { .pools = &spec, .pool_count = 1 };
	struct snapshot s = { 0, f->now, 15000, &fleet, &f->seen };

	return demand_observe(&f->demand, &s, 0, 100, HOUR);
}

static struct demand_reading feed_tick(struct feed *f, int64_t running, int64_t waiting, int64_t started,
				       int64_t completed)
{
	for (int i = 0; i < 3; i++)
		f->scrapes[i] = (struct scrape_input){
			.ready = 10, .running = running, .waiting = waiting, .started = started, .completed = completed
		};
	f->now += 15000;
	return feed_decide(f);
}

static void without_a_queue_demand_is_what_is_in_service(void **state)
{
	struct feed f;

	(void)state;
	feed_init(&f);
	for (int i = 0; i < 20; i++)
		feed_tick(&f, 430, 0, 215, 215);
	assert_int_equal(exact_round(f.demand.mean * 100), 430);
	struct demand_reading r = feed_tick(&f, 430, 0, 215, 215);
	assert_int_equal(exact_round(r.service * 10), 100); /* 430 in service, 43 a second */
	assert_int_equal(exact_round(r.arrived), 645);
}

/* 1000 slots are full with 10 s requests while 150 a second arrive: 15 replicas, however long the queue is. */
static void a_queue_is_not_taken_for_demand(void **state)
{
	struct feed f;

	(void)state;
	feed_init(&f);
	for (int i = 0; i < 40; i++)
		feed_tick(&f, 900, 0, 450, 450);
	int64_t waiting = 0;
	for (int i = 0; i < 20; i++) {
		for (int k = 0; k < 3; k++) {
			waiting += 250; /* 750 arrive in 5 s, 500 start */
			f.scrapes[k] = (struct scrape_input){
				.ready = 10, .running = 1000, .waiting = waiting, .started = 500, .completed = 500
			};
		}
		f.now += 15000;
		feed_decide(&f);
	}
	assert_in_range(exact_round(f.demand.mean * 100), 1450, 1550);
	assert_true(waiting > 10000);
}

/* 1000 slots are full, and requests of 10 s have given way to ones of 20 s: in one tick most of it is known. */
static void a_burst_of_longer_requests_is_seen_at_once(void **state)
{
	struct feed f;

	(void)state;
	feed_init(&f);
	for (int i = 0; i < 40; i++)
		feed_tick(&f, 900, 0, 450, 450);
	struct demand_reading r = feed_tick(&f, 1000, 500, 250, 250);
	assert_true(r.service > 15);
	/* Without a queue longer ones are learned as slowly as ever. */
	feed_init(&f);
	for (int i = 0; i < 40; i++)
		feed_tick(&f, 900, 0, 450, 450);
	r = feed_tick(&f, 1000, 0, 250, 250);
	assert_true(r.service < 12);
}

/* Twice as much from one moment on: of 50 sequences a minute tells, of 500 half of it. */
static void the_level_of_many_sequences_follows_sooner(void **state)
{
	static const struct {
		int64_t running;
		int ticks;
	} cases[] = { { 50, 4 }, { 500, 2 } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		int64_t n = cases[i].running, ticks = 0;
		struct feed f;
		feed_init(&f);
		for (int k = 0; k < 20; k++)
			feed_tick(&f, n, 0, n / 2, n / 2);
		while (f.demand.level < 1.99 * (double)n / 100) {
			feed_tick(&f, 2 * n, 0, n, n);
			ticks++;
		}
		assert_int_equal(ticks, cases[i].ticks);
	}
}

/* Nine minutes of which nothing is known, as after a crash. */
static void the_level_begins_anew_after_a_silence(void **state)
{
	struct feed f;

	(void)state;
	feed_init(&f);
	for (int i = 0; i < 20; i++)
		feed_tick(&f, 50, 0, 25, 25);
	f.now += 9 * MINUTE;
	feed_tick(&f, 100, 0, 50, 50);
	assert_int_equal(exact_round(f.demand.level * 100), 100);
	feed_tick(&f, 140, 0, 70, 70);
	assert_int_equal(exact_round(f.demand.level * 100), 110);
}

static void the_peak_looks_back_as_far_as_asked(void **state)
{
	struct feed f;

	(void)state;
	feed_init(&f);
	policy_state_make_room(&f.demand, 40);
	for (int i = 0; i < 10; i++)
		feed_tick(&f, 800, 0, 400, 400);
	for (int i = 0; i < 30; i++)
		feed_tick(&f, 200, 0, 100, 100);
	assert_in_range(exact_round(demand_peak(&f.demand, 20) * 100), 195, 205);
	assert_in_range(exact_round(demand_peak(&f.demand, 40) * 100), 795, 805);
	policy_state_make_room(&f.demand, 1000); /* what is kept stays */
	for (int i = 0; i < 60; i++)
		feed_tick(&f, 200, 0, 100, 100);
	assert_in_range(exact_round(demand_peak(&f.demand, 80) * 100), 195, 205);
	assert_in_range(exact_round(demand_peak(&f.demand, 100) * 100), 795, 805);
	assert_in_range(exact_round(demand_peak(&f.demand, 100000) * 100), 795, 805);
	free(f.demand.levels);
}

static void capacity_follows_the_evidence(void **state)
{
	static const struct {
		const char *what;
		int64_t ready, running, waiting, kv_permille;
		int64_t expected, fresh;
		int64_t full, running_full;
		int64_t slots;
		enum slots_source source;
	} cases[] = {
		{ "nothing seen", 10, 500, 0, ABSENT, 30, 30, ABSENT, ABSENT, 100, SLOTS_PRIOR },
		{ "more than believed, at once", 10, 1300, 0, ABSENT, 30, 30, ABSENT, ABSENT, 130, SLOTS_SEEN },
		{ "what runs while requests queue", 10, 600, 40, ABSENT, 30, 30, ABSENT, ABSENT, 60, SLOTS_SATURATED },
		{ "what runs while a few wait at one of them", 10, 600, 9, ABSENT, 30, 30, ABSENT, ABSENT, 100,
		  SLOTS_PRIOR },
		{ "what full ones run, when half became ready lately", 10, 310, 400, ABSENT, 30, 30, 5, 300, 60,
		  SLOTS_SATURATED },
		{ "none of them full while many wait", 10, 310, 400, ABSENT, 30, 30, 0, 0, 100, SLOTS_PRIOR },
		{ "half of them, read, and full", 10, 310, 20, ABSENT, 30, 15, 5, 300, 60, SLOTS_SATURATED },
		{ "half of them, read, while requests queue", 10, 300, 20, ABSENT, 30, 15, ABSENT, ABSENT, 60,
		  SLOTS_SATURATED },
		{ "half of them, read, and the other half guessed", 10, 650, 0, ABSENT, 30, 15, ABSENT, ABSENT, 100,
		  SLOTS_PRIOR },
		{ "what fits the KV cache", 10, 300, 0, 600, 30, 30, ABSENT, ABSENT, 45, SLOTS_KV_CACHE },
		{ "what fits it, of half of them", 10, 150, 0, 600, 30, 15, ABSENT, ABSENT, 45, SLOTS_KV_CACHE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct capacity_state c = { 0 };
		struct scrape_input r[3];
		for (int k = 0; k < 3; k++)
			r[k] = (struct scrape_input){ .ready = cases[i].ready,
						      .running = cases[i].running,
						      .waiting = cases[i].waiting,
						      .full = cases[i].full,
						      .running_full = cases[i].running_full,
						      .completed = 1 };
		struct pool_snapshot s = { .input = { .scrapes_expected = cases[i].expected,
						      .scrapes_fresh = cases[i].fresh,
						      .inter_token_latency_us = ABSENT,
						      .kv_cache_permille = cases[i].kv_permille },
					   .scrapes = r,
					   .scrape_count = 3 };
		for (int k = 0; k < 20; k++)
			capacity_observe(&c, &s, 15000);
		struct capacity b = capacity_believed(&c, &spec);
		if (exact_round(b.slots) != cases[i].slots || b.source != cases[i].source)
			fail_msg("%s: %.1f slots, source %d", cases[i].what, b.slots, (int)b.source);
	}
}

/* 20 ms and 0.5 ms per sequence: 45 ms, half more than the manifest's 30, is reached at 50 sequences. */
static void latency_limits_the_batch(void **state)
{
	struct capacity_state c = { 0 };

	(void)state;
	for (int i = 0; i < 60; i++) {
		int64_t each = 10 + i % 30;
		struct scrape_input r = { .ready = 1, .running = each };
		struct pool_snapshot s = { .input = { .inter_token_latency_us = 20000 + each * 500,
						      .kv_cache_permille = ABSENT },
					   .scrapes = &r,
					   .scrape_count = 1 };
		capacity_observe(&c, &s, 15000);
	}
	struct capacity b = capacity_believed(&c, &spec);
	assert_int_equal(exact_round(b.slots), 50);
	assert_int_equal(b.source, SLOTS_LATENCY);
}

static void lead_times_are_learned_from_starts(void **state)
{
	struct lead_state l = { 0 };
	struct fleet_spec fleet = { .pools = &spec, .pool_count = 1 };
	struct event_input e = { 0, EVENT_SERVING, START_COLD, STAGE_LOAD, 200000, 1, 0 };
	struct pool_snapshot s = { .events = &e, .event_count = 1 };

	(void)state;
	struct lead before = lead_believed(&l, &fleet, &spec, START_COLD);
	assert_in_range(exact_round(before.p50), 379, 381);
	assert_in_range(exact_round(before.p95), 649, 651);
	for (int i = 0; i < 60; i++) {
		e.value = i % 2 ? 180000 : 222222;
		lead_observe(&l, &s, 15000);
	}
	struct lead after = lead_believed(&l, &fleet, &spec, START_COLD);
	assert_in_range(exact_round(after.p50), 190, 225);
	assert_true(after.p95 < 300);
	assert_int_equal(l.samples, 60);
}

/* A manifest that is far off does not count for ever. */
static void the_manifest_fades_from_lead_times(void **state)
{
	struct lead_state l = { 0 };
	struct fleet_spec fleet = { .pools = &spec, .pool_count = 1 };
	struct event_input e = { 0, EVENT_SERVING, START_COLD, STAGE_LOAD, 760000, 1, 0 };
	struct pool_snapshot s = { .events = &e, .event_count = 1 };
	double last = lead_believed(&l, &fleet, &spec, START_COLD).p50;

	(void)state;
	for (int i = 1; i <= 40; i++) {
		lead_observe(&l, &s, 15000);
		double p50 = lead_believed(&l, &fleet, &spec, START_COLD).p50;
		assert_true(p50 >= last - 1e-6);
		if (i == 6)
			assert_in_range(exact_round(p50), 540, 600);
		last = p50;
	}
	assert_in_range(exact_round(last), 759, 761);
}

/* Machines that were bought for standby pull their image when they wake first: learned apart, and expected by their
 * share of those that stand by. */
static void first_wakes_are_learned_apart(void **state)
{
	struct lead_state l = { 0 };
	struct group_spec group = { .standby_max_nodes = 9,
				    .standby_lead_time = { 90000, 150000 },
				    .standby_first_lead_time = { 200000, 300000 } };
	size_t groups[] = { 0 };
	struct pool_spec pool = spec;
	struct event_input e[] = { { 0, EVENT_SERVING, START_WAKE, STAGE_LOAD, 60000, 1, 0 },
				   { 0, EVENT_SERVING, START_WAKE, STAGE_LOAD, 240000, 1, 1 } };
	struct pool_snapshot s = { .events = e, .event_count = 2 };
	double last = 0;

	(void)state;
	pool.groups = groups;
	pool.group_count = 1;
	struct fleet_spec fleet = { .pools = &pool, .pool_count = 1, .groups = &group, .group_count = 1 };
	assert_int_equal(exact_round(lead_tiers(&l, &fleet, &pool, 0).wake.p50), 90);
	assert_int_equal(exact_round(lead_tiers(&l, &fleet, &pool, 1).wake.p50), 200);
	for (int i = 0; i < 60; i++)
		lead_observe(&l, &s, 15000);
	assert_int_equal(exact_round(lead_tiers(&l, &fleet, &pool, 0).wake.p50), 60);
	assert_int_equal(exact_round(lead_tiers(&l, &fleet, &pool, 1).wake.p50), 240);
	assert_true(lead_tiers(&l, &fleet, &pool, .5).wake.p95 > 200); /* either */
	for (int i = 0; i <= 10; i++) {
		double p50 = lead_tiers(&l, &fleet, &pool, i / 10.0).wake.p50;
		assert_true(p50 > last);
		last = p50;
	}
}

static void the_share_of_those_that_never_ran_is_of_all_groups(void **state)
{
	struct group_input groups[] = { { .standby_nodes = 3, .standby_first = 3 }, { .standby_nodes = 1 } };
	struct pool_snapshot s = { .groups = groups, .group_count = 2 };

	(void)state;
	assert_true(lead_first_share(&s) == .75);
	groups[1].standby_first = 1;
	assert_true(lead_first_share(&s) == 1);
	groups[0] = groups[1] = (struct group_input){ 0 };
	assert_true(lead_first_share(&s) == 0);
}

static void what_remains_shrinks_but_never_ends(void **state)
{
	struct lead lead = { 380, 650 };

	(void)state;
	assert_in_range(exact_round(lead_remaining(lead, 0)), 370, 395);
	double fresh = lead_remaining(lead, 0), half = lead_remaining(lead, 200), late = lead_remaining(lead, 600);
	assert_true(half < fresh && late < half && late > 0);
	assert_true(lead_overdue(lead) > 750 && lead_overdue(lead) < 850);
	for (int i = 1; i < 16; i++)
		assert_true(lead_quantile(lead, i, 16) > lead_quantile(lead, i - 1, 16));
}

struct stage_of_choice {
	struct rule rules[RULES_MAX];
	struct family family;
	struct shadow *shadows;
	struct shadow_record record;
	struct choice_input in;
};

static void set_stage(struct stage_of_choice *c)
{
	struct tier_times t = { .cold_p50 = 380, .cold_p95 = 650 };

	*c = (struct stage_of_choice){ .record = { .arrived = 1e6, .ticks = 40000, .hours = 167, .level_ticks = 4e5 } };
	family_init(&c->family, &t, .01, c->rules);
	choice_priors(&c->family, &t, 2);
	c->shadows = calloc(c->family.count, sizeof *c->shadows);
	assert_non_null(c->shadows);
	/* Each dearer rule is less late: rule i holds 10 + i/10 replicas and is 5 % - 0.05 % * i late. */
	for (size_t i = 0; i < c->family.count; i++) {
		double late = .05 - .0005 * (double)i;
		c->shadows[i].cost = c->shadows[i].held = 40000 * (10 + .1 * (double)i);
		c->shadows[i].late = late > 0 ? late * 1e6 : 0;
	}
	c->in = (struct choice_input){ .family = &c->family,
				       .shadows = c->shadows,
				       .record = &c->record,
				       .late_allowed = .01,
				       .own_share = .01,
				       .ticks_per_hour = 240,
				       .present = ABSENT };
}

static void the_cheapest_rule_within_the_target_is_chosen(void **state)
{
	struct stage_of_choice c;

	(void)state;
	set_stage(&c);
	struct choice best = choose_rule(&c.in);
	assert_true(best.share <= best.target);
	assert_true(best.target > .0079 && best.target < .0081);
	/* One bad hour with the same number of late requests counts 1.6 times: a dearer rule is needed. */
	for (size_t i = 0; i < c.family.count; i++)
		c.shadows[i].late_squares = c.shadows[i].late * c.shadows[i].late;
	struct choice careful = choose_rule(&c.in);
	assert_true(careful.rule > best.rule);
	/* A budget that is overdrawn tightens the target. */
	c.in.own_share = .03;
	assert_true(choose_rule(&c.in).rule > careful.rule);
	free(c.shadows);
}

static void what_nobody_could_avoid_is_sunk(void **state)
{
	struct stage_of_choice c;

	(void)state;
	set_stage(&c);
	struct choice before = choose_rule(&c.in);
	for (size_t i = 0; i < c.family.count; i++)
		c.shadows[i].late += 40000; /* an hour without any telemetry, say */
	assert_int_equal(choose_rule(&c.in).rule, before.rule);
	free(c.shadows);
}

static void the_present_rule_is_kept_for_small_gains(void **state)
{
	struct stage_of_choice c;

	(void)state;
	set_stage(&c);
	int64_t best = choose_rule(&c.in).rule;
	c.in.present = best + 2; /* under 3 % dearer */
	assert_int_equal(choose_rule(&c.in).rule, best + 2);
	c.in.present = best + 40;
	assert_int_equal(choose_rule(&c.in).rule, best);
	free(c.shadows);
}

static void a_price_of_late_requests_replaces_the_objective(void **state)
{
	struct stage_of_choice c;
	int64_t last = -1;

	(void)state;
	set_stage(&c);
	for (double price = .001; price < 100; price *= 10) {
		c.in.violation_cost = price;
		int64_t rule = choose_rule(&c.in).rule;
		assert_true(rule >= last);
		last = rule;
	}
	assert_true(last > 60);
	free(c.shadows);
}

/* One burst, however bad, does not buy several times the fleet; three do. */
static void more_than_twice_the_demand_needs_bursts_that_come_again(void **state)
{
	struct stage_of_choice c;

	(void)state;
	set_stage(&c);
	for (size_t i = 0; i < c.family.count; i++) {
		bool wide = c.family.rules[i].margin > .75;
		c.shadows[i].late = wide ? 0 : 60000;
		c.shadows[i].bad_hours = wide ? 0 : 1;
	}
	assert_true(c.family.rules[choose_rule(&c.in).rule].margin < .75);
	for (size_t i = 0; i < c.family.count; i++)
		c.shadows[i].bad_hours *= 3;
	assert_true(c.family.rules[choose_rule(&c.in).rule].margin > .75);
	free(c.shadows);
}

static const struct rule steady = { .factor = 1, .spare = .24, .chase = .05 };

static void run_shadow(struct shadow *s, struct shadow_tick *t, double demand, int ticks)
{
	double readings[3] = { demand, demand, demand };
	struct demand_view v = { .level = demand,
				 .peak = { demand },
				 .service = 10,
				 .replicas_max = 1000,
				 .times = { .cold_p50 = 150, .cold_p95 = 150 } };

	t->demand = readings;
	t->most_demand = demand;
	for (int i = 0; i < ticks; i++, t->tick++)
		shadow_step(s, NULL, &steady, &v, t);
}

/* Work that waits is kept when the fleet grows: from nothing to ten replicas it is worked off at their speed. */
static void a_backlog_outlives_a_change_of_the_fleet(void **state)
{
	struct shadow_deals deals = { .cold = { 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10 } };
	struct shadow_tick t = { .readings = 3,
				 .seconds = 5,
				 .arrived = 100,
				 .objective_wait = 2,
				 .cold_step = 1,
				 .fast_step = 1,
				 .deals = &deals,
				 .counts = true,
				 .may_release = true,
				 .bridge_ticks = 20 };
	struct shadow s;

	(void)state;
	shadow_start(&s, 0);
	run_shadow(&s, &t, 10, 10);
	assert_int_equal(s.ready, 0);
	assert_int_equal(exact_round(s.backlog), 10 * 150);
	assert_int_equal(exact_round(s.late), 1000);
	run_shadow(&s, &t, 10, 30);
	assert_true(s.ready > 10);
	double late = s.late;
	assert_true(s.backlog < 1500);
	run_shadow(&s, &t, 10, 400);
	assert_true(s.backlog <= 0);
	assert_true(s.late < late + 8000);
	late = s.late;
	run_shadow(&s, &t, 10, 100);
	assert_int_equal(exact_round(s.late - late), 0);
	shadow_release(&s);
}

/* A day of 100,000 requests at 1 % allowed; each row is what the shadows expected and what came. */
/* 1 % allowed, 3 % came. */
static void only_what_was_not_expected_tightens_the_target(void **state)
{
	static const struct {
		double expected;
		bool tightens;
	} cases[] = { { 30000, false }, { 25000, false }, { 20000, true }, { 0, true } };
	static struct pool_spec allowing;
	struct pool_policy_state *m = calloc(1, sizeof *m);

	(void)state;
	assert_non_null(m);
	allowing = spec;
	allowing.objective_late_ppm = 10000;
	struct fleet_spec fleet = { .pools = &allowing, .pool_count = 1 };
	struct snapshot s = { 0, 1000000, 15000, &fleet, NULL };
	struct estimates l = { 0 };
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		m->record = (struct shadow_record){ .arrived = 1e7, .hours = 100 };
		m->choice = (struct rule_memory){ .own_started = 1e6,
						  .own_late = 30000,
						  .own_shadow_late = cases[i].expected };
		bool tightens = review_input(m, &s, 0, &l).own_share > .0101;
		if (tightens != cases[i].tightens)
			fail_msg("%.0f expected of 30000", cases[i].expected);
	}
	free(m);
}

static void the_self_test_tells_expectation_from_reality(void **state)
{
	static const struct {
		const char *what;
		double hours, expected_late, late, expected_held, held;
		enum self_test want;
	} cases[] = {
		{ "an hour is too little", 1, 800, 5000, 10, 10, SELF_TEST_LEARNING },
		{ "as expected", 24, 800, 900, 10, 10, SELF_TEST_AGREES },
		{ "noise on a small number", 24, 10, 400, 10, 10, SELF_TEST_AGREES },
		{ "three times as many late", 24, 800, 2400, 10, 10, SELF_TEST_LATER },
		{ "hardly any late", 24, 3000, 200, 10, 10, SELF_TEST_EARLIER },
		{ "a third more machines", 24, 800, 800, 10, 13.4, SELF_TEST_DEARER },
	};
	struct pool_policy_state *m = calloc(1, sizeof *m);

	(void)state;
	assert_non_null(m);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const double ticks = 5760;
		m->record.hours = cases[i].hours;
		m->choice = (struct rule_memory){ .day_started = 1e5,
						  .day_late = cases[i].late,
						  .day_shadow_late = cases[i].expected_late,
						  .day_ticks = ticks,
						  .day_held = cases[i].held * ticks,
						  .day_shadow_held = cases[i].expected_held * ticks };
		enum self_test got = review_self_test(m, .01);
		if (got != cases[i].want)
			fail_msg("%s: %d instead of %d", cases[i].what, (int)got, (int)cases[i].want);
	}
	free(m);
}

/* 1 % allowed. Recent weeks and the last day, and what the record can tell. */
static void the_objective_has_a_state(void **state)
{
	static const struct {
		const char *what;
		double hours, started, late, day_late, supported;
		enum objective_state want;
	} cases[] = {
		{ "an hour is too little", 1, 1e6, 5e4, 0, .001, OBJECTIVE_BEYOND },
		{ "nine late were allowed", 24, 900, 90, 0, .001, OBJECTIVE_BEYOND },
		{ "half of what is allowed", 240, 1e6, 5000, 500, .001, OBJECTIVE_MET },
		{ "the same, told from too few bursts", 240, 1e6, 5000, 500, .02, OBJECTIVE_BEYOND },
		{ "nothing late, and no record", 24, 1e6, 0, 0, -1, OBJECTIVE_BEYOND },
		{ "nearly all of what is allowed", 240, 1e6, 8500, 500, .001, OBJECTIVE_AT_RISK },
		{ "a bad day in good weeks", 240, 1e6, 5000, 1500, .001, OBJECTIVE_AT_RISK },
		{ "more than is allowed", 240, 1e6, 10500, 0, .02, OBJECTIVE_MISSED },
	};
	struct pool_policy_state *m = calloc(1, sizeof *m);

	(void)state;
	assert_non_null(m);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		m->record.hours = cases[i].hours;
		m->choice = (struct rule_memory){ .own_started = cases[i].started,
						  .own_late = cases[i].late,
						  .day_started = 1e5,
						  .day_late = cases[i].day_late };
		enum objective_state got = review_objective(m, .01, cases[i].supported);
		if (got != cases[i].want)
			fail_msg("%s: %d instead of %d", cases[i].what, (int)got, (int)cases[i].want);
	}
	free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_queue_demand_is_what_is_in_service),
		cmocka_unit_test(a_queue_is_not_taken_for_demand),
		cmocka_unit_test(a_burst_of_longer_requests_is_seen_at_once),
		cmocka_unit_test(the_level_of_many_sequences_follows_sooner),
		cmocka_unit_test(the_level_begins_anew_after_a_silence),
		cmocka_unit_test(the_peak_looks_back_as_far_as_asked),
		cmocka_unit_test(capacity_follows_the_evidence),
		cmocka_unit_test(latency_limits_the_batch),
		cmocka_unit_test(lead_times_are_learned_from_starts),
		cmocka_unit_test(the_manifest_fades_from_lead_times),
		cmocka_unit_test(first_wakes_are_learned_apart),
		cmocka_unit_test(the_share_of_those_that_never_ran_is_of_all_groups),
		cmocka_unit_test(what_remains_shrinks_but_never_ends),
		cmocka_unit_test(the_cheapest_rule_within_the_target_is_chosen),
		cmocka_unit_test(what_nobody_could_avoid_is_sunk),
		cmocka_unit_test(more_than_twice_the_demand_needs_bursts_that_come_again),
		cmocka_unit_test(a_backlog_outlives_a_change_of_the_fleet),
		cmocka_unit_test(the_present_rule_is_kept_for_small_gains),
		cmocka_unit_test(a_price_of_late_requests_replaces_the_objective),
		cmocka_unit_test(the_objective_has_a_state),
		cmocka_unit_test(only_what_was_not_expected_tightens_the_target),
		cmocka_unit_test(the_self_test_tells_expectation_from_reality),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
