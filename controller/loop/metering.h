/*
 * What each tick cost and for whom, told to the history with the tick and
 * kept in sum for /metrics since the process started. Beside it: quotas as
 * they are seen, and pods that hold GPUs for nothing.
 */
#pragma once
#include "state/cost.h"
#include "state/usage.h"

struct controller;
struct metering;
struct published_pool;

struct metering *metering_new(void);
void metering_free(struct metering *a); /* takes NULL */

/* The tick that is decided and not recorded yet. */
void metering_tick(struct metering *a, struct controller *c);
/* It is recorded. */
void metering_taken(struct metering *a);
/* What a pool came to since the process started; lasts until the next tick. */
void metering_show(const struct metering *a, const struct controller *c, size_t pool, struct published_pool *out);
