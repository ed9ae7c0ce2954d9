/* Traffic of our own making: a rate, shapes, and lengths. The same setup gives the same trace. */
#pragma once
#include "controller/traces/shapes.h"
#include "controller/traces/trace.h"

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
