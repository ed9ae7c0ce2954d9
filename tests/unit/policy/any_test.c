/* A pool of class any: what each node group tells is bought and let go, whole or not at all, and between ticks the
 * same. */
#include "tests/unit/policy/toy.h"

/* Two groups: of 1 and of 8 GPUs. */
static void begin(struct toy *t)
{
	toy_init(t, 2);
	t->pool.class = CLASS_ANY;
	t->pool.scale_down_after = 10 * MINUTE;
	t->groups[0].max_nodes = 6;
	t->groups[1].max_nodes = 2;
	t->groups[1].gpus_per_node = 8;
	t->memory = policy_state_new(&t->fleet);
}

/* One decision on what the groups tell. */
static const struct pool_plan *decide(struct toy *t, millis interval)
{
	const struct snapshot s = {
		.tick = t->tick++, .now = t->now += TICK, .interval = interval, .fleet = &t->fleet, .pools = &t->seen
	};

	arena_clear(&t->arena);
	t->seen.groups = t->inputs;
	t->seen.group_count = 2;
	t->seen.starts = t->starts;
	t->seen.start_count = t->start_count;
	t->seen.events = t->events;
	t->seen.event_count = t->event_count;
	t->seen.scrapes = t->scrapes;
	t->seen.scrape_count = 1;
	t->scrapes[0] = (struct scrape_input){ .at = s.now, .started = ABSENT };
	t->seen.input.scrapes_expected = 1;
	t->seen.input.scrapes_fresh = !t->blind;
	t->plan = policy_decide(&s, t->memory, &t->arena).pools[0];
	t->event_count = 0;
	return &t->plan;
}

static void machines_that_pods_need_are_bought_at_a_tick_and_between(void **state)
{
	(void)state;
	for (millis interval = 0; interval <= TICK; interval += TICK) {
		struct toy t;
		begin(&t);
		t.inputs[0].lacking_nodes = 3;
		t.inputs[1].lacking_nodes = 1;
		const struct pool_plan *p = decide(&t, interval);
		assert_int_equal(p->groups[0].cold, 3);
		assert_int_equal(p->groups[1].cold, 8);
		assert_int_equal(p->groups[1].nodes_desired, 1);
		assert_int_equal(p->decision.wished, 11);
		assert_int_equal(p->decision.decided, 11);
		assert_int_equal(p->decision.held_by, LIMIT_PODS);
		assert_true(p->decision.lead_cold_p50 > 0);
		toy_end(&t);
	}
}

/* The room that was counted on is gone: part of a gang is of no use. */
static void with_less_than_all_of_it_nothing_is_bought(void **state)
{
	struct toy t;

	(void)state;
	begin(&t);
	t.inputs[0].lacking_nodes = 1;
	t.inputs[1].lacking_nodes = 2;
	t.inputs[1].nodes = 1;
	const struct pool_plan *p = decide(&t, TICK);
	assert_int_equal(p->groups[0].cold + p->groups[1].cold, 0);
	assert_int_equal(p->groups[0].nodes_desired, 0);
	assert_int_equal(p->groups[1].nodes_desired, 1);
	assert_int_equal(p->decision.held_by, LIMIT_MAX);
	toy_end(&t);
}

