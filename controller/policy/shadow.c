#include "controller/policy/shadow.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

enum { CUT_EVERY = 8 }; /* ticks: often enough for a stock that is kept for hours */

static int32_t at_most(int32_t a, int64_t b)
{
	return b < a ? (int32_t)b : a;
}

void shadow_start(struct shadow *s, int64_t ready)
{
	*s = (struct shadow){ .ready = (int32_t)ready };
}

void shadow_release(struct shadow *s)
{
	free(s->cold_ring);
	s->cold_ring = NULL;
}

static uint16_t *cold_ring_of(struct shadow *s)
{
	if (!s->cold_ring)
		s->cold_ring = xcalloc(COLD_RING, sizeof *s->cold_ring);
	return s->cold_ring;
}

/* Nothing is in the ring any more when nothing is on its way. */
static void less_cold(struct shadow *s, int32_t n)
{
	s->cold -= n;
	if (!s->cold)
		shadow_release(s);
}

static int32_t take(uint16_t *slot)
{
	int32_t n = *slot;

	*slot = 0;
	return n;
}

static void put(uint16_t *slot, int64_t n)
{
	int64_t sum = *slot + n;

	*slot = (uint16_t)(sum < UINT16_MAX ? sum : UINT16_MAX);
}

/* Takes n out of a ring, beginning with what would come last (or first). Returns how many it found. */
static int32_t remove_from_ring(uint16_t *ring, int size, int64_t now, int64_t n, bool last_first)
{
	int32_t left = (int32_t)n;

	for (int i = 1; i <= size && left > 0; i++) {
		uint16_t *slot = &ring[(uint64_t)(last_first ? now - i + size : now + i) % (uint64_t)size];
		int32_t some = at_most(*slot, left);
		*slot = (uint16_t)(*slot - some);
		left -= some;
	}
	return (int32_t)n - left;
}

static void give_lent_back(struct shadow *s, int32_t n)
{
	n = at_most(n, s->reclaimed);
	n = at_most(n, s->ready);
	s->ready -= n;
	s->reclaimed -= n;
}

static void arrive_fast(struct shadow *s, struct shadow_tiers *x, const struct shadow_tick *t)
{
	uint64_t fast = (uint64_t)(t->tick / t->fast_step) % FAST_RING;
	int32_t wake = take(&x->wake_ring[fast]), reclaim = take(&x->reclaim_ring[fast]),
		replace = take(&x->bridge_ring[fast]);

	s->wake -= wake;
	s->reclaim -= reclaim;
	s->replace_wake -= replace;
	s->ready += wake + reclaim + replace;
	s->reclaimed += reclaim;
	give_lent_back(s, replace);
}

/* Starts that serve from this tick on. */
static void arrive(struct shadow *s, struct shadow_tiers *x, const struct shadow_tick *t)
{
	if (t->tick % t->fast_step == 0 && (s->wake | s->reclaim | s->replace_wake))
		arrive_fast(s, x, t);
	if (t->tick % t->cold_step || !(s->cold | s->refill | s->replace_cold))
		return;
	uint64_t slow = (uint64_t)(t->tick / t->cold_step) % COLD_RING;
	int32_t cold = s->cold_ring ? take(&s->cold_ring[slow]) : 0, refill = x ? take(&x->refill_ring[slow]) : 0,
		replace = x ? take(&x->replace_ring[slow]) : 0;
	less_cold(s, cold);
	s->refill -= refill;
	s->replace_cold -= replace;
	s->ready += cold + replace;
	s->stock += refill;
	give_lent_back(s, replace);
}

/* Seconds that a request arriving now would wait; an empty fleet serves nothing until something starts. */
static double wait_of(double backlog, double ready)
{
	static const double FOR_EVER = 1e9;

	return backlog <= 0 ? 0 : ready > 0 ? backlog / ready : FOR_EVER;
}

