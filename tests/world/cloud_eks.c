/*
 * Groups of the world's cloud as AWS shows them: EKS for the node group, Auto Scaling for all else. A size is only
 * wished for; activities tell what could not be had; who lowers it leaves the choice to Auto Scaling, which spares what
 * is protected.
 */
#include "tests/world/cloud.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { IDS = 64 };

static void refuse(struct wire_call *c, long status, const char *code)
{
	char text[300];
	bool is_throttle = status == 429;

	snprintf(text, sizeof text,
		 "<ErrorResponse><Error><Code>%s</Code><Message>on purpose</Message></Error></ErrorResponse>",
		 is_throttle	 ? "Throttling"
		 : status == 403 ? "AccessDenied"
				 : code);
	if (!strcmp(c->path, "/"))
		wire_answer(c, is_throttle ? 400 : status, "Content-Type: text/xml", text);
	else
		wire_answer(c, status, NULL, "{\"message\":\"on purpose\"}");
}

/* Of a form; "" when it is not there. Names in worlds need no unescaping. */
static const char *field(const char *form, const char *name, char *room, size_t size)
{
	size_t len = strlen(name);

	room[0] = '\0';
	for (const char *p = form; *p; p += strcspn(p, "&"), p += *p == '&')
		if (!strncmp(p, name, len) && p[len] == '=') {
			snprintf(room, size, "%.*s", (int)strcspn(p + len + 1, "&"), p + len + 1);
			break;
		}
	return room;
}

static int64_t number(const char *form, const char *name)
{
	char room[64];

	return strtoll(field(form, name, room, sizeof room), NULL, 10);
}

static void write_time(millis wall, struct buf *out)
{
	time_t seconds = (time_t)(wall / SECOND);
	struct tm tm;
	char text[32];

	gmtime_r(&seconds, &tm);
	strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
	buf_text(out, text);
}

static void answer(struct wire_call *c, const char *operation, const struct buf *result)
{
	struct buf text = { .cap = (size_t)64 << 20 };

	buf_printf(&text, "<%sResponse><%sResult>", operation, operation);
	buf_append(&text, result->text ? result->text : "", result->len);
	buf_printf(&text, "</%sResult></%sResponse>", operation, operation);
	wire_answer(c, 200, "Content-Type: text/xml", text.text);
	buf_release(&text);
}

static const char *lifecycle_of(const struct cloud_machine *m)
{
	static const char *const warmed[] = { [STEP_PENDING] = "Warmed:Pending",
					      [STEP_STOPPING] = "Warmed:Pending:Proceed",
					      [STEP_STOPPED] = "Warmed:Stopped",
					      [STEP_TERMINATING] = "Warmed:Terminating" };

	if (!m->is_to_run)
		return warmed[m->step];
	if (cloud_is_held(m))
		return "Pending:Wait";
	if (m->step == STEP_PENDING)
		return m->group->hook ? "Pending:Wait" : "Pending";
	if (m->step == STEP_WAKING)
		return "Pending";
	if (cloud_has_power(m))
		return m->step == STEP_RUNNING ? "InService" : "Terminating:Wait";
	return m->powered_until > m->since ? "Terminating:Proceed" : "Terminating";
}

static void write_machines(const struct cloud_group *g, bool is_to_run, struct buf *out)
{
	buf_text(out, "<Instances>");
	for (const struct cloud_machine *m = g->machines; m; m = m->next)
		if (m->is_to_run == is_to_run)
			buf_printf(out,
				   "<member><InstanceId>%s</InstanceId><InstanceType>%s</InstanceType>"
				   "<AvailabilityZone>%s</AvailabilityZone><LifecycleState>%s</LifecycleState>"
				   "<ProtectedFromScaleIn>%s</ProtectedFromScaleIn></member>",
				   m->id, g->instance_type, cloud_zone_name(g, m->zone), lifecycle_of(m),
				   m->is_protected ? "true" : "false");
	buf_text(out, "</Instances>");
}

