/* What provider aks sends, request by request, to a Resource Manager that a test plays. */
#include "base/decode.h"
#include "base/file.h"
#include "base/net/http.h"
#include "base/net/server.h"
#include "providers/azure/text.h"
#include "providers/provider.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

enum { REQUESTS_MOST = 64 };

/* What is answered to a request; the first row that fits and is not used up. */
struct reply {
	const char *method, *path; /* path: how it ends */
	int status;
	const char *body;
	const char *headers[3]; /* "@" is where the server is */
	int times;		/* 0: any */
};

struct seen {
	char method[8], path[400], match[64], bearer[64], type[64], version[24];
	char *body;
};

struct stage {
	struct loop *loop;
	struct http *http;
	struct server *server;
	struct server_route routes[3];
	const struct provider_ops *ops;
	struct provider *provider;
	char url[64], settings[400];
	const struct reply *replies;
	int used[REQUESTS_MOST], tokens;
	struct seen seen[REQUESTS_MOST];
	size_t count; /* of seen, tokens left out */
	char headers[3][256], body[4096];
	bool is_done;
};

#define POOL_PATH                                                                                                     \
	"/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg/providers/Microsoft.ContainerService/" \
	"managedClusters/c/agentPools/gpu1"
#define POOL(state, count, more)                                                                            \
	"{\"id\":\"/s\",\"name\":\"gpu1\",\"type\":\"T\",\"properties\":{\"eTag\":\"e1\",\"count\":" #count \
	",\"vmSize\":\"Standard_ND96isr_H100_v5\",\"mode\":\"User\",\"provisioningState\":\"" state "\"" more "}}"
#define MACHINE(name) \
	"{\"name\":\"" name "\",\"properties\":{\"resourceId\":\"/subscriptions/S/resourceGroups/MC/x/" name "\"}}"
#define OPERATION "/subscriptions/s/providers/Microsoft.ContainerService/locations/eastus/operations/op1"
#define GOES_ON                                                                                 \
	{                                                                                       \
		"Azure-AsyncOperation: @" OPERATION "?api-version=2017-08-31", "Retry-After: 0" \
	}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), size = strlen(end);

	return len >= size && strcmp(text + len - size, end) == 0;
}

/* With "@" replaced by the server's own address. */
static const char *place(const struct stage *s, const char *text, char *room, size_t size)
{
	const char *at = strchr(text, '@');

	if (at)
		snprintf(room, size, "%.*s%s%s", (int)(at - text), text, s->url, at + 1);
	else
		snprintf(room, size, "%s", text);
	return room;
}

static void note(struct stage *s, const struct server_request *q)
{
	struct seen *n = &s->seen[s->count++];
	const char *bearer = server_header(q, "Authorization"), *match = server_header(q, "If-Match");
	const char *type = server_header(q, "Content-Type"), *version = server_query(q, "api-version");

	assert_true(s->count <= REQUESTS_MOST);
	snprintf(n->method, sizeof n->method, "%s", q->method);
	snprintf(n->path, sizeof n->path, "%s", q->path);
	snprintf(n->match, sizeof n->match, "%s", match ? match : "");
	snprintf(n->bearer, sizeof n->bearer, "%s", bearer ? bearer : "");
	snprintf(n->type, sizeof n->type, "%s", type ? type : "");
	snprintf(n->version, sizeof n->version, "%s", version ? version : "");
	n->body = strdup(q->body);
}

static void answer(const struct server_request *q, struct server_answer *a)
{
	struct stage *s = q->user;
	int i = 0;

	a->content_type = "application/json";
	if (ends_with(q->path, "/oauth2/v2.0/token")) {
		buf_printf(&a->body, "{\"token_type\":\"Bearer\",\"expires_in\":3599,\"access_token\":\"token%d\"}",
			   ++s->tokens);
		return;
	}
	note(s, q);
	for (const struct reply *r = s->replies; r->method; r++, i++) {
		if (strcmp(r->method, q->method) != 0 || !ends_with(q->path, r->path) ||
		    (r->times && s->used[i] == r->times))
			continue;
		s->used[i]++;
		a->status = r->status;
		buf_text(&a->body, r->body ? place(s, r->body, s->body, sizeof s->body) : "");
		for (int h = 0; h < 3 && r->headers[h]; h++)
			a->headers[h] = place(s, r->headers[h], s->headers[h], sizeof s->headers[h]);
		return;
	}
	a->status = 404;
	buf_text(&a->body, "{\"error\":{\"code\":\"NotFound\",\"message\":\"the test plays no such thing\"}}");
}

