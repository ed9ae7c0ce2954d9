#include "controller/loop/publish.h"

#include "base/alloc.h"
#include "base/terminal.h"
#include "controller/cluster/watch.h"
#include "controller/explain/explain.h"
#include "controller/loop/controller_state.h"
#include "controller/loop/follower.h"
#include "controller/loop/metering.h"
#include "controller/loop/objects.h"
#include "controller/loop/status.h"
#include "controller/loop/watch_sync.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const millis AWAY = 5 * SECOND; /* of the world */

static const millis STUCK_NOW = 10 * MINUTE;

/* Calls that are under way when we stop acting are cancelled; a deadline of theirs is the longest that one may last. */
static const millis SETTLED = 2 * MINUTE;

/* --- a pool's problems --- */

static const char *format(struct arena *a, const char *fmt, ...) PRINTF(2, 3);
static const char *format(struct arena *a, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	int len = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return arena_strdup(a, text, strnlen(text, len < 0 ? 0 : sizeof text - 1));
}

static const char *pods_without_group(const struct controller *c, size_t pool, struct arena *a)
{
	size_t count;
	const struct pending_shape *shapes = cluster_pending(c->cluster, a, &count);

	for (size_t i = 0; i < count; i++)
		if (shapes[i].pool == (int)pool && shapes[i].why)
			return format(a, "%lld pods, like %s, fit no node group: %s", (long long)shapes[i].count,
				      shapes[i].example ? shapes[i].example->name : "?", shapes[i].why);
	for (size_t i = 0; i < count; i++)
		if (shapes[i].pool == (int)pool && shapes[i].slow)
			return format(a, "%lld pods, like %s, are not placed: %s", (long long)shapes[i].count,
				      shapes[i].example ? shapes[i].example->name : "?", shapes[i].slow);
	return NULL;
}

/* Waits are bounded by the objective only where warm capacity is there; a model that loads for longer than the whole
 * headroom's worth makes every cold start late. */
static const char *slow_load(const struct controller *c, size_t pool, struct arena *a)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	const struct pool_decision *d = &c->plan.pools[pool].decision;

	if (runs_work(c, pool) || d->lead_cold_p50 <= spec->objective_wait || d->decided > 0)
		return NULL;
	return format(
		a,
		"the pool is at zero and a replica takes %lld s to serve, more than the objective's %lld ms: the first "
		"requests will be late; set headroom.min to 1 to keep one warm",
		(long long)(d->lead_cold_p50 / SECOND), (long long)spec->objective_wait);
}

static bool takes_gpu_node(const struct pod *p)
{
	return !p->has_gpus && p->kind == POD_REPLICATED && p->state != POD_FINISHED && p->pool < 0;
}

/* Pods without GPUs, of no DaemonSet, on the pool's nodes. */
static const char *foreign_pods(const struct controller *c, size_t pool, struct arena *a)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	int64_t found = 0;
	const struct pod *example = NULL;

	for (size_t g = 0; g < spec->group_count; g++) {
		size_t count, pods;
		const struct node **nodes = cluster_nodes(c->cluster, (int)spec->groups[g], a, &count);
		for (size_t i = 0; i < count; i++) {
			const struct pod **on = cluster_node_pods(c->cluster, nodes[i], a, &pods);
			for (size_t k = 0; k < pods; k++) {
				found += takes_gpu_node(on[k]);
				example = takes_gpu_node(on[k]) ? on[k] : example;
			}
		}
	}
	if (!found)
		return NULL;
	return format(
		a,
		"%lld pods that ask for no GPU, like %s/%s, run on GPU nodes: taint the node group and let only GPU "
		"pods "
		"tolerate it",
		(long long)found, example->namespace, example->name);
}

/* GPUs that are free and yet fit no replica, because they stand apart. */
static const char *fragments(const struct controller *c, size_t pool, struct arena *a)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	int64_t need = spec->gpus_per_replica * 1000, stranded = 0;

	for (size_t g = 0; need > 1000 && g < spec->group_count; g++) {
		size_t count;
		const struct node **nodes = cluster_nodes(c->cluster, (int)spec->groups[g], a, &count);
		for (size_t i = 0; i < count; i++) {
			int64_t left = nodes[i]->gpus_milli - nodes[i]->gpus_used_milli;
			stranded += node_is_usable(nodes[i]) && left > 0 && left < need ? left : 0;
		}
	}
	if (stranded < need)
		return NULL;
	return format(
		a,
		"%lld GPUs are free, but on nodes that cannot hold a replica of %lld: give small and large models node "
		"groups of their own",
		(long long)(stranded / 1000), (long long)spec->gpus_per_replica);
}

