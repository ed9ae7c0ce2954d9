#include "controller/loop/tick.h"

#include "controller/loop/controller_state.h"
#include "controller/loop/fleet_change.h"
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

/* --- acting --- */

static void for_each(struct controller *c,
		     void (*step)(struct controller *, size_t, size_t, const struct group_decision *))
{
	for (size_t i = 0; i < c->plan.pool_count; i++)
		for (size_t k = 0; k < c->plan.pools[i].group_count; k++)
			if (pool_may_act(c, i))
				step(c, i, k, &c->plan.pools[i].groups[k]);
}

static void drive_groups(struct controller *c)
{
	for (size_t i = 0; i < fleet_of(c)->group_count; i++)
		node_group_drive(c->groups[i]);
}

static bool groups_are_idle(const struct controller *c)
{
	for (size_t i = 0; c->groups && i < fleet_of(c)->group_count; i++)
		if (!node_group_is_idle(c->groups[i]))
			return false;
	return true;
}

static const struct actor groups_actor = { .drive = drive_groups, .is_idle = groups_are_idle };

/* In the order of driving. */
enum { ACTORS = 11 };
static const struct actor *const actors[ACTORS] = { &interruptions_actor, &fallback_actor,	  &groups_actor,
						    &drains_actor,	  &machine_cancels_actor, &workload_scale_actor,
						    &headroom_actor,	  &activator_actor,	  &engine_moves_actor,
						    &prefetch_actor,	  &orders_told_actor };

void tick_act(struct controller *c)
{
	for (size_t k = 0; k < ACTORS; k++)
		if (actors[k]->renew)
			actors[k]->renew(c);
	for_each(c, scale_down);
	for_each(c, scale_up);
	for (size_t i = 0; i < c->plan.pool_count; i++)
		scale_up_rest(c, i);
	for (size_t i = 0; i < c->plan.pool_count; i++)
		for (size_t k = 0; k < ACTORS; k++)
			if (actors[k]->want)
				actors[k]->want(c, i, c->plan.pools[i].decision.decided);
	reservations_leave(c);
	idle_nodes_release(c);
	act_soon(c);
}

void tick_act_pool(struct controller *c, size_t pool)
{
	const struct pool_plan *p = &c->plan.pools[pool];

	if (!pool_may_act(c, pool))
		return;
	for (size_t k = 0; k < p->group_count; k++)
		scale_up(c, pool, k, &p->groups[k]);
	for (size_t k = 0; k < ACTORS; k++)
		if (actors[k]->want)
			actors[k]->want(c, pool, p->decision.decided);
}

bool tick_stood_still(const struct controller *c)
{
	return c->tick.is_hearing || (c->has_decided && timer_is_running(&c->tick.timer) &&
				      clock_mono(c->clock) - c->tick.next > c->settings.interval);
}

