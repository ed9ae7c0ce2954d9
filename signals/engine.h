/*
 * What the metrics of each kind of model server are called. A name is a row
 * of a table in signals/engines; nothing else knows one.
 */
#pragma once
#include "base/arena.h"
#include "signals/exposition.h"

/* In the order of the manifest's signals.engine. */
enum engine { ENGINE_VLLM, ENGINE_SGLANG, ENGINE_TGI, ENGINE_TRITON, ENGINE_LLAMACPP, ENGINE_DYNAMO, ENGINE_COUNT };

enum engine_quantity {
	ENGINE_RUNNING,		   /* gauge: sequences running */
	ENGINE_WAITING,		   /* gauge: requests that wait for a slot */
	ENGINE_KV_CACHE,	   /* gauge: share of the KV cache in use, 0 to 1 */
	ENGINE_PREFIX_SHARE,	   /* gauge: share of prompt tokens found in the prefix cache, 0 to 1 */
	ENGINE_LOAD_TIME,	   /* gauge: seconds that loading the weights took */
	ENGINE_STARTUP_TIME,	   /* gauge: seconds from the server's start until it could serve */
	ENGINE_STARTED,		   /* counter, the first: requests that took a slot */
	ENGINE_WAITED,		   /* counter: requests whose wait is in ENGINE_WAIT_BUCKET */
	ENGINE_WAIT_BUCKET,	   /* histogram of the queue wait, by "le" in seconds */
	ENGINE_COMPLETED,	   /* counter: requests finished */
	ENGINE_PROMPT_TOKENS,	   /* counter */
	ENGINE_OUTPUT_TOKENS,	   /* counter */
	ENGINE_LATENCY_SUM,	   /* counter: seconds between output tokens */
	ENGINE_LATENCY_COUNT,	   /* counter: of them */
	ENGINE_FIRST_TOKEN_BUCKET, /* histogram of the time to the first token, by "le" in seconds */
	ENGINE_PREFIX_QUERIES,	   /* counter: prompt tokens looked for in the prefix cache */
	ENGINE_PREFIX_HITS,	   /* counter: of them found */
	ENGINE_QUANTITY_COUNT
};

static inline bool engine_is_level(enum engine_quantity q)
{
	return q < ENGINE_STARTED;
}

static inline bool engine_is_bucket(enum engine_quantity q)
{
	return q == ENGINE_WAIT_BUCKET || q == ENGINE_FIRST_TOKEN_BUCKET;
}

/* For people and for metrics only: no decision depends on it. */
static inline bool engine_is_shown_only(enum engine_quantity q)
{
	return (q >= ENGINE_PREFIX_SHARE && q <= ENGINE_STARTUP_TIME) || q >= ENGINE_FIRST_TOKEN_BUCKET;
}

struct engine_metric {
	const char *name; /* of the sample */
	enum engine_quantity quantity;
	/* Of several names for one quantity the first that a page shows counts, the others are older or poorer. */
	int rank;
	/* Only series with this label and value; NULL: all. */
	const char *label, *value;
	bool is_largest; /* the largest of the series, not their sum */
};

struct engine_metrics {
	const struct engine_metric *rows;
	size_t count; /* at most ENGINE_ROWS */
};

enum { ENGINE_ROWS = EXPOSITION_NAMES };

struct engine_metrics engine_metrics(enum engine engine);
struct engine_metrics engine_metrics_copy(const struct engine_metrics *m, struct arena *a); /* its texts, too */
/* The different names among the rows, for exposition_open(), and which of them each row has. Returns their number. */
size_t engine_names(struct engine_metrics m, const char *names[ENGINE_ROWS], size_t name_of_row[ENGINE_ROWS]);
const char *engine_name(enum engine engine); /* "vllm" */
bool engine_find(const char *name, enum engine *out);
const char *engine_quantity_name(enum engine_quantity quantity); /* for messages: "running requests" */
