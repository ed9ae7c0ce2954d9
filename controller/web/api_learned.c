/* What a pool has learned: the rule in force among all that were weighed, what objectives cost, how long starts took.
 */
#include "controller/explain/explain.h"
#include "controller/policy/rule_select.h"
#include "controller/web/api_call.h"
#include "state/lead_time.h"

#include <string.h>

enum { PPM = 1000000 };

/* --- GET /api/v1/pools/{namespace}/{name}/rules --- */

struct standing_view {
	struct rule_standing s;
	int64_t number, dollars_a_day;
	const char *name;
};
static const struct record_member standing_members[] = {
	{ "number", RECORD_COUNT(standing_view, number), .help = "of the rule" },
	{ "name", RECORD_TEXT(standing_view, name), .help = "in words" },
	{ "margin", RECORD_NUMBER(standing_view, s.margin_permille, 3), .help = "over demand, as a share" },
	{ "holdSeconds", RECORD_NUMBER(standing_view, s.hold_ms, 3), .help = "how long it remembers a peak" },
	{ "chase", RECORD_NUMBER(standing_view, s.chase_permille, 3), .help = "how hard it chases a queue" },
	{ "standby", RECORD_NUMBER(standing_view, s.stock_permille, 3), .may_be_null = true,
	  .help = "standby it keeps, as a share of hot; null: uses no fast tier" },
	{ "gpus", RECORD_NUMBER(standing_view, s.gpu_milli, 3), .may_be_null = true,
	  .help = "GPUs it would have held, mean over the record" },
	{ "dollarsPerDay", RECORD_NUMBER(standing_view, dollars_a_day, 6), .may_be_null = true,
	  .help = "what these cost; null without prices" },
	{ "lateShare", RECORD_NUMBER(standing_view, s.share_ppm, 6),
	  .help = "on the record, with caution for rare bursts and a prior for the first hours" },
	{ "meets", RECORD_FLAG(standing_view, s.meets), .help = "its share is at most the target" },
};
static const struct record_shape standing_shape = RECORD_SHAPE("RuleStanding", standing_view, standing_members);

struct price_view {
	int64_t attainment_ppm, rule, dollars_a_day, gpu_milli_hours_a_day, late_ppm;
};
static const struct record_member price_members[] = {
	{ "attainment", RECORD_NUMBER(price_view, attainment_ppm, 6), .help = "share of requests that are not late" },
	{ "rule", RECORD_COUNT(price_view, rule), .may_be_null = true,
	  .help = "the cheapest that would have kept it; null when none would" },
	{ "dollarsPerDay", RECORD_NUMBER(price_view, dollars_a_day, 6), .may_be_null = true,
	  .help = "what it would have cost on the record" },
	{ "gpuHoursPerDay", RECORD_NUMBER(price_view, gpu_milli_hours_a_day, 3), .may_be_null = true,
	  .help = "GPU hours it would have held" },
	{ "lateShare", RECORD_NUMBER(price_view, late_ppm, 6), .may_be_null = true,
	  .help = "its late share on the record" },
};
static const struct record_shape price_shape = RECORD_SHAPE("ObjectivePrice", price_view, price_members);

struct evidence_view {
	int64_t hours_milli, bursts, supported_ppm, tier_saving_permille;
};
static const struct record_member evidence_members[] = {
	{ "hours", RECORD_NUMBER(evidence_view, hours_milli, 3), .may_be_null = true,
	  .help = "length of the record, the past counting less and less" },
	{ "bursts", RECORD_COUNT(evidence_view, bursts), .may_be_null = true,
	  .help = "hours with late requests under the rule in force" },
	{ "supportsLateShare", RECORD_NUMBER(evidence_view, supported_ppm, 6), .may_be_null = true,
	  .help = "the smallest late share that it can support a statement about" },
	{ "tierSaving", RECORD_NUMBER(evidence_view, tier_saving_permille, 3), .may_be_null = true,
	  .help = "saved by standby and lending, as a share; null without tiers" },
};
static const struct record_shape evidence_shape = RECORD_SHAPE("Record", evidence_view, evidence_members);

