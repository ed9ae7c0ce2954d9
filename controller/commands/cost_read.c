#include "controller/commands/cost_read.h"

#include "controller/recall/walk.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int64_t hour_of_end(millis at)
{
	return (at - 1) / HOUR;
}

/* --- histories of before costs were kept: from the decisions --- */

struct folding {
	struct question *question;
	int64_t first_hour, last_hour;
	struct buf *found;	/* of struct cost_hour */
	int64_t busy_ppm[4096]; /* by index of history_pools() */
};

static void add_hour(struct buf *found, const struct cost_hour *hour)
{
	struct cost_hour *items = (void *)found->text;

	for (size_t i = found->len / sizeof *items; i-- > 0 && items[i].hour == hour->hour;)
		if (items[i].pool == hour->pool && items[i].class == hour->class) {
			cost_add(&items[i].sums, &hour->sums);
			return;
		}
	buf_append(found, hour, sizeof *hour);
}

static void fold_tick(struct folding *f, const struct walk_tick *t)
{
	const struct fleet_spec *fleet = t->snapshot.fleet;

	for (size_t i = 0; i < fleet->pool_count; i++) {
		struct cost_hour hour = { hour_of_end(t->snapshot.now), t->pools[i], fleet->pools[i].class, { 0 } };
		const struct cost_tick tick = { &t->snapshot, i, t->plans[i], t->snapshot.interval, NULL };
		int64_t *busy = &f->busy_ppm[hour.pool % (sizeof f->busy_ppm / sizeof *f->busy_ppm)];

		if (t->damage[i].kind != ERROR_NONE)
			continue;
		cost_add_tick(&hour.sums, &tick, busy);
		add_hour(f->found, &hour);
	}
}

static bool fold_walk(struct folding *f, struct walk *w, int64_t last, struct error *e)
{
	struct walk_tick t;

	do {
		if (!walk_next(w, &t, e))
			return false;
		int64_t hour = hour_of_end(t.snapshot.now);
		if (hour > f->last_hour)
			return true;
		if (hour >= f->first_hour)
			fold_tick(f, &t);
	} while (t.snapshot.tick < last);
	return true;
}

static bool fold(struct question *q, int64_t first_hour, int64_t last_hour, struct buf *found, struct error *e)
{
	struct folding f = { .question = q, .first_hour = first_hour, .last_hour = last_hour, .found = found };
	int64_t first;

	for (size_t i = 0; i < sizeof f.busy_ppm / sizeof *f.busy_ppm; i++)
		f.busy_ppm[i] = ABSENT;
	if (!history_tick_at(q->history, first_hour * HOUR, &first, e))
		return false;
	struct walk *w = walk_open(q->history, first, e);
	bool ok = w && fold_walk(&f, w, q->span.last_tick, e);
	walk_close(w);
	return ok;
}

/* --- the period --- */

static millis whole_hours(millis at)
{
	return (at + HOUR - 1) / HOUR * HOUR;
}

static bool check_period(const struct question *q, struct cost_period *p, const struct costs *c, struct error *e)
{
	CLEANUP(buf_release) struct buf there = { 0 };
	const struct cost_period all = { .from = c->from, .to = whole_hours(c->to) };

	cost_period_text(q, &all, &there);
	if (p->from >= p->to || p->from >= all.to || p->to <= all.from)
		return error_set(e, ERROR_NOT_FOUND, "%s: nothing in this period; the history is of %s",
				 history_path(q->history), there.text);
	p->from = p->from > all.from ? p->from : all.from;
	p->to = p->to < all.to ? p->to : all.to;
	return true;
}

static bool read_period(const struct question *q, struct cost_period *p, const struct costs *c, struct error *e)
{
	millis from = c->from, to = c->to;

	if (p->last && (p->from_text || p->to_text))
		return error_set(e, ERROR_INVALID, "--last is a period of its own; give it without --from and --to");
	if (p->last)
		from = whole_hours(to) - p->last;
	if ((p->from_text && !question_time(q, "from", p->from_text, &from, e)) ||
	    (p->to_text && !question_time(q, "to", p->to_text, &to, e)))
		return false;
	if (from > to && p->from_text && p->to_text)
		return error_set(e, ERROR_INVALID, "--from %s is later than --to %s; swap them", p->from_text,
				 p->to_text);
	p->from = from / HOUR * HOUR;
	/* +5h counts from the end of the first tick. */
	p->to = whole_hours(p->to_text ? to - MINUTE : to);
	return check_period(q, p, c, e);
}

/* --- all --- */

static bool find_extent(struct question *q, struct costs *c, struct error *e)
{
	struct cost_hour *hours;
	size_t count;

	if (!history_cost_hours(q->history, (struct hour_range){ INT64_MIN, INT64_MAX }, &q->arena, &hours, &count, e))
		return false;
	c->from = hour_of_end(q->span.from) * HOUR;
	c->to = q->span.to;
	c->estimated_until = (hour_of_end(q->span.to) + 1) * HOUR;
	if (!count)
		return true;
	millis first = hours[0].hour * HOUR;
	c->estimated_until = first > c->from ? first : 0;
	c->from = first < c->from ? first : c->from;
	return true;
}

