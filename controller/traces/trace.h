/*
 * Recorded or made-up traffic in memory: one request a row, or counts per
 * bin of time. Sorted by time. Owned by whoever made it; trace_release frees.
 * Functions that fill a trace leave it untouched when they fail.
 */
#pragma once
#include "base/error.h"
#include "base/millis.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
	struct bin *bins; /* when binned; bins without traffic may be left out */
	size_t bin_count;
	millis bin_width;
	millis length; /* end of the last second with traffic, or of the last bin */
	char **labels; /* texts of the fourth column, in order of first appearance */
	size_t label_count;
};

/* What a trace may hold; beyond them input is refused. */
enum {
	TRACE_MAX_REQUESTS = 100000000,
	TRACE_MAX_BINS = 20000000,
	TRACE_MAX_LABELS = 4096,
	TRACE_MAX_LABEL_BYTES = 128,
	TRACE_MAX_TOKENS = 10000000, /* of one request, either way */
	TRACE_MAX_SCALED_REQUESTS = 60000000,
	TRACE_MAX_SCALE = 100000,
};
#define TRACE_MAX_LENGTH       (3660 * DAY)
#define TRACE_MAX_BIN_REQUESTS INT64_C(1000000000)
#define TRACE_MAX_BIN_TOKENS   INT64_C(1000000000000)

void trace_release(struct trace *t); /* takes a zeroed one */

/* Plain or .gz, "-" for standard input. The header says which form: "arrival_s,prompt_tokens,output_tokens[,class]"
 * or "t_s,n_req,prompt_tokens,output_tokens". Strict: errors name file, line, column, what was found and allowed. */
bool trace_read(const char *path, struct trace *out, struct error *e) MUST_USE;
/* The same form back, whole or not at all; "-" for standard output, compressed when the name ends in .gz. */
bool trace_write(const struct trace *t, const char *path, struct error *e) MUST_USE;

/* Counts per bin of `width`, which for a binned trace must be a multiple of its own. Labels are lost. */
bool trace_to_bins(const struct trace *in, millis width, struct trace *out, struct error *e) MUST_USE;

/* The requests of each label as a trace of its own, of the same length; `out` has room for label_count. ERROR_INVALID
 * for bins, and where a request has no label. */
bool trace_split(const struct trace *in, struct trace *out, struct error *e) MUST_USE;

struct trace_scaling {
	double k;      /* > 0; below 1 thins, above multiplies */
	bool jitter;   /* above 6: k/5 copies of 5, each shifted at random, instead of the correlated k */
	millis sigma;  /* of the jitter; 0: 60 s for traces up to two hours, else 300 s; at most the length */
	uint64_t seed; /* equal seeds give equal traces */
};

/* The traffic of a service k times as large. Keeps form, length and labels. */
bool trace_scale(const struct trace *in, struct trace_scaling how, struct trace *out, struct error *e) MUST_USE;

/* For those who build traces: by arrival, equal arrivals keep their order. */
void requests_sort(struct request *requests, size_t count);
/* End of the last second with traffic, or of the last bin. */
millis trace_end(const struct trace *t);

/* The texts of a label column, numbered in order of first appearance. */

struct labels {
	char **texts;
	size_t count;
	uint16_t *slots; /* hash table: index + 1, 0 for free */
	int32_t last;	 /* rows with the same label often follow each other */
};

/* Index of the text, added when new; -1 for an empty text, -2 when TRACE_MAX_LABELS are taken. */
int32_t labels_index(struct labels *l, const char *text, size_t len);
void labels_release(struct labels *l);
/* Hands the texts over and releases the rest. */
void labels_move(struct labels *l, struct trace *t);

/*
 * One cell of a table of traffic: a number with limits. A mistake becomes
 * "FILE:LINE: column NAME: found X; allowed: ...".
 */

struct cell {
	const char *text; /* not NUL-terminated */
	size_t len;
};

struct trace_column {
	const char *name;
	int places;   /* 3: seconds kept as milliseconds */
	int64_t most; /* in kept units */
	const char *allowed;
};

struct place {
	const char *file;
	int64_t line;
};

bool column_parse(const struct trace_column *c, struct place where, struct cell cell, int64_t *out,
		  struct error *e) MUST_USE;
/* False, for anything else that is wrong with a cell. */
bool column_error(const struct trace_column *c, struct place where, struct cell cell, struct error *e);
