/* Slots and engines in seeded random worlds: memory, one step at a time, nothing asleep at work, no request lost. */
#include "base/random.h"
#include "controller/simulation/share_world.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

enum { MODELS_MOST = 8, STEPS = 6, REQUESTS_MOST = 400, WORLDS = 300 };

struct scene {
	uint64_t seed;
	struct share_model models[MODELS_MOST];
	struct trace traces[MODELS_MOST];
	struct request requests[MODELS_MOST][REQUESTS_MOST];
	struct stock_step stock[STEPS];
	struct share_rule rule;
	struct share_setup setup;
	millis now;
	int64_t swaps;	 /* sleeps for somebody else */
	bool is_crowded; /* two were awake on one slot */
};

#define LAW(condition)                                                                                        \
	do {                                                                                                  \
		if (!(condition))                                                                             \
			fail_msg("seed %llu, at %lld ms: %s", (unsigned long long)s->seed, (long long)s->now, \
				 #condition);                                                                 \
	} while (0)

static int64_t below(struct random *r, int64_t n)
{
	return (int64_t)(random_next(r) % (uint64_t)n);
}

static void look_at_engine(struct scene *s, const struct share_engine *e)
{
	bool is_awake = e->state == SHARE_AWAKE;

	LAW(is_awake || !e->running);
	LAW(is_awake || !e->is_in_routing);
	LAW(e->running >= 0 && e->running <= s->models[e->member].truth.slots);
}

/* As a slot is, and as it will be with its order begun. */
static void look_at_slot(struct scene *s, const struct share_view *v, size_t slot, const struct share_order *o)
{
	struct share_engine engines[MODELS_MOST];
	struct share_slot after = v->slots[slot];
	int64_t changing = 0, awake = 0;

	for (size_t k = 0; k < after.engine_count; k++) {
		const struct share_engine *e = &after.engines[k];
		look_at_engine(s, e);
		engines[k] = *e;
		changing += e->state == SHARE_WAKING || e->state == SHARE_FALLING_ASLEEP;
		awake += e->state == SHARE_AWAKE;
	}
	s->is_crowded |= awake > 1;
	LAW(changing <= 1);
	LAW(share_gpu_left(&after, v->members) >= 0);
	LAW(share_host_left(&after, v->members) >= 0);
	if (o->verb == SHARE_KEEP)
		return;
	struct share_engine *e = &engines[o->engine];
	LAW(changing == 0);
	LAW(o->verb == SHARE_WAKE ? e->state == SHARE_ASLEEP : e->state == SHARE_AWAKE);
	LAW(o->verb == SHARE_WAKE || !e->running);
	LAW(o->verb == SHARE_WAKE || v->now - e->since >= v->times[e->member].sleep + v->times[e->member].wake);
	LAW(o->verb == SHARE_SLEEP || !after.is_leaving);
	LAW(o->cleared_for != e->member);
	s->swaps += o->cleared_for != SHARE_NONE;
	e->state = o->verb == SHARE_WAKE ? SHARE_WAKING : SHARE_FALLING_ASLEEP;
	after.engines = engines;
	LAW(share_gpu_left(&after, v->members) >= 0);
	LAW(share_host_left(&after, v->members) >= 0);
}

static bool serves_on_one_that_stays(const struct share_view *v, const struct share_plan *plan, size_t member)
{
	for (size_t i = 0; i < v->slot_count; i++)
		for (size_t k = 0; !v->slots[i].is_leaving && k < v->slots[i].engine_count; k++)
			if (v->slots[i].engines[k].member == member && plan->is_in_routing[i][k])
				return true;
	return false;
}

static void look_at_routing(struct scene *s, const struct share_view *v, const struct share_plan *plan, size_t slot)
{
	const struct share_order *o = &plan->orders[slot];

	for (size_t k = 0; k < v->slots[slot].engine_count; k++) {
		if (!plan->is_in_routing[slot][k])
			continue;
		LAW(v->slots[slot].engines[k].state == SHARE_AWAKE);
		LAW(!v->slots[slot].is_leaving || !serves_on_one_that_stays(v, plan, v->slots[slot].engines[k].member));
		LAW(o->verb != SHARE_SLEEP || o->engine != k);
	}
}

static void look(void *user, const struct share_view *v, const struct share_plan *plan)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct scene *s = user;
	struct share_plan again = share_decide(v, &a);

	s->now = v->now;
	for (size_t i = 0; i < v->slot_count; i++) {
		look_at_slot(s, v, i, &plan->orders[i]);
		look_at_routing(s, v, plan, i);
		LAW(!memcmp(&again.orders[i].lead, &plan->orders[i].lead, sizeof(millis)));
		LAW(again.orders[i].verb == plan->orders[i].verb && again.orders[i].engine == plan->orders[i].engine);
		LAW(again.orders[i].cleared_for == plan->orders[i].cleared_for);
	}
}

