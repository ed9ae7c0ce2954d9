/*
 * Metrics as servers show them: the Prometheus text format 0.0.4 and
 * OpenMetrics 1.0, as they stream by. Only samples whose name is in the
 * caller's table are looked at; every other line is passed over by its name.
 * Nothing is kept of a page but an unfinished line, so that no page costs
 * more than EXPOSITION_LINE bytes; lines, labels and samples are capped.
 */
#pragma once
#include "base/quantity.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { EXPOSITION_LINE = 16 * 1024, EXPOSITION_LABELS = 64, EXPOSITION_NAMES = 64 };

struct exposition_slice {
	const char *text; /* not NUL-terminated */
	size_t len;
};

struct exposition_sample {
	size_t name;			/* index into the table of names */
	struct exposition_slice labels; /* between the braces, as written and checked; empty without */
	struct exposition_slice value;	/* as written: exposition_value() */
	struct exposition_slice time;	/* as written (ms, in OpenMetrics seconds); empty without */
};

/* The slices live until it returns. False, with the error set, ends the page. */
typedef bool exposition_fn(void *user, const struct exposition_sample *sample, struct error *e);

/* At most EXPOSITION_NAMES full sample names ("vllm:request_queue_time_seconds_bucket"), all different. */
struct exposition_names {
	const char *const *names;
	size_t count;
};

struct exposition;

/* `names` is borrowed. `most` samples at most are told; one more is an error. */
struct exposition *exposition_open(struct exposition_names names, size_t most, exposition_fn *on_sample, void *user);
void exposition_close(struct exposition *x); /* takes NULL */
/* The next bytes, cut anywhere. Errors are ERROR_INVALID and name the line; nothing may be fed after one. */
bool exposition_feed(struct exposition *x, const char *bytes, size_t len, struct error *e) MUST_USE;
/* After the last bytes. A last line without its end is an error where any sample was told: the page was cut. */
bool exposition_finish(struct exposition *x, struct error *e) MUST_USE;

enum exposition_number {
	EXPOSITION_NUMBER,
	EXPOSITION_NAN,
	EXPOSITION_INFINITE, /* +Inf */
	EXPOSITION_NEGATIVE, /* below 0, -Inf too */
	EXPOSITION_HUGE,     /* beyond 10^17 units */
	EXPOSITION_NONSENSE,
};

/* A value in units of 10^-places, rounded (places 1 to 9). *out only for EXPOSITION_NUMBER. */
enum exposition_number exposition_value(struct exposition_slice value, int places, int64_t *out);
/* One label after the other: *at begins as NULL. Names and values as exposition_label() has them; false: no more. */
bool exposition_next_label(const struct exposition_sample *sample, const char **at, struct exposition_slice *name,
			   struct exposition_slice *value);
/* The value of a label without its quotes, escapes as written. False when the sample has no such label. */
bool exposition_label(const struct exposition_sample *sample, const char *name, struct exposition_slice *out);
