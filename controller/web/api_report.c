/* GET /api/v1/report: the answers to what is asked first: objectives, money, and what happened. */
#include "controller/web/api_call.h"
#include "controller/web/api_incidents.h"
#include "state/attainment.h"
#include "state/held.h"

#include <stdlib.h>

struct window_view {
	struct attainment is;
	int64_t dollars_before;
	bool is_met;
};
static const struct record_member window_members[] = {
	{ "from", RECORD_TIME(window_view, is.from), .help = "rows of five minutes up to a day, else of an hour" },
	{ "isShort", RECORD_FLAG(window_view, is.is_short), .help = "the record begins later than from" },
	{ "requests", RECORD_COUNT(window_view, is.requests), .may_be_null = true, .help = "that started" },
	{ "late", RECORD_COUNT(window_view, is.late), .may_be_null = true,
	  .help = "of these: waited longer than the objective" },
	{ "share", RECORD_NUMBER(window_view, is.share_ppm, 6), .may_be_null = true, .help = "late over requests" },
	{ "isMet", RECORD_FLAG(window_view, is_met), .help = "no more was late than the objective allows" },
	{ "burnRate", RECORD_NUMBER(window_view, is.burn_milli, 3), .may_be_null = true,
	  .help = "share over what is allowed" },
	{ "budgetLeftRequests", RECORD_COUNT(window_view, is.budget_left), .may_be_null = true,
	  .help = "that may still be late; negative: overdrawn" },
	{ "dollars", RECORD_NUMBER(window_view, is.micro_dollars, 6), .may_be_null = true,
	  .help = "what it cost; null also where no price is given" },
	{ "gpuHours", RECORD_NUMBER(window_view, is.gpu_ms, 6), .may_be_null = true,
	  .help = "billed, stopped machines not" },
	{ "dollarsBefore", RECORD_NUMBER(window_view, dollars_before, 6), .may_be_null = true,
	  .help = "of as long a time before; null for today, and where that was not recorded whole" },
};
static const struct record_shape window_shape = RECORD_SHAPE("ReportWindow", window_view, window_members);

static const struct record_member day_members[] = {
	{ "from", RECORD_TIME(attainment_day, from), .help = "a midnight, or 24 hours before one" },
	{ "requests", RECORD_COUNT(attainment_day, requests), .may_be_null = true, .help = "that started" },
	{ "late", RECORD_COUNT(attainment_day, late), .may_be_null = true,
	  .help = "of these: waited longer than the objective" },
	{ "share", RECORD_NUMBER(attainment_day, share_ppm, 6), .may_be_null = true, .help = "late over requests" },
	{ "isOver", RECORD_FLAG(attainment_day, is_over), .help = "more was late than the objective allows" },
	{ "dollars", RECORD_NUMBER(attainment_day, micro_dollars, 6), .may_be_null = true,
	  .help = "what it cost; null also where no price is given" },
	{ "gpuHours", RECORD_NUMBER(attainment_day, gpu_ms, 6), .may_be_null = true,
	  .help = "billed, stopped machines not" },
};
static const struct record_shape day_shape = RECORD_SHAPE("ReportDay", attainment_day, day_members);

struct pool_view {
	const char *namespace, *name;
	struct api_objective objective;
	bool is_priced;
	struct window_view window[ATTAINMENT_WINDOWS];
	struct record_items days;
};
static const struct record_member pool_members[] = {
	{ "namespace", RECORD_TEXT(pool_view, namespace), .help = "of the pool" },
	{ "name", RECORD_TEXT(pool_view, name), .help = "of the pool" },
	{ "objective", RECORD_OBJECT(pool_view, objective, api_objective_shape), .help = "of the manifest in force" },
	{ "isPriced", RECORD_FLAG(pool_view, is_priced),
	  .help = "false: no node group of it has a pricePerHour, so it has GPU hours and no dollars" },
	{ "today", RECORD_OBJECT(pool_view, window[ATTAINMENT_TODAY], window_shape), .help = "since midnight" },
	{ "week", RECORD_OBJECT(pool_view, window[ATTAINMENT_WEEK], window_shape), .help = "the last 7 days" },
	{ "month", RECORD_OBJECT(pool_view, window[ATTAINMENT_MONTH], window_shape), .help = "the last 30 days" },
	{ "days", RECORD_LIST(pool_view, days, day_shape),
	  .help = "30 of them, the oldest first, today so far last; null where nothing was recorded" },
};
static const struct record_shape pool_shape = RECORD_SHAPE("ReportPool", pool_view, pool_members);

