#include "controller/loop/group_operations.h"

#include "base/alloc.h"
#include "base/fnv1a.h"
#include "base/log.h"
#include "state/guard_record.h"
#include "state/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ATTEMPTS_MOST = 5 };
static const millis LOOK_TIMES[] = { 15 * SECOND, MINUTE }; /* while something is under way; else */
static const millis QUIET_AFTER_REMOVALS = 5 * SECOND;
/* Reads that lag do so for seconds, or up to LAG_MOST: each time twice as long. After that it is refused as any other.
 */
static const millis OUTDATED_AGAIN = 5 * SECOND;
enum { OUTDATED_MOST = 5 };
static const millis LONGEST = 3 * HOUR; /* a cloud that holds a group busy for longer has forgotten it */

/* --- intents, and what goes on at the cloud --- */

static void told_end(const char *token, bool is_written, const struct error *e)
{
	if (!is_written)
		log_error("intent-not-ended", LOG_S("operation", token), LOG_E(e), LOG_END);
}

/* Ends the intent of an operation, if there is a history. */
static void intent_end(struct node_group *g, const char *token, const char *outcome)
{
	struct history *h = g->context->history;
	struct error e = { 0 };

	told_end(token, !h || launch_end(h, token, outcome, clock_now(g->context->clock), &e), &e);
}

static bool has_operation(const struct node_group *g)
{
	return g->operation.token[0] != '\0';
}

static void operation_forget(struct node_group *g)
{
	free(g->operation.removals);
	free(g->operation.ids);
	g->operation = (struct operation){ 0 };
}

static void ongoing_forget(struct node_group *g)
{
	free(g->ongoing.name);
	g->ongoing = (struct ongoing){ 0 };
}

static void end_intent(struct node_group *g, const char *outcome)
{
	intent_end(g, g->operation.token, outcome);
	operation_forget(g);
}

static void ongoing_take(struct node_group *g, const char *token, const char *name, millis began)
{
	struct ongoing *o = &g->ongoing;

	*o = (struct ongoing){ .name = xstrdup(name), .began = began, .since = clock_mono(g->context->clock) };
	memcpy(o->token, token, strnlen(token, TOKEN_MAX));
}

static void ongoing_end(struct node_group *g, const char *outcome)
{
	intent_end(g, g->ongoing.token, outcome);
	ongoing_forget(g);
}

/* The change under way was answered, and goes on under that name. */
static void ongoing_begin(struct node_group *g, const char *name)
{
	const char *token = g->operation.token;
	struct error e = { 0 };

	if (g->ongoing.name)
		ongoing_end(g, error_kind_name(ERROR_CANCELLED)); /* the cloud took another one in its place */
	ongoing_take(g, token, name, clock_now(g->context->clock));
	if (g->context->history && !launch_goes_on(g->context->history, token, name, &e))
		log_error("intent-not-kept", LOG_S("operation", token), LOG_E(&e), LOG_END);
}

void node_group_resume(struct node_group *g, const char *token, const char *operation, millis began)
{
	ongoing_forget(g);
	ongoing_take(g, token, operation, began);
}

/* After a look: over when the group is not busy any more, or when it has lasted for too long. */
static void ongoing_settle(struct node_group *g)
{
	const struct ongoing *o = &g->ongoing;
	bool is_forgotten = o->name && (clock_mono(g->context->clock) - o->since > LONGEST ||
					(o->ends >= ENDS_MOST && clock_mono(g->context->clock) > o->end_asked));

	if (!o->name || g->operation.token[0])
		return;
	if (g->seen.is_busy && !is_forgotten)
		return;
	enum error_kind outcome = is_forgotten ? ERROR_TIMEOUT : o->failed;
	log_info("operation-over", LOG_S("group", group_spec_of(g)->name), LOG_S("operation", o->token),
		 LOG_S("outcome", outcome ? error_kind_name(outcome) : "done"), LOG_END);
	ongoing_end(g, outcome ? error_kind_name(outcome) : "done");
}

/* --- calls --- */

/* Which machines' nodes are not ready, or not there, with a call that is about to start; the arena is kept until its
 * done(). */
