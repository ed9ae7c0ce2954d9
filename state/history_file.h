/* What the files of this folder share about an open history; nobody else includes this. */
#pragma once
#include "state/db.h"
#include "state/history.h"

enum {
	KEYFRAME_EVERY = 240, /* ticks: an hour of 15 s; what a jump has to read */
	CONCERNS_MOST = 62,   /* positions of groups from here on share the last bit */
};

/* Where reading or writing of one pool stands: the parts of `tick`. */
struct pool_position {
	struct record_state part[RECORD_PART_COUNT];
	int64_t tick; /* < 0: nowhere */
	bool is_plan_known;
};

struct history {
	struct db *db;
	struct history_pool *pools;
	struct pool_position *positions; /* one per pool */
	size_t pool_count;
	struct arena arena; /* names of pools and groups */

	/* writing */
	int64_t ticks_per_commit, uncommitted, next_tick;
	millis checkpoint_every, last_at, last_checkpoint_at;
	bool is_in_transaction, is_keyframe_due;
	struct buf input, plan;
};

/* Opens the transaction that a write needs. */
bool history_begin(struct history *h, struct error *e) MUST_USE;
bool history_commit(struct history *h, struct error *e) MUST_USE;

/* The numbers that stand beside a plan. */
struct plan_marks {
	int64_t held_by, asked, concerns;
	bool has_asked;
};

struct plan_marks plan_marks(const struct pool_plan *p);
