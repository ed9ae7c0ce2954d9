/* The snapshot that the policy decides on: what pools, groups, nodes and starts are at this moment. */
#pragma once
#include "base/arena.h"
#include "controller/policy/snapshot.h"

struct controller;

/* In the arena. */
struct snapshot observe_snapshot(struct controller *c, struct arena *a);
/* The same with interval 0 and without readings, which are the next tick's. */
struct snapshot observe_between_ticks(struct controller *c, struct arena *a);
