#include "controller/traces/series.h"

#include "base/exact.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_STEPS = 5000000 };

static void *grow(void *rows, size_t count, size_t *room, size_t size)
{
	if (count < *room)
		return rows;
	*room = *room ? *room * 2 : 1024;
	void *grown = realloc(rows, *room * size);
	if (!grown)
		abort();
	return grown;
}

void series_release(struct series *s)
{
	free(s->slots);
	free(s->stretches);
	*s = (struct series){ 0 };
}

void series_start(struct series *s)
{
	s->has_last = false;
	s->next = 0;
}

/* Samples come in order, so the place is nearly always the one after the last. */
static struct slot *slot_at(struct series *s, millis at)
{
	size_t i = s->next;

	if (i > s->count || (i && s->slots[i - 1].at >= at))
		i = 0;
	if (!i || (i < s->count && s->slots[i].at < at)) {
		size_t low = i, high = s->count;
		while (low < high) {
			size_t middle = low + (high - low) / 2;
			if (s->slots[middle].at < at)
				low = middle + 1;
			else
				high = middle;
		}
		i = low;
	}
	if (i == s->count || s->slots[i].at != at) {
		s->slots = grow(s->slots, s->count, &s->room, sizeof *s->slots);
		memmove(&s->slots[i + 1], &s->slots[i], (s->count - i) * sizeof *s->slots);
		s->slots[i] = (struct slot){ .at = at };
		s->count++;
	}
	s->next = i + 1;
	return &s->slots[i];
}

static void add_stretch(struct series *s, struct stretch stretch)
{
	s->stretches = grow(s->stretches, s->stretch_count, &s->stretch_room, sizeof *s->stretches);
	s->stretches[s->stretch_count++] = stretch;
}

/* What was taken for single steps were gaps, it turns out. */
static void shorten_step(struct series *s, millis step)
{
	if (s->step && s->kind == SERIES_COUNTER)
		for (size_t i = 0; i < s->count; i++)
			for (int q = 0; q < QUANTITIES; q++)
				if (s->slots[i].amounts[q] > 0) {
					add_stretch(s, (struct stretch){ s->slots[i].at - s->step, s->slots[i].at,
									 (enum quantity)q, s->slots[i].amounts[q] });
					s->slots[i].amounts[q] = 0;
				}
	s->step = step;
}

static void add_difference(struct series *s, enum quantity q, millis at, double value)
{
	double amount = value >= s->last_value ? value - s->last_value : value;
	millis gap = at - s->last_at;

	if (gap == s->step)
		slot_at(s, at)->amounts[q] += amount;
	else
		add_stretch(s, (struct stretch){ s->last_at, at, q, amount });
}

bool series_add(struct series *s, enum quantity q, millis at, double value, struct error *e)
{
	if (s->has_last && at <= s->last_at)
		return error_set(e, ERROR_INVALID, "samples of a series go back in time at %.3f", (double)at / 1000);
	if (s->count >= MAX_STEPS || s->stretch_count >= MAX_STEPS)
		return error_set(e, ERROR_INVALID, "more than %d steps; ask for a longer step", MAX_STEPS);
	if (s->has_last && (!s->step || at - s->last_at < s->step))
		shorten_step(s, at - s->last_at);
	if (s->kind != SERIES_COUNTER)
		slot_at(s, at)->amounts[q] += value;
	else if (s->has_last)
		add_difference(s, q, at, value);
	s->is_seen[q] = true;
	s->has_last = true;
	s->last_at = at;
	s->last_value = value;
	return true;
}

/* Part by part into the steps that it covers; the steps' ends lie `step` apart counted from `to`. */
static bool lay_out(struct series *s, const struct stretch *w, int64_t *left, struct error *e)
{
	int64_t steps = (w->to - w->from + s->step - 1) / s->step;

	*left -= steps;
	if (*left < 0)
		return error_set(e, ERROR_INVALID, "the gaps between samples hold too many steps of %.3f s",
				 (double)s->step / 1000);
	for (int64_t i = steps; i-- > 0;)
		slot_at(s, w->to - i * s->step)->amounts[w->quantity] += w->amount / (double)steps;
	return true;
}

/* Fractions are carried over, so that the sums are right; tokens wait for a bin that has requests. */
static void round_bins(const struct series *s, struct trace *t)
{
	double sums[QUANTITIES] = { 0 }, unit = s->kind == SERIES_RATE ? (double)s->step / 1000 : 1;
	int64_t given[QUANTITIES] = { 0 };

	for (size_t i = 0; i < s->count; i++) {
		struct bin *b = &t->bins[t->bin_count++];
		int64_t *counts[] = { &b->requests, &b->prompt_tokens, &b->output_tokens };
		*b = (struct bin){ .at = s->slots[i].at - s->slots[0].at };
		for (int q = 0; q < QUANTITIES; q++) {
			sums[q] += s->slots[i].amounts[q] * unit;
			if (q == QUANTITY_REQUESTS || b->requests)
				*counts[q] = exact_round(sums[q]) - given[q];
			given[q] += *counts[q];
		}
	}
}

static bool check(const struct series *s, struct error *e)
{
	static const char *const missing[] = { "requests (vllm:request_success_total)",
					       "prompt tokens (vllm:prompt_tokens_total)",
					       "output tokens (vllm:generation_tokens_total)" };

	for (int q = 0; q < QUANTITIES; q++)
		if (!s->is_seen[q])
			return error_set(
				e, ERROR_INVALID,
				"no series with %s; give the answers of all three queries (preheat import --help)",
				missing[q]);
	if (!s->step)
		return error_set(e, ERROR_INVALID, "no series has two samples; ask for a longer time");
	return true;
}

static bool check_bins(const struct trace *t, millis step, struct error *e)
{
	bool is_any = false;

	for (size_t i = 0; i < t->bin_count; i++) {
		const struct bin *b = &t->bins[i];
		is_any |= b->requests > 0;
		if (b->requests > TRACE_MAX_BIN_REQUESTS || b->prompt_tokens > TRACE_MAX_BIN_TOKENS ||
		    b->output_tokens > TRACE_MAX_BIN_TOKENS || b->at > TRACE_MAX_LENGTH || b->at % step)
			return error_set(
				e, ERROR_INVALID,
				"the samples do not lie on one grid of %.3f s within ten years, or are too large; "
				"use one query_range with one step",
				(double)step / 1000);
	}
	return is_any || error_set(e, ERROR_INVALID, "the series show no traffic at all");
}

bool series_bins(struct series *s, struct trace *out, millis *origin, struct error *e)
{
	struct trace t = { .is_binned = true, .bin_width = s->step };
	int64_t left = INT64_C(10) * MAX_STEPS;

	if (!check(s, e))
		return false;
	for (size_t i = 0; i < s->stretch_count; i++)
		if (!lay_out(s, &s->stretches[i], &left, e))
			return false;
	t.bins = calloc(s->count + 1, sizeof *t.bins);
	if (!t.bins)
		abort();
	round_bins(s, &t);
	if (!check_bins(&t, s->step, e)) {
		trace_release(&t);
		return false;
	}
	t.length = trace_end(&t);
	*origin = s->slots[0].at - s->step;
	*out = t;
	return true;
}
