/*
 * One account of a cloud: its calls are counted together, whichever group
 * they are for. Once one is throttled, all of them wait: as long as the
 * cloud asked for, else twice as long after each further one, with jitter.
 */
#pragma once
#include "base/net/retry.h"

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
