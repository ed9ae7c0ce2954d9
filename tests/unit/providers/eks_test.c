/* The conformance of provider eks, against a server that speaks Auto Scaling out of the modelled group. */
#include "base/net/server.h"
#include "tests/unit/providers/conformance.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct wire_server {
	struct server *server;
	struct server_route route;
	struct modelled_cloud *cloud;
	int64_t least, prepared; /* of the warm pool */
	bool is_protected[CLOUD_MACHINES];
	int tokens;
	char url[64];
};

/* A parameter of the form, decoded; "" without. */
static const char *form(const struct server_request *q, const char *name, struct arena *a)
{
	size_t len = strlen(name);

	for (const char *p = q->body; *p; p += strcspn(p, "&"), p += *p == '&') {
		if (strncmp(p, name, len) != 0 || p[len] != '=')
			continue;
		p += len + 1;
		char *value = arena_strdup(a, p, strcspn(p, "&")), *to = value;
		for (const char *from = value; *from; from++)
			if (*from == '%') {
				char hex[3] = { from[1], from[2], '\0' };
				*to++ = (char)strtoull(hex, NULL, 16);
				from += 2;
			} else {
				*to++ = *from;
			}
		*to = '\0';
		return value;
	}
	return "";
}

static int64_t number(const struct server_request *q, const char *name, struct arena *a)
{
	return strtoll(form(q, name, a), NULL, 10);
}

static const char *lifecycle(const struct modelled_machine *m)
{
	static const char *const names[] = { "Pending",	       "InService", "Warmed:Running",
					     "Warmed:Stopped", "Pending",   "Terminating" };

	return m->is_for_standby && m->state == MACHINE_PENDING	      ? "Warmed:Pending"
	       : m->is_for_standby && m->state == MACHINE_TERMINATING ? "Warmed:Terminating"
								      : names[m->state];
}

static void write_instances(const struct wire_server *s, bool of_pool, struct buf *out)
{
	buf_text(out, "<Instances>");
	for (size_t i = 0; i < s->cloud->count; i++) {
		const struct modelled_machine *m = &s->cloud->machines[i];
		if (m->is_for_standby != of_pool)
			continue;
		buf_printf(
			out,
			"<member><InstanceId>%s</InstanceId><AvailabilityZone>eu-west-1a</AvailabilityZone>"
			"<InstanceType>g5.xlarge</InstanceType><LifecycleState>%s</LifecycleState><HealthStatus>Healthy"
			"</HealthStatus><ProtectedFromScaleIn>%s</ProtectedFromScaleIn></member>",
			m->id, lifecycle(m), s->is_protected[i] ? "true" : "false");
	}
	buf_text(out, "</Instances>");
}

static void describe_group(const struct wire_server *s, struct buf *out)
{
	const struct modelled_cloud *c = s->cloud;

	buf_printf(out,
		   "<AutoScalingGroups><member><AutoScalingGroupName>g</AutoScalingGroupName><MinSize>%" PRId64
		   "</MinSize><MaxSize>%" PRId64 "</MaxSize><DesiredCapacity>%" PRId64
		   "</DesiredCapacity><AvailabilityZones><member>eu-west-1a</member></AvailabilityZones>"
		   "<WarmPoolConfiguration><MinSize>%" PRId64 "</MinSize><MaxGroupPreparedCapacity>%" PRId64
		   "</MaxGroupPreparedCapacity><PoolState>Stopped</PoolState><InstanceReusePolicy><ReuseOnScaleIn>true"
		   "</ReuseOnScaleIn></InstanceReusePolicy></WarmPoolConfiguration>",
		   c->min, c->max, c->desired, s->least, s->prepared);
	write_instances(s, false, out);
	buf_text(out, "</member></AutoScalingGroups>");
}

/* Those that leave the warm pool. */
static void describe_activities(const struct wire_server *s, struct buf *out)
{
	buf_text(out, "<Activities>");
	for (size_t i = 0; i < s->cloud->count; i++)
		if (s->cloud->machines[i].state == MACHINE_WAKING)
			buf_printf(
				out,
				"<member><ActivityId>a-%zu</ActivityId><StatusCode>InProgress</StatusCode><StartTime>"
				"2026-11-20T23:00:00Z</StartTime><Description>Launching a new EC2 instance from warm "
				"pool: %s</Description></member>",
				i, s->cloud->machines[i].id);
	buf_text(out, "</Activities>");
}

