#include "controller/simulation/world_spec.h"

const struct pool_world pool_world_default = {
	.capacity_permille = 1000,
	.place_share_permille = 300,
	.length_spread_permille = 1000,
	.initial_replicas = -1,
	.lendable = { .reclaim = { 45 * SECOND, 75 * SECOND }, .restart_loss = MINUTE },
};

const struct group_world group_world_default = { .slow_factor_permille = 3000 };

struct world_spec world_spec_default(const struct fleet_spec *fleet, struct arena *a)
{
	struct pool_world *pools = arena_array(a, struct pool_world, fleet->pool_count);
	struct group_world *groups = arena_array(a, struct group_world, fleet->group_count);

	for (size_t i = 0; i < fleet->pool_count; i++)
		pools[i] = pool_world_default;
	for (size_t i = 0; i < fleet->group_count; i++)
		groups[i] = group_world_default;
	return (struct world_spec){ .pools = pools, .groups = groups };
}
