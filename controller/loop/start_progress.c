#include "controller/loop/start_progress.h"

#include "controller/loop/controller_state.h"
#include "controller/loop/watch_sync.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nothing was later than now: what says so was seen by a clock that has been put right since. What was seen before that
 * nobody knows the time of: nobody waits longer for it than from then on. */
static millis past(const struct controller *c, millis at)
{
	millis now = clock_now(c->clock);

	if (at && at < c->skew.right_since)
		at = c->skew.right_since;
	return at < now ? at : now;
}

/* `takes_pods`: one was bound there, so it is kept off no more, whatever its object says yet. */
static struct node_stages stages_of(const struct controller *c, const struct node *n, bool takes_pods)
{
	return (struct node_stages){ .registered = past(c, n->registered_at),
				     .ready = takes_pods ? past(c, n->ready_since) : 0,
				     .device = past(c, n->gpu_at) };
}

struct node_stages start_progress_stages(void *user, const char *machine)
{
	const struct controller *c = user;

	for (size_t i = 0; i < fleet_of(c)->group_count; i++) {
		const struct machine *m = node_group_machine(c->groups[i], machine);
		const struct node *n = m ? cluster_node_by_machine(c->cluster, m->provider_id) : NULL;
		if (n && n->is_known)
			return stages_of(c, n, n->is_ready);
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
size_t start_progress_unready(void *user, size_t group, struct arena *a, const char *const **ids)
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
		const char *name = node_group_machine(c->groups[group], id) ? id : nodes[i]->name;
		told[i] = arena_strdup(a, name, strlen(name));
	}
	*ids = told;
	return count;
}

static bool is_unlisted(const struct controller *c, const struct node *n)
{
	return n->group >= 0 && n->is_known && n->provider_id[0] && !n->is_leaving &&
	       !node_group_machine(c->groups[n->group], machine_of_node(c, n));
}

bool start_progress_list_lags(void *user, size_t group)
{
	const struct controller *c = user;
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t count;
	const struct node **nodes = cluster_nodes(c->cluster, (int)group, &a, &count);

	for (size_t i = 0; i < count; i++)
		if (past(c, nodes[i]->registered_at) > clock_now(c->clock) - LAG_MOST && is_unlisted(c, nodes[i]))
			return true;
	return false;
}

static void node_moved(struct controller *c, const struct node *n, bool takes_pods)
{
	struct node_stages stages = stages_of(c, n, takes_pods);

	if (n->group >= 0 && machine_of_node(c, n)[0])
		starts_follow_node(&c->starts, machine_of_node(c, n), &stages);
}

/* Work on its GPUs, ready or not; what every node runs is none. */
static bool node_has_work(const struct controller *c, const struct node *n)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t count;
	const struct pod **pods = cluster_node_pods(c->cluster, n, &a, &count);

	for (size_t i = 0; i < count; i++)
		if (pods[i]->has_gpus && pod_counts(pods[i]) && !pods[i]->is_placeholder)
			return true;
	return false;
}

/* Ready replicas that went with a node which nobody here released. Whoever takes an empty one away means to. Whether
 * the cloud replaces it is looked at before anything is bought in its place. */
static void node_lost(struct controller *c, const struct node *n)
{
	if (n->group < 0 || node_group_is_removing(c->groups[n->group], machine_of_node(c, n)) ||
	    drain_is_under_way(c, n->name))
		return;
	node_group_look_anew(c->groups[n->group]);
	bool has_work = node_has_work(c, n);
	struct log_field name = LOG_S("node", n->name), pods = LOG_I("pods", (int64_t)fallback_lost(c, n, false));
	if (has_work)
		log_warn("node-lost", name, pods, LOG_END);
	else
		log_info("node-gone", name, pods, LOG_END);
}

/* A replica that comes up without our asking counts as on its way from where it is. */
static void adopt_pod(struct controller *c, const struct pod *p, int64_t position, const char *uid, millis at)
{
	struct start like = { .pool = (size_t)p->pool,
			      .group = position,
			      .kind = START_PLACE,
			      .asked_at = p->scheduled_at > 0 ? past(c, p->scheduled_at) : at,
			      .is_adopted = true,
			      .has_served = p->ready_at > 0 };
	struct start *s = starts_ask(&c->starts, &like, 1);

	snprintf(s->machine, sizeof s->machine, "%s", machine_of_node(c, p->node));
	snprintf(s->pod, sizeof s->pod, "%s", uid);
}

