/* Which changes are tried, for which reason, and which of them pay. */
#include "tests/unit/simulation/toy.h"

#include "controller/simulation/advice.h"

enum { MOST = TOY_POOLS * ADVICE_MOST };

struct asked {
	struct toy toy;
	int64_t served[TOY_POOLS][TOY_GROUPS], lost[TOY_POOLS][TOY_GROUPS];
	struct advice_record records[TOY_POOLS];
	struct advice out[MOST];
	struct trial trials[MOST];
	size_t count;
};

static struct request one_request[] = { { 0, 0, 100, -1 } };

/* Without standby, floor and budget; two groups at one price. */
static void begin(struct asked *q)
{
	*q = (struct asked){ 0 };
	toy_setup(&q->toy);
	q->toy.fleet.group_count = TOY_GROUPS;
	q->toy.traces[0].requests = one_request;
	q->toy.traces[0].request_count = 1;
	q->toy.pools[0].group_count = TOY_GROUPS;
	for (size_t i = 0; i < TOY_GROUPS; i++)
		q->toy.groups[i].standby_max_nodes = 0;
	for (size_t i = 0; i < TOY_POOLS; i++)
		q->records[i] = (struct advice_record){ 0, q->served[i], q->lost[i] };
}

static void ask(struct asked *q)
{
	q->count = advice_candidates(&q->toy.setup, q->records, &q->toy.arena, q->out, q->trials);
}

static const struct advice *found(const struct asked *q, const char *setting)
{
	for (size_t i = 0; i < q->count; i++)
		if (!strcmp(q->out[i].setting, setting))
			return &q->out[i];
	return NULL;
}

static const struct trial_world *with(const struct asked *q, const char *setting)
{
	const struct advice *a = found(q, setting);

	if (!a)
		fail_msg("not tried: %s", setting);
	return q->trials[a - q->out].with;
}

static void without_a_reason_few_are_tried(void **state)
{
	struct asked q;

	(void)state;
	begin(&q);
	ask(&q);
	assert_int_equal(q.count, 3);
	assert_int_equal(with(&q, "headroom.min: 1")->pools[0].headroom_min, 1);
	assert_int_equal(with(&q, "headroom.min: 2")->pools[0].headroom_min, 2);
	assert_int_equal(with(&q, "objective.attainment: 95%")->pools[0].objective_late_ppm, 50000);
	assert_int_equal(q.toy.pools[0].headroom_min, 0); /* the fleet of now stays */
	arena_release(&q.toy.arena);
}

static void a_limit_that_bound_is_raised(void **state)
{
	struct asked q;

	(void)state;
	begin(&q);
	q.toy.pools[0].budget_per_hour = 10000000;
	q.records[0].held_by = 1u << LIMIT_MAX | 1u << LIMIT_BUDGET;
	ask(&q);
	assert_int_equal(with(&q, "nodeGroups[first].max: 75")->groups[0].max_nodes, 75);
	assert_int_equal(with(&q, "nodeGroups[second].max: 75")->groups[1].max_nodes, 75);
	assert_int_equal(with(&q, "budget.dollarsPerHour: 15.00")->pools[0].budget_per_hour, 15000000);
	assert_string_equal(found(&q, "nodeGroups[first].max: 75")->needs, "quota for 75 machines");
	arena_release(&q.toy.arena);
}

