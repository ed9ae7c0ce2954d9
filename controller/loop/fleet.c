#include "controller/loop/fleet.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/signature.h"
#include "controller/cluster/api.h"
#include "controller/loop/controller_state.h"
#include "controller/loop/trace.h"
#include "providers/block.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the API server, for providers --- */

static void answered(struct api_call *a)
{
	struct cluster_call *c = a->user;

	c->error = a->error;
	if (a->is_barred)
		c->error.kind = ERROR_UNAVAILABLE; /* with a step before it, perhaps: a look tells what was done */
	c->response = a->response;
	c->response_len = a->response_len;
	c->retry_after = a->retry_after;
	c->exchange = NULL;
	c->done(c);
	free(a);
}

static void start_call(void *user, struct cluster_call *c)
{
	struct api_call *a = xcalloc(1, sizeof *a);

	c->exchange = a;
	*a = (struct api_call){ .method = c->method,
				.path = c->path,
				.body = c->body,
				.content_type = c->content_type,
				.effect = c->changes ? API_WRITE : API_READ,
				.timeout = c->timeout,
				.done = answered,
				.user = c };
	api_start(user, a);
}

static void cancel_call(void *user, struct cluster_call *c)
{
	(void)user;
	if (c->exchange)
		api_cancel(c->exchange);
}

struct cluster_door cluster_client_open(struct api *a)
{
	return (struct cluster_door){ .start = start_call, .cancel = cancel_call, .user = a };
}

/* --- what the model of the cluster is told --- */

static struct cluster_label mark_of(const struct controller *c, size_t group)
{
	struct schema_label l = manifest_group_label(&c->manifest, group);

	return (struct cluster_label){ l.key, l.value };
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
	CLEANUP(arena_release) struct arena a = { 0 };
	struct cluster_pool *pools = arena_array(&a, struct cluster_pool, fleet->pool_count);
	struct cluster_group *groups = arena_array(&a, struct cluster_group, fleet->group_count);

	for (size_t i = 0; i < fleet->pool_count; i++)
		pools[i] = show_pool(c, i, &a);
	for (size_t i = 0; i < fleet->group_count; i++) {
		const struct group_spec *g = &fleet->groups[i];
		const struct provider_block *block =
			provider_block((enum provider_choice)c->manifest.groups[i].provider);
		groups[i] = (struct cluster_group){ .name = g->name,
						    .provider = g->provider,
						    .label = mark_of(c, i),
						    .gpus_per_node = g->gpus_per_node,
						    .max = g->max_nodes,
						    .drives_marked_nodes = block->drives_marked_nodes };
	}
	cluster_set_fleet(c->cluster, pools, fleet->pool_count, groups, fleet->group_count);
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

/* --- opening and closing --- */

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
	return arena_strdup(&c->fleet.manifest_arena, text.text, text.len);
}

