#include "controller/loop/parts.h"

#include "controller/loop/node_group_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct node_stages stages_of(const struct node *n)
{
	return (struct node_stages){ .registered = n->registered_at, .ready = n->ready_since, .device = n->gpu_at };
}

struct node_stages machines_stages(void *user, const char *machine)
{
	const struct controller *c = user;

	for (size_t i = 0; i < fleet_of(c)->group_count; i++) {
		const struct machine *m = node_group_machine(&c->groups[i], machine);
		const struct node *n = m ? cluster_node_by_machine(c->cluster, m->provider_id) : NULL;
		if (n && n->is_known)
			return stages_of(n);
	}
	return (struct node_stages){ 0 };
}

static int by_unready_since(const void *left, const void *right)
{
	const struct node *const *a = left, *const *b = right;

	if ((*a)->unready_since != (*b)->unready_since)
		return (*a)->unready_since < (*b)->unready_since ? -1 : 1;
	return strcmp((*a)->name, (*b)->name);
}

/* Before the cloud has told of a machine its node's name has to do, as clouds that ask have the same. */
size_t machines_unready(void *user, size_t group, struct arena *a, const char *const **ids)
{
	const struct controller *c = user;
	size_t all, count = 0;
	const struct node **nodes = cluster_nodes(c->cluster, (int)group, a, &all);
	const char **told = arena_array(a, const char *, all);

	for (size_t i = 0; i < all; i++)
		if (nodes[i]->is_known && nodes[i]->unready_since > 0)
			nodes[count++] = nodes[i];
	if (count)
		qsort(nodes, count, sizeof(struct node *), by_unready_since);
	for (size_t i = 0; i < count; i++) {
		const char *id = machine_of_node(c, nodes[i]);
		const char *name = node_group_machine(&c->groups[group], id) ? id : nodes[i]->name;
		told[i] = arena_strdup(a, name, strlen(name));
	}
	*ids = told;
	return count;
}

static void node_moved(struct controller *c, const struct node *n)
{
	struct node_stages stages = stages_of(n);

	if (n->group >= 0 && machine_of_node(c, n)[0])
		starts_follow_node(&c->starts, machine_of_node(c, n), &stages);
}

/* Ready replicas that went with a node which nobody here released. */
static void node_lost(struct controller *c, const struct node *n)
{
	struct arena a = { 0 };
	size_t count;

	if (n->group < 0 || node_group_is_removing(&c->groups[n->group], machine_of_node(c, n)) ||
	    drain_is_under_way(c, n->name))
		return;
	const struct pod **pods = cluster_node_pods(c->cluster, n, &a, &count);
	for (size_t i = 0; i < count; i++) {
		int64_t position =
			pods[i]->pool < 0 ? -1 : pool_position(fleet_of(c), (size_t)pods[i]->pool, (size_t)n->group);
		if (position >= 0 && pods[i]->ready_at > 0 && !pods[i]->is_placeholder)
			starts_add_event(&c->starts, (size_t)pods[i]->pool,
					 &(struct event_input){ .group = position, .what = EVENT_LOST, .count = 1 });
	}
	log_warn("node-lost", LOG_S("node", n->name), LOG_I("pods", (int64_t)count), LOG_END);
	arena_release(&a);
}

/* A replica that comes up without our asking counts as on its way from where it is. */
static void adopt_pod(struct controller *c, const struct pod *p, int64_t position, const char *uid, millis at)
{
	struct start like = { .pool = (size_t)p->pool,
			      .group = position,
			      .kind = START_PLACE,
			      .asked_at = p->scheduled_at > 0 ? p->scheduled_at : at,
			      .is_adopted = true };
	struct start *s = starts_ask(&c->starts, &like, 1);

	snprintf(s->machine, sizeof s->machine, "%s", machine_of_node(c, p->node));
	snprintf(s->pod, sizeof s->pod, "%s", uid);
}

/* Its start waits for another one; a placement of its own ends with it. */
static void pod_left(struct controller *c, const char *uid, millis at)
{
	struct start *s = starts_of_pod(&c->starts, uid);

	if (!s)
		return;
	if (s->kind == START_PLACE) {
		starts_drop(&c->starts, (size_t)(s - c->starts.items));
		return;
	}
	s->pod[0] = '\0';
	s->stage = STAGE_IMAGE;
	s->stage_since = at;
}

static void pod_moved(struct controller *c, const struct pod *p, millis at)
{
	char uid[37];

	pod_uid_text(p, uid);
	if (p->state == POD_TERMINATING || p->state == POD_FINISHED) {
		pod_left(c, uid, at);
		return;
	}
	if (!p->node || p->node->group < 0)
		return;
	int64_t position = pool_position(fleet_of(c), (size_t)p->pool, (size_t)p->node->group);
	if (position < 0)
		return;
	if (!starts_of_pod(&c->starts, uid) && p->state != POD_READY &&
	    !starts_bind_pod(&c->starts, (size_t)p->pool, position, machine_of_node(c, p->node), uid))
		adopt_pod(c, p, position, uid, at);
	node_moved(c, p->node);
	struct pod_stages stages = { .uid = uid,
				     .scheduled = p->scheduled_at,
				     .started = p->started_at,
				     .ready = p->is_placeholder	      ? p->started_at
					      : p->state == POD_READY ? p->ready_at
								      : 0 };
	starts_follow_pod(&c->starts, &stages);
}

void machines_event(void *user, const struct cluster_event *e)
{
	struct controller *c = user;

	c->may_be_interrupted |= e->node && e->node->interruption != NODE_STAYS;
	if (c->state == STATE_LEADING && e->node) {
		if (e->what == CLUSTER_NODE_GONE)
			node_lost(c, e->node);
		else
			node_moved(c, e->node);
	} else if (c->state == STATE_LEADING && e->pod && e->pod->pool >= 0) {
		char uid[37];
		pod_uid_text(e->pod, uid);
		if (runs_work(c, (size_t)e->pod->pool))
			c->pools[e->pod->pool].finished +=
				e->what == CLUSTER_POD_CHANGED && e->pod->state == POD_FINISHED;
		else if (e->what == CLUSTER_POD_GONE)
			pod_left(c, uid, e->at);
		else if (is_held(c, (size_t)e->pod->pool) == e->pod->is_placeholder)
			pod_moved(c, e->pod, e->at);
	}
	c->targets_changed |= e->pod && e->pod->pool >= 0;
	act_soon(c);
}

void machines_adopt_pods(struct controller *c)
{
	struct arena a = { 0 };

	for (size_t i = 0; i < fleet_of(c)->pool_count; i++) {
		size_t count;
		const struct pod **pods = cluster_pods(c->cluster, (int)i, &a, &count);
		for (size_t k = 0; k < count && !runs_work(c, i); k++)
			if (is_held(c, i) == pods[k]->is_placeholder)
				pod_moved(c, pods[k], clock_now(c->clock));
	}
	arena_release(&a);
}
