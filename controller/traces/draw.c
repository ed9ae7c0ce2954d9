#include "controller/traces/draw.h"

#include "base/exact.h"

enum { EXACT_BELOW = 30 };

static double uniform_above_0(struct random *r)
{
	return 1.0 - random_uniform(r);
}

/* The distance from one success to the next is geometric. */
static int64_t binomial_by_gaps(struct random *r, int64_t n, double p)
{
	double log_fail = exact_log(1 - p), left = (double)n;
	int64_t hits = 0;

	if (log_fail >= 0)
		return 0;
	for (;;) {
		left -= 1 + (double)(int64_t)(exact_log(uniform_above_0(r)) / log_fail);
		if (left < 0)
			return hits;
		hits++;
	}
}

int64_t draw_binomial(struct random *r, int64_t n, double p)
{
	if (n <= 0 || p <= 0)
		return 0;
	if (p >= 1)
		return n;
	if (p > 0.5)
		return n - draw_binomial(r, n, 1 - p);
	double mean = (double)n * p;
	if (mean < EXACT_BELOW)
		return binomial_by_gaps(r, n, p);
	int64_t hits = exact_round(mean + exact_sqrt(mean * (1 - p)) * random_normal(r));
	return hits < 0 ? 0 : hits > n ? n : hits;
}

int64_t draw_count(struct random *r, double mean, double dispersion)
{
	if (mean >= EXACT_BELOW) {
		int64_t n = exact_round(mean + exact_sqrt(mean * dispersion) * random_normal(r));
		return n < 0 ? 0 : n;
	}
	double floor = exact_exp(-mean), product = random_uniform(r);
	int64_t n = 0;
	for (; product > floor; n++)
		product *= random_uniform(r);
	return n;
}

static double gamma_from_1(struct random *r, double shape)
{
	double d = shape - 1.0 / 3, c = 1 / exact_sqrt(9 * d);

	for (;;) {
		double x = random_normal(r), v = 1 + c * x;
		if (v <= 0)
			continue;
		v = v * v * v;
		if (exact_log(uniform_above_0(r)) < 0.5 * x * x + d - d * v + d * exact_log(v))
			return d * v;
	}
}

double draw_gap(struct random *r, double cv)
{
	double shape = 1 / (cv * cv);

	if (cv == 1)
		return -exact_log(uniform_above_0(r));
	if (shape >= 1)
		return gamma_from_1(r, shape) / shape;
	double boost = exact_exp(exact_log(uniform_above_0(r)) / shape);
	return gamma_from_1(r, shape + 1) * boost / shape;
}
