#include "controller/loop/node_group.h"

#include "base/log.h"
#include "controller/loop/node_group_parts.h"
#include "state/launch.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const millis LOOK_TIMES[] = { 15 * SECOND, MINUTE }; /* while something is under way; else */

int64_t pool_position(const struct fleet_spec *fleet, size_t pool, size_t group)
{
	for (size_t i = 0; i < fleet->pools[pool].group_count; i++)
		if (fleet->pools[pool].groups[i] == group)
			return (int64_t)i;
	return -1;
}

size_t first_pool(const struct fleet_spec *fleet, size_t group)
{
	for (size_t i = 0; i < fleet->pool_count; i++)
		if (pool_position(fleet, i, group) >= 0)
			return i;
	return 0;
}

bool machine_counts(const struct machine *m)
{
	return !m->is_standby && m->state != MACHINE_TERMINATING;
}

bool machine_stands_by(const struct machine *m)
{
	return m->is_standby && m->state != MACHINE_TERMINATING;
}

const struct machine *node_group_machine(const struct node_group *g, const char *machine)
{
	for (size_t i = 0; i < g->seen.machine_count; i++)
		if (!strcmp(g->seen.machines[i].id, machine))
			return &g->seen.machines[i];
	return NULL;
}

int64_t node_group_count(const struct node_group *g, enum machine_state state)
{
	int64_t count = 0;

	for (size_t i = 0; i < g->seen.machine_count; i++)
		count += g->seen.machines[i].state == state;
	return count;
}

int64_t machines_alive(const struct node_group *g)
{
	int64_t count = 0;

	for (size_t i = 0; i < g->seen.machine_count; i++)
		count += machine_counts(&g->seen.machines[i]);
	return count;
}

static void described(struct node_group *g, struct provider_call *c)
{
	struct group_description before = g->seen;
	struct arena held = g->arena;

	g->seen = c->description;
	g->arena = c->arena;
	c->arena = (struct arena){ 0 };
	g->described_at = clock_mono(g->context->clock);
	retry_reset(&g->retry);
	removals_hold_size(g);
	machines_compare(g, &before);
	operation_settle(g);
	if (!g->operation.token[0])
		sizes_take_over(g);
	ongoing_settle(g);
	g->must_look = false;
	g->is_known = true;
	refusal_tell(g);
	standby_tell(g);
	arena_release(&held);
	provider_call_release(c);
	g->context->changed(g->context->user);
	node_group_drive(g);
}

static void looked(struct provider_call *c)
{
	struct node_group *g = c->user;

	g->is_looking = false;
	g->calls[PROVIDER_DESCRIBE][c->error.kind]++;
	if (c->error.kind == ERROR_CANCELLED) {
		provider_call_release(c);
		return;
	}
	g->trouble = c->error;
	if (c->error.kind != ERROR_NONE) {
		group_call_failed(g, c);
		provider_call_release(c);
		return;
	}
	throttle_passed(g->throttle, g->look_began);
	if (!g->is_look_stale) {
		described(g, c);
		return;
	}
	provider_call_release(c);
	if (!g->is_changing)
		node_group_look(g);
}

static bool is_unsettled(const struct node_group *g)
{
	return g->operation.token[0] || g->ongoing.name || g->seen.is_busy || g->removal_count || g->must_look ||
	       !g->is_known || g->wanted != machines_alive(g) || node_group_count(g, MACHINE_RUNNING) != g->wanted ||
	       node_group_count(g, MACHINE_STOPPED) != g->standby_wanted;
}

static void fire(struct timer *t)
{
	struct node_group *g = t->user;

	if (!g->is_looking)
		node_group_look(g);
}

void node_group_plan_look(struct node_group *g, millis after)
{
	g->timer.user = g;
	timer_start(g->context->loop, &g->timer, after, fire);
}

/* Groups that were opened together do not ask together. */
static millis jittered(struct node_group *g, millis wait)
{
	return wait + (millis)(random_next(&g->retry.random) % (uint64_t)(wait / 5 + 1));
}

bool node_group_can(const struct node_group *g, unsigned abilities)
{
	unsigned has = g->is_known ? g->seen.abilities & g->ops->abilities : g->ops->abilities;

	return (has & abilities) == abilities;
}

void group_tell_unready(struct node_group *g, struct provider_call *c, struct arena *a)
{
	arena_clear(a);
	if (g->context->unready)
		c->unready_count = g->context->unready(g->context->user, g->index, a, &c->unready);
}

void node_group_look(struct node_group *g)
{
	millis wait = throttle_wait(g->throttle, loop_now(g->context->loop));

	if (g->is_looking || g->is_stopped)
		return;
	if (wait > 0) {
		node_group_plan_look(g, jittered(g, wait));
		return;
	}
	g->is_looking = true;
	g->look_began = loop_now(g->context->loop);
	g->is_look_stale = false;
	g->look = (struct provider_call){ .verb = PROVIDER_DESCRIBE,
					  .group = group_spec_of(g)->name,
					  .settings = g->settings,
					  .pending = g->ongoing.name ? g->ongoing.name : "",
					  .done = looked,
					  .user = g };
	group_tell_unready(g, &g->look, &g->look_arena);
	node_group_plan_look(g, clock_real(g->context->clock, jittered(g, LOOK_TIMES[!is_unsettled(g)])));
	g->ops->start(g->provider, &g->look);
}

void node_group_open(struct node_group *g, const struct group_context *context, size_t index,
		     const struct group_access *access)
{
	*g = (struct node_group){ .context = context,
				  .index = index,
				  .ops = access->ops,
				  .provider = access->provider,
				  .settings = access->settings,
				  .calls = access->calls,
				  .throttle = access->throttle,
				  .lacks_standby = access->lacks_standby };
	g->retry =
		retry_make(SECOND, MINUTE, random_stream((uint64_t)context->term, context->fleet->groups[index].name));
}

void node_group_stop(struct node_group *g)
{
	g->is_stopped = true;
	timer_stop(&g->timer);
	if (g->is_looking)
		g->ops->cancel(g->provider, &g->look);
	if (g->is_changing)
		g->ops->cancel(g->provider, &g->change);
}

bool node_group_is_idle(const struct node_group *g)
{
	return !g->is_looking && !g->is_changing;
}

void node_group_close(struct node_group *g)
{
	arena_release(&g->arena);
	arena_release(&g->look_arena);
	arena_release(&g->change_arena);
	operation_forget(g);
	ongoing_forget(g);
	free(g->removals);
	g->removals = NULL;
}

static const millis QUIET_AFTER_REMOVALS = 5 * SECOND;
static const millis STUCK_AFTER = 30 * MINUTE; /* an operation that goes on */