static bool is_rousing(const struct start *s)
{
	return s && s->kind == START_ROUSE;
}

/* True where the pod is there, and what counts is its engine: one that wakes is on its way from when that was seen. */
static bool engine_moved(struct controller *c, const struct pod *p, int64_t position, const char *uid)
{
	struct start *s = starts_of_pod(&c->starts, uid);
	bool wakes = p->state == POD_READY && p->engine == POD_ENGINE_WAKING;
	struct start like = { .pool = (size_t)p->pool,
			      .group = position,
			      .kind = START_ROUSE,
			      .asked_at = past(c, p->engine_since),
			      .is_adopted = true };

	if (is_rousing(s) && !wakes && p->engine == POD_ENGINE_AWAKE && p->state == POD_READY)
		starts_follow_pod(&c->starts, &(struct pod_stages){ uid, 0, 0, p->engine_since });
	else if (is_rousing(s) && !wakes)
		starts_drop(&c->starts, (size_t)(s - c->starts.items));
	if (!wakes || is_rousing(s))
		return wakes;
	if (s)
		starts_drop(&c->starts, (size_t)(s - c->starts.items));
	s = starts_ask(&c->starts, &like, 1);
	snprintf(s->pod, sizeof s->pod, "%s", uid);
	return true;
}

/* Its start waits for another one; a placement of its own ends with it. */
static void pod_left(struct controller *c, const char *uid, millis at)
{
	struct start *s = starts_of_pod(&c->starts, uid);

	if (!s)
		return;
	if (s->kind == START_PLACE || is_rousing(s)) {
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
	if (position < 0 || engine_moved(c, p, position, uid))
		return;
	if (!starts_of_pod(&c->starts, uid) && p->state != POD_READY &&
	    !starts_bind_pod(&c->starts, (size_t)p->pool, position, machine_of_node(c, p->node), uid))
		adopt_pod(c, p, position, uid, at);
	node_moved(c, p->node, true);
	struct pod_stages stages = { .uid = uid,
				     .scheduled = past(c, p->scheduled_at),
				     .started = past(c, p->started_at),
				     .ready = past(c, p->is_placeholder	      ? p->started_at
						      : p->state == POD_READY ? p->ready_at
									      : 0) };
	starts_follow_pod(&c->starts, &stages);
}

/* Pods are bound to a node before a look in its time shows whose purchase it is. Many may join at once. */
static void look_for(const struct controller *c, struct node_group *g)
{
	if (!g->is_looking && clock_mono(c->clock) - g->described_at > 5 * SECOND)
		node_group_look(g);
}

void start_progress_event(void *user, const struct cluster_event *e)
{
	struct controller *c = user;

	c->interruptions.may_be |= e->node && e->node->interruption != NODE_STAYS;
	if (c->leader.state == STATE_LEADING && e->node) {
		if (e->what == CLUSTER_NODE_GONE)
			node_lost(c, e->node);
		else
			node_moved(c, e->node, e->node->is_ready);
		if (e->what == CLUSTER_NODE_ADDED && is_unlisted(c, e->node))
			look_for(c, c->groups[e->node->group]);
		/* What its pods told while its object was away was of no node of ours. */
		for (size_t i = 0; e->what == CLUSTER_NODE_ADDED && i < fleet_of(c)->pool_count; i++)
			start_progress_adopt(c, e->node, i);
	} else if (c->leader.state == STATE_LEADING && e->pod && e->pod->pool >= 0) {
		char uid[37];
		pod_uid_text(e->pod, uid);
		if (runs_work(c, (size_t)e->pod->pool))
			c->pools[e->pod->pool]->finished +=
				e->what == CLUSTER_POD_CHANGED && e->pod->state == POD_FINISHED;
		else if (e->what == CLUSTER_POD_GONE)
			pod_left(c, uid, e->at);
		else if (is_held(c, (size_t)e->pod->pool) == e->pod->is_placeholder)
			pod_moved(c, e->pod, e->at);
	}
	c->targets_changed |= e->pod && e->pod->pool >= 0;
	waiting_pod(c, e);
	act_soon(c);
}

int64_t start_progress_adopt(struct controller *c, const struct node *n, size_t pool)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t count;
	const struct pod **pods =
		n ? cluster_node_pods(c->cluster, n, &a, &count) : cluster_pods(c->cluster, (int)pool, &a, &count);
	int64_t adopted = 0;

	for (size_t i = 0; i < count && !runs_work(c, pool); i++) {
		size_t before = c->starts.count;
		if (pods[i]->pool == (int)pool && !pods[i]->is_beside && is_held(c, pool) == pods[i]->is_placeholder)
			pod_moved(c, pods[i], clock_now(c->clock));
		adopted += c->starts.count > before;
	}
	return adopted;
}