/* One call of the modelled cloud, each with a token of its own: the real one has none. */
static bool call(struct wire_server *s, enum provider_verb verb, int64_t desired, const char *id, struct error *e)
{
	char token[32];
	struct provider_call c = {
		.verb = verb, .token = token, .desired = desired, .ids = &id, .id_count = id ? 1 : 0
	};

	snprintf(token, sizeof token, "w%d", s->tokens++);
	return cloud_do(s->cloud, &c, e);
}

/* The pool follows its settings and the size. */
static bool settle_pool(struct wire_server *s, struct error *e)
{
	int64_t size = s->prepared - s->cloud->desired > s->least ? s->prepared - s->cloud->desired : s->least;

	return size == s->cloud->standby || call(s, PROVIDER_STANDBY, size, NULL, e);
}

/* Lowering the size stops those that the termination policy may choose. */
static bool shrink(struct wire_server *s, int64_t desired, struct error *e)
{
	for (size_t i = 0; i < s->cloud->count && s->cloud->desired > desired; i++)
		if (s->cloud->machines[i].state == MACHINE_RUNNING && !s->is_protected[i] &&
		    !call(s, PROVIDER_STOP, 0, s->cloud->machines[i].id, e))
			return false;
	assert_int_equal(s->cloud->desired, desired);
	return true;
}

static bool set_size(struct wire_server *s, int64_t desired, struct error *e)
{
	bool ok = desired < s->cloud->desired ? shrink(s, desired, e) : call(s, PROVIDER_GROW, desired, NULL, e);

	return ok && settle_pool(s, e);
}

static bool terminate(struct wire_server *s, const char *id, struct error *e)
{
	if (!cloud_machine(s->cloud, id))
		return error_set(e, ERROR_INVALID, "Instance Id not found - No managed instance found for %s", id);
	return call(s, PROVIDER_REMOVE, 0, id, e) && settle_pool(s, e);
}

static void protect(struct wire_server *s, const struct server_request *q, struct arena *a)
{
	char name[40];

	for (int i = 1; i <= 50; i++) {
		snprintf(name, sizeof name, "InstanceIds.member.%d", i);
		struct modelled_machine *m = cloud_machine(s->cloud, form(q, name, a));
		if (!m)
			break;
		assert_int_equal(m->state, MACHINE_RUNNING);
		s->is_protected[m - s->cloud->machines] = strcmp(form(q, "ProtectedFromScaleIn", a), "true") == 0;
	}
}

static bool put_pool(struct wire_server *s, const struct server_request *q, struct arena *a, struct error *e)
{
	s->least = number(q, "MinSize", a);
	s->prepared = number(q, "MaxGroupPreparedCapacity", a);
	return settle_pool(s, e);
}

/* A lost answer is of a change; what is only looked at is told. */
static bool look(struct wire_server *s, struct error *e)
{
	enum cloud_fault fault = s->cloud->fault;

	if (fault == FAULT_LOST)
		s->cloud->fault = FAULT_NONE;
	bool ok = call(s, PROVIDER_DESCRIBE, 0, NULL, e);
	s->cloud->fault = fault;
	return ok;
}

static bool act(struct wire_server *s, const struct server_request *q, const char *action, struct buf *out,
		struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };

	buf_printf(out, "<%sResponse xmlns=\"http://autoscaling.amazonaws.com/doc/2011-01-01/\"><%sResult>", action,
		   action);
	if (strcmp(action, "DescribeAutoScalingGroups") == 0) {
		if (!look(s, e))
			return false;
		if (strcmp(form(q, "AutoScalingGroupNames.member.1", &a), "g") == 0)
			describe_group(s, out);
		else
			buf_text(out, "<AutoScalingGroups/>");
	} else if (strcmp(action, "DescribeWarmPool") == 0) {
		write_instances(s, true, out);
	} else if (strcmp(action, "DescribeLifecycleHooks") == 0) {
		buf_text(out, "<LifecycleHooks/>");
	} else if (strcmp(action, "DescribeScalingActivities") == 0) {
		describe_activities(s, out);
	} else if (strcmp(action, "SetInstanceProtection") == 0) {
		protect(s, q, &a);
	} else if (strcmp(action, "PutWarmPool") == 0) {
		if (!put_pool(s, q, &a, e))
			return false;
	} else if (strcmp(action, "SetDesiredCapacity") == 0) {
		assert_string_equal(form(q, "HonorCooldown", &a), "false");
		if (!set_size(s, number(q, "DesiredCapacity", &a), e))
			return false;
	} else if (strcmp(action, "TerminateInstanceInAutoScalingGroup") == 0) {
		assert_string_equal(form(q, "ShouldDecrementDesiredCapacity", &a), "true");
		if (!terminate(s, form(q, "InstanceId", &a), e))
			return false;
	} else {
		fail_msg("%s was not expected", action);
	}
	buf_printf(out, "</%sResult></%sResponse>", action, action);
	return true;
}