static bool has_operation(const struct node_group *g)
{
	return g->operation.token[0] != '\0';
}

void operation_forget(struct node_group *g)
{
	free(g->operation.removals);
	free(g->operation.ids);
	g->operation = (struct operation){ 0 };
}

void group_call_failed(struct node_group *g, const struct provider_call *c)
{
	millis now = loop_now(g->context->loop), wait;

	if (c->error.kind == ERROR_THROTTLED) {
		throttle_note(g->throttle, now, c->retry_after);
		wait = throttle_wait(g->throttle, now);
	} else {
		wait = retry_next(&g->retry, c->retry_after);
	}
	g->quiet_until = now + wait;
	log_warn("provider-call-failed", LOG_S("group", group_spec_of(g)->name),
		 LOG_S("verb", provider_verb_name(c->verb)), LOG_E(&c->error), LOG_I("again_in_ms", wait), LOG_END);
	node_group_plan_look(g, wait);
}

static void end_intent(struct node_group *g, const char *outcome)
{
	intent_end(g, g->operation.token, outcome);
	operation_forget(g);
}

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
	return value < least ? least : value > most ? most : value;
}

/* What of the change came about, as far as was seen. */
static int64_t came_about(const struct operation *o, int64_t rose)
{
	return o->change < 0 ? clamp(rose, o->change, 0) : clamp(rose, 0, o->change);
}

static void unwish_size(struct node_group *g, enum error_kind why)
{
	const struct operation *o = &g->operation;
	int64_t did = came_about(o, g->seen.desired - g->believed.desired);

	if (o->change > 0)
		sizes_refuse(g, false, o->change - did, why);
	g->believed.desired += did;
	sizes_wish(g, g->wanted - (o->change - did));
}

static void unwish_standby(struct node_group *g, enum error_kind why)
{
	const struct operation *o = &g->operation;
	int64_t did = came_about(o, g->seen.standby - g->believed.standby);

	if (o->change > 0)
		sizes_refuse(g, true, o->change - did, why);
	g->believed.standby += did;
	sizes_wish_standby(g, g->standby_wanted - (o->change - did));
}

/* The operation came to nothing, or to less: what was wished with it is wished no more; later wishes stay. */
static void give_up(struct node_group *g, const struct error *why)
{
	if (g->operation.verb == PROVIDER_STANDBY)
		unwish_standby(g, why->kind);
	else
		unwish_size(g, why->kind);
	removals_left_alone(g, true);
	sizes_wish(g, g->wanted); /* what stays after all may be more than there is room for beside later wishes */
	end_intent(g, error_kind_name(why->kind));
	sizes_fit_starts(g);
	g->context->changed(g->context->user);
}

static bool is_lost(enum error_kind kind)
{
	return kind == ERROR_TIMEOUT || kind == ERROR_UNAVAILABLE;
}

static void changed(struct provider_call *c)
{
	struct node_group *g = c->user;
	struct error why = c->error;

	g->is_changing = false;
	g->is_look_stale |= g->is_looking;
	g->calls[c->verb][why.kind]++;
	g->trouble = why;
	if (g->context->called)
		g->context->called(g->context->user, g, c, g->operation.sent_at);
	if (why.kind == ERROR_NONE && c->operation && *c->operation && has_operation(g))
		ongoing_begin(g, c->operation);
	provider_call_release(c);
	if (g->is_stopped)
		operation_forget(g); /* the intent stays open for whoever goes on */
	if (!has_operation(g))
		return;
	if (why.kind == ERROR_NONE) {
		g->must_look = true;
		g->operation.is_uncertain = false;
		retry_reset(&g->retry);
		throttle_passed(g->throttle, g->change_began);
	} else if (is_lost(why.kind) || why.kind == ERROR_THROTTLED || why.kind == ERROR_CONFLICT) {
		g->must_look = true;
		g->operation.is_uncertain = true;
		group_call_failed(g, c);
		return;
	} else {
		if (why.kind != ERROR_CANCELLED)
			log_warn("provider-refused", LOG_S("group", group_spec_of(g)->name),
				 LOG_S("verb", provider_verb_name(c->verb)), LOG_E(&why), LOG_END);
		give_up(g, &why);
		return;
	}
	node_group_look(g);
}

static void send(struct node_group *g)
{
	struct operation *o = &g->operation;

	o->attempts++;
	o->is_sent = true;
	o->sent_at = clock_now(g->context->clock);
	g->is_changing = true;
	g->change_began = loop_now(g->context->loop);
	g->is_look_stale |= g->is_looking;
	g->change = (struct provider_call){ .verb = o->verb,
					    .group = group_spec_of(g)->name,
					    .settings = g->settings,
					    .token = o->token,
					    .desired = o->desired,
					    .ids = o->ids,
					    .id_count = o->id_count,
					    .done = changed,
					    .user = g };
	group_tell_unready(g, &g->change, &g->change_arena);
	g->ops->start(g->provider, &g->change);
}

static bool is_reached(const struct node_group *g)
{
	const struct operation *o = &g->operation;

	if (o->verb == PROVIDER_GROW)
		return g->seen.desired >= o->desired;
	if (o->verb == PROVIDER_STANDBY)
		return g->seen.standby == o->desired;
	for (size_t i = 0; i < o->id_count; i++) {
		const struct machine *m = node_group_machine(g, o->ids[i]);
		if (m && m->state != MACHINE_TERMINATING && !(o->verb == PROVIDER_STOP && m->is_standby))
			return false;
	}
	return true;
}

/* Machines that a cancel named, that it left alone, and that count: in their place the cloud may have given up others.
 */
static int64_t spared(const struct node_group *g)
{
	const struct operation *o = &g->operation;
	int64_t count = 0;

	for (size_t i = 0; o->verb == PROVIDER_CANCEL && i < o->id_count; i++) {
		const struct machine *m = node_group_machine(g, o->ids[i]);
		count += o->removals[i].was_counted && m && machine_counts(m);
	}
	return count;
}

/* It did what it was asked for: what the sizes are from now on. */
static void take_effect(struct node_group *g)
{
	const struct operation *o = &g->operation;
	struct believed_size *b = &g->believed;

	if (o->verb == PROVIDER_GROW) {
		b->desired += o->change;
	} else if (o->verb == PROVIDER_STANDBY) {
		b->standby += o->change;
	} else {
		int64_t did = clamp(g->seen.desired - b->desired, o->change - spared(g), 0);
		b->desired += did;
		g->wanted -= o->change - did; /* what the cloud will not give up comes after all */
		removals_left_alone(g, false);
	}
}

