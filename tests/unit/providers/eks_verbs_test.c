/* Which requests each verb sends, in which order, and what it never does. */
#include "base/quantity.h"
#include "tests/unit/providers/played_account.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HOOKS_ASKED   "DescribeLifecycleHooks&AutoScalingGroupName=a"
#define MORE_AT_LEAST "{\"scalingConfig\":{\"minSize\":2,\"maxSize\":1}}"

static void eks_is_asked_once_for_the_group(void **state)
{
	struct scene *s = *state;

	account_settle(s, BY_NODEGROUP);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { NODEGROUP, PLAIN, 0 },
			     { READ, GROUP("0", "5", "1", HAS(SAFE("i-0a")) ""), 0 }, ),
			 ERROR_NONE);
	assert_int_equal(
		RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, GROUP("0", "5", "1", HAS(SAFE("i-0a")) ""), 0 }, ),
		ERROR_NONE);
	/* the group is gone: perhaps it has another now */
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, "<AutoScalingGroups/>", 0 }, ),
			 ERROR_NOT_FOUND);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE),
			     { NODEGROUP, "ResourceNotFoundException:No node group", 404 }, ),
			 ERROR_NOT_FOUND);
	/* and that is remembered for a while, too */
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_GROW, .desired = 1), NOTHING), ERROR_NOT_FOUND);
	assert_non_null(strstr(s->call.error.message, "No node group"));
}

static void what_may_be_over_soon_is_asked_again(void **state)
{
	struct scene *s = *state;

	account_settle(s, BY_NODEGROUP);
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { NODEGROUP, "ThrottlingException:slow", 429 }, ),
			ERROR_THROTTLED);
	assert_int_equal(s->call.retry_after, 9000);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE),
			     { NODEGROUP, "{\"nodegroup\":{\"nodegroupName\":\"n\",\"status\":\"CREATING\"}}", 0 }, ),
			 ERROR_CONFLICT);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { NODEGROUP, PLAIN, 0 },
			     { READ, GROUP("0", "5", "1", HAS(SAFE("i-0a")) ""), 0 }, ),
			 ERROR_NONE);
}

static void tags_find_exactly_one_group(void **state)
{
	static const char find[] =
		"DescribeAutoScalingGroups&Filters.member.1.Name=tag%3Ateam&Filters.member.1.Values.member.1=ml&"
		"Filters.member.2."
		"Name=tag-key&Filters.member.2.Values.member.1=gpu&IncludeInstances=false&MaxRecords=100";
	struct scene *s = *state;

	account_settle(s, "\"tags\":\"team=ml, gpu\"");
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE),
			     { find, "<AutoScalingGroups><member/><member/></AutoScalingGroups>", 0 }, ),
			 ERROR_INVALID);
	assert_non_null(strstr(s->call.error.message, "several Auto Scaling groups"));
	account_settle(s, "\"tags\":\"team=ml,gpu\"");
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE),
			     { find, GROUP("0", "5", "1", HAS(SAFE("i-0a")) ""), 0 },
			     { READ, GROUP("0", "5", "1", HAS(SAFE("i-0a")) ""), 0 }, ),
			 ERROR_NONE);
	assert_int_equal(
		RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, GROUP("0", "5", "1", HAS(SAFE("i-0a")) ""), 0 }, ),
		ERROR_NONE);
}

static void a_description_asks_for_what_it_needs(void **state)
{
	struct scene *s = *state;

	account_settle(s, BY_NAME);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE),
			     { READ, GROUP("0", "5", "2", HAS(IN("i-0a")) POOL("0", "3")), 0 },
			     { "DescribeWarmPool&AutoScalingGroupName=a",
			       HAS(INSTANCE("i-0w", "Warmed:Stopped", "false")) "<NextToken>t/1</NextToken>", 0 },
			     { "DescribeWarmPool&AutoScalingGroupName=a&NextToken=t%2F1",
			       HAS(INSTANCE("i-0x", "Warmed:Pending", "false")), 0 },
			     { ACTIVITIES, NONE, 0 }, ),
			 ERROR_NONE);
	assert_int_equal(s->call.description.machine_count, 3);
	/* who may not see the pool has no standby, and is told */
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE),
			     { READ, GROUP("0", "5", "1", HAS(IN("i-0a")) POOL("0", "3")), 0 },
			     { "DescribeWarmPool&AutoScalingGroupName=a", "AccessDenied", 403 },
			     { ACTIVITIES, NONE, 0 },
			     /* who lowered it */),
			 ERROR_NONE);
	assert_int_equal(s->call.description.abilities & PROVIDER_HAS_STANDBY, 0);
	assert_non_null(strstr(s->call.description.lacks, "autoscaling:DescribeWarmPool"));
	/* what is not known is no failure, and no description either */
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, GROUP("0", "5", "2", HAS(IN("i-0a"))), 0 },
			     { ACTIVITIES, "Throttling:Rate exceeded", 400 }, ),
			 ERROR_THROTTLED);
	assert_non_null(strstr(s->call.error.message, "DescribeScalingActivities: Throttling: Rate exceeded"));
	assert_int_equal(s->call.description.machine_count, 0);
}

static void an_update_that_goes_on_is_busy(void **state)
{
	struct scene *s = *state;
	const char *pending = "u1";

	account_settle(s, BY_NODEGROUP);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE, .pending = pending), { NODEGROUP, OWNED, 0 },
			     { "GET /clusters/c/updates/u1", UPDATE("InProgress"), 0 },
			     { READ, GROUP("0", "5", "1", HAS(SAFE("i-0a")) ""), 0 }, ),
			 ERROR_NONE);
	assert_true(s->call.description.is_busy);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE, .pending = pending),
			     { "GET /clusters/c/updates/u1", UPDATE("Failed"), 0 },
			     { READ, GROUP("0", "5", "1", HAS(SAFE("i-0a")) ""), 0 }, ),
			 ERROR_NONE);
	assert_false(s->call.description.is_busy);
	assert_int_equal(s->call.description.failure_count, 1);
	assert_string_equal(s->call.description.failures[0].message, "no such size");
	/* forgotten, or not for us to see: over */
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE, .pending = pending), { NODEGROUP, OWNED, 0 },
			     { "GET /clusters/c/updates/u1", "AccessDeniedException", 403 },
			     { READ, GROUP("0", "5", "1", HAS(SAFE("i-0a")) ""), 0 }, ),
			 ERROR_NONE);
	assert_false(s->call.description.is_busy);
}

static void look(struct scene *s, const char *desired)
{
	CLEANUP(buf_release) struct buf group = { 0 };

	buf_printf(&group, GROUP("0", "9", "%s", ""), desired);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, group.text, 0 }, { ACTIVITIES, NONE, 0 }, ),
			 ERROR_NONE);
}

/* EKS raises the size by twice the zones, launches, and ends one after the other: nobody asks it for minutes else. */
static void an_update_of_the_owner_is_found_when_the_size_moves(void **state)
{
	struct scene *s = *state;

	account_settle(s, BY_NODEGROUP);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { NODEGROUP, PLAIN, 0 },
			     { READ, GROUP("0", "9", "3", ""), 0 }, { ACTIVITIES, NONE, 0 }, ),
			 ERROR_NONE);
	assert_false(s->call.description.is_busy);
	look(s, "3");
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, GROUP("0", "13", "7", ""), 0 },
			     { NODEGROUP, AS("UPDATING", ""), 0 }, { ACTIVITIES, NONE, 0 }, ),
			 ERROR_NONE);
	assert_true(s->call.description.is_busy);
	assert_non_null(strstr(s->call.description.busy_with, "EKS updates node group n (status UPDATING)"));
	assert_non_null(strstr(s->call.description.busy_with, "aws eks list-updates --name c --nodegroup-name n"));
	/* read at every look until it is over */
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { NODEGROUP, AS("UPDATING", ""), 0 },
			     { READ, GROUP("0", "13", "7", ""), 0 }, { ACTIVITIES, NONE, 0 }, ),
			 ERROR_NONE);
	assert_true(s->call.description.is_busy);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { NODEGROUP, PLAIN, 0 },
			     { READ, GROUP("0", "9", "3", ""), 0 }, { ACTIVITIES, NONE, 0 }, ),
			 ERROR_NONE);
	assert_false(s->call.description.is_busy);
	assert_string_equal(s->call.description.busy_with, "");
	look(s, "3");
}

