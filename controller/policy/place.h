/*
 * From replicas to node groups: preferred group first, blocked ones
 * skipped, spread over zones, whole nodes released from the least preferred
 * group. Back-off per offering after a refusal, doubling, then probed again.
 */
#pragma once
#include "controller/policy/wish.h"

/* What earlier pools of this tick have taken of a group. */
struct group_room {
	int64_t nodes;	 /* running or starting after this plan so far */
	int64_t standby; /* stopped nodes after this plan so far */
	int64_t woken, places;
};

struct placing {
	const struct snapshot *s;
	size_t pool;
	struct group_memory *memory; /* of all groups of the fleet */
	struct group_room *room;     /* likewise */
	struct group_decision *out;  /* of the pool's groups */
	bool borrower_waits;	     /* a pool that may borrow wants more than it has */
};

/* Takes refusals into the back-offs; once per pool and tick, before placing. */
void place_observe(struct group_memory *groups, const struct snapshot *s, size_t pool);
/* Fills out; what finds no room is left out, and w->held_by says why. */
void place_moves(const struct placing *p, struct wish *w);
