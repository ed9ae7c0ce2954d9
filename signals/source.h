/*
 * Where a pool's readings come from: its replicas one by one
 * (signals/scrape.h), or a server that reads them already
 * (signals/prometheus_source.h). Whoever takes readings need not know.
 */
#pragma once
#include "base/clock.h"
#include "base/error.h"
#include "signals/engine_metrics.h"
#include "signals/pool_reading.h"

#include <stddef.h>
#include <stdio.h>

/* A replica that for so long answers without ever having told anything of its engine, or is ready and never listened,
 * is no server of it. Until then it may be one that is ready too early and still loads its model. */
#define SOURCE_MUTE_AFTER (5 * MINUTE)

/* A replica. Texts are borrowed for the call that takes them. */
struct source_target {
	const char *key; /* "namespace/name/uid"; another key is another replica */
	const char *namespace, *pod;
	const char *address; /* of the pod, without a port */
	const char *url;     /* of its metrics page */
	bool is_ready;	     /* may start requests. Others are read too, and only add what still runs there. */
	bool has_fallen;     /* runs on, and was ready or is on a node that drains: expected where no other is ready */
};

/* Of the round before; nothing to say is all zero. */
struct source_report {
	struct error trouble;  /* why a round told less than all of it; ERROR_NONE: it did not */
	char warning[200];     /* what the server said beside its answer; may be "" */
	millis read_at;	       /* clock_mono() of the last round in which anything was fresh; 0: none yet */
	int64_t rounds, blind; /* since it was opened; of them nothing was fresh though something was due */
};

/* What every source counts of a round; `now` is clock_mono(). */
static inline void source_count_round(struct source_report *report, const struct pool_reading *r, millis now)
{
	report->rounds++;
	report->blind += r->expected > 0 && !r->fresh;
	if (r->fresh)
		report->read_at = now;
}

/* Of those that are not waited for. */
static inline void source_warn_of_mute(struct source_report *report, int64_t mute)
{
	if (mute)
		snprintf(report->warning, sizeof report->warning,
			 "%lld ready pods refuse the connection or tell nothing of the engine; not waited for: "
			 "signals.podSelector names those that tell",
			 (long long)mute);
}

struct source;

struct source_ops {
	void (*close)(struct source *s);
	void (*set_targets)(struct source *s, const struct source_target *targets, size_t count);
	bool (*in_flight)(const struct source *s, const char *key, int64_t *count, millis *age);
	enum engine_sleep (*sleep)(const struct source *s, const char *key);
	struct source_report (*report)(const struct source *s);
};

/* What a source begins with. */
struct source {
	const struct source_ops *ops;
};

struct source_settings {
	const char *pool; /* for messages; copied */
	enum engine engine;
	const struct engine_metrics *custom;			      /* in place of the engine's; copied. NULL: none */
	millis interval;					      /* of the controller's clock, > 0 */
	int64_t objective_us;					      /* a longer queue wait is late */
	void (*on_reading)(void *user, const struct pool_reading *r); /* from the loop, once a round */
	void *user;
};

/* No reading comes from then on; calls in flight end by themselves. Takes NULL. */
static inline void source_close(struct source *s)
{
	if (s)
		s->ops->close(s);
}

/* All of them, in any order, each key once. New ones are read from now on, missing ones are forgotten. */
static inline void source_set_targets(struct source *s, const struct source_target *targets, size_t count)
{
	s->ops->set_targets(s, targets, count);
}

/* For choosing a victim: how much runs and waits there, and how old (ms) that is. False when nothing was ever told. */
static inline bool source_in_flight(const struct source *s, const char *key, int64_t *count, millis *age)
{
	return s->ops->in_flight(s, key, count, age);
}

/* As its last page that was read tells; SLEEP_NONE of one that was never read. */
static inline enum engine_sleep source_sleep(const struct source *s, const char *key)
{
	return s->ops->sleep(s, key);
}

static inline struct source_report source_report(const struct source *s)
{
	return s->ops->report(s);
}
