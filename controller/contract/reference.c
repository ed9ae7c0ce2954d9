/* docs/contract.md out of the tables. */
#include "base/json.h"
#include "controller/contract/resolve.h"
#include "controller/contract/rule_runner.h"

#include <string.h>

/* clang-format off */
static const char head[] =
	"# The scheduling contract\n"
	"\n"
	"Written by `preheat check --print-rules` from the tables in controller/contract: change these, not this page.\n"
	"\n"
	"What objects of a cluster must say so that GPUs are bought, shared and given back as Preheat counts them.\n"
	"`preheat check` reads manifests, or a live cluster, and names each violation with its rule, object, place and\n"
	"remedy:\n"
	"\n"
	"```\n"
	"preheat check manifests/                                  # files and folders\n"
	"helm template my-release ./chart | preheat check - pools/   # a rendered chart, against the pools\n"
	"kubectl kustomize overlays/prod | preheat check -\n"
	"preheat check --cluster                                   # live objects, nodes included; read-only\n"
	"preheat check manifests/ -o sarif >preheat.sarif          # for code scanning; -o json, csv, wide for others\n"
	"```\n"
	"\n"
	"Pods, Deployments, StatefulSets, ReplicaSets, DaemonSets, Jobs, CronJobs, JobSets, LeaderWorkerSets, Rollouts,\n"
	"PyTorchJobs, PodDisruptionBudgets, HorizontalPodAutoscalers, ScaledObjects, PodAutoscalers of AIBrix, InferenceServices, LLMInferenceServices, ResourceClaims, PriorityClasses, ResourceQuotas, Nodes,\n";

/* Before it: the kinds that make nodes. */
static const char more[] =
	" and WarmPools are judged together; other kinds are ignored. A workload belongs to the\n"
	"WarmPool of its namespace whose selector matches its pods, or which scales it. Objects without a namespace match any.\n"
	"\n"
	"Exit code 0: no errors; 1: errors, with `--strict` also warnings; 2: wrong use, or not YAML; 3: the cluster could not be read.\n"
	"\n"
	"In CI, before anything is applied:\n"
	"\n"
	"```yaml\n"
	"- run: helm template my-release ./chart | preheat check - pools/ -o sarif >preheat.sarif\n"
	"- uses: github/codeql-action/upload-sarif@v3\n"
	"  if: always()\n"
	"  with: { sarif_file: preheat.sarif }\n"
	"```\n"
	"\n"
	"For a live cluster `kubectl apply -k deploy/check` makes an account that may list what is judged, and nothing else.\n"
	"Kinds that the cluster does not have, or that the account may not list, are left out. Pods that differ only in name, node,\n"
	"host name, volume claim and token are judged once, with their number (`times`; in SARIF `occurrenceCount`). As text,\n"
	"objects with the same violations stand together: `5000 times, for example Node gpu-1, gpu-2, gpu-3`.\n"
	"\n"
	"At most 8 MiB, 1,000,000 values and 10,000 documents in a file, 64 levels deep, and 10,000 files in a folder; hidden\n"
	"files and files without a kind are ignored. Render the templates of a chart first.\n"
	"\n"
	"## Ignoring a rule\n"
	"\n"
	"The annotation `preheat.dev/ignore: rule-id, rule-id` on the object, or on its pod template, switches these rules off for it.\n"
	"Ignored violations are counted in every output, listed with `-o wide`, and marked as suppressed in SARIF.\n"
	"\n"
	"Two more marks of workloads: the annotation `preheat.dev/gpu-memory: 40Gi` says what a pod needs of each GPU; the label\n"
	"`preheat.dev/pool` names its WarmPool, or is `none` for GPU pods that stay outside on purpose.\n"
	"\n";
static const char tail[] =
	"\n"
			   "## What pods may have of a machine\n"
			   "\n"
			   "Where a node of the node group was read, its allocatable counts. Else these machines are known by `instanceType`, and pods\n"
			   "may have about the vCPUs less 60m and 2.5m each, and 97 % of the memory less 1 GiB. What DaemonSets take is not counted.\n"
			   "\n"
			   "| instance type | vCPUs | GiB | GPUs | GPU | GiB of each |\n"
			   "|---|---|---|---|---|---|\n";
/* clang-format on */

