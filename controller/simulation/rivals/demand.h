/*
 * The load that a trace offers, tick by tick: the sequences that would run on
 * an unlimited fleet, mean over the tick, in replicas.
 */
#pragma once
#include "base/arena.h"
#include "controller/simulation/queue.h"
#include "controller/traces/trace.h"

struct demand {
	millis interval;
	size_t ticks;
	double *offered;  /* replicas */
	int64_t *arrived; /* requests */
};

/* Ticks from the start of the trace to its end; lives in the arena. */
struct demand demand_of(const struct trace *trace, const struct queue_truth *truth, millis interval, struct arena *a);
/* Of the ticks from `from` on; 0 when there are none. */
double demand_mean(const struct demand *d, size_t from);
double demand_peak(const struct demand *d, size_t from);
