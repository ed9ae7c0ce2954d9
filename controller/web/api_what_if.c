/* /api/v1/what-if: what another objective would have come to. */
#include "base/json.h"
#include "base/quantity.h"
#include "controller/manifest/variation.h"
#include "controller/web/api_call.h"
#include "controller/web/what_if.h"

#include <stdio.h>
#include <string.h>

static const millis LONGEST = 31 * DAY, USUAL = 7 * DAY;

static const char *const states[] = { "queued", "running", "done", "failed", "cancelled", NULL };

static const char *const met_words[] = { "met", "missed", NULL };

struct figure_view {
	struct what_if_figures f;
	int64_t late_ppm, allowed_ppm;
	const char *met;
};
static const struct record_member figure_members[] = {
	{ "requests", RECORD_NUMBER(figure_view, f.requests, 6), .may_be_null = true, .help = "that started" },
	{ "late", RECORD_NUMBER(figure_view, f.late, 6), .may_be_null = true,
	  .help = "of these: waited longer than the objective" },
	{ "lateShare", RECORD_NUMBER(figure_view, late_ppm, 6), .may_be_null = true, .help = "late over requests" },
	{ "allowedShare", RECORD_NUMBER(figure_view, allowed_ppm, 6), .may_be_null = true,
	  .help = "that the objective allows to be late; null without one" },
	{ "objective", RECORD_TEXT(figure_view, met), .may_be_null = true, .choices = met_words,
	  .help = "whether lateShare is at most allowedShare; null where either is not known" },
	{ "gpuHours", RECORD_NUMBER(figure_view, f.gpu_hours, 6), .may_be_null = true, .help = "billed" },
	{ "dollars", RECORD_NUMBER(figure_view, f.dollars, 6), .may_be_null = true,
	  .help = "what they cost, stopped machines included" },
	{ "shadowDollars", RECORD_NUMBER(figure_view, f.by_shadows, 6), .may_be_null = true,
	  .help = "what the price of the objective, as GET .../rules has it, comes to over the same time: of all the "
		  "record, and without floors, limits, failed starts and drains; null where it has none" },
	{ "machinesStarted", RECORD_NUMBER(figure_view, f.starts, 6), .may_be_null = true,
	  .help = "that the plans asked for" },
};
static const struct record_shape figure_shape = RECORD_SHAPE("WhatIfFigures", figure_view, figure_members);

struct result_view {
	struct figure_view recorded, modelled, changed;
};
static const struct record_member result_members[] = {
	{ "recorded", RECORD_OBJECT(result_view, recorded, figure_shape), .help = "as it was" },
	{ "modelled", RECORD_OBJECT(result_view, modelled, figure_shape),
	  .help = "by a model with the settings of the time, mean of five draws of chance: how far it is from recorded "
		  "says how far to believe it" },
	{ "changed", RECORD_OBJECT(result_view, changed, figure_shape),
	  .help = "by the model with the other settings, in the same draws: compare it with modelled" },
};
static const struct record_shape result_shape = RECORD_SHAPE("WhatIfResult", result_view, result_members);

static const struct record_member request_members[] = {
	{ "pool", RECORD_CHARS(what_if_request, pool), .help = "NAMESPACE/NAME" },
	{ "objective", RECORD_CHARS(what_if_request, objective), .empty_is_null = true,
	  .help = "queue wait and attainment, like 2s,99.5%" },
	{ "violationCost", RECORD_CHARS(what_if_request, violation_cost), .empty_is_null = true,
	  .help = "dollars a late request" },
	{ "budgetDollarsPerHour", RECORD_CHARS(what_if_request, budget), .empty_is_null = true, .help = "dollars" },
	{ "max", RECORD_CHARS(what_if_request, max), .empty_is_null = true, .help = "replicas" },
	{ "from", RECORD_TIME(what_if_request, from), .help = "ticks after this time" },
	{ "to", RECORD_TIME(what_if_request, to), .help = "up to this time" },
};
static const struct record_shape request_shape = RECORD_SHAPE("WhatIfRequest", what_if_request, request_members);

