#include "controller/traces/generate.h"

#include "base/alloc.h"
#include "base/exact.h"
#include "base/quantity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void shapes_apply(const struct shapes *s, uint64_t seed, double *rates, size_t seconds);
static int64_t draw_count(struct random *r, double mean, double dispersion);

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
	double *rates = xmalloc(seconds * sizeof *rates);

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

	t->requests = xgrow(t->requests, t->request_count, &m->room, sizeof *t->requests);
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
	t->bins = xcalloc(seconds / width + 1, sizeof *t->bins);
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

struct shape_kind {
	const char *name;
	double peak;
	millis every, length; /* defaults; 0: the shape has no use for it */
	void (*apply)(const struct shape *s, struct random *r, double *rates, size_t seconds);
	const char *help;
};

static void apply_constant(const struct shape *s, struct random *r, double *rates, size_t seconds)
{
	(void)s, (void)r, (void)rates, (void)seconds;
}

enum { PHASES = 1440 };

/* e^(sharpness * cos), scaled to a mean of 1; the largest is the peak. */
static double day_curve(double sharpness, double curve[PHASES])
{
	const double turn_cos = 0.9999904807207345, turn_sin = 0.004363309284746571;
	double c = 1, s = 0, sum = 0;

	for (int i = 0; i < PHASES; i++) {
		curve[i] = exact_exp(sharpness * c);
		sum += curve[i];
		double next = c * turn_cos - s * turn_sin;
		s = s * turn_cos + c * turn_sin;
		c = next;
	}
	for (int i = 0; i < PHASES; i++)
		curve[i] *= PHASES / sum;
	return curve[0];
}

/* Busiest at five eighths of the period: 15:00 of a day. */
static void apply_diurnal(const struct shape *s, struct random *r, double *rates, size_t seconds)
{
	double curve[PHASES], low = 0, high = 50, period = (double)s->every / (double)SECOND;

	(void)r;
	for (int i = 0; i < 50; i++) {
		double middle = (low + high) / 2;
		if (day_curve(middle, curve) < s->peak)
			low = middle;
		else
			high = middle;
	}
	for (size_t i = 0; i < seconds; i++) {
		double turns = (double)i / period - 0.625 + 1;
		double phase = (turns - (double)(int64_t)turns) * PHASES;
		int at = (int)phase;
		double part = phase - at;
		rates[i] *= curve[at] * (1 - part) + curve[(at + 1) % PHASES] * part;
	}
}

/* A sharp rise over a tenth of the length, then a slow fall. */
static void add_burst(double *more, size_t seconds, double from, double length, double height)
{
	double rise = length / 10;

	for (size_t i = (size_t)from; i < seconds && (double)i < from + length; i++) {
		double t = (double)i - from;
		if (t >= 0)
			more[i] += height * (t < rise ? t / rise : (length - t) / (length - rise));
	}
}

static void apply_bursts(const struct shape *s, struct random *r, double *rates, size_t seconds)
{
	double every = (double)s->every / (double)SECOND, length = (double)s->length / (double)SECOND, t = 0;
	double *factors = xmalloc(seconds * sizeof *factors);

	for (size_t i = 0; i < seconds; i++)
		factors[i] = 1;
	while ((t += every * draw_gap(r, 1)) < (double)seconds)
		add_burst(factors, seconds, t, length, (s->peak - 1) * (0.5 + 0.5 * random_uniform(r)));
	for (size_t i = 0; i < seconds; i++)
		rates[i] *= factors[i];
	free(factors);
}

static void apply_steps(const struct shape *s, struct random *r, double *rates, size_t seconds)
{
	size_t every = (size_t)(s->every / SECOND);
	double level = 1;

	for (size_t i = 0; i < seconds; i++) {
		if (i % every == 0)
			level = exact_exp(exact_log(s->peak) * (2 * random_uniform(r) - 1));
		rates[i] *= level;
	}
}

static void apply_ramp(const struct shape *s, struct random *r, double *rates, size_t seconds)
{
	(void)r;
	for (size_t i = 0; i < seconds; i++)
		rates[i] *= 1 + (s->peak - 1) * (double)i / (double)seconds;
}

static void apply_pulses(const struct shape *s, struct random *r, double *rates, size_t seconds)
{
	size_t every = (size_t)(s->every / SECOND), length = (size_t)(s->length / SECOND);

	(void)r;
	for (size_t i = 0; i < seconds; i++)
		rates[i] *= i % every < length ? s->peak : 0;
}