static void a_cheaper_or_sounder_group_comes_first(void **state)
{
	static const struct {
		const char *name;
		int64_t price, served, lost, lost_by_second;
		bool is_tried;
	} cases[] = {
		{ "equal", 3600000, 9, 0, 0, false },
		{ "cheaper", 3500000, 9, 0, 0, true },
		{ "dearer", 3700000, 9, 0, 0, false },
		{ "the first fails", 3700000, 9, 4, 0, true },
		{ "too seldom to tell", 3700000, 0, 3, 0, false },
		{ "one in five fails", 3700000, 20, 5, 0, false },
		{ "both fail", 3700000, 9, 4, 9, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct asked q;
		begin(&q);
		q.toy.groups[1].price_per_hour = cases[i].price;
		q.served[0][0] = cases[i].served;
		q.lost[0][0] = cases[i].lost;
		q.lost[0][1] = cases[i].lost_by_second;
		ask(&q);
		if (!found(&q, "nodeGroups: second first") == cases[i].is_tried)
			fail_msg("%s", cases[i].name);
		if (cases[i].is_tried) {
			const struct pool_spec *p = &with(&q, "nodeGroups: second first")->pools[0];
			assert_int_equal(p->groups[0], 1);
			assert_int_equal(p->groups[1], 0);
		}
		arena_release(&q.toy.arena);
	}
}

static void standby_is_left_out_and_doubled(void **state)
{
	struct asked q;

	(void)state;
	begin(&q);
	q.toy.groups[0].standby_max_nodes = 20;
	q.toy.groups[1].standby_max_nodes = 40;
	ask(&q);
	assert_int_equal(with(&q, "nodeGroups[first].standby.max: 0")->groups[0].standby_max_nodes, 0);
	assert_int_equal(with(&q, "nodeGroups[first].standby.max: 40")->groups[0].standby_max_nodes, 40);
	assert_non_null(found(&q, "nodeGroups[second].standby.max: 50")); /* no more than machines */
	arena_release(&q.toy.arena);
}

static void nobody_is_advised_who_does_not_act_or_serve(void **state)
{
	struct asked q;

	(void)state;
	begin(&q);
	q.toy.pools[0].mode = MODE_PAUSED;
	ask(&q);
	assert_int_equal(q.count, 0);
	q.toy.pools[0].mode = MODE_ACT;
	q.toy.traces[0].request_count = 0;
	ask(&q);
	assert_int_equal(q.count, 0);
	q.toy.given[0] = NULL;
	ask(&q);
	assert_int_equal(q.count, 0);
	arena_release(&q.toy.arena);
}

static void what_pays_is_kept(void **state)
{
	static const struct {
		const char *name;
		struct trial_result result; /* dollars, late, saved, late with it */
		double allowed_with;
		bool is_kept;
	} cases[] = {
		{ "saves and keeps the objective", { 100, .005, 3, .009, false }, .01, true },
		{ "saves too little", { 100, .005, 1, .005, false }, .01, false },
		{ "by chance", { 100, .005, 30, .005, true }, .01, false },
		{ "saves and misses", { 100, .005, 30, .011, false }, .01, false },
		{ "costs more", { 100, .005, -3, 0, false }, .01, false },
		{ "missed, and met with it", { 100, .02, -30, .01, false }, .01, true },
		{ "missed, met with it, whatever chance says", { 100, .02, -1, .001, true }, .01, true },
		{ "missed, and cheaper at the same lateness", { 100, .02, 10, .021, false }, .01, true },
		{ "missed, cheaper and later", { 100, .02, 10, .03, false }, .01, false },
		{ "another objective that is kept", { 100, .005, 10, .04, false }, .05, true },
		{ "another objective, dearer", { 100, .02, -10, .01, false }, .05, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct advice a = { .allowed = .01, .allowed_with = cases[i].allowed_with, .result = cases[i].result };
		if ((advice_keep(&a, 1) == 1) != cases[i].is_kept)
			fail_msg("%s", cases[i].name);
	}
}

static void what_mends_comes_before_what_saves(void **state)
{
	struct advice all[] = {
		{ .setting = "asks", .allowed = .01, .allowed_with = .05, .result = { 100, .02, 50, .02, false } },
		{ .setting = "saves", .allowed = .01, .allowed_with = .01, .result = { 100, .02, 5, .02, false } },
		{ .setting = "mends", .allowed = .01, .allowed_with = .01, .result = { 100, .02, -20, .01, false } },
		{ .setting = "wastes", .allowed = .01, .allowed_with = .01, .result = { 100, .02, -20, .02, false } },
		{ .setting = "saves more", .allowed = .01, .allowed_with = .01, .result = { 100, .02, 9, .02, false } },
	};

	(void)state;
	assert_int_equal(advice_keep(all, 5), 4);
	assert_string_equal(all[0].setting, "mends");
	assert_string_equal(all[1].setting, "saves more");
	assert_string_equal(all[2].setting, "saves");
	assert_string_equal(all[3].setting, "asks");
}

/* A group of two pools: one change, and no harm to either. */
static void what_is_shared_is_told_once_and_harms_nobody(void **state)
{
	const struct trial_result pays = { 100, .005, 9, .009, false }, misses = { 100, .005, 9, .02, false };
	struct advice all[] = {
		{ .pool = 0,
		  .setting = "g.max",
		  .is_shared = true,
		  .allowed = .01,
		  .allowed_with = .01,
		  .result = pays },
		{ .pool = 1,
		  .setting = "g.max",
		  .is_shared = true,
		  .allowed = .01,
		  .allowed_with = .01,
		  .result = pays },
		{ .pool = 0,
		  .setting = "h.max",
		  .is_shared = true,
		  .allowed = .01,
		  .allowed_with = .01,
		  .result = pays },
		{ .pool = 1,
		  .setting = "h.max",
		  .is_shared = true,
		  .allowed = .01,
		  .allowed_with = .01,
		  .result = misses },
		{ .pool = 0, .setting = "headroom", .allowed = .01, .allowed_with = .01, .result = pays },
		{ .pool = 1, .setting = "headroom", .allowed = .01, .allowed_with = .01, .result = pays },
	};

	(void)state;
	assert_int_equal(advice_keep(all, 6), 3);
	assert_string_equal(all[0].setting, "g.max");
	assert_int_equal(all[0].pool, 0);
	assert_string_equal(all[1].setting, "headroom");
	assert_string_equal(all[2].setting, "headroom");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_reason_few_are_tried),
		cmocka_unit_test(a_limit_that_bound_is_raised),
		cmocka_unit_test(a_cheaper_or_sounder_group_comes_first),
		cmocka_unit_test(standby_is_left_out_and_doubled),
		cmocka_unit_test(nobody_is_advised_who_does_not_act_or_serve),
		cmocka_unit_test(what_pays_is_kept),
		cmocka_unit_test(what_mends_comes_before_what_saves),
		cmocka_unit_test(what_is_shared_is_told_once_and_harms_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
