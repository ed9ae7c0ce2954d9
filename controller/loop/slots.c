#include "controller/loop/slots.h"

#include "base/alloc.h"
#include "base/fnv1a.h"
#include "controller/loop/controller_state.h"
#include "controller/loop/share_follow.h"
#include "state/share_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Until measured: as docs/signals.md says. By level. */
static const struct share_times usual[] = { { 0, 0 }, { 2 * SECOND, 3 * SECOND }, { SECOND, 7 * SECOND } };

static const int64_t MIB = 1024;

/* A page that is read may have been written so long ago. */
static const millis PAGE_OLD = 2 * SECOND;

enum { OLD_READINGS = 4 }; /* so many are missing: what runs there is not known */

struct share_told {
	struct share_told *next;
	char share[260];
	struct buf plan;
	bool is_unrouted; /* that requests find no way to some of its engines */
	struct share_need need;
};

/* A share as it is found. */
struct stock {
	struct controller *c;
	char key[260]; /* NAMESPACE/NAME */
	size_t *pools; /* members: of the fleet */
	struct share_member *members;
	struct share_times *times;
	size_t member_count;
	struct share_slot *slots;
	const struct node **nodes;
	const char **claims; /* by which engines have the GPU of the slot, a claim or a pod; NULL: it is the only one of
				its node */
	struct shared_engine ***engines; /* per slot and engine */
	const struct pod ***pods;
	int64_t *taken_mib; /* per slot: by engines that are not among its own */
	size_t slot_count, engine_count;
	bool fits_by_memory; /* all members say what they need */
	bool may_act;
	struct arena *arena;
};

static struct share_told *find_told(const struct controller *c, const char *share)
{
	struct share_told *t = c->slots.told;

	while (t && strcmp(t->share, share) != 0)
		t = t->next;
	return t;
}

static struct share_told *told_of(struct controller *c, const char *share)
{
	struct share_told *t = find_told(c, share);

	if (!t) {
		t = xcalloc(1, sizeof *t);
		snprintf(t->share, sizeof t->share, "%s", share);
		t->next = c->slots.told;
		c->slots.told = t;
	}
	return t;
}

static size_t member_of(const struct stock *s, const char *pool)
{
	for (size_t i = 0; i < s->member_count; i++)
		if (!strcmp(s->c->pools[s->pools[i]]->key, pool))
			return i;
	return SHARE_NONE;
}

static bool is_among(const struct stock *s, size_t pool)
{
	for (size_t i = 0; i < s->member_count; i++)
		if (s->pools[i] == pool)
			return true;
	return false;
}

/* --- members --- */

static struct share_times times_of(const struct live_pool *p, const struct pool_spec *spec)
{
	struct published_stage sleep = stage_times_show(&p->sleep_times), wake = stage_times_show(&p->wake_times);
	struct share_times t = usual[spec->share_level];

	if (sleep.samples)
		t.sleep = sleep.p50;
	if (wake.samples)
		t.wake = wake.p50;
	return t;
}

static int64_t sequences_of(const struct controller *c, size_t pool)
{
	int64_t milli = c->has_decided && pool < c->plan.pool_count ? c->plan.pools[pool].decision.slots_milli : ABSENT;

	return milli != ABSENT && milli >= 1000 ? milli / 1000 : fleet_of(c)->pools[pool].max_sequences;
}

static struct share_member look_at_member(struct stock *s, size_t pool, const struct share_rule *rule, millis now)
{
	struct live_pool *p = s->c->pools[pool];
	const struct pool_spec *spec = &fleet_of(s->c)->pools[pool];
	int64_t requests = p->signals.in_flight + p->signals.waiting;
	int64_t arrived = p->requests.arrived > p->requests.started ? p->requests.arrived : p->requests.started;
	struct share_member m = { .need = share_need(requests, sequences_of(s->c, pool), rule),
				  .waiting = p->signals.waiting,
				  .late = p->requests.late,
				  .allowed_milli = arrived * spec->objective_late_ppm / 1000,
				  .gpu_awake_mib = s->fits_by_memory ? spec->awake_gib * MIB : 1,
				  .gpu_asleep_mib = s->fits_by_memory ? spec->asleep_gib * MIB : 0,
				  .peak = 1 };

	m.need_held = share_hold(&p->share_hold, m.need, now, rule->hold);
	return m;
}

/* False: nobody has read one of them yet. Of one that cannot be read any more it counts what was; its engines are at
 * work. */
