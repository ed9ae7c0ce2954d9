#include "tests/unit/simulation/toy.h"

/* chat lends to batch; both on the first group. */
static void two_pools(struct toy *t, int64_t chat, int64_t batch)
{
	toy_setup(t);
	toy_two_pools(t);
	t->pools[0].lend_to = 1u << CLASS_BATCH;
	t->pool_worlds[0].initial_replicas = chat;
	t->pool_worlds[1].initial_replicas = batch;
	t->pool_worlds[0].reclaim = (struct quantiles){ 40 * SECOND, 40 * SECOND };
}

static void a_node_given_back_replaces_the_borrowers_latest_start(void **state)
{
	struct toy t;

	(void)state;
	two_pools(&t, 2, 0);
	toy_start(&t);
	t.decisions[1][0].cold = 1;
	toy_pass(&t, 1);
	t.decisions[0][0].release = t.decisions[0][0].give_back = 1;
	toy_pass(&t, 1);
	assert_int_equal(t.snapshot.pools[0].groups[0].nodes, 2); /* the cold one was cancelled */
	assert_int_equal(t.snapshot.pools[1].start_count, 1);
	assert_int_equal(t.snapshot.pools[1].starts[0].kind, START_PLACE);
	toy_pass(&t, 2);
	assert_int_equal(world_result(t.world, 1).ready, 1);
	assert_int_equal(t.snapshot.pools[0].input.lent, 1);
	assert_int_equal(world_result(t.world, 0).gpu_ms, TOY_TICK);
	assert_int_equal(world_result(t.world, 1).gpu_ms, TOY_TICK);
	toy_end(&t);
}

static void a_node_that_nobody_takes_goes(void **state)
{
	struct toy t;

	(void)state;
	two_pools(&t, 2, 0);
	toy_start(&t);
	t.decisions[0][0].release = t.decisions[0][0].give_back = 1;
	toy_pass(&t, 1);
	assert_int_equal(t.snapshot.pools[1].groups[0].free_places, 1);
	toy_pass(&t, 8);
	assert_int_equal(t.snapshot.pools[0].groups[0].nodes, 1);
	toy_end(&t);
}

static void an_offered_node_is_taken_before_one_is_bought(void **state)
{
	struct toy t;

	(void)state;
	two_pools(&t, 2, 0);
	toy_start(&t);
	t.decisions[0][0].release = t.decisions[0][0].give_back = 1;
	toy_pass(&t, 1);
	t.decisions[1][0].cold = 2;
	toy_pass(&t, 1);
	assert_int_equal(t.snapshot.pools[0].groups[0].nodes, 3);
	toy_pass(&t, 2);
	assert_int_equal(world_result(t.world, 1).ready, 1);
	toy_end(&t);
}

static void a_reclaim_returns_batch_work_to_its_queue(void **state)
{
	struct toy t;

	(void)state;
	two_pools(&t, 1, 2);
	toy_requests(&t, 1, 20, 0, 0, 10 * MINUTE);
	toy_start(&t);
	toy_pass(&t, 2);
	t.decisions[0][0].reclaim = 1;
	toy_pass(&t, 1);
	struct tick_result batch = world_result(t.world, 1);
	assert_int_equal(batch.ready, 1);
	assert_int_equal(batch.waiting, 10);
	assert_int_equal(toy_events(&t, 1, EVENT_LOST), 1);
	assert_int_equal(world_totals(t.world, 0).batch_lost_ms, 30 * SECOND);
	assert_int_equal(t.snapshot.pools[0].starts[0].kind, START_RECLAIM);
	assert_int_equal(t.snapshot.pools[0].groups[0].nodes, 3);
	toy_pass(&t, 2);
	assert_int_equal(world_result(t.world, 0).ready, 2);
	assert_int_equal(t.snapshot.pools[0].input.lent, 1);
	toy_end(&t);
}

static void a_cancelled_reclaim_stays_lent(void **state)
{
	struct toy t;

	(void)state;
	two_pools(&t, 1, 1);
	toy_start(&t);
	t.decisions[0][0].reclaim = 1;
	toy_pass(&t, 1);
	t.decisions[0][0].cancel_reclaim = 1;
	toy_pass(&t, 3);
	assert_int_equal(world_result(t.world, 0).ready, 1);
	assert_int_equal(world_result(t.world, 1).ready, 1);
	assert_int_equal(t.snapshot.pools[0].groups[0].nodes, 2);
	toy_end(&t);
}

