/*
 * Objects of any content through the model, then every question it answers. A line is a kind and an object:
 * n node, p pod, b budget, q quota, j Job, s JobSet, g PodGroup, k Kueue's Workload, l ResourceSlice, d DeviceClass,
 * c ResourceClaim; "-" before it: the object goes.
 */
#include "controller/cluster/model_state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

struct head {
	const char *name_space, *name, *uid;
};

static const struct field head_fields[] = {
	FIELD(struct head, name_space, FIELD_STRING, "metadata>namespace"),
	FIELD(struct head, name, FIELD_STRING, "metadata>name"),
	FIELD(struct head, uid, FIELD_STRING, "metadata>uid"),
};
static const struct record_spec head_spec = { "", sizeof(struct head), head_fields, 3 };

static const struct {
	char letter;
	enum cluster_kind kind;
	const struct record_spec *spec;
} kinds[] = {
	{ 'n', CLUSTER_NODES, &node_spec },
	{ 'p', CLUSTER_PODS, &pod_spec },
	{ 'b', CLUSTER_BUDGETS, &budget_spec },
	{ 'q', CLUSTER_QUOTAS, &quota_spec },
	{ 'j', CLUSTER_JOBS, &job_spec },
	{ 's', CLUSTER_JOB_SETS, &job_set_spec },
	{ 'g', CLUSTER_POD_GROUPS, &pod_group_spec },
	{ 'o', CLUSTER_NATIVE_POD_GROUPS, &native_pod_group_spec },
	{ 'v', CLUSTER_VOLCANO_POD_GROUPS, &pod_group_spec },
	{ 'i', CLUSTER_KAI_POD_GROUPS, &pod_group_spec },
	{ 'k', CLUSTER_KUEUE_WORKLOADS, &kueue_workload_spec },
	{ 'l', CLUSTER_RESOURCE_SLICES, &resource_slice_spec },
	{ 'd', CLUSTER_DEVICE_CLASSES, &device_class_spec },
	{ 'c', CLUSTER_RESOURCE_CLAIMS, &resource_claim_spec },
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static void go(struct cluster *c, enum cluster_kind kind, struct object_uid uid)
{
	if (kind == CLUSTER_NODES)
		cluster_node_gone(c, uid, 2000);
	else if (kind == CLUSTER_PODS)
		cluster_pod_gone(c, uid, 2000);
	else if (kind == CLUSTER_BUDGETS)
		cluster_budget_gone(c, uid);
	else if (kind == CLUSTER_QUOTAS)
		cluster_quota_gone(c, uid);
	else if (kind == CLUSTER_RESOURCE_SLICES)
		cluster_slice_gone(c, uid, 2000);
	else if (kind == CLUSTER_DEVICE_CLASSES)
		cluster_device_class_gone(c, uid, 2000);
	else if (kind == CLUSTER_RESOURCE_CLAIMS)
		cluster_device_claim_gone(c, uid, 2000);
	else
		cluster_workload_gone(c, uid);
}

static void come(struct cluster *c, enum cluster_kind kind, const void *record, const struct watch_seen *seen)
{
	if (kind == CLUSTER_NODES)
		cluster_node_seen(c, record, seen);
	else if (kind == CLUSTER_PODS)
		cluster_pod_seen(c, record, seen);
	else if (kind == CLUSTER_BUDGETS)
		cluster_budget_seen(c, record, seen);
	else if (kind == CLUSTER_QUOTAS)
		cluster_quota_seen(c, record, seen);
	else if (kind == CLUSTER_RESOURCE_SLICES)
		cluster_slice_seen(c, record, seen);
	else if (kind == CLUSTER_DEVICE_CLASSES)
		cluster_device_class_seen(c, record, seen);
	else if (kind == CLUSTER_RESOURCE_CLAIMS)
		cluster_device_claim_seen(c, record, seen);
	else
		cluster_workload_seen(c, kind, record, seen);
}

static void play(struct cluster *c, const char *line, size_t len)
{
	static struct decode_plan *plans[KINDS], *head_plan;
	CLEANUP(arena_release) struct arena a = { 0 };
	struct head head;
	struct error e;
	bool goes = len > 0 && line[0] == '-';
	size_t kind = 0;
	line += goes, len -= goes;
	while (kind < KINDS && (len == 0 || kinds[kind].letter != line[0]))
		kind++;
	if (kind == KINDS)
		return;
	if (head_plan == NULL)
		head_plan = decode_plan_new(&head_spec);
	if (plans[kind] == NULL)
		plans[kind] = decode_plan_new(kinds[kind].spec);
	void *record = arena_alloc(&a, 1, kinds[kind].spec->size);
	if (!decode_record(head_plan, line + 1, len - 1, &a, &head, &e) || head.name == NULL ||
	    !decode_record(plans[kind], line + 1, len - 1, &a, record, &e))
		return;
	struct watch_seen seen = { .uid = object_uid_of(head.uid),
				   .name_space = head.name_space,
				   .name = head.name,
				   .uid_text = head.uid,
				   .arrived = 1000,
				   .is_from_list = len % 2 == 0 };
	if (goes)
		go(c, kinds[kind].kind, seen.uid);
	else
		come(c, kinds[kind].kind, record, &seen);
}

static void set_fleet(struct cluster *c)
{
	static const struct cluster_label selector = { "app", "chat" };
	static const int indexes[] = { 0, 1 };
	const struct cluster_group groups[] = {
		{ .name = "g5", .provider = "eks", .label = { "group", "g5" }, .gpus_per_node = 1, .max = 2 },
		{ .name = "p5", .provider = "eks", .label = { "group", "p5" }, .gpus_per_node = 8, .max = 2 },
	};
	const struct cluster_pool pool = { .name = "chat",
					   .namespace = "llm",
					   .selector = &selector,
					   .selector_count = 1,
					   .gpus_per_replica = 1,
					   .groups = indexes,
					   .group_count = 2 };
	cluster_set_fleet(c, &pool, 1, groups, 2);
}

static void ask(const struct cluster *c)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t count = 0, nodes = 0;
	struct pool_view v = cluster_pool_view(c, 0, &a);
	assert(v.ready >= 0 && v.pending >= 0 && v.unsatisfiable >= 0);
	for (size_t i = 0; i < v.group_count; i++)
		assert(v.groups[i].free_places >= 0 && v.groups[i].placeholder_places >= 0 &&
		       v.groups[i].usable_nodes <= v.groups[i].nodes);
	const struct pending_shape *shapes = cluster_pending(c, &a, &count);
	for (size_t i = 0; i < count; i++) {
		const struct pending_shape *s = &shapes[i];
		/* A place on a node that is there needs no group that could make another. */
		bool may_wait = s->group_count > 0 || s->placed > 0 || s->is_undecided || s->is_incomplete_gang;
		assert(s->count > 0 && (s->why == NULL ? may_wait : s->group_count == 0));
	}
	cluster_gangs(c, &a, &count);
	cluster_quotas(c, &a, &count);
	const struct node **all = cluster_nodes(c, -1, &a, &nodes);
	for (size_t i = 0; i < nodes; i++) {
		struct drain_verdict verdict = cluster_drain(c, all[i], 0, 5000, &a);
		assert(verdict.reason == DRAIN_POSSIBLE || verdict.text[0] != '\0');
		assert(all[i]->gpus_milli >= 0 && all[i]->gpus_used_milli >= 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct cluster *c = cluster_new();
	const char *at = (const char *)bytes, *end = at + len;
	set_fleet(c);
	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t line = (size_t)((stop == NULL ? end : stop) - at);
		play(c, at, line);
		at += line + 1;
	}
	ask(c);
	set_fleet(c);
	ask(c);
	cluster_free(c);
	return 0;
}
