/* An agent pool goes back as it came, but for its size; machines, operations, roles and budgets are read as told. */
#include "providers/azure/arm.h"
#include "providers/azure/answer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define READ_ONLY_TOP "\"id\":\"/x\",\"name\":\"gpu1\",\"type\":\"T\",\"systemData\":{\"createdBy\":\"me\"}"

static void a_pool_goes_back_as_it_came(void **state)
{
	static const struct {
		const char *text, *body;
	} cases[] = {
		{ "{" READ_ONLY_TOP ",\"properties\":{\"eTag\":\"e1\",\"count\":2,\"vmSize\":\"S\",\"mode\":\"User\","
		  "\"provisioningState\":\"Succeeded\"}}",
		  "{\"properties\":{\"count\":7,\"vmSize\":\"S\",\"mode\":\"User\"}}" },
		/* what nobody knows, numbers as they were written, escapes, nothing, empty, deep, a count of something
		   else */
		{ "{ \"properties\" : "
		  "{\"future\":{\"count\":1,\"status\":null,\"eTag\":1e-7,\"id\":9007199254740993},\"count\":2,"
		  "\"a\":[],\"b\":{},\"c\":[[{\"count\":3}],true,false,null,\"\"],\"spotMaxPrice\":-1.50,"
		  "\"t\":\"\\u00e9\\\"\\\\\\n\\u0000\",\"nodeImageVersion\":\"v\",\"currentOrchestratorVersion\":\"1\","
		  "\"status\":{\"provisioningError\":{\"code\":\"x\"}},\"virtualMachineNodesStatus\":[{\"count\":2}],"
		  "\"localDNSProfile\":{\"mode\":\"Preferred\",\"state\":\"Enabled\"},\"type\":"
		  "\"VirtualMachineScaleSets\"},"
		  "\"tags\":{\"count\":\"2\"}}",
		  "{\"properties\":{\"future\":{\"count\":1,\"status\":null,\"eTag\":1e-7,\"id\":9007199254740993},"
		  "\"count\":7,"
		  "\"a\":[],\"b\":{},\"c\":[[{\"count\":3}],true,false,null,\"\"],\"spotMaxPrice\":-1.50,"
		  "\"t\":\"\303\251\\\"\\\\\\u000a\\u0000\",\"localDNSProfile\":{\"mode\":\"Preferred\"},"
		  "\"type\":\"VirtualMachineScaleSets\"},\"tags\":{\"count\":\"2\"}}" },
		{ "{\"properties\":{\"type\":\"VirtualMachines\",\"count\":2,\"virtualMachinesProfile\":{\"scale\":{"
		  "\"manual\":[{"
		  "\"size\":\"S\",\"count\":2}]}}}}",
		  "{\"properties\":{\"type\":\"VirtualMachines\",\"virtualMachinesProfile\":{\"scale\":{\"manual\":[{"
		  "\"size\":"
		  "\"S\",\"count\":7}]}}}}" },
		{ "{\"properties\":{\"eTag\":\"first\",\"count\":0}}", "{\"properties\":{\"count\":7}}" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(buf_release) struct buf body = { 0 };
		struct error e = { 0 };
		if (!azure_pool_write(cases[i].text, strlen(cases[i].text), 7, &body, &e))
			fail_msg("%zu: %s", i, e.message);
		assert_string_equal(body.text, cases[i].body);
	}
}

#define POOL(rest) "{\"name\":\"g\",\"properties\":{\"count\":3" rest "}}"

static void pools_that_are_not_ours_are_refused_with_a_remedy(void **state)
{
	static const struct {
		const char *text, *says; /* says NULL: ours */
	} cases[] = {
		{ POOL(""), NULL },
		{ POOL(",\"enableAutoScaling\":false,\"mode\":\"System\",\"osType\":\"Linux\""), NULL },
		{ POOL(",\"enableAutoScaling\":null,\"availabilityZones\":null,\"powerState\":null,"
		       "\"virtualMachinesProfile\":null"),
		  NULL },
		{ POOL(",\"enableAutoScaling\":true"), "--disable-cluster-autoscaler" },
		{ POOL(",\"osType\":\"Windows\""), "allowed: Linux" },
		{ POOL(",\"mode\":\"Gateway\""), "allowed: User, System" },
		{ POOL(",\"type\":\"AvailabilitySet\""), "allowed: VirtualMachineScaleSets" },
		{ POOL(",\"powerState\":{\"code\":\"Stopped\"}"), "nodepool start" },
		{ POOL(",\"type\":\"VirtualMachines\",\"virtualMachinesProfile\":{\"scale\":{\"manual\":[{\"size\":"
		       "\"A\",\"count\":"
		       "1},{\"size\":\"B\",\"count\":2}]}}"),
		  "2 machine sizes" },
		{ POOL(",\"type\":\"VirtualMachines\",\"virtualMachinesProfile\":{\"scale\":{\"autoscale\":{"
		       "\"minCount\":1}}}"),
		  "enableAutoScaling" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct azure_pool p;
		struct error e = { 0 };
		if (!azure_pool_read(cases[i].text, strlen(cases[i].text), &a, &p, &e))
			fail_msg("%zu: %s", i, e.message);
		bool is_ours = azure_pool_is_ours(&p, &e);
		if (is_ours != !cases[i].says || (cases[i].says && !strstr(e.message, cases[i].says)))
			fail_msg("%zu: %s", i, e.message);
	}
}

static void states_are_busy_unless_known_to_be_at_rest(void **state)
{
	static const struct {
		const char *state;
		bool is_busy;
	} cases[] = { { "Succeeded", false }, { "failed", false },   { "Canceled", false }, { "", false },
		      { "Updating", true },   { "Upgrading", true }, { "Scaling", true },   { "Dancing", true } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(azure_pool_is_busy(&(struct azure_pool){ .state = cases[i].state }), cases[i].is_busy);
}

static void pages_add_up(void **state)
{
	static const char first[] =
		"{\"value\":[{\"name\":\"a\",\"zones\":[\"2\"],\"properties\":{\"resourceId\":\"/r\","
		"\"provisioningState\":\"Creating\",\"status\":{\"creationTimestamp\":"
		"\"2026-11-01T00:00:00Z\",\"vmState\":\"Running\",\"new\":1},\"network\":{\"ipAddresses\":"
		"[{\"ip\":\"10.0.0.4\"}]}}}],\"nextLink\":\"https://next\"}";
	static const char second[] = "{\"value\":[{\"name\":\"b\",\"zones\":[],\"properties\":null}]}";
	CLEANUP(arena_release) struct arena a = { 0 };
	struct azure_machines list = { 0 };
	const char *next;
	struct error e = { 0 };

	(void)state;
	assert_true(azure_machines_read(first, strlen(first), &a, &list, &next, &e));
	assert_string_equal(next, "https://next");
	assert_true(azure_machines_read(second, strlen(second), &a, &list, &next, &e));
	assert_string_equal(next, "");
	assert_int_equal(list.count, 2);
	assert_string_equal(list.items[0].zone, "2");
	assert_string_equal(list.items[0].resource, "/r");
	assert_true(list.items[0].has_address && !list.items[1].has_address);
	assert_int_equal(list.items[0].created_at, 1793491200000);
	assert_string_equal(list.items[1].state, "");
	assert_false(azure_machines_read("{\"value\":[{\"name\":\"\"}]}", 23, &a, &list, &next, &e));
	assert_false(azure_machines_read("{}", 2, &a, &list, &next, &e));
}

static void operations_tell_how_they_went(void **state)
{
	static const struct {
		long status;
		const char *text;
		bool is_over, has_failed, has_problem;
	} cases[] = {
		{ 200, "{\"status\":\"InProgress\"}", false, false, false },
		{ 200, "{\"status\":\"Dancing\"}", false, false, false },
		{ 200, "{\"status\":\"Succeeded\",\"endTime\":\"2026-11-01T00:00:00Z\"}", true, false, false },
		{ 200, "{\"status\":\"Canceled\",\"error\":null}", true, false, false },
		{ 200, "{\"status\":\"Failed\",\"error\":{\"code\":\"x\"}}", true, true, true },
		{ 202, "", false, false, false },
		{ 204, "", true, false, false },
		{ 200, "", true, false, false },
		{ 200, "{\"properties\":{}}", true, false, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct azure_operation o;
		struct error e = { 0 };
		assert_true(azure_operation_read(cases[i].status, cases[i].text, strlen(cases[i].text), &a, &o, &e));
		if (o.is_over != cases[i].is_over || o.has_failed != cases[i].has_failed ||
		    (o.problem != NULL) != cases[i].has_problem)
			fail_msg("%zu", i);
		assert_false(azure_operation_read(200, "<html>", 6, &a, &o, &e));
	}
}

static void roles_allow_what_none_of_their_exceptions_takes(void **state)
{
	static const char read[] = "Microsoft.ContainerService/managedClusters/agentPools/read";
	static const struct {
		const char *text;
		bool is_allowed;
	} cases[] = {
		{ "[]", false },
		{ "[{\"actions\":[\"*\"],\"notActions\":[]}]", true },
		{ "[{\"actions\":[\"*/READ\"]}]", true },
		{ "[{\"actions\":[\"*/write\"]}]", false },
		{ "[{\"actions\":[\"microsoft.containerservice/*/agentpools/*\"],\"notActions\":null}]", true },
		{ "[{\"actions\":[\"*\"],\"notActions\":[\"Microsoft.ContainerService/*\"]}]", false },
		/* an exception of one role takes nothing from another */
		{ "[{\"actions\":[\"*\"],\"notActions\":[\"*/read\"]},{\"actions\":[\"*/agentPools/read\"]}]", true },
		{ "[{\"actions\":[\"Microsoft.ContainerService/managedClusters/agentPools/rea\"]}]", false },
		{ "[{\"actions\":[\"Microsoft.ContainerService/managedClusters/agentPools/read*\"]}]", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct azure_rights rights;
		struct error e = { 0 };
		char text[512];
		snprintf(text, sizeof text, "{\"value\":%s}", cases[i].text);
		assert_true(azure_rights_read(text, strlen(text), &a, &rights, &e));
		if (azure_rights_allow(&rights, read) != cases[i].is_allowed)
			fail_msg("%s", cases[i].text);
	}
}

static void a_budget_refills_by_the_minute(void **state)
{
	struct put_bucket b = { 0 };
	millis wait = 0, now = 7 * HOUR;

	(void)state;
	for (int i = 0; i < 20; i++)
		assert_true(put_bucket_take(&b, now, &wait));
	assert_false(put_bucket_take(&b, now, &wait));
	assert_int_equal(wait, MINUTE);
	assert_false(put_bucket_take(&b, now + 59 * SECOND, &wait));
	assert_int_equal(wait, SECOND);
	assert_true(put_bucket_take(&b, now + MINUTE, &wait));
	assert_false(put_bucket_take(&b, now + MINUTE, &wait));
	for (int i = 0; i < 20; i++)
		assert_true(put_bucket_take(&b, now + HOUR, &wait));
	assert_false(put_bucket_take(&b, now + HOUR, &wait));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pool_goes_back_as_it_came),
		cmocka_unit_test(pools_that_are_not_ours_are_refused_with_a_remedy),
		cmocka_unit_test(states_are_busy_unless_known_to_be_at_rest),
		cmocka_unit_test(pages_add_up),
		cmocka_unit_test(operations_tell_how_they_went),
		cmocka_unit_test(roles_allow_what_none_of_their_exceptions_takes),
		cmocka_unit_test(a_budget_refills_by_the_minute),
	};

	return cmocka_run_group_tests_name("azure_pool", tests, NULL, NULL);
}