static bool look_at_members(struct stock *s, size_t first, const struct share_rule *rule, millis now)
{
	const struct fleet_spec *fleet = fleet_of(s->c);

	s->pools = arena_array(s->arena, size_t, fleet->pool_count);
	s->fits_by_memory = s->may_act = true;
	for (size_t i = first; i < fleet->pool_count; i++) {
		if (!pools_share(&fleet->pools[first], &fleet->pools[i]))
			continue;
		if (!s->c->pools[i]->signals.has_heard || s->member_count == SHARE_MEMBERS_MAX)
			return false;
		s->pools[s->member_count++] = i;
		s->fits_by_memory &= fleet->pools[i].awake_gib > 0;
		s->may_act &= engine_moves_may(s->c, i);
	}
	s->members = arena_array(s->arena, struct share_member, s->member_count);
	s->times = arena_array(s->arena, struct share_times, s->member_count);
	for (size_t i = 0; i < s->member_count; i++) {
		s->members[i] = look_at_member(s, s->pools[i], rule, now);
		s->times[i] = times_of(s->c->pools[s->pools[i]], &fleet->pools[s->pools[i]]);
	}
	return true;
}

/* --- engines --- */

static bool is_read_since(const struct stock *s, size_t pool, const struct pod *p, millis since, int64_t *running)
{
	millis age, now = clock_mono(s->c->clock);

	return pool_signals_in_flight(s->c, pool, p, s->arena, running, &age) &&
	       age <= OLD_READINGS * pool_signals_interval(s->c, pool) && now - age > since;
}

static void note_idle(struct shared_engine *m, int64_t running, millis now)
{
	if (running)
		m->idle_since = 0;
	else if (!m->idle_since)
		m->idle_since = now;
}

static bool sleeps(const struct stock *s, size_t pool, const struct pod *p, const struct shared_engine *m)
{
	enum engine engine = (enum engine)s->c->manifest.pools[pool].spec.signals.engine;
	int64_t running;

	if (engine_tells_sleep(engine) && is_read_since(s, pool, p, m->settled + PAGE_OLD, &running))
		return pool_signals_sleep(s->c, pool, p, s->arena) != POD_SLEEP_NONE;
	if (m->told != TOLD_NOTHING && m->started == p->engine_started)
		return m->told == TOLD_ASLEEP;
	return p->engine_label == POD_ENGINE_ASLEEP || p->engine_label == POD_ENGINE_WAKING;
}

static enum engine_state state_of(const struct stock *s, size_t pool, const struct pod *p,
				  const struct shared_engine *m)
{
	if (m->phase == PHASE_MEND || p->state != POD_READY)
		return SHARE_BROKEN;
	if (m->phase != PHASE_NONE)
		return m->is_wake ? SHARE_WAKING : SHARE_FALLING_ASLEEP;
	return sleeps(s, pool, p, m) ? SHARE_ASLEEP : SHARE_AWAKE;
}

/* It holds GPU memory, or will: on a node, and started. One that sleeps and goes, or crashes, holds none. */
static bool stands_there(const struct pod *p)
{
	return p->node && p->node->is_known && !p->is_placeholder &&
	       (p->state == POD_READY || p->state == POD_STARTED ||
		(p->state == POD_TERMINATING && p->engine_label != POD_ENGINE_ASLEEP && p->started_at));
}

static struct share_engine look_at_engine(struct stock *s, size_t member, const struct pod *p, struct shared_engine *m,
					  millis now)
{
	const char *label = pod_engine_label(p);
	int64_t running = 1; /* where it is not known */
	millis clock = clock_mono(s->c->clock);

	if (!is_read_since(s, s->pools[member], p, m->settled, &running))
		running = 1;
	note_idle(m, running, now);
	return (struct share_engine){ .member = member,
				      .state = state_of(s, s->pools[member], p, m),
				      .since = p->engine_since > m->moved_at ? p->engine_since : m->moved_at,
				      .running = running || clock >= m->quiet_until ? running : 1,
				      .idle_since = m->idle_since,
				      .is_in_routing = label && !strcmp(label, "awake") };
}

/* --- slots --- */

static bool has_one_gpu(const struct node *n)
{
	const char *gpus = node_label(n, "nvidia.com/gpu.count");

	return gpus ? !strcmp(gpus, "1") : n->gpus_milli <= 1000;
}

