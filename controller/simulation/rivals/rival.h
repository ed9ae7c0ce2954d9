/*
 * What a family of rivals is made of: its settings, its memory a pool, and
 * the number of replicas that it wants. fleet.c turns that number into a
 * plan, the same way for all of them.
 */
#pragma once
#include "controller/simulation/policy_ops.h"
#include "controller/simulation/rivals/rivals.h"
#include "controller/simulation/rivals/setting.h"

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
	/* Adds the settings that are compared; the documented default, where there is one, comes first. */
	void (*sweep)(struct sweep *sweep, const struct rival_scale *scale);
	bool has_no_default;
};

#define RIVAL(name, help) extern const struct family family_##name;
#include "controller/simulation/rivals/list.def"
#undef RIVAL

/* A setting to compare. The stocked ones are compared with stocks of stopped machines, too. */
void sweep_add(struct sweep *s, bool is_stocked, const char *fmt, ...) PRINTF(3, 4);

size_t sweep_settings(const struct family *family, const struct rival_scale *scale, struct arena *a,
		      const struct rival_setting **out);

/* One rival at work on a fleet. */
struct rival *rival_open(const struct family *family, const struct fleet_spec *fleet, const char *setting,
			 struct error *e);
void rival_close(struct rival *r); /* takes NULL */
struct plan rival_decide(struct rival *r, const struct snapshot *s, struct arena *a);

/* Smallest whole number not below x; 0 for x <= 0. */
static inline int64_t whole_above(double x)
{
	int64_t n = x > 0 ? (int64_t)x : 0;

	return n + ((double)n < x);
}
