/* A reservation that ends, with the whole controller: what serves on it is replaced elsewhere in time, nothing starts
 * there when it would not pay, and the cloud finds nothing left to end. */
#include "controller/web/published.h"
#include "tests/world/lawful.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define POOL(until)                                                                                                   \
	"apiVersion: preheat.dev/v1alpha1\n"                                                                          \
	"kind: WarmPool\n"                                                                                            \
	"metadata: { name: chat, namespace: llm }\n"                                                                  \
	"spec:\n"                                                                                                     \
	"  class: interactive\n"                                                                                      \
	"  objective: { queueWait: 2s, attainment: 99% }\n"                                                           \
	"  workload: { selector: { matchLabels: { app: chat } }, scaleTargetRef: { apiVersion: apps/v1, kind: "       \
	"Deployment,\n      name: chat }, gpusPerReplica: 1, maxSequences: 8,\n"                                      \
	"      prefillTokensPerSecond: 25k, interTokenLatency: 30ms }\n"                                              \
	"  signals: { engine: vllm, scrape: { port: 8000, path: /metrics, interval: 15s } }\n"                        \
	"  nodeGroups:\n"                                                                                             \
	"    - { name: chat-block, provider: simulated, simulated: { endpoint: \"http://cloud.world\" }, zone: z1,\n" \
	"        instanceType: g5.xlarge, capacityType: reserved, " until "gpusPerNode: 1, pricePerHour: 0.48,\n"     \
	"        min: 1, max: 14 }\n"                                                                                 \
	"    - { name: chat-od, provider: simulated, simulated: { endpoint: \"http://cloud.world\" }, zone: z1,\n"    \
	"        instanceType: g5.xlarge, capacityType: on-demand, gpusPerNode: 1, pricePerHour: 1.21, min: 0,\n"     \
	"        max: 14 }\n"                                                                                         \
	"  leadTime: { provision: { p50: 45s, p95: 70s }, register: { p50: 20s, p95: 30s }, device: { p50: 15s,\n"    \
	"      p95: 30s }, image: { p50: 60s, p95: 90s }, load: { p50: 60s, p95: 90s } }\n"                           \
	"  mode: act\n"                                                                                               \
	"  headroom: { min: 2 }\n"                                                                                    \
	"  scaleDown: { after: 5m }\n"

static const struct replica_settings of_cloud = { .manifest = POOL("") },
				     of_manifest = { .manifest = POOL("reservedUntil: \"2026-01-05T08:00:00Z\", ") };
static struct world_app *chat;
static struct cloud_group *block, *on_demand;

static int set_up(void **state)
{
	(void)state;
	world_begin(1);
	block = world_group("chat-block", "chat", 1, 0, 14, 1);
	block->protects = true;
	on_demand = world_group("chat-od", "chat", 1, 0, 14, 0);
	chat = world_app("chat", 1, 1, "");
	chat->rate = 1;
	return 0;
}

static bool serves(void)
{
	return world_ready("chat") >= 3 && !cloud_awake(on_demand) && world_is_at_rest();
}

static void begin(millis lasts)
{
	block->ends_at = wire_now() + lasts;
	replica_start(0, &of_cloud);
	until(serves, 3 * HOUR, "replicas serve on the reservation");
}

/* Second by second: nobody serves less than before. */
static void run_serving(millis until_left, int64_t least)
{
	while (block->ends_at - wire_now() > until_left) {
		run(5 * SECOND);
		if (world_ready("chat") >= least)
			continue;
		laws_print_trace(60);
		fail_msg("%lld replicas serve %lld s before the end", (long long)world_ready("chat"),
			 (long long)((block->ends_at - wire_now()) / SECOND));
	}
}

static void what_serves_there_is_replaced_before_the_end(void **state)
{
	(void)state;
	begin(8 * HOUR);
	run_serving(41 * MINUTE, 3);
	assert_int_equal(cloud_awake(block), 0);
	assert_true(on_demand->desired >= 3);
	run_serving(0, 3);
	run(HOUR);
	assert_int_equal(cloud_awake(block), 0);
	assert_true(world_event_says("ReservationEnding", "chat-block"));
}

/* Of a cloud that tells of no end. */
static void the_manifest_may_say_when_it_ends(void **state)
{
	(void)state;
	replica_start(0, &of_manifest);
	until(serves, 3 * HOUR, "replicas serve on the reservation");
	while (wire_now() < 8 * HOUR - 41 * MINUTE) {
		run(MINUTE);
		assert_true(world_ready("chat") >= 3);
	}
	assert_int_equal(cloud_awake(block), 0);
}

/* Of the two that are known. */
static void the_earlier_end_counts(void **state)
{
	(void)state;
	block->ends_at = wire_now() + 6 * HOUR;
	replica_start(0, &of_manifest);
	until(serves, 3 * HOUR, "replicas serve on the reservation");
	run_serving(41 * MINUTE, 3);
	assert_int_equal(cloud_awake(block), 0);
}

static void the_manifests_end_counts_where_it_is_earlier(void **state)
{
	(void)state;
	block->ends_at = wire_now() + 10 * HOUR;
	replica_start(0, &of_manifest);
	until(serves, 3 * HOUR, "replicas serve on the reservation");
	run_serving(2 * HOUR + 41 * MINUTE, 3);
	assert_int_equal(cloud_awake(block), 0);
}

/* Nothing can be had elsewhere: what serves there serves on until it has to go, and goes before the cloud ends it. */
static void what_cannot_be_replaced_goes_before_the_end(void **state)
{
	(void)state;
	begin(8 * HOUR);
	on_demand->faults.stock_out = -1;
	run_serving(51 * MINUTE, 3);
	run(10 * MINUTE);
	assert_int_equal(cloud_awake(block), 0);
}

static const char *ending(void)
{
	const struct published *p = replica_published(0);

	return p && p->pools ? p->pools[0].problem[PROBLEM_RESERVATION] : NULL;
}

static bool is_ending(void)
{
	return ending() != NULL;
}

/* More is needed when it would serve there for minutes only. */
static void nothing_starts_there_near_its_end(void **state)
{
	(void)state;
	begin(8 * HOUR);
	until(is_ending, 8 * HOUR, "it says that the reservation ends");
	assert_non_null(strstr(ending(), "node group chat-block ends at "));
	assert_true(block->ends_at - wire_now() > 50 * MINUTE);
	int64_t bought = block->bought;
	chat->rate = 2;
	run_serving(0, 3);
	assert_int_equal(block->bought, bought);
	assert_true(on_demand->bought >= 4);
}

/* What is marked is left to whoever leads next, and so is what waits for its replacement. */
static void the_next_leader_replaces_them_too(void **state)
{
	(void)state;
	begin(8 * HOUR);
	run_serving(53 * MINUTE, 3);
	replica_kill(0);
	run(30 * SECOND);
	replica_start(0, &of_cloud);
	run_serving(41 * MINUTE, 3);
	assert_int_equal(cloud_awake(block), 0);
	run_serving(0, 3);
}

#define SCENARIO(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENARIO(what_serves_there_is_replaced_before_the_end),
		SCENARIO(the_manifest_may_say_when_it_ends),
		SCENARIO(the_earlier_end_counts),
		SCENARIO(the_manifests_end_counts_where_it_is_earlier),
		SCENARIO(what_cannot_be_replaced_goes_before_the_end),
		SCENARIO(nothing_starts_there_near_its_end),
		SCENARIO(the_next_leader_replaces_them_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
