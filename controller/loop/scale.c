#include "controller/loop/parts.h"

/* Of the world. What somebody else set meanwhile is seen, and set again, after LOOK_AGAIN. */
static const millis SETTLE_MOST = 10 * SECOND, LOOK_AGAIN = MINUTE;
/* Pods that a smaller number ends are still there for a moment. */
static const millis PODS_LINGER = 3 * SECOND;

static const struct warm_pool *manifest_of(const struct controller *c, size_t pool)
{
	return &c->manifest.pools[pool];
}

static bool is_scaled(const struct controller *c, size_t pool)
{
	const struct spec_text *s = &manifest_of(c, pool)->spec;

	return s->workload.target.name && s->workload.warm == WARM_REPLICAS && s->mode == MODE_ACT;
}

static void scaled(struct scale_call *call)
{
	struct live_pool *p = call->user;
	struct controller *c = p->controller;
	struct scale_target *t = &p->scale;

	t->is_calling = false;
	if (call->error.kind == ERROR_NONE) {
		if (call->before != call->wanted)
			log_info("workload-scaled", LOG_S("pool", fleet_of(c)->pools[p->index].name),
				 LOG_I("from", call->before), LOG_I("to", call->wanted), LOG_END);
		if (call->wanted < call->before) {
			t->was = call->before;
			t->lowered_at = loop_now(c->loop);
		}
		t->is = call->wanted > call->replicas ? call->replicas : call->wanted; /* more: left as it is */
		t->told_at = loop_now(c->loop);
		t->failures = 0;
	} else {
		t->is = ABSENT;
		t->failures++;
		t->quiet_until = loop_now(c->loop) + (t->failures < 6 ? t->failures * SECOND : 10 * SECOND);
		if (call->error.kind != ERROR_CANCELLED && t->failures == 1) {
			log_warn("workload-not-scaled", LOG_S("pool", fleet_of(c)->pools[p->index].name),
				 LOG_E(&call->error), LOG_END);
			events_of_scale(c, p->index, &call->error);
		}
	}
	act_soon(c);
}

void scale_want(struct controller *c, size_t pool, int64_t replicas)
{
	if (is_scaled(c, pool))
		c->pools[pool].scale.wanted = replicas;
}

/* Replicas of the pool that the decision does not count: on nodes that drain and not told to go yet, on nodes of
 * nobody's, and those whose release found no node. */
int64_t scale_beyond_plan(struct controller *c, size_t pool)
{
	return drain_replicas_left(c, pool) + c->pools[pool].view.elsewhere + c->pools[pool].starving;
}

/* Ready pods are never ended by a smaller number, whatever became of their nodes meanwhile: a replica goes only by its
 * drain. */
static int64_t serving(const struct controller *c, size_t pool)
{
	struct arena a = { 0 };
	size_t count;
	const struct pod **pods = cluster_pods(c->cluster, (int)pool, &a, &count);
	int64_t ready = 0;

	for (size_t i = 0; i < count; i++)
		ready += pods[i]->state == POD_READY && !pods[i]->is_placeholder;
	arena_release(&a);
	return ready;
}

/*
 * The controller of the workload has heard of the last eviction: the pod that it made in its place is there, and is
 * what it ends first when there shall be fewer. Before, it would end one that serves. Where it cannot make one, a
 * moment must do.
 */
static bool has_settled(struct controller *c, size_t pool)
{
	const struct scale_target *t = &c->pools[pool].scale;
	struct arena a = { 0 };
	size_t count;
	const struct pod **pods = cluster_pods(c->cluster, (int)pool, &a, &count);
	int64_t alive = 0;

	for (size_t i = 0; i < count; i++)
		alive +=
			!pods[i]->is_placeholder && pods[i]->state != POD_TERMINATING && pods[i]->state != POD_FINISHED;
	arena_release(&a);
	return t->is == ABSENT || alive >= t->is || loop_now(c->loop) - t->fewer_since > SETTLE_MOST;
}

int64_t scale_set(const struct controller *c, size_t pool)
{
	const struct scale_target *t = &c->pools[pool].scale;

	if (is_scaled(c, pool) && c->context.is_barred)
		return INT64_MAX; /* what we may not set is not somebody else's wish either */
	if (!is_scaled(c, pool) || t->wanted == ABSENT)
		return ABSENT;
	return t->is != ABSENT && t->was > t->is && loop_now(c->loop) - t->lowered_at < PODS_LINGER ? t->was : t->is;
}

static bool is_news(const struct controller *c, const struct scale_target *t, int64_t replicas)
{
	millis age = clock_real(c->clock, LOOK_AGAIN);

	return t->is != replicas || loop_now(c->loop) - t->told_at > (age > SECOND ? age : SECOND);
}

/* What the pool's groups hold at their largest. */
static int64_t places_at_most(const struct controller *c, size_t pool)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	int64_t places = 0;

	for (size_t i = 0; i < spec->group_count; i++) {
		const struct group_spec *g = &fleet_of(c)->groups[spec->groups[i]];
		places += g->max_nodes * replicas_per_node(g, spec);
	}
	return places;
}

/* Who sets a larger number by hand while nothing is seen knows more than we do. What we set ourselves we may lower. */
static int64_t kept_above(const struct live_pool *p, int64_t replicas)
{
	if (!p->is_blind)
		return 0;
	int64_t ours = p->scale.is != ABSENT ? p->scale.is : replicas;
	return ours > 0 ? ours : 1;
}

static void drive_pool(struct controller *c, size_t pool)
{
	struct live_pool *p = &c->pools[pool];
	struct scale_target *t = &p->scale;
	const struct target_text *target = &manifest_of(c, pool)->spec.workload.target;

	if (!is_scaled(c, pool) || t->is_calling || t->wanted == ABSENT || loop_now(c->loop) < t->quiet_until)
		return;
	int64_t replicas = t->wanted + scale_beyond_plan(c, pool), least = serving(c, pool);
	int64_t most = places_at_most(c, pool) + p->view.elsewhere;
	if (replicas > most)
		replicas = most; /* more would only wait, and look like demand */
	if (replicas < least)
		replicas = least;
	if (t->is == replicas)
		t->fewer_since = loop_now(c->loop);
	if (!is_news(c, t, replicas))
		return;
	if (replicas < t->is && !has_settled(c, pool))
		return;
	t->is_calling = true;
	t->call = (struct scale_call){ .api_version = target->api_version,
				       .kind = target->kind,
				       .name_space = fleet_of(c)->pools[pool].namespace,
				       .name = target->name,
				       .is_write = true,
				       .replicas = replicas,
				       .kept_above = kept_above(p, replicas),
				       .done = scaled,
				       .user = p };
	scale_start(c->api, &t->call);
}

void scale_drive(struct controller *c)
{
	for (size_t i = 0; !c->context.is_barred && i < fleet_of(c)->pool_count; i++)
		drive_pool(c, i);
}

void scale_stop(struct controller *c)
{
	for (size_t i = 0; c->pools && i < fleet_of(c)->pool_count; i++) {
		struct scale_target *t = &c->pools[i].scale;
		if (!t->is_calling)
			continue;
		api_cancel(&t->call.lookup.call);
		api_cancel(&t->call.call);
	}
}
