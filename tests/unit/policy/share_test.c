/* What slots of a share do next: tables of small shares. */
#include "controller/policy/share.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

enum { SLOTS = 3, MEMBERS = 3, NOW = 1000000, LONG_AGO = NOW - 600000, TAKES_SLEEP = 1000, TAKES_WAKE = 3000 };

/* Each slot holds an engine of each member, all asleep; one fits awake on a GPU. */
struct toy {
	struct arena arena;
	struct share_engine engines[SLOTS][MEMBERS];
	struct share_slot slots[SLOTS];
	struct share_member members[MEMBERS];
	struct share_times times[MEMBERS];
	struct share_rule rule;
	struct share_view view;
	struct share_plan plan;
};

static void setup(struct toy *t, size_t slots)
{
	*t = (struct toy){ 0 };
	for (size_t i = 0; i < SLOTS; i++) {
		for (size_t k = 0; k < MEMBERS; k++)
			t->engines[i][k] =
				(struct share_engine){ .member = k, .since = LONG_AGO, .idle_since = LONG_AGO };
		t->slots[i] = (struct share_slot){ .gpu_mib = 80,
						   .host_mib = 48,
						   .engines = t->engines[i],
						   .engine_count = MEMBERS,
						   .cleared_for = SHARE_NONE };
	}
	for (size_t k = 0; k < MEMBERS; k++) {
		t->members[k] = (struct share_member){
			.gpu_awake_mib = 60, .gpu_asleep_mib = 2, .host_asleep_mib = 16, .peak = 1
		};
		t->times[k] = (struct share_times){ TAKES_SLEEP, TAKES_WAKE };
	}
	t->view = (struct share_view){ NOW, t->slots, slots, t->members, MEMBERS, t->times, &t->rule };
}

static void decide(struct toy *t)
{
	t->plan = share_decide(&t->view, &t->arena);
}

static void release(struct toy *t)
{
	arena_release(&t->arena);
}

static void awake(struct toy *t, size_t slot, size_t member, int64_t running, millis idle_since)
{
	struct share_engine *e = &t->engines[slot][member];

	*e = (struct share_engine){ member, SHARE_AWAKE, LONG_AGO, running, idle_since, true };
}

static void need(struct toy *t, size_t member, int64_t engines, int64_t waiting)
{
	t->members[member].need = t->members[member].need_held = engines;
	t->members[member].waiting = waiting;
}

static void assert_order(const struct toy *t, size_t slot, enum share_verb verb, size_t engine)
{
	assert_int_equal(t->plan.orders[slot].verb, verb);
	if (verb != SHARE_KEEP)
		assert_int_equal(t->plan.orders[slot].engine, engine);
}

static void a_need_is_rounded_up_to_engines(void **state)
{
	static const struct {
		int64_t requests, sequences, margin, engines;
	} cases[] = { { 0, 8, 0, 0 },	{ 1, 8, 0, 1 },	  { 8, 8, 0, 1 },   { 9, 8, 0, 2 },
		      { 0, 8, 250, 0 }, { 6, 8, 250, 1 }, { 7, 8, 250, 2 }, { 16, 8, 250, 3 } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct share_rule r = { .margin_permille = cases[i].margin };
		assert_int_equal(share_need(cases[i].requests, cases[i].sequences, &r), cases[i].engines);
	}
}

static void a_need_is_held_and_then_let_go_of(void **state)
{
	struct share_hold h = { 0 };

	(void)state;
	assert_int_equal(share_hold(&h, 3, 0, 60), 3);
	assert_int_equal(share_hold(&h, 1, 30, 60), 3);
	assert_int_equal(share_hold(&h, 2, 40, 60), 3);
	assert_int_equal(share_hold(&h, 0, 60, 60), 2);
	assert_int_equal(share_hold(&h, 0, 119, 60), 2);
	assert_int_equal(share_hold(&h, 0, 120, 60), 0);
}