/* Moves the backlog over the readings of the tick; returns the share of the tick in which the wait was too long. */
static double let_wait(struct shadow *s, const struct shadow_tick *t)
{
	double ready = s->ready, late = 0, limit = t->objective_wait, backlog = s->backlog;

	if (backlog <= 0 && t->most_demand <= ready)
		return 0;
	for (size_t i = 0; i < t->readings; i++) {
		double next = backlog + t->seconds * (t->demand[i] - ready);
		next = next > 0 ? next : 0;
		double before = wait_of(backlog, ready), after = wait_of(next, ready);
		if (before > limit && after > limit)
			late += 1;
		else if (before > limit || after > limit)
			late += ((before > after ? before : after) - limit) /
				(before > after ? before - after : after - before);
		backlog = next;
	}
	s->backlog = backlog;
	return t->readings ? late / (double)t->readings : 0;
}

static struct fleet see(const struct shadow *s, const struct demand_view *d, const struct shadow_tick *t)
{
	int32_t lent = t->lendable - s->reclaimed - s->reclaim;

	return (struct fleet){
		.ready = s->ready,
		.wake = s->wake,
		.cold = s->cold,
		.reclaim = s->reclaim,
		.refill = s->refill,
		.replace = s->replace_cold + s->replace_wake,
		.stock = s->stock,
		.lent = lent > 0 ? lent : 0,
		.reclaimed = s->reclaimed,
		.waiting = s->backlog / d->service,
		.bridge_due = s->quiet_ticks >= t->bridge_ticks,
	};
}

/* Deals n starts their lead times: whole rounds at once, so that an absurd number costs no more than a small one. */
static void deal(struct shadow *s, int64_t n, const int32_t *leads, uint16_t *ring, int size, int64_t now)
{
	for (int i = 0; n >= DEALS && i < DEALS; i++)
		put(&ring[(uint64_t)(now + leads[i] + 1) % (uint64_t)size], n / DEALS);
	for (n %= DEALS; n > 0; n--)
		put(&ring[(uint64_t)(now + leads[s->deals++ % DEALS] + 1) % (uint64_t)size], 1);
	s->deals %= DEALS;
}

static void start_slow(struct shadow *s, uint16_t *ring, int64_t n, const struct shadow_tick *t)
{
	deal(s, n, t->deals->cold, ring, COLD_RING, t->tick / t->cold_step);
}

static void start_fast(struct shadow *s, uint16_t *ring, int64_t n, const int32_t *leads, const struct shadow_tick *t)
{
	deal(s, n, leads, ring, FAST_RING, t->tick / t->fast_step);
}

/* A share of the wakes is refused: their machines stay stopped and new ones are asked for. */
static int64_t refused(struct shadow *s, int64_t wakes, const struct shadow_tick *t)
{
	int64_t rounds = wakes - wakes % DEALS, n = (int64_t)((double)rounds * t->wake_refused);

	for (int64_t i = 0; i < wakes % DEALS; i++)
		n += (double)((s->deals + (int32_t)i * 7) % DEALS) < t->wake_refused * DEALS;
	return n;
}

static void grow(struct shadow *s, struct shadow_tiers *x, const struct scale_actions *m, const struct shadow_tick *t)
{
	int64_t fail = t->wake_refused > 0 ? refused(s, m->wake, t) : 0;

	if (x) {
		start_fast(s, x->wake_ring, m->wake - fail, t->deals->wake, t);
		start_fast(s, x->reclaim_ring, m->reclaim, t->deals->reclaim, t);
		start_fast(s, x->bridge_ring, m->replace_wake, t->deals->wake, t);
	}
	if (m->cold + fail)
		start_slow(s, cold_ring_of(s), m->cold + fail, t);
	if (x) {
		start_slow(s, x->replace_ring, m->replace_cold, t);
		start_slow(s, x->refill_ring, m->refill, t);
	}
	s->wake += (int32_t)(m->wake - fail);
	s->reclaim += (int32_t)m->reclaim;
	s->replace_wake += (int32_t)m->replace_wake;
	s->cold += (int32_t)(m->cold + fail);
	s->replace_cold += (int32_t)m->replace_cold;
	s->refill += (int32_t)m->refill;
	s->stock -= (int32_t)(m->wake - fail + m->replace_wake);
	if (t->counts)
		s->cost += t->wake_charge * (double)m->wake + t->fast_charge * (double)m->reclaim +
			   t->cold_charge * (double)(m->cold + m->refill);
}

