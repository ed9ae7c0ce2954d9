#include "controller/loop/activator.h"

#include "base/alloc.h"
#include "base/decode.h"
#include "base/net/relay.h"
#include "controller/loop/controller_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the world. */
static const millis DRIVE_EVERY = SECOND / 2, LOOK_EVERY = 2 * SECOND, WRITE_EVERY = 30 * SECOND,
		    RETRY_MOST = 30 * SECOND, ASKED_FOR = 10 * SECOND, PASSES_MOST = 20 * SECOND;

#define SLICE_GROUP "discovery.k8s.io/v1"

enum { HOPELESS = 3 }; /* failures, one after the other */

enum slice_state { SLICE_UNKNOWN, SLICE_THERE, SLICE_GONE };
enum door_step { STEP_SERVICE, STEP_WRITE, STEP_LOOK, STEP_DELETE };

/* Of one pool. */
struct door {
	struct door *next;
	struct controller *controller;
	char pool[130], namespace[64], service[64], port[64], slice_name[80], selector[100];
	millis hold;
	struct relay *relay; /* NULL: not yet, or no longer */
	bool is_over;	     /* its pool has none, or another; what it passes on goes on */
	enum slice_state slice;
	millis asked_until; /* clock_mono: somebody takes the last replica from the Service */

	enum door_step step;
	bool is_calling;
	struct object_call call;
	struct buf body;
	char uid[37], port_name[64]; /* of the Service */
	int64_t target_port;
	int failures;
	bool is_told;
	millis retry_at, written_at; /* clock_mono */
};

static const struct activator_text *text_of(const struct controller *c, size_t pool)
{
	return &c->manifest.pools[pool].spec.signals.queue.activator;
}

static bool has_activator(const struct controller *c, size_t pool)
{
	enum pool_mode mode = fleet_of(c)->pools[pool].mode;

	return text_of(c, pool)->service && (mode == MODE_ACT || mode == MODE_SHARE) && !c->pools[pool]->is_leaving &&
	       !c->context.is_barred;
}

static struct door *door_of(const struct controller *c, size_t pool)
{
	struct door *d = c->activator.first;

	while (d && (d->is_over || strcmp(d->pool, c->pools[pool]->key) != 0))
		d = d->next;
	return d;
}

static size_t pool_of(const struct door *d)
{
	const struct controller *c = d->controller;

	for (size_t i = 0; c->pools && i < fleet_of(c)->pool_count; i++)
		if (!strcmp(c->pools[i]->key, d->pool))
			return i;
	return SIZE_MAX;
}

int64_t activator_waiting(const struct controller *c, size_t pool)
{
	const struct door *d = door_of(c, pool);

	return d && d->relay ? (int64_t)relay_waiting(d->relay) : 0;
}

/* --- where requests go --- */

static bool serves(const struct controller *c, size_t pool, const struct pod *p)
{
	const char *label = pod_label(p, ENGINE_STATE_LABEL);

	return p->state == POD_READY && !p->is_placeholder && p->ip[0] && p->engine == POD_ENGINE_AWAKE &&
	       (fleet_of(c)->pools[pool].mode != MODE_SHARE ||
		(label && !strcmp(label, "awake") && !engine_moves_to_sleep(c, p)));
}

static bool stays(const struct pod *p)
{
	return p->node && !p->node->is_draining;
}

static size_t count_staying(const struct controller *c, size_t pool, const struct pod *but)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t count, staying = 0;
	const struct pod **pods = cluster_pods(c->cluster, (int)pool, &a, &count);

	for (size_t i = 0; i < count; i++)
		staying += pods[i] != but && serves(c, pool, pods[i]) && stays(pods[i]);
	return staying;
}

/* Those on nodes that drain serve only where there is no other. Returns how many stay. */
static size_t aim(struct controller *c, struct door *d, size_t pool)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t count, staying = count_staying(c, pool, NULL), found = 0;
	const struct pod **pods = cluster_pods(c->cluster, (int)pool, &a, &count);
	struct relay_target *targets = arena_array(&a, struct relay_target, count);

	for (size_t i = 0; i < count; i++) {
		if (!serves(c, pool, pods[i]) || (staying && !stays(pods[i])))
			continue;
		snprintf(targets[found].address, sizeof targets[found].address, "%s", pods[i]->ip);
		targets[found++].port =
			(uint16_t)(d->target_port ? d->target_port : c->manifest.pools[pool].spec.signals.scrape.port);
	}
	if (d->relay)
		relay_aim(d->relay, targets, found);
	return staying;
}