static int64_t replicas_held(const struct controller *c, size_t pool)
{
	return c->pools[pool]->view.ready + c->pools[pool]->view.starting;
}

static const char *batch_holds(const struct controller *c, size_t pool, struct arena *a)
{
	const struct fleet_spec *fleet = fleet_of(c);
	const struct pool_decision *d = &c->plan.pools[pool].decision;

	if (fleet->pools[pool].class != CLASS_INTERACTIVE || d->wished <= d->decided || d->waiting_now <= 0)
		return NULL;
	size_t first = fleet->pool_count;
	for (size_t g = 0; g < fleet->pools[pool].group_count; g++) {
		const struct group_users *users = &fleet->users[fleet->pools[pool].groups[g]];
		for (size_t i = 0; i < users->count && users->items[i].pool < first; i++)
			if (fleet->pools[users->items[i].pool].class != CLASS_INTERACTIVE &&
			    replicas_held(c, users->items[i].pool))
				first = users->items[i].pool;
	}
	if (first == fleet->pool_count)
		return NULL;
	return format(a,
		      "requests wait while pool %s holds %lld replicas in a shared node group: lend "
		      "them with lend.to, or give its pods a lower priority",
		      fleet->pools[first].name, (long long)replicas_held(c, first));
}

/* A model that does not fit ends again and again; the label says what the GPU has. */
static const char *gpu_memory(const struct controller *c, size_t pool, struct arena *a)
{
	size_t count;
	const struct pod **pods = cluster_pods(c->cluster, (int)pool, a, &count);

	for (size_t i = 0; i < count; i++) {
		const char *memory = pods[i]->node ? node_label(pods[i]->node, "nvidia.com/gpu.memory") : NULL;
		if (pods[i]->trouble != POD_CRASH_LOOP || !memory)
			continue;
		return format(
			a,
			"replica %s keeps ending on %s, whose GPUs have %s MiB%s%s: if the model does not fit, leave "
			"that "
			"node group out of the pool",
			pods[i]->name, pods[i]->node->instance_type, memory,
			pods[i]->trouble_text[0] ? ", saying " : "", pods[i]->trouble_text);
	}
	return NULL;
}

static const char *missing_ability(const struct controller *c, size_t pool)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];

	for (size_t i = 0; i < spec->group_count; i++)
		if (c->publishing.groups[spec->groups[i]].lacks)
			return c->publishing.groups[spec->groups[i]].lacks;
	return NULL;
}

static const char *held_growth(const struct controller *c, size_t pool, struct arena *a)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];

	for (size_t i = 0; i < spec->group_count; i++) {
		const struct published_group *g = &c->publishing.groups[spec->groups[i]];
		if (!g->is_growth_held)
			continue;
		return format(a,
			      "more machines were about to be bought in node group %s than it may have, or than may be "
			      "bought in five minutes; %lld were not: see growth-held in the log, and preheat explain",
			      fleet_of(c)->groups[spec->groups[i]].name, (long long)g->growth_held);
	}
	return NULL;
}

static const char *contended_group(const struct controller *c, size_t pool, struct arena *a)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];

	for (size_t i = 0; i < spec->group_count; i++) {
		const struct group_spec *g = &fleet_of(c)->groups[spec->groups[i]];
		const struct published_group *p = &c->publishing.groups[spec->groups[i]];
		double wasted = (double)(p->contended * g->price_per_hour) / 1e6;
		const char *by = node_group_resized_by(c->groups[spec->groups[i]]);
		if (!p->contended)
			continue;
		return format(
			a,
			"another writer%s%s%s undoes every change of node group %s: %lld machines were bought and "
			"ended in turn, %s an hour for nothing; nothing is changed there until they are "
			"quiet for %lld minutes: give it one owner",
			*by ? " (" : "", by, *by ? ")" : "", g->name, (long long)p->contended,
			human_spent(wasted, spec->is_unpriced).text,
			(long long)(c->groups[spec->groups[i]]->contention.quiet / MINUTE));
	}
	return NULL;
}

