/* The conformance of provider simulated, against a server that speaks its wire. */
#include "base/decode.h"
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
	struct server_route routes[2];
	struct modelled_cloud *cloud;
	char url[64];
};

struct order {
	const char *token;
	int64_t desired, size;
	struct decoded_list machines;
};

static const struct field id_fields[] = { { .path = "", .type = FIELD_STRING } };
static const struct record_spec id_record = { "", sizeof(const char *), id_fields, 1 };
static const struct field order_fields[] = {
	FIELD(struct order, token, FIELD_STRING, "token"),
	FIELD(struct order, desired, FIELD_INT, "desired"),
	FIELD(struct order, size, FIELD_INT, "size"),
	{ .path = "machines", .type = FIELD_LIST, .offset = offsetof(struct order, machines), .of = &id_record },
};
static const struct record_spec order_record = { "", sizeof(struct order), order_fields, 4 };

static void describe_cloud(const struct modelled_cloud *c, struct buf *out)
{
	buf_printf(out,
		   "{\"name\":\"g\",\"min\":%" PRId64 ",\"max\":%" PRId64 ",\"desired\":%" PRId64
		   ",\"standby_desired\":%" PRId64 ",\"machines\":[",
		   c->min, c->max, c->desired, c->standby);
	for (size_t i = 0; i < c->count; i++)
		buf_printf(out,
			   "%s{\"id\":\"%s\",\"provider_id\":\"simulated:///g/%s\",\"zone\":\"z1\",\"state\":\"%s\","
			   "\"goal\":\"%s\",\"launched_at\":1700000000000,\"state_since\":1700000000000}",
			   i ? "," : "", c->machines[i].id, c->machines[i].id, machine_state_name(c->machines[i].state),
			   c->machines[i].is_for_standby ? "standby" : "run");
	buf_text(out, "],\"failures\":[],\"operations\":[]}\n");
}

static void refuse(struct server_answer *a, const struct error *e)
{
	static const struct {
		enum error_kind kind;
		int status;
		const char *code;
	} refusals[] = {
		{ ERROR_STOCKOUT, 409, "InsufficientCapacity" },
		{ ERROR_QUOTA, 409, "QuotaExceeded" },
		{ ERROR_THROTTLED, 429, "Throttling" },
		{ ERROR_AUTH, 403, "AccessDenied" },
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

static bool read_call(const struct server_request *q, struct arena *a, struct provider_call *call, struct error *e)
{
	struct order order = { 0 };
	const char *verb = strchr(q->path + strlen("/v1/groups/"), '/');

	if (strncmp(q->path, "/v1/groups/g", 12) != 0 || (q->path[12] && q->path[12] != '/'))
		return error_set(e, ERROR_NOT_FOUND, "there is no such group");
	if (strcmp(q->method, "GET") == 0)
		return true;
	struct decode_plan *plan = decode_plan_new(&order_record);
	bool ok = decode_record(plan, q->body, q->body_len, a, &order, e);
	decode_plan_free(plan);
	while (verb && call->verb < PROVIDER_VERB_COUNT && strcmp(provider_verb_name(call->verb), verb + 1) != 0)
		call->verb++;
	call->token = order.token;
	call->desired = call->verb == PROVIDER_STANDBY ? order.size : order.desired;
	call->ids = order.machines.items;
	call->id_count = order.machines.count;
	return ok;
}

static void answer(const struct server_request *q, struct server_answer *a)
{
	CLEANUP(arena_release) struct arena scratch = { 0 };
	struct modelled_cloud *cloud = ((struct wire_server *)q->user)->cloud;
	struct provider_call call = { .verb = PROVIDER_DESCRIBE };
	struct error e = { 0 };

	a->content_type = "application/json";
	if (read_call(q, &scratch, &call, &e) && cloud_do(cloud, &call, &e))
		describe_cloud(cloud, &a->body);
	else
		refuse(a, &e);
}

static struct wire_server *open_server(struct loop *loop, struct modelled_cloud *cloud)
{
	struct wire_server *s = calloc(1, sizeof *s);
	struct error e;

	assert_non_null(s);
	s->cloud = cloud;
	s->routes[0] = (struct server_route){ "GET", "/v1/groups/*", answer, s };
	s->routes[1] = (struct server_route){ "POST", "/v1/groups/*", answer, s };
	s->server = server_open(
		loop, &(struct server_settings){ .listen = "127.0.0.1:0", .routes = s->routes, .route_count = 2 }, &e);
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
	buf_printf(out, "{\"endpoint\":\"%s/\"}", url);
}

static const char *const bad_settings[] = { "",
					    "{",
					    "[]",
					    "{}",
					    "{\"endpoint\":3}",
					    "{\"endpoint\":\"here\"}",
					    "{\"endpoint\":\"\"}",
					    "{\"endpoint\":\"http://127.0.0.1:1\",\"group\":1}",
					    NULL };

#define GROUP(rest)	   "{\"min\":0,\"max\":5,\"desired\":1,\"standby_desired\":0," rest "}"
#define MACHINE(id, state) "{\"id\":\"" id "\",\"state\":\"" state "\"}"

static const char *const spoiled[] = {
	"",
	"null",
	"[]",
	"{}",
	"<html></html>",
	GROUP("\"machines\":{}"),
	GROUP("\"machines\":[3]"),
	GROUP("\"machines\":[{}]"),
	GROUP("\"machines\":[" MACHINE("", "running") "]"),
	GROUP("\"machines\":[" MACHINE("a", "dancing") "]"),
	GROUP("\"machines\":[" MACHINE("a", "running") "," MACHINE("a", "stopped") "]"),
	GROUP("\"machines\":[{\"id\":\"a\",\"state\":\"running\",\"goal\":\"\"}]"),
	GROUP("\"machines\":[{\"id\":\"a\",\"state\":\"running\",\"goal\":\"dance\"}]"),
	GROUP("\"machines\":[{\"id\":\"a\",\"state\":\"running\",\"launched_at\":-1}]"),
	GROUP("\"machines\":[{\"id\":\"a\",\"state\":\"running\",\"launched_at\":\"now\"}]"),
	GROUP("\"machines\":[],\"failures\":[{\"id\":1}]"),
	GROUP("\"machines\":[],\"failures\":[{\"id\":1,\"code\":\"quota\",\"count\":-1}]"),
	"{\"min\":0,\"max\":5,\"desired\":-1,\"standby_desired\":0,\"machines\":[]}",
	"{\"min\":6,\"max\":5,\"desired\":1,\"standby_desired\":0,\"machines\":[]}",
	"{\"min\":0,\"max\":1e99,\"desired\":1,\"standby_desired\":0,\"machines\":[]}",
	"{\"min\":0,\"max\":5,\"desired\":1.5,\"standby_desired\":0,\"machines\":[]}",
	"{\"min\":0,\"max\":5,\"standby_desired\":0,\"machines\":[]}",
	GROUP("\"machines\":[]") GROUP("\"machines\":[]"),
	NULL,
};

static const struct wire simulated = {
	.provider = "simulated",
	.open = open_server,
	.close = close_server,
	.url = server_url,
	.settings = write_settings,
	.bad_settings = bad_settings,
	.described = GROUP("\"machines\":[" MACHINE("a", "running") "," MACHINE(
		"b", "waking") "],\"failures\":[{\"id\":2,\"at\":5,\"code\":\"stock-out\",\"message\":\"none\","
			       "\"count\":3}]"),
	.spoiled = spoiled,
};

int main(void)
{
	return conformance_run(&simulated);
}
