#include "controller/cluster/protobuf_answer.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

/* The messages of Kubernetes, as far as we read them. */

#define MESSAGE(variable, type, fields) \
	static const struct protobuf_message variable = { type, fields, sizeof fields / sizeof *fields }
#define META "k8s.io.apimachinery.pkg.apis.meta.v1."
#define CORE "k8s.io.api.core.v1."

#define TEXT(number, name)                               \
	{                                                \
		name, number, PROTOBUF_TEXT, false, NULL \
	}
#define TEXTS(number, name)                             \
	{                                               \
		name, number, PROTOBUF_TEXT, true, NULL \
	}
#define INT(number, name)                               \
	{                                               \
		name, number, PROTOBUF_INT, false, NULL \
	}
#define BOOL(number, name)                               \
	{                                                \
		name, number, PROTOBUF_BOOL, false, NULL \
	}
#define TIME(number, name)                               \
	{                                                \
		name, number, PROTOBUF_TIME, false, NULL \
	}
#define MAP(number, name)                               \
	{                                               \
		name, number, PROTOBUF_MAP, false, NULL \
	}
#define QUANTITIES(number, name)                                 \
	{                                                        \
		name, number, PROTOBUF_QUANTITY_MAP, false, NULL \
	}
#define ONE(number, name, of)                                \
	{                                                    \
		name, number, PROTOBUF_MESSAGE, false, &(of) \
	}
#define MANY(number, name, of)                              \
	{                                                   \
		name, number, PROTOBUF_MESSAGE, true, &(of) \
	}
#define INLINED(number, name, of)                           \
	{                                                   \
		name, number, PROTOBUF_INLINE, false, &(of) \
	}

/* meta/v1 */
static const struct protobuf_field owner_fields[] = { TEXT(1, "kind"), TEXT(3, "name"), TEXT(4, "uid"),
						      BOOL(6, "controller") };
MESSAGE(owner, META "OwnerReference", owner_fields);
static const struct protobuf_field meta_fields[] = { TEXT(1, "name"),
						     TEXT(3, "namespace"),
						     TEXT(5, "uid"),
						     TEXT(6, "resourceVersion"),
						     TIME(8, "creationTimestamp"),
						     TIME(9, "deletionTimestamp"),
						     INT(10, "deletionGracePeriodSeconds"),
						     MAP(11, "labels"),
						     MAP(12, "annotations"),
						     MANY(13, "ownerReferences", owner) };
MESSAGE(meta, META "ObjectMeta", meta_fields);
static const struct protobuf_field list_meta_fields[] = { TEXT(2, "resourceVersion"), TEXT(3, "continue") };
MESSAGE(list_meta, META "ListMeta", list_meta_fields);
static const struct protobuf_field requirement_fields[] = { TEXT(1, "key"), TEXT(2, "operator"), TEXTS(3, "values") };
MESSAGE(requirement, META "LabelSelectorRequirement", requirement_fields);
static const struct protobuf_field selector_fields[] = { MAP(1, "matchLabels"),
							 MANY(2, "matchExpressions", requirement) };
MESSAGE(selector, META "LabelSelector", selector_fields);
static const struct protobuf_field cause_fields[] = { TEXT(1, "reason"), TEXT(2, "message"), TEXT(3, "field") };
MESSAGE(cause, META "StatusCause", cause_fields);
static const struct protobuf_field details_fields[] = { TEXT(1, "name"), TEXT(3, "kind"), MANY(4, "causes", cause),
							INT(5, "retryAfterSeconds") };
MESSAGE(details, META "StatusDetails", details_fields);
static const struct protobuf_field status_fields[] = { TEXT(2, "status"), TEXT(3, "message"), TEXT(4, "reason"),
						       ONE(5, "details", details), INT(6, "code") };
MESSAGE(status, META "Status", status_fields);

