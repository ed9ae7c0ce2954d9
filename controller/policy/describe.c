#include "controller/policy/describe.h"

#include "base/exact.h"
#include "controller/policy/review.h"

static int64_t milli(double x)
{
	return exact_round(x * 1000);
}

static int64_t ppm(double x)
{
	return exact_round(x * 1e6);
}

/* A share of what was late: a shadow, and caution, may count more late requests than there were. */
static int64_t share_ppm(double x)
{
	return ppm(x > 1 ? 1 : x);
}

static void describe_seen(const struct snapshot *s, size_t pool, const struct learned *l, const struct wish *w,
			  struct pool_decision *d)
{
	const struct pool_snapshot *seen = &s->pools[pool];

	d->signals = (int64_t)l->reading.signals;
	d->running_milli = milli(l->reading.in_service);
	d->waiting_milli = milli(l->reading.waiting);
	d->waiting_now = seen->scrape_count ? seen->scrapes[seen->scrape_count - 1].waiting : ABSENT;
	d->queue_waiting = seen->input.queue_waiting;
	d->arrived = exact_round(l->reading.arrived);
	d->started = exact_round(l->reading.started);
	d->late = exact_round(l->reading.late);
	if (l->reading.signals >= SIGNALS_STALE)
		d->running_milli = d->waiting_milli = d->waiting_now = d->arrived = d->started = d->late = ABSENT;
	d->ready = seen->input.ready;
	d->draining = seen->input.draining;
	d->on_the_way = w->have - w->fleet.ready + w->fleet.replace + w->overdue;
	d->overdue = w->overdue;
	d->standby = w->fleet.stock;
	d->refilling = w->fleet.refill;
	d->lent = w->fleet.lent;
}

static void describe_expected(const struct pool_memory *m, const struct learned *l, const struct wish *w,
			      struct pool_decision *d)
{
	bool lends = w->fleet.lent > 0 && l->reclaim.p50 > 0;
	struct lead fast = lends ? l->reclaim : l->wake;
	const struct rule *r = &m->family.rules[m->choice.rule];

	d->slots_milli = milli(l->capacity.slots);
	d->slots_source = (int64_t)l->capacity.source;
	d->service_ms = milli(l->reading.service);
	d->demand_milli = milli(m->demand.mean);
	d->level_milli = milli(m->demand.level);
	d->peak_milli = milli(l->view.peak[r->hold]);
	d->backlog_ms = milli(w->fleet.waiting * l->reading.service);
	d->lead_cold_p50 = milli(l->cold.p50);
	d->lead_cold_p95 = milli(l->cold.p95);
	d->lead_fast_p50 = milli(fast.p50);
	d->lead_fast_p95 = milli(fast.p95);
	d->lead_samples = m->lead.samples;
	d->next_serving_ms = w->next_serving_ms;
}

static int64_t held_gpus(const struct pool_memory *m, int64_t rule, double gpus)
{
	if (rule == ABSENT || m->record.ticks <= 0)
		return ABSENT;
	return milli(m->shadows[rule].held / m->record.ticks * gpus);
}

/* Three bursts of the usual size are the least that a late share can be told from: one burst or none is luck. A
 * record without any has at best escaped one of a lead time's length. */
static int64_t supported(const struct pool_memory *m)
{
	const struct shadow *s = &m->shadows[m->choice.rule];
	double hours = s->bad_hours + (s->late_hour > 0), seconds = m->record.hours * 3600;

	if (m->record.arrived <= 0 || seconds <= 0)
		return ABSENT;
	double burst = hours > 0 ? s->late / hours / m->record.arrived : m->times.cold_p95 / seconds;
	return ppm(3 * burst < 1 ? 3 * burst : 1);
}

static void describe_rule(const struct pool_memory *m, const struct choice_input *in, double gpus,
			  struct pool_decision *d)
{
	const struct rule_memory *c = &m->choice;
	const struct rule *r = &m->family.rules[c->rule];
	const struct shadow *shadow = &m->shadows[c->rule];

