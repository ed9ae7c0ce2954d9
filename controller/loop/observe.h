/* The snapshot that the policy decides on: what pools, groups, nodes and starts are at this moment. */
#pragma once
#include "base/arena.h"
#include "controller/policy/snapshot.h"

struct controller;

/* In the arena. */
struct snapshot observe_snapshot(struct controller *c, struct arena *a);
