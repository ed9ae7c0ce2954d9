/*
 * How long requests waited: counts by length, in steps of at most 3 %.
 * Differences of two give the waits between two moments.
 */
#pragma once
#include "base/millis.h"

enum { WAITS_STEPS = 32, WAITS_COUNT = 40 * WAITS_STEPS };

struct waits {
	int64_t counts[WAITS_COUNT];
};

void waits_add(struct waits *w, millis wait, int64_t count);
/* The wait that `permille` of those in `w` but not in `before` (NULL: all) did not exceed; 0 when there are none. */
millis waits_quantile(const struct waits *w, const struct waits *before, int64_t permille);
