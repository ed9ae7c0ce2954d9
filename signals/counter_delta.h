/* By how much the counters and histograms of a model server grew between two of its pages. Pure. */
#pragma once
#include "base/millis.h"
#include "signals/engine_metrics.h"
#include "signals/histogram.h"

struct counter_delta {
	bool has_value[ENGINE_QUANTITY_COUNT]; /* both pages have it, under the same name */
	int64_t added[ENGINE_QUANTITY_COUNT];  /* of the counters; units of struct page_series */
	/* Thousandths of requests that waited longer than the objective, interpolated between the edges around it. */
	int64_t late;
	bool has_late;
	bool went_back; /* a counter is lower than before: another server, or the same anew */
	int64_t below_us, above_us;
	struct histogram wait, first_token; /* empty where the histogram is not told */
};

/*
 * Both pages are of one table. A series that is lower than before counts from 0, and so does a new one. ERROR_INVALID
 * when it is more than a machine can do in `elapsed` milliseconds.
 */
bool counter_delta_between(const struct page_content *before, const struct page_content *now, int64_t objective_us,
			   millis elapsed, struct counter_delta *out, struct error *e) MUST_USE;

/* Waits of a stretch of time, counted up to the edges around the objective; `above_us` may be PAGE_UNBOUNDED. */
struct wait_counts {
	int64_t waited, up_to_below, up_to_above;
	int64_t below_us, above_us;
};
/* Of these, longer than the objective: interpolated between the edges, all beyond the last. */
int64_t counter_delta_late(const struct wait_counts *w, int64_t objective_us);
