#include "signals/prometheus_range.h"

#include "base/alloc.h"
#include "base/net/retry.h"
#include "signals/counter_delta.h"

#include <stdlib.h>
#include <string.h>

/* What a step is made of, a query each: the engine's quantities, replicas that were scraped, and that were ready. */
enum { COUNT = ENGINE_QUANTITY_COUNT, READY, PARTS };
/* STEPS a piece, below what the server allows, so that an answer stays small; MOST_EDGES of a histogram. */
enum { STEPS = 5000, MOST_EDGES = 100, TRIES = 5, MOST_SAMPLES = STEPS * MOST_EDGES };
static const size_t MOST_BYTES = (size_t)64 << 20;
static const millis TIMEOUT = 2 * MINUTE;
static const int64_t NOTHING = INT64_MIN;

struct part {
	struct prometheus_range *range;
	struct prometheus_call call;
	struct buf query; /* empty: the engine lacks the quantity */
	struct retry retry;
	struct timer again;
	int64_t *values; /* of the steps of the piece: thousandths, seconds in millionths, or NOTHING */
	int64_t rest;	 /* below one request, for the next step */
};

struct prometheus_range {
	struct loop *loop;
	struct prometheus_range_events events;
	struct prometheus *prometheus;
	millis to, step, at; /* at: the first step of the piece under way */
	int64_t objective_us;
	struct part parts[PARTS];
	/* The histogram of waits: requests up to each edge, per step. */
	int64_t edges[MOST_EDGES];
	int64_t *up_to[MOST_EDGES];
	size_t edge_count;
	int64_t rest_late; /* below one request, for the next step */
	size_t in_flight;
	struct error error;
	struct prometheus_range_report report;
};

static int64_t *clear(int64_t *values)
{
	for (size_t i = 0; i < STEPS; i++)
		values[i] = NOTHING;
	return values;
}

/* What came of a part in this piece. */
static void forget(struct prometheus_range *r, int part)
{
	clear(r->parts[part].values);
	if (part != ENGINE_WAIT_BUCKET)
		return;
	for (size_t i = 0; i < r->edge_count; i++)
		free(r->up_to[i]);
	r->edge_count = 0;
}

static int64_t *values_up_to(struct prometheus_range *r, const char *le, struct error *e)
{
	int64_t edge;

	if (!le) {
		error_set(e, ERROR_INVALID, "a bucket without the label le");
		return NULL;
	}
	if (!page_bound((struct exposition_slice){ le, strlen(le) }, &edge, e))
		return NULL;
	for (size_t i = 0; i < r->edge_count; i++)
		if (r->edges[i] == edge)
			return r->up_to[i];
	if (r->edge_count == MOST_EDGES) {
		error_set(e, ERROR_INVALID, "a histogram with more than %d buckets", MOST_EDGES);
		return NULL;
	}
	r->edges[r->edge_count] = edge;
	r->up_to[r->edge_count] = clear(xmalloc(STEPS * sizeof(int64_t)));
	return r->up_to[r->edge_count++];
}

/* An impossible value is left out and counted. */
static bool on_sample(void *user, const struct prometheus_sample *s, struct error *e)
{
	struct part *p = user;
	struct prometheus_range *r = p->range;
	int part = (int)(p - r->parts);
	int64_t *values = p->values, value;
	struct error none;

	if (part == ENGINE_WAIT_BUCKET)
		values = values_up_to(r, s->series ? prometheus_label(s->series, "le") : NULL, e);
	if (!values)
		return false;
	size_t at = s->at >= r->at ? (size_t)((s->at - r->at) / r->step) : STEPS;
	if (at >= STEPS || (s->at - r->at) % r->step)
		return error_set(e, ERROR_INVALID, "a sample beside the steps that were asked for");
	if (part != ENGINE_WAIT_BUCKET && values[at] != NOTHING)
		return error_set(e, ERROR_INVALID, "several series, where one was asked for");
	if (page_value(part >= COUNT ? ENGINE_RUNNING : (enum engine_quantity)part, s->value, &value, &none))
		values[at] = value;
	else
		r->report.refused++;
	return true;
}

