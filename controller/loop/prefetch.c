#include "controller/loop/prefetch.h"

#include "base/fnv1a.h"
#include "base/json.h"
#include "controller/loop/controller_state.h"
#include "controller/loop/objects.h"
#include "controller/loop/pod_template.h"
#include "controller/loop/watch_sync.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { IMAGES_MAX = 16 };

/* A pull that takes longer is left to the pod that serves; of the workload's template, which a rollout changes; for a
 * watch; after a failure, at first and at most. */
static const millis LIFE = 30 * MINUTE, LOOK_AGAIN = MINUTE, SEEN_WITHIN = 10 * SECOND, PAUSE = 10 * SECOND,
		    LONGEST_PAUSE = 5 * MINUTE;

/* --- which there ought to be --- */

static bool is_wished(const struct controller *c, size_t pool)
{
	return c->manifest.pools[pool].spec.workload.prefetch == PREFETCH_IMAGE && pool_may_act(c, pool);
}

static void name_of(const struct pool_spec *spec, const char *node, char name[PREFETCH_NAME_MAX + 1])
{
	uint64_t hash = fnv1a_text(fnv1a_text(FNV1A_START, spec->name), node);

	snprintf(name, PREFETCH_NAME_MAX + 1, "%.36s-prefetch-%016" PRIx64, spec->name, hash);
}

/* Of a start: its machine is a node whose GPUs are still to come. */
static const struct node *node_to_fill(const struct controller *c, const struct start *s)
{
	const struct node_group *g = c->groups[fleet_of(c)->pools[s->pool].groups[s->group]];
	const struct machine *m = s->machine[0] ? node_group_machine(g, s->machine) : NULL;
	const struct node *n = m ? cluster_node_by_machine(c->cluster, m->provider_id) : NULL;
	bool stays = n && n->is_known && !n->is_leaving && !n->is_draining && n->interruption == NODE_STAYS;

	return stays && !n->gpu_at ? n : NULL;
}

struct pods {
	const struct pod **items;
	size_t count;
};

static bool has(const struct pods *pods, const char *namespace, const char *name)
{
	for (size_t i = 0; i < pods->count; i++)
		if (!strcmp(pods->items[i]->name, name) && !strcmp(pods->items[i]->namespace, namespace))
			return true;
	return false;
}

/* The oldest start's node that has none of the pool; NULL: each has its own. */
static const struct node *node_without(const struct controller *c, size_t pool, const struct pods *pods)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	char name[PREFETCH_NAME_MAX + 1];

	for (size_t i = 0; i < c->starts.count; i++) {
		const struct node *n = c->starts.items[i].pool == pool ? node_to_fill(c, &c->starts.items[i]) : NULL;
		if (!n)
			continue;
		name_of(spec, n->name, name);
		if (!has(pods, spec->namespace, name))
			return n;
	}
	return NULL;
}

static bool is_of(const struct pod *p, const struct pool_spec *spec)
{
	return !strcmp(p->namespace, spec->namespace) && !strcmp(pod_label(p, PREFETCH_LABEL), spec->name);
}

static size_t pool_of(const struct controller *c, const struct pod *p)
{
	size_t i = 0;

	while (i < fleet_of(c)->pool_count && !is_of(p, &fleet_of(c)->pools[i]))
		i++;
	return i;
}

/* A replica of the pool has its images. */
static bool is_overtaken(const struct controller *c, const struct pod *p, size_t pool)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t count;
	const struct pod **pods = cluster_node_pods(c->cluster, p->node, &a, &count);

	for (size_t i = 0; i < count; i++)
		if (pods[i]->pool == (int)pool && (pods[i]->state == POD_STARTED || pods[i]->state == POD_READY))
			return true;
	return false;
}

/* A container that cannot be made, or ends at once, has its image. */
static bool has_pulled(const struct pod *p)
{
	return p->state == POD_FINISHED || p->trouble == POD_CONFIG;
}

static bool is_over(const struct controller *c, const struct pod *p)
{
	size_t pool = pool_of(c, p);

	if (pool == fleet_of(c)->pool_count || !is_wished(c, pool) ||
	    clock_now(c->clock) - p->created_at > LIFE + MINUTE)
		return true;
	return p->node && ((has_pulled(p) && p->node->gpu_at > 0) || is_overtaken(c, p, pool));
}

