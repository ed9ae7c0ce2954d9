#include "providers/eks_wire.h"

#include "base/quantity.h"
#include "base/json.h"
#include "base/text.h"
#include "base/xml.h"
#include "providers/aws/service.h"
#include "providers/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The keys of a node group in the manifest. */

struct settings_text {
	const char *cluster, *nodegroup, *region, *group, *tags, *endpoint, *launch, *warm_pool, *tagged, *protection;
};

static const struct field settings_fields[] = {
	FIELD(struct settings_text, cluster, FIELD_STRING, "cluster"),
	FIELD(struct settings_text, nodegroup, FIELD_STRING, "nodegroup"),
	FIELD_NEEDED(struct settings_text, region, FIELD_STRING, "region"),
	FIELD(struct settings_text, group, FIELD_STRING, "autoScalingGroup"),
	FIELD(struct settings_text, tags, FIELD_STRING, "tags"),
	FIELD(struct settings_text, endpoint, FIELD_STRING, "endpoint"),
	FIELD(struct settings_text, launch, FIELD_STRING, "launch"),
	FIELD(struct settings_text, warm_pool, FIELD_STRING, "warmPool"),
	FIELD(struct settings_text, tagged, FIELD_STRING, "clusterAutoscalerTags"),
	FIELD(struct settings_text, protection, FIELD_STRING, "protection"),
};
static const struct record_spec settings_record = RECORD(struct settings_text, settings_fields);

static const char *told(const char *text)
{
	return text && *text ? text : NULL;
}

static bool wrong(const char *key, const char *found, const char *allowed, struct error *e)
{
	char shown[QUOTE_ROOM];

	return error_set(e, ERROR_INVALID, "%s: found %s; allowed: %s", key, quote(shown, found, strlen(found)),
			 allowed);
}

/* Which of the words with commas between it is; absent is the first. */
static bool choose(const char *key, const char *text, const char *allowed, int *index, struct error *e)
{
	size_t len = text ? strlen(text) : 0;

	*index = 0;
	if (!len)
		return true;
	for (const char *word = allowed; word; word = strstr(word, ", "), ++*index) {
		word += *word == ',' ? 2 : 0;
		if (strcspn(word, ",") == len && memcmp(word, text, len) == 0)
			return true;
	}
	return wrong(key, text, allowed, e);
}

static bool read_choices(const struct settings_text *t, struct eks_settings *out, struct error *e)
{
	int launch, pool, manner, protection;

	if (!choose("launch", t->launch, "capacity, instances", &launch, e) ||
	    !choose("warmPool", t->warm_pool, "existing, nodegroup, autoScalingGroup", &pool, e) ||
	    !choose("clusterAutoscalerTags", t->tagged, "refuse, ignore", &manner, e) ||
	    !choose("protection", t->protection, "machines, group", &protection, e))
		return false;
	out->launch = (enum eks_launch)launch;
	out->warm_pool = (enum eks_warm_pool)pool;
	out->takes_tagged = manner == 1;
	out->protects_new = protection == 1;
	return true;
}

/* "key=value, key" */
static bool read_tags(const char *text, struct arena *a, struct eks_settings *out, struct error *e)
{
	char *next = arena_strdup(a, text, strlen(text));

	for (char *tag; (tag = strsep(&next, ","));) {
		tag += strspn(tag, " ");
		for (size_t len = strlen(tag); len && tag[len - 1] == ' ';)
			tag[--len] = '\0';
		char *value = strchr(tag, '=');
		if (value)
			*value++ = '\0';
		if (!*tag || strlen(tag) > 128 || (value && strlen(value) > 256))
			return error_set(e, ERROR_INVALID,
					 "tags: found a tag without a key, or too long; allowed: key=value pairs, or "
					 "keys, with commas between");
		if (out->tag_count == EKS_TAGS)
			return error_set(e, ERROR_INVALID, "tags: found more than %d; allowed: %d at most", EKS_TAGS,
					 EKS_TAGS);
		out->tags[out->tag_count++] = (struct eks_tag){ tag, value };
	}
	return true;
}

/* "eu-west-1" */
static bool is_region(const char *text)
{
	size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return len && len <= 40 && !text[len] && *text != '-' && text[len - 1] != '-';
}

/* What EKS allows; it goes into a path that is signed. */
static bool is_name(const char *text)
{
	size_t len = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_");

	return len && len <= 100 && !text[len] && *text != '-' && *text != '_';
}

static bool is_group_name(const char *text)
{
	size_t len = 0;

	while ((unsigned char)text[len] >= 0x20 && text[len] != 0x7f)
		len++;
	return !text[len] && len <= 255;
}

