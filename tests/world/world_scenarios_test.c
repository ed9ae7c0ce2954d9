/* What tests/scenario plays on a rig, in a world of its own: the whole controller, in seconds. */
#include "controller/policy/snapshot.h"
#include "controller/web/published.h"
#include "tests/world/lawful.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char chat_text[] =
	"apiVersion: preheat.dev/v1alpha1\n"
	"kind: WarmPool\n"
	"metadata: { name: chat, namespace: llm }\n"
	"spec:\n"
	"  mode: act\n"
	"  class: interactive\n"
	"  objective: { queueWait: 2s, attainment: 99% }\n"
	"  workload: { selector: { matchLabels: { app: chat } }, scaleTargetRef: { apiVersion: apps/v1, kind: "
	"Deployment,\n"
	"      name: chat }, gpusPerReplica: 1, maxSequences: 8, prefillTokensPerSecond: 25k, interTokenLatency: 30ms "
	"}\n"
	"  signals: { engine: vllm, scrape: { port: 8000, path: /metrics, interval: 15s } }\n"
	"  nodeGroups:\n"
	"    - { name: chat-spot, provider: simulated, simulated: { endpoint: \"http://cloud.world\" }, zone: z1,\n"
	"        instanceType: g5.xlarge, capacityType: spot, gpusPerNode: 1, pricePerHour: 0.48, min: 0, max: 12 }\n"
	"    - { name: chat-od, provider: simulated, simulated: { endpoint: \"http://cloud.world\" }, zone: z1,\n"
	"        instanceType: g5.xlarge, capacityType: on-demand, gpusPerNode: 1, pricePerHour: 1.21, min: 1, max: "
	"8,\n"
	"        standby: { max: 4, priceShare: 2%, leadTime: { p50: 120s, p95: 200s } } }\n"
	"  leadTime: { provision: { p50: 45s, p95: 70s }, register: { p50: 20s, p95: 30s }, device: { p50: 15s, p95: "
	"30s },\n"
	"      image: { p50: 60s, p95: 90s }, load: { p50: 60s, p95: 90s } }\n"
	"  headroom: { min: 2 }\n"
	"  scaleDown: { after: 5m }\n";

static const struct replica_settings alone = { .manifest = chat_text };
static struct world_app *chat;
static struct cloud_group *spot, *on_demand;
static bool is_held;

static int set_up(void **state)
{
	(void)state;
	world_begin(1);
	spot = world_group("chat-spot", "chat", 1, 0, 12, 0);
	on_demand = world_group("chat-od", "chat", 1, 0, 8, 1);
	on_demand->standby_max = 4;
	chat = world_app("chat", 1, 1, "25%");
	return 0;
}

static bool serves_two(void)
{
	return world_ready("chat") >= 2;
}

/* It comes to its headroom, and then leaves a world alone in which nothing changes. */
static void it_settles_and_leaves_a_still_world_alone(void **state)
{
	(void)state;
	replica_start(0, &alone);
	until(serves_two, 20 * MINUTE, "two replicas of headroom serve");
	until(world_is_at_rest, 30 * MINUTE, "nothing is on its way");
	run(10 * MINUTE);
	laws_stand_still(true);
	run(60 * MINUTE);
}

static bool serves_four(void)
{
	return world_ready("chat") >= 4;
}

/* The selector matches what another Deployment made, too: what is ready there is no reason for more of ours. */
static void pods_of_another_workload_do_not_grow_it(void **state)
{
	(void)state;
	cloud_owner_sets(on_demand, 6);
	world_app("other", 4, 1, "");
	struct value *template = value_at(apiserver_find(KIND_DEPLOYMENT, "llm", "other")->value, "spec>template");
	value_set_text(template, "metadata>labels>app", "chat");
	value_set_text(template, "spec>nodeSelector>pool", "chat");
	until(serves_four, 20 * MINUTE, "the others serve");
	replica_start(0, &alone);
	for (int i = 0; i < 12; i++) {
		run(10 * MINUTE);
		if (i == 6) { /* and whoever starts anew has to look first */
			replica_stop(0);
			replica_start(0, &alone);
		}
		assert_int_equal(world_replicas("chat"), 1);
	}
	assert_true(world_event_told("SelectorMatchesOthers"));
}

static bool is_grown(void)
{
	return world_ready("chat") >= 5;
}

/* chat-od has a least of one: it stands, even where both replicas serve in the other. */
static bool is_down(void)
{
	return world_desired("chat") <= 2 + (spot->desired >= 2) && world_is_at_rest();
}

