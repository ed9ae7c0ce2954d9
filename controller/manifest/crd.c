#include "controller/manifest/crd.h"

#include "base/schema_describe.h"
#include "controller/manifest/manifest.h"

#include <string.h>

enum { SCHEMA_INDENT = 14 };

static const char head[] =
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
	"    - {name: Standby, type: integer, jsonPath: .status.standby, description: \"Stopped machines, in "
	"replicas\"}\n"
	"    - {name: Headroom, type: string, jsonPath: .status.headroom, description: Hot replicas beyond demand}\n"
	"    - {name: Demand, type: string, jsonPath: .status.demand, description: Replicas that requests keep busy}\n"
	"    - {name: Lead Time, type: string, jsonPath: .status.leadTime, description: \"From asking to serving, "
	"p50/p95\"}\n"
	"    - {name: Wait, type: string, jsonPath: .status.wait, description: What waits now takes so long}\n"
	"    - {name: Last Change, type: date, jsonPath: .status.lastChange, description: When another size was asked "
	"for}\n"
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

static const char status[] =
	"          status:\n"
	"            type: object\n"
	"            description: Written by the controller after its decisions.\n"
	"            properties:\n"
	"              observedGeneration: {type: integer, format: int64, description: The spec that was decided on.}\n"
	"              hot: {type: integer, format: int64, description: Replicas that may start requests.}\n"
	"              standby: {type: integer, format: int64, description: \"Stopped machines, in replicas.\"}\n"
	"              starting: {type: integer, format: int64, description: Replicas asked for and not ready.}\n"
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
#define LABEL_KEY "'^([a-z0-9]([-.a-z0-9]*[a-z0-9])?/)?[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?$'"

/* As check_clouds.c has them. */
#define CLOUD_NAME	"'^[A-Za-z0-9][-_A-Za-z0-9]*$'"
#define CLOUD_NAME_TEXT "must be letters, digits, '-' and '_', beginning with a letter or digit"
#define INNER_DASHES	"'^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'"
#define OBJECT_NAME	"'^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$'"
#define LABEL_VALUE	"'^[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$'"
#define FITS(key, form) "!has(self." key ") || self." key " == '' || self." key ".matches(" form ")"

