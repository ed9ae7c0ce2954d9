#include "controller/loop/drain.h"

#include "controller/loop/drain_parts.h"

#include <stdlib.h>
#include <string.h>

struct drain *drain_of(const struct controller *c, const char *node)
{
	for (struct drain *d = c->drains.first; d; d = d->next)
		if (!strcmp(d->node, node) && d->step != DRAIN_OVER)
			return d;
	return NULL;
}

bool drain_is_under_way(const struct controller *c, const char *node)
{
	return drain_of(c, node) != NULL;
}

static void copy(char *to, size_t room, const char *from)
{
	size_t len = strnlen(from, room - 1);

	memcpy(to, from, len);
	to[len] = '\0';
}

struct drain *drain_add(struct controller *c, const struct node *n)
{
	struct drain *d = calloc(1, sizeof *d);

	if (!d)
		abort();
	d->controller = c;
	d->group = n->group;
	d->since = clock_mono(c->clock);
	copy(d->node, sizeof d->node, n->name);
	copy(d->machine, sizeof d->machine, machine_of_node(c, n));
	d->next = c->drains.first;
	c->drains.first = d;
	return d;
}

/* A machine of the group as the cloud lists it: what is not can only be emptied, never removed. */
static bool is_known_machine(const struct drain *d)
{
	const struct node_group *g = &d->controller->groups[d->group];

	return g->is_known && node_group_machine(g, d->machine);
}

static bool is_late(const struct drain *d)
{
	return clock_mono(d->controller->clock) - d->since > DRAIN_PATIENCE;
}

static void go_to(struct drain *d, enum drain_step step)
{
	d->step = step;
	d->since = clock_mono(d->controller->clock);
}

bool drain_begin(struct controller *c, const struct node *n, size_t pool, enum drain_fate fate, const char *why)
{
	if (drain_of(c, n->name) || n->group < 0 || n->owner != NODE_UNCLAIMED || n->is_protected ||
	    !c->groups[n->group].is_known || !node_group_machine(&c->groups[n->group], machine_of_node(c, n)))
		return false;
	struct drain *d = drain_add(c, n);
	d->pool = pool;
	d->fate = fate;
	log_info("node-released", LOG_S("node", n->name), LOG_S("pool", fleet_of(c)->pools[pool].name),
		 LOG_S("fate", drain_fate_name(fate)), LOG_S("why", why), LOG_END);
	return true;
}

void drain_take_back(struct controller *c, const struct node *n)
{
	struct drain *d = drain_of(c, n->name);

	if (!d)
		d = drain_add(c, n);
	d->fate = FATE_LEND;
	d->step = DRAIN_UNMARK;
}

void drain_give_back(struct controller *c, const struct node *n, size_t pool)
{
	struct drain *d = drain_of(c, n->name);

	if (!d) {
		drain_begin(c, n, pool, FATE_LEND, "not needed back any more");
	} else if (d->fate == FATE_LEND) {
		d->pool = pool;
		go_to(d, DRAIN_MARK);
	}
}

int64_t drains_in_group(const struct controller *c, int group)
{
	int64_t count = 0;

	for (const struct drain *d = c->drains.first; d; d = d->next)
		count += d->group == group && (d->step == DRAIN_MARK || d->step == DRAIN_EVICT) && d->fate != FATE_LEND;
	return count;
}

/* Others than those that are ready are the first that a workload's controller takes. */
static int64_t serving_of(const struct controller *c, const struct node *n, size_t pool)
{
	struct arena a = { 0 };
	size_t count;
	const struct pod **pods = cluster_node_pods(c->cluster, n, &a, &count);
	int64_t ready = 0;

	for (size_t i = 0; i < count; i++)
		ready += pods[i]->pool == (int)pool && !pods[i]->is_placeholder && pods[i]->state == POD_READY;
	arena_release(&a);
	return ready;
}

/* Its replicas are no part of the plan: it goes, or is back at work and the watch has not told yet. */
static bool is_off_plan(const struct drain *d, const struct node *n)
{
	return n && d->step != DRAIN_OVER && (n->is_draining || (d->step != DRAIN_UNMARK && d->step != DRAIN_SHOWN));
}

int64_t drain_replicas_left(const struct controller *c, size_t pool)
{
	int64_t left = 0;

	for (const struct drain *d = c->drains.first; d; d = d->next) {
		const struct node *n = cluster_node(c->cluster, d->node);
		left += is_off_plan(d, n) ? serving_of(c, n, pool) : 0;
	}
	return left;
}

int64_t drain_serving(const struct drain *d, const struct node *n)
{
	return serving_of(d->controller, n, d->pool);
}

/* A pod that was bound just before the cordon shows a moment later, on another watch (Cluster Autoscaler waits 5 s
 * after its taint). */
static bool has_settled(const struct drain *d)
{
	const struct controller *c = d->controller;
	millis wait = clock_real(c->clock, 5 * SECOND);

	return cluster_is_fresh(c) && loop_now(c->loop) - d->marked_at >= (wait > SECOND ? wait : SECOND);
}

/* The machine has nothing left that we may not end. */
static void emptied(struct drain *d)
{
	struct controller *c = d->controller;
	struct node_group *g = &c->groups[d->group];

	if (d->fate == FATE_LEND) {
		go_to(d, DRAIN_LEND);
		return;
	}
	go_to(d, DRAIN_REMOVE);
	if (node_group_remove(g, d->machine, d->fate == FATE_STOP ? PROVIDER_STOP : PROVIDER_REMOVE))
		node_group_drive(g);
}

