/* GET /api/v1/decisions: the log, newest first, page by page. */
#include "base/quantity.h"
#include "controller/explain/explain.h"
#include "controller/web/api_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* In the order of enum limit. */
#define API_LIMITS "none|min|max|budget|rate|cooldown|stale|queue|stock-out|quota|whole-node|gang|observe|paused|growth"

/* Rows of decisions that one request may look at, and how many at once. */
enum {
	ROWS_AT_ONCE = 20000,
	ROWS_MOST = 200000,
	INDEXED_MOST = 2000000,
	LARGEST_MOST = 5000,
	PAGE_MOST = 500,
	DECODED_MOST = 3000
};

static const struct api_member item_members[] = {
	{ "tick", API_COUNT, .help = "its number" },
	{ "at", API_TIME, .help = "its end" },
	{ "namespace", API_TEXT, .help = "of the WarmPool" },
	{ "pool", API_TEXT, .help = "its name" },
	{ "demand", API_NUMBER, .may_be_null = true, .help = "offered load, in replicas" },
	{ "waiting", API_COUNT, .may_be_null = true, .help = "requests waiting" },
	{ "hot", API_COUNT, .help = "replicas that may start requests" },
	{ "from", API_COUNT, .help = "hot replicas before, on their way included" },
	{ "wished", API_COUNT, .help = "hot replicas wished, on their way included" },
	{ "decided", API_COUNT, .help = "hot replicas after the plan, on their way included" },
	{ "asked", API_COUNT, .may_be_null = true,
	  .help = "change of hot replicas asked for; null where nothing was asked" },
	{ "heldBy", API_TEXT, .help = "the one limit that held it, or none" },
	{ "dollarsPerHour", API_NUMBER, .help = "what the pool costs after the plan" },
	{ "late", API_COUNT, .may_be_null = true, .help = "late requests of the tick" },
	{ "reason", API_TEXT, .help = "in sentences" },
};
static const struct api_shape item_shape = API_SHAPE("DecisionItem", item_members);

static const struct api_member members[] = {
	{ "items", API_LIST,
	  .help = "newest first, or largest first; fewer than count where much had to be looked through",
	  .of = &item_shape },
	{ "next", API_TEXT, .may_be_null = true, .help = "cursor of the next page; null at the end" },
	{ "searchedTo", API_TIME, .may_be_null = true, .help = "how far back was looked; null at the end" },
};
static const struct api_shape shape = API_SHAPE("Decisions", members);

struct page {
	struct history_filter filter;
	int64_t count;
	int64_t below_tick, below_pool; /* only what is older, or of the same tick and a pool further up */
	int64_t skip;			/* largest first: so many were told */
	int64_t looked_to;		/* ticks from here on were looked at */
	struct buf hits;		/* struct history_hit */
};

/* --- the question --- */

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

static bool take_cursor(struct api_call *c, struct page *p, struct error *e)
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
	return take_pool(c, p, e) && take_group(c, p, e) && take_times(c, p, e) && take_cursor(c, p, e);
}

/* --- looking --- */

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
	if (!history_find(c->history, &p->filter, &c->arena, &hits, &count, e))
		return false;
	if (count > (size_t)p->skip)
		buf_append(&p->hits, hits + p->skip, (count - (size_t)p->skip) * sizeof *hits);
	return true;
}

/* --- telling --- */

struct item {
	struct tick_record r; /* of its lists only the decision lasts */
	bool has_asked;
	const char *reason;
};

static bool read_item(struct api_call *c, const struct history_hit *hit, struct item *out, struct error *e)
{
	const struct api_fleet *fleet = api_fleet_at(c, hit->tick, e);
	size_t place;

	if (!fleet || !history_read(c->history, hit->tick, hit->pool, &out->r, e))
		return false;
	if (!api_fleet_place(fleet, hit->pool, &place))
		return error_set(e, ERROR_INVALID, "%s: damaged: a decision of a pool that was not there",
				 history_path(c->history));
	const struct explained x = { .fleet = &fleet->manifest.fleet,
				     .pool = place,
				     .tick = hit->tick,
				     .now = out->r.now,
				     .plan = &out->r.plan };
	out->has_asked = plan_asks(&out->r.plan);
	out->reason = explain_headline(&x, &c->arena);
	return true;
}