struct rules_view {
	millis at, weighed_at, since;
	int64_t in_force, objective_ppm, target_ppm;
	const char *reason;
	struct record_items rules, prices;
	struct evidence_view record;
};
static const struct record_member rules_members[] = {
	{ "at", RECORD_TIME(rules_view, at), .help = "end of the tick that inForce and prices are of" },
	{ "weighedAt", RECORD_TIME(rules_view, weighed_at), .may_be_null = true,
	  .help = "when the shadow fleets were kept that rules are of: at most hours ago" },
	{ "inForce", RECORD_COUNT(rules_view, in_force), .may_be_null = true,
	  .help = "number of the rule; null where a rival decided" },
	{ "since", RECORD_TIME(rules_view, since), .may_be_null = true, .help = "when it was adopted" },
	{ "reason", RECORD_TEXT(rules_view, reason), .may_be_null = true, .help = "in sentences" },
	{ "objectiveLateShare", RECORD_NUMBER(rules_view, objective_ppm, 6), .may_be_null = true,
	  .help = "that the objective allows; null with a violation cost" },
	{ "targetLateShare", RECORD_NUMBER(rules_view, target_ppm, 6), .may_be_null = true,
	  .help = "that a rule may have to be adopted" },
	{ "rules", RECORD_LIST(rules_view, rules, standing_shape), .help = "all that were weighed" },
	{ "prices", RECORD_LIST(rules_view, prices, price_shape), .help = "of objectives, loosest first" },
	{ "record", RECORD_OBJECT(rules_view, record, evidence_shape), .help = "what this is judged by" },
};
static const struct record_shape rules_shape = RECORD_SHAPE("Rules", rules_view, rules_members);

struct weighed {
	struct api_call *call;
	struct tick_record r;
	const struct api_fleet *fleet;
	size_t pool, place;
	struct policy_state *memory;
	millis at;
};

/* Micro-dollars a day for so many thousandths of a GPU, at the price of those that objectives would hold. */
static int64_t dollars_a_day(const struct pool_spec *pool, const struct pool_plan *p, int64_t gpu_milli)
{
	if (pool->is_unpriced)
		return ABSENT;
	for (size_t i = 0; i < p->price_count && gpu_milli != ABSENT; i++)
		if (p->prices[i].gpu_milli > 0 && p->prices[i].dollars_per_hour > 0)
			return (int64_t)((__int128)gpu_milli * 24 * p->prices[i].dollars_per_hour /
					 p->prices[i].gpu_milli);
	return ABSENT;
}

static struct record_items view_rules(const struct weighed *w)
{
	struct arena *a = &w->call->arena;
	size_t count = w->memory ? rule_count(w->memory, w->place) : 0;
	struct standing_view *rules = arena_array(a, struct standing_view, count + 1);
	int64_t target;

	if (!w->memory)
		return (struct record_items){ 0 };
	const struct pool_spec *pool = &w->fleet->manifest.fleet.pools[w->place];
	const struct rule_standing *all = policy_standings(w->memory, &w->fleet->manifest.fleet, w->place, a, &target);
	for (size_t i = 0; i < count; i++) {
		CLEANUP(buf_release) struct buf name = { 0 };

		rule_describe(w->memory, w->place, (int64_t)i, &name);
		rules[i] =
			(struct standing_view){ all[i], (int64_t)i, dollars_a_day(pool, &w->r.plan, all[i].gpu_milli),
						arena_strdup(a, name.text ? name.text : "", name.len) };
	}
	return (struct record_items){ rules, count };
}

static struct record_items view_prices(const struct weighed *w)
{
	const struct pool_plan *p = &w->r.plan;
	struct price_view *prices = arena_array(&w->call->arena, struct price_view, p->price_count + 1);

	for (size_t i = 0; i < p->price_count; i++) {
		const struct objective_price *o = &p->prices[i];
		bool is_kept = o->rule != ABSENT,
		     has_price = is_kept && !w->fleet->manifest.fleet.pools[w->place].is_unpriced;

		prices[i] =
			(struct price_view){ PPM - o->late_ppm, o->rule, has_price ? o->dollars_per_hour * 24 : ABSENT,
					     is_kept ? o->gpu_milli * 24 : ABSENT, is_kept ? o->share_ppm : ABSENT };
	}
	return (struct record_items){ prices, p->price_count };
}

