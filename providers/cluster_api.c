/* MachineDeployments of Cluster API: sized through their scale; a machine that shall go is annotated first. */
#include "base/decode.h"
#include "providers/kubernetes/group.h"

#include <stdio.h>
#include <string.h>

struct settings {
	const char *deployment, *name_space;
};

static const struct field setting_fields[] = {
	FIELD(struct settings, deployment, FIELD_STRING, "machineDeployment"),
	FIELD(struct settings, name_space, FIELD_STRING, "namespace"),
};
static const struct record_spec settings_record = { "", sizeof(struct settings), setting_fields, 2 };

static const char *path(struct arena *a, const char *version, const struct settings *s, const char *rest)
{
	char text[800];

	snprintf(text, sizeof text, "/apis/cluster.x-k8s.io/%.60s/namespaces/%.253s/%.400s", version, s->name_space,
		 rest);
	return arena_strdup(a, text, strlen(text));
}

static bool find(struct provider_call *c, const char *version, struct object_group *out, struct error *e)
{
	struct decode_plan *plan = decode_plan_new(&settings_record);
	struct settings s = { 0 };
	bool ok = decode_record(plan, c->settings, strlen(c->settings), &c->arena, &s, e);
	char text[400];

	decode_plan_free(plan);
	if (!ok)
		return error_wrap(e, "settings");
	if (!is_object_name(s.deployment) || !is_object_name(s.name_space))
		return error_set(e, ERROR_INVALID,
				 "settings: machineDeployment and namespace: allowed: names of objects of the cluster");
	out->name = s.deployment;
	out->name_space = s.name_space;
	out->probe = "/apis/cluster.x-k8s.io";
	out->owner_plural = "MachineDeployment";
	if (!version)
		return true;
	snprintf(text, sizeof text, "machinedeployments/%.253s", s.deployment);
	out->owner = path(&c->arena, version, &s, text);
	out->list = path(&c->arena, version, &s, "machines");
	snprintf(text, sizeof text, "cluster.x-k8s.io/deployment-name=%.253s", s.deployment);
	out->selector = arena_strdup(&c->arena, text, strlen(text));
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
	.start = object_provider_start,
	.cancel = object_provider_cancel,
};
