/*
 * From replicas to node groups: preferred group first, blocked ones
 * skipped, spread over zones, whole nodes released from the least preferred
 * group.
 */
#pragma once
#include "controller/policy/plan.h"
#include "controller/policy/policy_state.h"
#include "controller/policy/recommend.h"
#include "controller/policy/reservation.h"

/* What this plan has made of a group so far. */
struct group_room {
	int64_t nodes;	   /* running or starting, draining ones included: they go later */
	int64_t leaving;   /* of them: released by this plan */
	int64_t standby;   /* stopped nodes */
	int64_t woken;	   /* replicas' worth of stopped machines that this plan wakes */
	int64_t reclaimed; /* replicas' worth of lent nodes that this plan takes back */
	int64_t gpus;	   /* free GPUs that this plan has given away */
	int64_t left_over; /* GPUs of the machine that it opened last and that nobody has yet */
};

/* Replicas asked for and not given yet. */
struct placing_asks {
	int64_t reclaim, wake, cold;
};

static inline int64_t placing_asks(const struct placing_asks *a)
{
	return a->reclaim + a->wake + a->cold;
}

struct placing {
	const struct snapshot *s;
	size_t pool;
	struct group_memory *memory;		/* of all groups of the fleet */
	const struct reservation *reservations; /* likewise; s->fleet heeds them (reservation_fleet) */
	struct group_room *room;		/* likewise */
	struct group_decision *out;		/* of the pool's groups */
	int64_t *money;	     /* micro-dollars an hour that the budget still allows; NULL without one */
	bool borrower_waits; /* a pool that may borrow wants more than it has */
	struct placing_asks asks;
};

/*
 * Pools that share a group are placed side by side: each begins, then they are given one node at a time in the
 * order that the caller chooses, then each ends. Together they fill `out`.
 */

/* Cancels and adopts; what is asked for stands in p->asks. Of class any all is done here: each group says what its
 * machines are needed for. */
void place_begin(struct placing *p, struct recommendation *w);
/* Gives the pool its next node or free place (a gang: all of its nodes). Returns the replicas given; 0 when all
 * are, or when nothing that is left finds room. */
int64_t place_next(struct placing *p, struct recommendation *w);
/* Refills, releases and minima. What found no room is left out, and w->held_by says why. Returns how many
 * replacements of lent nodes were asked for. */
int64_t place_end(struct placing *p, struct recommendation *w);

/*
 * Back-off per offering: after a refusal a node group is not asked for a
 * while, twice as long after each further one, and then probed again.
 */

/* Takes a pool's refusals of this tick in; before placing. */
void back_off_observe(struct group_memory *groups, const struct snapshot *s, size_t pool);
