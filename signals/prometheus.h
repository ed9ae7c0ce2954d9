/*
 * Questions to a Prometheus server, or to whatever answers its HTTP API
 * (Thanos, Mimir, VictoriaMetrics). One call is one query; several may be
 * under way at once. Whoever starts a call owns its memory until done(),
 * which comes exactly once, always from the loop and never inside the start.
 * Nothing is repeated here.
 */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/millis.h"
#include "signals/engine_metrics.h"
#include "signals/exposition.h"
#include "signals/http_auth.h"

/*
 * The answers of Prometheus' HTTP API as they stream by (/api/v1/query and
 * query_range of Prometheus itself and of what speaks like it): samples one
 * by one, warnings, and errors with their reason. Nothing is kept of an
 * answer but the labels of the series at hand.
 */

enum { PROMETHEUS_LABELS = 64, PROMETHEUS_LABEL_BYTES = 8 * 1024 };

struct prometheus_series;

struct prometheus_sample {
	const struct prometheus_series *series; /* NULL: a scalar */
	millis at;				/* of the evaluation, by the server's clock */
	struct exposition_slice value;		/* as written: exposition_value() */
};

/* What points into the sample lives until it returns. False, with the error set, ends the answer. */
typedef bool prometheus_fn(void *user, const struct prometheus_sample *sample, struct error *e);

/* The value of a label, NULL when the series has none. */
const char *prometheus_label(const struct prometheus_series *s, const char *name);
/* "{namespace="llm", pod="a"}", cut to what fits, control characters as \xNN; for messages. */
const char *prometheus_series_text(const struct prometheus_series *s, char *room, size_t size);

/* What stands beside the samples. */
struct prometheus_notes {
	int64_t samples, series, warnings, infos;
	char warning[200]; /* the first, safe to show */
};

struct prometheus_answer;
/* `most` samples at most are told; one more is an error. */
struct prometheus_answer *prometheus_answer_open(size_t most, prometheus_fn *on_sample, void *user);
void prometheus_answer_close(struct prometheus_answer *a); /* takes NULL */
/* The next bytes, cut anywhere. ERROR_INVALID: no such answer; nothing may be fed after an error. */
bool prometheus_answer_feed(struct prometheus_answer *a, const char *bytes, size_t len, struct error *e) MUST_USE;
/* After the last bytes. An answer with "status": "error" is an error of the kind that it names. */
bool prometheus_answer_finish(struct prometheus_answer *a, struct prometheus_notes *out, struct error *e) MUST_USE;

struct prometheus;

/* `url` as the manifest has it, a path in front of /api/v1 included; copied, as is what `reach` names. */
struct prometheus *prometheus_open(struct loop *loop, struct http *http, const char *url,
				   const struct http_auth_settings *reach);
void prometheus_close(struct prometheus *p); /* no call may be under way; takes NULL */
/* The URL without a user in it; for messages. */
const char *prometheus_url(const struct prometheus *p);

/* As Prometheus has it by default: a range with more points a series is refused. */
enum { PROMETHEUS_POINTS = 11000 };

struct prometheus_call {
	/* Filled in by the caller; must outlive the call. */
	const char *query;     /* PromQL */
	millis at;	       /* of an instant query; 0: the server's own now */
	millis from, to, step; /* step > 0: a range query instead, both ends included */
	millis timeout;	       /* > 0, in the world's time; the server is told of it, too */
	size_t most_samples, most_bytes;
	prometheus_fn *on_sample;
	void (*done)(struct prometheus_call *c); /* may start c anew, or free it */
	void *user;

	/*
	 * Valid inside done(). ERROR_NONE: all of it was told. Else what came before the error was told, too; the kind
	 * is that of the HTTP status, of the API's errorType, or of base/net/http.h; the message names the server and,
	 * where it gave one, its reason.
	 */
	struct error error;
	struct prometheus_notes notes;

	/* Private; zeroed at first. */
	struct prometheus *prometheus;
	struct http_request request;
	struct prometheus_answer *answer;
	struct http_auth_shown shown;
	struct buf url;
	struct timer refused;
	size_t bytes;
	bool is_active;
};

void prometheus_start(struct prometheus *p, struct prometheus_call *c);
void prometheus_cancel(struct prometheus_call *c); /* completes as ERROR_CANCELLED; nothing when it is not under way */

/*
 * The ready queries: what a pool's model servers are asked through
 * Prometheus, made from the engine's table of names, so that every engine has
 * them. Names that mean the same are joined with `or`, the best first. Pure.
 */

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
/* 1 where a pod answered the last scrape, whatever it told. */
void promql_answers(const struct promql_scope *s, struct buf *out);

/*
 * Of the whole pool, for ranges: levels at an instant (the KV cache as mean), counters as what `step` added, by
 * increase() over `window`, at least `step`; a place that is read twice counts once. Buckets per le.
 */
bool promql_pool(const struct promql_scope *s, enum engine_quantity q, millis step, millis window, struct buf *out);
/* How many replicas were read. */
void promql_pool_count(const struct promql_scope *s, struct buf *out);

/* How many replicas were read within `range`, by the labels that engines name their model with: a series a model. */
#define PROMQL_MODEL "model_name, model"
void promql_pool_models(const struct promql_scope *s, millis range, struct buf *out);

/* How many of those read within ten minutes kube-state-metrics calls ready; nothing where it is not read. */
void promql_pool_ready(const struct promql_scope *s, struct buf *out);

/* A label's value as it stands in quotes. */
void promql_text(const char *value, struct buf *out);
