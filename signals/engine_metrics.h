/*
 * What the metrics of each kind of model server are called, and one page of
 * them read. Each engine is a table in signals/engines; nothing else names
 * one. A page is accepted or rejected as a whole: an impossible value, a
 * series given twice or a page without its two gauges is an error that names
 * it; what no decision needs may be impossible.
 *
 * The ranks of tensor, pipeline and expert parallelism work on the same
 * requests: series that differ in nothing else are one, the largest.
 */
#pragma once
#include "base/arena.h"
#include "signals/exposition.h"

#define ENGINE(id, name, image, slots) ENGINE_##id,
#define METRIC(...)
enum engine {
#include "signals/engines/all.def"
	ENGINE_COUNT
};
#undef ENGINE
#undef METRIC

enum engine_quantity {
	ENGINE_RUNNING,		/* gauge: sequences running */
	ENGINE_WAITING,		/* gauge: requests that wait for a slot */
	ENGINE_WAITING_OUTSIDE, /* gauge: requests that wait in front of the engine, told apart from those in it */
	ENGINE_KV_CACHE,	/* gauge: share of the KV cache in use, 0 to 1 */
	ENGINE_PREFIX_SHARE,	/* gauge: share of prompt tokens found in the prefix cache, 0 to 1 */
	ENGINE_LOAD_TIME,	/* gauge: seconds that loading the weights took */
	ENGINE_STARTUP_TIME,	/* gauge: seconds from the server's start until it could serve */
	ENGINE_AWAKE,		/* gauge: 0 where the server sleeps and starts no request */
	ENGINE_DISCARDED,	/* gauge: 0 where a server that sleeps keeps its weights in host memory */
	ENGINE_LEVELS_LATE, /* gauge of any value: where it is shown, levels may be missing until a request finished */
	ENGINE_STARTED,	    /* counter, the first: requests that took a slot */
	ENGINE_WAITED,	    /* counter: requests whose wait is in ENGINE_WAIT_BUCKET */
	ENGINE_WAIT_BUCKET, /* histogram of the queue wait, by "le" in seconds */
	ENGINE_COMPLETED,   /* counter: requests finished */
	ENGINE_PROMPT_TOKENS,	   /* counter */
	ENGINE_OUTPUT_TOKENS,	   /* counter */
	ENGINE_LATENCY_SUM,	   /* counter: seconds between output tokens */
	ENGINE_LATENCY_COUNT,	   /* counter: of them */
	ENGINE_REFUSED,		   /* counter: requests turned away because the server is full */
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
	/* Only series with this label and value, "": without it or with it empty; NULL: all. */
	const char *label, *value;
	bool is_largest; /* the largest of the series, not their sum */
};

struct engine_metrics {
	const struct engine_metric *rows;
	size_t count; /* at most ENGINE_ROWS */
};

enum { ENGINE_ROWS = EXPOSITION_NAMES };

struct engine_metrics engine_metrics(enum engine engine);
/* What a pod of it looks like. */
struct engine_traits {
	const char *name;	  /* as signals.engine of the manifest has it */
	const char *image;	  /* a word of its images */
	const char *slots_option; /* the argument that says how many sequences a replica runs; NULL: none */
};
struct engine_traits engine_traits(enum engine engine);
const char *engine_quantity_name(enum engine_quantity quantity); /* for messages: "running requests" */

enum { PAGE_SERIES = 20000, PAGE_MOST_REQUESTS = 1000000 };
#define PAGE_BYTES     ((size_t)2 << 20)
#define PAGE_UNBOUNDED INT64_MAX

/* Of an engine, made once: its rows, their different names, and which of them each row has. */
struct page_table {
	struct engine_metrics metrics;
	const char *names[ENGINE_ROWS];
	size_t name_of_row[ENGINE_ROWS];
	size_t name_count;
};

/* Of the rows in `custom`, which are copied to the arena, or without them (NULL) of the engine. */
struct page_table page_table_make(enum engine engine, const struct engine_metrics *custom, struct arena *a);

struct page_series {
	uint64_t id;   /* of its row and labels */
	int64_t value; /* thousandths; microseconds of a sum of seconds */
	int64_t le_us; /* of a bucket: its upper bound, PAGE_UNBOUNDED for the last */
	size_t row;
};

/* Of a server, by its metric; the levels are those of vLLM. It tells of both ends, not of the ways between them. */
enum engine_sleep {
	SLEEP_NONE,	 /* awake, or it does not tell */
	SLEEP_OFFLOADED, /* level 1: the weights are in host memory */
	SLEEP_DISCARDED, /* level 2: the weights are gone, and must be loaded again */
	SLEEP_UNTOLD	 /* asleep, on a level that it does not tell */
};

struct page_content {
	const struct page_table *table;
	int64_t running, waiting; /* requests */
	int64_t kv_permille;	  /* INT64_MIN when not told; so are the next three */
	int64_t prefix_permille;  /* prompt tokens found in the prefix cache */
	int64_t load_ms, startup_ms;
	enum engine_sleep sleep;
	int64_t stamp; /* the last time that a level carries, in whatever unit; INT64_MIN: none does */
	int rank[ENGINE_QUANTITY_COUNT]; /* of the name that counts, -1 without */
	struct page_series *series;	 /* of the counters and buckets, by id; the owner frees */
	size_t series_count;
};

void page_content_release(struct page_content *c);

/* A number as the quantity may have it, in the unit of struct page_series; shares in millionths. */
bool page_value(enum engine_quantity q, struct exposition_slice text, int64_t *out, struct error *e) MUST_USE;
/* A value that is no number, of what no decision needs: a share of nothing, for one. */
bool page_is_unknown(enum engine_quantity q, struct exposition_slice text);
/* The upper bound of a bucket, in microseconds or PAGE_UNBOUNDED. */
bool page_bound(struct exposition_slice le, int64_t *out, struct error *e) MUST_USE;

/* Fills in the gauges, from values as page_value() gives them; an impossible one counts as unknown. */
void page_take_levels(struct page_content *c, const int64_t value[ENGINE_STARTED],
		      const bool has_value[ENGINE_STARTED]);

void page_sort_series(struct page_series *series, size_t count); /* by id */

struct page;
struct page *page_open(const struct page_table *table); /* which must outlive it */
void page_close(struct page *p);			/* takes NULL */
bool page_feed(struct page *p, const char *bytes, size_t len, struct error *e) MUST_USE;
/* The end of the page; *out is the caller's from then on. ERROR_NOT_FOUND: a page of nothing that serves, without a
 * level and without a counter that counted. */
bool page_finish(struct page *p, struct page_content *out, struct error *e) MUST_USE;
size_t page_bytes(const struct page *p); /* fed until now */

/* A table of names that the manifest gives. What can be named, in the order of the manifest's signals.metrics. */
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
	CUSTOM_REFUSED,
	CUSTOM_COUNT
};

/* Names as base/metric_name.h has them, NULL: not told. Lives in the arena. */
struct engine_metrics custom_metrics(const char *const names[CUSTOM_COUNT], struct arena *a);
