/* What was decided, and what was asked of clouds: logs, newest first, page by page. */
#include "base/json.h"
#include "base/quantity.h"
#include "controller/explain/explain.h"
#include "controller/web/api_call.h"
#include "state/launch.h"
#include "state/share_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* --- GET /api/v1/decisions --- */

#define LIMIT(name, word) "|" word
static const char limits[] =
#include "controller/policy/limit.def"
	;
#undef LIMIT

/* Rows of decisions that one request may look at, and how many at once. */
enum {
	ROWS_AT_ONCE = 20000,
	ROWS_MOST = 200000,
	INDEXED_MOST = 2000000,
	LARGEST_MOST = 5000,
	PAGE_MOST = 500,
	DECODED_MOST = 3000
};

struct decision_item {
	int64_t tick, from, asked;
	millis at;
	const char *namespace, *pool, *held_by, *reason;
	struct pool_decision d;
};
static const struct record_member item_members[] = {
	{ "tick", RECORD_COUNT(decision_item, tick), .help = "its number" },
	{ "at", RECORD_TIME(decision_item, at), .help = "its end" },
	{ "namespace", RECORD_TEXT(decision_item, namespace), .help = "of the WarmPool" },
	{ "pool", RECORD_TEXT(decision_item, pool), .help = "its name" },
	{ "demand", RECORD_NUMBER(decision_item, d.demand_milli, 3), .may_be_null = true,
	  .help = "offered load, in replicas" },
	{ "waiting", RECORD_COUNT(decision_item, d.waiting_now), .may_be_null = true, .help = "requests waiting" },
	{ "hot", RECORD_COUNT(decision_item, d.ready), .help = "replicas that may start requests" },
	{ "from", RECORD_COUNT(decision_item, from), .help = "hot replicas before, on their way included" },
	{ "wished", RECORD_COUNT(decision_item, d.wished), .help = "hot replicas wished, on their way included" },
	{ "decided", RECORD_COUNT(decision_item, d.decided),
	  .help = "hot replicas after the plan, on their way included" },
	{ "asked", RECORD_COUNT(decision_item, asked), .may_be_null = true,
	  .help = "change of hot replicas asked for; null where nothing was asked" },
	{ "heldBy", RECORD_TEXT(decision_item, held_by), .help = "the one limit that held it, or none" },
	{ "dollarsPerHour", RECORD_NUMBER(decision_item, d.dollars_per_hour, 6), .may_be_null = true,
	  .help = "what the pool costs after the plan; null where no price is given" },
	{ "late", RECORD_COUNT(decision_item, d.late), .may_be_null = true, .help = "late requests of the tick" },
	{ "reason", RECORD_TEXT(decision_item, reason), .help = "in sentences" },
};
static const struct record_shape item_shape = RECORD_SHAPE("DecisionItem", decision_item, item_members);

struct page_view {
	struct record_items items;
	char next[64];
	millis searched_to;
	int64_t ticks;
};
static const struct record_member page_members[] = {
	{ "items", RECORD_LIST(page_view, items, item_shape),
	  .help = "newest first, or largest first; fewer than count where much had to be looked through" },
	{ "next", RECORD_CHARS(page_view, next), .empty_is_null = true,
	  .help = "cursor of the next page; null at the end" },
	{ "searchedTo", RECORD_TIME(page_view, searched_to), .may_be_null = true,
	  .help = "how far back was looked; null at the end" },
	{ "ticks", RECORD_COUNT(page_view, ticks),
	  .help = "that this page is of: in those of no item nothing changed, or no filter fits" },
};
static const struct record_shape page_shape = RECORD_SHAPE("Decisions", page_view, page_members);

struct page {
	struct history_filter filter;
	int64_t count;
	int64_t below_tick, below_pool; /* only what is older, or of the same tick and a pool further up */
	int64_t skip;			/* largest first: so many were told */
	int64_t looked_to;		/* ticks from here on were looked at */
	int64_t newest, oldest;		/* ticks that were asked for */
	struct buf hits;		/* struct history_hit */
};

static void take_limit(const struct api_call *c, struct page *p)
{
	const char *text = api_value(c, "limit")->text;

	p->filter.limit = ANY;
	for (int i = 0; text && i < LIMIT_COUNT; i++)
		if (!strcmp(text, limit_name((enum limit)i)))
			p->filter.limit = i;
}

