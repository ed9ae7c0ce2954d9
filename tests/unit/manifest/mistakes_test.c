#include "tests/unit/manifest/loaded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#define HEAD	  "apiVersion: preheat.dev/v1alpha1\nkind: WarmPool\nmetadata: { name: a }\nspec:\n"
#define GOAL	  "  objective: { queueWait: 2s, attainment: 99% }\n"
#define GROUP	  "  nodeGroups: [ { name: g } ]\n"
#define BOTH	  HEAD GOAL GROUP
#define SCALES	  "  workload: { scaleTargetRef: { kind: Deployment, name: x } }\n"
#define NEXT_POOL "---\napiVersion: preheat.dev/v1alpha1\nkind: WarmPool\nmetadata: { name: b }\nspec:\n" GOAL

/* One mistake each: where it is told, and a part of what is told. */
struct mistake {
	const char *text;
	size_t line, column;
	const char *path, *said;
};

static void expect_one(const struct mistake *m)
{
	CLEANUP(loaded_release) struct loaded l;
	CLEANUP(buf_release) struct buf text = { 0 };

	load(&l, m->text);
	for (size_t i = 0; i < l.findings.count; i++) {
		finding_print(&l.findings.items[i], &text);
		buf_text(&text, "\n");
	}
	bool as_wanted = !l.ok && l.findings.count == 1 && l.findings.items[0].line == m->line &&
			 l.findings.items[0].column == m->column && !strcmp(l.findings.items[0].path, m->path) &&
			 strstr(text.text, m->said) && l.error.kind == ERROR_INVALID;
	if (!as_wanted)
		fail_msg("wanted %zu:%zu %s ... %s from\n%s\nbut got\n%s", m->line, m->column, m->path, m->said,
			 m->text, text.text ? text.text : "nothing");
}

#define EXPECT_EACH(cases)                                           \
	for (size_t i = 0; i < sizeof(cases) / sizeof *(cases); i++) \
	expect_one(&(cases)[i])

static void documents(void **state)
{
	static const struct mistake cases[] = {
		{ "", 0, 0, "", "found nothing in it; allowed: at least one WarmPool" },
		{ "# a comment\n---\n", 0, 0, "", "found nothing in it" },
		{ "hello", 1, 1, "", "found 'hello'; allowed: a map of WarmPool: apiVersion, kind" },
		{ "[]", 1, 1, "", "found a list" },
		{ "a: 1\nb: 2\n", 1, 1, "", "found a map without apiVersion and kind" },
		{ "apiVersion: apps/v1\nkind: Deployment\nspec: {}\n", 2, 7, "kind",
		  "found 'Deployment'; allowed: WarmPool" },
		{ "apiVersion: preheat.dev/v1\nkind: WarmPool\nmetadata: { name: a }\nspec:\n" GOAL GROUP, 1, 13,
		  "apiVersion", "allowed: preheat.dev/v1alpha1; do: did you mean" },
		{ "kind: WarmPool\nmetadata: { name: a }\nspec:\n" GOAL GROUP, 1, 1, "apiVersion", "found nothing" },
		{ "apiVersion: preheat.dev/v1alpha1\nkind: WarmPool\nmetadata: {}\nspec:\n" GOAL GROUP, 3, 11,
		  "metadata.name", "found nothing" },
		{ BOTH "  clas: batch\n", 7, 3, "spec.clas", "an unknown key; allowed: class, objective" },
		{ BOTH "  mode: act\n  mode: paused\n", 8, 3, "spec", "found key 'mode' a second time" },
		{ BOTH "---\n" HEAD GOAL GROUP, 10, 19, "metadata.name",
		  "another pool has this one at pool.yaml:3:19" },
		{ BOTH "  mode: &x act\n", 7, 9, "spec", "an anchor or alias" },
	};

	(void)state;
	EXPECT_EACH(cases);
}

/* A value that is wrong at one naming of a group takes nothing from the right ones, and each is told where it stands.
 */
static void shared_groups(void **state)
{
	static const struct mistake cases[] = {
		{ BOTH NEXT_POOL "  nodeGroups: [ { name: g, max: 3, min: 4 } ]\n", 13, 41, "spec.nodeGroups[0].min",
		  "found '4'; allowed: at most max, which is 3" },
		{ HEAD GOAL "  nodeGroups: [ { name: g, capacityType: Spot } ]\n" NEXT_POOL
			    "  nodeGroups: [ { name: g, capacityType: spot } ]\n",
		  6, 42, "spec.nodeGroups[0].capacityType", "found 'Spot'" },
		{ HEAD GOAL "  nodeGroups: [ { name: g, standby: { max: 9 } } ]\n" NEXT_POOL
			    "  nodeGroups: [ { name: g, max: 3, standby: { priceShare: 2% } } ]\n",
		  6, 44, "spec.nodeGroups[0].standby.max", "at most max of the group, which is 3" },
		{ HEAD GOAL "  nodeGroups: [ { name: g, max: 3 } ]\n" NEXT_POOL
			    "  nodeGroups: [ { name: g, max: 4 } ]\n",
		  13, 33, "spec.nodeGroups[0].max", "allowed: 3, as at pool.yaml:6:33" },
	};

	(void)state;
	EXPECT_EACH(cases);
}

#define ONE_OF(labels, port)                                                            \
	"  share: { name: s }\n  workload: { selector: { matchLabels: " labels " } }\n" \
	"  signals: { scrape: { port: " port " } }\n"

