#include "controller/contract/resolve.h"

#include "base/resource.h"
#include "controller/manifest/group_nodes.h"

#include <string.h>

static int64_t plus(int64_t a, int64_t b)
{
	return a > INT64_MAX - b ? INT64_MAX : a + b;
}

/* Containers run at once, init containers one after the other beside those that stay. */
static int64_t pod_sum(const struct workload *w, int64_t (*part)(const struct workload *, const struct container *))
{
	int64_t all = 0, staying = 0, most = 0;

	for (size_t i = 0; i < w->container_count; i++) {
		const struct container *k = &w->containers[i];
		int64_t own = part(w, k);
		own = own > 0 ? own : 0;
		if (k->is_init && !k->stays && plus(staying, own) > most)
			most = plus(staying, own);
		if (k->stays)
			staying = plus(staying, own);
		if (!k->is_init || k->stays)
			all = plus(all, own);
	}
	return all > most ? all : most;
}

static int64_t cpu_part(const struct workload *w, const struct container *k)
{
	(void)w;
	return k->cpu_milli;
}

static int64_t memory_part(const struct workload *w, const struct container *k)
{
	(void)w;
	return k->memory_milli;
}

static int64_t gpu_part(const struct workload *w, const struct container *k)
{
	for (size_t i = 0; i < k->gpu_count; i++)
		if (!strcmp(k->gpus[i].resource, w->gpu_resource))
			return k->gpus[i].requested != UNSAID ? k->gpus[i].requested : k->gpus[i].limit;
	return 0;
}

static const struct yaml_node *text_at(const struct yaml_node *n, const char *key)
{
	const struct yaml_node *at = yaml_child(n, key);

	return at && at->kind == YAML_SCALAR ? at : NULL;
}

static const struct device_claim *find_claim(const struct contract *c, const struct workload *w, const char *name,
					     bool is_template)
{
	for (size_t i = 0; i < c->claim_count; i++) {
		const struct device_claim *d = &c->claims[i];
		if (is_template == !strcmp(d->object.ref.kind, "ResourceClaimTemplate") &&
		    !strcmp(d->object.ref.name, name) && same_namespace(&d->object, &w->object))
			return d;
	}
	return NULL;
}

static void give_gpus(struct workload *w, const char *claim)
{
	for (size_t i = 0; i < w->container_count; i++)
		for (const struct yaml_node *n = w->containers[i].claims; n; n = n->next) {
			const struct yaml_node *name = text_at(n, "name");
			w->containers[i].has_gpus |= name && !strcmp(name->text, claim);
		}
}

/* What it claims of GPUs, as far as the claims are among the objects and their classes are known. */
static void resolve_claims(const struct contract *c, struct workload *w)
{
	bool is_uncounted = false;

	for (const struct yaml_node *n = w->claims; n; n = n->next) {
		const struct yaml_node *template = text_at(n, "resourceClaimTemplateName"),
				       *claim = text_at(n, "resourceClaimName"), *name = template ? template : claim;
		const struct device_claim *d = name ? find_claim(c, w, name->text, template != NULL) : NULL;
		if (name && !d)
			w->claim_absent = name->text;
		if (d && d->other_class)
			w->class_unknown = d->other_class;
		if (!d || !d->gpu_class)
			continue;
		w->gpu_resource = w->gpu_resource ? w->gpu_resource : d->gpu_class;
		w->gpus += d->gpus;
		if (text_at(n, "name"))
			give_gpus(w, text_at(n, "name")->text);
		is_uncounted |= d->is_uncounted;
	}
	w->gpus = is_uncounted ? 0 : w->gpus;
}

static void resolve_sums(const struct contract *c, struct workload *w)
{
	for (size_t i = 0; i < w->container_count && !w->gpu_resource; i++)
		for (size_t g = 0; g < w->containers[i].gpu_count && !w->gpu_resource; g++)
			if (w->containers[i].gpus[g].requested != 0 || w->containers[i].gpus[g].limit != 0)
				w->gpu_resource = w->containers[i].gpus[g].resource;
	w->gpus = w->gpu_resource ? pod_sum(w, gpu_part) : 0;
	resolve_claims(c, w);
	w->cpu_milli = pod_sum(w, cpu_part);
	w->memory_milli = pod_sum(w, memory_part);
}

