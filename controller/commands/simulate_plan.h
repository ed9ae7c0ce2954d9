/* What `preheat simulate` was asked for: options, and the inputs that they name. */
#pragma once
#include "controller/commands/command.h"
#include "controller/manifest/manifest.h"
#include "controller/simulation/simulate.h"
#include "controller/simulation/world.h"

struct simulate_options {
	struct option_list pools, traces;
	const char *recording, *world, *policy, *out, *output, *rivals;
	double scale;
	bool jitter, compare, force;
	millis tick, start, warm_up; /* start: ABSENT when not given */
	int64_t seed;
};

/* Everything lives in the arena but the traces, which simulate_inputs_release frees. */
struct simulate_inputs {
	struct arena arena;
	struct manifest manifest;
	struct trace *traces;	    /* one per pool, empty without traffic */
	const struct trace **given; /* one per pool, NULL without traffic */
	struct world_spec world;
	const struct policy_ops *policy;
	const char *setting;	   /* of the policy */
	const char *run;	   /* the call, without what does not change its results */
	const char *traffic;	   /* where it came from, for people */
	millis length;		   /* of the longest trace */
	millis start;		   /* wall clock at second 0 of the traffic */
	int64_t *initial_replicas; /* of a recording, one per pool, -1: not told; NULL without */
};

bool simulate_read(const struct simulate_options *o, struct simulate_inputs *in, struct error *e) MUST_USE;
/* The part of it that --recording stands for: traffic, its wall clock, and the manifest unless --pool gave one. */
bool simulate_read_recording(const struct simulate_options *o, struct simulate_inputs *in, struct error *e) MUST_USE;
void simulate_inputs_release(struct simulate_inputs *in);