/* What a pod there asks for is a share of a GPU. */
static bool is_time_sliced(const struct node *n)
{
	const char *replicas = node_label(n, "nvidia.com/gpu.replicas");

	return replicas && strcmp(replicas, "1") != 0;
}

/* By which it has its GPU with others: the claim, or the pod itself, which has whole GPUs for all engines in it; NULL:
 * the node. */
static const char *claim_of(const struct stock *s, const struct pod *p)
{
	const char *claim = cluster_shared_gpu(s->c->cluster, p);
	bool has_whole = pod_is_labelled_apart(p) && p->has_gpus && !is_time_sliced(p->node) && !has_one_gpu(p->node);

	return claim || !has_whole ? claim : p->name;
}

/* A node of one GPU, or GPUs that all of them have: of others nobody knows which GPU a pod is on. */
static bool is_slot(const struct node *n, const char *claim)
{
	return claim || has_one_gpu(n) || (!n->slices && !node_label(n, "nvidia.com/gpu.count"));
}

/* What runs there is another pool's. */
static bool is_lent(const struct node *n)
{
	return node_label(n, "preheat.dev/lent-by") != NULL;
}

static size_t slot_of(struct stock *s, const struct node *n, const char *claim, size_t room)
{
	size_t at = 0;

	while (at < s->slot_count && (s->nodes[at] != n || s->claims[at] != claim))
		at++;
	if (at < s->slot_count)
		return at;
	s->nodes[at] = n;
	s->claims[at] = claim;
	s->slots[at] = (struct share_slot){ .cleared_for = SHARE_NONE,
					    .is_leaving = !node_is_usable(n) || n->is_draining || is_lent(n),
					    .engines = arena_array(s->arena, struct share_engine, room) };
	s->engines[at] = arena_array(s->arena, struct shared_engine *, room);
	s->pods[at] = arena_array(s->arena, const struct pod *, room);
	s->slot_count++;
	return at;
}

static const int64_t GPU_MIB_MOST = INT64_C(1) << 24; /* 16 TiB */

/* GPUs of the slot: one, or those that one pod has for all engines in it. */
static int64_t gpus_of(const struct stock *s, size_t slot)
{
	bool is_pod = s->slots[slot].engine_count && s->claims[slot] == s->pods[slot][0]->name;

	return is_pod ? fleet_of(s->c)->pools[s->pools[s->slots[slot].engines[0].member]].gpus_per_replica : 1;
}

/* Of its GPUs, as the node says; else what the largest needs awake beside the others. */
static int64_t gpu_mib(const struct stock *s, size_t slot)
{
	const char *told = node_label(s->nodes[slot], "nvidia.com/gpu.memory");
	int64_t largest = 0, asleep = 0, mib = told ? strtoll(told, NULL, 10) : 0;

	if (!s->fits_by_memory)
		return 1;
	for (size_t i = 0; i < s->slots[slot].engine_count; i++) {
		const struct share_member *m = &s->members[s->slots[slot].engines[i].member];
		asleep += m->gpu_asleep_mib;
		if (m->gpu_awake_mib - m->gpu_asleep_mib > largest)
			largest = m->gpu_awake_mib - m->gpu_asleep_mib;
	}
	return mib > 0 && mib <= GPU_MIB_MOST ? mib * gpus_of(s, slot) - s->taken_mib[slot] : largest + asleep;
}

/* No label of the pod says which engine in it is awake. */
static void look_at_route(struct stock *s, size_t pool, const struct pod *p)
{
	static const char *const whys[ROUTE_COUNT] = {
		[ROUTE_NONE] = "name it in signals.queue.activator.service",
		[ROUTE_SELECTS] = "its Service has a selector; delete the Service and create it without",
		[ROUTE_SHARED] =
			"somebody else's EndpointSlice leads there, too; delete its Service and create it without",
		[ROUTE_WRONG_PORT] = "the targetPort of its Service is not signals.scrape.port; make them equal",
	};
	enum activator_route route = activator_route(s->c, pool);
	struct share_told *told = told_of(s->c, s->key);

	if (whys[route] && s->may_act && !told->is_unrouted) {
		told->is_unrouted = true;
		log_warn("engine-not-routed", LOG_S("pool", s->c->pools[pool]->key), LOG_S("pod", p->name), LOG_END);
		events_tell_pool(
			s->c, pool, (struct pool_event){ "EngineNotRouted", "Route", true },
			"no engine of share %s is moved: pod %s has engines of several pools, so requests of this "
			"one must come by a Service without selector: %s",
			fleet_of(s->c)->pools[pool].share, p->name, whys[route]);
	}
	s->may_act &= route == ROUTE_OURS;
}