/* With the update strategy MINIMAL no size moves: EKS ends an old machine, and Auto Scaling launches the next. */
static void an_update_of_the_owner_is_found_when_a_machine_leaves(void **state)
{
	static const char both[] = GROUP("0", "9", "2", HAS(SAFE("i-0a") SAFE("i-0b"))),
			  replaced[] = GROUP("0", "9", "2", HAS(PENDING("i-0c") SAFE("i-0a"))),
			  ends[] = GROUP("0", "9", "2",
					 HAS(INSTANCE("i-0b", "Terminating:Wait", "true") SAFE("i-0a") IN("i-0c")));
	struct scene *s = *state;

	account_settle(s, BY_NODEGROUP);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { NODEGROUP, PLAIN, 0 }, { READ, both, 0 }, ),
			 ERROR_NONE);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, both, 0 }, ), ERROR_NONE);
	assert_false(s->call.description.is_busy);
	assert_int_equal(
		RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, replaced, 0 }, { NODEGROUP, AS("UPDATING", ""), 0 }, ),
		ERROR_NONE);
	assert_true(s->call.description.is_busy);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { NODEGROUP, PLAIN, 0 }, { READ, both, 0 }, ),
			 ERROR_NONE);
	/* also while a hook holds what ends; nobody's update is asked for once */
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, ends, 0 }, { NODEGROUP, PLAIN, 0 },
			     { HOOKS_ASKED, "<LifecycleHooks/>", 0 }, ),
			 ERROR_NONE);
	assert_false(s->call.description.is_busy);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, ends, 0 }, ), ERROR_NONE);
}

static const char *const one_machine[] = { "i-0a" };

static void nothing_is_changed_during_an_update(void **state)
{
	static const enum provider_verb verbs[] = { PROVIDER_GROW,    PROVIDER_REMOVE, PROVIDER_STOP,
						    PROVIDER_STANDBY, PROVIDER_CANCEL, PROVIDER_PROTECT };
	static const char *const states[] = { AS("UPDATING", ""), AS("CREATING", ""), AS("DELETING", "") };
	struct scene *s = *state;

	account_settle(s, BY_NODEGROUP);
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
		assert_int_equal(
			RUN(s,
			    CALL(.verb = verbs[i], .desired = 1, .ids = one_machine, .id_count = 1, .token = "token-1"),
			    { NODEGROUP, states[i % 3], 0 }, { READ, GROUP("0", "9", "0", HAS(PENDING("i-0a"))), 0 }, ),
			ERROR_CONFLICT);
		assert_non_null(strstr(s->call.error.message, "nothing is changed until then"));
	}
}

/* EKS was asked a moment ago, and began since: the sizes that the call itself reads have moved. */
static void an_update_that_began_just_now_is_found(void **state)
{
	static const enum provider_verb verbs[] = { PROVIDER_GROW, PROVIDER_REMOVE, PROVIDER_STOP, PROVIDER_STANDBY,
						    PROVIDER_CANCEL };
	struct scene *s = *state;

	account_settle(s, BY_NODEGROUP);
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
		assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { NODEGROUP, PLAIN, 0 },
				     { READ, GROUP("0", "9", "3", ""), 0 }, { ACTIVITIES, NONE, 0 }, ),
				 ERROR_NONE);
		assert_int_equal(RUN(s,
				     CALL(.verb = verbs[i], .desired = verbs[i] == PROVIDER_STANDBY ? 1 : 9,
					  .ids = one_machine, .id_count = 1, .token = "token-1"),
				     { READ, GROUP("0", "13", "7", ""), 0 }, { NODEGROUP, AS("UPDATING", ""), 0 }, ),
				 ERROR_CONFLICT);
		assert_non_null(strstr(s->call.error.message, "status UPDATING"));
	}
}

/* Between the look and the call somebody lowered it: nothing is sent, or four would be launched where one was decided.
 */
static void a_size_that_fell_meanwhile_is_let(void **state)
{
	struct scene *s = *state;

	account_settle(s, BY_NODEGROUP);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_GROW, .desired = 4, .change = 1, .token = "token-1"),
			     { NODEGROUP, PLAIN, 0 }, { READ, GROUP("0", "9", "0", ""), 0 }, ),
			 ERROR_CONFLICT);
	assert_non_null(strstr(s->call.error.message, "looked at again first"));
}

/* DescribeUpdate tells that it is ours: what EKS does is what we asked for. */
static void an_update_of_ours_is_nobody_elses(void **state)
{
	struct scene *s = *state;

	account_settle(s, BY_NODEGROUP);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE, .pending = "u1"), { NODEGROUP, AS("UPDATING", ""), 0 },
			     { "GET /clusters/c/updates/u1", UPDATE("InProgress"), 0 },
			     { READ, GROUP("0", "5", "1", HAS(SAFE("i-0a")) ""), 0 }, ),
			 ERROR_NONE);
	assert_true(s->call.description.is_busy);
	assert_string_equal(s->call.description.busy_with, "");
	/* it was over a moment ago, and the status is of before */
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE, .pending = "u1"), { NODEGROUP, AS("UPDATING", ""), 0 },
			     { "GET /clusters/c/updates/u1", UPDATE("Successful"), 0 },
			     { READ, GROUP("0", "5", "1", HAS(SAFE("i-0a")) ""), 0 }, ),
			 ERROR_NONE);
	assert_false(s->call.description.is_busy);
}

static void what_eks_says_is_wrong_is_told(void **state)
{
	struct scene *s = *state;

	account_settle(s, BY_NODEGROUP);
	assert_int_equal(
		RUN(s, CALL(.verb = PROVIDER_DESCRIBE),
		    { NODEGROUP,
		      AS("DEGRADED", ",\"health\":{\"issues\":[{\"code\":\"PodEvictionFailure\",\"message\":\"Reached "
				     "max retries while trying to evict pods\",\"resourceIds\":[\"i-0a\"]},{\"code\":"
				     "\"AccessDenied\"}]}"),
		      0 },
		    { READ, GROUP("0", "5", "1", HAS(SAFE("i-0a")) ""), 0 }, ),
		ERROR_NONE);
	assert_string_equal(s->call.description.ailment, "DEGRADED; PodEvictionFailure: Reached max retries while "
							 "trying to evict pods; AccessDenied");
	assert_false(s->call.description.is_busy);
	/* it is looked at until it is well again */
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { NODEGROUP, PLAIN, 0 },
			     { READ, GROUP("0", "5", "1", HAS(SAFE("i-0a")) ""), 0 }, ),
			 ERROR_NONE);
	assert_string_equal(s->call.description.ailment, "");
}

/* What the node group was given is not what its machines are started from. */
#define BLOCK        \
	AS("ACTIVE", \
	   ",\"capacityType\":\"CAPACITY_BLOCK\",\"launchTemplate\":{\"id\":\"lt-0owners\",\"version\":\"7\"}")
#define FROM_TEMPLATE                                                                                      \
	"<MixedInstancesPolicy><LaunchTemplate><LaunchTemplateSpecification><LaunchTemplateId>lt-0a</"     \
	"LaunchTemplateId>"                                                                                \
	"<LaunchTemplateName>eks-1</LaunchTemplateName><Version>3</Version></LaunchTemplateSpecification>" \
	"</LaunchTemplate></MixedInstancesPolicy>"
#define TEMPLATE "DescribeLaunchTemplateVersions&LaunchTemplateId=lt-0a&LaunchTemplateVersion.1=3"
#define NAMES_IT                                                                                      \
	"<launchTemplateVersionSet><item><launchTemplateData><capacityReservationSpecification>"      \
	"<capacityReservationTarget><capacityReservationId>cr-0b</capacityReservationId>"             \
	"</capacityReservationTarget></capacityReservationSpecification></launchTemplateData></item>" \
	"</launchTemplateVersionSet>"
