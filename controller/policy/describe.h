/* Writes what a decision saw, expected and wished into its record, in the units of pool_decision.def. */
#pragma once
#include "controller/policy/wish.h"

void describe_decision(const struct snapshot *s, const struct memory *m, size_t pool, const struct learned *l,
		       const struct wish *w, struct pool_decision *d);