static void write_warm_pool(const struct cloud_group *g, struct buf *out)
{
	if (!g->warm.exists)
		return;
	buf_printf(out,
		   "<WarmPoolConfiguration><MinSize>%" PRId64
		   "</MinSize><PoolState>Stopped</PoolState><InstanceReusePolicy><ReuseOnScaleIn>%s</ReuseOnScaleIn>"
		   "</InstanceReusePolicy>",
		   g->warm.least, g->warm.reuses ? "true" : "false");
	if (g->warm.prepared >= 0)
		buf_printf(out, "<MaxGroupPreparedCapacity>%" PRId64 "</MaxGroupPreparedCapacity>", g->warm.prepared);
	buf_text(out, "</WarmPoolConfiguration>");
}

/* "node-template/label/KEY" VALUE, "node-template/taint/KEY" VALUE:EFFECT */
static void write_tags(const struct cloud_group *g, struct buf *out)
{
	buf_text(out, "<Tags>");
	for (const struct cloud_mark *m = g->marks; m && m->key; m++)
		if (m->is_by_tag)
			buf_printf(out,
				   "<member><Key>k8s.io/cluster-autoscaler/node-template/%s/%s</Key><Value>%s%s%s"
				   "</Value><ResourceId>asg-%s</ResourceId><ResourceType>auto-scaling-group"
				   "</ResourceType><PropagateAtLaunch>true</PropagateAtLaunch></member>",
				   m->effect ? "taint" : "label", m->key, m->value, m->effect ? ":" : "",
				   m->effect ? m->effect : "", g->name);
	buf_text(out, "</Tags>");
}

static void write_group(const struct cloud_group *g, struct buf *out)
{
	buf_printf(out,
		   "<member><AutoScalingGroupName>asg-%s</AutoScalingGroupName><MinSize>%" PRId64
		   "</MinSize><MaxSize>%" PRId64 "</MaxSize><DesiredCapacity>%" PRId64
		   "</DesiredCapacity><NewInstancesProtectedFromScaleIn>%s</NewInstancesProtectedFromScaleIn>"
		   "<AvailabilityZones>",
		   g->name, g->min, g->max, g->desired, g->protects_new ? "true" : "false");
	for (size_t i = 0; i < cloud_zone_count(g); i++)
		buf_printf(out, "<member>%s</member>", cloud_zone_name(g, i));
	buf_text(out, "</AvailabilityZones>");
	if (g->is_left_unbalanced)
		buf_text(out, "<SuspendedProcesses><member><ProcessName>AZRebalance</ProcessName></member>"
			      "</SuspendedProcesses>");
	write_tags(g, out);
	write_machines(g, true, out);
	write_warm_pool(g, out);
	buf_text(out, "</member>");
}

static void describe_warm_pool(struct wire_call *c, const struct cloud_group *g)
{
	struct buf out = { .cap = (size_t)8 << 20 };

	write_warm_pool(g, &out);
	write_machines(g, false, &out);
	answer(c, "DescribeWarmPool", &out);
	buf_release(&out);
}

static void describe_groups(struct wire_call *c)
{
	struct buf out = { .cap = (size_t)64 << 20 };
	char key[64], name[80];

	buf_text(&out, "<AutoScalingGroups>");
	for (int i = 1; i <= 10; i++) {
		snprintf(key, sizeof key, "AutoScalingGroupNames.member.%d", i);
		field(c->body, key, name, sizeof name);
		struct cloud_group *g = strlen(name) > 4 ? cloud_group_named(name + 4, CLOUD_EKS) : NULL;
		if (g)
			write_group(cloud_shown(g), &out);
	}
	buf_text(&out, "</AutoScalingGroups>");
	answer(c, "DescribeAutoScalingGroups", &out);
	buf_release(&out);
}

/* The size as somebody else set it last, in the words that AWS tells whose doing it was. */
static void write_resize(const struct cloud_group *g, struct buf *out)
{
	if (!g->resized.at)
		return;
	buf_printf(out,
		   "<member><ActivityId>resize-%" PRId64 "</ActivityId><StatusCode>Successful</StatusCode>"
		   "<Description>%s EC2 instance: i-1</Description><Cause>At ",
		   g->resized.at, g->resized.to < g->resized.from ? "Terminating" : "Launching a new");
	write_time(wire_host_wall(CLOUD_AWS, g->resized.at), out);
	buf_printf(out,
		   " a %s update of AutoScalingGroup constraints to min: %" PRId64 ", max: %" PRId64
		   ", desired: %" PRId64 " changing the desired capacity from %" PRId64 " to %" PRId64
		   ".</Cause><StartTime>",
		   g->resized.is_schedule ? "scheduled action" : "user request", g->min, g->max, g->resized.to,
		   g->resized.from, g->resized.to);
	write_time(wire_host_wall(CLOUD_AWS, g->resized.at), out);
	buf_text(out, "</StartTime></member>");
}

