#include "controller/policy/decide.h"

#include "base/exact.h"
#include "controller/policy/rule_select.h"
#include "controller/policy/place.h"
#include "controller/policy/recommend.h"

#include <stdlib.h>
#include <string.h>

/* Writes what a decision saw, expected and wished into its record, in the units of pool_decision.def. */

static void describe_decision(const struct snapshot *s, const struct policy_state *m, size_t pool,
			      const struct estimates *l, const struct recommendation *w, struct pool_decision *d);

/* One pool on its way through a tick. */
struct pool_pass {
	struct estimates estimates;
	struct recommendation recommendation;
	struct placing placing;
	int64_t wished, covered; /* hot replicas: before any limit; had and given so far */
	double need;
};

static int64_t standby_price(const struct group_spec *g)
{
	return g->price_per_hour / 1000 * g->standby_price_ppm / 1000;
}

int64_t policy_billed(const struct fleet_spec *fleet, size_t pool, const struct group_input *groups)
{
	const struct pool_spec *spec = &fleet->pools[pool];
	int64_t cost = 0;

	for (size_t i = 0; i < spec->group_count; i++) {
		const struct group_spec *g = &fleet->groups[spec->groups[i]];
		const struct group_input *in = &groups[i];
		int64_t each = replicas_per_node(g, spec) > 0 ? replicas_per_node(g, spec) : 1;
		cost += in->billed_gpus_milli * (g->price_per_hour / (g->gpus_per_node > 0 ? g->gpus_per_node : 1)) /
			1000;
		cost += (in->standby + each - 1) / each * standby_price(g);
	}
	return cost;
}

static int64_t billed(const struct snapshot *s, size_t pool)
{
	return policy_billed(s->fleet, pool, s->pools[pool].groups);
}

/* What it is billed once the plan is carried out and what drains has gone. */
static int64_t billed_after(const struct snapshot *s, size_t pool, const struct pool_plan *plan)
{
	const struct pool_spec *spec = &s->fleet->pools[pool];
	int64_t cost = billed(s, pool);

	for (size_t i = 0; i < spec->group_count; i++) {
		const struct group_spec *g = &s->fleet->groups[spec->groups[i]];
		const struct group_decision *d = &plan->groups[i];
		int64_t each = replicas_per_node(g, spec) > 0 ? replicas_per_node(g, spec) : 1;
		int64_t on = (d->cold + each - 1) / each + (d->wake + each - 1) / each + d->refill / each -
			     d->cancel_cold / each - d->cancel_wake / each - (d->release + each - 1) / each -
			     d->release_asleep - d->move;
		int64_t stopped = (d->stop + each - 1) / each + d->cancel_wake / each - (d->wake + each - 1) / each -
				  d->delete_standby / each;
		cost += on * g->price_per_hour + stopped * standby_price(g) +
			(d->reclaim - d->cancel_reclaim) * g->price_per_hour / each;
	}
	return cost > 0 ? cost : 0;
}

/* Does the pool come before the other? Those that give nodes back first come last; then interactive work first. */
static bool comes_before(const struct pool_spec *a, const struct pool_spec *b)
{
	if (a->shrink_priority != b->shrink_priority)
		return a->shrink_priority < b->shrink_priority;
	return a->class != b->class ? a->class < b->class : a < b;
}

static int by_place(const void *left, const void *right)
{
	const struct pool_spec *a = *(const struct pool_spec *const *)left;
	const struct pool_spec *b = *(const struct pool_spec *const *)right;

	return comes_before(a, b) ? -1 : comes_before(b, a);
}

/* Those that share a budget stand together, the first of the fleet first. Pools without a name share with nobody. */
static int by_budget(const void *left, const void *right)
{
	const struct pool_spec *a = *(const struct pool_spec *const *)left;
	const struct pool_spec *b = *(const struct pool_spec *const *)right;
	int by_name = strcmp(a->budget_name, b->budget_name);

	if (by_name)
		return by_name;
	if (a->budget_per_hour != b->budget_per_hour)
		return a->budget_per_hour < b->budget_per_hour ? -1 : 1;
	return a < b ? -1 : a > b;
}

