/* Questions to a history: its facts, which decisions there are, and the decisions themselves. */
#include "state/history.h"

#include "base/gzip.h"
#include "state/history_file.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* --- rows of a question --- */

/* Far beyond any fleet and time, and far from where sums of them overflow. */
static const int64_t SUM_MOST = INT64_C(1000000000000000), HOUR_MOST = 2000000;

bool rows_read(struct rows *r, struct statement *s, rows_take_fn *take, struct error *e)
{
	bool ok;

	while (db_next(s, &ok, e))
		if (!take(r, s, e)) {
			db_reset(s);
			ok = false;
			break;
		}
	if (!ok)
		buf_release(&r->found);
	return ok;
}

void *rows_array(struct buf *found, size_t record_size, struct arena *a, size_t *count)
{
	char *items = arena_alloc(a, found->len / 16 + 1, 16);

	if (found->len)
		memcpy(items, found->text, found->len);
	*count = found->len / record_size;
	buf_release(found);
	return items;
}

bool rows_check_hour(const struct rows *r, int64_t hour, const int64_t *sums, size_t count, struct error *e)
{
	bool can_be = hour >= 0 && hour <= HOUR_MOST;

	for (size_t i = 0; i < count; i++)
		can_be = can_be && sums[i] >= 0 && sums[i] <= SUM_MOST;
	return can_be || error_set(e, ERROR_INVALID, "%s: damaged: the sums of hour %lld cannot be",
				   db_path(r->history->db), (long long)hour);
}

/* --- facts --- */

const char *history_path(const struct history *h)
{
	return db_path(h->db);
}

bool history_lacks_room(const struct history *h)
{
	return db_lacks_room(h->db);
}

const struct history_pool *history_pools(const struct history *h, size_t *count)
{
	*count = h->pool_count;
	return h->pools;
}

bool history_find_pool(const struct history *h, const char *name, size_t *pool, struct error *e)
{
	CLEANUP(buf_release) struct buf known = { .cap = 256 };

	for (size_t i = 0; i < h->pool_count; i++) {
		const struct history_pool *p = &h->pools[i];
		size_t space = strlen(p->namespace);

		if (!strcmp(p->name, name) ||
		    (!strncmp(p->namespace, name, space) && name[space] == '/' && !strcmp(p->name, name + space + 1))) {
			*pool = i;
			return true;
		}
		buf_printf(&known, "%s%s", i ? ", " : "", p->name);
	}
	return error_set(e, ERROR_NOT_FOUND, "%s: no pool '%s' in this history; there is: %s", db_path(h->db), name,
			 known.text ? known.text : "none");
}

bool history_fact(struct history *h, const char *name, struct arena *a, const char **value, struct error *e)
{
	struct statement *s = DB_QUERY(h->db, "SELECT value FROM fact WHERE name = ?", DB_T(name));
	bool row;

	if (!db_step(s, &row, e))
		return false;
	*value = row ? db_column_copy(s, 0, a) : "";
	db_reset(s);
	return true;
}

bool history_span(struct history *h, struct history_span *span, struct error *e)
{
	struct statement *s =
		db_prepare(h->db, "SELECT a.id, z.id, a.at, z.at FROM tick a, tick z"
				  " WHERE a.id = (SELECT min(id) FROM tick WHERE id >= coalesce("
				  "(SELECT CAST(value AS INTEGER) FROM fact WHERE name = 'kept_from'), 0))"
				  " AND z.id = (SELECT max(id) FROM tick)");
	int64_t v[4];
	bool there;

	if (!db_read_ints(s, v, 4, &there, e))
		return false;
	*span = there ? (struct history_span){ v[0], v[1], v[2], v[3] } : (struct history_span){ .last_tick = -1 };
	return true;
}

/* --- which decisions there are --- */

bool history_tick_end(struct history *h, int64_t tick, millis *at, struct error *e)
{
	bool there;

	if (!db_read_ints(DB_QUERY(h->db, "SELECT at FROM tick WHERE id = ?", DB_I(tick)), at, 1, &there, e))
		return false;
	return there ||
	       error_set(e, ERROR_INVALID, "%s: damaged: tick %lld is missing", db_path(h->db), (long long)tick);
}

