/* Making, opening and closing a history, and the facts about it as a whole. */
#include "state/history.h"

#include "base/text.h"
#include "controller/policy/decide.h"
#include "state/history_file.h"
#include "state/record.h"
#include "state/schema.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

/* Writing ticks: inputs and plans of all pools, told against the tick before. */

/* Everything before `nodes` in the table of a group's decision is something asked for. */
static bool asks(const struct group_decision *g)
{
	const int64_t *v = (const int64_t *)g;
	int64_t any = 0;

	for (size_t i = 0; i < offsetof(struct group_decision, nodes) / sizeof *v; i++)
		any |= v[i];
	return any != 0;
}

bool plan_asks(const struct pool_plan *p)
{
	for (size_t i = 0; i < p->group_count; i++)
		if (asks(&p->groups[i]))
			return true;
	return false;
}

struct plan_marks plan_marks(const struct pool_plan *p, const struct group_places *g)
{
	const struct pool_decision *d = &p->decision;
	struct plan_marks m = { .held_by = d->held_by, .has_asked = plan_asks(p) };
	uint64_t concerns = 0;

	for (size_t i = 0; i < p->group_count; i++)
		if (asks(&p->groups[i]) || p->groups[i].held_by != LIMIT_NONE)
			concerns |= UINT64_C(1) << (g->position[i] < CONCERNS_MOST ? g->position[i] : CONCERNS_MOST);
	m.concerns = (int64_t)concerns;
	if (m.has_asked)
		m.asked = (int64_t)((uint64_t)d->decided - (uint64_t)d->ready - (uint64_t)d->on_the_way);
	return m;
}

static bool save_tick(struct history *h, const struct snapshot *s, struct error *e)
{
	struct statement *q = db_prepare(h->db, "INSERT INTO tick (id, at, interval) VALUES (?, ?, ?)");

	db_bind_int(q, s->tick);
	db_bind_int(q, s->now);
	db_bind_int(q, s->interval);
	return db_run(q, e);
}

static bool save_decision(struct history *h, const struct record_key *k, const struct pool_plan *p,
			  const struct group_places *groups, struct error *e)
{
	struct plan_marks m = plan_marks(p, groups);
	struct statement *q =
		db_prepare(h->db, "INSERT INTO decision (tick, pool, is_keyframe, held_by, asked, concerns,"
				  " input, plan) VALUES (?, ?, ?, ?, ?, ?, ?, ?)");

	db_bind_int(q, k->tick);
	db_bind_int(q, k->pool);
	db_bind_int(q, k->is_keyframe);
	db_bind_int(q, m.held_by);
	if (m.has_asked)
		db_bind_int(q, m.asked);
	else
		db_bind_null(q);
	db_bind_int(q, m.concerns);
	db_bind_bytes(q, h->input.text, h->input.len);
	db_bind_bytes(q, h->plan.text, h->plan.len);
	return db_run(q, e);
}

static bool save_pool(struct history *h, const struct snapshot *s, const struct plan *p, size_t place, struct error *e)
{
	const struct fleet_place *to = &h->places[place];
	struct pool_position *at = &h->positions[to->pool];
	struct record_key k = { s->tick, (int64_t)to->pool, s->now, s->interval, h->is_keyframe_due || at->tick < 0 };

	if (p->pools[place].group_count != to->groups.count)
		return error_set(e, ERROR_INTERNAL, "%s: pool %s: a plan for %zu node groups, the manifest has %zu",
				 db_path(h->db), h->pools[to->pool].name, p->pools[place].group_count,
				 to->groups.count);
	buf_clear(&h->input);
	buf_clear(&h->plan);
	record_encode_input(&at->part[RECORD_INPUT], &k, &s->pools[place], &h->input);
	record_encode_plan(&at->part[RECORD_PLAN], &k, &p->pools[place], &h->plan);
	at->tick = s->tick;
	history_note_level(h, s, p, place);
	history_note_lead_times(h, s, place);
	return save_decision(h, &k, &p->pools[place], &to->groups, e);
}

