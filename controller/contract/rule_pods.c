/* Rules about what a pod asks of GPUs, where it may run, and what beside the GPUs a machine has for it. */
#include "base/text.h"
#include "base/resource.h"
#include "controller/contract/model_words.h"
#include "controller/contract/rule_runner.h"

#include <stdio.h>
#include <string.h>

enum { COST_LABELS = 4 };
enum fit { FIT_NO, FIT_MAYBE, FIT_YES };

/* Of nodes with GPUs, where nothing is known of them. */
static const struct block_taint usual_taint = { "nvidia.com/gpu", "present", "NoSchedule" };

/* The last that was told of a key counts: nodes are seen after the manifest was read. */
static const char *label_in(const struct group_facts *g, const char *key)
{
	for (size_t i = g->label_count; i > 0; i--)
		if (!strcmp(g->labels[i - 1].key, key))
			return g->labels[i - 1].value;
	return NULL;
}

/* What is written in a value stands in the product's name: "NVIDIA-A10G" of a group with A10G. */
static bool names_gpu(const char *product, const char *gpu)
{
	size_t len = strlen(gpu);

	for (const char *p = product; *p; p += strcspn(p, "-"), p += *p == '-')
		if (!strncmp(p, gpu, len) && (p[len] == '\0' || p[len] == '-'))
			return true;
	return false;
}

static bool has_value(const struct requirement *r, const char *value)
{
	for (size_t i = 0; i < r->count; i++)
		if (!strcmp(r->values[i], value))
			return true;
	return false;
}

static int64_t number(const char *text)
{
	int64_t value = 0;

	for (; *text >= '0' && *text <= '9' && value < INT64_MAX / 100; text++)
		value = value * 10 + (*text - '0');
	return value;
}

static enum fit fit_value(const struct requirement *r, const char *value)
{
	if (!strcmp(r->relation, "In"))
		return value && has_value(r, value) ? FIT_YES : FIT_NO;
	if (!strcmp(r->relation, "NotIn"))
		return value && has_value(r, value) ? FIT_NO : FIT_YES;
	if (!strcmp(r->relation, "Exists"))
		return value ? FIT_YES : FIT_NO;
	if (!strcmp(r->relation, "DoesNotExist"))
		return value ? FIT_NO : FIT_YES;
	if (!strcmp(r->relation, "Gt") || !strcmp(r->relation, "Lt")) {
		bool is_more = *r->relation == 'G';
		if (!value || r->count != 1)
			return FIT_NO;
		return (is_more ? number(value) > number(r->values[0]) : number(value) < number(r->values[0])) ? FIT_YES
													       : FIT_NO;
	}
	return FIT_MAYBE;
}

/* A product that the instance type gives away, though no node was seen that says it. */
static enum fit fit_product(const struct requirement *r, const struct group_facts *g)
{
	bool is_in = !strcmp(r->relation, "In");

	if (!g->gpu || (!is_in && strcmp(r->relation, "NotIn") != 0))
		return FIT_MAYBE;
	for (size_t i = 0; i < r->count; i++)
		if (names_gpu(r->values[i], g->gpu))
			return is_in ? FIT_MAYBE : FIT_NO;
	return is_in ? FIT_NO : FIT_MAYBE;
}

static enum fit fit_requirement(const struct requirement *r, const struct group_facts *g)
{
	const char *value = label_in(g, r->key);
	char memory[24];

	if (!value && !g->has_all_labels) {
		if (!strcmp(r->key, "nvidia.com/gpu.product"))
			return fit_product(r, g);
		if (strcmp(r->key, "nvidia.com/gpu.memory") != 0 || g->gpu_memory_mib == UNSAID ||
		    (*r->relation != 'G' && *r->relation != 'L'))
			return FIT_MAYBE;
		snprintf(memory, sizeof memory, "%lld", (long long)g->gpu_memory_mib);
		value = memory;
	}
	return fit_value(r, value);
}

static enum fit fit_term(const struct term *t, const struct group_facts *g, const struct requirement **why)
{
	enum fit fit = FIT_YES;

	for (size_t i = 0; i < t->count; i++) {
		enum fit one = fit_requirement(&t->items[i], g);
		if (one < fit) {
			fit = one;
			*why = one == FIT_NO ? &t->items[i] : *why;
		}
	}
	return t->count ? fit : FIT_NO;
}

static enum fit fit_terms(const struct workload *w, const struct group_facts *g, const struct requirement **why)
{
	enum fit best = FIT_NO;

	for (size_t i = 0; i < w->term_count; i++) {
		enum fit one = fit_term(&w->terms[i], g, why);
		best = one > best ? one : best;
	}
	return w->term_count ? best : FIT_YES;
}

/* Whether the node selector and affinity allow the group; `why` (may be NULL) gets the requirement that does not. */
static enum fit fit_group(const struct workload *w, const struct group_facts *g, const struct requirement **why)
{
	const struct requirement *ignored = NULL;
	enum fit fit = fit_terms(w, g, why ? why : &ignored);

