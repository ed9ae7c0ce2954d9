/* Runs of the world that a simulation is of, by any policy and under any draw of its chance, on all cores. */
#pragma once
#include "controller/simulation/simulate.h"

struct run_job {
	const struct policy_ops *policy;
	const char *setting;
	size_t draw; /* 0: the simulation's own seed */
};

struct runs {
	const struct simulation *simulation; /* its observers are not called */
	const struct run_job *jobs;
	size_t count;
	const char *what, *unit; /* for the progress: "comparing", "runs" */
};

/* `scores`: as many a job as there are pools, without classes; `is_done`: one flag a job. Stopped early: true, with the
 * jobs done so far. */
bool runs_make(const struct runs *r, struct pool_score *scores, bool *is_done, struct error *e) MUST_USE;
