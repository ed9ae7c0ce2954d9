/* The conformance of provider aks, against a server that speaks the Resource Manager's wire. */
#include "base/decode.h"
#include "base/net/server.h"
#include "providers/azure/answer.h"
#include "providers/text.h"
#include "tests/unit/providers/conformance.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define POOLS                                                                                                         \
	"/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg/providers/Microsoft.ContainerService/" \
	"managedClusters/c/agentPools/"

struct wire_server {
	struct server *server;
	struct server_route routes[3];
	struct modelled_cloud *cloud;
	bool was_aborted;
	int changes;
	char url[64], token[16], operation[160];
};

struct order {
	int64_t count;
	struct decoded_list names;
};

static const struct field name_fields[] = { { .path = "", .type = FIELD_STRING } };
static const struct record_spec name_record = { "", sizeof(const char *), name_fields, 1 };
static const struct field order_fields[] = {
	FIELD(struct order, count, FIELD_INT, "properties>count"),
	{ .path = "machineNames", .type = FIELD_LIST, .offset = offsetof(struct order, names), .of = &name_record },
};
static const struct record_spec order_record = { "", sizeof(struct order), order_fields, 2 };

static bool is_at_work(const struct wire_server *s)
{
	for (size_t i = 0; i < s->cloud->count; i++)
		if (s->cloud->machines[i].state != MACHINE_RUNNING && s->cloud->machines[i].state != MACHINE_STOPPED)
			return !s->was_aborted;
	return false;
}

static void describe_pool(const struct wire_server *s, struct buf *out)
{
	buf_printf(out,
		   "{\"id\":\"" POOLS "g\",\"name\":\"g\",\"type\":\"Microsoft.ContainerService/managedClusters/"
		   "agentPools\",\"properties\":{\"eTag\":\"e%d\",\"count\":%" PRId64
		   ",\"vmSize\":\"Standard_ND96isr_H100_v5\",\"mode\":\"%s\",\"type\":\"VirtualMachineScaleSets\","
		   "\"osType\":\"Linux\",\"scaleDownMode\":\"Deallocate\",\"enableAutoScaling\":false,"
		   "\"provisioningState\":\"%s\"}}",
		   s->changes, s->cloud->desired, s->cloud->min ? "System" : "User",
		   is_at_work(s) ? "Updating" : "Succeeded");
}

static void describe_machines(const struct modelled_cloud *c, struct buf *out)
{
	static const char *const states[] = {
		"Creating", "Succeeded", "Succeeded", "Succeeded", "Succeeded", "Deleting"
	};

	buf_text(out, "{\"value\":[");
	for (size_t i = 0; i < c->count; i++)
		buf_printf(out,
			   "%s{\"name\":\"%s\",\"zones\":[\"1\"],\"properties\":{\"resourceId\":\"/subscriptions/S/"
			   "resourceGroups/MC_rg/providers/Microsoft.Compute/virtualMachineScaleSets/s/virtualMachines/"
			   "%zu\","
			   "\"provisioningState\":\"%s\"}}",
			   i ? "," : "", c->machines[i].id, CLOUD_MACHINES - i, states[c->machines[i].state]);
	buf_text(out, "]}");
}

static void refuse(struct server_answer *a, const struct error *e)
{
	static const struct {
		enum error_kind kind;
		int status;
		const char *code;
	} refusals[] = {
		{ ERROR_STOCKOUT, 400, "SkuNotAvailable" },
		{ ERROR_QUOTA, 400, "QuotaExceeded" },
		{ ERROR_THROTTLED, 429, "SubscriptionRequestsThrottled" },
		{ ERROR_AUTH, 403, "AuthorizationFailed" },
		{ ERROR_NOT_FOUND, 404, "NotFound" },
		{ ERROR_UNAVAILABLE, 503, "ServiceUnavailable" },
		{ ERROR_INVALID, 400, "InvalidParameter" },
	};

	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
		if (refusals[i].kind == e->kind) {
			a->status = refusals[i].status;
			buf_printf(&a->body, "{\"error\":{\"code\":\"%s\",\"message\":\"%s\"}}", refusals[i].code,
				   e->message);
		}
	if (e->kind == ERROR_THROTTLED)
		a->headers[0] = "Retry-After: 7";
}

