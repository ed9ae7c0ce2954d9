/* Old ticks go; what they came to stays, in sums per hour. */
#include "state/history_file.h"

#include <string.h>

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
	struct statement *s = db_prepare(
		h->db,
		"INSERT INTO rollup (hour, pool, ticks, arrived, started, late, replica_ms, micro_dollars, asked)"
		" VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET ticks = ticks + excluded.ticks,"
		" arrived = arrived + excluded.arrived, started = started + excluded.started,"
		" late = late + excluded.late, replica_ms = replica_ms + excluded.replica_ms,"
		" micro_dollars = micro_dollars + excluded.micro_dollars, asked = asked + excluded.asked");

	db_bind_int(s, hour);
	db_bind_int(s, (int64_t)pool);
	const int64_t *v = (const int64_t *)sums;
	for (size_t i = 0; i < sizeof *sums / sizeof *v; i++)
		db_bind_int(s, v[i]);
	*sums = (struct sums){ 0 };
	return db_run(s, e);
}

static bool sum_pool(struct history *h, size_t pool, int64_t from, int64_t until, struct error *e)
{
	struct sums sums = { 0 };
	struct tick_record r = { 0 };
	int64_t hour = 0;

	for (int64_t tick = from; tick < until; tick++) {
		if (!history_read(h, tick, pool, &r, e)) {
			if (e->kind == ERROR_NOT_FOUND)
				continue; /* not in the manifest then */
			return false;
		}
		if (r.now / HOUR != hour && sums.ticks && !save_sums(h, hour, pool, &sums, e))
			return false;
		hour = r.now / HOUR;
		count(&sums, &r);
	}
	return !sums.ticks || save_sums(h, hour, pool, &sums, e);
}

/* A writer's positions are what the next tick is told against, so reading gets its own. */
static bool sum_up(struct history *h, int64_t from, int64_t until, struct error *e)
{
	struct pool_position *writing = h->positions;
	bool ok = true;

	for (size_t pool = 0; pool < h->pool_count && ok; pool++) {
		CLEANUP(arena_release) struct arena scratch = { 0 };

		h->positions = arena_array(&scratch, struct pool_position, h->pool_count);
		h->positions[pool].tick = -1;
		ok = sum_pool(h, pool, from, until, e);
		for (int part = 0; part < RECORD_PART_COUNT; part++)
			record_state_release(&h->positions[pool].part[part]);
	}
	h->positions = writing;
	return ok;
}

static bool drop(struct history *h, int64_t until, millis before, struct error *e)
{
	static const char *const by_tick[] = {
		"DELETE FROM decision WHERE tick < ?",
		"DELETE FROM tick WHERE id < ?",
		"DELETE FROM checkpoint WHERE tick < ?",
		"DELETE FROM manifest_use WHERE tick < (SELECT max(tick) FROM manifest_use WHERE tick <= ?)",
		"DELETE FROM pool_use WHERE tick < (SELECT max(tick) FROM pool_use WHERE tick <= ?)",
		"DELETE FROM group_use WHERE tick < (SELECT max(tick) FROM pool_use WHERE tick <= ?)",
		"DELETE FROM writer WHERE tick < (SELECT max(tick) FROM writer WHERE tick <= ?)",
	};

	for (size_t i = 0; i < sizeof by_tick / sizeof *by_tick; i++) {
		struct statement *s = db_prepare(h->db, by_tick[i]);

		db_bind_int(s, until);
		if (!db_run(s, e))
			return false;
	}
	struct statement *s = db_prepare(h->db, "DELETE FROM launch WHERE ended_at < ?");
	db_bind_int(s, before);
	return db_run(s, e) &&
	       db_exec(h->db, "DELETE FROM manifest WHERE id NOT IN (SELECT manifest FROM manifest_use)", e);
}

/* The tick of the last checkpoint before `older_than`; 0 when there is none. */
static bool find_cut(struct history *h, millis older_than, int64_t *cut, struct error *e)
{
	struct statement *s = db_prepare(h->db, "SELECT max(tick) FROM checkpoint WHERE at <= ?");
	bool row;

	db_bind_int(s, older_than);
	if (!db_step(s, &row, e))
		return false;
	*cut = db_column_int(s, 0);
	db_reset(s);
	return true;
}

bool history_retain(struct history *h, millis older_than, int64_t *dropped, struct error *e)
{
	struct history_span span;
	int64_t cut;

	*dropped = 0;
	if (!history_commit(h, e) || !history_span(h, &span, e) || !find_cut(h, older_than, &cut, e))
		return false;
	if (cut <= span.first_tick || cut > span.last_tick)
		return true;
	if (!history_begin(h, e))
		return false;
	if (!sum_up(h, span.first_tick, cut, e) || !drop(h, cut, older_than, e)) {
		history_undo(h);
		return false;
	}
	if (!history_commit(h, e) || !db_exec(h->db, "PRAGMA incremental_vacuum", e))
		return false;
	*dropped = cut - span.first_tick;
	return true;
}

static struct history_hour hour_of(const struct statement *s)
{
	return (struct history_hour){ .hour = db_column_int(s, 0),
				      .pool = (size_t)db_column_int(s, 1),
				      .ticks = db_column_int(s, 2),
				      .arrived = db_column_int(s, 3),
				      .started = db_column_int(s, 4),
				      .late = db_column_int(s, 5),
				      .replica_ms = db_column_int(s, 6),
				      .micro_dollars = db_column_int(s, 7),
				      .asked = db_column_int(s, 8) };
}

bool history_hours(struct history *h, int64_t pool, struct arena *a, struct history_hour **hours, size_t *count,
		   struct error *e)
{
	CLEANUP(buf_release) struct buf found = { 0 };
	struct statement *s = db_prepare(h->db, "SELECT hour, pool, ticks, arrived, started, late, replica_ms,"
						" micro_dollars, asked FROM rollup WHERE ?1 = -1 OR pool = ?1"
						" ORDER BY hour, pool");
	bool row = true;

	db_bind_int(s, pool);
	while (row) {
		if (!db_step(s, &row, e))
			return false;
		struct history_hour hour = row ? hour_of(s) : (struct history_hour){ 0 };

		if (row && hour.pool < h->pool_count)
			buf_append(&found, &hour, sizeof hour);
	}
	db_reset(s);
	*count = found.len / sizeof **hours;
	*hours = arena_array(a, struct history_hour, *count + 1);
	if (found.len)
		memcpy(*hours, found.text, found.len);
	return true;
}
