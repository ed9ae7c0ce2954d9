/*
 * Pseudo-random numbers that are the same on every machine (xoshiro256**,
 * seeded by splitmix64; Blackman and Vigna 2018). A stream per purpose, so
 * that one more draw here does not shift the draws there.
 */
#pragma once
#include <stdint.h>

struct random {
	uint64_t state[4];
};

/* `purpose` names the stream, e.g. "lead-time"; equal seed and purpose give equal draws. */
struct random random_stream(uint64_t seed, const char *purpose);
uint64_t random_next(struct random *r);
double random_uniform(struct random *r); /* [0, 1) in steps of 2^-53 */
double random_normal(struct random *r);	 /* mean 0, deviation 1 */
/* Log-normal with the given median and 95th percentile, both > 0, p95 >= p50. */
double random_lognormal(struct random *r, double p50, double p95);
int64_t random_round(struct random *r, double value); /* floor or ceiling, mean = value; value >= 0 */
