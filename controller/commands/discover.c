#include "controller/commands/discover.h"

#include "base/json.h"
#include "base/quantity.h"
#include "base/resource.h"
#include "controller/commands/team_autoscaler.h"
#include "providers/block.h"
#include "signals/engine_metrics.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A guess where nothing was seen: seldom more sequences than this run on one GPU before requests wait. */
enum { SLOTS_GUESS = 64, GROUPS_MOST = 8 };
/* From asking a cloud for a machine until it registers as a node, which no object tells. */
static const millis BOOT_GUESS = 60 * SECOND;
static const char leader_worker_set[] = "LeaderWorkerSet";

struct list {
	const void **items;
	size_t count;
};

/* Nodes that are alike: one node group. */
struct found_group {
	const char *name, *key, *value; /* by this label */
	const struct provider_block *block;
	const char *provider; /* NULL: no label of a provider */
	const char *type;     /* the machine's; NULL: not told */
	int64_t gpus, nodes, list_price;
	bool is_spot;
};

struct found_node {
	const char *name;
	struct found_group *group;
	millis created, ready; /* 0: not told */
};

/* What makes the pods: the workload that has a number of replicas. */
struct owner {
	const char *api_version, *kind, *name;
};

struct found_service {
	const char *name, *namespace; /* of the pool */
	struct owner owner;
	const struct yaml_node *labels; /* a map: of the selector, or of a pod */
	const char *image;
	enum engine engine;
	const char *gpu_resource;
	const char *model; /* as its metrics name it, by its arguments; NULL: not told */
	int64_t gpus, slots, port, pods;
	struct found_group *groups[GROUPS_MOST];
	size_t group_count;
	struct list leads; /* of millis: seen from creation to ready, machine and all */
};

struct discovery {
	struct arena *arena;
	struct list nodes, pods, workloads, autoscalers, slices, claims; /* trees */
	struct list found_nodes, groups, services, left_out;
	struct found_service unserved; /* pods whose GPUs no model server that is known uses; no group: none */
};

static void add(struct discovery *d, struct list *l, const void *item)
{
	/* Doubles at powers of two. */
	if (!(l->count & (l->count - 1))) {
		const void **grown = arena_array(d->arena, const void *, l->count ? 2 * l->count : 1);
		if (l->count)
			memcpy(grown, l->items, l->count * sizeof(void *));
		l->items = grown;
	}
	l->items[l->count++] = item;
}

struct discovery *discovery_new(struct arena *a)
{
	struct discovery *d = arena_new(a, struct discovery);

	d->arena = a;
	return d;
}

static bool is_one_of(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (!strcmp(text, *words))
			return true;
	return false;
}

void discovery_add(struct discovery *d, const struct yaml_node *object)
{
	static const char *const workloads[] = { "Deployment", "StatefulSet", NULL };
	static const char *const autoscalers[] = { "HorizontalPodAutoscaler", "ScaledObject", "NodePool", NULL };
	const char *kind = yaml_text(object, "kind");
	const struct yaml_node *items = yaml_child(object, "items");

	for (const struct yaml_node *n = items && items->kind == YAML_LIST ? items->first : NULL; n; n = n->next)
		discovery_add(d, n);
	if (!kind)
		return;
	if (!strcmp(kind, "Node"))
		add(d, &d->nodes, object);
	else if (!strcmp(kind, "Pod"))
		add(d, &d->pods, object);
	else if (!strcmp(kind, "ResourceSlice"))
		add(d, &d->slices, object);
	else if (!strcmp(kind, "ResourceClaim"))
		add(d, &d->claims, object);
	else if (is_one_of(kind, workloads))
		add(d, &d->workloads, object);
	if (is_one_of(kind, autoscalers) || !strcmp(kind, "Deployment"))
		add(d, &d->autoscalers, object);
}

static const char *meta(const struct yaml_node *object, const char *key)
{
	return yaml_text(yaml_child(object, "metadata"), key);
}

static const char *label(const struct yaml_node *object, const char *key)
{
	return yaml_text(YAML_AT(object, "metadata", "labels"), key);
}

static millis time_of(const char *text)
{
	millis at = 0;

	return text && time_parse(text, strlen(text), &at) ? at : 0;
}

/* When the condition became true; 0: it is not. */
static millis since(const struct yaml_node *object, const char *condition)
{
	const struct yaml_node *all = YAML_AT(object, "status", "conditions");

	for (const struct yaml_node *c = all ? all->first : NULL; c; c = c->next) {
		const char *type = yaml_text(c, "type"), *status = yaml_text(c, "status");
		if (type && status && !strcmp(type, condition) && !strcmp(status, "True"))
			return time_of(yaml_text(c, "lastTransitionTime"));
	}
	return 0;
}

