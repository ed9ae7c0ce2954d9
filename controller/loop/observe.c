#include "controller/loop/node_group_parts.h"
#include "controller/loop/parts.h"
#include "controller/loop/release.h"

#include <stdio.h>
#include <string.h>

/* A reading as the policy takes it. More than SCRAPES_MAX in one tick: the last two become one. */
static void add_scrape(struct live_pool *p, const struct scrape_input *s)
{
	if (p->scrape_count < SCRAPES_MAX) {
		p->scrapes[p->scrape_count++] = *s;
		return;
	}
	struct scrape_input *last = &p->scrapes[SCRAPES_MAX - 1], sum = *s;
	if (sum.started != ABSENT && last->started != ABSENT)
		sum.started += last->started;
	sum.late += last->late;
	sum.completed += last->completed;
	sum.prompt_tokens += last->prompt_tokens;
	sum.output_tokens += last->output_tokens;
	*last = sum;
}

/* What waits in the queue outside of the replicas; ABSENT: not known. `running`: what is worked on, and may be in it.
 */
static int64_t queued(const struct live_pool *p, int64_t running)
{
	const struct queue_text *q = &p->controller->manifest.pools[p->index].spec.signals.queue;
	int64_t waiting = p->queue ? external_queue_waiting(p->queue) : 0;

	if (waiting == READING_UNKNOWN)
		return ABSENT;
	if (q->counts == QUEUE_COUNTS_WAITING)
		return waiting;
	return waiting > running ? waiting - running : 0;
}

/* A queue of what is unfinished has those in it, too, that wait at the replicas. */
static int64_t with_queue(struct live_pool *p, const struct pool_reading *r)
{
	const struct queue_text *q = &p->controller->manifest.pools[p->index].spec.signals.queue;
	int64_t outside = queued(p, r->running + r->running_draining);

	p->queued = outside;
	if (outside == ABSENT)
		return r->waiting;
	if (q->counts == QUEUE_COUNTS_WAITING)
		return r->waiting + outside;
	return r->waiting > outside ? r->waiting : outside;
}

void observe_reading(void *pool, const struct pool_reading *r)
{
	struct live_pool *p = pool;
	struct scrape_input in = { .at = r->at,
				   .ready = r->ready,
				   .running = r->running,
				   .running_draining = r->running_draining,
				   .waiting = with_queue(p, r),
				   .started = r->started,
				   .late = r->late == READING_UNKNOWN ? 0 : r->late,
				   .completed = r->completed,
				   .prompt_tokens = r->prompt_tokens,
				   .output_tokens = r->output_tokens };

	p->expected += r->expected;
	p->fresh += r->fresh;
	p->last_expected = r->expected;
	p->last_fresh = r->fresh;
	p->has_heard = true;
	if (r->expected > 0 && r->fresh == 0)
		return; /* nothing is known */
	serving_note(&p->serving, r);
	add_scrape(p, &in);
	if (r->inter_token_latency_us != READING_UNKNOWN) {
		p->itl_sum += r->inter_token_latency_us;
		p->itl_count++;
	}
	if (r->kv_cache_permille != READING_UNKNOWN) {
		p->kv_sum += r->kv_cache_permille;
		p->kv_count++;
	}
}

static bool is_read(const struct pod *p)
{
	return (p->state == POD_READY || p->state == POD_TERMINATING || p->state == POD_STARTED) && p->ip[0] &&
	       !p->is_placeholder;
}

static char *format(struct arena *a, const char *fmt, ...) PRINTF(2, 3);
static char *format(struct arena *a, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	int len = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return arena_strdup(a, text, len < 0 ? 0 : (size_t)len < sizeof text ? (size_t)len : sizeof text - 1);
}

const char *pod_key(const struct pod *p, struct arena *a)
{
	char uid[37];

	pod_uid_text(p, uid);
	return format(a, "%s/%s/%s", p->namespace, p->name, uid);
}

static struct source_target target_of(const struct controller *c, size_t pool, const struct pod *p, struct arena *a)
{
	const struct scrape_text *s = &c->manifest.pools[pool].spec.signals.scrape;
	bool is_v6 = strchr(p->ip, ':');
	char url[512];

