#include "state/drain_record.h"

#include "state/history_file.h"

bool drain_record_save(struct history *h, const struct drain_record *d, struct error *e)
{
	if (!history_begin_durable(h, e))
		return false;
	struct statement *s =
		DB_QUERY(h->db,
			 "INSERT OR REPLACE INTO drain (node, asked_at, machine, pool, node_group, fate, why,"
			 " tick, term, released_at, outcome, ended_at, unmarked_at)"
			 " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL, NULL)",
			 DB_T(d->node), DB_I(d->asked_at), DB_T(d->machine), DB_T(d->pool), DB_T(d->group),
			 DB_T(d->fate), DB_T(d->why), DB_I(h->next_tick - 1), DB_I(d->term));
	return history_run_durable(h, s, e);
}

bool drain_record_release(struct history *h, const char *node, millis asked_at, millis at, struct error *e)
{
	if (!history_begin_durable(h, e))
		return false;
	struct statement *s = DB_QUERY(h->db, "UPDATE drain SET released_at = ? WHERE node = ? AND asked_at = ?",
				       DB_I(at), DB_T(node), DB_I(asked_at));
	return history_run_durable(h, s, e);
}

bool drain_record_end(struct history *h, const char *node, millis asked_at, const char *outcome, millis at,
		      struct error *e)
{
	if (!history_begin_durable(h, e))
		return false;
	struct statement *s = DB_QUERY(h->db,
				       "UPDATE drain SET outcome = ?, ended_at = ? WHERE node = ? AND asked_at = ?"
				       " AND outcome IS NULL",
				       DB_T(outcome), DB_I(at), DB_T(node), DB_I(asked_at));
	return history_run_durable(h, s, e);
}

bool drain_record_unmark(struct history *h, const char *node, const char *outcome, millis at, struct error *e)
{
	if (!history_begin_durable(h, e))
		return false;
	struct statement *s =
		DB_QUERY(h->db,
			 "UPDATE drain SET outcome = COALESCE(outcome, ?), ended_at = COALESCE(ended_at, ?),"
			 " unmarked_at = ? WHERE node = ? AND unmarked_at IS NULL",
			 DB_T(outcome), DB_I(at), DB_I(at), DB_T(node));
	return history_run_durable(h, s, e);
}

#define ALL                                                                                                        \
	"SELECT node, asked_at, machine, pool, node_group, fate, why, tick, term, released_at, outcome, ended_at," \
	" unmarked_at FROM drain "

static struct drain_record drain_of(const struct statement *s, struct arena *a)
{
	return (struct drain_record){ .node = db_column_copy(s, 0, a),
				      .asked_at = db_column_int(s, 1),
				      .machine = db_column_copy(s, 2, a),
				      .pool = db_column_copy(s, 3, a),
				      .group = db_column_copy(s, 4, a),
				      .fate = db_column_copy(s, 5, a),
				      .why = db_column_copy(s, 6, a),
				      .tick = db_column_int(s, 7),
				      .term = db_column_int(s, 8),
				      .released_at = db_column_int(s, 9),
				      .outcome = db_column_is_null(s, 10) ? NULL : db_column_copy(s, 10, a),
				      .ended_at = db_column_int(s, 11),
				      .unmarked_at = db_column_int(s, 12) };
}

static bool collect(struct statement *s, struct arena *a, struct drain_record **drains, size_t *count, struct error *e)
{
	struct buf found = { 0 };
	bool ok;

	while (db_next(s, &ok, e)) {
		struct drain_record d = drain_of(s, a);

		buf_append(&found, &d, sizeof d);
	}
	*drains = rows_array(&found, sizeof **drains, a, count);
	return ok;
}

bool drain_record_marked(struct history *h, struct arena *a, struct drain_record **drains, size_t *count,
			 struct error *e)
{
	return collect(db_prepare(h->db,
				  ALL "d WHERE unmarked_at IS NULL AND asked_at = (SELECT max(asked_at) FROM drain"
				      " l WHERE l.node = d.node) ORDER BY node"),
		       a, drains, count, e);
}

bool drain_record_find(struct history *h, const struct drain_filter *f, struct arena *a, struct drain_record **drains,
		       size_t *count, struct error *e)
{
	*count = 0;
	if (!h->has_drains)
		return true;
	struct statement *s =
		DB_QUERY(h->db,
			 "SELECT * FROM (" ALL "WHERE asked_at BETWEEN ?1"
			 " AND ?2 AND (CAST(?3 AS TEXT) IS NULL OR node_group = ?3) ORDER BY asked_at DESC,"
			 " node DESC LIMIT ?4) newest ORDER BY asked_at, node",
			 DB_I(f->from), DB_I(f->to), DB_T(f->group), DB_I(f->most));

	return collect(s, a, drains, count, e);
}
