#include "providers/eks_request.h"

#include "base/json_write.h"
#include "base/uri.h"
#include "providers/aws/escape.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char version[] = "2011-01-01";

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

/* EKS writes in capitals what Auto Scaling writes as "Stopped". */
static void write_pool_state(const char *state, struct buf *out)
{
	buf_text(out, "\"");
	for (; *state; state++)
		buf_printf(out, "%c", toupper((unsigned char)*state));
	buf_text(out, "\"");
}

void eks_config_body(const struct eks_pool_size *size, const char *token, struct buf *out)
{
	buf_printf(out,
		   "{\"warmPoolConfig\":{\"enabled\":true,\"minSize\":%" PRId64 ",\"maxGroupPreparedCapacity\":%" PRId64
		   ",\"poolState\":",
		   size->least, size->prepared);
	write_pool_state(size->state, out);
	buf_printf(out, ",\"reuseOnScaleIn\":%s},\"clientRequestToken\":", size->reuses ? "true" : "false");
	json_write_text(token, out);
	buf_text(out, "}");
}

static void begin(const char *action, const char *group, struct buf *out)
{
	aws_form_begin(action, version, out);
	if (group)
		aws_form_text("AutoScalingGroupName", group, out);
}

void eks_describe_groups(const char *const *groups, size_t count, struct buf *out)
{
	begin("DescribeAutoScalingGroups", NULL, out);
	for (size_t i = 0; i < count; i++)
		aws_form_member("AutoScalingGroupNames", i, groups[i], out);
	aws_form_bool("IncludeInstances", true, out);
	aws_form_int("MaxRecords", 100, out);
}

void eks_find_group(const struct eks_tag *tags, size_t count, struct buf *out)
{
	begin("DescribeAutoScalingGroups", NULL, out);
	for (size_t i = 0; i < count; i++) {
		CLEANUP(buf_release) struct buf name = { 0 };
		char key[64];
		buf_printf(&name, tags[i].value ? "tag:%s" : "%s", tags[i].value ? tags[i].key : "tag-key");
		snprintf(key, sizeof key, "Filters.member.%zu.Name", i + 1);
		aws_form_text(key, name.text, out);
		snprintf(key, sizeof key, "Filters.member.%zu.Values.member.1", i + 1);
		aws_form_text(key, tags[i].value ? tags[i].value : tags[i].key, out);
	}
	aws_form_bool("IncludeInstances", false, out);
	aws_form_int("MaxRecords", 100, out);
}

void eks_describe_pool(const char *group, const char *page, struct buf *out)
{
	begin("DescribeWarmPool", group, out);
	if (page)
		aws_form_text("NextToken", page, out);
}

void eks_describe_activities(const char *group, int most, struct buf *out)
{
	begin("DescribeScalingActivities", group, out);
	aws_form_int("MaxRecords", most, out);
}

void eks_set_size(const char *group, int64_t desired, struct buf *out)
{
	begin("SetDesiredCapacity", group, out);
	aws_form_int("DesiredCapacity", desired, out);
	aws_form_bool("HonorCooldown", false, out);
}

void eks_terminate(const char *id, struct buf *out)
{
	begin("TerminateInstanceInAutoScalingGroup", NULL, out);
	aws_form_text("InstanceId", id, out);
	aws_form_bool("ShouldDecrementDesiredCapacity", true, out);
}

void eks_protect(const char *group, const char *const *ids, size_t count, bool is_protected, struct buf *out)
{
	begin("SetInstanceProtection", group, out);
	for (size_t i = 0; i < count; i++)
		aws_form_member("InstanceIds", i, ids[i], out);
	aws_form_bool("ProtectedFromScaleIn", is_protected, out);
}

void eks_put_pool(const char *group, const struct eks_pool_size *size, struct buf *out)
{
	begin("PutWarmPool", group, out);
	aws_form_int("MinSize", size->least, out);
	aws_form_int("MaxGroupPreparedCapacity", size->prepared, out);
	aws_form_text("PoolState", size->state, out);
	aws_form_bool("InstanceReusePolicy.ReuseOnScaleIn", size->reuses, out);
}

void eks_launch_instances(const char *group, int64_t count, const char *zone, const char *token, struct buf *out)
{
	begin("LaunchInstances", group, out);
	aws_form_int("RequestedCapacity", count, out);
	aws_form_text("ClientToken", token, out);
	if (zone)
		aws_form_member("AvailabilityZones", 0, zone, out);
	aws_form_text("RetryStrategy", "none", out);
}

void eks_caller_identity(struct buf *out)
{
	aws_form_begin("GetCallerIdentity", "2011-06-15", out);
}
