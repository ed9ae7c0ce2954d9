/* GET /api/v1/pools/{namespace}/{name}/rules: the rule in force among all that were weighed, and what objectives cost.
 */
#include "controller/explain/explain.h"
#include "controller/policy/rule_select.h"
#include "controller/web/api_lately.h"

#include <string.h>

enum { PPM = 1000000 };

static const struct api_member standing_members[] = {
	{ "number", API_COUNT, .help = "of the rule" },
	{ "name", API_TEXT, .help = "in words" },
	{ "margin", API_NUMBER, .help = "over demand, as a share" },
	{ "holdSeconds", API_NUMBER, .help = "how long it remembers a peak" },
	{ "chase", API_NUMBER, .help = "how hard it chases a queue" },
	{ "standby", API_NUMBER, .may_be_null = true,
	  .help = "standby it keeps, as a share of hot; null: uses no fast tier" },
	{ "gpus", API_NUMBER, .may_be_null = true, .help = "GPUs it would have held, mean over the record" },
	{ "dollarsPerDay", API_NUMBER, .may_be_null = true, .help = "what these cost; null without prices" },
	{ "lateShare", API_NUMBER,
	  .help = "on the record, with caution for rare bursts and a prior for the first hours" },
	{ "meets", API_FLAG, .help = "its share is at most the target" },
};
static const struct api_shape standing_shape = API_SHAPE("RuleStanding", standing_members);

static const struct api_member price_members[] = {
	{ "attainment", API_NUMBER, .help = "share of requests that are not late" },
	{ "rule", API_COUNT, .may_be_null = true,
	  .help = "the cheapest that would have kept it; null when none would" },
	{ "dollarsPerDay", API_NUMBER, .may_be_null = true, .help = "what it would have cost on the record" },
	{ "gpuHoursPerDay", API_NUMBER, .may_be_null = true, .help = "GPU hours it would have held" },
	{ "lateShare", API_NUMBER, .may_be_null = true, .help = "its late share on the record" },
};
static const struct api_shape price_shape = API_SHAPE("ObjectivePrice", price_members);

static const struct api_member record_members[] = {
	{ "hours", API_NUMBER, .may_be_null = true, .help = "length of the record, the past counting less and less" },
	{ "bursts", API_COUNT, .may_be_null = true, .help = "hours with late requests under the rule in force" },
	{ "supportsLateShare", API_NUMBER, .may_be_null = true,
	  .help = "the smallest late share that it can support a statement about" },
	{ "tierSaving", API_NUMBER, .may_be_null = true,
	  .help = "saved by standby and lending, as a share; null without tiers" },
};
static const struct api_shape record_shape = API_SHAPE("Record", record_members);

static const struct api_member members[] = {
	{ "at", API_TIME, .help = "end of the tick that inForce and prices are of" },
	{ "weighedAt", API_TIME, .may_be_null = true,
	  .help = "when the shadow fleets were kept that rules are of: at most hours ago" },
	{ "inForce", API_COUNT, .may_be_null = true, .help = "number of the rule; null where a rival decided" },
	{ "since", API_TIME, .may_be_null = true, .help = "when it was adopted" },
	{ "reason", API_TEXT, .may_be_null = true, .help = "in sentences" },
	{ "objectiveLateShare", API_NUMBER, .may_be_null = true,
	  .help = "that the objective allows; null with a violation cost" },
	{ "targetLateShare", API_NUMBER, .may_be_null = true, .help = "that a rule may have to be adopted" },
	{ "rules", API_LIST, .help = "all that were weighed", .of = &standing_shape },
	{ "prices", API_LIST, .help = "of objectives, loosest first", .of = &price_shape },
	{ "record", API_OBJECT, .help = "what this is judged by", .of = &record_shape },
};
static const struct api_shape shape = API_SHAPE("Rules", members);

struct weighed {
	struct api_call *call;
	struct tick_record r;
	const struct api_fleet *fleet;
	size_t pool, place;
	struct policy_state *memory;
	millis at;
};

/* Micro-dollars a day for so many thousandths of a GPU, at the price of those that objectives would hold. */
static int64_t dollars_a_day(const struct pool_plan *p, int64_t gpu_milli)
{
	for (size_t i = 0; i < p->price_count && gpu_milli != ABSENT; i++)
		if (p->prices[i].gpu_milli > 0 && p->prices[i].dollars_per_hour > 0)
			return (int64_t)((__int128)gpu_milli * 24 * p->prices[i].dollars_per_hour /
					 p->prices[i].gpu_milli);
	return ABSENT;
}

static void write_standing(const struct weighed *w, const struct rule_standing *s, size_t number, struct buf *out)
{
	CLEANUP(buf_release) struct buf name = { 0 };

	rule_describe(w->memory, w->place, (int64_t)number, &name);
	item_begin(out);
	member_count(out, "number", (int64_t)number);
	member_text(out, "name", name.text);
	member_scaled(out, "margin", s->margin_permille, 3);
	member_scaled(out, "holdSeconds", s->hold_ms, 3);
	member_scaled(out, "chase", s->chase_permille, 3);
	member_scaled(out, "standby", s->stock_permille, 3);
	member_scaled(out, "gpus", s->gpu_milli, 3);
	member_scaled(out, "dollarsPerDay", dollars_a_day(&w->r.plan, s->gpu_milli), 6);
	member_scaled(out, "lateShare", s->share_ppm, 6);
	member_flag(out, "meets", s->meets);
	bracket_end(out, '}');
}