static bool shares_budget(const struct pool_spec *a, const struct pool_spec *b)
{
	return a->budget_name[0] && a->budget_per_hour == b->budget_per_hour && !strcmp(a->budget_name, b->budget_name);
}

static const struct pool_spec **sorted(const struct fleet_spec *fleet, int (*order)(const void *, const void *),
				       struct arena *a)
{
	const struct pool_spec **pools = arena_array(a, const struct pool_spec *, fleet->pool_count);

	for (size_t i = 0; i < fleet->pool_count; i++)
		pools[i] = &fleet->pools[i];
	if (fleet->pool_count)
		qsort(pools, fleet->pool_count, sizeof(const struct pool_spec *), order);
	return pools;
}

/* What one pool, or all that share a name, may spend. */
struct budget {
	int64_t left; /* micro-dollars an hour */
	/* Of those that have a replica the one that gives back first; NULL: none has. Never of class any: its pods
	 * would have to move. */
	const struct pool_spec *last;
};

/* One per pool; equal pointers where a budget is shared. */
static struct budget **open_budgets(const struct snapshot *s, struct arena *a)
{
	const struct pool_spec *pools = s->fleet->pools, **order = sorted(s->fleet, by_budget, a);
	struct budget **budgets = arena_array(a, struct budget *, s->fleet->pool_count);
	struct budget *b = NULL;

	for (size_t i = 0; i < s->fleet->pool_count; i++) {
		size_t pool = (size_t)(order[i] - pools);
		if (!i || !shares_budget(order[i - 1], order[i])) {
			b = arena_new(a, struct budget);
			b->left = order[i]->budget_per_hour;
		}
		b->left -= billed(s, pool);
		if (order[i]->class != CLASS_ANY && s->pools[pool].input.ready > 0 &&
		    (!b->last || comes_before(b->last, order[i])))
			b->last = order[i];
		budgets[pool] = b;
	}
	return budgets;
}

static int64_t *money_of(const struct snapshot *s, struct budget *const *budgets, size_t pool)
{
	return s->fleet->pools[pool].budget_per_hour > 0 ? &budgets[pool]->left : NULL;
}

/* Replicas that a pool must give back: of those that share an overdrawn budget the last one that has any. */
static int64_t over_budget(const struct snapshot *s, const struct pool_pass *p, const struct budget *b, size_t pool)
{
	const struct pool_spec *own = &s->fleet->pools[pool];

	if (own->budget_per_hour <= 0 || b->left >= 0 || p->estimates.replica_price <= 0)
		return 0;
	if (b->last && comes_before(own, b->last))
		return 0;
	return 1 + (int64_t)((double)-b->left / p->estimates.replica_price);
}

static bool wants_more(const struct pool_pass *p)
{
	return recommendation_wanted(&p->recommendation) > p->recommendation.fleet.ready;
}

/* Does a pool that this one lends to want more than it has, on a node group of this one? */
static bool borrower_waits(const struct snapshot *s, const struct group_users *users, const struct pool_pass *passes,
			   size_t pool)
{
	const struct pool_spec *own = &s->fleet->pools[pool];

	for (size_t i = 0; own->lend_to && i < own->group_count; i++) {
		const struct group_users *u = &users[own->groups[i]];
		for (size_t k = 0; k < u->count; k++) {
			size_t other = u->items[k].pool;
			if (other != pool && own->lend_to & (1u << s->fleet->pools[other].class) &&
			    wants_more(&passes[other]))
				return true;
		}
	}
	return false;
}

static struct group_room *see_rooms(const struct snapshot *s, struct arena *a)
{
	struct group_room *room = arena_array(a, struct group_room, s->fleet->group_count);

