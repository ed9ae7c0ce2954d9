/*
 * A modelled cluster and cloud: requests arrive as recorded, wait in one
 * FIFO queue per pool, take a slot on a ready replica and hold it
 *
 *     maxSequences * prompt tokens / prefillTokensPerSecond + output tokens * interTokenLatency
 *
 * (design, section 8). Machines pass the lead-time stages, may be refused,
 * fail, or be taken. A policy sees snapshots only, never the world. Pure:
 * all chance comes from the seed.
 */
#pragma once
#include "controller/policy/plan.h"
#include "controller/traces/trace.h"

struct world;
struct world_spec; /* world_spec.h: stock-outs, spot losses, true capacity, ...; NULL: nothing goes wrong */

struct world_setup {
	const struct fleet_spec *fleet;
	const struct world_spec *spec;
	const struct trace *const *traces; /* one per pool, NULL: no traffic */
	millis start;			   /* wall clock at second 0 of the traces */
	millis interval;		   /* of a tick */
	uint64_t seed;
	/* base/schedule.h's schedule_at; NULL: no schedules. A pointer, because it reads the machine's time zones. */
	struct schedule_state (*schedule)(const struct schedule_window *windows, size_t count, millis now);
};

struct world *world_new(const struct world_setup *setup);
void world_free(struct world *w);	    /* takes NULL */
millis world_length(const struct world *w); /* of the longest trace, rounded up to ticks */

/* Lets one tick pass. */
void world_advance(struct world *w);
/* What a policy may see at the end of the tick; lives in the arena. */
struct snapshot world_snapshot(const struct world *w, struct arena *a);
/* Carries a plan out, as far as the world lets it. */
void world_apply(struct world *w, const struct plan *plan);

/* What the last tick brought, per pool: the columns of timeline.csv and what a score needs. */
struct tick_result {
	int64_t arrived, started, late, waiting, running, running_draining;
	int64_t ready, starting, draining, standby, lent;
	int64_t starts, removals; /* machines asked for (wakes included) and removed in the tick */
	int64_t gpu_ms;		  /* billed GPU-milliseconds */
	int64_t micro_dollars;
	int64_t batch_lost_ms; /* replica-milliseconds of borrowed work lost to reclaims */
};
struct tick_result world_result(const struct world *w, size_t pool);

/* Since the start, per pool. arrived + returned = started + waiting + gave_up, at any time. */
struct world_totals {
	int64_t arrived, returned, started, gave_up, late;
	int64_t waiting_late; /* of those that wait now: too long already */
	int64_t starts, removals, lost, refused;
	int64_t ignored; /* parts of plans that could not be carried out */
	int64_t gpu_ms, standby_gpu_ms, micro_dollars, batch_lost_ms;
};
struct world_totals world_totals(const struct world *w, size_t pool);

/* Waits of the requests that started, counted by length (waits.h). */
struct waits;
const struct waits *world_waits(const struct world *w, size_t pool);

/* What the requests with one label of the pool's trace used so far. */
struct label_use {
	int64_t requests, late, slot_ms;
};
struct label_use world_label_use(const struct world *w, size_t pool, size_t label);
