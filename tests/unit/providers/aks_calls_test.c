/* What provider aks sends to change a pool, request by request. */
#include "tests/unit/providers/played_arm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void growing_reads_and_writes_back(void **state)
{
	static const struct reply replies[] = {
		{ "GET", "/gpu1", 200, POOL("Succeeded", 2, ",\"new\":[1.50]"), { 0 }, 0 },
		{ "PUT", "/gpu1", 201, POOL("Updating", 3, ""), GOES_ON, 0 },
		{ 0 },
	};
	struct stage *s = *state;
	struct provider_call c = played_call(s, PROVIDER_GROW, 3);
	char operation[256];

	assert_int_equal(played_run(s, &c, replies), ERROR_NONE);
	played_expect(s, "GET gpu1, PUT gpu1");
	assert_string_equal(s->seen[1].path, POOL_PATH);
	assert_string_equal(s->seen[1].version, "2026-04-01");
	assert_string_equal(s->seen[1].match, "e1");
	assert_string_equal(s->seen[1].type, "application/json");
	assert_string_equal(s->seen[1].bearer, "Bearer token1");
	assert_string_equal(s->seen[1].body,
			    "{\"properties\":{\"count\":3,\"vmSize\":\"Standard_ND96isr_H100_v5\",\"mode\":"
			    "\"User\",\"new\":[1.50]}}");
	assert_string_equal(c.operation,
			    played_place(s, "@" OPERATION "?api-version=2017-08-31", operation, sizeof operation));
	provider_call_release(&c);
	/* no more than there is: nothing is written */
	c = played_call(s, PROVIDER_GROW, 1);
	assert_int_equal(played_run(s, &c, replies), ERROR_NONE);
	played_expect(s, "GET gpu1");
	provider_call_release(&c);
	/* one token serves them all */
	assert_int_equal(s->tokens, 1);
}

/* Between the look and the call somebody lowered it: nothing is sent. */
static void a_size_that_fell_meanwhile_is_let(void **state)
{
	static const struct reply replies[] = { { "GET", "/gpu1", 200, POOL("Succeeded", 0, ""), { 0 }, 0 }, { 0 } };
	struct stage *s = *state;
	struct provider_call c = played_call(s, PROVIDER_GROW, 4);

	c.change = 1;
	assert_int_equal(played_run(s, &c, replies), ERROR_CONFLICT);
	played_expect(s, "GET gpu1");
	assert_non_null(strstr(c.error.message, "looked at again first"));
	provider_call_release(&c);
}

static void growing_is_refused_where_it_must_be(void **state)
{
	static const struct {
		struct reply replies[3];
		enum error_kind kind;
		const char *sent;
	} cases[] = {
		{ { { "GET", "/gpu1", 200, POOL("Updating", 2, ""), { 0 }, 0 } }, ERROR_CONFLICT, "GET gpu1" },
		{ { { "GET", "/gpu1", 200, POOL("Succeeded", 2, ",\"enableAutoScaling\":true"), { 0 }, 0 } },
		  ERROR_INVALID,
		  "GET gpu1" },
		{ { { "GET", "/gpu1", 200, POOL("Succeeded", 2, ""), { 0 }, 0 },
		    { "PUT",
		      "/gpu1",
		      412,
		      "{\"error\":{\"code\":\"PreconditionFailed\",\"message\":\"etag\"}}",
		      { 0 },
		      0 } },
		  ERROR_CONFLICT,
		  "GET gpu1, PUT gpu1" },
		{ { { "GET", "/gpu1", 200, POOL("Succeeded", 2, ""), { 0 }, 0 },
		    { "PUT",
		      "/gpu1",
		      409,
		      "{\"code\":\"EtagMismatch\",\"details\":[{\"code\":\"Unspecified\",\"message\":\"x\"}]}",
		      { 0 },
		      0 } },
		  ERROR_CONFLICT,
		  "GET gpu1, PUT gpu1" },
		{ { { "GET", "/gpu1", 200, POOL("Succeeded", 2, ""), { 0 }, 0 },
		    { "PUT",
		      "/gpu1",
		      400,
		      "{\"code\":\"OperationNotAllowed\",\"message\":\"exceeding approved quota\"}",
		      { 0 },
		      0 } },
		  ERROR_QUOTA,
		  "GET gpu1, PUT gpu1" },
		{ { { "GET", "/gpu1", 500, "", { 0 }, 0 } }, ERROR_UNAVAILABLE, "GET gpu1" },
	};
	struct stage *s = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct provider_call c = played_call(s, PROVIDER_GROW, 3);
		if (played_run(s, &c, cases[i].replies) != cases[i].kind)
			fail_msg("%zu: %s", i, c.error.message);
		played_expect(s, cases[i].sent);
		provider_call_release(&c);
	}
}