static void tell_unready(struct node_group *g, struct provider_call *c, struct arena *a)
{
	arena_clear(a);
	if (g->context->unready)
		c->unready_count = g->context->unready(g->context->user, g->index, a, &c->unready);
	const char **nodeless = arena_array(a, const char *, g->seen.machine_count);
	c->nodeless = nodeless;
	c->nodeless_count = 0;
	for (size_t i = 0; i < g->seen.machine_count; i++) {
		const char *id = g->seen.machines[i].id;
		if (!g->context->node_stages(g->context->user, id).registered)
			nodeless[c->nodeless_count++] = arena_strdup(a, id, strlen(id));
	}
}

static void node_group_plan_look(struct node_group *g, millis after);

/* One that takes longer than it is to the next is followed by one all the same. */
static void look_due(struct timer *t)
{
	struct node_group *g = t->user;

	if (g->is_looking)
		node_group_plan_look(g, clock_real(g->context->clock, LOOK_TIMES[false]));
	else
		node_group_look(g);
}

/* Looks after so long, in the world's time. A group that was stopped never does: it may be freed as soon as its calls
 * are over. */
static void node_group_plan_look(struct node_group *g, millis after)
{
	if (g->is_stopped)
		return;
	g->timer.user = g;
	timer_start(g->context->loop, &g->timer, after, look_due);
}

/* Notes the failure, and when to try again. */
static void group_call_failed(struct node_group *g, const struct provider_call *c)
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

/* --- whom the cloud may end by its own choice --- */

/* Somebody mends the rights, or the cloud mends itself. */
static const millis GUARD_AGAIN = 10 * MINUTE, HAND_OVER_MOST = 30 * SECOND;
/* Reads that lag show for a while who was exposed before. */
static const millis GUARDED_FOR = 15 * SECOND;
/* A full disk. */
static const millis RECORD_AGAIN = MINUTE;

static void hand_over(struct node_group *g);

static void spare_protected(struct node_group *g)
{
	g->spared = arena_array(&g->spared_arena, const char *, g->seen.machine_count);
	g->spared_count = 0;
	for (size_t i = 0; i < g->seen.machine_count; i++)
		if (g->seen.machines[i].is_guarded)
			g->spared[g->spared_count++] =
				arena_strdup(&g->spared_arena, g->seen.machines[i].id, strlen(g->seen.machines[i].id));
}

bool node_group_forget_guard(struct node_group *g, struct error *e)
{
	if (g->must_forget && !guard_record_forget(g->context->history, group_spec_of(g)->name, e))
		return false;
	g->must_forget = false;
	return true;
}

/*
 * What is protected where nothing was protected by us yet is so by somebody's will, and stays so when ours is lifted.
 * After a history was lost that is all of it: too much protection costs less than what somebody wanted kept. Until it
 * is on disk whose is whose nothing is protected or lifted.
 */
static void recall_spared(struct node_group *g)
{
	struct history *h = g->context->history;
	const char *name = group_spec_of(g)->name;
	struct error e = { 0 };

	if (g->are_spared_known || !node_group_can(g, PROVIDER_PROTECTS) ||
	    clock_mono(g->context->clock) < g->guard_after)
		return;
	if (node_group_forget_guard(g, &e) &&
	    guard_record_find(h, name, &g->spared_arena, &g->spared, &g->spared_count, &e)) {
		g->are_spared_known = g->spared;
		/* Recorded still: nobody has lifted it. */
		g->must_unguard |= g->spared && !node_group_is_ours(g);
		if (g->spared || !node_group_is_ours(g))
			return;
		spare_protected(g);
		g->are_spared_known = guard_record_save(h, name, g->spared, g->spared_count, &e);
	}
	if (g->are_spared_known)
		return;
	log_error("protection-not-recorded", LOG_S("group", name), LOG_E(&e), LOG_END);
	g->guard_after = clock_mono(g->context->clock) + RECORD_AGAIN;
}

static void forget_spared(struct node_group *g)
{
	struct error e = { 0 };

	g->must_unguard = false;
	arena_release(&g->spared_arena);
	g->spared = NULL;
	g->spared_count = 0;
	g->are_spared_known = false;
	g->must_forget = g->context->history;
	if (node_group_forget_guard(g, &e))
		return;
	log_error("protection-not-recorded", LOG_S("group", group_spec_of(g)->name), LOG_E(&e), LOG_END);
	g->guard_after = clock_mono(g->context->clock) + RECORD_AGAIN;
}

