/* What a node group on EKS says in the manifest, and what that tells of its nodes. */
#include "providers/block.h"
#include "providers/eks_wire.h"

#include <string.h>

struct eks_block {
	const struct yaml_node *node;
	const char *cluster, *nodegroup, *region;
	const char *auto_scaling_group, *tags; /* "": not given */
	const char *endpoint;		       /* NULL: not given */
	int64_t autoscaler_tags, launch, warm_pool, protection;
};
BLOCK_FITS(struct eks_block);

static const char *const tag_manners[] = { "refuse", "ignore", NULL };
static const char *const launches[] = { "capacity", "instances", NULL };
static const char *const protections[] = { "machines", "group", NULL };
static const char *const warm_pools[] = { "existing", "nodegroup", "autoScalingGroup", NULL };

/* A row reads best on two lines. */
/* clang-format off */
static const struct schema_row rows[] = {
	{ .key = "cluster", .type = SCHEMA_TEXT, BLOCK_AT(eks_block, cluster), .is_required = true, .max = 100,
	  .help = "Name of the EKS cluster." },
	{ .key = "nodegroup", .type = SCHEMA_TEXT, BLOCK_AT(eks_block, nodegroup), .is_required = true, .max = 100,
	  .help = "Name of the managed node group, the value of the label eks.amazonaws.com/nodegroup." },
	{ .key = "region", .type = SCHEMA_TEXT, BLOCK_AT(eks_block, region), .is_required = true, .max = 40,
	  .example = "eu-west-1",
	  .help = "AWS region of the cluster." },
	{ .key = "autoScalingGroup", .type = SCHEMA_TEXT, BLOCK_AT(eks_block, auto_scaling_group), .fallback = "",
	  .max = 255, .shown = "that of the node group, from EKS",
	  .help = "Name of an Auto Scaling group that EKS does not manage; EKS is then not asked, and a group of a managed node group (tag eks:nodegroup-name) is refused. Its kubelets must set the label eks.amazonaws.com/nodegroup to nodegroup." },
	{ .key = "tags", .type = SCHEMA_TEXT, BLOCK_AT(eks_block, tags), .fallback = "", .max = 4000, .shown = "none",
	  .example = "preheat.dev/pool=chat,team",
	  .help = "Find the Auto Scaling group by tags instead: key=value pairs and keys, separated by commas. Exactly one group must have all of them." },
	{ .key = "clusterAutoscalerTags", .type = SCHEMA_CHOICE, BLOCK_AT(eks_block, autoscaler_tags),
	  .fallback = "refuse", .choices = tag_manners,
	  .help = "Meaning of a tag k8s.io/cluster-autoscaler/... on the Auto Scaling group. refuse: Cluster Autoscaler owns the group, it is only watched. ignore: Preheat may size it. EKS sets these tags on every managed node group." },
	{ .key = "launch", .type = SCHEMA_CHOICE, BLOCK_AT(eks_block, launch), .fallback = "capacity",
	  .choices = launches,
	  .help = "How the group grows. capacity: raises the desired capacity. instances: LaunchInstances, which reports at once that a zone has no capacity; for groups of one capacity type without a warm pool." },
	{ .key = "warmPool", .type = SCHEMA_CHOICE, BLOCK_AT(eks_block, warm_pool), .fallback = "existing",
	  .choices = warm_pools,
	  .help = "Where standby machines are kept. existing: in the group's warm pool; without one there is no standby. nodegroup, autoScalingGroup: creates one if there is none, through EKS (warmPoolConfig) or Auto Scaling." },
	{ .key = "protection", .type = SCHEMA_CHOICE, BLOCK_AT(eks_block, protection), .fallback = "machines",
	  .choices = protections,
	  .help = "What keeps Auto Scaling from choosing a machine to end. machines: each is protected once it is seen in service. group: the group's NewInstancesProtectedFromScaleIn, too, so that none is ever open to it; lifted with the rest. Only beside autoScalingGroup or tags: an update by EKS would leave machines behind." },
	{ .key = "endpoint", .type = SCHEMA_URL, BLOCK_AT(eks_block, endpoint), .shown = "AWS_ENDPOINT_URL, or the region's own",
	  .help = "One URL for all AWS services, below amazonaws.com or api.aws, or on this machine." },
};