bool history_interval(struct history *h, int64_t tick, millis *interval, struct error *e)
{
	struct statement *s = DB_QUERY(
		h->db, "SELECT interval FROM tick WHERE id <= ? AND interval > 0 ORDER BY id DESC LIMIT 1", DB_I(tick));
	bool there;

	if (!db_read_ints(s, interval, 1, &there, e))
		return false;
	return there || error_set(e, ERROR_NOT_FOUND, "%s: no tick %lld", db_path(h->db), (long long)tick);
}

bool history_tick_at(struct history *h, millis at, int64_t *tick, struct error *e)
{
	struct history_span span;
	millis end = 0;

	if (!history_span(h, &span, e))
		return false;
	if (span.last_tick < span.first_tick)
		return error_set(e, ERROR_NOT_FOUND, "%s: no decisions in it", db_path(h->db));
	/* Ends grow with ticks and there are no gaps, so halving finds it without an index. */
	int64_t low = span.first_tick, high = span.last_tick;
	while (low < high) {
		int64_t middle = low + (high - low + 1) / 2;

		if (!history_tick_end(h, middle, &end, e))
			return false;
		if (end <= at)
			low = middle;
		else
			high = middle - 1;
	}
	*tick = low;
	return true;
}

#define MATCHES                                                                                                       \
	" tick BETWEEN ?1 AND ?2 AND (CAST(?3 AS INTEGER) IS NULL OR pool = ?3) AND (CAST(?4 AS INTEGER) IS NULL OR " \
	"held_by = ?4)"                                                                                               \
	" AND (CAST(?5 AS TEXT) IS NULL OR EXISTS (SELECT 1 FROM pool_group g WHERE g.pool = decision.pool AND "      \
	"g.name = ?5"                                                                                                 \
	" AND (decision.concerns >> CAST(CASE WHEN g.position < 62 THEN g.position ELSE 62 END AS SMALLINT)) & 1 = "  \
	"1))"

/* The same question over the index that answers it with the least reading. */
static const char *statement_for(const struct history_filter *f)
{
	if (f->largest_first)
		return "SELECT tick, pool FROM decision INDEXED BY decision_largest WHERE asked IS NOT NULL"
		       " AND" MATCHES " ORDER BY abs(asked) DESC, asked DESC, tick DESC, pool DESC LIMIT ?6";
	if (f->changed_only)
		return "SELECT tick, pool FROM decision INDEXED BY decision_asked WHERE asked IS NOT NULL"
		       " AND" MATCHES " ORDER BY tick DESC, pool DESC LIMIT ?6";
	if (f->limit > 0)
		return "SELECT tick, pool FROM decision INDEXED BY decision_held WHERE held_by <> 0"
		       " AND held_by = ?4 AND" MATCHES " ORDER BY tick DESC, pool DESC LIMIT ?6";
	return "SELECT tick, pool FROM decision WHERE" MATCHES " ORDER BY tick DESC, pool DESC LIMIT ?6";
}

#define DB_ANY(value)                                                        \
	{                                                                    \
		.kind = (value) == ANY ? DB_NULL : DB_INT, .number = (value) \
	}

bool history_find(struct history *h, const struct history_filter *f, struct arena *a, struct history_hit **hits,
		  size_t *count, struct error *e)
{
	struct buf found = { .cap = (size_t)1 << 31 };
	struct statement *s = DB_QUERY(h->db, statement_for(f), DB_I(f->from), DB_I(f->to), DB_ANY(f->pool),
				       DB_ANY(f->limit), DB_T(f->group), DB_I(f->most));
	bool ok;

	while (db_next(s, &ok, e)) {
		struct history_hit hit = { db_column_int(s, 0), (size_t)db_column_int(s, 1) };

		if (hit.pool < h->pool_count)
			buf_append(&found, &hit, sizeof hit);
	}
	*hits = rows_array(&found, sizeof **hits, a, count);
	return ok;
}