/* The largest count of GPUs among the members of a map of resources. */
static int64_t gpus_in(const struct yaml_node *resources, const char **resource)
{
	int64_t most = 0, milli;

	for (const struct yaml_node *n = resources && resources->kind == YAML_MAP ? resources->first : NULL; n;
	     n = n->next)
		if (n->kind == YAML_SCALAR && device_is_gpu(n->key) && amount_milli(n->text, &milli) && milli > most) {
			most = milli;
			if (resource)
				*resource = n->key;
		}
	return most / 1000;
}

/* By the label that a provider puts on the nodes of a group. */
static void name_group(const struct yaml_node *node, struct found_group *g)
{
	static const char by_type[] = "node.kubernetes.io/instance-type";

	for (enum provider_choice p = 0; p < PROVIDER_COUNT; p++) {
		const struct provider_block *b = provider_block(p);
		const char *value = b->label.key && !b->is_trial ? label(node, b->label.key) : NULL;

		if (!value)
			continue;
		g->key = b->label.key;
		g->value = value;
		g->block = b;
		g->provider = provider_name(p);
		return;
	}
	g->key = by_type;
	g->value = label(node, by_type);
}

static int64_t list_price(const char *type)
{
	for (enum provider_choice p = 0; type && p < PROVIDER_COUNT; p++) {
		const struct provider_block *b = provider_block(p);
		for (size_t i = 0; i < b->instance_count; i++)
			if (!strcmp(b->instances[i].name, type))
				return b->instances[i].list_price;
	}
	return 0;
}

static bool is_spot(const struct yaml_node *node, const struct provider_block *b)
{
	const char *word = b && b->capacity_label ? b->capacity_words[BLOCK_SPOT] : NULL;
	const char *value = word ? label(node, b->capacity_label) : NULL;

	return value && !strcmp(value, word);
}

static struct found_group *group_of(struct discovery *d, const struct yaml_node *node, int64_t gpus)
{
	struct found_group made = { .gpus = gpus, .type = label(node, "node.kubernetes.io/instance-type") };

	name_group(node, &made);
	if (!made.value)
		return NULL;
	for (size_t i = 0; i < d->groups.count; i++) {
		struct found_group *g = (struct found_group *)(uintptr_t)d->groups.items[i];
		if (!strcmp(g->key, made.key) && !strcmp(g->value, made.value))
			return g;
	}
	made.is_spot = is_spot(node, made.block);
	made.list_price = list_price(made.type);
	struct found_group *g = arena_new(d->arena, struct found_group);
	*g = made;
	add(d, &d->groups, g);
	return g;
}

/* GPUs that a driver publishes of the node, where no plugin offers them. */
static int64_t gpus_published(const struct discovery *d, const char *node)
{
	int64_t gpus = 0;

	for (size_t i = 0; node && i < d->slices.count; i++) {
		const struct yaml_node *spec = yaml_child(d->slices.items[i], "spec"),
				       *devices = yaml_child(spec, "devices");
		const char *driver = yaml_text(spec, "driver"), *of = yaml_text(spec, "nodeName");

		if (!driver || !device_is_driver(driver) || !of || strcmp(of, node) != 0)
			continue;
		for (const struct yaml_node *n = devices ? devices->first : NULL; n; n = n->next) {
			const char *type = yaml_text(YAML_AT(n, "attributes", "type"), "string");
			gpus += !type || (strcmp(type, "mig") != 0 && strcmp(type, "vfio") != 0);
		}
	}
	return gpus;
}

static void find_nodes(struct discovery *d)
{
	for (size_t i = 0; i < d->nodes.count; i++) {
		const struct yaml_node *node = d->nodes.items[i];
		int64_t gpus = gpus_in(YAML_AT(node, "status", "allocatable"), NULL);
		struct found_node *found;

		gpus = gpus ? gpus : gpus_published(d, meta(node, "name"));
		struct found_group *group = gpus ? group_of(d, node, gpus) : NULL;
		if (!group)
			continue;
		group->nodes++;
		found = arena_new(d->arena, struct found_node);
		*found = (struct found_node){ .name = meta(node, "name"),
					      .group = group,
					      .created = time_of(meta(node, "creationTimestamp")),
					      .ready = since(node, "Ready") };
		add(d, &d->found_nodes, found);
	}
}

/* A ReplicaSet is named after its Deployment and the hash of the template. */
static bool find_owner(struct discovery *d, const struct yaml_node *pod, struct owner *out)
{
	const struct yaml_node *refs = YAML_AT(pod, "metadata", "ownerReferences");
	const char *set = label(pod, "leaderworkerset.sigs.k8s.io/name");

	for (const struct yaml_node *r = refs ? refs->first : NULL; r; r = r->next) {
		const char *kind = yaml_text(r, "kind"), *name = yaml_text(r, "name");
		const char *cut = name ? strrchr(name, '-') : NULL;

		if (kind && cut && !strcmp(kind, "ReplicaSet"))
			*out = (struct owner){ "apps/v1", "Deployment",
					       arena_strdup(d->arena, name, (size_t)(cut - name)) };
		else if (kind && set && !strcmp(kind, "StatefulSet"))
			*out = (struct owner){ "leaderworkerset.x-k8s.io/v1", leader_worker_set, set };
		else if (kind && name && !strcmp(kind, "StatefulSet"))
			*out = (struct owner){ "apps/v1", kind, name };
		else
			continue;
		return true;
	}
	return false;
}

