/* What the files of this folder share about an open history; nobody else includes this. */
#pragma once
#include "state/db.h"
#include "state/history.h"
#include "state/level.h"

enum {
	CONCERNS_MOST = 62, /* positions of groups from here on share the last bit */
	PLACES_MAX = 64,    /* node groups of one pool in one manifest */
};

/* Where the groups of a pool's records stand in pool_group, from tick `from` to before `end`. Zero: not known. */
struct group_places {
	int64_t from, end;
	size_t count;
	uint32_t position[PLACES_MAX];
	bool is_there; /* the pool was in the manifest */
};

/* A pool of the fleet that is written. */
struct fleet_place {
	size_t pool; /* index into history.pools */
	/* Of its rows in history.costs, .cost_labels and .levels: the last, the first, the last of each width; one more
	 * than the index, 0: none. */
	size_t cost, label, level[LEVEL_WIDTH_COUNT];
	struct group_places groups;

	/* What the tick to come costs by its meter, for its levels: costs and levels are one sum. */
	int64_t metered_gpu_ms, metered_dollars;
	bool is_metered;
};

/* Where reading or writing of one pool stands: the parts of `tick`. */
struct pool_position {
	struct record_state part[RECORD_PART_COUNT];
	int64_t tick; /* < 0: nowhere */
	bool is_plan_known;
	struct group_places places; /* of reading */
};

/* By which a reader knows that the file is another, or that a writer came. */
struct history_mark {
	bool is_live; /* a writer's log stands beside it */
	int64_t device, file, size, changed;
	int64_t uses, last_use; /* of manifests */
};

struct history {
	struct db *db;
	struct history_pool *pools;	 /* all that ever were, by number */
	struct pool_position *positions; /* one per pool */
	size_t pool_count;
	struct arena arena; /* names of pools and groups */

	/* writing */
	int64_t ticks_per_commit, uncommitted, next_tick;
	int64_t committed_tick; /* next_tick and last_at as of the last commit */
	millis committed_at;
	millis checkpoint_every, last_at, last_checkpoint_at;
	bool is_in_transaction, is_keyframe_due, is_checkpoint_due;
	int64_t retained_from; /* the piece that retention is at, and how many pools' rows of it have gone */
	size_t retained_pools;
	struct fleet_place *places; /* one per pool of the manifest in force */
	size_t place_count;
	struct buf input, plan;

	/* cost.c, usage.c, level.c, lead_time.c: of the ticks of the transaction */
	struct buf costs, cost_labels, quotas, holdings, levels, lead_times;
	struct arena cost_texts;
	bool has_cost, has_levels, has_drains, has_shares, has_texts, has_choices; /* the file has the tables */
	struct history_mark mark;						   /* of a reader, when it was opened */
	bool is_foreign; /* its records have other fields than ours */
};

/* Bytes of a manifest that a history keeps. */
enum { MANIFEST_MOST = 64 << 20 };

/* Opens the transaction that a write needs. */
bool history_begin(struct history *h, struct error *e) MUST_USE;
bool history_commit(struct history *h, struct error *e) MUST_USE;
/* After a failure: as it was at the last commit, and fit to go on from there. */
void history_undo(struct history *h);
/* A write that is on disk when the second returns true; what came before is committed with the first. */
bool history_begin_durable(struct history *h, struct error *e) MUST_USE;
bool history_run_durable(struct history *h, struct statement *s, struct error *e) MUST_USE;

/* The numbers that stand beside a plan. */
struct plan_marks {
	int64_t held_by, asked, concerns;
	bool has_asked;
};

/* `g`: where the plan's groups stand; p->group_count of them. */
struct plan_marks plan_marks(const struct pool_plan *p, const struct group_places *g);

/* cost.c */
bool history_save_costs(struct history *h, struct error *e) MUST_USE;
void history_forget_costs(struct history *h);
/* level.c: `place` of the fleet in force */
void history_note_level(struct history *h, const struct snapshot *s, const struct plan *p, size_t place);
bool history_save_levels(struct history *h, struct error *e) MUST_USE;
/* lead_time.c */
void history_note_lead_times(struct history *h, const struct snapshot *s, size_t place);
bool history_save_lead_times(struct history *h, struct error *e) MUST_USE;
/* usage.c */
bool history_save_usage(struct history *h, struct error *e) MUST_USE;
/* history_read.c: just this row, which is a keyframe or follows the one read last. */
bool history_read_row(struct history *h, int64_t tick, size_t pool, struct tick_record *out, struct error *e) MUST_USE;
bool history_mark(struct history *h, struct error *e) MUST_USE;
/* A name beside it that nothing has, for what is set aside. */
bool history_free_name(const char *path, struct buf *name, struct error *e) MUST_USE;
void history_remove_file(const char *path); /* and its logs */
/* For appending rows of another history; makes the file, and is ERROR_CONFLICT for one of another version. */
struct history *history_open_copy(const char *path, struct error *e);
bool history_load_pools(struct history *h, struct error *e) MUST_USE;
bool history_find_places(struct history *h, int64_t tick, size_t pool, struct group_places *out,
			 struct error *e) MUST_USE;

/* The tables of a history and how they came to be. */
extern const struct db_schema history_schema;

/* Rows of a question into an array. */

struct rows {
	struct history *history;
	struct arena *arena; /* of texts, and of the array */
	struct buf found;    /* records, one behind the other */
};

/* Appends the row that the statement stands on; false ends it with the error. */
typedef bool rows_take_fn(struct rows *r, const struct statement *s, struct error *e);

/* All rows of a bound statement. What was found is freed when it fails. */
bool rows_read(struct rows *r, struct statement *s, rows_take_fn *take, struct error *e) MUST_USE;
/* What was found, copied into the arena; the buffer is freed. */
void *rows_array(struct buf *found, size_t record_size, struct arena *a, size_t *count);
/* Sums of an hour that can be; else ERROR_INVALID. A right schema says nothing of who wrote the numbers. */
bool rows_check_hour(const struct rows *r, int64_t hour, const int64_t *sums, size_t count, struct error *e) MUST_USE;
