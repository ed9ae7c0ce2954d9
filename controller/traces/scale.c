#include "controller/traces/scale.h"

#include "base/alloc.h"
#include "base/exact.h"
#include "base/random.h"
#include "controller/traces/generate.h"

#include <stdlib.h>
#include <string.h>

static bool check_bin(const struct bin *b, struct error *e)
{
	if (b->requests <= TRACE_MAX_BIN_REQUESTS && b->prompt_tokens <= TRACE_MAX_BIN_TOKENS &&
	    b->output_tokens <= TRACE_MAX_BIN_TOKENS)
		return true;
	return error_set(
		e, ERROR_INVALID, "the bin at %lld s would hold more than %lld requests or %lld tokens; scale by less",
		(long long)(b->at / SECOND), (long long)TRACE_MAX_BIN_REQUESTS, (long long)TRACE_MAX_BIN_TOKENS);
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

	s->chance = xcalloc((size_t)(2 * s->reach + 1), sizeof *s->chance);
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

static bool scale_bins(const struct trace *in, const struct trace_scaling *how, struct trace *out, struct error *e)
{
	struct random draw = random_stream(how->seed, "scale-bins");
	struct spread s = { .in = in, .draw = draw, .bins = places(in) };

	if (!how->jitter) {
		out->bins = xcalloc(in->bin_count + 1, sizeof *out->bins);
		return multiply(in, how->k, &draw, out, e);
	}
	if (s.bins > TRACE_MAX_BINS)
		return error_set(e, ERROR_INVALID, "jitter would need %lld bins; allowed: %d", (long long)s.bins,
				 TRACE_MAX_BINS);
	s.sigma = (double)how->sigma / (double)in->bin_width;
	s.reach = (int64_t)(4 * s.sigma) + 1;
	s.land = xcalloc((size_t)s.bins + 1, sizeof *s.land);
	out->bins = xcalloc((size_t)s.bins + 1, sizeof *out->bins);
	make_chances(&s);
	bool ok = jitter(&s, how->k, out, e);
	free(s.land);
	free(s.chance);
	return ok;
}

/* Lengths are resampled within windows of this width. */
#define LENGTHS_WINDOW (10 * MINUTE)

struct scaler {
	const struct trace *in;
	const struct trace_scaling *how;
	struct trace *out;
	struct random count, instant, lengths;
	size_t room;
	size_t from, to; /* requests in the window of the one at hand */
};

static void emit(struct scaler *s, const struct request *like, millis arrival)
{
	struct trace *t = s->out;

	t->requests = xgrow(t->requests, t->request_count, &s->room, sizeof *t->requests);
	t->requests[t->request_count] = *like;
	t->requests[t->request_count++].arrival = arrival;
}

/* Clones share the second, not the instant: nobody's service sees five requests in one millisecond. */
static millis within_second(struct scaler *s, millis t)
{
	millis start = t / SECOND * SECOND;
	millis room = s->in->length - start < SECOND ? s->in->length - start : SECOND;

	return start + (millis)(random_uniform(&s->instant) * (double)room);
}

static void requests_multiply(struct scaler *s, const struct request *r)
{
	int64_t copies = random_round(&s->count, s->how->k);

	for (int64_t i = 0; i < copies; i++)
		emit(s, r, i ? within_second(s, r->arrival) : r->arrival);
}

/* Folds a time back at the ends of the trace. */
static millis reflect(millis t, millis length)
{
	while (t < 0 || t >= length)
		t = t < 0 ? -1 - t : 2 * length - 1 - t;
	return t;
}

static void move_window(struct scaler *s, size_t i)
{
	const struct request *all = s->in->requests;
	millis window = all[i].arrival / LENGTHS_WINDOW;

	if (i < s->to)
		return;
	s->from = i;
	for (s->to = i; s->to < s->in->request_count && all[s->to].arrival / LENGTHS_WINDOW == window; s->to++)
		;
}

static void requests_jitter(struct scaler *s, size_t i)
{
	const struct request *all = s->in->requests;
	int64_t copies = random_round(&s->count, s->how->k / SCALE_GROUP);

	move_window(s, i);
	for (int64_t c = 0; c < copies; c++) {
		double shift = (double)s->how->sigma * random_normal(&s->instant);
		millis t = reflect(all[i].arrival + exact_round(shift), s->in->length);
		for (int clone = 0; clone < SCALE_GROUP; clone++) {
			size_t like = s->from + (size_t)(random_uniform(&s->lengths) * (double)(s->to - s->from));
			emit(s, &all[like], clone ? within_second(s, t) : t);
		}
	}
}

static bool scale_requests(const struct trace *in, const struct trace_scaling *how, struct trace *out, struct error *e)
{
	struct scaler s = { .in = in,
			    .how = how,
			    .out = out,
			    .count = random_stream(how->seed, "scale-count"),
			    .instant = random_stream(how->seed, "scale-instant"),
			    .lengths = random_stream(how->seed, "scale-lengths") };

	if ((double)in->request_count * how->k > TRACE_MAX_SCALED_REQUESTS)
		return error_set(
			e, ERROR_INVALID,
			"%zu requests times %g are more than %d; use bins: preheat import TRACE --bin 10s --out BINS",
			in->request_count, how->k, TRACE_MAX_SCALED_REQUESTS);
	for (size_t i = 0; i < in->request_count; i++)
		if (how->jitter)
			requests_jitter(&s, i);
		else
			requests_multiply(&s, &in->requests[i]);
	requests_sort(out->requests, out->request_count);
	return true;
}

static void copy_labels(const struct trace *in, struct trace *out)
{
	if (!in->label_count)
		return;
	out->labels = xcalloc(in->label_count, sizeof *out->labels);
	for (size_t i = 0; i < in->label_count; i++)
		out->labels[i] = xstrdup(in->labels[i]);
	out->label_count = in->label_count;
}

bool trace_scale(const struct trace *in, struct trace_scaling how, struct trace *out, struct error *e)
{
	struct trace t = { .is_binned = in->is_binned, .bin_width = in->bin_width };

	if (!(how.k > 0 && how.k <= TRACE_MAX_SCALE) || how.sigma < 0)
		return error_set(e, ERROR_INVALID, "a trace cannot be scaled by %g; allowed: above 0, up to %d", how.k,
				 TRACE_MAX_SCALE);
	how.jitter = how.jitter && how.k > SCALE_PLAIN_UP_TO;
	if (!how.sigma)
		how.sigma = in->length <= 2 * HOUR ? 60 * SECOND : 300 * SECOND;
	if (how.sigma > in->length)
		how.sigma = in->length;
	if (!(in->is_binned ? scale_bins(in, &how, &t, e) : scale_requests(in, &how, &t, e))) {
		trace_release(&t);
		return false;
	}
	copy_labels(in, &t);
	t.length = in->length;
	*out = t;
	return true;
}
