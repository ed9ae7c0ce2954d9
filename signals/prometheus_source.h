/*
 * The readings of a pool from a Prometheus server. A round asks first when
 * each replica was read, then all quantities at that same instant, several
 * queries at once: one round is one reading, the same that reading the
 * replicas themselves would give within one scrape of the server's.
 *
 * A series belongs to the replica that its labels name: pod (and namespace),
 * or without these the host of instance. A replica that Prometheus reads at
 * two places (two jobs, two servers behind one Thanos) is taken from one.
 * One that it has read longer ago than READING_GAP intervals, by its own
 * clock, is not fresh, and neither is one whose numbers cannot be; what
 * could not be asked is not told. Ages and differences count in the server's time.
 */
#pragma once
#include "base/net/http.h"
#include "signals/http_auth.h"
#include "signals/prometheus.h"
#include "signals/source.h"

struct prometheus_source_settings {
	struct source_settings source;
	const char *url; /* copied, as is all of this */
	struct http_auth_settings reach;
	const struct promql_label *labels;
	size_t label_count;
};

/* `clock` must outlive it. The first round begins at once. */
struct source *prometheus_source_open(struct loop *loop, struct http *http, const struct clock *clock,
				      const struct prometheus_source_settings *settings);
