/* Engines that fall asleep under the live loop: their pods stay ready, and they are no capacity. */
#include "controller/web/published.h"
#include "tests/world/lawful.h"
#include "tests/world/replays.h"

#include <stdio.h>
#include <stdlib.h>

static const struct replica_settings alone = {
	.manifest =
		"apiVersion: preheat.dev/v1alpha1\n"
		"kind: WarmPool\n"
		"metadata: { name: chat, namespace: llm }\n"
		"spec:\n"
		"  mode: act\n"
		"  class: interactive\n"
		"  objective: { queueWait: 2s, attainment: 99% }\n"
		"  workload: { selector: { matchLabels: { app: chat } }, gpusPerReplica: 1, maxSequences: 8,\n"
		"      scaleTargetRef: { apiVersion: apps/v1, kind: Deployment, name: chat },\n"
		"      prefillTokensPerSecond: 25k, interTokenLatency: 30ms }\n"
		"  signals: { engine: vllm, scrape: { port: 8000, path: /metrics, interval: 15s } }\n"
		"  nodeGroups:\n"
		"    - { name: chat-od, provider: simulated, simulated: { endpoint: \"http://cloud.world\" }, zone: "
		"z1,\n"
		"        instanceType: g5.xlarge, capacityType: on-demand, gpusPerNode: 1, pricePerHour: 1.21, min: "
		"1,\n"
		"        max: 24 }\n"
		"  leadTime: { provision: { p50: 45s, p95: 70s }, register: { p50: 20s, p95: 30s }, load: { p50: 60s,\n"
		"      p95: 90s }, device: { p50: 15s, p95: 30s }, image: { p50: 60s, p95: 90s } }\n"
		"  headroom: { min: 1 }\n"
		"  scaleDown: { after: 5m }\n",
};
static struct world_app *chat;

static const struct pool_decision *decision(void)
{
	return &replica_published(0)->plan->pools[0].decision;
}

static bool is_loaded(void)
{
	return engines_count("chat", 0) >= 5 && world_is_at_rest();
}

static int set_up(void **state)
{
	(void)state;
	world_begin(1);
	world_group("chat-od", "chat", 1, 0, 24, 5);
	chat = world_app("chat", 5, 1, "50%");
	replica_start(0, &alone);
	run(10 * MINUTE);
	chat->rate = 4;
	until(is_loaded, HOUR, "the fleet does not grow");
	run(20 * MINUTE);
	return 0;
}

static void assert_seen(int64_t awake, int64_t asleep)
{
	if (decision()->ready != awake || decision()->asleep != asleep)
		fail_msg("%lld ready and %lld asleep are seen, not %lld and %lld", (long long)decision()->ready,
			 (long long)decision()->asleep, (long long)awake, (long long)asleep);
}

static bool are_replaced(void)
{
	return engines_count("chat", 0) >= 5 && engines_count("chat", 2) == 2;
}

/* Demand goes on: what fell asleep is missing, and is bought. It is neither silent nor surplus. */
static void sleepers_are_replaced_under_load(void **state)
{
	(void)state;
	int64_t awake = engines_count("chat", 0), slots = decision()->slots_milli;

	engines_sleep("chat", 2, 2);
	run(40 * SECOND);
	assert_seen(awake - 2, 2);
	assert_int_equal(decision()->asleep_discarded, 2);
	assert_int_equal(decision()->signals, SIGNALS_FRESH);
	until(are_replaced, 20 * MINUTE, "what sleeps is not replaced");
	run(MINUTE);
	assert_int_equal(decision()->asleep, 2);
	assert_true(decision()->slots_milli >= slots); /* empty sleepers say nothing of what a replica holds */
	replica_stop(0);
	assert_replays(replica_history(0));
}

static bool are_gone(void)
{
	return engines_count("chat", 1) == 0 && world_is_at_rest();
}

static bool is_down(void)
{
	return world_desired("chat") <= 2 && world_is_at_rest();
}

/* Who is no capacity goes first: no replica that serves is ended while a sleeper holds a machine. */
static void sleepers_are_released_first(void **state)
{
	(void)state;
	engines_sleep("chat", 2, 1);
	until(is_loaded, 20 * MINUTE, "what sleeps is not replaced");
	chat->rate = 0;
	run(2 * MINUTE);
	int64_t replicas = world_replicas("chat"), most = 0;
	assert_int_equal(engines_count("chat", 1), 2);
	for (int i = 0; i < 3 * 3600 && !are_gone(); i++) {
		run(SECOND);
		const struct group_decision *asked = &replica_published(0)->plan->pools[0].groups[0];
		most = world_replicas("chat") > most ? world_replicas("chat") : most;
		if (asked->release > 0 && asked->release_asleep < decision()->asleep)
			fail_msg("a replica that serves goes before one that sleeps");
	}
	assert_int_equal(most, replicas); /* those that sleep are not made anew while they go */
	assert_true(are_gone());
	until(is_down, 3 * HOUR, "the surplus stays");
	replica_stop(0);
	assert_replays(replica_history(0));
}

static bool is_idle(void)
{
	return engines_count("chat", 0) == 0 && engines_count("chat", 1) > 0;
}

static bool serves(void)
{
	return engines_count("chat", 0) >= 2;
}

/* All of them sleep, and demand comes. */
static void a_fleet_that_sleeps_is_no_capacity(void **state)
{
	(void)state;
	chat->rate = 0;
	engines_sleep("chat", 100, 1);
	assert_true(is_idle());
	run(40 * SECOND);
	assert_int_equal(decision()->ready, 0);
	assert_true(decision()->asleep >= 5);
	chat->rate = 4;
	until(serves, 20 * MINUTE, "demand meets sleepers only");
	replica_stop(0);
	assert_replays(replica_history(0));
}

/* Whoever wakes an engine says so: it is on its way, nothing is bought for it, and how long that took is learned. */
static void one_that_wakes_is_on_its_way(void **state)
{
	(void)state;
	engines_sleep("chat", 2, 1);
	until(is_loaded, 20 * MINUTE, "what sleeps is not replaced");
	run(MINUTE);
	int64_t awake = engines_count("chat", 0), machines = world_desired("chat");
	engines_label("chat", 1, "asleep");
	run(20 * SECOND);
	assert_seen(awake, 2);
	engines_label("chat", 1, "waking");
	run(16 * SECOND);
	assert_seen(awake, 0);
	assert_int_equal(decision()->waking, 2);
	assert_int_equal(decision()->on_the_way + decision()->ready, awake + 2);
	engines_sleep("chat", 2, 0);
	engines_label("chat", 0, "");
	run(40 * SECOND);
	assert_seen(awake + 2, 0);
	assert_int_equal(decision()->waking, 0);
	assert_true(world_desired("chat") <= machines);
	replica_stop(0);
	assert_replays(replica_history(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(sleepers_are_replaced_under_load, set_up, tear_down),
		cmocka_unit_test_setup_teardown(sleepers_are_released_first, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_fleet_that_sleeps_is_no_capacity, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_that_wakes_is_on_its_way, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("sleep", tests, NULL, NULL);
}
