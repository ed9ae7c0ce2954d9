/*
 * What a round of a pool adds up to, whichever way its replicas were read:
 * levels are the caller's, counters come as the tally of each replica.
 */
#pragma once
#include "signals/reading.h"
#include "signals/tally.h"

struct round_mean {
	int64_t sum, count;
};

/* Of one round; thousandths of requests, microseconds of seconds. Zeroed at first. */
struct round_sums {
	bool is_told[ENGINE_QUANTITY_COUNT], is_late_told;
	int64_t added[ENGINE_QUANTITY_COUNT];
	int64_t late;
	struct round_mean kv, prefix, load, startup;
	struct spread wait, first_token;
};

/* What a replica did within `elapsed`; of more than READING_GAP intervals it counts at its mean rate. */
void round_add(struct round_sums *s, const struct tally *t, millis elapsed, millis interval);
/* Levels of a replica that are no requests; of one that may not start requests its load time alone. */
void round_add_levels(struct round_sums *s, const struct page_content *c, bool is_ready);
/* Fills the counters and means of `r`, and `more`, which it then names. */
void round_tell(const struct round_sums *s, struct pool_reading *r, struct reading_more *more);
/* For the next round: what interpolation left below one request is kept. */
void round_clear(struct round_sums *s);
