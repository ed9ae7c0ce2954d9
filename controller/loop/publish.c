#include "controller/cluster/watch.h"
#include "controller/explain/explain.h"
#include "controller/loop/account.h"
#include "controller/loop/follow.h"
#include "controller/loop/node_group_parts.h"
#include "controller/loop/objects.h"
#include "controller/loop/parts.h"
#include "controller/loop/status.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const millis AWAY = 5 * SECOND; /* of the world */
static const millis STUCK_NOW = 10 * MINUTE;
/* Calls that are under way when we stop acting are cancelled; a deadline of theirs is the longest that one may last. */
static const millis SETTLED = 2 * MINUTE;

static struct published_counts list(const struct published_count *items, size_t count)
{
	return (struct published_counts){ .items = items, .count = count };
}

/* One label for all: what their owners wrote stands in the events, and would be a series each here. */
static struct published_counts unschedulable(const struct controller *c, size_t pool, struct arena *a)
{
	size_t shapes;
	const struct pending_shape *pending = cluster_pending(c->cluster, a, &shapes);
	struct published_count *sum = arena_new(a, struct published_count);

	*sum = (struct published_count){ .labels = { "no node group fits" } };
	for (size_t i = 0; i < shapes; i++)
		sum->count += pending[i].pool == (int)pool && pending[i].why ? pending[i].count : 0;
	return list(sum, sum->count > 0);
}

static const char *reason_of(struct controller *c, size_t pool, struct arena *a)
{
	const struct explained x = { .fleet = fleet_of(c),
				     .pool = pool,
				     .tick = c->snapshot.tick,
				     .now = c->snapshot.now,
				     .plan = &c->plan.pools[pool] };

	return explain_headline(&x, a);
}

static const char *signals_trouble(const struct live_pool *p, struct arena *a)
{
	struct source_report r = p->source ? source_report(p->source) : (struct source_report){ 0 };
	const char *said = r.trouble.kind != ERROR_NONE ? r.trouble.message : r.warning;
	const char *queue = p->queue ? external_queue_trouble(p->queue)->message : "";
	CLEANUP(buf_release) struct buf text = { 0 };

	buf_text(&text, said);
	if (p->source && !p->has_heard && !text.len)
		buf_text(&text, "none was read yet");
	if (p->devices && device_source_trouble(p->devices)->kind != ERROR_NONE)
		buf_printf(&text, "%sGPUs: %s", text.len ? "; " : "", device_source_trouble(p->devices)->message);
	if (queue[0])
		buf_printf(&text, "%squeue: %s", text.len ? "; " : "", queue);
	return text.len ? arena_strdup(a, text.text, text.len) : NULL;
}

static void show_signals(const struct controller *c, size_t pool, struct published_pool *out, struct arena *a)
{
	const struct live_pool *p = &c->pools[pool];
	millis read_at = p->source ? source_report(p->source).read_at : 0;

	out->signals_trouble = signals_trouble(p, a);
	out->signals_age = read_at ? clock_mono(c->clock) - read_at : ABSENT;
	out->queued = p->queue ? p->queued : ABSENT;
	serving_publish(&p->serving, clock_now(c->clock), &out->serving);
	devices_publish(c, pool, &out->devices, a);
}

static void show_pool(struct controller *c, size_t i, struct arena *a)
{
	const struct live_pool *p = &c->pools[i];
	const struct spec_text *spec = &c->manifest.pools[i].spec;
	const struct pool_object *o = objects_find(c, fleet_of(c)->pools[i].namespace, fleet_of(c)->pools[i].name);
	struct published_pool *out = &c->published_pools[i];

	*out = (struct published_pool){ .is_object = o != NULL,
					.generation = o ? o->generation : 0,
					.refusal = o && o->refusal ? arena_strdup(a, o->refusal, strlen(o->refusal))
								   : NULL,
					.target_kind = spec->workload.target.name ? spec->workload.target.kind : NULL,
					.target_name = spec->workload.target.name,
					.is_metric_only = spec->workload.warm == WARM_METRIC,
					.changed_at = p->changed_at,
					.arrived = p->arrived,
					.started = p->started,
					.late = p->late,
					.changed_from = p->changed_from,
					.changed_to = p->changed_to,
					.reason = c->has_decided ? reason_of(c, i, a) : NULL,
					.stuck_now = p->stuck_at && clock_now(c->clock) - p->stuck_at < STUCK_NOW,
					.stuck_reason = p->stuck_reason,
					.unschedulable = unschedulable(c, i, a) };
	account_show(c->account, c, i, out);
	show_signals(c, i, out, a);
	memcpy(out->stuck, p->stuck, sizeof out->stuck);
	for (int k = 0; k < STAGE_COUNT; k++)
		out->stage[k] = stage_times_show(&p->stages[k]);
	problems_find(c, i, out->problem, a);
}