#define NAMES_BLOCK                                                                                               \
	"<launchTemplateVersionSet><item><launchTemplateData><instanceMarketOptions><marketType>capacity-block</" \
	"marketType></instanceMarketOptions><capacityReservationSpecification><capacityReservationTarget>"        \
	"<capacityReservationId>cr-0b</capacityReservationId></capacityReservationTarget>"                        \
	"</capacityReservationSpecification></launchTemplateData></item></launchTemplateVersionSet>"
#define RESERVATION "DescribeCapacityReservations&CapacityReservationId.1=cr-0b"
#define ENDS                                                                                                  \
	"<capacityReservationSet><item><capacityReservationId>cr-0b</capacityReservationId>"                  \
	"<reservationType>capacity-block</reservationType><endDate>2027-01-31T11:30:00.000Z</endDate></item>" \
	"</capacityReservationSet>"
#define EMPTY GROUP("0", "5", "1", HAS(SAFE("i-0a")) FROM_TEMPLATE)

static void the_end_of_a_capacity_block_is_read_from_its_reservation(void **state)
{
	struct scene *s = *state;
	millis end = 0;

	account_settle(s, BY_NODEGROUP);
	assert_true(time_parse_exact("2027-01-31T11:30:00Z", &end));
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { NODEGROUP, BLOCK, 0 }, { READ, EMPTY, 0 },
			     { TEMPLATE, NAMES_IT, 0 }, { RESERVATION, ENDS, 0 }, ),
			 ERROR_NONE);
	assert_int_equal(s->call.description.ends_at, end);
	assert_int_equal(s->call.description.caution_count, 0);
	/* it stays known, without being asked for at every look */
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, EMPTY, 0 }, ), ERROR_NONE);
	assert_int_equal(s->call.description.ends_at, end);
}

/* EKS is not asked about a group of one's own: its launch template tells the market. */
static void a_capacity_block_of_ones_own_group_is_known_by_its_template(void **state)
{
	struct scene *s = *state;
	millis end = 0;

	account_settle(s, BY_NAME ",\"cluster\":\"c\",\"nodegroup\":\"n\"");
	assert_true(time_parse_exact("2027-01-31T11:30:00Z", &end));
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, EMPTY, 0 }, { TEMPLATE, NAMES_BLOCK, 0 },
			     { RESERVATION, ENDS, 0 }, ),
			 ERROR_NONE);
	assert_int_equal(s->call.description.ends_at, end);
	assert_int_equal(s->call.description.caution_count, 0);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, EMPTY, 0 }, ), ERROR_NONE);
	assert_int_equal(s->call.description.ends_at, end);
	/* an On-Demand Capacity Reservation: its machines outlive it */
	account_settle(s, BY_NAME ",\"launch\":\"capacity\"");
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, EMPTY, 0 }, { TEMPLATE, NAMES_IT, 0 }, ),
			 ERROR_NONE);
	assert_int_equal(s->call.description.ends_at, 0);
	assert_int_equal(s->call.description.caution_count, 0);
	/* its end cannot be read */
	account_settle(s, BY_NAME " ");
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, EMPTY, 0 }, { TEMPLATE, NAMES_BLOCK, 0 },
			     { RESERVATION, "UnauthorizedOperation:You are not authorized", 403 }, ),
			 ERROR_NONE);
	assert_int_equal(s->call.description.ends_at, 0);
	assert_int_equal(s->call.description.caution_count, 1);
	assert_non_null(strstr(s->call.description.cautions[0], "set reservedUntil"));
}

/* A role without the permission, a network without a way: the group is described all the same. */
static void a_capacity_block_without_a_known_end_is_named(void **state)
{
	struct scene *s = *state;

	account_settle(s, BY_NODEGROUP);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { NODEGROUP, BLOCK, 0 }, { READ, EMPTY, 0 },
			     { TEMPLATE, "UnauthorizedOperation:You are not authorized", 403 }, ),
			 ERROR_NONE);
	assert_int_equal(s->call.description.ends_at, 0);
	assert_int_equal(s->call.description.caution_count, 1);
	assert_non_null(strstr(s->call.description.cautions[0], "You are not authorized"));
	assert_non_null(strstr(s->call.description.cautions[0], "set reservedUntil"));
	account_settle(s, BY_NODEGROUP ",\"launch\":\"capacity\"");
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { NODEGROUP, BLOCK, 0 }, { READ, EMPTY, 0 },
			     { TEMPLATE, NAMES_IT, 0 }, { RESERVATION, "<capacityReservationSet/>", 0 }, ),
			 ERROR_NONE);
	assert_non_null(strstr(s->call.description.cautions[0], "there is no such Capacity Reservation"));
}

/* "--local-disks raid0", in base64. */
#define TELLS(user_data)                                                                         \
	"<launchTemplateVersionSet><item><launchTemplateData><userData>" user_data "</userData>" \
	"</launchTemplateData></item></launchTemplateVersionSet>"
#define ON_STORE TELLS("LS1sb2NhbC1kaXNrcyByYWlkMA==")
#define OF_POOL	 GROUP("0", "5", "1", HAS(IN("i-0a")) POOL("0", "3") FROM_TEMPLATE)
#define NO_POOL                                                              \
	{                                                                    \
		"DescribeWarmPool&AutoScalingGroupName=a", "<Instances/>", 0 \
	}

static void where_images_lie_is_read_from_the_launch_template(void **state)
{
	struct scene *s = *state;

	account_settle(s, BY_NAME);
	assert_int_equal(
		RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, OF_POOL, 0 }, { TEMPLATE, ON_STORE, 0 }, NO_POOL, ),
		ERROR_NONE);
	assert_true(s->call.description.forgets_images);
	assert_non_null(strstr(s->call.description.lacks,
			       "--local-disks raid0 in the user data of launch template lt-0a, version 3"));
	assert_true(s->call.description.abilities & PROVIDER_STOPS_NAMED);
	/* it stays known, and a change does not ask */
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, OF_POOL, 0 }, NO_POOL, ), ERROR_NONE);
	assert_true(s->call.description.forgets_images);
	/* no machine stands by there: it is nobody's concern */
	account_settle(s, BY_NAME ",\"launch\":\"capacity\"");
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, EMPTY, 0 }, { TEMPLATE, ON_STORE, 0 }, ),
			 ERROR_NONE);
	assert_false(s->call.description.forgets_images);
	/* it will have a pool, which we make */
	account_settle(s, BY_NAME ",\"warmPool\":\"autoScalingGroup\"");
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, EMPTY, 0 }, { TEMPLATE, ON_STORE, 0 }, ),
			 ERROR_NONE);
	assert_true(s->call.description.forgets_images);
}

/* Nothing is assumed of what cannot be read, and it is told; the group is described all the same. */
static void what_a_launch_template_does_not_tell_is_not_assumed(void **state)
{
	static const struct {
		const char *answer;
		int status;
		const char *caution;
	} cases[] = {
		{ "UnauthorizedOperation:You are not authorized", 403, "You are not authorized" },
		{ "InvalidLaunchTemplateId.VersionNotFound:Could not find the specified version 3", 400,
		  "the specified version 3" },
		{ "<launchTemplateVersionSet/>", 0, "no such version of the launch template" },
		{ TELLS("not base64!"), 0, "no base64" },
		{ TELLS("H4sIAAAA"), 0, "damaged gzip" },
		{ "<launchTemplateVersionSet>", 0, "answer: XML line 1" },
		{ TELLS(""), 0, NULL },
		{ "<launchTemplateVersionSet><item><launchTemplateData/></item></launchTemplateVersionSet>", 0, NULL },
	};
	struct scene *s = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char settings[100]; /* of a group that nobody looked at yet */
		snprintf(settings, sizeof settings, "%s%*s", BY_NAME, (int)i, "");
		account_settle(s, settings);
		assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, OF_POOL, 0 },
				     { TEMPLATE, cases[i].answer, cases[i].status }, NO_POOL, ),
				 ERROR_NONE);
		const struct group_description *d = &s->call.description;
		assert_false(d->forgets_images);
		assert_string_equal(d->lacks, "");
		assert_int_equal(d->caution_count, cases[i].caution != NULL);
		if (cases[i].caution && !strstr(d->cautions[0], cases[i].caution))
			fail_msg("case %zu: %s", i, d->cautions[0]);
		/* and is not asked for again at once, but as well known */
		assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, OF_POOL, 0 }, NO_POOL, ), ERROR_NONE);
		assert_int_equal(s->call.description.caution_count, cases[i].caution != NULL);
	}
}