static const struct shape_kind kinds[] = {
	{ "constant", 0, 0, 0, apply_constant, "the rate as it is" },
	{ "diurnal", 1.7, DAY, 0, apply_diurnal,
	  "a wave of period EVERY, PEAK times the mean at 15:00, the mean kept" },
	{ "bursts", 3, 2 * HOUR, 10 * MINUTE, apply_bursts,
	  "at random, EVERY on average, up to PEAK times for LENGTH: a sharp rise, a slow fall" },
	{ "steps", 2, 6 * HOUR, 0, apply_steps, "a new level every EVERY, between 1/PEAK and PEAK times" },
	{ "ramp", 3, 0, 0, apply_ramp, "from the rate to PEAK times the rate at the end" },
	{ "pulses", 1, HOUR, 20 * MINUTE, apply_pulses,
	  "PEAK times for the first LENGTH of every EVERY, else nothing" },
};

void shapes_write_help(struct buf *out)
{
	buf_text(out, "Shapes, NAME[:PEAK[:EVERY[:LENGTH]]], joined by commas; they multiply:\n");
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct buf form = { 0 };
		buf_text(&form, kinds[i].name);
		if (kinds[i].peak > 0)
			buf_printf(&form, ":%g", kinds[i].peak);
		if (kinds[i].every) {
			buf_text(&form, ":");
			duration_format(kinds[i].every, &form);
		}
		if (kinds[i].length) {
			buf_text(&form, ":");
			duration_format(kinds[i].length, &form);
		}
		buf_printf(out, "  %-18s %s\n", form.text, kinds[i].help);
		buf_release(&form);
	}
}

static bool parse_part(struct shape *s, int part, const char *text, size_t len)
{
	const millis longest = 366 * DAY;
	int64_t peak;

	switch (part) {
	case 1:
		if (s->kind->peak == 0 || !fixed_parse(text, len, 6, &peak))
			return false;
		s->peak = (double)peak / 1e6;
		return s->peak >= 1 && s->peak <= 100;
	case 2:
		return s->kind->every && duration_parse(text, len, &s->every) && s->every >= SECOND &&
		       s->every <= longest;
	case 3:
		return s->kind->length && duration_parse(text, len, &s->length) && s->length >= SECOND &&
		       s->length <= longest;
	default:
		return false;
	}
}

/* The parts behind the name. */
static bool parse_parts(struct shape *s, const char *p, const char *end)
{
	for (int part = 1; p < end; part++) {
		p++;
		const char *colon = memchr(p, ':', (size_t)(end - p));
		const char *stop = colon ? colon : end;
		if (stop != p && !parse_part(s, part, p, (size_t)(stop - p)))
			return false;
		p = stop;
	}
	return s->length <= s->every || !s->kind->length;
}

static bool parse_shape(const char *text, size_t len, double peak, struct shape *s)
{
	const char *end = text + len, *colon = memchr(text, ':', len);
	size_t name = colon ? (size_t)(colon - text) : len;

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		const struct shape_kind *k = &kinds[i];
		if (strlen(k->name) != name || memcmp(k->name, text, name) != 0)
			continue;
		*s = (struct shape){ k, peak > 0 && k->peak > 0 ? peak : k->peak, k->every, k->length };
		return parse_parts(s, text + name, end) && (k->peak == 0 || s->peak >= 1);
	}
	return false;
}

bool shapes_parse(const char *text, double peak, struct shapes *out, struct error *e)
{
	struct shapes s = { .count = 0 };

	for (const char *p = text;; p++) {
		size_t len = strcspn(p, ",");
		if (s.count == MAX_SHAPES)
			return error_set(e, ERROR_INVALID, "--shape: more than %d shapes", MAX_SHAPES);
		if (!parse_shape(p, len, peak, &s.items[s.count++]))
			return error_set(
				e, ERROR_INVALID,
				"--shape: found '%.*s'; allowed: NAME[:PEAK[:EVERY[:LENGTH]]] with a NAME of constant, "
				"diurnal, bursts, steps, ramp, pulses, a PEAK from 1 to 100, durations like 2h, "
				"LENGTH within EVERY",
				(int)(len > 60 ? 60 : len), p);
		p += len;
		if (!*p)
			break;
	}
	*out = s;
	return true;
}

/* rates[i] *= what the shapes say for second i; second 0 is midnight before a Monday. */
static void shapes_apply(const struct shapes *s, uint64_t seed, double *rates, size_t seconds)
{
	struct random r = random_stream(seed, "shapes");

	for (size_t i = 0; i < s->count; i++)
		s->items[i].kind->apply(&s->items[i], &r, rates, seconds);
}

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

/* Mean `mean`, variance mean * dispersion (1: Poisson; above 30 by the normal law, below it always Poisson). */
static int64_t draw_count(struct random *r, double mean, double dispersion)
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
