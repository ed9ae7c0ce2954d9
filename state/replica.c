/* The leader's side, and what both sides share. */
#include "state/replica.h"

#include "base/gzip.h"
#include "state/history_file.h"
#include "state/replica_form.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

enum { TICKS_MOST = 2000, BATCH_BYTES = 4 << 20, ASIDE_MOST = 99 };

#define X	"WITH x (first, last, use_from, since, is_all, is_start) AS (VALUES (?1, ?2, ?3, ?4, ?5, ?6)) "
#define HAS_USE " WHERE EXISTS (SELECT 1 FROM manifest_use, x WHERE manifest_use.tick BETWEEN x.use_from AND x.last)"
#define SINCE	"x.is_all <> 0 OR hour >= (x.since - 1) / 3600000"

const struct section replica_sections[] = {
	{ X "SELECT name, value FROM x JOIN fact ON (x.is_all <> 0 AND name <> 'kept_from') OR name LIKE 'contended %' "
	    "OR name LIKE 'guarded %' OR name = 'given up'",
	  "INSERT OR REPLACE INTO fact (name, value) VALUES (?, ?)", false, NULL },
	{ X "SELECT id, text FROM manifest WHERE id IN (SELECT manifest FROM x JOIN manifest_use ON tick BETWEEN"
	    " x.use_from AND x.last)",
	  "INSERT INTO manifest (id, text) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET text = excluded.text", false,
	  NULL },
	{ X
	  "SELECT manifest, size, bytes FROM manifest_text WHERE manifest IN (SELECT manifest FROM x JOIN manifest_use"
	  " ON tick BETWEEN x.use_from AND x.last)",
	  "INSERT OR REPLACE INTO manifest_text (manifest, size, bytes) VALUES (?, ?, ?)", false, "manifest_text" },
	{ X "SELECT id, namespace, name FROM pool" HAS_USE " ORDER BY id",
	  "INSERT OR IGNORE INTO pool (id, namespace, name) VALUES (?, ?, ?)", true, NULL },
	{ X "SELECT pool, position, name FROM pool_group" HAS_USE,
	  "INSERT OR IGNORE INTO pool_group (pool, position, name) VALUES (?, ?, ?)", true, NULL },
	{ X "SELECT tick, manifest FROM x JOIN manifest_use ON tick BETWEEN x.use_from AND x.last",
	  "INSERT OR REPLACE INTO manifest_use (tick, manifest) VALUES (?, ?)", false, NULL },
	{ X "SELECT tick, place, pool FROM x JOIN pool_use ON tick BETWEEN x.use_from AND x.last",
	  "INSERT OR REPLACE INTO pool_use (tick, place, pool) VALUES (?, ?, ?)", false, NULL },
	{ X "SELECT tick, pool, place, position FROM x JOIN group_use ON tick BETWEEN x.use_from AND x.last",
	  "INSERT OR REPLACE INTO group_use (tick, pool, place, position) VALUES (?, ?, ?, ?)", false, NULL },
	{ X "SELECT tick, program, memory, is_fresh FROM x JOIN writer ON tick <= x.last AND (x.is_all <> 0 OR tick >= "
	    "x.first)",
	  "INSERT OR REPLACE INTO writer (tick, program, memory, is_fresh) VALUES (?, ?, ?, ?)", false, NULL },
	{ X "SELECT id, at, interval FROM x JOIN tick ON id BETWEEN x.first AND x.last",
	  "INSERT INTO tick (id, at, interval) VALUES (?, ?, ?)", false, NULL },
	{ X "SELECT tick, pool, is_keyframe, held_by, asked, concerns, input, plan FROM x JOIN decision"
	    " ON tick BETWEEN x.first AND x.last",
	  "INSERT INTO decision (tick, pool, is_keyframe, held_by, asked, concerns, input, plan)"
	  " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
	  false, NULL },
	{ X "SELECT tick, at, size, crc, bytes FROM x JOIN checkpoint ON tick BETWEEN x.first AND x.last",
	  "INSERT INTO checkpoint (tick, at, size, crc, bytes) VALUES (?, ?, ?, ?, ?)", false, NULL },
	{ X "SELECT hour, pool, ticks, arrived, started, late, replica_ms, micro_dollars, asked FROM x JOIN rollup"
	    " ON x.is_all <> 0 OR x.is_start <> 0",
	  "INSERT OR REPLACE INTO rollup (hour, pool, ticks, arrived, started, late, replica_ms, micro_dollars, asked)"
	  " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
	  false, NULL },
	{ X "SELECT token, node_group, verb, target, machines, tick, term, asked_at, outcome, ended_at, operation"
	    " FROM x JOIN launch"
	    " ON x.is_all <> 0 OR outcome IS NULL OR ended_at >= x.since",
	  "INSERT OR REPLACE INTO launch (token, node_group, verb, target, machines, tick, term, asked_at, outcome,"
	  " ended_at, operation) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	  false, NULL },
	{ X "SELECT node, asked_at, machine, pool, node_group, fate, why, tick, term, released_at, outcome, ended_at,"
	    " unmarked_at FROM x JOIN drain ON x.is_all <> 0 OR unmarked_at IS NULL OR unmarked_at >= x.since",
	  "INSERT OR REPLACE INTO drain (node, asked_at, machine, pool, node_group, fate, why, tick, term, released_at,"
	  " outcome, ended_at, unmarked_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	  false, NULL },
	{ X "SELECT share, share_decision.at, view, plan FROM x JOIN share_decision ON x.is_all <> 0 OR"
	    " share_decision.at >= x.since",
	  "INSERT OR REPLACE INTO share_decision (share, at, view, plan) VALUES (?, ?, ?, ?)", false,
	  "share_decision" },
	{ X "SELECT share, share_choice.since, saved_at, why, tally FROM x JOIN share_choice ON x.is_all <> 0 OR"
	    " saved_at >= x.since",
	  "INSERT OR REPLACE INTO share_choice (share, since, saved_at, why, tally) VALUES (?, ?, ?, ?, ?)", false,
	  "share_choice" },
	{ X
	  "SELECT uid, asked_at, pod, engine_move.pool, share, slot, is_wake, why, tick, term, outcome, took, ended_at"
	  " FROM x JOIN engine_move ON x.is_all <> 0 OR ended_at IS NULL OR ended_at >= x.since",
	  "INSERT OR REPLACE INTO engine_move (uid, asked_at, pod, pool, share, slot, is_wake, why, tick, term, "
	  "outcome,"
	  " took, ended_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	  false, "engine_move" },
	/* Sums of hours that go on are told again with each batch. */
	{ X "SELECT cost.* FROM x JOIN cost ON " SINCE,
	  "INSERT OR REPLACE INTO cost VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
	  " ?, ?, ?, ?, ?, ?)",
	  false, NULL },
	{ X "SELECT id, holder, cost_center, product, environment, workload_type FROM cost_label_set WHERE id IN"
	    " (SELECT labels FROM x JOIN cost_label ON " SINCE ")",
	  "INSERT OR REPLACE INTO cost_label_set (id, holder, cost_center, product, environment, workload_type)"
	  " VALUES (?, ?, ?, ?, ?, ?)",
	  false, NULL },
	{ X "SELECT hour, pool, labels, gpu_ms, micro_dollars FROM x JOIN cost_label ON " SINCE,
	  "INSERT OR REPLACE INTO cost_label (hour, pool, labels, gpu_ms, micro_dollars) VALUES (?, ?, ?, ?, ?)", false,
	  NULL },
	{ X
	  "SELECT level.* FROM x JOIN level ON x.is_all <> 0 OR number >= (x.since - 1) / CASE width WHEN 0 THEN 300000"
	  " ELSE 3600000 END",
	  "INSERT OR REPLACE INTO level VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
	  " ?, ?, ?, ?, ?)",
	  false, NULL },
	{ X "SELECT lead_time.* FROM x JOIN lead_time ON x.is_all <> 0 OR day >= (x.since - 1) / 86400000",
	  "INSERT OR REPLACE INTO lead_time VALUES (?, ?, ?, ?, ?, ?, ?, ?)", false, NULL },
	{ X "SELECT quota_hour.* FROM x JOIN quota_hour ON " SINCE,
	  "INSERT OR REPLACE INTO quota_hour VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", false, NULL },
	{ X "SELECT uid, kind, gpu_holding.since, until, namespace, pod, node, gpus_milli, used_most_milli FROM x JOIN"
	    " gpu_holding ON x.is_all <> 0 OR until >= x.since",
	  "INSERT OR REPLACE INTO gpu_holding (uid, kind, since, until, namespace, pod, node, gpus_milli,"
	  " used_most_milli) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
	  false, NULL },
};
const size_t replica_section_count = sizeof replica_sections / sizeof *replica_sections;

uint32_t replica_head_crc(const struct replica_head *head, const void *packed, size_t len)
{
	const size_t from = offsetof(struct replica_head, tables);

	return crc32_bytes(crc32_bytes(0, (const char *)head + from, sizeof *head - from), packed, len);
}

/* --- both sides --- */

struct history *replica_open(const char *path, struct error *e)
{
	CLEANUP(buf_release) struct buf aside = { 0 };
	struct history *h = history_open_copy(path, e);

	if (h || e->kind != ERROR_CONFLICT || !history_set_aside(path, &aside, e))
		return h;
	return history_open_copy(path, e);
}

bool replica_give_way(struct history *copy, const struct error *why, struct buf *aside, struct error *e)
{
	CLEANUP(buf_release) struct buf path = { 0 };

	buf_text(&path, db_path(copy->db));
	history_close(copy);
	if (why->kind != ERROR_CONFLICT && why->kind != ERROR_INVALID)
		return true;
	return history_set_aside(path.text, aside, e);
}

/* Whether all the time of one that was set aside is in the copy; what cannot be read is not known to be. */
static bool is_covered(const char *path, const struct history_span *by, millis *length)
{
	struct history_span span;
	struct error e;
	struct history *h = history_open_sums(path, &e);
	bool is = h && history_span(h, &span, &e) && span.from >= by->from && span.to <= by->to;

	*length = is ? span.to - span.from : 0;
	history_close(h);
	return is;
}

bool replica_drop_aside(struct history *copy, struct buf *dropped, struct error *e)
{
	enum { KEPT = 3 };
	struct history_span span;
	millis length, shortest = 0;
	int count = 0, chosen = 0;

	if (!history_span(copy, &span, e))
		return false;
	for (int i = 1; i <= ASIDE_MOST; i++) {
		CLEANUP(buf_release) struct buf name = { 0 };

		buf_printf(&name, "%s.%d", db_path(copy->db), i);
		if (access(name.text, F_OK))
			continue;
		count++;
		if (!is_covered(name.text, &span, &length) || (chosen && length >= shortest))
			continue;
		chosen = i;
		shortest = length;
	}
	if (count <= KEPT || !chosen)
		return true;
	size_t at = dropped->len;
	buf_printf(dropped, "%s.%d", db_path(copy->db), chosen);
	history_remove_file(dropped->text + at);
	return true;
}

bool replica_recall(struct history *copy, bool *more, struct error *e)
{
	struct replica_tail head;
	bool ok = replica_head(copy, &head, e);

	*more = false;
	for (int i = 1; ok && !*more && i <= ASIDE_MOST; i++) {
		CLEANUP(buf_release) struct buf name = { 0 }, batch = { 0 };
		struct error why;

		buf_printf(&name, "%s.%d", db_path(copy->db), i);
		if (access(name.text, F_OK))
			continue;
		struct history *h = history_open(name.text, &why);
		if (h && replica_export(h, &head, BATCH_BYTES, &batch, &why) && batch.len) {
			ok = replica_import(copy, batch.text, batch.len, e);
			*more = ok;
		}
		history_close(h);
	}
	return ok;
}

static bool tick_crc(struct history *h, int64_t tick, uint32_t *crc, bool *there, struct error *e)
{
	struct statement *s = db_prepare(
		h->db, "SELECT t.at, d.pool, d.input, d.plan FROM tick t LEFT JOIN decision d ON d.tick = t.id"
		       " WHERE t.id = ? ORDER BY d.pool");
	bool ok;

	*crc = 0;
	*there = false;
	db_bind_int(s, tick);
	while (db_next(s, &ok, e)) {
		*there = true;
		const int64_t numbers[] = { db_column_int(s, 0), db_column_int(s, 1) };
		*crc = crc32_bytes(*crc, numbers, sizeof numbers);
		for (int column = 2; column < 4; column++) {
			size_t len;
			const void *bytes = db_column_bytes(s, column, &len);
			*crc = crc32_bytes(*crc, bytes, len);
		}
	}
	return ok;
}

static bool replica_end(struct history *h, enum replica_way way, struct replica_tail *out, struct error *e)
{
	struct history_span span;
	bool there;

	*out = (struct replica_tail){ .tick = -1 };
	if (!history_span(h, &span, e))
		return false;
	if (span.last_tick < span.first_tick)
		return true;
	int64_t tick = way == REPLICA_PAST ? span.first_tick : span.last_tick;
	if (!tick_crc(h, tick, &out->crc, &there, e))
		return false;
	out->tick = tick;
	out->way = way;
	return true;
}

bool replica_tail(struct history *h, struct replica_tail *out, struct error *e)
{
	return replica_end(h, REPLICA_NEXT, out, e);
}

bool replica_head(struct history *h, struct replica_tail *out, struct error *e)
{
	return replica_end(h, REPLICA_PAST, out, e);
}

bool replica_was_thinned(struct history *h)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const char *from = "";
	struct error ignored;

	return history_fact(h, "kept_from", &a, &from, &ignored) && *from;
}

/* --- the leader --- */

/* What a batch is about: the parameters of the questions. */
struct extent {
	int64_t first, last, use_from;
	millis since;
	bool is_all, is_start;
};

static bool check_at(struct history *h, const struct replica_tail *at, struct error *e)
{
	struct history_span span;
	uint32_t crc;
	bool there;

	if (at->tick < 0)
		return true;
	if (!history_span(h, &span, e) || !tick_crc(h, at->tick, &crc, &there, e))
		return false;
	/* A copy may reach further back than this. */
	if (at->way == REPLICA_PAST && at->tick <= span.first_tick)
		return true;
	return (there && crc == at->crc) ||
	       error_set(e, ERROR_CONFLICT,
			 "%s: a copy with tick %lld at its end is not one of this history%s; start it over",
			 db_path(h->db), (long long)at->tick, there ? "" : ", or that tick was dropped");
}

/* As many ticks as fit, and one in any case. */
static bool find_last(struct history *h, int64_t first, int64_t most, size_t max_bytes, int64_t *last, struct error *e)
{
	struct statement *s = db_prepare(h->db, "SELECT tick, sum(length(input) + length(plan)) FROM decision"
						" WHERE tick BETWEEN ? AND ? GROUP BY tick ORDER BY tick");
	size_t bytes = 0;
	bool ok = true;

	*last = first;
	DB_BIND(s, DB_I(first), DB_I(most));
	while (*last - first < TICKS_MOST && db_next(s, &ok, e)) {
		bytes += (size_t)db_column_int(s, 1);
		if (bytes > max_bytes && db_column_int(s, 0) > first)
			break;
		*last = db_column_int(s, 0);
	}
	db_reset(s);
	return ok;
}

/* The last tick that the memory before it is known of: from there on a copy can go on deciding. */
static bool find_newest(struct history *h, const struct history_span *span, int64_t *first, struct error *e)
{
	struct statement *s =
		DB_QUERY(h->db, "SELECT coalesce(max(tick), ?1) FROM checkpoint WHERE tick BETWEEN ?1 AND ?2",
			 DB_I(span->first_tick), DB_I(span->last_tick));

	return db_read_ints(s, first, 1, NULL, e);
}

static bool bytes_of(struct history *h, int64_t first, int64_t last, size_t *bytes, struct error *e)
{
	struct statement *s = DB_QUERY(h->db,
				       "SELECT coalesce(sum(length(input) + length(plan)), 0) FROM decision"
				       " WHERE tick BETWEEN ? AND ?",
				       DB_I(first), DB_I(last));
	int64_t sum = 0;

	if (!db_read_ints(s, &sum, 1, NULL, e))
		return false;
	*bytes += (size_t)sum;
	return true;
}

/* Whole hours of ticks, which keyframes begin, so that what is there can be read while the rest is on its way. */
static bool find_past(struct history *h, const struct history_span *span, size_t max_bytes, struct extent *x,
		      struct error *e)
{
	size_t bytes = 0;
	int64_t first = x->last - x->last % KEYFRAME_EVERY, end = x->last;

	do {
		x->first = first > span->first_tick ? first : span->first_tick;
		first = x->first - KEYFRAME_EVERY;
		if (!bytes_of(h, x->first, end, &bytes, e))
			return false;
		end = x->first - 1;
	} while (x->first > span->first_tick && bytes < max_bytes && x->last - first < TICKS_MOST);
	x->since = INT64_MAX; /* what goes by time came first */
	return true;
}

static bool find_extent(struct history *h, const struct replica_tail *at, size_t max_bytes, struct extent *x,
			bool *is_empty, struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct history_stretch stretch;
	struct history_span span;
	bool is_past = at->way == REPLICA_PAST, ok;

	if (!history_span(h, &span, e))
		return false;
	*is_empty = span.last_tick < span.first_tick ||
		    (is_past ? at->tick <= span.first_tick : at->tick == span.last_tick);
	if (*is_empty)
		return true;
	*x = (struct extent){ .first = at->tick < 0 ? span.first_tick : at->tick + 1,
			      .last = at->tick - 1,
			      .is_all = at->tick < 0 };
	if (is_past)
		ok = find_past(h, &span, max_bytes, x, e);
	else
		ok = (at->way != REPLICA_NEWEST || find_newest(h, &span, &x->first, e)) &&
		     history_tick_end(h, x->is_all ? x->first : at->tick, &x->since, e) &&
		     find_last(h, x->first, span.last_tick, max_bytes, &x->last, e);
	if (!ok || !history_stretch_at(h, x->first, &a, &stretch, e))
		return false;
	x->use_from = x->is_all || is_past ? stretch.from : x->first;
	x->is_start = x->first == span.first_tick;
	return true;
}

static void put_column(struct buf *out, const struct statement *s, int column)
{
	struct db_value v = db_column(s, column);
	char kind = (char)v.kind;
	uint64_t size = v.len;

	buf_append(out, &kind, 1);
	if (v.kind == DB_INT)
		buf_append(out, &v.number, sizeof v.number);
	if (v.kind != DB_TEXT && v.kind != DB_BYTES)
		return;
	buf_append(out, &size, sizeof size);
	buf_append(out, v.bytes, v.len);
}

/* A one before each row, a zero after the last. */
static bool put_section(struct history *h, const struct section *section, const struct extent *x, struct buf *out,
			struct error *e)
{
	bool is_there = true, ok;

	if (section->table && !db_has_table(h->db, section->table, &is_there, e))
		return false;
	if (!is_there) {
		buf_append(out, "", 1);
		return true;
	}
	struct statement *s = DB_QUERY(h->db, section->select, DB_I(x->first), DB_I(x->last), DB_I(x->use_from),
				       DB_I(x->since), DB_I(x->is_all), DB_I(x->is_start));

	while (db_next(s, &ok, e)) {
		buf_append(out, "\1", 1);
		for (int i = 0; i < db_columns(s); i++)
			put_column(out, s, i);
	}
	buf_append(out, "", 1);
	return ok;
}

bool replica_export(struct history *h, const struct replica_tail *at, size_t max_bytes, struct buf *out,
		    struct error *e)
{
	CLEANUP(buf_release) struct buf raw = { .cap = REPLICA_RAW_MOST };
	struct replica_head head = { .magic = REPLICA_MAGIC,
				     .tables = (uint32_t)history_schema.count,
				     .layout = record_layout() };
	struct extent x;
	bool is_empty;

	if (!history_commit(h, e) || !check_at(h, at, e) || !find_extent(h, at, max_bytes, &x, &is_empty, e))
		return false;
	if (is_empty)
		return true;
	for (size_t i = 0; i < replica_section_count; i++)
		if (!put_section(h, &replica_sections[i], &x, &raw, e))
			return false;
	if (!buf_ok(&raw))
		return error_set(e, ERROR_INTERNAL, "%s: a batch for a copy is too large", db_path(h->db));
	head.first = x.first;
	head.last = x.last;
	head.place = x.is_all ? BATCH_BEGINS : at->way == REPLICA_PAST ? BATCH_PRECEDES : BATCH_FOLLOWS;
	head.size = raw.len;
	CLEANUP(buf_release) struct buf packed = { .cap = REPLICA_RAW_MOST };
	deflate_bytes(raw.text, raw.len, &packed);
	head.crc = replica_head_crc(&head, packed.text, packed.len);
	buf_append(out, &head, sizeof head);
	buf_append(out, packed.text, packed.len);
	return true;
}

/* From one history to another, without a network between them. */

bool replica_copy(struct history *from, struct history *to, void (*tell)(void *user, int64_t ticks), void *user,
		  struct error *e)
{
	struct history_span span;

	if (!history_span(from, &span, e))
		return false;
	for (;;) {
		CLEANUP(buf_release) struct buf batch = { .cap = (size_t)512 << 20 };
		struct replica_tail tail;

		if (!replica_tail(to, &tail, e))
			return false;
		/* A follower's copy may be behind what the leader's brought here. */
		if (tail.tick > span.last_tick)
			return true;
		if (!replica_export(from, &tail, BATCH_BYTES, &batch, e))
			return false;
		if (!batch.len)
			return true;
		if (!replica_import(to, batch.text, batch.len, e) || !replica_tail(to, &tail, e))
			return false;
		tell(user, tail.tick);
	}
}

bool replica_renew_fleet(struct history *to, struct error *e)
{
	return !db_is_address(db_path(to->db)) || db_renew_fleet(to->db, e);
}

/* The follower's side. */

struct batch {
	struct history *history;
	struct arena arena;
	struct replica_head head;
	const char *at, *end; /* of the rows that are not read yet */
	bool has_names;
};

static bool damaged(const struct batch *b, struct error *e)
{
	return error_set(e, ERROR_UNAVAILABLE, "%s: a batch from the leader is damaged; it will be asked for again",
			 db_path(b->history->db));
}

static bool check_head(const struct batch *b, const void *bytes, size_t len, struct error *e)
{
	if (len < sizeof b->head || memcmp(bytes, REPLICA_MAGIC, sizeof b->head.magic) != 0)
		return damaged(b, e);
	if (b->head.tables != (uint32_t)history_schema.count || b->head.layout != record_layout())
		return error_set(e, ERROR_NOT_FOUND,
				 "%s: the leader is of another version of preheat, whose history this one cannot copy",
				 db_path(b->history->db));
	if (b->head.size > REPLICA_RAW_MOST || b->head.first < 0 || b->head.last < b->head.first)
		return damaged(b, e);
	return true;
}

static bool unpack(struct batch *b, const void *bytes, size_t len, struct error *e)
{
	const char *packed = (const char *)bytes + sizeof b->head;
	size_t packed_len = len - sizeof b->head, size = (size_t)b->head.size;
	struct error why;

	if (replica_head_crc(&b->head, packed, packed_len) != b->head.crc)
		return damaged(b, e);
	char *rows = arena_alloc(&b->arena, size + 1, 1);
	if (!inflate_bytes(packed, packed_len, rows, size, &why))
		return damaged(b, e);
	b->at = rows;
	b->end = rows + size;
	return true;
}

static bool take(struct batch *b, void *out, size_t len)
{
	if ((size_t)(b->end - b->at) < len)
		return false;
	memcpy(out, b->at, len);
	b->at += len;
	return true;
}

/* Texts are bound with a NUL behind them, which the rows have not. */
static bool bind_column(struct batch *b, struct statement *s)
{
	struct db_value v = { .kind = DB_NULL };
	uint64_t len;
	char kind;

	if (!take(b, &kind, 1) || kind < DB_NULL || kind > DB_BYTES)
		return false;
	v.kind = (enum db_kind)kind;
	if (kind == DB_INT && !take(b, &v.number, sizeof v.number))
		return false;
	if (kind == DB_TEXT || kind == DB_BYTES) {
		if (!take(b, &len, sizeof len) || len > (uint64_t)(b->end - b->at))
			return false;
		v.bytes = kind == DB_TEXT ? arena_strdup(&b->arena, b->at, (size_t)len) : b->at;
		v.len = (size_t)len;
		b->at += len;
	}
	db_bind(s, &v, 1);
	return true;
}

static bool insert_section(struct batch *b, const struct section *section, struct error *e)
{
	char more;

	for (;;) {
		if (!take(b, &more, 1))
			return damaged(b, e);
		if (!more)
			return true;
		b->has_names |= section->is_names;
		struct statement *s = db_prepare(b->history->db, section->insert);
		for (const char *c = section->insert; *c; c++)
			if (*c == '?' && !bind_column(b, s))
				return damaged(b, e);
		if (!db_run(s, e))
			return false;
	}
}

/* Sums of hours whose ticks came: the leader has dropped those, and another history has them still. */
static bool drop_sums(struct batch *b, struct error *e)
{
	millis at;

	return history_tick_end(b->history, b->head.first, &at, e) &&
	       db_run(DB_QUERY(b->history->db, "DELETE FROM rollup WHERE hour > ?", DB_I(at / HOUR)), e);
}

static bool insert_all(struct batch *b, struct error *e)
{
	bool ok = true;

	if (!history_begin(b->history, e))
		return false;
	for (size_t i = 0; ok && i < replica_section_count; i++)
		ok = insert_section(b, &replica_sections[i], e);
	if (!ok || (b->head.place == BATCH_PRECEDES && !drop_sums(b, e))) {
		history_undo(b->history);
		return false;
	}
	return history_commit(b->history, e) && (!b->has_names || history_load_pools(b->history, e));
}

static bool import_past(struct batch *b, struct error *e)
{
	struct history_span span;

	if (!history_span(b->history, &span, e))
		return false;
	if (span.last_tick >= 0 && b->head.last >= span.first_tick)
		return true;
	if (b->head.last + 1 != span.first_tick)
		return error_set(e, ERROR_UNAVAILABLE,
				 "%s: begins at tick %lld, a batch of the time before ends at %lld",
				 db_path(b->history->db), (long long)span.first_tick, (long long)b->head.last);
	return insert_all(b, e);
}

static bool import(struct batch *b, const void *bytes, size_t len, struct error *e)
{
	struct replica_tail tail;

	if (!check_head(b, bytes, len, e) || !unpack(b, bytes, len, e) || !replica_tail(b->history, &tail, e))
		return false;
	if (b->head.place == BATCH_PRECEDES)
		return import_past(b, e);
	if (b->head.last <= tail.tick)
		return true;
	if (tail.tick < 0 ? b->head.place != BATCH_BEGINS : b->head.first != tail.tick + 1)
		return error_set(e, ERROR_CONFLICT, "%s: ends at tick %lld, a batch from the leader begins at %lld",
				 db_path(b->history->db), (long long)tail.tick, (long long)b->head.first);
	return insert_all(b, e);
}

bool replica_import(struct history *h, const void *bytes, size_t len, struct error *e)
{
	struct batch b = { .history = h };

	if (len >= sizeof b.head)
		memcpy(&b.head, bytes, sizeof b.head);
	bool ok = import(&b, bytes, len, e);
	arena_release(&b.arena);
	return ok;
}
