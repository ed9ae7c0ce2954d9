/* What a model server did between two of its pages. Pure. */
#pragma once
#include "base/millis.h"
#include "signals/page.h"
#include "signals/spread.h"

struct tally {
	bool is_told[ENGINE_QUANTITY_COUNT];  /* both pages tell it, under the same name */
	int64_t added[ENGINE_QUANTITY_COUNT]; /* of the counters; units of struct page_series */
	/* Thousandths of requests that waited longer than the objective, interpolated between the edges around it. */
	int64_t late;
	bool is_late_told;
	int64_t below_us, above_us;
	struct spread wait, first_token; /* empty where the histogram is not told */
};

/*
 * Both pages are of one table. A series that is lower than before counts from 0, and so does a new one. ERROR_INVALID
 * when it is more than a machine can do in `elapsed` milliseconds.
 */
bool tally_between(const struct page_content *before, const struct page_content *now, int64_t objective_us,
		   millis elapsed, struct tally *out, struct error *e) MUST_USE;

/* Waits of a stretch of time, counted up to the edges around the objective; `above_us` may be PAGE_UNBOUNDED. */
struct tally_waits {
	int64_t waited, up_to_below, up_to_above;
	int64_t below_us, above_us;
};
/* Of these, longer than the objective: interpolated between the edges, all beyond the last. */
int64_t tally_late(const struct tally_waits *w, int64_t objective_us);
