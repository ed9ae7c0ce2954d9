/*
 * What a manifest can't know about a modelled world: the truth behind the
 * priors, and what goes wrong when. Times of windows are since the start of
 * the traces. Pure values, indexed like the pools and groups of the fleet.
 */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "controller/policy/pool.h"

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
	bool wake_refused_by_hour; /* all wakes of an hour alike, instead of each for itself */
	struct quantiles wake;	   /* true lead time of stopped machines; 0: as the manifest says */
};

struct world_spec {
	const struct pool_world *pools;	  /* one per fleet pool */
	const struct group_world *groups; /* one per fleet group */
};

extern const struct pool_world pool_world_default;
extern const struct group_world group_world_default;

/* Nothing goes wrong and the manifest is right. Lives in the arena. */
struct world_spec world_spec_default(const struct fleet_spec *fleet, struct arena *a);
