/*
 * The family of rules. A rule is a simple way to size a fleet: a margin
 * over demand, how long it holds a peak, how hard it chases a queue, and
 * whether it uses the fast tiers (lent and stopped machines) with a stock.
 *
 * Source: the laboratory's sizing and tier studies, restated in
 * docs/how-it-decides.md. All quantities are in replicas.
 */
#pragma once
#include "controller/policy/snapshot.h"

enum { HOLDS_MAX = 5, RULES_MAX = 440 };

struct rule {
	double factor; /* e^margin */
	double margin;
	double spare; /* replicas beside the margin; below 0 in rules that let a little demand queue */
	double chase;
	double stock; /* standby as a share of hot; 0 for rules without fast tiers */
	int32_t hold; /* index into family.hold */
	int32_t chase_index;
	bool is_tiered;	    /* uses lent and stopped machines */
	double prior_share; /* late share expected before anything is known */
	double prior_cost;  /* likewise replicas held, relative to demand */
};

/* How long each tier takes, as believed now. 0: the tier does not exist. */
struct tier_times {
	double cold_p50, cold_p95, wake_p50, wake_p95, reclaim_p50, reclaim_p95; /* seconds */
};

struct family {
	struct rule *rules;
	size_t count, tiered_from; /* rules from tiered_from on use the fast tiers */
	double hold[HOLDS_MAX];	   /* seconds */
	size_t hold_count;
};

static inline size_t tiered_count(const struct family *f)
{
	return f->count - f->tiered_from;
}
/* `late_allowed`: share of late requests that the objective allows; very strict ones keep a larger stock. */
void family_init(struct family *f, const struct tier_times *t, double late_allowed, struct rule room[RULES_MAX]);

/* What a rule sees of a fleet, real or shadow. */
struct fleet {
	int64_t ready, wake, cold, reclaim; /* serving; on their way */
	int64_t rouse;			    /* on their way, too: engines that wake; nothing can be cancelled of them */
	int64_t refill, replace, swap;	    /* on their way to be stopped; to replace lent nodes; dear ones */
	int64_t stock, lent, reclaimed;	    /* stopped; lent out; taken back and serving */
	double waiting;			    /* queue, in replicas */
	bool bridge_due;		    /* lent nodes have served long enough and nothing queues */
};

struct demand_view {
	double level;		/* demand of late: demand.h */
	double peak[HOLDS_MAX]; /* largest level over each hold */
	double stock_peak;	/* largest level over the longest hold */
	double service;		/* seconds a request holds its slot */
	double break_even;	/* seconds after which holding a stopped machine costs a cold start */
	int64_t stock_max;	/* stopped machines the node groups allow */
	int64_t replicas_max;	/* hot replicas the node groups allow */
	bool may_be_zero;	/* nothing need be hot while nothing is asked */
	struct tier_times times;
};

/* What a rule wants done, in replicas. */
struct scale_actions {
	double low, high, chase;
	int64_t wished; /* hot replicas, on their way included */
	int64_t reclaim, wake, adopt_refill, cold, refill;
	int64_t cancel_cold, cancel_wake, cancel_reclaim;
	int64_t release, give_back; /* give_back is part of release */
	int64_t replace_wake, replace_cold;
	int64_t stock_low;
	int64_t swap, swapped; /* start in a cheaper group for dear ones; of release: dear ones freed by such a start */
	int64_t kept_for_fast; /* missing for the queue alone and left to the fast tiers: no new machine is asked for */
};

/* True when rule_moves() would ask for nothing: the common case, told fast. */
bool rule_is_at_rest(const struct rule *r, const struct demand_view *d, const struct fleet *f);
/* Stopped machines that the rule keeps at least. */
int64_t rule_stock(const struct rule *r, const struct demand_view *d);
struct scale_actions rule_moves(const struct rule *r, const struct demand_view *d, const struct fleet *f);

enum { OVER_ASK_PERCENT = 120 }; /* of what is missing; the slowest starts are cancelled */
