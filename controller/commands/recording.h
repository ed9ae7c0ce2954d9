/*
 * The traffic of a recorded stretch, as far as its scrapes tell: arrivals
 * are what started and what the queue grew by, lengths the mean of what
 * completed lately. For sending what production saw through a modelled world.
 */
#pragma once
#include "controller/loop/controller.h"
#include "controller/simulation/calibrate.h"
#include "controller/traces/trace.h"
#include "state/history.h"

/*
 * A recording out of readings alone: a history as `record` would have
 * written it, in which nothing is known of machines but how many replicas
 * served. What it decides is what it would have asked for.
 */

/* What `run` begins with where counters are means over a minute. */
#define RECORDING_IMPORTED "import --prometheus"
/* One tick every `interval`, from the first reading to the last. No file is left when it fails; one that is there is
 * ERROR_CONFLICT. `run`: what it was made from. */
bool recording_write(const char *path, const char *run, const struct manifest *m,
		     const struct recorded_signals *signals, millis interval, struct error *e) MUST_USE;

struct recording {
	struct trace *traces;	   /* one per pool of the history, in bins; recording_release frees */
	int64_t *initial_replicas; /* one per pool: ready at its first tick */
	size_t pool_count;
	millis start, interval; /* of the first bin; bins are as long as the shortest tick */
	millis silent;		/* in all, while nobody wrote: there is no traffic then */
	int64_t blind_ticks;	/* in which no replica could be read, nor their traffic */

	struct calibration *measured; /* by recording_world() */
};

/* Ticks from `from` to `to`, both included. What is not the traces lives in the arena. */
bool recording_read(struct history *h, int64_t from, int64_t to, struct arena *a, struct recording *out,
		    struct error *e) MUST_USE;
void recording_release(struct recording *r); /* takes a zeroed one */
/* What the ticks from `from` to `to` measured, for the pools of `fleet`; `start` as in struct recording. */
struct recorded_ticks {
	int64_t from, to;
	millis start;
};
bool recording_measure(struct history *h, const struct recorded_ticks *ticks, const struct fleet_spec *fleet,
		       struct arena *a, struct calibration **out, struct error *e) MUST_USE;

/* Which pool of the history that is, by namespace and name; RECORDING_NONE: none. */
#define RECORDING_NONE ((size_t)-1)
size_t recording_pool(const struct history *h, const struct pool_spec *spec);

/*
 * The world of those ticks for `fleet`: as they measured it, and as the manifest says where they measured nothing; it
 * starts with the replicas that were recorded. `traces` gets the traffic, or NULL, one per pool of the fleet. All but
 * the traces lives in the arena.
 */
struct recording_question {
	struct history *history;
	struct recorded_ticks ticks;
	struct recording *rec;
	const struct fleet_spec *fleet;
	const size_t *pools; /* which pool of the recording each of the fleet is; RECORDING_NONE: one without traffic */
};
bool recording_world(const struct recording_question *q, const struct trace **traces, struct arena *a,
		     struct world_spec *out, struct error *e) MUST_USE;
