/*
 * A shadow fleet: a modelled fleet that follows one rule on the demand
 * really seen. Ready machines, starts on their way, and one wait that grows
 * while demand exceeds it and shrinks otherwise.
 */
#pragma once
#include "controller/policy/rule.h"

enum {
	COLD_RING = 128, /* steps of starts ahead */
	FAST_RING = 64,	 /* likewise, of fast tiers */
	STOCK_BLOCKS = 8,
	DEALS = 16, /* lead times are dealt from that many equally likely ones */
};

struct shadow {
	double backlog;			      /* replica-seconds of work that waits: kept when the fleet changes */
	double cost;			      /* replica-ticks at full price, with start charges */
	double held;			      /* replica-ticks, without them */
	double late, late_hour, late_squares; /* requests; of this hour; sum over past hours of squares */
	double bad_hours;		      /* past hours with late requests */
	int32_t ready, reclaimed, stock;
	int32_t cold, wake, reclaim, refill, replace_cold, replace_wake;
	int32_t deals;
	int32_t quiet_ticks;		 /* since lent nodes serve and nothing queues */
	int32_t block_low[STOCK_BLOCKS]; /* least stock per block of the break-even time */
	uint16_t *cold_ring;		 /* COLD_RING; NULL while no cold start is on its way: mostly */
};

/* Starts on their way that only a fleet with fast tiers has. Apart, as most pools have none, and it is most of the
 * size. */
struct shadow_tiers {
	uint16_t refill_ring[COLD_RING], replace_ring[COLD_RING];
	uint16_t wake_ring[FAST_RING], reclaim_ring[FAST_RING], bridge_ring[FAST_RING];
};

/* Lead times in the order in which starts get them. */
struct shadow_deals {
	int32_t cold[DEALS], wake[DEALS], reclaim[DEALS]; /* steps of their rings */
	int64_t samples;				  /* measured starts that they were made from */
};

/* One tick of what was really seen, the same for all shadows of a pool. */
struct shadow_tick {
	const double *demand; /* replicas, one per reading */
	size_t readings;
	double most_demand; /* largest of them */
	double seconds;	    /* per reading */
	double arrived;	    /* requests */
	double objective_wait;
	double standby_price; /* share of the full price */
	double drain_ticks;   /* a released replica is billed that long */
	double wake_refused;  /* share of wakes that are refused */
	int64_t tick;
	int64_t cold_step; /* ticks per step of the cold rings */
	int64_t fast_step; /* likewise of the fast rings */
	int32_t lendable;  /* nodes that batch could lend, taken back ones included */
	int32_t block, block_is_new;
	int32_t bridge_ticks; /* lent nodes serve that long before they are replaced */
	const struct shadow_deals *deals;
	double cold_charge, fast_charge, wake_charge; /* replica-ticks a start costs beyond its time */
	bool counts;				      /* costs and late requests are added up */
	bool may_release;
};

/* The one before must have been released. */
void shadow_start(struct shadow *s, int64_t ready);
/* What it holds beside itself; zeroed, it holds nothing. */
void shadow_release(struct shadow *s);
/* `x`: NULL where the rule uses no fast tiers; zeroed before the first step. */
void shadow_step(struct shadow *s, struct shadow_tiers *x, const struct rule *r, const struct demand_view *d,
		 const struct shadow_tick *t);
/* Ends an hour of the record; `keep` is the share of the past that still counts. */
void shadow_end_hour(struct shadow *s, double keep);
