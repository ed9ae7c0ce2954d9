/*
 * A refusal that is heard between two ticks moves what was decided to the
 * next offering at once. How many replicas there shall be stays as the
 * policy decided it; the next tick sees the refusal and where they went.
 */
#include "controller/loop/parts.h"

#include "controller/loop/node_group_parts.h"

enum { POSITIONS_MOST = 64 };

static int64_t price_of_replica(const struct controller *c, size_t pool, size_t position)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	const struct group_spec *g = &fleet_of(c)->groups[spec->groups[position]];
	int64_t each = replicas_per_node(g, spec);

	return g->price_per_hour / (each > 0 ? each : 1);
}

void fall_back_note(void *user, const struct start *s, enum error_kind why)
{
	struct controller *c = user;
	struct live_pool *p = &c->pools[s->pool];
	const struct pool_spec *spec = &fleet_of(c)->pools[s->pool];

	if (spec->mode != MODE_ACT || spec->class == CLASS_TRAINING || s->group >= POSITIONS_MOST ||
	    (s->kind != START_COLD && s->kind != START_WAKE))
		return;
	p->fallen++;
	p->fallen_price += price_of_replica(c, s->pool, (size_t)s->group);
	if (why != ERROR_NONE)
		p->refused |= UINT64_C(1) << s->group;
}

void fall_back_lost(struct controller *c, size_t pool)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];

	if (c->has_decided && spec->mode == MODE_ACT && spec->class != CLASS_TRAINING)
		c->pools[pool].fallen++;
}

void fall_back_forget(struct controller *c)
{
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++) {
		c->pools[i].fallen = c->pools[i].fallen_price = 0;
		c->pools[i].refused = 0;
	}
}

static bool is_free(const struct controller *c, size_t pool, size_t position)
{
	const struct pool_plan *plan = &c->plan.pools[pool];
	size_t group = fleet_of(c)->pools[pool].groups[position];

	return position < POSITIONS_MOST && !(c->pools[pool].refused >> position & 1) && c->groups[group].is_known &&
	       plan->groups[position].blocked_until <= clock_now(c->clock);
}

/* What the budget leaves once the refused ones are taken off; INT64_MAX without one. */
static int64_t money_left(const struct controller *c, size_t pool)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	int64_t left = spec->budget_per_hour;

	if (left <= 0)
		return INT64_MAX;
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		if (money_is_shared(spec, &fleet_of(c)->pools[i]))
			left += c->pools[i].fallen_price - c->plan.pools[i].decision.dollars_per_hour;
	return left;
}

static int64_t affordable(const struct controller *c, size_t pool, size_t position, int64_t money)
{
	const struct group_spec *g = &fleet_of(c)->groups[fleet_of(c)->pools[pool].groups[position]];
	int64_t each = replicas_per_node(g, &fleet_of(c)->pools[pool]);

	if (money == INT64_MAX || g->price_per_hour <= 0)
		return INT64_MAX;
	return money > 0 ? money / g->price_per_hour * (each > 0 ? each : 1) : 0;
}

static void fall_back(struct controller *c, size_t pool)
{
	struct live_pool *p = &c->pools[pool];
	int64_t money = money_left(c, pool);

	for (size_t k = 0; k < fleet_of(c)->pools[pool].group_count && p->fallen > 0; k++) {
		int64_t most = affordable(c, pool, k, money);
		if (!is_free(c, pool, k))
			continue;
		int64_t got = act_grant(c, pool, k, START_COLD, p->fallen < most ? p->fallen : most);
		if (got <= 0)
			continue;
		const char *group = fleet_of(c)->groups[fleet_of(c)->pools[pool].groups[k]].name;
		log_info("fell-back", LOG_S("pool", fleet_of(c)->pools[pool].name), LOG_S("group", group),
			 LOG_I("replicas", got), LOG_END);
		events_of_fall_back(c, pool, group, got);
		p->fallen -= got;
		money -= money == INT64_MAX ? 0 : got * price_of_replica(c, pool, k);
	}
	p->fallen = p->fallen_price = 0; /* what found nothing is wished again by the next tick */
}

void fall_back_drive(struct controller *c)
{
	for (size_t i = 0; i < c->plan.pool_count; i++)
		if (c->pools[i].fallen > 0)
			fall_back(c, i);
}
