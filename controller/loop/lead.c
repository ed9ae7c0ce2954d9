#include "controller/loop/follow.h"
#include "controller/loop/objects.h"
#include "controller/loop/parts.h"
#include "controller/loop/status.h"

#include "controller/recall/recall.h"
#include <string.h>

static const millis SETTLE_POLL = 20, SYNC_LOOK = 100, CHECKPOINTS = HOUR;

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

static bool open_history(struct controller *c, struct error *e)
{
	const struct history_setup setup = { .path = c->settings.history_path,
					     .manifest = c->manifest.text,
					     .fleet = fleet_of(c),
					     .program = c->settings.version,
					     .policy = "preheat",
					     .run = c->settings.run,
					     .ticks_per_commit = 1,
					     .checkpoint_every = CHECKPOINTS };
	struct recalled found = { 0 };
	struct arena a = { 0 };

	c->history = recall_resume(&setup, &a, &found, e);
	if (c->history) {
		if (found.trouble.kind != ERROR_NONE)
			log_warn("memory-begins-anew", LOG_E(&found.trouble), LOG_END);
		policy_state_free(c->memory);
		c->memory = found.memory;
		log_info("history-recalled", LOG_I("next_tick", history_next_tick(c->history)),
			 LOG_I("folded", found.folded), LOG_END);
	}
	arena_release(&a);
	if (!c->history)
		return false;
	c->tick = history_next_tick(c->history);
	c->snapshot = (struct snapshot){ .now = history_last_at(c->history) };
	time_begin(c);
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

static void fail(struct controller *c, const struct error *e)
{
	log_error("cannot-lead", LOG_E(e), LOG_END);
	c->settings.on_failure(c->settings.user, e);
}

static void begin(struct controller *c)
{
	struct error e = { 0 };

	follow_pause(c);
	if (!open_history(c, &e) || !fleet_open(c, &e) || !intents_adopt(c, &e)) {
		fleet_close(c);
		close_history(c);
		fail(c, &e);
		return;
	}
	c->state = STATE_LEADING;
	set_gate(c, true, "");
	c->led_since = loop_now(c->loop);
	for (size_t i = 0; i < fleet_of(c)->group_count; i++)
		node_group_look(&c->groups[i]);
	observe_targets(c); /* before the first round: a reading of nobody would look like no demand */
	machines_adopt_pods(c);
	drains_adopt(c);
	log_info("leading", LOG_S("identity", c->settings.identity), LOG_I("term", c->term),
		 LOG_I("pools", (int64_t)fleet_of(c)->pool_count), LOG_B("dry_run", c->settings.is_dry_run), LOG_END);
	tick_start(c);
	publish(c);
}

bool lead_is_quiet(const struct controller *c)
{
	bool quiet = status_is_idle(c) && drains_are_idle(c) && placeholders_are_idle(c) && buffers_are_idle(c);

	for (size_t i = 0; c->pools && i < fleet_of(c)->pool_count; i++)
		quiet &= !c->pools[i].scale.is_calling;
	for (size_t i = 0; c->groups && i < fleet_of(c)->group_count; i++)
		quiet &= node_group_is_idle(&c->groups[i]);
	return quiet;
}

static void use_next_manifest(struct controller *c)
{
	if (!c->has_next)
		return;
	c->has_next = false;
	arena_release(&c->manifest_arena);
	c->manifest = c->next_manifest;
	c->manifest_arena = c->next_arena;
	c->next_arena = (struct arena){ 0 };
	fleet_tell_cluster(c);
}

static void settle(struct timer *t)
{
	struct controller *c = t->user;

	act_stop(c);
	if (!lead_is_quiet(c)) {
		timer_start(c->loop, &c->ticker, SETTLE_POLL, settle);
		return;
	}
	fleet_close(c);
	close_history(c);
	use_next_manifest(c);
	c->state = STATE_FOLLOWING;
	follow_go_on(c);
	lead_go_on(c);
}

void lead_stop_acting(struct controller *c, const char *why)
{
	if (c->state != STATE_LEADING)
		return;
	set_gate(c, false, why);
	tick_stop(c);
	for (size_t i = 0; i < fleet_of(c)->group_count; i++)
		node_group_stop(&c->groups[i]);
	act_stop(c);
	status_stop(c);
	log_info("stopped-acting", LOG_S("why", why), LOG_END);
	c->state = STATE_SETTLING;
	c->ticker.user = c;
	timer_start(c->loop, &c->ticker, 0, settle);
	publish(c);
}

static void look_again(struct timer *t)
{
	lead_go_on(t->user);
}

/* What is known of the cluster may be incomplete when the lease comes back after the API server was away. */
static void look_again_soon(struct controller *c)
{
	c->ticker.user = c;
	timer_start(c->loop, &c->ticker, SYNC_LOOK, look_again);
}

void lead_go_on(struct controller *c)
{
	if (c->state != STATE_FOLLOWING || c->is_stopping)
		return;
	use_next_manifest(c);
	bool is_synced = cluster_is_synced(c->cluster) && objects_are_synced(c);
	if (c->may_lead && is_synced && fleet_of(c)->pool_count > 0) {
		begin(c);
		return;
	}
	if (c->may_lead && is_synced)
		set_gate(c, true, ""); /* those that are refused are still told so */
	else if (c->may_lead)
		look_again_soon(c);
	publish(c);
}

static void won(void *user)
{
	struct controller *c = user;

	c->may_lead = true;
	c->term = lease_transitions(c->lease);
	lead_go_on(c);
}

static void lost(void *user, const char *why)
{
	struct controller *c = user;

	c->may_lead = false;
	set_gate(c, false, why);
	status_stop(c);
	lead_stop_acting(c, why);
}

static void holder_changed(void *user)
{
	publish(user);
}

bool lead_open(struct controller *c, struct error *e)
{
	const struct controller_settings *s = &c->settings;

	set_gate(c, false, "this replica does not lead");
	if (!s->elects || s->is_dry_run) {
		c->may_lead = true;
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
					   .on_won = won,
					   .on_lost = lost,
					   .on_holder = holder_changed,
					   .user = c };
	c->lease = lease_open(&setup, e);
	return c->lease != NULL;
}
