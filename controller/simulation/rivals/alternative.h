/*
 * What one pool's traffic would have come to under another autoscaler, with
 * its node groups to itself. Pure.
 */
#pragma once
#include "controller/simulation/simulate.h"

struct alternative {
	const char *policy, *setting; /* a rival's: "static", "replicas=78" */
	int64_t initial_replicas;     /* 0: as in the world */
};

/* In the world of `as_is`, of the time after its warm-up. False when the setting is bad or an observer ended it. */
bool alternative_run(const struct simulation *as_is, size_t pool, const struct alternative *with, struct score *out,
		     struct error *e) MUST_USE;
/* Replicas that the traffic kept busy at most, in a tick after the warm-up. */
int64_t alternative_peak(const struct simulation *as_is, size_t pool);
