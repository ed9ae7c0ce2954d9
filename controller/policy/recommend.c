#include "controller/policy/recommend.h"

#include "base/exact.h"
#include "controller/policy/swap.h"

static int64_t at_most(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t at_least(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t ceiling_of(double x)
{
	const double most = 1e9;
	int64_t n = (int64_t)(x < most ? x : most);

	return n + (x < most && x > (double)n + 1e-9);
}

static struct lead lead_of(const struct estimates *l, int64_t kind)
{
	switch ((enum start_kind)kind) {
	case START_WAKE:
		return l->wake;
	case START_RECLAIM:
		return l->reclaim;
	case START_PLACE:
		return l->place;
	case START_ROUSE:
		return l->rouse;
	case START_COLD:
	case START_REFILL:
	case START_KIND_COUNT:
		break;
	}
	return l->cold;
}

/* A start that nearly all others would have finished loses its credit, so that a replacement is asked for. */
static void see_starts(const struct pool_snapshot *seen, const struct estimates *l, millis now,
		       struct recommendation *w)
{
	struct fleet *f = &w->fleet;

	w->next_serving_ms = ABSENT;
	for (size_t i = 0; i < seen->start_count; i++) {
		const struct start_input *start = &seen->starts[i];
		struct lead lead = lead_of(l, start->kind);
		double age = (double)(now - start->asked_at) / 1000;
		if (lead_is_overdue(lead, age) && start->kind != START_REFILL) {
			w->overdue += start->count;
			continue;
		}
		int64_t rest = exact_round(lead_remaining(lead, age) * 1000);
		if (start->kind != START_REFILL && (w->next_serving_ms == ABSENT || rest < w->next_serving_ms))
			w->next_serving_ms = rest;
		if (start->kind == START_WAKE)
			f->wake += start->count;
		else if (start->kind == START_RECLAIM)
			f->reclaim += start->count;
		else if (start->kind == START_ROUSE)
			f->rouse += start->count;
		else if (start->kind == START_REFILL)
			f->refill += start->count;
		else
			f->cold += start->count;
	}
}

/* Starts that will replace lent nodes are neither missing nor surplus. */
static void set_replacements_apart(struct fleet *f, int64_t replacing)
{
	int64_t wakes = at_most(replacing, f->wake), colds = at_most(replacing - wakes, f->cold);

	f->wake -= wakes;
	f->cold -= colds;
	f->replace = wakes + colds;
}

static void count_fleet(const struct pool_policy_state *m, const struct snapshot *s, size_t pool,
			const struct estimates *l, struct recommendation *w)
{
	const struct pool_snapshot *seen = &s->pools[pool];

	w->fleet = (struct fleet){ .ready = seen->input.ready, .reclaimed = m->reclaimed };
	see_starts(seen, l, s->now, w);
	for (size_t i = 0; i < seen->group_count; i++) {
		w->fleet.stock += seen->groups[i].standby;
		w->fleet.lent += seen->groups[i].lent;
	}
	set_replacements_apart(&w->fleet, m->replacing);
	swap_set_apart(m, s, pool, &w->fleet);
	w->have = w->fleet.ready + w->fleet.rouse + w->fleet.wake + w->fleet.cold + w->fleet.reclaim;
}

static void see_fleet(struct pool_policy_state *m, const struct snapshot *s, size_t pool, const struct estimates *l,
		      struct recommendation *w)
{
	count_fleet(m, s, pool, l, w);
	if (l->reading.signals <= SIGNALS_PARTIAL) /* between two readings the last one stands */
		w->fleet.waiting = (double)m->demand.last_waiting / l->capacity.slots;
	bool serving_quietly = m->reclaimed > 0 && w->fleet.waiting <= 0;
	if (!serving_quietly)
		m->bridged_since = s->now;
	w->fleet.bridge_due = serving_quietly && s->now - m->bridged_since >= 5 * MINUTE;
}

/* Work until each deadline over the time left once a start could serve; the steepest counts (llm-d, batch deadline
 * law: r(t) = B(t) / (R (t - C))). A deadline that nothing new can keep is missed anyway: its work is spread over so
 * many lead times that starts do not cost more than they bring. */
static double deadline_need(const struct pool_snapshot *seen, const struct estimates *l, millis now)
{
	const double leads = 10;
	double work = 0, need = 0;

	for (size_t i = 0; i < seen->deadline_count; i++) {
		const struct deadline_input *d = &seen->deadlines[i];
		work += (double)d->work_ms / 1000;
		double left = d->due > 0 ? (double)(d->due - now) / 1000 - l->cold.p95 : 4 * 3600;
		double r = work / (left > 60 ? left : leads * l->cold.p50);
		need = r > need ? r : need;
	}
	return need;
}

static void follow_deadlines(struct demand_view *v, double need)
{
	v->level = need;
	for (int i = 0; i < HOLDS_MAX; i++)
		v->peak[i] = need;
	v->stock_peak = 0;
}

/*
 * The replicas of demand that headroom is beyond: the most that a level within the time of a start asked for. What is
 * given back for a low moment would have to be bought again for the next high one.
 */
static int64_t demand_of_bounds(const struct snapshot *s, const struct pool_policy_state *m, const struct estimates *l)
{
	const double tolerance = .05;
	int64_t ticks = 1 + (int64_t)(l->cold.p95 * 1000 / (double)s->interval);

	return ceiling_of(demand_peak(&m->demand, ticks) - tolerance);
}

/* Headroom is hot capacity beyond demand; the schedule's floor is asked for a lead time before it begins. */
static void set_bounds(const struct snapshot *s, size_t pool, const struct pool_policy_state *m,
		       const struct estimates *l, struct recommendation *w)
{
	const struct pool_spec *spec = &s->fleet->pools[pool];
	const struct pool_input *in = &s->pools[pool].input;
	int64_t headroom = at_least(spec->headroom_min, in->schedule_floor);
	double ahead = w->fleet.stock > 0 && l->wake.p95 > 0 ? l->wake.p95 : l->cold.p95;

	if (in->schedule_next_at > 0 && in->schedule_next_at - s->now <= (millis)(ahead * 1000))
		headroom = at_least(headroom, in->schedule_next_floor);
	int64_t demand = demand_of_bounds(s, m, l);
	w->floor = headroom > 0 ? demand + headroom : 0;
	/* At zero, and blind, nothing else tells of need. */
	w->floor = at_least(w->floor, in->wanted_pods);
	w->ceiling = spec->headroom_max > 0 ? demand + at_least(spec->headroom_max, headroom) : INT64_MAX;
}

/* The stock's least level over the break-even time, beyond what the rule wants to keep. */
static int64_t find_stock_excess(struct pool_policy_state *m, const struct snapshot *s, const struct estimates *l,
				 const struct recommendation *w)
{
	double tick = (double)s->interval / 1000;
	int64_t length = at_least((int64_t)(l->view.break_even / STOCK_BLOCKS / tick), 1), block = m->ticks / length;
	int32_t stock = (int32_t)w->fleet.stock, low = INT32_MAX;
	int32_t *here = &m->stock_low[block % STOCK_BLOCKS];

	if (m->ticks % length == 0 || stock < *here)
		*here = stock;
	for (int i = 0; i < STOCK_BLOCKS; i++)
		low = m->stock_low[i] < low ? m->stock_low[i] : low;
	int64_t excess = at_most(at_least(low - w->moves.stock_low, 0), w->fleet.stock - w->moves.wake);
	for (int i = 0; i < STOCK_BLOCKS && excess > 0; i++)
		m->stock_low[i] -= (int32_t)excess;
	return at_least(excess, 0);
}

int64_t recommendation_wanted(const struct recommendation *w)
{
	const struct scale_actions *m = &w->moves;

	return w->have + m->reclaim + m->wake + m->adopt_refill + m->cold - m->cancel_cold - m->cancel_wake -
	       m->cancel_reclaim - m->release;
}

static int64_t take(int64_t *from, int64_t *need)
{
	int64_t n = at_most(*from, *need);

	*from -= n;
	*need -= n;
	return n;
}

/* Cancels releases before it asks. */
static int64_t wish_ask_more(struct recommendation *w, int64_t replicas)
{
	struct scale_actions *m = &w->moves;
	int64_t need = replicas;

	take(&m->release, &need);
	m->give_back = at_most(m->give_back, m->release);
	take(&m->cancel_reclaim, &need);
	take(&m->cancel_wake, &need);
	take(&m->cancel_cold, &need);
	int64_t wake = at_most(need, at_least(w->fleet.stock - m->wake - m->replace_wake, 0));
	m->wake += wake;
	m->cold += need - wake;
	return replicas;
}

static int64_t wish_ask_less(struct recommendation *w, int64_t replicas)
{
	struct scale_actions *m = &w->moves;
	int64_t need = replicas;

	take(&m->cold, &need);
	take(&m->adopt_refill, &need);
	take(&m->wake, &need);
	take(&m->reclaim, &need);
	return replicas - need;
}

/*
 * A pod of a training job takes one place for all of its life: what runs and what waits says exactly how many are
 * needed. None is asked for in reserve, none to work off the queue sooner: they would come when it is served.
 */
static void ask_no_more_than_work(struct recommendation *w, const struct pool_snapshot *seen, const struct estimates *l)
{
	const struct scrape_input *last = seen->scrape_count ? &seen->scrapes[seen->scrape_count - 1] : NULL;
	double work = last ? (double)(last->running + last->running_draining + last->waiting) / l->capacity.slots : 0;
	int64_t over = recommendation_wanted(w) - ceiling_of(work > w->deadline_need ? work : w->deadline_need);

	if (!last || over <= 0)
		return;
	int64_t taken = wish_ask_less(w, over);
	if (taken > 0) {
		w->unwished = taken;
		w->wish_cut_by = WISH_CUT_WORK;
	}
}

/* Of class any: what pods need and what nobody uses is told by each node group, in machines. */
static void ask_by_group(struct recommendation *w, const struct snapshot *s, size_t pool)
{
	const struct pool_spec *spec = &s->fleet->pools[pool];

	for (size_t i = 0; i < spec->group_count; i++) {
		const struct group_input *in = &s->pools[pool].groups[i];
		int64_t each = replicas_per_node(&s->fleet->groups[spec->groups[i]], spec);
		w->moves.cold += in->lacking_nodes * each;
		w->moves.cancel_cold += in->needless_nodes * each;
		w->moves.release += (in->idle_nodes + in->movable_nodes) * each;
	}
	w->moves.cold += s->pools[pool].input.stranded_gpus;
	w->held_by = w->moves.cold > 0 ? LIMIT_PODS : LIMIT_NONE;
}

/* The machine that nobody waits for any more may still be of use to the next: like a node that is idle. */
static void keep_what_comes(struct recommendation *w, struct pool_policy_state *m, const struct snapshot *s,
			    size_t pool)
{
	if (w->moves.cancel_cold == 0)
		m->surplus_since = 0;
	else if (m->surplus_since == 0)
		m->surplus_since = s->now;
	if (w->moves.cancel_cold > 0 && s->now - m->surplus_since < s->fleet->pools[pool].scale_down_after)
		w->moves.cancel_cold = 0;
}

static struct recommendation recommendation_for_any(struct pool_policy_state *m, const struct snapshot *s, size_t pool,
						    const struct estimates *l)
{
	struct recommendation w = { .held_by = LIMIT_NONE, .deadline_need = -1, .ceiling = INT64_MAX };

	count_fleet(m, s, pool, l, &w);
	ask_by_group(&w, s, pool);
	keep_what_comes(&w, m, s, pool);
	return w;
}

struct recommendation recommendation_make(struct pool_policy_state *m, const struct snapshot *s, size_t pool,
					  const struct estimates *l)
{
	const struct pool_snapshot *seen = &s->pools[pool];
	struct demand_view view = l->view;
	const struct rule *rule = &m->family.rules[m->choice.rule];
	struct recommendation w = { .held_by = LIMIT_NONE, .deadline_need = -1, .keeps_stock = rule->stock > 0 };

	if (s->fleet->pools[pool].class == CLASS_ANY)
		return recommendation_for_any(m, s, pool, l);
	view.replicas_max = INT32_MAX; /* a wish; the limits say what is left of it */
	see_fleet(m, s, pool, l, &w);
	if (seen->deadline_count) {
		w.deadline_need = deadline_need(seen, l, s->now);
		follow_deadlines(&view, w.deadline_need);
	}
	w.moves = rule_moves(rule, &view, &w.fleet);
	if (w.moves.kept_for_fast > 0) {
		w.unwished = w.moves.kept_for_fast;
		w.wish_cut_by = WISH_CUT_CHASE;
	}
	if (s->fleet->pools[pool].class == CLASS_TRAINING)
		ask_no_more_than_work(&w, seen, l);
	set_bounds(s, pool, m, l, &w);
	swap_recommend(m, s, pool, l, &w);
	if (view.stock_max > 0)
		w.stock_excess = find_stock_excess(m, s, l, &w);
	return w;
}

/* drops every release and cancellation */
static int64_t wish_keep(struct recommendation *w)
{
	struct scale_actions *m = &w->moves;
	int64_t n = m->release + m->cancel_cold + m->cancel_wake + m->cancel_reclaim;

	m->release = m->give_back = m->cancel_cold = m->cancel_wake = m->cancel_reclaim = 0;
	return n;
}

/* In one tick a pool may double, or grow by this many replicas. */
enum { LEAST_GROWTH = 8 };
/* And within so long it may buy three quarters of what it may ever have, whatever the signals say. */
static const millis GROWTH_SPAN = 5 * MINUTE;
/* For decisions between ticks: so long ago lies a tick. */
static const millis RATE_SPAN = 15 * SECOND;

static void hold_below(struct recommendation *w, int64_t most, enum limit limit)
{
	int64_t over = recommendation_wanted(w) - most;

	if (over > 0 && wish_ask_less(w, over) > 0) {
		w->held_by = limit;
		w->is_cut = true;
	}
}

static void give_up_to(struct recommendation *w, int64_t most, enum limit limit)
{
	int64_t over = recommendation_wanted(w) - most, more = w->fleet.ready - w->moves.release;

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

static void hold_growth(struct recommendation *w, const struct snapshot *s, size_t pool)
{
	int64_t allowed = at_least(LEAST_GROWTH, 3 * most_replicas(s, pool) / 4);
	int64_t left = at_least(allowed - bought_lately(&s->pools[pool], s->now), 0);
	int64_t over = w->moves.cold + w->moves.wake - left;

	w->moves.swap = at_most(w->moves.swap, at_least(-over, 0));
	if (over > 0 && wish_ask_less(w, over) > 0) {
		w->held_by = LIMIT_GROWTH;
		w->is_cut = true;
	}
}

/* The floor is theirs, and not all of them have a place. */
static bool pods_wait(const struct recommendation *w, const struct pool_input *in)
{
	return in->wanted_pods == w->floor && in->wanted_pods > in->ready;
}

static void keep_sizes(struct recommendation *w, const struct snapshot *s, size_t pool)
{
	int64_t most = most_replicas(s, pool), missing = w->floor - recommendation_wanted(w);

	if (missing > 0) {
		wish_ask_more(w, missing);
		w->held_by = pods_wait(w, &s->pools[pool].input) ? LIMIT_PODS : LIMIT_MIN;
	}
	hold_below(w, at_least(w->ceiling, w->floor), LIMIT_MAX);
	hold_below(w, most, LIMIT_MAX);
	give_up_to(w, at_least(w->ceiling, w->floor), LIMIT_MAX);
}

static void drop_moves(struct recommendation *w)
{
	w->moves.wake = w->moves.cold = w->moves.reclaim = w->moves.adopt_refill = w->moves.refill = 0;
	w->moves.replace_wake = w->moves.replace_cold = w->moves.swap = 0;
	w->stock_excess = 0;
	wish_keep(w);
}

/* A fixed delay, where the manifest gives one, counts from the first moment of surplus. */
static bool is_cooling_down(const struct recommendation *w, struct pool_policy_state *m, const struct snapshot *s,
			    size_t pool)
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

static void keep_what_is_needed(struct recommendation *w, struct pool_policy_state *m, const struct snapshot *s,
				size_t pool, const struct estimates *l)
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

static void keep_wish(struct recommendation *w, struct pool_policy_state *m, const struct snapshot *s, size_t pool,
		      const struct estimates *l, int64_t over_budget)
{
	keep_sizes(w, s, pool);
	if (over_budget > 0)
		give_up_to(w, at_least(w->fleet.ready - over_budget, 0), LIMIT_BUDGET);
	if (s->fleet->pools[pool].class != CLASS_TRAINING) {
		hold_below(w, w->have + at_least(LEAST_GROWTH, w->have), LIMIT_RATE);
		hold_growth(w, s, pool);
	}
	keep_what_is_needed(w, m, s, pool, l);
}

static enum limit limit_of_mode(enum pool_mode mode)
{
	return mode == MODE_SHARE ? LIMIT_SHARE : mode == MODE_OBSERVE ? LIMIT_OBSERVE : LIMIT_PAUSED;
}

void limits_apply(struct recommendation *w, struct pool_policy_state *m, const struct snapshot *s, size_t pool,
		  const struct estimates *l, int64_t over_budget)
{
	const struct pool_spec *spec = &s->fleet->pools[pool];

	if (spec->class == CLASS_ANY && l->reading.signals >= SIGNALS_PARTIAL && wish_keep(w) > 0)
		w->held_by = LIMIT_STALE;
	if (spec->class != CLASS_ANY)
		keep_wish(w, m, s, pool, l, over_budget);
	if (spec->mode == MODE_ACT)
		return;
	drop_moves(w);
	w->held_by = limit_of_mode(spec->mode);
}

/* What was asked for since the tick before, about: the rate of growth is one of ticks, however often it is decided. */
static int64_t asked_since_tick(const struct pool_snapshot *seen, millis now)
{
	int64_t count = 0;

	for (size_t i = 0; i < seen->start_count; i++)
		if (seen->starts[i].kind != START_REFILL && now - seen->starts[i].asked_at < RATE_SPAN)
			count += seen->starts[i].count;
	return count;
}

struct recommendation recommendation_for_pods(const struct pool_policy_state *m, const struct snapshot *s, size_t pool,
					      const struct estimates *l)
{
	const struct pool_spec *spec = &s->fleet->pools[pool];
	struct recommendation w = { .held_by = LIMIT_NONE, .deadline_need = -1, .ceiling = INT64_MAX };

	count_fleet(m, s, pool, l, &w);
	w.floor = spec->class == CLASS_ANY ? 0 : s->pools[pool].input.wanted_pods;
	if (spec->class == CLASS_ANY)
		ask_by_group(&w, s, pool);
	else
		keep_sizes(&w, s, pool);
	if (spec->class != CLASS_TRAINING && spec->class != CLASS_ANY) {
		int64_t before = at_least(w.have - asked_since_tick(&s->pools[pool], s->now), 0);
		hold_below(&w, at_least(w.have, before + at_least(LEAST_GROWTH, before)), LIMIT_RATE);
		hold_growth(&w, s, pool);
	}
	w.moves.release = w.moves.give_back = w.moves.cancel_cold =
		0; /* of a fleet larger than its most: the tick's to do */
	if (spec->mode != MODE_ACT) {
		drop_moves(&w);
		w.held_by = limit_of_mode(spec->mode);
	}
	return w;
}
