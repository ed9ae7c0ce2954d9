/* What a tick costs: every billed GPU-millisecond has one state, every micro-dollar is somebody's. */
#include "base/random.h"
#include "controller/policy/cost.h"
#include "controller/policy/excess.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { GROUPS = 3, POOLS = 2, WORLDS = 400, TICKS = 50 };

/* A fleet and a tick of it, drawn or told. */
struct drawn {
	struct group_spec groups[GROUPS];
	size_t uses[POOLS][GROUPS];
	struct pool_spec pools[POOLS];
	struct fleet_spec fleet;
	struct group_input inputs[POOLS][GROUPS];
	struct start_input starts[POOLS][4];
	struct scrape_input scrapes[POOLS][3];
	struct pool_snapshot snapshots[POOLS];
	struct group_decision decisions[GROUPS];
	struct pool_plan plan;
	struct snapshot snapshot;
};

static int64_t below(struct random *r, int64_t most)
{
	return (int64_t)(random_next(r) % (uint64_t)most);
}

static void draw_fleet(struct drawn *d, struct random *r)
{
	*d = (struct drawn){ .snapshot.now = INT64_C(1700000000000) };
	for (size_t i = 0; i < GROUPS; i++)
		d->groups[i] = (struct group_spec){ .name = "g",
						    .gpus_per_node = 1 + below(r, 8),
						    .price_per_hour = below(r, 100000000),
						    .standby_price_ppm = below(r, 100000) };
	for (size_t p = 0; p < POOLS; p++) {
		for (size_t i = 0; i < GROUPS; i++)
			d->uses[p][i] = i;
		d->pools[p] = (struct pool_spec){ .name = "p",
						  .gpus_per_replica = 1 + below(r, 3),
						  .max_sequences = 1 + below(r, 200),
						  .groups = d->uses[p],
						  .group_count = GROUPS };
	}
	d->fleet = (struct fleet_spec){ d->groups, GROUPS, d->pools, POOLS, NULL };
	d->snapshot.fleet = &d->fleet;
	d->snapshot.pools = d->snapshots;
}

static void draw_pool(struct drawn *d, struct random *r, size_t p)
{
	d->snapshots[p] = (struct pool_snapshot){ .groups = d->inputs[p],
						  .starts = d->starts[p],
						  .scrapes = d->scrapes[p],
						  .group_count = GROUPS,
						  .start_count = (size_t)below(r, 5),
						  .scrape_count = (size_t)below(r, 4) };
	for (size_t i = 0; i < GROUPS; i++)
		d->inputs[p][i] = (struct group_input){ .ready = below(r, 20),
							.draining = below(r, 3),
							.billed_gpus_milli = below(r, 40000),
							.lent = below(r, 4),
							.standby_nodes = below(r, 5) };
	for (size_t i = 0; i < 4; i++)
		d->starts[p][i] = (struct start_input){ .group = below(r, GROUPS), .count = below(r, 4) };
	for (size_t i = 0; i < 3; i++)
		d->scrapes[p][i] = (struct scrape_input){ .ready = below(r, 20),
							  .running = below(r, 10) ? below(r, 3000) : ABSENT,
							  .completed = below(r, 10) ? below(r, 50) : ABSENT,
							  .prompt_tokens = below(r, 5000),
							  .output_tokens = below(r, 5000) };
}

static void draw_tick(struct drawn *d, struct random *r)
{
	for (size_t p = 0; p < POOLS; p++)
		draw_pool(d, r, p);
	for (size_t i = 0; i < GROUPS; i++)
		d->decisions[i] = (struct group_decision){ .held_by = below(r, LIMIT_COUNT) };
	d->plan = (struct pool_plan){ .groups = d->decisions, .group_count = GROUPS };
	d->plan.decision = (struct pool_decision){ .signals = below(r, SIGNAL_STATE_COUNT),
						   .slots_milli = below(r, 2) * below(r, 100000),
						   .arrived = below(r, 100),
						   .started = below(r, 100),
						   .late = below(r, 2) * below(r, 50),
						   .on_the_way = below(r, 3),
						   .held_by = below(r, LIMIT_COUNT) };
}

