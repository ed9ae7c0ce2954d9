/* Several pools on shared node groups: one tick each, from hand-made snapshots. */
#include "controller/policy/decide.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

enum { POOLS = 2 };

struct world {
	struct group_spec group;
	size_t index;
	struct pool_spec pools[POOLS];
	struct fleet_spec fleet;
	struct policy_state *memory;
	struct scrape_input scrapes[POOLS][3];
	struct group_input groups[POOLS];
	struct deadline_input deadline;
	struct pool_snapshot seen[POOLS];
	struct arena arena;
	millis now;
};

static void init(struct world *w)
{
	*w = (struct world){ .now = 1767571200000 };
	w->group = (struct group_spec){ .name = "shared",
					.provider = "simulated",
					.settings = "{}",
					.zone = "",
					.instance_type = "",
					.gpus_per_node = 1,
					.price_per_hour = 1000000,
					.max_nodes = 40 };
	for (int i = 0; i < POOLS; i++)
		w->pools[i] = (struct pool_spec){
			.name = i ? "nightly" : "chat",
			.namespace = "llm",
			.class = i ? CLASS_BATCH : CLASS_INTERACTIVE,
			.objective_wait = i ? HOUR : 2000,
			.objective_late_ppm = 10000,
			.gpus_per_replica = 1,
			.max_sequences = 100,
			.prefill_tokens_per_second = 25000,
			.inter_token_latency_us = 30000,
			.groups = &w->index,
			.group_count = 1,
			.lead_time = { 300000, 400000 },
			.budget_name = "",
			.yield_within = 30000,
		};
	w->fleet = (struct fleet_spec){ &w->group, 1, w->pools, POOLS, NULL };
}

static void see(struct world *w, int pool, int64_t ready, int64_t running, int64_t waiting)
{
	for (int i = 0; i < 3; i++)
		w->scrapes[pool][i] = (struct scrape_input){ .at = w->now,
							     .ready = ready,
							     .running = running,
							     .waiting = waiting,
							     .started = running / 2,
							     .completed = running / 2 };
	w->groups[pool].ready = ready;
	w->groups[pool].billed_gpus_milli = ready * 1000;
	w->groups[pool].least_on_node = ready > 0;
	w->seen[pool] = (struct pool_snapshot){
		.input = { .scrapes_expected = ready * 3,
			   .scrapes_fresh = ready * 3,
			   .ready = ready,
			   .inter_token_latency_us = ABSENT,
			   .kv_cache_permille = ABSENT },
		.scrapes = w->scrapes[pool],
		.scrape_count = 3,
		.groups = &w->groups[pool],
		.group_count = 1,
	};
}

static struct plan decide(struct world *w, int64_t nodes)
{
	for (int i = 0; i < POOLS; i++)
		w->groups[i].nodes = nodes;
	w->now += 15000;
	struct snapshot s = { 0, w->now, 15000, &w->fleet, w->seen };
	arena_clear(&w->arena);
	return policy_decide(&s, w->memory, &w->arena);
}

static void end(struct world *w)
{
	policy_state_free(w->memory);
	arena_release(&w->arena);
}

/* Whatever is seen: a decision between ticks teaches nothing, releases nothing, and asks for no more than pods lack. */
static void between_ticks_pods_get_their_places_and_nothing_else(void **state)
{
	struct world w;

	(void)state;
	init(&w);
	w.group.max_nodes = 100;
	w.memory = policy_state_new(&w.fleet);
	for (int64_t i = 0; i < 40; i++) {
		CLEANUP(buf_release) struct buf before = { 0 };
		CLEANUP(buf_release) struct buf after = { 0 };
		int64_t ready = i % 7, pods = i % 11;
		see(&w, 0, ready, 200, 50);
		see(&w, 1, 1, 4, 0);
		w.seen[0].input.wanted_pods = pods;
		policy_state_encode(w.memory, &before);
		struct snapshot s = { i, w.now + 5000, 0, &w.fleet, w.seen };
		arena_clear(&w.arena);
		struct plan p = policy_decide(&s, w.memory, &w.arena);
		const struct group_decision *g = &p.pools[0].groups[0];
		assert_int_equal(g->cold + g->wake + g->place, pods > ready && pods - ready <= 8 ? pods - ready
							       : pods > ready			 ? 8
												 : 0);
		assert_int_equal(g->release + g->cancel_cold + g->refill + p.pools[1].groups[0].cold, 0);
		assert_int_equal(p.pools[0].decision.arrived, 0);
		policy_state_encode(w.memory, &after);
		assert_int_equal(before.len, after.len);
		assert_memory_equal(before.text, after.text, after.len);
		decide(&w, 8); /* and a tick learns, as ever */
	}
	end(&w);
}

