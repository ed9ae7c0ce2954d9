#include "controller/policy/rule_select.h"

#include "base/exact.h"
#include "controller/policy/rule_criterion.h"
#include "controller/policy/swap.h"

static void review_seen(struct pool_policy_state *m, const struct snapshot *s, size_t pool,
			const struct demand_reading *r, bool is_filling);
static void review_expected(struct pool_policy_state *m, double late, double held);
static void review_rule(struct pool_policy_state *m, const struct snapshot *s, size_t pool, const struct estimates *l);

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

static void believe_lead_times(struct pool_policy_state *m, const struct snapshot *s, size_t pool, struct estimates *l)
{
	lead_observe(&m->lead, &s->pools[pool], s->interval);
	struct tier_leads t = lead_tiers(&m->lead, s->fleet, &s->fleet->pools[pool], lead_first_share(&s->pools[pool]));
	l->cold = t.cold;
	l->wake = t.wake;
	l->reclaim = t.reclaim;
	l->place = t.place;
	l->rouse = t.rouse;
	m->times = t.times;
}

static void begin(struct pool_policy_state *m, const struct snapshot *s, const struct estimates *l)
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
static void start_shadows(struct pool_policy_state *m)
{
	for (size_t i = 0; i < m->family.count; i++) {
		shadow_release(&m->shadows[i]);
		shadow_start(&m->shadows[i],
			     1 + (int64_t)(m->demand.level * m->family.rules[i].factor + m->family.rules[i].spare));
	}
	memset(m->tiers, 0, tiered_count(&m->family) * sizeof *m->tiers);
	m->shadows_run = true;
}

static int64_t hold_ticks(const struct snapshot *s, double seconds)
{
	return 1 + (int64_t)(seconds / ((double)s->interval / 1000));
}

static struct demand_view view_demand(const struct pool_policy_state *m, const struct snapshot *s, size_t pool,
				      const struct estimates *l)
{
	const struct pool_spec *spec = &s->fleet->pools[pool];
	struct demand_view v = { .level = m->demand.level, .service = l->reading.service, .times = m->times };
	double fastest = l->reclaim.p50 > 0 ? l->reclaim.p50 : l->wake.p50 > 0 ? l->wake.p50 : l->cold.p50;

	for (size_t i = 0; i < m->family.hold_count; i++)
		v.peak[i] = demand_peak(&m->demand, hold_ticks(s, m->family.hold[i]));
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

static void deal_lead_times(struct pool_policy_state *m, const struct estimates *l, double tick)
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

static void find_block(const struct pool_policy_state *m, const struct demand_view *v, double tick,
		       struct shadow_tick *t)
{
	int64_t length = (int64_t)(v->break_even / STOCK_BLOCKS / tick);

	length = length > 0 ? length : 1;
	t->block = (int32_t)(m->ticks / length % STOCK_BLOCKS);
	t->block_is_new = m->ticks % length == 0;
}

static struct shadow_tick describe_tick(const struct pool_policy_state *m, const struct snapshot *s, size_t pool,
					const struct estimates *l)
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
		.wake_charge =
			(FAST_CHARGE + swap_charge(s->fleet, &s->fleet->pools[pool], l->cold.p50, COLD_CHARGE)) / tick,
		.counts = !l->is_filling && l->reading.signals <= SIGNALS_PARTIAL,
		.may_release = !l->is_filling,
	};

	for (size_t i = 0; i < t.readings; i++)
		t.most_demand = t.demand[i] > t.most_demand ? t.demand[i] : t.most_demand;
	find_block(m, &l->view, tick, &t);
	return t;
}

static void end_hour(struct pool_policy_state *m)
{
	double keep = exact_exp(-.6931471805599453 / RECORD_HALF_LIFE_HOURS);

	for (size_t i = 0; i < m->family.count; i++)
		shadow_end_hour(&m->shadows[i], keep);
	m->record.arrived *= keep;
	m->record.ticks *= keep;
	m->record.hours *= keep;
	m->record.level_ticks *= keep;
}

static void count_record(struct pool_policy_state *m, const struct snapshot *s, const struct shadow_tick *t)
{
	if (!t->counts)
		return;
	m->record.arrived += t->arrived;
	m->record.ticks++;
	m->record.hours += (double)s->interval / (double)HOUR;
	m->record.level_ticks += m->demand.level;
}