	for (size_t i = 0; fit != FIT_NO && i < w->node_selector.count; i++) {
		const struct schema_label *l = &w->node_selector.items[i];
		const struct requirement r = { .key = l->key, .relation = "In", .values = &l->value, .count = 1 };
		enum fit one = fit_requirement(&r, g);
		fit = one < fit ? one : fit;
	}
	return fit;
}

static bool tolerates(const struct toleration *t, const struct block_taint *taint)
{
	if (*t->effect && strcmp(t->effect, taint->effect) != 0)
		return false;
	if (!strcmp(t->relation, "Exists"))
		return !*t->key || !strcmp(t->key, taint->key);
	return !strcmp(t->key, taint->key) && !strcmp(t->value, taint->value);
}

static bool workload_tolerates(const struct workload *w, const struct block_taint *taint)
{
	for (size_t i = 0; i < w->toleration_count; i++)
		if (tolerates(&w->tolerations[i], taint))
			return true;
	return false;
}

static bool taint_is_of_gpus(const char *key)
{
	static const char *const keys[] = { "nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi", "gpu.intel.com/i915" };

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (!strcmp(keys[i], key))
			return true;
	return false;
}

/* Rules about what a pod asks of GPUs, and for whom. */

static const char *shown(struct check_run *c, int64_t count)
{
	return count == UNSAID ? "none" : say(c, "%lld", (long long)count);
}

static void check_ask(struct check_run *c, const struct workload *w, const struct container *k,
		      const struct gpu_ask *ask)
{
	int64_t most = ask->requested > ask->limit ? ask->requested : ask->limit;
	char written[QUOTE_ROOM];

	if (ask->requested == ask->limit && ask->limit != UNSAID)
		return;
	const struct breach b = { &w->object, k->resources ? k->resources : k->at,
				  say(c, "write %s: \"%lld\" under requests and under limits", ask->resource,
				      (long long)(most > 0 ? most : 1)) };
	if (ask->no_number)
		violate(c, &b, "container %s asks for %s of %s, which is not a whole number of devices", k->name,
			quote(written, ask->no_number, strlen(ask->no_number)), ask->resource);
	else
		violate(c, &b, "container %s requests %s of %s and limits it to %s", k->name, shown(c, ask->requested),
			ask->resource, shown(c, ask->limit));
}

static void rule_gpu_limits(struct check_run *c, const struct workload *w)
{
	for (size_t k = 0; !w->is_owned && k < w->container_count; k++)
		for (size_t g = 0; g < w->containers[k].gpu_count; g++)
			check_ask(c, w, &w->containers[k], &w->containers[k].gpus[g]);
}

static void rule_gpu_needs_pool(struct check_run *c, const struct workload *w)
{
	const char *label = label_of(&w->labels, CONTRACT_POOL);
	const struct pool_spec *p = pool_of(c->contract, w);

	if (!c->contract->manifest || (label && !strcmp(label, "none") && !p))
		return;
	if (!p)
		violate(c, &(struct breach){ &w->object, w->spec, NULL },
			"asks for %s %s, and no WarmPool in %s selects its pods",
			w->gpus ? say(c, "%lld", (long long)w->gpus) : "some", w->gpu_resource,
			*w->object.ref.namespace ? w->object.ref.namespace : "its namespace");
	else if (label && strcmp(label, p->name) != 0)
		violate(c,
			&(struct breach){
				&w->object, w->spec,
				say(c, "write " CONTRACT_POOL ": %s, or change the pool's selector", p->name) },
			"its label " CONTRACT_POOL " says %s, but WarmPool %s selects its pods", label, p->name);
}

static void rule_pool_label(struct check_run *c, const struct workload *w)
{
	const struct pool_spec *p = pool_of(c->contract, w);

	if (p && !label_of(&w->labels, CONTRACT_POOL))
		violate(c,
			&(struct breach){ &w->object, w->spec,
					  say(c, "add the label " CONTRACT_POOL ": %s to the pod template", p->name) },
			"its pods do not carry the label " CONTRACT_POOL);
}

/* What is claimed has no resource of that name; its number alone is the pool's. */
static const char *size_remedy(struct check_run *c, const struct workload *w)
{
	if (w->claims)
		return say(c, "set workload.gpusPerReplica: %lld in the WarmPool, or change the resource claim",
			   (long long)w->gpus);
	return say(c,
		   "set workload.gpuResource: %s and workload.gpusPerReplica: %lld in the WarmPool, or change the pod",
		   w->gpu_resource, (long long)w->gpus);
}