static void shares(void **state)
{
	static const struct mistake cases[] = {
		{ BOTH "  share: { level: 1 }\n", 7, 10, "spec.share.name", "" },
		{ BOTH "  share: { name: s, level: 3 }\n", 7, 28, "spec.share.level", "found '3'" },
		{ BOTH "  share: { name: s, level: 2 }\n  signals: { engine: sglang }\n", 7, 28, "spec.share.level",
		  "an engine that sleeps on that level" },
		{ BOTH "  share: { name: s }\n  signals: { engine: tgi }\n", 7, 10, "spec.share.level",
		  "an engine that sleeps on that level" },
		{ BOTH "  share: { name: s, engineMemoryGiB: 1, sleepingMemoryGiB: 2 }\n", 7, 60,
		  "spec.share.sleepingMemoryGiB", "at most engineMemoryGiB, which is 1" },
		{ BOTH "  share: { name: s }\n  workload: { scaleTargetRef: { name: d } }\n", 8, 31,
		  "spec.workload.scaleTargetRef", "the engines of a share stay as they were deployed" },
		{ BOTH ONE_OF("{ app: x, gpu: z }", "8000") NEXT_POOL GROUP ONE_OF("{ gpu: z, app: x }", "8000"), 19,
		  30, "spec.signals.scrape.port", "selects the same pods and has this one at pool.yaml:7:10" },
	};

	(void)state;
	EXPECT_EACH(cases);
}

/* Whatever is wrong, something can be done. */
static void every_finding_has_a_remedy(void **state)
{
	static const char text[] =
		"apiVersion: v2\nkind: WarmPool\nmetadata: { name: Chat_1, namespace: 12, labels: 3 }\nspec:\n"
		"  class: quick\n  objective: { queueWait: 9d, attainment: 120% }\n  violationCost: -1\n  mode: on\n"
		"  workload: { gpusPerReplica: 0, maxSequences: -4, tokensPerSecond: x, selector: [a] }\n"
		"  signals: { engine: foo, scrape: { port: 99999, path: m, interval: 0s }, prometheus: { url: x } }\n"
		"  nodeGroups: 5\n  leadTime: { total: { p50: 2h, p95: 1h } }\n"
		"  headroom: { min: -1, max: 0, schedule: [ { days: never, from: \"25:00\", to: 8, min: 0 }, 5,\n"
		"    { cron: \"0 8 * * *\", for: 90s, min: 1 } ] }\n"
		"  scaleDown: { after: 8d }\n  lend: { to: [ {} ], yieldWithin: 5h }\n  shrinkPriority: x\n"
		"  budget: { dollarsPerHour: 0, name: A }\n";
	CLEANUP(loaded_release) struct loaded l;

	(void)state;
	load(&l, text);
	assert_true(l.findings.count > 30);
	for (size_t i = 0; i < l.findings.count; i++)
		if (!*l.findings.items[i].remedy)
			fail_msg("no remedy: %s", l.findings.items[i].path);
}

static void values(void **state)
{
	static const struct mistake cases[] = {
		{ HEAD GROUP "  objective: { queueWait: 2, attainment: 99% }\n", 6, 27, "spec.objective.queueWait",
		  "found '2'; allowed: a duration from 1ms to 1h, like 2s; do: add the unit: 2s" },
		{ HEAD GROUP "  objective: { queueWait: 2s, attainment: 101% }\n", 6, 43, "spec.objective.attainment",
		  "found '101%'; allowed: a share from 50% to 99.999%" },
		{ HEAD GROUP "  objective: { queueWait: 2s, attainment: 100% }\n", 6, 43, "spec.objective.attainment",
		  "'100%'" },
		{ HEAD GROUP "  objective: { queueWait: 2s, attainment: 0.99 }\n", 6, 43, "spec.objective.attainment",
		  "do: write 99%" },
		{ HEAD GROUP "  objective: { queueWait: -2s, attainment: 99% }\n", 6, 27, "spec.objective.queueWait",
		  "'-2s'" },
		{ BOTH "  class: interactiv\n", 7, 10, "spec.class", "did you mean 'interactive'?" },
		{ BOTH "  class: [ batch ]\n", 7, 10, "spec.class", "found a list" },
		{ BOTH "  class:\n", 7, 9, "spec.class", "found nothing" },
		{ BOTH "  mode: on\n", 7, 9, "spec.mode", "allowed: act, observe, paused" },
		{ BOTH "  workload: { gpusPerReplica: 0 }\n", 7, 31, "spec.workload.gpusPerReplica", "from 1 to 1024" },
		{ BOTH "  workload: { gpusPerReplica: \"1\" }\n", 7, 31, "spec.workload.gpusPerReplica",
		  "remove the quotes" },
		{ BOTH "  workload: { maxSequences: 1.5 }\n", 7, 29, "spec.workload.maxSequences",
		  "a quantity from 1" },
		{ BOTH "  workload: { tokensPerSecond: 99999999999999999999 }\n", 7, 32,
		  "spec.workload.tokensPerSecond", "a quantity" },
		{ BOTH "  workload: { interTokenLatency: nan }\n", 7, 34, "spec.workload.interTokenLatency",
		  "a duration" },
		{ BOTH "  workload: { selector: { matchLabels: { app: true } } }\n", 7, 47,
		  "spec.workload.selector.matchLabels.app", "found a truth value 'true'" },
		{ BOTH "  workload: { scaleTargetRef: { kind: Deployment } }\n", 7, 31,
		  "spec.workload.scaleTargetRef.name", "found nothing" },
		{ BOTH "  signals: { engine: vlm }\n", 7, 22, "spec.signals.engine", "did you mean 'vllm'?" },
		{ BOTH "  signals: { scrape: { port: 70000 } }\n", 7, 30, "spec.signals.scrape.port",
		  "from 1 to 65535" },
		{ BOTH "  signals: { scrape: { path: metrics } }\n", 7, 30, "spec.signals.scrape.path",
		  "begins with /" },
		{ BOTH "  signals: { prometheus: { url: prom:9090 } }\n", 7, 33, "spec.signals.prometheus.url",
		  "http://" },
		{ BOTH "  signals: { prometheus: { url: \"http://p\", auth: { bearerTokenFile: token } } }\n", 7, 70,
		  "spec.signals.prometheus.auth.bearerTokenFile", "begins with /" },
		{ BOTH "  signals: { prometheus: { url: \"http://p\", auth: { basic: { username: u } } } }\n", 7, 60,
		  "spec.signals.prometheus.auth.basic.passwordFile", "found nothing" },
		{ HEAD GOAL "  nodeGroups: []\n", 6, 15, "spec.nodeGroups",
		  "found a list of 0; allowed: a list of 1 to 64" },
		{ HEAD GOAL "  nodeGroups: { name: g }\n", 6, 15, "spec.nodeGroups", "found a map" },
		{ HEAD GOAL "  nodeGroups: [ g ]\n", 6, 17, "spec.nodeGroups[0]",
		  "allowed: a map of node group: name" },
		{ HEAD GOAL "  nodeGroups: [ { max: 3 } ]\n", 6, 17, "spec.nodeGroups[0].name", "found nothing" },
		{ HEAD GOAL "  nodeGroups: [ { name: 1.30 } ]\n", 6, 25, "spec.nodeGroups[0].name",
		  "found a number '1.30'" },
		{ HEAD GOAL "  nodeGroups: [ { name: g, pricePerHour: $3 } ]\n", 6, 42,
		  "spec.nodeGroups[0].pricePerHour", "allowed: dollars from 0 to 10000" },
		{ BOTH "  lend: { to: [ bach ] }\n", 7, 17, "spec.lend.to[0]", "did you mean 'batch'?" },
		{ BOTH "  headroom: { max: 0 }\n", 7, 20, "spec.headroom.max", "from 1 to 100000; or none" },
		{ BOTH "  scaleDown: { after: never }\n", 7, 23, "spec.scaleDown.after", "or auto" },
		{ BOTH "  budget: {}\n", 7, 11, "spec.budget.dollarsPerHour", "found nothing" },
		{ BOTH "  leadTime: { total: { p50: 3m } }\n", 7, 22, "spec.leadTime.total.p95", "found nothing" },
	};

	(void)state;
	EXPECT_EACH(cases);
}

