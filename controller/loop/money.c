/* What the budgets of the manifest in force leave, from what is asked of the clouds: no memory, no decision. */
#include "controller/loop/node_group_parts.h"
#include "controller/loop/parts.h"

#include <string.h>

bool money_is_shared(const struct pool_spec *a, const struct pool_spec *b)
{
	return a == b || (a->budget_name[0] && !strcmp(a->budget_name, b->budget_name));
}

/* Every pool that names the group is of the budget of `own`: then all of it is paid from there. */
static bool is_paid_by(const struct controller *c, size_t group, const struct pool_spec *own)
{
	bool is_named = false;

	for (size_t i = 0; i < fleet_of(c)->pool_count; i++) {
		if (pool_position(fleet_of(c), i, group) < 0)
			continue;
		if (!money_is_shared(own, &fleet_of(c)->pools[i]))
			return false;
		is_named = true;
	}
	return is_named;
}

static int64_t cost_of(const struct controller *c, size_t group)
{
	const struct node_group *g = &c->groups[group];
	const struct group_spec *spec = &fleet_of(c)->groups[group];
	int64_t standing = node_group_count(g, MACHINE_STOPPED);

	return node_group_size(g) * spec->price_per_hour +
	       standing * (spec->price_per_hour / 1000 * spec->standby_price_ppm / 1000);
}

static int64_t left_of(const struct controller *c, const struct pool_spec *own)
{
	int64_t left = own->budget_per_hour;

	for (size_t i = 0; i < fleet_of(c)->group_count; i++)
		if (c->groups[i].is_known && is_paid_by(c, i, own))
			left -= cost_of(c, i);
	return left;
}

/* Whole machines, rounded up where too many are asked for. */
static int64_t machines_for(int64_t money, int64_t price)
{
	return money >= 0 ? money / price : -((-money + price - 1) / price);
}

int64_t money_affordable(void *user, size_t group)
{
	const struct controller *c = user;
	int64_t price = fleet_of(c)->groups[group].price_per_hour, least = INT64_MAX;

	for (size_t i = 0; i < fleet_of(c)->pool_count; i++) {
		const struct pool_spec *own = &fleet_of(c)->pools[i];
		if (own->budget_per_hour <= 0 || price <= 0 || pool_position(fleet_of(c), i, group) < 0 ||
		    !is_paid_by(c, group, own))
			continue;
		int64_t machines = machines_for(left_of(c, own), price);
		least = machines < least ? machines : least;
	}
	return least;
}
