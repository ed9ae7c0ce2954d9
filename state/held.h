/* How long a limit held a pool: by the ticks that are still there. */
#pragma once
#include "state/history.h"

struct held_time {
	size_t pool; /* index of history_pools() */
	enum limit limit;
	int64_t ticks;
	millis length;
};

struct held_ticks {
	int64_t first, last; /* both included */
};

/* By pool and limit, in the arena; LIMIT_NONE is left out. ERROR_INVALID for rows that cannot be. */
bool held_read(struct history *h, struct held_ticks ticks, struct arena *a, struct held_time **out, size_t *count,
	       struct error *e) MUST_USE;
