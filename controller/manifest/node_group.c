/* The keys of a node group, and what each provider is told of it. */
#include "controller/manifest/manifest.h"
#include "controller/manifest/table.h"

#include <string.h>

static const char *const capacity_types[] = { "on-demand", "spot", "reserved", NULL };
static const char *const tag_manners[] = { "refuse", "ignore", NULL };
static const char *const launches[] = { "capacity", "instances", NULL };
static const char *const eks_pools[] = { "existing", "nodegroup", "autoScalingGroup", NULL };
static const char *const providers[] = { "simulated", "eks", "aks", "karpenter", "clusterApi", "external", NULL };

_Static_assert(sizeof providers / sizeof *providers == PROVIDER_COUNT + 1, "a name per provider");

/* A row reads best on two lines. */
/* clang-format off */
static const struct schema_row quantiles_rows[] = {
	{ .key = "p50", .type = SCHEMA_DURATION, AT(quantiles_text, p50), .is_required = true, .max = 7 * DAY,
	  .example = "380s",
	  .help = "Half of the starts take no longer." },
	{ .key = "p95", .type = SCHEMA_DURATION, AT(quantiles_text, p95), .is_required = true, .max = 7 * DAY,
	  .example = "650s",
	  .help = "19 of 20 starts take no longer; not below p50." },
};
const struct schema_table quantiles_table = { "p50 and p95", sizeof(struct quantiles_text),
	SCHEMA_ROWS(quantiles_rows) };

static const struct schema_row standby_rows[] = {
	{ .key = "max", .type = SCHEMA_INTEGER, AT(standby_text, max), .fallback = "0", .max = 100000,
	  .help = "Most stopped machines, within the group's max. 0: no standby." },
	{ .key = "priceShare", .type = SCHEMA_SHARE, AT(standby_text, price_share_ppm), .fallback = "2%", .min = 100,
	  .max = 990000, .example = "2%",
	  .help = "What a stopped machine costs, as a share of pricePerHour: disks mostly." },
	{ .key = "leadTime", .type = SCHEMA_MAP, AT(standby_text, lead_time), .shown = "p50 90s, p95 150s",
	  .table = &quantiles_table,
	  .help = "From waking a stopped machine to serving. A prior." },
};
static const struct schema_table standby_table = { "standby", sizeof(struct standby_text),
	SCHEMA_ROWS(standby_rows) };

static const struct schema_row simulated_rows[] = {
	{ .key = "endpoint", .type = SCHEMA_URL, AT(simulated_text, endpoint), .is_required = true,
	  .help = "Where the modelled cloud listens." },
	{ .key = "group", .type = SCHEMA_TEXT, AT(simulated_text, group), .fallback = "", .max = 100,
	  .shown = "the name of the node group",
	  .help = "What it calls the group." },
};
static const struct schema_table simulated_table = { "simulated", sizeof(struct simulated_text),
	SCHEMA_ROWS(simulated_rows) };

static const struct schema_row eks_rows[] = {
	{ .key = "cluster", .type = SCHEMA_TEXT, AT(eks_text, cluster), .is_required = true, .max = 100,
	  .help = "Name of the EKS cluster." },
	{ .key = "nodegroup", .type = SCHEMA_TEXT, AT(eks_text, nodegroup), .is_required = true, .max = 100,
	  .help = "Name of the managed node group, as nodes carry it in the label eks.amazonaws.com/nodegroup." },
	{ .key = "region", .type = SCHEMA_TEXT, AT(eks_text, region), .is_required = true, .max = 40,
	  .example = "eu-west-1",
	  .help = "AWS region of the cluster." },
	{ .key = "autoScalingGroup", .type = SCHEMA_TEXT, AT(eks_text, auto_scaling_group), .fallback = "",
	  .max = 255, .shown = "that of the node group, as EKS tells",
	  .help = "Name of the Auto Scaling group, where EKS is not to be asked: groups that it does not manage. Their "
		  "kubelets must give the label eks.amazonaws.com/nodegroup as nodegroup says." },
	{ .key = "tags", .type = SCHEMA_TEXT, AT(eks_text, tags), .fallback = "", .max = 4000, .shown = "none",
	  .example = "preheat.dev/pool=chat,team",
	  .help = "Find the Auto Scaling group by its tags instead: key=value pairs and keys, with commas between. "
		  "Exactly one group must have them all." },
	{ .key = "clusterAutoscalerTags", .type = SCHEMA_CHOICE, AT(eks_text, autoscaler_tags),
	  .fallback = "refuse", .choices = tag_manners,
	  .help = "What a tag k8s.io/cluster-autoscaler/... on the Auto Scaling group means. refuse: the group is "
		  "Cluster Autoscaler's, and is only watched. ignore: no Cluster Autoscaler uses it, Preheat may size "
		  "it; EKS puts these tags on every managed node group." },
	{ .key = "launch", .type = SCHEMA_CHOICE, AT(eks_text, launch), .fallback = "capacity",
	  .choices = launches,
	  .help = "How the group grows. capacity: its desired capacity is raised. instances: LaunchInstances, which "
		  "says at once that a zone has none; for groups of one kind of capacity and without a warm pool." },
	{ .key = "warmPool", .type = SCHEMA_CHOICE, AT(eks_text, warm_pool), .fallback = "existing",
	  .choices = eks_pools,
	  .help = "Where standby machines stand. existing: in the warm pool that the group has; without one there is "
		  "no standby. nodegroup, autoScalingGroup: one is made where there is none, through EKS "
		  "(warmPoolConfig) or through Auto Scaling." },
	{ .key = "endpoint", .type = SCHEMA_URL, AT(eks_text, endpoint), .shown = "AWS_ENDPOINT_URL, or the region's own",
	  .help = "One URL for all AWS services, below amazonaws.com or api.aws, or on this machine." },
};
static const struct schema_table eks_table = { "eks", sizeof(struct eks_text), SCHEMA_ROWS(eks_rows) };