static void write_rules(const struct weighed *w, struct buf *out)
{
	struct rule_standing *all;
	int64_t target;

	member_list(out, "rules");
	if (w->memory) {
		all = policy_standings(w->memory, &w->fleet->manifest.fleet, w->place, &w->call->arena, &target);
		for (size_t i = 0; i < rule_count(w->memory, w->place); i++)
			write_standing(w, &all[i], i, out);
	}
	bracket_end(out, ']');
}

static void write_prices(const struct pool_plan *p, struct buf *out)
{
	member_list(out, "prices");
	for (size_t i = 0; i < p->price_count; i++) {
		const struct objective_price *o = &p->prices[i];
		bool is_kept = o->rule != ABSENT;

		item_begin(out);
		member_scaled(out, "attainment", PPM - o->late_ppm, 6);
		member_count(out, "rule", o->rule);
		member_scaled(out, "dollarsPerDay", is_kept ? o->dollars_per_hour * 24 : ABSENT, 6);
		member_scaled(out, "gpuHoursPerDay", is_kept ? o->gpu_milli * 24 : ABSENT, 3);
		member_scaled(out, "lateShare", is_kept ? o->share_ppm : ABSENT, 6);
		bracket_end(out, '}');
	}
	bracket_end(out, ']');
}

static const char *reason_of(const struct weighed *w)
{
	const struct explained x = { &w->fleet->manifest.fleet, w->place, w->r.tick, w->r.now, &w->r.plan, 0 };
	struct explanation e = explain_decision(&x, &w->call->arena);

	for (size_t i = 0; i < e.count; i++)
		if (!strcmp(e.parts[i].title, "Rule"))
			return e.parts[i].text;
	return NULL;
}

static void write_judgement(const struct weighed *w, struct buf *out)
{
	const struct pool_decision *d = &w->r.plan.decision;
	bool is_ours = d->hold_ms > 0;

	member_time(out, "at", w->r.now);
	member_time(out, "weighedAt", w->memory ? w->at : 0);
	member_count(out, "inForce", is_ours ? d->rule : ABSENT);
	member_time(out, "since", is_ours ? d->rule_since : 0);
	member_text(out, "reason", reason_of(w));
	member_scaled(out, "objectiveLateShare", is_ours ? d->objective_ppm : ABSENT, 6);
	member_scaled(out, "targetLateShare", is_ours ? d->target_ppm : ABSENT, 6);
	write_rules(w, out);
	write_prices(&w->r.plan, out);
	member_object(out, "record");
	member_scaled(out, "hours", is_ours ? d->record_hours_milli : ABSENT, 3);
	member_count(out, "bursts", is_ours ? d->record_bursts : ABSENT);
	member_scaled(out, "supportsLateShare", is_ours ? d->supported_ppm : ABSENT, 6);
	member_scaled(out, "tierSaving", is_ours ? d->tier_saving_permille : ABSENT, 3);
	bracket_end(out, '}');
}

/* The shadow fleets as last kept. Without any, or of another layout, the rules are left out. */
static bool read_memory(struct weighed *w, struct error *e)
{
	CLEANUP(buf_release) struct buf bytes = { 0 };
	struct api_call *c = w->call;
	struct error none = { 0 };
	int64_t tick;

	if (!history_last_checkpoint(c->history, c->span.last_tick, &tick, &bytes, &none))
		return none.kind == ERROR_NOT_FOUND || (*e = none, false);
	const struct api_fleet *fleet = api_fleet_at(c, tick, e);
	if (!fleet)
		return false;
	if (!api_fleet_place(fleet, w->pool, &w->place))
		return true;
	w->fleet = fleet;
	w->memory = policy_state_decode(bytes.text, bytes.len, &fleet->manifest.fleet, &none);
	return history_tick_end(c->history, tick > c->span.first_tick ? tick - 1 : tick, &w->at, e);
}

static bool write_all(struct api_call *c, struct buf *out, struct error *e)
{
	struct weighed w = { .call = c };

	if (!api_pool(c, &w.pool, e) || !history_read(c->history, c->span.last_tick, w.pool, &w.r, e))
		return false;
	bool ok = read_memory(&w, e);
	if (ok && !w.memory) {
		w.fleet = api_fleet_at(c, c->span.last_tick, e);
		ok = w.fleet && api_fleet_place(w.fleet, w.pool, &w.place);
	}
	if (ok) {
		buf_text(out, "{");
		write_judgement(&w, out);
		buf_text(out, "}\n");
	}
	policy_state_free(w.memory);
	return ok;
}

const struct api_route api_route_rules = {
	.method = "GET",
	.path = "/api/v1/pools/{namespace}/{name}/rules",
	.name = "getRules",
	.summary = "The rule in force among its shadows, and the price of every objective",
	.needs_history = true,
	.answer = &shape,
	.write = write_all,
};
