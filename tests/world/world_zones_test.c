/* Groups of EKS in several zones: where Auto Scaling launches and ends, and what it does by itself. */
#include "tests/world/lawful.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* %s: how it launches. */
static const char train_format[] =
	"apiVersion: preheat.dev/v1alpha1\n"
	"kind: WarmPool\n"
	"metadata: { name: train, namespace: llm }\n"
	"spec:\n"
	"  mode: act\n"
	"  class: training\n"
	"  objective: { queueWait: 15m, attainment: 95%% }\n"
	"  workload: { selector: { matchLabels: { app: train } }, gpusPerReplica: 1 }\n"
	"  signals: { engine: pods }\n"
	"  nodeGroups:\n"
	"    - { name: train, provider: eks, instanceType: g5.xlarge, gpusPerNode: 1, pricePerHour: 1, min: 0, max: "
	"20,\n"
	"        eks: { cluster: world, nodegroup: train, launch: %s, region: eu-west-1, endpoint: \"" CLOUD_AWS
	"\" } }\n"
	"  leadTime: { total: { p50: 150s, p95: 260s } }\n"
	"  scaleDown: { after: 4m }\n";

static char text[sizeof train_format + 20];
static const struct replica_settings alone = { .manifest = text };
static struct cloud_group *train;

static void begin(bool launches)
{
	snprintf(text, sizeof text, train_format, launches ? "instances" : "capacity");
	train = cloud_add(&(struct cloud_group){ .name = "train",
						 .pool = "train",
						 .zone = "z1",
						 .zone_count = 3,
						 .instance_type = "g5.xlarge",
						 .max = 20,
						 .gpus = 1,
						 .wire = CLOUD_EKS,
						 .launches = launches },
			  0);
	replica_start(0, &alone);
	run(3 * MINUTE);
}

static int set_up(void **state)
{
	(void)state;
	world_begin(7);
	return 0;
}

static void come(const char *name, int64_t pods)
{
	const struct world_job job = { name, "train", pods, true, 1, NULL, 0 };

	world_job(&job);
	world_scheduler_looks();
}

static bool six_run(void)
{
	return world_job_running("j") == 6;
}

static void assert_spread(int64_t first, int64_t second, int64_t third)
{
	int64_t load[CLOUD_ZONES];

	cloud_zone_load(train, load);
	assert_int_equal(load[0], first);
	assert_int_equal(load[1], second);
	assert_int_equal(load[2], third);
}

static void a_growth_is_spread_over_the_zones(void **state)
{
	(void)state;
	for (int launches = 0; launches < 2; launches++) {
		world_end();
		world_begin(7);
		begin(launches);
		come("j", 6);
		until(six_run, 20 * MINUTE, "all run");
		run(20 * MINUTE);
		assert_int_equal(train->bought, 6);
		assert_spread(2, 2, 2);
	}
}

static void what_a_zone_lacks_is_had_in_the_others(void **state)
{
	(void)state;
	for (int launches = 0; launches < 2; launches++) {
		world_end();
		world_begin(7);
		begin(launches);
		train->faults.dry_zones = 1;
		come("j", 6);
		until(six_run, 20 * MINUTE, "all run");
		run(20 * MINUTE);
		assert_int_equal(train->bought, 6);
		assert_spread(0, launches ? 2 : 3, launches ? 4 : 3); /* after each share one zone has the rest */
	}
}

/* Where a zone has none for long the others are full; what serves there is protected when it has some again. */
static void what_is_at_work_is_not_moved_to_a_thin_zone(void **state)
{
	(void)state;
	begin(false);
	train->faults.dry_zones = 6;
	come("j", 6);
	until(six_run, 20 * MINUTE, "all run");
	train->faults.dry_zones = 0;
	run(30 * MINUTE);
	assert_true(six_run());
	assert_spread(6, 0, 0);
}

static bool is_balancing(void)
{
	return *train->balancing;
}

static bool is_balanced(void)
{
	return !is_balancing() && cloud_awake(train) == train->desired;
}

/* Who lifts protection where zones are uneven has machines moved: one comes beyond the size, also beyond the most, and
 * only then another goes. None of that is called off, and the size stays. */
static void what_balances_zones_is_let(void **state)
{
	(void)state;
	begin(false);
	train->faults.dry_zones = 6;
	come("j", 6);
	until(six_run, 20 * MINUTE, "all run");
	run(MINUTE);
	train->faults.dry_zones = 0;
	train->max = 6;
	int64_t changes = train->changes;
	for (struct cloud_machine *m = train->machines; m; m = m->next)
		m->is_protected = false;
	until(is_balancing, 31 * SECOND, "one is launched in a thin zone");
	assert_int_equal(cloud_awake(train), 7);
	until(is_balanced, 10 * MINUTE, "another goes");
	assert_spread(5, 1, 0);
	assert_int_equal(train->desired, 6);
	assert_int_equal(train->changes, changes);
	assert_false(world_event_told("ForeignSizeChange"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_growth_is_spread_over_the_zones, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_a_zone_lacks_is_had_in_the_others, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_at_work_is_not_moved_to_a_thin_zone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_balances_zones_is_let, set_up, tear_down),
	};

	setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
