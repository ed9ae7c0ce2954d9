/* Whoever follows the shadows' choice is not much worse off in seeded random worlds than by the first rule, and better
 * on the whole. */
#include "base/random.h"
#include "controller/simulation/share_world.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

enum { MODELS_MOST = 12, REQUESTS_MOST = 20000, WORLDS = 5 };

struct scene {
	struct share_model models[MODELS_MOST];
	struct trace traces[MODELS_MOST];
	struct request requests[MODELS_MOST][REQUESTS_MOST];
	struct stock_step stock;
	struct share_setup setup;
};

static int64_t below(struct random *r, int64_t n)
{
	return (int64_t)(random_next(r) % (uint64_t)n);
}

static millis draw(struct random *r, millis mean)
{
	return 1 + (millis)(random_uniform(r) * 2 * (double)mean);
}

/* A day of times in which a request comes now and then, and of others in which none does. */
static void make_traffic(struct scene *s, size_t i, struct random *r)
{
	millis busy = (1 + below(r, 20)) * MINUTE, quiet = (1 + below(r, 90)) * MINUTE,
	       gap = (1 + below(r, 60)) * SECOND;
	int32_t tokens = (int32_t)(20 + below(r, 1000));
	millis t = below(r, 2) * quiet;
	size_t count = 0;

	while (t < DAY) {
		millis until = t + draw(r, busy);
		for (t += draw(r, gap); t < until && t < DAY && count < REQUESTS_MOST; t += draw(r, gap))
			s->requests[i][count++] = (struct request){ t, 0, tokens, -1 };
		t += draw(r, quiet);
	}
	s->traces[i] = (struct trace){ .requests = s->requests[i], .request_count = count, .length = DAY };
}

static void make_scene(struct scene *s, uint64_t seed)
{
	struct random r = random_stream(seed, "share-choice");
	size_t models = 4 + (size_t)below(&r, MODELS_MOST - 3);
	millis wait = below(&r, 2) ? 2 * SECOND : 10 * SECOND;

	for (size_t i = 0; i < models; i++) {
		make_traffic(s, i, &r);
		s->models[i] = (struct share_model){
			.name = "model",
			.truth = { .slots = 1 + below(&r, 8), .inter_token_latency_us = 30000, .objective_wait = wait },
			.late_ppm = 10000,
			.gpu_awake_mib = seed % 3 ? 60 : 18,
			.gpu_asleep_mib = 1,
			.host_asleep_mib = 16,
			.sleep = { 500, 700 },
			.wake = { wait * 3 / 4, wait },
			.peak = 1,
			.trace = &s->traces[i]
		};
	}
	s->stock = (struct stock_step){ 0, 1 + below(&r, (int64_t)models) };
	s->setup = (struct share_setup){ .models = s->models,
					 .model_count = models,
					 .size = { 80, 512 },
					 .stock = &s->stock,
					 .stock_count = 1,
					 .mend = { MINUTE, MINUTE },
					 .seed = seed };
}

static double strain_by(struct scene *s, const struct share_rule *rule)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	double strain = 0;

	s->setup.rule = rule;
	struct share_outcome o = share_simulate(&s->setup, &a);
	for (size_t i = 0; i < s->setup.model_count; i++)
		strain += share_strain((double)o.members[i].late, (double)o.members[i].requests, s->models[i].late_ppm);
	return strain;
}

static void who_follows_is_never_much_worse_off(void **state)
{
	static const double WORSE = 1.1, NOISE = 2; /* twice what one pool may have late in a day */
	static struct scene s;
	size_t count;
	double all = 0, all_first = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= WORLDS; seed++) {
		make_scene(&s, seed);
		double first = strain_by(&s, share_rules(&count)), chosen = strain_by(&s, NULL);
		if (chosen > WORSE * first + NOISE)
			fail_msg("seed %llu: %.2f, and %.2f by the first rule", (unsigned long long)seed, chosen,
				 first);
		if (first < 50) { /* more than that is no choice of rules, but too few slots */
			all += chosen;
			all_first += first;
		}
	}
	print_message("%.1f, and %.1f by the first rule\n", all, all_first);
	assert_true(all < .8 * all_first);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(who_follows_is_never_much_worse_off) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
