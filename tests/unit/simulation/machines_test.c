#include "tests/unit/simulation/toy.h"

static void starts_are_billed_from_the_ask(void **state)
{
	struct toy t;

	(void)state;
	toy_setup(&t);
	toy_start(&t);
	t.decisions[0][0].cold = 3;
	toy_pass(&t, 1);
	struct tick_result r = world_result(t.world, 0);
	assert_int_equal(r.starting, 3);
	assert_int_equal(r.gpu_ms, 3 * TOY_TICK);
	assert_int_equal(r.micro_dollars, 3 * 15 * 1000); /* 3.6 $ an hour is 1 m$ a second */
	assert_int_equal(t.snapshot.pools[0].start_count, 1);
	assert_int_equal(t.snapshot.pools[0].starts[0].count, 3);
	toy_pass(&t, 5);
	assert_int_equal(world_result(t.world, 0).ready, 0);
	toy_pass(&t, 1);
	assert_int_equal(world_result(t.world, 0).ready, 3);
	assert_int_equal(toy_events(&t, 0, EVENT_SERVING), 3);
	assert_int_equal(t.snapshot.pools[0].events[0].value, 100 * SECOND);
	toy_end(&t);
}

static void stages_are_told(void **state)
{
	struct toy t;

	(void)state;
	toy_setup(&t);
	t.pools[0].lead_time = (struct quantiles){ 0, 0 };
	for (int i = 0; i < STAGE_COUNT; i++)
		t.pools[0].stage[i] = (struct quantiles){ 10 * SECOND, 10 * SECOND };
	toy_start(&t);
	t.decisions[0][0].cold = 1;
	toy_pass(&t, 1);
	assert_int_equal(toy_events(&t, 0, EVENT_STAGE), 1);
	assert_int_equal(t.snapshot.pools[0].starts[0].stage, STAGE_REGISTER);
	toy_pass(&t, 3);
	assert_int_equal(toy_events(&t, 0, EVENT_SERVING), 1);
	toy_end(&t);
}

static void a_cancelled_start_costs_until_then(void **state)
{
	struct toy t;

	(void)state;
	toy_setup(&t);
	toy_start(&t);
	t.decisions[0][0].cold = 2;
	toy_pass(&t, 1);
	t.decisions[0][0].cancel_cold = 1;
	toy_pass(&t, 1);
	assert_int_equal(world_result(t.world, 0).gpu_ms, TOY_TICK);
	assert_int_equal(t.snapshot.pools[0].groups[0].nodes, 1);
	assert_int_equal(world_totals(t.world, 0).removals, 1);
	toy_end(&t);
}

static void a_group_is_never_larger_than_its_max(void **state)
{
	struct toy t;

	(void)state;
	toy_setup(&t);
	t.groups[0].max_nodes = 4;
	toy_start(&t);
	t.decisions[0][0].cold = 7;
	toy_pass(&t, 1);
	assert_int_equal(t.snapshot.pools[0].groups[0].nodes, 4);
	assert_int_equal(world_totals(t.world, 0).ignored, 3);
	toy_end(&t);
}

static void a_released_replica_finishes_and_is_billed_until_then(void **state)
{
	struct toy t;

	(void)state;
	toy_setup(&t);
	t.pool_worlds[0].initial_replicas = 1;
	toy_requests(&t, 0, 1, 0, 0, 20 * SECOND);
	toy_start(&t);
	toy_pass(&t, 1);
	t.decisions[0][0].release = 1;
	toy_pass(&t, 1);
	assert_int_equal(world_result(t.world, 0).gpu_ms, 5 * SECOND);
	assert_int_equal(world_result(t.world, 0).ready, 0);
	assert_int_equal(t.snapshot.pools[0].groups[0].nodes, 0);
	toy_end(&t);
}

static void a_draining_replica_starts_nothing(void **state)
{
	struct toy t;

	(void)state;
	toy_setup(&t);
	t.pool_worlds[0].initial_replicas = 1;
	toy_requests(&t, 0, 2, 0, 20 * SECOND, 60 * SECOND);
	toy_start(&t);
	toy_pass(&t, 1);
	t.decisions[0][0].release = 1;
	toy_pass(&t, 1);
	struct tick_result r = world_result(t.world, 0);
	assert_int_equal(r.draining, 1);
	assert_int_equal(r.running_draining, 1);
	assert_int_equal(r.running, 0);
	assert_int_equal(r.waiting, 1);
	toy_end(&t);
}

