#include "base/net/retry.h"

#include "base/alloc.h"
#include "base/quantity.h"

#include <assert.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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

bool http_date(const char *header, millis *at)
{
	struct tm t = { 0 };
	const char *end = header ? strptime(header, "%a, %d %b %Y %H:%M:%S GMT", &t) : NULL;

	if (!end || *end)
		return false;
	*at = (millis)timegm(&t) * SECOND;
	return true;
}

millis retry_after(const char *header, millis now)
{
	millis seconds, at;

	if (!header)
		return 0;
	if (fixed_parse(header, strlen(header), 0, &seconds))
		return seconds < DAY / SECOND ? seconds * SECOND : DAY;
	if (!http_date(header, &at))
		return 0;
	return at <= now ? 0 : at - now < DAY ? at - now : DAY;
}

enum { THOUSANDTHS = 1000 };

struct bucket {
	uint64_t address;
	int family;
	int64_t left; /* thousandths */
	millis at;
};

struct rates {
	struct rate all_rate, each_rate;
	struct bucket all, each[RATE_ADDRESSES];
	size_t count;
};

static int64_t full(const struct rate *r)
{
	return (int64_t)(r->burst ? r->burst : r->per_second) * THOUSANDTHS;
}

struct rates *rates_new(struct rate all, struct rate each)
{
	struct rates *r = xcalloc(1, sizeof *r);

	r->all_rate = all;
	r->each_rate = each;
	r->all.left = full(&all);
	return r;
}

void rates_free(struct rates *r)
{
	free(r);
}

static struct bucket key_of(const struct sockaddr *from)
{
	struct bucket key = { .family = from ? from->sa_family : AF_UNSPEC };

	if (key.family == AF_INET) {
		struct sockaddr_in v4;
		memcpy(&v4, from, sizeof v4);
		key.address = v4.sin_addr.s_addr;
	} else if (key.family == AF_INET6) {
		struct sockaddr_in6 v6;
		memcpy(&v6, from, sizeof v6);
		uint32_t v4;
		memcpy(&v4, v6.sin6_addr.s6_addr + 12, sizeof v4);
		memcpy(&key.address, v6.sin6_addr.s6_addr, sizeof key.address);
		if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
			key.family = AF_INET;
			key.address = v4;
		}
	}
	return key;
}

/* The bucket of that address; a full one for a stranger, in the place of whoever was not seen for longest. */
static struct bucket *find(struct rates *r, const struct sockaddr *from, millis now)
{
	struct bucket key = key_of(from), *oldest = &r->each[0];

	for (size_t i = 0; i < r->count; i++) {
		struct bucket *b = &r->each[i];
		if (b->address == key.address && b->family == key.family)
			return b;
		if (b->at < oldest->at)
			oldest = b;
	}
	if (r->count < RATE_ADDRESSES)
		oldest = &r->each[r->count++];
	*oldest = key;
	oldest->left = full(&r->each_rate);
	oldest->at = now;
	return oldest;
}

static void fill(struct bucket *b, const struct rate *rate, millis now)
{
	int64_t most = full(rate);
	millis passed = now > b->at ? now - b->at : 0;

	b->at = now;
	if (passed >= most) /* each millisecond brings at least a thousandth */
		b->left = most;
	else if ((b->left += passed * rate->per_second) > most)
		b->left = most;
}

static millis missing(const struct bucket *b, const struct rate *rate)
{
	int64_t lacks = THOUSANDTHS - b->left;

	return lacks <= 0 ? 0 : (lacks + rate->per_second - 1) / rate->per_second;
}

millis rates_take(struct rates *r, const struct sockaddr *from, millis now)
{
	struct bucket *each = r->each_rate.per_second ? find(r, from, now) : NULL;
	millis wait = 0;

	if (each) {
		fill(each, &r->each_rate, now);
		wait = missing(each, &r->each_rate);
	}
	if (r->all_rate.per_second && !wait) {
		fill(&r->all, &r->all_rate, now);
		wait = missing(&r->all, &r->all_rate);
		r->all.left -= wait ? 0 : THOUSANDTHS;
	}
	if (each && !wait)
		each->left -= THOUSANDTHS;
	return wait;
}
