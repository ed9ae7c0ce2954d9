#include "controller/loop/workload_scale.h"

#include "controller/loop/controller_state.h"
#include "controller/loop/watch_sync.h"

#include <stdio.h>

/* Of the world. What somebody else set meanwhile is seen, and set again, after LOOK_AGAIN. */
static const millis SETTLE_MOST = 10 * SECOND, LOOK_AGAIN = MINUTE;

/* Pods that a smaller number ends are still there for a moment. */
static const millis PODS_LINGER = 3 * SECOND;

/* Who changes our number so soon after we answered insists: a GitOps controller comes round within three to four
 * minutes, and we look once a minute. Of our own time, as theirs. */
static const millis INSISTS = 7 * MINUTE;
/* A third change within that insists, too: one that comes round more rarely. Who deploys by the hour does not. */
static const millis PEACE = 30 * MINUTE;

/* Of the world: until the number is set again that nobody was seen to hold, doubled each time. */
static const millis TRY_FIRST = 10 * MINUTE, TRY_MOST = 6 * HOUR;

static bool is_scaled(const struct controller *c, size_t pool)
{
	const struct spec_text *s = &c->manifest.pools[pool].spec;

	return s->workload.target.name && s->workload.warm == WARM_REPLICAS && s->mode == MODE_ACT;
}

/* --- a second writer --- */

static const struct {
	const char *who, *until, *remedy;
} owners[] = {
	[SCALE_OWNER_NONE] = { "somebody", "for a while", "find out who scales it" },
	[SCALE_OWNER_AUTOSCALER] = { "HorizontalPodAutoscaler ", "until it is gone", "delete it" },
	[SCALE_OWNER_SCALED_OBJECT] = { "ScaledObject ", "until it is gone", "delete it" },
	[SCALE_OWNER_INFERENCE_SERVICE] = { "InferenceService ", "until its autoscaler is gone",
					    "annotate it with serving.kserve.io/autoscalerClass: external" },
	[SCALE_OWNER_LLM_SERVICE] = { "LLMInferenceService ", "until its autoscaler is gone",
				      "leave replicas and scaling out of it" },
	[SCALE_OWNER_FIELD_MANAGER] = { "field manager ", "for a while", "leave spec.replicas out of what it applies" },
	[SCALE_OWNER_PREHEAT] = { "another Preheat", "for a while", "let one WarmPool of one cluster name it" },
	[SCALE_OWNER_UNKNOWN] = { "somebody who cannot be looked at", "for a while",
				  "see that Preheat has the rights of deploy/base/rbac.yaml" },
};

static void try_later(struct controller *c, struct scale_contest *t)
{
	millis wait = TRY_FIRST << (t->rounds < 7 ? t->rounds - 1 : 6);

	t->try_at = loop_now(c->loop) + clock_real(c->clock, wait < TRY_MOST ? wait : TRY_MOST);
}

/* `undone`: how often it was, for what comes next. */
static void take_back(struct live_pool *p, int undone)
{
	struct controller *c = p->controller;
	struct scale_contest *t = &p->scale.contest;

	log_info("workload-scaled-again", LOG_S("pool", fleet_of(c)->pools[p->index].name), LOG_END);
	t->is_left = t->stands = false;
	t->sentence[0] = '\0';
	t->undone = undone;
	t->undone_at = loop_now(c->loop);
	t->holds = false;
	p->scale.is = ABSENT;
}

static void describe_owner(struct live_pool *p, const struct scale_owner_call *look)
{
	struct scale_contest *t = &p->scale.contest;
	bool is_new = !t->sentence[0];

	snprintf(t->sentence, sizeof t->sentence,
		 "%s%.120s sets the replicas of %s %.100s, too, and undoes Preheat's number: it is left alone %s, "
		 "and only preheat_desired_replicas is published; %s, or set workload.warm: metric",
		 owners[look->owner].who, look->owner_name, look->kind, look->name, owners[look->owner].until,
		 owners[look->owner].remedy);
	if (is_new)
		log_warn("workload-contested", LOG_S("pool", fleet_of(p->controller)->pools[p->index].name),
			 LOG_S("why", t->sentence), LOG_END);
}

