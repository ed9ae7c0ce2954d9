/* Which rule shadows choose: small shares, asked as the tables say. */
#include "controller/policy/share_shadow.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

enum { SLOTS = 3, MEMBERS = 3, START = 100 * HOUR, READING = 5 * SECOND };

/* Rows of share_rules(): idle engines sleep after five minutes, or only for another. */
enum { SLEEPS = 0, STAYS = 1 };

/* Each slot holds an engine of each member, and one fits awake. Member m is asked for one request every `every[m]`,
 * which takes two seconds and is served wherever the real engines stand: they do not matter. */
struct toy {
	struct share_shadows shadows;
	struct share_engine engines[SLOTS][MEMBERS];
	struct share_slot slots[SLOTS];
	struct share_member members[MEMBERS];
	struct share_times times[MEMBERS], slow[MEMBERS];
	struct share_load loads[MEMBERS];
	uint64_t keys[SLOTS];
	millis every[MEMBERS], now;
	size_t slot_count, member_count;
	int64_t choices;
};

static void setup(struct toy *t, size_t slots, size_t members)
{
	*t = (struct toy){ .slot_count = slots, .member_count = members, .now = START };
	for (size_t i = 0; i < SLOTS; i++) {
		t->keys[i] = 100 + i;
		for (size_t k = 0; k < MEMBERS; k++)
			t->engines[i][k] = (struct share_engine){ .member = k };
		t->slots[i] = (struct share_slot){ .gpu_mib = 80,
						   .host_mib = 48,
						   .engines = t->engines[i],
						   .engine_count = members,
						   .cleared_for = SHARE_NONE };
	}
	for (size_t k = 0; k < MEMBERS; k++) {
		t->members[k] =
			(struct share_member){ .gpu_awake_mib = 60, .gpu_asleep_mib = 2, .host_asleep_mib = 16 };
		t->times[k] = (struct share_times){ SECOND, 4 * SECOND };
		t->slow[k] = (struct share_times){ SECOND, 5 * SECOND };
		t->loads[k] =
			(struct share_load){ .key = 10 + k, .sequences = 4, .wait = 2 * SECOND, .late_ppm = 10000 };
	}
}

static void release(struct toy *t)
{
	share_shadows_release(&t->shadows);
}

static void look(struct toy *t)
{
	const struct share_view v = { .now = t->now,
				      .slots = t->slots,
				      .slot_count = t->slot_count,
				      .members = t->members,
				      .member_count = t->member_count,
				      .times = t->times };

	t->choices += share_shadows_advance(&t->shadows, &(struct share_seen){ &v, t->loads, t->slow, t->keys });
}

static void run(struct toy *t, millis time)
{
	for (millis until = t->now + time; t->now < until; t->now += READING) {
		for (size_t k = 0; k < t->member_count; k++) {
			bool comes = t->every[k] && t->now % t->every[k] < READING;
			t->loads[k].arrived += comes;
			t->loads[k].running = comes;
		}
		look(t);
	}
}

static double strain(const struct toy *t, size_t rule)
{
	return t->shadows.tally.strain[rule];
}

static void who_is_not_asked_is_not_late(void **state)
{
	struct toy t;

	(void)state;
	setup(&t, 2, 2);
	run(&t, 3 * HOUR);
	assert_int_equal(t.choices, 0);
	assert_ptr_equal(share_shadows_rule(&t.shadows), &share_rules(&(size_t){ 0 })[0]);
	assert_true(strain(&t, SLEEPS) == 0 && strain(&t, STAYS) == 0);
	release(&t);
}

/* A slot for each: who sleeps between its requests is late at every one of them, and who stays awake once. */
static void who_need_not_sleep_stays_awake(void **state)
{
	CLEANUP(buf_release) struct buf why = { 0 };
	struct toy t;

	(void)state;
	setup(&t, 2, 2);
	t.every[0] = t.every[1] = 8 * MINUTE;
	run(&t, HOUR - MINUTE);
	assert_int_equal(t.choices, 0); /* once an hour */
	assert_true(strain(&t, SLEEPS) > 3 * strain(&t, STAYS));
	run(&t, 2 * MINUTE);
	assert_int_equal(t.choices, 1);
	assert_int_equal(t.shadows.tally.rule, STAYS);
	share_choice_write(&t.shadows.tally, &why);
	assert_string_equal(why.text,
			    "a need is kept in mind for 1 min, idle engines sleep only for another, and first "
			    "that of the pool that can best afford it; of all requests 14.29 % would have been late "
			    "instead of 100.00 %, weighed by what each pool's objective allows");
	run(&t, 5 * HOUR);
	assert_int_equal(t.choices, 1);
	release(&t);
}