static void write_item(struct api_call *c, const struct item *i, struct buf *out)
{
	const struct pool_decision *d = &i->r.plan.decision;
	size_t count;
	const struct history_pool *pool = &history_pools(c->history, &count)[i->r.pool];

	item_begin(out);
	member_count(out, "tick", i->r.tick);
	member_time(out, "at", i->r.now);
	member_text(out, "namespace", pool->namespace);
	member_text(out, "pool", pool->name);
	member_scaled(out, "demand", d->demand_milli, 3);
	member_count(out, "waiting", d->waiting_now);
	member_count(out, "hot", d->ready);
	member_count(out, "from", d->ready + d->on_the_way);
	member_count(out, "wished", d->wished);
	member_count(out, "decided", d->decided);
	member_count(out, "asked", i->has_asked ? d->decided - d->ready - d->on_the_way : ABSENT);
	member_text(out, "heldBy", limit_name((enum limit)d->held_by));
	member_scaled(out, "dollarsPerHour", d->dollars_per_hour, 6);
	member_count(out, "late", d->late);
	member_text(out, "reason", i->reason);
	bracket_end(out, '}');
}

static void write_next(const struct page *p, bool has_more, struct buf *out)
{
	const struct history_hit *hits = (const void *)p->hits.text;
	char cursor[64] = "";

	if (has_more && p->filter.largest_first)
		snprintf(cursor, sizeof cursor, "%" PRId64, p->skip + p->count);
	else if (has_more)
		snprintf(cursor, sizeof cursor, "%" PRId64 ".%zu", hits[p->count - 1].tick, hits[p->count - 1].pool);
	else if (p->looked_to >= 0)
		snprintf(cursor, sizeof cursor, "%" PRId64 ".0", p->looked_to);
	member_text(out, "next", *cursor ? cursor : NULL);
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
	size_t found = hits_of(p);

	p->count = (int64_t)affordable(hits, found < (size_t)p->count ? found : (size_t)p->count);
	bool has_more = (int64_t)found > p->count;
	size_t count = (size_t)p->count;
	struct item *items = arena_array(&c->arena, struct item, count + 1);
	millis searched = 0;

	/* The oldest first: reading on from tick to tick is cheap. */
	for (size_t i = count; i-- > 0;)
		if (!read_item(c, &hits[i], &items[i], e))
			return false;
	if (p->looked_to >= 0 && !has_more && !history_tick_end(c->history, p->looked_to, &searched, e))
		return false;
	buf_text(out, "{");
	member_list(out, "items");
	for (size_t i = 0; i < count; i++)
		write_item(c, &items[i], out);
	bracket_end(out, ']');
	write_next(p, has_more, out);
	member_time(out, "searchedTo", searched);
	buf_text(out, "}\n");
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

static const struct api_parameter parameters[] = {
	{ "pool", PARAMETER_TEXT, .max = 512, .help = "only of this pool: NAME or NAMESPACE/NAME" },
	{ "from", PARAMETER_TIME, .help = "from this time on" },
	{ "to", PARAMETER_TIME, .help = "up to this time" },
	{ "group", PARAMETER_TEXT, .max = 253, .help = "only where this node group was asked for something or held" },
	{ "limit", PARAMETER_CHOICE, .choices = API_LIMITS,
	  .help = "only what this limit held: budget, max, stock-out, ..." },
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
	API_PARAMETERS(parameters),
	.needs_history = true,
	.answer = &shape,
	.write = write_decisions,
};