/* Lent nodes that serve, and the starts that will replace them, as the events tell. */
static void follow_lending(struct pool_policy_state *m, const struct pool_snapshot *s)
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

static void run_shadows(struct pool_policy_state *m, const struct snapshot *s, size_t pool, const struct estimates *l)
{
	struct shadow_tick t = describe_tick(m, s, pool, l);
	const struct rule_memory *c = &m->choice;
	double late = 0, held = 0;

	if (c->rule != ABSENT) {
		late = m->shadows[c->rule].late;
		held = m->shadows[c->rule].held;
	}
	for (size_t i = 0; i < m->family.count; i++)
		shadow_step(&m->shadows[i], i < m->family.tiered_from ? NULL : &m->tiers[i - m->family.tiered_from],
			    &m->family.rules[i], &l->view, &t);
	count_record(m, s, &t);
	if (c->rule != ABSENT && t.counts)
		review_expected(m, m->shadows[c->rule].late - late, m->shadows[c->rule].held - held);
	if (s->now - m->hour_at >= HOUR) {
		end_hour(m);
		m->hour_at = s->now;
	}
}

struct estimates pool_learn(struct pool_policy_state *m, const struct snapshot *s, size_t pool)
{
	const struct pool_snapshot *seen = &s->pools[pool];
	const struct pool_spec *spec = &s->fleet->pools[pool];
	const struct group_spec *standby = standby_group(s->fleet, spec);
	struct estimates l = { .standby_price = standby ? (double)standby->standby_price_ppm / 1e6 : 0,
			       .replica_price = price_of(s->fleet, spec, seen) };

	believe_lead_times(m, s, pool, &l);
	if (m->ticks == 0)
		begin(m, s, &l);
	deal_lead_times(m, &l, (double)s->interval / 1000);
	follow_lending(m, seen);
	swap_follow(m, s, pool);
	capacity_observe(&m->capacity, seen, s->interval);
	l.capacity = capacity_believed(&m->capacity, spec);
	double longest = m->family.hold[m->family.hold_count - 1];
	policy_state_make_room(&m->demand, hold_ticks(s, longest));
	l.reading = demand_observe(&m->demand, s, pool, l.capacity.slots, (millis)(longest * 1000));
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

struct estimates pool_recall(const struct pool_policy_state *m, const struct snapshot *s, size_t pool)
{
	const struct pool_spec *spec = &s->fleet->pools[pool];
	const struct group_spec *standby = standby_group(s->fleet, spec);
	struct tier_leads t = lead_tiers(&m->lead, s->fleet, spec, lead_first_share(&s->pools[pool]));
	struct estimates l = { .reading = demand_recall(&m->demand, spec),
			       .view = { .level = m->demand.level },
			       .capacity = capacity_believed(&m->capacity, spec),
			       .cold = t.cold,
			       .wake = t.wake,
			       .reclaim = t.reclaim,
			       .place = t.place,
			       .standby_price = standby ? (double)standby->standby_price_ppm / 1e6 : 0,
			       .replica_price = price_of(s->fleet, spec, &s->pools[pool]) };

	for (size_t i = 0; i < m->family.hold_count; i++)
		l.view.peak[i] = m->demand.level;
	l.is_filling = s->now - m->started_at < (millis)(l.cold.p50 * 1000);
	return l;
}

static struct rule_standing standing_of(const struct pool_policy_state *m, const struct choice_input *in, size_t rule,
					int64_t gpus)
{
	const struct rule *r = &m->family.rules[rule];
	double share = choice_share(in, rule);

	return (struct rule_standing){
		.margin_permille = exact_round(r->margin * 1000),
		.hold_ms = exact_round(m->family.hold[r->hold] * 1000),
		.chase_permille = exact_round(r->chase * 1000),
		.stock_permille = r->is_tiered ? exact_round(r->stock * 1000) : ABSENT,
		.gpu_milli = m->record.ticks > 0
				     ? exact_round(m->shadows[rule].held / m->record.ticks * (double)gpus * 1000)
				     : ABSENT,
		.share_ppm = exact_round(share * 1e6),
		.meets = share <= m->choice.target,
	};
}

struct rule_standing *policy_standings(const struct policy_state *m, const struct fleet_spec *fleet, size_t pool,
				       struct arena *a, int64_t *target_ppm)
{
	const struct pool_policy_state *p = &m->pools[pool];
	const struct choice_input in = { .family = &p->family, .shadows = p->shadows, .record = &p->record };
	struct rule_standing *out = arena_array(a, struct rule_standing, p->family.count + 1);

