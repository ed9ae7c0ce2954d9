/*
 * What a shorter lead time is worth: a trial with one part of the lead at
 * half its time, in the world and in what the manifest says of it.
 */
#pragma once
#include "controller/simulation/trial.h"

enum { LEAD_WHOLE = STAGE_COUNT };

/* A part of a pool's lead: of cold starts a stage or LEAD_WHOLE, of wakes LEAD_WHOLE. */
struct lead_part {
	size_t pool;
	enum start_kind kind; /* START_COLD or START_WAKE */
	int stage;
};

struct lead_worth {
	millis shorter;		  /* half the median; 0: neither the world nor the manifest says how long it takes */
	struct trial_result half; /* with the half */
};

/* As trial_run(). */
bool lead_worth(const struct simulation *as_is, const struct lead_part *parts, size_t count, struct lead_worth *out,
		struct error *e) MUST_USE;
