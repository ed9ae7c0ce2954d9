/* GET /api/v1/pools/{namespace}/{name}/series: what a pool was like over time, in at most so many rows. */
#include "controller/web/api_series.h"

static const char *const resolutions[] = { "tick", "5m", "hour", "day", "sample", NULL };

static const struct api_member column_members[] = {
	{ "at", API_NUMBERS, .help = "Unix seconds: the end of a tick; where rows are longer, their beginning" },
#define MEAN(name, member, over, scale, text) { #name, API_NUMBERS, .help = (text) },
#define MOST(name, member, over, text)	      { #name, API_NUMBERS, .help = (text) },
#define TOTAL(name, member, digits, text)     { #name, API_NUMBERS, .help = (text) },
#include "controller/web/api_series.def"
#undef MEAN
#undef MOST
#undef TOTAL
};
static const struct api_shape column_shape = API_SHAPE("SeriesColumns", column_members);

static const struct api_member members[] = {
	{ "namespace", API_TEXT, .help = "of the WarmPool" },
	{ "name", API_TEXT, .help = "of the WarmPool" },
	{ "from", API_TIME, .help = "asked from" },
	{ "to", API_TIME, .help = "asked up to" },
	{ "stepSeconds", API_NUMBER, .help = "length of a row" },
	{ "resolution", API_TEXT,
	  .help = "what rows are made of: ticks, kept sums of 5 minutes or of an hour (rows of whole days are of "
		  "hours, too), or "
		  "sample: single ticks some hours apart, of a file that kept no sums; totals are null then",
	  .choices = resolutions },
	{ "rows", API_COUNT, .help = "of each column" },
	{ "columns", API_OBJECT, .help = "of equal length; null where not known", .of = &column_shape },
};
static const struct api_shape shape = API_SHAPE("Series", members);

/* --- writing --- */

static int64_t mean(int64_t sum, int64_t over, int64_t scale)
{
	return over > 0 ? (int64_t)((__int128)sum * scale / over) : ABSENT;
}

static int64_t most(int64_t value, int64_t over)
{
	return over > 0 ? value : ABSENT;
}

enum column {
#define MEAN(name, member, over, scale, text) COLUMN_##name,
#define MOST(name, member, over, text)	      COLUMN_##name,
#define TOTAL(name, member, digits, text)     COLUMN_##name,
#include "controller/web/api_series.def"
#undef MEAN
#undef MOST
#undef TOTAL
	COLUMN_COUNT
};

static int64_t value_of(enum column column, const struct level_sums *s, bool is_sample)
{
	switch (column) {
#define MEAN(name, member, over, scale, text) \
	case COLUMN_##name:                   \
		return mean(s->member, s->over, scale);
#define MOST(name, member, over, text) \
	case COLUMN_##name:            \
		return most(s->member, s->over);
#define TOTAL(name, member, digits, text) \
	case COLUMN_##name:               \
		return is_sample ? ABSENT : most(s->member, s->ticks);
#include "controller/web/api_series.def"
#undef MEAN
#undef MOST
#undef TOTAL
	case COLUMN_COUNT:
		break;
	}
	return ABSENT;
}

static const struct {
	const char *name;
	int digits;
} columns[COLUMN_COUNT] = {
#define MEAN(name, member, over, scale, text) { #name, 3 },
#define MOST(name, member, over, text)	      { #name, 3 },
#define TOTAL(name, member, digits, text)     { #name, digits },
#include "controller/web/api_series.def"
#undef MEAN
#undef MOST
#undef TOTAL
};

static void write_times(const struct series *s, struct buf *out)
{
	member_list(out, "at");
	for (size_t i = 0; i < s->count; i++) {
		buf_text(out, i ? "," : "");
		value_number(out, s->rows[i].at, 3);
	}
	bracket_end(out, ']');
}

static void write_columns(const struct series *s, struct buf *out)
{
	member_object(out, "columns");
	write_times(s, out);
	for (int column = 0; column < COLUMN_COUNT; column++) {
		member_list(out, columns[column].name);
		for (size_t i = 0; i < s->count; i++) {
			buf_text(out, i ? "," : "");
			value_number(
				out,
				value_of((enum column)column, &s->rows[i].sums, s->resolution == RESOLUTION_SAMPLE),
				columns[column].digits);
		}
		bracket_end(out, ']');
	}
	bracket_end(out, '}');
}

static bool write_series(struct api_call *c, struct buf *out, struct error *e)
{
	struct series_question q = { .points = api_value(c, "points")->number };
	struct series s;
	size_t count;

	if (!api_pool(c, &q.pool, e) || !api_period(c, 6 * HOUR, &q.from, &q.to, e) || !series_read(c, &q, &s, e))
		return false;
	const struct history_pool *pool = &history_pools(c->history, &count)[q.pool];
	buf_text(out, "{");
	member_text(out, "namespace", pool->namespace);
	member_text(out, "name", pool->name);
	member_time(out, "from", q.from);
	member_time(out, "to", q.to);
	member_scaled(out, "stepSeconds", s.step, 3);
	member_text(out, "resolution", resolutions[s.resolution]);
	member_count(out, "rows", (int64_t)s.count);
	write_columns(&s, out);
	buf_text(out, "}\n");
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
