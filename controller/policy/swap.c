#include "controller/policy/swap.h"

static int64_t at_most(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t positive(int64_t a)
{
	return a > 0 ? a : 0;
}

/* In micro-dollars an hour: a replica's share of a node. */
static int64_t replica_price(const struct group_spec *g, const struct pool_spec *p)
{
	int64_t n = replicas_per_node(g, p);

	return n > 0 ? g->price_per_hour / n : g->price_per_hour;
}

bool swap_is_cheaper(const struct fleet_spec *fleet, const struct pool_spec *p, size_t i, size_t k)
{
	const struct group_spec *own = &fleet->groups[p->groups[i]], *other = &fleet->groups[p->groups[k]];

	return k < i && own->standby_max_nodes > 0 && replica_price(other, p) < replica_price(own, p);
}

/* The most preferred of the groups that are cheaper; group_count when there is none. */
static size_t cheaper_group(const struct fleet_spec *fleet, const struct pool_spec *p, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (swap_is_cheaper(fleet, p, i, k))
			return k;
	return p->group_count;
}

/* Replicas that come to the group or go from it, so that its nodes are not all there to stay. */
static int64_t moving(const struct pool_snapshot *seen, size_t i)
{
	int64_t n = seen->groups[i].draining;

	for (size_t k = 0; k < seen->start_count; k++) {
		const struct start_input *t = &seen->starts[k];
		bool has_node = t->kind == START_COLD || t->kind == START_WAKE || t->kind == START_REFILL;
		n += t->group == (int64_t)i && has_node ? t->count : 0;
	}
	return n;
}

int64_t swap_dear(const struct snapshot *s, size_t pool, size_t i)
{
	const struct pool_spec *p = &s->fleet->pools[pool];
	const struct group_spec *g = &s->fleet->groups[p->groups[i]];
	const struct group_input *in = &s->pools[pool].groups[i];
	int64_t each = replicas_per_node(g, p);

	if (each <= 0 || cheaper_group(s->fleet, p, i) == p->group_count)
		return 0;
	int64_t stay = in->nodes - (moving(&s->pools[pool], i) + each - 1) / each;
	return positive(at_most(in->ready, (stay - g->min_nodes) * each));
}

static int64_t all_dear(const struct snapshot *s, size_t pool)
{
	int64_t n = 0;

	for (size_t i = 0; i < s->pools[pool].group_count; i++)
		n += swap_dear(s, pool, i);
	return n;
}

double swap_charge(const struct fleet_spec *fleet, const struct pool_spec *p, double cold, double start_charge)
{
	size_t i = 0;

	while (i < p->group_count && fleet->groups[p->groups[i]].standby_max_nodes == 0)
		i++;
	if (i == p->group_count)
		return 0;
	size_t k = cheaper_group(fleet, p, i);
	if (k == p->group_count)
		return 0;
	double dear = (double)replica_price(&fleet->groups[p->groups[i]], p);
	double cheap = (double)replica_price(&fleet->groups[p->groups[k]], p);
	/* It runs until it has cost a start, and until that start serves, which costs its own time. */
	return cheap > 0 ? cold + (dear / cheap - 1) * cold + cold + start_charge : 0;
}

/* Is a machine that was started there one that dear ones may move to? */
static bool is_cheaper_than_some(const struct fleet_spec *fleet, const struct pool_spec *p, int64_t k)
{
	for (size_t i = 0; k >= 0 && i < p->group_count; i++)
		if (swap_is_cheaper(fleet, p, i, (size_t)k))
			return true;
	return false;
}

void swap_set_apart(const struct pool_policy_state *m, const struct snapshot *s, size_t pool, struct fleet *f)
{
	const struct pool_snapshot *seen = &s->pools[pool];
	int64_t wakes = 0, some = m->swapping > 0 ? at_most(m->swapping, all_dear(s, pool)) : 0;

	for (size_t i = 0; i < seen->start_count; i++)
		if (seen->starts[i].kind == START_WAKE &&
		    is_cheaper_than_some(s->fleet, &s->fleet->pools[pool], seen->starts[i].group))
			wakes += seen->starts[i].count;
	int64_t colds = at_most(some, f->cold);
	wakes = at_most(some - colds, at_most(wakes, f->wake));
	f->cold -= colds;
	f->wake -= wakes;
	f->swap = colds + wakes;
}

void swap_follow(struct pool_policy_state *m, const struct snapshot *s, size_t pool)
{
	const struct pool_snapshot *seen = &s->pools[pool];

	for (size_t i = 0; i < seen->event_count && m->swapping > 0; i++) {
		const struct event_input *e = &seen->events[i];
		if (e->what != EVENT_SERVING || (e->kind != START_COLD && e->kind != START_WAKE) ||
		    !is_cheaper_than_some(s->fleet, &s->fleet->pools[pool], e->group))
			continue;
		int64_t n = at_most(e->count, m->swapping);
		m->swapping -= n;
		m->swapped += n;
	}
}

/* How long a dear replica serves until it has cost as much as the start of a cheaper one; the longest of the groups. */
static millis pays_after(const struct snapshot *s, size_t pool, const struct estimates *l)
{
	const struct pool_spec *p = &s->fleet->pools[pool];
	double longest = 0;

	for (size_t i = 0; i < p->group_count; i++) {
		if (swap_dear(s, pool, i) <= 0)
			continue;
		size_t k = cheaper_group(s->fleet, p, i);
		double dear = (double)replica_price(&s->fleet->groups[p->groups[i]], p);
		double cheap = (double)replica_price(&s->fleet->groups[p->groups[k]], p);
		double after = l->cold.p50 * cheap / (dear - cheap) * 1000;
		longest = after > longest ? after : longest;
	}
	return longest < (double)DAY ? (millis)longest : DAY;
}

/* Whoever else asks for the pods would put none on a machine that comes for one that serves. */
static bool may_move(const struct snapshot *s, size_t pool, const struct estimates *l, const struct recommendation *w)
{
	return s->fleet->pools[pool].class != CLASS_TRAINING && s->pools[pool].input.wanted_pods == 0 &&
	       w->fleet.waiting <= 0 && l->reading.signals == SIGNALS_FRESH && !l->is_filling;
}

/* A fleet that grows or shrinks is left to its rule: what shrinks gives dear ones up without a start for them. */
static bool is_at_rest(const struct scale_actions *a)
{
	return a->cold + a->wake + a->reclaim + a->adopt_refill + a->cancel_cold + a->cancel_wake + a->cancel_reclaim ==
	       0;
}

void swap_recommend(struct pool_policy_state *m, const struct snapshot *s, size_t pool, const struct estimates *l,
		    struct recommendation *w)
{
	struct scale_actions *a = &w->moves;
	int64_t dear = all_dear(s, pool);
	double least = a->low > (double)w->floor ? a->low : (double)w->floor;
	int64_t spare = w->have - (int64_t)least - (least > (double)(int64_t)least);

	if (dear == 0 || m->dear_since == 0 || !may_move(s, pool, l, w))
		m->dear_since = s->now;
	/* What is needed by now frees nothing. */
	m->swapped = at_most(m->swapped, at_most(dear, positive(spare)));
	if (dear == 0 || m->dear_since == s->now || !is_at_rest(a))
		return;
	a->swapped = at_most(m->swapped, w->fleet.ready);
	a->release = a->release > a->swapped ? a->release : a->swapped;
	/* What the floor keeps of those that the rule would let go is there to stay. */
	if (at_most(a->release, positive(w->have - w->floor)) == 0 && s->now - m->dear_since >= pays_after(s, pool, l))
		a->swap = positive(dear - w->fleet.swap - w->overdue);
}
