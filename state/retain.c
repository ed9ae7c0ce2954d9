/* Old ticks go; what they came to stays, in sums per hour. */
#include "state/history_file.h"

#include <string.h>

/* Pages of the file that one step gives back. */
enum { VACUUM_PAGES = 200 };
/* Rows of one transaction: another process that writes waits so long. */
enum { ROWS_AT_ONCE = 5000 };

/* What one pool's ticks of an hour came to. */
struct sums {
	int64_t ticks, arrived, started, late, replica_ms, micro_dollars, asked;
};

static const millis an_hour = HOUR;

static void count(struct sums *s, const struct tick_record *r)
{
	const struct pool_decision *d = &r->plan.decision;

	s->ticks++;
	s->arrived += d->arrived == ABSENT ? 0 : d->arrived;
	s->started += d->started == ABSENT ? 0 : d->started;
	s->late += d->late == ABSENT ? 0 : d->late;
	s->replica_ms += (int64_t)((__int128)d->decided * r->interval);
	s->micro_dollars += (int64_t)((__int128)d->dollars_per_hour * r->interval / an_hour);
	s->asked += plan_asks(&r->plan);
}

static bool save_sums(struct history *h, int64_t hour, size_t pool, struct sums *sums, struct error *e)
{
	struct statement *s = DB_QUERY(
		h->db,
		"INSERT INTO rollup (hour, pool, ticks, arrived, started, late, replica_ms, micro_dollars, asked)"
		" VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET ticks = ticks + excluded.ticks,"
		" arrived = arrived + excluded.arrived, started = started + excluded.started,"
		" late = late + excluded.late, replica_ms = replica_ms + excluded.replica_ms,"
		" micro_dollars = micro_dollars + excluded.micro_dollars, asked = asked + excluded.asked",
		DB_I(hour), DB_I((int64_t)pool));

	db_bind_ints(s, (const int64_t *)sums, sizeof *sums / sizeof(int64_t));
	*sums = (struct sums){ 0 };
	return db_run(s, e);
}

/* Ticks that go in one piece: every pool's first row in it is a keyframe. */
struct piece {
	int64_t from, until; /* until not included */
	int64_t rows[KEYFRAME_EVERY];
	size_t row_count; /* of one pool */
};

static bool find_rows(struct history *h, size_t pool, struct piece *p, struct error *e)
{
	struct statement *s = DB_QUERY(h->db,
				       "SELECT tick FROM decision WHERE tick >= ? AND tick < ? AND pool = ?"
				       " ORDER BY tick",
				       DB_I(p->from), DB_I(p->until), DB_I((int64_t)pool));
	bool ok = true;

	p->row_count = 0;
	while (p->row_count < KEYFRAME_EVERY && db_next(s, &ok, e))
		p->rows[p->row_count++] = db_column_int(s, 0);
	db_reset(s);
	return ok;
}

static bool sum_rows(struct history *h, size_t pool, const struct piece *p, struct error *e)
{
	struct sums sums = { 0 };
	struct tick_record r = { 0 };
	int64_t hour = 0;

	for (size_t i = 0; i < p->row_count; i++) {
		if (!history_read_row(h, p->rows[i], pool, &r, e)) {
			if (e->kind != ERROR_INVALID)
				return false;
			break; /* damage must not keep the file growing: what cannot be read goes without a sum */
		}
		if (r.now / HOUR != hour && sums.ticks && !save_sums(h, hour, pool, &sums, e))
			return false;
		hour = r.now / HOUR;
		count(&sums, &r);
	}
	return !sums.ticks || save_sums(h, hour, pool, &sums, e);
}

/* A writer's positions are what the next tick is told against, so reading gets its own. */
static bool sum_up(struct history *h, size_t pool, const struct piece *p, struct error *e)
{
	CLEANUP(arena_release) struct arena scratch = { 0 };
	struct pool_position *writing = h->positions;
	bool is_due = h->is_keyframe_due;

	h->positions = arena_array(&scratch, struct pool_position, h->pool_count);
	h->positions[pool].tick = -1;
	bool ok = sum_rows(h, pool, p, e);
	for (int part = 0; part < RECORD_PART_COUNT; part++)
		record_state_release(&h->positions[pool].part[part]);
	h->positions = writing;
	h->is_keyframe_due = is_due;
	return ok;
}

