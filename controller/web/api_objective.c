/* GET /api/v1/pools/{namespace}/{name}/objective: late requests against what the objective allows. */
#include "controller/web/api_lately.h"
#include "state/cost.h"

#include <string.h>

#define DAY (24 * HOUR)

static const char *const names[] = { "1h", "6h", "1d", "3d", "28d", NULL };
static const millis lengths[] = { HOUR, 6 * HOUR, DAY, 3 * DAY, 28 * DAY };

static const struct api_member window_members[] = {
	{ "name", API_TEXT, .help = "the last so much of the history", .choices = names },
	{ "requests", API_COUNT, .may_be_null = true, .help = "that started" },
	{ "late", API_COUNT, .may_be_null = true, .help = "of these: waited longer than the objective" },
	{ "share", API_NUMBER, .may_be_null = true, .help = "late over requests" },
	{ "burnRate", API_NUMBER, .may_be_null = true,
	  .help = "share over what is allowed: 1 uses the budget up just in time" },
	{ "waitSecondsMax", API_NUMBER, .may_be_null = true, .help = "longest wait that the queue came to" },
};
static const struct api_shape window_shape = API_SHAPE("ObjectiveWindow", window_members);

static const struct api_member cause_members[] = {
	{ "cause", API_TEXT, .help = "what held the pool in the tick in which they were late" },
	{ "late", API_COUNT, .help = "requests" },
};
static const struct api_shape cause_shape = API_SHAPE("LateCause", cause_members);

static const struct api_member bound_members[] = {
	{ "lowerSeconds", API_NUMBER, .help = "it is more than this" },
	{ "upperSeconds", API_NUMBER, .may_be_null = true, .help = "and at most this; null: beyond the last edge" },
};
static const struct api_shape bound_shape = API_SHAPE("Bounds", bound_members);

static const struct api_member wait_members[] = {
	{ "p50", API_OBJECT, .may_be_null = true, .help = "median wait of the last minutes", .of = &bound_shape },
	{ "p99", API_OBJECT, .may_be_null = true, .help = "99th percentile", .of = &bound_shape },
};
static const struct api_shape wait_shape = API_SHAPE("Waits", wait_members);

static const struct api_member members[] = {
	{ "objective", API_OBJECT, .help = "of the manifest in force", .of = &api_objective_shape },
	{ "windows", API_LIST, .help = "shortest first, up to the end of the history", .of = &window_shape },
	{ "budgetLeft", API_NUMBER, .may_be_null = true,
	  .help = "share of the late requests of 28 days that have not been; negative: overdrawn" },
	{ "causes", API_LIST, .help = "of late requests in the last 7 days", .of = &cause_shape },
	{ "wait", API_OBJECT, .may_be_null = true, .help = "as model servers tell; null from a file alone",
	  .of = &wait_shape },
};
static const struct api_shape shape = API_SHAPE("ObjectiveReport", members);

static int64_t burn_milli(const struct pool_spec *spec, const struct level_sums *s)
{
	int64_t ppm = api_late_ppm(s);

	if (ppm == ABSENT || spec->violation_cost || spec->objective_late_ppm <= 0)
		return ABSENT;
	return ppm * 1000 / spec->objective_late_ppm;
}

static bool write_windows(struct api_call *c, const struct pool_spec *spec, size_t pool, struct buf *out,
			  struct error *e)
{
	struct level_sums s = { 0 };

	member_list(out, "windows");
	for (size_t i = 0; names[i]; i++) {
		if (!api_lately(c, pool, lengths[i], &s, e))
			return false;
		item_begin(out);
		member_text(out, "name", names[i]);
		member_count(out, "requests", s.ticks ? s.started : ABSENT);
		member_count(out, "late", s.ticks ? s.late : ABSENT);
		member_scaled(out, "share", api_late_ppm(&s), 6);
		member_scaled(out, "burnRate", burn_milli(spec, &s), 3);
		member_scaled(out, "waitSecondsMax", s.waited ? s.wait_ms_most : ABSENT, 3);
		bracket_end(out, '}');
	}
	bracket_end(out, ']');
	member_scaled(out, "budgetLeft", api_budget_left(spec, &s), 6); /* of the longest */
	return true;
}

static bool write_causes(struct api_call *c, size_t pool, struct buf *out, struct error *e)
{
	const struct hour_range week = { (c->span.to - 7 * DAY) / HOUR, c->span.to / HOUR };
	struct cost_total *totals;
	struct cost_sums sum = { 0 };
	size_t count;

	if (!history_cost_totals(c->history, week, &c->arena, &totals, &count, e))
		return false;
	for (size_t i = 0; i < count; i++)
		if (totals[i].pool == pool)
			cost_add(&sum, &totals[i].sums);
	member_list(out, "causes");
	for (int i = 0; i < LATE_CAUSE_COUNT; i++) {
		if (!sum.late_by[i])
			continue;
		item_begin(out);
		member_text(out, "cause", late_cause_name((enum late_cause)i));
		member_count(out, "late", sum.late_by[i]);
		bracket_end(out, '}');
	}
	bracket_end(out, ']');
	return true;
}

static void write_bounds(const char *name, const struct published_bounds *b, struct buf *out)
{
	if (!b->is_told) {
		member_text(out, name, NULL);
		return;
	}
	member_object(out, name);
	member_scaled(out, "lowerSeconds", b->lower_us, 6);
	member_scaled(out, "upperSeconds", b->upper_us == INT64_MAX ? ABSENT : b->upper_us, 6);
	bracket_end(out, '}');
}

static void write_waits(const struct published_pool *live, struct buf *out)
{
	if (!live) {
		member_text(out, "wait", NULL);
		return;
	}
	member_object(out, "wait");
	write_bounds("p50", &live->serving.wait[0], out);
	write_bounds("p99", &live->serving.wait[1], out);
	bracket_end(out, '}');
}

static bool write_objective(struct api_call *c, struct buf *out, struct error *e)
{
	const struct api_fleet *fleet = api_fleet_at(c, c->span.last_tick, e);
	size_t pool, place;

	if (!fleet || !api_pool(c, &pool, e))
		return false;
	if (!api_fleet_place(fleet, pool, &place))
		return api_refuse(c, e, 404, "pool %.100s/%.100s is no longer in the manifest, and has no objective",
				  c->place[0], c->place[1]);
	const struct pool_spec *spec = &fleet->manifest.fleet.pools[place];
	buf_text(out, "{");
	api_write_objective(spec, out);
	if (!write_windows(c, spec, pool, out, e) || !write_causes(c, pool, out, e))
		return false;
	write_waits(api_live_pool(c, spec), out);
	buf_text(out, "}\n");
	return true;
}

const struct api_route api_route_objective = {
	.method = "GET",
	.path = "/api/v1/pools/{namespace}/{name}/objective",
	.name = "getObjective",
	.summary = "Late requests against what the objective allows, and how fast its budget burns",
	.needs_history = true,
	.answer = &shape,
	.write = write_objective,
};
