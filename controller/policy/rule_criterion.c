#include "controller/policy/rule_criterion.h"

#include "base/exact.h"

static const double PRIOR_HOURS = 6;
static const double CAUTION = .6; /* standard errors of a sum of independent bad hours */
static const double AIM = .8;	  /* of the allowed late share */
static const double TIGHTEN = .3, TIGHTEST = .15;
static const double WIDE_MARGIN = .75, BURSTS_BELIEVED = 2.5; /* three, a little forgotten */
static const double STICKINESS = 1.01, STICKY_REPLICAS = .1;  /* other rules count so many times dearer, and so much */
static const double LN10 = 2.302585092994046, LN2 = .6931471805599453;

static double log2_of(double x)
{
	return exact_log(x) / LN2;
}

/* Lead time that a rule has to live with: of its fast tier when it keeps a stock. */
static double prior_lead(const struct tier_times *t, const struct rule *r)
{
	if (!r->is_tiered)
		return t->cold_p95;
	double fast = t->wake_p95 > 0 ? t->wake_p95 : t->reclaim_p95;
	return r->stock >= .2 ? fast : exact_sqrt(fast * t->cold_p95);
}

/* Fitted once to the public recordings: docs/how-it-decides.md, "the first hours". */
void choice_priors(struct family *f, const struct tier_times *t, double objective_wait)
{
	static const double by_chase[] = { .4, .15, 0 };

	for (size_t i = 0; i < f->count; i++) {
		struct rule *r = &f->rules[i];
		double lead = prior_lead(t, r), holds = log2_of(f->hold[r->hold] / lead / 1.25);
		double log_late = -1.45 - 5.3 * exact_sqrt(exact_sqrt(650 / lead)) * r->margin - .25 * holds +
				  by_chase[r->chase_index] - (objective_wait > 3 ? .15 : 0);
		r->prior_share = exact_exp(LN10 * (log_late < -.2 ? log_late : -.2));
		r->prior_cost = r->factor * (1 + .02 * holds) * (1 + .02 * r->chase_index);
	}
}

static double prior_arrivals(const struct choice_input *in)
{
	return in->record->hours > 0 ? PRIOR_HOURS * in->record->arrived / in->record->hours : 0;
}

/* Late requests with the caution for rare bursts: one burst counts 1.6 times, fifty small ones about 1.1 times. */
static double cautious_late(const struct shadow *s)
{
	return s->late + CAUTION * exact_sqrt(s->late_squares + s->late_hour * s->late_hour);
}

double choice_share(const struct choice_input *in, size_t rule)
{
	const struct shadow *s = &in->shadows[rule];
	double arrived = in->record->arrived, prior = prior_arrivals(in);

	if (arrived + prior <= 0)
		return in->family->rules[rule].prior_share;
	return (cautious_late(s) + prior * in->family->rules[rule].prior_share) / (arrived + prior);
}

double choice_record_share(const struct choice_input *in, size_t rule)
{
	double arrived = in->record->arrived;

	return arrived > 0 ? cautious_late(&in->shadows[rule]) / arrived : 0;
}

double choice_cost(const struct choice_input *in, size_t rule)
{
	double prior_ticks = PRIOR_HOURS * in->ticks_per_hour, ticks = in->record->ticks;
	double level = ticks > 0 ? in->record->level_ticks / ticks : 1;

	return (in->shadows[rule].cost + prior_ticks * level * in->family->rules[rule].prior_cost) /
	       (ticks + prior_ticks);
}

/* More than twice the demand is held only against bursts that came again: three bad hours under every smaller margin.
 * One burst alone would otherwise buy several times the fleet. */
static bool believes_wide(const struct choice_input *in)
{
	double least = BURSTS_BELIEVED;

	for (size_t i = 0; i < in->family->count; i++)
		if (in->family->rules[i].margin <= WIDE_MARGIN && in->shadows[i].bad_hours < least)
			least = in->shadows[i].bad_hours;
	return least >= BURSTS_BELIEVED;
}

static bool is_open(const struct choice_input *in, size_t rule, bool wide)
{
	return wide || in->family->rules[rule].margin <= WIDE_MARGIN;
}

/* What the largest margin would not have avoided is sunk. */
double choice_sunk_share(const struct choice_input *in)
{
	double least = -1, total = in->record->arrived + prior_arrivals(in);
	bool wide = believes_wide(in);

	for (size_t i = 0; i < in->family->count; i++) {
		double late = cautious_late(&in->shadows[i]);
		if (is_open(in, i, wide) && (least < 0 || late < least))
			least = late;
	}
	return total > 0 && least > 0 ? least / total : 0;
}

static double target_share(const struct choice_input *in)
{
	double spare = 1 - in->own_share / in->late_allowed;
	double part = 1 + TIGHTEN * (spare < 0 ? spare : 0);

	return AIM * in->late_allowed * (part > TIGHTEST ? part : TIGHTEST) + choice_sunk_share(in);
}

struct candidate {
	double share, cost;
};

static struct candidate weigh(const struct choice_input *in, size_t rule)
{
	struct candidate c = { choice_share(in, rule), choice_cost(in, rule) };

	if (in->violation_cost > 0 && in->record->ticks > 0)
		c.cost += c.share * in->record->arrived / in->record->ticks * in->violation_cost;
	if (in->present != ABSENT && (int64_t)rule != in->present)
		c.cost = c.cost * STICKINESS + STICKY_REPLICAS;
	return c;
}

/* The rules that would have held just fewer and just more than the chosen one, so that a person can see what the
 * choice weighed. */
static void find_neighbours(const struct choice_input *in, size_t count, double target, struct choice *c)
{
	double own = in->shadows[c->rule].held, below = 0, above = 0;

	for (size_t i = 0; i < count; i++) {
		double held = in->shadows[i].held;
		bool meets = choice_share(in, i) <= target;
		if ((int64_t)i == c->rule)
			continue;
		if (!meets && held < own && (c->cheaper == ABSENT || held > below)) {
			c->cheaper = (int64_t)i;
			below = held;
		}
		if (meets && held > own && (c->dearer == ABSENT || held < above)) {
			c->dearer = (int64_t)i;
			above = held;
		}
	}
}

struct choice choose_rule(const struct choice_input *in)
{
	size_t count = in->without_tiers ? in->family->tiered_from : in->family->count;
	struct choice best = { .rule = ABSENT, .cheaper = ABSENT, .dearer = ABSENT, .target = target_share(in) };
	double target = in->violation_cost > 0 ? 1 : best.target, best_cost = 0, least = 0;
	int64_t least_late = 0;
	bool wide = believes_wide(in);

	for (size_t i = 0; i < count; i++) {
		if (!is_open(in, i, wide))
			continue;
		struct candidate c = weigh(in, i);
		if (i == 0 || c.share < least) {
			least = c.share;
			least_late = (int64_t)i;
		}
		if (c.share <= target && (best.rule == ABSENT || c.cost < best_cost)) {
			best.rule = (int64_t)i;
			best_cost = c.cost;
		}
	}
	if (best.rule == ABSENT)
		best.rule = least_late;
	best.share = choice_share(in, (size_t)best.rule);
	find_neighbours(in, count, target, &best);
	return best;
}