static bool check_settings(const struct eks_settings *s, struct error *e)
{
	static const char name[] = "letters, digits, '-' and '_', at most 100";
	bool has_nodegroup = s->cluster && s->nodegroup;

	if (!is_region(s->region))
		return wrong("region", s->region, "a region such as eu-west-1", e);
	if (s->cluster && !is_name(s->cluster))
		return wrong("cluster", s->cluster, name, e);
	if (s->nodegroup && !is_name(s->nodegroup))
		return wrong("nodegroup", s->nodegroup, name, e);
	if (s->auto_scaling_group && !is_group_name(s->auto_scaling_group))
		return wrong("autoScalingGroup", s->auto_scaling_group, "a name of at most 255 characters", e);
	if (s->auto_scaling_group && s->tag_count)
		return error_set(e, ERROR_INVALID, "both autoScalingGroup and tags; allowed: one of them");
	if (!s->auto_scaling_group && !s->tag_count && !has_nodegroup)
		return error_set(e, ERROR_INVALID,
				 "nothing says which Auto Scaling group; allowed: cluster and nodegroup, or "
				 "autoScalingGroup, or tags");
	if (s->protects_new && !s->auto_scaling_group && !s->tag_count)
		return error_set(
			e, ERROR_INVALID,
			"protection: group needs autoScalingGroup or tags, of a group that EKS does not manage");
	if (s->warm_pool == EKS_POOL_NODEGROUP && !has_nodegroup)
		return error_set(e, ERROR_INVALID, "warmPool: nodegroup needs cluster and nodegroup");
	if (s->endpoint && !aws_is_own_url(s->endpoint))
		return wrong("endpoint", s->endpoint,
			     "a host below amazonaws.com, amazonaws.com.cn or api.aws, or this machine; others by "
			     "AWS_ENDPOINT_URL of the controller",
			     e);
	return true;
}

bool eks_read_settings(const char *json, struct arena *a, struct eks_settings *out, struct error *e)
{
	static const struct aws_environment nothing;
	CLEANUP(buf_release) struct buf ignored = { 0 };
	struct settings_text t;

	*out = (struct eks_settings){ 0 };
	if (!text_decode(&settings_record, json, strlen(json), a, &t, e))
		return error_wrap(e, "settings of eks");
	out->cluster = told(t.cluster);
	out->nodegroup = told(t.nodegroup);
	out->region = t.region;
	out->auto_scaling_group = told(t.group);
	out->endpoint = told(t.endpoint);
	bool ok = read_choices(&t, out, e) && (!told(t.tags) || read_tags(t.tags, a, out, e)) &&
		  check_settings(out, e) && aws_endpoint(&nothing, out->endpoint, AWS_EKS, out->region, &ignored, e);
	return ok || error_wrap(e, "settings of eks");
}

/* What is asked. */

void eks_nodegroup_path(const struct eks_settings *s, struct buf *out)
{
	buf_printf(out, "/clusters/%s/node-groups/%s", s->cluster, s->nodegroup);
}

void eks_update_path(const struct eks_settings *s, const char *id, struct buf *out)
{
	buf_printf(out, "/clusters/%s/updates/", s->cluster);
	uri_segment(id, out);
	buf_printf(out, "?nodegroupName=%s", s->nodegroup);
}

void eks_config_path(const struct eks_settings *s, struct buf *out)
{
	eks_nodegroup_path(s, out);
	buf_text(out, "/update-config");
}

void eks_config_body(const struct eks_pool_size *size, const char *token, struct buf *out)
{
	buf_printf(out,
		   "{\"warmPoolConfig\":{\"enabled\":true,\"minSize\":%" PRId64 ",\"maxGroupPreparedCapacity\":%" PRId64
		   ",\"poolState\":\"",
		   size->least, size->prepared);
	for (const char *c = size->state; *c; c++) /* EKS writes in capitals what Auto Scaling writes as "Stopped" */
		buf_printf(out, "%c", toupper((unsigned char)*c));
	buf_printf(out, "\",\"reuseOnScaleIn\":%s},\"clientRequestToken\":", size->reuses ? "true" : "false");
	json_write_text(token, out);
	buf_text(out, "}");
}

/* A form of Auto Scaling; what follows is appended. */
static void write_form(const char *action, const char *group, struct buf *out)
{
	aws_form_begin(action, "2011-01-01", out);
	if (group)
		aws_form_text("AutoScalingGroupName", group, out);
}

static void write_member(const char *list, size_t index, const char *value, struct buf *out)
{
	char name[96];

	snprintf(name, sizeof name, "%s.member.%zu", list, index + 1);
	aws_form_text(name, value, out);
}

