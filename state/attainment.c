#include "state/attainment.h"

enum { PPM = 1000000 };

/* Rows of one width, and where the first of all begins (ABSENT: there is none). */
struct levels {
	const struct level_row *rows;
	size_t count;
	millis width, first;
};

static bool read_levels(struct history *h, const struct level_question *q, struct arena *a, struct levels *out,
			struct error *e)
{
	struct level_row *rows;

	if (!level_read(h, q, a, &rows, &out->count, e) || !level_first(h, q->pool, q->width, &out->first, e))
		return false;
	out->rows = rows;
	out->width = level_millis(q->width);
	return true;
}

/* The row that begins before is not of this time, nor the one that ends long after. */
static struct level_sums sum_levels(const struct levels *l, millis from, millis to)
{
	struct level_sums sums = { 0 };

	for (size_t i = 0; i < l->count; i++)
		if (l->rows[i].from + l->width / 2 > from && l->rows[i].from < to)
			level_add(&sums, &l->rows[i].sums);
	return sums;
}

static int64_t share_of(const struct level_sums *s)
{
	return s->started > 0 ? (int64_t)((__int128)s->late * PPM / s->started) : ABSENT;
}

static bool has_objective(const struct pool_spec *spec)
{
	return !spec->violation_cost && spec->objective_late_ppm > 0;
}

static struct attainment judge(const struct pool_spec *spec, const struct levels *l, millis from, millis to)
{
	struct level_sums s = sum_levels(l, from, to);
	__int128 may = (__int128)s.started * spec->objective_late_ppm;
	struct attainment out = {
		.from = from,
		.to = to,
		.is_short = l->first == ABSENT || l->first > from,
		.requests = s.ticks ? s.started : ABSENT,
		.late = s.ticks ? s.late : ABSENT,
		.micro_dollars = s.ticks ? s.micro_dollars : ABSENT,
		.gpu_ms = s.ticks ? s.gpu_ms : ABSENT,
		.share_ppm = share_of(&s),
		.burn_milli = ABSENT,
		.budget_left_ppm = ABSENT,
		.budget_left = ABSENT,
		.wait_most = s.waited ? s.wait_ms_most : ABSENT,
	};

	if (may > 0 && has_objective(spec)) {
		out.burn_milli = out.share_ppm * 1000 / spec->objective_late_ppm;
		out.budget_left_ppm = (int64_t)(PPM - (__int128)s.late * PPM * PPM / may);
		out.budget_left = (int64_t)(may / PPM) - s.late;
	}
	return out;
}

static enum level_width width_for(millis length)
{
	return length > DAY ? LEVEL_HOUR : LEVEL_FIVE_MINUTES;
}

bool attainment_read(struct history *h, const struct attainment_question *q, struct attainment *out, struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const struct level_question rows = { q->pool, width_for(q->to - q->from), q->from, q->to };
	struct levels l;

	if (!read_levels(h, &rows, &a, &l, e))
		return false;
	*out = judge(q->spec, &l, q->from, q->to);
	return true;
}

bool attainment_is_met(const struct attainment *a)
{
	return a->budget_left_ppm == ABSENT || a->budget_left_ppm >= 0;
}

static struct attainment_day day_of(const struct pool_spec *spec, const struct levels *l, millis from, millis to)
{
	struct level_sums s = sum_levels(l, from, to);
	struct attainment_day day = { .from = from,
				      .to = to,
				      .requests = ABSENT,
				      .late = ABSENT,
				      .micro_dollars = ABSENT,
				      .gpu_ms = ABSENT,
				      .share_ppm = share_of(&s) };

	if (s.ticks) {
		day.requests = s.started;
		day.late = s.late;
		day.micro_dollars = s.micro_dollars;
		day.gpu_ms = s.gpu_ms;
	}
	day.is_over = has_objective(spec) && (__int128)s.late * PPM > (__int128)s.started * spec->objective_late_ppm;
	return day;
}

/* An hour is of one day only: it ends half an hour into the next at the most. */
static void find_days(const struct attainment_question *q, const struct levels *hours, struct attainment_day *days)
{
	for (int i = 0; i < ATTAINMENT_DAYS; i++) {
		bool is_today = i == ATTAINMENT_DAYS - 1;
		millis from = q->from - (ATTAINMENT_DAYS - 1 - i) * DAY, to = is_today ? q->to : from + DAY;

		days[i] = day_of(q->spec, hours, from, is_today ? to : to - HOUR / 2 + 1);
		days[i].to = to;
	}
}

bool attainment_report(struct history *h, const struct attainment_question *q, struct attainment_report *out,
		       struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const millis lengths[ATTAINMENT_WINDOWS] = { q->to - q->from, 7 * DAY, 30 * DAY };
	const struct level_question now = { q->pool, width_for(lengths[0]), q->from, q->to },
				    before = { q->pool, LEVEL_HOUR, q->to - 60 * DAY, q->to };
	struct levels today, hours;

	if (!read_levels(h, &now, &a, &today, e) || !read_levels(h, &before, &a, &hours, e))
		return false;
	for (int i = 0; i < ATTAINMENT_WINDOWS; i++) {
		const struct levels *l = i == ATTAINMENT_TODAY ? &today : &hours;
		struct attainment once = judge(q->spec, l, q->to - lengths[i], q->to),
				  twice = judge(q->spec, l, q->to - 2 * lengths[i], q->to);
		bool is_known = i != ATTAINMENT_TODAY && !twice.is_short;

		out->window[i] = once;
		out->dollars_before[i] = is_known ? twice.micro_dollars - once.micro_dollars : ABSENT;
	}
	find_days(q, &hours, out->days);
	return true;
}
