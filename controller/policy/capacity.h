/*
 * How many sequences a replica serves at once: the manifest until more is
 * known. What full replicas ran while a request or more for each of the
 * pool queued is a direct sample of their capacity; a low percentile of the
 * last samples counts, never the mean. More sequences than believed, once
 * seen, raise it at once.
 */
#pragma once
#include "controller/policy/plan.h"

enum { SATURATED_SAMPLES = 64, SATURATED_ENOUGH = 5, QUEUEING_READINGS = 3 };

struct capacity_state {
	double saturated[SATURATED_SAMPLES]; /* ring */
	int64_t sample_count;
	int64_t queueing_readings; /* in a row */
	double busiest;		   /* most sequences per ready replica seen */
	double kv_slots;	   /* that fit the KV cache, forgetting mean; 0 unknown */
	/* inter-token latency over sequences per replica: forgetting sums for a least-squares line */
	double fit_n, fit_x, fit_y, fit_xx, fit_xy;
};

struct capacity {
	double slots; /* of a replica, at least 1 */
	enum slots_source source;
};

void capacity_observe(struct capacity_state *c, const struct pool_snapshot *s, millis interval);
struct capacity capacity_believed(const struct capacity_state *c, const struct pool_spec *spec);