static bool is_target_of(const struct contract *c, size_t pool, const struct workload *w)
{
	const struct target_text *t = &c->manifest->pools[pool].spec.workload.target;

	return t->name && !strcmp(t->name, w->object.ref.name) && !strcmp(t->kind, w->object.ref.kind);
}

/* The first, of those in shares before others, as the model of the cluster counts its pods. */
static int find_pool(const struct contract *c, const struct workload *w)
{
	int first = -1;

	for (size_t i = 0; c->manifest && i < c->manifest->fleet.pool_count; i++) {
		const struct schema_labels *selector = &c->manifest->pools[i].spec.workload.selector.match_labels;
		bool is_shared = pool_is_in_share(&c->manifest->fleet.pools[i]);
		if ((first >= 0 && !is_shared) || !same_namespace(&c->pools[i], &w->object))
			continue;
		if ((selector->count && labels_match(selector, &w->labels)) || is_target_of(c, i, w)) {
			first = (int)i;
			if (is_shared)
				break;
		}
	}
	return first;
}

const struct pool_spec *pool_of(const struct contract *c, const struct workload *w)
{
	return w->pool < 0 ? NULL : &c->manifest->fleet.pools[w->pool];
}

bool is_selected(const struct contract *c, const struct workload *w)
{
	const struct schema_labels *selector =
		w->pool < 0 ? NULL : &c->manifest->pools[w->pool].spec.workload.selector.match_labels;

	return selector && (!selector->count || labels_match(selector, &w->labels));
}

size_t groups_of(const struct contract *c, const struct workload *w, const struct group_facts **out, size_t room)
{
	const struct pool_spec *p = pool_of(c, w);
	size_t all = c->manifest ? c->manifest->fleet.group_count : 0, count = 0;

	for (size_t i = 0; i < (p ? p->group_count : all) && count < room; i++) {
		const struct group_facts *g = &c->groups[p ? p->groups[i] : i];
		if (g->spec->max_nodes > 0)
			out[count++] = g;
	}
	return count;
}

static void know(struct contract *c, struct group_facts *g, const char *key, const char *value)
{
	if (!key || !value || !*key || !*value)
		return;
	ADD(c->arena, g->labels, g->label_count, struct schema_label) = (struct schema_label){ key, value };
}

/* The kubelet keeps about 60m and 2.5m of each further core for itself and the system. */
static int64_t instance_cpu_milli(const struct instance_type *t)
{
	return t->vcpus * 1000 - 60 - t->vcpus * 5 / 2;
}

/* The machine itself takes some 3 %, the kubelet about 1 GiB. */
static int64_t instance_memory_milli(const struct instance_type *t)
{
	int64_t mib = t->memory_gib * 1024 * 97 / 100 - 1024;

	return mib * (INT64_C(1) << 20) * 1000;
}

/* What pods may have of a machine of a known type; a node that was seen overrules it. */
static void know_instance(struct group_facts *g)
{
	for (enum provider_choice p = 0; p < PROVIDER_COUNT; p++)
		for (size_t i = 0; i < provider_block(p)->instance_count; i++) {
			const struct instance_type *t = &provider_block(p)->instances[i];
			if (strcmp(t->name, g->spec->instance_type) != 0)
				continue;
			g->cpu_milli = instance_cpu_milli(t);
			g->memory_milli = instance_memory_milli(t);
			g->gpu = t->gpu;
			g->gpu_memory_mib = t->gpu_memory_gib * 1024;
			g->source = t->name;
		}
}

/* By the manifest alone. */
static void know_manifest(struct contract *c, size_t group)
{
	struct group_facts *g = &c->groups[group];
	const struct schema_labels labels = group_node_labels(&c->manifest->groups[group], c->arena);

	for (size_t i = 0; i < labels.count; i++)
		know(c, g, labels.items[i].key, labels.items[i].value);
	g->taints = group_node_taints(&c->manifest->groups[group], c->arena, &g->taint_count);
	know_instance(g);
}