/* --- making one --- */

/* As Pod Security's level "restricted" wants it. NVIDIA's runtime is told to stay out: without a driver yet it would
 * keep every container of such an image from being made. */
static void write_container(const struct template_container *s, size_t number, struct buf *out)
{
	buf_printf(out, "%s{\"name\":\"image-%zu\",\"image\":", number ? "," : "", number);
	json_write_text(s->image, out);
	if (s->pull_policy) {
		buf_text(out, ",\"imagePullPolicy\":");
		json_write_text(s->pull_policy, out);
	}
	buf_text(out, ",\"command\":[\"true\"],\"env\":[{\"name\":\"NVIDIA_VISIBLE_DEVICES\",\"value\":\"void\"}],"
		      "\"resources\":{\"requests\":{\"cpu\":\"1m\",\"memory\":\"16Mi\"},\"limits\":{\"cpu\":\"100m\","
		      "\"memory\":\"64Mi\"}},\"securityContext\":{\"allowPrivilegeEscalation\":false,"
		      "\"readOnlyRootFilesystem\":true,\"capabilities\":{\"drop\":[\"ALL\"]}}}");
}

/* Each image once, those of the containers that serve before those of what runs ahead of them. */
static size_t write_containers(const struct pod_template *w, struct buf *out)
{
	const struct decoded_list *lists[] = { &w->containers, &w->init_containers };
	const char *images[IMAGES_MAX];
	size_t count = 0;

	for (size_t l = 0; l < 2; l++)
		for (size_t i = 0; i < lists[l]->count && count < IMAGES_MAX; i++) {
			const struct template_container *s = (const struct template_container *)lists[l]->items + i;
			bool is_new = s->image && *s->image && !(s->pull_policy && !strcmp(s->pull_policy, "Never"));
			for (size_t k = 0; k < count; k++)
				is_new &= is_new && strcmp(images[k], s->image) != 0;
			if (!is_new)
				continue;
			write_container(s, count, out);
			images[count++] = s->image;
		}
	return count;
}

static bool write_template(const struct pod_template *w, struct buf *out, struct error *e)
{
	buf_text(out, "\"containers\":[");
	if (!write_containers(w, out))
		return error_set(e, ERROR_INVALID, "the workload's template has no image that a kubelet pulls");
	buf_text(out, "]");
	pod_template_write("imagePullSecrets", &w->pull_secrets, out);
	pod_template_write("serviceAccountName", &w->service_account, out); /* it may bring pull secrets of its own */
	return buf_ok(out) || error_set(e, ERROR_INVALID, "the workload's template is too long");
}

static void failed(struct live_pool *p, const struct error *why, const char *what)
{
	struct controller *c = p->controller;
	struct prefetch *f = &p->prefetch;

	if (why->kind == ERROR_CANCELLED)
		return;
	f->pause = !f->pause ? PAUSE : 2 * f->pause < LONGEST_PAUSE ? 2 * f->pause : LONGEST_PAUSE;
	f->quiet_until = loop_now(c->loop) + f->pause;
	snprintf(f->why, sizeof f->why, "%.*s", (int)sizeof f->why - 1, why->message);
	log_warn(what, LOG_S("pool", fleet_of(c)->pools[p->index].name), LOG_E(why), LOG_END);
}

static void template_read(struct object_call *call)
{
	struct live_pool *p = call->user;
	struct prefetch *f = &p->prefetch;
	struct error e = call->error;

	f->is_calling = false;
	f->read_at = loop_now(p->controller->loop);
	buf_clear(&f->template);
	if (e.kind == ERROR_NONE) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct pod_template w;
		if (!pod_template_read(call, &a, &w, &e) || !write_template(&w, &f->template, &e))
			buf_clear(&f->template);
	}
	if (!f->template.len)
		failed(p, &e, "prefetch-template-not-read");
	act_soon(p->controller);
}

