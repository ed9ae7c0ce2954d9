/* /api/v1/what-if: what another objective would have come to. */
#include "controller/web/api_what_if.h"

#include "base/quantity.h"
#include "controller/manifest/variation.h"

#include <stdio.h>
#include <string.h>

#define DAY (24 * HOUR)
static const millis LONGEST = 31 * DAY, USUAL = 7 * DAY;

static const char *const states[] = { "queued", "running", "done", "failed", "cancelled", NULL };

static const struct api_member figure_members[] = {
	{ "requests", API_NUMBER, .may_be_null = true, .help = "that started" },
	{ "late", API_NUMBER, .may_be_null = true, .help = "of these: waited longer than the objective" },
	{ "lateShare", API_NUMBER, .may_be_null = true, .help = "late over requests" },
	{ "gpuHours", API_NUMBER, .may_be_null = true, .help = "billed" },
	{ "dollars", API_NUMBER, .may_be_null = true, .help = "what they cost, stopped machines included" },
	{ "machinesStarted", API_NUMBER, .may_be_null = true, .help = "that the plans asked for" },
};
static const struct api_shape figure_shape = API_SHAPE("WhatIfFigures", figure_members);

static const struct api_member result_members[] = {
	{ "recorded", API_OBJECT, .help = "as it was", .of = &figure_shape },
	{ "modelled", API_OBJECT,
	  .help = "by a model with the settings of the time: how far it is from recorded says how far to believe it",
	  .of = &figure_shape },
	{ "changed", API_OBJECT, .help = "by the model with the other settings: compare it with modelled",
	  .of = &figure_shape },
};
static const struct api_shape result_shape = API_SHAPE("WhatIfResult", result_members);

static const struct api_member request_members[] = {
	{ "pool", API_TEXT, .help = "NAMESPACE/NAME" },
	{ "objective", API_TEXT, .may_be_null = true, .help = "queue wait and attainment, like 2s,99.5%" },
	{ "violationCost", API_TEXT, .may_be_null = true, .help = "dollars a late request" },
	{ "budgetDollarsPerHour", API_TEXT, .may_be_null = true, .help = "dollars" },
	{ "max", API_TEXT, .may_be_null = true, .help = "replicas" },
	{ "from", API_TIME, .help = "ticks after this time" },
	{ "to", API_TIME, .help = "up to this time" },
};
static const struct api_shape request_shape = API_SHAPE("WhatIfRequest", request_members);

static const struct api_member members[] = {
	{ "id", API_TEXT, .help = "of the job" },
	{ "state", API_TEXT, .help = "how far it came", .choices = states },
	{ "pool", API_TEXT, .help = "NAMESPACE/NAME" },
	{ "request", API_OBJECT, .help = "what was asked", .of = &request_shape },
	{ "progress", API_NUMBER, .help = "0 to 1" },
	{ "askedAt", API_TIME, .help = "when it came" },
	{ "endedAt", API_TIME, .may_be_null = true, .help = "null: has not ended" },
	{ "result", API_OBJECT, .may_be_null = true, .help = "when it is done", .of = &result_shape },
	{ "message", API_TEXT, .may_be_null = true, .help = "why it failed" },
};
static const struct api_shape shape = API_SHAPE("WhatIf", members);

static const struct api_member list_members[] = {
	{ "items", API_LIST, .help = "newest first; those that ended are kept for a while", .of = &shape },
};
static const struct api_shape list_shape = API_SHAPE("WhatIfs", list_members);

/* --- writing --- */

static void write_figures(const char *name, const struct what_if_figures *f, struct buf *out)
{
	bool has_share = f->requests != ABSENT && f->late != ABSENT && f->requests > 0;

	member_object(out, name);
	member_scaled(out, "requests", f->requests, 6);
	member_scaled(out, "late", f->late, 6);
	member_scaled(out, "lateShare", has_share ? (int64_t)((__int128)f->late * 1000000 / f->requests) : ABSENT, 6);
	member_scaled(out, "gpuHours", f->gpu_hours, 6);
	member_scaled(out, "dollars", f->dollars, 6);
	member_scaled(out, "machinesStarted", f->starts, 6);
	bracket_end(out, '}');
}

static const char *or_null(const char *text)
{
	return *text ? text : NULL;
}

static void write_request(const struct what_if_request *r, struct buf *out)
{
	member_object(out, "request");
	member_text(out, "pool", r->pool);
	member_text(out, "objective", or_null(r->objective));
	member_text(out, "violationCost", or_null(r->violation_cost));
	member_text(out, "budgetDollarsPerHour", or_null(r->budget));
	member_text(out, "max", or_null(r->max));
	member_time(out, "from", r->from);
	member_time(out, "to", r->to);
	bracket_end(out, '}');
}

