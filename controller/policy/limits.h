/*
 * The limits on a wish, in the order of the design and each by name:
 * smallest and largest size, budget, rate of growth, cool-down, stale
 * signals, the queue, and pools that are only watched or paused.
 */
#pragma once
#include "controller/policy/wish.h"

/* `over_budget`: replicas that the pool must give back because its budget is overdrawn. */
void limits_apply(struct wish *w, struct pool_memory *m, const struct snapshot *s, size_t pool, const struct learned *l,
		  int64_t over_budget);
