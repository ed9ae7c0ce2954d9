/* Counts and waiting times drawn at random, the same on every machine. */
#pragma once
#include "base/random.h"

/* How many of n succeed, each with chance p. Exact below 30 expected, else by the normal law. */
int64_t draw_binomial(struct random *r, int64_t n, double p);
/* Mean `mean`, variance mean * dispersion (1: Poisson; above 30 by the normal law, below it always Poisson). */
int64_t draw_count(struct random *r, double mean, double dispersion);
/* Mean 1 and coefficient of variation `cv` > 0 (1: exponential). Marsaglia and Tsang 2000. */
double draw_gap(struct random *r, double cv);
