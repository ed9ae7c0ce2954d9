#include "base/log.h"
#include "controller/loop/node_group_parts.h"
#include "state/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ATTEMPTS_MOST = 5, REMOVALS_AT_ONCE = 50 };

static const struct group_spec *spec_of(const struct node_group *g)
{
	return &g->context->fleet->groups[g->index];
}

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
	millis wait = retry_next(&g->retry, c->retry_after);

	g->quiet_until = loop_now(g->context->loop) + wait;
	log_warn("provider-call-failed", LOG_S("group", spec_of(g)->name), LOG_S("verb", provider_verb_name(c->verb)),
		 LOG_E(&c->error), LOG_I("again_in_ms", wait), LOG_END);
	node_group_plan_look(g, wait);
}

static void end_intent(struct node_group *g, const char *outcome)
{
	struct error e = { 0 };

	if (g->context->history &&
	    !launch_end(g->context->history, g->operation.token, outcome, clock_now(g->context->clock), &e))
		log_error("intent-not-ended", LOG_S("operation", g->operation.token), LOG_E(&e), LOG_END);
	operation_forget(g);
}

/* Starts that no machine was found for, when the cloud refused all of the growth. */
static void refuse_waiting(struct node_group *g, enum error_kind why)
{
	struct starts *s = g->context->starts;

	for (size_t i = s->count; i-- > 0;) {
		const struct start *t = &s->items[i];
		if (t->machine[0] || t->stage != STAGE_PROVISION ||
		    g->context->fleet->pools[t->pool].groups[t->group] != g->index)
			continue;
		if (why == ERROR_CANCELLED)
			starts_drop(s, i);
		else
			starts_refuse(s, i, why);
	}
}