static int set_up(void **state)
{
	static const char *const methods[] = { "GET", "PUT", "POST" };
	struct stage *s = calloc(1, sizeof *s);
	struct error e;

	assert_non_null(s);
	s->loop = loop_open();
	s->http = http_open(s->loop, "test", &e);
	for (size_t i = 0; i < 3; i++)
		s->routes[i] = (struct server_route){ methods[i], "/*", answer, s };
	s->server = server_open(
		s->loop, &(struct server_settings){ .listen = "127.0.0.1:0", .routes = s->routes, .route_count = 3 },
		&e);
	assert_non_null(s->server);
	snprintf(s->url, sizeof s->url, "http://127.0.0.1:%d", server_port(s->server));
	setenv("AZURE_TENANT_ID", "tenant", 1);
	setenv("AZURE_CLIENT_ID", "client", 1);
	setenv("AZURE_CLIENT_SECRET", "secret", 1);
	setenv("AZURE_AUTHORITY_HOST", s->url, 1);
	s->ops = provider_find("aks");
	s->provider = s->ops->open(&(struct provider_setup){ .loop = s->loop, .http = s->http }, &e);
	snprintf(
		s->settings, sizeof s->settings,
		"{\"subscription\":\"00000000-0000-0000-0000-000000000000\",\"resourceGroup\":\"rg\",\"cluster\":\"c\","
		"\"pool\":\"gpu1\",\"resourceManager\":\"%s\"}",
		s->url);
	*state = s;
	return 0;
}

static void forget(struct stage *s)
{
	while (s->count)
		free(s->seen[--s->count].body);
	memset(s->used, 0, sizeof s->used);
}

static int tear_down(void **state)
{
	struct stage *s = *state;

	forget(s);
	s->ops->close(s->provider);
	server_close(s->server);
	http_close(s->http);
	loop_close(s->loop);
	free(s);
	return 0;
}

static void on_done(struct provider_call *c)
{
	((struct stage *)c->user)->is_done = true;
}

static struct provider_call call(struct stage *s, enum provider_verb verb, int64_t desired)
{
	return (struct provider_call){ .verb = verb,
				       .group = "gpu",
				       .settings = s->settings,
				       .token = "t",
				       .desired = desired,
				       .done = on_done,
				       .user = s };
}

static enum error_kind run(struct stage *s, struct provider_call *c, const struct reply *replies)
{
	forget(s);
	s->replies = replies;
	s->is_done = false;
	s->ops->start(s->provider, c);
	while (!s->is_done)
		assert_true(loop_once(s->loop));
	return c->error.kind;
}

/* "GET gpu1, PUT gpu1" */
static void expect_sent(const struct stage *s, const char *expected)
{
	CLEANUP(buf_release) struct buf sent = { 0 };

	buf_text(&sent, "");
	for (size_t i = 0; i < s->count; i++)
		buf_printf(&sent, "%s%s %s", i ? ", " : "", s->seen[i].method, strrchr(s->seen[i].path, '/') + 1);
	assert_string_equal(sent.text, expected);
}

