/* The table of an engine that we have none of: made of names that a person gives. */
#pragma once
#include "base/arena.h"
#include "signals/engine.h"

/* What can be named, in the order of the manifest's signals.metrics. */
enum custom_name {
	CUSTOM_RUNNING,
	CUSTOM_WAITING,
	CUSTOM_KV_CACHE,
	CUSTOM_STARTED,
	CUSTOM_COMPLETED,
	CUSTOM_PROMPT_TOKENS,
	CUSTOM_OUTPUT_TOKENS,
	CUSTOM_QUEUE_WAIT,    /* a histogram, without _bucket; so are the next two */
	CUSTOM_FIRST_TOKEN,   /* its count is also what started, unless that is named */
	CUSTOM_TOKEN_LATENCY, /* its _sum and _count are enough */
	CUSTOM_PREFIX_QUERIES,
	CUSTOM_PREFIX_HITS,
	CUSTOM_LOAD_TIME,
	CUSTOM_STARTUP_TIME,
	CUSTOM_COUNT
};

/* Names as base/text.h has them, NULL: not told. Lives in the arena. */
struct engine_metrics custom_metrics(const char *const names[CUSTOM_COUNT], struct arena *a);