static void nothing_is_reclaimed_from_a_pool_that_did_not_borrow(void **state)
{
	struct toy t;

	(void)state;
	two_pools(&t, 1, 1);
	t.pools[0].lend_to = 0;
	toy_start(&t);
	t.decisions[0][0].reclaim = 1;
	toy_pass(&t, 1);
	assert_int_equal(world_totals(t.world, 0).ignored, 1);
	assert_int_equal(world_result(t.world, 1).ready, 1);
	toy_end(&t);
}

static void foreign_nodes_cost_from_the_reclaim_until_given_back(void **state)
{
	struct toy t;

	(void)state;
	toy_setup(&t);
	t.pool_worlds[0].lendable = (struct lendable){ 3, 0, { 40 * SECOND, 40 * SECOND }, MINUTE };
	toy_start(&t);
	toy_pass(&t, 1);
	assert_int_equal(t.snapshot.pools[0].input.lent, 3);
	assert_int_equal(world_result(t.world, 0).gpu_ms, 0);
	t.decisions[0][0].reclaim = 2;
	toy_pass(&t, 1);
	assert_int_equal(t.snapshot.pools[0].input.lent, 1);
	assert_int_equal(world_result(t.world, 0).gpu_ms, 2 * TOY_TICK);
	assert_int_equal(world_totals(t.world, 0).batch_lost_ms, 2 * MINUTE);
	assert_int_equal(t.snapshot.pools[0].groups[0].nodes, 0); /* they are not ours */
	toy_pass(&t, 2);
	assert_int_equal(world_result(t.world, 0).ready, 2);
	t.decisions[0][0].release = t.decisions[0][0].give_back = 1;
	toy_pass(&t, 1);
	assert_int_equal(t.snapshot.pools[0].input.lent, 2);
	t.decisions[0][0].release = 1; /* not ours to delete */
	toy_pass(&t, 1);
	assert_int_equal(t.snapshot.pools[0].input.lent, 3);
	assert_int_equal(world_result(t.world, 0).gpu_ms, 0);
	toy_end(&t);
}

/* Without a world file: at most yieldWithin, then the load. */
static void a_borrower_yields_within_its_time(void **state)
{
	millis longest = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct toy t;
		two_pools(&t, 1, 1);
		t.setup.seed = seed;
		t.pool_worlds[0].reclaim = (struct quantiles){ 0, 0 };
		t.pools[0].yield_within = 5 * MINUTE;
		t.pools[0].stage[STAGE_LOAD] = (struct quantiles){ MINUTE, MINUTE };
		toy_start(&t);
		t.decisions[0][0].reclaim = 1;
		toy_pass(&t, 1);
		while (!toy_events(&t, 0, EVENT_SERVING))
			toy_pass(&t, 1);
		millis took = t.snapshot.pools[0].events[0].value;
		assert_in_range(took, MINUTE, 6 * MINUTE);
		longest = took > longest ? took : longest;
		toy_end(&t);
	}
	assert_true(longest > 3 * MINUTE);
}

/* Two borrowed GPUs on two nodes whose other GPUs the lender holds: no room for a replica of two. */
static void lent_is_what_can_be_taken_back(void **state)
{
	struct toy t;

	(void)state;
	two_pools(&t, 2, 0);
	t.groups[0].gpus_per_node = 3;
	t.groups[0].max_nodes = 2;
	t.pools[0].gpus_per_replica = 2;
	toy_start(&t);
	toy_pass(&t, 1);
	t.decisions[1][0].place = 2;
	toy_pass(&t, 4);
	assert_int_equal(world_result(t.world, 1).ready, 2);
	assert_int_equal(t.snapshot.pools[0].input.lent, 0);
	t.decisions[0][0].reclaim = 1;
	toy_pass(&t, 1);
	assert_int_equal(world_totals(t.world, 0).ignored, 1);
	toy_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_given_back_replaces_the_borrowers_latest_start),
		cmocka_unit_test(a_node_that_nobody_takes_goes),
		cmocka_unit_test(an_offered_node_is_taken_before_one_is_bought),
		cmocka_unit_test(a_reclaim_returns_batch_work_to_its_queue),
		cmocka_unit_test(a_cancelled_reclaim_stays_lent),
		cmocka_unit_test(nothing_is_reclaimed_from_a_pool_that_did_not_borrow),
		cmocka_unit_test(a_borrower_yields_within_its_time),
		cmocka_unit_test(lent_is_what_can_be_taken_back),
		cmocka_unit_test(foreign_nodes_cost_from_the_reclaim_until_given_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