/* --- starts that take too long --- */

static const char *const stuck_words[STAGE_COUNT] = { "no node registered", "the node did not become ready",
						      "no GPU became allocatable", "the image did not come",
						      "the model did not become ready" };

/* Three times what one start in twenty takes, by the manifest or as measured, and never less than a minute. */
static millis patience(const struct controller *c, const struct start *s)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[s->pool];
	const struct pool_decision *d = c->has_decided ? &c->plan.pools[s->pool].decision : NULL;
	millis whole = spec->lead_time.p95, stage = 0;

	if (s->stage < STAGE_COUNT)
		stage = spec->stage[s->stage].p95;
	if (d && d->lead_cold_p95 > whole)
		whole = d->lead_cold_p95;
	millis limit = stage > 0 ? 3 * stage : 3 * whole / 2;
	/* Another machine may be no better: ask less and less often. What is ended is never measured. */
	limit <<= c->pools[s->pool]->timeouts.in_a_row < 4 ? c->pools[s->pool]->timeouts.in_a_row / 2 : 2;
	return limit > MINUTE ? limit : MINUTE;
}

/* The cloud said yes and nothing came, or several machines in a row became no node with GPUs: as if it had said no, so
 * that others are asked. One may be broken by itself. */
static bool is_the_groups_fault(const struct live_pool *p, const struct start *s, enum stage stage)
{
	return s->machine[0] ? stage <= STAGE_DEVICE && p->timeouts.in_a_row > 1 : stage == STAGE_PROVISION;
}

static const struct pod *pod_of(const struct controller *c, const struct start *s, struct arena *a)
{
	size_t count;
	const struct pod **pods = cluster_pods(c->cluster, (int)s->pool, a, &count);

	for (size_t i = 0; i < count; i++) {
		char uid[37];
		pod_uid_text(pods[i], uid);
		if (!strcmp(uid, s->pod))
			return pods[i];
	}
	return NULL;
}

/* One that goes from a group at its least is bought anew at once: less is never asked for. */
static void keep_least(struct controller *c, const struct start *s, bool goes)
{
	size_t group = fleet_of(c)->pools[s->pool].groups[s->group];
	const struct group_spec *spec = &fleet_of(c)->groups[group];

	if (goes && scale_down_room(c, group) < 0)
		scale_up_buy(c, s->pool, (size_t)s->group, START_COLD,
			     replicas_per_node(spec, &fleet_of(c)->pools[s->pool]));
}

/* The machine is replaced; where others serve on it or may yet, only the pod that never will is asked to go. */
static void replace(struct controller *c, const struct start *s, const char *why)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t group = fleet_of(c)->pools[s->pool].groups[s->group];
	struct node_group *g = c->groups[group];
	const struct machine *m = s->machine[0] ? node_group_machine(g, s->machine) : NULL;
	const struct node *n = m ? cluster_node_by_machine(c->cluster, m->provider_id) : NULL;
	const struct pod *p = s->pod[0] ? pod_of(c, s, &a) : NULL;
	bool is_known = n && n->is_known;
	bool is_needed = is_known && (node_is_needed(c, n, s->pool) || starts_know_machine(&c->starts, s->machine));

	if (!group_may_change(c, group))
		; /* only told */
	else if (is_needed && p)
		drain_evict_pod(c, p);
	else if (is_known && !is_needed)
		keep_least(c, s, drain_begin_replacing(c, n, s->pool, why));
	else if (m && !n)
		keep_least(c, s, node_group_remove(g, s->machine, PROVIDER_REMOVE));
}

