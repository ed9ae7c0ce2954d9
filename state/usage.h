/*
 * Who holds GPUs and quota without using them: quotas of namespaces hour by
 * hour, and pods that held GPUs for nothing, from when until when.
 */
#pragma once
#include "state/history.h"

/* --- writing: call before history_append(), as history_cost() --- */

/* A quota as it was seen for `elapsed` until `at`. GPUs are whole. */
struct quota_seen {
	const char *namespace, *name, *resource; /* "requests.nvidia.com/gpu" */
	int64_t hard, used;
};
void history_quota(struct history *h, millis at, millis elapsed, const struct quota_seen *q);

enum holding_kind {
	HOLDING_UNUSED,	   /* runs and does nothing with its GPUs */
	HOLDING_FINISHED,  /* has ended and is still there, with its request */
	HOLDING_OVERSIZED, /* asked for more GPUs than it ever used */
	HOLDING_KIND_COUNT
};
const char *holding_kind_name(enum holding_kind kind); /* "unused" */

struct holding {
	const char *uid; /* of the pod */
	enum holding_kind kind;
	millis since, until; /* known to have held; told again with a later `until` while it goes on */
	const char *namespace, *pod, *node;
	int64_t gpus_milli;	 /* that it asked for */
	int64_t used_most_milli; /* GPUs in use at once; ABSENT when nobody tells */
};
void history_holding(struct history *h, const struct holding *holding);
/* One that was told ended then. */
void history_holding_until(struct history *h, const char *uid, enum holding_kind kind, millis since, millis until);

/* --- reading --- */

struct quota_hour {
	int64_t hour; /* since 1970-01-01 00:00 UTC */
	const char *namespace, *name, *resource;
	int64_t watched_ms, hard, used_most; /* hard: of the last look */
	int64_t hard_gpu_ms, used_gpu_ms;
};
struct usage_filter {
	millis from, to;
	const char *namespace; /* NULL: all */
};
/* Hours that begin from `from` on and before `to`, in order of time and name, in the arena; empty for files of before.
 */
bool history_quota_hours(struct history *h, const struct usage_filter *f, struct arena *a, struct quota_hour **hours,
			 size_t *count, struct error *e) MUST_USE;
/* Those that held in that time, the longest first by GPU time. A pod that used nothing at all is unused, and one that
 * came to use all that it asked for is not oversized. */
bool history_holdings(struct history *h, const struct usage_filter *f, struct arena *a, struct holding **holdings,
		      size_t *count, struct error *e) MUST_USE;