static int64_t billed_milli(const struct drawn *d, size_t pool)
{
	int64_t sum = 0;

	for (size_t i = 0; i < GROUPS; i++)
		sum += d->inputs[pool][i].billed_gpus_milli;
	return sum;
}

static __int128 rate_of(const struct drawn *d, size_t pool)
{
	__int128 rate = 0;

	for (size_t i = 0; i < GROUPS; i++)
		rate += (__int128)d->inputs[pool][i].billed_gpus_milli * d->groups[i].price_per_hour /
			d->groups[i].gpus_per_node;
	return rate; /* micro-dollars an hour, times 1000 */
}

static void assert_sound(const struct cost_sums *s, uint64_t seed)
{
	int64_t late = 0;

	for (int i = 0; i < GPU_STATE_COUNT; i++)
		if (s->gpu_ms[i] < 0 || s->dollars[i] < 0)
			fail_msg("seed %llu: less than nothing", (unsigned long long)seed);
	for (int i = 0; i < LATE_CAUSE_COUNT; i++)
		late += s->late_by[i];
	if (late != s->late)
		fail_msg("seed %llu: causes do not sum to late", (unsigned long long)seed);
	if (s->blind_gpu_ms > s->gpu_ms[GPU_SERVING])
		fail_msg("seed %llu: more unread than serving", (unsigned long long)seed);
}

static void states_sum_to_what_is_billed(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= WORLDS; seed++) {
		struct random r = random_stream(seed, "cost-test");
		static struct drawn d;
		draw_fleet(&d, &r);
		for (int tick = 0; tick < TICKS; tick++) {
			millis elapsed = 1 + below(&r, 60000);
			d.snapshot.now += elapsed;
			draw_tick(&d, &r);
			for (size_t p = 0; p < POOLS; p++) {
				struct cost_sums s = { 0 };
				int64_t busy = below(&r, 3) ? below(&r, 1000001) : ABSENT;
				cost_add_tick(&s, &(struct cost_tick){ &d.snapshot, p, &d.plan, elapsed, NULL }, &busy);
				assert_sound(&s, seed);
				assert_int_equal(s.watched_ms, elapsed);
				/* One unit of rounding a group. */
				int64_t off = cost_billed_gpu_ms(&s) - billed_milli(&d, p) * elapsed / 1000;
				if (off > GROUPS || off < -GROUPS)
					fail_msg("seed %llu: %lld GPU-ms off", (unsigned long long)seed,
						 (long long)off);
				off = cost_micro_dollars(&s) - s.dollars[GPU_STANDBY] -
				      (int64_t)(rate_of(&d, p) * elapsed / HOUR / 1000);
				if (off > 2 * GROUPS || off < -2 * GROUPS)
					fail_msg("seed %llu: %lld micro-dollars off", (unsigned long long)seed,
						 (long long)off);
			}
		}
	}
}

/* However long at the same rate, what rounding costs does not grow. */
static void nothing_is_lost_over_time(void **state)
{
	(void)state;
	struct random r = random_stream(7, "cost-test");
	static struct drawn d;
	struct cost_sums s = { 0 };
	int64_t busy = ABSENT, time = 0;

	draw_fleet(&d, &r);
	draw_tick(&d, &r);
	d.groups[0] = (struct group_spec){ .name = "g", .gpus_per_node = 7, .price_per_hour = 1210001 };
	d.pools[0].group_count = 1;
	d.inputs[0][0] = (struct group_input){ .ready = 3, .billed_gpus_milli = 3333 };
	for (int i = 0; i < 100000; i++) {
		millis elapsed = 1 + below(&r, 30000);
		d.snapshot.now += elapsed;
		time += elapsed;
		cost_add_tick(&s, &(struct cost_tick){ &d.snapshot, 0, &d.plan, elapsed, NULL }, &busy);
	}
	assert_true(llabs(cost_billed_gpu_ms(&s) - (int64_t)((__int128)3333 * time / 1000)) <= 1);
	assert_true(llabs(cost_micro_dollars(&s) -
			  (int64_t)((__int128)3333 * 1210001 * time / ((__int128)7 * 1000 * HOUR))) <= 1);
}

