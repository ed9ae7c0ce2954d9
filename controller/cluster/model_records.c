#include "controller/cluster/model_records.h"

#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define LIST(owner, member, where, record)                                                              \
	{                                                                                               \
		.path = (where), .type = FIELD_LIST, .offset = offsetof(owner, member), .of = &(record) \
	}
#define MAP(owner, member, where, filter)                                                                \
	{                                                                                                \
		.path = (where), .type = FIELD_MAP, .offset = offsetof(owner, member), .wants = (filter) \
	}
#define RECORD(record, table)                           \
	{                                               \
		"", sizeof(record), table, COUNT(table) \
	}

static bool is_one_of(const char *key, size_t len, const char *const *names)
{
	for (; *names != NULL; names++)
		if (strlen(*names) == len && memcmp(*names, key, len) == 0)
			return true;
	return false;
}

/* What differs on every node and nobody selects by would keep equal nodes from sharing their labels. */
static bool wants_node_label(const char *key, size_t len)
{
	static const char *const unwanted[] = { "nvidia.com/gfd.timestamp", NULL };
	return !is_one_of(key, len, unwanted);
}

static bool wants_node_annotation(const char *key, size_t len)
{
	static const char *const wanted[] = { "preheat.dev/draining",
					      "cluster-autoscaler.kubernetes.io/scale-down-disabled",
					      "karpenter.sh/do-not-disrupt", "atlassian.com/no-delete", NULL };
	return is_one_of(key, len, wanted);
}

static bool wants_pod_annotation(const char *key, size_t len)
{
	static const char *const wanted[] = { "cluster-autoscaler.kubernetes.io/safe-to-evict",
					      "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes",
					      "cluster-autoscaler.kubernetes.io/daemonset-pod",
					      "karpenter.sh/do-not-disrupt",
					      "controller.kubernetes.io/pod-deletion-cost",
					      "kubernetes.io/config.mirror",
					      "kueue.x-k8s.io/pod-group-total-count",
					      "leaderworkerset.sigs.k8s.io/size",
					      "pod-group.scheduling.sigs.k8s.io/min-available",
					      NULL };
	return is_one_of(key, len, wanted);
}

static bool wants_workload_annotation(const char *key, size_t len)
{
	static const char *const wanted[] = { "preheat.dev/gang", NULL };
	return is_one_of(key, len, wanted);
}

static const struct field taint_fields[] = {
	FIELD(struct taint_record, key, FIELD_STRING, "key"),
	FIELD(struct taint_record, value, FIELD_STRING, "value"),
	FIELD(struct taint_record, effect, FIELD_STRING, "effect"),
};
static const struct record_spec taint_spec = RECORD(struct taint_record, taint_fields);

static const struct field condition_fields[] = {
	FIELD(struct condition_record, type, FIELD_STRING, "type"),
	FIELD(struct condition_record, status, FIELD_STRING, "status"),
	FIELD(struct condition_record, reason, FIELD_STRING, "reason"),
	FIELD(struct condition_record, message, FIELD_STRING, "message"),
	FIELD(struct condition_record, changed_at, FIELD_TIME, "lastTransitionTime"),
};
static const struct record_spec condition_spec = RECORD(struct condition_record, condition_fields);

static const struct field node_fields[] = {
	FIELD(struct node_record, provider_id, FIELD_STRING, "spec>providerID"),
	FIELD(struct node_record, is_unschedulable, FIELD_BOOL, "spec>unschedulable"),
	FIELD(struct node_record, created_at, FIELD_TIME, "metadata>creationTimestamp"),
	FIELD(struct node_record, deleted_at, FIELD_TIME, "metadata>deletionTimestamp"),
	MAP(struct node_record, labels, "metadata>labels", wants_node_label),
	MAP(struct node_record, annotations, "metadata>annotations", wants_node_annotation),
	MAP(struct node_record, allocatable, "status>allocatable", NULL),
	LIST(struct node_record, taints, "spec>taints", taint_spec),
	LIST(struct node_record, conditions, "status>conditions", condition_spec),
};
const struct record_spec node_spec = RECORD(struct node_record, node_fields);

static const struct field notice_fields[] = {
	FIELD(struct notice_record, node, FIELD_STRING, "involvedObject>name"),
	FIELD(struct notice_record, reason, FIELD_STRING, "reason"),
	FIELD(struct notice_record, first_at, FIELD_TIME, "firstTimestamp"),
	FIELD(struct notice_record, last_at, FIELD_TIME, "lastTimestamp"),
	FIELD(struct notice_record, at, FIELD_TIME, "eventTime"),
};
const struct record_spec notice_spec = RECORD(struct notice_record, notice_fields);

