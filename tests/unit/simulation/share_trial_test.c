/* Which pools belong together, what their stock comes to, and the strongest rival beside it. */
#include "tests/unit/simulation/toy.h"

#include "controller/simulation/share_trial.h"

enum { MODELS = 4, EVERY = 5 * SECOND, LENGTH = 8 * HOUR, REQUESTS = LENGTH / EVERY };

/* "a" and "b" are busy in turn, for two hours; "c" and "d" always. */
struct scene {
	struct arena arena;
	struct group_spec groups[MODELS];
	size_t order[MODELS];
	struct pool_spec pools[MODELS];
	struct fleet_spec fleet;
	struct world_spec world;
	struct trace traces[MODELS];
	const struct trace *given[MODELS];
	struct share_engine_spec spec;
	struct simulation alone;
	struct share_case c;
};

static void make_trace(struct scene *s, size_t i)
{
	struct trace *t = &s->traces[i];

	*t = (struct trace){ .requests = arena_array(&s->arena, struct request, REQUESTS), .length = LENGTH };
	for (millis at = 0; at < LENGTH; at += EVERY)
		if (i >= 2 || (size_t)(at / (2 * HOUR) % 2) == i)
			t->requests[t->request_count++] = (struct request){ at, 0, 200, -1 };
	s->given[i] = t;
}

static void setup(struct scene *s)
{
	static const char *const names[] = { "a", "b", "c", "d" };
	struct toy t;

	*s = (struct scene){ 0 };
	toy_setup(&t);
	for (size_t i = 0; i < MODELS; i++) {
		s->groups[i] = t.groups[0];
		s->groups[i].standby_max_nodes = 0;
		s->order[i] = i;
		s->pools[i] = t.pools[0];
		s->pools[i].name = names[i];
		s->pools[i].groups = &s->order[i];
		s->pools[i].group_count = 1;
		make_trace(s, i);
	}
	s->fleet = (struct fleet_spec){ s->groups, MODELS, s->pools, MODELS, NULL };
	s->world = world_spec_default(&s->fleet, &s->arena);
	s->alone =
		(struct simulation){ .world = t.setup, .policy = &policy_preheat, .setting = "", .warm_up = 2 * HOUR };
	s->alone.world.fleet = &s->fleet;
	s->alone.world.spec = &s->world;
	s->alone.world.traces = s->given;
	s->spec = (struct share_engine_spec){ .gpu_awake_mib = 60,
					      .gpu_asleep_mib = 2,
					      .host_asleep_mib = 16,
					      .sleep = { 500, 500 },
					      .wake = { SECOND, SECOND },
					      .mend = { MINUTE, MINUTE },
					      .slot = { 80, 64 } };
	s->c = share_case_of(&s->alone, &s->spec, &s->arena);
	arena_release(&t.arena);
}

static void release(struct scene *s)
{
	arena_release(&s->arena);
}

static void those_in_turn_are_put_together(void **state)
{
	struct scene s;
	struct share_group *groups;

	(void)state;
	setup(&s);
	assert_int_equal(share_propose(&s.c, &s.arena, &groups), 3);
	assert_int_equal(groups[0].count, 2);
	assert_int_equal(groups[0].pools[0], 0);
	assert_int_equal(groups[0].pools[1], 1);
	assert_int_equal(groups[1].count, 1);
	release(&s);
}

/* Host memory for one engine a slot: nobody can share. Two fit awake: everybody does. */
static void memory_says_who_may(void **state)
{
	struct scene s;
	struct share_group *groups;

	(void)state;
	setup(&s);
	s.spec.slot.host_mib = 31;
	assert_int_equal(share_propose(&s.c, &s.arena, &groups), MODELS);
	s.spec.slot.host_mib = 64;
	s.spec.gpu_awake_mib = 18;
	assert_int_equal(share_propose(&s.c, &s.arena, &groups), 1);
	assert_int_equal(groups[0].count, MODELS);
	release(&s);
}

static void every_member_has_an_engine_somewhere(void **state)
{
	static const struct {
		int64_t host_mib, gpu_mib, slots;
	} cases[] = { { 64, 80, 1 }, { 63, 80, 2 }, { 32, 80, 2 }, { 31, 80, 4 }, { 15, 80, 0 }, { 64, 59, 0 } };
	struct scene s;

	(void)state;
	setup(&s);
	struct share_group all = share_of_all(&s.c, &s.arena);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		s.spec.slot = (struct share_size){ cases[i].gpu_mib, cases[i].host_mib };
		assert_int_equal(share_fewest_slots(&s.c, &all), cases[i].slots);
	}
	release(&s);
}

static void two_in_turn_on_one_slot(void **state)
{
	struct scene s;
	size_t pools[] = { 0, 1 };
	const struct share_group turn = { pools, 2 };
	struct share_stock stock;
	struct share_result r;
	struct error e;

	(void)state;
	setup(&s);
	s.alone.warm_up = 0; /* in hindsight */
	assert_true(share_run_best(&s.c, &turn, &s.arena, &stock, &r, &e));
	assert_true(share_keeps(&s.c, &turn, &r));
	assert_int_equal(r.slot_ms, LENGTH);
	assert_int_equal(r.requests, REQUESTS);
	assert_int_equal(r.members_met, 2);
	release(&s);
}

/* Nobody else knows the future: the rival's slots are the fewest that keep it, and one fewer do not. */
static void the_rival_is_the_best_in_hindsight(void **state)
{
	struct scene s;
	int64_t slots;
	millis threshold;

	(void)state;
	setup(&s);
	struct share_group all = share_of_all(&s.c, &s.arena);
	struct share_result r = share_rival(&s.c, &all, &s.arena, &slots, &threshold);
	assert_true(share_keeps(&s.c, &all, &r));
	assert_int_equal(slots, 3);
	assert_int_equal(r.slot_ms, 3 * (LENGTH - 2 * HOUR));
	struct share_stock fewer = share_stock_fixed(&s.c, 2, &s.arena);
	const struct share_rule rule = { .keep_alive = threshold, .spare_permille = 1000 };
	struct share_result less = share_run_rule(&s.c, &all, &fewer, &rule, &s.arena);
	assert_false(share_keeps(&s.c, &all, &less));
	release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(those_in_turn_are_put_together),	cmocka_unit_test(memory_says_who_may),
		cmocka_unit_test(every_member_has_an_engine_somewhere), cmocka_unit_test(two_in_turn_on_one_slot),
		cmocka_unit_test(the_rival_is_the_best_in_hindsight),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
