/* What tests/scenario plays on a rig, in a world of its own: the whole controller, in seconds. */
#include "tests/world/laws.h"

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

static int tear_down(void **state)
{
	(void)state;
	world_end();
	return 0;
}

static void assert_lawful(void)
{
	if (!*laws_broken())
		return;
	laws_print_trace(60);
	fail_msg("%s", laws_broken());
}

static void run(millis duration)
{
	world_run(duration);
	assert_lawful();
}

static void until(bool (*is_so)(void), millis most, const char *what)
{
	bool came = world_until(is_so, most);

	assert_lawful();
	if (came)
		return;
	laws_print_trace(60);
	fail_msg("%s: not within %lld s", what, (long long)(most / SECOND));
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

static bool is_grown(void)
{
	return world_ready("chat") >= 5;
}

static bool is_down(void)
{
	return world_desired("chat") <= 2 && world_is_at_rest();
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

int main(void)
{
	const struct CMUnitTest tests[] = {
#define SCENARIO(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		SCENARIO(it_settles_and_leaves_a_still_world_alone),
		SCENARIO(grows_with_traffic_and_shrinks_after_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
