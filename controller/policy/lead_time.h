/*
 * How long a start takes, learned per kind and stage from the starts that
 * were seen. Durations are taken as log-normal; the manifest counts as a
 * few samples, fewer with each measured one, and at last not at all.
 */
#pragma once
#include "controller/policy/plan.h"
#include "controller/policy/rule.h"

enum { LEAD_PRIOR_SAMPLES = 6, LEAD_ENOUGH_SAMPLES = 24 };

/* Forgetting sums of logarithms of seconds. */
struct lead_sums {
	double n, sum, squares;
};

struct lead_state {
	struct lead_sums total[START_KIND_COUNT];
	struct lead_sums
		first_wake; /* of machines bought for standby that had never run; total[START_WAKE] has the others */
	int64_t samples;
	double asked_wakes, refused_wakes; /* forgetting, half-life about an hour */
};

struct lead {
	double p50, p95; /* seconds; 0: no such tier */
};

/* Takes the tick's events in. */
void lead_observe(struct lead_state *l, const struct pool_snapshot *s, millis interval);
/* What is believed of a kind of start of this pool. */
struct lead lead_believed(const struct lead_state *l, const struct fleet_spec *fleet, const struct pool_spec *spec,
			  enum start_kind kind);
/* All tiers of a pool; a tier that it has not is 0. */
struct tier_leads {
	struct lead cold, wake, reclaim, place, rouse;
	struct tier_times times;
};
/* `first`: the share of the machines that stand by that have never run; a wake is taken for a mixture of both. */
struct tier_leads lead_tiers(const struct lead_state *l, const struct fleet_spec *fleet, const struct pool_spec *spec,
			     double first);
double lead_first_share(const struct pool_snapshot *s);
/* The i-th of n equally likely lead times, in seconds. */
double lead_quantile(struct lead lead, int i, int n);
/* Median of what remains for a start that has already taken `age` seconds. */
double lead_remaining(struct lead lead, double age);
/* An age that all but one start in a hundred reach sooner. */
double lead_overdue(struct lead lead);
/* A start of that age is counted on no more: half as old again as that. */
bool lead_is_overdue(struct lead lead, double age);
