#include "controller/loop/observe.h"

#include "controller/loop/coming.h"
#include "controller/loop/controller_state.h"
#include "controller/loop/watch_sync.h"

#include <string.h>

/* --- a node group, as one of its pools sees it --- */

/* Starts of the pool in one of its groups that hold no GPU of a node yet: their pod or their node is still to come. */
static int64_t starts_to_come(const struct controller *c, size_t pool, size_t position)
{
	int64_t count = 0;

	for (size_t i = 0; i < c->starts.count; i++) {
		const struct start *s = &c->starts.items[i];
		count += s->pool == pool && s->group == (int64_t)position && !s->pod[0] && s->kind != START_REFILL;
	}
	return count;
}

/* Nodes are billed whole: a group of one pool belongs to it. Of one of several, each pays what its pods hold and what
 * its starts will, and the first to name it pays what is left. */
static int64_t billed(const struct controller *c, size_t pool, size_t position, const struct pool_group_view *v)
{
	const struct fleet_spec *fleet = fleet_of(c);
	size_t group = fleet->pools[pool].groups[position];
	int64_t all = node_group_size(c->groups[group]) * fleet->groups[group].gpus_per_node * 1000, others = 0;
	int64_t own = v->gpus_milli + starts_to_come(c, pool, position) * fleet->pools[pool].gpus_per_replica * 1000;

	const struct group_users *users = &fleet->users[group];
	if (!group_is_used_by(users, pool))
		return 0;
	if (pool != first_pool(fleet, group))
		return own < all ? own : all;
	for (size_t i = 0; i < users->count; i++) {
		const struct group_user *u = &users->items[i];
		if (u->pool == pool || !c->pools[u->pool]->view.groups)
			continue;
		others += c->pools[u->pool]->view.groups[u->position].gpus_milli +
			  starts_to_come(c, u->pool, u->position) * fleet->pools[u->pool].gpus_per_replica * 1000;
	}
	return others < all ? all - others : 0;
}

/* GPUs of running nodes that starts are meant for, in replicas of the pool: not free for anyone else. */
static int64_t places_spoken_for(const struct controller *c, size_t pool, size_t group)
{
	int64_t gpus = 0;

	for (size_t i = 0; i < c->starts.count; i++) {
		const struct start *s = &c->starts.items[i];
		const struct pool_spec *p = &fleet_of(c)->pools[s->pool];
		if (p->groups[s->group] == group && !s->pod[0] && s->stage >= STAGE_IMAGE)
			gpus += p->gpus_per_replica;
	}
	int64_t each = fleet_of(c)->pools[pool].gpus_per_replica;
	return (gpus + each - 1) / each;
}

/* Of the whole group: those that will leave it soon do not count towards its least. */
/* What starts in order to be stopped is a node until it is. */
static int64_t nodes_to_stop(const struct controller *c, size_t group)
{
	int64_t gpus = 0, size = fleet_of(c)->groups[group].gpus_per_node;

	for (size_t i = 0; i < c->starts.count; i++) {
		const struct start *s = &c->starts.items[i];
		int64_t each = replicas_on_node(c, s->pool, group);
		if (s->kind == START_REFILL && fleet_of(c)->pools[s->pool].groups[s->group] == group && each > 0)
			gpus += size / each; /* with what it leaves over */
	}
	return size > 0 ? (gpus + size - 1) / size : 0;
}

static int64_t nodes_of(const struct controller *c, size_t group, const struct pool_group_view *v)
{
	const struct node_group *g = c->groups[group];
	int64_t nodes = (g->is_known ? node_group_size(g) + nodes_to_stop(c, group) : v->nodes) -
			drains_in_group(c, (int)group);

	return nodes > 0 ? nodes : 0;
}

static int64_t positive(int64_t n)
{
	return n > 0 ? n : 0;
}

