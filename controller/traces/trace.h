/*
 * Recorded or made-up traffic in memory: one request a row, or counts per
 * bin of time. Sorted by time. Owned by whoever made it; trace_release frees.
 */
#pragma once
#include "base/millis.h"

#include <stdbool.h>
#include <stddef.h>

struct request {
	millis arrival; /* since the start of the trace */
	int32_t prompt_tokens, output_tokens;
	int32_t label; /* index into trace.labels, -1 when the trace has none */
};

struct bin {
	millis at; /* start of the bin, since the start of the trace */
	int64_t requests, prompt_tokens, output_tokens;
};

struct trace {
	bool is_binned;
	struct request *requests; /* when not binned */
	size_t request_count;
	struct bin *bins; /* when binned */
	size_t bin_count;
	millis bin_width;
	millis length; /* end of the last second with traffic, or of the last bin */
	char **labels; /* texts of the fourth column, in order of first appearance */
	size_t label_count;
};

void trace_release(struct trace *t); /* takes a zeroed one */
