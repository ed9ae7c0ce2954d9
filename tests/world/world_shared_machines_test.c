/*
 * Several replicas on one machine: whoever comes while a machine is on its way takes a place there, whatever decides
 * (a tick or an event), as long as it fits beside those that wait for it; and gets a machine of its own when it does
 * not.
 */
#include "controller/web/published.h"
#include "tests/world/lawful.h"
#include "tests/world/replays.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define GROUP                                                                                                      \
	"  nodeGroups:\n"                                                                                          \
	"    - { name: quad, provider: simulated, simulated: { endpoint: \"http://cloud.world\" }, zone: z1,\n"    \
	"        instanceType: g5.12xlarge, gpusPerNode: 4, pricePerHour: 4, min: 0, max: 6 }\n"                   \
	"  leadTime: { provision: { p50: 45s, p95: 70s }, register: { p50: 20s, p95: 30s }, device: { p50: 15s,\n" \
	"      p95: 30s }, image: { p50: 60s, p95: 90s }, load: { p50: 60s, p95: 90s } }\n"                        \
	"  scaleDown: { after: 30m }\n"

/* Machines of its own, on demand, where the first has none. */
#define ELSEWHERE                                                                                               \
	"  nodeGroups:\n"                                                                                       \
	"    - { name: quad, provider: simulated, simulated: { endpoint: \"http://cloud.world\" }, zone: z1,\n" \
	"        instanceType: g5.12xlarge, gpusPerNode: 4, pricePerHour: 2, min: 0, max: 6 }\n"                \
	"    - { name: od, provider: simulated, simulated: { endpoint: \"http://cloud.world\" }, zone: z3,\n"   \
	"        instanceType: g5.12xlarge, gpusPerNode: 4, pricePerHour: 5, min: 0, max: 1 }\n"                \
	"  leadTime: { total: { p50: 200s, p95: 300s } }\n"                                                     \
	"  scaleDown: { after: 30m }\n"

#define WORK(name)                                                                          \
	"apiVersion: preheat.dev/v1alpha1\n"                                                \
	"kind: WarmPool\n"                                                                  \
	"metadata: { name: " name ", namespace: llm }\n"                                    \
	"spec:\n"                                                                           \
	"  mode: act\n"                                                                     \
	"  class: training\n"                                                               \
	"  objective: { queueWait: 15m, attainment: 95% }\n"                                \
	"  workload: { selector: { matchLabels: { app: " name " } }, gpusPerReplica: 1 }\n" \
	"  signals: { engine: pods }\n" GROUP

/* Its team sets its replicas. */
#define EMBED(groups)                                                                                     \
	"apiVersion: preheat.dev/v1alpha1\n"                                                              \
	"kind: WarmPool\n"                                                                                \
	"metadata: { name: embed, namespace: llm }\n"                                                     \
	"spec:\n"                                                                                         \
	"  mode: act\n"                                                                                   \
	"  class: embedding\n"                                                                            \
	"  objective: { queueWait: 10s, attainment: 99% }\n"                                              \
	"  workload: { selector: { matchLabels: { app: embed } }, gpusPerReplica: 1, maxSequences: 16,\n" \
	"      prefillTokensPerSecond: 25k, interTokenLatency: 10ms }\n"                                  \
	"  signals: { engine: vllm, scrape: { port: 8000, path: /metrics, interval: 15s } }\n" groups

static const struct replica_settings work = { .manifest = WORK("work") };
static const struct replica_settings two_teams = { .manifest = WORK("work") "---\n" WORK("play") };
static const struct replica_settings embed = { .manifest = EMBED(GROUP) };
static const struct replica_settings embed_two_groups = { .manifest = EMBED(ELSEWHERE) };
static struct cloud_group *quad;
static int64_t most; /* machines at once */
static const millis INTERVAL = 15 * SECOND;

static void begin_with(const char *pool)
{
	world_begin(9);
	quad = world_group("quad", pool, 4, 0, 6, 0);
	most = 0;
}

static int set_up(void **state)
{
	(void)state;
	begin_with("work");
	return 0;
}

static bool look(void)
{
	most = quad->desired > most ? quad->desired : most;
	return false;
}

static void pass(millis duration)
{
	world_until(look, duration);
	assert_lawful();
}

static void start(const struct replica_settings *s)
{
	replica_start(0, s);
	pass(40 * SECOND);
}

static void pass_to_tick(void)
{
	int64_t ticks = replica_published(0)->ticks;

	while (replica_published(0)->ticks == ticks)
		world_run(10);
}

static void come(const char *pool, const char *name, int64_t pods, int cpus)
{
	const struct world_job job = { name, pool, pods, true, cpus, NULL, 0 };

	world_job(&job);
	world_scheduler_looks();
}

