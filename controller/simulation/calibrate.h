/*
 * What a recording measured of the world in which it was made, for a
 * simulation that is to be that world: what a replica holds and how long a
 * request keeps its slot, how long starts took by stage and how many failed,
 * when node groups had no machines, when nobody could read. And the fleet
 * that was there: its hours and late requests beside what the model makes of
 * the same replicas, so that a model that does not fit is known. Pure.
 */
#pragma once
#include "controller/policy/cost.h"
#include "controller/simulation/world.h"

struct calibration;

/* For the pools of `fleet`, which need not be the one that was recorded; `start` is second 0 of the traces. All lives
 * in the arena. */
struct calibration *calibration_new(const struct fleet_spec *fleet, millis start, struct arena *a);
/* A recorded tick with the fleet and the plans of its time, in order of time; pools and groups are found by name. */
void calibration_tick(struct calibration *c, const struct snapshot *s, const struct pool_plan *const *plans);

/* Of one pool; 0: the recording does not tell, the manifest stands. */
struct measured {
	int64_t slots;	      /* sequences that a replica held while requests queued */
	millis service;	      /* mean time that a request kept its slot */
	int64_t lead_samples; /* starts on new machines that served */
	struct quantiles lead;
	int64_t ticks, blind_ticks; /* blind: with replicas, and none could be read */
	bool has_tokens;	    /* completed requests came with their tokens */
	bool has_starts;	    /* some were on their way */
	bool has_unseen_starts;	    /* replicas came, and of no machine was told that it started */
};
const struct measured *calibration_measured(struct calibration *c, size_t pool);

/*
 * Fills what `spec` leaves to the manifest. Where requests came without tokens those of the traces, one per pool or
 * NULL, are given some, which last as long as a request kept its slot.
 */
void calibration_world(struct calibration *c, struct trace *const *traces, struct world_spec *spec);

/* The recorded fleet of one pool, as it was and as the model has it. */
struct recorded_fleet {
	struct cost_sums recorded;
	double late_variance; /* of the model's late requests, by what nobody saw: when in its minute each came */
	double gpu_hours, dollars, late_share;			 /* recorded */
	double model_gpu_hours, model_dollars, model_late_share; /* the same replicas in the model */
	double hours_ratio, late_ratio;				 /* of the model, by the recorded; 1 where both are 0 */
	bool fits; /* within a tenth of the hours and 1.5 times the late share, or chance */
};

/* Another stretch of the same pool; zeroed before the first. */
void recorded_fleet_add(struct recorded_fleet *to, const struct recorded_fleet *more);

/* Shares of late requests below this on both sides are equal. */
#define RECORDED_LATE_LEAST 0.001

/* Sends the trace through the replicas that were recorded, as `spec` models them; one of single requests some times
 * over, with other moments and lengths: the model's late share is the mean. What was on its way to serve, or given up
 * before, is billed as it was. */
struct recorded_fleet calibration_replay(struct calibration *c, size_t pool, const struct trace *trace,
					 const struct world_spec *spec);
