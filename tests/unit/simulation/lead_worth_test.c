/* What half a lead time is worth: by what the world does with it, and by the same seeds on both sides. */
#include "tests/unit/simulation/toy.h"

#include "controller/simulation/lead_worth.h"

enum { LENGTH = 6 };

/* Every other half hour eight times as much: whoever takes long to start holds more, or is late. */
static void make_traffic(struct toy *t)
{
	enum { BIN = 5 * SECOND };
	struct bin *bins = arena_array(&t->arena, struct bin, LENGTH * HOUR / BIN);

	t->traces[0].length = LENGTH * HOUR;
	t->traces[0].is_binned = true;
	t->traces[0].bin_width = BIN;
	t->traces[0].bins = bins;
	t->traces[0].bin_count = LENGTH * HOUR / BIN;
	for (size_t i = 0; i < t->traces[0].bin_count; i++) {
		bool is_high = (millis)i * BIN % HOUR < 30 * MINUTE;
		bins[i] = (struct bin){ .at = (millis)i * BIN,
					.requests = is_high ? 80 : 10,
					.output_tokens = (is_high ? 80 : 10) * 300 };
	}
}

static struct simulation setup(struct toy *t)
{
	toy_setup(t);
	make_traffic(t);
	t->groups[0].standby_max_nodes = 0;
	return (struct simulation){ .world = t->setup, .policy = &policy_preheat, .setting = "", .warm_up = HOUR };
}

static struct lead_worth ask(const struct simulation *s, enum start_kind kind, int stage)
{
	struct lead_worth w;
	struct error e = { 0 };

	assert_true(lead_worth(s, &(struct lead_part){ 0, kind, stage }, 1, &w, &e));
	return w;
}

static void half_a_start_saves(void **state)
{
	struct toy t;
	struct simulation s = setup(&t);
	t.pools[0].lead_time = (struct quantiles){ 400 * SECOND, 420 * SECOND };
	struct lead_worth w = ask(&s, START_COLD, LEAD_WHOLE);

	(void)state;
	assert_int_equal(w.shorter, 200 * SECOND);
	assert_true(w.half.dollars > 0);
	assert_true(w.half.saved > 0 || w.half.late_with < w.half.late_share);
	arena_release(&t.arena);
}

/* As long as a start from half its times is what the world then is: not more, not less. */
static void it_is_the_world_with_the_half(void **state)
{
	struct toy t;
	struct simulation s = setup(&t);
	t.pool_worlds[0].lead_time = (struct quantiles){ 400 * SECOND, 500 * SECOND };
	struct lead_worth whole = ask(&s, START_COLD, LEAD_WHOLE);
	t.pools[0].lead_time = (struct quantiles){ 50 * SECOND, 50 * SECOND };
	t.pool_worlds[0].lead_time = (struct quantiles){ 200 * SECOND, 250 * SECOND };
	struct lead_worth half = ask(&s, START_COLD, LEAD_WHOLE);

	(void)state;
	assert_true(whole.half.dollars - whole.half.saved - half.half.dollars < 1e-6 &&
		    half.half.dollars - (whole.half.dollars - whole.half.saved) < 1e-6);
	assert_true(whole.half.late_with - half.half.late_share < 1e-9 &&
		    half.half.late_share - whole.half.late_with < 1e-9);
	arena_release(&t.arena);
}

static void one_stage_of_several(void **state)
{
	struct toy t;
	struct simulation s = setup(&t);
	const millis stages[STAGE_COUNT] = { 60 * SECOND, 30 * SECOND, 20 * SECOND, 100 * SECOND, 90 * SECOND };

	(void)state;
	for (int i = 0; i < STAGE_COUNT; i++)
		t.pools[0].stage[i] = (struct quantiles){ stages[i], stages[i] };
	t.pool_worlds[0].stage[STAGE_IMAGE] = (struct quantiles){ 10 * SECOND, 10 * SECOND };
	for (int i = 0; i < STAGE_COUNT; i++)
		assert_int_equal(ask(&s, START_COLD, i).shorter,
				 i == STAGE_IMAGE ? 5 * SECOND : stages[i] / 2); /* the world is true */
	assert_int_equal(ask(&s, START_COLD, LEAD_WHOLE).shorter, (60 + 30 + 20 + 90) * SECOND / 2 + 5 * SECOND);
	arena_release(&t.arena);
}

/* Without stopped machines, or a time of them, there is nothing to halve, and nothing is saved. */
static void nothing_to_shorten(void **state)
{
	struct toy t;
	struct simulation s = setup(&t);
	struct lead_worth w = ask(&s, START_WAKE, LEAD_WHOLE), stage = ask(&s, START_COLD, STAGE_LOAD);

	(void)state;
	assert_int_equal(w.shorter, 0);
	assert_true(w.half.saved == 0 && w.half.is_chance == false &&
		    w.half.late_with == w.half.late_share);
	assert_int_equal(stage.shorter, 0);
	t.groups[0].standby_max_nodes = 20;
	assert_int_equal(ask(&s, START_WAKE, LEAD_WHOLE).shorter, 10 * SECOND);
	arena_release(&t.arena);
}

/* What did not change by the half did not save, whatever the seeds. */
static void a_part_of_another_pool_saves_nothing_here(void **state)
{
	struct toy t;
	struct simulation s = setup(&t);
	struct lead_part parts[] = { { 1, START_COLD, LEAD_WHOLE }, { 0, START_COLD, LEAD_WHOLE } };
	struct lead_worth w[2];
	struct error e = { 0 };

	(void)state;
	t.fleet.pool_count = 2;
	t.pools[1].lead_time = (struct quantiles){ 100 * SECOND, 100 * SECOND };
	assert_true(lead_worth(&s, parts, 2, w, &e));
	assert_true(w[0].half.saved == 0 && w[0].half.dollars == 0); /* no traffic */
	assert_true(w[1].half.dollars > 0);
	arena_release(&t.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(half_a_start_saves),
		cmocka_unit_test(it_is_the_world_with_the_half),
		cmocka_unit_test(one_stage_of_several),
		cmocka_unit_test(nothing_to_shorten),
		cmocka_unit_test(a_part_of_another_pool_saves_nothing_here),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
