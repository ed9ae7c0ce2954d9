/*
 * Groups of the world's cloud as Azure's Resource Manager shows them: agent pools, written under their eTag, one
 * operation at a time, each answered long before it is over.
 */
#include "tests/world/cloud.h"
#include "tests/world/value.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { IDS = 64 };

static void refuse(struct wire_call *c, long status, const char *code)
{
	char text[200];

	snprintf(text, sizeof text, "{\"error\":{\"code\":\"%s\",\"message\":\"on purpose\"}}", code);
	wire_answer(c, status, status == 429 ? "Retry-After: 9" : NULL, text);
}

static void write_time(millis at, char text[32])
{
	time_t seconds = (time_t)(wire_host_wall(CLOUD_ARM, at) / SECOND);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

int64_t cloud_aks_number(const struct cloud_machine *m)
{
	return strtoll(strstr(m->id, "vmss") + strlen("vmss"), NULL, 16);
}

static const char *state_of(const struct cloud_group *g)
{
	const struct cloud_operation *o = &g->operation;

	if (!o->state)
		return "Succeeded";
	if (!o->is_over)
		return o->state;
	return !strcmp(o->state, "Canceling") ? "Canceled" : o->has_failed ? "Failed" : "Succeeded";
}

/* Why the last of it failed, as an error of the Resource Manager's. */
static const char *problem_of(const struct cloud_group *g)
{
	const struct cloud_failure *f = &g->failures[(g->failure_count + CLOUD_FAILURES - 1) % CLOUD_FAILURES];

	return g->failure_count && f->is_quota
		       ? "{\"code\":\"QuotaExceeded\",\"message\":\"Operation could not be completed as it results in "
			 "exceeding approved Total Regional Cores quota.\"}"
		       : "{\"code\":\"AllocationFailed\",\"message\":\"Allocation failed. We do not have sufficient "
			 "capacity for the requested VM size in this region.\"}";
}

/* "nodeLabels":{"KEY":"VALUE"}, "nodeTaints":["KEY=VALUE:EFFECT"]; absent without. */
static void write_marks(const struct cloud_group *g, bool are_taints, struct buf *out)
{
	const char *between = are_taints ? ",\"nodeTaints\":[" : ",\"nodeLabels\":{";
	bool has_some = false;

	for (const struct cloud_mark *m = g->marks; m && m->key; m++) {
		if (are_taints != (m->effect != NULL))
			continue;
		if (are_taints)
			buf_printf(out, "%s\"%s=%s:%s\"", between, m->key, m->value, m->effect);
		else
			buf_printf(out, "%s\"%s\":\"%s\"", between, m->key, m->value);
		between = ",";
		has_some = true;
	}
	if (has_some)
		buf_text(out, are_taints ? "]" : "}");
}

static void write_pool(const struct cloud_group *g, struct buf *out)
{
	buf_printf(out,
		   "{\"id\":\"/s\",\"name\":\"%s\",\"type\":\"Microsoft.ContainerService/managedClusters/agentPools\","
		   "\"properties\":{\"eTag\":\"e%" PRId64 "\",\"count\":%" PRId64
		   ",\"vmSize\":\"%s\",\"mode\":\"User\",\"type\":\"VirtualMachineScaleSets\",\"osType\":\"Linux\","
		   "\"powerState\":{\"code\":\"Running\"},\"provisioningState\":\"%s\"",
		   g->name, g->operation.number, g->desired, g->instance_type, state_of(g));
	write_marks(g, false, out);
	write_marks(g, true, out);
	if (g->is_spot)
		buf_text(out, ",\"scaleSetPriority\":\"Spot\"");
	if (g->deallocates)
		buf_printf(out, ",\"scaleDownMode\":\"Deallocate\",\"availabilityZones\":[\"1\"%s]",
			   g->has_zones ? ",\"2\"" : "");
	if (g->operation.is_over && g->operation.has_failed && strcmp(g->operation.state, "Canceling") != 0)
		buf_printf(out, ",\"status\":{\"provisioningError\":%s}", problem_of(g));
	buf_text(out, "}}");
}

static void answer_pool(struct wire_call *c, const struct cloud_group *g)
{
	struct buf text = { .cap = 1 << 20 };

	write_pool(g, &text);
	wire_answer(c, 200, NULL, text.text);
	buf_release(&text);
}

static void answer_machines(struct wire_call *c, const struct cloud_group *g)
{
	struct buf text = { .cap = (size_t)8 << 20 };
	char at[32], id[256];

	buf_text(&text, "{\"value\":[");
	for (const struct cloud_machine *m = g->machines; m; m = m->next) {
		write_time(m->launched, at);
		cloud_provider_id(m, false, id);
		buf_printf(&text,
			   "%s{\"name\":\"%s\",\"properties\":{\"resourceId\":\"%s\",\"provisioningState\":\"%s\","
			   "\"status\":{\"creationTimestamp\":\"%s\"},\"hardware\":{\"vmSize\":\"%s\"},\"network\":{"
			   "\"ipAddresses\":[%s]}}}",
			   m == g->machines ? "" : ",", m->id, id + strlen("azure://"),
			   m->step == STEP_PENDING	 ? "Creating"
			   : m->step == STEP_TERMINATING ? "Deleting"
							 : "Succeeded",
			   at, g->instance_type, m->step == STEP_PENDING ? "" : "{\"ip\":\"10.9.0.4\"}");
	}
	buf_text(&text, "]}");
	wire_answer(c, 200, NULL, text.text);
	buf_release(&text);
}

static void begin_operation(struct cloud_group *g, const char *state, millis lasts)
{
	g->operation = (struct cloud_operation){ .number = g->operation.number + 1,
						 .state = state,
						 .ends = lasts ? wire_now() + lasts : 0 };
}

static void accept(struct wire_call *c, const struct cloud_group *g, long status)
{
	char headers[300];
	struct buf text = { .cap = 1 << 20 };

	snprintf(headers, sizeof headers,
		 "Azure-AsyncOperation: " CLOUD_ARM "/subscriptions/s/providers/Microsoft.ContainerService/locations/l/"
		 "operations/%s-%" PRId64 "?api-version=2017-08-31\nRetry-After: 5",
		 g->name, g->operation.number);
	if (status == 201)
		write_pool(g, &text);
	wire_answer(c, status, headers, text.text ? text.text : "");
	buf_release(&text);
}

static bool is_free(struct wire_call *c, struct cloud_group *g)
{
	if (g->cluster_upgrades) {
		g->put_off++;
		wire_answer(
			c, 409, NULL,
			"{\"code\":\"OperationNotAllowed\",\"details\":null,\"message\":\"Operation is not allowed "
			"because there's an in progress upgrade managed cluster operation on the managed cluster "
			"started "
			"at 2026-01-05T00:10:00Z. Please wait for it to finish before starting a new operation. See "
			"https://aka.ms/aks-pending-operation for more details\",\"subcode\":\"\"}");
		return false;
	}
	if (!g->operation.state || g->operation.is_over)
		return true;
	refuse(c, 409, "OperationNotAllowed");
	return false;
}

static void end_call(struct wire_call *c, const struct cloud_call *call, const char *code, long status)
{
	if (call->is_lost)
		wire_cut(c);
	else if (call->status != 202)
		refuse(c, !strcmp(code, "InvalidParameter") ? 400 : 409,
		       !strcmp(code, "InsufficientCapacity") ? "AllocationFailed" : code);
	else
		accept(c, call->group, status);
}

/* What a lower count stops: the highest numbers, and in several zones whatever it likes. */
static size_t choose_to_stop(const struct cloud_group *g, int64_t count, const char *ids[IDS])
{
	const struct cloud_machine *machines[IDS];
	size_t there = 0, chosen = 0;

	for (const struct cloud_machine *m = g->machines; m && there < IDS; m = m->next)
		if (m->is_to_run && m->step != STEP_TERMINATING)
			machines[there++] = m;
	for (size_t left = there; (int64_t)left > count; left--) {
		size_t at = g->has_zones ? (size_t)(random_next(wire_random()) % left) : left - 1;
		ids[chosen++] = machines[at]->id;
		machines[at] = machines[left - 1];
	}
	return chosen;
}

static void put_pool(struct wire_call *c, struct cloud_group *g)
{
	struct value *body = value_parse(c->body, strlen(c->body));
	struct cloud_call call = { .at = wire_now(),
				   .from = c->from,
				   .group = g,
				   .token = "",
				   .asked = value_int(body, "properties>count"),
				   .is_again = c->is_again };
	char etag[32];
	const char *code = "", *ids[IDS];

	call.verb = call.asked < g->desired ? "lower" : call.asked == g->desired ? "retry" : "grow";
	if (call.asked < g->desired && g->deallocates) {
		call.ids = ids;
		call.id_count = choose_to_stop(g, call.asked, ids);
		call.verb = call.id_count ? "stop" : "lower";
	}
	value_free(body);
	snprintf(etag, sizeof etag, "e%" PRId64, g->operation.number);
	if (*c->if_match && strcmp(c->if_match, etag) != 0) {
		refuse(c, 412, "PreconditionFailed");
		return;
	}
	if (!is_free(c, g))
		return;
	cloud_change(&call, "", &code);
	if (call.status == 202)
		begin_operation(g, "Scaling", 0);
	end_call(c, &call, code, 201);
}

static void delete_machines(struct wire_call *c, struct cloud_group *g)
{
	struct value *body = value_parse(c->body, strlen(c->body));
	const struct value *names = value_at(body, "machineNames");
	const char *ids[IDS], *code = "";
	struct cloud_call call = { .at = wire_now(),
				   .from = c->from,
				   .group = g,
				   .verb = "remove",
				   .token = "",
				   .asked = -1,
				   .ids = ids,
				   .is_again = c->is_again };

	for (const struct value *m = names ? names->first : NULL; m && call.id_count < IDS; m = m->next)
		ids[call.id_count++] = m->text;
	if (is_free(c, g)) {
		cloud_change(&call, "", &code);
		if (call.status == 202)
			begin_operation(g, "Updating", 0);
		end_call(c, &call, code, 202);
	}
	value_free(body);
}

static void abort_operation(struct wire_call *c, struct cloud_group *g)
{
	if (!g->operation.state || g->operation.is_over) {
		refuse(c, 409, "OperationNotAllowed");
		return;
	}
	begin_operation(g, "Canceling", 15 * SECOND);
	accept(c, g, 202);
}

/* ".../operations/NAME-NUMBER?..." */
static void answer_operation(struct wire_call *c, const char *name)
{
	char pool[32], text[600], ended[32];
	const char *dash = strchr(name, '-');

	snprintf(pool, sizeof pool, "%.*s", dash ? (int)(dash - name) : 0, name);
	struct cloud_group *g = cloud_group_named(pool, CLOUD_AKS);
	if (!g || !dash) {
		refuse(c, 404, "NotFound");
		return;
	}
	const struct cloud_operation *o = &cloud_shown(g)->operation;
	int64_t asked = strtoll(dash + 1, NULL, 10);
	bool is_over = o->number > asked || o->is_over, has_failed = o->number == asked && o->is_over && o->has_failed;
	write_time(wire_now(), ended);
	snprintf(text, sizeof text, "{\"status\":\"%s\"%s%s%s%s%s}",
		 !is_over     ? "InProgress"
		 : has_failed ? "Failed"
			      : "Succeeded",
		 is_over ? ",\"endTime\":\"" : "", is_over ? ended : "", is_over ? "\"" : "",
		 has_failed ? ",\"error\":" : "", has_failed ? problem_of(g) : "");
	wire_answer(c, 200, NULL, text);
}

static void serve_pool(struct wire_call *c, const char *from)
{
	char name[32];
	size_t len = strcspn(from, "/?");
	const char *rest = from + len;

	snprintf(name, sizeof name, "%.*s", (int)len, from);
	struct cloud_group *g = cloud_group_named(name, CLOUD_AKS);
	if (!g) {
		refuse(c, 404, "NotFound");
		return;
	}
	if (cloud_spoils(c, g, refuse))
		return;
	bool is_get = !strcmp(c->method, "GET");
	if (*rest != '/' && is_get)
		answer_pool(c, cloud_shown(g));
	else if (*rest != '/')
		put_pool(c, g);
	else if (!strncmp(rest, "/machines?", 10))
		answer_machines(c, cloud_shown(g));
	else if (!strncmp(rest, "/deleteMachines?", 16))
		delete_machines(c, g);
	else if (!strncmp(rest, "/abort?", 7))
		abort_operation(c, g);
	else
		refuse(c, 404, "NotFound");
}

static void serve(struct wire_call *c)
{
	const char *pool = strstr(c->path, "/agentPools/"), *operation = strstr(c->path, "/operations/");

	cloud_advance();
	if (pool)
		serve_pool(c, pool + strlen("/agentPools/"));
	else if (operation)
		answer_operation(c, operation + strlen("/operations/"));
	else
		refuse(c, 404, "NotFound");
}

static void serve_token(struct wire_call *c)
{
	wire_answer(c, 200, NULL, "{\"token_type\":\"Bearer\",\"expires_in\":3599,\"access_token\":\"t.e30.s\"}");
}

void cloud_aks_begin(void)
{
	wire_host(CLOUD_ARM, serve);
	wire_host("https://login.microsoftonline.com", serve_token);
}
