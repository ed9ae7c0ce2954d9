/* A Kalman filter of a level and its slope, observed once an interval (local linear trend). */
#pragma once
#include <stdbool.h>

struct kalman {
	bool begun;
	double level, slope;
	double p_level, p_cross, p_slope; /* covariance */
};

struct kalman_noise {
	double level, slope, reading; /* variances: q_level, q_trend, r */
};

/* Takes a reading; the level expected one interval later, not below 0. */
double kalman_step(struct kalman *k, const struct kalman_noise *noise, double reading);
