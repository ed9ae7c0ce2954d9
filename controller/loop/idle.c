#include "controller/loop/node_group_parts.h"
#include "controller/loop/parts.h"
#include "controller/loop/release.h"

#include <stdlib.h>
#include <string.h>

/* A group that any pool's work runs on is released by the policy; one that a pool only watches, or of
 * which nothing is known, is left alone. */
static bool is_swept(const struct controller *c, size_t group)
{
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		if (pool_position(fleet_of(c), i, group) >= 0 &&
		    (runs_work(c, i) || fleet_of(c)->pools[i].mode != MODE_ACT || c->pools[i].is_blind))
			return false;
	return true;
}

/* Placements that have no pod yet may be meant for any free GPU of the group. */
static bool awaits_pods(const struct controller *c, size_t group)
{
	for (size_t i = 0; i < c->starts.count; i++) {
		const struct start *s = &c->starts.items[i];
		if (s->kind != START_REFILL && !s->pod[0] && fleet_of(c)->pools[s->pool].groups[s->group] == group)
			return true;
	}
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		if (pool_position(fleet_of(c), i, group) >= 0 && c->pools[i].view.pending > 0)
			return true;
	return false;
}

static struct idle_node *idle_of(struct controller *c, const char *machine)
{
	for (size_t i = 0; i < c->idle_count; i++)
		if (!strcmp(c->idle[i].machine, machine))
			return &c->idle[i];
	return NULL;
}

static struct idle_node *note(struct controller *c, const char *machine)
{
	if (c->idle_count == c->idle_room) {
		c->idle_room = c->idle_room ? 2 * c->idle_room : 16;
		c->idle = realloc(c->idle, c->idle_room * sizeof *c->idle);
		if (!c->idle)
			abort();
	}
	struct idle_node *n = &c->idle[c->idle_count++];
	*n = (struct idle_node){ .since = clock_mono(c->clock) };
	memcpy(n->machine, machine, strnlen(machine, MACHINE_ID_MAX));
	return n;
}

static bool is_idle(const struct controller *c, const struct node *n)
{
	return node_is_usable(n) && !n->is_protected && n->gpus_milli > 0 && n->gpus_used_milli == 0 &&
	       !drain_is_under_way(c, n->name) && !starts_know_machine(&c->starts, machine_of_node(c, n)) &&
	       !node_label(n, "preheat.dev/lent-by");
}

static void sweep(struct controller *c, size_t group, struct arena *a)
{
	size_t count;
	const struct node **nodes = cluster_nodes(c->cluster, (int)group, a, &count);

	for (size_t i = 0; i < count; i++) {
		if (!is_idle(c, nodes[i]))
			continue;
		struct idle_node *n = idle_of(c, machine_of_node(c, nodes[i]));
		if (!n)
			n = note(c, machine_of_node(c, nodes[i]));
		n->is_idle = clock_mono(c->clock) - n->since <= IDLE_PATIENCE || !c->groups[group].is_known ||
			     release_room(c, group) <= 0 ||
			     !drain_begin(c, nodes[i], first_pool(fleet_of(c), group), FATE_REMOVE,
					  "nobody uses it or waits for it");
	}
}

/* A machine that is not idle now begins anew when it is again, also one that went and was woken. */
static void forget_others(struct controller *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->idle_count; i++)
		if (c->idle[i].is_idle) {
			c->idle[kept] = c->idle[i];
			c->idle[kept++].is_idle = false;
		}
	c->idle_count = kept;
}

void release_idle(struct controller *c)
{
	struct arena a = { 0 };

	for (size_t i = 0; i < fleet_of(c)->group_count; i++)
		if (is_swept(c, i) && !awaits_pods(c, i))
			sweep(c, i, &a);
	forget_others(c);
	arena_release(&a);
}
