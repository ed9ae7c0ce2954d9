/*
 * What a pool's model servers, external queue and GPUs report: the sources
 * that its manifest names, and what was read since the last tick.
 */
#pragma once
#include "base/arena.h"
#include "controller/cluster/pod.h"
#include "controller/policy/snapshot.h"
#include "controller/web/published.h"
#include "signals/external_queue.h"
#include "signals/device.h"
#include "signals/pool_reading.h"
#include "signals/source.h"

struct controller;
struct http_auth;
struct live_pool;

enum { STAGE_TIMES_KEPT = 64 };

/* The last measured durations of a stage; the policy learns from the same events on its own. Zeroed at first. */
struct stage_times {
	millis last[STAGE_TIMES_KEPT]; /* a ring */
	int64_t count;		       /* all that were seen */
};

/* What model servers tell beside what decisions need, over the last HISTOGRAM_MINUTES minutes: for metrics and people.
 * Zeroed at first. */
struct server_stats {
	struct histogram_window wait, first_token;
	struct prefix_minute {
		int64_t minute, queries, hits;
	} prefix[HISTOGRAM_MINUTES];
	millis more_at; /* of the last reading that told more; 0: none */
	int64_t prefix_permille, load_ms, startup_ms;
};

struct pool_signals {
	struct source *source;	       /* of readings; NULL: its pods are the work */
	struct external_queue *queue;  /* outside of its replicas; NULL: none */
	struct device_source *devices; /* NULL: none; of another pool, too, unless owned */
	bool owns_devices;
	struct scrape_input scrapes[SCRAPES_MAX];
	size_t scrape_count;
	int64_t queued; /* of the last look at the queue; ABSENT: not known */
	int64_t expected, fresh, disputed, itl_sum, itl_count, kv_sum, kv_count;
	int64_t last_expected, last_fresh, last_disputed; /* of the last reading, of whatever tick */
	bool has_heard;					  /* there was one */
	int64_t in_flight, waiting;			  /* of the last one that knew: requests on all replicas */
	int64_t started_ever;				  /* requests, since the process began */
	struct server_stats server;
};

/* Readings of the past that are told again in place of reading any. */
struct recording {
	millis since; /* clock_mono, when its first reading was due; 0: not yet */
	size_t over;  /* pools whose last recorded reading was told */
};

void pool_signals_open(struct controller *c, size_t pool); /* with whom it shares its devices, if anybody */
/* Another pool that shares its devices goes on with them. */
void pool_signals_close(struct controller *c, struct live_pool *p);
/* Tells the sources which pods there are. */
void pool_signals_targets(struct controller *c);
/* What was read is recorded: sums begin anew. */
void pool_signals_taken(struct controller *c);
/* A tick was not recorded: the next one counts what came by then, and who was heard since this one. */
void pool_signals_passed_over(struct controller *c);
/* Long ago: what was read is recorded yet, and is no evidence any more. */
void pool_signals_aged(struct controller *c);
/* The readings of a pool whose pods are the work, as its groups show them. */
void pool_signals_of_work(struct live_pool *p, const struct group_input *groups, size_t count);
/* A reading of the pool's replicas; `pool` is a struct live_pool. */
void pool_signals_reading(void *pool, const struct pool_reading *r);
/* Another number of requests waits outside of the replicas: a share decides on it at once. */
void pool_signals_queued(struct controller *c, size_t pool);
/* Requests in flight at a replica and how old that is; false when it is not known. */
bool pool_signals_in_flight(const struct controller *c, size_t pool, const struct pod *p, struct arena *a,
			    int64_t *count, millis *age);
/* What its last page told, however the round stands. */
enum pod_sleep pool_signals_sleep(const struct controller *c, size_t pool, const struct pod *p, struct arena *a);
/* The server in a pod, to be called; http_auth_close() it. */
struct http_auth *pool_signals_server(const struct controller *c, size_t pool, const struct pod *p);
/* How often its replicas are read. */
millis pool_signals_interval(const struct controller *c, size_t pool);
/* What the GPUs of a pool tell. */
void pool_signals_devices(const struct controller *c, size_t pool, struct published_devices *out, struct arena *a);

void stage_times_add(struct stage_times *t, millis duration);
/* Of those kept, by nearest rank; samples 0 without any. */
struct published_stage stage_times_show(const struct stage_times *t);
/* The stages that ended in a tick, into one ring a stage. */
void stage_times_note(struct stage_times stages[STAGE_COUNT], const struct pool_snapshot *s);

void server_stats_note(struct server_stats *s, const struct pool_reading *r);
/* A sentence with its remedy when the start that the servers tell and the measured stage are far apart; else NULL. */
const char *server_stats_load_differs(const struct server_stats *s, const struct stage_times *measured,
				      struct arena *a);
void server_stats_publish(const struct server_stats *s, millis now, struct published_serving *out);