/* Until the node's object is gone, too: its going is ours, and no loss. */
static bool is_gone(const struct drain *d)
{
	const struct node_group *g = &d->controller->groups[d->group];
	const struct machine *m = node_group_machine(g, d->machine);
	const struct node *n = cluster_node(d->controller->cluster, d->node);

	if (!m || m->state == MACHINE_TERMINATING)
		return !n || !n->is_known;
	return d->fate == FATE_STOP && (m->state == MACHINE_STOPPED || m->state == MACHINE_STOPPING);
}

/* Nobody asks for its end any more: the cloud refused, or never knew it. */
static bool machine_is_left(const struct drain *d)
{
	const struct node_group *g = &d->controller->groups[d->group];
	const struct machine *m = node_group_machine(g, d->machine);

	if (!g->is_known || node_group_is_removing(g, d->machine))
		return false;
	return m ? m->state == MACHINE_PENDING || machine_is_wanted(m) : is_late(d);
}

static void removing(struct drain *d)
{
	struct controller *c = d->controller;

	if (is_gone(d)) {
		c->drains.removed += d->fate == FATE_REMOVE;
		c->drains.stopped += d->fate == FATE_STOP;
		log_info("node-gone", LOG_S("node", d->node), LOG_S("fate", drain_fate_name(d->fate)), LOG_END);
		d->step = DRAIN_OVER;
	} else if (machine_is_left(d)) {
		d->step = DRAIN_UNMARK; /* the cloud refused: back to work */
	}
}

static void empty(struct drain *d, const struct node *n)
{
	const struct node_group *g = &d->controller->groups[d->group];

	if (!g->is_known)
		return; /* adopted before the cloud told of it */
	if (!is_known_machine(d))
		go_to(d, DRAIN_REMOVE); /* it goes by itself */
	else if (drain_evict(d, n) && has_settled(d))
		emptied(d);
}

/* What was written is told by the watch, a moment later or, while it is broken, much. */
static bool is_shown(const struct drain *d, const struct node *n)
{
	return !n->is_draining || loop_now(d->controller->loop) - d->marked_at > 5 * SECOND;
}

static bool will_be_taken(const struct node *n)
{
	return n->interruption == NODE_SPOT_INTERRUPTED || n->interruption == NODE_MAINTAINED;
}

/* Who serves stays where he is while nothing is known of the pool, unless the cloud will end it in any case. */
static bool must_wait(struct drain *d, const struct node *n)
{
	struct controller *c = d->controller;

	if (d->step > DRAIN_EVICT || !c->pools[d->pool].is_blind || will_be_taken(n) || !drain_serving(d, n))
		return false;
	if (d->last_reason != DRAIN_IS_BLIND)
		log_info("drain-held", LOG_S("node", d->node), LOG_S("reason", "signals-stale"),
			 LOG_S("why", "nothing is known of the pool; what serves there is not asked to go"), LOG_END);
	d->last_reason = DRAIN_IS_BLIND;
	return true;
}

static void step(struct drain *d)
{
	struct controller *c = d->controller;
	const struct node *n = cluster_node(c->cluster, d->node);

	if (d->is_marking || loop_now(c->loop) < d->quiet_until)
		return;
	if ((!n || !n->is_known) && d->step != DRAIN_REMOVE) {
		d->step = DRAIN_OVER;
		return;
	}
	bool may_stay = d->step == DRAIN_LEND || (d->step < DRAIN_REMOVE && !will_be_taken(n));
	if (may_stay && is_late(d))
		d->step = DRAIN_UNMARK;
	if (must_wait(d, n))
		return;
	switch (d->step) {
	case DRAIN_MARK:
		drain_mark(d, MARK_ON);
		break;
	case DRAIN_EVICT:
		empty(d, n);
		break;
	case DRAIN_REMOVE:
		removing(d);
		break;
	case DRAIN_LEND:
		drain_mark(d, MARK_LENT);
		break;
	case DRAIN_UNMARK:
		drain_mark(d, MARK_OFF);
		break;
	case DRAIN_SHOWN:
		if (is_shown(d, n))
			d->step = DRAIN_OVER;
		break;
	case DRAIN_OVER:
		break;
	}
}

static void forget_finished(struct controller *c)
{
	for (struct drain **at = &c->drains.first; *at;) {
		struct drain *d = *at;
		if (d->step == DRAIN_OVER && !d->is_marking && !d->in_flight) {
			*at = d->next;
			free(d);
		} else {
			at = &d->next;
		}
	}
}

void drains_drive(struct controller *c)
{
	if (c->context.is_barred) {
		drains_stop(c);
		return;
	}
	drains_unmark_strays(c);
	for (struct drain *d = c->drains.first; d; d = d->next)
		step(d);
	forget_finished(c);
}

void drains_stop(struct controller *c)
{
	for (struct drain *d = c->drains.first; d; d = d->next) {
		d->step = DRAIN_OVER;
		if (d->is_marking)
			api_cancel(&d->change.call);
		drain_evictions_cancel(d);
	}
	drain_evict_pods_cancel(c);
	forget_finished(c);
}

bool drains_are_idle(const struct controller *c)
{
	return !c->drains.first && !c->drains.lone;
}