static void write_result(const struct what_if *j, struct buf *out)
{
	if (j->state != WHAT_IF_DONE) {
		member_text(out, "result", NULL);
		return;
	}
	member_object(out, "result");
	write_figures("recorded", &j->recorded, out);
	write_figures("modelled", &j->same, out);
	write_figures("changed", &j->changed, out);
	bracket_end(out, '}');
}

static void write_job(const struct what_if *j, struct buf *out)
{
	char id[32];

	snprintf(id, sizeof id, "%lld", (long long)j->id);
	item_begin(out);
	member_text(out, "id", id);
	member_text(out, "state", states[j->state]);
	member_text(out, "pool", j->request.pool);
	write_request(&j->request, out);
	member_scaled(out, "progress", j->percent, 2);
	member_time(out, "askedAt", j->asked_at);
	member_time(out, "endedAt", j->ended_at);
	write_result(j, out);
	member_text(out, "message", j->state == WHAT_IF_FAILED ? j->message : NULL);
	bracket_end(out, '}');
}

/* --- asking --- */

static bool copy(char *to, size_t room, const char *text)
{
	return snprintf(to, room, "%s", text ? text : "") < (int)room;
}

static bool take_times(struct api_call *c, const struct what_if_body *b, const struct history_stretch *stretch,
		       struct what_if_request *r, struct error *e)
{
	millis begun = c->span.from;

	if (stretch->from > c->span.first_tick && !history_tick_end(c->history, stretch->from, &begun, e))
		return false;
	r->to = c->span.to;
	r->from = 0;
	if ((b->to && !api_parse_time(&c->span, b->to, &r->to)) ||
	    (b->from && !api_parse_time(&c->span, b->from, &r->from)))
		return api_refuse(c, e, 400,
				  "from, to: found '%.40s' and '%.40s'; allowed: times such as 2026-05-10T08:00:00Z, "
				  "or -2h before the end of the history",
				  b->from ? b->from : "", b->to ? b->to : "");
	r->to = r->to < c->span.to ? r->to : c->span.to;
	if (!b->from)
		r->from = r->to - USUAL;
	/* What was decided by another manifest has no same settings to compare with. */
	r->from = r->from > begun ? r->from : begun - SECOND;
	/* Whole seconds, so that it can be told as a time. */
	r->from = r->from / SECOND * SECOND;
	r->to = r->to / SECOND * SECOND;
	if (r->from >= r->to)
		return api_refuse(c, e, 400,
				  "from: found a time that is not before to, or before the manifest in force");
	return r->to - r->from <= LONGEST ||
	       api_refuse(c, e, 400, "from: found more than 31 days before to; ask for less");
}

/* What the command would refuse is refused at once. */
static bool check_change(struct api_call *c, const struct api_fleet *fleet, const struct what_if_request *r,
			 struct error *e)
{
	static const struct variation_names names = { "objective", "objective.violationCost", "budgetDollarsPerHour",
						      "max" };
	const struct variation v = { or_null(r->objective), or_null(r->violation_cost), or_null(r->budget),
				     or_null(r->max), &names };
	struct manifest varied = fleet->manifest;
	struct error why;

	if (!variation_is_any(&v))
		return api_refuse(c, e, 400, "body: nothing is changed; give objective, budgetDollarsPerHour or max");
	return variation_apply(&v, r->pool, &varied, &c->arena, &why) || api_refuse(c, e, 400, "%s", why.message);
}

static bool take_objective(struct api_call *c, const struct what_if_body *b, struct what_if_request *r, struct error *e)
{
	bool has_both = b->queue_wait && b->attainment;
	int n = snprintf(r->objective, sizeof r->objective, "%s%s%s", b->queue_wait ? b->queue_wait : "",
			 has_both ? "," : "", b->attainment ? b->attainment : "");

	if (n < 0 || n >= (int)sizeof r->objective ||
	    !copy(r->violation_cost, sizeof r->violation_cost, b->violation_cost) ||
	    !copy(r->budget, sizeof r->budget, b->budget) || !copy(r->max, sizeof r->max, b->max))
		return api_refuse(c, e, 400, "body: found a value that is too long");
	return !(*r->objective && *r->violation_cost) ||
	       api_refuse(c, e, 400, "objective: found violationCost beside queueWait or attainment; give one of them");
}