void operation_settle(struct node_group *g)
{
	struct operation *o = &g->operation;

	if (!has_operation(g) || g->is_changing || !o->is_sent)
		return;
	if (!o->is_uncertain || is_reached(g)) {
		take_effect(g);
		if (o->id_count && !is_reached(g))
			g->quiet_until =
				loop_now(g->context->loop) + clock_real(g->context->clock, QUIET_AFTER_REMOVALS);
		if (g->ongoing.name && !strcmp(g->ongoing.token, o->token))
			operation_forget(g); /* its intent ends with what goes on */
		else
			end_intent(g, "done");
		return;
	}
	if (o->attempts < ATTEMPTS_MOST)
		return; /* node_group_drive() sends it again */
	struct error why = g->trouble.kind != ERROR_NONE ? g->trouble : (struct error){ .kind = ERROR_UNAVAILABLE };
	give_up(g, &why);
}

/* "preheat-3-g5-spot-a-000012": our term, the group, and a number that starts anew with each term. */
static void make_token(struct node_group *g)
{
	snprintf(g->operation.token, sizeof g->operation.token, "preheat-%lld-%lld-%.24s-%04lld",
		 (long long)g->context->term, (long long)(clock_now(g->context->clock) / 1000 % 100000000),
		 group_spec_of(g)->name, (long long)++g->serial);
}

/* On disk before the first byte goes out. */
static bool save_intent(struct node_group *g)
{
	struct operation *o = &g->operation;
	struct error e = { 0 };
	struct launch l = { .token = o->token,
			    .group = group_spec_of(g)->name,
			    .verb = (int64_t)o->verb,
			    .target = o->desired,
			    .machines = o->ids,
			    .machine_count = o->id_count,
			    .term = g->context->term,
			    .asked_at = clock_now(g->context->clock) };

	if (launch_save(g->context->history, &l, &e))
		return true;
	log_error("intent-not-saved", LOG_S("group", l.group), LOG_E(&e), LOG_END);
	give_up(g, &(struct error){ .kind = ERROR_CANCELLED });
	return false;
}

static void begin(struct node_group *g, enum provider_verb verb, int64_t desired)
{
	g->operation.verb = verb;
	g->operation.desired = desired;
	make_token(g);
	if (!save_intent(g))
		return;
	log_info("provider-asked", LOG_S("group", group_spec_of(g)->name), LOG_S("verb", provider_verb_name(verb)),
		 LOG_I("desired", desired), LOG_I("machines", (int64_t)g->operation.id_count),
		 LOG_S("operation", g->operation.token), LOG_END);
	send(g);
}

static void begin_size(struct node_group *g, enum provider_verb verb, int64_t desired)
{
	bool is_standby = verb == PROVIDER_STANDBY;
	int64_t present = is_standby ? g->believed.standby : g->believed.desired;
	int64_t allowed = gate_clamp(g, verb, desired), over = desired - allowed;

	if (over > 0) {
		sizes_refuse(g, is_standby, over, ERROR_QUOTA);
		*(is_standby ? &g->standby_wanted : &g->wanted) -= over;
		sizes_fit_starts(g);
	}
	if (over > 0 && allowed <= (is_standby ? g->seen.standby : g->seen.desired))
		return;
	g->operation.change = allowed - present;
	begin(g, verb, allowed);
}

static void begin_removals(struct node_group *g, enum provider_verb verb)
{
	int64_t counted = removals_take(g, verb);
	int64_t desired = g->wanted + removals_counted(g) - counted;
	int64_t surplus = g->believed.desired - counted - desired;

	if (verb == PROVIDER_CANCEL && surplus > 0)
		g->operation.change = -surplus;
	begin(g, verb, desired);
}

/* Nothing may be sent: what was wished is dropped, as if it had never been. */
static void drop_wishes(struct node_group *g)
{
	g->removal_count = 0;
	g->wanted = g->seen.desired;
	g->standby_wanted = g->seen.standby;
}

static bool may_send(const struct node_group *g)
{
	millis now = loop_now(g->context->loop);

	return g->context->history && !g->is_stopped && !g->is_changing && g->is_known && !g->must_look &&
	       now >= g->quiet_until && !throttle_wait(g->throttle, now) && g->context->may_act(g->context->user);
}

/* What is asked for and never came is not wished any more. */
static bool begin_cancel(struct node_group *g)
{
	int64_t alive = machines_alive(g), desired = g->wanted + removals_counted(g);

	if (desired >= g->seen.desired || alive >= g->seen.desired || !node_group_can(g, PROVIDER_CANCELS))
		return false;
	begin_size(g, PROVIDER_CANCEL, desired > alive ? desired : alive);
	return true;
}

static void begin_next(struct node_group *g)
{
	int64_t desired = g->wanted + removals_counted(g);
	int64_t standby = g->standby_wanted - removals_to_standby(g);
	enum provider_verb verb;

	if (removals_due(g, &verb))
		begin_removals(g, verb);
	else if (begin_cancel(g))
		return;
	else if (desired > g->seen.desired)
		begin_size(g, PROVIDER_GROW, desired);
	else if (standby != g->seen.standby && standby >= 0 && node_group_can(g, PROVIDER_HAS_STANDBY))
		begin_size(g, PROVIDER_STANDBY, standby);
}

/* What goes on takes nothing but its end: at once when less is wished, and when it is stuck in the way of any wish. */
static void end_ongoing(struct node_group *g)
{
	bool is_stuck = clock_mono(g->context->clock) - g->ongoing.since > STUCK_AFTER;
	bool is_in_the_way = g->removal_count || g->wanted != g->seen.desired || g->standby_wanted != g->seen.standby;

	if (!begin_cancel(g) && is_stuck && is_in_the_way && node_group_can(g, PROVIDER_CANCELS))
		begin_size(g, PROVIDER_CANCEL, g->seen.desired);
}

void node_group_drive(struct node_group *g)
{
	if (g->context->is_barred && g->is_known)
		drop_wishes(g);
	if (g->is_known)
		sizes_fit_starts(g);
	if (g->context->is_barred)
		return;
	if (!may_send(g))
		return;
	if (g->seen.is_busy && !has_operation(g) && g->ongoing.name)
		end_ongoing(g);
	else if (g->seen.is_busy)
		return;
	else if (has_operation(g))
		send(g);
	else
		begin_next(g);
}

/* How long a part of a group is out of stock when the cloud's code does not say: as the policy's first back-off. */
static const millis STOCKOUT_LASTS = 3 * MINUTE, QUOTA_LASTS = 10 * MINUTE, MOST_LASTS = DAY;

static const char *told(const char *text)
{
	return text ? text : "";
}