/* Newest first: what failed, and what is being launched. */
static void describe_activities(struct wire_call *c, const struct cloud_group *g)
{
	struct buf out = { .cap = (size_t)64 << 20 };
	int64_t from = g->failure_count > CLOUD_FAILURES ? g->failure_count - CLOUD_FAILURES : 0;

	buf_text(&out, "<Activities>");
	for (int64_t i = g->failure_count; i-- > from;) {
		const struct cloud_failure *f = &g->failures[i % CLOUD_FAILURES];
		/* What AWS calls one that a hook abandoned is not documented. */
		buf_printf(&out,
			   "<member><ActivityId>%s-%" PRId64 "</ActivityId><StatusCode>%s</StatusCode>"
			   "<Description>Launching a new EC2 instance.  Status Reason: %s</Description><StatusMessage>"
			   "%s</StatusMessage><Details>{\"Availability Zone\":\"%s\"}</Details><StartTime>",
			   g->name, f->id, f->is_abandoned && f->id % 2 ? "Cancelled" : "Failed",
			   f->is_abandoned ? "Instance failed to complete user's Lifecycle Action"
			   : f->is_quota   ? "You have requested more vCPU capacity than your current vCPU limit"
					   : "We currently do not have sufficient g5.xlarge capacity",
			   f->is_abandoned ? "Instance failed to complete user's Lifecycle Action: Lifecycle Action "
					     "with token 1 was abandoned: Heartbeat Timeout"
			   : f->is_quota   ? "VcpuLimitExceeded"
					   : "InsufficientInstanceCapacity",
			   cloud_zone_name(g, f->zone));
		write_time(wire_host_wall(CLOUD_AWS, f->at), &out);
		buf_text(&out, "</StartTime><EndTime>");
		write_time(wire_host_wall(CLOUD_AWS, f->at), &out);
		buf_text(&out, "</EndTime></member>");
	}
	for (const struct cloud_machine *m = g->machines; m; m = m->next) {
		bool wakes = m->step == STEP_WAKING;
		if (m->step != STEP_PENDING && !wakes && !cloud_is_held(m))
			continue;
		buf_printf(&out,
			   "<member><ActivityId>launch-%s</ActivityId><StatusCode>%s</StatusCode><Description>"
			   "Launching a new EC2 instance%s: %s</Description><StartTime>",
			   m->id, cloud_is_held(m) ? "MidLifecycleAction" : "InProgress",
			   wakes ? " from warm pool" : "", m->id);
		write_time(wire_host_wall(CLOUD_AWS, wakes ? m->woken : m->launched), &out);
		buf_text(&out, "</StartTime></member>");
	}
	write_resize(g, &out);
	buf_text(&out, "</Activities>");
	answer(c, "DescribeScalingActivities", &out);
	buf_release(&out);
}

static void write_hook(const char *name, const char *transition, millis hold, bool abandons, struct buf *out)
{
	if (hold)
		buf_printf(out,
			   "<member><LifecycleHookName>%s</LifecycleHookName><LifecycleTransition>autoscaling:%s"
			   "</LifecycleTransition><HeartbeatTimeout>%" PRId64 "</HeartbeatTimeout><GlobalTimeout>172800"
			   "</GlobalTimeout><DefaultResult>%s</DefaultResult></member>",
			   name, transition, hold / SECOND, abandons ? "ABANDON" : "CONTINUE");
}

static void describe_hooks(struct wire_call *c, const struct cloud_group *g)
{
	struct buf out = { .cap = (size_t)1 << 20 };

	buf_text(&out, "<LifecycleHooks>");
	write_hook("starts", "EC2_INSTANCE_LAUNCHING", g->hook, false, &out);
	write_hook("waits", "EC2_INSTANCE_LAUNCHING", g->hook_beside, g->hook_abandons, &out);
	write_hook("ends", "EC2_INSTANCE_TERMINATING", g->end_hook, false, &out);
	buf_text(&out, "</LifecycleHooks>");
	answer(c, "DescribeLifecycleHooks", &out);
	buf_release(&out);
}

