/* Traffic of our own making: a rate, shapes, and lengths. The same setup gives the same trace. */
#pragma once
#include "base/buf.h"
#include "base/millis.h"
#include "base/random.h"
#include "controller/traces/trace.h"

#include <stddef.h>
#include <stdint.h>

/*
 * How traffic rises and falls: shapes that multiply a rate second by
 * second. Written as NAME[:PEAK[:EVERY[:LENGTH]]], joined by commas:
 * "diurnal:1.8,bursts:3:2h:10m".
 */

struct shape_kind;

struct shape {
	const struct shape_kind *kind;
	double peak;
	millis every, length;
};

enum { MAX_SHAPES = 8 };

struct shapes {
	struct shape items[MAX_SHAPES];
	size_t count;
};

/* `peak` > 0 is the peak of shapes that name none of their own. */
bool shapes_parse(const char *text, double peak, struct shapes *out, struct error *e) MUST_USE;

/* A line per shape with its meaning and defaults, for --help and docs. */
void shapes_write_help(struct buf *out);

#define GENERATE_MAX_LENGTH (92 * DAY)

enum { GENERATE_MAX_CLASSES = 16 };

struct generate_class {
	const char *name;
	size_t len;
	double weight;
};

struct generate_setup {
	struct shapes shapes;
	double rate; /* requests a second before the shapes */
	millis length;
	double weekend;			      /* days 6 and 7 of each week times this */
	double burstiness;		      /* coefficient of variation of the gaps: 1 Poisson, more is clumped */
	int64_t prompt_tokens, output_tokens; /* means */
	double spread;			      /* deviation of the logarithm of the lengths */
	struct generate_class classes[GENERATE_MAX_CLASSES];
	size_t class_count;
	millis bin; /* 0: one row a request */
	uint64_t seed;
};

/* "chat=3,search=1" into the classes; points into `text`. */
bool generate_parse_classes(const char *text, struct generate_setup *s, struct error *e) MUST_USE;
bool trace_generate(const struct generate_setup *s, struct trace *out, struct error *e) MUST_USE;

/* Counts and waiting times drawn at random, the same on every machine. */

/* How many of n succeed, each with chance p. Exact below 30 expected, else by the normal law. */
int64_t draw_binomial(struct random *r, int64_t n, double p);

/* Mean 1 and coefficient of variation `cv` > 0 (1: exponential). Marsaglia and Tsang 2000. */
double draw_gap(struct random *r, double cv);
