#include "controller/loop/marks.h"

#include "controller/loop/controller_state.h"
#include "controller/loop/watch_sync.h"
#include "state/drain_record.h"

#include <stdio.h>
#include <string.h>

static const millis SWEEP_EVERY = SECOND;
/* A machine that was given to its cloud to end ends within this, or never: nothing is asked of the cloud any more. */
static const millis ENDS_WITHIN = 10 * MINUTE;

void marks_owner(const struct controller *c, char out[MARK_OWNER_MAX + 1])
{
	const struct controller_settings *s = &c->settings;

	snprintf(out, MARK_OWNER_MAX + 1, "%s/%s", s->namespace ? s->namespace : "default",
		 s->lease ? s->lease : "preheat");
}

bool marks_machine_is_wanted(const struct machine *m)
{
	return !m->is_standby && m->state != MACHINE_TERMINATING && m->state != MACHINE_STOPPED;
}

static bool is_ours(const struct controller *c, const struct node *n)
{
	char owner[MARK_OWNER_MAX + 1];

	marks_owner(c, owner);
	return !strcmp(n->drained_by, owner);
}

/* One of before marks had owners says none: it is taken for ours where we act. */
static bool is_others(const struct controller *c, const struct node *n)
{
	return strchr(n->drained_by, '/') && !is_ours(c, n);
}

/* The pool whose pods stand there; that of the row, when it is told; of no group: 0. */
static size_t pool_of(const struct controller *c, const struct node *n, const struct drain_record *row)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t count, pool = n->group >= 0 ? first_pool(fleet_of(c), (size_t)n->group) : 0;
	const struct pod **pods = cluster_node_pods(c->cluster, n, &a, &count);

	const struct group_users *users = n->group >= 0 ? &fleet_of(c)->users[n->group] : NULL;
	for (size_t i = 0; i < count; i++)
		if (pods[i]->pool >= 0 && users && group_is_used_by(users, (size_t)pods[i]->pool))
			pool = (size_t)pods[i]->pool;
	for (size_t i = 0; row && users && i < users->count; i++)
		if (!strcmp(c->pools[users->items[i].pool]->key, row->pool))
			pool = users->items[i].pool;
	return pool;
}

static bool acts_on(const struct controller *c, const struct node *n, const struct drain_record *row)
{
	return n->group >= 0 && pool_may_act(c, pool_of(c, n, row));
}

/* --- marks without a drain --- */

/* Lent by a pool that no longer has this group: nobody would ever take it back. */
static bool is_lent_by_nobody(const struct controller *c, const struct node *n)
{
	const struct fleet_spec *fleet = fleet_of(c);
	const char *by = n->group >= 0 ? node_label(n, "preheat.dev/lent-by") : NULL;

	const struct group_users *users = by ? &fleet->users[n->group] : NULL;
	for (size_t i = 0; users && i < users->count; i++)
		if (!strcmp(fleet->pools[users->items[i].pool].name, by))
			return false;
	return by != NULL;
}

/* A stopped machine that was woken, a drain that was given up, a pool that does not act any more or is gone. What
 * serves is opened again; what ends stays closed to its end. */
static bool is_stray(const struct controller *c, const struct node *n)
{
	if (!n->is_known || (!n->is_draining && !is_lent_by_nobody(c, n)) || is_others(c, n) ||
	    drain_is_under_way(c, n->name))
		return false;
	if (n->group < 0)
		return is_ours(c, n);
	const struct node_group *g = c->groups[n->group];
	const struct machine *m = node_group_machine(g, machine_of_node(c, n));

	return m && marks_machine_is_wanted(m) && !node_group_is_removing(g, m->id) &&
	       (acts_on(c, n, NULL) || is_ours(c, n));
}

void marks_sweep(struct controller *c)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t count;
	const struct node **nodes = cluster_nodes(c->cluster, -1, &a, &count);

	for (size_t i = 0; i < count; i++)
		if (is_stray(c, nodes[i]))
			drain_sweep(c, nodes[i], 0);
}

/* --- what the history tells --- */

static bool is_continued(const struct controller *c, const struct node *n, const struct drain_record *row)
{
	return n->is_known && n->is_draining && n->is_ready && n->owner == NODE_UNCLAIMED && !is_others(c, n) &&
	       acts_on(c, n, row) && !(row && row->outcome);
}

/* Its mark may be on the node, whatever the watch shows. */
static void take_over_row(struct controller *c, struct history *h, const struct drain_record *row)
{
	const struct node *n = cluster_node(c->cluster, row->node);
	struct error e = { 0 };
	millis wait = 0;

	if (!n || !n->is_known) {
		if (!drain_record_unmark(h, row->node, "node-gone", clock_now(c->clock), &e))
			log_error("drain-not-recorded", LOG_S("node", row->node), LOG_E(&e), LOG_END);
		return;
	}
	bool is_shown = n->is_draining || node_label(n, "preheat.dev/lent-by");
	if (drain_is_under_way(c, n->name) || is_others(c, n) || (n->group >= 0 && is_shown))
		return; /* others end it, or marks_sweep() does once the cloud has told of its machine */
	if (row->released_at)
		wait = row->released_at + ENDS_WITHIN - clock_now(c->clock);
	if (wait > ENDS_WITHIN) /* of a clock that was wrong */
		wait = ENDS_WITHIN;
	drain_sweep(c, n, n->group >= 0 ? 0 : wait);
}

/* NULL: the history knows nothing of the node. It is a copy, and was behind, or it is a new one. */
static const struct drain_record *row_of(const struct drain_record *rows, size_t count, const char *node)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(rows[i].node, node))
			return &rows[i];
	return NULL;
}

static void take_over(struct controller *c, struct history *h)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct drain_record *rows = NULL;
	struct error e = { 0 };
	size_t count = 0, node_count;

	if (h && !drain_record_marked(h, &a, &rows, &count, &e)) {
		log_error("drains-not-read", LOG_E(&e), LOG_END);
		count = 0;
	}
	const struct node **nodes = cluster_nodes(c->cluster, -1, &a, &node_count);
	for (size_t i = 0; i < node_count; i++) {
		const struct drain_record *row = row_of(rows, count, nodes[i]->name);
		if (!drain_is_under_way(c, nodes[i]->name) && is_continued(c, nodes[i], row) &&
		    c->pools[pool_of(c, nodes[i], row)]->is_new)
			drain_resume(c, nodes[i], pool_of(c, nodes[i], row), row);
	}
	for (size_t i = 0; i < count; i++)
		take_over_row(c, h, &rows[i]);
}

void marks_adopt(struct controller *c)
{
	if (!c->context.is_barred)
		take_over(c, c->history);
}

/* --- without pools --- */

static void sweep_alone(struct timer *t)
{
	struct controller *c = t->user;

	drains_actor.drive(c);
	timer_start(c->loop, t, SWEEP_EVERY, sweep_alone);
}

bool marks_sweep_alone(struct controller *c)
{
	struct error e = { 0 };

	if (c->context.is_barred || timer_is_running(&c->marks.timer))
		return false;
	c->marks.history = history_edit(c->settings.history_path, &e);
	take_over(c, c->marks.history);
	c->marks.timer.user = c;
	sweep_alone(&c->marks.timer);
	return true;
}

void marks_leave(struct controller *c)
{
	if (!timer_is_running(&c->marks.timer))
		return;
	timer_stop(&c->marks.timer);
	drains_actor.stop(c);
	history_close(c->marks.history);
	c->marks.history = NULL;
}