/* AKS tries again when a pool that failed is asked for the same size. */
static void a_failed_pool_is_asked_again(void **state)
{
	static const struct reply replies[] = {
		{ "GET", "/gpu1", 200, POOL("Failed", 3, ""), { 0 }, 0 },
		{ "PUT", "/gpu1", 200, POOL("Succeeded", 3, ""), { 0 }, 0 },
		{ 0 },
	};
	struct stage *s = *state;
	struct provider_call c = played_call(s, PROVIDER_GROW, 3);

	assert_int_equal(played_run(s, &c, replies), ERROR_NONE);
	played_expect(s, "GET gpu1, PUT gpu1");
	assert_string_equal(c.operation, "");
	provider_call_release(&c);
}

static void removing_names_those_that_are_there(void **state)
{
	static const struct reply replies[] = {
		{ "GET", "/gpu1", 200, POOL("Succeeded", 3, ""), { 0 }, 0 },
		{ "GET",
		  "/machines",
		  200,
		  "{\"value\":[" MACHINE("a") "," MACHINE("b") "],\"nextLink\":\"@/next\"}",
		  { 0 },
		  0 },
		{ "GET", "/next", 200, "{\"value\":[" MACHINE("c") "]}", { 0 }, 0 },
		{ "POST", "/deleteMachines", 202, "", GOES_ON, 0 },
		{ 0 },
	};
	static const char *const ids[] = { "c", "never", "b", "c" };
	struct stage *s = *state;
	struct provider_call c = played_call(s, PROVIDER_REMOVE, 0);

	c.ids = ids;
	c.id_count = 4;
	assert_int_equal(played_run(s, &c, replies), ERROR_NONE);
	played_expect(s, "GET gpu1, GET machines, GET next, POST deleteMachines");
	assert_string_equal(s->seen[3].body, "{\"machineNames\":[\"c\",\"b\"]}");
	assert_string_equal(s->seen[3].match, "");
	assert_string_not_equal(c.operation, "");
	provider_call_release(&c);
	c = played_call(s, PROVIDER_REMOVE, 0);
	c.ids = ids + 1;
	c.id_count = 1;
	assert_int_equal(played_run(s, &c, replies), ERROR_NONE);
	played_expect(s, "GET gpu1, GET machines, GET next");
	provider_call_release(&c);
}

/* A page of somebody else's is not asked for, and an operation of somebody else's is not kept. */
static void the_token_goes_nowhere_else(void **state)
{
	static const struct reply page[] = {
		{ "GET", "/gpu1", 200, POOL("Succeeded", 3, ""), { 0 }, 0 },
		{ "GET",
		  "/machines",
		  200,
		  "{\"value\":[],\"nextLink\":\"https://management.azure.com/next\"}",
		  { 0 },
		  0 },
		{ 0 },
	};
	static const struct reply operation[] = {
		{ "GET", "/gpu1", 200, POOL("Succeeded", 2, ""), { 0 }, 0 },
		{ "PUT",
		  "/gpu1",
		  201,
		  "{}",
		  { "Azure-AsyncOperation: https://evil.example/", "Location: http://127.0.0.1/x" },
		  0 },
		{ "GET", "/machines", 200, "{\"value\":[]}", { 0 }, 0 },
		{ 0 },
	};
	struct stage *s = *state;
	struct provider_call c = played_call(s, PROVIDER_DESCRIBE, 0);

	assert_int_equal(played_run(s, &c, page), ERROR_INVALID);
	assert_non_null(strstr(c.error.message, "next page"));
	provider_call_release(&c);
	c = played_call(s, PROVIDER_GROW, 3);
	assert_int_equal(played_run(s, &c, operation), ERROR_NONE);
	assert_string_equal(c.operation, "");
	provider_call_release(&c);
	c = played_call(s, PROVIDER_DESCRIBE, 0);
	c.pending = "https://evil.example/operations/1";
	assert_int_equal(played_run(s, &c, operation), ERROR_NONE);
	played_expect(s, "GET gpu1, GET machines");
	provider_call_release(&c);
}