static void schedules(void **state)
{
#define WINDOW(w) BOTH "  headroom:\n    schedule:\n      - { " w " }\n"
#define AT	  "spec.headroom.schedule[0]"
	static const struct mistake cases[] = {
		{ WINDOW("days: mon-fry, from: 8:00, to: 9:00, min: 1"), 9, 17, AT ".days", "weekdays, like mon-fri" },
		{ WINDOW("from: 8am, to: 9:00, min: 1"), 9, 17, AT ".from", "a time of day" },
		{ WINDOW("from: \"08:60\", to: 9:00, min: 1"), 9, 17, AT ".from", "a time of day" },
		{ WINDOW("from: 8:00, to: \"24:01\", min: 1"), 9, 27, AT ".to", "a time of day" },
		{ WINDOW("from: 8:00, to: 9:00, timeZone: Europe/Berln, min: 1"), 9, 43, AT ".timeZone", "IANA" },
		{ WINDOW("from: 8:00, to: 9:00"), 9, 9, AT ".min", "found nothing" },
		{ WINDOW("from: 8:00, min: 1"), 9, 9, AT ".to", "or cron and for" },
		{ WINDOW("from: 8:00, to: 9:00, for: 1h, min: 1"), 9, 38, AT ".for", "for without cron" },
		{ WINDOW("cron: \"0 8 * * mon-fri\", min: 1"), 9, 9, AT ".for", "how long the window stays open" },
		{ WINDOW("cron: \"0 8 * * mon-fri\", for: 11h, to: 9:00, min: 1"), 9, 50, AT ".to",
		  "one of the two forms" },
		{ WINDOW("cron: \"0 8 1 * *\", for: 11h, min: 1"), 9, 17, AT ".cron",
		  "day of month and month must be *" },
		{ WINDOW("cron: \"*/5 8 * * *\", for: 1m, min: 1"), 9, 17, AT ".cron", "steps as lists" },
		{ WINDOW("cron: \"0 24 * * *\", for: 1m, min: 1"), 9, 17, AT ".cron", "MINUTE HOUR" },
		{ WINDOW("cron: \"0 8 * *\", for: 1m, min: 1"), 9, 17, AT ".cron", "MINUTE HOUR" },
		{ WINDOW("cron: \"0 8 * * *\", for: 90s, min: 1"), 9, 35, AT ".for", "whole minutes" },
		{ WINDOW("cron: \"0 8 * * *\", for: 25h, min: 1"), 9, 35, AT ".for", "from 1m to 1d" },
		{ WINDOW("from: 8:00, to: 9:00, min: 11"), 9, 38, AT ".min", "at most the 10 replicas" },
	};

	(void)state;
	EXPECT_EACH(cases);
}

