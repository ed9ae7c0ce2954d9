/* deploy/admission/policies/policies.yaml: the rules that CEL can express, with the words of the table. */
#include "base/json_write.h"
#include "controller/contract/parts.h"

#include <string.h>

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
	  .expression = "variables.gpuPods.all(p, p.containers.all(c,\n"
			"  c.requests.all(k, !" IS_GPU(
				"k") " || (k in c.limits &&\n"
				     "    quantity(string(c.limits[k])).compareTo(quantity(string(c.requests[k]))) == "
				     "0)) &&\n"
				     "  c.limits.all(k, !" IS_GPU("k") " || k in c.requests)))" },
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
	  .expression = "variables.pods.all(p, p in variables.gpuPods || p.priority.startsWith('system-') ||\n"
			"  p.tolerations.all(t, !" IS_BLANKET " &&\n"
			"    !(t.?key.orValue('') in ['nvidia.com/gpu', 'amd.com/gpu', 'habana.ai/gaudi', "
			"'gpu.intel.com/i915'])))" },
};

static const char head[] =
	"# Written by `preheat check --print-policies` from the tables in controller/contract: change these, not this "
	"file.\n"
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
	"      - { apiGroups: [jobset.x-k8s.io], apiVersions: [v1alpha2], resources: [jobsets], operations: [CREATE] "
	"}\n"
	"      - { apiGroups: [leaderworkerset.x-k8s.io], apiVersions: [v1], operations: [CREATE, UPDATE],\n"
	"          resources: [leaderworkersets] }\n"
	"  matchConditions:\n"
	"    - name: is-not-made-by-another\n"
	"      expression: >-\n"
	"        !dyn(object).metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false) && o.kind "
	"in\n"
	"        ['Deployment', 'ReplicaSet', 'StatefulSet', 'DaemonSet', 'CronJob', 'Job', 'JobSet', "
	"'LeaderWorkerSet'])\n"
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
	buf_text(out, head);
	for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
		write_policy(&policies[i], out);
		write_binding(&policies[i], out);
	}
}