static void drive(struct timer *t)
{
	struct controller *c = t->user;

	c->tick.is_drive_due = false;
	if (!leader_may_act(c) || tick_stood_still(c)) /* the tick that comes first drives all */
		return;
	clock_skew_follow(c);
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

void tick_stop_pool(struct controller *c, size_t pool)
{
	for (size_t k = 0; k < ACTORS; k++)
		if (actors[k]->leave)
			actors[k]->leave(c, pool);
}

bool tick_has_left(const struct controller *c, size_t pool)
{
	for (size_t k = 0; k < ACTORS; k++)
		if (actors[k]->has_left && !actors[k]->has_left(c, pool))
			return false;
	return true;
}

/* --- the tick --- */

static bool is_ready(const struct controller *c)
{
	bool all_known = true;

	for (size_t i = 0; i < fleet_of(c)->group_count; i++)
		all_known &= c->groups[i]->is_known;
	/* Groups that came later are asked of while the others go on. */
	return cluster_is_synced(c->cluster) &&
	       (c->has_decided || all_known || loop_now(c->loop) - c->leader.since > FIRST_LOOK);
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
	start_progress_check(c);
	scale_up_tell_described(c);
	struct arena last = c->tick.arena;
	c->tick.arena = c->tick.spare;
	c->tick.spare = last;
	millis before = c->snapshot.now;
	c->snapshot = observe_snapshot(c, &c->tick.arena);
	if (c->snapshot.now <= before)
		c->snapshot.now = before + 1; /* the wall's clock was set back */
	int64_t seen = microseconds();
	c->plan = policy_decide(&c->snapshot, c->memory, &c->tick.arena);
	arena_clear(&c->tick.spare);
	published_time(&c->published.decide_time, microseconds() - seen);
	published_time(&c->published.tick_time, microseconds() - begun);
}

void tick_note_size(struct controller *c, size_t pool)
{
	char trace[TRACE_ID_TEXT];
	bool is_traced = trace_id(c, trace);
	struct live_pool *p = c->pools[pool];
	const struct pool_decision *d = &c->plan.pools[pool].decision;

	if (d->decided == p->change.size)
		return;
	p->change.at = c->snapshot.now;
	p->change.from = p->change.size;
	p->change.to = p->change.size = d->decided;
	log_info(c->settings.is_dry_run ? "would-change" : "decided", LOG_S("pool", fleet_of(c)->pools[pool].name),
		 LOG_I("from", p->change.from), LOG_I("to", d->decided),
		 LOG_S("held_by", limit_name((enum limit)d->held_by)), is_traced ? LOG_S("trace_id", trace) : LOG_END,
		 LOG_END);
}

/* What does not add up adds up now and then. */
static const millis UNSURE_FOR = MINUTE;

static void note_changes(struct controller *c)
{
	for (size_t i = 0; i < c->plan.pool_count; i++) {
		struct live_pool *p = c->pools[i];
		const struct pool_decision *d = &c->plan.pools[i].decision;
		p->requests.arrived += d->arrived == ABSENT ? 0 : d->arrived;
		p->requests.started += d->started == ABSENT ? 0 : d->started;
		p->requests.late += d->late == ABSENT ? 0 : d->late;
		p->is_blind = d->signals >= SIGNALS_STALE;
		if (!runs_work(c, i) && d->signals == SIGNALS_PARTIAL)
			p->unsure_until = clock_mono(c->clock) + UNSURE_FOR;
		p->has_queue = !runs_work(c, i) && d->slots_milli > 0 && d->waiting_milli >= d->slots_milli;
		p->seen_at = c->snapshot.now;
		stage_times_note(p->stages, &c->snapshot.pools[i]);
		tick_note_size(c, i);
	}
}

/* A little at a time, so that nothing waits for it; every tick while there is more. */
static void thin_history(struct controller *c)
{
	enum { LOOKED_EVERY = 20 };

	if (c->tick.has_more_to_drop || c->tick.number % LOOKED_EVERY == 0)
		retention_thin(&c->settings.retention, c->history, c->snapshot.now, c->plan.pool_count,
			       &c->tick.has_more_to_drop);
}

/* The oldest ticks make room for those to come. */
static void make_room(struct controller *c)
{
	enum { ROWS_AT_ONCE = 2000 };
	struct error e = { 0 };

	if (!history_make_room(c->history, ROWS_AT_ONCE, &e))
		log_warn("history-not-thinned", LOG_E(&e), LOG_END);
}

static void note_full(struct controller *c, int64_t free_bytes, const char *why)
{
	log_error("history-disk-full", LOG_S("file", history_path(c->history)), LOG_I("free_bytes", free_bytes),
		  LOG_S("why", why), LOG_END);
}

/* A full disk is found before the tick that it would fail, where it tells. */
static void tend_reserve(struct controller *c)
{
	enum { MADE_EVERY = 20 };
	const char *path = history_path(c->history);
	int64_t free_bytes = reserve_free(path);

	/* Its reserve may be given up already, and taken by others. */
	bool is_low = free_bytes >= 0 && free_bytes < RESERVE_BYTES + RESERVE_LOW && !reserve_is_there(path);
	if (is_low && !c->tick.is_disk_full)
		note_full(c, free_bytes, "its oldest ticks go, so that those to come find room: make room");
	c->tick.is_disk_full = is_low || c->tick.is_scarce;
	if (c->tick.is_disk_full)
		make_room(c);
	if (reserve_give_up(path, free_bytes)) {
		c->tick.is_disk_full = true;
		make_room(c);
		note_full(c, free_bytes, "its reserve is given up, which lasts for some hours: make room");
	} else if (c->tick.number % MADE_EVERY == MADE_EVERY - 1 &&
		   reserve_make(path, c->tick.is_scarce ? INT64_MAX : free_bytes)) {
		c->tick.is_scarce = false; /* room that was found, not told */
		log_info("history-reserve-made", LOG_I("bytes", RESERVE_BYTES), LOG_END);
	}
}

/* A quota does not show in the disk's free bytes, and others fill it between two looks. */
static void find_room(struct controller *c)
{
	const char *path = history_path(c->history);

	if (reserve_give_up(path, 0) || !c->tick.is_disk_full)
		note_full(c, reserve_free(path),
			  "a tick found no room: its reserve and its oldest ticks go; make room, or raise the quota");
	c->tick.is_scarce = c->tick.is_disk_full = true;
	make_room(c);
}

static bool append(struct controller *c, struct error *e)
{
	if (history_append(c->history, &c->snapshot, &c->plan, e))
		return true;
	if (!history_lacks_room(c->history))
		return false;
	find_room(c);
	return history_append(c->history, &c->snapshot, &c->plan, e);
}

/* As it was before the tick: kept where the disk was known to be full, else made anew as by the next leader. */
static struct policy_state *memory_before(struct controller *c, const struct buf *kept)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct restored found = { 0 };
	struct error e = { 0 };

	if (kept->len)
		return policy_state_decode(kept->text, kept->len, fleet_of(c), &e);
	if (!restore_memory(c->history, fleet_of(c), &a, &found, &e))
		return NULL;
	if (found.trouble.kind == ERROR_NONE)
		return found.memory;
	policy_state_free(found.memory);
	return NULL;
}