static void contradictions_in_a_pool(void **state)
{
	static const struct mistake cases[] = {
		{ HEAD GROUP, 5, 3, "spec.objective", "say what the pool must keep" },
		{ HEAD GROUP "  objective: { queueWait: 2s }\n", 6, 14, "spec.objective.attainment",
		  "or violationCost" },
		{ HEAD GROUP "  objective: { attainment: 99% }\n", 6, 14, "spec.objective.queueWait", "which wait" },
		{ BOTH "  violationCost: 0.01\n", 7, 18, "spec.violationCost", "violationCost beside attainment" },
		{ HEAD GROUP "  objective: { queueWait: 2s, violationCost: 1 }\n  violationCost: 0.01\n", 7, 18,
		  "spec.violationCost", "at two places" },
		{ BOTH "  workload: { maxSequences: 10, tokensPerSecond: 9k, interTokenLatency: 10ms }\n", 7, 50,
		  "spec.workload.tokensPerSecond", "at most about 1000" },
		{ BOTH "  signals: { scrape: { port: 1 }, prometheus: { url: \"http://p\" } }\n", 7, 47,
		  "spec.signals.prometheus", "prometheus beside scrape" },
		{ BOTH "  signals: { devices: { interval: 1m } }\n", 7, 23, "spec.signals.devices.url",
		  "add it, or signals.prometheus" },
		{ BOTH "  signals: { queue: { interval: 5s } }\n", 7, 21, "spec.signals.queue.promql",
		  "promql, endpointPicker, json or activator" },
		{ BOTH "  signals: { queue: { activator: { service: c }, counts: unfinished } }\n", 7, 58,
		  "spec.signals.queue.counts", "only what waits is held there" },
		{ BOTH "  signals: { queue: { activator: { service: c } } }\n" NEXT_POOL GROUP
		       "  signals: { queue: { activator: { service: c } } }\n",
		  15, 45, "spec.signals.queue.activator.service", "another pool has this one at pool.yaml:7:45" },
		{ BOTH "  mode: act\n" SCALES NEXT_POOL GROUP "  mode: act\n" SCALES, 17, 57,
		  "spec.workload.scaleTargetRef.name", "another pool sets the replicas of this one at pool.yaml:8:57" },
		{ BOTH "  signals: { queue: { activator: { hold: 2m } } }\n", 7, 34,
		  "spec.signals.queue.activator.service", "" },
		{ BOTH "  signals: { queue: { promql: x, url: \"http://p\", json: { url: \"http://q\", path: a } } }\n",
		  7, 57, "spec.signals.queue.json", "more than one of" },
		{ BOTH "  signals: { queue: { promql: x } }\n", 7, 21, "spec.signals.queue.url",
		  "add it, or signals.prometheus" },
		{ BOTH "  signals: { queue: { endpointPicker: { pool: p } } }\n", 7, 21, "spec.signals.queue.url",
		  "or the picker's own url" },
		{ BOTH "  signals: { queue: { url: \"http://p\", json: { url: \"http://q\", path: a } } }\n", 7, 28,
		  "spec.signals.queue.url", "url beside another one" },
		{ BOTH "  signals: { queue: { json: { url: \"http://q\", path: \"a[x]\" } } }\n", 7, 54,
		  "spec.signals.queue.json.path", "brackets hold a number" },
		{ BOTH "  signals: { queue: { json: { url: \"http://q\" } } }\n", 7, 29, "spec.signals.queue.json.path",
		  "found nothing" },
		{ BOTH "  signals: { prometheus: { url: \"http://p\", labels: { app.io/x: z } } }\n", 7, 65,
		  "spec.signals.prometheus.labels.app.io/x", "a label of Prometheus" },
		{ BOTH "  signals: { prometheus: { url: \"http://p\", tls: { certFile: /x } } }\n", 7, 50,
		  "spec.signals.prometheus.tls.keyFile", "certFile and keyFile go together" },
		{ BOTH
		  "  signals: { prometheus: { url: \"http://p\", auth: { bearerTokenFile: /t, basic: { username: u, "
		  "passwordFile: /p } } } }\n",
		  7, 81, "spec.signals.prometheus.auth.basic", "basic beside bearerTokenFile" },
		{ BOTH "  leadTime: { total: { p50: 9m, p95: 5m } }\n", 7, 29, "spec.leadTime.total.p50",
		  "at most p95, which is 5m" },
		{ BOTH "  leadTime: { total: { p50: 1m, p95: 5m }, load: { p50: 1s, p95: 2s } }\n", 7, 22,
		  "spec.leadTime.total", "total beside stages" },
		{ BOTH "  leadTime: { load: { p50: 3s, p95: 2s } }\n", 7, 28, "spec.leadTime.load.p50", "which is 2s" },
		{ BOTH "  headroom: { min: 5, max: 4 }\n", 7, 20, "spec.headroom.min", "headroom.max, which is 4" },
		{ BOTH "  headroom: { min: 11 }\n", 7, 20, "spec.headroom.min", "at most the 10 replicas" },
		{ BOTH "  lend: { to: [ batch, interactive ] }\n", 7, 15, "spec.lend.to", "the pool's own class" },
		{ BOTH "  budget: { dollarsPerHour: 0.5 }\n", 7, 29, "spec.budget.dollarsPerHour",
		  "the price of one node" },
		{ HEAD GOAL "  nodeGroups: [ { name: g, min: 5 } ]\n  budget: { dollarsPerHour: 4 }\n", 7, 29,
		  "spec.budget.dollarsPerHour", "at least 5, what min" },
		{ HEAD GOAL
		  "  nodeGroups: [ { name: g, pricePerHour: 1, standby: { max: 1, firstLeadTime: { p50: 9m, p95: "
		  "5m } } } ]\n",
		  6, 86, "spec.nodeGroups[0].standby.firstLeadTime.p50", "at most p95, which is 5m" },
		{ HEAD GOAL
		  "  nodeGroups: [ { name: g, pricePerHour: 1, standby: { max: 1, leadTime: { p50: 90s, p95: 5m }, "
		  "firstLeadTime: { p50: 60s, p95: 5m } } } ]\n",
		  6, 119, "spec.nodeGroups[0].standby.firstLeadTime.p50", "at least that of standby.leadTime, 1m30s" },
		{ BOTH "  signals: { podSelector: { matchLabels: { \"a b\": x } } }\n", 7, 51,
		  "spec.signals.podSelector.matchLabels.a b", "a key like team" },
	};

	(void)state;
	EXPECT_EACH(cases);
}

