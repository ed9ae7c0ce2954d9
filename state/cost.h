/*
 * What pools cost, hour by hour: kept beside the ticks, in the transaction of
 * the tick that it came with, and when the ticks themselves are dropped.
 */
#pragma once
#include "controller/policy/cost.h"
#include "state/history.h"

/* --- writing: call before history_append() of the same tick; on disk when that is, gone when that fails --- */

/* One pool's tick; `place` as in the fleet in force. Belongs to the hour in which it ends. Its levels have the same GPU
 * time and dollars. */
void history_cost(struct history *h, millis at, size_t place, enum pool_class class, const struct cost_sums *tick);

/* What stands behind a part of the bill. */
enum cost_holder {
	COST_BY_PODS, /* pods with these labels hold the GPUs */
	COST_NO_POD,  /* machines that start, stand empty, hold placeholders, or are stopped */
	COST_OTHERS,  /* pods with more different labels than are kept apart in an hour */
	COST_HOLDER_COUNT
};
enum cost_label { LABEL_COST_CENTER, LABEL_PRODUCT, LABEL_ENVIRONMENT, LABEL_WORKLOAD_TYPE, COST_LABEL_COUNT };
enum { COST_LABEL_SETS = 200 }; /* kept apart per pool and hour */

struct cost_labels {
	enum cost_holder holder;
	const char *value[COST_LABEL_COUNT]; /* "" where the pods have no such label */
};
const char *cost_label_name(enum cost_label label); /* "cost-center" */
bool cost_labels_equal(const struct cost_labels *a, const struct cost_labels *b);

void history_cost_label(struct history *h, millis at, size_t place, const struct cost_labels *labels, int64_t gpu_ms,
			int64_t micro_dollars);

/* --- reading --- */

/* Hours since 1970-01-01 00:00 UTC, both included. */
struct hour_range {
	int64_t first, last;
};

struct cost_hour {
	int64_t hour;
	size_t pool; /* index of history_pools() */
	enum pool_class class;
	struct cost_sums sums;
};
/* In order of time and pool, in the arena. Empty without sums; ERROR_INVALID for sums that cannot be. */
bool history_cost_hours(struct history *h, struct hour_range range, struct arena *a, struct cost_hour **hours,
			size_t *count, struct error *e) MUST_USE;

/* The same summed over the hours; ERROR_INVALID likewise. */
struct cost_total {
	size_t pool; /* index of history_pools() */
	enum pool_class class;
	struct cost_sums sums;
	int64_t first_hour, last_hour; /* that have sums */
};
bool history_cost_totals(struct history *h, struct hour_range range, struct arena *a, struct cost_total **totals,
			 size_t *count, struct error *e) MUST_USE;

struct cost_label_hour {
	int64_t hour;
	size_t pool;
	struct cost_labels labels;
	int64_t gpu_ms, dollars; /* micro-dollars */
};
bool history_cost_label_hours(struct history *h, struct hour_range range, struct arena *a,
			      struct cost_label_hour **hours, size_t *count, struct error *e) MUST_USE;
/* The same summed over the hours; `hour` is the first of them. */
bool history_cost_label_totals(struct history *h, struct hour_range range, struct arena *a,
			       struct cost_label_hour **totals, size_t *count, struct error *e) MUST_USE;
