/*
 * The formats in which people have recordings, made into a trace. Rows out
 * of order are sorted; second 0 is the first arrival.
 */
#pragma once
#include "controller/traces/trace.h"

#include <stdint.h>

struct import_options {
	const char *from;   /* a name of import_formats, or "auto" */
	const char *values; /* of Prometheus series: "auto", "counter", "rate", "increase" */
};

struct import_report {
	const char *format;
	int64_t rows;	   /* read, dropped ones included */
	int64_t failed;	   /* dropped: requests without an answer */
	int64_t missing;   /* dropped: samples that are NaN or infinite */
	int64_t unsorted;  /* rows earlier than the one before, put in order */
	int64_t origin_us; /* what second 0 was, in the recording's own time */
	bool has_clock;	   /* origin_us counts from 1970 UTC */
	bool keeps_start;  /* the format has a second 0 of its own, which stays */
};

#define IMPORT_FORMATS "auto|azure|burstgpt|mooncake|vllm|prometheus|preheat"

/* Several files are read as one. "-" is standard input. */
bool trace_import(const char *const *paths, size_t count, const struct import_options *options, struct trace *out,
		  struct import_report *report, struct error *e) MUST_USE;