static bool check_follows(const struct history *h, const struct snapshot *s, const struct plan *p, struct error *e)
{
	if (s->tick != h->next_tick || (s->tick && s->now < h->last_at))
		return error_set(e, ERROR_INTERNAL, "%s: tick %lld does not follow tick %lld", db_path(h->db),
				 (long long)s->tick, (long long)h->next_tick - 1);
	if (p->pool_count != h->place_count)
		return error_set(e, ERROR_INTERNAL, "%s: a plan for %zu pools, the manifest in force has %zu",
				 db_path(h->db), p->pool_count, h->place_count);
	return true;
}

static bool save_all(struct history *h, const struct snapshot *s, const struct plan *p, struct error *e)
{
	if (!history_begin(h, e) || !save_tick(h, s, e))
		return false;
	for (size_t i = 0; i < h->place_count; i++)
		if (!save_pool(h, s, p, i, e))
			return false;
	return true;
}

bool history_append(struct history *h, const struct snapshot *s, const struct plan *p, struct error *e)
{
	if (!check_follows(h, s, p, e))
		return false;
	h->is_keyframe_due |= s->tick % KEYFRAME_EVERY == 0;
	if (!save_all(h, s, p, e)) {
		history_undo(h);
		return false;
	}
	if (!s->tick)
		h->last_checkpoint_at = s->now;
	h->is_keyframe_due = false;
	h->next_tick = s->tick + 1;
	h->last_at = s->now;
	return ++h->uncommitted < h->ticks_per_commit || history_commit(h, e);
}

/* Whether a reader still reads what stands at the path. */

static bool is_live(const char *path)
{
	CLEANUP(buf_release) struct buf name = { 0 };
	struct stat st;

	buf_printf(&name, "%s-wal", path);
	return !stat(name.text, &st);
}

/* Which file stands at the path; of one that nobody writes also which state of it, as it is read without locks. */
static bool look_at_file(const char *path, struct history_mark *m, struct error *e)
{
	struct stat st;

	m->is_live = is_live(path);
	if (stat(path, &st))
		return error_set(e, ERROR_NOT_FOUND, "%s: gone", path);
	m->device = (int64_t)st.st_dev;
	m->file = (int64_t)st.st_ino;
	if (!m->is_live) {
		m->size = st.st_size;
		m->changed = st.st_mtim.tv_sec * SECOND + st.st_mtim.tv_nsec / 1000000;
	}
	return true;
}