static void looked(struct scale_owner_call *look)
{
	struct live_pool *p = look->user;
	struct controller *c = p->controller;
	struct scale_contest *t = &p->scale.contest;
	millis now = loop_now(c->loop);

	t->is_looking = false;
	if (look->error.kind == ERROR_CANCELLED)
		return;
	if (!t->is_left) {
		t->stands = look->stands || (t->stands && look->error.kind != ERROR_NONE);
		return;
	}
	/* One that stood and cannot be read now may stand still. */
	bool is_gone = t->stands && !look->stands && look->error.kind == ERROR_NONE;
	t->look_at = now + clock_real(c->clock, LOOK_AGAIN);
	if (is_gone || (!look->stands && t->sentence[0] && !t->stands && now >= t->try_at)) {
		take_back(p, is_gone ? 0 : 1);
	} else if (look->stands || !t->stands || !t->sentence[0]) {
		t->stands = look->stands || t->stands;
		describe_owner(p, look);
	}
	act_soon(c);
}

static void look_at_owner(struct controller *c, struct live_pool *p)
{
	struct scale_contest *t = &p->scale.contest;
	const struct target_text *target = &c->manifest.pools[p->index].spec.workload.target;

	if (t->is_looking || loop_now(c->loop) < t->look_at)
		return;
	t->is_looking = true;
	t->look = (struct scale_owner_call){ .api_version = target->api_version,
					     .kind = target->kind,
					     .name_space = fleet_of(c)->pools[p->index].namespace,
					     .name = target->name,
					     .ours = t->ours,
					     .done = looked,
					     .user = p };
	scale_owner_start(c->api, &t->look);
}

/* Somebody else changed our number, and not for the first time. An autoscaler does so again however rarely it acts, and
 * so does whom it was left to before. */
static bool insists(const struct scale_contest *t, millis now)
{
	return (t->undone >= 1 && (t->stands || t->rounds)) || (t->undone >= 1 && now - t->undone_at <= INSISTS) ||
	       (t->undone >= 2 && now - t->undone_before <= PEACE);
}

/* What stands is not what stood after our last call. */
static void note_found(struct live_pool *p, const struct scale_call *call)
{
	struct controller *c = p->controller;
	struct scale_contest *t = &p->scale.contest;
	millis now = loop_now(c->loop);

	if (now - t->undone_at > PEACE && !t->stands)
		t->undone = t->rounds = 0;
	bool is_undone = t->holds && call->before != t->held;
	bool must_leave = is_undone && insists(t, now);
	if (is_undone) {
		t->undone++;
		t->undone_before = t->undone_at;
		t->undone_at = now;
		t->is_put_back = true;
	}
	/* With an error it may have been written all the same. */
	t->holds = call->error.kind == ERROR_NONE && call->wanted == call->replicas;
	t->held = call->wanted;
	if (call->error.kind != ERROR_NONE || call->before != call->wanted)
		t->look.ours = t->ours = call->replicas;
	if (is_undone)
		t->look_at = now;
	if (is_undone && !must_leave)
		look_at_owner(c, p);
	if (!must_leave)
		return;
	t->is_left = true;
	t->rounds++;
	try_later(c, t);
}

const char *workload_scale_contested(const struct controller *c, size_t pool)
{
	const struct scale_contest *t = &c->pools[pool]->scale.contest;

	return is_scaled(c, pool) && t->is_left && t->sentence[0] ? t->sentence : NULL;
}

void workload_scale_carry_over(struct workload_scale *to, const struct workload_scale *from, bool is_same_term)
{
	to->contest = from->contest;
	to->contest.holds &= is_same_term;
	to->contest.is_looking = false;
}

