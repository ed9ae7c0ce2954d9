/*
 * What a sweep of rivals says: for each family the cheapest setting that
 * keeps the objective, the one that somebody would have chosen after the
 * first day, and the frontier of cost over lateness that all of them span.
 */
#pragma once
#include "base/arena.h"
#include "controller/simulation/score.h"

#include <stddef.h>

/* One run. */
struct compare_row {
	const char *policy, *setting;
	bool is_rival;	 /* false: Preheat */
	bool is_default; /* the documented default of its family */
	bool uses_standby, uses_lent;
	const struct pool_score *pools; /* one per fleet pool */
};

/* Which rows a choice is made among. */
struct compare_filter {
	const char *policy; /* NULL: all rivals */
	bool hot_only;	    /* leaves out those with stopped or lent machines */
};

struct compare_point {
	double late_share, cost;
	size_t row;
};

struct comparison {
	const struct compare_row *rows;
	size_t row_count, pool_count;
	bool is_stopped; /* only some settings were run */
};

enum { NO_ROW = -1 };

/* Dollars; GPU hours when nothing has a price. */
double compare_cost(const struct score *s);
/* What came before the scored part. */
struct score compare_first_part(const struct pool_score *p);
/* The row that keeps `late_ppm` most cheaply on the scored part (or before it, when `on_first`); NO_ROW when none does.
 */
long compare_cheapest(const struct comparison *c, size_t pool, const struct compare_filter *f, int64_t late_ppm,
		      bool on_first);
/* The row with the smallest late share, the cheapest of those; NO_ROW when no row passes the filter. */
long compare_least_late(const struct comparison *c, size_t pool, const struct compare_filter *f, bool on_first);
/* What somebody would choose after the part before the scored one: the cheapest that kept the objective there, or
 * where none did the least late. */
long compare_first_choice(const struct comparison *c, size_t pool, const struct compare_filter *f, int64_t late_ppm);
/* Rows of which none is both cheaper and less late on the scored part; falling cost, rising lateness. In the arena. */
size_t compare_frontier(const struct comparison *c, size_t pool, const struct compare_filter *f, struct arena *a,
			const struct compare_point **out);
/* What the frontier costs at a late share: logarithms interpolated, its ends beyond them; 0 for an empty one. */
double compare_frontier_cost(const struct compare_point *points, size_t count, double late_share);