static void end_call(struct wire_call *c, const struct cloud_call *call, const char *code, const char *operation)
{
	struct buf nothing = { 0 };

	if (call->is_lost)
		wire_cut(c);
	else if (call->status != 202)
		refuse(c, 400,
		       !strcmp(code, "InvalidParameter")       ? "ValidationError"
		       : !strcmp(code, "InsufficientCapacity") ? "ResourceContention"
							       : code);
	else
		answer(c, operation, &nothing);
}

static bool is_among(const char *id, const char *const *ids, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (ids[i] == id)
			return true;
	return false;
}

/* What a lower size ends, each time of the fullest zone: what does not run yet first, then by age, and nothing that is
 * protected. */
static size_t choose_to_end(const struct cloud_group *g, int64_t size, const char *ids[IDS])
{
	int64_t surplus = cloud_awake(g) - size, load[CLOUD_ZONES];
	size_t count = 0;

	cloud_zone_load(g, load);
	for (; (int64_t)count < surplus && count < IDS; count++) {
		const struct cloud_machine *chosen = NULL;
		for (const struct cloud_machine *m = g->machines; m; m = m->next)
			if (m->is_to_run && m->step != STEP_TERMINATING &&
			    !(m->step == STEP_RUNNING && m->is_protected) && !is_among(m->id, ids, count) &&
			    (!chosen || load[m->zone] > load[chosen->zone] ||
			     (load[m->zone] == load[chosen->zone] && chosen->step == STEP_RUNNING &&
			      m->step != STEP_RUNNING)))
				chosen = m;
		if (!chosen)
			break;
		ids[count] = chosen->id;
		load[chosen->zone]--;
	}
	return count;
}

static void set_size(struct wire_call *c, struct cloud_group *g)
{
	int64_t asked = number(c->body, "DesiredCapacity");
	struct cloud_call call = { .at = wire_now(),
				   .from = c->from,
				   .group = g,
				   .verb = asked < g->desired ? "lower" : "grow",
				   .token = "",
				   .asked = asked,
				   .is_again = c->is_again };
	const char *code = "", *ids[IDS];

	if (asked < g->min || asked > g->max) {
		refuse(c, 400, "ValidationError");
		return;
	}
	if (asked < g->desired && g->warm.exists) {
		call.ids = ids;
		call.id_count = choose_to_end(g, asked, ids);
		call.verb = call.id_count ? "stop" : "lower";
	}
	cloud_change(&call, c->body, &code);
	end_call(c, &call, code, "SetDesiredCapacity");
}

/* Of several one is to be named; CLOUD_ZONES: none of the group's is. */
static size_t zone_named(const struct wire_call *c, const struct cloud_group *g)
{
	char name[16];
	size_t zone = 0, count = cloud_zone_count(g);

	field(c->body, "AvailabilityZones.member.1", name, sizeof name);
	while (zone < count && strcmp(name, cloud_zone_name(g, zone)) != 0)
		zone++;
	return zone < count ? zone : count == 1 && !*name ? 0 : CLOUD_ZONES;
}

/* A launch that adds to what there is by then, whatever was read before. */
static void launch_instances(struct wire_call *c, struct cloud_group *g)
{
	char token[80];
	struct cloud_call call = { .at = wire_now(),
				   .from = c->from,
				   .group = g,
				   .verb = "grow",
				   .token = field(c->body, "ClientToken", token, sizeof token),
				   .asked = g->desired + number(c->body, "RequestedCapacity"),
				   .launches = number(c->body, "RequestedCapacity"),
				   .zone = zone_named(c, g),
				   .is_again = c->is_again };
	const char *code = "";
	struct buf out = { .cap = 1 << 20 };
	int64_t before = g->desired, asked = call.launches;

	if (call.asked > g->max || g->warm.exists || call.zone == CLOUD_ZONES) {
		refuse(c, 400, "ValidationError");
		return;
	}
	bool tells_at_once = g->faults.at_once;
	g->faults.at_once = true; /* without a retry strategy what fails is told, and the size stays */
	cloud_change(&call, c->body, &code);
	g->faults.at_once = tells_at_once;
	if (call.is_lost || (call.status != 202 && call.status != 409)) {
		end_call(c, &call, code, "LaunchInstances");
		return;
	}
	bool is_part = g->desired > before && g->desired < before + asked;
	if (call.status == 409 || is_part)
		buf_printf(&out,
			   "<Errors><member><InstanceType>%s</InstanceType><AvailabilityZone>%s</AvailabilityZone>"
			   "<ErrorCode>InsufficientInstanceCapacity</ErrorCode><ErrorMessage>none</ErrorMessage>"
			   "</member></Errors>",
			   g->instance_type, cloud_zone_name(g, call.zone));
	buf_text(&out, "<Instances><member><InstanceIds>");
	for (const struct cloud_machine *m = g->machines; m; m = m->next)
		if (!strcmp(m->token, token))
			buf_printf(&out, "<member>%s</member>", m->id);
	buf_text(&out, "</InstanceIds></member></Instances>");
	answer(c, "LaunchInstances", &out);
	buf_release(&out);
}

