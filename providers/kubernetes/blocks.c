/* What node groups that are objects of the cluster, or nodes with a label, say in the manifest. */
#include "providers/block.h"
#include "providers/kubernetes/group.h"

struct karpenter_block {
	const struct yaml_node *node;
	const char *node_pool;
};
BLOCK_FITS(struct karpenter_block);

struct cluster_api_block {
	const struct yaml_node *node;
	const char *deployment, *name_space, *label, *value; /* the label marks its nodes */
};
BLOCK_FITS(struct cluster_api_block);

struct external_block {
	const struct yaml_node *node;
	const char *label, *value; /* of its nodes */
};
BLOCK_FITS(struct external_block);

/* A row reads best on two lines. */
/* clang-format off */
static const struct schema_row karpenter_rows[] = {
	{ .key = "nodePool", .type = SCHEMA_TEXT, BLOCK_AT(karpenter_block, node_pool), .is_required = true, .max = 253,
	  .help = "A static NodePool: one with spec.replicas." },
};

static const struct schema_row cluster_api_rows[] = {
	{ .key = "machineDeployment", .type = SCHEMA_TEXT, BLOCK_AT(cluster_api_block, deployment), .is_required = true,
	  .max = 253,
	  .help = "Name of the MachineDeployment." },
	{ .key = "namespace", .type = SCHEMA_TEXT, BLOCK_AT(cluster_api_block, name_space), .is_required = true, .max = 63,
	  .help = "Its namespace." },
	{ .key = "label", .type = SCHEMA_TEXT, BLOCK_AT(cluster_api_block, label), .is_required = true, .max = 317,
	  .example = "node.cluster.x-k8s.io/pool",
	  .help = "A label by which its nodes are known." },
	{ .key = "value", .type = SCHEMA_TEXT, BLOCK_AT(cluster_api_block, value), .is_required = true, .max = 63,
	  .help = "The value of the label." },
};

static const struct schema_row external_rows[] = {
	{ .key = "label", .type = SCHEMA_TEXT, BLOCK_AT(external_block, label), .is_required = true, .max = 317,
	  .example = "cloud.google.com/gke-nodepool",
	  .help = "A label by which its nodes are known." },
	{ .key = "value", .type = SCHEMA_TEXT, BLOCK_AT(external_block, value), .is_required = true, .max = 63,
	  .help = "The value of the label." },
};
/* clang-format on */

#define OBJECT "small letters, digits, inner dashes and dots"
#define VALUE  "letters, digits, inner dashes, dots and underscores"
static const struct block_key karpenter_keys[] = { { "nodePool", &form_object_name, OBJECT } };
static const struct block_key cluster_api_keys[] = {
	{ "machineDeployment", &form_object_name, OBJECT },
	{ "namespace", &form_dns_label, "small letters, digits and inner dashes" },
	{ "label", &form_label_key, "the key of a label, like node.cluster.x-k8s.io/pool" },
	{ "value", &form_label_value, VALUE },
};
static const struct block_key external_keys[] = {
	{ "label", &form_label_key, "the key of a label, like cloud.google.com/gke-nodepool" },
	{ "value", &form_label_value, VALUE },
};

static bool read_karpenter(const char *settings, struct arena *a, struct error *e)
{
	struct karpenter_settings s;

	return karpenter_read_settings(settings, a, &s, e);
}

static bool read_cluster_api(const char *settings, struct arena *a, struct error *e)
{
	struct cluster_api_settings s;

	return cluster_api_read_settings(settings, a, &s, e);
}

static bool read_external(const char *settings, struct arena *a, struct error *e)
{
	struct external_settings s;

	return external_read_settings(settings, a, &s, e);
}

const struct provider_block provider_block_karpenter = {
	.table = { "karpenter", sizeof(struct karpenter_block), SCHEMA_ROWS(karpenter_rows) },
	BLOCK_KEYS(karpenter_keys),
	.read = read_karpenter,
	.label = { "karpenter.sh/nodepool", 0, offsetof(struct karpenter_block, node_pool) },
	.sets_zone = true,
	.capacity_label = "karpenter.sh/capacity-type",
	.capacity_words = { "on-demand", "spot", "reserved" },
	.template_group = "karpenter.sh",
	.template_version = "v1",
	.template_kind = "NodePool",
	.template_plural = "nodepools",
	.template_title = "NodePools of Karpenter",
	.drives_marked_nodes = true,
};

const struct provider_block provider_block_cluster_api = {
	.table = { "clusterApi", sizeof(struct cluster_api_block), SCHEMA_ROWS(cluster_api_rows) },
	BLOCK_KEYS(cluster_api_keys),
	.read = read_cluster_api,
	.label = { NULL, offsetof(struct cluster_api_block, label), offsetof(struct cluster_api_block, value) },
	.sets_zone = true,
};

const struct provider_block provider_block_external = {
	.table = { "external", sizeof(struct external_block), SCHEMA_ROWS(external_rows) },
	BLOCK_KEYS(external_keys),
	.read = read_external,
	.label = { NULL, offsetof(struct external_block, label), offsetof(struct external_block, value) },
	.sets_zone = true,
	.drives_marked_nodes = true,
};