/* One pool's rows of a piece; after the last pool the ticks themselves. */
static bool drop_rows(struct history *h, size_t pool, struct piece *p, struct error *e)
{
	if (!find_rows(h, pool, p, e) || !sum_up(h, pool, p, e))
		return false;
	struct statement *s = DB_QUERY(h->db, "DELETE FROM decision WHERE tick >= ? AND tick < ? AND pool = ?",
				       DB_I(p->from), DB_I(p->until), DB_I((int64_t)pool));
	return db_run(s, e) && (pool + 1 < h->pool_count ||
				db_run(DB_QUERY(h->db, "DELETE FROM tick WHERE id < ?", DB_I(p->until)), e));
}

/* What else is only about ticks that nobody reads any more. */
static bool drop_rest(struct history *h, int64_t until, struct error *e)
{
	static const char *const by_tick[] = {
		"DELETE FROM gpu_holding WHERE until < (SELECT at FROM tick WHERE id = ?)",
		"DELETE FROM launch WHERE ended_at < (SELECT at FROM tick WHERE id = ?)",
		"DELETE FROM drain WHERE unmarked_at < (SELECT at FROM tick WHERE id = ?)",
		"DELETE FROM share_decision WHERE at < (SELECT at FROM tick WHERE id = ?)",
		"DELETE FROM share_choice WHERE saved_at < (SELECT at FROM tick WHERE id = ?)",
		"DELETE FROM engine_move WHERE ended_at < (SELECT at FROM tick WHERE id = ?)",
		"DELETE FROM checkpoint WHERE tick < ?",
		("DELETE FROM level WHERE width = 0 AND pool IN (SELECT id FROM pool) AND number <"
		 " (SELECT (at - 1) / 300000 FROM tick WHERE id = ?)"),
		"DELETE FROM group_use WHERE tick < (SELECT max(tick) FROM manifest_use WHERE tick <= ?)",
		"DELETE FROM pool_use WHERE tick < (SELECT max(tick) FROM manifest_use WHERE tick <= ?)",
		"DELETE FROM manifest_use WHERE tick < (SELECT max(tick) FROM manifest_use WHERE tick <= ?)",
		"DELETE FROM writer WHERE tick < (SELECT max(tick) FROM writer WHERE tick <= ?)",
	};

	for (size_t i = 0; i < sizeof by_tick / sizeof *by_tick; i++)
		if (!db_run(DB_QUERY(h->db, by_tick[i], DB_I(until)), e))
			return false;
	return db_exec(h->db,
		       "DELETE FROM manifest_text WHERE manifest NOT IN (SELECT manifest FROM manifest_use);"
		       "DELETE FROM manifest WHERE id NOT IN (SELECT manifest FROM manifest_use)",
		       e);
}

/* Whether the ticks from this one on last as long as is kept. */
static bool is_enough(struct history *h, int64_t tick, millis keep, bool *is, struct error *e)
{
	int64_t recorded;

	if (!db_read_ints(DB_QUERY(h->db, "SELECT CAST(sum(interval) AS BIGINT) FROM tick WHERE id >= ?", DB_I(tick)),
			  &recorded, 1, NULL, e))
		return false;
	*is = recorded >= keep;
	return true;
}

/* The last checkpoint that is old enough by the clock and by what was recorded since; `cut` stays when there is none.
 */
static bool find_cut(struct history *h, const struct history_span *span, millis older_than, int64_t *cut,
		     struct error *e)
{
	int64_t tick = span->first_tick;
	bool is_there = true, is = true;

