/* Reading decisions: from a keyframe on, each told against the one before. */
#include "state/history_file.h"
#include "state/record_check.h"

static bool no_decision(struct history *h, int64_t tick, size_t pool, struct error *e)
{
	struct history_span span;

	if (!history_span(h, &span, e))
		return false;
	if (span.last_tick < span.first_tick)
		return error_set(e, ERROR_NOT_FOUND, "%s: no decisions in it", db_path(h->db));
	if (tick < span.first_tick || tick > span.last_tick)
		return error_set(e, ERROR_NOT_FOUND, "%s: no tick %lld; there are ticks %lld to %lld", db_path(h->db),
				 (long long)tick, (long long)span.first_tick, (long long)span.last_tick);
	if (!h->positions[pool].places.is_there)
		return error_set(e, ERROR_NOT_FOUND, "%s: pool %s was not in the manifest at tick %lld", db_path(h->db),
				 h->pools[pool].name, (long long)tick);
	return error_set(e, ERROR_INVALID, "%s: damaged: the decision of pool %s at tick %lld is missing",
			 db_path(h->db), h->pools[pool].name, (long long)tick);
}

static bool is_mark_wrong(const struct statement *s, const struct pool_plan *p, const struct group_places *g)
{
	if (p->group_count != g->count)
		return true;
	struct plan_marks m = plan_marks(p, g);

	return db_column_int(s, 3) != m.held_by || db_column_is_null(s, 4) == m.has_asked ||
	       (m.has_asked && db_column_int(s, 4) != m.asked) || db_column_int(s, 5) != m.concerns;
}

/* The plan of the row that the statement stands on; damage is told apart from failure. */
static bool decode_plan(struct pool_position *at, const struct statement *s, const struct record_key *k,
			struct error *damage)
{
	size_t len;
	const void *bytes = db_column_bytes(s, 7, &len);

	if (!k->is_keyframe && !at->is_plan_known)
		return error_set(damage, ERROR_INVALID, "the stored plan is told against a damaged one");
	at->is_plan_known = record_decode(&at->part[RECORD_PLAN], RECORD_PLAN, k, bytes, len, damage);
	if (!at->is_plan_known)
		return false;
	struct pool_plan plan = record_plan(&at->part[RECORD_PLAN]);
	if (is_mark_wrong(s, &plan, &at->places)) {
		at->is_plan_known = false;
		return error_set(damage, ERROR_INVALID, "the numbers beside the stored plan do not match it");
	}
	return true;
}

static bool damaged(struct history *h, int64_t tick, size_t pool, struct error *e)
{
	return error_wrap(e, "%s: pool %s, tick %lld", db_path(h->db), h->pools[pool].name, (long long)tick);
}

/* The input of the row that the statement stands on, and whether it can follow the tick before. */
static bool decode_input(struct pool_position *at, const struct statement *s, const struct record_key *k,
			 struct error *e)
{
	size_t len;
	const void *bytes = db_column_bytes(s, 6, &len);
	millis before = at->part[RECORD_INPUT].now;

	if (!record_decode(&at->part[RECORD_INPUT], RECORD_INPUT, k, bytes, len, e))
		return false;
	struct pool_snapshot input = record_snapshot(&at->part[RECORD_INPUT]);
	if (!record_check_input(k, &input, e))
		return false;
	return at->tick < 0 || at->tick != k->tick - 1 || k->now >= before ||
	       error_set(e, ERROR_INVALID, "the tick makes no sense: it ends %lld ms before the one before it",
			 (long long)(before - k->now));
}

/* Reads one row into the position; *damage is ERROR_NONE or says what is wrong with the plan. */
static bool read_row(struct history *h, int64_t tick, size_t pool, struct tick_record *out, struct error *damage,
		     struct error *e)
{
	struct pool_position *at = &h->positions[pool];
	struct statement *s =
		db_prepare(h->db, "SELECT t.at, t.interval, d.is_keyframe, d.held_by, d.asked, d.concerns,"
				  " d.input, d.plan FROM decision d JOIN tick t ON t.id = d.tick"
				  " WHERE d.tick = ? AND d.pool = ?");
	bool row;