#define ADDRESS(name, ip) "{\"name\":\"" name "\",\"properties\":{\"network\":{\"ipAddresses\":[" ip "]}}}"
#define TWO_AND_ONE_COMING                                                                                          \
	"{\"value\":[" ADDRESS("a", "{\"ip\":\"10.0.0.4\"}") "," ADDRESS("b", "{\"ip\":\"10.0.0.5\"}") "," ADDRESS( \
		"c", "") "]}"

static void cancelling_aborts_waits_and_names_only_what_is_coming(void **state)
{
	static const struct reply replies[] = {
		{ "GET", "/gpu1", 200, POOL("Scaling", 5, ""), { 0 }, 1 },
		{ "POST", "/abort", 202, "", GOES_ON, 1 },
		{ "GET", "/gpu1", 200, POOL("Canceling", 5, ""), { 0 }, 1 },
		{ "GET", "/gpu1", 200, POOL("Canceled", 5, ",\"a\":1"), { 0 }, 0 },
		{ "GET", "/machines", 200, TWO_AND_ONE_COMING, { 0 }, 0 },
		{ "PUT", "/gpu1", 201, "{}", GOES_ON, 0 },
		{ 0 },
	};
	static const char *const ids[] = { "a", "b" };
	struct stage *s = *state;
	struct provider_call c = played_call(s, PROVIDER_CANCEL, 1);

	c.ids = ids;
	c.id_count = 2;
	c.timeout = MINUTE;
	assert_int_equal(played_run(s, &c, replies), ERROR_NONE);
	played_expect(s,
		      "GET gpu1, GET machines, POST abort, GET gpu1, GET machines, GET gpu1, GET machines, PUT gpu1");
	assert_non_null(strstr(s->seen[7].body, "\"count\":3"));
	provider_call_release(&c);
}

static void cancelling_deletes_what_is_coming_by_name(void **state)
{
#define COMING "{\"value\":[" MACHINE("a") ",{\"name\":\"b\",\"properties\":{\"provisioningState\":\"Creating\"}}]}"
#define LEFT   "{\"value\":[" MACHINE("a") "]}"
	static const struct reply replies[] = {
		{ "GET", "/gpu1", 200, POOL("Failed", 4, ""), { 0 }, 1 },
		{ "GET", "/machines", 200, COMING, { 0 }, 1 },
		{ "POST", "/deleteMachines", 202, "", GOES_ON, 0 },
		{ "GET", "/gpu1", 200, POOL("Succeeded", 3, ""), { 0 }, 0 },
		{ "GET", "/machines", 200, LEFT, { 0 }, 0 },
		{ "PUT", "/gpu1", 201, "{}", GOES_ON, 0 },
		{ 0 },
	};
	static const char *const ids[] = { "a", "b" };
	struct stage *s = *state;
	struct provider_call c = played_call(s, PROVIDER_CANCEL, 0);

	c.ids = ids;
	c.id_count = 2;
	assert_int_equal(played_run(s, &c, replies), ERROR_NONE);
	played_expect(s, "GET gpu1, GET machines, POST deleteMachines, GET gpu1, GET machines, PUT gpu1");
	assert_string_equal(s->seen[2].body, "{\"machineNames\":[\"b\"]}");
	assert_non_null(strstr(s->seen[5].body, "\"count\":1"));
	provider_call_release(&c);
}

