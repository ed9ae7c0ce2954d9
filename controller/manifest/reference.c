#include "controller/manifest/reference.h"

#include "base/schema_describe.h"
#include "controller/manifest/manifest.h"
#include "controller/manifest/warm_pool.h"

#include <string.h>

/* clang-format off */
static const char head[] =
	"# The WarmPool manifest\n"
	"\n"
	"Written by `preheat check --print-reference` from the table that reads manifests\n"
	"(controller/manifest/warm_pool.c): change the table, not this page.\n"
	"\n"
	"One text everywhere: a file given to `simulate`, a mounted ConfigMap, a custom resource. A file may hold\n"
	"several documents, a folder several files. `preheat check FILE...` reports everything that is wrong at\n"
	"once; `preheat check --print-schema` prints the JSON Schema (docs/manifest.schema.json) for editors.\n"
	"\n"
	"Only a name, an objective (or a violation cost) and one node group are required:\n"
	"\n"
	"```yaml\n"
	"apiVersion: preheat.dev/v1alpha1\n"
	"kind: WarmPool\n"
	"metadata: { name: chat }\n"
	"spec:\n"
	"  objective: { queueWait: 2s, attainment: 99% }\n"
	"  nodeGroups: [ { name: g5 } ]\n"
	"```\n"
	"\n"
	"## How values are written\n"
	"\n"
	"- durations: `250ms`, `2s`, `1h30m`, `7d`; a unit always, units us, ms, s, m, h, d, w, largest first\n"
	"- shares: `99%`, `99.9%`; always with the sign\n"
	"- quantities: `3500`, `25k`, `1.5M`, `2Ki`\n"
	"- dollars: plain numbers, `0.48`\n"
	"- weekdays: `mon-fri`, `sat,sun`; times of day: `\"08:00\"`; zones by their IANA names, summer time followed.\n"
	"  A time that the clocks skip counts from before the jump; of a time that comes twice the first one counts\n"
	"- texts that YAML would read as something else (`on`, `1.30`) in quotes\n"
	"\n"
	"Unknown keys, repeated keys, anchors, aliases and tags are errors. At most 16 MiB, 500,000 values,\n"
	"10,000 documents and 5,000 pools in all files of one call.\n"
	"\n"
	"## Contradictions\n"
	"\n"
	"These are errors, too:\n"
	"\n"
	"- a min above its max, a p50 above its p95\n"
	"- attainment beside violationCost, total lead time beside stages, scrape beside prometheus\n"
	"- headroom or standby above what the node groups can hold, replicas with more GPUs than a node\n"
	"- standby of a group without a price, prices for some groups of a pool only\n"
	"- a budget below what min costs, shared budgets of different amounts\n"
	"- a label of a node group that its zone, instanceType, capacityType or provider's block contradicts, a taint that\n"
	"  stays and goes\n"
	"- a pool that lends to its own class, two pools of one name, a node group that two pools describe differently\n"
	"- tokensPerSecond far above maxSequences / interTokenLatency\n"
	"- warm: replicas or placeholders without a scaleTargetRef\n"
	"- prefetch: image without a scaleTargetRef that is a Deployment or StatefulSet\n"
	"- with engine pods or share: a source to read, or maxSequences other than 1; with engine share: lend, class\n"
	"  training, more than one GPU a node, or spec.share beside it\n"
	"\n"
	"## The document\n"
	"\n";
/* clang-format on */

void manifest_write_reference(struct buf *out)
{
	buf_text(out, head);
	schema_write_markdown(&warm_pool_table, out);
}

void manifest_write_json_schema(struct buf *out)
{
	schema_write_json(&warm_pool_table, "https://preheat.dev/v1alpha1/warmpool.schema.json", "WarmPool", out);
}

enum { SCHEMA_INDENT = 14 };

