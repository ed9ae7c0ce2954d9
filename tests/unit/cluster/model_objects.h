/* Objects as the API server writes them, fed to a model. Texts use ' for ". */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "controller/cluster/model_state.h"

#include <stdio.h>
#include <string.h>

struct object_head {
	const char *name_space, *name, *uid, *version;
};

static const struct field head_fields[] = {
	FIELD(struct object_head, name_space, FIELD_STRING, "metadata>namespace"),
	FIELD(struct object_head, name, FIELD_STRING, "metadata>name"),
	FIELD(struct object_head, uid, FIELD_STRING, "metadata>uid"),
	FIELD(struct object_head, version, FIELD_STRING, "metadata>resourceVersion"),
};
static const struct record_spec head_spec = { "", sizeof(struct object_head), head_fields, 4 };

static inline void decode_json_text(const struct record_spec *spec, const char *text, struct arena *a, void *record)
{
	struct error e = { 0 };
	struct decode_plan *plan = decode_plan_new(spec);
	if (!decode_record(plan, text, strlen(text), a, record, &e))
		fail_msg("%s\n%s", e.message, text);
	decode_plan_free(plan);
}

/* With double quotes, in the arena. */
static inline char *json_text(struct arena *a, const char *text)
{
	char *out = arena_strdup(a, text, strlen(text));
	for (char *at = out; *at != '\0'; at++)
		if (*at == '\'')
			*at = '"';
	return out;
}

struct moment {
	millis at;
	bool is_listed;
};

static inline struct watch_seen seen_of(const struct object_head *head, struct moment when)
{
	return (struct watch_seen){ .uid = object_uid_of(head->uid),
				    .name_space = head->name_space,
				    .name = head->name,
				    .uid_text = head->uid,
				    .resource_version = head->version,
				    .arrived = when.at,
				    .is_from_list = when.is_listed };
}

static inline bool see(struct cluster *c, enum cluster_kind kind, const char *quoted, struct moment when)
{
	static const struct record_spec *const specs[CLUSTER_KIND_COUNT] = {
		[CLUSTER_NODES] = &node_spec,
		[CLUSTER_PODS] = &pod_spec,
		[CLUSTER_BUDGETS] = &budget_spec,
		[CLUSTER_QUOTAS] = &quota_spec,
		[CLUSTER_JOBS] = &job_spec,
		[CLUSTER_JOB_SETS] = &job_set_spec,
		[CLUSTER_POD_GROUPS] = &pod_group_spec,
		[CLUSTER_NATIVE_POD_GROUPS] = &native_pod_group_spec,
		[CLUSTER_VOLCANO_POD_GROUPS] = &pod_group_spec,
		[CLUSTER_KAI_POD_GROUPS] = &pod_group_spec,
		[CLUSTER_KUEUE_WORKLOADS] = &kueue_workload_spec,
		[CLUSTER_NODE_EVENTS] = &node_event_spec,
		[CLUSTER_VOLUME_CLAIMS] = &volume_claim_spec,
		[CLUSTER_VOLUMES] = &volume_spec,
		[CLUSTER_STORAGE_CLASSES] = &storage_class_spec,
		[CLUSTER_NAMESPACES] = &namespace_spec,
		[CLUSTER_RESOURCE_SLICES] = &resource_slice_spec,
		[CLUSTER_DEVICE_CLASSES] = &device_class_spec,
		[CLUSTER_RESOURCE_CLAIMS] = &resource_claim_spec,
	};
	CLEANUP(arena_release) struct arena a = { 0 };
	const char *text = json_text(&a, quoted);
	struct object_head head;
	void *record = arena_alloc(&a, 1, specs[kind]->size);
	decode_json_text(&head_spec, text, &a, &head);
	decode_json_text(specs[kind], text, &a, record);
	struct watch_seen seen = seen_of(&head, when);
	if (kind == CLUSTER_NODE_EVENTS)
		return cluster_node_event_seen(c, record, &seen);
	if (kind == CLUSTER_NODES)
		return cluster_node_seen(c, record, &seen);
	if (kind == CLUSTER_PODS)
		return cluster_pod_seen(c, record, &seen);
	if (kind == CLUSTER_BUDGETS)
		return cluster_budget_seen(c, record, &seen);
	if (kind == CLUSTER_QUOTAS)
		return cluster_quota_seen(c, record, &seen);
	if (kind == CLUSTER_RESOURCE_SLICES)
		return cluster_slice_seen(c, record, &seen);
	if (kind == CLUSTER_DEVICE_CLASSES)
		return cluster_device_class_seen(c, record, &seen);
	if (kind == CLUSTER_RESOURCE_CLAIMS)
		return cluster_device_claim_seen(c, record, &seen);
	if (kind >= CLUSTER_VOLUME_CLAIMS)
		return cluster_needed_seen(c, kind, record, &seen);
	return cluster_workload_seen(c, kind, record, &seen);
}

/* Live, at an instant that does not matter. */
static inline bool see_now(struct cluster *c, enum cluster_kind kind, const char *quoted)
{
	return see(c, kind, quoted, (struct moment){ 1000000, false });
}

static inline struct cluster_group group_named(const char *name, int64_t gpus, int64_t max)
{
	return (struct cluster_group){ .name = name,
				       .provider = "simulated",
				       .label = { "simulated.preheat.dev/node-group", name },
				       .gpus_per_node = gpus,
				       .max = max };
}
