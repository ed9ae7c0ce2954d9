#include "tests/unit/simulation/toy.h"

#include "base/random.h"

#include <stdio.h>

enum { WORLDS = 60, TICKS = 200 };

static int64_t below(struct random *r, int64_t most)
{
	return (int64_t)(random_uniform(r) * (double)most);
}

static void random_binned(struct toy *t, size_t pool, struct random *r)
{
	struct trace *trace = &t->traces[pool];
	size_t count = 400;
	int64_t rate = 1 + below(r, 60);

	trace->is_binned = true;
	trace->bin_width = 10 * SECOND;
	trace->bins = arena_array(&t->arena, struct bin, count);
	trace->bin_count = count;
	for (size_t i = 0; i < count; i++) {
		int64_t n = below(r, 4) ? below(r, 10 * rate) : 0;
		trace->bins[i] = (struct bin){ (millis)i * 10 * SECOND, n, n * below(r, 100), n * below(r, 900) };
	}
	trace->length = (millis)count * 10 * SECOND;
}

static void random_requests(struct toy *t, size_t pool, struct random *r)
{
	struct trace *trace = &t->traces[pool];
	size_t count = (size_t)(500 + below(r, 4000));
	millis at = 0;

	trace->requests = arena_array(&t->arena, struct request, count);
	trace->request_count = count;
	for (size_t i = 0; i < count; i++) {
		at += below(r, 20) ? below(r, 1500) : 0;
		trace->requests[i] = (struct request){ at, (int32_t)below(r, 3000), (int32_t)below(r, 2000), -1 };
	}
	trace->length = at + SECOND;
}

/* Everything that can go wrong does, somewhere. */
static void random_world(struct toy *t, struct random *r)
{
	static const struct stockout_window stockout = { 300 * SECOND, 900 * SECOND, ERROR_STOCKOUT };
	static const struct loss_window loss = { 600 * SECOND, 700 * SECOND, 400000 };

	toy_setup(t);
	toy_two_pools(t);
	t->fleet.group_count = 2;
	t->setup.seed = random_next(r);
	for (size_t g = 0; g < TOY_GROUPS; g++) {
		t->groups[g].gpus_per_node = 1 + below(r, 4);
		t->groups[g].max_nodes = 5 + below(r, 30);
		t->groups[g].standby_max_nodes = below(r, 10);
		t->group_worlds[g] = (struct group_world){ &stockout,
							   (size_t)below(r, 2),
							   &loss,
							   (size_t)below(r, 2),
							   below(r, 300000),
							   below(r, 300000),
							   below(r, 300000),
							   3000,
							   below(r, 400000),
							   below(r, 2) == 1,
							   { 0, 0 },
							   { 0, 0 } };
	}
	for (size_t p = 0; p < TOY_POOLS; p++) {
		t->pools[p].group_count = t->plans[p].group_count = 2;
		t->pools[p].lead_time = (struct quantiles){ 60 * SECOND, 200 * SECOND };
		t->pools[p].gpus_per_replica = 1 + below(r, 2);
		t->pools[p].lend_to = p ? 0 : 1u << CLASS_BATCH;
		t->pool_worlds[p].initial_replicas = below(r, 6);
		t->pool_worlds[p].patience = below(r, 2) ? below(r, 60) * SECOND : 0;
		t->pool_worlds[p].deadline = p && below(r, 2) ? 10 * MINUTE : 0;
		t->pool_worlds[p].lendable.replicas = p ? 0 : below(r, 8);
		if (below(r, 2))
			random_binned(t, p, r);
		else
			random_requests(t, p, r);
	}
}

static void random_plan(struct toy *t, struct random *r)
{
	for (size_t p = 0; p < TOY_POOLS; p++)
		for (size_t g = 0; g < TOY_GROUPS; g++) {
			struct group_decision *d = &t->decisions[p][g];
			int64_t *actions[] = { &d->cold,	   &d->wake,	    &d->refill,
					       &d->reclaim,	   &d->place,	    &d->adopt_refill,
					       &d->cancel_cold,	   &d->cancel_wake, &d->cancel_refill,
					       &d->cancel_reclaim, &d->release,	    &d->delete_standby };
			*actions[below(r, sizeof actions / sizeof *actions)] = below(r, 4);
			d->cold += below(r, 3);
			d->stop = below(r, d->release + 1);
			d->give_back = below(r, d->release - d->stop + 1);
		}
}

