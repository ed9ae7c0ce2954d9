/* A history: its tables, making, opening and closing it, writing it, going on with it. */
#include "state/history.h"

#include "base/alloc.h"
#include "base/gzip.h"
#include "base/signature.h"
#include "base/text.h"
#include "controller/policy/decide.h"
#include "state/history_file.h"
#include "state/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the tables --- */

/* Append only: a released migration never changes. */
static const char *const migrations[] = {
	/* Facts of the whole file, by name. */
	"CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;"

	/* A text is kept once; manifest_use says from which tick on it is in force. */
	"CREATE TABLE manifest (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT;"
	"CREATE TABLE manifest_use (tick INTEGER PRIMARY KEY, manifest INTEGER NOT NULL REFERENCES manifest) STRICT;"

	"CREATE TABLE pool (id INTEGER PRIMARY KEY, namespace TEXT NOT NULL, name TEXT NOT NULL) STRICT;"
	"CREATE TABLE pool_group (pool INTEGER NOT NULL REFERENCES pool, position INTEGER NOT NULL, name TEXT NOT NULL,"
	"                         PRIMARY KEY (pool, position)) STRICT, WITHOUT ROWID;"

	/* at: its end, interval: its length, both in ms. at grows with id. */
	"CREATE TABLE tick (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, interval INTEGER NOT NULL) STRICT;"

	/*
	 * input and plan: see record.h. The numbers beside them repeat what is in plan, for finding:
	 * asked: change of hot replicas that the plan asks for, NULL when it asks for nothing;
	 * concerns: a bit per position of a group that was asked for something or held.
	 */
	"CREATE TABLE decision (tick INTEGER NOT NULL, pool INTEGER NOT NULL, is_keyframe INTEGER NOT NULL,"
	"                       held_by INTEGER NOT NULL, asked INTEGER, concerns INTEGER NOT NULL,"
	"                       input BLOB NOT NULL, plan BLOB NOT NULL,"
	"                       PRIMARY KEY (tick, pool)) STRICT, WITHOUT ROWID;"
	"CREATE INDEX decision_asked ON decision (tick, pool) WHERE asked IS NOT NULL;"
	"CREATE INDEX decision_largest ON decision (abs(asked), asked, tick) WHERE asked IS NOT NULL;"
	"CREATE INDEX decision_held ON decision (held_by, tick) WHERE held_by <> 0;"

	/* The policy's memory before it decided this tick: size and crc are of the bytes before compression. */
	"CREATE TABLE checkpoint (tick INTEGER PRIMARY KEY, at INTEGER NOT NULL, size INTEGER NOT NULL,"
	"                         crc INTEGER NOT NULL, bytes BLOB NOT NULL) STRICT;"

	/* A purchase: saved before the call that costs money, with its outcome afterwards. */
	"CREATE TABLE launch (token TEXT PRIMARY KEY, pool INTEGER NOT NULL, node_group TEXT NOT NULL,"
	"                     kind INTEGER NOT NULL, count INTEGER NOT NULL, asked_at INTEGER NOT NULL,"
	"                     outcome TEXT, ended_at INTEGER) STRICT;"
	"CREATE INDEX launch_open ON launch (asked_at) WHERE outcome IS NULL;"

	/* What is left of hours whose ticks were dropped. replica_ms: of decided replicas. */
	"CREATE TABLE rollup (hour INTEGER NOT NULL, pool INTEGER NOT NULL, ticks INTEGER NOT NULL,"
	"                     arrived INTEGER NOT NULL, started INTEGER NOT NULL, late INTEGER NOT NULL,"
	"                     replica_ms INTEGER NOT NULL, micro_dollars INTEGER NOT NULL, asked INTEGER NOT NULL,"
	"                     PRIMARY KEY (hour, pool)) STRICT, WITHOUT ROWID;",

	/* From a tick on: the pools of the manifest in force in its order, and where their groups stand in pool_group.
	 */
	"CREATE TABLE pool_use (tick INTEGER NOT NULL, place INTEGER NOT NULL, pool INTEGER NOT NULL REFERENCES pool,"
	"                       PRIMARY KEY (tick, place)) STRICT, WITHOUT ROWID;"
	"CREATE TABLE group_use (tick INTEGER NOT NULL, pool INTEGER NOT NULL, place INTEGER NOT NULL,"
	"                        position INTEGER NOT NULL, PRIMARY KEY (tick, pool, place)) STRICT, WITHOUT ROWID;"
	"INSERT INTO pool_use SELECT 0, id, id FROM pool;"
	"INSERT INTO group_use SELECT 0, pool, position, position FROM pool_group;"

	/* From a tick on: what decided, the layout of its memory, and whether it began with a new one. */
	"CREATE TABLE writer (tick INTEGER PRIMARY KEY, program TEXT NOT NULL, memory TEXT NOT NULL,"
	"                     is_fresh INTEGER NOT NULL) STRICT;"
	"INSERT INTO writer SELECT 0, value, '', 1 FROM fact WHERE name = 'program';"

	/* machines: their ids, a line each. No program ever wrote the table of before. */
	"DROP TABLE launch;"
	"CREATE TABLE launch (token TEXT PRIMARY KEY, node_group TEXT NOT NULL, verb INTEGER NOT NULL,"
	"                     target INTEGER NOT NULL, machines TEXT NOT NULL, tick INTEGER NOT NULL,"
	"                     term INTEGER NOT NULL, asked_at INTEGER NOT NULL, outcome TEXT, ended_at INTEGER) STRICT;"
	"CREATE INDEX launch_open ON launch (asked_at) WHERE outcome IS NULL;"
	"CREATE INDEX launch_asked ON launch (asked_at);",

	/*
	 * What each hour came to, by pool and its class of that time: struct cost_sums in its order. GPU-milliseconds
	 * and micro-dollars; late_* sums to late.
	 */
	"CREATE TABLE cost (hour INTEGER NOT NULL, pool INTEGER NOT NULL, class INTEGER NOT NULL,"
	"                   watched_ms INTEGER NOT NULL, idle_gpu_ms INTEGER NOT NULL, lent_gpu_ms INTEGER NOT NULL,"
	"                   starting_gpu_ms INTEGER NOT NULL, serving_gpu_ms INTEGER NOT NULL,"
	"                   standby_gpu_ms INTEGER NOT NULL, idle_micro_dollars INTEGER NOT NULL,"
	"                   lent_micro_dollars INTEGER NOT NULL, starting_micro_dollars INTEGER NOT NULL,"
	"                   serving_micro_dollars INTEGER NOT NULL, standby_micro_dollars INTEGER NOT NULL,"
	"                   blind_gpu_ms INTEGER NOT NULL, arrived INTEGER NOT NULL, started INTEGER NOT NULL,"
	"                   late INTEGER NOT NULL, completed INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL,"
	"                   output_tokens INTEGER NOT NULL, late_burst INTEGER NOT NULL,"
	"                   late_cold_start INTEGER NOT NULL, late_stock_out INTEGER NOT NULL,"
	"                   late_quota INTEGER NOT NULL, late_max INTEGER NOT NULL, late_budget INTEGER NOT NULL,"
	"                   late_rate INTEGER NOT NULL, late_stale INTEGER NOT NULL, late_not_acting INTEGER NOT NULL,"
	"                   PRIMARY KEY (hour, pool, class)) STRICT, WITHOUT ROWID;"

	/* holder: enum cost_holder. A text is empty where pods have no such label. */
	"CREATE TABLE cost_label_set (id INTEGER PRIMARY KEY, holder INTEGER NOT NULL, cost_center TEXT NOT NULL,"
	"                             product TEXT NOT NULL, environment TEXT NOT NULL, workload_type TEXT NOT NULL,"
	"                             UNIQUE (holder, cost_center, product, environment, workload_type)) STRICT;"
	"CREATE TABLE cost_label (hour INTEGER NOT NULL, pool INTEGER NOT NULL, labels INTEGER NOT NULL,"
	"                         gpu_ms INTEGER NOT NULL, micro_dollars INTEGER NOT NULL,"
	"                         PRIMARY KEY (hour, pool, labels)) STRICT, WITHOUT ROWID;"

	/* GPU quotas of namespaces as they were seen: hard and used of the last look, and their sums over time. */
	"CREATE TABLE quota_hour (hour INTEGER NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,"
	"                         resource TEXT NOT NULL, watched_ms INTEGER NOT NULL, hard INTEGER NOT NULL,"
	"                         used_most INTEGER NOT NULL, hard_gpu_ms INTEGER NOT NULL,"
	"                         used_gpu_ms INTEGER NOT NULL, PRIMARY KEY (hour, namespace, name, resource))"
	"                         STRICT, WITHOUT ROWID;"

	/* Pods that hold GPUs for nothing, for how long: kind is enum holding_kind. */
	"CREATE TABLE gpu_holding (uid TEXT NOT NULL, kind INTEGER NOT NULL, since INTEGER NOT NULL,"
	"                          until INTEGER NOT NULL, namespace TEXT NOT NULL, pod TEXT NOT NULL,"
	"                          node TEXT NOT NULL, gpus_milli INTEGER NOT NULL, used_most_milli INTEGER NOT NULL,"
	"                          PRIMARY KEY (uid, kind, since)) STRICT, WITHOUT ROWID;"
	"CREATE INDEX gpu_holding_until ON gpu_holding (until);",

	/* What the provider calls the operation that goes on after its answer; '': none. */
	"ALTER TABLE launch ADD COLUMN operation TEXT NOT NULL DEFAULT '';",

	/*
	 * What pools were like, struct level_sums in its order. width: enum level_width; number: the row's beginning
	 * over its width.
	 */
	"CREATE TABLE level (pool INTEGER NOT NULL, width INTEGER NOT NULL, number INTEGER NOT NULL,"
	"                    ticks INTEGER NOT NULL, ms INTEGER NOT NULL, heard INTEGER NOT NULL,"
	"                    waited INTEGER NOT NULL, demand_milli INTEGER NOT NULL,"
	"                    running_milli INTEGER NOT NULL, waiting_milli INTEGER NOT NULL,"
	"                    wait_ms INTEGER NOT NULL, hot INTEGER NOT NULL, starting INTEGER NOT NULL,"
	"                    draining INTEGER NOT NULL, standby INTEGER NOT NULL, lent INTEGER NOT NULL,"
	"                    wished INTEGER NOT NULL, decided INTEGER NOT NULL, arrived INTEGER NOT NULL,"
	"                    started INTEGER NOT NULL, late INTEGER NOT NULL, asked INTEGER NOT NULL,"
	"                    released INTEGER NOT NULL, gpu_ms INTEGER NOT NULL, micro_dollars INTEGER NOT NULL,"
	"                    demand_milli_most INTEGER NOT NULL, waiting_milli_most INTEGER NOT NULL,"
	"                    wait_ms_most INTEGER NOT NULL, decided_most INTEGER NOT NULL,"
	"                    PRIMARY KEY (pool, width, number)) STRICT, WITHOUT ROWID;"

	/* How many starts took how long: position of pool_group, kind: enum start_kind, stage: enum stage or 5. */
	"CREATE TABLE lead_time (pool INTEGER NOT NULL, day INTEGER NOT NULL, position INTEGER NOT NULL,"
	"                        kind INTEGER NOT NULL, stage INTEGER NOT NULL, bucket INTEGER NOT NULL,"
	"                        samples INTEGER NOT NULL, ms INTEGER NOT NULL,"
	"                        PRIMARY KEY (pool, day, position, kind, stage, bucket)) STRICT, WITHOUT ROWID;",

	/* A node that is drained: saved before its first mark, with what became of it. unmarked_at NULL: the mark may
	 * be there still. */
	"CREATE TABLE drain (node TEXT NOT NULL, asked_at INTEGER NOT NULL, machine TEXT NOT NULL, pool TEXT NOT NULL,"
	"                    node_group TEXT NOT NULL, fate TEXT NOT NULL, why TEXT NOT NULL, tick INTEGER NOT NULL,"
	"                    term INTEGER NOT NULL, released_at INTEGER, outcome TEXT, ended_at INTEGER,"
	"                    unmarked_at INTEGER, PRIMARY KEY (node, asked_at)) STRICT, WITHOUT ROWID;"
	"CREATE INDEX drain_marked ON drain (node) WHERE unmarked_at IS NULL;"
	"CREATE INDEX drain_asked ON drain (asked_at);",

	/* What shares decided, as state/share_record.h writes it, and engines that were put to sleep and woken.
	 * ended_at NULL: under way, or, with an outcome, its slot is being mended. */
	"CREATE TABLE share_decision (share TEXT NOT NULL, at INTEGER NOT NULL, view TEXT NOT NULL, plan TEXT NOT NULL,"
	"                             PRIMARY KEY (share, at)) STRICT, WITHOUT ROWID;"
	"CREATE INDEX share_decision_at ON share_decision (at);"
	"CREATE TABLE engine_move (uid TEXT NOT NULL, asked_at INTEGER NOT NULL, pod TEXT NOT NULL, pool TEXT NOT NULL,"
	"                          share TEXT NOT NULL, slot TEXT NOT NULL, is_wake INTEGER NOT NULL, why TEXT NOT "
	"NULL,"
	"                          tick INTEGER NOT NULL, term INTEGER NOT NULL, outcome TEXT, took INTEGER,"
	"                          ended_at INTEGER, PRIMARY KEY (uid, asked_at)) STRICT, WITHOUT ROWID;"
	"CREATE INDEX engine_move_open ON engine_move (asked_at) WHERE ended_at IS NULL;"
	"CREATE INDEX engine_move_asked ON engine_move (asked_at);",

	/* Of a manifest whose `text` is its SHA-256: the text of `size` bytes, compressed. Others are as they stand. */
	("CREATE TABLE manifest_text (manifest INTEGER PRIMARY KEY REFERENCES manifest, size INTEGER NOT NULL,"
	 "                            bytes BLOB NOT NULL) STRICT;"),

	/* The rule that a share follows since then, and what its shadows have counted by saved_at
	 * (state/share_record.h). */
	"CREATE TABLE share_choice (share TEXT NOT NULL, since INTEGER NOT NULL, saved_at INTEGER NOT NULL,"
	"                           why TEXT NOT NULL, tally TEXT NOT NULL, PRIMARY KEY (share, since))"
	" STRICT, WITHOUT ROWID;",
};

