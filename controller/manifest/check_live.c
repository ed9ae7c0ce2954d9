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
					"add eks:, aks:, karpenter:, clusterApi: or external:, or simulated: { "
					"endpoint: http://... } for a trial");
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

static void check_file(const struct yaml_node *map, const char *key, const char *path, struct findings *f)
{
	if (path && (strncmp(path, MANIFEST_CREDENTIALS, strlen(MANIFEST_CREDENTIALS)) != 0 || strstr(path, "/..")))
		schema_find_key(f, map, key, NULL, "a file below " MANIFEST_CREDENTIALS " in a WarmPool of the cluster",
				"mount the Secret there (docs/signals.md), or give the pool to run as a file");
}

static void check_auth(const struct auth_text *a, struct findings *f)
{
	check_file(a->node, "bearerTokenFile", a->bearer_token_file, f);
	check_file(a->basic.node, "passwordFile", a->basic.password_file, f);
}

static void check_tls(const struct tls_text *t, struct findings *f)
{
	check_file(t->node, "caFile", t->ca_file, f);
	check_file(t->node, "certFile", t->cert_file, f);
	check_file(t->node, "keyFile", t->key_file, f);
}

bool manifest_check_objects(const struct manifest *m, const char *trusted, struct findings *f, struct error *e)
{
	for (size_t i = 0; i < m->fleet.pool_count; i++) {
		const struct signals_text *s = &m->pools[i].spec.signals;
		if (!s->node || !strcmp(s->node->file, trusted))
			continue;
		check_auth(&s->scrape.auth, f);
		check_tls(&s->scrape.tls, f);
		check_auth(&s->prometheus.auth, f);
		check_tls(&s->prometheus.tls, f);
		check_auth(&s->queue.auth, f);
		check_tls(&s->queue.tls, f);
		check_auth(&s->devices.auth, f);
		check_tls(&s->devices.tls, f);
	}
	findings_sort(f);
	return !f->count || findings_error(f, e);
}
