#include "base/random.h"

#include "base/exact.h"

static uint64_t splitmix(uint64_t *x)
{
	uint64_t z = (*x += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

struct random random_stream(uint64_t seed, const char *purpose)
{
	uint64_t x = seed ^ UINT64_C(0xcbf29ce484222325);
	struct random r;

	for (; *purpose; purpose++)
		x = (x ^ (unsigned char)*purpose) * UINT64_C(0x100000001b3);
	for (int i = 0; i < 4; i++)
		r.state[i] = splitmix(&x);
	return r;
}

static uint64_t rotate(uint64_t x, int by)
{
	return (x << by) | (x >> (64 - by));
}

uint64_t random_next(struct random *r)
{
	uint64_t *s = r->state;
	uint64_t result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate(s[3], 45);
	return result;
}

double random_uniform(struct random *r)
{
	return (double)(random_next(r) >> 11) * (1.0 / 9007199254740992.0);
}

double random_normal(struct random *r)
{
	return exact_normal_quantile(((double)(random_next(r) >> 12) + 0.5) * (1.0 / 4503599627370496.0));
}

double random_lognormal(struct random *r, double p50, double p95)
{
	const double z95 = 1.6448536269514722;

	return p50 * exact_exp(exact_log(p95 / p50) / z95 * random_normal(r));
}

int64_t random_round(struct random *r, double value)
{
	int64_t whole = (int64_t)value;

	return whole + (random_uniform(r) < value - (double)whole);
}