	for (size_t p = 0; p < s->fleet->pool_count; p++)
		for (size_t i = 0; i < s->fleet->pools[p].group_count; i++) {
			struct group_room *r = &room[s->fleet->pools[p].groups[i]];
			r->nodes = s->pools[p].groups[i].nodes;
			r->standby = s->pools[p].groups[i].standby_nodes;
		}
	return room;
}

static void follow_moves(struct pool_policy_state *m, const struct recommendation *w, const struct pool_plan *plan)
{
	for (size_t i = 0; i < plan->group_count; i++)
		m->reclaimed -= plan->groups[i].give_back < m->reclaimed ? plan->groups[i].give_back : m->reclaimed;
	m->replacing += w->moves.replace_wake + w->moves.replace_cold;
	if (m->replacing > w->fleet.replace + w->moves.replace_wake + w->moves.replace_cold)
		m->replacing = w->fleet.replace + w->moves.replace_wake + w->moves.replace_cold;
	m->swapping = w->fleet.swap + w->moves.swap;
	m->swapped -= w->moves.swapped;
}

static int64_t placed(const struct pool_plan *plan)
{
	int64_t n = 0;

	for (size_t i = 0; i < plan->group_count; i++) {
		const struct group_decision *d = &plan->groups[i];
		n += d->cold + d->wake + d->reclaim + d->place + d->adopt_refill - d->cancel_cold - d->cancel_place -
		     d->cancel_wake - d->cancel_reclaim - d->release;
	}
	return n;
}

/* What replaces others is wished and decided beside them until they go: it needs pods of its own. */
static void describe_size(const struct pool_pass *c, struct pool_plan *plan, int64_t replacements)
{
	const struct recommendation *w = &c->recommendation;
	int64_t beside = w->fleet.replace + w->fleet.swap;

	plan->decision.swapping = w->fleet.swap + w->moves.swap;
	plan->decision.wished = c->wished + beside + replacements + w->moves.swap;
	plan->decision.decided = w->have + beside + placed(plan);
}

/* What one tick shares between its pools. */
struct tick_state {
	struct pool_pass *passes;
	struct group_room *room;
	struct budget **budgets;
	const struct group_users *users;
	struct reservation *reservations; /* of all groups */
	struct snapshot room_for;	  /* as machines may be placed, with these ends in mind */
};

/* Once every pool knows its lead time. */
static void see_reservations(const struct snapshot *s, struct tick_state *t, struct arena *a)
{
	t->reservations = arena_array(a, struct reservation, s->fleet->group_count);
	for (size_t p = 0; p < s->fleet->pool_count; p++)
		for (size_t i = 0; i < s->fleet->pools[p].group_count; i++)
			reservation_add(&t->reservations[s->fleet->pools[p].groups[i]], &s->fleet->pools[p],
					s->pools[p].groups[i].ends_at,
					exact_round(t->passes[p].estimates.cold.p95 * 1000));
	t->room_for = *s;
	t->room_for.fleet = reservation_fleet(s, t->reservations, a);
}

static void answer_pool(const struct snapshot *s, const struct policy_state *m, struct group_memory *groups,
			struct tick_state *t, size_t pool, struct pool_plan *plan)
{
	struct pool_pass *c = &t->passes[pool];

	c->placing = (struct placing){
		&t->room_for, pool, groups, t->reservations, t->room, plan->groups, money_of(s, t->budgets, pool),
		false,	      { 0 }
	};
	c->wished = recommendation_wanted(&c->recommendation);
	place_begin(&c->placing, &c->recommendation);
	while (place_next(&c->placing, &c->recommendation) > 0)
		;
	place_end(&c->placing, &c->recommendation);
	describe_decision(s, m, pool, &c->estimates, &c->recommendation, &plan->decision);
	describe_size(c, plan, 0);
	plan->decision.dollars_per_hour = billed_after(s, pool, plan);
	for (size_t i = 0; i < OBJECTIVE_PRICES; i++)
		plan->prices[i] = m->pools[pool].prices[i];
	plan->price_count = OBJECTIVE_PRICES;
}