	while (is_there && is) {
		if (tick > span->first_tick)
			*cut = tick;
		struct statement *s = DB_QUERY(h->db,
					       "SELECT tick FROM checkpoint WHERE tick > ? AND tick <= ? AND at <= ?"
					       " ORDER BY tick LIMIT 1",
					       DB_I(tick), DB_I(span->last_tick), DB_I(older_than));
		if (!db_read_ints(s, &tick, 1, &is_there, e) ||
		    (is_there && !is_enough(h, tick, span->to - older_than, &is, e)))
			return false;
	}
	return true;
}

/*
 * Ticks before this one are hidden at once, and then go piece by piece: the
 * last checkpoint before `older_than`, so that replay can start there.
 */
static bool hide(struct history *h, millis older_than, struct error *e)
{
	struct history_span span;
	int64_t cut = -1;

	if (!history_span(h, &span, e) || !find_cut(h, &span, older_than, &cut, e))
		return false;
	if (cut < 0)
		return true;
	return history_begin(h, e) &&
	       db_run(DB_QUERY(h->db, "INSERT OR REPLACE INTO fact (name, value) VALUES ('kept_from', CAST(? AS TEXT))",
			       DB_I(cut)),
		      e);
}

bool history_retain_from(struct history *h, millis older_than, int64_t *first, struct error *e)
{
	struct history_span span;

	if (!history_span(h, &span, e))
		return false;
	*first = span.first_tick;
	return find_cut(h, &span, older_than, first, e);
}

static bool find_piece(struct history *h, struct piece *p, bool *there, struct error *e)
{
	struct history_span span;
	int64_t first;

	if (!history_span(h, &span, e) ||
	    !db_read_ints(DB_QUERY(h->db, "SELECT min(id) FROM tick WHERE id >= ?", DB_I(INT64_MIN)), &first, 1, NULL,
			  e))
		return false;
	int64_t next = (first / KEYFRAME_EVERY + 1) * KEYFRAME_EVERY;
	p->from = first;
	p->until = next < span.first_tick ? next : span.first_tick;
	*there = first < span.first_tick;
	return true;
}

/* The next pool's rows of the piece that goes first; counts them in *rows. */
static bool step(struct history *h, int64_t *rows, bool *more, struct error *e)
{
	struct piece p;

	if (!find_piece(h, &p, more, e))
		return false;
	if (!*more)
		return true;
	size_t pool = h->retained_from == p.from ? h->retained_pools : 0;
	if (!history_begin(h, e) || !drop_rows(h, pool, &p, e) ||
	    (pool + 1 == h->pool_count && !drop_rest(h, p.until, e)))
		return false;
	h->retained_from = p.from;
	h->retained_pools = pool + 1;
	*rows += (int64_t)p.row_count + 1;
	return true;
}

static bool give_back(struct history *h, bool *more, struct error *e)
{
	int64_t free_pages;

	if (!db_read_ints(DB_QUERY(h->db, "SELECT freelist_count FROM pragma_freelist_count WHERE ?", DB_I(1)),
			  &free_pages, 1, NULL, e))
		return false;
	*more = free_pages > VACUUM_PAGES;
	return free_pages == 0 || db_exec(h->db, "PRAGMA incremental_vacuum(200)", e);
}

static bool retain_rows(struct history *h, millis older_than, int64_t rows, bool *more, struct error *e)
{
	int64_t done = 0;

	if (!history_commit(h, e) || !hide(h, older_than, e))
		return false;
	*more = true;
	while (*more && done < rows)
		if (!step(h, &done, more, e))
			return false;
	return history_commit(h, e) && (*more || give_back(h, more, e));
}

bool history_retain_some(struct history *h, millis older_than, int64_t rows, bool *more, struct error *e)
{
	if (retain_rows(h, older_than, rows, more, e))
		return true;
	history_undo(h);
	h->retained_from = -1;
	return false;
}

enum { ROOM_PAGES = 256 }; /* free ones in the file, for the ticks to come */

