/*
 * How durations are spread, as far as histograms tell: how many lie between
 * two edges, never where. So a quantile is two bounds. Pure.
 */
#pragma once
#include "base/millis.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPREAD_BINS = 64, SPREAD_MINUTES = 5 };
#define SPREAD_UNBOUNDED INT64_MAX

struct spread_bin {
	int64_t above_us, up_to_us; /* the last one of a histogram is SPREAD_UNBOUNDED */
	int64_t count;		    /* thousandths of requests */
};

struct spread {
	size_t count;
	struct spread_bin bins[SPREAD_BINS];
};

/* Bins of other edges stand beside those there are; what finds no room widens the last one, so that bounds stay true.
 */
void spread_add(struct spread *s, const struct spread_bin *bin);
void spread_merge(struct spread *s, const struct spread *more);

/* Between these lies the smallest duration that so many percent of the requests do not exceed. False: there are none.
 */
bool spread_quantile(const struct spread *s, int percent, int64_t *lower_us, int64_t *upper_us);

/* The last SPREAD_MINUTES minutes, the present one among them. Zeroed at first. */
struct spread_window {
	int64_t minute[SPREAD_MINUTES];
	struct spread spreads[SPREAD_MINUTES];
};
void spread_window_add(struct spread_window *w, millis now, const struct spread *s);
struct spread spread_window_sum(const struct spread_window *w, millis now);