static void check_pool(const struct toy *t, size_t pool)
{
	struct world_totals w = world_totals(t->world, pool);
	struct tick_result r = world_result(t->world, pool);
	const struct pool_snapshot *s = &t->snapshot.pools[pool];
	int64_t most = 0;

	assert_int_equal(w.arrived + w.returned, w.started + r.waiting + w.gave_up);
	assert_true(r.running <= r.ready * t->pools[pool].max_sequences);
	assert_true(r.running >= 0 && r.running_draining >= 0 && r.waiting >= 0);
	assert_true(r.draining || !r.running_draining);
	assert_true(r.ready == 0 || r.waiting == 0 || t->traces[pool].is_binned ||
		    r.running == r.ready * t->pools[pool].max_sequences);
	assert_true(w.late + w.waiting_late <= w.arrived);
	assert_true(r.gpu_ms >= 0 && r.micro_dollars >= 0);
	for (size_t g = 0; g < TOY_GROUPS; g++) {
		const struct group_input *in = &s->groups[g];
		most += t->groups[g].max_nodes * t->groups[g].gpus_per_node;
		assert_true(in->nodes <= t->groups[g].max_nodes && in->nodes >= 0);
		assert_true(in->standby_nodes <= t->groups[g].standby_max_nodes && in->standby_nodes >= 0);
		assert_true(in->free_places >= 0 && in->lent >= 0);
	}
	assert_true(r.gpu_ms <= (most + 8 * 4) * TOY_TICK); /* 8 lent nodes of at most 4 GPUs */
}

/* All GPUs of all nodes that run or start are billed to somebody: those of the group, and of reclaimed lent ones. */
static void check_bill(const struct toy *t)
{
	for (size_t g = 0; g < TOY_GROUPS; g++) {
		int64_t billed = 0, size = t->groups[g].gpus_per_node * 1000, lent = 0;
		for (size_t p = 0; p < TOY_POOLS; p++) {
			billed += t->snapshot.pools[p].groups[g].billed_gpus_milli;
			if (t->pool_worlds[p].lendable.group == g)
				lent += t->pool_worlds[p].lendable.replicas;
		}
		billed -= t->snapshot.pools[0].groups[g].nodes * size;
		assert_true(billed >= 0 && billed <= lent * size && billed % size == 0);
	}
}

static void random_worlds_keep_the_laws(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < WORLDS; seed++) {
		struct random r = random_stream(seed, "world-laws");
		struct toy t;

		print_message("seed %llu\n", (unsigned long long)seed);
		random_world(&t, &r);
		toy_start(&t);
		for (int tick = 0; tick < TICKS; tick++) {
			random_plan(&t, &r);
			toy_pass(&t, 1);
			for (size_t p = 0; p < TOY_POOLS; p++)
				check_pool(&t, p);
			check_bill(&t);
		}
		toy_end(&t);
	}
}

/* With whole machines the bill is the sum of what stands at the border of each tick when nothing is asked. */
static void a_still_world_is_billed_for_what_stands(void **state)
{
	struct toy t;

	(void)state;
	toy_setup(&t);
	t.groups[0].gpus_per_node = 4;
	t.pool_worlds[0].initial_replicas = 5;
	toy_start(&t);
	toy_pass(&t, 100);
	assert_int_equal(world_totals(t.world, 0).gpu_ms, 8 * 100 * TOY_TICK);
	assert_int_equal(world_totals(t.world, 0).starts, 0);
	toy_end(&t);
}

/* Machines that were asked for are there, or went, were lost, or were refused. */
static void machines_are_conserved(void **state)
{
	(void)state;
	for (uint64_t seed = 100; seed < 140; seed++) {
		struct random r = random_stream(seed, "machines");
		struct toy t;

		random_world(&t, &r);
		for (size_t g = 0; g < TOY_GROUPS; g++)
			t.groups[g].gpus_per_node = 1;
		for (size_t p = 0; p < TOY_POOLS; p++) {
			t.pools[p].gpus_per_replica = 1;
			t.pools[p].lend_to = 0;
		}
		toy_start(&t);
		int64_t initial = t.pool_worlds[0].initial_replicas;
		for (int tick = 0; tick < TICKS; tick++) {
			random_plan(&t, &r);
			for (size_t i = 0; i < TOY_POOLS * TOY_GROUPS;
			     i++) /* given back, one stands empty for a while */
				t.decisions[i / TOY_GROUPS][i % TOY_GROUPS].give_back = 0;
			toy_pass(&t, 1);
			struct world_totals w = world_totals(t.world, 0);
			struct tick_result now = world_result(t.world, 0);
			int64_t refusing = 0;
			for (size_t i = 0; i < t.snapshot.pools[0].start_count; i++)
				refusing += t.snapshot.pools[0].starts[i].count;
			refusing -= now.starting;
			assert_int_equal(initial + w.starts - w.removals - w.lost - w.refused,
					 now.ready + now.starting + now.draining + refusing);
		}
		toy_end(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_worlds_keep_the_laws),
		cmocka_unit_test(a_still_world_is_billed_for_what_stands),
		cmocka_unit_test(machines_are_conserved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
