#include "controller/loop/removals.h"

#include "base/alloc.h"
#include "base/log.h"
#include "controller/loop/node_group.h"

#include <stdlib.h>
#include <string.h>

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

int64_t removals_to_standby(const struct node_group *g)
{
	int64_t count = 0;

	for (size_t i = 0; i < g->removal_count; i++)
		count += g->removals[i].verb == PROVIDER_STOP && g->removals[i].was_counted;
	return count;
}

static bool is_named(const struct operation *o, const char *id)
{
	for (size_t i = 0; i < o->id_count; i++)
		if (!strcmp(o->ids[i], id))
			return true;
	return false;
}

bool node_group_is_removing(const struct node_group *g, const char *machine)
{
	for (size_t i = 0; i < g->removal_count; i++)
		if (!strcmp(g->removals[i].id, machine))
			return true;
	return is_named(&g->operation, machine);
}

enum { REMOVALS_AT_ONCE = 50, TRIES_MOST = 5 };

static bool is_due(const struct node_group *g, const struct removal *r)
{
	const struct machine *m = node_group_machine(g, r->id);

	/* The size has fallen for it, and the cloud takes it in its own time: to stop it again would lower it again. */
	if (r->verb == PROVIDER_STOP && r->tries && g->held_size &&
	    clock_mono(g->context->clock) - r->named_at < LAG_MOST)
		return false;
	return r->verb != PROVIDER_STOP || !m || m->state == MACHINE_RUNNING; /* others cannot be stopped yet */
}

/* Where one slow operation follows another, machines whose turn comes within a moment of each other share one. */
static const millis GATHER = 20 * SECOND;

