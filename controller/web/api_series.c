/*
 * GET /api/v1/pools/{namespace}/{name}/series: what a pool was like over a
 * time, in rows of equal length, from whatever tells it with the least
 * reading.
 */
#include "controller/web/api_call.h"
#include "state/level.h"

#include <string.h>

enum { SERIES_POINTS_MAX = 2000 };

enum resolution {
	RESOLUTION_TICK,
	RESOLUTION_FIVE_MINUTES,
	RESOLUTION_HOUR,
	RESOLUTION_DAY,	   /* of hours */
	RESOLUTION_SAMPLE, /* single ticks: nothing was kept that could be added up */
};

struct series_question {
	size_t pool;
	millis from, to;
	int64_t points; /* 1 to SERIES_POINTS_MAX */
};

struct series_row {
	millis at; /* of a single tick: its end; else where the row begins */
	struct level_sums sums;
};

struct series {
	enum resolution resolution;
	millis step;
	struct series_row
		*rows; /* in order of time, in the arena of the call; without those of which nothing is known */
	size_t count;
};

/* Records that one request may decode. */
enum { TICKS_FINE = 1500, TICKS_MOST = 6000, SAMPLES_MOST = 600 };

struct collecting {
	struct api_call *call;
	const struct series_question *question;
	struct series *series;
	struct buf found; /* struct series_row, in order of time */
};

/* The least of these times `base` that cuts `span` into at most `points` rows. */
static millis nice_step(millis base, millis span, int64_t points)
{
	static const int64_t factors[] = { 1, 2, 3, 4, 6, 12, 24 };
	millis step = base;

	for (millis unit = base;; unit *= 24)
		for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
			step = unit * factors[i];
			if (span / step + 2 <= points || step > 4 * span)
				return step;
		}
}

static void add_sums(struct collecting *k, millis end, const struct level_sums *sums)
{
	struct series_row *rows = (void *)k->found.text;
	size_t count = k->found.len / sizeof *rows;
	millis begin = (end - 1) / k->series->step * k->series->step;

	if (count && (rows[count - 1].at == begin || count == (size_t)k->question->points)) {
		level_add(&rows[count - 1].sums, sums);
		return;
	}
	const struct series_row row = { .at = begin, .sums = *sums };
	buf_append(&k->found, &row, sizeof row);
}

/* --- from records --- */

static bool add_tick(struct collecting *k, int64_t tick, struct error *e)
{
	struct level_sums sums = { 0 };
	struct tick_record r;

	if (!history_read(k->call->history, tick, k->question->pool, &r, e))
		return e->kind == ERROR_NOT_FOUND; /* was not in the manifest then */
	if (r.interval == 0 && (!k->found.len || k->series->resolution == RESOLUTION_SAMPLE))
		return true; /* it stands for no time: what it asked for is told with a tick */
	level_add_tick(&sums, &r.snapshot, &r.plan, r.interval);
	const struct series_row row = { .at = r.now, .sums = sums };
	if (k->series->resolution == RESOLUTION_SAMPLE || k->series->step == r.interval)
		buf_append(&k->found, &row, sizeof row);
	else
		add_sums(k, r.now, &sums);
	return true;
}

static bool find_ticks(struct collecting *k, int64_t *first, int64_t *last, struct error *e)
{
	const struct api_call *c = k->call;
	millis from = k->question->from, to = k->question->to;

	if (!history_tick_at(c->history, from, first, e) || !history_tick_at(c->history, to, last, e))
		return false;
	*first += from >= c->span.from;
	*last -= to < c->span.from;
	return true;
}

static bool read_ticks(struct collecting *k, int64_t first, int64_t last, struct error *e)
{
	millis interval = 0;

	k->series->resolution = RESOLUTION_TICK;
	if (first <= last && !history_interval(k->call->history, last, &interval, e))
		return false;
	k->series->step = interval > 0 ? interval : SECOND;
	if (last - first + 1 > k->question->points)
		k->series->step = nice_step(k->series->step, k->question->to - k->question->from, k->question->points);
	for (int64_t tick = first; tick <= last; tick++)
		if (!add_tick(k, tick, e))
			return false;
	return true;
}

static bool read_samples(struct collecting *k, int64_t first, int64_t last, struct error *e)
{
	int64_t most = k->question->points < SAMPLES_MOST ? k->question->points : SAMPLES_MOST;
	int64_t stride = ((last - first) / most / KEYFRAME_EVERY + 1) * KEYFRAME_EVERY;
	millis interval;

	k->series->resolution = RESOLUTION_SAMPLE;
	if (!history_interval(k->call->history, last, &interval, e))
		return false;
	k->series->step = interval * stride;
	for (int64_t tick = (first + stride - 1) / stride * stride; tick <= last; tick += stride)
		if (!add_tick(k, tick, e))
			return false;
	return true;
}

