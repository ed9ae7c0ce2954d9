#include "controller/policy/learn.h"

#include "base/exact.h"
#include "controller/policy/review.h"

static const double COLD_CHARGE = 4 * 60, FAST_CHARGE = 60; /* replica-seconds a start costs beyond its time */
static const millis LENT_SERVES = 5 * MINUTE;
static const double RECORD_HALF_LIFE_HOURS = 28 * 24;
static const double DRAIN_SERVICE_TIMES = 3; /* until the last sequence of a drained replica is done */

static double price_of(const struct fleet_spec *fleet, const struct pool_spec *spec, const struct pool_snapshot *s)
{
	double sum = 0, replicas = 0;

	for (size_t i = 0; i < spec->group_count; i++) {
		const struct group_spec *g = &fleet->groups[spec->groups[i]];
		double each = (double)g->price_per_hour * (double)spec->gpus_per_replica / (double)g->gpus_per_node;
		double n = s->groups ? (double)s->groups[i].ready : 0;
		if (i == 0)
			n += .001;
		sum += n * each;
		replicas += n;
	}
	return replicas > 0 ? sum / replicas : 0;
}

static const struct group_spec *standby_group(const struct fleet_spec *fleet, const struct pool_spec *spec)
{
	for (size_t i = 0; i < spec->group_count; i++)
		if (fleet->groups[spec->groups[i]].standby_max_nodes > 0)
			return &fleet->groups[spec->groups[i]];
	return NULL;
}

static int64_t standby_limit(const struct fleet_spec *fleet, const struct pool_spec *spec)
{
	int64_t n = 0;

	for (size_t i = 0; i < spec->group_count; i++) {
		const struct group_spec *g = &fleet->groups[spec->groups[i]];
		n += g->standby_max_nodes * replicas_per_node(g, spec);
	}
	return n;
}

static int64_t replica_limit(const struct fleet_spec *fleet, const struct pool_spec *spec)
{
	int64_t n = 0;

	for (size_t i = 0; i < spec->group_count; i++) {
		const struct group_spec *g = &fleet->groups[spec->groups[i]];
		n += g->max_nodes * replicas_per_node(g, spec);
	}
	return n;
}

/* To zero only where waiting for a whole start is accepted. */
static bool may_be_zero(const struct pool_spec *spec, double fastest)
{
	return spec->headroom_min == 0 &&
	       ((double)spec->objective_wait / 1000 >= fastest || spec->class == CLASS_BATCH ||
		spec->class == CLASS_EXPERIMENT || spec->class == CLASS_TRAINING);
}

static void believe_lead_times(struct pool_memory *m, const struct snapshot *s, size_t pool, struct learned *l)
{
	lead_observe(&m->lead, &s->pools[pool], s->interval);
	struct tier_leads t = lead_tiers(&m->lead, s->fleet, &s->fleet->pools[pool]);
	l->cold = t.cold;
	l->wake = t.wake;
	l->reclaim = t.reclaim;
	l->place = t.place;
	m->times = t.times;
}

static void begin(struct pool_memory *m, const struct snapshot *s, const struct learned *l)
{
	double ticks = lead_overdue(l->cold) * 1.3 / ((double)s->interval / 1000);

	m->cold_step = 1 + (int64_t)(ticks / (COLD_RING - 2));
	double fast =
		lead_overdue(l->wake) > lead_overdue(l->reclaim) ? lead_overdue(l->wake) : lead_overdue(l->reclaim);
	m->fast_step = 1 + (int64_t)(fast * 1.3 / ((double)s->interval / 1000) / (FAST_RING - 2));
	m->started_at = m->hour_at = s->now;
	m->demand.fresh_at = s->now;
}

/* While the real fleet fills up nothing is known of demand; then every shadow starts where its rule would be. */
static void start_shadows(struct pool_memory *m)
{
	for (size_t i = 0; i < m->family.count; i++)
		shadow_start(&m->shadows[i], 1 + (int64_t)(m->demand.level * m->family.rules[i].factor + .24));
	m->shadows_run = true;
}