static const char *busy_groups(const struct controller *c, size_t pool, struct arena *a)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	const char *all = NULL;

	for (size_t i = 0; i < spec->group_count; i++) {
		const struct published_group *p = &c->publishing.groups[spec->groups[i]];
		if (p->busy_with)
			all = format(a, "%s%snode group %s: %s", all ? all : "", all ? "; " : "",
				     fleet_of(c)->groups[spec->groups[i]].name, p->busy_with);
	}
	return all ? format(a,
			    "%s; nothing is bought, ended or drained there until that is over, other node groups are "
			    "used",
			    all)
		   : NULL;
}

/* A person who drains a node, and the end of an owner's operation, take less. */
static const millis CORDONED_FOR_LONG = 10 * MINUTE;

static const char *cordoned_nodes(const struct controller *c, size_t pool, struct arena *a)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	const char *first = NULL;
	int64_t count = 0;

	for (size_t i = 0; i < spec->group_count; i++) {
		const struct published_group *p = &c->publishing.groups[spec->groups[i]];
		count += p->cordoned;
		first = first ? first : p->cordoned_first;
	}
	if (!count)
		return NULL;
	return format(a,
		      "somebody cordoned node %s more than %lld minutes ago (%lld of the pool's nodes): nothing new "
		      "starts there, and it is paid for; uncordon it, or end its machine",
		      first, (long long)(CORDONED_FOR_LONG / MINUTE), (long long)count);
}

static const char *ailing_group(const struct controller *c, size_t pool, struct arena *a)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];

	for (size_t i = 0; i < spec->group_count; i++) {
		const struct published_group *p = &c->publishing.groups[spec->groups[i]];
		if (p->ailment)
			return format(a, "node group %s: its cloud says: %s", fleet_of(c)->groups[spec->groups[i]].name,
				      p->ailment);
	}
	return NULL;
}

static const char *ending_reservation(const struct controller *c, size_t pool, struct arena *a)
{
	const struct pool_plan *p = &c->plan.pools[pool];

	for (size_t i = 0; i < p->group_count; i++) {
		const struct group_decision *d = &p->groups[i];
		CLEANUP(buf_release) struct buf at = { 0 };
		if (d->ends_at <= 0 || c->snapshot.now < d->closes_at)
			continue;
		explain_time_rfc3339(d->ends_at, &at);
		return format(a,
			      "the reservation of node group %s ends at %s: nothing starts there any more%s; see that "
			      "another node group of the pool has room, or extend the reservation",
			      fleet_of(c)->groups[fleet_of(c)->pools[pool].groups[i]].name, at.text,
			      c->snapshot.now < d->leaves_at
				      ? ""
				      : ", and what serves there is replaced elsewhere and drained");
	}
	return NULL;
}

static const char *unseen_launch(const struct controller *c, size_t pool, struct arena *a)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];

	for (size_t i = 0; i < spec->group_count; i++) {
		const struct published_group *p = &c->publishing.groups[spec->groups[i]];
		if (!p->unseen)
			continue;
		return format(
			a,
			"the cloud accepted call %s for node group %s, and nothing of it shows %lld minutes later: "
			"other node groups are used; look for the call in the cloud's own log",
			p->unseen, fleet_of(c)->groups[spec->groups[i]].name, (long long)(LAG_MOST / MINUTE));
	}
	return NULL;
}

static const char *drain_problem(const struct controller *c, size_t pool, struct arena *a)
{
	const struct live_pool *p = c->pools[pool];
	const char *drain = drain_blocked(c, pool, a);

	if (drain || !p->blocked[0])
		return drain;
	if (!p->starving)
		return format(a, "a machine that nobody uses cannot be emptied: %s", p->blocked);
	return format(a, "%lld replicas are to go and no node can be emptied: %s", (long long)p->starving, p->blocked);
}