/* Bursts, each around a moment of its own; an hour of quiet after the last request. */
static void make_traffic(struct scene *s, size_t i, struct random *r)
{
	size_t count = (size_t)below(r, REQUESTS_MOST), bursts = 1 + (size_t)below(r, 6);

	for (size_t k = 0; k < count; k++) {
		millis burst = (millis)(k % bursts) * 20 * MINUTE;
		s->requests[i][k] = (struct request){ burst + below(r, 2 * MINUTE), (int32_t)below(r, 200),
						      (int32_t)(1 + below(r, 600)), -1 };
	}
	requests_sort(s->requests[i], count);
	s->traces[i] = (struct trace){ .requests = s->requests[i], .request_count = count, .length = 4 * HOUR };
}

static void make_model(struct scene *s, size_t i, struct random *r)
{
	int64_t asleep = below(r, 4);

	make_traffic(s, i, r);
	s->models[i] = (struct share_model){ .name = "model",
					     .truth = { .slots = 1 + below(r, 8),
							.prefill_tokens_per_second = 25000,
							.inter_token_latency_us = 30000,
							.objective_wait = 2 * SECOND },
					     .late_ppm = 10000,
					     .gpu_awake_mib = 20 + below(r, 41),
					     .gpu_asleep_mib = asleep,
					     .host_asleep_mib = 10 + below(r, 20),
					     .sleep = { 100 + below(r, 3000), 4000 },
					     .wake = { 500 + below(r, 5000), 8000 },
					     .peak = 1 + below(r, 4),
					     .trace = &s->traces[i] };
}

static void make_scene(struct scene *s, uint64_t seed)
{
	struct random r = random_stream(seed, "share-laws");
	size_t models = 2 + (size_t)below(&r, MODELS_MOST - 1);
	int64_t host = 60 + below(&r, 120), least;

	*s = (struct scene){ .seed = seed };
	for (size_t i = 0; i < models; i++)
		make_model(s, i, &r);
	s->rule = (struct share_rule){ below(&r, 2) * 250, below(&r, 300) * SECOND, below(&r, 300) * SECOND,
				       below(&r, 3) * 300, (enum victim_rule)below(&r, 2) };
	least = (int64_t)models; /* one each at the worst */
	for (size_t i = 0; i < STEPS; i++)
		s->stock[i] =
			(struct stock_step){ (millis)i * 25 * MINUTE, least + below(&r, 4) - (i ? below(&r, 6) : 0) };
	for (size_t i = 0; i < STEPS; i++)
		s->stock[i].slots = s->stock[i].slots > 0 ? s->stock[i].slots : 1;
	s->setup = (struct share_setup){ .models = s->models,
					 .model_count = models,
					 .size = { 70 + below(&r, 80), host },
					 .stock = s->stock,
					 .stock_count = STEPS,
					 .rule = &s->rule,
					 .wake_failed_ppm = below(&r, 3) * 150000,
					 .mend = { MINUTE, 2 * MINUTE },
					 .warm_up = below(&r, 2) * HOUR,
					 .seed = seed,
					 .look = look,
					 .user = s };
}

