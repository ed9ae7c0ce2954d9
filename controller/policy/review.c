#include "controller/policy/review.h"

#include "base/exact.h"

static const millis REVIEW_EVERY = 15 * MINUTE, REVIEW_AT_FIRST = MINUTE, AT_FIRST = 4 * HOUR;
static const double OWN_HALF_LIFE = 3 * 24 * 3600.0, DAY_HALF_LIFE = 24 * 3600.0, LN2 = .6931471805599453;
static const double OWN_PRIOR_HOURS = 6;
static const int64_t price_levels[OBJECTIVE_PRICES] = { 100000, 50000, 20000, 10000, 5000, 2000, 1000, 500 };

static double keep_of(double half_life, millis interval)
{
	return exact_exp(-LN2 * (double)interval / 1000 / half_life);
}

void review_seen(struct pool_memory *m, const struct snapshot *s, size_t pool, const struct demand_reading *r,
		 bool is_filling)
{
	struct rule_memory *c = &m->choice;
	const struct pool_snapshot *seen = &s->pools[pool];
	double own = keep_of(OWN_HALF_LIFE, s->interval), day = keep_of(DAY_HALF_LIFE, s->interval);
	double held = (double)(seen->input.ready + seen->input.draining);

	c->own_started *= own;
	c->own_late *= own;
	c->day_started *= day;
	c->day_late *= day;
	c->day_held *= day;
	c->day_ticks *= day;
	c->day_shadow_late *= day;
	c->day_shadow_held *= day;
	if (is_filling || r->signals > SIGNALS_PARTIAL)
		return;
	for (size_t i = 0; i < seen->start_count; i++)
		held += (double)seen->starts[i].count;
	c->own_started += r->started;
	c->own_late += r->late;
	c->day_started += r->started;
	c->day_late += r->late;
	c->day_held += held;
	c->day_ticks++;
}

void review_expected(struct pool_memory *m, double late, double held)
{
	m->choice.day_shadow_late += late;
	m->choice.day_shadow_held += held;
}

/* The real late share, drawn towards the objective by some hours of traffic exactly on it. */
static double own_share(const struct pool_memory *m, double late_allowed)
{
	double prior = m->record.hours > 0 ? OWN_PRIOR_HOURS * m->record.arrived / m->record.hours : 0;
	double started = m->choice.own_started + prior;

	return started > 0 ? (m->choice.own_late + prior * late_allowed) / started : late_allowed;
}

struct choice_input review_input(const struct pool_memory *m, const struct snapshot *s, size_t pool,
				 const struct learned *l)
{
	const struct pool_spec *spec = &s->fleet->pools[pool];
	double tick_hours = (double)s->interval / (double)HOUR, allowed = (double)spec->objective_late_ppm / 1e6;
	double tick_price = l->replica_price * tick_hours;

	return (struct choice_input){
		.family = &m->family,
		.shadows = m->shadows,
		.record = &m->record,
		.late_allowed = allowed > 0 ? allowed : .01,
		.own_share = own_share(m, allowed > 0 ? allowed : .01),
		.violation_cost = tick_price > 0 ? (double)spec->violation_cost / tick_price : 0,
		.ticks_per_hour = 1 / tick_hours,
		.present = m->choice.rule,
	};
}

/* The cheapest rule per allowed late share, on the record alone. */
static void price_objectives(struct pool_memory *m, const struct choice_input *in, double replica_price, double gpus)
{
	double ticks = m->record.ticks > 0 ? m->record.ticks : 1;

	for (size_t i = 0; i < OBJECTIVE_PRICES; i++) {
		struct objective_price *p = &m->prices[i];
		*p = (struct objective_price){ .late_ppm = price_levels[i], .rule = ABSENT };
		double best = 0, share = 0;
		for (size_t r = 0; r < m->family.count; r++) {
			double late = choice_record_share(in, r), held = m->shadows[r].held;
			if (late * 1e6 > (double)price_levels[i] || (p->rule != ABSENT && held >= best))
				continue;
			p->rule = (int64_t)r;
			best = held;
			share = late;
		}
		if (p->rule == ABSENT)
			continue;
		p->gpu_milli = exact_round(best / ticks * gpus * 1000);
		p->dollars_per_hour = exact_round(best / ticks * replica_price);
		p->share_ppm = exact_round(share * 1e6);
	}
}

/* What tiers saved: the cheapest rule that meets the target with them against the cheapest without. */
static int64_t tier_saving(const struct choice_input *in)
{
	struct choice_input without = *in;

	if (in->family->tiered_from == in->family->count || in->record->ticks <= 0)
		return ABSENT;
	without.without_tiers = true;
	without.present = ABSENT;
	double hot = choice_cost(in, (size_t)choose_rule(&without).rule), now = choice_cost(in, (size_t)in->present);
	return hot > 0 ? exact_round((1 - now / hot) * 1000) : ABSENT;
}

static bool is_due(const struct pool_memory *m, millis now)
{
	if (m->choice.rule == ABSENT)
		return true;
	millis every = now - m->started_at < AT_FIRST ? REVIEW_AT_FIRST : REVIEW_EVERY;
	return now - m->choice.reviewed_at >= every;
}

void review_rule(struct pool_memory *m, const struct snapshot *s, size_t pool, const struct learned *l)
{
	struct rule_memory *c = &m->choice;

	if (!is_due(m, s->now))
		return;
	struct choice_input in = review_input(m, s, pool, l);
	struct choice chosen = choose_rule(&in);
	if (c->fixed != ABSENT && (size_t)c->fixed < m->family.count)
		chosen.rule = c->fixed;
	if (chosen.rule != c->rule)
		c->since = s->now;
	c->rule = chosen.rule;
	c->share = choice_share(&in, (size_t)chosen.rule);
	c->target = chosen.target;
	c->sunk = choice_sunk_share(&in);
	c->cheaper = chosen.cheaper;
	c->dearer = chosen.dearer;
	c->reviewed_at = s->now;
	in.present = c->rule;
	c->tier_saving = tier_saving(&in);
	price_objectives(m, &in, l->replica_price, (double)s->fleet->pools[pool].gpus_per_replica);
}

enum self_test review_self_test(const struct pool_memory *m, double late_allowed)
{
	const struct rule_memory *c = &m->choice;
	double started = c->day_started, noise = .5 * late_allowed * started;

	if (m->record.hours < 2 || started < 1000 || c->day_ticks < 1)
		return SELF_TEST_LEARNING;
	if (c->day_late > 2 * c->day_shadow_late + noise)
		return SELF_TEST_LATER;
	if (c->day_shadow_late > 3 * c->day_late + 2 * noise)
		return SELF_TEST_EARLIER;
	if (c->day_held > 1.15 * c->day_shadow_held + c->day_ticks)
		return SELF_TEST_DEARER;
	return SELF_TEST_AGREES;
}