static void a_meter_has_the_last_word(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= WORLDS; seed++) {
		struct random r = random_stream(seed, "cost-meter");
		static struct drawn d;
		struct cost_sums s = { 0 };
		int64_t busy = ABSENT, gpu_ms = below(&r, 10000000), dollars = below(&r, 10000000);

		draw_fleet(&d, &r);
		draw_tick(&d, &r);
		cost_add_tick(&s,
			      &(struct cost_tick){ &d.snapshot, 1, &d.plan, 15000, &(struct cost_requests){ 5, 4, 3 } },
			      &busy);
		cost_meter(&s, gpu_ms, dollars);
		assert_sound(&s, seed);
		assert_int_equal(cost_billed_gpu_ms(&s), gpu_ms);
		assert_int_equal(cost_micro_dollars(&s), dollars);
		assert_int_equal(s.started, 4);
		assert_int_equal(s.late, 3);
	}
}

static void shares_sum_to_the_whole(void **state)
{
	(void)state;
	struct random r = random_stream(3, "cost-spread");
	int64_t weights[9], out[9];

	for (int i = 0; i < 20000; i++) {
		size_t count = (size_t)(1 + below(&r, 9));
		int64_t total = below(&r, INT64_C(1) << (1 + below(&r, 50))), sum = 0;
		__int128 all = 0;
		for (size_t k = 0; k < count; k++) {
			weights[k] = below(&r, 3) ? below(&r, INT64_C(1) << (1 + below(&r, 50))) : 0;
			all += weights[k];
		}
		cost_spread(total, weights, count, out);
		for (size_t k = 0; k < count; k++) {
			sum += out[k];
			assert_true(out[k] >= 0);
			if (all > 0) {
				__int128 off = (__int128)out[k] * all - (__int128)total * weights[k];
				assert_true(off < all && off > -all); /* less than one from its share */
				assert_true(weights[k] || !out[k]);
			}
		}
		assert_int_equal(sum, total);
	}
}