static void workloads(void **state)
{
#define WORK(w)	  BOTH "  workload: { " w " }\n"
#define ENGINE(s) BOTH "  signals: { engine: pods" s " }\n"
#define STOCK(s)  BOTH "  signals: { engine: share" s " }\n"
#define COST(key) BOTH "  costLabels: { product: " key " }\n"
#define RESOURCE  "spec.workload.gpuResource"
	static const struct mistake cases[] = {
		{ COST("the product"), 7, 26, "spec.costLabels.product", "a name as labels and resources have it" },
		{ COST("example.com/"), 7, 26, "spec.costLabels.product", "a name as labels and resources have it" },
		{ COST("-a"), 7, 26, "spec.costLabels.product", "a name as labels and resources have it" },
		{ COST("Example.com/a"), 7, 26, "spec.costLabels.product", "a name as labels and resources have it" },
		{ COST("a/b/c"), 7, 26, "spec.costLabels.product", "a name as labels and resources have it" },
		{ COST("[ a ]"), 7, 26, "spec.costLabels.product", "found a list" },
		{ WORK("gpuResource: gpu"), 7, 28, RESOURCE, "found 'gpu'; allowed: an extended resource" },
		{ WORK("gpuResource: nvidia.com/"), 7, 28, RESOURCE, "a name as labels and resources have it" },
		{ WORK("gpuResource: /gpu"), 7, 28, RESOURCE, "a name as labels and resources have it" },
		{ WORK("gpuResource: NVIDIA.com/gpu"), 7, 28, RESOURCE, "a name as labels and resources have it" },
		{ WORK("gpuResource: nvidia.com/a/b"), 7, 28, RESOURCE, "a name as labels and resources have it" },
		{ WORK("gpuResource: nvidia.com/mig-1g.10gb-"), 7, 28, RESOURCE,
		  "a name as labels and resources have it" },
		{ WORK("gpuResource: 7"), 7, 28, RESOURCE, "found a number '7'" },
		{ WORK("warm: replica"), 7, 21, "spec.workload.warm", "did you mean 'replicas'?" },
		{ WORK("warm: replicas"), 7, 21, "spec.workload.warm", "name what is to be scaled" },
		{ WORK("prefetch: image"), 7, 25, "spec.workload.prefetch", "its images are pulled" },
		{ WORK("warm: placeholders"), 7, 21, "spec.workload.warm", "its image is kept warm" },
		{ ENGINE(", scrape: {}"), 7, 36, "spec.signals.scrape", "the pods are counted" },
		{ ENGINE(", prometheus: { url: \"http://p\" }"), 7, 40, "spec.signals.prometheus",
		  "the pods are counted" },
		{ ENGINE("") "  workload: { maxSequences: 2 }\n", 8, 29, "spec.workload.maxSequences",
		  "found '2'; allowed: 1 with signals.engine pods" },
		{ STOCK("") "  workload: { maxSequences: 2 }\n", 8, 29, "spec.workload.maxSequences",
		  "found '2'; allowed: 1 with signals.engine share" },
		{ STOCK(", scrape: {}"), 7, 37, "spec.signals.scrape", "the pools of the share are asked" },
		{ STOCK(", queue: { promql: x, url: \"http://p\" }"), 7, 36, "spec.signals.queue",
		  "found queue with engine share" },
		{ STOCK(", podSelector: { matchLabels: { a: b } }"), 7, 42, "spec.signals.podSelector",
		  "found podSelector with engine share" },
		{ STOCK("") "  share: { name: s }\n", 8, 10, "spec.share", "the stock of a share is in none itself" },
		{ HEAD GOAL "  nodeGroups: [ { name: g, gpusPerNode: 2 } ]\n  signals: { engine: share }\n", 6, 41,
		  "spec.nodeGroups[0].gpusPerNode", "found '2'; allowed: 1 with signals.engine share" },
		{ STOCK("") "  lend: { to: [batch] }\n", 8, 9, "spec.lend", "found lend with signals.engine share" },
		{ STOCK("") "  class: training\n", 8, 10, "spec.class", "training with signals.engine share" },
	};

	(void)state;
	EXPECT_EACH(cases);
}

static void the_default_pool(void **state)
{
#define ANY    HEAD "  class: any\n" GROUP
#define BESIDE " with class any; allowed: nodeGroups, scaleDown"
	static const struct mistake cases[] = {
		{ HEAD "  class: any\n" GOAL GROUP, 6, 14, "spec.objective", "objective" BESIDE },
		{ ANY "  violationCost: 0.01\n", 7, 18, "spec.violationCost", "violationCost" BESIDE },
		{ ANY "  budget: { dollarsPerHour: 0.5 }\n", 7, 29, "spec.budget.dollarsPerHour",
		  "the price of one node" },
		{ ANY "  lend: { to: [ batch ] }\n", 7, 9, "spec.lend", "lend" BESIDE },
		{ ANY "  headroom: { min: 1 }\n", 7, 13, "spec.headroom", "headroom" BESIDE },
		{ ANY "  workload: { selector: { matchLabels: { a: b } } }\n", 7, 25, "spec.workload.selector",
		  "selector" BESIDE },
		{ ANY "  workload: { gpuResource: amd.com/gpu }\n", 7, 28, "spec.workload.gpuResource",
		  "gpuResource" BESIDE },
		{ ANY "  signals: { queue: { promql: x, url: \"http://p\" } }\n", 7, 21, "spec.signals.queue",
		  "queue" BESIDE },
		{ ANY "---\napiVersion: preheat.dev/v1alpha1\nkind: WarmPool\nmetadata: { name: b }\nspec:\n"
		      "  class: any\n" GROUP,
		  12, 10, "spec.class", "one pool of class any; there is another at" },
		{ HEAD GOAL GROUP "  scaleDown: { utilization: 30% }\n", 7, 29, "spec.scaleDown.utilization",
		  "utilization without class any; allowed: after alone" },
		{ ANY "  scaleDown: { utilization: 101% }\n", 7, 29, "spec.scaleDown.utilization", "from 0%" },
		{ HEAD GOAL GROUP "  lend: { to: [ any ] }\n", 7, 17, "spec.lend.to[0]", "found 'any'" },
	};

	(void)state;
	EXPECT_EACH(cases);
}

