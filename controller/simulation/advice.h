/*
 * What should be changed: every change to a pool's settings that its record
 * gives a reason for, tried on the recorded traffic, and of those that pay
 * the best. A change pays when it saves and keeps the objective, or makes a
 * missed objective met; what is within chance does not. Pure.
 */
#pragma once
#include "controller/simulation/trial.h"

/* What the record says of one pool beside its traffic. */
struct advice_record {
	unsigned held_by;	/* bit per enum limit: it held a decision */
	int64_t *served, *lost; /* one per group of the pool: starts that served; that got stuck or were refused */
};

/* The pool's recent incidents in the model, by who tries the change: late requests in them as it is, and with it. */
struct incidents_tried {
	int64_t count, late, late_with;
};

struct advice {
	size_t pool;
	const char *setting;	      /* path in the manifest and value: "headroom.min: 0" */
	const char *needs;	      /* what to know or to have before; NULL: nothing */
	const char *why;	      /* what is not plain: why it saves; NULL: nothing to say */
	bool is_shared;		      /* of a node group: all pools with a group of that name have it */
	double allowed, allowed_with; /* share of late requests that the objective allows: now; with the change */
	struct trial_result result;
	struct incidents_tried incidents;
	bool is_kept; /* by advice_keep() */
};

/* The changes that there is a reason to try, at most ADVICE_MOST of each pool, with the worlds to try them in. Texts
 * and worlds live in the arena. */
enum { ADVICE_MOST = 12 };
size_t advice_candidates(const struct world_setup *as_is, const struct advice_record *records, struct arena *a,
			 struct advice *out, struct trial *trials);
/* Those that pay stay, the best first: what makes a missed objective met, what saves, other objectives; of each by
 * dollars. What is shared stays once,
 * and not where another pool would miss its objective by it. Returns how many. */
size_t advice_keep(struct advice *all, size_t count);