static void stopped_machines_wake_fast_and_cost_little(void **state)
{
	struct toy t;

	(void)state;
	toy_setup(&t);
	t.pool_worlds[0].initial_replicas = 2;
	toy_start(&t);
	t.decisions[0][0].release = t.decisions[0][0].stop = 2;
	toy_pass(&t, 2);
	assert_int_equal(t.snapshot.pools[0].groups[0].standby, 2);
	assert_int_equal(world_result(t.world, 0).gpu_ms, 0);
	assert_int_equal(world_result(t.world, 0).micro_dollars, 2 * 15 * 20); /* 2 % of 1 m$ a second */
	t.decisions[0][0].wake = 1;
	toy_pass(&t, 2);
	assert_int_equal(world_result(t.world, 0).ready, 1);
	assert_int_equal(t.snapshot.pools[0].groups[0].standby, 1);
	t.decisions[0][0].delete_standby = 1;
	toy_pass(&t, 1);
	assert_int_equal(t.snapshot.pools[0].groups[0].standby_nodes, 0);
	toy_end(&t);
}

/* A wake of what never ran takes longer, once. */
static void a_refill_wakes_slowly_the_first_time(void **state)
{
	struct toy t;

	(void)state;
	toy_setup(&t);
	t.group_worlds[0].wake = (struct quantiles){ 10 * SECOND, 10 * SECOND };
	t.group_worlds[0].first_wake = (struct quantiles){ 40 * SECOND, 40 * SECOND };
	toy_start(&t);
	t.decisions[0][0].refill = 1;
	toy_pass(&t, 9);
	assert_int_equal(t.snapshot.pools[0].groups[0].standby_first, 1);
	for (int wake = 0; wake < 2; wake++) {
		t.decisions[0][0].wake = 1;
		toy_pass(&t, 2);
		assert_int_equal(world_result(t.world, 0).ready, wake);
		assert_int_equal(t.snapshot.pools[0].groups[0].standby_first, 0);
		toy_pass(&t, 2);
		assert_int_equal(world_result(t.world, 0).ready, 1);
		t.decisions[0][0].release = t.decisions[0][0].stop = 1;
		toy_pass(&t, 2);
		assert_int_equal(t.snapshot.pools[0].groups[0].standby_nodes, 1);
		assert_int_equal(t.snapshot.pools[0].groups[0].standby_first, 0);
	}
	toy_end(&t);
}

static void a_refill_stops_when_ready_unless_adopted(void **state)
{
	struct toy t;

	(void)state;
	toy_setup(&t);
	toy_start(&t);
	t.decisions[0][0].refill = 2;
	toy_pass(&t, 1);
	t.decisions[0][0].adopt_refill = 1;
	toy_pass(&t, 7);
	struct tick_result r = world_result(t.world, 0);
	assert_int_equal(r.ready, 1);
	assert_int_equal(r.standby, 1);
	toy_end(&t);
}

static void a_refused_wake_is_seen_later_and_stays_stopped(void **state)
{
	struct toy t;

	(void)state;
	toy_setup(&t);
	t.pool_worlds[0].initial_replicas = 1;
	t.group_worlds[0].wake_refused_ppm = 1000000;
	toy_start(&t);
	t.decisions[0][0].release = t.decisions[0][0].stop = 1;
	toy_pass(&t, 1);
	t.decisions[0][0].wake = 1;
	toy_pass(&t, 1);
	assert_int_equal(toy_events(&t, 0, EVENT_REFUSED), 0);
	assert_int_equal(t.snapshot.pools[0].start_count, 1);
	assert_int_equal(t.snapshot.pools[0].groups[0].standby, 0);
	toy_pass(&t, 1);
	assert_int_equal(toy_events(&t, 0, EVENT_REFUSED), 1);
	assert_int_equal(t.snapshot.pools[0].groups[0].standby, 1);
	assert_int_equal(world_result(t.world, 0).gpu_ms, 0);
	toy_end(&t);
}

static void a_stock_out_refuses_and_costs_nothing(void **state)
{
	static const struct stockout_window window = { 0, MINUTE, ERROR_QUOTA };
	struct toy t;

	(void)state;
	toy_setup(&t);
	t.group_worlds[0].stockouts = &window;
	t.group_worlds[0].stockout_count = 1;
	toy_start(&t);
	t.decisions[0][0].cold = 2;
	toy_pass(&t, 1);
	assert_int_equal(toy_events(&t, 0, EVENT_REFUSED), 2);
	assert_int_equal(t.snapshot.pools[0].events[0].value, ERROR_QUOTA);
	assert_int_equal(world_totals(t.world, 0).gpu_ms, 0);
	toy_pass(&t, 3);
	t.decisions[0][0].cold = 1;
	toy_pass(&t, 1);
	assert_int_equal(world_result(t.world, 0).starting, 1);
	toy_end(&t);
}