/* One group of machines with one GPU, 60 s, no readings but what a case says. */
static void each_gpu_is_in_the_right_state(void **state)
{
	(void)state;
	static const struct {
		const char *what;
		int64_t billed, ready, draining, starting, lent, running, slots;
		int64_t idle, lent_s, starting_s, serving; /* GPU seconds */
	} cases[] = {
		{ "half busy", 4000, 4, 0, 0, 0, 20, 10, 120, 0, 0, 120 },
		{ "all busy", 4000, 4, 0, 0, 0, 40, 10, 0, 0, 0, 240 },
		{ "more than slots", 4000, 4, 0, 0, 0, 400, 10, 0, 0, 0, 240 },
		{ "nothing runs", 4000, 4, 0, 0, 0, 0, 10, 240, 0, 0, 0 },
		{ "draining serves", 4000, 2, 2, 0, 0, 0, 10, 120, 0, 0, 120 },
		{ "starting", 4000, 2, 0, 2, 0, 20, 10, 0, 0, 120, 120 },
		{ "lent", 4000, 1, 0, 0, 2, 10, 10, 60, 120, 0, 60 },
		{ "lent is billed to the borrower", 1000, 1, 0, 0, 2, 10, 10, 0, 0, 0, 60 },
		{ "nobody's", 3000, 0, 0, 0, 0, 0, 10, 180, 0, 0, 0 },
		{ "refused starts hold nothing", 2000, 2, 0, 5, 0, 20, 10, 0, 0, 0, 120 },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		static struct drawn d;
		struct random r = random_stream(1, "cost-case");
		struct cost_sums s = { 0 };
		int64_t busy = ABSENT;

		draw_fleet(&d, &r);
		draw_tick(&d, &r);
		d.snapshot.now = 1200 * SECOND;
		d.groups[0] = (struct group_spec){ .name = "g", .gpus_per_node = 1, .price_per_hour = 3600000 };
		d.pools[0].gpus_per_replica = 1;
		d.pools[0].group_count = 1;
		d.plan.decision = (struct pool_decision){ .slots_milli = cases[i].slots * 1000 };
		d.inputs[0][0] = (struct group_input){ .billed_gpus_milli = cases[i].billed,
						       .ready = cases[i].ready,
						       .draining = cases[i].draining,
						       .lent = cases[i].lent };
		d.starts[0][0] = (struct start_input){ .count = cases[i].starting };
		d.snapshots[0].start_count = 1;
		d.scrapes[0][0] = (struct scrape_input){ .ready = cases[i].ready, .running = cases[i].running };
		d.snapshots[0].scrape_count = 1;
		cost_add_tick(&s, &(struct cost_tick){ &d.snapshot, 0, &d.plan, MINUTE, NULL }, &busy);
		if (s.gpu_ms[GPU_IDLE] != cases[i].idle * SECOND || s.gpu_ms[GPU_LENT] != cases[i].lent_s * SECOND ||
		    s.gpu_ms[GPU_STARTING] != cases[i].starting_s * SECOND ||
		    s.gpu_ms[GPU_SERVING] != cases[i].serving * SECOND)
			fail_msg("%s: idle %lld, lent %lld, starting %lld, serving %lld", cases[i].what,
				 (long long)s.gpu_ms[GPU_IDLE], (long long)s.gpu_ms[GPU_LENT],
				 (long long)s.gpu_ms[GPU_STARTING], (long long)s.gpu_ms[GPU_SERVING]);
		/* A dollar a thousand seconds. */
		assert_int_equal(cost_micro_dollars(&s), cases[i].billed * 60);
		assert_int_equal(s.blind_gpu_ms, 0);
	}
}

static void unread_is_not_idle(void **state)
{
	(void)state;
	struct random r = random_stream(1, "cost-blind");
	static struct drawn d;
	struct cost_sums s = { 0 };
	int64_t busy = 250000;

	draw_fleet(&d, &r);
	draw_tick(&d, &r);
	d.pools[0].group_count = 1;
	d.pools[0].gpus_per_replica = 1;
	d.inputs[0][0] = (struct group_input){ .billed_gpus_milli = 4000, .ready = 4 };
	d.snapshots[0].scrape_count = d.snapshots[0].start_count = 0;
	d.plan.decision = (struct pool_decision){ .signals = SIGNALS_FRESH };
	const struct cost_tick t = { &d.snapshot, 0, &d.plan, MINUTE, NULL };
	cost_add_tick(&s, &t, &busy); /* readings come more rarely than ticks */
	assert_int_equal(s.gpu_ms[GPU_SERVING], 60000);
	assert_int_equal(s.gpu_ms[GPU_IDLE], 180000);
	assert_int_equal(s.blind_gpu_ms, 0);
	d.plan.decision.signals = SIGNALS_STALE;
	s = (struct cost_sums){ 0 };
	cost_add_tick(&s, &t, &busy);
	assert_int_equal(busy, ABSENT);
	assert_int_equal(s.gpu_ms[GPU_SERVING], 240000);
	assert_int_equal(s.blind_gpu_ms, 240000);
}

