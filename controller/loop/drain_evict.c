#include "controller/loop/drain_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const FIRST_TO_GO = "-1000000";
enum { FIRST_TO_GO_COST = -1000000 };

static const millis EVICT_AGAIN = 5 * SECOND; /* of the world; Cluster Autoscaler: 10 s */

bool machine_is_wanted(const struct machine *m)
{
	return m->state == MACHINE_RUNNING || m->state == MACHINE_WAKING;
}

size_t drain_pool(const struct controller *c, const struct node *n)
{
	struct arena a = { 0 };
	size_t count, pool = 0;
	const struct pod **pods = cluster_node_pods(c->cluster, n, &a, &count);

	for (size_t i = 0; i < count; i++)
		if (pods[i]->pool >= 0)
			pool = (size_t)pods[i]->pool;
	arena_release(&a);
	return pool;
}

/* Once a drain: a budget that holds, or an API server that is away, is asked again and again. */
static void tell_failure(const struct pod_eviction *e, const struct eviction *call)
{
	if (call->error.kind == ERROR_NONE || call->error.kind == ERROR_CANCELLED ||
	    (e->drain && e->drain->has_complained))
		return;
	if (e->drain)
		e->drain->has_complained = true;
	log_warn("eviction-held", LOG_S("pod", e->pod), LOG_S("result", eviction_result_name(call->result)),
		 LOG_E(&call->error), LOG_END);
}

static void evicted(struct eviction *call)
{
	struct pod_eviction *e = call->user;
	struct controller *c = e->controller;
	struct drain *d = e->drain;

	e->is_busy = false;
	c->drains.evictions[call->result]++;
	tell_failure(e, call);
	if (d) {
		d->in_flight--;
		if (call->error.kind == ERROR_CANCELLED)
			d->step = DRAIN_OVER;
		else if (call->result != EVICTION_DONE && call->result != EVICTION_GONE)
			d->quiet_until = loop_now(c->loop) + (call->retry_after > 0 ? call->retry_after : EVICT_AGAIN);
	} else {
		for (struct pod_eviction **at = &c->drains.lone; *at; at = &(*at)->next)
			if (*at == e) {
				*at = e->next;
				break;
			}
		free(e);
	}
	act_soon(c);
}

static void start(struct pod_eviction *e, const char *namespace, const char *pod, const char *uid)
{
	snprintf(e->namespace, sizeof e->namespace, "%s", namespace);
	snprintf(e->pod, sizeof e->pod, "%s", pod);
	snprintf(e->uid, sizeof e->uid, "%s", uid);
	e->is_busy = true;
	e->call = (struct eviction){ .name_space = e->namespace,
				     .pod = e->pod,
				     .uid = e->uid,
				     .grace_seconds = -1,
				     .done = evicted,
				     .user = e };
	eviction_start(e->controller->api, &e->call);
}

void drain_evict_pod(struct controller *c, const char *namespace, const char *name, const char *uid)
{
	struct pod_eviction *e = calloc(1, sizeof *e);

	if (!e)
		abort();
	e->controller = c;
	e->next = c->drains.lone;
	c->drains.lone = e;
	start(e, namespace, name, uid);
}

/* The controller of the pod takes one away when we lower its number, perhaps before it has heard of the eviction: it
 * shall choose this one. */
static void marked(struct mark_call *call)
{
	struct pod_eviction *e = call->user;

	buf_release(&call->path);
	buf_release(&call->body);
	e->is_busy = false;
	e->drain->in_flight--;
	e->is_marked = true; /* or cannot be: the eviction goes on without */
	act_soon(e->controller);
}

static void mark(struct pod_eviction *e, const struct pod *p)
{
	snprintf(e->namespace, sizeof e->namespace, "%s", p->namespace);
	snprintf(e->pod, sizeof e->pod, "%s", p->name);
	pod_uid_text(p, e->uid);
	e->is_busy = true;
	e->cost = (struct verb_pair){ "controller.kubernetes.io/pod-deletion-cost", FIRST_TO_GO };
	e->mark = (struct mark_call){
		.object = { .api_version = "v1", .plural = "pods", .name_space = e->namespace, .name = e->pod },
		.annotations = &e->cost,
		.annotation_count = 1,
		.done = marked,
		.user = e
	};
	mark_start(e->controller->api, &e->mark);
}

static bool needs_mark(const struct pod_eviction *e, const struct pod *p, const char *uid)
{
	bool is_done = e->is_marked && !strcmp(e->uid, uid);

	return p->kind == POD_REPLICATED && p->deletion_cost > FIRST_TO_GO_COST && !is_done;
}

static void ask(struct drain *d, const struct pod *p)
{
	char uid[37];
	struct pod_eviction *free_slot = NULL;

	pod_uid_text(p, uid);
	for (size_t i = 0; i < EVICTIONS_AT_ONCE; i++) {
		bool is_its = !strcmp(d->evictions[i].uid, uid);
		if (d->evictions[i].is_busy && is_its)
			return;
		if (!d->evictions[i].is_busy && (!free_slot || is_its))
			free_slot = &d->evictions[i];
	}
	if (!free_slot || p->state == POD_TERMINATING)
		return;
	free_slot->drain = d;
	free_slot->controller = d->controller;
	d->in_flight++;
	if (needs_mark(free_slot, p, uid))
		mark(free_slot, p);
	else
		start(free_slot, p->namespace, p->name, uid);
}

static void tell_blocked(struct drain *d, const struct drain_verdict *v)
{
	if (d->last_reason == (int)v->reason)
		return;
	d->last_reason = (int)v->reason;
	log_info("drain-held", LOG_S("node", d->node), LOG_S("reason", drain_reason_name(v->reason)),
		 LOG_S("why", v->text), LOG_END);
}

static bool keeps_node(const struct pod *p)
{
	return p->kind != POD_DAEMON && p->kind != POD_STATIC && p->state != POD_FINISHED;
}

static int64_t pods_left(const struct controller *c, const struct node *n, struct arena *a)
{
	size_t count;
	const struct pod **pods = cluster_node_pods(c->cluster, n, a, &count);
	int64_t left = 0;

	for (size_t i = 0; i < count; i++)
		left += keeps_node(pods[i]);
	return left;
}

bool drain_evict(struct drain *d, const struct node *n)
{
	struct controller *c = d->controller;
	struct arena a = { 0 };
	bool is_work = runs_work(c, d->pool), is_empty = pods_left(c, n, &a) == 0;

	if (!is_empty) {
		struct drain_verdict v =
			cluster_drain(c->cluster, n, is_work ? -1 : (int)d->pool, clock_now(c->clock), &a);
		bool is_late = clock_mono(c->clock) - d->since > DRAIN_PATIENCE;
		if (is_work || (is_late && d->fate != FATE_LEND)) {
			d->step = DRAIN_UNMARK; /* work came in between, or it never becomes free */
		} else if (v.reason != DRAIN_POSSIBLE) {
			tell_blocked(d, &v);
		} else {
			for (size_t i = 0; i < v.evict_count; i++)
				ask(d, v.evict[i]);
		}
	}
	arena_release(&a);
	return is_empty;
}
