/*
 * What other settings would have come to. What was decided cannot be
 * changed after the fact, since what followed depended on it; so the
 * recorded arrivals go through a modelled cluster, once with the settings of
 * the time and once with the others, and the two models are compared.
 */
#pragma once
#include "controller/commands/replay_fold.h"

/* Prints the comparison; `other` names the manifest in it. */
bool replay_with(struct history *h, const struct manifest *then, const struct manifest *other,
		 const struct replay_range *range, const char *output, struct error *e) MUST_USE;