static const struct yaml_node *workload_of(const struct discovery *d, const char *namespace, const struct owner *o)
{
	for (size_t i = 0; i < d->workloads.count; i++) {
		const struct yaml_node *w = d->workloads.items[i];
		const char *in = meta(w, "namespace"), *name = meta(w, "name"), *kind = yaml_text(w, "kind");

		if (name && !strcmp(name, o->name) && !strcmp(kind, o->kind) && in && !strcmp(in, namespace))
			return w;
	}
	return NULL;
}

/* The GPUs of a claim that is allocated, and the resource that its driver's are otherwise: "nvidia.com/gpu". */
static int64_t gpus_claimed(const struct discovery *d, const char *namespace, const char *claim, const char **resource)
{
	int64_t gpus = 0;

	for (size_t i = 0; namespace && claim && i < d->claims.count; i++) {
		const struct yaml_node *k = d->claims.items[i];
		const char *name = meta(k, "name"), *in = meta(k, "namespace");

		if (!in || !name || strcmp(name, claim) != 0 || strcmp(in, namespace) != 0)
			continue;
		const struct yaml_node *all = YAML_AT(k, "status", "allocation", "devices", "results");
		for (const struct yaml_node *r = all ? all->first : NULL; r; r = r->next) {
			const char *driver = yaml_text(r, "driver"), *admin = yaml_text(r, "adminAccess");
			if (!driver || !device_is_driver(driver) || (admin && !strcmp(admin, "true")))
				continue;
			char *text = arena_alloc(d->arena, strlen(driver) + sizeof "/gpu", 1);
			snprintf(text, strlen(driver) + sizeof "/gpu", "%s/gpu", driver + strlen("gpu."));
			*resource = text;
			gpus++;
		}
	}
	return gpus;
}

static const struct yaml_node *named(const struct yaml_node *list, const char *name)
{
	for (const struct yaml_node *n = list ? list->first : NULL; n && name; n = n->next)
		if (yaml_text(n, "name") && !strcmp(yaml_text(n, "name"), name))
			return n;
	return NULL;
}

/* What a container has of the pod's claims. */
static int64_t gpus_of_claims(const struct discovery *d, const struct yaml_node *pod, const struct yaml_node *container,
			      const char **resource)
{
	const struct yaml_node *used = YAML_AT(container, "resources", "claims"),
			       *asked = YAML_AT(pod, "spec", "resourceClaims"),
			       *made = YAML_AT(pod, "status", "resourceClaimStatuses");
	int64_t gpus = 0;

	for (const struct yaml_node *u = used ? used->first : NULL; u; u = u->next) {
		const char *name = yaml_text(u, "name"), *claim = yaml_text(named(made, name), "resourceClaimName");
		claim = claim ? claim : yaml_text(named(asked, name), "resourceClaimName");
		gpus += gpus_claimed(d, meta(pod, "namespace"), claim, resource);
	}
	return gpus;
}

/* The container that asks for the most GPUs. */
static const struct yaml_node *gpu_container(const struct discovery *d, const struct yaml_node *pod, int64_t *gpus,
					     const char **resource)
{
	const struct yaml_node *all = YAML_AT(pod, "spec", "containers"), *found = NULL;

	*gpus = 0;
	for (const struct yaml_node *c = all ? all->first : NULL; c; c = c->next) {
		const char *name = NULL;
		int64_t n = gpus_in(YAML_AT(c, "resources", "limits"), &name);

		n = n ? n : gpus_of_claims(d, pod, c, &name);
		if (n <= *gpus)
			continue;
		*gpus = n;
		*resource = name;
		found = c;
	}
	return found;
}

/* By the longest word of an engine that the image has: some are built on others. */
static bool engine_of(const char *image, enum engine *out)
{
	size_t longest = 0;

	for (int e = 0; e < ENGINE_COUNT; e++) {
		const char *word = engine_traits((enum engine)e).image;
		if (strstr(image, word) && strlen(word) > longest) {
			longest = strlen(word);
			*out = (enum engine)e;
		}
	}
	return longest > 0;
}

/* What follows the option in a text, "--option value" or "--option=value"; "" at the end of it, NULL: not there. */
static const char *after_option(const char *text, const char *option)
{
	size_t len = strlen(option);

	for (const char *at = strstr(text, option); at; at = strstr(at + len, option))
		if (!at[len] || at[len] == '=' || at[len] == ' ')
			return at + len + strspn(at + len, "= ");
	return NULL;
}

