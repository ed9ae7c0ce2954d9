/* What is given up before it came, where a cloud takes one operation at a time and answers long before it is over. */
#include "tests/world/lawful.h"
#include "tests/world/value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define GROUP(name, price, max)                                                                               \
	"    - { name: " name ", provider: aks, aks: { subscription: 00000000-0000-0000-0000-000000000000,\n" \
	"        resourceGroup: rg, cluster: world, pool: " name " }, instanceType: Standard_NC4as_T4_v3,\n"  \
	"        zone: z1, gpusPerNode: 1, pricePerHour: " price ", min: 0, max: " max " }\n"

static const char train_text[] = "apiVersion: preheat.dev/v1alpha1\n"
				 "kind: WarmPool\n"
				 "metadata: { name: train, namespace: llm }\n"
				 "spec:\n"
				 "  mode: act\n"
				 "  class: training\n"
				 "  objective: { queueWait: 15m, attainment: 95% }\n"
				 "  workload: { selector: { matchLabels: { app: train } }, gpusPerReplica: 1 }\n"
				 "  signals: { engine: pods }\n"
				 "  nodeGroups:\n" GROUP("cheap", "1", "3")
					 GROUP("dear", "2", "5") "  leadTime: { total: { p50: 150s, p95: 260s } }\n"
								 "  scaleDown: { after: 4m }\n";

static const struct replica_settings alone = { .manifest = train_text };
static struct cloud_group *cheap, *dear;

static struct cloud_group *add(const char *name, int64_t max)
{
	return cloud_add(&(struct cloud_group){ .name = name,
						.pool = "train",
						.zone = "z1",
						.instance_type = "Standard_NC4as_T4_v3",
						.max = max,
						.gpus = 1,
						.wire = CLOUD_AKS },
			 0);
}

static int set_up(void **state)
{
	(void)state;
	world_begin(5);
	cheap = add("cheap", 3);
	dear = add("dear", 5);
	return 0;
}

static void come(const char *name, int64_t pods)
{
	const struct world_job job = { name, "train", pods, true, 1, NULL, 0 };

	world_job(&job);
	world_scheduler_looks();
	run(5 * SECOND);
}

/* The pods of a job that still wait. */
static void leave(const char *name)
{
	for (struct object *p = apiserver_first(KIND_POD), *next; p; p = next) {
		next = p->next;
		if (value_is(p->value, "metadata>labels>job", name))
			apiserver_delete(p);
	}
}

/*
 * Two machines of the cheap group are under way, the third waits for that operation, and one of the dear group is under
 * way, too. When one less is needed it is the third, which nobody has asked for: the dear one would run before AKS
 * takes its cancel, and the third would be bought beside it.
 */
static void what_was_not_asked_for_yet_is_given_up_first(void **state)
{
	(void)state;
	replica_start(0, &alone);
	run(40 * SECOND);
	come("a", 2);
	assert_int_equal(cheap->desired, 2);
	come("b", 1);
	come("c", 1);
	assert_int_equal(cheap->desired, 2);
	assert_int_equal(dear->desired, 1);
	leave("c");
	run(20 * MINUTE);
	assert_int_equal(cheap->bought, 2);
	assert_int_equal(dear->bought, 1);
	assert_int_equal(cloud_awake(cheap) + cloud_awake(dear), 3);
}

#define SCENARIO(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(int argc, char **argv)
{
	setenv("AZURE_TENANT_ID", "tenant", 1);
	setenv("AZURE_CLIENT_ID", "client", 1);
	setenv("AZURE_CLIENT_SECRET", "secret", 1);
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	const struct CMUnitTest tests[] = {
		SCENARIO(what_was_not_asked_for_yet_is_given_up_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
