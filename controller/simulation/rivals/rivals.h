/*
 * The other autoscalers, as policies for the simulator: each follows the
 * published formula and defaults of the real thing (docs/rivals.md) and
 * sees snapshots only.
 */
#pragma once
#include "base/arena.h"
#include "controller/simulation/policy_ops.h"

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
/* The settings to compare, in a fixed order; at least 40 hot-only ones. They live in the arena. */
size_t rival_settings(const struct policy_ops *rival, const struct rival_scale *scale, struct arena *a,
		      const struct rival_setting **out);
