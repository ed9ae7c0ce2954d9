/* Which kinds there are, and what is kept of each. */
#include "base/resource.h"
#include "controller/contract/parts.h"

#include <string.h>

static void add_budget(struct contract *c, const struct object *o)
{
	const struct yaml_node *spec = yaml_child(o->ref.at, "spec"), *selector = tree_at(spec, "selector");

	ADD(c->arena, c->budgets, c->budget_count, struct budget) =
		(struct budget){ .object = *o,
				 .selector = tree_labels(spec, "selector>matchLabels", c->arena),
				 .selects_by_labels = !yaml_child(selector, "matchExpressions"),
				 .min_available = tree_text(spec, "minAvailable"),
				 .max_unavailable = tree_text(spec, "maxUnavailable"),
				 .at = spec };
}

/* What KEDA makes for a ScaledObject is that, not one more. */
static bool is_made_by_keda(const struct object *o)
{
	return label_of(&o->labels, "scaledobject.keda.sh/name") != NULL;
}

static void add_scaler(struct contract *c, const struct object *o)
{
	const struct yaml_node *target = tree_at(o->ref.at, "spec>scaleTargetRef");
	const char *kind = tree_text(target, "kind");

	if (!is_made_by_keda(o))
		ADD(c->arena, c->scalers, c->scaler_count, struct scaler) =
			(struct scaler){ .object = *o,
					 .target_kind = *kind ? kind : "Deployment",
					 .target = tree_text(target, "name"),
					 .at = target };
}

static void add_priority(struct contract *c, const struct object *o)
{
	int64_t milli = tree_amount(o->ref.at, "value");
	const char *text = tree_text(o->ref.at, "value");

	ADD(c->arena, c->priorities, c->priority_count, struct priority) =
		(struct priority){ *o, *text == '-'	 ? -1
				       : milli == UNSAID ? 0
							 : milli / 1000 };
}

static void add_quota(struct contract *c, const struct object *o)
{
	const struct yaml_node *hard = tree_at(o->ref.at, "spec>hard");

	for (const struct yaml_node *n = hard && hard->kind == YAML_MAP ? hard->first : NULL; n; n = n->next) {
		int64_t milli;
		if (strncmp(n->key, "requests.", 9) != 0 || !device_is_gpu(n->key + 9) || n->kind != YAML_SCALAR ||
		    !amount_milli(n->text, &milli))
			continue;
		ADD(c->arena, c->quotas, c->quota_count, struct quota) =
			(struct quota){ *o, n->key + 9, milli / 1000, n };
	}
}

static void read_taints(struct machine *m, const struct yaml_node *spec, struct arena *a)
{
	const struct yaml_node *list = tree_at(spec, "taints");

	m->taints_at = list ? list : spec;
	for (const struct yaml_node *n = list && list->kind == YAML_LIST ? list->first : NULL; n; n = n->next)
		ADD(a, m->taints, m->taint_count, struct taint) =
			(struct taint){ tree_text(n, "key"), tree_text(n, "value"), tree_text(n, "effect") };
}

static int64_t gpus_in(const struct yaml_node *map)
{
	int64_t sum = UNSAID, milli;

	for (const struct yaml_node *n = map && map->kind == YAML_MAP ? map->first : NULL; n; n = n->next)
		if (n->kind == YAML_SCALAR && device_is_gpu(n->key) && amount_milli(n->text, &milli))
			sum = (sum == UNSAID ? 0 : sum) + milli / 1000;
	return sum;
}

static void add_node(struct contract *c, const struct object *o)
{
	const struct yaml_node *have = tree_at(o->ref.at, "status>allocatable");
	struct machine m = { .object = *o,
			     .labels = o->labels,
			     .cpu_milli = tree_amount(have, "cpu"),
			     .memory_milli = tree_amount(have, "memory"),
			     .gpus = gpus_in(have) };

	read_taints(&m, yaml_child(o->ref.at, "spec"), c->arena);
	ADD(c->arena, c->machines, c->machine_count, struct machine) = m;
}

static void add_node_pool(struct contract *c, const struct object *o)
{
	const struct yaml_node *template = tree_at(o->ref.at, "spec>template");
	struct machine m = { .object = *o,
			     .labels = tree_labels(template, "metadata>labels", c->arena),
			     .cpu_milli = UNSAID,
			     .memory_milli = UNSAID,
			     .gpus = UNSAID,
			     .is_template = true };

	read_taints(&m, yaml_child(template, "spec"), c->arena);
	ADD(c->arena, c->machines, c->machine_count, struct machine) = m;
}

static void add_pod(struct contract *c, const struct object *o)
{
	const char *phase = tree_text(o->ref.at, "status>phase");

	if (strcmp(phase, "Succeeded") != 0 && strcmp(phase, "Failed") != 0)
		workload_read(c, o, o->ref.at, "", NULL);
}

static void add_template(struct contract *c, const struct object *o)
{
	workload_read(c, o, tree_at(o->ref.at, "spec>template"), "", NULL);
}

