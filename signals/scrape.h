/*
 * Reads the metrics of all replicas of one pool, round by round: a round is
 * an interval of the controller's clock, over which the replicas are asked
 * one after another; it ends in one reading, their sum, as soon as the last
 * has answered or the interval is over.
 *
 * What a replica says is believed or refused as a whole. Refused is a page
 * that comes late, is too long, is malformed, lacks what the engine must
 * tell, or says what cannot be (NaN, less than nothing, more than a machine
 * can do). A replica whose page was refused is not fresh, adds nothing, and
 * says why in its state, and once in the log.
 *
 * Counters are kept series by series. One that is lower than before
 * belongs to a restarted server and counts from 0; a replica's first page
 * gives levels and no differences; what a replica did while it was silent
 * for longer than READING_GAP intervals counts at its mean rate, one
 * interval's worth. A replica that is no longer a target is forgotten.
 */
#pragma once
#include "base/clock.h"
#include "base/net/http.h"
#include "signals/engine.h"
#include "signals/reach.h"
#include "signals/reading.h"
#include "signals/source.h"

struct scraper;

struct scrape_settings {
	const char *pool; /* for messages; copied */
	enum engine engine;
	const struct engine_metrics *custom; /* in place of the engine's; copied. NULL: none */
	millis interval;		     /* of the controller's clock, > 0 */
	millis deadline;		     /* of one answer; 0 or not below the interval: half of it */
	int64_t objective_us;		     /* a longer queue wait is late */
	struct reach_settings reach;	     /* copied */
	void (*on_reading)(struct scraper *s, const struct pool_reading *r); /* from the loop, once a round */
	void *user;
};

struct scrape_target {
	const char *key; /* the pod, "namespace/name/uid"; another key is another replica */
	const char *url; /* http://ADDRESS:PORT/PATH */
	bool is_ready;	 /* may start requests. Others are read too, and only add what still runs there. */
};

/* `clock` must outlive it. The first round begins at once. */
struct scraper *scraper_open(struct loop *loop, struct http *http, const struct clock *clock,
			     const struct scrape_settings *settings);
/*
 * No reading comes from then on. Takes NULL. Calls in flight are cancelled and their memory freed as they complete:
 * run the loop until http_active() is 0 before http_close().
 */
void scraper_close(struct scraper *s);
/* All of them, in any order, each key once; copied. New ones are asked from now on, missing ones are forgotten. */
void scraper_set_targets(struct scraper *s, const struct scrape_target *targets, size_t count);
void *scraper_user(const struct scraper *s);
/* Does what is due by the clock. Its own timer calls it; a test that turns the clock by hand calls it then. */
void scraper_advance(struct scraper *s);
void scraper_set_objective(struct scraper *s, int64_t objective_us);

/* What is known of one replica. */
struct scrape_state {
	millis read_at;	    /* clock_mono() of the last page believed; 0: none yet */
	int64_t in_flight;  /* running and waiting in it */
	struct error error; /* of the last page; ERROR_NONE: it was believed, or none came yet */
	int64_t refused;    /* pages refused or missed since the last that was believed */
};

/* NULL when there is no such target. Valid until the loop runs or the targets change. */
const struct scrape_state *scraper_state(const struct scraper *s, const char *key);
/* For choosing a victim: how much runs and waits there, and how old (ms) that is. False when nothing was ever told. */
bool scrape_in_flight(const struct scraper *s, const char *key, int64_t *count, millis *age);

/* Why replicas that may start requests were not read last: how many, and why the first by its key was not, by name.
 * False: all were. */
bool scraper_trouble(const struct scraper *s, struct error *e);

struct scrape_counts {
	int64_t pages, bytes;		     /* believed */
	int64_t refused[ERROR_INTERNAL + 1]; /* by enum error_kind */
};
struct scrape_counts scraper_counts(const struct scraper *s); /* since it was opened */
/*
 * The edges of the queue-wait histogram around the objective, in microseconds; between them `late` is interpolated, so
 * an objective on an edge is exact. `above` is INT64_MAX beyond the last edge: waits past `below` all count as late.
 * False when no replica has shown the histogram yet.
 */
bool scraper_late_edges(const struct scraper *s, int64_t *below, int64_t *above);

/* The readings of a pool from its replicas themselves (signals/scrape.h), as a source. */

struct scrape_source_settings {
	struct source_settings source;
	struct reach_settings reach; /* copied */
};

/* `clock` must outlive it. The first round begins at once. */
struct source *scrape_source_open(struct loop *loop, struct http *http, const struct clock *clock,
				  const struct scrape_source_settings *settings);
