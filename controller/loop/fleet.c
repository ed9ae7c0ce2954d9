#include "controller/loop/fleet.h"

#include "base/alloc.h"
#include "base/fnv1a.h"
#include "base/json.h"
#include "base/quantity.h"
#include "base/signature.h"
#include "controller/cluster/api.h"
#include "controller/loop/controller_state.h"
#include "controller/loop/trace.h"
#include "controller/manifest/group_nodes.h"
#include "providers/block.h"
#include "state/launch.h"

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

/* Of a group that names no cloud, which is only recorded: as one of a trial. */
static struct schema_label group_mark(const struct manifest *m, size_t group)
{
	struct schema_label l = manifest_group_label(m, group);

	if (!*l.value)
		l = (struct schema_label){ provider_block(PROVIDER_simulated)->label.key, m->fleet.groups[group].name };
	return l;
}

static struct cluster_label mark_of(const struct controller *c, size_t group)
{
	struct schema_label l = group_mark(&c->manifest, group);

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
				      .group_count = spec->group_count,
				      .share = pool_is_in_share(spec) ? spec->share : NULL,
				      .port = c->manifest.pools[pool].spec.signals.scrape.port,
				      .is_unpriced = spec->is_unpriced,
				      .takes_any = takes_any(c, pool) };
}

/* Until a node of the group was seen: a machine has no more than its type says. */
static void tell_type(struct cluster_group *g, const struct provider_block *block, const char *type)
{
	for (size_t i = 0; i < block->instance_count; i++) {
		const struct instance_type *t = &block->instances[i];
		if (strcmp(t->name, type) != 0)
			continue;
		g->cpu_milli = t->vcpus * 1000;
		g->memory_milli = (t->memory_gib << 30) * 1000;
	}
}

static void tell_devices(struct cluster_group *g, const struct schema_labels *resources, struct arena *a)
{
	struct cluster_device *devices = arena_array(a, struct cluster_device, resources->count);

	g->device_count = 0;
	for (size_t i = 0; i < resources->count; i++) {
		const struct schema_label *r = &resources->items[i];
		struct cluster_device *device = &devices[g->device_count];
		device->resource = r->key;
		g->device_count += whole_parse(r->value, strlen(r->value), &device->count);
	}
	g->devices = devices;
}

static void tell_labels(struct cluster_group *g, const struct group_text *text, struct arena *a)
{
	const struct schema_labels known = group_node_labels(text, a);
	struct cluster_label *labels = arena_array(a, struct cluster_label, known.count);

	for (size_t i = 0; i < known.count; i++)
		labels[i] = (struct cluster_label){ known.items[i].key, known.items[i].value };
	g->labels = labels;
	g->label_count = known.count;
}

static void tell_taints(struct cluster_group *g, const struct group_text *text, struct arena *a)
{
	const struct block_taint *known = group_node_taints(text, a, &g->taint_count);
	const struct taint_text *written = text->startup_taints.items;
	struct cluster_taint *taints = arena_array(a, struct cluster_taint, g->taint_count);
	struct cluster_taint *startup = arena_array(a, struct cluster_taint, text->startup_taints.count);

	for (size_t i = 0; i < g->taint_count; i++)
		taints[i] = (struct cluster_taint){ known[i].key, known[i].value, known[i].effect };
	for (size_t i = 0; i < text->startup_taints.count; i++)
		startup[i] =
			(struct cluster_taint){ written[i].key, written[i].value, taint_effects[written[i].effect] };
	g->taints = taints;
	g->startup_taints = startup;
	g->startup_taint_count = text->startup_taints.count;
}

/* NULL until the group was looked at. */
static const struct node_promise *promise_of(const struct controller *c, size_t group)
{
	const struct node_group *g = c->groups ? c->groups[group] : NULL;

	return g && g->is_known ? &g->seen.promise : NULL;
}

/* Each text with its NUL. */
static uint64_t add_text(uint64_t hash, const char *text)
{
	return fnv1a_bytes(hash, text, strlen(text) + 1);
}

static uint64_t add_pairs(uint64_t hash, const struct promised_pair *pairs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		hash = add_text(add_text(hash, pairs[i].key), pairs[i].value);
	return hash;
}

static uint64_t hash_of(const struct controller *c)
{
	uint64_t hash = FNV1A_START;

	for (size_t i = 0; i < fleet_of(c)->group_count; i++) {
		const struct node_promise *p = promise_of(c, i);
		if (!p || p->label_count + p->taint_count + p->resource_count == 0)
			continue;
		hash = fnv1a_bytes(hash, &i, sizeof i);
		hash = add_text(add_pairs(hash, p->labels, p->label_count), "taints");
		for (size_t k = 0; k < p->taint_count; k++)
			hash = add_text(add_text(add_text(hash, p->taints[k].key), p->taints[k].value),
					p->taints[k].effect);
		hash = add_text(add_pairs(add_text(hash, "resources"), p->resources, p->resource_count), "");
	}
	return hash;
}