/* What is wrong with how a pool is set up, one sentence with its remedy each, NULL where nothing is. */
static void problems_find(const struct controller *c, size_t pool, const char *out[PROBLEM_COUNT], struct arena *a)
{
	out[PROBLEM_LOAD_SLOW] = slow_load(c, pool, a);
	out[PROBLEM_FOREIGN_PODS] = foreign_pods(c, pool, a);
	out[PROBLEM_NO_GROUP] = pods_without_group(c, pool, a);
	out[PROBLEM_FRAGMENTED] = fragments(c, pool, a);
	out[PROBLEM_BATCH_HOLDS] = batch_holds(c, pool, a);
	out[PROBLEM_GPU_MEMORY] = gpu_memory(c, pool, a);
	out[PROBLEM_ABILITY] = missing_ability(c, pool);
	out[PROBLEM_CONTENTION] = contended_group(c, pool, a);
	out[PROBLEM_UNSEEN] = unseen_launch(c, pool, a);
	out[PROBLEM_BUSY] = busy_groups(c, pool, a);
	out[PROBLEM_CORDONED] = cordoned_nodes(c, pool, a);
	out[PROBLEM_AILING] = ailing_group(c, pool, a);
	out[PROBLEM_RESERVATION] = ending_reservation(c, pool, a);
	out[PROBLEM_CLOCK] = clock_skew_trouble(c, a);
	out[PROBLEM_GROWTH] = held_growth(c, pool, a);
	out[PROBLEM_CONTESTED] = workload_scale_contested(c, pool);
	out[PROBLEM_DRAIN_BLOCKED] = drain_problem(c, pool, a);
	out[PROBLEM_ENGINE_WAITS] = slots_waits(c, pool, a);
	out[PROBLEM_PREFETCH] = prefetch_problem(c, pool, a);
	out[PROBLEM_LOAD_DIFFERS] =
		server_stats_load_differs(&c->pools[pool]->signals.server, &c->pools[pool]->stages[STAGE_LOAD], a);
}

/* --- what is shown --- */

static struct published_counts counts(struct arena *a, const struct published_count *items, size_t count)
{
	struct published_count *kept = arena_array(a, struct published_count, count);

	if (count)
		memcpy(kept, items, count * sizeof *kept);
	return (struct published_counts){ .items = kept, .count = count };
}

/* One label for all: what their owners wrote stands in the events, and would be a series each here. */
static struct published_counts unschedulable(const struct controller *c, size_t pool, struct arena *a)
{
	size_t shapes;
	const struct pending_shape *pending = cluster_pending(c->cluster, a, &shapes);
	struct published_count sums[2] = { { .labels = { "no node group fits" } }, { .labels = { "not placed" } } };

	for (size_t i = 0; i < shapes; i++) {
		if (pending[i].pool != (int)pool)
			continue;
		sums[0].count += pending[i].why ? pending[i].count : 0;
		sums[1].count += pending[i].slow ? pending[i].count : 0;
	}
	size_t first = sums[0].count > 0 ? 0 : 1, end = sums[1].count > 0 ? 2 : 1;
	return counts(a, sums + first, end > first ? end - first : 0);
}

/* By what can be done about it: a WarmPool, another pod or node group, or its scheduler. */
static struct published_counts strays(const struct controller *c, struct arena *a)
{
	size_t shapes = 0;
	bool leads = c->leader.state == STATE_LEADING && c->has_decided; /* others would count them again */
	const struct pending_shape *pending = leads ? cluster_pending(c->cluster, a, &shapes) : NULL;
	struct published_count sums[] = { { .labels = { "no pool selects it" } },
					  { .labels = { "no node group fits" } },
					  { .labels = { "not placed" } } };

	for (size_t i = 0; i < shapes; i++) {
		const struct pending_shape *s = &pending[i];
		if (s->pool >= 0 || s->is_undecided || s->is_incomplete_gang)
			continue;
		sums[0].count += s->why ? 0 : s->count - s->placed;
		sums[1].count += s->why ? s->count : 0;
		sums[2].count += s->why ? 0 : s->placed;
	}
	return counts(a, sums, leads ? sizeof sums / sizeof *sums : 0);
}