/* Replicas that are busy, or would be, with what is there now: without margin, hold or chase. */
static double need_of(const struct snapshot *s, const struct pool_pass *c)
{
	const struct recommendation *w = &c->recommendation;
	double wanted = (double)s->pools[c->placing.pool].input.wanted_pods;
	double need = w->deadline_need >= 0 ? w->deadline_need : c->estimates.view.level + w->fleet.waiting;

	return need > wanted ? need : wanted;
}

static void begin_pool(const struct snapshot *s, struct policy_state *m, struct tick_state *t, size_t pool,
		       struct pool_plan *plan)
{
	struct pool_pass *c = &t->passes[pool];
	int64_t *money = money_of(s, t->budgets, pool);

	plan->group_count = s->fleet->pools[pool].group_count;
	c->placing =
		(struct placing){ &t->room_for, pool,	      m->groups, t->reservations,
				  t->room,	plan->groups, money,	 borrower_waits(s, t->users, t->passes, pool),
				  { 0 } };
	c->wished = recommendation_wanted(&c->recommendation);
	limits_apply(&c->recommendation, &m->pools[pool], s, pool, &c->estimates,
		     over_budget(s, c, t->budgets[pool], pool));
	c->covered = c->recommendation.have;
	c->need = need_of(s, c);
	place_begin(&c->placing, &c->recommendation);
}

static void end_pool(const struct snapshot *s, struct policy_state *m, struct pool_pass *c, struct pool_plan *plan)
{
	size_t pool = c->placing.pool;
	int64_t replacements = place_end(&c->placing, &c->recommendation);

	follow_moves(&m->pools[pool], &c->recommendation, plan);
	describe_decision(s, m, pool, &c->estimates, &c->recommendation, &plan->decision);
	describe_size(c, plan, replacements);
	plan->decision.dollars_per_hour = billed_after(s, pool, plan);
	for (size_t i = 0; i < OBJECTIVE_PRICES; i++)
		plan->prices[i] = m->pools[pool].prices[i];
	plan->price_count = OBJECTIVE_PRICES;
}

/* Whoever has least of what it needs comes first; where nobody lacks but in margin, the stricter objective. */
static bool needs_more(const struct snapshot *s, const struct pool_pass *a, const struct pool_pass *b)
{
	double of_a = (double)a->covered, of_b = (double)b->covered;
	bool a_lacks = of_a < a->need, b_lacks = of_b < b->need;
	int64_t late_a = s->fleet->pools[a->placing.pool].objective_late_ppm;
	int64_t late_b = s->fleet->pools[b->placing.pool].objective_late_ppm;

	if (a_lacks != b_lacks)
		return a_lacks;
	if (!a_lacks && late_a != late_b)
		return late_a < late_b;
	if (of_a * b->need < of_b * a->need || of_a * b->need > of_b * a->need)
		return of_a * b->need < of_b * a->need;
	return late_a < late_b;
}

/* Pools of one rank share what there is node by node, so that what is short is short for all alike. */
static void share_room(const struct snapshot *s, struct pool_pass *passes, const size_t *rank, size_t count,
		       struct arena *a)
{
	size_t *asking = arena_array(a, size_t, count), left = 0;

	for (size_t i = 0; i < count; i++)
		if (placing_asks(&passes[rank[i]].placing.asks) > 0)
			asking[left++] = rank[i];
	while (left) {
		size_t next = 0;
		for (size_t i = 1; i < left; i++)
			if (needs_more(s, &passes[asking[i]], &passes[asking[next]]))
				next = i;
		struct pool_pass *c = &passes[asking[next]];
		int64_t given = place_next(&c->placing, &c->recommendation);
		c->covered += given;
		if (given <= 0)
			memmove(&asking[next], &asking[next + 1], (--left - next) * sizeof *asking);
	}
}