static void terminate_one(struct wire_call *c)
{
	char id[64];
	const char *ids[] = { field(c->body, "InstanceId", id, sizeof id) }, *code = "";
	struct cloud_machine *m = cloud_find(id);
	struct cloud_call call = { .at = wire_now(),
				   .from = c->from,
				   .verb = "remove",
				   .token = "",
				   .asked = -1,
				   .ids = ids,
				   .id_count = 1,
				   .is_again = c->is_again };

	if (m && !m->is_to_run) { /* it is in the warm pool, where none can be named */
		refuse(c, 400, "ValidationError");
		return;
	}
	if (!m || (m->step == STEP_TERMINATING && (!m->was_named || c->is_again))) {
		wire_answer(
			c, 400, "Content-Type: text/xml",
			"<ErrorResponse><Error><Code>ValidationError</Code><Message>Instance Id not found - No managed "
			"instance found</Message></Error></ErrorResponse>");
		return;
	}
	if (cloud_spoils(c, m->group, refuse))
		return;
	if (m->group->desired - 1 < m->group->min) {
		refuse(c, 400, "ValidationError");
		return;
	}
	call.group = m->group;
	cloud_change(&call, c->body, &code);
	end_call(c, &call, code, "TerminateInstanceInAutoScalingGroup");
}

static void protect(struct wire_call *c)
{
	char key[64], id[64], word[16];
	struct buf nothing = { 0 };
	bool is_protected = !strcmp(field(c->body, "ProtectedFromScaleIn", word, sizeof word), "true");

	for (int i = 1; i <= IDS; i++) {
		snprintf(key, sizeof key, "InstanceIds.member.%d", i);
		struct cloud_machine *m = cloud_find(field(c->body, key, id, sizeof id));
		if (*id && (!m || !m->is_to_run ||
			    cloud_is_held(m))) { /* all or none: only what is in service can be protected */
			refuse(c, 400, "ValidationError");
			return;
		}
		if (m && m->step == STEP_RUNNING)
			m->is_protected = is_protected;
	}
	answer(c, "SetInstanceProtection", &nothing);
}

static void put_warm_pool(struct wire_call *c, struct cloud_group *g)
{
	char word[16];
	const char *code = "";
	struct cloud_warm_pool asked = {
		.exists = true,
		.reuses = !strcmp(field(c->body, "InstanceReusePolicy.ReuseOnScaleIn", word, sizeof word), "true"),
		.least = number(c->body, "MinSize"),
		.prepared = number(c->body, "MaxGroupPreparedCapacity")
	};
	int64_t room = asked.prepared - g->desired;
	struct cloud_call call = { .at = wire_now(),
				   .from = c->from,
				   .group = g,
				   .verb = "standby",
				   .token = "",
				   .asked = room > asked.least ? room : asked.least,
				   .warm = asked,
				   .is_again = c->is_again };

	if (asked.least < 0 || asked.prepared < asked.least) {
		refuse(c, 400, "ValidationError");
		return;
	}
	cloud_change(&call, c->body, &code);
	end_call(c, &call, code, "PutWarmPool");
}

static void update_group(struct wire_call *c, struct cloud_group *g)
{
	char word[16];
	struct buf nothing = { 0 };

	cloud_note_past(g);
	g->protects_new = !strcmp(field(c->body, "NewInstancesProtectedFromScaleIn", word, sizeof word), "true");
	cloud_note_past(g);
	answer(c, "UpdateAutoScalingGroup", &nothing);
}

