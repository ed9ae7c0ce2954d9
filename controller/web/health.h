/*
 * Whether the controller lives and whether it is ready, from the published
 * value. Waits are asynchronous, so a tick that hangs on an effect is seen
 * here while the loop still answers; a thread that is wholly blocked is
 * noticed because nothing answers within the probe's time-out.
 */
#pragma once
#include "base/buf.h"
#include "controller/web/published.h"

enum { HEALTH_INTERVALS = 5 }; /* ticks that may be missing before the loop counts as wedged */

/* False: `why` says what hangs, in one line. `now_mono` is clock_mono. NULL: starting, alive. */
bool health_is_alive(const struct published *p, millis now_mono, struct buf *why);
/* False: `why` says what is missing. True: `why` says in which role. */
bool health_is_ready(const struct published *p, struct buf *why);
