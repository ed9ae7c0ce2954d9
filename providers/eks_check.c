/*
 * What our credentials may do, found without changing anything. EC2 Auto
 * Scaling and EKS have no dry run. But they ask for the permission before
 * they look at what is asked for, so a request that can have no effect (a
 * negative size, no machine, more at least than at most) tells: AccessDenied, or a
 * complaint about the request, which is then granted.
 */
#include "providers/eks_exchange.h"

#include <string.h>

static const char no_instance[] = "i-00000000000000000", no_update[] = "00000000-0000-0000-0000-000000000000";

struct probe {
	const char *action, *purpose;
	enum aws_service service;
	void (*write)(struct exchange *x, struct buf *out); /* the body, or of GET the path */
	bool is_get, needs_group, needs_nodegroup, needs_launch;
	enum permission_need need;
	bool is_of_nothing; /* names what does not exist: policies that are bound to tags deny it whatever they grant */
};

static void ask_nodegroup(struct exchange *x, struct buf *out)
{
	eks_nodegroup_path(&x->settings, out);
}

static void ask_update(struct exchange *x, struct buf *out)
{
	eks_update_path(&x->settings, no_update, out);
}

static void ask_group(struct exchange *x, struct buf *out)
{
	if (x->group)
		eks_describe_groups(&x->group, 1, out);
	else
		eks_find_group(x->settings.tags, x->settings.tag_count, out);
}

static void ask_activities(struct exchange *x, struct buf *out)
{
	eks_describe_activities(x->group, 1, out);
}

static void ask_pool(struct exchange *x, struct buf *out)
{
	eks_describe_pool(x->group, NULL, out);
}

static void ask_size(struct exchange *x, struct buf *out)
{
	eks_set_size(x->group, -1, out);
}

static void ask_terminate(struct exchange *x, struct buf *out)
{
	(void)x;
	eks_terminate(no_instance, out);
}

static void ask_protect(struct exchange *x, struct buf *out)
{
	const char *ids[] = { no_instance };

	eks_protect(x->group, ids, 1, true, out);
}

static void ask_put_pool(struct exchange *x, struct buf *out)
{
	eks_put_pool(x->group, &(struct eks_pool_size){ .least = -1, .prepared = -2, .state = "Stopped" }, out);
}

static void ask_config(struct exchange *x, struct buf *out)
{
	(void)x;
	buf_text(out, "{\"scalingConfig\":{\"minSize\":2,\"maxSize\":1}}");
}

static void ask_launch(struct exchange *x, struct buf *out)
{
	eks_launch_instances(x->group, -1, NULL, "preheat-check", out);
}

static const struct probe probes[] = {
	{ .action = "eks:DescribeNodegroup",
	  .purpose = "finds the Auto Scaling group of the node group",
	  .service = AWS_EKS,
	  .write = ask_nodegroup,
	  .is_get = true,
	  .needs_nodegroup = true },
	{ .action = "autoscaling:DescribeAutoScalingGroups",
	  .purpose = "sees sizes and machines; nothing works without it",
	  .service = AWS_AUTOSCALING,
	  .write = ask_group },
	{ .action = "autoscaling:DescribeScalingActivities",
	  .purpose = "learns of launches that failed, and why",
	  .service = AWS_AUTOSCALING,
	  .write = ask_activities,
	  .needs_group = true },
	{ .action = "autoscaling:DescribeWarmPool",
	  .purpose = "sees machines that stand by; without it there is no standby",
	  .need = PERMISSION_FOR_STANDBY,
	  .service = AWS_AUTOSCALING,
	  .write = ask_pool,
	  .needs_group = true },
	{ .action = "autoscaling:SetDesiredCapacity",
	  .purpose = "grows the group, and gives up what cannot be had",
	  .service = AWS_AUTOSCALING,
	  .write = ask_size,
	  .needs_group = true },
	{ .action = "autoscaling:SetInstanceProtection",
	  .purpose = "keeps Auto Scaling from choosing a machine to end",
	  .service = AWS_AUTOSCALING,
	  .write = ask_protect,
	  .needs_group = true },
	{ .action = "autoscaling:TerminateInstanceInAutoScalingGroup",
	  .purpose = "removes a machine by name",
	  .service = AWS_AUTOSCALING,
	  .write = ask_terminate,
	  .needs_group = true,
	  .is_of_nothing = true },
	{ .action = "autoscaling:PutWarmPool",
	  .purpose = "sizes the warm pool of an Auto Scaling group; only for standby",
	  .need = PERMISSION_FOR_STANDBY,
	  .service = AWS_AUTOSCALING,
	  .write = ask_put_pool,
	  .needs_group = true },
	{ .action = "eks:UpdateNodegroupConfig",
	  .purpose = "sizes the warm pool of a node group; only for standby",
	  .need = PERMISSION_FOR_STANDBY,
	  .service = AWS_EKS,
	  .write = ask_config,
	  .needs_nodegroup = true },
	{ .action = "eks:DescribeUpdate",
	  .purpose = "sees when a warm pool's change is over; only for standby",
	  .need = PERMISSION_FOR_STANDBY,
	  .service = AWS_EKS,
	  .write = ask_update,
	  .is_get = true,
	  .needs_nodegroup = true,
	  .is_of_nothing = true },
	{ .action = "autoscaling:LaunchInstances",
	  .purpose = "launches at once; only with launch: instances",
	  .service = AWS_AUTOSCALING,
	  .write = ask_launch,
	  .needs_group = true,
	  .needs_launch = true },
};
enum { PROBES = sizeof probes / sizeof *probes };