/* A machine is ready and its start waits for a pod, but no pod of the pool is without a node: it serves elsewhere. */
static bool is_forgotten(const struct controller *c, const struct start *s, millis now)
{
	const struct live_pool *p = c->pools[s->pool];

	return s->stage == STAGE_IMAGE && !s->pod[0] && p->view.pending == 0 && !s->ends_at_device &&
	       now - s->stage_since > 4 * c->settings.interval;
}

/* A pod that came to its machine before a look told of that counted as one more, and may have been given up as such. */
static void forget(struct controller *c, size_t index)
{
	const struct start s = c->starts.items[index];
	size_t group = fleet_of(c)->pools[s.pool].groups[s.group];
	const struct machine *m = node_group_machine(c->groups[group], s.machine);
	const struct node *n = m ? cluster_node_by_machine(c->cluster, m->provider_id) : NULL;

	starts_drop(&c->starts, index);
	if (n && n->is_known)
		start_progress_adopt(c, n, s.pool);
}

static void tell_stuck(struct controller *c, const struct start *s, const char *why)
{
	size_t group = fleet_of(c)->pools[s->pool].groups[s->group];
	const struct machine *m = node_group_machine(c->groups[group], s->machine);
	const struct node *n = m ? cluster_node_by_machine(c->cluster, m->provider_id) : NULL;

	char uid[37];

	events_tell_pool(c, s->pool, (struct pool_event){ "NodeStuck", "Replace", true }, "%s", why);
	if (!n || !n->is_known)
		return;
	uid_text(n->uid, uid);
	events_tell(c->events, &(struct event){ .api_version = "v1",
						.kind = "Node",
						.name = n->name,
						.uid = uid,
						.is_warning = true,
						.reason = "NodeStuck",
						.action = "Replace",
						.note = why });
}

static void end_stuck(struct controller *c, size_t index, millis now)
{
	struct start s = c->starts.items[index];
	struct live_pool *p = c->pools[s.pool];
	enum stage stage = s.stage < STAGE_COUNT ? s.stage : STAGE_LOAD;
	CLEANUP(arena_release) struct arena a = { 0 };
	const struct pod *pod = s.pod[0] ? pod_of(c, &s, &a) : NULL;

	snprintf(p->timeouts.reason, sizeof p->timeouts.reason, "%s%s: %s after %lld s%s%s",
		 s.machine[0] ? "machine " : "a machine", s.machine, stuck_words[stage],
		 (long long)((now - s.stage_since) / SECOND), pod && pod->trouble_text[0] ? ": " : "",
		 pod ? pod->trouble_text : "");
	log_warn("start-stuck", LOG_S("pool", fleet_of(c)->pools[s.pool].name), LOG_S("stage", stage_name(stage)),
		 LOG_S("machine", s.machine), LOG_S("why", p->timeouts.reason), LOG_END);
	p->timeouts.count[stage]++;
	p->timeouts.in_a_row++;
	p->timeouts.at = now;
	starts_stuck(&c->starts, index, now);
	if (is_the_groups_fault(p, &s, stage))
		starts_add_event(&c->starts, s.pool,
				 &(struct event_input){ .group = s.group,
							.what = EVENT_REFUSED,
							.kind = (int64_t)s.kind,
							.value = ERROR_UNAVAILABLE,
							.count = 1 });
	replace(c, &s, p->timeouts.reason);
	tell_stuck(c, &s, p->timeouts.reason);
}

/* While the watches are broken nothing is stuck for all we know; what waited then is given its time again. */
static bool watches_are_whole(struct controller *c, millis now)
{
	if (c->gap.since > now || c->gap.seen_again > now)
		c->gap = (struct watch_gap){ .seen_again = now }; /* of a clock that was put right */
	if (!cluster_is_fresh(c)) {
		c->gap.since = c->gap.since ? c->gap.since : now;
		return false;
	}
	if (c->gap.since && now - c->gap.since > 2 * c->settings.interval)
		c->gap.seen_again = now;
	c->gap.since = 0;
	return true;
}