/* Nodes */
static const struct protobuf_field taint_fields[] = { TEXT(1, "key"), TEXT(2, "value"), TEXT(3, "effect") };
MESSAGE(taint, CORE "Taint", taint_fields);
static const struct protobuf_field node_condition_fields[] = { TEXT(1, "type"), TEXT(2, "status"),
							       TIME(4, "lastTransitionTime"), TEXT(5, "reason"),
							       TEXT(6, "message") };
MESSAGE(node_condition, CORE "NodeCondition", node_condition_fields);
static const struct protobuf_field node_spec_fields[] = { TEXT(3, "providerID"), BOOL(4, "unschedulable"),
							  MANY(5, "taints", taint) };
MESSAGE(node_spec_message, CORE "NodeSpec", node_spec_fields);
static const struct protobuf_field node_status_fields[] = { QUANTITIES(1, "capacity"), QUANTITIES(2, "allocatable"),
							    MANY(4, "conditions", node_condition) };
MESSAGE(node_status, CORE "NodeStatus", node_status_fields);
static const struct protobuf_field node_fields[] = { ONE(1, "metadata", meta), ONE(2, "spec", node_spec_message),
						     ONE(3, "status", node_status) };
MESSAGE(node, CORE "Node", node_fields);

/* Where pods may stand */
static const struct protobuf_field expression_fields[] = { TEXT(1, "key"), TEXT(2, "operator"), TEXTS(3, "values") };
MESSAGE(expression, CORE "NodeSelectorRequirement", expression_fields);
static const struct protobuf_field node_term_fields[] = { MANY(1, "matchExpressions", expression),
							  MANY(2, "matchFields", expression) };
MESSAGE(node_term, CORE "NodeSelectorTerm", node_term_fields);
static const struct protobuf_field node_selector_fields[] = { MANY(1, "nodeSelectorTerms", node_term) };
MESSAGE(node_selector, CORE "NodeSelector", node_selector_fields);
static const struct protobuf_field node_affinity_fields[] = { ONE(1, "requiredDuringSchedulingIgnoredDuringExecution",
								  node_selector) };
MESSAGE(node_affinity, CORE "NodeAffinity", node_affinity_fields);
static const struct protobuf_field pod_term_fields[] = { ONE(1, "labelSelector", selector), TEXTS(2, "namespaces"),
							 TEXT(3, "topologyKey"),
							 ONE(4, "namespaceSelector", selector) };
MESSAGE(pod_term, CORE "PodAffinityTerm", pod_term_fields);
static const struct protobuf_field pod_affinity_fields[] = { MANY(1, "requiredDuringSchedulingIgnoredDuringExecution",
								  pod_term) };
MESSAGE(pod_affinity, CORE "PodAffinity", pod_affinity_fields);
MESSAGE(pod_anti_affinity, CORE "PodAntiAffinity", pod_affinity_fields);
static const struct protobuf_field affinity_fields[] = { ONE(1, "nodeAffinity", node_affinity),
							 ONE(2, "podAffinity", pod_affinity),
							 ONE(3, "podAntiAffinity", pod_anti_affinity) };
MESSAGE(affinity, CORE "Affinity", affinity_fields);
static const struct protobuf_field toleration_fields[] = { TEXT(1, "key"), TEXT(2, "operator"), TEXT(3, "value"),
							   TEXT(4, "effect") };
MESSAGE(toleration, CORE "Toleration", toleration_fields);
static const struct protobuf_field spread_fields[] = { INT(1, "maxSkew"),
						       TEXT(2, "topologyKey"),
						       TEXT(3, "whenUnsatisfiable"),
						       ONE(4, "labelSelector", selector),
						       INT(5, "minDomains"),
						       TEXT(6, "nodeAffinityPolicy"),
						       TEXT(7, "nodeTaintsPolicy"),
						       TEXTS(8, "matchLabelKeys") };
MESSAGE(spread, CORE "TopologySpreadConstraint", spread_fields);

