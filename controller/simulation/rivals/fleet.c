#include "controller/simulation/rivals/fleet.h"

static const millis BACKOFF_FIRST = 5 * MINUTE, BACKOFF_MOST = 30 * MINUTE, BACKOFF_RESET = 3 * HOUR;
/* Everyone's fleet fills up first: nobody judges a pool whose first requests have not finished yet. */
static const millis SETTLE = 5 * MINUTE;

/* One decision while it is made. */
struct draft {
	const struct fleet_order *order;
	const struct pool_spec *spec;
	const struct pool_snapshot *pool;
	struct fleet_group *memory;
	struct group_decision *groups;
	int64_t *starting, *refilling; /* per group, as the snapshot shows them */
	enum limit held_by;
};

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t not_below_zero(int64_t n)
{
	return n > 0 ? n : 0;
}

static const struct group_spec *group_of(const struct draft *d, size_t g)
{
	return &d->order->fleet->groups[d->spec->groups[g]];
}

static int64_t per_node(const struct draft *d, size_t g)
{
	return replicas_per_node(group_of(d, g), d->spec);
}

int64_t fleet_starting(const struct pool_snapshot *p)
{
	int64_t starting = 0;

	for (size_t i = 0; i < p->start_count; i++)
		if (p->starts[i].kind != START_REFILL)
			starting += p->starts[i].count;
	return starting;
}

int64_t fleet_most(const struct fleet_spec *fleet, const struct pool_spec *pool)
{
	int64_t most = 0;

	for (size_t g = 0; g < pool->group_count; g++) {
		const struct group_spec *group = &fleet->groups[pool->groups[g]];

		most += group->max_nodes * replicas_per_node(group, pool);
	}
	return most;
}

static void note_refusal(struct fleet_group *m, millis now, int64_t kind, int64_t count)
{
	if (kind == START_WAKE) {
		m->refused_wakes += count;
		return;
	}
	if (m->refusals && now - m->refused_at > BACKOFF_RESET)
		m->refusals = 0;
	m->refused_at = now;
	if (m->blocked_until > now)
		return;
	millis wait = BACKOFF_FIRST << (m->refusals < 3 ? m->refusals : 3);
	m->blocked_until = now + (wait < BACKOFF_MOST ? wait : BACKOFF_MOST);
	m->refusals++;
}

static void take_notice(struct draft *d)
{
	for (size_t i = 0; i < d->pool->event_count; i++) {
		const struct event_input *e = &d->pool->events[i];

		if (e->what == EVENT_REFUSED)
			note_refusal(&d->memory[e->group], d->order->snapshot->now, e->kind, e->count);
	}
	for (size_t i = 0; i < d->pool->start_count; i++) {
		const struct start_input *s = &d->pool->starts[i];

		*(s->kind == START_REFILL ? &d->refilling[s->group] : &d->starting[s->group]) += s->count;
	}
	for (size_t g = 0; g < d->spec->group_count; g++) {
		d->memory[g].stopping = smaller(d->memory[g].stopping, d->pool->groups[g].draining);
		d->groups[g].nodes = d->pool->groups[g].nodes;
	}
}

static bool is_blocked(const struct draft *d, size_t g)
{
	return d->memory[g].blocked_until > d->order->snapshot->now;
}

/* New machines for up to `replicas`; what was asked for. */
static int64_t buy(struct draft *d, size_t g, int64_t replicas, int64_t *ask)
{
	int64_t *free = &d->order->nodes_free[d->spec->groups[g]], each = per_node(d, g);

	if (replicas <= 0 || !each)
		return 0;
	if (is_blocked(d, g)) {
		d->held_by = LIMIT_STOCKOUT;
		return 0;
	}
	int64_t bought = smaller(replicas, *free * each);
	*free -= (bought + each - 1) / each;
	*ask += bought;
	return bought;
}

/* Nodes that the manifest's min asks for are bought whatever the rival wants. */
static int64_t buy_least(struct draft *d)
{
	int64_t bought = 0;

	for (size_t g = 0; g < d->spec->group_count; g++) {
		int64_t missing = group_of(d, g)->min_nodes - d->pool->groups[g].nodes;

		bought += buy(d, g, missing * per_node(d, g), &d->groups[g].cold);
	}
	return bought;
}

static int64_t take(int64_t *missing, int64_t available, int64_t *ask)
{
	int64_t taken = not_below_zero(smaller(*missing, available));

	*missing -= taken;
	*ask += taken;
	return taken;
}

/* A woken machine counts among the running ones again, so it needs a place below the manifest's max. */
static void wake(struct draft *d, size_t g, int64_t *missing)
{
	int64_t *free = &d->order->nodes_free[d->spec->groups[g]], each = per_node(d, g);
	int64_t woken = take(missing, smaller(d->pool->groups[g].standby, *free * each), &d->groups[g].wake);

	*free -= each ? (woken + each - 1) / each : 0;
}