static void add_engine(struct stock *s, size_t member, const struct pod *p, size_t room, millis now)
{
	struct shared_engine *m = engine_moves_of(s->c, s->pools[member], p);
	struct share_engine e = look_at_engine(s, member, p, m, now);

	size_t at = slot_of(s, p->node, claim_of(s, p), room);
	/* Whoever refused a wake is asked again after a while. */
	if (e.state == SHARE_ASLEEP && clock_mono(s->c->clock) < m->quiet_until) {
		s->taken_mib[at] += s->members[member].gpu_asleep_mib;
		return;
	}
	struct share_slot *slot = &s->slots[at];
	/* Its pod, which is the slot, ends once nobody serves in it. */
	slot->is_leaving |= e.state == SHARE_BROKEN && s->claims[at] == p->name;
	if (pod_is_labelled_apart(p))
		look_at_route(s, s->pools[member], p);
	s->engines[at][slot->engine_count] = m;
	s->pods[at][slot->engine_count] = p;
	slot->engines[slot->engine_count++] = e;
	s->engine_count++;
	if (m->cleared_for[0] && slot->cleared_for == SHARE_NONE)
		slot->cleared_for = member_of(s, m->cleared_for);
}

/* It does not sleep, and nobody moves it any more. */
static bool has_leaver(const struct stock *s, const struct pod *p)
{
	bool is_member = p->pool >= 0 && is_among(s, (size_t)p->pool);

	if (is_member)
		return pod_has_left_engine(p);
	return pod_engine_label(p) && p->engine_label != POD_ENGINE_ASLEEP;
}

/* Engines of pools that have left the share: one that does not sleep has its GPU. */
static void look_for_leavers(struct stock *s)
{
	for (size_t i = 0; i < s->slot_count; i++) {
		size_t count;
		const struct pod **pods = cluster_node_pods(s->c->cluster, s->nodes[i], s->arena, &count);
		for (size_t k = 0; k < count; k++) {
			const struct pod *p = pods[k];
			if (has_leaver(s, p) && stands_there(p) && claim_of(s, p) == s->claims[i])
				s->slots[i].gpu_mib = 0;
		}
	}
}

static void find_slots(struct stock *s, millis now)
{
	const struct pod ***pods = arena_array(s->arena, const struct pod **, s->member_count);
	size_t *counts = arena_array(s->arena, size_t, s->member_count), room = 0;

	for (size_t i = 0; i < s->member_count; i++) {
		pods[i] = cluster_pods(s->c->cluster, (int)s->pools[i], s->arena, &counts[i]);
		room += counts[i];
	}
	s->slots = arena_array(s->arena, struct share_slot, room);
	s->nodes = arena_array(s->arena, const struct node *, room);
	s->claims = arena_array(s->arena, const char *, room);
	s->taken_mib = arena_array(s->arena, int64_t, room);
	s->engines = arena_array(s->arena, struct shared_engine **, room);
	s->pods = arena_array(s->arena, const struct pod **, room);
	for (size_t i = 0; i < s->member_count; i++)
		for (size_t k = 0; k < counts[i]; k++)
			if (stands_there(pods[i][k]) && is_slot(pods[i][k]->node, claim_of(s, pods[i][k])))
				add_engine(s, i, pods[i][k], room, now);
	for (size_t i = 0; i < s->slot_count; i++)
		s->slots[i].gpu_mib = gpu_mib(s, i);
	look_for_leavers(s);
}

/* --- what they need together --- */

/* Engines that may be awake together on each slot that stays; 0: there is none. */
static int64_t awake_on_slot(const struct stock *s)
{
	int64_t least = INT64_MAX, extra = 1, asleep = 0;

	for (size_t i = 0; i < s->member_count; i++) {
		const struct share_member *m = &s->members[i];
		extra = m->gpu_awake_mib - m->gpu_asleep_mib > extra ? m->gpu_awake_mib - m->gpu_asleep_mib : extra;
		asleep += m->gpu_asleep_mib;
	}
	for (size_t i = 0; i < s->slot_count; i++) {
		int64_t fit = (s->slots[i].gpu_mib + s->taken_mib[i] - asleep) / extra;
		if (s->slots[i].gpu_mib > 0 && !s->slots[i].is_leaving && fit < least)
			least = fit;
	}
	return least == INT64_MAX ? 0 : least > 1 ? least : 1;
}

