#include "controller/contract/objects.h"

#include "base/resource.h"

#include <stdio.h>
#include <string.h>

static const struct yaml_node *tree_at(const struct yaml_node *n, const char *path)
{
	while (n && *path) {
		char key[64];
		size_t len = strcspn(path, ">");
		if (len >= sizeof key)
			return NULL;
		memcpy(key, path, len);
		key[len] = '\0';
		n = yaml_child(n, key);
		path += len + (path[len] == '>');
	}
	return n;
}

static bool is_nothing(const struct yaml_node *n)
{
	const char *meaning = yaml_plain_meaning(n);

	return meaning && !strcmp(meaning, "nothing");
}

static const char *tree_text(const struct yaml_node *n, const char *path)
{
	const struct yaml_node *at = tree_at(n, path);

	return at && at->kind == YAML_SCALAR && !is_nothing(at) ? at->text : "";
}

static int64_t tree_count(const struct yaml_node *n, const char *path)
{
	const char *text = tree_text(n, path);
	int64_t value = 0;

	if (!*text || strlen(text) > 15)
		return UNSAID;
	for (; *text >= '0' && *text <= '9'; text++)
		value = value * 10 + (*text - '0');
	return *text ? UNSAID : value;
}

static int64_t tree_amount(const struct yaml_node *n, const char *path)
{
	int64_t milli;

	return amount_milli(tree_text(n, path), &milli) ? milli : UNSAID;
}

static struct schema_labels tree_labels(const struct yaml_node *n, const char *path, struct arena *a)
{
	const struct yaml_node *map = tree_at(n, path);
	struct schema_labels l = { 0 };

	if (!map || map->kind != YAML_MAP || !map->count)
		return l;
	struct schema_label *items = arena_array(a, struct schema_label, map->count);
	for (const struct yaml_node *v = map->first; v; v = v->next)
		if (v->kind == YAML_SCALAR)
			items[l.count++] = (struct schema_label){ v->key, v->text };
	l.items = items;
	return l;
}

const char *text_visible(const char *text, struct arena *a)
{
	const char *p = text;

	while (*p && (unsigned char)*p >= 0x20 && *p != 0x7f)
		p++;
	if (!*p)
		return text;
	char *copy = arena_strdup(a, text, strlen(text));
	for (char *q = copy; *q; q++)
		if ((unsigned char)*q < 0x20 || *q == 0x7f)
			*q = '?';
	return copy;
}

static struct object object_read(const struct yaml_node *root, size_t times, struct arena *a)
{
	return (struct object){ .ref = { .api_version = text_visible(tree_text(root, "apiVersion"), a),
					 .kind = text_visible(tree_text(root, "kind"), a),
					 .namespace = text_visible(tree_text(root, "metadata>namespace"), a),
					 .name = text_visible(tree_text(root, "metadata>name"), a),
					 .at = root,
					 .times = times },
				.labels = tree_labels(root, "metadata>labels", a),
				.annotations = tree_labels(root, "metadata>annotations", a) };
}

const char *label_of(const struct schema_labels *l, const char *key)
{
	for (size_t i = 0; i < l->count; i++)
		if (!strcmp(l->items[i].key, key))
			return l->items[i].value;
	return NULL;
}

bool labels_match(const struct schema_labels *selector, const struct schema_labels *labels)
{
	for (size_t i = 0; i < selector->count; i++) {
		const char *value = label_of(labels, selector->items[i].key);
		if (!value || strcmp(value, selector->items[i].value) != 0)
			return false;
	}
	return true;
}

bool same_namespace(const struct object *a, const struct object *b)
{
	return !*a->ref.namespace || !*b->ref.namespace || !strcmp(a->ref.namespace, b->ref.namespace);
}

static struct gpu_ask *ask_for(struct container *k, const char *resource, struct arena *a)
{
	for (size_t i = 0; i < k->gpu_count; i++)
		if (!strcmp(k->gpus[i].resource, resource))
			return &k->gpus[i];
	struct gpu_ask *ask = &ADD(a, k->gpus, k->gpu_count, struct gpu_ask);
	*ask = (struct gpu_ask){ resource, UNSAID, UNSAID, NULL };
	return ask;
}

/* Whole devices; a fraction of one is not a number of GPUs. */
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
			int64_t *count = m ? &ask->limit : &ask->requested;
			*count = devices(n);
			if (*count == UNSAID)
				ask->no_number = n->kind == YAML_SCALAR ? n->text : "";
		}
	}
	for (size_t i = 0; i < k->gpu_count; i++) /* as the API server takes it */
		if (!yaml_child(tree_at(k->resources, "requests"), k->gpus[i].resource))
			k->gpus[i].requested = k->gpus[i].limit;
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

