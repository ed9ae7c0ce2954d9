/*
 * Answers to calls that cost money come late, in half or not at all, and what they are to say is old when it can be
 * read, while work goes and comes back: a group is never asked for more than the work needs. Law: never_bought_twice.
 */
#include "tests/world/lawful.h"
#include "tests/world/value.h"
#include "tests/world/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define POOL(groups)                                                                     \
	"apiVersion: preheat.dev/v1alpha1\n"                                             \
	"kind: WarmPool\n"                                                               \
	"metadata: { name: train, namespace: llm }\n"                                    \
	"spec:\n"                                                                        \
	"  mode: act\n"                                                                  \
	"  class: training\n"                                                            \
	"  objective: { queueWait: 15m, attainment: 95% }\n"                             \
	"  workload: { selector: { matchLabels: { app: train } }, gpusPerReplica: 1 }\n" \
	"  signals: { engine: pods }\n"                                                  \
	"  leadTime: { total: { p50: 150s, p95: 260s } }\n"                              \
	"  scaleDown: { after: 4m }\n"                                                   \
	"  nodeGroups:\n" groups
#define GROUP(name, price, block) \
	"    - { name: " name ", zone: z1, gpusPerNode: 1, pricePerHour: " price ", min: 0, max: 9, " block " }\n"
#define BOTH(block)	POOL(GROUP("cheap", "1", block("cheap")) GROUP("dear", "2", block("dear")))
#define SIMULATED(name) "instanceType: g5.xlarge, provider: simulated, simulated: { endpoint: \"http://cloud.world\" }"
#define EKS(name, launch)                                                                                     \
	"instanceType: g5.xlarge, provider: eks, eks: { cluster: world, nodegroup: " name ", launch: " launch \
	", region: eu-west-1, endpoint: \"" CLOUD_AWS "\" }"
#define CAPACITY(name)	EKS(name, "capacity")
#define INSTANCES(name) EKS(name, "instances")
#define AKS(name)                                                                  \
	"instanceType: Standard_NC4as_T4_v3, provider: aks, aks: { subscription: " \
	"00000000-0000-0000-0000-000000000000, resourceGroup: rg, cluster: world, pool: " name " }"

static const struct cloud_kind {
	const char *text, *growth; /* growth: in a call that asks for machines */
	enum cloud_wire wire;
	bool launches;
} simulated = { BOTH(SIMULATED), "/grow", CLOUD_SIMULATED, false },
  capacity = { BOTH(CAPACITY), "Action=SetDesiredCapacity", CLOUD_EKS, false },
  instances = { BOTH(INSTANCES), "Action=LaunchInstances", CLOUD_EKS, true },
  aks = { BOTH(AKS), "agentPools/cheap", CLOUD_AKS, false };

static const struct cloud_kind *kind;
static struct cloud_group *cheap, *dear;

static struct cloud_group *add(const char *name)
{
	return cloud_add(
		&(struct cloud_group){ .name = name,
				       .pool = "train",
				       .zone = "z1",
				       .instance_type = kind->wire == CLOUD_AKS ? "Standard_NC4as_T4_v3" : "g5.xlarge",
				       .max = 9,
				       .gpus = 1,
				       .wire = kind->wire,
				       .launches = kind->launches },
		0);
}

/* What becomes of the calls that ask the cheaper group for machines. */
static struct {
	int count;
	struct wire_fate first; /* of the first of them */
	bool is_refused_then;	/* the second one, for want of rights */
	millis unheard_until;	/* none arrives before that */
} growths;

static bool is_growth(const struct wire_call *c)
{
	bool is_write = kind->wire != CLOUD_AKS || !strcmp(c->method, "PUT");

	return is_write && (strstr(c->path, kind->growth) || strstr(c->body, kind->growth)) &&
	       !strstr(c->body, "asg-dear") && !strstr(c->path, "dear");
}