static int64_t at_most(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void tell_pools(struct node_group *g, const struct event_input *like)
{
	const struct fleet_spec *fleet = g->context->fleet;

	for (size_t i = 0; i < fleet->pool_count; i++) {
		struct event_input e = *like;
		e.group = pool_position(fleet, i, g->index);
		if (e.group >= 0)
			starts_add_event(g->context->starts, i, &e);
	}
}

/* Whether others of the group may have machines still; else the pools hear how long none of it has. */
static bool note_offering(struct node_group *g, const struct launch_failure *f)
{
	millis now = clock_mono(g->context->clock), lasts = f->back_off > 0 ? at_most(f->back_off, MOST_LASTS) : 0;
	bool is_part = *told(f->zone) || *told(f->instance_type);
	bool is_quota = f->kind == ERROR_QUOTA;

	if (f->kind != ERROR_STOCKOUT && !is_quota)
		return false;
	if (!is_part && !lasts)
		return false; /* the policy's own back-off */
	if (!lasts)
		lasts = is_quota ? QUOTA_LASTS : STOCKOUT_LASTS;
	offerings_failed(&g->offerings, told(f->zone), told(f->instance_type), now, lasts);
	millis wait = is_part ? offerings_wait(&g->offerings, now) : lasts;
	if (wait > 0)
		tell_pools(g, &(struct event_input){ .what = is_quota ? EVENT_NO_QUOTA : EVENT_NO_STOCK,
						     .value = wait,
						     .count = f->count });
	return wait == 0;
}

/* Launches for standby are told by what is missing there and not where machines run: standby falls where they are
 * woken, too. The others were to run. */
static int64_t refills_of(const struct node_group *g, const struct launch_failure *f)
{
	const struct believed_size *b = &g->believed;
	int64_t missing = b->standby - g->seen.standby, fell = b->desired - g->seen.desired - b->failed - b->lost;
	int64_t others = f->count - at_most(fell > 0 ? fell : 0, f->count);

	return missing > 0 ? at_most(missing, others) : 0;
}

static void launch_failed(struct node_group *g, const struct launch_failure *f)
{
	int64_t refills = refills_of(g, f);
	int64_t runs = at_most(f->count - refills, node_group_missing(g));
	bool is_missed = note_offering(g, f);

	sizes_refuse(g, true, refills, is_missed ? ERROR_NONE : f->kind);
	sizes_refuse(g, false, runs, is_missed ? ERROR_NONE : f->kind);
	g->believed.standby -= refills;
	sizes_wish_standby(g, g->standby_wanted - refills);
	g->believed.failed += f->count - refills;
	g->wanted -= runs;
	log_warn("launch-failed", LOG_S("group", group_spec_of(g)->name), LOG_I("machines", f->count),
		 LOG_S("kind", error_kind_name(f->kind)), LOG_S("zone", told(f->zone)),
		 LOG_S("instance_type", told(f->instance_type)), LOG_S("message", f->message), LOG_END);
}

/* Of before we led: what of it still holds is remembered, nothing is refused for it. */
static void recall_failure(struct node_group *g, const struct launch_failure *f)
{
	millis passed = clock_now(g->context->clock) - clock_of_wall(g->context->clock, f->at);

	if (f->at > 0 && passed >= 0 && f->back_off > passed)
		offerings_failed(&g->offerings, told(f->zone), told(f->instance_type), clock_mono(g->context->clock),
				 at_most(f->back_off, MOST_LASTS) - passed);
}

void failures_read(struct node_group *g)
{
	for (size_t i = 0; i < g->seen.failure_count; i++) {
		const struct launch_failure *f = &g->seen.failures[i];
		if (f->id <= g->last_failure)
			continue;
		g->last_failure = f->id;
		if (g->ongoing.name && (g->is_known || f->at >= g->ongoing.began))
			g->ongoing.failed = f->kind;
		if (g->is_known)
			launch_failed(g, f);
		else
			recall_failure(g, f);
	}
}

void refusal_tell(struct node_group *g)
{
	if (g->seen.is_refused == g->is_refused)
		return;
	g->is_refused = g->seen.is_refused;
	if (g->is_refused)
		log_warn("group-not-ours-to-change", LOG_S("group", group_spec_of(g)->name),
			 LOG_S("why", told(g->seen.lacks)), LOG_END);
}

static const char *why_no_standby(const struct node_group *g)
{
	if (g->seen.lacks && *g->seen.lacks)
		return g->seen.lacks;
	return g->ops->abilities & PROVIDER_HAS_STANDBY
		       ? "its cloud does not tell"
		       : "machines that nobody is asked about are taken as they are seen: none is known to stand by";
}

void standby_tell(struct node_group *g)
{
	bool has = node_group_can(g, PROVIDER_HAS_STANDBY);

	if (!group_spec_of(g)->standby_max_nodes || has != g->lacks_standby)
		return;
	g->lacks_standby = !has;
	tell_pools(g, &(struct event_input){ .what = EVENT_STANDBY, .value = has, .count = 1 });
	if (!has)
		log_warn("group-lacks-standby", LOG_S("group", group_spec_of(g)->name), LOG_S("why", why_no_standby(g)),
			 LOG_END);
}

static const int64_t MILLI = 1000;

/* The whole of a group once in GROWTH_SPAN: what is bought faster than that does not last, or nobody wants it. */
static int64_t allowance(const struct node_group *g)
{
	int64_t most = group_spec_of(g)->max_nodes + group_spec_of(g)->standby_max_nodes;

	return most > GROWTH_LEAST ? most : GROWTH_LEAST;
}

static void run_out(struct node_group *g)
{
	struct growth *w = &g->growth;
	millis now = clock_mono(g->context->clock), passed = now - w->at;

	if (passed >= GROWTH_SPAN)
		w->level_milli = 0;
	else if (passed > 0)
		w->level_milli -= allowance(g) * MILLI * passed / GROWTH_SPAN;
	if (w->level_milli < 0)
		w->level_milli = 0;
	w->at = now;
}

static void hold(struct node_group *g, int64_t machines, const char *what)
{
	if (machines <= 0)
		return;
	g->growth.held += machines;
	g->growth.held_until = clock_mono(g->context->clock) + GROWTH_SPAN;
	log_error("growth-held", LOG_S("group", group_spec_of(g)->name), LOG_I("machines", machines),
		  LOG_S("why", what), LOG_END);
}

int64_t gate_growth(struct node_group *g, int64_t machines)
{
	if (g->context->is_barred)
		return machines; /* a dry run wishes the same again and again, and buys nothing */
	run_out(g);
	int64_t room = allowance(g) - (g->growth.level_milli + MILLI - 1) / MILLI, granted = machines;

	if (granted > room)
		granted = room > 0 ? room : 0;
	hold(g, machines - granted, "more machines within five minutes than the group may ever have");
	g->growth.level_milli += granted * MILLI;
	return granted;
}

int64_t gate_clamp(struct node_group *g, enum provider_verb verb, int64_t desired)
{
	bool is_standby = verb == PROVIDER_STANDBY;
	int64_t present = is_standby ? g->seen.standby : g->seen.desired;
	int64_t most = is_standby ? sizes_most_standby(g) : sizes_most(g);

	if ((verb != PROVIDER_GROW && !is_standby) || desired <= present)
		return desired;
	/* What is wished counts as asked for there: fewer than none are left when it is too much. */
	int64_t left = g->context->affordable ? g->context->affordable(g->context->user, g->index) : 0;
	int64_t over = left < 0 ? -left : 0;
	int64_t clamped = at_most(at_most(desired, most), desired - over);
	if (clamped < present)
		clamped = present;
	hold(g, desired - clamped, "more than the manifest in force or its budget allows");
	return clamped;
}

static int64_t places(const struct node_group *g, size_t pool)
{
	return replicas_per_node(group_spec_of(g), &g->context->fleet->pools[pool]);
}

static struct start start_on(const struct machine *m, enum start_kind kind)
{
	struct start like = { .kind = kind };

	memcpy(like.machine, m->id, strnlen(m->id, MACHINE_ID_MAX));
	return like;
}

/* Gives a machine to the starts of a kind that wait for one, pool by pool. */
static void bind(struct node_group *g, struct start *like, enum start_kind kind, int64_t *gpus)
{
	const struct fleet_spec *fleet = g->context->fleet;

	for (size_t i = 0; i<fleet->pool_count && * gpus> 0; i++) {
		int64_t each = fleet->pools[i].gpus_per_replica;
		like->pool = i;
		like->group = pool_position(fleet, i, g->index);
		if (like->group >= 0 && each > 0)
			*gpus -= each * starts_bind_machine(g->context->starts, like, kind, *gpus / each);
	}
}

/* What a machine comes as: stopped ones are woken, and serve those first that were to be woken. */
static enum start_kind comes_as(const struct machine *m)
{
	if (m->is_standby)
		return START_REFILL;
	return m->state == MACHINE_WAKING || m->state == MACHINE_STOPPING ? START_WAKE : START_COLD;
}

static bool bind_any(struct node_group *g, const struct machine *m)
{
	enum start_kind kind = comes_as(m);
	struct start like = start_on(m, kind);
	int64_t gpus = group_spec_of(g)->gpus_per_node, all = gpus;

	bind(g, &like, kind, &gpus);
	if (kind != START_REFILL)
		bind(g, &like, kind == START_COLD ? START_WAKE : START_COLD, &gpus);
	if (gpus < all && kind == START_COLD) {
		struct node_stages stages = g->context->node_stages(g->context->user, m->id);
		starts_follow_node(g->context->starts, m->id, &stages);
	}
	return gpus < all;
}

static struct start adopted(const struct node_group *g, size_t pool, enum start_kind kind)
{
	return (struct start){ .pool = pool,
			       .group = pool_position(g->context->fleet, pool, g->index),
			       .kind = kind,
			       .asked_at = clock_now(g->context->clock),
			       .is_adopted = true,
			       .ends_at_device =
				       kind != START_REFILL && g->context->runs_work(g->context->user, pool) };
}

void machines_adopt_unlisted(struct node_group *g, int64_t machines, enum start_kind kind)
{
	size_t pool = first_pool(g->context->fleet, g->index);
	struct start like = adopted(g, pool, kind);

	if (like.group >= 0)
		starts_ask(g->context->starts, &like, machines * places(g, pool));
}

/* A machine that nobody here asked for, on its way: what it will hold counts as on its way, too. */
static void adopt(struct node_group *g, const struct machine *m)
{
	size_t pool = first_pool(g->context->fleet, g->index);
	struct start like = adopted(g, pool, comes_as(m));
	millis began = like.kind == START_WAKE ? m->state_since : m->launched_at;
	bool is_there = like.kind == START_REFILL ? m->state != MACHINE_PENDING
						  : g->context->node_stages(g->context->user, m->id).device > 0;

	if (like.group < 0 || is_there)
		return;
	if (began > 0)
		like.asked_at = clock_of_wall(g->context->clock, began);
	starts_ask(g->context->starts, &like, places(g, pool));
	bind_any(g, m);
}

/* Its node may have come before the cloud told of the machine. */
static void machine_came(struct node_group *g, const struct machine *m)
{
	offerings_came(&g->offerings, m->zone ? m->zone : "", m->instance_type ? m->instance_type : "");
	if (!starts_know_machine(g->context->starts, m->id) && !bind_any(g, m))
		adopt(g, m);
	struct node_stages stages = g->context->node_stages(g->context->user, m->id);
	starts_follow_node(g->context->starts, m->id, &stages);
}

static const struct machine *machine_before(const struct group_description *before, const char *id)
{
	for (size_t i = 0; i < before->machine_count; i++)
		if (!strcmp(before->machines[i].id, id))
			return &before->machines[i];
	return NULL;
}

/* Starts whose machine the cloud took back, or never heard of. */
static void machine_went(struct node_group *g, const char *id)
{
	struct starts *s = g->context->starts;

	for (size_t i = s->count; i-- > 0;) {
		if (strcmp(s->items[i].machine, id) != 0)
			continue;
		if (node_group_is_removing(g, id))
			starts_drop(s, i);
		else
			starts_refuse(s, i, ERROR_UNAVAILABLE);
	}
}

/* The machine goes where its starts do not: a refill whose machine shall serve, a replica whose machine is stopped. */
static void leave_machine(struct node_group *g, const struct machine *m)
{
	struct starts *s = g->context->starts;

	for (size_t i = s->count; i-- > 0;) {
		const struct start *t = &s->items[i];
		if (strcmp(t->machine, m->id) != 0 || (t->kind == START_REFILL) == m->is_standby)
			continue;
		if (t->kind == START_REFILL || (!t->pod[0] && (t->kind == START_COLD || t->kind == START_WAKE)))
			starts_unbind_machine(s, i, clock_now(g->context->clock));
		else
			starts_drop(s, i);
	}
}

/* What became of a machine that the size asked for counted. */
static void count_gone(struct node_group *g, const struct machine *was, const struct machine *is)
{
	if (!machine_counts(was) || (is && machine_counts(is)))
		return;
	if (!node_group_is_removing(g, was->id)) {
		g->believed.lost++;
		return;
	}
	g->believed.released++;
	g->believed.desired--;
	g->believed.standby += is && is->is_standby;
}

/* Its refill was left with the machine that serves in its stead. */
static bool lost_its_refill(const struct node_group *g, const struct machine *m)
{
	return m->is_standby && m->state == MACHINE_PENDING && !starts_know_machine(g->context->starts, m->id);
}

static bool has_come(const struct machine *was, const struct machine *is)
{
	if (is->state == MACHINE_TERMINATING)
		return false;
	return !was || (was->is_standby && !is->is_standby);
}

void machines_compare(struct node_group *g, const struct group_description *before)
{
	const struct group_description *d = &g->seen;

	for (size_t i = 0; i < before->machine_count; i++) {
		const struct machine *was = &before->machines[i], *is = node_group_machine(g, was->id);
		count_gone(g, was, is);
		if (!is || is->state == MACHINE_TERMINATING)
			machine_went(g, was->id);
	}
	for (size_t i = 0; i < d->machine_count; i++)
		leave_machine(g, &d->machines[i]);
	for (size_t i = 0; i < d->machine_count; i++) {
		const struct machine *m = &d->machines[i];
		if (has_come(machine_before(before, m->id), m))
			machine_came(g, m);
		else if (lost_its_refill(g, m))
			bind_any(g, m);
		if (m->state == MACHINE_STOPPED)
			starts_machine_stopped(g->context->starts, m->id, clock_now(g->context->clock));
	}
}

/* A cloud that holds a group busy for longer has forgotten it. */
static const millis LONGEST = 3 * HOUR;

void intent_end(struct node_group *g, const char *token, const char *outcome)
{
	struct error e = { 0 };

	if (g->context->history && !launch_end(g->context->history, token, outcome, clock_now(g->context->clock), &e))
		log_error("intent-not-ended", LOG_S("operation", token), LOG_E(&e), LOG_END);
}

void ongoing_forget(struct node_group *g)
{
	free(g->ongoing.name);
	g->ongoing = (struct ongoing){ 0 };
}

static void take(struct node_group *g, const char *token, const char *name, millis began)
{
	struct ongoing *o = &g->ongoing;

	o->name = strdup(name);
	if (!o->name)
		abort();
	memcpy(o->token, token, strnlen(token, TOKEN_MAX));
	o->began = began;
	o->since = clock_mono(g->context->clock);
}

static void end(struct node_group *g, const char *outcome)
{
	intent_end(g, g->ongoing.token, outcome);
	ongoing_forget(g);
}

void ongoing_begin(struct node_group *g, const char *name)
{
	const char *token = g->operation.token;
	struct error e = { 0 };

	if (g->ongoing.name)
		end(g, error_kind_name(ERROR_CANCELLED)); /* the cloud took another one in its place */
	take(g, token, name, clock_now(g->context->clock));
	if (g->context->history && !launch_goes_on(g->context->history, token, name, &e))
		log_error("intent-not-kept", LOG_S("operation", token), LOG_E(&e), LOG_END);
}

void node_group_resume(struct node_group *g, const char *token, const char *operation, millis began)
{
	ongoing_forget(g);
	take(g, token, operation, began);
}

void ongoing_settle(struct node_group *g)
{
	const struct ongoing *o = &g->ongoing;
	bool is_forgotten = o->name && clock_mono(g->context->clock) - o->since > LONGEST;

	if (!o->name || g->operation.token[0])
		return;
	if (g->seen.is_busy && !is_forgotten)
		return;
	enum error_kind outcome = is_forgotten ? ERROR_TIMEOUT : o->failed;
	log_info("operation-over", LOG_S("group", group_spec_of(g)->name), LOG_S("operation", o->token),
		 LOG_S("outcome", outcome ? error_kind_name(outcome) : "done"), LOG_END);
	end(g, outcome ? error_kind_name(outcome) : "done");
}

enum { REMOVALS_AT_ONCE = 50 };

static bool is_due(const struct node_group *g, const struct removal *r)
{
	const struct machine *m = node_group_machine(g, r->id);

	return r->verb != PROVIDER_STOP || !m || m->state == MACHINE_RUNNING; /* others cannot be stopped yet */
}

bool removals_due(const struct node_group *g, enum provider_verb *verb)
{
	bool found = false;

	for (size_t i = 0; i < g->removal_count; i++) {
		const struct removal *r = &g->removals[i];
		if (!is_due(g, r) || (found && r->verb != PROVIDER_CANCEL))
			continue;
		*verb = r->verb;
		found = true;
	}
	return found;
}

static bool still_counts(const struct node_group *g, const struct removal *r)
{
	const struct machine *m = node_group_machine(g, r->id);

	return r->was_counted && m && machine_counts(m);
}

int64_t removals_counted(const struct node_group *g)
{
	int64_t count = 0;

	for (size_t i = 0; i < g->removal_count; i++)
		count += still_counts(g, &g->removals[i]);
	return count;
}

static bool is_named(const struct operation *o, const char *id)
{
	for (size_t i = 0; i < o->id_count; i++)
		if (!strcmp(o->ids[i], id))
			return true;
	return false;
}

void removals_hold_size(struct node_group *g)
{
	int64_t asked = 0, stops = 0, ahead = machines_alive(g) - g->seen.desired;

	for (size_t i = 0; i < g->removal_count; i++) {
		const struct removal *r = &g->removals[i];
		bool is_asked = still_counts(g, r) && (r->tries > 0 || is_named(&g->operation, r->id));
		asked += is_asked;
		stops += is_asked && r->verb == PROVIDER_STOP;
	}
	if (ahead <= 0)
		return;
	g->seen.desired += at_most(ahead, asked);
	g->seen.standby -= at_most(at_most(ahead, stops), g->seen.standby);
}

int64_t removals_to_standby(const struct node_group *g)
{
	int64_t count = 0;

	for (size_t i = 0; i < g->removal_count; i++)
		count += g->removals[i].verb == PROVIDER_STOP && g->removals[i].was_counted;
	return count;
}

int64_t removals_take(struct node_group *g, enum provider_verb verb)
{
	struct operation *o = &g->operation;
	int64_t counted = 0;

	o->removals = calloc(g->removal_count, sizeof *o->removals);
	o->ids = calloc(g->removal_count, sizeof *o->ids);
	if (!o->removals || !o->ids)
		abort();
	for (size_t i = 0; i < g->removal_count && o->id_count < REMOVALS_AT_ONCE; i++) {
		const struct removal *r = &g->removals[i];
		if (r->verb != verb || !is_due(g, r))
			continue;
		o->removals[o->id_count] = *r;
		o->ids[o->id_count] = o->removals[o->id_count].id;
		o->id_count++;
		counted += still_counts(g, r);
	}
	return counted;
}

static bool is_over(const struct node_group *g, const struct removal *r)
{
	const struct machine *m = node_group_machine(g, r->id);

	return !m || m->state == MACHINE_TERMINATING || (r->verb == PROVIDER_STOP && m->is_standby);
}

/* The machine stays: the sizes wanted are again what they were. */
static void take_back(struct node_group *g, const struct removal *r)
{
	g->wanted += r->was_counted;
	g->standby_wanted -= r->was_counted && r->verb == PROVIDER_STOP;
}

static bool is_hopeless(const struct node_group *g, const struct removal *r)
{
	const struct machine *m = node_group_machine(g, r->id);

	return r->tries >= ATTEMPTS_MOST || (r->verb == PROVIDER_CANCEL && m && m->state == MACHINE_RUNNING);
}

void removals_settle(struct node_group *g)
{
	size_t kept = 0;

	for (size_t i = 0; i < g->removal_count; i++) {
		const struct removal *r = &g->removals[i];
		const struct machine *m = node_group_machine(g, r->id);
		if (is_over(g, r)) {
			if (r->verb == PROVIDER_STOP && !(m && m->is_standby))
				g->standby_wanted -= r->was_counted; /* it was lost on the way */
		} else if (is_hopeless(g, r)) {
			log_warn("machine-left-alone", LOG_S("group", group_spec_of(g)->name), LOG_S("machine", r->id),
				 LOG_S("verb", provider_verb_name(r->verb)), LOG_END);
			take_back(g, r);
		} else {
			g->removals[kept++] = *r;
		}
	}
	g->removal_count = kept;
}

void removals_left_alone(struct node_group *g, bool for_good)
{
	size_t kept = 0;

	for (size_t i = 0; i < g->removal_count; i++) {
		struct removal *r = &g->removals[i];
		bool is_left = is_named(&g->operation, r->id) && !is_over(g, r);
		r->tries += is_left;
		if (is_left && for_good)
			take_back(g, r);
		else
			g->removals[kept++] = *r;
	}
	g->removal_count = kept;
}

bool node_group_is_removing(const struct node_group *g, const char *machine)
{
	for (size_t i = 0; i < g->removal_count; i++)
		if (!strcmp(g->removals[i].id, machine))
			return true;
	return is_named(&g->operation, machine);
}

static void make_room(struct node_group *g)
{
	if (g->removal_count < g->removal_room)
		return;
	g->removal_room = g->removal_room ? 2 * g->removal_room : 16;
	g->removals = realloc(g->removals, g->removal_room * sizeof *g->removals);
	if (!g->removals)
		abort();
}

bool node_group_remove(struct node_group *g, const char *machine, enum provider_verb how)
{
	const struct machine *m = node_group_machine(g, machine);

	if (node_group_is_removing(g, machine))
		return false;
	if (how == PROVIDER_STOP &&
	    (g->standby_wanted >= sizes_most_standby(g) || !node_group_can(g, PROVIDER_STOPS_NAMED)))
		how = PROVIDER_REMOVE;
	if (how == PROVIDER_CANCEL && !node_group_can(g, PROVIDER_CANCELS))
		how = PROVIDER_REMOVE;
	if (!node_group_can(g, PROVIDER_NAMES_VICTIMS))
		return false;
	make_room(g);
	struct removal *r = &g->removals[g->removal_count++];
	*r = (struct removal){ .verb = how, .was_counted = m && machine_counts(m) && g->wanted > 0 };
	memcpy(r->id, machine, strnlen(machine, MACHINE_ID_MAX));
	g->wanted -= r->was_counted;
	g->standby_wanted += r->was_counted && how == PROVIDER_STOP;
	return true;
}

static int64_t size_clamp(int64_t value, int64_t least, int64_t most)
{
	if (value > most)
		value = most;
	return value > least ? value : least;
}

static bool is_leaving(const struct node_group *g, const struct machine *m)
{
	return node_group_is_removing(g, m->id);
}

static int64_t machines_staying(const struct node_group *g)
{
	int64_t count = 0;

	for (size_t i = 0; i < g->seen.machine_count; i++)
		count += machine_counts(&g->seen.machines[i]) && !is_leaving(g, &g->seen.machines[i]);
	return count;
}

int64_t node_group_missing(const struct node_group *g)
{
	int64_t missing = g->wanted - machines_staying(g);

	return missing > 0 ? missing : 0;
}

int64_t node_group_size(const struct node_group *g)
{
	return machines_staying(g) + node_group_missing(g);
}

/* Machines on their way to standby by a removal are counted by the size wanted already. */
int64_t standby_missing(const struct node_group *g)
{
	int64_t standing = removals_to_standby(g);

	for (size_t i = 0; i < g->seen.machine_count; i++)
		standing += machine_stands_by(&g->seen.machines[i]) && !is_leaving(g, &g->seen.machines[i]);
	return g->standby_wanted > standing ? g->standby_wanted - standing : 0;
}

/* Whether a start waits for a machine of ours that is not known yet. */
static bool waits_here(const struct node_group *g, const struct start *t, bool is_standby)
{
	bool is_for_machine = t->kind == START_REFILL || t->kind == START_COLD || t->kind == START_WAKE;

	return !t->machine[0] && is_for_machine && (t->kind == START_REFILL) == is_standby &&
	       g->context->fleet->pools[t->pool].groups[t->group] == g->index;
}

/* GPUs of a machine that one start takes, with what is left over beside it. */
static int64_t share_of(const struct node_group *g, const struct start *t)
{
	int64_t each = replicas_per_node(group_spec_of(g), &g->context->fleet->pools[t->pool]);

	return each > 0 ? group_spec_of(g)->gpus_per_node / each : group_spec_of(g)->gpus_per_node;
}

static int64_t gpus_awaited(const struct node_group *g, bool is_standby)
{
	const struct starts *s = g->context->starts;
	int64_t gpus = 0;

	for (size_t i = 0; i < s->count; i++)
		if (waits_here(g, &s->items[i], is_standby))
			gpus += share_of(g, &s->items[i]);
	return gpus;
}

static int64_t machines_awaited(const struct node_group *g, bool is_standby)
{
	int64_t size = group_spec_of(g)->gpus_per_node;

	return size > 0 ? (gpus_awaited(g, is_standby) + size - 1) / size : 0;
}

static void fit(struct node_group *g, bool is_standby, int64_t missing)
{
	struct starts *s = g->context->starts;
	int64_t excess = gpus_awaited(g, is_standby) - missing * group_spec_of(g)->gpus_per_node;

	for (size_t i = s->count; i-- > 0 && excess > 0;) {
		if (!waits_here(g, &s->items[i], is_standby))
			continue;
		excess -= share_of(g, &s->items[i]);
		starts_drop(s, i);
	}
}

void sizes_fit_starts(struct node_group *g)
{
	fit(g, false, node_group_missing(g));
	fit(g, true, standby_missing(g));
}

void sizes_refuse(struct node_group *g, bool is_standby, int64_t machines, enum error_kind why)
{
	struct starts *s = g->context->starts;
	int64_t missing = is_standby ? standby_missing(g) : node_group_missing(g), waiting = 0;

	for (size_t i = 0; i < s->count; i++)
		waiting += waits_here(g, &s->items[i], is_standby);
	if (missing < machines)
		missing = machines;
	int64_t count = missing > 0 ? (waiting * machines + missing - 1) / missing : 0;
	for (size_t i = s->count; i-- > 0 && count > 0;) {
		if (!waits_here(g, &s->items[i], is_standby))
			continue;
		count--;
		struct start ended = s->items[i];
		if (why == ERROR_CANCELLED)
			starts_drop(s, i);
		else
			starts_refuse(s, i, why);
		if (why == ERROR_STOCKOUT || why == ERROR_QUOTA || why == ERROR_NONE)
			g->context->refused(g->context->user, &ended, why);
	}
}

void sizes_wish_standby(struct node_group *g, int64_t machines)
{
	int64_t most = sizes_most_standby(g);

	if (most < g->seen.standby)
		most = g->seen.standby; /* others asked for more: not ours to take away */
	g->standby_wanted = size_clamp(machines, removals_to_standby(g), most);
}

static void tell_resized(struct node_group *g)
{
	const struct fleet_spec *fleet = g->context->fleet;

	g->resized++;
	log_warn("group-resized-by-others", LOG_S("group", group_spec_of(g)->name), LOG_I("from", g->believed.desired),
		 LOG_I("to", g->seen.desired), LOG_END);
	for (size_t i = 0; i < fleet->pool_count; i++)
		if (pool_position(fleet, i, g->index) >= 0)
			starts_add_event(g->context->starts, i,
					 &(struct event_input){ .group = pool_position(fleet, i, g->index),
								.what = EVENT_RESIZED,
								.value = g->seen.desired,
								.count = 1 });
}

int64_t sizes_most(const struct node_group *g)
{
	int64_t most = group_spec_of(g)->max_nodes;

	return g->is_known && g->seen.max > 0 && g->seen.max < most ? g->seen.max : most;
}

int64_t sizes_most_standby(const struct node_group *g)
{
	return node_group_can(g, PROVIDER_HAS_STANDBY) ? group_spec_of(g)->standby_max_nodes : 0;
}

void sizes_wish(struct node_group *g, int64_t machines)
{
	int64_t most = sizes_most(g);

	g->wanted = size_clamp(machines, 0, most > g->seen.desired ? most : g->seen.desired);
}

/* It falls where machines are woken, too: what we wished fewer of is fulfilled by that. */
static void take_over_standby(struct node_group *g)
{
	int64_t rose = g->seen.standby - g->believed.standby;

	if (rose < 0)
		rose += size_clamp(g->believed.standby - g->standby_wanted, 0, -rose);
	sizes_wish_standby(g, g->standby_wanted + rose);
}

/* Only the difference is theirs: what we wished meanwhile stays wished. */
static void take_over_size(struct node_group *g)
{
	const struct believed_size *b = &g->believed;
	int64_t fell = b->desired - g->seen.desired;
	int64_t lost = size_clamp(fell - b->failed, 0, b->lost); /* those that the cloud does not replace */
	int64_t others = size_clamp(fell, 0, b->failed + b->lost) - fell;
	int64_t staying = machines_staying(g);

	g->wanted += others - lost;
	if (others < 0 || others > b->released) /* one that went by itself before we could end it was replaced */
		tell_resized(g);
	/* Never less than there is and the cloud wants: those end by being named only. */
	int64_t least = staying < g->seen.desired ? staying : g->seen.desired;
	sizes_wish(g, g->wanted > least ? g->wanted : least);
	take_over_standby(g);
}

static void adopt_unlisted(struct node_group *g, int64_t standby_before)
{
	int64_t run = node_group_missing(g) - machines_awaited(g, false);
	int64_t standby = g->seen.standby - standby_before;
	int64_t unclaimed = standby_missing(g) - machines_awaited(g, true);

	if (run > 0)
		machines_adopt_unlisted(g, run, START_COLD);
	if (standby > unclaimed)
		standby = unclaimed;
	if (standby > 0)
		machines_adopt_unlisted(g, standby, START_REFILL);
}

/* Twice what one cold start in twenty takes: what takes longer will not come, and nobody waits for it. */
static void end_old_refills(struct node_group *g)
{
	struct starts *s = g->context->starts;
	millis now = clock_now(g->context->clock);

	for (size_t i = s->count; i-- > 0;) {
		const struct start *t = &s->items[i];
		const struct pool_spec *pool = &g->context->fleet->pools[t->pool];
		millis limit = pool->lead_time.p95 > 0 ? 2 * pool->lead_time.p95 : HOUR;
		if (t->kind == START_REFILL && pool->groups[t->group] == g->index && now - t->asked_at > limit)
			starts_drop(s, i);
	}
}

void sizes_take_over(struct node_group *g)
{
	int64_t standby_before = g->is_known ? g->believed.standby : 0;

	failures_read(g);
	if (g->is_known) {
		take_over_size(g);
	} else {
		g->wanted = g->seen.desired;
		g->standby_wanted = g->seen.standby;
	}
	g->believed = (struct believed_size){ .desired = g->seen.desired, .standby = g->seen.standby };
	removals_settle(g);
	sizes_wish(g, g->wanted); /* machines that stay after all */
	adopt_unlisted(g, standby_before);
	sizes_fit_starts(g);
	end_old_refills(g);
}

int64_t node_group_grow(struct node_group *g, int64_t machines)
{
	int64_t room = sizes_most(g) - g->wanted;

	if (machines > room)
		machines = room;
	if (machines <= 0)
		return 0;
	machines = gate_growth(g, machines);
	g->wanted += machines;
	return machines;
}

void node_group_give_up(struct node_group *g, int64_t machines)
{
	int64_t unclaimed = node_group_missing(g) - machines_awaited(g, false);

	if (g->operation.token[0] && g->operation.verb == PROVIDER_GROW)
		return; /* asked for this instant: the next plan sees what came of it */
	g->wanted -= size_clamp(machines, 0, unclaimed > 0 ? unclaimed : 0);
}

void node_group_set_standby(struct node_group *g, int64_t machines)
{
	if (machines <= g->standby_wanted || node_group_can(g, PROVIDER_BUYS_STANDBY))
		sizes_wish_standby(g, machines);
}
