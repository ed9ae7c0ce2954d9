#include "controller/loop/node_group.h"

#include "base/log.h"
#include "controller/loop/node_group_parts.h"

#include <stdlib.h>
#include <string.h>

static const millis LOOK_TIMES[] = { 5 * SECOND, 15 * SECOND }; /* while something is under way; else */

static const struct group_spec *spec_of(const struct node_group *g)
{
	return &g->context->fleet->groups[g->index];
}

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
	return m->state == MACHINE_PENDING || m->state == MACHINE_RUNNING || m->state == MACHINE_WAKING;
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

int64_t node_group_size(const struct node_group *g)
{
	int64_t alive = machines_alive(g);

	return g->wanted > alive ? g->wanted : alive;
}

/* Gives a machine to the starts that wait for one, pool by pool. Returns the places that were taken. */
static int64_t bind(struct node_group *g, const struct machine *m)
{
	const struct fleet_spec *fleet = g->context->fleet;
	int64_t gpus = spec_of(g)->gpus_per_node, taken = 0;

	for (size_t i = 0; i < fleet->pool_count && gpus > 0; i++) {
		int64_t position = pool_position(fleet, i, g->index), each = fleet->pools[i].gpus_per_replica;
		if (position < 0 || each <= 0)
			continue;
		int64_t bound = starts_bind_machine(g->context->starts, i, position, m->id, gpus / each);
		gpus -= bound * each;
		taken += bound;
	}
	return taken;
}

/* A machine that nobody here asked for, on its way: what it will hold counts as on its way, too. */
static void adopt(struct node_group *g, const struct machine *m)
{
	const struct fleet_spec *fleet = g->context->fleet;
	struct node_stages stages = g->context->node_stages(g->context->user, m->id);

	for (size_t i = 0; i < fleet->pool_count && stages.device <= 0; i++) {
		int64_t position = pool_position(fleet, i, g->index);
		if (position < 0)
			continue;
		struct start like = { .pool = i,
				      .group = position,
				      .kind = m->state == MACHINE_WAKING ? START_WAKE : START_COLD,
				      .asked_at = m->launched_at > 0 ? clock_of_wall(g->context->clock, m->launched_at)
								     : clock_now(g->context->clock),
				      .is_adopted = true,
				      .ends_at_device = g->context->runs_work(g->context->user, i) };
		starts_ask(g->context->starts, &like, replicas_per_node(spec_of(g), &fleet->pools[i]));
		bind(g, m);
		break;
	}
}

static void machine_came(struct node_group *g, const struct machine *m)
{
	if (!machine_counts(m) || starts_know_machine(g->context->starts, m->id))
		return;
	if (!bind(g, m))
		adopt(g, m);
}