static void add_job(struct contract *c, const struct object *o)
{
	const struct yaml_node *job = yaml_child(o->ref.at, "spec");

	workload_read(c, o, tree_at(job, "template"), "", job);
}

static void add_cron_job(struct contract *c, const struct object *o)
{
	const struct yaml_node *job = tree_at(o->ref.at, "spec>jobTemplate>spec");

	workload_read(c, o, tree_at(job, "template"), "", job);
}

/* The set as a whole is cleaned up; its jobs are retried. */
static void add_job_set(struct contract *c, const struct object *o)
{
	const struct yaml_node *set = yaml_child(o->ref.at, "spec"), *jobs = tree_at(set, "replicatedJobs");

	for (const struct yaml_node *n = jobs && jobs->kind == YAML_LIST ? jobs->first : NULL; n; n = n->next) {
		const struct yaml_node *job = tree_at(n, "template>spec");
		workload_read(c, o, tree_at(job, "template"), tree_text(n, "name"), job ? job : set);
		if (c->workload_count && c->workloads[c->workload_count - 1].object.ref.at == o->ref.at)
			c->workloads[c->workload_count - 1].ttl_s = tree_count(set, "ttlSecondsAfterFinished");
	}
}

static void add_leader_workers(struct contract *c, const struct object *o)
{
	const struct yaml_node *set = tree_at(o->ref.at, "spec>leaderWorkerTemplate");

	if (tree_at(set, "leaderTemplate"))
		workload_read(c, o, tree_at(set, "leaderTemplate"), "leader", NULL);
	workload_read(c, o, tree_at(set, "workerTemplate"), "worker", NULL);
}

/* kubeflow's jobs: a template per role. */
static void add_training_job(struct contract *c, const struct object *o)
{
	const struct yaml_node *roles = tree_at(o->ref.at, "spec>pytorchReplicaSpecs"),
			       *policy = tree_at(o->ref.at, "spec>runPolicy");

	for (const struct yaml_node *n = roles && roles->kind == YAML_MAP ? roles->first : NULL; n; n = n->next)
		workload_read(c, o, tree_at(n, "template"), n->key, policy ? policy : roles);
}

struct kind {
	const char *group; /* "apps", "" for core */
	const char *name;
	void (*add)(struct contract *c, const struct object *o);
};

static const struct kind kinds[] = {
	{ "", "Pod", add_pod },
	{ "", "ReplicationController", add_template },
	{ "", "Node", add_node },
	{ "", "ResourceQuota", add_quota },
	{ "apps", "Deployment", add_template },
	{ "apps", "StatefulSet", add_template },
	{ "apps", "DaemonSet", add_template },
	{ "apps", "ReplicaSet", add_template },
	{ "batch", "Job", add_job },
	{ "batch", "CronJob", add_cron_job },
	{ "jobset.x-k8s.io", "JobSet", add_job_set },
	{ "leaderworkerset.x-k8s.io", "LeaderWorkerSet", add_leader_workers },
	{ "argoproj.io", "Rollout", add_template },
	{ "kubeflow.org", "PyTorchJob", add_training_job },
	{ "policy", "PodDisruptionBudget", add_budget },
	{ "autoscaling", "HorizontalPodAutoscaler", add_scaler },
	{ "keda.sh", "ScaledObject", add_scaler },
	{ "scheduling.k8s.io", "PriorityClass", add_priority },
	{ "karpenter.sh", "NodePool", add_node_pool },
};

enum { KINDS = sizeof kinds / sizeof *kinds };

static bool is_of_group(const char *api_version, const char *group)
{
	const char *slash = strchr(api_version, '/');
	size_t len = slash ? (size_t)(slash - api_version) : 0;

	return len == strlen(group) && !strncmp(api_version, group, len);
}

struct contract *contract_new(struct arena *a)
{
	struct contract *c = arena_new(a, struct contract);

	c->arena = a;
	return c;
}

bool contract_knows(const char *kind)
{
	for (size_t i = 0; i < KINDS; i++)
		if (!strcmp(kinds[i].name, kind))
			return true;
	return !strcmp(kind, "WarmPool");
}

bool contract_add(struct contract *c, const struct yaml_node *root)
{
	struct object o = object_read(root, c->arena);

	for (size_t i = 0; i < KINDS; i++)
		if (!strcmp(kinds[i].name, o.ref.kind) && is_of_group(o.ref.api_version, kinds[i].group)) {
			kinds[i].add(c, &o);
			c->objects++;
			return true;
		}
	return false;
}

void contract_set_pools(struct contract *c, const struct manifest *m, bool is_broken)
{
	c->manifest = m;
	c->has_broken_pools = is_broken;
	if (!m)
		return;
	c->objects += m->fleet.pool_count;
	c->pools = arena_array(c->arena, struct object, m->fleet.pool_count);
	for (size_t i = 0; i < m->fleet.pool_count; i++)
		c->pools[i] = object_read(m->pools[i].node, c->arena);
}

void contract_set_whole(struct contract *c)
{
	c->is_whole = true;
}
