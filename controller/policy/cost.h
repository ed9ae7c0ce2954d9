/*
 * What a pool's GPUs did and cost, in integers: GPU-milliseconds by state,
 * micro-dollars from the manifest's prices, and what was served for them.
 * Pure: sums of ticks, from what the policy saw and decided.
 *
 * Every billed GPU-millisecond is in exactly one of the states idle, lent,
 * starting and serving; stopped machines are counted apart, at their share
 * of the price. docs/operate.md defines each.
 */
#pragma once
#include "controller/policy/plan.h"

enum gpu_state {
	GPU_IDLE,     /* held by nobody, or by replicas beyond what the running sequences need */
	GPU_LENT,     /* of ours, runs others' work until it is taken back */
	GPU_STARTING, /* of machines and replicas that do not serve yet */
	GPU_SERVING,  /* kept busy by running sequences, and all of replicas that drain */
	GPU_STANDBY,  /* of stopped machines: not billed as GPUs, at a share of the price */
	GPU_STATE_COUNT
};
enum { GPU_BILLED_STATES = GPU_STANDBY };

/* Why requests were late: the limit that held the pool in that tick, or what it waited for. */
enum late_cause {
	LATE_BURST,    /* nothing held the pool and nothing was on its way: more came than headroom covers */
	LATE_STARTING, /* capacity of any tier was asked for and did not serve yet */
	LATE_STOCKOUT,
	LATE_QUOTA,
	LATE_MAX,
	LATE_BUDGET,
	LATE_RATE,
	LATE_STALE,	 /* signals were stale or missing */
	LATE_NOT_ACTING, /* the pool is only watched, or paused */
	LATE_CAUSE_COUNT
};

/* Sums; all int64_t, so that they add up, are stored and told as an array. */
struct cost_sums {
	int64_t watched_ms;		  /* time that is accounted for */
	int64_t gpu_ms[GPU_STATE_COUNT];  /* GPU-milliseconds */
	int64_t dollars[GPU_STATE_COUNT]; /* micro-dollars */
	int64_t blind_gpu_ms;		  /* of the serving: no reading told how busy */
	int64_t arrived, started, late, completed, prompt_tokens, output_tokens;
	int64_t late_by[LATE_CAUSE_COUNT]; /* sums to late */
};
enum { COST_FIELDS = sizeof(struct cost_sums) / sizeof(int64_t) };

/* The requests of a tick as they really were, where that is known better than readings tell. */
struct cost_requests {
	int64_t arrived, started, late;
};

struct cost_tick {
	const struct snapshot *snapshot;
	size_t pool; /* of its fleet */
	const struct pool_plan *plan;
	millis elapsed;			      /* what the tick stands for; ends at snapshot->now */
	const struct cost_requests *requests; /* NULL: as the readings tell */
};

/*
 * Adds one tick of one pool: levels at its end times its length. `busy_ppm` is how busy ready replicas were told to be
 * last, ABSENT before any reading; kept between ticks of a pool, because readings may come more rarely than ticks.
 */
void cost_add_tick(struct cost_sums *sums, const struct cost_tick *t, int64_t *busy_ppm);
/* The same tick as a meter has it: billed GPU-milliseconds and dollars in all, spread as the levels say. */
void cost_meter(struct cost_sums *tick, int64_t billed_gpu_ms, int64_t micro_dollars);

void cost_add(struct cost_sums *to, const struct cost_sums *more);
int64_t cost_billed_gpu_ms(const struct cost_sums *s); /* without stopped machines */
int64_t cost_micro_dollars(const struct cost_sums *s); /* of all states */
/* Nano-dollars (1e-9 $) a thousand tokens (prompt and output) and a request that started; ABSENT without any. */
int64_t cost_per_1000_tokens(const struct cost_sums *s);
int64_t cost_per_request(const struct cost_sums *s);

/* `total` in proportion to the weights, none negative: floors, and the rest to the largest remainders. Without any
 * weight all goes to the first. */
void cost_spread(int64_t total, const int64_t *weights, size_t count, int64_t *out);

const char *gpu_state_name(enum gpu_state state);   /* "idle" */
const char *late_cause_name(enum late_cause cause); /* "stock-out" */