static void grow_fast(struct draft *d, int64_t *missing)
{
	size_t count = d->spec->group_count;

	for (size_t g = 0; g < count && d->order->settings->uses_lent; g++)
		d->memory[g].reclaimed += take(missing, d->pool->groups[g].lent, &d->groups[g].reclaim);
	for (size_t g = 0; g < count; g++) {
		int64_t held_back = smaller(d->memory[g].refused_wakes, *missing);

		/* As many as were refused are bought instead; the next ones are tried again. */
		d->memory[g].refused_wakes = 0;
		*missing -= held_back;
		wake(d, g, missing);
		*missing += held_back;
	}
	for (size_t g = 0; g < count; g++)
		take(missing, d->refilling[g], &d->groups[g].adopt_refill);
	for (size_t g = 0; g < count; g++)
		take(missing, d->pool->groups[g].free_places, &d->groups[g].place);
}

static void grow(struct draft *d, int64_t missing)
{
	grow_fast(d, &missing);
	for (size_t g = 0; g < d->spec->group_count && missing; g++)
		missing -= buy(d, g, missing, &d->groups[g].cold);
	if (missing && d->held_by == LIMIT_NONE)
		d->held_by = LIMIT_MAX;
	else if (!missing)
		d->held_by = LIMIT_NONE;
}

/* Replicas that may go from a group without passing the manifest's min. */
static int64_t may_go(const struct draft *d, size_t g)
{
	const struct group_decision *a = &d->groups[g];
	int64_t gone = a->cancel_cold + a->cancel_wake + a->cancel_reclaim + a->release;

	return not_below_zero((a->nodes - group_of(d, g)->min_nodes) * per_node(d, g) - gone);
}

static int64_t cancel(struct draft *d, int64_t excess)
{
	static const size_t offsets[START_KIND_COUNT] = {
		[START_COLD] = offsetof(struct group_decision, cancel_cold),
		[START_WAKE] = offsetof(struct group_decision, cancel_wake),
		[START_RECLAIM] = offsetof(struct group_decision, cancel_reclaim),
	};

	for (size_t i = d->pool->start_count; i-- > 0 && excess;) {
		const struct start_input *s = &d->pool->starts[i];
		struct group_decision *a = &d->groups[s->group];

		/* No order cancels a replica that only waits for its place on a running node. */
		if (s->kind == START_REFILL || s->kind == START_PLACE)
			continue;
		int64_t gone = smaller(excess, smaller(s->count, may_go(d, (size_t)s->group)));
		*(int64_t *)((char *)a + offsets[s->kind]) += gone;
		if (s->kind == START_RECLAIM)
			d->memory[s->group].reclaimed -= smaller(gone, d->memory[s->group].reclaimed);
		excess -= gone;
	}
	return excess;
}

static int64_t release(struct draft *d, int64_t excess)
{
	for (size_t g = d->spec->group_count; g-- > 0 && excess;) {
		struct group_decision *a = &d->groups[g];
		int64_t gone = smaller(excess, smaller(d->pool->groups[g].ready, may_go(d, g)));

		a->release = gone;
		a->give_back = smaller(gone, d->memory[g].reclaimed);
		d->memory[g].reclaimed -= a->give_back;
		excess -= gone;
	}
	return excess;
}

static void shrink(struct draft *d, int64_t excess)
{
	if (d->order->snapshot->tick * d->order->snapshot->interval < SETTLE)
		d->held_by = LIMIT_COOLDOWN;
	else if (release(d, cancel(d, excess)))
		d->held_by = LIMIT_MIN;
}

static int64_t stock_wanted(const struct settings *s, int64_t hot)
{
	switch (s->stock) {
	case STOCK_NONE:
		return 0;
	case STOCK_STATIC:
		return whole_above(s->stock_size);
	case STOCK_TOTAL:
		return not_below_zero(whole_above(s->stock_size) - hot);
	}
	return 0;
}

/* Stopped machines that a group will have when everything asked for has come. */
static int64_t stocked(const struct draft *d, size_t g)
{
	const struct group_decision *a = &d->groups[g];

	return d->pool->groups[g].standby - a->wake + a->cancel_wake + d->refilling[g] - a->adopt_refill + a->refill -
	       a->cancel_refill - a->delete_standby + d->memory[g].stopping;
}

static void discard(struct draft *d, int64_t excess)
{
	for (size_t g = d->spec->group_count; g-- > 0 && excess > 0;) {
		struct group_decision *a = &d->groups[g];

		take(&excess, d->refilling[g] - a->adopt_refill, &a->cancel_refill);
		take(&excess, d->pool->groups[g].standby - a->wake, &a->delete_standby);
	}
}