static void write_overview(struct buf *out)
{
	size_t count;
	const struct contract_rule *rules = contract_rules(&count);

	buf_text(out, "## Rules\n\n| rule | severity | what must hold | policy |\n|---|---|---|---|\n");
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "| [`%s`](#%s) | %s | %s | %s |\n", rules[i].id, rules[i].id,
			   contract_severity_name(rules[i].severity), rules[i].title,
			   rules[i].is_admitted ? "yes" : "");
	buf_text(out, "\nPolicy: also a ValidatingAdmissionPolicy in deploy/admission "
		      "([deploy.md](deploy.md#admission-policies)).\n");
}

static void write_rules(struct buf *out)
{
	size_t count;
	const struct contract_rule *rules = contract_rules(&count);

	buf_text(out, "\nA rule judges every workload (" PODS ") unless it says otherwise; serving workloads are " SERVE
		      ".\n");
	for (size_t i = 0; i < count; i++) {
		buf_printf(out, "\n### %s\n\n%s: %s. %s\n\nDo: %s.\n", rules[i].id,
			   contract_severity_name(rules[i].severity), rules[i].title, rules[i].why, rules[i].remedy);
		if (strcmp(rules[i].kinds, PODS) != 0)
			buf_printf(out, "\nOf: %s.\n",
				   strcmp(rules[i].kinds, SERVE) != 0 ? rules[i].kinds : "serving workloads");
	}
}

static void write_failures(struct buf *out)
{
	static const char *const rows[][3] = {
		{ "model load longer than the objective allows", "model-load, startup-probe", "ModelLoadSlow" },
		{ "workload on incompatible GPU memory", "gpu-memory, model-size", "GPUMemoryUnfit" },
		{ "general pods eating a GPU node", "general-pods, foreign-agent, node-taint", "ForeignPods" },
		{ "no node group that any selector matches", "no-node-group, toleration-missing, fits-instance",
		  "NoMatchingNodeGroup" },
		{ "small and large models fragmenting one pool", "fragmented-pool, replica-size", "Fragmented" },
		{ "batch holding accelerators that interactive needs", "batch-holds, priority-class",
		  "BatchHoldsGPUs" },
	};

	buf_text(
		out,
		"\n## The six classic failures\n\nChecked before, and seen by the controller as a condition of the "
		"WarmPool, "
		"an event and the metric\n`preheat_pool_problem`:\n\n| failure | rules | condition |\n|---|---|---|\n");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		buf_printf(out, "| %s | %s | %s |\n", rows[i][0], rows[i][1], rows[i][2]);
}

static void write_labels(struct buf *out)
{
	size_t count;
	const struct known_label *labels = known_labels(&count);

	buf_text(out, "\n## Labels of machines\n\n| of | label | meaning |\n|---|---|---|\n");
	for (size_t i = 0; i < count; i++)
		if (!labels[i].instead)
			buf_printf(out, "| %s | `%s` | %s |\n", labels[i].theme, labels[i].key, labels[i].meaning);
	buf_text(out, "\nOut of use:");
	for (size_t i = 0, told = 0; i < count; i++)
		if (labels[i].instead)
			buf_printf(out, "%s `%s` (use `%s`)", told++ ? "," : "", labels[i].key, labels[i].instead);
	buf_text(out, ".\n");
}

void contract_write_reference(struct buf *out)
{
	buf_text(out, head);
	for (enum provider_choice p = 0, told = 0; p < PROVIDER_COUNT; p++)
		if (provider_block(p)->template_title)
			buf_printf(out, "%s%s", told++ ? ", " : "", provider_block(p)->template_title);
	buf_text(out, more);
	write_overview(out);
	write_failures(out);
	write_rules(out);
	write_labels(out);
	buf_text(out, tail);
	for (enum provider_choice p = 0; p < PROVIDER_COUNT; p++)
		for (size_t i = 0; i < provider_block(p)->instance_count; i++) {
			const struct instance_type *t = &provider_block(p)->instances[i];
			buf_printf(out, "| %s | %lld | %lld | %lld | %s | %lld |\n", t->name, (long long)t->vcpus,
				   (long long)t->memory_gib, (long long)t->gpus, t->gpu, (long long)t->gpu_memory_gib);
		}
}

/* deploy/admission/policies/policies.yaml: the rules that CEL can express, with the words of the table. */

struct policy {
	const char *rule;
	const char *condition;	/* of objects that it is about, beside the usual ones; NULL */
	const char *expression; /* true: as it shall be */
	const char *variable;	/* one of its own, before the usual ones; NULL */
};

