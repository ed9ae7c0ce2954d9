#include "controller/loop/tick.h"

#include "controller/loop/controller_state.h"
#include "controller/loop/metering.h"
#include "controller/loop/observe.h"
#include "controller/loop/status.h"
#include "controller/loop/trace.h"
#include "controller/restore/restore.h"
#include "state/reserve.h"

#include <string.h>
#include <time.h>

static const millis READY_POLL = 50; /* of the world, until the first decision can be made */

static const millis DRAIN_POLL = SECOND / 2;

/* --- the clock --- */

/* Less is a clock that is put right; more, and what waits would be given up, or never. */
static const millis BACK_MOST = MINUTE, FORTH_MOST = DAY;

static void note_time(struct controller *c)
{
	c->skew.at = clock_now(c->clock);
	c->skew.mono = clock_mono(c->clock);
}

/* What objects say of their times is of the clock as it is now: it means nothing beside ours. */
static void shift(struct controller *c, millis by, const char *why)
{
	c->skew.clock.ahead += by;
	cluster_ignore_stamps(c->cluster, true);
	log_warn("clock-not-followed", LOG_S("why", why), LOG_I("ahead_ms", c->skew.clock.ahead), LOG_END);
}

void clock_skew_begin(struct controller *c)
{
	millis behind = history_last_at(c->history) - clock_now(c->clock);

	if (behind > BACK_MOST)
		shift(c, behind, "the machine's clock is behind the history: is one of both wrong?");
	note_time(c);
}

void clock_skew_follow(struct controller *c)
{
	millis passed = clock_mono(c->clock) - c->skew.mono;
	millis jump = clock_now(c->clock) - c->skew.at - passed;

	if (jump < -BACK_MOST || jump > FORTH_MOST)
		shift(c, -jump, "the machine's clock jumped");
	note_time(c);
}

/* --- acting --- */

static void for_each(struct controller *c,
		     void (*step)(struct controller *, size_t, size_t, const struct group_decision *))
{
	for (size_t i = 0; i < c->plan.pool_count; i++)
		for (size_t k = 0; k < c->plan.pools[i].group_count; k++)
			if (fleet_of(c)->pools[i].mode == MODE_ACT)
				step(c, i, k, &c->plan.pools[i].groups[k]);
}

static void drive_groups(struct controller *c)
{
	for (size_t i = 0; i < fleet_of(c)->group_count; i++)
		node_group_drive(&c->groups[i]);
}

static bool groups_are_idle(const struct controller *c)
{
	for (size_t i = 0; c->groups && i < fleet_of(c)->group_count; i++)
		if (!node_group_is_idle(&c->groups[i]))
			return false;
	return true;
}

static const struct actor groups_actor = { .drive = drive_groups, .is_idle = groups_are_idle };

/* In the order of driving. */
enum { ACTORS = 7 };
static const struct actor *const actors[ACTORS] = { &interruptions_actor, &fallback_actor,	  &groups_actor,
						    &drains_actor,	  &machine_cancels_actor, &workload_scale_actor,
						    &headroom_actor };

void tick_act(struct controller *c)
{
	for (size_t k = 0; k < ACTORS; k++)
		if (actors[k]->renew)
			actors[k]->renew(c);
	for_each(c, scale_down);
	for_each(c, scale_up);
	for (size_t i = 0; i < c->plan.pool_count; i++)
		for (size_t k = 0; k < ACTORS; k++)
			if (actors[k]->want)
				actors[k]->want(c, i, c->plan.pools[i].decision.decided);
	idle_nodes_release(c);
	act_soon(c);
}

static void drive(struct timer *t)
{
	struct controller *c = t->user;

	c->tick.is_drive_due = false;
	if (!leader_may_act(c))
		return;
	if (c->targets_changed)
		pool_signals_targets(c);
	for (size_t k = 0; k < ACTORS; k++)
		if (actors[k]->drive && (c->has_decided || !actors[k]->needs_plan))
			actors[k]->drive(c);
	if (c->drains.first) /* they also wait for time to pass */
		timer_start(c->loop, &c->tick.drive, DRAIN_POLL, drive);
}

bool tick_is_quiet(const struct controller *c)
{
	for (size_t k = 0; k < ACTORS; k++)
		if (actors[k]->is_idle && !actors[k]->is_idle(c))
			return false;
	return true;
}

/* --- the tick --- */

static bool is_ready(const struct controller *c)
{
	bool all_known = true;

	for (size_t i = 0; i < fleet_of(c)->group_count; i++)
		all_known &= c->groups[i].is_known;
	return cluster_is_synced(c->cluster) && (all_known || loop_now(c->loop) - c->leader.since > FIRST_LOOK);
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

	clock_skew_follow(c);
	start_progress_check(c); /* reads the last plan, which lives in the arena */
	scale_up_tell_described(c);
	arena_clear(&c->tick.arena);
	millis before = c->snapshot.now;
	c->snapshot = observe_snapshot(c, &c->tick.arena);
	if (c->snapshot.now <= before)
		c->snapshot.now = before + 1; /* the wall's clock was set back */
	int64_t seen = microseconds();
	c->plan = policy_decide(&c->snapshot, c->memory, &c->tick.arena);
	published_time(&c->published.decide_time, microseconds() - seen);
	published_time(&c->published.tick_time, microseconds() - begun);
}

