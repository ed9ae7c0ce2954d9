/* How metrics are told; what the metrics_*.c files share. Private to this folder. */
#pragma once
#include "controller/web/metrics.h"

enum metric_type { METRIC_GAUGE, METRIC_COUNTER, METRIC_HISTOGRAM };

/* Where the samples of one metric go. */
struct metric_sink {
	const struct metric *metric;
	const struct published *shown;
	struct buf *out;
	bool has_head; /* HELP and TYPE are written with the first sample */
};

struct metric {
	const char *name;
	enum metric_type type;
	const char *labels; /* for the reference: "namespace, pool" */
	const char *help;
	void (*write)(struct metric_sink *s);
	/* For writers that serve several rows: which member, and by what power of ten it is smaller than the unit. */
	size_t offset;
	int digits;
};

struct metric_list {
	const char *title; /* of the section in the reference */
	const struct metric *metrics;
	size_t count;
};

#define METRIC_LIST(title_, rows)                                                             \
	{                                                                                     \
		.title = (title_), .metrics = (rows), .count = sizeof(rows) / sizeof(rows)[0] \
	}

extern const struct metric_list pool_metrics, signal_metrics, cost_metrics, group_metrics, loop_metrics,
	process_metrics;

struct metric_label {
	const char *name, *value; /* value NULL: left out */
};

enum { METRIC_LABELS = 6 };

/* A sample `value` / 10^`digits`; `labels` ends with a NULL name, and may be NULL. */
void metric_sample(struct metric_sink *s, const struct metric_label *labels, int64_t value, int digits);
/* A sample for each choice: 1 for the one that holds, else 0. `labels` as above; `label` takes the choices' names. */
struct metric_choices {
	const char *label;
	const char *(*name)(int64_t choice);
	int64_t count;
};
void metric_choice(struct metric_sink *s, const struct metric_label *labels, const struct metric_choices *c,
		   int64_t now);
/* A sample per counter, its labels under these names. */
void metric_counts(struct metric_sink *s, const struct published_counts *counts, const char *const names[3]);
void metric_times(struct metric_sink *s, const struct published_times *t);
/* A duration or a point in time (milliseconds) as seconds. */
void metric_seconds(struct metric_sink *s, const struct metric_label *labels, millis value);