void eks_describe_groups(const char *const *groups, size_t count, struct buf *out)
{
	write_form("DescribeAutoScalingGroups", NULL, out);
	for (size_t i = 0; i < count; i++)
		write_member("AutoScalingGroupNames", i, groups[i], out);
	buf_text(out, "&IncludeInstances=true&MaxRecords=100");
}

void eks_find_group(const struct eks_tag *tags, size_t count, struct buf *out)
{
	write_form("DescribeAutoScalingGroups", NULL, out);
	for (size_t i = 0; i < count; i++) {
		CLEANUP(buf_release) struct buf name = { 0 };
		char key[64];
		buf_printf(&name, tags[i].value ? "tag:%s" : "%s", tags[i].value ? tags[i].key : "tag-key");
		snprintf(key, sizeof key, "Filters.member.%zu.Name", i + 1);
		aws_form_text(key, name.text, out);
		snprintf(key, sizeof key, "Filters.member.%zu.Values.member.1", i + 1);
		aws_form_text(key, tags[i].value ? tags[i].value : tags[i].key, out);
	}
	buf_text(out, "&IncludeInstances=false&MaxRecords=100");
}

void eks_describe_pool(const char *group, const char *page, struct buf *out)
{
	write_form("DescribeWarmPool", group, out);
	if (page)
		aws_form_text("NextToken", page, out);
}

void eks_describe_activities(const char *group, int most, struct buf *out)
{
	write_form("DescribeScalingActivities", group, out);
	buf_printf(out, "&MaxRecords=%d", most);
}

void eks_describe_hooks(const char *group, struct buf *out)
{
	write_form("DescribeLifecycleHooks", group, out);
}

/* The newest comes first, and none begins while another goes on. */
void eks_describe_refreshes(const char *group, struct buf *out)
{
	write_form("DescribeInstanceRefreshes", group, out);
	buf_text(out, "&MaxRecords=1");
}

void eks_set_size(const char *group, int64_t desired, struct buf *out)
{
	write_form("SetDesiredCapacity", group, out);
	buf_printf(out, "&DesiredCapacity=%" PRId64 "&HonorCooldown=false", desired);
}

void eks_terminate(const char *id, struct buf *out)
{
	write_form("TerminateInstanceInAutoScalingGroup", NULL, out);
	aws_form_text("InstanceId", id, out);
	buf_text(out, "&ShouldDecrementDesiredCapacity=true");
}

void eks_protect(const char *group, const char *const *ids, size_t count, bool is_protected, struct buf *out)
{
	write_form("SetInstanceProtection", group, out);
	for (size_t i = 0; i < count; i++)
		write_member("InstanceIds", i, ids[i], out);
	buf_printf(out, "&ProtectedFromScaleIn=%s", is_protected ? "true" : "false");
}

void eks_protect_new(const char *group, bool is_protected, struct buf *out)
{
	write_form("UpdateAutoScalingGroup", group, out);
	buf_printf(out, "&NewInstancesProtectedFromScaleIn=%s", is_protected ? "true" : "false");
}

void eks_put_pool(const char *group, const struct eks_pool_size *size, struct buf *out)
{
	write_form("PutWarmPool", group, out);
	buf_printf(out, "&MinSize=%" PRId64 "&MaxGroupPreparedCapacity=%" PRId64, size->least, size->prepared);
	aws_form_text("PoolState", size->state, out);
	buf_printf(out, "&InstanceReusePolicy.ReuseOnScaleIn=%s", size->reuses ? "true" : "false");
}

void eks_launch_instances(const char *group, int64_t count, const char *zone, const char *token, struct buf *out)
{
	write_form("LaunchInstances", group, out);
	buf_printf(out, "&RequestedCapacity=%" PRId64, count);
	aws_form_text("ClientToken", token, out);
	if (zone)
		write_member("AvailabilityZones", 0, zone, out);
	buf_text(out, "&RetryStrategy=none");
}

void eks_caller_identity(struct buf *out)
{
	aws_form_begin("GetCallerIdentity", "2011-06-15", out);
}

static void write_ec2(const char *action, struct buf *out)
{
	aws_form_begin(action, "2016-11-15", out);
}

void eks_describe_template(const struct eks_group *g, struct buf *out)
{
	write_ec2("DescribeLaunchTemplateVersions", out);
	aws_form_text("LaunchTemplateId", g->template_id, out);
	aws_form_text("LaunchTemplateVersion.1", *g->template_version ? g->template_version : "$Default", out);
}

void eks_describe_reservation(const char *id, struct buf *out)
{
	write_ec2("DescribeCapacityReservations", out);
	aws_form_text("CapacityReservationId.1", id, out);
}

/* What Auto Scaling, EC2 and STS answer, in XML. */