struct job_view {
	char id[32];
	struct what_if j;
	const char *state, *message;
	struct result_view figures;
	const struct result_view *result;
};
static const struct record_member job_members[] = {
	{ "id", RECORD_CHARS(job_view, id), .help = "of the job" },
	{ "state", RECORD_TEXT(job_view, state), .help = "how far it came", .choices = states },
	{ "pool", RECORD_CHARS(job_view, j.request.pool), .help = "NAMESPACE/NAME" },
	{ "request", RECORD_OBJECT(job_view, j.request, request_shape), .help = "what was asked" },
	{ "progress", RECORD_NUMBER(job_view, j.percent, 2), .help = "0 to 1" },
	{ "askedAt", RECORD_TIME(job_view, j.asked_at), .help = "when it came" },
	{ "endedAt", RECORD_TIME(job_view, j.ended_at), .may_be_null = true, .help = "null: has not ended" },
	{ "result", RECORD_POINTER(job_view, result, result_shape), .may_be_null = true, .help = "when it is done" },
	{ "message", RECORD_TEXT(job_view, message), .may_be_null = true, .help = "why it failed" },
};
static const struct record_shape job_shape = RECORD_SHAPE("WhatIf", job_view, job_members);

static const struct record_member list_members[] = {
	{ "items", RECORD_LIST_APART(job_shape), .help = "newest first; those that ended are kept for a while" },
};
static const struct record_shape list_shape = { .name = "WhatIfs", .members = list_members, .count = 1 };

/* --- writing --- */

static struct figure_view view_figures(const struct what_if_figures *f)
{
	bool has_share = f->requests != ABSENT && f->late != ABSENT && f->requests > 0;

	int64_t share = has_share ? (int64_t)((__int128)f->late * 1000000 / f->requests) : ABSENT;
	int64_t allowed = f->allowed == ABSENT ? ABSENT : f->allowed / 100;
	bool is_known = share != ABSENT && allowed != ABSENT;

	return (struct figure_view){ *f, share, allowed, !is_known ? NULL : met_words[share > allowed] };
}

static void write_job(const struct what_if *j, struct buf *out)
{
	struct job_view v = {
		.j = *j,
		.state = states[j->state],
		.message = j->state == WHAT_IF_FAILED ? j->message : NULL,
		.figures = { view_figures(&j->recorded), view_figures(&j->same), view_figures(&j->changed) },
	};

	snprintf(v.id, sizeof v.id, "%lld", (long long)j->id);
	v.result = j->state == WHAT_IF_DONE ? &v.figures : NULL;
	json_write_comma(out);
	record_write(&job_shape, &v, out);
}

/* --- asking --- */

static const char *or_null(const char *text)
{
	return *text ? text : NULL;
}

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

	if (!c->what_ifs)
		return api_refuse(c, e, 503, "what-if is not available here");
	if (!take_request(c, &r, e))
		return false;
	const struct what_if *j = what_ifs_add(c->what_ifs, &r, e);
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
	buf_text(out, "{\"items\":[");
	for (const struct what_if *j = c->what_ifs ? what_ifs_all(c->what_ifs) : NULL; j; j = j->next)
		write_job(j, out);
	buf_text(out, "]}\n");
	return true;
}

static bool find_job(struct api_call *c, const struct what_if **j, struct error *e)
{
	int64_t id;

	*j = NULL;
	if (c->what_ifs && fixed_parse(c->place[0], strlen(c->place[0]), 0, &id))
		*j = what_ifs_find(c->what_ifs, id);
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
	what_ifs_cancel(c->what_ifs, j->id);
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
	.answer = &job_shape,
	.write = write_asked,
	.status = 202,
};

const struct api_route api_route_what_if = {
	.method = "GET",
	.path = "/api/v1/what-if/{id}",
	.name = "getWhatIf",
	.summary = "One of them, with its progress and result",
	.answer = &job_shape,
	.write = write_one,
};

const struct api_route api_route_what_if_cancel = {
	.method = "DELETE",
	.path = "/api/v1/what-if/{id}",
	.name = "cancelWhatIf",
	.summary = "End one that waits or runs",
	.answer = &job_shape,
	.write = write_cancelled,
};