#define IS_GPU(key)                                                       \
	"(" key ".startsWith('nvidia.com/mig-') || " key                  \
	" in ['nvidia.com/gpu', 'nvidia.com/gpu.shared', 'amd.com/gpu', " \
	"'habana.ai/gaudi', 'gpu.intel.com/i915', 'gpu.intel.com/xe', 'microsoft.com/directx'])"

#define IS_BLANKET "(t.?operator.orValue('Equal') == 'Exists' && t.?key.orValue('') == '')"

static const struct policy policies[] = {
	{ .rule = "gpu-limits",
	  .expression = "variables.gpuPods.all(p, p.containers.all(c, c.requests.all(k, !" IS_GPU(
		  "k") " || (k in c.limits &&\n"
		       "  quantity(string(c.limits[k])).compareTo(quantity(string(c.requests[k]))) == 0))))" },
	{ .rule = "gpu-needs-pool",
	  .expression =
		  "variables.gpuPods.all(p, 'preheat.dev/pool' in p.labels && p.labels['preheat.dev/pool'] != '')" },
	{ .rule = "cost-labels",
	  .variable = "    - name: costLabels\n"
		      "      expression: \"['cost-center', 'product', 'environment', 'workload-type']\"\n",
	  .expression = "variables.gpuPods.all(p, variables.costLabels.all(k, k in p.labels && p.labels[k] != ''))" },
	{ .rule = "toleration-exact",
	  .condition = "object.kind != 'DaemonSet'",
	  .expression = "variables.gpuPods.all(p, p.tolerations.all(t, !" IS_BLANKET " && (\n"
			"  t.?effect.orValue('') != '' || t.?key.orValue('').startsWith('node.kubernetes.io/') ||\n"
			"  (object.kind == 'Pod' && " IS_GPU("t.?key.orValue('')") "))))" },
	{ .rule = "general-pods",
	  .condition = "object.kind != 'DaemonSet'",
	  .expression = "variables.pods.all(p, p in variables.gpuPods || size(p.claims) > 0 ||\n"
			"  p.priority.startsWith('system-') ||\n"
			"  p.tolerations.all(t, !" IS_BLANKET " &&\n"
			"    !(t.?key.orValue('') in ['nvidia.com/gpu', 'amd.com/gpu', 'habana.ai/gaudi', "
			"'gpu.intel.com/i915'])))" },
};

/* clang-format off */
static const char policies_head[] =
	"# Written by `preheat check --print-policies` from the tables in controller/contract: change these, not this file.\n"
	"# What each rule is for: docs/contract.md. What is bound where, and how strictly: docs/deploy.md.\n";
/* Objects that another judged one made are not judged again; a change that leaves the pods as they are passes. */
static const char match[] =
	"  matchConstraints:\n"
	"    namespaceSelector:\n"
	"      matchExpressions:\n"
	"        - { key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system, kube-node-lease] }\n"
	"        - { key: preheat.dev/admission, operator: NotIn, values: [\"off\"] }\n"
	"    resourceRules:\n"
	"      - { apiGroups: [\"\"], apiVersions: [v1], resources: [pods], operations: [CREATE] }\n"
	"      - { apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE],\n"
	"          resources: [deployments, statefulsets, daemonsets, replicasets] }\n"
	"      - { apiGroups: [batch], apiVersions: [v1], resources: [jobs], operations: [CREATE] }\n"
	"      - { apiGroups: [batch], apiVersions: [v1], resources: [cronjobs], operations: [CREATE, UPDATE] }\n"
	"      - { apiGroups: [jobset.x-k8s.io], apiVersions: [v1alpha2], resources: [jobsets], operations: [CREATE] }\n"
	"      - { apiGroups: [leaderworkerset.x-k8s.io], apiVersions: [v1], operations: [CREATE, UPDATE],\n"
	"          resources: [leaderworkersets] }\n"
	"  matchConditions:\n"
	"    - name: is-not-made-by-another\n"
	"      expression: >-\n"
	"        !dyn(object).metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false) && o.kind in\n"
	"        ['Deployment', 'ReplicaSet', 'StatefulSet', 'DaemonSet', 'CronJob', 'Job', 'JobSet', 'LeaderWorkerSet'])\n"
	"    - name: changes-its-pods\n"
	"      expression: >-\n"
	"        request.operation == 'CREATE' ||\n"
	"        (object.kind == 'CronJob' ? dyn(object).spec.jobTemplate != dyn(oldObject).spec.jobTemplate :\n"
	"        object.kind == 'LeaderWorkerSet' ?\n"
	"        dyn(object).spec.leaderWorkerTemplate != dyn(oldObject).spec.leaderWorkerTemplate :\n"
	"        dyn(object).spec.template != dyn(oldObject).spec.template)\n"
	"    - name: is-not-ignored\n"
	"      expression: >-\n"
	"        !(dyn(object).metadata.?annotations[?'preheat.dev/ignore'].orValue('') + ',' +\n"
	"        dyn(object).?spec.?template.?metadata.?annotations[?'preheat.dev/ignore'].orValue(''))\n"
	"        .replace(' ', ',').split(',').exists(i, i == '";