static void growing_reads_and_writes_back(void **state)
{
	static const struct reply replies[] = {
		{ "GET", "/gpu1", 200, POOL("Succeeded", 2, ",\"new\":[1.50]"), { 0 }, 0 },
		{ "PUT", "/gpu1", 201, POOL("Updating", 3, ""), GOES_ON, 0 },
		{ 0 },
	};
	struct stage *s = *state;
	struct provider_call c = call(s, PROVIDER_GROW, 3);
	char operation[256];

	assert_int_equal(run(s, &c, replies), ERROR_NONE);
	expect_sent(s, "GET gpu1, PUT gpu1");
	assert_string_equal(s->seen[1].path, POOL_PATH);
	assert_string_equal(s->seen[1].version, "2026-04-01");
	assert_string_equal(s->seen[1].match, "e1");
	assert_string_equal(s->seen[1].type, "application/json");
	assert_string_equal(s->seen[1].bearer, "Bearer token1");
	assert_string_equal(s->seen[1].body,
			    "{\"properties\":{\"count\":3,\"vmSize\":\"Standard_ND96isr_H100_v5\",\"mode\":"
			    "\"User\",\"new\":[1.50]}}");
	assert_string_equal(c.operation,
			    place(s, "@" OPERATION "?api-version=2017-08-31", operation, sizeof operation));
	provider_call_release(&c);
	/* no more than there is: nothing is written */
	c = call(s, PROVIDER_GROW, 1);
	assert_int_equal(run(s, &c, replies), ERROR_NONE);
	expect_sent(s, "GET gpu1");
	provider_call_release(&c);
	/* one token serves them all */
	assert_int_equal(s->tokens, 1);
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
		struct provider_call c = call(s, PROVIDER_GROW, 3);
		if (run(s, &c, cases[i].replies) != cases[i].kind)
			fail_msg("%zu: %s", i, c.error.message);
		expect_sent(s, cases[i].sent);
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
	struct provider_call c = call(s, PROVIDER_GROW, 3);

	assert_int_equal(run(s, &c, replies), ERROR_NONE);
	expect_sent(s, "GET gpu1, PUT gpu1");
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
	struct provider_call c = call(s, PROVIDER_REMOVE, 0);

	c.ids = ids;
	c.id_count = 4;
	assert_int_equal(run(s, &c, replies), ERROR_NONE);
	expect_sent(s, "GET gpu1, GET machines, GET next, POST deleteMachines");
	assert_string_equal(s->seen[3].body, "{\"machineNames\":[\"c\",\"b\"]}");
	assert_string_equal(s->seen[3].match, "");
	assert_string_not_equal(c.operation, "");
	provider_call_release(&c);
	c = call(s, PROVIDER_REMOVE, 0);
	c.ids = ids + 1;
	c.id_count = 1;
	assert_int_equal(run(s, &c, replies), ERROR_NONE);
	expect_sent(s, "GET gpu1, GET machines, GET next");
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
	struct provider_call c = call(s, PROVIDER_DESCRIBE, 0);

	assert_int_equal(run(s, &c, page), ERROR_INVALID);
	assert_non_null(strstr(c.error.message, "next page"));
	provider_call_release(&c);
	c = call(s, PROVIDER_GROW, 3);
	assert_int_equal(run(s, &c, operation), ERROR_NONE);
	assert_string_equal(c.operation, "");
	provider_call_release(&c);
	c = call(s, PROVIDER_DESCRIBE, 0);
	c.pending = "https://evil.example/operations/1";
	assert_int_equal(run(s, &c, operation), ERROR_NONE);
	expect_sent(s, "GET gpu1, GET machines");
	provider_call_release(&c);
}

#define STOCKED_OUT                                                                            \
	"{\"code\":\"ReconcileVMSSAgentPoolFailed\",\"message\":\"m\",\"details\":[{\"code\":" \
	"\"ZonalAllocationFailed\","                                                           \
	"\"message\":\"none in zone 2.\"}]}"

