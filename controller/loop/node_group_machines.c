#include "controller/loop/node_group_parts.h"

#include <string.h>

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