void fleet_follow_promises(struct controller *c)
{
	if (hash_of(c) != c->fleet.promises)
		fleet_tell_cluster(c);
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
						    .price = g->price_per_hour,
						    .drives_marked_nodes = block->drives_marked_nodes,
						    .promise = promise_of(c, i) };
		tell_type(&groups[i], block, g->instance_type);
		tell_devices(&groups[i], &c->manifest.groups[i].resources, &a);
		tell_labels(&groups[i], &c->manifest.groups[i], &a);
		tell_taints(&groups[i], &c->manifest.groups[i], &a);
	}
	cluster_set_fleet(c->cluster, pools, fleet->pool_count, groups, fleet->group_count);
	c->fleet.promises = hash_of(c);
}

bool controller_accepts(const struct manifest *m, bool only_records, struct findings *f, struct error *e)
{
	for (size_t i = 0; i < m->fleet.group_count && !only_records; i++) {
		const struct group_spec *g = &m->fleet.groups[i];
		if (!provider_find(g->provider))
			return error_set(
				e, ERROR_INVALID,
				"node group %s: found provider '%s', which this program can only simulate; leave the "
				"group out, or wait for a version that drives it",
				g->name, g->provider);
	}
	return manifest_check_live(m, !only_records, f, e);
}

/* --- opening and closing --- */

const char *fleet_group_settings(const struct controller *c, const struct manifest *m, size_t group, struct arena *a)
{
	struct schema_label mark = group_mark(m, group);
	CLEANUP(buf_release) struct buf text = { 0 };

	if (!c->settings.only_records)
		return m->fleet.groups[group].settings;
	buf_text(&text, "{\"label\":");
	json_write_text(mark.key, &text);
	buf_text(&text, ",\"value\":");
	json_write_text(mark.value, &text);
	buf_text(&text, "}");
	return arena_strdup(a, text.text, text.len);
}

bool fleet_open_group(struct controller *c, size_t group, struct error *e)
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
					     fleet_group_settings(c, &c->manifest, group, &c->fleet.manifest_arena) };
	c->groups[group] = xnew(struct node_group);
	node_group_open(c->groups[group], &c->context, group, &access);
	return true;
}

static void called(void *user, const struct node_group *g, const struct provider_call *call, millis from)
{
	struct controller *c = user;

	trace_call(c, g, call, from);
	if (call->verb != PROVIDER_GROW || call->error.kind != ERROR_NONE)
		return;
	c->has_orders = true;
	act_soon(c);
}

static void heard(void *user, const struct start *s, const struct event_input *event, millis at)
{
	trace_start(user, s, event, at);
}

static void unwanted(void *user, size_t group, const char *machine)
{
	machine_cancel(user, group, machine, PROVIDER_CANCEL);
}

static bool may_act(void *user)
{
	return leader_may_act(user) && !tick_stood_still(user);
}

static bool works(void *user, size_t pool)
{
	return runs_work(user, pool);
}

/* A pool that was there before goes on with what it has told; after another one led it tells its size anew. */
static void carry_over(struct live_pool *p, const struct live_pool *f, bool is_same_term)
{
	memcpy(p->stages, f->stages, sizeof p->stages);
	p->timeouts = f->timeouts;
	p->timeouts.in_a_row = 0;
	p->change = f->change;
	p->told = f->told;
	p->told.has_size = f->told.has_size && is_same_term;
	p->signals.server = f->signals.server;
	workload_scale_carry_over(&p->scale, &f->scale, is_same_term);
}

void fleet_open_pool(struct controller *c, size_t pool, const struct live_pool *former, bool is_same_term)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	struct live_pool *p = xnew(struct live_pool);

	c->pools[pool] = p;
	/* All else is zero, and of the system until it is written: most of it is for what servers and writes say. */
	p->index = pool;
	p->controller = c;
	p->is_blind = p->is_new = true;
	snprintf(p->key, sizeof p->key, "%s/%s", spec->namespace, spec->name);
	p->scale.wanted = p->scale.is = ABSENT;
	p->placeholder.wanted = p->placeholder.is = ABSENT;
	p->buffer.wanted = p->buffer.is = ABSENT;
	pool_signals_open(c, pool);
	if (former)
		carry_over(p, former, is_same_term);
}

void fleet_close_pool(struct controller *c, struct live_pool *p)
{
	pool_signals_close(c, p);
	buf_release(&p->placeholder.pod);
	buf_release(&p->placeholder.body);
	buf_release(&p->buffer.body);
	buf_release(&p->prefetch.template);
	buf_release(&p->prefetch.body);
}

