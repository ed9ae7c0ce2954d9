/*
 * Placeholders: a Deployment of ours per pool, whose low-priority pods hold
 * warm GPUs and have the serving image on disk. Real replicas pre-empt them.
 * Where they may run is copied from the workload that the pool serves. Those
 * of a pool that is not warmed so any more go, also of one that is no more;
 * those of one that is only watched, or paused, stay as they are.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct controller;

enum { PLACEHOLDER_NAME_MAX = 219 };

/* How many there shall be; nothing for a pool that is not warmed by placeholders. */
void placeholder_want(struct controller *c, size_t pool, int64_t replicas);
void placeholder_drive(struct controller *c);
void placeholder_stop(struct controller *c); /* cancels the calls under way */

/* Whose they are: the value of the label preheat.dev/keeper on their pods, after our Lease. */
#define PLACEHOLDER_KEEPER "preheat.dev/keeper"

bool placeholders_are_idle(const struct controller *c);