static const char *signals_trouble(const struct live_pool *p, struct arena *a)
{
	struct source_report r = p->signals.source ? source_report(p->signals.source) : (struct source_report){ 0 };
	const char *said = r.trouble.kind != ERROR_NONE ? r.trouble.message : r.warning;
	const char *queue = p->signals.queue ? external_queue_trouble(p->signals.queue)->message : "";
	CLEANUP(buf_release) struct buf text = { 0 };

	buf_text(&text, said);
	if (p->signals.source && !p->signals.has_heard && !text.len)
		buf_text(&text, "none was read yet");
	if (p->signals.devices && device_source_trouble(p->signals.devices)->kind != ERROR_NONE)
		buf_printf(&text, "%sGPUs: %s", text.len ? "; " : "",
			   device_source_trouble(p->signals.devices)->message);
	if (queue[0])
		buf_printf(&text, "%squeue: %s", text.len ? "; " : "", queue);
	return text.len ? arena_strdup(a, text.text, text.len) : NULL;
}

static void show_signals(const struct controller *c, size_t pool, struct published_pool *out, struct arena *a)
{
	const struct live_pool *p = c->pools[pool];
	millis read_at = p->signals.source ? source_report(p->signals.source).read_at : 0;

	out->signals_trouble = signals_trouble(p, a);
	out->signals_age = read_at ? clock_mono(c->clock) - read_at : ABSENT;
	out->queued = p->signals.queue ? p->signals.queued : ABSENT;
	server_stats_publish(&p->signals.server, clock_now(c->clock), &out->serving);
	pool_signals_devices(c, pool, &out->devices, a);
}

static void show_pool(struct controller *c, size_t i, struct arena *a)
{
	const struct live_pool *p = c->pools[i];
	const struct spec_text *spec = &c->manifest.pools[i].spec;
	const struct pool_object *o = objects_find(c, fleet_of(c)->pools[i].namespace, fleet_of(c)->pools[i].name);
	struct published_pool *out = &c->publishing.pools[i];
	const struct explained x = { .fleet = fleet_of(c),
				     .pool = i,
				     .tick = c->snapshot.tick,
				     .now = c->snapshot.now,
				     .plan = &c->plan.pools[i] };

	*out = (struct published_pool){ .is_object = o != NULL,
					.generation = o ? o->generation : 0,
					.refusal = o && o->refusal ? arena_strdup(a, o->refusal, strlen(o->refusal))
								   : NULL,
					.target_kind = spec->workload.target.name ? spec->workload.target.kind : NULL,
					.target_name = spec->workload.target.name,
					.changed_at = p->change.at,
					.arrived = p->requests.arrived,
					.started = p->requests.started,
					.late = p->requests.late,
					.changed_from = p->change.from,
					.changed_to = p->change.to,
					.reason = c->has_decided ? explain_headline(&x, a) : NULL,
					.stuck_now = p->timeouts.at && clock_now(c->clock) - p->timeouts.at < STUCK_NOW,
					.stuck_reason = p->timeouts.reason,
					.unschedulable = unschedulable(c, i, a) };
	metering_show(c->metering, c, i, out);
	show_signals(c, i, out, a);
	memcpy(out->stuck, p->timeouts.count, sizeof out->stuck);
	for (int k = 0; k < STAGE_COUNT; k++)
		out->stage[k] = stage_times_show(&p->stages[k]);
	problems_find(c, i, out->problem, a);
}

static bool is_cordoned_by_others(const struct controller *c, const struct node *n)
{
	if (!n->is_cordoned || n->is_draining || n->is_leaving || n->owner != NODE_UNCLAIMED ||
	    n->interruption != NODE_STAYS || clock_now(c->clock) - n->cordoned_since <= CORDONED_FOR_LONG ||
	    drain_is_under_way(c, n->name))
		return false;
	const struct machine *m = node_group_machine(c->groups[n->group], machine_of_node(c, n));
	return m && marks_machine_is_wanted(m);
}

/* Nodes that others own, or cordoned long ago; what an owner's operation cordons is a part of that. */
static void show_nodes(const struct controller *c, size_t group, struct arena *a, struct published_group *out)
{
	size_t count;
	const struct node **nodes = cluster_nodes(c->cluster, (int)group, a, &count), *longest = NULL;
	bool is_owners = node_group_is_owners(c->groups[group]);

	for (size_t i = 0; i < count; i++) {
		out->not_ours += nodes[i]->owner != NODE_UNCLAIMED;
		if (is_owners || !is_cordoned_by_others(c, nodes[i]))
			continue;
		out->cordoned++;
		longest = !longest || nodes[i]->cordoned_since < longest->cordoned_since ? nodes[i] : longest;
	}
	out->cordoned_first = longest ? arena_strdup(a, longest->name, strlen(longest->name)) : NULL;
}