static const struct live_pool *former_of(const struct controller *c, const struct pool_spec *spec)
{
	char key[sizeof c->pools[0]->key];

	snprintf(key, sizeof key, "%s/%s", spec->namespace, spec->name);
	for (size_t i = 0; i < c->fleet.former_count; i++)
		if (!strcmp(c->fleet.former_pools[i]->key, key))
			return c->fleet.former_pools[i];
	return NULL;
}

/* What was kept of the fleet before. */
static void forget_former(struct controller *c)
{
	for (size_t i = 0; i < c->fleet.former_count; i++)
		free(c->fleet.former_pools[i]);
	free(c->fleet.former_pools);
	c->fleet.former_pools = NULL;
	c->fleet.former_count = 0;
}

/* --- operations of an earlier life --- */

static struct node_group *group_of(const struct controller *c, const char *name)
{
	for (size_t i = 0; i < fleet_of(c)->group_count; i++)
		if (!strcmp(fleet_of(c)->groups[i].name, name))
			return c->groups[i];
	return NULL;
}

/* The last of a group is the one that the cloud may still work on. */
static bool is_last(const struct launch *open, size_t count, size_t i)
{
	for (size_t k = i + 1; k < count; k++)
		if (!strcmp(open[k].group, open[i].group))
			return false;
	return true;
}

/* Nothing was read of it in this life yet: what it knows of its writes is in the history alone. */
static bool is_new(const struct node_group *g)
{
	return !g->is_known && !g->is_looking;
}

enum { RECALLED_MOST = 500 };
/* A machine that comes longer after its purchase than that is taken for somebody's, and not called off. */
/* Others' clocks are ahead of ours, or ours was put right: what was asked for later than now was asked for just now. */
static const millis RECALLED = 10 * MINUTE, AHEAD_MOST = HOUR;

/* The cloud said no, so that nothing of it will ever show. What ends machines may have ended some before. */
static bool is_refused(const struct launch *l)
{
	return l->outcome && (l->verb == PROVIDER_GROW || l->verb == PROVIDER_STANDBY) &&
	       strcmp(l->outcome, "done") != 0 && strcmp(l->outcome, LAUNCH_PARTLY) != 0 &&
	       strcmp(l->outcome, "adopted") != 0 && strcmp(l->outcome, error_kind_name(ERROR_TIMEOUT)) != 0 &&
	       strcmp(l->outcome, error_kind_name(ERROR_UNAVAILABLE)) != 0;
}

/* It was tried until it ended, or until that life did, soon after its last tick: how long ago at least, as only the
 * first attempt has a time. */
static millis last_tried(const struct controller *c, const struct launch *l, millis now)
{
	millis lived = history_last_at(c->history) + LAG_MOST;
	millis last = l->outcome ? l->ended_at : l->asked_at > lived ? l->asked_at : lived;

	return now > last ? now - last : 0;
}

static void recall_write(struct controller *c, const struct launch *l)
{
	millis now = clock_now(c->clock), ago = last_tried(c, l, now);
	struct node_group *g = group_of(c, l->group);

	if (!g || !is_new(g) || is_refused(l))
		return;
	if (l->verb != PROVIDER_STANDBY)
		g->recalled_size = l->target;
	if (ago > LAG_MOST)
		return;
	node_group_note_accepted(g, &(struct accepted_call){ .verb = (enum provider_verb)l->verb,
							     .desired = l->target,
							     .ids = l->machines,
							     .id_count = l->machine_count,
							     .is_recalled = true,
							     .at = l->asked_at < now ? l->asked_at : now,
							     .mono = clock_mono(c->clock) - ago });
}

/* Writes of the last minutes that the cloud accepted, or may have, whoever asked: looks must show the latest of them,
 * and what is beyond their size is not ours. */
static bool recall_writes(struct controller *c, const struct launch *open, size_t open_count, struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	millis now = clock_now(c->clock), from = now - RECALLED;
	struct launch *found;
	size_t count;

	for (size_t i = 0; i < fleet_of(c)->group_count; i++)
		if (is_new(c->groups[i]))
			node_group_recall_contention(c->groups[i]);
	if (open_count && open[0].asked_at < from)
		from = open[0].asked_at; /* oldest first */
	if (!launch_find(c->history,
			 &(struct launch_filter){ .from = from, .to = now + AHEAD_MOST, .most = RECALLED_MOST }, &a,
			 &found, &count, e))
		return false;
	for (size_t i = 0; i < count; i++)
		recall_write(c, &found[i]);
	return true;
}

