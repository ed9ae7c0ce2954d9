/*
 * How often. When to try again: exponential back-off with full jitter, and
 * what a server asked for; what is worth trying again says
 * error_is_transient(). And how often others may come: token buckets.
 * Randomness comes in as a stream, time as a number.
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

/* "Sun, 06 Nov 1994 08:49:37 GMT", as HTTP writes it, since the Unix epoch; false for NULL and all else. */
bool http_date(const char *header, millis *at);

/*
 * The value of a Retry-After header: whole seconds, or a date as HTTP writes it ("Sun, 06 Nov 1994 08:49:37 GMT"), in
 * milliseconds from `now` (of the Unix epoch), a day at most. 0 for NULL, what cannot be read, and the past.
 */
millis retry_after(const char *header, millis now);

/*
 * A bucket by address, and one for all. Of more than RATE_ADDRESSES the one
 * that was seen longest ago is forgotten. IPv6 counts by /64, as networks
 * are given out.
 */
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