/* Half a GPU is none that counts: gpu-limits says so. */
static void rule_replica_size(struct check_run *c, const struct workload *w)
{
	const struct pool_spec *p = pool_of(c->contract, w);

	if (!p || (!w->gpus && !w->claims) || (p->class != CLASS_INTERACTIVE && p->class != CLASS_EMBEDDING) ||
	    !is_selected(c->contract, w))
		return;
	const char *counted = c->contract->manifest->pools[w->pool].spec.workload.gpu_resource;
	bool is_other_number = w->gpus != p->gpus_per_replica && (w->gpus || !w->claims);
	if ((strcmp(counted, w->gpu_resource) != 0 && !w->claims) || is_other_number)
		violate(c, &(struct breach){ &w->object, w->spec, size_remedy(c, w) },
			"a pod asks for %lld %s, but WarmPool %s counts %lld %s a replica", (long long)w->gpus,
			w->gpu_resource, p->name, (long long)p->gpus_per_replica, counted);
}

static int64_t needed_mib(const struct workload *w)
{
	const char *text = label_of(&w->annotations, CONTRACT_MEMORY);
	int64_t milli;

	if (!text)
		text = label_of(&w->object.annotations, CONTRACT_MEMORY);
	return text && amount_milli(text, &milli) ? milli / 1000 / (1 << 20) : UNSAID;
}

/* The groups that the pod may go to and whose GPUs have less: "g5 (A10G, 24 GiB)". */
static const char *too_small(struct check_run *c, const struct workload *w, int64_t mib)
{
	const struct group_facts *groups[GROUPS_MOST];
	size_t count = groups_of(c->contract, w, groups, GROUPS_MOST);
	CLEANUP(buf_release) struct buf text = { 0 };

	for (size_t i = 0; i < count; i++)
		if (groups[i]->gpu_memory_mib != UNSAID && groups[i]->gpu_memory_mib < mib &&
		    fit_group(w, groups[i], NULL) != FIT_NO)
			buf_printf(&text, "%s%s (%s, %lld GiB)", text.len ? ", " : "", groups[i]->spec->name,
				   groups[i]->gpu ? groups[i]->gpu : "GPU",
				   (long long)(groups[i]->gpu_memory_mib / 1024));
	return text.len ? say(c, "%s", text.text) : NULL;
}

static void rule_gpu_memory(struct check_run *c, const struct workload *w)
{
	int64_t mib = needed_mib(w);
	const char *groups = mib > 0 ? too_small(c, w, mib) : NULL;
	if (groups)
		violate(c, &(struct breach){ &w->object, w->spec, NULL },
			"needs %lld GiB of each GPU (" CONTRACT_MEMORY "), and may go to node group %s",
			(long long)((mib + 1023) / 1024), groups);
}

static void rule_model_size(struct check_run *c, const struct workload *w)
{
	for (size_t k = 0; w->gpus && needed_mib(w) == UNSAID && k < w->container_count; k++) {
		const struct container *one = &w->containers[k];
		int64_t gib = one->has_gpus ? container_weights_gib(one) : 0;
		const char *groups = gib ? too_small(c, w, gib * 1024 / w->gpus) : NULL;
		if (groups)
			violate(c, &(struct breach){ &w->object, one->args ? one->args : one->at, NULL },
				"the model's name says about %lld GiB of weights, for %lld GPUs of node group "
				"%s",
				(long long)gib, (long long)w->gpus, groups);
	}
}

/* "cost-center": the keys that the workload's pool, or the first, names. */
static void cost_label_keys(const struct contract *c, const struct workload *w, const char *out[COST_LABELS])
{
	const struct cost_labels_text *l = NULL;

	if (c->manifest && c->manifest->fleet.pool_count)
		l = &c->manifest->pools[w->pool < 0 ? 0 : w->pool].spec.cost_labels;
	out[0] = l ? l->cost_center : "cost-center";
	out[1] = l ? l->product : "product";
	out[2] = l ? l->environment : "environment";
	out[3] = l ? l->workload_type : "workload-type";
}

static void rule_cost_labels(struct check_run *c, const struct workload *w)
{
	const char *keys[COST_LABELS];
	CLEANUP(buf_release) struct buf lacking = { 0 };

	cost_label_keys(c->contract, w, keys);
	for (size_t k = 0; k < COST_LABELS; k++)
		if (!label_of(&w->labels, keys[k]) || !*label_of(&w->labels, keys[k]))
			buf_printf(&lacking, "%s%s", lacking.len ? ", " : "", keys[k]);
	if (lacking.len)
		violate(c, &(struct breach){ &w->object, w->spec, NULL }, "its pods lack the labels %s", lacking.text);
}

/* Rules about where pods may run. */

static bool is_blanket(const struct toleration *t)
{
	return !*t->key && !strcmp(t->relation, "Exists");
}

/* Conditions of nodes, which every pod may tolerate for a while. */
static bool is_of_conditions(const struct toleration *t)
{
	return !strncmp(t->key, "node.kubernetes.io/", 19) || !strncmp(t->key, "node.cloudprovider.kubernetes.io/", 33);
}

