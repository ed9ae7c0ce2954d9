/* Every rival in seeded worlds: what must hold after each tick, whatever its settings. */
#include "base/exact.h"
#include "base/random.h"
#include "controller/simulation/rivals/compare.h"
#include "controller/simulation/rivals/rival.h"
#include "controller/simulation/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { TICK = 15 * 1000, BIN = 10 * 1000, SLOTS = 100 };

static const size_t pool_groups[] = { 0, 1 };
static const struct group_spec groups[] = {
	{ .name = "spot",
	  .gpus_per_node = 1,
	  .price_per_hour = 500000,
	  .max_nodes = 12,
	  .standby_max_nodes = 8,
	  .standby_price_ppm = 20000,
	  .standby_lead_time = { 90 * SECOND, 150 * SECOND } },
	{ .name = "on-demand", .gpus_per_node = 1, .price_per_hour = 1000000, .min_nodes = 1, .max_nodes = 20 },
};
static const struct pool_spec pool = { .name = "p",
				       .objective_wait = 2 * SECOND,
				       .objective_late_ppm = 10000,
				       .gpus_per_replica = 1,
				       .max_sequences = SLOTS,
				       .prefill_tokens_per_second = 25000,
				       .inter_token_latency_us = 30000,
				       .groups = pool_groups,
				       .group_count = 2,
				       .lead_time = { 380 * SECOND, 650 * SECOND } };
static const struct fleet_spec fleet = { .groups = groups, .group_count = 2, .pools = &pool, .pool_count = 1 };

/* `replicas` of load for each bin, in requests of 6 s. */
static struct trace traffic(size_t bins, double (*replicas)(size_t bin, void *user), void *user)
{
	struct trace t = { .is_binned = true, .bin_width = BIN, .bin_count = bins, .length = (millis)bins * BIN };

	t.bins = calloc(bins, sizeof *t.bins);
	assert_non_null(t.bins);
	for (size_t i = 0; i < bins; i++) {
		int64_t requests = exact_round(replicas(i, user) * SLOTS * 10 / 6);

		t.bins[i] = (struct bin){ (millis)i * BIN, requests, 0, requests * 200 };
	}
	return t;
}

struct run {
	double replica_hours, late_share;
	int64_t actions_at_end; /* orders in the last quarter */
};

static int64_t orders_in(const struct plan *plan)
{
	int64_t n = 0;

	for (size_t g = 0; g < plan->pools[0].group_count; g++) {
		const struct group_decision *d = &plan->pools[0].groups[g];

		n += d->cold + d->wake + d->refill + d->reclaim + d->place + d->adopt_refill + d->cancel_cold +
		     d->cancel_wake + d->cancel_refill + d->release + d->delete_standby;
	}
	return n;
}

static void check_laws(const char *what, const struct snapshot *s, const struct plan *plan)
{
	for (size_t g = 0; g < 2; g++) {
		const struct group_decision *d = &plan->pools[0].groups[g];
		const struct group_input *in = &s->pools[0].groups[g];
		int64_t bought = d->cold + d->refill + d->wake;

		if (in->nodes + bought > groups[g].max_nodes && bought)
			fail_msg("%s: tick %lld asks for %lld nodes of %lld", what, (long long)s->tick,
				 (long long)(in->nodes + bought), (long long)groups[g].max_nodes);
		if (d->release > in->ready || d->stop + d->give_back > d->release || d->wake > in->standby)
			fail_msg("%s: tick %lld orders what is not there", what, (long long)s->tick);
		if (in->nodes - d->release - d->cancel_cold - d->cancel_wake < groups[g].min_nodes &&
		    d->release + d->cancel_cold + d->cancel_wake)
			fail_msg("%s: tick %lld goes below min", what, (long long)s->tick);
		assert_true(d->cold >= 0 && d->release >= 0 && d->stop >= 0 && d->refill >= 0 && d->cancel_cold >= 0);
	}
}

static struct run run_rival(const struct policy_ops *rival, const char *setting, const struct trace *t, uint64_t seed)
{
	const struct trace *const traces[] = { t };
	struct world *w =
		world_new(&(struct world_setup){ .fleet = &fleet, .traces = traces, .interval = TICK, .seed = seed });
	struct error e = { 0 };
	void *state = rival->open(&fleet, setting, &e);
	int64_t ticks = world_length(w) / TICK;
	struct run out = { 0 };

	assert_non_null(state);
	for (int64_t i = 0; i < ticks; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };

		world_advance(w);
		struct snapshot s = world_snapshot(w, &a);
		struct plan plan = rival->decide(state, &s, &a);
		check_laws(setting, &s, &plan);
		if (i >= ticks * 3 / 4)
			out.actions_at_end += orders_in(&plan);
		world_apply(w, &plan);
	}
	struct world_totals totals = world_totals(w, 0);
	out.replica_hours = (double)totals.gpu_ms / 3600000;
	out.late_share = (double)(totals.late + totals.waiting_late) / (double)totals.arrived;
	rival->close(state);
	world_free(w);
	return out;
}

