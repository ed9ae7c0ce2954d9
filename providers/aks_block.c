/* What a node group on AKS says in the manifest, and what that tells of its nodes. */
#include "providers/aks.h"
#include "providers/block.h"

#include <string.h>

struct aks_block {
	const struct yaml_node *node;
	const char *subscription, *resource_group, *cluster, *pool;
	const char *resource_manager; /* "": the environment's cloud */
};
BLOCK_FITS(struct aks_block);

/* A row reads best on two lines. */
/* clang-format off */
static const struct schema_row rows[] = {
	{ .key = "subscription", .type = SCHEMA_TEXT, BLOCK_AT(aks_block, subscription), .is_required = true, .max = 36,
	  .help = "Id of the Azure subscription." },
	{ .key = "resourceGroup", .type = SCHEMA_TEXT, BLOCK_AT(aks_block, resource_group), .is_required = true, .max = 90,
	  .help = "Resource group of the cluster, not the MC_ one of its machines." },
	{ .key = "cluster", .type = SCHEMA_TEXT, BLOCK_AT(aks_block, cluster), .is_required = true, .max = 63,
	  .help = "Name of the AKS cluster." },
	{ .key = "pool", .type = SCHEMA_TEXT, BLOCK_AT(aks_block, pool), .is_required = true, .max = 12,
	  .help = "Name of the agent pool." },
	{ .key = "resourceManager", .type = SCHEMA_URL, BLOCK_AT(aks_block, resource_manager), .fallback = "",
	  .shown = "that of the cloud which AZURE_ENVIRONMENT names", .example = "https://management.azure.com",
	  .help = "Address of Azure's Resource Manager: that of a known cloud, or the controller's AZURE_RESOURCE_MANAGER_ENDPOINT." },
};

static const struct instance_type instances[] = {
	/* name, vCPUs, GiB, GPUs, GPU, GiB of each GPU, list price (East US) */
	{ "Standard_NC4as_T4_v3", 4, 28, 1, "T4", 16, 526000 },
	{ "Standard_NC8as_T4_v3", 8, 56, 1, "T4", 16, 752000 },
	{ "Standard_NC16as_T4_v3", 16, 110, 1, "T4", 16, 1204000 },
	{ "Standard_NC64as_T4_v3", 64, 440, 4, "T4", 16, 4352000 },
	{ "Standard_NC6s_v3", 6, 112, 1, "V100", 16, 3060000 },
	{ "Standard_NC12s_v3", 12, 224, 2, "V100", 16, 6120000 },
	{ "Standard_NC24s_v3", 24, 448, 4, "V100", 16, 12240000 },
	{ "Standard_NC24ads_A100_v4", 24, 220, 1, "A100", 80, 3673000 },
	{ "Standard_NC48ads_A100_v4", 48, 440, 2, "A100", 80, 7346000 },
	{ "Standard_NC96ads_A100_v4", 96, 880, 4, "A100", 80, 14692000 },
	{ "Standard_NC40ads_H100_v5", 40, 320, 1, "H100", 94, 6980000 },
	{ "Standard_NC80adis_H100_v5", 80, 640, 2, "H100", 94, 13960000 },
	{ "Standard_NV36ads_A10_v5", 36, 440, 1, "A10", 24, 3200000 },
	{ "Standard_NV72ads_A10_v5", 72, 880, 2, "A10", 24, 6520000 },
	{ "Standard_ND96asr_v4", 96, 900, 8, "A100", 40, 27197000 },
	{ "Standard_ND96amsr_A100_v4", 96, 1900, 8, "A100", 80, 32770000 },
	{ "Standard_ND96isr_H100_v5", 96, 1900, 8, "H100", 80, 98320000 },
	{ "Standard_ND96isr_H200_v5", 96, 1850, 8, "H200", 141, 0 },
};
/* clang-format on */

static bool is_subscription(const char *text)
{
	static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

	if (strlen(text) != sizeof form - 1)
		return false;
	for (size_t i = 0; form[i]; i++)
		if (form[i] == '-' ? text[i] != '-' : !strchr("0123456789abcdefABCDEF", text[i]))
			return false;
	return true;
}

/* Letters of other alphabets are allowed, too. */
static bool is_resource_group(const char *text)
{
	for (const char *p = text; *p; p++)
		if (!strchr(BLOCK_LETTERS BLOCK_DIGITS "-_.()", *p) && (unsigned char)*p < 0x80)
			return false;
	return text[strlen(text) - 1] != '.';
}

static bool is_agent_pool(const char *text)
{
	return strspn(text, BLOCK_LOWER BLOCK_DIGITS) == strlen(text) && strchr(BLOCK_LOWER, *text);
}

static const struct block_form subscription = { is_subscription,
						"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$" };
static const struct block_form resource_group = { is_resource_group,
						  "^[-_.()A-Za-z0-9[:^ascii:]]*[-_()A-Za-z0-9[:^ascii:]]$" };
static const struct block_form agent_pool = { is_agent_pool, "^[a-z][a-z0-9]*$" };

static const struct block_key keys[] = {
	{ "subscription", &subscription, "an id like 00000000-0000-0000-0000-000000000000" },
	{ "resourceGroup", &resource_group, "letters, digits, '-', '_', '.' and brackets, not ending with a dot" },
	{ "cluster", &form_cloud_name, "letters, digits, '-' and '_', beginning with a letter or digit" },
	{ "pool", &agent_pool, "small letters and digits, beginning with a letter" },
};

static bool read(const char *settings, struct arena *a, struct error *e)
{
	struct aks_settings s;

	return aks_read_settings(settings, a, &s, e);
}

const struct provider_block provider_block_aks = {
	.table = { "aks", sizeof(struct aks_block), SCHEMA_ROWS(rows) },
	BLOCK_KEYS(keys),
	.read = read,
	.label = { "kubernetes.azure.com/agentpool", 0, offsetof(struct aks_block, pool) },
	.old_label = "agentpool",
	.capacity_label = "kubernetes.azure.com/scalesetpriority",
	.capacity_words = { [BLOCK_SPOT] = "spot" },
	.spot_taint = { "kubernetes.azure.com/scalesetpriority", "spot", "NoSchedule" },
	BLOCK_INSTANCES(instances),
};
