/*
 * The learning half of a tick: takes what was seen into the memory of a
 * pool, moves its shadow fleets on by one tick, and reviews the rule in
 * force.
 */
#pragma once
#include "controller/policy/memory.h"

/* What the deciding half needs of it. */
struct learned {
	struct demand_reading reading;
	struct demand_view view;
	struct capacity capacity;
	struct lead cold, wake, reclaim, place;
	double standby_price; /* share of the full price */
	double replica_price; /* micro-dollars per replica and hour */
	bool is_filling;      /* the first lead time: nothing is counted or released */
};

struct learned pool_learn(struct pool_memory *m, const struct snapshot *s, size_t pool);
