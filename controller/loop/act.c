#include "controller/loop/parts.h"

#include "controller/loop/release.h"

#include <string.h>

static int64_t nodes_for(const struct controller *c, size_t pool, size_t group, int64_t replicas)
{
	int64_t each = replicas_per_node(&fleet_of(c)->groups[group], &fleet_of(c)->pools[pool]);

	return each > 0 ? (replicas + each - 1) / each : 0;
}

static struct start start_like(const struct controller *c, size_t pool, size_t position, enum start_kind kind)
{
	return (struct start){ .pool = pool,
			       .group = (int64_t)position,
			       .kind = kind,
			       .asked_at = c->snapshot.now,
			       .ends_at_device = runs_work(c, pool) || is_buffered(c, pool) };
}

struct ask {
	size_t pool, position;
	enum start_kind kind;
	int64_t count;
};

/* Not even asked, so that another group is tried. */
static void refuse(struct controller *c, const struct ask *a, enum error_kind why)
{
	starts_add_event(&c->starts, a->pool,
			 &(struct event_input){ .group = (int64_t)a->position,
						.what = EVENT_REFUSED,
						.kind = (int64_t)a->kind,
						.value = (int64_t)why,
						.count = a->count });
}

/* The manifest allows more, the cloud does not. */
static bool is_capped(const struct node_group *g, const struct group_spec *spec)
{
	return g->seen.max > 0 && g->seen.max < spec->max_nodes;
}

int64_t act_grant(struct controller *c, size_t pool, size_t position, enum start_kind kind, int64_t count)
{
	size_t group = fleet_of(c)->pools[pool].groups[position];
	int64_t nodes = node_group_grow(&c->groups[group], nodes_for(c, pool, group, count));
	int64_t room = nodes * replicas_per_node(&fleet_of(c)->groups[group], &fleet_of(c)->pools[pool]);
	struct start like = start_like(c, pool, position, kind);

	if (count > room)
		count = room;
	starts_ask(&c->starts, &like, count);
	return count;
}

void act_buy(struct controller *c, size_t pool, size_t position, enum start_kind kind, int64_t count)
{
	size_t group = fleet_of(c)->pools[pool].groups[position];
	struct node_group *g = &c->groups[group];

	if (count <= 0)
		return;
	if (!g->is_known) {
		g->was_missed = true;
		refuse(c, &(struct ask){ pool, position, kind, count }, ERROR_UNAVAILABLE);
		return;
	}
	int64_t got = act_grant(c, pool, position, kind, count);
	if (count > got && is_capped(g, &fleet_of(c)->groups[group]))
		refuse(c, &(struct ask){ pool, position, kind, count - got }, ERROR_QUOTA);
}

void act_tell_described(struct controller *c)
{
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		for (size_t k = 0; k < fleet_of(c)->pools[i].group_count; k++) {
			const struct node_group *g = &c->groups[fleet_of(c)->pools[i].groups[k]];
			if (g->was_missed && g->is_known)
				starts_add_event(&c->starts, i,
						 &(struct event_input){
							 .group = (int64_t)k, .what = EVENT_DESCRIBED, .count = 1 });
		}
	for (size_t i = 0; i < fleet_of(c)->group_count; i++)
		c->groups[i].was_missed &= !c->groups[i].is_known;
}

static void refill(struct controller *c, size_t pool, size_t position, int64_t count)
{
	size_t group = fleet_of(c)->pools[pool].groups[position];
	struct node_group *g = &c->groups[group];

	if (count <= 0 || !g->is_known)
		return;
	int64_t before = g->standby_wanted;
	node_group_set_standby(g, before + nodes_for(c, pool, group, count));
	int64_t room = (g->standby_wanted - before) *
		       replicas_per_node(&fleet_of(c)->groups[group], &fleet_of(c)->pools[pool]);
	struct start like = start_like(c, pool, position, START_REFILL);
	starts_ask(&c->starts, &like, count < room ? count : room);
}

