/* From one history to another, without a network between them. */
#include "state/history_file.h"
#include "state/replica.h"

enum { BATCH_BYTES = 4 << 20 };

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