static void machines_are_protected_from_the_first_look_on(void **state)
{
	struct scene *s = *state;

	account_settle(s, BY_NAME);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE),
			     { READ, GROUP("0", "5", "3", HAS(IN("i-0a") SAFE("i-0b") PENDING("i-0c"))), 0 }, ),
			 ERROR_NONE);
	assert_int_equal(s->call.description.exposed, 1);
	assert_int_equal(s->call.description.guarded, 1);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_PROTECT, .desired = 1),
			     { READ, GROUP("0", "5", "3", HAS(IN("i-0a") SAFE("i-0b") PENDING("i-0c"))), 0 },
			     { PROTECT(ID("1", "i-0a")), "", 0 }, ),
			 ERROR_NONE);
	/* Auto Scaling is about to end one of more than are asked for: which is left to it */
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_PROTECT, .desired = 1),
			     { READ, GROUP("0", "5", "2", HAS(IN("i-0a") SAFE("i-0b") IN("i-0c"))), 0 }, ),
			 ERROR_NONE);
}

/* A schedule that sets the size to nothing: what we protect would outlast it. */
static void a_lower_size_of_the_owner_is_not_held_up(void **state)
{
	struct scene *s = *state;

	account_settle(s, BY_NAME);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_PROTECT, .desired = 1),
			     { READ, GROUP("0", "5", "0", HAS(SAFE("i-0a") SAFE("i-0b"))), 0 },
			     { UNPROTECT(ID("1", "i-0b") ID("2", "i-0a")), "", 0 }, ),
			 ERROR_NONE);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_PROTECT, .desired = 1),
			     { READ, GROUP("0", "5", "1", HAS(SAFE("i-0a") SAFE("i-0b"))), 0 },
			     { UNPROTECT(ID("1", "i-0b")), "", 0 }, ),
			 ERROR_NONE);
}

/* So that an instance refresh can pass, which waits for protected machines and fails; also during an update. */
static void protection_is_lifted_from_what_is_ours_no_more(void **state)
{
	static const char *const theirs[] = { "i-0c" };
	struct scene *s = *state;

	account_settle(s, BY_NODEGROUP);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_PROTECT, .desired = 0), { NODEGROUP, AS("UPDATING", ""), 0 },
			     { READ, GROUP("0", "5", "3", HAS(SAFE("i-0a") IN("i-0b") SAFE("i-0c"))), 0 },
			     { UNPROTECT(ID("1", "i-0c") ID("2", "i-0a")), "", 0 }, ),
			 ERROR_NONE);
	/* one that somebody else protected */
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_PROTECT, .desired = 0, .ids = theirs, .id_count = 1),
			     { NODEGROUP, PLAIN, 0 }, { READ, GROUP("0", "5", "2", HAS(SAFE("i-0a") SAFE("i-0c"))), 0 },
			     { UNPROTECT(ID("1", "i-0a")), "", 0 }, ),
			 ERROR_NONE);
	/* a setting of the group, which is not ours */
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_PROTECT, .desired = 0),
			     { READ,
			       GROUP("0", "5", "1",
				     HAS(SAFE("i-0a")) "<NewInstancesProtectedFromScaleIn>true"
						       "</NewInstancesProtectedFromScaleIn>"),
			       0 }, ),
			 ERROR_NONE);
}

#define NEW_ARE_SAFE "<NewInstancesProtectedFromScaleIn>true</NewInstancesProtectedFromScaleIn>"
#define OF_EKS	     "<Tags><member><Key>eks:nodegroup-name</Key><Value>n</Value></member></Tags>"
#define SET_NEW(on)  "UpdateAutoScalingGroup&AutoScalingGroupName=a&NewInstancesProtectedFromScaleIn=" on

/* A group that EKS does not manage: what it launches is protected from the first second, and nothing is left behind. */
static void a_group_protects_what_is_new_where_it_may(void **state)
{
	struct scene *s = *state;

	account_settle(s, BY_NAME ",\"protection\":\"group\"");
	assert_int_equal(
		RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, GROUP("0", "5", "1", HAS(SAFE("i-0a")) ""), 0 }, ),
		ERROR_NONE);
	assert_int_equal(s->call.description.new_machines, NEW_MACHINES_EXPOSED);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_PROTECT, .desired = 1),
			     { READ, GROUP("0", "5", "1", HAS(IN("i-0a"))), 0 }, { SET_NEW("true"), "", 0 },
			     { PROTECT(ID("1", "i-0a")), "", 0 }, ),
			 ERROR_NONE);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE),
			     { READ, GROUP("0", "5", "1", HAS(SAFE("i-0a")) NEW_ARE_SAFE), 0 }, ),
			 ERROR_NONE);
	assert_int_equal(s->call.description.new_machines, NEW_MACHINES_GUARDED);
	assert_int_equal(s->call.description.caution_count, 0);
	/* a lower size of somebody else: as many go as that says, and what they launch beyond it is theirs */
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_PROTECT, .desired = 1),
			     { READ, GROUP("0", "5", "1", HAS(SAFE("i-0a") SAFE("i-0b")) NEW_ARE_SAFE), 0 },
			     { UNPROTECT(ID("1", "i-0b")), "", 0 }, ),
			 ERROR_NONE);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_PROTECT, .desired = 1),
			     { READ, GROUP("0", "5", "1", HAS(SAFE("i-0a") IN("i-0b"))), 0 }, ),
			 ERROR_NONE);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_PROTECT, .desired = 0),
			     { READ, GROUP("0", "5", "1", HAS(SAFE("i-0a")) NEW_ARE_SAFE), 0 },
			     { SET_NEW("false"), "", 0 }, { UNPROTECT(ID("1", "i-0a")), "", 0 }, ),
			 ERROR_NONE);
}

/* Found by its name, and of a managed node group all the same: its updates would not be seen. */
static void a_group_of_eks_is_named_as_one(void **state)
{
	static const char *const ids[] = { "i-0a" };
	struct scene *s = *state;

	account_settle(s, BY_NAME);
	for (enum provider_verb verb = PROVIDER_GROW; verb <= PROVIDER_CANCEL; verb++) {
		assert_int_equal(RUN(s, CALL(.verb = verb, .desired = 3, .ids = ids, .id_count = 1),
				     { READ, GROUP("0", "5", "1", HAS(IN("i-0a")) OF_EKS), 0 }, ),
				 ERROR_INVALID);
		assert_non_null(
			strstr(s->call.error.message, "name it in eks.nodegroup, and delete eks.autoScalingGroup"));
	}
	assert_int_equal(
		RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, GROUP("0", "5", "1", HAS(IN("i-0a")) OF_EKS), 0 }, ),
		ERROR_NONE);
	assert_true(s->call.description.is_refused);
	assert_non_null(strstr(s->call.description.lacks, "eks:nodegroup-name"));
	account_settle(s, BY_NODEGROUP);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_GROW, .desired = 3), { NODEGROUP, PLAIN, 0 },
			     { READ, GROUP("0", "5", "1", HAS(SAFE("i-0a")) OF_EKS), 0 }, { SIZE("3"), "", 0 }, ),
			 ERROR_NONE);
}

#define ZONES	  "<AvailabilityZones><member>z1</member><member>z2</member></AvailabilityZones>"
#define SUSPENDED "<SuspendedProcesses><member><ProcessName>AZRebalance</ProcessName></member></SuspendedProcesses>"

static void a_group_that_protects_by_itself_is_told(void **state)
{
	struct scene *s = *state;

	account_settle(s, BY_NAME);
	for (int i = 0; i < 2; i++) {
		const char *group = i ? GROUP("0", "5", "1",
					      HAS(SAFE("i-0a")) "<NewInstancesProtectedFromScaleIn>true</"
								"NewInstancesProtectedFromScaleIn>")
				      : GROUP("0", "5", "1",
					      HAS(SAFE("i-0a")) "<NewInstancesProtectedFromScaleIn>false</"
								"NewInstancesProtectedFromScaleIn>");
		assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, group, 0 }, ), ERROR_NONE);
		assert_int_equal(s->call.description.caution_count, i);
	}
	assert_non_null(strstr(s->call.description.cautions[0], "--no-new-instances-protected-from-scale-in"));
}

