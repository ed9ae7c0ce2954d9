/*
 * Nodes that another autoscaler brings (Cluster Autoscaler, Karpenter, GKE)
 * when pods or buffers ask for them. Nobody is called to grow: the size
 * asked for is remembered, and nodes with the label are what there is. A
 * node that shall go was emptied and cordoned by us; its autoscaler removes it.
 */
#include "providers/kubernetes/group.h"

#include "base/schema.h"
#include "base/text.h"
#include "providers/text.h"

#include <string.h>

static const struct field setting_fields[] = {
	FIELD(struct external_settings, key, FIELD_STRING, "label"),
	FIELD(struct external_settings, value, FIELD_STRING, "value"),
};
static const struct record_spec settings_record = RECORD(struct external_settings, setting_fields);

static bool refuse(const char *key, const char *text, struct error *e)
{
	char shown[QUOTE_ROOM];

	return error_set(e, ERROR_INVALID, "settings: %s: found %s; allowed: a label that its nodes carry", key,
			 quote(shown, text_or_empty(text), strlen(text_or_empty(text))));
}

bool external_read_settings(const char *json, struct arena *a, struct external_settings *out, struct error *e)
{
	*out = (struct external_settings){ 0 };
	if (!text_decode(&settings_record, json, strlen(json), a, out, e))
		return error_wrap(e, "settings");
	if (!out->key || !schema_is_label_key(out->key))
		return refuse("label", out->key, e);
	return (out->value && schema_is_label_value(out->value)) || refuse("value", out->value, e);
}

static bool find(struct provider_call *c, const char *version, struct object_group *out, struct error *e)
{
	struct external_settings s;

	(void)version;
	if (!external_read_settings(c->settings, &c->arena, &s, e))
		return false;
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
