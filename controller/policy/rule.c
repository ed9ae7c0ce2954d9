#include "controller/policy/rule.h"

#include "base/exact.h"
#include "controller/policy/policy_state.h"

static const double margins[] = { -.10, -.06, -.02, .01, .04, .07, .10, .13, .16,
				  .20,	.25,  .30,  .37, .45, .55, .70, 1.0, 1.4 };
static const double SPARE = .24; /* replicas beside the margin, so that one that fills up is not the last */
/* of the rules that hold less than demand: a service that one replica nearly carries need not hold two */
static const double spares[] = { -.30, -.10, .05 };
static const double chases[] = { .05, .25, 1 };

enum {
	MARGINS = sizeof margins / sizeof margins[0],
	SPARES = sizeof spares / sizeof spares[0],
	CHASES = sizeof chases / sizeof chases[0],
};

_Static_assert(MARGINS *CHASES *(3 + HOLDS_MAX) <= RULES_MAX, "the family does not fit");

static void add_rules(struct family *f, size_t hold_from, size_t hold_to, bool is_tiered, double stock)
{
	for (size_t m = 0; m < MARGINS; m++)
		for (size_t h = hold_from; h < hold_to; h++)
			for (int c = 0; c < CHASES; c++)
				f->rules[f->count++] = (struct rule){
					.factor = exact_exp(margins[m]),
					.margin = margins[m],
					.spare = m < SPARES ? spares[m] : SPARE,
					.chase = chases[c],
					.chase_index = c,
					.hold = (int32_t)h,
					.is_tiered = is_tiered,
					.stock = stock,
				};
}

/* Holds are half, 1.25 and 3 lead times of either tier: the money is flat in between. */
void family_init(struct family *f, const struct tier_times *t, double late_allowed, struct rule room[RULES_MAX])
{
	double fast = t->wake_p95 > 0 ? t->wake_p95 : t->reclaim_p95;
	size_t cold_from = 0;

	*f = (struct family){ .rules = room };
	if (fast > 0 && fast < t->cold_p95) {
		f->hold[f->hold_count++] = .5 * fast;
		f->hold[f->hold_count++] = 1.25 * fast;
		cold_from = f->hold_count;
	}
	f->hold[f->hold_count++] = .5 * t->cold_p95;
	f->hold[f->hold_count++] = 1.25 * t->cold_p95;
	f->hold[f->hold_count++] = 3 * t->cold_p95;
	add_rules(f, cold_from, f->hold_count, false, 0);
	f->tiered_from = f->count;
	if (cold_from)
		add_rules(f, 0, f->hold_count, true, t->wake_p95 <= 0 ? 0 : late_allowed < .002 ? .4 : .2);
}

