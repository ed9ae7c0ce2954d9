/*
 * What the policy remembered when a history ended: its last checkpoint,
 * advanced through the ticks recorded since by deciding them again.
 */
#pragma once
#include "controller/policy/decide.h"
#include "controller/manifest/manifest.h"
#include "state/history.h"

struct restored {
	struct policy_state *memory; /* as the next tick under the fleet finds it; the caller frees it */
	int64_t folded;		     /* ticks decided again */
	struct error trouble;	     /* why the memory is a new one although there were ticks; ERROR_NONE: it is not */

	/* The last tick, in the arena; plan.pools is NULL when there was none. */
	const struct manifest *manifest;
	struct snapshot snapshot; /* of its pools the node groups alone */
	struct plan plan;	  /* as stored */
};

/*
 * For `fleet`, which need not be that of the last tick. A checkpoint or record that cannot be used makes a new memory
 * and says why in out->trouble; false only when the file cannot be read at all.
 */
bool restore_memory(struct history *h, const struct fleet_spec *fleet, struct arena *a, struct restored *out,
		    struct error *e) MUST_USE;

/*
 * history_resume() and restore_memory() as a controller starts: a memory that had to be a new one is marked as such,
 * and a checkpoint is kept when one is due. A file of another version of the program is set aside and a new one begun,
 * which out->trouble tells. NULL on failure.
 */
struct history *restore_resume(const struct history_setup *setup, struct arena *a, struct restored *out,
			       struct error *e);
/* Keeps the memory when the history wants it (history_wants_checkpoint). */
bool restore_keep(struct history *h, const struct policy_state *m, struct error *e) MUST_USE;

/*
 * The recorded ticks of a history one after the other, each with the manifest of its time: what whoever decides them
 * again needs to see. Somebody else may write the history meanwhile.
 */
struct tick_cursor;

struct cursor_tick {
	struct snapshot snapshot; /* its fleet is that of its time */
	const struct manifest *manifest;
	const size_t *pools;		/* what history_pools() calls the fleet's pools */
	const struct fleet_spec *was;	/* the fleet until now, where the manifest changes with this tick; else NULL */
	bool is_fresh;			/* the memory is a new one with this tick */
	const struct pool_plan **plans; /* as stored, one per pool of the fleet */
	const struct error *damage;	/* of the stored plans, likewise; ERROR_NONE where there is none */
};

/* Stands before `tick`, which must be in the history. NULL on failure. */
struct tick_cursor *tick_cursor_open(struct history *h, int64_t tick, struct error *e);
void tick_cursor_close(struct tick_cursor *w); /* takes NULL */

/*
 * The next tick. What it points to lasts until the next one; manifests until tick_cursor_close. False when it cannot be
 * read: ERROR_INVALID when the record or its manifest is damaged, ERROR_NOT_FOUND after the last tick.
 */
bool tick_cursor_next(struct tick_cursor *w, struct cursor_tick *out, struct error *e) MUST_USE;

typedef void tick_take_fn(void *user, const struct cursor_tick *t);
struct tick_walk {
	int64_t first, last; /* both included and in the history */
	tick_take_fn *take;
	void *user;
};
/* All of them, in order; some were taken already when one cannot be read. */
bool tick_walk(struct history *h, const struct tick_walk *walk, struct error *e) MUST_USE;