/* The value of an argument, also within the text of a shell's and of a list of several; NULL: not given. */
static const char *argument(const struct yaml_node *container, const char *option)
{
	static const char *const lists[] = { "command", "args" };

	for (size_t i = 0; option && i < 2; i++) {
		const struct yaml_node *l = yaml_child(container, lists[i]);
		for (const struct yaml_node *n = l ? l->first : NULL; n; n = n->next) {
			const char *rest = n->kind == YAML_SCALAR && n->text ? after_option(n->text, option) : NULL;

			if (rest && !*rest && n->next && n->next->kind == YAML_SCALAR)
				rest = n->next->text;
			if (rest && *rest)
				return rest;
		}
	}
	return NULL;
}

static int64_t number_argument(const struct yaml_node *container, const char *option)
{
	const char *text = argument(container, option);
	int64_t value = text ? strtoll(text, NULL, 10) : 0;

	return value > 0 ? value : 0;
}

/* The label model_name of its metrics: the first name that it serves under, else what it was told to load. */
static const char *model_of(struct discovery *d, const struct yaml_node *container, enum engine engine)
{
	static const char *const options[] = { "--served-model-name", "--model-path", "--model", "serve" };
	const char *text = NULL;

	if (engine != ENGINE_VLLM && engine != ENGINE_SGLANG)
		return NULL;
	for (size_t i = 0; !text && i < sizeof options / sizeof *options; i++)
		text = argument(container, options[i]);
	size_t len = text ? strcspn(text, " \t\n") : 0;
	/* What a shell or the kubelet puts in is not known. */
	return len && *text != '-' && strcspn(text, "$\"'`\\") >= len ? arena_strdup(d->arena, text, len) : NULL;
}

/* The port that a person names for it, or the only one. */
static int64_t port_of(const struct yaml_node *container)
{
	static const char *const names[] = { "metrics", "http-metrics", "http", NULL };
	const struct yaml_node *ports = yaml_child(container, "ports");
	int64_t only = 0, value;

	for (const struct yaml_node *p = ports ? ports->first : NULL; p; p = p->next) {
		const char *number = yaml_text(p, "containerPort"), *name = yaml_text(p, "name");

		if (!number || !whole_parse(number, strlen(number), &value))
			continue;
		if (name && is_one_of(name, names))
			return value;
		only = only ? only : value;
	}
	return only;
}

static bool is_taken(const struct discovery *d, const char *name)
{
	for (size_t i = 0; i < d->services.count; i++)
		if (!strcmp(((const struct found_service *)d->services.items[i])->name, name))
			return true;
	return false;
}

/* Pools have names of their own, whatever their namespace. */
static const char *pool_name(const struct discovery *d, const char *namespace, const char *name)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	buf_printf(&text, "%.63s", name);
	if (is_taken(d, text.text)) {
		buf_clear(&text);
		buf_printf(&text, "%.30s-%.32s", namespace, name);
	}
	for (char *c = text.text; *c; c++)
		*c = *c == '.' ? '-' : *c;
	return arena_strdup(d->arena, text.text, text.len);
}

static struct found_service *service_of(struct discovery *d, const char *namespace, const struct owner *o)
{
	for (size_t i = 0; i < d->services.count; i++) {
		struct found_service *s = (struct found_service *)(uintptr_t)d->services.items[i];
		if (!strcmp(s->namespace, namespace) && !strcmp(s->owner.name, o->name) &&
		    !strcmp(s->owner.kind, o->kind))
			return s;
	}
	return NULL;
}

__attribute__((format(printf, 4, 5))) static void leave_out(struct discovery *d, const char *namespace,
							    const struct owner *o, const char *why, ...)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	va_list args;

	buf_printf(&text, "%s %s/%s: ", o->kind, namespace, o->name);
	va_start(args, why);
	buf_vprintf(&text, why, args);
	va_end(args);
	add(d, &d->left_out, arena_strdup(d->arena, text.text, text.len));
}

static struct found_service *service_new(struct discovery *d, const struct yaml_node *pod, const char *namespace,
					 const struct owner *o)
{
	struct found_service made = { .namespace = namespace, .owner = *o };
	const struct yaml_node *container = gpu_container(d, pod, &made.gpus, &made.gpu_resource);
	const struct yaml_node *workload = workload_of(d, namespace, o);

	made.image = yaml_text(container, "image");
	if (!made.image || !engine_of(made.image, &made.engine)) {
		leave_out(d, namespace, o,
			  "no model server that is known by its image (%s): for the default pool, unless you write its "
			  "WarmPool",
			  made.image ? made.image : "none");
		made.gpus = 0; /* remembered, so that it is said once */
	}
	made.name = pool_name(d, namespace, o->name);
	made.slots = number_argument(container, engine_traits(made.engine).slots_option);
	made.model = model_of(d, container, made.engine);
	made.port = port_of(container);
	made.labels = YAML_AT(workload, "spec", "selector", "matchLabels");
	if (!made.labels)
		made.labels = YAML_AT(pod, "metadata", "labels");
	struct found_service *s = arena_new(d->arena, struct found_service);
	*s = made;
	add(d, &d->services, s);
	return s;
}

