#include "providers/eks_answer.h"

#include "base/quote.h"

#include <inttypes.h>
#include <string.h>

struct tag_text {
	const char *key;
};

struct process_text {
	const char *name;
};

struct text {
	const char *text;
};

struct group_text {
	const char *name;
	int64_t min, max, desired, pool_prepared;
	struct xml_list instances, zones, tags, suspended;
};

struct pool_text {
	int64_t least, prepared;
	const char *state, *status;
	bool reuses;
};

static const struct xml_field instance_fields[] = {
	XML_NEEDED(struct eks_instance, id, XML_STRING, "InstanceId"),
	XML_NEEDED(struct eks_instance, state, XML_STRING, "LifecycleState"),
	XML_FIELD(struct eks_instance, type, XML_STRING, "InstanceType"),
	XML_FIELD(struct eks_instance, zone, XML_STRING, "AvailabilityZone"),
	XML_FIELD(struct eks_instance, weight, XML_STRING, "WeightedCapacity"),
	XML_FIELD(struct eks_instance, is_protected, XML_BOOL, "ProtectedFromScaleIn"),
};
static const struct xml_table instance_table = XML_TABLE(struct eks_instance, instance_fields);

static const struct xml_field tag_fields[] = { XML_FIELD(struct tag_text, key, XML_STRING, "Key") };
static const struct xml_table tag_table = XML_TABLE(struct tag_text, tag_fields);
static const struct xml_field process_fields[] = { XML_FIELD(struct process_text, name, XML_STRING, "ProcessName") };
static const struct xml_table process_table = XML_TABLE(struct process_text, process_fields);
static const struct xml_field plain_fields[] = { XML_FIELD(struct text, text, XML_STRING, "") };
static const struct xml_table plain_table = XML_TABLE(struct text, plain_fields);

#define LIST(struct_type, member, path_, of_)                                                            \
	{                                                                                                \
		.path = (path_), .type = XML_LIST, .offset = offsetof(struct_type, member), .of = &(of_) \
	}

static const struct xml_field group_fields[] = {
	XML_NEEDED(struct group_text, name, XML_STRING, "AutoScalingGroupName"),
	XML_NEEDED(struct group_text, min, XML_INT, "MinSize"),
	XML_NEEDED(struct group_text, max, XML_INT, "MaxSize"),
	XML_NEEDED(struct group_text, desired, XML_INT, "DesiredCapacity"),
	LIST(struct group_text, instances, "Instances", instance_table),
	LIST(struct group_text, zones, "AvailabilityZones", plain_table),
	LIST(struct group_text, tags, "Tags", tag_table),
	LIST(struct group_text, suspended, "SuspendedProcesses", process_table),
};
static const struct xml_table group_table = XML_TABLE(struct group_text, group_fields);

static const struct xml_field pool_fields[] = {
	XML_FIELD(struct pool_text, least, XML_INT, "MinSize"),
	XML_FIELD(struct pool_text, prepared, XML_INT, "MaxGroupPreparedCapacity"),
	XML_FIELD(struct pool_text, state, XML_STRING, "PoolState"),
	XML_FIELD(struct pool_text, status, XML_STRING, "Status"),
	XML_FIELD(struct pool_text, reuses, XML_BOOL, "InstanceReusePolicy>ReuseOnScaleIn"),
};
static const struct xml_table pool_table = XML_TABLE(struct pool_text, pool_fields);

static const struct xml_field activity_fields[] = {
	XML_NEEDED(struct eks_activity, id, XML_STRING, "ActivityId"),
	XML_NEEDED(struct eks_activity, status, XML_STRING, "StatusCode"),
	XML_NEEDED(struct eks_activity, started_at, XML_TIME, "StartTime"),
	XML_FIELD(struct eks_activity, ended_at, XML_TIME, "EndTime"),
	XML_FIELD(struct eks_activity, description, XML_STRING, "Description"),
	XML_FIELD(struct eks_activity, message, XML_STRING, "StatusMessage"),
	XML_FIELD(struct eks_activity, details, XML_STRING, "Details"),
};
static const struct xml_table activity_table = XML_TABLE(struct eks_activity, activity_fields);

struct collection_text {
	struct xml_list ids;
};

static const struct xml_field collection_fields[] = { LIST(struct collection_text, ids, "InstanceIds", plain_table) };
static const struct xml_table collection_table = XML_TABLE(struct collection_text, collection_fields);

static const struct xml_field launch_error_fields[] = {
	XML_NEEDED(struct eks_launch_error, code, XML_STRING, "ErrorCode"),
	XML_FIELD(struct eks_launch_error, message, XML_STRING, "ErrorMessage"),
	XML_FIELD(struct eks_launch_error, zone, XML_STRING, "AvailabilityZone"),
	XML_FIELD(struct eks_launch_error, type, XML_STRING, "InstanceType"),
};
static const struct xml_table launch_error_table = XML_TABLE(struct eks_launch_error, launch_error_fields);

