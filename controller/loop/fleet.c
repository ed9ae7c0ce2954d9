#include "base/json.h"
#include "controller/loop/parts.h"
#include "controller/loop/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct cluster_label mark_of(const struct controller *c, size_t group)
{
	struct schema_label l = manifest_group_label(&c->manifest, group);

	return (struct cluster_label){ l.key, l.value };
}

static bool is_of_karpenter(const struct group_text *g)
{
	return g->provider == PROVIDER_KARPENTER || g->provider == PROVIDER_EXTERNAL;
}

static struct cluster_pool show_pool(const struct controller *c, size_t pool, struct arena *a)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	const struct workload_text *w = &c->manifest.pools[pool].spec.workload;
	const struct schema_labels *labels = &w->selector.match_labels;
	struct cluster_label *selector = arena_array(a, struct cluster_label, labels->count);
	int *groups = arena_array(a, int, spec->group_count);

	for (size_t i = 0; i < labels->count; i++)
		selector[i] = (struct cluster_label){ labels->items[i].key, labels->items[i].value };
	for (size_t i = 0; i < spec->group_count; i++)
		groups[i] = (int)spec->groups[i];
	return (struct cluster_pool){ .name = spec->name,
				      .namespace = spec->namespace,
				      .selector = selector,
				      .selector_count = labels->count,
				      .gpus_per_replica = spec->gpus_per_replica,
				      .gpu_resource = w->gpu_resource,
				      .groups = groups,
				      .group_count = spec->group_count };
}

void fleet_tell_cluster(struct controller *c)
{
	const struct fleet_spec *fleet = fleet_of(c);
	struct arena a = { 0 };
	struct cluster_pool *pools = arena_array(&a, struct cluster_pool, fleet->pool_count);
	struct cluster_group *groups = arena_array(&a, struct cluster_group, fleet->group_count);

	for (size_t i = 0; i < fleet->pool_count; i++)
		pools[i] = show_pool(c, i, &a);
	for (size_t i = 0; i < fleet->group_count; i++) {
		const struct group_spec *g = &fleet->groups[i];
		groups[i] = (struct cluster_group){ .name = g->name,
						    .provider = g->provider,
						    .label = mark_of(c, i),
						    .gpus_per_node = g->gpus_per_node,
						    .max = g->max_nodes,
						    .is_of_karpenter = is_of_karpenter(&c->manifest.groups[i]) };
	}
	cluster_set_fleet(c->cluster, pools, fleet->pool_count, groups, fleet->group_count);
	arena_release(&a);
}

bool controller_accepts(const struct manifest *m, struct findings *f, struct error *e)
{
	for (size_t i = 0; i < m->fleet.group_count; i++) {
		const struct group_spec *g = &m->fleet.groups[i];
		if (!provider_find(g->provider))
			return error_set(
				e, ERROR_INVALID,
				"node group %s: found provider '%s', which this program can only simulate; leave the "
				"group out, or wait for a version that drives it",
				g->name, g->provider);
	}
	return manifest_check_live(m, f, e);
}

/* What the provider is told of a group. Where only the cluster is watched: by which label its nodes are known. */
static const char *settings_of(struct controller *c, size_t group)
{
	const struct group_spec *spec = &fleet_of(c)->groups[group];
	struct cluster_label mark = mark_of(c, group);
	CLEANUP(buf_release) struct buf text = { 0 };

	if (!c->settings.only_records)
		return spec->settings;
	buf_text(&text, "{\"label\":");
	json_write_text(mark.key, &text);
	buf_text(&text, ",\"value\":");
	json_write_text(mark.value, &text);
	buf_text(&text, "}");
	return arena_strdup(&c->manifest_arena, text.text, text.len);
}

static bool open_group(struct controller *c, size_t group, struct error *e)
{
	const struct group_spec *spec = &fleet_of(c)->groups[group];
	size_t kind = c->settings.only_records ? (size_t)PROVIDER_EXTERNAL : (size_t)c->manifest.groups[group].provider;
	const struct provider_ops *ops = provider_find(provider_name((enum provider_choice)kind));

	if (!ops)
		return error_set(e, ERROR_INVALID, "node group %s: this program cannot drive provider %s yet",
				 spec->name, spec->provider);
	if (!c->providers[kind])
		c->providers[kind] = ops->open(&(struct provider_setup){ c->loop, c->settings.http, &c->door }, e);
	if (!c->providers[kind])
		return error_wrap(e, "provider %s", spec->provider);
	if (!c->throttles[kind].retry.first)
		c->throttles[kind] = throttle_make(random_stream((uint64_t)c->term, spec->provider));
	const struct group_access access = { ops,
					     c->providers[kind],
					     c->provider_counts[kind],
					     &c->throttles[kind],
					     policy_lacks_standby(c->memory, group),
					     settings_of(c, group) };
	node_group_open(&c->groups[group], &c->context, group, &access);
	return true;
}

static void called(void *user, const struct node_group *g, const struct provider_call *call, millis from)
{
	trace_call(user, g, call, from);
}

