/*
 * The stock of a share: a pool (signals.engine share) whose replicas are the
 * slots of the share that has its name. Its readings say how many slots the
 * pools of the share need together (slots.h), in pieces of a minute as
 * simulation/share_trial.c has them; from there on it is sized as any pool.
 */
#pragma once
#include "base/arena.h"
#include "signals/source.h"

#include <stdbool.h>
#include <stddef.h>

struct controller;
struct pod;
struct node;

struct source *stock_source_open(struct controller *c, size_t pool, const struct source_settings *s);
/* Requests on the engines of shares on the node, as last read, one for an engine that never was; and how old the oldest
 * of these readings is. False when there is no such engine. */
bool stock_in_flight(const struct controller *c, const struct node *n, struct arena *a, int64_t *count, millis *age);
/* The engine of a share works, or may still get requests. */
bool stock_engine_serves(const struct controller *c, const struct pod *p);
/* One on the node does. */
bool stock_serves(const struct controller *c, const struct node *n);