/* Whole requests of a counter. */
static int64_t whole(struct prometheus_range *r, enum engine_quantity q, size_t at)
{
	struct part *p = &r->parts[q];
	int64_t value = p->values[at];

	if (value == NOTHING)
		return NOTHING;
	value += p->rest;
	p->rest = value % 1000;
	return value / 1000;
}

static int64_t whole_or_zero(struct prometheus_range *r, enum engine_quantity q, size_t at)
{
	int64_t value = whole(r, q, at);

	return value == NOTHING ? 0 : value;
}

static int64_t level(const struct prometheus_range *r, int part, size_t at)
{
	int64_t value = r->parts[part].values[at];

	return value == NOTHING ? 0 : (value + 500) / 1000;
}

static int64_t late(struct prometheus_range *r, size_t at)
{
	struct wait_counts w = { .waited = r->parts[ENGINE_WAITED].values[at], .above_us = PAGE_UNBOUNDED };
	bool has_some = false;

	if (w.waited == NOTHING)
		return READING_UNKNOWN;
	for (size_t i = 0; i < r->edge_count; i++) {
		int64_t edge = r->edges[i], count = r->up_to[i][at];
		if (count == NOTHING)
			continue;
		has_some = true;
		if (edge <= r->objective_us && edge > w.below_us) {
			w.below_us = edge;
			w.up_to_below = count;
		}
		if (edge > r->objective_us && edge < w.above_us) {
			w.above_us = edge;
			w.up_to_above = count;
		}
	}
	if (!has_some)
		return READING_UNKNOWN;
	int64_t sum = counter_delta_late(&w, r->objective_us) + r->rest_late;
	r->rest_late = sum % 1000;
	return sum / 1000;
}

static struct pool_reading reading(struct prometheus_range *r, size_t at)
{
	int64_t kv = r->parts[ENGINE_KV_CACHE].values[at];
	int64_t sum = r->parts[ENGINE_LATENCY_SUM].values[at], count = r->parts[ENGINE_LATENCY_COUNT].values[at];
	bool has_latency = sum != NOTHING && count != NOTHING && count >= 1000;
	int64_t replicas = level(r, COUNT, at), ready = level(r, READY, at);

	return (struct pool_reading){
		.at = r->at + (millis)at * r->step,
		.expected = ready > replicas ? ready : replicas,
		.fresh = replicas,
		.ready = ready > replicas ? ready : replicas,
		.running = level(r, ENGINE_RUNNING, at),
		.waiting = level(r, ENGINE_WAITING, at) + level(r, ENGINE_WAITING_OUTSIDE, at),
		.full = READING_UNKNOWN, /* these are sums over all */
		.running_full = READING_UNKNOWN,
		.started = whole(r, ENGINE_STARTED, at),
		.late = late(r, at),
		.refused = whole_or_zero(r, ENGINE_REFUSED, at),
		.completed = whole_or_zero(r, ENGINE_COMPLETED, at),
		.prompt_tokens = whole_or_zero(r, ENGINE_PROMPT_TOKENS, at),
		.output_tokens = whole_or_zero(r, ENGINE_OUTPUT_TOKENS, at),
		.inter_token_latency_us = has_latency ? (int64_t)((__int128)sum * 1000 / count) : READING_UNKNOWN,
		.kv_cache_permille = kv != NOTHING && kv <= 1000000 ? (kv + 500) / 1000 : READING_UNKNOWN,
	};
}

static void report_piece(struct prometheus_range *r)
{
	for (size_t i = 0; i < STEPS && r->at + (millis)i * r->step <= r->to; i++) {
		if (r->parts[ENGINE_RUNNING].values[i] == NOTHING || r->parts[ENGINE_WAITING].values[i] == NOTHING) {
			r->report.missing++;
			continue;
		}
		struct pool_reading made = reading(r, i);
		r->report.readings++;
		r->events.on_reading(r->events.user, &made);
	}
}

static void write_query(const struct prometheus_range_settings *s, int part, struct buf *out)
{
	const struct promql_scope scope = { s->custom ? *s->custom : engine_metrics(s->engine), s->labels,
					    s->label_count };
	millis window = s->step > 4 * s->interval ? s->step : 4 * s->interval;

	if (part == COUNT)
		promql_pool_count(&scope, out);
	else if (part == READY)
		promql_pool_ready(&scope, out);
	else if (!engine_is_shown_only((enum engine_quantity)part))
		promql_pool(&scope, (enum engine_quantity)part, s->step, window, out);
}

