/* What is left of a memory when the manifest changes. */
#include "controller/policy/policy_state.h"
#include "tests/unit/policy/toy.h"

/* A pool that has run for half a day, with its first group in back-off. */
static void live(struct toy *t)
{
	toy_init(t, 2);
	toy_begin(t, 5);
	t->demand = 10;
	toy_run(t, 12 * HOUR);
	t->memory->groups[0] = (struct group_memory){ t->now + 60000, 0, 3, ERROR_STOCKOUT };
}

static bool is_same_memory(const struct policy_state *a, const struct policy_state *b)
{
	CLEANUP(buf_release) struct buf left = { 0 };
	CLEANUP(buf_release) struct buf right = { 0 };

	policy_state_encode(a, &left);
	policy_state_encode(b, &right);
	return left.len == right.len && !memcmp(left.text, right.text, left.len);
}

/* Thousands of requests a second, all late under some rule for days: squares of counts are larger than counts. */
static void the_memory_of_much_traffic_is_read_back(void **state)
{
	struct toy t;
	struct error e = { 0 };
	CLEANUP(buf_release) struct buf bytes = { 0 };

	(void)state;
	live(&t);
	t.memory->pools[0].shadows[0].late = 7.2e8;
	t.memory->pools[0].shadows[0].late_hour = 1e7;
	t.memory->pools[0].shadows[0].late_squares = 5e15;
	policy_state_encode(t.memory, &bytes);
	struct policy_state *m = policy_state_decode(bytes.text, bytes.len, &t.fleet, &e);
	assert_non_null(m);
	assert_true(is_same_memory(m, t.memory));
	policy_state_free(m);
	toy_end(&t);
}

/* The first rules use no fast tiers, so nothing has room for what wakes. */
static void a_memory_in_which_a_hot_fleet_wakes_is_refused(void **state)
{
	struct toy t;
	struct error e = { 0 };
	CLEANUP(buf_release) struct buf bytes = { 0 };

	(void)state;
	live(&t);
	t.memory->pools[0].shadows[0].wake = 1;
	policy_state_encode(t.memory, &bytes);
	assert_null(policy_state_decode(bytes.text, bytes.len, &t.fleet, &e));
	assert_non_null(strstr(e.message, "damaged"));
	toy_end(&t);
}

/* For what is taken out of the memory of a toy. */
static struct policy_state *copy_of(const struct toy *t)
{
	CLEANUP(buf_release) struct buf bytes = { 0 };
	struct error e = { 0 };

	policy_state_encode(t->memory, &bytes);
	struct policy_state *copy = policy_state_decode(bytes.text, bytes.len, &t->fleet, &e);
	assert_non_null(copy);
	return copy;
}

static struct policy_state *migrated(const struct toy *t, const struct fleet_spec *now)
{
	struct policy_state *copy = copy_of(t), *m = policy_state_migrate(copy, &t->fleet, now);

	policy_state_free(copy);
	return m;
}

static void equal_fleets_change_nothing(void **state)
{
	struct toy t;

	(void)state;
	live(&t);
	struct policy_state *m = migrated(&t, &t.fleet);
	assert_true(is_same_memory(m, t.memory));
	policy_state_free(m);
	toy_end(&t);
}

/* Each has what it would have alone, whoever leaves the others. */
static void pools_that_say_the_same_share_their_rules(void **state)
{
	struct toy t;

	(void)state;
	live(&t);
	struct pool_spec equal[] = { t.pool, t.pool }, differ[] = { t.pool, t.pool };
	struct fleet_spec was = t.fleet, now = t.fleet;
	equal[1].name = differ[1].name = "other";
	differ[1].objective_wait += 5000;
	was.pools = equal;
	now.pools = differ;
	was.pool_count = now.pool_count = 2;
	struct policy_state *m = policy_state_new(&was);
	const struct rule *shared = m->pools[0].family.rules;
	assert_ptr_equal(m->pools[1].family.rules, shared);
	struct policy_state *apart = policy_state_migrate(m, &was, &now);
	policy_state_free(m);
	assert_ptr_equal(apart->pools[0].family.rules, shared);
	assert_ptr_not_equal(apart->pools[1].family.rules, shared);
	m = policy_state_migrate(apart, &now, &was);
	policy_state_free(apart);
	assert_ptr_equal(m->pools[1].family.rules, shared);
	policy_state_free(m);
	toy_end(&t);
}

enum kept { KEPT_ALL, KEPT_MEASURED, KEPT_LEAD };

static void change_nothing(struct pool_spec *p)
{
	p->mode = MODE_PAUSED;
	p->headroom_min = 3;
	p->budget_per_hour = 1000000;
	p->shrink_priority = 1;
}
static void change_attainment(struct pool_spec *p)
{
	p->objective_late_ppm = 5000;
}
static void change_wait(struct pool_spec *p)
{
	p->objective_wait = 3000;
}
static void change_lead_time(struct pool_spec *p)
{
	p->lead_time.p95 = 600000;
}
static void change_groups(struct pool_spec *p)
{
	p->group_count = 1;
}
static void change_lending(struct pool_spec *p)
{
	p->lend_to = 1U << CLASS_BATCH;
}
static void change_capacity(struct pool_spec *p)
{
	p->max_sequences = 50;
}
static void change_replica(struct pool_spec *p)
{
	p->gpus_per_replica = 2;
}