	snprintf(url, sizeof url, "%s://%s%s%s:%lld%s", s->scheme == SCHEME_HTTPS ? "https" : "http", is_v6 ? "[" : "",
		 p->ip, is_v6 ? "]" : "", (long long)s->port, s->path);
	return (struct source_target){ .key = pod_key(p, a),
				       .namespace = p->namespace,
				       .pod = p->name,
				       .address = p->ip,
				       .url = arena_strdup(a, url, strlen(url)),
				       .is_ready = p->state == POD_READY && !(p->node && p->node->is_draining) };
}

void observe_targets(struct controller *c)
{
	struct arena a = { 0 };

	c->targets_changed = false;
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++) {
		size_t count, n = 0;
		if (!c->pools[i].source)
			continue;
		const struct pod **pods = cluster_pods(c->cluster, (int)i, &a, &count);
		struct source_target *targets = arena_array(&a, struct source_target, count);
		for (size_t k = 0; k < count; k++)
			if (is_read(pods[k]))
				targets[n++] = target_of(c, i, pods[k], &a);
		source_set_targets(c->pools[i].source, targets, n);
	}
	arena_release(&a);
}

/* Pools whose pods are the work: every place on a usable node is a replica with one slot. A pending pod may be there
 * for what still stands in the queue: the larger of the two waits. */
static void observe_work(struct controller *c, struct live_pool *p, const struct group_input *groups, size_t count)
{
	struct scrape_input s = { .at = clock_now(c->clock),
				  .running = p->view.ready + p->view.starting,
				  .running_draining = p->view.draining,
				  .waiting = p->view.pending,
				  .started = ABSENT,
				  .completed = p->finished };

	for (size_t i = 0; i < count; i++)
		s.ready += groups[i].ready;
	p->queued = queued(p, s.running + s.running_draining);
	if (p->queued > s.waiting)
		s.waiting = p->queued;
	p->scrape_count = 0;
	p->expected = 1;
	p->fresh = cluster_is_fresh(c); /* the API server tells */
	add_scrape(p, &s);
}

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
 * set, and while none serves, because then nothing else tells of need.
 */
static int64_t wanted_pods(const struct controller *c, size_t pool)
{
	const struct pool_view *v = &c->pools[pool].view;
	int64_t set = scale_set(c, pool), wanted = v->ready + v->starting + v->pending;

	return set == ABSENT || wanted > set || !v->ready ? wanted : 0;
}

/* Before the first reading nothing is known, which is not the same as nobody to be read. */
static void show_readings(const struct live_pool *p, struct pool_input *in)
{
	/* Readings may be further apart than ticks: what was blind stays so until the next one. */
	bool has_reading = p->scrape_count > 0 || p->expected > 0;

	in->scrapes_expected = has_reading ? p->expected : p->last_expected;
	in->scrapes_fresh = has_reading ? p->fresh : p->last_fresh;
	if (p->source && !p->has_heard)
		in->scrapes_expected = p->view.ready > 0 ? p->view.ready : 1;
}

static struct pool_input show_pool(struct controller *c, struct live_pool *p, const struct group_input *groups)
{
	struct pool_input in = { .wanted_pods = wanted_pods(c, p->index),
				 .queue_waiting = p->queued,
				 .inter_token_latency_us = p->itl_count ? p->itl_sum / p->itl_count : ABSENT,
				 .kv_cache_permille = p->kv_count ? p->kv_sum / p->kv_count : ABSENT };

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
	struct live_pool *p = &c->pools[pool];
	size_t count = fleet_of(c)->pools[pool].group_count;
	struct group_input *groups = arena_array(a, struct group_input, count);
	struct pool_snapshot out = { .groups = groups, .group_count = count };

	for (size_t i = 0; i < count; i++)
		groups[i] = observe_group(c, pool, i, a);
	if (runs_work(c, pool))
		observe_work(c, p, groups, count);
	struct scrape_input *scrapes = arena_array(a, struct scrape_input, p->scrape_count);
	memcpy(scrapes, p->scrapes, p->scrape_count * sizeof *scrapes);
	out.scrapes = scrapes;
	out.scrape_count = p->scrape_count;
	out.starts = starts_show(&c->starts, pool, a, &out.start_count);
	out.events = show_events(c, pool, a, &out.event_count);
	out.input = show_pool(c, p, groups);
	return out;
}

