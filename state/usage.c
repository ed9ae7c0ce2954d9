#include "state/usage.h"

#include "controller/policy/fields.h"
#include "state/history_file.h"

#include <string.h>

/* --- until the transaction ends --- */

static const char *copy(struct history *h, const char *text)
{
	return arena_strdup(&h->cost_texts, text, strlen(text));
}

void history_quota(struct history *h, millis at, millis elapsed, const struct quota_seen *q)
{
	struct quota_hour entry = { .hour = (at - 1) / HOUR,
				    .namespace = copy(h, q->namespace),
				    .name = copy(h, q->name),
				    .resource = copy(h, q->resource),
				    .watched_ms = elapsed,
				    .hard = q->hard,
				    .used_most = q->used,
				    .hard_gpu_ms = q->hard * elapsed,
				    .used_gpu_ms = q->used * elapsed };

	buf_append(&h->quotas, &entry, sizeof entry);
}

void history_holding(struct history *h, const struct holding *holding)
{
	struct holding entry = *holding;

	entry.uid = copy(h, entry.uid);
	entry.namespace = copy(h, entry.namespace);
	entry.pod = copy(h, entry.pod);
	entry.node = copy(h, entry.node);
	buf_append(&h->holdings, &entry, sizeof entry);
}

void history_holding_until(struct history *h, const char *uid, enum holding_kind kind, millis since, millis until)
{
	struct holding entry = { .uid = copy(h, uid), .kind = kind, .since = since, .until = until };

	buf_append(&h->holdings, &entry, sizeof entry);
}

static bool save_end(struct history *h, const struct holding *held, struct error *e)
{
	return db_run(DB_QUERY(h->db, "UPDATE gpu_holding SET until = ? WHERE uid = ? AND kind = ? AND since = ?",
			       DB_I(held->until), DB_T(held->uid), DB_I(held->kind), DB_I(held->since)),
		      e);
}

static bool save_quota(struct history *h, const struct quota_hour *q, struct error *e)
{
	return db_run(DB_QUERY(h->db,
			       "INSERT INTO quota_hour VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
			       " watched_ms = watched_ms + excluded.watched_ms, hard = excluded.hard,"
			       " used_most = max(used_most, excluded.used_most),"
			       " hard_gpu_ms = hard_gpu_ms + excluded.hard_gpu_ms,"
			       " used_gpu_ms = used_gpu_ms + excluded.used_gpu_ms",
			       DB_I(q->hour), DB_T(q->namespace), DB_T(q->name), DB_T(q->resource), DB_I(q->watched_ms),
			       DB_I(q->hard), DB_I(q->used_most), DB_I(q->hard_gpu_ms), DB_I(q->used_gpu_ms)),
		      e);
}

static bool save_holding(struct history *h, const struct holding *held, struct error *e)
{
	return db_run(DB_QUERY(h->db,
			       "INSERT OR REPLACE INTO gpu_holding (uid, kind, since, until, namespace,"
			       " pod, node, gpus_milli, used_most_milli) VALUES (?, ?, ?, ?, ?, ?, ?,"
			       " ?, ?)",
			       DB_T(held->uid), DB_I(held->kind), DB_I(held->since), DB_I(held->until),
			       DB_T(held->namespace), DB_T(held->pod), DB_T(held->node), DB_I(held->gpus_milli),
			       DB_I(held->used_most_milli)),
		      e);
}

bool history_save_usage(struct history *h, struct error *e)
{
	const struct quota_hour *quotas = (const void *)h->quotas.text;
	const struct holding *holdings = (const void *)h->holdings.text;

	for (size_t i = 0; i < h->quotas.len / sizeof *quotas; i++)
		if (!save_quota(h, &quotas[i], e))
			return false;
	for (size_t i = 0; i < h->holdings.len / sizeof *holdings; i++)
		if (!(holdings[i].pod ? save_holding : save_end)(h, &holdings[i], e))
			return false;
	return true;
}

/* --- reading --- */

const char *holding_kind_name(enum holding_kind kind)
{
	static const char *const names[HOLDING_KIND_COUNT] = { "unused", "finished", "oversized" };

	return names[kind];
}

