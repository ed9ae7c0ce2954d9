/* Making, opening and closing a history, and the facts about it as a whole. */
#include "state/history_file.h"
#include "state/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct history *history_new(void)
{
	struct history *h = calloc(1, sizeof *h);

	if (!h) {
		fputs("out of memory\n", stderr);
		abort();
	}
	h->retained_from = -1;
	h->has_cost = h->has_levels = true; /* opening for writing makes the tables */
	return h;
}

bool history_begin(struct history *h, struct error *e)
{
	if (h->is_in_transaction)
		return true;
	h->is_in_transaction = db_begin(h->db, e);
	return h->is_in_transaction;
}

void history_undo(struct history *h)
{
	db_rollback(h->db);
	h->is_in_transaction = false;
	h->uncommitted = 0;
	h->next_tick = h->committed_tick;
	h->last_at = h->committed_at;
	h->is_keyframe_due = true;
	history_forget_costs(h);
}

bool history_commit(struct history *h, struct error *e)
{
	if (!h->is_in_transaction)
		return true;
	if (!history_save_levels(h, e) || !history_save_lead_times(h, e) || !history_save_costs(h, e) ||
	    !db_commit(h->db, e)) {
		history_undo(h);
		return false;
	}
	h->uncommitted = 0;
	h->is_in_transaction = false;
	h->committed_tick = h->next_tick;
	h->committed_at = h->last_at;
	return true;
}

static bool save_fact(struct history *h, const char *name, const char *value, struct error *e)
{
	struct statement *s = db_prepare(h->db, "INSERT INTO fact (name, value) VALUES (?, ?)");

	db_bind_text(s, name);
	db_bind_text(s, value);
	return db_run(s, e);
}

bool history_save_setup(struct history *h, const struct history_setup *setup, struct error *e)
{
	char layout[16];

	snprintf(layout, sizeof layout, "%08x", record_layout());
	return history_begin(h, e) && save_fact(h, "program", setup->program, e) &&
	       save_fact(h, "policy", setup->policy, e) && save_fact(h, "run", setup->run, e) &&
	       save_fact(h, "layout", layout, e) && history_save_writer(h, setup->program, e) &&
	       history_put_fleet(h, setup->manifest, setup->fleet, e) && history_commit(h, e);
}

void history_close(struct history *h)
{
	if (!h)
		return;
	db_close(h->db);
	for (size_t i = 0; i < h->pool_count && h->positions; i++)
		for (int part = 0; part < RECORD_PART_COUNT; part++)
			record_state_release(&h->positions[i].part[part]);
	buf_release(&h->input);
	buf_release(&h->plan);
	buf_release(&h->costs);
	buf_release(&h->cost_labels);
	buf_release(&h->quotas);
	buf_release(&h->holdings);
	buf_release(&h->levels);
	buf_release(&h->lead_times);
	arena_release(&h->cost_texts);
	arena_release(&h->arena);
	free(h);
}

bool history_finish(struct history *h, struct error *e)
{
	bool ok = history_commit(h, e);

	history_close(h);
	return ok;
}

void history_remove_file(const char *path)
{
	static const char *const suffixes[] = { "", "-wal", "-shm" };

	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		CLEANUP(buf_release) struct buf name = { 0 };

		buf_printf(&name, "%s%s", path, suffixes[i]);
		unlink(name.text);
	}
}

struct history *history_create(const struct history_setup *setup, struct error *e)
{
	if (db_is_address(setup->path)) {
		error_set(
			e, ERROR_INVALID,
			"a history is written into a file; 'preheat history copy' brings it from there to a database");
		return NULL;
	}
	if (!access(setup->path, F_OK)) {
		error_set(e, ERROR_CONFLICT, "%s: already there; name another file or remove it", setup->path);
		return NULL;
	}
	struct history *h = history_new();

	h->ticks_per_commit = setup->ticks_per_commit;
	h->checkpoint_every = setup->checkpoint_every;
	h->db = db_open(setup->path, &history_schema, e);
	if (h->db && history_save_setup(h, setup, e))
		return h;
	history_close(h);
	history_remove_file(setup->path);
	return NULL;
}

bool history_check_layout(struct history *h, struct error *e)
{
	CLEANUP(arena_release) struct arena scratch = { 0 };
	const char *found, *program;
	char wanted[16];

	snprintf(wanted, sizeof wanted, "%08x", record_layout());
	if (!history_fact(h, "layout", &scratch, &found, e) || !history_fact(h, "program", &scratch, &program, e))
		return false;
	if (strcmp(found, wanted))
		return error_set(e, ERROR_CONFLICT,
				 "%s: its records have other fields than this program knows (layout %s, not %s); "
				 "read it with %s, which wrote it",
				 db_path(h->db), found, wanted, program);
	return true;
}

bool history_may_migrate(const char *path, struct error *e)
{
	struct error why = { 0 };
	struct history *h = history_new();
	bool is_begun = false;

	/* What else is wrong with it is told by whoever opens it for writing. */
	h->db = db_open_read(path, &history_schema, &why);
	bool may = !h->db || !history_is_begun(h, &is_begun, &why) || !is_begun || history_check_layout(h, &why) ||
		   why.kind != ERROR_CONFLICT;
	history_close(h);
	if (!may)
		*e = why;
	return may;
}

static struct history *open_with(struct db *db, bool only_sums, struct error *e)
{
	struct history *h = history_new();

	h->db = db;
	if (h->db && db_has_table(h->db, "cost", &h->has_cost, e) && db_has_table(h->db, "level", &h->has_levels, e)) {
		h->is_foreign = !history_check_layout(h, e);
		bool is_fit = !h->is_foreign || (only_sums && e->kind == ERROR_CONFLICT);
		if (is_fit && history_load_pools(h, e) && history_mark(h, e))
			return h;
	}
	history_close(h);
	return NULL;
}

struct history *history_open(const char *path, struct error *e)
{
	return open_with(db_open_read(path, &history_schema, e), false, e);
}

struct history *history_open_sums(const char *path, struct error *e)
{
	return open_with(db_open_read(path, &history_schema, e), true, e);
}

bool history_has_records(const struct history *h)
{
	return !h->is_foreign;
}

struct history *history_edit(const char *path, struct error *e)
{
	/* Its words for a file that is no history come from reading. */
	struct db *db = db_open_read(path, &history_schema, e);

	if (!db)
		return NULL;
	db_close(db);
	return history_may_migrate(path, e) ? open_with(db_open(path, &history_schema, e), false, e) : NULL;
}

const char *history_path(const struct history *h)
{
	return db_path(h->db);
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
	struct statement *s = db_prepare(h->db, "SELECT value FROM fact WHERE name = ?");
	bool row;

	db_bind_text(s, name);
	if (!db_step(s, &row, e))
		return false;
	const char *text = row ? db_column_text(s, 0) : "";
	*value = arena_strdup(a, text, strlen(text));
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
	bool row;

	if (!db_step(s, &row, e))
		return false;
	*span = (struct history_span){ 0, -1, 0, 0 };
	if (row)
		*span = (struct history_span){ db_column_int(s, 0), db_column_int(s, 1), db_column_int(s, 2),
					       db_column_int(s, 3) };
	db_reset(s);
	return true;
}
