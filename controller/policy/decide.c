#include "controller/policy/decide.h"

#include "base/exact.h"
#include "controller/policy/describe.h"
#include "controller/policy/limits.h"
#include "controller/policy/place.h"
#include "controller/policy/review.h"

/* One pool on its way through a tick. */
struct course {
	struct learned learned;
	struct wish wish;
};

static int64_t replica_price(const struct fleet_spec *fleet, const struct pool_spec *spec, size_t group)
{
	const struct group_spec *g = &fleet->groups[spec->groups[group]];

	return g->price_per_hour * spec->gpus_per_replica / (g->gpus_per_node > 0 ? g->gpus_per_node : 1);
}

/* What the pool costs per hour once the plan is carried out. */
static int64_t cost_per_hour(const struct snapshot *s, size_t pool, const struct pool_plan *plan)
{
	const struct pool_spec *spec = &s->fleet->pools[pool];
	const struct pool_snapshot *seen = &s->pools[pool];
	int64_t cost = 0;

	for (size_t i = 0; i < spec->group_count; i++) {
		const struct group_decision *d = &plan->groups[i];
		const struct group_input *in = &seen->groups[i];
		int64_t stopped = in->standby - d->wake + d->stop - d->delete_standby, price;
		int64_t on = in->ready + in->draining + d->cold + d->wake + d->refill + d->reclaim + d->place -
			     d->cancel_cold - d->cancel_wake - d->cancel_refill - d->cancel_reclaim - d->release;
		for (size_t k = 0; k < seen->start_count; k++)
			on += seen->starts[k].group == (int64_t)i ? seen->starts[k].count : 0;
		price = replica_price(s->fleet, spec, i);
		cost += on * price;
		cost += stopped * (price * s->fleet->groups[spec->groups[i]].standby_price_ppm / 1000000);
	}
	return cost;
}

static bool shares_budget(const struct pool_spec *a, const struct pool_spec *b)
{
	return a == b || (a->budget_name[0] && b->budget_per_hour == a->budget_per_hour &&
			  __builtin_strcmp(a->budget_name, b->budget_name) == 0);
}

/* Replicas that the budget allows a pool beyond what it has. Pools that give back first come last. */
static int64_t budget_left(const struct snapshot *s, const struct course *courses, size_t pool)
{
	const struct pool_spec *own = &s->fleet->pools[pool];
	double left = (double)own->budget_per_hour, price = courses[pool].learned.replica_price;

	if (own->budget_per_hour <= 0 || price <= 0)
		return INT64_MAX;
	for (size_t i = 0; i < s->fleet->pool_count; i++) {
		const struct pool_spec *other = &s->fleet->pools[i];
		if (!shares_budget(own, other))
			continue;
		const struct wish *w = &courses[i].wish;
		int64_t replicas =
			w->have + w->overdue + w->fleet.refill + w->fleet.replace + s->pools[i].input.draining;
		bool before = other != own && other->shrink_priority < own->shrink_priority;
		int64_t asks = before ? wish_wanted(w) - w->have : 0;
		double stopped = (double)w->fleet.stock * courses[i].learned.standby_price;
		left -= ((double)(replicas + (asks > 0 ? asks : 0)) + stopped) * courses[i].learned.replica_price;
	}
	return left < 0 ? 0 : (int64_t)(left / price);
}

/* Does a pool that this one lends to want more than it has, on a node group of this one? */
static bool borrower_waits(const struct snapshot *s, const struct course *courses, size_t pool)
{
	const struct pool_spec *own = &s->fleet->pools[pool];

	for (size_t i = 0; i < s->fleet->pool_count; i++) {
		const struct pool_spec *other = &s->fleet->pools[i];
		if (i == pool || !(own->lend_to & (1u << other->class)) ||
		    wish_wanted(&courses[i].wish) <= courses[i].wish.fleet.ready)
			continue;
		for (size_t k = 0; k < other->group_count; k++)
			for (size_t j = 0; j < own->group_count; j++)
				if (other->groups[k] == own->groups[j])
					return true;
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

static void follow_moves(struct pool_memory *m, const struct wish *w, const struct pool_plan *plan)
{
	for (size_t i = 0; i < plan->group_count; i++)
		m->reclaimed -= plan->groups[i].give_back < m->reclaimed ? plan->groups[i].give_back : m->reclaimed;
	m->replacing += w->moves.replace_wake + w->moves.replace_cold;
	if (m->replacing > w->fleet.replace + w->moves.replace_wake + w->moves.replace_cold)
		m->replacing = w->fleet.replace + w->moves.replace_wake + w->moves.replace_cold;
}

static int64_t placed(const struct pool_plan *plan)
{
	int64_t n = 0;

	for (size_t i = 0; i < plan->group_count; i++) {
		const struct group_decision *d = &plan->groups[i];
		n += d->cold + d->wake + d->reclaim + d->place + d->adopt_refill - d->cancel_cold - d->cancel_wake -
		     d->cancel_reclaim - d->release;
	}
	return n;
}

static void decide_pool(const struct snapshot *s, struct memory *m, struct course *courses, size_t pool,
			struct group_room *room, struct pool_plan *plan)
{
	struct course *c = &courses[pool];
	struct placing placing = { s, pool, m->groups, room, plan->groups, borrower_waits(s, courses, pool) };
	int64_t wished = wish_wanted(&c->wish);

	limits_apply(&c->wish, &m->pools[pool], s, pool, &c->learned, budget_left(s, courses, pool));
	int64_t replacements = c->wish.moves.replace_wake + c->wish.moves.replace_cold;
	place_moves(&placing, &c->wish);
	follow_moves(&m->pools[pool], &c->wish, plan);
	describe_decision(s, m, pool, &c->learned, &c->wish, &plan->decision);
	plan->decision.wished = wished;
	plan->decision.decided = c->wish.have + placed(plan) - replacements;
	plan->decision.dollars_per_hour = cost_per_hour(s, pool, plan);
	for (size_t i = 0; i < OBJECTIVE_PRICES; i++)
		plan->prices[i] = m->pools[pool].prices[i];
	plan->price_count = OBJECTIVE_PRICES;
}

struct plan policy_decide(const struct snapshot *s, struct memory *m, struct arena *a)
{
	size_t count = s->fleet->pool_count;
	struct plan plan = { arena_array(a, struct pool_plan, count), count };
	struct course *courses = arena_array(a, struct course, count);
	struct group_room *room = see_rooms(s, a);

	for (size_t i = 0; i < count; i++) {
		place_observe(m->groups, s, i);
		courses[i].learned = pool_learn(&m->pools[i], s, i);
		courses[i].wish = wish_make(&m->pools[i], s, i, &courses[i].learned);
	}
	/* Interactive pools place first; the order of the manifest decides among equals. */
	for (int class = 0; class < CLASS_COUNT; class ++)
		for (size_t i = 0; i < count; i++) {
			if ((int)s->fleet->pools[i].class != class)
				continue;
			plan.pools[i].group_count = s->fleet->pools[i].group_count;
			plan.pools[i].groups = arena_array(a, struct group_decision, plan.pools[i].group_count);
			decide_pool(s, m, courses, i, room, &plan.pools[i]);
		}
	return plan;
}