/* Released machines fill the stock; then the excess is deleted, or what misses is bought at once. */
static void keep_stock(struct draft *d, int64_t hot)
{
	int64_t missing = stock_wanted(d->order->settings, hot);

	for (size_t g = 0; g < d->spec->group_count; g++)
		missing -= stocked(d, g);
	for (size_t g = 0; g < d->spec->group_count && missing > 0; g++) {
		struct group_decision *a = &d->groups[g];
		int64_t room = group_of(d, g)->standby_max_nodes * per_node(d, g) - stocked(d, g);
		int64_t kept = take(&missing, smaller(room, a->release - a->give_back), &a->stop);

		d->memory[g].stopping += kept;
		missing -= buy(d, g, not_below_zero(smaller(missing, room - kept)), &a->refill);
	}
	discard(d, -missing);
}

static void sum_up(struct draft *d, struct pool_decision *out)
{
	const struct scrape_input *last = d->pool->scrapes + d->pool->scrape_count - 1;

	for (size_t i = 0; i < d->pool->scrape_count; i++) {
		const struct scrape_input *s = &d->pool->scrapes[i];

		out->running_milli += (s->running + s->running_draining) * 1000 / (int64_t)d->pool->scrape_count;
		out->waiting_milli += s->waiting * 1000 / (int64_t)d->pool->scrape_count;
		out->started += s->started != ABSENT ? s->started : 0;
		out->late += s->late != ABSENT ? s->late : 0;
	}
	if (d->pool->scrape_count)
		out->waiting_now = last->waiting;
	out->signals = d->pool->scrape_count ? SIGNALS_FRESH : SIGNALS_GONE;
	out->slots_milli = d->spec->max_sequences * 1000;
	out->objective_ppm = d->spec->objective_late_ppm;
	out->rule = ABSENT;
	out->ready = d->pool->input.ready;
	out->draining = d->pool->input.draining;
	out->lent = d->pool->input.lent;
	for (size_t g = 0; g < d->spec->group_count; g++) {
		out->on_the_way += d->starting[g];
		out->standby += d->pool->groups[g].standby;
		out->refilling += d->refilling[g];
	}
}

/* Nodes after the plan, what they cost, and the reason at each group. */
static void price(struct draft *d, struct pool_decision *out)
{
	for (size_t g = 0; g < d->spec->group_count; g++) {
		const struct group_spec *group = group_of(d, g);
		struct group_decision *a = &d->groups[g];
		int64_t each = per_node(d, g) ? per_node(d, g) : 1;
		int64_t more = a->cold + a->wake + a->refill + a->reclaim;
		int64_t fewer = a->cancel_cold + a->cancel_wake + a->cancel_refill + a->cancel_reclaim + a->release;
		int64_t replicas = d->pool->groups[g].ready + d->pool->groups[g].draining + d->starting[g] +
				   d->refilling[g] + more + a->place - (fewer - a->release);

		a->nodes_desired = a->nodes + (more + each - 1) / each - fewer / each;
		a->blocked_until = is_blocked(d, g) ? d->memory[g].blocked_until : 0;
		a->refusals = d->memory[g].refusals;
		a->held_by = is_blocked(d, g) ? LIMIT_STOCKOUT : LIMIT_NONE;
		out->dollars_per_hour += group->price_per_hour * replicas / each +
					 group->price_per_hour / 1000 * group->standby_price_ppm / 1000 *
						 d->pool->groups[g].standby / each;
	}
}

static void decide(struct draft *d, int64_t have, int64_t wanted)
{
	int64_t least = buy_least(d);

	d->held_by = LIMIT_NONE;
	if (wanted > have + least)
		grow(d, wanted - have - least);
	else if (wanted < have)
		shrink(d, have - wanted);
	keep_stock(d, wanted);
}

struct pool_plan fleet_plan(const struct fleet_order *o, struct fleet_memory *m, int64_t wanted, struct arena *a)
{
	const struct pool_spec *spec = &o->fleet->pools[o->pool];
	size_t count = spec->group_count;
	struct draft d = { .order = o,
			   .spec = spec,
			   .pool = &o->snapshot->pools[o->pool],
			   .memory = m->groups,
			   .groups = arena_array(a, struct group_decision, count),
			   .starting = arena_array(a, int64_t, count),
			   .refilling = arena_array(a, int64_t, count) };
	struct pool_plan out = { .groups = d.groups, .group_count = count };
	struct pool_decision *decision = &out.decision;

	take_notice(&d);
	sum_up(&d, decision);
	int64_t have = decision->ready + decision->on_the_way;
	decision->wished = wanted < 0 ? have : wanted;
	if (spec->mode != MODE_ACT)
		d.held_by = spec->mode == MODE_OBSERVE ? LIMIT_OBSERVE : LIMIT_PAUSED;
	else if (wanted < 0)
		d.held_by = LIMIT_STALE;
	else
		decide(&d, have, wanted);
	decision->held_by = d.held_by;
	decision->decided = have;
	for (size_t g = 0; g < count; g++) {
		const struct group_decision *x = &d.groups[g];

		decision->decided += x->cold + x->wake + x->reclaim + x->place + x->adopt_refill - x->cancel_cold -
				     x->cancel_wake - x->cancel_reclaim - x->release;
	}
	price(&d, decision);
	return out;
}