/* Protected machines that are ours to lift. */
static int64_t count_guarded(const struct node_group *g)
{
	int64_t count = g->seen.guarded;

	for (size_t i = 0; i < g->spared_count; i++) {
		const struct machine *m = node_group_machine(g, g->spared[i]);
		count -= m && m->is_guarded;
	}
	return count;
}

static void guarded(struct provider_call *c)
{
	struct node_group *g = c->user;
	bool is_done = c->error.kind == ERROR_NONE;

	g->is_changing = false;
	g->is_look_stale |= g->is_looking;
	g->calls[c->verb][c->error.kind]++;
	if (g->context->called)
		g->context->called(g->context->user, g, c, clock_now(g->context->clock));
	if (!is_done && c->error.kind != ERROR_CANCELLED)
		log_warn(c->desired ? "machines-not-protected" : "protection-not-lifted",
			 LOG_S("group", group_spec_of(g)->name), LOG_E(&c->error), LOG_END);
	g->guard_after = clock_mono(g->context->clock) + (is_done ? 0 : GUARD_AGAIN);
	g->guarded_until = is_done && c->desired ? clock_mono(g->context->clock) + GUARDED_FOR : 0;
	g->exposed_then = g->seen.exposed;
	if (!c->desired && is_done)
		forget_spared(g);
	else if (!c->desired)
		g->must_unguard = true;
	provider_call_release(c);
	hand_over(g);
	if (!g->is_stopped) {
		g->must_look = true;
		node_group_look(g);
	}
}

static bool shows_exposed(const struct node_group *g)
{
	return g->seen.exposed > 0 || g->seen.new_machines == NEW_MACHINES_EXPOSED;
}

/* Machines are there that the cloud may end by its own choice and that shall end by being named only; or more are kept
 * from it than others want to be left. */
static bool is_exposed(const struct node_group *g)
{
	int64_t alive = node_group_alive(g);

	if (!node_group_is_ours(g) || g->seen.is_refused || g->contention.is_held ||
	    !node_group_can(g, PROVIDER_PROTECTS) || !g->are_spared_known)
		return false;
	/* Of more than are asked for the cloud is about to end some, and chooses. */
	return alive <= g->seen.desired ? shows_exposed(g) : g->seen.guarded > g->seen.desired && count_guarded(g) > 0;
}

/* No operation: no size changes, nothing is bought, and the next look tells whether it is still to be done. */
static void guard(struct node_group *g, bool on)
{
	g->is_changing = true;
	g->change_began = loop_now(g->context->loop);
	g->is_look_stale |= g->is_looking;
	snprintf(g->guard_token, sizeof g->guard_token, "preheat-%lld-%s-protect-%04lld", (long long)g->context->term,
		 g->context->life, (long long)++g->serial);
	g->change = (struct provider_call){ .verb = PROVIDER_PROTECT,
					    .group = group_spec_of(g)->name,
					    .settings = g->settings,
					    .token = g->guard_token,
					    .desired = on,
					    .ids = g->spared,
					    .id_count = g->spared_count,
					    .timeout = on ? 0 : HAND_OVER_MOST,
					    .done = guarded,
					    .user = g };
	g->ops->start(g->provider, &g->change);
}

/* What an earlier life protected, in a group that is not ours any more. */
static void unguard(struct node_group *g)
{
	if (count_guarded(g) > 0 || g->seen.new_machines == NEW_MACHINES_GUARDED)
		guard(g, false);
	else
		forget_spared(g);
}

/* Once nothing is under way there. */
static void hand_over(struct node_group *g)
{
	bool is_due = g->must_hand_over && g->context->may_act(g->context->user);

	g->must_hand_over = false;
	if (!is_due)
		return;
	recall_spared(g);
	if (g->are_spared_known)
		guard(g, false);
}

/* --- changes --- */

/* The operation came to nothing, or to less: what was wished with it is wished no more; later wishes stay. */
static void give_up(struct node_group *g, const struct error *why, int64_t did)
{
	struct history *h = g->context->history;
	const struct operation *o = &g->operation;
	struct error e = { 0 };

	node_group_unwish(g, why->kind, did);
	if (did) {
		told_end(o->token,
			 !h || launch_end_partly(h, o->token, o->desired - o->change + did,
						 clock_now(g->context->clock), &e),
			 &e);
		operation_forget(g);
	} else {
		end_intent(g, error_kind_name(why->kind));
	}
	node_group_fit_starts(g);
	g->context->changed(g->context->user);
}

