#include "controller/simulation/rivals/compare.h"

#include "base/exact.h"

#include <string.h>

/* Below one late request in a million everything counts as equal: zero has no logarithm. */
static const double LEAST_SHARE = 1e-6;

double compare_cost(const struct score *s)
{
	return s->micro_dollars ? score_dollars(s) : score_gpu_hours(s);
}

struct score compare_first_part(const struct pool_score *p)
{
	return (struct score){ .requests = p->whole.requests - p->scored.requests,
			       .late = p->whole.late - p->scored.late,
			       .gpu_ms = p->whole.gpu_ms - p->scored.gpu_ms,
			       .micro_dollars = p->whole.micro_dollars - p->scored.micro_dollars };
}

static struct score part_of(const struct compare_row *row, size_t pool, bool on_first)
{
	return on_first ? compare_first_part(&row->pools[pool]) : row->pools[pool].scored;
}

static bool passes(const struct compare_row *row, const struct compare_filter *f)
{
	if (!row->is_rival || (f->hot_only && (row->uses_standby || row->uses_lent)))
		return false;
	return !f->policy || !strcmp(f->policy, row->policy);
}

static bool keeps(const struct score *s, int64_t late_ppm)
{
	return (double)s->late * 1e6 <= (double)late_ppm * (double)s->requests;
}

long compare_cheapest(const struct comparison *c, size_t pool, const struct compare_filter *f, int64_t late_ppm,
		      bool on_first)
{
	long best = NO_ROW;
	double least = 0;

	for (size_t i = 0; i < c->row_count; i++) {
		struct score s = part_of(&c->rows[i], pool, on_first);

		if (!passes(&c->rows[i], f) || !keeps(&s, late_ppm))
			continue;
		if (best == NO_ROW || compare_cost(&s) < least) {
			best = (long)i;
			least = compare_cost(&s);
		}
	}
	return best;
}

long compare_least_late(const struct comparison *c, size_t pool, const struct compare_filter *f, bool on_first)
{
	long best = NO_ROW;
	double share = 0, cost = 0;

	for (size_t i = 0; i < c->row_count; i++) {
		struct score s = part_of(&c->rows[i], pool, on_first);
		double late = score_late_share(&s);

		if (!passes(&c->rows[i], f))
			continue;
		if (best == NO_ROW || late < share || (late <= share && compare_cost(&s) < cost)) {
			best = (long)i;
			share = late;
			cost = compare_cost(&s);
		}
	}
	return best;
}

long compare_first_choice(const struct comparison *c, size_t pool, const struct compare_filter *f, int64_t late_ppm)
{
	long best = compare_cheapest(c, pool, f, late_ppm, true);

	return best != NO_ROW ? best : compare_least_late(c, pool, f, true);
}

static bool comes_before(const struct compare_point *a, const struct compare_point *b)
{
	return a->late_share < b->late_share || (a->late_share <= b->late_share && a->cost < b->cost);
}

/* Equal ones keep the order of their rows. */
static void insert(struct compare_point *points, size_t count, struct compare_point p)
{
	while (count && comes_before(&p, &points[count - 1])) {
		points[count] = points[count - 1];
		count--;
	}
	points[count] = p;
}

size_t compare_frontier(const struct comparison *c, size_t pool, const struct compare_filter *f, struct arena *a,
			const struct compare_point **out)
{
	struct compare_point *points = arena_array(a, struct compare_point, c->row_count + 1);
	size_t count = 0, kept = 0;

	for (size_t i = 0; i < c->row_count; i++) {
		const struct score *s = &c->rows[i].pools[pool].scored;

		if (passes(&c->rows[i], f))
			insert(points, count++, (struct compare_point){ score_late_share(s), compare_cost(s), i });
	}
	for (size_t i = 0; i < count; i++)
		if (!kept || points[i].cost < points[kept - 1].cost)
			points[kept++] = points[i];
	*out = points;
	return kept;
}

static double share_at_least(double share)
{
	return share > LEAST_SHARE ? share : LEAST_SHARE;
}

double compare_frontier_cost(const struct compare_point *points, size_t count, double late_share)
{
	size_t i = 0;

	if (!count)
		return 0;
	while (i < count && points[i].late_share < late_share)
		i++;
	if (i == count || i == 0 || points[i].cost <= 0)
		return points[i == count ? count - 1 : i].cost;
	double low = exact_log(share_at_least(points[i - 1].late_share));
	double high = exact_log(share_at_least(points[i].late_share));
	double at = high > low ? (exact_log(share_at_least(late_share)) - low) / (high - low) : 0;
	double from = exact_log(points[i - 1].cost), to = exact_log(points[i].cost);
	return exact_exp(from + (to - from) * (at > 0 ? at : 0));
}