/* --- from kept sums --- */

static bool read_levels(struct collecting *k, enum level_width width, struct error *e)
{
	const struct series_question *q = k->question;
	const struct level_question levels = { q->pool, width, q->from, q->to };
	struct level_row *rows;
	size_t count;

	k->series->step = nice_step(level_millis(width), q->to - q->from, q->points);
	k->series->resolution = width == LEVEL_FIVE_MINUTES ? RESOLUTION_FIVE_MINUTES
				: k->series->step % DAY	    ? RESOLUTION_HOUR
							    : RESOLUTION_DAY;
	if (!level_read(k->call->history, &levels, &k->call->arena, &rows, &count, e))
		return false;
	for (size_t i = 0; i < count; i++)
		add_sums(k, rows[i].from + level_millis(width), &rows[i].sums);
	return true;
}

/* Whether sums of that width reach back to where the question, or the history, begins; *beyond: further than its ticks.
 */
static bool reaches(struct collecting *k, enum level_width width, bool *does, bool *beyond, struct error *e)
{
	millis first, begun = k->call->span.from, from = k->question->from > begun ? k->question->from : begun;

	if (!level_first(k->call->history, k->question->pool, width, &first, e))
		return false;
	*does = first != ABSENT && first <= from;
	*beyond = first != ABSENT && first < begun - level_millis(width) &&
		  k->question->from < begun - level_millis(width);
	return true;
}

/* As fine as few enough rows of the file tell. */
static bool collect(struct collecting *k, struct error *e)
{
	const struct series_question *q = k->question;
	int64_t first, last;
	bool in_hours, in_minutes, is_before, unused;

	if (!find_ticks(k, &first, &last, e) || !reaches(k, LEVEL_HOUR, &in_hours, &is_before, e) ||
	    !reaches(k, LEVEL_FIVE_MINUTES, &in_minutes, &unused, e))
		return false;
	if (last - first < (in_minutes ? TICKS_FINE : TICKS_MOST) && !is_before)
		return read_ticks(k, first, last, e);
	if (in_minutes && !is_before && (q->to - q->from) / level_millis(LEVEL_FIVE_MINUTES) <= 2 * SERIES_POINTS_MAX)
		return read_levels(k, LEVEL_FIVE_MINUTES, e);
	if (in_hours || is_before)
		return read_levels(k, LEVEL_HOUR, e);
	return read_samples(k, first, last, e);
}

/* Rows are as long as what there is asks for, not as long as a year that nobody wrote. */
static bool find_extent(struct collecting *k, struct series_question *q, struct error *e)
{
	const struct history_span *span = &k->call->span;
	millis first;

	if (!level_first(k->call->history, q->pool, LEVEL_HOUR, &first, e))
		return false;
	millis begun = first != ABSENT && first < span->from ? first : span->from - HOUR;
	if (q->from < begun && begun < q->to)
		q->from = begun;
	if (q->to > span->to && q->from < span->to)
		q->to = span->to;
	return true;
}

static bool read_series(struct api_call *c, const struct series_question *asked, struct series *out, struct error *e)
{
	struct series_question q = *asked;
	struct collecting k = { .call = c, .question = &q, .series = out };

	*out = (struct series){ .step = SECOND };
	bool ok = find_extent(&k, &q, e) && collect(&k, e);
	out->count = k.found.len / sizeof *out->rows;
	out->rows = arena_array(&c->arena, struct series_row, out->count + 1);
	if (k.found.len)
		memcpy(out->rows, k.found.text, k.found.len);
	buf_release(&k.found);
	return ok;
}

static const char *const resolutions[] = { "tick", "5m", "hour", "day", "sample", NULL };

struct series_columns {
	struct record_items at;
#define MEAN(name, member, over, scale, text) struct record_items name;
#define MOST(name, member, over, text)	      struct record_items name;
#define TOTAL(name, member, digits, text)     struct record_items name;
#include "controller/web/api_series.def"
#undef MEAN
#undef MOST
#undef TOTAL
};
static const struct record_member column_members[] = {
	{ "at", RECORD_NUMBERS(series_columns, at, 3),
	  .help = "Unix seconds: the end of a tick; where rows are longer, their beginning" },
#define MEAN(name, member, over, scale, text) { #name, RECORD_NUMBERS(series_columns, name, 3), .help = (text) },
#define MOST(name, member, over, text)	      { #name, RECORD_NUMBERS(series_columns, name, 3), .help = (text) },
#define TOTAL(name, member, digits, text)     { #name, RECORD_NUMBERS(series_columns, name, digits), .help = (text) },
#include "controller/web/api_series.def"
#undef MEAN
#undef MOST
#undef TOTAL
};
static const struct record_shape column_shape = RECORD_SHAPE("SeriesColumns", series_columns, column_members);