/* --- the slice --- */

static void note_failure(struct door *d, const char *what, const struct error *e)
{
	struct controller *c = d->controller;
	millis wait = SECOND << (d->failures < 5 ? d->failures : 5);
	size_t pool = pool_of(d);

	d->failures++;
	d->retry_at = clock_mono(c->clock) + (wait < RETRY_MOST ? wait : RETRY_MOST);
	if (e->kind == ERROR_CANCELLED || d->is_told)
		return;
	d->is_told = true;
	log_warn("activator-not-open", LOG_S("pool", d->pool), LOG_S("what", what), LOG_E(e), LOG_END);
	if (pool != SIZE_MAX)
		events_tell_pool(c, pool, (struct pool_event){ "ActivatorNotOpen", "Open", true },
				 "requests of Service %s are not held while no replica serves: %s: %s", d->service,
				 what, e->message);
}

struct service_port {
	const char *name, *protocol;
	int64_t port;
	struct decoded_text target;
};

static const struct field port_fields[] = {
	FIELD(struct service_port, name, FIELD_STRING, "name"),
	FIELD(struct service_port, protocol, FIELD_STRING, "protocol"),
	FIELD(struct service_port, port, FIELD_INT, "port"),
	FIELD(struct service_port, target, FIELD_RAW, "targetPort"),
};
static const struct record_spec port_record = { "", sizeof(struct service_port), port_fields, 4 };

struct service_record {
	const char *uid, *cluster_ip;
	struct decoded_list ports;
};

static const struct field service_fields[] = {
	FIELD(struct service_record, uid, FIELD_STRING, "metadata>uid"),
	FIELD(struct service_record, cluster_ip, FIELD_STRING, "spec>clusterIP"),
	{ .path = "spec>ports",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct service_record, ports),
	  .of = &port_record },
};
static const struct record_spec service_record = { "", sizeof(struct service_record), service_fields, 3 };

struct slice_record {
	const char *name;
	struct decoded_list endpoints;
};

struct endpoint_record {
	struct decoded_text ready; /* true, false, or nothing, which is true */
};

static const struct field endpoint_fields[] = {
	FIELD(struct endpoint_record, ready, FIELD_RAW, "conditions>ready"),
};
static const struct record_spec endpoint_record = { "", sizeof(struct endpoint_record), endpoint_fields, 1 };

static const struct field slice_fields[] = {
	FIELD(struct slice_record, name, FIELD_STRING, "metadata>name"),
	{ .path = "endpoints",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct slice_record, endpoints),
	  .of = &endpoint_record },
};
static const struct record_spec slice_record = { "", sizeof(struct slice_record), slice_fields, 2 };

struct slices_record {
	struct decoded_list items;
};

static const struct field slices_fields[] = {
	{ .path = "items", .type = FIELD_LIST, .offset = offsetof(struct slices_record, items), .of = &slice_record },
};
static const struct record_spec slices_record = { "", sizeof(struct slices_record), slices_fields, 1 };

static bool decode(const struct object_call *o, const struct record_spec *spec, struct arena *a, void *out,
		   struct error *e)
{
	struct decode_plan *plan = decode_plan_new(spec);
	bool ok = decode_record(plan, o->response, o->response_len, a, out, e);

	decode_plan_free(plan);
	return ok;
}

/* NULL with an error. */
static const struct service_port *choose_port(const struct door *d, const struct service_record *s, struct error *e)
{
	const struct service_port *ports = s->ports.items;

	if (!s->cluster_ip || !*s->cluster_ip || !strcmp(s->cluster_ip, "None")) {
		error_set(e, ERROR_INVALID,
			  "it has no cluster IP, so that clients choose the port themselves; give it one");
		return NULL;
	}
	if (!d->port[0] && s->ports.count == 1)
		return ports;
	for (size_t i = 0; i < s->ports.count; i++)
		if (ports[i].name && d->port[0] && !strcmp(ports[i].name, d->port))
			return &ports[i];
	error_set(e, ERROR_INVALID,
		  d->port[0] ? "it has no port named %s" : "it has several ports; name one with activator.port%s",
		  d->port);
	return NULL;
}

