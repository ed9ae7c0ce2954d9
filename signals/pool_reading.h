/*
 * One reading of a pool, and the sums of a round that it is made of, however
 * the replicas were read: what each of them told is added here.
 */
#pragma once
#include "base/millis.h"
#include "signals/counter_delta.h"
#include "signals/evidence.h"
#include "signals/histogram.h"

#define READING_UNKNOWN INT64_MIN

enum { READING_GAP = 3 };

/* For people and for metrics: no decision depends on it. */
struct reading_more {
	struct histogram wait, first_token;  /* requests of the round; empty: not told */
	int64_t prefix_queries, prefix_hits; /* prompt tokens; READING_UNKNOWN */
	int64_t prefix_permille;	     /* mean over ready replicas that tell no tokens, or READING_UNKNOWN */
	int64_t load_ms, startup_ms;	     /* mean over all replicas that told it, or READING_UNKNOWN */
};

/* Levels are of the replicas that were read in the round; counters are differences to the round before. */
struct pool_reading {
	millis at;		  /* clock_now() at the end of the round */
	int64_t expected;	  /* replicas that may start requests: readings that were due */
	int64_t fresh;		  /* of them: read, and made sense; 0 with expected > 0: nothing is known */
	int64_t disputed;	  /* of these: what they tell contradicts itself (evidence.h) */
	int64_t ready;		  /* replicas that may start requests */
	int64_t running;	  /* sequences on them */
	int64_t running_draining; /* sequences on all others */
	int64_t waiting;	  /* requests that wait for a slot, on any */
	int64_t full;		  /* replicas that are full, of those that may start requests (evidence.h) */
	int64_t running_full;	  /* sequences on these; both READING_UNKNOWN where replicas are not told apart */
	int64_t started;	  /* READING_UNKNOWN when no replica told it a second time */
	int64_t late;		  /* waited longer than the objective; told by vLLM when they end; READING_UNKNOWN */
	int64_t refused;	  /* turned away because a replica was full: neither started nor late */
	int64_t completed, prompt_tokens, output_tokens;
	int64_t inter_token_latency_us;	 /* mean over the tokens of the round, or READING_UNKNOWN */
	int64_t kv_cache_permille;	 /* mean over the ready replicas that told it, or READING_UNKNOWN */
	const struct reading_more *more; /* lives until the reading was taken; NULL: not known */
};

struct reading_mean {
	int64_t sum, count;
};

/* Of one round; thousandths of requests, microseconds of seconds. Zeroed at first. */
struct reading_sums {
	bool has_value[ENGINE_QUANTITY_COUNT], has_late;
	int64_t added[ENGINE_QUANTITY_COUNT];
	int64_t late;
	struct reading_mean kv, prefix, load, startup;
	struct histogram wait, first_token;
};

/* What a replica did within `elapsed`; of more than READING_GAP intervals it counts at its mean rate. */
void reading_add_delta(struct reading_sums *s, const struct counter_delta *t, millis elapsed, millis interval);
/* The counts of a replica that was read in the round. */
void reading_add_replica(struct pool_reading *r, const struct evidence *e, bool is_ready);
/* The gauges of a replica that are not counts of requests; of one that is not ready its load time alone. */
void reading_add_levels(struct reading_sums *s, const struct page_content *c, bool is_ready);
/* Fills the counters and means of `r`, and `more`, which it then names. */
void reading_write(const struct reading_sums *s, struct pool_reading *r, struct reading_more *more);
/* Begins the next round. What interpolation left below one request is kept. */
void reading_next_round(struct reading_sums *s);