static const struct openapi_rule rules[] = {
	{ "spec", "has(self.objective) || has(self.violationCost)",
	  "needs objective: { queueWait: 2s, attainment: 99% }, or violationCost in its place" },
	{ "spec",
	  "!has(self.objective) || has(self.objective.attainment) || has(self.objective.violationCost) || "
	  "has(self.violationCost)",
	  "objective needs attainment, like 99%, or violationCost" },
	{ "spec",
	  "!has(self.violationCost) || !has(self.objective) || !(has(self.objective.attainment) || "
	  "has(self.objective.violationCost))",
	  "violationCost stands in place of attainment, and at one place" },
	{ "spec", "!has(self.lend) || !has(self.lend.to) || !(self.class in self.lend.to)",
	  "lend.to may not name the pool's own class" },
	{ "spec", "self.nodeGroups.all(a, self.nodeGroups.exists_one(b, b.name == a.name))",
	  "nodeGroups may name every group once" },
	{ "spec", "self.nodeGroups.all(g, !has(g.gpusPerNode) || g.gpusPerNode >= self.workload.gpusPerReplica)",
	  "gpusPerNode must be at least workload.gpusPerReplica" },
	{ "spec",
	  "self.signals.engine != 'pods' || !has(self.workload.maxSequences) || "
	  "string(self.workload.maxSequences) == '1'",
	  "maxSequences must be 1 with signals.engine pods: a pod is one piece of work" },
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
	  "!has(self.gpuResource) || "
	  "self.gpuResource.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?/[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?$')",
	  "gpuResource must be an extended resource as nodes offer it, like nvidia.com/gpu" },
	{ "costLabels", "!has(self.costCenter) || self.costCenter.matches(" LABEL_KEY ")",
	  "costCenter must be the key of a label, like product or example.com/cost-center" },
	{ "costLabels", "!has(self.product) || self.product.matches(" LABEL_KEY ")",
	  "product must be the key of a label, like product or example.com/cost-center" },
	{ "costLabels", "!has(self.environment) || self.environment.matches(" LABEL_KEY ")",
	  "environment must be the key of a label, like product or example.com/cost-center" },
	{ "costLabels", "!has(self.workloadType) || self.workloadType.matches(" LABEL_KEY ")",
	  "workloadType must be the key of a label, like product or example.com/cost-center" },
	{ "eks", "!(has(self.autoScalingGroup) && has(self.tags))", "tags beside autoScalingGroup: delete one" },
	{ "eks", FITS("cluster", CLOUD_NAME), "cluster " CLOUD_NAME_TEXT },
	{ "eks", FITS("nodegroup", CLOUD_NAME), "nodegroup " CLOUD_NAME_TEXT },
	{ "eks", FITS("region", INNER_DASHES),
	  "region must be small letters, digits and inner dashes, like eu-west-1" },
	{ "eks", FITS("tags", "'^ *[^ ,=][^,]*(, *[^ ,=][^,]*)*$'"),
	  "tags must be key=value pairs and keys, with commas between" },
	{ "aks", FITS("subscription", "'^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'"),
	  "subscription must be an id like 00000000-0000-0000-0000-000000000000" },
	{ "aks", FITS("resourceGroup", "'^[-_.()A-Za-z0-9[:^ascii:]]*[-_()A-Za-z0-9[:^ascii:]]$'"),
	  "resourceGroup must be letters, digits, '-', '_', '.' and brackets, not ending with a dot" },
	{ "aks", FITS("cluster", CLOUD_NAME), "cluster " CLOUD_NAME_TEXT },
	{ "aks", FITS("pool", "'^[a-z][a-z0-9]*$'"), "pool must be small letters and digits, beginning with a letter" },
	{ "karpenter", FITS("nodePool", OBJECT_NAME), "nodePool must be small letters, digits, inner dashes and dots" },
	{ "clusterApi", FITS("machineDeployment", OBJECT_NAME),
	  "machineDeployment must be small letters, digits, inner dashes and dots" },
	{ "clusterApi", FITS("__namespace__", INNER_DASHES),
	  "namespace must be small letters, digits and inner dashes" },
	{ "clusterApi", FITS("label", LABEL_KEY), "label must be the key of a label, like node.cluster.x-k8s.io/pool" },
	{ "clusterApi", FITS("value", LABEL_VALUE),
	  "value must be letters, digits, inner dashes, dots and underscores" },
	{ "external", FITS("label", LABEL_KEY),
	  "label must be the key of a label, like cloud.google.com/gke-nodepool" },
	{ "external", FITS("value", LABEL_VALUE), "value must be letters, digits, inner dashes, dots and underscores" },
	{ "node group",
	  "!(has(self.eks) && has(self.standby) && has(self.standby.max) && self.standby.max > 0 && "
	  "has(self.capacityType) && self.capacityType == 'spot')",
	  "standby on EKS: a warm pool holds no spot machines" },
	{ "signals", "!(has(self.scrape) && has(self.prometheus))", "prometheus beside scrape: delete one" },
	{ "signals", "!has(self.engine) || self.engine != 'pods' || !(has(self.scrape) || has(self.prometheus))",
	  "engine pods has no scrape and no prometheus: the pods are counted" },
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
	  "[has(self.eks), has(self.aks), has(self.karpenter), has(self.clusterApi), has(self.external), "
	  "has(self.simulated)].filter(b, b).size() <= 1",
	  "settings of one provider only" },
	{ "node group",
	  "!has(self.provider) || !((has(self.eks) && self.provider != 'eks') || (has(self.aks) && self.provider "
	  "!= 'aks') || (has(self.karpenter) && self.provider != 'karpenter') || (has(self.clusterApi) && "
	  "self.provider "
	  "!= 'clusterApi') || (has(self.external) && self.provider != 'external') || (has(self.simulated) && "
	  "self.provider != 'simulated'))",
	  "settings of another provider: delete them, or change provider" },
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

void manifest_write_crd(struct buf *out)
{
	const struct openapi_setup setup = { .rules = rules,
					     .rule_count = sizeof rules / sizeof *rules,
					     .silences = silences,
					     .silence_count = sizeof silences / sizeof *silences,
					     .filled = filled };

	buf_text(out, head);
	schema_write_openapi(spec_table(), &setup, SCHEMA_INDENT - 2, out);
	buf_text(out, status);
}
