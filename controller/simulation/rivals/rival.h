/*
 * What a family of rivals is made of: its settings, its memory a pool, and
 * the number of replicas that it wants. fleet.c turns that number into a
 * plan, the same way for all of them.
 */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "controller/simulation/policy_ops.h"

#include <stddef.h>

/*
 * The other autoscalers, as policies for the simulator: each follows the
 * published formula and defaults of the real thing (docs/simulator.md) and
 * sees snapshots only.
 */

/* How large the traffic is, so that settings in replicas can be swept. Replicas; of the smallest and the
 * largest pool where there are several. */
struct rival_scale {
	double mean, peak;
	bool has_standby; /* some node group can keep stopped machines */
	bool has_lent;	  /* nodes are lent to batch work and can be taken back */
};

struct rival_setting {
	const char *text; /* for policy_ops.open */
	bool is_default;  /* the documented default; a fixed size has none */
	bool uses_standby, uses_lent;
};

size_t rival_count(void);
const struct policy_ops *rival_at(size_t index);       /* index < rival_count() */
const struct policy_ops *rival_find(const char *name); /* NULL when there is none */
/* The settings to compare, in a fixed order; at least 40 hot-only ones, or none of a family that is not swept. They
 * live in the arena. */
size_t rival_settings(const struct policy_ops *rival, const struct rival_scale *scale, struct arena *a,
		      const struct rival_setting **out);

/*
 * The settings of a rival as one text, "target=0.8,window=300", read by
 * table: one row a key with its documented default and what is allowed.
 * Times are seconds, shares are fractions of 1.
 */

enum { SETTINGS_MAX = 24 };

struct setting_row {
	const char *key;
	double fallback, least, most;
	const char *help; /* unit and meaning, "s; how long ..." */
};

/* What a rival keeps stopped, beside its own sizing: pool=static:N or pool=total:N, in replicas. */
enum stock_kind { STOCK_NONE, STOCK_STATIC, STOCK_TOTAL };

struct settings {
	double values[SETTINGS_MAX]; /* in the order of the rows */
	enum stock_kind stock;
	double stock_size;
	bool uses_lent; /* lent=1: takes lent nodes first and gives them back first */
};

/* What a rival sees of one pool. */
struct sight {
	const struct pool_spec *spec;
	millis now, interval;
	const struct scrape_input *scrapes; /* of this tick, oldest first; at least one */
	size_t scrape_count;
	double slots;	 /* of a replica, as declared */
	int64_t running; /* on ready replicas, at the last reading */
	int64_t waiting; /* at the last reading */
	int64_t ready;
	int64_t starting; /* on their way to serve */
	int64_t most;	  /* replicas that the node groups allow */
};

struct sweep;

struct family {
	const char *name;
	const struct setting_row *rows;
	size_t row_count;
	size_t memory_size; /* of one pool, zeroed before the first tick */
	/* Replicas wanted now, starts on their way included. */
	int64_t (*want)(void *memory, const struct settings *s, const struct sight *v);
	/* Adds the settings that are compared; the documented default, where there is one, comes first. NULL: it is
	 * compared only where somebody has it. */
	void (*sweep)(struct sweep *sweep, const struct rival_scale *scale);
	bool has_no_default;
};

#define RIVAL(name, help) extern const struct family family_##name;
#include "controller/simulation/rivals/list.def"
#undef RIVAL

/* A setting to compare. The stocked ones are compared with stocks of stopped machines, too. */
void sweep_add(struct sweep *s, bool is_stocked, const char *fmt, ...) PRINTF(3, 4);

/* Smallest whole number not below x; 0 for x <= 0. */
static inline int64_t whole_above(double x)
{
	int64_t n = x > 0 ? (int64_t)x : 0;

	return n + ((double)n < x);
}
