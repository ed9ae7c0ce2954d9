#include "controller/manifest/group_nodes.h"

#include <string.h>

/* Of a type that some cloud sells, whoever resizes the group; NULL: not known. */
static const char *arch_of(const char *instance_type)
{
	for (enum provider_choice p = 0; p < PROVIDER_COUNT; p++) {
		const struct provider_block *b = provider_block(p);
		for (size_t i = 0; i < b->instance_count; i++)
			if (!strcmp(b->instances[i].name, instance_type))
				return b->arm_family && !strncmp(instance_type, b->arm_family, strlen(b->arm_family))
					       ? "arm64"
					       : "amd64";
	}
	return NULL;
}

struct schema_labels group_implied_labels(const struct group_text *g, struct arena *a)
{
	const struct provider_block *b = provider_block((enum provider_choice)g->provider);
	const bool has_block = g->blocks[g->provider].node || b->is_trial;
	const struct schema_label mark =
		has_block ? provider_node_label((enum provider_choice)g->provider, &g->blocks[g->provider], g->name)
			  : (struct schema_label){ 0 };
	const char *zone = b->sets_zone ? g->zone : NULL;
	/* On-demand may just not have been written otherwise. */
	const bool is_certain =
		g->capacity_type == CAPACITY_SPOT || (g->capacity_type == CAPACITY_RESERVED && !b->reserves_on_demand);
	const struct schema_label rows[] = {
		mark,
		{ b->old_label, mark.value },
		{ "node.kubernetes.io/instance-type", g->instance_type },
		{ "beta.kubernetes.io/instance-type", g->instance_type },
		{ "topology.kubernetes.io/zone", zone },
		{ "failure-domain.beta.kubernetes.io/zone", zone },
		{ b->capacity_label, is_certain ? b->capacity_words[g->capacity_type] : NULL },
		{ "kubernetes.io/arch", arch_of(g->instance_type) },
	};
	struct schema_label *items = arena_array(a, struct schema_label, sizeof rows / sizeof *rows);
	size_t count = 0;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].key && *rows[i].key && rows[i].value && *rows[i].value)
			items[count++] = rows[i];
	return (struct schema_labels){ items, count };
}

static bool is_written(const struct schema_labels *written, const char *key)
{
	for (size_t i = 0; i < written->count; i++)
		if (!strcmp(written->items[i].key, key))
			return true;
	return false;
}

struct schema_labels group_node_labels(const struct group_text *g, struct arena *a)
{
	static const struct schema_label usual = { "kubernetes.io/os", "linux" };
	const struct schema_labels implied = group_implied_labels(g, a);
	struct schema_label *items = arena_array(a, struct schema_label, implied.count + g->labels.count + 1);
	size_t count = 0;

	for (size_t i = 0; i < g->labels.count; i++)
		items[count++] = g->labels.items[i];
	for (size_t i = 0; i < implied.count; i++)
		if (!is_written(&g->labels, implied.items[i].key))
			items[count++] = implied.items[i];
	if (!is_written(&g->labels, usual.key))
		items[count++] = usual;
	return (struct schema_labels){ items, count };
}

const struct block_taint *group_node_taints(const struct group_text *g, struct arena *a, size_t *count)
{
	const struct provider_block *b = provider_block((enum provider_choice)g->provider);
	const struct taint_text *written = g->taints.items;
	struct block_taint *taints = arena_array(a, struct block_taint, g->taints.count + 1);

	*count = 0;
	if (b->spot_taint.key && g->capacity_type == CAPACITY_SPOT)
		taints[(*count)++] = b->spot_taint;
	for (size_t i = 0; i < g->taints.count; i++)
		taints[(*count)++] =
			(struct block_taint){ written[i].key, written[i].value, taint_effects[written[i].effect] };
	return taints;
}
