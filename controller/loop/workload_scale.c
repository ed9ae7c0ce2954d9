#include "controller/loop/workload_scale.h"

#include "controller/loop/controller_state.h"

/* Of the world. What somebody else set meanwhile is seen, and set again, after LOOK_AGAIN. */
static const millis SETTLE_MOST = 10 * SECOND, LOOK_AGAIN = MINUTE;

/* Pods that a smaller number ends are still there for a moment. */
static const millis PODS_LINGER = 3 * SECOND;

static bool is_scaled(const struct controller *c, size_t pool)
{
	const struct spec_text *s = &c->manifest.pools[pool].spec;

	return s->workload.target.name && s->workload.warm == WARM_REPLICAS && s->mode == MODE_ACT;
}

static void scaled(struct scale_call *call)
{
	struct live_pool *p = call->user;
	struct controller *c = p->controller;
	struct workload_scale *t = &p->scale;

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
			events_tell_pool(c, p->index, (struct pool_event){ "WorkloadNotScaled", "Scale", true }, "%s",
					 call->error.message);
		}
	}
	act_soon(c);
}

static void want(struct controller *c, size_t pool, int64_t replicas)
{
	if (is_scaled(c, pool))
		c->pools[pool]->scale.wanted = replicas;
}

/* Pods of the pool that are not placeholders: those that are ready, and those that are there and stay. */
struct replicas {
	int64_t ready, alive;
};

static struct replicas count_replicas(const struct controller *c, size_t pool)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t count;
	const struct pod **pods = cluster_pods(c->cluster, (int)pool, &a, &count);
	struct replicas n = { 0 };

	for (size_t i = 0; i < count; i++) {
		if (pods[i]->is_placeholder)
			continue;
		n.ready += pods[i]->state == POD_READY;
		n.alive += pods[i]->state != POD_TERMINATING && pods[i]->state != POD_FINISHED;
	}
	return n;
}

int64_t workload_scale_set(const struct controller *c, size_t pool)
{
	const struct workload_scale *t = &c->pools[pool]->scale;

	if (is_scaled(c, pool) && c->context.is_barred)
		return INT64_MAX; /* what we may not set is not somebody else's wish either */
	if (!is_scaled(c, pool) || t->wanted == ABSENT)
		return ABSENT;
	return t->is != ABSENT && t->was > t->is && loop_now(c->loop) - t->lowered_at < PODS_LINGER ? t->was : t->is;
}

static bool is_news(const struct controller *c, const struct workload_scale *t, int64_t replicas)
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
	struct live_pool *p = c->pools[pool];
	struct workload_scale *t = &p->scale;
	const struct target_text *target = &c->manifest.pools[pool].spec.workload.target;

	if (!is_scaled(c, pool) || p->is_leaving || t->is_calling || t->wanted == ABSENT ||
	    loop_now(c->loop) < t->quiet_until)
		return;
	/* Beside the decision: those on nodes that drain and not told to go yet, on nodes of nobody's, and those whose
	 * release found no node. */
	int64_t replicas = t->wanted + drain_replicas_left(c, pool) + p->view.elsewhere + p->starving;
	struct replicas present = count_replicas(c, pool);
	int64_t most = places_at_most(c, pool) + p->view.elsewhere;
	if (replicas > most)
		replicas = most; /* more would only wait, and look like demand */
	if (replicas < present.ready)
		replicas = present.ready; /* a replica goes only by its drain, whatever became of its node */
	if (t->is == replicas)
		t->fewer_since = loop_now(c->loop);
	if (!is_news(c, t, replicas))
		return;
	/* The controller of the workload has heard of the last eviction: the pod that it made in its place is there,
	 * and is what it ends first when there shall be fewer. Before, it would end one that serves. Where it cannot
	 * make one, a moment must do. */
	if (replicas < t->is && present.alive < t->is && loop_now(c->loop) - t->fewer_since <= SETTLE_MOST)
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

static void drive(struct controller *c)
{
	for (size_t i = 0; !c->context.is_barred && i < fleet_of(c)->pool_count; i++)
		drive_pool(c, i);
}

static void leave(struct controller *c, size_t pool)
{
	struct workload_scale *t = &c->pools[pool]->scale;

	if (!t->is_calling)
		return;
	api_cancel(&t->call.lookup.call);
	api_cancel(&t->call.call);
}

static bool has_left(const struct controller *c, size_t pool)
{
	return !c->pools[pool]->scale.is_calling;
}

static void stop(struct controller *c)
{
	for (size_t i = 0; c->pools && i < fleet_of(c)->pool_count; i++)
		leave(c, i);
}

static bool is_idle(const struct controller *c)
{
	for (size_t i = 0; c->pools && i < fleet_of(c)->pool_count; i++)
		if (!has_left(c, i))
			return false;
	return true;
}

const struct actor workload_scale_actor = { .needs_plan = true,
					    .want = want,
					    .drive = drive,
					    .stop = stop,
					    .is_idle = is_idle,
					    .leave = leave,
					    .has_left = has_left };
