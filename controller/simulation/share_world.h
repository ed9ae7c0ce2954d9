/*
 * A modelled share: slots with engines on them, of which those in routing
 * serve the requests of their pool in the order of arrival. share_decide()
 * moves them at every reading of 5 s and when a need rises; sleeps and wakes
 * take drawn times, wakes fail, slots come and go as the stock says. An
 * engine serves as many sequences as its model says, as long as all engines
 * awake on the slot together do not more than one alone would. Pure.
 */
#pragma once
#include "controller/policy/share.h"
#include "controller/simulation/queue.h"
#include "controller/traces/trace.h"

/* One member: what its engine takes and how long it takes. */
struct share_model {
	const char *name;
	struct queue_truth truth; /* slots: sequences of an engine awake */
	int64_t late_ppm;	  /* share of requests that may wait longer than truth.objective_wait */
	int64_t gpu_awake_mib, gpu_asleep_mib, host_asleep_mib;
	struct quantiles sleep, wake;
	int64_t peak;		   /* engines needed at most: copies are made by it */
	const struct trace *trace; /* requests, not bins */
};

/* An engine was in a state from `since` until `until`. A slot's number goes to another once it is gone. */
struct share_span {
	millis since, until;
	size_t slot, member;
	enum engine_state state;
};

/* From `at` on there are so many slots; more where the last engine of a member would go. */
struct stock_step {
	millis at;
	int64_t slots;
};

struct share_setup {
	const struct share_model *models;
	size_t model_count;
	struct share_size size;		/* of a slot */
	const struct stock_step *stock; /* the first at 0 */
	size_t stock_count;
	const struct share_rule *rule; /* NULL: chosen by shadows (policy/share_shadow.h) */
	int64_t wake_failed_ppm;
	struct quantiles mend; /* of a failed wake: until the engine sleeps again */
	millis warm_up;	       /* left out of the scores */
	uint64_t seed;
	/* NULL, or called after every decision, before it is carried out. */
	void (*look)(void *user, const struct share_view *v, const struct share_plan *plan);
	/* NULL, or called when an engine leaves a state, with its slot or at the end, too: in the order of `until`. */
	void (*note)(void *user, const struct share_span *span);
	void *user; /* of both */
};

struct share_score {
	int64_t requests, late; /* late: what still waits too long at the end included */
	struct waits waits;	/* of those that started */
};

struct share_outcome {
	struct share_score *members, *before; /* one per model: after the warm-up, and before it */
	millis slot_ms;			      /* after the warm-up, of slots that leave until they are empty */
	int64_t wakes, sleeps, failed_wakes, decisions;
	bool is_whole; /* every member has an engine on some slot */
};

/* The outcome lives in the arena. */
struct share_outcome share_simulate(const struct share_setup *s, struct arena *a);
