/*
 * The first row of every comparison from a recording: the fleet that was
 * there, beside what the model makes of it, and whether a verdict on the
 * model can be trusted.
 */
#pragma once
#include "base/buf.h"
#include "controller/simulation/calibrate.h"

#include <stdio.h>

struct recorded_fleets {
	const struct fleet_spec *fleet;
	struct calibration *measured;
	const struct recorded_fleet *pools; /* one per pool; NULL where the traffic is not that of the recording */
};

/* Of each pool what was measured, and the fleet that was there; where the model does not fit, that and why. */
void recorded_fleet_print(struct recorded_fleets f, FILE *out);
/* "recorded": [...] with an object per pool, for summary.json. */
void recorded_fleet_json(struct recorded_fleets f, struct buf *out);
/* Whether the model fits each pool that has traffic. */
bool recorded_fleet_fits(struct recorded_fleets f);