bool is_template_of(const struct machine *m, struct schema_label mark)
{
	for (enum provider_choice p = 0; m->is_template && p < PROVIDER_COUNT; p++)
		if (provider_block(p)->template_kind && !strcmp(mark.key, provider_block(p)->label.key))
			return !strcmp(mark.value, m->object.ref.name);
	return false;
}

static bool is_of_group(const struct contract *c, size_t group, const struct machine *m)
{
	struct schema_label mark = manifest_group_label(c->manifest, group);
	const char *value = label_of(&m->labels, mark.key);

	if (m->is_template)
		return is_template_of(m, mark);
	return value && !strcmp(value, mark.value);
}

/* "NVIDIA-A10G", "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb": the table's name of it, or the label as it is. */
static const char *gpu_name(const char *product)
{
	size_t best = 0;
	const char *found = product;

	for (enum provider_choice p = 0; p < PROVIDER_COUNT; p++)
		for (size_t i = 0; i < provider_block(p)->instance_count; i++) {
			const char *gpu = provider_block(p)->instances[i].gpu;
			if (strstr(product, gpu) && strlen(gpu) > best) {
				found = gpu;
				best = strlen(found);
			}
		}
	return found;
}

static void know_machine(struct contract *c, struct group_facts *g, const struct machine *m)
{
	const char *product = label_of(&m->labels, "nvidia.com/gpu.product");
	int64_t memory;

	for (size_t i = 0; i < m->labels.count; i++)
		know(c, g, m->labels.items[i].key, m->labels.items[i].value);
	g->taints = m->taints;
	g->taint_count = m->taint_count;
	g->has_taints = true;
	if (m->is_template)
		return;
	g->has_all_labels = true;
	g->source = m->object.ref.name;
	g->cpu_milli = m->cpu_milli != UNSAID ? m->cpu_milli : g->cpu_milli;
	g->memory_milli = m->memory_milli != UNSAID ? m->memory_milli : g->memory_milli;
	g->gpu = product ? gpu_name(product) : g->gpu;
	if (label_of(&m->labels, "nvidia.com/gpu.memory") &&
	    amount_milli(label_of(&m->labels, "nvidia.com/gpu.memory"), &memory))
		g->gpu_memory_mib = memory / 1000;
}

/* The first machine of each group tells of all: they are equal. */
static void resolve_groups(struct contract *c)
{
	size_t count = c->manifest ? c->manifest->fleet.group_count : 0;

	c->groups = arena_array(c->arena, struct group_facts, count);
	for (size_t i = 0; i < count; i++) {
		struct group_facts *g = &c->groups[i];
		*g = (struct group_facts){ .spec = &c->manifest->fleet.groups[i],
					   .cpu_milli = UNSAID,
					   .memory_milli = UNSAID,
					   .gpu_memory_mib = UNSAID };
		know_manifest(c, i);
		for (size_t k = 0; k < c->machine_count && !g->has_all_labels; k++)
			if (is_of_group(c, i, &c->machines[k]))
				know_machine(c, g, &c->machines[k]);
	}
}

void contract_resolve(struct contract *c)
{
	for (size_t i = 0; i < c->workload_count; i++) {
		resolve_sums(c, &c->workloads[i]);
		c->workloads[i].pool = find_pool(c, &c->workloads[i]);
	}
	resolve_groups(c);
}

static const struct known_label labels[] = {
#define NODE_LABEL(theme, key, meaning, instead) { theme, key, meaning, instead },
#include "providers/labels.def"
#undef NODE_LABEL
};

const struct known_label *known_labels(size_t *count)
{
	*count = sizeof labels / sizeof *labels;
	return labels;
}

bool taint_bars(const struct block_taint *t)
{
	return !strcmp(t->effect, "NoSchedule") || !strcmp(t->effect, "NoExecute");
}

bool asks_for_gpus(const struct contract *c, const struct workload *w)
{
	(void)c;
	return w->gpu_resource && !w->is_owned;
}

const struct priority *priority_find(const struct contract *c, const char *name)
{
	for (size_t i = 0; i < c->priority_count; i++)
		if (!strcmp(c->priorities[i].object.ref.name, name))
			return &c->priorities[i];
	return NULL;
}