static const struct field owner_fields[] = {
	FIELD(struct owner_record, kind, FIELD_STRING, "kind"),
	FIELD(struct owner_record, name, FIELD_STRING, "name"),
	FIELD(struct owner_record, uid, FIELD_STRING, "uid"),
	FIELD(struct owner_record, is_controller, FIELD_BOOL, "controller"),
};
static const struct record_spec owner_spec = RECORD(struct owner_record, owner_fields);

static const struct field toleration_fields[] = {
	FIELD(struct toleration_record, key, FIELD_STRING, "key"),
	FIELD(struct toleration_record, operation, FIELD_STRING, "operator"),
	FIELD(struct toleration_record, value, FIELD_STRING, "value"),
	FIELD(struct toleration_record, effect, FIELD_STRING, "effect"),
};
static const struct record_spec toleration_spec = RECORD(struct toleration_record, toleration_fields);

static const struct field text_fields[] = { FIELD(struct text_record, text, FIELD_STRING, "") };
static const struct record_spec text_spec = RECORD(struct text_record, text_fields);

static const struct field expression_fields[] = {
	FIELD(struct expression_record, key, FIELD_STRING, "key"),
	FIELD(struct expression_record, operation, FIELD_STRING, "operator"),
	LIST(struct expression_record, values, "values", text_spec),
};
static const struct record_spec expression_spec = RECORD(struct expression_record, expression_fields);

static const struct field term_fields[] = {
	LIST(struct term_record, expressions, "matchExpressions", expression_spec),
	LIST(struct term_record, fields, "matchFields", expression_spec),
};
static const struct record_spec term_spec = RECORD(struct term_record, term_fields);

static const struct field container_fields[] = {
	FIELD(struct container_record, image, FIELD_STRING, "image"),
	FIELD(struct container_record, restart_policy, FIELD_STRING, "restartPolicy"),
	MAP(struct container_record, requests, "resources>requests", NULL),
	MAP(struct container_record, limits, "resources>limits", NULL),
};
static const struct record_spec container_spec = RECORD(struct container_record, container_fields);

static const struct field volume_fields[] = {
	FIELD(struct volume_record, name, FIELD_STRING, "name"),
	FIELD(struct volume_record, empty_dir, FIELD_RAW, "emptyDir"),
	FIELD(struct volume_record, host_path, FIELD_RAW, "hostPath"),
};
static const struct record_spec volume_spec = RECORD(struct volume_record, volume_fields);

static const struct field container_status_fields[] = {
	FIELD(struct container_status_record, waiting, FIELD_STRING, "state>waiting>reason"),
	FIELD(struct container_status_record, message, FIELD_STRING, "state>waiting>message"),
	FIELD(struct container_status_record, running_at, FIELD_TIME, "state>running>startedAt"),
};
static const struct record_spec container_status_spec = RECORD(struct container_status_record, container_status_fields);

static const struct field gate_fields[] = { FIELD(struct text_record, text, FIELD_STRING, "name") };
static const struct record_spec gate_spec = RECORD(struct text_record, gate_fields);

#define NODE_AFFINITY "spec>affinity>nodeAffinity>requiredDuringSchedulingIgnoredDuringExecution>nodeSelectorTerms"

