/*
 * What no autoscaler can undercut: the cost of one that knows every arrival.
 *
 * The relaxed problem: choose a capacity for every tick; pay the replicas'
 * time, and for every start the mean lead time; arrivals in ticks whose
 * capacity is below the offered load (mean of the tick, rounded up) are late.
 * The first level is free and no backlog is carried over. For a price mu per
 * late arrival a dynamic program over (tick, capacity) is exact. The bound is
 * the Lagrangian dual: the largest, over mu, of that cost less mu times the
 * late arrivals that the objective allows.
 *
 * It bounds the relaxed problem from below. A real fleet also drains, fills
 * a backlog and draws its lead times; on the other hand a short overload
 * below the objective's wait, which a real fleet may use, counts as late here.
 */
#pragma once
#include "controller/simulation/rivals/load.h"
#include "controller/simulation/world.h"

struct oracle_question {
	const struct load *load;
	size_t from;	   /* first tick that counts */
	double lead_s;	   /* mean, from asking to serving */
	double late_share; /* allowed */
};

struct oracle_bound {
	double replica_hours;
	double price;	   /* mu, replica-seconds a late arrival */
	double late_share; /* of the schedule that is cheapest at the lowest price found to keep the objective */
	int64_t starts;	   /* of that schedule */
};

struct oracle_bound oracle_bound(const struct oracle_question *q, struct arena *a);
/* Mean of the log-normal with this median and 95th percentile, in seconds. */
double oracle_mean_lead(struct quantiles q);
/* From asking for a new machine to serving, in seconds, as it is in this world. */
double oracle_mean_start(const struct pool_spec *pool, const struct pool_world *truth);
