/*
 * What other settings would have come to. What was decided cannot be
 * changed after the fact, since what followed depended on it; so the
 * recorded arrivals go through a modelled cluster, once with the settings of
 * the time and once with the others, and the two models are compared.
 */
#pragma once
#include "controller/commands/replay_fold.h"

struct replay_telling {
	const char *output;    /* form of the comparison */
	bool is_progress_told; /* on standard error, as lines {"progress":0.42}; else on a terminal, for people */
};

/* Prints the comparison. */
bool replay_with(struct history *h, const struct manifest *then, const struct manifest *other,
		 const struct replay_range *range, const struct replay_telling *telling, struct error *e) MUST_USE;
