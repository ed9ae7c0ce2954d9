#include "controller/loop/leader.h"

#include "controller/loop/controller_state.h"
#include "controller/loop/fleet_change.h"
#include "controller/loop/follower.h"
#include "controller/loop/objects.h"
#include "controller/loop/status.h"
#include "controller/restore/restore.h"

#include <string.h>

static const millis SETTLE_POLL = 20, SYNC_LOOK = 100, CHECKPOINTS = HOUR;
/* As a lease has it. */
static const millis AWAKE_POLL = 2 * SECOND, WRITE_TIME = 10 * SECOND;

/* The one place where acting is allowed and barred: for the API server and, by the context, for the providers. */
static void set_gate(struct controller *c, bool is_open, const char *why)
{
	bool may = is_open && !c->settings.is_dry_run;

	c->context.is_barred = !may;
	api_set_gate(c->api,
		     c->settings.is_dry_run ? API_GATE_SHUT
		     : may		    ? API_GATE_OPEN
					    : API_GATE_LEASE_ONLY,
		     c->settings.is_dry_run ? "dry run" : why);
}

static bool open_history(struct controller *c, struct arena *a, struct restored *found, struct error *e)
{
	const struct history_setup setup = { .path = c->settings.history_path,
					     .manifest = c->manifest.text,
					     .fleet = fleet_of(c),
					     .program = c->settings.version,
					     .policy = "preheat",
					     .run = c->settings.run,
					     .ticks_per_commit = 1,
					     .checkpoint_every = CHECKPOINTS };

	clock_skew_check(c);
	c->history = restore_resume(&setup, a, found, e);
	if (!c->history)
		return false;
	if (found->trouble.kind != ERROR_NONE)
		log_warn("memory-begins-anew", LOG_E(&found->trouble), LOG_END);
	policy_state_free(c->memory);
	c->memory = found->memory;
	log_info("history-recalled", LOG_I("next_tick", history_next_tick(c->history)), LOG_I("folded", found->folded),
		 LOG_END);
	c->tick.number = history_next_tick(c->history);
	c->tick.is_disk_full = c->tick.is_scarce = false;
	c->snapshot = (struct snapshot){ .now = history_last_at(c->history) };
	clock_skew_begin(c);
	return true;
}

static void close_history(struct controller *c)
{
	struct error e = { 0 };

	if (c->history && !history_finish(c->history, &e))
		log_error("history-not-closed", LOG_E(&e), LOG_END);
	c->history = NULL;
	c->context.history = NULL;
}

/* How many machines stood by at the last tick that had never run. */
static void recall_standby(struct controller *c, const struct restored *last)
{
	for (size_t i = 0; last->plan.pools && i < last->manifest->fleet.pool_count; i++) {
		const struct pool_spec *p = &last->manifest->fleet.pools[i];
		for (size_t j = 0; j < p->group_count; j++)
			for (size_t k = 0; k < fleet_of(c)->group_count; k++)
				if (!strcmp(fleet_of(c)->groups[k].name,
					    last->manifest->fleet.groups[p->groups[j]].name))
					c->groups[k]->recalled_first = last->snapshot.pools[i].groups[j].standby_first;
	}
}

/* --- the role --- */

static void begin(struct controller *c)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct restored found = { 0 };
	struct error e = { 0 };

	follower_pause(c);
	marks_leave(c);
	if (!open_history(c, &a, &found, &e) || !fleet_open(c, &e) || !fleet_adopt_operations(c, &e)) {
		fleet_close(c);
		close_history(c);
		log_error("cannot-lead", LOG_E(&e), LOG_END);
		c->settings.on_failure(c->settings.user, &e);
		return;
	}
	recall_standby(c, &found);
	waiting_recall(c);
	fleet_leave_former(c);
	c->leader.state = STATE_LEADING;
	set_gate(c, true, "");
	c->leader.since = loop_now(c->loop);
	for (size_t i = 0; i < fleet_of(c)->group_count; i++)
		node_group_look(c->groups[i]);
	pool_signals_targets(c); /* before the first round: a reading of nobody would look like no demand */
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		if (c->pools[i]->is_new)
			start_progress_adopt(c, NULL, i);
	drains_recall(c);
	marks_adopt(c);
	engine_moves_adopt(c);
	activator_adopt(c, c->history);
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		c->pools[i]->is_new = false;
	log_info("leading", LOG_S("identity", c->settings.identity), LOG_I("term", c->leader.term),
		 LOG_I("pools", (int64_t)fleet_of(c)->pool_count), LOG_B("dry_run", c->settings.is_dry_run), LOG_END);
	tick_start(c);
	publish_state(c);
}

static void use_next_manifest(struct controller *c)
{
	if (!c->leader.has_next)
		return;
	c->leader.has_next = false;
	arena_release(&c->fleet.manifest_arena);
	c->manifest = c->leader.next;
	c->fleet.manifest_arena = c->leader.next_arena;
	c->leader.next_arena = (struct arena){ 0 };
	fleet_tell_cluster(c);
}

/* What could not be recorded before is tried once more. */
static void forget_guards(struct controller *c)
{
	struct error e = { 0 };

	for (size_t i = 0; i < fleet_of(c)->group_count; i++)
		if (!node_group_forget_guard(c->groups[i], &e))
			log_error("protection-not-recorded", LOG_S("group", fleet_of(c)->groups[i].name), LOG_E(&e),
				  LOG_END);
}