static const struct field pod_fields[] = {
	FIELD(struct pod_record, created_at, FIELD_TIME, "metadata>creationTimestamp"),
	FIELD(struct pod_record, deleted_at, FIELD_TIME, "metadata>deletionTimestamp"),
	FIELD(struct pod_record, deletion_grace, FIELD_INT, "metadata>deletionGracePeriodSeconds"),
	FIELD(struct pod_record, grace, FIELD_INT, "spec>terminationGracePeriodSeconds"),
	FIELD(struct pod_record, priority, FIELD_INT, "spec>priority"),
	FIELD(struct pod_record, node_name, FIELD_STRING, "spec>nodeName"),
	FIELD(struct pod_record, phase, FIELD_STRING, "status>phase"),
	FIELD(struct pod_record, ip, FIELD_STRING, "status>podIP"),
	MAP(struct pod_record, labels, "metadata>labels", NULL),
	MAP(struct pod_record, annotations, "metadata>annotations", wants_pod_annotation),
	MAP(struct pod_record, selector, "spec>nodeSelector", NULL),
	MAP(struct pod_record, overhead, "spec>overhead", NULL),
	MAP(struct pod_record, requests, "spec>resources>requests", NULL),
	MAP(struct pod_record, limits, "spec>resources>limits", NULL),
	LIST(struct pod_record, owners, "metadata>ownerReferences", owner_spec),
	LIST(struct pod_record, tolerations, "spec>tolerations", toleration_spec),
	LIST(struct pod_record, terms, NODE_AFFINITY, term_spec),
	LIST(struct pod_record, containers, "spec>containers", container_spec),
	LIST(struct pod_record, init_containers, "spec>initContainers", container_spec),
	LIST(struct pod_record, volumes, "spec>volumes", volume_spec),
	LIST(struct pod_record, gates, "spec>schedulingGates", gate_spec),
	LIST(struct pod_record, conditions, "status>conditions", condition_spec),
	LIST(struct pod_record, statuses, "status>containerStatuses", container_status_spec),
	LIST(struct pod_record, init_statuses, "status>initContainerStatuses", container_status_spec),
};
const struct record_spec pod_spec = RECORD(struct pod_record, pod_fields);

static const struct field budget_fields[] = {
	MAP(struct budget_record, match_labels, "spec>selector>matchLabels", NULL),
	LIST(struct budget_record, expressions, "spec>selector>matchExpressions", expression_spec),
	FIELD(struct budget_record, allowed, FIELD_INT, "status>disruptionsAllowed"),
};
const struct record_spec budget_spec = RECORD(struct budget_record, budget_fields);

static const struct field quota_fields[] = {
	MAP(struct quota_record, hard, "status>hard", NULL),
	MAP(struct quota_record, used, "status>used", NULL),
};
const struct record_spec quota_spec = RECORD(struct quota_record, quota_fields);

static const struct field job_fields[] = {
	LIST(struct workload_record, owners, "metadata>ownerReferences", owner_spec),
	MAP(struct workload_record, annotations, "metadata>annotations", wants_workload_annotation),
	FIELD(struct workload_record, parallelism, FIELD_INT, "spec>parallelism"),
	FIELD(struct workload_record, completions, FIELD_INT, "spec>completions"),
	FIELD(struct workload_record, completion_mode, FIELD_STRING, "spec>completionMode"),
	FIELD(struct workload_record, is_suspended, FIELD_BOOL, "spec>suspend"),
};
const struct record_spec job_spec = RECORD(struct workload_record, job_fields);

static const struct field replicated_job_fields[] = {
	FIELD(struct part_record, replicas, FIELD_INT, "replicas"),
	FIELD(struct part_record, parallelism, FIELD_INT, "template>spec>parallelism"),
};
static const struct record_spec replicated_job_spec = RECORD(struct part_record, replicated_job_fields);

static const struct field job_set_fields[] = {
	FIELD(struct workload_record, is_suspended, FIELD_BOOL, "spec>suspend"),
	LIST(struct workload_record, parts, "spec>replicatedJobs", replicated_job_spec),
};
const struct record_spec job_set_spec = RECORD(struct workload_record, job_set_fields);

static const struct field pod_group_fields[] = {
	FIELD(struct workload_record, least, FIELD_INT, "spec>minMember"),
};
const struct record_spec pod_group_spec = RECORD(struct workload_record, pod_group_fields);

static const struct field pod_set_fields[] = { FIELD(struct part_record, count, FIELD_INT, "count") };
static const struct record_spec pod_set_spec = RECORD(struct part_record, pod_set_fields);

static const struct field kueue_workload_fields[] = {
	LIST(struct workload_record, owners, "metadata>ownerReferences", owner_spec),
	LIST(struct workload_record, parts, "spec>podSets", pod_set_spec),
	LIST(struct workload_record, conditions, "status>conditions", condition_spec),
};
const struct record_spec kueue_workload_spec = RECORD(struct workload_record, kueue_workload_fields);

const char *decoded_get(const struct decoded_map *map, const char *key)
{
	for (size_t i = 0; i < map->count; i++)
		if (strcmp(map->pairs[i].key, key) == 0)
			return map->pairs[i].value;
	return NULL;
}

const struct condition_record *condition_of(const struct decoded_list *conditions, const char *type)
{
	const struct condition_record *items = conditions->items;
	for (size_t i = 0; i < conditions->count; i++)
		if (items[i].type != NULL && strcmp(items[i].type, type) == 0)
			return &items[i];
	return NULL;
}