/* Four that come one by one want one machine of four, not two; the fifth, another. */
static void what_finds_room_on_a_machine_on_its_way_buys_none(void **state)
{
	struct world w;

	(void)state;
	init(&w);
	w.group.max_nodes = 100;
	w.group.gpus_per_node = 4;
	w.memory = policy_state_new(&w.fleet);
	see(&w, 0, 0, 0, 0);
	for (int64_t pods = 1; pods <= 5; pods++) {
		see(&w, 1, 0, 4, pods > 1);
		struct start_input start = { .kind = START_COLD, .asked_at = w.now, .count = pods - 1 };
		w.seen[0].input.wanted_pods = pods;
		w.seen[0].starts = &start;
		w.seen[0].start_count = pods > 1;
		w.groups[0].free_places = pods > 1 ? 5 - pods : 0;
		struct snapshot s = { 0, w.now + 5000 * pods, 0, &w.fleet, w.seen };
		struct plan p = policy_decide(&s, w.memory, &w.arena);
		assert_int_equal(p.pools[0].groups[0].cold, pods == 1 || pods == 5);
		assert_int_equal(p.pools[0].groups[0].place, pods > 1 && pods < 5);
		assert_int_equal(p.pools[0].decision.decided, pods);
	}
	end(&w);
}

/* Whatever is refused or could be woken: a free GPU costs nothing, and nobody can refuse it. */
static void free_places_go_before_machines(void **state)
{
	static const struct {
		int64_t standby;
		bool is_blocked;
	} cases[] = { { 0, false }, { 1, false }, { 0, true }, { 1, true } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct event_input none = { .what = EVENT_NO_STOCK, .value = 5 * MINUTE, .count = 1 };
		struct world w;
		init(&w);
		w.group.gpus_per_node = 4;
		w.group.standby_max_nodes = 1;
		w.group.standby_price_ppm = 20000;
		w.group.standby_lead_time = (struct quantiles){ 90000, 120000 };
		w.memory = policy_state_new(&w.fleet);
		see(&w, 0, 0, 0, 0);
		see(&w, 1, 0, 0, 0);
		w.seen[0].input.wanted_pods = 1;
		w.groups[0].free_places = 1;
		w.groups[0].standby = cases[i].standby;
		w.seen[0].events = &none;
		w.seen[0].event_count = cases[i].is_blocked;
		struct snapshot s = { 0, w.now, 0, &w.fleet, w.seen };
		struct plan p = policy_decide(&s, w.memory, &w.arena);
		assert_int_equal(p.pools[0].groups[0].place, 1);
		assert_int_equal(p.pools[0].groups[0].cold + p.pools[0].groups[0].wake, 0);
		end(&w);
	}
}

/* A machine on its way to standby is taken only for what finds no free GPU, and what it has room for beside finds one.
 */