static const char *part_name(int part)
{
	return part == READY   ? "replicas ready, by kube-state-metrics"
	       : part == COUNT ? "replicas read"
			       : engine_quantity_name((enum engine_quantity)part);
}

void prometheus_range_print(const struct prometheus_range_settings *s, struct buf *out)
{
	for (int i = 0; i < PARTS; i++) {
		CLEANUP(buf_release) struct buf query = { 0 };
		write_query(s, i, &query);
		if (query.len)
			buf_printf(out, "# %s\n%s\n\n", part_name(i), query.text);
	}
}

static void finish(struct prometheus_range *r)
{
	r->events.done(r->events.user, &r->report, &r->error);
	for (int i = 0; i < PARTS; i++) {
		buf_release(&r->parts[i].query);
		forget(r, i);
		free(r->parts[i].values);
	}
	prometheus_close(r->prometheus);
	free(r);
}

static void ask(struct part *p)
{
	struct prometheus_range *r = p->range;
	millis last = r->at + (STEPS - 1) * r->step;

	p->call.from = r->at;
	p->call.to = last < r->to ? last : r->to;
	p->call.step = r->step;
	prometheus_start(r->prometheus, &p->call);
}

static void ask_again(struct timer *t)
{
	ask(t->user);
}

static void begin(struct prometheus_range *r)
{
	for (int i = 0; i < PARTS; i++)
		forget(r, i);
	for (int i = 0; i < PARTS; i++)
		if (r->parts[i].query.len) {
			retry_reset(&r->parts[i].retry);
			r->in_flight++;
			ask(&r->parts[i]);
		}
}

static void next(struct prometheus_range *r)
{
	if (r->error.kind == ERROR_NONE)
		report_piece(r);
	r->at += STEPS * r->step;
	if (r->error.kind != ERROR_NONE || r->at > r->to)
		finish(r);
	else
		begin(r);
}

/* Without levels there is nothing; the rest may be missing, and is named. */
static void blame(struct prometheus_range *r, int part, const struct error *e)
{
	bool is_needed = part == ENGINE_RUNNING || part == ENGINE_WAITING || part == COUNT;
	struct error *to = is_needed ? &r->error : &r->report.partial;

	if (to->kind != ERROR_NONE)
		return;
	*to = *e;
	error_wrap(to, "%s", part_name(part));
}

static void on_done(struct prometheus_call *c)
{
	struct part *p = c->user;
	struct prometheus_range *r = p->range;
	int part = (int)(p - r->parts);

	if (c->notes.warnings && !r->report.warning[0])
		memcpy(r->report.warning, c->notes.warning, sizeof r->report.warning);
	if (error_is_transient(&c->error) && p->retry.failures < TRIES) {
		forget(r, part);
		timer_start(r->loop, &p->again, retry_next(&p->retry, 0), ask_again);
		return;
	}
	if (c->error.kind != ERROR_NONE) {
		forget(r, part);
		blame(r, part, &c->error);
	}
	r->in_flight--;
	if (!r->in_flight)
		next(r);
}

void prometheus_range_start(struct loop *loop, struct http *http, const struct prometheus_range_settings *s,
			    const struct prometheus_range_events *events)
{
	struct prometheus_range *r = xcalloc(1, sizeof *r);

	r->loop = loop;
	r->events = *events;
	r->prometheus = prometheus_open(loop, http, s->url, &s->reach);
	r->at = s->from;
	r->to = s->to;
	r->step = s->step;
	r->objective_us = s->objective_us;
	for (int i = 0; i < PARTS; i++) {
		struct part *p = &r->parts[i];
		write_query(s, i, &p->query);
		p->range = r;
		p->values = xmalloc(STEPS * sizeof *p->values);
		p->retry = retry_make(SECOND, 30 * SECOND, random_stream((uint64_t)i, "range"));
		p->again.user = p;
		p->call = (struct prometheus_call){ .query = p->query.text,
						    .timeout = TIMEOUT,
						    .most_samples = MOST_SAMPLES,
						    .most_bytes = MOST_BYTES,
						    .on_sample = on_sample,
						    .done = on_done,
						    .user = p };
	}
	begin(r);
}