static const struct instance_type instances[] = {
	/* name, vCPUs, GiB, GPUs, GPU, GiB of each GPU, list price (us-east-1) */
	{ "g4dn.xlarge", 4, 16, 1, "T4", 16, 526000 },
	{ "g4dn.2xlarge", 8, 32, 1, "T4", 16, 752000 },
	{ "g4dn.4xlarge", 16, 64, 1, "T4", 16, 1204000 },
	{ "g4dn.8xlarge", 32, 128, 1, "T4", 16, 2176000 },
	{ "g4dn.12xlarge", 48, 192, 4, "T4", 16, 3912000 },
	{ "g4dn.16xlarge", 64, 256, 1, "T4", 16, 4352000 },
	{ "g4dn.metal", 96, 384, 8, "T4", 16, 7824000 },
	{ "g5.xlarge", 4, 16, 1, "A10G", 24, 1006000 },
	{ "g5.2xlarge", 8, 32, 1, "A10G", 24, 1212000 },
	{ "g5.4xlarge", 16, 64, 1, "A10G", 24, 1624000 },
	{ "g5.8xlarge", 32, 128, 1, "A10G", 24, 2448000 },
	{ "g5.12xlarge", 48, 192, 4, "A10G", 24, 5672000 },
	{ "g5.16xlarge", 64, 256, 1, "A10G", 24, 4096000 },
	{ "g5.24xlarge", 96, 384, 4, "A10G", 24, 8144000 },
	{ "g5.48xlarge", 192, 768, 8, "A10G", 24, 16288000 },
	{ "g5g.xlarge", 4, 8, 1, "T4G", 16, 420000 },
	{ "g5g.2xlarge", 8, 16, 1, "T4G", 16, 556000 },
	{ "g5g.4xlarge", 16, 32, 1, "T4G", 16, 828000 },
	{ "g5g.8xlarge", 32, 64, 1, "T4G", 16, 1372000 },
	{ "g5g.16xlarge", 64, 128, 2, "T4G", 16, 2744000 },
	{ "g5g.metal", 64, 128, 2, "T4G", 16, 2744000 },
	{ "g6.xlarge", 4, 16, 1, "L4", 24, 804800 },
	{ "g6.2xlarge", 8, 32, 1, "L4", 24, 977600 },
	{ "g6.4xlarge", 16, 64, 1, "L4", 24, 1323200 },
	{ "g6.8xlarge", 32, 128, 1, "L4", 24, 2014400 },
	{ "g6.12xlarge", 48, 192, 4, "L4", 24, 4601600 },
	{ "g6.16xlarge", 64, 256, 1, "L4", 24, 3396800 },
	{ "g6.24xlarge", 96, 384, 4, "L4", 24, 6675200 },
	{ "g6.48xlarge", 192, 768, 8, "L4", 24, 13350400 },
	{ "g6e.xlarge", 4, 32, 1, "L40S", 48, 1861000 },
	{ "g6e.2xlarge", 8, 64, 1, "L40S", 48, 2242080 },
	{ "g6e.4xlarge", 16, 128, 1, "L40S", 48, 3004240 },
	{ "g6e.8xlarge", 32, 256, 1, "L40S", 48, 4528560 },
	{ "g6e.12xlarge", 48, 384, 4, "L40S", 48, 10492640 },
	{ "g6e.16xlarge", 64, 512, 1, "L40S", 48, 7577190 },
	{ "g6e.24xlarge", 96, 768, 4, "L40S", 48, 15065590 },
	{ "g6e.48xlarge", 192, 1536, 8, "L40S", 48, 30131180 },
	{ "p3.2xlarge", 8, 61, 1, "V100", 16, 3060000 },
	{ "p3.8xlarge", 32, 244, 4, "V100", 16, 12240000 },
	{ "p3.16xlarge", 64, 488, 8, "V100", 16, 24480000 },
	{ "p4d.24xlarge", 96, 1152, 8, "A100", 40, 21957642 },
	{ "p4de.24xlarge", 96, 1152, 8, "A100", 80, 27447057 },
	{ "p5.4xlarge", 16, 256, 1, "H100", 80, 6880000 },
	{ "p5.48xlarge", 192, 2048, 8, "H100", 80, 55040000 },
	{ "p5e.48xlarge", 192, 2048, 8, "H200", 141, 0 },
	{ "p5en.48xlarge", 192, 2048, 8, "H200", 141, 63296000 },
};
/* clang-format on */

