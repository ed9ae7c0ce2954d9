#include "controller/traces/generate.h"

#include "controller/traces/draw.h"
#include "controller/traces/labels.h"

#include "base/exact.h"
#include "base/quantity.h"

#include <stdlib.h>
#include <string.h>

static void *must(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

bool generate_parse_classes(const char *text, struct generate_setup *s, struct error *e)
{
	for (const char *p = text;; p++) {
		size_t len = strcspn(p, ","), name = strcspn(p, "=,");
		int64_t weight = 1000000;
		bool ok = name && name <= TRACE_MAX_LABEL_BYTES && s->class_count < GENERATE_MAX_CLASSES;
		for (size_t i = 0; i < name; i++)
			ok &= (unsigned char)p[i] >= 0x20 && p[i] != '"';
		if (name < len)
			ok = ok && fixed_parse(p + name + 1, len - name - 1, 6, &weight) && weight > 0;
		if (!ok)
			return error_set(e, ERROR_INVALID,
					 "--classes: found '%.*s'; allowed: NAME=WEIGHT,..., up to %d",
					 (int)(len > 60 ? 60 : len), p, GENERATE_MAX_CLASSES);
		s->classes[s->class_count++] = (struct generate_class){ p, name, (double)weight };
		p += len;
		if (!*p)
			return true;
	}
}

static double *make_rates(const struct generate_setup *s, size_t seconds)
{
	double *rates = must(malloc(seconds * sizeof *rates));

	for (size_t i = 0; i < seconds; i++)
		rates[i] = (i / 86400) % 7 >= 5 ? s->rate * s->weekend : s->rate;
	shapes_apply(&s->shapes, s->seed, rates, seconds);
	return rates;
}

struct maker {
	const struct generate_setup *setup;
	struct trace *trace;
	struct random arrivals, lengths, classes;
	size_t room;
	int32_t labels[GENERATE_MAX_CLASSES];
	double weights; /* sum */
};

static int32_t draw_length(struct maker *m, int64_t mean)
{
	double s = m->setup->spread;
	double x = (double)mean * exact_exp(s * random_normal(&m->lengths) - s * s / 2);
	int64_t n = exact_round(x);

	return n < 1 ? 1 : n > TRACE_MAX_TOKENS ? TRACE_MAX_TOKENS : (int32_t)n;
}

static int32_t draw_class(struct maker *m)
{
	const struct generate_setup *s = m->setup;
	double left;

	if (!s->class_count)
		return -1;
	left = random_uniform(&m->classes) * m->weights;
	for (size_t i = 0; i < s->class_count; i++) {
		left -= s->classes[i].weight;
		if (left < 0)
			return m->labels[i];
	}
	return m->labels[s->class_count - 1];
}

static void emit(struct maker *m, millis arrival)
{
	struct trace *t = m->trace;

	if (t->request_count == m->room) {
		m->room = m->room ? m->room * 2 : 4096;
		t->requests = realloc(t->requests, m->room * sizeof *t->requests);
		if (!t->requests)
			abort();
	}
	int32_t prompt = draw_length(m, m->setup->prompt_tokens), output = draw_length(m, m->setup->output_tokens);
	t->requests[t->request_count++] = (struct request){ arrival, prompt, output, draw_class(m) };
}

/* A renewal process on the integral of the rate. */
static void make_requests(struct maker *m, const double *rates, size_t seconds)
{
	double passed = 0, next = draw_gap(&m->arrivals, m->setup->burstiness) * random_uniform(&m->arrivals);

	for (size_t i = 0; i < seconds; i++) {
		while (next < passed + rates[i]) {
			emit(m, (millis)i * SECOND + (millis)((next - passed) / rates[i] * (double)SECOND));
			next += draw_gap(&m->arrivals, m->setup->burstiness);
		}
		passed += rates[i];
	}
}

/* Sum of n lengths: one by one, or by the normal law where many add up. */
static int64_t draw_lengths(struct maker *m, int64_t n, int64_t mean)
{
	int64_t sum = 0;

	if (n < 30) {
		for (int64_t i = 0; i < n; i++)
			sum += draw_length(m, mean);
		return sum;
	}
	double variance = exact_exp(m->setup->spread * m->setup->spread) - 1;
	sum = exact_round((double)mean * ((double)n + exact_sqrt((double)n * variance) * random_normal(&m->lengths)));
	return sum < n ? n : sum;
}

static bool make_bins(struct maker *m, const double *rates, size_t seconds, struct error *e)
{
	size_t width = (size_t)(m->setup->bin / SECOND);
	struct trace *t = m->trace;

	t->is_binned = true;
	t->bin_width = m->setup->bin;
	t->bins = must(calloc(seconds / width + 1, sizeof *t->bins));
	for (size_t i = 0; i < seconds; i += width) {
		double mean = 0;
		for (size_t j = i; j < seconds && j < i + width; j++)
			mean += rates[j];
		double cv = m->setup->burstiness;
		struct bin b = { (millis)i * SECOND, draw_count(&m->arrivals, mean, cv * cv), 0, 0 };
		b.prompt_tokens = draw_lengths(m, b.requests, m->setup->prompt_tokens);
		b.output_tokens = draw_lengths(m, b.requests, m->setup->output_tokens);
		if (b.requests > TRACE_MAX_BIN_REQUESTS || b.prompt_tokens > TRACE_MAX_BIN_TOKENS ||
		    b.output_tokens > TRACE_MAX_BIN_TOKENS)
			return error_set(e, ERROR_INVALID, "more traffic than a bin may hold; lower --rate or --bin");
		t->bins[t->bin_count++] = b;
	}
	return true;
}

static void name_classes(struct maker *m)
{
	struct labels labels = { 0 };

	for (size_t i = 0; i < m->setup->class_count; i++) {
		m->labels[i] = labels_index(&labels, m->setup->classes[i].name, m->setup->classes[i].len);
		m->weights += m->setup->classes[i].weight;
	}
	labels_move(&labels, m->trace);
}

static bool check(const struct generate_setup *s, struct error *e)
{
	if (s->length < 2 * SECOND || s->length > GENERATE_MAX_LENGTH || s->length % SECOND)
		return error_set(e, ERROR_INVALID, "--length: allowed: whole seconds from 2s to 92d");
	if (!(s->rate > 0 && s->rate <= 1e6))
		return error_set(e, ERROR_INVALID, "--rate: allowed: above 0, up to 1000000 requests a second");
	if (s->bin % SECOND || (s->bin && s->bin * 2 > s->length))
		return error_set(e, ERROR_INVALID, "--bin: allowed: whole seconds, at most half of --length");
	if (s->prompt_tokens < 1 || s->prompt_tokens > 1000000 || s->output_tokens < 1 || s->output_tokens > 1000000)
		return error_set(e, ERROR_INVALID, "--prompt-tokens, --output-tokens: allowed: 1 to 1000000");
	if (!(s->spread > 0 && s->spread <= 3))
		return error_set(e, ERROR_INVALID, "--spread: allowed: above 0, up to 3");
	if (!(s->burstiness >= 0.1 && s->burstiness <= 10))
		return error_set(e, ERROR_INVALID, "--burstiness: allowed: 0.1 to 10");
	if (!(s->weekend >= 0 && s->weekend <= 10))
		return error_set(e, ERROR_INVALID, "--weekend: allowed: up to 10");
	if (s->bin && s->class_count)
		return error_set(e, ERROR_INVALID, "--classes: bins have no classes; leave out --bin or --classes");
	return true;
}

static bool make(struct maker *m, const double *rates, size_t seconds, struct error *e)
{
	double expected = 0;

	if (m->setup->bin)
		return make_bins(m, rates, seconds, e);
	for (size_t i = 0; i < seconds; i++)
		expected += rates[i];
	if (expected > TRACE_MAX_SCALED_REQUESTS)
		return error_set(e, ERROR_INVALID, "about %.0f requests; more than %d need bins: --bin 10s", expected,
				 TRACE_MAX_SCALED_REQUESTS);
	name_classes(m);
	make_requests(m, rates, seconds);
	return m->trace->request_count ||
	       error_set(e, ERROR_INVALID, "no request falls into the length; raise --rate or --length");
}

bool trace_generate(const struct generate_setup *s, struct trace *out, struct error *e)
{
	struct trace t = { 0 };
	struct maker m = { .setup = s,
			   .trace = &t,
			   .arrivals = random_stream(s->seed, "arrivals"),
			   .lengths = random_stream(s->seed, "lengths"),
			   .classes = random_stream(s->seed, "classes") };

	if (!check(s, e))
		return false;
	size_t seconds = (size_t)(s->length / SECOND);
	double *rates = make_rates(s, seconds);
	bool ok = make(&m, rates, seconds, e);
	free(rates);
	if (!ok) {
		trace_release(&t);
		return false;
	}
	t.length = trace_end(&t);
	*out = t;
	return true;
}
