/* What clouds and clusters allow as names, so that a slip of the pen is found before they are asked. */
#include "controller/manifest/draft.h"

#include <string.h>

#define LOWER	"abcdefghijklmnopqrstuvwxyz"
#define DIGITS	"0123456789"
#define LETTERS LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

bool is_made_of(const char *text, size_t len, const char *ends, const char *inner)
{
	for (size_t i = 0; i < len; i++)
		if (!strchr(ends, text[i]) && (i == 0 || i + 1 == len || !strchr(inner, text[i])))
			return false;
	return len > 0;
}

bool is_label_key(const char *key)
{
	const char *slash = strchr(key, '/'), *name = slash ? slash + 1 : key;
	size_t domain = slash ? (size_t)(slash - key) : 0, len = strlen(name);

	return (!slash || (domain <= 253 && is_made_of(key, domain, LOWER DIGITS, ".-"))) && len <= 63 &&
	       is_made_of(name, len, LETTERS DIGITS, "-_.");
}

static bool is_label_value(const char *text)
{
	return is_made_of(text, strlen(text), LETTERS DIGITS, "-_.");
}

static bool is_object(const char *text)
{
	return is_made_of(text, strlen(text), LOWER DIGITS, ".-");
}

static bool is_cluster(const char *text)
{
	return is_made_of(text, strlen(text), LETTERS DIGITS "-_", "") && !strchr("-_", *text);
}

static bool is_region(const char *text)
{
	return is_made_of(text, strlen(text), LOWER DIGITS, "-");
}

static bool are_tags(const char *text)
{
	for (const char *tag = text; *text && tag; tag = strchr(tag, ',') ? strchr(tag, ',') + 1 : NULL) {
		tag += strspn(tag, " ");
		if (!*tag || strchr(",=", *tag))
			return false;
	}
	return true;
}

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
		if (!strchr(LETTERS DIGITS "-_.()", *p) && (unsigned char)*p < 0x80)
			return false;
	return text[strlen(text) - 1] != '.';
}

static bool is_agent_pool(const char *text)
{
	return strspn(text, LOWER DIGITS) == strlen(text) && strchr(LOWER, *text);
}

static const struct {
	enum provider_choice provider;
	const char *key;
	size_t block, text;
	bool (*fits)(const char *text);
	const char *allowed;
} names[] = {
#define EKS(key, member) PROVIDER_EKS, key, offsetof(struct group_text, eks), offsetof(struct eks_text, member)
#define AKS(key, member) PROVIDER_AKS, key, offsetof(struct group_text, aks), offsetof(struct aks_text, member)
	{ EKS("cluster", cluster), is_cluster, "letters, digits, '-' and '_', beginning with a letter or digit" },
	{ EKS("nodegroup", nodegroup), is_cluster, "letters, digits, '-' and '_', beginning with a letter or digit" },
	{ EKS("region", region), is_region, "small letters, digits and inner dashes, like eu-west-1" },
	{ EKS("tags", tags), are_tags, "key=value pairs and keys, with commas between" },
	{ AKS("subscription", subscription), is_subscription, "an id like 00000000-0000-0000-0000-000000000000" },
	{ AKS("resourceGroup", resource_group), is_resource_group,
	  "letters, digits, '-', '_', '.' and brackets, not ending with a dot" },
	{ AKS("cluster", cluster), is_cluster, "letters, digits, '-' and '_', beginning with a letter or digit" },
	{ AKS("pool", pool), is_agent_pool, "small letters and digits, beginning with a letter" },
	{ PROVIDER_KARPENTER, "nodePool", offsetof(struct group_text, karpenter),
	  offsetof(struct karpenter_text, node_pool), is_object, "small letters, digits, inner dashes and dots" },
#define CAPI(key, member) \
	PROVIDER_CLUSTER_API, key, offsetof(struct group_text, cluster_api), offsetof(struct cluster_api_text, member)
	{ CAPI("machineDeployment", deployment), is_object, "small letters, digits, inner dashes and dots" },
	{ CAPI("namespace", name_space), is_region, "small letters, digits and inner dashes" },
	{ CAPI("label", label), is_label_key, "the key of a label, like node.cluster.x-k8s.io/pool" },
	{ CAPI("value", value), is_label_value, "letters, digits, inner dashes, dots and underscores" },
#define EXTERNAL(key, member) \
	PROVIDER_EXTERNAL, key, offsetof(struct group_text, external), offsetof(struct external_text, member)
	{ EXTERNAL("label", label), is_label_key, "the key of a label, like cloud.google.com/gke-nodepool" },
	{ EXTERNAL("value", value), is_label_value, "letters, digits, inner dashes, dots and underscores" },
};

void check_clouds(struct draft *d, const struct group_text *g)
{
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *block = (const char *)g + names[i].block;
		const struct yaml_node *node = *(const struct yaml_node *const *)(const void *)block;
		const char *text = *(const char *const *)(const void *)(block + names[i].text);

		if (names[i].provider == (enum provider_choice)g->provider && node && text && *text &&
		    !names[i].fits(text))
			schema_find_key(d->findings, node, names[i].key, NULL, names[i].allowed,
					"write it as the cloud or the cluster shows it");
	}
}