static struct wire_fate fate(const struct wire_call *c)
{
	if (!is_growth(c))
		return (struct wire_fate){ 0 };
	growths.count++;
	if (growths.count == 2 && growths.is_refused_then)
		cheap->faults.auth = 1;
	return growths.count == 1 ? growths.first : (struct wire_fate){ 0 };
}

static bool is_unheard(const struct wire_call *c)
{
	return is_growth(c) && wire_now() < growths.unheard_until;
}

static void begin(const struct cloud_kind *k, millis settles)
{
	static struct replica_settings alone;

	kind = k;
	world_begin(5);
	cheap = add("cheap");
	dear = add("dear");
	memset(&growths, 0, sizeof growths);
	wire_on_leave(fate);
	wire_on_hear(is_unheard);
	alone = (struct replica_settings){ .manifest = k->text };
	replica_start(0, &alone);
	run(settles);
}

static int no_world(void **state)
{
	(void)state;
	return 0;
}

static void come(const char *job, int64_t pods)
{
	world_job(&(struct world_job){ job, "train", pods, true, 1, NULL, 0 });
	world_scheduler_looks();
	run(5 * SECOND);
}

/* The pods of a job that still wait. */
static void leave(const char *job)
{
	for (struct object *p = apiserver_first(KIND_POD), *next; p; p = next) {
		next = p->next;
		if (value_is(p->value, "metadata>labels>job", job))
			apiserver_delete(p);
	}
}

static void assert_bought(int64_t machines)
{
	assert_lawful();
	if (cheap->bought + dear->bought == machines)
		return;
	laws_print_trace(60);
	fail_msg("bought %d and %d, not %d", (int)cheap->bought, (int)dear->bought, (int)machines);
}

static void work_that_comes_back_while_a_growth_is_answered(const struct cloud_kind *k)
{
	begin(k, 40 * SECOND);
	growths.first.slow = 28 * SECOND;
	come("a", 3);
	leave("a");
	run(20 * SECOND);
	come("b", 3);
	run(6 * MINUTE);
	assert_bought(3);
}

static void work_that_comes_back_after_a_lost_answer(const struct cloud_kind *k)
{
	begin(k, 40 * SECOND);
	growths.first.is_answer_lost = true;
	cheap->reads.lag = dear->reads.lag = 60 * SECOND;
	come("a", 3);
	leave("a");
	run(20 * SECOND);
	come("b", 3);
	run(6 * MINUTE);
	assert_bought(3);
}

/* Its own PUT was done: those that follow are refused, as the pool is another since. */
static void a_lost_answer_that_reads_do_not_show(const struct cloud_kind *k)
{
	begin(k, 3 * MINUTE);
	growths.first.is_answer_lost = true;
	cheap->reads.lag = dear->reads.lag = 110 * SECOND;
	come("a", 3);
	run(6 * MINUTE);
	assert_bought(3);
}

static void a_lost_answer_and_then_a_refusal(const struct cloud_kind *k)
{
	begin(k, 3 * MINUTE);
	growths.first.is_answer_lost = true;
	growths.is_refused_then = true;
	cheap->reads.lag = dear->reads.lag = 60 * SECOND;
	come("a", 3);
	run(4 * MINUTE);
	assert_bought(3);
}

static void half_an_answer(const struct cloud_kind *k)
{
	begin(k, 3 * MINUTE);
	growths.first.is_answer_half = true;
	come("a", 3);
	run(4 * MINUTE);
	assert_bought(3);
}

static void no_answer_and_then_an_owner_at_work(const struct cloud_kind *k)
{
	begin(k, 3 * MINUTE);
	growths.unheard_until = wire_now() + 75 * SECOND;
	cheap->reads.lag = dear->reads.lag = 60 * SECOND;
	come("a", 3);
	cloud_owner_is_busy(cheap, "an update");
	run(2 * MINUTE);
	cloud_owner_is_busy(cheap, NULL);
	run(3 * MINUTE);
	assert_bought(3);
}

