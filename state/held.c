#include "state/held.h"

#include "state/history_file.h"

static bool take_row(struct rows *r, const struct statement *s, struct error *e)
{
	struct held_time held = { (size_t)db_column_int(s, 0), (enum limit)db_column_int(s, 1), db_column_int(s, 2),
				  db_column_int(s, 3) };

	if (held.pool >= r->history->pool_count || (int64_t)held.limit != db_column_int(s, 1) ||
	    held.limit >= LIMIT_COUNT || held.length < 0)
		return error_set(e, ERROR_INVALID, "%s: damaged: limits that cannot be", db_path(r->history->db));
	buf_append(&r->found, &held, sizeof held);
	return true;
}

bool held_read(struct history *h, struct held_ticks ticks, struct arena *a, struct held_time **out, size_t *count,
	       struct error *e)
{
	struct rows r = { .history = h, .arena = a };

	/* Limit by limit, as the index has them. */
	for (int limit = LIMIT_NONE + 1; limit < LIMIT_COUNT; limit++) {
		struct statement *s =
			DB_QUERY(h->db,
				 "SELECT d.pool, d.held_by, count(*), CAST(sum(t.interval) AS INTEGER) FROM decision d"
				 " JOIN tick t ON t.id = d.tick WHERE d.held_by <> 0 AND d.held_by = ?"
				 " AND d.tick BETWEEN ? AND ? GROUP BY d.pool, d.held_by ORDER BY d.pool",
				 DB_I(limit), DB_I(ticks.first), DB_I(ticks.last));
		if (!rows_read(&r, s, take_row, e))
			return false;
	}
	*out = rows_array(&r.found, sizeof **out, a, count);
	return true;
}