/* --- the number --- */

/* Pods that come and go are told by watches a little later than the workload counts them. The first of the world. */
static const millis OTHERS_TOLD = MINUTE, OTHERS_AGAIN = SECOND;

static void note_others(struct controller *c, struct live_pool *p, const struct scale_call *call)
{
	struct workload_scale *t = &p->scale;
	millis now = loop_now(c->loop);

	t->is = call->wanted;
	t->quiet_until = now + (t->are_others_told ? clock_real(c->clock, LOOK_AGAIN) : OTHERS_AGAIN);
	if (!t->others_since)
		t->others_since = now;
	if (t->are_others_told || now - t->others_since < clock_real(c->clock, OTHERS_TOLD))
		return;
	t->are_others_told = true;
	log_warn("selector-matches-others", LOG_S("pool", fleet_of(c)->pools[p->index].name),
		 LOG_I("pods", call->alive), LOG_I("replicas", call->wanted), LOG_END);
	events_tell_pool(
		c, p->index, (struct pool_event){ "SelectorMatchesOthers", "Scale", true },
		"the selector matches %lld pods, %s %s has %lld: it is not scaled up; let workload.selector match "
		"its pods only, of a replica of several pods one",
		(long long)call->alive, call->kind, call->name,
		(long long)(call->running > call->wanted ? call->running : call->wanted));
}

