/*
 * Back-off per offering: after a refusal a node group is not asked for a
 * while, twice as long after each further one, and then probed again.
 */
#pragma once
#include "controller/policy/memory.h"
#include "controller/policy/plan.h"

/* Takes a pool's refusals of this tick in; before placing. */
void back_off_observe(struct group_memory *groups, const struct snapshot *s, size_t pool);
/* The limit that a group in back-off imposes. */
enum limit back_off_limit(const struct group_memory *g);