/* Oldest first: the cloud lets a machine on its way to standby serve when the size grows. */
static void adopt_refills(struct controller *c, size_t pool, size_t position, int64_t count)
{
	size_t group = fleet_of(c)->pools[pool].groups[position];
	struct node_group *g = &c->groups[group];
	int64_t nodes = nodes_for(c, pool, group, count);

	if (count <= 0 || !g->is_known)
		return;
	node_group_set_standby(g, g->standby_wanted - nodes);
	node_group_grow(g, nodes);
	for (size_t i = 0; i < c->starts.count && count > 0; i++) {
		struct start *s = &c->starts.items[i];
		if (s->pool != pool || s->group != (int64_t)position || s->kind != START_REFILL)
			continue;
		s->kind = START_COLD;
		count--;
	}
}

static void cancel_machine(struct controller *c, size_t pool, size_t group, enum start_kind kind, const char *machine)
{
	struct node_group *g = &c->groups[group];
	const struct machine *m = node_group_machine(g, machine);
	const struct node *n = m ? cluster_node_by_machine(c->cluster, m->provider_id) : NULL;
	enum drain_fate fate = kind == START_WAKE ? FATE_STOP : FATE_REMOVE;

	if (!m || starts_know_machine(&c->starts, machine))
		return; /* another replica still waits for it */
	if (n && n->is_known && node_is_needed(c, n, pool))
		return; /* others came to serve there meanwhile */
	if (n && n->is_known)
		drain_begin(c, n, pool, fate, "cancelled before it served");
	else
		node_group_remove(g, machine, kind == START_WAKE ? PROVIDER_STOP : PROVIDER_CANCEL);
}

/* Taken back for nothing: the node is lent again, unless a replica came to serve there meanwhile. */
static void cancel_reclaim(struct controller *c, size_t pool, size_t group, const char *machine)
{
	const struct machine *m = node_group_machine(&c->groups[group], machine);
	const struct node *n = m ? cluster_node_by_machine(c->cluster, m->provider_id) : NULL;
	struct arena a = { 0 };
	size_t count = 0;
	bool is_known = n && n->is_known, serves = starts_know_machine(&c->starts, machine);
	const struct pod **pods = is_known ? cluster_node_pods(c->cluster, n, &a, &count) : NULL;

	for (size_t i = 0; i < count; i++)
		serves |= pods[i]->pool == (int)pool && pods[i]->state == POD_READY && !pods[i]->is_placeholder;
	if (is_known && !serves)
		drain_give_back(c, n, pool);
	arena_release(&a);
}

static void cancel(struct controller *c, size_t pool, size_t position, enum start_kind kind, int64_t count)
{
	size_t group = fleet_of(c)->pools[pool].groups[position];

	for (; count > 0; count--) {
		size_t i = starts_youngest(&c->starts, pool, (int64_t)position, kind);
		char machine[MACHINE_ID_MAX + 1];
		if (i == c->starts.count)
			break;
		memcpy(machine, c->starts.items[i].machine, sizeof machine);
		starts_drop(&c->starts, i);
		if (machine[0] && kind == START_RECLAIM)
			cancel_reclaim(c, pool, group, machine);
		else if (machine[0] && kind != START_PLACE)
			cancel_machine(c, pool, group, kind, machine);
	}
	if (kind != START_REFILL)
		node_group_give_up(&c->groups[group], node_group_missing(&c->groups[group]));
}

static void cancel_refills(struct controller *c, size_t pool, size_t position, int64_t count)
{
	size_t group = fleet_of(c)->pools[pool].groups[position];
	struct node_group *g = &c->groups[group];

	if (count <= 0)
		return;
	node_group_set_standby(g, g->standby_wanted - nodes_for(c, pool, group, count));
	cancel(c, pool, position, START_REFILL, count);
}