/* What requests would keep busy on slots enough, in thousandths of an engine: a backlog asks for slots only once. */
static int64_t work_of(const struct stock *s, size_t member)
{
	const struct controller *c = s->c;
	size_t pool = s->pools[member];
	const struct pool_signals *p = &c->pools[pool]->signals;
	int64_t seen = 1000 * (p->in_flight + p->waiting) / sequences_of(c, pool);
	int64_t demand =
		c->has_decided && pool < c->plan.pool_count ? c->plan.pools[pool].decision.demand_milli : ABSENT;

	return demand != ABSENT && demand < seen ? demand : seen;
}

static bool works(const struct share_slot *slot)
{
	for (size_t i = 0; i < slot->engine_count; i++)
		if (slot->engines[i].state == SHARE_AWAKE && slot->engines[i].running)
			return true;
	return false;
}

/* `before`: what it was, for slots of which there are none now. */
static struct share_need need_of(const struct stock *s, const struct share_need *before)
{
	int64_t engines = 0, work = 0, awake = awake_on_slot(s);
	struct share_need n = { .at = clock_mono(s->c->clock),
				.pools = (int64_t)s->member_count,
				.awake = awake		 ? awake
					 : before->awake ? before->awake
							 : 1,
				.may_act = s->may_act };

	for (size_t i = 0; i < s->member_count; i++) {
		const struct pool_signals *p = &s->c->pools[s->pools[i]]->signals;
		millis interval = pool_signals_interval(s->c, s->pools[i]);
		int64_t own = work_of(s, i), held = 1000 * s->members[i].need_held;
		engines += own > 1000 || held < 1000 ? own : 1000;
		work += own;
		n.read += p->last_fresh > 0 || !p->last_expected;
		n.interval = interval > n.interval ? interval : n.interval;
	}
	n.wanted = share_slots_for(engines, work, n.awake);
	for (size_t i = 0; i < s->slot_count; i++)
		*(s->slots[i].is_leaving ? &n.leaving : &n.ready) += !s->slots[i].is_leaving || works(&s->slots[i]);
	return n;
}

/* --- carrying it out --- */

static const char *name_of(const struct stock *s, size_t member)
{
	return fleet_of(s->c)->pools[s->pools[member]].name;
}

static void write_need(const struct stock *s, size_t member, const struct share_order *o, struct buf *out)
{
	const struct share_member *m = &s->members[member];

	if (o->reason == SHARE_NO_ENGINE)
		buf_printf(out, "%s has %lld waiting and no engine awake", name_of(s, member), (long long)m->waiting);
	else
		buf_printf(out, "%s needs %lld engine%s awake", name_of(s, member), (long long)m->need_held,
			   m->need_held == 1 ? "" : "s");
}

static void write_why(const struct stock *s, size_t slot, const struct share_order *o, millis now, struct buf *out)
{
	const struct share_engine *e = &s->slots[slot].engines[o->engine];
	long long idle = (long long)((now - e->idle_since) / SECOND);

	if (o->verb == SHARE_WAKE) {
		write_need(s, e->member, o, out);
		return;
	}
	buf_printf(out, "%s idle for %lld s; ", name_of(s, e->member), idle);
	if (o->reason == SHARE_CROWDED)
		buf_text(out, "more is awake there than the GPU holds");
	else if (o->reason == SHARE_SPARE)
		buf_text(out, "room is kept to wake another at once");
	else
		write_need(s, o->cleared_for, o, out);
}

static void label_engines(const struct stock *s, size_t slot, const struct share_plan *plan)
{
	for (size_t i = 0; i < s->slots[slot].engine_count; i++) {
		const struct share_engine *e = &s->slots[slot].engines[i];
		if (e->state != SHARE_AWAKE && e->state != SHARE_ASLEEP)
			continue;
		engine_moves_label(s->c, s->engines[slot][i], s->pods[slot][i],
				   e->state == SHARE_ASLEEP	  ? "asleep"
				   : plan->is_in_routing[slot][i] ? "awake"
								  : "falling-asleep");
	}
}