static void zones_that_are_balanced_are_told(void **state)
{
	static const struct {
		const char *group;
		size_t cautions;
	} cases[] = {
		{ GROUP("0", "5", "1", HAS(SAFE("i-0a")) ZONES), 1 },
		{ GROUP("0", "5", "1", HAS(SAFE("i-0a")) ZONES SUSPENDED), 0 },
		{ GROUP("0", "5", "1", HAS(SAFE("i-0a")) "<AvailabilityZones><member>z1</member></AvailabilityZones>"),
		  0 },
	};
	struct scene *s = *state;

	account_settle(s, BY_NAME);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, cases[i].group, 0 }, ), ERROR_NONE);
		assert_int_equal(s->call.description.caution_count, cases[i].cautions);
		if (cases[i].cautions)
			assert_non_null(strstr(s->call.description.cautions[0], "--scaling-processes AZRebalance"));
	}
}

static void growing_reads_first_and_protects_what_is_there(void **state)
{
	struct scene *s = *state;

	account_settle(s, BY_NAME);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_GROW, .desired = 4),
			     { READ, GROUP("0", "5", "2", HAS(IN("i-0a") SAFE("i-0b"))), 0 }, { SIZE("4"), "", 0 },
			     { PROTECT(ID("1", "i-0a")), "", 0 }, ),
			 ERROR_NONE);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_GROW, .desired = 2), { READ, GROUP("0", "5", "2", ""), 0 }, ),
			 ERROR_NONE);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_GROW, .desired = 6), { READ, GROUP("0", "5", "2", ""), 0 }, ),
			 ERROR_INVALID);
	assert_non_null(strstr(s->call.error.message, "above MaxSize 5 of Auto Scaling group a"));
	/* a pool that somebody keeps at a least size would be refilled */
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_GROW, .desired = 3),
			     { READ, GROUP("0", "5", "1", POOL("2", "0")), 0 }, { PUT("0", "3"), "", 0 },
			     { SIZE("3"), "", 0 }, ),
			 ERROR_NONE);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_GROW, .desired = 3),
			     { READ,
			       GROUP("0", "5", "1",
				     "<SuspendedProcesses><member><ProcessName>Launch</ProcessName></member>"
				     "</SuspendedProcesses>"),
			       0 }, ),
			 ERROR_INVALID);
	assert_non_null(strstr(s->call.error.message, "suspended"));
}

#define TAGS	      "<Tags><member><Key>k8s.io/cluster-autoscaler/enabled</Key><Value>true</Value></member></Tags>"
#define TEMPLATE_TAGS "<Tags><member><Key>k8s.io/cluster-autoscaler/node-template/label/a</Key></member></Tags>"

#define OPERATED "<Operator><Principal>autoscaling.example.aws</Principal></Operator>"

static void groups_of_an_operator_are_left_alone(void **state)
{
	static const char *const ids[] = { "i-0a" };
	struct scene *s = *state;

	account_settle(s, BY_NAME);
	for (enum provider_verb verb = PROVIDER_GROW; verb <= PROVIDER_CANCEL; verb++) {
		assert_int_equal(RUN(s, CALL(.verb = verb, .desired = 3, .ids = ids, .id_count = 1),
				     { READ, GROUP("0", "5", "1", HAS(IN("i-0a")) OPERATED), 0 }, ),
				 ERROR_INVALID);
		assert_non_null(strstr(s->call.error.message, "has an operator, autoscaling.example.aws"));
	}
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE),
			     { READ, GROUP("0", "5", "1", HAS(SAFE("i-0a")) OPERATED), 0 }, ),
			 ERROR_NONE);
	assert_true(s->call.description.is_refused);
	assert_non_null(strstr(s->call.description.lacks, "autoscaling.example.aws"));
}

/* One group of the cloud, found in two ways: whoever was there first has it. */
static void a_group_of_two_names_is_changed_under_the_first(void **state)
{
	static const char *const ids[] = { "i-0a" };
	static const char find[] = "DescribeAutoScalingGroups&Filters.member.1.Name=tag%3Ateam&Filters.member.1."
				   "Values.member.1=ml&IncludeInstances=false&MaxRecords=100";
	static const char group[] = GROUP("0", "5", "1", HAS(SAFE("i-0a")) "");
	struct scene *s = *state;

	account_settle(s, BY_NAME);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, group, 0 }, ), ERROR_NONE);
	assert_false(s->call.description.is_refused);
	account_settle(s, "\"tags\":\"team=ml\"");
	assert_int_equal(
		RUN(s, CALL(.verb = PROVIDER_DESCRIBE, .group = "h"), { find, group, 0 }, { READ, group, 0 }, ),
		ERROR_NONE);
	assert_true(s->call.description.is_refused);
	assert_non_null(strstr(s->call.description.lacks, "group a is node group g's, too"));
	for (enum provider_verb verb = PROVIDER_GROW; verb <= PROVIDER_CANCEL; verb++)
		assert_int_equal(RUN(s, CALL(.verb = verb, .group = "h", .desired = 3, .ids = ids, .id_count = 1),
				     { READ, group, 0 }, ),
				 ERROR_INVALID);
	account_settle(s, BY_NAME);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_GROW, .desired = 3), { READ, group, 0 }, { SIZE("3"), "", 0 }, ),
			 ERROR_NONE);
}

static void groups_of_cluster_autoscaler_are_left_alone(void **state)
{
	static const enum provider_verb verbs[] = { PROVIDER_GROW, PROVIDER_REMOVE, PROVIDER_STOP, PROVIDER_STANDBY,
						    PROVIDER_CANCEL };
	static const char *const ids[] = { "i-0a" };
	struct scene *s = *state;

	account_settle(s, BY_NAME);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(RUN(s, CALL(.verb = verbs[i], .desired = 3, .ids = ids, .id_count = 1),
				     { READ, GROUP("0", "5", "1", HAS(IN("i-0a")) TAGS), 0 }, ),
				 ERROR_INVALID);
		assert_non_null(strstr(s->call.error.message, "eks.clusterAutoscalerTags: ignore"));
	}
	assert_int_equal(
		RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, GROUP("0", "5", "1", HAS(SAFE("i-0a")) TAGS), 0 }, ),
		ERROR_NONE);
	assert_non_null(strstr(s->call.description.lacks, "clusterAutoscalerTags"));
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_GROW, .desired = 3),
			     { READ, GROUP("0", "5", "1", TEMPLATE_TAGS), 0 }, { SIZE("3"), "", 0 }, ),
			 ERROR_NONE);
	account_settle(s, BY_NAME ",\"clusterAutoscalerTags\":\"ignore\"");
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_GROW, .desired = 3), { READ, GROUP("0", "5", "1", TAGS), 0 },
			     { SIZE("3"), "", 0 }, ),
			 ERROR_NONE);
}

static void removing_protects_the_others_first(void **state)
{
	static const char *const ids[] = { "i-0a", "i-0c", "i-0gone", "i-0t", "i-0a" }, *const others[] = { "i-0e",
													    "i-0f" };
	struct scene *s = *state;

	account_settle(s, BY_NAME);
	assert_int_equal(
		RUN(s, CALL(.verb = PROVIDER_REMOVE, .ids = ids, .id_count = 5),
		    { READ,
		      GROUP("1", "5", "4",
			    HAS(IN("i-0a") IN("i-0b") SAFE("i-0c") PENDING("i-0d")
					INSTANCE("i-0t", "Terminating:Wait", "false"))),
		      0 },
		    { PROTECT(ID("1", "i-0b")), "", 0 }, { END("i-0a"), "", 0 },
		    { END("i-0c"), "ValidationError:Instance Id not found - No managed instance found", 400 }, ),
		ERROR_NONE);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_REMOVE, .ids = others, .id_count = 2),
			     { READ, GROUP("1", "5", "2", HAS(IN("i-0e") IN("i-0f"))), 0 }, ),
			 ERROR_INVALID);
	assert_non_null(strstr(s->call.error.message, "below MinSize 1"));
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_REMOVE, .ids = ids + 2, .id_count = 1),
			     { READ, GROUP("1", "5", "2", ""), 0 }, ),
			 ERROR_NONE);
}

