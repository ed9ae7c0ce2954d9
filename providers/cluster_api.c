/* MachineDeployments of Cluster API: sized through their scale; a machine that shall go is annotated first. */
#include "providers/kubernetes/group.h"
#include "providers/text.h"

#include <string.h>

static const struct field setting_fields[] = {
	FIELD(struct cluster_api_settings, deployment, FIELD_STRING, "machineDeployment"),
	FIELD(struct cluster_api_settings, name_space, FIELD_STRING, "namespace"),
};
static const struct record_spec settings_record = RECORD(struct cluster_api_settings, setting_fields);

bool cluster_api_read_settings(const char *json, struct arena *a, struct cluster_api_settings *out, struct error *e)
{
	*out = (struct cluster_api_settings){ 0 };
	if (!text_decode(&settings_record, json, strlen(json), a, out, e))
		return error_wrap(e, "settings");
	return object_name_check("machineDeployment", out->deployment, "the name of a MachineDeployment", e) &&
	       object_name_check("namespace", out->name_space, "the name of a namespace", e);
}

static bool find(struct provider_call *c, const char *version, struct object_group *out, struct error *e)
{
	struct cluster_api_settings s;

	if (!cluster_api_read_settings(c->settings, &c->arena, &s, e))
		return false;
	out->name = s.deployment;
	out->name_space = s.name_space;
	out->probe = "/apis/cluster.x-k8s.io";
	out->owner_plural = "MachineDeployment";
	if (!version)
		return true;
	const char *root = text_printf(&c->arena, "/apis/cluster.x-k8s.io/%.60s/namespaces/%s", version, s.name_space);
	out->owner = text_printf(&c->arena, "%s/machinedeployments/%s", root, s.deployment);
	out->list = text_printf(&c->arena, "%s/machines", root);
	out->selector = text_printf(&c->arena, "cluster.x-k8s.io/deployment-name=%s", s.deployment);
	return true;
}

static bool accepts(const struct owner_object *o, struct error *e)
{
	if (!o->has_replicas)
		return error_set(e, ERROR_INVALID,
				 "it has no spec.replicas; do: set them once, for instance to its size now");
	return !o->is_paused ||
	       error_set(e, ERROR_CONFLICT, "it is paused; do: take cluster.x-k8s.io/paused away, or leave it out");
}

static const struct object_right rights[] = {
	{ "cluster.x-k8s.io", "machinedeployments", "", "get", "sees the size of the MachineDeployment", true },
	{ "cluster.x-k8s.io", "machinedeployments", "scale", "patch", "grows it", true },
	{ "cluster.x-k8s.io", "machinedeployments", "", "patch", "lowers the size by a node that was emptied", true },
	{ "cluster.x-k8s.io", "machines", "", "list", "sees its machines", false },
	{ "cluster.x-k8s.io", "machines", "", "patch", "marks the machine that shall go", false },
};

static const struct object_provider kind = {
	.kind = OBJECT_MACHINE_DEPLOYMENT,
	.abilities = PROVIDER_NAMES_VICTIMS | PROVIDER_CANCELS,
	.find = find,
	.accepts = accepts,
	.victim_annotation = "cluster.x-k8s.io/delete-machine",
	.has_owner = true,
	.rights = rights,
	.right_count = sizeof rights / sizeof *rights,
};

static struct provider *open(const struct provider_setup *s, struct error *e)
{
	return object_provider_open(&kind, s, e);
}

const struct provider_ops provider_cluster_api = {
	.name = "clusterApi",
	.abilities = PROVIDER_NAMES_VICTIMS | PROVIDER_CANCELS,
	.asks_cluster = true,
	.open = open,
	.close = object_provider_close,
	.start = exchange_start,
	.cancel = exchange_cancel,
};