static void late_requests_have_their_cause(void **state)
{
	(void)state;
	static const struct {
		enum limit pool, group;
		int64_t on_the_way;
		enum late_cause cause;
	} cases[] = {
		{ LIMIT_NONE, LIMIT_NONE, 0, LATE_BURST },	  { LIMIT_NONE, LIMIT_NONE, 3, LATE_STARTING },
		{ LIMIT_STOCKOUT, LIMIT_NONE, 3, LATE_STOCKOUT }, { LIMIT_NONE, LIMIT_STOCKOUT, 3, LATE_STOCKOUT },
		{ LIMIT_NONE, LIMIT_QUOTA, 0, LATE_QUOTA },	  { LIMIT_MAX, LIMIT_STOCKOUT, 0, LATE_MAX },
		{ LIMIT_BUDGET, LIMIT_NONE, 0, LATE_BUDGET },	  { LIMIT_RATE, LIMIT_NONE, 1, LATE_RATE },
		{ LIMIT_STALE, LIMIT_NONE, 1, LATE_STALE },	  { LIMIT_OBSERVE, LIMIT_NONE, 0, LATE_NOT_ACTING },
		{ LIMIT_PAUSED, LIMIT_NONE, 0, LATE_NOT_ACTING }, { LIMIT_QUEUE, LIMIT_NONE, 1, LATE_STARTING },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct random r = random_stream(1, "cost-late");
		static struct drawn d;
		struct cost_sums s = { 0 };
		int64_t busy = ABSENT;

		draw_fleet(&d, &r);
		draw_tick(&d, &r);
		memset(d.decisions, 0, sizeof d.decisions);
		d.decisions[1].held_by = cases[i].group;
		d.plan.decision = (struct pool_decision){
			.late = 9, .started = ABSENT, .held_by = cases[i].pool, .on_the_way = cases[i].on_the_way
		};
		cost_add_tick(&s, &(struct cost_tick){ &d.snapshot, 0, &d.plan, MINUTE, NULL }, &busy);
		assert_int_equal(s.late_by[cases[i].cause], 9);
		assert_int_equal(s.started, 0);
	}
}

static void what_was_served_has_its_price(void **state)
{
	(void)state;
	struct cost_sums s = { .dollars = { 1000000, 0, 0, 2000000, 500000 }, .started = 7 };

	assert_int_equal(cost_per_1000_tokens(&s), ABSENT);
	s.prompt_tokens = 600000;
	s.output_tokens = 400000;
	assert_int_equal(cost_per_1000_tokens(&s), 3500000); /* $0.0035 */
	assert_int_equal(cost_per_request(&s), 500000000);
	s.started = 0;
	assert_int_equal(cost_per_request(&s), ABSENT);
}

/* The decision's own wishes, drawn: parts are never negative and add up to the states, whatever they say. */
static void parts_sum_to_the_states(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= WORLDS; seed++) {
		struct random r = random_stream(seed, "excess");
		static struct drawn d;
		draw_fleet(&d, &r);
		for (int tick = 0; tick < TICKS; tick++) {
			millis elapsed = 1 + below(&r, 60000);
			int64_t busy = below(&r, 3) ? below(&r, 1000001) : ABSENT, same = busy;
			struct cost_sums cost = { 0 };
			struct excess_sums parts = { 0 };
			d.snapshot.now += elapsed;
			draw_tick(&d, &r);
			d.plan.decision.ready = below(&r, 40);
			d.plan.decision.draining = below(&r, 5);
			d.plan.decision.level_milli = below(&r, 40000);
			d.plan.decision.margin_permille = below(&r, 1500);
			d.plan.decision.low_milli = below(&r, 60000);
			d.plan.decision.high_milli = below(&r, 60000);
			d.plan.decision.deadline_need_milli = below(&r, 2) ? ABSENT : below(&r, 60000);
			d.plan.decision.floor = below(&r, 10);
			const struct cost_tick t = { &d.snapshot, 0, &d.plan, elapsed, NULL };
			cost_add_tick(&cost, &t, &busy);
			excess_add_tick(&parts, &t, &same);
			int64_t gpu_ms = 0, dollars = 0;
			for (int i = 0; i < EXCESS_PARTS; i++) {
				if (parts.gpu_ms[i] < 0 || parts.dollars[i] < 0)
					fail_msg("seed %llu: %s is negative", (unsigned long long)seed,
						 excess_part_name((enum excess_part)i));
				gpu_ms += parts.gpu_ms[i];
				dollars += parts.dollars[i];
			}
			assert_int_equal(gpu_ms, cost_billed_gpu_ms(&cost) + cost.gpu_ms[GPU_STANDBY]);
			assert_int_equal(dollars, cost_micro_dollars(&cost));
			assert_int_equal(busy, same);
		}
	}
}

