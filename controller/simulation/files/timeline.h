/*
 * timeline.csv: a row per tick and pool. t_s is the end of the tick since
 * the start of the traffic; levels are of that instant, the rest sums over
 * the tick.
 */
#pragma once
#include "base/buf.h"
#include "controller/simulation/simulate.h"

struct timeline;

/* NULL with an error when it cannot be made. Nothing has the name before timeline_commit(). */
struct timeline *timeline_open(const char *path, struct error *e) MUST_USE;
/* The tick of a struct observer whose user is the timeline. */
bool timeline_tick(void *timeline, const struct tick_view *v, struct error *e);
/* Frees, whatever happens. */
bool timeline_commit(struct timeline *t, struct error *e) MUST_USE;
void timeline_abandon(struct timeline *t); /* takes NULL */

/* summary.json: what a run came to, for programs. */

struct summary_run {
	const struct fleet_spec *fleet;
	const char *program; /* "preheat 0.1.0" */
	const char *policy, *setting;
	uint64_t seed;
	millis interval, warm_up;
	const struct pool_score *first; /* of the draw that timeline.csv is of, one per pool; NULL: there is one only */
	const char *recorded;		/* what a recording measured, as JSON; NULL: there was none */
};

void summary_json(const struct summary_run *run, const struct run_result *result, struct buf *out);