	if (!history_find_places(h, tick, pool, &at->places, e))
		return false;
	db_bind_int(s, tick);
	db_bind_int(s, (int64_t)pool);
	if (!db_step(s, &row, e))
		return false;
	if (!row)
		return no_decision(h, tick, pool, e);
	struct record_key k = { tick, (int64_t)pool, db_column_int(s, 0), db_column_int(s, 1),
				db_column_int(s, 2) == 1 };
	h->is_keyframe_due = true; /* what is written next is no longer told against what was written last */
	bool is_sound = decode_input(at, s, &k, e);

	at->tick = -1;
	if (!is_sound) {
		db_reset(s);
		return damaged(h, tick, pool, e);
	}
	*damage = (struct error){ .kind = ERROR_NONE };
	decode_plan(at, s, &k, damage);
	db_reset(s);
	at->tick = tick;
	out->now = k.now;
	out->interval = k.interval;
	return true;
}

/* The first row to read: the next one when that leads there, else the last keyframe. */
static bool find_start(struct history *h, int64_t tick, size_t pool, int64_t *start, struct error *e)
{
	struct pool_position *at = &h->positions[pool];
	struct history_span span;
	bool row;

	/* The first of a manifest's ticks is a keyframe. */
	if (!history_find_places(h, tick, pool, &at->places, e))
		return false;
	if (at->tick >= 0 && at->tick < tick && tick - at->tick <= KEYFRAME_EVERY && at->tick >= at->places.from) {
		*start = at->tick + 1;
		return true;
	}
	if (!history_span(h, &span, e))
		return false;
	if (tick < span.first_tick || tick > span.last_tick)
		return no_decision(h, tick, pool, e);
	struct statement *s = db_prepare(h->db, "SELECT tick FROM decision WHERE tick <= ? AND pool = ?"
						" AND is_keyframe = 1 ORDER BY tick DESC LIMIT 1");
	db_bind_int(s, tick);
	db_bind_int(s, (int64_t)pool);
	if (!db_step(s, &row, e))
		return false;
	if (!row)
		return no_decision(h, tick, pool, e);
	*start = db_column_int(s, 0);
	db_reset(s);
	return true;
}

static void fill(const struct pool_position *at, int64_t tick, size_t pool, struct tick_record *out)
{
	out->tick = tick;
	out->pool = pool;
	out->snapshot = record_snapshot(&at->part[RECORD_INPUT]);
	out->plan = record_plan(&at->part[RECORD_PLAN]);
}

bool history_read_row(struct history *h, int64_t tick, size_t pool, struct tick_record *out, struct error *e)
{
	struct error damage = { .kind = ERROR_NONE };

	if (!read_row(h, tick, pool, out, &damage, e))
		return false;
	fill(&h->positions[pool], tick, pool, out);
	if (damage.kind == ERROR_NONE)
		return true;
	*e = damage;
	return damaged(h, tick, pool, e);
}

bool history_read_lenient(struct history *h, int64_t tick, size_t pool, struct tick_record *out, struct error *damage,
			  struct error *e)
{
	const struct pool_position *at = &h->positions[pool];
	int64_t start = 0;

	/* Times are with the row, so the row in hand is read again too. */
	if (!find_start(h, tick, pool, &start, e))
		return false;
	for (int64_t t = start; t <= tick; t++)
		if (!read_row(h, t, pool, out, damage, e))
			return false;
	fill(at, tick, pool, out);
	out->is_plan_damaged = damage->kind != ERROR_NONE;
	return true;
}

bool history_read(struct history *h, int64_t tick, size_t pool, struct tick_record *out, struct error *e)
{
	struct error damage = { .kind = ERROR_NONE };

	if (!history_read_lenient(h, tick, pool, out, &damage, e))
		return false;
	if (damage.kind == ERROR_NONE)
		return true;
	*e = damage;
	return damaged(h, tick, pool, e);
}

void history_trust_plan(struct history *h, size_t pool, const struct pool_plan *plan)
{
	record_set_plan(&h->positions[pool].part[RECORD_PLAN], plan);
	h->positions[pool].is_plan_known = true;
}
