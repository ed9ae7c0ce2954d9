/*
 * One page of a model server's metrics, as far as its engine's table asks
 * for it. Believed or refused as a whole: a value that cannot be, a series
 * told twice or a page without its two levels is an error that names it.
 */
#pragma once
#include "signals/engine.h"

enum { PAGE_SERIES = 20000, PAGE_MOST_REQUESTS = 1000000 };
#define PAGE_BYTES     ((size_t)2 << 20)
#define PAGE_UNBOUNDED INT64_MAX

/* Of an engine, made once. */
struct page_table {
	struct engine_metrics metrics;
	const char *names[ENGINE_ROWS];
	size_t name_of_row[ENGINE_ROWS];
	size_t name_count;
};

struct page_table page_table_make(enum engine engine);
struct page_table page_table_of(struct engine_metrics m); /* which must outlive it */

struct page_series {
	uint64_t id;   /* of its row and labels */
	int64_t value; /* thousandths; microseconds of a sum of seconds */
	int64_t le_us; /* of a bucket: its upper bound, PAGE_UNBOUNDED for the last */
	size_t row;
};

struct page_content {
	const struct page_table *table;
	int64_t running, waiting; /* requests */
	int64_t kv_permille;	  /* INT64_MIN when not told; so are the next three */
	int64_t prefix_permille;  /* prompt tokens found in the prefix cache */
	int64_t load_ms, startup_ms;
	int64_t stamp; /* the last time that a level carries, in whatever unit; INT64_MIN: none does */
	int rank[ENGINE_QUANTITY_COUNT]; /* of the name that counts, -1 without */
	struct page_series *series;	 /* of the counters and buckets, by id; the owner frees */
	size_t series_count;
};

void page_content_release(struct page_content *c);

/* A number as it is believed of the quantity, in the unit of struct page_series; shares in millionths.
 */
bool page_value(enum engine_quantity q, struct exposition_slice text, int64_t *out, struct error *e) MUST_USE;
/* A share of nothing, before the first request: no lie, and no decision needs it. */
bool page_is_unknown(enum engine_quantity q, struct exposition_slice text);
/* The upper bound of a bucket, in microseconds or PAGE_UNBOUNDED. */
bool page_bound(struct exposition_slice le, int64_t *out, struct error *e) MUST_USE;

/* Fills in what is shared or lasts, from values as page_value() gives them; what cannot be is not told. */
void page_tell_levels(struct page_content *c, const int64_t value[ENGINE_STARTED], const bool is_told[ENGINE_STARTED]);

struct page;
struct page *page_open(const struct page_table *table); /* which must outlive it */
void page_close(struct page *p);			/* takes NULL */
bool page_feed(struct page *p, const char *bytes, size_t len, struct error *e) MUST_USE;
/* The end of the page; *out is the caller's from then on. */
bool page_finish(struct page *p, struct page_content *out, struct error *e) MUST_USE;
size_t page_bytes(const struct page *p); /* fed so far */