/* A lower count stops machines, the first that run. */
static bool put(struct wire_server *s, int64_t count, struct error *e)
{
	const char *ids[CLOUD_MACHINES];
	struct provider_call call = { .verb = PROVIDER_GROW, .desired = count, .token = s->token, .ids = ids };
	int64_t fewer = s->cloud->desired - count;

	for (size_t i = 0; i < s->cloud->count && fewer > 0; i++)
		if (s->cloud->machines[i].state == MACHINE_RUNNING) {
			call.verb = PROVIDER_STOP;
			ids[call.id_count++] = s->cloud->machines[i].id;
			fewer--;
		}
	return cloud_do(s->cloud, &call, e);
}

static bool change(struct wire_server *s, const struct server_request *q, struct error *e)
{
	CLEANUP(arena_release) struct arena scratch = { 0 };
	struct order order = { 0 };
	struct provider_call call = { .verb = PROVIDER_REMOVE, .token = s->token };

	s->was_aborted = strstr(q->path, "/abort") != NULL;
	if (s->was_aborted)
		return true;
	if (!text_decode(&order_record, q->body, q->body_len, &scratch, &order, e))
		return false;
	snprintf(s->token, sizeof s->token, "t%d", ++s->changes);
	if (strcmp(q->method, "PUT") == 0)
		return put(s, order.count, e);
	call.ids = order.names.items;
	call.id_count = order.names.count;
	return cloud_do(s->cloud, &call, e);
}

static void answer(const struct server_request *q, struct server_answer *a)
{
	struct wire_server *s = q->user;
	struct error e = { 0 };

	a->content_type = "application/json";
	if (strstr(q->path, "/oauth2/")) {
		buf_text(&a->body, "{\"token_type\":\"Bearer\",\"expires_in\":3599,\"access_token\":\"t0ken\"}");
	} else if (strncmp(q->path, POOLS "g", sizeof POOLS) != 0) {
		s->cloud->answered++;
		error_set(&e, ERROR_NOT_FOUND, "there is no such pool");
	} else if (strcmp(q->method, "GET") == 0 && strstr(q->path, "/machines")) {
		describe_machines(s->cloud, &a->body);
	} else if (strcmp(q->method, "GET") == 0) {
		s->cloud->answered++;
		describe_pool(s, &a->body);
	} else if (change(s, q, &e)) {
		a->status = strcmp(q->method, "PUT") == 0 ? 201 : 202;
		snprintf(s->operation, sizeof s->operation, "Azure-AsyncOperation: %s/operations/1", s->url);
		a->headers[0] = s->operation;
		a->headers[1] = "Retry-After: 0";
		if (a->status == 201)
			describe_pool(s, &a->body);
	}
	if (e.kind != ERROR_NONE)
		refuse(a, &e);
}

static struct wire_server *open_server(struct loop *loop, struct modelled_cloud *cloud)
{
	static const char *const methods[] = { "GET", "PUT", "POST" };
	struct wire_server *s = calloc(1, sizeof *s);
	struct error e;

	assert_non_null(s);
	s->cloud = cloud;
	for (size_t i = 0; i < 3; i++)
		s->routes[i] = (struct server_route){ methods[i], "/*", answer, s };
	s->server = server_open(
		loop, &(struct server_settings){ .listen = "127.0.0.1:0", .routes = s->routes, .route_count = 3 }, &e);
	assert_non_null(s->server);
	snprintf(s->url, sizeof s->url, "http://127.0.0.1:%d", server_port(s->server));
	setenv("AZURE_TENANT_ID", "tenant", 1);
	setenv("AZURE_CLIENT_ID", "client", 1);
	setenv("AZURE_CLIENT_SECRET", "secret", 1);
	setenv("AZURE_AUTHORITY_HOST", s->url, 1);
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
	buf_printf(
		out,
		"{\"subscription\":\"00000000-0000-0000-0000-000000000000\",\"resourceGroup\":\"rg\",\"cluster\":\"c\","
		"\"resourceManager\":\"%s/\"}",
		url);
}

