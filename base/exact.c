#include "base/exact.h"

#include <string.h>

static const double LN2_HIGH = 6.93147180369123816490e-01;
static const double LN2_LOW = 1.90821492927058770002e-10;

static double power_of_two(int n)
{
	uint64_t bits = (uint64_t)(n + 1023) << 52;
	double v;

	memcpy(&v, &bits, sizeof v);
	return v;
}

double exact_exp(double x)
{
	if (!(x > -700))
		return x <= -700 ? 9.859676543759770e-305 : 1;
	if (x > 700)
		x = 700;
	int n = (int)(x * 1.44269504088896338700 + (x < 0 ? -0.5 : 0.5));
	double r = x - n * LN2_HIGH - n * LN2_LOW, sum = 1;

	/* Taylor series by Horner's rule; |r| <= 0.35 leaves less than 1e-16 after 13 terms. */
	for (int i = 13; i > 0; i--)
		sum = 1 + sum * r / i;
	return sum * power_of_two(n);
}

double exact_log(double x)
{
	uint64_t bits;

	if (!(x > 2.3e-308))
		return -700;
	memcpy(&bits, &x, sizeof bits);
	int n = (int)(bits >> 52) - 1023;
	bits = (bits & ((UINT64_C(1) << 52) - 1)) | (UINT64_C(1023) << 52);
	double m;
	memcpy(&m, &bits, sizeof m);
	if (m > 1.41421356237309514547) {
		m /= 2;
		n++;
	}
	/* log(m) = 2 atanh(f); |f| <= 0.172 leaves less than 1e-17 after 11 terms. */
	double f = (m - 1) / (m + 1), square = f * f, sum = 0;
	for (int i = 21; i > 0; i -= 2)
		sum = sum * square + 1.0 / i;
	return n * LN2_HIGH + (n * LN2_LOW + 2 * f * sum);
}

double exact_sqrt(double x)
{
	/* One instruction that IEEE 754 rounds correctly; -fno-math-errno keeps it from becoming a call. */
	return x > 0 ? __builtin_sqrt(x) : 0;
}

/* P. J. Acklam, "An algorithm for computing the inverse normal cumulative distribution function", 2003. */
static double tail_quantile(double p)
{
	static const double c[] = { -7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
				    -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00 };
	static const double d[] = { 7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
				    3.754408661907416e+00 };
	double q = exact_sqrt(-2 * exact_log(p));

	return (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
	       ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
}

double exact_normal_quantile(double p)
{
	static const double a[] = { -3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
				    1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00 };
	static const double b[] = { -5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02,
				    6.680131188771972e+01, -1.328068155288572e+01 };

	if (p < 1e-300)
		p = 1e-300;
	if (p > 1 - 1e-16)
		p = 1 - 1e-16;
	if (p < 0.02425)
		return tail_quantile(p);
	if (p > 1 - 0.02425)
		return -tail_quantile(1 - p);
	double q = p - 0.5, r = q * q;
	return (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
	       (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
}

int64_t exact_round(double x)
{
	const double most = 9007199254740992.0;

	if (!(x > -most))
		return x <= -most ? -INT64_C(9007199254740992) : 0;
	if (x > most)
		x = most;
	return (int64_t)(x < 0 ? x - 0.5 : x + 0.5);
}

void exact_lognormal_points(double cv, double *points, int count)
{
	const double sigma = exact_sqrt(exact_log(1 + cv * cv));
	double sum = 0;

	for (int i = 0; i < count; i++) {
		points[i] = exact_exp(sigma * exact_normal_quantile((i + 0.5) / count));
		sum += points[i];
	}
	for (int i = 0; i < count; i++)
		points[i] = points[i] / sum * count;
}
