/*
 * Nodes that another autoscaler brings (Cluster Autoscaler, Karpenter, GKE)
 * when pods or buffers ask for them. Nobody is called to grow: the size
 * asked for is remembered, and nodes with the label are what there is. A
 * node that shall go was emptied and cordoned by us; its autoscaler removes it.
 */
#include "providers/kubernetes/group.h"
#include "providers/text.h"

#include <string.h>

struct settings {
	const char *key, *value;
};

static const struct field setting_fields[] = {
	FIELD(struct settings, key, FIELD_STRING, "label"),
	FIELD(struct settings, value, FIELD_STRING, "value"),
};
static const struct record_spec settings_record = RECORD(struct settings, setting_fields);

/* What a label selector may hold as it stands. */
static bool is_plain(const char *text)
{
	return strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._/") == strlen(text);
}

static bool find(struct provider_call *c, const char *version, struct object_group *out, struct error *e)
{
	struct settings s = { 0 };

	(void)version;
	if (!text_decode(&settings_record, c->settings, strlen(c->settings), &c->arena, &s, e))
		return error_wrap(e, "settings");
	if (!s.key || !*s.key || !is_plain(s.key) || strlen(s.key) > 317 || !s.value || !is_plain(s.value) ||
	    strlen(s.value) > 63)
		return error_set(e, ERROR_INVALID, "settings: label and value: allowed: a label that its nodes carry");
	out->name = out->name_space = "";
	out->owner_plural = "nodes";
	out->list = "/api/v1/nodes";
	out->selector = text_printf(&c->arena, "%s=%s", s.key, s.value);
	return true;
}

static const struct object_right rights[] = {
	{ "", "nodes", "", "list", "sees the machines", false },
	{ "", "nodes", "", "patch", "cordons a node that shall go", false },
	{ "", "pods", "eviction", "create", "empties it; its autoscaler removes it then", false },
};

static const struct object_provider kind = {
	.kind = OBJECT_NODE,
	.abilities = PROVIDER_NAMES_VICTIMS | PROVIDER_CANCELS,
	.find = find,
	.rights = rights,
	.right_count = sizeof rights / sizeof *rights,
};

static struct provider *open(const struct provider_setup *s, struct error *e)
{
	return object_provider_open(&kind, s, e);
}

const struct provider_ops provider_external = {
	.name = "external",
	.abilities = PROVIDER_NAMES_VICTIMS | PROVIDER_CANCELS,
	.asks_cluster = true,
	.open = open,
	.close = object_provider_close,
	.start = exchange_start,
	.cancel = exchange_cancel,
};
