/* The pools and groups that everything is sorted into. */
#include "controller/cluster/model_inside.h"

#include <string.h>

static const char *copy(struct arena *a, const char *text)
{
	return text == NULL ? NULL : arena_strdup(a, text, strlen(text));
}

static const char *copy_or_none(struct arena *a, const char *text)
{
	return text == NULL || text[0] == '\0' ? NULL : copy(a, text);
}

static struct pool_known copy_pool(struct arena *a, const struct cluster_pool *p)
{
	struct pool_known known = {
		.name = copy(a, p->name),
		.name_space = copy(a, p->namespace),
		.selector = arena_array(a, struct cluster_label, p->selector_count),
		.selector_count = p->selector_count,
		.gpus_per_replica = p->gpus_per_replica,
		.gpu_resource = copy_or_none(a, p->gpu_resource),
		.groups = arena_array(a, int, p->group_count),
		.group_count = p->group_count,
	};
	for (size_t i = 0; i < p->selector_count; i++)
		known.selector[i] =
			(struct cluster_label){ copy(a, p->selector[i].key), copy(a, p->selector[i].value) };
	for (size_t i = 0; i < p->group_count; i++)
		known.groups[i] = p->groups[i];
	return known;
}

static const char *resource_of(const struct cluster_group *g)
{
	return g->gpu_resource == NULL || g->gpu_resource[0] == '\0' ? "nvidia.com/gpu" : g->gpu_resource;
}

/* As far as it is told: the label that marks the nodes, what else is known of them, and their GPUs. */
static struct template told_template(struct cluster *c, const struct cluster_group *g)
{
	struct decoded_pair *pairs = arena_array(&c->scratch, struct decoded_pair, g->label_count + 1);
	struct decoded_map labels = { pairs, g->label_count };
	bool is_told = false;
	for (size_t i = 0; i < g->label_count; i++) {
		pairs[i] = (struct decoded_pair){ g->labels[i].key, g->labels[i].value };
		is_told = is_told || strcmp(g->labels[i].key, g->label.key) == 0;
	}
	if (!is_told)
		pairs[labels.count++] = (struct decoded_pair){ g->label.key, g->label.value };
	struct taint_record *rows = arena_array(&c->scratch, struct taint_record, g->taint_count);
	for (size_t i = 0; i < g->taint_count; i++)
		rows[i] = (struct taint_record){ g->taints[i].key, g->taints[i].value, g->taints[i].effect };
	struct decoded_list taints = { rows, g->taint_count };
	struct resource gpus = { resource_of(g), g->gpus_per_node * 1000 };
	return (struct template){ model_labels(c, &labels), model_taints(c, &taints), model_resources(c, &gpus, 1),
				  false };
}

static struct template template_of(struct cluster *c, const struct cluster_group *g)
{
	for (size_t i = 0; i < c->group_count; i++) {
		struct group_known *old = &c->groups[i];
		if (!old->template.is_learned || strcmp(old->name, g->name) != 0 ||
		    strcmp(old->provider, g->provider) != 0)
			continue;
		intern_hold(old->template.labels);
		intern_hold(old->template.taints);
		intern_hold(old->template.allocatable);
		return old->template;
	}
	return told_template(c, g);
}

static struct group_known copy_group(struct cluster *c, struct arena *a, const struct cluster_group *g)
{
	return (struct group_known){
		.name = copy(a, g->name),
		.provider = copy(a, g->provider),
		.label = { copy(a, g->label.key), copy(a, g->label.value) },
		.provider_id_prefix = copy_or_none(a, g->provider_id_prefix),
		.gpus_per_node = g->gpus_per_node,
		.max = g->max,
		.is_of_karpenter = g->is_of_karpenter,
		.gpu_resource = copy(a, resource_of(g)),
		.template = template_of(c, g),
	};
}

static void drop_templates(struct cluster *c)
{
	for (size_t i = 0; i < c->group_count; i++) {
		intern_drop(&c->intern, c->groups[i].template.labels);
		intern_drop(&c->intern, c->groups[i].template.taints);
		intern_drop(&c->intern, c->groups[i].template.allocatable);
	}
}

void cluster_set_fleet(struct cluster *c, const struct cluster_pool *pools, size_t pool_count,
		       const struct cluster_group *groups, size_t group_count)
{
	struct arena fleet = { 0 };
	struct pool_known *known_pools = arena_array(&fleet, struct pool_known, pool_count);
	struct group_known *known_groups = arena_array(&fleet, struct group_known, group_count);
	for (size_t i = 0; i < pool_count; i++)
		known_pools[i] = copy_pool(&fleet, &pools[i]);
	for (size_t i = 0; i < group_count; i++)
		known_groups[i] = copy_group(c, &fleet, &groups[i]);
	struct pod *p = NULL;
	for (size_t i = 0; (p = store_next(&c->pods, &i)) != NULL;)
		pod_leave_pool(p);
	drop_templates(c);
	arena_release(&c->fleet);
	c->fleet = fleet;
	c->pools = known_pools;
	c->pool_count = pool_count;
	c->groups = known_groups;
	c->group_count = group_count;
	struct node *n = NULL;
	for (size_t i = 0; (n = store_next(&c->nodes, &i)) != NULL;)
		node_place(c, n);
	for (size_t i = 0; (p = store_next(&c->pods, &i)) != NULL;)
		pod_place(c, p);
	arena_clear(&c->scratch);
}
