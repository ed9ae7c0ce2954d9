/*
 * Functions of real numbers that give the same bits on every machine and
 * with every compiler: only + - * / and root on IEEE doubles, no libm, no
 * contraction (-ffp-contract=off). Errors are below 1e-9 relative.
 */
#pragma once
#include <stdint.h>

double exact_exp(double x);		/* e^x; clamped to x in [-700, 700] */
double exact_log(double x);		/* natural logarithm; x > 0, else -700 */
double exact_sqrt(double x);		/* 0 for x <= 0 */
double exact_normal_quantile(double p); /* inverse of the standard normal distribution, 0 < p < 1 (Acklam) */
/* Mid-quantiles of a log-normal distribution with this coefficient of variation, their mean 1. */
void exact_lognormal_points(double cv, double *points, int count);
int64_t exact_round(double x); /* nearest, halves away from 0; clamped to +-2^53 */
