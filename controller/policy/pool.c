#include "controller/policy/pool.h"

static bool names(const struct pool_spec *pool, size_t group)
{
	for (size_t i = 0; i < pool->group_count; i++)
		if (pool->groups[i] == group)
			return true;
	return false;
}

bool pool_uses_group(const struct fleet_spec *fleet, size_t index, size_t group)
{
	const struct pool_spec *pool = &fleet->pools[index];

	if (!names(pool, group))
		return false;
	for (size_t i = 0; pool->mode == MODE_SHARE && i < fleet->pool_count; i++)
		if (pool_is_stock_of(&fleet->pools[i], pool) && names(&fleet->pools[i], group))
			return false;
	return true;
}

const struct group_users *fleet_users(const struct fleet_spec *fleet, struct arena *a)
{
	struct group_users *users = arena_array(a, struct group_users, fleet->group_count);
	struct group_user **items = arena_array(a, struct group_user *, fleet->group_count);

	for (size_t p = 0; p < fleet->pool_count; p++)
		for (size_t i = 0; i < fleet->pools[p].group_count; i++)
			users[fleet->pools[p].groups[i]].count++;
	for (size_t g = 0; g < fleet->group_count; g++) {
		users[g].items = items[g] = arena_array(a, struct group_user, users[g].count);
		users[g].count = 0;
	}
	for (size_t p = 0; p < fleet->pool_count; p++)
		for (size_t i = 0; i < fleet->pools[p].group_count; i++) {
			size_t g = fleet->pools[p].groups[i];
			if (pool_uses_group(fleet, p, g))
				items[g][users[g].count++] = (struct group_user){ p, i };
		}
	return users;
}