struct group_text {
	struct eks_group group;
	struct xml_list instances, zones, tags, suspended;
	const char *mixed_id, *mixed_version; /* of a launch template in a mixed instances policy */
};

struct pool_text {
	struct eks_pool pool;
	const char *status;
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

struct tag_text {
	const char *key, *value;
};

static const struct xml_field tag_fields[] = {
	XML_FIELD(struct tag_text, key, XML_STRING, "Key"),
	XML_FIELD(struct tag_text, value, XML_STRING, "Value"),
};
static const struct xml_table tag_table = XML_TABLE(struct tag_text, tag_fields);

/* A list of which one text of each item counts. */
static const struct xml_field process_fields[] = { { .path = "ProcessName", .type = XML_STRING } };
static const struct xml_field plain_fields[] = { { .path = "", .type = XML_STRING } };
static const struct xml_table process_table = XML_TABLE(const char *, process_fields);
static const struct xml_table plain_table = XML_TABLE(const char *, plain_fields);

#define LIST(struct_type, member, path_, of_)                                                            \
	{                                                                                                \
		.path = (path_), .type = XML_LIST, .offset = offsetof(struct_type, member), .of = &(of_) \
	}

#define OF_MIXED "MixedInstancesPolicy>LaunchTemplate>LaunchTemplateSpecification>"

static const struct xml_field group_fields[] = {
	XML_NEEDED(struct group_text, group.name, XML_STRING, "AutoScalingGroupName"),
	XML_NEEDED(struct group_text, group.min, XML_INT, "MinSize"),
	XML_NEEDED(struct group_text, group.max, XML_INT, "MaxSize"),
	XML_NEEDED(struct group_text, group.desired, XML_INT, "DesiredCapacity"),
	XML_FIELD(struct group_text, group.protects_new, XML_BOOL, "NewInstancesProtectedFromScaleIn"),
	XML_FIELD(struct group_text, group.operated_by, XML_STRING, "Operator>Principal"),
	XML_FIELD(struct group_text, group.template_id, XML_STRING, "LaunchTemplate>LaunchTemplateId"),
	XML_FIELD(struct group_text, group.template_version, XML_STRING, "LaunchTemplate>Version"),
	XML_FIELD(struct group_text, mixed_id, XML_STRING, OF_MIXED "LaunchTemplateId"),
	XML_FIELD(struct group_text, mixed_version, XML_STRING, OF_MIXED "Version"),
	LIST(struct group_text, instances, "Instances", instance_table),
	LIST(struct group_text, zones, "AvailabilityZones", plain_table),
	LIST(struct group_text, tags, "Tags", tag_table),
	LIST(struct group_text, suspended, "SuspendedProcesses", process_table),
};
static const struct xml_table group_table = XML_TABLE(struct group_text, group_fields);

static const struct xml_field pool_fields[] = {
	XML_FIELD(struct pool_text, pool.least, XML_INT, "MinSize"),
	XML_FIELD(struct pool_text, pool.prepared, XML_INT, "MaxGroupPreparedCapacity"),
	XML_FIELD(struct pool_text, pool.state, XML_STRING, "PoolState"),
	XML_FIELD(struct pool_text, status, XML_STRING, "Status"),
	XML_FIELD(struct pool_text, pool.reuses, XML_BOOL, "InstanceReusePolicy>ReuseOnScaleIn"),
};
static const struct xml_table pool_table = XML_TABLE(struct pool_text, pool_fields);

static const struct xml_field activity_fields[] = {
	XML_NEEDED(struct eks_activity, id, XML_STRING, "ActivityId"),
	XML_NEEDED(struct eks_activity, status, XML_STRING, "StatusCode"),
	XML_NEEDED(struct eks_activity, started_at, XML_TIME, "StartTime"),
	XML_FIELD(struct eks_activity, ended_at, XML_TIME, "EndTime"),
	XML_FIELD(struct eks_activity, description, XML_STRING, "Description"),
	XML_FIELD(struct eks_activity, cause, XML_STRING, "Cause"),
	XML_FIELD(struct eks_activity, message, XML_STRING, "StatusMessage"),
	XML_FIELD(struct eks_activity, details, XML_STRING, "Details"),
};
static const struct xml_table activity_table = XML_TABLE(struct eks_activity, activity_fields);

struct hook_text {
	const char *transition, *result;
	int64_t seconds;
};

static const struct xml_field hook_fields[] = {
	XML_NEEDED(struct hook_text, transition, XML_STRING, "LifecycleTransition"),
	XML_NEEDED(struct hook_text, seconds, XML_INT, "HeartbeatTimeout"),
	XML_FIELD(struct hook_text, result, XML_STRING, "DefaultResult"),
};
static const struct xml_table hook_table = XML_TABLE(struct hook_text, hook_fields);

struct refresh_text {
	const char *status, *protected_ones;
	int64_t percent;
};

static const struct xml_field refresh_fields[] = {
	XML_NEEDED(struct refresh_text, status, XML_STRING, "Status"),
	XML_FIELD(struct refresh_text, percent, XML_INT, "PercentageComplete"),
	XML_FIELD(struct refresh_text, protected_ones, XML_STRING, "Preferences>ScaleInProtectedInstances"),
};
static const struct xml_table refresh_table = XML_TABLE(struct refresh_text, refresh_fields);

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
		t.pool.prepared = -1;
	if (t.pool.least < 0 || t.pool.prepared < -1)
		return error_set(e, ERROR_INVALID, "WarmPoolConfiguration: a negative size");
	*out = t.pool;
	out->exists = true;
	out->state = *t.pool.state ? t.pool.state : "Stopped";
	out->is_being_deleted = *t.status != '\0';
	return true;
}