static const char *reason_of(const struct weighed *w)
{
	const struct explained x = { .fleet = &w->fleet->manifest.fleet,
				     .pool = w->place,
				     .tick = w->r.tick,
				     .now = w->r.now,
				     .plan = &w->r.plan };
	struct explanation e = explain_decision(&x, &w->call->arena);

	for (size_t i = 0; i < e.count; i++)
		if (!strcmp(e.parts[i].title, "Rule"))
			return e.parts[i].text;
	return NULL;
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

static bool write_rules(struct api_call *c, struct buf *out, struct error *e)
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
		const struct pool_decision *d = &w.r.plan.decision;
		const struct evidence_view none = { ABSENT, ABSENT, ABSENT, ABSENT };
		bool is_ours = d->hold_ms > 0;
		const struct rules_view v = {
			.at = w.r.now,
			.weighed_at = w.memory ? w.at : 0,
			.since = is_ours ? d->rule_since : 0,
			.in_force = is_ours ? d->rule : ABSENT,
			.objective_ppm = is_ours ? d->objective_ppm : ABSENT,
			.target_ppm = is_ours ? d->target_ppm : ABSENT,
			.reason = reason_of(&w),
			.rules = view_rules(&w),
			.prices = view_prices(&w),
			.record = is_ours ? (struct evidence_view){ d->record_hours_milli, d->record_bursts,
								    d->supported_ppm, d->tier_saving_permille }
					  : none
		};
		record_write(&rules_shape, &v, out);
		buf_text(out, "\n");
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
	.answer = &rules_shape,
	.write = write_rules,
};

/* --- GET /api/v1/pools/{namespace}/{name}/lead-time: how long starts took, by stage --- */

static const char *const kinds[] = { "cold", "wake", "refill", "reclaim", "place", "rouse", NULL };
_Static_assert(sizeof kinds / sizeof *kinds == START_KIND_COUNT + 1, "a name for every kind of start");
static const char *const stages[] = { "provision", "register", "device", "image", "load", "total", NULL };

struct bar_view {
	int64_t up_to, count;
};
static const struct record_member bar_members[] = {
	{ "upToSeconds", RECORD_NUMBER(bar_view, up_to, 3), .may_be_null = true,
	  .help = "and more than the bar before; null: without an end" },
	{ "count", RECORD_COUNT(bar_view, count), .help = "replicas" },
};
static const struct record_shape bar_shape = RECORD_SHAPE("LeadTimeBar", bar_view, bar_members);

struct offering_view {
	const char *group, *instance_type, *zone, *capacity_type;
	int64_t samples, p50, p95;
};
static const struct record_member offering_members[] = {
	{ "group", RECORD_TEXT(offering_view, group), .help = "the node group" },
	{ "instanceType", RECORD_TEXT(offering_view, instance_type), .empty_is_null = true,
	  .help = "of the manifest in force" },
	{ "zone", RECORD_TEXT(offering_view, zone), .empty_is_null = true, .help = "of the manifest in force" },
	{ "capacityType", RECORD_TEXT(offering_view, capacity_type), .may_be_null = true,
	  .help = "of the manifest in force" },
	{ "samples", RECORD_COUNT(offering_view, samples), .help = "replicas" },
	{ "p50Seconds", RECORD_NUMBER(offering_view, p50, 3), .may_be_null = true, .help = "median" },
	{ "p95Seconds", RECORD_NUMBER(offering_view, p95, 3), .may_be_null = true, .help = "95th percentile" },
};
static const struct record_shape offering_shape = RECORD_SHAPE("LeadTimeOffering", offering_view, offering_members);

struct stage_view {
	const char *stage;
	int64_t samples, mean, p50, p95, p99;
	struct record_items histogram, by_offering;
};
static const struct record_member stage_members[] = {
	{ "stage", RECORD_TEXT(stage_view, stage), .help = "or total: from asking to serving", .choices = stages },
	{ "samples", RECORD_COUNT(stage_view, samples), .help = "replicas" },
	{ "meanSeconds", RECORD_NUMBER(stage_view, mean, 3), .may_be_null = true, .help = "exact" },
	{ "p50Seconds", RECORD_NUMBER(stage_view, p50, 3), .may_be_null = true, .help = "median, within 15 %" },
	{ "p95Seconds", RECORD_NUMBER(stage_view, p95, 3), .may_be_null = true,
	  .help = "95th percentile, within 15 %" },
	{ "p99Seconds", RECORD_NUMBER(stage_view, p99, 3), .may_be_null = true,
	  .help = "99th percentile, within 15 %" },
	{ "histogram", RECORD_LIST(stage_view, histogram, bar_shape),
	  .help = "from the first bar with replicas to the last" },
	{ "byOffering", RECORD_LIST(stage_view, by_offering, offering_shape), .help = "the same by node group" },
};
static const struct record_shape stage_shape = RECORD_SHAPE("LeadTimeStage", stage_view, stage_members);