static void heard(void *user, const struct start *s, const struct event_input *event, millis at)
{
	trace_start(user, s, event, at);
}

static bool may_act(void *user)
{
	return lead_may_act(user);
}

static bool works(void *user, size_t pool)
{
	return runs_work(user, pool);
}

/* A pool that was there before goes on with what it has told; after another one led it tells its size anew. */
static void carry_over(struct controller *c, struct live_pool *p)
{
	for (size_t i = 0; i < c->former_count; i++) {
		const struct live_pool *f = &c->former_pools[i];
		if (strcmp(f->key, p->key) != 0)
			continue;
		memcpy(p->stuck, f->stuck, sizeof p->stuck);
		memcpy(p->stages, f->stages, sizeof p->stages);
		memcpy(p->stuck_reason, f->stuck_reason, sizeof p->stuck_reason);
		p->stuck_at = f->stuck_at;
		p->changed_at = f->changed_at;
		p->changed_from = f->changed_from;
		p->changed_to = f->changed_to;
		p->published_size = f->published_size;
		p->has_reported = f->has_reported && c->former_term == c->term;
		p->told = f->told;
		p->serving = f->serving;
	}
}

static void open_pool(struct controller *c, size_t pool)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	struct live_pool *p = &c->pools[pool];

	*p = (struct live_pool){ .index = pool, .controller = c, .is_blind = true };
	snprintf(p->key, sizeof p->key, "%s/%s", spec->namespace, spec->name);
	p->scale.wanted = p->scale.is = ABSENT;
	p->placeholder.wanted = p->placeholder.is = ABSENT;
	p->buffer.wanted = p->buffer.is = ABSENT;
	p->source = source_of_pool(c, pool);
	p->queue = queue_of_pool(c, pool);
	p->queued = p->queue ? ABSENT : 0;
	devices_open(c, pool);
	carry_over(c, p);
}

bool fleet_open(struct controller *c, struct error *e)
{
	const struct fleet_spec *fleet = fleet_of(c);

	c->context = (struct group_context){ .loop = c->loop,
					     .clock = c->clock,
					     .history = c->history,
					     .fleet = fleet,
					     .starts = &c->starts,
					     .term = c->term,
					     .node_stages = machines_stages,
					     .unready = machines_unready,
					     .runs_work = works,
					     .may_act = may_act,
					     .changed = act_soon,
					     .called = called,
					     .refused = fall_back_note,
					     .affordable = money_affordable,
					     .user = c };
	c->recordings_over = 0; /* those that are over tell it again */
	c->starts.heard = heard;
	c->starts.user = c;
	c->pools = calloc(fleet->pool_count + 1, sizeof *c->pools);
	c->groups = calloc(fleet->group_count + 1, sizeof *c->groups);
	c->published_pools = calloc(fleet->pool_count + 1, sizeof *c->published_pools);
	c->published_groups = calloc(fleet->group_count + 1, sizeof *c->published_groups);
	if (!c->pools || !c->groups || !c->published_pools || !c->published_groups)
		abort();
	for (size_t i = 0; i < fleet->pool_count; i++)
		open_pool(c, i);
	fleet_forget(c);
	for (size_t i = 0; i < fleet->group_count; i++)
		if (!open_group(c, i, e))
			return false;
	return true;
}

void fleet_forget(struct controller *c)
{
	free(c->former_pools);
	c->former_pools = NULL;
	c->former_count = 0;
}

void fleet_close(struct controller *c)
{
	if (!c->pools)
		return;
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++) {
		source_close(c->pools[i].source);
		external_queue_close(c->pools[i].queue);
		if (c->pools[i].owns_devices)
			device_source_close(c->pools[i].devices);
		buf_release(&c->pools[i].placeholder.pod);
		buf_release(&c->pools[i].placeholder.body);
		buf_release(&c->pools[i].buffer.body);
	}
	for (size_t i = 0; i < fleet_of(c)->group_count; i++)
		node_group_close(&c->groups[i]);
	for (size_t i = 0; i < PROVIDER_COUNT; i++)
		if (c->providers[i])
			provider_find(provider_name((enum provider_choice)i))->close(c->providers[i]);
	memset(c->providers, 0, sizeof c->providers);
	fleet_forget(c);
	c->former_pools = c->pools;
	c->former_count = fleet_of(c)->pool_count;
	c->former_term = c->term;
	free(c->groups);
	free(c->published_pools);
	free(c->published_groups);
	c->pools = NULL;
	c->groups = NULL;
	c->published_pools = NULL;
	c->published_groups = NULL;
	c->published.snapshot = NULL;
	c->published.plan = NULL;
	starts_release(&c->starts);
	c->idle_count = 0;
	c->has_decided = false;
}

void fleet_change(struct controller *c, const struct manifest *m, struct arena *held)
{
	arena_release(&c->next_arena);
	c->next_manifest = *m;
	c->next_arena = *held;
	*held = (struct arena){ 0 };
	c->has_next = true;
	lead_stop_acting(c, "the manifest changed");
	lead_go_on(c);
}