static void refuse(struct server_answer *a, const struct error *e)
{
	static const struct {
		enum error_kind kind;
		int status;
		const char *code;
	} refusals[] = {
		{ ERROR_STOCKOUT, 400, "InsufficientInstanceCapacity" },
		{ ERROR_QUOTA, 400, "LimitExceeded" },
		{ ERROR_THROTTLED, 400, "Throttling" },
		{ ERROR_AUTH, 403, "AccessDenied" },
		{ ERROR_UNAVAILABLE, 503, "ServiceUnavailable" },
		{ ERROR_INVALID, 400, "ValidationError" },
	};

	buf_clear(&a->body);
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
		if (refusals[i].kind == e->kind) {
			a->status = refusals[i].status;
			buf_printf(
				&a->body,
				"<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error>"
				"<RequestId>r</RequestId></ErrorResponse>",
				refusals[i].code, e->message);
		}
	if (e->kind == ERROR_THROTTLED)
		a->headers[0] = "Retry-After: 7";
}

static void answer(const struct server_request *q, struct server_answer *a)
{
	CLEANUP(arena_release) struct arena scratch = { 0 };
	struct wire_server *s = q->user;
	struct error e = { 0 };
	const char *authorization = server_header(q, "Authorization");

	assert_non_null(authorization);
	assert_non_null(strstr(authorization, "/eu-west-1/autoscaling/aws4_request"));
	assert_string_equal(form(q, "Version", &scratch), "2011-01-01");
	a->content_type = "text/xml";
	if (!act(s, q, form(q, "Action", &scratch), &a->body, &e))
		refuse(a, &e);
}

static struct wire_server *open_server(struct loop *loop, struct modelled_cloud *cloud)
{
	struct wire_server *s = calloc(1, sizeof *s);
	struct error e;

	assert_non_null(s);
	s->cloud = cloud;
	s->route = (struct server_route){ "POST", "/", answer, s };
	s->server = server_open(
		loop, &(struct server_settings){ .listen = "127.0.0.1:0", .routes = &s->route, .route_count = 1 }, &e);
	assert_non_null(s->server);
	snprintf(s->url, sizeof s->url, "http://127.0.0.1:%d", server_port(s->server));
	return s;
}

static void close_server(struct wire_server *s)
{
	server_close(s->server);
	free(s);
}

static const char *server_url(const struct wire_server *s)
{
	return s->url;
}

static void write_settings(const char *url, struct buf *out)
{
	buf_printf(out, "{\"endpoint\":\"%s/\",\"region\":\"eu-west-1\",\"autoScalingGroup\":\"g\"}", url);
}

static void write_settings_of_none(const char *url, struct buf *out)
{
	buf_printf(out, "{\"endpoint\":\"%s/\",\"region\":\"eu-west-1\",\"autoScalingGroup\":\"nowhere\"}", url);
}

#define SETTINGS(rest) "{\"region\":\"eu-west-1\"," rest "}"
#define NODEGROUP      "\"cluster\":\"c\",\"nodegroup\":\"n\""

static const char *const bad_settings[] = {
	"",
	"{",
	"[]",
	"{}",
	"{" NODEGROUP "}",
	"{\"region\":\"here!\"," NODEGROUP "}",
	"{\"region\":3," NODEGROUP "}",
	SETTINGS("\"cluster\":\"c\""),
	SETTINGS("\"nodegroup\":\"n\""),
	SETTINGS("\"cluster\":\"c/d\",\"nodegroup\":\"n\""),
	SETTINGS("\"cluster\":\"c\",\"nodegroup\":\"../x\""),
	SETTINGS("\"autoScalingGroup\":\"a\\nb\""),
	SETTINGS("\"autoScalingGroup\":\"a\",\"tags\":\"b\""),
	SETTINGS("\"tags\":\",\""),
	SETTINGS("\"tags\":\"=v\""),
	SETTINGS(NODEGROUP ",\"launch\":\"now\""),
	SETTINGS(NODEGROUP ",\"warmPool\":\"yes\""),
	SETTINGS(NODEGROUP ",\"clusterAutoscalerTags\":\"true\""),
	SETTINGS("\"autoScalingGroup\":\"g\",\"warmPool\":\"nodegroup\""),
	SETTINGS(NODEGROUP ",\"endpoint\":\"here\""),
	SETTINGS(NODEGROUP ",\"endpoint\":\"http://example.com\""),
	SETTINGS(NODEGROUP ",\"endpoint\":\"http://127.0.0.1.example.com\""),
	SETTINGS(NODEGROUP ",\"endpoint\":\"https://example.com\""),
	SETTINGS(NODEGROUP ",\"endpoint\":\"https://amazonaws.com.example.com\""),
	SETTINGS(NODEGROUP ",\"endpoint\":\"http://eks.eu-west-1.amazonaws.com\""),
	SETTINGS(NODEGROUP ",\"endpoint\":\"https://user@eks.eu-west-1.amazonaws.com\""),
	NULL,
};