static const struct schema_row aks_rows[] = {
	{ .key = "subscription", .type = SCHEMA_TEXT, AT(aks_text, subscription), .is_required = true, .max = 36,
	  .help = "Id of the Azure subscription." },
	{ .key = "resourceGroup", .type = SCHEMA_TEXT, AT(aks_text, resource_group), .is_required = true, .max = 90,
	  .help = "Resource group of the cluster, not the MC_ one of its machines." },
	{ .key = "cluster", .type = SCHEMA_TEXT, AT(aks_text, cluster), .is_required = true, .max = 63,
	  .help = "Name of the AKS cluster." },
	{ .key = "pool", .type = SCHEMA_TEXT, AT(aks_text, pool), .is_required = true, .max = 12,
	  .help = "Name of the agent pool." },
	{ .key = "resourceManager", .type = SCHEMA_URL, AT(aks_text, resource_manager), .fallback = "",
	  .shown = "that of the cloud which AZURE_ENVIRONMENT names", .example = "https://management.azure.com",
	  .help = "Where Azure's Resource Manager is: one of a known cloud, or what AZURE_RESOURCE_MANAGER_ENDPOINT "
		  "of the controller names." },
};
static const struct schema_table aks_table = { "aks", sizeof(struct aks_text), SCHEMA_ROWS(aks_rows) };

static const struct schema_row karpenter_rows[] = {
	{ .key = "nodePool", .type = SCHEMA_TEXT, AT(karpenter_text, node_pool), .is_required = true, .max = 253,
	  .help = "A static NodePool: one with spec.replicas." },
};
static const struct schema_table karpenter_table = { "karpenter", sizeof(struct karpenter_text),
	SCHEMA_ROWS(karpenter_rows) };

static const struct schema_row cluster_api_rows[] = {
	{ .key = "machineDeployment", .type = SCHEMA_TEXT, AT(cluster_api_text, deployment), .is_required = true,
	  .max = 253,
	  .help = "Name of the MachineDeployment." },
	{ .key = "namespace", .type = SCHEMA_TEXT, AT(cluster_api_text, name_space), .is_required = true, .max = 63,
	  .help = "Its namespace." },
	{ .key = "label", .type = SCHEMA_TEXT, AT(cluster_api_text, label), .is_required = true, .max = 317,
	  .example = "node.cluster.x-k8s.io/pool",
	  .help = "A label by which its nodes are known." },
	{ .key = "value", .type = SCHEMA_TEXT, AT(cluster_api_text, value), .is_required = true, .max = 63,
	  .help = "The value of the label." },
};
static const struct schema_table cluster_api_table = { "clusterApi", sizeof(struct cluster_api_text),
	SCHEMA_ROWS(cluster_api_rows) };

static const struct schema_row external_rows[] = {
	{ .key = "label", .type = SCHEMA_TEXT, AT(external_text, label), .is_required = true, .max = 317,
	  .example = "cloud.google.com/gke-nodepool",
	  .help = "A label by which its nodes are known." },
	{ .key = "value", .type = SCHEMA_TEXT, AT(external_text, value), .is_required = true, .max = 63,
	  .help = "The value of the label." },
};
static const struct schema_table external_table = { "external", sizeof(struct external_text),
	SCHEMA_ROWS(external_rows) };

