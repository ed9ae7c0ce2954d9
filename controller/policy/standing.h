/* How every rule of a pool stands on the record: what the choice of the rule in force weighed. */
#pragma once
#include "controller/policy/decide.h"

struct rule_standing {
	int64_t margin_permille, hold_ms, chase_permille;
	int64_t stock_permille; /* ABSENT: uses no fast tier */
	int64_t gpu_milli;	/* GPUs it would have held, mean over the record; ABSENT before one */
	int64_t share_ppm;	/* late share, with the caution for rare bursts and the prior of the first hours */
	bool meets;		/* the target of the last review */
};

/* Of the memory's pool, by number of the rule, in the arena; *target_ppm as of the last review. */
struct rule_standing *policy_standings(const struct memory *m, const struct fleet_spec *fleet, size_t pool,
				       struct arena *a, int64_t *target_ppm);