static const struct found_node *node_of(const struct discovery *d, const struct yaml_node *pod)
{
	const char *name = yaml_text(yaml_child(pod, "spec"), "nodeName");

	for (size_t i = 0; name && i < d->found_nodes.count; i++) {
		const struct found_node *n = d->found_nodes.items[i];
		if (n->name && !strcmp(n->name, name))
			return n;
	}
	return NULL;
}

/* How long its start took: all of it where the machine was made for it, else the machine's time and its own. */
static void note_lead(struct discovery *d, struct found_service *s, const struct yaml_node *pod,
		      const struct found_node *n)
{
	millis created = time_of(meta(pod, "creationTimestamp")), ready = since(pod, "Ready"),
	       scheduled = since(pod, "PodScheduled");
	bool is_cold = n->created >= created;
	millis *lead;

	if (!created || !ready || !scheduled || ready < scheduled || !n->created || n->ready < n->created)
		return;
	lead = arena_new(d->arena, millis);
	*lead = is_cold ? ready - created : BOOT_GUESS + (n->ready - n->created) + (ready - scheduled);
	add(d, &s->leads, lead);
}

static void note_group(struct found_service *s, struct found_group *g)
{
	for (size_t i = 0; i < s->group_count; i++)
		if (s->groups[i] == g)
			return;
	if (s->group_count < GROUPS_MOST)
		s->groups[s->group_count++] = g;
}

static void find_services(struct discovery *d)
{
	for (size_t i = 0; i < d->pods.count; i++) {
		const struct yaml_node *pod = d->pods.items[i];
		const char *namespace = meta(pod, "namespace"), *resource;
		const struct found_node *node = node_of(d, pod);
		struct owner o;
		int64_t gpus;

		if (!namespace || !gpu_container(d, pod, &gpus, &resource) || !find_owner(d, pod, &o))
			continue;
		struct found_service *s = service_of(d, namespace, &o);
		s = s ? s : service_new(d, pod, namespace, &o);
		s->pods++;
		if (!node)
			continue;
		note_group(s, node->group);
		note_lead(d, s, pod, node);
	}
}

static int by_time(const void *a, const void *b)
{
	millis x = **(const millis *const *)a, y = **(const millis *const *)b;

	return x < y ? -1 : x > y;
}

static int by_price(const void *a, const void *b)
{
	const struct found_group *x = *(struct found_group *const *)a, *y = *(struct found_group *const *)b;

	return x->is_spot != y->is_spot		? (x->is_spot ? -1 : 1)
	       : x->list_price != y->list_price ? (x->list_price < y->list_price ? -1 : 1)
						: strcmp(x->value, y->value);
}

/* What has GPUs and is no service is for the default pool. */
static void note_unserved(struct discovery *d, const struct found_service *s)
{
	if (!d->unserved.group_count)
		d->unserved = (struct found_service){ .name = pool_name(d, s->namespace, "default"),
						      .namespace = s->namespace };
	d->unserved.pods += s->pods;
	for (size_t i = 0; i < s->group_count; i++)
		note_group(&d->unserved, s->groups[i]);
}

/* Those that nothing can be said of are taken out. */
size_t discovery_finish(struct discovery *d)
{
	size_t kept = 0;

	find_nodes(d);
	find_services(d);
	for (size_t i = 0; i < d->services.count; i++) {
		struct found_service *s = (struct found_service *)(uintptr_t)d->services.items[i];

		if (s->gpus && !s->group_count)
			leave_out(d, s->namespace, &s->owner, "none of its pods is on a node with GPUs yet");
		if (!s->gpus && s->group_count)
			note_unserved(d, s);
		if (!s->gpus || !s->group_count)
			continue;
		if (s->leads.count)
			qsort((void *)s->leads.items, s->leads.count, sizeof(void *), by_time);
		qsort((void *)s->groups, s->group_count, sizeof(void *), by_price);
		d->services.items[kept++] = s;
	}
	d->services.count = kept;
	qsort((void *)d->unserved.groups, d->unserved.group_count, sizeof(void *), by_price);
	return kept;
}

struct discovery_lack discovery_lacks(const struct discovery *d)
{
	if (!d->nodes.count && !d->pods.count)
		return (struct discovery_lack){ "no node and no pod",
						"look at a cluster that has some, or put them into the file: kubectl "
						"get nodes,pods,deploy,sts,hpa -A -o yaml" };
	if (!d->nodes.count)
		return (struct discovery_lack){ "pods, and no node",
						"have nodes listed, too: kubectl get nodes,pods,deploy,sts,hpa -A -o "
						"yaml" };
	if (!d->found_nodes.count)
		return (struct discovery_lack){ "nodes, and none with GPUs",
						"start a GPU node, and see that its device plugin runs "
						"(status.capacity: nvidia.com/gpu)" };
	if (!d->pods.count)
		return (struct discovery_lack){ "GPU nodes, and no pod",
						"start the model servers, or look at all namespaces" };
	return (struct discovery_lack){
		"GPU nodes and pods, and no pod of a known model server that asks for GPUs there",
		"see that the servers run, or write a WarmPool by hand "
		"(docs/getting-started.md); what was left out stands above"
	};
}