static void made(struct object_call *call)
{
	struct live_pool *p = call->user;
	struct prefetch *f = &p->prefetch;
	struct controller *c = p->controller;

	f->is_calling = false;
	if (call->error.kind == ERROR_NONE || call->error.kind == ERROR_CONFLICT) { /* it is there: ours, as its name */
		f->seen_until = loop_now(c->loop) + SEEN_WITHIN;
		f->pause = 0;
		f->why[0] = '\0';
		log_info("prefetch-begun", LOG_S("pool", fleet_of(c)->pools[p->index].name), LOG_S("pod", f->name),
			 LOG_END);
	} else {
		failed(p, &call->error, "prefetch-not-begun");
	}
	act_soon(c);
}

/* By way of the scheduler, as a DaemonSet's pods: whoever names the node itself may find it full. Only the labels of
 * ours, so that no Service, budget or ReplicaSet of the workload takes it for a replica. */
static void write_pod(const struct controller *c, struct live_pool *p, const struct node *n)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[p->index];
	struct prefetch *f = &p->prefetch;
	struct buf *out = &f->body;
	char keeper[KEEPER_MAX + 1];

	keeper_label(c, keeper);
	buf_clear(out);
	buf_printf(out,
		   "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\","
		   "\"labels\":{\"app.kubernetes.io/managed-by\":\"preheat\",\"" PREFETCH_LABEL "\":\"%s\","
		   "\"" KEEPER_LABEL "\":\"%s\"},\"annotations\":{\"preheat.dev/ignore\":\"general-pods\","
		   "\"cluster-autoscaler.kubernetes.io/safe-to-evict\":\"true\"}",
		   f->name, spec->namespace, spec->name, keeper);
	objects_write_owner(c, spec, out);
	buf_printf(out,
		   "},\"spec\":{\"priorityClassName\":\"preheat-placeholder\",\"restartPolicy\":\"Never\","
		   "\"activeDeadlineSeconds\":%lld,\"terminationGracePeriodSeconds\":0,"
		   "\"automountServiceAccountToken\":false,\"enableServiceLinks\":false,"
		   "\"securityContext\":{\"runAsNonRoot\":true,\"runAsUser\":65534,\"runAsGroup\":65534,"
		   "\"seccompProfile\":{\"type\":\"RuntimeDefault\"}},\"tolerations\":[{\"operator\":\"Exists\"}],"
		   "\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{"
		   "\"nodeSelectorTerms\":[{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"In\","
		   "\"values\":[",
		   (long long)(LIFE / SECOND));
	json_write_text(n->name, out);
	buf_printf(out, "]}]}]}}},%s}}", f->template.text);
}

static void make(struct controller *c, struct live_pool *p, const struct node *n)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[p->index];
	struct prefetch *f = &p->prefetch;

	name_of(spec, n->name, f->name);
	write_pod(c, p, n);
	f->is_calling = true;
	f->call = (struct object_call){
		.verb = OBJECT_CREATE,
		.object = { .api_version = "v1", .plural = "pods", .name_space = spec->namespace },
		.body = f->body.text,
		.done = made,
		.user = p
	};
	object_start(c->api, &f->call);
}

static void make_next(struct controller *c, struct live_pool *p, const struct pods *pods)
{
	struct prefetch *f = &p->prefetch;
	millis now = loop_now(c->loop);

	if (f->is_calling || !is_wished(c, p->index) || now < f->quiet_until)
		return;
	if (f->name[0] && now < f->seen_until && !has(pods, fleet_of(c)->pools[p->index].namespace, f->name))
		return;
	const struct node *n = node_without(c, p->index, pods);
	if (n && (!f->template.len || now - f->read_at > LOOK_AGAIN)) {
		f->is_calling = true;
		pod_template_get(c, p->index, &f->call, template_read, p);
	} else if (n) {
		make(c, p, n);
	}
}

/* --- taking one away --- */

static void ended(struct object_call *call)
{
	struct prefetch_end *end = call->user;
	struct controller *c = end->controller;

	end->is_calling = false;
	bool is_done = call->error.kind == ERROR_NONE || call->error.kind == ERROR_NOT_FOUND ||
		       call->error.kind == ERROR_CONFLICT; /* another of that name */
	end->quiet_until = is_done ? 0 : loop_now(c->loop) + PAUSE;
	if (!is_done && call->error.kind != ERROR_CANCELLED)
		log_warn("prefetch-not-ended", LOG_S("namespace", end->namespace), LOG_S("pod", end->name),
			 LOG_E(&call->error), LOG_END);
	act_soon(c);
}