static int64_t foreign_nodes(const struct controller *c, size_t group, struct arena *a)
{
	size_t count;
	const struct node **nodes = cluster_nodes(c->cluster, (int)group, a, &count);
	int64_t foreign = 0;

	for (size_t i = 0; i < count; i++)
		foreign += nodes[i]->owner != NODE_UNCLAIMED;
	return foreign;
}

/* What its provider could and the group cannot, as far as the manifest asks for it. */
static const char *lack_of(const struct node_group *g, struct arena *a)
{
	unsigned asked = PROVIDER_NAMES_VICTIMS | PROVIDER_CANCELS;
	char text[512];

	if (group_spec_of(g)->standby_max_nodes)
		asked |= PROVIDER_HAS_STANDBY | PROVIDER_STOPS_NAMED;
	if (!g->is_known || (!g->seen.is_refused && !(g->ops->abilities & asked & ~g->seen.abilities)))
		return NULL;
	snprintf(text, sizeof text, "node group %s: %s", group_spec_of(g)->name,
		 g->seen.lacks && *g->seen.lacks ? g->seen.lacks : "it cannot do all that its provider can");
	return arena_strdup(a, text, strlen(text));
}

static void show_group(struct controller *c, size_t i, struct arena *a)
{
	const struct node_group *g = &c->groups[i];

	millis mono = clock_mono(c->clock), wait = throttle_wait(g->throttle, loop_now(c->loop));

	c->published_groups[i] = (struct published_group){
		.resized = g->resized,
		.growth_held = g->growth.held,
		.is_growth_held = g->growth.held_until > mono,
		.out_of_stock = (int64_t)offerings_blocked(&g->offerings, mono),
		.throttled_until = wait > 0 ? clock_now(c->clock) + wait * c->clock->speed : 0,
		.lacks = lack_of(g, a),
		.is_described = g->is_known,
		.described_at = g->is_known ? clock_now(c->clock) - (clock_mono(c->clock) - g->described_at) : 0,
		.desired = g->seen.desired,
		.standby = g->seen.standby,
		.error = g->trouble,
		.error_at = g->trouble.kind != ERROR_NONE ? clock_now(c->clock) : 0,
		.not_ours = foreign_nodes(c, i, a),
	};
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
				int64_t count = c->provider_counts[provider][verb][kind];
				if (count)
					items[n++] = (struct published_count){
						.labels = { provider_name((enum provider_choice)provider),
							    provider_verb_name((enum provider_verb)verb),
							    kind ? error_kind_name((enum error_kind)kind) : "none" },
						.count = count
					};
			}
	return list(items, n);
}

static struct published_counts api_calls(const struct controller *c, struct arena *a)
{
	struct api_counts told = api_counts(c->api);
	struct published_count *items = arena_array(a, struct published_count, 5);

	items[0] = (struct published_count){ .labels = { "all" }, .count = told.calls };
	items[1] = (struct published_count){ .labels = { "failed" }, .count = told.failures };
	items[2] = (struct published_count){ .labels = { "repeated" }, .count = told.retries };
	items[3] = (struct published_count){ .labels = { "throttled" }, .count = told.throttled };
	items[4] = (struct published_count){ .labels = { "barred" }, .count = told.barred };
	return list(items, 5);
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

static struct published_counts evictions(const struct controller *c, struct arena *a)
{
	struct published_count *items = arena_array(a, struct published_count, EVICTION_FAILED + 1);

	for (int i = 0; i <= EVICTION_FAILED; i++)
		items[i] = (struct published_count){ .labels = { eviction_result_name((enum eviction_result)i) },
						     .count = c->drains.evictions[i] };
	return list(items, EVICTION_FAILED + 1);
}

static struct published_counts nodes(const struct controller *c, struct arena *a)
{
	struct published_count *items = arena_array(a, struct published_count, 4);

	items[0] = (struct published_count){ .labels = { "removed" }, .count = c->drains.removed };
	items[1] = (struct published_count){ .labels = { "stopped" }, .count = c->drains.stopped };
	items[2] = (struct published_count){ .labels = { "drain-abandoned" }, .count = c->drains.abandoned };
	items[3] = (struct published_count){ .labels = { "interrupted" }, .count = c->interrupted };
	return list(items, 4);
}

static struct published_counts events(const struct controller *c, struct arena *a)
{
	struct event_counts told = c->events ? event_counts(c->events) : (struct event_counts){ 0 };
	struct published_count *items = arena_array(a, struct published_count, 4);