static void come_one_by_one(int64_t pods, int cpus, millis apart)
{
	char name[16];

	for (int64_t i = 0; i < pods; i++) {
		snprintf(name, sizeof name, "j%d", (int)i);
		come("work", name, 1, cpus);
		pass(apart);
	}
}

static int64_t running(int64_t jobs)
{
	int64_t count = 0;
	char name[16];

	for (int64_t i = 0; i < jobs; i++) {
		snprintf(name, sizeof name, "j%d", (int)i);
		count += world_job_running(name);
	}
	return count;
}

/* Returns how many decisions lay between ticks. */
static int64_t ends_with(int64_t machines)
{
	assert_int_equal(most, machines);
	assert_int_equal(quad->desired, machines);
	replica_stop(0);
	return assert_replays(replica_history(0));
}

static void four_events_buy_one_machine(void **state)
{
	(void)state;
	start(&work);
	pass_to_tick();
	pass(SECOND);
	come_one_by_one(4, 1, 1500);
	pass(10 * MINUTE);
	assert_int_equal(running(4), 4);
	assert_in_range(ends_with(1), 3, 4);
}

static void four_ticks_buy_one_machine(void **state)
{
	(void)state;
	start(&work);
	for (int i = 0; i < 4; i++) {
		char name[16];
		pass_to_tick();
		world_run(INTERVAL - 150); /* too late to be an event */
		snprintf(name, sizeof name, "j%d", i);
		come("work", name, 1, 1);
	}
	pass(10 * MINUTE);
	assert_int_equal(running(4), 4);
	assert_int_equal(ends_with(1), 0);
}

/* It is bought, it is there, its node is there and not ready, the node is ready and has no GPU. */
static void whatever_stage_a_machine_is_in(void **state)
{
	(void)state;
	start(&work);
	come_one_by_one(4, 1, 22 * SECOND);
	pass(10 * MINUTE);
	assert_int_equal(running(4), 4);
	ends_with(1);
}

static void the_fifth_gets_a_machine(void **state)
{
	(void)state;
	start(&work);
	come_one_by_one(5, 1, 1500);
	pass(10 * MINUTE);
	assert_int_equal(running(5), 5);
	ends_with(2);
}

/* A node is there that shows what the next is like, and its processors are taken. */
static void start_with_a_node(void)
{
	start(&work);
	come("work", "full", 1, 60);
	pass(5 * MINUTE);
	assert_int_equal(world_job_running("full"), 1);
}

/* Two of 40 processors do not fit a node of 64, whatever GPUs are left. */
static void what_does_not_fit_beside_the_first_gets_its_own(void **state)
{
	(void)state;
	start_with_a_node();
	come_one_by_one(2, 40, 3 * SECOND);
	pass(20 * SECOND);
	assert_int_equal(quad->desired, 3);
	come("work", "j2", 1, 20); /* there is room beside either */
	pass(10 * MINUTE);
	assert_int_equal(running(3), 3);
	ends_with(3);
}

static void what_does_not_fit_and_comes_together_gets_its_own(void **state)
{
	(void)state;
	start_with_a_node();
	come("work", "j0", 3, 40);
	pass(MINUTE);
	assert_int_equal(quad->desired, 4);
	pass(10 * MINUTE);
	assert_int_equal(running(1), 3);
	ends_with(4);
}

static void a_launch_that_fails_gives_its_places_back(void **state)
{
	(void)state;
	start(&work);
	quad->faults.stock_out = 1;
	come_one_by_one(4, 1, 1500);
	pass(20 * MINUTE);
	assert_int_equal(running(4), 4);
	assert_int_equal(quad->desired, 1);
	ends_with(1);
}

static void a_machine_that_never_registers_gives_its_places_back(void **state)
{
	(void)state;
	start(&work);
	quad->faults.never_registers = 1;
	come_one_by_one(4, 1, 22 * SECOND);
	pass(30 * MINUTE);
	assert_int_equal(running(4), 4);
	assert_int_equal(quad->desired, 1);
	assert_in_range(most, 1, 2);
}

static void a_machine_whose_device_never_comes_gives_its_places_back(void **state)
{
	(void)state;
	start(&work);
	quad->faults.no_device = 1;
	come_one_by_one(4, 1, 22 * SECOND);
	pass(30 * MINUTE);
	assert_int_equal(running(4), 4);
	assert_int_equal(quad->desired, 1);
	assert_in_range(most, 1, 2);
}

static void two_teams_share_a_machine_in_one_decision(void **state)
{
	(void)state;
	laws_share_groups();
	start(&two_teams);
	come("play", "j0", 1, 1);
	come("work", "j1", 1, 1);
	pass(10 * MINUTE);
	assert_int_equal(running(2), 2);
	ends_with(1);
}

