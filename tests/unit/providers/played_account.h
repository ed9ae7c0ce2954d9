/*
 * An AWS account that follows a script: each request must be the one that
 * comes next, and gets its answer. With the answers' building blocks.
 */
#pragma once
#include "base/buf.h"
#include "base/net/http.h"
#include "base/net/server.h"
#include "providers/provider.h"

/* A request that must come now, and its answer. Of a form all but Action= and Version; else "METHOD path body". */
struct played_line {
	const char *request;
	const char *answer; /* the result's inside, JSON, or an error's code where status is not 200 */
	int status;	    /* 0: 200 */
};

struct scene {
	struct loop *loop;
	struct http *http;
	struct server *server;
	struct server_route routes[3];
	struct provider *provider;
	const struct played_line *script;
	char url[64];
	struct buf settings, unexpected;
	struct provider_call call;
	bool is_done;
};

int account_set_up(void **state);
int account_tear_down(void **state);
/* The group's settings: those that lead here, and the rest. */
void account_settle(struct scene *s, const char *rest);
/* Runs the call to its end; fails the test where requests differ from the script, which ends with a NULL. */
enum error_kind account_run(struct scene *s, struct provider_call call, const struct played_line *script);

#define BY_NAME	     "\"autoScalingGroup\":\"a\""
#define BY_NODEGROUP "\"cluster\":\"c\",\"nodegroup\":\"n\""
#define RUN(s, call, ...) \
	account_run(s, (struct provider_call)call, (const struct played_line[]){ __VA_ARGS__{ NULL, NULL, 0 } })
#define CALL(...)           \
	{                   \
		__VA_ARGS__ \
	}
#define NOTHING

#define READ "DescribeAutoScalingGroups&AutoScalingGroupNames.member.1=a&IncludeInstances=true&MaxRecords=100"
#define GROUP(min, max, desired, rest)                                                            \
	"<AutoScalingGroups><member><AutoScalingGroupName>a</AutoScalingGroupName><MinSize>" min  \
	"</MinSize><MaxSize>" max "</MaxSize><DesiredCapacity>" desired "</DesiredCapacity>" rest \
	"</member></AutoScalingGroups>"
#define INSTANCE(id, state, is_protected)                                                                     \
	"<member><InstanceId>" id "</InstanceId><AvailabilityZone>z</AvailabilityZone><LifecycleState>" state \
	"</LifecycleState><ProtectedFromScaleIn>" is_protected "</ProtectedFromScaleIn></member>"
#define IN(id)	    INSTANCE(id, "InService", "false")
#define SAFE(id)    INSTANCE(id, "InService", "true")
#define PENDING(id) INSTANCE(id, "Pending", "false")
#define HAS(...)    "<Instances>" __VA_ARGS__ "</Instances>"
#define POOL(least, prepared)                                                                                \
	"<WarmPoolConfiguration><MinSize>" least "</MinSize><MaxGroupPreparedCapacity>" prepared             \
	"</MaxGroupPreparedCapacity><PoolState>Stopped</PoolState><InstanceReusePolicy><ReuseOnScaleIn>true" \
	"</ReuseOnScaleIn></InstanceReusePolicy></WarmPoolConfiguration>"
#define SIZE(n)	       "SetDesiredCapacity&AutoScalingGroupName=a&DesiredCapacity=" n "&HonorCooldown=false"
#define PROTECT(ids)   "SetInstanceProtection&AutoScalingGroupName=a" ids "&ProtectedFromScaleIn=true"
#define UNPROTECT(ids) "SetInstanceProtection&AutoScalingGroupName=a" ids "&ProtectedFromScaleIn=false"
#define ID(n, id)      "&InstanceIds.member." n "=" id
#define END(id)	       "TerminateInstanceInAutoScalingGroup&InstanceId=" id "&ShouldDecrementDesiredCapacity=true"
#define PUT(least, prepared)                                                                      \
	"PutWarmPool&AutoScalingGroupName=a&MinSize=" least "&MaxGroupPreparedCapacity=" prepared \
	"&PoolState=Stopped&InstanceReusePolicy.ReuseOnScaleIn=true"
#define ACTIVITIES "DescribeScalingActivities&AutoScalingGroupName=a&MaxRecords=100"
#define NONE	   "<Activities/>"
#define NODEGROUP  "GET /clusters/c/node-groups/n"
#define CONFIG(prepared)                                                                                    \
	"POST /clusters/c/node-groups/n/update-config {\"warmPoolConfig\":{\"enabled\":true,\"minSize\":0," \
	"\"maxGroupPreparedCapacity\":" prepared ",\"poolState\":\"STOPPED\",\"reuseOnScaleIn\":true},"     \
	"\"clientRequestToken\":\"token-1\"}"
#define OWNED                                                                                                   \
	"{\"nodegroup\":{\"nodegroupName\":\"n\",\"status\":\"ACTIVE\",\"resources\":{\"autoScalingGroups\":[{" \
	"\"name\":\"a\"}]}"                                                                                     \
	",\"warmPoolConfig\":{\"enabled\":true,\"poolState\":\"STOPPED\",\"reuseOnScaleIn\":true}}}"
#define PLAIN                                                                                                   \
	"{\"nodegroup\":{\"nodegroupName\":\"n\",\"status\":\"ACTIVE\",\"resources\":{\"autoScalingGroups\":[{" \
	"\"name\":\"a\"}]}}}"
#define AS(status, rest)                                                                                         \
	"{\"nodegroup\":{\"nodegroupName\":\"n\",\"status\":\"" status "\",\"resources\":{\"autoScalingGroups\"" \
	":[{\"name\":\"a\"}]}" rest "}}"
#define UPDATE(status) \
	"{\"update\":{\"id\":\"u1\",\"status\":\"" status "\",\"errors\":[{\"errorMessage\":\"no such size\"}]}}"