/* What its provider could and the group cannot, as far as the manifest asks for it. */
static const char *lack_of(const struct node_group *g, struct arena *a)
{
	unsigned asked = PROVIDER_NAMES_VICTIMS | PROVIDER_CANCELS;
	bool stands_by = group_spec_of(g)->standby_max_nodes > 0, lacks;

	if (stands_by)
		asked |= PROVIDER_HAS_STANDBY | PROVIDER_STOPS_NAMED;
	lacks = g->seen.is_refused || (stands_by && g->seen.forgets_images) ||
		(g->ops->abilities & asked & ~g->seen.abilities);
	if (!g->is_known || !lacks)
		return NULL;
	return format(a, "node group %s: %s", group_spec_of(g)->name,
		      g->seen.lacks && *g->seen.lacks ? g->seen.lacks : "it cannot do all that its provider can");
}

static const char *kept(struct arena *a, const char *text)
{
	return arena_strdup(a, text, strlen(text));
}

static const char *yields_to(const struct node_group *g, struct arena *a)
{
	const char *by = node_group_resized_by(g);

	return format(a, "its size was lowered outside Preheat less than ten minutes ago%s%s", *by ? ", by " : "", by);
}

static void show_group(struct controller *c, size_t i, struct arena *a)
{
	const struct node_group *g = c->groups[i];

	millis mono = clock_mono(c->clock), wait = throttle_wait(g->throttle, loop_now(c->loop));

	c->publishing.groups[i] = (struct published_group){
		.resized = g->resized,
		.growth_held = g->growth.held,
		.is_growth_held = g->growth.held_until > mono,
		.contended = g->contention.is_held ? g->contention.machines : 0,
		.busy_with = node_group_is_owners(g)	? kept(a, node_group_busy_with(g))
			     : node_group_is_emptied(g) ? kept(a, g->seen.emptied_by)
			     : g->is_yielding		? yields_to(g, a)
							: NULL,
		.ailment = g->is_known && g->seen.ailment && *g->seen.ailment ? kept(a, g->seen.ailment) : NULL,
		.unseen_nodes = g->unseen.total,
		.unseen = g->unseen.told_until > mono ? kept(a, g->unseen.token) : NULL,
		.out_of_stock = (int64_t)offerings_blocked(&g->offerings, mono),
		.throttled_until = wait > 0 ? clock_now(c->clock) + wait * c->clock->speed : 0,
		.lacks = lack_of(g, a),
		.is_described = g->is_known,
		.described_at = g->is_known ? clock_now(c->clock) - (clock_mono(c->clock) - g->described_at) : 0,
		.desired = g->seen.desired,
		.standby = g->seen.standby,
		.error = g->trouble,
		.error_at = g->trouble.kind != ERROR_NONE ? clock_now(c->clock) : 0,
	};
	show_nodes(c, i, a, &c->publishing.groups[i]);
}

static struct published_watch show_watch(const struct watch *w, struct arena *a)
{
	const struct watch_report *r = watch_report(w);
	const char *trouble = r->trouble.kind != ERROR_NONE ? r->trouble.message : NULL;

	return (struct published_watch){
		.resource = watch_name(w),
		.is_synced = watch_is_synced(w),
		.trouble = trouble ? arena_strdup(a, trouble, strlen(trouble)) : NULL,
		.objects = r->objects,
		.relists = r->relists,
		.errors = r->failures,
		.last_event_at = r->last_event,
	};
}

/* Without the kind there is nothing to do, unless there are files, too: who waits for pools shall know. */
static struct published_watch show_pool_watch(const struct controller *c, const struct watch *w, struct arena *a)
{
	struct published_watch shown = show_watch(w, a);

	if (watch_report(w)->state == WATCH_ABSENT && !fleet_of(c)->pool_count) {
		shown.is_synced = false;
		shown.trouble = "it knows no such kind; apply deploy/base/crd.yaml, which preheat crd prints, too";
	}
	return shown;
}

