/*
 * What the controller shows of itself: one plain value that the loop keeps
 * and whoever shows it (metrics, health, status objects, events) only reads.
 * Everything is of one thread. What a pointer names lives until the loop
 * publishes the next tick, except where said; NULL and 0 are allowed
 * everywhere and mean "not known", so that a zeroed value can be shown too.
 *
 * Points in time are of published.clock: `_at` is wall time (clock_now),
 * `_mono` is clock_mono. Counters only grow, since the process started.
 */
#pragma once
#include "base/clock.h"
#include "base/error.h"
#include "controller/policy/plan.h"
#include "state/cost.h"

/* A counter with the values of its labels; unused labels are NULL. */
struct published_count {
	const char *labels[3];
	int64_t count;
};
struct published_counts {
	const struct published_count *items;
	size_t count;
};

/* Durations by size, for a histogram. Bounds in milliseconds; the last bucket has none. */
#define PUBLISHED_BOUNDS                                                           \
	{                                                                          \
		1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 30000 \
	}
enum { PUBLISHED_BUCKETS = 15 };
struct published_times {
	int64_t bucket[PUBLISHED_BUCKETS]; /* each counts its own, not those below */
	int64_t count, sum_us;
};

static inline void published_time(struct published_times *t, int64_t us)
{
	static const int64_t bounds[PUBLISHED_BUCKETS - 1] = PUBLISHED_BOUNDS;
	size_t i = 0;

	while (i < PUBLISHED_BUCKETS - 1 && us > bounds[i] * 1000)
		i++;
	t->bucket[i]++;
	t->count++;
	t->sum_us += us;
}

/* What is wrong with how a pool is set up; each becomes a condition of its own. */
enum pool_problem {
	PROBLEM_LOAD_SLOW,     /* loading the model takes longer than the objective allows */
	PROBLEM_GPU_MEMORY,    /* the workload stands on GPUs whose memory does not fit it */
	PROBLEM_FOREIGN_PODS,  /* pods that ask for no GPU use up a GPU node */
	PROBLEM_NO_GROUP,      /* pods that no node group could ever satisfy */
	PROBLEM_FRAGMENTED,    /* free GPUs stand apart: small and large models share a group */
	PROBLEM_BATCH_HOLDS,   /* batch holds accelerators that interactive work needs */
	PROBLEM_ABILITY,       /* a node group cannot do what the manifest asks of it */
	PROBLEM_GROWTH,	       /* more machines were about to be bought than any traffic explains */
	PROBLEM_CONTESTED,     /* somebody else sets the replicas, too, and is let */
	PROBLEM_DRAIN_BLOCKED, /* a node that is to go cannot be emptied: a budget or a pod forbids it, or a pod has no
				  other place */
	PROBLEM_CONTENTION,    /* somebody else undoes our sizes again and again */
	PROBLEM_UNSEEN,	       /* a cloud accepted a launch, and nothing of it shows */
	PROBLEM_BUSY,	       /* somebody else's operation goes on in a node group, an update, say */
	PROBLEM_CORDONED,      /* nodes that somebody else cordoned are paid for, and nothing starts there */
	PROBLEM_AILING,	       /* the cloud itself says that something is wrong with a node group */
	PROBLEM_RESERVATION,   /* the reservation of a node group ends, so that nothing starts there */
	PROBLEM_CLOCK,	       /* the machine's clock is not the API server's */
	PROBLEM_PREFETCH,      /* images do not come ahead, though they shall */
	PROBLEM_LOAD_DIFFERS,  /* what the servers tell of their start and what was measured are far apart */
	PROBLEM_ENGINE_WAITS,  /* requests wait for an engine of the share to sleep that is never idle */
	PROBLEM_COUNT
};

/* The GPUs of a pool's nodes as their exporters tell; count 0: nothing is known. docs/signals.md says what each is. */
struct published_devices {
	int64_t count, held, failing, last_xid;
	int64_t use_permille, stranded_permille; /* or ABSENT */
	int64_t memory_used_mib, memory_free_mib, power_mw;
};

/* Between these lies a percentile of what a histogram counted; upper_us INT64_MAX: beyond its last edge. */
struct published_bounds {
	bool is_told;
	int64_t lower_us, upper_us;
};

/* What the model servers tell beside what decisions need: of the last minutes, or ABSENT. */
struct published_serving {
	struct published_bounds wait[2], first_token[2]; /* 50th and 99th percentile */
	int64_t prefix_permille, load_ms, startup_ms;
};

/* Measured lead time of a stage; samples 0: not measured, then p50 and p95 are not shown. */
struct published_stage {
	millis p50, p95;
	int64_t samples;
};

/* A part of a pool's bill, since the process started. */
struct published_label_cost {
	struct cost_labels labels;
	int64_t gpu_ms, dollars; /* micro-dollars */
};

struct published_pool {
	/* where the pool comes from */
	bool is_object;	     /* a WarmPool in the API server, not only a file */
	int64_t generation;  /* metadata.generation that was decided on */
	const char *refusal; /* why its newest spec is left out, and the one before decided on; NULL: it is not */
	const char *target_kind, *target_name; /* of workload.scaleTargetRef */