/* Purchases that were under way when somebody else, or we, stopped leading. What became of them shows in the group's
 * description, which is the truth; what still goes on is waited for. */
bool fleet_adopt_operations(struct controller *c, struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct launch *open;
	size_t count;
	bool ok = launch_open_ones(c->history, &a, &open, &count, e) && recall_writes(c, open, count, e);

	for (size_t i = 0; ok && i < count; i++) {
		struct node_group *g = group_of(c, open[i].group);
		if (g && !is_new(g))
			continue; /* its own */
		bool goes_on = g && open[i].operation[0] && is_last(open, count, i);
		millis now = clock_now(c->clock), began = open[i].asked_at < now ? open[i].asked_at : now;
		log_info("intent-found", LOG_S("operation", open[i].token), LOG_S("group", open[i].group),
			 LOG_I("target", open[i].target), LOG_B("goes_on", goes_on), LOG_END);
		if (goes_on)
			node_group_resume(g, open[i].token, open[i].operation, began);
		else
			ok = launch_end(c->history, open[i].token, "adopted", clock_now(c->clock), e);
	}
	return ok;
}

static bool has_joined(void *user, const char *provider_id)
{
	const struct controller *c = user;
	const struct node *n = cluster_node_by_machine(c->cluster, provider_id);

	return n && n->is_known && !n->is_leaving && !drain_is_under_way(c, n->name);
}

/*
 * Two Preheats on one account must not take each other's tokens for their own, nor one its own of before: of the
 * cluster, the lease, this replica and its term, and random bits.
 */
void fleet_begin_life(struct controller *c)
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
					     .list_lags = start_progress_list_lags,
					     .has_joined = has_joined,
					     .runs_work = works,
					     .unwanted = unwanted,
					     .may_act = may_act,
					     .seen = interruptions_note,
					     .changed = act_soon,
					     .called = called,
					     .refused = fallback_note,
					     .affordable = cost_budget_affordable,
					     .user = c };
	fleet_begin_life(c);
	c->recording.over = 0; /* those that are over tell it again */
	c->starts.heard = heard;
	c->starts.user = c;
	c->pools = xcalloc(fleet->pool_count + 1, sizeof(void *));
	c->groups = xcalloc(fleet->group_count + 1, sizeof(void *));
	publish_make_room(c);
	for (size_t i = 0; i < fleet->pool_count; i++)
		fleet_open_pool(c, i, former_of(c, &fleet->pools[i]), c->fleet.former_term == c->leader.term);
	forget_former(c);
	for (size_t i = 0; i < fleet->group_count; i++)
		if (!fleet_open_group(c, i, e))
			return false;
	return true;
}

void fleet_tell_left(const struct group_spec *left, const char *why)
{
	log_warn("group-left-as-it-is", LOG_S("group", left->name), LOG_S("provider", left->provider),
		 LOG_S("why", why), LOG_END);
}

void fleet_leave_former(struct controller *c)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	CLEANUP(findings_release) struct findings findings = { 0 };
	struct manifest was = { 0 };
	int64_t last = history_next_tick(c->history) - 1;
	const char *text;
	struct error e = { 0 };

	if (last < 0)
		return;
	if (!history_manifest(c->history, last, &a, &text, &e) ||
	    !manifest_load_text("manifest", text, &a, &was, &findings, &e)) {
		log_warn("former-groups-unknown", LOG_E(&e), LOG_END);
		return;
	}
	for (size_t i = 0; i < was.fleet.group_count; i++) {
		const struct group_spec *left = &was.fleet.groups[i];
		const struct node_group *g = group_of(c, left->name);
		if (group_is_acted_on(&was.fleet, i) && (!g || strcmp(group_spec_of(g)->provider, left->provider) != 0))
			fleet_tell_left(left, "its manifest went while no controller ran: what was protected from "
					      "scale-in there stays so until somebody lifts it");
	}
}

void fleet_forget_manifests(struct controller *c, millis before)
{
	struct former_manifest **at = &c->fleet.former_manifests;

	while (*at) {
		struct former_manifest *m = *at;
		if (m->since >= before) {
			at = &m->next;
			continue;
		}
		*at = m->next;
		arena_release(&m->arena);
		free(m);
	}
}

void fleet_close(struct controller *c)
{
	if (c->is_stopping)
		forget_former(c);
	if (!c->pools)
		return;
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		fleet_close_pool(c, c->pools[i]);
	for (size_t i = 0; i < fleet_of(c)->group_count && c->groups[i]; i++) {
		node_group_close(c->groups[i]);
		free(c->groups[i]);
	}
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
	c->idle.count = c->consolidation.movable.count = 0;
	c->consolidation.node[0] = '\0';
	c->has_decided = false;
	fleet_forget_manifests(c, INT64_MAX);
}
