#include "controller/manifest/draft.h"

#include <string.h>

static bool has_simulated_block(const struct manifest *m, size_t group)
{
	return manifest_group_gives(m, group, "simulated");
}

static void check_groups_live(const struct manifest *m, size_t pool, struct findings *f)
{
	const struct spec_text *s = &m->pools[pool].spec;

	for (size_t i = 0; i < s->groups.count; i++) {
		size_t group = m->fleet.pools[pool].groups[i];
		bool is_simulated = !strcmp(m->fleet.groups[group].provider, provider_name(PROVIDER_SIMULATED));
		if (is_simulated && !has_simulated_block(m, group))
			schema_find_key(f, draft_groups(s)[i].node, "simulated", NULL,
					"a block of a provider where nodes are to be bought",
					"add eks: or aks:, or simulated: { endpoint: http://... } for a trial");
	}
}

bool manifest_check_live(const struct manifest *m, struct findings *f, struct error *e)
{
	for (size_t i = 0; i < m->fleet.pool_count; i++) {
		const struct workload_text *w = &m->pools[i].spec.workload;
		if (!w->selector.match_labels.count)
			schema_find_key(f, w->node ? w->node : m->pools[i].spec.node, w->node ? "selector" : "workload",
					NULL, "workload.selector.matchLabels: which pods serve the pool",
					"add the labels of its pods: selector: { matchLabels: { app: NAME } }");
		check_groups_live(m, i, f);
	}
	findings_sort(f);
	return !f->count || findings_error(f, e);
}
