/* Which group a node is of, and what the group learns from it. */
#include "controller/cluster/model_inside.h"

#include <string.h>

static bool is_of(const struct node *n, const struct group_known *g)
{
	const char *value = label_set_get(n->labels, g->label.key);
	return value != NULL && strcmp(value, g->label.value) == 0 &&
	       (g->provider_id_prefix == NULL ||
		strncmp(n->provider_id, g->provider_id_prefix, strlen(g->provider_id_prefix)) == 0);
}

/* Taints that come and go on a node, and say nothing of the next one of its group. */
static bool is_passing(const char *key)
{
	static const char *const prefixes[] = { "node.kubernetes.io/",
						"node.cloudprovider.kubernetes.io/",
						"cloud.google.com/impending-node-termination",
						"aws-node-termination-handler/",
						"startup-taint.cluster-autoscaler.kubernetes.io/",
						"ignore-taint.cluster-autoscaler.kubernetes.io/",
						"status-taint.cluster-autoscaler.kubernetes.io/",
						"readiness.k8s.io/",
						"karpenter.sh/",
						"atlassian.com/escalator",
						"ToBeDeletedByClusterAutoscaler",
						"DeletionCandidateOfClusterAutoscaler",
						"NodeWithImpairedVolumes",
						"preheat.dev/",
						"simulated.preheat.dev/spot-taken" };
	for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
		if (strncmp(key, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

static const struct taint_set *lasting_taints(struct cluster *c, const struct node *n)
{
	size_t count = 0, all = intern_count(n->taints);
	struct taint *rows = arena_array(&c->scratch, struct taint, all);
	for (size_t i = 0; i < all; i++)
		if (!is_passing(n->taints->items[i].key))
			rows[count++] = n->taints->items[i];
	return intern_rows(&c->intern, INTERN_TAINTS, rows, count);
}

/* A node that is whole tells what the next one will be. */
static void teach(struct cluster *c, struct group_known *g, const struct node *n)
{
	bool is_lent = label_set_get(n->labels, "preheat.dev/lent-by") != NULL;
	if (!n->is_ready || n->gpu_at == 0 || n->is_leaving || is_lent)
		return;
	struct template old = g->template;
	intern_hold(n->labels);
	intern_hold(n->allocatable);
	g->template = (struct template){ n->labels, lasting_taints(c, n), n->allocatable, true };
	intern_drop(&c->intern, old.labels);
	intern_drop(&c->intern, old.taints);
	intern_drop(&c->intern, old.allocatable);
}

static bool has_taint(const struct node *n, const char *key)
{
	for (size_t i = 0; i < intern_count(n->taints); i++)
		if (!strcmp(n->taints->items[i].key, key))
			return true;
	return false;
}

/* Karpenter's nodes are not touched, unless the manifest names their group; those that it disrupts itself never. */
static void settle_owner(const struct cluster *c, struct node *n)
{
	bool is_marked = label_set_get(n->labels, "karpenter.sh/nodepool") != NULL;
	bool is_disrupted = has_taint(n, "karpenter.sh/disrupted") || has_taint(n, "karpenter.sh/unregistered");

	if (is_marked && !is_disrupted && (n->owner == NODE_KARPENTER || n->owner == NODE_UNCLAIMED))
		n->owner = n->group >= 0 && c->groups[n->group].is_of_karpenter ? NODE_UNCLAIMED : NODE_KARPENTER;
}

void node_place(struct cluster *c, struct node *n)
{
	n->group = -1;
	for (size_t i = 0; n->is_known && n->group < 0 && i < c->group_count; i++)
		if (is_of(n, &c->groups[i]))
			n->group = (int)i;
	if (n->is_known)
		settle_owner(c, n);
	if (n->group >= 0)
		teach(c, &c->groups[n->group], n);
}