	d->rule = c->rule;
	d->margin_permille = milli(r->margin);
	d->hold_ms = milli(m->family.hold[r->hold]);
	d->chase_permille = milli(r->chase);
	d->stock_permille = r->is_tiered ? milli(r->stock) : ABSENT;
	d->rule_since = c->since;
	d->rule_share_ppm = share_ppm(c->share);
	d->rule_late_ppm = m->record.arrived > 0 ? share_ppm(shadow->late / m->record.arrived) : ABSENT;
	d->rule_gpu_milli = held_gpus(m, c->rule, gpus);
	d->target_ppm = ppm(c->target);
	d->sunk_ppm = ppm(c->sunk);
	d->objective_ppm = ppm(in->late_allowed);
	if (in->violation_cost > 0) /* the price of late requests rules instead */
		d->target_ppm = d->sunk_ppm = d->objective_ppm = ABSENT;
	d->own_share_ppm = c->own_started > 0 ? share_ppm(c->own_late / c->own_started) : ABSENT;
	d->cheaper_rule = c->cheaper;
	d->cheaper_share_ppm = c->cheaper == ABSENT ? ABSENT : share_ppm(choice_share(in, (size_t)c->cheaper));
	d->cheaper_gpu_milli = held_gpus(m, c->cheaper, gpus);
	d->dearer_rule = c->dearer;
	d->dearer_gpu_milli = held_gpus(m, c->dearer, gpus);
	d->record_hours_milli = milli(m->record.hours);
	d->record_bursts = exact_round(shadow->bad_hours + (shadow->late_hour > 0));
	d->supported_ppm = supported(m);
}

/* Deadlines, not the shadows, size a pool that has them. */
static void describe_self_test(const struct pool_memory *m, double late_allowed, double gpus, bool has_deadlines,
			       struct pool_decision *d)
{
	const struct rule_memory *c = &m->choice;

	d->self_test = (int64_t)(has_deadlines ? SELF_TEST_LEARNING : review_self_test(m, late_allowed));
	d->shadow_share_ppm = c->day_started > 0 ? share_ppm(c->day_shadow_late / c->day_started) : ABSENT;
	d->real_share_ppm = c->day_started > 0 ? share_ppm(c->day_late / c->day_started) : ABSENT;
	d->shadow_gpu_milli = c->day_ticks > 0 ? milli(c->day_shadow_held / c->day_ticks * gpus) : ABSENT;
	d->real_gpu_milli = c->day_ticks > 0 ? milli(c->day_held / c->day_ticks * gpus) : ABSENT;
}

void describe_decision(const struct snapshot *s, const struct memory *m, size_t pool, const struct learned *l,
		       const struct wish *w, struct pool_decision *d)
{
	const struct pool_memory *p = &m->pools[pool];
	const struct pool_spec *spec = &s->fleet->pools[pool];
	struct choice_input in = review_input(p, s, pool, l);
	double gpus = (double)spec->gpus_per_replica;

	describe_seen(s, pool, l, w, d);
	describe_expected(p, l, w, d);
	describe_rule(p, &in, gpus, d);
	describe_self_test(p, in.late_allowed, gpus, s->pools[pool].deadline_count > 0, d);
	d->tier_saving_permille = p->choice.tier_saving;
	d->low_milli = milli(w->moves.low);
	d->high_milli = milli(w->moves.high);
	d->chase_milli = milli(w->moves.chase);
	d->deadline_need_milli = w->deadline_need < 0 ? ABSENT : milli(w->deadline_need);
	d->stock_low = w->moves.stock_low;
	d->stock_excess = w->stock_excess;
	d->floor = w->floor;
	d->held_by = (int64_t)w->held_by;
	d->budget_per_hour = spec->budget_per_hour;
}
