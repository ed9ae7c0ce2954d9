/* A node group that never had a node: what its cloud says of the first one, by every way in which clouds say it. */
#include "tests/world/lawful.h"
#include "tests/world/replays.h"

#include <stdio.h>
#include <stdlib.h>

#define POOL(block, type)                                                                                           \
	"apiVersion: preheat.dev/v1alpha1\n"                                                                        \
	"kind: WarmPool\n"                                                                                          \
	"metadata: { name: rest, namespace: infra }\n"                                                              \
	"spec:\n"                                                                                                   \
	"  mode: act\n"                                                                                             \
	"  class: any\n"                                                                                            \
	"  leadTime: { total: { p50: 150s, p95: 260s } }\n"                                                         \
	"  scaleDown: { after: 5m }\n"                                                                              \
	"  nodeGroups:\n"                                                                                           \
	"    - { name: gpu, " block ", zone: z1, instanceType: " type ", gpusPerNode: 1, pricePerHour: 1, min: 0, " \
	"max: 4 }\n"

#define EKS                                                                                                            \
	POOL("provider: eks, eks: { cluster: world, nodegroup: gpu, region: eu-west-1, endpoint: \"" CLOUD_AWS "\" }", \
	     "g5.xlarge")
#define AKS                                                                                                  \
	POOL("provider: aks, aks: { subscription: 00000000-0000-0000-0000-000000000000, resourceGroup: rg, " \
	     "cluster: world, pool: gpu }",                                                                  \
	     "Standard_NC4as_T4_v3")

static const struct cloud_mark marks[] = { { "team", "ml", NULL, false },
					   { "dedicated", "ml", "NoSchedule", false },
					   { 0 } },
			       by_tag[] = { { "team", "ml", NULL, true },
					    { "dedicated", "ml", "NoSchedule", true },
					    { 0 } };

static const struct way {
	const char *name;
	enum cloud_wire wire;
	const char *type;
	const struct cloud_mark *marks;
	struct replica_settings replica;
} ways[] = {
	{ "labels and taints of an EKS node group", CLOUD_EKS, "g5.xlarge", marks, { .manifest = EKS } },
	{ "tags of an Auto Scaling group", CLOUD_EKS, "g5.xlarge", by_tag, { .manifest = EKS } },
	{ "nodeLabels and nodeTaints of an AKS pool", CLOUD_AKS, "Standard_NC4as_T4_v3", marks, { .manifest = AKS } },
};

static struct cloud_group *gpu;

static void begin(const struct way *w)
{
	world_begin(7);
	gpu = cloud_add(&(struct cloud_group){ .name = "gpu",
					       .pool = "rest",
					       .zone = "z1",
					       .instance_type = w->type,
					       .max = 4,
					       .gpus = 1,
					       .marks = w->marks,
					       .wire = w->wire },
			0);
	replica_start(0, &w->replica);
	run(40 * SECOND);
}

static void end(void)
{
	run(20 * MINUTE);
	assert_int_equal(gpu->desired, 0);
	replica_stop(0);
	assert_replays(replica_history(0));
	world_end();
}

static struct object *pod_of(const char *job)
{
	struct object *p = apiserver_first(KIND_POD);

	while (p && !value_is(p->value, "metadata>labels>job", job))
		p = p->next;
	return p;
}

static void come(const char *name, const char *team, bool tolerates)
{
	char selector[80] = "";

	if (team)
		snprintf(selector, sizeof selector, ",'nodeSelector':{'team':'%s'}", team);
	world_job(&(struct world_job){
		.name = name, .pool = "nobody", .pods = 1, .is_loose = true, .cpus = 1, .gpus = 1, .spec = selector });
	if (tolerates) {
		struct object *p = pod_of(name);
		value_add(value_at(p->value, "spec>tolerations"),
			  value_of("{'key':'dedicated','operator':'Equal','value':'ml','effect':'NoSchedule'}"));
		apiserver_changed(p);
	}
	world_scheduler_looks();
}

static void expect_refused(const struct way *w, const char *why)
{
	run(2 * MINUTE);
	if (gpu->desired == 0 && world_event_says("NotTriggerScaleUp", why))
		return;
	laws_print_trace(60);
	fail_msg("%s: size %d, and '%s' %s", w->name, (int)gpu->desired, why,
		 world_event_says("NotTriggerScaleUp", why) ? "was told" : "was not told");
}

static void who_does_not_fit_what_the_cloud_says_buys_nothing(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		begin(&ways[i]);
		come("intolerant", NULL, false);
		expect_refused(&ways[i], "dedicated");
		apiserver_delete(pod_of("intolerant"));
		come("elsewhere", "web", true);
		expect_refused(&ways[i], "wants team=web, nodes have ml");
		apiserver_delete(pod_of("elsewhere"));
		end();
	}
}

static void who_fits_what_the_cloud_says_gets_a_machine(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		begin(&ways[i]);
		come("fits", "ml", true);
		run(10 * MINUTE);
		assert_int_equal(gpu->desired, 1);
		assert_int_equal(world_job_running("fits"), 1);
		apiserver_delete(pod_of("fits"));
		end();
	}
}

int main(int argc, char **argv)
{
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
	setenv("AZURE_TENANT_ID", "tenant", 1);
	setenv("AZURE_CLIENT_ID", "client", 1);
	setenv("AZURE_CLIENT_SECRET", "secret", 1);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_does_not_fit_what_the_cloud_says_buys_nothing),
		cmocka_unit_test(who_fits_what_the_cloud_says_gets_a_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