static bool take_pool(struct api_call *c, struct page *p, struct error *e)
{
	const char *text = api_value(c, "pool")->text;
	size_t pool;

	p->filter.pool = ANY;
	if (!text)
		return true;
	if (!history_find_pool(c->history, text, &pool, e))
		return api_refuse(c, e, 404,
				  "pool: no '%.60s' in this history; GET /api/v1/pools tells those that there are",
				  text);
	p->filter.pool = (int64_t)pool;
	return true;
}

static bool take_group(struct api_call *c, struct page *p, struct error *e)
{
	size_t count;
	const struct history_pool *pools = history_pools(c->history, &count);

	p->filter.group = api_value(c, "group")->text;
	for (size_t i = 0; p->filter.group && i < count; i++)
		for (size_t g = 0; g < pools[i].group_count; g++)
			if (!strcmp(pools[i].groups[g], p->filter.group))
				return true;
	return !p->filter.group ||
	       api_refuse(c, e, 404,
			  "group: no node group '%.60s' in this history; GET /api/v1 tells those that there are",
			  p->filter.group);
}

/* "TICK.POOL" of the last one told; largest first: how many were told. */
static bool parse_cursor(const char *text, struct page *p)
{
	const char *point = strchr(text, '.');

	if (p->filter.largest_first)
		return fixed_parse(text, strlen(text), 0, &p->skip) && p->skip <= LARGEST_MOST;
	return point && fixed_parse(text, (size_t)(point - text), 0, &p->below_tick) &&
	       fixed_parse(point + 1, strlen(point + 1), 0, &p->below_pool);
}

static bool take_decision_cursor(struct api_call *c, struct page *p, struct error *e)
{
	const char *text = api_value(c, "cursor")->text;

	p->below_tick = INT64_MAX;
	return !text || parse_cursor(text, p) ||
	       api_refuse(c, e, 400, "cursor: found '%.40s'; allowed: what next said, with the same filters", text);
}

static bool take_times(struct api_call *c, struct page *p, struct error *e)
{
	millis from = c->span.from - 1, to = c->span.to;

	if (!api_time_of(c, "from", from, &from, e) || !api_time_of(c, "to", to, &to, e))
		return false;
	if (from > to && api_value(c, "from")->text && api_value(c, "to")->text)
		return api_refuse(c, e, 400, "from: found a time after to; swap them");
	if (!history_tick_at(c->history, from, &p->filter.from, e) ||
	    !history_tick_at(c->history, to, &p->filter.to, e))
		return false;
	p->filter.from += from >= c->span.from;
	p->filter.to -= to < c->span.from;
	return true;
}

static bool take_question(struct api_call *c, struct page *p, struct error *e)
{
	*p = (struct page){ .count = api_value(c, "count")->number,
			    .filter = { .changed_only = api_value(c, "changed")->number,
					.largest_first = api_value(c, "largest")->number } };
	take_limit(c, p);
	return take_pool(c, p, e) && take_group(c, p, e) && take_times(c, p, e) && take_decision_cursor(c, p, e);
}

static void keep_hits(struct page *p, const struct history_hit *hits, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (hits[i].tick < p->below_tick ||
		    (hits[i].tick == p->below_tick && (int64_t)hits[i].pool < p->below_pool))
			buf_append(&p->hits, &hits[i], sizeof hits[i]);
}

static size_t hits_of(const struct page *p)
{
	return p->hits.len / sizeof(struct history_hit);
}

/* Piece by piece back in time, until there are enough, or enough was looked at. */
static bool look(struct api_call *c, struct page *p, struct error *e)
{
	bool has_index = p->filter.changed_only || p->filter.limit > 0;
	int64_t first = p->filter.from, high = p->filter.to < p->below_tick ? p->filter.to : p->below_tick;
	p->newest = high;
	p->oldest = first;
	int64_t rows = 0, most = has_index ? INDEXED_MOST : ROWS_MOST;
	size_t pools, count;

	history_pools(c->history, &pools);
	const int64_t ticks = (has_index ? ROWS_MOST : ROWS_AT_ONCE) / (int64_t)pools + 1;
	p->filter.most = p->count + 1 + (int64_t)pools;
	for (; high >= first && rows < most && (int64_t)hits_of(p) <= p->count; high = p->filter.from - 1) {
		struct history_hit *hits;

		p->filter.to = high;
		p->filter.from = high - ticks + 1 > first ? high - ticks + 1 : first;
		if (!history_find(c->history, &p->filter, &c->arena, &hits, &count, e))
			return false;
		keep_hits(p, hits, count);
		rows += ticks * (int64_t)pools;
	}
	p->looked_to = high >= first ? high + 1 : -1;
	return true;
}