static void contradictions_among_groups(void **state)
{
#define GROUPS(g)    HEAD GOAL "  nodeGroups: [ " g " ]\n"
#define FIRST	     "spec.nodeGroups[0]"
#define KEY_43	     "a123456789b123456789c123456789d123456789e12"
#define KEY_129	     KEY_43 KEY_43 KEY_43
#define SUBSCRIPTION "subscription: 00000000-0000-0000-0000-000000000000"
	static const struct mistake cases[] = {
		{ GROUPS("{ name: g, min: 5, max: 2 }"), 6, 33, FIRST ".min", "at most max, which is 2" },
		{ GROUPS("{ name: g, resources: { cpu: \"4\" } }"), 6, 46, FIRST ".resources.cpu",
		  "found cpu; allowed: an extended resource as nodes offer it" },
		{ GROUPS("{ name: g, resources: { amd.com/gpu: \"0\" } }"), 6, 54, FIRST ".resources.amd.com/gpu",
		  "a whole number from 1 to 100000 in quotes" },
		{ GROUPS("{ name: g, standby: { max: 11 } }"), 6, 44, FIRST ".standby.max", "which is 10" },
		{ GROUPS("{ name: g, standby: { max: 1, priceShare: 0% } }"), 6, 59, FIRST ".standby.priceShare",
		  "from 0.01%" },
		{ GROUPS("{ name: g, pricePerHour: 0, standby: { max: 1 } }"), 6, 42, FIRST ".pricePerHour",
		  "standby of a group without a price" },
		{ GROUPS("{ name: g, standby: { leadTime: { p50: 3s, p95: 2s } } }"), 6, 56,
		  FIRST ".standby.leadTime.p50", "which is 2s" },
		{ GROUPS("{ name: g }, { name: g }"), 6, 38, "spec.nodeGroups[1].name", "the same group twice" },
		{ GROUPS("{ name: g, eks: { cluster: c, nodegroup: ng, region: r } }, { name: h, eks: { cluster: c, "
			 "nodegroup: ng, region: r } }"),
		  6, 93, "spec.nodeGroups[1].eks",
		  "found the cloud's group of node group g, too: eks.amazonaws.com/nodegroup=ng; allowed: each node "
		  "group of the cloud under one name" },
		{ GROUPS("{ name: g, eks: { cluster: c, nodegroup: ng, region: r, autoScalingGroup: a } }, { name: h, "
			 "eks: { cluster: c, nodegroup: other, region: r, autoScalingGroup: a } }"),
		  6, 114, "spec.nodeGroups[1].eks",
		  "found the cloud's group of node group g, too: autoScalingGroup=a; allowed" },
		{ GROUPS("{ name: g, eks: { cluster: c, nodegroup: ng, region: r, tags: team=ml } }, { name: h, "
			 "eks: { cluster: c, nodegroup: other, region: r, tags: team=ml } }"),
		  6, 108, "spec.nodeGroups[1].eks",
		  "found the cloud's group of node group g, too: tags=team=ml; allowed" },
		{ GROUPS("{ name: g, eks: { cluster: c, nodegroup: ng, region: r, autoScalingGroup: a, tags: b } }"), 6,
		  100, FIRST ".eks.tags", "tags beside autoScalingGroup" },
		{ GROUPS("{ name: g, eks: { cluster: c, nodegroup: ng, region: r, protection: group } }"), 6, 85,
		  FIRST ".eks.protection", "beside autoScalingGroup or tags only" },
		{ GROUPS("{ name: g, eks: { cluster: c, nodegroup: ng, region: r, clusterAutoscalerTags: maybe } }"), 6,
		  96, FIRST ".eks.clusterAutoscalerTags", "refuse, ignore" },
		{ GROUPS("{ name: g, capacityType: spot, standby: { max: 1 }, eks: { cluster: c, nodegroup: ng, "
			 "region: r } }"),
		  6, 64, FIRST ".standby.max", "a warm pool holds no spot machines" },
		{ GROUPS("{ name: g, capacityType: spot, reservedUntil: \"2027-01-31T11:30:00Z\" }"), 6, 63,
		  FIRST ".reservedUntil", "beside capacityType: reserved" },
		{ GROUPS("{ name: g, capacityType: reserved, reservedUntil: 2027-01-31 }"), 6, 67,
		  FIRST ".reservedUntil", "a date and time with its zone" },
		{ GROUPS("{ name: g, provider: eks }"), 6, 17, FIRST ".eks",
		  "a map of eks: cluster, nodegroup, region" },
		{ GROUPS("{ name: g, provider: simulated, eks: { cluster: c, nodegroup: ng, region: r } }"), 6, 54,
		  FIRST ".eks", "settings of another provider" },
		{ GROUPS("{ name: g, eks: { cluster: c, nodegroup: ng, region: r }, aks: { subscription: s, "
			 "resourceGroup: r, cluster: c, pool: p } }"),
		  6, 80, FIRST ".aks", "the block of provider eks only" },
		{ GROUPS("{ name: g, eks: { cluster: a/../b, nodegroup: ng, region: r } }"), 6, 44,
		  FIRST ".eks.cluster", "found 'a/../b'; allowed: letters, digits" },
		{ GROUPS("{ name: g, eks: { cluster: c, nodegroup: -ng, region: r } }"), 6, 58, FIRST ".eks.nodegroup",
		  "beginning with a letter or digit" },
		{ GROUPS("{ name: g, eks: { cluster: c, nodegroup: ng, region: eu.example.com } }"), 6, 70,
		  FIRST ".eks.region", "like eu-west-1" },
		{ GROUPS("{ name: g, eks: { cluster: c, nodegroup: ng, region: r, tags: \"a=b, ,c\" } }"), 6, 79,
		  FIRST ".eks.tags", "key=value pairs" },
		{ GROUPS("{ name: g, eks: { cluster: c, nodegroup: ng, region: r, tags: \"" KEY_129 "=v\" } }"), 6, 79,
		  FIRST ".eks.tags", "found a tag without a key, or too long" },
		{ GROUPS("{ name: g, eks: { cluster: c, nodegroup: ng, region: r, tags: \"a,b,c,d,e,f,g,h,i,j,k\" } }"),
		  6, 79, FIRST ".eks.tags", "found more than 10; allowed: 10 at most" },
		{ GROUPS("{ name: g, eks: { cluster: c, nodegroup: ng, region: r, endpoint: \"https://a.example\" } }"),
		  6, 83, FIRST ".eks.endpoint", "found 'https://a.example'; allowed: a host below amazonaws.com" },
		{ GROUPS("{ name: g, eks: { cluster: c, nodegroup: ng, region: r, endpoint: \"http://eks.api.aws\" } "
			 "}"),
		  6, 83, FIRST ".eks.endpoint", "would be told credentials unencrypted" },
		{ GROUPS("{ name: g, aks: { subscription: prod, resourceGroup: r, cluster: c, pool: p } }"), 6, 49,
		  FIRST ".aks.subscription", "an id like 00000000-" },
		{ GROUPS("{ name: g, aks: { " SUBSCRIPTION ", resourceGroup: r/g, cluster: c, pool: p } }"), 6, 102,
		  FIRST ".aks.resourceGroup", "not ending with a dot" },
		{ GROUPS("{ name: g, aks: { " SUBSCRIPTION ", resourceGroup: \"a b\", cluster: c, pool: p } }"), 6, 102,
		  FIRST ".aks.resourceGroup", "not ending with a dot" },
		{ GROUPS("{ name: g, aks: { " SUBSCRIPTION ", resourceGroup: r, cluster: c, pool: p, "
			 "resourceManager: \"http://a.example\" } }"),
		  6, 143, FIRST ".aks.resourceManager", "found 'http://a.example'; allowed: an https:// address" },
		{ GROUPS("{ name: g, aks: { " SUBSCRIPTION ", resourceGroup: r, cluster: c, pool: gpu-1 } }"), 6, 123,
		  FIRST ".aks.pool", "small letters and digits" },
		{ GROUPS("{ name: g, karpenter: { nodePool: A B } }"), 6, 51, FIRST ".karpenter.nodePool",
		  "found 'A B'" },
		{ GROUPS("{ name: g, external: { label: a b, value: x } }"), 6, 47, FIRST ".external.label",
		  "the key of a label" },
		{ GROUPS("{ name: g, external: { label: a/b, value: x y } }"), 6, 59, FIRST ".external.value",
		  "inner dashes" },
		{ GROUPS("{ name: g, clusterApi: { machineDeployment: a, namespace: n.s, label: l, value: v } }"), 6,
		  75, FIRST ".clusterApi.namespace", "small letters" },
		{ GROUPS("{ name: g, simulated: {} }"), 6, 39, FIRST ".simulated.endpoint", "found nothing" },
		{ GROUPS("{ name: g, simulated: { endpoint: \"cloud:80\" } }"), 6, 51, FIRST ".simulated.endpoint",
		  "http://" },
		{ GROUPS("{ name: g, provider: eks, eks: { cluster: c, nodegroup: ng, region: r }, simulated: { "
			 "endpoint: "
			 "\"http://c\" } }"),
		  6, 101, FIRST ".simulated", "the block of provider eks only" },
		{ GROUPS("{ name: g, eks: { cluster: c, nodegroup: ng } }"), 6, 33, FIRST ".eks.region",
		  "found nothing" },
		{ GROUPS("{ name: g, gpusPerNode: 4 }") "  workload: { gpusPerReplica: 8 }\n", 6, 41,
		  FIRST ".gpusPerNode", "nodes of 4 GPUs for replicas of 8" },
		{ GROUPS("{ name: g, pricePerHour: 1 }, { name: h }"), 6, 47, "spec.nodeGroups[1].pricePerHour",
		  "a price for all groups" },
		{ GROUPS("{ name: g, zone: a }") NEXT_POOL "  nodeGroups: [ { name: g, zone: b } ]\n", 13, 34,
		  FIRST ".zone", "found 'b'; allowed: a, as at pool.yaml:6:34" },
		{ GROUPS("{ name: g, resources: { x/y: \"1\" } }") NEXT_POOL
		  "  nodeGroups: [ { name: g, resources: { x/y: \"2\" } } ]\n",
		  13, 39, FIRST ".resources", "allowed: the same entries, as at pool.yaml:6:39" },
		/* A driver may stand there: only that the two differ is a mistake. */
		{ GROUPS("{ name: g, resources: { gpu.intel.com: \"1\" } }") NEXT_POOL
		  "  nodeGroups: [ { name: g, resources: { gpu.intel.com: \"2\" } } ]\n",
		  13, 39, FIRST ".resources", "allowed: the same entries, as at pool.yaml:6:39" },
		{ GROUPS("{ name: g, standby: { max: 2 } }") NEXT_POOL
		  "  nodeGroups: [ { name: g, standby: { max: 3 } } ]\n",
		  13, 44, FIRST ".standby.max", "allowed: 2, as at pool.yaml:6:44" },
		{ BOTH "  budget: { dollarsPerHour: 50, name: x }\n" NEXT_POOL GROUP
		       "  budget: { dollarsPerHour: 60, name: x }\n",
		  15, 29, "spec.budget.dollarsPerHour", "allowed: 50, as at pool.yaml:7:11" },
	};

	(void)state;
	EXPECT_EACH(cases);
}

