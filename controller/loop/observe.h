/* The snapshot that the policy decides on: what pools, groups, nodes and starts are at this moment. */
#pragma once
#include "base/arena.h"
#include "controller/policy/snapshot.h"

struct controller;

/* In the arena. */
struct snapshot observe_snapshot(struct controller *c, struct arena *a);
/* The same with interval 0 and without readings, which are the next tick's. */
struct snapshot observe_between_ticks(struct controller *c, struct arena *a);
/* Replicas of the pool that fit on free GPUs of nodes that run and that no start is meant for; none where such GPUs
 * count as ready. After its view. */
int64_t observe_running_places(const struct controller *c, size_t pool, size_t position);
/* When the reservation of a group of the fleet ends, as the manifest says or as the cloud does, whichever comes first;
 * 0: never. */
millis observe_end(const struct controller *c, size_t group);
/* Pods that somebody else asks for, ready or not. After its view. */
int64_t observe_wanted_pods(const struct controller *c, size_t pool);
