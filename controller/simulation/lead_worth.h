/*
 * What a shorter lead time is worth: the same traffic once more through the
 * modelled world, with one part of the lead at half its time, in the world
 * and in what the manifest says of it. By the same seeds on both sides, so
 * that chance is told from worth. Pure.
 */
#pragma once
#include "controller/simulation/simulate.h"

enum { LEAD_WORTH_SEEDS = 5, LEAD_WHOLE = STAGE_COUNT };

/* A part of a pool's lead: of cold starts a stage or LEAD_WHOLE, of wakes LEAD_WHOLE. */
struct lead_part {
	size_t pool;
	enum start_kind kind; /* START_COLD or START_WAKE */
	int stage;
};

struct lead_worth {
	millis shorter;		    /* half the median; 0: neither the world nor the manifest says how long it takes */
	double dollars, late_share; /* a day, as it is */
	double saved, late_with;    /* dollars a day, and the share of late requests, with the half */
	bool is_chance;		    /* the seeds differ by as much */
};

/*
 * `as_is`: the world and the policy; its seed counts up, and its observers see every run: LEAD_WORTH_SEEDS times as it
 * is, and as often with each part. False when the setting is bad or an observer ended it, with the error.
 */
bool lead_worth(const struct simulation *as_is, const struct lead_part *parts, size_t count, struct lead_worth *out,
		struct error *e) MUST_USE;