struct kind_view {
	const char *kind;
	int64_t samples, p50, p95;
};
static const struct record_member kind_members[] = {
	{ "kind", RECORD_TEXT(kind_view, kind), .help = "how capacity comes to be ready", .choices = kinds },
	{ "samples", RECORD_COUNT(kind_view, samples), .help = "that serve" },
	{ "p50Seconds", RECORD_NUMBER(kind_view, p50, 3), .may_be_null = true,
	  .help = "median from asking to serving, within 15 %" },
	{ "p95Seconds", RECORD_NUMBER(kind_view, p95, 3), .may_be_null = true, .help = "95th percentile, within 15 %" },
};
static const struct record_shape kind_shape = RECORD_SHAPE("StartKind", kind_view, kind_members);

struct lead_time_view {
	millis from, to;
	const char *kind;
	struct record_items kinds, stages;
	struct stage_view total;
};
static const struct record_member lead_time_members[] = {
	{ "from", RECORD_TIME(lead_time_view, from), .help = "whole days in UTC that have a part in this time" },
	{ "to", RECORD_TIME(lead_time_view, to), .help = "up to then" },
	{ "kind", RECORD_TEXT(lead_time_view, kind), .help = "that stages and total are of", .choices = kinds },
	{ "kinds", RECORD_LIST(lead_time_view, kinds, kind_shape), .help = "those that were seen" },
	{ "stages", RECORD_LIST(lead_time_view, stages, stage_shape),
	  .help = "those that were told apart; none where only the total is known" },
	{ "total", RECORD_OBJECT(lead_time_view, total, stage_shape), .help = "from asking to serving" },
};
static const struct record_shape lead_time_shape = RECORD_SHAPE("LeadTime", lead_time_view, lead_time_members);

/* Sums of what fits. */
struct distribution {
	int64_t count[LEAD_BUCKETS], samples, ms;
};

struct samples {
	struct arena *arena;
	const struct history_pool *pool;
	const struct fleet_spec *fleet;
	const struct lead_row *rows;
	size_t count;
	enum start_kind kind;
};

enum { ANY_GROUP = -1 };

static void sum_up(const struct samples *t, int64_t stage, int64_t group, struct distribution *d)
{
	*d = (struct distribution){ 0 };
	for (size_t i = 0; i < t->count; i++) {
		const struct lead_row *r = &t->rows[i];
		if (r->kind != t->kind || r->stage != stage || (group != ANY_GROUP && (size_t)group != r->group))
			continue;
		d->count[r->bucket] += r->samples;
		d->samples += r->samples;
		d->ms += r->ms;
	}
}

/* Between the edges of the bucket that has it. */
static int64_t quantile(const struct distribution *d, int64_t percent)
{
	int64_t seen = 0;

	for (int64_t b = 0; b < LEAD_BUCKETS; b++) {
		millis low = b ? lead_bucket_upto(b - 1) : 0;
		bool is_last = b == LEAD_BUCKETS - 1;

		if ((seen + d->count[b]) * 100 >= d->samples * percent && d->count[b])
			return is_last ? low
				       : low + (lead_bucket_upto(b) - low) * (d->samples * percent - seen * 100) /
							 (d->count[b] * 100);
		seen += d->count[b];
	}
	return ABSENT;
}

static const struct group_spec *find_group(const struct fleet_spec *fleet, const char *name)
{
	for (size_t i = 0; i < fleet->group_count; i++)
		if (!strcmp(fleet->groups[i].name, name))
			return &fleet->groups[i];
	return NULL;
}

static struct record_items view_histogram(const struct samples *t, const struct distribution *d)
{
	struct bar_view *bars = arena_array(t->arena, struct bar_view, LEAD_BUCKETS);
	int64_t first = 0, last = LEAD_BUCKETS - 1;

	while (last >= 0 && !d->count[last])
		last--;
	while (first <= last && !d->count[first])
		first++;
	for (int64_t b = first; b <= last; b++)
		bars[b - first] =
			(struct bar_view){ b == LEAD_BUCKETS - 1 ? ABSENT : lead_bucket_upto(b), d->count[b] };
	return (struct record_items){ bars, (size_t)(last + 1 - first) };
}

