/* Pods that wait and what is bought for them: those that no machine helps, and those that need exactly so many. */
#include "tests/world/laws.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

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
	"        instanceType: g5.xlarge, gpusPerNode: 1, pricePerHour: 1, min: 0, max: 12 }\n"
	"  leadTime: { total: { p50: 150s, p95: 260s } }\n"
	"  scaleDown: { after: 4m }\n";

static const struct replica_settings alone = { .manifest = train_text };
static struct cloud_group *train;
static int64_t most, bought, before; /* machines at once; over all; at the last look */

static void begin(int64_t machines)
{
	world_begin(3);
	train = world_group("train", "train", 1, 0, 12, machines);
	most = bought = before = 0;
}

static int set_up(void **state)
{
	(void)state;
	begin(0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	world_end();
	return 0;
}

static bool look(void)
{
	most = train->desired > most ? train->desired : most;
	bought += train->desired > before ? train->desired - before : 0;
	before = train->desired;
	return false;
}

static void run(millis duration)
{
	world_until(look, duration);
	if (!*laws_broken())
		return;
	laws_print_trace(60);
	fail_msg("%s", laws_broken());
}

/* A node of the group is there, idle, and tells what the next one is. */
static void begin_with_a_node(void)
{
	world_end();
	begin(1);
	replica_start(0, &alone);
	run(90 * SECOND);
	assert_int_equal(most, 1);
}

static void expect_told(const char *part)
{
	if (world_event_says("NotTriggerScaleUp", part))
		return;
	laws_print_trace(40);
	fail_msg("no event NotTriggerScaleUp says '%s'", part);
}

static void a_missing_volume_claim_buys_nothing(void **state)
{
	static const struct world_job job = {
		"j",  "train", 4,
		true, 1,       ",'volumes':[{'name':'models','persistentVolumeClaim':{'claimName':'models'}}]",
		0
	};

	(void)state;
	replica_start(0, &alone);
	run(20 * SECOND);
	world_job(&job);
	run(30 * MINUTE);
	assert_int_equal(most, 0);
	expect_told("PersistentVolumeClaim models is missing");
	/* It comes, and so do the machines. */
	apiserver_create(KIND_VOLUME, value_of("{'metadata':{'name':'v'},'spec':{},'status':{'phase':'Bound'}}"));
	apiserver_create(KIND_VOLUME_CLAIM,
			 value_of("{'metadata':{'name':'models','namespace':'llm','annotations':{"
				  "'pv.kubernetes.io/bind-completed':'yes'}},'spec':{'volumeName':'v'}}"));
	run(15 * MINUTE);
	assert_int_equal(world_job_running("j"), 4);
	assert_int_equal(most, 4);
}

static void an_affinity_that_no_node_has_buys_nothing(void **state)
{
	static const struct world_job job = {
		"j",
		"train",
		4,
		true,
		1,
		",'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[{"
		"'matchExpressions':[{'key':'gpu','operator':'In','values':['b200']}]}]}}}",
		0
	};

	(void)state;
	begin_with_a_node();
	world_job(&job);
	run(HOUR);
	assert_int_equal(most, 1);
	assert_int_equal(train->desired, 0);
	expect_told("its node affinity selects no such node");
}

/* Nobody can know better before the first node was seen. */
static void an_affinity_that_may_be_is_tried_and_given_back(void **state)
{
	static const struct world_job job = {
		"j",
		"train",
		4,
		true,
		1,
		",'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[{"
		"'matchExpressions':[{'key':'gpu','operator':'In','values':['b200']}]}]}}}",
		0
	};

	(void)state;
	replica_start(0, &alone);
	run(20 * SECOND);
	world_job(&job);
	run(HOUR);
	assert_in_range(most, 1, 4);
	assert_int_equal(train->desired, 0);
	expect_told("its node affinity selects no such node");
}

static void nine_hundred_processors_buy_nothing(void **state)
{
	static const struct world_job job = { "j", "train", 4, true, 900, NULL, 0 };

	(void)state;
	begin_with_a_node();
	world_job(&job);
	run(HOUR);
	assert_int_equal(most, 1);
	assert_int_equal(train->desired, 0);
	expect_told("wants 900 cpu, a node has 64");
}

/* Nor does an expendable pod hold a machine of a pool whose work is over. */
static void expendable_pods_hold_no_machine_of_work(void **state)
{
	(void)state;
	begin_with_a_node();
	world_plain_pod(apiserver_first(KIND_NODE), "scrap", 1, "");
	struct object *p = apiserver_find(KIND_POD, "llm", "scrap");
	value_set_int(p->value, "spec>priority", -11);
	value_set_text(value_at(p->value, "spec>containers")->first, "resources>limits>nvidia.com/gpu", "1");
	apiserver_changed(p);
	run(HOUR);
	assert_int_equal(train->desired, 0);
	assert_null(apiserver_find(KIND_POD, "llm", "scrap"));
}

static void a_scheduler_that_is_away_buys_nothing(void **state)
{
	static const struct world_job job = { "j", "train", 4, true, 1, NULL, 0 };

	(void)state;
	replica_start(0, &alone);
	run(20 * SECOND);
	world_scheduler(false);
	world_job(&job);
	run(20 * MINUTE);
	assert_int_equal(most, 0);
	expect_told("its scheduler default-scheduler has not looked at it yet");
	world_scheduler(true);
	run(15 * MINUTE);
	assert_int_equal(world_job_running("j"), 4);
	assert_int_equal(most, 4);
}

/* It looked at the pods before it went: the machines come, stand there, and go again. */
static void a_scheduler_that_goes_away_holds_nothing(void **state)
{
	static const struct world_job job = { "j", "train", 4, true, 1, NULL, 0 };

	(void)state;
	replica_start(0, &alone);
	run(20 * SECOND);
	world_job(&job);
	run(5 * SECOND);
	world_scheduler(false);
	run(40 * MINUTE);
	assert_int_equal(most, 4);
	assert_int_equal(train->desired, 0);
	expect_told("its scheduler default-scheduler did not place it");
	world_scheduler(true);
	run(100 * MINUTE);
	assert_int_equal(world_job_running("j"), 4);
	assert_int_equal(most, 4);
}

/* Every half hour another replica leads. What is given up stays so, and only one is tried again at a time. */
static void a_restart_does_not_forget_who_was_given_up(void **state)
{
	static const struct world_job job = { "j", "train", 4, true, 1, NULL, 0 };

	(void)state;
	replica_start(0, &alone);
	run(20 * SECOND);
	world_job(&job);
	run(5 * SECOND);
	world_scheduler(false);
	for (int half_hours = 0; half_hours < 12; half_hours++) {
		run(30 * MINUTE);
		most = half_hours == 0 ? 0 : most;
		replica_stop(0);
		replica_start(0, &alone);
	}
	assert_int_equal(most, 1);
	assert_in_range(bought, 5, 7); /* four, and one after an hour, two and four, each */
	world_scheduler(true);
	run(6 * HOUR);
	assert_int_equal(world_job_running("j"), 4);
	assert_in_range(most, 1, 4);
}

static void gets_what_it_needs(int64_t pods, bool is_loose)
{
	struct world_job job = { "j", "train", pods, is_loose, 1, NULL, 0 };

	replica_start(0, &alone);
	run(20 * SECOND);
	world_job(&job);
	run(20 * MINUTE);
	assert_int_equal(world_job_running("j"), pods);
	assert_int_equal(most, pods);
	world_job_ends("j");
	run(40 * MINUTE);
	assert_int_equal(train->desired, 0);
	assert_int_equal(most, pods);
}

static int64_t told_of_a_machine(void)
{
	int64_t count = 0;

	for (const struct object *e = apiserver_first(KIND_EVENT); e; e = e->next)
		count += value_is(e->value, "reason", "TriggeredScaleUp") &&
			 value_is(e->value, "regarding>kind", "Pod") &&
			 strstr(value_text(e->value, "note"), "a machine of node group train is on its way for it");
	return count;
}

static void pods_of_a_pool_of_its_own_are_told_of_their_machines(void **state)
{
	static const struct world_job job = { "j", "train", 4, false, 1, NULL, 0 };

	(void)state;
	replica_start(0, &alone);
	run(20 * SECOND);
	world_job(&job);
	run(10 * SECOND);
	assert_int_equal(told_of_a_machine(), 4);
	run(20 * MINUTE);
	assert_int_equal(world_job_running("j"), 4);
	assert_int_equal(told_of_a_machine(), 4);
}

static void a_job_of_three_gets_three(void **state)
{
	(void)state;
	gets_what_it_needs(3, false);
}

static void a_job_of_four_gets_four(void **state)
{
	(void)state;
	gets_what_it_needs(4, false);
}

static void four_pods_one_by_one_get_four(void **state)
{
	(void)state;
	gets_what_it_needs(4, true);
}

/* While one runs: what it holds is no reason to ask for more. */
static void a_job_beside_another_gets_its_own(void **state)
{
	static const struct world_job first = { "first", "train", 4, false, 1, NULL, 0 };
	static const struct world_job second = { "second", "train", 3, false, 1, NULL, 0 };

	(void)state;
	replica_start(0, &alone);
	run(20 * SECOND);
	world_job(&first);
	run(10 * MINUTE);
	world_job(&second);
	run(10 * MINUTE);
	assert_int_equal(world_job_running("first") + world_job_running("second"), 7);
	assert_int_equal(most, 7);
}

#define SCENARIO(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

/* With a name, or a part of it with *, only those. */
int main(int argc, char **argv)
{
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	const struct CMUnitTest tests[] = {
		SCENARIO(a_missing_volume_claim_buys_nothing),
		SCENARIO(an_affinity_that_no_node_has_buys_nothing),
		SCENARIO(an_affinity_that_may_be_is_tried_and_given_back),
		SCENARIO(nine_hundred_processors_buy_nothing),
		SCENARIO(expendable_pods_hold_no_machine_of_work),
		SCENARIO(a_scheduler_that_is_away_buys_nothing),
		SCENARIO(a_scheduler_that_goes_away_holds_nothing),
		SCENARIO(a_restart_does_not_forget_who_was_given_up),
		SCENARIO(pods_of_a_pool_of_its_own_are_told_of_their_machines),
		SCENARIO(a_job_of_three_gets_three),
		SCENARIO(a_job_of_four_gets_four),
		SCENARIO(four_pods_one_by_one_get_four),
		SCENARIO(a_job_beside_another_gets_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