/* Who can lift a limit. */
static const char *const owners[] = { "manifest", "cloud", "cluster", "signals", "policy", NULL };

static const char *owner_of(enum limit limit)
{
	switch (limit) {
	case LIMIT_MIN:
	case LIMIT_MAX:
	case LIMIT_BUDGET:
	case LIMIT_RATE:
	case LIMIT_GROWTH:
	case LIMIT_OBSERVE:
	case LIMIT_PAUSED:
	case LIMIT_SHARE:
		return owners[0];
	case LIMIT_STOCKOUT:
	case LIMIT_QUOTA:
	case LIMIT_RESERVATION:
	case LIMIT_UNAVAILABLE:
		return owners[1];
	case LIMIT_PODS:
		return owners[2];
	case LIMIT_STALE:
		return owners[3];
	case LIMIT_NONE:
	case LIMIT_COOLDOWN:
	case LIMIT_QUEUE:
	case LIMIT_WHOLE_NODE:
	case LIMIT_GANG:
	case LIMIT_ASLEEP:
	case LIMIT_COUNT:
		break;
	}
	return owners[4];
}

struct held_view {
	const char *namespace, *pool, *limit, *owner;
	millis length;
};
static const struct record_member held_members[] = {
	{ "namespace", RECORD_TEXT(held_view, namespace), .help = "of the pool" },
	{ "pool", RECORD_TEXT(held_view, pool), .help = "its name" },
	{ "limit", RECORD_TEXT(held_view, limit), .help = "that shaped its decisions" },
	{ "owner", RECORD_TEXT(held_view, owner), .choices = owners, .help = "who can lift it" },
	{ "seconds", RECORD_NUMBER(held_view, length, 3), .help = "for so long, together" },
};
static const struct record_shape held_shape = RECORD_SHAPE("HeldTime", held_view, held_members);

enum { INCIDENTS_SHOWN = 5 };

struct report_view {
	millis at;
	struct record_items pools, held, incidents;
	int64_t incident_count;
};
static const struct record_member members[] = {
	{ "at", RECORD_TIME(report_view, at), .help = "end of the history" },
	{ "pools", RECORD_LIST(report_view, pools, pool_shape), .help = "of the manifest in force" },
	{ "held", RECORD_LIST(report_view, held, held_shape),
	  .help = "by limit, of the last 7 days, the longest first" },
	{ "incidents", RECORD_LIST(report_view, incidents, api_incident_shape), .help = "the newest, newest first" },
	{ "incidentCount", RECORD_COUNT(report_view, incident_count), .help = "all of the last 7 days" },
};
static const struct record_shape shape = RECORD_SHAPE("Report", report_view, members);

/* GPU hours in millionths; a price that nobody gave is no money. */
static void keep_spent(bool is_priced, int64_t *micro_dollars, int64_t *gpu_ms)
{
	if (!is_priced)
		*micro_dollars = ABSENT;
	if (*gpu_ms != ABSENT)
		*gpu_ms = (int64_t)((__int128)*gpu_ms * 10 / 36);
}

static bool read_pool(struct api_call *c, const struct api_fleet *fleet, size_t place, millis midnight,
		      struct pool_view *v, struct error *e)
{
	const struct pool_spec *spec = &fleet->manifest.fleet.pools[place];
	size_t pool = fleet->stretch.pools[place];
	bool is_priced = !fleet->manifest.fleet.pools[place].is_unpriced;
	struct attainment_report *r = arena_new(&c->arena, struct attainment_report);

