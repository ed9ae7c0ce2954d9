/*
 * Durations as histograms give them: how many lie between two bucket edges,
 * never where. A quantile is therefore two bounds. Pure.
 */
#pragma once
#include "base/millis.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HISTOGRAM_BINS = 64, HISTOGRAM_MINUTES = 5 };
#define HISTOGRAM_UNBOUNDED INT64_MAX

struct histogram_bin {
	int64_t above_us, up_to_us; /* the last one of a histogram is HISTOGRAM_UNBOUNDED */
	int64_t count;		    /* thousandths of requests */
};

struct histogram {
	size_t count;
	struct histogram_bin bins[HISTOGRAM_BINS];
};

/* Bins of other edges stand beside those there are; what finds no room widens the last one, so that bounds stay true.
 */
void histogram_add(struct histogram *s, const struct histogram_bin *bin);
void histogram_merge(struct histogram *s, const struct histogram *more);

/* Between these lies the smallest duration that so many percent of the requests do not exceed. False: there are none.
 */
bool histogram_quantile(const struct histogram *s, int percent, int64_t *lower_us, int64_t *upper_us);

/* The last HISTOGRAM_MINUTES minutes, the present one among them. Zeroed at first. */
struct histogram_window {
	int64_t minute[HISTOGRAM_MINUTES];
	struct histogram spreads[HISTOGRAM_MINUTES];
};
void histogram_window_add(struct histogram_window *w, millis now, const struct histogram *s);
struct histogram histogram_window_sum(const struct histogram_window *w, millis now);