/* Indices of the pools in the order in which they are placed. */
static size_t *order_of(const struct fleet_spec *fleet, struct arena *a)
{
	const struct pool_spec **pools = sorted(fleet, by_place, a);
	size_t *order = arena_array(a, size_t, fleet->pool_count);

	for (size_t i = 0; i < fleet->pool_count; i++)
		order[i] = (size_t)(pools[i] - fleet->pools);
	return order;
}

/* The place in the order behind the last pool of equal rank. */
static size_t end_of_rank(const struct fleet_spec *fleet, const size_t *order, size_t from)
{
	const struct pool_spec *first = &fleet->pools[order[from]];
	size_t to = from + 1;

	while (to < fleet->pool_count && fleet->pools[order[to]].shrink_priority == first->shrink_priority &&
	       fleet->pools[order[to]].class == first->class)
		to++;
	return to;
}

/* The manifest may ask for standby where the cloud, as it turned out, has none: that group is one without. */
static const struct fleet_spec *fleet_as_is(const struct fleet_spec *fleet, const struct group_memory *memory,
					    struct arena *a)
{
	struct group_spec *groups = NULL;

	for (size_t i = 0; i < fleet->group_count; i++) {
		if (memory[i].wakes_blocked_until != NO_STANDBY)
			continue;
		if (!groups) {
			groups = arena_array(a, struct group_spec, fleet->group_count);
			memcpy(groups, fleet->groups, fleet->group_count * sizeof *groups);
		}
		groups[i].standby_max_nodes = 0;
	}
	if (!groups)
		return fleet;
	struct fleet_spec *as_is = arena_new(a, struct fleet_spec);
	*as_is = *fleet;
	as_is->groups = groups;
	return as_is;
}

static struct plan decide_all(const struct snapshot *s, struct policy_state *m, struct arena *a)
{
	size_t count = s->fleet->pool_count;
	struct plan plan = { arena_array(a, struct pool_plan, count), count };
	struct tick_state t = { .passes = arena_array(a, struct pool_pass, count),
				.room = see_rooms(s, a),
				.budgets = open_budgets(s, a),
				.users = fleet_users(s->fleet, a) };
	const size_t *order = order_of(s->fleet, a);

	for (size_t i = 0; i < count; i++) {
		t.passes[i].estimates = pool_learn(&m->pools[i], s, i);
		t.passes[i].recommendation = recommendation_make(&m->pools[i], s, i, &t.passes[i].estimates);
	}
	see_reservations(s, &t, a);
	for (size_t i = 0; i < count; i++)
		plan.pools[i].groups = arena_array(a, struct group_decision, s->fleet->pools[i].group_count);
	for (size_t from = 0, to; from < count; from = to) {
		to = end_of_rank(s->fleet, order, from);
		for (size_t i = from; i < to; i++)
			begin_pool(s, m, &t, order[i], &plan.pools[order[i]]);
		share_room(s, t.passes, &order[from], to - from, a);
		for (size_t i = from; i < to; i++)
			end_pool(s, m, &t.passes[order[i]], &plan.pools[order[i]]);
	}
	return plan;
}

/* Refusals since the tick are heeded, and learned by the next one. */
static struct plan answer_pods(const struct snapshot *s, const struct policy_state *m, struct arena *a)
{
	size_t count = s->fleet->pool_count;
	struct snapshot seen = *s;
	struct plan plan = { arena_array(a, struct pool_plan, count), count };
	struct group_memory *groups = arena_array(a, struct group_memory, m->group_count);

