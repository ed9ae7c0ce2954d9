#include "signals/pool_reading.h"

/* What it did while it was silent for long is not news of this round. */
static int64_t of_this_round(int64_t added, millis elapsed, millis interval)
{
	if (elapsed <= READING_GAP * interval)
		return added;
	return (int64_t)((__int128)added * interval / elapsed);
}

void reading_add_delta(struct reading_sums *s, const struct counter_delta *t, millis elapsed, millis interval)
{
	for (int q = 0; q < ENGINE_QUANTITY_COUNT; q++) {
		s->has_value[q] |= t->has_value[q];
		s->added[q] += of_this_round(t->added[q], elapsed, interval);
	}
	histogram_merge(&s->wait, &t->wait);
	histogram_merge(&s->first_token, &t->first_token);
	s->late += of_this_round(t->late, elapsed, interval);
	s->has_late |= t->has_late;
}

static void add_mean(struct reading_mean *m, int64_t value)
{
	if (value == READING_UNKNOWN)
		return;
	m->sum += value;
	m->count++;
}

static int64_t mean(const struct reading_mean *m)
{
	return m->count ? m->sum / m->count : READING_UNKNOWN;
}

void reading_add_replica(struct pool_reading *r, const struct evidence *e, bool is_ready)
{
	bool is_full = is_ready && evidence_is_full(e);

	*(is_ready ? &r->running : &r->running_draining) += evidence_running(e);
	r->waiting += e->waiting;
	r->full += is_full;
	r->running_full += is_full ? e->running : 0;
}

void reading_add_levels(struct reading_sums *s, const struct page_content *c, bool is_ready)
{
	add_mean(&s->load, c->load_ms);
	add_mean(&s->startup, c->startup_ms);
	if (!is_ready)
		return;
	add_mean(&s->kv, c->kv_permille);
	if (c->rank[ENGINE_PREFIX_HITS] < 0)
		add_mean(&s->prefix, c->prefix_permille);
}

static int64_t counted(const struct reading_sums *s, enum engine_quantity q)
{
	return (s->added[q] + 500) / 1000;
}

static void tell_more(const struct reading_sums *s, struct reading_more *m)
{
	bool has_tokens = s->has_value[ENGINE_PREFIX_QUERIES] && s->has_value[ENGINE_PREFIX_HITS];

	*m = (struct reading_more){
		.wait = s->wait,
		.first_token = s->first_token,
		.prefix_queries = has_tokens ? counted(s, ENGINE_PREFIX_QUERIES) : READING_UNKNOWN,
		.prefix_hits = has_tokens ? counted(s, ENGINE_PREFIX_HITS) : READING_UNKNOWN,
		.prefix_permille = mean(&s->prefix),
		.load_ms = mean(&s->load),
		.startup_ms = mean(&s->startup),
	};
}

void reading_write(const struct reading_sums *s, struct pool_reading *r, struct reading_more *more)
{
	__int128 latency = s->added[ENGINE_LATENCY_SUM];

	r->started = s->has_value[ENGINE_STARTED] ? counted(s, ENGINE_STARTED) : READING_UNKNOWN;
	r->late = s->has_late ? s->late / 1000 : READING_UNKNOWN;
	r->refused = counted(s, ENGINE_REFUSED);
	r->completed = counted(s, ENGINE_COMPLETED);
	r->prompt_tokens = counted(s, ENGINE_PROMPT_TOKENS);
	r->output_tokens = counted(s, ENGINE_OUTPUT_TOKENS);
	r->inter_token_latency_us = READING_UNKNOWN;
	if (s->added[ENGINE_LATENCY_COUNT] >= 1000)
		r->inter_token_latency_us = (int64_t)(latency * 1000 / s->added[ENGINE_LATENCY_COUNT]);
	r->kv_cache_permille = mean(&s->kv);
	tell_more(s, more);
	r->more = more;
}

void reading_next_round(struct reading_sums *s)
{
	*s = (struct reading_sums){ .late = s->late % 1000 };
}
