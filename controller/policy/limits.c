#include "controller/policy/limits.h"

/* In one tick a pool may double, or grow by this many replicas. */
enum { LEAST_GROWTH = 8 };
/* And within so long it may buy three quarters of what it may ever have, whatever the signals say. */
static const millis GROWTH_SPAN = 5 * MINUTE;

static int64_t at_least(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static void hold_below(struct wish *w, int64_t most, enum limit limit)
{
	int64_t over = wish_wanted(w) - most;

	if (over > 0 && wish_ask_less(w, over) > 0) {
		w->held_by = limit;
		w->is_cut = true;
	}
}

static void give_up_to(struct wish *w, int64_t most, enum limit limit)
{
	int64_t over = wish_wanted(w) - most, more = w->fleet.ready - w->moves.release;

	over = over < more ? over : more;
	if (over <= 0)
		return;
	w->moves.release += over;
	w->held_by = limit;
}

static int64_t most_replicas(const struct snapshot *s, size_t pool)
{
	const struct pool_spec *spec = &s->fleet->pools[pool];
	int64_t most = 0;

	for (size_t i = 0; i < spec->group_count; i++) {
		const struct group_spec *g = &s->fleet->groups[spec->groups[i]];
		most += g->max_nodes * replicas_per_node(g, spec);
	}
	return most;
}

/* Machines that were asked for lately and are on their way still, in replicas. */
static int64_t bought_lately(const struct pool_snapshot *seen, millis now)
{
	int64_t count = 0;

	for (size_t i = 0; i < seen->start_count; i++) {
		const struct start_input *t = &seen->starts[i];
		if ((t->kind == START_COLD || t->kind == START_WAKE) && now - t->asked_at < GROWTH_SPAN)
			count += t->count;
	}
	return count;
}

static void hold_growth(struct wish *w, const struct snapshot *s, size_t pool)
{
	int64_t allowed = at_least(LEAST_GROWTH, 3 * most_replicas(s, pool) / 4);
	int64_t left = at_least(allowed - bought_lately(&s->pools[pool], s->now), 0);
	int64_t over = w->moves.cold + w->moves.wake - left;

	if (over > 0 && wish_ask_less(w, over) > 0) {
		w->held_by = LIMIT_GROWTH;
		w->is_cut = true;
	}
}

static void keep_sizes(struct wish *w, const struct snapshot *s, size_t pool)
{
	int64_t most = most_replicas(s, pool), missing = w->floor - wish_wanted(w);

	if (missing > 0) {
		wish_ask_more(w, missing);
		w->held_by = LIMIT_MIN;
	}
	hold_below(w, at_least(w->ceiling, w->floor), LIMIT_MAX);
	hold_below(w, most, LIMIT_MAX);
	give_up_to(w, at_least(w->ceiling, w->floor), LIMIT_MAX);
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
	if (l->reading.signals >= SIGNALS_PARTIAL)
		w->stock_excess = 0;
	if (w->fleet.waiting > 0 && w->moves.release > 0) {
		w->moves.release = w->moves.give_back = 0;
		w->held_by = LIMIT_QUEUE;
	}
}

void limits_apply(struct wish *w, struct pool_memory *m, const struct snapshot *s, size_t pool, const struct learned *l,
		  int64_t over_budget)
{
	const struct pool_spec *spec = &s->fleet->pools[pool];

	keep_sizes(w, s, pool);
	if (over_budget > 0)
		give_up_to(w, at_least(w->fleet.ready - over_budget, 0), LIMIT_BUDGET);
	if (spec->class != CLASS_TRAINING) {
		hold_below(w, w->have + at_least(LEAST_GROWTH, w->have), LIMIT_RATE);
		hold_growth(w, s, pool);
	}
	keep_what_is_needed(w, m, s, pool, l);
	if (spec->mode == MODE_ACT)
		return;
	drop_moves(w);
	w->held_by = spec->mode == MODE_OBSERVE ? LIMIT_OBSERVE : LIMIT_PAUSED;
}