struct snapshot observe(struct controller *c, struct arena *a)
{
	const struct fleet_spec *fleet = fleet_of(c);
	struct pool_snapshot *pools = arena_array(a, struct pool_snapshot, fleet->pool_count);

	for (size_t i = 0; i < fleet->pool_count; i++)
		c->pools[i].view = cluster_pool_view(c->cluster, i, a);
	for (size_t i = 0; i < fleet->pool_count; i++)
		pools[i] = show(c, i, a);
	return (struct snapshot){ .tick = c->tick,
				  .now = clock_now(c->clock),
				  .interval = c->settings.interval,
				  .fleet = fleet,
				  .pools = pools };
}

void observe_taken(struct controller *c)
{
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++) {
		struct live_pool *p = &c->pools[i];
		p->scrape_count = 0;
		p->expected = p->fresh = p->itl_sum = p->itl_count = p->kv_sum = p->kv_count = p->finished = 0;
	}
	starts_events_taken(&c->starts);
}

/* What the policy is shown of a node group, as one of its pools sees it. */

static int64_t gpus_of_group(const struct controller *c, size_t group)
{
	return fleet_of(c)->groups[group].gpus_per_node;
}

static bool is_shared(const struct controller *c, size_t pool, size_t group)
{
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		if (i != pool && pool_position(fleet_of(c), i, group) >= 0)
			return true;
	return false;
}

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
	int64_t all = node_group_size(&c->groups[group]) * gpus_of_group(c, group) * 1000, others = 0;
	int64_t own = v->gpus_milli + starts_to_come(c, pool, position) * fleet->pools[pool].gpus_per_replica * 1000;

	if (!is_shared(c, pool, group))
		return all;
	if (pool != first_pool(fleet, group))
		return own < all ? own : all;
	for (size_t i = 0; i < fleet->pool_count; i++) {
		int64_t at = pool_position(fleet, i, group);
		if (i == pool || at < 0 || !c->pools[i].view.groups)
			continue;
		others += c->pools[i].view.groups[at].gpus_milli +
			  starts_to_come(c, i, (size_t)at) * fleet->pools[i].gpus_per_replica * 1000;
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
static int64_t nodes_of(const struct controller *c, size_t group, const struct pool_group_view *v)
{
	const struct node_group *g = &c->groups[group];
	int64_t nodes = (g->is_known ? node_group_size(g) : v->nodes) - drains_in_group(c, (int)group);

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
		if (node_is_usable(nodes[i]) && nodes[i]->gpus_milli > 0 && nodes[i]->gpus_used_milli == 0)
			return replicas_per_node(&fleet_of(c)->groups[group], &fleet_of(c)->pools[pool]);
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

struct group_input observe_group(struct controller *c, size_t pool, size_t position, struct arena *a)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	const struct pool_group_view *v = &c->pools[pool].view.groups[position];
	size_t group = spec->groups[position];
	const struct node_group *g = &c->groups[group];
	int64_t stopped = node_group_count(g, MACHINE_STOPPED), returning = drains_returning(c, pool, group);
	struct group_input in = { .ready = v->ready + returning + held_places(c, pool, position, v),
				  .draining = positive(v->draining - returning),
				  .least_on_node = v->least_on_node,
				  .billed_gpus_milli = billed(c, pool, position, v),
				  .standby = stopped * replicas_per_node(&fleet_of(c)->groups[group], spec),
				  .lent = lent_places(c, pool, group),
				  .free_places = positive(v->free_places - places_spoken_for(c, pool, group)),
				  .nodes = nodes_of(c, group, v),
				  .standby_nodes = standby_nodes(g) };

	if (in.lent > 0) /* what the lent nodes have free is counted once */
		in.free_places = in.free_places > in.lent ? in.free_places - in.lent : 0;
	if (is_buffered(c, pool)) { /* a free GPU of a running node is what a buffer is for */
		in.ready += in.free_places;
		in.free_places = 0;
	}
	if (runs_work(c, pool)) {
		in.ready = v->ready + v->starting + v->free_places;
		in.free_places = 0;
		in.least_on_node = idle_node_places(c, pool, group, a);
	}
	return in;
}
