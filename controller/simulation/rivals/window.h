/* The largest, or the mean, of the whole numbers noted in the last so many milliseconds. */
#pragma once
#include "base/millis.h"

#include <stddef.h>

enum { WINDOW_SIZE = 1024 }; /* notes kept; the oldest goes first when more would count */

struct window {
	struct {
		millis at;
		int64_t value;
	} notes[WINDOW_SIZE];
	size_t first, count;
	int64_t sum; /* of the notes, for the mean */
};

/* Notes a value; the largest of those younger than `length`, the new one in any case. Use one window for one question
 * only. */
int64_t window_max(struct window *w, millis now, millis length, int64_t value);
/* Notes a value; the mean of those younger than `length`, the new one in any case. */
double window_mean(struct window *w, millis now, millis length, int64_t value);