#define SETTINGS(more) "{\"subscription\":\"s\",\"resourceGroup\":\"rg\",\"cluster\":\"c\"" more "}"

static const char *const bad_settings[] = { "",
					    "{",
					    "[]",
					    "{}",
					    "{\"subscription\":\"s\",\"resourceGroup\":\"rg\"}",
					    "{\"subscription\":3,\"resourceGroup\":\"rg\",\"cluster\":\"c\"}",
					    "{\"subscription\":\"s/../t\",\"resourceGroup\":\"rg\",\"cluster\":\"c\"}",
					    "{\"subscription\":\"\",\"resourceGroup\":\"rg\",\"cluster\":\"c\"}",
					    "{\"subscription\":\"s\",\"resourceGroup\":\"r?\",\"cluster\":\"c\"}",
					    SETTINGS(",\"pool\":\"a-b\""),
					    SETTINGS(",\"pool\":\"averylongname\""),
					    SETTINGS(",\"resourceManager\":\"here\""),
					    SETTINGS(",\"resourceManager\":\"http://management.azure.com\""),
					    SETTINGS(",\"resourceManager\":\"https://management.azure.com.example\""),
					    SETTINGS(",\"resourceManager\":\"https://management.azure.com@example\""),
					    SETTINGS(",\"resourceManager\":\"http://127.0.0.1.example\""),
					    NULL };

#define POOL(rest) "{\"name\":\"g\",\"properties\":{" rest "}}"

static const char *const spoiled[] = {
	"",
	"null",
	"[]",
	"{}",
	"<html></html>",
	POOL(""),
	POOL("\"count\":null"),
	POOL("\"count\":-1"),
	POOL("\"count\":1001"),
	POOL("\"count\":1.5"),
	POOL("\"count\":1e99"),
	POOL("\"count\":\"1\""),
	POOL("\"count\":1,\"eTag\":3"),
	POOL("\"count\":1,\"eTag\":\"a\\r\\nb\""),
	POOL("\"count\":1,\"provisioningState\":[]"),
	POOL("\"count\":1,\"availabilityZones\":\"1\""),
	POOL("\"count\":1,\"enableAutoScaling\":\"yes\""),
	POOL("\"count\":1,\"enableAutoScaling\":true"),
	POOL("\"count\":1,\"osType\":\"Windows\""),
	POOL("\"count\":1,\"mode\":\"Gateway\""),
	POOL("\"count\":1,\"type\":\"AvailabilitySet\""),
	POOL("\"count\":1,\"powerState\":{\"code\":\"Stopped\"}"),
	POOL("\"count\":1,\"type\":\"VirtualMachines\""),
	POOL("\"type\":\"VirtualMachines\",\"virtualMachinesProfile\":{\"scale\":{\"manual\":[{\"count\":-3}]}}"),
	POOL("\"count\":1") POOL("\"count\":1"),
	NULL,
};

static const char *const machines[] = {
	"{\"value\":[{\"name\":\"a\",\"properties\":{\"resourceId\":\"/x/0\"},\"zones\":null},{\"name\":\"b\"}],"
	"\"nextLink\":null}",
	NULL,
};

static const struct wire aks = {
	.provider = "aks",
	.open = open_server,
	.close = close_server,
	.url = server_url,
	.settings = write_settings,
	.bad_settings = bad_settings,
	.described = POOL("\"count\":3,\"provisioningState\":\"Failed\",\"new\":{\"x\":[1,null]},\"status\":{"
			  "\"provisioningError\":{\"code\":\"ReconcileVMSSAgentPoolFailed\",\"details\":[{\"code\":"
			  "\"ZonalAllocationFailed\",\"message\":\"none in zone 2\"}]}}"),
	.described_more = machines,
	.max = 1000,
	.spoiled = spoiled,
};

int main(void)
{
	return conformance_run(&aks);
}