/* Refills under way that shall serve: they keep their time of arrival. */
static void adopt(struct shadow *s, struct shadow_tiers *x, int64_t n, const struct shadow_tick *t)
{
	int64_t now = t->tick / t->cold_step;

	for (int i = 1; i <= COLD_RING && n > 0; i++) {
		uint64_t at = (uint64_t)(now + i) % COLD_RING;
		int32_t some = at_most(x->refill_ring[at], n);
		x->refill_ring[at] = (uint16_t)(x->refill_ring[at] - some);
		if (some)
			put(&cold_ring_of(s)[at], some);
		s->refill -= some;
		s->cold += some;
		n -= some;
	}
}

static void cancel(struct shadow *s, struct shadow_tiers *x, const struct scale_actions *m, const struct shadow_tick *t)
{
	int64_t slow = t->tick / t->cold_step, fast = t->tick / t->fast_step;

	if (m->cancel_cold)
		less_cold(s, remove_from_ring(cold_ring_of(s), COLD_RING, slow, m->cancel_cold, true));
	if (x && m->cancel_wake) {
		int32_t n = remove_from_ring(x->wake_ring, FAST_RING, fast, m->cancel_wake, true);
		s->wake -= n;
		s->stock += n;
	}
	if (x && m->cancel_reclaim)
		s->reclaim -= remove_from_ring(x->reclaim_ring, FAST_RING, fast, m->cancel_reclaim, true);
}

static void release(struct shadow *s, const struct rule *r, const struct demand_view *d, const struct scale_actions *m,
		    const struct shadow_tick *t)
{
	if (!m->release || !t->may_release)
		return;
	s->ready -= (int32_t)m->release;
	s->reclaimed -= (int32_t)m->give_back;
	if (t->counts) {
		s->cost += t->drain_ticks * (double)m->release;
		s->held += t->drain_ticks * (double)m->release;
	}
	if (r->is_tiered && d->stock_max > 0)
		s->stock = at_most(s->stock + (int32_t)(m->release - m->give_back), d->stock_max);
}

/* A machine that was not needed for a whole break-even time is deleted. */
static void cut_stock(struct shadow *s, int64_t keep, const struct shadow_tick *t)
{
	int32_t low = INT32_MAX;

	if (t->block_is_new)
		s->block_low[t->block] = s->stock;
	s->block_low[t->block] = at_most(s->block_low[t->block], s->stock);
	if (t->tick % CUT_EVERY)
		return;
	for (int i = 0; i < STOCK_BLOCKS; i++)
		low = at_most(low, s->block_low[i]);
	int64_t excess = low - keep;
	if (excess <= 0)
		return;
	excess = at_most(s->stock, excess);
	s->stock -= (int32_t)excess;
	for (int i = 0; i < STOCK_BLOCKS; i++)
		s->block_low[i] -= (int32_t)excess;
}

static void count(struct shadow *s, double late_part, const struct shadow_tick *t)
{
	double held = s->ready + s->cold + s->wake + s->reclaim + s->refill + s->replace_cold + s->replace_wake +
		      t->standby_price * s->stock;
	double late = late_part * t->arrived;

	s->cost += held;
	s->held += held;
	s->late += late;
	s->late_hour += late;
}

void shadow_step(struct shadow *s, struct shadow_tiers *x, const struct rule *r, const struct demand_view *d,
		 const struct shadow_tick *t)
{
	arrive(s, x, t);
	double late_part = let_wait(s, t);
	if (t->counts)
		count(s, late_part, t);
	s->quiet_ticks = s->reclaimed > 0 && s->backlog <= 0 ? s->quiet_ticks + 1 : 0;
	struct fleet f = see(s, d, t);
	if (!rule_is_at_rest(r, d, &f)) {
		struct scale_actions m = rule_moves(r, d, &f);
		grow(s, x, &m, t);
		if (m.adopt_refill)
			adopt(s, x, m.adopt_refill, t);
		cancel(s, x, &m, t);
		release(s, r, d, &m, t);
	}
	if (r->is_tiered && d->stock_max > 0)
		cut_stock(s, rule_stock(r, d), t);
}

void shadow_end_hour(struct shadow *s, double keep)
{
	s->late_squares = s->late_squares * keep * keep + s->late_hour * s->late_hour;
	s->bad_hours = s->bad_hours * keep + (s->late_hour > 0);
	s->late_hour = 0;
	s->cost *= keep;
	s->held *= keep;
	s->late *= keep;
}