static void two_teams_share_a_machine_one_after_the_other(void **state)
{
	(void)state;
	laws_share_groups();
	start(&two_teams);
	come("play", "j0", 1, 1);
	pass(5 * SECOND);
	come("work", "j1", 2, 1);
	pass(30 * SECOND);
	come("play", "j2", 1, 1);
	pass(10 * MINUTE);
	assert_int_equal(running(3), 4);
	ends_with(1);
}

/* What is counted among the pods that no machine helps is not counted twice. */
static void pods_that_nothing_helps_cost_no_others_their_machine(void **state)
{
	static const struct world_job lost = {
		"lost", "work", 8,
		true,	1,	",'volumes':[{'name':'models','persistentVolumeClaim':{'claimName':'models'}}]",
		0
	};

	(void)state;
	start(&work);
	world_job(&lost);
	pass(MINUTE);
	come("work", "j0", 5, 1);
	pass(10 * MINUTE);
	assert_int_equal(running(1), 5);
	ends_with(2);
}

static int64_t strays(const char *reason)
{
	const struct published_counts *c = &replica_published(0)->strays;

	for (size_t i = 0; i < c->count; i++)
		if (!strcmp(c->items[i].labels[0], reason))
			return c->items[i].count;
	return 0;
}

/* It came first, and would sit where the pool's pod is to go: nothing is bought for it, nor again and again. */
static void a_pod_of_nobody_is_bought_nothing(void **state)
{
	(void)state;
	start_with_a_node();
	come("nobody", "other", 1, 60);
	pass(20 * SECOND);
	assert_int_equal(quad->desired, 1);
	assert_true(world_event_says("NotTriggerScaleUp", "fits node group quad, no pool may use it"));
	assert_int_equal(strays("no pool selects it"), 1);
	come("work", "j0", 1, 60);
	pass(20 * MINUTE);
	assert_int_equal(running(1), 1);
	assert_in_range(most, 2, 3);
}

/* Their pods come one after the other, over events and ticks. */
static void replicas_of_a_team_share_machines(void **state)
{
	struct world_app *app;

	(void)state;
	world_end();
	begin_with("embed");
	app = world_app("embed", 0, 1, "");
	app->is_idle = false;
	start(&embed);
	for (int64_t replicas = 1; replicas <= 8; replicas++) {
		world_set_replicas("embed", replicas);
		pass(4 * SECOND);
	}
	pass(15 * MINUTE);
	assert_int_equal(world_ready("embed"), 8);
	assert_int_equal(most, 2);
	/* A machine more, in its time. */
	world_set_replicas("embed", 9);
	pass(25 * SECOND);
	world_set_replicas("embed", 11);
	pass(25 * SECOND);
	world_set_replicas("embed", 12);
	pass(10 * MINUTE);
	assert_int_equal(world_ready("embed"), 12);
	ends_with(3);
}

/* The morning of the rig: what one group has none of is bought elsewhere, and as little. */
static void a_group_without_machines_makes_nobody_buy_twice(void **state)
{
	struct cloud_group *od;

	(void)state;
	world_end();
	begin_with("embed");
	od = world_group("od", "embed", 4, 0, 1, 0);
	world_app("embed", 1, 1, "");
	quad->faults.stock_out = -1;
	start(&embed_two_groups);
	for (int64_t replicas = 2; replicas <= 8; replicas++) {
		world_set_replicas("embed", replicas);
		pass(7 * SECOND);
	}
	pass(10 * MINUTE);
	assert_int_equal(od->desired, 1);
	assert_int_equal(world_ready("embed"), 4);
	world_set_replicas("embed", 12);
	pass(2 * MINUTE);
	quad->faults.stock_out = 0;
	pass(60 * MINUTE);
	assert_int_equal(world_ready("embed"), 12);
	assert_int_equal(od->desired, 1);
	assert_int_equal(quad->desired, 2);
}

#define SCENARIO(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(int argc, char **argv)
{
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	const struct CMUnitTest tests[] = {
		SCENARIO(four_events_buy_one_machine),
		SCENARIO(four_ticks_buy_one_machine),
		SCENARIO(whatever_stage_a_machine_is_in),
		SCENARIO(the_fifth_gets_a_machine),
		SCENARIO(what_does_not_fit_beside_the_first_gets_its_own),
		SCENARIO(what_does_not_fit_and_comes_together_gets_its_own),
		SCENARIO(a_launch_that_fails_gives_its_places_back),
		SCENARIO(a_machine_that_never_registers_gives_its_places_back),
		SCENARIO(a_machine_whose_device_never_comes_gives_its_places_back),
		SCENARIO(two_teams_share_a_machine_in_one_decision),
		SCENARIO(two_teams_share_a_machine_one_after_the_other),
		SCENARIO(pods_that_nothing_helps_cost_no_others_their_machine),
		SCENARIO(a_pod_of_nobody_is_bought_nothing),
		SCENARIO(replicas_of_a_team_share_machines),
		SCENARIO(a_group_without_machines_makes_nobody_buy_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