	memcpy(groups, m->groups, m->group_count * sizeof *groups);
	for (size_t i = 0; i < count; i++)
		back_off_observe(groups, s, i);
	seen.fleet = fleet_as_is(s->fleet, groups, a);
	struct tick_state t = { .passes = arena_array(a, struct pool_pass, count),
				.room = see_rooms(&seen, a),
				.budgets = open_budgets(&seen, a) };
	const size_t *order = order_of(seen.fleet, a);
	for (size_t i = 0; i < count; i++)
		t.passes[i].estimates = pool_recall(&m->pools[i], &seen, i);
	see_reservations(&seen, &t, a);
	for (size_t i = 0; i < count; i++) {
		struct pool_plan *p = &plan.pools[order[i]];
		struct pool_pass *pass = &t.passes[order[i]];
		pass->recommendation = recommendation_for_pods(&m->pools[order[i]], &seen, order[i], &pass->estimates);
		p->group_count = seen.fleet->pools[order[i]].group_count;
		p->groups = arena_array(a, struct group_decision, p->group_count);
		answer_pool(&seen, m, groups, &t, order[i], p);
	}
	return plan;
}

bool policy_lacks_standby(const struct policy_state *m, size_t group)
{
	return m->groups[group].wakes_blocked_until == NO_STANDBY;
}

bool policy_start_is_overdue(const struct pool_decision *d, enum start_kind kind, millis age)
{
	bool is_fast = kind == START_WAKE && d->lead_fast_p50 > 0;
	struct lead lead = { (double)(is_fast ? d->lead_fast_p50 : d->lead_cold_p50) / 1000,
			     (double)(is_fast ? d->lead_fast_p95 : d->lead_cold_p95) / 1000 };

	return lead_is_overdue(lead, (double)age / 1000);
}

struct plan policy_decide(const struct snapshot *s, struct policy_state *m, struct arena *a)
{
	struct snapshot seen = *s;

	if (s->interval == 0)
		return answer_pods(s, m, a);
	for (size_t i = 0; i < s->fleet->pool_count; i++)
		back_off_observe(m->groups, s, i);
	seen.fleet = fleet_as_is(s->fleet, m->groups, a);
	return decide_all(&seen, m, a);
}

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

/* In the signals of the tick: of the readings that were due those that came and agree with themselves. */
static int64_t confidence_ppm(const struct pool_input *in)
{
	int64_t agree = in->scrapes_fresh - in->scrapes_disputed;

	return in->scrapes_expected > 0 ? share_ppm((double)agree / (double)in->scrapes_expected) : ABSENT;
}

static void describe_seen(const struct snapshot *s, size_t pool, const struct estimates *l,
			  const struct recommendation *w, struct pool_decision *d)
{
	const struct pool_snapshot *seen = &s->pools[pool];

	d->signals = (int64_t)l->reading.signals;
	d->disputed = seen->input.scrapes_disputed;
	d->confidence_ppm = confidence_ppm(&seen->input);
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
	d->asleep = seen->input.asleep;
	d->falling_asleep = seen->input.falling_asleep;
	d->asleep_discarded = seen->input.asleep_discarded;
	d->waking = w->fleet.rouse;
	d->draining = seen->input.draining;
	d->on_the_way = w->have - w->fleet.ready + w->fleet.replace + w->fleet.swap + w->overdue;
	d->overdue = w->overdue;
	d->standby = w->fleet.stock;
	d->refilling = w->fleet.refill;
	d->lent = w->fleet.lent;
}

/* Pods may ask before the pool's first tick, which chooses one. */
static const struct rule *rule_in_force(const struct pool_policy_state *m)
{
	static const struct rule none;

	return m->choice.rule == ABSENT ? &none : &m->family.rules[m->choice.rule];
}

static const struct shadow *shadow_in_force(const struct pool_policy_state *m)
{
	static const struct shadow none;

	return m->choice.rule == ABSENT ? &none : &m->shadows[m->choice.rule];
}

static void describe_expected(const struct pool_policy_state *m, const struct estimates *l,
			      const struct recommendation *w, struct pool_decision *d)
{
	bool lends = w->fleet.lent > 0 && l->reclaim.p50 > 0;
	struct lead fast = lends ? l->reclaim : l->wake;
	const struct rule *r = rule_in_force(m);

	d->slots_milli = milli(l->capacity.slots);
	d->slots_source = (int64_t)l->capacity.source;
	d->service_ms = milli(l->reading.service);
	d->demand_milli = milli(m->demand.mean);
	d->level_milli = milli(m->demand.level);
	d->peak_milli = milli(l->view.peak[r->hold]);
	d->backlog_ms = milli(w->fleet.waiting * l->reading.service);
	d->lead_fast_p50 = milli(fast.p50);
	d->lead_fast_p95 = milli(fast.p95);
}