/* Pods */
static const struct protobuf_field requirements_fields[] = { QUANTITIES(1, "limits"), QUANTITIES(2, "requests") };
MESSAGE(requirements, CORE "ResourceRequirements", requirements_fields);
static const struct protobuf_field port_fields[] = { INT(2, "hostPort"), INT(3, "containerPort"), TEXT(4, "protocol"),
						     TEXT(5, "hostIP") };
MESSAGE(port, CORE "ContainerPort", port_fields);
static const struct protobuf_field container_fields[] = { TEXT(1, "name"), TEXT(2, "image"), MANY(6, "ports", port),
							  ONE(8, "resources", requirements),
							  TEXT(24, "restartPolicy") };
MESSAGE(container, CORE "Container", container_fields);
static const struct protobuf_field host_path_fields[] = { TEXT(1, "path") };
MESSAGE(host_path, CORE "HostPathVolumeSource", host_path_fields);
static const struct protobuf_field empty_dir_fields[] = { TEXT(1, "medium") };
MESSAGE(empty_dir, CORE "EmptyDirVolumeSource", empty_dir_fields);
static const struct protobuf_field claim_source_fields[] = { TEXT(1, "claimName") };
MESSAGE(claim_source, CORE "PersistentVolumeClaimVolumeSource", claim_source_fields);
static const struct protobuf_message ephemeral = { CORE "EphemeralVolumeSource", NULL, 0 }; /* that it is there */
static const struct protobuf_field volume_source_fields[] = { ONE(1, "hostPath", host_path),
							      ONE(2, "emptyDir", empty_dir),
							      ONE(10, "persistentVolumeClaim", claim_source),
							      ONE(29, "ephemeral", ephemeral) };
MESSAGE(volume_source, CORE "VolumeSource", volume_source_fields);
static const struct protobuf_field pod_volume_fields[] = { TEXT(1, "name"), INLINED(2, "volumeSource", volume_source) };
MESSAGE(pod_volume, CORE "Volume", pod_volume_fields);
static const struct protobuf_field pod_claim_fields[] = { TEXT(1, "name"), TEXT(3, "resourceClaimName") };
MESSAGE(pod_claim, CORE "PodResourceClaim", pod_claim_fields);
static const struct protobuf_field made_claim_fields[] = { TEXT(1, "name"), TEXT(2, "resourceClaimName") };
MESSAGE(made_claim, CORE "PodResourceClaimStatus", made_claim_fields);
static const struct protobuf_field gate_fields[] = { TEXT(1, "name") };
MESSAGE(gate, CORE "PodSchedulingGate", gate_fields);
static const struct protobuf_field scheduling_group_fields[] = { TEXT(1, "podGroupName") };
MESSAGE(scheduling_group, CORE "PodSchedulingGroup", scheduling_group_fields);
static const struct protobuf_field pod_spec_fields[] = { MANY(1, "volumes", pod_volume),
							 MANY(2, "containers", container),
							 INT(4, "terminationGracePeriodSeconds"),
							 MAP(7, "nodeSelector"),
							 TEXT(10, "nodeName"),
							 ONE(18, "affinity", affinity),
							 TEXT(19, "schedulerName"),
							 MANY(20, "initContainers", container),
							 MANY(22, "tolerations", toleration),
							 INT(25, "priority"),
							 QUANTITIES(32, "overhead"),
							 MANY(33, "topologySpreadConstraints", spread),
							 MANY(38, "schedulingGates", gate),
							 MANY(39, "resourceClaims", pod_claim),
							 ONE(40, "resources", requirements),
							 ONE(43, "schedulingGroup", scheduling_group) };
MESSAGE(pod_spec_message, CORE "PodSpec", pod_spec_fields);
static const struct protobuf_field pod_condition_fields[] = { TEXT(1, "type"), TEXT(2, "status"),
							      TIME(4, "lastTransitionTime"), TEXT(5, "reason"),
							      TEXT(6, "message") };
