/*
 * How traffic rises and falls: shapes that multiply a rate second by
 * second. Written as NAME[:PEAK[:EVERY[:LENGTH]]], joined by commas:
 * "diurnal:1.8,bursts:3:2h:10m".
 */
#pragma once
#include "base/buf.h"
#include "base/millis.h"

#include <stddef.h>
#include <stdint.h>

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
/* rates[i] *= what the shapes say for second i; second 0 is midnight before a Monday. */
void shapes_apply(const struct shapes *s, uint64_t seed, double *rates, size_t seconds);
/* A line per shape with its meaning and defaults, for --help and docs. */
void shapes_write_help(struct buf *out);
