/* The follower's side. */
#include "state/replica_form.h"

#include "base/deflate.h"
#include "state/schema.h"

#include <string.h>

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
		return error_set(e, ERROR_UNAVAILABLE,
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
static bool bind_long(struct batch *b, struct statement *s, enum db_kind kind)
{
	uint64_t len;

	if (!take(b, &len, sizeof len) || len > (uint64_t)(b->end - b->at))
		return false;
	if (kind == DB_TEXT)
		db_bind_text(s, arena_strdup(&b->arena, b->at, (size_t)len));
	else
		db_bind_bytes(s, b->at, (size_t)len);
	b->at += len;
	return true;
}

static bool bind_column(struct batch *b, struct statement *s)
{
	int64_t number;
	char kind;

	if (!take(b, &kind, 1))
		return false;
	switch (kind) {
	case DB_NULL:
		db_bind_null(s);
		return true;
	case DB_INT:
		if (!take(b, &number, sizeof number))
			return false;
		db_bind_int(s, number);
		return true;
	case DB_TEXT:
	case DB_BYTES:
		return bind_long(b, s, (enum db_kind)kind);
	default:
		return false;
	}
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

static bool insert_all(struct batch *b, struct error *e)
{
	if (!history_begin(b->history, e))
		return false;
	for (size_t i = 0; i < replica_section_count; i++)
		if (!insert_section(b, &replica_sections[i], e)) {
			history_undo(b->history);
			return false;
		}
	return history_commit(b->history, e) && (!b->has_names || history_load_pools(b->history, e));
}

static bool import(struct batch *b, const void *bytes, size_t len, struct error *e)
{
	struct replica_tail tail;

	if (!check_head(b, bytes, len, e) || !unpack(b, bytes, len, e) || !replica_tail(b->history, &tail, e))
		return false;
	if (b->head.last <= tail.tick)
		return true;
	if (tail.tick < 0 ? !b->head.is_all : b->head.first != tail.tick + 1)
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