/* Up to the oldest checkpoint but the first and the last; nothing without one. */
static bool hide_oldest(struct history *h, struct error *e)
{
	struct history_span span;
	int64_t cut;
	bool is_there;

	if (!history_span(h, &span, e) ||
	    !db_read_ints(DB_QUERY(h->db,
				   "SELECT tick FROM checkpoint WHERE tick > ? AND tick < (SELECT max(tick) FROM"
				   " checkpoint) ORDER BY tick LIMIT 1",
				   DB_I(span.first_tick)),
			  &cut, 1, &is_there, e))
		return false;
	return !is_there || cut > span.last_tick ||
	       db_run(DB_QUERY(h->db, "INSERT OR REPLACE INTO fact (name, value) VALUES ('kept_from', CAST(? AS TEXT))",
			       DB_I(cut)),
		      e);
}

static bool drop_oldest(struct history *h, int64_t rows, struct error *e)
{
	struct piece p;
	bool more;
	int64_t done = 0;

	if (!history_begin(h, e) || !find_piece(h, &p, &more, e) || (!more && !hide_oldest(h, e)))
		return false;
	for (more = true; more && done < rows;)
		if (!step(h, &done, &more, e))
			return false;
	return history_commit(h, e);
}

static bool make_room(struct history *h, int64_t rows, struct error *e)
{
	if (drop_oldest(h, rows, e))
		return true;
	history_undo(h);
	h->retained_from = -1;
	return false;
}

bool history_make_room(struct history *h, int64_t rows, struct error *e)
{
	int64_t free_pages;

	if (!history_commit(h, e) ||
	    !db_read_ints(DB_QUERY(h->db, "SELECT freelist_count FROM pragma_freelist_count WHERE ?", DB_I(1)),
			  &free_pages, 1, NULL, e) ||
	    (free_pages < ROOM_PAGES && !make_room(h, rows, e)))
		return false;
	/* The log begins again at its beginning: it grows no more either. */
	return db_exec(h->db, "PRAGMA wal_checkpoint(RESTART)", e);
}

bool history_retain_bytes(struct history *h, int64_t bytes, int64_t rows, bool *more, struct error *e)
{
	struct history_span before, after;
	struct piece p;
	int64_t used;

	if (!history_commit(h, e) || !history_span(h, &before, e) || !find_piece(h, &p, more, e) ||
	    !db_read_ints(DB_QUERY(h->db,
				   "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count,"
				   " pragma_freelist_count, pragma_page_size WHERE ?",
				   DB_I(1)),
			  &used, 1, NULL, e))
		return false;
	if (!*more && used <= bytes)
		return give_back(h, more, e);
	if (!make_room(h, rows, e) || !history_span(h, &after, e))
		return false;
	*more = *more || after.first_tick > before.first_tick; /* the last hour or so stays, however large it is */
	return true;
}

bool history_retain(struct history *h, millis older_than, int64_t *dropped, struct error *e)
{
	struct history_span before, after;
	bool more = true;

	*dropped = 0;
	if (!history_span(h, &before, e))
		return false;
	while (more)
		if (!history_retain_some(h, older_than, ROWS_AT_ONCE, &more, e))
			return false;
	if (!history_span(h, &after, e))
		return false;
	*dropped = after.first_tick - before.first_tick;
	return true;
}

bool history_hours(struct history *h, int64_t pool, struct arena *a, struct history_hour **hours, size_t *count,
		   struct error *e)
{
	struct buf found = { 0 };
	struct statement *s = DB_QUERY(h->db,
				       "SELECT hour, pool, ticks, arrived, started, late, replica_ms,"
				       " micro_dollars, asked FROM rollup WHERE ?1 = -1 OR pool = ?1"
				       " ORDER BY hour, pool",
				       DB_I(pool));
	bool ok;

	while (db_next(s, &ok, e)) {
		struct history_hour hour = { .hour = db_column_int(s, 0), .pool = (size_t)db_column_int(s, 1) };

		db_column_ints(s, 2, &hour.ticks,
			       (sizeof hour - offsetof(struct history_hour, ticks)) / sizeof(int64_t));
		if (hour.pool < h->pool_count)
			buf_append(&found, &hour, sizeof hour);
	}
	*hours = rows_array(&found, sizeof **hours, a, count);
	return ok;
}