bool history_stretch_at(struct history *h, int64_t tick, struct arena *a, struct history_stretch *out, struct error *e)
{
	struct buf found = { 0 };
	int64_t ends[2];
	bool ok, is_whole = true;
	struct statement *s = DB_QUERY(h->db,
				       "SELECT max(tick), (SELECT min(tick) FROM manifest_use WHERE tick > ?1)"
				       " FROM manifest_use WHERE tick <= ?1",
				       DB_I(tick));

	if (!db_read_ints(s, ends, 2, NULL, e))
		return false;
	*out = (struct history_stretch){ .from = ends[0], .until = ends[1] ? ends[1] - 1 : INT64_MAX };
	s = DB_QUERY(h->db, "SELECT pool FROM pool_use WHERE tick = ? ORDER BY place", DB_I(out->from));
	while (db_next(s, &ok, e)) {
		size_t pool = (size_t)db_column_int(s, 0);

		is_whole = is_whole && pool < h->pool_count;
		buf_append(&found, &pool, sizeof pool);
	}
	out->pools = rows_array(&found, sizeof *out->pools, a, &out->pool_count);
	return ok && (is_whole || error_set(e, ERROR_INVALID, "%s: damaged: pools are missing", db_path(h->db)));
}

static bool is_not_whole(struct history *h, int64_t tick, struct error *e)
{
	return error_set(e, ERROR_INVALID, "%s: damaged: no manifest for tick %lld", db_path(h->db), (long long)tick);
}

/* *text stays what it is for a manifest of before texts were compressed. */
static bool unpack_text(struct history *h, int64_t id, int64_t tick, struct arena *a, const char **text,
			struct error *e)
{
	struct statement *s = DB_QUERY(h->db, "SELECT size, bytes FROM manifest_text WHERE manifest = ?", DB_I(id));
	struct error why;
	size_t len;
	bool row;

	if (!db_step(s, &row, e))
		return false;
	if (!row)
		return strchr(*text, ':') || is_not_whole(h, tick, e); /* else a digest */
	int64_t size = db_column_int(s, 0);
	const void *bytes = db_column_bytes(s, 1, &len);
	bool ok = size >= 0 && size <= MANIFEST_MOST;
	char *out = arena_alloc(a, ok ? (size_t)size + 1 : 1, 1);
	ok = ok && inflate_bytes(bytes, len, out, (size_t)size, &why);
	db_reset(s);
	*text = out;
	return ok || is_not_whole(h, tick, e);
}

bool history_manifest(struct history *h, int64_t tick, struct arena *a, const char **text, struct error *e)
{
	struct statement *s = DB_QUERY(h->db,
				       "SELECT id, text FROM manifest_use u JOIN manifest m ON m.id = u.manifest"
				       " WHERE u.tick <= ? ORDER BY u.tick DESC LIMIT 1",
				       DB_I(tick));
	bool row;

	if (!db_step(s, &row, e))
		return false;
	if (!row)
		return is_not_whole(h, tick, e);
	int64_t id = db_column_int(s, 0);
	*text = db_column_copy(s, 1, a);
	db_reset(s);
	return !h->has_texts || unpack_text(h, id, tick, a, text, e);
}

/* Where the groups of the pool's snapshot stand in pool_group at this tick; is_there is false for a pool that was not
 * in the manifest then. */
bool history_find_places(struct history *h, int64_t tick, size_t pool, struct group_places *out, struct error *e)
{
	struct history_span span;
	bool ok;

	if (tick >= out->from && tick < out->end)
		return true;
	if (!history_span(h, &span, e))
		return false;
	*out = (struct group_places){ 0 };
	struct statement *s = DB_QUERY(
		h->db,
		"SELECT u.tick, g.position, (SELECT min(tick) FROM manifest_use WHERE tick > ?1) FROM pool_use u"
		" LEFT JOIN group_use g ON g.tick = u.tick AND g.pool = u.pool WHERE u.pool = ?2 AND u.tick ="
		" (SELECT max(tick) FROM manifest_use WHERE tick <= ?1) ORDER BY g.place",
		DB_I(tick), DB_I((int64_t)pool));
	while (db_next(s, &ok, e)) {
		out->is_there = true;
		out->from = db_column_int(s, 0);
		/* The newest may end with any tick that is still to come. */
		out->end = db_column_is_null(s, 2) ? span.last_tick + 1 : db_column_int(s, 2);
		if (!db_column_is_null(s, 1) && out->count < PLACES_MAX)
			out->position[out->count++] = (uint32_t)db_column_int(s, 1);
	}
	return ok;
}

