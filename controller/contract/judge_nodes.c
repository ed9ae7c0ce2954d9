/* Rules about nodes and what makes them, and about the annotation that ignores rules. */
#include "base/text.h"
#include "controller/contract/parts.h"

#include <string.h>

static const struct machine *gpu_machine(const struct court *c, size_t i)
{
	const struct machine *m = &c->contract->machines[i];
	bool is_named =
		label_of(&m->labels, "nvidia.com/gpu.product") || label_of(&m->labels, "nvidia.com/gpu.present");
	const struct contract *all = c->contract;

	if (m->gpus > 0 || (m->gpus == UNSAID && is_named))
		return m;
	for (size_t g = 0; m->is_template && all->manifest && g < all->manifest->fleet.group_count; g++) {
		struct schema_label mark = manifest_group_label(all->manifest, g);
		if (!strcmp(mark.key, "karpenter.sh/nodepool") && !strcmp(mark.value, m->object.ref.name))
			return m;
	}
	return NULL;
}

void judge_node_taint(struct court *c)
{
	for (size_t i = 0; i < c->contract->machine_count; i++) {
		const struct machine *m = gpu_machine(c, i);
		bool is_barred = !m;
		for (size_t t = 0; m && t < m->taint_count; t++)
			is_barred = is_barred || (taint_bars(&m->taints[t]) &&
						  strncmp(m->taints[t].key, "node.kubernetes.io/", 19) != 0 &&
						  strncmp(m->taints[t].key, "preheat.dev/", 12) != 0);
		if (!is_barred)
			violate(c, &(struct breach){ &m->object, m->taints_at, NULL },
				"has GPUs and no taint that keeps other pods away");
	}
}

static bool has_theme(const struct machine *m, const char *theme)
{
	size_t count;
	const struct known_label *known = known_labels(&count);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(known[i].theme, theme) && !known[i].instead && label_of(&m->labels, known[i].key))
			return true;
	return false;
}

void judge_node_labels(struct court *c)
{
	static const char *const themes[] = { "accelerator", "memory", "zone", "lifecycle" };

	for (size_t i = 0; i < c->contract->machine_count; i++) {
		const struct machine *m = gpu_machine(c, i);
		CLEANUP(buf_release) struct buf lacking = { 0 };
		for (size_t t = 0; m && !m->is_template && t < sizeof themes / sizeof *themes; t++)
			if (!has_theme(m, themes[t]) && !(!strcmp(themes[t], "lifecycle") &&
							  label_of(&m->labels, "kubernetes.azure.com/agentpool")))
				buf_printf(&lacking, "%s%s", lacking.len ? ", " : "", themes[t]);
		if (lacking.len)
			violate(c, &(struct breach){ &m->object, NULL, NULL }, "has GPUs and no label of its %s",
				lacking.text);
	}
}

static bool is_rule(const char *id, size_t len)
{
	size_t count;
	const struct contract_rule *rules = contract_rules(&count);

	for (size_t i = 0; i < count; i++)
		if (strlen(rules[i].id) == len && !strncmp(rules[i].id, id, len))
			return true;
	return false;
}

static const char *nearest_rule(struct court *c, const char *word)
{
	const char *ids[64];
	size_t count;
	const struct contract_rule *rules = contract_rules(&count);

	for (size_t i = 0; i < count && i < 64; i++)
		ids[i] = rules[i].id;
	const char *near = nearest_name(word, ids, count);
	return near ? say(c, "write %s, if that is meant", near) : NULL;
}

static void judge_list(struct court *c, const struct object *o, const char *list)
{
	while (list && *list) {
		list += strspn(list, ", ");
		size_t len = strcspn(list, ", ");
		if (len && !is_rule(list, len)) {
			const char *word = say(c, "%.*s", (int)(len < 60 ? len : 60), list);
			violate(c, &(struct breach){ o, tree_at(o->ref.at, "metadata"), nearest_rule(c, word) },
				"its annotation " CONTRACT_IGNORE " names '%s', which is no rule", word);
		}
		list += len;
	}
}

void judge_unknown_ignore(struct court *c)
{
	const struct contract *all = c->contract;
	const struct yaml_node *last = NULL;

	for (size_t i = 0; i < all->workload_count; i++) {
		const struct workload *w = &all->workloads[i];
		if (w->is_owned)
			continue;
		if (w->object.ref.at != last)
			judge_list(c, &w->object, label_of(&w->object.annotations, CONTRACT_IGNORE));
		if (w->spec->parent != w->object.ref.at)
			judge_list(c, &w->object, label_of(&w->annotations, CONTRACT_IGNORE));
		last = w->object.ref.at;
	}
	for (size_t i = 0; all->manifest && i < all->manifest->fleet.pool_count; i++)
		judge_list(c, &all->pools[i], label_of(&all->pools[i].annotations, CONTRACT_IGNORE));
	for (size_t i = 0; i < all->budget_count; i++)
		judge_list(c, &all->budgets[i].object, label_of(&all->budgets[i].object.annotations, CONTRACT_IGNORE));
	for (size_t i = 0; i < all->scaler_count; i++)
		judge_list(c, &all->scalers[i].object, label_of(&all->scalers[i].object.annotations, CONTRACT_IGNORE));
}