static const struct found_service *service_at(const struct discovery *d, size_t i)
{
	return d->services.items[i];
}

/* Of the leads seen, in thousandths; sorted. */
static millis lead_at(const struct found_service *s, size_t permille)
{
	return *(const millis *)s->leads.items[(s->leads.count - 1) * permille / 1000];
}

void discovery_print(const struct discovery *d, struct buf *out)
{
	for (size_t i = 0; i < d->services.count; i++) {
		const struct found_service *s = service_at(d, i);

		buf_printf(out, "  %s %s/%s: %s, %" PRId64 " pod%s of %" PRId64 " GPU%s on", s->owner.kind,
			   s->namespace, s->owner.name, engine_traits(s->engine).name, s->pods, s->pods == 1 ? "" : "s",
			   s->gpus, s->gpus == 1 ? "" : "s");
		for (size_t g = 0; g < s->group_count; g++)
			buf_printf(out, "%s %s (%" PRId64 " node%s%s%s)", g ? "," : "", s->groups[g]->value,
				   s->groups[g]->nodes, s->groups[g]->nodes == 1 ? "" : "s",
				   s->groups[g]->type ? ", " : "", s->groups[g]->type ? s->groups[g]->type : "");
		buf_text(out, "\n");
	}
	for (size_t i = 0; i < d->left_out.count; i++)
		buf_printf(out, "%s  %s\n", i ? "" : "Left out:\n", (const char *)d->left_out.items[i]);
}

/* A text as YAML and JSON both have it. */
static void put(struct buf *out, const char *text)
{
	bool is_word = *text && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(text) && *text >= 'a' &&
		       !yaml_plain_meaning(&(struct yaml_node){ .kind = YAML_SCALAR, .text = text, .is_plain = true });

	if (is_word)
		buf_text(out, text);
	else
		json_write_text(text, out);
}

static void write_labels(const struct yaml_node *labels, struct buf *out)
{
	static const char *const passing[] = { "pod-template-hash", "controller-revision-hash",
					       "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index",
					       NULL };
	bool is_first = true;

	for (const struct yaml_node *n = labels ? labels->first : NULL; n; n = n->next) {
		if (n->kind != YAML_SCALAR || is_one_of(n->key, passing))
			continue;
		buf_text(out, is_first ? " " : ", ");
		put(out, n->key);
		buf_text(out, ": ");
		put(out, n->text);
		is_first = false;
	}
}

/* A replica is a group, and its leader tells of it; other labels of its pods are a group's own. */
static void write_leaders(const char *set, struct buf *out)
{
	buf_text(out, " leaderworkerset.sigs.k8s.io/name: ");
	put(out, set);
	buf_text(out, ", leaderworkerset.sigs.k8s.io/worker-index: \"0\"");
}

static void write_workload(const struct found_service *s, struct buf *out)
{
	const struct engine_traits e = engine_traits(s->engine);

	buf_text(out, "  workload:\n    selector: { matchLabels: {");
	if (!strcmp(s->owner.kind, leader_worker_set))
		write_leaders(s->owner.name, out);
	else
		write_labels(s->labels, out);
	buf_printf(out, " } }\n    scaleTargetRef: { apiVersion: %s, kind: %s, name: ", s->owner.api_version,
		   s->owner.kind);
	put(out, s->owner.name);
	buf_printf(out, " }\n    gpusPerReplica: %" PRId64 "\n", s->gpus);
	if (strcmp(s->gpu_resource, "nvidia.com/gpu") != 0)
		buf_printf(out, "    gpuResource: %s\n", s->gpu_resource);
	buf_printf(out, "    maxSequences: %" PRId64 "   # ", s->slots ? s->slots : SLOTS_GUESS);
	if (s->slots)
		buf_printf(out, "%s of its container\n", e.slots_option);
	else
		buf_text(out, "guessed; measured once replicas were full\n");
}

/* Other services whose series are told from its own by the model alone: how many, and how many have the same. */
static size_t neighbours_of(const struct discovery *d, const struct found_service *s, size_t *alike)
{
	size_t count = 0;

	*alike = 0;
	for (size_t i = 0; i < d->services.count; i++) {
		const struct found_service *o = service_at(d, i);

		if (o == s || o->engine != s->engine || strcmp(o->namespace, s->namespace) != 0)
			continue;
		count++;
		*alike += !s->model || !o->model || !strcmp(s->model, o->model);
	}
	return count;
}

static void write_series(const struct discovery *d, const struct found_service *s, const char *prometheus,
			 struct buf *out)
{
	size_t alike, neighbours = neighbours_of(d, s, &alike);

	buf_text(out, "    prometheus:\n      url: ");
	json_write_text(prometheus, out);
	buf_text(out, "\n      labels: { namespace: ");
	put(out, s->namespace);
	if (neighbours && !alike) {
		buf_text(out, ", model_name: ");
		put(out, s->model);
		buf_text(out, " }   # guessed: by the arguments of its container\n");
	} else if (neighbours) {
		buf_text(out,
			 " }   # add what only its series have, such as job: others in this namespace are like it\n");
	} else {
		buf_text(out, " }   # guessed: add what only its series have where several models share a namespace\n");
	}
}