static bool open_group(struct controller *c, size_t group, struct error *e)
{
	const struct group_spec *spec = &fleet_of(c)->groups[group];
	size_t kind = c->settings.only_records ? (size_t)PROVIDER_external : (size_t)c->manifest.groups[group].provider;
	const struct provider_ops *ops = provider_find(provider_name((enum provider_choice)kind));

	if (!ops)
		return error_set(e, ERROR_INVALID, "node group %s: this program cannot drive provider %s yet",
				 spec->name, spec->provider);
	if (!c->fleet.providers[kind])
		c->fleet.providers[kind] =
			ops->open(&(struct provider_setup){ c->loop, c->settings.http, &c->fleet.client }, e);
	if (!c->fleet.providers[kind])
		return error_wrap(e, "provider %s", spec->provider);
	if (!c->fleet.throttles[kind].retry.first)
		c->fleet.throttles[kind] = throttle_make(random_stream((uint64_t)c->leader.term, spec->provider));
	const struct group_access access = { ops,
					     c->fleet.providers[kind],
					     c->fleet.calls[kind],
					     &c->fleet.throttles[kind],
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
	return leader_may_act(user);
}

static bool works(void *user, size_t pool)
{
	return runs_work(user, pool);
}

/* A pool that was there before goes on with what it has told; after another one led it tells its size anew. */
static void carry_over(struct controller *c, struct live_pool *p)
{
	for (size_t i = 0; i < c->fleet.former_count; i++) {
		const struct live_pool *f = &c->fleet.former_pools[i];
		if (strcmp(f->key, p->key) != 0)
			continue;
		memcpy(p->stages, f->stages, sizeof p->stages);
		p->timeouts = f->timeouts;
		p->timeouts.in_a_row = 0;
		p->change = f->change;
		p->told = f->told;
		p->told.has_size = f->told.has_size && c->fleet.former_term == c->leader.term;
		p->signals.server = f->signals.server;
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
	pool_signals_open(c, pool);
	carry_over(c, p);
}

/* What was kept of the fleet before. */
static void forget_former(struct controller *c)
{
	free(c->fleet.former_pools);
	c->fleet.former_pools = NULL;
	c->fleet.former_count = 0;
}

/*
 * Two Preheats on one account must not take each other's tokens for their own, nor one its own of before: of the
 * cluster, the lease, this replica and its term, and random bits.
 */
static void begin_life(struct controller *c)
{
	const struct controller_settings *s = &c->settings;
	CLEANUP(buf_release) struct buf told = { 0 };
	char text[SHA256_TEXT], uuid[37];

	uuid_write(uuid);
	buf_printf(&told, "%s %s/%s %s %lld %s", api_server(c->api), s->namespace ? s->namespace : "",
		   s->lease ? s->lease : "", s->identity ? s->identity : "", (long long)c->leader.term, uuid);
	struct sha256 digest = sha256_of(told.text, told.len);
	snprintf(c->context.life, sizeof c->context.life, "%.16s", sha256_text(&digest, text));
}

bool fleet_open(struct controller *c, struct error *e)
{
	const struct fleet_spec *fleet = fleet_of(c);

	c->context = (struct group_context){ .loop = c->loop,
					     .clock = c->clock,
					     .history = c->history,
					     .fleet = fleet,
					     .starts = &c->starts,
					     .term = c->leader.term,
					     .node_stages = start_progress_stages,
					     .unready = start_progress_unready,
					     .runs_work = works,
					     .may_act = may_act,
					     .changed = act_soon,
					     .called = called,
					     .refused = fallback_note,
					     .affordable = cost_budget_affordable,
					     .user = c };
	begin_life(c);
	c->recording.over = 0; /* those that are over tell it again */
	c->starts.heard = heard;
	c->starts.user = c;
	c->pools = xcalloc(fleet->pool_count + 1, sizeof *c->pools);
	c->groups = xcalloc(fleet->group_count + 1, sizeof *c->groups);
	c->publishing.pools = xcalloc(fleet->pool_count + 1, sizeof *c->publishing.pools);
	c->publishing.groups = xcalloc(fleet->group_count + 1, sizeof *c->publishing.groups);
	for (size_t i = 0; i < fleet->pool_count; i++)
		open_pool(c, i);
	forget_former(c);
	for (size_t i = 0; i < fleet->group_count; i++)
		if (!open_group(c, i, e))
			return false;
	return true;
}

void fleet_close(struct controller *c)
{
	if (c->is_stopping)
		forget_former(c);
	if (!c->pools)
		return;
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++) {
		pool_signals_close(&c->pools[i].signals);
		buf_release(&c->pools[i].placeholder.pod);
		buf_release(&c->pools[i].placeholder.body);
		buf_release(&c->pools[i].buffer.body);
	}
	for (size_t i = 0; i < fleet_of(c)->group_count; i++)
		node_group_close(&c->groups[i]);
	for (size_t i = 0; i < PROVIDER_COUNT; i++)
		if (c->fleet.providers[i])
			provider_find(provider_name((enum provider_choice)i))->close(c->fleet.providers[i]);
	memset(c->fleet.providers, 0, sizeof c->fleet.providers);
	forget_former(c);
	c->fleet.former_pools = c->pools;
	c->fleet.former_count = fleet_of(c)->pool_count;
	c->fleet.former_term = c->leader.term;
	free(c->groups);
	free(c->publishing.pools);
	free(c->publishing.groups);
	c->pools = NULL;
	c->groups = NULL;
	c->publishing.pools = NULL;
	c->publishing.groups = NULL;
	c->published.snapshot = NULL;
	c->published.plan = NULL;
	starts_release(&c->starts);
	c->idle.count = 0;
	c->has_decided = false;
}
