#include "controller/manifest/group_nodes.h"
#include "tests/unit/manifest/loaded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file.h"

/* The text of the design, with all of its keys. */
static const char whole[] =
	"apiVersion: preheat.dev/v1alpha1\n"
	"kind: WarmPool\n"
	"metadata: { name: chat, namespace: llm }\n"
	"spec:\n"
	"  class: interactive\n"
	"  objective: { queueWait: 2s, attainment: 99% }\n"
	"  workload:\n"
	"    selector: { matchLabels: { app: llama-vllm } }\n"
	"    scaleTargetRef: { apiVersion: apps/v1, kind: Deployment, name: llama-vllm }\n"
	"    gpusPerReplica: 1\n"
	"    maxSequences: 105\n"
	"    tokensPerSecond: 3500\n"
	"    prefillTokensPerSecond: 25000\n"
	"    interTokenLatency: 30ms\n"
	"  signals:\n"
	"    engine: vllm\n"
	"    scrape: { port: 8000, path: /metrics, interval: 5s }\n"
	"  nodeGroups:\n"
	"    - { name: g5-spot-a, provider: eks, eks: { cluster: prod, nodegroup: g5-spot-a, region: eu-west-1 },\n"
	"        capacityType: spot, gpusPerNode: 1, pricePerHour: 0.48, min: 0, max: 40 }\n"
	"    - { name: g5-od, provider: eks, eks: { cluster: prod, nodegroup: g5-od, region: eu-west-1 },\n"
	"        capacityType: on-demand, gpusPerNode: 1, pricePerHour: 1.21, min: 1, max: 20,\n"
	"        standby: { max: 10, priceShare: 2%, leadTime: { p50: 90s, p95: 150s } } }\n"
	"  leadTime: { total: { p50: 380s, p95: 650s } }\n"
	"  headroom: { min: 1, max: 20, schedule: [ { days: mon-fri, from: \"08:00\", to: \"19:00\", "
	"timeZone: Europe/Berlin, min: 4 } ] }\n"
	"  scaleDown: { after: auto }\n"
	"  lend: { to: [ batch ], yieldWithin: 30s }\n"
	"  shrinkPriority: 10\n"
	"  budget: { dollarsPerHour: 200 }\n"
	"  mode: act\n";

static void check_whole_pool(const struct pool_spec *p)
{
	assert_string_equal(p->name, "chat");
	assert_string_equal(p->namespace, "llm");
	assert_int_equal(p->class, CLASS_INTERACTIVE);
	assert_int_equal(p->mode, MODE_ACT);
	assert_int_equal(p->objective_wait, 2000);
	assert_int_equal(p->objective_late_ppm, 10000);
	assert_int_equal(p->violation_cost, 0);
	assert_int_equal(p->gpus_per_replica, 1);
	assert_int_equal(p->max_sequences, 105);
	assert_int_equal(p->tokens_per_second, 3500);
	assert_int_equal(p->prefill_tokens_per_second, 25000);
	assert_int_equal(p->inter_token_latency_us, 30000);
	assert_int_equal(p->group_count, 2);
	assert_int_equal(p->groups[1], 1);
	assert_int_equal(p->lead_time.p50, 380000);
	assert_int_equal(p->lead_time.p95, 650000);
	assert_int_equal(p->headroom_min, 1);
	assert_int_equal(p->headroom_max, 20);
	assert_int_equal(p->schedule_count, 1);
	assert_int_equal(p->schedule[0].days, 0x1f);
	assert_int_equal(p->schedule[0].from, 480);
	assert_int_equal(p->schedule[0].to, 1140);
	assert_string_equal(p->schedule[0].time_zone, "Europe/Berlin");
	assert_int_equal(p->schedule[0].min, 4);
	assert_int_equal(p->scale_down_after, 0);
	assert_int_equal(p->lend_to, 1U << CLASS_BATCH);
	assert_int_equal(p->yield_within, 30000);
	assert_int_equal(p->shrink_priority, 10);
	assert_int_equal(p->budget_per_hour, 200000000);
	assert_string_equal(p->budget_name, "");
}