static bool look_for_largest(struct api_call *c, struct page *p, struct error *e)
{
	struct history_hit *hits;
	size_t count;

	p->filter.most = p->skip + p->count + 1;
	p->looked_to = -1;
	p->newest = p->filter.to;
	p->oldest = p->filter.from;
	if (!history_find(c->history, &p->filter, &c->arena, &hits, &count, e))
		return false;
	if (count > (size_t)p->skip)
		buf_append(&p->hits, hits + p->skip, (count - (size_t)p->skip) * sizeof *hits);
	return true;
}

static bool read_item(struct api_call *c, const struct history_hit *hit, struct decision_item *out, struct error *e)
{
	const struct api_fleet *fleet = api_fleet_at(c, hit->tick, e);
	struct tick_record r;
	size_t place, count;

	if (!fleet || !history_read(c->history, hit->tick, hit->pool, &r, e))
		return false;
	if (!api_fleet_place(fleet, hit->pool, &place))
		return error_set(e, ERROR_INVALID, "%s: damaged: a decision of a pool that was not there",
				 history_path(c->history));
	const struct explained x = {
		.fleet = &fleet->manifest.fleet, .pool = place, .tick = hit->tick, .now = r.now, .plan = &r.plan
	};
	const struct history_pool *pool = &history_pools(c->history, &count)[r.pool];
	const struct pool_decision *d = &r.plan.decision;
	*out = (struct decision_item){ .tick = r.tick,
				       .at = r.now,
				       .namespace = pool->namespace,
				       .pool = pool->name,
				       .from = d->ready + d->on_the_way,
				       .asked = plan_asks(&r.plan) ? d->decided - d->ready - d->on_the_way : ABSENT,
				       .held_by = limit_name((enum limit)d->held_by),
				       .reason = explain_headline(&x, &c->arena),
				       .d = *d };
	if (fleet->manifest.fleet.pools[place].is_unpriced)
		out->d.dollars_per_hour = ABSENT;
	return true;
}

static void write_cursor(const struct page *p, bool has_more, char *cursor, size_t room)
{
	const struct history_hit *hits = (const void *)p->hits.text;

	if (has_more && p->filter.largest_first)
		snprintf(cursor, room, "%" PRId64, p->skip + p->count);
	else if (has_more)
		snprintf(cursor, room, "%" PRId64 ".%zu", hits[p->count - 1].tick, hits[p->count - 1].pool);
	else if (p->looked_to >= 0)
		snprintf(cursor, room, "%" PRId64 ".0", p->looked_to);
}

/* A page that ends in the middle of its range is of the ticks down to its last item. */
static int64_t ticks_of(const struct page *p, bool has_more)
{
	const struct history_hit *hits = (const void *)p->hits.text;
	int64_t end = p->filter.largest_first ? p->oldest
		      : has_more	      ? hits[p->count - 1].tick
		      : p->looked_to >= 0     ? p->looked_to
					      : p->oldest;

	return p->newest >= end ? p->newest - end + 1 : 0;
}

/* How many of them can be told: each is read from the one before it, or from the last keyframe. */
static size_t affordable(const struct history_hit *hits, size_t count)
{
	int64_t rows = 0;
	size_t n = 0;

	for (; n < count && (!n || rows < DECODED_MOST); n++) {
		int64_t from_keyframe = hits[n].tick % KEYFRAME_EVERY + 1;
		int64_t from_older = n + 1 < count && hits[n + 1].pool == hits[n].pool ? hits[n].tick - hits[n + 1].tick
										       : KEYFRAME_EVERY;

		rows += from_older > 0 && from_older < from_keyframe ? from_older : from_keyframe;
	}
	return n;
}

