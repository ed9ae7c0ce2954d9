#include "base/net/retry.h"

#include "base/quantity.h"

#include <assert.h>
#include <string.h>
#include <time.h>

struct retry retry_make(millis first, millis longest, struct random random)
{
	assert(first > 0 && longest >= first);
	return (struct retry){ .first = first, .longest = longest, .random = random };
}

static millis step(const struct retry *r)
{
	millis bound = r->first;

	for (int i = 0; i < r->failures && bound < r->longest; i++)
		bound = bound > r->longest / 2 ? r->longest : bound * 2;
	return bound;
}

millis retry_next(struct retry *r, millis told)
{
	millis bound = step(r);
	millis wait = 1 + (millis)(random_uniform(&r->random) * (double)bound);

	if (r->failures < INT32_MAX)
		r->failures++;
	wait = wait < bound ? wait : bound;
	if (told <= 0)
		return wait;
	return wait + (told < RETRY_TOLD_LONGEST ? told : RETRY_TOLD_LONGEST);
}

void retry_reset(struct retry *r)
{
	r->failures = 0;
}

millis retry_after(const char *header, millis now)
{
	struct tm t = { 0 };
	millis seconds;

	if (!header)
		return 0;
	if (fixed_parse(header, strlen(header), 0, &seconds))
		return seconds < DAY / SECOND ? seconds * SECOND : DAY;
	const char *end = strptime(header, "%a, %d %b %Y %H:%M:%S GMT", &t);
	if (!end || *end)
		return 0;
	millis at = (millis)timegm(&t) * SECOND;
	return at <= now ? 0 : at - now < DAY ? at - now : DAY;
}
