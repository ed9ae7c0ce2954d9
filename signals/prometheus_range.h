/*
 * The readings that a pool would have had, from a range of what a Prometheus
 * server has kept. Asked in pieces of fewer than PROMETHEUS_POINTS steps, all
 * quantities at once; what fails for a while is asked again. A step in which
 * no replica was shown has no reading. Counters come from increase(), so
 * their sums are right, restarts included, and single steps are smoothed.
 */
#pragma once
#include "base/net/http.h"
#include "signals/http_auth.h"
#include "signals/prometheus.h"
#include "signals/pool_reading.h"

struct prometheus_range_settings {
	const char *url; /* everything is copied */
	struct http_auth_settings reach;
	enum engine engine;
	const struct engine_metrics *custom; /* in place of the engine's; must outlive it. NULL: none */
	const struct promql_label *labels;
	size_t label_count;
	int64_t objective_us;
	millis from, to, step; /* step > 0 */
	millis interval; /* at which the server reads the replicas; counters are taken over four of them or a step */
};

struct prometheus_range_report {
	int64_t readings, missing; /* steps with a reading, and without */
	int64_t refused;	   /* values that cannot be, left out */
	struct error partial;	   /* why a quantity is not told at all; ERROR_NONE: all are */
	char warning[200];	   /* the first that the server gave, or "" */
};

struct prometheus_range;
struct prometheus_range_events {
	/* In the order of time; r->at ends the step. Ready replicas that were not read are known by kube-state-metrics.
	 */
	void (*on_reading)(void *user, const struct pool_reading *r);
	/* Once, from the loop: all was told, or why not. The range is freed after it. */
	void (*done)(void *user, const struct prometheus_range_report *report, const struct error *e);
	void *user;
};

void prometheus_range_start(struct loop *loop, struct http *http, const struct prometheus_range_settings *s,
			    const struct prometheus_range_events *events);

/* The same queries for a person to paste, each under a comment that names it. */
void prometheus_range_print(const struct prometheus_range_settings *s, struct buf *out);
