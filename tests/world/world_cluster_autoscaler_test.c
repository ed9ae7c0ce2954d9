/* A Cluster Autoscaler on a node group that is ours too: pods get their machines, nothing is left over, and where both
 * want something else for ever the fight is seen, told and ended. */
#include "controller/web/published.h"
#include "tests/world/cluster_autoscaler.h"
#include "tests/world/lawful.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TRAIN(least)                                                                                             \
	"apiVersion: preheat.dev/v1alpha1\n"                                                                     \
	"kind: WarmPool\n"                                                                                       \
	"metadata: { name: train, namespace: llm }\n"                                                            \
	"spec:\n"                                                                                                \
	"  mode: act\n"                                                                                          \
	"  class: training\n"                                                                                    \
	"  objective: { queueWait: 15m, attainment: 95% }\n"                                                     \
	"  workload: { selector: { matchLabels: { app: train } }, gpusPerReplica: 1 }\n"                         \
	"  signals: { engine: pods }\n"                                                                          \
	"  nodeGroups:\n"                                                                                        \
	"    - { name: train, provider: simulated, simulated: { endpoint: \"http://cloud.world\" }, zone: z1,\n" \
	"        instanceType: g5.xlarge, gpusPerNode: 1, pricePerHour: 1, min: " #least ", max: 12 }\n"         \
	"  leadTime: { total: { p50: 150s, p95: 260s } }\n"                                                      \
	"  scaleDown: { after: 4m }\n"

static const struct replica_settings none = { .manifest = TRAIN(0) }, two = { .manifest = TRAIN(2) };
static struct cloud_group *train;

static int set_up(void **state)
{
	(void)state;
	world_begin(3);
	train = world_group("train", "train", 1, 0, 12, 0);
	return 0;
}

static int without_autoscaler(void **state)
{
	cluster_autoscaler_on(NULL, 0, 0);
	return tear_down(state);
}

static bool four_run(void)
{
	return world_job_running("job") == 4;
}

static bool all_are_gone(void)
{
	return !train->desired && world_is_at_rest();
}

static void each_job_gets_its_machines_and_none_is_left(void **state)
{
	(void)state;
	replica_start(0, &none);
	cluster_autoscaler_on(train, 0, 12);
	for (int i = 1; i <= 6; i++) {
		world_job_for(&(struct world_job){ .name = "job", .pool = "train", .pods = 4 }, 10 * MINUTE);
		until(four_run, 15 * MINUTE, "four pods run");
		assert_true(train->desired <= 8); /* each has bought for all of them, at worst */
		until(all_are_gone, HOUR, "none is left");
	}
	assert_false(world_event_told("NodeGroupContended"));
}

static bool two_are_there(void)
{
	return train->desired == 2 && world_is_at_rest();
}

static int64_t contended(void)
{
	return replica_published(0)->groups[0].contended;
}

/* It ends each idle machine ten minutes after it came, and we are to hold two of them. */
static void whoever_ends_our_least_is_left_alone(void **state)
{
	(void)state;
	replica_start(0, &two);
	until(two_are_there, 30 * MINUTE, "the least of the group is there");
	cluster_autoscaler_on(train, 0, 12);
	run(6 * HOUR);
	assert_true(world_event_told("NodeGroupContended"));
	assert_true(train->bought <= 16); /* else two each quarter of an hour */
	cluster_autoscaler_on(NULL, 0, 0);
	until(two_are_there, 5 * HOUR, "they are back once it is gone");
	run(HOUR);
	assert_int_equal(contended(), 0);
}

#define SCENARIO(f) cmocka_unit_test_setup_teardown(f, set_up, without_autoscaler)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENARIO(each_job_gets_its_machines_and_none_is_left),
		SCENARIO(whoever_ends_our_least_is_left_alone),
	};

	return cmocka_run_group_tests_name("cluster autoscaler", tests, NULL, NULL);
}