/* What the nodes of a group have, before one was seen. */
static void labels_and_taints_of_groups(void **state)
{
#define ZONE "topology.kubernetes.io/zone"
#define EKS  "eks: { cluster: c, nodegroup: ng, region: r }"
	static const struct mistake cases[] = {
		{ GROUPS("{ name: g, labels: { team: \"a b\" } }"), 6, 44, FIRST ".labels.team",
		  "found team: a b; allowed: a key like team" },
		{ GROUPS("{ name: g, labels: { kubernetes.io/hostname: x } }"), 6, 62,
		  FIRST ".labels.kubernetes.io/hostname",
		  "found kubernetes.io/hostname; allowed: labels that all nodes of the group have" },
		{ GROUPS("{ name: g, zone: z1, labels: { " ZONE ": z2 } }"), 6, 77, FIRST ".labels." ZONE,
		  "found 'z2'; allowed: z1, as the other keys of the group say" },
		{ GROUPS("{ name: g, labels: { node.kubernetes.io/instance-type: b }, instanceType: a }"), 6, 72,
		  FIRST ".labels.node.kubernetes.io/instance-type", "found 'b'; allowed: a, as" },
		{ GROUPS("{ name: g, labels: { kubernetes.io/arch: arm64 }, instanceType: g5.xlarge }"), 6, 58,
		  FIRST ".labels.kubernetes.io/arch", "found 'arm64'; allowed: amd64, as" },
		{ GROUPS("{ name: g, labels: { eks.amazonaws.com/nodegroup: other }, " EKS " }"), 6, 67,
		  FIRST ".labels.eks.amazonaws.com/nodegroup", "found 'other'; allowed: ng, as" },
		{ GROUPS("{ name: g, capacityType: spot, labels: { eks.amazonaws.com/capacityType: ON_DEMAND }, " EKS
			 " }"),
		  6, 90, FIRST ".labels.eks.amazonaws.com/capacityType", "found 'ON_DEMAND'; allowed: SPOT, as" },
		{ GROUPS("{ name: g, taints: [ { key: a } ] }"), 6, 38, FIRST ".taints[0].effect",
		  "found nothing; allowed: NoSchedule, PreferNoSchedule, NoExecute" },
		{ GROUPS("{ name: g, taints: [ { key: a, effect: noSchedule } ] }"), 6, 56, FIRST ".taints[0].effect",
		  "found 'noSchedule'; allowed: NoSchedule, PreferNoSchedule, NoExecute" },
		{ GROUPS("{ name: g, taints: [ { effect: NoExecute } ] }"), 6, 38, FIRST ".taints[0].key",
		  "found nothing; allowed: a name as labels and resources have it" },
		{ GROUPS("{ name: g, startupTaints: [ { key: a, value: \"a b\", effect: NoExecute } ] }"), 6, 62,
		  FIRST ".startupTaints[0].value", "found 'a b'; allowed: a name of letters" },
		{ GROUPS("{ name: g, taints: { key: a, effect: NoExecute } }"), 6, 36, FIRST ".taints",
		  "allowed: a list of 0 to 16 taints" },
		{ GROUPS("{ name: g, startupTaints: [ { key: a, effect: NoExecute } ], "
			 "taints: [ { key: b, effect: NoExecute }, { key: a, effect: NoExecute } ] }"),
		  6, 45, FIRST ".startupTaints[0]",
		  "found a:NoExecute, which nodes keep by taints; allowed: taints that go when the start is over" },
		{ GROUPS("{ name: g, taints: [ { key: a, effect: NoExecute } ] }") NEXT_POOL
		  "  nodeGroups: [ { name: g, taints: [ { key: a, effect: NoSchedule } ] } ]\n",
		  13, 36, FIRST ".taints", "allowed: the same entries, as at pool.yaml:6:36" },
		{ GROUPS("{ name: g, startupTaints: [] }") NEXT_POOL
		  "  nodeGroups: [ { name: g, startupTaints: [ { key: a, effect: NoSchedule } ] } ]\n",
		  13, 43, FIRST ".startupTaints", "allowed: the same entries, as at pool.yaml:6:43" },
	};

	(void)state;
	EXPECT_EACH(cases);
}

