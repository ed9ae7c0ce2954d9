/* summary.json: what a run came to, for programs. */
#pragma once
#include "base/buf.h"
#include "controller/simulation/simulate.h"

struct summary_run {
	const struct fleet_spec *fleet;
	const char *program; /* "preheat 0.1.0" */
	const char *policy, *setting;
	uint64_t seed;
	millis interval, warm_up;
};

void summary_json(const struct summary_run *run, const struct run_result *result, struct buf *out);
