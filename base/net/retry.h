/*
 * When to try again: exponential back-off with full jitter, and what a
 * server asked for. Pure: randomness comes in as a stream, time as a number.
 * What is worth trying again says error_is_transient().
 */
#pragma once
#include "base/millis.h"
#include "base/random.h"

#include <stdbool.h>

struct retry {
	millis first, longest; /* upper bounds of the first and of any later wait, both > 0 */
	int failures;	       /* since the last success; 0 at first */
	struct random random;
};

struct retry retry_make(millis first, millis longest, struct random random);
/*
 * The wait after one more failure: uniform in [1, min(longest, first * 2^failures)]. `told` is what the server asked
 * for (0: nothing): never less than that, up to RETRY_TOLD_LONGEST, with the jitter on top.
 */
millis retry_next(struct retry *r, millis told);
void retry_reset(struct retry *r);

#define RETRY_TOLD_LONGEST (5 * MINUTE)

/*
 * The value of a Retry-After header: whole seconds, or a date as HTTP writes it ("Sun, 06 Nov 1994 08:49:37 GMT"), in
 * milliseconds from `now` (of the Unix epoch), a day at most. 0 for NULL, what cannot be read, and the past.
 */
millis retry_after(const char *header, millis now);