static void call_back(struct node_group *g)
{
	log_info("operation-called-back", LOG_S("group", group_spec_of(g)->name),
		 LOG_S("operation", g->operation.token), LOG_S("why", "its machines are not needed any more"), LOG_END);
	node_group_call_back(g);
	end_intent(g, error_kind_name(ERROR_CANCELLED));
}

/* From now on reads must show it. Where a launch is counted from what they show, or machines end one by one, the same
 * goes for one that may have been accepted: to ask again too early would be to launch again, or to lower the size
 * again. */
static void note_accepted(struct node_group *g, const struct provider_call *c, int64_t launched)
{
	const struct operation *o = &g->operation;
	bool is_done = c->error.kind == ERROR_NONE;
	bool may_have_been = o->may_be_taken && (g->seen.grows_by_count || o->attempts >= ATTEMPTS_MOST);

	if (!is_done && !launched && !c->ended_count && !(o->verb == PROVIDER_GROW && may_have_been))
		return;
	node_group_note_accepted(
		g, &(struct accepted_call){ .verb = o->verb,
					    .desired = launched ? o->desired - o->change + launched : o->desired,
					    .ids = is_done ? o->ids : c->ended,
					    .id_count = is_done ? o->id_count : c->ended_count,
					    .size = o->size,
					    .at = o->sent_at,
					    .mono = clock_mono(g->context->clock) });
}

static int64_t count_named_again(const struct operation *o)
{
	int64_t count = 0;

	for (size_t i = 0; i < o->id_count; i++)
		count += o->removals[i].tries > 0;
	return count;
}

/* What lowered the size may be this very operation, whose answer was lost: a look tells, later if reads lag. */
static void wait_outdated(struct node_group *g)
{
	struct operation *o = &g->operation;

	g->quiet_until =
		loop_now(g->context->loop) + clock_real(g->context->clock, OUTDATED_AGAIN << (g->outdated - 1));
	if (o->attempts > 1 && o->verb != PROVIDER_GROW && clock_now(g->context->clock) - o->begun_at < LAG_MOST)
		o->attempts--;
}

/* Where none of it can have been taken: a stop's size never follows what others do while it goes on. */
static bool may_begin_anew(const struct operation *o)
{
	return o->attempts == 1 || (o->verb == PROVIDER_STOP && !o->may_be_taken);
}

/* The wish stays, and is decided anew on the next look. */
static void begin_anew(struct node_group *g, const struct error *why)
{
	wait_outdated(g);
	if (count_named_again(&g->operation))
		removals_left_alone(g, false);
	end_intent(g, error_kind_name(why->kind));
}