static void cancelling_nothing_disturbs_nothing(void **state)
{
	static const struct {
		const char *pool;
		enum error_kind kind;
	} cases[] = {
		{ POOL("Updating", 2, ""), ERROR_NONE },
		{ POOL("Succeeded", 2, ""), ERROR_NONE },
		{ POOL("Upgrading", 5, ""), ERROR_CONFLICT }, /* not ours to end */
	};
	struct stage *s = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct reply replies[] = {
			{ "GET", "/gpu1", 200, cases[i].pool, { 0 }, 0 },
			{ "GET", "/machines", 200, "{\"value\":[" MACHINE("a") "," MACHINE("b") "]}", { 0 }, 0 },
			{ 0 },
		};
		struct provider_call c = played_call(s, PROVIDER_CANCEL, 0);
		assert_int_equal(played_run(s, &c, replies), cases[i].kind);
		played_expect(s, "GET gpu1, GET machines");
		provider_call_release(&c);
	}
}

/* Nothing is too many, and the operation that never ends is in the way. */
static void cancelling_ends_the_operation_that_is_named(void **state)
{
	static const struct reply replies[] = {
		{ "GET", "/gpu1", 200, POOL("Scaling", 2, ""), { 0 }, 1 },
		{ "POST", "/abort", 202, "", GOES_ON, 1 },
		{ "GET", "/gpu1", 200, POOL("Canceled", 2, ""), { 0 }, 0 },
		{ "GET", "/machines", 200, "{\"value\":[" MACHINE("a") "," MACHINE("b") "]}", { 0 }, 0 },
		{ 0 },
	};
	struct stage *s = *state;
	struct provider_call c = played_call(s, PROVIDER_CANCEL, 2);

	c.pending = "https://management.azure.com/op1";
	c.timeout = MINUTE;
	assert_int_equal(played_run(s, &c, replies), ERROR_NONE);
	played_expect(s, "GET gpu1, GET machines, POST abort, GET gpu1, GET machines");
	provider_call_release(&c);
}

/* Between the look and the call ours ended and somebody else's began: it is asked for first, and that is left alone. */
static void cancelling_ends_no_operation_of_others(void **state)
{
	static const struct reply replies[] = {
		{ "GET", "/gpu1", 200, POOL("Updating", 2, ""), { 0 }, 0 },
		{ "GET", "/machines", 200, "{\"value\":[" MACHINE("a") "," MACHINE("b") "]}", { 0 }, 0 },
		{ "GET", "/op1", 200, "{\"status\":\"Succeeded\"}", { 0 }, 0 },
		{ 0 },
	};
	struct stage *s = *state;
	struct provider_call c = played_call(s, PROVIDER_CANCEL, 2);
	char pending[256];

	played_place(s, "@" OPERATION "?api-version=2017-08-31", pending, sizeof pending);
	c.pending = pending;
	assert_int_equal(played_run(s, &c, replies), ERROR_CONFLICT);
	played_expect(s, "GET gpu1, GET machines, GET op1");
	provider_call_release(&c);
}

#define NUMBERED(name, number)                                                                                  \
	"{\"name\":\"" name "\",\"properties\":{\"resourceId\":\"/subscriptions/S/resourceGroups/MC/providers/" \
	"Microsoft.Compute/virtualMachineScaleSets/s/virtualMachines/" number "\"}}"
#define THREE	      NUMBERED("b", "10") "," NUMBERED("a", "9") "," NUMBERED("c", "11")
#define KEEPS_STOPPED ",\"scaleDownMode\":\"Deallocate\""

