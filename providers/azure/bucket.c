#include "providers/azure/bucket.h"

enum { SIZE = 20 };
static const millis REFILL = MINUTE;

bool put_bucket_take(struct put_bucket *b, millis now, millis *wait)
{
	millis full_at = (b->full_at > now ? b->full_at : now) + REFILL;

	if (full_at - now > SIZE * REFILL) {
		*wait = full_at - now - SIZE * REFILL;
		return false;
	}
	b->full_at = full_at;
	return true;
}
