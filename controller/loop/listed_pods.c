#include "controller/loop/listed_pods.h"

#include "base/decode.h"

#include <stddef.h>
#include <string.h>

struct listed_owner {
	const char *kind;
	bool is_controller;
};

struct listed_pod {
	const char *node, *phase, *mirror, *as_daemon;
	struct decoded_list owners;
};

struct pod_list {
	struct decoded_list pods;
};

static const struct field owner_fields[] = {
	FIELD(struct listed_owner, kind, FIELD_STRING, "kind"),
	FIELD(struct listed_owner, is_controller, FIELD_BOOL, "controller"),
};
static const struct record_spec owner_record = { "", sizeof(struct listed_owner), owner_fields, 2 };

static const struct field pod_fields[] = {
	FIELD(struct listed_pod, node, FIELD_STRING, "spec>nodeName"),
	FIELD(struct listed_pod, phase, FIELD_STRING, "status>phase"),
	FIELD(struct listed_pod, mirror, FIELD_STRING, "metadata>annotations>kubernetes.io/config.mirror"),
	FIELD(struct listed_pod, as_daemon, FIELD_STRING,
	      "metadata>annotations>cluster-autoscaler.kubernetes.io/daemonset-pod"),
	{ .path = "metadata>ownerReferences",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct listed_pod, owners),
	  .of = &owner_record },
};
static const struct record_spec pod_record = { "", sizeof(struct listed_pod), pod_fields, 5 };

static const struct field list_fields[] = {
	{ .path = "items",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct pod_list, pods),
	  .of = &pod_record,
	  .required = true },
};
static const struct record_spec list_record = { "", sizeof(struct pod_list), list_fields, 1 };

static bool is_word(const char *text, const char *word)
{
	return text && !strcmp(text, word);
}

static bool keeps_node(const struct listed_pod *p, const char *node)
{
	const struct listed_owner *owners = p->owners.items;

	if (!is_word(p->node, node) || is_word(p->phase, "Succeeded") || is_word(p->phase, "Failed") || p->mirror ||
	    is_word(p->as_daemon, "true"))
		return false;
	for (size_t i = 0; i < p->owners.count; i++)
		if (owners[i].is_controller &&
		    (is_word(owners[i].kind, "DaemonSet") || is_word(owners[i].kind, "Node")))
			return false;
	return true;
}

bool listed_pods_count(const char *node, const char *text, size_t len, int64_t *count, struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct decode_plan *plan = decode_plan_new(&list_record);
	struct pod_list list = { 0 };
	bool ok = decode_record(plan, text, len, &a, &list, e);
	const struct listed_pod *pods = list.pods.items;

	decode_plan_free(plan);
	*count = 0;
	for (size_t i = 0; ok && i < list.pods.count; i++)
		*count += keeps_node(&pods[i], node);
	return ok;
}