/* "PrHt". Files of before costs were kept can be read, too: nothing that was there has changed since. */
const struct db_schema history_schema = { 0x50724874, migrations, sizeof migrations / sizeof *migrations, 2 };

/* --- making, opening, closing --- */

static bool save_writer(struct history *h, const char *program, struct error *e);
static bool put_fleet(struct history *h, const char *manifest, const struct fleet_spec *fleet, struct error *e);
static bool take_fleet(struct history *h, struct error *e);
static bool has_facts(struct history *h, bool *has, struct error *e);

static struct history *new_history(void)
{
	struct history *h = xcalloc(1, sizeof *h);

	h->retained_from = -1;
	h->has_cost = h->has_levels = h->has_drains = h->has_shares = h->has_texts = h->has_choices =
		true; /* opening for writing makes the tables */
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

bool history_begin_durable(struct history *h, struct error *e)
{
	return history_commit(h, e) && db_set_durable(h->db, true, e) && history_begin(h, e);
}

bool history_run_durable(struct history *h, struct statement *s, struct error *e)
{
	bool ok = db_run(s, e) && history_commit(h, e);

	if (!ok)
		history_undo(h);
	struct error second;
	return db_set_durable(h->db, false, ok ? e : &second) && ok;
}

bool history_keep_fact(struct history *h, const char *name, const char *value, struct error *e)
{
	if (!history_begin_durable(h, e))
		return false;
	return history_run_durable(
		h, DB_QUERY(h->db, "INSERT OR REPLACE INTO fact (name, value) VALUES (?, ?)", DB_T(name), DB_T(value)),
		e);
}

static bool save_setup(struct history *h, const struct history_setup *setup, struct error *e)
{
	char layout[16];
	const char *const facts[][2] = {
		{ "program", setup->program }, { "policy", setup->policy }, { "run", setup->run }, { "layout", layout }
	};
	bool ok = history_begin(h, e);

	snprintf(layout, sizeof layout, "%08x", record_layout());
	for (size_t i = 0; ok && i < sizeof facts / sizeof *facts; i++)
		ok = db_run(DB_QUERY(h->db, "INSERT INTO fact (name, value) VALUES (?, ?)", DB_T(facts[i][0]),
				     DB_T(facts[i][1])),
			    e);
	return ok && save_writer(h, setup->program, e) && put_fleet(h, setup->manifest, setup->fleet, e) &&
	       history_commit(h, e);
}

void history_close(struct history *h)
{
	if (!h)
		return;
	db_close(h->db);
	for (size_t i = 0; i < h->pool_count && h->positions; i++)
		for (int part = 0; part < RECORD_PART_COUNT; part++)
			record_state_release(&h->positions[i].part[part]);
	free(h->places);
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

/* The log first: one that is left would be taken for that of whatever file has the name next. */
void history_remove_file(const char *path)
{
	static const char *const suffixes[] = { "-wal", "-shm", "" };

	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		CLEANUP(buf_release) struct buf name = { 0 };

		buf_printf(&name, "%s%s", path, suffixes[i]);
		if (unlink(name.text) && errno != ENOENT)
			return;
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
	/* Ours from here on: of two who begin at once the second must not remove the first one's below. */
	int fd = open(setup->path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0) {
		errno == EEXIST
			? error_set(e, ERROR_CONFLICT, "%s: already there; name another file or remove it", setup->path)
			: error_set(e, ERROR_UNAVAILABLE, "%s: %s", setup->path, strerror(errno));
		return NULL;
	}
	close(fd);
	struct history *h = new_history();

	h->ticks_per_commit = setup->ticks_per_commit;
	h->checkpoint_every = setup->checkpoint_every;
	h->db = db_open(setup->path, &history_schema, e);
	if (h->db && save_setup(h, setup, e))
		return h;
	history_close(h);
	history_remove_file(setup->path);
	return NULL;
}

static bool check_layout(struct history *h, struct error *e)
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

static bool is_of_ours(const char *path, struct error *e)
{
	struct history *h = new_history();
	bool is_begun = false;

	h->db = db_open_read(path, &history_schema, e);
	bool is = h->db && has_facts(h, &is_begun, e) && (!is_begun || check_layout(h, e));
	history_close(h);
	return is;
}

/* What else is wrong with it is told by whoever opens it for writing. A read that fails once says nothing of whose it
 * is. */
static bool may_migrate(const char *path, struct error *e)
{
	struct error why = { 0 };
	bool may = is_of_ours(path, &why) || (why.kind == ERROR_UNAVAILABLE && is_of_ours(path, &why)) ||
		   why.kind != ERROR_CONFLICT;

	if (!may)
		*e = why;
	return may;
}

static struct history *open_with(struct db *db, bool only_sums, struct error *e)
{
	struct history *h = new_history();

	h->db = db;
	if (h->db && db_has_table(h->db, "cost", &h->has_cost, e) && db_has_table(h->db, "level", &h->has_levels, e) &&
	    db_has_table(h->db, "drain", &h->has_drains, e) && db_has_table(h->db, "engine_move", &h->has_shares, e) &&
	    db_has_table(h->db, "manifest_text", &h->has_texts, e) &&
	    db_has_table(h->db, "share_choice", &h->has_choices, e)) {
		h->is_foreign = !check_layout(h, e);
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
	return may_migrate(path, e) ? open_with(db_open(path, &history_schema, e), false, e) : NULL;
}

struct history *history_open_copy(const char *path, struct error *e)
{
	bool begun;

	if (!may_migrate(path, e))
		return NULL;
	struct history *h = new_history();

	h->ticks_per_commit = 1;
	h->db = db_open(path, &history_schema, e);
	if (h->db && has_facts(h, &begun, e) && (!begun || check_layout(h, e)) && history_load_pools(h, e))
		return h;
	history_close(h);
	return NULL;
}

/* --- writing ticks: inputs and plans of all pools, told against the tick before --- */

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

static bool save_decision(struct history *h, const struct record_key *k, const struct pool_plan *p,
			  const struct group_places *groups, struct error *e)
{
	struct plan_marks m = plan_marks(p, groups);

	return db_run(DB_QUERY(h->db,
			       "INSERT INTO decision (tick, pool, is_keyframe, held_by, asked, concerns, input, plan)"
			       " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			       DB_I(k->tick), DB_I(k->pool), DB_I(k->is_keyframe), DB_I(m.held_by),
			       { .kind = m.has_asked ? DB_INT : DB_NULL, .number = m.asked }, DB_I(m.concerns),
			       DB_B(h->input.text, h->input.len), DB_B(h->plan.text, h->plan.len)),
		      e);
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
	if (!history_begin(h, e) || !db_run(DB_QUERY(h->db, "INSERT INTO tick (id, at, interval) VALUES (?, ?, ?)",
						     DB_I(s->tick), DB_I(s->now), DB_I(s->interval)),
					    e))
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

/* --- pools and manifests, which keep their numbers for ever, and from which tick on each is in force --- */

static bool load_groups(struct history *h, size_t pool, struct error *e)
{
	struct buf names = { 0 };
	struct statement *s =
		DB_QUERY(h->db, "SELECT name FROM pool_group WHERE pool = ? ORDER BY position", DB_I((int64_t)pool));
	bool ok;

	while (db_next(s, &ok, e)) {
		const char *name = db_column_copy(s, 0, &h->arena);

		buf_append(&names, &name, sizeof name);
	}
	h->pools[pool].groups = rows_array(&names, sizeof(char *), &h->arena, &h->pools[pool].group_count);
	return ok;
}

bool history_load_pools(struct history *h, struct error *e)
{
	struct buf found = { 0 };
	struct statement *s = db_prepare(h->db, "SELECT id, name, namespace FROM pool ORDER BY id");
	bool ok, is_whole = true;
	size_t count;

	while (db_next(s, &ok, e)) {
		struct history_pool pool = { db_column_copy(s, 1, &h->arena), db_column_copy(s, 2, &h->arena), NULL,
					     0 };

		is_whole = is_whole && db_column_int(s, 0) == (int64_t)(found.len / sizeof pool);
		buf_append(&found, &pool, sizeof pool);
	}
	struct history_pool *pools = rows_array(&found, sizeof *pools, &h->arena, &count);
	if (!ok)
		return false;
	if (!is_whole)
		return error_set(e, ERROR_INVALID, "%s: damaged: pools are missing", db_path(h->db));
	struct pool_position *positions = arena_array(&h->arena, struct pool_position, count + 1);
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

/* Of a thousand pools it is half a MB, of which any change of one makes another. */
static bool save_text(struct history *h, int64_t id, const char *text, struct error *e)
{
	CLEANUP(buf_release) struct buf packed = { .cap = MANIFEST_MOST };
	size_t size = strlen(text);

	deflate_bytes(text, size, &packed);
	if (size > MANIFEST_MOST || !buf_ok(&packed))
		return error_set(e, ERROR_INVALID, "%s: a manifest of %zu bytes is too large to keep", db_path(h->db),
				 size);
	return db_run(DB_QUERY(h->db, "INSERT INTO manifest_text (manifest, size, bytes) VALUES (?, ?, ?)", DB_I(id),
			       DB_I((int64_t)size), DB_B(packed.text, packed.len)),
		      e);
}

static bool save_manifest(struct history *h, const char *text, struct error *e)
{
	const struct sha256 digest = sha256_of(text, strlen(text));
	char name[SHA256_TEXT];
	int64_t id;
	bool is_new;

	sha256_text(&digest, name);
	if (!db_read_ints(DB_QUERY(h->db, "INSERT INTO manifest (text) VALUES (?) ON CONFLICT DO NOTHING RETURNING id",
				   DB_T(name)),
			  &id, 1, &is_new, e))
		return false;
	if (is_new ? !save_text(h, id, text, e)
		   : !db_read_ints(DB_QUERY(h->db, "SELECT id FROM manifest WHERE text = ?", DB_T(name)), &id, 1, NULL,
				   e))
		return false;
	return db_run(DB_QUERY(h->db, "INSERT INTO manifest_use (tick, manifest) VALUES (?, ?)", DB_I(h->next_tick),
			       DB_I(id)),
		      e);
}

/* The pool's number for ever; the count of them when it has none. Most pools stand behind the one before them in the
 * manifest, whose number is *last. */
static size_t pool_number(const struct history *h, const struct pool_spec *p, size_t *last)
{
	for (size_t n = 1; n <= h->pool_count; n++) {
		size_t i = (*last + n) % h->pool_count;
		if (!strcmp(h->pools[i].name, p->name) && !strcmp(h->pools[i].namespace, p->namespace))
			return *last = i;
	}
	return h->pool_count;
}

static bool number_pools(struct history *h, const struct fleet_spec *fleet, struct error *e)
{
	size_t next = h->pool_count, last = next ? next - 1 : 0;

	for (size_t i = 0; i < fleet->pool_count; i++) {
		const struct pool_spec *p = &fleet->pools[i];

		if (pool_number(h, p, &last) < h->pool_count)
			continue;
		struct statement *s = DB_QUERY(h->db, "INSERT INTO pool (id, namespace, name) VALUES (?, ?, ?)",
					       DB_I((int64_t)next++), DB_T(p->namespace), DB_T(p->name));
		if (!db_run(s, e))
			return false;
	}
	return next == h->pool_count || history_load_pools(h, e);
}

static bool number_group(struct history *h, size_t pool, const char *name, size_t *position, struct error *e)
{
	const struct history_pool *p = &h->pools[pool];

	for (*position = 0; *position < p->group_count; ++*position)
		if (!strcmp(p->groups[*position], name))
			return true;
	struct statement *s = DB_QUERY(h->db, "INSERT INTO pool_group (pool, position, name) VALUES (?, ?, ?)",
				       DB_I((int64_t)pool), DB_I((int64_t)*position), DB_T(name));
	return db_run(s, e) && load_groups(h, pool, e);
}

static bool use_pool(struct history *h, const struct fleet_spec *fleet, size_t place, size_t pool,
		     struct fleet_place *out, struct error *e)
{
	const struct pool_spec *p = &fleet->pools[place];
	struct group_places groups = { .is_there = true };

	if (p->group_count > PLACES_MAX)
		return error_set(e, ERROR_INTERNAL, "%s: pool %s has %zu node groups; allowed: %d", db_path(h->db),
				 p->name, p->group_count, PLACES_MAX);
	struct statement *s = DB_QUERY(h->db, "INSERT INTO pool_use (tick, place, pool) VALUES (?, ?, ?)",
				       DB_I(h->next_tick), DB_I((int64_t)place), DB_I((int64_t)pool));
	if (!db_run(s, e))
		return false;
	for (size_t i = 0; i < p->group_count; i++) {
		size_t position = 0;

		if (!number_group(h, pool, fleet->groups[p->groups[i]].name, &position, e) ||
		    !db_run(DB_QUERY(h->db, "INSERT INTO group_use (tick, pool, place, position) VALUES (?, ?, ?, ?)",
				     DB_I(h->next_tick), DB_I((int64_t)pool), DB_I((int64_t)i),
				     DB_I((int64_t)position)),
			    e))
			return false;
		groups.position[groups.count++] = (uint32_t)position;
	}
	*out = (struct fleet_place){ .pool = pool, .groups = groups };
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

/* The same pools with the same groups, each in its place. */
static bool is_in_use(const struct history *h, const struct fleet_spec *fleet)
{
	if (!h->place_count || h->place_count != fleet->pool_count)
		return false;
	for (size_t i = 0; i < h->place_count; i++) {
		const struct fleet_place *in_use = &h->places[i];
		const struct history_pool *known = &h->pools[in_use->pool];
		const struct pool_spec *p = &fleet->pools[i];

		if (strcmp(known->name, p->name) != 0 || strcmp(known->namespace, p->namespace) != 0 ||
		    in_use->groups.count != p->group_count)
			return false;
		for (size_t k = 0; k < p->group_count; k++)
			if (strcmp(known->groups[in_use->groups.position[k]], fleet->groups[p->groups[k]].name) != 0)
				return false;
	}
	return true;
}

/* As from that tick on. */
static bool repeat_use(struct history *h, int64_t from, struct error *e)
{
	return db_run(DB_QUERY(h->db, "INSERT INTO pool_use SELECT ?, place, pool FROM pool_use WHERE tick = ?",
			       DB_I(h->next_tick), DB_I(from)),
		      e) &&
	       db_run(DB_QUERY(h->db,
			       "INSERT INTO group_use SELECT ?, pool, place, position FROM group_use WHERE tick = ?",
			       DB_I(h->next_tick), DB_I(from)),
		      e);
}

static bool use_pools(struct history *h, const struct fleet_spec *fleet, struct error *e)
{
	if (!number_pools(h, fleet, e))
		return false;
	struct fleet_place *places = xcalloc(fleet->pool_count + 1, sizeof *places);
	size_t last = h->pool_count ? h->pool_count - 1 : 0;
	bool ok = true;

	for (size_t i = 0; ok && i < fleet->pool_count; i++)
		ok = use_pool(h, fleet, i, pool_number(h, &fleet->pools[i], &last), &places[i], e);
	if (!ok) {
		free(places);
		return false;
	}
	free(h->places);
	h->places = places;
	h->place_count = fleet->pool_count;
	return true;
}

/* Within the open transaction. */
static bool put_fleet(struct history *h, const char *manifest, const struct fleet_spec *fleet, struct error *e)
{
	int64_t from[] = { h->next_tick };

	if (!db_read_ints(db_prepare(h->db, "SELECT max(tick) FROM manifest_use"), from, 1, NULL, e) ||
	    !forget_use(h, e) || !save_manifest(h, manifest, e))
		return false;
	bool stays = from[0] < h->next_tick && is_in_use(h, fleet);
	if (stays ? !repeat_use(h, from[0], e) : !use_pools(h, fleet, e))
		return false;
	h->is_keyframe_due |= !stays;
	return true;
}

bool history_use_manifest(struct history *h, const char *manifest, const struct fleet_spec *fleet, struct error *e)
{
	if (!history_begin(h, e))
		return false;
	if (put_fleet(h, manifest, fleet, e) && history_commit(h, e))
		return true;
	struct error second;
	history_undo(h);
	/* Without the pools that were to be new. */
	if (!history_load_pools(h, &second) || !take_fleet(h, &second))
		h->place_count = 0;
	return false;
}

/* What is in force, for writing on. */
static bool take_fleet(struct history *h, struct error *e)
{
	struct history_stretch in_force;

	if (!history_stretch_at(h, h->next_tick, &h->arena, &in_force, e))
		return false;
	free(h->places);
	h->places = xcalloc(in_force.pool_count + 1, sizeof *h->places);
	for (size_t i = 0; i < in_force.pool_count; i++) {
		struct fleet_place *p = &h->places[i];

		*p = (struct fleet_place){ .pool = in_force.pools[i] };
		if (!history_find_places(h, h->next_tick, p->pool, &p->groups, e))
			return false;
	}
	h->place_count = in_force.pool_count;
	return true;
}

/* --- many histories behind one address --- */

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

	*clusters = rows_array(&n.found, sizeof **clusters, a, count);
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

/* --- who wrote which ticks --- */

enum { MARK_SIZE = 24, ASIDE_MOST = 99 };

static void memory_mark(char mark[MARK_SIZE])
{
	snprintf(mark, MARK_SIZE, "%016llx", (unsigned long long)policy_state_layout());
}

/* What writes from the next tick on; the first of all begins with a new memory. */
static bool save_writer(struct history *h, const char *program, struct error *e)
{
	char mark[MARK_SIZE];
	bool known;

	memory_mark(mark);
	if (!db_read_bool(DB_QUERY(h->db,
				   "SELECT count(*) FROM writer WHERE program = ? AND memory = ?"
				   " AND tick = (SELECT max(tick) FROM writer)",
				   DB_T(program), DB_T(mark)),
			  &known, e))
		return false;
	if (known)
		return true;
	h->is_checkpoint_due |= h->next_tick > 0;
	return db_run(DB_QUERY(h->db,
			       "INSERT INTO writer (tick, program, memory, is_fresh) VALUES (?1, ?2, ?3, ?1 = 0)"
			       " ON CONFLICT DO UPDATE SET program = ?2, memory = ?3",
			       DB_I(h->next_tick), DB_T(program), DB_T(mark)),
		      e);
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
	return db_read_ints(
		DB_QUERY(h->db, "SELECT max(tick) FROM writer WHERE is_fresh = 1 AND tick <= ?", DB_I(tick)), at_tick,
		1, NULL, e);
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
	DB_BIND(s, DB_I(from), DB_I(to), DB_T(mark));
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
		db_prepare(h->db, "SELECT coalesce((SELECT max(id) FROM tick), -1), (SELECT max(at) FROM tick),"
				  " coalesce((SELECT max(at) FROM checkpoint), (SELECT min(at) FROM tick))");
	int64_t v[3];

	if (!db_read_ints(s, v, 3, NULL, e))
		return false;
	h->next_tick = h->committed_tick = v[0] + 1;
	h->last_at = h->committed_at = v[1];
	h->last_checkpoint_at = v[2];
	h->is_keyframe_due = true;
	return true;
}

/* A writer that was killed while it made the file left the tables without a fact. */
static bool has_facts(struct history *h, bool *has, struct error *e)
{
	return db_read_bool(db_prepare(h->db, "SELECT count(*) FROM fact"), has, e);
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
	if (!strcmp(in_force, setup->manifest))
		return true;
	h->is_checkpoint_due |= h->next_tick > 0; /* the first tick begins with a new memory */
	return put_fleet(h, setup->manifest, setup->fleet, e);
}

static bool go_on(struct history *h, const struct history_setup *setup, struct error *e)
{
	bool begun;

	if (!has_facts(h, &begun, e))
		return false;
	if (!begun)
		return save_setup(h, setup, e);
	return check_layout(h, e) && check_decider(h, setup, e) && history_load_pools(h, e) && take_position(h, e) &&
	       take_fleet(h, e) && history_begin(h, e) && save_writer(h, setup->program, e) &&
	       take_manifest(h, setup, e) && history_commit(h, e);
}

struct history *history_resume(const struct history_setup *setup, struct error *e)
{
	if (access(setup->path, F_OK)) {
		if (errno == ENOENT)
			return history_create(setup, e);
		error_set(e, ERROR_UNAVAILABLE, "%s: %s", setup->path, strerror(errno));
		return NULL;
	}
	if (!may_migrate(setup->path, e))
		return NULL;
	struct history *h = new_history();

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
	if (!rename(source.text, target.text)) {
		db_keep_private(target.text);
		return true;
	}
	if (*suffix && errno == ENOENT)
		return true;
	return error_set(e, ERROR_UNAVAILABLE, "%s: cannot be renamed to %s: %s", source.text, target.text,
			 strerror(errno));
}

/* The log first: without it the rest would be of an earlier time. */
static bool rename_both(const char *from, const char *to, struct error *e)
{
	struct error second;

	if (!rename_one(from, to, "-wal", e))
		return false;
	return rename_one(from, to, "", e) || (rename_one(to, from, "-wal", &second), false);
}

bool history_free_name(const char *path, struct buf *name, struct error *e)
{
	for (int i = 1; i <= ASIDE_MOST; i++) {
		buf_clear(name);
		buf_printf(name, "%s.%d", path, i);
		if (!access(name->text, F_OK))
			continue;
		/* What cannot be looked at may be one, and is not written over. */
		return errno == ENOENT || error_set(e, ERROR_UNAVAILABLE, "%s: %s", name->text, strerror(errno));
	}
	return error_set(e, ERROR_CONFLICT,
			 "%s: too many were set aside already; remove some of %s.1 to %s.%d, each with its -wal", path,
			 path, path, ASIDE_MOST);
}

bool history_set_aside(const char *path, struct buf *name, struct error *e)
{
	CLEANUP(buf_release) struct buf free_name = { 0 };

	if (db_is_address(path))
		return db_set_cluster_aside(path, name, e);
	if (!history_free_name(path, &free_name, e))
		return false;
	buf_text(name, free_name.text);
	return rename_both(path, free_name.text, e);
}

int64_t history_aside_bytes(const char *path)
{
	static const char *const suffixes[] = { "", "-wal" };
	int64_t sum = 0;

	for (int i = 1; i <= ASIDE_MOST && !db_is_address(path); i++)
		for (size_t k = 0; k < sizeof suffixes / sizeof *suffixes; k++) {
			CLEANUP(buf_release) struct buf name = { 0 };
			struct stat file;

			buf_printf(&name, "%s.%d%s", path, i, suffixes[k]);
			sum += stat(name.text, &file) ? 0 : (int64_t)file.st_size;
		}
	return sum;
}

/* --- checkpoints: the policy's memory at some ticks, so that a replay need not start at the first --- */

enum { CHECKPOINT_MOST = 256 << 20 };

bool history_wants_checkpoint(const struct history *h)
{
	return h->is_checkpoint_due || (h->next_tick > 0 && h->last_at - h->last_checkpoint_at >= h->checkpoint_every);
}

/* Of those older than a day, the first of each day stays. */
static bool thin(struct history *h, millis now, struct error *e)
{
	return db_run(DB_QUERY(h->db,
			       "DELETE FROM checkpoint WHERE at < ?1 AND EXISTS (SELECT 1 FROM"
			       " checkpoint o WHERE o.tick < checkpoint.tick"
			       " AND o.at / ?2 = checkpoint.at / ?2)",
			       DB_I(now - DAY), DB_I(DAY)),
		      e);
}

bool history_checkpoint(struct history *h, const struct buf *memory, struct error *e)
{
	CLEANUP(buf_release) struct buf packed = { .cap = CHECKPOINT_MOST };

	deflate_bytes(memory->text, memory->len, &packed);
	if (memory->len > CHECKPOINT_MOST || !buf_ok(&packed))
		return error_set(e, ERROR_INTERNAL, "%s: a memory of %zu bytes is too large to keep", db_path(h->db),
				 memory->len);
	struct statement *q = db_prepare(h->db, "INSERT OR REPLACE INTO checkpoint (tick, at, size, crc, bytes)"
						" VALUES (?, ?, ?, ?, ?)");
	if (!history_begin(h, e))
		return false;
	DB_BIND(q, DB_I(h->next_tick), DB_I(h->last_at), DB_I((int64_t)memory->len),
		DB_I(crc32_bytes(0, memory->text, memory->len)), DB_B(packed.text, packed.len));
	if (!db_run(q, e) || !thin(h, h->last_at, e)) {
		history_undo(h);
		return false;
	}
	h->is_keyframe_due = true;
	h->is_checkpoint_due = false;
	h->last_checkpoint_at = h->last_at;
	return h->ticks_per_commit > 1 || history_commit(h, e);
}

static bool unpack(struct history *h, const struct statement *s, struct buf *memory, struct error *e)
{
	CLEANUP(arena_release) struct arena scratch = { 0 };
	int64_t tick = db_column_int(s, 0), size = db_column_int(s, 1), crc = db_column_int(s, 2);
	size_t packed_len;
	const void *packed = db_column_bytes(s, 3, &packed_len);

	if (size >= 0 && size <= CHECKPOINT_MOST) {
		char *bytes = arena_alloc(&scratch, (size_t)size + 1, 1);

		if (inflate_bytes(packed, packed_len, bytes, (size_t)size, e) &&
		    crc32_bytes(0, bytes, (size_t)size) == crc) {
			buf_append(memory, bytes, (size_t)size);
			return true;
		}
	}
	return error_set(e, ERROR_INVALID, "%s: the checkpoint of tick %lld is damaged", db_path(h->db),
			 (long long)tick);
}

bool history_last_checkpoint(struct history *h, int64_t tick, int64_t *at_tick, struct buf *memory, struct error *e)
{
	struct statement *s = DB_QUERY(h->db,
				       "SELECT tick, size, crc, bytes FROM checkpoint WHERE tick <= ?"
				       " ORDER BY tick DESC LIMIT 1",
				       DB_I(tick));
	bool row;

	if (!db_step(s, &row, e))
		return false;
	if (!row)
		return error_set(e, ERROR_NOT_FOUND, "%s: no checkpoint at or before tick %lld", db_path(h->db),
				 (long long)tick);
	bool ok = unpack(h, s, memory, e);

	if (ok)
		*at_tick = db_column_int(s, 0);
	db_reset(s);
	return ok;
}

bool history_next_checkpoint(struct history *h, int64_t tick, bool *there, int64_t *at_tick, uint32_t *crc,
			     struct error *e)
{
	struct statement *s =
		DB_QUERY(h->db, "SELECT tick, crc FROM checkpoint WHERE tick >= ? ORDER BY tick LIMIT 1", DB_I(tick));

	if (!db_step(s, there, e))
		return false;
	*at_tick = *there ? db_column_int(s, 0) : 0;
	*crc = *there ? (uint32_t)db_column_int(s, 1) : 0;
	db_reset(s);
	return true;
}