static bool was_seen(const struct group_description *before, const char *id, enum machine_state *state)
{
	for (size_t i = 0; i < before->machine_count; i++)
		if (!strcmp(before->machines[i].id, id)) {
			*state = before->machines[i].state;
			return true;
		}
	return false;
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

static void compare_machines(struct node_group *g, const struct group_description *before)
{
	for (size_t i = 0; i < g->seen.machine_count; i++) {
		const struct machine *m = &g->seen.machines[i];
		enum machine_state was = MACHINE_STOPPED;
		bool seen = was_seen(before, m->id, &was);
		if (m->state == MACHINE_STOPPED)
			starts_machine_stopped(g->context->starts, m->id, clock_now(g->context->clock));
		if (m->state == MACHINE_TERMINATING)
			machine_went(g, m->id);
		else if (!seen || was == MACHINE_STOPPED || was == MACHINE_STOPPING)
			machine_came(g, m);
	}
	for (size_t i = 0; i < before->machine_count; i++)
		if (!node_group_machine(g, before->machines[i].id))
			machine_went(g, before->machines[i].id);
}

/* Refuses the oldest starts without a machine, so many machines' worth. */
static void launch_failed(struct node_group *g, const struct launch_failure *f)
{
	struct starts *s = g->context->starts;
	int64_t gpus = f->count * spec_of(g)->gpus_per_node;

	for (size_t i = s->count; i-- > 0 && gpus > 0;) {
		struct start *t = &s->items[i];
		const struct pool_spec *pool = &g->context->fleet->pools[t->pool];
		if (t->machine[0] || t->stage != STAGE_PROVISION || pool->groups[t->group] != g->index)
			continue;
		gpus -= pool->gpus_per_replica;
		starts_refuse(s, i, f->kind);
	}
	g->wanted -= f->count;
	if (g->wanted < machines_alive(g))
		g->wanted = machines_alive(g);
	log_warn("launch-failed", LOG_S("group", spec_of(g)->name), LOG_I("machines", f->count),
		 LOG_S("kind", error_kind_name(f->kind)), LOG_S("message", f->message), LOG_END);
}

static void read_failures(struct node_group *g)
{
	for (size_t i = 0; i < g->seen.failure_count; i++) {
		const struct launch_failure *f = &g->seen.failures[i];
		if (f->id <= g->last_failure)
			continue;
		g->last_failure = f->id;
		if (g->is_known)
			launch_failed(g, f);
	}
}

/* Somebody else resized the group while we had nothing under way: their size is the truth. */
static void adopt_size(struct node_group *g)
{
	const struct fleet_spec *fleet = g->context->fleet;

	if (g->operation.token[0] || g->removal_count)
		return;
	if (g->is_known && g->wanted == g->seen.desired && g->standby_wanted == g->seen.standby)
		return;
	if (g->is_known && g->wanted != g->seen.desired && !g->must_look) {
		log_warn("group-resized-by-others", LOG_S("group", spec_of(g)->name), LOG_I("from", g->wanted),
			 LOG_I("to", g->seen.desired), LOG_END);
		for (size_t i = 0; i < fleet->pool_count; i++)
			if (pool_position(fleet, i, g->index) >= 0)
				starts_add_event(g->context->starts, i,
						 &(struct event_input){ .group = pool_position(fleet, i, g->index),
									.what = EVENT_RESIZED,
									.value = g->seen.desired,
									.count = 1 });
	}
	g->wanted = g->seen.desired;
	g->standby_wanted = g->seen.standby;
}

static void forget_gone_removals(struct node_group *g)
{
	size_t kept = 0;

	for (size_t i = 0; i < g->removal_count; i++) {
		const struct removal *r = &g->removals[i];
		const struct machine *m = node_group_machine(g, r->id);
		bool is_over =
			!m || m->state == MACHINE_TERMINATING ||
			(r->verb == PROVIDER_STOP && (m->state == MACHINE_STOPPING || m->state == MACHINE_STOPPED)) ||
			(r->verb == PROVIDER_CANCEL && m->state == MACHINE_RUNNING && !g->operation.token[0]);
		if (!is_over)
			g->removals[kept++] = *r;
	}
	g->removal_count = kept;
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
	if (g->is_known || g->operation.token[0])
		operation_settle(g);
	compare_machines(g, &before);
	read_failures(g);
	forget_gone_removals(g);
	adopt_size(g);
	g->must_look = false;
	g->is_known = true;
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
	described(g, c);
}

static bool is_unsettled(const struct node_group *g)
{
	return g->operation.token[0] || g->removal_count || g->must_look || !g->is_known ||
	       g->wanted != machines_alive(g) || node_group_count(g, MACHINE_RUNNING) != g->wanted;
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

void node_group_look(struct node_group *g)
{
	if (g->is_looking || g->is_stopped)
		return;
	g->is_looking = true;
	g->look = (struct provider_call){ .verb = PROVIDER_DESCRIBE,
					  .group = spec_of(g)->name,
					  .settings = spec_of(g)->settings,
					  .done = looked,
					  .user = g };
	node_group_plan_look(g, clock_real(g->context->clock, LOOK_TIMES[!is_unsettled(g)]));
	g->ops->start(g->provider, &g->look);
}

void node_group_open(struct node_group *g, const struct group_context *context, size_t index,
		     const struct group_access *access)
{
	*g = (struct node_group){ .context = context,
				  .index = index,
				  .ops = access->ops,
				  .provider = access->provider,
				  .calls = access->calls };
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
	operation_forget(g);
	free(g->removals);
	g->removals = NULL;
}
