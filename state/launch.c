#include "state/launch.h"

#include "state/history_file.h"

#include <string.h>

static bool is_known(struct history *h, const char *token, bool open_only, bool *known, struct error *e)
{
	struct statement *s = DB_QUERY(h->db, "SELECT outcome FROM launch WHERE token = ?", DB_T(token));

	if (!db_step(s, known, e))
		return false;
	if (*known && open_only)
		*known = db_column_is_null(s, 0);
	db_reset(s);
	return true;
}

static bool join_machines(const struct launch *l, struct buf *out, struct error *e)
{
	if (l->machine_count > LAUNCH_MACHINES_MAX)
		return error_set(e, ERROR_INTERNAL, "launch %s names %zu machines; allowed: %d", l->token,
				 l->machine_count, LAUNCH_MACHINES_MAX);
	buf_text(out, "");
	for (size_t i = 0; i < l->machine_count; i++) {
		if (!*l->machines[i] || strchr(l->machines[i], '\n'))
			return error_set(e, ERROR_INTERNAL, "launch %s: an id that is empty or has a line end",
					 l->token);
		buf_printf(out, i ? "\n%s" : "%s", l->machines[i]);
	}
	return true;
}

static bool insert(struct history *h, const struct launch *l, const char *machines, struct error *e)
{
	struct statement *s = DB_QUERY(h->db,
				       "INSERT INTO launch (token, node_group, verb, target, machines, tick,"
				       " term, asked_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
				       DB_T(l->token), DB_T(l->group), DB_I(l->verb), DB_I(l->target), DB_T(machines),
				       DB_I(h->next_tick - 1), DB_I(l->term), DB_I(l->asked_at));

	return history_run_durable(h, s, e);
}

bool launch_save(struct history *h, const struct launch *l, struct error *e)
{
	CLEANUP(buf_release) struct buf machines = { 0 };
	bool known;

	if (!join_machines(l, &machines, e) || !is_known(h, l->token, false, &known, e))
		return false;
	if (known)
		return error_set(e, ERROR_CONFLICT, "%s: launch %s was saved before", db_path(h->db), l->token);
	return history_begin_durable(h, e) && insert(h, l, machines.text, e);
}

/* `reached` -1: what was asked for. */
static bool end(struct history *h, const char *token, const char *outcome, int64_t reached, millis at, struct error *e)
{
	bool known;

	if (!is_known(h, token, true, &known, e))
		return false;
	if (!known)
		return error_set(e, ERROR_NOT_FOUND, "%s: no open launch %s", db_path(h->db), token);
	if (!history_begin_durable(h, e))
		return false;
	struct statement *s = DB_QUERY(h->db,
				       "UPDATE launch SET outcome = ?1, ended_at = ?2,"
				       " target = CASE WHEN ?3 < 0 THEN target ELSE ?3 END WHERE token = ?4",
				       DB_T(outcome), DB_I(at), DB_I(reached), DB_T(token));
	return history_run_durable(h, s, e);
}

bool launch_end(struct history *h, const char *token, const char *outcome, millis at, struct error *e)
{
	return end(h, token, outcome, -1, at, e);
}

bool launch_end_partly(struct history *h, const char *token, int64_t reached, millis at, struct error *e)
{
	return end(h, token, LAUNCH_PARTLY, reached, at, e);
}

bool launch_goes_on(struct history *h, const char *token, const char *operation, struct error *e)
{
	bool known;

	if (!is_known(h, token, true, &known, e))
		return false;
	if (!known)
		return error_set(e, ERROR_NOT_FOUND, "%s: no open launch %s", db_path(h->db), token);
	if (!history_begin_durable(h, e))
		return false;
	struct statement *s =
		DB_QUERY(h->db, "UPDATE launch SET operation = ? WHERE token = ?", DB_T(operation), DB_T(token));
	return history_run_durable(h, s, e);
}

static void split_machines(struct arena *a, const char *text, struct launch *l)
{
	size_t most = 1;

	for (const char *c = text; *c; c++)
		most += *c == '\n';
	const char **ids = arena_array(a, const char *, most);
	while (*text) {
		size_t len = strcspn(text, "\n");
		ids[l->machine_count++] = arena_strdup(a, text, len);
		text += len + (text[len] == '\n');
	}
	l->machines = ids;
}

#define COLUMNS "l.token, node_group, verb, target, machines, tick, term, asked_at, outcome, ended_at"
/* Inside the brackets the name is a column of the table where that has it, else the empty text of an older file. */
#define OPERATION "(SELECT operation FROM launch o WHERE o.token = l.token) AS operation"
#define ALL	  "SELECT " COLUMNS ", " OPERATION " FROM launch l, (SELECT '' AS operation) without "

static struct launch launch_of(const struct statement *s, struct arena *a)
{
	struct launch l = {
		.token = db_column_copy(s, 0, a),
		.group = db_column_copy(s, 1, a),
		.verb = db_column_int(s, 2),
		.target = db_column_int(s, 3),
		.tick = db_column_int(s, 5),
		.term = db_column_int(s, 6),
		.asked_at = db_column_int(s, 7),
		.outcome = db_column_is_null(s, 8) ? NULL : db_column_copy(s, 8, a),
		.ended_at = db_column_int(s, 9),
		.operation = db_column_copy(s, 10, a),
	};

	split_machines(a, db_column_text(s, 4), &l);
	return l;
}

static bool collect(struct statement *s, struct arena *a, struct launch **launches, size_t *count, struct error *e)
{
	struct buf found = { 0 };
	bool ok;

	while (db_next(s, &ok, e)) {
		struct launch l = launch_of(s, a);

		buf_append(&found, &l, sizeof l);
	}
	*launches = rows_array(&found, sizeof **launches, a, count);
	return ok;
}

bool launch_open_ones(struct history *h, struct arena *a, struct launch **launches, size_t *count, struct error *e)
{
	return collect(db_prepare(h->db, ALL "WHERE outcome IS NULL ORDER BY asked_at, l.token"), a, launches, count,
		       e);
}

bool launch_find(struct history *h, const struct launch_filter *f, struct arena *a, struct launch **launches,
		 size_t *count, struct error *e)
{
	struct statement *s =
		DB_QUERY(h->db,
			 "SELECT * FROM (" ALL "WHERE asked_at BETWEEN ?1"
			 " AND ?2 AND (CAST(?3 AS TEXT) IS NULL OR node_group = ?3) ORDER BY asked_at DESC,"
			 " l.token DESC LIMIT ?4) newest ORDER BY asked_at, token",
			 DB_I(f->from), DB_I(f->to), DB_T(f->group), DB_I(f->most));

	return collect(s, a, launches, count, e);
}
