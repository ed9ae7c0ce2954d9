/*
 * From the number of replicas that a rival wants to what happens in its node
 * groups: first what is fast (lent nodes where it uses them, stopped
 * machines, refills under way, free places), then new machines in order of
 * preference; away go the youngest starts first, then ready replicas of the
 * least preferred group. A group that refused is left alone for 5 minutes,
 * doubling to 30 (Cluster Autoscaler, initial and max node group backoff).
 */
#pragma once
#include "controller/simulation/rivals/rival.h"

/* What is remembered of one of the pool's groups. */
struct fleet_group {
	millis blocked_until, refused_at;
	int64_t refusals;
	int64_t refused_wakes; /* to be replaced by new machines */
	int64_t stopping;      /* of the draining replicas: their machine will be stopped */
	int64_t reclaimed;     /* lent nodes that serve now */
};

struct fleet_memory {
	struct fleet_group *groups; /* one per group of the pool */
};

struct fleet_order {
	const struct settings *settings;
	const struct fleet_spec *fleet;
	int64_t *nodes_free; /* per fleet group: nodes that may still be bought; what is asked for is taken off */
	const struct snapshot *snapshot;
	size_t pool;
};

/* `wanted` < 0: no reading came, all stays. */
struct pool_plan fleet_plan(const struct fleet_order *o, struct fleet_memory *m, int64_t wanted, struct arena *a);
/* Replicas on their way to serve: all starts but refills. */
int64_t fleet_starting(const struct pool_snapshot *p);
/* Replicas that the pool's node groups can hold. */
int64_t fleet_most(const struct fleet_spec *fleet, const struct pool_spec *pool);
