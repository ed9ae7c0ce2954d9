/* Which decisions a question is about. */
#include "state/history_file.h"

bool history_tick_end(struct history *h, int64_t tick, millis *at, struct error *e)
{
	struct statement *s = db_prepare(h->db, "SELECT at FROM tick WHERE id = ?");
	bool row;

	db_bind_int(s, tick);
	if (!db_step(s, &row, e))
		return false;
	if (!row)
		return error_set(e, ERROR_INVALID, "%s: damaged: tick %lld is missing", db_path(h->db),
				 (long long)tick);
	*at = db_column_int(s, 0);
	db_reset(s);
	return true;
}

bool history_interval(struct history *h, int64_t tick, millis *interval, struct error *e)
{
	struct statement *s = db_prepare(h->db, "SELECT interval FROM tick WHERE id = ?");
	bool row;

	db_bind_int(s, tick);
	if (!db_step(s, &row, e))
		return false;
	if (!row)
		return error_set(e, ERROR_NOT_FOUND, "%s: no tick %lld", db_path(h->db), (long long)tick);
	*interval = db_column_int(s, 0);
	db_reset(s);
	return true;
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

static void bind_or_any(struct statement *s, int64_t value)
{
	if (value == ANY)
		db_bind_null(s);
	else
		db_bind_int(s, value);
}

static void bind_filter(struct statement *s, const struct history_filter *f)
{
	db_bind_int(s, f->from);
	db_bind_int(s, f->to);
	bind_or_any(s, f->pool);
	bind_or_any(s, f->limit);
	if (f->group)
		db_bind_text(s, f->group);
	else
		db_bind_null(s);
	db_bind_int(s, f->most);
}

bool history_find(struct history *h, const struct history_filter *f, struct arena *a, struct history_hit **hits,
		  size_t *count, struct error *e)
{
	CLEANUP(buf_release) struct buf found = { .cap = (size_t)1 << 31 };
	struct statement *s = db_prepare(h->db, statement_for(f));
	bool row = true;

	bind_filter(s, f);
	while (row) {
		if (!db_step(s, &row, e))
			return false;
		struct history_hit hit = { row ? db_column_int(s, 0) : 0, row ? (size_t)db_column_int(s, 1) : 0 };

		if (row && hit.pool < h->pool_count)
			buf_append(&found, &hit, sizeof hit);
	}
	db_reset(s);
	*count = found.len / sizeof **hits;
	*hits = arena_array(a, struct history_hit, *count + 1);
	for (size_t i = 0; i < found.len; i++)
		((char *)*hits)[i] = found.text[i];
	return true;
}