/* All of them in one go, in the order of the text. */
static void all_at_once(void **state)
{
	CLEANUP(loaded_release) struct loaded l;

	(void)state;
	load(&l, HEAD "  objective: { queueWait: 2, attainment: 101% }\n"
		      "  modee: act\n"
		      "  nodeGroups: [ { name: g, min: 5, max: 2 } ]\n"
		      "  lend: { to: [ interactive ] }\n");
	assert_false(l.ok);
	assert_int_equal(l.findings.count, 5);
	for (size_t i = 1; i < l.findings.count; i++)
		assert_true(l.findings.items[i].line >= l.findings.items[i - 1].line);
	assert_non_null(strstr(l.error.message, "and 4 more"));
}

static void many_keys_cost_little(void **state)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	CLEANUP(loaded_release) struct loaded l;

	(void)state;
	buf_text(&text, HEAD);
	for (int i = 0; i < 900; i++)
		buf_printf(&text, "  key%d: 1\n", i);
	load(&l, text.text);
	assert_int_equal(l.findings.count, FINDINGS_MAX);
	assert_int_equal(l.findings.count + l.findings.more, 902); /* and no objective, no node groups */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(documents),
		cmocka_unit_test(values),
		cmocka_unit_test(shared_groups),
		cmocka_unit_test(shares),
		cmocka_unit_test(every_finding_has_a_remedy),
		cmocka_unit_test(schedules),
		cmocka_unit_test(contradictions_in_a_pool),
		cmocka_unit_test(workloads),
		cmocka_unit_test(the_default_pool),
		cmocka_unit_test(contradictions_among_groups),
		cmocka_unit_test(labels_and_taints_of_groups),
		cmocka_unit_test(all_at_once),
		cmocka_unit_test(many_keys_cost_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
