/*
 * A history: every decision with all that it depended on, in one SQLite
 * file that can be read while it is written. What production wrote can be
 * simulated and replayed on any other machine.
 *
 * One writer; any number of readers in other processes. Every error names
 * the file and what to do; a damaged record also names pool and tick.
 */
#pragma once
#include "base/arena.h"
#include "state/record.h"

struct history;

struct history_setup {
	const char *path;
	const char *manifest; /* its text, whole */
	const struct fleet_spec *fleet;
	const char *program;	  /* version that writes */
	const char *policy;	  /* what decides: "preheat", or "hpa:target=0.8" */
	const char *run;	  /* what this is a history of: "simulate --seed 1 ..." */
	int64_t ticks_per_commit; /* 1 for a live controller; more is faster, and a crash loses as many */
	millis checkpoint_every;  /* of history_wants_checkpoint */
};

/* A new file; ERROR_CONFLICT when one is there. NULL on failure, and then no file is left. */
struct history *history_create(const struct history_setup *setup, struct error *e);
/*
 * Goes on with a history that is there, wherever its writer was killed, or makes it. The next tick is told by
 * history_next_tick(). A manifest other than the one in force is used from that tick on. NULL on failure:
 * ERROR_CONFLICT for one of another version of the program, ERROR_INVALID for a file that is no history or was decided
 * by something else.
 */
struct history *history_resume(const struct history_setup *setup, struct error *e);
/* Gives the file another name, PATH.1 or the next that is free, which is appended to `name`. Nobody may have it open.
 */
bool history_set_aside(const char *path, struct buf *name, struct error *e) MUST_USE;
/* What all that were set aside beside it take of its disk. */
int64_t history_aside_bytes(const char *path);
/* For reading only. NULL on failure. */
struct history *history_open(const char *path, struct error *e);
/* The same, also of a program whose records have other fields: history_has_records() is false then, and only what does
 * not depend on them can be read (facts, pools, sums of hours). */
struct history *history_open_sums(const char *path, struct error *e);
/* Whether one opened for reading still is what stands at its path, with all of its pools, and read as it must be. If
 * not: close it and open it again. */
bool history_is_current(struct history *h) MUST_USE;
/*
 * A path may also be the address of a cluster's history in PostgreSQL (state/db.h). Without the cluster it is a
 * fleet's: its clusters, in order, in the arena.
 */
bool history_is_fleet(const char *path);
bool history_clusters(const char *address, struct arena *a, const char *const **clusters, size_t *count,
		      struct error *e) MUST_USE;
/* As it may be shown: of an address without user, password and settings. */
void history_show(const char *path, struct buf *out);
bool history_has_records(const struct history *h);
/* For thinning one that nobody else writes; nothing can be appended. NULL on failure. */
struct history *history_edit(const char *path, struct error *e);
/* Commits and closes. A history that failed before is closed too, and keeps what was committed. */
bool history_finish(struct history *h, struct error *e) MUST_USE;
/* Closes without committing. Takes NULL. */
void history_close(struct history *h);

/* --- writing --- */

/* Ticks come in order without gaps in their numbers, and now never goes back; it may jump while nobody wrote. Pools as
 * in the manifest in force. After a failure the history is as before the tick (with several ticks per commit: as at the
 * last commit), and the same number is next. */
bool history_append(struct history *h, const struct snapshot *s, const struct plan *p, struct error *e) MUST_USE;
/* The number that comes next, and when the tick before it ended: what now must not be before. 0 before the first. */
int64_t history_next_tick(const struct history *h);
millis history_last_at(const struct history *h);
/* From the next tick on: another manifest. Pools are known by namespace and name, and their node groups by name; both
 * keep their numbers. Committed when it returns true; unchanged when false. The writer carries the memory over at the
 * same tick (policy_state_migrate), as whoever reads it does. */
bool history_use_manifest(struct history *h, const char *manifest, const struct fleet_spec *fleet,
			  struct error *e) MUST_USE;