static bool take_request(struct api_call *c, struct what_if_request *r, struct error *e)
{
	const struct api_fleet *fleet = api_fleet_at(c, c->span.last_tick, e);
	struct what_if_body b;
	struct error why;
	size_t pool, place, count;

	if (!fleet)
		return false;
	if (!what_if_body_read(c->request->body, c->request->body_len, &c->arena, &b, &why))
		return api_refuse(c, e, 400, "%s", why.message);
	if (!b.pool)
		return api_refuse(c, e, 400,
				  "pool: found none; allowed: NAMESPACE/NAME of a pool; GET /api/v1/pools tells them");
	if (!history_find_pool(c->history, b.pool, &pool, &why) || !api_fleet_place(fleet, pool, &place))
		return api_refuse(
			c, e, 404,
			"pool: found '%.60s'; allowed: a pool of the manifest in force; GET /api/v1/pools tells them",
			b.pool);
	const struct history_pool *p = &history_pools(c->history, &count)[pool];
	if (snprintf(r->pool, sizeof r->pool, "%s/%s", p->namespace, p->name) >= (int)sizeof r->pool)
		return api_refuse(c, e, 400, "pool: its name is too long");
	return take_objective(c, &b, r, e) && take_times(c, &b, &fleet->stretch, r, e) && check_change(c, fleet, r, e);
}

static bool write_asked(struct api_call *c, struct buf *out, struct error *e)
{
	struct what_if_request r = { 0 };

	if (!api_what_ifs(c))
		return api_refuse(c, e, 503, "what-if is not available here");
	if (!take_request(c, &r, e))
		return false;
	const struct what_if *j = what_ifs_add(api_what_ifs(c), &r, e);
	if (!j) {
		c->status = e->kind == ERROR_THROTTLED ? 429 : 409;
		return false;
	}
	write_job(j, out);
	return true;
}

static bool write_all(struct api_call *c, struct buf *out, struct error *e)
{
	(void)e;
	buf_text(out, "{");
	member_list(out, "items");
	for (const struct what_if *j = api_what_ifs(c) ? what_ifs_all(api_what_ifs(c)) : NULL; j; j = j->next)
		write_job(j, out);
	buf_text(out, "]}\n");
	return true;
}

static bool find_job(struct api_call *c, const struct what_if **j, struct error *e)
{
	int64_t id;

	*j = NULL;
	if (api_what_ifs(c) && fixed_parse(c->place[0], strlen(c->place[0]), 0, &id))
		*j = what_ifs_find(api_what_ifs(c), id);
	if (*j)
		return true;
	(void)api_refuse(c, e, 404,
			 "no what-if '%.40s', or it is no longer kept; GET /api/v1/what-if tells those that there are",
			 c->place[0]);
	return false;
}

static bool write_one(struct api_call *c, struct buf *out, struct error *e)
{
	const struct what_if *j;

	if (!find_job(c, &j, e))
		return false;
	write_job(j, out);
	buf_text(out, "\n");
	return true;
}

static bool write_cancelled(struct api_call *c, struct buf *out, struct error *e)
{
	const struct what_if *j;

	if (!find_job(c, &j, e))
		return false;
	what_ifs_cancel(api_what_ifs(c), j->id);
	write_job(j, out);
	return true;
}

const struct api_route api_route_what_ifs = {
	.method = "GET",
	.path = "/api/v1/what-if",
	.name = "listWhatIfs",
	.summary = "What was asked, newest first",
	.answer = &list_shape,
	.write = write_all,
};

const struct api_route api_route_what_if_ask = {
	.method = "POST",
	.path = "/api/v1/what-if",
	.name = "askWhatIf",
	.summary = "Replay a stretch under one manifest with another objective, in the background",
	.needs_history = true,
	.body = "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"pool\"],\"properties\":{"
		"\"pool\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":500,\"description\":\"NAMESPACE/NAME\"},"
		"\"objective\":{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
		"\"queueWait\":{\"type\":\"string\",\"description\":\"like 2s, up to 1h\"},"
		"\"attainment\":{\"type\":\"string\",\"description\":\"like 99.5%, from 50% to 99.999%\"},"
		"\"violationCost\":{\"type\":\"number\",\"exclusiveMinimum\":0,\"maximum\":10000,\"description\":"
		"\"dollars a late request, in place of both\"}}},"
		"\"budgetDollarsPerHour\":{\"type\":\"number\",\"minimum\":0.01,\"maximum\":1000000},"
		"\"max\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000000,\"description\":\"replicas\"},"
		"\"from\":{\"type\":\"string\",\"description\":\"a time, or -2h before the end; default: 7 days before "
		"to\"},"
		"\"to\":{\"type\":\"string\",\"description\":\"a time; default: the end of the history\"}}}",
	.answer = &shape,
	.write = write_asked,
	.status = 202,
};

const struct api_route api_route_what_if = {
	.method = "GET",
	.path = "/api/v1/what-if/{id}",
	.name = "getWhatIf",
	.summary = "One of them, with its progress and result",
	.answer = &shape,
	.write = write_one,
};

const struct api_route api_route_what_if_cancel = {
	.method = "DELETE",
	.path = "/api/v1/what-if/{id}",
	.name = "cancelWhatIf",
	.summary = "End one that waits or runs",
	.answer = &shape,
	.write = write_cancelled,
};