/* clang-format off */
static const char crd_head[] =
	"# Written by `preheat crd` from the table that reads manifests (controller/manifest/warm_pool.c):\n"
	"# change the table, not this file.\n"
	"apiVersion: apiextensions.k8s.io/v1\n"
	"kind: CustomResourceDefinition\n"
	"metadata:\n"
	"  name: warmpools.preheat.dev\n"
	"spec:\n"
	"  group: preheat.dev\n"
	"  scope: Namespaced\n"
	"  names:\n"
	"    kind: WarmPool\n"
	"    listKind: WarmPoolList\n"
	"    plural: warmpools\n"
	"    singular: warmpool\n"
	"    shortNames: [wp]\n"
	"    categories: [preheat]\n"
	"  versions:\n"
	"  - name: v1alpha1\n"
	"    served: true\n"
	"    storage: true\n"
	"    subresources:\n"
	"      status: {}\n"
	"    additionalPrinterColumns:\n"
	"    - {name: Class, type: string, jsonPath: .spec.class}\n"
	"    - {name: Hot, type: integer, jsonPath: .status.hot, description: Replicas that may start requests}\n"
	"    - {name: Standby, type: integer, jsonPath: .status.standby, description: \"Stopped machines, in replicas\"}\n"
	"    - {name: Headroom, type: string, jsonPath: .status.headroom, description: Hot replicas beyond demand}\n"
	"    - {name: Demand, type: string, jsonPath: .status.demand, description: Replicas that requests keep busy}\n"
	"    - {name: Lead Time, type: string, jsonPath: .status.leadTime, description: \"From asking to serving, p50/p95\"}\n"
	"    - {name: Wait, type: string, jsonPath: .status.wait, description: What waits now takes so long}\n"
	"    - {name: Last Change, type: date, jsonPath: .status.lastChange, description: When another size was asked for}\n"
	"    - {name: Mode, type: string, jsonPath: .spec.mode, priority: 1}\n"
	"    - {name: Limit, type: string, jsonPath: .status.lastDecision.heldBy, priority: 1}\n"
	"    - {name: Ready, type: string, jsonPath: '.status.conditions[?(@.type==\"Ready\")].reason', priority: 1}\n"
	"    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp, priority: 1}\n"
	"    schema:\n"
	"      openAPIV3Schema:\n"
	"        type: object\n"
	"        description: One class of work with one objective, served by replicas on one or more node groups.\n"
	"        required:\n"
	"        - spec\n"
	"        properties:\n"
	"          apiVersion:\n"
	"            type: string\n"
	"          kind:\n"
	"            type: string\n"
	"          metadata:\n"
	"            type: object\n"
	"            properties:\n"
	"              name:\n"
	"                type: string\n"
	"                maxLength: 63\n"
	"                pattern: \"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$\"\n"
	"          spec:\n";
/* clang-format on */

static const char status[] =
	"          status:\n"
	"            type: object\n"
	"            description: Written by the controller after its decisions.\n"
	"            properties:\n"
	"              observedGeneration: {type: integer, format: int64, description: The spec that was decided on.}\n"
	"              hot: {type: integer, format: int64, description: Replicas that may start requests.}\n"
	"              standby: {type: integer, format: int64, description: \"Stopped machines, in replicas.\"}\n"
	"              starting: {type: integer, format: int64, description: Replicas asked for and not ready.}\n"
	"              asleep: {type: integer, format: int64, description: Replicas whose engine sleeps or falls "
	"asleep.}\n"
	"              waking: {type: integer, format: int64, description: Starting replicas whose engine wakes.}\n"
	"              draining: {type: integer, format: int64, description: Replicas that only finish what runs.}\n"
	"              demand: {type: string, description: Replicas that the arriving requests keep busy.}\n"
	"              headroom: {type: string, description: Hot replicas beyond demand.}\n"
	"              leadTime: {type: string, description: \"From asking to serving as believed now, p50/p95.\"}\n"
	"              wait: {type: string, description: How long the hot replicas need for what waits now.}\n"
	"              lastChange: {type: string, format: date-time, description: When another size was asked for.}\n"
	"              lastDecision:\n"
	"                type: object\n"
	"                properties:\n"
	"                  tick: {type: integer, format: int64}\n"
	"                  time: {type: string, format: date-time}\n"
	"                  wished: {type: integer, format: int64, description: Hot replicas wished.}\n"
	"                  decided: {type: integer, format: int64, description: Hot replicas decided.}\n"
	"                  heldBy: {type: string, description: The one limit that held the decision.}\n"
	"                  reason: {type: string, description: What `preheat explain` begins with.}\n"
	"              nodeGroups:\n"
	"                type: array\n"
	"                x-kubernetes-list-type: atomic\n"
	"                items:\n"
	"                  type: object\n"
	"                  required: [name]\n"
	"                  properties:\n"
	"                    name: {type: string}\n"
	"                    nodes: {type: integer, format: int64, description: \"Nodes now, of all pools.\"}\n"
	"                    desired: {type: integer, format: int64, description: Nodes after the last decision.}\n"
	"                    blockedUntil: {type: string, format: date-time, description: Nothing is started before.}\n"
	"                    heldBy: {type: string, description: The limit that held this group.}\n"
	"              conditions:\n"
	"                type: array\n"
	"                x-kubernetes-list-type: map\n"
	"                x-kubernetes-list-map-keys: [type]\n"
	"                items:\n"
	"                  type: object\n"
	"                  required: [type, status]\n"
	"                  properties:\n"
	"                    type: {type: string, maxLength: 316}\n"
	"                    status: {type: string, enum: [\"True\", \"False\", Unknown]}\n"
	"                    reason: {type: string, maxLength: 1024}\n"
	"                    message: {type: string, maxLength: 32768}\n"
	"                    observedGeneration: {type: integer, format: int64}\n"
	"                    lastTransitionTime: {type: string, format: date-time}\n";

