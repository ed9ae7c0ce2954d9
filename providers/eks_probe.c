#include "providers/eks_probe.h"

static void path_of_update(const struct eks_settings *s, struct buf *out)
{
	eks_update_path(s, "00000000-0000-0000-0000-000000000000", out);
}

static void ask_config(const struct eks_probed *of, struct buf *out)
{
	(void)of;
	buf_text(out, "{\"scalingConfig\":{\"minSize\":2,\"maxSize\":1}}");
}

static void ask_group(const struct eks_probed *of, struct buf *out)
{
	if (of->group)
		eks_describe_groups(&of->group, 1, out);
	else
		eks_find_group(of->settings->tags, of->settings->tag_count, out);
}

static void ask_activities(const struct eks_probed *of, struct buf *out)
{
	eks_describe_activities(of->group, 1, out);
}

static void ask_pool(const struct eks_probed *of, struct buf *out)
{
	eks_describe_pool(of->group, NULL, out);
}

static void ask_hooks(const struct eks_probed *of, struct buf *out)
{
	eks_describe_hooks(of->group, out);
}

static void ask_refreshes(const struct eks_probed *of, struct buf *out)
{
	eks_describe_refreshes(of->group, out);
}

static void ask_size(const struct eks_probed *of, struct buf *out)
{
	eks_set_size(of->group, -1, out);
}

static const char no_instance[] = "i-00000000000000000";

static void ask_protect(const struct eks_probed *of, struct buf *out)
{
	eks_protect(of->group, (const char *const[]){ no_instance }, 1, true, out);
}

static void ask_new(const struct eks_probed *of, struct buf *out)
{
	eks_protect_new(of->group, true, out);
	buf_text(out, "&MinSize=2&MaxSize=1");
}

static void ask_terminate(const struct eks_probed *of, struct buf *out)
{
	(void)of;
	eks_terminate(no_instance, out);
}

static void ask_put_pool(const struct eks_probed *of, struct buf *out)
{
	eks_put_pool(of->group, &(struct eks_pool_size){ .least = -1, .prepared = -2, .state = "Stopped" }, out);
}

static void ask_launch(const struct eks_probed *of, struct buf *out)
{
	eks_launch_instances(of->group, -1, NULL, "preheat-check", out);
}

static void ask_template(const struct eks_probed *of, struct buf *out)
{
	eks_describe_template(of->seen, out);
}

static void ask_reservation(const struct eks_probed *of, struct buf *out)
{
	(void)of;
	eks_describe_reservation("cr-00000000000000000", out);
}

