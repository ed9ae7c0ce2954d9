/* What asking (place.c) and letting go (place_release.c) share. Private to these two. */
#pragma once
#include "controller/policy/place.h"

static inline int64_t at_most(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t positive(int64_t a)
{
	return a > 0 ? a : 0;
}

static inline const struct group_spec *spec_of(const struct placing *p, size_t i)
{
	return &p->s->fleet->groups[p->s->fleet->pools[p->pool].groups[i]];
}

static inline size_t index_of(const struct placing *p, size_t i)
{
	return p->s->fleet->pools[p->pool].groups[i];
}

static inline int64_t per_node(const struct placing *p, size_t i)
{
	int64_t n = replicas_per_node(spec_of(p, i), &p->s->fleet->pools[p->pool]);

	return n > 0 ? n : 1;
}

static inline bool placing_can_pay(const struct placing *p, int64_t price)
{
	return !p->money || *p->money >= price;
}

static inline void placing_pay(const struct placing *p, int64_t price)
{
	if (p->money)
		*p->money -= price;
}

/* What one more waking node costs: it is paid a little already. */
static inline int64_t wake_price(const struct group_spec *g)
{
	return g->price_per_hour - g->price_per_hour / 1000 * g->standby_price_ppm / 1000;
}

static inline int64_t starting(const struct placing *p, size_t i, enum start_kind kind)
{
	const struct pool_snapshot *seen = &p->s->pools[p->pool];
	int64_t n = 0;

	for (size_t k = 0; k < seen->start_count; k++)
		if (seen->starts[k].group == (int64_t)i && seen->starts[k].kind == (int64_t)kind)
			n += seen->starts[k].count;
	return n;
}

/* Nodes that may go without the group falling below its smallest size. */
static inline int64_t spare_nodes(const struct placing *p, size_t i)
{
	const struct group_room *room = &p->room[index_of(p, i)];

	return positive(room->nodes - room->leaving - spec_of(p, i)->min_nodes);
}

/* place_release.c: what a plan cancels, adopts, lets go, and deletes. */
void place_cancels(const struct placing *p, const struct moves *m);
void place_adoptions(const struct placing *p, int64_t want);
void place_releases(const struct placing *p, struct wish *w);
void place_deletions(const struct placing *p, int64_t want);