static void a_stuck_start_is_given_up(void **state)
{
	struct toy t;

	(void)state;
	toy_setup(&t);
	t.group_worlds[0].failed_start_ppm = 1000000;
	toy_start(&t);
	t.decisions[0][0].cold = 1;
	toy_pass(&t, 19);
	assert_int_equal(world_result(t.world, 0).starting, 1);
	toy_pass(&t, 1);
	assert_int_equal(toy_events(&t, 0, EVENT_STUCK), 1);
	assert_int_equal(world_totals(t.world, 0).gpu_ms, 300 * SECOND);
	assert_int_equal(t.snapshot.pools[0].groups[0].nodes, 0);
	toy_end(&t);
}

static void a_lost_machine_returns_its_requests_to_the_head(void **state)
{
	static const struct loss_window window = { 20 * SECOND, 21 * SECOND, 1000000 };
	struct toy t;

	(void)state;
	toy_setup(&t);
	t.pool_worlds[0].initial_replicas = 1;
	t.group_worlds[0].losses = &window;
	t.group_worlds[0].loss_count = 1;
	toy_requests(&t, 0, 4, 0, 0, 60 * SECOND);
	toy_start(&t);
	toy_pass(&t, 2);
	assert_int_equal(toy_events(&t, 0, EVENT_LOST), 1);
	struct world_totals w = world_totals(t.world, 0);
	assert_int_equal(w.returned, 4);
	assert_int_equal(w.lost, 1);
	assert_int_equal(world_result(t.world, 0).waiting, 4);
	assert_int_equal(w.late, 0);
	toy_pass(&t, 1);
	assert_int_equal(world_totals(t.world, 0).waiting_late, 4);
	toy_end(&t);
}

static void several_replicas_share_a_node_and_its_price(void **state)
{
	struct toy t;

	(void)state;
	toy_setup(&t);
	toy_two_pools(&t);
	t.groups[0].gpus_per_node = 8;
	t.groups[0].max_nodes = 1;
	t.pools[0].gpus_per_replica = 2;
	t.pool_worlds[0].initial_replicas = 1;
	toy_start(&t);
	toy_pass(&t, 1);
	assert_int_equal(world_result(t.world, 0).gpu_ms, 8 * TOY_TICK);
	assert_int_equal(t.snapshot.pools[0].groups[0].free_places, 3);
	assert_int_equal(t.snapshot.pools[1].groups[0].free_places, 6);
	t.decisions[1][0].place = 2;
	toy_pass(&t, 1);
	assert_int_equal(world_result(t.world, 0).gpu_ms, 4 * TOY_TICK);
	assert_int_equal(world_result(t.world, 1).gpu_ms, 4 * TOY_TICK);
	toy_pass(&t, 2);
	assert_int_equal(world_result(t.world, 1).ready, 2); /* 30 % of 100 s */
	t.decisions[1][0].release = 2;
	toy_pass(&t, 2);
	assert_int_equal(world_result(t.world, 0).gpu_ms, 8 * TOY_TICK);
	assert_int_equal(t.snapshot.pools[0].groups[0].nodes, 1);
	toy_end(&t);
}

static void a_cancelled_placement_frees_its_gpus(void **state)
{
	struct toy t;

	(void)state;
	toy_setup(&t);
	t.groups[0].gpus_per_node = 4;
	t.pool_worlds[0].initial_replicas = 1;
	toy_start(&t);
	t.decisions[0][0].place = 2;
	toy_pass(&t, 1);
	assert_int_equal(t.snapshot.pools[0].groups[0].free_places, 1);
	t.decisions[0][0].cancel_place = 2;
	toy_pass(&t, 1);
	assert_int_equal(t.snapshot.pools[0].groups[0].free_places, 3);
	assert_int_equal(world_result(t.world, 0).starting, 0);
	assert_int_equal(t.snapshot.pools[0].groups[0].nodes, 1);
	assert_int_equal(world_totals(t.world, 0).ignored, 0);
	toy_end(&t);
}

/* Eight on two nodes of four, then six: the node with two goes, not two halves. */
static void the_emptiest_node_is_released_first(void **state)
{
	struct toy t;

	(void)state;
	toy_setup(&t);
	t.groups[0].gpus_per_node = 4;
	t.pool_worlds[0].initial_replicas = 6;
	toy_start(&t);
	toy_pass(&t, 1);
	assert_int_equal(t.snapshot.pools[0].groups[0].least_on_node, 2);
	assert_int_equal(t.snapshot.pools[0].groups[0].billed_gpus_milli, 8000);
	t.decisions[0][0].release = 2;
	toy_pass(&t, 1);
	assert_int_equal(t.snapshot.pools[0].groups[0].nodes, 1);
	assert_int_equal(t.snapshot.pools[0].groups[0].least_on_node, 4);
	assert_int_equal(t.snapshot.pools[0].groups[0].billed_gpus_milli, 4000);
	toy_end(&t);
}

