#include "base/log.h"
#include "controller/loop/node_group_parts.h"
#include "state/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
