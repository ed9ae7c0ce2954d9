#include "controller/policy/limits.h"

/* In one tick a pool may double, or grow by this many replicas. */
enum { LEAST_GROWTH = 8 };

static int64_t at_least(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static void hold_below(struct wish *w, int64_t most, enum limit limit)
{
	int64_t over = wish_wanted(w) - most;

	if (over > 0 && wish_ask_less(w, over) > 0)
		w->held_by = limit;
}

static void keep_sizes(struct wish *w, const struct snapshot *s, size_t pool)
{
	const struct pool_spec *spec = &s->fleet->pools[pool];
	int64_t most = 0;

	for (size_t i = 0; i < spec->group_count; i++) {
		const struct group_spec *g = &s->fleet->groups[spec->groups[i]];
		most += g->max_nodes * replicas_per_node(g, spec);
	}
	int64_t missing = w->floor - wish_wanted(w);
	if (missing > 0) {
		wish_ask_more(w, missing);
		w->held_by = LIMIT_MIN;
	}
	hold_below(w, at_least(w->ceiling, w->floor), LIMIT_MAX);
	hold_below(w, most, LIMIT_MAX);
}

static void drop_moves(struct wish *w)
{
	w->moves.wake = w->moves.cold = w->moves.reclaim = w->moves.adopt_refill = w->moves.refill = 0;
	w->moves.replace_wake = w->moves.replace_cold = 0;
	w->stock_excess = 0;
	wish_keep(w);
}

/* A fixed delay, where the manifest gives one, counts from the first moment of surplus. */
static bool is_cooling_down(const struct wish *w, struct pool_memory *m, const struct snapshot *s, size_t pool)
{
	millis after = s->fleet->pools[pool].scale_down_after;

	if (w->moves.release == 0) {
		m->surplus_since = 0;
		return false;
	}
	if (!m->surplus_since)
		m->surplus_since = s->now;
	return s->now - m->surplus_since < after;
}

static void keep_what_is_needed(struct wish *w, struct pool_memory *m, const struct snapshot *s, size_t pool,
				const struct learned *l)
{
	bool cooling = is_cooling_down(w, m, s, pool);

	if ((l->is_filling || cooling) && w->moves.release > 0) {
		w->moves.release = w->moves.give_back = 0;
		w->held_by = LIMIT_COOLDOWN;
	}
	if (l->reading.signals >= SIGNALS_PARTIAL && (wish_keep(w) > 0 || l->reading.signals >= SIGNALS_STALE))
		w->held_by = LIMIT_STALE;
	if (l->reading.signals >= SIGNALS_STALE)
		w->moves.replace_wake = w->moves.replace_cold = 0;
	if (w->fleet.waiting > 0 && w->moves.release > 0) {
		w->moves.release = w->moves.give_back = 0;
		w->held_by = LIMIT_QUEUE;
	}
}

static void cut(int64_t *n, int64_t *left)
{
	*n = *n < *left ? *n : *left;
	*left -= *n;
}

/* Replacing lent nodes and stocking up come after what serves. */
static void keep_budget(struct wish *w, int64_t budget_left)
{
	struct moves *m = &w->moves;
	int64_t left = at_least(budget_left, 0);

	hold_below(w, w->have + left, LIMIT_BUDGET);
	left = at_least(left - at_least(wish_wanted(w) - w->have, 0), 0);
	cut(&m->replace_wake, &left);
	cut(&m->replace_cold, &left);
	cut(&m->refill, &left);
}

void limits_apply(struct wish *w, struct pool_memory *m, const struct snapshot *s, size_t pool, const struct learned *l,
		  int64_t budget_left)
{
	enum pool_mode mode = s->fleet->pools[pool].mode;

	keep_sizes(w, s, pool);
	if (budget_left != INT64_MAX)
		keep_budget(w, budget_left);
	hold_below(w, w->have + at_least(LEAST_GROWTH, w->have), LIMIT_RATE);
	keep_what_is_needed(w, m, s, pool, l);
	if (mode == MODE_ACT)
		return;
	drop_moves(w);
	w->held_by = mode == MODE_OBSERVE ? LIMIT_OBSERVE : LIMIT_PAUSED;
}