static void changed(struct provider_call *c)
{
	struct node_group *g = c->user;
	struct error why = c->error;
	bool is_cut = why.kind == ERROR_CANCELLED && !g->is_stopped;
	bool is_unheard = why.kind == ERROR_TIMEOUT || why.kind == ERROR_UNAVAILABLE || is_cut;
	/* A refusal says nothing of what was done before it, by it or by an attempt whose answer was lost: a look does.
	 */
	bool was_unheard =
		c->verb == PROVIDER_GROW && why.kind != ERROR_NONE && (g->operation.may_be_taken || c->was_taken);
	bool is_lost = is_unheard || was_unheard || why.kind == ERROR_THROTTLED || why.kind == ERROR_CONFLICT ||
		       c->ended_count;
	int64_t launched = why.kind != ERROR_NONE && !is_lost ? c->launched : 0; /* a part of it */

	g->is_changing = false;
	g->is_look_stale |= g->is_looking;
	g->calls[c->verb][why.kind]++;
	g->trouble = g->operation.trouble = why;
	g->operation.may_be_taken |=
		why.kind == ERROR_NONE || is_unheard || c->ended_count || c->launched || c->was_taken;
	g->outdated = c->is_outdated ? g->outdated + 1 : 0;
	bool is_outdated = c->is_outdated && g->outdated <= OUTDATED_MOST;
	if (g->context->called)
		g->context->called(g->context->user, g, c, g->operation.sent_at);
	if (why.kind == ERROR_NONE && c->operation && *c->operation && has_operation(g))
		ongoing_begin(g, c->operation);
	if (has_operation(g) && (why.kind == ERROR_NONE || is_lost || launched))
		note_accepted(g, c, launched);
	provider_call_release(c);
	if (g->is_stopped)
		operation_forget(g); /* the intent stays open for whoever goes on */
	hand_over(g);
	if (!has_operation(g))
		return;
	if (why.kind == ERROR_NONE || is_lost) {
		g->must_look = true;
		g->operation.is_uncertain = is_lost;
	}
	if (is_outdated && may_begin_anew(&g->operation)) {
		group_call_failed(g, c);
		begin_anew(g, &why);
	} else if (is_lost) {
		group_call_failed(g, c);
		if (is_outdated)
			wait_outdated(g);
	} else if (why.kind == ERROR_NONE) {
		retry_reset(&g->retry);
		throttle_passed(g->throttle, g->change_began);
		node_group_look(g);
	} else {
		if (why.kind != ERROR_CANCELLED)
			log_warn("provider-refused", LOG_S("group", group_spec_of(g)->name),
				 LOG_S("verb", provider_verb_name(c->verb)), LOG_E(&why), LOG_END);
		give_up(g, &why, launched);
		g->must_look |= launched > 0;
		if (launched)
			node_group_look(g);
	}
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
					    .change = o->verb == PROVIDER_GROW ? o->change : 0,
					    .is_absolute = clock_mono(g->context->clock) - g->opened_at < LAG_MOST,
					    .size = o->size,
					    .ids = o->ids,
					    .id_count = o->id_count,
					    .done = changed,
					    .user = g };
	if (o->verb == PROVIDER_CANCEL && !o->id_count && g->ongoing.name && o->attempts == 1) {
		g->ongoing.ends++;
		g->ongoing.end_asked = clock_mono(g->context->clock);
	}
	if (o->verb == PROVIDER_CANCEL && !o->id_count && g->ongoing.name)
		g->change.pending = g->ongoing.name;
	tell_unready(g, &g->change, &g->change_arena);
	g->ops->start(g->provider, &g->change);
}

/* The cloud works there for others, and did not take the call: it said so at once, or no look shows it by now. What
 * was wanted is looked for elsewhere, and would be bought twice when the cloud is free again. */
static bool is_crowded_out(const struct node_group *g)
{
	const struct operation *o = &g->operation;
	bool was_refused = o->attempts == 1 && o->trouble.kind == ERROR_CONFLICT;

	return (node_group_is_owners(g) || node_group_is_emptied(g)) &&
	       (was_refused || clock_now(g->context->clock) - o->sent_at > LAG_MOST);
}

/* After a look: the operation under way is over, or its answer was lost and it is sent again. */
static void operation_settle(struct node_group *g)
{
	struct operation *o = &g->operation;
	bool is_seen;

	if (!has_operation(g) || g->is_changing || !o->is_sent)
		return;
	if (node_group_take_effect(g, &is_seen)) {
		if (o->id_count && !is_seen)
			g->quiet_until =
				loop_now(g->context->loop) + clock_real(g->context->clock, QUIET_AFTER_REMOVALS);
		if (g->ongoing.name && !strcmp(g->ongoing.token, o->token))
			operation_forget(g); /* its intent ends with what goes on */
		else
			end_intent(g, "done");
		return;
	}
	if (is_crowded_out(g)) {
		give_up(g, &(struct error){ .kind = ERROR_UNAVAILABLE }, 0);
		return;
	}
	if (node_group_is_unwished(g)) { /* it may still come about until then */
		if (clock_now(g->context->clock) - o->sent_at > LAG_MOST)
			call_back(g);
		return;
	}
	if (o->attempts < ATTEMPTS_MOST && !node_group_names_joined(g))
		return; /* node_group_drive() sends it again */
	struct error why = o->trouble.kind != ERROR_NONE ? o->trouble : (struct error){ .kind = ERROR_UNAVAILABLE };
	if (why.kind == ERROR_CONFLICT && g->seen.takes_turns)
		node_group_put_off(g, &why);
	give_up(g, &why, 0);
}

/* "preheat-3-5f0c9a1e77d2b864-g5-spot-a-0012": our term and life, the group, and a number that starts anew with them.
 */
static void make_token(struct node_group *g)
{
	snprintf(g->operation.token, sizeof g->operation.token, "preheat-%lld-%s-%.24s-%04lld",
		 (long long)g->context->term, g->context->life, group_spec_of(g)->name, (long long)++g->serial);
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
	give_up(g, &(struct error){ .kind = ERROR_CANCELLED }, 0);
	return false;
}

