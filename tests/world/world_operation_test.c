/*
 * What owners of a node group do to its machines: updates, rebalancing, refreshes, schedules. Each goes step by step as
 * the vendor documents it (docs/providers.md); nothing of it is undone, and what is wanted meanwhile is had elsewhere.
 */
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
	"    - { name: first, provider: simulated, simulated: { endpoint: \"http://cloud.world\" }, zone: z1,\n"
	"        instanceType: g5.xlarge, gpusPerNode: 1, pricePerHour: 0.48, min: 0, max: 20 }\n"
	"    - { name: second, provider: simulated, simulated: { endpoint: \"http://cloud.world\" }, zone: z1,\n"
	"        instanceType: g5.xlarge, gpusPerNode: 1, pricePerHour: 1.21, min: 0, max: 20 }\n"
	"  leadTime: { provision: { p50: 45s, p95: 70s }, register: { p50: 20s, p95: 30s }, device: { p50: 15s, p95: "
	"30s },\n"
	"      image: { p50: 60s, p95: 90s }, load: { p50: 60s, p95: 90s } }\n"
	"  headroom: { min: 3 }\n"
	"  scaleDown: { after: 5m }\n";

static const struct replica_settings alone = { .manifest = chat_text };
static struct world_app *chat;
static struct cloud_group *first, *second;

static int set_up(void **state)
{
	(void)state;
	world_begin(1);
	first = world_group("first", "chat", 1, 0, 20, 1);
	second = world_group("second", "chat", 1, 0, 20, 0);
	chat = world_app("chat", 1, 1, "25%");
	return 0;
}

static bool serves_three(void)
{
	return world_ready("chat") >= 3;
}

static bool serves_eight(void)
{
	return world_ready("chat") >= 8;
}

static void begin(void)
{
	replica_start(0, &alone);
	until(serves_three, 30 * MINUTE, "the headroom serves");
	until(world_is_at_rest, 30 * MINUTE, "nothing is on its way");
	assert_int_equal(cloud_awake(second), 0);
}

static const char *problem(enum pool_problem p)
{
	const struct published *all = replica_published(0);

	return all && all->pools ? all->pools[0].problem[p] : NULL;
}

static bool is_ready(const struct cloud_machine *m)
{
	const struct object *node = world_node_of(m->id);

	return node && value_int(node->value, "status>allocatable>nvidia.com/gpu") > 0;
}

static bool are_all_ready(void)
{
	for (const struct cloud_machine *m = first->machines; m; m = m->next)
		if (m->step != STEP_TERMINATING && !is_ready(m))
			return false;
	return true;
}

static void cordon(const char *machine)
{
	struct object *node = world_node_of(machine);

	value_set(node->value, "spec>unschedulable", value_of("true"));
	apiserver_changed(node);
}

static struct cloud_machine *oldest(millis before)
{
	for (struct cloud_machine *m = first->machines; m; m = m->next)
		if (m->step == STEP_RUNNING && m->launched < before)
			return m;
	return NULL;
}

/* How EKS updates the version or the image of a managed node group; `surge`: up to twice as many as it has zones. */
enum { SURGE = 4 };
static const char update_text[] = "EKS updates node group first";

static void update_sets_up(void)
{
	cloud_owner_is_busy(first, update_text);
	run(2 * MINUTE);
}

static void update_scales_up(void)
{
	first->max += SURGE;
	cloud_owner_sets(first, first->desired + SURGE);
	until(are_all_ready, 10 * MINUTE, "the new nodes are Ready");
}

static void update_replaces(millis began)
{
	for (struct cloud_machine *m; (m = oldest(began));) {
		cordon(m->id);
		run(90 * SECOND); /* evictions, and a minute after the last */
		cloud_owner_replaces(m);
		until(are_all_ready, 10 * MINUTE, "the one in its place is Ready");
	}
}

static void update_scales_down(int64_t size)
{
	for (; first->desired > size; run(20 * SECOND))
		cloud_owner_sets(first, first->desired - 1);
	first->max -= SURGE;
	cloud_owner_is_busy(first, NULL);
}

static bool is_free(void)
{
	return !problem(PROBLEM_BUSY);
}

/* The law owner_is_let looks on. */
static void an_update_is_let_and_named(void **state)
{
	(void)state;
	begin();
	int64_t size = first->desired, changes = first->changes;
	millis began = wire_now();
	update_sets_up();
	assert_non_null(strstr(problem(PROBLEM_BUSY), update_text));
	assert_true(world_event_says("NodeGroupBusy", update_text));
	update_scales_up();
	run(20 * MINUTE); /* longer than anything is left idle */
	assert_int_equal(first->desired, size + SURGE);
	update_replaces(began);
	update_scales_down(size);
	assert_int_equal(first->changes, changes);
	assert_false(world_event_told("NodeGroupContended"));
	until(is_free, 3 * MINUTE, "it is told no more");
	until(serves_three, 30 * MINUTE, "the headroom serves");
}

/* Nothing can be bought there: the next group has it, and afterwards the first again. */
static void what_is_wanted_during_an_update_is_had_elsewhere(void **state)
{
	(void)state;
	begin();
	update_sets_up();
	int64_t changes = first->changes;
	chat->rate = 6;
	until(serves_eight, 30 * MINUTE, "replicas for the traffic serve");
	assert_true(cloud_awake(second) >= 4);
	assert_int_equal(first->changes, changes);
	cloud_owner_is_busy(first, NULL);
	until(is_free, 3 * MINUTE, "it is told no more");
	chat->rate = 14;
	run(30 * MINUTE);
	assert_true(first->changes > changes);
}