/* Whoever has requests never sleeps, so nobody can say how long another waits for its turn: that it does is told. */
static void who_waits_for_one_at_work_is_told(void **state)
{
	struct toy t;

	(void)state;
	setup(&t, 1);
	awake(&t, 0, 0, 4, NOW);
	need(&t, 0, 1, 0);
	need(&t, 1, 1, 3);
	decide(&t);
	assert_order(&t, 0, SHARE_KEEP, 0);
	assert_int_equal(t.plan.waits_for[1], 0);
	assert_int_equal(t.plan.waits_for[0], SHARE_NONE); /* served */
	assert_int_equal(t.plan.waits_for[2], SHARE_NONE); /* asks for nothing */
	t.slots[0].is_leaving = true;			   /* it would not wake there */
	decide(&t);
	assert_int_equal(t.plan.waits_for[1], SHARE_NONE);
	t.slots[0].is_leaving = false;
	awake(&t, 0, 0, 0, LONG_AGO); /* idle: it makes room */
	need(&t, 0, 0, 0);
	decide(&t);
	assert_order(&t, 0, SHARE_SLEEP, 0);
	assert_int_equal(t.plan.waits_for[1], SHARE_NONE);
	release(&t);
}

static void who_asks_gets_an_empty_slot(void **state)
{
	struct toy t;

	(void)state;
	setup(&t, 2);
	awake(&t, 0, 0, 4, NOW);
	need(&t, 0, 1, 0);
	need(&t, 1, 1, 5);
	decide(&t);
	assert_order(&t, 0, SHARE_KEEP, 0);
	assert_order(&t, 1, SHARE_WAKE, 1);
	assert_int_equal(t.plan.orders[1].lead, TAKES_WAKE);
	assert_int_equal(t.plan.orders[1].reason, SHARE_NO_ENGINE);
	release(&t);
}

/* A swap is a sleep, and a wake once that is over; nothing else happens on the slot meanwhile. */
static void a_swap_takes_two_plans(void **state)
{
	struct toy t;

	(void)state;
	setup(&t, 1);
	awake(&t, 0, 0, 0, LONG_AGO);
	need(&t, 1, 1, 5);
	decide(&t);
	assert_order(&t, 0, SHARE_SLEEP, 0);
	assert_int_equal(t.plan.orders[0].cleared_for, 1);
	assert_int_equal(t.plan.orders[0].lead, TAKES_SLEEP + TAKES_WAKE);
	assert_false(t.plan.is_in_routing[0][0]);

	t.slots[0].cleared_for = 1;
	t.engines[0][0].state = SHARE_FALLING_ASLEEP;
	need(&t, 2, 1, 9);
	decide(&t);
	assert_order(&t, 0, SHARE_KEEP, 0);
	assert_int_equal(t.plan.orders[0].cleared_for, 1);

	t.engines[0][0].state = SHARE_ASLEEP;
	decide(&t);
	assert_order(&t, 0, SHARE_WAKE, 1);
	release(&t);
}

static void what_is_cleared_for_nobody_is_free_again(void **state)
{
	struct toy t;

	(void)state;
	setup(&t, 1);
	t.slots[0].cleared_for = 1;
	need(&t, 2, 1, 1);
	decide(&t);
	assert_order(&t, 0, SHARE_WAKE, 2);
	assert_int_equal(t.plan.orders[0].cleared_for, SHARE_NONE);
	release(&t);
}

/* Two are awake where one fits, as after a start: whoever runs nothing makes room, and nobody while both run. */
static void what_is_crowded_is_relieved(void **state)
{
	struct toy t;

	(void)state;
	setup(&t, 1);
	awake(&t, 0, 0, 2, 0);
	awake(&t, 0, 1, 0, LONG_AGO);
	need(&t, 0, 1, 0);
	need(&t, 1, 1, 0);
	decide(&t);
	assert_order(&t, 0, SHARE_SLEEP, 1);
	assert_int_equal(t.plan.orders[0].reason, SHARE_CROWDED);
	t.engines[0][1].running = 1;
	decide(&t);
	assert_order(&t, 0, SHARE_KEEP, 0);
	release(&t);
}

static void some_never_sleep(void **state)
{
	static const struct {
		const char *why;
		int64_t running, host_mib;
		millis since;
	} cases[] = { { "requests run", 1, 48, LONG_AGO },
		      { "it was just woken", 0, 48, NOW - TAKES_SLEEP - TAKES_WAKE + 1 },
		      { "host memory is full", 0, 47, LONG_AGO } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct toy t;
		setup(&t, 1);
		awake(&t, 0, 0, cases[i].running, LONG_AGO);
		t.engines[0][0].since = cases[i].since;
		t.slots[0].host_mib = cases[i].host_mib;
		need(&t, 1, 1, 5);
		decide(&t);
		if (t.plan.orders[0].verb != SHARE_KEEP)
			fail_msg("%s: and it was put to sleep", cases[i].why);
		release(&t);
	}
}