struct launched_text {
	struct xml_list collections, errors;
};

static const struct xml_field launched_fields[] = {
	LIST(struct launched_text, collections, "Instances", collection_table),
	LIST(struct launched_text, errors, "Errors", launch_error_table),
};
static const struct xml_table launched_table = XML_TABLE(struct launched_text, launched_fields);

/* What is below <OperationResponse><OperationResult>. */
static const struct xml_node *result_of(const char *text, size_t len, const char *operation, struct arena *a,
					struct error *e)
{
	CLEANUP(buf_release) struct buf name = { 0 };
	const struct xml_node *root, *found;

	if (!xml_read(text, len, a, &root, e))
		return NULL;
	buf_printf(&name, "%sResult", operation);
	found = xml_find(root, name.text);
	if (!found)
		error_set(e, ERROR_INVALID, "the answer has no %s", name.text);
	return found;
}

static bool are_sound(const struct eks_instance *items, size_t count, struct error *e)
{
	char shown[QUOTE_ROOM];

	if (count > EKS_MACHINES)
		return error_set(e, ERROR_INVALID, "more than %d instances", EKS_MACHINES);
	for (size_t i = 0; i < count; i++) {
		if (!*items[i].id)
			return error_set(e, ERROR_INVALID, "an instance without an id");
		if (*items[i].weight && strcmp(items[i].weight, "1") != 0)
			return error_set(e, ERROR_INVALID,
					 "instance %s has a weight: sizes of this group are no numbers of machines; "
					 "take the weights off its mixed instances policy",
					 quote(shown, items[i].id, strlen(items[i].id)));
		for (size_t k = 0; k < i; k++)
			if (strcmp(items[i].id, items[k].id) == 0)
				return error_set(e, ERROR_INVALID, "instance %s is listed twice",
						 quote(shown, items[i].id, strlen(items[i].id)));
	}
	return true;
}

static bool read_pool(const struct xml_node *group, struct arena *a, struct eks_pool *out, struct error *e)
{
	const struct xml_node *node = xml_find(group, "WarmPoolConfiguration");
	struct pool_text t;

	if (!node || !node->first)
		return true;
	if (!xml_decode(&pool_table, node, a, &t, e))
		return error_wrap(e, "WarmPoolConfiguration");
	if (!xml_find(node, "MaxGroupPreparedCapacity"))
		t.prepared = -1;
	if (t.least < 0 || t.prepared < -1)
		return error_set(e, ERROR_INVALID, "WarmPoolConfiguration: a negative size");
	*out = (struct eks_pool){ .exists = true,
				  .least = t.least,
				  .prepared = t.prepared,
				  .state = *t.state ? t.state : "Stopped",
				  .reuses = t.reuses,
				  .is_being_deleted = *t.status != '\0' };
	return true;
}

static bool names_autoscaler(const struct xml_list *tags)
{
	static const char begins[] = "k8s.io/cluster-autoscaler/";
	const struct tag_text *items = tags->items;

	for (size_t i = 0; i < tags->count; i++)
		if (strncmp(items[i].key, begins, sizeof begins - 1) == 0 &&
		    strncmp(items[i].key + sizeof begins - 1, "node-template/", 14) != 0)
			return true;
	return false;
}

static bool read_group(const struct xml_node *node, struct arena *a, struct eks_group *out, struct error *e)
{
	struct group_text t;

	if (!xml_decode(&group_table, node, a, &t, e))
		return false;
	if (t.min < 0 || t.max < t.min || t.desired < 0)
		return error_set(e, ERROR_INVALID,
				 "MinSize %" PRId64 ", MaxSize %" PRId64 ", DesiredCapacity %" PRId64 " cannot be",
				 t.min, t.max, t.desired);
	*out = (struct eks_group){ .name = t.name,
				   .min = t.min,
				   .max = t.max,
				   .desired = t.desired,
				   .instances = t.instances.items,
				   .instance_count = t.instances.count,
				   .zones = t.zones.items,
				   .zone_count = t.zones.count,
				   .is_tagged = names_autoscaler(&t.tags),
				   .may_launch = true };
	const struct process_text *suspended = t.suspended.items;
	for (size_t i = 0; i < t.suspended.count; i++)
		if (strcmp(suspended[i].name, "Launch") == 0)
			out->may_launch = false;
	return are_sound(out->instances, out->instance_count, e) && read_pool(node, a, &out->pool, e);
}

static const struct xml_node *groups_of(const char *text, size_t len, struct arena *a, struct error *e)
{
	const struct xml_node *result = result_of(text, len, "DescribeAutoScalingGroups", a, e);
	const struct xml_node *groups = xml_find(result, "AutoScalingGroups");

	if (result && !groups)
		error_set(e, ERROR_INVALID, "the answer has no AutoScalingGroups");
	return groups;
}

