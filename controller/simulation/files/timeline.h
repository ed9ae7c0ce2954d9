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