static bool look(struct history *h, struct history_mark *m, struct error *e)
{
	struct statement *s = db_prepare(h->db, "SELECT count(*), max(tick) FROM manifest_use");
	bool row;

	*m = (struct history_mark){ 0 };
	if ((!db_is_address(db_path(h->db)) && !look_at_file(db_path(h->db), m, e)) || !db_step(s, &row, e))
		return false;
	m->uses = row ? db_column_int(s, 0) : 0;
	m->last_use = row ? db_column_int(s, 1) : 0;
	db_reset(s);
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

/* Which decisions a question is about. */

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

/* Pools and manifests, and from which tick on each is in force. Pools and their groups keep their number for ever. */

/* --- reading them --- */

static bool count_rows(struct history *h, const char *sql, int64_t of, size_t *count, struct error *e)
{
	struct statement *s = db_prepare(h->db, sql);
	bool row;

	if (of >= 0)
		db_bind_int(s, of);
	if (!db_step(s, &row, e))
		return false;
	*count = (size_t)db_column_int(s, 0);
	db_reset(s);
	return true;
}

static const char *copy_text(struct history *h, const struct statement *s, int column)
{
	const char *text = db_column_text(s, column);

	return arena_strdup(&h->arena, text, strlen(text));
}

static bool load_groups(struct history *h, size_t pool, struct error *e)
{
	struct history_pool *p = &h->pools[pool];
	size_t count;
	bool row;

	if (!count_rows(h, "SELECT count(*) FROM pool_group WHERE pool = ?", (int64_t)pool, &count, e))
		return false;
	const char **groups = arena_array(&h->arena, const char *, count + 1);
	struct statement *s = db_prepare(h->db, "SELECT name FROM pool_group WHERE pool = ? ORDER BY position");

	db_bind_int(s, (int64_t)pool);
	for (size_t i = 0; i < count; i++) {
		if (!db_step(s, &row, e))
			return false;
		groups[i] = row ? copy_text(h, s, 0) : "";
	}
	db_reset(s);
	p->groups = groups;
	p->group_count = count;
	return true;
}

static bool load_names(struct history *h, struct history_pool *pools, size_t count, struct error *e)
{
	struct statement *s = db_prepare(h->db, "SELECT name, namespace, id FROM pool ORDER BY id");
	bool row;

	for (size_t i = 0; i < count; i++) {
		if (!db_step(s, &row, e))
			return false;
		if (!row || db_column_int(s, 2) != (int64_t)i)
			return error_set(e, ERROR_INVALID, "%s: damaged: pools are missing", db_path(h->db));
		pools[i].name = copy_text(h, s, 0);
		pools[i].namespace = copy_text(h, s, 1);
	}
	db_reset(s);
	return true;
}

bool history_load_pools(struct history *h, struct error *e)
{
	size_t count;

	if (!count_rows(h, "SELECT count(*) FROM pool", -1, &count, e))
		return false;
	struct history_pool *pools = arena_array(&h->arena, struct history_pool, count + 1);
	struct pool_position *positions = arena_array(&h->arena, struct pool_position, count + 1);
	if (!load_names(h, pools, count, e))
		return false;
	for (size_t i = 0; i < count; i++)
		positions[i] = i < h->pool_count ? h->positions[i] : (struct pool_position){ .tick = -1 };
	h->pools = pools;
	h->positions = positions;
	h->pool_count = count;
	for (size_t i = 0; i < count; i++)
		if (!load_groups(h, i, e))
			return false;
	return true;
}

bool history_stretch_at(struct history *h, int64_t tick, struct arena *a, struct history_stretch *out, struct error *e)
{
	struct history_stretch found = { .until = INT64_MAX };
	struct statement *s = db_prepare(h->db, "SELECT max(tick), (SELECT min(tick) FROM manifest_use WHERE tick > ?1)"
						" FROM manifest_use WHERE tick <= ?1");
	bool row;

	db_bind_int(s, tick);
	if (!db_step(s, &row, e))
		return false;
	found.from = db_column_int(s, 0);
	if (!db_column_is_null(s, 1))
		found.until = db_column_int(s, 1) - 1;
	db_reset(s);
	if (!count_rows(h, "SELECT count(*) FROM pool_use WHERE tick = ?", found.from, &found.pool_count, e))
		return false;
	size_t *pools = arena_array(a, size_t, found.pool_count + 1);
	s = db_prepare(h->db, "SELECT pool FROM pool_use WHERE tick = ? ORDER BY place");
	db_bind_int(s, found.from);
	for (size_t i = 0; i < found.pool_count; i++) {
		if (!db_step(s, &row, e))
			return false;
		pools[i] = row ? (size_t)db_column_int(s, 0) : h->pool_count;
		if (pools[i] >= h->pool_count) {
			db_reset(s);
			return error_set(e, ERROR_INVALID, "%s: damaged: pools are missing", db_path(h->db));
		}
	}
	db_reset(s);
	found.pools = pools;
	*out = found;
	return true;
}

bool history_manifest(struct history *h, int64_t tick, struct arena *a, const char **text, struct error *e)
{
	struct statement *s = db_prepare(h->db, "SELECT text FROM manifest_use u JOIN manifest m ON m.id = u.manifest"
						" WHERE u.tick <= ? ORDER BY u.tick DESC LIMIT 1");
	bool row;

	db_bind_int(s, tick);
	if (!db_step(s, &row, e))
		return false;
	if (!row)
		return error_set(e, ERROR_INVALID, "%s: damaged: no manifest for tick %lld", db_path(h->db),
				 (long long)tick);
	const char *found = db_column_text(s, 0);
	*text = arena_strdup(a, found, strlen(found));
	db_reset(s);
	return true;
}

/* Where the groups of the pool's snapshot stand in pool_group at this tick; is_there is false for a pool that was not
 * in the manifest then. */
bool history_find_places(struct history *h, int64_t tick, size_t pool, struct group_places *out, struct error *e)
{
	struct history_span span;
	bool row = true;

	if (tick >= out->from && tick < out->end)
		return true;
	if (!history_span(h, &span, e))
		return false;
	*out = (struct group_places){ 0 };
	struct statement *s = db_prepare(
		h->db, "SELECT u.tick, g.position, (SELECT min(tick) FROM manifest_use WHERE tick > ?1) FROM pool_use u"
		       " LEFT JOIN group_use g ON g.tick = u.tick AND g.pool = u.pool WHERE u.pool = ?2 AND u.tick ="
		       " (SELECT max(tick) FROM manifest_use WHERE tick <= ?1) ORDER BY g.place");
	db_bind_int(s, tick);
	db_bind_int(s, (int64_t)pool);
	for (;;) {
		if (!db_step(s, &row, e))
			return false;
		if (!row)
			break;
		out->is_there = true;
		out->from = db_column_int(s, 0);
		/* The newest may end with any tick that is still to come. */
		out->end = db_column_is_null(s, 2) ? span.last_tick + 1 : db_column_int(s, 2);
		if (!db_column_is_null(s, 1) && out->count < PLACES_MAX)
			out->position[out->count++] = (uint32_t)db_column_int(s, 1);
	}
	db_reset(s);
	return true;
}

/* --- changing them --- */

static bool save_manifest(struct history *h, const char *text, struct error *e)
{
	struct statement *s = db_prepare(h->db, "INSERT INTO manifest (text) VALUES (?) ON CONFLICT DO NOTHING");

	db_bind_text(s, text);
	if (!db_run(s, e))
		return false;
	s = db_prepare(h->db, "INSERT INTO manifest_use (tick, manifest) SELECT ?, id FROM manifest WHERE text = ?");
	db_bind_int(s, h->next_tick);
	db_bind_text(s, text);
	return db_run(s, e);
}

/* The pool's number for ever; a new one when it has none. */
static bool number_pool(struct history *h, const struct pool_spec *p, size_t *pool, struct error *e)
{
	for (*pool = 0; *pool < h->pool_count; ++*pool)
		if (!strcmp(h->pools[*pool].name, p->name) && !strcmp(h->pools[*pool].namespace, p->namespace))
			return true;
	struct statement *s = db_prepare(h->db, "INSERT INTO pool (id, namespace, name) VALUES (?, ?, ?)");
	db_bind_int(s, (int64_t)*pool);
	db_bind_text(s, p->namespace);
	db_bind_text(s, p->name);
	return db_run(s, e) && history_load_pools(h, e);
}

static bool number_group(struct history *h, size_t pool, const char *name, size_t *position, struct error *e)
{
	const struct history_pool *p = &h->pools[pool];

	for (*position = 0; *position < p->group_count; ++*position)
		if (!strcmp(p->groups[*position], name))
			return true;
	struct statement *s = db_prepare(h->db, "INSERT INTO pool_group (pool, position, name) VALUES (?, ?, ?)");
	db_bind_int(s, (int64_t)pool);
	db_bind_int(s, (int64_t)*position);
	db_bind_text(s, name);
	return db_run(s, e) && load_groups(h, pool, e);
}

static bool use_group(struct history *h, size_t pool, size_t place, size_t position, struct error *e)
{
	struct statement *s =
		db_prepare(h->db, "INSERT INTO group_use (tick, pool, place, position) VALUES (?, ?, ?, ?)");

	db_bind_int(s, h->next_tick);
	db_bind_int(s, (int64_t)pool);
	db_bind_int(s, (int64_t)place);
	db_bind_int(s, (int64_t)position);
	return db_run(s, e);
}

static bool use_pool(struct history *h, const struct fleet_spec *fleet, size_t place, struct fleet_place *out,
		     struct error *e)
{
	const struct pool_spec *p = &fleet->pools[place];
	struct group_places groups = { .is_there = true };
	size_t pool = 0;

	if (p->group_count > PLACES_MAX)
		return error_set(e, ERROR_INTERNAL, "%s: pool %s has %zu node groups; allowed: %d", db_path(h->db),
				 p->name, p->group_count, PLACES_MAX);
	if (!number_pool(h, p, &pool, e))
		return false;
	struct statement *s = db_prepare(h->db, "INSERT INTO pool_use (tick, place, pool) VALUES (?, ?, ?)");
	db_bind_int(s, h->next_tick);
	db_bind_int(s, (int64_t)place);
	db_bind_int(s, (int64_t)pool);
	if (!db_run(s, e))
		return false;
	for (size_t i = 0; i < p->group_count; i++) {
		size_t position = 0;

		if (!number_group(h, pool, fleet->groups[p->groups[i]].name, &position, e) ||
		    !use_group(h, pool, i, position, e))
			return false;
		groups.position[groups.count++] = (uint32_t)position;
	}
	*out = (struct fleet_place){ pool, groups };
	return true;
}

static bool forget_use(struct history *h, struct error *e)
{
	static const char *const sql[] = { "DELETE FROM manifest_use WHERE tick = ?",
					   "DELETE FROM pool_use WHERE tick = ?",
					   "DELETE FROM group_use WHERE tick = ?",
					   "DELETE FROM checkpoint WHERE tick = ?" };

	for (size_t i = 0; i < sizeof sql / sizeof *sql; i++) {
		struct statement *s = db_prepare(h->db, sql[i]);

		db_bind_int(s, h->next_tick);
		if (!db_run(s, e))
			return false;
	}
	return true;
}

/* Within the open transaction. */
bool history_put_fleet(struct history *h, const char *manifest, const struct fleet_spec *fleet, struct error *e)
{
	struct fleet_place *places = arena_array(&h->arena, struct fleet_place, fleet->pool_count + 1);

	if (!forget_use(h, e) || !save_manifest(h, manifest, e))
		return false;
	for (size_t i = 0; i < fleet->pool_count; i++)
		if (!use_pool(h, fleet, i, &places[i], e))
			return false;
	h->places = places;
	h->place_count = fleet->pool_count;
	h->is_keyframe_due = true;
	h->is_checkpoint_due |= h->next_tick > 0; /* the first tick begins with a new memory */
	return true;
}

bool history_use_manifest(struct history *h, const char *manifest, const struct fleet_spec *fleet, struct error *e)
{
	if (!history_begin(h, e))
		return false;
	if (history_put_fleet(h, manifest, fleet, e) && history_commit(h, e))
		return true;
	struct error second;
	history_undo(h);
	/* Without the pools that were to be new. */
	if (!history_load_pools(h, &second) || !history_take_fleet(h, &second))
		h->place_count = 0;
	return false;
}

/* What is in force, for writing on. */
bool history_take_fleet(struct history *h, struct error *e)
{
	struct history_stretch in_force;

	if (!history_stretch_at(h, h->next_tick, &h->arena, &in_force, e))
		return false;
	h->places = arena_array(&h->arena, struct fleet_place, in_force.pool_count + 1);
	for (size_t i = 0; i < in_force.pool_count; i++) {
		struct fleet_place *p = &h->places[i];

		*p = (struct fleet_place){ .pool = in_force.pools[i] };
		if (!history_find_places(h, h->next_tick, p->pool, &p->groups, e))
			return false;
	}
	h->place_count = in_force.pool_count;
	return true;
}

/* Many histories behind one address. */

bool history_is_fleet(const char *path)
{
	return db_is_address(path) && !strchr(path, '#');
}

struct names {
	struct arena *arena;
	struct buf found; /* const char * after const char * */
};

static void keep(void *user, const char *cluster)
{
	struct names *n = user;
	const char *name = arena_strdup(n->arena, cluster, strlen(cluster));

	buf_append(&n->found, &name, sizeof name);
}

bool history_clusters(const char *address, struct arena *a, const char *const **clusters, size_t *count,
		      struct error *e)
{
	struct names n = { .arena = a };
	bool ok = db_clusters(address, keep, &n, e);

	if (ok) {
		const char **names = arena_array(a, const char *, n.found.len / sizeof *names + 1);

		*count = n.found.len / sizeof *names;
		if (n.found.len)
			memcpy(names, n.found.text, n.found.len);
		*clusters = names;
	}
	buf_release(&n.found);
	return ok;
}

void history_show(const char *path, struct buf *out)
{
	const char *cluster = strchr(path, '#');

	if (!db_is_address(path)) {
		buf_text(out, path);
		return;
	}
	uri_show(path, out);
	buf_text(out, cluster ? cluster : "");
}

/* Reading decisions: from a keyframe on, each told against the one before. */

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

/* Going on with a history, and who wrote which of its ticks. */

enum { MARK_SIZE = 24, ASIDE_MOST = 99 };

static void memory_mark(char mark[MARK_SIZE])
{
	snprintf(mark, MARK_SIZE, "%016llx", (unsigned long long)policy_state_layout());
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
