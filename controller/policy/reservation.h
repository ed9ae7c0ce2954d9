/*
 * A node group whose machines end at a time that is known beforehand: a Capacity Block, or another reservation with an
 * end. The cloud with the longest notice tells of it 40 minutes before and ends the machines 30 minutes before
 * (docs/providers.md names the source); 10 minutes more are kept for emptying the nodes. The largest lead time and
 * scaleDown.after of the pools that use the group count, so that all of them see one end.
 */
#pragma once
#include "base/arena.h"
#include "controller/policy/snapshot.h"

/* Of the end: by then nothing that serves is left there. */
#define RESERVATION_EMPTY_BEFORE (50 * MINUTE)
/* Of a start, where scaleDown.after is auto: it must serve for so long. */
#define RESERVATION_USE (10 * MINUTE)

struct reservation {
	millis ends_at;	  /* 0: never, and then the others are 0, too */
	millis closes_at; /* a start from then on would not serve for scaleDown.after before it is to be replaced */
	millis leaves_at; /* a start elsewhere from then on serves, in 19 of 20 cases, when the group must be empty */
};

/* What a pool adds to it: the end as it sees it, and the 95th percentile of its lead time. */
void reservation_add(struct reservation *r, const struct pool_spec *p, millis ends_at, millis lead);
static inline bool reservation_is_closed(const struct reservation *r, millis now)
{
	return r->ends_at > 0 && now >= r->closes_at;
}
static inline bool reservation_is_left(const struct reservation *r, millis now)
{
	return r->ends_at > 0 && now >= r->leaves_at;
}
/* The fleet as machines may be placed in it now: closed groups grow no more, those that are left keep no least. `all`:
 * of every group of the fleet. */
const struct fleet_spec *reservation_fleet(const struct snapshot *s, const struct reservation *all, struct arena *a);
