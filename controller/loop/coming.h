/*
 * Machines on their way, and the room there: bought, or woken, and not so far that pods may use their GPUs. One is on
 * its way as long as a start waits for it; with the last of its starts it gives its places back.
 */
#pragma once
#include "controller/loop/starts.h"

struct controller;

/* Tells the cluster's model how many come in each group. */
void coming_tell(struct controller *c);
/* Replicas of the pool that fit there beside the starts that wait, by GPUs and by what its waiting pods ask. After its
 * view. */
int64_t coming_places(const struct controller *c, size_t pool, size_t position);
/* Starts so many there, as far as there is room, on the machines that come first. Returns how many. */
int64_t coming_join(struct controller *c, size_t pool, size_t position, int64_t count);
/* Ends the starts that no pod of the pool can use, where others of its pods need a machine more: they do not fit
 * beside each other. After its view. */
void coming_drop_unusable(struct controller *c, size_t pool);
