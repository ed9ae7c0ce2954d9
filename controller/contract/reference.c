/* docs/contract.md out of the tables. */
#include "controller/contract/parts.h"

#include <string.h>

static const char head[] =
	"# The scheduling contract\n"
	"\n"
	"Written by `preheat check --print-rules` from the tables in controller/contract: change these, not this "
	"page.\n"
	"\n"
	"What objects of a cluster must say so that GPUs are bought, shared and given back as Preheat counts them.\n"
	"`preheat check` reads manifests, or a live cluster, and names each violation with its rule, object, place "
	"and\n"
	"remedy:\n"
	"\n"
	"```\n"
	"preheat check manifests/                                  # files and folders, all that is in them\n"
	"helm template my-release ./chart | preheat check - pools/   # what a chart makes, against the pools\n"
	"kubectl kustomize overlays/prod | preheat check -\n"
	"preheat check --cluster                                   # live objects, nodes too; reads only\n"
	"preheat check manifests/ -o sarif >preheat.sarif          # for code scanning; -o json, csv, wide for others\n"
	"```\n"
	"\n"
	"Pods, Deployments, StatefulSets, ReplicaSets, DaemonSets, Jobs, CronJobs, JobSets, LeaderWorkerSets, "
	"Rollouts,\n"
	"PyTorchJobs, PodDisruptionBudgets, HorizontalPodAutoscalers, ScaledObjects, PriorityClasses, ResourceQuotas, "
	"Nodes,\n"
	"NodePools of Karpenter and WarmPools are judged together; other kinds are passed over. A workload belongs to "
	"the\n"
	"WarmPool of its namespace whose selector matches its pods, or which scales it. Objects without a namespace "
	"match any.\n"
	"\n"
	"Exit code 0: no errors (warnings and notes may be there); 1: errors, with `--strict` warnings, too; 2: wrong "
	"use, or\n"
	"text that is no YAML; 3: the cluster could not be read.\n"
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
	"For a live cluster `kubectl apply -k deploy/check` makes an account that may list what is judged, and nothing "
	"else. With\n"
	"`--namespace` only that namespace is read, beside nodes and priority classes. Kinds that the cluster does not "
	"have, or\n"
	"of other projects that the account may not list, are left out. Of pods only those are read again that nothing "
	"made,\n"
	"that ask for GPUs, or that stand on a GPU node.\n"
	"\n"
	"At most 8 MiB, 1,000,000 values and 10,000 documents in a file, 64 levels deep, and 10,000 files in a folder; "
	"hidden\n"
	"files and files without a kind are passed over. Templates of a chart are to be rendered first.\n"
	"\n"
	"## Ignoring a rule\n"
	"\n"
	"The annotation `preheat.dev/ignore: rule-id, rule-id` on the object, or on its pod template, takes these "
	"rules off it.\n"
	"What is ignored is counted in every output, listed with `-o wide`, and marked as suppressed in SARIF.\n"
	"\n"
	"Two more words for workloads: the annotation `preheat.dev/gpu-memory: 40Gi` says what a pod needs of each "
	"GPU; the label\n"
	"`preheat.dev/pool` names its WarmPool, or is `none` for GPU pods that stay outside on purpose.\n"
	"\n";

static const char tail[] = "\n"
			   "## What pods may have of a machine\n"
			   "\n"
			   "Where a node of the node group was read, its allocatable counts. Else these machines are "
			   "known by `instanceType`, and pods\n"
			   "may have about the vCPUs less 60m and 2.5m each, and 97 % of the memory less 1 GiB. What "
			   "DaemonSets take is not counted.\n"
			   "\n"
			   "| instance type | vCPUs | GiB | GPUs | GPU | GiB of each |\n"
			   "|---|---|---|---|---|---|\n";

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

	for (size_t i = 0; i < count; i++)
		buf_printf(out, "\n### %s\n\n%s: %s. %s\n\nDo: %s.\n\nOf: %s.\n", rules[i].id,
			   contract_severity_name(rules[i].severity), rules[i].title, rules[i].why, rules[i].remedy,
			   rules[i].kinds);
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
	size_t count;
	const struct instance_type *types = instances(&count);

	buf_text(out, head);
	write_overview(out);
	write_failures(out);
	write_rules(out);
	write_labels(out);
	buf_text(out, tail);
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "| %s | %lld | %lld | %lld | %s | %lld |\n", types[i].name, (long long)types[i].vcpus,
			   (long long)types[i].memory_gib, (long long)types[i].gpus, types[i].gpu,
			   (long long)types[i].gpu_memory_gib);
}
