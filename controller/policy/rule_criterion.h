/*
 * Which rule a pool follows: the cheapest whose shadow would have kept the
 * objective on the record, cautious about rare bursts, with a prior for the
 * first hours. Also the price of every objective.
 */
#pragma once
#include "controller/policy/plan.h"
#include "controller/policy/shadow.h"

/* What all shadows of a pool have seen, with the same forgetting as their sums. */
struct shadow_record {
	double arrived;	     /* requests */
	double ticks, hours; /* counted */
	double level_ticks;  /* sum of the level: replica-ticks of demand */
};

struct choice {
	int64_t rule;
	double share, target;	 /* late shares */
	int64_t cheaper, dearer; /* rules, ABSENT when there is none */
};

/* What a choice weighs. */
struct choice_input {
	const struct family *family;
	const struct shadow *shadows;
	const struct shadow_record *record;
	double late_allowed;   /* the objective */
	double objective_wait; /* seconds */
	double own_share;      /* real late share, drawn towards the objective */
	double violation_cost; /* replica-ticks a late request is worth; 0: the objective rules */
	double ticks_per_hour;
	int64_t present;    /* rule in force, ABSENT at first */
	bool without_tiers; /* only rules without fast tiers */
};

/* Fills what is expected of each rule before anything is known. `objective_wait` in seconds. */
void choice_priors(struct family *f, const struct tier_times *t, double objective_wait);
struct choice choose_rule(const struct choice_input *in);
/* Late share of a rule on the record, with caution and prior, and its cost in replica-ticks per tick. */
double choice_share(const struct choice_input *in, size_t rule);
/* The same on the record alone. */
double choice_record_share(const struct choice_input *in, size_t rule);
/* What the largest margin that is open would not have avoided, as a share of the requests. */
double choice_sunk_share(const struct choice_input *in);
double choice_cost(const struct choice_input *in, size_t rule);
