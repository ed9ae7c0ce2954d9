/* Machines on their way that nobody waits for: their end waits for the API server's word that they have no node. */
#include "tests/unit/loop/played_controller.h"

#define POOL(gpus, min)                                                                                        \
	"apiVersion: preheat.dev/v1alpha1\n"                                                                   \
	"kind: WarmPool\n"                                                                                     \
	"metadata: { name: chat, namespace: llm }\n"                                                           \
	"spec:\n"                                                                                              \
	"  mode: act\n"                                                                                        \
	"  class: interactive\n"                                                                               \
	"  objective: { queueWait: 2s, attainment: 99% }\n"                                                    \
	"  workload: { selector: { matchLabels: { app: chat } }, maxSequences: 8, interTokenLatency: 30ms }\n" \
	"  nodeGroups: [ { name: g5, provider: simulated, gpusPerNode: " gpus ", pricePerHour: 1.2, min: " min \
	", max: 10 } ]\n"                                                                                      \
	"  leadTime: { total: { p50: 200s, p95: 300s } }\n"                                                    \
	"  scaleDown: { after: 10m }\n"

static struct controller *c;

/* A machine that is on its way, and a start that waits for it. */
static int set_up(void **state)
{
	(void)state;
	c = play_controller(POOL("1", "0"));
	have_machine(0, "m1", MACHINE_PENDING);
	cloud_tells(c, 0);
	assert_int_equal(c->starts.count, 1);
	c->starts.items[0].is_found = false;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close_controller(c);
	return 0;
}

static void cancel_it(void)
{
	act_on(c, (struct group_decision){ .cancel_cold = 1 }, 0);
	settle_calls();
}

static void without_a_node_it_is_ended(void **state)
{
	(void)state;
	cancel_it();
	assert_non_null(asked("GET", "/api/v1/nodes?labelSelector=simulated.preheat.dev%2Fnode-group%3Dg5"));
	assert_true(node_group_is_removing(c->groups[0], "m1"));
	assert_true(machine_cancels_actor.is_idle(c));
}

/* The watch stands and is silent; the provider's id is in another case there. */
static void with_a_node_that_no_watch_shows_it_is_kept(void **state)
{
	(void)state;
	server.unseen_node = "Simulated://M1";
	cancel_it();
	assert_false(node_group_is_removing(c->groups[0], "m1"));
	assert_int_equal(c->starts.count, 1); /* it is on its way as before, and none is bought in its place */
	assert_string_equal(c->starts.items[0].machine, "m1");
}

static void until_it_is_known_it_is_kept(void **state)
{
	(void)state;
	server.hides_nodes = true;
	cancel_it();
	assert_false(node_group_is_removing(c->groups[0], "m1"));
	server.hides_nodes = false;
	play_until(play_now() + MINUTE);
	act_soon(c);
	settle_calls();
	assert_true(node_group_is_removing(c->groups[0], "m1"));
}

static void what_others_added_is_no_surplus_at_once(void **state)
{
	(void)state;
	c->starts.items[0].is_found = true;
	cancel_it();
	assert_int_equal(c->starts.count, 1);
	clock_turn((struct clock *)(uintptr_t)c->clock, 11 * MINUTE);
	cancel_it();
	assert_int_equal(c->starts.count, 0);
	assert_true(node_group_is_removing(c->groups[0], "m1"));
}

static void what_is_under_way_ends_when_we_stop(void **state)
{
	(void)state;
	act_on(c, (struct group_decision){ .cancel_cold = 1 }, 0);
	play_until(play_now() + 10);
	assert_false(machine_cancels_actor.is_idle(c));
	c->leader.state = STATE_SETTLING;
	tick_stop(c);
	play_until(play_now() + 10);
	assert_true(machine_cancels_actor.is_idle(c));
	assert_null(c->cancels.first);
}

/* The group is at its least: of two replicas that wait for its one machine one goes, and the machine stays for the
 * other. */
static void where_no_machine_may_go_a_replica_beside_another_does(void **state)
{
	(void)state;
	close_controller(c);
	c = play_controller(POOL("2", "1"));
	have_machine(0, "m1", MACHINE_PENDING);
	cloud_tells(c, 0);
	assert_int_equal(c->starts.count, 2);
	c->starts.items[0].is_found = c->starts.items[1].is_found = false;
	act_on(c, (struct group_decision){ .cancel_cold = 2 }, 0);
	settle_calls();
	assert_int_equal(c->starts.count, 1);
	assert_false(node_group_is_removing(c->groups[0], "m1"));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(without_a_node_it_is_ended),	   CASE(with_a_node_that_no_watch_shows_it_is_kept),
		CASE(until_it_is_known_it_is_kept),	   CASE(what_others_added_is_no_surplus_at_once),
		CASE(what_is_under_way_ends_when_we_stop), CASE(where_no_machine_may_go_a_replica_beside_another_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