static void begin(struct node_group *g)
{
	struct operation *o = &g->operation;
	int64_t again = count_named_again(o);

	/* What is held the cloud has lowered for machines that were named before. For these it is not to be again. */
	o->size = g->seen.desired - (g->held_size > again ? g->held_size - again : 0);
	o->begun_at = clock_now(g->context->clock);
	make_token(g);
	if (!save_intent(g))
		return;
	log_info("provider-asked", LOG_S("group", group_spec_of(g)->name), LOG_S("verb", provider_verb_name(o->verb)),
		 LOG_I("desired", o->desired), LOG_I("machines", (int64_t)o->id_count), LOG_S("operation", o->token),
		 LOG_END);
	send(g);
}

static bool may_send(const struct node_group *g)
{
	millis now = loop_now(g->context->loop);

	return g->context->history && !g->is_stopped && !g->is_changing && g->is_known && !g->must_look &&
	       now >= g->quiet_until && !throttle_wait(g->throttle, now) && g->context->may_act(g->context->user);
}

/* A list that lacks nodes which are there is asked for again. */
static const millis LIST_AGAIN = 5 * SECOND;

void node_group_drive(struct node_group *g)
{
	if (g->is_known && !has_operation(g))
		removals_keep_joined(g);
	if (g->is_known)
		node_group_fit_starts(g);
	if (g->context->is_barred || !may_send(g))
		return;
	recall_spared(g);
	if (g->seen.is_busy && (has_operation(g) || !g->ongoing.name))
		return;
	if (has_operation(g) && node_group_is_unwished(g))
		return;
	if (has_operation(g) && node_group_asks_less(g))
		end_intent(g, error_kind_name(g->operation.trouble.kind));
	if (has_operation(g))
		send(g);
	else if (node_group_plan(g))
		begin(g);
	else if (node_group_waits_for_list(g) && clock_mono(g->context->clock) - g->described_at > LIST_AGAIN)
		node_group_look(g);
	else if (clock_mono(g->context->clock) < g->guard_after)
		return;
	else if (is_exposed(g) &&
		 (clock_mono(g->context->clock) >= g->guarded_until || g->seen.exposed > g->exposed_then))
		guard(g, true);
	else if (g->must_unguard && g->are_spared_known && !node_group_is_ours(g))
		unguard(g);
}

/* --- looks --- */

/* What its owner's schedule switched off, and on again. */
static void note_emptied(struct node_group *g)
{
	bool is_emptied = node_group_is_emptied(g);

	if (is_emptied != g->was_emptied)
		log_warn(is_emptied ? "group-emptied" : "group-free-again", LOG_S("group", group_spec_of(g)->name),
			 LOG_S("why", is_emptied ? g->seen.emptied_by : "its size was raised"), LOG_END);
	g->was_emptied = is_emptied;
}

/* A mistake of whoever configured the group, told when it is found and when it is another one. */
static void note_unread(struct node_group *g)
{
	const struct node_promise *p = &g->seen.promise;
	uint64_t unread = p->unread ? fnv1a_text(FNV1A_START, p->unread) : 0;

	if (unread && unread != g->unread)
		log_warn("new-node-unclear", LOG_S("group", group_spec_of(g)->name), LOG_S("found", p->unread),
			 LOG_I("left_out", (int64_t)p->unread_count), LOG_END);
	g->unread = unread;
}

static void described(struct node_group *g, struct provider_call *c)
{
	retry_reset(&g->retry);
	node_group_see(g, c);
	operation_settle(g);
	if (!has_operation(g))
		node_group_take_over(g);
	ongoing_settle(g);
	g->must_look = false;
	node_group_become_known(g);
	note_emptied(g);
	note_unread(g);
	provider_call_release(c);
	g->context->changed(g->context->user);
	node_group_drive(g);
}

/* It was served from before a write of ours: nothing is done until a look shows that. */
static void doubt(struct node_group *g, struct provider_call *c)
{
	log_debug("look-not-believed", LOG_S("group", group_spec_of(g)->name), LOG_I("desired", c->description.desired),
		  LOG_I("least", g->accepted.least), LOG_END);
	retry_reset(&g->retry);
	g->must_look = true;
	provider_call_release(c);
}

