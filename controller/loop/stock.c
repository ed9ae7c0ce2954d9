#include "controller/loop/stock.h"

#include "base/alloc.h"
#include "controller/loop/controller_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const millis PIECE = MINUTE; /* a slot that is needed for longer counts anew, so that each weighs by its time */

static const millis UNREAD_ENDS = 2 * MINUTE; /* an engine that tells nothing has ended its requests by then */

enum { OLD_DECISIONS = 4 }; /* so many readings without one: nothing is known of the share */

struct stock_source {
	struct source base; /* first */
	struct controller *c;
	struct source_settings settings;
	char share[260]; /* NAMESPACE/NAME */
	size_t pool;
	struct timer timer;
	struct source_report report;
	millis read; /* clock_mono() of the last reading that knew; 0: none yet */
	int64_t running, busy_ms;
	millis *since; /* clock_mono(); of slots that are needed and not there, the oldest first */
	size_t waiting, room;
};

static struct stock_source *of(const struct source *base)
{
	return (struct stock_source *)base;
}

/* --- a reading --- */

static void begin_one(struct stock_source *s, struct pool_reading *r, millis now)
{
	if (s->waiting) {
		r->late += (now - s->since[0]) * 1000 > s->settings.objective_us;
		memmove(s->since, s->since + 1, --s->waiting * sizeof *s->since);
	}
	r->started++;
}

/* Slots came to be used or are no more, and those that are used go on: of a gap in the readings nobody knows. */
static void count_pieces(struct stock_source *s, struct pool_reading *r, millis now)
{
	millis most = READING_GAP * s->settings.interval, since = now - s->read < most ? now - s->read : most;

	s->busy_ms += s->read ? s->running * since : 0;
	int64_t pieces = s->busy_ms / PIECE, running = r->running + r->running_draining;
	s->busy_ms -= pieces * PIECE;
	for (int64_t i = s->running; i < running; i++)
		begin_one(s, r, now);
	r->started += pieces;
	r->completed = pieces + (s->running > running ? s->running - running : 0);
	s->running = running;
}

/* Who waits no more without having come to a slot has gone: the youngest. */
static void count_waiting(struct stock_source *s, const struct pool_reading *r, millis now)
{
	size_t waiting = (size_t)r->waiting;

	while (s->waiting < waiting) {
		s->since = xgrow(s->since, s->waiting, &s->room, sizeof *s->since);
		s->since[s->waiting++] = now;
	}
	s->waiting = waiting;
}

static void fill(struct stock_source *s, const struct share_need *need, struct pool_reading *r, millis now)
{
	int64_t more;

	r->ready = need->ready;
	r->running = need->wanted < need->ready ? need->wanted : need->ready;
	more = need->wanted - r->running;
	r->running_draining = more < need->leaving ? more : need->leaving;
	r->waiting = more - r->running_draining;
	count_pieces(s, r, now);
	count_waiting(s, r, now);
	s->read = now;
}

/* What keeps the share's need from being known; ERROR_NONE: nothing. */
static struct error trouble_of(const struct stock_source *s, const struct share_need *need, millis now)
{
	millis old = OLD_DECISIONS * (need->interval > s->settings.interval ? need->interval : s->settings.interval);
	struct error e = { 0 };

	if (!need->at || now - need->at > old)
		error_set(&e, ERROR_UNAVAILABLE,
			  "nothing is known of share %s: no pool of the namespace has spec.share.name %s, or one that "
			  "does was not read yet",
			  s->settings.pool, s->settings.pool);
	else if (!need->may_act && pool_may_act(s->c, s->pool))
		error_set(&e, ERROR_UNAVAILABLE,
			  "a pool of share %s does not act, so no engine is moved onto other slots: give all of them "
			  "mode: act",
			  s->settings.pool);
	return e;
}

static void read_share(struct stock_source *s)
{
	millis now = clock_mono(s->c->clock);
	const struct share_need need = slots_need(s->c, s->share);
	struct pool_reading r = { .at = clock_now(s->c->clock),
				  .expected = need.pools ? need.pools : 1,
				  .full = READING_UNKNOWN,
				  .running_full = READING_UNKNOWN,
				  .inter_token_latency_us = READING_UNKNOWN,
				  .kv_cache_permille = READING_UNKNOWN };

	s->report.trouble = trouble_of(s, &need, now);
	r.fresh = s->report.trouble.kind == ERROR_NONE ? need.read : 0;
	if (r.fresh)
		fill(s, &need, &r, now);
	source_count_round(&s->report, &r, now);
	s->settings.on_reading(s->settings.user, &r);
}

