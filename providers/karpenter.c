/* Static NodePools of Karpenter (spec.replicas): sized through their scale, emptied by deleting the NodeClaim. */
#include "providers/kubernetes/group.h"
#include "providers/text.h"

#include <string.h>

static const struct field setting_fields[] = { FIELD(struct karpenter_settings, node_pool, FIELD_STRING, "nodePool") };
static const struct record_spec settings_record = RECORD(struct karpenter_settings, setting_fields);

bool karpenter_read_settings(const char *json, struct arena *a, struct karpenter_settings *out, struct error *e)
{
	*out = (struct karpenter_settings){ 0 };
	if (!text_decode(&settings_record, json, strlen(json), a, out, e))
		return error_wrap(e, "settings");
	return object_name_check("nodePool", out->node_pool, "the name of a NodePool", e);
}

static bool find(struct provider_call *c, const char *version, struct object_group *out, struct error *e)
{
	struct karpenter_settings s;

	(void)version;
	if (!karpenter_read_settings(c->settings, &c->arena, &s, e))
		return false;
	out->owner = text_printf(&c->arena, "/apis/karpenter.sh/v1/nodepools/%s", s.node_pool);
	out->name = s.node_pool;
	out->name_space = "";
	out->owner_plural = "NodePool";
	out->list = "/apis/karpenter.sh/v1/nodeclaims";
	out->selector = text_printf(&c->arena, "karpenter.sh/nodepool=%s", s.node_pool);
	return true;
}

static bool accepts(const struct owner_object *o, struct error *e)
{
	return o->has_replicas || error_set(e, ERROR_INVALID,
					    "it has no spec.replicas: Karpenter sizes it by pending pods; do: use "
					    "provider external for it, or make a static NodePool");
}

static const struct object_right rights[] = {
	{ "karpenter.sh", "nodepools", "", "get", "sees the size of the NodePool", true },
	{ "karpenter.sh", "nodepools", "scale", "patch", "grows it", true },
	{ "karpenter.sh", "nodepools", "", "patch", "lowers the size by a node that was emptied", true },
	{ "karpenter.sh", "nodeclaims", "", "list", "sees its machines", false },
	{ "karpenter.sh", "nodeclaims", "", "delete", "removes the machine of a node that was emptied", false },
};

static const struct object_provider kind = {
	.kind = OBJECT_NODE_POOL,
	.abilities = PROVIDER_NAMES_VICTIMS | PROVIDER_CANCELS,
	.find = find,
	.accepts = accepts,
	.deletes_victims = true,
	.has_owner = true,
	.rights = rights,
	.right_count = sizeof rights / sizeof *rights,
};

static struct provider *open(const struct provider_setup *s, struct error *e)
{
	return object_provider_open(&kind, s, e);
}

const struct provider_ops provider_karpenter = {
	.name = "karpenter",
	.abilities = PROVIDER_NAMES_VICTIMS | PROVIDER_CANCELS,
	.asks_cluster = true,
	.open = open,
	.close = object_provider_close,
	.start = exchange_start,
	.cancel = exchange_cancel,
};