static void the_text_of_the_design(void **state)
{
	CLEANUP(loaded_release) struct loaded l;

	(void)state;
	load(&l, whole);
	assert_true(l.ok);
	assert_int_equal(l.manifest.fleet.pool_count, 1);
	assert_int_equal(l.manifest.fleet.group_count, 2);
	check_whole_pool(&l.manifest.fleet.pools[0]);
	const struct group_spec *g = &l.manifest.fleet.groups[1];
	assert_string_equal(g->name, "g5-od");
	assert_string_equal(g->provider, "eks");
	assert_string_equal(g->settings, "{\"cluster\":\"prod\",\"nodegroup\":\"g5-od\",\"region\":\"eu-west-1\","
					 "\"clusterAutoscalerTags\":\"refuse\",\"launch\":\"capacity\","
					 "\"warmPool\":\"existing\",\"protection\":\"machines\"}");
	assert_int_equal(g->capacity_type, CAPACITY_ON_DEMAND);
	assert_int_equal(g->price_per_hour, 1210000);
	assert_int_equal(g->min_nodes, 1);
	assert_int_equal(g->max_nodes, 20);
	assert_int_equal(g->standby_max_nodes, 10);
	assert_int_equal(g->standby_price_ppm, 20000);
	assert_int_equal(g->standby_lead_time.p95, 150000);
	assert_int_equal(g->standby_first_lead_time.p95, 150000);
	assert_int_equal(l.manifest.fleet.groups[0].capacity_type, CAPACITY_SPOT);
	const struct spec_text *s = &l.manifest.pools[0].spec;
	assert_string_equal(s->workload.selector.match_labels.items[0].value, "llama-vllm");
	assert_string_equal(s->workload.target.name, "llama-vllm");
	assert_int_equal(s->signals.scrape.port, 8000);
	assert_int_equal(s->signals.scrape.interval, 5000);
}

static const char least[] = "apiVersion: preheat.dev/v1alpha1\n"
			    "kind: WarmPool\n"
			    "metadata: { name: chat }\n"
			    "spec:\n"
			    "  objective: { queueWait: 2s, attainment: 99% }\n"
			    "  nodeGroups: [ { name: g5 } ]\n";

static void the_least_and_its_defaults(void **state)
{
	CLEANUP(loaded_release) struct loaded l;

	(void)state;
	load(&l, least);
	assert_true(l.ok);
	const struct pool_spec *p = &l.manifest.fleet.pools[0];
	const struct group_spec *g = &l.manifest.fleet.groups[0];
	assert_string_equal(p->namespace, "default");
	assert_int_equal(p->max_sequences, 105);
	assert_int_equal(p->inter_token_latency_us, 30000);
	assert_int_equal(p->tokens_per_second, 3500);
	assert_int_equal(p->lead_time.p50, 380000);
	assert_int_equal(p->headroom_min, 0);
	assert_int_equal(p->headroom_max, 0);
	assert_int_equal(p->lend_to, 0);
	assert_int_equal(p->budget_per_hour, 0);
	assert_string_equal(g->provider, "simulated");
	assert_string_equal(g->settings, "{}");
	assert_string_equal(g->zone, "");
	assert_int_equal(g->gpus_per_node, 1);
	assert_int_equal(g->price_per_hour, 1000000);
	assert_int_equal(g->max_nodes, 10);
	assert_int_equal(g->standby_max_nodes, 0);
	assert_false(manifest_group_gives(&l.manifest, 0, "max"));
	assert_true(manifest_group_gives(&l.manifest, 0, "name"));
}

#define HEAD	    "apiVersion: preheat.dev/v1alpha1\nkind: WarmPool\nmetadata: { name: a }\nspec:\n"
#define GOAL	    "  objective: { queueWait: 2s, attainment: 99% }\n"
#define GROUP	    "  nodeGroups: [ { name: g } ]\n"
#define SECOND_HEAD "---\napiVersion: preheat.dev/v1alpha1\nkind: WarmPool\nmetadata: { name: b }\nspec:\n"

