#include "controller/loop/drain_parts.h"

#include "controller/loop/node_group_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const millis EVICT_AGAIN = 5 * SECOND; /* Cluster Autoscaler: 10 s */

bool machine_is_wanted(const struct machine *m)
{
	return !m->is_standby && m->state != MACHINE_TERMINATING && m->state != MACHINE_STOPPED;
}

size_t drain_pool(const struct controller *c, const struct node *n)
{
	struct arena a = { 0 };
	size_t count, pool = n->group >= 0 ? first_pool(fleet_of(c), (size_t)n->group) : 0;
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
		else if (call->result == EVICTION_DONE || call->result == EVICTION_GONE)
			e->quiet_until = loop_now(c->loop) + EVICT_AGAIN;
		else
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

/* A place for a call about the pod; NULL while one is under way, or answered a moment ago, or none is free. */
static struct pod_eviction *slot_for(struct drain *d, const char *uid)
{
	struct pod_eviction *slot = NULL;

	for (size_t i = 0; i < EVICTIONS_AT_ONCE; i++) {
		struct pod_eviction *e = &d->evictions[i];
		if (!e->is_busy && e->quiet_until <= loop_now(d->controller->loop))
			slot = e;
		else if (!strcmp(e->uid, uid))
			return NULL;
	}
	return slot;
}

static void ask(struct drain *d, const struct pod *p)
{
	char uid[37];

	pod_uid_text(p, uid);
	struct pod_eviction *e = p->state == POD_TERMINATING ? NULL : slot_for(d, uid);
	if (!e)
		return;
	e->drain = d;
	e->controller = d->controller;
	d->in_flight++;
	start(e, p->namespace, p->name, uid);
}

void drain_evictions_cancel(struct drain *d)
{
	for (size_t i = 0; i < EVICTIONS_AT_ONCE; i++)
		if (d->evictions[i].is_busy)
			api_cancel(&d->evictions[i].call.call);
}

void drain_evict_pods_cancel(struct controller *c)
{
	for (struct pod_eviction *e = c->drains.lone; e; e = e->next)
		api_cancel(&e->call.call);
}

static void tell_blocked(struct drain *d, const struct drain_verdict *v)
{
	if (d->last_reason == (int)v->reason)
		return;
	d->last_reason = (int)v->reason;
	log_info("drain-held", LOG_S("node", d->node), LOG_S("reason", drain_reason_name(v->reason)),
		 LOG_S("why", v->text), LOG_END);
}

/* Of a node that is lent only the lender's own pods must go. */
static bool keeps_node(const struct drain *d, const struct pod *p)
{
	return p->kind != POD_DAEMON && p->kind != POD_STATIC && p->state != POD_FINISHED &&
	       (d->fate != FATE_LEND || p->pool == (int)d->pool);
}

static int64_t pods_left(const struct drain *d, const struct pod **pods, size_t count)
{
	int64_t left = 0;

	for (size_t i = 0; i < count; i++)
		left += keeps_node(d, pods[i]);
	return left;
}

/* The server holds what a budget keeps. */
static void evict_own(struct drain *d, const struct pod **pods, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (keeps_node(d, pods[i]) && pods[i]->evict != POD_EVICT_NEVER &&
		    pods[i]->undisturbed_until <= clock_now(d->controller->clock))
			ask(d, pods[i]);
}

static void evict_all(struct drain *d, const struct node *n, struct arena *a)
{
	struct controller *c = d->controller;
	struct drain_verdict v = cluster_drain(c->cluster, n, (int)d->pool, clock_now(c->clock), a);

	if (v.reason != DRAIN_POSSIBLE)
		tell_blocked(d, &v);
	else
		for (size_t i = 0; i < v.evict_count; i++)
			ask(d, v.evict[i]);
}

bool drain_evict(struct drain *d, const struct node *n)
{
	struct arena a = { 0 };
	size_t count;
	const struct pod **pods = cluster_node_pods(d->controller->cluster, n, &a, &count);
	int64_t left = pods_left(d, pods, count);

	if (left > 0 && runs_work(d->controller, d->pool))
		d->step = DRAIN_UNMARK; /* work came in between */
	else if (left > 0 && d->fate == FATE_LEND)
		evict_own(d, pods, count);
	else if (left > 0)
		evict_all(d, n, &a);
	arena_release(&a);
	return left == 0;
}