/* The memory is what it was before the tick that found no room, and the next one tries again. */
static bool take_back(struct controller *c, const struct buf *before)
{
	struct policy_state *memory = c->tick.is_disk_full ? memory_before(c, before) : NULL;

	if (!memory)
		return false;
	policy_state_free(c->memory);
	c->memory = memory;
	publish_state(c);
	return true;
}

/* What is not recorded is not done. */
static bool record(struct controller *c, const struct buf *before)
{
	struct error e = { 0 };

	if (append(c, &e)) {
		c->published.history_error = (struct error){ 0 };
		metering_taken(c->metering);
		return true;
	}
	c->published.history_error = e;
	log_error("history-not-written", LOG_E(&e), LOG_END);
	if (!take_back(c, before))
		c->settings.on_failure(c->settings.user, &e);
	return false;
}

static void run_tick(struct controller *c)
{
	CLEANUP(buf_release) struct buf before = { 0 };
	int64_t begun = microseconds();
	struct error e = { 0 };

	c->published.tick_begun_mono = clock_mono(c->clock);
	c->tick.is_hearing = false;
	act_soon(c);
	tend_reserve(c);
	if (!restore_keep(c->history, c->memory, &e))
		log_error("memory-not-kept", LOG_E(&e), LOG_END);
	if (c->tick.is_disk_full)
		policy_state_encode(c->memory, &before);
	decide(c);
	metering_tick(c->metering, c);
	if (!record(c, &before)) {
		pool_signals_passed_over(c);
		return;
	}
	waiting_keep(c);
	c->tick.number++;
	c->has_decided = true;
	starts_events_taken(&c->starts); /* what is refused from here on is told to the next one */
	waiting_taken(c);
	note_changes(c);
	tick_act(c);
	c->published.ticks++;
	c->published.tick_ended_mono = clock_mono(c->clock);
	publish_state(c);
	trace_tick(c, microseconds() - begun);
	events_of_tick(c);
	status_write(c);
	pool_signals_taken(c);
	thin_history(c);
}

/* Between two ticks: what was decided last is of the manifest before, and what is decided next of this one. */
static bool take_up_manifest(struct controller *c)
{
	struct error e = { 0 };

	if (!fleet_change_is_due(c) || fleet_change(c, &e))
		return true;
	c->published.history_error = e;
	log_error("manifest-not-taken-up", LOG_E(&e), LOG_END);
	if (c->leader.has_next && history_lacks_room(c->history)) {
		find_room(c); /* until then the one before goes on */
		return true;
	}
	c->settings.on_failure(c->settings.user, &e);
	return false;
}

/* Watches tell of minutes within moments. */
static const millis HEARS = 2 * SECOND;

static void fire(struct timer *t);

static void fire_after(struct controller *c, millis delay)
{
	c->tick.next = clock_mono(c->clock) + delay;
	timer_start(c->loop, &c->tick.timer, clock_real(c->clock, delay), fire);
}

/* It stood still, and nobody looked meanwhile: what was read before is old, and what was idle may have been used. */
static void hear_first(struct controller *c, millis still)
{
	c->published.ticks_late++;
	c->tick.is_hearing = true;
	idle_nodes_unwatched(c, still);
	pool_signals_aged(c);
	c->tick.due = clock_mono(c->clock) + HEARS;
	fire_after(c, HEARS);
}

static void fire(struct timer *t)
{
	struct controller *c = t->user;
	millis now = clock_mono(c->clock), interval = c->settings.interval;

	if (c->is_stopping || c->leader.state != STATE_LEADING)
		return;
	pool_signals_targets(c);
	if (!is_ready(c) || !leader_may_act(c)) {
		c->tick.next = now;
		timer_start(c->loop, &c->tick.timer, READY_POLL, fire);
		return;
	}
	if (clock_skew_is_wrong(c)) {
		leader_stop_acting(c, "its time is put right");
		return;
	}
	if (c->has_decided && now - c->tick.due > interval) {
		hear_first(c, now - c->tick.due);
		return;
	}
	if (!take_up_manifest(c))
		return;
	run_tick(c);
	if (c->is_stopping || c->leader.state != STATE_LEADING)
		return;
	c->tick.due += interval;
	if (c->tick.due < clock_mono(c->clock))
		c->tick.due = clock_mono(c->clock) + interval; /* slept, or was slow: no ticks are made up for */
	fire_after(c, c->tick.due - clock_mono(c->clock));
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
	c->tick.is_hearing = false;
	fire_after(c, 0);
}

void tick_stop(struct controller *c)
{
	timer_stop(&c->tick.timer);
	timer_stop(&c->tick.drive);
	c->tick.is_drive_due = false;
	waiting_taken(c);
	slots_stop(c);
	for (size_t k = 0; k < ACTORS; k++)
		if (actors[k]->stop)
			actors[k]->stop(c);
}
