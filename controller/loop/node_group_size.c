#include "base/log.h"
#include "controller/loop/node_group_parts.h"

#include <stdint.h>

static int64_t clamp(int64_t value, int64_t least, int64_t most)
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
	g->standby_wanted = clamp(machines, removals_to_standby(g), most);
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

	g->wanted = clamp(machines, 0, most > g->seen.desired ? most : g->seen.desired);
}

/* It falls where machines are woken, too: what we wished fewer of is fulfilled by that. */
static void take_over_standby(struct node_group *g)
{
	int64_t rose = g->seen.standby - g->believed.standby;

	if (rose < 0)
		rose += clamp(g->believed.standby - g->standby_wanted, 0, -rose);
	sizes_wish_standby(g, g->standby_wanted + rose);
}

/* Only the difference is theirs: what we wished meanwhile stays wished. */
static void take_over_size(struct node_group *g)
{
	const struct believed_size *b = &g->believed;
	int64_t fell = b->desired - g->seen.desired;
	int64_t lost = clamp(fell - b->failed, 0, b->lost); /* those that the cloud does not replace */
	int64_t others = clamp(fell, 0, b->failed + b->lost) - fell;
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
	g->wanted -= clamp(machines, 0, unclaimed > 0 ? unclaimed : 0);
}

void node_group_set_standby(struct node_group *g, int64_t machines)
{
	if (machines <= g->standby_wanted || node_group_can(g, PROVIDER_BUYS_STANDBY))
		sizes_wish_standby(g, machines);
}