/* Whether a group of the pod has a taint of this key; true where the taints are not known. */
static bool is_of_use(const struct check_run *c, const struct workload *w, const struct toleration *t)
{
	const struct group_facts *groups[GROUPS_MOST];
	size_t count = groups_of(c->contract, w, groups, GROUPS_MOST);

	for (size_t i = 0; i < count; i++) {
		if (!groups[i]->has_taints)
			return true;
		for (size_t k = 0; k < groups[i]->taint_count; k++)
			if (tolerates(t, &groups[i]->taints[k]))
				return true;
	}
	return !count;
}

static void check_toleration(struct check_run *c, const struct workload *w, const struct toleration *t)
{
	const struct breach b = { &w->object, t->at, NULL };

	/* The API server's plugin ExtendedResourceToleration writes this one into pods. */
	bool is_given = !strcmp(w->object.ref.kind, "Pod") && !strcmp(t->key, w->gpu_resource) && !*t->effect;
	if (is_blanket(t))
		violate(c, &b, "tolerates every taint");
	else if (is_of_conditions(t) || is_given)
		return;
	else if (!*t->effect)
		violate(c, &b, "tolerates %s with every effect", t->key);
	else if (!is_of_use(c, w, t))
		violate(c, &(struct breach){ &w->object, t->at, "delete it, or correct its key, value and effect" },
			"tolerates %s%s%s:%s, which no node of its node groups carries", t->key, *t->value ? "=" : "",
			t->value, t->effect);
}

static void rule_toleration_exact(struct check_run *c, const struct workload *w)
{
	for (size_t k = 0; !w->is_daemon && k < w->toleration_count; k++)
		check_toleration(c, w, &w->tolerations[k]);
}

static const char *taint_text(struct check_run *c, const struct block_taint *t)
{
	return say(c, "%s%s%s:%s", t->key, *t->value ? "=" : "", t->value, t->effect);
}

static const char *toleration_for(struct check_run *c, const struct block_taint *t)
{
	if (!*t->value)
		return say(c, "add the toleration { key: %s, operator: Exists, effect: %s }", t->key, t->effect);
	return say(c, "add the toleration { key: %s, operator: Equal, value: \"%s\", effect: %s }", t->key, t->value,
		   t->effect);
}

static bool tolerates_key(const struct workload *w, bool (*is_key)(const char *))
{
	for (size_t i = 0; i < w->toleration_count; i++)
		if (is_blanket(&w->tolerations[i]) || is_key(w->tolerations[i].key))
			return true;
	return false;
}

/* True: it said something. */
static bool check_group_taints(struct check_run *c, const struct workload *w, const struct group_facts *g)
{
	for (size_t i = 0; i < g->taint_count; i++) {
		const struct block_taint *t = &g->taints[i];
		if (!taint_bars(t) || !strncmp(t->key, "node.kubernetes.io/", 19) ||
		    !strncmp(t->key, "preheat.dev/", 12) || workload_tolerates(w, t))
			continue;
		violate(c, &(struct breach){ &w->object, w->spec, toleration_for(c, t) },
			"does not tolerate %s of node group %s", taint_text(c, t), g->spec->name);
		return true;
	}
	return false;
}

static void rule_toleration_missing(struct check_run *c, const struct workload *w)
{
	const struct group_facts *groups[GROUPS_MOST];
	size_t count = groups_of(c->contract, w, groups, GROUPS_MOST);
	bool is_seen = count > 0, is_said = false;

	if (!pool_of(c->contract, w) && count)
		count = 0, is_seen = false;
	for (size_t g = 0; g < count && !is_said; g++) {
		is_seen = is_seen && groups[g]->has_taints;
		if (fit_group(w, groups[g], NULL) != FIT_NO)
			is_said = check_group_taints(c, w, groups[g]);
	}
	if (!is_said && !is_seen && !tolerates_key(w, taint_is_of_gpus))
		violate(c,
			&(struct breach){ &w->object, w->spec,
					  "add the toleration { key: nvidia.com/gpu, operator: Exists, effect: "
					  "NoSchedule }, or that of your GPU nodes' taint" },
			"asks for GPUs and tolerates no taint of GPU nodes");
}

static const char *requirement_text(struct check_run *c, const struct requirement *r)
{
	if (!r)
		return "its node selector";
	return say(c, "%s %s%s%s", r->key, r->relation, r->count ? " " : "", r->count ? r->values[0] : "");
}

static const char *selector_text(struct check_run *c, const struct workload *w, const struct group_facts *g)
{
	const struct requirement *why = NULL;
	struct workload only_affinity = *w;

	only_affinity.node_selector.count = 0;
	if (fit_group(&only_affinity, g, &why) == FIT_NO)
		return requirement_text(c, why);
	for (size_t i = 0; i < w->node_selector.count; i++) {
		struct workload one = only_affinity;
		one.term_count = 0;
		one.node_selector = (struct schema_labels){ &w->node_selector.items[i], 1 };
		if (fit_group(&one, g, NULL) == FIT_NO)
			return say(c, "%s=%s", w->node_selector.items[i].key, w->node_selector.items[i].value);
	}
	return "its node selector";
}