static void write_signals(const struct discovery *d, const struct found_service *s, const char *prometheus,
			  struct buf *out)
{
	buf_printf(out, "  signals:\n    engine: %s   # by its image, %s\n", engine_traits(s->engine).name, s->image);
	if (prometheus)
		write_series(d, s, prometheus, out);
	else if (s->port)
		buf_printf(out, "    scrape: { port: %" PRId64 " }   # of its container\n", s->port);
}

/* Whether the autoscaler of pods scales that workload. */
static bool scales(const struct yaml_node *autoscaler, const struct found_service *s)
{
	const struct yaml_node *target = YAML_AT(autoscaler, "spec", "scaleTargetRef");
	const char *name = yaml_text(target, "name"), *kind = yaml_text(target, "kind"),
		   *namespace = meta(autoscaler, "namespace");

	return name && namespace && !strcmp(name, s->owner.name) && !strcmp(namespace, s->namespace) &&
	       !strcmp(kind ? kind : "Deployment", s->owner.kind);
}

/* The most replicas that somebody's autoscaler may make of it; 0: none scales it, or without an end of its own. */
static int64_t replicas_allowed(const struct discovery *d, const struct found_service *s)
{
	int64_t most = 0, value;

	for (size_t i = 0; i < d->autoscalers.count; i++) {
		const struct yaml_node *o = d->autoscalers.items[i], *spec = yaml_child(o, "spec");
		const char *text = yaml_text(spec, "maxReplicas");

		text = text ? text : yaml_text(spec, "maxReplicaCount");
		if (text && scales(o, s) && whole_parse(text, strlen(text), &value) && value > most)
			most = value;
	}
	return most < 10000 ? most : 0;
}

static bool runs_on(const struct found_service *s, const struct found_group *g)
{
	for (size_t i = 0; i < s->group_count; i++)
		if (!strcmp(s->groups[i]->key, g->key) && !strcmp(s->groups[i]->value, g->value))
			return true;
	return false;
}

/* The same for all pools that name the group: what the hungriest of them may ask for. */
static void write_max(const struct discovery *d, const struct found_group *g, struct buf *out)
{
	int64_t twice = 2 * g->nodes, needed = 0;

	for (size_t i = 0; i < d->services.count; i++) {
		const struct found_service *s = d->services.items[i];
		int64_t per_node = g->gpus / s->gpus > 0 ? g->gpus / s->gpus : 1;
		int64_t nodes = (replicas_allowed(d, s) + per_node - 1) / per_node;
		if (!runs_on(s, g))
			continue;
		needed = nodes > needed ? nodes : needed;
		twice = per_node == 1 ? 2 * g->nodes + 1 : twice;
	}
	if (needed > twice)
		buf_printf(out, "      max: %" PRId64 "   # guessed: what its autoscaler may ask for\n", needed);
	else
		buf_printf(out, "      max: %" PRId64 "   # guessed: twice what is there\n", twice);
}

static void write_group(const struct discovery *d, const struct found_group *g, struct buf *out)
{
	buf_text(out, "    - name: ");
	put(out, g->value);
	buf_printf(out, "\n      external: { label: %s, value: ", g->key);
	put(out, g->value);
	buf_text(out, " }");
	if (g->provider)
		buf_printf(
			out,
			"   # nodes of %s: before mode act write its block, %s:, in place of this (docs/providers.md)",
			g->provider, g->provider);
	buf_printf(out, "\n      gpusPerNode: %" PRId64 "\n", g->gpus);
	if (g->is_spot)
		buf_text(out, "      capacityType: spot\n");
	if (g->list_price) {
		buf_text(out, "      pricePerHour: ");
		fixed_format(g->list_price, 6, out);
		buf_printf(out, "   # list price of %s on demand, October 2025; write what you pay\n", g->type);
	}
	write_max(d, g, out);
}

static bool have_prices(const struct found_service *s)
{
	for (size_t i = 0; i < s->group_count; i++)
		if (!s->groups[i]->list_price)
			return false;
	return true;
}

static void write_lead_time(const struct found_service *s, struct buf *out)
{
	if (!s->leads.count) {
		buf_text(out, "  # leadTime: not seen in pods and nodes; the default holds until starts were seen\n");
		return;
	}
	millis middle = lead_at(s, 500), slow = lead_at(s, 950);
	buf_text(out, "  leadTime: { total: { p50: ");
	duration_format((middle + SECOND - 1) / SECOND * SECOND, out);
	buf_text(out, ", p95: ");
	duration_format(((slow > middle ? slow : middle + middle / 2) + SECOND - 1) / SECOND * SECOND, out);
	buf_printf(out, " } }   # of %zu pod%s that %s there\n", s->leads.count, s->leads.count == 1 ? "" : "s",
		   s->leads.count == 1 ? "is" : "are");
}