static void what_is_pending_shows_in_the_description(void **state)
{
	static const struct {
		struct reply operation;
		const char *pool;
		bool is_busy;
		enum error_kind failure; /* ERROR_NONE: none */
	} cases[] = {
		{ { "GET", "/op1", 200, "{\"status\":\"InProgress\"}", { 0 }, 0 },
		  POOL("Succeeded", 3, ""),
		  true,
		  ERROR_NONE },
		{ { "GET", "/op1", 200, "{\"status\":\"Succeeded\"}", { 0 }, 0 },
		  POOL("Succeeded", 3, ""),
		  false,
		  ERROR_NONE },
		{ { "GET", "/op1", 200, "{\"status\":\"Failed\",\"error\":" STOCKED_OUT "}", { 0 }, 0 },
		  POOL("Failed", 3, ""),
		  false,
		  ERROR_STOCKOUT },
		{ { "GET",
		    "/op1",
		    200,
		    "{\"status\":\"Failed\",\"error\":{\"code\":\"X\",\"message\":\"y\"}}",
		    { 0 },
		    0 },
		  POOL("Failed", 3, ""),
		  false,
		  ERROR_UNAVAILABLE },
		{ { "GET", "/op1", 404, "", { 0 }, 0 },
		  POOL("Failed", 3, ",\"status\":{\"provisioningError\":" STOCKED_OUT "}"),
		  false,
		  ERROR_STOCKOUT },
		{ { "GET", "/op1", 403, "", { 0 }, 0 }, POOL("Updating", 3, ""), true, ERROR_NONE },
		/* nothing is missing: no launch failed, whatever did */
		{ { "GET", "/op1", 404, "", { 0 }, 0 },
		  POOL("Failed", 2, ",\"status\":{\"provisioningError\":" STOCKED_OUT "}"),
		  false,
		  ERROR_NONE },
	};
	struct stage *s = *state;
	char pending[256];

	place(s, "@" OPERATION "?api-version=2017-08-31&t=1", pending, sizeof pending);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct reply replies[] = {
			{ "GET", "/gpu1", 200, cases[i].pool, { 0 }, 0 },
			{ "GET", "/machines", 200, "{\"value\":[" MACHINE("a") "," MACHINE("b") "]}", { 0 }, 0 },
			cases[i].operation,
			{ 0 },
		};
		struct provider_call c = call(s, PROVIDER_DESCRIBE, 0);
		const struct group_description *d = &c.description;
		c.pending = pending;
		if (run(s, &c, replies) != ERROR_NONE)
			fail_msg("%zu: %s", i, c.error.message);
		expect_sent(s, "GET gpu1, GET op1, GET machines");
		assert_string_equal(s->seen[1].path, OPERATION);
		assert_string_equal(s->seen[1].version, "2017-08-31");
		assert_int_equal(d->is_busy, cases[i].is_busy);
		assert_int_equal(d->failure_count, cases[i].failure != ERROR_NONE);
		if (d->failure_count) {
			assert_int_equal(d->failures[0].kind, cases[i].failure);
			assert_int_equal(d->failures[0].count, 1);
			assert_string_equal(d->failures[0].zone, cases[i].failure == ERROR_STOCKOUT ? "2" : "");
			assert_string_equal(d->failures[0].instance_type, "Standard_ND96isr_H100_v5");
		}
		provider_call_release(&c);
	}
}

static int64_t failure_of(struct stage *s, const char *pool)
{
	const struct reply replies[] = { { "GET", "/gpu1", 200, pool, { 0 }, 0 },
					 { "GET", "/machines", 200, "{\"value\":[]}", { 0 }, 0 },
					 { 0 } };
	struct provider_call c = call(s, PROVIDER_DESCRIBE, 0);

	assert_int_equal(run(s, &c, replies), ERROR_NONE);
	assert_int_equal(c.description.failure_count, 1);
	int64_t id = c.description.failures[0].id;
	provider_call_release(&c);
	return id;
}

static void a_failure_keeps_its_number_until_the_pool_is_written(void **state)
{
#define FAILED                                                                                         \
	"{\"name\":\"gpu1\",\"properties\":{\"count\":1,\"provisioningState\":\"Failed\",\"status\":{" \
	"\"provisioningError\":" STOCKED_OUT "},\"eTag\":\""
	struct stage *s = *state;
	int64_t first = failure_of(s, FAILED "e1\"}}");

	assert_int_equal(failure_of(s, FAILED "e1\"}}"), first);
	assert_true(failure_of(s, FAILED "e2\"}}") > first);
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
	struct provider_call c = call(s, PROVIDER_CANCEL, 1);

	c.ids = ids;
	c.id_count = 2;
	c.timeout = MINUTE;
	assert_int_equal(run(s, &c, replies), ERROR_NONE);
	expect_sent(s, "GET gpu1, GET machines, POST abort, GET gpu1, GET machines, GET gpu1, GET machines, PUT gpu1");
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
	struct provider_call c = call(s, PROVIDER_CANCEL, 0);

	c.ids = ids;
	c.id_count = 2;
	assert_int_equal(run(s, &c, replies), ERROR_NONE);
	expect_sent(s, "GET gpu1, GET machines, POST deleteMachines, GET gpu1, GET machines, PUT gpu1");
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
		struct provider_call c = call(s, PROVIDER_CANCEL, 0);
		assert_int_equal(run(s, &c, replies), cases[i].kind);
		expect_sent(s, "GET gpu1, GET machines");
		provider_call_release(&c);
	}
}