static void rule_no_node_group(struct check_run *c, const struct workload *w)
{
	const struct group_facts *groups[GROUPS_MOST];
	size_t count = groups_of(c->contract, w, groups, GROUPS_MOST), fitting = 0;
	const char *label = label_of(&w->labels, CONTRACT_POOL);
	for (size_t g = 0; g < count; g++)
		fitting += fit_group(w, groups[g], NULL) != FIT_NO;
	if (!count || fitting || (label && !strcmp(label, "none")))
		return;
	const struct pool_spec *p = pool_of(c->contract, w);
	violate(c, &(struct breach){ &w->object, w->selector_at ? w->selector_at : w->spec, NULL },
		"%s fits none of the %zu node groups%s%s; the nearest is %s", selector_text(c, w, groups[0]), count,
		p ? " of WarmPool " : "", p ? p->name : "", groups[0]->spec->name);
}

static bool is_system(const struct workload *w)
{
	return !strncmp(w->priority_class, "system-", 7);
}

static bool names_gpus(const char *key)
{
	return !strncmp(key, "nvidia.com/", 11) || !strncmp(key, "feature.node.kubernetes.io/pci-10de", 35) ||
	       !strncmp(key, "amd.com/", 8) || strstr(key, "gpu") || strstr(key, "accelerator");
}

/* Chooses GPU machines by a label, so it is there on purpose: a device plugin, an exporter. */
static bool chooses_gpus(const struct workload *w)
{
	for (size_t i = 0; i < w->node_selector.count; i++)
		if (names_gpus(w->node_selector.items[i].key))
			return true;
	for (size_t t = 0; t < w->term_count; t++)
		for (size_t r = 0; r < w->terms[t].count; r++)
			if (names_gpus(w->terms[t].items[r].key))
				return true;
	return false;
}

/* The toleration that opens GPU nodes to it; NULL: none does. */
static const struct toleration *opening(const struct check_run *c, const struct workload *w)
{
	for (size_t i = 0; i < w->toleration_count; i++) {
		const struct toleration *t = &w->tolerations[i];
		if (is_blanket(t) || tolerates(t, &usual_taint) || taint_is_of_gpus(t->key))
			return t;
		for (size_t g = 0; c->contract->manifest && g < c->contract->manifest->fleet.group_count; g++)
			for (size_t k = 0; k < c->contract->groups[g].taint_count; k++)
				if (!is_of_conditions(t) && taint_bars(&c->contract->groups[g].taints[k]) &&
				    tolerates(t, &c->contract->groups[g].taints[k]))
					return t;
	}
	return NULL;
}

static bool is_on_gpus(const struct check_run *c, const struct workload *w)
{
	for (size_t i = 0; *w->node && i < c->contract->machine_count; i++) {
		const struct machine *m = &c->contract->machines[i];
		if (!m->is_template && m->gpus > 0 && !strcmp(m->object.ref.name, w->node))
			return true;
	}
	return false;
}

static void rule_general_pods(struct check_run *c, const struct workload *w)
{
	bool is_placeholder = label_of(&w->labels, "preheat.dev/placeholder") != NULL;
	/* What is claimed may be a GPU, whatever its class is called. */
	if (w->gpu_resource || w->claims || w->is_daemon || is_system(w) || is_placeholder)
		return;
	const struct toleration *t = opening(c, w);
	if (is_on_gpus(c, w))
		violate(c, &(struct breach){ &w->object, yaml_child(w->spec, "nodeName"), NULL },
			"asks for no GPU and runs on a GPU node");
	else if (t && !w->is_owned)
		violate(c, &(struct breach){ &w->object, t->at, NULL },
			"asks for no GPU and tolerates %s%s, so it may take a GPU node",
			is_blanket(t) ? "every taint" : "the taint of GPU nodes ", t->key);
}

static void rule_foreign_agent(struct check_run *c, const struct workload *w)
{
	if (w->gpu_resource || w->claims || !w->is_daemon || w->is_owned || is_system(w) || chooses_gpus(w))
		return;
	const struct toleration *t = opening(c, w);
	if (t)
		violate(c, &(struct breach){ &w->object, t->at, NULL },
			"runs on every GPU node, since it tolerates %s%s",
			is_blanket(t) ? "every taint" : "the taint of GPU nodes ", t->key);
}

/* A label that says which machines: model, memory, type or node group. */
static bool tells_machine(const char *key)
{
	size_t count;
	const struct known_label *known = known_labels(&count);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(known[i].key, key))
			return !strcmp(known[i].theme, "accelerator") || !strcmp(known[i].theme, "memory") ||
			       !strcmp(known[i].theme, "MIG profile") || !strcmp(known[i].theme, "machine");
	return !strstr(key, "kubernetes.io/");
}