/* A dollar an hour and a half dollar more in the second group: all or nothing, and never beyond the budget. */
static void the_budget_binds(void **state)
{
	static const struct {
		int64_t billed, lacking[2], stranded; /* dollars; machines; GPUs */
		int64_t cold[2];
		enum limit by;
	} cases[] = {
		{ 0, { 2, 2 }, 0, { 2, 16 }, LIMIT_PODS },  { 0, { 2, 2 }, 8, { 2, 16 }, LIMIT_BUDGET },
		{ 1, { 2, 2 }, 0, { 0, 0 }, LIMIT_BUDGET }, { 4, { 1, 0 }, 0, { 1, 0 }, LIMIT_PODS },
		{ 5, { 0, 0 }, 1, { 0, 0 }, LIMIT_BUDGET }, { 9, { 0, 0 }, 0, { 0, 0 }, LIMIT_NONE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (millis interval = 0; interval <= TICK; interval += TICK) {
			struct toy t;
			begin(&t);
			t.groups[0].max_nodes = 20;
			t.pool.budget_per_hour = 5000000;
			t.inputs[0] = (struct group_input){ .billed_gpus_milli = cases[i].billed * 1000,
							    .ready = cases[i].billed,
							    .nodes = cases[i].billed,
							    .lacking_nodes = cases[i].lacking[0] };
			t.inputs[1].lacking_nodes = cases[i].lacking[1];
			t.seen.input.stranded_gpus = cases[i].stranded;
			t.seen.input.ready = cases[i].billed;
			const struct pool_plan *p = decide(&t, interval);
			if (p->groups[0].cold != cases[i].cold[0] || p->groups[1].cold != cases[i].cold[1] ||
			    p->decision.held_by != cases[i].by || p->groups[0].release > 0)
				fail_msg("case %zu: %lld and %lld, held by %s", i, (long long)p->groups[0].cold,
					 (long long)p->groups[1].cold, limit_name((enum limit)p->decision.held_by));
			assert_int_equal(p->decision.budget_per_hour, 5000000);
			toy_end(&t);
		}
}

static void a_refusal_closes_the_group(void **state)
{
	struct toy t;

	(void)state;
	begin(&t);
	t.inputs[0].lacking_nodes = 1;
	t.events[0] = (struct event_input){ .what = EVENT_REFUSED, .value = ERROR_STOCKOUT, .count = 1 };
	t.event_count = 1;
	const struct pool_plan *p = decide(&t, TICK);
	assert_int_equal(p->groups[0].cold, 0);
	assert_true(p->groups[0].blocked_until > t.now);
	assert_int_equal(p->decision.held_by, LIMIT_STOCKOUT);
	toy_end(&t);
}

/* Machines that became no node twice in a row: a pool of another class tries one at a time then, as others have room.
 */
static void a_group_that_came_to_nothing_is_asked_again_for_all(void **state)
{
	struct toy t;

	(void)state;
	begin(&t);
	t.inputs[1].lacking_nodes = 2;
	for (int i = 0; i < 2; i++) {
		t.events[0] = (struct event_input){
			.what = EVENT_REFUSED, .group = 1, .value = ERROR_UNAVAILABLE, .count = 1
		};
		t.event_count = 1;
		const struct pool_plan *p = decide(&t, TICK);
		assert_int_equal(p->groups[1].cold, 0);
		t.now = p->groups[1].blocked_until;
	}
	assert_int_equal(decide(&t, TICK)->groups[1].cold, 16);
	toy_end(&t);
}

static void what_may_not_grow_is_wished_and_told(void **state)
{
	struct toy t;

	(void)state;
	begin(&t);
	t.seen.input.stranded_gpus = 8;
	t.inputs[1].nodes = 2;
	const struct pool_plan *p = decide(&t, TICK);
	assert_int_equal(p->decision.wished, 8);
	assert_int_equal(p->decision.decided, 0);
	assert_int_equal(p->decision.held_by, LIMIT_MAX);
	toy_end(&t);
}

static void idle_machines_go_above_the_least(void **state)
{
	struct toy t;

	(void)state;
	begin(&t);
	t.groups[0].min_nodes = 1;
	t.inputs[0] = (struct group_input){ .ready = 3, .nodes = 3, .idle_nodes = 3 };
	t.inputs[1] = (struct group_input){ .ready = 16, .nodes = 2, .idle_nodes = 1 };
	t.seen.input.ready = 19;
	assert_int_equal(decide(&t, 0)->groups[0].release, 0); /* between ticks nothing goes */
	const struct pool_plan *p = decide(&t, TICK);
	assert_int_equal(p->groups[0].release, 2);
	assert_int_equal(p->groups[1].release, 8);
	assert_int_equal(p->groups[1].nodes_desired, 1);
	t.blind = true; /* the API server's news are old */
	p = decide(&t, TICK);
	assert_int_equal(p->groups[0].release + p->groups[1].release, 0);
	assert_int_equal(p->decision.held_by, LIMIT_STALE);
	t.blind = false;
	t.pool.mode = MODE_OBSERVE;
	p = decide(&t, TICK);
	assert_int_equal(p->groups[0].release + p->groups[1].release, 0);
	assert_int_equal(p->decision.held_by, LIMIT_OBSERVE);
	toy_end(&t);
}

/* One at a time, above the least, and not while a machine is bought. */
static void a_half_empty_machine_whose_pods_have_a_place_is_emptied(void **state)
{
	static const struct {
		int64_t least, lacking, moves;
	} cases[] = { { 0, 0, 1 }, { 2, 0, 0 }, { 0, 1, 0 } };
	struct toy t;

	(void)state;
	begin(&t);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		t.groups[1].min_nodes = cases[i].least;
		t.inputs[0] = (struct group_input){ .lacking_nodes = cases[i].lacking };
		t.inputs[1] = (struct group_input){ .nodes = 2, .movable_nodes = 1, .movable_pods = 3 };
		const struct pool_plan *p = decide(&t, TICK);
		assert_int_equal(p->groups[1].move, cases[i].moves);
		assert_int_equal(p->groups[1].move_pods, cases[i].moves * 3);
		assert_int_equal(p->groups[1].move_saves, cases[i].moves * t.groups[1].price_per_hour);
		assert_int_equal(p->groups[1].release, 0);
		assert_int_equal(p->groups[1].nodes_desired, 2 - cases[i].moves);
	}
	t.inputs[0].lacking_nodes = 0;
	assert_int_equal(decide(&t, 0)->groups[1].move, 0); /* between ticks */
	t.blind = true;
	assert_int_equal(decide(&t, TICK)->groups[1].move, 0);
	toy_end(&t);
}

static void a_machine_that_nobody_waits_for_is_cancelled_after_a_while(void **state)
{
	struct toy t;
	int64_t ticks = 0;

	(void)state;
	begin(&t);
	t.starts[0] = (struct start_input){ .group = 1, .kind = START_COLD, .asked_at = t.now, .count = 8 };
	t.start_count = 1;
	t.inputs[1].nodes = 1;
	t.inputs[1].needless_nodes = 1;
	while (decide(&t, TICK)->groups[1].cancel_cold == 0 && ticks < 100)
		ticks++;
	assert_int_equal(ticks, t.pool.scale_down_after / TICK);
	assert_int_equal(t.plan.groups[1].cancel_cold, 8);
	assert_int_equal(t.plan.groups[1].nodes_desired, 0);
	t.inputs[1].needless_nodes = 0; /* somebody came */
	assert_int_equal(decide(&t, TICK)->groups[1].cancel_cold, 0);
	t.inputs[1].needless_nodes = 1;
	assert_int_equal(decide(&t, TICK)->groups[1].cancel_cold, 0);
	toy_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(machines_that_pods_need_are_bought_at_a_tick_and_between),
		cmocka_unit_test(with_less_than_all_of_it_nothing_is_bought),
		cmocka_unit_test(the_budget_binds),
		cmocka_unit_test(a_refusal_closes_the_group),
		cmocka_unit_test(a_group_that_came_to_nothing_is_asked_again_for_all),
		cmocka_unit_test(what_may_not_grow_is_wished_and_told),
		cmocka_unit_test(idle_machines_go_above_the_least),
		cmocka_unit_test(a_half_empty_machine_whose_pods_have_a_place_is_emptied),
		cmocka_unit_test(a_machine_that_nobody_waits_for_is_cancelled_after_a_while),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
