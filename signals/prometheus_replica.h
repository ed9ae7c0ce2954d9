/* One replica as a Prometheus server shows it. Private to the source of readings. */
#pragma once
#include "signals/prometheus_answer.h"
#include "signals/round.h"
#include "signals/source.h"

struct prometheus_replica {
	char *key, *namespace, *pod, *address;
	bool is_ready;
	millis ready_at; /* clock_mono() at which we saw that first */

	/* Of the round under way. */
	uint64_t place; /* which of the places that it is read at counts; 0: none was shown */
	millis read_at; /* there, by the server's clock */
	bool is_fresh;
	struct error error; /* why it is not believed */
	int64_t level[ENGINE_STARTED];
	bool is_told[ENGINE_QUANTITY_COUNT];
	struct page_series *series;
	size_t count, room;

	/* Kept. */
	uint64_t place_before;
	bool has_content;
	struct page_content content; /* counters to subtract from; a rank is kept from when it was told last */
	millis content_at;	     /* by the server's clock */
	int64_t in_flight;
	millis known_at; /* clock_mono() of the content */
};

struct prometheus_replica *replica_new(const struct source_target *t);
void replica_free(struct prometheus_replica *r);
void replica_begin(struct prometheus_replica *r); /* a round */

/* Which place a series was read at, never 0. */
uint64_t replica_place(const struct prometheus_series *s);
/* It was read there at `read_at`; the place of before is kept while it is not older than `oldest`. */
void replica_seen(struct prometheus_replica *r, uint64_t place, millis read_at, millis oldest);
/* A value; of another place it is passed over. One that cannot be makes the replica one that is not believed. */
void replica_take(struct prometheus_replica *r, enum engine_quantity q, const struct prometheus_sample *sample,
		  size_t row);
/*
 * The end of the round: whether it is believed; r->error says why not. Adds what it did to the sums.
 * `asked`: quantities whose query was answered.
 */
bool replica_settle(struct prometheus_replica *r, const struct page_table *table,
		    const bool asked[ENGINE_QUANTITY_COUNT], const struct source_settings *s, struct round_sums *sums);

/* All replicas of a pool. Zeroed at first. */
struct replica_set {
	struct prometheus_replica **by_key, **by_pod, **by_address;
	size_t count;
};

/* Those that are in it stay as they are, missing ones are forgotten. `now`: clock_mono(). */
void replica_set_renew(struct replica_set *s, const struct source_target *targets, size_t count, millis now);
void replica_set_release(struct replica_set *s);
struct prometheus_replica *replica_set_find(const struct replica_set *s, const char *key);
/* Whose series it is, by pod and namespace, or else by the host of instance; NULL: of none. */
struct prometheus_replica *replica_set_owner(const struct replica_set *s, const struct prometheus_series *series);