struct series_view {
	const char *namespace, *name, *resolution;
	millis from, to, step;
	int64_t rows;
	struct series_columns columns;
};
static const struct record_member members[] = {
	{ "namespace", RECORD_TEXT(series_view, namespace), .help = "of the WarmPool" },
	{ "name", RECORD_TEXT(series_view, name), .help = "of the WarmPool" },
	{ "from", RECORD_TIME(series_view, from), .help = "asked from" },
	{ "to", RECORD_TIME(series_view, to), .help = "asked up to" },
	{ "stepSeconds", RECORD_NUMBER(series_view, step, 3), .help = "length of a row" },
	{ "resolution", RECORD_TEXT(series_view, resolution),
	  .help = "what rows are made of: ticks, kept sums of 5 minutes or of an hour (rows of whole days are of "
		  "hours, too), or "
		  "sample: single ticks some hours apart, of a file that kept no sums; totals are null then",
	  .choices = resolutions },
	{ "rows", RECORD_COUNT(series_view, rows), .help = "of each column" },
	{ "columns", RECORD_OBJECT(series_view, columns, column_shape),
	  .help = "of equal length; null where not known" },
};
static const struct record_shape shape = RECORD_SHAPE("Series", series_view, members);

/* --- writing --- */

static int64_t mean(int64_t sum, int64_t over, int64_t scale)
{
	return over > 0 ? (int64_t)((__int128)sum * scale / over) : ABSENT;
}

static int64_t most(int64_t value, int64_t over)
{
	return over > 0 ? value : ABSENT;
}

/* Fills a column of `values`, one for each row, in. */
#define FILL_COLUMN(name, value)                                 \
	values = arena_array(&c->arena, int64_t, s->count + 1);  \
	for (size_t i = 0; i < s->count; i++) {                  \
		const struct level_sums *row = &s->rows[i].sums; \
		values[i] = (value);                             \
	}                                                        \
	columns->name = (struct record_items){ values, s->count };

static void fill_columns(struct api_call *c, const struct series *s, struct series_columns *columns)
{
	bool is_sample = s->resolution == RESOLUTION_SAMPLE;
	int64_t *values = arena_array(&c->arena, int64_t, s->count + 1);

	for (size_t i = 0; i < s->count; i++)
		values[i] = s->rows[i].at;
	columns->at = (struct record_items){ values, s->count };
#define MEAN(name, member, over, scale, text) FILL_COLUMN(name, mean(row->member, row->over, scale))
#define MOST(name, member, over, text)	      FILL_COLUMN(name, most(row->member, row->over))
#define TOTAL(name, member, digits, text)     FILL_COLUMN(name, is_sample ? ABSENT : most(row->member, row->ticks))
#include "controller/web/api_series.def"
#undef MEAN
#undef MOST
#undef TOTAL
}

static bool write_series(struct api_call *c, struct buf *out, struct error *e)
{
	struct series_question q = { .points = api_value(c, "points")->number };
	struct series s;
	size_t count;

	if (!api_pool(c, &q.pool, e) || !api_period(c, 6 * HOUR, &q.from, &q.to, e) || !read_series(c, &q, &s, e))
		return false;
	const struct history_pool *pool = &history_pools(c->history, &count)[q.pool];
	struct series_view v = { .namespace = pool->namespace,
				 .name = pool->name,
				 .resolution = resolutions[s.resolution],
				 .from = q.from,
				 .to = q.to,
				 .step = s.step,
				 .rows = (int64_t)s.count };
	fill_columns(c, &s, &v.columns);
	record_write(&shape, &v, out);
	buf_text(out, "\n");
	return true;
}

static const struct api_parameter parameters[] = {
	{ "from", PARAMETER_TIME,
	  .help = "from this time on; -2h is before the end of the history (default: 6h before to)" },
	{ "to", PARAMETER_TIME, .help = "up to this time (default: the end of the history)" },
	{ "points", PARAMETER_COUNT, .min = 1, .max = SERIES_POINTS_MAX, .fallback = 600,
	  .help = "at most so many rows" },
};

const struct api_route api_route_series = {
	.method = "GET",
	.path = "/api/v1/pools/{namespace}/{name}/series",
	.name = "getSeries",
	.summary = "What a pool was like over time, in columns of equal length",
	API_PARAMETERS(parameters),
	.needs_history = true,
	.answer = &shape,
	.write = write_series,
};