/* A node that was being emptied: neither ended nor given back while the owner is at work, which cordons, too. */
static const char *marked_node(void)
{
	for (const struct cloud_machine *m = first->machines; m; m = m->next) {
		const struct object *node = world_node_of(m->id);
		if (node && value_is(node->value, "spec>unschedulable", "true") && m->step == STEP_RUNNING)
			return m->id;
	}
	return NULL;
}

static bool is_emptying(void)
{
	return marked_node();
}

static bool is_small(void)
{
	return cloud_awake(first) + cloud_awake(second) <= 3 && world_is_at_rest();
}

static void a_drain_rests_during_an_update(void **state)
{
	(void)state;
	begin();
	chat->rate = 6;
	until(serves_eight, 30 * MINUTE, "replicas for the traffic serve");
	chat->rate = 0;
	until(is_emptying, 3 * HOUR, "a node is emptied");
	cloud_owner_is_busy(first, update_text);
	run(2 * MINUTE);
	int64_t changes = first->changes;
	run(HOUR);
	assert_int_equal(first->changes, changes);
	cloud_owner_is_busy(first, NULL);
	until(is_small, 3 * HOUR, "it comes down to its headroom");
}

/* A leader that begins in the middle of it leaves it alone, too. */
static void the_next_leader_lets_it_too(void **state)
{
	(void)state;
	begin();
	update_sets_up();
	update_scales_up();
	int64_t changes = first->changes;
	replica_kill(0);
	replica_start(0, &alone);
	run(40 * MINUTE);
	assert_int_equal(first->changes, changes);
	assert_non_null(problem(PROBLEM_BUSY));
}

static bool is_named(void)
{
	return problem(PROBLEM_AILING);
}

static void what_the_cloud_says_is_wrong_is_told(void **state)
{
	(void)state;
	begin();
	first->ailment = "DEGRADED; AsgInstanceLaunchFailures: You have requested more vCPU capacity";
	until(is_named, 3 * MINUTE, "it is told");
	assert_non_null(strstr(problem(PROBLEM_AILING), "AsgInstanceLaunchFailures"));
	assert_true(world_event_told("NodeGroupUnhealthy"));
}

/* AZRebalance: one more is launched in the emptier zone before one in the fuller ends; the size stays. */
static void what_is_launched_before_another_ends_is_let(void **state)
{
	(void)state;
	begin();
	int64_t changes = first->changes;
	for (int i = 0; i < 3; i++) {
		struct cloud_machine *old = oldest(wire_now());
		struct cloud_machine *extra = cloud_owner_adds(first);
		for (int k = 0; k < 20 && !is_ready(extra); k++)
			run(30 * SECOND);
		run(2 * MINUTE);
		cloud_owner_ends(old);
		until(serves_three, 30 * MINUTE, "the headroom serves");
	}
	assert_int_equal(first->changes, changes);
	assert_int_equal(cloud_awake(first), 3);
}

/* An instance refresh: one after the other is ended, and replaced. */
static void a_refresh_is_let(void **state)
{
	(void)state;
	begin();
	millis began = wire_now();
	for (struct cloud_machine *m; (m = oldest(began));) {
		cloud_owner_replaces(m);
		until(serves_three, 30 * MINUTE, "the headroom serves");
	}
	assert_int_equal(cloud_awake(first), 3);
	assert_int_equal(cloud_awake(second), 0);
	assert_false(world_event_told("NodeGroupContended"));
}

static bool are_all_protected(void)
{
	for (const struct cloud_machine *m = first->machines; m; m = m->next)
		if (m->step == STEP_RUNNING && m->is_to_run && !m->is_protected)
			return false;
	return world_is_at_rest();
}

/* Those that came with the last growth, too. */
static void machines_are_protected_once_they_run(void **state)
{
	(void)state;
	first->protects = true;
	begin();
	until(are_all_protected, 3 * MINUTE, "the first are");
	chat->rate = 6;
	until(serves_eight, 30 * MINUTE, "replicas for the traffic serve");
	until(are_all_protected, 3 * MINUTE, "those of the last growth are");
	int64_t changes = first->changes;
	run(30 * SECOND);
	assert_true(first->changes - changes <= 1);
}

static bool is_empty(void)
{
	return cloud_awake(first) == 0;
}

/* A schedule, forty minutes before a reservation ends: its machines go, though we protected them. */
static void a_schedule_that_empties_the_group_is_let(void **state)
{
	(void)state;
	first->protects = true;
	begin();
	until(are_all_protected, 3 * MINUTE, "the machines are protected");
	run(15 * MINUTE); /* it undoes nothing that we just did */
	cloud_owner_sets(first, 0);
	until(is_empty, 3 * MINUTE, "they go");
	run(9 * MINUTE);
	assert_int_equal(first->desired, 0);
	until(serves_three, 10 * MINUTE, "the headroom serves elsewhere");
	assert_true(cloud_awake(second) >= 3);
}

#define SCENARIO(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

/* With a name, or a part of it with *, only those. */
int main(int argc, char **argv)
{
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	const struct CMUnitTest tests[] = {
		SCENARIO(an_update_is_let_and_named),
		SCENARIO(what_is_wanted_during_an_update_is_had_elsewhere),
		SCENARIO(a_drain_rests_during_an_update),
		SCENARIO(the_next_leader_lets_it_too),
		SCENARIO(what_the_cloud_says_is_wrong_is_told),
		SCENARIO(what_is_launched_before_another_ends_is_let),
		SCENARIO(a_refresh_is_let),
		SCENARIO(machines_are_protected_once_they_run),
		SCENARIO(a_schedule_that_empties_the_group_is_let),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
