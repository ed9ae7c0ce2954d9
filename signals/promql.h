/*
 * The ready queries: what a pool's model servers are asked through
 * Prometheus, made from the engine's table of names, so that every engine has
 * them. Names that mean the same are joined with `or`, the best first. Pure.
 */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/millis.h"
#include "signals/engine.h"

struct promql_label {
	const char *name, *value;
};

/* What is asked about: the series of an engine that carry all of these labels. Borrowed. */
struct promql_scope {
	struct engine_metrics metrics;
	const struct promql_label *labels;
	size_t label_count;
};

/* A series of these labels is one place that Prometheus reads a replica at; one that is read twice shows by them. */
#define PROMQL_PLACE "namespace, pod, instance, job, prometheus, prometheus_replica"

/* Per place; buckets per le, too. False, with nothing written, when the engine does not tell the quantity. */
bool promql_now(const struct promql_scope *s, enum engine_quantity q, struct buf *out);
/* When each place was read, in seconds of the server's clock. */
void promql_read_at(const struct promql_scope *s, struct buf *out);

/*
 * Of the whole pool, for ranges: levels at an instant (the KV cache as mean), counters as what `step` added, by
 * increase() over `window`, at least `step`; a place that is read twice counts once. Buckets per le.
 */
bool promql_pool(const struct promql_scope *s, enum engine_quantity q, millis step, millis window, struct buf *out);
/* How many replicas were read. */
void promql_pool_count(const struct promql_scope *s, struct buf *out);

/* How many of those read within ten minutes kube-state-metrics calls ready; nothing where it is not read. */
void promql_pool_ready(const struct promql_scope *s, struct buf *out);

/* A label's value as it stands in quotes. */
void promql_text(const char *value, struct buf *out);
