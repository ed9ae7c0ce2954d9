#include "controller/loop/headroom.h"

#include "base/json.h"
#include "controller/cluster/intern.h"
#include "controller/loop/controller_state.h"
#include "controller/loop/objects.h"
#include "controller/loop/pod_template.h"
#include "controller/loop/watch_sync.h"

#include <stdio.h>
#include <string.h>

/* Of the world: the workload, its image or its place, or what we made, may have been changed by somebody. */
static const millis LOOK_AGAIN = MINUTE, AGAIN = 10 * SECOND, LEFT_EVERY = 10 * SECOND;

static bool is_old(const struct controller *c, millis at)
{
	millis age = clock_real(c->clock, LOOK_AGAIN);

	return loop_now(c->loop) - at > (age > SECOND ? age : SECOND);
}

/* --- placeholders --- */

void keeper_label(const struct controller *c, char value[KEEPER_MAX + 1])
{
	snprintf(value, KEEPER_MAX + 1, "%.30s.%.30s", c->settings.namespace ? c->settings.namespace : "default",
		 c->settings.lease ? c->settings.lease : "preheat");
}

/* Of the Deployment. */
static void placeholder_name(const char *pool, char name[HEADROOM_NAME_MAX + 1])
{
	snprintf(name, HEADROOM_NAME_MAX + 1, "%.200s-placeholder", pool);
}

static void want_placeholders(struct controller *c, size_t pool, int64_t replicas)
{
	struct placeholder *h = &c->pools[pool]->placeholder;
	const struct pool_view *v = &c->pools[pool]->view;
	bool is_ours = fleet_of(c)->pools[pool].mode == MODE_ACT,
	     has_some = v->placeholders + v->pending_placeholders > 0;

	if (is_ours && is_held(c, pool)) {
		h->wanted = replicas > 0 ? replicas : 0;
		h->is_stale |= h->is > 0 && !has_some;
	} else {
		h->wanted = is_ours && has_some ? 0 : ABSENT; /* made while the pool was warmed so */
	}
}

/* The container that asks for GPUs, else the first. */
static const char *serving_image(const struct pod_template *w, const char *resource)
{
	const struct template_container *items = w->containers.items;

	for (size_t i = 0; i < w->containers.count; i++)
		for (size_t k = 0; k < items[i].limits.count; k++)
			if (!strcmp(items[i].limits.pairs[k].key, resource))
				return items[i].image;
	return w->containers.count ? items[0].image : NULL;
}

static void write_gpus(const struct workload_text *t, struct buf *out)
{
	static const char *const parts[] = { "{\"requests\":{", "\"},\"limits\":{" };

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		buf_text(out, parts[i]);
		json_write_text(t->gpu_resource, out);
		buf_printf(out, ":\"%lld", (long long)t->gpus_per_replica);
	}
	buf_text(out, "\"}}");
}

/* What stays the same whatever the number: written once, used until it is read again. */
static bool write_pod(const struct controller *c, size_t pool, const struct pod_template *w, struct buf *out)
{
	const struct workload_text *t = &c->manifest.pools[pool].spec.workload;
	const char *image = serving_image(w, t->gpu_resource);

	if (!image)
		return false;
	buf_text(out, "{\"priorityClassName\":\"preheat-placeholder\",\"terminationGracePeriodSeconds\":0,"
		      "\"automountServiceAccountToken\":false,\"enableServiceLinks\":false,"
		      "\"containers\":[{\"name\":\"placeholder\",\"command\":[\"sleep\",\"infinity\"],\"image\":");
	json_write_text(image, out);
	buf_text(out, ",\"resources\":");
	write_gpus(t, out);
	buf_text(out, "}]");
	pod_template_write("nodeSelector", &w->node_selector, out);
	pod_template_write("tolerations", &w->tolerations, out);
	pod_template_write("affinity", &w->affinity, out);
	pod_template_write("imagePullSecrets", &w->pull_secrets, out);
	pod_template_write("runtimeClassName", &w->runtime_class, out);
	buf_text(out, "}");
	return buf_ok(out);
}

