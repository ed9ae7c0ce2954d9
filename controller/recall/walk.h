/*
 * A walk through the recorded ticks of a history, each with the manifest of
 * its time: what whoever decides them again needs to see. A history that
 * somebody else writes at the same time can be walked, too.
 */
#pragma once
#include "controller/manifest/manifest.h"
#include "state/history.h"

struct walk;

struct walk_tick {
	struct snapshot snapshot; /* its fleet is that of its time */
	const struct manifest *manifest;
	const size_t *pools;		/* what history_pools() calls the fleet's pools */
	const struct fleet_spec *was;	/* the fleet until now, where the manifest changes with this tick; else NULL */
	bool is_fresh;			/* the memory is a new one with this tick */
	const struct pool_plan **plans; /* as stored, one per pool of the fleet */
	const struct error *damage;	/* of the stored plans, likewise; ERROR_NONE where there is none */
};

/* Stands before `tick`, which must be in the history. NULL on failure. */
struct walk *walk_open(struct history *h, int64_t tick, struct error *e);
void walk_close(struct walk *w); /* takes NULL */

/*
 * The next tick. What it points to lasts until the next one; manifests until walk_close. False when it cannot be read:
 * ERROR_INVALID when the record or its manifest is damaged, ERROR_NOT_FOUND after the last tick.
 */
bool walk_next(struct walk *w, struct walk_tick *out, struct error *e) MUST_USE;