static void carry_out(const struct stock *s, const struct share_plan *plan, millis now)
{
	for (size_t i = 0; i < s->slot_count; i++) {
		const struct share_order *o = &plan->orders[i];
		CLEANUP(buf_release) struct buf why = { 0 };
		for (size_t k = 0; k < s->slots[i].engine_count; k++)
			snprintf(s->engines[i][k]->cleared_for, sizeof s->engines[i][k]->cleared_for, "%s",
				 o->cleared_for == SHARE_NONE ? "" : s->c->pools[s->pools[o->cleared_for]]->key);
		if (o->verb != SHARE_KEEP) {
			write_why(s, i, o, now, &why);
			engine_move_begin(s->c, s->engines[i][o->engine], o->verb == SHARE_WAKE, why.text);
		}
		label_engines(s, i, plan);
	}
	act_soon(s->c);
}

/* --- who waits for its turn --- */

static const millis WAIT_TOLD = 2 * MINUTE, WAIT_OVER = 5 * MINUTE;

static bool is_awake_somewhere(const struct stock *s, size_t member)
{
	for (size_t i = 0; i < s->slot_count; i++)
		for (size_t k = 0; k < s->slots[i].engine_count; k++)
			if (s->slots[i].engines[k].member == member && s->slots[i].engines[k].state == SHARE_AWAKE)
				return true;
	return false;
}

/* Whoever gives up and calls again a little later still waits, until an engine is awake. */
static void note_waits(const struct stock *s, const struct share_plan *plan)
{
	millis now = clock_mono(s->c->clock);

	for (size_t i = 0; i < s->member_count; i++) {
		struct share_wait *w = &s->c->pools[s->pools[i]]->share_wait;
		size_t holder = s->may_act ? plan->waits_for[i] : SHARE_NONE;
		if (holder != SHARE_NONE) {
			*w = (struct share_wait){ .since = w->since ? w->since : now, .seen = now };
			snprintf(w->holder, sizeof w->holder, "%s", name_of(s, holder));
		} else if (!s->may_act || now - w->seen > WAIT_OVER || is_awake_somewhere(s, i)) {
			w->since = 0;
		}
	}
}

const char *slots_waits(const struct controller *c, size_t pool, struct arena *a)
{
	const struct share_wait *w = &c->pools[pool]->share_wait;
	char text[700];

	if (!pool_is_in_share(&fleet_of(c)->pools[pool]) || !w->since || clock_mono(c->clock) - w->since < WAIT_TOLD)
		return NULL;
	int length = snprintf(text, sizeof text,
			      "for more than %lld minutes requests have found no engine awake: one with requests never "
			      "sleeps, and those of %s always have some, or cannot be read; add a slot, or take one of "
			      "the two pools out of the share",
			      (long long)(WAIT_TOLD / MINUTE), w->holder);
	return arena_strdup(a, text, (size_t)length);
}

/* --- a decision --- */

struct share_need slots_need(const struct controller *c, const char *share)
{
	const struct share_told *t = find_told(c, share);

	return t ? t->need : (struct share_need){ 0 };
}

static bool has_orders(const struct share_view *v, const struct share_plan *plan)
{
	for (size_t i = 0; i < v->slot_count; i++)
		if (plan->orders[i].verb != SHARE_KEEP)
			return true;
	return false;
}

/* What moves engines is recorded, and what is only proposed where it is news. False: it is not on disk. */
static bool record(const struct stock *s, const struct share_view *v, const struct share_plan *plan)
{
	CLEANUP(buf_release) struct buf seen = { 0 }, decided = { 0 };
	struct buf *told = &told_of(s->c, s->key)->plan;
	struct error e = { 0 };

	share_plan_write(v, plan, &decided);
	bool is_news = !told->text || strcmp(told->text, decided.text ? decided.text : "") != 0;
	if (!is_news && !(s->may_act && has_orders(v, plan)))
		return true;
	share_view_write(v, &seen);
	const struct share_decision d = { s->key, v->now, seen.text, decided.text ? decided.text : "" };
	if (!share_decision_save(s->c->history, &d, &e)) {
		log_error("share-not-recorded", LOG_S("share", s->key), LOG_E(&e), LOG_END);
		return false;
	}
	buf_clear(told);
	buf_text(told, d.plan);
	return true;
}

/* --- what its shadows see --- */

/* What waits at a queue that is asked now and then has waited for half of that time when it is seen. */
static struct share_load load_of(const struct controller *c, size_t pool)
{
	const struct live_pool *p = c->pools[pool];
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	millis unseen = p->signals.queue ? pool_signals_interval(c, pool) / 2 : 0;