static bool take_service(struct door *d, struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct service_record s;

	if (!decode(&d->call, &service_record, &a, &s, e))
		return false;
	const struct service_port *p = choose_port(d, &s, e);
	if (!p)
		return false;
	snprintf(d->uid, sizeof d->uid, "%s", s.uid ? s.uid : "");
	snprintf(d->port_name, sizeof d->port_name, "%s", p->name ? p->name : "");
	/* A name is one of the container's, which is not known here: 0. */
	d->target_port = p->target.text ? strtoll(p->target.text, NULL, 10) : p->port;
	return true;
}

/* Somebody else's slice has an endpoint that takes requests. */
static bool others_serve(const struct door *d, struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct slices_record all;

	if (!decode(&d->call, &slices_record, &a, &all, e))
		return false;
	const struct slice_record *slices = all.items.items;
	for (size_t i = 0; i < all.items.count; i++) {
		const struct endpoint_record *of = slices[i].endpoints.items;
		if (slices[i].name && !strcmp(slices[i].name, d->slice_name))
			continue;
		for (size_t k = 0; k < slices[i].endpoints.count; k++)
			if (!of[k].ready.text || *of[k].ready.text != 'f')
				return true;
	}
	return false;
}

static void note_slice(struct door *d, enum slice_state state)
{
	if (d->slice != state)
		log_info(state == SLICE_THERE ? "activator-open" : "activator-closed", LOG_S("pool", d->pool),
			 LOG_S("service", d->service), LOG_I("port", d->relay ? relay_port(d->relay) : 0), LOG_END);
	d->slice = state;
	d->is_told = false;
}

static void answered(struct object_call *call);

static void ask(struct door *d, enum door_step step)
{
	static const struct {
		enum object_verb verb;
		bool is_slice;
	} steps[] = { [STEP_SERVICE] = { OBJECT_GET, false },
		      [STEP_WRITE] = { OBJECT_APPLY, true },
		      [STEP_LOOK] = { OBJECT_GET, true },
		      [STEP_DELETE] = { OBJECT_DELETE, true } };
	bool is_slice = steps[step].is_slice, is_list = step == STEP_LOOK;

	d->step = step;
	d->is_calling = true;
	d->call = (struct object_call){ .verb = steps[step].verb,
					.object = { .api_version = is_slice ? SLICE_GROUP : "v1",
						    .plural = is_slice ? "endpointslices" : "services",
						    .name_space = d->namespace,
						    .name = is_list    ? NULL
							    : is_slice ? d->slice_name
								       : d->service },
					.body = step == STEP_WRITE ? d->body.text : NULL,
					.selector = is_list ? d->selector : NULL,
					.done = answered,
					.user = d };
	object_start(d->controller->api, &d->call);
}

static void write_slice(struct door *d)
{
	const char *ip = d->controller->settings.pod_ip;

	buf_clear(&d->body);
	buf_printf(
		&d->body,
		"{\"apiVersion\":\"" SLICE_GROUP "\",\"kind\":\"EndpointSlice\",\"metadata\":{\"name\":\"%s\","
		"\"namespace\":\"%s\",\"labels\":{\"kubernetes.io/service-name\":\"%s\","
		"\"endpointslice.kubernetes.io/managed-by\":\"preheat\"},\"ownerReferences\":[{\"apiVersion\":\"v1\","
		"\"kind\":\"Service\",\"name\":\"%s\",\"uid\":\"%s\"}]},\"addressType\":\"%s\",\"ports\":[{\"name\":\"%"
		"s\","
		"\"protocol\":\"TCP\",\"port\":%u}],\"endpoints\":[{\"addresses\":[\"%s\"],\"conditions\":{\"ready\":"
		"true}}]}",
		d->slice_name, d->namespace, d->service, d->service, d->uid, strchr(ip, ':') ? "IPv6" : "IPv4",
		d->port_name, (unsigned)relay_port(d->relay), ip);
	ask(d, STEP_WRITE);
}

