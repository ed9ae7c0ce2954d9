/*
 * --compare: the rivals' sweeps on the world that Preheat just ran in, one
 * fresh world a setting, on all cores. What comes out is the same however
 * many there are.
 */
#pragma once
#include "base/buf.h"
#include "controller/commands/team_autoscaler.h"
#include "controller/report/report.h"
#include "controller/simulation/rivals/compare.h"

#include <stdio.h>

struct compare_setup {
	/* World, warm-up and stop flag; policy and setting as Preheat ran. Its observers are not called. */
	const struct simulation *simulation;
	const struct run_result *ours;	    /* Preheat's own result */
	size_t draws;			    /* that it is the mean of; what is chosen runs in as many */
	const char *rivals;		    /* "hpa,kpa"; NULL: all */
	const struct team_autoscaler *team; /* run beside the sweeps, each for its pool */
	size_t team_count;
};

/* What --compare came to; everything lives in the arena it was made in. */
struct compare_result {
	const struct compare_setup *setup;
	struct comparison comparison; /* the first row is Preheat's own */
	struct oracle_bound *oracles; /* one per pool */
};

/* Whether the names exist; an error lists those that do. NULL is fine. */
bool compare_check(const char *rivals, struct error *e) MUST_USE;
/* A run that was stopped early succeeds with the rows that were done (comparison.is_stopped). */
bool compare_run(const struct compare_setup *setup, struct arena *a, struct compare_result *out,
		 struct error *e) MUST_USE;
/* An array with an object per pool, policy and setting, the bound last of each pool. */
void compare_json(const struct compare_result *r, struct buf *out);
/* The choices of each family beside Preheat and the bound. */
void compare_print(const struct compare_result *r, FILE *out);
void compare_report(const struct compare_result *r, struct report *report);
