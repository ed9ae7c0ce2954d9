/*
 * How often AKS lets a subscription change its agent pools in a region: 20
 * at once, one more a minute. Asking beyond it brings only a refusal, which
 * counts too. Pure.
 */
#pragma once
#include "base/millis.h"

#include <stdbool.h>

struct put_bucket {
	millis full_at; /* when nothing will be missing any more, by a clock that never goes back; 0: now */
};

/* Takes one; false when there is none, and then in how long there will be. */
bool put_bucket_take(struct put_bucket *b, millis now, millis *wait);