static int64_t idle_node_places(const struct controller *c, size_t pool, size_t group, struct arena *a)
{
	size_t count;
	const struct node **nodes = cluster_nodes(c->cluster, (int)group, a, &count);

	for (size_t i = 0; i < count; i++)
		if (node_is_usable(nodes[i]) && nodes[i]->gpus_milli > 0 && node_gpus_held_milli(nodes[i]) == 0)
			return replicas_on_node(c, pool, group);
	return 0;
}

/* Replicas' worth of warm GPUs that placeholders hold; one that is still a start is not counted twice. */
static int64_t held_places(const struct controller *c, size_t pool, size_t position, const struct pool_group_view *v)
{
	int64_t places = is_held(c, pool) ? v->placeholder_places : 0;

	for (size_t i = 0; i < c->starts.count && places > 0; i++) {
		const struct start *s = &c->starts.items[i];
		places -= s->pool == pool && s->group == (int64_t)position && s->pod[0];
	}
	return places;
}

/* Stopped, on their way there, or asked to be. */
static int64_t standby_nodes(const struct node_group *g)
{
	int64_t count = 0;

	for (size_t i = 0; i < g->seen.machine_count; i++)
		count += g->seen.machines[i].is_standby && g->seen.machines[i].state != MACHINE_TERMINATING;
	return count > g->standby_wanted ? count : g->standby_wanted;
}

/* What lent nodes have free is counted once: as lent. */
static int64_t free_places(const struct controller *c, size_t pool, size_t position)
{
	size_t group = fleet_of(c)->pools[pool].groups[position];
	int64_t places = c->pools[pool]->view.groups[position].free_places - places_spoken_for(c, pool, group);

	return positive(positive(places) - lent_places(c, pool, group));
}

int64_t observe_running_places(const struct controller *c, size_t pool, size_t position)
{
	return runs_work(c, pool) || is_buffered(c, pool) ? 0 : free_places(c, pool, position);
}

millis observe_end(const struct controller *c, size_t group)
{
	const struct node_group *g = c->groups[group];
	millis written = fleet_of(c)->groups[group].ends_at;
	millis told = g->is_known && g->seen.ends_at > 0 ? g->seen.ends_at : 0;

	return written > 0 && (told <= 0 || written < told) ? written : told;
}

/* --- the pool that takes any --- */

/* Nothing is bought there now: as decided last, or by what was refused since. */
static bool is_closed(const struct controller *c, size_t pool, size_t position)
{
	size_t group = fleet_of(c)->pools[pool].groups[position];
	bool has_plan = c->has_decided && pool < c->plan.pool_count && position < c->plan.pools[pool].group_count;
	const struct group_decision *d = has_plan ? &c->plan.pools[pool].groups[position] : NULL;

	if (!c->groups[group]->is_known || (d && d->blocked_until > clock_now(c->clock)) ||
	    (d && d->closes_at > 0 && d->closes_at <= clock_now(c->clock)))
		return true;
	for (size_t i = 0; i < c->starts.event_count; i++) {
		const struct start_event *e = &c->starts.events[i];
		bool is_no = e->event.what == EVENT_REFUSED || e->event.what == EVENT_NO_STOCK ||
			     e->event.what == EVENT_NO_QUOTA || e->event.what == EVENT_HELD;
		if (is_no && fleet_of(c)->pools[e->pool].groups[e->event.group] == group)
			return true;
	}
	return false;
}

/* As the decision will see it. After the views of all pools. */
static int64_t pool_billed(const struct controller *c, size_t pool, struct arena *a)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	struct group_input *groups = arena_array(a, struct group_input, spec->group_count);

	for (size_t i = 0; i < spec->group_count; i++) {
		size_t group = spec->groups[i];
		groups[i].billed_gpus_milli = billed(c, pool, i, &c->pools[pool]->view.groups[i]);
		if (!takes_any(c, pool))
			groups[i].standby = node_group_count(c->groups[group], MACHINE_STOPPED) *
					    replicas_per_node(&fleet_of(c)->groups[group], spec);
	}
	return policy_billed(fleet_of(c), pool, groups);
}

