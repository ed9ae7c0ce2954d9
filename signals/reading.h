/* What a source tells of a pool once a round. */
#pragma once
#include "base/millis.h"
#include "signals/spread.h"

#define READING_NOT_TOLD INT64_MIN

enum { READING_GAP = 3 };

/* For people and for metrics: no decision depends on it. */
struct reading_more {
	struct spread wait, first_token;     /* requests of the round; empty: not told */
	int64_t prefix_queries, prefix_hits; /* prompt tokens; READING_NOT_TOLD */
	int64_t prefix_permille;	     /* mean over ready replicas that tell no tokens, or READING_NOT_TOLD */
	int64_t load_ms, startup_ms;	     /* mean over all replicas that told it, or READING_NOT_TOLD */
};

/* Levels are of the replicas that were read in the round; counters are differences to the round before. */
struct pool_reading {
	millis at;		  /* clock_now() at the end of the round */
	int64_t expected;	  /* replicas that may start requests: readings that were due */
	int64_t fresh;		  /* of them: read, and made sense; 0 with expected > 0: nothing is known */
	int64_t ready;		  /* replicas that may start requests */
	int64_t running;	  /* sequences on them */
	int64_t running_draining; /* sequences on all others */
	int64_t waiting;	  /* requests that wait for a slot, on any */
	int64_t started;	  /* READING_NOT_TOLD when no replica told it a second time */
	int64_t late;		  /* waited longer than the objective; told by vLLM when they end; READING_NOT_TOLD */
	int64_t completed, prompt_tokens, output_tokens;
	int64_t inter_token_latency_us;	 /* mean over the tokens of the round, or READING_NOT_TOLD */
	int64_t kv_cache_permille;	 /* mean over the ready replicas that told it, or READING_NOT_TOLD */
	const struct reading_more *more; /* lives until the reading was taken; NULL: not known */
};