/* A lower count where it stops those named for certain; else they are deleted, and no other is touched. */
static void stopping_never_stops_another(void **state)
{
	static const char *const last[] = { "b" }, *const first[] = { "a" }, *const both[] = { "b", "a" },
				 *const stopped[] = { "c", "never" }, *const some[] = { "a", "d" };
	static const struct {
		const char *pool;
		const char *const *ids;
		size_t count;
		const char *sent, *body;
	} cases[] = {
		{ POOL("Succeeded", 2, KEEPS_STOPPED), last, 1, "PUT gpu1", "\"count\":1" },
		{ POOL("Succeeded", 2, KEEPS_STOPPED), both, 2, "PUT gpu1", "\"count\":0" },
		{ POOL("Succeeded", 2, KEEPS_STOPPED ",\"availabilityZones\":[\"1\"]"), last, 1, "PUT gpu1",
		  "\"count\":1" },
		{ POOL("Succeeded", 3, KEEPS_STOPPED), some, 2, "PUT gpu1", "\"count\":2" }, /* a is left to the next */
		{ POOL("Succeeded", 2, KEEPS_STOPPED), first, 1, "POST deleteMachines", "[\"a\"]" },
		{ POOL("Succeeded", 2, KEEPS_STOPPED ",\"availabilityZones\":[\"1\",\"2\"]"), last, 1,
		  "POST deleteMachines", "[\"b\"]" },
		{ POOL("Succeeded", 2,
		       KEEPS_STOPPED
		       ",\"type\":\"VirtualMachines\",\"virtualMachinesProfile\":{\"scale\":{\"manual\":[{"
		       "\"count\":2}]}}"),
		  last, 1, "POST deleteMachines", "[\"b\"]" },
		{ POOL("Succeeded", 2, KEEPS_STOPPED), stopped, 2, NULL, NULL },
	};
	static const char *const unready[] = { "c" };
	static const char with_d[] = "{\"value\":[" THREE "," NUMBERED("d", "12") "]}";
	struct stage *s = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct reply replies[] = {
			{ "GET", "/gpu1", 200, cases[i].pool, { 0 }, 0 },
			{ "GET", "/machines", 200, i == 3 ? with_d : "{\"value\":[" THREE "]}", { 0 }, 0 },
			{ "PUT", "/gpu1", 201, "{}", GOES_ON, 0 },
			{ "POST", "/deleteMachines", 202, "", GOES_ON, 0 },
			{ 0 },
		};
		struct provider_call c = played_call(s, PROVIDER_STOP, 0);
		char sent[64];
		c.ids = cases[i].ids;
		c.id_count = cases[i].count;
		c.unready = unready;
		c.unready_count = 1;
		assert_int_equal(played_run(s, &c, replies), ERROR_NONE);
		snprintf(sent, sizeof sent, "GET gpu1, GET machines%s%s", cases[i].sent ? ", " : "",
			 cases[i].sent ? cases[i].sent : "");
		played_expect(s, sent);
		if (cases[i].body && !strstr(s->seen[2].body, cases[i].body))
			fail_msg("%zu: %s", i, s->seen[2].body);
		provider_call_release(&c);
	}
}

/* The count fell for one, whose node is ready still: a lower one would stop another. */
static void nobody_is_stopped_twice(void **state)
{
	static const char *const last[] = { "b" };
	static const struct reply replies[] = {
		{ "GET", "/gpu1", 200, POOL("Succeeded", 1, KEEPS_STOPPED), { 0 }, 0 },
		{ "GET", "/machines", 200, "{\"value\":[" NUMBERED("b", "10") "," NUMBERED("a", "9") "]}", { 0 }, 0 },
		{ 0 },
	};
	struct stage *s = *state;
	struct provider_call c = played_call(s, PROVIDER_STOP, 0);

	c.ids = last;
	c.id_count = 1;
	assert_int_equal(played_run(s, &c, replies), ERROR_CONFLICT);
	played_expect(s, "GET gpu1, GET machines");
	provider_call_release(&c);
}