/* A WarmPool may not have the controller show its own files to somebody. */
#define OWN_FILE(path)	   path ".startsWith('" MANIFEST_CREDENTIALS "') && !" path ".contains('/..')"
#define OWN_FILE_TEXT(key) key " must be a file below " MANIFEST_CREDENTIALS

/* What check_*.c finds and CEL can say of one object. Keys that are words of CEL stand between underscores. */

static const struct openapi_rule written_rules[] = {
	{ "spec", "self.class == 'any' || has(self.objective) || has(self.violationCost)",
	  "needs objective: { queueWait: 2s, attainment: 99% }, or violationCost in its place" },
	{ "spec",
	  "!has(self.objective) || has(self.objective.attainment) || has(self.objective.violationCost) || "
	  "has(self.violationCost)",
	  "objective needs attainment, like 99%, or violationCost" },
	{ "spec",
	  "!has(self.violationCost) || !has(self.objective) || !(has(self.objective.attainment) || "
	  "has(self.objective.violationCost))",
	  "violationCost stands in place of attainment, and at one place" },
	{ "spec",
	  "self.class != 'any' || !(has(self.objective) || has(self.violationCost) || has(self.lend) || "
	  "has(self.share))",
	  "objective, violationCost, lend and share are not for class any" },
	{ "spec",
	  "self.class != 'any' || !(has(self.workload.selector) || has(self.workload.scaleTargetRef) || "
	  "has(self.workload.warm) || has(self.workload.maxSequences) || has(self.workload.tokensPerSecond) || "
	  "has(self.workload.interTokenLatency)) && self.workload.gpusPerReplica == 1 && "
	  "self.workload.gpuResource == 'nvidia.com/gpu'",
	  "workload is not for class any: pods say what they ask for" },
	{ "spec",
	  "self.class != 'any' || !(has(self.signals.metrics) || has(self.signals.podSelector) || "
	  "has(self.signals.scrape) || has(self.signals.prometheus) || has(self.signals.queue) || "
	  "has(self.signals.devices))",
	  "signals is not for class any: pods that wait are its demand" },
	{ "spec",
	  "self.class != 'any' || self.headroom.min == 0 && type(self.headroom.max) != int && "
	  "!has(self.headroom.schedule)",
	  "headroom is not for class any" },
	{ "spec", "self.class == 'any' || self.scaleDown.utilization == '50%'",
	  "scaleDown.utilization is for class any" },
	{ "spec", "!has(self.lend) || !has(self.lend.to) || !(self.class in self.lend.to)",
	  "lend.to may not name the pool's own class" },
	{ "spec", "!has(self.share) || !has(self.workload.scaleTargetRef)",
	  "scaleTargetRef of a pool in a share: its engines stay as they were deployed" },
	{ "share",
	  "!has(self.engineMemoryGiB) || self.engineMemoryGiB == 0 || !has(self.sleepingMemoryGiB) || "
	  "self.sleepingMemoryGiB <= self.engineMemoryGiB",
	  "sleepingMemoryGiB must be at most engineMemoryGiB" },
	{ "spec", "self.nodeGroups.all(a, self.nodeGroups.exists_one(b, b.name == a.name))",
	  "nodeGroups may name every group once" },
	{ "spec", "self.nodeGroups.all(g, !has(g.gpusPerNode) || g.gpusPerNode >= self.workload.gpusPerReplica)",
	  "gpusPerNode must be at least workload.gpusPerReplica" },
	{ "spec", "!has(self.share) || self.signals.engine != 'share'",
	  "share with signals.engine share: the stock of a share is in none itself" },
	{ "spec", "self.signals.engine != 'share' || !has(self.lend)",
	  "lend with signals.engine share: engines of the share stay on a node that is lent" },
	{ "spec",
	  "self.signals.engine != 'share' || self.workload.gpusPerReplica == 1 && self.nodeGroups.all(g, "
	  "!has(g.gpusPerNode) || g.gpusPerNode == 1)",
	  "gpusPerReplica and gpusPerNode must be 1 with signals.engine share: a slot is a node of one GPU" },
	{ "spec", "self.signals.engine != 'share' || self.class != 'training'",
	  "training with signals.engine share: write the class of the pools of the share" },
	{ "spec",
	  "!(self.signals.engine in ['pods', 'share']) || !has(self.workload.maxSequences) || "
	  "string(self.workload.maxSequences) == '1'",
	  "maxSequences must be 1 with signals.engine pods or share: a pod is one piece of work, a slot one of "
	  "demand" },
	{ "spec",
	  "!has(self.budget) || self.nodeGroups.map(g, has(g.min) && has(g.pricePerHour) ? double(g.min) * "
	  "g.pricePerHour : 0.0).sum() <= self.budget.dollarsPerHour + 0.000001",
	  "budget.dollarsPerHour must pay for what min of the node groups costs" },
	{ "objective", "!has(self.attainment) || has(self.queueWait)",
	  "attainment needs queueWait: say which wait the share is about" },
	{ "objective", "!(has(self.attainment) && has(self.violationCost))",
	  "violationCost stands in place of attainment: delete one" },
	{ "workload", "!has(self.warm) || self.warm == 'metric' || has(self.scaleTargetRef)",
	  "warm must be metric without scaleTargetRef" },
	{ "workload",
	  "!has(self.prefetch) || self.prefetch == 'none' || has(self.scaleTargetRef) && "
	  "self.scaleTargetRef.apiVersion == 'apps/v1' && "
	  "self.scaleTargetRef.kind in ['Deployment', 'StatefulSet']",
	  "prefetch needs a scaleTargetRef of apps/v1, kind Deployment or StatefulSet" },
	{ "workload",
	  "!has(self.gpuResource) || "
	  "self.gpuResource.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?/[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?$')",
	  "gpuResource must be an extended resource as nodes offer it, like nvidia.com/gpu" },
	{ "signals", "!(has(self.scrape) && has(self.prometheus))", "prometheus beside scrape: delete one" },
	{ "signals", "!has(self.engine) || self.engine != 'pods' || !(has(self.scrape) || has(self.prometheus))",
	  "engine pods has no scrape and no prometheus: the pods are counted" },
	{ "signals",
	  "!has(self.engine) || self.engine != 'share' || !(has(self.scrape) || has(self.prometheus) || "
	  "has(self.podSelector) || has(self.queue))",
	  "engine share has no scrape, prometheus, podSelector and queue: the pools of the share are asked" },
	{ "signals", "(has(self.engine) && self.engine == 'custom') == has(self.metrics)",
	  "metrics goes with engine custom, and engine custom with metrics" },
	{ "scrape", "!has(self.tls) || (has(self.scheme) && self.scheme == 'https')", "tls needs scheme https" },
	{ "queue", "(has(self.promql) ? 1 : 0) + (has(self.endpointPicker) ? 1 : 0) + (has(self.json) ? 1 : 0) == 1",
	  "one of promql, endpointPicker and json" },
	{ "queue", "!has(self.url) || has(self.promql) || (has(self.endpointPicker) && !has(self.endpointPicker.url))",
	  "url beside another one: delete it" },
	{ "signals",
	  "!has(self.queue) || has(self.queue.url) || has(self.queue.json) || (has(self.queue.endpointPicker) && "
	  "has(self.queue.endpointPicker.url)) || has(self.prometheus)",
	  "queue needs url, or signals.prometheus" },
	{ "signals", "!has(self.devices) || has(self.devices.url) || has(self.prometheus)",
	  "devices needs url, or signals.prometheus" },
	{ "auth", "!(has(self.bearerTokenFile) && has(self.basic))", "basic beside bearerTokenFile: delete one" },
	{ "auth", "!has(self.bearerTokenFile) || " OWN_FILE("self.bearerTokenFile"), OWN_FILE_TEXT("bearerTokenFile") },
	{ "basic", OWN_FILE("self.passwordFile"), OWN_FILE_TEXT("passwordFile") },
	{ "tls", "has(self.certFile) == has(self.keyFile)", "certFile and keyFile go together" },
	{ "tls", "!has(self.caFile) || " OWN_FILE("self.caFile"), OWN_FILE_TEXT("caFile") },
	{ "tls", "!has(self.certFile) || " OWN_FILE("self.certFile"), OWN_FILE_TEXT("certFile") },
	{ "tls", "!has(self.keyFile) || " OWN_FILE("self.keyFile"), OWN_FILE_TEXT("keyFile") },
	{ "p50 and p95",
	  OPENAPI_MILLIS("self.p95") " == 0.0 || (" OPENAPI_MILLIS("self.p50") " > 0.0 && " OPENAPI_MILLIS(
		  "self.p50") " <= " OPENAPI_MILLIS("self.p95") ")",
	  "p50 must be above 0 and at most p95" },
	{ "standby",
	  "!has(self.leadTime) || !has(self.firstLeadTime) || (" OPENAPI_MILLIS(
		  "self.leadTime.p50") " <= " OPENAPI_MILLIS("self.firstLeadTime.p50") " && " OPENAPI_MILLIS("self."
													     "leadTime."
													     "p95") " <"
														    "="
														    " " OPENAPI_MILLIS(
															    "self.firstLeadTime.p95") ")",
	  "firstLeadTime must be at least leadTime: a machine that never ran has to pull its image, too" },
	{ "leadTime",
	  "!has(self.total) || !(has(self.provision) || has(self.register) || has(self.device) || has(self.image) "
	  "|| has(self.load))",
	  "total beside stages: give total, or stages" },
	{ "leadTime", "!has(self.total) || " OPENAPI_MILLIS("self.total.p95") " > 0.0",
	  "a total of 0: give what was measured, or leave leadTime out" },
	{ "headroom", "!has(self.max) || !has(self.min) || type(self.max) != int || self.min <= self.max",
	  "min must be at most max" },
	{ "headroom",
	  "!has(self.max) || type(self.max) != int || !has(self.schedule) || self.schedule.all(w, w.min <= self.max)",
	  "min of a schedule window must be at most headroom.max" },
	{ "schedule window", "has(self.cron) || (has(self.from) && has(self.to))",
	  "needs from and to, like \"08:00\", or cron and for" },
	{ "schedule window", "!has(self.cron) || !(has(self.from) || has(self.to))",
	  "from or to beside cron: use one of the two forms" },
	{ "schedule window", "has(self.cron) == has(self.__for__)", "cron and for go together" },
	{ "schedule window", "!has(self.__for__) || int(" OPENAPI_MILLIS("self.__for__") ") % 60000 == 0",
	  "for must be whole minutes: a window opens and closes on the minute" },
	{ "schedule window", "!has(self.from) || self.from != '24:00'", "from must be before \"24:00\"" },
	{ "node group", "!has(self.min) || !has(self.max) || self.min <= self.max", "min must be at most max" },
	{ "node group",
	  "!has(self.standby) || !has(self.standby.max) || !has(self.max) || self.standby.max <= self.max",
	  "standby.max must be at most max of the group" },
	{ "node group",
	  "!has(self.standby) || !has(self.standby.max) || self.standby.max == 0 || !has(self.pricePerHour) || "
	  "self.pricePerHour > 0.0",
	  "standby of a group without a price: whether it pays is a question of price" },
	{ "node group",
	  "!has(self.taints) || !has(self.startupTaints) || !self.startupTaints.exists(s, self.taints.exists(t, "
	  "t.key == s.key && t.effect == s.effect))",
	  "a taint of startupTaints goes when the start is over: it may not be in taints, too" },
	{ "node group", "!has(self.reservedUntil) || !has(self.capacityType) || self.capacityType == 'reserved'",
	  "reservedUntil: the end of a reservation, beside capacityType: reserved" },
};