static void serve_action(struct wire_call *c)
{
	char action[64], name[80];

	field(c->body, "Action", action, sizeof action);
	field(c->body, "AutoScalingGroupName", name, sizeof name);
	if (!*name)
		field(c->body, "AutoScalingGroupNames.member.1", name, sizeof name);
	struct cloud_group *g = strlen(name) > 4 ? cloud_group_named(name + 4, CLOUD_EKS) : NULL;
	if (!strcmp(action, "TerminateInstanceInAutoScalingGroup")) {
		terminate_one(c);
		return;
	}
	if (!g) {
		refuse(c, 400, "ValidationError");
		return;
	}
	if (cloud_spoils(c, g, refuse))
		return;
	if (!strcmp(action, "DescribeAutoScalingGroups"))
		describe_groups(c);
	else if (!strcmp(action, "DescribeScalingActivities"))
		describe_activities(c, cloud_shown(g));
	else if (!strcmp(action, "DescribeLifecycleHooks"))
		describe_hooks(c, g);
	else if (!strcmp(action, "DescribeWarmPool"))
		describe_warm_pool(c, cloud_shown(g));
	else if (!strcmp(action, "PutWarmPool"))
		put_warm_pool(c, g);
	else if (!strcmp(action, "SetDesiredCapacity"))
		set_size(c, g);
	else if (!strcmp(action, "LaunchInstances"))
		launch_instances(c, g);
	else if (!strcmp(action, "SetInstanceProtection")) {
		g->protections += !c->is_again;
		protect(c);
	} else if (!strcmp(action, "UpdateAutoScalingGroup"))
		update_group(c, g);
	else
		refuse(c, 400, "InvalidAction");
}

static void write_labels(const struct cloud_group *g, struct buf *out)
{
	const char *between = "";

	buf_text(out, "\"labels\":{");
	for (const struct cloud_mark *m = g->marks; m && m->key; m++)
		if (!m->is_by_tag && !m->effect) {
			buf_printf(out, "%s\"%s\":\"%s\"", between, m->key, m->value);
			between = ",";
		}
	buf_text(out, "}");
}

static const char *effect_of_eks(const char *effect)
{
	return !strcmp(effect, "NoSchedule")  ? "NO_SCHEDULE"
	       : !strcmp(effect, "NoExecute") ? "NO_EXECUTE"
					      : "PREFER_NO_SCHEDULE";
}

static void write_taints(const struct cloud_group *g, struct buf *out)
{
	const char *between = "";

	buf_text(out, "\"taints\":[");
	for (const struct cloud_mark *m = g->marks; m && m->key; m++)
		if (!m->is_by_tag && m->effect) {
			buf_printf(out, "%s{\"key\":\"%s\",\"value\":\"%s\",\"effect\":\"%s\"}", between, m->key,
				   m->value, effect_of_eks(m->effect));
			between = ",";
		}
	buf_text(out, "]");
}

/* EKS itself: "/clusters/world/node-groups/NAME". */
static void serve_nodegroup(struct wire_call *c)
{
	const char *at = strstr(c->path, "/node-groups/");
	const struct cloud_group *g = at ? cloud_group_named(at + strlen("/node-groups/"), CLOUD_EKS) : NULL;
	struct buf text = { .cap = 1 << 20 };

	if (!g) {
		wire_answer(c, 404, "x-amzn-ErrorType: ResourceNotFoundException", "{\"message\":\"there is none\"}");
		return;
	}
	buf_printf(&text,
		   "{\"nodegroup\":{\"nodegroupName\":\"%s\",\"status\":\"%s\",\"capacityType\":\"%s\","
		   "\"resources\":{\"autoScalingGroups\":[{\"name\":\"asg-%s\"}]},",
		   g->name, g->busy_with ? "UPDATING" : "ACTIVE", g->is_spot ? "SPOT" : "ON_DEMAND", g->name);
	write_labels(g, &text);
	buf_text(&text, ",");
	write_taints(g, &text);
	buf_text(&text, "}}");
	wire_answer(c, 200, NULL, text.text);
	buf_release(&text);
}

static void serve(struct wire_call *c)
{
	cloud_advance();
	if (!strcmp(c->path, "/"))
		serve_action(c);
	else
		serve_nodegroup(c);
}

void cloud_eks_begin(void)
{
	wire_host(CLOUD_AWS, serve);
}