static void standby_falls_by_name_and_never_rises(void **state)
{
	static const struct reply replies[] = {
		{ "GET", "/gpu1", 200, POOL("Succeeded", 2, KEEPS_STOPPED), { 0 }, 0 },
		{ "GET",
		  "/machines",
		  200,
		  "{\"value\":[" MACHINE("a") "," MACHINE("b") "," MACHINE("c") "]}",
		  { 0 },
		  0 },
		{ "POST", "/deleteMachines", 202, "", GOES_ON, 0 },
		{ 0 },
	};
	static const char *const unready[] = { "c" };
	static const char *const ids[] = { "a" };
	struct stage *s = *state;
	struct provider_call c = played_call(s, PROVIDER_DESCRIBE, 0);

	c.unready = unready;
	c.unready_count = 1;
	assert_int_equal(played_run(s, &c, replies), ERROR_NONE);
	assert_int_equal(c.description.standby, 1);
	assert_int_equal(c.description.machines[2].state, MACHINE_STOPPED);
	assert_true(c.description.machines[2].is_standby && !c.description.machines[0].is_standby);
	provider_call_release(&c);
	c = played_call(s, PROVIDER_STANDBY, 0);
	c.unready = unready;
	c.unready_count = 1;
	assert_int_equal(played_run(s, &c, replies), ERROR_NONE);
	assert_string_equal(s->seen[2].body, "{\"machineNames\":[\"c\"]}");
	provider_call_release(&c);
	c = played_call(s, PROVIDER_STANDBY, 2);
	assert_int_equal(played_run(s, &c, replies), ERROR_INVALID);
	provider_call_release(&c);
	/* a pool that deletes has no standby at all */
	static const struct reply deletes[] = {
		{ "GET", "/gpu1", 200, POOL("Succeeded", 3, ""), { 0 }, 0 },
		{ "GET", "/machines", 200, "{\"value\":[" MACHINE("a") "]}", { 0 }, 0 },
		{ 0 },
	};
	c = played_call(s, PROVIDER_STOP, 0);
	c.ids = ids;
	c.id_count = 1;
	assert_int_equal(played_run(s, &c, deletes), ERROR_INVALID);
	assert_non_null(strstr(c.error.message, "--scale-down-mode Deallocate"));
	provider_call_release(&c);
}

/* A machine that goes between the two reads is none that is missing. */
static void the_count_is_no_older_than_the_machines(void **state)
{
	static const struct reply replies[] = {
		{ "GET", "/gpu1", 200, POOL("Updating", 2, ""), { 0 }, 1 },
		{ "GET", "/machines", 200, "{\"value\":[" MACHINE("a") "]}", { 0 }, 0 },
		{ "GET", "/gpu1", 200, POOL("Updating", 1, ""), { 0 }, 0 },
		{ 0 },
	};
	struct stage *s = *state;
	struct provider_call c = played_call(s, PROVIDER_DESCRIBE, 0);

	assert_int_equal(played_run(s, &c, replies), ERROR_NONE);
	played_expect(s, "GET gpu1, GET machines, GET gpu1");
	assert_int_equal(c.description.desired, 1);
	assert_true(c.description.is_busy);
	provider_call_release(&c);
}

/* What deleteMachines does where stopped machines are kept is learned: stopped by name from then on, and never asked to
 * end what stays. */
static void what_deletes_may_only_stop(void **state)
{
	static const char *const ids[] = { "a" }, *const unready[] = { "a" };
	static const struct reply before[] = {
		{ "GET", "/gpu1", 200, POOL("Succeeded", 3, KEEPS_STOPPED), { 0 }, 0 },
		{ "GET", "/machines", 200, "{\"value\":[" THREE "]}", { 0 }, 0 },
		{ "POST", "/deleteMachines", 202, "", GOES_ON, 0 },
		{ 0 },
	};
	static const struct reply stopped[] = {
		{ "GET", "/gpu1", 200, POOL("Succeeded", 2, KEEPS_STOPPED), { 0 }, 0 },
		{ "GET", "/machines", 200, "{\"value\":[" THREE "]}", { 0 }, 0 },
		{ "POST", "/deleteMachines", 202, "", GOES_ON, 0 },
		{ 0 },
	};
	static const struct reply gone[] = {
		{ "GET", "/gpu1", 200, POOL("Succeeded", 2, KEEPS_STOPPED), { 0 }, 0 },
		{ "GET", "/machines", 200, "{\"value\":[" NUMBERED("b", "10") "," NUMBERED("c", "11") "]}", { 0 }, 0 },
		{ 0 },
	};
	struct stage *s = *state;

	for (int deletes = 0; deletes < 2; deletes++) {
		struct provider_call c = played_call(s, PROVIDER_REMOVE, 0);
		c.ids = ids;
		c.id_count = 1;
		assert_int_equal(played_run(s, &c, before), ERROR_NONE);
		provider_call_release(&c);
		for (int i = 1; i <= 3; i++) {
			c = played_call(s, PROVIDER_DESCRIBE, 0);
			c.unready = unready;
			c.unready_count = 1;
			assert_int_equal(played_run(s, &c, deletes ? gone : stopped), ERROR_NONE);
			assert_int_equal(c.description.keeps_standby, !deletes && i == 3);
			assert_int_equal(c.description.standby, !deletes);
			provider_call_release(&c);
		}
		if (deletes)
			break;
		c = played_call(s, PROVIDER_STANDBY, 0);
		c.unready = unready;
		c.unready_count = 1;
		assert_int_equal(played_run(s, &c, stopped), ERROR_INVALID);
		played_expect(s, "GET gpu1, GET machines");
		assert_non_null(strstr(c.error.message, "--scale-down-mode Delete"));
		provider_call_release(&c);
		c = played_call(s, PROVIDER_STOP, 0);
		c.ids = (const char *const[]){ "b" }; /* not the highest */
		c.id_count = 1;
		c.unready = unready;
		c.unready_count = 1;
		assert_int_equal(played_run(s, &c, stopped), ERROR_NONE);
		played_expect(s, "GET gpu1, GET machines, POST deleteMachines");
		provider_call_release(&c);
	}
}