/* Half done is told, with what was; again, on a read of before, the rest alone is ended. */
static void what_ends_is_not_ended_again(void **state)
{
	static const char *const ids[] = { "i-0a", "i-0b", "i-0c" };
	struct scene *s = *state;

	account_settle(s, BY_NAME);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_REMOVE, .ids = ids, .id_count = 3, .size = 3),
			     { READ, GROUP("0", "5", "3", HAS(SAFE("i-0a") SAFE("i-0b") SAFE("i-0c"))), 0 },
			     { END("i-0a"), "", 0 }, { END("i-0b"), "ScalingActivityInProgress:busy", 400 }, ),
			 ERROR_CONFLICT);
	assert_non_null(
		strstr(s->call.error.message, "TerminateInstanceInAutoScalingGroup: ScalingActivityInProgress: busy"));
	assert_int_equal(s->call.ended_count, 1);
	assert_string_equal(s->call.ended[0], "i-0a");
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_REMOVE, .ids = ids, .id_count = 3, .size = 3),
			     { READ, GROUP("0", "5", "3", HAS(SAFE("i-0a") SAFE("i-0b") SAFE("i-0c"))), 0 },
			     { END("i-0b"), "InternalFailure:who knows", 500 }, ),
			 ERROR_UNAVAILABLE);
	assert_int_equal(s->call.ended_count, 1);
	assert_string_equal(s->call.ended[0], "i-0b");
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_REMOVE, .ids = ids, .id_count = 3, .size = 3),
			     { READ, GROUP("0", "5", "3", HAS(SAFE("i-0a") SAFE("i-0b") SAFE("i-0c"))), 0 },
			     { END("i-0c"), "ResourceContention:pending update", 500 }, ), /* a refusal */
			 ERROR_UNAVAILABLE);
	assert_int_equal(s->call.ended_count, 0);
	/* those that end are protected no more */
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_REMOVE, .ids = ids, .id_count = 3, .size = 3),
			     { READ, GROUP("0", "5", "3", HAS(IN("i-0a") SAFE("i-0b") SAFE("i-0c"))), 0 },
			     { END("i-0c"), "", 0 }, ),
			 ERROR_NONE);
	assert_int_equal(s->call.ended_count, 0);
}

/* Auto Scaling ends as many for them, and each that is named would lower it once more. */
static void a_size_that_others_lowered_is_not_lowered_again(void **state)
{
	static const enum provider_verb verbs[] = { PROVIDER_REMOVE, PROVIDER_CANCEL };
	static const char *const ids[] = { "i-0p", "i-0t" };
	struct scene *s = *state;

	account_settle(s, BY_NAME);
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
		assert_int_equal(
			RUN(s, CALL(.verb = verbs[i], .ids = ids, .id_count = 1, .size = 3, .desired = 2),
			    { READ, GROUP("0", "5", "2", HAS(SAFE("i-0a") SAFE("i-0b") PENDING("i-0p"))), 0 }, ),
			ERROR_CONFLICT);
		assert_true(s->call.is_outdated);
		assert_non_null(
			strstr(s->call.error.message, "it has 2 machines by now, and had 3 when fewer were decided"));
	}
	/* one of those named went with the size before */
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_REMOVE, .ids = ids, .id_count = 2, .size = 3),
			     { READ,
			       GROUP("0", "5", "2",
				     HAS(SAFE("i-0a") PENDING("i-0p") INSTANCE("i-0t", "Terminating:Wait", "false"))),
			       0 },
			     { END("i-0p"), "", 0 }, ),
			 ERROR_NONE);
	assert_false(s->call.is_outdated);
}

static void removing_leaves_the_warm_pool_as_it_is(void **state)
{
	static const char *const ids[] = { "i-0a", "i-0b", "i-0c" }, *const standing[] = { "i-0w" };
	struct scene *s = *state;

	account_settle(s, BY_NAME);
	/* two stand by; with a size of 2 they still would */
	assert_int_equal(
		RUN(s, CALL(.verb = PROVIDER_REMOVE, .ids = ids, .id_count = 1),
		    { READ, GROUP("0", "9", "3", HAS(SAFE("i-0a") SAFE("i-0b") SAFE("i-0c")) POOL("0", "5")), 0 },
		    { PUT("2", "4"), "", 0 }, { END("i-0a"), "", 0 }, ),
		ERROR_NONE);
	assert_int_equal(
		RUN(s, CALL(.verb = PROVIDER_REMOVE, .ids = ids + 1, .id_count = 1),
		    { READ, GROUP("0", "9", "3", HAS(SAFE("i-0a") SAFE("i-0b") SAFE("i-0c")) POOL("0", "3")), 0 },
		    { PUT("0", "0"), "", 0 }, { END("i-0b"), "", 0 }, ),
		ERROR_NONE);
	assert_int_equal(
		RUN(s, CALL(.verb = PROVIDER_REMOVE, .ids = ids + 2, .id_count = 1),
		    { READ, GROUP("0", "9", "3", HAS(SAFE("i-0a") SAFE("i-0b") SAFE("i-0c")) POOL("2", "2")), 0 },
		    { END("i-0c"), "", 0 }, ),
		ERROR_NONE);
	/* one that stands by cannot be named */
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_REMOVE, .ids = standing, .id_count = 1),
			     { READ, GROUP("0", "9", "1", HAS(SAFE("i-0a")) POOL("0", "2")), 0 },
			     { "DescribeWarmPool&AutoScalingGroupName=a",
			       HAS(INSTANCE("i-0w", "Warmed:Stopped", "false")), 0 }, ),
			 ERROR_INVALID);
	assert_non_null(strstr(s->call.error.message, "in the warm pool"));
}

static void cancelling_reads_again_before_it_lowers(void **state)
{
	static const char *const ids[] = { "i-0p", "i-0a" };
	struct scene *s = *state;

	account_settle(s, BY_NAME);
	/* while it protects, Auto Scaling got one of the two that were missing: it stays */
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_CANCEL, .desired = 1),
			     { READ, GROUP("0", "9", "3", HAS(IN("i-0a"))), 0 }, { PROTECT(ID("1", "i-0a")), "", 0 },
			     { READ, GROUP("0", "9", "3", HAS(SAFE("i-0a") IN("i-0n"))), 0 },
			     { PROTECT(ID("1", "i-0n")), "", 0 }, { SIZE("2"), "", 0 }, ),
			 ERROR_NONE);
	/* it got both: nothing is lowered */
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_CANCEL, .desired = 1),
			     { READ, GROUP("0", "9", "2", HAS(SAFE("i-0a"))), 0 },
			     { READ, GROUP("0", "9", "2", HAS(SAFE("i-0a") PENDING("i-0n"))), 0 }, ),
			 ERROR_NONE);
	/* named: what is starting ends, what runs stays */
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_CANCEL, .ids = ids, .id_count = 2, .desired = 1),
			     { READ, GROUP("0", "9", "2", HAS(SAFE("i-0a") PENDING("i-0p"))), 0 },
			     { END("i-0p"), "", 0 }, { READ, GROUP("0", "9", "1", HAS(SAFE("i-0a"))), 0 }, ),
			 ERROR_NONE);
	/* never below what is there, the least size, or the wish; nothing to give up: nothing is sent */
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_CANCEL, .desired = 0),
			     { READ, GROUP("0", "9", "1", HAS(IN("i-0a"))), 0 }, ),
			 ERROR_NONE);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_CANCEL, .desired = 0),
			     { READ, GROUP("2", "9", "2", HAS(IN("i-0a"))), 0 }, ),
			 ERROR_NONE);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_CANCEL, .desired = 5),
			     { READ, GROUP("0", "9", "3", HAS(IN("i-0a"))), 0 }, ),
			 ERROR_NONE);
}

