/*
 * One policy over one modelled world, tick by tick: advance, look, decide,
 * act. What else a run is good for (a recording, a timeline, a report,
 * progress) hangs on the observer.
 */
#pragma once
#include "controller/simulation/policy_ops.h"
#include "controller/simulation/score.h"

/* One tick, after the plan was carried out. Nothing in it outlives the call. */
struct tick_view {
	const struct snapshot *snapshot;
	const struct plan *plan;
	const struct tick_result *results; /* one per pool */
	millis end;			   /* of the tick, since the start of the traces */
	int64_t ticks;			   /* of the whole run */
	void *policy;			   /* the state that decided */
};

struct observer {
	bool (*tick)(void *user, const struct tick_view *v, struct error *e); /* false ends the run with the error */
	void *user;
};

struct simulation {
	struct world_setup world;
	const struct policy_ops *policy;
	const char *setting; /* of the policy */
	millis warm_up;	     /* left out of the score */
	const struct observer *observers;
	size_t observer_count;
	const volatile int *stop; /* NULL, or not 0 as soon as the run shall end early */
};

struct run_result {
	struct pool_score *pools; /* one per fleet pool, in the arena */
	millis simulated;	  /* less than world_length() when it was stopped */
	bool stopped;
};

/* False when the setting is bad or an observer failed; `out` is then as before. */
bool simulate(const struct simulation *s, struct arena *a, struct run_result *out, struct error *e) MUST_USE;

/* Preheat itself as a policy. Setting: "", or "rule=17" to fix a rule in every pool. */
extern const struct policy_ops policy_preheat;
struct memory;
struct memory *preheat_memory(void *state); /* of an open policy_preheat: for checkpoints */
