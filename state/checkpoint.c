/* The policy's memory at some ticks, so that a replay need not start at the first. */
#include "base/gzip.h"
#include "state/history_file.h"

enum { CHECKPOINT_MOST = 256 << 20 };

bool history_wants_checkpoint(const struct history *h)
{
	return h->is_checkpoint_due || (h->next_tick > 0 && h->last_at - h->last_checkpoint_at >= h->checkpoint_every);
}

/* Of those older than a day, the first of each day stays. */
static bool thin(struct history *h, millis now, struct error *e)
{
	struct statement *s = db_prepare(h->db, "DELETE FROM checkpoint WHERE at < ?1 AND EXISTS (SELECT 1 FROM"
						" checkpoint o WHERE o.tick < checkpoint.tick"
						" AND o.at / ?2 = checkpoint.at / ?2)");

	db_bind_int(s, now - DAY);
	db_bind_int(s, DAY);
	return db_run(s, e);
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
	db_bind_int(q, h->next_tick);
	db_bind_int(q, h->last_at);
	db_bind_int(q, (int64_t)memory->len);
	db_bind_int(q, crc32_bytes(0, memory->text, memory->len));
	db_bind_bytes(q, packed.text, packed.len);
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
	struct statement *s = db_prepare(h->db, "SELECT tick, size, crc, bytes FROM checkpoint WHERE tick <= ?"
						" ORDER BY tick DESC LIMIT 1");
	bool row;

	db_bind_int(s, tick);
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
		db_prepare(h->db, "SELECT tick, crc FROM checkpoint WHERE tick >= ? ORDER BY tick LIMIT 1");

	db_bind_int(s, tick);
	if (!db_step(s, there, e))
		return false;
	*at_tick = *there ? db_column_int(s, 0) : 0;
	*crc = *there ? (uint32_t)db_column_int(s, 1) : 0;
	db_reset(s);
	return true;
}