static void take_answer(struct door *d)
{
	static const char *const doing[] = { "reading Service", "writing its EndpointSlice",
					     "reading its EndpointSlices", "deleting its EndpointSlice" };
	struct error e = d->call.error;
	bool is_fine = e.kind == ERROR_NONE || (d->step == STEP_DELETE && e.kind == ERROR_NOT_FOUND);
	bool others = false;

	if (is_fine && d->step == STEP_SERVICE)
		is_fine = take_service(d, &e);
	if (is_fine && d->step == STEP_LOOK) {
		others = others_serve(d, &e);
		is_fine = others || e.kind == ERROR_NONE;
	}
	if (!is_fine) {
		note_failure(d, doing[d->step], &e);
		return;
	}
	d->failures = 0;
	d->retry_at = 0;
	if (d->step == STEP_SERVICE && d->relay) {
		write_slice(d);
	} else if (d->step == STEP_WRITE) {
		d->written_at = clock_mono(d->controller->clock);
		note_slice(d, SLICE_THERE);
	} else if (d->step == STEP_LOOK && others) {
		ask(d, STEP_DELETE);
	} else if (d->step == STEP_LOOK) {
		d->retry_at = clock_mono(d->controller->clock) + LOOK_EVERY;
	} else if (d->step == STEP_DELETE) {
		note_slice(d, SLICE_GONE);
	}
}

static void answered(struct object_call *call)
{
	struct door *d = call->user;

	d->is_calling = false;
	take_answer(d);
	act_soon(d->controller);
}

/* --- doors --- */

static void changed(void *user)
{
	struct door *d = user;
	size_t pool = pool_of(d);

	if (pool != SIZE_MAX && !d->is_over)
		pool_signals_queued(d->controller, pool);
	act_soon(d->controller);
}

static bool is_of(const struct door *d, const struct activator_text *t, millis hold)
{
	return !strcmp(d->service, t->service) && !strcmp(d->port, t->port ? t->port : "") && d->hold == hold;
}

static struct door *add(struct controller *c, size_t pool)
{
	const struct activator_text *t = text_of(c, pool);
	struct door *d = xnew(struct door);

	d->controller = c;
	d->hold = clock_real(c->clock, t->hold);
	snprintf(d->pool, sizeof d->pool, "%s", c->pools[pool]->key);
	snprintf(d->namespace, sizeof d->namespace, "%s", fleet_of(c)->pools[pool].namespace);
	snprintf(d->service, sizeof d->service, "%s", t->service);
	snprintf(d->port, sizeof d->port, "%s", t->port ? t->port : "");
	snprintf(d->slice_name, sizeof d->slice_name, "%s-preheat", t->service);
	snprintf(d->selector, sizeof d->selector, "kubernetes.io/service-name=%s", t->service);
	d->next = c->activator.first;
	c->activator.first = d;
	return d;
}

static void open_relay(struct door *d)
{
	const struct relay_settings s = { .name = d->pool,
					  .host = "",
					  .first = ACTIVATOR_PORT_FIRST,
					  .last = ACTIVATOR_PORT_LAST,
					  .hold = d->hold,
					  .changed = changed,
					  .user = d };
	struct error e = { 0 };

	if (!d->controller->settings.pod_ip[0])
		error_set(&e, ERROR_INVALID, "the environment has no POD_IP, so nobody could be told where this is");
	else
		d->relay = relay_open(d->controller->loop, &s, &e);
	if (!d->relay)
		note_failure(d, "listening", &e);
}

static void end_door(struct door *d)
{
	d->is_over = true;
	if (d->relay)
		relay_end(d->relay);
	if (d->is_calling)
		api_cancel(&d->call.call);
}

/* Of pools that have none any more: their Services lead here no longer. */
static void drive_over(struct door *d)
{
	size_t pool = pool_of(d);
	bool is_replaced = pool != SIZE_MAX && has_activator(d->controller, pool) &&
			   !strcmp(text_of(d->controller, pool)->service, d->service);

	if (d->slice != SLICE_GONE && !is_replaced && !d->is_calling && !d->controller->context.is_barred &&
	    leader_may_act(d->controller) && clock_mono(d->controller->clock) >= d->retry_at)
		ask(d, STEP_DELETE);
	else if (is_replaced)
		d->slice = SLICE_GONE;
}