static bool take_quota(struct rows *r, const struct statement *s, struct error *e)
{
	struct quota_hour q = { .hour = db_column_int(s, 0),
				.watched_ms = db_column_int(s, 4),
				.hard = db_column_int(s, 5),
				.used_most = db_column_int(s, 6),
				.hard_gpu_ms = db_column_int(s, 7),
				.used_gpu_ms = db_column_int(s, 8) };
	const int64_t sums[] = { q.watched_ms, q.hard, q.used_most, q.hard_gpu_ms, q.used_gpu_ms };

	if (!rows_check_hour(r, q.hour, sums, sizeof sums / sizeof *sums, e))
		return false;
	q.namespace = db_column_copy(s, 1, r->arena);
	q.name = db_column_copy(s, 2, r->arena);
	q.resource = db_column_copy(s, 3, r->arena);
	buf_append(&r->found, &q, sizeof q);
	return true;
}

_Static_assert(HOLDING_OVERSIZED == 2, "as the question below has it");

static bool take_holding(struct rows *r, const struct statement *s, struct error *e)
{
	struct holding held = { .since = db_column_int(s, 2),
				.until = db_column_int(s, 3),
				.gpus_milli = db_column_int(s, 7),
				.used_most_milli = db_column_int(s, 8) };
	const int64_t kind = db_column_int(s, 1), told = held.used_most_milli == ABSENT ? 0 : held.used_most_milli;
	const int64_t numbers[] = { held.since, held.until, held.gpus_milli, told };

	if (!rows_check_hour(r, held.since / HOUR, numbers, sizeof numbers / sizeof *numbers, e))
		return false;
	if (kind < 0 || kind >= HOLDING_KIND_COUNT || held.until < held.since)
		return error_set(e, ERROR_INVALID, "%s: damaged: a pod that held GPUs in no way that is known",
				 db_path(r->history->db));
	held.kind = (enum holding_kind)kind;
	held.uid = db_column_copy(s, 0, r->arena);
	held.namespace = db_column_copy(s, 4, r->arena);
	held.pod = db_column_copy(s, 5, r->arena);
	held.node = db_column_copy(s, 6, r->arena);
	buf_append(&r->found, &held, sizeof held);
	return true;
}

static bool read_usage(struct rows *r, const char *sql, const struct usage_filter *f, rows_take_fn *take,
		       struct error *e)
{
	if (!r->history->has_cost)
		return true;
	struct statement *s = DB_QUERY(r->history->db, sql, DB_I(f->from), DB_I(f->to), DB_T(f->namespace));
	return rows_read(r, s, take, e);
}

bool history_quota_hours(struct history *h, const struct usage_filter *f, struct arena *a, struct quota_hour **hours,
			 size_t *count, struct error *e)
{
	struct rows r = { .history = h, .arena = a };

	if (!read_usage(&r,
			"SELECT * FROM quota_hour WHERE hour >= ?1 / 3600000 AND hour * 3600000 < ?2 AND"
			" (CAST(?3 AS TEXT) IS NULL OR namespace = ?3) ORDER BY hour, namespace, name, resource",
			f, take_quota, e))
		return false;
	*hours = rows_array(&r.found, sizeof **hours, a, count);
	return true;
}

bool history_holdings(struct history *h, const struct usage_filter *f, struct arena *a, struct holding **holdings,
		      size_t *count, struct error *e)
{
	struct rows r = { .history = h, .arena = a };

	if (!read_usage(&r,
			"SELECT uid, kind, since, until, namespace, pod, node, gpus_milli, used_most_milli FROM"
			" gpu_holding WHERE until >= ?1 AND since < ?2 AND (CAST(?3 AS TEXT) IS NULL OR namespace = "
			"?3) AND (kind <> 2 OR"
			" (used_most_milli > 0 AND used_most_milli < gpus_milli))"
			" ORDER BY (min(until, ?2) - max(since, ?1)) * gpus_milli DESC, namespace, pod, kind, since",
			f, take_holding, e))
		return false;
	*holdings = rows_array(&r.found, sizeof **holdings, a, count);
	return true;
}