static int64_t held_gpus(const struct pool_policy_state *m, int64_t rule, double gpus)
{
	if (rule == ABSENT || m->record.ticks <= 0)
		return ABSENT;
	return milli(m->shadows[rule].held / m->record.ticks * gpus);
}

/* Three bursts of the usual size are the least that a late share can be told from: one burst or none is luck. A
 * record without any has at best escaped one of a lead time's length. */
static int64_t supported(const struct pool_policy_state *m)
{
	const struct shadow *s = shadow_in_force(m);
	double hours = s->bad_hours + (s->late_hour > 0), seconds = m->record.hours * 3600;

	if (m->record.arrived <= 0 || seconds <= 0)
		return ABSENT;
	double burst = hours > 0 ? s->late / hours / m->record.arrived : m->times.cold_p95 / seconds;
	return ppm(3 * burst < 1 ? 3 * burst : 1);
}

static void describe_rule(const struct pool_policy_state *m, const struct choice_input *in, double gpus,
			  struct pool_decision *d)
{
	const struct rule_memory *c = &m->choice;
	const struct rule *r = rule_in_force(m);
	const struct shadow *shadow = shadow_in_force(m);

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
static void describe_self_test(const struct pool_policy_state *m, double late_allowed, double gpus, bool has_deadlines,
			       struct pool_decision *d)
{
	const struct rule_memory *c = &m->choice;

	d->objective_state = (int64_t)OBJECTIVE_NONE;
	if (!has_deadlines && d->objective_ppm != ABSENT)
		d->objective_state = (int64_t)review_objective(m, late_allowed, (double)d->supported_ppm / 1e6);
	d->self_test = (int64_t)(has_deadlines ? SELF_TEST_LEARNING : review_self_test(m, late_allowed));
	d->shadow_share_ppm = c->day_started > 0 ? share_ppm(c->day_shadow_late / c->day_started) : ABSENT;
	d->real_share_ppm = c->day_started > 0 ? share_ppm(c->day_late / c->day_started) : ABSENT;
	d->shadow_gpu_milli = c->day_ticks > 0 ? milli(c->day_shadow_held / c->day_ticks * gpus) : ABSENT;
	d->real_gpu_milli = c->day_ticks > 0 ? milli(c->day_held / c->day_ticks * gpus) : ABSENT;
}

static void describe_decision(const struct snapshot *s, const struct policy_state *m, size_t pool,
			      const struct estimates *l, const struct recommendation *w, struct pool_decision *d)
{
	const struct pool_policy_state *p = &m->pools[pool];
	const struct pool_spec *spec = &s->fleet->pools[pool];
	struct choice_input in = review_input(p, s, pool, l);
	double gpus = (double)spec->gpus_per_replica;

	describe_seen(s, pool, l, w, d);
	d->held_by = (int64_t)w->held_by;
	d->next_serving_ms = w->next_serving_ms;
	d->lead_cold_p50 = milli(l->cold.p50);
	d->lead_cold_p95 = milli(l->cold.p95);
	d->lead_samples = p->lead.samples;
	d->budget_per_hour = spec->budget_per_hour;
	if (spec->class == CLASS_ANY) { /* nothing is promised, and no rule decides */
		d->rule = d->cheaper_rule = d->dearer_rule = d->objective_ppm = d->own_share_ppm = ABSENT;
		d->target_ppm = d->sunk_ppm = d->deadline_need_milli = d->tier_saving_permille = ABSENT;
		return;
	}
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
	d->unwished = w->unwished;
	d->wish_cut_by = (int64_t)w->wish_cut_by;
}
