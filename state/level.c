/* Levels on their way into the file: summed up until the transaction of their ticks ends. */
#include "state/level.h"

#include "controller/policy/queue_wait.h"
#include "state/history_file.h"

#include <string.h>

struct pending {
	int64_t number; /* of the row: its beginning over its width */
	size_t pool;
	enum level_width width;
	struct level_sums sums;
};

millis level_millis(enum level_width width)
{
	static const millis widths[LEVEL_WIDTH_COUNT] = { 5 * MINUTE, HOUR };

	return widths[width];
}

/* Wraps where records are absurd. */
static void add(int64_t *sum, int64_t more)
{
	*sum = (int64_t)((uint64_t)*sum + (uint64_t)more);
}

static void add_known(int64_t *sum, int64_t more)
{
	*sum += more == ABSENT ? 0 : more;
}

static void add_groups(struct level_sums *l, const struct pool_snapshot *s, const struct pool_plan *p, millis interval)
{
	for (size_t i = 0; i < p->group_count; i++) {
		const struct group_decision *g = &p->groups[i];

		add(&l->asked, g->cold);
		add(&l->asked, g->wake);
		add(&l->asked, g->refill);
		add(&l->asked, g->reclaim);
		add(&l->asked, g->place);
		add(&l->released, g->release);
	}
	for (size_t i = 0; i < s->group_count; i++)
		add(&l->gpu_ms, (int64_t)((__int128)s->groups[i].billed_gpus_milli * interval / 1000));
}

static void add_heard(struct level_sums *l, const struct pool_decision *d)
{
	millis wait = queue_wait(d);

	if (d->demand_milli != ABSENT && d->running_milli != ABSENT && d->waiting_milli != ABSENT) {
		l->heard++;
		l->demand_milli += d->demand_milli;
		l->running_milli += d->running_milli;
		l->waiting_milli += d->waiting_milli;
		l->demand_milli_most = d->demand_milli;
		l->waiting_milli_most = d->waiting_milli;
	}
	if (wait != ABSENT) {
		l->waited++;
		l->wait_ms += wait;
		l->wait_ms_most = wait;
	}
}

/* Far beyond any fleet, and far from where sums of them overflow: what is outside was not told by any. */
static void keep_sane(struct level_sums *l)
{
	static const int64_t most = INT64_C(100000000000);
	int64_t *values = (int64_t *)l;

	for (int i = 0; i < LEVEL_FIELDS; i++)
		if (values[i] < 0 || values[i] > most)
			values[i] = 0;
}

void level_add_tick(struct level_sums *sums, const struct pool_snapshot *s, const struct pool_plan *p, millis interval)
{
	const struct pool_decision *d = &p->decision;
	struct level_sums l = { 0 };

	if (interval == 0) { /* between two ticks: it stands for no time */
		add_groups(&l, s, p, 0);
		keep_sane(&l);
		level_add(sums, &l);
		return;
	}
	l = (struct level_sums){ .ticks = 1,
				 .ms = interval,
				 .hot = d->ready,
				 .starting = d->on_the_way,
				 .draining = d->draining,
				 .standby = d->standby,
				 .lent = d->lent,
				 .wished = d->wished,
				 .decided = d->decided,
				 .decided_most = d->decided };

	add_known(&l.arrived, d->arrived);
	add_known(&l.started, d->started);
	add_known(&l.late, d->late);
	l.micro_dollars = (int64_t)((__int128)d->dollars_per_hour * interval / HOUR);
	add_heard(&l, d);
	add_groups(&l, s, p, interval);
	keep_sane(&l);
	level_add(sums, &l);
}

void level_add(struct level_sums *to, const struct level_sums *more)
{
#define SUM(name)  to->name += more->name;
#define MOST(name) to->name = more->name > to->name ? more->name : to->name;
#include "state/level.def"
#undef SUM
#undef MOST
}

static struct pending *find_pending(struct history *h, struct fleet_place *p, const struct pending *like)
{
	size_t *last = &p->level[like->width];
	struct pending *items = (void *)h->levels.text;

	if (*last && items[*last - 1].number == like->number)
		return &items[*last - 1];
	buf_append(&h->levels, like, sizeof *like);
	*last = h->levels.len / sizeof *like;
	return (struct pending *)(void *)h->levels.text + *last - 1;
}