/* It was given up before it had a node: that it stands by is told by the count, and by nobody else. */
static void what_never_joined_stands_by_too(void **state)
{
	static const char *const ids[] = { "a" };
	static const struct reply before[] = {
		{ "GET", "/gpu1", 200, POOL("Succeeded", 3, KEEPS_STOPPED), { 0 }, 0 },
		{ "GET", "/machines", 200, "{\"value\":[" THREE "]}", { 0 }, 0 },
		{ "POST", "/deleteMachines", 202, "", GOES_ON, 0 },
		{ 0 },
	};
	static const struct reply stopped[] = {
		{ "GET", "/gpu1", 200, POOL("Succeeded", 2, KEEPS_STOPPED), { 0 }, 0 },
		{ "GET", "/machines", 200, "{\"value\":[" THREE "]}", { 0 }, 0 },
		{ 0 },
	};
	struct stage *s = *state;
	struct provider_call c = played_call(s, PROVIDER_REMOVE, 0);

	c.ids = ids;
	c.id_count = 1;
	assert_int_equal(played_run(s, &c, before), ERROR_NONE);
	provider_call_release(&c);
	for (int i = 1; i <= 12; i++) {
		c = played_call(s, PROVIDER_DESCRIBE, 0);
		c.nodeless = ids;
		c.nodeless_count = 1;
		assert_int_equal(played_run(s, &c, stopped), ERROR_NONE);
		assert_string_equal(c.description.machines[0].id, "a");
		assert_true(c.description.machines[0].is_standby);
		assert_false(c.description.machines[1].is_standby);
		assert_int_equal(c.description.keeps_standby, i == 12);
		provider_call_release(&c);
	}
	c = played_call(s, PROVIDER_DESCRIBE, 0); /* woken: its node is there, and another one is stopped */
	assert_int_equal(played_run(s, &c, stopped), ERROR_NONE);
	assert_false(c.description.machines[0].is_standby);
	provider_call_release(&c);
	c = played_call(s, PROVIDER_DESCRIBE, 0); /* somebody has it serve again */
	assert_int_equal(played_run(s, &c, before), ERROR_NONE);
	assert_false(c.description.machines[0].is_standby);
	provider_call_release(&c);
	c = played_call(s, PROVIDER_DESCRIBE, 0);
	assert_int_equal(played_run(s, &c, stopped), ERROR_NONE);
	assert_false(c.description.machines[0].is_standby);
	provider_call_release(&c);
}

