#include "controller/loop/account.h"
#include "controller/loop/parts.h"

#include "controller/loop/trace.h"
#include "controller/recall/recall.h"

#include <string.h>
#include <time.h>

static const millis READY_POLL = 50; /* of the world, until the first decision can be made */

static bool is_ready(const struct controller *c)
{
	bool all_known = true;

	for (size_t i = 0; i < fleet_of(c)->group_count; i++)
		all_known &= c->groups[i].is_known;
	return cluster_is_synced(c->cluster) && (all_known || loop_now(c->loop) - c->led_since > FIRST_LOOK);
}

static int64_t microseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void decide(struct controller *c)
{
	int64_t begun = microseconds();

	time_follow(c);
	machines_check(c); /* reads the last plan, which lives in the arena */
	act_tell_described(c);
	arena_clear(&c->arena);
	millis before = c->snapshot.now;
	c->snapshot = observe(c, &c->arena);
	if (c->snapshot.now <= before)
		c->snapshot.now = before + 1; /* the wall's clock was set back */
	int64_t seen = microseconds();
	c->plan = policy_decide(&c->snapshot, c->memory, &c->arena);
	published_time(&c->published.decide_time, microseconds() - seen);
	published_time(&c->published.tick_time, microseconds() - begun);
}

static void count(int64_t *sum, int64_t more)
{
	*sum += more == ABSENT ? 0 : more;
}

static void count_requests(struct live_pool *p, const struct pool_decision *d)
{
	count(&p->arrived, d->arrived);
	count(&p->started, d->started);
	count(&p->late, d->late);
}

static void note_changes(struct controller *c)
{
	char trace[TRACE_ID_TEXT];
	bool is_traced = trace_id(c, trace);

	for (size_t i = 0; i < c->plan.pool_count; i++) {
		struct live_pool *p = &c->pools[i];
		int64_t size = c->plan.pools[i].decision.decided;
		count_requests(p, &c->plan.pools[i].decision);
		p->is_blind = c->plan.pools[i].decision.signals >= SIGNALS_STALE;
		stage_times_note(p->stages, &c->snapshot.pools[i]);
		if (size == p->published_size)
			continue;
		p->changed_at = c->snapshot.now;
		p->changed_from = p->published_size;
		p->changed_to = p->published_size = size;
		log_info(c->settings.is_dry_run ? "would-change" : "decided", LOG_S("pool", fleet_of(c)->pools[i].name),
			 LOG_I("from", p->changed_from), LOG_I("to", size),
			 LOG_S("held_by", limit_name((enum limit)c->plan.pools[i].decision.held_by)),
			 is_traced ? LOG_S("trace_id", trace) : LOG_END, LOG_END);
	}
}

static void tick(struct controller *c)
{
	int64_t begun = microseconds();
	struct error e = { 0 };

	c->published.tick_begun_mono = clock_mono(c->clock);
	if (!recall_keep(c->history, c->memory, &e))
		log_error("memory-not-kept", LOG_E(&e), LOG_END);
	decide(c);
	account_tick(c->account, c);
	if (!history_append(c->history, &c->snapshot, &c->plan, &e)) {
		c->published.history_error = e;
		log_error("history-not-written", LOG_E(&e), LOG_END);
		c->settings.on_failure(c->settings.user, &e);
		return; /* what is not recorded is not done */
	}
	account_taken(c->account);
	c->tick++;
	c->has_decided = true;
	note_changes(c);
	act(c);
	c->published.ticks++;
	c->published.tick_ended_mono = clock_mono(c->clock);
	publish(c);
	trace_tick(c, microseconds() - begun);
	events_of_tick(c);
	observe_taken(c);
	retain_some(c);
}

static void fire(struct timer *t)
{
	struct controller *c = t->user;
	millis now = clock_mono(c->clock), interval = c->settings.interval;

	if (c->is_stopping || c->state != STATE_LEADING)
		return;
	observe_targets(c);
	if (!is_ready(c) || !lead_may_act(c)) {
		timer_start(c->loop, &c->ticker, READY_POLL, fire);
		return;
	}
	c->published.ticks_late += now - c->due > interval;
	tick(c);
	if (c->is_stopping || c->state != STATE_LEADING)
		return;
	c->due += interval;
	if (c->due < clock_mono(c->clock))
		c->due = clock_mono(c->clock) + interval; /* slept, or was slow: no ticks are made up for */
	timer_start(c->loop, &c->ticker, clock_real(c->clock, c->due - clock_mono(c->clock)), fire);
}

void tick_start(struct controller *c)
{
	c->ticker.user = c;
	c->due = clock_mono(c->clock);
	timer_start(c->loop, &c->ticker, 0, fire);
}

void tick_stop(struct controller *c)
{
	timer_stop(&c->ticker);
	timer_stop(&c->soon);
	c->is_due_soon = false;
}