	if (!attainment_report(c->history, &(struct attainment_question){ pool, spec, midnight, c->span.to }, r, e))
		return false;
	*v = (struct pool_view){ .namespace = spec->namespace,
				 .name = spec->name,
				 .objective = api_objective(spec),
				 .is_priced = is_priced,
				 .days = { r->days, ATTAINMENT_DAYS } };
	for (size_t i = 0; i < ATTAINMENT_DAYS; i++)
		keep_spent(is_priced, &r->days[i].micro_dollars, &r->days[i].gpu_ms);
	for (size_t i = 0; i < ATTAINMENT_WINDOWS; i++) {
		keep_spent(is_priced, &r->window[i].micro_dollars, &r->window[i].gpu_ms);
		v->window[i] = (struct window_view){ r->window[i], is_priced ? r->dollars_before[i] : ABSENT,
						     attainment_is_met(&r->window[i]) };
	}
	return true;
}

static bool read_pools(struct api_call *c, struct report_view *v, struct error *e)
{
	const struct api_fleet *fleet = api_fleet_at(c, c->span.last_tick, e);
	millis midnight;

	if (!fleet || !api_time_of(c, "midnight", c->span.to - c->span.to % DAY, &midnight, e))
		return false;
	if (midnight > c->span.to || midnight < c->span.to - 2 * DAY)
		return api_refuse(c, e, 400, "midnight: found a time that is not in the last two days of the history");
	struct pool_view *pools = arena_array(&c->arena, struct pool_view, fleet->stretch.pool_count + 1);
	for (size_t i = 0; i < fleet->stretch.pool_count; i++)
		if (!read_pool(c, fleet, i, midnight, &pools[i], e))
			return false;
	v->pools = (struct record_items){ pools, fleet->stretch.pool_count };
	return true;
}

static int by_length(const void *left, const void *right)
{
	const struct held_time *a = left, *b = right;

	if (a->length != b->length)
		return a->length > b->length ? -1 : 1;
	return a->pool != b->pool ? (a->pool > b->pool) - (a->pool < b->pool) : (int)a->limit - (int)b->limit;
}

static bool read_held(struct api_call *c, int64_t first, struct report_view *v, struct error *e)
{
	const struct history_pool *pools = history_pools(c->history, &(size_t){ 0 });
	struct held_time *held;
	size_t count;

	if (!held_read(c->history, (struct held_ticks){ first, c->span.last_tick }, &c->arena, &held, &count, e))
		return false;
	struct held_view *views = arena_array(&c->arena, struct held_view, count);
	if (count)
		qsort(held, count, sizeof *held, by_length);
	for (size_t i = 0; i < count; i++)
		views[i] = (struct held_view){ pools[held[i].pool].namespace, pools[held[i].pool].name,
					       limit_name(held[i].limit), owner_of(held[i].limit), held[i].length };
	v->held = (struct record_items){ views, count };
	return true;
}

static bool read_week(struct api_call *c, struct report_view *v, struct error *e)
{
	struct incident_question q = { .pool = ANY, .last = c->span.last_tick };

	return history_tick_at(c->history, c->span.to - 7 * DAY, &q.first, e) && read_held(c, q.first, v, e) &&
	       api_incidents(c, &q, INCIDENTS_SHOWN, &v->incidents, &v->incident_count, e);
}

static bool write_report(struct api_call *c, struct buf *out, struct error *e)
{
	struct report_view v = { .at = c->span.to };

	if (!read_pools(c, &v, e) || !read_week(c, &v, e))
		return false;
	record_write(&shape, &v, out);
	buf_text(out, "\n");
	return true;
}

static const struct api_parameter parameters[] = {
	{ "midnight", PARAMETER_TIME, .help = "when today began (default: midnight UTC before the end)" },
};

const struct api_route api_route_report = {
	.method = "GET",
	.path = "/api/v1/report",
	.name = "getReport",
	.summary = "Today, 7 and 30 days: objectives, cost, and the newest incidents",
	API_PARAMETERS(parameters),
	.needs_history = true,
	.answer = &shape,
	.write = write_report,
};