/* One of chat's two nodes holds fewer of its replicas, but batch's too. */
static void a_shared_node_is_released_last(void **state)
{
	struct toy t;

	(void)state;
	toy_setup(&t);
	toy_two_pools(&t);
	t.groups[0].gpus_per_node = 4;
	t.pool_worlds[0].initial_replicas = 5;
	toy_start(&t);
	t.decisions[1][0].place = 1;
	toy_pass(&t, 4);
	assert_int_equal(world_result(t.world, 1).ready, 1);
	assert_int_equal(t.snapshot.pools[0].groups[0].least_on_node, 4);
	assert_int_equal(t.snapshot.pools[1].groups[0].least_on_node, 0);
	t.decisions[0][0].release = 4;
	toy_pass(&t, 1);
	assert_int_equal(t.snapshot.pools[0].groups[0].nodes, 1);
	assert_int_equal(world_result(t.world, 0).ready, 1);
	assert_int_equal(t.snapshot.pools[0].groups[0].least_on_node, 0);
	toy_end(&t);
}

/* 100 s until the node and its first replica serve, of which the last 30 s are image and load. */
static void a_place_on_a_booting_node_waits_for_the_node(void **state)
{
	struct toy t;

	(void)state;
	toy_setup(&t);
	t.groups[0].gpus_per_node = 4;
	toy_start(&t);
	t.decisions[0][0].cold = 1;
	toy_pass(&t, 1);
	assert_int_equal(t.snapshot.pools[0].groups[0].free_places, 3);
	t.decisions[0][0].place = 1;
	toy_pass(&t, 5);
	assert_int_equal(world_result(t.world, 0).starting, 2);
	toy_pass(&t, 1);
	assert_int_equal(world_result(t.world, 0).ready, 2);
	assert_int_equal(t.snapshot.pools[0].groups[0].nodes, 1);
	toy_end(&t);
}

/* The node never comes: what was placed on it is given up too. */
static void a_place_on_a_stuck_node_is_given_up(void **state)
{
	struct toy t;

	(void)state;
	toy_setup(&t);
	t.groups[0].gpus_per_node = 4;
	t.group_worlds[0].failed_start_ppm = 1000000;
	toy_start(&t);
	t.decisions[0][0].cold = 1;
	toy_pass(&t, 1);
	t.decisions[0][0].place = 1;
	toy_pass(&t, 100);
	assert_int_equal(world_result(t.world, 0).ready + world_result(t.world, 0).starting, 0);
	assert_int_equal(t.snapshot.pools[0].groups[0].nodes, 0);
	toy_end(&t);
}

/* The chance of seed 1's second group must not be that of seed 2's first. */
static void seeds_share_no_chance(void **state)
{
	millis serving[2] = { 0, 0 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct toy t;
		toy_setup(&t);
		t.fleet.group_count = t.pools[0].group_count = t.plans[0].group_count = 2;
		t.pools[0].lead_time.p95 = 400 * SECOND;
		t.setup.seed = 1 + i;
		toy_start(&t);
		t.decisions[0][1 - i].cold = 1;
		for (int tick = 0; tick < 200 && !serving[i]; tick++) {
			toy_pass(&t, 1);
			if (toy_events(&t, 0, EVENT_SERVING))
				serving[i] = t.snapshot.pools[0].events[0].value;
		}
		toy_end(&t);
	}
	assert_true(serving[0] > 0 && serving[1] > 0);
	assert_int_not_equal(serving[0], serving[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starts_are_billed_from_the_ask),
		cmocka_unit_test(stages_are_told),
		cmocka_unit_test(a_cancelled_start_costs_until_then),
		cmocka_unit_test(a_group_is_never_larger_than_its_max),
		cmocka_unit_test(a_released_replica_finishes_and_is_billed_until_then),
		cmocka_unit_test(a_draining_replica_starts_nothing),
		cmocka_unit_test(stopped_machines_wake_fast_and_cost_little),
		cmocka_unit_test(a_refill_wakes_slowly_the_first_time),
		cmocka_unit_test(a_refill_stops_when_ready_unless_adopted),
		cmocka_unit_test(a_refused_wake_is_seen_later_and_stays_stopped),
		cmocka_unit_test(a_stock_out_refuses_and_costs_nothing),
		cmocka_unit_test(a_stuck_start_is_given_up),
		cmocka_unit_test(a_lost_machine_returns_its_requests_to_the_head),
		cmocka_unit_test(several_replicas_share_a_node_and_its_price),
		cmocka_unit_test(a_cancelled_placement_frees_its_gpus),
		cmocka_unit_test(the_emptiest_node_is_released_first),
		cmocka_unit_test(a_shared_node_is_released_last),
		cmocka_unit_test(a_place_on_a_booting_node_waits_for_the_node),
		cmocka_unit_test(a_place_on_a_stuck_node_is_given_up),
		cmocka_unit_test(seeds_share_no_chance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