static bool chooses_machine(const struct workload *w)
{
	for (size_t i = 0; i < w->node_selector.count; i++)
		if (tells_machine(w->node_selector.items[i].key))
			return true;
	for (size_t t = 0; t < w->term_count; t++)
		for (size_t r = 0; r < w->terms[t].count; r++)
			if (tells_machine(w->terms[t].items[r].key))
				return true;
	return strncmp(w->gpu_resource, "nvidia.com/mig-", 15) == 0 || *w->node || w->claims;
}

static void rule_accelerator_label(struct check_run *c, const struct workload *w)
{
	if (!w->is_daemon && !chooses_machine(w))
		violate(c, &(struct breach){ &w->object, w->spec, NULL },
			"asks for %s of any model: no node selector or required node affinity says which",
			w->gpu_resource);
}

static void check_key(struct check_run *c, const struct workload *w, const char *key, const struct yaml_node *at)
{
	size_t count;
	const struct known_label *known = known_labels(&count);
	const char *names[64];

	for (size_t i = 0; i < count; i++) {
		names[i] = known[i].key;
		if (strcmp(known[i].key, key) != 0)
			continue;
		if (known[i].instead)
			violate(c, &(struct breach){ &w->object, at, say(c, "use %s", known[i].instead) },
				"selects nodes by %s, which is out of use", key);
		return;
	}
	const char *near = strchr(key, '/') && strlen(key) > 12 ? nearest_name(key, names, count) : NULL;
	if (near && strlen(near) + 2 >= strlen(key) && strlen(near) <= strlen(key) + 2)
		violate(c, &(struct breach){ &w->object, at, say(c, "write %s, if that is meant", near) },
			"selects nodes by %s, which looks like %s", key, near);
}

static void rule_known_label(struct check_run *c, const struct workload *w)
{
	for (const struct yaml_node *n = w->selector_at ? w->selector_at->first : NULL; n; n = n->next)
		check_key(c, w, n->key ? n->key : "", n);
	for (size_t t = 0; t < w->term_count; t++)
		for (size_t r = 0; r < w->terms[t].count; r++)
			check_key(c, w, w->terms[t].items[r].key, w->terms[t].items[r].at);
}

/* Rules about CPU and memory beside the GPUs of a machine. */

/* Daemons have a pod on each machine, whatever its size. */
static bool holds_gpus(const struct contract *c, const struct workload *w)
{
	return asks_for_gpus(c, w) && !w->is_daemon;
}

static void rule_requests_set(struct check_run *c, const struct workload *w)
{
	for (size_t k = 0; k < w->container_count; k++) {
		const struct container *one = &w->containers[k];
		bool lacks_cpu = one->cpu_milli == UNSAID, lacks_memory = one->memory_milli == UNSAID;
		if (!one->has_gpus || (!lacks_cpu && !lacks_memory))
			continue;
		violate(c, &(struct breach){ &w->object, one->resources ? one->resources : one->at, NULL },
			"container %s requests no %s", one->name,
			!lacks_memory ? "CPU"
			: !lacks_cpu  ? "memory"
				      : "CPU and no memory");
	}
}

static long long tenths_of_gib(int64_t memory_milli)
{
	return (long long)(memory_milli / 1000 / ((INT64_C(1) << 30) / 10));
}

/* "node group g5 (g5.xlarge) has 3.9 CPUs and 14.5 GiB for pods" */
static const char *room_text(struct check_run *c, const struct group_facts *g)
{
	long long gib = tenths_of_gib(g->memory_milli);

	return say(c, "node group %s (%s) has %s%lld.%02lld CPUs and %lld.%lld GiB for pods", g->spec->name, g->source,
		   g->has_all_labels ? "" : "about ", (long long)(g->cpu_milli / 1000),
		   (long long)(g->cpu_milli % 1000 / 10), gib / 10, gib % 10);
}

static bool is_measured(const struct group_facts *g)
{
	return g->source && g->cpu_milli != UNSAID && g->memory_milli != UNSAID;
}

static int64_t times(int64_t value, int64_t n)
{
	return value > INT64_MAX / (n ? n : 1) ? INT64_MAX : value * n;
}

/* How many such pods the machine holds by CPU and memory, at most `most`. */
static int64_t held(const struct workload *w, const struct group_facts *g, int64_t most)
{
	while (most > 0 && (times(w->cpu_milli, most) > g->cpu_milli || times(w->memory_milli, most) > g->memory_milli))
		most--;
	return most;
}