static bool names_autoscaler(const struct xml_list *tags)
{
	static const char begins[] = "k8s.io/cluster-autoscaler/";
	const struct tag_text *list = tags->items;

	for (size_t i = 0; i < tags->count; i++)
		if (strncmp(list[i].key, begins, sizeof begins - 1) == 0 &&
		    strncmp(list[i].key + sizeof begins - 1, "node-template/", 14) != 0)
			return true;
	return false;
}

static bool names_nodegroup(const struct xml_list *tags)
{
	const struct tag_text *list = tags->items;

	for (size_t i = 0; i < tags->count; i++)
		if (strcmp(list[i].key, "eks:nodegroup-name") == 0)
			return true;
	return false;
}

static struct node_promise promise_of_tags(const struct xml_list *tags, struct arena *a)
{
	const struct tag_text *list = tags->items;
	struct node_promise p = { 0 };

	for (size_t i = 0; i < tags->count; i++)
		promise_tag(&p, a, list[i].key, list[i].value);
	return p;
}

static bool is_suspended(const struct xml_list *processes, const char *name)
{
	return text_is_among(name, processes->items, processes->count);
}

static bool read_group(const struct xml_node *node, struct arena *a, struct eks_group *out, struct error *e)
{
	struct group_text t;
	struct eks_group *g = &t.group;

	if (!xml_decode(&group_table, node, a, &t, e))
		return false;
	if (g->min < 0 || g->max < g->min || g->desired < 0)
		return error_set(e, ERROR_INVALID,
				 "MinSize %" PRId64 ", MaxSize %" PRId64 ", DesiredCapacity %" PRId64 " cannot be",
				 g->min, g->max, g->desired);
	g->instances = t.instances.items;
	g->instance_count = t.instances.count;
	g->zones = t.zones.items;
	g->zone_count = t.zones.count;
	g->is_tagged = names_autoscaler(&t.tags);
	g->is_managed = names_nodegroup(&t.tags);
	g->promise = promise_of_tags(&t.tags, a);
	g->may_launch = !is_suspended(&t.suspended, "Launch");
	if (!*g->template_id) {
		g->template_id = t.mixed_id;
		g->template_version = t.mixed_version;
	}
	g->rebalances = g->zone_count > 1 && !is_suspended(&t.suspended, "AZRebalance");
	if (!are_sound(g->instances, g->instance_count, e) || !read_pool(node, a, &g->pool, e))
		return false;
	*out = *g;
	return true;
}

static const struct xml_node *groups_of(const struct xml_node *result, struct error *e)
{
	const struct xml_node *groups = xml_find(result, "AutoScalingGroups");

	if (!groups)
		error_set(e, ERROR_INVALID, "the answer has no AutoScalingGroups");
	return groups;
}

static const struct xml_node *group_named(const struct xml_node *groups, const char *name)
{
	const struct xml_node *node = groups->first, *found;

	while (node && (!(found = xml_find(node, "AutoScalingGroupName")) || strcmp(found->text, name) != 0))
		node = node->next;
	return node;
}

bool eks_read_group(const char *text, size_t len, const char *name, struct arena *a, struct eks_group *out,
		    struct error *e)
{
	const struct xml_node *result = result_of(text, len, "DescribeAutoScalingGroups", a, e);
	const struct xml_node *groups = result ? groups_of(result, e) : NULL, *node;

	if (!groups)
		return false;
	node = group_named(groups, name);
	if (!node)
		return error_set(e, ERROR_NOT_FOUND, "there is no Auto Scaling group %s", name);
	return read_group(node, a, out, e) || error_wrap(e, "AutoScalingGroups");
}

