/* What AWS answers, and the description made of it. */
#include "providers/aws/service.h"
#include "providers/eks_group.h"
#include "tests/unit/providers/contract.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ANSWER(operation, inside)                                                                       \
	"<" operation "Response xmlns=\"http://autoscaling.amazonaws.com/doc/2011-01-01/\"><" operation \
	"Result>" inside "</" operation                                                                 \
	"Result><ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></" operation "Response>"
#define GROUP(inside)                                                                                                \
	ANSWER("DescribeAutoScalingGroups",                                                                          \
	       "<AutoScalingGroups><member><AutoScalingGroupName>g</AutoScalingGroupName>" inside                    \
	       "<DefaultCooldown>300</DefaultCooldown><CreatedTime>2026-01-01T00:00:00Z</CreatedTime><NewThing><a/>" \
	       "</NewThing></member></AutoScalingGroups>")
#define SIZES(min, max, desired) \
	"<MinSize>" min "</MinSize><MaxSize>" max "</MaxSize><DesiredCapacity>" desired "</DesiredCapacity>"
#define INSTANCE(id, state)                                                                                           \
	"<member><InstanceId>" id                                                                                     \
	"</InstanceId><AvailabilityZone>us-west-2a</AvailabilityZone><InstanceType>p5.48xlarge"                       \
	"</InstanceType><LifecycleState>" state "</LifecycleState><ProtectedFromScaleIn>false</ProtectedFromScaleIn>" \
	"</member>"
#define POOL(least, prepared, state, rest)                                                                     \
	"<WarmPoolConfiguration><MinSize>" least "</MinSize>" prepared "<PoolState>" state "</PoolState>" rest \
	"</WarmPoolConfiguration>"
#define PREPARED(n) "<MaxGroupPreparedCapacity>" n "</MaxGroupPreparedCapacity>"
#define REUSES	    "<InstanceReusePolicy><ReuseOnScaleIn>true</ReuseOnScaleIn></InstanceReusePolicy>"
#define ACTIVITY(id, status, end, text, message, details)                                                             \
	"<member><ActivityId>" id "</ActivityId><AutoScalingGroupName>g</AutoScalingGroupName><Cause>c</Cause>"       \
	"<StartTime>2026-11-20T23:00:00.500Z</StartTime>" end "<StatusCode>" status "</StatusCode><Description>" text \
	"</Description><StatusMessage>" message "</StatusMessage><Details>" details "</Details></member>"
#define ACTIVITIES(inside) ANSWER("DescribeScalingActivities", "<Activities>" inside "</Activities>")
#define ENDED		   "<EndTime>2026-11-20T23:00:01Z</EndTime>"

static const millis STARTED = INT64_C(1795215600500), ENDED_AT = INT64_C(1795215601000);

struct scene {
	struct arena arena;
	struct eks_seen seen;
	struct group_description d;
};

static void read_scene(struct scene *s, const char *group, const char *pool, const char *activities)
{
	struct error e = { 0 };
	struct eks_list list = { 0 };

	*s = (struct scene){ .seen.now = ENDED_AT + MINUTE };
	if (!eks_read_sole_group(group, strlen(group), "g", &s->arena, &s->seen.group, &e))
		fail_msg("%s", e.message);
	if (pool) {
		assert_true(eks_read_pool(pool, strlen(pool), &s->arena, &list, &e));
		s->seen.pool = list.items;
		s->seen.pool_count = list.count;
	}
	if (activities) {
		if (!eks_read_activities(activities, strlen(activities), &s->arena, &list, &e))
			fail_msg("%s", e.message);
		s->seen.activities = list.items;
		s->seen.activity_count = list.count;
	}
	eks_describe(&s->seen, &s->arena, &s->d);
}

static void a_group_is_described(void **state)
{
	struct scene s;

	(void)state;
	read_scene(&s,
		   GROUP(SIZES("0", "8", "2") "<Instances>" INSTANCE("i-0b", "InService")
				 INSTANCE("i-0a", "Pending:Wait") "</Instances>"),
		   NULL, NULL);
	assert_int_equal(s.d.min, 0);
	assert_int_equal(s.d.max, 8);
	assert_int_equal(s.d.desired, 2);
	assert_int_equal(s.d.standby, 0);
	assert_int_equal(s.d.machine_count, 2);
	assert_string_equal(s.d.machines[0].id, "i-0a");
	assert_int_equal(s.d.machines[0].state, MACHINE_PENDING);
	assert_string_equal(s.d.machines[1].provider_id, "aws:///us-west-2a/i-0b");
	assert_string_equal(s.d.machines[1].zone, "us-west-2a");
	assert_string_equal(s.d.machines[1].instance_type, "p5.48xlarge");
	assert_int_equal(s.d.abilities, PROVIDER_NAMES_VICTIMS | PROVIDER_CANCELS | PROVIDER_PROTECTS);
	assert_non_null(strstr(s.d.lacks, "no warm pool"));
	arena_release(&s.arena);
}

/* Every state of the model is in our table, with the meaning that matters; those to come are told, and never cancelled.
 */
