#include "signals/counter_delta.h"

#include <inttypes.h>
#include <string.h>

/* Far beyond any machine: they keep a lie from looking like a flood. */
static const int64_t MOST_REQUESTS = 100000, MOST_TOKENS = 100000000; /* a second */
static const int64_t MOST_ADDED = INT64_C(1000000000000000);	      /* thousandths of requests, in a bucket */
static const int64_t LONGEST_TOKEN_US = 100 * INT64_C(1000000);

/* Requests up to each edge, as the buckets of all series of a page add up. */
struct edges {
	size_t count;
	int64_t up_to_us[HISTOGRAM_BINS], requests[HISTOGRAM_BINS];
};

struct sums {
	__int128 added[ENGINE_QUANTITY_COUNT];
	/* Of the histogram: requests up to the edges around the objective. */
	__int128 up_to_below, up_to_above;
	int64_t below_us, above_us;
	struct edges wait, first_token;
	bool went_back;
};

static int64_t added_by(const struct page_series *was, const struct page_series *now)
{
	return was && was->value <= now->value ? now->value - was->value : now->value;
}

static void find_edges(const struct page_content *c, int64_t objective_us, struct sums *s)
{
	s->below_us = 0;
	s->above_us = PAGE_UNBOUNDED;
	for (size_t i = 0; i < c->series_count; i++) {
		int64_t le = c->series[i].le_us;
		if (c->table->metrics.rows[c->series[i].row].quantity != ENGINE_WAIT_BUCKET)
			continue;
		if (le <= objective_us && le > s->below_us)
			s->below_us = le;
		if (le > objective_us && le < s->above_us)
			s->above_us = le;
	}
}

/* In their order; beyond HISTOGRAM_BINS edges the finest are lost, never the last. */
static void add_edge(struct edges *e, int64_t up_to_us, int64_t added)
{
	size_t at = 0;

	while (at < e->count && e->up_to_us[at] < up_to_us)
		at++;
	if (at < e->count && e->up_to_us[at] == up_to_us) {
		e->requests[at] += added < MOST_ADDED - e->requests[at] ? added : MOST_ADDED - e->requests[at];
		return;
	}
	if (e->count == HISTOGRAM_BINS) {
		e->count--;
		at -= at > 0;
		memmove(&e->up_to_us[0], &e->up_to_us[1], e->count * sizeof *e->up_to_us);
		memmove(&e->requests[0], &e->requests[1], e->count * sizeof *e->requests);
	}
	memmove(&e->up_to_us[at + 1], &e->up_to_us[at], (e->count - at) * sizeof *e->up_to_us);
	memmove(&e->requests[at + 1], &e->requests[at], (e->count - at) * sizeof *e->requests);
	e->up_to_us[at] = up_to_us;
	e->requests[at] = added < MOST_ADDED ? added : MOST_ADDED;
	e->count++;
}

/* A restart between two buckets may make a larger one smaller: nothing lies between them then. */
static void write_histogram(const struct edges *e, struct histogram *out)
{
	int64_t below_us = 0, before = 0;

	for (size_t i = 0; i < e->count; i++) {
		const struct histogram_bin bin = { below_us, e->up_to_us[i], e->requests[i] - before };
		if (bin.count < 0)
			continue;
		histogram_add(out, &bin);
		before = e->requests[i];
		below_us = e->up_to_us[i];
	}
}

static void add_series(struct sums *s, const struct engine_metric *m, const struct page_series *now, int64_t added)
{
	if (m->quantity == ENGINE_WAIT_BUCKET) {
		s->up_to_below += now->le_us == s->below_us ? added : 0;
		s->up_to_above += now->le_us == s->above_us ? added : 0;
		add_edge(&s->wait, now->le_us, added);
	}
	if (m->quantity == ENGINE_FIRST_TOKEN_BUCKET)
		add_edge(&s->first_token, now->le_us, added);
	if (!m->is_largest)
		s->added[m->quantity] += added;
	else if (added > s->added[m->quantity])
		s->added[m->quantity] = added;
}