MESSAGE(pod_condition, CORE "PodCondition", pod_condition_fields);
static const struct protobuf_field waiting_fields[] = { TEXT(1, "reason"), TEXT(2, "message") };
MESSAGE(waiting, CORE "ContainerStateWaiting", waiting_fields);
static const struct protobuf_field running_fields[] = { TIME(1, "startedAt") };
MESSAGE(running, CORE "ContainerStateRunning", running_fields);
static const struct protobuf_field container_state_fields[] = { ONE(1, "waiting", waiting),
								ONE(2, "running", running) };
MESSAGE(container_state, CORE "ContainerState", container_state_fields);
static const struct protobuf_field container_status_fields[] = { TEXT(1, "name"), ONE(2, "state", container_state) };
MESSAGE(container_status, CORE "ContainerStatus", container_status_fields);
static const struct protobuf_field pod_status_fields[] = { TEXT(1, "phase"),
							   MANY(2, "conditions", pod_condition),
							   TEXT(6, "podIP"),
							   MANY(8, "containerStatuses", container_status),
							   MANY(10, "initContainerStatuses", container_status),
							   TEXT(11, "nominatedNodeName"),
							   MANY(15, "resourceClaimStatuses", made_claim) };
MESSAGE(pod_status, CORE "PodStatus", pod_status_fields);
static const struct protobuf_field pod_fields[] = { ONE(1, "metadata", meta), ONE(2, "spec", pod_spec_message),
						    ONE(3, "status", pod_status) };
MESSAGE(pod, CORE "Pod", pod_fields);

/* Events */
static const struct protobuf_field reference_fields[] = { TEXT(2, "namespace"), TEXT(3, "name") };
MESSAGE(reference, CORE "ObjectReference", reference_fields);
static const struct protobuf_field event_fields[] = { ONE(1, "metadata", meta), ONE(2, "involvedObject", reference),
						      TEXT(3, "reason"),	TIME(6, "firstTimestamp"),
						      TIME(7, "lastTimestamp"), TIME(10, "eventTime") };
MESSAGE(event, CORE "Event", event_fields);

/* Volumes, claims and what else the scheduler looks at */
static const struct protobuf_field claim_requests_fields[] = { QUANTITIES(2, "requests") };
MESSAGE(claim_requests, CORE "VolumeResourceRequirements", claim_requests_fields);
static const struct protobuf_field claim_spec_fields[] = { ONE(2, "resources", claim_requests), TEXT(3, "volumeName"),
							   TEXT(5, "storageClassName") };
MESSAGE(claim_spec, CORE "PersistentVolumeClaimSpec", claim_spec_fields);
static const struct protobuf_field claim_status_fields[] = { TEXT(1, "phase") };
MESSAGE(claim_status, CORE "PersistentVolumeClaimStatus", claim_status_fields);
static const struct protobuf_field claim_fields[] = { ONE(1, "metadata", meta), ONE(2, "spec", claim_spec),
						      ONE(3, "status", claim_status) };
MESSAGE(claim, CORE "PersistentVolumeClaim", claim_fields);
static const struct protobuf_field volume_affinity_fields[] = { ONE(1, "required", node_selector) };
MESSAGE(volume_affinity, CORE "VolumeNodeAffinity", volume_affinity_fields);
static const struct protobuf_field volume_spec_fields[] = { QUANTITIES(1, "capacity"), ONE(4, "claimRef", reference),
							    TEXT(6, "storageClassName"),
							    ONE(9, "nodeAffinity", volume_affinity) };
MESSAGE(volume_spec_message, CORE "PersistentVolumeSpec", volume_spec_fields);
static const struct protobuf_field volume_status_fields[] = { TEXT(1, "phase") };
MESSAGE(volume_status, CORE "PersistentVolumeStatus", volume_status_fields);
static const struct protobuf_field volume_fields[] = { ONE(1, "metadata", meta), ONE(2, "spec", volume_spec_message),
						       ONE(3, "status", volume_status) };
