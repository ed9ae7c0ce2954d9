/*
 * The readings of a pool from its replicas themselves, round by round: a
 * round is an interval of the controller's clock, over which the metrics
 * pages of the replicas are requested one after another; it ends in one
 * reading, their sum, as soon as the last has answered or the interval is
 * over.
 *
 * A page is accepted or rejected as a whole. Rejected is one that comes late,
 * is too long, is malformed, lacks a required metric, or holds an impossible
 * value (NaN, negative, more than a machine can do). A replica whose page was
 * rejected is not fresh, adds nothing, and its error is reported and logged
 * once.
 *
 * Counters are kept series by series. One that is lower than before belongs
 * to a restarted server and counts from 0; a replica's first page gives
 * gauges and no differences; what a replica did while it was silent for
 * longer than READING_GAP intervals counts at its mean rate, one interval's
 * worth. A replica that is no longer a target is forgotten.
 */
#pragma once
#include "base/clock.h"
#include "base/net/http.h"
#include "signals/http_auth.h"
#include "signals/source.h"

struct scrape_source_settings {
	struct source_settings source;
	struct http_auth_settings reach; /* copied */
};

/*
 * `clock` must outlive it. The first round begins at once. Calls in flight when it is closed are cancelled and their
 * memory freed as they complete: run the loop until http_active() is 0 before http_close().
 */
struct source *scrape_source_open(struct loop *loop, struct http *http, const struct clock *clock,
				  const struct scrape_source_settings *settings);
