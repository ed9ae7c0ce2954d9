#include "signals/prometheus_range.h"

#include "base/net/retry.h"
#include "signals/prometheus.h"
#include "signals/prometheus_rows.h"

#include <stdlib.h>
#include <string.h>

/* Below what the server takes, so that an answer stays small. */
enum { STEPS = 5000, TRIES = 5, MOST_SAMPLES = STEPS * ROWS_EDGES };
static const size_t MOST_BYTES = (size_t)64 << 20;
static const millis TIMEOUT = 2 * MINUTE;

/* One query; the last are how many replicas were read, and how many were ready. */
enum { COUNT = ROWS_COUNT, READY = ROWS_READY, QUERIES = ROWS_PARTS };

struct part {
	struct prometheus_range *range;
	struct prometheus_call call;
	struct buf query; /* empty: the engine does not tell it */
	struct retry retry;
	struct timer again;
};

struct prometheus_range {
	struct loop *loop;
	struct prometheus_range_events events;
	struct prometheus *prometheus;
	millis from, to, step, at; /* at: the first step of the piece under way */
	struct rows *rows;
	struct part parts[QUERIES];
	size_t in_flight;
	bool is_cancelled;
	struct error error;
	struct prometheus_range_report report;
};

static millis window_of(const struct prometheus_range_settings *s)
{
	return s->step > 4 * s->interval ? s->step : 4 * s->interval;
}

static void write_query(const struct prometheus_range_settings *s, int part, struct buf *out)
{
	const struct promql_scope scope = { s->custom ? *s->custom : engine_metrics(s->engine), s->labels,
					    s->label_count };

	if (part == COUNT)
		promql_pool_count(&scope, out);
	else if (part == READY)
		promql_pool_ready(&scope, out);
	else if (!engine_is_shown_only((enum engine_quantity)part))
		promql_pool(&scope, (enum engine_quantity)part, s->step, window_of(s), out);
}

static const char *part_name(int part)
{
	return part == READY   ? "replicas ready, by kube-state-metrics"
	       : part == COUNT ? "replicas read"
			       : engine_quantity_name((enum engine_quantity)part);
}

void prometheus_range_print(const struct prometheus_range_settings *s, struct buf *out)
{
	for (int i = 0; i < QUERIES; i++) {
		CLEANUP(buf_release) struct buf query = { 0 };
		write_query(s, i, &query);
		if (query.len)
			buf_printf(out, "# %s\n%s\n\n", part_name(i), query.text);
	}
}

static void finish(struct prometheus_range *r)
{
	r->events.done(r->events.user, &r->report, &r->error);
	for (int i = 0; i < QUERIES; i++)
		buf_release(&r->parts[i].query);
	prometheus_close(r->prometheus);
	rows_free(r->rows);
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
	rows_begin(r->rows, r->at);
	for (int i = 0; i < QUERIES; i++)
		if (r->parts[i].query.len) {
			retry_reset(&r->parts[i].retry);
			r->in_flight++;
			ask(&r->parts[i]);
		}
}

static void next(struct prometheus_range *r)
{
	if (r->error.kind == ERROR_NONE)
		rows_tell(r->rows, r->to, &r->report, &r->events);
	r->at += STEPS * r->step;
	if (r->error.kind != ERROR_NONE || r->at > r->to)
		finish(r);
	else
		begin(r);
}

/* Without levels there is nothing; the rest may be missing, and is named. */
static void blame(struct prometheus_range *r, int part, const struct error *e)
{
	bool is_needed = part == ENGINE_RUNNING || part == ENGINE_WAITING || part == COUNT || r->is_cancelled;
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
	if (error_is_transient(&c->error) && p->retry.failures < TRIES && !r->is_cancelled) {
		rows_forget(r->rows, part);
		timer_start(r->loop, &p->again, retry_next(&p->retry, 0), ask_again);
		return;
	}
	if (c->error.kind != ERROR_NONE) {
		rows_forget(r->rows, part);
		blame(r, part, &c->error);
	}
	r->in_flight--;
	if (!r->in_flight)
		next(r);
}

static bool on_sample(void *user, const struct prometheus_sample *sample, struct error *e)
{
	struct part *p = user;
	struct prometheus_range *r = p->range;

	return rows_take(r->rows, (int)(p - r->parts), sample, &r->report.refused, e);
}

static void open_part(struct prometheus_range *r, const struct prometheus_range_settings *s, int part)
{
	struct part *p = &r->parts[part];

	p->range = r;
	write_query(s, part, &p->query);
	p->retry = retry_make(SECOND, 30 * SECOND, random_stream((uint64_t)part, "range"));
	p->again.user = p;
	p->call = (struct prometheus_call){ .query = p->query.text,
					    .timeout = TIMEOUT,
					    .most_samples = MOST_SAMPLES,
					    .most_bytes = MOST_BYTES,
					    .on_sample = on_sample,
					    .done = on_done,
					    .user = p };
}

struct prometheus_range *prometheus_range_start(struct loop *loop, struct http *http,
						const struct prometheus_range_settings *s,
						const struct prometheus_range_events *events)
{
	struct prometheus_range *r = calloc(1, sizeof *r);

	if (!r)
		abort();
	r->loop = loop;
	r->events = *events;
	r->prometheus = prometheus_open(loop, http, s->url, &s->reach);
	r->from = r->at = s->from;
	r->to = s->to;
	r->step = s->step;
	r->rows = rows_new(STEPS, s->step, s->objective_us);
	for (int i = 0; i < QUERIES; i++)
		open_part(r, s, i);
	begin(r);
	return r;
}

static void end_wait(struct timer *t)
{
	struct part *p = t->user;

	error_set(&p->call.error, ERROR_CANCELLED, "cancelled");
	on_done(&p->call);
}

void prometheus_range_cancel(struct prometheus_range *r)
{
	r->is_cancelled = true;
	for (int i = 0; i < QUERIES; i++) {
		struct part *p = &r->parts[i];
		if (timer_is_running(&p->again))
			timer_start(r->loop, &p->again, 0, end_wait);
		else
			prometheus_cancel(&p->call);
	}
}