static void protection_goes_by_fifty(void **state)
{
	CLEANUP(buf_release) struct buf group = { 0 }, first = { 0 }, second = { 0 };
	static const char *const ids[] = { "i-000" };
	struct scene *s = *state;

	buf_text(&group, "<AutoScalingGroups><member><AutoScalingGroupName>a</AutoScalingGroupName><MinSize>0</"
			 "MinSize><MaxSize>90"
			 "</MaxSize><DesiredCapacity>71</DesiredCapacity><Instances>");
	for (int i = 0; i < 71; i++)
		buf_printf(&group, IN("i-%03d"), i);
	buf_text(&group, "</Instances></member></AutoScalingGroups>");
	buf_text(&first, "SetInstanceProtection&AutoScalingGroupName=a");
	buf_text(&second, "SetInstanceProtection&AutoScalingGroupName=a");
	for (int i = 1; i < 71; i++)
		buf_printf(i <= 50 ? &first : &second, "&InstanceIds.member.%d=i-%03d", i <= 50 ? i : i - 50, i);
	buf_text(&first, "&ProtectedFromScaleIn=true");
	buf_text(&second, "&ProtectedFromScaleIn=true");
	account_settle(s, BY_NAME);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_REMOVE, .ids = ids, .id_count = 1), { READ, group.text, 0 },
			     { first.text, "", 0 }, { second.text, "", 0 }, { END("i-000"), "", 0 }, ),
			 ERROR_NONE);
}

static void credentials_that_ended_are_fetched_anew_once(void **state)
{
	struct scene *s = *state;

	account_settle(s, BY_NAME);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE),
			     { READ, "ExpiredToken:The security token is expired", 403 },
			     { READ, GROUP("0", "5", "1", HAS(SAFE("i-0a")) ""), 0 }, ),
			 ERROR_NONE);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE),
			     { READ, "ExpiredToken:The security token is expired", 403 },
			     { READ, "ExpiredToken:The security token is expired", 403 }, ),
			 ERROR_AUTH);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, "SignatureDoesNotMatch:no", 403 }, ),
			 ERROR_AUTH);
}

#define LOWERED(by, from, to)                                                                                    \
	"<Activities><member><ActivityId>a1</ActivityId><StatusCode>Successful</StatusCode><StartTime>2099-01-"  \
	"01T00:00:00Z</StartTime><Cause>At 2099-01-01T00:00:00Z " by " changing the desired capacity from " from \
	" to " to ".</Cause></member></Activities>"
#define OF_TWO	 GROUP("0", "5", "2", HAS(SAFE("i-0a") SAFE("i-0b")))
#define OF_ONE	 GROUP("0", "5", "1", HAS(SAFE("i-0a")))
#define A_POLICY "a monitor alarm A in state ALARM triggered policy P"

/* Asked once, and a few times where it is not told yet; it is known then until they size it again. */
static void whoever_resizes_a_group_is_asked_for_once(void **state)
{
	struct scene *s = *state;
	const char *const *by = &s->call.description.resized_by;

	account_settle(s, BY_NAME);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, OF_TWO, 0 }, ), ERROR_NONE);
	assert_string_equal(*by, "");
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, OF_ONE, 0 }, { ACTIVITIES, NONE, 0 }, ),
			 ERROR_NONE);
	assert_string_equal(*by, "");
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, OF_ONE, 0 },
			     { ACTIVITIES, LOWERED(A_POLICY, "2", "1"), 0 }, ),
			 ERROR_NONE);
	assert_string_equal(*by, "scaling policy P through its alarm A");
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, OF_ONE, 0 }, ), ERROR_NONE);
	assert_string_equal(*by, "scaling policy P through its alarm A");
	for (int i = 0; i < 3; i++)
		assert_int_equal(
			RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, OF_TWO, 0 }, { ACTIVITIES, NONE, 0 }, ),
			ERROR_NONE);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, OF_TWO, 0 }, ), ERROR_NONE);
	assert_string_equal(*by, "");
}

/* Our own calls are user requests, too. */
static void what_we_resized_is_nobody_elses(void **state)
{
	struct scene *s = *state;

	account_settle(s, BY_NAME);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, OF_ONE, 0 }, ), ERROR_NONE);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_GROW, .desired = 2), { READ, OF_ONE, 0 }, { SIZE("2"), "", 0 }, ),
			 ERROR_NONE);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, OF_ONE, 0 }, ), ERROR_NONE); /* lagging */
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, OF_TWO, 0 }, ), ERROR_NONE);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_REMOVE, .ids = (const char *const[]){ "i-0b" }, .id_count = 1),
			     { READ, OF_TWO, 0 }, { END("i-0b"), "", 0 }, ),
			 ERROR_NONE);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, OF_ONE, 0 }, ), ERROR_NONE);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, OF_TWO, 0 },
			     { ACTIVITIES, LOWERED("a user request", "1", "2"), 0 }, ),
			 ERROR_NONE);
	assert_string_equal(s->call.description.resized_by, "a user request");
}

#define REFRESHES_ASKED "DescribeInstanceRefreshes&AutoScalingGroupName=a&MaxRecords=1"
#define NO_REFRESH	"<InstanceRefreshes/>"
#define HOOKS_ASKED	"DescribeLifecycleHooks&AutoScalingGroupName=a"
#define HALF_AN_HOUR                                                                        \
	"<LifecycleHooks><member><LifecycleTransition>autoscaling:EC2_INSTANCE_TERMINATING" \
	"</LifecycleTransition><HeartbeatTimeout>1800</HeartbeatTimeout></member></LifecycleHooks>"
#define ENDING GROUP("0", "5", "1", HAS(IN("i-0a") INSTANCE("i-0b", "Terminating:Wait", "false")))

/* When a machine ends there, and not at every look then. */
static void hooks_are_asked_for_once_a_machine_ends(void **state)
{
	struct scene *s = *state;

	account_settle(s, BY_NAME);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, GROUP("0", "5", "1", HAS(IN("i-0a"))), 0 }, ),
			 ERROR_NONE);
	assert_int_equal(s->call.description.end_hold, 0);
	assert_int_equal(
		RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, ENDING, 0 }, { HOOKS_ASKED, HALF_AN_HOUR, 0 }, ),
		ERROR_NONE);
	assert_int_equal(s->call.description.end_hold, 30 * MINUTE);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE), { READ, ENDING, 0 }, ), ERROR_NONE);
	assert_int_equal(s->call.description.end_hold, 30 * MINUTE);
}

static void a_hook_that_holds_launches_is_told(void **state)
{
	struct scene *s = *state;

	account_settle(s, BY_NAME);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE, .in_full = true),
			     { READ, GROUP("0", "5", "1", HAS(IN("i-0a"))), 0 },
			     { HOOKS_ASKED,
			       "<LifecycleHooks><member><LifecycleTransition>autoscaling:EC2_INSTANCE_LAUNCHING"
			       "</LifecycleTransition><HeartbeatTimeout>2400</HeartbeatTimeout><DefaultResult>CONTINUE"
			       "</DefaultResult></member></LifecycleHooks>",
			       0 },
			     { REFRESHES_ASKED, NO_REFRESH, 0 }, ),
			 ERROR_NONE);
	const struct group_description *d = &s->call.description;
	assert_non_null(strstr(d->cautions[d->caution_count - 1], "holds machines that start until its owner completes "
								  "it, for 2400 s at most"));
}

/* A person who looks is told in any case. Nobody else fails for what they may not ask, or cannot understand. */
static void what_hooks_do_not_tell_is_not_known(void **state)
{
	static const struct {
		const char *rest, *answer;
		int status;
		enum error_kind kind;
	} cases[] = {
		{ "", "AccessDenied:no", 403, ERROR_NONE },
		{ ",\"region\":\"eu-west-1\"", "<LifecycleHooks><member/></LifecycleHooks>", 0, ERROR_NONE },
		{ ", \"region\":\"eu-west-1\"", "Throttling:Rate exceeded", 400, ERROR_THROTTLED },
	};
	struct scene *s = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char settings[100];
		snprintf(settings, sizeof settings, BY_NAME "%s", cases[i].rest);
		account_settle(s, settings);
		assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE, .in_full = true),
				     { READ, GROUP("0", "5", "1", HAS(IN("i-0a"))), 0 },
				     { HOOKS_ASKED, cases[i].answer, cases[i].status },
				     { cases[i].kind == ERROR_NONE ? REFRESHES_ASKED : NULL, NO_REFRESH, 0 }, ),
				 cases[i].kind);
		assert_int_equal(s->call.description.end_hold, 0);
	}
}