#define ANSWER(inside)                                                                \
	"<DescribeAutoScalingGroupsResponse><DescribeAutoScalingGroupsResult>" inside \
	"</DescribeAutoScalingGroupsResult></DescribeAutoScalingGroupsResponse>"
#define GROUPS(inside) ANSWER("<AutoScalingGroups>" inside "</AutoScalingGroups>")
#define SIZES(min, max, desired)                                                                \
	"<AutoScalingGroupName>g</AutoScalingGroupName><MinSize>" min "</MinSize><MaxSize>" max \
	"</MaxSize><DesiredCapacity>" desired "</DesiredCapacity>"
#define GROUP(rest)	    GROUPS("<member>" SIZES("0", "5", "1") rest "</member>")
#define INSTANCE(id, state) "<member><InstanceId>" id "</InstanceId><LifecycleState>" state "</LifecycleState></member>"

static const char *const spoiled[] = {
	"",
	"{}",
	"<html></html>",
	"<DescribeAutoScalingGroupsResponse/>",
	ANSWER(""),
	ANSWER("<AutoScalingGroups>none</AutoScalingGroups>") "x",
	GROUPS("<member/>"),
	GROUPS("<member>" SIZES("-1", "5", "1") "</member>"),
	GROUPS("<member>" SIZES("6", "5", "1") "</member>"),
	GROUPS("<member>" SIZES("0", "5", "-1") "</member>"),
	GROUPS("<member>" SIZES("0", "5", "1.5") "</member>"),
	GROUPS("<member>" SIZES("0", "99999999999999999999", "1") "</member>"),
	GROUPS("<member>" SIZES("0", "5", "") "</member>"),
	GROUPS("<member><AutoScalingGroupName>h</AutoScalingGroupName><MinSize>0</MinSize><MaxSize>1</MaxSize>"
	       "<DesiredCapacity>0</DesiredCapacity></member>"),
	GROUPS("<member>" SIZES("0", "5", "1") "</member><member>" SIZES("0", "5", "1") "</member>"),
	GROUP("<Instances>3</Instances>"),
	GROUP("<Instances><member/></Instances>"),
	GROUP("<Instances>" INSTANCE("", "InService") "</Instances>"),
	GROUP("<Instances>" INSTANCE("a", "InService") INSTANCE("a", "Pending") "</Instances>"),
	GROUP("<Instances><member><InstanceId>a</InstanceId></member></Instances>"),
	GROUP("<Instances><member><InstanceId>a</InstanceId><LifecycleState>InService</LifecycleState>"
	      "<ProtectedFromScaleIn>maybe</ProtectedFromScaleIn></member></Instances>"),
	GROUP("<Instances><member><InstanceId>a</InstanceId><LifecycleState>InService</LifecycleState>"
	      "<WeightedCapacity>4</WeightedCapacity></member></Instances>"),
	GROUP("<WarmPoolConfiguration><MinSize>-1</MinSize></WarmPoolConfiguration>"),
	GROUP("<WarmPoolConfiguration><MaxGroupPreparedCapacity>-2</MaxGroupPreparedCapacity></WarmPoolConfiguration>"),
	"<!DOCTYPE a [<!ENTITY e \"x\">]>" GROUP(""),
	GROUP("") GROUP(""),
	NULL,
};

static const struct wire eks = {
	.provider = "eks",
	.open = open_server,
	.close = close_server,
	.url = server_url,
	.settings = write_settings,
	.settings_of_none = write_settings_of_none,
	.bad_settings = bad_settings,
	.described = GROUP("<Instances>" INSTANCE("a", "InService") INSTANCE("b", "SomethingNew") "</Instances>"),
	.spoiled = spoiled,
};

int main(void)
{
	setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", 1);
	unsetenv("AWS_SESSION_TOKEN");
	unsetenv("AWS_CA_BUNDLE");
	return conformance_run(&eks);
}
