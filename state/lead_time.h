/*
 * How long starts took, by day: a histogram per node group, kind of start
 * and stage, kept beside the ticks and when those are dropped.
 */
#pragma once
#include "state/history.h"

enum { LEAD_TOTAL = STAGE_COUNT, LEAD_STAGES }; /* from asking to serving stands behind the stages */

enum { LEAD_BUCKETS = 69 };
/* Up to and with so many milliseconds; the last has no bound: INT64_MAX. */
millis lead_bucket_upto(int64_t bucket);
int64_t lead_bucket_of(millis took);

struct lead_row {
	size_t group; /* index into the groups of history_pools() */
	enum start_kind kind;
	int64_t stage, bucket; /* enum stage or LEAD_TOTAL */
	int64_t samples;       /* replicas */
	int64_t ms;	       /* sum over them */
};

struct lead_question {
	size_t pool;	 /* index of history_pools() */
	millis from, to; /* days in UTC that have a part in this time */
};
/* Sums over the days, ordered by stage, group, kind and bucket, in the arena; none in files of before they were kept.
 * ERROR_INVALID for sums that cannot be. */
bool lead_read(struct history *h, const struct lead_question *q, struct arena *a, struct lead_row **rows, size_t *count,
	       struct error *e) MUST_USE;
