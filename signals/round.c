#include "signals/round.h"

/* What it did while it was silent for long is not news of this round. */
static int64_t of_this_round(int64_t added, millis elapsed, millis interval)
{
	if (elapsed <= READING_GAP * interval)
		return added;
	return (int64_t)((__int128)added * interval / elapsed);
}

void round_add(struct round_sums *s, const struct tally *t, millis elapsed, millis interval)
{
	for (int q = 0; q < ENGINE_QUANTITY_COUNT; q++) {
		s->is_told[q] |= t->is_told[q];
		s->added[q] += of_this_round(t->added[q], elapsed, interval);
	}
	spread_merge(&s->wait, &t->wait);
	spread_merge(&s->first_token, &t->first_token);
	s->late += of_this_round(t->late, elapsed, interval);
	s->is_late_told |= t->is_late_told;
}

static void add_mean(struct round_mean *m, int64_t value)
{
	if (value == READING_NOT_TOLD)
		return;
	m->sum += value;
	m->count++;
}

static int64_t mean(const struct round_mean *m)
{
	return m->count ? m->sum / m->count : READING_NOT_TOLD;
}

void round_add_levels(struct round_sums *s, const struct page_content *c, bool is_ready)
{
	add_mean(&s->load, c->load_ms);
	add_mean(&s->startup, c->startup_ms);
	if (!is_ready)
		return;
	add_mean(&s->kv, c->kv_permille);
	if (c->rank[ENGINE_PREFIX_HITS] < 0)
		add_mean(&s->prefix, c->prefix_permille);
}

static int64_t counted(const struct round_sums *s, enum engine_quantity q)
{
	return (s->added[q] + 500) / 1000;
}

static void tell_more(const struct round_sums *s, struct reading_more *m)
{
	bool has_tokens = s->is_told[ENGINE_PREFIX_QUERIES] && s->is_told[ENGINE_PREFIX_HITS];

	*m = (struct reading_more){
		.wait = s->wait,
		.first_token = s->first_token,
		.prefix_queries = has_tokens ? counted(s, ENGINE_PREFIX_QUERIES) : READING_NOT_TOLD,
		.prefix_hits = has_tokens ? counted(s, ENGINE_PREFIX_HITS) : READING_NOT_TOLD,
		.prefix_permille = mean(&s->prefix),
		.load_ms = mean(&s->load),
		.startup_ms = mean(&s->startup),
	};
}

void round_tell(const struct round_sums *s, struct pool_reading *r, struct reading_more *more)
{
	__int128 latency = s->added[ENGINE_LATENCY_SUM];

	r->started = s->is_told[ENGINE_STARTED] ? counted(s, ENGINE_STARTED) : READING_NOT_TOLD;
	r->late = s->is_late_told ? s->late / 1000 : READING_NOT_TOLD;
	r->completed = counted(s, ENGINE_COMPLETED);
	r->prompt_tokens = counted(s, ENGINE_PROMPT_TOKENS);
	r->output_tokens = counted(s, ENGINE_OUTPUT_TOKENS);
	r->inter_token_latency_us = READING_NOT_TOLD;
	if (s->added[ENGINE_LATENCY_COUNT] >= 1000)
		r->inter_token_latency_us = (int64_t)(latency * 1000 / s->added[ENGINE_LATENCY_COUNT]);
	r->kv_cache_permille = mean(&s->kv);
	tell_more(s, more);
	r->more = more;
}

void round_clear(struct round_sums *s)
{
	*s = (struct round_sums){ .late = s->late % 1000 };
}
