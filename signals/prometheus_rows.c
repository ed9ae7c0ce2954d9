#include "signals/prometheus_rows.h"

#include "signals/tally.h"

#include <stdlib.h>
#include <string.h>

enum { COUNT = ROWS_COUNT, READY = ROWS_READY, PARTS = ROWS_PARTS };

static const int64_t NOTHING = INT64_MIN;

/* Thousandths; seconds in millionths; as struct page_series. */
struct rows {
	size_t steps;
	millis step, from;
	int64_t objective_us;
	int64_t *values[PARTS]; /* `steps` of each */
	int64_t edges[ROWS_EDGES];
	int64_t *up_to[ROWS_EDGES];
	size_t edge_count;
	int64_t rest[PARTS], rest_late; /* below one request, for the next step */
};

static int64_t *new_values(size_t steps)
{
	int64_t *made = malloc(steps * sizeof *made);

	if (!made)
		abort();
	return made;
}

static void clear(const struct rows *r, int64_t *values)
{
	for (size_t i = 0; i < r->steps; i++)
		values[i] = NOTHING;
}

struct rows *rows_new(size_t steps, millis step, int64_t objective_us)
{
	struct rows *r = calloc(1, sizeof *r);

	if (!r)
		abort();
	r->steps = steps;
	r->step = step;
	r->objective_us = objective_us;
	for (int i = 0; i < PARTS; i++)
		r->values[i] = new_values(steps);
	return r;
}

static void drop_edges(struct rows *r)
{
	for (size_t i = 0; i < r->edge_count; i++)
		free(r->up_to[i]);
	r->edge_count = 0;
}

void rows_free(struct rows *r)
{
	for (int i = 0; i < PARTS; i++)
		free(r->values[i]);
	drop_edges(r);
	free(r);
}

void rows_begin(struct rows *r, millis from)
{
	r->from = from;
	for (int i = 0; i < PARTS; i++)
		clear(r, r->values[i]);
	drop_edges(r);
}

void rows_forget(struct rows *r, int part)
{
	clear(r, r->values[part]);
	if (part == ENGINE_WAIT_BUCKET)
		drop_edges(r);
}

static int64_t *values_up_to(struct rows *r, int64_t edge, struct error *e)
{
	for (size_t i = 0; i < r->edge_count; i++)
		if (r->edges[i] == edge)
			return r->up_to[i];
	if (r->edge_count == ROWS_EDGES) {
		error_set(e, ERROR_INVALID, "a histogram with more than %d buckets", ROWS_EDGES);
		return NULL;
	}
	r->edges[r->edge_count] = edge;
	r->up_to[r->edge_count] = new_values(r->steps);
	clear(r, r->up_to[r->edge_count]);
	return r->up_to[r->edge_count++];
}

static int64_t *values_of(struct rows *r, int part, const struct prometheus_sample *s, struct error *e)
{
	const char *le = s->series ? prometheus_label(s->series, "le") : NULL;
	int64_t edge;

	if (part != ENGINE_WAIT_BUCKET)
		return r->values[part];
	if (!le) {
		error_set(e, ERROR_INVALID, "a bucket without the label le");
		return NULL;
	}
	return page_bound((struct exposition_slice){ le, strlen(le) }, &edge, e) ? values_up_to(r, edge, e) : NULL;
}

bool rows_take(struct rows *r, int part, const struct prometheus_sample *s, int64_t *refused, struct error *e)
{
	int64_t *values = values_of(r, part, s, e), value;
	struct error none;

	if (!values)
		return false;
	size_t at = s->at >= r->from ? (size_t)((s->at - r->from) / r->step) : r->steps;
	if (at >= r->steps || (s->at - r->from) % r->step)
		return error_set(e, ERROR_INVALID, "a sample beside the steps that were asked for");
	if (part != ENGINE_WAIT_BUCKET && values[at] != NOTHING)
		return error_set(e, ERROR_INVALID, "several series, where one was asked for");
	if (page_value(part >= COUNT ? ENGINE_RUNNING : (enum engine_quantity)part, s->value, &value, &none))
		values[at] = value;
	else
		++*refused;
	return true;
}

static int64_t whole(struct rows *r, enum engine_quantity q, size_t at)
{
	int64_t value = r->values[q][at];

	if (value == NOTHING)
		return NOTHING;
	value += r->rest[q];
	r->rest[q] = value % 1000;
	return value / 1000;
}

static int64_t late(struct rows *r, size_t at)
{
	struct tally_waits w = { .waited = r->values[ENGINE_WAITED][at], .above_us = PAGE_UNBOUNDED };
	bool has_some = false;

	if (w.waited == NOTHING)
		return READING_NOT_TOLD;
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
		return READING_NOT_TOLD;
	int64_t sum = tally_late(&w, r->objective_us) + r->rest_late;
	r->rest_late = sum % 1000;
	return sum / 1000;
}

static int64_t level(const struct rows *r, int part, size_t at)
{
	return (r->values[part][at] + 500) / 1000;
}

static int64_t or_zero(int64_t value)
{
	return value == NOTHING ? 0 : value;
}

static struct pool_reading reading(struct rows *r, size_t at)
{
	int64_t kv = r->values[ENGINE_KV_CACHE][at];
	int64_t sum = r->values[ENGINE_LATENCY_SUM][at], count = r->values[ENGINE_LATENCY_COUNT][at];
	bool has_latency = sum != NOTHING && count != NOTHING && count >= 1000;
	int64_t replicas = r->values[COUNT][at] == NOTHING ? 0 : level(r, COUNT, at);
	int64_t ready = r->values[READY][at] == NOTHING ? 0 : level(r, READY, at);

	return (struct pool_reading){
		.at = r->from + (millis)at * r->step,
		.expected = ready > replicas ? ready : replicas,
		.fresh = replicas,
		.ready = ready > replicas ? ready : replicas,
		.running = level(r, ENGINE_RUNNING, at),
		.waiting = level(r, ENGINE_WAITING, at),
		.started = whole(r, ENGINE_STARTED, at),
		.late = late(r, at),
		.completed = or_zero(whole(r, ENGINE_COMPLETED, at)),
		.prompt_tokens = or_zero(whole(r, ENGINE_PROMPT_TOKENS, at)),
		.output_tokens = or_zero(whole(r, ENGINE_OUTPUT_TOKENS, at)),
		.inter_token_latency_us = has_latency ? (int64_t)((__int128)sum * 1000 / count) : READING_NOT_TOLD,
		.kv_cache_permille = kv != NOTHING && kv <= 1000000 ? (kv + 500) / 1000 : READING_NOT_TOLD,
	};
}

void rows_tell(struct rows *r, millis to, struct prometheus_range_report *report,
	       const struct prometheus_range_events *events)
{
	for (size_t i = 0; i < r->steps && r->from + (millis)i * r->step <= to; i++) {
		if (r->values[ENGINE_RUNNING][i] == NOTHING || r->values[ENGINE_WAITING][i] == NOTHING) {
			report->missing++;
			continue;
		}
		struct pool_reading told = reading(r, i);
		report->readings++;
		events->on_reading(events->user, &told);
	}
}