static bool are_tags(const char *text)
{
	for (const char *tag = text; *text && tag; tag = strchr(tag, ',') ? strchr(tag, ',') + 1 : NULL) {
		tag += strspn(tag, " ");
		if (!*tag || strchr(",=", *tag))
			return false;
	}
	return true;
}

static const struct block_form tag_list = { are_tags, "^ *[^ ,=][^,]*(, *[^ ,=][^,]*)*$" };

#define NAME "letters, digits, '-' and '_', beginning with a letter or digit"
static const struct block_key keys[] = {
	{ "cluster", &form_cloud_name, NAME },
	{ "nodegroup", &form_cloud_name, NAME },
	{ "region", &form_dns_label, "small letters, digits and inner dashes, like eu-west-1" },
	{ "tags", &tag_list, "key=value pairs and keys, with commas between" },
};

static const struct openapi_rule rules[] = {
	{ "eks", "!(has(self.autoScalingGroup) && has(self.tags))", "tags beside autoScalingGroup: delete one" },
	{ "eks", "!has(self.protection) || self.protection != 'group' || has(self.autoScalingGroup) || has(self.tags)",
	  "protection: group, of a node group that EKS manages: only beside autoScalingGroup or tags" },
	{ "node group",
	  "!(has(self.eks) && has(self.standby) && has(self.standby.max) && self.standby.max > 0 && "
	  "has(self.capacityType) && self.capacityType == 'spot')",
	  "standby on EKS: a warm pool holds no spot machines" },
};

static void check(const void *record, const struct block_group *g, struct findings *f)
{
	const struct eks_block *eks = record;

	if (eks->auto_scaling_group[0] && eks->tags[0])
		schema_find_key(f, eks->node, "tags", "tags beside autoScalingGroup", "one of the two", "delete one");
	if (eks->protection && !eks->auto_scaling_group[0] && !eks->tags[0])
		schema_find_key(f, eks->node, "protection", "group, of a node group that EKS manages",
				"group beside autoScalingGroup or tags only",
				"delete it: an update by EKS would leave machines behind");
	if (g->has_standby && g->capacity == BLOCK_SPOT)
		schema_find_key(f, g->standby, "max", "standby of spot machines on EKS",
				"0: a warm pool holds no spot machines", "give standby to an on-demand group");
}

static bool read(const char *settings, struct arena *a, struct error *e)
{
	struct eks_settings s;

	return eks_read_settings(settings, a, &s, e);
}

const struct provider_block provider_block_eks = {
	.table = { "eks", sizeof(struct eks_block), SCHEMA_ROWS(rows) },
	BLOCK_KEYS(keys),
	BLOCK_RULES(rules),
	.check = check,
	.read = read,
	.label = { "eks.amazonaws.com/nodegroup", 0, offsetof(struct eks_block, nodegroup) },
	.own_names = { { "autoScalingGroup", offsetof(struct eks_block, auto_scaling_group) },
		       { "tags", offsetof(struct eks_block, tags) } },
	.sets_zone = true,
	.capacity_label = "eks.amazonaws.com/capacityType",
	.capacity_words = { "ON_DEMAND", "SPOT", "CAPACITY_BLOCK" },
	.reserves_on_demand = true, /* a Capacity Block has a word of its own, a Capacity Reservation none */
	BLOCK_INSTANCES(instances),
	.arm_family = "g5g.",
};
