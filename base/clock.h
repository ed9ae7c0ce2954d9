/*
 * The time that the controller lives by, handed to whoever needs it. It can
 * run faster than the world (recorded and simulated traffic) and tests turn
 * it by hand. Durations are counted on clock_mono(), which never goes back
 * and goes on while the machine sleeps; clock_now() is what is shown, recorded
 * and given to the policy.
 */
#pragma once
#include "base/millis.h"

#include <stdbool.h>

#define CLOCK_FASTEST INT64_C(100000)

struct clock {
	int64_t speed; /* milliseconds of this clock in one of the world, 1 to CLOCK_FASTEST */
	bool is_by_hand;
	bool follows_machine; /* clock_now() is the machine's wall clock */
	millis now, mono;     /* at its start, or as turned by hand */
	millis real_start;    /* of the machine's CLOCK_BOOTTIME */
	millis ahead;	      /* added to clock_now(), by whoever found it wrong */
	millis told_ahead;    /* of what others tell as the time, all the same */
};

/* The machine's own time. */
struct clock clock_open(void);
/* Starts at `now` and runs `speed` times as fast; `now` 0 starts at the present. */
struct clock clock_open_fast(millis now, int64_t speed);
/* Stands still until turned; clock_mono() starts at 0. */
struct clock clock_open_by_hand(millis now);
void clock_turn(struct clock *c, millis by); /* by >= 0; only by hand */

millis clock_now(const struct clock *c);  /* since the Unix epoch; the machine's own may be set back */
millis clock_mono(const struct clock *c); /* since some start; never goes back */
/* What this clock shows when others' walls, which are right, show `wall`; the past too. By hand: the same. */
millis clock_of_wall(const struct clock *c, millis wall);
/* How long a duration of this clock takes in the world, for timers: rounded up, 0 stays 0. By hand: the same. */
millis clock_real(const struct clock *c, millis duration);
