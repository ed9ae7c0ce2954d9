/*
 * For people at a terminal: what a stream can show, a progress line, numbers
 * and charts. Colour appears only on a terminal and never as the only sign;
 * NO_COLOR and TERM=dumb turn it off.
 */
#pragma once
#include "base/millis.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct terminal {
	bool is_terminal;
	bool has_color;
	bool is_unicode; /* block characters may be used */
	int width;	 /* columns; 100 when it is no terminal */
};

enum style { STYLE_PLAIN, STYLE_STRONG, STYLE_FAINT, STYLE_GOOD, STYLE_WARN, STYLE_BAD, STYLE_FIRST, STYLE_SECOND };

struct terminal terminal_of(FILE *stream);
/* Escape sequence that switches a style on (STYLE_PLAIN: everything off); "" without colour. */
const char *terminal_style(const struct terminal *t, enum style style);

/* One line on standard error that rewrites itself; nothing at all when that is no terminal. */
struct progress {
	const char *what; /* "simulating" */
	const char *unit; /* "ticks" */
	int64_t total;	  /* 0: unknown */
	int64_t started_ms, shown_ms;
	bool is_on;
};

struct progress progress_start(const char *what, const char *unit, int64_t total);
void progress_show(struct progress *p, int64_t done); /* cheap: draws at most ten times a second */
void progress_end(struct progress *p);		      /* wipes the line */

/* Numbers as people read them. Each fills and returns the text it is given. */

struct human {
	char text[32];
};

struct human human_count(int64_t n);		      /* 1,234,567 */
struct human human_decimal(double value, int places); /* 1,234.5 */
struct human human_duration(millis d);		      /* 850ms, 2.5s, 6m20s, 3h05m, 2d4h */
struct human human_share(double share);		      /* 0.0074 -> 0.74 % */
struct human human_dollars(double dollars);	      /* $0.48, -$1.20, $14,871 */
/* Of what has no price: 1 GPU hour, 8 GPU hours. */
struct human human_spent(double amount, bool is_unpriced);

/*
 * A small chart of text: a filled area and, over it, a line drawn with
 * another sign, so that both can be told apart without colour. Values are
 * drawn at the width given, whatever their number.
 */

/* How the values that share one column of the screen become one. */
enum chart_pick { CHART_MEAN, CHART_MAX };

struct chart_series {
	const char *name;
	const double *values; /* `points` of them, none below 0; NULL: not drawn */
	enum chart_pick pick;
};

struct chart {
	const char *title, *unit;
	struct chart_series area, line;
	size_t points;
	millis length; /* time from the first value to the end of the last */
	int height;    /* rows of the drawing, without axes */
};

void chart_print(const struct chart *c, const struct terminal *t, FILE *out);