/* The first that the model can do. */
static void write_former(const struct discovery *d, const struct found_service *s, struct buf *out)
{
	for (size_t i = 0; i < d->autoscalers.count; i++) {
		const struct yaml_node *o = d->autoscalers.items[i];
		const char *setting = scales(o, s) ? team_autoscaler_setting(o, d->arena) : NULL;

		if (!setting)
			continue;
		buf_printf(out, "  formerAutoscaler: %s   # of %s ", setting, yaml_text(o, "kind"));
		put(out, meta(o, "name"));
		buf_text(out, "; its cost is shown beside\n");
		return;
	}
}

static void write_groups(const struct discovery *d, const struct found_service *s, struct buf *out)
{
	bool is_priced = have_prices(s);

	buf_text(out, "  nodeGroups:\n");
	for (size_t i = 0; i < s->group_count; i++) {
		struct found_group g = *s->groups[i];

		g.list_price = is_priced ? g.list_price : 0; /* all of a pool's groups have prices, or none */
		write_group(d, &g, out);
	}
}

static void write_pool(const struct discovery *d, const struct found_service *s, const char *prometheus,
		       struct buf *out)
{
	buf_text(out, "---\napiVersion: preheat.dev/v1alpha1\nkind: WarmPool\nmetadata: { name: ");
	put(out, s->name);
	buf_text(out, ", namespace: ");
	put(out, s->namespace);
	buf_text(out, " }\nspec:\n  mode: observe   # decides and records; act: also buys, releases and scales\n"
		      "  objective: { queueWait: 2s, attainment: 99% }   # guessed: what is late is yours to say\n");
	write_workload(s, out);
	write_signals(d, s, prometheus, out);
	write_groups(d, s, out);
	write_lead_time(s, out);
	write_former(d, s, out);
}

void discovery_write_pools(const struct discovery *d, const char *prometheus, const char *from, struct buf *out)
{
	buf_printf(out, "# What preheat init found in %s. Lines with a comment were guessed: look at them first.\n",
		   from);
	for (size_t i = 0; i < d->services.count; i++)
		write_pool(d, service_at(d, i), prometheus, out);
}

bool discovery_write_default(const struct discovery *d, struct buf *out)
{
	const struct found_service *s = &d->unserved;

	if (!s->group_count)
		return false;
	buf_printf(out,
		   "# The default pool, for %" PRId64
		   " pod%s with GPUs and without a model server that preheat init knows. Any GPU pod\n"
		   "# that no other WarmPool selects gets the cheapest machine that fits, of these node groups.\n"
		   "apiVersion: preheat.dev/v1alpha1\nkind: WarmPool\nmetadata: { name: ",
		   s->pods, s->pods == 1 ? "" : "s");
	put(out, s->name);
	buf_text(out, ", namespace: ");
	put(out, s->namespace);
	buf_text(out,
		 " }\nspec:\n  mode: observe   # decides and records; act: also buys and releases\n  class: any\n");
	write_groups(d, s, out);
	return true;
}

static void write_tree(const struct yaml_node *n, struct buf *out)
{
	if (n->kind == YAML_SCALAR) {
		if (n->is_plain && (!*n->text || yaml_plain_meaning(n)))
			buf_text(out, *n->text ? n->text : "null");
		else
			json_write_text(n->text, out);
		return;
	}
	buf_text(out, n->kind == YAML_MAP ? "{" : "[");
	for (const struct yaml_node *c = n->first; c; c = c->next) {
		buf_text(out, c == n->first ? "" : ",");
		if (n->kind == YAML_MAP) {
			json_write_text(c->key, out);
			buf_text(out, ":");
		}
		write_tree(c, out);
	}
	buf_text(out, n->kind == YAML_MAP ? "}" : "]");
}

static bool scales_any(const struct discovery *d, const struct yaml_node *autoscaler)
{
	for (size_t i = 0; i < d->services.count; i++)
		if (scales(autoscaler, service_at(d, i)))
			return true;
	return false;
}

size_t discovery_write_autoscalers(const struct discovery *d, struct buf *out)
{
	size_t scalers = 0;

	buf_text(out, "apiVersion: v1\nkind: List\nitems:\n");
	for (size_t i = 0; i < d->autoscalers.count; i++) {
		const struct yaml_node *o = d->autoscalers.items[i];
		const char *kind = yaml_text(o, "kind"), *name = meta(o, "name");
		bool is_of_nodes = !strcmp(kind, "NodePool") ||
				   (!strcmp(kind, "Deployment") && name && strstr(name, "cluster-autoscaler"));
		bool is_of_pods = strcmp(kind, "Deployment") != 0 && !is_of_nodes && scales_any(d, o);

		if (!is_of_nodes && !is_of_pods)
			continue;
		scalers += is_of_pods;
		buf_text(out, "- ");
		write_tree(o, out);
		buf_text(out, "\n");
	}
	return scalers;
}
