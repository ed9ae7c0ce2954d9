#include "controller/traces/shapes.h"

#include "controller/traces/draw.h"

#include "base/buf.h"
#include "base/exact.h"
#include "base/quantity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	double *factors = malloc(seconds * sizeof *factors);

	if (!factors)
		abort();
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

void shapes_apply(const struct shapes *s, uint64_t seed, double *rates, size_t seconds)
{
	struct random r = random_stream(seed, "shapes");

	for (size_t i = 0; i < s->count; i++)
		s->items[i].kind->apply(&s->items[i], &r, rates, seconds);
}
