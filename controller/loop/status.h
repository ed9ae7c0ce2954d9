/*
 * The status of WarmPools in the API server, of those in force and of those
 * that are refused: at most one write a pool and tick, and none where only
 * figures that always move have moved a little. One that fails is tried
 * again later; a pool's decisions never wait for it.
 */
#pragma once
#include <stdbool.h>

struct controller;

/* Writes what changed; called after each tick, and when there is nothing to decide about. */
void status_write(struct controller *c);
/* Cancels what is under way. */
void status_stop(struct controller *c);
bool status_is_idle(const struct controller *c);
void status_free(struct controller *c); /* nothing may be under way */
