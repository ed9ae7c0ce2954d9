#include "controller/loop/drain_parts.h"

#include <string.h>

static const char *const MARK = "preheat.dev/draining";

static const char *const fate_names[] = { "remove", "stop", "lend" };

const char *drain_fate_name(enum drain_fate fate)
{
	return fate_names[fate];
}

enum drain_fate drain_fate_of(const struct node *n)
{
	const char *said = node_taint_value(n, MARK);

	for (size_t i = 0; said && i < sizeof fate_names / sizeof *fate_names; i++)
		if (!strcmp(said, fate_names[i]))
			return (enum drain_fate)i;
	return FATE_REMOVE;
}

/* What an answer leads to, if it is still what is wished: a drain may have been given up meanwhile. */
static enum drain_step step_after(const struct drain *d)
{
	if (d->mark == MARK_ON)
		return d->step == DRAIN_MARK ? DRAIN_EVICT : d->step;
	if (d->mark == MARK_LENT)
		return d->step == DRAIN_LEND ? DRAIN_SHOWN : d->step;
	return d->step == DRAIN_UNMARK ? DRAIN_SHOWN : d->step;
}

static void refused(struct drain *d, const struct error *why)
{
	bool is_final = why->kind == ERROR_CANCELLED || why->kind == ERROR_NOT_FOUND;

	if (why->kind != ERROR_CANCELLED && !d->has_complained)
		log_warn("node-mark-failed", LOG_S("node", d->node), LOG_E(why), LOG_END);
	d->has_complained = why->kind != ERROR_CANCELLED;
	d->step = is_final ? DRAIN_OVER : d->step;
	d->quiet_until = loop_now(d->controller->loop) + 5 * SECOND;
}

static void answered(struct node_change *call)
{
	struct drain *d = call->user;
	struct controller *c = d->controller;

	d->is_marking = false;
	if (call->error.kind != ERROR_NONE) {
		refused(d, &call->error);
	} else {
		c->drains.abandoned += d->mark == MARK_OFF && !d->is_stray && d->fate != FATE_LEND;
		d->step = step_after(d);
		d->has_complained = false;
		d->marked_at = loop_now(c->loop);
	}
	act_soon(c);
}

/* What others cordoned stays so: only what carries our mark is put back to work. */
static enum cordon cordon_of(const struct drain *d, enum drain_mark mark)
{
	const struct node *n = cluster_node(d->controller->cluster, d->node);

	if (mark == MARK_ON)
		return CORDON_ON;
	return d->was_marked || (n && n->is_draining) ? CORDON_OFF : CORDON_KEEP;
}

/* One write: a node is never cordoned without saying by whom and what for, and never lent while it is. */
void drain_mark(struct drain *d, enum drain_mark mark)
{
	bool on = mark == MARK_ON;

	d->mark = mark;
	d->was_marked |= on;
	d->taint = (struct node_taint){ MARK, fate_names[d->fate], "NoSchedule" };
	d->annotation = (struct verb_pair){ MARK, on ? fate_names[d->fate] : NULL };
	d->labels[0] =
		(struct verb_pair){ "node.kubernetes.io/exclude-from-external-load-balancers", on ? "true" : NULL };
	d->labels[1] = (struct verb_pair){ "preheat.dev/lent-by",
					   mark == MARK_LENT ? fleet_of(d->controller)->pools[d->pool].name : NULL };
	d->change = (struct node_change){ .node = d->node,
					  .cordon = cordon_of(d, mark),
					  .annotations = &d->annotation,
					  .annotation_count = 1,
					  .labels = d->labels,
					  .label_count = 2,
					  .add = &d->taint,
					  .add_count = on,
					  .remove = &d->taint,
					  .remove_count = !on,
					  .done = answered,
					  .user = d };
	d->is_marking = true;
	node_change_start(d->controller->api, &d->change);
}
