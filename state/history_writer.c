/* Going on with a history, and who wrote which of its ticks. */
#include "controller/policy/decide.h"
#include "state/history_file.h"
#include "state/schema.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MARK_SIZE = 24, ASIDE_MOST = 99 };

static void memory_mark(char mark[MARK_SIZE])
{
	snprintf(mark, MARK_SIZE, "%016llx", (unsigned long long)memory_layout());
}

static bool is_last_writer(struct history *h, const char *program, const char *mark, bool *is, struct error *e)
{
	struct statement *s = db_prepare(h->db, "SELECT count(*) FROM writer WHERE program = ? AND memory = ?"
						" AND tick = (SELECT max(tick) FROM writer)");
	bool row;

	db_bind_text(s, program);
	db_bind_text(s, mark);
	if (!db_step(s, &row, e))
		return false;
	*is = db_column_int(s, 0) > 0;
	db_reset(s);
	return true;
}

/* What writes from the next tick on; the first of all begins with a new memory. */
bool history_save_writer(struct history *h, const char *program, struct error *e)
{
	char mark[MARK_SIZE];
	bool is_known;

	memory_mark(mark);
	if (!is_last_writer(h, program, mark, &is_known, e))
		return false;
	if (is_known)
		return true;
	struct statement *s =
		db_prepare(h->db, "INSERT INTO writer (tick, program, memory, is_fresh) VALUES (?1, ?2, ?3, ?1 = 0)"
				  " ON CONFLICT DO UPDATE SET program = ?2, memory = ?3");
	db_bind_int(s, h->next_tick);
	db_bind_text(s, program);
	db_bind_text(s, mark);
	h->is_checkpoint_due |= h->next_tick > 0;
	return db_run(s, e);
}

bool history_begin_anew(struct history *h, struct error *e)
{
	struct statement *s =
		db_prepare(h->db, "INSERT INTO writer (tick, program, memory, is_fresh) SELECT ?, program,"
				  " memory, 1 FROM writer WHERE true ORDER BY tick DESC LIMIT 1"
				  " ON CONFLICT DO UPDATE SET is_fresh = 1");

	if (!history_begin(h, e))
		return false;
	db_bind_int(s, h->next_tick);
	if (!db_run(s, e)) {
		history_undo(h);
		return false;
	}
	h->is_checkpoint_due = true;
	return history_commit(h, e);
}

bool history_last_fresh(struct history *h, int64_t tick, int64_t *at_tick, struct error *e)
{
	struct statement *s = db_prepare(h->db, "SELECT max(tick) FROM writer WHERE is_fresh = 1 AND tick <= ?");
	bool row;

	db_bind_int(s, tick);
	if (!db_step(s, &row, e))
		return false;
	*at_tick = db_column_int(s, 0);
	db_reset(s);
	return true;
}

bool history_check_policy(struct history *h, int64_t from, int64_t to, struct error *e)
{
	struct statement *s = db_prepare(
		h->db, "SELECT program, next FROM (SELECT w.program, w.tick, w.memory, (SELECT min(tick) FROM writer o"
		       " WHERE o.tick > w.tick) AS next FROM writer w) stretches"
		       " WHERE tick <= ?2 AND memory NOT IN ('', ?3) AND (next IS NULL OR next > ?1)"
		       " ORDER BY tick DESC LIMIT 1");
	char mark[MARK_SIZE];
	bool row;

	memory_mark(mark);
	db_bind_int(s, from);
	db_bind_int(s, to);
	db_bind_text(s, mark);
	if (!db_step(s, &row, e))
		return false;
	if (!row)
		return true;
	bool has_more = !db_column_is_null(s, 1) && db_column_int(s, 1) <= to;
	error_set(e, ERROR_INVALID,
		  "%s: ticks up to %lld were decided by preheat %s, whose memory has another layout; replay them with "
		  "that program%s",
		  db_path(h->db), (long long)(has_more ? db_column_int(s, 1) - 1 : to), db_column_text(s, 0),
		  has_more ? ", or name later ones with --from" : "");
	db_reset(s);
	return false;
}

int64_t history_next_tick(const struct history *h)
{
	return h->next_tick;
}

millis history_last_at(const struct history *h)
{
	return h->last_at;
}

/* --- going on --- */

