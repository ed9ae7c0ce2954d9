/* A world of other capacities, speeds and failures than its manifest says is recorded; a model made from that fits it.
 */
#include "tests/unit/simulation/toy.h"

#include "base/exact.h"
#include "base/random.h"
#include "controller/simulation/calibrate.h"

struct recorded_world {
	struct toy toy;
	struct calibration *measured;
	struct run_result result;
	int64_t slots; /* the truth */
};

static bool take_tick(void *user, const struct tick_view *v, struct error *e)
{
	struct recorded_world *r = user;
	const struct pool_plan *plans[] = { &v->plan->pools[0] };

	(void)e;
	calibration_tick(r->measured, v->snapshot, plans);
	return true;
}

/* Rush hours of ten minutes an hour, at random moments, with requests of many lengths. */
static void make_traffic(struct toy *t, struct random *r, double rate)
{
	enum { MOST = 60000 };
	struct request *q = arena_array(&t->arena, struct request, MOST);
	size_t n = 0;

	for (double at = 0; at < 4 * (double)HOUR && n < MOST;) {
		bool is_rush = (int64_t)(at / (double)MINUTE) % 60 < 10;
		at += -1000 / (rate * (is_rush ? 3 : 1)) * exact_log(1 - random_uniform(r));
		q[n++] = (struct request){ (millis)at, (int32_t)(random_uniform(r) * 800),
					   (int32_t)random_lognormal(r, 200, 700), -1 };
	}
	t->traces[0].requests = q;
	t->traces[0].request_count = n;
	t->traces[0].length = 4 * HOUR;
}

static void record(struct recorded_world *r, uint64_t seed)
{
	struct random draw = random_stream(seed, "worlds");
	struct toy *t = &r->toy;
	struct error e = { 0 };
	const struct observer observer = { take_tick, r };

	toy_setup(t);
	r->slots = 4 + (int64_t)(random_uniform(&draw) * 24);
	t->pool_worlds[0].max_sequences = r->slots;
	t->pool_worlds[0].inter_token_latency_us = 5000 + (int64_t)(random_uniform(&draw) * 20000);
	t->pool_worlds[0].prefill_tokens_per_second = 4000 + (int64_t)(random_uniform(&draw) * 40000);
	t->pool_worlds[0].lead_time = (struct quantiles){ 150 * SECOND, 240 * SECOND };
	t->pool_worlds[0].initial_replicas = 2;
	make_traffic(t, &draw, (double)r->slots / 2);
	struct simulation s = {
		.world = t->setup, .policy = &policy_preheat, .setting = "", .observers = &observer, .observer_count = 1
	};

	r->measured = calibration_new(&t->fleet, 0, &t->arena);
	assert_true(simulate(&s, &t->arena, &r->result, &e));
}

static struct world_spec as_measured(struct recorded_world *r)
{
	struct world_spec spec = world_spec_default(&r->toy.fleet, &r->toy.arena);
	struct trace *traces[] = { &r->toy.traces[0] };

	calibration_world(r->measured, traces, &spec);
	return spec;
}

static bool is_within(double value, double truth, double share)
{
	return value >= truth * (1 - share) && value <= truth * (1 + share);
}

static void a_model_from_measurements_fits(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		struct recorded_world r;
		record(&r, seed);
		struct world_spec spec = as_measured(&r);
		const struct measured *m = calibration_measured(r.measured, 0);
		struct recorded_fleet f = calibration_replay(r.measured, 0, &r.toy.traces[0], &spec);
		if (!is_within((double)m->slots, (double)r.slots, .11) || !f.fits)
			fail_msg("seed %d: %d slots of %d; hours %.2f, late %.4f of %.4f", (int)seed, (int)m->slots,
				 (int)r.slots, f.hours_ratio, f.model_late_share, f.late_share);
		assert_true(is_within((double)m->lead.p50, 150000, .25));
		toy_end(&r.toy);
	}
}

/* Twice the same stretch is judged as once; with one that the model does not give, as neither. */
static void stretches_add_up(void **state)
{
	struct recorded_world r;
	struct recorded_fleet both = { 0 };

	(void)state;
	record(&r, 1);
	struct world_spec spec = as_measured(&r);
	struct recorded_fleet f = calibration_replay(r.measured, 0, &r.toy.traces[0], &spec);
	recorded_fleet_add(&both, &f);
	recorded_fleet_add(&both, &f);
	assert_true(both.fits);
	assert_int_equal(both.recorded.started, 2 * f.recorded.started);
	assert_true(is_within(both.gpu_hours, 2 * f.gpu_hours, 1e-9) && is_within(both.late_share, f.late_share, 1e-9));
	f.model_gpu_hours *= 2;
	recorded_fleet_add(&both, &f);
	assert_true(!both.fits && is_within(both.hours_ratio, 4. / 3, .1));
	toy_end(&r.toy);
}

