#include "controller/loop/node_group.h"

#include "controller/loop/node_group_parts.h"

#include <stdlib.h>
#include <string.h>

static const millis LOOK_TIMES[] = { 15 * SECOND, MINUTE }; /* while something is under way; else */

int64_t pool_position(const struct fleet_spec *fleet, size_t pool, size_t group)
{
	for (size_t i = 0; i < fleet->pools[pool].group_count; i++)
		if (fleet->pools[pool].groups[i] == group)
			return (int64_t)i;
	return -1;
}

size_t first_pool(const struct fleet_spec *fleet, size_t group)
{
	for (size_t i = 0; i < fleet->pool_count; i++)
		if (pool_position(fleet, i, group) >= 0)
			return i;
	return 0;
}

bool machine_counts(const struct machine *m)
{
	return !m->is_standby && m->state != MACHINE_TERMINATING;
}

bool machine_stands_by(const struct machine *m)
{
	return m->is_standby && m->state != MACHINE_TERMINATING;
}

const struct machine *node_group_machine(const struct node_group *g, const char *machine)
{
	for (size_t i = 0; i < g->seen.machine_count; i++)
		if (!strcmp(g->seen.machines[i].id, machine))
			return &g->seen.machines[i];
	return NULL;
}

int64_t node_group_count(const struct node_group *g, enum machine_state state)
{
	int64_t count = 0;

	for (size_t i = 0; i < g->seen.machine_count; i++)
		count += g->seen.machines[i].state == state;
	return count;
}

int64_t machines_alive(const struct node_group *g)
{
	int64_t count = 0;

	for (size_t i = 0; i < g->seen.machine_count; i++)
		count += machine_counts(&g->seen.machines[i]);
	return count;
}

static void described(struct node_group *g, struct provider_call *c)
{
	struct group_description before = g->seen;
	struct arena held = g->arena;

	g->seen = c->description;
	g->arena = c->arena;
	c->arena = (struct arena){ 0 };
	g->described_at = clock_mono(g->context->clock);
	retry_reset(&g->retry);
	removals_hold_size(g);
	machines_compare(g, &before);
	operation_settle(g);
	if (!g->operation.token[0])
		sizes_take_over(g);
	ongoing_settle(g);
	g->must_look = false;
	g->is_known = true;
	refusal_tell(g);
	standby_tell(g);
	arena_release(&held);
	provider_call_release(c);
	g->context->changed(g->context->user);
	node_group_drive(g);
}

static void looked(struct provider_call *c)
{
	struct node_group *g = c->user;

	g->is_looking = false;
	g->calls[PROVIDER_DESCRIBE][c->error.kind]++;
	if (c->error.kind == ERROR_CANCELLED) {
		provider_call_release(c);
		return;
	}
	g->trouble = c->error;
	if (c->error.kind != ERROR_NONE) {
		group_call_failed(g, c);
		provider_call_release(c);
		return;
	}
	throttle_passed(g->throttle, g->look_began);
	if (!g->is_look_stale) {
		described(g, c);
		return;
	}
	provider_call_release(c);
	if (!g->is_changing)
		node_group_look(g);
}

static bool is_unsettled(const struct node_group *g)
{
	return g->operation.token[0] || g->ongoing.name || g->seen.is_busy || g->removal_count || g->must_look ||
	       !g->is_known || g->wanted != machines_alive(g) || node_group_count(g, MACHINE_RUNNING) != g->wanted ||
	       node_group_count(g, MACHINE_STOPPED) != g->standby_wanted;
}

static void fire(struct timer *t)
{
	struct node_group *g = t->user;

	if (!g->is_looking)
		node_group_look(g);
}

void node_group_plan_look(struct node_group *g, millis after)
{
	g->timer.user = g;
	timer_start(g->context->loop, &g->timer, after, fire);
}

/* Groups that were opened together do not ask together. */
static millis jittered(struct node_group *g, millis wait)
{
	return wait + (millis)(random_next(&g->retry.random) % (uint64_t)(wait / 5 + 1));
}

bool node_group_can(const struct node_group *g, unsigned abilities)
{
	unsigned has = g->is_known ? g->seen.abilities & g->ops->abilities : g->ops->abilities;

	return (has & abilities) == abilities;
}

void group_tell_unready(struct node_group *g, struct provider_call *c, struct arena *a)
{
	arena_clear(a);
	if (g->context->unready)
		c->unready_count = g->context->unready(g->context->user, g->index, a, &c->unready);
}

void node_group_look(struct node_group *g)
{
	millis wait = throttle_wait(g->throttle, loop_now(g->context->loop));

	if (g->is_looking || g->is_stopped)
		return;
	if (wait > 0) {
		node_group_plan_look(g, jittered(g, wait));
		return;
	}
	g->is_looking = true;
	g->look_began = loop_now(g->context->loop);
	g->is_look_stale = false;
	g->look = (struct provider_call){ .verb = PROVIDER_DESCRIBE,
					  .group = group_spec_of(g)->name,
					  .settings = g->settings,
					  .pending = g->ongoing.name ? g->ongoing.name : "",
					  .done = looked,
					  .user = g };
	group_tell_unready(g, &g->look, &g->look_arena);
	node_group_plan_look(g, clock_real(g->context->clock, jittered(g, LOOK_TIMES[!is_unsettled(g)])));
	g->ops->start(g->provider, &g->look);
}

void node_group_open(struct node_group *g, const struct group_context *context, size_t index,
		     const struct group_access *access)
{
	*g = (struct node_group){ .context = context,
				  .index = index,
				  .ops = access->ops,
				  .provider = access->provider,
				  .settings = access->settings,
				  .calls = access->calls,
				  .throttle = access->throttle,
				  .lacks_standby = access->lacks_standby };
	g->retry =
		retry_make(SECOND, MINUTE, random_stream((uint64_t)context->term, context->fleet->groups[index].name));
}

void node_group_stop(struct node_group *g)
{
	g->is_stopped = true;
	timer_stop(&g->timer);
	if (g->is_looking)
		g->ops->cancel(g->provider, &g->look);
	if (g->is_changing)
		g->ops->cancel(g->provider, &g->change);
}

bool node_group_is_idle(const struct node_group *g)
{
	return !g->is_looking && !g->is_changing;
}

void node_group_close(struct node_group *g)
{
	arena_release(&g->arena);
	arena_release(&g->look_arena);
	arena_release(&g->change_arena);
	operation_forget(g);
	ongoing_forget(g);
	free(g->removals);
	g->removals = NULL;
}
