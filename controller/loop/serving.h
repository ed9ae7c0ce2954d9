/*
 * What the model servers of a pool tell beside what decisions need, over the
 * last HISTOGRAM_MINUTES minutes: for metrics and people.
 */
#pragma once
#include "base/arena.h"
#include "controller/loop/stage_times.h"
#include "controller/web/published.h"
#include "signals/pool_reading.h"

/* Zeroed at first. */
struct serving {
	struct histogram_window wait, first_token;
	struct serving_prefix {
		int64_t minute, queries, hits;
	} prefix[HISTOGRAM_MINUTES];
	millis more_at; /* of the last reading that told more; 0: none */
	int64_t prefix_permille, load_ms, startup_ms;
};

void serving_note(struct serving *s, const struct pool_reading *r);
/* A sentence with its remedy when the start that the servers tell and the measured stage are far apart; else NULL. */
const char *serving_load_differs(const struct serving *s, const struct stage_times *measured, struct arena *a);
void serving_publish(const struct serving *s, millis now, struct published_serving *out);
