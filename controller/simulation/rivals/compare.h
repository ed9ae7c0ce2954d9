/*
 * What a sweep of rivals says: for each family the cheapest setting that
 * keeps the objective, the one that somebody would have chosen after the
 * first day, and the frontier of cost over lateness that all of them span.
 */
#pragma once
#include "base/arena.h"
#include "controller/simulation/queue.h"
#include "controller/simulation/simulate.h"
#include "controller/simulation/world.h"
#include "controller/traces/trace.h"

#include <stddef.h>

/* One run. */
struct compare_row {
	const char *policy, *setting;
	bool is_rival;	 /* false: Preheat */
	bool is_default; /* the documented default of its family */
	bool uses_standby, uses_lent;
	const struct pool_score *pools; /* one per fleet pool */
	const char *team;		/* the object whose settings these are; NULL: none of the team's */
	size_t team_pool;		/* that it scales */
};

/* Which rows a choice is made among. */
struct compare_filter {
	const char *policy; /* NULL: all rivals */
	bool hot_only;	    /* leaves out those with stopped or lent machines */
};

struct compare_point {
	double late_share, cost;
	size_t row;
};

struct comparison {
	const struct compare_row *rows;
	size_t row_count, pool_count;
	bool is_stopped; /* only some settings were run */
};

enum { NO_ROW = -1 };

/* Dollars; GPU hours when nothing has a price. */
double compare_cost(const struct score *s);

/* The row that keeps `late_ppm` most cheaply on the scored part (or before it, when `on_first`); NO_ROW when none does.
 */
long compare_cheapest(const struct comparison *c, size_t pool, const struct compare_filter *f, int64_t late_ppm,
		      bool on_first);
/* The row with the smallest late share, the cheapest of those; NO_ROW when no row passes the filter. */
long compare_least_late(const struct comparison *c, size_t pool, const struct compare_filter *f, bool on_first);
/* What somebody would choose after the part before the scored one: the cheapest that kept the objective there, or
 * where none did the least late. */
long compare_first_choice(const struct comparison *c, size_t pool, const struct compare_filter *f, int64_t late_ppm);
/* Rows of which none is both cheaper and less late on the scored part; falling cost, rising lateness. In the arena. */
size_t compare_frontier(const struct comparison *c, size_t pool, const struct compare_filter *f, struct arena *a,
			const struct compare_point **out);
/* What the frontier costs at a late share: logarithms interpolated, its ends beyond them; 0 for an empty one. */
double compare_frontier_cost(const struct compare_point *points, size_t count, double late_share);

/*
 * The load that a trace offers, tick by tick: the sequences that would run on
 * an unlimited fleet, mean over the tick, in replicas.
 */

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
