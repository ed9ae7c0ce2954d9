/*
 * The live controller: keeps the model of the cluster and the cloud's groups,
 * decides each tick with the same policy as the simulator, writes the
 * decision down, and brings cluster and cloud there. One of several
 * replicas leads; the others follow its history and are ready to go on.
 */
#pragma once
#include "controller/loop/retention.h"
#include "controller/manifest/manifest.h"
#include "controller/web/published.h"
#include "signals/pool_reading.h"
#include "state/replica.h"

struct api;
struct controller;
struct http;
struct loop;
struct otlp;

/* What model servers said in the past, to be told again in place of reading any. */
struct recorded_pool {
	const char *key; /* NAMESPACE/NAME */
	const struct pool_reading *readings;
	size_t count;
};

struct recorded_signals {
	struct recorded_pool *pools;
	size_t count;
	millis begun; /* the first reading of all */
};

struct controller_settings {
	struct loop *loop;
	struct http *http;
	struct api *api;
	const struct clock *clock;
	const struct manifest *manifest; /* of files; may have no pools when objects are watched */
	bool watches_objects;		 /* WarmPools in the API server, beside the files */
	const char *pool_selector;	 /* only those with such labels; NULL: all */
	const char *history_path;
	const char *version;
	const char *run; /* what the history is of: "run --follow ..." */
	millis interval; /* of ticks, of the clock */
	struct retention retention;
	bool is_dry_run;
	bool only_records; /* in a dry run: clouds are not asked, machines are the nodes of a group */
	const struct recorded_signals *recorded; /* NULL: replicas are read */
	void (*on_recording_over)(void *user);	 /* the last reading of all pools was told */

	bool elects;
	const char *namespace; /* of the Lease and of events on nodes */
	const char *lease;     /* its name */
	const char *identity;  /* of this replica */
	const char *pod_ip;    /* where other pods reach this one; "" where nobody said */
	const char *address;   /* where followers find controller_export(), ending in a query; "" for none */
	millis lease_duration, lease_renew, lease_retry; /* 0: 15, 10, 2 s */

	struct otlp *traces; /* where spans go; NULL: nowhere */
	uint64_t trace_seed; /* of their ids: another for each cluster */

	/* The published value changed: a tick is over, or the role is another. */
	void (*on_publish)(void *user, const struct published *p);
	/* It cannot go on: the history cannot be written, or nothing may be watched. */
	void (*on_failure)(void *user, const struct error *e);
	void *user;
};

/* Whether this program can run these pools, or with `only_records` watch them: what a simulation does not need is
 * there, and the clouds are known to it. False with the first reason in `e` (ERROR_INVALID) and those about keys in
 * `f`. */
bool controller_accepts(const struct manifest *m, bool only_records, struct findings *f, struct error *e) MUST_USE;

/* Starts to watch and, when it leads, to decide. NULL on failure. */
struct controller *controller_open(const struct controller_settings *s, struct error *e) MUST_USE;
const struct published *controller_published(const struct controller *c);
/* What a follower does not have yet (state/replica.h), while we lead; *last: the newest tick. ERROR_UNAVAILABLE when we
 * do not lead. */
bool controller_export(struct controller *c, const struct replica_tail *at, struct buf *out, int64_t *last,
		       struct error *e) MUST_USE;
/* Ends all calls and gives the lease back; `closed` comes exactly once, from the loop. */
void controller_close(struct controller *c, void (*closed)(void *user), void *user);
