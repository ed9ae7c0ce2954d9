/*
 * How often somebody may come: token buckets by address, and one for all.
 * Bounded memory; when there are too many addresses, the one that was seen
 * longest ago is forgotten. IPv6 counts by /64, as networks are given out.
 */
#pragma once
#include "base/millis.h"

#include <stdbool.h>

struct sockaddr;
struct rates;

struct rate {
	unsigned per_second; /* 0: no limit */
	unsigned burst;	     /* at once, after a rest; 0: per_second */
};

enum { RATE_ADDRESSES = 1024 };

struct rates *rates_new(struct rate all, struct rate each);
void rates_free(struct rates *r); /* takes NULL */
/* Takes one at `now` (monotonic); else 0 is not returned but the milliseconds until there is one, and none is taken. */
millis rates_take(struct rates *r, const struct sockaddr *from, millis now) __attribute__((warn_unused_result));