/* From the next tick on the policy's memory is a new one; committed when it returns true. A checkpoint is due. */
bool history_begin_anew(struct history *h, struct error *e) MUST_USE;
/* Whether it is time to keep the policy's memory, before the next tick is decided. */
bool history_wants_checkpoint(const struct history *h);
/* The memory as the next tick will find it; committed at once with one tick per commit. Older ones are thinned: all of
 * the last day stay, then one a day. */
bool history_checkpoint(struct history *h, const struct buf *memory, struct error *e) MUST_USE;

/* --- facts --- */

struct history_pool {
	const char *name, *namespace;
	const char *const *groups; /* all that it ever named; those of the first manifest in order of preference */
	size_t group_count;
};

/* Ticks under one manifest. */
struct history_stretch {
	int64_t from, until; /* both included; INT64_MAX: to the end and further */
	const size_t *pools; /* indices of history_pools(), in the order of the manifest */
	size_t pool_count;
};

struct history_span {
	int64_t first_tick, last_tick; /* last < first: no tick yet */
	millis from, to;	       /* ends of the first and the last tick */
};

const char *history_path(const struct history *h);
/* Whether what failed last found no room: a full disk, or a quota that is used up. */
bool history_lacks_room(const struct history *h);
/* All that ever were, those of the first manifest in its order. Lasts until the manifest changes. */
const struct history_pool *history_pools(const struct history *h, size_t *count);
/* Index of a pool by NAME or NAMESPACE/NAME; ERROR_NOT_FOUND tells the pools that there are. */
bool history_find_pool(const struct history *h, const char *name, size_t *pool, struct error *e) MUST_USE;
bool history_span(struct history *h, struct history_span *span, struct error *e) MUST_USE;
/* "program", "policy", "run"; "" when not there. The text lives in the arena. */
bool history_fact(struct history *h, const char *name, struct arena *a, const char **value, struct error *e) MUST_USE;
/* On disk when it returns true. state/replica.c says which names go to followers at once. */
bool history_keep_fact(struct history *h, const char *name, const char *value, struct error *e) MUST_USE;
/* The manifest in force at a tick. */
bool history_manifest(struct history *h, int64_t tick, struct arena *a, const char **text, struct error *e) MUST_USE;

/* The stretch that a tick is in, in the arena; the next tick's, too. */
bool history_stretch_at(struct history *h, int64_t tick, struct arena *a, struct history_stretch *out,
			struct error *e) MUST_USE;
/* The last tick at or before `tick` whose memory was a new one; may be before the first tick that is kept. */
bool history_last_fresh(struct history *h, int64_t tick, int64_t *at_tick, struct error *e) MUST_USE;
/* False with who decided them (ERROR_INVALID) when memories of any of these ticks had another layout than this
 * program's. */
bool history_check_policy(struct history *h, int64_t from, int64_t to, struct error *e) MUST_USE;

/* --- reading --- */

enum { KEYFRAME_EVERY = 240 }; /* ticks: an hour of 15 s; rows that a jump has to read at most */

struct tick_record {
	int64_t tick;
	millis now, interval;
	size_t pool;
	struct pool_snapshot snapshot; /* lists last until the next read of the same pool */
	struct pool_plan plan;
	bool is_plan_damaged; /* plan is that of the tick before; history_trust_plan goes on from another */
};

/* One decision. Reading on from tick to tick is cheap. ERROR_NOT_FOUND outside of the span, and for a pool that was not
 * in the manifest then. */
bool history_read(struct history *h, int64_t tick, size_t pool, struct tick_record *out, struct error *e) MUST_USE;
/* As history_read, but a damaged plan only sets is_plan_damaged, with the reason in *damage. */
bool history_read_lenient(struct history *h, int64_t tick, size_t pool, struct tick_record *out, struct error *damage,
			  struct error *e) MUST_USE;