/* What failed before the growth says nothing of reads that came before it. */
static void a_launch_that_failed_before_a_growth(const struct cloud_kind *k)
{
	begin(k, 3 * MINUTE);
	cheap->reads.lag = dear->reads.lag = 60 * SECOND;
	cheap->faults.stock_out = 2;
	cheap->faults.fails_after = 45 * SECOND;
	come("a", 1);
	run(45 * SECOND);
	come("b", 2);
	run(4 * MINUTE);
	assert_true(cheap->desired + dear->desired <= 3);
}

static bool is_look(const struct wire_call *c)
{
	return strstr(c->body, "Action=DescribeAutoScalingGroups") && wire_now() < growths.unheard_until;
}

/* The cancel finds machines that run by then, and other work that takes them. */
static void a_cancel_that_comes_too_late(const struct cloud_kind *k)
{
	begin(k, 3 * MINUTE);
	wire_on_hear(is_look);
	cheap->faults.stock_out = 3;
	cheap->faults.fails_after = 15 * SECOND;
	come("a", 3);
	growths.unheard_until = wire_now() + 25 * SECOND;
	leave("a");
	run(15 * SECOND);
	come("b", 3);
	for (int i = 0; i < 24; i++) {
		run(10 * SECOND);
		assert_true(cheap->desired + dear->desired <= 3);
	}
}

#define ON(kind_, what)                             \
	static void what##_on_##kind_(void **state) \
	{                                           \
		(void)state;                        \
		what(&kind_);                       \
	}
#define CASE(kind_, what) cmocka_unit_test_setup_teardown(what##_on_##kind_, no_world, tear_down)

ON(simulated, work_that_comes_back_while_a_growth_is_answered)
ON(capacity, work_that_comes_back_while_a_growth_is_answered)
ON(aks, work_that_comes_back_while_a_growth_is_answered)
ON(simulated, work_that_comes_back_after_a_lost_answer)
ON(capacity, work_that_comes_back_after_a_lost_answer)
ON(instances, work_that_comes_back_after_a_lost_answer)
ON(aks, a_lost_answer_that_reads_do_not_show)
ON(capacity, a_lost_answer_and_then_a_refusal)
ON(instances, a_lost_answer_and_then_a_refusal)
ON(capacity, half_an_answer)
ON(instances, half_an_answer)
ON(simulated, half_an_answer)
ON(capacity, no_answer_and_then_an_owner_at_work)
ON(capacity, a_launch_that_failed_before_a_growth)
ON(capacity, a_cancel_that_comes_too_late)

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		CASE(simulated, work_that_comes_back_while_a_growth_is_answered),
		CASE(capacity, work_that_comes_back_while_a_growth_is_answered),
		CASE(aks, work_that_comes_back_while_a_growth_is_answered),
		CASE(simulated, work_that_comes_back_after_a_lost_answer),
		CASE(capacity, work_that_comes_back_after_a_lost_answer),
		CASE(instances, work_that_comes_back_after_a_lost_answer),
		CASE(aks, a_lost_answer_that_reads_do_not_show),
		CASE(capacity, a_lost_answer_and_then_a_refusal),
		CASE(instances, a_lost_answer_and_then_a_refusal),
		CASE(capacity, half_an_answer),
		CASE(instances, half_an_answer),
		CASE(simulated, half_an_answer),
		CASE(capacity, no_answer_and_then_an_owner_at_work),
		CASE(capacity, a_launch_that_failed_before_a_growth),
		CASE(capacity, a_cancel_that_comes_too_late),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	setenv("AWS_ACCESS_KEY_ID", "key", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
	setenv("AZURE_TENANT_ID", "tenant", 1);
	setenv("AZURE_CLIENT_ID", "client", 1);
	setenv("AZURE_CLIENT_SECRET", "secret", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