static void scaled(struct scale_call *call)
{
	struct live_pool *p = call->user;
	struct controller *c = p->controller;
	struct workload_scale *t = &p->scale;

	t->is_calling = false;
	if (!call->has_others && call->error.kind == ERROR_NONE) {
		t->others_since = 0;
		t->are_others_told = false;
	}
	if (call->has_others) {
		note_others(c, p, call);
	} else if (!call->is_write && call->error.kind == ERROR_NONE) {
		t->is = call->wanted;
		t->failures = 0;
	} else if (call->is_overtaken) { /* a watch will show who is ready, and then fewer may still be wanted */
		t->is = call->wanted;
		t->quiet_until = loop_now(c->loop) + SECOND;
	} else if (call->error.kind == ERROR_NONE) {
		if (call->before != call->wanted)
			log_info("workload-scaled", LOG_S("pool", fleet_of(c)->pools[p->index].name),
				 LOG_I("from", call->before), LOG_I("to", call->wanted), LOG_END);
		if (call->wanted < call->before) {
			t->was = call->before;
			t->lowered_at = loop_now(c->loop);
		}
		t->is = call->wanted > call->replicas ? call->replicas : call->wanted; /* more: left as it is */
		note_found(p, call);
		t->told_at = loop_now(c->loop);
		t->failures = 0;
	} else {
		t->is = ABSENT;
		if (call->is_found) /* else ours stands for all we know */
			note_found(p, call);
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

/* Pods of the pool that are not placeholders: those that are ready, and those that are there and stay. Of the ready
 * ones: those that sleep, but for those on nodes that drain, and those that wake. */
struct replicas {
	int64_t ready, alive, asleep, waking;
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
		if (pods[i]->state == POD_READY) {
			n.ready++;
			n.waking += pods[i]->engine == POD_ENGINE_WAKING;
			n.asleep += pod_sleeps(pods[i]) && !drain_is_under_way(c, pods[i]->node->name);
		}
		n.alive += pods[i]->state != POD_TERMINATING && pods[i]->state != POD_FINISHED;
	}
	return n;
}

/* What the plan does not count as hot, though the workload has it: sleepers, and those that wake for too long. What
 * changed since the plan was made is the next one's. */
static int64_t beside_plan(const struct controller *c, size_t pool, const struct replicas *n)
{
	if (pool >= c->plan.pool_count) /* the fleet has changed since */
		return n->asleep;
	const struct pool_decision *d = &c->plan.pools[pool].decision;
	int64_t asleep = n->asleep < d->asleep ? n->asleep : d->asleep;

	return asleep + (n->waking > d->waking ? n->waking - d->waking : 0);
}

int64_t workload_scale_set(const struct controller *c, size_t pool)
{
	const struct workload_scale *t = &c->pools[pool]->scale;

	if (is_scaled(c, pool) && c->context.is_barred)
		return INT64_MAX; /* what we may not set is not somebody else's wish either */
	if (!is_scaled(c, pool) || t->wanted == ABSENT || t->contest.is_left)
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

/*
 * The controller of the workload has heard of the last eviction: the pod that it made in its place is there, and is
 * what it ends first when there shall be fewer. Before, it would end one that serves. Where it cannot make one, a
 * moment must do. What is not told by watches that stand and are silent has not happened for all we know.
 */
static bool may_lower(const struct controller *c, const struct workload_scale *t, struct replicas present)
{
	return cluster_pods_told_since(c, t->fewer_at + 1) &&
	       (present.alive >= t->is || loop_now(c->loop) - t->fewer_since > SETTLE_MOST);
}

static void note_fewer(struct controller *c, struct workload_scale *t, int64_t replicas)
{
	bool is_fewer = t->is != ABSENT && replicas < t->is;

	if (!is_fewer) {
		t->fewer_since = 0;
		return;
	}
	if (!t->fewer_since || replicas < t->fewer_to)
		t->fewer_at = clock_now(c->clock);
	if (!t->fewer_since)
		t->fewer_since = loop_now(c->loop);
	t->fewer_to = replicas;
}

static void drive_pool(struct controller *c, size_t pool)
{
	struct live_pool *p = c->pools[pool];
	struct workload_scale *t = &p->scale;
	const struct target_text *target = &c->manifest.pools[pool].spec.workload.target;

	if (!is_scaled(c, pool) || p->is_leaving || t->is_calling || t->wanted == ABSENT ||
	    loop_now(c->loop) < t->quiet_until)
		return;
	if (t->contest.is_left) {
		look_at_owner(c, p);
		return;
	}
	struct replicas present = count_replicas(c, pool);
	/* Beside the decision: those that sleep, on nodes that drain and not told to go yet, on nodes of nobody's, and
	 * those whose release found no node. */
	int64_t replicas = t->wanted + beside_plan(c, pool, &present) + drain_replicas_left(c, pool) +
			   p->view.elsewhere + p->starving;
	int64_t most = places_at_most(c, pool) + p->view.elsewhere;
	if (replicas > most)
		replicas = most; /* more would only wait, and look like demand */
	/* A replica goes only by its drain, whatever became of its node. Pods beyond those that stand are not the
	 * workload's own: the selector matches others, or every pod of a replica that has several. */
	int64_t ready = t->is != ABSENT && t->is < present.ready ? t->is : present.ready;
	bool must_look = t->is == ABSENT && replicas < ready;
	if (replicas < ready)
		replicas = ready;
	note_fewer(c, t, replicas);
	if (!is_news(c, t, replicas) || (t->fewer_since && !may_lower(c, t, present)))
		return;
	t->is_calling = true;
	t->call = (struct scale_call){ .api_version = target->api_version,
				       .kind = target->kind,
				       .name_space = fleet_of(c)->pools[pool].namespace,
				       .name = target->name,
				       .is_write = !must_look,
				       .replicas = replicas,
				       .kept_above = kept_above(p, replicas),
				       .expects = t->contest.is_put_back && t->contest.holds,
				       .expected = t->contest.held,
				       .alive = present.alive,
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

	if (t->is_calling) {
		api_cancel(&t->call.lookup.call);
		api_cancel(&t->call.call);
	}
	if (t->contest.is_looking)
		scale_owner_cancel(&t->contest.look);
}

static bool has_left(const struct controller *c, size_t pool)
{
	const struct workload_scale *t = &c->pools[pool]->scale;

	return !t->is_calling && !t->contest.is_looking;
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