static bool write_page(struct api_call *c, struct page *p, struct buf *out, struct error *e)
{
	const struct history_hit *hits = (const void *)p->hits.text;
	size_t found = hits_of(p), count = affordable(hits, found < (size_t)p->count ? found : (size_t)p->count);
	struct decision_item *items = arena_array(&c->arena, struct decision_item, count + 1);
	struct page_view v = { .items = { items, count } };
	bool has_more = found > count;

	/* The oldest first: reading on from tick to tick is cheap. */
	for (size_t i = count; i-- > 0;)
		if (!read_item(c, &hits[i], &items[i], e))
			return false;
	if (p->looked_to >= 0 && !has_more && !history_tick_end(c->history, p->looked_to, &v.searched_to, e))
		return false;
	p->count = (int64_t)count;
	v.ticks = ticks_of(p, has_more);
	write_cursor(p, has_more, v.next, sizeof v.next);
	record_write(&page_shape, &v, out);
	buf_text(out, "\n");
	return true;
}

static bool write_decisions(struct api_call *c, struct buf *out, struct error *e)
{
	struct page p = { 0 };
	bool ok = take_question(c, &p, e) && (p.filter.largest_first ? look_for_largest(c, &p, e) : look(c, &p, e)) &&
		  write_page(c, &p, out, e);

	buf_release(&p.hits);
	return ok;
}

static const struct api_parameter decision_parameters[] = {
	{ "pool", PARAMETER_TEXT, .max = 512, .help = "only of this pool: NAME or NAMESPACE/NAME" },
	{ "from", PARAMETER_TIME, .help = "from this time on" },
	{ "to", PARAMETER_TIME, .help = "up to this time" },
	{ "group", PARAMETER_TEXT, .max = 253, .help = "only decisions that changed or limited this node group" },
	{ "limit", PARAMETER_CHOICE, .choices = limits + 1,
	  .help = "only decisions with this limit: budget, max, stock-out, ..." },
	{ "changed", PARAMETER_FLAG, .help = "only decisions that asked for something" },
	{ "largest", PARAMETER_FLAG, .help = "by the change of hot replicas asked for, growth before shrinking" },
	{ "count", PARAMETER_COUNT, .min = 1, .max = PAGE_MOST, .fallback = 50, .help = "at most so many" },
	{ "cursor", PARAMETER_TEXT, .max = 64, .help = "what next of the page before said" },
};

const struct api_route api_route_decisions = {
	.method = "GET",
	.path = "/api/v1/decisions",
	.name = "listDecisions",
	.summary = "The decision log, newest first",
	API_PARAMETERS(decision_parameters),
	.needs_history = true,
	.answer = &page_shape,
	.write = write_decisions,
};

/* --- GET /api/v1/decisions/{tick}/{namespace}/{name}: one with all that it depended on --- */

static void schema_fields(struct buf *out)
{
	json_schema_type("object", false, out);
	json_member("properties", out);
	buf_text(out, "{");
	for (size_t i = 0; i < pool_decision_info.count; i++) {
		const struct field_info *f = &pool_decision_info.fields[i];
		CLEANUP(buf_release) struct buf help = { 0 };
		bool is_enum = !strncmp(f->unit, "enum:", 5), is_time = !strcmp(f->unit, "time");

		buf_printf(&help, "%s (%s)", f->help, f->unit);
		json_member(f->name, out);
		buf_text(out, "{");
		json_schema_type(is_enum ? "string,integer" : is_time ? "string" : "integer", true, out);
		json_member_text("description", help.text, out);
		buf_text(out, "}");
	}
	buf_text(out, "}");
}

static void schema_object(struct buf *out)
{
	json_schema_type("object", false, out);
}

static void schema_objects(struct buf *out)
{
	json_schema_type("array", false, out);
	buf_text(out, ",\"items\":{");
	json_schema_type("object", false, out);
	buf_text(out, "}");
}

static const struct record_member part_members[] = {
	{ "title", RECORD_TEXT(explanation_part, title),
	  .help = "Decided, Seen, Expected, Rule, Wished, Held by, It costs, Self-test" },
	{ "text", RECORD_TEXT(explanation_part, text), .help = "whole sentences; every number stands in the record" },
};
static const struct record_shape part_shape = RECORD_SHAPE("ExplanationPart", explanation_part, part_members);

