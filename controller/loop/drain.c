#include "controller/loop/drain.h"

#include "controller/loop/drain_parts.h"

#include <stdlib.h>
#include <string.h>

static const struct node_taint our_taint = { .key = "preheat.dev/draining", .value = "true", .effect = "NoSchedule" };

static const char *const fate_names[] = { "remove", "stop", "lend" };

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

static const char *pool_name(const struct drain *d)
{
	return fleet_of(d->controller)->pools[d->pool].name;
}

static void copy(char *to, size_t room, const char *from)
{
	size_t len = strnlen(from, room - 1);

	memcpy(to, from, len);
	to[len] = '\0';
}

static void changed(struct node_change *call)
{
	struct drain *d = call->user;
	struct controller *c = d->controller;

	d->is_marking = false;
	if (call->error.kind != ERROR_NONE) {
		if (call->error.kind != ERROR_CANCELLED)
			log_warn("node-mark-failed", LOG_S("node", d->node), LOG_E(&call->error), LOG_END);
		bool is_final = call->error.kind == ERROR_CANCELLED || call->error.kind == ERROR_NOT_FOUND;
		d->step = is_final ? DRAIN_OVER : d->step;
		d->quiet_until = loop_now(c->loop) + 5 * SECOND;
	} else {
		d->step = d->step == DRAIN_MARK ? DRAIN_EVICT : DRAIN_OVER;
		d->marked_at = loop_now(c->loop);
	}
	act_soon(c);
}

/* Cordon, taint and annotation in one write; the same undone. A lent node only gets a label. */
static void mark(struct drain *d, bool on)
{
	bool lends = d->fate == FATE_LEND;

	d->annotation = (struct verb_pair){ "preheat.dev/draining", on ? fate_names[d->fate] : NULL };
	d->label = lends ? (struct verb_pair){ "preheat.dev/lent-by", on ? pool_name(d) : NULL }
			 : (struct verb_pair){ "node.kubernetes.io/exclude-from-external-load-balancers",
					       on ? "true" : NULL };
	d->change = (struct node_change){ .node = d->node,
					  .cordon = lends ? CORDON_KEEP
						    : on  ? CORDON_ON
							  : CORDON_OFF,
					  .annotations = &d->annotation,
					  .annotation_count = !lends,
					  .labels = &d->label,
					  .label_count = 1,
					  .add = &our_taint,
					  .add_count = on && !lends,
					  .remove = &our_taint,
					  .remove_count = !on && !lends,
					  .done = changed,
					  .user = d };
	d->is_marking = true;
	node_change_start(d->controller->api, &d->change);
}

static struct drain *add(struct controller *c, const char *node, const char *machine, int group)
{
	struct drain *d = calloc(1, sizeof *d);

	if (!d)
		abort();
	d->controller = c;
	d->group = group;
	d->since = clock_mono(c->clock);
	copy(d->node, sizeof d->node, node);
	copy(d->machine, sizeof d->machine, machine);
	d->next = c->drains.first;
	c->drains.first = d;
	return d;
}

bool drain_begin(struct controller *c, const struct node *n, size_t pool, enum drain_fate fate, const char *why)
{
	if (drain_of(c, n->name) || n->group < 0 || n->owner != NODE_UNCLAIMED || n->is_protected)
		return false;
	struct drain *d = add(c, n->name, n->machine_id, n->group);
	d->pool = pool;
	d->fate = fate;
	d->step = DRAIN_MARK;
	log_info("node-released", LOG_S("node", n->name), LOG_S("pool", fleet_of(c)->pools[pool].name),
		 LOG_S("fate", fate_names[fate]), LOG_S("why", why), LOG_END);
	return true;
}

void drain_take_back(struct controller *c, const struct node *n)
{
	struct drain *d = drain_of(c, n->name);

	if (!d)
		d = add(c, n->name, n->machine_id, n->group);
	d->fate = FATE_LEND;
	d->step = DRAIN_UNMARK;
}

int64_t drains_in_group(const struct controller *c, int group)
{
	int64_t count = 0;

	for (const struct drain *d = c->drains.first; d; d = d->next)
		count += d->group == group && (d->step == DRAIN_MARK || d->step == DRAIN_EVICT) && d->fate != FATE_LEND;
	return count;
}

int64_t drain_replicas_left(const struct controller *c, size_t pool)
{
	struct arena a = { 0 };
	int64_t left = 0;

	for (const struct drain *d = c->drains.first; d; d = d->next) {
		const struct node *n = cluster_node(c->cluster, d->node);
		size_t count = 0;
		const struct pod **pods =
			n && d->step != DRAIN_OVER ? cluster_node_pods(c->cluster, n, &a, &count) : NULL;
		for (size_t i = 0; i < count; i++)
			left += pods[i]->pool == (int)pool && !pods[i]->is_placeholder &&
				pods[i]->state == POD_READY; /* others are the first that a controller takes */
	}
	arena_release(&a);
	return left;
}