static void two_of_three_rates_give_the_third(void **state)
{
	CLEANUP(loaded_release) struct loaded latency;
	CLEANUP(loaded_release) struct loaded rate;

	(void)state;
	load(&latency, HEAD GOAL GROUP "  workload: { maxSequences: 50, tokensPerSecond: 1k }\n");
	assert_true(latency.ok);
	assert_int_equal(latency.manifest.fleet.pools[0].inter_token_latency_us, 50000);
	load(&rate, HEAD GOAL GROUP "  workload: { maxSequences: 50, interTokenLatency: 12.5ms }\n");
	assert_true(rate.ok);
	assert_int_equal(rate.manifest.fleet.pools[0].tokens_per_second, 4000);
}

static void a_cost_in_place_of_an_attainment(void **state)
{
	static const char *const specs[] = { HEAD GROUP "  violationCost: 0.01\n",
					     HEAD GROUP "  objective: { queueWait: 2s }\n  violationCost: 0.01\n",
					     HEAD GROUP "  objective: { queueWait: 2s, violationCost: 0.01 }\n",
					     HEAD GROUP "  objective: { violationCost: 0.01 }\n" };

	(void)state;
	for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
		CLEANUP(loaded_release) struct loaded l;
		load(&l, specs[i]);
		assert_true(l.ok);
		assert_int_equal(l.manifest.fleet.pools[0].violation_cost, 10000);
		assert_int_equal(l.manifest.fleet.pools[0].objective_wait, 2000);
	}
}

static void cron_and_clock_make_the_same_windows(void **state)
{
	CLEANUP(loaded_release) struct loaded l;

	(void)state;
	load(&l, HEAD GOAL GROUP "  headroom:\n"
				 "    schedule:\n"
				 "      - { cron: \"0 8 * * mon-fri\", for: 11h, min: 4 }\n"
				 "      - { days: mon-fri, from: \"08:00\", to: \"19:00\", min: 4 }\n"
				 "      - { cron: \"15,45 6,22 * * 0\", for: 3h, min: 1 }\n"
				 "      - { days: [ mon, wed-thu ], from: 22:00, to: \"24:00\", min: 2 }\n");
	assert_true(l.ok);
	const struct pool_spec *p = &l.manifest.fleet.pools[0];
	const struct schedule_window *w = p->schedule;
	assert_int_equal(p->schedule_count, 7);
	assert_int_equal(w[0].days, w[1].days);
	assert_int_equal(w[0].from, w[1].from);
	assert_int_equal(w[0].to, w[1].to);
	assert_int_equal(w[2].days, 0x40);
	assert_int_equal(w[2].from, 6 * 60 + 15);
	assert_int_equal(w[5].from, 22 * 60 + 45);
	assert_int_equal(w[5].to, 60 + 45);
	assert_int_equal(w[6].days, 0x0d);
	assert_int_equal(w[6].to, 0);
	assert_string_equal(w[6].time_zone, "UTC");
}

static void pools_share_groups_and_budgets(void **state)
{
	CLEANUP(loaded_release) struct loaded l;

	(void)state;
	load(&l, HEAD GOAL "  nodeGroups: [ { name: g }, { name: h, pricePerHour: 2 } ]\n"
			   "  budget: { dollarsPerHour: 5, name: both }\n" SECOND_HEAD GOAL
			   "  nodeGroups: [ { name: h }, { name: g, pricePerHour: 0.50, gpusPerNode: 8, zone: z1,\n"
			   "    standby: { max: 3, firstLeadTime: { p50: 4m, p95: 6m } }, aks: { subscription: "
			   "00000000-0000-0000-0000-000000000000, "
			   "resourceGroup: r, cluster: c, pool: p } } ]\n"
			   "  budget: { dollarsPerHour: 5.00, name: both }\n");
	assert_true(l.ok);
	const struct fleet_spec *f = &l.manifest.fleet;
	assert_int_equal(f->group_count, 2);
	assert_int_equal(f->pools[1].groups[0], 1);
	assert_int_equal(f->pools[1].groups[1], 0);
	assert_int_equal(f->groups[0].price_per_hour, 500000);
	assert_int_equal(f->groups[0].gpus_per_node, 8);
	assert_int_equal(f->groups[0].standby_max_nodes, 3);
	assert_int_equal(f->groups[0].standby_lead_time.p50, 90000);
	assert_int_equal(f->groups[0].standby_first_lead_time.p50, 240000);
	assert_string_equal(f->groups[0].zone, "z1");
	assert_string_equal(f->groups[0].provider, "aks");
	assert_int_equal(l.manifest.groups[0].provider, PROVIDER_aks);
	assert_string_equal(manifest_group_label(&l.manifest, 0).value, "p");
	assert_string_equal(f->pools[0].budget_name, "both");
}