static const struct schema_row group_rows[] = {
	{ .key = "name", .type = SCHEMA_TEXT, AT(group_text, name), .is_required = true, .max = 100,
	  .help = "The group, everywhere. Pools that name the same group share its machines; its other keys may "
		  "then stand at any one of them, and must agree where they stand at several." },
	{ .key = "provider", .type = SCHEMA_CHOICE, AT(group_text, provider),
	  .shown = "that of the block given, else simulated", .choices = providers,
	  .help = "Who resizes it." },
	{ .key = "simulated", .type = SCHEMA_MAP, AT(group_text, simulated), .table = &simulated_table,
	  .help = "Settings of provider simulated: a cloud that only plays one, for trials. run needs them, simulate "
		  "has a world of its own." },
	{ .key = "eks", .type = SCHEMA_MAP, AT(group_text, eks), .table = &eks_table,
	  .help = "Settings of provider eks." },
	{ .key = "aks", .type = SCHEMA_MAP, AT(group_text, aks), .table = &aks_table,
	  .help = "Settings of provider aks." },
	{ .key = "karpenter", .type = SCHEMA_MAP, AT(group_text, karpenter), .table = &karpenter_table,
	  .help = "Settings of provider karpenter: a static NodePool." },
	{ .key = "clusterApi", .type = SCHEMA_MAP, AT(group_text, cluster_api), .table = &cluster_api_table,
	  .help = "Settings of provider clusterApi: a MachineDeployment of Cluster API." },
	{ .key = "external", .type = SCHEMA_MAP, AT(group_text, external), .table = &external_table,
	  .help = "Settings of provider external: nodes that another autoscaler brings when pods or buffers ask." },
	{ .key = "zone", .type = SCHEMA_TEXT, AT(group_text, zone), .fallback = "", .shown = "unknown",
	  .example = "eu-west-1a",
	  .help = "Availability zone. Starts are spread over zones, back-off is by zone." },
	{ .key = "instanceType", .type = SCHEMA_TEXT, AT(group_text, instance_type), .fallback = "",
	  .shown = "unknown", .example = "g5.xlarge",
	  .help = "Machine type, for back-off and reports." },
	{ .key = "capacityType", .type = SCHEMA_CHOICE, AT(group_text, capacity_type), .fallback = "on-demand",
	  .choices = capacity_types,
	  .help = "How it is bought." },
	{ .key = "gpusPerNode", .type = SCHEMA_INTEGER, AT(group_text, gpus_per_node), .fallback = "1", .min = 1,
	  .max = 1024,
	  .help = "GPUs of one machine." },
	{ .key = "pricePerHour", .type = SCHEMA_DOLLARS, AT(group_text, price_per_hour), .fallback = "1",
	  .shown = "1: dollars then read as node hours", .max = DOLLARS(10000),
	  .help = "Dollars for one machine and hour." },
	{ .key = "min", .type = SCHEMA_INTEGER, AT(group_text, min), .fallback = "0", .max = 100000,
	  .help = "Never ask for fewer nodes." },
	{ .key = "max", .type = SCHEMA_INTEGER, AT(group_text, max), .fallback = "10", .max = 100000,
	  .help = "Never ask for more nodes. 0 keeps the group unused." },
	{ .key = "standby", .type = SCHEMA_MAP, AT(group_text, standby), .table = &standby_table,
	  .help = "Stopped machines with the image on disk, woken faster than new ones start." },
};
const struct schema_table group_table = { "node group", sizeof(struct group_text), SCHEMA_ROWS(group_rows) };
/* clang-format on */

const struct schema_row *provider_row(enum provider_choice provider)
{
	for (size_t i = 0; i < group_table.count; i++)
		if (!strcmp(group_rows[i].key, providers[provider]))
			return &group_rows[i];
	return NULL;
}

bool provider_needs_block(enum provider_choice provider)
{
	return provider != PROVIDER_SIMULATED;
}

const char *provider_name(enum provider_choice provider)
{
	return providers[provider];
}

struct schema_label manifest_group_label(const struct manifest *m, size_t group)
{
	const struct group_text *g = &m->groups[group];
	const char *name = m->fleet.groups[group].name;

	switch ((enum provider_choice)g->provider) {
	case PROVIDER_EKS:
		return (struct schema_label){ "eks.amazonaws.com/nodegroup", g->eks.nodegroup };
	case PROVIDER_AKS:
		return (struct schema_label){ "kubernetes.azure.com/agentpool", g->aks.pool };
	case PROVIDER_SIMULATED:
		return (struct schema_label){ "simulated.preheat.dev/node-group",
					      g->simulated.group && *g->simulated.group ? g->simulated.group : name };
	case PROVIDER_KARPENTER:
		return (struct schema_label){ "karpenter.sh/nodepool", g->karpenter.node_pool };
	case PROVIDER_CLUSTER_API:
		return (struct schema_label){ g->cluster_api.label, g->cluster_api.value };
	case PROVIDER_EXTERNAL:
		return (struct schema_label){ g->external.label, g->external.value };
	case PROVIDER_COUNT:
		break;
	}
	return (struct schema_label){ "", "" };
}
