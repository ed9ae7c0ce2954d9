/*
 * What a cloud will not give for now. Pure bookkeeping, in milliseconds of a
 * clock that never goes back.
 */
#pragma once
#include "base/net/retry.h"

#include <stdbool.h>
#include <stddef.h>

/* What a node group is made of that can be sold out by itself: its zones and instance types, as far as machines and
 * failed launches told of them. */
enum { OFFERINGS_MOST = 48, OFFERING_TEXT_MOST = 47, MISSES_MOST = 3 };

struct offering {
	char zone[OFFERING_TEXT_MOST + 1], instance_type[OFFERING_TEXT_MOST + 1]; /* "": not told */
	millis blocked_until;
};

struct offerings {
	struct offering items[OFFERINGS_MOST]; /* more than these are not told apart */
	size_t count;
	int misses; /* launches that failed in a row while others of the group were thought to have some */
};

/* A machine of it came: there are some. */
void offerings_came(struct offerings *o, const char *zone, const char *instance_type);
/* There are none, for so long from now: in this zone ("": in all that are known) and of this type (likewise). */
void offerings_failed(struct offerings *o, const char *zone, const char *instance_type, millis now, millis lasts);
/* Until something of the group may be had again; 0 when there is a part of it that is not out of stock. Only parts that
 * were told of count: a group of which nothing else is known is out of stock with its only zone. */
millis offerings_wait(const struct offerings *o, millis now);
/* Parts that are out of stock. */
size_t offerings_blocked(const struct offerings *o, millis now);

/* One account of a cloud: its calls are counted together, whichever group they are for. Once one is throttled, all of
 * them wait: as long as the cloud asked for, else twice as long after each further one, with jitter. */
struct throttle {
	struct retry retry;
	millis until;  /* loop time; 0: never throttled */
	int64_t count; /* of calls that were, since the process started */
};

struct throttle throttle_make(struct random random);
/* A call was throttled at `now` (loop time); `told`: what the cloud asked for, 0 when nothing. */
void throttle_note(struct throttle *t, millis now, millis told);
/* A call that began at `began` went through: calls are no longer thinned out, unless one was throttled since. */
void throttle_passed(struct throttle *t, millis began);
/* So long from now nothing may be sent; 0: at once. */
millis throttle_wait(const struct throttle *t, millis now);