static void stopping_is_a_lower_count_where_it_is_trusted(void **state)
{
	static const struct reply replies[] = {
		{ "GET", "/gpu1", 200, POOL("Succeeded", 2, ",\"scaleDownMode\":\"Deallocate\""), { 0 }, 0 },
		{ "GET",
		  "/machines",
		  200,
		  "{\"value\":[" MACHINE("a") "," MACHINE("b") "," MACHINE("c") "]}",
		  { 0 },
		  0 },
		{ "PUT", "/gpu1", 201, "{}", GOES_ON, 0 },
		{ "POST", "/deleteMachines", 202, "", GOES_ON, 0 },
		{ 0 },
	};
	static const char *const ids[] = { "a", "c" }, *const unready[] = { "c" };
	struct stage *s = *state;
	struct provider_call c = call(s, PROVIDER_DESCRIBE, 0);

	c.unready = unready;
	c.unready_count = 1;
	assert_int_equal(run(s, &c, replies), ERROR_NONE);
	assert_int_equal(c.description.standby, 1);
	assert_int_equal(c.description.machines[2].state, MACHINE_STOPPED);
	assert_true(c.description.machines[2].is_standby && !c.description.machines[0].is_standby);
	assert_int_equal(c.description.abilities & PROVIDER_STOPS_NAMED, 0);
	assert_non_null(strstr(c.description.lacks, "aks.standby: fill"));
	provider_call_release(&c);
	c = call(s, PROVIDER_STOP, 0);
	c.ids = ids;
	c.id_count = 2;
	assert_int_equal(run(s, &c, replies), ERROR_INVALID);
	provider_call_release(&c);
	snprintf(s->settings + strlen(s->settings) - 1, 32, ",\"standby\":\"fill\"}");
	c.unready = unready;
	c.unready_count = 1;
	assert_int_equal(run(s, &c, replies), ERROR_NONE); /* c is stopped already */
	assert_non_null(strstr(s->seen[2].body, "\"count\":1"));
	provider_call_release(&c);
	c = call(s, PROVIDER_STANDBY, 0);
	c.unready = unready;
	c.unready_count = 1;
	assert_int_equal(run(s, &c, replies), ERROR_NONE);
	assert_string_equal(s->seen[2].body, "{\"machineNames\":[\"c\"]}");
	provider_call_release(&c);
	c = call(s, PROVIDER_STANDBY, 2);
	assert_int_equal(run(s, &c, replies), ERROR_INVALID);
	provider_call_release(&c);
}

static void a_token_that_is_refused_is_renewed_once(void **state)
{
	static const struct reply once[] = {
		{ "GET",
		  "/gpu1",
		  401,
		  "{\"error\":{\"code\":\"ExpiredAuthenticationToken\",\"message\":\"x\"}}",
		  { 0 },
		  1 },
		{ "GET", "/gpu1", 200, POOL("Succeeded", 0, ""), { 0 }, 0 },
		{ "GET", "/machines", 200, "{\"value\":[]}", { 0 }, 0 },
		{ 0 },
	};
	static const struct reply always[] = { { "GET", "/gpu1", 401, "", { 0 }, 0 }, { 0 } };
	struct stage *s = *state;
	struct provider_call c = call(s, PROVIDER_DESCRIBE, 0);

	assert_int_equal(run(s, &c, once), ERROR_NONE);
	expect_sent(s, "GET gpu1, GET gpu1, GET machines");
	assert_string_equal(s->seen[1].bearer, "Bearer token2");
	provider_call_release(&c);
	assert_int_equal(run(s, &c, always), ERROR_AUTH);
	expect_sent(s, "GET gpu1, GET gpu1");
	assert_int_equal(s->tokens, 3);
	provider_call_release(&c);
}