static const struct eks_probe probes[] = {
	{ "eks:DescribeNodegroup", AWS_EKS, 0, PERMISSION_ALWAYS, eks_nodegroup_path, NULL, TELLS_NODEGROUP,
	  "finds the Auto Scaling group of the node group" },
	{ "autoscaling:DescribeAutoScalingGroups", AWS_AUTOSCALING, 0, PERMISSION_ALWAYS, NULL, ask_group, TELLS_GROUP,
	  "sees sizes and machines; nothing works without it" },
	{ "autoscaling:DescribeScalingActivities", AWS_AUTOSCALING, OF_GROUP, PERMISSION_ALWAYS, NULL, ask_activities,
	  TELLS_NOTHING, "learns of launches that failed, and why" },
	{ "autoscaling:DescribeWarmPool", AWS_AUTOSCALING, OF_GROUP, PERMISSION_FOR_STANDBY, NULL, ask_pool,
	  TELLS_NOTHING, "sees machines that stand by; without it there is no standby" },
	{ "autoscaling:DescribeLifecycleHooks", AWS_AUTOSCALING, OF_GROUP, PERMISSION_HELPS, NULL, ask_hooks,
	  TELLS_NOTHING, "learns how long a machine that ends runs on; without it half an hour is assumed" },
	{ "autoscaling:DescribeInstanceRefreshes", AWS_AUTOSCALING, OF_GROUP, PERMISSION_HELPS, NULL, ask_refreshes,
	  TELLS_NOTHING, "tells here of an instance refresh that goes on; nothing else asks for it" },
	{ "autoscaling:SetDesiredCapacity", AWS_AUTOSCALING, OF_GROUP, PERMISSION_ALWAYS, NULL, ask_size, TELLS_NOTHING,
	  "grows the group, and cancels what does not come" },
	{ "autoscaling:SetInstanceProtection", AWS_AUTOSCALING, OF_GROUP, PERMISSION_ALWAYS, NULL, ask_protect,
	  TELLS_NOTHING, "keeps Auto Scaling from choosing a machine to end" },
	{ "autoscaling:UpdateAutoScalingGroup", AWS_AUTOSCALING, OF_GROUP | OF_NEW, PERMISSION_ALWAYS, NULL, ask_new,
	  TELLS_NOTHING, "protects new machines by the group's own setting; only with protection: group" },
	{ "autoscaling:TerminateInstanceInAutoScalingGroup", AWS_AUTOSCALING, OF_GROUP | OF_NOTHING, PERMISSION_ALWAYS,
	  NULL, ask_terminate, TELLS_NOTHING, "removes a machine by name" },
	{ "autoscaling:PutWarmPool", AWS_AUTOSCALING, OF_GROUP, PERMISSION_FOR_STANDBY, NULL, ask_put_pool,
	  TELLS_NOTHING, "sizes the warm pool of an Auto Scaling group; only for standby" },
	{ "eks:UpdateNodegroupConfig", AWS_EKS, 0, PERMISSION_FOR_STANDBY, eks_config_path, ask_config, TELLS_NOTHING,
	  "sizes the warm pool of a node group; only for standby" },
	{ "eks:DescribeUpdate", AWS_EKS, OF_NOTHING, PERMISSION_FOR_STANDBY, path_of_update, NULL, TELLS_NOTHING,
	  "sees when a warm pool's change is over; only for standby" },
	{ "autoscaling:LaunchInstances", AWS_AUTOSCALING, OF_GROUP | OF_LAUNCHES, PERMISSION_ALWAYS, NULL, ask_launch,
	  TELLS_NOTHING, "launches at once; only with launch: instances" },
	{ "ec2:DescribeLaunchTemplateVersions", AWS_EC2, 0, PERMISSION_HELPS, NULL, ask_template, TELLS_NOTHING,
	  "finds the reservation of a Capacity Block (without it set reservedUntil), and whether images of machines "
	  "that "
	  "stand by lie on an instance store (without it they are taken to outlive a stop)" },
	{ "ec2:DescribeCapacityReservations", AWS_EC2, OF_BLOCK, PERMISSION_HELPS, NULL, ask_reservation, TELLS_NOTHING,
	  "reads when a Capacity Block ends; without it set reservedUntil" },
};
_Static_assert(sizeof probes / sizeof *probes == EKS_PROBES, "as many as the header says");

const struct eks_probe *eks_probe_at(size_t i)
{
	return i < EKS_PROBES ? &probes[i] : NULL;
}

bool eks_probe_applies(const struct eks_probe *p, const struct eks_probed *of)
{
	return (p->service != AWS_EKS || (of->settings->cluster && of->settings->nodegroup)) &&
	       (p->service != AWS_EC2 || of->tells_by_template) && (!(p->is & OF_BLOCK) || of->is_block) &&
	       (!(p->is & OF_NEW) || of->settings->protects_new) &&
	       (!(p->is & OF_LAUNCHES) || of->settings->launch == EKS_LAUNCH_INSTANCES);
}

bool eks_probe_is_possible(const struct eks_probe *p, const struct eks_probed *of)
{
	return of->group || !((p->is & OF_GROUP) || (p->tells == TELLS_GROUP && !of->settings->tag_count));
}

enum permission_state eks_probe_judge(const struct eks_probe *p, const struct error *e, const char **message)
{
	bool is_complaint = e->kind == ERROR_INVALID || e->kind == ERROR_NOT_FOUND || e->kind == ERROR_CONFLICT ||
			    e->kind == ERROR_QUOTA;

	*message = e->kind == ERROR_NONE || (is_complaint && (!p->body || (p->is & OF_GROUP))) ? "" : e->message;
	if (e->kind == ERROR_NONE || is_complaint)
		return PERMISSION_GRANTED;
	if (e->kind != ERROR_AUTH)
		return PERMISSION_UNKNOWN;
	if (!(p->is & OF_NOTHING))
		return PERMISSION_DENIED;
	*message = "denied for what does not exist, which a policy that is bound to tags does whatever it grants; it "
		   "shows when it is first used";
	return PERMISSION_UNKNOWN;
}