/* The manifest's ten slots and speeds are wrong in each of these worlds. */
static void a_model_from_the_manifest_does_not(void **state)
{
	int misfits = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		struct recorded_world r;
		record(&r, seed);
		struct world_spec spec = world_spec_default(&r.toy.fleet, &r.toy.arena);
		misfits += !calibration_replay(r.measured, 0, &r.toy.traces[0], &spec).fits;
		toy_end(&r.toy);
	}
	assert_true(misfits >= 9);
}

static void what_the_world_file_says_stands(void **state)
{
	struct recorded_world r;

	(void)state;
	record(&r, 3);
	struct world_spec spec = world_spec_default(&r.toy.fleet, &r.toy.arena);
	struct pool_world *told = arena_array(&r.toy.arena, struct pool_world, 1);
	*told = spec.pools[0];
	told->max_sequences = 77;
	told->lead_time = (struct quantiles){ SECOND, SECOND };
	spec.pools = told;
	calibration_world(r.measured, (struct trace *[]){ NULL }, &spec);
	assert_int_equal(spec.pools[0].max_sequences, 77);
	assert_int_equal(spec.pools[0].lead_time.p50, SECOND);
	assert_int_equal(spec.pools[0].stage[STAGE_LOAD].p50, 0);
	toy_end(&r.toy);
}

/* One tick, with what a table says of it. */
static void one_tick(struct calibration *c, const struct fleet_spec *fleet, millis now, const struct event_input *ev,
		     size_t events, bool is_blind)
{
	struct group_input group = { .ready = 2 };
	struct pool_snapshot pool = { .input = { .scrapes_expected = 2, .scrapes_fresh = is_blind ? 0 : 2, .ready = 2 },
				      .groups = &group,
				      .group_count = 1,
				      .events = ev,
				      .event_count = events };
	struct group_decision decision = { 0 };
	struct pool_plan plan = { .groups = &decision, .group_count = 1 };
	const struct pool_plan *plans[] = { &plan };

	calibration_tick(c, &(struct snapshot){ 0, now, TOY_TICK, fleet, &pool }, plans);
}

static void refusals_silence_and_losses_come_back_as_they_were(void **state)
{
	static const struct event_input refused = { .what = EVENT_REFUSED, .value = ERROR_STOCKOUT, .count = 1 };
	static const struct event_input lost = { .what = EVENT_LOST, .count = 1 };
	static const struct event_input stuck = { .what = EVENT_STUCK, .kind = START_COLD, .count = 1 };
	static const struct event_input serving = {
		.what = EVENT_SERVING, .kind = START_COLD, .value = 60000, .count = 3
	};
	struct toy t;

	(void)state;
	toy_setup(&t);
	struct calibration *c = calibration_new(&t.fleet, 0, &t.arena);
	for (millis now = TOY_TICK; now <= HOUR; now += TOY_TICK) {
		const struct event_input *ev = now == 10 * MINUTE || now == 14 * MINUTE || now == 40 * MINUTE ? &refused
					       : now == 20 * MINUTE					      ? &lost
					       : now == 30 * MINUTE					      ? &stuck
					       : now == 35 * MINUTE					      ? &serving
													      : NULL;
		one_tick(c, &t.fleet, now, ev, ev ? 1 : 0, now > 50 * MINUTE && now <= 55 * MINUTE);
	}
	struct world_spec spec = world_spec_default(&t.fleet, &t.arena);
	calibration_world(c, (struct trace *[]){ NULL }, &spec);
	const struct group_world *g = &spec.groups[0];
	assert_int_equal(g->stockout_count, 2);
	assert_int_equal(g->stockouts[0].from, 10 * MINUTE - TOY_TICK);
	assert_int_equal(g->stockouts[0].to, 14 * MINUTE);
	assert_int_equal(g->stockouts[1].to, 40 * MINUTE);
	assert_int_equal(g->failed_start_ppm, 250000);
	assert_int_equal(g->loss_per_hour_ppm, 500000); /* one of two in an hour */
	assert_int_equal(spec.pools[0].telemetry_count, 1);
	assert_int_equal(spec.pools[0].telemetry[0].from, 50 * MINUTE);
	assert_int_equal(spec.pools[0].telemetry[0].to, 55 * MINUTE);
	assert_int_equal(spec.pools[0].lead_time.p50, 60000);
	toy_end(&t);
}

/* 16 late of 3,466, and none in the model: by chance where its draws are that far apart, and not where all are alike.
 */
static void late_requests_come_together(void **state)
{
	struct recorded_fleet one = {
		.recorded = { .started = 3466 }, .late_share = 16. / 3466, .gpu_hours = 1, .model_gpu_hours = 1
	};
	struct recorded_fleet alone = { 0 }, together = { 0 };

	(void)state;
	recorded_fleet_add(&alone, &one);
	assert_false(alone.fits);
	one.late_variance = 36;
	recorded_fleet_add(&together, &one);
	assert_true(together.fits);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(late_requests_come_together),
		cmocka_unit_test(a_model_from_measurements_fits),
		cmocka_unit_test(stretches_add_up),
		cmocka_unit_test(a_model_from_the_manifest_does_not),
		cmocka_unit_test(what_the_world_file_says_stands),
		cmocka_unit_test(refusals_silence_and_losses_come_back_as_they_were),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