/* The operation came to nothing: what was wanted is what is there. */
static void give_up(struct node_group *g, const struct error *why)
{
	enum provider_verb verb = g->operation.verb;

	end_intent(g, error_kind_name(why->kind));
	if (verb == PROVIDER_GROW) {
		refuse_waiting(g, why->kind);
		g->wanted = g->seen.desired;
	} else if (verb == PROVIDER_STANDBY) {
		g->standby_wanted = g->seen.standby;
	} else {
		g->removal_count = 0;
	}
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
	g->calls[c->verb][why.kind]++;
	g->trouble = why;
	provider_call_release(c);
	if (g->is_stopped)
		operation_forget(g); /* the intent stays open for whoever goes on */
	if (!has_operation(g))
		return;
	if (why.kind == ERROR_NONE) {
		g->must_look = true;
		g->operation.is_uncertain = false;
		retry_reset(&g->retry);
	} else if (is_lost(why.kind) || why.kind == ERROR_THROTTLED || why.kind == ERROR_CONFLICT) {
		g->must_look = true;
		g->operation.is_uncertain = true;
		group_call_failed(g, c);
		return;
	} else {
		if (why.kind != ERROR_CANCELLED)
			log_warn("provider-refused", LOG_S("group", spec_of(g)->name),
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
	g->is_changing = true;
	g->change = (struct provider_call){ .verb = o->verb,
					    .group = spec_of(g)->name,
					    .settings = spec_of(g)->settings,
					    .token = o->token,
					    .desired = o->desired,
					    .ids = o->ids,
					    .id_count = o->id_count,
					    .done = changed,
					    .user = g };
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
		if (m && (o->verb == PROVIDER_STOP ? machine_counts(m) : m->state != MACHINE_TERMINATING))
			return false;
	}
	return true;
}

void operation_settle(struct node_group *g)
{
	struct operation *o = &g->operation;

	if (!has_operation(g) || g->is_changing || !o->is_sent)
		return;
	if (!o->is_uncertain || is_reached(g)) {
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
		 spec_of(g)->name, (long long)++g->serial);
}

/* On disk before the first byte goes out. */
static bool save_intent(struct node_group *g)
{
	struct operation *o = &g->operation;
	struct error e = { 0 };
	struct launch l = { .token = o->token,
			    .group = spec_of(g)->name,
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
	log_info("provider-asked", LOG_S("group", spec_of(g)->name), LOG_S("verb", provider_verb_name(verb)),
		 LOG_I("desired", desired), LOG_I("machines", (int64_t)g->operation.id_count),
		 LOG_S("operation", g->operation.token), LOG_END);
	send(g);
}

/* All removals of the kind that is due first. */
static void begin_removals(struct node_group *g)
{
	enum provider_verb verb = g->removals[0].verb;
	size_t n = 0;

	for (size_t i = 0; i < g->removal_count; i++)
		if (g->removals[i].verb == PROVIDER_CANCEL)
			verb = PROVIDER_CANCEL;
	g->operation.removals = calloc(g->removal_count, sizeof *g->operation.removals);
	g->operation.ids = calloc(g->removal_count, sizeof *g->operation.ids);
	if (!g->operation.removals || !g->operation.ids)
		abort();
	for (size_t i = 0; i < g->removal_count && n < REMOVALS_AT_ONCE; i++)
		if (g->removals[i].verb == verb) {
			g->operation.removals[n] = g->removals[i];
			g->operation.ids[n] = g->operation.removals[n].id;
			n++;
		}
	g->operation.id_count = n;
	begin(g, verb, g->wanted);
}

/* Nothing may be sent: what was wished is dropped, as if it had never been. */
static void drop_wishes(struct node_group *g)
{
	refuse_waiting(g, ERROR_CANCELLED);
	g->removal_count = 0;
	g->wanted = g->seen.desired;
	g->standby_wanted = g->seen.standby;
}

void node_group_drive(struct node_group *g)
{
	if (g->context->is_barred && g->is_known) {
		drop_wishes(g);
		return;
	}
	if (!g->context->history || g->is_stopped || g->is_changing || !g->is_known || g->must_look ||
	    g->seen.is_busy || loop_now(g->context->loop) < g->quiet_until)
		return;
	if (has_operation(g))
		send(g);
	else if (g->removal_count)
		begin_removals(g);
	else if (g->wanted < g->seen.desired && machines_alive(g) < g->seen.desired)
		begin(g, PROVIDER_CANCEL, g->wanted > machines_alive(g) ? g->wanted : machines_alive(g));
	else if (g->wanted > g->seen.desired)
		begin(g, PROVIDER_GROW, g->wanted);
	else if (g->standby_wanted != g->seen.standby)
		begin(g, PROVIDER_STANDBY, g->standby_wanted);
}

int64_t node_group_grow(struct node_group *g, int64_t machines)
{
	int64_t most = spec_of(g)->max_nodes, before = node_group_size(g);

	if (g->is_known && g->seen.max > 0 && g->seen.max < most)
		most = g->seen.max;
	if (machines > most - before)
		machines = most - before;
	if (machines <= 0)
		return 0;
	g->wanted = before + machines;
	return machines;
}

void node_group_give_up(struct node_group *g, int64_t machines)
{
	int64_t least = machines_alive(g);

	if (g->operation.verb == PROVIDER_GROW && has_operation(g) && g->is_changing)
		return; /* asked for this instant: the next plan sees what came of it */
	g->wanted = g->wanted - machines > least ? g->wanted - machines : least;
}

void node_group_set_standby(struct node_group *g, int64_t machines)
{
	int64_t most = spec_of(g)->standby_max_nodes;

	g->standby_wanted = machines < 0 ? 0 : machines > most ? most : machines;
}

bool node_group_is_removing(const struct node_group *g, const char *machine)
{
	for (size_t i = 0; i < g->removal_count; i++)
		if (!strcmp(g->removals[i].id, machine))
			return true;
	for (size_t i = 0; i < g->operation.id_count; i++)
		if (!strcmp(g->operation.ids[i], machine))
			return true;
	return false;
}

bool node_group_remove(struct node_group *g, const char *machine, enum provider_verb how)
{
	const struct machine *m = node_group_machine(g, machine);

	if (node_group_is_removing(g, machine))
		return false;
	if (g->removal_count == g->removal_room) {
		g->removal_room = g->removal_room ? 2 * g->removal_room : 16;
		g->removals = realloc(g->removals, g->removal_room * sizeof *g->removals);
		if (!g->removals)
			abort();
	}
	struct removal *r = &g->removals[g->removal_count++];
	*r = (struct removal){ .verb = how };
	memcpy(r->id, machine, strnlen(machine, MACHINE_ID_MAX));
	if (m && machine_counts(m) && g->wanted > 0)
		g->wanted--;
	return true;
}