/* Serves with its headroom, and nothing is on its way. */
static void begin(const struct replica_settings *s)
{
	replica_start(0, s);
	until(serves_two, 20 * MINUTE, "two replicas of headroom serve");
	until(world_is_at_rest, 30 * MINUTE, "nothing is on its way");
}

static void grows_with_traffic_and_shrinks_after_it(void **state)
{
	(void)state;
	begin(&alone);
	chat->rate = 4; /* 25 sequences: more than three replicas */
	until(is_grown, 20 * MINUTE, "replicas for the traffic serve");
	run(20 * MINUTE);
	assert_int_equal(chat->waiting, 0);
	chat->rate = 0;
	until(is_down, 3 * HOUR, "it comes down to its headroom");
	laws_stand_still(true);
	run(30 * MINUTE);
}

static int64_t total_bought(void)
{
	return spot->bought + on_demand->bought;
}

static bool is_bought(void)
{
	return world_desired("chat") >= 4;
}

static bool has_fallen_back(void)
{
	return spot->failure_count > 0 && on_demand->desired >= 4;
}

static void a_stock_out_falls_back_to_the_next_group(void **state)
{
	(void)state;
	begin(&alone);
	spot->faults.stock_out = -1;
	chat->rate = 4;
	until(has_fallen_back, 30 * MINUTE, "machines of the next group are asked for");
	assert_true(world_event_told("StockOut"));
	until(is_grown, 20 * MINUTE, "replicas serve on them");
	spot->faults.stock_out = 0;
	chat->rate = 0;
	until(is_down, 3 * HOUR, "it comes down");
}

static void a_refusal_in_the_answer_falls_back_at_once(void **state)
{
	(void)state;
	begin(&alone);
	spot->faults.stock_out = -1;
	spot->faults.at_once = true;
	chat->rate = 4;
	until(is_grown, 20 * MINUTE, "replicas serve on the next group");
	assert_int_equal(spot->desired + on_demand->desired, world_desired("chat"));
}

static void a_lost_answer_buys_nothing_twice(void **state)
{
	(void)state;
	begin(&alone);
	spot->faults.lost_answer = on_demand->faults.lost_answer = 2;
	chat->rate = 4;
	until(is_grown, 20 * MINUTE, "replicas for the traffic serve");
	assert_int_equal(spot->faults.lost_answer, 0);
	run(10 * MINUTE);
}

static void a_bad_cloud_is_asked_again(void **state)
{
	(void)state;
	begin(&alone);
	spot->faults = (struct cloud_faults){ .hang = 2, .throttle = 2, .server_error = 2 };
	chat->rate = 4;
	until(is_grown, 30 * MINUTE, "replicas for the traffic serve");
}

static bool is_adopted(void)
{
	return world_ready("chat") >= 4 && world_is_at_rest();
}

/* Killed after each of the first events of a growth, and begun anew on the same disk: the laws count what is bought. */
static void killed_at_any_step_it_buys_nothing_twice(void **state)
{
	tear_down(state);
	for (int64_t step = 0; step < 120; step++) {
		set_up(state);
		begin(&alone);
		chat->rate = 4;
		until(is_bought, 20 * MINUTE, "machines are asked for");
		world_events(step);
		replica_kill(0);
		run(step % 3 * 20 * SECOND);
		replica_start(0, &alone);
		until(is_adopted, 30 * MINUTE, "what was on its way serves");
		if (step < 119)
			tear_down(state);
	}
}

static const struct replica_settings elected = { .manifest = chat_text, .elects = true };

static bool zero_leads(void)
{
	return replica_leader() == 0;
}

static bool one_leads(void)
{
	return replica_leader() == 1;
}

static void begin_two(void)
{
	replica_start(0, &elected);
	until(zero_leads, MINUTE, "the first leads");
	replica_start(1, &elected);
	until(serves_two, 20 * MINUTE, "two replicas of headroom serve");
	until(world_is_at_rest, 30 * MINUTE, "nothing is on its way");
}

static void the_other_goes_on_when_the_leader_dies(void **state)
{
	(void)state;
	begin_two();
	chat->rate = 4;
	until(is_bought, 20 * MINUTE, "machines are asked for");
	replica_kill(0);
	until(one_leads, MINUTE, "the other leads");
	replica_start(0, &elected);
	until(is_grown, 20 * MINUTE, "replicas for the traffic serve");
	assert_true(one_leads());
	run(10 * MINUTE);
	replica_stop(1);
	until(zero_leads, MINUTE, "the first leads again, as the lease was given back");
	chat->rate = 0;
	until(is_down, 3 * HOUR, "it comes down");
}