void history_note_level(struct history *h, const struct snapshot *s, const struct plan *p, size_t place)
{
	struct fleet_place *of = &h->places[place];
	struct level_sums tick = { 0 };

	level_add_tick(&tick, &s->pools[place], &p->pools[place], s->interval);
	if (of->is_metered) {
		tick.gpu_ms = of->metered_gpu_ms;
		tick.micro_dollars = of->metered_dollars;
		keep_sane(&tick);
	}
	of->metered_gpu_ms = of->metered_dollars = 0;
	of->is_metered = false;
	for (int width = 0; width < LEVEL_WIDTH_COUNT; width++) {
		const struct pending like = { .number = (s->now - 1) / level_millis((enum level_width)width),
					      .pool = of->pool,
					      .width = (enum level_width)width };

		level_add(&find_pending(h, of, &like)->sums, &tick);
	}
}

static bool save(struct history *h, const struct pending *p, struct error *e)
{
	/* clang-format off */
	struct statement *s = db_prepare(h->db, "INSERT INTO level VALUES (?, ?, ?"
#define SUM(name)  ", ?"
#define MOST(name) ", ?"
#include "state/level.def"
#undef SUM
#undef MOST
		") ON CONFLICT DO UPDATE SET pool = pool"
#define SUM(name)  ", " #name " = " #name " + excluded." #name
#define MOST(name) ", " #name " = max(" #name ", excluded." #name ")"
#include "state/level.def"
#undef SUM
#undef MOST
	);
	/* clang-format on */

	DB_BIND(s, DB_I((int64_t)p->pool), DB_I(p->width), DB_I(p->number));
	db_bind_ints(s, (const int64_t *)&p->sums, LEVEL_FIELDS);
	return db_run(s, e);
}

bool history_save_levels(struct history *h, struct error *e)
{
	const struct pending *items = (const void *)h->levels.text;

	for (size_t i = 0; i < h->levels.len / sizeof *items; i++)
		if (!save(h, &items[i], e))
			return false;
	buf_clear(&h->levels);
	return true;
}

/* --- reading --- */

static bool take_row(struct rows *r, const struct statement *s, struct error *e)
{
	static const int64_t EARLIEST = 0;
	struct level_row row;
	int64_t values[LEVEL_FIELDS], width = db_column_int(s, 1), number = db_column_int(s, 2);

	db_column_ints(s, 3, values, LEVEL_FIELDS);
	const millis length = level_millis((enum level_width)width);
	if (number < EARLIEST || !rows_check_hour(r, number / (HOUR / length), values, LEVEL_FIELDS, e))
		return error_set(e, ERROR_INVALID, "%s: damaged: levels that cannot be", db_path(r->history->db));
	row.from = number * length;
	memcpy(&row.sums, values, sizeof values);
	buf_append(&r->found, &row, sizeof row);
	return true;
}

bool level_read(struct history *h, const struct level_question *q, struct arena *a, struct level_row **rows,
		size_t *count, struct error *e)
{
	struct rows r = { .history = h, .arena = a };

	if (h->has_levels) {
		struct statement *s =
			db_prepare(h->db, "SELECT * FROM level WHERE pool = ? AND width = ? AND number BETWEEN ? AND ?"
					  " ORDER BY number");
		DB_BIND(s, DB_I((int64_t)q->pool), DB_I(q->width), DB_I(q->from / level_millis(q->width)),
			DB_I((q->to - 1) / level_millis(q->width)));
		if (!rows_read(&r, s, take_row, e))
			return false;
	}
	*rows = rows_array(&r.found, sizeof **rows, a, count);
	return true;
}

bool level_first(struct history *h, size_t pool, enum level_width width, millis *from, struct error *e)
{
	bool there = false;

	*from = ABSENT;
	if (!h->has_levels)
		return true;
	struct statement *s =
		DB_QUERY(h->db, "SELECT number FROM level WHERE pool = ? AND width = ? ORDER BY number LIMIT 1",
			 DB_I((int64_t)pool), DB_I(width));
	if (!db_read_ints(s, from, 1, &there, e))
		return false;
	*from = there ? *from * level_millis(width) : ABSENT;
	return true;
}