static void failed(struct live_pool *p, millis *quiet_until, const struct error *why, const char *what)
{
	struct controller *c = p->controller;

	*quiet_until = loop_now(c->loop) + AGAIN;
	if (why->kind != ERROR_CANCELLED)
		log_warn(what, LOG_S("pool", fleet_of(c)->pools[p->index].name), LOG_E(why), LOG_END);
}

static void workload_read(struct object_call *call)
{
	struct live_pool *p = call->user;
	struct placeholder *h = &p->placeholder;
	struct pod_template w;
	struct arena a = { 0 };
	struct error e = call->error;

	h->is_calling = false;
	if (e.kind == ERROR_NONE) {
		struct buf pod = { 0 };
		if (pod_template_read(call, &a, &w, &e) && !write_pod(p->controller, p->index, &w, &pod))
			error_set(&e, ERROR_INVALID, "the workload has no container with an image");
		/* Another image, or another place: those that there are are rolled over to it. */
		h->is_stale |= h->pod.len != pod.len || (pod.len && memcmp(h->pod.text, pod.text, pod.len) != 0);
		buf_release(&h->pod);
		h->pod = pod;
		h->read_at = loop_now(p->controller->loop);
	}
	arena_release(&a);
	if (e.kind != ERROR_NONE) {
		buf_clear(&h->pod);
		failed(p, &h->quiet_until, &e, "placeholder-template-not-read");
	}
	act_soon(p->controller);
}

static void applied(struct object_call *call)
{
	struct live_pool *p = call->user;
	struct placeholder *h = &p->placeholder;

	h->is_calling = false;
	if (call->error.kind != ERROR_NONE) {
		h->is_stale = true; /* it may have come to pass all the same */
		failed(p, &h->quiet_until, &call->error, "placeholders-not-applied");
	} else {
		log_info("placeholders-applied", LOG_S("pool", fleet_of(p->controller)->pools[p->index].name),
			 LOG_I("to", h->asked), LOG_END);
		h->is = h->asked;
	}
	act_soon(p->controller);
}

static void write_body(const struct controller *c, struct live_pool *p)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[p->index];
	struct placeholder *h = &p->placeholder;
	char keeper[KEEPER_MAX + 1];

	keeper_label(c, keeper);
	buf_clear(&h->body);
	if (!is_held(c, p->index)) {
		buf_text(&h->body, "{\"spec\":{\"replicas\":0}}");
		return;
	}
	buf_printf(&h->body,
		   "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"%s\","
		   "\"namespace\":\"%s\",\"labels\":{\"app.kubernetes.io/managed-by\":\"preheat\"}",
		   h->name, spec->namespace);
	objects_write_owner(c, spec, &h->body);
	buf_printf(
		&h->body,
		"},\"spec\":{\"replicas\":%lld,\"selector\":{\"matchLabels\":{\"preheat.dev/placeholder\":\"%s\"}},"
		"\"template\":{\"metadata\":{\"labels\":{\"preheat.dev/placeholder\":\"%s\",\"" KEEPER_LABEL
		"\":\"%s\"},\"annotations\":{\"preheat.dev/ignore\":\"gpu-needs-pool, cost-labels\"}},\"spec\":%s}}}",
		(long long)h->asked, spec->name, spec->name, keeper, h->pod.text);
}

static void send(struct controller *c, struct live_pool *p)
{
	struct placeholder *h = &p->placeholder;
	const struct pool_spec *spec = &fleet_of(c)->pools[p->index];

	placeholder_name(spec->name, h->name);
	h->asked = h->wanted;
	h->is_stale = false;
	write_body(c, p);
	h->is_calling = true;
	h->call = (struct object_call){ .verb = is_held(c, p->index) ? OBJECT_APPLY : OBJECT_PATCH,
					.object = { .api_version = "apps/v1",
						    .plural = "deployments",
						    .name_space = spec->namespace,
						    .name = h->name },
					.body = h->body.text,
					.done = applied,
					.user = p };
	object_start(c->api, &h->call);
}