static void add(struct exchange *x, const struct probe *p, enum permission_state state, const char *message)
{
	x->call->permissions[x->call->permission_count++] =
		(struct permission){ p->action, p->purpose, state, p->need,
				     arena_strdup(&x->call->arena, message, strlen(message)) };
}

static bool applies(const struct exchange *x, const struct probe *p)
{
	bool has_nodegroup = x->settings.cluster && x->settings.nodegroup;

	return (!p->needs_nodegroup || has_nodegroup) &&
	       (!p->needs_launch || x->settings.launch == EKS_LAUNCH_INSTANCES);
}

static bool can_be_asked(const struct exchange *x, const struct probe *p)
{
	return x->group || !(p->needs_group || (p->write == ask_group && !x->settings.tag_count));
}

/* To the next probe that can be asked. */
static void skip(struct exchange *x)
{
	for (; x->probe_at < PROBES; x->probe_at++) {
		const struct probe *p = &probes[x->probe_at];
		if (!applies(x, p))
			continue;
		if (can_be_asked(x, p))
			return;
		add(x, p, PERMISSION_UNKNOWN, "the Auto Scaling group is not known, so this could not be asked");
	}
}

static void note(struct exchange *x, enum permission_state state, const char *message)
{
	add(x, &probes[x->probe_at++], state, message);
	skip(x);
}

static bool identity_is_due(const struct exchange *x)
{
	return !x->call->identity;
}

static void identity_write(struct exchange *x)
{
	x->request.service = AWS_STS;
	x->request.method = "POST";
	buf_clear(&x->path);
	buf_clear(&x->body);
	buf_text(&x->path, "/");
	eks_caller_identity(&x->body);
	x->request.body = "";
}

static bool identity_read(struct exchange *x, struct error *e)
{
	struct arena *a = &x->call->arena;

	x->call->permissions = arena_array(a, struct permission, PROBES);
	x->group = x->settings.auto_scaling_group;
	skip(x);
	return eks_read_identity(x->request.response, x->request.response_len, a, &x->call->identity, e);
}

const struct step eks_step_identity = {
	.name = "GetCallerIdentity", .is_due = identity_is_due, .write = identity_write, .read = identity_read
};

static bool probe_is_due(const struct exchange *x)
{
	return x->probe_at < PROBES;
}

static void probe_write(struct exchange *x)
{
	const struct probe *p = &probes[x->probe_at];
	x->request.service = p->service;
	x->request.method = p->is_get ? "GET" : "POST";
	buf_clear(&x->path);
	buf_clear(&x->body);
	if (p->is_get) {
		p->write(x, &x->path);
	} else if (p->service == AWS_EKS) {
		eks_config_path(&x->settings, &x->path);
		p->write(x, &x->body);
	} else {
		buf_text(&x->path, "/");
		p->write(x, &x->body);
	}
	x->request.body = p->is_get ? NULL : "";
}

/* What these answers tell of the group serves the probes that follow. */
static void learn(struct exchange *x, const struct probe *p)
{
	struct eks_nodegroup n;
	const char *name;
	struct error ignored;

	if (p->write == ask_nodegroup &&
	    eks_read_nodegroup(x->request.response, x->request.response_len, &x->call->arena, &n, &ignored))
		x->group = n.group;
	if (p->write == ask_group && !x->group &&
	    eks_read_found(x->request.response, x->request.response_len, &x->call->arena, &name, &ignored))
		x->group = name;
}

static bool probe_read(struct exchange *x, struct error *e)
{
	(void)e;
	learn(x, &probes[x->probe_at]);
	note(x, PERMISSION_GRANTED, "");
	return true;
}

static bool probe_forgives(struct exchange *x, const struct error *e)
{
	const struct probe *p = &probes[x->probe_at];

	switch (e->kind) {
	case ERROR_AUTH:
		if (p->is_of_nothing)
			note(x, PERMISSION_UNKNOWN,
			     "denied for what does not exist, which a policy that is bound to tags does whatever it "
			     "grants; it shows when it is first used");
		else
			note(x, PERMISSION_DENIED, e->message);
		return true;
	case ERROR_INVALID:
	case ERROR_NOT_FOUND:
	case ERROR_CONFLICT:
	case ERROR_QUOTA:
		note(x, PERMISSION_GRANTED, p->is_get || p->needs_group ? "" : e->message);
		return true;
	default:
		note(x, PERMISSION_UNKNOWN, e->message);
		return true;
	}
}

const struct step eks_step_probe = {
	.name = "a probe", .is_due = probe_is_due, .write = probe_write, .read = probe_read, .forgives = probe_forgives
};
