/* Kubernetes events on the objects concerned: each change is told once. */
#pragma once
#include "base/error.h"
#include "base/millis.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct actor;
struct controller;

/* What events said of a pool last, so that only changes are told. */
struct pool_told {
	unsigned problems; /* bit per enum pool_problem */
	uint64_t busy;	   /* hash of what was told of groups that others work on */
	bool is_stale, is_refused, is_failing;
	bool has_size;	   /* what is found at the start is no change */
	int64_t down_from; /* replicas before a shrinking that is decided and has not happened yet; 0: none */
	int64_t signals;   /* enum signal_state */
	int64_t limit;
	millis limit_at;
};

struct pool_event {
	const char *reason, *action;
	bool is_warning;
};

/* About a pool: its WarmPool, else what we scale, else its namespace. */
void events_tell_pool(struct controller *c, size_t pool, struct pool_event what, const char *fmt, ...) PRINTF(4, 5);
void events_of_tick(struct controller *c);
/* Pods are told of machines as soon as a cloud took an order. */
extern const struct actor orders_told_actor;
