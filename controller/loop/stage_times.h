/* The last measured durations of a stage, for whoever shows them; the policy learns from the same events on its own. */
#pragma once
#include "controller/web/published.h"

enum { STAGE_TIMES_KEPT = 64 };

/* Zeroed at first. */
struct stage_times {
	millis last[STAGE_TIMES_KEPT]; /* a ring */
	int64_t count;		       /* all that were seen */
};

void stage_times_add(struct stage_times *t, millis duration);
/* Of those kept, by nearest rank; samples 0 without any. */
struct published_stage stage_times_show(const struct stage_times *t);
/* The stages that ended in a tick, into one ring a stage. */
void stage_times_note(struct stage_times stages[STAGE_COUNT], const struct pool_snapshot *s);
