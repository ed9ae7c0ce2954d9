/* preheat cost --excess: what GPUs were held for, part by part, and beside it the least that the traffic asked for. */
#pragma once
#include "controller/commands/cost.h"

/* Of the history that `q` has open: the whole hours of the period. */
bool cost_excess_print(struct history_args *q, struct cost_period *p, const char *output, struct error *e) MUST_USE;