static void the_kept_text_reads_the_same(void **state)
{
	CLEANUP(loaded_release) struct loaded l;
	CLEANUP(loaded_release) struct loaded again;

	(void)state;
	load(&l, HEAD GOAL GROUP SECOND_HEAD GOAL GROUP);
	assert_true(l.ok);
	load(&again, l.manifest.text);
	assert_true(again.ok);
	assert_int_equal(again.manifest.fleet.pool_count, 2);
	assert_int_equal(again.manifest.text_len, l.manifest.text_len);
	assert_string_equal(again.manifest.text, l.manifest.text);
}

static void warmth_and_engine_are_settled(void **state)
{
	static const struct {
		const char *text;
		enum warm_choice warm;
		int64_t max_sequences;
		const char *resource;
	} cases[] = {
		{ HEAD GOAL GROUP, WARM_METRIC, 105, "nvidia.com/gpu" },
		{ HEAD GOAL GROUP "  workload: { scaleTargetRef: { name: d } }\n", WARM_REPLICAS, 105,
		  "nvidia.com/gpu" },
		{ HEAD GOAL GROUP "  workload: { scaleTargetRef: { name: d }, warm: placeholders }\n",
		  WARM_PLACEHOLDERS, 105, "nvidia.com/gpu" },
		{ HEAD GOAL GROUP "  workload: { scaleTargetRef: { name: d }, warm: metric }\n", WARM_METRIC, 105,
		  "nvidia.com/gpu" },
		{ HEAD GOAL GROUP "  signals: { engine: pods }\n  workload: { gpuResource: nvidia.com/mig-1g.10gb }\n",
		  WARM_METRIC, 1, "nvidia.com/mig-1g.10gb" },
		{ HEAD GOAL GROUP
		  "  signals: { engine: pods }\n  workload: { maxSequences: 1, gpuResource: amd.com/gpu }\n",
		  WARM_METRIC, 1, "amd.com/gpu" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(loaded_release) struct loaded l;
		load(&l, cases[i].text);
		assert_true(l.ok);
		assert_int_equal(l.manifest.pools[0].spec.workload.warm, cases[i].warm);
		assert_int_equal(l.manifest.fleet.pools[0].max_sequences, cases[i].max_sequences);
		assert_string_equal(l.manifest.pools[0].spec.workload.gpu_resource, cases[i].resource);
	}
}

static void a_modelled_cloud(void **state)
{
	CLEANUP(loaded_release) struct loaded l;

	(void)state;
	load(&l, HEAD GOAL "  nodeGroups:\n"
			   "    - { name: g, simulated: { endpoint: \"http://127.0.0.1:8\", group: there } }\n"
			   "    - { name: h, provider: simulated, simulated: { endpoint: \"http://127.0.0.1:8\" } }\n");
	assert_true(l.ok);
	assert_string_equal(l.manifest.fleet.groups[0].provider, "simulated");
	assert_string_equal(l.manifest.fleet.groups[0].settings,
			    "{\"endpoint\":\"http://127.0.0.1:8\",\"group\":\"there\"}");
	assert_string_equal(l.manifest.fleet.groups[1].settings, "{\"endpoint\":\"http://127.0.0.1:8\"}");
}

/* What a simulation can do without. */
static void list_node(const struct group_text *g, struct buf *out)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const struct schema_labels labels = group_node_labels(g, &a);
	size_t count;
	const struct block_taint *taints = group_node_taints(g, &a, &count);

	for (size_t i = 0; i < labels.count; i++)
		buf_printf(out, "%s=%s ", labels.items[i].key, labels.items[i].value);
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "%s=%s:%s ", taints[i].key, taints[i].value, taints[i].effect);
}