static bool find_dropped(struct question *q, const struct cost_period *p, struct costs *c, struct error *e)
{
	struct history_hour *hours;
	size_t count;

	if (!history_hours(q->history, q->pool_index, &q->arena, &hours, &count, e))
		return false;
	if (count && hours[0].hour * HOUR < c->from && p->from == c->from)
		c->dropped_until = c->from;
	return true;
}

static void keep_pool(const struct question *q, struct costs *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->count; i++)
		if (q->pool_index == ANY || (size_t)q->pool_index == c->hours[i].pool)
			c->hours[kept++] = c->hours[i];
	c->count = kept;
}

static bool read_hours(struct question *q, const struct cost_period *p, struct costs *c, struct error *e)
{
	CLEANUP(buf_release) struct buf found = { 0 };
	int64_t first = p->from / HOUR, last = p->to / HOUR - 1, folded = c->estimated_until / HOUR - 1;
	struct cost_hour *hours;
	size_t count;

	if (p->from >= c->estimated_until)
		c->estimated_until = 0;
	if (!history_has_records(q->history)) {
		c->missing_until = c->estimated_until;
		c->estimated_until = 0;
	}
	if (c->estimated_until && !fold(q, first, last < folded ? last : folded, &found, e))
		return false;
	if (!history_cost_hours(q->history, (struct hour_range){ first, last }, &q->arena, &hours, &count, e))
		return false;
	buf_append(&found, hours, count * sizeof *hours);
	c->count = found.len / sizeof *hours;
	c->hours = arena_array(&q->arena, struct cost_hour, c->count + 1);
	if (found.len)
		memcpy(c->hours, found.text, found.len);
	keep_pool(q, c);
	if (c->missing_until && !count)
		return error_set(
			e, ERROR_CONFLICT,
			"%s: kept no costs in this period, and its decisions are of another version of preheat, "
			"which this one cannot read; ask the program that wrote it",
			history_path(q->history));
	return true;
}

bool costs_read(struct question *q, struct cost_period *p, struct costs *out, struct error *e)
{
	struct costs c = { 0 };

	if (!find_extent(q, &c, e) || !read_period(q, p, &c, e) || !read_hours(q, p, &c, e) ||
	    !find_dropped(q, p, &c, e))
		return false;
	*out = c;
	return true;
}

bool costs_are_simulated(struct question *q, bool *is, struct error *e)
{
	const char *run;

	if (!history_fact(q->history, "run", &q->arena, &run, e))
		return false;
	*is = strncmp(run, "simulate", strlen("simulate")) == 0;
	return true;
}

/* --- words --- */

void cost_print_minute(const struct question *q, millis at, struct buf *out)
{
	size_t start = out->len;

	question_print_time(q, at, false, out);
	if (out->len - start > strlen(":00")) { /* whole hours need no seconds */
		out->len -= strlen(":00");
		out->text[out->len] = '\0';
	}
}

void cost_period_text(const struct question *q, const struct cost_period *p, struct buf *out)
{
	cost_print_minute(q, p->from, out);
	buf_text(out, " to ");
	cost_print_minute(q, p->to, out);
}

static bool is_free(const struct costs *c, size_t pool)
{
	struct cost_sums sum = { 0 };

	for (size_t i = 0; i < c->count; i++)
		if (c->hours[i].pool == pool)
			cost_add(&sum, &c->hours[i].sums);
	return cost_billed_gpu_ms(&sum) > 0 && !cost_micro_dollars(&sum);
}

static void note(struct question *q, const char **notes, size_t *count, const char *fmt, ...) PRINTF(4, 5);
static void note(struct question *q, const char **notes, size_t *count, const char *fmt, ...)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	if (*count < COST_NOTES)
		notes[(*count)++] = arena_strdup(&q->arena, text.text, text.len);
}

static const char *minute(struct question *q, millis at)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	cost_print_minute(q, at, &text);
	return arena_strdup(&q->arena, text.text, text.len);
}

size_t costs_notes(struct question *q, const struct costs *c, const char *notes[COST_NOTES])
{
	size_t pool_count, count = 0;
	const struct history_pool *pools = history_pools(q->history, &pool_count);

	for (size_t i = 0; i < pool_count; i++)
		if (is_free(c, i))
			note(q, notes, &count,
			     "Pool %s: its node groups have pricePerHour 0, so its dollars are 0; prices count from "
			     "the "
			     "moment that the manifest names them.",
			     pools[i].name);
	if (c->estimated_until)
		note(q, notes, &count,
		     "Until %s this history kept no costs; they are worked out from its decisions (levels at the end "
		     "of "
		     "each tick). Labels, quotas and who held GPUs are missing there.",
		     minute(q, c->estimated_until));
	if (c->missing_until)
		note(q, notes, &count,
		     "Until %s this history kept no costs, and its decisions are of another version of preheat, which "
		     "this one cannot read; that time is missing.",
		     minute(q, c->missing_until));
	if (c->dropped_until)
		note(q, notes, &count,
		     "Ticks before %s were dropped before costs were kept; preheat history --hours has what is left of "
		     "them.",
		     minute(q, c->dropped_until));
	return count;
}

void costs_print_notes(struct question *q, const struct costs *c)
{
	const char *notes[COST_NOTES];
	size_t count = costs_notes(q, c, notes);

	for (size_t i = 0; i < count; i++)
		fprintf(stderr, "Note: %s\n", notes[i]);
}
