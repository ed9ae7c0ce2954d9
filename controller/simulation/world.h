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
#include "base/arena.h"
#include "base/error.h"
#include "controller/policy/plan.h"
#include "controller/policy/pool.h"
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

/*
 * What a manifest can't know about a modelled world: the truth behind the
 * priors, and what goes wrong when. Times of windows are since the start of
 * the traces. Pure values, indexed like the pools and groups of the fleet.
 */

/* While it lasts, starts of new machines in the group are refused. */
struct stockout_window {
	millis from, to;
	enum error_kind kind; /* ERROR_STOCKOUT or ERROR_QUOTA */
};

/* The vendor takes a share of the running machines back, spread over the window. */
struct loss_window {
	millis from, to;
	int64_t share_ppm;
};

enum telemetry_fault {
	TELEMETRY_MISSING, /* no readings at all */
	TELEMETRY_STALE,   /* a share of the replicas does not answer */
	TELEMETRY_ZERO,	   /* every reading is exactly zero: a broken exporter */
};

struct telemetry_window {
	millis from, to;
	enum telemetry_fault fault;
	int64_t share_ppm; /* of the replicas, TELEMETRY_STALE only */
};

/* Nodes outside the manifest that run batch work and can be reclaimed for this pool. */
struct lendable {
	int64_t replicas;
	size_t group;		  /* index among the pool's groups */
	struct quantiles reclaim; /* from the reclaim to serving */
	millis restart_loss;	  /* batch work lost by one reclaim */
};

struct pool_world {
	int64_t capacity_permille; /* of what the manifest says a replica does */
	int64_t max_sequences;	   /* true values, 0: as the manifest says */
	int64_t prefill_tokens_per_second;
	int64_t inter_token_latency_us;
	struct quantiles lead_time; /* total; 0: as the manifest says */
	struct quantiles stage[STAGE_COUNT];
	struct quantiles reclaim;	/* of nodes that other pools borrowed; 0: yieldWithin and the load */
	int64_t place_share_permille;	/* of a cold start, for a replica on a running node without stages */
	int64_t length_spread_permille; /* coefficient of variation of service times, binned traffic */
	millis patience;		/* a request gives up after this wait; 0: never */
	millis deadline;		/* from arrival to completion; 0: none */
	int64_t initial_replicas;	/* -1: what the first ten minutes of traffic need */
	struct lendable lendable;
	const struct telemetry_window *telemetry;
	size_t telemetry_count;
};

struct group_world {
	const struct stockout_window *stockouts;
	size_t stockout_count;
	const struct loss_window *losses;
	size_t loss_count;
	int64_t loss_per_hour_ppm; /* chance of a running machine to be taken, per hour */
	int64_t failed_start_ppm;  /* starts that never get ready */
	int64_t slow_start_ppm;	   /* starts that take slow_factor as long */
	int64_t slow_factor_permille;
	int64_t wake_refused_ppm;
	bool wake_refused_by_hour;   /* all wakes of an hour alike, instead of each for itself */
	struct quantiles wake;	     /* true lead time of stopped machines; 0: as the manifest says */
	struct quantiles first_wake; /* of those that never ran; 0: as `wake`, else as the manifest says */
};

struct world_spec {
	const struct pool_world *pools;	  /* one per fleet pool */
	const struct group_world *groups; /* one per fleet group */
};

extern const struct pool_world pool_world_default;
extern const struct group_world group_world_default;

/* Nothing goes wrong and the manifest is right. Lives in the arena. */
struct world_spec world_spec_default(const struct fleet_spec *fleet, struct arena *a);
