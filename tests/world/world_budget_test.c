/* The budget of the default pool: what it costs an hour never goes beyond it, whoever waits is told why, and what goes
 * leaves room for the next. */
#include "controller/web/published.h"
#include "tests/world/lawful.h"
#include "tests/world/replays.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define EIGHT_AN_HOUR(one, eight)                                                                                \
	"apiVersion: preheat.dev/v1alpha1\n"                                                                     \
	"kind: WarmPool\n"                                                                                       \
	"metadata: { name: rest, namespace: infra }\n"                                                           \
	"spec:\n"                                                                                                \
	"  mode: act\n"                                                                                          \
	"  class: any\n"                                                                                         \
	"  budget: { dollarsPerHour: 8 }\n"                                                                      \
	"  leadTime: { total: { p50: 150s, p95: 260s } }\n"                                                      \
	"  scaleDown: { after: 5m }\n"                                                                           \
	"  nodeGroups:\n"                                                                                        \
	"    - { name: one, provider: simulated, simulated: { endpoint: \"http://cloud.world\" }, zone: z1,\n"   \
	"        instanceType: g5.xlarge, gpusPerNode: 1, pricePerHour: " one ", min: 0, max: 20 }\n"            \
	"    - { name: eight, provider: simulated, simulated: { endpoint: \"http://cloud.world\" }, zone: z1,\n" \
	"        instanceType: p5.48xlarge, gpusPerNode: 8, pricePerHour: " eight ", min: 0, max: 4 }\n"

static const struct replica_settings alone = { .manifest = EIGHT_AN_HOUR("1", "6") };
static const struct replica_settings unpriced = { .manifest = EIGHT_AN_HOUR("0", "0") };
static struct cloud_group *one, *eight;
static int64_t most;

static int set_up(void **state)
{
	(void)state;
	world_begin(11);
	one = world_group("one", "rest", 1, 0, 20, 0);
	eight = world_group("eight", "rest", 8, 0, 4, 0);
	most = 0;
	return 0;
}

static bool look(void)
{
	int64_t dollars = one->desired + 6 * eight->desired;

	most = dollars > most ? dollars : most;
	return false;
}

static void pass(millis duration)
{
	world_until(look, duration);
	assert_lawful();
	assert_true(most <= 8);
}

static void start(void)
{
	replica_start(0, &alone);
	pass(40 * SECOND);
}

static void come(const char *name, int64_t pods, int gpus, bool is_loose)
{
	world_job(&(struct world_job){
		.name = name, .pool = "nobody", .pods = pods, .is_loose = is_loose, .cpus = 1, .gpus = gpus });
	world_scheduler_looks();
}

static void leave(const char *name)
{
	for (struct object *p = apiserver_first(KIND_POD), *next; p; p = next) {
		next = p->next;
		if (value_is(p->value, "metadata>labels>job", name))
			apiserver_delete(p);
	}
}

static void ends(void)
{
	replica_stop(0);
	assert_replays(replica_history(0));
}

static void pods_beyond_it_wait_and_are_told(void **state)
{
	(void)state;
	start();
	come("small", 12, 1, true);
	pass(10 * MINUTE);
	assert_int_equal(one->desired, 8);
	assert_int_equal(world_job_running("small"), 8);
	assert_true(world_event_says("NotTriggerScaleUp",
				     "fits node group one, where more machines at $1.00 an hour are beyond "
				     "the budget of WarmPool rest: $8.00 of $8.00 an hour are spent"));
	assert_true(world_event_says("LimitedByBudget", ""));
	ends();
}

static void without_prices_it_counts_gpu_hours(void **state)
{
	(void)state;
	replica_start(0, &unpriced);
	pass(40 * SECOND);
	come("small", 12, 1, true);
	pass(10 * MINUTE);
	assert_int_equal(one->desired, 8);
	assert_true(world_event_says("NotTriggerScaleUp",
				     "where more machines at 1 GPU hour an hour are beyond the budget of WarmPool "
				     "rest: 8 GPU hours of 8 GPU hours an hour are spent"));
	ends();
}

/* Two dollars are left beside the machine of eight: for two small ones, and the third comes once it is gone. */
static void what_goes_leaves_room_for_the_next(void **state)
{
	(void)state;
	start();
	come("large", 1, 8, true);
	pass(10 * MINUTE);
	come("small", 3, 1, true);
	pass(10 * MINUTE);
	assert_int_equal(eight->desired, 1);
	assert_int_equal(one->desired, 2);
	assert_int_equal(world_job_running("small"), 2);
	leave("large");
	pass(25 * MINUTE);
	assert_int_equal(world_job_running("small"), 3);
	ends();
}

/* For a part of it, no machine comes. */
static void a_gang_beyond_it_comes_not_at_all(void **state)
{
	(void)state;
	start();
	come("small", 3, 1, true);
	pass(10 * MINUTE);
	assert_int_equal(one->desired, 3);
	come("gang", 6, 1, false);
	pass(10 * MINUTE);
	assert_int_equal(one->desired, 3);
	assert_int_equal(world_job_running("gang"), 0);
	assert_true(world_event_says("NotTriggerScaleUp", "$3.00 of $8.00 an hour are spent"));
	leave("small");
	pass(10 * MINUTE);
	assert_int_equal(world_job_running("gang"), 6);
	assert_int_equal(one->desired, 6);
	ends();
}

#define SCENARIO(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(int argc, char **argv)
{
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	const struct CMUnitTest tests[] = {
		SCENARIO(pods_beyond_it_wait_and_are_told),
		SCENARIO(without_prices_it_counts_gpu_hours),
		SCENARIO(what_goes_leaves_room_for_the_next),
		SCENARIO(a_gang_beyond_it_comes_not_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
