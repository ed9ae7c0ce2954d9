/*
 * The answers of Prometheus' HTTP API as they stream by (/api/v1/query and
 * query_range of Prometheus itself and of what speaks like it): samples one
 * by one, warnings, and errors with their reason. Nothing is kept of an
 * answer but the labels of the series at hand.
 */
#pragma once
#include "base/millis.h"
#include "signals/exposition.h"

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
/* Tells series of one answer apart: counts from 0. */
size_t prometheus_series_number(const struct prometheus_series *s);

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
/* Why the server refused, once its answer has said so; safe to show; else NULL. */
const char *prometheus_answer_reason(const struct prometheus_answer *a);
