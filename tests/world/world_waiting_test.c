/* Pods that come between two ticks are decided on at once, together, and what is decided is replayed. */
#include "controller/web/published.h"
#include "tests/world/lawful.h"
#include "tests/world/replays.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const char train_text[] =
	"apiVersion: preheat.dev/v1alpha1\n"
	"kind: WarmPool\n"
	"metadata: { name: train, namespace: llm }\n"
	"spec:\n"
	"  mode: act\n"
	"  class: training\n"
	"  objective: { queueWait: 15m, attainment: 95% }\n"
	"  workload: { selector: { matchLabels: { app: train } }, gpusPerReplica: 1 }\n"
	"  signals: { engine: pods }\n"
	"  nodeGroups:\n"
	"    - { name: train, provider: simulated, simulated: { endpoint: \"http://cloud.world\" }, zone: z1,\n"
	"        instanceType: g5.xlarge, gpusPerNode: 1, pricePerHour: 1, min: 0, max: 120 }\n"
	"  leadTime: { total: { p50: 150s, p95: 260s } }\n"
	"  scaleDown: { after: 4m }\n";

static const struct replica_settings alone = { .manifest = train_text };
static struct cloud_group *train;

static int set_up(void **state)
{
	(void)state;
	world_begin(5);
	train = world_group("train", "train", 1, 0, 120, 0);
	return 0;
}

/* To so long after a tick. */
static void run_to_after_tick(millis after)
{
	int64_t ticks = replica_published(0)->ticks;

	while (replica_published(0)->ticks == ticks)
		world_run(10);
	world_run(after);
}

static void come(const char *name, int64_t pods)
{
	const struct world_job job = { name, "train", pods, true, 1, NULL, 0 };

	world_job(&job);
	world_scheduler_looks();
}

static void ends_with(int64_t machines, int64_t decisions)
{
	run(20 * MINUTE);
	assert_int_equal(train->desired, machines);
	replica_stop(0);
	assert_int_equal(assert_replays(replica_history(0)), decisions);
}

static void a_pod_between_ticks_is_bought_for_within_a_second(void **state)
{
	(void)state;
	replica_start(0, &alone);
	run(40 * SECOND);
	run_to_after_tick(200);
	int64_t ticks = replica_published(0)->ticks;
	come("one", 1);
	world_run(SECOND);
	assert_int_equal(train->desired, 1);
	assert_int_equal(replica_published(0)->ticks, ticks);
	ends_with(1, 1);
}

static void a_hundred_pods_in_six_tenths_of_a_second_are_one_decision(void **state)
{
	static const char *const names[] = { "a", "b", "c", "d", "e" };
	enum { BATCHES = sizeof names / sizeof *names };

	(void)state;
	replica_start(0, &alone);
	run(40 * SECOND);
	run_to_after_tick(200);
	for (size_t i = 0; i < BATCHES; i++) {
		come(names[i], 20);
		assert_int_equal(train->changes, 0);
		world_run(150);
	}
	world_run(SECOND);
	assert_int_equal(train->changes, 1);
	assert_int_equal(train->desired, 100);
	ends_with(100, 1);
}

/* They never stop coming: nobody waits for the last one. */
static void a_stream_of_pods_is_decided_on_every_second(void **state)
{
	char name[16];

	(void)state;
	replica_start(0, &alone);
	run(40 * SECOND);
	run_to_after_tick(200);
	for (int i = 0; i < 50; i++) {
		snprintf(name, sizeof name, "s%d", i);
		come(name, 1);
		world_run(100);
	}
	assert_in_range(train->changes, 4, 6);
	run(20 * MINUTE);
	assert_int_equal(train->desired, 50);
	replica_stop(0);
	assert_in_range(assert_replays(replica_history(0)), 4, 6);
}

static const struct world_job of_volume = {
	"j", "train", 1, true, 1, ",'volumes':[{'name':'models','persistentVolumeClaim':{'claimName':'models'}}]", 0
};

/* What is said of its volume is read first, and only then it is known whether a machine helps. */
static void a_pod_of_a_volume_is_bought_for_within_a_second(void **state)
{
	(void)state;
	apiserver_create(KIND_VOLUME, value_of("{'metadata':{'name':'v'},'spec':{},'status':{'phase':'Bound'}}"));
	apiserver_create(KIND_VOLUME_CLAIM,
			 value_of("{'metadata':{'name':'models','namespace':'llm','annotations':"
				  "{'pv.kubernetes.io/bind-completed':'yes'}},'spec':{'volumeName':'v'}}"));
	replica_start(0, &alone);
	run(40 * SECOND);
	run_to_after_tick(200);
	int64_t ticks = replica_published(0)->ticks;
	world_job(&of_volume);
	world_scheduler_looks();
	world_run(SECOND);
	assert_int_equal(train->desired, 1);
	assert_int_equal(replica_published(0)->ticks, ticks);
	ends_with(1, 1);
}

static void a_pod_that_no_machine_helps_is_no_event(void **state)
{

	(void)state;
	replica_start(0, &alone);
	run(40 * SECOND);
	run_to_after_tick(200);
	world_job(&of_volume);
	world_scheduler_looks();
	ends_with(0, 0);
}

/* The machine's clock jumps between a tick and the pod that is decided on at once: no decision is of that time. */
static void a_pod_after_a_jump_of_the_clock_takes_nobody_along(void **state)
{
	(void)state;
	replica_start(0, &alone);
	run(40 * SECOND);
	run_to_after_tick(200);
	wire_machine_ahead(20 * HOUR);
	come("one", 1);
	world_run(SECOND);
	assert_int_equal(train->desired, 1);
	for (int i = 0; i < 30; i++) {
		millis apart = replica_published(0)->snapshot->now - (WIRE_EPOCH + wire_now());
		assert_in_range(apart + MINUTE, 0, 2 * MINUTE);
		run(MINUTE);
	}
}

#define SCENARIO(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(int argc, char **argv)
{
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	const struct CMUnitTest tests[] = {
		SCENARIO(a_pod_between_ticks_is_bought_for_within_a_second),
		SCENARIO(a_hundred_pods_in_six_tenths_of_a_second_are_one_decision),
		SCENARIO(a_stream_of_pods_is_decided_on_every_second),
		SCENARIO(a_pod_of_a_volume_is_bought_for_within_a_second),
		SCENARIO(a_pod_that_no_machine_helps_is_no_event),
		SCENARIO(a_pod_after_a_jump_of_the_clock_takes_nobody_along),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