static void settle(struct timer *t)
{
	struct controller *c = t->user;

	tick_stop(c);
	if (!status_is_idle(c) || !tick_is_quiet(c)) {
		timer_start(c->loop, &c->leader.timer, SETTLE_POLL, settle);
		return;
	}
	forget_guards(c);
	fleet_close(c);
	close_history(c);
	use_next_manifest(c);
	c->leader.state = STATE_FOLLOWING;
	follower_go_on(c);
	leader_go_on(c);
}

void leader_stop_acting(struct controller *c, const char *why)
{
	if (c->leader.state != STATE_LEADING)
		return;
	set_gate(c, false, why);
	tick_stop(c);
	for (size_t i = 0; i < fleet_of(c)->group_count; i++)
		node_group_stop(c->groups[i]);
	status_stop(c);
	log_info("stopped-acting", LOG_S("why", why), LOG_END);
	c->leader.state = STATE_SETTLING;
	c->leader.timer.user = c;
	timer_start(c->loop, &c->leader.timer, 0, settle);
	publish_state(c);
}

static void look_again(struct timer *t)
{
	leader_go_on(t->user);
}

void leader_go_on(struct controller *c)
{
	if (c->leader.state != STATE_FOLLOWING || c->is_stopping)
		return;
	use_next_manifest(c);
	bool is_synced = cluster_is_synced(c->cluster) && objects_are_synced(c);
	if (c->leader.may_lead && is_synced && fleet_of(c)->pool_count > 0) {
		begin(c);
		return;
	}
	if (c->leader.may_lead && is_synced) {
		set_gate(c, true, ""); /* those that are refused are still told so */
		if (marks_sweep_alone(c))
			activator_adopt(c, c->marks.history);
	} else if (c->leader.may_lead) {
		/* What is known of the cluster may be incomplete when the lease comes back after the API server was
		 * away. */
		c->leader.timer.user = c;
		timer_start(c->loop, &c->leader.timer, SYNC_LOOK, look_again);
	}
	publish_state(c);
}

const struct manifest *leader_manifest(const struct controller *c)
{
	return c->leader.has_next ? &c->leader.next : &c->manifest;
}

static void take_next(struct controller *c, const struct manifest *m, struct arena *held)
{
	arena_release(&c->leader.next_arena);
	c->leader.next = *m;
	c->leader.next_arena = *held;
	*held = (struct arena){ 0 };
	c->leader.has_next = true;
	if (c->leader.state == STATE_LEADING && m->fleet.pool_count > 0) {
		fleet_change_begin(c);
		return;
	}
	for (size_t i = 0; c->leader.state == STATE_LEADING && i < fleet_of(c)->group_count; i++)
		node_group_hand_over(c->groups[i]);
	leader_stop_acting(c, "the manifest changed");
}

void leader_use_manifest(struct controller *c, const struct manifest *m, struct arena *held)
{
	if (m)
		take_next(c, m, held);
	leader_go_on(c); /* it may have waited for these */
	if (!m || c->leader.state != STATE_LEADING)
		publish_state(c); /* else the next tick does, with what it takes up */
}

static bool may_take(void *user)
{
	return follower_may_lead(user);
}

static void won(void *user)
{
	struct controller *c = user;

	c->leader.may_lead = true;
	c->leader.term = lease_transitions(c->leader.lease);
	leader_go_on(c);
}

static void lost(void *user, const char *why)
{
	struct controller *c = user;

	c->leader.may_lead = false;
	set_gate(c, false, why);
	marks_leave(c);
	status_stop(c);
	leader_stop_acting(c, why);
}

static void holder_changed(void *user)
{
	publish_state(user);
}

/* Nobody else may lead. What was decided before the process stood still is not done after it all the same. */
static void stay_awake(struct timer *t)
{
	struct controller *c = t->user;
	millis now = loop_now(c->loop);

	for (size_t i = 0; c->leader.state == STATE_LEADING && now >= c->leader.until && i < fleet_of(c)->group_count;
	     i++)
		node_group_cut(c->groups[i]);
	c->leader.until = now + WRITE_TIME;
	api_set_until(c->api, c->leader.until);
	timer_start(c->loop, t, AWAKE_POLL, stay_awake);
}

bool leader_open(struct controller *c, struct error *e)
{
	const struct controller_settings *s = &c->settings;

	set_gate(c, false, "this replica does not lead");
	if (!s->elects || s->is_dry_run) {
		c->leader.may_lead = true;
		c->leader.awake = (struct timer){ .user = c, .is_urgent = true };
		stay_awake(&c->leader.awake);
		return true;
	}
	const struct lease_setup setup = { .api = c->api,
					   .name_space = s->namespace,
					   .name = s->lease,
					   .identity = s->identity,
					   .address = s->address,
					   .duration = s->lease_duration,
					   .renew_deadline = s->lease_renew,
					   .retry = s->lease_retry,
					   .may_take = may_take,
					   .on_won = won,
					   .on_lost = lost,
					   .on_holder = holder_changed,
					   .user = c };
	c->leader.lease = lease_open(&setup, e);
	return c->leader.lease != NULL;
}