	items[0] = (struct published_count){ .labels = { "sent" }, .count = told.sent };
	items[1] = (struct published_count){ .labels = { "merged" }, .count = told.repeated };
	items[2] = (struct published_count){ .labels = { "dropped" }, .count = told.dropped };
	items[3] = (struct published_count){ .labels = { "failed" }, .count = told.failed };
	return list(items, 4);
}

static void show_role(struct controller *c)
{
	struct published *p = &c->published;

	p->role = !c->lease ? ROLE_ALONE : c->may_lead ? ROLE_LEADER : ROLE_FOLLOWER;
	p->leader = c->lease ? lease_holder(c->lease) : "";
	p->lease_transitions = c->lease ? lease_transitions(c->lease) : 0;
	p->history_lag_ticks = follow_lag(c);
}

static enum awaited awaited(const struct controller *c)
{
	if (c->state == STATE_LEADING)
		return AWAITED_TICK;
	if (c->state == STATE_SETTLING)
		return AWAITED_QUIET;
	return c->may_lead && fleet_of(c)->pool_count ? AWAITED_BEGIN : AWAITED_NOTHING;
}

static void show_due(struct controller *c)
{
	millis within = c->state == STATE_LEADING ? FIRST_LOOK : SETTLED;
	enum awaited now = awaited(c);

	if (now == c->awaited)
		return;
	c->awaited = now;
	c->published.tick_due_mono = now == AWAITED_NOTHING ? 0 : clock_mono(c->clock) + within * c->clock->speed;
}

/* The watches have been broken for longer than it takes to connect again. */
static bool is_away(struct controller *c)
{
	if (!cluster_is_synced(c->cluster) || cluster_is_fresh(c))
		c->away_since = 0;
	else if (!c->away_since)
		c->away_since = loop_now(c->loop);
	return c->away_since && loop_now(c->loop) - c->away_since > AWAY;
}

static const char *away_because(const struct controller *c)
{
	const struct watch *w = cluster_watch_of(c->cluster, CLUSTER_NODES);
	const struct watch_report *nodes = w ? watch_report(w) : NULL;

	w = cluster_watch_of(c->cluster, CLUSTER_PODS);
	const struct watch_report *pods = w ? watch_report(w) : NULL;
	if (nodes && nodes->trouble.kind != ERROR_NONE)
		return nodes->trouble.message;
	return pods && pods->trouble.kind != ERROR_NONE ? pods->trouble.message : "nothing comes";
}

/* What a person must mend before this replica can do its work; told once in the log, and by /readyz until it is. */
static void show_obstacle(struct controller *c)
{
	const struct error *trouble = c->lease ? lease_trouble(c->lease) : NULL;
	char text[sizeof c->obstacle] = "";

	if (is_away(c))
		snprintf(text, sizeof text, "the API server cannot be read: %s", away_because(c));
	else if (objects_are_absent(c))
		snprintf(text, sizeof text,
			 "WarmPools are asked for with --watch-pools, but the API server has no such kind; do: kubectl "
			 "apply "
			 "--server-side -f deploy/base/crd.yaml");
	else if (trouble && trouble->kind != ERROR_NONE && !error_is_transient(trouble) && !lease_holder(c->lease)[0])
		snprintf(text, sizeof text, "the lease %s/%s cannot be had: %s", c->settings.namespace,
			 c->settings.lease, trouble->message);
	if (text[0] && strcmp(text, c->obstacle) != 0)
		log_warn("obstacle", LOG_S("what", text), LOG_END);
	memcpy(c->obstacle, text, sizeof c->obstacle);
	c->published.obstacle = c->obstacle[0] ? c->obstacle : NULL;
}

void publish(struct controller *c)
{
	struct published *p = &c->published;
	struct arena *a = &c->kept;
	bool leads = c->state == STATE_LEADING;

	arena_clear(a);
	show_role(c);
	show_obstacle(c);
	show_due(c);
	p->fleet = fleet_of(c);
	p->snapshot = leads && c->has_decided ? &c->snapshot : NULL;
	p->plan = leads && c->has_decided ? &c->plan : NULL;
	p->pools = leads && c->has_decided ? c->published_pools : NULL;
	p->groups = leads && c->has_decided ? c->published_groups : NULL;
	for (size_t i = 0; leads && c->has_decided && i < fleet_of(c)->group_count; i++)
		show_group(c, i, a);
	for (size_t i = 0; leads && c->has_decided && i < fleet_of(c)->pool_count; i++)
		show_pool(c, i, a);
	show_watches(c, a);
	p->provider_calls = provider_calls(c, a);
	p->api_calls = api_calls(c, a);
	p->history_bytes = history_bytes(c);
	p->evictions = evictions(c, a);
	p->nodes = nodes(c, a);
	p->events = events(c, a);
	p->refused_pools = objects_refused(c, a);
	if (c->settings.on_publish)
		c->settings.on_publish(c->settings.user, p);
	if (c->state == STATE_FOLLOWING && c->may_lead && !p->fleet->pool_count)
		status_write(c); /* no tick does */
}
