/*
 * What each tick cost and for whom, told to the history with the tick and
 * kept in sum for /metrics since the process started. Beside it: quotas as
 * they are seen, and pods that hold GPUs for nothing.
 */
#pragma once
#include "state/cost.h"
#include "state/usage.h"

struct controller;
struct account;
struct published_pool;

struct account *account_new(void);
void account_free(struct account *a); /* takes NULL */

/* The tick that is decided and not recorded yet. */
void account_tick(struct account *a, struct controller *c);
/* It is recorded. */
void account_taken(struct account *a);
/* What a pool came to since the process started; lasts until the next tick. */
void account_show(const struct account *a, const struct controller *c, size_t pool, struct published_pool *out);
