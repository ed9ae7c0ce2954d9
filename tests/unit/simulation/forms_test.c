/* The same traffic as requests and as bins: two queues, one result. */
#include "tests/unit/simulation/toy.h"

#include "base/random.h"

#include <stdlib.h>

enum { SECONDS = 6 * 3600 };

/* A margin of a tenth over what runs and waits, released when not needed for five minutes. */
struct margin {
	int64_t wanted[20];
};

static void *margin_open(const struct fleet_spec *fleet, const char *setting, struct error *e)
{
	(void)fleet;
	(void)setting;
	(void)e;
	return calloc(1, sizeof(struct margin));
}

static struct plan margin_decide(void *state, const struct snapshot *s, struct arena *a)
{
	struct margin *m = state;
	struct plan p = { arena_new(a, struct pool_plan), 1 };
	const struct pool_snapshot *pool = &s->pools[0];
	const struct scrape_input *last = &pool->scrapes[pool->scrape_count - 1];
	int64_t most = 0, starting = 0;

	p.pools->groups = arena_new(a, struct group_decision);
	p.pools->group_count = 1;
	m->wanted[s->tick % 20] = (last->running + last->waiting) * 11 / (s->fleet->pools[0].max_sequences * 10) + 1;
	for (int i = 0; i < 20; i++)
		most = m->wanted[i] > most ? m->wanted[i] : most;
	for (size_t i = 0; i < pool->start_count; i++)
		starting += pool->starts[i].count;
	int64_t have = pool->input.ready + starting, wanted = m->wanted[s->tick % 20];
	if (wanted > have)
		p.pools->groups->cold = wanted - have;
	else if (most < have && starting)
		p.pools->groups->cancel_cold = starting;
	else if (most < have)
		p.pools->groups->release = have - most;
	return p;
}

static const struct policy_ops margin = { "margin", "", margin_open, free, margin_decide };

/* A rate that rises and falls with bursts, Poisson arrivals, lengths with deviation equal to the mean. */
static void make_traffic(struct toy *t, struct random *r)
{
	size_t room = 2000000, count = 0;
	struct request *requests = arena_array(&t->arena, struct request, room);
	double at = 0;

	while (at < SECONDS * 1000.0) {
		int64_t minute = (int64_t)(at / 60000);
		double rate = 20 + (double)llabs(minute % 120 - 60) / 2 + (minute % 47 < 4 ? 25 : 0);
		at += random_lognormal(r, 1000 / rate * 0.62, 1000 / rate * 3.2);
		int32_t output = (int32_t)random_lognormal(r, 566, 2230);
		requests[count++] = (struct request){ (millis)at, 0, output, -1 };
	}
	t->traces[0].requests = requests;
	t->traces[0].request_count = count - 1;
	t->traces[0].length = SECONDS * SECOND;
}

static struct trace to_bins(struct toy *t)
{
	size_t count = SECONDS / 10;
	struct trace b = { .is_binned = true,
			   .bins = arena_array(&t->arena, struct bin, count),
			   .bin_count = count,
			   .bin_width = 10 * SECOND,
			   .length = SECONDS * SECOND };

	for (size_t i = 0; i < count; i++)
		b.bins[i].at = (millis)i * 10 * SECOND;
	for (size_t i = 0; i < t->traces[0].request_count; i++) {
		struct bin *bin = &b.bins[t->traces[0].requests[i].arrival / (10 * SECOND)];
		bin->requests++;
		bin->output_tokens += t->traces[0].requests[i].output_tokens;
	}
	return b;
}

static struct score run_form(struct toy *t, const struct trace *trace)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct run_result result;
	struct error e;

	t->given[0] = trace;
	assert_true(simulate(&(struct simulation){ .world = t->setup, .policy = &margin, .warm_up = HOUR }, &a, &result,
			     &e));
	return result.pools[0].scored;
}

static void both_forms_cost_and_wait_alike(void **state)
{
	struct random r = random_stream(7, "forms");
	struct toy t;

	(void)state;
	toy_setup(&t);
	t.groups[0].max_nodes = 500;
	t.pool_worlds[0].initial_replicas = -1;
	t.pools[0].lead_time = (struct quantiles){ 100 * SECOND, 170 * SECOND };
	make_traffic(&t, &r);
	struct trace bins = to_bins(&t);
	struct score exact = run_form(&t, &t.traces[0]), counted = run_form(&t, &bins);
	print_message("requests: %.1f h, %.3f %% late; bins: %.1f h, %.3f %% late\n", score_gpu_hours(&exact),
		      100 * score_late_share(&exact), score_gpu_hours(&counted), 100 * score_late_share(&counted));
	assert_int_equal(exact.requests / 1000, counted.requests / 1000);
	assert_true(score_late_share(&exact) > 0.005);
	double hours = score_gpu_hours(&counted) / score_gpu_hours(&exact);
	double late = score_late_share(&counted) / score_late_share(&exact);
	assert_true(hours > 0.98 && hours < 1.02);
	assert_true(late > 1 / 1.3 && late < 1.3);
	arena_release(&t.arena);
}

static void equal_seeds_give_equal_runs(void **state)
{
	struct random r = random_stream(8, "forms");
	struct toy t;

	(void)state;
	toy_setup(&t);
	t.pools[0].lead_time = (struct quantiles){ 100 * SECOND, 170 * SECOND };
	make_traffic(&t, &r);
	struct score a = run_form(&t, &t.traces[0]), b = run_form(&t, &t.traces[0]);
	assert_memory_equal(&a, &b, sizeof a);
	t.setup.seed++;
	b = run_form(&t, &t.traces[0]);
	assert_memory_not_equal(&a, &b, sizeof a);
	arena_release(&t.arena);
}

static bool stop_at_ten(void *user, const struct tick_view *v, struct error *e)
{
	(void)e;
	*(volatile int *)user = v->snapshot->tick >= 9;
	return true;
}

static void a_stopped_run_keeps_what_was_done(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	volatile int stop = 0;
	const struct observer observer = { stop_at_ten, (void *)(uintptr_t)&stop };
	struct run_result result;
	struct toy t;
	struct error e;

	(void)state;
	toy_setup(&t);
	t.pool_worlds[0].initial_replicas = 1;
	assert_true(simulate(&(struct simulation){ .world = t.setup,
						   .policy = &margin,
						   .warm_up = MINUTE,
						   .observers = &observer,
						   .observer_count = 1,
						   .stop = &stop },
			     &a, &result, &e));
	assert_true(result.stopped);
	assert_int_equal(result.simulated, 10 * TOY_TICK);
	assert_int_equal(result.pools[0].whole.gpu_ms, 10 * TOY_TICK);
	assert_int_equal(result.pools[0].scored.gpu_ms, 6 * TOY_TICK);
	arena_release(&t.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_forms_cost_and_wait_alike),
		cmocka_unit_test(equal_seeds_give_equal_runs),
		cmocka_unit_test(a_stopped_run_keeps_what_was_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