static double random_walk(size_t bin, void *user)
{
	struct random *r = user;
	static double level;

	if (!bin)
		level = 6;
	level *= exact_exp(0.05 * random_normal(r));
	if (random_uniform(r) < 0.002)
		level *= 2;
	level = level < 0.5 ? 0.5 : level > 25 ? 25 : level;
	return level;
}

/* A handful of settings of each family, spread over its sweep. */
static size_t few_settings(const struct policy_ops *rival, struct arena *a, const struct rival_setting **out)
{
	struct rival_scale scale = { .mean = 8, .peak = 20, .has_standby = true };
	const struct rival_setting *all;
	size_t count = rival_settings(rival, &scale, a, &all), few = 6;
	struct rival_setting *picked = arena_array(a, struct rival_setting, few);

	if (!count) { /* of a family that is not swept */
		static const struct rival_setting own[] = {
			{ .text = "total=8" },
			{ .text = "waiting=2,running=12,min=2,max=30,up_pods=2,up_percent=0,down_percent=10,down_"
				  "percent_s=60" },
			{ .text = "waiting=5,zero=1,cooldown=120,up_window=60,removal=0" },
		};
		*out = own;
		return sizeof own / sizeof *own;
	}
	for (size_t i = 0; i < few; i++)
		picked[i] = all[i * (count - 1) / (few - 1)];
	*out = picked;
	return few;
}

static void laws_hold_in_random_worlds(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 2; seed++) {
		struct random r = random_stream(seed, "traffic");
		struct trace t = traffic(1500, random_walk, &r);

		for (size_t i = 0; i < rival_count(); i++) {
			CLEANUP(arena_release) struct arena a = { 0 };
			const struct rival_setting *settings;
			size_t count = few_settings(rival_at(i), &a, &settings);

			for (size_t k = 0; k < count; k++)
				run_rival(rival_at(i), settings[k].text, &t, seed);
		}
		trace_release(&t);
	}
}

static double still(size_t bin, void *user)
{
	(void)bin;
	return *(double *)user;
}

static void a_still_world_is_left_alone(void **state)
{
	static const char *const settings[][2] = {
		{ "static", "replicas=7" },
		{ "hpa", "" },
		{ "hpa", "target=0.85,window=120,pool=static:2" },
		{ "kpa", "" },
		{ "kpa", "target=0.9,window=300,delay=600,pool=total:12" },
		{ "keda", "threshold=50,floor=0.8" },
		{ "dynamo", "utilization=0.7,fast=0,hold=0" },
		{ "buffer", "" },
		{ "buffer", "replicas=0,share=0.2,removal=1800" },
	};
	double level = 5.3;
	struct trace t = traffic(1200, still, &level);

	(void)state;
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
		struct run r = run_rival(rival_find(settings[i][0]), settings[i][1], &t, 1);

		if (r.actions_at_end)
			fail_msg("%s %s: %lld orders although nothing moves", settings[i][0], settings[i][1],
				 (long long)r.actions_at_end);
	}
	trace_release(&t);
}

/* The relaxed problem's one disadvantage, short overloads that the wait tolerates, is worth less than this. */
static const double TOLERATED = 1.02;

static void nobody_undercuts_the_oracle(void **state)
{
	struct random r = random_stream(7, "traffic");
	struct trace t = traffic(1500, random_walk, &r);
	const struct queue_truth truth = { .slots = SLOTS,
					   .prefill_tokens_per_second = 25000,
					   .inter_token_latency_us = 30000 };

	(void)state;
	for (size_t i = 0; i < rival_count(); i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		const struct rival_setting *settings;
		size_t count = few_settings(rival_at(i), &a, &settings);
		struct load d = load_of(&t, &truth, TICK, &a);

		for (size_t k = 0; k < count; k++) {
			struct run run = run_rival(rival_at(i), settings[k].text, &t, 7);
			struct oracle_question q = { .load = &d,
						     .lead_s = oracle_mean_lead(pool.lead_time),
						     .late_share = run.late_share };
			struct oracle_bound b = oracle_bound(&q, &a);
			if (b.replica_hours > run.replica_hours * TOLERATED && !settings[k].uses_standby)
				fail_msg("%s %s: %g hours with %g late, the bound is %g", rival_at(i)->name,
					 settings[k].text, run.replica_hours, run.late_share, b.replica_hours);
		}
	}
	trace_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(laws_hold_in_random_worlds),
		cmocka_unit_test(a_still_world_is_left_alone),
		cmocka_unit_test(nobody_undercuts_the_oracle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