static void show_watches(struct controller *c, struct arena *a)
{
	struct published_watch *items = arena_array(a, struct published_watch, CLUSTER_KIND_COUNT + 1);
	const struct watch *pools = objects_watch(c);
	size_t n = 0;

	for (int kind = 0; kind < CLUSTER_KIND_COUNT; kind++) {
		const struct watch *w = cluster_watch_of(c->cluster, (enum cluster_kind)kind);
		if (w)
			items[n++] = show_watch(w, a);
	}
	if (pools)
		items[n++] = show_pool_watch(c, pools, a);
	c->published.watches = items;
	c->published.watch_count = n;
}

static struct published_counts provider_calls(const struct controller *c, struct arena *a)
{
	enum { KINDS = ERROR_INTERNAL + 1 };
	struct published_count *items =
		arena_array(a, struct published_count, (size_t)PROVIDER_COUNT * PROVIDER_VERB_COUNT * KINDS);
	size_t n = 0;

	for (size_t provider = 0; provider < PROVIDER_COUNT; provider++)
		for (int verb = 0; verb < PROVIDER_VERB_COUNT; verb++)
			for (int kind = 0; kind < KINDS; kind++) {
				int64_t count = c->fleet.calls[provider][verb][kind];
				if (count)
					items[n++] = (struct published_count){
						.labels = { provider_name((enum provider_choice)provider),
							    provider_verb_name((enum provider_verb)verb),
							    kind ? error_kind_name((enum error_kind)kind) : "none" },
						.count = count
					};
			}
	return (struct published_counts){ items, n };
}

static void show_counts(struct controller *c, struct arena *a)
{
	const struct api_counts api = api_counts(c->api);
	const struct event_counts events = c->events ? event_counts(c->events) : (struct event_counts){ 0 };
	const struct published_count api_calls[] = { { { "all" }, api.calls },
						     { { "failed" }, api.failures },
						     { { "repeated" }, api.retries },
						     { { "throttled" }, api.throttled },
						     { { "barred" }, api.barred } };
	const struct published_count nodes[] = { { { "removed" }, c->drains.removed },
						 { { "stopped" }, c->drains.stopped },
						 { { "drain-abandoned" }, c->drains.abandoned },
						 { { "drain-blocked" }, c->drains.blocked },
						 { { "interrupted" }, c->interruptions.count } };
	const struct published_count sent[] = { { { "sent" }, events.sent },
						{ { "merged" }, events.repeated },
						{ { "dropped" }, events.dropped },
						{ { "failed" }, events.failed } };
	struct published_count evictions[EVICTION_FAILED + 1];

	for (int i = 0; i <= EVICTION_FAILED; i++)
		evictions[i] = (struct published_count){ { eviction_result_name((enum eviction_result)i) },
							 c->drains.evictions[i] };
	c->published.api_calls = counts(a, api_calls, 5);
	c->published.nodes = counts(a, nodes, sizeof nodes / sizeof *nodes);
	c->published.events = counts(a, sent, 4);
	c->published.evictions = counts(a, evictions, EVICTION_FAILED + 1);
	c->published.provider_calls = provider_calls(c, a);
	c->published.strays = strays(c, a);
}

/* The log that was not folded in yet counts, too. */
static int64_t history_bytes(const struct controller *c)
{
	static const char *const ends[] = { "", "-wal" };
	int64_t sum = 0;

	for (int i = 0; i < 2; i++) {
		char path[4096];
		struct stat s;
		snprintf(path, sizeof path, "%s%s", c->settings.history_path, ends[i]);
		if (!stat(path, &s))
			sum += s.st_size;
	}
	return sum;
}

static void show_due(struct controller *c)
{
	bool leads = c->leader.state == STATE_LEADING;
	millis within = leads ? FIRST_LOOK : SETTLED;
	enum awaited now = AWAITED_NOTHING;

	if (leads)
		now = AWAITED_TICK;
	else if (c->leader.state == STATE_SETTLING)
		now = AWAITED_QUIET;
	else if (c->leader.may_lead && fleet_of(c)->pool_count)
		now = AWAITED_BEGIN;
	if (now == c->publishing.awaited)
		return;
	c->publishing.awaited = now;
	c->published.tick_due_mono = now == AWAITED_NOTHING ? 0 : clock_mono(c->clock) + within * c->clock->speed;
}