/* What the budget of the pool that takes any leaves; whether that is news to the placement. */
static bool offer_money(struct controller *c, struct arena *a)
{
	const struct fleet_spec *fleet = fleet_of(c);
	int64_t budget = 0, left = 0;

	for (size_t i = 0; i < fleet->pool_count; i++) {
		const struct pool_spec *spec = &fleet->pools[i];
		if (!takes_any(c, i) || spec->budget_per_hour <= 0)
			continue;
		budget = left = spec->budget_per_hour;
		for (size_t k = 0; k < fleet->pool_count; k++)
			if (cost_is_one_budget(spec, &fleet->pools[k]))
				left -= pool_billed(c, k, a);
	}
	return cluster_offer_money(c->cluster, budget, left);
}

/* Before the placement is looked at. */
static void offer_machines(struct controller *c)
{
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		for (size_t k = 0; takes_any(c, i) && k < fleet_of(c)->pools[i].group_count; k++) {
			size_t group = fleet_of(c)->pools[i].groups[k];
			const struct node_group *g = c->groups[group];
			int64_t room = fleet_of(c)->groups[group].max_nodes - node_group_size(g) +
				       drains_in_group(c, (int)group);
			cluster_offer(c->cluster, group, is_closed(c, i, k) || room < 0 ? 0 : room);
		}
}

/* Machines that are this pool's or nobody's, as far as GPU pods tell. */
static int64_t own_nodes(const struct controller *c, size_t pool, size_t group, struct arena *a)
{
	size_t count, own = 0;
	const struct node **nodes = cluster_nodes(c->cluster, (int)group, a, &count);

	for (size_t i = 0; i < count; i++)
		own += node_is_usable(nodes[i]) && !scale_down_serves_others(c, nodes[i], pool, a) &&
		       !starts_know_machine(&c->starts, machine_of_node(c, nodes[i]));
	return (int64_t)own;
}

static struct group_input observe_group_of_any(struct controller *c, size_t pool, size_t position, struct arena *a)
{
	const struct pool_group_view *v = &c->pools[pool]->view.groups[position];
	size_t group = fleet_of(c)->pools[pool].groups[position];
	int64_t each = replicas_on_node(c, pool, group), coming = starts_to_come(c, pool, position);
	bool is_movable = c->consolidation.node[0] && c->consolidation.position == position;

	return (struct group_input){ .ready = own_nodes(c, pool, group, a) * each,
				     .draining = v->draining,
				     .billed_gpus_milli = billed(c, pool, position, v),
				     .nodes = nodes_of(c, group, v),
				     .standby_nodes = standby_nodes(c->groups[group]),
				     .standby_first = node_group_standby_first(c->groups[group]),
				     .lacking_nodes = v->lacking_nodes,
				     .needless_nodes = v->needless_nodes * each < coming
							       ? v->needless_nodes
							       : nodes_for(c, pool, group, coming),
				     .idle_nodes = scale_down_idle(c, pool, group, a),
				     .movable_nodes = is_movable,
				     .movable_pods = is_movable ? c->consolidation.pods : 0,
				     .ends_at = observe_end(c, group) };
}

/* --- a group --- */