static const struct yaml_node *items_at(const struct yaml_node *n, const char *path)
{
	const struct yaml_node *list = tree_at(n, path);

	return list && list->kind == YAML_LIST ? list->first : NULL;
}

static void read_container(struct workload *w, const struct yaml_node *n, bool is_init, struct arena *a)
{
	struct container *k = &ADD(a, w->containers, w->container_count, struct container);

	*k = (struct container){ .name = tree_text(n, "name"),
				 .at = n,
				 .resources = yaml_child(n, "resources"),
				 .args = yaml_child(n, "args"),
				 .command = yaml_child(n, "command"),
				 .claims = items_at(n, "resources>claims"),
				 .is_init = is_init,
				 .stays = is_init && !strcmp(tree_text(n, "restartPolicy"), "Always"),
				 .readiness = read_probe(n, "readinessProbe"),
				 .liveness = read_probe(n, "livenessProbe"),
				 .startup = read_probe(n, "startupProbe") };
	read_gpus(k, a);
	k->has_gpus = k->gpu_count > 0;
	k->cpu_milli = requested(k, "cpu");
	k->memory_milli = requested(k, "memory");
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
	/* A Pod: the leader of a LeaderWorkerSet has its workers' StatefulSet. */
	static const char *const makers[] = { "Pod",
					      "ReplicaSet",
					      "Deployment",
					      "StatefulSet",
					      "DaemonSet",
					      "Job",
					      "CronJob",
					      "JobSet",
					      "LeaderWorkerSet",
					      "Node",
					      "Rollout",
					      "PyTorchJob",
					      "ReplicationController" };

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

static void workload_read(struct contract *c, const struct object *o, const struct yaml_node *template,
			  const char *part, const struct yaml_node *job)
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
				.claims = items_at(spec, "resourceClaims"),
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

static void add_shapeless(struct contract *c, const struct object *o, const char *path, const char *allowed)
{
	char *shown = arena_strdup(c->arena, path, strlen(path));

	for (char *p = shown; (p = strchr(p, '>'));)
		*p = '.';
	ADD(c->arena, c->shapeless, c->shapeless_count, struct shapeless) =
		(struct shapeless){ *o, shown, allowed, tree_at(o->ref.at, path) };
}

static void add_budget(struct contract *c, const struct object *o)
{
	const struct yaml_node *spec = yaml_child(o->ref.at, "spec"), *selector = tree_at(spec, "selector");

	ADD(c->arena, c->budgets, c->budget_count, struct budget) =
		(struct budget){ .object = *o,
				 .selector = tree_labels(spec, "selector>matchLabels", c->arena),
				 .selects_by_labels = !yaml_child(selector, "matchExpressions"),
				 .min_available = tree_text(spec, "minAvailable"),
				 .kept = tree_count(spec, "minAvailable"),
				 .max_unavailable = tree_text(spec, "maxUnavailable"),
				 .at = spec };
}

/* An InferencePool of v1 has matchLabels; before, and in a Service, the selector is the labels. */
static void add_route(struct contract *c, const struct object *o)
{
	const struct yaml_node *selector = tree_at(o->ref.at, "spec>selector");
	const char *path = yaml_child(selector, "matchLabels") ? "matchLabels" : "";

	if (selector)
		ADD(c->arena, c->routes, c->route_count, struct choice) =
			(struct choice){ .object = *o,
					 .selector = tree_labels(selector, path, c->arena),
					 .selects_by_labels = true,
					 .at = selector };
}

/* A rule without anything in it lets all in; without rules nobody comes in. */
static bool lets_all_in(const struct yaml_node *spec)
{
	const struct yaml_node *types = yaml_child(spec, "policyTypes"), *rules = yaml_child(spec, "ingress");
	bool is_about = !types;

	for (const struct yaml_node *n = types && types->kind == YAML_LIST ? types->first : NULL; n; n = n->next)
		is_about |= n->kind == YAML_SCALAR && !strcmp(n->text, "Ingress");
	for (const struct yaml_node *n = rules && rules->kind == YAML_LIST ? rules->first : NULL; n; n = n->next)
		is_about &= n->kind != YAML_MAP || n->count > 0;
	return !is_about;
}

static void add_barrier(struct contract *c, const struct object *o)
{
	const struct yaml_node *spec = yaml_child(o->ref.at, "spec");

	ADD(c->arena, c->barriers, c->barrier_count, struct choice) =
		(struct choice){ .object = *o,
				 .selector = tree_labels(spec, "podSelector>matchLabels", c->arena),
				 .selects_by_labels = !tree_at(spec, "podSelector>matchExpressions"),
				 .is_open = lets_all_in(spec),
				 .at = spec };
}

/* Who makes it, and makes it again; NULL without one. */
static const struct yaml_node *controller_of(const struct object *o)
{
	for (const struct yaml_node *n = items_at(o->ref.at, "metadata>ownerReferences"); n; n = n->next)
		if (!strcmp(tree_text(n, "controller"), "true"))
			return n;
	return NULL;
}

static void add_scaler(struct contract *c, const struct object *o)
{
	const struct yaml_node *target = tree_at(o->ref.at, "spec>scaleTargetRef"), *maker = controller_of(o);
	const char *kind = tree_text(target, "kind");

	ADD(c->arena, c->scalers, c->scaler_count, struct scaler) =
		(struct scaler){ .object = *o,
				 .maker_kind = tree_text(maker, "kind"),
				 .maker = tree_text(maker, "name"),
				 .target_kind = *kind ? kind : "Deployment",
				 .target = tree_text(target, "name"),
				 .at = target };
}

/* `at`: what says that it scales; NULL: it leaves that to others. */
static void add_kserve(struct contract *c, const struct object *o, const char *kind, const char *suffix,
		       const struct yaml_node *at)
{
	size_t room = strlen(o->ref.name) + strlen(suffix) + 1;
	char *workload = arena_array(c->arena, char, room);
	const struct service s = { .object = *o, .workload_kind = kind, .workload = workload };

	snprintf(workload, room, "%s%s", o->ref.name, suffix);
	ADD(c->arena, c->services, c->service_count, struct service) = s;
	if (at)
		ADD(c->arena, c->scalers, c->scaler_count, struct scaler) = (struct scaler){
			.object = *o, .maker_kind = "", .maker = "", .target_kind = kind, .target = s.workload, .at = at
		};
}

/* In RawDeployment mode, which alone makes such a Deployment; an HPA is the default. With the class none KServe sets
 * minReplicas itself, again and again. */
static void add_service(struct contract *c, const struct object *o)
{
	static const char class[] = "serving.kserve.io/autoscalerClass";
	const char *whole = label_of(&o->annotations, class);
	const char *part = tree_text(tree_at(o->ref.at, "spec>predictor>annotations"), class);
	bool leaves = !strcmp(*part || !whole ? part : whole, "external");

	add_kserve(c, o, "Deployment", "-predictor", leaves ? NULL : yaml_child(o->ref.at, "metadata"));
}

/* The number of replicas is set again and again where it is written, and so is that of the autoscaler that `scaling`
 * makes; where neither is, KServe leaves the number as it is. */
static void add_llm_part(struct contract *c, const struct object *o, const struct yaml_node *spec, const char *one,
			 const char *several)
{
	const struct yaml_node *replicas = yaml_child(spec, "replicas");
	bool has_workers = yaml_child(spec, "worker");

	add_kserve(c, o, has_workers ? "LeaderWorkerSet" : "Deployment", has_workers ? several : one,
		   replicas ? replicas : yaml_child(spec, "scaling"));
}

/* As KServe's workload_single_node.go and workload_multi_node.go (pkg/controller/v1alpha2/llmisvc) name them. */
static void add_llm_service(struct contract *c, const struct object *o)
{
	const struct yaml_node *spec = yaml_child(o->ref.at, "spec"), *prefill = yaml_child(spec, "prefill");

	add_llm_part(c, o, spec, "-kserve", "-kserve-mn");
	if (prefill)
		add_llm_part(c, o, prefill, "-kserve-prefill", "-kserve-mn-prefill");
}

/* "gpu.nvidia.com", "mig.nvidia.com"; what an administrator calls otherwise is not known. */
static bool is_gpu_class(const char *name)
{
	return strstr(name, "gpu") || !strncmp(name, "mig.", 4);
}

/* The form of v1, of v1beta1, and the first of alternatives. */
static const struct yaml_node *exact_request(const struct yaml_node *request)
{
	const struct yaml_node *exactly = yaml_child(request, "exactly"), *first = items_at(request, "firstAvailable");

	return exactly ? exactly : first ? first : request;
}

enum { CLAIM_DEVICES = 32 }; /* the most of one claim */

/* UNSAID: as many as a machine has, or no number that the API server takes. */
static int64_t device_count(const struct yaml_node *request)
{
	const char *mode = tree_text(request, "allocationMode");
	int64_t count = yaml_child(request, "count") ? tree_count(request, "count") : 1;

	return (!mode || strcmp(mode, "All") != 0) && count > 0 && count <= CLAIM_DEVICES ? count : UNSAID;
}

static bool is_for_admins(const struct yaml_node *request)
{
	const char *access = tree_text(request, "adminAccess");

	return access && !strcmp(access, "true"); /* it looks at devices and takes none */
}

static void add_claim(struct contract *c, const struct object *o)
{
	bool is_template = !strcmp(o->ref.kind, "ResourceClaimTemplate");
	const struct yaml_node *requests =
		items_at(o->ref.at, is_template ? "spec>spec>devices>requests" : "spec>devices>requests");
	struct device_claim d = { .object = *o };

	if (!requests) { /* of what it asks nobody knows: as good as absent */
		add_shapeless(c, o, is_template ? "spec>spec>devices>requests" : "spec>devices>requests",
			      "a list of one request or more");
		return;
	}
	for (const struct yaml_node *n = requests; n; n = n->next) {
		const struct yaml_node *request = exact_request(n);
		const char *class = tree_text(request, "deviceClassName");
		int64_t count = device_count(request);
		if (is_for_admins(request))
			continue;
		if (!is_gpu_class(class)) {
			d.other_class = class;
			continue;
		}
		d.gpu_class = d.gpu_class ? d.gpu_class : class;
		d.is_uncounted |= count == UNSAID;
		d.gpus += or_else(count, 0);
	}
	ADD(c->arena, c->claims, c->claim_count, struct device_claim) = d;
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
		ADD(a, m->taints, m->taint_count, struct block_taint) =
			(struct block_taint){ tree_text(n, "key"), tree_text(n, "value"), tree_text(n, "effect") };
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

static void add_node_template(struct contract *c, const struct object *o)
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

/* What its controller writes on each pod of a part, for pools and budgets that select by it. */
static void label_group(struct contract *c, const struct object *o, bool has_leader)
{
	struct workload *w = &c->workloads[c->workload_count - 1];
	struct schema_label *items = arena_array(c->arena, struct schema_label, w->labels.count + 2);

	if (w->labels.count)
		memcpy(items, w->labels.items, w->labels.count * sizeof *items);
	w->labels.items = items;
	items[w->labels.count++] = (struct schema_label){ "leaderworkerset.sigs.k8s.io/name", o->ref.name };
	if (has_leader)
		items[w->labels.count++] = (struct schema_label){ "leaderworkerset.sigs.k8s.io/worker-index", "0" };
}

/* Without a template of its own the leader is made by the workers'; a group of one has no other. */
static void add_leader_workers(struct contract *c, const struct object *o)
{
	const struct yaml_node *set = tree_at(o->ref.at, "spec>leaderWorkerTemplate");
	const struct yaml_node *leader = tree_at(set, "leaderTemplate");
	size_t before = c->workload_count;

	if (leader)
		workload_read(c, o, leader, "leader", NULL);
	if (c->workload_count > before)
		label_group(c, o, true);
	before = c->workload_count;
	if (leader && tree_count(set, "size") == 1)
		return;
	workload_read(c, o, tree_at(set, "workerTemplate"), "worker", NULL);
	if (c->workload_count > before)
		label_group(c, o, !leader);
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
	/* Where its pod template, or what has some, and the job around it stand; NULL: there is none. */
	const char *template, *job;
	void (*add)(struct contract *c, const struct object *o); /* NULL: the template is all */
};

static const struct kind kinds[] = {
	{ "", "Pod", "", NULL, NULL },
	{ "", "ReplicationController", "spec>template", NULL, NULL },
	{ "", "Node", NULL, NULL, add_node },
	{ "", "ResourceQuota", NULL, NULL, add_quota },
	{ "apps", "Deployment", "spec>template", NULL, NULL },
	{ "apps", "StatefulSet", "spec>template", NULL, NULL },
	{ "apps", "DaemonSet", "spec>template", NULL, NULL },
	{ "apps", "ReplicaSet", "spec>template", NULL, NULL },
	{ "batch", "Job", "spec>template", "spec", NULL },
	{ "batch", "CronJob", "spec>jobTemplate>spec>template", "spec>jobTemplate>spec", NULL },
	{ "jobset.x-k8s.io", "JobSet", "spec>replicatedJobs", NULL, add_job_set },
	{ "leaderworkerset.x-k8s.io", "LeaderWorkerSet", "spec>leaderWorkerTemplate>workerTemplate", NULL,
	  add_leader_workers },
	{ "argoproj.io", "Rollout", "spec>template", NULL, NULL },
	{ "kubeflow.org", "PyTorchJob", "spec>pytorchReplicaSpecs", NULL, add_training_job },
	{ "policy", "PodDisruptionBudget", NULL, NULL, add_budget },
	{ "autoscaling", "HorizontalPodAutoscaler", NULL, NULL, add_scaler },
	{ "keda.sh", "ScaledObject", NULL, NULL, add_scaler },
	{ "autoscaling.aibrix.ai", "PodAutoscaler", NULL, NULL, add_scaler },
	{ "serving.kserve.io", "InferenceService", NULL, NULL, add_service },
	{ "serving.kserve.io", "LLMInferenceService", NULL, NULL, add_llm_service },
	{ "resource.k8s.io", "ResourceClaim", NULL, NULL, add_claim },
	{ "resource.k8s.io", "ResourceClaimTemplate", NULL, NULL, add_claim },
	{ "scheduling.k8s.io", "PriorityClass", NULL, NULL, add_priority },
	{ "", "Service", NULL, NULL, add_route },
	{ "inference.networking.k8s.io", "InferencePool", NULL, NULL, add_route },
	{ "inference.networking.x-k8s.io", "InferencePool", NULL, NULL, add_route },
	{ "networking.k8s.io", "NetworkPolicy", NULL, NULL, add_barrier },
};

enum { KINDS = sizeof kinds / sizeof *kinds };

static bool is_of_group(const char *api_version, const char *group)
{
	const char *slash = strchr(api_version, '/');
	size_t len = slash ? (size_t)(slash - api_version) : 0;

	return len == strlen(group) && !strncmp(api_version, group, len);
}

struct contract *contract_new(struct arena *a, millis now)
{
	struct contract *c = arena_new(a, struct contract);

	c->arena = a;
	c->now = now;
	return c;
}

bool contract_knows(const char *kind)
{
	for (size_t i = 0; i < KINDS; i++)
		if (!strcmp(kinds[i].name, kind))
			return true;
	for (enum provider_choice p = 0; p < PROVIDER_COUNT; p++)
		if (provider_block(p)->template_kind && !strcmp(provider_block(p)->template_kind, kind))
			return true;
	return !strcmp(kind, "WarmPool");
}

/* Pods that ended ask for nothing. */
static bool is_over(const struct object *o)
{
	const char *phase = strcmp(o->ref.kind, "Pod") ? "" : tree_text(o->ref.at, "status>phase");

	return !strcmp(phase, "Succeeded") || !strcmp(phase, "Failed");
}

static bool is_kind(const struct object *o, const char *group, const char *name)
{
	return name && !strcmp(name, o->ref.kind) && is_of_group(o->ref.api_version, group);
}

/* An Argo Rollout. */
static bool takes_template_of_another(const struct yaml_node *root)
{
	return tree_at(root, "spec>workloadRef") != NULL;
}

static void add_podless(struct contract *c, const struct object *o, const struct kind *k)
{
	CLEANUP(buf_release) struct buf path = { 0 };

	if (k->add) {
		add_shapeless(c, o, k->template, "what has a pod template with a spec");
		return;
	}
	buf_printf(&path, "%s%sspec", k->template, *k->template ? ">" : "");
	add_shapeless(c, o, path.text, "a map with containers");
}

bool contract_add(struct contract *c, const struct yaml_node *root, size_t times)
{
	struct object o = object_read(root, times, c->arena);
	size_t before = c->objects, workloads = c->workload_count;

	for (size_t i = 0; i < KINDS && c->objects == before; i++) {
		const struct kind *k = &kinds[i];
		if (!is_kind(&o, k->group, k->name))
			continue;
		if (k->add)
			k->add(c, &o);
		else if (!is_over(&o))
			workload_read(c, &o, tree_at(root, k->template), "", k->job ? tree_at(root, k->job) : NULL);
		if (k->template && c->workload_count == workloads && !is_over(&o) && !takes_template_of_another(root))
			add_podless(c, &o, k);
		c->objects += times;
	}
	for (enum provider_choice p = 0; p < PROVIDER_COUNT && c->objects == before; p++)
		if (is_kind(&o, provider_block(p)->template_group, provider_block(p)->template_kind)) {
			add_node_template(c, &o);
			c->objects += times;
		}
	return c->objects > before;
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
		c->pools[i] = object_read(m->pools[i].node, 1, c->arena);
}

void contract_set_whole(struct contract *c)
{
	c->is_whole = true;
}