/* Answers tell their time in whole seconds, and come later: the same clock seems to move by so much. */
static const millis TOLD_WITHIN = 6 * SECOND;

static void by_ours(const struct node_group *g, bool is_told, millis *at)
{
	if (*at > 0)
		*at = is_told ? *at - g->cloud_ahead : clock_of_wall(g->context->clock, *at);
}

/* What is of the cloud's clock becomes of ours. In time that runs faster than the world's a second is too coarse. */
static void take_times(struct node_group *g, struct group_description *d)
{
	const struct clock *clock = g->context->clock;
	bool is_told = d->present > 0 && clock->speed == 1;
	millis ahead = d->present - clock_now(clock);

	if (is_told && (ahead > g->cloud_ahead + TOLD_WITHIN || ahead < g->cloud_ahead - TOLD_WITHIN))
		g->cloud_ahead = ahead;
	for (size_t i = 0; i < d->machine_count; i++) {
		by_ours(g, is_told, &d->machines[i].launched_at);
		by_ours(g, is_told, &d->machines[i].state_since);
	}
	for (size_t i = 0; i < d->failure_count; i++)
		by_ours(g, is_told, &d->failures[i].at);
	by_ours(g, is_told, &d->ends_at);
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
	take_times(g, &c->description);
	if (!g->is_look_stale) {
		if (node_group_believes(g, &c->description, g->look_since))
			described(g, c);
		else
			doubt(g, c);
		return;
	}
	provider_call_release(c);
	if (!g->is_changing)
		node_group_look(g);
}

/* Groups that were opened together do not ask together. */
static millis jittered(struct node_group *g, millis wait)
{
	return wait + (millis)(random_next(&g->retry.random) % (uint64_t)(wait / 5 + 1));
}

void node_group_look(struct node_group *g)
{
	millis wait = throttle_wait(g->throttle, loop_now(g->context->loop));
	bool is_settled = node_group_is_settled(g) && !has_operation(g) && !g->ongoing.name && !g->must_look;

	if (g->is_looking || g->is_stopped)
		return;
	if (wait > 0) {
		node_group_plan_look(g, jittered(g, wait));
		return;
	}
	g->is_looking = true;
	g->look_began = loop_now(g->context->loop);
	g->look_since = clock_mono(g->context->clock);
	g->is_look_stale = false;
	g->look = (struct provider_call){ .verb = PROVIDER_DESCRIBE,
					  .group = group_spec_of(g)->name,
					  .settings = g->settings,
					  .pending = g->ongoing.name ? g->ongoing.name : "",
					  .done = looked,
					  .user = g };
	tell_unready(g, &g->look, &g->look_arena);
	node_group_plan_look(g, clock_real(g->context->clock, jittered(g, LOOK_TIMES[is_settled])));
	g->ops->start(g->provider, &g->look);
}

void node_group_look_anew(struct node_group *g)
{
	g->is_look_stale = true;
	node_group_look(g);
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
				  .lacks_standby = access->lacks_standby,
				  .opened_at = clock_mono(context->clock),
				  .recalled_size = ABSENT,
				  .accepted = accepted_none() };
	g->retry =
		retry_make(SECOND, MINUTE, random_stream((uint64_t)context->term, context->fleet->groups[index].name));
}

void node_group_cut(struct node_group *g)
{
	if (g->is_changing)
		g->ops->cancel(g->provider, &g->change);
}

void node_group_stop(struct node_group *g)
{
	if (g->is_stopped && g->context->may_act(g->context->user))
		return; /* what is handed over is handed over to the end while we may */
	g->is_stopped = true;
	timer_stop(&g->timer);
	if (g->is_looking)
		g->ops->cancel(g->provider, &g->look);
	node_group_cut(g);
}

void node_group_hand_over(struct node_group *g)
{
	bool was_ours = g->context->history && !g->context->is_barred && node_group_is_ours(g) &&
			node_group_can(g, PROVIDER_PROTECTS);

	if (g->is_stopped)
		return;
	node_group_stop(g);
	g->must_hand_over = was_ours;
	if (!g->is_changing)
		hand_over(g);
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
	arena_release(&g->spared_arena);
	operation_forget(g);
	ongoing_forget(g);
	accepted_release(&g->accepted);
	free(g->removals);
	g->removals = NULL;
}