/* After the views of all pools. */
static struct group_input observe_group(struct controller *c, size_t pool, size_t position, struct arena *a)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	const struct pool_group_view *v = &c->pools[pool]->view.groups[position];
	size_t group = spec->groups[position];
	const struct node_group *g = c->groups[group];
	int64_t stopped = node_group_count(g, MACHINE_STOPPED), unshown = drains_unshown(c, pool, group);
	struct group_input in = { .ready = positive(v->ready + unshown) + held_places(c, pool, position, v),
				  .asleep = v->asleep,
				  .asleep_nodes = v->asleep ? scale_down_sleepers(c, pool, group, a) : 0,
				  .draining = positive(v->draining - unshown),
				  .least_on_node = v->least_on_node,
				  .billed_gpus_milli = billed(c, pool, position, v),
				  .standby = stopped * replicas_per_node(&fleet_of(c)->groups[group], spec),
				  .lent = lent_places(c, pool, group),
				  .free_places = observe_running_places(c, pool, position),
				  .nodes = nodes_of(c, group, v),
				  .standby_nodes = standby_nodes(g),
				  .standby_first = node_group_standby_first(g),
				  .ends_at = observe_end(c, group) };

	if (is_buffered(c, pool)) /* a free GPU of a running node is what a buffer is for */
		in.ready += free_places(c, pool, position);
	if (runs_work(c, pool)) {
		in.ready = v->ready + v->starting + v->free_places + v->expendable_places;
		in.least_on_node = idle_node_places(c, pool, group, a);
	}
	if (!is_buffered(c, pool))
		in.free_places += coming_places(c, pool, position);
	return in;
}

/* --- a pool --- */

static void show_schedule(struct controller *c, struct live_pool *p, struct pool_input *in)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[p->index];
	millis now = clock_now(c->clock);

	if (spec->schedule_count && (!p->schedule_asked || (p->schedule.next_at && now >= p->schedule.next_at) ||
				     now - p->schedule_asked > DAY)) {
		p->schedule = schedule_at(spec->schedule, spec->schedule_count, now);
		p->schedule_asked = now;
	}
	in->schedule_floor = p->schedule.floor;
	in->schedule_next_floor = p->schedule.next_floor;
	in->schedule_next_at = p->schedule.next_at;
}

/*
 * Pods that somebody else asks for, ready or not. Of a workload that we scale: all of them when they are more than we
 * set, and while none serves, because then nothing else tells of need. Who sleeps is asked for by nobody now.
 */
int64_t observe_wanted_pods(const struct controller *c, size_t pool)
{
	const struct pool_view *v = &c->pools[pool]->view;
	int64_t set = workload_scale_set(c, pool), wanted = v->ready + v->starting + v->pending;

	return set == ABSENT || wanted + v->asleep > set || !v->ready ? wanted : 0;
}

/* Before the first reading nothing is known, which is not the same as nobody to be read. */
static void show_readings(const struct live_pool *p, struct pool_input *in)
{
	/* Readings may be further apart than ticks: what was blind stays so until the next one. */
	bool has_reading = p->signals.scrape_count > 0 || p->signals.expected > 0;

	in->scrapes_expected = has_reading ? p->signals.expected : p->signals.last_expected;
	in->scrapes_fresh = has_reading ? p->signals.fresh : p->signals.last_fresh;
	in->scrapes_disputed = has_reading ? p->signals.disputed : p->signals.last_disputed;
	if (p->signals.source && !p->signals.has_heard)
		in->scrapes_expected = p->view.ready > 0 ? p->view.ready : 1;
}

static struct pool_input show_pool(struct controller *c, struct live_pool *p, const struct group_input *groups)
{
	struct pool_input in = { .asleep = p->view.asleep,
				 .falling_asleep = p->view.falling_asleep,
				 .asleep_discarded = p->view.discarded,
				 .waking = p->view.waking,
				 .stranded_gpus = (p->view.stranded_milli + 999) / 1000,
				 .wanted_pods = observe_wanted_pods(c, p->index),
				 .queue_waiting = p->signals.queued,
				 .inter_token_latency_us =
					 p->signals.itl_count ? p->signals.itl_sum / p->signals.itl_count : ABSENT,
				 .kv_cache_permille =
					 p->signals.kv_count ? p->signals.kv_sum / p->signals.kv_count : ABSENT };

	for (size_t i = 0; i < fleet_of(c)->pools[p->index].group_count; i++) {
		in.ready += groups[i].ready;
		in.draining += groups[i].draining;
		in.lent += groups[i].lent;
	}
	show_readings(p, &in);
	show_schedule(c, p, &in);
	return in;
}

