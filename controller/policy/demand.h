/*
 * Demand freed of our own shortage: offered load in replicas. Service time
 * by Little's law over sums that forget; while requests queue, the
 * concurrency that the arrivals would have on an unlimited fleet.
 */
#pragma once
#include "controller/policy/plan.h"

/* The level is the mean of a minute, and of four ticks where these are longer. */
enum { LEVEL_TICKS_MOST = 60, LEVELS_MOST = 4096 };

struct demand_state {
	double *levels;	       /* ring by tick of level_room, a power of two: policy_state_make_room() */
	double busy, finished; /* forgetting sums: sequence-seconds and requests */
	double mean;	       /* demand, replicas */
	double last;	       /* at the last reading */
	double level;	       /* mean of the last minute, of half of it where many sequences run */
	double recent[LEVEL_TICKS_MOST];
	int64_t level_count, level_room;
	int64_t last_in_service, last_waiting; /* at the last reading */
	int64_t quiet_since;		       /* time of the first exact zero after a busy minute, 0 when none */
	double busy_rate;		       /* requests per second before it */
	millis fresh_at;		       /* when signals were last trusted */
};

/* What one tick's readings say. */
struct demand_reading {
	double in_service, waiting;    /* mean sequences: running and draining; waiting */
	double arrived, started, late; /* requests in the tick; those that were refused are in all three */
	double demand[SCRAPES_MAX];    /* replicas, one per reading */
	size_t readings;
	double seconds; /* per reading */
	double service; /* seconds a request holds its slot */
	enum signal_state signals;
};

/* `slots`: of a replica. `quiet_limit`: how long a sudden exact zero counts as missing. Readings that
 * cannot be trusted leave demand as it was. */
struct demand_reading demand_observe(struct demand_state *d, const struct snapshot *all, size_t pool, double slots,
				     millis quiet_limit);

/* As it stood at the last reading; in no time, nothing arrived. */
struct demand_reading demand_recall(const struct demand_state *d, const struct pool_spec *spec);

/* Largest level over the last `ticks` ticks, this one included; as many as are kept. */
double demand_peak(const struct demand_state *d, int64_t ticks);