	/* the last decision that changed the size asked for, and the sentence for the present one */
	millis changed_at;
	millis signals_age; /* of the last reading; ABSENT: none yet, or its pods are the work */
	int64_t queued;	    /* requests in the queue outside of it; ABSENT: none, or not known */
	struct published_devices devices;
	struct published_serving serving;
	const char *signals_trouble;	  /* why its signals told less than all of it last; NULL: they did not */
	int64_t changed_from, changed_to; /* hot replicas wished by plans, on their way included */
	const char *reason;

	int64_t arrived, started,
		late; /* requests since the pool is led by this replica, as the decisions counted them */
	struct published_stage stage[STAGE_COUNT];
	int64_t stuck[STAGE_COUNT];	       /* starts given up in this stage, since the process started */
	int64_t stuck_now;		       /* of the last ten minutes */
	const char *stuck_reason;	       /* "node i-0abc: no GPU allocatable after 15m" */
	struct published_counts unschedulable; /* pods now; labels: the reason as a sentence */
	const struct cost_sums *cost;	       /* since the process started; NULL: not known */
	const struct published_label_cost *label_costs;
	size_t label_cost_count;
	const char *problem[PROBLEM_COUNT]; /* NULL: not there; else one sentence with its remedy */
};

struct published_group {
	bool is_described; /* the provider has told of it since the start */
	millis described_at;
	int64_t desired, standby; /* as the provider says */
	struct error error;	  /* of the last call; ERROR_NONE: it went well */
	millis error_at;
	int64_t resized;	/* times that others changed its size */
	int64_t growth_held;	/* machines that were not bought, whatever was decided: a limit of the last resort */
	bool is_growth_held;	/* lately */
	int64_t contended;	/* machines that others and we buy and end in turn; above 0 nothing is changed there */
	int64_t unseen_nodes;	/* machines that the cloud accepted to launch and that never showed */
	const char *busy_with;	/* what somebody else does there, until which nothing is changed; NULL: nothing */
	const char *ailment;	/* what the cloud says is wrong with it; NULL: nothing */
	const char *unseen;	/* the call that this happened to lately; NULL: none */
	int64_t out_of_stock;	/* zones and instance types of it that a launch failed in, and that are left alone */
	millis throttled_until; /* wall time until which its account is left alone; 0: it is not */
	const char *lacks;	/* what it cannot do and is asked for, with the remedy; NULL: nothing */
	int64_t cordoned;	/* nodes that somebody else cordoned long ago */
	const char *cordoned_first; /* of them; NULL: there are none */
	int64_t not_ours;	    /* nodes that carry another owner's mark and are left alone */
};

/* Its provider cannot be asked; a refusal is an answer. */
static inline bool published_group_fails(const struct published_group *g)
{
	return g->error.kind != ERROR_NONE && g->error.kind != ERROR_STOCKOUT && g->error.kind != ERROR_QUOTA &&
	       g->error.kind != ERROR_CANCELLED;
}

struct published_watch {
	const char *resource; /* "pods" */
	bool is_synced;
	const char *trouble; /* why it is not, or what failed last; NULL: nothing */
	int64_t objects, relists, errors;
	millis last_event_at;
};

enum published_role {
	ROLE_FOLLOWER,
	ROLE_LEADER,
	ROLE_ALONE /* no election */
};

struct published {
	/* Set once, before anything is shown; live as long as this value. */
	const struct clock *clock;
	const char *version;  /* "0.1.0" */
	const char *identity; /* ours in the Lease */
	millis started_at, tick_interval;
	bool is_dry_run;

	enum published_role role;
	const char *leader; /* who holds the Lease; "" nobody */
	int64_t lease_transitions;

	/* The loop. A tick has begun when begun > ended. */
	millis tick_begun_mono, tick_ended_mono; /* 0: none yet */
	const char *tick_waits_for;		 /* the effect that the present tick waits for: "describe of g5-a" */
	/* When the next one is due at the latest, where none has been since it began to lead, or stopped to. 0: none is
	 * due, of a follower or without pools. */
	millis tick_due_mono;
	int64_t ticks, ticks_late; /* decided; begun later than one interval after they were due */
	struct published_times tick_time, decide_time;
	bool is_stopping;
	const char *obstacle; /* what keeps this replica from its work, with the remedy; NULL: nothing */

	/* The history: an error keeps /readyz from being ready. */
	struct error history_error;
	bool is_history_disk_full; /* its oldest ticks make room */
	int64_t history_bytes;
	millis clock_ahead;	   /* the machine's, of the API server's */
	int64_t history_lag_ticks; /* of a follower's copy */
	bool is_history_spare;	   /* nothing is lost with the leader's that the copy could have */

	/* The last decided tick; NULL before it. All three belong together; pools and groups as fleet has them. */
	const struct fleet_spec *fleet;
	const struct snapshot *snapshot;
	const struct plan *plan;
	const struct published_pool *pools;
	const struct published_group *groups;
	/* One sentence per WarmPool that could not be used: labels namespace, name, what is wrong. count is its
	 * generation. */
	struct published_counts refused_pools;

	const struct published_watch *watches;
	size_t watch_count;

	struct published_counts provider_calls; /* labels: provider, verb, error kind ("none" when it went well) */
	struct published_counts api_calls;	/* labels: "all", and of these "failed", ... */
	struct published_counts evictions;	/* labels: result */
	struct published_counts nodes;		/* labels: what was done: "removed", "stopped", "cordoned" ... */
	struct published_counts events;		/* labels: "sent", "merged", "dropped" */
	struct published_counts strays;		/* GPU pods of no pool that wait now; labels: why nothing is bought */
};
