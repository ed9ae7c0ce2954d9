/*
 * What the policy remembered when a history ended: its last checkpoint,
 * advanced through the ticks recorded since by deciding them again.
 */
#pragma once
#include "controller/policy/decide.h"
#include "controller/recall/walk.h"

struct recalled {
	struct policy_state *memory; /* as the next tick under the fleet finds it; the caller frees it */
	int64_t folded;	       /* ticks decided again */
	struct error trouble;  /* why the memory is a new one although there were ticks; ERROR_NONE: it is not */

	/* The last tick, in the arena; plan.pools is NULL when there was none. */
	const struct manifest *manifest;
	struct snapshot snapshot;
	struct plan plan; /* as stored */
};

/*
 * For `fleet`, which need not be that of the last tick. A checkpoint or record that cannot be used makes a new memory
 * and says why in out->trouble; false only when the file cannot be read at all.
 */
bool recall(struct history *h, const struct fleet_spec *fleet, struct arena *a, struct recalled *out,
	    struct error *e) MUST_USE;

/*
 * history_resume() and recall() as a controller starts: a memory that had to be a new one is marked as such, and a
 * checkpoint is kept when one is due. A file of another version of the program is set aside and a new one begun, which
 * out->trouble tells. NULL on failure.
 */
struct history *recall_resume(const struct history_setup *setup, struct arena *a, struct recalled *out,
			      struct error *e);
/* Keeps the memory when the history wants it (history_wants_checkpoint). */
bool recall_keep(struct history *h, const struct policy_state *m, struct error *e) MUST_USE;