/* --- decisions: from a keyframe on, each told against the one before --- */

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
	DB_BIND(s, DB_I(tick), DB_I((int64_t)pool));
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
	*out = (struct tick_record){ .tick = tick,
				     .now = k.now,
				     .interval = k.interval,
				     .pool = pool,
				     .snapshot = record_snapshot(&at->part[RECORD_INPUT]),
				     .plan = record_plan(&at->part[RECORD_PLAN]),
				     .is_plan_damaged = damage->kind != ERROR_NONE };
	return true;
}

/* The first row to read: the next one when that leads there, else the last keyframe. */
static bool find_start(struct history *h, int64_t tick, size_t pool, int64_t *start, struct error *e)
{
	struct pool_position *at = &h->positions[pool];
	struct history_span span;
	bool there;

	/* The first tick of another fleet is a keyframe. */
	if (!history_find_places(h, tick, pool, &at->places, e))
		return false;
	bool follows = at->tick == tick - 1 || at->tick >= at->places.from;
	if (at->tick >= 0 && at->tick < tick && tick - at->tick <= KEYFRAME_EVERY && follows) {
		*start = at->tick + 1;
		return true;
	}
	if (!history_span(h, &span, e))
		return false;
	if (tick < span.first_tick || tick > span.last_tick)
		return no_decision(h, tick, pool, e);
	struct statement *s = DB_QUERY(h->db,
				       "SELECT tick FROM decision WHERE tick <= ? AND pool = ?"
				       " AND is_keyframe = 1 ORDER BY tick DESC LIMIT 1",
				       DB_I(tick), DB_I((int64_t)pool));
	return db_read_ints(s, start, 1, &there, e) && (there || no_decision(h, tick, pool, e));
}

bool history_read_row(struct history *h, int64_t tick, size_t pool, struct tick_record *out, struct error *e)
{
	struct error damage = { .kind = ERROR_NONE };

	if (!read_row(h, tick, pool, out, &damage, e))
		return false;
	if (damage.kind == ERROR_NONE)
		return true;
	*e = damage;
	return damaged(h, tick, pool, e);
}

bool history_read_lenient(struct history *h, int64_t tick, size_t pool, struct tick_record *out, struct error *damage,
			  struct error *e)
{
	int64_t start = 0;

	/* Times are with the row, so the row in hand is read again too. */
	if (!find_start(h, tick, pool, &start, e))
		return false;
	for (int64_t t = start; t <= tick; t++)
		if (!read_row(h, t, pool, out, damage, e))
			return false;
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

/* --- whether a reader still reads what stands at the path --- */

/* Which file stands at the path; of one that nobody writes also which state of it, as it is read without locks. */
static bool look(struct history *h, struct history_mark *m, struct error *e)
{
	CLEANUP(buf_release) struct buf log = { 0 };
	const char *path = db_path(h->db);
	struct stat st;
	int64_t uses[2];

	*m = (struct history_mark){ 0 };
	if (!db_is_address(path)) {
		buf_printf(&log, "%s-wal", path);
		m->is_live = !stat(log.text, &st);
		if (stat(path, &st))
			return error_set(e, ERROR_NOT_FOUND, "%s: gone", path);
		m->device = (int64_t)st.st_dev;
		m->file = (int64_t)st.st_ino;
		m->size = m->is_live ? 0 : st.st_size;
		m->changed = m->is_live ? 0 : st.st_mtim.tv_sec * SECOND + st.st_mtim.tv_nsec / 1000000;
	}
	if (!db_read_ints(db_prepare(h->db, "SELECT count(*), max(tick) FROM manifest_use"), uses, 2, NULL, e))
		return false;
	m->uses = uses[0];
	m->last_use = uses[1];
	return true;
}

bool history_mark(struct history *h, struct error *e)
{
	return look(h, &h->mark, e);
}

bool history_is_current(struct history *h)
{
	const struct history_mark *was = &h->mark;
	struct history_mark now;
	struct error e;

	return look(h, &now, &e) && now.is_live == was->is_live && now.device == was->device && now.file == was->file &&
	       now.size == was->size && now.changed == was->changed && now.uses == was->uses &&
	       now.last_use == was->last_use;
}