bool removals_gather(const struct node_group *g)
{
	millis now = clock_mono(g->context->clock);

	for (size_t i = 0; i < g->removal_count; i++)
		if (g->removals[i].verb == PROVIDER_CANCEL || now - g->removals[i].since >= GATHER)
			return false;
	return g->seen.takes_turns && g->removal_count < REMOVALS_AT_ONCE;
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

/* What ran and stands by has gone, too, whatever it was named for: some clouds stop what they are asked to delete. */
bool removal_is_over(const struct node_group *g, const struct removal *r)
{
	const struct machine *m = node_group_machine(g, r->id);

	return !m || m->state == MACHINE_TERMINATING || (m->is_standby && (r->verb == PROVIDER_STOP || r->was_counted));
}

/* Machines that the next growth would ask for. */
static int64_t machines_to_buy(const struct node_group *g)
{
	int64_t buys = g->wanted + removals_counted(g) - g->seen.desired;

	return buys > 0 ? buys : 0;
}

/* The machine stays: the sizes wanted are again what they were, or it takes the place of one that is still to be
 * bought. */
static void take_back(struct node_group *g, const struct removal *r, int64_t *to_buy)
{
	bool is_spared = r->was_counted && *to_buy > 0;

	*to_buy -= is_spared;
	g->wanted += r->was_counted && !is_spared;
	g->standby_wanted -= r->was_counted && r->verb == PROVIDER_STOP;
}

static bool is_hopeless(const struct node_group *g, const struct removal *r)
{
	const struct machine *m = node_group_machine(g, r->id);

	return r->tries >= TRIES_MOST || (r->verb == PROVIDER_CANCEL && m && m->state == MACHINE_RUNNING);
}

void removals_settle(struct node_group *g)
{
	int64_t to_buy = machines_to_buy(g);
	size_t kept = 0;

	for (size_t i = 0; i < g->removal_count; i++) {
		const struct removal *r = &g->removals[i];
		const struct machine *m = node_group_machine(g, r->id);
		if (removal_is_over(g, r)) {
			if (r->verb == PROVIDER_STOP && !(m && m->is_standby))
				g->standby_wanted -= r->was_counted; /* it was lost on the way */
		} else if (is_hopeless(g, r)) {
			log_warn("machine-left-alone", LOG_S("group", group_spec_of(g)->name), LOG_S("machine", r->id),
				 LOG_S("verb", provider_verb_name(r->verb)), LOG_END);
			take_back(g, r, &to_buy);
		} else {
			g->removals[kept++] = *r;
		}
	}
	g->removal_count = kept;
}

static bool has_joined(const struct node_group *g, const char *id)
{
	const struct machine *m = node_group_machine(g, id);

	return m && g->context->has_joined && g->context->has_joined(g->context->user, m->provider_id);
}

/* It was to end because no node of it came, its turn was long in coming, and now pods may run there. */
void removals_keep_joined(struct node_group *g)
{
	int64_t to_buy = machines_to_buy(g);
	size_t kept = 0;

	for (size_t i = 0; i < g->removal_count; i++) {
		const struct removal *r = &g->removals[i];
		if (!has_joined(g, r->id)) {
			g->removals[kept++] = *r;
			continue;
		}
		log_info("machine-kept", LOG_S("machine", r->id),
			 LOG_S("why", "its node joined before it was asked to go"), LOG_END);
		take_back(g, r, &to_buy);
	}
	g->removal_count = kept;
}

bool node_group_names_joined(const struct node_group *g)
{
	for (size_t i = 0; i < g->operation.id_count; i++)
		if (has_joined(g, g->operation.ids[i]))
			return true;
	return false;
}

/* Those that the operation named and that the cloud left alone: once more, or, `for_good`, never. */
void removals_left_alone(struct node_group *g, bool for_good)
{
	int64_t to_buy = machines_to_buy(g);
	size_t kept = 0;

	for (size_t i = 0; i < g->removal_count; i++) {
		struct removal *r = &g->removals[i];
		bool is_left = is_named(&g->operation, r->id) && !removal_is_over(g, r);
		r->tries += is_left;
		if (is_left && for_good)
			take_back(g, r, &to_buy);
		else
			g->removals[kept++] = *r;
	}
	g->removal_count = kept;
}

bool node_group_remove(struct node_group *g, const char *machine, enum provider_verb how)
{
	const struct machine *m = node_group_machine(g, machine);

	if (node_group_is_removing(g, machine) || (m && m->state == MACHINE_TERMINATING))
		return false;
	if (how == PROVIDER_STOP &&
	    (g->standby_wanted >= node_group_standby_most(g) || !node_group_can(g, PROVIDER_STOPS_NAMED)))
		how = PROVIDER_REMOVE;
	if (how == PROVIDER_CANCEL && !node_group_can(g, PROVIDER_CANCELS))
		how = PROVIDER_REMOVE;
	if (!node_group_can(g, PROVIDER_NAMES_VICTIMS) || node_group_is_held(g))
		return false;
	g->removals = xgrow(g->removals, g->removal_count, &g->removal_room, sizeof *g->removals);
	struct removal *r = &g->removals[g->removal_count++];
	*r = (struct removal){ .verb = how,
			       .was_counted = m && machine_counts(m) && g->wanted > 0,
			       .since = clock_mono(g->context->clock) };
	memcpy(r->id, machine, strnlen(machine, MACHINE_ID_MAX));
	g->wanted -= r->was_counted;
	g->standby_wanted += r->was_counted && how == PROVIDER_STOP;
	return true;
}

bool node_group_call_off(struct node_group *g, char machine[MACHINE_ID_MAX + 1])
{
	int64_t to_buy = machines_to_buy(g);

	for (size_t i = g->removal_count; i-- > 0;) {
		const struct removal *r = &g->removals[i];
		if (r->verb != PROVIDER_CANCEL || r->tries || !still_counts(g, r) || is_named(&g->operation, r->id))
			continue;
		memcpy(machine, r->id, sizeof r->id);
		take_back(g, r, &to_buy);
		memmove(&g->removals[i], &g->removals[i + 1], (--g->removal_count - i) * sizeof *r);
		return true;
	}
	return false;
}

/* Where the size falls before those named are seen to go (a cloud may tell of a stop by the node alone), it is seen as
 * it was until they go: the fall is ours, and nobody else's. */
void removals_hold_size(struct node_group *g)
{
	int64_t asked = 0, ahead = node_group_alive(g) - g->seen.desired;

	for (size_t i = 0; i < g->removal_count; i++) {
		const struct removal *r = &g->removals[i];
		asked += still_counts(g, r) && (r->tries > 0 || is_named(&g->operation, r->id));
	}
	g->held_size = 0;
	if (ahead <= 0)
		return;
	int64_t gone = ahead < asked ? ahead : asked;

	g->held_size = gone;
	g->seen.desired += gone;
	g->seen.standby -= gone < g->seen.standby ? gone : g->seen.standby;
}

/* It was on its way to standby when it was named, and the cloud lets it serve in place of one that was asked for: the
 * size wanted falls with it, or another would be bought as soon as it is gone. */
static void count_late(struct node_group *g, struct removal *r)
{
	const struct machine *m = node_group_machine(g, r->id);

	if (r->was_counted || !m || !machine_counts(m) || g->wanted <= 0)
		return;
	r->was_counted = true;
	g->wanted--;
	g->standby_wanted += r->verb == PROVIDER_STOP;
}

bool removals_plan(struct node_group *g, enum provider_verb verb)
{
	struct operation *o = &g->operation;
	int64_t counted = 0;

	o->removals = xcalloc(g->removal_count, sizeof *o->removals);
	o->ids = xcalloc(g->removal_count, sizeof *o->ids);
	for (size_t i = 0; i < g->removal_count && o->id_count < REMOVALS_AT_ONCE; i++) {
		struct removal *r = &g->removals[i];
		if (r->verb != verb || !is_due(g, r))
			continue;
		count_late(g, r);
		r->named_at = clock_mono(g->context->clock);
		o->removals[o->id_count] = *r;
		o->ids[o->id_count] = o->removals[o->id_count].id;
		o->id_count++;
		counted += still_counts(g, r);
	}
	o->verb = verb;
	o->desired = g->wanted + removals_counted(g) - counted;
	int64_t surplus = g->believed.desired - counted - o->desired;
	if (verb == PROVIDER_CANCEL && surplus > 0)
		o->change = -surplus;
	return true;
}