static void one_token_is_asked_for_all_who_wait(void **state)
{
	static const struct reply replies[] = {
		{ "GET", "/gpu1", 200, POOL("Succeeded", 0, ""), { 0 }, 0 },
		{ "GET", "/machines", 200, "{\"value\":[]}", { 0 }, 0 },
		{ 0 },
	};
	enum { CALLS = 5 };
	struct stage *s = *state;
	struct provider_call calls[CALLS];
	int left = CALLS;

	s->replies = replies;
	for (int i = 0; i < CALLS; i++) {
		calls[i] = call(s, PROVIDER_DESCRIBE, 0);
		s->ops->start(s->provider, &calls[i]);
	}
	s->ops->cancel(s->provider, &calls[2]);
	while (left) {
		s->is_done = false;
		while (!s->is_done)
			assert_true(loop_once(s->loop));
		left = 0;
		for (int i = 0; i < CALLS; i++)
			left += calls[i].exchange != NULL;
	}
	assert_int_equal(s->tokens, 1);
	for (int i = 0; i < CALLS; i++) {
		assert_int_equal(calls[i].error.kind, i == 2 ? ERROR_CANCELLED : ERROR_NONE);
		provider_call_release(&calls[i]);
	}
}

static void what_exceeds_the_budget_is_not_sent(void **state)
{
	static const struct reply replies[] = {
		{ "GET", "/gpu1", 200, POOL("Succeeded", 2, ""), { 0 }, 0 },
		{ "PUT", "/gpu1", 200, "{}", { 0 }, 0 },
		{ 0 },
	};
	struct stage *s = *state;

	for (int i = 0; i <= 20; i++) {
		struct provider_call c = call(s, PROVIDER_GROW, 3);
		assert_int_equal(run(s, &c, replies), i < 20 ? ERROR_NONE : ERROR_THROTTLED);
		expect_sent(s, i < 20 ? "GET gpu1, PUT gpu1" : "GET gpu1");
		assert_true(i < 20 || (c.retry_after > 50 * SECOND && c.retry_after <= MINUTE));
		provider_call_release(&c);
	}
}

static void permissions_are_told_or_unknown(void **state)
{
	static const struct reply told[] = {
		{ "GET",
		  "/managedClusters/c/providers/Microsoft.Authorization/permissions",
		  200,
		  "{\"value\":[{\"actions\":[\"Microsoft.ContainerService/*/read\"],\"notActions\":[\"*/machines/"
		  "read\"]}]}",
		  { 0 },
		  0 },
		{ 0 },
	};
	static const struct reply denied[] = { { "GET", "/permissions", 403, "", { 0 }, 0 }, { 0 } };
	static const enum permission_state states[] = { PERMISSION_GRANTED, PERMISSION_DENIED, PERMISSION_DENIED,
							PERMISSION_DENIED,  PERMISSION_DENIED, PERMISSION_UNKNOWN,
							PERMISSION_UNKNOWN };
	struct stage *s = *state;
	struct provider_call c = call(s, PROVIDER_CHECK, 0);

	assert_int_equal(run(s, &c, told), ERROR_NONE);
	assert_int_equal(c.permission_count, 7);
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(c.permissions[i].state, states[i]);
	assert_string_equal(s->seen[0].version, "2022-04-01");
	assert_non_null(strstr(c.identity, "client secret"));
	assert_null(strstr(c.identity, "token1"));
	provider_call_release(&c);
	assert_int_equal(run(s, &c, denied), ERROR_NONE);
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(c.permissions[i].state, PERMISSION_UNKNOWN);
	provider_call_release(&c);
}

/* The exchanges that the vendor's own SDK was recorded with. */
struct golden_line {
	const char *mode, *method, *url, *body, *match, *type;
};
static const struct field golden_fields[] = {
	FIELD(struct golden_line, mode, FIELD_STRING, "mode"),
	FIELD(struct golden_line, method, FIELD_STRING, "method"),
	FIELD(struct golden_line, url, FIELD_STRING, "url"),
	FIELD(struct golden_line, body, FIELD_STRING, "body"),
	FIELD(struct golden_line, match, FIELD_STRING, "headers>if-match"),
	FIELD(struct golden_line, type, FIELD_STRING, "headers>content-type"),
};
static const struct record_spec golden_record = { "", sizeof(struct golden_line), golden_fields, 6 };
struct golden {
	struct decoded_list exchanges;
};
static const struct field file_fields[] = {
	{ .path = "exchanges", .type = FIELD_LIST, .offset = offsetof(struct golden, exchanges), .of = &golden_record },
};
static const struct record_spec file_record = { "", sizeof(struct golden), file_fields, 1 };

