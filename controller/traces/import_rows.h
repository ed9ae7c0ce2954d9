/* What the readers of all formats share: the source, and rows as they come. */
#pragma once
#include "controller/traces/import.h"
#include "controller/traces/trace.h"

#include "base/gzip.h"

struct prometheus;

struct import_rows {
	const struct import_options *options;
	struct request *rows; /* arrival in microseconds of the recording's own time */
	size_t count, room;
	struct labels labels;
	struct import_report *report;
	struct prometheus *series; /* instead of rows */
};

struct import_row {
	int64_t micros;
	int64_t prompt_tokens, output_tokens;
	int32_t label;
};

/* Counts the row and keeps it, or drops it when it is a failed request of a format that tells. */
bool import_add(struct import_rows *in, const struct import_row *row, struct error *e) MUST_USE;
void import_drop_failed(struct import_rows *in);

typedef bool import_fn(struct import_rows *in, struct gzip *source, struct error *e);

import_fn import_azure, import_burstgpt, import_preheat, import_mooncake, import_vllm, import_prometheus;

/* Whether the first bytes look like the format. */
typedef bool import_looks_fn(const char *bytes, size_t len);

import_looks_fn looks_azure, looks_burstgpt, looks_preheat, looks_mooncake, looks_vllm, looks_prometheus;

/* After the last file: the series as bins. */
bool prometheus_bins(struct prometheus *p, struct trace *out, struct import_report *report, struct error *e) MUST_USE;
void prometheus_free(struct prometheus *p); /* takes NULL */
