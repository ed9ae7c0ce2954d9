/*
 * One run is one draw of chance: when machines fail, how long they take. What
 * a policy is judged by is the mean of several draws, and their range says how
 * far chance goes. Pure.
 */
#pragma once
#include "controller/simulation/simulate.h"

/* The first draw has the seed itself, the others seeds that follow from it: equal seeds give equal draws. */
uint64_t draw_seed(uint64_t seed, size_t draw);
/*
 * The mean of `count` > 0 draws, `pools` scores each, one draw after the other. Classes are not in it. `out`, one per
 * pool, may be the first draw.
 */
void draws_mean(const struct pool_score *draws, size_t count, size_t pools, struct pool_score *out);
