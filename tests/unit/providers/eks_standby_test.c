/* Warm pools: which requests stopping, standing by and launching send. */
#include "tests/unit/providers/played_account.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void stopping_lowers_the_size_when_only_those_named_can_go(void **state)
{
	static const char *const ids[] = { "i-0a", "i-0gone" };
	struct scene *s = *state;

	account_settle(s, BY_NAME);
	assert_int_equal(
		RUN(s, CALL(.verb = PROVIDER_STOP, .ids = ids, .id_count = 2),
		    { READ, GROUP("0", "9", "3", HAS(SAFE("i-0a") IN("i-0b") SAFE("i-0c")) POOL("0", "5")), 0 },
		    { PROTECT(ID("1", "i-0b")), "", 0 }, { UNPROTECT(ID("1", "i-0a")), "", 0 }, { SIZE("2"), "", 0 }, ),
		ERROR_NONE);
	/* a pool without room for it gets some first */
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_STOP, .ids = ids, .id_count = 1),
			     { READ, GROUP("0", "9", "2", HAS(IN("i-0a") SAFE("i-0b")) POOL("0", "0")), 0 },
			     { PUT("0", "2"), "", 0 }, { SIZE("1"), "", 0 }, ),
			 ERROR_NONE);
	static const char *const unsettled[] = { HAS(SAFE("i-0a") PENDING("i-0b")), HAS(SAFE("i-0a")),
						 HAS(SAFE("i-0a") INSTANCE("i-0b", "SomethingNew", "false")) };
	for (size_t i = 0; i < 3; i++) {
		CLEANUP(buf_release) struct buf group = { 0 };
		buf_printf(&group, GROUP("0", "9", "2", "%s" POOL("0", "5")), unsettled[i]);
		assert_int_equal(
			RUN(s, CALL(.verb = PROVIDER_STOP, .ids = ids, .id_count = 1), { READ, group.text, 0 }, ),
			ERROR_CONFLICT);
	}
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_STOP, .ids = ids, .id_count = 1),
			     { READ, GROUP("1", "9", "1", HAS(SAFE("i-0a")) POOL("0", "5")), 0 }, ),
			 ERROR_INVALID);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_STOP, .ids = ids, .id_count = 1),
			     { READ, GROUP("0", "9", "1", HAS(SAFE("i-0a"))), 0 }, ),
			 ERROR_INVALID);
	assert_non_null(strstr(s->call.error.message, "no warm pool"));
	/* a read of before another went */
	assert_int_equal(
		RUN(s, CALL(.verb = PROVIDER_STOP, .ids = ids, .id_count = 1, .size = 2, .desired = 1),
		    { READ, GROUP("0", "9", "3", HAS(IN("i-0a") SAFE("i-0b") SAFE("i-0c")) POOL("0", "5")), 0 }, ),
		ERROR_CONFLICT);
	assert_non_null(strstr(s->call.error.message, "2 machines left, and 1 were decided"));
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_STOP, .ids = ids + 1, .id_count = 1),
			     { READ, GROUP("0", "9", "1", POOL("0", "5")), 0 }, ),
			 ERROR_NONE);
}

static void standby_is_sized_where_the_pool_is(void **state)
{
	struct scene *s = *state;

	account_settle(s, BY_NAME);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_STANDBY, .desired = 2, .size = 3),
			     { READ, GROUP("0", "9", "3", POOL("0", "3")), 0 }, { PUT("0", "5"), "", 0 }, ),
			 ERROR_NONE);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_STANDBY, .desired = 0, .size = 3),
			     { READ, GROUP("0", "9", "3", POOL("0", "5")), 0 }, { PUT("0", "0"), "", 0 }, ),
			 ERROR_NONE);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_STANDBY, .desired = 2, .size = 3),
			     { READ, GROUP("0", "9", "3", POOL("0", "5")), 0 }, ),
			 ERROR_NONE);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_STANDBY, .desired = 2, .size = 3),
			     { READ, GROUP("0", "9", "3", ""), 0 }, ),
			 ERROR_INVALID);
	/* An old read: a machine more than when it was decided. */
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_STANDBY, .desired = 2, .size = 2),
			     { READ, GROUP("0", "9", "3", POOL("0", "3")), 0 }, ),
			 ERROR_CONFLICT);
	account_settle(s, BY_NAME ",\"warmPool\":\"autoScalingGroup\"");
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_STANDBY, .desired = 2, .size = 3),
			     { READ, GROUP("0", "9", "3", ""), 0 }, { PUT("0", "5"), "", 0 }, ),
			 ERROR_NONE);
	account_settle(s, BY_NODEGROUP);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_STANDBY, .desired = 2, .size = 3), { NODEGROUP, OWNED, 0 },
			     { READ, GROUP("0", "9", "3", POOL("0", "3")), 0 },
			     { CONFIG("5"), UPDATE("InProgress"), 0 }, ),
			 ERROR_NONE);
	assert_string_equal(s->call.operation, "u1");
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_STANDBY, .desired = 2, .size = 3), { NODEGROUP, OWNED, 0 },
			     { READ, GROUP("0", "9", "3", POOL("0", "3")), 0 },
			     { CONFIG("5"), "ResourceInUseException", 409 }, ),
			 ERROR_CONFLICT);
}

