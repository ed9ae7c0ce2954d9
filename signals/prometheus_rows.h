/* Steps of a range, filled in quantity by quantity. Private to signals/prometheus_range.c. */
#pragma once
#include "signals/engine.h"
#include "signals/prometheus_answer.h"
#include "signals/prometheus_range.h"

enum { ROWS_EDGES = 100 }; /* of a histogram */
/* What a step is made of: the engine's quantities, replicas that were read, and that were ready. */
enum { ROWS_COUNT = ENGINE_QUANTITY_COUNT, ROWS_READY, ROWS_PARTS };

struct rows;
struct rows *rows_new(size_t steps, millis step, int64_t objective_us);
void rows_free(struct rows *r);
void rows_begin(struct rows *r, millis from); /* a piece; what was left below one request is kept */
/* A value of a part. One that cannot be is left out and counted. */
bool rows_take(struct rows *r, int part, const struct prometheus_sample *s, int64_t *refused, struct error *e) MUST_USE;
void rows_forget(struct rows *r, int part); /* in this piece */
void rows_tell(struct rows *r, millis to, struct prometheus_range_report *report,
	       const struct prometheus_range_events *events);