/* Of this pool, and of PUTs alone; and that is no throttling, which would hold back the others. */
static void what_exceeds_the_budget_is_not_sent(void **state)
{
	static const struct reply replies[] = {
		{ "GET", "/gpu1", 200, POOL("Succeeded", 2, ""), { 0 }, 0 },
		{ "PUT", "/gpu1", 200, "{}", { 0 }, 0 },
		{ "GET", "/gpu2", 200, POOL("Succeeded", 2, ""), { 0 }, 0 },
		{ "PUT", "/gpu2", 200, "{}", { 0 }, 0 },
		{ "GET", "/machines", 200, "{\"value\":[" MACHINE("a") "," MACHINE("b") "]}", { 0 }, 0 },
		{ "POST", "/deleteMachines", 202, "", GOES_ON, 0 },
		{ 0 },
	};
	static const char *const ids[] = { "a" };
	struct stage *s = *state;
	struct provider_call c;

	for (int i = 0; i <= 20; i++) {
		c = played_call(s, PROVIDER_GROW, 3);
		assert_int_equal(played_run(s, &c, replies), i < 20 ? ERROR_NONE : ERROR_CONFLICT);
		played_expect(s, i < 20 ? "GET gpu1, PUT gpu1" : "GET gpu1");
		assert_true(i < 20 || (c.retry_after > 50 * SECOND && c.retry_after <= MINUTE));
		provider_call_release(&c);
	}
	c = played_call(s, PROVIDER_REMOVE, 0);
	c.ids = ids;
	c.id_count = 1;
	assert_int_equal(played_run(s, &c, replies), ERROR_NONE);
	provider_call_release(&c);
	char other[sizeof s->settings];
	memcpy(other, s->settings, sizeof other);
	strstr(other, "gpu1")[3] = '2';
	c = played_call(s, PROVIDER_GROW, 3);
	c.settings = other;
	assert_int_equal(played_run(s, &c, replies), ERROR_NONE);
	played_expect(s, "GET gpu2, PUT gpu2");
	provider_call_release(&c);
}

#define REFUSED(pool, code)                                                                            \
	{                                                                                              \
		"PUT", "/" pool, 429, "{\"error\":{\"code\":\"" code "\",\"message\":\"Too many.\"}}", \
			{ "Retry-After: 90" }, 0                                                       \
	}

/* Somebody else used them up. */
static void a_pool_that_is_throttled_holds_back_itself(void **state)
{
	static const struct reply replies[] = {
		{ "GET", "/gpu1", 200, POOL("Succeeded", 2, ""), { 0 }, 0 },
		REFUSED("gpu1", "Throttled"),
		{ "GET", "/gpu2", 200, POOL("Succeeded", 2, ""), { 0 }, 0 },
		REFUSED("gpu2", "SubscriptionRequestsThrottled"),
		{ 0 },
	};
	struct stage *s = *state;
	struct provider_call c = played_call(s, PROVIDER_GROW, 3);
	char other[sizeof s->settings];

	assert_int_equal(played_run(s, &c, replies), ERROR_CONFLICT);
	assert_non_null(strstr(c.error.message, "Throttled"));
	assert_int_equal(c.retry_after, 90 * SECOND);
	provider_call_release(&c);
	c = played_call(s, PROVIDER_GROW, 3);
	assert_int_equal(played_run(s, &c, replies), ERROR_CONFLICT);
	played_expect(s, "GET gpu1"); /* not sent: it would count, too */
	provider_call_release(&c);
	memcpy(other, s->settings, sizeof other);
	strstr(other, "gpu1")[3] = '2';
	c = played_call(s, PROVIDER_GROW, 3);
	c.settings = other;
	assert_int_equal(played_run(s, &c, replies), ERROR_THROTTLED);
	provider_call_release(&c);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, played_arm_set_up, played_arm_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(growing_reads_and_writes_back),
		TEST(a_size_that_fell_meanwhile_is_let),
		TEST(growing_is_refused_where_it_must_be),
		TEST(a_failed_pool_is_asked_again),
		TEST(removing_names_those_that_are_there),
		TEST(the_token_goes_nowhere_else),
		TEST(cancelling_aborts_waits_and_names_only_what_is_coming),
		TEST(cancelling_ends_no_operation_of_others),
		TEST(cancelling_ends_the_operation_that_is_named),
		TEST(cancelling_deletes_what_is_coming_by_name),
		TEST(cancelling_nothing_disturbs_nothing),
		TEST(stopping_never_stops_another),
		TEST(nobody_is_stopped_twice),
		TEST(standby_falls_by_name_and_never_rises),
		TEST(the_count_is_no_older_than_the_machines),
		TEST(what_deletes_may_only_stop),
		TEST(what_never_joined_stands_by_too),
		TEST(what_exceeds_the_budget_is_not_sent),
		TEST(a_pool_that_is_throttled_holds_back_itself),
	};

	return cmocka_run_group_tests_name("aks_calls", tests, NULL, NULL);
}
