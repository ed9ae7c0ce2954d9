/*
 * One policy over one modelled world, tick by tick: advance, look, decide,
 * act. What else a run is good for (a recording, a timeline, a report,
 * progress) hangs on the observer.
 */
#pragma once
#include "base/buf.h"
#include "controller/simulation/policy_ops.h"
#include "controller/simulation/world.h"

/* What a run is judged by, per pool: for the whole run, and for the part after the warm-up. */

struct score {
	int64_t requests, late, gave_up; /* late: what still waited too long at the end included */
	int64_t started, waiting;	 /* waiting: at the end */
	millis wait_p50, wait_p99;	 /* of the requests that started; to 3 %; 0 where none did */
	int64_t gpu_ms, micro_dollars;	 /* billed; dollars include stopped machines */
	int64_t standby_gpu_ms;		 /* stopped machines, in GPUs */
	int64_t lent_replica_ms;
	int64_t starts, removals, lost, refused;
	int64_t batch_lost_ms; /* replica-milliseconds of borrowed work lost to reclaims */
	/* How many draws of chance it is the mean of, how many of them kept the objective, and their late shares. */
	int64_t draws, draws_met;
	double late_least, late_most;
};

/* Requests with one label of the trace, whole run. Dollars: the pool's, by the slot time that they used. */
struct class_score {
	const char *name;
	int64_t requests, late, slot_ms, micro_dollars;
};

struct pool_score {
	struct score whole, scored;
	const struct class_score *classes;
	size_t class_count;
};

double score_late_share(const struct score *s);		   /* 0 when there were no requests */
bool score_keeps(const struct score *s, int64_t late_ppm); /* so many late requests are within the objective */
double score_gpu_hours(const struct score *s);
double score_dollars(const struct score *s);
/* One of the waits in seconds as JSON; null where no request started. */
/* null for a pool without prices */
void score_write_dollars(const struct pool_spec *pool, int64_t micro_dollars, struct buf *out);
void score_write_wait(const struct score *s, millis wait, struct buf *out);

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
struct policy_state;
struct policy_state *preheat_memory(void *state); /* of an open policy_preheat: for checkpoints */