static void each_group(struct check_run *c, const struct workload *w,
		       void (*check)(struct check_run *, const struct workload *, const struct group_facts *))
{
	const struct group_facts *groups[GROUPS_MOST];
	size_t count = pool_of(c->contract, w) ? groups_of(c->contract, w, groups, GROUPS_MOST) : 0;

	for (size_t g = 0; g < count; g++)
		if (fit_group(w, groups[g], NULL) != FIT_NO)
			check(c, w, groups[g]);
}

static const char *ask_text(struct check_run *c, const struct workload *w)
{
	long long gib = tenths_of_gib(w->memory_milli);

	return say(c, "%lld.%02lld CPUs and %lld.%lld GiB", (long long)(w->cpu_milli / 1000),
		   (long long)(w->cpu_milli % 1000 / 10), gib / 10, gib % 10);
}

static void check_fit(struct check_run *c, const struct workload *w, const struct group_facts *g)
{
	if (w->gpus > g->spec->gpus_per_node)
		violate(c, &(struct breach){ &w->object, w->spec, "ask for fewer, or give the pool larger machines" },
			"a pod asks for %lld GPUs, and a machine of node group %s has %lld", (long long)w->gpus,
			g->spec->name, (long long)g->spec->gpus_per_node);
	else if (is_measured(g) && !held(w, g, 1))
		violate(c, &(struct breach){ &w->object, w->spec, NULL }, "a pod asks for %s, but %s", ask_text(c, w),
			room_text(c, g));
}

static void check_stranded(struct check_run *c, const struct workload *w, const struct group_facts *g)
{
	int64_t by_gpu = w->gpus > 0 ? g->spec->gpus_per_node / w->gpus : 0;
	int64_t fitting = is_measured(g) ? held(w, g, by_gpu) : by_gpu;

	if (fitting < by_gpu && fitting > 0)
		violate(c,
			&(struct breach){
				&w->object, w->spec,
				say(c, "ask for at most 1/%lld of the machine's CPU and memory", (long long)by_gpu) },
			"its GPUs would hold %lld pods, its CPU and memory hold %lld of %s: %s", (long long)by_gpu,
			(long long)fitting, ask_text(c, w), room_text(c, g));
}

static void rule_fits_instance(struct check_run *c, const struct workload *w)
{
	each_group(c, w, check_fit);
}

static void rule_strands_gpus(struct check_run *c, const struct workload *w)
{
	each_group(c, w, check_stranded);
}

static bool has_container(const struct workload *w)
{
	for (size_t i = 0; i < w->container_count; i++)
		if (!w->containers[i].is_init)
			return true;
	return false;
}

static void rule_object_shape(struct check_run *c)
{
	for (size_t i = 0; i < c->contract->shapeless_count; i++) {
		const struct shapeless *s = &c->contract->shapeless[i];
		violate(c, &(struct breach){ &s->object, s->at, NULL }, "%s: found %s; allowed: %s", s->path,
			shown_value(c, s->at), s->allowed);
	}
	for (size_t i = 0; i < c->contract->workload_count; i++) {
		const struct workload *w = &c->contract->workloads[i];
		if (!has_container(w) && !w->is_owned)
			violate(c, &(struct breach){ &w->object, w->spec, NULL },
				"a pod's containers: found none; allowed: a list of one or more");
	}
}