static const struct xml_node *named(const struct xml_node *groups, const char *name)
{
	for (const struct xml_node *n = groups->first; n; n = n->next) {
		const struct xml_node *text = xml_find(n, "AutoScalingGroupName");
		if (text && text->text && !strcmp(text->text, name))
			return n;
	}
	return NULL;
}

bool eks_read_group_of(const char *text, size_t len, const char *name, struct arena *a, struct eks_group *out,
		       struct error *e)
{
	const struct xml_node *groups = groups_of(text, len, a, e), *node = groups ? named(groups, name) : NULL;
	struct eks_group group;

	if (!groups)
		return false;
	if (!node)
		return error_set(e, ERROR_NOT_FOUND, "there is no Auto Scaling group %s", name);
	if (!read_group(node, a, &group, e))
		return error_wrap(e, "AutoScalingGroups");
	*out = group;
	return true;
}

bool eks_read_group(const char *text, size_t len, const char *name, struct arena *a, struct eks_group *out,
		    struct error *e)
{
	const struct xml_node *groups = groups_of(text, len, a, e);

	if (!groups)
		return false;
	if (groups->first && groups->first->next)
		return error_set(e, ERROR_INVALID, "the answer tells of several groups");
	if (groups->first && !named(groups, name))
		return error_set(e, ERROR_INVALID, "the answer tells of another group");
	return eks_read_group_of(text, len, name, a, out, e);
}

bool eks_read_found(const char *text, size_t len, struct arena *a, const char **name, struct error *e)
{
	const struct xml_node *result = result_of(text, len, "DescribeAutoScalingGroups", a, e);
	const struct xml_node *groups = xml_find(result, "AutoScalingGroups"), *found;

	if (!result)
		return false;
	if (!groups)
		return error_set(e, ERROR_INVALID, "the answer has no AutoScalingGroups");
	if (!groups->first)
		return error_set(e, ERROR_NOT_FOUND, "no Auto Scaling group has all of the tags");
	if (groups->first->next || xml_find(result, "NextToken"))
		return error_set(e, ERROR_INVALID,
				 "several Auto Scaling groups have these tags; add one that only one has");
	found = xml_find(groups->first, "AutoScalingGroupName");
	if (!found || !*found->text)
		return error_set(e, ERROR_INVALID, "the answer has no AutoScalingGroupName");
	*name = found->text;
	return true;
}

static const char *next_page(const struct xml_node *result)
{
	const struct xml_node *token = xml_find(result, "NextToken");

	return token && *token->text ? token->text : NULL;
}

static bool read_list(const struct xml_node *result, const struct xml_field *f, struct arena *a, struct eks_list *out,
		      struct error *e)
{
	const struct xml_table table = { sizeof(struct xml_list), f, 1 };
	struct xml_list list;

	if (!xml_decode(&table, result, a, &list, e))
		return false;
	*out = (struct eks_list){ list.items, list.count, next_page(result) };
	return true;
}

bool eks_read_pool(const char *text, size_t len, struct arena *a, struct eks_list *out, struct error *e)
{
	static const struct xml_field field = { .path = "Instances", .type = XML_LIST, .of = &instance_table };
	const struct xml_node *result = result_of(text, len, "DescribeWarmPool", a, e);

	return result && read_list(result, &field, a, out, e) && are_sound(out->items, out->count, e);
}

bool eks_read_activities(const char *text, size_t len, struct arena *a, struct eks_list *out, struct error *e)
{
	static const struct xml_field field = {
		.path = "Activities", .type = XML_LIST, .required = true, .of = &activity_table
	};
	const struct xml_node *result = result_of(text, len, "DescribeScalingActivities", a, e);

	return result && read_list(result, &field, a, out, e);
}

bool eks_read_launched(const char *text, size_t len, struct arena *a, struct eks_launched *out, struct error *e)
{
	const struct xml_node *result = result_of(text, len, "LaunchInstances", a, e);
	struct launched_text t;

	if (!result || !xml_decode(&launched_table, result, a, &t, e))
		return false;
	*out = (struct eks_launched){ .errors = t.errors.items, .error_count = t.errors.count };
	const struct collection_text *collections = t.collections.items;
	for (size_t i = 0; i < t.collections.count; i++)
		out->count += (int64_t)collections[i].ids.count;
	return true;
}

bool eks_read_identity(const char *text, size_t len, struct arena *a, const char **arn, struct error *e)
{
	const struct xml_node *result = result_of(text, len, "GetCallerIdentity", a, e),
			      *found = xml_find(result, "Arn");

	if (!result)
		return false;
	if (!found || !*found->text)
		return error_set(e, ERROR_INVALID, "the answer has no Arn");
	*arn = found->text;
	return true;
}
