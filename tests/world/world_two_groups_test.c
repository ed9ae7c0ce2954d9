/*
 * A pool of two node groups whose reads are of the past, in traffic that goes up and down, while leaders are killed:
 * what one group was asked for and does not show yet is not bought in the other. Laws: what is bought is what was
 * decided, and so on.
 */
#include "tests/world/lawful.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define POOL(groups)                                                                                            \
	"apiVersion: preheat.dev/v1alpha1\n"                                                                    \
	"kind: WarmPool\n"                                                                                      \
	"metadata: { name: chat, namespace: llm }\n"                                                            \
	"spec:\n"                                                                                               \
	"  mode: act\n"                                                                                         \
	"  class: interactive\n"                                                                                \
	"  objective: { queueWait: 2s, attainment: 99% }\n"                                                     \
	"  workload: { selector: { matchLabels: { app: chat } }, gpusPerReplica: 1, maxSequences: 8,\n"         \
	"      prefillTokensPerSecond: 25k, interTokenLatency: 30ms, scaleTargetRef: { apiVersion: apps/v1,\n"  \
	"      kind: Deployment, name: chat } }\n"                                                              \
	"  signals: { engine: vllm, scrape: { port: 8000, path: /metrics, interval: 15s } }\n"                  \
	"  leadTime: { provision: { p50: 45s, p95: 70s }, register: { p50: 20s, p95: 30s },\n"                  \
	"      device: { p50: 15s, p95: 30s }, image: { p50: 60s, p95: 90s }, load: { p50: 60s, p95: 90s } }\n" \
	"  headroom: { min: 3 }\n"                                                                              \
	"  scaleDown: { after: 5m }\n"                                                                          \
	"  nodeGroups:\n" groups
#define GROUP(name, price, block) \
	"    - { name: " name ", zone: z1, gpusPerNode: 1, pricePerHour: " price ", min: 0, max: 20, " block " }\n"
#define EKS(name, launch)                                                                                     \
	"instanceType: g5.xlarge, provider: eks, eks: { cluster: world, nodegroup: " name ", launch: " launch \
	", region: eu-west-1, endpoint: \"" CLOUD_AWS "\" }"
#define AKS(name)                                                                  \
	"instanceType: Standard_NC4as_T4_v3, provider: aks, aks: { subscription: " \
	"00000000-0000-0000-0000-000000000000,"                                    \
	" resourceGroup: rg, cluster: world, pool: " name " }"

static const struct cloud_kind {
	const char *name, *text, *instance_type;
	enum cloud_wire wire;
	bool launches;
} kinds[] = {
	{ "EKS, launch: instances",
	  POOL(GROUP("first", "0.48", EKS("first", "instances")) GROUP("second", "1", EKS("second", "instances"))),
	  "g5.xlarge", CLOUD_EKS, true },
	{ "EKS, launch: capacity",
	  POOL(GROUP("first", "0.48", EKS("first", "capacity")) GROUP("second", "1", EKS("second", "capacity"))),
	  "g5.xlarge", CLOUD_EKS, false },
	{ "AKS", POOL(GROUP("first", "0.48", AKS("first")) GROUP("second", "1", AKS("second"))), "Standard_NC4as_T4_v3",
	  CLOUD_AKS, false },
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static struct world_app *chat;
static uint64_t first_seed = 1, seeds = 1;

static struct cloud_group *add(const struct cloud_kind *k, const char *name, int64_t size)
{
	return cloud_add(&(struct cloud_group){ .name = name,
						.pool = "chat",
						.zone = "z1",
						.instance_type = k->instance_type,
						.max = 20,
						.gpus = 1,
						.wire = k->wire,
						.launches = k->launches },
			 size);
}

static bool serves_three(void)
{
	return world_ready("chat") >= 3;
}

/* Somebody else leads, or the same one once more. */
static void kill_the_leader(struct random *r, const struct replica_settings *s)
{
	int who = replica_leader();

	if (who < 0)
		return;
	replica_kill(who);
	run((millis)(random_next(r) % 40) * SECOND);
	replica_start(who, s);
}

static void live(const struct cloud_kind *k, uint64_t seed, struct cloud_reads reads, unsigned kills_percent)
{
	const struct replica_settings elected = { .manifest = k->text, .elects = true };
	struct random r = random_stream(seed, "two groups");

	world_begin(seed);
	struct cloud_group *first = add(k, "first", 1), *second = add(k, "second", 0);
	chat = world_app("chat", 1, 1, "25%");
	replica_start(0, &elected);
	replica_start(1, &elected);
	until(serves_three, 30 * MINUTE, "the headroom serves");
	until(world_is_at_rest, 30 * MINUTE, "nothing is on its way");
	first->reads = second->reads = reads;
	run(3 * MINUTE);
	for (int i = 0; i < 24; i++) {
		chat->rate = (double)(random_next(&r) % 110) / 10;
		first->faults.one_less = !(random_next(&r) % 3); /* LaunchInstances tells which part failed */
		run((millis)(20 + random_next(&r) % 400) * SECOND);
		if (random_next(&r) % 100 < kills_percent)
			kill_the_leader(&r, &elected);
	}
	world_end();
}

static void what_one_does_not_show_yet_is_not_bought_in_the_other(void **state)
{
	static const struct cloud_reads reads[] = {
		{ 5 * SECOND, false }, { 30 * SECOND, true }, { 90 * SECOND, false }, { 110 * SECOND, true }
	};
	(void)state;
	for (size_t i = 0; i < KINDS; i++)
		for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++)
			for (size_t k = 0; k < sizeof reads / sizeof *reads; k++)
				for (unsigned kills = 0; kills <= 60; kills += 60) {
					print_message("%s, seed %d, reads of %d s%s, killed in %u %%\n", kinds[i].name,
						      (int)seed, (int)(reads[k].lag / SECOND),
						      reads[k].is_any_order ? " in any order" : "", kills);
					live(&kinds[i], seed, reads[k], kills);
				}
}

/* FIRST COUNT: those seeds. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(what_one_does_not_show_yet_is_not_bought_in_the_other) };

	if (argc > 2) {
		first_seed = strtoull(argv[1], NULL, 10);
		seeds = strtoull(argv[2], NULL, 10);
	}
	setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
	setenv("AZURE_TENANT_ID", "tenant", 1);
	setenv("AZURE_CLIENT_ID", "client", 1);
	setenv("AZURE_CLIENT_SECRET", "secret", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