/* Of two pools that name the group, one may say what the other leaves out; what both say must be equal. */
static void what_nodes_are_like_before_one_is_seen(void **state)
{
#define OS	   "kubernetes.io/os=linux "
#define TYPE(name) "node.kubernetes.io/instance-type=" name " beta.kubernetes.io/instance-type=" name " "
#define ZONE(name) "topology.kubernetes.io/zone=" name " failure-domain.beta.kubernetes.io/zone=" name " "
	static const struct {
		const char *group, *again, *node;
	} cases[] = {
		{ "", "", "simulated.preheat.dev/node-group=g " OS },
		{ ", zone: z1, instanceType: g5g.xlarge", "",
		  "simulated.preheat.dev/node-group=g " TYPE("g5g.xlarge") ZONE("z1") "kubernetes.io/arch=arm64 " OS },
		{ ", eks: { cluster: c, nodegroup: ng, region: r }, zone: a, instanceType: g5.xlarge, capacityType: "
		  "spot",
		  "",
		  "eks.amazonaws.com/nodegroup=ng " TYPE("g5.xlarge")
			  ZONE("a") "eks.amazonaws.com/capacityType=SPOT kubernetes.io/arch=amd64 " OS },
		/* Azure's name of the zone begins with the region. */
		{ ", aks: { subscription: 00000000-0000-0000-0000-000000000000, resourceGroup: r, cluster: c, pool: p "
		  "}, "
		  "zone: \"1\", instanceType: other, capacityType: spot",
		  "",
		  "kubernetes.azure.com/agentpool=p agentpool=p " TYPE(
			  "other") "kubernetes.azure.com/scalesetpriority=spot " OS
				   "kubernetes.azure.com/scalesetpriority=spot:NoSchedule " },
		{ ", labels: { gpu: h100, kubernetes.io/os: windows }",
		  ", taints: [ { key: team, value: x, effect: NoExecute }, { key: old, effect: PreferNoSchedule } ]",
		  "gpu=h100 kubernetes.io/os=windows simulated.preheat.dev/node-group=g team=x:NoExecute "
		  "old=:PreferNoSchedule " },
		{ ", taints: [ { key: team, effect: NoExecute } ], startupTaints: [ { key: a, effect: NoSchedule } ]",
		  ", taints: [ { effect: NoExecute, key: team } ], labels: {}",
		  "simulated.preheat.dev/node-group=g " OS "team=:NoExecute " },
		/* Of a Capacity Block or of a Capacity Reservation: their words differ. */
		{ ", eks: { cluster: c, nodegroup: ng, region: r }, instanceType: g5.xlarge, capacityType: reserved",
		  "", "eks.amazonaws.com/nodegroup=ng " TYPE("g5.xlarge") "kubernetes.io/arch=amd64 " OS },
	};
	char text[1500];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(loaded_release) struct loaded l;
		CLEANUP(buf_release) struct buf found = { 0 };
		const char *of_group[] = { cases[i].group, cases[i].again };
		int len = 0;
		for (int k = 0; k < 2; k++)
			len += snprintf(
				text + len, sizeof text - (size_t)len,
				"---\napiVersion: preheat.dev/v1alpha1\nkind: WarmPool\nmetadata: { name: p%d "
				"}\nspec:\n"
				"  objective: { queueWait: 2s, attainment: 99%% }\n  nodeGroups: [ { name: g%s } ]\n",
				k, of_group[k]);
		load(&l, text);
		if (!l.ok)
			fail_msg("case %zu: %s", i, l.error.message);
		list_node(&l.manifest.groups[0], &found);
		assert_string_equal(found.text, cases[i].node);
		assert_int_equal(l.manifest.groups[0].startup_taints.count, i == 5);
	}
}

