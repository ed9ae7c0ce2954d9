/* A pod template as a value. */
#include "base/resource.h"
#include "controller/contract/parts.h"

#include <string.h>

static struct gpu_ask *ask_for(struct container *k, const char *resource, struct arena *a)
{
	for (size_t i = 0; i < k->gpu_count; i++)
		if (!strcmp(k->gpus[i].resource, resource))
			return &k->gpus[i];
	struct gpu_ask *ask = &ADD(a, k->gpus, k->gpu_count, struct gpu_ask);
	*ask = (struct gpu_ask){ resource, UNSAID, UNSAID };
	return ask;
}

/* Whole devices; a fraction of one is no number of GPUs. */
static int64_t devices(const struct yaml_node *amount)
{
	int64_t milli;

	return amount->kind == YAML_SCALAR && amount_milli(amount->text, &milli) && milli % 1000 == 0 ? milli / 1000
												      : UNSAID;
}

static void read_gpus(struct container *k, struct arena *a)
{
	static const char *const maps[] = { "requests", "limits" };

	for (size_t m = 0; m < 2; m++) {
		const struct yaml_node *map = tree_at(k->resources, maps[m]);
		for (const struct yaml_node *n = map && map->kind == YAML_MAP ? map->first : NULL; n; n = n->next) {
			if (!device_is_gpu(n->key))
				continue;
			struct gpu_ask *ask = ask_for(k, n->key, a);
			*(m ? &ask->limit : &ask->requested) = devices(n);
		}
	}
}

/* Requests, and limits where nothing is requested. */
static int64_t requested(const struct container *k, const char *resource)
{
	int64_t own = tree_amount(tree_at(k->resources, "requests"), resource);

	return own != UNSAID ? own : tree_amount(tree_at(k->resources, "limits"), resource);
}

static int64_t or_else(int64_t value, int64_t fallback)
{
	return value == UNSAID ? fallback : value;
}

static struct probe read_probe(const struct yaml_node *container, const char *key)
{
	const struct yaml_node *at = yaml_child(container, key);
	struct probe p = { .at = at };

	if (at)
		p.allows_s =
			or_else(tree_count(at, "initialDelaySeconds"), 0) +
			or_else(tree_count(at, "periodSeconds"), 10) * or_else(tree_count(at, "failureThreshold"), 3);
	return p;
}

static void read_container(struct workload *w, const struct yaml_node *n, bool is_init, struct arena *a)
{
	struct container *k = &ADD(a, w->containers, w->container_count, struct container);

	*k = (struct container){ .name = tree_text(n, "name"),
				 .at = n,
				 .resources = yaml_child(n, "resources"),
				 .args = yaml_child(n, "args"),
				 .command = yaml_child(n, "command"),
				 .is_init = is_init,
				 .stays = is_init && !strcmp(tree_text(n, "restartPolicy"), "Always"),
				 .readiness = read_probe(n, "readinessProbe"),
				 .liveness = read_probe(n, "livenessProbe"),
				 .startup = read_probe(n, "startupProbe") };
	read_gpus(k, a);
	k->cpu_milli = requested(k, "cpu");
	k->memory_milli = requested(k, "memory");
}

static const struct yaml_node *items_at(const struct yaml_node *n, const char *path)
{
	const struct yaml_node *list = tree_at(n, path);

	return list && list->kind == YAML_LIST ? list->first : NULL;
}

static void read_containers(struct workload *w, struct arena *a)
{
	for (const struct yaml_node *n = items_at(w->spec, "initContainers"); n; n = n->next)
		read_container(w, n, true, a);
	for (const struct yaml_node *n = items_at(w->spec, "containers"); n; n = n->next)
		read_container(w, n, false, a);
}

static void read_tolerations(struct workload *w, struct arena *a)
{
	for (const struct yaml_node *n = items_at(w->spec, "tolerations"); n; n = n->next) {
		const char *relation = tree_text(n, "operator");
		ADD(a, w->tolerations, w->toleration_count, struct toleration) =
			(struct toleration){ .key = tree_text(n, "key"),
					     .relation = *relation ? relation : "Equal",
					     .value = tree_text(n, "value"),
					     .effect = tree_text(n, "effect"),
					     .at = n };
	}
}