MESSAGE(volume, CORE "PersistentVolume", volume_fields);
static const struct protobuf_field topology_expression_fields[] = { TEXT(1, "key"), TEXTS(2, "values") };
MESSAGE(topology_expression, CORE "TopologySelectorLabelRequirement", topology_expression_fields);
static const struct protobuf_field topology_fields[] = { MANY(1, "matchLabelExpressions", topology_expression) };
MESSAGE(topology, CORE "TopologySelectorTerm", topology_fields);
static const struct protobuf_field storage_class_fields[] = { ONE(1, "metadata", meta), TEXT(2, "provisioner"),
							      TEXT(7, "volumeBindingMode"),
							      MANY(8, "allowedTopologies", topology) };
MESSAGE(storage_class, "k8s.io.api.storage.v1.StorageClass", storage_class_fields);
static const struct protobuf_field namespace_fields[] = { ONE(1, "metadata", meta) };
MESSAGE(namespace_message, CORE "Namespace", namespace_fields);
static const struct protobuf_field quota_status_fields[] = { QUANTITIES(1, "hard"), QUANTITIES(2, "used") };
MESSAGE(quota_status, CORE "ResourceQuotaStatus", quota_status_fields);
static const struct protobuf_field quota_fields[] = { ONE(1, "metadata", meta), ONE(3, "status", quota_status) };
MESSAGE(quota, CORE "ResourceQuota", quota_fields);
static const struct protobuf_field budget_spec_fields[] = { ONE(2, "selector", selector),
							    TEXT(4, "unhealthyPodEvictionPolicy") };
MESSAGE(budget_spec_message, "k8s.io.api.policy.v1.PodDisruptionBudgetSpec", budget_spec_fields);
static const struct protobuf_field budget_status_fields[] = { INT(3, "disruptionsAllowed"), INT(4, "currentHealthy"),
							      INT(5, "desiredHealthy") };
MESSAGE(budget_status, "k8s.io.api.policy.v1.PodDisruptionBudgetStatus", budget_status_fields);
static const struct protobuf_field budget_fields[] = { ONE(1, "metadata", meta), ONE(2, "spec", budget_spec_message),
						       ONE(3, "status", budget_status) };
MESSAGE(budget, "k8s.io.api.policy.v1.PodDisruptionBudget", budget_fields);
static const struct protobuf_field job_spec_fields[] = { INT(1, "parallelism"), INT(2, "completions"),
							 TEXT(9, "completionMode"), BOOL(10, "suspend") };
MESSAGE(job_spec_message, "k8s.io.api.batch.v1.JobSpec", job_spec_fields);
static const struct protobuf_field job_fields[] = { ONE(1, "metadata", meta), ONE(2, "spec", job_spec_message) };
MESSAGE(job, "k8s.io.api.batch.v1.Job", job_fields);
static const struct protobuf_field result_fields[] = { TEXT(2, "driver"), TEXT(4, "device"), BOOL(5, "adminAccess") };
MESSAGE(result, "k8s.io.api.resource.v1.DeviceRequestAllocationResult", result_fields);
static const struct protobuf_field devices_fields[] = { MANY(1, "results", result) };
MESSAGE(devices, "k8s.io.api.resource.v1.DeviceAllocationResult", devices_fields);
static const struct protobuf_field allocation_fields[] = { ONE(1, "devices", devices),
							   ONE(3, "nodeSelector", node_selector) };
MESSAGE(allocation, "k8s.io.api.resource.v1.AllocationResult", allocation_fields);
static const struct protobuf_field consumer_fields[] = { TEXT(4, "name"), TEXT(5, "uid") };
MESSAGE(consumer, "k8s.io.api.resource.v1.ResourceClaimConsumerReference", consumer_fields);
static const struct protobuf_field device_claim_status_fields[] = { ONE(1, "allocation", allocation),
								    MANY(2, "reservedFor", consumer) };
MESSAGE(device_claim_status, "k8s.io.api.resource.v1.ResourceClaimStatus", device_claim_status_fields);
static const struct protobuf_field cel_fields[] = { TEXT(1, "expression") };
MESSAGE(cel, "k8s.io.api.resource.v1.CELDeviceSelector", cel_fields);
static const struct protobuf_field device_selector_fields[] = { ONE(1, "cel", cel) };
MESSAGE(device_selector, "k8s.io.api.resource.v1.DeviceSelector", device_selector_fields);
static const struct protobuf_field alternative_fields[] = { TEXT(2, "deviceClassName"), TEXT(4, "allocationMode"),
							    INT(5, "count") };