/* A pod that was bound just before the cordon shows a moment later, on another watch (Cluster Autoscaler waits 5 s
 * after its taint). */
static bool has_settled(const struct drain *d)
{
	const struct controller *c = d->controller;
	millis wait = clock_real(c->clock, 5 * SECOND);

	return d->fate == FATE_LEND ||
	       (cluster_is_fresh(c) && loop_now(c->loop) - d->marked_at >= (wait > SECOND ? wait : SECOND));
}

/* The machine has nothing left that we may not end. */
static void emptied(struct drain *d)
{
	struct controller *c = d->controller;
	struct node_group *g = &c->groups[d->group];

	if (d->fate == FATE_LEND) {
		d->step = DRAIN_OVER;
		return;
	}
	d->step = DRAIN_REMOVE;
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

/* It runs, and nobody asks for its end any more: the cloud refused. */
static bool machine_is_left(const struct drain *d)
{
	const struct node_group *g = &d->controller->groups[d->group];
	const struct machine *m = node_group_machine(g, d->machine);

	return m && machine_is_wanted(m) && !node_group_is_removing(g, d->machine);
}

static void removing(struct drain *d)
{
	struct controller *c = d->controller;

	if (is_gone(d)) {
		c->drains.removed += d->fate == FATE_REMOVE;
		c->drains.stopped += d->fate == FATE_STOP;
		log_info("node-gone", LOG_S("node", d->node), LOG_S("fate", fate_names[d->fate]), LOG_END);
		d->step = DRAIN_OVER;
	} else if (machine_is_left(d)) {
		d->step = DRAIN_UNMARK; /* the cloud refused: back to work */
	}
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
	switch (d->step) {
	case DRAIN_MARK:
		mark(d, true);
		break;
	case DRAIN_EVICT:
		if (drain_evict(d, n) && has_settled(d))
			emptied(d);
		break;
	case DRAIN_REMOVE:
		removing(d);
		break;
	case DRAIN_UNMARK:
		c->drains.abandoned += d->fate != FATE_LEND;
		mark(d, false);
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

/* A mark of ours on a node that nobody drains any more: a stopped machine that was woken, or a drain that was given up.
 */
static void unmark_strays(struct controller *c)
{
	struct arena a = { 0 };
	size_t count;
	const struct node **nodes = cluster_nodes(c->cluster, -1, &a, &count);

	for (size_t i = 0; i < count; i++) {
		const struct node *n = nodes[i];
		if (!n->is_draining || n->group < 0 || drain_of(c, n->name))
			continue;
		const struct node_group *g = &c->groups[n->group];
		const struct machine *m = node_group_machine(g, n->machine_id);
		if (!m || !machine_is_wanted(m) || node_group_is_removing(g, n->machine_id))
			continue;
		struct drain *d = add(c, n->name, n->machine_id, n->group);
		d->step = DRAIN_UNMARK;
	}
	arena_release(&a);
}

void drains_drive(struct controller *c)
{
	if (c->context.is_barred) {
		drains_stop(c);
		return;
	}
	unmark_strays(c);
	for (struct drain *d = c->drains.first; d; d = d->next)
		step(d);
	forget_finished(c);
}

void drains_adopt(struct controller *c)
{
	struct arena a = { 0 };
	size_t count;
	const struct node **nodes = cluster_nodes(c->cluster, -1, &a, &count);

	for (size_t i = 0; i < count; i++)
		if (nodes[i]->is_draining && nodes[i]->group >= 0 && nodes[i]->is_ready &&
		    nodes[i]->owner == NODE_UNCLAIMED && !drain_of(c, nodes[i]->name) &&
		    fleet_of(c)->pools[drain_pool(c, nodes[i])].mode == MODE_ACT) {
			struct drain *d = add(c, nodes[i]->name, nodes[i]->machine_id, nodes[i]->group);
			d->pool = drain_pool(c, nodes[i]);
			d->step = DRAIN_EVICT;
			d->marked_at = loop_now(c->loop);
		}
	arena_release(&a);
}

void drains_stop(struct controller *c)
{
	for (struct drain *d = c->drains.first; d; d = d->next)
		d->step = DRAIN_OVER;
	forget_finished(c);
}

bool drains_are_idle(const struct controller *c)
{
	return !c->drains.first && !c->drains.lone;
}
