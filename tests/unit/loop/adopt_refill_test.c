/* A machine of several replicas on its way to standby that is to serve: asked for once, and whole. */
#include "controller/loop/observe.h"

#include "tests/unit/loop/played_controller.h"

#define POOL(gpus)                                                                                             \
	"apiVersion: preheat.dev/v1alpha1\n"                                                                   \
	"kind: WarmPool\n"                                                                                     \
	"metadata: { name: chat, namespace: llm }\n"                                                           \
	"spec:\n"                                                                                              \
	"  mode: act\n"                                                                                        \
	"  class: interactive\n"                                                                               \
	"  objective: { queueWait: 2s, attainment: 99% }\n"                                                    \
	"  workload: { selector: { matchLabels: { app: chat } }, gpusPerReplica: " gpus ", maxSequences: 8,\n" \
	"    interTokenLatency: 30ms }\n"                                                                      \
	"  nodeGroups:\n"                                                                                      \
	"    - { name: od, provider: simulated, gpusPerNode: 4, pricePerHour: 4.8, max: 10,\n"                 \
	"        standby: { max: 4, priceShare: 2%, leadTime: { p50: 60s, p95: 90s } } }\n"                    \
	"  leadTime: { total: { p50: 200s, p95: 300s } }\n"

static struct controller *c;
static struct pool_plan plan;
static struct group_decision asked_of;

static int set_up(void **state)
{
	(void)state;
	c = play_controller(POOL("1"));
	cloud_tells(c, 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	c->plan = (struct plan){ 0 };
	close_controller(c);
	return 0;
}

static void decide(struct group_decision d)
{
	asked_of = d;
	plan = (struct pool_plan){ .groups = &asked_of, .group_count = 1 };
	c->plan = (struct plan){ &plan, 1 };
	look_at_pools(c);
	c->snapshot.now = clock_now(c->clock);
	c->has_decided = true;
	tick_act(c);
}

static int64_t starts_of(enum start_kind kind)
{
	int64_t n = 0;

	for (size_t i = 0; i < c->starts.count; i++)
		n += c->starts.items[i].kind == kind;
	return n;
}

static void a_refill_that_serves_two_is_no_refill_for_the_others(void **state)
{
	static const struct {
		int64_t machines, adopted; /* refills on their way; replicas that shall serve on them */
		int64_t asked, refills;	   /* machines that run then; replicas that are still to be stopped */
	} cases[] = { { 1, 1, 1, 0 }, { 1, 4, 1, 0 }, { 2, 2, 1, 4 }, { 2, 4, 1, 4 }, { 2, 5, 2, 0 }, { 3, 6, 2, 4 } };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		decide((struct group_decision){ .refill = cases[i].machines * 4 });
		assert_int_equal(c->groups[0]->standby_wanted, cases[i].machines);
		decide((struct group_decision){ .adopt_refill = cases[i].adopted });
		assert_int_equal(c->groups[0]->wanted, cases[i].asked);
		assert_int_equal(c->groups[0]->standby_wanted, cases[i].machines - cases[i].asked);
		assert_int_equal(starts_of(START_COLD), cases[i].adopted);
		assert_int_equal(starts_of(START_REFILL), cases[i].refills);
		tear_down(state);
		set_up(state);
	}
}

/* Until they are stopped, also to the policy, whose plan says how many nodes there are to be. */
static void what_starts_in_order_to_be_stopped_is_a_node(void **state)
{
	(void)state;
	decide((struct group_decision){ .cold = 4, .refill = 8 });
	look_at_pools(c);
	assert_int_equal(c->groups[0]->wanted, 1);
	assert_int_equal(observe_snapshot(c, &c->tick.arena).pools[0].groups[0].nodes, 3);
	decide((struct group_decision){ .adopt_refill = 4 });
	look_at_pools(c);
	assert_int_equal(c->groups[0]->wanted, 2);
	assert_int_equal(observe_snapshot(c, &c->tick.arena).pools[0].groups[0].nodes, 3);
}

/* A replica of three GPUs takes a whole machine of four. */
static void what_a_replica_leaves_over_is_nobodys(void **state)
{
	tear_down(state);
	c = play_controller(POOL("3"));
	cloud_tells(c, 0);
	decide((struct group_decision){ .refill = 4 });
	look_at_pools(c);
	assert_int_equal(observe_snapshot(c, &c->tick.arena).pools[0].groups[0].nodes, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_refill_that_serves_two_is_no_refill_for_the_others, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_starts_in_order_to_be_stopped_is_a_node, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_a_replica_leaves_over_is_nobodys, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