MESSAGE(alternative, "k8s.io.api.resource.v1.DeviceSubRequest", alternative_fields);
static const struct protobuf_field exactly_fields[] = { TEXT(1, "deviceClassName"),
							MANY(2, "selectors", device_selector),
							TEXT(3, "allocationMode"), INT(4, "count"),
							BOOL(5, "adminAccess") };
MESSAGE(exactly, "k8s.io.api.resource.v1.ExactDeviceRequest", exactly_fields);
static const struct protobuf_field device_request_fields[] = { ONE(2, "exactly", exactly),
							       MANY(3, "firstAvailable", alternative) };
MESSAGE(device_request, "k8s.io.api.resource.v1.DeviceRequest", device_request_fields);
static const struct protobuf_field constraint_fields[] = { TEXT(2, "matchAttribute") };
MESSAGE(constraint, "k8s.io.api.resource.v1.DeviceConstraint", constraint_fields);
static const struct protobuf_field claimed_fields[] = { MANY(1, "requests", device_request),
							MANY(2, "constraints", constraint) };
MESSAGE(claimed, "k8s.io.api.resource.v1.DeviceClaim", claimed_fields);
static const struct protobuf_field device_claim_spec_fields[] = { ONE(1, "devices", claimed) };
MESSAGE(device_claim_spec, "k8s.io.api.resource.v1.ResourceClaimSpec", device_claim_spec_fields);
static const struct protobuf_field device_claim_fields[] = { ONE(1, "metadata", meta),
							     ONE(2, "spec", device_claim_spec),
							     ONE(3, "status", device_claim_status) };
MESSAGE(device_claim, "k8s.io.api.resource.v1.ResourceClaim", device_claim_fields);

const struct protobuf_message *const protobuf_messages[] = {
	&node,	&pod,	 &event, &claim,	&volume, &storage_class, &namespace_message,
	&quota, &budget, &job,	 &device_claim, &status, NULL,
};

static const struct {
	const char *path;
	const struct protobuf_message *message;
} resources[] = {
	{ "/api/v1/nodes", &node },
	{ "/api/v1/pods", &pod },
	{ "/api/v1/events", &event },
	{ "/api/v1/persistentvolumeclaims", &claim },
	{ "/api/v1/persistentvolumes", &volume },
	{ "/api/v1/namespaces", &namespace_message },
	{ "/api/v1/resourcequotas", &quota },
	{ "/apis/policy/v1/poddisruptionbudgets", &budget },
	{ "/apis/batch/v1/jobs", &job },
	{ "/apis/storage.k8s.io/v1/storageclasses", &storage_class },
	{ "/apis/resource.k8s.io/v1/resourceclaims", &device_claim },
};

const struct protobuf_message *protobuf_message_of(const char *path)
{
	for (size_t i = 0; i < sizeof resources / sizeof *resources; i++)
		if (!strcmp(resources[i].path, path))
			return resources[i].message;
	return NULL;
}

/* The envelopes. */

/* Every object stands behind this, in a runtime.Unknown: typeMeta = 1, raw = 2. */
static const char magic[4] = { 'k', '8', 's', 0 };
enum { UNKNOWN_RAW = 2, LIST_META = 1, LIST_ITEMS = 2, EVENT_TYPE = 1, EVENT_OBJECT = 2, EXTENSION_RAW = 1 };

/* The bytes of field `number` of a message that is all there; size 0 where it does not come. */
static bool find_part(struct decoded_text message, uint32_t number, struct decoded_text *out)
{
	*out = (struct decoded_text){ "", 0 };
	while (message.len) {
		struct protobuf_part part;
		if (protobuf_part_at(message.text, message.len, &part) != PROTOBUF_PART ||
		    part.size > message.len - part.head)
			return false;
		if (part.number == number && part.has_bytes)
			*out = (struct decoded_text){ message.text + part.head, part.size };
		message.text += part.head + part.size;
		message.len -= part.head + part.size;
	}
	return true;
}