static void free_places_go_before_refills(void **state)
{
	(void)state;
	for (int64_t free_places = 0; free_places < 3; free_places++) {
		struct start_input start = { .kind = START_REFILL, .count = 4 };
		struct world w;
		init(&w);
		w.group.gpus_per_node = 4;
		w.group.standby_max_nodes = 1;
		w.group.standby_price_ppm = 20000;
		w.group.standby_lead_time = (struct quantiles){ 90000, 120000 };
		w.memory = policy_state_new(&w.fleet);
		see(&w, 0, 3, 300, 0);
		see(&w, 1, 0, 0, 0);
		start.asked_at = w.now;
		w.seen[0].starts = &start;
		w.seen[0].start_count = 1;
		w.groups[0].free_places = free_places;
		struct plan p = decide(&w, 1);
		const struct group_decision *g = &p.pools[0].groups[0];
		assert_true(p.pools[0].decision.decided > 3);
		assert_int_equal(g->place + g->adopt_refill, p.pools[0].decision.decided - 3);
		assert_int_equal(g->place, p.pools[0].decision.decided - 3 < free_places
						   ? p.pools[0].decision.decided - 3
						   : free_places);
		assert_int_equal(g->cold, 0);
		end(&w);
	}
}

static void pools_never_share_the_same_last_node(void **state)
{
	struct world w;

	(void)state;
	init(&w);
	w.group.max_nodes = 7;
	w.memory = policy_state_new(&w.fleet);
	see(&w, 0, 3, 300, 0);
	see(&w, 1, 3, 300, 0);
	struct plan p = decide(&w, 6);
	assert_int_equal(p.pools[0].groups[0].cold, 1); /* interactive work is placed first */
	assert_int_equal(p.pools[1].groups[0].cold, 0);
	assert_int_equal(p.pools[1].decision.held_by, LIMIT_MAX);
	end(&w);
}

static void a_shared_budget_goes_to_the_pool_that_shrinks_last(void **state)
{
	struct world w;

	(void)state;
	for (int first = 0; first < POOLS; first++) {
		init(&w);
		for (int i = 0; i < POOLS; i++) {
			w.pools[i].budget_per_hour = 7000000;
			w.pools[i].budget_name = "team";
			w.pools[i].class = CLASS_INTERACTIVE;
			w.pools[i].objective_wait = 2000;
			w.pools[i].shrink_priority = i == first ? 1 : 10;
		}
		w.memory = policy_state_new(&w.fleet);
		see(&w, 0, 3, 300, 0);
		see(&w, 1, 3, 300, 0);
		struct plan p = decide(&w, 6);
		int64_t favoured = p.pools[first].groups[0].cold, other = p.pools[1 - first].groups[0].cold;
		assert_int_equal(favoured, 1);
		assert_int_equal(other, 0);
		assert_int_equal(p.pools[1 - first].decision.held_by, LIMIT_BUDGET);
		end(&w);
	}
}

static void pools_of_equal_priority_do_not_spend_the_same_dollar(void **state)
{
	struct world w;

	(void)state;
	init(&w);
	for (int i = 0; i < POOLS; i++) {
		w.pools[i].budget_per_hour = 7000000;
		w.pools[i].budget_name = "team";
	}
	w.memory = policy_state_new(&w.fleet);
	see(&w, 0, 3, 300, 0);
	see(&w, 1, 3, 300, 0);
	struct plan p = decide(&w, 6);
	assert_int_equal(p.pools[0].groups[0].cold + p.pools[1].groups[0].cold, 1);
	end(&w);
}

static void an_overdrawn_budget_is_given_back_by_the_pool_that_shrinks_first(void **state)
{
	struct world w;

	(void)state;
	init(&w);
	for (int i = 0; i < POOLS; i++) {
		w.pools[i].budget_per_hour = 4000000;
		w.pools[i].budget_name = "team";
		w.pools[i].shrink_priority = i;
	}
	w.memory = policy_state_new(&w.fleet);
	struct plan p = { 0 };
	for (int i = 0; i < 60; i++) { /* past the first lead time */
		see(&w, 0, 3, 300, 0);
		see(&w, 1, 3, 300, 0);
		p = decide(&w, 6);
	}
	assert_int_equal(p.pools[0].groups[0].release, 0);
	assert_in_range(p.pools[1].groups[0].release, 2, 3);
	assert_int_equal(p.pools[1].decision.held_by, LIMIT_BUDGET);
	end(&w);
}

