/* The Knative pod autoscaler as a value: one reading in, one pod count out. */
#pragma once
#include "base/millis.h"

#include <stdbool.h>
#include <stddef.h>

/* The largest, or the mean, of the whole numbers noted in the last so many milliseconds. */

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

struct kpa {
	bool begun;
	millis panic_at; /* last time over the threshold; 0: not panicking */
	int64_t panic_pods;
	struct window stable, panic, delay;
};

struct kpa_settings {
	double target_value;	     /* concurrency a pod */
	millis stable, panic, delay; /* windows */
	double threshold;	     /* panic when the panic window asks for so many times the ready pods */
	double up_rate, down_rate;
};

int64_t kpa_scale(struct kpa *k, const struct kpa_settings *s, millis now, int64_t concurrency, int64_t ready);