static struct record_items view_offerings(const struct samples *t, int64_t stage)
{
	struct offering_view *all = arena_array(t->arena, struct offering_view, t->pool->group_count + 1);
	size_t n = 0;

	for (size_t i = 0; i < t->pool->group_count; i++) {
		const struct group_spec *g = find_group(t->fleet, t->pool->groups[i]);
		struct distribution d;

		sum_up(t, stage, (int64_t)i, &d);
		if (d.samples)
			all[n++] = (struct offering_view){
				t->pool->groups[i], g ? g->instance_type : NULL,
				g ? g->zone : NULL, g ? capacity_type_name(g->capacity_type) : NULL,
				d.samples,	    quantile(&d, 50),
				quantile(&d, 95)
			};
	}
	return (struct record_items){ all, n };
}

static struct stage_view view_stage(const struct samples *t, int64_t stage)
{
	struct distribution d;

	sum_up(t, stage, ANY_GROUP, &d);
	return (struct stage_view){ .stage = stages[stage],
				    .samples = d.samples,
				    .mean = d.samples ? d.ms / d.samples : ABSENT,
				    .p50 = quantile(&d, 50),
				    .p95 = quantile(&d, 95),
				    .p99 = quantile(&d, 99),
				    .histogram = view_histogram(t, &d),
				    .by_offering = view_offerings(t, stage) };
}

static struct record_items view_kinds(const struct samples *t)
{
	struct kind_view *all = arena_array(t->arena, struct kind_view, START_KIND_COUNT);
	size_t n = 0;

	for (int k = 0; k < START_KIND_COUNT; k++) {
		struct samples of = *t;
		struct distribution d;

		of.kind = (enum start_kind)k;
		sum_up(&of, LEAD_TOTAL, ANY_GROUP, &d);
		if (d.samples)
			all[n++] = (struct kind_view){ kinds[k], d.samples, quantile(&d, 50), quantile(&d, 95) };
	}
	return (struct record_items){ all, n };
}

static enum start_kind kind_of(const char *text)
{
	int k = 0;

	while (text && kinds[k] && strcmp(kinds[k], text) != 0)
		k++;
	return text && kinds[k] ? (enum start_kind)k : START_COLD;
}

static bool write_lead_time(struct api_call *c, struct buf *out, struct error *e)
{
	struct samples t = { .arena = &c->arena, .kind = kind_of(api_value(c, "kind")->text) };
	struct lead_question q;
	struct lead_row *rows;
	size_t count;

	if (!api_pool(c, &q.pool, e) || !api_period(c, 28 * 24 * HOUR, &q.from, &q.to, e) ||
	    !lead_read(c->history, &q, &c->arena, &rows, &t.count, e))
		return false;
	const struct api_fleet *fleet = api_fleet_at(c, c->span.last_tick, e);
	if (!fleet)
		return false;
	t.rows = rows;
	t.fleet = &fleet->manifest.fleet;
	t.pool = &history_pools(c->history, &count)[q.pool];
	struct stage_view *known = arena_array(&c->arena, struct stage_view, STAGE_COUNT);
	struct lead_time_view v = { .from = q.from,
				    .to = q.to,
				    .kind = kinds[t.kind],
				    .kinds = view_kinds(&t),
				    .stages = { known, 0 },
				    .total = view_stage(&t, LEAD_TOTAL) };
	for (int64_t stage = 0; stage < STAGE_COUNT; stage++) {
		known[v.stages.count] = view_stage(&t, stage);
		v.stages.count += known[v.stages.count].samples > 0;
	}
	record_write(&lead_time_shape, &v, out);
	buf_text(out, "\n");
	return true;
}

static const struct api_parameter parameters[] = {
	{ "from", PARAMETER_TIME, .help = "from the day of this time on (default: 28 days before to)" },
	{ "to", PARAMETER_TIME, .help = "up to the day of this time (default: the end of the history)" },
	{ "kind", PARAMETER_CHOICE, .choices = "cold|wake|refill|reclaim|place|rouse",
	  .help = "of starts (default: cold)" },
};

const struct api_route api_route_lead_time = {
	.method = "GET",
	.path = "/api/v1/pools/{namespace}/{name}/lead-time",
	.name = "getLeadTime",
	.summary = "How long starts took, by stage and node group",
	API_PARAMETERS(parameters),
	.needs_history = true,
	.answer = &lead_time_shape,
	.write = write_lead_time,
};