/* Alike ones are one event: forty refusals of one purchase are one refusal of forty. */
static void add_event(struct event_input *events, size_t *count, const struct event_input *e)
{
	for (size_t i = 0; i < *count; i++) {
		struct event_input alike = events[i];
		alike.count = e->count;
		if (!memcmp(&alike, e, sizeof alike)) {
			events[i].count += e->count;
			return;
		}
	}
	events[(*count)++] = *e;
}

static struct event_input *show_events(const struct controller *c, size_t pool, struct arena *a, size_t *count)
{
	struct event_input *events = arena_array(a, struct event_input, c->starts.event_count);

	*count = 0;
	for (size_t i = 0; i < c->starts.event_count; i++)
		if (c->starts.events[i].pool == pool)
			add_event(events, count, &c->starts.events[i].event);
	return events;
}

static struct pool_snapshot show(struct controller *c, size_t pool, struct arena *a)
{
	struct live_pool *p = c->pools[pool];
	size_t count = fleet_of(c)->pools[pool].group_count;
	struct group_input *groups = arena_array(a, struct group_input, count);
	struct pool_snapshot out = { .groups = groups, .group_count = count };

	if (takes_any(c, pool))
		consolidation_look(c, pool);
	for (size_t i = 0; i < count; i++)
		groups[i] = takes_any(c, pool) ? observe_group_of_any(c, pool, i, a) : observe_group(c, pool, i, a);
	if (runs_work(c, pool))
		pool_signals_of_work(p, groups, count);
	struct scrape_input *scrapes = arena_array(a, struct scrape_input, p->signals.scrape_count);
	memcpy(scrapes, p->signals.scrapes, p->signals.scrape_count * sizeof *scrapes);
	out.scrapes = scrapes;
	out.scrape_count = p->signals.scrape_count;
	out.starts = starts_show(&c->starts, pool, p->view.all_fell, a, &out.start_count);
	out.events = show_events(c, pool, a, &out.event_count);
	out.input = show_pool(c, p, groups);
	return out;
}

struct snapshot observe_snapshot(struct controller *c, struct arena *a)
{
	const struct fleet_spec *fleet = fleet_of(c);
	struct pool_snapshot *pools = arena_array(a, struct pool_snapshot, fleet->pool_count);

	fleet_follow_promises(c);
	cluster_watch_needed(c->cluster, clock_mono(c->clock));
	cluster_follow_waiting(c->cluster, clock_now(c->clock));
	coming_tell(c);
	offer_machines(c);
	for (size_t i = 0; i < fleet->pool_count; i++) {
		c->pools[i]->view = cluster_pool_view(c->cluster, i, a);
		coming_drop_unusable(c, i);
	}
	bool is_offered_anew = offer_money(c, a);
	for (size_t i = 0; is_offered_anew && i < fleet->pool_count; i++)
		c->pools[i]->view = cluster_pool_view(c->cluster, i, a);
	for (size_t i = 0; i < fleet->pool_count; i++)
		pools[i] = show(c, i, a);
	return (struct snapshot){ .tick = c->tick.number,
				  .now = clock_now(c->clock),
				  .interval = c->settings.interval,
				  .fleet = fleet,
				  .pools = pools };
}

struct snapshot observe_between_ticks(struct controller *c, struct arena *a)
{
	struct snapshot s = observe_snapshot(c, a);
	struct pool_snapshot *pools = arena_array(a, struct pool_snapshot, s.fleet->pool_count);

	for (size_t i = 0; i < s.fleet->pool_count; i++) {
		pools[i] = s.pools[i];
		pools[i].scrape_count = 0;
		pools[i].input.scrapes_expected = pools[i].input.scrapes_fresh = pools[i].input.scrapes_disputed = 0;
		if (workload_scale_set(c, i) != ABSENT) /* their places are bought with what we set */
			pools[i].input.wanted_pods = 0;
	}
	s.pools = pools;
	s.interval = 0;
	return s;
}