bool start_is_unasked(const struct controller *c, const struct start *s)
{
	const struct node_group *g = c->groups[fleet_of(c)->pools[s->pool].groups[s->group]];

	return s->kind == START_COLD && !s->is_swap && !s->machine[0] && g->is_known && node_group_unasked(g) > 0;
}

/* Where one operation of the cloud waits for another, what was wished long ago may have been launched a moment ago; by
 * a cloud that does not tell when, at the latest when its machine was seen. */
static millis launched_at(const struct controller *c, const struct start *s)
{
	const struct node_group *g = c->groups[fleet_of(c)->pools[s->pool].groups[s->group]];
	const struct machine *m = s->machine[0] ? node_group_machine(g, s->machine) : NULL;

	if (!m && g->ongoing.name)
		return g->ongoing.began;
	/* Or was sent a moment ago, as what was wished waits for reads that show what came before: so long at most. */
	if (!m && g->accepted.least >= 0 && g->accepted.least_until > clock_mono(c->clock))
		return g->accepted.at < s->stage_since + LAG_MOST ? g->accepted.at : s->stage_since + LAG_MOST;
	if (!m)
		return 0;
	return m->launched_at ? m->launched_at : s->bound_at;
}

/* What it should have done by then is missed by watches that have told something since. */
static bool is_stuck(const struct controller *c, const struct start *s, millis now)
{
	millis since = s->stage_since > c->gap.seen_again ? s->stage_since : c->gap.seen_again;
	millis launched = s->stage == STAGE_PROVISION ? launched_at(c, s) : 0;
	millis deadline = (since > launched ? since : launched) + patience(c, s);

	if (start_is_unasked(c, s))
		return false;
	if (s->stage < STAGE_IMAGE && node_group_is_raised(c->groups[fleet_of(c)->pools[s->pool].groups[s->group]]))
		return false; /* the machine may be somebody's who waits for it */
	if (is_rousing(s))
		return false; /* whose label that is must mend it; the policy counts on it no more when it is overdue */
	if (s->has_served && c->pools[s->pool]->view.all_fell)
		return false; /* what befell all of them at once another machine does not mend */
	return s->kind != START_REFILL && now > deadline && cluster_told_since(c, deadline);
}

/* What it waits behind takes longer than a launch may: others are asked at once, not when that has failed. */
static bool is_behind(const struct controller *c, const struct start *s, millis now)
{
	const struct node_group *g = c->groups[fleet_of(c)->pools[s->pool].groups[s->group]];

	return start_is_unasked(c, s) && g->ongoing.name && now > g->ongoing.began + patience(c, s);
}

static void look_elsewhere(struct controller *c, size_t index)
{
	const struct start *s = &c->starts.items[index];
	size_t group = fleet_of(c)->pools[s->pool].groups[s->group];

	log_warn("start-refused", LOG_S("pool", fleet_of(c)->pools[s->pool].name),
		 LOG_S("group", fleet_of(c)->groups[group].name),
		 LOG_S("why", "the operation that the cloud works on there takes too long"), LOG_END);
	starts_refuse(&c->starts, index, ERROR_UNAVAILABLE);
}

void start_progress_check(struct controller *c)
{
	millis now = clock_now(c->clock);

	if (!watches_are_whole(c, now))
		return;

	for (size_t i = 0; i < c->starts.event_count; i++)
		if (c->starts.events[i].event.what == EVENT_SERVING)
			c->pools[c->starts.events[i].pool]->timeouts.in_a_row = 0;
	for (size_t i = c->starts.count; i-- > 0;) {
		if (i >= c->starts.count) /* what was adopted may have ended others at once */
			continue;
		if (is_forgotten(c, &c->starts.items[i], now))
			forget(c, i);
		else if (is_behind(c, &c->starts.items[i], now))
			look_elsewhere(c, i);
		else if (is_stuck(c, &c->starts.items[i], now))
			end_stuck(c, i, now);
	}
	for (size_t i = 0; i < fleet_of(c)->group_count; i++)
		if (c->groups[i]->is_known && group_may_change(c, i))
			node_group_give_up(c->groups[i], node_group_missing(c->groups[i]));
}
