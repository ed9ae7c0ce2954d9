/* preheat cost --alternatives: what the same traffic would have cost under what teams run instead, day by day. */
#pragma once
#include "controller/commands/cost.h"

/* Of the history that `q` has open; without a period the last 30 days. */
bool cost_alternatives_print(struct history_args *q, struct cost_period *p, const char *output,
			     struct error *e) MUST_USE;
