/* Rules about where pods may run. */
#include "base/text.h"
#include "controller/contract/parts.h"

#include <string.h>

static const struct workload *gpu_workload(const struct court *c, size_t i)
{
	const struct workload *w = &c->contract->workloads[i];

	return w->gpu_resource && !w->is_owned ? w : NULL;
}

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
static bool is_of_use(const struct court *c, const struct workload *w, const struct toleration *t)
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

static void judge_one_toleration(struct court *c, const struct workload *w, const struct toleration *t)
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

void judge_toleration_exact(struct court *c)
{
	for (size_t i = 0; i < c->contract->workload_count; i++) {
		const struct workload *w = gpu_workload(c, i);
		for (size_t k = 0; w && !w->is_daemon && k < w->toleration_count; k++)
			judge_one_toleration(c, w, &w->tolerations[k]);
	}
}

static const char *taint_text(struct court *c, const struct taint *t)
{
	return say(c, "%s%s%s:%s", t->key, *t->value ? "=" : "", t->value, t->effect);
}

static const char *toleration_for(struct court *c, const struct taint *t)
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
static bool judge_group_taints(struct court *c, const struct workload *w, const struct group_facts *g)
{
	for (size_t i = 0; i < g->taint_count; i++) {
		const struct taint *t = &g->taints[i];
		if (!taint_bars(t) || !strncmp(t->key, "node.kubernetes.io/", 19) ||
		    !strncmp(t->key, "preheat.dev/", 12) || workload_tolerates(w, t))
			continue;
		violate(c, &(struct breach){ &w->object, w->spec, toleration_for(c, t) },
			"does not tolerate %s of node group %s", taint_text(c, t), g->spec->name);
		return true;
	}
	return false;
}

void judge_toleration_missing(struct court *c)
{
	for (size_t i = 0; i < c->contract->workload_count; i++) {
		const struct workload *w = gpu_workload(c, i);
		const struct group_facts *groups[GROUPS_MOST];
		size_t count = w ? groups_of(c->contract, w, groups, GROUPS_MOST) : 0;
		bool is_seen = count > 0, is_said = false;
		if (!w || (!pool_of(c->contract, w) && count))
			count = 0, is_seen = false;
		for (size_t g = 0; g < count && !is_said; g++) {
			is_seen = is_seen && groups[g]->has_taints;
			if (fit_group(w, groups[g], NULL) != FIT_NO)
				is_said = judge_group_taints(c, w, groups[g]);
		}
		if (w && !is_said && !is_seen && !tolerates_key(w, taint_is_of_gpus))
			violate(c,
				&(struct breach){ &w->object, w->spec,
						  "add the toleration { key: nvidia.com/gpu, operator: Exists, effect: "
						  "NoSchedule }, or that of your GPU nodes' taint" },
				"asks for GPUs and tolerates no taint of GPU nodes");
	}
}

static const char *requirement_text(struct court *c, const struct requirement *r)
{
	if (!r)
		return "its node selector";
	return say(c, "%s %s%s%s", r->key, r->relation, r->count ? " " : "", r->count ? r->values[0] : "");
}

static const char *selector_text(struct court *c, const struct workload *w, const struct group_facts *g)
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

void judge_no_node_group(struct court *c)
{
	for (size_t i = 0; i < c->contract->workload_count; i++) {
		const struct workload *w = gpu_workload(c, i);
		const struct group_facts *groups[GROUPS_MOST];
		size_t count = w ? groups_of(c->contract, w, groups, GROUPS_MOST) : 0, fitting = 0;
		const char *label = w ? label_of(&w->labels, CONTRACT_POOL) : NULL;
		for (size_t g = 0; g < count; g++)
			fitting += fit_group(w, groups[g], NULL) != FIT_NO;
		if (!count || fitting || (label && !strcmp(label, "none")))
			continue;
		const struct pool_spec *p = pool_of(c->contract, w);
		violate(c, &(struct breach){ &w->object, w->selector_at ? w->selector_at : w->spec, NULL },
			"%s fits none of the %zu node groups%s%s; the nearest is %s", selector_text(c, w, groups[0]),
			count, p ? " of WarmPool " : "", p ? p->name : "", groups[0]->spec->name);
	}
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
static const struct toleration *opening(const struct court *c, const struct workload *w)
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

/* The GPU node that a pod stands on; NULL when it is none. */
static const struct machine *gpu_node_of(const struct court *c, const struct workload *w)
{
	for (size_t i = 0; *w->node && i < c->contract->machine_count; i++) {
		const struct machine *m = &c->contract->machines[i];
		if (!m->is_template && m->gpus > 0 && !strcmp(m->object.ref.name, w->node))
			return m;
	}
	return NULL;
}

void judge_general_pods(struct court *c)
{
	for (size_t i = 0; i < c->contract->workload_count; i++) {
		const struct workload *w = &c->contract->workloads[i];
		bool is_placeholder = label_of(&w->labels, "preheat.dev/placeholder") != NULL;
		if (w->gpu_resource || w->is_daemon || is_system(w) || is_placeholder)
			continue;
		const struct machine *node = gpu_node_of(c, w);
		const struct toleration *t = opening(c, w);
		if (node)
			violate(c, &(struct breach){ &w->object, w->spec, NULL },
				"asks for no GPU and runs on GPU node %s", node->object.ref.name);
		else if (t && !w->is_owned)
			violate(c, &(struct breach){ &w->object, t->at, NULL },
				"asks for no GPU and tolerates %s%s, so it may take a GPU node",
				is_blanket(t) ? "every taint" : "the taint of GPU nodes ", t->key);
	}
}

void judge_foreign_agent(struct court *c)
{
	for (size_t i = 0; i < c->contract->workload_count; i++) {
		const struct workload *w = &c->contract->workloads[i];
		if (w->gpu_resource || !w->is_daemon || w->is_owned || is_system(w) || chooses_gpus(w))
			continue;
		const struct toleration *t = opening(c, w);
		if (t)
			violate(c, &(struct breach){ &w->object, t->at, NULL },
				"runs on every GPU node, since it tolerates %s%s",
				is_blanket(t) ? "every taint" : "the taint of GPU nodes ", t->key);
	}
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
	return strncmp(w->gpu_resource, "nvidia.com/mig-", 15) == 0 || *w->node;
}

void judge_accelerator_label(struct court *c)
{
	for (size_t i = 0; i < c->contract->workload_count; i++) {
		const struct workload *w = gpu_workload(c, i);
		if (w && !w->is_daemon && !chooses_machine(w))
			violate(c, &(struct breach){ &w->object, w->spec, NULL },
				"asks for %s of any model: no node selector or required node affinity says which",
				w->gpu_resource);
	}
}

static void judge_key(struct court *c, const struct workload *w, const char *key, const struct yaml_node *at)
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

void judge_known_label(struct court *c)
{
	for (size_t i = 0; i < c->contract->workload_count; i++) {
		const struct workload *w = gpu_workload(c, i);
		for (const struct yaml_node *n = w && w->selector_at ? w->selector_at->first : NULL; n; n = n->next)
			judge_key(c, w, n->key ? n->key : "", n);
		for (size_t t = 0; w && t < w->term_count; t++)
			for (size_t r = 0; r < w->terms[t].count; r++)
				judge_key(c, w, w->terms[t].items[r].key, w->terms[t].items[r].at);
	}
}