bool eks_read_sole_group(const char *text, size_t len, const char *name, struct arena *a, struct eks_group *out,
			 struct error *e)
{
	const struct xml_node *result = result_of(text, len, "DescribeAutoScalingGroups", a, e);
	const struct xml_node *groups = result ? groups_of(result, e) : NULL;

	if (!groups)
		return false;
	if (groups->first && groups->first->next)
		return error_set(e, ERROR_INVALID, "the answer tells of several groups");
	if (groups->first && !group_named(groups, name))
		return error_set(e, ERROR_INVALID, "the answer tells of another group");
	return eks_read_group(text, len, name, a, out, e);
}

bool eks_read_found(const char *text, size_t len, struct arena *a, const char **name, struct error *e)
{
	const struct xml_node *result = result_of(text, len, "DescribeAutoScalingGroups", a, e);
	const struct xml_node *groups = result ? groups_of(result, e) : NULL, *found;

	if (!groups)
		return false;
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

static bool read_list(const struct xml_node *result, const struct xml_field *f, struct arena *a, struct eks_list *out,
		      struct error *e)
{
	const struct xml_table table = { sizeof(struct xml_list), f, 1 };
	struct xml_list list;

	if (!xml_decode(&table, result, a, &list, e))
		return false;
	const struct xml_node *token = xml_find(result, "NextToken");
	*out = (struct eks_list){ list.items, list.count, token && *token->text ? token->text : NULL };
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

static const millis LONGEST_HOLD = 2 * DAY; /* of AWS, whatever heartbeats come */

bool eks_read_hooks(const char *text, size_t len, struct arena *a, struct eks_hooks *out, struct error *e)
{
	static const struct xml_field field = { .path = "LifecycleHooks", .type = XML_LIST, .of = &hook_table };
	const struct xml_node *result = result_of(text, len, "DescribeLifecycleHooks", a, e);
	struct eks_list list;

	if (!result || !read_list(result, &field, a, &list, e))
		return false;
	*out = (struct eks_hooks){ 0 };
	for (size_t i = 0; i < list.count; i++) {
		const struct hook_text *h = (const struct hook_text *)list.items + i;
		if (h->seconds <= 0 || h->seconds > LONGEST_HOLD / SECOND)
			return error_set(e, ERROR_INVALID, "HeartbeatTimeout %" PRId64 " cannot be", h->seconds);
		millis hold = h->seconds * SECOND;
		if (!strcmp(h->transition, "autoscaling:EC2_INSTANCE_TERMINATING")) {
			out->end_hold = out->end_hold && out->end_hold < hold ? out->end_hold : hold;
		} else {
			out->start_hold = hold > out->start_hold ? hold : out->start_hold;
			out->abandons_starts |= strcmp(h->result, "CONTINUE") != 0;
		}
	}
	return true;
}

/* https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_InstanceRefresh.html; protected machines are waited for
 * unless its preferences say otherwise. */
bool eks_read_refresh(const char *text, size_t len, struct arena *a, struct eks_refresh *out, struct error *e)
{
	static const struct xml_field field = { .path = "InstanceRefreshes", .type = XML_LIST, .of = &refresh_table };
	static const char *const going_on[] = { "Pending", "InProgress", "Cancelling", "RollbackInProgress", "Baking" };
	const struct xml_node *result = result_of(text, len, "DescribeInstanceRefreshes", a, e);
	struct eks_list list;

	if (!result || !read_list(result, &field, a, &list, e))
		return false;
	*out = (struct eks_refresh){ 0 };
	const struct refresh_text *newest = list.items;
	if (!list.count || !text_is_among(newest->status, going_on, sizeof going_on / sizeof *going_on))
		return true;
	if (newest->percent < 0 || newest->percent > 100)
		return error_set(e, ERROR_INVALID, "PercentageComplete %" PRId64 " cannot be", newest->percent);
	*out = (struct eks_refresh){ .status = newest->status,
				     .percent = newest->percent,
				     .waits_for_protected =
					     !*newest->protected_ones || !strcmp(newest->protected_ones, "Wait") };
	return true;
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

static const struct xml_field template_fields[] = {
	XML_FIELD(struct eks_template, reservation, XML_STRING,
		  "capacityReservationSpecification>capacityReservationTarget>capacityReservationId"),
	XML_FIELD(struct eks_template, market, XML_STRING, "instanceMarketOptions>marketType"),
	XML_FIELD(struct eks_template, user_data, XML_STRING, "userData"),
};
static const struct xml_table template_table = XML_TABLE(struct eks_template, template_fields);

bool eks_read_template(const char *text, size_t len, struct arena *a, struct eks_template *out, struct error *e)
{
	const struct xml_node *root, *found;

	if (!xml_read(text, len, a, &root, e))
		return false;
	found = xml_find(root, "launchTemplateVersionSet>item>launchTemplateData");
	if (!found)
		return error_set(e, ERROR_NOT_FOUND, "there is no such version of the launch template");
	return xml_decode(&template_table, found, a, out, e);
}

bool eks_read_reservation(const char *text, size_t len, struct arena *a, millis *ends_at, struct error *e)
{
	const struct xml_node *root, *found;

	if (!xml_read(text, len, a, &root, e))
		return false;
	if (!xml_find(root, "capacityReservationSet>item"))
		return error_set(e, ERROR_NOT_FOUND, "there is no such Capacity Reservation");
	found = xml_find(root, "capacityReservationSet>item>endDate");
	*ends_at = 0;
	return !found || time_parse(found->text, strlen(found->text), ends_at) ||
	       error_set(e, ERROR_INVALID, "endDate of the Capacity Reservation is no time");
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

/* What EKS answers, in JSON. */

struct nodegroup_text {
	struct eks_nodegroup found;
	const char *name, *pool_state;
	struct decoded_list groups, issues, taints;
	struct decoded_map labels, tags;
};

struct taint_text {
	const char *key, *value, *effect;
};

static const struct field taint_fields[] = {
	FIELD(struct taint_text, key, FIELD_STRING, "key"),
	FIELD(struct taint_text, value, FIELD_STRING, "value"),
	FIELD(struct taint_text, effect, FIELD_STRING, "effect"),
};
static const struct record_spec taint_record = RECORD(struct taint_text, taint_fields);

struct issue_text {
	const char *code, *message;
};

static const struct field issue_fields[] = {
	FIELD(struct issue_text, code, FIELD_STRING, "code"),
	FIELD(struct issue_text, message, FIELD_STRING, "message"),
};
static const struct record_spec issue_record = RECORD(struct issue_text, issue_fields);

static const struct field name_fields[] = { { .path = "name", .type = FIELD_STRING, .required = true } };
static const struct record_spec name_record = RECORD(const char *, name_fields);

static const struct field nodegroup_fields[] = {
	FIELD_NEEDED(struct nodegroup_text, name, FIELD_STRING, "nodegroup>nodegroupName"),
	FIELD(struct nodegroup_text, found.status, FIELD_STRING, "nodegroup>status"),
	FIELD(struct nodegroup_text, found.capacity_type, FIELD_STRING, "nodegroup>capacityType"),
	FIELD(struct nodegroup_text, found.image, FIELD_STRING, "nodegroup>amiType"),
	FIELD_LIST_OF(struct nodegroup_text, groups, "nodegroup>resources>autoScalingGroups", name_record),
	FIELD_LIST_OF(struct nodegroup_text, issues, "nodegroup>health>issues", issue_record),
	FIELD_LIST_OF(struct nodegroup_text, taints, "nodegroup>taints", taint_record),
	FIELD(struct nodegroup_text, labels, FIELD_MAP, "nodegroup>labels"),
	FIELD(struct nodegroup_text, tags, FIELD_MAP, "nodegroup>tags"),
	FIELD(struct nodegroup_text, found.has_pool, FIELD_BOOL, "nodegroup>warmPoolConfig>enabled"),
	FIELD(struct nodegroup_text, found.pool.least, FIELD_INT, "nodegroup>warmPoolConfig>minSize"),
	FIELD(struct nodegroup_text, found.pool.prepared, FIELD_INT,
	      "nodegroup>warmPoolConfig>maxGroupPreparedCapacity"),
	FIELD(struct nodegroup_text, pool_state, FIELD_STRING, "nodegroup>warmPoolConfig>poolState"),
	FIELD(struct nodegroup_text, found.pool.reuses, FIELD_BOOL, "nodegroup>warmPoolConfig>reuseOnScaleIn"),
};
static const struct record_spec nodegroup_record = RECORD(struct nodegroup_text, nodegroup_fields);

struct update_text {
	const char *id, *status;
	struct decoded_list errors;
	struct decoded_text created_at;
};

struct error_text {
	const char *code, *message;
};

static const struct field error_fields[] = {
	FIELD(struct error_text, code, FIELD_STRING, "errorCode"),
	FIELD(struct error_text, message, FIELD_STRING, "errorMessage"),
};
static const struct record_spec error_record = RECORD(struct error_text, error_fields);

static const struct field update_fields[] = {
	FIELD_NEEDED(struct update_text, id, FIELD_STRING, "update>id"),
	FIELD_NEEDED(struct update_text, status, FIELD_STRING, "update>status"),
	FIELD_LIST_OF(struct update_text, errors, "update>errors", error_record),
	FIELD(struct update_text, created_at, FIELD_RAW, "update>createdAt"),
};
static const struct record_spec update_record = RECORD(struct update_text, update_fields);

/* As Auto Scaling writes it: EKS has capitals. */
static const char *pool_state(struct arena *a, const char *text)
{
	char *state = arena_strdup(a, text, strlen(text));

	for (size_t i = 0; state[i]; i++)
		state[i] = (char)(i ? tolower((unsigned char)state[i]) : toupper((unsigned char)state[i]));
	return state;
}

enum { ISSUES_MOST = 4 };

/* "DEGRADED; AsgInstanceLaunchFailures: ..." */
static const char *ailment_of(const struct nodegroup_text *t, struct arena *a)
{
	static const char *const ill[] = { "DEGRADED", "CREATE_FAILED", "DELETE_FAILED" };
	const struct issue_text *issues = t->issues.items;
	CLEANUP(buf_release) struct buf text = { 0 };

	for (size_t i = 0; i < sizeof ill / sizeof(const char *); i++)
		if (!strcmp(t->found.status, ill[i]))
			buf_text(&text, ill[i]);
	for (size_t i = 0; i < t->issues.count && i < ISSUES_MOST; i++) {
		char message[240];
		text_show(text_or_empty(issues[i].message), SIZE_MAX, message, sizeof message);
		buf_printf(&text, "%s%s%s%s", text.len ? "; " : "", text_or_empty(issues[i].code), *message ? ": " : "",
			   message);
	}
	if (t->issues.count > ISSUES_MOST)
		buf_printf(&text, "; and %zu more", t->issues.count - ISSUES_MOST);
	return text.len ? text_printf(a, "%s", text.text) : "";
}

/* As Kubernetes writes it: EKS has NO_SCHEDULE. */
static const char *effect_of(const char *text)
{
	return !strcmp(text, "NO_SCHEDULE")	     ? "NoSchedule"
	       : !strcmp(text, "NO_EXECUTE")	     ? "NoExecute"
	       : !strcmp(text, "PREFER_NO_SCHEDULE") ? "PreferNoSchedule"
						     : text;
}

/* EKS gives nodes these labels and taints, and Auto Scaling's groups none of its tags. */
static struct node_promise promise_of(const struct nodegroup_text *t, struct arena *a)
{
	const struct taint_text *taints = t->taints.items;
	struct node_promise p = { 0 };

	for (size_t i = 0; i < t->labels.count; i++)
		promise_label(&p, a, t->labels.pairs[i].key, t->labels.pairs[i].value);
	for (size_t i = 0; i < t->taints.count; i++)
		promise_taint(&p, a, taints[i].key, taints[i].value, effect_of(taints[i].effect));
	for (size_t i = 0; i < t->tags.count; i++)
		promise_tag_of_resource(&p, a, t->tags.pairs[i].key, t->tags.pairs[i].value);
	return p;
}

bool eks_read_nodegroup(const char *text, size_t len, struct arena *a, struct eks_nodegroup *out, struct error *e)
{
	struct nodegroup_text t;

	if (!text_decode(&nodegroup_record, text, len, a, &t, e))
		return false;
	if (t.groups.count > 1)
		return error_set(e, ERROR_INVALID,
				 "node group %s has several Auto Scaling groups; name one as autoScalingGroup", t.name);
	text_complete(&nodegroup_record, &t);
	*out = t.found;
	if (t.groups.count)
		out->group = *(const char *const *)t.groups.items;
	out->ailment = ailment_of(&t, a);
	out->promise = promise_of(&t, a);
	out->pool.exists = out->has_pool;
	out->pool.state = pool_state(a, *t.pool_state ? t.pool_state : "Stopped");
	return true;
}

/* Seconds since 1970, with a fraction, as a bare number. */
static millis read_seconds(struct decoded_text t)
{
	int64_t milli;

	return t.text && decimal_parse(t.text, t.len, 3, &milli) == DECIMAL_OK ? milli : 0;
}

bool eks_read_update(const char *text, size_t len, struct arena *a, struct eks_update *out, struct error *e)
{
	struct update_text t;

	if (!text_decode(&update_record, text, len, a, &t, e))
		return false;
	*out = (struct eks_update){ .id = t.id, .message = "", .created_at = read_seconds(t.created_at) };
	if (strcmp(t.status, "Successful") == 0)
		out->progress = EKS_SUCCEEDED;
	else if (strcmp(t.status, "Failed") == 0 || strcmp(t.status, "Cancelled") == 0)
		out->progress = EKS_FAILED;
	if (t.errors.count) {
		const struct error_text *first = t.errors.items;
		out->message = first->message ? first->message : text_or_empty(first->code);
	}
	return true;
}