/* After a damaged plan: what it should have been. The ticks after it are told against this. */
void history_trust_plan(struct history *h, size_t pool, const struct pool_plan *plan);
/* The last tick that ended at or before `at`, the first one when all are later. */
bool history_tick_at(struct history *h, millis at, int64_t *tick, struct error *e) MUST_USE;

/* The length of a tick that is in the history, or of the tick before a decision between two; and when it ended. */
bool history_interval(struct history *h, int64_t tick, millis *interval, struct error *e) MUST_USE;
bool history_tick_end(struct history *h, int64_t tick, millis *at, struct error *e) MUST_USE;
/* Whether a plan asks for anything: what changed_only finds. */
bool plan_asks(const struct pool_plan *p);

enum { ANY = -1 };

struct history_filter {
	int64_t pool;	    /* index, or ANY */
	int64_t from, to;   /* ticks, both included */
	const char *group;  /* one that was asked for something or held; NULL: any */
	int64_t limit;	    /* enum limit, or ANY */
	bool changed_only;  /* only those that asked for something */
	bool largest_first; /* by the change of hot replicas asked for, growth before shrinking; else newest first */
	int64_t most;
};

struct history_hit {
	int64_t tick;
	size_t pool;
};

/* The decisions that the filter lets through, in the arena. */
bool history_find(struct history *h, const struct history_filter *f, struct arena *a, struct history_hit **hits,
		  size_t *count, struct error *e) MUST_USE;

/* The last checkpoint at or before `tick`: its tick, and the bytes of the memory. ERROR_NOT_FOUND when there is none.
 */
bool history_last_checkpoint(struct history *h, int64_t tick, int64_t *at_tick, struct buf *memory,
			     struct error *e) MUST_USE;
/* The first checkpoint at or after `tick`, and the checksum of its memory; false in *there when there is none. */
bool history_next_checkpoint(struct history *h, int64_t tick, bool *there, int64_t *at_tick, uint32_t *crc,
			     struct error *e) MUST_USE;

/* --- retention --- */

/*
 * Drops ticks that ended before `older_than`, as far as the last checkpoint before it; sums per hour stay.
 *
 * A clock may be wrong, and jump by years: so what is kept is measured in recorded time, too. With the last tick at T,
 * a tick goes only when the lengths of the ticks after it sum up to T - older_than. A jump alone drops nothing, and no
 * more goes in a day than was recorded in it; hours in which nobody wrote keep as much longer.
 */
bool history_retain(struct history *h, millis older_than, int64_t *dropped, struct error *e) MUST_USE;
/* The first tick that it would leave. */
bool history_retain_from(struct history *h, millis older_than, int64_t *first, struct error *e) MUST_USE;
/* On a full disk: the oldest ticks go, about so many rows at once, until the file has room within itself for those to
 * come; what they came to stays in sums. The last hour or so always stays. */
bool history_make_room(struct history *h, int64_t rows, struct error *e) MUST_USE;
/* The same while the file has more than `bytes` in use, whatever their age; what is free in it goes back to the disk.
 * *more says whether to call again. */
bool history_retain_bytes(struct history *h, int64_t bytes, int64_t rows, bool *more, struct error *e) MUST_USE;
/*
 * The same in steps of about so many rows (some microseconds each), for a history that is being written: *more says
 * whether to call again. What shall go is hidden with the first step; the file is whole after each.
 */
bool history_retain_some(struct history *h, millis older_than, int64_t rows, bool *more, struct error *e) MUST_USE;

/* What dropped ticks of one hour came to. */
struct history_hour {
	int64_t hour; /* since 1970-01-01 00:00 UTC */
	size_t pool;
	int64_t ticks, arrived, started, late, replica_ms, micro_dollars, asked;
};

/* In order of time, in the arena. `pool`: index, or ANY. */
bool history_hours(struct history *h, int64_t pool, struct arena *a, struct history_hour **hours, size_t *count,
		   struct error *e) MUST_USE;
