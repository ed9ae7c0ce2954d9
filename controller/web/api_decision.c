/* GET /api/v1/decisions/{tick}/{namespace}/{name}: one decision with all that it depended on. */
#include "base/quantity.h"
#include "controller/explain/explain.h"
#include "controller/web/api_lately.h"

#include <string.h>

static const struct api_member part_members[] = {
	{ "title", API_TEXT, .help = "Decided, Seen, Expected, Rule, Wished, Held by, It costs, Self-test" },
	{ "text", API_TEXT, .help = "whole sentences; every number stands in the record" },
};
static const struct api_shape part_shape = API_SHAPE("ExplanationPart", part_members);

static const struct api_member members[] = {
	{ "tick", API_COUNT, .help = "its number" },
	{ "at", API_TIME, .help = "its end" },
	{ "intervalSeconds", API_NUMBER, .help = "its length" },
	{ "namespace", API_TEXT, .help = "of the WarmPool" },
	{ "pool", API_TEXT, .help = "its name" },
	{ "policy", API_TEXT, .help = "what decided" },
	{ "objective", API_OBJECT, .help = "of that time", .of = &api_objective_shape },
	{ "previous", API_COUNT, .may_be_null = true, .help = "tick of the decision before" },
	{ "next", API_COUNT, .may_be_null = true, .help = "tick of the decision after" },
	{ "explanation", API_LIST, .help = "in sentences", .of = &part_shape },
	{ "decision", API_FIELDS, .help = "every number of the decision", .record = &pool_decision_info },
	{ "groups", API_OPEN_LIST,
	  .help = "per node group: its name, its price in micro-dollars, and every number of its decision" },
	{ "prices", API_OPEN_LIST, .help = "the price of every objective, loosest first" },
	{ "input", API_OPEN,
	  .help = "what the policy saw: fields, and the lists scrapes, groups, starts, events, deadlines" },
	{ "units", API_OPEN, .help = "the unit of every field, by record" },
};
static const struct api_shape shape = API_SHAPE("Decision", members);

static bool write_decision(struct api_call *c, struct buf *out, struct error *e)
{
	const struct api_fleet *fleet;
	struct tick_record r;
	const char *policy;
	size_t pool, place;
	int64_t tick;

	if (!fixed_parse(c->place[0], strlen(c->place[0]), 0, &tick))
		return api_refuse(c, e, 404, "tick: found '%.40s'; allowed: the number of a tick", c->place[0]);
	c->place[0] = c->place[1];
	c->place[1] = c->place[2];
	if (!api_pool(c, &pool, e) || !history_read(c->history, tick, pool, &r, e))
		return false;
	fleet = api_fleet_at(c, tick, e);
	if (!fleet || !history_fact(c->history, "policy", &c->arena, &policy, e))
		return false;
	if (!api_fleet_place(fleet, pool, &place))
		return api_refuse(c, e, 404, "that pool was not in the manifest at tick %lld", (long long)tick);
	const struct pool_spec *spec = &fleet->manifest.fleet.pools[place];
	const struct explained x = { &fleet->manifest.fleet, place, tick, r.now, &r.plan, 0 };
	buf_text(out, "{");
	member_count(out, "tick", tick);
	member_time(out, "at", r.now);
	member_scaled(out, "intervalSeconds", r.interval, 3);
	member_text(out, "namespace", spec->namespace);
	member_text(out, "pool", spec->name);
	member_text(out, "policy", policy);
	api_write_objective(spec, out);
	member_count(out, "previous", tick > c->span.first_tick ? tick - 1 : ABSENT);
	member_count(out, "next", tick < c->span.last_tick ? tick + 1 : ABSENT);
	buf_text(out, ",\n");
	explain_json_members(&x, &r.snapshot, out);
	buf_text(out, "}\n");
	return true;
}

const struct api_route api_route_decision = {
	.method = "GET",
	.path = "/api/v1/decisions/{tick}/{namespace}/{name}",
	.name = "getDecision",
	.summary = "One decision with its reasons and all that it depended on",
	.needs_history = true,
	.answer = &shape,
	.write = write_decision,
};