struct decision_view {
	int64_t tick, previous, next;
	millis at, interval;
	const char *namespace, *pool, *policy;
	struct api_objective objective;
};
static const struct record_member decision_members[] = {
	{ "tick", RECORD_COUNT(decision_view, tick), .help = "its number" },
	{ "at", RECORD_TIME(decision_view, at), .help = "its end" },
	{ "intervalSeconds", RECORD_NUMBER(decision_view, interval, 3), .help = "its length" },
	{ "namespace", RECORD_TEXT(decision_view, namespace), .help = "of the WarmPool" },
	{ "pool", RECORD_TEXT(decision_view, pool), .help = "its name" },
	{ "policy", RECORD_TEXT(decision_view, policy), .help = "what decided" },
	{ "objective", RECORD_OBJECT(decision_view, objective, api_objective_shape), .help = "of that time" },
	{ "previous", RECORD_COUNT(decision_view, previous), .may_be_null = true,
	  .help = "tick of the decision before" },
	{ "next", RECORD_COUNT(decision_view, next), .may_be_null = true, .help = "tick of the decision after" },
	{ "explanation", RECORD_LIST_APART(part_shape), .help = "in sentences" },
	{ "decision", RECORD_OTHER(schema_fields), .help = "every number of the decision" },
	{ "groups", RECORD_OTHER(schema_objects),
	  .help = "per node group: its name, its price in micro-dollars, and every number of its decision" },
	{ "prices", RECORD_OTHER(schema_objects), .help = "the price of every objective, loosest first" },
	{ "input", RECORD_OTHER(schema_object),
	  .help = "what the policy saw: fields, and the lists scrapes, groups, starts, events, deadlines" },
	{ "units", RECORD_OTHER(schema_object), .help = "the unit of every field, by record" },
};
static const struct record_shape decision_shape = RECORD_SHAPE("Decision", decision_view, decision_members);

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
	struct engine_moves_told moves;
	if (!engine_move_around(c->history, &(struct pool_then){ &fleet->manifest.fleet, place, r.now }, &c->arena,
				&moves, e))
		return false;
	const struct explained x = { .fleet = &fleet->manifest.fleet,
				     .pool = place,
				     .tick = tick,
				     .now = r.now,
				     .plan = &r.plan,
				     .moves = moves.items,
				     .move_count = moves.count,
				     .share_rule = moves.choice.why,
				     .share_rule_since = moves.choice.since,
				     .waits_for = moves.waits_for };
	const struct decision_view v = { .tick = tick,
					 .at = r.now,
					 .interval = r.interval,
					 .namespace = spec->namespace,
					 .pool = spec->name,
					 .policy = policy,
					 .objective = api_objective(spec),
					 .previous = tick > c->span.first_tick ? tick - 1 : ABSENT,
					 .next = tick < c->span.last_tick ? tick + 1 : ABSENT };
	buf_text(out, "{");
	record_write_members(&decision_shape, &v, out);
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
	.answer = &decision_shape,
	.write = write_decision,
};

/* --- GET /api/v1/launches: what was asked of clouds, and what came of it --- */

enum { SAME_TIME_MOST = 1000, MACHINES_SHOWN = 50 };

struct launch_view {
	struct launch l;
	const char *verb;
	int64_t target, tick, machine_count;
	millis ended_at;
	struct record_items machines;
};
static const struct record_member launch_members[] = {
	{ "token", RECORD_TEXT(launch_view, l.token), .help = "unique; what the provider is told" },
	{ "group", RECORD_TEXT(launch_view, l.group), .help = "the node group" },
	{ "verb", RECORD_TEXT(launch_view, verb), .help = "what was asked" },
	{ "target", RECORD_COUNT(launch_view, target), .may_be_null = true,
	  .help = "size asked for, absolute; null where machines are named" },
	{ "machines", RECORD_TEXTS(launch_view, machines), .help = "that were named; the first 50" },
	{ "machineCount", RECORD_COUNT(launch_view, machine_count), .help = "how many were named" },
	{ "tick", RECORD_COUNT(launch_view, tick), .may_be_null = true, .help = "the last one decided before" },
	{ "askedAt", RECORD_TIME(launch_view, l.asked_at), .help = "on disk before the first byte went out" },
	{ "endedAt", RECORD_TIME(launch_view, ended_at), .may_be_null = true, .help = "null: open" },
	{ "outcome", RECORD_TEXT(launch_view, l.outcome), .may_be_null = true,
	  .help = "done, or the kind of failure; null: open" },
	{ "operation", RECORD_TEXT(launch_view, l.operation), .empty_is_null = true,
	  .help = "what the provider calls what goes on after its answer" },
};
static const struct record_shape launch_shape = RECORD_SHAPE("Launch", launch_view, launch_members);