/* Its pods would have to move. */
static void the_pool_that_takes_any_gives_nothing_back_for_a_budget(void **state)
{
	struct world w;

	(void)state;
	init(&w);
	for (int i = 0; i < POOLS; i++) {
		w.pools[i].budget_per_hour = 4000000;
		w.pools[i].budget_name = "team";
		w.pools[i].shrink_priority = i;
	}
	w.pools[1].class = CLASS_ANY;
	w.memory = policy_state_new(&w.fleet);
	struct plan p = { 0 };
	for (int i = 0; i < 60; i++) {
		see(&w, 0, 3, 300, 0);
		see(&w, 1, 3, 300, 0);
		p = decide(&w, 6);
	}
	assert_int_equal(p.pools[1].groups[0].release, 0);
	assert_in_range(p.pools[0].groups[0].release, 2, 3);
	assert_int_equal(p.pools[0].decision.held_by, LIMIT_BUDGET);
	end(&w);
}

static void surplus_goes_to_the_pool_that_borrows(void **state)
{
	struct world w;
	struct plan p = { 0 };

	(void)state;
	init(&w);
	w.pools[0].lend_to = 1u << CLASS_BATCH;
	w.memory = policy_state_new(&w.fleet);
	/* An hour of little traffic on a large fleet: past the first lead time it is surplus. */
	int64_t given = 0;
	for (int i = 0; i < 240 && !given; i++) {
		see(&w, 0, 12, 300, 0);
		see(&w, 1, 0, 0, 0);
		w.deadline = (struct deadline_input){ w.now + 2 * HOUR, 6 * HOUR };
		w.seen[1].deadlines = &w.deadline;
		w.seen[1].deadline_count = 1;
		p = decide(&w, 12);
		given = p.pools[0].groups[0].give_back;
	}
	assert_true(given > 0);
	assert_int_equal(p.pools[0].groups[0].give_back, p.pools[0].groups[0].release);
	assert_true(p.pools[1].decision.wished >= 3);
	end(&w);
}

static void one_blind_pool_does_not_hold_up_the_other(void **state)
{
	struct world w;

	(void)state;
	init(&w);
	w.memory = policy_state_new(&w.fleet);
	see(&w, 0, 5, 450, 0);
	see(&w, 1, 5, 0, 0);
	w.seen[1].scrape_count = 0;
	w.seen[1].input.scrapes_fresh = 0;
	struct plan p = decide(&w, 10);
	assert_int_equal(p.pools[1].decision.signals, SIGNALS_STALE);
	assert_int_equal(p.pools[0].decision.signals, SIGNALS_FRESH);
	assert_int_equal(p.pools[1].groups[0].release, 0);
	see(&w, 0, 5, 500, 40);
	p = decide(&w, 10);
	assert_true(p.pools[0].groups[0].cold > 0);
	end(&w);
}

static void a_gang_gets_all_of_its_nodes_or_none(void **state)
{
	struct world w;

	(void)state;
	init(&w);
	w.pools[1].class = CLASS_TRAINING;
	w.memory = policy_state_new(&w.fleet);
	see(&w, 0, 3, 100, 0);
	see(&w, 1, 0, 0, 0);
	w.deadline = (struct deadline_input){ w.now + HOUR, 20 * HOUR };
	w.seen[1].deadlines = &w.deadline;
	w.seen[1].deadline_count = 1;
	w.group.max_nodes = 6;
	struct plan p = decide(&w, 3);
	assert_int_equal(p.pools[1].groups[0].cold, 0);
	assert_int_equal(p.pools[1].decision.held_by, LIMIT_GANG);
	end(&w);
}