static int64_t started(const struct share_score *score)
{
	int64_t n = 0;

	for (size_t i = 0; i < WAITS_COUNT; i++)
		n += score->waits.counts[i];
	return n;
}

/* Every request started: none was lost by a swap, a failed wake or a slot that left. */
static void nothing_is_lost(struct scene *s, const struct share_outcome *o)
{
	LAW(o->is_whole);
	for (size_t i = 0; i < s->setup.model_count; i++) {
		const struct share_score *before = &o->before[i], *after = &o->members[i];
		LAW(before->requests + after->requests == (int64_t)s->traces[i].request_count);
		LAW(started(before) + started(after) == (int64_t)s->traces[i].request_count);
		LAW(before->late + after->late <= (int64_t)s->traces[i].request_count);
	}
}

static void laws_hold_in_random_worlds(void **state)
{
	int64_t swaps = 0, failed = 0, crowded = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= WORLDS; seed++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		static struct scene s;
		make_scene(&s, seed);
		struct share_outcome o = share_simulate(&s.setup, &a);
		nothing_is_lost(&s, &o);
		swaps += s.swaps;
		failed += o.failed_wakes;
		crowded += s.is_crowded;
	}
	/* What the laws are about did happen. */
	assert_true(swaps > WORLDS);
	assert_true(failed > WORLDS / 2);
	assert_true(crowded > WORLDS / 4);
}

static void the_same_seed_gives_the_same(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	static struct scene s;

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		make_scene(&s, seed);
		struct share_outcome one = share_simulate(&s.setup, &a), two = share_simulate(&s.setup, &a);
		assert_int_equal(one.wakes, two.wakes);
		assert_int_equal(one.slot_ms, two.slot_ms);
		assert_memory_equal(one.members, two.members, s.setup.model_count * sizeof *one.members);
	}
}

/* Two models that are busy in turn on one slot: whoever asks gets it, at the price of a swap. */
static void a_swap_costs_a_sleep_and_a_wake(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	static struct scene s;

	(void)state;
	s = (struct scene){ .seed = 1, .rule = { .hold = 5 * SECOND } };
	for (size_t i = 0; i < 2; i++) {
		for (size_t k = 0; k < 10; k++)
			s.requests[i][k] =
				(struct request){ (millis)k * 10 * MINUTE + (millis)i * 5 * MINUTE, 0, 100, -1 };
		s.traces[i] = (struct trace){ .requests = s.requests[i], .request_count = 10, .length = 2 * HOUR };
		s.models[i] = (struct share_model){
			.name = "model",
			.truth = { .slots = 4, .inter_token_latency_us = 30000, .objective_wait = 2 * SECOND },
			.gpu_awake_mib = 60,
			.host_asleep_mib = 10,
			.sleep = { SECOND, SECOND },
			.wake = { 3 * SECOND, 3 * SECOND },
			.peak = 1,
			.trace = &s.traces[i]
		};
	}
	s.stock[0] = (struct stock_step){ 0, 1 };
	s.setup = (struct share_setup){ .models = s.models,
					.model_count = 2,
					.size = { 80, 20 },
					.stock = s.stock,
					.stock_count = 1,
					.rule = &s.rule,
					.look = look,
					.user = &s };
	struct share_outcome o = share_simulate(&s.setup, &a);
	assert_int_equal(o.wakes, 20);
	assert_int_equal(o.sleeps, 19);
	assert_int_equal(o.members[0].late + o.members[1].late, 20);
	/* a decision that follows another within 100 ms waits for it */
	assert_in_range(waits_quantile(&o.members[1].waits, NULL, 500), 3900, 4400);
	assert_int_equal(o.slot_ms, 2 * HOUR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(laws_hold_in_random_worlds),
		cmocka_unit_test(the_same_seed_gives_the_same),
		cmocka_unit_test(a_swap_costs_a_sleep_and_a_wake),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