/* What is late, and how much that weighs. */
static void objectives_are_kept_in_mind(void **state)
{
	static const struct {
		const char *what;
		millis wait;
		int64_t late_ppm;
		double least, most; /* strain by the first rule, after a day of 180 requests */
	} cases[] = {
		{ "a wake takes longer", 2 * SECOND, 10000, 90, 104 },
		{ "one in ten may be", 2 * SECOND, 100000, 25, 35 },
		{ "none may be", 2 * SECOND, 0, 155, 180 },
		{ "a wake is soon enough", 20 * SECOND, 10000, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct toy t;
		setup(&t, 1, 1);
		t.every[0] = 8 * MINUTE;
		t.loads[0].wait = cases[i].wait;
		t.loads[0].late_ppm = cases[i].late_ppm;
		run(&t, DAY);
		if (strain(&t, SLEEPS) < cases[i].least || strain(&t, SLEEPS) > cases[i].most)
			fail_msg("%s: %.2f", cases[i].what, strain(&t, SLEEPS));
		release(&t);
	}
}

/* Two in turn on one slot: by every rule a swap is late. */
static void a_swap_is_late_by_every_rule(void **state)
{
	struct toy t;
	size_t rules;

	(void)state;
	setup(&t, 1, 2);
	t.every[0] = t.every[1] = 2 * MINUTE;
	t.loads[1].arrived = 7; /* a counter from anywhere */
	run(&t, 40 * MINUTE);
	share_rules(&rules);
	for (size_t i = 0; i < rules; i++)
		if (strain(&t, i) <= 0)
			fail_msg("rule %zu", i);
	release(&t);
}

static void what_the_share_does_moves_no_shadow(void **state)
{
	struct toy a, b;

	(void)state;
	setup(&a, 2, 3);
	setup(&b, 2, 3);
	for (size_t k = 0; k < 3; k++)
		a.every[k] = b.every[k] = (millis)(k + 2) * MINUTE;
	look(&a);
	look(&b);
	for (int minute = 0; minute < 180; minute++) {
		for (size_t k = 0; k < 3; k++)
			b.engines[0][k].state = (size_t)minute % 3 == k ? SHARE_AWAKE : SHARE_ASLEEP;
		a.now = b.now = START + READING + minute * MINUTE;
		run(&a, MINUTE);
		run(&b, MINUTE);
	}
	assert_memory_equal(a.shadows.tally.strain, b.shadows.tally.strain, sizeof a.shadows.tally.strain);
	assert_int_equal(a.shadows.tally.rule, b.shadows.tally.rule);
	release(&a);
	release(&b);
}

/* A pool joins, a slot comes and another goes: what was counted stays. */
static void who_comes_and_goes_changes_no_record(void **state)
{
	struct toy t;

	(void)state;
	setup(&t, 2, 2);
	t.every[0] = t.every[1] = 8 * MINUTE;
	run(&t, 50 * MINUTE);
	double before = strain(&t, SLEEPS), asked = t.shadows.tally.members[0].asked;
	t.slot_count = t.member_count = 3;
	for (size_t i = 0; i < SLOTS; i++)
		t.slots[i].engine_count = 3;
	look(&t);
	assert_true(strain(&t, SLEEPS) == before && t.shadows.tally.members[0].asked == asked);
	t.keys[0] = 999; /* the first slot is another */
	look(&t);
	run(&t, 10 * MINUTE);
	assert_true(strain(&t, SLEEPS) > before);
	run(&t, MINUTE);
	assert_int_equal(t.choices, 1);
	assert_int_equal(share_shadows_rule(&t.shadows)->spare_permille, 0);
	release(&t);
}

/* A broken engine has its slot in every shadow, too. */
static void what_is_broken_serves_nobody(void **state)
{
	struct toy t;

	(void)state;
	setup(&t, 1, 1);
	t.every[0] = MINUTE;
	t.engines[0][0].state = SHARE_BROKEN;
	run(&t, 30 * MINUTE);
	double broken = t.shadows.tally.late[STAYS];
	assert_true(broken > 28);
	t.engines[0][0].state = SHARE_ASLEEP;
	run(&t, 30 * MINUTE);
	assert_true(t.shadows.tally.late[STAYS] < broken + 3);
	release(&t);
}

static void a_process_goes_on_where_another_was(void **state)
{
	struct toy t, next;

	(void)state;
	setup(&t, 2, 2);
	t.every[0] = t.every[1] = 8 * MINUTE;
	run(&t, 50 * MINUTE);
	setup(&next, 2, 2);
	memcpy(next.every, t.every, sizeof next.every);
	share_shadows_recall(&next.shadows, &t.shadows.tally);
	next.now = t.now + 12 * MINUTE; /* the hour is over */
	release(&t);
	run(&next, MINUTE);
	assert_int_equal(next.choices, 1);
	assert_int_equal(next.shadows.tally.rule, STAYS);
	release(&next);
}

/* Long ago nobody looked: what came meanwhile says nothing. */
static void what_nobody_saw_does_not_count(void **state)
{
	struct toy t;

	(void)state;
	setup(&t, 1, 1);
	run(&t, MINUTE);
	t.now += 30 * MINUTE;
	t.loads[0].arrived += 1000;
	look(&t);
	t.now += MINUTE;
	look(&t);
	assert_true(t.shadows.tally.asked == 0 && strain(&t, SLEEPS) == 0);
	release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_not_asked_is_not_late),
		cmocka_unit_test(who_need_not_sleep_stays_awake),
		cmocka_unit_test(objectives_are_kept_in_mind),
		cmocka_unit_test(a_swap_is_late_by_every_rule),
		cmocka_unit_test(what_the_share_does_moves_no_shadow),
		cmocka_unit_test(who_comes_and_goes_changes_no_record),
		cmocka_unit_test(what_is_broken_serves_nobody),
		cmocka_unit_test(a_process_goes_on_where_another_was),
		cmocka_unit_test(what_nobody_saw_does_not_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