	for (size_t i = 0; i < p->family.count; i++)
		out[i] = standing_of(p, &in, i, fleet->pools[pool].gpus_per_replica);
	*target_ppm = exact_round(p->choice.target * 1e6);
	return out;
}

static const millis REVIEW_EVERY = 15 * MINUTE, REVIEW_AT_FIRST = MINUTE, AT_FIRST = 4 * HOUR;
static const double OWN_HALF_LIFE = 3 * 24 * 3600.0, DAY_HALF_LIFE = 24 * 3600.0, LN2 = .6931471805599453;
static const double OWN_PRIOR_HOURS = 6;
static const double UNEXPECTED = 1.25; /* times what shadows saw late: they are that optimistic in bursts */
static const int64_t price_levels[OBJECTIVE_PRICES] = { 100000, 50000, 20000, 10000, 5000, 2000, 1000, 500 };

static double keep_of(double half_life, millis interval)
{
	return exact_exp(-LN2 * (double)interval / 1000 / half_life);
}

/* Adds what really came of this tick: late requests and replicas held. */
static void review_seen(struct pool_policy_state *m, const struct snapshot *s, size_t pool,
			const struct demand_reading *r, bool is_filling)
{
	struct rule_memory *c = &m->choice;
	const struct pool_snapshot *seen = &s->pools[pool];
	double own = keep_of(OWN_HALF_LIFE, s->interval), day = keep_of(DAY_HALF_LIFE, s->interval);
	double held = (double)(seen->input.ready + seen->input.draining);

	c->own_started *= own;
	c->own_late *= own;
	c->own_shadow_late *= own;
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

/* Adds what the shadow of the rule in force expected of it. */
static void review_expected(struct pool_policy_state *m, double late, double held)
{
	m->choice.own_shadow_late += late;
	m->choice.day_shadow_late += late;
	m->choice.day_shadow_held += held;
}

/* The real late share, drawn towards the objective by some hours of traffic exactly on it. What the rules in force
 * expected stands in their record already and is not held against them again. */
static double own_share(const struct pool_policy_state *m, double late_allowed)
{
	if (m->choice.own_late <= UNEXPECTED * m->choice.own_shadow_late)
		return late_allowed;
	double prior = m->record.hours > 0 ? OWN_PRIOR_HOURS * m->record.arrived / m->record.hours : 0;
	double started = m->choice.own_started + prior;

	return started > 0 ? (m->choice.own_late + prior * late_allowed) / started : late_allowed;
}

struct choice_input review_input(const struct pool_policy_state *m, const struct snapshot *s, size_t pool,
				 const struct estimates *l)
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
static void price_objectives(struct pool_policy_state *m, const struct choice_input *in, double replica_price,
			     double gpus)
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

static bool is_due(const struct pool_policy_state *m, millis now)
{
	if (m->choice.rule == ABSENT)
		return true;
	millis every = now - m->started_at < AT_FIRST ? REVIEW_AT_FIRST : REVIEW_EVERY;
	return now - m->choice.reviewed_at >= every;
}

/* Chooses again when it is time. */
static void review_rule(struct pool_policy_state *m, const struct snapshot *s, size_t pool, const struct estimates *l)
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

enum self_test review_self_test(const struct pool_policy_state *m, double late_allowed)
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

/* Fewer allowed late requests than this say nothing. */
static const double LEAST_LATE_ALLOWED = 10;

enum objective_state review_objective(const struct pool_policy_state *m, double late_allowed, double supported)
{
	const struct rule_memory *c = &m->choice;

	if (m->record.hours < 2 || c->own_started * late_allowed < LEAST_LATE_ALLOWED)
		return OBJECTIVE_BEYOND;
	if (c->own_late > late_allowed * c->own_started)
		return OBJECTIVE_MISSED;
	if (c->own_late > .8 * late_allowed * c->own_started || c->day_late > late_allowed * c->day_started)
		return OBJECTIVE_AT_RISK;
	return supported < 0 || supported > late_allowed ? OBJECTIVE_BEYOND : OBJECTIVE_MET;
}