static void a_pool_that_eks_owns_follows_later(void **state)
{
	static const char *const ids[] = { "i-0a", "i-0c" };
	struct scene *s = *state;

	account_settle(s, BY_NODEGROUP);
	assert_int_equal(
		RUN(s, CALL(.verb = PROVIDER_REMOVE, .ids = ids + 1, .id_count = 1), { NODEGROUP, OWNED, 0 },
		    { READ, GROUP("0", "9", "3", HAS(SAFE("i-0a") SAFE("i-0b") SAFE("i-0c")) POOL("0", "5")), 0 },
		    { END("i-0c"), "", 0 }, { CONFIG("4"), "ResourceInUseException", 409 }, ),
		ERROR_NONE);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_STOP, .ids = ids, .id_count = 1),
			     { READ, GROUP("0", "9", "2", HAS(SAFE("i-0a") SAFE("i-0b")) POOL("0", "0")), 0 },
			     { NODEGROUP, OWNED, 0 }, /* the size moved */
			     { CONFIG("2"), UPDATE("InProgress"), 0 }, ),
			 ERROR_CONFLICT);
	assert_string_equal(s->call.operation, "u1");
}

#define LAUNCH(n, zone, token)                                                              \
	"LaunchInstances&AutoScalingGroupName=a&RequestedCapacity=" n "&ClientToken=" token \
	"&AvailabilityZones.member.1=" zone "&RetryStrategy=none"
#define ZONES "<AvailabilityZones><member>z1</member><member>z2</member></AvailabilityZones>"
#define SHORT                                                                                                        \
	"<Errors><member><InstanceType>p5.48xlarge</InstanceType><AvailabilityZone>z1</AvailabilityZone><ErrorCode>" \
	"InsufficientInstanceCapacity</ErrorCode><ErrorMessage>none here</ErrorMessage></member></Errors>"
#define GOT(ids) "<Instances><member><InstanceIds>" ids "</InstanceIds></member></Instances>"

static void launching_goes_from_zone_to_zone(void **state)
{
	struct scene *s = *state;

	account_settle(s, BY_NAME ",\"launch\":\"instances\"");
	assert_int_equal(
		RUN(s, CALL(.verb = PROVIDER_GROW, .desired = 4), { READ, GROUP("0", "9", "1", ZONES), 0 },
		    { LAUNCH("2", "z2", "token-1-0-3"), GOT("<member>i-1</member>") SHORT, 0 },
		    { LAUNCH("2", "z1", "token-1-1-2"), GOT("<member>i-2</member><member>i-3</member>"), 0 }, ),
		ERROR_NONE);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_GROW, .desired = 3), { READ, GROUP("0", "9", "1", ZONES), 0 },
			     { LAUNCH("1", "z1", "token-1-0-2"), SHORT, 0 },
			     { LAUNCH("2", "z2", "token-1-1-2"), GOT("<member>i-2</member>"), 0 }, ),
			 ERROR_STOCKOUT);
	assert_non_null(
		strstr(s->call.error.message, "1 of 2 machines were not launched: z1 p5.48xlarge: Insufficient"));
	/* what stands by goes first, and that only Auto Scaling does */
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_GROW, .desired = 3),
			     { READ, GROUP("0", "9", "1", ZONES POOL("0", "3")), 0 }, { SIZE("3"), "", 0 }, ),
			 ERROR_NONE);
}

/* As Auto Scaling spreads what it launches; what a zone at the end lacks the first one has. */
static void launches_are_spread_over_zones(void **state)
{
	struct scene *s = *state;

	account_settle(s, BY_NAME ",\"launch\":\"instances\"");
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_GROW, .desired = 3), { READ, GROUP("0", "9", "1", ZONES), 0 },
			     { LAUNCH("1", "z1", "token-1-0-2"), GOT("<member>i-1</member>"), 0 },
			     { LAUNCH("1", "z2", "token-1-1-1"), GOT("<member>i-2</member>"), 0 }, ),
			 ERROR_NONE);
	assert_int_equal(RUN(s, CALL(.verb = PROVIDER_GROW, .desired = 3), { READ, GROUP("0", "9", "1", ZONES), 0 },
			     { LAUNCH("1", "z1", "token-1-0-2"), GOT("<member>i-1</member>"), 0 },
			     { LAUNCH("1", "z2", "token-1-1-1"), SHORT, 0 },
			     { LAUNCH("1", "z1", "token-1-2-1"), GOT("<member>i-2</member>"), 0 }, ),
			 ERROR_NONE);
}

/* Of a group with a long name, too: the number at the end tells two purchases of one second apart. */
static void two_purchases_never_have_one_token(void **state)
{
	struct scene *s = *state;

	account_settle(s, BY_NAME ",\"launch\":\"instances\"");
	for (int i = 1; i <= 2; i++)
		assert_int_equal(
			RUN(s,
			    CALL(.verb = PROVIDER_GROW, .desired = 2,
				 .token = i == 1 ? "preheat-1234-12345678-inference-on-h100-spot-a-0001"
						 : "preheat-1234-12345678-inference-on-h100-spot-a-0002"),
			    { READ, GROUP("0", "9", "1", ZONES), 0 },
			    { i == 1 ? LAUNCH("1", "z2", "heat-1234-12345678-inference-on-h100-spot-a-0001-0-1")
				     : LAUNCH("1", "z2", "heat-1234-12345678-inference-on-h100-spot-a-0002-0-1"),
			      GOT("<member>i-1</member>"), 0 }, ),
			ERROR_NONE);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, account_set_up, account_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(stopping_lowers_the_size_when_only_those_named_can_go),
		TEST(standby_is_sized_where_the_pool_is),
		TEST(a_pool_that_eks_owns_follows_later),
		TEST(launching_goes_from_zone_to_zone),
		TEST(launches_are_spread_over_zones),
		TEST(two_purchases_never_have_one_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