/* It wakes up in the belief that it leads, and may not act on it. */
static void a_leader_that_stood_still_follows(void **state)
{
	(void)state;
	begin_two();
	for (int i = 0; i < 10; i++) {
		int leader = replica_leader();
		chat->rate = i % 2 ? 0.5 : 4 + i;
		run(3 * MINUTE + i * 1300);
		replica_pause(leader, true);
		run(7 * SECOND + i * 3100);
		replica_pause(leader, false);
		run(5 * MINUTE);
	}
	chat->rate = 0;
	until(is_down, 3 * HOUR, "it comes down");
}

/* The next purchase is decided, and its process stands still before it leaves. */
static struct wire_fate stop_before_it_leaves(const struct wire_call *c)
{
	bool is_purchase = !strcmp(c->method, "POST") && strstr(c->path, "/grow");

	if (!is_purchase || is_held)
		return (struct wire_fate){ 0 };
	is_held = true;
	replica_pause(0, true);
	return (struct wire_fate){ .is_held = true };
}

static bool has_stopped(void)
{
	return is_held;
}

/* Nobody else can lead; what it wakes up with was decided before all the same, and nobody needs it by then. */
static void without_election_nothing_of_before_a_stop_leaves(void **state)
{
	(void)state;
	begin(&alone);
	is_held = false;
	wire_on_leave(stop_before_it_leaves);
	chat->rate = 4;
	until(has_stopped, 20 * MINUTE, "machines are about to be asked for");
	chat->rate = 0;
	int64_t before = total_bought();
	run(5 * MINUTE);
	replica_pause(0, false);
	run(SECOND);
	assert_int_equal(total_bought(), before);
	chat->rate = 4;
	until(is_grown, 20 * MINUTE, "it acts on, and replicas for the traffic serve");
}

static void without_its_lease_it_writes_nothing(void **state)
{
	(void)state;
	replica_start(0, &elected);
	until(serves_two, 20 * MINUTE, "two replicas of headroom serve");
	chat->rate = 4;
	run(30 * SECOND);
	laws_expect_errors(true);
	apiserver_faults()->is_away = true;
	apiserver_cut_watches();
	int64_t before = total_bought();
	run(11 * SECOND);
	int64_t written = laws_writes();
	run(2 * MINUTE);
	assert_int_equal(laws_writes(), written);
	assert_true(total_bought() >= before);
	apiserver_faults()->is_away = false;
	laws_expect_errors(false);
	until(is_grown, 20 * MINUTE, "it leads again, and replicas for the traffic serve");
}

static void an_api_server_that_forgets_is_read_anew(void **state)
{
	(void)state;
	begin(&alone);
	for (int i = 0; i < 6; i++) {
		chat->rate = i % 2 ? 0 : 4;
		apiserver_faults()->is_away = true;
		apiserver_cut_watches();
		run(20 * SECOND);
		apiserver_forget_versions();
		apiserver_faults()->is_away = false;
		run(15 * MINUTE);
	}
	chat->rate = 0;
	until(is_down, 3 * HOUR, "it comes down");
}

/* Nothing is given back on what is not known; then the surplus goes. */
static void blackouts_give_nothing_back(void **state)
{
	(void)state;
	begin(&alone);
	chat->rate = 6;
	until(is_grown, 20 * MINUTE, "replicas for the traffic serve");
	run(10 * MINUTE);
	chat->is_mute = true;
	chat->rate = 0;
	run(2 * MINUTE);
	int64_t desired = world_desired("chat");
	run(HOUR);
	assert_true(world_desired("chat") >= desired);
	chat->is_mute = false;
	until(is_down, 3 * HOUR, "the surplus goes");
}

static bool is_stopped(void)
{
	for (const struct cloud_machine *m = on_demand->machines; m; m = m->next)
		if (m->step == STEP_STOPPED)
			return true;
	return false;
}

static bool is_woken(void)
{
	for (const struct cloud_machine *m = on_demand->machines; m; m = m->next)
		if (m->was_stopped && m->step == STEP_RUNNING)
			return true;
	return false;
}

/* Of those that stand by, what never ran is told apart. */
static void look_at_standby(int64_t *have_run)
{
	const struct group_input *g = &replica_published(0)->snapshot->pools[0].groups[1];
	int64_t first = 0;

	for (const struct cloud_machine *m = on_demand->machines; m; m = m->next)
		if (!m->is_to_run && m->step != STEP_TERMINATING)
			*(m->was_to_run ? have_run : &first) += 1;
	assert_int_equal(g->standby_first, first);
}