/* Likewise: it is asked for where a person looks, and told as a caution. */
static void a_person_is_told_of_an_instance_refresh(void **state)
{
	static const struct {
		const char *answer;
		int status;
		enum error_kind kind;
		bool is_told;
	} cases[] = {
		{ "<InstanceRefreshes><member><Status>InProgress</Status></member></InstanceRefreshes>", 0, ERROR_NONE,
		  true },
		{ "<InstanceRefreshes><member/></InstanceRefreshes>", 0, ERROR_NONE, false },
		{ "AccessDenied:no", 403, ERROR_NONE, false },
		{ "Throttling:Rate exceeded", 400, ERROR_THROTTLED, false },
	};
	struct scene *s = *state;

	account_settle(s, BY_NAME);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE, .in_full = true),
			     { READ, GROUP("0", "5", "1", HAS(IN("i-0a"))), 0 }, { HOOKS_ASKED, HALF_AN_HOUR, 0 },
			     { REFRESHES_ASKED, NO_REFRESH, 0 }, ),
			 ERROR_NONE);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(RUN(s, CALL(.verb = PROVIDER_DESCRIBE, .in_full = true),
				     { READ, GROUP("0", "5", "1", HAS(IN("i-0a"))), 0 },
				     { REFRESHES_ASKED, cases[i].answer, cases[i].status }, ),
				 cases[i].kind);
		bool is_told = false;
		for (size_t k = 0; k < s->call.description.caution_count; k++)
			is_told |=
				strstr(s->call.description.cautions[k], "an instance refresh is in progress") != NULL;
		assert_int_equal(is_told, cases[i].is_told);
	}
}

static const struct permission *permission_of(const struct scene *s, const char *action)
{
	for (size_t i = 0; i < s->call.permission_count; i++)
		if (strcmp(s->call.permissions[i].action, action) == 0)
			return &s->call.permissions[i];
	fail_msg("%s was not looked at", action);
	return NULL;
}

static void a_check_changes_nothing_and_tells_each_permission(void **state)
{
	static const char *const denied = "AccessDenied:User is not authorized";
	struct scene *s = *state;

	account_settle(s, BY_NODEGROUP);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_CHECK),
			     { "GetCallerIdentity", "<Arn>arn:aws:sts::1:assumed-role/preheat/x</Arn>", 0 },
			     { NODEGROUP, PLAIN, 0 }, { READ, GROUP("0", "5", "1", HAS(SAFE("i-0a")) ""), 0 },
			     { "DescribeScalingActivities&AutoScalingGroupName=a&MaxRecords=1", denied, 403 },
			     { "DescribeWarmPool&AutoScalingGroupName=a", "Throttling:Rate exceeded", 400 },
			     { HOOKS_ASKED, denied, 403 }, { REFRESHES_ASKED, denied, 403 },
			     { SIZE("-1"), "ValidationError:1 validation error", 400 },
			     { PROTECT(ID("1", "i-00000000000000000")),
			       "ValidationError:The instance is not part of the group", 400 },
			     { END("i-00000000000000000"), denied, 403 },
			     { "PutWarmPool&AutoScalingGroupName=a&MinSize=-1&MaxGroupPreparedCapacity=-2&PoolState="
			       "Stopped&InstanceReusePolicy."
			       "ReuseOnScaleIn=false",
			       denied, 403 },
			     { "POST /clusters/c/node-groups/n/update-config " MORE_AT_LEAST,
			       "InvalidParameterException:No changes needed", 400 },
			     { "GET /clusters/c/updates/00000000-0000-0000-0000-000000000000",
			       "ResourceNotFoundException:none", 404 }, ),
			 ERROR_NONE);
	assert_string_equal(s->call.identity, "arn:aws:sts::1:assumed-role/preheat/x");
	assert_int_equal(permission_of(s, "eks:DescribeNodegroup")->state, PERMISSION_GRANTED);
	assert_int_equal(permission_of(s, "autoscaling:DescribeScalingActivities")->state, PERMISSION_DENIED);
	assert_non_null(strstr(permission_of(s, "autoscaling:DescribeScalingActivities")->message, "not authorized"));
	assert_int_equal(permission_of(s, "autoscaling:DescribeWarmPool")->state, PERMISSION_UNKNOWN);
	assert_int_equal(permission_of(s, "autoscaling:SetDesiredCapacity")->state, PERMISSION_GRANTED);
	assert_int_equal(permission_of(s, "autoscaling:SetInstanceProtection")->state, PERMISSION_GRANTED);
	assert_int_equal(permission_of(s, "autoscaling:TerminateInstanceInAutoScalingGroup")->state,
			 PERMISSION_UNKNOWN);
	assert_int_equal(permission_of(s, "autoscaling:PutWarmPool")->state, PERMISSION_DENIED);
	assert_int_equal(permission_of(s, "eks:UpdateNodegroupConfig")->state, PERMISSION_GRANTED);
	assert_int_equal(permission_of(s, "eks:DescribeUpdate")->state, PERMISSION_GRANTED);
	/* without the group only what needs none can be asked */
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_CHECK),
			     { "GetCallerIdentity", "<Arn>arn:aws:iam::1:user/x</Arn>", 0 }, { NODEGROUP, denied, 403 },
			     { "POST /clusters/c/node-groups/n/update-config " MORE_AT_LEAST, denied, 403 },
			     { "GET /clusters/c/updates/00000000-0000-0000-0000-000000000000", denied, 403 }, ),
			 ERROR_NONE);
	assert_int_equal(permission_of(s, "autoscaling:SetDesiredCapacity")->state, PERMISSION_UNKNOWN);
	assert_int_equal(permission_of(s, "eks:UpdateNodegroupConfig")->state, PERMISSION_DENIED);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, account_set_up, account_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(eks_is_asked_once_for_the_group),
		TEST(what_may_be_over_soon_is_asked_again),
		TEST(tags_find_exactly_one_group),
		TEST(a_description_asks_for_what_it_needs),
		TEST(an_update_that_goes_on_is_busy),
		TEST(an_update_of_the_owner_is_found_when_the_size_moves),
		TEST(an_update_of_the_owner_is_found_when_a_machine_leaves),
		TEST(nothing_is_changed_during_an_update),
		TEST(an_update_that_began_just_now_is_found),
		TEST(a_size_that_fell_meanwhile_is_let),
		TEST(an_update_of_ours_is_nobody_elses),
		TEST(what_eks_says_is_wrong_is_told),
		TEST(where_images_lie_is_read_from_the_launch_template),
		TEST(what_a_launch_template_does_not_tell_is_not_assumed),
		TEST(the_end_of_a_capacity_block_is_read_from_its_reservation),
		TEST(a_capacity_block_of_ones_own_group_is_known_by_its_template),
		TEST(a_capacity_block_without_a_known_end_is_named),
		TEST(machines_are_protected_from_the_first_look_on),
		TEST(a_lower_size_of_the_owner_is_not_held_up),
		TEST(protection_is_lifted_from_what_is_ours_no_more),
		TEST(a_group_protects_what_is_new_where_it_may),
		TEST(a_group_of_eks_is_named_as_one),
		TEST(zones_that_are_balanced_are_told),
		TEST(a_group_that_protects_by_itself_is_told),
		TEST(growing_reads_first_and_protects_what_is_there),
		TEST(groups_of_an_operator_are_left_alone),
		TEST(groups_of_cluster_autoscaler_are_left_alone),
		TEST(a_group_of_two_names_is_changed_under_the_first),
		TEST(removing_protects_the_others_first),
		TEST(what_ends_is_not_ended_again),
		TEST(a_size_that_others_lowered_is_not_lowered_again),
		TEST(removing_leaves_the_warm_pool_as_it_is),
		TEST(cancelling_reads_again_before_it_lowers),
		TEST(protection_goes_by_fifty),
		TEST(credentials_that_ended_are_fetched_anew_once),
		TEST(whoever_resizes_a_group_is_asked_for_once),
		TEST(what_we_resized_is_nobody_elses),
		TEST(hooks_are_asked_for_once_a_machine_ends),
		TEST(a_hook_that_holds_launches_is_told),
		TEST(what_hooks_do_not_tell_is_not_known),
		TEST(a_person_is_told_of_an_instance_refresh),
		TEST(a_check_changes_nothing_and_tells_each_permission),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