/* Why the watches have been broken for longer than it takes to connect again; NULL when they have not. */
static const char *away_because(struct controller *c)
{
	static const enum cluster_kind kinds[] = { CLUSTER_NODES, CLUSTER_PODS };
	millis *since = &c->publishing.away_since;

	if (!cluster_is_synced(c->cluster) || cluster_is_fresh(c))
		*since = 0;
	else if (!*since)
		*since = loop_now(c->loop);
	if (!*since || loop_now(c->loop) - *since <= AWAY)
		return NULL;
	for (int i = 0; i < 2; i++) {
		const struct watch *w = cluster_watch_of(c->cluster, kinds[i]);
		const struct watch_report *r = w ? watch_report(w) : NULL;
		if (r && r->trouble.kind != ERROR_NONE)
			return r->trouble.message;
	}
	return "nothing comes";
}

/* What a person must mend before this replica can do its work; told once in the log, and by /readyz until it is. */
static void show_obstacle(struct controller *c)
{
	const struct error *trouble = c->leader.lease ? lease_trouble(c->leader.lease) : NULL;
	const char *away = away_because(c);
	char text[sizeof c->publishing.obstacle] = "";

	if (away)
		snprintf(text, sizeof text, "the API server cannot be read: %s", away);
	else if (objects_watch(c) && watch_report(objects_watch(c))->state == WATCH_ABSENT)
		snprintf(text, sizeof text,
			 "WarmPools are asked for with --watch-pools, but the API server has no such kind; do: kubectl "
			 "apply "
			 "--server-side -f deploy/base/crd.yaml");
	else if (trouble && trouble->kind != ERROR_NONE && !error_is_transient(trouble) &&
		 !lease_holder(c->leader.lease)[0])
		snprintf(text, sizeof text, "the lease %s/%s is unavailable: %s", c->settings.namespace,
			 c->settings.lease, trouble->message);
	if (text[0] && strcmp(text, c->publishing.obstacle) != 0)
		log_warn("obstacle", LOG_S("what", text), LOG_END);
	memcpy(c->publishing.obstacle, text, sizeof c->publishing.obstacle);
	c->published.obstacle = c->publishing.obstacle[0] ? c->publishing.obstacle : NULL;
}

void publish_make_room(struct controller *c)
{
	struct publishing *p = &c->publishing;

	free(p->pools);
	free(p->groups);
	p->pools = xcalloc(fleet_of(c)->pool_count + 1, sizeof *p->pools);
	p->groups = xcalloc(fleet_of(c)->group_count + 1, sizeof *p->groups);
	c->published.snapshot = NULL;
	c->published.plan = NULL;
	c->published.pools = NULL;
	c->published.groups = NULL;
}

void publish_state(struct controller *c)
{
	struct published *p = &c->published;
	struct arena *a = &c->publishing.arena;
	bool leads = c->leader.state == STATE_LEADING;

	arena_clear(a);
	p->role = !c->leader.lease ? ROLE_ALONE : c->leader.may_lead ? ROLE_LEADER : ROLE_FOLLOWER;
	p->leader = c->leader.lease ? lease_holder(c->leader.lease) : "";
	p->lease_transitions = c->leader.lease ? lease_transitions(c->leader.lease) : 0;
	p->history_lag_ticks = follower_lag(c);
	p->is_history_spare = follower_is_spare(c);
	p->clock_ahead = c->skew.machine_ahead;
	show_obstacle(c);
	show_due(c);
	p->fleet = fleet_of(c);
	p->snapshot = leads && c->has_decided ? &c->snapshot : NULL;
	p->plan = leads && c->has_decided ? &c->plan : NULL;
	p->pools = leads && c->has_decided ? c->publishing.pools : NULL;
	p->groups = leads && c->has_decided ? c->publishing.groups : NULL;
	for (size_t i = 0; leads && c->has_decided && i < fleet_of(c)->group_count; i++)
		show_group(c, i, a);
	for (size_t i = 0; leads && c->has_decided && i < fleet_of(c)->pool_count; i++)
		show_pool(c, i, a);
	show_watches(c, a);
	show_counts(c, a);
	p->history_bytes = history_bytes(c);
	p->is_history_disk_full = leads ? c->tick.is_disk_full : c->follower.is_disk_full;
	p->refused_pools = objects_refused(c, a);
	if (c->settings.on_publish)
		c->settings.on_publish(c->settings.user, p);
	if (c->leader.state == STATE_FOLLOWING && c->leader.may_lead && !p->fleet->pool_count)
		status_write(c); /* no tick does */
}