/* Both lists are sorted by id. */
static void add_all(const struct page_content *before, const struct page_content *now, struct sums *s)
{
	size_t b = 0;

	for (size_t i = 0; i < now->series_count; i++) {
		const struct page_series *n = &now->series[i];
		while (b < before->series_count && before->series[b].id < n->id)
			b++;
		bool is_known = b < before->series_count && before->series[b].id == n->id;
		s->went_back |= is_known && n->value < before->series[b].value;
		add_series(s, &now->table->metrics.rows[n->row], n, added_by(is_known ? &before->series[b] : NULL, n));
	}
}

static __int128 most_in(enum engine_quantity q, millis elapsed)
{
	bool tokens = q == ENGINE_PROMPT_TOKENS || q == ENGINE_OUTPUT_TOKENS || q == ENGINE_LATENCY_COUNT ||
		      q == ENGINE_PREFIX_QUERIES || q == ENGINE_PREFIX_HITS;
	millis within = elapsed < SECOND ? SECOND : elapsed > DAY ? DAY : elapsed;

	if (q == ENGINE_LATENCY_SUM)
		return (__int128)within * 1000 * MOST_REQUESTS; /* each running sequence waits for a token */
	return (__int128)within * (tokens ? MOST_TOKENS : MOST_REQUESTS);
}

static bool is_possible(const struct sums *s, const struct counter_delta *t, millis elapsed, struct error *e)
{
	for (int q = ENGINE_STARTED; q < ENGINE_QUANTITY_COUNT; q++)
		if (t->has_value[q] && !engine_is_bucket((enum engine_quantity)q) &&
		    s->added[q] > most_in((enum engine_quantity)q, elapsed))
			return error_set(e, ERROR_INVALID, "%s: %.0f more within %" PRId64 " ms cannot be",
					 engine_quantity_name((enum engine_quantity)q),
					 (double)s->added[q] / (q == ENGINE_LATENCY_SUM ? 1e6 : 1e3), elapsed);
	if (t->has_value[ENGINE_LATENCY_SUM] &&
	    s->added[ENGINE_LATENCY_SUM] > s->added[ENGINE_LATENCY_COUNT] * LONGEST_TOKEN_US / 1000)
		return error_set(e, ERROR_INVALID, "token latency: more than %" PRId64 " s for each token cannot be",
				 LONGEST_TOKEN_US / 1000000);
	return true;
}

int64_t counter_delta_late(const struct wait_counts *w, int64_t objective_us)
{
	__int128 waited = w->waited, kept = w->up_to_below, between = w->up_to_above - w->up_to_below;

	if (w->above_us != PAGE_UNBOUNDED && between > 0)
		kept += between * (objective_us - w->below_us) / (w->above_us - w->below_us);
	return (int64_t)(kept < waited ? waited - kept : 0);
}

static int64_t interpolate(const struct sums *s, int64_t objective_us)
{
	const struct wait_counts w = { (int64_t)s->added[ENGINE_WAITED], (int64_t)s->up_to_below,
				       (int64_t)s->up_to_above, s->below_us, s->above_us };

	return counter_delta_late(&w, objective_us);
}

bool counter_delta_between(const struct page_content *before, const struct page_content *now, int64_t objective_us,
			   millis elapsed, struct counter_delta *out, struct error *e)
{
	struct sums s = { 0 };
	struct counter_delta t = { 0 };

	for (int q = ENGINE_STARTED; q < ENGINE_QUANTITY_COUNT; q++)
		t.has_value[q] = now->rank[q] >= 0 && now->rank[q] == before->rank[q];
	find_edges(now, objective_us, &s);
	add_all(before, now, &s);
	if (!is_possible(&s, &t, elapsed, e))
		return false;
	for (int q = ENGINE_STARTED; q < ENGINE_QUANTITY_COUNT; q++)
		t.added[q] = t.has_value[q] && !engine_is_bucket((enum engine_quantity)q) ? (int64_t)s.added[q] : 0;
	t.has_late = t.has_value[ENGINE_WAITED] && t.has_value[ENGINE_WAIT_BUCKET];
	t.late = t.has_late ? interpolate(&s, objective_us) : 0;
	if (t.has_value[ENGINE_WAIT_BUCKET])
		write_histogram(&s.wait, &t.wait);
	if (t.has_value[ENGINE_FIRST_TOKEN_BUCKET])
		write_histogram(&s.first_token, &t.first_token);
	t.went_back = s.went_back;
	t.below_us = s.below_us;
	t.above_us = s.above_us;
	*out = t;
	return true;
}