static void lifecycle_states_are_told_apart(void **state)
{
	static const struct {
		const char *name;
		enum machine_state state;
		bool is_standby, holds_place, is_told;
	} cases[] = {
		{ "Pending", MACHINE_PENDING, false, true, true },
		{ "Pending:Wait", MACHINE_PENDING, false, true, true },
		{ "Pending:Proceed", MACHINE_PENDING, false, true, true },
		{ "Quarantined", MACHINE_PENDING, false, true, true },
		{ "InService", MACHINE_RUNNING, false, true, true },
		{ "Terminating", MACHINE_TERMINATING, false, false, true },
		{ "Terminating:Wait", MACHINE_TERMINATING, false, false, true },
		{ "Terminating:Proceed", MACHINE_TERMINATING, false, false, true },
		{ "Terminating:Retained", MACHINE_TERMINATING, false, false, true },
		{ "Terminated", MACHINE_TERMINATING, false, false, false },
		{ "Detaching", MACHINE_TERMINATING, false, false, true },
		{ "Detached", MACHINE_TERMINATING, false, false, false },
		{ "EnteringStandby", MACHINE_RUNNING, false, false, true },
		{ "Standby", MACHINE_RUNNING, false, false, true },
		{ "ReplacingRootVolume", MACHINE_RUNNING, false, true, true },
		{ "ReplacingRootVolume:Wait", MACHINE_RUNNING, false, true, true },
		{ "ReplacingRootVolume:Proceed", MACHINE_RUNNING, false, true, true },
		{ "RootVolumeReplaced", MACHINE_RUNNING, false, true, true },
		{ "Warmed:Pending", MACHINE_PENDING, true, false, true },
		{ "Warmed:Pending:Wait", MACHINE_PENDING, true, false, true },
		{ "Warmed:Pending:Proceed", MACHINE_PENDING, true, false, true },
		{ "Warmed:Pending:Retained", MACHINE_PENDING, true, false, true },
		{ "Warmed:Terminating", MACHINE_TERMINATING, true, false, true },
		{ "Warmed:Terminating:Wait", MACHINE_TERMINATING, true, false, true },
		{ "Warmed:Terminating:Proceed", MACHINE_TERMINATING, true, false, true },
		{ "Warmed:Terminating:Retained", MACHINE_TERMINATING, true, false, true },
		{ "Warmed:Terminated", MACHINE_TERMINATING, true, false, false },
		{ "Warmed:Stopped", MACHINE_STOPPED, true, false, true },
		{ "Warmed:Running", MACHINE_STOPPING, true, false, true },
		{ "Warmed:Hibernated", MACHINE_STOPPED, true, false, true },
		{ "SomethingNew", MACHINE_PENDING, false, true, true },
		{ "Warmed:SomethingNew", MACHINE_PENDING, true, false, true },
		{ "", MACHINE_PENDING, false, true, true },
	};
	enum { CASES = sizeof cases / sizeof *cases };
	struct contract model = { 0 };

	(void)state;
	for (size_t i = 0; i < CASES; i++) {
		struct eks_instance one = { "i-0a", "", "", cases[i].name, "", false };
		struct eks_seen seen = { .group = { .instances = &one, .instance_count = 1, .max = 9 } };
		struct eks_group wanted = seen.group, pooled = seen.group;
		struct arena a = { 0 };
		struct group_description d;
		eks_describe(&seen, &a, &d);
		assert_int_equal(d.machine_count, cases[i].is_told);
		if (cases[i].is_told) {
			assert_int_equal(d.machines[0].state, cases[i].state);
			assert_int_equal(d.machines[0].is_standby, cases[i].is_standby);
		}
		wanted.desired = 1;
		assert_int_equal(eks_has_open_ends(&wanted), !cases[i].holds_place);
		pooled.pool.exists = true;
		assert_int_equal(eks_has_open_ends(&pooled), strncmp(cases[i].name, "Pending", 7) == 0);
		arena_release(&a);
	}
	if (!contract_read(&model, "aws/autoscaling.json"))
		skip();
	for (size_t i = 0; i < model.count; i++) {
		bool is_known = false;
		if (strcmp(model.values[i].path, "shapes>LifecycleState>enum[]") != 0)
			continue;
		for (size_t k = 0; k < CASES; k++)
			is_known |= strcmp(cases[k].name, model.values[i].text) == 0;
		if (!is_known)
			fail_msg("%s is not in the table", model.values[i].text);
	}
	contract_release(&model);
}