static void drive_placeholders(struct controller *c, struct live_pool *p)
{
	struct placeholder *h = &p->placeholder;

	if (h->is_calling || p->is_leaving || h->wanted == ABSENT || loop_now(c->loop) < h->quiet_until)
		return;
	if (is_held(c, p->index) && (!h->pod.len || is_old(c, h->read_at))) {
		h->is_calling = true;
		pod_template_get(c, p->index, &h->call, workload_read, p);
	} else if (h->is != h->wanted || h->is_stale) {
		send(c, p);
	}
}

/* --- placeholders of a pool that no manifest and no WarmPool tells of any more --- */

static bool is_known_pool(const struct controller *c, const char *namespace, const char *name)
{
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		if (!strcmp(fleet_of(c)->pools[i].name, name) && !strcmp(fleet_of(c)->pools[i].namespace, namespace))
			return true;
	return objects_named(c, namespace, name) != NULL;
}

/* Another controller of the cluster has pools that we do not know. */
static bool is_ours(const struct controller *c, const struct pod *p)
{
	const char *told = label_set_get(p->labels, KEEPER_LABEL);
	char keeper[KEEPER_MAX + 1];

	keeper_label(c, keeper);
	return told && !strcmp(told, keeper);
}

static const struct pod *find_on(const struct controller *c, const struct node *n, struct arena *a)
{
	size_t count;
	const struct pod **pods = cluster_node_pods(c->cluster, n, a, &count);

	for (size_t i = 0; i < count; i++) {
		const struct pod *p = pods[i];
		if (p->is_placeholder && is_ours(c, p) && p->state != POD_TERMINATING && p->state != POD_FINISHED &&
		    !is_known_pool(c, p->namespace, label_set_get(p->labels, "preheat.dev/placeholder")))
			return p;
	}
	return NULL;
}

static const struct pod *find(const struct controller *c, struct arena *a)
{
	size_t count;
	const struct node **nodes = cluster_nodes(c->cluster, -1, a, &count);
	const struct pod *found = NULL;

	for (size_t i = 0; i < count && !found; i++)
		if (nodes[i]->placeholder_count > 0)
			found = find_on(c, nodes[i], a);
	return found;
}

static void ended(struct object_call *call)
{
	struct left_placeholders *l = call->user;
	struct controller *c = l->controller;

	l->is_calling = false;
	if (call->error.kind == ERROR_NONE)
		log_info("placeholders-ended", LOG_S("namespace", l->namespace), LOG_S("deployment", l->name),
			 LOG_S("why", "their pool is in no manifest any more"), LOG_END);
	else if (call->error.kind != ERROR_CANCELLED && !l->has_complained)
		log_warn("placeholders-not-ended", LOG_S("namespace", l->namespace), LOG_S("deployment", l->name),
			 LOG_E(&call->error), LOG_END);
	l->has_complained = call->error.kind != ERROR_NONE && call->error.kind != ERROR_CANCELLED;
	act_soon(c);
}

/* Scales those down whose pool neither the manifest nor a WarmPool tells of. */
static void end_left(struct controller *c)
{
	CLEANUP(arena_release) struct arena a = { 0 };

	if (c->left.is_calling || loop_now(c->loop) < c->left.quiet_until || !cluster_is_fresh(c))
		return;
	millis wait = clock_real(c->clock, LEFT_EVERY);
	c->left.quiet_until = loop_now(c->loop) + (wait > SECOND ? wait : SECOND);
	const struct pod *p = find(c, &a);
	if (p) {
		struct left_placeholders *l = &c->left;
		l->controller = c;
		snprintf(l->namespace, sizeof l->namespace, "%s", p->namespace);
		placeholder_name(label_set_get(p->labels, "preheat.dev/placeholder"), l->name);
		l->is_calling = true;
		l->call = (struct object_call){ .verb = OBJECT_PATCH,
						.object = { .api_version = "apps/v1",
							    .plural = "deployments",
							    .name_space = l->namespace,
							    .name = l->name },
						.body = "{\"spec\":{\"replicas\":0}}",
						.done = ended,
						.user = l };
		object_start(c->api, &l->call);
	}
}

