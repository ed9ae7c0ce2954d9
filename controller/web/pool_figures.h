/* Figures that several places show alike: metrics, status objects and `preheat status`. */
#pragma once
#include "base/buf.h"
#include "controller/web/published.h"

/* Hot replicas beyond demand, in thousandths; negative when demand is larger. */
int64_t figure_headroom_milli(const struct pool_decision *d);
/* How long the hot replicas need for what waits now; ABSENT when something waits and nothing is hot. */
millis figure_wait(const struct pool_decision *d);
/* "2.5s", or "none hot". */
void figure_wait_text(const struct pool_decision *d, struct buf *out);
/* "load-slow" ...: as a label; "ModelLoadSlow": as a type of condition. */
const char *problem_name(enum pool_problem problem);
const char *problem_condition(enum pool_problem problem);
/* "3.2" of 3200; shortest text with one digit after the point. */
void figure_replicas(int64_t milli, struct buf *out);
/* "6m20s/10m50s"; nothing when p95 is 0. */
void figure_lead_time(const struct pool_decision *d, struct buf *out);
