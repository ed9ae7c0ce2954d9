#include "controller/policy/reservation.h"

#include <string.h>

static millis earliest(millis known, millis other)
{
	return known > 0 && known < other ? known : other;
}

void reservation_add(struct reservation *r, const struct pool_spec *p, millis ends_at, millis lead)
{
	millis use = p->scale_down_after > 0 ? p->scale_down_after : RESERVATION_USE;
	millis leaves = ends_at - RESERVATION_EMPTY_BEFORE - lead;

	if (ends_at <= 0)
		return;
	r->ends_at = earliest(r->ends_at, ends_at);
	r->leaves_at = earliest(r->leaves_at, leaves > 0 ? leaves : 1);
	r->closes_at = earliest(r->closes_at, leaves > lead + use ? leaves - lead - use : 1);
}

/* Nodes there now, of each group. */
static int64_t *see_nodes(const struct snapshot *s, struct arena *a)
{
	int64_t *nodes = arena_array(a, int64_t, s->fleet->group_count);

	for (size_t p = 0; p < s->fleet->pool_count; p++)
		for (size_t i = 0; i < s->fleet->pools[p].group_count; i++)
			nodes[s->fleet->pools[p].groups[i]] = s->pools[p].groups[i].nodes;
	return nodes;
}

static int64_t at_most(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

const struct fleet_spec *reservation_fleet(const struct snapshot *s, const struct reservation *all, struct arena *a)
{
	const int64_t *nodes = see_nodes(s, a);
	struct fleet_spec *fleet = arena_new(a, struct fleet_spec);
	struct group_spec *groups = arena_array(a, struct group_spec, s->fleet->group_count);

	*fleet = *s->fleet;
	memcpy(groups, s->fleet->groups, s->fleet->group_count * sizeof *groups);
	for (size_t i = 0; i < fleet->group_count; i++) {
		struct group_spec *g = &groups[i];
		if (!reservation_is_closed(&all[i], s->now))
			continue;
		g->max_nodes = at_most(g->max_nodes, nodes[i]);
		g->min_nodes = reservation_is_left(&all[i], s->now) ? 0 : at_most(g->min_nodes, nodes[i]);
		g->standby_max_nodes = 0;
	}
	fleet->groups = groups;
	return fleet;
}