static struct requirement read_requirement(const struct yaml_node *n, struct arena *a)
{
	const struct yaml_node *values = yaml_child(n, "values");
	struct requirement r = { .key = tree_text(n, "key"), .relation = tree_text(n, "operator"), .at = n };
	const char **texts = arena_array(a, const char *, values && values->count ? values->count : 1);

	for (const struct yaml_node *v = values && values->kind == YAML_LIST ? values->first : NULL; v; v = v->next)
		if (v->kind == YAML_SCALAR)
			texts[r.count++] = v->text;
	r.values = texts;
	return r;
}

static void read_terms(struct workload *w, struct arena *a)
{
	const char *path = "affinity>nodeAffinity>requiredDuringSchedulingIgnoredDuringExecution>nodeSelectorTerms";

	for (const struct yaml_node *n = items_at(w->spec, path); n; n = n->next) {
		struct term *t = &ADD(a, w->terms, w->term_count, struct term);
		*t = (struct term){ 0 };
		for (const struct yaml_node *r = items_at(n, "matchExpressions"); r; r = r->next)
			ADD(a, t->items, t->count, struct requirement) = read_requirement(r, a);
	}
}

static bool is_zone(const char *key)
{
	return !strcmp(key, "topology.kubernetes.io/zone");
}

static bool spreads(const struct yaml_node *spec)
{
	static const char *const paths[] = {
		"affinity>podAntiAffinity>requiredDuringSchedulingIgnoredDuringExecution",
		"affinity>podAntiAffinity>preferredDuringSchedulingIgnoredDuringExecution",
	};

	for (const struct yaml_node *n = items_at(spec, "topologySpreadConstraints"); n; n = n->next)
		if (is_zone(tree_text(n, "topologyKey")))
			return true;
	for (size_t i = 0; i < 2; i++)
		for (const struct yaml_node *n = items_at(spec, paths[i]); n; n = n->next)
			if (is_zone(tree_text(n, i ? "podAffinityTerm>topologyKey" : "topologyKey")))
				return true;
	return false;
}

/* Of those, what is made is judged by its maker. */
static bool is_owned(const struct yaml_node *root)
{
	static const char *const makers[] = { "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet",
					      "Job",	    "CronJob",	  "JobSet",	 "LeaderWorkerSet",
					      "Node",	    "Rollout",	  "PyTorchJob",	 "ReplicationController" };

	for (const struct yaml_node *n = items_at(root, "metadata>ownerReferences"); n; n = n->next)
		for (size_t i = 0; i < sizeof makers / sizeof *makers; i++)
			if (!strcmp(tree_text(n, "kind"), makers[i]))
				return true;
	return false;
}

static bool is_daemon(const struct object *o)
{
	for (const struct yaml_node *n = items_at(o->ref.at, "metadata>ownerReferences"); n; n = n->next)
		if (!strcmp(tree_text(n, "kind"), "DaemonSet") || !strcmp(tree_text(n, "kind"), "Node"))
			return true;
	return !strcmp(o->ref.kind, "DaemonSet");
}

void workload_read(struct contract *c, const struct object *o, const struct yaml_node *template, const char *part,
		   const struct yaml_node *job)
{
	const struct yaml_node *spec = yaml_child(template, "spec");

	if (!spec || spec->kind != YAML_MAP)
		return;
	struct workload *w = &ADD(c->arena, c->workloads, c->workload_count, struct workload);
	*w = (struct workload){ .object = *o,
				.part = part,
				.labels = tree_labels(template, "metadata>labels", c->arena),
				.annotations = tree_labels(template, "metadata>annotations", c->arena),
				.spec = spec,
				.job = job,
				.node_selector = tree_labels(spec, "nodeSelector", c->arena),
				.selector_at = yaml_child(spec, "nodeSelector"),
				.spreads_zones = spreads(spec),
				.priority_class = tree_text(spec, "priorityClassName"),
				.node = tree_text(spec, "nodeName"),
				.grace_s = tree_count(spec, "terminationGracePeriodSeconds"),
				.replicas = tree_count(o->ref.at, "spec>replicas"),
				.ttl_s = tree_count(job, "ttlSecondsAfterFinished"),
				.backoff = tree_count(job, "backoffLimit"),
				.is_daemon = is_daemon(o),
				.is_job = job != NULL,
				.is_owned = is_owned(o->ref.at) };
	read_containers(w, c->arena);
	read_tolerations(w, c->arena);
	read_terms(w, c->arena);
}