/* Two interactive pools on a group with room for `room` more nodes; what each is given. */
static struct plan decide_tight(struct world *w, const int64_t *ready, const int64_t *waiting, int64_t room)
{
	int64_t nodes = ready[0] + ready[1];

	w->pools[1].class = CLASS_INTERACTIVE;
	w->pools[1].objective_wait = 2000;
	w->group.max_nodes = nodes + room;
	w->memory = policy_state_new(&w->fleet);
	for (int i = 0; i < POOLS; i++)
		see(w, i, ready[i], ready[i] * 100, waiting[i]);
	return decide(w, nodes);
}

static void a_tight_group_is_shared_by_need(void **state)
{
	struct world w;

	(void)state;
	for (int first = 0; first < POOLS; first++) {
		const int other = 1 - first;
		int64_t ready[POOLS], waiting[POOLS];

		/* alike: half each, whoever stands first in the manifest */
		init(&w);
		ready[first] = ready[other] = 3;
		waiting[first] = waiting[other] = 400;
		struct plan p = decide_tight(&w, ready, waiting, 4);
		assert_int_equal(p.pools[0].groups[0].cold, 2);
		assert_int_equal(p.pools[1].groups[0].cold, 2);
		assert_int_equal(p.pools[0].decision.held_by, LIMIT_MAX);
		assert_int_equal(p.pools[1].decision.held_by, LIMIT_MAX);
		end(&w);

		/* one of them is far shorter of what it wishes */
		init(&w);
		ready[first] = 2;
		waiting[first] = 600;
		ready[other] = 10;
		waiting[other] = 600;
		p = decide_tight(&w, ready, waiting, 2);
		assert_int_equal(p.pools[first].groups[0].cold, 2);
		assert_int_equal(p.pools[other].groups[0].cold, 0);
		assert_int_equal(p.pools[other].decision.held_by, LIMIT_MAX);
		end(&w);

		/* the last node is the stricter one's */
		init(&w);
		w.pools[first].objective_late_ppm = 1000;
		ready[first] = ready[other] = 3;
		waiting[first] = waiting[other] = 400;
		p = decide_tight(&w, ready, waiting, 1);
		assert_int_equal(p.pools[first].groups[0].cold, 1);
		assert_int_equal(p.pools[other].groups[0].cold, 0);
		end(&w);
	}
}

static void a_class_that_comes_first_is_not_shared_with(void **state)
{
	struct world w;

	(void)state;
	init(&w);
	w.memory = policy_state_new(&w.fleet);
	w.group.max_nodes = 15;
	see(&w, 0, 10, 1000, 300);
	see(&w, 1, 1, 100, 900);
	struct plan p = decide(&w, 11);
	assert_true(p.pools[0].decision.wished > 13);
	assert_int_equal(p.pools[0].groups[0].cold, 4);
	assert_int_equal(p.pools[1].groups[0].cold, 0);
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(between_ticks_pods_get_their_places_and_nothing_else),
		cmocka_unit_test(what_finds_room_on_a_machine_on_its_way_buys_none),
		cmocka_unit_test(free_places_go_before_machines),
		cmocka_unit_test(free_places_go_before_refills),
		cmocka_unit_test(pools_never_share_the_same_last_node),
		cmocka_unit_test(a_shared_budget_goes_to_the_pool_that_shrinks_last),
		cmocka_unit_test(pools_of_equal_priority_do_not_spend_the_same_dollar),
		cmocka_unit_test(an_overdrawn_budget_is_given_back_by_the_pool_that_shrinks_first),
		cmocka_unit_test(the_pool_that_takes_any_gives_nothing_back_for_a_budget),
		cmocka_unit_test(surplus_goes_to_the_pool_that_borrows),
		cmocka_unit_test(one_blind_pool_does_not_hold_up_the_other),
		cmocka_unit_test(a_tight_group_is_shared_by_need),
		cmocka_unit_test(a_class_that_comes_first_is_not_shared_with),
		cmocka_unit_test(a_gang_gets_all_of_its_nodes_or_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