static void a_cluster_needs_more(void **state)
{
#define SERVED "  workload: { selector: { matchLabels: { app: a } } }\n"
	static const struct {
		const char *text;
		size_t line, column;
		const char *path;
	} cases[] = {
		{ HEAD GOAL GROUP SERVED, 6, 17, "spec.nodeGroups[0].simulated" },
		{ HEAD GOAL GROUP SERVED SECOND_HEAD GOAL
		  "  nodeGroups: [ { name: g, simulated: { endpoint: \"http://c\" } } ]\n" SERVED,
		  0, 0, NULL },
		{ HEAD GOAL "  nodeGroups: [ { name: g, simulated: { endpoint: \"http://c\" } } ]\n", 5, 3,
		  "spec.workload" },
		{ HEAD GOAL "  nodeGroups: [ { name: g, simulated: { endpoint: \"http://c\" } } ]\n"
			    "  workload: { maxSequences: 9 }\n",
		  7, 13, "spec.workload.selector" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(loaded_release) struct loaded l;
		load(&l, cases[i].text);
		assert_true(l.ok);
		assert_int_equal(manifest_check_live(&l.manifest, true, &l.findings, &l.error), !cases[i].path);
		assert_int_equal(l.findings.count, cases[i].path ? 1 : 0);
		if (!cases[i].path)
			continue;
		assert_string_equal(l.findings.items[0].path, cases[i].path);
		assert_int_equal(l.findings.items[0].line, cases[i].line);
		assert_int_equal(l.findings.items[0].column, cases[i].column);
	}
}

static void write_in(const char *folder, const char *name, const char *text)
{
	CLEANUP(buf_release) struct buf path = { 0 };
	struct error e;

	buf_printf(&path, "%s/%s", folder, name);
	assert_true(file_write(path.text, text, strlen(text), &e));
}

static void remove_in(const char *folder, const char *name)
{
	CLEANUP(buf_release) struct buf path = { 0 };

	buf_printf(&path, "%s/%s", folder, name);
	assert_int_equal(unlink(path.text), 0);
}

static void folders_and_files(void **state)
{
	char folder[] = "/tmp/manifest_test.XXXXXX";
	const char *paths[] = { folder };
	struct loaded l = { 0 };
	struct loaded again;

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_false(manifest_load(paths, 1, &l.arena, &l.manifest, &l.findings, &l.error));
	assert_int_equal(l.error.kind, ERROR_INVALID);
	assert_int_equal(l.findings.count, 1);
	assert_true(l.findings.is_incomplete);
	findings_release(&l.findings);
	/* A byte order mark, no newline at the end, and a leading ---. */
	write_in(folder, "2.yml",
		 "\xef\xbb\xbf---\napiVersion: preheat.dev/v1alpha1\nkind: WarmPool\n"
		 "metadata: { name: b }\nspec: { objective: { queueWait: 1s, attainment: 95% }, "
		 "nodeGroups: [ { name: g } ] }");
	write_in(folder, "1.yaml", HEAD GOAL "  nodeGroups: [ { name: g } ]");
	write_in(folder, "3.txt", "not read");
	write_in(folder, ".4.yaml", "not read");
	assert_true(manifest_load(paths, 1, &l.arena, &l.manifest, &l.findings, &l.error));
	assert_int_equal(l.manifest.fleet.pool_count, 2);
	assert_string_equal(l.manifest.fleet.pools[0].name, "a");
	load(&again, l.manifest.text);
	assert_true(again.ok);
	assert_int_equal(again.manifest.fleet.pool_count, 2);
	loaded_release(&again);
	paths[0] = "/no/such/file.yaml";
	assert_false(manifest_load(paths, 1, &l.arena, &l.manifest, &l.findings, &l.error));
	assert_int_equal(l.error.kind, ERROR_NOT_FOUND);
	assert_string_equal(l.findings.items[0].file, paths[0]);
	assert_non_null(strstr(l.findings.items[0].found, "No such file"));
	assert_false(manifest_load(NULL, 0, &l.arena, &l.manifest, &l.findings, &l.error));
	loaded_release(&l);
	remove_in(folder, "1.yaml");
	remove_in(folder, "2.yml");
	remove_in(folder, "3.txt");
	remove_in(folder, ".4.yaml");
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_text_of_the_design),
		cmocka_unit_test(the_least_and_its_defaults),
		cmocka_unit_test(two_of_three_rates_give_the_third),
		cmocka_unit_test(a_cost_in_place_of_an_attainment),
		cmocka_unit_test(cron_and_clock_make_the_same_windows),
		cmocka_unit_test(pools_share_groups_and_budgets),
		cmocka_unit_test(the_kept_text_reads_the_same),
		cmocka_unit_test(warmth_and_engine_are_settled),
		cmocka_unit_test(a_modelled_cloud),
		cmocka_unit_test(what_nodes_are_like_before_one_is_seen),
		cmocka_unit_test(a_cluster_needs_more),
		cmocka_unit_test(folders_and_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