static int64_t at_most(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static double at_least(double a, double b)
{
	return a > b ? a : b;
}

static int64_t positive(int64_t a)
{
	return a > 0 ? a : 0;
}

static int64_t ceiling(double x)
{
	const double most = 1e9;
	int64_t n = (int64_t)(x < most ? x : most);

	return n + (x < most && x > (double)n + 1e-9);
}

/* Median time of the fastest tier that holds at least one replica and a tenth of the fleet. */
static double chase_time(const struct rule *r, const struct demand_view *d, const struct fleet *f)
{
	double enough = 1 + .1 * (double)f->ready;

	if (r->is_tiered && (double)f->lent >= enough)
		return d->times.reclaim_p50;
	if (r->is_tiered && (double)f->stock >= enough)
		return d->times.wake_p50;
	return d->times.cold_p50;
}

/* How much more than the margin says, to work off a queue that is already there. */
static double queue_chase(const struct rule *r, const struct demand_view *d, const struct fleet *f)
{
	if (f->waiting <= 0)
		return 0;
	double ready = (double)f->ready, p50 = chase_time(r, d, f);
	double shortage = d->level > ready ? d->level - ready : 0;
	double wanted = 1.7 * f->waiting + .5 * (f->waiting * d->service + shortage * p50) / p50;
	double most = r->chase * ready;
	return wanted < most ? wanted : most;
}

/* Lent nodes first, then stopped ones, then refills under way, then new machines; these only for
 * the margin, as chasing a queue is for the fast tiers. */
static void ask(const struct rule *r, const struct fleet *f, double target, int64_t most, struct scale_actions *m)
{
	const double over_ask = OVER_ASK_PERCENT / 100.0;
	int64_t on_the_way = f->rouse + f->wake + f->cold + f->reclaim, ready = f->ready;
	int64_t missing = at_most(ceiling(target), most) - ready - on_the_way;

	if (missing <= 0)
		return;
	if (r->is_tiered) {
		m->reclaim = at_most(missing, f->lent);
		m->wake = at_most(missing - m->reclaim, f->stock);
		m->adopt_refill = at_most(missing - m->reclaim - m->wake, f->refill);
		missing -= m->reclaim + m->wake + m->adopt_refill;
		on_the_way += m->reclaim + m->wake + m->adopt_refill;
	}
	m->cold = missing;
	if (r->stock >= .1) {
		double steady = (double)ready + over_ask * (m->low - m->chase - (double)ready);
		m->cold = at_most(missing, positive(ceiling(steady) - ready - on_the_way));
		m->kept_for_fast = missing - m->cold;
	}
}

/* What comes last goes first: new machines, then wakes, then reclaims, then ready replicas. */
static void shrink(const struct fleet *f, double bound, struct scale_actions *m)
{
	int64_t on_the_way = f->rouse + f->wake + f->cold + f->reclaim;
	double surplus = (double)(f->ready + on_the_way) - bound;
	int64_t excess = surplus > 0 ? (int64_t)surplus : 0;

	m->cancel_cold = at_most(excess, f->cold);
	excess -= m->cancel_cold;
	m->cancel_wake = at_most(excess, f->wake);
	excess -= m->cancel_wake;
	m->cancel_reclaim = at_most(excess, f->reclaim);
	excess -= m->cancel_reclaim;
	m->release = at_most(excess, f->ready);
	m->give_back = at_most(m->release, f->reclaimed);
}

/* Lent nodes that still serve are replaced one by one, so that the fast reserve is there for the next burst. */
static void bridge(const struct fleet *f, struct scale_actions *m)
{
	int64_t due = f->bridge_due && !m->release ? positive(f->reclaimed - f->replace) : 0;

	m->replace_wake = at_most(due, positive(f->stock - m->wake));
	m->replace_cold = due - m->replace_wake;
}

static void restock(const struct fleet *f, struct scale_actions *m)
{
	m->refill = positive(m->stock_low - (f->stock - m->wake - m->replace_wake) - (f->refill - m->adopt_refill));
}

struct band {
	double low, high; /* without the chase */
};

static struct band band_of(const struct rule *r, const struct demand_view *d)
{
	double low = d->level * r->factor, high = d->peak[r->hold] * r->factor * 1.03;

	if (!d->may_be_zero || d->level > 0)
		low = at_least(low + r->spare, SPARE);
	if (!d->may_be_zero || d->peak[r->hold] > 0)
		high = at_least(high + r->spare, SPARE) + .01;
	return (struct band){ low, high };
}

int64_t rule_stock(const struct rule *r, const struct demand_view *d)
{
	return r->stock > 0 ? at_most(ceiling(r->stock * d->stock_peak), d->stock_max) : 0;
}

bool rule_is_at_rest(const struct rule *r, const struct demand_view *d, const struct fleet *f)
{
	struct band b = band_of(r, d);

	return f->waiting <= 0 && b.low <= (double)f->ready &&
	       (double)(f->ready + f->wake + f->cold + f->reclaim) - b.high < 1 &&
	       (!r->is_tiered ||
		(!(f->bridge_due && f->reclaimed > f->replace) && f->stock + f->refill >= rule_stock(r, d)));
}

struct scale_actions rule_moves(const struct rule *r, const struct demand_view *d, const struct fleet *f)
{
	struct scale_actions m = { .stock_low = r->is_tiered ? rule_stock(r, d) : 0 };
	struct band b = band_of(r, d);
	double ready = (double)f->ready;

	m.chase = queue_chase(r, d, f);
	m.low = b.low + m.chase;
	m.high = b.high + m.chase;
	double target = m.low > ready ? ready + OVER_ASK_PERCENT / 100.0 * (m.low - ready) : 0;
	ask(r, f, target, d->replicas_max, &m);
	if (!m.reclaim && !m.wake && !m.adopt_refill && !m.cold)
		shrink(f, target > m.high ? target : m.high, &m);
	if (r->is_tiered) {
		bridge(f, &m);
		if (r->stock > 0)
			restock(f, &m);
	}
	m.wished = f->ready + f->rouse + f->wake + f->cold + f->reclaim + m.reclaim + m.wake + m.adopt_refill + m.cold -
		   m.cancel_cold - m.cancel_wake - m.cancel_reclaim - m.release;
	return m;
}

size_t rule_count(const struct policy_state *m, size_t pool)
{
	return m->pools[pool].family.count;
}

void rule_describe(const struct policy_state *m, size_t pool, int64_t rule, struct buf *out)
{
	const struct family *f = &m->pools[pool].family;

	if (rule < 0 || (size_t)rule >= f->count) {
		buf_text(out, "none");
		return;
	}
	const struct rule *r = &f->rules[rule];
	buf_printf(out, "%lld %% over demand, hold %lld s, chase %.2f", (long long)exact_round(r->margin * 100),
		   (long long)exact_round(f->hold[r->hold]), r->chase);
	if (r->is_tiered)
		buf_printf(out, ", standby %.1f of hot", r->stock);
}