static struct demand_view view_demand(const struct pool_memory *m, const struct snapshot *s, size_t pool,
				      const struct learned *l)
{
	const struct pool_spec *spec = &s->fleet->pools[pool];
	struct demand_view v = { .level = m->demand.level, .service = l->reading.service, .times = m->times };
	double fastest = l->reclaim.p50 > 0 ? l->reclaim.p50 : l->wake.p50 > 0 ? l->wake.p50 : l->cold.p50;
	double tick = (double)s->interval / 1000;

	for (size_t i = 0; i < m->family.hold_count; i++)
		v.peak[i] = demand_peak(&m->demand, 1 + (int64_t)(m->family.hold[i] / tick));
	v.stock_peak = v.peak[m->family.hold_count - 1];
	v.stock_max = standby_limit(s->fleet, spec);
	v.replicas_max = replica_limit(s->fleet, spec);
	v.may_be_zero = may_be_zero(spec, fastest);
	v.break_even = l->standby_price > 0 ? l->cold.p50 / l->standby_price : 1e9;
	return v;
}

static int32_t steps_of(double seconds, double step, int32_t most)
{
	double n = seconds / step + .5;

	return n < most ? (int32_t)n : most;
}

static void deal_lead_times(struct pool_memory *m, const struct learned *l, double tick)
{
	/* Bit-reversed, so that any few starts in a row are spread over the whole distribution. */
	static const int order[DEALS] = { 0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15 };
	double step = tick * (double)m->cold_step, fast = tick * (double)m->fast_step;

	if (m->ticks > 0 && m->deals.samples == m->lead.samples)
		return;
	m->deals.samples = m->lead.samples;
	for (int i = 0; i < DEALS; i++) {
		m->deals.cold[i] = steps_of(lead_quantile(l->cold, order[i], DEALS), step, COLD_RING - 2);
		m->deals.wake[i] = steps_of(lead_quantile(l->wake, order[i], DEALS), fast, FAST_RING - 2);
		m->deals.reclaim[i] = steps_of(lead_quantile(l->reclaim, order[i], DEALS), fast, FAST_RING - 2);
	}
}

static void find_block(const struct pool_memory *m, const struct demand_view *v, double tick, struct shadow_tick *t)
{
	int64_t length = (int64_t)(v->break_even / STOCK_BLOCKS / tick);

	length = length > 0 ? length : 1;
	t->block = (int32_t)(m->ticks / length % STOCK_BLOCKS);
	t->block_is_new = m->ticks % length == 0;
}

static struct shadow_tick describe_tick(const struct pool_memory *m, const struct snapshot *s, size_t pool,
					const struct learned *l)
{
	const struct pool_input *in = &s->pools[pool].input;
	double tick = (double)s->interval / 1000;
	struct shadow_tick t = {
		.demand = l->reading.demand,
		.readings = l->reading.readings,
		.seconds = l->reading.seconds,
		.arrived = l->reading.arrived,
		.objective_wait = (double)s->fleet->pools[pool].objective_wait / 1000,
		.standby_price = l->standby_price,
		.deals = &m->deals,
		.tick = m->ticks,
		.cold_step = m->cold_step,
		.fast_step = m->fast_step,
		.drain_ticks = DRAIN_SERVICE_TIMES * l->reading.service / tick,
		.wake_refused = m->lead.asked_wakes > 1 ? m->lead.refused_wakes / m->lead.asked_wakes : 0,
		.lendable = (int32_t)(in->lent + m->reclaimed),
		.bridge_ticks = (int32_t)(LENT_SERVES / s->interval),
		.cold_charge = COLD_CHARGE / tick,
		.fast_charge = FAST_CHARGE / tick,
		.counts = !l->is_filling && l->reading.signals <= SIGNALS_PARTIAL,
		.may_release = !l->is_filling,
	};

	for (size_t i = 0; i < t.readings; i++)
		t.most_demand = t.demand[i] > t.most_demand ? t.demand[i] : t.most_demand;
	find_block(m, &l->view, tick, &t);
	return t;
}

