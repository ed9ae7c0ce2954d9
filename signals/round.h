/*
 * What a round of a pool adds up to, whichever way its replicas were read:
 * levels are the caller's, counters come as the tally of each replica.
 */
#pragma once
#include "signals/reading.h"
#include "signals/tally.h"

/* Of one round; thousandths of requests, microseconds of seconds. Zeroed at first. */
struct round_sums {
	bool is_told[ENGINE_QUANTITY_COUNT], is_late_told;
	int64_t added[ENGINE_QUANTITY_COUNT];
	int64_t late;
	int64_t kv_sum, kv_count;
};

/* What a replica did within `elapsed`; of more than READING_GAP intervals it counts at its mean rate. */
void round_add(struct round_sums *s, const struct tally *t, millis elapsed, millis interval);
/* Share of the KV cache of a replica that may start requests; READING_NOT_TOLD is passed over. */
void round_add_kv(struct round_sums *s, int64_t permille);
/* Fills the counters and means of `r`. */
void round_tell(const struct round_sums *s, struct pool_reading *r);
/* For the next round: what interpolation left below one request is kept. */
void round_clear(struct round_sums *s);
