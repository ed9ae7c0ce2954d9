/*
 * Small charts of text. A filled area and, over it, a line drawn with
 * another sign, so that both can be told apart without colour; bars for
 * comparing. Values are drawn at the width given, whatever their number.
 */
#pragma once
#include "base/millis.h"
#include "base/terminal.h"

#include <stddef.h>

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

/* One line a value: name, bar, text. `values` >= 0; the longest bar is the largest value. */
struct chart_bar {
	const char *name, *text;
	double value;
	enum style style;
};
void chart_print_bars(const struct chart_bar *bars, size_t count, const struct terminal *t, FILE *out);
