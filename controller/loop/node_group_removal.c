#include "base/log.h"
#include "controller/loop/node_group_parts.h"

#include <stdlib.h>
#include <string.h>

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

static int64_t at_most(int64_t a, int64_t b)
{
	return a < b ? a : b;
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