static void end_pod(struct controller *c, const struct pod *p)
{
	struct prefetch_end *end = &c->prefetch_end;
	char uid[37];

	pod_uid_text(p, uid);
	end->controller = c;
	end->is_calling = true;
	snprintf(end->namespace, sizeof end->namespace, "%s", p->namespace);
	snprintf(end->name, sizeof end->name, "%s", p->name);
	snprintf(end->body, sizeof end->body, "{\"preconditions\":{\"uid\":\"%s\"}}", uid);
	end->call = (struct object_call){
		.verb = OBJECT_DELETE,
		.object = { .api_version = "v1", .plural = "pods", .name_space = end->namespace, .name = end->name },
		.body = end->body,
		.done = ended,
		.user = end
	};
	object_start(c->api, &end->call);
}

/* Of this controller's: another's has pools that we do not know. */
static bool is_kept_by(const struct pod *p, const char *keeper)
{
	const char *told = pod_label(p, KEEPER_LABEL);

	return told && !strcmp(told, keeper);
}

static void end_next(struct controller *c, const struct pods *pods)
{
	char keeper[KEEPER_MAX + 1];

	if (c->prefetch_end.is_calling || loop_now(c->loop) < c->prefetch_end.quiet_until)
		return;
	keeper_label(c, keeper);
	for (size_t i = 0; i < pods->count; i++)
		if (pods->items[i]->state != POD_TERMINATING && is_kept_by(pods->items[i], keeper) &&
		    is_over(c, pods->items[i])) {
			end_pod(c, pods->items[i]);
			return;
		}
}

/* --- */

static void drive(struct controller *c)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct pods pods;

	if (c->context.is_barred || !cluster_is_fresh(c))
		return;
	pods.items = cluster_prefetches(c->cluster, &a, &pods.count);
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		make_next(c, c->pools[i], &pods);
	end_next(c, &pods);
}

const char *prefetch_problem(const struct controller *c, size_t pool, struct arena *a)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	const char *why = c->pools[pool]->prefetch.why;
	CLEANUP(buf_release) struct buf text = { 0 };
	struct pods pods;

	if (!is_wished(c, pool))
		return NULL;
	pods.items = cluster_prefetches(c->cluster, a, &pods.count);
	for (size_t i = 0; i < pods.count && !text.len; i++)
		if (is_of(pods.items[i], spec) && pods.items[i]->state == POD_PULLING)
			buf_printf(&text, "pod %s pulls nothing: %s; check image, pull secrets and registry",
				   pods.items[i]->name, pods.items[i]->trouble_text);
	if (!text.len && *why)
		buf_printf(&text,
			   "no pod can be made that pulls images ahead: %s; bind role preheat-prefetch in namespace "
			   "%s, or set workload.prefetch: none",
			   why, spec->namespace);
	return text.len ? arena_strdup(a, text.text, text.len) : NULL;
}

static void leave(struct controller *c, size_t pool)
{
	if (c->pools[pool]->prefetch.is_calling)
		api_cancel(&c->pools[pool]->prefetch.call.call);
}

static bool has_left(const struct controller *c, size_t pool)
{
	return !c->pools[pool]->prefetch.is_calling;
}

static void stop(struct controller *c)
{
	for (size_t i = 0; c->pools && i < fleet_of(c)->pool_count; i++)
		leave(c, i);
	if (c->prefetch_end.is_calling)
		api_cancel(&c->prefetch_end.call.call);
}

static bool is_idle(const struct controller *c)
{
	for (size_t i = 0; c->pools && i < fleet_of(c)->pool_count; i++)
		if (!has_left(c, i))
			return false;
	return !c->prefetch_end.is_calling;
}

const struct actor prefetch_actor = {
	.drive = drive, .stop = stop, .is_idle = is_idle, .leave = leave, .has_left = has_left
};