static void several_are_awake_where_memory_allows(void **state)
{
	struct toy t;

	(void)state;
	setup(&t, 1);
	for (size_t k = 0; k < MEMBERS; k++)
		t.members[k].gpu_awake_mib = 39;
	awake(&t, 0, 0, 4, NOW);
	need(&t, 0, 1, 0);
	need(&t, 1, 1, 1);
	decide(&t);
	assert_order(&t, 0, SHARE_WAKE, 1);

	awake(&t, 0, 1, 4, NOW);
	need(&t, 2, 1, 1);
	decide(&t);
	assert_order(&t, 0, SHARE_KEEP, 0); /* 39 + 39 + 2 is all there is, and both are at work */
	release(&t);
}

static void a_held_need_yields_to_a_real_one(void **state)
{
	struct toy t;

	(void)state;
	setup(&t, 1);
	awake(&t, 0, 0, 0, LONG_AGO);
	t.members[0].need_held = 1;
	t.members[1].need_held = 1;
	decide(&t);
	assert_order(&t, 0, SHARE_KEEP, 0);
	need(&t, 1, 1, 1);
	decide(&t);
	assert_order(&t, 0, SHARE_SLEEP, 0);
	release(&t);
}

/* Slot 0: idle for longest, of a pool that was late often. Slot 1: of one that was not. */
static void victims_by_rule(void **state)
{
	static const struct {
		enum victim_rule rule;
		size_t slot;
	} cases[] = { { VICTIM_LEAST_RECENT, 0 }, { VICTIM_AFFORDS, 1 } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct toy t;
		setup(&t, 2);
		t.rule.victim = cases[i].rule;
		awake(&t, 0, 0, 0, LONG_AGO);
		awake(&t, 1, 1, 0, LONG_AGO + 1);
		t.members[0].late = 9;
		t.members[0].allowed_milli = t.members[1].allowed_milli = 10000;
		need(&t, 2, 1, 1);
		decide(&t);
		assert_order(&t, cases[i].slot, SHARE_SLEEP, cases[i].slot);
		assert_order(&t, 1 - cases[i].slot, SHARE_KEEP, 0);
		release(&t);
	}
}

static void idle_engines_make_room_ahead(void **state)
{
	struct toy t;

	(void)state;
	setup(&t, 2);
	t.rule = (struct share_rule){ .keep_alive = MINUTE, .spare_permille = 500 };
	awake(&t, 0, 0, 0, NOW - MINUTE);
	awake(&t, 1, 1, 0, NOW - MINUTE + 1);
	decide(&t);
	assert_order(&t, 0, SHARE_SLEEP, 0);
	assert_int_equal(t.plan.orders[0].reason, SHARE_SPARE);
	assert_order(&t, 1, SHARE_KEEP, 0);

	t.engines[0][0].state = SHARE_ASLEEP; /* half of the slots have room now */
	t.engines[1][1].idle_since = LONG_AGO;
	decide(&t);
	assert_order(&t, 1, SHARE_KEEP, 0);
	release(&t);
}

/* A surplus engine is left out of routing, so that it runs empty; the one with most running stays. */
static void surplus_runs_empty(void **state)
{
	struct toy t;

	(void)state;
	setup(&t, 2);
	awake(&t, 0, 0, 1, NOW);
	awake(&t, 1, 0, 3, NOW);
	need(&t, 0, 1, 0);
	decide(&t);
	assert_false(t.plan.is_in_routing[0][0]);
	assert_true(t.plan.is_in_routing[1][0]);
	need(&t, 0, 2, 0);
	decide(&t);
	assert_true(t.plan.is_in_routing[0][0]);
	release(&t);
}

static void another_slot_takes_over_from_a_broken_one(void **state)
{
	struct toy t;

	(void)state;
	setup(&t, 2);
	t.engines[0][1].state = SHARE_BROKEN;
	need(&t, 1, 1, 4);
	decide(&t);
	assert_order(&t, 0, SHARE_KEEP, 0);
	assert_order(&t, 1, SHARE_WAKE, 1);
	release(&t);
}

static void nothing_wakes_on_a_slot_that_leaves(void **state)
{
	struct toy t;

	(void)state;
	setup(&t, 1);
	t.slots[0].is_leaving = true;
	awake(&t, 0, 0, 2, NOW);
	need(&t, 0, 1, 0);
	need(&t, 1, 1, 4);
	decide(&t);
	assert_order(&t, 0, SHARE_KEEP, 0);
	release(&t);
}