static void expect_golden(const struct stage *s, const struct golden_line *g)
{
	char url[600];

	for (size_t i = 0; i < s->count; i++) {
		const struct seen *n = &s->seen[i];
		snprintf(url, sizeof url, "%s?api-version=%s", n->path, n->version);
		if (!strcmp(n->method, g->method) && !strcmp(url, g->url) && !strcmp(n->body, g->body) &&
		    !strcmp(n->match, g->match ? g->match : "") && !strcmp(n->type, g->type ? g->type : ""))
			return;
	}
	fail_msg("nothing sent is %s %s %s", g->method, g->url, g->body);
}

static void requests_are_those_of_the_vendors_sdk(void **state)
{
	static const struct reply replies[] = {
		{ "GET", "/gpu1", 200, POOL("Succeeded", 2, ""), { 0 }, 0 },
		{ "PUT", "/gpu1", 201, POOL("Updating", 3, ""), GOES_ON, 0 },
		{ "GET", "/op1", 200, "{\"status\":\"Succeeded\"}", { 0 }, 0 },
		{ "GET", "/machines", 200, "{\"value\":[" MACHINE("aks-gpu1-1-vmss00000a") "]}", { 0 }, 0 },
		{ "POST", "/deleteMachines", 202, "", GOES_ON, 0 },
		{ 0 },
	};
	static const char *const ids[] = { "aks-gpu1-1-vmss00000a" };
	static const enum provider_verb verbs[] = { PROVIDER_GROW, PROVIDER_DESCRIBE, PROVIDER_REMOVE };
	struct stage *s = *state;
	const char *shared = getenv("PREHEAT_SHARED");
	CLEANUP(arena_release) struct arena a = { 0 };
	CLEANUP(buf_release) struct buf text = { 0 };
	char path[512], pending[256];
	struct golden golden;
	struct error e = { 0 };

	snprintf(path, sizeof path, "%s/contracts/golden/arm-exchanges.json", shared ? shared : "../shared");
	if (!file_read(path, 1 << 20, &text, &e)) {
		printf("skipped: %s is not there (set PREHEAT_SHARED)\n", path);
		skip();
	}
	assert_true(azure_decode(&file_record, text.text, text.len, &a, &golden, &e));
	place(s, "@" OPERATION "?api-version=2017-08-31", pending, sizeof pending);
	const struct golden_line *lines = golden.exchanges.items;
	/* our verbs in turn; each golden request of the successful run is among what was sent by then */
	struct stage all = *s;
	all.count = 0;
	for (size_t v = 0; v < 3; v++) {
		struct provider_call c = call(s, verbs[v], 3);
		c.pending = pending;
		c.ids = ids;
		c.id_count = 1;
		assert_int_equal(run(s, &c, replies), ERROR_NONE);
		for (size_t i = 0; i < s->count; i++) {
			all.seen[all.count] = s->seen[i];
			all.seen[all.count++].body = strdup(s->seen[i].body);
		}
		provider_call_release(&c);
	}
	for (size_t i = 0; i < golden.exchanges.count; i++)
		if (!strcmp(lines[i].mode, "ok"))
			expect_golden(&all, &lines[i]);
	forget(&all);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(growing_reads_and_writes_back),
		TEST(growing_is_refused_where_it_must_be),
		TEST(a_failed_pool_is_asked_again),
		TEST(removing_names_those_that_are_there),
		TEST(the_token_goes_nowhere_else),
		TEST(what_is_pending_shows_in_the_description),
		TEST(a_failure_keeps_its_number_until_the_pool_is_written),
		TEST(cancelling_aborts_waits_and_names_only_what_is_coming),
		TEST(cancelling_deletes_what_is_coming_by_name),
		TEST(cancelling_nothing_disturbs_nothing),
		TEST(stopping_is_a_lower_count_where_it_is_trusted),
		TEST(a_token_that_is_refused_is_renewed_once),
		TEST(one_token_is_asked_for_all_who_wait),
		TEST(what_exceeds_the_budget_is_not_sent),
		TEST(permissions_are_told_or_unknown),
		TEST(requests_are_those_of_the_vendors_sdk),
	};

	return cmocka_run_group_tests_name("aks_calls", tests, NULL, NULL);
}