static void note_changes(struct controller *c)
{
	char trace[TRACE_ID_TEXT];
	bool is_traced = trace_id(c, trace);

	for (size_t i = 0; i < c->plan.pool_count; i++) {
		struct live_pool *p = &c->pools[i];
		const struct pool_decision *d = &c->plan.pools[i].decision;
		int64_t size = d->decided;
		p->requests.arrived += d->arrived == ABSENT ? 0 : d->arrived;
		p->requests.started += d->started == ABSENT ? 0 : d->started;
		p->requests.late += d->late == ABSENT ? 0 : d->late;
		p->is_blind = d->signals >= SIGNALS_STALE;
		stage_times_note(p->stages, &c->snapshot.pools[i]);
		if (size == p->change.size)
			continue;
		p->change.at = c->snapshot.now;
		p->change.from = p->change.size;
		p->change.to = p->change.size = size;
		log_info(c->settings.is_dry_run ? "would-change" : "decided", LOG_S("pool", fleet_of(c)->pools[i].name),
			 LOG_I("from", p->change.from), LOG_I("to", size),
			 LOG_S("held_by", limit_name((enum limit)d->held_by)),
			 is_traced ? LOG_S("trace_id", trace) : LOG_END, LOG_END);
	}
}

/* A little at a time, so that nothing waits for it; every tick while there is more, or a large fleet would outrun it.
 */
static void retain_some(struct controller *c)
{
	enum { ROWS_AT_ONCE = 500 };
	struct error e = { 0 };

	if (c->settings.retain <= 0 || (!c->tick.has_more_to_drop && c->tick.number % 20 != 0))
		return;
	if (!history_retain_some(c->history, c->snapshot.now - c->settings.retain, ROWS_AT_ONCE,
				 &c->tick.has_more_to_drop, &e))
		log_warn("history-not-thinned", LOG_E(&e), LOG_END);
}

/* A full disk is found before the tick that it would fail. */
static void tend_reserve(struct controller *c)
{
	enum { MADE_EVERY = 20 };
	const char *path = history_path(c->history);
	int64_t free_bytes = reserve_free(path);

	if (reserve_give_up(path, free_bytes)) {
		c->tick.has_more_to_drop = true; /* what is old enough makes room at once */
		log_error("history-disk-full", LOG_S("file", path), LOG_I("free_bytes", free_bytes),
			  LOG_S("why", "its reserve is given up, which lasts for some hours: make room"), LOG_END);
	} else if (c->tick.number % MADE_EVERY == MADE_EVERY - 1 && reserve_make(path, free_bytes)) {
		log_info("history-reserve-made", LOG_I("bytes", RESERVE_BYTES), LOG_END);
	}
}

static void run_tick(struct controller *c)
{
	int64_t begun = microseconds();
	struct error e = { 0 };

	c->published.tick_begun_mono = clock_mono(c->clock);
	tend_reserve(c);
	if (!restore_keep(c->history, c->memory, &e))
		log_error("memory-not-kept", LOG_E(&e), LOG_END);
	decide(c);
	metering_tick(c->metering, c);
	if (!history_append(c->history, &c->snapshot, &c->plan, &e)) {
		c->published.history_error = e;
		log_error("history-not-written", LOG_E(&e), LOG_END);
		c->settings.on_failure(c->settings.user, &e);
		return; /* what is not recorded is not done */
	}
	metering_taken(c->metering);
	c->tick.number++;
	c->has_decided = true;
	note_changes(c);
	tick_act(c);
	c->published.ticks++;
	c->published.tick_ended_mono = clock_mono(c->clock);
	publish_state(c);
	trace_tick(c, microseconds() - begun);
	events_of_tick(c);
	status_write(c);
	pool_signals_taken(c);
	starts_events_taken(&c->starts);
	retain_some(c);
}

static void fire(struct timer *t)
{
	struct controller *c = t->user;
	millis now = clock_mono(c->clock), interval = c->settings.interval;

	if (c->is_stopping || c->leader.state != STATE_LEADING)
		return;
	pool_signals_targets(c);
	if (!is_ready(c) || !leader_may_act(c)) {
		timer_start(c->loop, &c->tick.timer, READY_POLL, fire);
		return;
	}
	c->published.ticks_late += now - c->tick.due > interval;
	run_tick(c);
	if (c->is_stopping || c->leader.state != STATE_LEADING)
		return;
	c->tick.due += interval;
	if (c->tick.due < clock_mono(c->clock))
		c->tick.due = clock_mono(c->clock) + interval; /* slept, or was slow: no ticks are made up for */
	timer_start(c->loop, &c->tick.timer, clock_real(c->clock, c->tick.due - clock_mono(c->clock)), fire);
}

void tick_open(struct controller *c)
{
	c->tick.drive.user = c;
	c->tick.drive_now = drive;
}

void tick_start(struct controller *c)
{
	c->tick.timer.user = c;
	c->tick.due = clock_mono(c->clock);
	timer_start(c->loop, &c->tick.timer, 0, fire);
}

void tick_stop(struct controller *c)
{
	timer_stop(&c->tick.timer);
	timer_stop(&c->tick.drive);
	c->tick.is_drive_due = false;
	for (size_t k = 0; k < ACTORS; k++)
		if (actors[k]->stop)
			actors[k]->stop(c);
}
