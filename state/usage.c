#include "state/usage.h"
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

static bool save_quota(struct history *h, const struct quota_hour *q, struct error *e)
{
	struct statement *s =
		db_prepare(h->db, "INSERT INTO quota_hour VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
				  " watched_ms = watched_ms + excluded.watched_ms, hard = excluded.hard,"
				  " used_most = max(used_most, excluded.used_most),"
				  " hard_gpu_ms = hard_gpu_ms + excluded.hard_gpu_ms,"
				  " used_gpu_ms = used_gpu_ms + excluded.used_gpu_ms");

	db_bind_int(s, q->hour);
	db_bind_text(s, q->namespace);
	db_bind_text(s, q->name);
	db_bind_text(s, q->resource);
	db_bind_int(s, q->watched_ms);
	db_bind_int(s, q->hard);
	db_bind_int(s, q->used_most);
	db_bind_int(s, q->hard_gpu_ms);
	db_bind_int(s, q->used_gpu_ms);
	return db_run(s, e);
}

static bool save_holding(struct history *h, const struct holding *held, struct error *e)
{
	struct statement *s =
		db_prepare(h->db, "INSERT OR REPLACE INTO gpu_holding (uid, kind, since, until, namespace,"
				  " pod, node, gpus_milli, used_most_milli) VALUES (?, ?, ?, ?, ?, ?, ?,"
				  " ?, ?)");

	db_bind_text(s, held->uid);
	db_bind_int(s, held->kind);
	db_bind_int(s, held->since);
	db_bind_int(s, held->until);
	db_bind_text(s, held->namespace);
	db_bind_text(s, held->pod);
	db_bind_text(s, held->node);
	db_bind_int(s, held->gpus_milli);
	db_bind_int(s, held->used_most_milli);
	return db_run(s, e);
}

bool history_save_usage(struct history *h, struct error *e)
{
	const struct quota_hour *quotas = (const void *)h->quotas.text;
	const struct holding *holdings = (const void *)h->holdings.text;

	for (size_t i = 0; i < h->quotas.len / sizeof *quotas; i++)
		if (!save_quota(h, &quotas[i], e))
			return false;
	for (size_t i = 0; i < h->holdings.len / sizeof *holdings; i++)
		if (!save_holding(h, &holdings[i], e))
			return false;
	return true;
}

/* --- reading --- */

const char *holding_kind_name(enum holding_kind kind)
{
	static const char *const names[HOLDING_KIND_COUNT] = { "unused", "finished", "oversized" };

	return names[kind];
}

static const char *text_of(const struct statement *s, int column, struct arena *a)
{
	const char *text = db_column_text(s, column);

	return arena_strdup(a, text, strlen(text));
}

static struct quota_hour quota_of(const struct statement *s, struct arena *a)
{
	return (struct quota_hour){ .hour = db_column_int(s, 0),
				    .namespace = text_of(s, 1, a),
				    .name = text_of(s, 2, a),
				    .resource = text_of(s, 3, a),
				    .watched_ms = db_column_int(s, 4),
				    .hard = db_column_int(s, 5),
				    .used_most = db_column_int(s, 6),
				    .hard_gpu_ms = db_column_int(s, 7),
				    .used_gpu_ms = db_column_int(s, 8) };
}

static struct statement *ask(struct history *h, const char *sql, int64_t first, int64_t last, const char *namespace)
{
	struct statement *s = db_prepare(h->db, sql);

	db_bind_int(s, first);
	db_bind_int(s, last);
	if (namespace)
		db_bind_text(s, namespace);
	else
		db_bind_null(s);
	return s;
}

static void *as_array(const struct buf *found, struct arena *a)
{
	char *items = arena_alloc(a, found->len + 1, 16);

	if (found->len)
		memcpy(items, found->text, found->len);
	return items;
}

bool history_quota_hours(struct history *h, int64_t first, int64_t last, const char *namespace, struct arena *a,
			 struct quota_hour **hours, size_t *count, struct error *e)
{
	CLEANUP(buf_release) struct buf found = { 0 };
	bool row = h->has_cost;
	struct statement *s = row ? ask(h,
					"SELECT * FROM quota_hour WHERE hour BETWEEN ?1 AND ?2 AND"
					" (?3 IS NULL OR namespace = ?3) ORDER BY hour, namespace, name, resource",
					first, last, namespace)
				  : NULL;

	while (row) {
		if (!db_step(s, &row, e))
			return false;
		if (!row)
			break;
		struct quota_hour q = quota_of(s, a);
		buf_append(&found, &q, sizeof q);
	}
	*count = found.len / sizeof **hours;
	*hours = as_array(&found, a);
	return true;
}

static struct holding holding_of(const struct statement *s, struct arena *a)
{
	return (struct holding){ .uid = text_of(s, 0, a),
				 .kind = (enum holding_kind)db_column_int(s, 1),
				 .since = db_column_int(s, 2),
				 .until = db_column_int(s, 3),
				 .namespace = text_of(s, 4, a),
				 .pod = text_of(s, 5, a),
				 .node = text_of(s, 6, a),
				 .gpus_milli = db_column_int(s, 7),
				 .used_most_milli = db_column_int(s, 8) };
}

bool history_holdings(struct history *h, millis from, millis to, const char *namespace, struct arena *a,
		      struct holding **holdings, size_t *count, struct error *e)
{
	CLEANUP(buf_release) struct buf found = { 0 };
	bool row = h->has_cost;
	struct statement *s =
		row ? ask(h,
			  "SELECT uid, kind, since, until, namespace, pod, node, gpus_milli, used_most_milli FROM"
			  " gpu_holding WHERE until >= ?1 AND since < ?2 AND (?3 IS NULL OR namespace = ?3)"
			  " ORDER BY (min(until, ?2) - max(since, ?1)) * gpus_milli DESC, namespace, pod, kind, since",
			  from, to, namespace)
		    : NULL;

	while (row) {
		if (!db_step(s, &row, e))
			return false;
		struct holding held = row ? holding_of(s, a) : (struct holding){ 0 };
		if (row && held.kind < HOLDING_KIND_COUNT)
			buf_append(&found, &held, sizeof held);
	}
	*count = found.len / sizeof **holdings;
	*holdings = as_array(&found, a);
	return true;
}