static void shrink(struct controller *c, size_t pool, size_t position, const struct group_decision *d)
{
	size_t group = fleet_of(c)->pools[pool].groups[position];
	struct node_group *g = &c->groups[group];

	adopt_refills(c, pool, position, d->adopt_refill);
	if (d->cancel_cold)
		cancel(c, pool, position, START_COLD, d->cancel_cold);
	if (d->cancel_place)
		cancel(c, pool, position, START_PLACE, d->cancel_place);
	if (d->cancel_wake)
		cancel(c, pool, position, START_WAKE, d->cancel_wake);
	if (d->cancel_reclaim)
		cancel(c, pool, position, START_RECLAIM, d->cancel_reclaim);
	cancel_refills(c, pool, position, d->cancel_refill);
	release(c, pool, position, d);
	if (d->delete_standby > 0 && g->is_known)
		node_group_set_standby(g, g->standby_wanted - nodes_for(c, pool, group, d->delete_standby));
}

static bool releases(const struct pool_plan *p)
{
	int64_t released = 0;

	for (size_t i = 0; i < p->group_count; i++)
		released += p->groups[i].release;
	return released > 0;
}

static int64_t take_from(int64_t *kept, int64_t wanted)
{
	int64_t n = *kept < wanted ? *kept : wanted;

	*kept -= n;
	return wanted - n;
}

/* What serves on nodes that were to go is there at once and costs no start. */
static void grow(struct controller *c, size_t pool, size_t position, const struct group_decision *d)
{
	int64_t more = d->cold + d->wake + d->place;
	int64_t kept = more > 0 && !releases(&c->plan.pools[pool]) ? drains_call_off(c, pool, more) : 0;
	int64_t cold = take_from(&kept, d->cold), wake = take_from(&kept, d->wake), place = take_from(&kept, d->place);

	reclaim(c, pool, position, d->reclaim);
	if (place > 0) {
		struct start like = start_like(c, pool, position, START_PLACE);
		starts_ask(&c->starts, &like, place);
	}
	act_buy(c, pool, position, START_WAKE, wake);
	act_buy(c, pool, position, START_COLD, cold);
	refill(c, pool, position, d->refill);
}

static void for_each(struct controller *c,
		     void (*step)(struct controller *, size_t, size_t, const struct group_decision *))
{
	for (size_t i = 0; i < c->plan.pool_count; i++)
		for (size_t k = 0; k < c->plan.pools[i].group_count; k++)
			if (fleet_of(c)->pools[i].mode == MODE_ACT)
				step(c, i, k, &c->plan.pools[i].groups[k]);
}

/* Warm places beyond what serves already are held by placeholders. */
static void want_replicas(struct controller *c, size_t pool)
{
	const struct pool_view *v = &c->pools[pool].view;
	int64_t decided = c->plan.pools[pool].decision.decided;

	scale_want(c, pool, decided);
	placeholder_want(c, pool, decided - v->ready - v->starting - v->pending);
	buffer_want(c, pool, decided - v->ready - v->starting - v->pending);
}

void act(struct controller *c)
{
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		c->pools[i].starving = 0;
	fall_back_forget(c);
	c->may_be_interrupted = true;
	for_each(c, shrink);
	for_each(c, grow);
	for (size_t i = 0; i < c->plan.pool_count; i++)
		want_replicas(c, i);
	release_idle(c);
	act_soon(c);
}

static const millis DRAIN_POLL = SECOND / 2;

static void drive(struct timer *t)
{
	struct controller *c = t->user;

	c->is_due_soon = false;
	if (!lead_may_act(c))
		return;
	if (c->targets_changed)
		observe_targets(c);
	if (c->has_decided) {
		interrupted_drive(c);
		fall_back_drive(c);
	}
	for (size_t i = 0; i < fleet_of(c)->group_count; i++)
		node_group_drive(&c->groups[i]);
	drains_drive(c);
	if (c->has_decided) {
		scale_drive(c);
		placeholder_drive(c);
		buffer_drive(c);
	}
	if (c->drains.first) /* they also wait for time to pass */
		timer_start(c->loop, &c->soon, DRAIN_POLL, drive);
}

void act_soon(void *user)
{
	struct controller *c = user;

	if (c->is_due_soon || c->state != STATE_LEADING || c->is_stopping)
		return;
	c->soon.user = c;
	c->is_due_soon = true;
	timer_start(c->loop, &c->soon, 0, drive);
}

void act_stop(struct controller *c)
{
	drains_stop(c);
	scale_stop(c);
	placeholder_stop(c);
	buffer_stop(c);
}