static void end_hour(struct pool_memory *m)
{
	double keep = exact_exp(-.6931471805599453 / RECORD_HALF_LIFE_HOURS);

	for (size_t i = 0; i < m->family.count; i++)
		shadow_end_hour(&m->shadows[i], keep);
	m->record.arrived *= keep;
	m->record.ticks *= keep;
	m->record.hours *= keep;
	m->record.level_ticks *= keep;
}

static void count_record(struct pool_memory *m, const struct snapshot *s, const struct shadow_tick *t)
{
	if (!t->counts)
		return;
	m->record.arrived += t->arrived;
	m->record.ticks++;
	m->record.hours += (double)s->interval / (double)HOUR;
	m->record.level_ticks += m->demand.level;
}

/* Lent nodes that serve, and the starts that will replace them, as the events tell. */
static void follow_lending(struct pool_memory *m, const struct pool_snapshot *s)
{
	for (size_t i = 0; i < s->event_count; i++) {
		const struct event_input *e = &s->events[i];
		if (e->what != EVENT_SERVING)
			continue;
		if (e->kind == START_RECLAIM)
			m->reclaimed += e->count;
		else if (m->replacing > 0)
			m->replacing -= e->count < m->replacing ? e->count : m->replacing;
	}
	if (m->reclaimed > s->input.ready)
		m->reclaimed = s->input.ready;
}

static void run_shadows(struct pool_memory *m, const struct snapshot *s, size_t pool, const struct learned *l)
{
	struct shadow_tick t = describe_tick(m, s, pool, l);
	const struct rule_memory *c = &m->choice;
	double late = 0, held = 0;

	if (c->rule != ABSENT) {
		late = m->shadows[c->rule].late;
		held = m->shadows[c->rule].held;
	}
	for (size_t i = 0; i < m->family.count; i++)
		shadow_step(&m->shadows[i], &m->family.rules[i], &l->view, &t);
	count_record(m, s, &t);
	if (c->rule != ABSENT && t.counts)
		review_expected(m, m->shadows[c->rule].late - late, m->shadows[c->rule].held - held);
	if (s->now - m->hour_at >= HOUR) {
		end_hour(m);
		m->hour_at = s->now;
	}
}

struct learned pool_learn(struct pool_memory *m, const struct snapshot *s, size_t pool)
{
	const struct pool_snapshot *seen = &s->pools[pool];
	const struct pool_spec *spec = &s->fleet->pools[pool];
	const struct group_spec *standby = standby_group(s->fleet, spec);
	struct learned l = { .standby_price = standby ? (double)standby->standby_price_ppm / 1e6 : 0,
			     .replica_price = price_of(s->fleet, spec, seen) };

	believe_lead_times(m, s, pool, &l);
	if (m->ticks == 0)
		begin(m, s, &l);
	deal_lead_times(m, &l, (double)s->interval / 1000);
	follow_lending(m, seen);
	capacity_observe(&m->capacity, seen, s->interval);
	l.capacity = capacity_believed(&m->capacity, spec);
	l.reading = demand_observe(&m->demand, s, pool, l.capacity.slots,
				   (millis)(m->family.hold[m->family.hold_count - 1] * 1000));
	l.view = view_demand(m, s, pool, &l);
	l.is_filling = s->now - m->started_at < (millis)(l.cold.p50 * 1000);
	review_seen(m, s, pool, &l.reading, l.is_filling);
	if (!l.is_filling && !m->shadows_run)
		start_shadows(m);
	if (m->shadows_run)
		run_shadows(m, s, pool, &l);
	review_rule(m, s, pool, &l);
	m->ticks++;
	return l;
}