static bool has_magic(struct decoded_text t)
{
	return t.len >= sizeof magic && !memcmp(t.text, magic, sizeof magic);
}

static bool open_envelope(struct decoded_text t, struct decoded_text *raw)
{
	return has_magic(t) &&
	       find_part((struct decoded_text){ t.text + sizeof magic, t.len - sizeof magic }, UNKNOWN_RAW, raw);
}

void protobuf_status(const char *bytes, size_t len, struct buf *out)
{
	struct decoded_text raw;
	struct error e;

	buf_clear(out);
	if (open_envelope((struct decoded_text){ bytes, len }, &raw) &&
	    !protobuf_to_json(&status, raw.text, raw.len, out, &e))
		buf_clear(out);
}

/* Streams. */

enum level { AT_START, IN_UNKNOWN, IN_LIST, IN_WATCH };

struct protobuf_answer {
	struct protobuf_reader reader;
	enum level level;
	bool has_list;
	size_t list_left;   /* bytes of the list that are still to come, those of `pending` among them */
	struct buf pending; /* what is not used yet */
	size_t used;	    /* of pending */
	struct buf json;
};

struct protobuf_answer *protobuf_answer_open(const struct protobuf_reader *r)
{
	struct protobuf_answer *a = xcalloc(1, sizeof *a);

	a->reader = *r;
	a->level = r->is_watch ? IN_WATCH : AT_START;
	return a;
}

void protobuf_answer_close(struct protobuf_answer *a)
{
	if (!a)
		return;
	buf_release(&a->pending);
	buf_release(&a->json);
	free(a);
}

static bool is_broken(const struct protobuf_answer *a, const char *what, struct error *e)
{
	return error_set(e, ERROR_INVALID, "%s: %s", a->reader.name, what);
}

static struct decoded_text json_of(const struct protobuf_answer *a)
{
	return (struct decoded_text){ a->json.text, a->json.len };
}

static bool to_json(struct protobuf_answer *a, const struct protobuf_message *m, struct decoded_text bytes,
		    struct error *e)
{
	buf_clear(&a->json);
	return protobuf_to_json(m, bytes.text, bytes.len, &a->json, e) || error_wrap(e, "%s", a->reader.name);
}

static bool take_item(struct protobuf_answer *a, struct decoded_text bytes, struct error *e)
{
	return to_json(a, a->reader.object, bytes, e) && a->reader.on_object(a->reader.user, NULL, json_of(a), e);
}

static bool take_list_meta(struct protobuf_answer *a, struct decoded_text bytes, struct error *e)
{
	buf_clear(&a->json);
	buf_text(&a->json, "{\"metadata\":");
	if (!protobuf_to_json(&list_meta, bytes.text, bytes.len, &a->json, e))
		return error_wrap(e, "%s", a->reader.name);
	buf_text(&a->json, "}");
	return a->reader.on_list(a->reader.user, json_of(a), e);
}

static bool take_event(struct protobuf_answer *a, struct decoded_text frame, struct error *e)
{
	struct decoded_text type, extension, envelope, raw;
	char name[16];

	if (!find_part(frame, EVENT_TYPE, &type) || !find_part(frame, EVENT_OBJECT, &extension) ||
	    !find_part(extension, EXTENSION_RAW, &envelope) || !open_envelope(envelope, &raw) || !type.len ||
	    type.len >= sizeof name)
		return is_broken(a, "no event of a watch", e);
	memcpy(name, type.text, type.len);
	name[type.len] = '\0';
	return to_json(a, strcmp(name, "ERROR") ? a->reader.object : &status, raw, e) &&
	       a->reader.on_object(a->reader.user, name, json_of(a), e);
}