/* clang-format on */

static const char variables[] =
	"    - name: templates\n"
	"      expression: >-\n"
	"        object.kind == 'Pod' ? [dyn(object)] :\n"
	"        object.kind == 'CronJob' ? [dyn(object).spec.jobTemplate.spec.template] :\n"
	"        object.kind == 'JobSet' ? dyn(object).spec.replicatedJobs.map(j, j.template.spec.template) :\n"
	"        object.kind == 'LeaderWorkerSet' ? [dyn(object).spec.leaderWorkerTemplate.workerTemplate] +\n"
	"        (has(dyn(object).spec.leaderWorkerTemplate.leaderTemplate) ?\n"
	"        [dyn(object).spec.leaderWorkerTemplate.leaderTemplate] : []) :\n"
	"        [dyn(object).spec.template]\n"
	"    - name: pods\n"
	"      expression: >-\n"
	"        variables.templates.map(t, {\n"
	"        'labels': dyn(t.?metadata.?labels.orValue({})),\n"
	"        'priority': dyn(t.spec.?priorityClassName.orValue('')),\n"
	"        'tolerations': dyn(t.spec.?tolerations.orValue([])),\n"
	"        'claims': dyn(t.spec.?resourceClaims.orValue([])),\n"
	"        'containers': dyn((t.spec.containers + t.spec.?initContainers.orValue([])).map(c, {\n"
	"        'requests': c.?resources.?requests.orValue({}), 'limits': c.?resources.?limits.orValue({}) })) })\n"
	"    - name: gpuPods\n"
	"      expression: >-\n"
	"        variables.pods.filter(p, p.containers.exists(c,\n"
	"        c.requests.exists(k, " IS_GPU("k") ") ||\n"
						    "        c.limits.exists(k, " IS_GPU("k") ")))\n";

static const struct contract_rule *rule_named(const char *id)
{
	size_t count;
	const struct contract_rule *rules = contract_rules(&count);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(rules[i].id, id))
			return &rules[i];
	return NULL;
}

static void write_block(const char *text, const char *indent, struct buf *out)
{
	for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
		buf_printf(out, "%s%.*s\n", indent, (int)strcspn(text, "\n"), text);
}

static void write_policy(const struct policy *p, struct buf *out)
{
	CLEANUP(buf_release) struct buf message = { 0 };
	const struct contract_rule *r = rule_named(p->rule);

	buf_printf(&message, "%s: %s. Do: %s.", r->id, r->title, r->remedy);
	buf_printf(out,
		   "---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\n"
		   "metadata: { name: preheat-%s }\nspec:\n  failurePolicy: Fail\n",
		   r->id);
	buf_printf(out, "%s%s')\n", match, r->id);
	if (p->condition)
		buf_printf(out, "    - name: is-meant\n      expression: %s\n", p->condition);
	buf_printf(out, "  variables:\n%s%s", p->variable ? p->variable : "", variables);
	buf_text(out, "  validations:\n    - expression: >-\n");
	write_block(p->expression, "        ", out);
	buf_text(out, "      message: >-\n");
	write_block(message.text, "        ", out);
	buf_text(out, "      reason: Invalid\n");
}

static void write_binding(const struct policy *p, struct buf *out)
{
	buf_printf(
		out,
		"---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\n"
		"metadata: { name: preheat-%s }\nspec:\n  policyName: preheat-%s\n  validationActions: [Warn, Audit]\n",
		p->rule, p->rule);
}

void contract_write_policies(struct buf *out)
{
	buf_text(out, policies_head);
	for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
		write_policy(&policies[i], out);
		write_binding(&policies[i], out);
	}
}