/* --- CapacityBuffers --- */

/* Newest first; autoscalers of today serve the one or the other. */
static const char *const versions[] = { "autoscaling.x-k8s.io/v1beta1", "autoscaling.x-k8s.io/v1alpha1" };

enum { VERSIONS = sizeof versions / sizeof *versions };

static void looked_up(struct plural_call *call)
{
	struct live_pool *p = call->user;
	struct buffer *b = &p->buffer;

	b->is_calling = false;
	b->is_found = call->error.kind == ERROR_NONE && call->plural;
	if (call->error.kind == ERROR_NOT_FOUND && b->version + 1 < VERSIONS) {
		b->version++;
	} else if (!b->is_found) {
		struct error e = call->error;
		if (e.kind == ERROR_NOT_FOUND)
			error_set(&e, ERROR_NOT_FOUND,
				  "the server knows no CapacityBuffer; do: switch it on at the autoscaler, or set "
				  "workload.warm to placeholders");
		b->version = 0;
		failed(p, &b->quiet_until, &e, "capacity-buffer-not-applied");
		events_tell_pool(p->controller, p->index,
				 (struct pool_event){ "CapacityBufferUnavailable", "Scale", true }, "%s", e.message);
	}
	act_soon(p->controller);
}

static void look_up(struct controller *c, struct live_pool *p)
{
	struct buffer *b = &p->buffer;

	b->is_calling = true;
	b->lookup = (struct plural_call){
		.api_version = versions[b->version], .kind = "CapacityBuffer", .done = looked_up, .user = p
	};
	plural_start(c->api, &b->lookup);
}

static void buffer_applied(struct object_call *call)
{
	struct live_pool *p = call->user;
	struct buffer *b = &p->buffer;

	b->is_calling = false;
	if (call->error.kind == ERROR_NONE) {
		if (b->is != b->asked)
			log_info("capacity-buffer-applied",
				 LOG_S("pool", fleet_of(p->controller)->pools[p->index].name), LOG_I("to", b->asked),
				 b->is == ABSENT ? LOG_END : LOG_I("from", b->is), LOG_END);
		b->is = b->asked;
		b->told_at = loop_now(p->controller->loop);
	} else {
		b->is = ABSENT; /* it may have come to pass all the same */
		b->is_found = call->error.kind != ERROR_NOT_FOUND;
		failed(p, &b->quiet_until, &call->error, "capacity-buffer-not-applied");
	}
	act_soon(p->controller);
}

static void write_buffer(const struct controller *c, struct live_pool *p)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[p->index];
	const struct target_text *t = &c->manifest.pools[p->index].spec.workload.target;
	struct buffer *b = &p->buffer;
	int group = (int)strcspn(t->api_version, "/");

	snprintf(b->name, sizeof b->name, "%.200s-preheat", spec->name);
	buf_clear(&b->body);
	buf_printf(
		&b->body,
		"{\"apiVersion\":\"%s\",\"kind\":\"CapacityBuffer\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\","
		"\"labels\":{\"app.kubernetes.io/managed-by\":\"preheat\"}",
		versions[b->version], b->name, spec->namespace);
	objects_write_owner(c, spec, &b->body);
	buf_printf(&b->body,
		   "},\"spec\":{\"provisioningStrategy\":\"buffer.x-k8s.io/active-capacity\",\"scalableRef\":{"
		   "\"apiGroup\":\"%.*s\",\"kind\":\"%s\",\"name\":",
		   group, t->api_version, t->kind);
	json_write_text(t->name, &b->body);
	buf_printf(&b->body, "},\"replicas\":%lld}}", (long long)b->asked);
}