/*
 * Whether attainment's wait, a window's days or a group's key was written decides what an object means; several pools
 * describe a group together.
 */
static const struct openapi_silence silences[] = {
	{ "objective", NULL },
	{ "schedule window", "days" },
	{ "node group", NULL },
};

static const char *const filled[] = { "workload", "signals", "headroom", "scaleDown", NULL };

static const struct schema_table *spec_table(void)
{
	const struct schema_row *row = warm_pool_table.rows;

	while (strcmp(row->key, "spec") != 0)
		row++;
	return row->table;
}

/* Of a record of these keys: each must be the key of a label. */
static struct openapi_rule label_key_rule(const char *key, struct arena *a)
{
	CLEANUP(buf_release) struct buf rule = { 0 };
	CLEANUP(buf_release) struct buf message = { 0 };

	buf_printf(&rule, "!has(self.%s) || self.%s.matches('%s')", key, key, form_label_key.pattern);
	buf_printf(&message, "%s must be the key of a label, like product or example.com/cost-center", key);
	return (struct openapi_rule){ "costLabels", arena_strdup(a, rule.text, rule.len),
				      arena_strdup(a, message.text, message.len) };
}

/* One block in a group, and that of its provider; those of trials last. */
static size_t write_provider_rules(struct openapi_rule *rules, struct arena *a)
{
	CLEANUP(buf_release) struct buf all = { 0 };
	CLEANUP(buf_release) struct buf others = { 0 };

	for (int trial = 0; trial <= 1; trial++)
		for (enum provider_choice p = 0; p < PROVIDER_COUNT; p++) {
			const char *name = provider_name(p);
			if (provider_block(p)->is_trial != trial)
				continue;
			buf_printf(&all, "%shas(self.%s)", all.len ? ", " : "[", name);
			buf_printf(&others, "%s(has(self.%s) && self.provider != '%s')",
				   others.len ? " || " : "!has(self.provider) || !(", name, name);
		}
	buf_text(&all, "].filter(b, b).size() <= 1");
	buf_text(&others, ")");
	rules[0] = (struct openapi_rule){ "node group", arena_strdup(a, all.text, all.len),
					  "settings of one provider only" };
	rules[1] = (struct openapi_rule){ "node group", arena_strdup(a, others.text, others.len),
					  "settings of another provider: delete them, or change provider" };
	return 2;
}

/* Rules of one table keep their order: the blocks' first, then ours. */
static const struct openapi_rule *all_rules(struct arena *a, size_t *count)
{
	enum { WRITTEN = sizeof written_rules / sizeof *written_rules };
	const struct openapi_rule *blocks = provider_block_rules(a, count);
	struct openapi_rule *rules =
		arena_array(a, struct openapi_rule, *count + WRITTEN + cost_labels_table.count + 2);

	memcpy(rules, blocks, *count * sizeof *rules);
	memcpy(rules + *count, written_rules, sizeof written_rules);
	*count += WRITTEN;
	for (size_t i = 0; i < cost_labels_table.count; i++)
		rules[(*count)++] = label_key_rule(cost_labels_table.rows[i].key, a);
	*count += write_provider_rules(rules + *count, a);
	return rules;
}

void manifest_write_crd(struct buf *out)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct openapi_setup setup = { .silences = silences,
				       .silence_count = sizeof silences / sizeof *silences,
				       .filled = filled };

	setup.rules = all_rules(&a, &setup.rule_count);
	buf_text(out, crd_head);
	schema_write_openapi(spec_table(), &setup, SCHEMA_INDENT - 2, out);
	buf_text(out, status);
}
