#include "state/launch.h"

#include "state/history_file.h"

#include <string.h>

/* What came before is committed first, and this reaches the disk before it returns. */
static bool run_durable(struct history *h, struct statement *s, struct error *e)
{
	bool ok = db_run(s, e) && history_commit(h, e);

	if (!ok) {
		db_rollback(h->db);
		h->is_in_transaction = false;
	}
	struct error second;
	if (!db_set_durable(h->db, false, ok ? e : &second))
		return false;
	return ok;
}

static bool begin_durable(struct history *h, struct error *e)
{
	return history_commit(h, e) && db_set_durable(h->db, true, e) && history_begin(h, e);
}

static bool is_known(struct history *h, const char *token, bool open_only, bool *known, struct error *e)
{
	struct statement *s = db_prepare(h->db, "SELECT outcome FROM launch WHERE token = ?");

	db_bind_text(s, token);
	if (!db_step(s, known, e))
		return false;
	if (*known && open_only)
		*known = db_column_is_null(s, 0);
	db_reset(s);
	return true;
}

bool launch_save(struct history *h, const struct launch *l, struct error *e)
{
	bool known;

	if (!is_known(h, l->token, false, &known, e))
		return false;
	if (known)
		return error_set(e, ERROR_CONFLICT, "%s: launch %s was saved before", db_path(h->db), l->token);
	if (!begin_durable(h, e))
		return false;
	struct statement *s = db_prepare(h->db, "INSERT INTO launch (token, pool, node_group, kind, count, asked_at)"
						" VALUES (?, ?, ?, ?, ?, ?)");
	db_bind_text(s, l->token);
	db_bind_int(s, (int64_t)l->pool);
	db_bind_text(s, l->group);
	db_bind_int(s, l->kind);
	db_bind_int(s, l->count);
	db_bind_int(s, l->asked_at);
	return run_durable(h, s, e);
}

bool launch_end(struct history *h, const char *token, const char *outcome, millis at, struct error *e)
{
	bool known;

	if (!is_known(h, token, true, &known, e))
		return false;
	if (!known)
		return error_set(e, ERROR_NOT_FOUND, "%s: no open launch %s", db_path(h->db), token);
	if (!begin_durable(h, e))
		return false;
	struct statement *s = db_prepare(h->db, "UPDATE launch SET outcome = ?, ended_at = ? WHERE token = ?");
	db_bind_text(s, outcome);
	db_bind_int(s, at);
	db_bind_text(s, token);
	return run_durable(h, s, e);
}

bool launch_open_ones(struct history *h, struct arena *a, struct launch **launches, size_t *count, struct error *e)
{
	struct statement *s = db_prepare(h->db, "SELECT count(*) FROM launch WHERE outcome IS NULL");
	bool row;

	if (!db_step(s, &row, e))
		return false;
	size_t most = (size_t)db_column_int(s, 0), n = 0;
	db_reset(s);
	struct launch *l = arena_array(a, struct launch, most + 1);

	s = db_prepare(h->db, "SELECT token, pool, node_group, kind, count, asked_at FROM launch WHERE outcome IS NULL"
			      " ORDER BY asked_at, token");
	for (; n < most; n++) {
		if (!db_step(s, &row, e))
			return false;
		if (!row)
			break;
		const char *token = db_column_text(s, 0), *group = db_column_text(s, 2);
		l[n] = (struct launch){ arena_strdup(a, token, strlen(token)),
					arena_strdup(a, group, strlen(group)),
					(size_t)db_column_int(s, 1),
					(enum start_kind)db_column_int(s, 3),
					db_column_int(s, 4),
					db_column_int(s, 5) };
	}
	db_reset(s);
	*launches = l;
	*count = n;
	return true;
}