/* Ten replicas of one GPU for a second, two of them busy: where each of the others is counted. */
static void each_part_reaches_as_far_as_it_is_wished(void **state)
{
	static const struct {
		const char *name;
		struct pool_decision decision;
		int64_t wanted[EXCESS_PARTS]; /* in GPU-seconds */
	} cases[] = {
		{ "all that is not work waits to leave", { .ready = 10 }, { 2, 0, 0, 0, 8 } },
		{ "a margin of e^0.6931",
		  { .ready = 10, .level_milli = 2000, .margin_permille = 693 },
		  { 2, 2, 0, 0, 6 } },
		{ "a queue is chased", { .ready = 10, .level_milli = 2000, .chase_milli = 3000 }, { 2, 3, 0, 0, 5 } },
		{ "a peak is remembered", { .ready = 10, .level_milli = 2000, .low_milli = 7000 }, { 2, 0, 5, 0, 3 } },
		{ "up to where it releases",
		  { .ready = 10, .low_milli = 7000, .high_milli = 8000 },
		  { 2, 0, 6, 0, 2 } },
		{ "deadlines", { .ready = 10, .deadline_need_milli = 9000 }, { 2, 0, 7, 0, 1 } },
		{ "a floor below the work", { .ready = 10, .floor = 1 }, { 2, 0, 0, 0, 8 } },
		{ "a floor above all", { .ready = 10, .low_milli = 4000, .floor = 20 }, { 2, 0, 2, 6, 0 } },
		{ "less is there than is wished", { .ready = 4, .low_milli = 9000 }, { 2, 0, 2, 0, 0, 6 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		static struct drawn d;
		struct random r = random_stream(1, "excess");
		struct excess_sums parts = { 0 };
		int64_t busy = ABSENT;
		draw_fleet(&d, &r);
		d.pools[0].gpus_per_replica = 1;
		d.pools[0].group_count = 1;
		d.plan = (struct pool_plan){ .groups = d.decisions, .group_count = 1, .decision = cases[i].decision };
		d.plan.decision.slots_milli = 10000;
		d.snapshots[0] = (struct pool_snapshot){
			.groups = d.inputs[0], .scrapes = d.scrapes[0], .group_count = 1, .scrape_count = 1
		};
		d.inputs[0][0] = (struct group_input){ .ready = cases[i].decision.ready, .billed_gpus_milli = 10000 };
		d.scrapes[0][0] = (struct scrape_input){ .ready = cases[i].decision.ready, .running = 20 };
		excess_add_tick(&parts, &(struct cost_tick){ &d.snapshot, 0, &d.plan, 1000, NULL }, &busy);
		for (int k = 0; k < EXCESS_PARTS; k++)
			if (llabs(parts.gpu_ms[k] - cases[i].wanted[k] * 1000) > 2)
				fail_msg("%s: %s is %lld GPU-ms", cases[i].name, excess_part_name((enum excess_part)k),
					 (long long)parts.gpu_ms[k]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(states_sum_to_what_is_billed),
		cmocka_unit_test(nothing_is_lost_over_time),
		cmocka_unit_test(a_meter_has_the_last_word),
		cmocka_unit_test(shares_sum_to_the_whole),
		cmocka_unit_test(each_gpu_is_in_the_right_state),
		cmocka_unit_test(unread_is_not_idle),
		cmocka_unit_test(late_requests_have_their_cause),
		cmocka_unit_test(what_was_served_has_its_price),
		cmocka_unit_test(parts_sum_to_the_states),
		cmocka_unit_test(each_part_reaches_as_far_as_it_is_wished),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