static bool take_position(struct history *h, struct error *e)
{
	struct statement *s =
		db_prepare(h->db, "SELECT (SELECT max(id) FROM tick), (SELECT max(at) FROM tick),"
				  " coalesce((SELECT max(at) FROM checkpoint), (SELECT min(at) FROM tick))");
	bool row;

	if (!db_step(s, &row, e))
		return false;
	h->next_tick = db_column_is_null(s, 0) ? 0 : db_column_int(s, 0) + 1;
	h->last_at = db_column_int(s, 1);
	h->last_checkpoint_at = db_column_int(s, 2);
	h->committed_tick = h->next_tick;
	h->committed_at = h->last_at;
	h->is_keyframe_due = true;
	db_reset(s);
	return true;
}

/* A writer that was killed while it made the file left the tables without a fact. */
bool history_is_begun(struct history *h, bool *is, struct error *e)
{
	struct statement *s = db_prepare(h->db, "SELECT count(*) FROM fact");
	bool row;

	if (!db_step(s, &row, e))
		return false;
	*is = db_column_int(s, 0) > 0;
	db_reset(s);
	return true;
}

static bool check_decider(struct history *h, const struct history_setup *setup, struct error *e)
{
	CLEANUP(arena_release) struct arena scratch = { 0 };
	const char *policy;

	if (!history_fact(h, "policy", &scratch, &policy, e))
		return false;
	return !strcmp(policy, setup->policy) ||
	       error_set(e, ERROR_INVALID, "%s: its decisions are those of '%s', not of '%s'; name another file",
			 db_path(h->db), policy, setup->policy);
}

static bool take_manifest(struct history *h, const struct history_setup *setup, struct error *e)
{
	CLEANUP(arena_release) struct arena scratch = { 0 };
	const char *in_force;

	if (!history_manifest(h, h->next_tick, &scratch, &in_force, e))
		return false;
	return !strcmp(in_force, setup->manifest) || history_put_fleet(h, setup->manifest, setup->fleet, e);
}

static bool go_on(struct history *h, const struct history_setup *setup, struct error *e)
{
	bool begun;

	if (!history_is_begun(h, &begun, e))
		return false;
	if (!begun)
		return history_save_setup(h, setup, e);
	return history_check_layout(h, e) && check_decider(h, setup, e) && history_load_pools(h, e) &&
	       take_position(h, e) && history_take_fleet(h, e) && history_begin(h, e) &&
	       history_save_writer(h, setup->program, e) && take_manifest(h, setup, e) && history_commit(h, e);
}

struct history *history_resume(const struct history_setup *setup, struct error *e)
{
	if (access(setup->path, F_OK))
		return history_create(setup, e);
	if (!history_may_migrate(setup->path, e))
		return NULL;
	struct history *h = history_new();

	h->ticks_per_commit = setup->ticks_per_commit;
	h->checkpoint_every = setup->checkpoint_every;
	h->db = db_open(setup->path, &history_schema, e);
	if (h->db && go_on(h, setup, e))
		return h;
	history_close(h);
	return NULL;
}

/* --- out of the way --- */

static bool rename_one(const char *from, const char *to, const char *suffix, struct error *e)
{
	CLEANUP(buf_release) struct buf source = { 0 };
	CLEANUP(buf_release) struct buf target = { 0 };

	buf_printf(&source, "%s%s", from, suffix);
	buf_printf(&target, "%s%s", to, suffix);
	if (!rename(source.text, target.text) || (*suffix && errno == ENOENT))
		return true;
	return error_set(e, ERROR_UNAVAILABLE, "%s: cannot be renamed to %s: %s", source.text, target.text,
			 strerror(errno));
}

bool history_set_aside(const char *path, struct buf *name, struct error *e)
{
	CLEANUP(buf_release) struct buf free_name = { 0 };

	if (db_is_address(path))
		return db_set_cluster_aside(path, name, e);
	for (int i = 1; i <= ASIDE_MOST; i++) {
		buf_clear(&free_name);
		buf_printf(&free_name, "%s.%d", path, i);
		if (!access(free_name.text, F_OK))
			continue;
		buf_text(name, free_name.text);
		/* The log first: without it the rest would be of an earlier time. */
		return rename_one(path, free_name.text, "-wal", e) && rename_one(path, free_name.text, "", e);
	}
	return error_set(e, ERROR_CONFLICT, "%s: too many were set aside already; remove some of %s.1 to %s.%d", path,
			 path, path, ASIDE_MOST);
}