static void on_timer(struct timer *t)
{
	struct stock_source *s = t->user;

	timer_start(s->c->loop, &s->timer, clock_real(s->c->clock, s->settings.interval), on_timer);
	read_share(s);
}

/* --- the source --- */

static void close_source(struct source *base)
{
	struct stock_source *s = of(base);

	timer_stop(&s->timer);
	free(s->since);
	free(s);
}

static void set_targets(struct source *base, const struct source_target *targets, size_t count)
{
	(void)base;
	(void)targets;
	(void)count;
}

/* Of the node, not of the pod that holds it: stock_in_flight(). */
static bool in_flight(const struct source *base, const char *key, int64_t *count, millis *age)
{
	(void)base;
	(void)key;
	(void)count;
	(void)age;
	return false;
}

static enum engine_sleep sleep_of(const struct source *base, const char *key)
{
	(void)base;
	(void)key;
	return SLEEP_NONE;
}

static struct source_report report(const struct source *base)
{
	return of(base)->report;
}

static const struct source_ops ops = { close_source, set_targets, in_flight, sleep_of, report };

struct source *stock_source_open(struct controller *c, size_t pool, const struct source_settings *settings)
{
	struct stock_source *s = xnew(struct stock_source);
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];

	s->base.ops = &ops;
	s->c = c;
	s->settings = *settings;
	s->pool = pool;
	s->timer.user = s;
	snprintf(s->share, sizeof s->share, "%s", c->pools[pool]->key);
	s->settings.pool = strchr(s->share, '/') ? strchr(s->share, '/') + 1 : spec->name;
	timer_start(c->loop, &s->timer, clock_real(c->clock, settings->interval), on_timer);
	return &s->base;
}

/* --- what engines do on a node --- */

static bool is_shared_engine(const struct controller *c, const struct pod *p)
{
	return p->pool >= 0 && !p->is_placeholder && pool_is_in_share(&fleet_of(c)->pools[p->pool]) &&
	       (p->state == POD_READY || p->state == POD_STARTED || p->state == POD_TERMINATING);
}

bool stock_in_flight(const struct controller *c, const struct node *n, struct arena *a, int64_t *count, millis *age)
{
	size_t pod_count;
	const struct pod **pods = cluster_node_pods(c->cluster, n, a, &pod_count);
	bool is_any = false;

	*count = *age = 0;
	for (size_t i = 0; i < pod_count; i++)
		for (const struct pod *p = pods[i]; p; p = p->beside) {
			int64_t running = 1; /* who was never read may work */
			millis old = 0;
			if (!is_shared_engine(c, p))
				continue;
			pool_signals_in_flight(c, (size_t)p->pool, p, a, &running, &old);
			*count += running;
			*age = old > *age ? old : *age;
			is_any = true;
		}
	return is_any;
}

/* Requests arrive until routes have followed its label, and are seen by the next reading. */
bool stock_engine_serves(const struct controller *c, const struct pod *p)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t pool = (size_t)p->pool;
	int64_t running = 0;
	millis age = 0, now = clock_now(c->clock);
	bool is_known = pool_signals_in_flight(c, pool, p, &a, &running, &age);

	if (running > 0)
		return true;
	if (p->state != POD_READY || !engine_moves_may(c, pool))
		return false; /* nobody here routes to it, or away */
	if (p->engine_label == POD_ENGINE_AWAKE)
		return true;
	millis seen = is_known ? now - age : now - UNREAD_ENDS;
	return p->engine == POD_ENGINE_FALLING_ASLEEP && seen < p->engine_since + pool_signals_interval(c, pool);
}

bool stock_serves(const struct controller *c, const struct node *n)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t count;
	const struct pod **pods = cluster_node_pods(c->cluster, n, &a, &count);

	for (size_t i = 0; i < count; i++)
		for (const struct pod *p = pods[i]; p; p = p->beside)
			if (is_shared_engine(c, p) && stock_engine_serves(c, p))
				return true;
	return false;
}