static void standby_machines_are_stopped_and_woken(void **state)
{
	int64_t have_run = 0;

	(void)state;
	begin(&alone);
	spot->faults.stock_out = -1;
	for (int i = 0; i < 6 && !is_stopped(); i++) {
		chat->rate = 5;
		run(20 * MINUTE);
		look_at_standby(&have_run);
		chat->rate = 0;
		run(40 * MINUTE);
		look_at_standby(&have_run);
	}
	assert_true(is_stopped());
	for (int minute = 0; minute < 60; minute++) {
		run(MINUTE);
		look_at_standby(&have_run);
	}
	assert_true(have_run > 0);
	chat->rate = 7;
	until(is_woken, HOUR, "a stopped machine is woken");
}

static void a_restart_knows_how_many_never_ran(void **state)
{
	int64_t have_run = 0;

	(void)state;
	begin(&alone);
	spot->faults.stock_out = -1;
	chat->rate = 4;
	until(is_stopped, HOUR, "a machine stands by");
	for (int life = 0; life < 2; life++) {
		run(5 * MINUTE);
		look_at_standby(&have_run);
		assert_true(replica_published(0)->snapshot->pools[0].groups[1].standby_first > 0);
		replica_stop(0);
		replica_start(0, &alone);
	}
}

static void spot_machines_that_are_taken_are_replaced(void **state)
{
	(void)state;
	begin(&alone);
	chat->rate = 4;
	until(is_grown, 20 * MINUTE, "replicas for the traffic serve");
	cloud_take(spot, 2);
	run(3 * MINUTE);
	until(is_grown, 20 * MINUTE, "replicas for the traffic serve again");
}

static void machines_that_never_come_are_replaced(void **state)
{
	(void)state;
	begin(&alone);
	spot->faults.never_registers = 1;
	spot->faults.no_device = 1;
	chat->rate = 4;
	until(is_grown, 90 * MINUTE, "replicas for the traffic serve");
	chat->rate = 0;
	until(is_down, 4 * HOUR, "it comes down, and nothing is left over");
}

static void a_dry_run_writes_nothing(void **state)
{
	static const struct replica_settings dry = { .manifest = chat_text, .is_dry_run = true };

	(void)state;
	laws_dry_run();
	replica_start(0, &dry);
	chat->rate = 5;
	run(HOUR);
	assert_int_equal(laws_writes(), 0);
}

/* Else a seed would tell nothing. */
static void two_runs_of_a_seed_are_one(void **state)
{
	uint64_t hashes[2];

	tear_down(state);
	for (int i = 0; i < 2; i++) {
		set_up(state);
		begin_two();
		chat->rate = 5;
		run(HOUR);
		hashes[i] = laws_trace_hash();
		if (!i)
			tear_down(state);
	}
	assert_true(hashes[0] == hashes[1]);
}

#define SCENARIO(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

/* With a name, or a part of it with *, only those. */
int main(int argc, char **argv)
{
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	const struct CMUnitTest tests[] = {
		SCENARIO(it_settles_and_leaves_a_still_world_alone),
		SCENARIO(pods_of_another_workload_do_not_grow_it),
		SCENARIO(grows_with_traffic_and_shrinks_after_it),
		SCENARIO(a_stock_out_falls_back_to_the_next_group),
		SCENARIO(a_refusal_in_the_answer_falls_back_at_once),
		SCENARIO(a_lost_answer_buys_nothing_twice),
		SCENARIO(a_bad_cloud_is_asked_again),
		SCENARIO(killed_at_any_step_it_buys_nothing_twice),
		SCENARIO(the_other_goes_on_when_the_leader_dies),
		SCENARIO(a_leader_that_stood_still_follows),
		SCENARIO(without_election_nothing_of_before_a_stop_leaves),
		SCENARIO(without_its_lease_it_writes_nothing),
		SCENARIO(an_api_server_that_forgets_is_read_anew),
		SCENARIO(blackouts_give_nothing_back),
		SCENARIO(standby_machines_are_stopped_and_woken),
		SCENARIO(a_restart_knows_how_many_never_ran),
		SCENARIO(spot_machines_that_are_taken_are_replaced),
		SCENARIO(machines_that_never_come_are_replaced),
		SCENARIO(a_dry_run_writes_nothing),
		SCENARIO(two_runs_of_a_seed_are_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