struct launches_view {
	struct record_items items;
	char next[64];
};
static const struct record_member launches_members[] = {
	{ "items", RECORD_LIST(launches_view, items, launch_shape), .help = "newest first; a simulation has none" },
	{ "next", RECORD_CHARS(launches_view, next), .empty_is_null = true,
	  .help = "cursor of the next page; null at the end" },
};
static const struct record_shape launches_shape = RECORD_SHAPE("Launches", launches_view, launches_members);

static struct launch_view view_launch(const struct api_call *c, const struct launch *l)
{
	size_t shown = l->machine_count < MACHINES_SHOWN ? l->machine_count : MACHINES_SHOWN;

	return (struct launch_view){ .l = *l,
				     .verb = c->setup->verb_name(l->verb),
				     .target = l->machine_count ? ABSENT : l->target,
				     .tick = l->tick < 0 ? ABSENT : l->tick,
				     .machine_count = (int64_t)l->machine_count,
				     .ended_at = l->outcome ? l->ended_at : 0,
				     .machines = { l->machines, shown } };
}

/* "MILLIS.N": asked at that time or before, without the first N of exactly that time. */
static bool take_launch_cursor(struct api_call *c, struct launch_filter *f, int64_t *skip, struct error *e)
{
	const char *text = api_value(c, "cursor")->text, *point = text ? strchr(text, '.') : NULL;
	int64_t to;

	*skip = 0;
	if (!text)
		return true;
	if (!point || !fixed_parse(text, (size_t)(point - text), 0, &to) ||
	    !fixed_parse(point + 1, strlen(point + 1), 0, skip) || *skip > SAME_TIME_MOST)
		return api_refuse(c, e, 400, "cursor: found '%.40s'; allowed: what next said, with the same filters",
				  text);
	f->to = to < f->to ? to : f->to;
	return true;
}

static bool write_launches(struct api_call *c, struct buf *out, struct error *e)
{
	struct launch_filter f = { .group = api_value(c, "group")->text };
	int64_t number = api_value(c, "count")->number, skip;
	struct launch *all;
	size_t count;

	if (!api_time_of(c, "from", 0, &f.from, e) || !api_time_of(c, "to", INT64_MAX, &f.to, e) ||
	    !take_launch_cursor(c, &f, &skip, e))
		return false;
	f.most = number + skip + 1;
	if (!launch_find(c->history, &f, &c->arena, &all, &count, e))
		return false;
	/* The oldest first: those that were told stand last. */
	size_t told = 0;
	while (told < (size_t)skip && told < count && all[count - 1 - told].asked_at == f.to)
		told++;
	size_t end = count - told, begin = end > (size_t)number ? end - (size_t)number : 0;
	struct launch_view *items = arena_array(&c->arena, struct launch_view, end - begin + 1);
	struct launches_view v = { .items = { items, end - begin } };
	for (size_t i = end; i-- > begin;)
		items[end - 1 - i] = view_launch(c, &all[i]);
	/* The oldest told stands at `begin`; those of its time behind it. */
	size_t same = 0;
	while (begin + same < count && all[begin + same].asked_at == all[begin].asked_at)
		same++;
	if (begin > 0)
		snprintf(v.next, sizeof v.next, "%" PRId64 ".%zu", all[begin].asked_at, same);
	record_write(&launches_shape, &v, out);
	buf_text(out, "\n");
	return true;
}

static const struct api_parameter launch_parameters[] = {
	{ "from", PARAMETER_TIME, .help = "asked from this time on" },
	{ "to", PARAMETER_TIME, .help = "asked up to this time" },
	{ "group", PARAMETER_TEXT, .max = 253, .help = "only of this node group" },
	{ "count", PARAMETER_COUNT, .min = 1, .max = 500, .fallback = 50, .help = "at most so many" },
	{ "cursor", PARAMETER_TEXT, .max = 64, .help = "what next of the page before said" },
};

const struct api_route api_route_launches = {
	.method = "GET",
	.path = "/api/v1/launches",
	.name = "listLaunches",
	.summary = "What was asked of clouds, and what came of it, newest first",
	API_PARAMETERS(launch_parameters),
	.needs_history = true,
	.answer = &launches_shape,
	.write = write_launches,
};