static void who_serves_on_a_slot_that_leaves_does_until_another_does(void **state)
{
	struct toy t;

	(void)state;
	setup(&t, 2);
	t.slots[0].is_leaving = true;
	awake(&t, 0, 0, 2, NOW);
	need(&t, 0, 1, 0);
	decide(&t);
	assert_order(&t, 1, SHARE_WAKE, 0);
	assert_true(t.plan.is_in_routing[0][0]);
	need(&t, 0, 0, 0);
	decide(&t);
	assert_false(t.plan.is_in_routing[0][0]); /* nobody asks for it: it may go */
	need(&t, 0, 1, 0);
	awake(&t, 1, 0, 0, NOW);
	decide(&t);
	assert_false(t.plan.is_in_routing[0][0]);
	assert_true(t.plan.is_in_routing[1][0]);
	release(&t);
}

static void slots_are_for_engines_or_for_work(void **state)
{
	(void)state;
	assert_int_equal(share_slots_for(0, 0, 1), 0);
	assert_int_equal(share_slots_for(3000, 900, 1), 3);
	assert_int_equal(share_slots_for(3000, 900, 3), 1);
	assert_int_equal(share_slots_for(3000, 1100, 3), 2);
	assert_int_equal(share_slots_for(1001, 1, 1), 2);
}

static void copies_go_to_whom_has_few(void **state)
{
	struct share_member members[MEMBERS] = { { .gpu_awake_mib = 60, .gpu_asleep_mib = 2, .host_asleep_mib = 16 },
						 { .gpu_awake_mib = 60, .gpu_asleep_mib = 2, .host_asleep_mib = 16 },
						 { .gpu_awake_mib = 60, .gpu_asleep_mib = 2, .host_asleep_mib = 16 } };
	int64_t copies[MEMBERS] = { 0 };
	size_t held[MEMBERS];

	(void)state;
	members[2].peak = 4;
	members[0].peak = members[1].peak = 1;
	assert_int_equal(share_place(members, MEMBERS, (struct share_size){ 80, 32 }, copies, held), 2);
	assert_int_equal(copies[2], 1);
	assert_int_equal(share_place(members, MEMBERS, (struct share_size){ 80, 32 }, copies, held), 2);
	assert_int_equal(copies[0], 1);
	assert_int_equal(copies[1], 1);
	assert_int_equal(copies[2], 2);
	/* one awake and two asleep are 64 */
	assert_int_equal(share_place(members, MEMBERS, (struct share_size){ 63, 100 }, copies, held), 2);
	assert_int_equal(share_place(members, MEMBERS, (struct share_size){ 64, 100 }, copies, held), 3);
	assert_int_equal(share_place(members, MEMBERS, (struct share_size){ 59, 100 }, copies, held), 0);
}

static void the_least_strained_shadow_is_followed(void **state)
{
	const double strain[] = { 1, .96, .5 }, near[] = { 1, .96, .97 };

	(void)state;
	assert_int_equal(share_rule_choose(strain, 3, SHARE_NONE), 2);
	assert_int_equal(share_rule_choose(strain, 3, 0), 2);
	assert_int_equal(share_rule_choose(near, 3, 0), 0); /* by less than a twentieth */
	assert_int_equal(share_rule_choose(near, 3, SHARE_NONE), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_need_is_rounded_up_to_engines),
		cmocka_unit_test(a_need_is_held_and_then_let_go_of),
		cmocka_unit_test(who_waits_for_one_at_work_is_told),
		cmocka_unit_test(who_asks_gets_an_empty_slot),
		cmocka_unit_test(a_swap_takes_two_plans),
		cmocka_unit_test(what_is_cleared_for_nobody_is_free_again),
		cmocka_unit_test(what_is_crowded_is_relieved),
		cmocka_unit_test(some_never_sleep),
		cmocka_unit_test(several_are_awake_where_memory_allows),
		cmocka_unit_test(a_held_need_yields_to_a_real_one),
		cmocka_unit_test(victims_by_rule),
		cmocka_unit_test(idle_engines_make_room_ahead),
		cmocka_unit_test(surplus_runs_empty),
		cmocka_unit_test(another_slot_takes_over_from_a_broken_one),
		cmocka_unit_test(nothing_wakes_on_a_slot_that_leaves),
		cmocka_unit_test(who_serves_on_a_slot_that_leaves_does_until_another_does),
		cmocka_unit_test(slots_are_for_engines_or_for_work),
		cmocka_unit_test(copies_go_to_whom_has_few),
		cmocka_unit_test(the_least_strained_shadow_is_followed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