static void assert_kept(const struct pool_policy_state *now, const struct pool_policy_state *was, enum kept kept)
{
	assert_int_equal(now->lead.samples, was->lead.samples);
	assert_int_equal(now->demand.level == was->demand.level, kept <= KEPT_MEASURED);
	assert_int_equal(now->ticks, kept == KEPT_ALL ? was->ticks : 0);
	assert_int_equal(now->shadows_run, kept == KEPT_ALL);
	assert_true((now->choice.rule == was->choice.rule) == (kept == KEPT_ALL));
	assert_true((now->record.arrived == was->record.arrived) == (kept == KEPT_ALL));
}

static void each_change_keeps_what_still_means_the_same(void **state)
{
	static const struct {
		void (*change)(struct pool_spec *p);
		enum kept kept;
		bool keeps_capacity, reviews;
	} cases[] = {
		{ change_nothing, KEPT_ALL, true, false },   { change_attainment, KEPT_ALL, true, true },
		{ change_wait, KEPT_MEASURED, true, true },  { change_lead_time, KEPT_MEASURED, true, true },
		{ change_groups, KEPT_ALL, true, false },    { change_lending, KEPT_MEASURED, true, true },
		{ change_capacity, KEPT_ALL, false, false }, { change_replica, KEPT_LEAD, false, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct toy t;

		live(&t);
		struct pool_spec pool = t.pool;
		struct fleet_spec fleet = { t.groups, 2, &pool, 1, NULL };
		cases[i].change(&pool);
		struct policy_state *m = migrated(&t, &fleet);
		const struct pool_policy_state *now = &m->pools[0], *was = &t.memory->pools[0];
		assert_kept(now, was, cases[i].kept);
		assert_int_equal(now->capacity.busiest == was->capacity.busiest, cases[i].keeps_capacity);
		assert_int_equal(now->choice.reviewed_at == 0, cases[i].reviews);
		policy_state_free(m);
		toy_end(&t);
	}
}

static void pools_are_known_by_name(void **state)
{
	struct toy t;

	(void)state;
	live(&t);
	struct pool_spec pools[3] = { t.pool, t.pool, t.pool };
	struct fleet_spec fleet = { t.groups, 2, pools, 3, NULL }, alone = { t.groups, 2, &t.pool, 1, NULL };
	pools[0].name = "code";
	pools[2].name = "embed";
	struct policy_state *m = migrated(&t, &fleet);
	assert_kept(&m->pools[1], &t.memory->pools[0], KEPT_ALL);
	assert_int_equal(m->pools[0].lead.samples, 0);
	assert_int_equal(m->pools[2].ticks, 0);
	struct policy_state *back = policy_state_migrate(m, &fleet, &alone);
	assert_true(is_same_memory(back, t.memory));
	policy_state_free(back);
	policy_state_free(m);
	pools[1].namespace = "other";
	m = migrated(&t, &fleet);
	assert_int_equal(m->pools[1].ticks, 0);
	policy_state_free(m);
	toy_end(&t);
}

static void back_offs_follow_their_group(void **state)
{
	struct toy t;

	(void)state;
	live(&t);
	struct group_spec groups[2] = { t.groups[1], t.groups[0] };
	struct fleet_spec fleet = { groups, 2, &t.pool, 1, NULL };
	struct policy_state *m = migrated(&t, &fleet);
	assert_int_equal(m->groups[0].refusals, 0);
	assert_int_equal(m->groups[1].refusals, 3);
	assert_int_equal(m->groups[1].blocked_until, t.memory->groups[0].blocked_until);
	policy_state_free(m);
	groups[1].provider = "eks";
	m = migrated(&t, &fleet);
	assert_int_equal(m->groups[1].refusals, 0);
	policy_state_free(m);
	toy_end(&t);
}

/* A manifest that changes under load lets nobody wait. */
static void a_change_does_not_shake_the_fleet(void **state)
{
	static void (*const changes[])(struct pool_spec *) = { change_wait, change_lead_time, change_attainment,
							       change_capacity };

	(void)state;
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		struct toy t;

		live(&t);
		t.memory->groups[0] = (struct group_memory){ 0 };
		struct pool_spec was = t.pool;
		struct fleet_spec before = { t.groups, 2, &was, 1, NULL };
		changes[i](&t.pool);
		struct policy_state *m = policy_state_migrate(t.memory, &before, &t.fleet);
		policy_state_free(t.memory);
		t.memory = m;
		for (int tick = 0; tick < 480; tick++) {
			toy_tick(&t);
			if (toy_ready(&t) < 10 || toy_ready(&t) > 30)
				fail_msg("change %zu, tick %d: %lld replicas for a demand of 10", i, tick,
					 (long long)toy_ready(&t));
		}
		toy_end(&t);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_memory_of_much_traffic_is_read_back),
		cmocka_unit_test(a_memory_in_which_a_hot_fleet_wakes_is_refused),
		cmocka_unit_test(equal_fleets_change_nothing),
		cmocka_unit_test(pools_that_say_the_same_share_their_rules),
		cmocka_unit_test(each_change_keeps_what_still_means_the_same),
		cmocka_unit_test(pools_are_known_by_name),
		cmocka_unit_test(back_offs_follow_their_group),
		cmocka_unit_test(a_change_does_not_shake_the_fleet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
