/* From a dear node group to a cheaper one, with the whole controller: what serves moves, and whoever cannot stays. */
#include "controller/web/published.h"
#include "tests/world/lawful.h"

#include <stdint.h>
#include <stdio.h>

#define POOL(target)                                                                                                   \
	"apiVersion: preheat.dev/v1alpha1\n"                                                                           \
	"kind: WarmPool\n"                                                                                             \
	"metadata: { name: chat, namespace: llm }\n"                                                                   \
	"spec:\n"                                                                                                      \
	"  class: interactive\n"                                                                                       \
	"  objective: { queueWait: 2s, attainment: 99% }\n"                                                            \
	"  workload: { selector: { matchLabels: { app: chat } }, " target "gpusPerReplica: 1, maxSequences: 8,\n"      \
	"      prefillTokensPerSecond: 25k, interTokenLatency: 30ms }\n"                                               \
	"  signals: { engine: vllm, scrape: { port: 8000, path: /metrics, interval: 15s } }\n"                         \
	"  nodeGroups:\n"                                                                                              \
	"    - { name: chat-spot, provider: simulated, simulated: { endpoint: \"http://cloud.world\" }, zone: z1,\n"   \
	"        instanceType: g5.xlarge, capacityType: spot, gpusPerNode: 1, pricePerHour: 0.48, min: 0, max: 12 }\n" \
	"    - { name: chat-od, provider: simulated, simulated: { endpoint: \"http://cloud.world\" }, zone: z1,\n"     \
	"        instanceType: g5.xlarge, capacityType: on-demand, gpusPerNode: 1, pricePerHour: 1.21, min: 1,\n"      \
	"        max: 8, standby: { max: 4, priceShare: 2%, leadTime: { p50: 120s, p95: 200s } } }\n"                  \
	"  leadTime: { provision: { p50: 45s, p95: 70s }, register: { p50: 20s, p95: 30s }, device: { p50: 15s,\n"     \
	"      p95: 30s }, image: { p50: 60s, p95: 90s }, load: { p50: 60s, p95: 90s } }\n"                            \
	"  mode: act\n"                                                                                                \
	"  headroom: { min: 2 }\n"                                                                                     \
	"  scaleDown: { after: 5m }\n"

static const struct replica_settings
	scaled = { .manifest = POOL("scaleTargetRef: { apiVersion: apps/v1, kind: Deployment, name: chat }, ") },
	others = { .manifest = POOL("") };
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

static bool serves_on_demand(void)
{
	return world_ready("chat") >= 5 && on_demand->desired >= 4 && world_is_at_rest();
}

/* Traffic of more than three replicas, on machines of the dear group alone. */
static void begin_dear(const struct replica_settings *s)
{
	replica_start(0, s);
	spot->faults.stock_out = -1;
	chat->rate = 4;
	until(serves_on_demand, HOUR, "replicas serve in the dear group");
}

static bool has_moved(void)
{
	return on_demand->desired <= 1 && world_ready("chat") >= 5 && world_is_at_rest();
}

static bool is_down(void)
{
	return world_desired("chat") <= 3 && laws_quiet_for() > 30 * MINUTE && world_is_at_rest();
}

static void what_serves_in_the_dear_group_moves(void **state)
{
	(void)state;
	begin_dear(&scaled);
	spot->faults.stock_out = 0;
	until(has_moved, HOUR, "the dear group has its least again, and as many serve");
	/* Those that came later had room while the first ones' queues lasted. */
	assert_int_equal(replica_published(0)->plan->pools[0].decision.slots_milli, 8000);
	assert_true(spot->desired >= 4 && spot->bought <= spot->desired + 4);
	chat->rate = 0;
	until(is_down, 3 * HOUR, "it comes down to its headroom");
	laws_stand_still(true);
	run(30 * MINUTE);
}

/* The start that fails is not missed: what it was for serves on. */
static void without_stock_in_the_cheap_group_nothing_is_bought(void **state)
{
	(void)state;
	begin_dear(&scaled);
	run(30 * MINUTE);
	int64_t dear = on_demand->bought, failures = (int64_t)spot->failure_count;
	for (int i = 0; i < 180; i++) {
		run(MINUTE);
		assert_true(world_ready("chat") >= 4);
	}
	int64_t tries = (int64_t)spot->failure_count - failures;
	assert_true(tries >= 4);
	assert_true(on_demand->bought - dear <= 1); /* for a minute with more traffic */
}

/* Nobody would put a replica on a machine that comes for one that serves. */
static void pods_that_others_ask_for_do_not_move(void **state)
{
	(void)state;
	world_set_replicas("chat", 5);
	begin_dear(&others);
	spot->faults.stock_out = 0;
	for (int i = 0; i < 180; i++) {
		run(MINUTE);
		assert_int_equal(replica_published(0)->plan->pools[0].decision.swapping, 0);
	}
}

#define SCENARIO(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENARIO(what_serves_in_the_dear_group_moves),
		SCENARIO(without_stock_in_the_cheap_group_nothing_is_bought),
		SCENARIO(pods_that_others_ask_for_do_not_move),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
