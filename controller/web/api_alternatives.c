/* GET /api/v1/alternatives: what the same traffic would have cost under other fleets. */
#include "controller/web/alternatives.h"
#include "controller/web/api_call.h"

static const struct record_member sum_members[] = {
	{ "dollars", RECORD_NUMBER(alternative_sum, micro_dollars, 6), .help = "under this fleet" },
	{ "recordedDollars", RECORD_NUMBER(alternative_sum, recorded, 6), .help = "of the same days, as it was" },
	{ "requests", RECORD_COUNT(alternative_sum, requests), .help = "that came" },
	{ "late", RECORD_COUNT(alternative_sum, late), .may_be_null = true, .help = "of these; null: not known" },
};
static const struct record_shape sum_shape = RECORD_SHAPE("AlternativeSum", alternative_sum, sum_members);

static const struct record_member fleet_members[] = {
	{ "namespace", RECORD_TEXT(alternative_fleet, namespace), .help = "of the pool" },
	{ "pool", RECORD_TEXT(alternative_fleet, pool), .help = "its name" },
	{ "fleet", RECORD_TEXT(alternative_fleet, fleet),
	  .help = "recorded; autoscaler (the team's, else the HPA of the highest target that kept the objective); "
		  "static "
		  "(the size of the peak); hot-only (without standby and lending, by the shadows); preheat (of a pool "
		  "that is only watched, by the shadows)" },
	{ "setting", RECORD_TEXT(alternative_fleet, setting), .may_be_null = true, .help = "null: as it was" },
	{ "modelFits", RECORD_FLAG(alternative_fleet, model_fits),
	  .help = "false: the model does not give what was recorded, so it is asked for no other fleet" },
	{ "week", RECORD_OBJECT(alternative_fleet, week, sum_shape), .help = "the last 7 days of UTC" },
	{ "month", RECORD_OBJECT(alternative_fleet, month, sum_shape), .help = "the last 30" },
};
static const struct record_shape fleet_shape = RECORD_SHAPE("AlternativeFleet", alternative_fleet, fleet_members);

static const struct record_member day_members[] = {
	{ "fleet", RECORD_TEXT(alternative_day, fleet), .help = "as above, but recorded" },
	{ "from", RECORD_TIME(alternative_day, from), .help = "midnight UTC" },
	{ "dollars", RECORD_NUMBER(alternative_day, micro_dollars, 6),
	  .help = "of all pools; those not known under it as they were" },
};
static const struct record_shape day_shape = RECORD_SHAPE("AlternativeDay", alternative_day, day_members);

struct list_view {
	const char *state, *message;
	millis tried_at;
	struct record_items fleets, days;
};
static const struct record_member list_members[] = {
	{ "state", RECORD_TEXT(list_view, state), .choices = daily_state_names, .help = "how far it came" },
	{ "triedAt", RECORD_TIME(list_view, tried_at), .may_be_null = true, .help = "when it was worked out" },
	{ "message", RECORD_TEXT(list_view, message), .may_be_null = true, .help = "why the last try failed" },
	{ "fleets", RECORD_LIST(list_view, fleets, fleet_shape), .help = "by pool, recorded first; none: never tried" },
	{ "days", RECORD_LIST(list_view, days, day_shape), .help = "all pools together, in order of time" },
};
static const struct record_shape list_shape = RECORD_SHAPE("Alternatives", list_view, list_members);

static bool write_list(struct api_call *c, struct buf *out, struct error *e)
{
	static const struct daily_shown never = { .message = "" };
	const struct daily_shown *shown = c->alternatives ? daily_look(c->alternatives) : &never;
	const struct alternatives *a = shown->answer;
	struct list_view v = { .state = daily_state_names[shown->state],
			       .message = shown->state == DAILY_FAILED ? shown->message : NULL,
			       .tried_at = shown->tried_at };

	(void)e;
	if (a) {
		v.fleets = (struct record_items){ a->fleets, a->fleet_count };
		v.days = (struct record_items){ a->days, a->day_count };
	}
	record_write(&list_shape, &v, out);
	buf_text(out, "\n");
	return true;
}

const struct api_route api_route_alternatives = {
	.method = "GET",
	.path = "/api/v1/alternatives",
	.name = "listAlternatives",
	.summary = "The same traffic under other fleets; worked out in the background once a day",
	.needs_history = true,
	.answer = &list_shape,
	.write = write_list,
};
