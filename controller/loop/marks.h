/*
 * Whose each mark on a node is, and what ends it. A mark says who made it:
 * those of another Preheat are left alone. Ours belong to a drain under way;
 * where there is none (another manifest, another mode, a pool that is gone, a
 * process that died) it is gone on with, or taken off.
 */
#pragma once
#include "base/net/loop.h"
#include "providers/provider.h"

struct controller;
struct history;

enum { MARK_OWNER_MAX = 320 };

struct marks {
	struct history *history; /* of drains, while there are no pools */
	struct timer timer;
};

/* Who we are on the nodes of a cluster: NAMESPACE/NAME of our lease. */
void marks_owner(const struct controller *c, char out[MARK_OWNER_MAX + 1]);
/* Runs, or will, and shall serve. */
bool marks_machine_is_wanted(const struct machine *m);
/* On becoming the leader, and for new pools: goes on with the drains of before, and takes off what may have been marked
 * and does not show yet. */
void marks_adopt(struct controller *c);
/* Takes off marks of ours that no drain stands behind. */
void marks_sweep(struct controller *c);
/* The same while we lead and there is no pool, until marks_leave(). False, and nothing, if it goes on already. */
bool marks_sweep_alone(struct controller *c);
/* What is under way is cancelled. */
void marks_leave(struct controller *c);
