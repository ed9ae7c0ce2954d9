#include "controller/traces/generate.h"
#include "controller/traces/scale.h"

#include "base/exact.h"

#include <stdlib.h>

static bool check_bin(const struct bin *b, struct error *e)
{
	if (b->requests <= TRACE_MAX_BIN_REQUESTS && b->prompt_tokens <= TRACE_MAX_BIN_TOKENS &&
	    b->output_tokens <= TRACE_MAX_BIN_TOKENS)
		return true;
	return error_set(
		e, ERROR_INVALID, "the bin at %lld s would hold more than %lld requests or %lld tokens; scale by less",
		(long long)(b->at / SECOND), (long long)TRACE_MAX_BIN_REQUESTS, (long long)TRACE_MAX_BIN_TOKENS);
}

static void *must(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

static bool multiply(const struct trace *in, double k, struct random *r, struct trace *out, struct error *e)
{
	for (size_t i = 0; i < in->bin_count; i++) {
		const struct bin *b = &in->bins[i];
		int64_t n = k < 1 ? draw_binomial(r, b->requests, k) : random_round(r, (double)b->requests * k);
		double share = b->requests ? (double)n / (double)b->requests : 0;
		struct bin scaled = { b->at, n, random_round(r, (double)b->prompt_tokens * share),
				      random_round(r, (double)b->output_tokens * share) };
		if (!check_bin(&scaled, e))
			return false;
		out->bins[out->bin_count++] = scaled;
	}
	return true;
}

/* Tokens stay fractions until all groups have landed. */
struct landing {
	double groups, prompt_tokens, output_tokens;
};

struct spread {
	const struct trace *in;
	struct landing *land;
	int64_t bins;	/* places on the grid from the first bin to the last */
	double *chance; /* of a shift by j bins given that it is none of the earlier ones */
	int64_t reach;	/* j from -reach to reach */
	double sigma;	/* in bins */
	struct random draw;
};

static void land(struct spread *s, const struct bin *b, int64_t place, int64_t groups)
{
	while (place < 0 || place >= s->bins)
		place = place < 0 ? -1 - place : 2 * s->bins - 1 - place;
	struct landing *l = &s->land[place];
	double share = (double)groups * SCALE_GROUP / (double)b->requests;
	l->groups += (double)groups;
	l->prompt_tokens += (double)b->prompt_tokens * share;
	l->output_tokens += (double)b->output_tokens * share;
}

/* Every group of five lands on its own; many at once are drawn as counts per place. */
static void spread_bin(struct spread *s, const struct bin *b, int64_t groups)
{
	int64_t home = (b->at - s->in->bins[0].at) / s->in->bin_width;

	if (groups < s->reach) {
		for (int64_t g = 0; g < groups; g++)
			land(s, b, home + exact_round(s->sigma * random_normal(&s->draw)), 1);
		return;
	}
	for (int64_t j = 0; j <= 2 * s->reach && groups; j++) {
		int64_t n = draw_binomial(&s->draw, groups, s->chance[j]);
		if (n)
			land(s, b, home + j - s->reach, n);
		groups -= n;
	}
}

static void make_chances(struct spread *s)
{
	double left = 0;

	s->chance = must(calloc((size_t)(2 * s->reach + 1), sizeof *s->chance));
	for (int64_t j = 2 * s->reach; j >= 0; j--) {
		double z = s->sigma > 0 ? (double)(j - s->reach) / s->sigma : 0;
		double weight = exact_exp(-0.5 * z * z);
		left += weight;
		s->chance[j] = weight / left;
	}
}

static bool collect(struct spread *s, struct trace *out, struct error *e)
{
	for (int64_t i = 0; i < s->bins; i++) {
		const struct landing *l = &s->land[i];
		struct bin b = { s->in->bins[0].at + i * s->in->bin_width, exact_round(l->groups * SCALE_GROUP),
				 random_round(&s->draw, l->prompt_tokens), random_round(&s->draw, l->output_tokens) };
		if (!check_bin(&b, e))
			return false;
		out->bins[out->bin_count++] = b;
	}
	return true;
}

static bool jitter(struct spread *s, double k, struct trace *out, struct error *e)
{
	for (size_t i = 0; i < s->in->bin_count; i++) {
		const struct bin *b = &s->in->bins[i];
		if (b->requests)
			spread_bin(s, b, random_round(&s->draw, (double)b->requests * k / SCALE_GROUP));
	}
	return collect(s, out, e);
}

static int64_t places(const struct trace *t)
{
	return t->bin_count ? (t->bins[t->bin_count - 1].at - t->bins[0].at) / t->bin_width + 1 : 0;
}

bool scale_bins(const struct trace *in, const struct trace_scaling *how, struct trace *out, struct error *e)
{
	struct random draw = random_stream(how->seed, "scale-bins");
	struct spread s = { .in = in, .draw = draw, .bins = places(in) };

	if (!how->jitter) {
		out->bins = must(calloc(in->bin_count + 1, sizeof *out->bins));
		return multiply(in, how->k, &draw, out, e);
	}
	if (s.bins > TRACE_MAX_BINS)
		return error_set(e, ERROR_INVALID, "jitter would need %lld bins; allowed: %d", (long long)s.bins,
				 TRACE_MAX_BINS);
	s.sigma = (double)how->sigma / (double)in->bin_width;
	s.reach = (int64_t)(4 * s.sigma) + 1;
	s.land = must(calloc((size_t)s.bins + 1, sizeof *s.land));
	out->bins = must(calloc((size_t)s.bins + 1, sizeof *out->bins));
	make_chances(&s);
	bool ok = jitter(&s, how->k, out, e);
	free(s.land);
	free(s.chance);
	return ok;
}