/* clang-format off */
static const struct contract_rule rules[] = {
	{ "object-shape", CONTRACT_ERROR, PODS ", ResourceClaim, ResourceClaimTemplate",
	  "A workload has a pod template with containers, and a claim has requests",
	  "The API server refuses it; and no other rule can judge it, so that nothing wrong is found.",
	  "correct it as its kind allows", false, NULL, NULL, rule_object_shape },
	{ "gpu-limits", CONTRACT_ERROR, PODS,
	  "GPU requests are equal to limits",
	  "GPUs are not shared by over-commitment: the API server refuses a request without a limit, or with another one. "
	  "A limit alone is enough, the request follows from it.",
	  "write the same number under requests and under limits, or the limit alone", true, NULL, rule_gpu_limits, NULL },
	{ "gpu-needs-pool", CONTRACT_ERROR, PODS,
	  "A GPU request belongs to a WarmPool",
	  "Pods that no pool selects take GPUs that Preheat counts as warm, and no machines are bought for them.",
	  "give the pods labels that a WarmPool's workload.selector matches, or the label preheat.dev/pool: none to stay "
	  "outside on purpose", true, asks_for_gpus, rule_gpu_needs_pool, NULL },
	{ "pool-label", CONTRACT_NOTE, PODS,
	  "Pods of a pool name it in the label preheat.dev/pool",
	  "The admission policy cannot read selectors of WarmPools; it asks for this label.",
	  "add the label preheat.dev/pool with the pool's name to the pod template", false, asks_for_gpus, rule_pool_label, NULL },
	{ "replica-size", CONTRACT_ERROR, SERVE,
	  "A replica asks for as many GPUs as its pool counts",
	  "Preheat buys machines for gpusPerReplica of gpuResource; another number buys too few or too many.",
	  "make workload.gpuResource and workload.gpusPerReplica of the WarmPool equal to the pod's", false,
	  asks_for_gpus, rule_replica_size, NULL },
	{ "gpu-memory", CONTRACT_ERROR, PODS,
	  "The GPUs of every node group have the memory that the pod needs",
	  "A model that does not fit fails after the machine was bought, the image pulled and the weights read; and again.",
	  "leave that node group out of the pool, select machines by nvidia.com/gpu.memory, or spread the model over more "
	  "GPUs", false, asks_for_gpus, rule_gpu_memory, NULL },
	{ "model-size", CONTRACT_WARNING, PODS,
	  "The weights that the model's name implies fit the GPUs",
	  "Two bytes a parameter, one or a half where the words say fp8, int8, awq, gptq or 4bit; the KV cache comes on top.",
	  "choose larger GPUs or more of them, or say what is needed: annotation preheat.dev/gpu-memory: 20Gi", false,
	  asks_for_gpus, rule_model_size, NULL },
	{ "cost-labels", CONTRACT_ERROR, PODS,
	  "Pods with GPUs carry the cost labels",
	  "preheat cost divides the bill by them; without them the dollars end up under (unlabelled).",
	  "add them to the pod template; costLabels of the WarmPool says which keys are meant", true, asks_for_gpus, rule_cost_labels, NULL },
	{ "toleration-exact", CONTRACT_ERROR, PODS,
	  "Tolerations name key and effect of a taint that the node groups carry",
	  "A blanket toleration also opens nodes that are being drained, are not ready, or belong to others.",
	  "name key and effect: { key: nvidia.com/gpu, operator: Exists, effect: NoSchedule }", true,
	  asks_for_gpus, rule_toleration_exact, NULL },
	{ "toleration-missing", CONTRACT_ERROR, PODS,
	  "Pods tolerate the taints of every node group that they may go to",
	  "A machine that is bought for a pod which it repels stands idle, and the pod waits.",
	  "add a toleration for the taint", false, asks_for_gpus, rule_toleration_missing, NULL },
	{ "no-node-group", CONTRACT_ERROR, PODS,
	  "The node selector and affinity match a node group",
	  "Pods that fit no node group wait for ever; no autoscaler can help them.",
	  "correct the selector, or add a node group with these labels to the WarmPool", false, asks_for_gpus, rule_no_node_group, NULL },
	{ "general-pods", CONTRACT_ERROR, PODS,
	  "Pods without GPUs stay off GPU nodes",
	  "They fill CPU and memory beside GPUs that then stay idle, and delay drains of the most expensive machines.",
	  "taint the node group and let only GPU pods tolerate it; delete the toleration here", true, NULL, rule_general_pods, NULL },
	{ "foreign-agent", CONTRACT_WARNING, "DaemonSet",
	  "Agents run on GPU nodes on purpose only",
	  "Every DaemonSet on a GPU node takes from what replicas may ask for, and lengthens the start of each machine.",
	  "narrow the tolerations; where it is meant for GPU nodes select them by a label, or set the annotation "
	  "preheat.dev/ignore: foreign-agent", false, NULL, rule_foreign_agent, NULL },
	{ "accelerator-label", CONTRACT_WARNING, PODS,
	  "Pods with GPUs say which GPU they mean",
	  "With a second GPU type in the cluster such a pod may land on one that is too small, or too dear.",
	  "select by nvidia.com/gpu.product, by node group, by instance type, or ask for a MIG profile", false,
	  asks_for_gpus, rule_accelerator_label, NULL },
	{ "known-label", CONTRACT_WARNING, PODS,
	  "Selectors use labels that nodes carry today",
	  "A label that is misspelt or out of use matches nothing on new machines.",
	  "use the labels that docs/contract.md lists", false, asks_for_gpus, rule_known_label, NULL },
	{ "requests-set", CONTRACT_WARNING, PODS,
	  "Containers with GPUs request CPU and memory",
	  "Without requests nothing keeps others from the CPU that feeds the GPU, and what fits a machine is unknown.",
	  "write requests for cpu and memory", false, holds_gpus, rule_requests_set, NULL },
	{ "fits-instance", CONTRACT_ERROR, PODS,
	  "A pod fits every machine of its node groups",
	  "What does not fit beside the GPUs never starts, however many machines are bought.",
	  "lower the requests, or leave the node group out of the pool", false, holds_gpus, rule_fits_instance, NULL },
	{ "strands-gpus", CONTRACT_WARNING, PODS,
	  "CPU and memory leave no GPU of a machine unused",
	  "GPUs that remain when CPU or memory is used up are paid for and idle.",
	  "lower the requests to the GPU's share of the machine", false, holds_gpus, rule_strands_gpus, NULL },
};
/* clang-format on */

const struct rule_list rules_of_pods = { rules, sizeof rules / sizeof *rules };