static void standby_is_the_warm_pool(void **state)
{
	enum {
		NO_STANDBY = PROVIDER_NAMES_VICTIMS | PROVIDER_CANCELS | PROVIDER_PROTECTS,
		NO_STOPPING = NO_STANDBY | PROVIDER_HAS_STANDBY | PROVIDER_BUYS_STANDBY,
		ALL = NO_STOPPING | PROVIDER_STOPS_NAMED
	};
	static const struct {
		const char *group;
		int64_t standby;
		unsigned abilities;
		const char *lacks;
	} cases[] = {
		{ GROUP(SIZES("0", "8", "3") POOL("0", PREPARED("5"), "Stopped", REUSES)), 2, ALL, "" },
		{ GROUP(SIZES("0", "8", "3") POOL("4", PREPARED("5"), "Hibernated", REUSES)), 4, ALL, "" },
		{ GROUP(SIZES("0", "8", "3") POOL("0", PREPARED("0"), "Stopped", REUSES)), 0, ALL, "" },
		{ GROUP(SIZES("0", "8", "3") POOL("0", "", "Stopped", REUSES)), 5, ALL, "" },
		{ GROUP(SIZES("0", "8", "3") POOL("0", PREPARED("-1"), "Stopped", "")), 5, NO_STOPPING,
		  "does not reuse" },
		{ GROUP(SIZES("0", "8", "3") POOL("1", PREPARED("5"), "Running", REUSES)), 2, NO_STANDBY,
		  "full price" },
		{ GROUP(SIZES("0", "8", "3")
				POOL("1", PREPARED("5"), "Stopped", REUSES "<Status>PendingDelete</Status>")),
		  0, NO_STANDBY, "being deleted" },
		{ GROUP(SIZES("0", "8", "3") "<WarmPoolConfiguration/>"), 0, NO_STANDBY, "no warm pool" },
		{ GROUP(SIZES("0", "8", "3")
				POOL("0", PREPARED("5"), "Stopped",
				     REUSES) "<SuspendedProcesses><member>"
					     "<ProcessName>Launch</ProcessName></member></SuspendedProcesses>"),
		  2, ALL, "Launch" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct scene s;
		read_scene(&s, cases[i].group, NULL, NULL);
		assert_int_equal(s.d.standby, cases[i].standby);
		assert_int_equal(s.d.abilities, cases[i].abilities);
		if (!strstr(s.d.lacks, cases[i].lacks) || !*cases[i].lacks != !*s.d.lacks)
			fail_msg("case %zu: %s", i, s.d.lacks);
		arena_release(&s.arena);
	}
}

/* Of the warm pools of node groups not every image can do everything. */
static void what_an_image_cannot_is_told(void **state)
{
	static const struct {
		const char *image, *group;
		enum eks_warm_pool warm_pool;
		bool stands_by, stops;
		const char *lacks;
	} cases[] = {
#define POOLED(state) GROUP(SIZES("0", "8", "3") POOL("0", PREPARED("5"), state, REUSES))
#define UNPOOLED      GROUP(SIZES("0", "8", "3"))
		{ "AL2023_x86_64_NVIDIA", POOLED("Stopped"), EKS_POOL_EXISTING, true, true, "" },
		{ "BOTTLEROCKET_x86_64_NVIDIA", POOLED("Stopped"), EKS_POOL_EXISTING, true, false, "pulls its image" },
		{ "BOTTLEROCKET_x86_64_NVIDIA", POOLED("Hibernated"), EKS_POOL_EXISTING, false, false,
		  "does not hibernate" },
		{ "BOTTLEROCKET_x86_64_NVIDIA", UNPOOLED, EKS_POOL_GROUP, true, false, "pulls its image" },
		{ "CUSTOM", UNPOOLED, EKS_POOL_NODEGROUP, false, false, "amiType CUSTOM" },
		{ "CUSTOM", UNPOOLED, EKS_POOL_GROUP, true, false, "" },
		{ "CUSTOM", POOLED("Stopped"), EKS_POOL_EXISTING, true, true, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct scene s;
		read_scene(&s, cases[i].group, NULL, NULL);
		s.seen.nodegroup.image = cases[i].image;
		s.seen.warm_pool = cases[i].warm_pool;
		s.d = (struct group_description){ 0 };
		eks_describe(&s.seen, &s.arena, &s.d);
		assert_int_equal((s.d.abilities & PROVIDER_HAS_STANDBY) != 0, cases[i].stands_by);
		assert_int_equal((s.d.abilities & PROVIDER_STOPS_NAMED) != 0, cases[i].stops);
		if (!strstr(s.d.lacks, cases[i].lacks) || !*cases[i].lacks != !*s.d.lacks)
			fail_msg("case %zu: %s", i, s.d.lacks);
		arena_release(&s.arena);
	}
}

/* An instance store is empty after a stop; an image that is on EBS is not. */
static void what_a_stop_empties_is_told(void **state)
{
	static const struct {
		enum disk_use use;
		const char *image, *group;
		bool forgets;
		size_t cautions;
		const char *lacks;
	} cases[] = {
		{ DISKS_KEPT, "AL2023_x86_64_NVIDIA", POOLED("Stopped"), false, 0, "" },
		{ DISKS_BESIDE, "AL2023_x86_64_NVIDIA", POOLED("Stopped"), false, 1, "" },
		{ DISKS_IMAGES, "AL2023_x86_64_NVIDIA", POOLED("Stopped"), true, 0, "pull their image when they wake" },
		{ DISKS_IMAGES, "AL2023_x86_64_NVIDIA", POOLED("Hibernated"), true, 0,
		  "pull their image when they wake" },
		{ DISKS_IMAGES, "AL2023_x86_64_NVIDIA", UNPOOLED, false, 0, "no warm pool" },
		{ DISKS_IMAGES, "BOTTLEROCKET_x86_64_NVIDIA", POOLED("Stopped"), true, 0, "Bottlerocket" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct instance_store data = { cases[i].use, "localStorage.strategy RAID0" };
		struct scene s;
		read_scene(&s, cases[i].group, NULL, NULL);
		s.seen.nodegroup.image = cases[i].image;
		s.seen.instance_store = &data;
		s.d = (struct group_description){ 0 };
		eks_describe(&s.seen, &s.arena, &s.d);
		assert_int_equal(s.d.forgets_images, cases[i].forgets);
		assert_int_equal(s.d.caution_count, cases[i].cautions);
		if (!strstr(s.d.lacks, cases[i].lacks) || !*cases[i].lacks != !*s.d.lacks)
			fail_msg("case %zu: %s", i, s.d.lacks);
		arena_release(&s.arena);
	}
}

static void machines_on_their_way_out_of_the_pool_are_told_once(void **state)
{
	struct scene s;

	(void)state;
	read_scene(
		&s,
		GROUP(SIZES("0", "8", "2") "<Instances>" INSTANCE("i-0a", "Pending") INSTANCE(
			"i-0c", "Pending:Wait") "</Instances>" POOL("0", PREPARED("4"), "Stopped", REUSES)),
		ANSWER("DescribeWarmPool", "<Instances>" INSTANCE("i-0a", "Warmed:Stopped")
						   INSTANCE("i-0b", "Warmed:Stopped") "</Instances>"),
		ACTIVITIES(ACTIVITY("a1", "InProgress", "", "Launching a new EC2 instance from warm pool: i-0a", "", "")
				   ACTIVITY("a2", "InProgress", "", "Launching a new EC2 instance: i-0c", "", "")));
	assert_int_equal(s.d.machine_count, 3);
	assert_string_equal(s.d.machines[0].id, "i-0b"); /* of unknown age */
	assert_int_equal(s.d.machines[0].state, MACHINE_STOPPED);
	assert_string_equal(s.d.machines[1].id, "i-0a");
	assert_int_equal(s.d.machines[1].state, MACHINE_WAKING);
	assert_int_equal(s.d.machines[1].launched_at, STARTED);
	assert_int_equal(s.d.machines[2].state, MACHINE_PENDING);
	assert_true(eks_has_open_ends(&s.seen.group));
	arena_release(&s.arena);
}

#define DETAILS "{&quot;Subnet ID&quot;:&quot;subnet-1&quot;,&quot;Availability Zone&quot;:&quot;us-west-2a&quot;}"

static void failed_launches_are_told_with_what_could_not_be_had(void **state)
{
	struct scene s;

	(void)state;
	read_scene(&s, GROUP(SIZES("0", "8", "3") "<Instances>" INSTANCE("i-0a", "InService") "</Instances>"), NULL,
		   ACTIVITIES(ACTIVITY(
			   "a9", "Failed", ENDED, "Launching a new EC2 instance.  Status Reason: x",
			   "We currently do not have sufficient p5.48xlarge capacity in the Availability Zone you "
			   "requested (us-west-2a).",
			   DETAILS) ACTIVITY("a8", "Failed", "<EndTime>2026-11-20T23:00:00Z</EndTime>",
					     "Launching a new EC2 instance",
					     "You have requested more vCPU capacity than "
					     "your current vCPU limit of 96 allows. Launching EC2 instance failed.",
					     "{")
				      ACTIVITY("a7", "Successful", ENDED, "Launching a new EC2 instance: i-0a", "", "")
					      ACTIVITY("a6", "Failed", ENDED, "Terminating EC2 instance: i-0z", "x", "")
						      ACTIVITY("a5", "Cancelled", ENDED,
							       "Launching a new EC2 "
							       "instance",
							       "", "")));
	assert_int_equal(s.d.failure_count, 2);
	assert_int_equal(s.d.failures[0].kind, ERROR_QUOTA);
	assert_string_equal(s.d.failures[0].zone, "");
	assert_int_equal(s.d.failures[0].back_off, 10 * MINUTE);
	assert_int_equal(s.d.failures[1].kind, ERROR_STOCKOUT);
	assert_string_equal(s.d.failures[1].zone, "us-west-2a");
	assert_string_equal(s.d.failures[1].instance_type, "p5.48xlarge");
	assert_int_equal(s.d.failures[1].count, 1);
	assert_int_equal(s.d.failures[1].at, ENDED_AT);
	assert_int_equal(s.d.failures[1].back_off, 3 * MINUTE);
	assert_true(s.d.failures[0].id < s.d.failures[1].id);
	arena_release(&s.arena);
}

/* Whatever it is called: our own cancels leave such activities, too, and are no failures. */
#define SAYS(id, cause)                                                                         \
	"<member><ActivityId>" id "</ActivityId><StatusCode>Successful</StatusCode><StartTime>" \
	"2026-11-20T23:00:00Z</StartTime><Cause>" cause "</Cause></member>"
#define RESIZED(by, from, to)                                                                        \
	"At 2026-02-12T16:01:25Z " by " update of AutoScalingGroup constraints to min: 0, max: 3, "  \
	"desired: " to " changing the desired capacity from " from " to " to ".  At 2026-02-12T16:0" \
	"1:30Z an instance was taken out of service in response to a difference between desired and actual capacity."

/* The last that changed the size counts, whoever ended machines since. */
static void a_schedule_that_emptied_the_group_is_told(void **state)
{
	static const struct {
		const char *activities;
		bool is_emptied;
	} cases[] = {
		{ SAYS("a1", RESIZED("a scheduled action", "2", "0")), true },
		{ SAYS("a1", RESIZED("a scheduled action", "12", "10")), false },
		{ SAYS("a1", RESIZED("a user request", "2", "0")), false },
		{ SAYS("a1",
		       "At 2026-02-12T16:01:25Z a monitor alarm A in state ALARM triggered policy a scheduled action "
		       "changing the desired capacity from 2 to 1."),
		  false },
		{ SAYS("a2",
		       "At 2026-02-12T16:01:25Z an instance was taken out of service in response to a user request, "
		       "shrinking the capacity from 1 to 0.") SAYS("a1", RESIZED("a scheduled action", "2", "0")),
		  true },
		{ SAYS("a2", RESIZED("a user request", "0", "1")) SAYS("a1", RESIZED("a scheduled action", "2", "0")),
		  false },
		{ SAYS("a1", RESIZED("a user request", "3", "2") "  " RESIZED("a scheduled action", "2", "0")), true },
		{ SAYS("a1", RESIZED("a scheduled action", "2", "0") "  " RESIZED("a user request", "1", "0")), false },
		{ SAYS("a1", "changing the desired capacity from a scheduled action"), false },
		{ "", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[4096];
		struct arena a = { 0 };
		struct eks_list list;
		struct error e = { 0 };
		snprintf(text, sizeof text, ACTIVITIES("%s"), cases[i].activities);
		assert_true(eks_read_activities(text, strlen(text), &a, &list, &e));
		if (eks_emptied_by_schedule(list.items, list.count) != cases[i].is_emptied)
			fail_msg("case %zu", i);
		arena_release(&a);
	}
}

#define REFRESH(status, rest)                                                                        \
	"<InstanceRefreshes><member><InstanceRefreshId>r</InstanceRefreshId><AutoScalingGroupName>a" \
	"</AutoScalingGroupName><Status>" status "</Status>" rest "</member></InstanceRefreshes>"
#define PERCENT(n) "<PercentageComplete>" n "</PercentageComplete>"
#define WAITS	   ": it waits an hour for machines that are protected from scale-in, and then fails; pause the pool"

/* What is over is no news; what goes past protected machines waits for nobody. */
static void an_instance_refresh_that_goes_on_is_told(void **state)
{
	static const struct {
		const char *answer, *caution, *message;
	} cases[] = {
		{ REFRESH("InProgress", PERCENT("40")), "an instance refresh is in progress (InProgress, 40%)" WAITS,
		  "" },
		{ REFRESH("Pending", ""), "an instance refresh is in progress (Pending, 0%)" WAITS, "" },
		{ REFRESH("Baking", PERCENT("100") "<Preferences><ScaleInProtectedInstances>Wait"
						   "</ScaleInProtectedInstances></Preferences>"),
		  "an instance refresh is in progress (Baking, 100%)" WAITS, "" },
		{ REFRESH("RollbackInProgress", PERCENT("4") "<Preferences><ScaleInProtectedInstances>Ignore"
							     "</ScaleInProtectedInstances></Preferences>"),
		  "an instance refresh is in progress (RollbackInProgress, 4%)", "" },
		{ REFRESH("Successful", PERCENT("100")), NULL, "" },
		{ REFRESH("Cancelled", PERCENT("10")), NULL, "" },
		{ "<InstanceRefreshes/>", NULL, "" },
		{ REFRESH("InProgress", PERCENT("101")), NULL, "PercentageComplete 101 cannot be" },
		{ "<InstanceRefreshes><member/></InstanceRefreshes>", NULL, "Status" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[1024];
		struct arena a = { 0 };
		struct group_description d = { 0 };
		struct eks_refresh refresh;
		struct error e = { 0 };
		snprintf(text, sizeof text, ANSWER("DescribeInstanceRefreshes", "%s"), cases[i].answer);
		bool ok = eks_read_refresh(text, strlen(text), &a, &refresh, &e);
		assert_int_equal(ok, !*cases[i].message);
		assert_true(ok || strstr(e.message, cases[i].message));
		if (ok)
			eks_tell_refresh(&refresh, &a, &d);
		assert_int_equal(d.caution_count, cases[i].caution != NULL);
		if (cases[i].caution && strncmp(d.cautions[0], cases[i].caution, strlen(cases[i].caution)) != 0)
			fail_msg("'%s' is not '%s...'", d.cautions[0], cases[i].caution);
		arena_release(&a);
	}
}

#define TAKEN(from, to)                                                                                  \
	"At 2026-11-20T23:00:00Z instance i-0a was taken out of service in response to a user request, " \
	"shrinking the capacity from " from " to " to "."
#define SHRANK "  At 2026-11-20T23:00:00Z an instance was taken out of service in response to a difference."

/* Only what led to the size that is seen tells who it was, and nothing of long before. */
static void whoever_resized_the_group_is_named(void **state)
{
	static const struct {
		const char *activities, *by;
		millis after; /* of the activities */
	} cases[] = {
		{ SAYS("a1", RESIZED("a scheduled action", "5", "2")), "a scheduled action of Auto Scaling", 0 },
		{ SAYS("a1", RESIZED("a user request", "5", "2")), "a user request", 0 },
		{ SAYS("a1",
		       "At 2026-11-20T23:00:00Z a user request explicitly set group desired capacity changing the "
		       "desired capacity from 1 to 2." SHRANK),
		  "a user request", 0 },
		{ SAYS("a1", "At 2026-11-20T23:00:00Z a monitor alarm low load in state ALARM triggered policy by day "
			     "changing the desired capacity from 3 to 2." SHRANK),
		  "scaling policy by day through its alarm low load", 0 },
		{ SAYS("a1", "At 2026-11-20T23:00:00Z a monitor alarm A in state OK changing the desired capacity from "
			     "3 to 2."),
		  "", 0 },
		{ SAYS("a1", "At 2026-11-20T23:00:00Z whoever comes next changing the desired capacity from 3 to 2."),
		  "", 0 },
		{ SAYS("a1", "changing the desired capacity from 3 to 2."), "", 0 },
		{ SAYS("a1", TAKEN("3", "2")), "a user request", 0 },
		{ SAYS("a2", TAKEN("4", "3")) SAYS("a1", RESIZED("a scheduled action", "5", "2")),
		  "a scheduled action of Auto Scaling", 0 },
		{ SAYS("a2", RESIZED("a user request", "2", "6")) SAYS("a1", RESIZED("a scheduled action", "5", "2")),
		  "", 0 },
		{ SAYS("a1", RESIZED("a scheduled action", "5", "2")), "a scheduled action of Auto Scaling", MINUTE },
		{ SAYS("a1", RESIZED("a scheduled action", "5", "2")), "", MINUTE + 1 },
		{ "", "", 0 },
	};
	static const millis began = 1795215600000; /* 2026-11-20T23:00:00Z */

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[4096];
		struct arena a = { 0 };
		struct eks_list list;
		struct error e = { 0 };
		snprintf(text, sizeof text, ACTIVITIES("%s"), cases[i].activities);
		assert_true(eks_read_activities(text, strlen(text), &a, &list, &e));
		const char *by = eks_resized_by(list.items, list.count, 2, began + cases[i].after, &a);
		if (strcmp(by, cases[i].by) != 0)
			fail_msg("case %zu: '%s'", i, by);
		arena_release(&a);
	}
}

#define HOOK(transition, seconds, result)                                                   \
	"<member><LifecycleHookName>h</LifecycleHookName><LifecycleTransition>autoscaling:" \
	"EC2_INSTANCE_" transition "</LifecycleTransition><HeartbeatTimeout>" seconds       \
	"</HeartbeatTimeout><GlobalTimeout>172800</GlobalTimeout><DefaultResult>" result    \
	"</DefaultResult><NotificationMetadata>m</NotificationMetadata></member>"
#define HOOKS(inside) ANSWER("DescribeLifecycleHooks", "<LifecycleHooks>" inside "</LifecycleHooks>")

/* Of several that hold what ends the first to time out may let it go; what starts is held by the longest. */
static void hooks_say_how_long_they_hold(void **state)
{
	static const struct {
		const char *answer;
		struct eks_hooks hooks;
		const char *error, *caution;
	} cases[] = {
		{ HOOKS(""), { 0 }, NULL, "no lifecycle hook holds" },
		{ HOOKS(HOOK("TERMINATING", "1800", "CONTINUE")), { .end_hold = 30 * MINUTE }, NULL, "for 1800 s" },
		{ HOOKS(HOOK("TERMINATING", "3600", "CONTINUE") HOOK("TERMINATING", "300", "ABANDON")
				HOOK("LAUNCHING", "600", "CONTINUE") HOOK("LAUNCHING", "60", "CONTINUE")),
		  { 5 * MINUTE, 10 * MINUTE, false },
		  NULL,
		  "for 600 s at most" },
		{ HOOKS(HOOK("LAUNCHING", "600", "ABANDON")), { 0, 10 * MINUTE, true }, NULL, "within 600 s" },
		{ HOOKS(HOOK("TERMINATING", "0", "CONTINUE")), { 0 }, "HeartbeatTimeout 0 cannot be", NULL },
		{ HOOKS(HOOK("TERMINATING", "172801", "CONTINUE")), { 0 }, "HeartbeatTimeout 172801 cannot be", NULL },
		{ ANSWER("DescribeWarmPool", ""), { 0 }, "no DescribeLifecycleHooksResult", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct group_description d = { 0 };
		struct eks_hooks hooks;
		struct error e = { 0 };
		bool ok = eks_read_hooks(cases[i].answer, strlen(cases[i].answer), &a, &hooks, &e);
		assert_int_equal(ok, !cases[i].error);
		if (!ok) {
			assert_non_null(strstr(e.message, cases[i].error));
			continue;
		}
		assert_int_equal(hooks.end_hold, cases[i].hooks.end_hold);
		assert_int_equal(hooks.start_hold, cases[i].hooks.start_hold);
		assert_int_equal(hooks.abandons_starts, cases[i].hooks.abandons_starts);
		eks_tell_hooks(&hooks, &a, &d);
		assert_int_equal(d.end_hold, hooks.end_hold ? hooks.end_hold : END_UNHELD);
		assert_int_equal(d.caution_count, 1 + (hooks.start_hold > 0));
		assert_non_null(strstr(d.cautions[d.caution_count - 1], cases[i].caution));
	}
}

static void a_launch_that_a_hook_abandoned_has_failed(void **state)
{
	struct scene s;

	(void)state;
	read_scene(&s, GROUP(SIZES("0", "8", "3") "<Instances>" INSTANCE("i-0a", "InService") "</Instances>"), NULL,
		   ACTIVITIES(ACTIVITY(
			   "a2", "Cancelled", ENDED, "Launching a new EC2 instance: i-0b",
			   "Instance failed to complete user&apos;s Lifecycle Action: Lifecycle Action with "
			   "token t was abandoned: Heartbeat Timeout",
			   "") ACTIVITY("a1", "Cancelled", ENDED, "Launching a new EC2 instance: i-0c", "", "")));
	assert_int_equal(s.d.failure_count, 1);
	assert_int_equal(s.d.failures[0].kind, ERROR_UNAVAILABLE);
	assert_non_null(strstr(s.d.failures[0].message, "Heartbeat Timeout"));
	arena_release(&s.arena);
}

/* Auto Scaling may succeed a moment later: a failure counts when the gap was seen before, or has been there a while. */
static void a_failure_counts_once_it_lasts(void **state)
{
	static const struct {
		const char *desired;
		millis age;
		bool was_told;
		size_t count;
	} cases[] = {
		{ "2", 5 * SECOND, false, 0 }, { "2", 5 * SECOND, true, 1 },   { "2", 15 * SECOND, false, 1 },
		{ "2", HOUR, false, 1 },       { "2", -5 * SECOND, false, 0 }, { "1", HOUR, true, 0 },
		{ "0", HOUR, true, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct scene s;
		read_scene(&s, GROUP(SIZES("0", "8", "2") "<Instances>" INSTANCE("i-0a", "InService") "</Instances>"),
			   NULL,
			   ACTIVITIES(ACTIVITY("a9", "Failed", ENDED, "Launching a new EC2 instance", "none", "")));
		s.seen.group.desired = *cases[i].desired - '0';
		s.seen.now = ENDED_AT + cases[i].age;
		s.seen.told_before = cases[i].was_told ? eks_newest_failure(s.seen.activities, 1) : 0;
		eks_describe(&s.seen, &s.arena, &s.d);
		if (s.d.failure_count != cases[i].count)
			fail_msg("case %zu", i);
		arena_release(&s.arena);
	}
}

static void texts_of_failures_are_understood(void **state)
{
	static const struct {
		const char *text;
		enum error_kind kind;
	} cases[] = {
		{ "We currently do not have sufficient g4dn.12xlarge capacity in the Availability Zone you requested",
		  ERROR_STOCKOUT },
		{ "Could not launch Spot Instances. UnfulfillableCapacity - Unable to fulfill capacity due to your "
		  "request",
		  ERROR_STOCKOUT },
		{ "Could not launch On-Demand Instances. InsufficientInstanceCapacity - ...", ERROR_STOCKOUT },
		{ "There is no Spot capacity available that matches your request.", ERROR_STOCKOUT },
		{ "Could not launch Spot Instances. MaxSpotInstanceCountExceeded - Max spot instance count exceeded",
		  ERROR_STOCKOUT },
		{ "Could not launch On-Demand Instances. VcpuLimitExceeded - You have requested more vCPU capacity",
		  ERROR_QUOTA },
		{ "You have requested more instances (7) than your current instance limit of 5 allows", ERROR_QUOTA },
		{ "InstanceLimitExceeded", ERROR_QUOTA },
		{ "There are not enough free addresses in subnet 'subnet-1' to satisfy the requested number of "
		  "instances",
		  ERROR_QUOTA },
		{ "InsufficientFreeAddressesInSubnet", ERROR_QUOTA },
		{ "ReservationCapacityExceeded", ERROR_STOCKOUT },
		{ "The requested reservation does not have sufficient compatible and available capacity for this "
		  "request. Launching EC2 instance failed.",
		  ERROR_STOCKOUT },
		{ "Your Capacity Block reservation cr-1 is not active yet. Launching EC2 instance failed.",
		  ERROR_STOCKOUT },
		{ "You are not authorized to perform this operation. Encoded authorization failure message: x",
		  ERROR_AUTH },
		{ "UnauthorizedOperation", ERROR_AUTH },
		{ "The image id '[ami-0]' does not exist. Launching EC2 instance failed.", ERROR_INVALID },
		{ "The specified launch template, with template ID lt-0, does not exist.", ERROR_INVALID },
		{ "Request limit exceeded. Launching EC2 instance failed.", ERROR_THROTTLED },
		{ "Something that nobody has seen yet", ERROR_UNAVAILABLE },
		{ "", ERROR_UNAVAILABLE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		millis back_off = -1;
		if (eks_failure_kind("", cases[i].text, &back_off) != cases[i].kind)
			fail_msg("%s", cases[i].text);
		assert_true(back_off > 0 || cases[i].kind == ERROR_UNAVAILABLE);
	}
}

static void a_node_group_is_read(void **state)
{
	static const char whole[] = "{\"nodegroup\":{\"nodegroupName\":\"ng1\",\"status\":\"DEGRADED\","
				    "\"capacityType\":\"ON_DEMAND\",\"amiType\":\"AL2_x86_64_"
				    "GPU\",\"instanceTypes\":null,\"scalingConfig\":{\"minSize\":0,\"maxSize\":8,"
				    "\"desiredSize\":2},\"resources\":{"
				    "\"autoScalingGroups\":[{\"name\":\"eks-ng1-abc\"}]},\"warmPoolConfig\":{"
				    "\"enabled\":true,\"minSize\":0,"
				    "\"maxGroupPreparedCapacity\":4,\"poolState\":\"STOPPED\",\"reuseOnScaleIn\":true},"
				    "\"health\":{\"issues\":[]},\"new\":{}}}";
	static const char *const bad[] = {
		"",
		"{}",
		"[]",
		"{\"nodegroup\":{}}",
		"{\"nodegroup\":{\"nodegroupName\":3}}",
		("{\"nodegroup\":{\"nodegroupName\":\"n\",\"resources\":{\"autoScalingGroups\":[{\"name\":\"a\"},"
		 "{\"name\":\"b\"}]}}}"),
		"{\"nodegroup\":{\"nodegroupName\":\"n\",\"resources\":{\"autoScalingGroups\":[{}]}}}",
	};
	CLEANUP(arena_release) struct arena a = { 0 };
	struct eks_nodegroup n;
	struct error e = { 0 };

	(void)state;
	assert_true(eks_read_nodegroup(whole, sizeof whole - 1, &a, &n, &e));
	assert_string_equal(n.group, "eks-ng1-abc");
	assert_string_equal(n.status, "DEGRADED");
	assert_true(n.has_pool && n.pool.reuses);
	assert_int_equal(n.pool.prepared, 4);
	assert_string_equal(n.pool.state, "Stopped");
	static const char empty[] = "{\"nodegroup\":{\"nodegroupName\":\"n\",\"status\":\"CREATING\"}}";
	assert_true(eks_read_nodegroup(empty, sizeof empty - 1, &a, &n, &e));
	assert_null(n.group);
	assert_false(n.has_pool);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		e = (struct error){ 0 };
		assert_false(eks_read_nodegroup(bad[i], strlen(bad[i]), &a, &n, &e));
		assert_int_equal(e.kind, ERROR_INVALID);
	}
}

static void an_update_is_read(void **state)
{
	static const char failed[] =
		"{\"update\":{\"id\":\"u1\",\"status\":\"Failed\",\"type\":\"ConfigUpdate\",\"createdAt\":"
		"1700000000.5,\"errors\":[{\"errorCode\":\"AccessDenied\",\"errorMessage\":\"no\",\"resourceIds\":["
		"\"x\"]}]}}";
	static const char running[] = "{\"update\":{\"id\":\"u1\",\"status\":\"InProgress\"}}";
	CLEANUP(arena_release) struct arena a = { 0 };
	struct eks_update u;
	struct error e = { 0 };

	(void)state;
	assert_true(eks_read_update(failed, sizeof failed - 1, &a, &u, &e));
	assert_int_equal(u.progress, EKS_FAILED);
	assert_string_equal(u.message, "no");
	assert_int_equal(u.created_at, INT64_C(1700000000500));
	assert_true(eks_read_update(running, sizeof running - 1, &a, &u, &e));
	assert_int_equal(u.progress, EKS_IN_PROGRESS);
	assert_false(eks_read_update("{\"update\":{}}", 13, &a, &u, &e));
}

static void refusals_are_understood(void **state)
{
	static const struct {
		const char *body, *type;
		long status;
		enum error_kind kind;
		const char *code, *message;
	} cases[] = {
		{ "<ErrorResponse><Error><Type>Sender</Type><Code>Throttling</Code><Message>Rate "
		  "exceeded</Message></Error>"
		  "<RequestId>r</RequestId></ErrorResponse>",
		  NULL, 400, ERROR_THROTTLED, "Throttling", "Rate exceeded" },
		{ "<Response><Errors><Error><Code>RequestLimitExceeded</Code><Message>m</Message></Error></Errors></"
		  "Response>",
		  NULL, 503, ERROR_THROTTLED, "RequestLimitExceeded", "m" },
		{ "<ErrorResponse><Error><Code>ResourceContention</Code></Error></ErrorResponse>", NULL, 500,
		  ERROR_UNAVAILABLE, "ResourceContention", "" },
		{ "<ErrorResponse><Error><Code>ScalingActivityInProgress</Code></Error></ErrorResponse>", NULL, 400,
		  ERROR_CONFLICT, "ScalingActivityInProgress", "" },
		{ "<ErrorResponse><Error><Code>ValidationError</Code><Message>a&lt;b\nc</Message></Error></"
		  "ErrorResponse>",
		  NULL, 400, ERROR_INVALID, "ValidationError", "a<b c" },
		{ "<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>", NULL, 400, ERROR_AUTH,
		  "AccessDenied", "" },
		{ "{\"message\":\"Rate exceeded\"}", "ThrottlingException", 429, ERROR_THROTTLED, "ThrottlingException",
		  "Rate exceeded" },
		{ "{\"clusterName\":\"c\",\"message\":\"busy\"}", "ResourceInUseException:http://internal.amazon.com/x",
		  409, ERROR_CONFLICT, "ResourceInUseException", "busy" },
		{ "{\"__type\":\"com.amazonaws.eks#ResourceNotFoundException\",\"Message\":\"none\"}", NULL, 404,
		  ERROR_NOT_FOUND, "ResourceNotFoundException", "none" },
		{ "{\"code\":\"InvalidParameterException\",\"message\":\"m\"}", NULL, 400, ERROR_INVALID,
		  "InvalidParameterException", "m" },
		{ "<html>busy</html>", NULL, 503, ERROR_UNAVAILABLE, "", "" },
		{ "", NULL, 403, ERROR_AUTH, "", "" },
		{ "<!DOCTYPE a><a/>", NULL, 302, ERROR_INVALID, "", "" },
		{ "{", NULL, 504, ERROR_TIMEOUT, "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct aws_refusal r;
		aws_read_refusal(cases[i].body, strlen(cases[i].body), cases[i].type, &r);
		assert_string_equal(r.code, cases[i].code);
		assert_string_equal(r.message, cases[i].message);
		if (aws_refusal_kind(&r, cases[i].status) != cases[i].kind)
			fail_msg("%s", cases[i].body);
	}
}

/* Every error that the models declare for operations of ours has a kind on purpose. */
static void errors_of_the_models_have_kinds(void **state)
{
	static const struct {
		const char *file, *code;
		long status;
		enum error_kind kind;
	} cases[] = {
		{ "aws/autoscaling.json", "ResourceContention", 500, ERROR_UNAVAILABLE },
		{ "aws/autoscaling.json", "ScalingActivityInProgress", 400, ERROR_CONFLICT },
		{ "aws/autoscaling.json", "InstanceRefreshInProgress", 400, ERROR_CONFLICT },
		{ "aws/autoscaling.json", "ResourceInUse", 400, ERROR_CONFLICT },
		{ "aws/autoscaling.json", "LimitExceeded", 400, ERROR_QUOTA },
		{ "aws/autoscaling.json", "InvalidNextToken", 400, ERROR_INVALID },
		{ "aws/autoscaling.json", "IdempotentParameterMismatch", 400, ERROR_INVALID },
		{ "aws/autoscaling.json", "ServiceLinkedRoleFailure", 500, ERROR_AUTH },
		{ "aws/sts.json", "ExpiredTokenException", 400, ERROR_AUTH },
		{ "aws/sts.json", "IDPCommunicationError", 400, ERROR_UNAVAILABLE },
		{ "aws/sts.json", "IDPRejectedClaim", 403, ERROR_AUTH },
		{ "aws/sts.json", "InvalidIdentityToken", 400, ERROR_AUTH },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct contract model = { 0 };
		struct aws_refusal r = { { 0 }, { 0 } };
		bool is_declared = false;
		if (!contract_read(&model, cases[i].file))
			skip();
		for (size_t k = 0; k < model.count && !is_declared; k++)
			is_declared = strcmp(model.values[k].text, cases[i].code) == 0 &&
				      strstr(model.values[k].path, ">error>code");
		if (!is_declared)
			fail_msg("%s is not declared", cases[i].code);
		snprintf(r.code, sizeof r.code, "%s", cases[i].code);
		assert_int_equal(aws_refusal_kind(&r, cases[i].status), cases[i].kind);
		contract_release(&model);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_group_is_described),
		cmocka_unit_test(lifecycle_states_are_told_apart),
		cmocka_unit_test(a_schedule_that_emptied_the_group_is_told),
		cmocka_unit_test(standby_is_the_warm_pool),
		cmocka_unit_test(what_an_image_cannot_is_told),
		cmocka_unit_test(what_a_stop_empties_is_told),
		cmocka_unit_test(machines_on_their_way_out_of_the_pool_are_told_once),
		cmocka_unit_test(failed_launches_are_told_with_what_could_not_be_had),
		cmocka_unit_test(whoever_resized_the_group_is_named),
		cmocka_unit_test(hooks_say_how_long_they_hold),
		cmocka_unit_test(an_instance_refresh_that_goes_on_is_told),
		cmocka_unit_test(a_launch_that_a_hook_abandoned_has_failed),
		cmocka_unit_test(a_failure_counts_once_it_lasts),
		cmocka_unit_test(texts_of_failures_are_understood),
		cmocka_unit_test(a_node_group_is_read),
		cmocka_unit_test(an_update_is_read),
		cmocka_unit_test(refusals_are_understood),
		cmocka_unit_test(errors_of_the_models_have_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