static void apply(struct controller *c, struct live_pool *p)
{
	struct buffer *b = &p->buffer;

	b->asked = b->wanted;
	write_buffer(c, p);
	b->is_calling = true;
	b->call = (struct object_call){ .verb = OBJECT_APPLY,
					.object = { .api_version = versions[b->version],
						    .plural = "capacitybuffers",
						    .name_space = fleet_of(c)->pools[p->index].namespace,
						    .name = b->name },
					.body = b->body.text,
					.done = buffer_applied,
					.user = p };
	object_start(c->api, &b->call);
}

static void drive_buffer(struct controller *c, struct live_pool *p)
{
	struct buffer *b = &p->buffer;

	if (b->is_calling || p->is_leaving || b->wanted == ABSENT || loop_now(c->loop) < b->quiet_until)
		return;
	if (!b->is_found)
		look_up(c, p);
	else if (b->is != b->wanted || is_old(c, b->told_at))
		apply(c, p);
}

/* --- both --- */

/* What the manifest and the budget keep back. */
static bool is_kept_back(enum limit by)
{
	return by == LIMIT_MAX || by == LIMIT_BUDGET || by == LIMIT_RATE || by == LIMIT_GROWTH ||
	       by == LIMIT_RESERVATION;
}

/* Nodes that do not come are decided no more, and stay asked for: who brings them tries again by itself, and would give
 * up what it began if it were asked for less. */
static int64_t asked_of_others(const struct controller *c, size_t pool, int64_t decided)
{
	const struct pool_decision *d = pool < c->plan.pool_count ? &c->plan.pools[pool].decision : NULL;

	if (!d || is_kept_back((enum limit)d->held_by))
		return decided;
	int64_t wished = d->wished > d->floor ? d->wished : d->floor;
	return wished > decided ? wished : decided;
}

static void want(struct controller *c, size_t pool, int64_t decided)
{
	const struct pool_view *v = &c->pools[pool]->view;
	int64_t served = v->ready + v->starting + v->pending, room = asked_of_others(c, pool, decided) - served;
	bool is_driven = is_buffered(c, pool) && fleet_of(c)->pools[pool].mode == MODE_ACT;

	want_placeholders(c, pool, decided - served);
	c->pools[pool]->buffer.wanted = !is_driven ? ABSENT : room > 0 ? room : 0;
}

static void drive(struct controller *c)
{
	if (c->context.is_barred)
		return;
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		drive_placeholders(c, c->pools[i]);
	end_left(c);
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		drive_buffer(c, c->pools[i]);
}

static void leave(struct controller *c, size_t pool)
{
	struct live_pool *p = c->pools[pool];

	if (p->placeholder.is_calling)
		api_cancel(&p->placeholder.call.call);
	if (p->buffer.is_calling) {
		api_cancel(&p->buffer.lookup.call);
		api_cancel(&p->buffer.call.call);
	}
}

static bool has_left(const struct controller *c, size_t pool)
{
	return !c->pools[pool]->placeholder.is_calling && !c->pools[pool]->buffer.is_calling;
}

static void stop(struct controller *c)
{
	for (size_t i = 0; c->pools && i < fleet_of(c)->pool_count; i++)
		leave(c, i);
	if (c->left.is_calling)
		api_cancel(&c->left.call.call);
}

static bool is_idle(const struct controller *c)
{
	for (size_t i = 0; c->pools && i < fleet_of(c)->pool_count; i++)
		if (!has_left(c, i))
			return false;
	return !c->left.is_calling;
}

const struct actor headroom_actor = { .needs_plan = true,
				      .want = want,
				      .drive = drive,
				      .stop = stop,
				      .is_idle = is_idle,
				      .leave = leave,
				      .has_left = has_left };
