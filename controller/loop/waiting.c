#include "controller/loop/waiting.h"

#include "base/alloc.h"
#include "controller/loop/controller_state.h"
#include "controller/loop/metering.h"
#include "controller/loop/observe.h"
#include "controller/loop/status.h"
#include "controller/loop/trace.h"

#include <stdlib.h>
#include <string.h>

/* In the world's time. */
static const millis QUIET = SECOND / 5, LONGEST = SECOND;

/* What the next decision is told of stays what the last tick saw, with what was decided since. */
static void take_over(struct controller *c, const struct snapshot *was, const struct plan *before)
{
	struct plan now = c->plan;

	c->snapshot.pools = was->pools;
	c->snapshot.interval = was->interval;
	c->plan = *before;
	for (size_t i = 0; i < now.pool_count; i++) {
		if (!plan_asks(&now.pools[i]))
			continue;
		struct pool_decision d = c->plan.pools[i].decision;
		d.wished = now.pools[i].decision.wished;
		d.decided = now.pools[i].decision.decided;
		d.held_by = now.pools[i].decision.held_by;
		d.dollars_per_hour = now.pools[i].decision.dollars_per_hour;
		c->plan.pools[i].decision = d;
		c->plan.pools[i].groups = now.pools[i].groups;
	}
}

static bool record(struct controller *c)
{
	struct error e = { 0 };

	metering_tick(c->metering, c);
	if (!history_append(c->history, &c->snapshot, &c->plan, &e)) {
		log_error("history-not-written", LOG_E(&e), LOG_END);
		c->published.history_error = e;
		return false;
	}
	metering_taken(c->metering);
	c->tick.number++;
	return true;
}

static void act(struct controller *c, const struct plan *decided)
{
	for (size_t i = 0; i < decided->pool_count; i++)
		if (plan_asks(&decided->pools[i])) {
			tick_note_size(c, i);
			tick_act_pool(c, i);
		}
	for (size_t i = 0; i < decided->pool_count; i++)
		scale_up_rest(c, i);
	act_soon(c);
}

static bool asks(const struct plan *p)
{
	for (size_t i = 0; i < p->pool_count; i++)
		if (plan_asks(&p->pools[i]))
			return true;
	return false;
}

/* The arena is cleared by the next tick, so that its plan stays. */
static void decide(struct controller *c)
{
	const struct snapshot was = c->snapshot;
	const struct plan before = c->plan;

	clock_skew_follow(c);
	struct snapshot now = observe_between_ticks(c, &c->tick.arena);

	if (now.now <= was.now)
		now.now = was.now + 1;
	const struct plan decided = policy_decide(&now, c->memory, &c->tick.arena);
	if (!asks(&decided)) /* they find a place, or none would help */
		return;
	c->snapshot = now;
	c->plan = decided;
	if (!record(c)) { /* what is not recorded is not done */
		c->snapshot = was;
		c->plan = before;
		return;
	}
	c->waiting.has_decided = true;
	c->waiting.at = clock_mono(c->clock);
	trace_tick(c, 0);
	take_over(c, &was, &before);
	act(c, &decided);
	publish_state(c);
	events_of_tick(c);
	status_write(c);
}

static void fire(struct timer *t)
{
	struct controller *c = t->user;

	c->waiting.is_due = false;
	if (leader_may_act(c) && c->has_decided && !tick_stood_still(c) && cluster_is_synced(c->cluster) &&
	    !clock_skew_is_wrong(c) && !c->tick.is_disk_full)
		decide(c);
}

static bool is_unserved(const struct controller *c, const struct pod *p)
{
	return p->pool >= 0 && p->state == POD_UNSCHEDULED && p->is_looked_at && !p->is_placeholder && p->has_gpus &&
	       pool_may_act(c, (size_t)p->pool) && workload_scale_set(c, (size_t)p->pool) == ABSENT;
}

/* Else there are no pools. */
static bool leads(const struct controller *c)
{
	return c->leader.state == STATE_LEADING && !c->is_stopping;
}

void waiting_again(struct controller *c)
{
	struct waiting *w = &c->waiting;

	if (!leads(c))
		return;
	millis now = clock_mono(c->clock), due = now + QUIET;
	if (!w->is_due) {
		w->is_due = true;
		w->first = now;
	}
	if (w->has_decided && due < w->at + LONGEST)
		due = w->at + LONGEST;
	if (due > w->first + LONGEST)
		due = w->first + LONGEST;
	w->timer.user = c;
	timer_start(c->loop, &w->timer, clock_real(c->clock, due - now), fire);
}

static bool is_news(const struct controller *c, const struct cluster_event *e)
{
	return e->pod ? e->what != CLUSTER_POD_GONE && is_unserved(c, e->pod) : e->what == CLUSTER_NEEDED_READ;
}

void waiting_pod(struct controller *c, const struct cluster_event *e)
{
	if (leads(c) && is_news(c, e))
		waiting_again(c);
}

void waiting_taken(struct controller *c)
{
	timer_stop(&c->waiting.timer);
	c->waiting.is_due = false;
}

static const char GIVEN_UP[] = "given up";

void waiting_recall(struct controller *c)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct error e = { 0 };
	const char *text;

	cluster_forget_owners(c->cluster);
	free(c->waiting.kept);
	c->waiting.kept = NULL;
	if (!history_fact(c->history, GIVEN_UP, &a, &text, &e)) {
		log_error("given-up-not-recalled", LOG_E(&e), LOG_END);
		return;
	}
	c->waiting.kept = xstrdup(text);
	cluster_recall_given_up(c->cluster, arena_strdup(&a, text, strlen(text)), clock_now(c->clock));
}

void waiting_keep(struct controller *c)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const char *text = cluster_given_up(c->cluster, &a);
	struct error e = { 0 };

	if (strcmp(text, c->waiting.kept ? c->waiting.kept : "") == 0)
		return;
	if (!history_keep_fact(c->history, GIVEN_UP, text, &e)) {
		log_error("given-up-not-recorded", LOG_E(&e), LOG_END);
		return;
	}
	free(c->waiting.kept);
	c->waiting.kept = xstrdup(text);
}

void waiting_release(struct waiting *w)
{
	free(w->kept);
}