/* One step over what is pending. Sets *more where more bytes are needed. */

static bool next_frame(struct protobuf_answer *a, const char *at, size_t len, bool *more, struct error *e)
{
	enum { PREFIX = 4 }; /* its length, big-endian */

	*more = len < PREFIX;
	if (*more)
		return true;
	const unsigned char *b = (const unsigned char *)at;
	size_t size = (size_t)b[0] << 24 | (size_t)b[1] << 16 | (size_t)b[2] << 8 | b[3];
	if (size > DECODE_RECORD_CAP)
		return is_broken(a, "an event of more than 8 MiB", e);
	*more = len - PREFIX < size;
	if (*more)
		return true;
	a->used += PREFIX + size;
	return take_event(a, (struct decoded_text){ at + PREFIX, size }, e);
}

static bool take_part(struct protobuf_answer *a, const struct protobuf_part *part, const char *value, struct error *e)
{
	struct decoded_text bytes = { value, part->size };

	if (a->level != IN_LIST || !part->has_bytes)
		return true;
	if (part->number == LIST_META)
		return take_list_meta(a, bytes, e);
	return part->number != LIST_ITEMS || take_item(a, bytes, e);
}

static bool next_part(struct protobuf_answer *a, const char *at, size_t len, bool *more, struct error *e)
{
	struct protobuf_part part;
	bool is_in_list = a->level == IN_LIST;
	size_t most = is_in_list && a->list_left < len ? a->list_left : len;
	enum protobuf_cut cut = protobuf_part_at(at, most, &part);

	*more = cut == PROTOBUF_MORE && most == len;
	if (*more)
		return true;
	if (cut != PROTOBUF_PART || (is_in_list && part.size > a->list_left - part.head))
		return is_broken(a, "no list in Protobuf", e);
	if (!is_in_list && part.number == UNKNOWN_RAW && part.has_bytes) {
		a->used += part.head;
		a->list_left = part.size;
		a->level = part.size ? IN_LIST : IN_UNKNOWN;
		a->has_list = true;
		return true;
	}
	if (part.size > DECODE_RECORD_CAP)
		return is_broken(a, "an object of more than 8 MiB", e);
	*more = part.size > len - part.head;
	if (*more)
		return true;
	a->used += part.head + part.size;
	if (is_in_list)
		a->list_left -= part.head + part.size;
	bool ok = take_part(a, &part, at + part.head, e);
	if (is_in_list && !a->list_left)
		a->level = IN_UNKNOWN;
	return ok;
}

static bool begin_list(struct protobuf_answer *a, const char *at, size_t len, bool *more, struct error *e)
{
	*more = len < sizeof magic;
	if (*more)
		return true;
	a->used += sizeof magic;
	a->level = IN_UNKNOWN;
	return has_magic((struct decoded_text){ at, len }) || is_broken(a, "no answer in Protobuf", e);
}

static bool step(struct protobuf_answer *a, bool *more, struct error *e)
{
	const char *at = a->pending.text + a->used;
	size_t len = a->pending.len - a->used;

	if (!len) {
		*more = true;
		return true;
	}
	switch (a->level) {
	case AT_START:
		return begin_list(a, at, len, more, e);
	case IN_WATCH:
		return next_frame(a, at, len, more, e);
	case IN_UNKNOWN:
	case IN_LIST:
		break;
	}
	return next_part(a, at, len, more, e);
}

bool protobuf_answer_feed(struct protobuf_answer *a, const char *bytes, size_t len, struct error *e)
{
	bool more = false, ok = true;

	buf_append(&a->pending, bytes, len);
	while (ok && !more)
		ok = step(a, &more, e);
	buf_drop(&a->pending, a->used);
	a->used = 0;
	return ok;
}

bool protobuf_answer_finish(struct protobuf_answer *a, struct error *e)
{
	bool is_whole = !a->pending.len && (a->reader.is_watch || (a->level == IN_UNKNOWN && a->has_list));

	return is_whole || is_broken(a, "the answer ends in the middle", e);
}
