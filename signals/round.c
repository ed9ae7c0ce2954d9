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
	s->late += of_this_round(t->late, elapsed, interval);
	s->is_late_told |= t->is_late_told;
}

void round_add_kv(struct round_sums *s, int64_t permille)
{
	if (permille == READING_NOT_TOLD)
		return;
	s->kv_sum += permille;
	s->kv_count++;
}

static int64_t counted(const struct round_sums *s, enum engine_quantity q)
{
	return (s->added[q] + 500) / 1000;
}

void round_tell(const struct round_sums *s, struct pool_reading *r)
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
	r->kv_cache_permille = s->kv_count ? s->kv_sum / s->kv_count : READING_NOT_TOLD;
}

void round_clear(struct round_sums *s)
{
	*s = (struct round_sums){ .late = s->late % 1000 };
}
