/*
 * A day or a week of GPUs for a team: what its pools used, its quota, who
 * held GPUs for nothing, why requests were late. Told on a terminal, as JSON
 * for programs, or as one self-contained page.
 */
#pragma once
#include "controller/policy/cost.h"
#include "state/usage.h"

#include <stdio.h>

struct team_pool {
	const char *name, *namespace;
	enum pool_class class;
	struct cost_sums sums;
};

/* A stretch of the period, all pools together. */
struct team_slice {
	const char *label; /* "2024-05-10 08:00" */
	int64_t gpu_ms[GPU_STATE_COUNT];
};

struct team_report {
	const char *program, *source; /* "preheat 0.1.0", the history's file */
	const char *namespace;	      /* NULL: all */
	const char *period;	      /* "2024-05-10 08:00 to ..." */
	const char *from, *to;	      /* the same for programs, RFC 3339 */
	const struct team_pool *pools;
	size_t pool_count;
	struct cost_sums total;
	const struct team_slice *slices;
	size_t slice_count;
	const char *slice_name;		 /* how long each is: "hour" */
	const struct quota_hour *quotas; /* one a quota, over the period; hour is 0 */
	size_t quota_count;
	const struct holding *holdings; /* the largest first */
	size_t holding_count;
	const char *const *notes; /* sentences on what is missing */
	size_t note_count;
	const char *const *holding_since; /* one a holding, as people read it */
};

void team_report_print(const struct team_report *r, bool is_wide, FILE *out);
void team_report_json(const struct team_report *r, struct buf *out);
void team_report_page(const struct team_report *r, struct buf *out);