	return (struct share_load){ .key = fnv1a_text(FNV1A_START, p->key),
				    .sequences = sequences_of(c, pool),
				    .running = p->signals.in_flight,
				    .waiting = p->signals.waiting,
				    .arrived = p->signals.started_ever + p->signals.waiting,
				    .wait = spec->objective_wait > unseen ? spec->objective_wait - unseen : 0,
				    .late_ppm = spec->objective_late_ppm };
}

static struct share_times slow_times_of(const struct live_pool *p, struct share_times usual_ones)
{
	struct published_stage sleep = stage_times_show(&p->sleep_times), wake = stage_times_show(&p->wake_times);

	return (struct share_times){ sleep.samples ? sleep.p95 : usual_ones.sleep,
				     wake.samples ? wake.p95 : usual_ones.wake };
}

static void show_to_shadows(const struct stock *s, const struct share_view *v)
{
	struct share_load *loads = arena_array(s->arena, struct share_load, s->member_count);
	struct share_times *slow = arena_array(s->arena, struct share_times, s->member_count);
	uint64_t *keys = arena_array(s->arena, uint64_t, s->slot_count);

	for (size_t i = 0; i < s->member_count; i++) {
		loads[i] = load_of(s->c, s->pools[i]);
		slow[i] = slow_times_of(s->c->pools[s->pools[i]], s->times[i]);
	}
	for (size_t i = 0; i < s->slot_count; i++)
		keys[i] = fnv1a_text(fnv1a_text(FNV1A_START, s->nodes[i]->name), s->claims[i] ? s->claims[i] : "");
	share_follow_seen(s->c, s->key, &(struct share_seen){ v, loads, slow, keys });
}

static void decide(struct controller *c, size_t first, struct arena *a)
{
	millis now = clock_now(c->clock);
	const struct pool_spec *spec = &fleet_of(c)->pools[first];
	struct stock s = { .c = c, .arena = a };

	snprintf(s.key, sizeof s.key, "%s/%s", spec->namespace, spec->share);
	const struct share_rule *rule = share_follow_rule(c, s.key);
	if (!look_at_members(&s, first, rule, now))
		return;
	find_slots(&s, now);
	struct share_told *told = told_of(c, s.key);
	told->need = need_of(&s, &told->need);
	told->is_unrouted &= !s.may_act;
	const struct share_view v = { .now = now,
				      .slots = s.slots,
				      .slot_count = s.slot_count,
				      .members = s.members,
				      .member_count = s.member_count,
				      .times = s.times,
				      .rule = rule };
	const struct share_plan plan = share_decide(&v, a);
	note_waits(&s, &plan);
	if (record(&s, &v, &plan) && s.may_act)
		carry_out(&s, &plan, now);
	show_to_shadows(&s, &v);
}

static bool is_first(const struct fleet_spec *fleet, size_t pool)
{
	if (!pool_is_in_share(&fleet->pools[pool]))
		return false;
	for (size_t i = 0; i < pool; i++)
		if (pools_share(&fleet->pools[i], &fleet->pools[pool]))
			return false;
	return true;
}

static void decide_all(struct timer *t)
{
	struct controller *c = t->user;
	CLEANUP(arena_release) struct arena a = { 0 };

	if (!c->history || !leader_may_act(c) || tick_stood_still(c) || !cluster_is_synced(c->cluster))
		return;
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		if (is_first(fleet_of(c), i))
			decide(c, i, &a);
	engine_moves_forget(c);
}

void slots_read(struct controller *c)
{
	bool has_shares = false;

	for (size_t i = 0; c->pools && i < fleet_of(c)->pool_count; i++)
		has_shares |= pool_is_in_share(&fleet_of(c)->pools[i]);
	c->slots.timer.user = c;
	if (has_shares && c->leader.state == STATE_LEADING && !timer_is_running(&c->slots.timer))
		timer_start(c->loop, &c->slots.timer, 0, decide_all);
}

void slots_stop(struct controller *c)
{
	timer_stop(&c->slots.timer);
	share_follow_forget(c);
}

void slots_close(struct controller *c)
{
	for (struct share_told *t = c->slots.told, *next; t; t = next) {
		next = t->next;
		buf_release(&t->plan);
		free(t);
	}
	c->slots.told = NULL;
	share_follow_forget(c);
}
