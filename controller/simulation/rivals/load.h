/*
 * The load that a trace offers, tick by tick: the sequences that would run on
 * an unlimited fleet, mean over the tick, in replicas.
 */
#pragma once
#include "base/arena.h"
#include "controller/simulation/queue.h"
#include "controller/traces/trace.h"

struct load {
	millis interval;
	size_t ticks;
	double *offered;  /* replicas */
	int64_t *arrived; /* requests */
};

/* Ticks from the start of the trace to its end; lives in the arena. */
struct load load_of(const struct trace *trace, const struct queue_truth *truth, millis interval, struct arena *a);
/* Of the ticks from `from` on; 0 when there are none. */
double load_mean(const struct load *d, size_t from);
double load_peak(const struct load *d, size_t from);