static void drive_door(struct controller *c, struct door *d, size_t pool)
{
	millis now = clock_mono(c->clock);

	if (!d->relay && now >= d->retry_at)
		open_relay(d);
	size_t staying = aim(c, d, pool);
	bool is_wanted = !staying || now < d->asked_until || activator_waiting(c, pool) > 0;
	if (d->is_calling || !d->relay || now < d->retry_at)
		return;
	if (is_wanted && (d->slice != SLICE_THERE || now - d->written_at >= WRITE_EVERY))
		ask(d, STEP_SERVICE);
	else if (!is_wanted && d->slice != SLICE_GONE)
		ask(d, STEP_LOOK);
}

static bool is_idle_door(const struct door *d)
{
	return !d->is_calling && (!d->relay || (!relay_waiting(d->relay) && !relay_passing(d->relay)));
}

static void release(struct door *d)
{
	relay_close(d->relay);
	buf_release(&d->body);
	free(d);
}

static void sweep(struct controller *c)
{
	for (struct door **at = &c->activator.first; *at;) {
		struct door *d = *at;
		if (!d->is_over || !is_idle_door(d) || d->slice != SLICE_GONE) {
			at = &d->next;
			continue;
		}
		*at = d->next;
		release(d);
	}
}

static void on_timer(struct timer *t)
{
	struct controller *c = t->user;

	sweep(c);
	act_soon(c);
	if (c->activator.first)
		timer_start(c->loop, t, clock_real(c->clock, DRIVE_EVERY), on_timer);
}

bool activator_covers(struct controller *c, size_t pool, const struct pod *leaving)
{
	struct door *d = pool != SIZE_MAX && has_activator(c, pool) ? door_of(c, pool) : NULL;

	if (!d || count_staying(c, pool, leaving))
		return true;
	d->asked_until = clock_mono(c->clock) + ASKED_FOR;
	/* Where it cannot be had, all goes on as without. */
	return d->slice == SLICE_THERE || d->failures >= HOPELESS;
}

static void drive(struct controller *c)
{
	for (struct door *d = c->activator.first; d; d = d->next) {
		size_t pool = pool_of(d);
		if (!d->is_over && (pool == SIZE_MAX || !has_activator(c, pool) ||
				    !is_of(d, text_of(c, pool), clock_real(c->clock, text_of(c, pool)->hold))))
			end_door(d);
		if (d->is_over)
			drive_over(d);
	}
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		if (has_activator(c, i)) {
			struct door *d = door_of(c, i);
			drive_door(c, d ? d : add(c, i), i);
		}
	c->activator.timer.user = c;
	if (c->activator.first && !timer_is_running(&c->activator.timer))
		timer_start(c->loop, &c->activator.timer, clock_real(c->clock, DRIVE_EVERY), on_timer);
}

/* Whoever leads next has its own door; its slice is written over ours. */
static void stop(struct controller *c)
{
	for (struct door *d = c->activator.first; d; d = d->next) {
		end_door(d);
		d->slice = SLICE_GONE;
	}
}

static bool is_idle(const struct controller *c)
{
	for (const struct door *d = c->activator.first; d; d = d->next)
		if (d->is_calling)
			return false;
	return true;
}

const struct actor activator_actor = { .drive = drive, .stop = stop, .is_idle = is_idle };

void activator_leave(struct controller *c)
{
	c->activator.passes_until = loop_now(c->loop) + PASSES_MOST;
}

bool activator_passes(const struct controller *c)
{
	for (const struct door *d = c->activator.first; d; d = d->next)
		if (d->relay && relay_passing(d->relay) && loop_now(c->loop) < c->activator.passes_until)
			return true;
	return false;
}

void activator_close(struct controller *c)
{
	timer_stop(&c->activator.timer);
	for (struct door *d = c->activator.first, *next; d; d = next) {
		next = d->next;
		release(d);
	}
	c->activator.first = NULL;
}
