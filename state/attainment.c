#include "state/attainment.h"

enum { PPM = 1000000 };

static bool sum_levels(struct history *h, const struct level_question *q, struct level_sums *sums, struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct level_row *rows;
	size_t count;

	*sums = (struct level_sums){ 0 };
	if (!level_read(h, q, &a, &rows, &count, e))
		return false;
	/* The row that begins before is not of this time, nor the one that ends long after. */
	for (size_t i = 0; i < count; i++) {
		millis middle = rows[i].from + level_millis(q->width) / 2;

		if (middle > q->from && rows[i].from < q->to)
			level_add(sums, &rows[i].sums);
	}
	return true;
}

bool attainment_read(struct history *h, const struct attainment_question *q, struct attainment *out, struct error *e)
{
	const struct pool_spec *spec = q->spec;
	const enum level_width width = q->to - q->from > DAY ? LEVEL_HOUR : LEVEL_FIVE_MINUTES;
	const struct level_question rows = { q->pool, width, q->from, q->to };
	bool has_objective = !spec->violation_cost && spec->objective_late_ppm > 0;
	struct level_sums s;
	millis first;

	if (!sum_levels(h, &rows, &s, e) || !level_first(h, q->pool, width, &first, e))
		return false;
	__int128 may = (__int128)s.started * spec->objective_late_ppm;
	bool has_budget = may > 0 && has_objective;

	*out = (struct attainment){
		.from = q->from,
		.to = q->to,
		.is_short = first == ABSENT || first > q->from,
		.requests = s.ticks ? s.started : ABSENT,
		.late = s.ticks ? s.late : ABSENT,
		.micro_dollars = s.ticks ? s.micro_dollars : ABSENT,
		.share_ppm = s.started > 0 ? (int64_t)((__int128)s.late * PPM / s.started) : ABSENT,
		.burn_milli = ABSENT,
		.budget_left_ppm = ABSENT,
		.budget_left = ABSENT,
		.wait_most = s.waited ? s.wait_ms_most : ABSENT,
	};
	if (has_budget) {
		out->burn_milli = out->share_ppm * 1000 / spec->objective_late_ppm;
		out->budget_left_ppm = (int64_t)(PPM - (__int128)s.late * PPM * PPM / may);
		out->budget_left = (int64_t)(may / PPM) - s.late;
	}
	return true;
}

bool attainment_is_met(const struct attainment *a)
{
	return a->budget_left_ppm == ABSENT || a->budget_left_ppm >= 0;
}

bool attainment_report(struct history *h, const struct attainment_question *q, struct attainment_report *out,
		       struct error *e)
{
	const millis lengths[ATTAINMENT_WINDOWS] = { q->to - q->from, 7 * DAY, 30 * DAY };

	for (size_t i = 0; i < ATTAINMENT_WINDOWS; i++) {
		struct attainment twice, *a = &out->window[i];
		struct attainment_question one = *q, two = *q;

		one.from = q->to - lengths[i];
		two.from = q->to - 2 * lengths[i];
		if (!attainment_read(h, &one, a, e) || !attainment_read(h, &two, &twice, e))
			return false;
		bool is_known = i != ATTAINMENT_TODAY && !twice.is_short;
		out->dollars_before[i] = is_known ? twice.micro_dollars - a->micro_dollars : ABSENT;
	}
	return true;
}
