/* How long one decision takes: a pool of 400 replicas, after a week of history, every tick of the day that follows. */
#include "controller/simulation/simulate.h"
#include "controller/simulation/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WEEK_TICKS = 7 * 24 * 240, DAY_TICKS = 24 * 240, BINS = 8 * 24 * 360 };

static int64_t nanoseconds[DAY_TICKS];
static size_t measured;
static int64_t most_replicas;

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static struct plan decide_timed(void *state, const struct snapshot *s, struct arena *a)
{
	int64_t start = now_ns();
	struct plan plan = policy_preheat.decide(state, s, a);
	int64_t end = now_ns();

	if (s->tick >= WEEK_TICKS && measured < DAY_TICKS)
		nanoseconds[measured++] = end - start;
	if (s->pools[0].input.ready > most_replicas)
		most_replicas = s->pools[0].input.ready;
	return plan;
}

static void *open_preheat(const struct fleet_spec *fleet, const char *setting, struct error *e)
{
	return policy_preheat.open(fleet, setting, e);
}

static void close_preheat(void *state)
{
	policy_preheat.close(state);
}

static const struct policy_ops timed = { "timed", "preheat, timed", open_preheat, close_preheat, decide_timed };

/* 250 to 400 replicas, up and down once a day, with a burst each hour. */
static struct trace daily_traffic(void)
{
	struct trace t = { .is_binned = true,
			   .bins = calloc(BINS, sizeof *t.bins),
			   .bin_count = BINS,
			   .bin_width = 10 * SECOND,
			   .length = BINS * 10 * SECOND };

	for (int64_t i = 0; t.bins && i < BINS; i++) {
		int64_t of_day = i % 8640, ramp = of_day < 4320 ? of_day : 8640 - of_day;
		int64_t requests = 20000 + ramp * 9000 / 4320 + (i % 360 < 30 ? 2500 : 0);

		t.bins[i] = (struct bin){ i * 10 * SECOND, requests, requests * 1200, requests * 250 };
	}
	return t;
}

static int ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

int main(void)
{
	CLEANUP(arena_release) struct arena arena = { 0 };
	struct error e = { 0 };
	static const size_t groups[] = { 0 };
	const struct group_spec group = { .name = "gpu",
					  .provider = "simulated",
					  .settings = "{}",
					  .zone = "",
					  .instance_type = "",
					  .gpus_per_node = 1,
					  .price_per_hour = 1210000,
					  .max_nodes = 1000,
					  .standby_max_nodes = 500,
					  .standby_price_ppm = 20000,
					  .standby_lead_time = { 90 * SECOND, 150 * SECOND } };
	const struct pool_spec pool = { .name = "chat",
					.namespace = "default",
					.objective_wait = 2 * SECOND,
					.objective_late_ppm = 10000,
					.gpus_per_replica = 1,
					.max_sequences = 105,
					.tokens_per_second = 3500,
					.prefill_tokens_per_second = 25000,
					.inter_token_latency_us = 30000,
					.groups = groups,
					.group_count = 1,
					.lead_time = { 380 * SECOND, 650 * SECOND },
					.budget_name = "" };
	const struct fleet_spec fleet = { &group, 1, &pool, 1, NULL };
	const struct world_spec world = world_spec_default(&fleet, &arena);
	struct trace traffic = daily_traffic();
	const struct trace *traces[] = { &traffic };
	const struct simulation run = {
		.world = { .fleet = &fleet, .spec = &world, .traces = traces, .interval = 15 * SECOND, .seed = 1 },
		.policy = &timed,
		.setting = ""
	};
	struct run_result result;

	if (!traffic.bins || !simulate(&run, &arena, &result, &e) || measured == 0) {
		fprintf(stderr, "decide_speed: %s\n", e.message);
		return 3;
	}
	qsort(nanoseconds, measured, sizeof *nanoseconds, ascending);
	printf("%zu decisions after a week, up to %lld replicas: median %.1f us, p99 %.1f us, largest %.1f us\n",
	       measured, (long long)most_replicas, (double)nanoseconds[measured / 2] / 1000,
	       (double)nanoseconds[measured * 99 / 100] / 1000, (double)nanoseconds[measured - 1] / 1000);
	trace_release(&traffic);
	return 0;
}
