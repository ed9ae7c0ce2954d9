/*
 * The results of one run for eyes: collects tick by tick in bounded memory
 * (at most REPORT_POINTS points a pool, whatever the length of the run) and
 * writes report.html, one page that needs nothing beside itself.
 */
#pragma once
#include "controller/simulation/simulate.h"

#include <stdio.h>

enum { REPORT_POINTS = 2000, REPORT_DECISIONS = 400 };

/* What the run was; everything pointed to outlives the report. */
struct report_run {
	const struct fleet_spec *fleet;
	const char *policy, *setting; /* setting: "" for the defaults */
	const char *traffic;	      /* where it came from, for people */
	const char *program;	      /* "preheat 0.1.0" */
	uint64_t seed;
	millis start;	 /* wall clock at second 0 of the traffic */
	millis interval; /* of a tick */
	millis warm_up;
};

/* One pool in one run of a comparison, Preheat's own included: what the scored part came to. Texts are copied. */
struct report_rival {
	size_t pool;
	const char *family, *setting;
	double dollars, gpu_hours, late_share;
	int64_t draws; /* that they are means of */
};

struct report;

struct report *report_new(const struct report_run *run);
void report_free(struct report *r); /* takes NULL */
/* The tick of a struct observer whose user is the report. */
bool report_tick(void *report, const struct tick_view *v, struct error *e);
/* What all draws came to, and per pool what the draw did whose ticks were seen; copied. */
void report_result(struct report *r, const struct run_result *result, const struct pool_score *first);
void report_add_rival(struct report *r, const struct report_rival *rival);
/* Replaces the file as a whole or leaves it as it was. */
bool report_write(const struct report *r, const char *path, struct error *e) MUST_USE;

/* On a terminal, after report_result(): a table, small charts, and what to look at next. */
void report_print(const struct report *r, bool is_wide, FILE *out);
/* Commands to go on with. `folder`: where report.html and history.db of this run are, NULL when nothing was kept. */
void report_print_next(const struct report *r, const char *folder, FILE *out);
